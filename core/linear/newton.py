"""Weighted sums of smooth losses, minimised by Newton's method: the classifiers that the SVMs are compared with.

½‖w‖² + C Σ cost_i ℓ(±(w·x_i + b)), b without penalty. A step solves for the Newton direction by conjugate
gradients, two products with the table for each; the search along it is done on cached scores. They are preconditioned
by the second derivatives among the `BLOCK` coordinates that curve most, estimated from a sample of rows, and by the
diagonal for the others: without, a table of words takes hundreds of directions.

References
----------
C.-J. Lin, R. C. Weng and S. S. Keerthi, "Trust region Newton method for logistic regression", JMLR 9, 2008: truncated
Newton steps. Here a step is shortened until the sum falls, in place of a trust region.
C.-Y. Hsia, W.-L. Chiang and C.-J. Lin, "Preconditioned conjugate gradient methods in truncated Newton frameworks for
large-scale linear classification", ACML 2018.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from core.base.ranker import Floats, StopFit

from .blas import one_blas_thread
from .design import Rows, TableRows

# Of the gradient at w = 0, b = 0, what counts as none: the objective is then right to some nine digits.
NO_GRADIENT = 1e-6

# The same where a fit is only to be compared with others, or is one of many.
CLOSE_ENOUGH = 1e-5

MAX_STEPS = 100
MAX_DIRECTIONS = 250
MAX_HALVINGS = 40

# Coordinates whose second derivatives are used with one another, those of others alone.
BLOCK = 512

# A step of more directions than these has the preconditioner estimated anew.
MANY_DIRECTIONS = 20

# What keeps rounding from making the block's matrix singular, of its diagonal.
RIDGE = 1e-9

# Of the fall that the slope promises, the share that a step must bring; and what rounding may take from it.
ENOUGH = 1e-4
ROUNDING = 1e-15

Report = Callable[[int, float, float], None]
"""Called after each step with its number, the objective and the gradient's length; what it raises stops the fit, which
keeps the step if that is StopFit."""


class Loss(NamedTuple):
    """A loss of margins, its slope and its curvature; each of shape (n,)."""

    value: Floats
    slope: Floats
    curvature: Floats


def logistic_loss(margin: Floats) -> Loss:
    """ln(1 + e^-margin)."""
    small = np.exp(-abs(margin))
    share = 1.0 / (1.0 + small)
    value = np.log1p(small) + np.maximum(-margin, 0.0)
    return Loss(value, -np.where(margin < 0.0, share, small * share), small * share * share)


def squared_hinge_loss(margin: Floats) -> Loss:
    """(1 - margin)₊²."""
    short = np.maximum(1.0 - margin, 0.0)
    return Loss(short**2, -2.0 * short, np.where(short > 0.0, 2.0, 0.0))


class Affine(NamedTuple):
    """A linear score w · x + b of coordinates."""

    w: Floats
    b: float

    def moved(self, t: float, other: "Affine") -> "Affine":
        """Add t times another."""
        return Affine(self.w + t * other.w, self.b + t * other.b)

    def dot(self, other: "Affine") -> float:
        """Return the scalar product."""
        return float((self.w * other.w).sum()) + self.b * other.b


class Minimum(NamedTuple):
    """What was found; `stopped` if the report raised StopFit, and this is as far as it came."""

    score: Affine
    objective: float
    n_iter: int
    stopped: bool = False


def minimise(
    rows: Rows,
    positive: npt.NDArray[np.bool_],
    cost: Floats,
    loss: Callable[[Floats], Loss],
    *,
    C: float = 1.0,
    start: Affine | None = None,
    tol: float = NO_GRADIENT,
    report: Report | None = None,
) -> Minimum:
    """Minimise ½‖w‖² + C Σ cost_i ℓ(y_i (w·x_i + b)), y_i = ±1; b is without penalty.

    Costs are not negative; a row of cost 0 is not looked at. The start is 0 if none is given; `tol` is, of the gradient
    at 0, what counts as none. Ends there, or where rounding hides the way. O(n_rows · n_features) for each direction of
    each step's conjugate gradients.
    """
    assert isinstance(rows, TableRows)
    total = float(cost.sum())
    scale = C * total  # the sum is minimised divided by this, which may be huge
    risk = _RegularisedLoss(rows, np.where(positive, 1.0, -1.0), cost / total, 1.0 / scale, loss)

    def scaled(step: int, objective: float, gradient: float) -> None:
        if report is not None:
            report(step, scale * objective, scale * gradient)

    with one_blas_thread():
        found = risk.minimise(start or risk.origin, tol, scaled)
    return found._replace(objective=scale * found.objective)


@dataclass
class _RegularisedLoss:
    """½ penalty ‖w‖² + Σ cost_i ℓ(sign_i (w·x_i + b))."""

    rows: TableRows
    sign: Floats
    cost: Floats
    penalty: float
    loss: Callable[[Floats], Loss]

    @property
    def origin(self) -> Affine:
        """w = 0, b = 0."""
        return Affine(np.zeros(self.rows.size), 0.0)

    def minimise(self, start: Affine, tol: float, report: Report) -> Minimum:
        """Take Newton steps from a start."""
        score, scores = start, self._scores(start)
        at = self._at(scores)
        objective = self._objective(score, at)
        preconditioner, n_directions = None, 0
        at_origin = self._gradient(self.origin, self._at(np.zeros(self.rows.n_rows)))
        first = np.sqrt(at_origin.dot(at_origin)) or 1.0
        n_iter = 0
        while n_iter < MAX_STEPS:
            gradient = self._gradient(score, at)
            length = np.sqrt(gradient.dot(gradient))
            if length <= tol * first:
                break
            curvature = self.cost * at.curvature
            if preconditioner is None or n_directions > MANY_DIRECTIONS:
                preconditioner = Preconditioner(self.rows, curvature, self.penalty)
            step, n_directions = self._newton_step(
                gradient, curvature, preconditioner, min(0.1, length / first)
            )
            change, slope = self._scores(step), gradient.dot(step)
            for halvings in range(MAX_HALVINGS):
                t = 0.5**halvings
                there = score.moved(t, step)
                at = self._at(scores + t * change)
                value = self._objective(there, at)
                if value <= objective + ENOUGH * t * slope + ROUNDING * objective:
                    break
            else:
                break
            if value >= objective:  # rounding hides the fall, unless the gradient is shorter
                ahead = self._gradient(there, at)
                if not np.sqrt(ahead.dot(ahead)) < 0.5 * length:
                    break
            score, scores, objective = there, scores + t * change, value
            n_iter += 1
            try:
                report(n_iter, objective, float(length))
            except StopFit:
                return Minimum(score, objective, n_iter, stopped=True)
        return Minimum(score, objective, n_iter)

    def _scores(self, score: Affine) -> Floats:
        return self.rows.scores(score.w) + score.b

    def _at(self, scores: Floats) -> Loss:
        return self.loss(self.sign * scores)

    def _objective(self, score: Affine, at: Loss) -> float:
        half_square = 0.5 * float((score.w * score.w).sum())
        return self.penalty * half_square + float((self.cost * at.value).sum())

    def _gradient(self, score: Affine, at: Loss) -> Affine:
        return self._transposed(score, self.cost * self.sign * at.slope)

    def _transposed(self, score: Affine, share: Floats) -> Affine:
        """Return penalty · w + Σ share_i x_i, and Σ share_i."""
        return Affine(self.penalty * score.w + self.rows.weighted_sum(share), float(share.sum()))

    def _newton_step(
        self, gradient: Affine, curvature: Floats, preconditioner: "Preconditioner", share: float
    ) -> tuple[Affine, int]:
        """Solve for the Newton step, up to a share of the gradient, by conjugate gradients; count their directions."""
        step, rest = self.origin, self.origin.moved(-1.0, gradient)
        direction = preconditioner.solve(rest)
        square = rest.dot(direction)
        goal = share**2 * square
        n_directions = 0
        while n_directions < MAX_DIRECTIONS:
            n_directions += 1
            image = self._transposed(direction, curvature * self._scores(direction))
            curved = direction.dot(image)
            if not curved > 0.0:  # flat: only b can be, once no row is short of its margin
                break
            t = square / curved
            step, rest = step.moved(t, direction), rest.moved(-t, image)
            onward = preconditioner.solve(rest)
            before, square = square, rest.dot(onward)
            if square <= goal:
                break
            direction = onward.moved(square / before, direction)
        return step, n_directions


class Preconditioner:
    """About the inverse of the second derivatives, penalty · I + Σ curvature_i (x_i, 1)(x_i, 1)ᵀ."""

    def __init__(self, rows: TableRows, curvature: Floats, penalty: float) -> None:
        step = rows.sampling_step
        self._diagonal = rows.squares(curvature) + penalty
        order = np.argsort(-self._diagonal, kind="stable")
        self._block = np.sort(order[:BLOCK])
        self._of_b = max(float(curvature.sum()), np.finfo(np.float64).tiny)
        matrix = rows.sampled.products(self._block, step * curvature[::step])
        # rare words may be absent from the sample: their own second derivative is known all the same
        known = np.append(self._diagonal[self._block], self._of_b)
        np.fill_diagonal(matrix, (1.0 + RIDGE) * np.maximum(np.diag(matrix) + penalty, known))
        self._factor = None
        if np.isfinite(matrix).all():
            with suppress(LinAlgError):  # by the sample's rounding; the diagonal is left
                self._factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, score: Affine) -> Affine:
        """Apply it."""
        w, b = score.w / self._diagonal, score.b / self._of_b
        if self._factor is not None:
            known = np.append(score.w[self._block], score.b)
            found = cho_solve(self._factor, known, check_finite=False)
            w[self._block], b = found[:-1], float(found[-1])
        return Affine(w, b)
