"""Sums of trees: the model that boosting on trees stores, scores with, and describes in words."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base.mixed import MixedRows
from core.base.monotone import Directions, Verification, Violation
from core.base.ranker import Floats
from core.base.state import Array, Index, Known, Nested, Records, Totals
from core.base.table import Categories
from core.coding.categories import Words, unpack
from core.coding.crosses import COLUMNS, Crosses
from core.errors import ArtifactError, InvalidParameter
from core.explain.conditions import (
    ANY_NUMBER,
    CategorySet,
    Condition,
    ValueRange,
    any_category,
    in_words,
)
from core.trees.category_sets import NO_SET, Integers, Sets, check_sets, members_of
from core.trees.order import find_falls, find_regions
from core.trees.predictor import (
    BinnedPredictor,
    Nodes,
    add_mixed_scores,
    add_parts,
    add_scores,
    add_shapley,
    bin_trees,
    count_shapley_steps,
    cover_nodes,
    link,
)

from .loop import Ensemble

SPLITS = np.dtype(
    [
        ("leaf", np.uint16),
        ("feature", np.int64),
        ("threshold", np.float64),
        ("set", np.int64),
        ("missing_above", np.bool_),
        ("speaks_of_missing", np.bool_),
    ]
)
"""One split: x stays in `leaf` if x[feature] > threshold, or if it is missing and missing_above; else it moves to a
new leaf. The threshold -inf separates the missing from all values. A categorical feature has a set of the
categories that stay instead: `set` is the index of its first word in the array of sets, -1 for a threshold; with a
set the threshold is NaN. Sentences mention the missing only if the feature had some in training
(speaks_of_missing)."""
ROUND = np.dtype(
    [
        ("alpha", np.float64),
        ("d_plus", np.float64),
        ("d_minus", np.float64),
        ("n_leaves", np.int64),
    ]
)
"""One round: a tree of n_leaves, and the fraction alpha of its full step that was taken. d_plus and d_minus are NaN."""

# Rows and trees from which it pays to code the rows before they are scored.
MIN_CODED_ROWS = 256
MIN_CODED_TREES = 4

# Greatest number of leaves of a tree: each has a number in 16 bits.
MAX_LEAVES = (1 << 16) - 1

# Pairs of leaves that break a monotone constraint, whose rows are scored to see whether the sum breaks it, too.
MAX_VIOLATIONS = 1000
MAX_PROVEN_LEAVES = 8192  # pairs of leaves are compared: half a gigabyte

# Greatest absolute value of a leaf: sums of greater ones would not be finite.
MAX_LEAF_VALUE = 1e300


@dataclass(frozen=True, slots=True)
class Tree:
    """A grown tree: h(x) is the full step of the leaf of x. `members` has the categories above each split, or None."""

    splits: npt.NDArray[np.void]
    """Their field `set` is not yet set. Shape (n_splits,), `SPLITS`."""
    members: list[npt.NDArray[np.bool_] | None]
    leaf_value: Floats
    leaf_weight: Floats
    """See `TreeSum`. Shape (n_splits + 1,)."""
    n_categories: Integers

    # A tree moves more than two groups of rows, so that these have no meaning.
    d_plus: ClassVar[float] = math.nan
    d_minus: ClassVar[float] = math.nan

    def values(self, X: Floats) -> Floats:
        return TreeSum.of([self], [1.0], 0.0, self.n_categories).score(X, 0.0)


@dataclass(frozen=True)
class TreeSum(Ensemble):
    """A sum of trees: the score is a constant plus, for each tree, the value of the leaf that holds the row.

    Splits are in the order of growth: split s of a tree, counted from 0, splits one of the leaves 0 to s and makes leaf
    s + 1. Any such list is a tree, so that a stored one need not be searched for loops.
    """

    type: ClassVar[str] = "trees"

    n_categories: Integers
    rounds: Annotated[
        npt.NDArray[np.void],
        Records(ROUND, "n_rounds", n_leaves=(Ge(2), Le(MAX_LEAVES), Totals("n_all_leaves"))),
    ]
    """Shape (n_trees,), `ROUND`."""
    splits: Annotated[
        npt.NDArray[np.void],
        Records(SPLITS, "n_all_leaves - n_rounds", prefix="split_", feature=Index("n_features")),
    ]
    """Splits of all trees, one tree after the other. Shape (n_splits,), `SPLITS`."""
    leaf_value: Annotated[Floats, Array("n_all_leaves"), Ge(-MAX_LEAF_VALUE), Le(MAX_LEAF_VALUE)]
    """alpha times the full step of each leaf."""
    leaf_weight: Annotated[Floats, Array("n_all_leaves"), Ge(0.0), Le(MAX_LEAF_VALUE)]
    """Sample weight of the training rows in the leaf."""
    start: Annotated[Floats, Array(1, name="constant"), Ge(-MAX_LEAF_VALUE), Le(MAX_LEAF_VALUE)]
    """The constant."""
    sets: Annotated[Words, Array("n_words")]

    @classmethod
    def of(
        cls,
        trees: Sequence[Tree],
        alphas: Sequence[float],
        constant: float,
        n_categories: Integers,
    ) -> "TreeSum":
        """Return the sum of trees, each multiplied by its alpha."""
        splits = np.concatenate([np.empty(0, dtype=SPLITS), *(tree.splits for tree in trees)])
        members = [category_mask for tree in trees for category_mask in tree.members]
        sets = Sets()
        firsts: dict[tuple[int, int], int] = {}  # splits often share a mask: it is packed once
        for split, (feature, mask) in enumerate(
            zip(splits["feature"].tolist(), members, strict=True)
        ):
            key = feature, id(mask)
            if key not in firsts:
                firsts[key] = sets.add(feature, mask)
            splits["set"][split] = firsts[key]
        rounds = np.empty(len(trees), dtype=ROUND)
        rounds["alpha"] = alphas
        rounds["d_plus"] = rounds["d_minus"] = np.nan
        rounds["n_leaves"] = [len(tree.leaf_value) for tree in trees]
        values = [alpha * tree.leaf_value for tree, alpha in zip(trees, alphas, strict=True)]
        return cls(
            n_categories,
            rounds,
            splits,
            np.concatenate([np.empty(0), *values]),
            np.concatenate([np.empty(0), *(tree.leaf_weight for tree in trees)]),
            np.array([constant]),
            sets.words,
        )

    @property
    def constant(self) -> float:
        return float(self.start[0])

    @property
    def mean(self) -> float:
        """Weighted mean score of the training rows."""
        return self.constant + float(self.nodes.mean[self.nodes.root].sum())

    @cached_property
    def nodes(self) -> Nodes:
        """The trees as linked nodes, used to score few rows; read-only and shared by threads."""
        return link(
            self.rounds["n_leaves"],
            self.splits,
            self.leaf_value,
            self.leaf_weight,
            self.sets,
            self.n_categories,
        )

    @cached_property
    def _binned(self) -> BinnedPredictor | None:
        """The trees with thresholds as bin codes, used to score many rows; None if there are too many codes."""
        return bin_trees(
            self.rounds["n_leaves"], self.splits, self.leaf_value, self.sets, self.n_categories
        )

    def score(self, X: Floats, intercept: float, *, is_float32: bool = False) -> Floats:
        """Return intercept + constant + the trees' values for each row, without checks; O(n_rows · n_trees · depth).

        is_float32: whether the sum is rounded to float32 after each tree.

        The score of a row does not depend on the other rows: few rows go from node to node, many are coded and sent
        through the trees together (`core.trees.predictor`), and leaf values are added in the same order.
        """
        scores = np.full(len(X), intercept + self.constant)
        many = len(X) >= MIN_CODED_ROWS and len(self.rounds) >= MIN_CODED_TREES
        binned = self._binned if many else None
        if binned is None:
            add_scores(X, self.nodes, 0, len(self.rounds), scores, is_float32)
        else:
            binned.add_scores(X, scores, is_float32)
        return scores

    def score_mixed(self, mixed: MixedRows, intercept: float) -> Floats:
        scores = np.zeros(mixed.start[-1])
        add_mixed_scores(mixed, self.nodes, scores)
        return scores + (intercept + self.constant)

    def staged(self, X: Floats) -> Iterator[Floats]:
        scores = np.full(len(X), self.constant)
        for t in range(len(self.rounds)):
            scores = scores.copy()
            add_scores(X, self.nodes, t, t + 1, scores)
            yield scores

    def contributions(self, X: Floats) -> Floats:
        """Return each feature's contribution to each row's score (Saabas 2014).

        The feature of a node gets the change of the mean training score from the node to its child. Contributions sum
        to the score minus `mean`, but unlike Shapley values they depend on the order of the splits.
        """
        parts = np.zeros(X.shape)
        add_parts(X, self.nodes, parts)
        return parts

    @cached_property
    def cover(self) -> Floats:
        """The sample weight of the training rows in each node."""
        return cover_nodes(self.nodes, self.leaf_weight)

    def shapley_values(self, X: Floats) -> Floats:
        parts = np.zeros(X.shape)
        add_shapley(X, self.nodes, self.cover, parts)
        return parts

    def count_shapley_steps(self) -> int:
        return count_shapley_steps(self.nodes, len(self.n_categories))

    def walk_monotone(self, directions: Directions) -> Verification:
        compared = 0
        violations: list[Violation] = []
        for t, (splits, leaves) in enumerate(self._trees()):
            if len(splits) >= MAX_PROVEN_LEAVES:
                raise InvalidParameter(
                    f"a tree must have at most {MAX_PROVEN_LEAVES:,} leaves to be proven monotone, got "
                    f"{len(splits) + 1:,} in tree {t + 1}"
                )
            members = [members_of(self.sets, split, self.n_categories) for split in splits]
            of_tree, found = find_falls(
                find_regions(splits, members),
                directions,
                self.leaf_value[leaves],
                len(self.n_categories),
                MAX_VIOLATIONS - len(violations),
            )
            compared += of_tree
            violations += [replace(each, part=f"tree {t + 1}") for each in found]
            if len(violations) == MAX_VIOLATIONS:
                break
        return Verification(compared, violations, is_sum=True)

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        trees = []
        for splits, leaves in self._trees():
            conditions = describe_leaves(splits, self.sets, name, categories)
            adds = zip(self.leaf_value[leaves].tolist(), conditions, strict=True)
            rules = [
                {"rule": f"{rows} adds {value:.3g}", "adds": value}
                for value, rows in sorted(adds, key=lambda leaf: -leaf[0])
            ]
            trees.append({"leaves": rules})
        return {"trees": trees}

    def weak_rankers(self) -> list[Tree]:
        return [
            Tree(
                splits.copy(),
                [members_of(self.sets, split, self.n_categories) for split in splits],
                self.leaf_value[leaves],
                self.leaf_weight[leaves],
                self.n_categories,
            )
            for splits, leaves in self._trees()
        ]

    def _trees(self) -> Iterator[tuple[npt.NDArray[np.void], slice]]:
        stops = np.cumsum(self.rounds["n_leaves"]).tolist()
        for t, (start, stop) in enumerate(pairwise([0, *stops])):
            yield self.splits[start - t : stop - t - 1], slice(start, stop)

    def check(self) -> None:
        splits, n_splits = self.splits, self.rounds["n_leaves"] - 1
        starts = np.repeat(np.cumsum(n_splits) - n_splits, n_splits)
        if (splits["leaf"] > np.arange(len(splits)) - starts).any():
            raise ArtifactError("split_leaf must name a leaf that is there")
        check_sets(splits["feature"], splits["set"], self.sets, self.n_categories)
        is_set = splits["set"] != NO_SET
        if not np.where(is_set, np.isnan(splits["threshold"]), splits["threshold"] < np.inf).all():
            raise ArtifactError("split_threshold must be a number below infinity, NaN beside a set")


@dataclass(frozen=True)
class CrossedTreeSum(Ensemble):
    """A sum of trees that also split on crosses (combinations) of two categorical features."""

    type: ClassVar[str] = "trees"

    crosses: Annotated[Crosses, Nested()]
    trees: Annotated[TreeSum, Nested()]
    """Its features are those of the rows, then the columns of the crosses."""

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], known: Known, meta: Known | None = None
    ) -> Self:
        """Restore the crosses, then the trees on the table with their columns; see `State.from_arrays`."""
        crosses = Crosses.from_arrays(arrays, known, meta)
        return cls(crosses, TreeSum.from_arrays(arrays, crosses.extend_known(known), meta))

    @property
    def rounds(self) -> npt.NDArray[np.void]:  # type: ignore[override]
        return self.trees.rounds

    @property
    def constant(self) -> float:
        return self.trees.constant

    @property
    def mean(self) -> float:
        return self.trees.mean

    def score(self, X: Floats, intercept: float) -> Floats:
        return self.trees.score(self.crosses.extend(X), intercept)

    def staged(self, X: Floats) -> Iterator[Floats]:
        return self.trees.staged(self.crosses.extend(X))

    def contributions(self, X: Floats) -> Floats:
        """Return each feature's contribution; that of a cross is divided equally between its two features."""
        return self.crosses.fold(self.trees.contributions(self.crosses.extend(X)))

    def shapley_values(self, X: Floats) -> Floats:
        """Return the features' Shapley values; that of a cross is divided equally between its two features."""
        return self.crosses.fold(self.trees.shapley_values(self.crosses.extend(X)))

    def count_shapley_steps(self) -> int:
        return self.trees.count_shapley_steps()

    def walk_monotone(self, directions: Directions) -> Verification:
        """Verify monotone constraints; a constrained feature used in a cross counts as violated."""
        n_features = len(directions)
        further = np.zeros(self.crosses.n_columns, dtype=directions.dtype)
        walk = self.trees.walk_monotone(np.append(directions, further))
        found = [
            replace(each, rows=None if each.rows is None else each.rows[:, :n_features])
            for each in walk.violations
        ]
        read = np.unique(self.trees.splits["feature"]) - n_features
        read = np.unique(read[read >= 0] // COLUMNS)
        tried = self.crosses.try_constraints(
            read.tolist(), directions, lambda X: self.score(X, 0.0)
        )
        return replace(walk, violations=[*found, *tried])

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        crosses = self.crosses
        of_columns = categories + (None,) * crosses.n_columns
        described = self.trees.describe(lambda column: crosses.name(column, name), of_columns)
        return {**described, "crosses": crosses.describe(name)}

    def weak_rankers(self) -> list[Tree]:
        """Return the trees, which expect rows with the crosses' columns appended."""
        return self.trees.weak_rankers()


def describe_leaves(
    splits: npt.NDArray[np.void], sets: Words, name: Callable[[int], str], categories: Categories
) -> list[str]:
    """Return the condition of each leaf, such as "1 < age <= 3 or missing and colour in {green, red}"."""
    paths: list[dict[int, Condition]] = [{}]
    mentions_missing: dict[int, bool] = {}
    for split in splits:
        leaf, feature = int(split["leaf"]), int(split["feature"])
        mentions_missing[feature] = bool(split["speaks_of_missing"])
        missing_above = bool(split["missing_above"])
        above: Condition
        below: Condition
        if split["set"] == NO_SET:
            numbers = paths[leaf].get(feature, ANY_NUMBER)
            assert isinstance(numbers, ValueRange)  # a feature has either sets or thresholds
            above, below = numbers.divide(float(split["threshold"]), missing_above=missing_above)
        else:
            n = len(categories[feature] or ())
            condition = paths[leaf].get(feature, any_category(n))
            assert isinstance(condition, CategorySet)
            above, below = condition.divide(
                unpack(sets, split["set"], n), missing_above=missing_above
            )
        paths.append({**paths[leaf], feature: below})
        paths[leaf] = {**paths[leaf], feature: above}
    return [
        " and ".join(
            in_words(
                name(feature),
                condition,
                categories[feature],
                mentions_missing=mentions_missing[feature],
            )
            for feature, condition in path.items()
        )
        for path in paths
    ]
