"""Trees as weak rankers: their sum, the losses that they descend, their boosting algorithms, and the learner."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base.checkpoint import Resumable
from core.base.columns import ColumnTable
from core.base.mixed import MixedRows
from core.base.monotone import Directions, Verification, Violation
from core.base.ranker import Callback, Floats, ignore
from core.base.state import Array, Index, Known, Nested, Records, Totals
from core.base.table import Categories
from core.coding import Bins
from core.coding.categories import Words
from core.coding.crosses import COLUMNS, Crosses, find_crosses
from core.coding.rows import Division, positives_first, take_weights
from core.errors import ArtifactError
from core.trees.category_sets import NO_SET, Integers, Sets, check_sets, members_of
from core.trees.coding import (
    CATEGORY_ROWS,
    Layout,
    Table,
    code_table,
    lay_out_stored,
    store_table,
)
from core.trees.description import describe_leaves
from core.trees.grower import (
    MAX_LEAVES,
    MIN_LEAVES,
    Splits,
    TreeGrower,
    count_leaves,
)
from core.trees.options import LeafForm
from core.trees.order import (
    Relation,
    find_falls,
    find_regions,
    order_leaves,
    pool_ratios,
    raise_values,
)
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
from core.trees.shards import MakeTreeShards, ShardedGrower
from core.trees.splitting import BY_SUBSET, Objective, SplitCriterion
from core.trees.steps import TreeSteps
from core.trees.target_encoding import Encoded, encode

from .algorithms import RowLossAlgorithm
from .data import Rows
from .loop import (
    EPS_MASS,
    BoostingAlgorithm,
    BoostingHistory,
    Ensemble,
    LoopState,
    WeakLearner,
    WeakRanker,
)

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

# Pairs of leaves that break a monotone constraint, whose rows are scored to see whether the sum breaks it, too.
MAX_VIOLATIONS = 1000

# Greatest absolute value of a leaf: sums of greater ones would not be finite.
MAX_LEAF_VALUE = 1e300


@dataclass(frozen=True, slots=True)
class Tree:
    """A grown tree: h(x) is the full step of the leaf of x.

    Attributes
    ----------
    splits : ndarray of shape (n_splits,), `SPLITS`
        Their field `set` is not yet set.
    members : list of ndarray of shape (n_categories,), bool, or None
        For each split the categories above; None if it has a threshold.
    leaf_value, leaf_weight : ndarray of shape (n_splits + 1,), float64
        See `TreeSum`.
    n_categories : ndarray of shape (n_features,), int64
    """

    splits: npt.NDArray[np.void]
    members: list[npt.NDArray[np.bool_] | None]
    leaf_value: Floats
    leaf_weight: Floats
    n_categories: Integers

    # A tree moves more than two groups of rows, so that these have no meaning.
    d_plus: ClassVar[float] = math.nan
    d_minus: ClassVar[float] = math.nan

    def values(self, X: Floats) -> Floats:
        """Return h(x) of each row."""
        return TreeSum.of([self], [1.0], 0.0, self.n_categories).score(X, 0.0)


@dataclass(frozen=True)
class TreeSum(Ensemble):
    """constant + Σ_t the value of the leaf of tree t that holds x.

    Splits are in the order of growth: split s of a tree, counted from 0, splits one of the leaves 0 to s and makes leaf
    s + 1. Any such list is a tree, so that a stored one need not be searched for loops.

    Attributes
    ----------
    rounds : ndarray of shape (n_trees,), `ROUND`
    splits : ndarray of shape (n_splits,), `SPLITS`
        Splits of all trees, one tree after the other.
    leaf_value : ndarray of shape (n_splits + n_trees,), float64
        alpha times the full step of each leaf.
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
    leaf_value: Annotated[Floats, Array("n_all_leaves"), Ge(-MAX_LEAF_VALUE), Le(MAX_LEAF_VALUE)]
    leaf_weight: Annotated[Floats, Array("n_all_leaves"), Ge(0.0), Le(MAX_LEAF_VALUE)]
    start: Annotated[Floats, Array(1, name="constant"), Ge(-MAX_LEAF_VALUE), Le(MAX_LEAF_VALUE)]
    sets: Annotated[Words, Array("n_words")]

    @classmethod
    def of(
        cls,
        trees: Sequence[Tree],
        alphas: Sequence[float],
        constant: float,
        n_categories: Integers,
    ) -> "TreeSum":
        """Return the sum of trees, each times its alpha."""
        splits = np.concatenate([np.empty(0, dtype=SPLITS), *(tree.splits for tree in trees)])
        members = [category_mask for tree in trees for category_mask in tree.members]
        sets = Sets()
        splits["set"] = [
            sets.add(feature, category_mask)
            for feature, category_mask in zip(splits["feature"].tolist(), members, strict=True)
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
        return self.constant + float(self.nodes.mean[self.nodes.root].sum())

    @cached_property
    def nodes(self) -> Nodes:
        """The trees as linked nodes, for few rows; threads share them, none writes."""
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
        """The trees with coded thresholds, for many rows; None if there are too many codes."""
        return bin_trees(
            self.rounds["n_leaves"], self.splits, self.leaf_value, self.sets, self.n_categories
        )

    def score(self, X: Floats, intercept: float) -> Floats:
        """Return intercept + constant + Σ of the trees for each row, without checks; O(n_rows · n_trees · depth).

        The score of a row does not depend on the other rows: few rows go from node to node, many are coded and sent
        through the trees together (`core.trees.predictor`), and leaf values are added in the same order.
        """
        scores = np.full(len(X), intercept + self.constant)
        many = len(X) >= MIN_CODED_ROWS and len(self.rounds) >= MIN_CODED_TREES
        binned = self._binned if many else None
        if binned is None:
            add_scores(X, self.nodes, 0, len(self.rounds), scores)
        else:
            binned.add_scores(X, scores)
        return scores

    def score_mixed(self, mixed: MixedRows, intercept: float) -> Floats:
        """Return the score of each mixed row: each tree is walked once for a pair; see `add_mixed_scores`."""
        scores = np.zeros(mixed.start[-1])
        add_mixed_scores(mixed, self.nodes, scores)
        return scores + (intercept + self.constant)

    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sum of the first 1, 2, ... trees for each row; each array is new."""
        scores = np.full(len(X), self.constant)
        for t in range(len(self.rounds)):
            scores = scores.copy()
            add_scores(X, self.nodes, t, t + 1, scores)
            yield scores

    def contributions(self, X: Floats) -> Floats:
        """Return the sum of each row, less `mean`, divided among the features on its paths, in the shape of X.

        From a node to its child the mean of the training rows changes; the feature of the node gets that change
        (Saabas 2014). The parts add up, but unlike Shapley values they depend on the order of the splits.
        """
        parts = np.zeros(X.shape)
        add_parts(X, self.nodes, parts)
        return parts

    @cached_property
    def cover(self) -> Floats:
        """The mass of the training rows in each node."""
        return cover_nodes(self.nodes, self.leaf_weight)

    def shapley_values(self, X: Floats) -> Floats:
        """Return the Shapley values of each row's features, in the shape of X; see `add_shapley`."""
        parts = np.zeros(X.shape)
        add_shapley(X, self.nodes, self.cover, parts)
        return parts

    def count_shapley_steps(self) -> int:
        """Return the most steps that the Shapley values of one row take."""
        return count_shapley_steps(self.nodes, len(self.n_categories))

    def walk_monotone(self, directions: Directions) -> Verification:
        """Compare the leaves of each tree; see `Ensemble.walk_monotone`."""
        compared = 0
        violations: list[Violation] = []
        for t, (splits, leaves) in enumerate(self._trees()):
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
        return Verification(compared, violations, is_sum=True)

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Describe each tree by its leaves: a sentence and the value that it adds, greatest first."""
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
        """Return the trees."""
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
        """Yield the splits of each tree, and the range of its leaves."""
        stops = np.cumsum(self.rounds["n_leaves"]).tolist()
        for t, (start, stop) in enumerate(pairwise([0, *stops])):
            yield self.splits[start - t : stop - t - 1], slice(start, stop)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], known: Known, meta: Known | None = None
    ) -> Self:
        """Read trees; in artifacts of trees with at most 256 leaves the leaf numbers may be uint8."""
        leaf = arrays["split_leaf"]
        if leaf.dtype == np.uint8:
            arrays = {**arrays, "split_leaf": leaf.astype(np.uint16)}
        return super().from_arrays(arrays, known, meta)

    def check(self) -> None:
        """Raise ArtifactError for splits that make no trees."""
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
    """A sum of trees that read crosses of categorical features as further columns.

    Attributes
    ----------
    crosses : Crosses
    trees : TreeSum
        Its features are those of the rows, then the columns of the crosses.
    """

    type: ClassVar[str] = "trees"

    crosses: Annotated[Crosses, Nested()]
    trees: Annotated[TreeSum, Nested()]

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], known: Known, meta: Known | None = None
    ) -> Self:
        """Read the crosses, then trees on their columns too; see `State.from_arrays`."""
        crosses = Crosses.from_arrays(arrays, known, meta)
        return cls(crosses, TreeSum.from_arrays(arrays, crosses.extend_known(known), meta))

    @property
    def rounds(self) -> npt.NDArray[np.void]:  # type: ignore[override]
        """The rounds of the trees."""
        return self.trees.rounds

    @property
    def constant(self) -> float:
        """What the sum gives to every row alike."""
        return self.trees.constant

    @property
    def mean(self) -> float:
        """The sum's weighted mean over the rows that it was fitted on."""
        return self.trees.mean

    def score(self, X: Floats, intercept: float) -> Floats:
        """Return intercept + the sum of each row; see `TreeSum.score`."""
        return self.trees.score(self.crosses.extend(X), intercept)

    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sum of the first 1, 2, ... trees for each row."""
        return self.trees.staged(self.crosses.extend(X))

    def contributions(self, X: Floats) -> Floats:
        """Return the parts of `TreeSum.contributions`, a cross's divided equally between its two features."""
        return self.crosses.fold(self.trees.contributions(self.crosses.extend(X)))

    def shapley_values(self, X: Floats) -> Floats:
        """Return Shapley values among features and crosses, a cross's divided equally between its two features."""
        return self.crosses.fold(self.trees.shapley_values(self.crosses.extend(X)))

    def count_shapley_steps(self) -> int:
        """Return the most steps that the Shapley values of one row take."""
        return self.trees.count_shapley_steps()

    def walk_monotone(self, directions: Directions) -> Verification:
        """Compare the leaves of each tree; a constrained feature of a cross that trees read is a violation."""
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
        """Describe each tree by its leaves, and say which features are crossed."""
        crosses = self.crosses
        of_columns = categories + (None,) * crosses.n_columns
        described = self.trees.describe(lambda column: crosses.name(column, name), of_columns)
        return {**described, "crosses": crosses.describe(name)}

    def weak_rankers(self) -> list[Tree]:
        """Return the trees, which read rows that are extended by the crosses' columns."""
        return self.trees.weak_rankers()


# Gain of the best cut of many categories that are noise, as a fraction of the gain if each were on its own: the part of
# the variance of a normal variable that its sign explains.
SORTED_NOISE_GAIN = 2.0 / math.pi

# Minimum mass of a leaf, in rows, if none is given: twenty, as is usual;
DEFAULT_LEAF_ROWS = 20.0
# and the rows that are added to it if no smoothing is given.
DEFAULT_SMOOTHING = 1.0
# From as many rows on, a row of the larger class counting as one of the smaller, leaves may be smaller if they are
# smoothed more. Chosen on real tables; those of fewer rows have a lower AUC with it.
MANY_ROWS = 2000.0
SMALL_LEAF_ROWS = 5.0
SMALL_LEAF_SMOOTHING = {"pairs": 5.0, "logistic": 10.0}  # by the loss
# but at most this fraction of all mass: with few positives, whose mean mass is great, twenty rows may be too much.
MAX_LEAF_FRACTION = 0.1

# Rows, divided among the classes as in the leaf, that are added to each category before they are sorted. Chosen, as
# CATEGORY_ROWS, on real tables with thousands of words.
CATEGORY_SMOOTHING = 10.0

# Fraction by which minimum masses are lowered: equal rows must not fail by rounding.
EPS_ROUNDING = 1e-9

# Greatest step of a leaf in log odds: the upper of the two bounds of a working response in the paper of LogitBoost.
MAX_LOGISTIC_STEP = 4.0


class Leaves(NamedTuple):
    """The full step of each leaf of a tree, and its sample weight as a number of rows."""

    values: Floats
    weights: Floats


class TreeLoss(Resumable, ABC):
    """The loss of a sum of trees, as weights of rows, which the grower holds.

    It writes the weight (or gradient and Hessian) of each row by which the next tree is grown, computes the step of
    each leaf, and takes the step.

    Parameters
    ----------
    grower : TreeGrower
    weight : ndarray of shape (n_rows,), float64
        Sample weights, above 0, positives first.
    smoothing : float
        Rows of mean mass that are added to those of a leaf.
    small_leaf_smoothing : float or None
        Smoothing in place of the other if there are `MANY_ROWS`; then leaves may be small. None: never.

    Attributes
    ----------
    start : float
        The score of every row before the first tree.
    log_f_plus, log_f_minus : float
        Logarithms of the parts of positives and of negatives in the loss.
    """

    start: float = 0.0
    log_f_plus: float
    log_f_minus: float

    def __init__(
        self,
        grower: TreeGrower,
        weight: Floats,
        smoothing: float,
        small_leaf_smoothing: float | None = None,
    ) -> None:
        self._grower = grower
        self._smoothing, self._leaf_rows = smoothing, DEFAULT_LEAF_ROWS
        if small_leaf_smoothing is not None and _count_rows(grower, weight) >= MANY_ROWS:
            self._smoothing, self._leaf_rows = small_leaf_smoothing, SMALL_LEAF_ROWS
        self._weights = grower.weights
        self._unit = 1.0  # mean mass of a row
        self._steps = TreeSteps(grower)
        grower.send_to_root()

    @abstractmethod
    def criterion(self, min_samples_leaf: float | None, category_penalty: float) -> SplitCriterion:
        """Return the criterion of splits under the present weights."""

    @abstractmethod
    def best_step(self, splits: Splits, relation: Relation | None = None) -> Leaves:
        """Return the best step of each leaf, or the best steps in the order that monotone constraints ask for."""

    @abstractmethod
    def update(self, values: Floats) -> None:
        """Let the scores grow by values[leaf], for the leaves of the last tree."""

    def _split_criterion(
        self,
        objective: Objective,
        push: float,
        min_samples_leaf: float | None,
        total: float,
        penalty: float,
    ) -> SplitCriterion:
        """Return the criterion of splits; `total` is the mass of all rows."""
        unit = self._unit
        least = min(self._leaf_rows * unit, MAX_LEAF_FRACTION * total)
        if min_samples_leaf is not None:
            least = min_samples_leaf * unit
        least *= 1.0 - EPS_ROUNDING
        category_mass = min(CATEGORY_ROWS * unit * (1.0 - EPS_ROUNDING), least)
        smoothing, category_smoothing = self._smoothing * unit, CATEGORY_SMOOTHING * unit
        return SplitCriterion(
            int(objective), push, smoothing, least, penalty, category_mass, category_smoothing
        )


def _count_rows(grower: TreeGrower, weight: Floats) -> float:
    """Return twice the harmonic mean of the classes' numbers of rows: all rows if the classes are equal."""
    n = grower.division.count_rows(weight).tolist()
    return float(4.0 / (1.0 / n[0] + 1.0 / n[1]))


class PairLoss(TreeLoss):
    """The exponential loss of pairs, and the p-norm push.

    F₊^r Σ_k w_k e^{r f(x_k)} with F₊ = Σ_i w_i e^{-f(x_i)} over positives i and negatives k. For
    r = 1 it is RankBoost's F̃, the sum over all pairs of w_i w_k e^{-(f(x_i) - f(x_k))}; a greater r
    lets the negatives that stand highest weigh more. The weights of each class sum to 1.

    Parameters
    ----------
    grower : TreeGrower
    weight : ndarray of shape (n_rows,), float64
        Sample weights, above 0.
    leaf : {"closed", "newton"}
        The step of a leaf: to the minimum of the loss, ln(P/N) / (1 + r), or a Newton step, (P - N) / (P + rN).
    smoothing : float
        κ: mass added to P and to N (closed) or to the denominator (newton), in rows of mean mass,
        u = ½(1/ESS₊ + 1/ESS₋), where ESS = (Σv)²/Σv² is the number of rows that the weights v of a
        class amount to.
    push : float
        r, at least 1.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: eq. 1, Corollary 13.
    C. Rudin, "The P-Norm Push", JMLR 10, 2009.
    """

    changing: ClassVar[tuple[str, ...]] = ("_steps", "_unit", "log_f_plus", "log_f_minus")

    def __init__(
        self,
        grower: TreeGrower,
        weight: Floats,
        *,
        leaf: LeafForm,
        smoothing: float,
        push: float,
        sizes_leaves: bool = False,
    ) -> None:
        small = SMALL_LEAF_SMOOTHING["pairs"] if sizes_leaves else None
        super().__init__(grower, weight, smoothing, small)
        self._leaf = leaf
        self._push = push
        totals = grower.division.sum_classes(weight)
        self.log_f_plus, self.log_f_minus = np.log(totals).tolist()
        grower.start_weights(weight)
        self._rescale(1.0 / totals[:, None])

    def criterion(self, min_samples_leaf: float | None, category_penalty: float) -> SplitCriterion:
        """Return the criterion of splits under the present weights."""
        if self._leaf == "newton":
            objective = Objective.NEWTON
        else:
            objective = Objective.CLOSED if self._push == 1.0 else Objective.PUSH
        # For a category without meaning, of mass m in each class, p - q has the variance 2 m unit;
        # half the gain's second derivative there turns it into an expected gain.
        noise = 2.0 * self._unit / (1.0 + self._push)
        if self._leaf == "closed":
            noise *= 0.5 * self._push / (1.0 + self._push)
        penalty = category_penalty * SORTED_NOISE_GAIN * noise
        return self._split_criterion(objective, self._push, min_samples_leaf, 2.0, penalty)

    def best_step(self, splits: Splits, relation: Relation | None = None) -> Leaves:
        """Return the best step of each leaf; see `TreeLoss.best_step`."""
        sums = splits.sums
        self._totals = sums[:2].sum(axis=1, keepdims=True)
        p, q = self._masses = sums[:2] / self._totals
        smoothing = self._smoothing * self._unit
        if self._leaf == "newton":
            values = pool_ratios(p - q, p + self._push * q + smoothing, relation)
        else:
            smoothing = max(smoothing, EPS_MASS)
            ratios = pool_ratios(p + smoothing, q + smoothing, relation)
            values = np.log(ratios) / (1.0 + self._push)
        return Leaves(values, sums[2])

    def update(self, values: Floats) -> None:
        """Let the scores grow by values[leaf], for the leaves of the last tree."""
        factors = np.exp([-values, self._push * values])
        shrink = (self._masses * factors).sum(axis=1, keepdims=True)
        grow_p, grow_q = np.log(shrink[:, 0]).tolist()
        self.log_f_plus += grow_p
        self.log_f_minus += grow_q
        factors /= self._totals * shrink
        self._steps.add(factors)
        self._rescale(factors)

    def _rescale(self, factors: Floats) -> None:
        """Multiply the weights by factors[class, leaf]; then each class must sum to 1."""
        self._unit = 0.5 * self._grower.rescale(factors)


def bounded_steps(
    up: Floats, down: Floats, curvature: Floats, smoothing: float, relation: Relation | None
) -> Floats:
    """Return Newton's steps of leaves on the logistic loss, bounded so that no fraction of them raises the loss.

    Parameters
    ----------
    up, down : ndarray of shape (n_leaves,), float64
        A, the sum of w_i (1 - p_i) over the positives of a leaf, and B, that of w_i p_i over its negatives.
    curvature : ndarray of shape (n_leaves,), float64
        H, the sum of w_i p_i (1 - p_i) over both.
    smoothing : float
        λ, at least 0.
    relation : Relation or None
        The order that monotone constraints ask for.

    Returns
    -------
    ndarray of shape (n_leaves,), float64
        In log odds.

    Notes
    -----
    As ln(1 + x) <= x, a step s changes the loss of a leaf by at most

        A (e^{-s} - 1) + B (e^s - 1),

    which is at most 0 from s = 0 to ln(A/B). Newton's step (A - B)/(H + λ) may lie far beyond where positives are rare:
    it ends at ln((A + λ)/(B + λ)), which is nearer to 0, and at ± `MAX_LOGISTIC_STEP`.

    With an order both are isotonic regressions. Up to the second one the sum over leaves of what is above is at most 0,
    too, as long as leaves with one value of it move alike. If Newton's steps move them apart and raise the sum above 0,
    the second one is the step.

    References
    ----------
    J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical view of
    boosting", Annals of Statistics 28(2), 2000: LogitBoost bounds its working response.

    M. Collins, R. Schapire and Y. Singer, "Logistic regression, AdaBoost and Bregman distances", Machine Learning 48,
    2002: the bound of the loss.
    """
    smoothing = max(smoothing, EPS_MASS * float((up + down).sum()), np.finfo(float).tiny)
    newton = pool_ratios(up - down, curvature + smoothing, relation)
    bound = np.log(pool_ratios(up + smoothing, down + smoothing, relation))
    bound = bound.clip(-MAX_LOGISTIC_STEP, MAX_LOGISTIC_STEP)
    steps = newton.clip(np.minimum(bound, 0.0), np.maximum(bound, 0.0))
    if relation is not None and (up * np.expm1(-steps) + down * np.expm1(steps)).sum() > 0.0:
        return bound
    return steps


class LogisticLoss(TreeLoss):
    """The logistic loss, Σ w_i ln(1 + e^{-y_i f(x_i)}), by bounded Newton steps from the classes' log odds on.

    Parameters
    ----------
    grower : TreeGrower
        Its weights are the gradient, towards higher scores, and the Hessian.
    weight : ndarray of shape (n_rows,), float64
        Sample weights, above 0.
    smoothing : float
        κ: rows whose Hessian is added to each leaf. That of one row is u = ¼ Σh (1/ESS₊ + 1/ESS₋), where
        ESS = (Σh)²/Σh² is the number of rows that the Hessians h of a class amount to: the mean Hessian if the classes
        are alike; more if one is rare, so that κ rows outweigh its few rows, too.

    References
    ----------
    J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical view of
    boosting", Annals of Statistics 28(2), 2000: LogitBoost (Algorithm 3).
    """

    changing = ("_steps", "_curvature", "_unit", "log_f_plus", "log_f_minus")

    def __init__(
        self, grower: TreeGrower, weight: Floats, *, smoothing: float, sizes_leaves: bool = False
    ) -> None:
        small = SMALL_LEAF_SMOOTHING["logistic"] if sizes_leaves else None
        super().__init__(grower, weight, smoothing, small)
        positives, negatives = grower.division.sum_classes(weight)
        self.start = float(np.log(positives / negatives))
        grower.start_scores(self.start)
        self._step(np.zeros(1))

    def criterion(self, min_samples_leaf: float | None, category_penalty: float) -> SplitCriterion:
        """Return the criterion of splits under the present weights."""
        # For a category without meaning G²/H is 1 on average, since H is the variance of the labels.
        penalty = category_penalty * SORTED_NOISE_GAIN
        return self._split_criterion(
            Objective.GRADIENT, 1.0, min_samples_leaf, self._curvature, penalty
        )

    def best_step(self, splits: Splits, relation: Relation | None = None) -> Leaves:
        """Return the best step of each leaf; see `TreeLoss.best_step`."""
        up, down, curvature, sample_weight = splits.sums
        smoothing = self._smoothing * self._unit
        values = bounded_steps(up, -down, curvature, smoothing, relation)
        return Leaves(values, sample_weight)

    def update(self, values: Floats) -> None:
        """Let the scores grow by values[leaf], for the leaves of the last tree."""
        self._steps.add(values[None])
        self._step(values)

    def _step(self, values: Floats) -> None:
        loss, curvature, squares = self._grower.step(values).tolist()
        losses = np.maximum(loss, np.finfo(float).tiny)
        log_losses = np.log(losses) + math.log(self._grower.division.row_weight)
        self.log_f_plus, self.log_f_minus = log_losses.tolist()
        self._curvature = sum(curvature)
        self._unit = 0.0
        for of_class, square in zip(curvature, squares, strict=True):
            if square > 0.0:
                self._unit += 0.25 * self._curvature * (square / of_class / of_class)


class TreeAlgorithm(BoostingAlgorithm):
    """An algorithm whose loss trees descend: the score grows by the learning rate times the best step of each leaf.

    Attributes
    ----------
    n_weights : int
        1: the loss has one weight per row; 2: gradient and Hessian.
    """

    n_weights: ClassVar[int]

    @abstractmethod
    def make_loss(self, grower: TreeGrower, weight: Floats) -> TreeLoss:
        """Return the loss of rows, positives first, before the first tree."""

    def step(self, weak_ranker: WeakRanker, state: LoopState) -> float:
        """Return the learning rate: the fraction of the full step."""
        return self.learning_rate


@dataclass(kw_only=True)
class RankingTreeAlgorithm(TreeAlgorithm):
    """RankBoost on trees; for the parameters see `PairLoss`."""

    n_weights = 1

    leaf: LeafForm
    push: float
    sizes_leaves: bool = False

    def make_loss(self, grower: TreeGrower, weight: Floats) -> TreeLoss:
        """Return the loss at f = 0 of rows, positives first."""
        return PairLoss(
            grower,
            weight,
            leaf=self.leaf,
            smoothing=self.smoothing,
            push=self.push,
            sizes_leaves=self.sizes_leaves,
        )

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Return F₊^r Σ_k w_k e^{r f(x_k)}; without a push, r = 1, it is F̃."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.push * log_f[0] + log_f[1]))

    def intercept(self, log_f: Floats) -> float:
        """Return ½ ln(F₊/F₋), by Corollary 13; with a push the difference of the logarithms over 1 + r."""
        return float(log_f[0] - log_f[1]) / (1.0 + self.push)


@dataclass(kw_only=True)
class LogisticAlgorithm(TreeAlgorithm, RowLossAlgorithm):
    """LogitBoost on trees: the parts of the classes in the logistic loss replace F₊ and F₋; scores are log odds."""

    n_weights = 2

    sizes_leaves: bool = False

    def make_loss(self, grower: TreeGrower, weight: Floats) -> TreeLoss:
        """Return the loss of rows, positives first; all scores are the log odds of the classes."""
        return LogisticLoss(
            grower, weight, smoothing=self.smoothing, sizes_leaves=self.sizes_leaves
        )


class TreeLearner(WeakLearner):
    """The training rows, their weights, and the growth of the next tree.

    Its parameters are those of `core.trees.options`; its algorithm is a `TreeAlgorithm`. The callback is called while
    crosses are sought, as if that were step 0.

    Notes
    -----
    A round is O(n_features · n_drawn · depth + n_rows · n_leaves), where n_drawn is the number of
    rows that the tree is grown on. Memory per row: the codes, row by row, and 17 bytes; 25 while they are laid out.
    Before, each cross takes 32 bytes, and each feature 8: its numbers are copied beside those of the crosses.
    """

    ensemble: type[Ensemble] = TreeSum
    reads_columns = True
    reads_shards = True
    changing = ("_loss", "_round")
    encodes_targets: bool = True
    """Whether the parameter `target_encoding` is used."""

    def __init__(
        self, parameters: Any, algorithm: Any, data: Rows, callback: Callback = ignore
    ) -> None:
        X, positive, weight, self._n_categories, group = data
        self._parameters = given = parameters
        rows, n_positives = positives_first(positive)
        encoding = given.target_encoding if self.encodes_targets else None
        encoded = encode(
            X, positive, weight, self._n_categories, encoding, given.random_state, group
        )
        self._directions: Directions | None = parameters.find_directions()
        self._crosses: Crosses | None = None
        self.ensemble = self.ensemble_of(given)
        if getattr(given, "crosses", 0):
            encoded = self._add_crosses(encoded, data, callback)
        coding = weight, (given.max_bins, given.max_categories), encoded.n_categories
        if isinstance(X, ColumnTable):
            self._stored = store_table(X, *coding)
        read = encoded.X if self._stored is None else self._stored
        placement = X.placement if isinstance(X, ColumnTable) else None
        self._bins: Bins
        layout: Layout
        if placement is None:
            self._bins, layout = code_table(read, rows, n_positives, *coding)
        else:
            assert self._stored is not None
            self._bins, layout = self._stored.bins, lay_out_stored(self._stored, len(rows))
        self._encoded = encoded._replace(X=np.empty((0, 0)))
        if self._directions is not None:
            layout.constrain(self._directions[encoded.feature[: layout.n_features]])
        max_leaves = given.max_leaves
        if given.bounds_leaves and max_leaves is not None:
            max_leaves = min(max_leaves, max(count_leaves(layout), MIN_LEAVES))
        by_row, weight = weight, take_weights(weight, rows)
        division = Division.of(weight, n_positives, rows)
        shape = algorithm.n_weights, given.max_depth, max_leaves
        self._grower: TreeGrower
        if isinstance(layout, Table):
            folder = X.folder if isinstance(X, ColumnTable) else None
            # The list of rows is not needed any more: the grower may use its memory.
            self._grower = TreeGrower(
                layout, weight, *shape, rows, division=division, folder=folder
            )
        else:
            assert placement is not None
            assert self._stored is not None
            make = MakeTreeShards(layout, division, *shape)
            pieces = list(self._stored.pieces(positive, by_row))
            shards = placement.place(make, pieces, self._stored.read, is_joint=True)
            self._grower = ShardedGrower(make, shards)
        self._loss = self._make_loss(algorithm, weight)
        self._round = 0

    @property
    def log_f(self) -> tuple[float, float]:
        """Logarithms of the parts of positives and of negatives in the loss."""
        return self._loss.log_f_plus, self._loss.log_f_minus

    def scan(self) -> Tree | None:
        """Return the next tree; None if no split has a gain."""
        given, loss = self._parameters, self._loss
        draw = np.random.Generator(np.random.Philox(key=[given.random_state, self._round]))
        self._round += 1
        features = self._draw_features(draw)
        key = int(draw.integers(2**63))
        criterion = loss.criterion(given.min_samples_leaf, given.category_penalty)
        splits = self._grower.grow(criterion, features, given.subsample, key)
        if not len(splits.leaf):
            return None
        tree_splits, members = self._with_features(splits)
        relation = None
        if self._directions is not None:
            relation = order_leaves(find_regions(tree_splits, members), self._directions)
        leaves = loss.best_step(splits, relation)
        values = leaves.values if relation is None else raise_values(leaves.values, relation)
        return Tree(tree_splits, members, values, leaves.weights, self._n_categories)

    def update(self, weak_ranker: Tree, alpha: float) -> None:
        """Let f grow by alpha h, and change the weights of the rows."""
        self._loss.update(alpha * weak_ranker.leaf_value)

    @classmethod
    def ensemble_of(cls, parameters: Any) -> type[Ensemble]:
        """Return the class of the sum of the trees: with the parameter `crosses` they may read crosses."""
        return CrossedTreeSum if getattr(parameters, "crosses", 0) else cls.ensemble

    @property
    def found(self) -> tuple[npt.NDArray[Any], ...]:
        """The features of each cross."""
        return () if self._crosses is None else (self._crosses.feature,)

    def extend(self, X: Any) -> Any:
        """Return rows as the trees read them: with the columns of the crosses."""
        return super().extend(X) if self._crosses is None else self._crosses.extend(X)

    def collect(self, history: BoostingHistory) -> TreeSum | CrossedTreeSum:
        """Return the sum of the trees of a run."""
        trees = TreeSum.of(
            history.weak_rankers, history.alpha, self._loss.start, self._n_categories
        )
        return trees if self._crosses is None else CrossedTreeSum(self._crosses, trees)

    def _add_crosses(self, encoded: Encoded, data: Rows, callback: Callback) -> Encoded:
        """Find crosses, and return the columns of the trees with those of the crosses behind them."""
        given, n_features = self._parameters, len(self._n_categories)
        is_free = np.ones(n_features, dtype=np.bool_)
        if self._directions is not None:
            is_free = self._directions == 0
        self._crosses, X = find_crosses(
            data.X,
            data.positive,
            data.weight,
            self._n_categories,
            given.crosses if self.encodes_targets else 0,
            is_free,
            given.random_state,
            data.group,
            lambda: callback(0, given.n_rounds or 1, {}),
        )
        n_columns = self._crosses.n_columns
        if self._directions is not None:
            self._directions = np.append(
                self._directions, np.zeros(n_columns, dtype=self._directions.dtype)
            )
        self._n_categories = self._crosses.extended_categories
        return encoded.append(X, n_features + np.arange(n_columns))

    def _make_loss(self, algorithm: Any, weight: Floats) -> TreeLoss:
        loss: TreeLoss = algorithm.make_loss(self._grower, weight)
        return loss

    def _draw_features(self, draw: np.random.Generator) -> npt.NDArray[np.bool_]:
        n_features = len(self._bins.edges)
        fraction = self._parameters.max_features
        n_drawn = max(round((1.0 if fraction is None else fraction) * n_features), 1)
        features = np.zeros(n_features, dtype=np.bool_)
        features[draw.permutation(n_features)[:n_drawn]] = True
        return features

    def _with_features(
        self, splits: Splits
    ) -> tuple[npt.NDArray[np.void], list[npt.NDArray[np.bool_] | None]]:
        """Return splits with thresholds of features in place of cuts of codes, and the categories above of each."""
        leaf, column, cut, missing_above = splits[:4]
        has_missing = self._bins.has_missing[column]
        turned = np.empty(len(leaf), dtype=SPLITS)
        turned["leaf"], turned["feature"] = leaf, self._encoded.feature[column]
        turned["set"] = NO_SET
        turned["missing_above"] = missing_above
        turned["speaks_of_missing"] = has_missing
        members: list[npt.NDArray[np.bool_] | None] = []
        for s, (j, c) in enumerate(zip(column.tolist(), cut.tolist(), strict=True)):
            bins = self._bins.category_bins[j]
            threshold = self._bins.edges[j][c] if c >= 0 else -math.inf
            category_mask = None
            if c == BY_SUBSET and bins is not None:
                # Categories without training rows go with the missing.
                category_mask = np.where(
                    bins >= 0, splits.subsets[s][bins], missing_above[s]
                ).astype(np.bool_)
            elif self._encoded.numbers[j] is not None:
                side = bool(missing_above[s]) if has_missing[s] else None
                category_mask, turned["missing_above"][s] = self._encoded.above(j, threshold, side)
            turned["threshold"][s] = threshold if category_mask is None else math.nan
            members.append(category_mask)
        return turned, members
