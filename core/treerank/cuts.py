"""Rules made of cuts along the axes: one cut, or LeafRank's tree of them with a side for each leaf.

The cut trees of all rules follow one another, each in preorder; a cut's first child holds what is
above it. A cut asks a feature x whether x > threshold, or, where x is a category, whether it is one
of a set; a missing x goes where the cut says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.coding.category_sets import count_words, unpack
from core.errors import ArtifactError
from core.explain.conditions import ANY_NUMBER, CategorySet, Condition, any_category, in_words
from core.ranker import Arrays, Floats
from core.trees import walking
from core.trees.walking import Nodes

from .tree import GREATEST_MASS, Booleans, Integers, Rules, Tree, are_trees, link, sum_up

# What each cut node has, beside the words of sets: see `CutRules`.
_DTYPES: dict[str, Any] = {
    "feature": np.int64,
    "threshold": np.float64,
    "missing_above": np.bool_,
    "speaks_of_missing": np.bool_,
    "n_words": np.int64,
    "to_top": np.bool_,
    "leaf_positive": np.float64,
    "leaf_negative": np.float64,
}


# What each cut that is no part of its tree has.
_MERGED_DTYPES: dict[str, Any] = {
    "merged_rule": np.int64,
    "merged_feature": np.int64,
    "merged_gain": np.float64,
}


# What a way through a cut tree lets through of the features that are asked on it.
Way = dict[int, Condition]


@dataclass(frozen=True)
class CutRules(Rules):
    """Rules by cut trees.

    Attributes
    ----------
    n_leaves : ndarray of shape (n_rules,), int64
        Of each cut tree; a single cut has 2.
    feature : ndarray of shape (n_cut_nodes,), int64
        By cut node, n_cut_nodes = Σ (2 n_leaves - 1): what the cut asks; -1 for a leaf.
    threshold : ndarray of shape (n_cut_nodes,), float64
        Above is x > threshold; -inf sets the missing apart from all values. Of a set the number of categories,
        beyond which a code counts as missing; 0 for leaves.
    missing_above, speaks_of_missing : ndarray of shape (n_cut_nodes,), bool
        Where a missing x goes, and whether x was ever missing at fit, so that a reader wants to know.
    n_words : ndarray of shape (n_cut_nodes,), int64
        Where x is a category: how many of `words` are its set's; else 0.
    to_top : ndarray of shape (n_cut_nodes,), bool
        Of a leaf: whether its rows go to the ranking tree's top child.
    leaf_positive, leaf_negative : ndarray of shape (n_cut_leaves,), float64
        Mass of each class of the training rows in each leaf.
    words : ndarray of uint64
        The sets, in the order of the nodes: bit c % 64 of word c // 64 tells whether category c is above.
    merged_rule, merged_feature : ndarray of shape (n_merged,), int64
        Of each cut that LeafRank made and that is no part of its cut tree, as both its leaves went to one side: the
        rule, ascending, and what it asked. None where an artifact of before does not tell.
    merged_gain : ndarray of shape (n_merged,), float64
        Its Λ, in masses.
    """

    kind: ClassVar[str] = "cuts"

    n_leaves: Integers
    feature: Integers
    threshold: Floats
    missing_above: Booleans
    speaks_of_missing: Booleans
    n_words: Integers
    to_top: Booleans
    leaf_positive: Floats
    leaf_negative: Floats
    words: npt.NDArray[np.uint64]
    merged_rule: Integers
    merged_feature: Integers
    merged_gain: Floats

    def __len__(self) -> int:
        return len(self.n_leaves)

    @cached_property
    def start(self) -> Integers:
        """Where each rule's cut nodes start, and those of the last one end."""
        return np.concatenate([[0], np.cumsum(2 * self.n_leaves - 1)])

    @cached_property
    def word(self) -> Integers:
        """By cut node: where in `words` its set starts; -1 where there is none."""
        return np.where(self.n_words > 0, np.cumsum(self.n_words) - self.n_words, -1)

    @cached_property
    def below(self) -> Integers:
        """By cut node: the child that holds what is not above; -1 for a leaf."""
        return link(self.feature < 0).second

    @cached_property
    def positive(self) -> Floats:
        """By cut node: mass of positives among the training rows."""
        return sum_up(self.below, self.leaf_positive)

    @cached_property
    def negative(self) -> Floats:
        """By cut node: mass of negatives."""
        return sum_up(self.below, self.leaf_negative)

    def link(self, tree: Tree) -> Nodes:
        """Link the cuts of all nodes to one tree: a cut leaf leads to the first cut of the child it sends rows to.

        Its leaves are those of the ranking tree, each of which has its number for a value.
        """
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
        depth = [0] * (n_cuts + tree.n_leaves)  # cuts on the longest way from here
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

    def find_leaves(self, tree: Tree, X: Floats) -> Integers:
        """Say in which leaf of the tree each row ends; see `Tree.find_leaves`."""
        numbers = np.zeros(len(X))
        walking.add_scores(X, tree.linked, 0, 1, numbers)
        return numbers.astype(np.int64)  # whole numbers are exact

    def take(self, rules: Integers) -> "CutRules":
        """Give some of the rules, in the order asked for; see `Rules.take`."""
        nodes = _ranges(self.start[rules], self.start[rules + 1])
        leaves = (np.cumsum(self.feature < 0) - 1)[nodes[self.feature[nodes] < 0]]
        first = np.cumsum(self.n_words) - self.n_words
        words = _ranges(first[nodes], (first + self.n_words)[nodes])
        kept = {
            name: getattr(self, name)[leaves if name.startswith("leaf") else nodes]
            for name in _DTYPES
        }
        place = np.full(len(self), -1)
        place[rules] = np.arange(len(rules))
        order = np.argsort(place[self.merged_rule], kind="stable")
        order = order[place[self.merged_rule[order]] >= 0]
        return CutRules(
            self.n_leaves[rules],
            **kept,
            words=self.words[words],
            merged_rule=place[self.merged_rule[order]],
            merged_feature=self.merged_feature[order],
            merged_gain=self.merged_gain[order],
        )

    @classmethod
    def join(cls, parts: Sequence["CutRules"]) -> "CutRules":
        """Put rules one after the other."""
        dtypes = {"n_leaves": np.int64, **_DTYPES, "words": np.uint64, **_MERGED_DTYPES}
        empty = {name: np.empty(0, dtype=dtype) for name, dtype in dtypes.items()}
        joined = {
            name: np.concatenate([none, *(getattr(part, name) for part in parts)])
            for name, none in empty.items()
        }
        before = np.cumsum([0, *(len(part) for part in parts)])[:-1]
        joined["merged_rule"] += np.repeat(before, [len(part.merged_rule) for part in parts])
        return cls(**joined)

    def describe(
        self, rule: int, name: Callable[[int], str], categories: Sequence[Sequence[str] | None]
    ) -> dict[str, Any]:
        """Describe a rule: in words what goes to the top, and what otherwise; see `Rules.describe`."""
        sides = []
        for to_top in (True, False):
            ways = self._ways(int(self.start[rule]), to_top, {}, categories)
            each = [
                [self._in_words(condition, name, categories) for condition in way.items()]
                for way in ways
            ]
            enclose = len(ways) > 1
            sides.append(
                " or ".join(
                    f"({' and '.join(way)})" if enclose and len(way) > 1 else " and ".join(way)
                    for way in each
                )
            )
        cuts = int(self.n_leaves[rule]) - 1
        return {"kind": self.kind, "words": sides[0], "otherwise": sides[1], "cuts": cuts}

    @cached_property
    def _share_to_top(self) -> Floats:
        """By cut node: the share of the leaves below it that go to the top; 0 and 1 settle it."""
        is_leaf = self.feature < 0
        to_top = np.where(self.to_top[is_leaf], 1.0, 0.0)
        return sum_up(self.below, to_top) / sum_up(self.below, np.ones_like(to_top))

    def _ways(
        self, node: int, to_top: bool, way: Way, categories: Sequence[Sequence[str] | None]
    ) -> list[Way]:
        """Give the ways on from a cut node to one side, which was reached by a way.

        Where all that is above goes there, "above, or not above and ..." is "above, or ...".
        """
        if self._share_to_top[node] == float(to_top):
            return [way]
        if self._share_to_top[node] == float(not to_top):
            return []
        feature, missing_above = int(self.feature[node]), bool(self.missing_above[node])
        texts = categories[feature]
        held = way.get(feature, ANY_NUMBER if texts is None else any_category(len(texts)))
        divided: tuple[Condition, Condition]
        if isinstance(held, CategorySet):
            members = unpack(self.words, int(self.word[node]), len(texts or ()))
            divided = held.divide(members, missing_above=missing_above)
        else:
            divided = held.divide(float(self.threshold[node]), missing_above=missing_above)
        children = node + 1, int(self.below[node])
        whole = [self._share_to_top[child] == float(to_top) for child in children]
        ways = []
        for k in range(2):
            implied = whole[1 - k] and not whole[k]
            further = way if implied else {**way, feature: divided[k]}
            ways += self._ways(children[k], to_top, further, categories)
        return ways

    @cached_property
    def _with_missing(self) -> frozenset[int]:
        """Features that had missing values at fit."""
        return frozenset(self.feature[self.speaks_of_missing].tolist())

    def _in_words(
        self,
        condition: tuple[int, Condition],
        name: Callable[[int], str],
        categories: Sequence[Sequence[str] | None],
    ) -> str:
        feature, held = condition
        words = in_words(name(feature), held, categories[feature], mentions_missing=False)
        said = not held.missing or feature not in self._with_missing or words.endswith("is missing")
        return words if said else f"{words} (or missing)"

    def arrays(self) -> Arrays:
        """Give the state as arrays; see `Rules.arrays`."""
        return {f"cut_{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], n_rules: int, n_categories: Integers
    ) -> "CutRules":
        """Rebuild rules from `arrays()`; see `Rules.from_arrays`."""
        n_leaves = _checked(arrays, "n_leaves", np.int64, n_rules)
        n_nodes = arrays["cut_feature"].size
        if not ((n_leaves >= 2) & (n_leaves <= n_nodes)).all():
            raise ArtifactError("cut_n_leaves must be at least 2")
        if int((2 * n_leaves - 1).sum()) != n_nodes:
            raise ArtifactError("cut_feature must hold a value per node of the cut trees")
        n_cut_leaves = int(n_leaves.sum())
        read = {
            name: _checked(
                arrays, name, dtype, n_cut_leaves if name.startswith("leaf") else n_nodes
            )
            for name, dtype in _DTYPES.items()
        }
        words = _checked(arrays, "words", np.uint64, arrays["cut_words"].size)
        merged = {name: np.empty(0, dtype=dtype) for name, dtype in _MERGED_DTYPES.items()}
        if any(f"cut_{name}" in arrays for name in merged):
            n_merged = arrays["cut_merged_rule"].size
            for name, dtype in _MERGED_DTYPES.items():
                merged[name] = _checked(arrays, name, dtype, n_merged)
        rules = cls(n_leaves, **read, words=words, **merged)
        rules._check(n_categories)
        return rules

    def _check(self, n_categories: Integers) -> None:
        is_leaf = self.feature < 0
        for rule in range(len(self)):
            flags = is_leaf[self.start[rule] : self.start[rule + 1]]
            if not are_trees(flags) or 2 * flags.sum() != len(flags) + 1:
                raise ArtifactError("cut_feature must describe a tree in preorder for each rule")
        asked = self.feature[~is_leaf]
        if (self.feature < -1).any() or (asked >= len(n_categories)).any():
            raise ArtifactError(f"cut_feature must be from -1 to {len(n_categories) - 1}")
        if not (self.threshold < np.inf).all():
            raise ArtifactError("cut_threshold must be a number below infinity")
        n_words = np.zeros(len(is_leaf), dtype=np.int64)
        n_words[~is_leaf] = count_words(n_categories[asked])
        if (self.n_words != n_words).any():
            raise ArtifactError("cut_n_words must be what each feature's categories need")
        sets = n_words > 0  # their numbers of categories: 0 in an artifact of before there was one
        self.threshold[sets] = n_categories[self.feature[sets]]
        if len(self.words) != self.n_words.sum():
            raise ArtifactError(f"cut_words must hold {self.n_words.sum()} words")
        for mass in (self.leaf_positive, self.leaf_negative):
            if not ((mass >= 0) & (mass <= GREATEST_MASS)).all():
                raise ArtifactError("masses of cut leaves must be finite and not negative")
        owner, asked = self.merged_rule, self.merged_feature
        if ((owner < 0) | (owner >= len(self))).any() or (np.diff(owner) < 0).any():
            raise ArtifactError(f"cut_merged_rule must rise from 0 to {len(self) - 1} at most")
        if ((asked < 0) | (asked >= len(n_categories))).any():
            raise ArtifactError(f"cut_merged_feature must be from 0 to {len(n_categories) - 1}")
        if not ((self.merged_gain >= 0) & (self.merged_gain <= GREATEST_MASS**2)).all():
            raise ArtifactError("cut_merged_gain must be finite and not negative")


def link_all(trees: Sequence[Tree]) -> Nodes:
    """Link the cuts of several trees, one tree after the other; see `CutRules.link`."""
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


def mean_values(tree: Tree, leaf_value: Floats) -> Floats:
    """Give the mean value of the training rows at each cut and leaf of a linked tree.

    From the root down a row's value changes at each cut by mean(child) - mean(cut), until it is that of its
    leaf: the changes add up to the value less the mean, and each is due to one feature. (A split that
    gains by two features together gives more to the one that is asked later.)

    Parameters
    ----------
    tree : Tree
        With rules of class `CutRules`.
    leaf_value : ndarray of shape (n_leaves,), float64

    Returns
    -------
    ndarray of shape (n_cuts + n_leaves,), float64
        In the order of `tree.linked`; the first is the mean of all.
    """
    rules = tree.rules
    assert isinstance(rules, CutRules)
    cuts = np.flatnonzero(rules.feature >= 0)
    mass = rules.positive + rules.negative
    masses = np.column_stack([mass[rules.below[cuts]], mass[cuts + 1]])
    masses[~masses.any(axis=1)] = 0.5  # only an artifact may say that no row came there
    share_above = (masses[:, 1] / masses.sum(axis=1)).tolist()
    children = tree.linked.child.reshape(-1, 2).tolist()
    mean: list[float] = [0.0] * len(cuts) + leaf_value.tolist()
    for cut in range(len(cuts) - 1, -1, -1):  # children come after their parents
        below, above = children[cut]
        mean[cut] = share_above[cut] * mean[above] + (1.0 - share_above[cut]) * mean[below]
    return np.array(mean)


class FeatureGains(NamedTuple):
    """What the cuts on each feature gain, in training AUC.

    Attributes
    ----------
    squared : ndarray of shape (n_features,), float64
        I_j = Σ ΔAUC² over the cuts on feature j: the paper's squared importance.
    linear : ndarray of shape (n_features,), float64
        Σ ΔAUC, in units of AUC.
    """

    squared: Floats
    linear: Floats


def sum_gains(trees: Sequence[Tree], n_features: int) -> FeatureGains:
    """Sum up, over all cuts of all nodes, what each feature gains; of several trees the mean.

    Parameters
    ----------
    trees : sequence of Tree
        With rules of class `CutRules`.
    n_features : int

    Returns
    -------
    FeatureGains

    Notes
    -----
    ΔAUC of a cut of a cell C into C' and the rest is |α(C) β(C') - β(C) α(C')| / 2, with shares of
    all training rows, so that a cut near the root of the ranking tree weighs more than the same cut
    further down. All cuts that LeafRank made in a node count, also those whose leaves went to one side
    and that are no part of the rule. Hence the linear sums may add up to more than what the tree gains
    over ½. Artifacts of before hold the others alone.

    References
    ----------
    Clémençon, Depecker & Vayatis 2011, §5.1.
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
    """Join the ranges from each start to its stop."""
    lengths = stops - starts
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(lengths.sum()) + np.repeat(starts - before, lengths))


def _checked(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, dtype: Any, length: int
) -> npt.NDArray[Any]:
    array = arrays[f"cut_{name}"]
    check_array(f"cut_{name}", array, dtype, (length,))
    return array.copy()
