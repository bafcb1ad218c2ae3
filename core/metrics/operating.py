"""Operating points: a threshold of a ranking, the rates of the rows that it flags, and the expected cost of errors.

With π the prevalence of the positives, c₊ the cost of a missed positive and c₋ that of a flagged negative, the mean
cost of a row is

    C = c₋ (1 − π) FPR + c₊ π (1 − TPR).

It is least where the curve touches a line of slope c₋ (1 − π) / (c₊ π): at a vertex of its hull. The interval combines
Wilson's for the two rates by MOVER (see `bands`). It also holds at the least cost, where the slope of C is 0: a small
error of the threshold changes C only to second order. But the least of many costs on a sample is too optimistic, so
plan with the interval's upper end. (In 3,000 simulated samples of 30 to 2,000 rows per class 95 % intervals covered the
population's least cost in 92 to 95 %; the value was too low by 1 to 15 %.)

References
----------
Metz, "Basic principles of ROC analysis", Seminars in Nuclear Medicine 8 (1978): the slope.
Zou & Donner, "Construction of confidence limits about effect measures: a general approach", Statistics in Medicine
27 (2008)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_items, check_value
from core.base.target import MAX_WEIGHT, MIN_WEIGHT, as_array
from core.errors import InvalidParameter
from core.metrics.bands import fpr_at_tpr_interval, rate_half_width, tpr_at_fpr_interval
from core.metrics.curve import ClassTotals, RocCurve, curve_of, totals_of
from core.metrics.estimates import Interval, combine, normal_quantile, wilson_interval
from core.metrics.groups import FloatArray, check_rows, tie_groups
from core.metrics.window import check_level, check_prevalence, check_rate

# Rounding error of a rate, a sum of weights: .1 + .2 of 1 counts as .3. Far below the step 1/n of any real curve.
RATE_TOLERANCE = 1e-12

# Rounding error of a cost, relative to the cost of the more expensive error.
COST_ROUNDING = 1e-12


@dataclass(frozen=True)
class Costs:
    """Costs of a false positive and of a false negative, in any unit.

    Parameters
    ----------
    false_positive, false_negative : float
        Cost of flagging a negative, and of missing a positive: 0, or between 1e-100 and 1e100; not both 0.

    Examples
    --------
    >>> from core.metrics import Costs
    >>> Costs(false_positive=1, false_negative=5).a_row(prevalence=0.1)
    (0.9, 0.5)
    """

    false_positive: float
    false_negative: float

    def __post_init__(self) -> None:
        rule = f"must be 0 or a number from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}"
        for name, value in vars(self).items():
            number = isinstance(value, Real) and not isinstance(value, bool)
            if not number or not (value == 0 or MIN_WEIGHT <= value <= MAX_WEIGHT):
                shown = name.replace("_", " ")
                raise InvalidParameter(f"the cost of a {shown} {rule}, got {value!r}")
            object.__setattr__(self, name, float(value))
        if self.false_positive == self.false_negative == 0.0:
            raise InvalidParameter(
                "the cost of a false positive or of a false negative must be above 0, got 0 for both"
            )

    def a_row(self, prevalence: float) -> tuple[float, float]:
        """Return the cost per row of flagging all negatives (FPR 1), and of missing all positives (TPR 0).

        Parameters
        ----------
        prevalence : float in (0, 1)
            Fraction of positives among all rows.

        Returns
        -------
        (float, float)
        """
        return self.false_positive * (1.0 - prevalence), self.false_negative * prevalence


@dataclass(frozen=True)
class ExpectedCost:
    """Expected cost per row of flagging rows by a threshold.

    Attributes
    ----------
    flag_none, flag_all : float
        Cost per row of flagging no row, and of flagging all rows. A useful threshold costs less than both.

    Examples
    --------
    >>> from core.metrics import Costs, operating_point
    >>> found = operating_point([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], costs=Costs(1.0, 5.0))
    >>> round(found.cost.a_row.value, 3), round(found.cost.flag_all, 3)
    (0.167, 0.5)
    """

    a_row: Interval
    """Mean cost of a row."""
    flag_none: float
    flag_all: float
    costs: Costs
    """The costs of the two kinds of error."""
    saved_to_random: Interval
    """Cost per row of flagging as many rows at random, minus `a_row`."""


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold and the rates of the rows that it flags, each with an interval.

    Attributes
    ----------
    threshold_low, threshold_high : float
        The population's threshold for the requested rate, or for the lowest cost, is above `threshold_low` and at most
        `threshold_high`. Infinite if the sample sets no limit. If you gave a threshold or a share, both equal it.
    fpr, tpr : Interval
        Fractions of the negatives and of the positives that are flagged.

    Examples
    --------
    >>> from core.metrics import operating_point
    >>> found = operating_point([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], fpr=0.4)
    >>> found.threshold, round(found.tpr.value, 3), round(found.precision.value, 3)
    (3.0, 1.0, 0.75)
    """

    threshold: float
    """Rows with score ≥ threshold are flagged; +inf flags none."""
    threshold_low: float
    threshold_high: float
    fpr: Interval
    tpr: Interval
    precision: Interval
    """Fraction of positives among the flagged rows; NaN in [0, 1] if no row is flagged."""
    lift: Interval
    """Precision divided by the prevalence. The interval includes the variance of the prevalence unless you gave it."""
    flagged: Interval
    """Fraction of all rows that are flagged at this prevalence; the two rates combined by MOVER."""
    prevalence: float
    """Fraction of positives among all rows: that of the sample, unless you gave another. In (0, 1)."""
    tpr_at_fpr: Interval | None = None
    """If you gave an FPR: the population's TPR at exactly this FPR, whose threshold is unknown."""
    fpr_at_tpr: Interval | None = None
    """If you gave a TPR: the population's FPR at exactly this TPR."""
    cost: ExpectedCost | None = None
    """Cost per row, if you gave costs."""


def operating_point(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    threshold: float | None = None,
    flagged: float | None = None,
    costs: Costs | None = None,
    prevalence: float | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> OperatingPoint:
    """Find the best threshold for a rate, a share of the rows or costs, with the rates that it has.

    The intervals do not account for the choice of the threshold on the same rows. For a rate that holds in the
    population with a given confidence, use `guaranteed_point`.

    Parameters
    ----------
    y, scores, level, sample_weight, group
        As for `auc_interval`.
    fpr : float in [0, 1], optional
        Choose the greatest TPR with an FPR of at most this; among equals the lowest FPR.
    tpr : float in [0, 1], optional
        Choose the lowest FPR with a TPR of at least this; among equals the greatest TPR.
    threshold : float, optional
        Flag the rows with score ≥ threshold; infinite is allowed.
    flagged : float in [0, 1], optional
        Choose the lowest threshold that flags at most this fraction of all rows. With `costs`, the one of
        lowest cost if that flags fewer.
    costs : Costs, optional
        Report the cost. Without the four arguments above, choose the lowest cost; among equals the one that flags the
        fewest rows.
    prevalence : float in (0, 1), optional
        Fraction of positives among future rows, taken as known. Default: that of the sample.

    Returns
    -------
    OperatingPoint
        The threshold and its rates. O(n log n).

    Raises
    ------
    InvalidParameter
        None of `fpr`, `tpr`, `threshold`, `flagged` and `costs` is given, two of the first four are, or one is out of
        range.

    Notes
    -----
    `fpr`, `tpr` and what follows from them have Wilson's intervals for this threshold. `tpr_at_fpr` and `fpr_at_tpr`
    are for the requested rate and include the variance of the threshold (`bands`). With weights, all intervals use
    effective numbers of rows. For the flagged rows these are computed as if weights were spread evenly within each
    class, so that the curve and the class totals suffice.

    If `prevalence` is given, precision and lift follow from TPR / FPR, with the interval of Donner & Zou. Otherwise the
    lift has another interval: theirs at the sample's prevalence, and MOVER adds the error of the log-odds of the
    prevalence to each end of its logarithm.

    References
    ----------
    Donner & Zou, "Closed-form confidence intervals for functions of the normal mean and standard deviation",
    Statistical Methods in Medical Research 21 (2012), eq. 9: ratios.

    Examples
    --------
    >>> from core.metrics import operating_point
    >>> y, scores = [1, 1, 0, 1, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    >>> point = operating_point(y, scores, fpr=0.25)
    >>> point.threshold, point.fpr.value, point.tpr.value
    (0.6, 0.25, 0.75)
    """
    check_value("costs", Costs | None, costs)
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    groups = tie_groups(rows)
    return operating_point_on_curve(
        curve_of(groups),
        totals_of(rows, groups),
        fpr=fpr,
        tpr=tpr,
        threshold=threshold,
        flagged=flagged,
        costs=costs,
        prevalence=prevalence,
        level=level,
    )


def operating_point_on_curve(
    curve: RocCurve,
    totals: ClassTotals,
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    threshold: float | None = None,
    flagged: float | None = None,
    costs: Costs | None = None,
    prevalence: float | None = None,
    level: float = 0.95,
) -> OperatingPoint:
    """Find an `operating_point` on a stored curve.

    Parameters
    ----------
    curve, totals
        The full ROC curve and the weights of its classes, as from `summarise`.
    fpr, tpr, threshold, flagged, costs, prevalence, level
        As for `operating_point`.

    Returns
    -------
    OperatingPoint
        The threshold and its rates. O(n_points).

    Examples
    --------
    >>> from core.metrics import ClassTotals, operating_point_on_curve, roc_curve
    >>> curve = roc_curve([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5])
    >>> operating_point_on_curve(curve, ClassTotals.of_counts(3, 2), tpr=0.6).threshold
    0.8
    """
    check_value("curve", RocCurve, curve)
    check_value("totals", ClassTotals, totals)
    check_value("costs", Costs | None, costs)
    level = check_level(level)
    share = totals.prevalence if prevalence is None else check_prevalence(prevalence)
    given = {"fpr": fpr, "tpr": tpr, "threshold": threshold, "flagged": flagged}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1 or not (named or costs):
        number = "at most" if costs else "exactly"
        raise InvalidParameter(
            f"{number} one of fpr, tpr, threshold and flagged must be given, got "
            f"{', '.join(named) or 'none'}"
        )
    if threshold is not None:
        chosen = check_threshold(threshold)
        rates, ends = curve.locate_one(chosen), (chosen, chosen)
    else:
        if fpr is not None:
            index = _index_at_fpr(curve, fpr)
            ends = _ends_of_rate(curve, curve.fpr, fpr, totals.negative_effective, level)
        elif tpr is not None:
            index = _index_at_tpr(curve, tpr)
            ends = _ends_of_rate(curve, curve.tpr, tpr, totals.positive_effective, level)
        elif flagged is not None:
            index = _index_within(curve, flagged, costs, share)
            ends = (float(curve.thresholds[index]),) * 2
        else:
            assert costs is not None
            index = least_costly(curve, costs, share)
            near = near_least_cost(curve, totals, costs, share, index, level)
            ends = _next_below(curve, int(near[-1])), float(curve.thresholds[near[0]])
        chosen = float(curve.thresholds[index])
        rates = float(curve.fpr[index]), float(curve.tpr[index])
    point = _point_at(chosen, rates, totals, costs, prevalence, level)
    return replace(
        point,
        threshold_low=min(ends[0], chosen),
        threshold_high=max(ends[1], chosen),
        tpr_at_fpr=None if fpr is None else tpr_at_fpr_interval(curve, totals, fpr, level),
        fpr_at_tpr=None if tpr is None else fpr_at_tpr_interval(curve, totals, tpr, level),
    )


def operating_points_on_curve(
    curve: RocCurve,
    totals: ClassTotals,
    points: ArrayLike,
    *,
    costs: Costs | None = None,
    prevalence: float | None = None,
    level: float = 0.95,
) -> list[OperatingPoint]:
    """Return the operating points at several points of a curve.

    Parameters
    ----------
    curve, totals
        The full ROC curve and the weights of its classes, as from `summarise`.
    points : array_like of int, shape (n,)
        Indices of points of the curve, such as those of `cutoffs_along`.
    costs : Costs, optional
        Report the cost of each.
    prevalence : float in (0, 1), optional
        Fraction of positives among future rows, taken as known. Default: that of the sample.
    level : float in (0, 1)
        Confidence level of each interval.

    Returns
    -------
    list of OperatingPoint
        In the order of `points`, each as from `operating_point_on_curve` at its threshold. O(n).

    Examples
    --------
    >>> from core.metrics import ClassTotals, operating_points_on_curve, roc_curve
    >>> curve = roc_curve([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5])
    >>> points = operating_points_on_curve(curve, ClassTotals.of_counts(3, 2), [1, 3])
    >>> [point.threshold for point in points]
    [0.9, 0.7]
    """
    check_value("curve", RocCurve, curve)
    check_value("totals", ClassTotals, totals)
    check_value("costs", Costs | None, costs)
    level = check_level(level)
    if prevalence is not None:
        prevalence = check_prevalence(prevalence)
    indices = as_array("points", points)
    if indices.size == 0:
        indices = np.empty(0, dtype=np.intp)
    whole = indices.ndim == 1 and np.issubdtype(indices.dtype, np.integer)
    if not whole or np.any((indices < 0) | (indices >= len(curve))):
        raise InvalidParameter(f"points must be indices from 0 to {len(curve) - 1}")
    columns = (each[indices].tolist() for each in (curve.thresholds, curve.fpr, curve.tpr))
    return [
        _point_at(threshold, (fpr, tpr), totals, costs, prevalence, level)
        for threshold, fpr, tpr in zip(*columns, strict=True)
    ]


def cutoffs_along(curve: RocCurve, max_points: int, kept: Sequence[int] = ()) -> NDArray[np.intp]:
    """Choose a few points of a curve that represent all of its thresholds.

    Both ends and the points `kept` are included. Half of the others are spread evenly along the curve by FPR + TPR, and
    half evenly by the logarithm of the FPR, so that the highest scores are represented, too.

    Parameters
    ----------
    curve : RocCurve
        A ROC curve with one point per distinct score.
    max_points : int
        Greatest number of points. If the curve has no more, all are returned.
    kept : sequence of int
        Indices of points to include.

    Returns
    -------
    ndarray of shape (n,), intp
        Indices of points, ascending. O(n_points).

    Raises
    ------
    InvalidParameter
        `max_points` is less than the number of the ends and the points `kept`.

    Examples
    --------
    >>> from core.metrics import cutoffs_along, roc_curve
    >>> curve = roc_curve([1, 1, 0, 1, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2])
    >>> cutoffs_along(curve, 4)
    array([0, 4, 5, 8])
    """
    check_value("curve", RocCurve, curve)
    check_value("max_points", int, max_points)
    fixed = np.union1d(
        [0, len(curve) - 1], np.array(check_items("kept", kept, int), dtype=np.intp)
    ).astype(np.intp)
    if max_points < fixed.size:
        raise InvalidParameter(f"max_points must be at least {fixed.size}, got {max_points}")
    if len(curve) <= max_points:
        return np.arange(len(curve))
    room = max_points - fixed.size
    beyond_0 = min(int(np.searchsorted(curve.fpr, 0.0, side="right")), len(curve) - 1)
    first = float(curve.fpr[beyond_0]) or 1.0
    marks = np.geomspace(first, 1.0, room - room // 2 + 2)[1:-1]
    # The best point with at most each rate: the top of a vertical step.
    at_rates = np.searchsorted(curve.fpr, marks, side="right") - 1
    along = np.linspace(0.0, 2.0, room // 2 + 2)[1:-1]
    at_lengths = np.searchsorted(curve.fpr + curve.tpr, along, side="left")
    return np.union1d(fixed, np.union1d(at_rates, np.minimum(at_lengths, len(curve) - 1)))


def _point_at(
    threshold: float,
    rates: tuple[float, float],
    totals: ClassTotals,
    costs: Costs | None,
    prevalence: float | None,
    level: float,
) -> OperatingPoint:
    share = totals.prevalence if prevalence is None else prevalence
    fpr = wilson_interval(rates[0], totals.negative_effective, level)
    tpr = wilson_interval(rates[1], totals.positive_effective, level)
    precision = (
        _precision(*rates, totals, level)
        if prevalence is None
        else _precision_at(fpr, tpr, prevalence)
    )
    return OperatingPoint(
        threshold=threshold,
        threshold_low=threshold,
        threshold_high=threshold,
        fpr=fpr,
        tpr=tpr,
        precision=precision,
        lift=(
            _lift(fpr, tpr, precision, totals, level)
            if prevalence is None
            else Interval(*(value / share for value in precision))
        ),
        flagged=_flagged(fpr, tpr, share),
        prevalence=share,
        cost=None if costs is None else expected_cost(fpr, tpr, costs, share),
    )


def _flagged(fpr: Interval, tpr: Interval, prevalence: float) -> Interval:
    value, below, above = combine(fpr, tpr, 1.0 - prevalence, prevalence)
    return Interval(value, max(0.0, value - below), min(1.0, value + above))


def _index_at_fpr(curve: RocCurve, fpr: float) -> int:
    """Return the index of the curve point with the greatest TPR at an FPR of at most `fpr`."""
    limit = check_rate("fpr", fpr) + RATE_TOLERANCE
    highest = curve.tpr[np.searchsorted(curve.fpr, limit, side="right") - 1]
    return int(np.searchsorted(curve.tpr, highest, side="left"))


def _index_at_tpr(curve: RocCurve, tpr: float) -> int:
    """Return the index of the curve point with the lowest FPR at a TPR of at least `tpr`."""
    limit = check_rate("tpr", tpr) - RATE_TOLERANCE
    least = curve.fpr[np.searchsorted(curve.tpr, limit, side="left")]
    return int(np.searchsorted(curve.fpr, least, side="right")) - 1


def _index_within(curve: RocCurve, flagged: float, costs: Costs | None, prevalence: float) -> int:
    """Return the curve point with the most rows of those that flag at most a fraction; with costs, the point of lowest
    cost on the whole curve if that flags fewer.

    On the concave hull of the curve, which is the curve of calibrated scores, the cost falls up to its lowest point. So
    every row up to there is expected to save something, although the rows just before the limit may hold no positive in
    this sample.
    """
    limit = check_rate("flagged", flagged) + RATE_TOLERANCE
    most = int(np.searchsorted(share_of_list(curve, prevalence), limit, side="right")) - 1
    return most if costs is None else min(most, least_costly(curve, costs, prevalence))


def _ends_of_rate(
    curve: RocCurve, rates: FloatArray, rate: float, n: float, level: float
) -> tuple[float, float]:
    half_width = float(rate_half_width(np.array([rate]), n, level)[0])
    high = math.inf
    if rate - half_width > 0.0:
        high = float(curve.thresholds[np.searchsorted(rates, rate - half_width, side="left")])
    beyond = int(np.searchsorted(rates, rate + half_width, side="right"))
    return (float(curve.thresholds[beyond]) if beyond < len(curve) else -math.inf), high


def _next_below(curve: RocCurve, index: int) -> float:
    """Return the next lower threshold, -inf after the last: all thresholds above it flag the same rows."""
    return float(curve.thresholds[index + 1]) if index + 1 < len(curve) else -math.inf


def check_threshold(threshold: float, name: str = "threshold") -> float:
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or math.isnan(threshold):
        raise InvalidParameter(f"{name} must be a number, got {threshold!r}")
    return float(threshold)


def _precision(fpr: float, tpr: float, totals: ClassTotals, level: float) -> Interval:
    """Return the precision of the flagged rows with its interval, for a random sample (varying prevalence)."""
    positive, negative = tpr * totals.positive, fpr * totals.negative
    flagged = positive + negative
    if flagged == 0.0:
        return Interval(math.nan, 0.0, 1.0)
    # Σw over the flagged rows is known; Σw² is taken as the class's own, in proportion.
    squares = positive * (totals.positive / totals.positive_effective)
    squares += negative * (totals.negative / totals.negative_effective)
    # of next to no weight: an interval from 0 to 1
    rows = max(flagged * (flagged / squares), MIN_WEIGHT)
    return wilson_interval(positive / flagged, rows, level)


def _lift(
    fpr: Interval, tpr: Interval, precision: Interval, totals: ClassTotals, level: float
) -> Interval:
    """Return the lift of the flagged rows with its interval, for a random sample (varying prevalence)."""
    prevalence = totals.prevalence
    flagged = prevalence * tpr.value + (1.0 - prevalence) * fpr.value
    if flagged == 0.0:
        return Interval(*(each / prevalence for each in precision))
    value, low, high = (each / prevalence for each in _precision_at(fpr, tpr, prevalence))
    slope = prevalence * (1.0 - prevalence) * (tpr.value - fpr.value) / flagged
    odds = 1.0 / totals.positive_effective + 1.0 / totals.negative_effective
    half = abs(slope) * normal_quantile(level) * math.sqrt(odds)
    if value == 0.0:
        return Interval(0.0, 0.0, high * math.exp(half))
    below = math.hypot(math.log(value) - math.log(low), half) if low > 0.0 else math.inf
    above = math.hypot(math.log(high) - math.log(value), half)
    return Interval(value, value * math.exp(-below), value * math.exp(above))


def _precision_at(fpr: Interval, tpr: Interval, prevalence: float) -> Interval:
    """Return the precision at a given prevalence by Bayes' rule, with Donner & Zou's interval."""
    caught, flagged = prevalence * tpr.value, (1.0 - prevalence) * fpr.value
    if caught + flagged == 0.0:
        return Interval(math.nan, 0.0, 1.0)
    value = caught / (caught + flagged)
    # The ratio of the rates lies between roots of two quadratic equations (Donner & Zou); the first is written so that
    # nothing is divided by a difference.
    product = tpr.value * fpr.value
    least_tpr, most_tpr = (end * (2.0 * tpr.value - end) for end in tpr[1:])
    least_fpr, most_fpr = (end * (2.0 * fpr.value - end) for end in fpr[1:])
    below = product + math.sqrt(max(0.0, product**2 - least_tpr * most_fpr))
    above = product + math.sqrt(max(0.0, product**2 - most_tpr * least_fpr))
    low = _precision_of_ratio(least_tpr, below, prevalence)
    high = _precision_of_ratio(above, least_fpr, prevalence)
    return Interval(value, min(value, low), max(value, high))


def _precision_of_ratio(tpr: float, fpr: float, prevalence: float) -> float:
    caught, flagged = prevalence * tpr, (1.0 - prevalence) * fpr
    return caught / (caught + flagged) if caught + flagged > 0.0 else 1.0


def share_of_list(curve: RocCurve, prevalence: float) -> FloatArray:
    """Return the fraction of all rows that each point of a ROC curve flags, shape (n_points,).

    InvalidParameter: `prevalence` is not between 0 and 1.
    """
    share = check_prevalence(prevalence)
    return share * curve.tpr + (1.0 - share) * curve.fpr


def expected_cost(fpr: Interval, tpr: Interval, costs: Costs, prevalence: float) -> ExpectedCost:
    """Return the expected cost per row of a threshold, given the intervals of its rates. O(1).

    If the share s of the rows is flagged at random, both rates are s = π TPR + (1 − π) FPR. So the saving is
    π (1 − π) (TPR − FPR) times the sum of both costs, with MOVER's interval for the difference of the rates.
    """
    flagged, missed = costs.a_row(prevalence)
    value = flagged * fpr.value + missed * (1.0 - tpr.value)
    below = math.hypot(flagged * (fpr.value - fpr.low), missed * (tpr.high - tpr.value))
    above = math.hypot(flagged * (fpr.high - fpr.value), missed * (tpr.value - tpr.low))
    interval = Interval(value, max(0.0, value - below), min(flagged + missed, value + above))
    scale = prevalence * (1.0 - prevalence) * (costs.false_positive + costs.false_negative)
    gain = tpr.value - fpr.value
    gain = (
        0.0 if abs(gain) <= COST_ROUNDING else gain
    )  # equal rates differ by the rounding of their sums
    saved = Interval(
        scale * gain,
        scale * max(-1.0, gain - math.hypot(tpr.value - tpr.low, fpr.high - fpr.value)),
        scale * min(1.0, gain + math.hypot(tpr.high - tpr.value, fpr.value - fpr.low)),
    )
    return ExpectedCost(interval, missed, flagged, costs, saved)


def least_costly(curve: RocCurve, costs: Costs, prevalence: float) -> int:
    """Return the index of the curve point with the lowest expected cost.

    Among equals it is the point that flags the fewest rows. The curve touches a line of Metz's slope (1978) there.

    Parameters
    ----------
    curve : RocCurve
        A ROC curve with one point per distinct score.
    costs : Costs
        Costs of the two kinds of error.
    prevalence : float in (0, 1)
        Fraction of positives among all rows.

    Returns
    -------
    int
        Index of the point. O(n_points).

    Examples
    --------
    >>> from core.metrics import Costs, least_costly, roc_curve
    >>> curve = roc_curve([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5])
    >>> least_costly(curve, Costs(false_positive=1, false_negative=1), prevalence=0.5)
    2
    """
    check_value("curve", RocCurve, curve)
    check_value("costs", Costs, costs)
    check_prevalence(prevalence)
    return _first_least(_costs_along(curve, costs, prevalence), costs, prevalence)


def _first_least(cost: FloatArray, costs: Costs, prevalence: float) -> int:
    """Return the index of the first point whose cost is the minimum, up to rounding."""
    return int(np.argmax(cost <= cost.min() + COST_ROUNDING * max(costs.a_row(prevalence))))


def near_least_cost(
    curve: RocCurve, totals: ClassTotals, costs: Costs, prevalence: float, best: int, level: float
) -> NDArray[np.intp]:
    """Return the indices of the curve points that may have the least cost in the population. O(n_points).

    Two thresholds differ by the rows between them, a fraction p of the positives and q of the negatives. The variance
    of the difference of their costs is (c₊ π)² p (1 − p) / n₊ + (c₋ (1 − π))² q (1 − q) / n₋. A point is returned if
    its cost is above the least by at most z standard errors.
    """
    flagged, missed = costs.a_row(prevalence)
    cost = _costs_along(curve, costs, prevalence)
    positives, negatives = np.abs(curve.tpr - curve.tpr[best]), np.abs(curve.fpr - curve.fpr[best])
    variance = missed**2 * positives * (1.0 - positives) / totals.positive_effective
    variance += flagged**2 * negatives * (1.0 - negatives) / totals.negative_effective
    limit = normal_quantile(level) * np.sqrt(variance) + COST_ROUNDING * max(flagged, missed)
    return np.flatnonzero(cost - cost[best] <= limit)


def _costs_along(curve: RocCurve, costs: Costs, prevalence: float) -> NDArray[np.float64]:
    flagged, missed = costs.a_row(prevalence)
    return np.asarray(flagged * curve.fpr + missed * (1.0 - curve.tpr))
