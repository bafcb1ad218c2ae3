"""Cutting planes with a line search: minimise ½‖w - center‖² + C R(w) for any convex R with known tangent planes.

R lies above each of its tangent planes. So the model, ½‖w - center‖² + C · max of the planes, has a minimum that is a
lower bound of the objective; the gap is the best objective found minus that bound. An iteration

1. minimises the model through its dual, a small quadratic program over the simplex;
2. searches the line from the best point to the model's solution on cached scores, without a product with the table;
3. adds two planes: at the model's solution, which raises the bound, and at the end of the search (OCAS).

For a large C the model's solutions jump. The proximal term ρ/2 ‖w - best‖² keeps them near the best point (a proximal
bundle method); ρ grows with the iterations. The sum of the two squares is one square about a center between them, so
the dual keeps its form. The bound comes from the dual without ρ, for which any point u of the simplex will do. The
curvature of R follows the variance of the differences of scores. A program that is not solved soon therefore uses the
variance along w - best as the metric of the proximal term; its principal axes are found once, from a sample of rows.

Planes bound R for every C and center: they are kept from one program to the next. A plane that has no weight in the
model for some iterations is dropped. If more than `MAX_PLANES` are in use, those of least weight are merged into one,
the aggregate, with which the method still converges (Kiwiel). So neither the memory, `MAX_PLANES` times the number of
coordinates, nor the time of the dual, cubic in the planes, grows with the iterations.

**Coefficients with a sign** (monotone constraints). The model's solution for weights u of the planes is then clipped at
0 where it breaks its sign, and the dual is a concave function of u that is quadratic as long as the same coefficients
are clipped. `solve_signed_model` solves the quadratic program of the present ones, and searches the line to its
solution; any u gives a lower bound, so that the gap is proven as without signs. The metric is then that of the
coordinates themselves, since a rotation would mix the signs.

The *collapse*, w = 0 being the optimum for every C, is decided first. R(0) = 1, and close to 0 every pair is inside its
margin: R(tw) = 1 + t · slope(w) for small t, the slope being the mean score of the highest negatives minus that of the
positives. If no w has a negative slope, 0 is the optimum for every C. That is so exactly if 0 lies in the convex hull
of the gradients at 0. The shortest vector of the hull decides it: either it is 0, or its reverse is the direction of
steepest descent. The corners of the hull come from the same oracle as the planes. The paper does not mention this case;
its solver returns the noise of the stopping rule.

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

from core.base.monotone import Directions
from core.base.ranker import Floats
from core.kernels import kernel

from .design import Ints, LinearRows
from .surrogates import Plane, Problem, Scores, Violations

# A plane without weight in the model for more than this number of iterations is dropped.
MAX_IDLE = 4

# Planes that are kept: the small quadratic program then takes tens of milliseconds.
MAX_PLANES = 500

# ρ grows by RHO_STEP each iteration, up to MAX_RHO.
RHO_STEP = 0.5
MAX_RHO = 30.0

# From this iteration on the variance of the scores is the metric of the proximal term.
VARIANCE_METRIC_FROM = 5

# ρ in that metric is this times C over the deviation of the negatives' scores, rounded to a power of 2, so that the
# products of planes rarely have to be computed again.
RHO_BY_DEVIATION = 0.05
MAX_RHO_BY_DEVIATION = 1e30

# The variance of the scores is estimated from this number of rows per coordinate, ...
ROWS_PER_COORDINATE = 10
# ... but at least and at most from this number of rows, ...
MIN_ROWS = 500
MAX_ROWS = 5000
# ... and from no more than this number of table cells (32 MB), MIN_ROWS excepted.
MAX_CELLS = 2**22

# Up to this number of rows, and this weight, all rows are read. The order of the rows then has no effect; beyond, its
# effect is within the tolerance.
MAX_ROWS_READ_WHOLE = 1200

# Coordinates of greatest variance whose principal axes are found; the others are axes themselves.
AXES_BLOCK = 512

# A plane is in use if its weight is more than this fraction of the largest.
MIN_PLANE_WEIGHT = 1e-7

# Evaluations of one line search.
MAX_TRIALS = 8

# A line search ends when at most this fraction of its gain so far can still be gained.
LINE_SEARCH_TOLERANCE = 0.05

# A shortest vector of the hull counts as 0 if it is at most this fraction of the longest gradient at 0. With gradients
# of length 1, w = 0 is then within tol · C of the optimum for all C up to 2 tol / MIN_SLOPE²: 2e6 at tol = 1e-4.
MIN_SLOPE = 1e-5

# Corners of the hull that are added before the search for a direction of descent gives up.
MAX_DIRECTIONS = 1000

# Corners whose weight in the shortest vector is at most this are dropped.
MIN_CORNER_WEIGHT = 1e-12

# Quadratic programs of one model with signs, and halvings of a search between two of their solutions.
MAX_SIGNED_PROGRAMS = 50
MAX_BISECTIONS = 60

# A model with signs is solved if the planes' mean height is this near to the highest, relative to the largest height.
SIGNED_TOLERANCE = 1e-12

# Fraction of the steepest slope that a direction of descent must have.
MIN_DESCENT = 0.1

# Scores whose range is at most this fraction of the largest differ by rounding alone.
SCORE_ROUNDING = 4.0 * np.finfo(np.float64).eps

# Duality gap at which the small quadratic program ends, relative to its largest number.
TOLERANCE = 1e-15

# Interior point steps of the small quadratic program; some 15 are usual.
MAX_STEPS = 80

# Where rounding ends them with a larger gap than this, steps along pairs of vertices go on until it is this small.
PAIRS_TOLERANCE = 1e-13
MAX_PAIRS_PER_VERTEX = 100

_F = numba.float64
_FLOATS = numba.float64[::1]
_MATRIX = numba.float64[:, ::1]

Report = Callable[[int, float, float], None]
"""Called each iteration with its number, the objective and the gap. An exception that it raises ends the solver."""


class Point(NamedTuple):
    """A coefficient vector at which R and its tangent plane are known."""

    w: Floats
    """Shape (size,), float64."""
    scores: Scores
    """Of the rows."""
    risk: float
    """R(w)."""
    gradient: Floats
    """Of the tangent plane of R at w. Shape (size,), float64."""


class TriedPoint(NamedTuple):
    """A coefficient vector at which R is known, but no plane was added."""

    w: Floats
    scores: Scores
    violations: Violations


class Solution(NamedTuple):
    """The result of minimising one objective (C, center): the solution, its objective and the remaining gap."""

    point: Point
    """The best point found."""
    objective: float
    """½‖w - center‖² + C R(w) there."""
    gap: float
    """The objective minus a lower bound of its minimum."""
    n_iter: int
    converged: bool


class PrincipalAxes(NamedTuple):
    """Axes along which scores vary independently, as estimated from a sample of rows."""

    block: Ints
    """Coordinates of greatest variance, ascending; the others are axes themselves. Shape (k,), int64."""
    axes: Floats
    """An orthogonal column for each axis of the block. Shape (k, k), float64."""
    variance: Floats
    """Along each axis. Shape (size,), float64."""

    def rotated(self, w: Floats) -> Floats:
        """Return vectors of coordinates, shape (…, size), in terms of the axes."""
        turned = w.copy()
        turned[..., self.block] = w[..., self.block] @ self.axes
        return turned

    def rotated_back(self, turned: Floats) -> Floats:
        """Return a vector given along the axes, shape (size,), in the original coordinates."""
        w = turned.copy()
        w[self.block] = self.axes @ turned[self.block]
        return w


class ProximalTerm(NamedTuple):
    """½‖w - center‖² plus the proximal term, as one weighted square with weights scale · metric per coordinate."""

    scale: float
    metric: Floats


class Planes:
    """A set of k tangent planes of R: lower bounds of R that together model it.

    losses: (k,), float64.
    gradients: (k, size), float64.
    gram: (k, k), float64; products of the gradients, each coordinate divided by the metric.
    idle: (k,), int64; iterations in a row in which each plane had no weight.
    """

    def __init__(self, size: int) -> None:
        self.losses, self.gradients, self.gram = np.zeros(0), np.zeros((0, size)), np.zeros((0, 0))
        self.idle = np.zeros(0, dtype=np.int64)
        self._metric = np.ones(size)

    def add(self, plane: Plane) -> None:
        self.gradients = np.vstack([self.gradients, plane.gradient])
        self.losses, self.idle = np.append(self.losses, plane.loss), np.append(self.idle, 0)
        products = (self.gradients * (plane.gradient / self._metric)).sum(axis=1)
        gram = np.empty((len(products), len(products)))
        gram[:-1, :-1] = self.gram
        gram[-1], gram[:, -1] = products, products
        self.gram = gram

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        if not kept.all():
            self.losses, self.gradients = self.losses[kept], self.gradients[kept]
            self.idle = self.idle[kept]
            self.gram = np.ascontiguousarray(self.gram[np.ix_(kept, kept)])

    def rotate(self, axes: PrincipalAxes) -> None:
        """Replace the gradients by their components along principal axes."""
        self.gradients = axes.rotated(self.gradients)

    def measure(self, metric: Floats) -> None:
        """Set the metric, shape (size,), and recompute the scalar products of the gradients under it."""
        if not np.array_equal(metric, self._metric):
            self._metric = metric
            self.gram = (self.gradients / metric) @ self.gradients.T


class CuttingPlanes:
    """Cutting-plane solver for one risk R; its planes are reused from one objective (C, center) to the next.

    An iteration takes one product with the table, some evaluations of R, and two weighted sums of rows.
    """

    def __init__(self, problem: Problem, signs: Directions | None = None) -> None:
        self.problem = problem
        self.signs = signs if signs is not None and signs.any() else None
        self.planes = Planes(problem.size)
        self._axes: PrincipalAxes | None = None
        self.add(Plane(0.0, np.zeros(problem.size)))  # R >= 0

    def point(self, w: Floats) -> Point:
        """Return R and its gradient at w; add the plane there."""
        scores = self.problem.scores(w)
        return self.linearise(TriedPoint(w, scores, self.problem.at(scores)))

    def stretch(self, point: Point, factor: float, C: float) -> Point:
        """Return the point scaled to factor · w if that lowers ½‖w‖² + C R(w), else `point`."""
        scores = point.scores.scaled(factor)
        trial = TriedPoint(factor * point.w, scores, self.problem.at(scores))
        there = half_square(trial.w) + C * trial.violations.value
        return self.linearise(trial) if there < half_square(point.w) + C * point.risk else point

    def linearise(self, trial: TriedPoint) -> Point:
        plane = self.problem.plane(trial.violations)
        self.add(plane)
        return Point(trial.w, trial.scores, trial.violations.value, plane.gradient)

    def add(self, plane: Plane) -> None:
        if self._axes is not None:
            plane = plane._replace(gradient=self._axes.rotated(plane.gradient))
        self.planes.add(plane)

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
        """Minimise ½‖w - center‖² + C R(w) until `good_enough(objective, gap)`; never worse than `start`."""
        best = start
        objective = half_square(best.w - center) + C * best.risk
        bound, widest = 0.0, 0.0  # R >= 0
        for n_iter in range(1, max_iter + 1):
            if n_iter == VARIANCE_METRIC_FROM and self._axes is None:
                self._find_axes()
            # the widest so far: near w = 0 all negatives score alike, whatever the variance elsewhere
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
                break  # as close as floating point allows
            best, objective = self.descend(best, self.point(target), C, center)
        return Solution(best, objective, max(objective - bound, 0.0), n_iter, False)

    def descend(self, start: Point, end: Point, C: float, center: Floats) -> tuple[Point, float]:
        """Return the best point on the line from `start` to `end`, and its objective."""
        line = Line(self.problem, start, end, C, center)
        lowest = search(line)
        if lowest is None:
            return start, line.first.value
        at, trial = lowest
        point = end if trial is None else self.linearise(trial)
        return (point, at.value) if at.value < line.first.value else (start, line.first.value)

    def _find_axes(self) -> None:
        problem = self.problem
        positive, negative = np.zeros(problem.rows.n_rows), np.zeros(problem.rows.n_rows)
        positive[problem.positives], negative[problem.negatives] = problem.surrogate.weights
        self._axes = find_axes(problem.rows, positive, negative, turn=self.signs is None)
        if self._axes is not None:
            self.planes.rotate(self._axes)

    def _proximal_term(self, n_iter: int, C: float, deviation: float) -> ProximalTerm:
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
        """Return the minimum of the model with the proximal term, and a lower bound of the model without it."""
        planes, near, axes = self.planes, C / proximal.scale, self._axes
        if axes is not None:
            center, best = axes.rotated(center), axes.rotated(best)
        planes.measure(proximal.metric)
        weight = proximal.scale * proximal.metric
        between = (center + (weight - 1.0) * best) / weight
        if self.signs is not None:
            step = near / proximal.metric
            u, target = solve_signed_model(
                planes.losses, planes.gradients, between, step, self.signs
            )
            gradient, loss = u @ planes.gradients, float(u @ planes.losses)
            self._drop_idle(u, Plane(loss, gradient))
            lowest = clipped(center - C * gradient, self.signs)
            slope = float((gradient * lowest).sum())
            return target, C * (loss + slope) + half_square(lowest - center)
        heights = planes.losses + (planes.gradients * between).sum(axis=1)
        u = solve_simplex_qp(near * near * planes.gram, -near * heights)
        gradient = (u[:, None] * planes.gradients).sum(axis=0)
        loss, slope = float((u * planes.losses).sum()), float((gradient * center).sum())
        self._drop_idle(u, Plane(loss, gradient))
        target = between - near * gradient / proximal.metric
        if axes is not None:
            target = axes.rotated_back(target)
        return target, C * (loss + slope) - half_square(C * gradient)

    def _drop_idle(self, u: Floats, aggregate: Plane) -> None:
        """Drop planes unused for too long; if too many are left, replace those of least weight by `aggregate`."""
        planes = self.planes
        planes.idle = np.where(u > MIN_PLANE_WEIGHT * u.max(), 0, planes.idle + 1)
        kept = planes.idle <= MAX_IDLE
        kept[0] = True
        room = MAX_PLANES - 3  # an iteration adds two
        is_full = np.count_nonzero(kept) > room
        if is_full:
            weight = np.where(kept, u, -1.0)
            weight[0] = np.inf
            kept[np.argsort(-weight, kind="stable")[room:]] = False
        planes.keep(kept)
        if is_full:
            planes.add(aggregate)


def clipped(w: Floats, signs: Directions) -> Floats:
    return np.where(signs * w < 0.0, 0.0, w)


def solve_signed_model(
    losses: Floats, gradients: Floats, between: Floats, step: Floats, signs: Directions
) -> tuple[Floats, Floats]:
    """Return plane weights u and coefficients w at the minimum of the model over the w with the required signs.

    The model is Σ_j (w_j - between_j)²/(2 step_j) + max_k (losses_k + gradients_k·w), and
    w = clip(between - step · Σ u_k gradients_k). The dual is concave, and its pieces are quadratic: the solution of a
    piece's program is a direction of ascent unless it is the optimum. O(k² · size + k³) per program; some five are
    usual. losses: (k,); gradients: (k, size).
    """

    def at(u: Floats) -> Floats:
        return clipped(between - step * (u @ gradients), signs)

    u = np.full(len(losses), 1.0 / len(losses))
    w = at(u)
    for _ in range(MAX_SIGNED_PROGRAMS):
        kept = ~(signs * (between - step * (u @ gradients)) < 0.0)
        own = gradients[:, kept]
        gram = (own * step[kept]) @ own.T
        found = solve_simplex_qp(gram, -(losses + own @ between[kept]))
        change = found - u
        rise = float(change @ (losses + gradients @ w))
        if not rise > 0.0:
            break

        def slope(t: float, u: Floats = u, change: Floats = change) -> float:
            return float(change @ (losses + gradients @ at(u + t * change)))

        low, high = 0.0, 1.0
        if slope(1.0) >= 0.0:
            low = 1.0
        else:
            for _ in range(MAX_BISECTIONS):
                middle = 0.5 * (low + high)
                if slope(middle) > 0.0:
                    low = middle
                else:
                    high = middle
                if high - low < 1e-3 * high:
                    break
        if low == 0.0:
            break
        u = u + low * change
        w = at(u)
        heights = losses + gradients @ w
        if heights.max() - u @ heights <= SIGNED_TOLERANCE * abs(heights).max():
            break
    return u, w


def half_square(w: Floats) -> float:
    return 0.5 * float((w * w).sum())


class LinePoint(NamedTuple):
    """A position t on the search line, with the objective and its derivative there."""

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

    def try_at(self, t: float) -> tuple[LinePoint, TriedPoint]:
        start, end = self._ends
        scores = start.toward(end, t)
        violations = self._problem.at(scores)
        here = violations.value - violations.loss  # g·w
        to, span = (end, 1.0 - t) if t < 0.5 else (start, -t)
        slope = (violations.slope(*to) - here) / span
        trial = TriedPoint(self._start.w + t * self._step, scores, violations)
        return self._at(t, violations.value, slope), trial

    def _at(self, t: float, risk: float, slope: float) -> LinePoint:
        constant, linear, square = self._square
        value = constant + t * linear + 0.5 * t * t * square + self._C * risk
        return LinePoint(t, value, linear + t * square + self._C * slope)


def search(line: Line) -> tuple[LinePoint, TriedPoint | None] | None:
    """Return the lowest point tried on a line, and its trial (None at the line's end); None if t = 0 is the minimum.

    The function is convex, so its slopes bracket the minimum, and the crossing of the tangents at both ends of the
    bracket is a lower bound, which ends the search. Trials follow the secant of the slopes; every third one halves the
    bracket. Only one trial is kept, since it has a score per row.
    """
    low, high = line.first, line.last
    if low.slope >= 0.0:
        return None
    best, best_trial = line.last, None
    if high.slope <= 0.0:
        return best, best_trial
    for trial in range(MAX_TRIALS):
        width = high.t - low.t
        fraction = low.slope / (low.slope - high.slope)
        if trial % 3 == 2:
            fraction = 0.5
        middle, tried = line.try_at(low.t + width * min(max(fraction, 0.02), 0.98))
        if middle.value < best.value:
            best, best_trial = middle, tried
        del tried
        if middle.slope > 0.0:
            high = middle
        else:
            low = middle
        crossing = (low.value - high.value + high.slope * (high.t - low.t)) / (
            high.slope - low.slope
        )
        least = low.value + low.slope * crossing
        if best.value - least <= LINE_SEARCH_TOLERANCE * max(line.first.value - best.value, 0.0):
            break
    return best, best_trial


class DescentDirection(NamedTuple):
    """A direction along which R decreases at w = 0."""

    direction: Floats
    """Shape (size,), float64."""
    scores: Scores
    """Of the rows for w = direction."""
    risk: float
    """R(0)."""
    gradient: Floats
    """Of a plane at w = 0. Shape (size,), float64."""


def find_descent_direction(
    planes: CuttingPlanes,
    max_directions: int = MAX_DIRECTIONS,
    report: Callable[[], None] = lambda: None,
) -> DescentDirection | None:
    """Return a direction along which R decreases at w = 0; None if w = 0 is the minimum (the fit collapses).

    The first direction, from the mean of the negatives to that of the positives, is usually enough. To prove that there
    is none takes about as many as there are coordinates. Under signs a corner counts by its part along directions that
    keep them, and the hull with the cone of the others. Corners without weight in the shortest vector are dropped
    (Wolfe). The planes at 0 are kept. `report` is called after each direction that is none; what it raises
    ends the search.
    """
    problem, signs = planes.problem, planes.signs
    zeros, ones = np.zeros(problem.size), np.ones(problem.size)
    corners = Planes(problem.size)
    violations = problem.at(problem.zero_scores())
    corners.add(problem.plane(violations))
    risk, gradient = violations.value, corners.gradients[0]
    longest = corners.gram[0, 0]
    descent = None
    for _ in range(max_directions):
        level = np.zeros(len(corners.gram))
        if signs is None:
            u = solve_simplex_qp(corners.gram, level)
        else:
            u, _ = solve_signed_model(level, corners.gradients, zeros, ones, signs)
        in_use = u > MIN_CORNER_WEIGHT
        corners.keep(in_use)
        shortest = ((u[in_use] / u[in_use].sum())[:, None] * corners.gradients).sum(axis=0)
        if signs is not None:  # of the steps -w that keep the signs
            shortest = -clipped(-shortest, signs)
        square = float((shortest * shortest).sum())
        if square <= MIN_SLOPE**2 * longest:
            break
        scores = problem.scores(-shortest)
        if scores.range() <= SCORE_ROUNDING * max(abs(of_class).max() for of_class in scores):
            break  # no two rows differ, so the slope is rounding
        violations = problem.at(scores.scaled(_small_step(planes, scores)))
        if violations.slope(*scores) < -MIN_DESCENT * square:
            descent = DescentDirection(-shortest, scores, risk, gradient)
            break
        report()
        corners.add(problem.plane(violations))
        longest = max(longest, corners.gram[-1, -1])
    for loss, gradient in zip(corners.losses[:MAX_PLANES], corners.gradients, strict=False):
        planes.add(Plane(loss, gradient))
    return descent


def _small_step(planes: CuttingPlanes, scores: Scores) -> float:
    """Return a step from w = 0 so short that no pair leaves its margin and R stays linear along it."""
    low, high, total = planes.problem.surrogate.window
    width = scores.range()
    return 0.25 * (high - low) / total / width if width > 0.0 else 1.0


def leave_origin(planes: CuttingPlanes, C: float, descent: DescentDirection) -> Point:
    """Return the lowest point found along a descent direction from w = 0, for this C."""
    problem = planes.problem
    start = Point(np.zeros(problem.size), problem.zero_scores(), descent.risk, descent.gradient)
    slope = -float((descent.gradient * descent.direction).sum())
    length = min(C * slope / float((descent.direction * descent.direction).sum()), 1.0 / slope)
    far = descent.scores.scaled(length)
    end = planes.linearise(TriedPoint(length * descent.direction, far, problem.at(far)))
    return planes.descend(start, end, C, start.w)[0]


def find_axes(
    rows: LinearRows, positive: Floats, negative: Floats, *, turn: bool = True
) -> PrincipalAxes | None:
    """Return the principal axes of the covariance of x₊ - x₋, which is the sum of the two classes' covariances.

    None if the covariance overflows. Without `turn` the axes are the coordinates, with their variances.

    positive, negative: (n_rows,); weight of each row in its class; 0 for rows of the other class.
    """
    wanted = min(ROWS_PER_COORDINATE * rows.size, MAX_ROWS, MAX_CELLS // max(rows.width, 1))
    n_rows = max(wanted, MIN_ROWS) // 2  # of each class
    weight = positive + negative
    if np.count_nonzero(weight) <= MAX_ROWS_READ_WHOLE and weight.sum() <= MAX_ROWS_READ_WHOLE:
        n_rows = MAX_ROWS_READ_WHOLE
    drawn = [draw_by_mass(of_class, n_rows) for of_class in (positive, negative)]
    taken = np.unique(np.concatenate([rows_of_class for rows_of_class, _ in drawn]))
    sample = rows.take(taken)
    both, means = np.zeros(sample.n_rows), []
    for rows_of_class, times in drawn:
        row_weight = np.zeros(sample.n_rows)
        row_weight[np.searchsorted(taken, rows_of_class)] = times / times.sum()
        both += row_weight
        means.append(sample.weighted_sum(row_weight))
    with np.errstate(all="ignore"):
        variance = np.maximum(sample.squares(both) - sum(mean**2 for mean in means), 0.0)
        if not turn:
            nothing = np.empty(0, dtype=np.int64), np.empty((0, 0))
            return PrincipalAxes(*nothing, variance) if np.isfinite(variance).all() else None
        block = np.sort(np.argsort(-variance, kind="stable")[:AXES_BLOCK])
        covariance = sample.products(block, both)[:-1, :-1]
        covariance -= sum(np.outer(mean[block], mean[block]) for mean in means)
    if not (np.isfinite(covariance).all() and np.isfinite(variance).all()):
        return None
    along, axes = np.linalg.eigh(covariance)
    variance[block] = np.maximum(along, 0.0)
    return PrincipalAxes(block, axes, variance)


def draw_by_mass(weight: Floats, n_rows: int) -> tuple[Ints, Floats]:
    """Draw ascending rows by their weight, with their counts; up to `n_rows` rows: all, with weights.

    One is drawn of each of `n_rows` parts of equal weight.
    """
    mass = np.cumsum(weight)
    if np.count_nonzero(weight) <= n_rows and mass[-1] <= n_rows:
        taken = np.flatnonzero(weight)
        return taken, weight[taken]
    parts = np.arange(n_rows)
    within = np.random.Generator(np.random.Philox(key=0)).random(n_rows)
    steps = (parts + within) * (mass[-1] / n_rows)
    drawn = np.minimum(np.searchsorted(mass, steps, side="right"), len(weight) - 1)
    taken, times = np.unique(drawn, return_counts=True)
    return taken, times.astype(np.float64)


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS), inner=True)
def _solve(U, right, x):  # type: ignore[no-untyped-def]
    """Solve U' U x = right for an upper triangular U, (k, k), into `x`."""
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
    """Return the minimum of ½ u'Hu + q'u over the simplex.

    H: (k, k), float64; positive semidefinite; rows may be equal.
    q: (k,), float64.

    Result: (k,), float64; u >= 0, Σ u = 1; within about 1e-13 of the largest number in H and q of the minimum.

    Mehrotra's predictor-corrector interior point method with one step length for u and its multipliers, so that both
    stay feasible and the duality gap is known. O(k³) per step, about 15 steps.

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
        # Factor A + diag(slack / u) = U'U row by row, subtracting multiples of the rows above: these loops become
        # vector instructions. A pivot lost to rounding is made very large, so that its row no longer moves.
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
            length = np.inf  # how far u and slack can go before one of their components is 0
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
    # Where rounding has ended these steps, what is left of the gap belongs to a few vertices: the best step along the
    # pair that violates most takes each of them away.
    pairs = MAX_PAIRS_PER_VERTEX * k if gap > PAIRS_TOLERANCE else 0
    for _ in range(pairs):
        gap = 0.0
        low = high = -1
        for i in range(k):
            gradient[i] = b[i]
            for j in range(k):
                gradient[i] += A[j, i] * u[j]
            if low < 0 or gradient[i] < gradient[low]:
                low = i
            if u[i] > 0.0 and (high < 0 or gradient[i] > gradient[high]):
                high = i
        for i in range(k):
            gap += u[i] * (gradient[i] - gradient[low])
        if gap < PAIRS_TOLERANCE:
            break
        slope = gradient[high] - gradient[low]
        curvature = A[high, high] + A[low, low] - 2.0 * A[high, low]
        length = min(u[high], slope / curvature) if curvature > 0.0 else u[high]
        u[low] += length
        u[high] -= length
    return u
