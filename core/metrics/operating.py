"""Operating points: one cut of the ranking, what it means for the rows it flags, and what its errors cost.

With π the prevalence of the positives, c₊ the cost of a positive that is missed and c₋ that of a negative that is
flagged, a row costs on average

    C = c₋ (1 − π) FPR + c₊ π (1 − TPR).

It is least where the curve touches a line of slope c₋ (1 − π) / (c₊ π): at a vertex of its hull. The interval joins
Wilson's for the two rates by MOVER (see `bands`). At the least cost the same interval serves: a threshold that is a
little off costs nothing to first order, for there the slope of C is 0. What is left is that the least of many costs on
a sample flatters itself, so plan with the interval's upper end. (Of 3,000 simulated samples of 30 to 2,000 rows a class
95 % intervals covered the population's least cost in 92 to 95 %; the value was low by 1 to 15 %.)

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

from core.base.target import GREATEST_WEIGHT, MIN_WEIGHT
from core.errors import InvalidParameter
from core.metrics.bands import fpr_at_tpr_interval, threshold_reach, tpr_at_fpr_interval
from core.metrics.curve import ClassTotals, RocCurve, curve_of, totals_of
from core.metrics.groups import FloatArray, check_rows, tie_groups
from core.metrics.intervals import Interval, normal_quantile, wilson_interval
from core.metrics.window import check_level, check_rate

# Sums of weights are rounded: .1 + .2 of 1 must pass for .3. Far below the step 1/n of any real curve.
_TOLERANCE = 1e-12

# Costs are sums of products of shares: closer than this to the least, relative to the costlier error, is rounding.
_COST_ROUNDING = 1e-12


@dataclass(frozen=True)
class Costs:
    """What one error of either sort costs, in any unit.

    InvalidParameter, if one is neither, or both are 0.

    Parameters
    ----------
    false_positive, false_negative : float
        Of a negative that is flagged, and of a positive that is not: 0, or between 1e-100 and 1e100; not both 0.
    """

    false_positive: float
    false_negative: float

    def __post_init__(self) -> None:
        rule = f"must be 0 or a number from {MIN_WEIGHT:g} to {GREATEST_WEIGHT:g}"
        for name, value in vars(self).items():
            number = isinstance(value, Real) and not isinstance(value, bool)
            if not number or not (value == 0 or MIN_WEIGHT <= value <= GREATEST_WEIGHT):
                shown = name.replace("_", " ")
                raise InvalidParameter(f"the cost of a {shown} {rule}, got {value!r}")
            object.__setattr__(self, name, float(value))
        if self.false_positive == self.false_negative == 0.0:
            raise InvalidParameter(
                "a false positive or a false negative must cost something, got 0 for both"
            )

    def a_row(self, prevalence: float) -> tuple[float, float]:
        """Cost per row of an FPR of 1, and of a TPR of 0."""
        return self.false_positive * (1.0 - prevalence), self.false_negative * prevalence


@dataclass(frozen=True)
class ExpectedCost:
    """What a cut costs per row."""

    a_row: Interval
    """Mean cost of a row."""
    flag_none: float
    flag_all: float
    """The same without a ranker: what it must stay below to be worth its while."""
    costs: Costs


@dataclass(frozen=True)
class OperatingPoint:
    """A cut and its rates, each with an interval."""

    threshold: float
    """Rows with score ≥ threshold are flagged; +inf flags none."""
    threshold_low: float
    threshold_high: float
    """Between them, the lower one left out, the population's threshold of what was asked for may lie: of the rate, or
    of the least cost. Infinite where the sample sets no end. Both the threshold itself where that was asked for."""
    fpr: Interval
    tpr: Interval
    """Shares of the negatives and of the positives that this threshold flags."""
    precision: Interval
    """Positive share of what is flagged; the value is NaN, the interval [0, 1], when nothing is."""
    lift: Interval
    """Precision divided by the positive share of all rows, which is taken as known."""
    flagged: Interval
    """Share of all rows that this threshold flags, at that prevalence: the two rates joined by MOVER."""
    prevalence: float
    """That share: the sample's unless another was given. In (0, 1)."""
    tpr_at_fpr: Interval | None = None
    """Of a cut at an FPR: the population's TPR at exactly this FPR, at the threshold, not known, that has it."""
    fpr_at_tpr: Interval | None = None
    """Of a cut at a TPR: the population's FPR at exactly this TPR."""
    cost: ExpectedCost | None = None
    """What a row costs, if costs were given."""


def operating_point(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    threshold: float | None = None,
    costs: Costs | None = None,
    prevalence: float | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> OperatingPoint:
    """The best cut at a false positive rate, at a true positive rate or for given costs, or the cut at a threshold.

    InvalidData: as `auc`. InvalidParameter, if not exactly one of `fpr`, `tpr` and `threshold` is given and no `costs`
    either, or one is out of range.

    Parameters
    ----------
    y, scores
        As `auc`.
    fpr : float in [0, 1]
        Take the greatest TPR whose FPR is at most this; of several, the least FPR.
    tpr : float in [0, 1]
        Take the least FPR whose TPR is at least this; of several, the greatest TPR.
    threshold : float
        Flag the rows with score ≥ threshold; infinite is allowed.
    costs : Costs
        Say what the cut costs. If none of the three above is given, take the cut that costs least; of several, the one
        that flags fewest.
    prevalence : float in (0, 1)
        Positive share of the rows that are to come, taken as known; the sample's by default.
    level : float in (0, 1)
        Level of each interval by itself.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative.
    group : array_like, shape (n_samples,), optional
        Rows of one value were drawn together, such as those of a patient. The intervals then count groups.

    Notes
    -----
    O(n log n). `fpr`, `tpr` and what follows from them have Wilson's intervals for the cut as given: they say what this
    very threshold will do, and do not know that it was chosen on the same data. `tpr_at_fpr` and `fpr_at_tpr` say
    what the ranker can do at the rate asked for, and allow for the threshold's own variance (`bands`).
    With weights all count effective rows; those of the flagged rows are taken as if weights were spread evenly
    within each class, so that the curve and the class totals are enough to find them. With a prevalence of your own the
    precision follows from TPR / FPR, whose interval is Donner & Zou's.

    References
    ----------
    Donner & Zou, "Closed-form confidence intervals for functions of the normal mean and standard deviation",
    Statistical Methods in Medical Research 21 (2012), eq. 9: ratios.
    """
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    groups = tie_groups(rows)
    return operating_point_on_curve(
        curve_of(groups),
        totals_of(rows, groups),
        fpr=fpr,
        tpr=tpr,
        threshold=threshold,
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
    costs: Costs | None = None,
    prevalence: float | None = None,
    level: float = 0.95,
) -> OperatingPoint:
    """`operating_point` from a stored curve and the totals of its data. O(n_points)."""
    level = check_level(level)
    share = totals.prevalence if prevalence is None else _check_prevalence(prevalence)
    given = {"fpr": fpr, "tpr": tpr, "threshold": threshold}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1 or not (named or costs):
        number = "at most" if costs else "exactly"
        raise InvalidParameter(
            f"{number} one of fpr, tpr and threshold must be given, got {', '.join(named) or 'none'}"
        )
    if threshold is not None:
        cut = _check_threshold(threshold)
        place, ends = curve.locate_one(cut), (cut, cut)
    else:
        if fpr is not None:
            index = _index_at_fpr(curve, fpr)
            ends = _ends_of_rate(curve, curve.fpr, fpr, totals.negative_effective, level)
        elif tpr is not None:
            index = _index_at_tpr(curve, tpr)
            ends = _ends_of_rate(curve, curve.tpr, tpr, totals.positive_effective, level)
        else:
            assert costs is not None
            index = least_costly(curve, costs, share)
            near = as_cheap(curve, totals, costs, share, index, level)
            ends = _next_below(curve, int(near[-1])), float(curve.thresholds[near[0]])
        cut = float(curve.thresholds[index])
        place = float(curve.fpr[index]), float(curve.tpr[index])
    point = _cut_at(cut, place, totals, costs, prevalence, level)
    return replace(
        point,
        threshold_low=min(ends[0], cut),
        threshold_high=max(ends[1], cut),
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
    """The cuts at some points of a curve, each as `operating_point_on_curve` has it of that point's threshold.

    InvalidParameter: as there, or if a point is none of the curve's.

    Parameters
    ----------
    points : array_like of int, shape (n,)
        Indices of the curve's points, such as those of `cuts_along`.

    Notes
    -----
    O(n).
    """
    level = check_level(level)
    if prevalence is not None:
        prevalence = _check_prevalence(prevalence)
    indices = np.asarray(points)
    whole = indices.ndim == 1 and (indices.size == 0 or np.issubdtype(indices.dtype, np.integer))
    if not whole or np.any((indices < 0) | (indices >= len(curve))):
        raise InvalidParameter(f"points must be indices from 0 to {len(curve) - 1}")
    columns = (each[indices].tolist() for each in (curve.thresholds, curve.fpr, curve.tpr))
    return [
        _cut_at(threshold, (fpr, tpr), totals, costs, prevalence, level)
        for threshold, fpr, tpr in zip(*columns, strict=True)
    ]


def cuts_along(curve: RocCurve, max_points: int, kept: Sequence[int] = ()) -> NDArray[np.intp]:
    """Indices, increasing, of at most `max_points` points of a curve, for one who walks along it from cut to cut.

    Both ends are among them, and the points in `kept`. Of the others half are spread evenly along the curve, by
    FPR + TPR, and half evenly by the logarithm of the FPR: the top of the list has its share however short it is. Where
    the curve has no more points than that, all are taken. O(n_points).

    InvalidParameter, if `max_points` has no room for the ends and what is kept.
    """
    fixed = np.union1d([0, len(curve) - 1], np.asarray(kept, dtype=np.intp)).astype(np.intp)
    if max_points < fixed.size:
        raise InvalidParameter(f"max_points must be at least {fixed.size}, got {max_points}")
    if len(curve) <= max_points:
        return np.arange(len(curve))
    room = max_points - fixed.size
    beyond_0 = min(int(np.searchsorted(curve.fpr, 0.0, side="right")), len(curve) - 1)
    first = float(curve.fpr[beyond_0]) or 1.0
    marks = np.geomspace(first, 1.0, room - room // 2 + 2)[1:-1]
    # The best cut of at most each rate: the top of a vertical step.
    at_rates = np.searchsorted(curve.fpr, marks, side="right") - 1
    along = np.linspace(0.0, 2.0, room // 2 + 2)[1:-1]
    at_lengths = np.searchsorted(curve.fpr + curve.tpr, along, side="left")
    return np.union1d(fixed, np.union1d(at_rates, np.minimum(at_lengths, len(curve) - 1)))


def _cut_at(
    threshold: float,
    place: tuple[float, float],
    totals: ClassTotals,
    costs: Costs | None,
    prevalence: float | None,
    level: float,
) -> OperatingPoint:
    """The cut at a threshold whose rates are known. O(1)."""
    share = totals.prevalence if prevalence is None else prevalence
    fpr = wilson_interval(place[0], totals.negative_effective, level)
    tpr = wilson_interval(place[1], totals.positive_effective, level)
    precision = (
        _precision(*place, totals, level)
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
        lift=Interval(*(value / share for value in precision)),
        flagged=_flagged(fpr, tpr, share),
        prevalence=share,
        cost=None if costs is None else expected_cost(fpr, tpr, costs, share),
    )


def _flagged(fpr: Interval, tpr: Interval, prevalence: float) -> Interval:
    """Share of all rows, from those of the two classes."""
    of_negatives, of_positives = 1.0 - prevalence, prevalence
    value = of_negatives * fpr.value + of_positives * tpr.value
    below = math.hypot(of_negatives * (fpr.value - fpr.low), of_positives * (tpr.value - tpr.low))
    above = math.hypot(of_negatives * (fpr.high - fpr.value), of_positives * (tpr.high - tpr.value))
    return Interval(value, max(0.0, value - below), min(1.0, value + above))


def _index_at_fpr(curve: RocCurve, fpr: float) -> int:
    limit = check_rate("fpr", fpr) + _TOLERANCE
    highest = curve.tpr[np.searchsorted(curve.fpr, limit, side="right") - 1]
    return int(np.searchsorted(curve.tpr, highest, side="left"))


def _index_at_tpr(curve: RocCurve, tpr: float) -> int:
    limit = check_rate("tpr", tpr) - _TOLERANCE
    least = curve.fpr[np.searchsorted(curve.tpr, limit, side="left")]
    return int(np.searchsorted(curve.fpr, least, side="right")) - 1


def _ends_of_rate(
    curve: RocCurve, rates: FloatArray, asked: float, n: float, level: float
) -> tuple[float, float]:
    """The thresholds between which the population's threshold of a rate of one class lies."""
    reach = float(threshold_reach(np.array([asked]), n, level)[0])
    fewest, most = asked - reach, asked + reach
    high = math.inf
    if fewest > 0.0:
        high = float(curve.thresholds[np.searchsorted(rates, fewest, side="left")])
    beyond = int(np.searchsorted(rates, most, side="right"))
    return (float(curve.thresholds[beyond]) if beyond < len(curve) else -math.inf), high


def _next_below(curve: RocCurve, index: int) -> float:
    """Down to here, itself left out, every threshold makes the cut of this point."""
    return float(curve.thresholds[index + 1]) if index + 1 < len(curve) else -math.inf


def _check_threshold(threshold: float) -> float:
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or math.isnan(threshold):
        raise InvalidParameter(f"threshold must be a number, got {threshold!r}")
    return float(threshold)


def _check_prevalence(prevalence: float) -> float:
    if isinstance(prevalence, bool) or not isinstance(prevalence, Real) or not 0 < prevalence < 1:
        raise InvalidParameter(f"prevalence must lie strictly between 0 and 1, got {prevalence!r}")
    return float(prevalence)


def _precision(fpr: float, tpr: float, totals: ClassTotals, level: float) -> Interval:
    positive, negative = tpr * totals.positive, fpr * totals.negative
    flagged = positive + negative
    if flagged == 0.0:
        return Interval(math.nan, 0.0, 1.0)
    # Σw over the flagged rows is known; Σw² is the class's own, in proportion.
    squares = positive * (totals.positive / totals.positive_effective)
    squares += negative * (totals.negative / totals.negative_effective)
    return wilson_interval(positive / flagged, flagged**2 / squares, level)


def _precision_at(fpr: Interval, tpr: Interval, prevalence: float) -> Interval:
    """Bayes' rule at a prevalence that is not the sample's: it rises with TPR / FPR, of Donner & Zou's limits."""
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
    low = _positive_share(least_tpr, below, prevalence)
    high = _positive_share(above, least_fpr, prevalence)
    return Interval(value, min(value, low), max(value, high))


def _positive_share(tpr: float, fpr: float, prevalence: float) -> float:
    """Precision where TPR : FPR is as the two numbers."""
    caught, flagged = prevalence * tpr, (1.0 - prevalence) * fpr
    return caught / (caught + flagged) if caught + flagged > 0.0 else 1.0


def expected_cost(fpr: Interval, tpr: Interval, costs: Costs, prevalence: float) -> ExpectedCost:
    """The cost per row of a cut, given intervals of its rates. O(1)."""
    flagged, missed = costs.a_row(prevalence)
    value = flagged * fpr.value + missed * (1.0 - tpr.value)
    below = math.hypot(flagged * (fpr.value - fpr.low), missed * (tpr.high - tpr.value))
    above = math.hypot(flagged * (fpr.high - fpr.value), missed * (tpr.value - tpr.low))
    interval = Interval(value, max(0.0, value - below), min(flagged + missed, value + above))
    return ExpectedCost(interval, missed, flagged, costs)


def least_costly(curve: RocCurve, costs: Costs, prevalence: float) -> int:
    """Index of the curve's point that costs least; of equals, the one that flags fewest. O(n_points).

    It is where the curve touches a line of the slope of Metz 1978.
    """
    cost = _costs_along(curve, costs, prevalence)
    return int(np.argmax(cost <= cost.min() + _COST_ROUNDING * max(costs.a_row(prevalence))))


def as_cheap(
    curve: RocCurve, totals: ClassTotals, costs: Costs, prevalence: float, best: int, level: float
) -> NDArray[np.intp]:
    """Indices of the points that the sample cannot tell from the best: they may cost least in the population.

    Two cuts differ by the rows between them, a share p of the positives and q of the negatives; the variance of the
    difference of their costs is (c₊ π)² p (1 − p) / n₊ + (c₋ (1 − π))² q (1 − q) / n₋. A point stays while its
    cost is above the least by no more than z standard errors. O(n_points).
    """
    flagged, missed = costs.a_row(prevalence)
    cost = _costs_along(curve, costs, prevalence)
    positives, negatives = np.abs(curve.tpr - curve.tpr[best]), np.abs(curve.fpr - curve.fpr[best])
    variance = missed**2 * positives * (1.0 - positives) / totals.positive_effective
    variance += flagged**2 * negatives * (1.0 - negatives) / totals.negative_effective
    reach = normal_quantile(level) * np.sqrt(variance) + _COST_ROUNDING * max(flagged, missed)
    return np.flatnonzero(cost - cost[best] <= reach)


def _costs_along(curve: RocCurve, costs: Costs, prevalence: float) -> NDArray[np.float64]:
    flagged, missed = costs.a_row(prevalence)
    return np.asarray(flagged * curve.fpr + missed * (1.0 - curve.tpr))
