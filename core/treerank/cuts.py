"""Split rules of ranking trees made of axis-parallel thresholds: one threshold, or LeafRank's tree of thresholds.

The cut trees of all rules are stored one after the other, each in preorder; a cut's first child has the rows above it.
A row is above a cut of a numeric feature x if x > threshold, and above one of a categorical feature if its category is
in the cut's set; each cut says where missing values go.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from annotated_types import Ge, Le, Lt

from core.base.ranker import Floats
from core.base.state import Array, Index, Totals, Words, pieces
from core.coding.categories import count_words, unpack
from core.errors import ArtifactError
from core.explain.conditions import ANY_NUMBER, CategorySet, Condition, any_category, in_words
from core.trees import predictor
from core.trees.predictor import Nodes

from .tree import MAX_MASS, Booleans, Integers, RankingTree, Rules, are_trees, link, sum_up

# Nodes that may be visited for the exact Shapley values of a row: about a quarter of a second.
MAX_VISITED = 20_000_000

# By feature: the values that a path through a cut tree lets through.
Path = dict[int, Condition]


def _cut(name: str, size: str = "n_cut_nodes") -> Array:
    return Array(size, name=f"cut_{name}")


_MASS = Ge(0), Le(MAX_MASS)


@dataclass(frozen=True, eq=False)
class CutRules(Rules):
    """Split rules by axis-parallel cut trees: each node of the ranking tree has one."""

    kind: ClassVar[str] = "cuts"

    n_categories: Integers
    n_leaves: Annotated[
        Integers,
        _cut("n_leaves", "n_rules"),
        Ge(2),
        Totals("n_cut_leaves"),
        Totals("n_cut_nodes", lambda n_leaves: 2 * n_leaves - 1),
    ]
    """Of each cut tree; a single cut has 2. Shape (n_rules,)."""
    feature: Annotated[Integers, _cut("feature"), Index("n_features", least=-1)]
    """By cut node: the feature it splits on; -1 for a leaf. n_cut_nodes = Σ (2 n_leaves - 1). Shape (n_cut_nodes,)."""
    threshold: Annotated[Floats, _cut("threshold"), Lt(np.inf)]
    """Above is x > threshold; -inf separates the missing from all values. For a set: the number of categories, from
    which on a code counts as missing. 0 for leaves. Shape (n_cut_nodes,)."""
    missing_above: Annotated[Booleans, _cut("missing_above")]
    speaks_of_missing: Annotated[Booleans, _cut("speaks_of_missing")]
    """Whether a missing x is above, and whether x was ever missing at fit, so that a description mentions it. Shape
    (n_cut_nodes,)."""
    n_words: Annotated[Integers, _cut("n_words"), Totals("n_all_words")]
    """Number of `words` of the cut's set; 0 if x is numeric. Shape (n_cut_nodes,)."""
    to_top: Annotated[Booleans, _cut("to_top")]
    """Of a leaf: whether its rows go to the ranking tree's top child. Shape (n_cut_nodes,)."""
    leaf_positive: Annotated[Floats, _cut("leaf_positive", "n_cut_leaves"), *_MASS]
    leaf_negative: Annotated[Floats, _cut("leaf_negative", "n_cut_leaves"), *_MASS]
    """Mass of each class of the training rows in each leaf. Shape (n_cut_leaves,)."""
    words: Annotated[Words, _cut("words", "n_all_words")]
    """The sets, in the order of the nodes: bit c % 64 of word c // 64 tells whether category c is above."""
    merged_rule: Annotated[Integers, _cut("merged_rule", "n_merged"), Index("n_rules")]
    merged_feature: Annotated[Integers, _cut("merged_feature", "n_merged"), Index("n_features")]
    """Of each cut that LeafRank dropped, as both its leaves went to one side: the rule, ascending, and the feature.
    Shape (n_merged,)."""
    merged_gain: Annotated[Floats, _cut("merged_gain", "n_merged"), Ge(0), Le(MAX_MASS**2)]
    """Its Λ, in masses. Shape (n_merged,)."""

    def __len__(self) -> int:
        return len(self.n_leaves)

    @cached_property
    def start(self) -> Integers:
        """Index of each rule's first cut node, and the end of the last rule's."""
        return np.concatenate([[0], np.cumsum(2 * self.n_leaves - 1)])

    @cached_property
    def word(self) -> Integers:
        """Index in `words` of each cut node's category set; -1 for none."""
        return np.where(self.n_words > 0, np.cumsum(self.n_words) - self.n_words, -1)

    @cached_property
    def below(self) -> Integers:
        """Index of each cut node's child for rows below its threshold; -1 for a leaf."""
        return link(self.feature < 0).second

    @cached_property
    def positive(self) -> Floats:
        return sum_up(self.below, self.leaf_positive)

    @cached_property
    def negative(self) -> Floats:
        return sum_up(self.below, self.leaf_negative)

    def link(self, tree: RankingTree) -> Nodes:
        """Return the ranking tree as one plain tree of cuts, whose leaves hold the numbers of the ranking leaves."""
        is_cut, asks = self.feature >= 0, tree.rule >= 0
        number = np.cumsum(is_cut) - 1  # of a cut among the cuts
        n_cuts = int(is_cut.sum())
        # where a node of the ranking tree sends a row: to the first cut of its rule, or to a leaf
        entry = n_cuts + tree.leaf_number
        entry[asks] = number[self.start[tree.rule[asks]]]
        # each cut leaf's target, by its rule's node in the ranking tree
        node = np.repeat(np.flatnonzero(asks), np.diff(self.start))
        target = np.where(self.to_top, tree.top[node], tree.bottom[node])
        target = np.where(is_cut, number, entry[target])
        child = np.repeat(np.arange(n_cuts + tree.n_leaves), 2)
        child[0 : 2 * n_cuts : 2] = target[self.below[is_cut]]
        child[1 : 2 * n_cuts : 2] = target[np.flatnonzero(is_cut) + 1]
        depth = [0] * (n_cuts + tree.n_leaves)  # cuts on the longest path from here
        pairs = child.reshape(-1, 2).tolist()
        for cut in range(n_cuts - 1, -1, -1):  # children come after their parents
            depth[cut] = 1 + max(depth[pairs[cut][0]], depth[pairs[cut][1]])
        leaves = np.arange(float(tree.n_leaves))
        return Nodes(
            root=entry[:1],
            depth=np.array(depth[:1]),
            feature=np.append(self.feature[is_cut], np.zeros_like(tree.leaves)).astype(np.int32),
            threshold=np.append(self.threshold[is_cut], leaves),
            missing_above=np.append(self.missing_above[is_cut], leaves < 0),
            set=np.append(self.word[is_cut], np.full_like(tree.leaves, -1)),
            child=child.astype(np.int32),
            mean=np.append(np.zeros(n_cuts), leaves),
            sets=self.words.copy(),  # as the kernels take no array that forbids writing
        )

    def find_leaves(self, tree: RankingTree, X: Floats) -> Integers:
        numbers = np.zeros(len(X))
        predictor.add_scores(X, tree.linked, 0, 1, numbers)
        return numbers.astype(np.int64)  # whole numbers are exact

    def take(self, rules: Integers) -> "CutRules":
        nodes = _ranges(self.start[rules], self.start[rules + 1])
        leaves = (np.cumsum(self.feature < 0) - 1)[nodes[self.feature[nodes] < 0]]
        first = np.cumsum(self.n_words) - self.n_words
        words = _ranges(first[nodes], (first + self.n_words)[nodes])
        new_index = np.full(len(self), -1)
        new_index[rules] = np.arange(len(rules))
        merged = np.argsort(new_index[self.merged_rule], kind="stable")
        merged = merged[new_index[self.merged_rule[merged]] >= 0]
        return CutRules(
            self.n_categories,
            self.n_leaves[rules],
            self.feature[nodes],
            self.threshold[nodes],
            self.missing_above[nodes],
            self.speaks_of_missing[nodes],
            self.n_words[nodes],
            self.to_top[nodes],
            self.leaf_positive[leaves],
            self.leaf_negative[leaves],
            self.words[words],
            new_index[self.merged_rule[merged]],
            self.merged_feature[merged],
            self.merged_gain[merged],
        )

    def split(self, n_rules: Integers) -> list["CutRules"]:
        ends = np.concatenate([[0], np.cumsum(n_rules)])
        nodes = self.start[ends]
        n_leaves = np.diff(np.concatenate([[0], np.cumsum(self.n_leaves)])[ends])
        n_words = np.diff(np.concatenate([[0], np.cumsum(self.n_words)])[nodes])
        n_merged = np.diff(np.searchsorted(self.merged_rule, ends))
        counts = {"n_leaves": n_rules, "words": n_words} | {
            "leaf_positive": n_leaves,
            "leaf_negative": n_leaves,
            "merged_rule": n_merged,
            "merged_feature": n_merged,
            "merged_gain": n_merged,
        }
        columns = [
            pieces(getattr(self, field.name), counts.get(field.name, np.diff(nodes)))
            for field in fields(self)[1:]
        ]
        parts = [CutRules(self.n_categories, *each) for each in zip(*columns, strict=True)]
        return [
            replace(part, merged_rule=part.merged_rule - first)
            for part, first in zip(parts, ends.tolist(), strict=False)
        ]

    @classmethod
    def join(cls, parts: Sequence["CutRules"]) -> "CutRules":
        names = [field.name for field in fields(cls)[1:]]
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        before = np.cumsum([0, *map(len, parts)])[:-1]
        joined["merged_rule"] += np.repeat(before, [len(part.merged_rule) for part in parts])
        return cls(parts[0].n_categories, **joined)

    def describe(
        self, rule: int, name: Callable[[int], str], categories: Sequence[Sequence[str] | None]
    ) -> dict[str, Any]:
        sides = []
        for to_top in (True, False):
            paths = self._paths(int(self.start[rule]), to_top, {}, categories)
            each = [
                [self._in_words(condition, name, categories) for condition in path.items()]
                for path in paths
            ]
            enclose = len(paths) > 1
            sides.append(
                " or ".join(
                    f"({' and '.join(path)})" if enclose and len(path) > 1 else " and ".join(path)
                    for path in each
                )
            )
        cuts = int(self.n_leaves[rule]) - 1
        return {"kind": self.kind, "words": sides[0], "otherwise": sides[1], "cuts": cuts}

    @cached_property
    def _fraction_to_top(self) -> Floats:
        """For each cut node: the fraction of leaves below it whose rows go to the top child."""
        is_leaf = self.feature < 0
        to_top = np.where(self.to_top[is_leaf], 1.0, 0.0)
        return sum_up(self.below, to_top) / sum_up(self.below, np.ones_like(to_top))

    def _paths(
        self, node: int, to_top: bool, path: Path, categories: Sequence[Sequence[str] | None]
    ) -> list[Path]:
        """Return paths of conditions from `node` to the leaves of one side. If all rows above go there: "above, or
        ...".
        """
        if self._fraction_to_top[node] == float(to_top):
            return [path]
        if self._fraction_to_top[node] == float(not to_top):
            return []
        feature, missing_above = int(self.feature[node]), bool(self.missing_above[node])
        texts = categories[feature]
        condition = path.get(feature, ANY_NUMBER if texts is None else any_category(len(texts)))
        divided: tuple[Condition, Condition]
        if isinstance(condition, CategorySet):
            members = unpack(self.words, int(self.word[node]), len(texts or ()))
            divided = condition.divide(members, missing_above=missing_above)
        else:
            divided = condition.divide(float(self.threshold[node]), missing_above=missing_above)
        children = node + 1, int(self.below[node])
        whole = [self._fraction_to_top[child] == float(to_top) for child in children]
        paths = []
        for k in range(2):
            implied = whole[1 - k] and not whole[k]
            further = path if implied else {**path, feature: divided[k]}
            paths += self._paths(children[k], to_top, further, categories)
        return paths

    @cached_property
    def _with_missing(self) -> frozenset[int]:
        return frozenset(self.feature[self.speaks_of_missing].tolist())

    def _in_words(
        self,
        feature_condition: tuple[int, Condition],
        name: Callable[[int], str],
        categories: Sequence[Sequence[str] | None],
    ) -> str:
        feature, condition = feature_condition
        words = in_words(name(feature), condition, categories[feature], mentions_missing=False)
        said = (
            not condition.missing
            or feature not in self._with_missing
            or words.endswith("is missing")
        )
        return words if said else f"{words} (or missing)"

    def check(self) -> None:
        is_leaf = self.feature < 0
        for flags in pieces(is_leaf, 2 * self.n_leaves - 1):
            if not are_trees(flags) or 2 * flags.sum() != len(flags) + 1:
                raise ArtifactError("cut_feature must describe a tree in preorder for each rule")
        n_categories = np.where(is_leaf, 0, self.n_categories[self.feature])
        if (self.n_words != count_words(n_categories)).any():
            raise ArtifactError("cut_n_words must be what each feature's categories need")
        has_set = n_categories > 0
        if (self.threshold[has_set] != n_categories[has_set]).any():
            raise ArtifactError(
                "cut_threshold must be the number of categories where a cut has a set"
            )
        if (np.diff(self.merged_rule) < 0).any():
            raise ArtifactError("cut_merged_rule must rise")


def link_all(trees: Sequence[RankingTree]) -> Nodes:
    """Return several ranking trees as plain trees of cuts, concatenated; see `CutRules.link`."""
    linked: list[Nodes] = [tree.linked for tree in trees]
    n_nodes = np.cumsum([0, *(len(nodes.feature) for nodes in linked)]).tolist()
    n_words = np.cumsum([0, *(len(nodes.sets) for nodes in linked)]).tolist()
    moved = [
        nodes._replace(
            root=nodes.root + first,
            child=nodes.child + np.int32(first),
            set=np.where(nodes.set >= 0, nodes.set + word, -1),
        )
        for nodes, first, word in zip(linked, n_nodes, n_words, strict=False)
    ]
    return Nodes(*(np.concatenate(arrays) for arrays in zip(*moved, strict=True)))


def mean_values(tree: RankingTree, leaf_value: Floats) -> Floats:
    """Return the training rows' mean leaf value at each cut and leaf of a linked tree, in the order of `tree.linked`.

    On a row's way to its leaf the mean changes at each cut by mean(child) - mean(cut). The changes sum to the leaf's
    value minus the mean of all rows (the first of the result), and each is due to one feature.
    """
    rules = tree.rules
    assert isinstance(rules, CutRules)
    cuts = np.flatnonzero(rules.feature >= 0)
    mass = rules.positive + rules.negative
    masses = np.column_stack([mass[rules.below[cuts]], mass[cuts + 1]])
    masses[~masses.any(axis=1)] = 0.5  # no row came here: possible only in an artifact
    fraction_above = (masses[:, 1] / masses.sum(axis=1)).tolist()
    children = tree.linked.child.reshape(-1, 2).tolist()
    mean: list[float] = [0.0] * len(cuts) + leaf_value.tolist()
    for cut in range(len(cuts) - 1, -1, -1):  # children come after their parents
        below, above = children[cut]
        mean[cut] = fraction_above[cut] * mean[above] + (1.0 - fraction_above[cut]) * mean[below]
    return np.array(mean)


class FeatureGains(NamedTuple):
    """The gains in training AUC of the splits on each feature."""

    squared: Floats
    """I_j = Σ ΔAUC² over the cuts on feature j: the paper's squared importance. Shape (n_features,)."""
    linear: Floats
    """Σ ΔAUC, in units of AUC. Shape (n_features,)."""


def sum_gains(trees: Sequence[RankingTree], n_features: int) -> FeatureGains:
    """Return each feature's total gain over all splits; the mean over several trees (Clémençon et al. 2011, §5.1).

    ΔAUC of a cut of a cell C into C' and the rest is |α(C) β(C') - β(C) α(C')| / 2, with fractions of all training
    rows: a cut near the root of the ranking tree weighs more. Cuts that LeafRank dropped count, too, so the linear sums
    may exceed the tree's AUC minus ½.
    """
    squared, linear = np.zeros((2, n_features))
    for tree in trees:
        rules = tree.rules
        assert isinstance(rules, CutRules)
        cuts = np.flatnonzero(rules.feature >= 0)
        feature = np.append(rules.feature[cuts], rules.merged_feature)
        beta, alpha = rules.positive / tree.positive[0], rules.negative / tree.negative[0]
        gains = np.abs(alpha[cuts] * beta[cuts + 1] - beta[cuts] * alpha[cuts + 1])
        merged = rules.merged_gain / tree.positive[0] / tree.negative[0]
        delta = np.append(gains, merged) / 2.0
        np.add.at(squared, feature, delta**2)
        np.add.at(linear, feature, delta)
    return FeatureGains(squared / len(trees), linear / len(trees))


def _ranges(starts: Integers, stops: Integers) -> Integers:
    lengths = stops - starts
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(lengths.sum()) + np.repeat(starts - before, lengths))
