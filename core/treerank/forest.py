"""A forest of ranking trees: each on rows drawn anew, its nodes on features drawn anew; ranks are averaged."""

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from core.coding import youden_threshold
from core.coding.options import MaxNarrowBins
from core.errors import ArtifactError, InvalidParameter
from core.metrics import auc
from core.ranker import Arrays, Callback, Floats, Ranker, StopFit, ignore, warn_stopped
from core.sealed import identify_fit
from core.shares import read_shares, write_share

from . import options, walking
from .bagging import (
    Bag,
    Grown,
    rank_leaves,
    read_share_of_trees,
    read_trees,
    write_share_of_trees,
    write_trees,
)
from .coding import code
from .contributions import PathValues
from .growth import Limits
from .importance import sum_gains
from .leafrank import Shape
from .preorder import Integers
from .splitting import Sample
from .tree import Tree

MOST_TREES = 10_000


class TreeRankForest(Ranker):
    """Average the ranks that many ranking trees give.

    Each tree is grown on rows drawn with replacement, each class by itself, and each of its nodes
    asks features drawn without. A tree ranks a row by its leaf: at the share of the tree's rows in
    leaves that rank below, plus half of the leaf's own share. A score is the mean of these ranks, less the
    cut above which `predict` says positive.

    Attributes
    ----------
    trees_ : tuple of Tree
    oob_auc_ : float
        AUC of the training rows, each ranked by the trees that did not see it; NaN where such rows
        are of one class only.
    intercept_ : float
        Less the mean rank at the greatest TPR - FPR of those ranks.

    Notes
    -----
    With `order="concave"` a tree's leaves rank by their share of positives. A node that drew no
    feature that tells anything splits badly, and what ranks above what is then wrong all the way
    down (§8); only the leaves themselves stay good. On 10 tables it was better on 7, by .003 on
    average, and at most .004 worse.

    A row that is drawn k times counts as k rows, of whose labels the categories' shares are believed the more:
    with each counted once forests ranked worse by .006 (mean of 9 tables of words). A column of identifiers is
    then learnt in part where `min_samples_leaf` is a row or two.

    Trees are grown in as many threads as numba is set to use, each tree by one; what each draws
    depends on the seed and its number alone, so the forest does not depend on the threads, nor on
    how it is divided into shares (`fit_share`, `join_shares`; see `core.shares`).

    O(n_trees) times a tree's work, on one coded table.

    References
    ----------
    S. Clémençon, M. Depecker and N. Vayatis, "Ranking forests", JMLR 14, 2013. Machine Learning 83,
    2011: §7 and §8, which ask for it.
    """

    keeps_when_stopped = True

    trees_: tuple[Tree, ...]
    oob_auc_: float
    intercept_: float
    _grove: "_Grove"

    def __init__(
        self,
        *,
        n_trees: Annotated[int, Ge(1), Le(MOST_TREES), Doc("Number of trees.")] = 50,
        max_features: Annotated[
            float, Gt(0), Le(1), Doc("Share of the features that each node may ask, at least one.")
        ] = 0.5,
        splitter: Annotated[
            Literal["leafrank", "axis"],
            Doc(
                "How a node is split: 'leafrank', a small tree of axis cuts whose leaves are merged "
                "to two sides; 'axis', one cut."
            ),
        ] = "leafrank",
        max_depth: options.MaxDepth = 8,
        max_leaves: options.MaxLeaves = None,
        min_samples_leaf: options.MinSamplesLeaf = 5.0,
        leafrank_depth: options.LeafRankDepth = 3,
        leafrank_max_leaves: options.LeafRankMaxLeaves = None,
        max_bins: MaxNarrowBins = 255,
        order: Annotated[
            Literal["tree", "concave"],
            Doc(
                "How a tree's leaves rank: 'tree', from its top to its bottom; 'concave', by their "
                "share of positives, so that a poor first split costs less."
            ),
        ] = "concave",
        random_state: options.RandomState = 0,
    ) -> None:
        self.n_trees = n_trees
        self.max_features = max_features
        self.splitter = splitter
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.leafrank_depth = leafrank_depth
        self.leafrank_max_leaves = leafrank_max_leaves
        self.max_bins = max_bins
        self.order = order
        self.random_state = random_state

    def score_rows(self, X: Floats) -> Floats:
        """Score rows without any check; see `Ranker.score_rows`."""
        return self._grove.rank(X) + self.intercept_

    def takes_categories(self) -> bool:
        """Cuts take them."""
        return True

    @property
    def offset_(self) -> float:
        """The mean score of the rows that the trees were grown on."""
        return sum(path.mean for path in self._paths()) / self.n_trees + self.intercept_

    def contributions(self, X: Any) -> Floats:
        """Say how each row differs from the average one, feature by feature; see `TreeRank`.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            decision_function(X) is offset_ plus the sum of each row.
        """
        rows = self._checked_rows(X)
        parts = np.zeros(rows.shape)
        for path in self._paths():
            parts += path.contributions(rows)
        return parts / self.n_trees

    def _paths(self) -> Iterator[PathValues]:
        check_is_fitted(self)
        for tree in self.trees_:
            yield PathValues(tree, rank_leaves(tree, self.order))

    @property
    def feature_importances_(self) -> Floats:
        """Mean over the trees of I_j = Σ ΔAUC² over the cuts on each feature (§5.1 of the paper)."""
        return sum_gains(self.trees_, self.n_features_in_).squared

    @property
    def auc_gains_(self) -> Floats:
        """Mean over the trees of Σ ΔAUC over the cuts on each feature, in training AUC."""
        return sum_gains(self.trees_, self.n_features_in_).linear

    def structure(self) -> dict[str, Any]:
        """Describe the forest: of each tree its size and its training AUC."""
        return {
            "type": "forest of ranking trees",
            "oob_auc": None if math.isnan(self.oob_auc_) else self.oob_auc_,
            "intercept": self.intercept_,
            "trees": [
                {"leaves": tree.n_leaves, "depth": int(tree.depth.max()), "training_auc": tree.auc}
                for tree in self.trees_
            ],
        }

    @property
    def n_pieces(self) -> int:
        """Number of pieces that shares of a fit divide among them: the trees."""
        return self.n_trees

    def fit_share(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        first: int,
        last: int,
        callback: Callback | None = None,
    ) -> bytes:
        """Grow the trees from number `first` up to, without, `last`; see `core.shares`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        first, last : int
            0 ≤ first < last ≤ n_trees.
        callback : callable (step, of, info) -> None, optional
            As for `fit`, of the trees of this share; all are needed, so that `StopFit` goes through.

        Returns
        -------
        bytes

        Raises
        ------
        InvalidParameter
            A parameter breaks its rule, or first and last theirs.
        InvalidData
            As by `fit`.
        """
        own: Self = clone(self)
        sample = own._sample(*own._take_rows(X, y, sample_weight))
        if not 0 <= first < last <= self.n_trees:
            raise InvalidParameter(
                f"first and last must be 0 <= first < last <= n_trees ({self.n_trees}), "
                f"got {first} and {last}"
            )
        grown = []
        for each in own._grow(sample, range(first, last)):
            grown.append(each)
            (callback or ignore)(len(grown), last - first, {})
        arrays = write_share_of_trees(grown)
        return write_share(identify_fit(self, *sample[:3]), first, last, arrays)

    def join_shares(
        self, shares: Sequence[bytes], X: Any, y: Any, sample_weight: Any = None
    ) -> Self:
        """Put together the forest that `fit` would have grown on the same rows, bit for bit.

        Parameters
        ----------
        shares : sequence of bytes
            From `fit_share`, in any order; each tree in one of them.
        X, y, sample_weight
            As they were fitted on.

        Returns
        -------
        self

        Raises
        ------
        ArtifactError
            A share is damaged or of another fit, or a tree is missing or there twice.
        """
        sample = self._sample(*self._take_rows(X, y, sample_weight))
        trees: list[tuple[Tree, Integers]] = []
        for n_trees, arrays in read_shares(shares, identify_fit(self, *sample[:3]), self.n_trees):
            own = read_share_of_trees(arrays, sample.n_categories)
            if len(own) != n_trees:
                raise ArtifactError(f"n_nodes must hold {n_trees} trees, got {len(own)}")
            trees += own
        self._gather(sample, self._bag(sample).recall(trees), ignore)
        return self

    def _fit(
        self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        sample = self._sample(X, positive, weight)
        with closing(self._grow(sample, range(self.n_trees))) as grown:
            self._gather(sample, grown, callback)

    def _sample(self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats) -> Sample:
        return Sample(X, positive, weight, self._n_categories())

    def _bag(self, sample: Sample) -> Bag:
        return Bag(sample, self.random_state)

    def _grow(self, sample: Sample, numbers: range) -> Generator[Grown, None, None]:
        least_mass = self.min_samples_leaf * min(float(sample.weight.mean()), 1.0)
        depth = 1 if self.splitter == "axis" else self.leafrank_depth
        shape = Shape(depth, min(self.leafrank_max_leaves or 2**depth, 2**depth), least_mass)
        limits = Limits(self.max_depth, self.max_leaves, least_mass)
        table = code(sample, self.max_bins)
        n_drawn = max(1, round(self.max_features * table.n_features))
        return self._bag(sample).grow(numbers, table, limits, shape, n_drawn)

    def _gather(self, sample: Sample, grown: Iterable[Grown], callback: Callback) -> None:
        """Take the trees in order, and judge each row by those that did not see it."""
        _, positive, weight, _ = sample
        totals, counts = np.zeros((2, len(positive)))
        trees = []
        for tree, unseen, leaf in grown:
            trees.append(tree)
            totals[unseen] += rank_leaves(tree, self.order)[leaf]
            counts[unseen] += 1.0
            if callback is ignore:
                continue
            try:
                callback(len(trees), self.n_trees, _judge(positive, totals, counts, weight))
            except StopFit:
                if len(trees) < self.n_trees:
                    warn_stopped(len(trees), self.n_trees, "trees")
                    break
        self.oob_auc_ = _judge(positive, totals, counts, weight).get("oob_auc", math.nan)
        self._take(tuple(trees), 0.0)
        X = np.ascontiguousarray(sample.X)
        ranks = np.divide(totals, counts, out=self.score_rows(X), where=counts > 0)
        cut = youden_threshold(ranks, positive, weight)
        # without any tree that tells rows apart, the class with more weight
        more = weight[positive].sum() > weight[~positive].sum()
        self.intercept_ = -cut.value if cut is not None else (0.0 if more else -1.0)

    def _take(self, trees: tuple[Tree, ...], intercept: float) -> None:
        self.trees_, self.intercept_ = trees, intercept
        self._grove = _Grove(trees, self.order)

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        oob_auc = None if math.isnan(self.oob_auc_) else self.oob_auc_
        return write_trees(self.trees_), {"oob_auc": oob_auc, "intercept": self.intercept_}

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        trees = read_trees(arrays, self._n_categories())
        if not 1 <= len(trees) <= self.n_trees:
            raise ArtifactError(f"n_nodes must hold 1 to {self.n_trees} trees, got {len(trees)}")
        oob_auc, intercept = meta["oob_auc"], meta["intercept"]
        if oob_auc is not None and not (isinstance(oob_auc, float) and 0.0 <= oob_auc <= 1.0):
            raise ArtifactError(f"oob_auc must be from 0 to 1 or null, got {oob_auc!r}")
        if not isinstance(intercept, float) or not -1.0 <= intercept <= 0.0:
            raise ArtifactError(f"intercept must be from -1 to 0, got {intercept!r}")
        self.oob_auc_ = math.nan if oob_auc is None else oob_auc
        self._take(trees, intercept)


@dataclass(frozen=True)
class _Grove:
    """Trees that rank together."""

    trees: tuple[Tree, ...]
    order: str

    def __getstate__(self) -> dict[str, Any]:
        """Leave what is derived out of copies and pickles."""
        return {"trees": self.trees, "order": self.order}

    @cached_property
    def links(self) -> walking.Links:
        """All trees, linked for walking."""
        return walking.join([tree.prepared for tree in self.trees])

    @cached_property
    def ranks(self) -> Floats:
        """By node of the links: where a leaf stands, 0 for cuts."""
        ranks = np.zeros(len(self.links.feature))
        for tree, first in zip(self.trees, self.links.first_leaf.tolist(), strict=True):
            ranks[first : first + tree.n_leaves] = rank_leaves(tree, self.order)
        return ranks

    def rank(self, X: Floats) -> Floats:
        """Give each row's mean rank."""
        return walking.sum_values(X, self.links, self.ranks) / len(self.trees)


def _judge(
    positive: npt.NDArray[np.bool_], totals: Floats, counts: Floats, weight: Floats
) -> dict[str, float]:
    """Give the AUC of the mean ranks so far, of rows that some tree did not see."""
    known = counts > 0
    if not positive[known].any() or positive[known].all():
        return {}
    return {"oob_auc": auc(positive[known], totals[known] / counts[known], weight[known])}
