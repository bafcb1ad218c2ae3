"""TreeRank: a tree whose leaves, from top to bottom, form the ranking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from core.base.columns import ColumnTable
from core.base.ranker import (
    Callback,
    ContributionRanker,
    FitCost,
    Floats,
    PathEstimator,
    Ranker,
    StopFit,
    warn_stopped,
)
from core.base.state import Nested, Value
from core.base.target import check_class_weights, check_labels
from core.base.training import TrainingData
from core.classifiers import STACKS
from core.coding import youden_threshold
from core.coding.bins import MaxNarrowBins
from core.errors import InvalidData, InvalidParameter
from core.explain import PartialDependence, partial_dependence
from core.trees import predictor
from core.trees.coding import store_table

from . import description, options, pruning
from .classifiers import ClassifierRules, ClassifierSplitter, EstimatorRules, EstimatorSplitter
from .cuts import MAX_VISITED, CutRules, FeatureGains, mean_values, sum_gains
from .grid import GridRules, GridSplitter
from .growth import RankingTreeGrower, SplitterGrower, TreeLimits, TreeRows
from .leafrank import CutGrower, Shape
from .pruning import SCALE, PrunedTree, PruningPath
from .tree import Booleans, Integers, LeafOrder, RankingTree, Rules


@dataclass(kw_only=True, eq=False, repr=False)
class TreeRankParameters:
    """Parameters of `TreeRank`."""

    splitter: options.Splitting = "leafrank"
    max_depth: options.MaxDepth = 10
    max_leaves: options.MaxLeaves = None
    min_samples_leaf: options.MinSamplesLeaf = 20.0
    leafrank_depth: options.LeafRankDepth = 3
    leafrank_max_leaves: options.LeafRankMaxLeaves = None
    leafrank_pruning: options.LeafRankPruning = None
    grid_resolution: options.GridResolution = 3
    max_bins: MaxNarrowBins = 255
    pruning: options.Pruning = None
    leaf_penalty: options.LeafPenalty = 0.0
    penalty_scale: options.PenaltyScale = SCALE
    n_folds: options.Folds = 10
    validation_fraction: options.ValidationFraction = 0.25
    order: options.Order = "tree"
    random_state: options.RandomState = 0


class TreeRank(TreeRankParameters, ContributionRanker, PathEstimator):
    """A ranking tree: each split adds the most area under the ROC curve (TreeRank).

    Use it if you want to show how the list is ordered, as one tree of rules. For accuracy, use `TreeRankForest` or
    boosted trees.

    A node's cell C is split into a top part C' and a bottom part so that Λ = α(C) β(C') - β(C) α(C') is greatest. α and
    β are fractions of all negatives and of all positives. The leaves rank from the top of the tree to its bottom.

    Attributes
    ----------
    tree_ : RankingTree
        The tree after pruning.
    order_ : {"tree", "concave"}
        How the leaves are ordered.
    roc_knots_ : tuple of two ndarray of shape (n_leaves + 1,), float64
        FPR and TPR of the training rows at the knots of the curve, in ranking order.
    pruning_path_ : PruningPath
        For each λ of eq. 13: the number of leaves and the AUC of the best subtree of the grown tree, and its mean AUC
        on validation rows if there were any.

    Notes
    -----
    Scores are whole numbers. Neighbouring leaves differ by 1, and 0 is the threshold with the greatest TPR - FPR on the
    training rows. The order equals that of the scores of eq. 10, whose differences vanish in rounding beyond depth 53.
    `tree_.paper_scores()` returns those.

    Differences from the paper: the AUC in Fig. 2 sums Λ over the last level only; the correct value is ½ + ½ Σ Λ over
    all inner nodes. LeafRank may make a split without a gain, because the next one may gain, for example with an
    exclusive or. Missing values have their own bin and go to the side where they gain most, not to the mean of the node
    (§5).

    Time: O(n_features · n_samples · max_depth · leafrank_depth) after one sort of each column.

    References
    ----------
    S. Clémençon, M. Depecker and N. Vayatis, "Adaptive partitioning schemes for bipartite ranking",
    Machine Learning 83, 2011: Figs. 2, 4, 5 and 6; §4.1, §4.2, §5; eqs. 10, 12 and 13.

    Examples
    --------
    >>> import numpy as np
    >>> from core import TreeRank
    >>> X = np.arange(100.0).reshape(-1, 1)
    >>> y = (X[:, 0] // 25) % 2 == 1  # two quarters are positive, which no single cut separates
    >>> ranker = TreeRank(splitter="axis", min_samples_leaf=10).fit(X, y)
    >>> print(ranker.to_text())
    ranking tree of 4 leaves, training AUC 1.0000, 50 of 100 positive (50.0 %)
    ├─ x0 > 24: 50 of 75 positive (66.7 %)
    │  ├─ x0 <= 49: rank 1: 25 of 25 positive (100.0 %)
    │  └─ x0 > 49: 25 of 50 positive (50.0 %)
    │     ├─ x0 > 74: rank 2: 25 of 25 positive (100.0 %)
    │     └─ x0 <= 74: rank 3: 0 of 25 positive (0.0 %)
    └─ x0 <= 24: rank 4: 0 of 25 positive (0.0 %)
    <BLANKLINE>
    """

    keeps_when_stopped = True
    fit_cost = FitCost(0.5e-6)

    path_parameter = "leaf_penalty"

    tree_: Annotated[RankingTree, Nested()]
    order_: Annotated[LeafOrder, Value()]
    pruning_path_: Annotated[PruningPath, Nested()]
    _leaf_scores: Floats

    @property
    def roc_knots_(self) -> tuple[Floats, Floats]:
        """FPR and TPR at the knots of the training curve, from (0, 0) to (1, 1)."""
        check_is_fitted(self)
        return self.tree_.knots_along(self.tree_.ranking(self.order_))

    def score_rows(self, X: Floats) -> Floats:
        return self._leaf_scores[self.tree_.find_leaves(X)]

    def check_path_parameters(self) -> None:
        """Raise InvalidParameter for parameters with which `fit_path` cannot be used."""
        if self.pruning is not None:
            raise InvalidParameter(
                "pruning must be None if leaf_penalty is searched, because both prune the tree; got "
                f"{self.pruning!r}"
            )

    def takes_categories(self) -> bool:
        """Return True unless the splitter is your own estimator."""
        return isinstance(self.splitter, str)

    def prune(self, X: Any, y: Any, sample_weight: Any = None) -> "TreeRank":
        """Prune to the subtree that ranks a pruning sample best (eq. 12, Remark 10).

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            The pruning sample, preferably rows that the tree was not grown on.
        y : array-like of shape (n_samples,)
            Labels, of the same two values as in `fit`.
        sample_weight : array-like of shape (n_samples,), optional
            As for `fit`.

        Returns
        -------
        self

        Raises
        ------
        InvalidData
            The input breaks a rule of `fit`, or has other labels.
        """
        rows = self.checked_rows(X)
        classes, positive = check_labels(y, len(rows))
        if classes.tolist() != self.classes_.tolist():
            raise InvalidData(
                f"y must contain the labels of fit, {self.classes_.tolist()}, got {classes.tolist()}"
            )
        weight = check_class_weights(sample_weight, positive, classes)
        sample = TreeRows(rows, positive, weight, self._n_categories())
        chosen = pruning.choose_on(self.tree_, pruning.reweigh(self.tree_, sample))
        self._take(chosen.tree, chosen.path, self._order(chosen))
        return self

    @property
    def offset_(self) -> float:
        """The mean score of the training rows: `contributions` are relative to it."""
        return float(self._mean_scores()[0])

    def _contributions(self, X: Floats) -> Floats:
        """Return each feature's contribution to checked rows' scores; needs splitter 'leafrank' or 'axis'."""
        mean = self._mean_scores()
        parts = np.zeros(X.shape)
        predictor.add_parts(X, self.tree_.linked._replace(mean=mean), parts)
        return parts

    shapley_values = Ranker.shapley_values  # its contributions are of paths

    def divide_exactly(self, x: Floats, references: Floats, shares: Floats) -> Floats | None:
        if not isinstance(self.tree_.rules, CutRules):
            return None
        nodes = self.tree_.linked
        n_cuts = len(nodes.mean) - self.tree_.n_leaves
        nodes = nodes._replace(mean=np.append(np.zeros(n_cuts), self._leaf_scores))
        return predictor.mixed_shapley(x, references, shares, nodes, MAX_VISITED)

    def count_visited(self, n_references: int) -> int:
        if not isinstance(self.tree_.rules, CutRules):
            return 0
        visited = predictor.count_mixed(self.tree_.linked, self.n_features_in_, MAX_VISITED)
        return min(MAX_VISITED, n_references * visited)

    @property
    def feature_importances_(self) -> Floats:
        """I_j = Σ ΔAUC² over the splits on each feature (§5.1); only for splitters with thresholds."""
        return self._feature_gains().squared

    @property
    def auc_gains_(self) -> Floats:
        """Σ ΔAUC over the splits on each feature, in units of the training AUC."""
        return self._feature_gains().linear

    def partial_dependence(
        self,
        X: Any,
        features: Sequence[int | str],
        *,
        sample_weight: Any = None,
        n_points: int = 32,
    ) -> PartialDependence:
        """Return the mean scores of the rows of X with one or two features set to grid values (§5.2).

        `core.explain.partial_dependence` does this for any ranker.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows whose scores are averaged.
        features : sequence of int or str
            One or two features, by index or by name.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        n_points : int
            Number of grid values of a numeric feature.

        Returns
        -------
        core.explain.PartialDependence
        """
        return partial_dependence(self, X, features, sample_weight=sample_weight, n_points=n_points)

    def list_rules(self) -> list[dict[str, Any]]:
        """Return each leaf with the conditions on the path to it.

        Returns
        -------
        list of dict
            One entry per leaf, from the top of the list to its bottom; see `core.treerank.description.list_rules`.
        """
        return description.list_rules(self.named_tree())

    def to_text(self) -> str:
        """Draw the tree as indented lines of text.

        Returns
        -------
        str
        """
        return description.to_text(self.named_tree())

    def structure(self) -> dict[str, Any]:
        """Describe the tree: its nodes in preorder with their rules in words, and the path of pruned subtrees."""
        tree, path = self.tree_, self.pruning_path_
        steps = zip(*(column.tolist() for column in path), strict=True)
        return {
            "type": "ranking tree",
            "leaves": tree.n_leaves,
            "depth": int(tree.depth.max()),
            "order": self.order_,
            "training_auc": tree.auc,
            "pruning_path": [
                {
                    "penalty": penalty,
                    "leaves": leaves,
                    "training_auc": area,
                    "validation_auc": None if np.isnan(held_out) else held_out,
                }
                for penalty, leaves, area, held_out in steps
            ],
            "nodes": [self._describe(node) for node in range(tree.n_nodes)],
        }

    def _describe(self, node: int) -> dict[str, Any]:
        tree = self.tree_
        described = {
            "depth": int(tree.depth[node]),
            "k": int(tree.k[node]),
            "positive": float(tree.positive[node]),
            "negative": float(tree.negative[node]),
        }
        if tree.rule[node] < 0:
            return described | {"score": float(self._leaf_scores[tree.leaf_number[node]])}
        rule = tree.rules.describe(int(tree.rule[node]), self._feature_name, self.categories_)
        gain = {"auc_gain": float(tree.gain[node] / 2.0)}
        return described | gain | {"to_top": rule, "bottom": int(tree.bottom[node])}

    def named_tree(self) -> description.NamedTree:
        """Return the tree with the names of its features and categories.

        Returns
        -------
        NamedTree
            The tree, from which rules, texts and pictures are made.

        Raises
        ------
        NotFittedError
            If the ranker is not fitted.
        """
        check_is_fitted(self)
        return description.NamedTree(self.tree_, self.order_, self._feature_name, self.categories_)

    def _mean_scores(self) -> Floats:
        check_is_fitted(self)
        if not isinstance(self.tree_.rules, CutRules):
            raise InvalidParameter(
                f"contributions require splitter 'leafrank' or 'axis'; nodes are split by {self.splitter!r}"
            )
        return mean_values(self.tree_, self._leaf_scores)

    def _feature_gains(self) -> FeatureGains:
        if not isinstance(self.tree_.rules, CutRules):
            raise AttributeError(
                f"splits by {self.splitter!r} have no gain per feature; use "
                "core.explain.permutation_importance"
            )
        return sum_gains([self.tree_], self.n_features_in_)

    def reads_columns(self) -> str | None:
        splitter: Any = self.splitter
        if isinstance(splitter, str) and splitter in ("axis", "leafrank"):
            return None
        return f"splitter {splitter!r} reads the rows"

    def check_parameters(self) -> None:
        if self.pruning == "structural":
            pruning.check_splitter(self.splitter)
        if self.leafrank_pruning == "cv" and (self.pruning, self.splitter) != ("cv", "leafrank"):
            raise InvalidParameter(
                "leafrank_pruning='cv' requires pruning='cv' and splitter='leafrank', got "
                f"pruning={self.pruning!r} and splitter={self.splitter!r}"
            )
        if self.leaf_penalty and self.pruning is not None:
            raise InvalidParameter(
                f"leaf_penalty must be 0 unless pruning is None, got {self.leaf_penalty} with "
                f"pruning={self.pruning!r}"
            )
        if self.order == "validation" and self.pruning not in ("cv", "holdout"):
            raise InvalidParameter(
                "order must be 'tree' or 'concave' unless pruning holds out rows, got 'validation'"
            )

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        stored = None
        if isinstance(data.X, ColumnTable):
            most = self.max_bins, self.max_bins
            stored = store_table(data.X, data.weight, most, data.n_categories)
        sample = TreeRows(**vars(data), stored=stored)
        grower = self._grower(sample)
        limits = TreeLimits(self.max_depth, self.max_leaves, self._shape(sample).min_mass)
        growers: Sequence[RankingTreeGrower] = [grower]
        if self.leafrank_pruning == "cv" and isinstance(grower, CutGrower):
            growers = [grower.with_leaves(size) for size in grower.sizes()]
        per_grower = self.n_folds + 1 if self.pruning == "cv" else 1
        n_trees = per_grower * len(growers)
        stopped = False
        whole: list[RankingTree] = []  # the tree of all rows, by each grower

        def choose(g: int) -> PrunedTree:
            def grow(rows: Integers, number: int) -> RankingTree:
                def report(step: int, of: int, info: Mapping[str, float]) -> None:
                    nonlocal stopped
                    done, all_steps = (g * per_grower + number) * of + step, n_trees * of
                    try:
                        callback(done, all_steps, info)
                    except StopFit:
                        if done < all_steps:
                            stopped = True
                            warn_stopped(done, all_steps, "steps")
                            raise

                tree = growers[g].grow(rows, limits, report)
                if number == 0:
                    whole.append(tree)
                if stopped and per_grower > 1:  # some folds are missing
                    raise StopFit
                return tree

            return self._choose(sample, grow)

        choices: list[PrunedTree] = []
        try:
            for g in range(len(growers)):
                choices.append(choose(g))  # folds before a stop are kept
        except StopFit:
            if not choices:
                choices.append(_unpruned(whole[0]))
        # Of equal AUC over the folds the first: its cut trees are the smallest.
        chosen = max(choices, key=pruning.validation_auc)
        path_penalties = self._start_path()
        for penalty in path_penalties or (self.leaf_penalty,):
            tree = pruning.keep_best(chosen.tree, penalty)
            self._take(tree, chosen.path, self._order(chosen))
            if path_penalties:
                self._add_to_path()

    def _choose(self, sample: TreeRows, grow: pruning.Grow) -> PrunedTree:
        if self.pruning == "cv":
            return pruning.choose_by_folds(sample, grow, self.n_folds, self.random_state)
        if self.pruning == "holdout":
            return pruning.choose_on_held_out(
                sample, grow, self.validation_fraction, self.random_state
            )
        tree = grow(np.arange(len(sample.positive)), 0)
        if self.pruning == "structural":
            max_cuts = self._shape(sample).max_leaves - 1
            return pruning.choose_by_penalty(
                tree, self.penalty_scale, self.splitter, max_cuts, sample.n_categories
            )
        return _unpruned(tree)

    def _order(self, chosen: PrunedTree) -> LeafOrder:
        return chosen.order if self.order == "validation" else self.order

    def _take(self, tree: RankingTree, path: PruningPath, order: LeafOrder) -> None:
        self.tree_, self.pruning_path_, self.order_ = tree, path, order
        rank = np.empty(tree.n_leaves)
        rank[tree.ranking(order)] = np.arange(tree.n_leaves, 0, -1.0)
        self._leaf_scores = rank - _cut(rank, tree)

    def _shape(self, sample: TreeRows) -> Shape:
        depth = 1 if self.splitter == "axis" else self.leafrank_depth
        return Shape.of(depth, self.leafrank_max_leaves, self.min_samples_leaf, sample)

    def _grower(self, sample: TreeRows) -> RankingTreeGrower:
        splitter: Any = self.splitter
        if splitter in ("axis", "leafrank"):
            return CutGrower.of(sample, self.max_bins, self._shape(sample))
        if splitter == "grid":
            return SplitterGrower(sample, partial(GridSplitter, resolution=self.grid_resolution))
        if splitter in STACKS:
            make = partial(ClassifierSplitter, splitter, seed=self.random_state)
            return SplitterGrower(sample, make)
        return SplitterGrower(sample, partial(EstimatorSplitter, splitter))

    def _known_sizes(self) -> dict[str, Any]:
        splitter: Any = self.splitter
        rules: type[Rules] = EstimatorRules
        if splitter in ("axis", "leafrank"):
            rules = CutRules
        elif splitter == "grid":
            rules = GridRules
        elif splitter in STACKS:
            rules = ClassifierRules
        return super()._known_sizes() | {"rules": rules, "stack": STACKS.get(splitter)}

    def _restore(self) -> None:
        self._take(self.tree_, self.pruning_path_, self.order_)


def _unpruned(tree: RankingTree) -> PrunedTree:
    return PrunedTree(tree, pruning.trace_path(tree, pruning.critical_penalties(tree)), "tree")


def _cut(rank: Floats, tree: RankingTree) -> float:
    """Return the rank above which rows are predicted positive: the Youden point of the training curve."""
    masses = np.concatenate([tree.leaf_positive, tree.leaf_negative])
    positive: Booleans = np.arange(len(masses)) < tree.n_leaves
    threshold = youden_threshold(np.concatenate([rank, rank]), positive, masses)
    if threshold is None:  # one leaf: the class with more mass
        return 0.0 if tree.leaf_positive[0] > tree.leaf_negative[0] else 1.0
    return threshold.value
