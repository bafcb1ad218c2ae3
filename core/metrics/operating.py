"""Operating points: one cut of the ranking, and what it means for the rows it flags."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidParameter
from core.metrics.bands import fpr_at_tpr_interval, threshold_reach, tpr_at_fpr_interval
from core.metrics.cost import Costs, ExpectedCost, as_cheap, expected_cost, least_costly
from core.metrics.curve import RocCurve, curve_of
from core.metrics.groups import FloatArray, check_rows, tie_groups
from core.metrics.intervals import Interval, wilson_interval
from core.metrics.totals import ClassTotals, totals_of
from core.metrics.window import check_level, check_rate

# Sums of weights are rounded: .1 + .2 of 1 must pass for .3. Far below the step 1/n of any real curve.
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class OperatingPoint:
    """A cut and its rates, each with an interval.

    Attributes
    ----------
    threshold : float
        Rows with score ≥ threshold are flagged; +inf flags none.
    threshold_low, threshold_high : float
        Between them, the lower one left out, the population's threshold of what was asked for may lie: of the rate, or
        of the least cost. Infinite where the sample sets no end. Both the threshold itself where that was asked for.
    fpr, tpr : Interval
        Shares of the negatives and of the positives that this threshold flags.
    precision : Interval
        Positive share of what is flagged; the value is NaN, the interval [0, 1], when nothing is.
    lift : Interval
        Precision divided by the positive share of all rows, which is taken as known.
    prevalence : float in (0, 1)
        That share: the sample's unless another was given.
    tpr_at_fpr : Interval or None
        Of a cut at an FPR: the population's TPR at exactly this FPR, at the threshold, not known, that has it.
    fpr_at_tpr : Interval or None
        Of a cut at a TPR: the population's FPR at exactly this TPR.
    cost : ExpectedCost or None
        What a row costs, if costs were given.
    """

    threshold: float
    threshold_low: float
    threshold_high: float
    fpr: Interval
    tpr: Interval
    precision: Interval
    lift: Interval
    prevalence: float
    tpr_at_fpr: Interval | None = None
    fpr_at_tpr: Interval | None = None
    cost: ExpectedCost | None = None


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

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    scores : array_like of float, shape (n_samples,)
        Finite; higher means more likely positive.
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

    Returns
    -------
    OperatingPoint

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty or without weight.
    InvalidParameter
        If not exactly one of `fpr`, `tpr` and `threshold` is given and no `costs` either, or one is out of range.

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
    flagged = wilson_interval(place[0], totals.negative_effective, level)
    caught = wilson_interval(place[1], totals.positive_effective, level)
    precision = (
        _precision(*place, totals, level)
        if prevalence is None
        else _precision_at(flagged, caught, share)
    )
    return OperatingPoint(
        threshold=cut,
        threshold_low=min(ends[0], cut),
        threshold_high=max(ends[1], cut),
        fpr=flagged,
        tpr=caught,
        precision=precision,
        lift=Interval(*(value / share for value in precision)),
        prevalence=share,
        tpr_at_fpr=None if fpr is None else tpr_at_fpr_interval(curve, totals, fpr, level),
        fpr_at_tpr=None if tpr is None else fpr_at_tpr_interval(curve, totals, tpr, level),
        cost=None if costs is None else expected_cost(flagged, caught, costs, share),
    )


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
    """Bayes' rule, at a prevalence that is not the sample's: it rises with TPR / FPR."""
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
