"""Do decisions treat groups equally? Ratios of selection rates and differences of the calibration, at each test.

Both compare one group with a reference group and are tested for a shift in either direction by `monitor_windows`,
against equality instead of a validation. Of ratios it is known exactly.

* The *ratio* of the selection rates r_g / r_0 is measured as its logarithm, whose error is more nearly normal. With the
  tolerance −log .8 there is an alarm when a ratio is significantly below .8 or above 1 / .8 (the four-fifths rule of 29
  CFR 1607.4 D, in both directions).
* The *difference* of the calibration is the coefficient of the group in log odds(y) = log odds(p) + a + d · [group]. A
  shift that all groups have in common, such as another prevalence, is no difference. But a calibration was estimated.
  If its slope is off by s, groups whose mean log odds differ by m have levels that differ by s m, although nothing is
  unequal. So the reference has the variance m² Var(s). An error in the shape of the calibration is not part of it.

Both have influences by entity, so that the same customers in each period are no new evidence, see `recurrence`. Their
variance is at least that under H₀: a rate that is high by chance would otherwise also look precise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_items, check_value
from core.errors import InvalidData, InvalidParameter
from core.metrics.cox import contrast_of
from core.metrics.groups import (
    FloatArray,
    check_probabilities,
    check_weights,
    finite_vector,
    sum_by_unit,
)
from core.metrics.logistic import log_odds, sigmoid
from core.monitoring.calibration import check_calibration_rows
from core.monitoring.measuring import Measurement, check_booleans, entity_numbers
from core.monitoring.recurrence import sketch_of
from core.monitoring.window import WindowMonitor, monitor_windows

EXACT = 1e-12
"""Variance of a reference that is known."""


def measure_selection_ratio(
    selected: ArrayLike,
    in_group: ArrayLike,
    *,
    first: int,
    last: int,
    sample_weight: ArrayLike | None = None,
    entity: ArrayLike | None = None,
) -> Measurement | None:
    """Measure the logarithm of the ratio of two groups' selection rates on the rows of one interim test.

    Parameters
    ----------
    selected : array_like of bool, shape (n_samples,)
        Whether the row is selected.
    in_group : array_like of bool, shape (n_samples,)
        Whether the row is of the group; the others are of the reference group.
    first, last, entity
        As for `measure_calibration`.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights, such as 1 / the probability that a decision was recorded.

    Returns
    -------
    Measurement or None
        `positives` and `negatives` are the effective numbers of selected and of other rows (entities) in the group that
        has fewer. None if one of these numbers is 0.

    Examples
    --------
    >>> import math
    >>> from core.monitoring import measure_selection_ratio
    >>> found = measure_selection_ratio([1, 0, 0, 0, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0], first=1, last=1)
    >>> round(math.exp(found.value), 2), found.positives, found.negatives
    (0.5, 1.0, 2.0)
    """
    chosen = check_booleans("selected", finite_vector("selected", selected))
    n = chosen.size
    group = check_booleans("in_group", finite_vector("in_group", in_group, n))
    weight = np.ones(n) if sample_weight is None else check_weights(sample_weight, n)
    numbers = np.arange(n) if entity is None else entity_numbers(entity, n)
    if not weight.all():
        used = weight > 0.0
        chosen, group, weight, numbers = chosen[used], group[used], weight[used], numbers[used]
    distinct, unit = np.unique(numbers.astype(np.uint64), return_inverse=True)
    effective = _scarcest(chosen, group, weight, unit)
    if min(effective) == 0.0:
        return None
    rates = [float(np.average(chosen[of], weights=weight[of])) for of in (group, ~group)]
    overall = float(np.average(chosen, weights=weight))
    own, null = (
        _influence(chosen, group, weight, unit, pair) for pair in (rates, [overall, overall])
    )
    units = float(len(distinct))
    variance = max(float(own @ own), float(null @ null)) * units / max(units - 1.0, 1.0)
    sketch = b"" if entity is None else sketch_of(own, distinct)
    return Measurement(math.log(rates[0] / rates[1]), variance, *effective, first, last, sketch)


def _influence(
    chosen: NDArray[np.bool_],
    group: NDArray[np.bool_],
    weight: FloatArray,
    unit: NDArray[np.intp],
    rates: Sequence[float],
) -> FloatArray:
    """Return the influence of each unit on the log ratio, if the rates of group and reference are these."""
    influence = np.empty(chosen.size)
    for of, rate, sign in ((group, rates[0], 1.0), (~group, rates[1], -1.0)):
        influence[of] = sign * weight[of] * (chosen[of] - rate) / (weight[of].sum() * rate)
    return sum_by_unit(influence, unit)


def _scarcest(
    y: NDArray[np.bool_],
    group: NDArray[np.bool_],
    weight: FloatArray,
    unit: NDArray[np.intp],
) -> tuple[float, float]:
    """Return the effective numbers of units with y and with not y (Kish), in the group that has fewer."""
    found = []
    for rows in (y, ~y):
        numbers = []
        for of in (group, ~group):
            sums = np.bincount(unit[rows & of], weight[rows & of])
            squares = float(sums @ sums)
            numbers.append(float(sums.sum()) ** 2 / squares if squares > 0.0 else 0.0)
        found.append(min(numbers))
    return found[0], found[1]


def measure_calibration_difference(
    probability: ArrayLike,
    y: ArrayLike,
    in_group: ArrayLike,
    *,
    first: int,
    last: int,
    sample_weight: ArrayLike | None = None,
    entity: ArrayLike | None = None,
) -> Measurement | None:
    """Measure the difference of two groups' levels of the calibration on the rows of one interim test.

    Parameters
    ----------
    probability, y, first, last, sample_weight, entity
        As for `measure_calibration`.
    in_group : array_like of bool, shape (n_samples,)
        Whether the row is of the group; the others are of the reference group.

    Returns
    -------
    Measurement or None
        Level of the group minus level of the reference group, in log-odds. `positives` and `negatives` are the
        effective numbers of rows (entities) in the group that has fewer. None if one of these numbers is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from core.monitoring import measure_calibration_difference
    >>> rng = np.random.default_rng(0)
    >>> p, of = rng.uniform(0.05, 0.3, 9000), np.arange(9000) % 2
    >>> y = rng.random(9000) < p * (1.0 + 0.5 * of)
    >>> round(measure_calibration_difference(p, y, of, first=1, last=1).value, 1)
    0.5
    """
    checked = check_calibration_rows(probability, y, sample_weight, entity)
    rows, used = checked.rows, checked.used
    group = check_booleans("in_group", finite_vector("in_group", in_group, used.size))[used]
    unit = np.arange(group.size) if rows.unit is None else rows.unit
    masses = np.ones(group.size) if rows.weight is None else rows.weight
    effective = _scarcest(rows.positive, group, masses, unit)
    if min(effective) == 0.0:
        return None
    difference = contrast_of(rows, checked.odds, group.astype(np.float64))
    return checked.measured(difference, first, last, effective)


def log_odds_gap(
    probability: ArrayLike, in_group: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the difference of two groups' mean log odds.

    An error of the slope moves the levels of the groups apart by this factor.

    Parameters
    ----------
    probability, sample_weight
        As for `measure_calibration`.
    in_group : array_like of bool, shape (n_samples,)
        As for `measure_calibration_difference`; both groups have rows of weight above 0.

    Returns
    -------
    float
        Mean of the group minus mean of the reference group, where a row of probability p counts p (1 − p).

    Examples
    --------
    >>> from core.monitoring import log_odds_gap
    >>> round(log_odds_gap([0.1, 0.1, 0.2, 0.2], [0, 0, 1, 1]), 3)
    0.811
    """
    p = finite_vector("probability", probability)
    check_probabilities(p)
    group = check_booleans("in_group", finite_vector("in_group", in_group, p.size))
    weight = check_weights(sample_weight, p.size)
    used = weight > 0.0
    group, odds = group[used], log_odds(p[used])
    information = weight[used] * sigmoid(odds) * sigmoid(-odds)
    means = [float(np.average(odds[of], weights=information[of])) for of in (group, ~group)]
    return means[0] - means[1]


def monitor_differences(
    tests: Sequence[Measurement],
    *,
    planned: int,
    alpha: float,
    tolerance: float = 0.0,
    since: int = 0,
    reference_variance: float = 0.0,
) -> WindowMonitor:
    """Test after each period whether two groups differ by more than a tolerance, in either direction.

    Parameters
    ----------
    tests : sequence of Measurement
        The interim tests, from `measure_selection_ratio` or `measure_calibration_difference`, each with at least 50
        positives and 50 negatives.
    planned, alpha, since
        As for `monitor_windows`.
    tolerance : float >= 0
        Difference, on the logarithmic scale of the measurements, up to which the groups count as equal.
    reference_variance : float >= 0
        Variance of the difference that the calibration's own error causes: the square of `log_odds_gap` times the
        variance of its slope. The same at each test of a series.

    Returns
    -------
    WindowMonitor
        Its drops are 0 minus the value of the window.

    Examples
    --------
    >>> import math
    >>> from core.monitoring import Measurement, monitor_differences
    >>> weeks = [Measurement(math.log(0.5), 0.01, 100, 900, i, i) for i in (1, 2)]
    >>> monitor_differences(weeks, planned=52, alpha=0.01, tolerance=-math.log(0.8)).alarm.period
    1
    """
    check_items("tests", tests, Measurement)
    if any(not each.first for each in tests):
        raise InvalidData("tests must be of periods, from 1")
    if not 0.0 <= check_value("reference_variance", Real, reference_variance) < math.inf:
        raise InvalidParameter(
            f"reference_variance must be at least 0 and finite, got {reference_variance}"
        )
    equal = Measurement(0.0, EXACT + reference_variance, 1.0, 1.0)
    return monitor_windows(
        equal,
        tests,
        planned=planned,
        alpha=alpha,
        tolerance=tolerance,
        since=since,
        change="shift",
    )
