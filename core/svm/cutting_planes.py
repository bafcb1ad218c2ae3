"""Cutting planes with a line search: min ½‖w - center‖² + C R(w) for any convex R that gives planes.

R lies above each plane that touches it, so the least of ½‖w - center‖² + C max of planes is a lower bound of the
objective, and the distance from the best objective found is a true gap. Each iteration solves that small program
through its dual, searches the line from the best point to its solution on cached scores, which takes no product with
the table, and adds two planes: at the solution, which makes the bound rise, and where the search ended, which is where
planes are wanted (OCAS).

Solutions, which leap about where C is large, are held to the best point by ρ/2 ‖w - best‖² (a proximal bundle method),
ρ growing with the iterations. The sum of both squares is one, about a center between the two, so the small program
stays what it was. The bound is that of the dual without ρ, which any u of the simplex gives. R bends with the variance
of the differences of scores, so a program that is not soon solved is held in that metric: by ρ/2 of the variance along
w - best, whose main axes are found once from some rows.

Planes bound R whatever C and center are: they are kept from one program to the next. A plane that the model does
without for some iterations is dropped. Where more than `MAX_PLANES` are in use, those of the least share are put
together in one, the aggregate, with which the method still converges (Kiwiel): so neither memory, `MAX_PLANES` times
the number of coordinates, nor the time of the small program, cubic in the planes, grows with the iterations.

Whether w = 0 is the optimum whatever C, the collapse, is decided first. R(0) = 1, and close to 0 every pair is inside
its margin: R(tw) = 1 + t · slope(w) for small t, where the slope is that of the means of the positives and of the
highest negatives. If no w has a falling slope, 0 is the optimum for every C. That is so exactly if 0 lies in the hull
of the gradients at 0, and the shortest vector in the hull decides it: it is 0, or its reverse is the direction of
steepest descent. The hull's corners come from the same oracle as the planes. The paper does not say what its solver
returns there: the noise of the stopping rule.

References
----------
T. Joachims, "A support vector method for multivariate performance measures", ICML 2005.
V. Franc and S. Sonnenburg, "Optimized cutting plane algorithm for support vector machines", ICML 2008: the line search
and the second plane.
K. C. Kiwiel, "Proximity control in bundle methods for convex nondifferentiable minimization", Mathematical Programming
46, 1990: the proximal term and the aggregate plane.
P. Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11, 1976: the shortest vector.
"""

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats
from core.kernels import kernel
from core.linear.design import Ints, Rows

from .surrogates import Plane, Problem, Scores, Violations

# A plane that has been idle for so many iterations is dropped.
MAX_IDLE = 4

# Planes that are kept at the most.
MAX_PLANES = 500

# ρ grows by so much each iteration, up to so much.
RHO_STEP, MAX_RHO = 0.5, 30.0

# From this iteration on ρ is in the metric of the variance: of C by the deviation of the negatives' scores.
# It is rounded to a power of 2, so that the products of planes need not be made anew.
LATE = 5
RHO_BY_DEVIATION, MAX_RHO_BY_DEVIATION = 0.05, 1e30

# The variance of scores is estimated from so many rows for each coordinate, and from these at least and at most; where
# that would be more numbers, from fewer. Products are those of the coordinates of greatest variance.
ROWS_PER_COORDINATE, FEWEST_ROWS, MAX_ROWS, MAX_NUMBERS = 10, 500, 5000, 2**22
AXES_BLOCK = 512

# Rows, and their weight, up to which all are read: their order is of no effect then, beyond that within the tolerance.
READ_WHOLE = 1200

# Of the largest share, from which a plane is in use.
IN_USE = 1e-7

# Trials of the search along a line; of what it has gained so far, what it may leave.
MAX_TRIALS, LINE_SEARCH_TOLERANCE = 8, 0.05

# Of the longest gradient at 0, a shortest vector in their hull that counts as 0. With gradients of length 1, 0 is then
# within tol · C of the optimum for all C up to 2 tol / LEAST_SLOPE², a million at tol = 1e-4.
MIN_SLOPE = 1e-5

# Directions that are tried; of the mean of the hull's corners, a share from which a corner is in use; and of the
# steepest descent, what is enough of a descent.
MAX_DIRECTIONS = 1000
CORNER_IN_USE = 1e-12
ENOUGH_DESCENT = 0.1

# Scores that differ by less than this share of the greatest differ by rounding alone.
ALIKE = 4.0 * np.finfo(np.float64).eps

# Of the small quadratic program: the gap between it and its dual, in units of its largest number; and its most steps.
TOLERANCE = 1e-15
MAX_STEPS = 80

_F = numba.float64
_FLOATS = numba.float64[::1]
_MATRIX = numba.float64[:, ::1]

Report = Callable[[int, float, float], None]
"""Called each iteration with the number of it, the objective and the gap; what it raises stops the solver."""


class Point(NamedTuple):
    """A coefficient vector, the rows' scores under it, R there, and the gradient of the plane that touches R."""

    w: Floats
    scores: Scores
    risk: float
    gradient: Floats


class Trial(NamedTuple):
    """A coefficient vector, the rows' scores under it, and R there, for which no plane is laid down."""

    w: Floats
    scores: Scores
    violations: Violations


class Solution(NamedTuple):
    """The best point found, its objective ½‖w - center‖² + C R(w), and that less a lower bound of the optimum."""

    point: Point
    objective: float
    gap: float
    n_iter: int
    converged: bool


class PrincipalAxes(NamedTuple):
    """Axes along which scores vary independently, as far as some rows tell.

    `block` (k,) lists the coordinates of greatest variance, the others are axes themselves; `axes` (k, k) has an
    orthogonal column for each axis of the block; `variance` (size,) is that along each.
    """

    block: Ints
    axes: Floats
    variance: Floats

    def rotated(self, w: Floats) -> Floats:
        """Write vectors of coordinates, which are the last dimension, along the axes."""
        turned = w.copy()
        turned[..., self.block] = w[..., self.block] @ self.axes
        return turned

    def rotated_back(self, turned: Floats) -> Floats:
        """Write a vector along the axes in coordinates."""
        w = turned.copy()
        w[self.block] = self.axes @ turned[self.block]
        return w


class ProximalTerm(NamedTuple):
    """The squares' weights once ½‖w - center‖² and what holds w to a point are one sum: scale · metric."""

    scale: float
    metric: Floats


class Planes:
    """k planes: losses (k,), gradients (k, size), and `gram` (k, k), the products of gradients in a metric.

    `idle` (k,) counts the iterations in which each has been of no use.
    """

    def __init__(self, size: int) -> None:
        self.losses, self.gradients, self.gram = np.zeros(0), np.zeros((0, size)), np.zeros((0, 0))
        self.idle = np.zeros(0, dtype=np.int64)
        self._metric = np.ones(size)

    def add(self, plane: Plane) -> None:
        """Put a plane at the end."""
        self.gradients = np.vstack([self.gradients, plane.gradient])
        self.losses, self.idle = np.append(self.losses, plane.loss), np.append(self.idle, 0)
        products = (self.gradients * (plane.gradient / self._metric)).sum(axis=1)
        gram = np.empty((len(products), len(products)))
        gram[:-1, :-1] = self.gram
        gram[-1], gram[:, -1] = products, products
        self.gram = gram

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Drop the others."""
        if not kept.all():
            self.losses, self.gradients = self.losses[kept], self.gradients[kept]
            self.idle = self.idle[kept]
            self.gram = np.ascontiguousarray(self.gram[np.ix_(kept, kept)])

    def rotate(self, axes: PrincipalAxes) -> None:
        """Write the gradients along principal axes."""
        self.gradients = axes.rotated(self.gradients)

    def measure(self, metric: Floats) -> None:
        """Divide each coordinate's products by another number."""
        if not np.array_equal(metric, self._metric):
            self._metric = metric
            self.gram = (self.gradients / metric) @ self.gradients.T


class CuttingPlanes:
    """A problem's planes, kept from one program to the next.

    An iteration is one product with the table, some evaluations of R, and two sums of rows.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._planes = Planes(problem.size)
        self._axes: PrincipalAxes | None = None
        self.add(Plane(0.0, np.zeros(problem.size)))  # R >= 0

    def point(self, w: Floats) -> Point:
        """Score the rows under w, and evaluate R; lay down the plane there."""
        scores = self.problem.scores(w)
        return self.linearise(Trial(w, scores, self.problem.at(scores)))

    def stretch(self, point: Point, factor: float, C: float) -> Point:
        """Go on from w = 0 through a point, to so many times as far; stay where ½‖w‖² + C R(w) is no less there."""
        scores = point.scores.scaled(factor)
        trial = Trial(factor * point.w, scores, self.problem.at(scores))
        there = half_square(trial.w) + C * trial.violations.value
        return self.linearise(trial) if there < half_square(point.w) + C * point.risk else point

    def linearise(self, trial: Trial) -> Point:
        """Lay down the plane that touches R where it was tried."""
        plane = self.problem.plane(trial.violations)
        self.add(plane)
        return Point(trial.w, trial.scores, trial.violations.value, plane.gradient)

    def add(self, plane: Plane) -> None:
        """Keep a plane."""
        if self._axes is not None:
            plane = plane._replace(gradient=self._axes.rotated(plane.gradient))
        self._planes.add(plane)

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
        """Minimise ½‖w - center‖² + C R(w), C > 0, until `good_enough(objective, gap)`; never worse than the start."""
        best = start
        objective = half_square(best.w - center) + C * best.risk
        bound, widest = -np.inf, 0.0
        for n_iter in range(1, max_iter + 1):
            if n_iter == LATE and self._axes is None:
                self._find_axes()
            # of the widest so far: near w = 0, where the negatives come together, R is a cone, and nothing would hold w
            widest = max(widest, self.problem.deviation(best.scores))
            proximal = self._proximal_term(n_iter, C, widest)
            target, below = self._solve_model(C, center, proximal, best.w)
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
        """Search the line between two points; return the better of its best point and the first, and its objective."""
        line = Line(self.problem, start, end, C, center)
        found = search(line)
        if found is None:
            return start, line.first.value
        at, trial = found
        point = end if trial is None else self.linearise(trial)
        return (point, at.value) if at.value < line.first.value else (start, line.first.value)

    def _find_axes(self) -> None:
        problem = self.problem
        positive, negative = np.zeros(problem.rows.n_rows), np.zeros(problem.rows.n_rows)
        positive[problem.positives], negative[problem.negatives] = problem.surrogate.weights
        self._axes = find_axes(problem.rows, positive, negative)
        if self._axes is not None:
            self._planes.rotate(self._axes)

    def _proximal_term(self, n_iter: int, C: float, deviation: float) -> ProximalTerm:
        """Return what holds a solution to the best point; nothing in the first iteration."""
        if self._axes is None:
            return ProximalTerm(
                1.0 + min(RHO_STEP * (n_iter - 1), MAX_RHO), np.ones(self.problem.size)
            )
        asked = RHO_BY_DEVIATION * C / deviation if n_iter > 1 and deviation > 0.0 else 0.0
        rho = 2.0 ** round(np.log2(min(asked, MAX_RHO_BY_DEVIATION))) if asked > 0.0 else 0.0
        return ProximalTerm(1.0, 1.0 + rho * self._axes.variance)

    def _solve_model(
        self, C: float, center: Floats, proximal: ProximalTerm, best: Floats
    ) -> tuple[Floats, float]:
        """Minimise the model and what holds w to a point; return the solution, and a lower bound of the model alone."""
        planes, near, axes = self._planes, C / proximal.scale, self._axes
        if axes is not None:
            center, best = axes.rotated(center), axes.rotated(best)
        planes.measure(proximal.metric)
        weight = proximal.scale * proximal.metric
        between = (center + (weight - 1.0) * best) / weight
        heights = planes.losses + (planes.gradients * between).sum(axis=1)
        u = solve_simplex_qp(near * near * planes.gram, -near * heights)
        pull = (u[:, None] * planes.gradients).sum(axis=0)
        loss, slope = float((u * planes.losses).sum()), float((pull * center).sum())
        self._drop_idle(u, Plane(loss, pull))
        target = between - near * pull / proximal.metric
        if axes is not None:
            target = axes.rotated_back(target)
        return target, C * (loss + slope) - half_square(C * pull)

    def _drop_idle(self, u: Floats, aggregate: Plane) -> None:
        """Drop planes of no use; where too many are left, those of the least share, for their aggregate."""
        planes = self._planes
        planes.idle = np.where(u > IN_USE * u.max(), 0, planes.idle + 1)
        kept = planes.idle <= MAX_IDLE
        kept[0] = True
        room = MAX_PLANES - 3  # an iteration adds two
        is_full = np.count_nonzero(kept) > room
        if is_full:
            share = np.where(kept, u, -1.0)
            share[0] = np.inf
            kept[np.argsort(-share, kind="stable")[room:]] = False
        planes.keep(kept)
        if is_full:
            planes.add(aggregate)


def half_square(w: Floats) -> float:
    """Return ½‖w‖²."""
    return 0.5 * float((w * w).sum())


class Found(NamedTuple):
    """The objective at a place on the line."""

    t: float
    value: float
    slope: float


class Line:
    """The objective ½‖w - center‖² + C R(w) at w = start + t (end - start)."""

    def __init__(
        self, problem: Problem, start: Point, end: Point, C: float, center: Floats
    ) -> None:
        self._problem, self._start, self._C = problem, start, C
        self._ends = start.scores, end.scores
        self._step = end.w - start.w
        from_center = start.w - center
        self._square = (
            0.5 * float((from_center * from_center).sum()),
            float((from_center * self._step).sum()),
            float((self._step * self._step).sum()),
        )
        self.first = self._at(0.0, start.risk, float((start.gradient * self._step).sum()))
        self.last = self._at(1.0, end.risk, float((end.gradient * self._step).sum()))

    def try_at(self, t: float) -> tuple[Found, Trial]:
        """Evaluate the objective at t."""
        start, end = self._ends
        scores = start.toward(end, t)
        violations = self._problem.at(scores)
        here = violations.value - violations.loss  # g·w, as `slope` gives it for the ends
        to, span = (end, 1.0 - t) if t < 0.5 else (start, -t)
        slope = (violations.slope(*to) - here) / span
        trial = Trial(self._start.w + t * self._step, scores, violations)
        return self._at(t, violations.value, slope), trial

    def _at(self, t: float, risk: float, slope: float) -> Found:
        constant, linear, square = self._square
        value = constant + t * linear + 0.5 * t * t * square + self._C * risk
        return Found(t, value, linear + t * square + self._C * slope)


def search(line: Line) -> tuple[Found, Trial | None] | None:
    """Come near the minimum of a convex function between t = 0 and 1.

    Give the best that was tried, and the trial there unless it is the line's end; None where the start is the minimum.
    Slopes of R are those of one plane each, so they bracket the minimum; where the tangents at both ends cross is a
    lower bound, which tells when to stop. Trials go by the secant of the slopes, halved where it lags. Only one trial
    is kept besides the line's ends: it is as large as the rows are many.
    """
    low, high = line.first, line.last
    if low.slope >= 0.0:
        return None
    best, best_trial = line.last, None
    if high.slope <= 0.0:
        return best, best_trial
    for trial in range(MAX_TRIALS):
        width = high.t - low.t
        share = low.slope / (low.slope - high.slope)
        if trial % 3 == 2:
            share = 0.5
        found, tried = line.try_at(low.t + width * min(max(share, 0.02), 0.98))
        if found.value < best.value:
            best, best_trial = found, tried
        del tried
        if found.slope > 0.0:
            high = found
        else:
            low = found
        crossing = (low.value - high.value + high.slope * (high.t - low.t)) / (
            high.slope - low.slope
        )
        least = low.value + low.slope * crossing
        if best.value - least <= LINE_SEARCH_TOLERANCE * max(line.first.value - best.value, 0.0):
            break
    return best, best_trial


class DescentDirection(NamedTuple):
    """A direction along which R falls at w = 0, the rows' scores along it, and R and a plane's gradient at w = 0."""

    direction: Floats
    scores: Scores
    risk: float
    gradient: Floats


def find_descent_direction(
    planes: CuttingPlanes, most: int = MAX_DIRECTIONS
) -> DescentDirection | None:
    """Find a direction along which R falls at w = 0, trying so many at most; None where there is none: the collapse.

    The planes at 0 that matter are kept. The first direction, from the mean of the negatives to that of the positives,
    is mostly enough; to be sure that there is none takes about as many as there are coordinates. Corners that the
    nearest point does without are dropped (Wolfe).
    """
    problem = planes.problem
    corners = Planes(problem.size)
    violations = problem.at(problem.zero_scores())
    corners.add(problem.plane(violations))
    risk, gradient = violations.value, corners.gradients[0]
    longest = corners.gram[0, 0]
    found = None
    for _ in range(most):
        u = solve_simplex_qp(corners.gram, np.zeros(len(corners.gram)))
        corners.keep(u > CORNER_IN_USE)
        shortest = (
            (u[u > CORNER_IN_USE] / u[u > CORNER_IN_USE].sum())[:, None] * corners.gradients
        ).sum(axis=0)
        square = float((shortest * shortest).sum())
        if square <= MIN_SLOPE**2 * longest:
            break
        scores = problem.scores(-shortest)
        if scores.range() <= ALIKE * max(abs(of_class).max() for of_class in scores):
            break  # no two rows differ, so the slope is rounding
        violations = problem.at(scores.scaled(_least_step(planes, scores)))
        if violations.slope(*scores) < -ENOUGH_DESCENT * square:
            found = DescentDirection(-shortest, scores, risk, gradient)
            break
        corners.add(problem.plane(violations))
        longest = max(longest, corners.gram[-1, -1])
    for loss, gradient in zip(corners.losses[:MAX_PLANES], corners.gradients, strict=False):
        planes.add(Plane(loss, gradient))
    return found


def _least_step(planes: CuttingPlanes, scores: Scores) -> float:
    """A step so short that every pair stays inside its margin, and each positive's best run the same."""
    low, high, total = planes.problem.surrogate.window
    width = scores.range()
    return 0.25 * (high - low) / total / width if width > 0.0 else 1.0


def leave_origin(planes: CuttingPlanes, C: float, descent: DescentDirection) -> Point:
    """Go from w = 0 along a direction of descent, as far as the objective with this C falls."""
    problem = planes.problem
    start = Point(np.zeros(problem.size), problem.zero_scores(), descent.risk, descent.gradient)
    slope = -float((descent.gradient * descent.direction).sum())
    length = min(C * slope / float((descent.direction * descent.direction).sum()), 1.0 / slope)
    far = descent.scores.scaled(length)
    end = planes.linearise(Trial(length * descent.direction, far, problem.at(far)))
    return planes.descend(start, end, C, start.w)[0]


def find_axes(rows: Rows, positive: Floats, negative: Floats) -> PrincipalAxes | None:
    """Find the axes of the covariance of differences between a positive and a negative: the sum of both classes'.

    `positive` and `negative` are the rows' weights in each class, 0 for those of the other. None where the covariance
    is beyond floating point.
    """
    asked = min(ROWS_PER_COORDINATE * rows.size, MAX_ROWS, MAX_NUMBERS // max(rows.width, 1))
    most = max(asked, FEWEST_ROWS) // 2  # of each class
    share = positive + negative
    if np.count_nonzero(share) <= READ_WHOLE and share.sum() <= READ_WHOLE:
        most = READ_WHOLE
    drawn = [_draw_by_mass(weight, most) for weight in (positive, negative)]
    taken = np.unique(np.concatenate([rows_of_class for rows_of_class, _ in drawn]))
    sample = rows.take(taken)
    both, means = np.zeros(sample.n_rows), []
    for rows_of_class, times in drawn:
        share = np.zeros(sample.n_rows)
        share[np.searchsorted(taken, rows_of_class)] = times / times.sum()
        both += share
        means.append(sample.weighted_sum(share))
    with np.errstate(all="ignore"):
        variance = np.maximum(sample.squares(both) - sum(mean**2 for mean in means), 0.0)
        block = np.sort(np.argsort(-variance, kind="stable")[:AXES_BLOCK])
        covariance = sample.products(block, both)[:-1, :-1]
        covariance -= sum(np.outer(mean[block], mean[block]) for mean in means)
    if not (np.isfinite(covariance).all() and np.isfinite(variance).all()):
        return None
    along, axes = np.linalg.eigh(covariance)
    variance[block] = np.maximum(along, 0.0)
    return PrincipalAxes(block, axes, variance)


def _draw_by_mass(weight: Floats, most: int) -> tuple[Ints, Floats]:
    """Take rows at even distances of weight; all, where they are few. Give which, rising, and how often each counts."""
    mass = np.cumsum(weight)
    if np.count_nonzero(weight) <= most and mass[-1] <= most:
        taken = np.flatnonzero(weight)
        return taken, weight[taken]
    places = (np.arange(most) + 0.5) * (mass[-1] / most)
    found = np.minimum(np.searchsorted(mass, places, side="right"), len(weight) - 1)
    taken, times = np.unique(found, return_counts=True)
    return taken, times.astype(np.float64)


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS), inner=True)
def _solve(U, right, x):  # type: ignore[no-untyped-def]
    """Solve U' U x = right; U is upper triangular."""
    n = len(U)
    for i in range(n):
        x[i] = right[i]
    for k in range(n):
        x[k] /= U[k, k]
        row, rest, factor = U[k, k + 1 :], x[k + 1 :], x[k]
        for i in range(len(row)):
            rest[i] -= row[i] * factor
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= U[i, k] * x[k]
        x[i] = total / U[i, i]


@kernel(_FLOATS(_MATRIX, _FLOATS), error_model="numpy")
def solve_simplex_qp(H, q):  # type: ignore[no-untyped-def]
    """Minimise ½ u'Hu + q'u over the simplex.

    Parameters
    ----------
    H : ndarray of shape (k, k), float64
        Positive semidefinite; rows may be equal.
    q : ndarray of shape (k,), float64

    Returns
    -------
    ndarray of shape (k,), float64
        u >= 0, Σ u = 1; within about 1e-13 of the largest number in H and q of the minimum.

    Notes
    -----
    Mehrotra's predictor-corrector interior point with one step length for u and its multipliers, so that both stay
    feasible and u's is the duality gap itself. O(k³) a step, some 15 steps.

    References
    ----------
    S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optimization 2, 1992.
    """
    k = len(q)
    u, slack, gradient, b = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    right, step, toward_one, change = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    du, dslack, A, U = np.empty(k), np.empty(k), np.empty((k, k)), np.empty((k, k))
    lowest = highest = q[0]
    for i in range(k):
        u[i] = 1.0 / k
        lowest, highest = min(lowest, q[i]), max(highest, q[i])
    scale = highest - lowest
    for i in range(k):
        scale = max(scale, H[i, i])
    if k == 1 or scale <= 0.0:
        return u
    for i in range(k):
        b[i] = (q[i] - lowest) / scale
        for j in range(k):
            A[i, j] = H[i, j] / scale
    y = 0.0
    for iteration in range(MAX_STEPS + 1):
        least = np.inf
        for i in range(k):
            gradient[i] = 0.0
        for j in range(k):
            for i in range(k):
                gradient[i] += A[j, i] * u[j]
        for i in range(k):
            gradient[i] += b[i]
            least = min(least, gradient[i])
        if iteration == 0:
            y = least - 0.1
            for i in range(k):
                slack[i] = gradient[i] - y
        gap = 0.0
        for i in range(k):
            gap += u[i] * slack[i]
        if gap < TOLERANCE or iteration == MAX_STEPS:
            break
        # Factor A + diag(slack / u) = U'U, row by row, each less multiples of those above: loops that become vector
        # instructions. A pivot lost to rounding is made very large: its row moves no more.
        for j in range(k):
            own = A[j, j] + slack[j] / u[j]
            row, given = U[j, j:], A[j, j:]
            row[0] = own
            for i in range(1, len(row)):
                row[i] = given[i]
            for m in range(j):
                above, factor = U[m, j:], U[m, j]
                for i in range(len(row)):
                    row[i] -= factor * above[i]
            pivot = np.sqrt(row[0]) if row[0] > 1e-15 * own else 1e30
            row[0] = pivot
            for i in range(1, len(row)):
                row[i] /= pivot
        for i in range(k):
            right[i] = 1.0
            change[i] = 0.0
        _solve(U, right, toward_one)
        target = length = dy = 0.0
        for corrected in range(2):
            # (A + slack/u) du - dy = residual + (target - change)/u - slack, with Σ du = 1 - Σ u
            for i in range(k):
                off = slack[i] - gradient[i] + y
                right[i] = off + (target - change[i]) / u[i] - slack[i]
            _solve(U, right, step)
            of_u = of_step = of_one = 0.0
            for i in range(k):
                of_u += u[i]
                of_step += step[i]
                of_one += toward_one[i]
            dy = (1.0 - of_u - of_step) / of_one
            length = np.inf  # how far u and slack may go before a part of them is 0
            for i in range(k):
                du[i] = step[i] + dy * toward_one[i]
                dslack[i] = (target - change[i]) / u[i] - slack[i] - slack[i] / u[i] * du[i]
                if du[i] < 0.0:
                    length = min(length, -u[i] / du[i])
                if dslack[i] < 0.0:
                    length = min(length, -slack[i] / dslack[i])
            if corrected == 0:
                ahead = 0.0
                for i in range(k):
                    at = u[i] + min(1.0, length) * du[i]
                    ahead += at * (slack[i] + min(1.0, length) * dslack[i])
                    change[i] = du[i] * dslack[i]
                target = (ahead / gap) ** 3 * gap / k
        length = min(1.0, 0.995 * length)
        if length < 1e-10:
            break
        for i in range(k):
            u[i] = u[i] + length * du[i]
            slack[i] = slack[i] + length * dslack[i]
        y += length * dy
    total = 0.0
    for i in range(k):
        u[i] = max(u[i], 0.0)
        total += u[i]
    for i in range(k):
        u[i] /= total
    return u
