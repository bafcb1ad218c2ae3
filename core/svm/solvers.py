"""The solvers of one window's objective ½‖w - center‖² + C R(w), and how far each has come.

`ConvexSolver` minimises it with a convex surrogate, by cutting planes. The other two lower one that is not convex, from
the machine for the whole AUC on, to a local minimum: `DifferenceSolver` the hinge loss of a window, `SigmoidSolver` the
area with smooth steps, by L-BFGS.

The hinge surrogate of a window is a difference of convex functions (CCCP),

    R(w) = (j_β R_β(w) - j_α R_α(w)) / (j_β - j_α),

R_β and R_α the hinge surrogates of [0, β] and [0, α], both convex. A step puts in the place of -R_α the plane that
touches it, and minimises the convex rest. The plane is linear in w, so it only moves the center of the program:
½‖w - c‖² - C k g·w is ½‖w - (c + C k g)‖² but for a constant, and the solver and its planes serve every step.

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

from core.base.ranker import Callback, Floats
from core.linear.design import Sample

from .cutting_planes import (
    CuttingPlanes,
    Point,
    Report,
    Solution,
    find_descent_direction,
    half_square,
    leave_origin,
)
from .surrogates import Problem, SigmoidSurrogate, Window, problem_of, window_of

WHOLE = (0.0, 1.0)

# Of what can be gained over w = 0, the share that a solution must be proven to gain.
SURE = 0.9

# Directions to try at one mass, in the search for the least that would not collapse.
CRITICAL_DIRECTIONS = 50

# Of a difference: a step that lowers the objective by no more of C than so many times the tolerance of each program is
# the last; the most steps; and of what a step has lowered its program by, what it may leave to the next.
MIN_FALL, MAX_STEPS, SLACK = 10.0, 100, 0.1

# Of the sigmoid's tolerance, the fall of the objective in a step, over C, that is the last.
LAST_FALL = 0.1

# Steps that are told of a program.
STEPS = 100


class Progress:
    """Tells a callback how far a fit has come: the gap's way to its goal, program by program."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self._n_programs, self._done = 1, 0
        self._step = 0
        self._first_gap = math.nan

    def plan(self, n_programs: int) -> None:
        """Say how many programs are to be solved."""
        self._n_programs = n_programs

    def start(self, goal: float) -> Report:
        """Return what the solver of the next program, which ends at a gap of `goal`, reports to."""
        self._first_gap = math.nan

        def report(n_iter: int, objective: float, gap: float) -> None:
            if math.isnan(self._first_gap):
                self._first_gap = max(gap, goal)
            way = math.log(self._first_gap / goal)
            come = math.log(self._first_gap / max(gap, goal)) / way if way > 0.0 else 1.0
            at = STEPS * self._done + int((STEPS - 1) * min(max(come, 0.0), 1.0))
            self._tell(at, {"loss": objective, "gap": gap, "iteration": float(n_iter)})

        return report

    def end(self) -> None:
        """Note that a program is solved."""
        self._done += 1

    def _tell(self, at: int, info: Mapping[str, float]) -> None:
        of = STEPS * self._n_programs
        self._step = min(max(self._step, at, 1), of)
        self._callback(self._step, of, info)

    def finish(self, objective: float, gap: float, n_iter: int) -> None:
        """Tell that all is done."""
        of = STEPS * self._n_programs
        self._tell(of, {"loss": objective, "gap": gap, "iteration": float(n_iter)})


class Limits(NamedTuple):
    """When a program ends: within tol · C of its minimum, or after max_iter iterations."""

    tol: float
    max_iter: int


class Solver(ABC):
    """Solves a sample's programs for one window.

    Where R is convex a solution's gap is its distance from the minimum, and a collapse is proven: w = 0 is the optimum
    for every C. Of a risk that is not, `collapsed` is that of the machine for the whole AUC, where the solver starts.
    """

    convex: ClassVar[bool] = False

    collapsed: bool

    def __init__(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> None:
        self.sample = sample
        self._limits, self._progress = limits, progress
        self._window = window_of(sample.weights(sample.negatives), *window)

    @abstractmethod
    def free(self, costs: Iterable[float], start: Floats | None = None) -> Iterator[Solution]:
        """Minimise ½‖w‖² + C R(w) for each C, one after the other; not where it has collapsed."""

    @abstractmethod
    def descend(self, C: float, center: Floats, start: Point) -> Solution:
        """Lower ½‖w - center‖² + C R(w) from a start on."""

    @abstractmethod
    def point(self, w: Floats) -> Point:
        """Evaluate R and its gradient."""

    def anchored(self, costs: Iterable[float], center: Floats) -> Iterator[Solution]:
        """Minimise ½‖w - center‖² + C R(w) for each C; ends where w = 0 would do as well."""
        point = self.point(center)
        for C in costs:
            solution = self.descend(C, center, point)
            gain = half_square(center) + C - solution.objective  # over w = 0
            if gain <= (solution.gap if self.convex else self._limits.tol * C):
                return
            point = solution.point
            yield solution

    def critical_fpr(self) -> float | None:
        """Find an upper end of the window, the least but for 2 %, with which it would not collapse.

        None where the whole AUC collapses, too: the classes' means are the same. And where R is not convex: then no
        window is proven to collapse.
        """
        return None


class ConvexSolver(Solver):
    """By cutting planes, for the tight surrogate or the naive one."""

    convex = True

    def __init__(
        self,
        sample: Sample,
        window: tuple[float, float],
        limits: Limits,
        progress: Progress,
        *,
        naive: bool = False,
    ) -> None:
        super().__init__(sample, window, limits, progress)
        self._naive = naive
        self._planes = CuttingPlanes(problem_of(sample, self._window, naive=naive))
        self._descent = find_descent_direction(self._planes)
        self.collapsed = self._descent is None

    def free(self, costs: Iterable[float], start: Floats | None = None) -> Iterator[Solution]:
        """Minimise ½‖w‖² + C R(w) for each C; see `Solver.free`.

        Stops only where nine tenths of what can be gained over w = 0 are, however small C: no noise.
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
                return gap <= self._limits.tol * C and gap <= (1.0 / SURE - 1.0) * (C - objective)

            solution = self._solve(C, center, point, is_sure)
            point = solution.point
            yield solution

    def descend(self, C: float, center: Floats, start: Point) -> Solution:
        """Minimise ½‖w - center‖² + C R(w)."""
        return self._solve(C, center, start, lambda _, gap: gap <= self._limits.tol * C)

    def point(self, w: Floats) -> Point:
        """Evaluate R, and lay down the plane there."""
        return self._planes.point(w)

    def _solve(
        self, C: float, center: Floats, start: Point, good_enough: Callable[[float, float], bool]
    ) -> Solution:
        tol, max_iter = self._limits
        report = self._progress.start(tol * C)
        solution = self._planes.solve(
            C, center, start, good_enough, max_iter=max_iter, report=report
        )
        self._progress.end()
        return solution

    def critical_fpr(self) -> float | None:
        """Find the least upper end of the window with which it would not collapse; see `Solver.critical_fpr`."""
        low, high, total = self._window

        def collapses(mass: float) -> bool:
            window = Window(low, mass, total)
            planes = CuttingPlanes(problem_of(self.sample, window, naive=self._naive))
            return find_descent_direction(planes, CRITICAL_DIRECTIONS) is None

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
    """Of a risk that is not convex: it starts from the machine for the whole AUC with the same C."""

    def __init__(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> None:
        super().__init__(sample, window, limits, progress)
        self._auc = ConvexSolver(sample, WHOLE, limits, progress)
        self.collapsed = self._auc.collapsed

    def free(self, costs: Iterable[float], start: Floats | None = None) -> Iterator[Solution]:
        """Lower ½‖w‖² + C R(w) for each C, from a start or else from the machine for the whole AUC with that C."""
        of_auc: Floats | None = None
        for C in costs:
            begin = start
            if begin is None:
                begin = of_auc = next(self._auc.free((C,), of_auc)).point.w
            yield self.descend(C, np.zeros(len(begin)), self.point(begin))


class Weights(NamedTuple):
    """j_β/(j_β - j_α) and j_α/(j_β - j_α), of the two convex risks of a difference."""

    upper: float
    lower: float


class DifferenceSolver(LocalSolver):
    """Of the hinge loss of a window, step by step; a solution's gap is that of its last convex program."""

    def __init__(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> None:
        super().__init__(sample, window, limits, progress)
        low, high, total = self._window
        self._weights = Weights(high / (high - low), low / (high - low))
        self._planes = CuttingPlanes(problem_of(sample, Window(0.0, high, total)))
        self._lower = problem_of(sample, Window(0.0, low, total)) if low > 0.0 else None

    def point(self, w: Floats) -> Point:
        """Evaluate R_β, and lay down the plane there."""
        return self._planes.point(w)

    def descend(self, C: float, center: Floats, start: Point) -> Solution:
        """Take steps from a start until one hardly lowers ½‖w - center‖² + C R(w); keep the best point."""
        tol, max_iter = self._limits
        point, value = start, self.value(C, center, start)
        gap, converged, n_steps = 0.0, False, 0
        goal = tol * C
        while not converged and n_steps < min(MAX_STEPS, max_iter):
            n_steps += 1
            moved = center + C * self._weights.lower * self.lower_gradient(point)
            solution = self._planes.solve(
                C * self._weights.upper,
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
            converged = gap <= goal and before - reached <= MIN_FALL * goal
            converged |= gap <= goal and self._lower is None
            if solution.n_iter >= max_iter:  # no step further would get more
                break
        self._progress.end()
        return Solution(point, value, gap, n_steps, converged)

    def value(self, C: float, center: Floats, point: Point) -> float:
        """Return ½‖w - center‖² + C R(w)."""
        risk = self._weights.upper * point.risk
        if self._lower is not None:
            risk -= self._weights.lower * self._lower.at(point.scores).value
        return half_square(point.w - center) + C * risk

    def lower_gradient(self, point: Point) -> Floats:
        """Return the gradient of the plane that touches R_α at a point."""
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


class SigmoidSolver(LocalSolver):
    """Of the area with smooth steps, by L-BFGS.

    Its progress is told the last step's fall of the objective for the gap, of which nothing is known.
    """

    def __init__(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> None:
        super().__init__(sample, window, limits, progress)
        p, q = sample.weights(sample.positives), sample.weights(sample.negatives)
        surrogate = SigmoidSurrogate(p, q, self._window)
        self.problem = Problem(sample.rows, sample.positives, sample.negatives, surrogate)

    def point(self, w: Floats) -> Point:
        """Evaluate R and its gradient."""
        scores = self.problem.scores(w)
        violations = self.problem.at(scores)
        return Point(w.copy(), scores, violations.value, self.problem.plane(violations).gradient)

    def descend(self, C: float, center: Floats, start: Point) -> Solution:
        """Lower ½‖w - center‖² + C R(w) by L-BFGS; return the best point seen, its `gap` tol · C: less is no gain."""
        from scipy.optimize import minimize

        tol, max_iter = self._limits
        best, value = start, half_square(start.w - center) + C * start.risk

        def objective(w: Floats) -> tuple[float, Floats]:
            nonlocal best, value
            here = self.point(w)
            there = half_square(w - center) + C * here.risk
            if there < value:
                best, value = here, there
            return there / C, (w - center) / C + here.gradient

        goal = LAST_FALL * tol
        report = self._progress.start(goal * C)
        lowest, n_iter = value / C, 0

        def tell(intermediate_result: Any) -> None:
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
            callback=tell,
            options={"maxiter": max_iter, "ftol": goal, "gtol": 1e-2 * goal},
        )
        self._progress.end()
        return Solution(best, value, tol * C, n_iter, result.nit < max_iter)
