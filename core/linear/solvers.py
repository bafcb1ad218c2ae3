"""The solvers of one window's objective ½‖w - center‖² + C R(w), and their progress.

`ConvexSolver` minimises it for a convex surrogate, by cutting planes. The other two find a local minimum of a risk that
is not convex, from the machine for the whole AUC: `DifferenceSolver` of the hinge loss of a window, `SigmoidSolver` of
the area with smooth steps, by L-BFGS.

The hinge surrogate of a window is a difference of convex functions (CCCP),

    R(w) = (j_β R_β(w) - j_α R_α(w)) / (j_β - j_α),

R_β and R_α the hinge surrogates of [0, β] and [0, α], both convex. A step replaces -R_α by its tangent plane, and
minimises the convex rest. The plane is linear in w, so it only moves the center of the program: ½‖w - c‖² - C k g·w is
½‖w - (c + C k g)‖² plus a constant. So one solver and its planes serve every step.

The paper's Algorithm 4 prints other constants, with which the objective may rise: its line 8 lacks j_α/(j_β - j_α) and
the reference ordering, line 10 lacks C, line 11 the regulariser and the sign of the difference.

References
----------
A. L. Yuille and A. Rangarajan, "The concave-convex procedure", Neural Computation 15, 2003.
H. Narasimhan and S. Agarwal, arXiv:1605.04337: eq. 9, §6, Algorithm 4.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from core.base.monotone import Directions
from core.base.ranker import Callback, Floats
from core.metrics.window import WHOLE

from .cutting_planes import (
    CuttingPlanes,
    Point,
    Report,
    Solution,
    find_descent_direction,
    half_square,
    leave_origin,
)
from .design import LinearSample
from .surrogates import (
    MassWindow,
    SigmoidSurrogate,
    Surrogate,
    TopSurrogate,
    problem_of,
    window_of,
)

# Stands for the highest negative alone, whatever its weight.
TOP = (0.0, 0.0)

# Fraction of the greatest possible gain over w = 0 that a solution must be proven to have: less may be noise.
MIN_PROVEN_GAIN = 0.9

# Directions of descent tried for one window in the search for the least fpr_max that does not collapse.
MAX_CRITICAL_DIRECTIONS = 50

# A difference of convex functions ends with the step that decreases the objective by at most this multiple of the
# tolerance of its convex programs: less is within their error.
MIN_DECREASE = 10.0

# Steps of a difference of convex functions.
MAX_STEPS = 100

# A step may leave this fraction of its own decrease to the next one.
STEP_SLACK = 0.1

# L-BFGS ends with the step that decreases the objective by at most this fraction of tol · C.
LAST_DECREASE = 0.1

# Steps that are reported of each program.
REPORTED_STEPS = 100


class Progress:
    """Reports the progress of a fit to a callback, from the logarithm of each optimisation problem's gap."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self._n_programs, self._done = 1, 0
        self._step = 0
        self._first_gap = math.nan

    def plan(self, n_programs: int) -> None:
        self._n_programs = n_programs

    def start(self, goal: float) -> Report:
        """Return the progress function of the next optimisation problem, which ends when its gap is at most `goal`."""
        self._first_gap = math.nan

        def report(n_iter: int, objective: float, gap: float) -> None:
            if math.isnan(self._first_gap):
                self._first_gap = max(gap, goal)
            whole = math.log(self._first_gap / goal)
            done = math.log(self._first_gap / max(gap, goal)) / whole if whole > 0.0 else 1.0
            step = REPORTED_STEPS * self._done + int(
                (REPORTED_STEPS - 1) * min(max(done, 0.0), 1.0)
            )
            self._report(step, {"loss": objective, "gap": gap, "iteration": float(n_iter)})

        return report

    def search(self) -> None:
        self._callback(self._step, REPORTED_STEPS * self._n_programs, {})

    def end(self) -> None:
        self._done += 1

    def _report(self, step: int, info: Mapping[str, float]) -> None:
        of = REPORTED_STEPS * self._n_programs
        self._step = min(max(self._step, step, 1), of)
        self._callback(self._step, of, info)

    def finish(self, objective: float, gap: float, n_iter: int) -> None:
        of = REPORTED_STEPS * self._n_programs
        self._report(of, {"loss": objective, "gap": gap, "iteration": float(n_iter)})


class SolverLimits(NamedTuple):
    """The tolerance, maximum iterations and required coefficient signs of a solver."""

    tol: float
    max_iter: int
    signs: Directions | None = None


class Solver(ABC):
    """Base class of solvers of ½‖w - center‖² + C R(w) for one sample and window."""

    convex: ClassVar[bool] = False
    """Whether R is convex: a solution's gap then bounds its distance from the minimum."""

    collapsed: bool
    """Whether w = 0 is the optimum for every C; if R is not convex, for the machine for the whole AUC, the start."""

    def __init__(
        self,
        sample: LinearSample,
        window: tuple[float, float],
        limits: SolverLimits,
        progress: Progress,
    ) -> None:
        self.sample = sample
        self._limits, self._progress = limits, progress
        self._window = window_of(sample.weights(sample.negatives), *window)

    @abstractmethod
    def free(self, costs: Iterable[float], start: Floats | None = None) -> Iterator[Solution]:
        """Yield the solution of ½‖w‖² + C R(w) for each C; the problem must not have collapsed to w = 0."""

    @abstractmethod
    def descend(self, C: float, center: Floats, start: Point) -> Solution:
        """Return a solution of ½‖w - center‖² + C R(w), no worse than the start."""

    @abstractmethod
    def point(self, w: Floats) -> Point:
        """Return R and its gradient at w."""

    def anchored(self, costs: Iterable[float], center: Floats) -> Iterator[Solution]:
        """Yield the solution of ½‖w - center‖² + C R(w) for each C; end at the first C for which w = 0 is as good."""
        point = self.point(center)
        for C in costs:
            solution = self.descend(C, center, point)
            gain = half_square(center) + C - solution.objective  # over w = 0
            if gain <= (solution.gap if self.convex else self._limits.tol * C):
                return
            point = solution.point
            yield solution

    def critical_fpr(self) -> float | None:
        """Return the least fpr_max for an optimum other than w = 0, to 2 %; None: none exists, or R is not convex."""
        return None


class ConvexSolver(Solver):
    """Solver for a convex surrogate by cutting planes: `TopSurrogate` for `TOP`, else the tight or the naive one."""

    convex = True

    def __init__(
        self,
        sample: LinearSample,
        window: tuple[float, float],
        limits: SolverLimits,
        progress: Progress,
        *,
        naive: bool = False,
    ) -> None:
        super().__init__(sample, window, limits, progress)
        self._naive = naive
        kind = TopSurrogate if window == TOP else Surrogate
        self._planes = CuttingPlanes(
            problem_of(sample, self._window, kind, naive=naive), limits.signs
        )
        self._descent = find_descent_direction(self._planes, report=progress.search)
        self.collapsed = self._descent is None

    def free(self, costs: Iterable[float], start: Floats | None = None) -> Iterator[Solution]:
        """Yield the solution of ½‖w‖² + C R(w) for each C; see `Solver.free`.

        A program also goes on until it has 90 % of the possible gain over w = 0: for a small C the tolerance alone
        would accept noise.
        """
        assert self._descent is not None
        point = None if start is None else self.point(start)
        center = np.zeros(self._planes.problem.size)
        before = math.nan
        for C in costs:
            if point is None:
                point = leave_origin(self._planes, C, self._descent)
            elif before < C:  # while every pair is inside its margin, w grows as C does
                point = self._planes.stretch(point, C / before, C)
            before = C

            def is_sure(objective: float, gap: float, C: float = C) -> bool:
                most = (1.0 / MIN_PROVEN_GAIN - 1.0) * (C - objective)
                return gap <= self._limits.tol * C and gap <= most

            solution = self._solve(C, center, point, is_sure)
            point = solution.point
            yield solution

    def descend(self, C: float, center: Floats, start: Point) -> Solution:
        return self._solve(C, center, start, lambda _, gap: gap <= self._limits.tol * C)

    def point(self, w: Floats) -> Point:
        """Return R and its gradient at w; add the plane there."""
        return self._planes.point(w)

    def _solve(
        self, C: float, center: Floats, start: Point, good_enough: Callable[[float, float], bool]
    ) -> Solution:
        tol, max_iter, _ = self._limits
        report = self._progress.start(tol * C)
        solution = self._planes.solve(
            C, center, start, good_enough, max_iter=max_iter, report=report
        )
        self._progress.end()
        return solution

    def critical_fpr(self) -> float | None:
        low, high, total = self._window

        def collapses(mass: float) -> bool:
            window = MassWindow(low, mass, total)
            planes = CuttingPlanes(
                problem_of(self.sample, window, naive=self._naive), self._limits.signs
            )
            found = find_descent_direction(planes, MAX_CRITICAL_DIRECTIONS, self._progress.search)
            return found is None

        if high >= total or collapses(total):
            return None
        below, above = high, total
        while above > 1.02 * below:
            middle = float(np.sqrt(below * above))
            if collapses(middle):
                below = middle
            else:
                above = middle
        return above / total


class LocalSolver(Solver):
    """Base class of solvers that find a local minimum of a nonconvex risk, starting from the SVM for the AUC."""

    def __init__(
        self,
        sample: LinearSample,
        window: tuple[float, float],
        limits: SolverLimits,
        progress: Progress,
    ) -> None:
        super().__init__(sample, window, limits, progress)
        self._auc = ConvexSolver(sample, WHOLE, limits, progress)
        self.collapsed = self._auc.collapsed

    def free(self, costs: Iterable[float], start: Floats | None = None) -> Iterator[Solution]:
        """Yield a solution of ½‖w‖² + C R(w) for each C, started at `start` or at the AUC's SVM with that C."""
        of_auc: Floats | None = None
        for C in costs:
            begin = start
            if begin is None:
                begin = of_auc = next(self._auc.free((C,), of_auc)).point.w
            yield self.descend(C, np.zeros(len(begin)), self.point(begin))


class Weights(NamedTuple):
    """The weights in a difference of two convex risks: R = upper · R_β - lower · R_α."""

    upper: float
    """j_β/(j_β - j_α)."""
    lower: float
    """j_α/(j_β - j_α)."""


class DifferenceSolver(LocalSolver):
    """Solver for the hinge loss of a window (CCCP); the gap reported is that of the last convex problem."""

    def __init__(
        self,
        sample: LinearSample,
        window: tuple[float, float],
        limits: SolverLimits,
        progress: Progress,
    ) -> None:
        super().__init__(sample, window, limits, progress)
        low, high, total = self._window
        self.weights = Weights(high / (high - low), low / (high - low))
        self._planes = CuttingPlanes(problem_of(sample, MassWindow(0.0, high, total)), limits.signs)
        self._lower = problem_of(sample, MassWindow(0.0, low, total)) if low > 0.0 else None

    def point(self, w: Floats) -> Point:
        """Return R_β and its gradient at w; add the plane there."""
        return self._planes.point(w)

    def descend(self, C: float, center: Floats, start: Point) -> Solution:
        """Return the best point of CCCP steps from a start; they end when one gains too little."""
        tol, max_iter, _ = self._limits
        point, value = start, self.value(C, center, start)
        gap, converged, n_steps = 0.0, False, 0
        goal = tol * C
        while not converged and n_steps < min(MAX_STEPS, max_iter):
            n_steps += 1
            moved = center + C * self.weights.lower * self.lower_gradient(point)
            solution = self._planes.solve(
                C * self.weights.upper,
                moved,
                point,
                _enough(goal),
                max_iter=max_iter,
                report=self._progress.start(goal),
            )
            gap, before = solution.gap, value
            reached = self.value(C, center, solution.point)
            if reached < value:
                point, value = solution.point, reached
            converged = gap <= goal and before - reached <= MIN_DECREASE * goal
            converged |= gap <= goal and self._lower is None
            if solution.n_iter >= max_iter:  # no further step would get more
                break
        self._progress.end()
        return Solution(point, value, gap, n_steps, converged)

    def value(self, C: float, center: Floats, point: Point) -> float:
        risk = self.weights.upper * point.risk
        if self._lower is not None:
            risk -= self.weights.lower * self._lower.at(point.scores).value
        return half_square(point.w - center) + C * risk

    def lower_gradient(self, point: Point) -> Floats:
        if self._lower is None:
            return np.zeros(len(point.w))
        return self._lower.plane(self._lower.at(point.scores)).gradient


def _enough(goal: float) -> Callable[[float, float], bool]:
    """Return the stopping rule of a CCCP step: solved to `goal`, or a gap small beside the step's decrease."""
    first: list[float] = []

    def good_enough(objective: float, gap: float) -> bool:
        first.append(objective)
        return gap <= max(goal, STEP_SLACK * (first[0] - objective))

    return good_enough


def bounds_of(signs: Directions | None) -> list[tuple[float | None, float | None]] | None:
    """Return the coefficient bounds, in scipy's form, that enforce the required signs; None without signs."""
    if signs is None or not signs.any():
        return None
    bounds: dict[int, tuple[float | None, float | None]] = {
        0: (None, None), 1: (0.0, None), -1: (None, 0.0)
    }  # fmt: skip
    return [bounds[sign] for sign in signs.tolist()]


class SigmoidSolver(LocalSolver):
    """Solver for the sigmoid-smoothed partial AUC, by L-BFGS.

    The gap is not known; the last step's decrease of the objective is reported in its place.
    """

    def __init__(
        self,
        sample: LinearSample,
        window: tuple[float, float],
        limits: SolverLimits,
        progress: Progress,
    ) -> None:
        super().__init__(sample, window, limits, progress)
        self.problem = problem_of(sample, self._window, SigmoidSurrogate)

    def point(self, w: Floats) -> Point:
        scores = self.problem.scores(w)
        violations = self.problem.at(scores)
        return Point(w.copy(), scores, violations.value, self.problem.plane(violations).gradient)

    def descend(self, C: float, center: Floats, start: Point) -> Solution:
        """Return the best point that L-BFGS sees; its `gap` is tol · C, below which a gain does not count."""
        from scipy.optimize import minimize

        tol, max_iter, signs = self._limits
        best, value = start, half_square(start.w - center) + C * start.risk

        def objective(w: Floats) -> tuple[float, Floats]:
            nonlocal best, value
            here = self.point(w)
            here_value = half_square(w - center) + C * here.risk
            if here_value < value:
                best, value = here, here_value
            return here_value / C, (w - center) / C + here.gradient

        goal = LAST_DECREASE * tol
        report = self._progress.start(goal * C)
        lowest, n_iter = value / C, 0

        def report_step(intermediate_result: Any) -> None:
            nonlocal lowest, n_iter
            n_iter += 1
            reached = float(intermediate_result.fun)
            report(n_iter, C * reached, C * max(lowest - reached, 0.0))
            lowest = min(lowest, reached)

        result = minimize(
            objective,
            start.w,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds_of(signs),
            callback=report_step,
            options={"maxiter": max_iter, "ftol": goal, "gtol": 1e-2 * goal},
        )
        self._progress.end()
        return Solution(best, value, tol * C, n_iter, result.nit < max_iter)
