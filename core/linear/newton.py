"""Newton's method for smooth losses of linear scores: sums over rows, and the p-norm push.

The objective is ½‖w‖² + C Σ cost_i ℓ(±(w·x_i + b)), with no penalty on b, or ½‖w‖² + C L for another convex loss L of
all scores. A step solves for the Newton direction by
conjugate gradients, at two products with the table per direction; the line search uses cached scores. The gradients
are preconditioned by the second derivatives of the `BLOCK_COORDINATES` coordinates of greatest curvature, estimated
from a sample of rows, and by the diagonal for the others. Without it a table of words takes hundreds of directions.

References
----------
C.-J. Lin, R. C. Weng and S. S. Keerthi, "Trust region Newton method for logistic regression", JMLR 9, 2008: truncated
Newton steps. Here a step is shortened until the sum falls, in place of a trust region.
D. P. Bertsekas, "Projected Newton methods for optimization problems with simple constraints", SIAM J. Control and
Optimization 20(2), 1982: coefficients with a sign, as monotone constraints ask for.
C.-Y. Hsia, W.-L. Chiang and C.-J. Lin, "Preconditioned conjugate gradient methods in truncated Newton frameworks for
large-scale linear classification", ACML 2018.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from core.base.monotone import Directions
from core.base.ranker import Floats, StopFit

from .blas import one_blas_thread
from .design import Ints, LinearRows, LinearSample, TableRows

# Length of the gradient, as a fraction of that at w = 0, b = 0, at which a fit ends: nine digits of the objective.
TOLERANCE = 1e-6

# The same for a fit that is only compared with others.
LOOSE_TOLERANCE = 1e-5

# Newton steps; ten are usual.
MAX_STEPS = 100

# Conjugate gradient directions of one step.
MAX_DIRECTIONS = 250

# Halvings of a step until the objective falls: 2^-40 of a step changes nothing any more.
MAX_HALVINGS = 40

# Coordinates whose second derivatives with one another precondition; for the others the diagonal does.
BLOCK_COORDINATES = 512

# After a step of more directions than this the preconditioner is estimated anew.
MANY_DIRECTIONS = 20

# Added to the block's diagonal, as a fraction of it, so that rounding cannot make the block singular.
RIDGE = 1e-9

# Fraction of the decrease predicted by the slope that a step must reach (Armijo's rule).
ARMIJO = 1e-4

# Greatest distance from its bound at which a coefficient counts as near it: see `minimise`.
MAX_NEAR = 1e-3

# Relative rounding error of the objective.
ROUNDING = 1e-15

Report = Callable[[int, float, float], None]
"""Called after each step with its number, the objective and the gradient's length. An exception that it raises ends the
fit; if it is StopFit, the fit keeps the step."""


class Loss(NamedTuple):
    """The values of a loss of margins, with first and second derivatives; each (n_rows,), float64."""

    value: Floats
    slope: Floats
    curvature: Floats


def logistic_loss(margin: Floats) -> Loss:
    """Return the loss ln(1 + e^-margin) of each margin."""
    small = np.exp(-abs(margin))
    sigmoid = 1.0 / (1.0 + small)
    value = np.log1p(small) + np.maximum(-margin, 0.0)
    slope = -np.where(margin < 0.0, sigmoid, small * sigmoid)
    return Loss(value, slope, small * sigmoid * sigmoid)


def squared_hinge_loss(margin: Floats) -> Loss:
    """Return the loss (1 - margin)₊² of each margin."""
    short = np.maximum(1.0 - margin, 0.0)
    return Loss(short**2, -2.0 * short, np.where(short > 0.0, 2.0, 0.0))


class Affine(NamedTuple):
    """The affine score w·x + b, given by w and b."""

    w: Floats
    b: float

    def moved(self, t: float, other: "Affine") -> "Affine":
        return Affine(self.w + t * other.w, self.b + t * other.b)

    def dot(self, other: "Affine") -> float:
        return float((self.w * other.w).sum()) + self.b * other.b


class Minimum(NamedTuple):
    """The result of a minimisation: the score, the objective, and the number of iterations."""

    score: Affine
    objective: float
    n_iter: int
    """Newton steps."""
    stopped: bool = False
    """Whether the report raised StopFit before the minimum was reached."""


def minimise(
    rows: LinearRows,
    positive: npt.NDArray[np.bool_],
    cost: Floats,
    loss: Callable[[Floats], Loss],
    *,
    C: float = 1.0,
    start: Affine | None = None,
    tol: float = TOLERANCE,
    report: Report | None = None,
    signs: Directions | None = None,
) -> Minimum:
    """Minimise ½‖w‖² + C Σ cost_i ℓ(y_i (w·x_i + b)) over w and b, y_i = ±1.

    O(n_rows · n_features) for each conjugate gradient direction of each step.

    rows: those of a table (`TableRows`).
    positive: (n_rows,), bool; y_i = 1 where True, else -1.
    cost: (n_rows,); not negative; a row of cost 0 has no effect.
    loss: callable (margins) -> Loss; ℓ and its derivatives.
    C: above 0.
    start: where to start; w = 0, b = 0 if None.
    tol: end when the gradient is at most this times that at w = 0, b = 0, or when rounding prevents further decrease.
    report: see `Report`.
    signs: (size,), int8; 1 for a coefficient that must not be below 0, -1 for one that must not be above it, 0 for a
        free one. The minimum under these bounds is found by projected Newton steps.
    """
    total = float(cost.sum())
    losses = MarginLosses(np.where(positive, 1.0, -1.0), cost / total, loss)
    return minimise_loss(
        rows, losses, C=C * total, start=start, tol=tol, report=report, signs=signs
    )


def minimise_loss(
    rows: LinearRows,
    loss: "ScoreLoss",
    *,
    C: float = 1.0,
    start: Affine | None = None,
    tol: float = TOLERANCE,
    report: Report | None = None,
    signs: Directions | None = None,
) -> Minimum:
    """Minimise ½‖w‖² + C L over w and b, L a loss of the scores w·x_i + b; for the parameters see `minimise`."""
    assert isinstance(rows, TableRows)
    scale = C  # the objective is divided by this, which may be huge
    risk = _RegularisedLoss(rows, loss, 1.0 / scale)

    def scaled(step: int, objective: float, gradient: float) -> None:
        if report is not None:
            report(step, scale * objective, scale * gradient)

    with one_blas_thread():
        bounds = signs if signs is not None and signs.any() else None
        minimum = risk.minimise(start or risk.origin, tol, scaled, bounds)
    return minimum._replace(objective=scale * minimum.objective)


@dataclass
class LocalLoss:
    """A loss of all rows' scores, evaluated at given scores: value, gradient and Hessian products."""

    value: float
    slope: Floats
    """Derivative by each score. Shape (n_rows,)."""
    curvature: Floats
    """The second derivatives are at most this diagonal matrix, and nearly this. Shape (n_rows,)."""

    def hessian_times(self, change: Floats) -> Floats:
        """Return the Hessian matrix times a change of the scores, shape (n_rows,)."""
        return self.curvature * change


class ScoreLoss(ABC):
    """A convex loss of the scores of all rows."""

    @abstractmethod
    def at(self, scores: Floats) -> LocalLoss:
        """Return the loss evaluated at scores, shape (n_rows,), float64."""


@dataclass
class MarginLosses(ScoreLoss):
    """A loss that is a sum over rows of margins: Σ cost_i ℓ(sign_i s_i)."""

    sign: Floats
    cost: Floats
    loss: Callable[[Floats], Loss]

    def at(self, scores: Floats) -> LocalLoss:
        value, slope, curvature = self.loss(self.sign * scores)
        return LocalLoss(
            float((self.cost * value).sum()), self.cost * self.sign * slope, self.cost * curvature
        )


@dataclass
class _LocalPush(LocalLoss):
    """The p-norm push at given scores; its Hessian is a variance within each class."""

    parts: tuple[Ints, Ints]

    def hessian_times(self, change: Floats) -> Floats:
        bent = np.zeros(len(change))
        for rows in self.parts:
            weight, own = self.curvature[rows], change[rows]
            mean = float((weight * own).sum()) / float(weight.sum())
            bent[rows] = weight * (own - mean)
        return bent


@dataclass
class PushLoss(ScoreLoss):
    """The logarithm of the p-norm push: ln Σ_i p_i e^{-s_i} + (1/r) ln Σ_k q_k e^{r s_k}, divided by r.

    The sums are over positives i and negatives k, whose weights each sum to 1 (Rudin, "The P-Norm Push", JMLR 10,
    2009). With r = 1 it is the logarithm of RankBoost's loss; as r grows, that of the highest negative alone. 0 at w =
    0.
    """

    sample: LinearSample
    push: float

    def at(self, scores: Floats) -> LocalLoss:
        """Return the loss evaluated at scores, without overflow; see `ScoreLoss.at`."""
        value, slope, curvature = 0.0, np.zeros(len(scores)), np.zeros(len(scores))
        parts = self.sample.positives, self.sample.negatives
        for rows, factor in zip(parts, (-1.0, self.push), strict=True):
            exponents = factor * scores[rows]
            highest = float(exponents.max())
            weight = self.sample.weights(rows) * np.exp(exponents - highest)
            total = float(weight.sum())
            scale = float(self.sample.weights(rows).sum())
            value += (highest + math.log(total / scale)) / abs(factor)
            slope[rows] = math.copysign(1.0, factor) * (weight / total)
            curvature[rows] = abs(factor) * (weight / total)
        return _LocalPush(value, slope, curvature, parts)


@dataclass
class _RegularisedLoss:
    """The ridge-penalised objective ½ penalty ‖w‖² + L(w·x_i + b)."""

    rows: TableRows
    loss: ScoreLoss
    penalty: float

    @property
    def origin(self) -> Affine:
        """The score with w = 0 and b = 0."""
        return Affine(np.zeros(self.rows.size), 0.0)

    def minimise(
        self, start: Affine, tol: float, report: Report, signs: Directions | None
    ) -> Minimum:
        """Return the minimum found by Newton steps, projected if coefficients are bounded; see `minimise`.

        Coefficients at or near their bound that the gradient drives to it take a step of their own along the gradient,
        the others a Newton step; what crosses its bound ends there.
        """
        score = start if signs is None else start._replace(w=_within(start.w, signs))
        scores = self._scores(score)
        at = self.loss.at(scores)
        objective = self._objective(score, at)
        preconditioner, n_directions = None, 0
        gradient_at_0 = self._gradient(self.origin, self.loss.at(np.zeros(self.rows.n_rows)))
        length_at_0 = np.sqrt(gradient_at_0.dot(gradient_at_0)) or 1.0
        n_iter = 0
        while n_iter < MAX_STEPS:
            gradient = left = self._gradient(score, at)
            if signs is not None:
                outward = signs * gradient.w > 0.0
                left = gradient._replace(w=np.where(outward & (score.w == 0.0), 0.0, gradient.w))
            length = np.sqrt(left.dot(left))
            if length <= tol * length_at_0:
                break
            if preconditioner is None or n_directions > MANY_DIRECTIONS:
                preconditioner = Preconditioner(self.rows, at.curvature, self.penalty)
            inexact = at, preconditioner, min(0.1, length / length_at_0)
            if signs is None:
                step, n_directions = self._newton_step(gradient, *inexact)
                change, slope = self._scores(step), gradient.dot(step)
            else:
                own_step = gradient.w / preconditioner.diagonal
                moved_w = _within(score.w - own_step, signs)
                near = min(MAX_NEAR, float(np.sqrt(((moved_w - score.w) ** 2).sum())))
                bound = outward & (signs * score.w <= near)
                unbound = gradient._replace(w=np.where(bound, 0.0, gradient.w))
                step, n_directions = self._newton_step(unbound, *inexact, ~bound)
                step = step._replace(w=np.where(bound, -own_step, step.w))
            for halvings in range(MAX_HALVINGS):
                t = 0.5**halvings
                moved = score.moved(t, step)
                if signs is None:
                    moved_scores, fall = scores + t * change, t * slope
                else:
                    moved = moved._replace(w=_within(moved.w, signs))
                    moved_scores = self._scores(moved)
                    fall = gradient.dot(moved.moved(-1.0, score))
                at = self.loss.at(moved_scores)
                value = self._objective(moved, at)
                if value <= objective + ARMIJO * fall + ROUNDING * abs(objective):
                    break
            else:
                break
            is_lower = value < objective
            if not is_lower and signs is None:
                # rounding hides the decrease: go on only if the gradient is shorter
                gradient_there = self._gradient(moved, at)
                if not np.sqrt(gradient_there.dot(gradient_there)) < 0.5 * length:
                    break
            score, scores, objective = moved, moved_scores, value
            n_iter += 1
            try:
                report(n_iter, objective, float(length))
            except StopFit:
                return Minimum(score, objective, n_iter, stopped=True)
            if not is_lower and signs is not None:  # as close as rounding allows
                break
        return Minimum(score, objective, n_iter)

    def _scores(self, score: Affine) -> Floats:
        return self.rows.scores(score.w) + score.b

    def _objective(self, score: Affine, at: LocalLoss) -> float:
        half_square = 0.5 * float((score.w * score.w).sum())
        return self.penalty * half_square + at.value

    def _gradient(self, score: Affine, at: LocalLoss) -> Affine:
        return self._transposed(score, at.slope)

    def _transposed(self, score: Affine, row_weight: Floats) -> Affine:
        w = self.penalty * score.w + self.rows.weighted_sum(row_weight)
        return Affine(w, float(row_weight.sum()))

    def _newton_step(
        self,
        gradient: Affine,
        at: LocalLoss,
        preconditioner: "Preconditioner",
        tol: float,
        free: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Affine, int]:
        """Return the Newton step and the number of conjugate gradient directions. The residual is at most `tol` times
        the gradient.

        `free` marks the coordinates that may move; the gradient is 0 at the others.
        """

        def kept(score: Affine) -> Affine:
            return score if free is None else score._replace(w=np.where(free, score.w, 0.0))

        step, rest = self.origin, self.origin.moved(-1.0, gradient)
        direction = kept(preconditioner.solve(rest))
        square = rest.dot(direction)
        goal = tol**2 * square
        n_directions = 0
        while n_directions < MAX_DIRECTIONS:
            n_directions += 1
            image = kept(self._transposed(direction, at.hessian_times(self._scores(direction))))
            curved = direction.dot(image)
            if not curved > 0.0:  # flat: only b can be, once every row has its margin
                break
            t = square / curved
            step, rest = step.moved(t, direction), rest.moved(-t, image)
            onward = kept(preconditioner.solve(rest))
            before, square = square, rest.dot(onward)
            if square <= goal:
                break
            direction = onward.moved(square / before, direction)
        return step, n_directions


def _within(w: Floats, signs: Directions) -> Floats:
    return np.where(signs * w < 0.0, 0.0, w)


class Preconditioner:
    """An approximate inverse of the Hessian penalty · I + Σ curvature_i (x_i, 1)(x_i, 1)ᵀ."""

    def __init__(self, rows: TableRows, curvature: Floats, penalty: float) -> None:
        self.diagonal = rows.squares(curvature) + penalty
        order = np.argsort(-self.diagonal, kind="stable")
        self._block = np.sort(order[:BLOCK_COORDINATES])
        self._of_b = max(float(curvature.sum()), np.finfo(np.float64).tiny)
        matrix = rows.sampled.products(self._block, rows.sampled_weight(curvature))
        # a rare word may be absent from the sample, but its own second derivative is known
        known = np.append(self.diagonal[self._block], self._of_b)
        np.fill_diagonal(matrix, (1.0 + RIDGE) * np.maximum(np.diag(matrix) + penalty, known))
        self._factor = None
        if np.isfinite(matrix).all():
            with suppress(LinAlgError):  # singular by rounding: the diagonal alone preconditions
                self._factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, score: Affine) -> Affine:
        w, b = score.w / self.diagonal, score.b / self._of_b
        if self._factor is not None:
            known = np.append(score.w[self._block], score.b)
            solution = cho_solve(self._factor, known, check_finite=False)
            w[self._block], b = solution[:-1], float(solution[-1])
        return Affine(w, b)
