"""The value of a metric in each period, with its variance: the input of the monitors.

A *period* (a week) is a cohort: the rows that were scored in it, once their outcomes are known. Periods are numbered
from 1 in the order of the plan. A period with few positives has no reliable variance, so consecutive periods are merged
until they have `MIN_POSITIVES` in total; the last ones wait if they have fewer.

The variance is DeLong's (or that of a partial area). Near 1 it depends on a few rows and varies with the value: it is
too small where the value is too great. In a validation that would raise false alarms, so its variance is mixed with the
greatest one that fits, as in the intervals of `core.metrics`. A period that is too good raises none, so it needs no
such precaution, which at an AUC of .99 would double the delay (docs/monitoring.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_value
from core.base.target import as_array, as_numbers, number_units
from core.errors import InvalidData, InvalidParameter
from core.metrics.curve import ClassTotals, RocCurve
from core.metrics.estimates import EPSILON, Estimates, effective_trials
from core.metrics.functionals.area import WindowArea
from core.metrics.functionals.base import Masses, Metric, masses_on_curve, metric_of
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    check_rows,
    check_weights,
    effective_rows,
    effective_units,
    finite_vector,
    has_enough,
    inner,
    sum_by_unit,
)
from core.metrics.measuring import estimate_metrics, variance_of
from core.metrics.window import check_rate
from core.monitoring.recurrence import check_sketch, sketch_of

MIN_POSITIVES = 50
"""Minimum number of positives, and of negatives, in an interim test: fewer would make its variance too uncertain."""

MAX_PERIODS = 400
"""Maximum number of periods in a plan: a year of days. The run time of a monitor grows with its square."""


@dataclass(frozen=True)
class Measurement:
    """The value of a metric on the rows of consecutive periods, or on the validation rows.

    Attributes
    ----------
    positives, negatives : float > 0
        Effective numbers of rows of each class (numbers of rows, if they are unweighted).
    first, last : int
        First and last period of the rows, from 1; 0 for the validation.

    Examples
    --------
    >>> from core.monitoring import Measurement
    >>> Measurement(value=0.8, variance=0.0001, positives=1000, negatives=9000).weight
    1000.0
    """

    value: float
    """The metric: an area or a rate in [0, 1], or a coefficient of the calibration."""
    variance: float
    """Sampling variance of the value. Above 0."""
    positives: float
    negatives: float
    first: int = 0
    last: int = 0
    by_entity: bytes = b""
    """The sketch of the influences by entity, which shows how values of periods with the same entities are correlated
    (see `core.monitoring.recurrence`). Empty: the rows are independent of those of other periods."""

    def __post_init__(self) -> None:
        check_value("value", float, self.value)
        for name in ("variance", "positives", "negatives"):
            number = check_value(name, Real, getattr(self, name))
            if not 0.0 < number < np.inf:
                raise InvalidParameter(f"{name} must be positive and finite, got {number}")
        check_value("first", int, self.first)
        check_value("last", int, self.last)
        if not 0 <= self.first <= self.last:
            raise InvalidParameter(
                f"first and last must be periods with 0 <= first <= last, got {self.first} and {self.last}"
            )
        check_sketch("by_entity", check_value("by_entity", bytes, self.by_entity))

    @property
    def weight(self) -> float:
        """Weight in the mean over a window of periods: the rows of the scarcer class.

        It does not depend on the variance, which is correlated with the value near 1.
        """
        return float(min(self.positives, self.negatives))


def area_named(metric: str | WindowArea) -> WindowArea:
    found = metric_of(metric)
    if not isinstance(found, WindowArea):
        raise InvalidParameter(
            f"metric must be auc or pauc:fpr_min,fpr_max to be monitored, got {found.name}"
        )
    return found


def measure_validation(
    y: ArrayLike,
    scores: ArrayLike,
    metric: str | WindowArea = "auc",
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> Measurement:
    """Measure the AUC or partial AUC of held-out rows, the reference of a monitor.

    Parameters
    ----------
    y, scores, sample_weight
        As for `core.metrics.auc`.
    metric : str or WindowArea
        "auc", or a partial AUC such as "pauc:0,0.05".
    group : array_like, shape (n_samples,), optional
        Rows with equal values were drawn together.

    Returns
    -------
    Measurement
        Value and variance. O(n log n).

    Examples
    --------
    >>> from core.monitoring import measure_validation
    >>> measure_validation([1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]).positives
    3.0
    """
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    estimates, masses = _measured(rows, area := area_named(metric))
    value, variance = float(estimates.values[0, 0]), estimates.variance(0, 0)
    return Measurement(
        value, variance_within_bounds(value, variance, masses, area), *masses.effective
    )


def measure_auc(
    y: ArrayLike,
    scores: ArrayLike,
    metric: str | WindowArea = "auc",
    *,
    first: int,
    last: int,
    sample_weight: ArrayLike | None = None,
    entity: ArrayLike | None = None,
) -> Measurement:
    """Measure the AUC or partial AUC of the rows of one interim test, to be stored instead of the rows.

    Parameters
    ----------
    y, first, last, sample_weight, entity
        As for `measure_calibration`.
    scores : array_like of float, shape (n_samples,)
        Finite scores; higher means more likely positive.
    metric : str or WindowArea
        "auc", or a partial AUC such as "pauc:0,0.05".

    Returns
    -------
    Measurement
        Value, variance and sketch. O(n log n).

    Examples
    --------
    >>> from core.monitoring import measure_auc
    >>> measure_auc([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6], first=3, last=3, entity=[7, 7, 8, 9]).negatives
    2.0
    """
    positive = check_booleans("y", finite_vector("y", y))
    score = finite_vector("scores", scores, positive.size)
    numbers = None if entity is None else entity_numbers(entity, positive.size)
    weight = None if sample_weight is None else check_weights(sample_weight, positive.size)
    if weight is not None and not weight.all():
        used = weight > 0.0
        positive, score, weight = positive[used], score[used], weight[used]
        numbers = None if numbers is None else numbers[used]
    rows = check_rows(positive, {"scores": score}, weight, numbers)
    distinct = None if numbers is None else np.unique(numbers)
    return _test(rows, area_named(metric), first, last, distinct)


def measure_rate(
    event: ArrayLike,
    bound: float,
    *,
    first: int,
    last: int,
    entity: ArrayLike,
    of_class: ArrayLike | None = None,
    missing_odds: float = 1.0,
) -> Measurement | None:
    """Measure a rate of events on the rows of one interim test, where entities recur.

    The rows of each side, with the event and without it, are weighted by the inverse of the part whose outcome is
    known. So outcomes may be missing at random, more often on one side than on the other.

    Parameters
    ----------
    event : array_like of bool, shape (n_samples,)
        Whether the row had the event, such as being flagged. It is known of all rows.
    bound : float in (0, 1)
        Largest rate under H₀.
    first, last, entity
        As for `measure_calibration`.
    of_class : array_like of float, shape (n_samples,), optional
        1 for rows of the class whose rate of events it is, such as the negatives, 0 for others, NaN for those without
        an outcome. Default: all rows are of the class.
    missing_odds : float > 0
        The odds of the class among the missing outcomes of rows with the event, over those among the known ones; on
        the other side the inverse. 1: missing at random.

    Returns
    -------
    Measurement or None
        The rate. `positives` is the number of entities that would have an event if events at the bound were
        independent, and `negatives` that of those with a row without one, by Kish's effective number of entities. None
        if one of these is below 50, or less than half of the outcomes of a side are known.

    Examples
    --------
    >>> import numpy as np
    >>> from core.monitoring import measure_rate
    >>> measure_rate(np.arange(2000) % 25 == 0, 0.05, first=1, last=1, entity=np.arange(2000) % 500).value
    0.04
    """
    if not 0.0 < check_rate("bound", bound) < 1.0:
        raise InvalidParameter(f"bound must be strictly between 0 and 1, got {bound}")
    if not 0.0 < check_value("missing_odds", Real, missing_odds) < np.inf:
        raise InvalidParameter(f"missing_odds must be positive and finite, got {missing_odds}")
    if as_array("event", event).size == 0:
        return None
    happened = check_booleans("event", finite_vector("event", event))
    n = happened.size
    distinct, unit = np.unique(entity_numbers(entity, n), return_inverse=True)
    known = counted = np.ones(n, np.bool_)
    if of_class is not None:
        given = as_numbers("of_class", of_class)
        if given.shape != (n,):
            raise InvalidData(
                f"of_class must have one value for each of the {n} rows, got shape {given.shape}"
            )
        known = ~np.isnan(given)
        counted = check_booleans("of_class", np.where(known, given, 0.0))
    sizes = np.bincount(unit[counted]).astype(np.float64, copy=False)
    if not sizes.any():
        return None
    units, rows = effective_rows(sizes, sizes**2), float(sizes.sum())
    with_event, without = (
        units * (1.0 - (1.0 - p) ** (rows / units)) for p in (bound, 1.0 - bound)
    )
    if not has_enough(min(with_event, without), MIN_POSITIVES):
        return None
    weight, sides = counted.astype(np.float64), []
    for side, odds in ((happened, missing_odds), (~happened, 1.0 / missing_odds)):
        seen, unseen = side & known, side & ~known
        k, m = np.count_nonzero(seen), np.count_nonzero(unseen)
        if m > k:
            return None
        if m:
            share = np.count_nonzero(side & counted) / k
            relative = odds / (share * odds + 1.0 - share)
            weight[side] *= 1.0 + relative * m / k
            sides.append((seen, unseen, relative, m / k))
    rate = inner(weight, happened.astype(np.float64)) / float(weight.sum())
    influence = counted * (happened - rate)
    for seen, unseen, relative, per_known in sides:
        mean = influence[seen].mean()
        influence[seen] += relative * per_known * (influence[seen] - mean)
        influence[unseen] = relative * mean
    by_entity = sum_by_unit(influence / weight.sum(), unit)
    variance = inner(by_entity, by_entity) * distinct.size / (distinct.size - 1.0)
    sketch = sketch_of(by_entity, distinct)
    if variance <= 0.0:
        variance = bound * (1.0 - bound) / rows
    return Measurement(rate, variance, with_event, without, first, last, sketch)


def entity_numbers(entity: ArrayLike, length: int) -> NDArray[np.uint64]:
    numbers = as_array("entity", entity)
    if numbers.dtype.kind not in "iu" or numbers.shape != (length,):
        raise InvalidData(
            f"entity must be a whole number for each of the {length} rows, got {numbers.dtype} of shape {numbers.shape}"
        )
    return numbers.astype(np.uint64)


def _test(
    rows: EvaluatedRows,
    area: WindowArea,
    first: int,
    last: int,
    entity: NDArray[np.uint64] | None,
) -> Measurement:
    estimates, masses = _measured(rows, area)
    value = float(estimates.values[0, 0])
    variance = shown_variance(value, estimates.variance(0, 0))
    sketch = b""
    if entity is not None and variance is not None and estimates.influence is not None:
        sketch = sketch_of(estimates.influence[0, 0], entity)
    if variance is None:
        variance = variance_within_bounds(value, None, masses, area)
    return Measurement(value, variance, *masses.effective, first, last, sketch)


def measure_on_stored_curve(
    curve: RocCurve, totals: ClassTotals, metric: str | WindowArea = "auc"
) -> Measurement:
    """Measure the AUC or partial AUC of a validation whose ROC curve is stored.

    Parameters
    ----------
    curve : RocCurve
        The curve. If points were left out of it, rows between two points count as tied.
    totals : ClassTotals
        Weights and effective numbers of rows of both classes.
    metric : str or WindowArea
        "auc", or a partial AUC such as "pauc:0,0.05".

    Returns
    -------
    Measurement

    Examples
    --------
    >>> from core.metrics import ClassTotals, roc_curve
    >>> from core.monitoring import measure_on_stored_curve
    >>> curve = roc_curve([1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    >>> round(measure_on_stored_curve(curve, ClassTotals.of_counts(3, 3)).value, 3)
    0.889
    """
    area = area_named(metric)
    masses = masses_on_curve(curve, totals)
    found = area.of(masses)
    variance = variance_within_bounds(found.value, variance_of(found, masses), masses, area)
    return Measurement(found.value, variance, *masses.effective)


def measure_periods(
    y: ArrayLike,
    scores: ArrayLike,
    period: ArrayLike,
    metric: str | WindowArea = "auc",
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    since: int = 0,
) -> list[Measurement]:
    """Measure the AUC or partial AUC of each period, merging periods with too few rows of a class.

    Pass periods up to the last one that has matured. The caller leaves out rows without a known outcome.

    Parameters
    ----------
    y : array_like of bool, shape (n_samples,)
        Whether the row is positive.
    scores : array_like of float, shape (n_samples,)
        Finite scores; higher means more likely positive.
    period : array_like of int, shape (n_samples,)
        Number of the period in which the row was scored, from 1.
    metric : str or WindowArea
        "auc", or a partial AUC such as "pauc:0,0.05".
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights, such as 1 / propensity.
    group : array_like, shape (n_samples,), optional
        Rows with equal values were drawn together, such as those of a customer, also in different periods.
    since : int
        Interim tests begin after this period, as in `monitor_windows`; rows up to it are left out.

    Returns
    -------
    list of Measurement
        One per interim test, in the order of time; periods at the end with too few rows are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from core.monitoring import measure_periods
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(3000) < 0.1
    >>> tests = measure_periods(y, y + rng.normal(size=3000), np.repeat([1, 2, 3], 1000))
    >>> [(test.first, test.last, test.negatives) for test in tests]
    [(1, 1, 911.0), (2, 2, 879.0), (3, 3, 892.0)]
    """
    area = area_named(metric)
    return [
        _test(rows, area, first, last, entity)
        for first, last, rows, entity in rows_by_test(
            y, {"scores": scores}, period, sample_weight=sample_weight, group=group, since=since
        )
    ]


def rows_by_test(
    y: ArrayLike,
    scores: Mapping[str, ArrayLike],
    period: ArrayLike,
    *,
    sample_weight: ArrayLike | None,
    group: ArrayLike | None,
    since: int = 0,
) -> Iterator[tuple[int, int, EvaluatedRows, NDArray[np.uint64] | None]]:
    """Yield the first and last period of each interim test, its checked rows, and the number of each of their groups.

    Periods are merged until their effective numbers of rows (or groups) of both classes are `MIN_POSITIVES`.
    InvalidData, InvalidParameter: as `measure_periods`.
    """
    if as_array("y", y).size == 0:
        return
    check_plan(MAX_PERIODS, since)
    positive, number = labels_and_periods(y, period)
    n = positive.size
    values = {name: finite_vector(name, each, n) for name, each in scores.items()}
    weight = None if sample_weight is None else check_weights(sample_weight, n)
    unit = None if group is None else number_units("group", group, n)
    counts = np.array(
        [np.bincount(number[of], minlength=number.max() + 1) for of in (positive, ~positive)]
    )
    first = since + 1
    for last in range(first, counts.shape[1]):
        if counts[:, first : last + 1].sum(axis=1).min() < MIN_POSITIVES:
            continue
        inside = (number >= first) & (number <= last)
        if weight is not None:
            inside &= weight > 0.0
            if not positive[inside].any() or positive[inside].all():
                continue
        rows = check_rows(
            positive[inside],
            {name: each[inside] for name, each in values.items()},
            None if weight is None else weight[inside],
            None if unit is None else unit[inside],
        )
        if has_enough(min(effective_units(rows)), MIN_POSITIVES):
            numbers = None if unit is None else np.unique(unit[inside]).astype(np.uint64)
            yield first, last, rows, numbers
            first = last + 1


def check_plan(planned: int, since: int) -> int:
    for name, value in (("planned", planned), ("since", since)):
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise InvalidParameter(f"{name} must be a whole number, got {value!r}")
    if not 1 <= planned <= MAX_PERIODS:
        raise InvalidParameter(f"planned must be from 1 to {MAX_PERIODS}, got {planned}")
    if not 0 <= since < planned:
        raise InvalidParameter(f"since must be from 0 to below planned ({planned}), got {since}")
    return int(planned)


def check_alpha(alpha: float) -> None:
    check_value("alpha", Real, alpha)
    if not 0.0 < alpha < 0.5:
        raise InvalidParameter(f"alpha must be strictly between 0 and 0.5, got {alpha}")


def labels_and_periods(
    y: ArrayLike, period: ArrayLike
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return checked labels as booleans, and the number of each row's period.

    Unlike in `check_rows` one class may be missing: a period may have no positives yet.
    """
    positive = check_booleans("y", finite_vector("y", y))
    number = finite_vector("period", period, positive.size)
    outside = (number < 1) | (number > MAX_PERIODS) | (number != np.rint(number))
    if outside.any():
        raise InvalidParameter(
            f"period must be a whole number from 1 to {MAX_PERIODS}, got {number[outside][0]:g}"
        )
    return positive, number.astype(np.intp)


def column(name: str, values: ArrayLike, like: str, length: int) -> FloatArray:
    vector = finite_vector(name, values)
    if vector.size != length:
        raise InvalidData(
            f"{name} must have one value for each of the {length} values of {like}, got {vector.size}"
        )
    return vector


def check_booleans(name: str, values: FloatArray) -> NDArray[np.bool_]:
    wrong = (values != 0.0) & (values != 1.0)
    if wrong.any():
        index = int(np.argmax(wrong))
        raise InvalidData(f"{name} must be 0 or 1, got {values[index]:g} at index {index}")
    found: NDArray[np.bool_] = values == 1.0
    return found


def _measured(rows: EvaluatedRows, area: WindowArea) -> tuple[Estimates, Masses]:
    estimates, (masses,) = estimate_metrics(rows, [area])
    return estimates, masses


def shown_variance(value: float, variance: float | None) -> float | None:
    """Return a variance above rounding error of a value in (0, 1), or None."""
    if variance is None or variance <= EPSILON**2 or not EPSILON < value < 1.0 - EPSILON:
        return None
    return variance


def variance_within_bounds(
    value: float, variance: float | None, masses: Masses, metric: Metric
) -> float:
    """Return the variance of a metric in [0, 1], mixed with the greatest one that fits; see the module."""
    trials = metric.trials(masses)
    if shown_variance(value, variance) is None:
        middle = (value * trials + 0.5) / (trials + 1.0)
        return middle * (1.0 - middle) / trials
    classes = masses.effective if metric.is_whole_area else None
    return value * (1.0 - value) / effective_trials(value, variance, trials, classes=classes)
