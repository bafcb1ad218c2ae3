"""How outcomes arrive: the incidence of positive and of negative outcomes over the time since the decision.

At any moment some decisions, mostly recent ones, still wait for their outcome. So the decisions with a known outcome do
not show which fraction of all outcomes arrives within 30 days. A pending decision has no class yet, so Kaplan–Meier
curves by class are not defined: positive and negative outcomes are competing events. Their cumulative incidences are
estimated by Aalen & Johansen (1978). With d_k events of class k among the n decisions that still wait at time t, and
S(t) = Π (1 − d / n) over earlier times,

    I_k(t) = Σ S(u−) d_k(u) / n(u)   over the times u ≤ t.

The variance follows Marubini & Valsecchi (1995, §10.2.3), by the delta method with multinomial increments. Without
waiting decisions I_k is a fraction of n, and its variance I (1 − I) / n exactly.

**Assumption.** The delay does not depend on the time of the decision (independent censoring). If outcomes now arrive
later than before, recent decisions count too little, and incidences at long delays describe older decisions.

References
----------
Aalen & Johansen, "An empirical transition matrix for non-homogeneous Markov chains based on censored observations",
Scandinavian Journal of Statistics 5 (1978).
Marubini & Valsecchi, *Analysing Survival Data from Clinical Trials and Observational Studies* (1995).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.target import as_array
from core.errors import InvalidData
from core.metrics.estimates import wilson_interval
from core.metrics.groups import FloatArray, finite_vector
from core.metrics.window import check_level
from core.monitoring.measuring import column


@dataclass(frozen=True)
class ArrivalPoint:
    """The outcomes that have arrived by a time after the decision.

    Attributes
    ----------
    positive, positive_low, positive_high : float or None
        Probability that an outcome arrives by then and is positive, with confidence limits. None if no decision has
        been observed for that long.
    negative, negative_low, negative_high : float or None
        The same for negative outcomes.

    Examples
    --------
    >>> from core.monitoring import outcome_incidence
    >>> (point,) = outcome_incidence([1.0, 2.0, 5.0, 5.0], [1, 0, -1, -1], [3.0])
    >>> point.positive, point.negative, point.pending
    (0.25, 0.25, 0.5)
    """

    time: float
    """Time since the decision, in the unit of the delays."""
    at_risk: int
    """Decisions that still wait for their outcome just before this time."""
    positive: float | None
    positive_low: float | None
    positive_high: float | None
    negative: float | None
    negative_low: float | None
    negative_high: float | None
    pending: float | None
    """Probability that there is no outcome by then."""


def outcome_incidence(
    delay: ArrayLike, outcome: ArrayLike, times: ArrayLike, level: float = 0.95
) -> list[ArrivalPoint]:
    """Compute the cumulative incidence of positive and negative outcomes since the decision.

    Parameters
    ----------
    delay : array_like of float, shape (n_decisions,)
        Time from the decision to its outcome, or to now (`as_of`) if it has none; not negative.
    outcome : array_like of int, shape (n_decisions,)
        1: positive; 0: negative; -1: none yet.
    times : array_like of float, shape (n_times,)
        Times since the decision, not negative.
    level : float in (0, 1)
        Level of the limits.

    Returns
    -------
    list of ArrivalPoint
        One per time, in the order of `times`. O(n log n).

    Examples
    --------
    >>> from core.monitoring import outcome_incidence
    >>> points = outcome_incidence([3, 10, 10, 20, 25, 30], [1, -1, 0, 1, -1, 0], [15, 30])
    >>> [(point.time, round(point.positive, 3), point.at_risk) for point in points]
    [(15.0, 0.167, 3), (30.0, 0.389, 1)]
    """
    check_level(level)
    if as_array("delay", delay).size == 0:
        raise InvalidData("delay must have at least one decision, got none")
    waited, at = finite_vector("delay", delay), finite_vector("times", times)
    kind = column("outcome", outcome, "delay", waited.size)
    for name, values in (("delay", waited), ("times", at)):
        if (values < 0.0).any():
            index = int(np.argmax(values < 0.0))
            raise InvalidData(
                f"{name} must not be negative, got {values[index]:g} at index {index}"
            )
    wrong = ~np.isin(kind, (-1.0, 0.0, 1.0))
    if wrong.any():
        index = int(np.argmax(wrong))
        raise InvalidData(f"outcome must be 1, 0 or -1, got {kind[index]:g} at index {index}")
    steps = _Steps.of(waited, kind)
    longest = float(waited.max())
    return [
        _point(steps, float(time), waited, level, observed=time <= longest or steps.none_left)
        for time in at
    ]


@dataclass(frozen=True, eq=False)
class _Steps:
    """The times at which outcomes arrived, increasing; all arrays have shape (n_steps,)."""

    time: FloatArray
    at_risk: FloatArray
    events: FloatArray
    """Outcomes of both classes."""
    of_class: tuple[FloatArray, FloatArray]
    """Negative and positive outcomes."""
    before: FloatArray
    """S just before each time."""
    incidence: tuple[FloatArray, FloatArray]
    """I_k at each time."""

    @classmethod
    def of(cls, delay: FloatArray, kind: FloatArray) -> _Steps:
        arrived = kind >= 0.0
        time, step = np.unique(delay[arrived], return_inverse=True)
        of_class = [
            np.bincount(step, kind[arrived] == k, time.size).astype(np.float64) for k in (0.0, 1.0)
        ]
        at_risk = delay.size - np.searchsorted(np.sort(delay), time, side="left").astype(np.float64)
        events = of_class[0] + of_class[1]
        after = np.cumprod(1.0 - events / at_risk, dtype=np.float64)
        before = np.concatenate([[1.0], after[:-1]]) if time.size else after
        incidence = [np.cumsum(before * d / at_risk) for d in of_class]
        return cls(
            time,
            at_risk,
            events,
            (of_class[0], of_class[1]),
            before,
            (incidence[0], incidence[1]),
        )

    @property
    def none_left(self) -> bool:
        """Whether the decision with the longest delay has an outcome, so that later incidences are known."""
        return bool(self.time.size) and bool(self.at_risk[-1] == self.events[-1])

    def variance(self, k: int, n: int) -> float:
        if n == 0:
            return 0.0
        at_risk, d, events = self.at_risk[:n], self.of_class[k][:n], self.events[:n]
        before, rest = self.before[:n], self.incidence[k][n - 1] - self.incidence[k][:n]
        left = at_risk - events
        # Where nobody is left, nothing comes after: `rest` is 0.
        hazard = np.divide(events, at_risk * left, out=np.zeros(n), where=left > 0.0)
        return float(
            (rest**2 * hazard).sum()
            + (before**2 * (at_risk - d) * d / at_risk**3).sum()
            - 2.0 * (rest * before * d / at_risk**2).sum()
        )


def _point(
    steps: _Steps, time: float, delay: NDArray[np.float64], level: float, *, observed: bool
) -> ArrivalPoint:
    at_risk = int(np.count_nonzero(delay >= time))
    if not observed:
        return ArrivalPoint(time, at_risk, *(None,) * 7)
    n = int(np.searchsorted(steps.time, time, side="right"))
    # of the decisions, those that were not censored before this time
    settled = at_risk + int(steps.events[: np.searchsorted(steps.time, time, side="left")].sum())
    found: list[tuple[float, float, float]] = []
    for k in (1, 0):
        value = min(1.0, float(steps.incidence[k][n - 1])) if n else 0.0
        found.append(_limits(value, steps.variance(k, n), settled, level))
    pending = max(0.0, 1.0 - found[0][0] - found[1][0])
    return ArrivalPoint(time, at_risk, *found[0], *found[1], pending)


def _limits(value: float, variance: float, n: int, level: float) -> tuple[float, float, float]:
    """Return an incidence with Wilson's limits, for the trials of a proportion with this variance.

    The estimated variance of an incidence of 0 or 1 is 0. Its trials are the n decisions whose outcome would have been
    seen.
    """
    of_one = value * (1.0 - value)
    trials = of_one / variance if variance > 0.0 and of_one > 0.0 else float(n)
    return wilson_interval(value, max(trials, 1e-9), level)
