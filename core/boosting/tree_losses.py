"""What trees descend: the loss of a sum of trees, kept as weights of rows.

A loss gives each row the weight (or gradient and curvature) by which the next tree is grown, sums
them up per leaf over all rows, says how far each leaf should step, and takes the step.
"""

import math
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from core.checkpoint import Resumable
from core.ranker import Floats
from core.trees.coding import CATEGORY_ROWS
from core.trees.grower import Grower, Splits
from core.trees.splitting import Objective, Rule

Leaf = Literal["closed", "newton"]

# What a closed leaf without smoothing adds to an empty class: the spacing of doubles.
NEVER_WRONG = 2.0**-52

# What the best cut of many noisy categories gains, as a share of what they would all apart: the part
# of a normal variable's variance that its sign explains.
OF_SORTED_NOISE = 2.0 / math.pi

# The least mass of a leaf where none is asked for: twenty rows, as is usual; of a few positives, whose
# mean mass is great, that may be more than a table can be divided into.
USUAL_ROWS = 20.0
GREATEST_SHARE = 0.1

# So many rows of the leaf's own share are added to each category's before they are put in order. As CATEGORY_ROWS
# it was chosen on real tables with thousands of words.
CATEGORY_SMOOTHING = 10.0

# Least masses are a trifle lower than asked for: equal rows must not fail by rounding.
A_TRIFLE = 1e-9


def least_mass(min_samples_leaf: float | None, unit: float, total: float) -> float:
    """Give the least mass of a leaf, where a row has a mean mass of `unit` and all have `total`."""
    usual = min(USUAL_ROWS * unit, GREATEST_SHARE * total)
    least = usual if min_samples_leaf is None else min_samples_leaf * unit
    return least * (1.0 - A_TRIFLE)


def _rule(
    objective: Objective, push: float, smoothing: float, least: float, penalty: float, unit: float
) -> Rule:
    """Put together by what to choose cuts, where a row has a mean mass of `unit`."""
    category_mass = min(CATEGORY_ROWS * unit * (1.0 - A_TRIFLE), least)
    category_smoothing = CATEGORY_SMOOTHING * unit
    return Rule(
        int(objective), push, smoothing * unit, least, penalty, category_mass, category_smoothing
    )


class Leaves(NamedTuple):
    """What a tree's leaves add to the score, and what lies in them.

    Attributes
    ----------
    values : ndarray of shape (n_leaves,), float64
        The full step.
    weights : ndarray of shape (n_leaves,), float64
        Sum of the sample weights, as numbers of rows.
    """

    values: Floats
    weights: Floats


class Loss(Protocol):
    """The loss of a sum of trees.

    Attributes
    ----------
    log_f_plus, log_f_minus : float
        Logarithms of what positives and negatives have part in the loss.
    """

    log_f_plus: float
    log_f_minus: float

    @property
    def start(self) -> float:
        """The score of every row before the first tree."""

    def rule(self, min_samples_leaf: float | None, category_penalty: float) -> Rule:
        """By what to choose cuts under the present weights."""

    def best_step(self, splits: Splits) -> Leaves:
        """Find the best step of each leaf."""

    def update(self, values: Floats) -> None:
        """Let the scores grow by a value per leaf, of the tree that rows were last sent through."""


class PairLoss(Resumable):
    """The exponential loss of pairs, and the p-norm push.

    F₊^r Σ_k w_k e^{r f(x_k)} with F₊ = Σ_i w_i e^{-f(x_i)} over positives i and negatives k. For
    r = 1 it is RankBoost's F̃, the sum over all pairs of w_i w_k e^{-(f(x_i) - f(x_k))}; a greater r
    lets the negatives that stand highest weigh more.

    Parameters
    ----------
    grower : Grower
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

    Attributes
    ----------
    weights : ndarray of shape (n_rows, 1), float64
        The grower's; of each class they sum to 1.
    log_f_plus, log_f_minus : float
        Logarithms of F₊ and of Σ_k w_k e^{r f(x_k)}.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: eq. 1, Corollary 13.
    C. Rudin, "The P-Norm Push", JMLR 10, 2009.
    """

    start = 0.0
    changing: ClassVar[tuple[str, ...]] = ("weights", "_unit", "log_f_plus", "log_f_minus")

    def __init__(
        self, grower: Grower, weight: Floats, *, leaf: Leaf, smoothing: float, push: float
    ) -> None:
        self._grower = grower
        self._leaf = leaf
        self._smoothing = smoothing
        self._push = push
        m = grower.table.n_positives
        totals = np.array([weight[:m].sum(), weight[m:].sum()])
        self.log_f_plus, self.log_f_minus = np.log(totals).tolist()
        self.weights = weight[:, None]
        self._grower.leaves.fill(0)
        self._rescale(1.0 / totals[:, None])

    def rule(self, min_samples_leaf: float | None, category_penalty: float) -> Rule:
        """By what to choose cuts under the present weights."""
        if self._leaf == "newton":
            objective = Objective.NEWTON
        else:
            objective = Objective.CLOSED if self._push == 1.0 else Objective.PUSH
        least = least_mass(min_samples_leaf, self._unit, 2.0)
        # Of a category of mass m in each class that means nothing, p - q has the variance 2 m unit;
        # half the worth's second derivative there turns it into an expected gain.
        noise = 2.0 * self._unit / (1.0 + self._push)
        if self._leaf == "closed":
            noise *= 0.5 * self._push / (1.0 + self._push)
        penalty = category_penalty * OF_SORTED_NOISE * noise
        return _rule(objective, self._push, self._smoothing, least, penalty, self._unit)

    @property
    def weights(self) -> Floats:
        return self._grower.weights

    @weights.setter
    def weights(self, weights: Floats) -> None:
        self._grower.weights[:] = weights

    def best_step(self, splits: Splits) -> Leaves:
        """Find the best step of each leaf."""
        sums = splits.sums
        self._totals = sums[:2].sum(axis=1, keepdims=True)
        p, q = self._masses = sums[:2] / self._totals
        smoothing = self._smoothing * self._unit
        if self._leaf == "newton":
            values = (p - q) / (p + self._push * q + smoothing)
        else:
            smoothing = max(smoothing, NEVER_WRONG)
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


class LogisticLoss(Resumable):
    """The logistic loss, Σ w_i ln(1 + e^{-y_i f(x_i)}), by Newton steps.

    Parameters
    ----------
    grower : Grower
    weight : ndarray of shape (n_rows,), float64
        Sample weights, above 0.
    smoothing : float
        κ: curvature added to each leaf's, in rows of mean curvature, Σh²/Σh.

    Attributes
    ----------
    weights : ndarray of shape (n_rows, 2), float64
        The grower's: gradient, towards higher scores, and curvature.
    log_f_plus, log_f_minus : float
        Logarithms of the loss of positives and of negatives.

    References
    ----------
    J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical view of
    boosting", Annals of Statistics 28(2), 2000: LogitBoost (Algorithm 3).
    """

    changing = ("weights", "_scores", "_curvature", "_unit", "log_f_plus", "log_f_minus")

    def __init__(self, grower: Grower, weight: Floats, *, smoothing: float) -> None:
        self._grower = grower
        self._smoothing = smoothing
        m = grower.table.n_positives
        self.start = float(np.log(weight[:m].sum() / weight[m:].sum()))
        self._scores = np.full(len(weight), self.start)
        grower.leaves.fill(0)
        self.update(np.zeros(1))

    def rule(self, min_samples_leaf: float | None, category_penalty: float) -> Rule:
        """By what to choose cuts under the present weights."""
        least = least_mass(min_samples_leaf, self._unit, self._curvature)
        # of a category that means nothing G² / H is 1 on average, the labels' variance being H
        penalty = category_penalty * OF_SORTED_NOISE
        return _rule(Objective.GRADIENT, 1.0, self._smoothing, least, penalty, self._unit)

    @property
    def weights(self) -> Floats:
        return self._grower.weights

    @weights.setter
    def weights(self, weights: Floats) -> None:
        self._grower.weights[:] = weights

    @property
    def _scores(self) -> Floats:
        return self._grower.scores

    @_scores.setter
    def _scores(self, scores: Floats) -> None:
        self._grower.scores[:] = scores

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
