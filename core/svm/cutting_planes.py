"""Cutting planes with a line search: min ½‖w - center‖² + C R(w) for any convex R that gives planes.

R lies above each plane that touches it, so the least of ½‖w - center‖² + C max of planes is a lower bound of the
objective, and the distance from the best objective found is a true gap. Each iteration solves that small programme
through its dual, searches the line from the best point to its solution on cached scores, which takes no product with
the table, and adds two planes: at the solution, which makes the bound rise, and where the search ended, which is where
planes are wanted (OCAS).

Where C is large the model is poor away from its planes, and its solutions leap about. So they are held to the best
point by ρ/2 ‖w - best‖² (a proximal bundle method), ρ growing with the iterations: the few that an easy programme
takes hardly feel it. The sum of both squares is one, about a center between the two, so the small programme stays what
it was. The bound is that of the dual without ρ, which any u of the simplex gives.

Words make some hundred coordinates of very different spread, and planes alone learn of R's curvature one direction at a
time. R bends with the variance of the differences of scores, so a programme that is not soon solved is held in that
metric: by ρ/2 of the variance along w - best, whose main axes are found once from some rows. A tenth of the iterations
is then enough where C is large.

Planes bound R whatever C and center are: they are kept from one programme to the next.

References
----------
T. Joachims, "A support vector method for multivariate performance measures", ICML 2005.
V. Franc and S. Sonnenburg, "Optimized cutting plane algorithm for support vector machines", ICML 2008: the line search
and the second plane.
K. C. Kiwiel, "Proximity control in bundle methods for convex nondifferentiable minimization", Mathematical Programming
46, 1990.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.ranker import Floats

from .design import Spread
from .line import Line, Point, Trial, search
from .problem import Plane, Problem
from .simplex_qp import solve_simplex_qp

# A plane that has been idle for so many iterations is dropped.
MOST_IDLE = 4

# ρ grows by so much each iteration, up to so much.
RISE, MOST_HOLD = 0.5, 30.0

# From this iteration on a programme is worth the axes of the variance, and ρ in their metric: of C by the deviation of
# the scores of the negatives. It is rounded to a power of 2, so that the products of planes need not be made anew.
LATE = 5
HOLD_BY_SPREAD, MOST_RHO = 0.05, 1e30

# Of the largest share, from which a plane is in use.
IN_USE = 1e-7

Report = Callable[[int, float, float], None]
"""Called each iteration with the number of it, the objective and the gap; what it raises stops the solver."""


class Solution(NamedTuple):
    """The best point found.

    Attributes
    ----------
    point : Point
    objective : float
        ½‖w - center‖² + C R(w).
    gap : float
        The objective less a lower bound of the optimum.
    n_iter : int
    converged : bool
        Whether the gap is as small as was asked.
    """

    point: Point
    objective: float
    gap: float
    n_iter: int
    converged: bool


class ProximalTerm(NamedTuple):
    """The squares' weights once ½‖w - center‖² and what holds w to a point are one sum: scale · metric.

    Attributes
    ----------
    scale : float
    metric : ndarray of shape (size,), float64
    """

    scale: float
    metric: Floats


class Planes:
    """Planes, and the products of their gradients.

    Parameters
    ----------
    size : int

    Attributes
    ----------
    losses : ndarray of shape (k,), float64
    gradients : ndarray of shape (k, size), float64
    gram : ndarray of shape (k, k), float64
        The products of gradients, each coordinate's by its metric.
    """

    def __init__(self, size: int) -> None:
        self.losses, self.gradients, self.gram = np.zeros(0), np.zeros((0, size)), np.zeros((0, 0))
        self._metric = np.ones(size)

    def add(self, plane: Plane) -> None:
        """Put a plane at the end."""
        self.gradients = np.vstack([self.gradients, plane.gradient])
        self.losses = np.append(self.losses, plane.loss)
        products = (self.gradients * (plane.gradient / self._metric)).sum(axis=1)
        gram = np.empty((len(products), len(products)))
        gram[:-1, :-1] = self.gram
        gram[-1], gram[:, -1] = products, products
        self.gram = gram

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Drop the others."""
        if not kept.all():
            self.losses, self.gradients = self.losses[kept], self.gradients[kept]
            self.gram = np.ascontiguousarray(self.gram[np.ix_(kept, kept)])

    def rotate(self, spread: Spread) -> None:
        """Write the gradients along the axes of a spread."""
        self.gradients = spread.rotated(self.gradients)

    def measure(self, metric: Floats) -> None:
        """Divide each coordinate's products by another number."""
        if not np.array_equal(metric, self._metric):
            self._metric = metric
            self.gram = (self.gradients / metric) @ self.gradients.T


class CuttingPlanes:
    """A problem's planes, kept from one programme to the next.

    Parameters
    ----------
    problem : Problem

    Notes
    -----
    Without line search the method takes O(C/ε) iterations (paper 4, §4.2); with it far fewer in practice. An iteration
    is one product with the table, some evaluations of R, and two sums of rows.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._planes = Planes(problem.size)
        self._idle = np.zeros(0, dtype=np.int64)
        self._spread: Spread | None = None
        self.add(Plane(0.0, np.zeros(problem.size)))  # R >= 0

    def point(self, w: Floats) -> Point:
        """Score the rows under w, and evaluate R; lay down the plane there."""
        scores = self.problem.scores(w)
        return self.settle(Trial(w, scores, self.problem.at(scores)))

    def stretch(self, point: Point, factor: float, C: float) -> Point:
        """Go on from w = 0 through a point, to so many times as far; stay where ½‖w‖² + C R(w) is no less there."""
        scores = point.scores.scaled(factor)
        trial = Trial(factor * point.w, scores, self.problem.at(scores))
        there = _half_square(trial.w) + C * trial.violations.value
        return self.settle(trial) if there < _half_square(point.w) + C * point.risk else point

    def settle(self, trial: Trial) -> Point:
        """Lay down the plane that touches R where it was tried."""
        plane = self.problem.plane(trial.violations)
        self.add(plane)
        return Point(trial.w, trial.scores, trial.violations.value, plane.gradient)

    def add(self, plane: Plane) -> None:
        """Keep a plane."""
        if self._spread is not None:
            plane = plane._replace(gradient=self._spread.rotated(plane.gradient))
        self._planes.add(plane)
        self._idle = np.append(self._idle, 0)

    def solve(
        self,
        C: float,
        center: Floats,
        start: Point,
        good_enough: Callable[[float, float], bool],
        *,
        max_iter: int,
        report: Report | None = None,
    ) -> Solution:
        """Minimise ½‖w - center‖² + C R(w).

        Parameters
        ----------
        C : float
            Above 0.
        center : ndarray of shape (size,), float64
        start : Point
        good_enough : callable (objective, gap) -> bool
            When to stop.
        max_iter : int
        report : callable, optional

        Returns
        -------
        Solution
            Never worse than the start.
        """
        best = start
        objective = _half_square(best.w - center) + C * best.risk
        bound, widest = -np.inf, 0.0
        for n_iter in range(1, max_iter + 1):
            if n_iter == LATE and self._spread is None:
                self._find_spread()
            # of the widest so far: near w = 0, where the negatives come together, R is a cone, and no hold would do
            widest = max(widest, self.problem.deviation(best.scores))
            hold = self._hold(n_iter, C, widest)
            target, below = self._solve_model(C, center, hold, best.w)
            bound = max(bound, below)
            gap = max(objective - bound, 0.0)
            if report is not None:
                report(n_iter, objective, gap)
            if good_enough(objective, gap):
                return Solution(best, objective, gap, n_iter, True)
            if not (abs(target - best.w) > 0.0).any():
                break  # as near as floating point comes
            best, objective = self.descend(best, self.point(target), C, center)
        return Solution(best, objective, max(objective - bound, 0.0), n_iter, False)

    def descend(self, start: Point, end: Point, C: float, center: Floats) -> tuple[Point, float]:
        """Search the line between two points; give the better of its best point and the first, and its objective."""
        line = Line(self.problem, start, end, C, center)
        found = search(line)
        if found is None:
            return start, line.first.value
        at, trial = found
        point = end if trial is None else self.settle(trial)
        return (point, at.value) if at.value < line.first.value else (start, line.first.value)

    def _find_spread(self) -> None:
        self._spread = self.problem.find_spread()
        if self._spread is not None:
            self._planes.rotate(self._spread)

    def _hold(self, n_iter: int, C: float, deviation: float) -> ProximalTerm:
        """Give what holds a solution to the best point; nothing in the first iteration."""
        if self._spread is None:
            return ProximalTerm(
                1.0 + min(RISE * (n_iter - 1), MOST_HOLD), np.ones(self.problem.size)
            )
        asked = HOLD_BY_SPREAD * C / deviation if n_iter > 1 and deviation > 0.0 else 0.0
        rho = 2.0 ** round(np.log2(min(asked, MOST_RHO))) if asked > 0.0 else 0.0
        return ProximalTerm(1.0, 1.0 + rho * self._spread.variance)

    def _solve_model(
        self, C: float, center: Floats, hold: ProximalTerm, best: Floats
    ) -> tuple[Floats, float]:
        """Minimise the model and what holds w to a point; give the solution, and a lower bound of the model alone."""
        planes, near, spread = self._planes, C / hold.scale, self._spread
        if spread is not None:
            center, best = spread.rotated(center), spread.rotated(best)
        planes.measure(hold.metric)
        weight = hold.scale * hold.metric
        between = (center + (weight - 1.0) * best) / weight
        heights = planes.losses + (planes.gradients * between).sum(axis=1)
        u = solve_simplex_qp(near * near * planes.gram, -near * heights)
        pull = (u[:, None] * planes.gradients).sum(axis=0)
        loss, slope = float((u * planes.losses).sum()), float((pull * center).sum())
        self._drop_idle(u)
        target = between - near * pull / hold.metric
        if spread is not None:
            target = spread.rotated_back(target)
        return target, C * (loss + slope) - _half_square(C * pull)

    def _drop_idle(self, u: Floats) -> None:
        self._idle = np.where(u > IN_USE * u.max(), 0, self._idle + 1)
        kept = self._idle <= MOST_IDLE
        kept[0] = True
        self._planes.keep(kept)
        self._idle = self._idle[kept]


def _half_square(w: Floats) -> float:
    return 0.5 * float((w * w).sum())
