"""Are the predicted probabilities still as good as at the validation? Cox's line in each test, by the window monitor.

Level and slope (see `core.metrics.cox`) are estimated at each test, with influences by entity, and tested for a
shift in either direction by `monitor_windows`; each has half of α.

**The reference is an estimate, too.** A calibration that was fitted on few rows is off by its sampling error from the
first day, and that is no change. So the reference has the values and the variances of the held-out rows of the
calibration: with 100 positives there, the level is known to ±.2 only, and no number of later outcomes finds a smaller
shift.

Near 0 expected positives the level is skewed. Its variance is at least that under H₀, as for areas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_items, check_value
from core.base.target import two_classes
from core.errors import InvalidData
from core.metrics.cox import Coefficient, level_of, slope_of
from core.metrics.curve import ClassTotals, RocCurve
from core.metrics.estimates import Interval, normal_quantile
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    check_probabilities,
    check_weights,
    effective_units,
    finite_vector,
    inner,
)
from core.metrics.logistic import log_odds, minimise_log_loss, sigmoid
from core.metrics.window import check_level
from core.monitoring.measuring import Measurement, check_alpha, check_booleans, entity_numbers
from core.monitoring.recurrence import sketch_of
from core.monitoring.window import WindowMonitor, monitor_windows

CALIBRATION_ALPHA = 0.01
"""The share of the calibration in a budget of .05; see `budget`."""

_MOST_ODDS = -math.log(1e-6)  # a smaller forecast is not held against an outcome more than this one
_LEAST = 1e-12  # of a variance: rows that are all as predicted show none


@dataclass(frozen=True)
class CalibrationMeasurement:
    """Level and slope of the calibration on some rows.

    Examples
    --------
    >>> from core.monitoring import measure_calibration
    >>> round(measure_calibration([0.2, 0.2, 0.2, 0.2], [1, 0, 1, 0], first=1, last=1).level.value, 2)
    1.39
    """

    level: Measurement
    """The intercept at slope 1, in log-odds."""
    slope: Measurement | None
    """None if all probabilities are equal."""


@dataclass(frozen=True)
class CalibrationMonitor:
    """The tests of level and slope so far.

    Examples
    --------
    >>> from core.monitoring import calibration_reference, monitor_calibration
    >>> reference = calibration_reference((0.0, -0.2, 0.2), None, level=0.95, positives=100, negatives=900)
    >>> monitor_calibration(reference, [], planned=52).level.tests
    ()
    """

    level: WindowMonitor
    """Shifts of the level."""
    slope: WindowMonitor | None
    """Shifts of the slope; None if the reference or an interim test has none."""


def measure_calibration(
    probability: ArrayLike,
    y: ArrayLike,
    *,
    first: int,
    last: int,
    sample_weight: ArrayLike | None = None,
    entity: ArrayLike | None = None,
) -> CalibrationMeasurement:
    """Measure level and slope of the calibration on the rows of one interim test.

    Parameters
    ----------
    probability : array_like of float in [0, 1], shape (n_samples,)
        The predicted probability of each row.
    y : array_like of bool, shape (n_samples,)
        Whether the row is positive; both occur.
    first, last : int
        First and last period of the rows, from 1.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights, such as 1 / propensity.
    entity : array_like of int, shape (n_samples,), optional
        Number of the entity (customer, patient) of each row, the same in all periods. None: all rows are independent.

    Returns
    -------
    CalibrationMeasurement
        Level and slope with their variances and sketches. O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from core.monitoring import measure_calibration
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.3, 3000)
    >>> found = measure_calibration(p, rng.random(3000) < 1.5 * p, first=1, last=1)
    >>> round(found.level.value, 1), round(found.slope.value, 1)
    (0.5, 1.0)
    """
    checked = check_calibration_rows(probability, y, sample_weight, entity)
    two_classes(checked.rows.positive)
    slope = slope_of(checked.rows, checked.odds)
    return CalibrationMeasurement(
        checked.measured(level_of(checked.rows, checked.odds), first, last),
        slope and checked.measured(slope, first, last),
    )


def measure_level_on_stored_curve(
    curve: RocCurve,
    totals: ClassTotals,
    probability: ArrayLike,
    threshold: float,
    *,
    flagged: bool,
) -> Measurement | None:
    """Measure a calibration's level on the validation rows of one side of a threshold, by their ROC curve.

    It is the reference for outcomes of this side: the level of all rows may be right, and that of the highest scores
    wrong.

    Parameters
    ----------
    curve : RocCurve
        The curve of the rows that the calibration was fitted on.
    totals : ClassTotals
        Weights and effective numbers of rows of both classes.
    probability : array_like of float in [0, 1], shape (n_points - 1,)
        The calibrated probability of each of the curve's thresholds but the first, +inf.
    threshold : float
        Lowest score of the flagged rows.
    flagged : bool
        Which side.

    Returns
    -------
    Measurement or None
        The level with its sandwich variance; None if a class has no rows there.

    Examples
    --------
    >>> from core.metrics import ClassTotals, roc_curve
    >>> from core.monitoring import measure_level_on_stored_curve
    >>> curve = roc_curve([1, 0, 1, 0, 0, 0], [0.9, 0.9, 0.4, 0.4, 0.4, 0.4])
    >>> totals = ClassTotals.of_counts(2, 4)
    >>> found = measure_level_on_stored_curve(curve, totals, [0.5, 0.5], 0.9, flagged=False)
    >>> round(found.value, 2)  # log(1 / 3)
    -1.1
    """
    check_value("curve", RocCurve, curve)
    check_value("totals", ClassTotals, totals)
    check_value("threshold", float, threshold)
    check_value("flagged", bool, flagged)
    inside = (curve.thresholds[1:] >= threshold) == flagged
    p = finite_vector("probability", probability, inside.size)
    check_probabilities(p)
    odds = np.tile(np.clip(log_odds(p[inside]), -_MOST_ODDS, _MOST_ODDS), 2)
    counts = np.stack([totals.positive * np.diff(curve.tpr), totals.negative * np.diff(curve.fpr)])
    counts = counts[:, inside]
    by_class = np.array([totals.positive, totals.negative])
    effective = np.array([totals.positive_effective, totals.negative_effective]) / by_class
    numbers = counts.sum(axis=1) * effective
    if not numbers.all():
        return None
    weight = counts.ravel()
    y = np.repeat([1.0, 0.0], counts.shape[1])
    _, (level,), inverse = minimise_log_loss(
        np.empty((0, weight.size)), weight, weight * y, odds, np.zeros(1)
    )
    influence = (y - sigmoid(odds + level)) * inverse[0, 0]
    variance = inner((counts / effective[:, np.newaxis]).ravel(), influence**2)
    return Measurement(float(level), max(variance, _LEAST), float(numbers[0]), float(numbers[1]))


class CalibrationRows(NamedTuple):
    """Checked rows of weight above 0, with the log odds of their probabilities."""

    rows: EvaluatedRows
    odds: FloatArray
    entity: NDArray[np.uint64] | None
    """The number of each unit of `rows`; None if rows are independent."""
    used: NDArray[np.bool_]
    """Which of the rows given these are."""

    def measured(
        self,
        found: Coefficient,
        first: int,
        last: int,
        effective: tuple[float, float] | None = None,
    ) -> Measurement:
        sketch = b"" if self.entity is None else sketch_of(found.influence, self.entity)
        variance = max(found.null_variance, _LEAST)
        numbers = effective or effective_units(self.rows)
        return Measurement(found.value, variance, *numbers, first, last, sketch)


def check_calibration_rows(
    probability: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    entity: ArrayLike | None,
) -> CalibrationRows:
    positive = check_booleans("y", finite_vector("y", y))
    p = finite_vector("probability", probability, positive.size)
    check_probabilities(p)
    odds = np.clip(log_odds(p), -_MOST_ODDS, _MOST_ODDS)
    weight = check_weights(sample_weight, positive.size)
    used = weight > 0.0
    distinct = unit = None
    if entity is not None:
        numbers = entity_numbers(entity, positive.size)[used]
        distinct, unit = np.unique(numbers, return_inverse=True)
    rows = EvaluatedRows(positive[used], (), None if sample_weight is None else weight[used], unit)
    return CalibrationRows(rows, odds[used], distinct, used)


def calibration_reference(
    in_the_large: Sequence[float],
    slope: Sequence[float] | None,
    *,
    level: float,
    positives: float,
    negatives: float,
) -> CalibrationMeasurement:
    """Make a reference from the held-out rows of a calibration; see `core.probability.reliability`.

    Parameters
    ----------
    in_the_large, slope : (float, float, float)
        Value and finite confidence limits of the intercept at slope 1 and of the slope. None without a slope.
    level : float in (0, 1)
        Level of these limits.
    positives, negatives : float > 0
        Rows of each class.

    Returns
    -------
    CalibrationMeasurement

    Examples
    --------
    >>> from core.monitoring import calibration_reference
    >>> found = calibration_reference((0.0, -0.196, 0.196), None, level=0.95, positives=100, negatives=900)
    >>> round(found.level.variance, 4)
    0.01
    """
    z = normal_quantile(check_level(level))

    def measured(name: str, limits: Sequence[float]) -> Measurement:
        given = [float(each) for each in check_items(name, limits, Real)]
        if len(given) != 3:
            raise InvalidData(f"{name} must be a value and two limits, got {len(given)} numbers")
        found = Interval(*given)
        if not (all(map(math.isfinite, found)) and found.low < found.high):
            raise InvalidData(
                f"{name} must have finite limits in order, got {found.low} and {found.high}"
            )
        error = (found.high - found.low) / (2.0 * z)
        return Measurement(found.value, error**2, positives, negatives)

    return CalibrationMeasurement(
        measured("in_the_large", in_the_large), None if slope is None else measured("slope", slope)
    )


def monitor_calibration(
    reference: CalibrationMeasurement,
    tests: Sequence[CalibrationMeasurement],
    *,
    planned: int,
    alpha: float = CALIBRATION_ALPHA,
    tolerance: float = 0.0,
    since: int = 0,
) -> CalibrationMonitor:
    """Test at the end of each period whether the level or the slope of the calibration has shifted.

    An alarm does not always mean that the ranking is worse: a change of the prevalence raises an alarm as well,
    correctly.

    Parameters
    ----------
    reference : CalibrationMeasurement
        The reference, with the variance of the calibration: from `calibration_reference`.
    tests : sequence of CalibrationMeasurement
        The matured interim tests, each with at least 50 rows of both classes.
    planned, alpha
        As for `monitor_rate`.
    tolerance : float >= 0
        Difference of the level, in log-odds, and of the slope up to which nothing is wrong.
    since : int
        Windows begin after this period. 0: from the first period.

    Returns
    -------
    CalibrationMonitor

    Examples
    --------
    >>> import numpy as np
    >>> from core.monitoring import calibration_reference, measure_calibration, monitor_calibration
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.3, (3, 1000))
    >>> y = rng.random((3, 1000)) < p * np.array([[1.0], [1.0], [1.8]])
    >>> tests = [measure_calibration(p[i], y[i], first=i + 1, last=i + 1) for i in range(3)]
    >>> reference = calibration_reference((0.0, -0.1, 0.1), (1.0, 0.8, 1.2), level=0.95, positives=400, negatives=2000)
    >>> monitor_calibration(reference, tests, planned=52).level.alarm.period
    3
    """
    check_value("reference", CalibrationMeasurement, reference)
    check_items("tests", tests, CalibrationMeasurement)
    check_alpha(alpha)
    share = alpha if reference.slope is None else alpha / 2.0

    def monitored(of: Measurement, measured: Sequence[Measurement]) -> WindowMonitor:
        return monitor_windows(
            of,
            measured,
            planned=planned,
            alpha=share,
            tolerance=tolerance,
            since=since,
            change="shift",
        )

    slopes = [each.slope for each in tests if each.slope is not None]
    level = monitored(reference.level, [each.level for each in tests])
    if reference.slope is None or len(slopes) < len(tests):
        return CalibrationMonitor(level, None)
    return CalibrationMonitor(level, monitored(reference.slope, slopes))
