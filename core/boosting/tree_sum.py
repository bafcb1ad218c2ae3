"""A sum of trees: how it scores, explains itself and is stored."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.boosting.weak_learner import Ensemble
from core.coding.categories import Words
from core.errors import ArtifactError
from core.ranker import Floats
from core.state import Array, Index, Known, Records, Totals
from core.table import Categories
from core.trees.cuts import NO_SET, Integers, Sets, check_sets, members_of
from core.trees.grower import MAX_LEAVES
from core.trees.predictor import (
    BinnedPredictor,
    Nodes,
    add_parts,
    add_scores,
    bin_trees,
    link,
)
from core.trees.words import describe_leaves

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
"""One split: x stays in `leaf` if x[feature] > threshold, or is missing and missing_above; else it
moves to a new leaf. The threshold -inf sets the missing apart from all values. A categorical feature
has a set instead, which holds the categories that stay: `set` is the place of its first word in the
sets' array (`cuts`), -1 for a threshold; the threshold is then NaN. A reader hears of the missing only
where the feature had some at fit (speaks_of_missing)."""

ROUND = np.dtype(
    [
        ("alpha", np.float64),
        ("d_plus", np.float64),
        ("d_minus", np.float64),
        ("n_leaves", np.int64),
    ]
)
"""One round: a tree of n_leaves, of whose full step alpha was taken. d_plus and d_minus are NaN."""

# From so many rows and trees on, coding the rows pays.
MANY_ROWS = 256
MANY_TREES = 4

# Leaf values beyond this would make sums infinite.
GREATEST_VALUE = 1e300


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree that growth has found: h(x) is the full step of x's leaf.

    Attributes
    ----------
    splits : ndarray of shape (n_splits,), `SPLITS`
        Its sets have no place yet.
    members : list of ndarray of shape (n_categories,), bool, or None
        Of each split the categories above, None where it has a threshold.
    leaf_value, leaf_weight : ndarray of shape (n_splits + 1,), float64
        See `TreeSum`.
    n_categories : ndarray of shape (n_features,), int64
    """

    splits: npt.NDArray[np.void]
    members: list[npt.NDArray[np.bool_] | None]
    leaf_value: Floats
    leaf_weight: Floats
    n_categories: Integers

    @property
    def d_plus(self) -> float:
        """No number: a tree moves more than two groups of rows."""
        return math.nan

    @property
    def d_minus(self) -> float:
        """No number."""
        return math.nan

    def values(self, X: Floats) -> Floats:
        """Give h(x) of each row."""
        return TreeSum.of([self], [1.0], 0.0, self.n_categories).score(X, 0.0)


@dataclass(frozen=True)
class TreeSum(Ensemble):
    """constant + Σ_t the value of the leaf in which tree t puts x.

    Of each tree come its splits, in the order of growth: its s-th (from 0) divides one of the
    leaves 0 to s and makes leaf s + 1. Any such list is a tree, so that a stored one needs no
    search for loops.

    Attributes
    ----------
    rounds : ndarray of shape (n_trees,), `ROUND`
    splits : ndarray of shape (n_splits,), `SPLITS`
        Of all trees, one after the other.
    leaf_value : ndarray of shape (n_splits + n_trees,), float64
        alpha times the full step.
    leaf_weight : ndarray of shape (n_splits + n_trees,), float64
        Sample weight of the training rows in the leaf.
    start : ndarray of shape (1,), float64
        The constant.
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    sets : ndarray of shape (n_words,), uint64
    """

    type: ClassVar[str] = "trees"

    n_categories: Integers
    rounds: Annotated[
        npt.NDArray[np.void],
        Records(ROUND, "n_rounds", n_leaves=(Ge(2), Le(MAX_LEAVES), Totals("n_all_leaves"))),
    ]
    splits: Annotated[
        npt.NDArray[np.void],
        Records(SPLITS, "n_all_leaves - n_rounds", prefix="split_", feature=Index("n_features")),
    ]
    leaf_value: Annotated[Floats, Array("n_all_leaves"), Ge(-GREATEST_VALUE), Le(GREATEST_VALUE)]
    leaf_weight: Annotated[Floats, Array("n_all_leaves"), Ge(0.0), Le(GREATEST_VALUE)]
    start: Annotated[Floats, Array(1, name="constant"), Ge(-GREATEST_VALUE), Le(GREATEST_VALUE)]
    sets: Annotated[Words, Array("n_words")]

    @classmethod
    def of(
        cls,
        trees: Sequence[Tree],
        alphas: Sequence[float],
        constant: float,
        n_categories: Integers,
    ) -> "TreeSum":
        """Sum up trees, each times its alpha."""
        splits = np.concatenate([np.empty(0, dtype=SPLITS), *(tree.splits for tree in trees)])
        members = [held for tree in trees for held in tree.members]
        sets = Sets()
        splits["set"] = [
            sets.add(feature, held)
            for feature, held in zip(splits["feature"].tolist(), members, strict=True)
        ]
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
        """What the sum gives to every row alike."""
        return float(self.start[0])

    @property
    def mean(self) -> float:
        """The sum's weighted mean over the rows that it was fitted on."""
        return self.constant + float(self._nodes.mean[self._nodes.root].sum())

    @cached_property
    def _nodes(self) -> Nodes:
        """The trees as nodes with children, for few rows; shared by threads, never written."""
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
        """The trees for many rows at a time; None where codes would not pay."""
        return bin_trees(
            self.rounds["n_leaves"], self.splits, self.leaf_value, self.sets, self.n_categories
        )

    def score(self, X: Floats, intercept: float) -> Floats:
        """Give intercept + constant + Σ of the trees for each row, unchecked.

        Notes
        -----
        O(n_rows · n_trees · depth). A row's score does not depend on the rows beside it: few rows
        go from node to node, many are coded and sent through together (`trees.predictor`), and the
        leaves' values are added in the same order.
        """
        scores = np.full(len(X), intercept + self.constant)
        many = len(X) >= MANY_ROWS and len(self.rounds) >= MANY_TREES
        binned = self._binned if many else None
        if binned is None:
            add_scores(X, self._nodes, 0, len(self.rounds), scores)
        else:
            binned.add_scores(X, scores)
        return scores

    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sum of the first 1, 2, ... trees on each row; each array is new."""
        scores = np.full(len(X), self.constant)
        for t in range(len(self.rounds)):
            scores = scores.copy()
            add_scores(X, self._nodes, t, t + 1, scores)
            yield scores

    def contributions(self, X: Floats) -> Floats:
        """Share each row's sum, less `mean`, out among the features on its paths.

        From a node to its child the mean of the training rows changes; the change goes to the
        feature that was asked (Saabas 2014). The parts add up, but they depend on the order in
        which a tree asks, as Shapley values would not.
        """
        parts = np.zeros(X.shape)
        add_parts(X, self._nodes, parts)
        return parts

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Describe the trees: of each its leaves, a sentence with what it adds, greatest first."""
        starts = self._starts()
        return {
            "trees": [
                {"leaves": self._sentences(start, stop, t, name, categories)}
                for t, (start, stop) in enumerate(pairwise(starts))
            ]
        }

    def weak_rankers(self) -> list[Tree]:
        """Give the trees."""
        return [
            self._tree(t, start, stop) for t, (start, stop) in enumerate(pairwise(self._starts()))
        ]

    def _tree(self, number: int, start: int, stop: int) -> Tree:
        splits, leaves = self.splits[start:stop], slice(start + number, stop + number + 1)
        return Tree(
            splits.copy(),
            [members_of(self.sets, split, self.n_categories) for split in splits],
            self.leaf_value[leaves],
            self.leaf_weight[leaves],
            self.n_categories,
        )

    def _starts(self) -> list[int]:
        """Where the splits of each tree start, and those of the last one end."""
        starts: list[int] = np.cumsum([0, *(self.rounds["n_leaves"] - 1)]).tolist()
        return starts

    def _sentences(
        self,
        start: int,
        stop: int,
        tree: int,
        name: Callable[[int], str],
        categories: Categories,
    ) -> list[dict[str, Any]]:
        values = self.leaf_value[start + tree : stop + tree + 1].tolist()
        held = describe_leaves(self.splits[start:stop], self.sets, name, categories)
        leaves = sorted(zip(values, held, strict=True), key=lambda leaf: -leaf[0])
        return [{"rule": f"{rows} adds {value:.3g}", "adds": value} for value, rows in leaves]

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], known: Known, meta: Known | None = None
    ) -> Self:
        """Read trees; those of an artifact from when they had 256 leaves at most have narrow splits."""
        leaf = arrays["split_leaf"]
        if leaf.dtype == np.uint8:
            arrays = {**arrays, "split_leaf": leaf.astype(np.uint16)}
        return super().from_arrays(arrays, known, meta)

    def check(self) -> None:
        """Refuse splits that make no trees."""
        splits, n_splits = self.splits, self.rounds["n_leaves"] - 1
        starts = np.repeat(np.cumsum(n_splits) - n_splits, n_splits)
        if (splits["leaf"] > np.arange(len(splits)) - starts).any():
            raise ArtifactError("split_leaf must name a leaf that is there")
        check_sets(splits["feature"], splits["set"], self.sets, self.n_categories)
        is_set = splits["set"] != NO_SET
        if not np.where(is_set, np.isnan(splits["threshold"]), splits["threshold"] < np.inf).all():
            raise ArtifactError("split_threshold must be a number below infinity, NaN beside a set")
