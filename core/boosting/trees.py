"""Trees as weak rankers: their sum, the losses that they descend, their boosting algorithms, and the learner."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base.checkpoint import Resumable
from core.base.ranker import Floats
from core.base.state import Array, Index, Known, Records, Totals
from core.base.table import Categories
from core.coding import Bins
from core.coding.categories import Words
from core.coding.rows import positives_first, take_weights
from core.errors import ArtifactError
from core.trees.category_sets import NO_SET, Integers, Sets, check_sets, members_of
from core.trees.coding import CATEGORY_ROWS, code_table
from core.trees.description import describe_leaves
from core.trees.grower import MAX_LEAVES, MIN_LEAVES, Splits, TreeGrower, count_leaves
from core.trees.options import LeafForm
from core.trees.predictor import BinnedPredictor, Nodes, add_parts, add_scores, bin_trees, link
from core.trees.splitting import BY_SUBSET, Objective, SplitCriterion
from core.trees.target_encoding import encode

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

    # No numbers: a tree moves more than two groups of rows.
    d_plus: ClassVar[float] = math.nan
    d_minus: ClassVar[float] = math.nan

    def values(self, X: Floats) -> Floats:
        """Return h(x) of each row."""
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
        """Return intercept + constant + Σ of the trees for each row, unchecked; O(n_rows · n_trees · depth).

        A row's score does not depend on the rows beside it: few rows go from node to node, many are coded and sent
        through together (`core.trees.predictor`), and the leaves' values are added in the same order.
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
        trees = []
        for splits, leaves in self._trees():
            held = describe_leaves(splits, self.sets, name, categories)
            adds = zip(self.leaf_value[leaves].tolist(), held, strict=True)
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
        """Yield each tree's splits, and where its leaves stand."""
        stops = np.cumsum(self.rounds["n_leaves"]).tolist()
        for t, (start, stop) in enumerate(pairwise([0, *stops])):
            yield self.splits[start - t : stop - t - 1], slice(start, stop)

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


# What the best cut of many noisy categories gains, as a share of what they would all apart: the part
# of a normal variable's variance that its sign explains.
OF_SORTED_NOISE = 2.0 / math.pi

# The least mass of a leaf where none is given: twenty rows, as is usual; of a few positives, whose
# mean mass is great, that may be more than a table can be divided into.
USUAL_ROWS = 20.0
GREATEST_SHARE = 0.1

# So many rows of the leaf's own share are added to each category's before they are put in order. As CATEGORY_ROWS
# it was chosen on real tables with thousands of words.
CATEGORY_SMOOTHING = 10.0

# Least masses are a trifle lower than given: equal rows must not fail by rounding.
A_TRIFLE = 1e-9


class Leaves(NamedTuple):
    """The full step of each leaf of a tree, and the sample weight in it, as a number of rows."""

    values: Floats
    weights: Floats


class TreeLoss(Resumable, ABC):
    """The loss of a sum of trees, kept as weights of rows, which the grower holds.

    It gives each row the weight (or gradient and curvature) by which the next tree is grown, says how far each leaf
    should step, and takes the step.

    Parameters
    ----------
    grower : TreeGrower
    smoothing : float
        Rows of mean mass that are added to a leaf's own.

    Attributes
    ----------
    start : float
        The score of every row before the first tree.
    log_f_plus, log_f_minus : float
        Logarithms of what positives and negatives have part in the loss.
    """

    start: float = 0.0
    log_f_plus: float
    log_f_minus: float

    def __init__(self, grower: TreeGrower, smoothing: float) -> None:
        self._grower = grower
        self._smoothing = smoothing
        self._weights = grower.weights
        self._unit = 1.0  # a row's mean mass
        grower.leaves.fill(0)

    @abstractmethod
    def criterion(self, min_samples_leaf: float | None, category_penalty: float) -> SplitCriterion:
        """By what to choose cuts under the present weights."""

    @abstractmethod
    def best_step(self, splits: Splits) -> Leaves:
        """Find the best step of each leaf."""

    @abstractmethod
    def update(self, values: Floats) -> None:
        """Let the scores grow by a value per leaf, of the tree that rows were last sent through."""

    def _split_criterion(
        self,
        objective: Objective,
        push: float,
        min_samples_leaf: float | None,
        total: float,
        penalty: float,
    ) -> SplitCriterion:
        """Put together by what to choose cuts, where all rows have the mass `total`."""
        unit = self._unit
        least = min(USUAL_ROWS * unit, GREATEST_SHARE * total)
        if min_samples_leaf is not None:
            least = min_samples_leaf * unit
        least *= 1.0 - A_TRIFLE
        category_mass = min(CATEGORY_ROWS * unit * (1.0 - A_TRIFLE), least)
        smoothing, category_smoothing = self._smoothing * unit, CATEGORY_SMOOTHING * unit
        return SplitCriterion(
            int(objective), push, smoothing, least, penalty, category_mass, category_smoothing
        )


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
        Step to the minimum in the leaves' values, ln(P/N) / (1 + r), or by a Newton step,
        (P - N) / (P + rN).
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

    changing: ClassVar[tuple[str, ...]] = ("_weights", "_unit", "log_f_plus", "log_f_minus")

    def __init__(
        self, grower: TreeGrower, weight: Floats, *, leaf: LeafForm, smoothing: float, push: float
    ) -> None:
        super().__init__(grower, smoothing)
        self._leaf = leaf
        self._push = push
        m = grower.table.n_positives
        totals = np.array([weight[:m].sum(), weight[m:].sum()])
        self.log_f_plus, self.log_f_minus = np.log(totals).tolist()
        self._weights[:, 0] = weight
        self._rescale(1.0 / totals[:, None])

    def criterion(self, min_samples_leaf: float | None, category_penalty: float) -> SplitCriterion:
        """By what to choose cuts under the present weights."""
        if self._leaf == "newton":
            objective = Objective.NEWTON
        else:
            objective = Objective.CLOSED if self._push == 1.0 else Objective.PUSH
        # Of a category of mass m in each class that means nothing, p - q has the variance 2 m unit;
        # half the gain's second derivative there turns it into an expected gain.
        noise = 2.0 * self._unit / (1.0 + self._push)
        if self._leaf == "closed":
            noise *= 0.5 * self._push / (1.0 + self._push)
        penalty = category_penalty * OF_SORTED_NOISE * noise
        return self._split_criterion(objective, self._push, min_samples_leaf, 2.0, penalty)

    def best_step(self, splits: Splits) -> Leaves:
        """Find the best step of each leaf."""
        sums = splits.sums
        self._totals = sums[:2].sum(axis=1, keepdims=True)
        p, q = self._masses = sums[:2] / self._totals
        smoothing = self._smoothing * self._unit
        if self._leaf == "newton":
            values = (p - q) / (p + self._push * q + smoothing)
        else:
            smoothing = max(smoothing, EPS_MASS)
            values = np.log((p + smoothing) / (q + smoothing)) / (1.0 + self._push)
        return Leaves(values, sums[2])

    def update(self, values: Floats) -> None:
        """Let the scores grow by a value per leaf, of the tree that rows were last sent through."""
        factors = np.exp([-values, self._push * values])
        shrink = (self._masses * factors).sum(axis=1, keepdims=True)
        grow_p, grow_q = np.log(shrink[:, 0]).tolist()
        self.log_f_plus += grow_p
        self.log_f_minus += grow_q
        self._rescale(factors / (self._totals * shrink))

    def _rescale(self, factors: Floats) -> None:
        """Multiply weights by factors[class, leaf], after which each class sums to 1."""
        self._unit = 0.5 * self._grower.rescale(factors)


class LogisticLoss(TreeLoss):
    """The logistic loss, Σ w_i ln(1 + e^{-y_i f(x_i)}), by Newton steps; it starts from the classes' log odds.

    Parameters
    ----------
    grower : TreeGrower
        Its weights are the gradient, towards higher scores, and the curvature.
    weight : ndarray of shape (n_rows,), float64
        Sample weights, above 0.
    smoothing : float
        κ: curvature added to each leaf's, in rows of mean curvature, Σh²/Σh.

    References
    ----------
    J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical view of
    boosting", Annals of Statistics 28(2), 2000: LogitBoost (Algorithm 3).
    """

    changing = ("_weights", "_scores", "_curvature", "_unit", "log_f_plus", "log_f_minus")

    def __init__(self, grower: TreeGrower, weight: Floats, *, smoothing: float) -> None:
        super().__init__(grower, smoothing)
        m = grower.table.n_positives
        self.start = float(np.log(weight[:m].sum() / weight[m:].sum()))
        self._scores = grower.scores
        self._scores[:] = self.start
        self.update(np.zeros(1))

    def criterion(self, min_samples_leaf: float | None, category_penalty: float) -> SplitCriterion:
        """By what to choose cuts under the present weights."""
        # Of a category that means nothing G²/H is 1 on average, the labels' variance being H.
        penalty = category_penalty * OF_SORTED_NOISE
        return self._split_criterion(
            Objective.GRADIENT, 1.0, min_samples_leaf, self._curvature, penalty
        )

    def best_step(self, splits: Splits) -> Leaves:
        """Find the best step of each leaf."""
        gradient, curvature, sample_weight = splits.sums
        denominator = np.maximum(curvature + self._smoothing * self._unit, np.finfo(float).tiny)
        return Leaves(gradient / denominator, sample_weight)

    def update(self, values: Floats) -> None:
        """Let the scores grow by a value per leaf, of the tree that rows were last sent through."""
        loss, curvature, squares = self._grower.step(values)
        losses = np.maximum(loss, np.finfo(float).tiny)
        log_losses = np.log(losses) + math.log(self._grower.row_weight)
        self.log_f_plus, self.log_f_minus = log_losses.tolist()
        self._curvature = sum(curvature)
        self._unit = sum(squares) / self._curvature if self._curvature > 0.0 else 0.0


class TreeAlgorithm(BoostingAlgorithm):
    """An algorithm whose loss trees descend: the score grows by the learning rate times the best step of each leaf.

    Attributes
    ----------
    n_weights : int
        1: the loss gives each row a weight; 2: gradient and curvature.
    """

    n_weights: ClassVar[int]

    @abstractmethod
    def make_loss(self, grower: TreeGrower, weight: Floats) -> TreeLoss:
        """Return the loss of rows, positives first, before the first tree."""

    def step(self, weak_ranker: WeakRanker, state: LoopState) -> float:
        """Take the learning rate's share of the best step."""
        return self.learning_rate


@dataclass(kw_only=True)
class RankingTreeAlgorithm(TreeAlgorithm):
    """RankBoost on trees; for the parameters see `PairLoss`."""

    n_weights = 1

    leaf: LeafForm
    push: float

    def make_loss(self, grower: TreeGrower, weight: Floats) -> TreeLoss:
        """Return the loss at f = 0 of rows, positives first."""
        return PairLoss(grower, weight, leaf=self.leaf, smoothing=self.smoothing, push=self.push)

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Return F₊^r Σ_k w_k e^{r f(x_k)}; without a push, r = 1, it is F̃."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.push * log_f[0] + log_f[1]))

    def intercept(self, log_f: Floats) -> float:
        """Return ½ ln(F₊/F₋), by Corollary 13; with a push the same of its parts, over 1 + r."""
        return float(log_f[0] - log_f[1]) / (1.0 + self.push)


class LogisticAlgorithm(TreeAlgorithm, RowLossAlgorithm):
    """LogitBoost on trees: the classes' parts of the logistic loss stand where F₊ and F₋ do; scores are log odds."""

    n_weights = 2

    def make_loss(self, grower: TreeGrower, weight: Floats) -> TreeLoss:
        """Return the loss of rows, positives first, all scored by the classes' log odds."""
        return LogisticLoss(grower, weight, smoothing=self.smoothing)


class TreeLearner(WeakLearner):
    """The training rows, their weights, and the growth of the next tree.

    Its parameters are those of `core.trees.options`, its algorithm is a `TreeAlgorithm`.

    Notes
    -----
    A round is O(n_features · n_drawn · depth + n_rows · n_leaves), where n_drawn is the number of
    rows that the tree is grown on. Memory per row: the codes, row by row, and 17 bytes; 25 while they are laid out.
    """

    ensemble = TreeSum
    changing = ("_loss", "_round")
    encodes_targets: ClassVar[bool] = True
    """Whether the parameter `target_encoding` has a meaning."""

    def __init__(self, parameters: Any, algorithm: Any, data: Rows) -> None:
        X, positive, weight, self._n_categories, group = data
        self._parameters = given = parameters
        rows, n_positives = positives_first(positive)
        encoding = given.target_encoding if self.encodes_targets else None
        encoded = encode(
            X, positive, weight, self._n_categories, encoding, given.random_state, group
        )
        self._bins: Bins
        self._bins, table = code_table(
            encoded.X,
            rows,
            n_positives,
            weight,
            (given.max_bins, given.max_categories),
            encoded.n_categories,
        )
        self._encoded = encoded._replace(X=np.empty((0, 0)))
        weight = take_weights(weight, rows)
        max_leaves = given.max_leaves
        if given.bounds_leaves and max_leaves is not None:
            max_leaves = min(max_leaves, max(count_leaves(table), MIN_LEAVES))
        # the list of rows is of no more use: growth may have its memory
        self._grower = TreeGrower(
            table,
            weight,
            algorithm.n_weights,
            given.max_depth,
            max_leaves,
            rows,
        )
        self._loss = self._make_loss(algorithm, weight)
        self._round = 0

    @property
    def log_f(self) -> tuple[float, float]:
        """Logarithms of the positives' part of the loss and of the negatives'."""
        return self._loss.log_f_plus, self._loss.log_f_minus

    def scan(self) -> Tree | None:
        """Grow the next tree; None where no cut has a gain."""
        given, loss = self._parameters, self._loss
        draw = np.random.Generator(np.random.Philox(key=[given.random_state, self._round]))
        self._round += 1
        features = self._draw_features(draw)
        key = int(draw.integers(2**63))
        criterion = loss.criterion(given.min_samples_leaf, given.category_penalty)
        splits = self._grower.grow(criterion, features, given.subsample, key)
        if not len(splits.leaf):
            return None
        leaves = loss.best_step(splits)
        return Tree(*self._with_features(splits), leaves.values, leaves.weights, self._n_categories)

    def update(self, weak_ranker: Tree, alpha: float) -> None:
        """Let f grow by alpha h, and reweigh the rows."""
        self._loss.update(alpha * weak_ranker.leaf_value)

    def collect(self, history: BoostingHistory) -> TreeSum:
        """Sum up the trees of a run of the loop."""
        return TreeSum.of(history.weak_rankers, history.alpha, self._loss.start, self._n_categories)

    def _make_loss(self, algorithm: Any, weight: Floats) -> TreeLoss:
        loss: TreeLoss = algorithm.make_loss(self._grower, weight)
        return loss

    def _draw_features(self, draw: np.random.Generator) -> npt.NDArray[np.bool_]:
        n_features = len(self._bins.edges)
        share = 1.0 if self._parameters.max_features is None else self._parameters.max_features
        n_drawn = max(round(share * n_features), 1)
        features = np.zeros(n_features, dtype=np.bool_)
        features[draw.permutation(n_features)[:n_drawn]] = True
        return features

    def _with_features(
        self, splits: Splits
    ) -> tuple[npt.NDArray[np.void], list[npt.NDArray[np.bool_] | None]]:
        """Turn cuts between codes into thresholds of features, or categories above."""
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
            held = None
            if c == BY_SUBSET and bins is not None:
                # those that no row has count with the missing
                held = np.where(bins >= 0, splits.subsets[s][bins], missing_above[s]).astype(
                    np.bool_
                )
            elif self._encoded.numbers[j] is not None:
                side = bool(missing_above[s]) if has_missing[s] else None
                held, turned["missing_above"][s] = self._encoded.above(j, threshold, side)
            turned["threshold"][s] = threshold if held is None else math.nan
            members.append(held)
        return turned, members
