"""Operating points: one cut of the ranking, and what it means for the rows it flags."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidData, InvalidParameter
from core.metrics.curve import RocCurve, curve_of
from core.metrics.groups import ScoreGroups, group_by_score
from core.metrics.influence import effective_rows
from core.metrics.intervals import Interval, wilson_interval
from core.metrics.window import check_level, check_rate

# Sums of weights are rounded: .1 + .2 of 1 must pass for .3. Far below the step 1/n of any real curve.
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class ClassTotals:
    """What a curve forgets about its data and an operating point needs.

    Parameters
    ----------
    positive, negative : float > 0
        Total weight of each class; the numbers of rows when unweighted.
    positive_effective, negative_effective : float > 0
        Kish's effective numbers of rows, (Σw)² / Σw²; the numbers of rows when unweighted.

    Raises
    ------
    InvalidData
        If one is not positive and finite.
    """

    positive: float
    negative: float
    positive_effective: float
    negative_effective: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0.0 < value < math.inf:
                raise InvalidData(f"{name} must be positive and finite, got {value}")

    @classmethod
    def of_counts(cls, positives: int, negatives: int) -> ClassTotals:
        """The totals of unweighted data."""
        return cls(positives, negatives, positives, negatives)

    @property
    def prevalence(self) -> float:
        """Positive share of the weight."""
        return self.positive / (self.positive + self.negative)


@dataclass(frozen=True)
class OperatingPoint:
    """A cut and its rates, each with an interval.

    Attributes
    ----------
    threshold : float
        Rows with score ≥ threshold are flagged; +inf flags none.
    fpr, tpr : Interval
        Shares of the negatives and of the positives that are flagged.
    precision : Interval
        Positive share of what is flagged; the value is NaN, the interval [0, 1], when nothing is.
    lift : Interval
        Precision divided by the positive share of all rows, which is taken as known.
    """

    threshold: float
    fpr: Interval
    tpr: Interval
    precision: Interval
    lift: Interval


def operating_point(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    threshold: float | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> OperatingPoint:
    """The best cut at a false positive rate, at a true positive rate, or the cut at a threshold.

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
    level : float in (0, 1)
        Level of each interval by itself.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative.

    Returns
    -------
    OperatingPoint

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty or without weight.
    InvalidParameter
        If not exactly one of `fpr`, `tpr` and `threshold` is given, or one is out of range.

    Notes
    -----
    O(n log n). The intervals are Wilson's for the cut as given: they do not know that it was chosen on the same data.
    With weights they count effective rows; those of the flagged rows are taken as if weights were spread evenly
    within each class, so that the curve and the class totals are enough to find them.
    """
    groups = group_by_score(y, scores, sample_weight)
    return operating_point_on_curve(
        curve_of(groups), totals_of(groups), fpr=fpr, tpr=tpr, threshold=threshold, level=level
    )


def operating_point_on_curve(
    curve: RocCurve,
    totals: ClassTotals,
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    threshold: float | None = None,
    level: float = 0.95,
) -> OperatingPoint:
    """`operating_point` from a stored curve and the totals of its data. O(log n_points)."""
    level = check_level(level)
    given = {"fpr": fpr, "tpr": tpr, "threshold": threshold}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidParameter(
            f"exactly one of fpr, tpr and threshold must be given, got {', '.join(named) or 'none'}"
        )
    if threshold is not None:
        cut = _check_threshold(threshold)
        return _point(*curve.locate_one(cut), cut, totals, level)
    index = _index_at_fpr(curve, fpr) if fpr is not None else _index_at_tpr(curve, tpr)
    rates = float(curve.fpr[index]), float(curve.tpr[index])
    return _point(*rates, float(curve.thresholds[index]), totals, level)


def totals_of(groups: ScoreGroups) -> ClassTotals:
    """The class totals of tie groups."""
    return ClassTotals(
        float(groups.flagged_positive[-1]),
        float(groups.flagged_negative[-1]),
        effective_rows(groups.positive, groups.positive_squares),
        effective_rows(groups.negative, groups.negative_squares),
    )


def _index_at_fpr(curve: RocCurve, fpr: float) -> int:
    limit = check_rate("fpr", fpr) + _TOLERANCE
    highest = curve.tpr[np.searchsorted(curve.fpr, limit, side="right") - 1]
    return int(np.searchsorted(curve.tpr, highest, side="left"))


def _index_at_tpr(curve: RocCurve, tpr: float | None) -> int:
    limit = check_rate("tpr", 0.0 if tpr is None else tpr) - _TOLERANCE
    least = curve.fpr[np.searchsorted(curve.tpr, limit, side="left")]
    return int(np.searchsorted(curve.fpr, least, side="right")) - 1


def _check_threshold(threshold: float) -> float:
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or math.isnan(threshold):
        raise InvalidParameter(f"threshold must be a number, got {threshold!r}")
    return float(threshold)


def _point(
    fpr: float, tpr: float, threshold: float, totals: ClassTotals, level: float
) -> OperatingPoint:
    precision = _precision(fpr, tpr, totals, level)
    return OperatingPoint(
        threshold=threshold,
        fpr=wilson_interval(fpr, totals.negative_effective, level),
        tpr=wilson_interval(tpr, totals.positive_effective, level),
        precision=precision,
        lift=Interval(*(share / totals.prevalence for share in precision)),
    )


def _precision(fpr: float, tpr: float, totals: ClassTotals, level: float) -> Interval:
    positive, negative = tpr * totals.positive, fpr * totals.negative
    flagged = positive + negative
    if flagged == 0.0:
        return Interval(math.nan, 0.0, 1.0)
    # Σw over the flagged rows is known; Σw² is the class's own, in proportion.
    squares = positive * (totals.positive / totals.positive_effective)
    squares += negative * (totals.negative / totals.negative_effective)
    return wilson_interval(positive / flagged, flagged**2 / squares, level)
