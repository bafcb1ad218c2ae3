"""The hinge surrogate of a window as a difference of convex functions, lowered step by step (CCCP).

    R(w) = (j_β R_β(w) - j_α R_α(w)) / (j_β - j_α),

R_β and R_α the hinge surrogates of [0, β] and [0, α], both convex. A step puts in the place of -R_α the plane that
touches it, and minimises the convex rest. The plane is linear in w, so it only moves the center of the programme:
½‖w - c‖² - C k g·w is ½‖w - (c + C k g)‖² but for a constant, and the solver and its planes serve every step.

The paper's Algorithm 4 prints other constants, with which the objective may rise: its line 8 lacks j_α/(j_β - j_α) and
the reference ordering, line 10 lacks C, line 11 the regulariser and the sign of the difference.

References
----------
A. L. Yuille and A. Rangarajan, "The concave-convex procedure", Neural Computation 15, 2003.
H. Narasimhan and S. Agarwal, arXiv:1605.04337: eq. 9, §6, Algorithm 4.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from core.ranker import Floats

from .cutting_planes import CuttingPlanes, Solution
from .fitting import Progress, Sample, Trainer
from .line import Point
from .surrogate import Window, window_of

# A step that lowers the objective by no more of C is the last: of the tolerance of each programme.
LEAST_FALL = 10.0

MOST_STEPS = 100

# Of what a step has lowered its programme by, what it may leave: the next one starts anew anyhow.
SLACK = 0.1


class _Shares(NamedTuple):
    """j_β/(j_β - j_α) and j_α/(j_β - j_α)."""

    upper: float
    lower: float


class DifferenceTrainer:
    """Solves a sample's programmes of the hinge surrogate of one window; used as `Trainer` is.

    Parameters
    ----------
    sample : Sample
    window : (float, float)
        Of false positive rates.
    tol : float
    max_iter : int
    progress : Progress

    Attributes
    ----------
    collapsed : bool
        False: R is not convex, and what is found says whether it is better than w = 0.
    """

    collapsed = False
    convex = False

    def __init__(
        self,
        sample: Sample,
        window: tuple[float, float],
        *,
        tol: float,
        max_iter: int,
        progress: Progress,
    ) -> None:
        self.sample = sample
        self._tol, self._max_iter, self._progress = tol, max_iter, progress
        low, high, total = window_of(sample.weights(sample.negatives), *window)
        self._shares = _Shares(high / (high - low), low / (high - low))
        self._planes = CuttingPlanes(sample.problem(Window(0.0, high, total)))
        self._lower = sample.problem(Window(0.0, low, total)) if low > 0.0 else None

    def free(self, costs: Iterable[float], start: Floats | None = None) -> Iterator[Solution]:
        """Lower ½‖w‖² + C R(w) for each C, from a start or else from the machine for the whole AUC with that C."""
        auc = Trainer(
            self.sample,
            (0.0, 1.0),
            naive=False,
            tol=self._tol,
            max_iter=self._max_iter,
            progress=self._progress,
        )
        if auc.collapsed:
            return
        of_auc: Floats | None = None
        for C in costs:
            begin = start
            if begin is None:
                begin = of_auc = next(auc.free((C,), of_auc)).point.w
            yield self.descend(C, np.zeros(len(begin)), self._planes.point(begin))

    def anchored(self, costs: Iterable[float], center: Floats) -> Iterator[Solution]:
        """Lower ½‖w - center‖² + C R(w) for each C, from the center on; ends where w = 0 would do as well."""
        point = self._planes.point(center)
        for C in costs:
            solution = self.descend(C, center, point)
            at_origin = 0.5 * float((center * center).sum()) + C
            if at_origin - solution.objective <= self._tol * C:
                return
            point = solution.point
            yield solution

    def critical_fpr(self) -> float | None:
        """None: where R is not convex, no window is proven to collapse."""
        return None

    def descend(self, C: float, center: Floats, point: Point) -> Solution:
        """Take steps from a point until one hardly lowers ½‖w - center‖² + C R(w); keep the best point."""
        value = self.value(C, center, point)
        gap, converged, n_steps = 0.0, False, 0
        goal = self._tol * C
        while not converged and n_steps < min(MOST_STEPS, self._max_iter):
            n_steps += 1
            moved = center + C * self._shares.lower * self.lower_gradient(point)
            solution = self._planes.solve(
                C * self._shares.upper,
                moved,
                point,
                _enough(goal),
                max_iter=self._max_iter,
                report=self._progress.start(goal),
            )
            gap, before = solution.gap, value
            reached = self.value(C, center, solution.point)
            if reached < value:
                point, value = solution.point, reached
            converged = gap <= goal and before - reached <= LEAST_FALL * goal
            converged |= gap <= goal and self._lower is None
            if solution.n_iter >= self._max_iter:  # no step further would get more
                break
        self._progress.end()
        return Solution(point, value, gap, n_steps, converged)

    def value(self, C: float, center: Floats, point: Point) -> float:
        """Give ½‖w - center‖² + C R(w)."""
        risk = self._shares.upper * point.risk
        if self._lower is not None:
            risk -= self._shares.lower * self._lower.at(point.scores).value
        step = point.w - center
        return 0.5 * float((step * step).sum()) + C * risk

    def lower_gradient(self, point: Point) -> Floats:
        """Give the gradient of the plane that touches R_α at a point."""
        if self._lower is None:
            return np.zeros(len(point.w))
        return self._lower.plane(self._lower.at(point.scores)).gradient


def _enough(goal: float) -> Callable[[float, float], bool]:
    """Say that a step may end: at its minimum, or where most of what there is to fall has fallen."""
    first: list[float] = []

    def good_enough(objective: float, gap: float) -> bool:
        first.append(objective)
        return gap <= max(goal, SLACK * (first[0] - objective))

    return good_enough
