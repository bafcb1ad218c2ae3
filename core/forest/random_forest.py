"""Random forests and extremely randomised trees: the mean over many trees of the fraction of positives in a leaf."""

import math
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le

from core.base.mixed import MixedRows
from core.base.monotone import Directions, Verification
from core.base.parameters import Seed
from core.base.ranker import (
    Callback,
    ContributionRanker,
    FitCost,
    Floats,
    StopFit,
    warn_stopped,
)
from core.base.state import Integers, Nested
from core.base.training import TrainingData
from core.boosting.tree_sum import MAX_LEAVES, ROUND, TreeSum
from core.coding.bins import MaxNarrowBins
from core.coding.threads import ThreadPool
from core.errors import ArtifactError

from .columns import ForestColumns
from .growth import ForestShape, GrownTree, grow_tree

MAX_TREES = 10_000
LEAF_PRIOR = 1.0
"""Rows that are added to those of a leaf, with the fraction of positives of all rows."""


@dataclass(kw_only=True, eq=False, repr=False)
class RandomForestParameters:
    """Parameters of `RandomForest`."""

    n_trees: Annotated[int, Ge(1), Le(MAX_TREES), Doc("Number of trees.")] = 300
    splitter: Annotated[
        Literal["best", "random"],
        Doc(
            'How a feature is split. "best": at the best threshold, on rows drawn with replacement (random forest). '
            '"random": at a random threshold, on all rows (extremely randomised trees).'
        ),
    ] = "best"
    criterion: Annotated[
        Literal["gini", "log_loss"],
        Doc(
            "What a split minimises: the Gini impurity, or the logistic loss of the leaves (their entropy)."
        ),
    ] = "gini"
    max_features: Annotated[
        float | None,
        Gt(0),
        Le(1),
        Doc(
            "Fraction of the features that each node may split on, drawn at random. None: the square root of their "
            "number. If none of them divides the rows, further ones are drawn."
        ),
    ] = None
    min_samples_leaf: Annotated[
        float,
        Ge(1),
        Le(1e100),
        Doc(
            "Minimum number of rows of a leaf. A row that is drawn k times, or has a weight of k, counts as k rows. If "
            "the mean weight is below 1, all weights are first divided by it."
        ),
    ] = 3.0
    max_leaves: Annotated[
        int,
        Ge(2),
        Le(MAX_LEAVES),
        Doc("Maximum number of leaves of a tree, which is grown level by level."),
    ] = MAX_LEAVES
    max_bins: MaxNarrowBins = 255
    random_state: Annotated[Seed, Doc("Seed of the random draws.")] = 0


class RandomForest(RandomForestParameters, ContributionRanker):
    """A random forest, or extremely randomised trees: the mean fraction of positives in the leaves.

    Use it as a strong model that needs no tuning, and beside boosted trees: their errors differ, so that the mean rank
    of both is often better than either. `auto` tries both kinds of forest. Its models are large and score slowly.

    Each tree is grown until its leaves are pure or too small to be divided. Each node draws some features at random,
    and is split on the best of them. A random forest (`splitter="best"`) draws rows with replacement for each tree,
    separately in each class, and takes the best threshold. Extremely randomised trees (`splitter="random"`) have all
    rows and one random threshold per feature. The score is the mean fraction of positives minus one half.

    Attributes
    ----------
    ensemble_ : TreeSum
        The trees.

    Notes
    -----
    Features have at most `max_bins` bins. A random threshold is uniform between the least and the greatest value in
    the node, the values of a bin being taken for its middle. Categories are ordered by their fraction of positives
    in all training rows; a feature with more than 30 of them is replaced by two numbers, as by `target_encoding` of
    boosted trees.

    A row that is drawn k times counts as k rows. Trees grow in parallel, as many as numba uses threads. The draws of a
    tree depend only on the seed and its number, so the forest does not depend on the threads, and its first trees are
    those of a smaller forest.

    The fraction of a leaf is smoothed by one row with the fraction of positives of all rows. The mean of fractions
    ranks better than the mean of log-odds on some tables and worse on others. Leaves of one row are better on tables
    with little noise, larger ones on most others (docs/benchmarks.md).

    Time: O(n_trees · n_samples · √n_features · depth). Memory: a byte per row and feature; the model has about 60 bytes
    per leaf.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001. P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized
    trees", Machine Learning 63, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from core import RandomForest
    >>> X = np.arange(200.0).reshape(-1, 2)
    >>> y = X[:, 0] >= 120
    >>> ranker = RandomForest(n_trees=20).fit(X, y)
    >>> ranker.predict([[20.0, 20.0], [180.0, 180.0]])
    array([False,  True])
    """

    keeps_when_stopped = True
    fit_cost = FitCost(10e-9, times="n_trees")

    ensemble_: Annotated[TreeSum, Nested()]

    @property
    def intercept_(self) -> float:
        """Minus the threshold: a row is positive if more than half of the rows in its leaves are."""
        return self.ensemble_.constant

    @property
    def offset_(self) -> float:
        """Mean score of the rows that the trees were grown on; contributions are differences from it."""
        return self.ensemble_.mean

    def score_rows(self, X: Floats) -> Floats:
        return self.ensemble_.score(X, 0.0)

    def score_mixed(self, mixed: MixedRows) -> Floats:
        return self.ensemble_.score_mixed(mixed, 0.0)

    def _contributions(self, X: Floats) -> Floats:
        return self.ensemble_.contributions(X)

    def shapley_values(self, X: Any) -> Floats:
        return self.ensemble_.shapley_values(self.checked_rows(X))

    def count_shapley_steps(self) -> int:
        return self.ensemble_.count_shapley_steps()

    def keep_length(self) -> bool:
        self.n_trees = len(self.ensemble_.rounds)
        return True

    def walk_monotone(self, directions: Directions) -> Verification:
        return self.ensemble_.walk_monotone(directions)

    def takes_categories(self) -> bool:
        return True

    def structure(self) -> dict[str, Any]:
        """Describe the forest: the size of each tree."""
        return {
            "type": "random forest",
            "intercept": self.intercept_,
            "offset": self.offset_,
            "trees": [{"leaves": n} for n in self.ensemble_.rounds["n_leaves"].tolist()],
        }

    def _restore(self) -> None:
        if len(self.ensemble_.rounds) > self.n_trees:
            raise ArtifactError(
                f"n_leaves must contain at most {self.n_trees} trees, got {len(self.ensemble_.rounds)}"
            )

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        columns = ForestColumns.of(data, self.max_bins, self.random_state)
        trees: list[GrownTree] = []
        with closing(self._grow(columns)) as grown:
            for tree in grown:
                trees.append(tree)
                try:
                    callback(len(trees), self.n_trees, {"leaves": float(len(tree.weight))})
                except StopFit:
                    if len(trees) < self.n_trees:
                        warn_stopped(len(trees), self.n_trees, "trees")
                        break
        self.ensemble_ = _collect(trees, columns, data.n_categories)

    def _grow(self, columns: ForestColumns) -> Generator[GrownTree, None, None]:
        """Yield the trees in order; each is grown by one thread, from its own key."""
        n_columns = len(columns.codes)
        n_drawn = math.sqrt(n_columns)
        if self.max_features is not None:
            n_drawn = self.max_features * n_columns
        shape = ForestShape(
            columns.n_positives,
            max(round(n_drawn), 1),
            float(self.min_samples_leaf),
            self.max_leaves,
            self.splitter == "random",
            self.criterion == "log_loss",
        )
        keys = np.random.Philox(key=[self.random_state, 0]).random_raw(self.n_trees)
        pool = ThreadPoolExecutor(ThreadPool(columns.codes.size * self.n_trees).n_threads)
        try:
            yield from pool.map(
                partial(grow_tree, columns.codes, columns.values, columns.mass, shape), keys
            )
        finally:  # also when a callback has stopped the fit
            pool.shutdown(cancel_futures=True)


def _collect(trees: list[GrownTree], columns: ForestColumns, n_categories: Integers) -> TreeSum:
    """Return the mean of the trees, as a sum; a tree without splits is a part of its constant."""
    grown = [tree for tree in trees if len(tree.splits)]
    rounds = np.empty(len(grown), dtype=ROUND)
    rounds["alpha"], rounds["d_plus"], rounds["d_minus"] = 1.0 / len(trees), math.nan, math.nan
    rounds["n_leaves"] = [len(tree.weight) for tree in grown]
    mean = columns.mass[: columns.n_positives].sum() / columns.mass.sum()
    values = [(tree.positive + LEAF_PRIOR * mean) / (tree.weight + LEAF_PRIOR) for tree in trees]
    alone = sum(float(own[0]) for own in values if len(own) == 1)
    splits, sets = columns.turn(np.concatenate([tree.splits for tree in trees]))
    return TreeSum(
        n_categories,
        rounds,
        splits,
        np.concatenate([np.empty(0), *(own for own in values if len(own) > 1)]) / len(trees),
        np.concatenate([np.empty(0), *(tree.weight for tree in grown)]),
        np.array([alone / len(trees) - 0.5]),
        sets,
    )
