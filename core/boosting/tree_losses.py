"""The losses that boosted trees minimise: each weighs rows, rates splits and computes the steps of leaves.

A loss of rows (`RowLoss`) is a kernel that writes its derivatives, a first score and the step of a leaf: it then works
in trees and in stumps (trees of depth 1), in memory, out of core and on a cluster.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from core.base.checkpoint import Resumable
from core.base.ranker import Floats
from core.trees.coding import CATEGORY_ROWS
from core.trees.grower import Splits, TreeGrower
from core.trees.logistic import write_derivatives
from core.trees.options import LeafForm
from core.trees.order import Relation, pool_ratios
from core.trees.splitting import Objective, SplitCriterion
from core.trees.steps import TreeSteps

from .algorithms import RowLossAlgorithm
from .loop import EPS_MASS, BoostingAlgorithm, LoopState, WeakRanker

# Least normal number: it keeps divisors and logarithms of sums finite.
TINY = float(np.finfo(float).tiny)

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
    """The full step of each leaf of a tree, and its sample weight in numbers of rows."""

    values: Floats
    weights: Floats


class TreeLoss(Resumable, ABC):
    """Base class of losses of a sum of trees; it keeps the weight (or gradient and Hessian) of each row.

    smoothing: rows of mean mass that are added to those of a leaf.
    small_leaf_smoothing: replaces `smoothing` if there are `MANY_ROWS`; leaves may then be small. None: never.
    """

    n_weights: ClassVar[int] = 1
    """1: the loss has one weight per row; 2: gradient and Hessian."""
    write_derivatives: ClassVar[Any] = None
    """See `core.trees.derivatives`; None: the loss changes the weights in another way."""
    start: float = 0.0
    """The score of every row before the first tree."""
    log_f_plus: float
    log_f_minus: float
    """Logarithms of the parts of positives and of negatives in the loss."""

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
        """Return the split criterion for the next tree, under the current weights."""

    @abstractmethod
    def best_step(self, splits: Splits, relation: Relation | None = None) -> Leaves:
        """Return the best step of each leaf, subject to the order of leaves that monotone constraints require."""

    @abstractmethod
    def update(self, values: Floats) -> None:
        """Add values[leaf] to the scores of the rows in each leaf of the last tree, and reweight the rows."""

    def _split_criterion(
        self,
        objective: Objective,
        push: float,
        min_samples_leaf: float | None,
        total: float,
        penalty: float,
    ) -> SplitCriterion:
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
    """Return twice the harmonic mean of the classes' numbers of rows."""
    n = grower.division.count_rows(weight).tolist()
    return float(4.0 / (1.0 / n[0] + 1.0 / n[1]))


class PairLoss(TreeLoss):
    """RankBoost's exponential loss over pairs of a positive and a negative, or the p-norm push.

    F₊^r Σ_k w_k e^{r f(x_k)} with F₊ = Σ_i w_i e^{-f(x_i)} over positives i and negatives k. For
    r = 1 it is RankBoost's F̃, the sum over all pairs of w_i w_k e^{-(f(x_i) - f(x_k))}; a greater r
    lets the negatives that stand highest weigh more. The weights of each class sum to 1.

    leaf: {"closed", "newton"}; the step of a leaf: to the minimum of the loss, ln(P/N) / (1 + r), or a Newton step, (P
        - N) / (P + rN).
    smoothing: κ: mass added to P and to N (closed) or to the denominator (newton), in rows of mean mass, u = ½(1/ESS₊ +
        1/ESS₋), where ESS = (Σv)²/Σv² is the number of rows that the weights v of a class amount to.
    push: r, at least 1.

    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: F̃ of Section 4.1, Corollary 13.
    C. Rudin, "The P-Norm Push", JMLR 10, 2009.
    """

    changing: ClassVar[tuple[str, ...]] = ("_steps", "_unit", "log_f_plus", "log_f_minus")
    small_leaf_smoothing: ClassVar[float] = 5.0

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
        small = self.small_leaf_smoothing if sizes_leaves else None
        super().__init__(grower, weight, smoothing, small)
        self._leaf = leaf
        self._push = push
        totals = grower.division.sum_classes(weight)
        self.log_f_plus, self.log_f_minus = np.log(totals).tolist()
        grower.start_weights(weight)
        self._rescale(1.0 / totals[:, None])

    def criterion(self, min_samples_leaf: float | None, category_penalty: float) -> SplitCriterion:
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
        factors = np.exp([-values, self._push * values])
        shrink = (self._masses * factors).sum(axis=1, keepdims=True)
        grow_p, grow_q = np.log(shrink[:, 0]).tolist()
        self.log_f_plus += grow_p
        self.log_f_minus += grow_q
        factors /= self._totals * shrink
        self._steps.add(factors)
        self._rescale(factors)

    def _rescale(self, factors: Floats) -> None:
        self._unit = 0.5 * self._grower.rescale(factors)


def bounded_steps(
    up: Floats, down: Floats, curvature: Floats, smoothing: float, relation: Relation | None
) -> Floats:
    """Return the Newton steps of leaves on the logistic loss, bounded so that no fraction of them raises the loss.

    up, down: (n_leaves,), A = Σ w_i (1 - p_i) over the positives of a leaf and B = Σ w_i p_i over its negatives;
    curvature: H = Σ w_i p_i (1 - p_i) over both; smoothing: λ; relation: the order that monotone constraints require.

    As ln(1 + x) <= x, a step s changes the loss of a leaf by at most A (e^{-s} - 1) + B (e^s - 1), which is at most 0
    from s = 0 to ln(A/B) (Collins, Schapire & Singer, "Logistic regression, AdaBoost and Bregman distances", 2002).
    Newton's step (A - B)/(H + λ) may be far beyond that if positives are rare: it is bounded by ln((A + λ)/(B + λ)),
    which is nearer to 0, and by ± `MAX_LOGISTIC_STEP`.

    With an order both are isotonic regressions. Up to the second one the sum of the bound over leaves is at most 0,
    too, as long as leaves with one value of it move alike. If Newton's steps move them apart and raise the sum above 0,
    the second one is the step.
    """
    smoothing = max(smoothing, EPS_MASS * float((up + down).sum()), TINY)
    newton = pool_ratios(up - down, curvature + smoothing, relation)
    bound = np.log(pool_ratios(up + smoothing, down + smoothing, relation))
    bound = bound.clip(-MAX_LOGISTIC_STEP, MAX_LOGISTIC_STEP)
    steps = newton.clip(np.minimum(bound, 0.0), np.maximum(bound, 0.0))
    if relation is not None and (up * np.expm1(-steps) + down * np.expm1(steps)).sum() > 0.0:
        return bound
    return steps


class RowLoss(TreeLoss):
    """Base class of losses that are sums over rows, Σ w_i l(y_i f(x_i)), minimised by Newton steps.

    A new loss of this kind gives the kernel of its derivatives and the best constant.

    grower: its weights are the gradient, towards higher scores, and the Hessian.
    smoothing: κ: rows whose Hessian is added to each leaf. That of one row is u = ¼ Σh (1/ESS₊ + 1/ESS₋), where ESS =
        (Σh)²/Σh² is the number of rows that the Hessians h of a class amount to: the mean Hessian if the classes are
        alike; more if one is rare, so that κ rows outweigh its few rows, too.
    sizes_leaves: whether leaves are small, with `small_leaf_smoothing`, if there are many rows.

    ValueError: the kernel writes a Hessian below 0, or a derivative that is not finite. It is raised when a tree is
        grown, and gives the loss, both derivatives, and the class and score of the row.

    Per row and unit of sample weight the kernel writes -y l'(y f) and a curvature h with 0 <= h < ∞; h = l'' if l is
    convex. Each cell of a histogram packs the sum of the gradients, signed, and that of the curvatures, unsigned, into
    64 bits, so a negative h would read as a huge positive one.

    A loss that is not convex writes another curvature, which changes the length of the steps but not the gradient, and
    so not the stationary points:

    - an upper bound of l'' at all scores, if there is one: then no full step raises the loss (Böhning & Lindsay 1988);
    - |l''|, with a small part of the bound as its minimum: steps are longer where the loss is flat, and may overshoot
      at an inflection, where |l''| is near 0 (Dauphin et al. 2014).

    D. Böhning and B. Lindsay, "Monotonicity of quadratic-approximation algorithms", Annals of the Institute of
    Statistical Mathematics 40, 1988: Theorem 4.1.

    Y. Dauphin et al., "Identifying and attacking the saddle point problem in high-dimensional non-convex
    optimization", NeurIPS 2014: Section 4.
    """

    n_weights = 2
    changing = ("_steps", "_curvature", "_unit", "log_f_plus", "log_f_minus")
    small_leaf_smoothing: ClassVar[float] = 10.0

    def __init__(
        self, grower: TreeGrower, weight: Floats, *, smoothing: float, sizes_leaves: bool = False
    ) -> None:
        small = self.small_leaf_smoothing if sizes_leaves else None
        super().__init__(grower, weight, smoothing, small)
        positives, negatives = grower.division.sum_classes(weight)
        self.start = self.best_constant(float(positives), float(negatives))
        grower.start_scores(self.start)
        self._step(np.zeros(1))

    @abstractmethod
    def best_constant(self, positives: float, negatives: float) -> float:
        """Return the constant score with the lowest loss, given the sample weights of both classes."""

    def steps(
        self,
        up: Floats,
        down: Floats,
        curvature: Floats,
        smoothing: float,
        relation: Relation | None,
    ) -> Floats:
        """Return the step of each leaf, (n_leaves,) float64: by default Newton's.

        up, down: (n_leaves,) float64, at least 0, the gradients that pull a leaf's positives up and its negatives down;
        curvature: (n_leaves,) float64; smoothing: added to the curvature; relation: the order that monotone constraints
        ask for.
        """
        total = np.maximum(curvature + smoothing, TINY)
        return pool_ratios(up - down, total, relation)

    def criterion(self, min_samples_leaf: float | None, category_penalty: float) -> SplitCriterion:
        # For a category without meaning G²/H is 1 on average if H is the variance of the gradient, as of a likelihood.
        penalty = category_penalty * SORTED_NOISE_GAIN
        return self._split_criterion(
            Objective.GRADIENT, 1.0, min_samples_leaf, self._curvature, penalty
        )

    def best_step(self, splits: Splits, relation: Relation | None = None) -> Leaves:
        up, down, curvature, sample_weight = splits.sums
        values = self.steps(up, -down, curvature, self._smoothing * self._unit, relation)
        return Leaves(values, sample_weight)

    def update(self, values: Floats) -> None:
        self._steps.add(values[None])
        self._step(values)

    def _step(self, values: Floats) -> None:
        loss, curvature, squares = self._grower.step(values).tolist()
        losses = np.maximum(loss, TINY)
        log_losses = np.log(losses) + math.log(self._grower.division.row_weight)
        self.log_f_plus, self.log_f_minus = log_losses.tolist()
        self._curvature = sum(curvature)
        self._unit = 0.0
        for of_class, square in zip(curvature, squares, strict=True):
            if square > 0.0:
                self._unit += 0.25 * self._curvature * (square / of_class / of_class)


class LogisticLoss(RowLoss):
    """The logistic loss, Σ w_i ln(1 + e^{-y_i f(x_i)}), by bounded Newton steps from the log-odds of the classes.

    J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical view of
    boosting", Annals of Statistics 28(2), 2000: LogitBoost (Algorithm 3).
    """

    write_derivatives = write_derivatives

    def best_constant(self, positives: float, negatives: float) -> float:
        return math.log(positives / negatives)

    def steps(
        self,
        up: Floats,
        down: Floats,
        curvature: Floats,
        smoothing: float,
        relation: Relation | None,
    ) -> Floats:
        return bounded_steps(up, down, curvature, smoothing, relation)


class TreeAlgorithm(BoostingAlgorithm):
    """A boosting algorithm on trees: each step is the learning rate times the best step of each leaf."""

    loss_class: type[TreeLoss]

    @abstractmethod
    def make_loss(self, grower: TreeGrower, weight: Floats) -> TreeLoss:
        """Return the loss of the rows, positives first, before the first tree."""

    def step(self, weak_ranker: WeakRanker, state: LoopState) -> float:
        """Return the learning rate, the fraction of the leaves' full steps that is taken."""
        return self.learning_rate


@dataclass(kw_only=True)
class RankingTreeAlgorithm(TreeAlgorithm):
    """RankBoost on trees; for the parameters see `PairLoss`."""

    loss_class: type[TreeLoss] = PairLoss

    leaf: LeafForm
    push: float
    sizes_leaves: bool = False

    def make_loss(self, grower: TreeGrower, weight: Floats) -> TreeLoss:
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
        """Return the intercept that centres f: ½ ln(F₊/F₋), by Corollary 13; with a push r, ln(F₊/F₋)/(1 + r)."""
        return float(log_f[0] - log_f[1]) / (1.0 + self.push)


@dataclass(kw_only=True)
class RowLossTrees(TreeAlgorithm, RowLossAlgorithm):
    """Trees that minimise a sum over rows; its positive and negative parts take the places of F₊ and F₋."""

    loss_class: type[RowLoss]
    sizes_leaves: bool = False

    def make_loss(self, grower: TreeGrower, weight: Floats) -> TreeLoss:
        """Return the loss of the rows, positives first, at its best constant score."""
        return self.loss_class(
            grower, weight, smoothing=self.smoothing, sizes_leaves=self.sizes_leaves
        )
