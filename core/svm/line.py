"""The search along a line on cached scores: no product with the table, slopes from the violations."""

from typing import NamedTuple

from core.ranker import Floats

from .problem import Problem, Scores
from .surrogate import Violations

MOST_TRIALS = 8

# Of what the search has gained so far, what it may leave.
ENOUGH = 0.05


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

    Returns
    -------
    Found, and the trial there unless it is the line's end; or None
        The best that was tried; None where the start is the minimum.

    Notes
    -----
    Slopes of R are those of one plane each, so they bracket the minimum; where the tangents at both ends cross
    is a lower bound, which tells when to stop. Trials go by the secant of the slopes, halved where it lags. Only one
    trial is kept besides the line's ends: it is as large as the rows are many.
    """
    low, high = line.first, line.last
    if low.slope >= 0.0:
        return None
    best, best_trial = line.last, None
    if high.slope <= 0.0:
        return best, best_trial
    for trial in range(MOST_TRIALS):
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
        if best.value - least <= ENOUGH * max(line.first.value - best.value, 0.0):
            break
    return best, best_trial
