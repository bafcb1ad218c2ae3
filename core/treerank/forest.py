"""A forest of ranking trees: each tree is grown on a bootstrap sample, each node split on some of the features."""

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self

import numba
import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le
from sklearn.utils.validation import check_is_fitted

from core.base.checkpoint import identify_fit, read_shares, write_share
from core.base.ranker import (
    Callback,
    ContributionRanker,
    FitCost,
    Floats,
    Ranker,
    StopFit,
    ignore,
    warn_stopped,
)
from core.base.state import Array, Indices, Nested, State, Totals, Value, pieces
from core.base.training import TrainingData
from core.coding import youden_threshold
from core.coding.bins import MaxNarrowBins
from core.coding.categories import effective_counts
from core.coding.threads import PARALLEL_CELLS
from core.errors import ArtifactError, InvalidParameter
from core.metrics import auc
from core.trees import predictor
from core.trees.predictor import Nodes

from . import options
from .cuts import MAX_VISITED, CutRules, link_all, mean_values, sum_gains
from .growth import TreeLimits, TreeRows, grow
from .leafrank import CodedSample, FeatureDraw, LeafRank, Shape, code_sample
from .tree import MAX_MASS, Booleans, Integers, RankingTree

MAX_TREES = 10_000


class BaggedTree(NamedTuple):
    """A tree of a forest, its out-of-bag rows, and the leaf of each of these."""

    tree: RankingTree
    unseen: Integers
    leaf: Integers


class BaggedGrower:
    """Grows the trees of a forest on rows drawn with replacement."""

    def __init__(self, sample: TreeRows, seed: int) -> None:
        self._X = np.ascontiguousarray(sample.X)
        self._weight = sample.weight
        self._seed = seed
        positive = sample.positive
        self._rows = np.concatenate([np.flatnonzero(positive), np.flatnonzero(~positive)])
        self._n_positives = int(positive.sum())

    def grow(
        self,
        numbers: range,
        coded: CodedSample,
        limits: TreeLimits,
        shape: Shape,
        n_drawn_features: int,
    ) -> Generator[BaggedTree, None, None]:
        weight = self._weight[self._rows]  # in the order of the coded table
        count = effective_counts(weight)
        n_features = coded.table.n_features

        def grow_one(number: int) -> BaggedTree:
            times, generator = self._draw(number)
            splitter = LeafRank(
                coded,
                np.flatnonzero(times),
                weight * times,
                count * times,
                shape,
                FeatureDraw(n_features, n_drawn_features, generator),
            )
            tree = grow(splitter, limits, ignore)
            unseen = self._rows[times == 0]
            leaf = np.empty(len(unseen), dtype=np.int64)
            for start in range(0, len(unseen), predictor.TASK_ROWS):  # a copy of few rows at a time
                piece = slice(start, start + predictor.TASK_ROWS)
                leaf[piece] = tree.find_leaves(self._X[unseen[piece]])
            return BaggedTree(tree, unseen, leaf)

        n_cells = len(weight) * n_features * len(numbers)
        n_threads = numba.get_num_threads()
        n_parallel = min(n_threads, len(numbers)) if n_cells >= PARALLEL_CELLS else 1
        # By default each new thread would start as many threads of numba's as there are cores.
        pool = ThreadPoolExecutor(
            n_parallel, initializer=numba.set_num_threads, initargs=(n_threads // n_parallel,)
        )
        try:
            yield from pool.map(grow_one, numbers)
        finally:  # also when a callback has stopped the fit
            pool.shutdown(cancel_futures=True)

    def recall(self, trees: Iterable[tuple[RankingTree, Integers]]) -> Iterator[BaggedTree]:
        """Yield restored trees of a forest, from number 0, together with their out-of-bag rows; see `grow`.

        ArtifactError: a tree comes with leaves that are not its own, or with too many or too few.
        """
        for number, (tree, leaf) in enumerate(trees):
            unseen = self._rows[self._draw(number)[0] == 0]
            if len(leaf) != len(unseen) or (leaf.size and leaf.max() >= tree.n_leaves):
                raise ArtifactError(
                    f"tree {number} must come with one of its {tree.n_leaves} leaves for each of "
                    f"{len(unseen)} rows, got {len(leaf)} leaves up to {leaf.max(initial=0)}"
                )
            yield BaggedTree(tree, unseen, leaf)

    def _draw(self, number: int) -> tuple[Integers, np.random.Generator]:
        key = np.array([self._seed, number], dtype=np.uint64)
        generator = np.random.Generator(np.random.Philox(key=key))
        m, n = self._n_positives, len(self._rows)
        drawn = np.concatenate([generator.integers(0, m, m), generator.integers(m, n, n - m)])
        return np.bincount(drawn, minlength=n), generator


def rank_leaves(tree: RankingTree, order: str) -> Floats:
    """Return the rank of each leaf: the fraction of training weight in lower leaves, plus half of its own."""
    best_first = tree.ranking(order)
    mass = (tree.leaf_positive + tree.leaf_negative)[best_first]
    below = np.cumsum(mass[::-1])[::-1] - mass
    ranks = np.empty(tree.n_leaves)
    ranks[best_first] = (below + 0.5 * mass) / mass.sum()
    return ranks


@dataclass(frozen=True, eq=False)
class Trees(State):
    """Several ranking trees concatenated, as artifacts store them."""

    n_nodes: Annotated[Integers, Array("n_trees"), Ge(1), Totals("n_all_nodes")]
    is_leaf: Annotated[Booleans, Array("n_all_nodes"), Totals("n_leaves")]
    leaf_positive: Annotated[Floats, Array("n_leaves"), Ge(0), Le(MAX_MASS)]
    leaf_negative: Annotated[Floats, Array("n_leaves"), Ge(0), Le(MAX_MASS)]
    rules: Annotated[CutRules, Nested(n_rules="n_all_nodes - n_leaves")]
    """Of all trees; see `RankingTree`."""

    @classmethod
    def join(cls, trees: Sequence[RankingTree]) -> "Trees":
        return cls(
            np.array([tree.n_nodes for tree in trees]),
            np.concatenate([tree.is_leaf for tree in trees]),
            np.concatenate([tree.leaf_positive for tree in trees]),
            np.concatenate([tree.leaf_negative for tree in trees]),
            CutRules.join([tree.rules for tree in trees if isinstance(tree.rules, CutRules)]),
        )

    def split(self) -> tuple[RankingTree, ...]:
        flags = pieces(self.is_leaf, self.n_nodes)
        n_leaves = np.array([each.sum() for each in flags], dtype=np.int64)
        positive = pieces(self.leaf_positive, n_leaves)
        negative = pieces(self.leaf_negative, n_leaves)
        rules = self.rules.split(self.n_nodes - n_leaves)
        trees = tuple(
            RankingTree(*each) for each in zip(flags, positive, negative, rules, strict=True)
        )
        for tree in trees:
            tree.check()
        return trees


@dataclass(frozen=True, eq=False)
class TreeShare(State):
    """A part of a forest's trees, grown separately, and the leaves of each tree's out-of-bag rows."""

    trees: Annotated[Trees, Nested(n_trees="n_trees")]
    n_unseen: Annotated[Integers, Array("n_trees"), Totals("n_all_unseen")]
    leaf: Annotated[Indices, Array("n_all_unseen")]
    """Shape (Σ n_unseen,), uint32."""

    @classmethod
    def join(cls, grown: Sequence[BaggedTree]) -> "TreeShare":
        return cls(
            Trees.join([each.tree for each in grown]),
            np.array([len(each.leaf) for each in grown]),
            np.concatenate([each.leaf for each in grown]).astype(np.uint32),
        )

    def split(self) -> list[tuple[RankingTree, Integers]]:
        """Return each tree with the leaves of its out-of-bag rows."""
        leaves = pieces(self.leaf.astype(np.int64), self.n_unseen)
        return list(zip(self.trees.split(), leaves, strict=True))


@dataclass(kw_only=True, eq=False, repr=False)
class TreeRankForestParameters:
    """Parameters of `TreeRankForest`."""

    n_trees: Annotated[int, Ge(1), Le(MAX_TREES), Doc("Number of trees.")] = 50
    max_features: Annotated[
        float,
        Gt(0),
        Le(1),
        Doc("Fraction of the features that each node may split on, at least one."),
    ] = 0.5
    splitter: Annotated[
        Literal["leafrank", "axis"],
        Doc(
            'How a node is split. "leafrank": by a small tree of thresholds, whose leaves are merged into two '
            'sides. "axis": by one threshold.'
        ),
    ] = "leafrank"
    max_depth: options.MaxDepth = 8
    max_leaves: options.MaxLeaves = None
    min_samples_leaf: options.MinSamplesLeaf = 5.0
    leafrank_depth: options.LeafRankDepth = 3
    leafrank_max_leaves: options.LeafRankMaxLeaves = None
    max_bins: MaxNarrowBins = 255
    order: Annotated[
        Literal["tree", "concave"],
        Doc(
            'Order of the leaves. "tree": from the top of the tree to its bottom. "concave": by their fraction of '
            "positives, so that a bad first split does less harm."
        ),
    ] = "concave"
    random_state: options.RandomState = 0


class TreeRankForest(TreeRankForestParameters, ContributionRanker):
    """A forest of ranking trees: the mean rank of a row over many trees (ranking forest).

    Use it for accuracy with little tuning; `oob_auc_` estimates the AUC without a validation part. If you need one
    readable tree, use `TreeRank`.

    Each tree is grown on rows drawn with replacement, separately for each class. Each node is split on features drawn
    without replacement. The rank of a row in a tree is the fraction of the tree's rows in leaves below its leaf, plus
    half of the fraction in its own leaf. The score is the mean rank minus a threshold.

    Attributes
    ----------
    trees_ : tuple of RankingTree
        The trees.
    oob_auc_ : float
        Out-of-bag AUC: each training row is ranked by the trees that were not grown on it. NaN if all such rows belong
        to one class.
    intercept_ : float
        Minus the threshold: the mean rank with the greatest TPR - FPR on those rows.

    Notes
    -----
    With `order="concave"` the leaves of a tree rank by their fraction of positives. A node that drew no useful feature
    splits badly, and everything below it is then ranked wrongly (§8), although the leaves themselves are good. On 10
    tables, the AUC was better on 7, by 0.003 on average, and at most 0.004 worse.

    A row that is drawn k times counts as k rows, so the rates of categories are shrunk less. If each counted once, the
    AUC of forests was 0.006 lower (mean of 9 tables of words). A column of identifiers is then partly memorised if
    `min_samples_leaf` is a row or two.

    Trees grow in parallel, as many as numba uses threads. The draws of a tree depend only on the seed and its number.
    So the forest depends neither on the threads nor on how it is split into shares (`fit_share`, `join_shares`; see
    `core.base.checkpoint`).

    Time: O(n_trees) times the work of one tree, on one coded table.

    References
    ----------
    S. Clémençon, M. Depecker and N. Vayatis, "Ranking forests", JMLR 14, 2013. Machine Learning 83,
    2011: §7 and §8, which ask for it.

    Examples
    --------
    >>> import numpy as np
    >>> from core import TreeRankForest
    >>> X = np.arange(200.0).reshape(-1, 2)
    >>> y = X[:, 0] >= 120
    >>> ranker = TreeRankForest(n_trees=5).fit(X, y)
    >>> ranker.predict([[20.0, 20.0], [180.0, 180.0]])
    array([False,  True])
    """

    keeps_when_stopped = True
    fit_cost = FitCost(80e-9, times="n_trees")

    trees_: tuple[RankingTree, ...]
    oob_auc_: Annotated[float, Value(nan_as_null=True), Ge(0.0), Le(1.0)]
    intercept_: Annotated[float, Value(), Ge(-1.0), Le(0.0)]
    _linked: "_LinkedTrees"

    def score_rows(self, X: Floats) -> Floats:
        return self._linked.rank(X) + self.intercept_

    def keep_length(self) -> bool:
        self.n_trees = len(self.trees_)
        return True

    def takes_categories(self) -> bool:
        return True

    @property
    def offset_(self) -> float:
        """Mean score of the rows that the trees were grown on; contributions are differences from it."""
        check_is_fitted(self)
        nodes = self._linked.nodes
        return float(self._linked.means[nodes.root].sum()) / len(self.trees_) + self.intercept_

    def _contributions(self, X: Floats) -> Floats:
        parts = np.zeros(X.shape)
        nodes = self._linked.nodes._replace(mean=self._linked.means)
        predictor.add_parts(X, nodes, parts)
        return parts / len(self.trees_)

    shapley_values = Ranker.shapley_values  # its contributions are of paths

    def divide_exactly(self, x: Floats, references: Floats, shares: Floats) -> Floats | None:
        parts = predictor.mixed_shapley(x, references, shares, self._linked.nodes, MAX_VISITED)
        return None if parts is None else parts / len(self.trees_)

    def count_visited(self, n_references: int) -> int:
        visited = predictor.count_mixed(self._linked.nodes, self.n_features_in_, MAX_VISITED)
        return min(MAX_VISITED, n_references * visited)

    @property
    def feature_importances_(self) -> Floats:
        """Mean over the trees of I_j = Σ ΔAUC² over the splits on each feature (§5.1 of the paper)."""
        return sum_gains(self.trees_, self.n_features_in_).squared

    @property
    def auc_gains_(self) -> Floats:
        """Mean over the trees of Σ ΔAUC over the splits on each feature, in units of the training AUC."""
        return sum_gains(self.trees_, self.n_features_in_).linear

    def structure(self) -> dict[str, Any]:
        """Describe the forest: the size and the training AUC of each tree."""
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
        """Number of pieces that a fit can be divided into: the trees."""
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
        """Grow some of the trees, numbers `first` to `last - 1`, as bytes for `join_shares`.

        Use it to grow one forest on several machines.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        first, last : int
            0 ≤ first < last ≤ n_trees.
        callback : callable (step, of, info) -> None, optional
            As for `fit`, called after each tree of this share. `StopFit` is not caught, because all trees are needed.

        Returns
        -------
        bytes

        Raises
        ------
        InvalidParameter
            A parameter breaks its rule, or `first` and `last` do.
        InvalidData
            As for `fit`.
        """
        own = self._unfitted()
        sample = TreeRows(**vars(own._training_data(X, y, sample_weight)))
        if not 0 <= first < last <= self.n_trees:
            raise InvalidParameter(
                f"first and last must be 0 <= first < last <= n_trees ({self.n_trees}), "
                f"got {first} and {last}"
            )
        grown = []
        for each in own._grow(sample, range(first, last)):
            grown.append(each)
            (callback or ignore)(len(grown), last - first, {})
        arrays = TreeShare.join(grown).arrays()
        return write_share(
            identify_fit(own, sample.X, sample.positive, sample.weight), first, last, arrays
        )

    def join_shares(
        self, shares: Sequence[bytes], X: Any, y: Any, sample_weight: Any = None
    ) -> Self:
        """Become the forest that `fit` would grow on the same rows, bit for bit.

        Parameters
        ----------
        shares : sequence of bytes
            Results of `fit_share` in any order. Each tree must be in one of them.
        X, y, sample_weight
            The same rows as in `fit_share`.

        Returns
        -------
        self

        Raises
        ------
        ArtifactError
            A share is damaged or belongs to another fit, or a tree is missing or occurs twice.
        """
        with self._refitting() as fresh:
            sample = TreeRows(**vars(fresh._training_data(X, y, sample_weight)))
            trees: list[tuple[RankingTree, Integers]] = []
            fit = identify_fit(fresh, sample.X, sample.positive, sample.weight)
            for n_trees, arrays in read_shares(shares, fit, fresh.n_trees):
                trees += TreeShare.from_arrays(
                    arrays, fresh._known_sizes() | {"n_trees": n_trees}
                ).split()
            fresh._gather(sample, fresh._bag(sample).recall(trees), ignore)
        return self

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        sample = TreeRows(**vars(data))
        with closing(self._grow(sample, range(self.n_trees))) as grown:
            self._gather(sample, grown, callback)

    def _bag(self, sample: TreeRows) -> BaggedGrower:
        return BaggedGrower(sample, self.random_state)

    def _grow(self, sample: TreeRows, numbers: range) -> Generator[BaggedTree, None, None]:
        depth = 1 if self.splitter == "axis" else self.leafrank_depth
        shape = Shape.of(depth, self.leafrank_max_leaves, self.min_samples_leaf, sample)
        limits = TreeLimits(self.max_depth, self.max_leaves, shape.min_mass)
        coded = code_sample(sample, self.max_bins)
        n_drawn = max(1, round(self.max_features * coded.table.n_features))
        return self._bag(sample).grow(numbers, coded, limits, shape, n_drawn)

    def _gather(self, sample: TreeRows, grown: Iterable[BaggedTree], callback: Callback) -> None:
        """Collect the trees in order, and rank each row by the trees for which it is out of bag."""
        positive, weight = sample.positive, sample.weight
        totals, counts = np.zeros((2, len(positive)))
        trees = []
        for tree, unseen, leaf in grown:
            trees.append(tree)
            totals[unseen] += rank_leaves(tree, self.order)[leaf]
            counts[unseen] += 1.0
            if callback is ignore:
                continue
            try:
                callback(len(trees), self.n_trees, _oob_metrics(positive, totals, counts, weight))
            except StopFit:
                if len(trees) < self.n_trees:
                    warn_stopped(len(trees), self.n_trees, "trees")
                    break
        self.oob_auc_ = _oob_metrics(positive, totals, counts, weight).get("oob_auc", math.nan)
        self._take(tuple(trees), 0.0)
        X = np.ascontiguousarray(sample.X)
        ranks = np.divide(totals, counts, out=self.score_rows(X), where=counts > 0)
        cut = youden_threshold(ranks, positive, weight)
        # if no tree separates any rows, predict the class with more weight
        more = weight[positive].sum() > weight[~positive].sum()
        self.intercept_ = -cut.value if cut is not None else (0.0 if more else -1.0)

    def _take(self, trees: tuple[RankingTree, ...], intercept: float) -> None:
        self.trees_, self.intercept_ = trees, intercept
        self._linked = _LinkedTrees(trees, self.order)

    @property
    def _kept(self) -> Annotated[Trees, Nested()]:
        return Trees.join(self.trees_)

    @_kept.setter
    def _kept(self, kept: Trees) -> None:
        self.trees_ = kept.split()

    def _restore(self) -> None:
        if not 1 <= len(self.trees_) <= self.n_trees:
            raise ArtifactError(
                f"n_nodes must contain 1 to {self.n_trees} trees, got {len(self.trees_)}"
            )
        self._take(self.trees_, self.intercept_)


@dataclass(frozen=True)
class _LinkedTrees:
    trees: tuple[RankingTree, ...]
    order: str

    def __getstate__(self) -> dict[str, Any]:
        return {"trees": self.trees, "order": self.order}

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes of all trees in one table; each leaf's value is its rank."""
        nodes = link_all(self.trees)
        ranks = np.zeros_like(nodes.mean)
        last = 0
        for tree in self.trees:
            last += len(tree.linked.mean)  # leaves come last in a tree
            ranks[last - tree.n_leaves : last] = rank_leaves(tree, self.order)
        return nodes._replace(mean=ranks)

    @cached_property
    def means(self) -> Floats:
        """The mean rank of the training rows at each node; see `mean_values`."""
        return np.concatenate(
            [mean_values(tree, rank_leaves(tree, self.order)) for tree in self.trees]
        )

    def rank(self, X: Floats) -> Floats:
        ranks = np.zeros(len(X))
        predictor.add_scores(X, self.nodes, 0, len(self.trees), ranks)
        return ranks / len(self.trees)


def _oob_metrics(
    positive: npt.NDArray[np.bool_], totals: Floats, counts: Floats, weight: Floats
) -> dict[str, float]:
    """Return the AUC of the current mean ranks over the out-of-bag rows; empty if these have only one class."""
    known = counts > 0
    if not positive[known].any() or positive[known].all():
        return {}
    return {"oob_auc": auc(positive[known], totals[known] / counts[known], weight[known])}
