"""The ROC curve and what it alone says: points, areas, hull, and where a score lies on it.

A curve is complete in itself, so that a service can keep it without the rows. `ClassTotals` is what it forgets of them.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidData, InvalidParameter
from core.kernels import kernel
from core.metrics.groups import (
    FloatArray,
    Rows,
    ScoreGroups,
    effective_units,
    group_by_score,
    inner,
)
from core.metrics.window import check_rate, check_window, window_counts

Definition = Literal["interpolated", "empirical"]
DEFINITIONS = ("interpolated", "empirical")

# Doubles count by ones up to here.
_WHOLE = 2.0**53

# A coordinate is a quotient rounded to half a unit in the last place of 1; a turn smaller than this is straight.
_ROUNDING = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class RocCurve:
    """The points (FPR, TPR) that cutting a ranking can reach, joined by straight lines.

    Point k flags the rows with score ≥ thresholds[k]. A diagonal step is a tie between the classes.

    InvalidData, if the arrays do not form such a curve.

    Parameters
    ----------
    fpr, tpr : array_like of float64, shape (n_points,), in [0, 1]
        Non-decreasing, from (0, 0) to (1, 1), no point twice.
    thresholds : array_like of float64, shape (n_points,)
        Strictly decreasing; the first is +inf (flag nothing), the others are scores.
    """

    fpr: FloatArray
    tpr: FloatArray
    thresholds: FloatArray

    def __post_init__(self) -> None:
        for name in ("fpr", "tpr", "thresholds"):
            values = np.asarray(getattr(self, name), dtype=np.float64).view()
            values.flags.writeable = False  # the prepared look-up below must not fall out of step
            object.__setattr__(self, name, values)
        if not (self.fpr.ndim == 1 and self.fpr.shape == self.tpr.shape == self.thresholds.shape):
            shapes = f"{self.fpr.shape}, {self.tpr.shape} and {self.thresholds.shape}"
            raise InvalidData(
                f"fpr, tpr and thresholds must be vectors of one length, got {shapes}"
            )
        if self.fpr.size < 2:
            raise InvalidData(f"a ROC curve must have at least 2 points, got {self.fpr.size}")
        check_rates("fpr", self.fpr)
        check_rates("tpr", self.tpr)
        if not np.all((self.fpr[1:] > self.fpr[:-1]) | (self.tpr[1:] > self.tpr[:-1])):
            raise InvalidData("each point of a ROC curve must differ from the one before")
        check_thresholds("thresholds", self.thresholds)

    def __len__(self) -> int:
        return int(self.fpr.size)

    def area(self) -> float:
        """Area under the curve, in [0, 1]: the AUC with ties counted half. O(n_points)."""
        return self.partial_area(0.0, 1.0)

    def partial_area(
        self, fpr_min: float = 0.0, fpr_max: float = 1.0, *, standardize: bool = False
    ) -> float:
        """Mean height of the curve over a window of false positive rates, in [0, 1].

        InvalidParameter, if the window is empty or leaves [0, 1]. O(log n_points + points in the window).

        Parameters
        ----------
        fpr_min, fpr_max : float in [0, 1]
            The window; the area is divided by its width.
        standardize : bool
            Rescale so that the chance diagonal gives ½ and the perfect curve 1 (McClish).

        References
        ----------
        McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9 (1989).
        """
        low, high = check_window(fpr_min, fpr_max)
        first = int(np.searchsorted(self.fpr, low, side="right"))
        last = int(np.searchsorted(self.fpr, high, side="left"))
        knots = np.concatenate(([low], self.fpr[first:last], [high]))
        start, end = top_at(self.fpr, self.tpr, low), foot_at(self.fpr, self.tpr, high)
        heights = np.concatenate(([start], self.tpr[first:last], [end]))
        shares = np.diff(knots) / (high - low)
        # Rounding must not lift a perfect curve above 1.
        value = min(1.0, inner(shares, heights[1:] + heights[:-1]) / 2.0)
        return mcclish(value, low, high) if standardize else value

    def tpr_at(self, fpr: ArrayLike) -> FloatArray:
        """Height of the curve at false positive rates, interpolated; the top of a vertical step.

        InvalidParameter, if a rate lies outside [0, 1].

        Parameters
        ----------
        fpr : array_like of float in [0, 1], any shape

        Returns
        -------
        ndarray of float64, the shape of `fpr`
        """
        rates = np.asarray(fpr, dtype=np.float64)
        if not np.all((rates >= 0.0) & (rates <= 1.0)):
            raise InvalidParameter("fpr must lie in [0, 1]")
        return top_at(self.fpr, self.tpr, rates)

    def locate(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Place scores on the curve: the rates of the cut that flags every score at or above them.

        Exact on a full curve. On a thinned one the point found may lie earlier, see `thin`.

        InvalidData, if a score is NaN. O(n_scores · log n_points) at worst, O(n_scores) where thresholds are spread
        evenly.

        Parameters
        ----------
        scores : array_like of float, any shape
            Infinite scores are allowed.

        Returns
        -------
        fpr, tpr : ndarray of float64, the shape of `scores`
        """
        values = np.asarray(scores, dtype=np.float64)
        if np.isnan(values).any():
            raise InvalidData("scores must not hold NaN")
        points = self._table.find((-values).ravel()).reshape(values.shape) - 1
        return self.fpr[points], self.tpr[points]

    def locate_one(self, score: float) -> tuple[float, float]:
        """`locate` for one score, without numpy's cost per call: under a microsecond."""
        if math.isnan(score):
            raise InvalidData("score must not be NaN")
        ascending, fpr, tpr = self._lookup
        point = bisect_right(ascending, -score) - 1
        return fpr[point], tpr[point]

    @cached_property
    def _table(self) -> GuideTable:
        return GuideTable.of(-self.thresholds)

    @cached_property
    def _lookup(self) -> Sequence[Sequence[float]]:
        # array: as quick to bisect as a list, a quarter of its memory.
        return [array("d", each.tobytes()) for each in (-self.thresholds, self.fpr, self.tpr)]

    def hull(self) -> RocCurve:
        """The least concave curve at or above this one: the cuts that are best for some cost and prevalence.

        O(n_points).

        References
        ----------
        Provost & Fawcett, "Robust classification for imprecise environments", Machine Learning 42 (2001).
        """
        return self._subset(upper_hull(self.fpr, self.tpr))

    def thin(self, max_points: int) -> RocCurve:
        """At most `max_points` of the curve's own points: the hull first, then evenly along the curve.

        The end points are always kept. If all vertices of the upper hull fit, all are kept; otherwise half of
        the points are hull vertices, spread evenly along the curve. The K others are spread evenly too.

        InvalidParameter, if `max_points` is less than 2.

        Parameters
        ----------
        max_points : int
            At least 2.

        Notes
        -----
        Length along the curve is FPR + TPR, 2 in all. Every point of the full curve has a kept point before it
        within h = 2 / (K + 1) in FPR + TPR, where K is `max_points` less the hull vertices kept. So what `locate` finds
        on the thinned curve is low by less than h in FPR + TPR, and no point of one curve is further than h
        from the other. O(n_points).
        """
        if isinstance(max_points, bool) or not isinstance(max_points, int | np.integer):
            raise InvalidParameter(f"max_points must be an integer, got {max_points!r}")
        if max_points < 2:
            raise InvalidParameter(f"max_points must be at least 2, got {max_points}")
        if len(self) <= max_points:
            return self
        length = self.fpr + self.tpr
        kept = upper_hull(self.fpr, self.tpr)
        if kept.size > max_points:
            n_inner = max(0, max_points // 2 - 2)
            inner = kept[_evenly_spaced(length[kept], n_inner)]
            kept = np.union1d(inner, [0, len(self) - 1])
        return self._subset(np.union1d(kept, _evenly_spaced(length, max_points - kept.size)))

    def _subset(self, points: NDArray[np.intp]) -> RocCurve:
        return RocCurve(self.fpr[points], self.tpr[points], self.thresholds[points])


def roc_curve(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    drop_collinear: bool = False,
) -> RocCurve:
    """The ROC curve of scores, one point per distinct score after (0, 0).

    InvalidData: as `auc`. O(n log n).

    Parameters
    ----------
    y, scores, sample_weight
        As `auc`.
    drop_collinear : bool
        Leave out the points inside straight stretches. The line is the same, but `RocCurve.locate` can then find
        only the thresholds that are left.
    """
    return curve_of(group_by_score(y, scores, sample_weight), drop_collinear=drop_collinear)


def roc_hull(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> RocCurve:
    """The upper hull of the ROC curve of scores; parameters and errors as `roc_curve`."""
    return roc_curve(y, scores, sample_weight).hull()


def curve_of(groups: ScoreGroups, *, drop_collinear: bool = False) -> RocCurve:
    """The curve of tie groups, one point per distinct score after (0, 0)."""
    tp, fp = groups.flagged_positive, groups.flagged_negative
    fpr, tpr = fp / fp[-1], tp / tp[-1]
    # A weight lost in rounding moves no point: the first of equal points stands for all.
    moved = (fpr[1:] > fpr[:-1]) | (tpr[1:] > tpr[:-1])
    if drop_collinear:
        dx, dy = groups.negative, groups.positive
        bend = dx[:-1] * dy[1:] != dx[1:] * dy[:-1]
        moved[:-1] &= bend | ~moved[1:]  # whoever stands for the next point too must stay
    kept = np.concatenate(([True], moved))
    return RocCurve(fpr[kept], tpr[kept], np.concatenate(([np.inf], groups.scores))[kept])


@dataclass(frozen=True)
class ClassTotals:
    """What a curve forgets about its data and an operating point needs.

    InvalidData, if one is not positive and finite.

    Parameters
    ----------
    positive, negative : float > 0
        Total weight of each class; the numbers of rows when unweighted.
    positive_effective, negative_effective : float > 0
        Kish's effective numbers of rows, (Σw)² / Σw²; the numbers of rows when unweighted. Of rows that are drawn
        in groups, the effective numbers of groups: as if the rows of a group were all flagged or none. That errs to the
        safe side.
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


def totals_of(rows: Rows, groups: ScoreGroups) -> ClassTotals:
    """The class totals of rows and their tie groups."""
    return ClassTotals(
        float(groups.flagged_positive[-1]),
        float(groups.flagged_negative[-1]),
        *effective_units(rows),
    )


def auc(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Area under the ROC curve: the share of positive–negative pairs in order, ties counted half.

    InvalidData, if lengths differ, a value is not finite, or a class is empty or without weight. O(n log n). Without
    weights the count of pairs is exact while 2 · positives · negatives < 2**53.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    scores : array_like of float, shape (n_samples,)
        Finite; higher means more likely positive.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative; a weight k counts as k rows.

    Returns
    -------
    float in [0, 1]
    """
    return auc_of(group_by_score(y, scores, sample_weight))


def auc_of(groups: ScoreGroups) -> float:
    """`auc` of tie groups."""
    above, negative = groups.flagged_positive, groups.negative
    doubled = inner(negative, above[:-1] + above[1:])
    return min(1.0, doubled / (2.0 * _pair_mass(groups)))


def misrank_fraction(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """The share of positive–negative pairs out of order, a tie counted as a whole misrank.

    Parameters, errors and cost as `auc`.

    Returns
    -------
    float in [0, 1]
        1 − AUC + half the share of ties.

    References
    ----------
    Rudin & Schapire, "Margin-based ranking and an equivalence between AdaBoost and RankBoost",
    Journal of Machine Learning Research 10 (2009), §2.
    """
    return misrank_fraction_of(group_by_score(y, scores, sample_weight))


def misrank_fraction_of(groups: ScoreGroups) -> float:
    """`misrank_fraction` of tie groups."""
    flagged = groups.flagged_positive
    at_or_below = flagged[-1] - flagged[:-1]
    return min(1.0, inner(groups.negative, at_or_below) / _pair_mass(groups))


def tied_fraction_of(groups: ScoreGroups) -> float:
    """The share of positive–negative pairs with equal scores, in [0, 1]."""
    return min(1.0, inner(groups.positive, groups.negative) / _pair_mass(groups))


def partial_auc(
    y: ArrayLike,
    scores: ArrayLike,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    *,
    definition: Definition = "interpolated",
    standardize: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Area under the ROC curve between two false positive rates, divided by their distance.

    InvalidData: as `auc`. InvalidParameter, if the window is empty or leaves [0, 1], or the definition is unknown. O(n
    log n).

    Parameters
    ----------
    y, scores
        As `auc`.
    fpr_min, fpr_max : float in [0, 1]
        The window, fpr_min < fpr_max.
    definition : {"interpolated", "empirical"}
        "interpolated": the area under the curve of straight lines between the exact rates; ties are diagonals, so
        constant scores get the diagonal's area. "empirical": the share of pairs strictly in order, of every
        positive with the negatives ranked ⌊n·fpr_min⌋ + 1 to ⌈n·fpr_max⌉; constant scores get 0.
    standardize : bool
        Rescale so that the chance diagonal gives ½ and the perfect curve 1 (McClish). Under the empirical
        definition the window is the one that the ranks span.
    sample_weight
        As `auc`. Under the empirical definition, if the negatives' weights are not all whole numbers, the window's
        ends are the masses n·fpr_min and n·fpr_max themselves, with no rounding to ranks, which fractions of rows do
        not have.

    Returns
    -------
    float
        In [0, 1]; a standardised value can be as low as ½ − ½·c/(1 − c), c the middle of the window.

    References
    ----------
    Narasimhan & Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", eq. 2.
    McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9 (1989).
    """
    low, high = check_window(fpr_min, fpr_max)
    if definition not in DEFINITIONS:
        raise InvalidParameter(f"definition must be one of {DEFINITIONS}, got {definition!r}")
    groups = group_by_score(y, scores, sample_weight)
    if definition == "interpolated":
        value = area_of(groups, low, high)
        return mcclish(value, low, high) if standardize else value
    total = float(groups.flagged_negative[-1])
    first, last = _window_masses(groups, low, high)
    tpr = groups.flagged_positive / groups.flagged_positive[-1]
    value = strict_share(groups.flagged_negative, tpr, first, last)
    return mcclish(value, first / total, last / total) if standardize else value


def area_of(
    groups: ScoreGroups, fpr_min: float, fpr_max: float, curve: RocCurve | None = None
) -> float:
    """The area of tie groups over a window; over [0, 1] as exact as `auc`. Pass their full curve if it is there."""
    if (fpr_min, fpr_max) == (0.0, 1.0):
        return auc_of(groups)
    return (curve_of(groups) if curve is None else curve).partial_area(fpr_min, fpr_max)


def empirical_area_of(curve: RocCurve, negative: float, fpr_min: float, fpr_max: float) -> float:
    """The partial AUC by the empirical definition, from a curve with a point per distinct score.

    Parameters
    ----------
    negative : float
        Weight of its negatives in all; their number when unweighted.
    fpr_min, fpr_max : float in [0, 1]

    Returns
    -------
    float in [0, 1]
        That of `partial_auc`. Where some weights are no whole numbers, but their sums at each score are, the window's
        ends are ranks all the same: a curve knows no more.
    """
    flagged = curve.fpr * negative
    ranks = np.rint(flagged)
    # What is left of whole numbers that were divided and multiplied again.
    rounding = 8.0 * np.finfo(np.float64).eps * negative
    if negative < _WHOLE and (abs(flagged - ranks) <= rounding).all():
        flagged = ranks
        first, last = map(float, window_counts(round(negative), fpr_min, fpr_max))
    else:
        first, last = negative * fpr_min, negative * fpr_max
    return strict_share(flagged, curve.tpr, first, last)


def tpr_at_fpr(
    y: ArrayLike, scores: ArrayLike, fpr: float, sample_weight: ArrayLike | None = None
) -> float:
    """Height of the ROC curve at one false positive rate, interpolated; the top of a vertical step.

    Between two points this is the TPR of a cut drawn by lot; `operating_point` gives the best plain cut.

    InvalidParameter, if `fpr` lies outside [0, 1].

    Parameters
    ----------
    fpr : float in [0, 1]
        The others, the errors and the cost as `auc`.

    Returns
    -------
    float in [0, 1]
    """
    rate = check_rate("fpr", fpr)
    return float(curve_of(group_by_score(y, scores, sample_weight)).tpr_at(rate))


def _pair_mass(groups: ScoreGroups) -> float:
    return float(groups.flagged_positive[-1] * groups.flagged_negative[-1])


def _window_masses(groups: ScoreGroups, fpr_min: float, fpr_max: float) -> tuple[float, float]:
    """The negative masses above the two ends of a window, by the empirical definition."""
    total = float(groups.flagged_negative[-1])
    if groups.negatives.whole and total < _WHOLE:
        first, last = window_counts(int(total), fpr_min, fpr_max)
        return float(first), float(last)
    return total * fpr_min, total * fpr_max


def strict_share(flagged: FloatArray, tpr: FloatArray, first: float, last: float) -> float:
    """Mean height between two masses of negatives of the curve as steps: pairs strictly in order are counted alone."""
    inside = np.diff(np.clip(flagged, first, last))
    return min(1.0, inner(inside, tpr[:-1]) / (last - first))


def check_rates(name: str, rates: FloatArray) -> None:
    """Refuse rates that do not rise from 0 to 1 with InvalidData."""
    if not (rates[0] == 0.0 and rates[-1] == 1.0 and np.all(rates[1:] >= rates[:-1])):
        raise InvalidData(f"{name} must rise from 0 to 1 without falling")


def check_thresholds(name: str, thresholds: FloatArray) -> None:
    """Refuse thresholds that do not fall strictly from +inf with InvalidData."""
    if thresholds[0] != np.inf or not np.all(thresholds[1:] < thresholds[:-1]):
        raise InvalidData(f"{name} must fall strictly, starting at +inf")


def top_at(x: FloatArray, y: FloatArray, at: FloatArray | float) -> FloatArray:
    """Height of the line through rising points at places from x[0] to x[-1]; of a vertical step its top."""
    left = np.searchsorted(x, at, side="right") - 1
    return _between(x, y, left, np.minimum(left + 1, x.size - 1), at)


def foot_at(x: FloatArray, y: FloatArray, at: FloatArray | float) -> FloatArray:
    """The same; of a vertical step its foot."""
    right = np.minimum(np.searchsorted(x, at, side="left"), x.size - 1)
    heights = _between(x, y, np.maximum(right - 1, 0), right, at)
    return np.where(at == x[right], y[right], heights)


def _between(
    x: FloatArray,
    y: FloatArray,
    left: NDArray[np.intp],
    right: NDArray[np.intp],
    at: FloatArray | float,
) -> FloatArray:
    width = x[right] - x[left]  # 0 only at the ends of the line
    share = (at - x[left]) / np.where(width > 0.0, width, 1.0)
    return np.asarray(y[left] + share * (y[right] - y[left]))


def mcclish(value: float, fpr_min: float, fpr_max: float) -> float:
    """A mean height over a window, rescaled: the chance diagonal becomes ½, the perfect curve stays 1."""
    chance = (fpr_min + fpr_max) / 2.0
    return (1.0 + (value - chance) / (1.0 - chance)) / 2.0


def _evenly_spaced(length: FloatArray, n_points: int) -> NDArray[np.intp]:
    """Indices of the first points at or past `n_points` evenly spaced inner marks of (0, 2)."""
    marks = np.linspace(0.0, 2.0, n_points + 2)[1:-1]
    return np.minimum(np.searchsorted(length, marks, side="left"), length.size - 1)


def upper_hull(x: FloatArray, y: FloatArray) -> NDArray[np.intp]:
    """Indices, increasing, of the vertices of the least concave chain over two or more points that rise in [0, 1].

    The first and the last point are vertices; points inside a straight stretch are not. A point on or under the line
    between any two others is no vertex. So whole passes over the array drop the points that are so between their
    neighbours, while that pays, and one walk with a stack ends the work. Only the walk forgives rounding: two
    neighbours that a pass dropped for being almost straight could be a corner together. O(n_points).

    References
    ----------
    Andrew, "Another efficient algorithm for convex hulls in two dimensions", Information Processing Letters 9 (1979).
    """
    points = np.arange(x.size)
    while points.size > 2:
        px, py = x[points], y[points]
        dx, dy = np.diff(px), np.diff(py)
        turn = dx[:-1] * dy[1:] - dx[1:] * dy[:-1]  # negative: to the right
        kept = np.concatenate(([True], turn < 0.0, [True]))
        n_before, points = points.size, points[kept]
        if points.size > 0.9 * n_before:
            break
    return _walk(points, x[points].tolist(), y[points].tolist())


def _walk(points: NDArray[np.intp], x: list[float], y: list[float]) -> NDArray[np.intp]:
    stack: list[int] = []
    for new in range(len(x)):
        while len(stack) > 1:
            before, top = stack[-2], stack[-1]
            dx1, dy1 = x[top] - x[before], y[top] - y[before]
            dx2, dy2 = x[new] - x[top], y[new] - y[top]
            if dx1 * dy2 - dx2 * dy1 < -_ROUNDING * (dx1 + dx2 + dy1 + dy2):
                break
            stack.pop()
        stack.append(new)
    return points[stack]


_STRETCHES_A_POINT = 2
_MAX_STRETCHES = 1 << 16
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INDICES = numba.types.Array(numba.int64, 1, "C", readonly=True)


@dataclass(frozen=True)
class GuideTable:
    """A guide table: the range of finite points cut into even stretches, and where the points of each begin.

    A bisection that begins there is done in few steps, where `np.searchsorted` reads all over a long curve.
    """

    points: FloatArray
    """Ascending; the ends may be infinite. Shape (n_points,), float64."""
    low: float
    scale: float
    """A value v lies in the stretch floor((v - low) · scale), up to rounding."""
    starts: NDArray[np.int64]
    """The points of a stretch are about points[starts[k]:starts[k + 1]]. Shape (n_stretches + 1,), int64."""

    @classmethod
    def of(cls, points: FloatArray) -> GuideTable:
        """Make the table of ascending points, in time and memory linear in their number."""
        finite = points[np.isfinite(points)]
        low, high = (finite[0], finite[-1]) if len(finite) else np.zeros(2)
        stretches = int(min(_STRETCHES_A_POINT * len(points), _MAX_STRETCHES))
        with np.errstate(over="ignore", divide="ignore"):
            scale = stretches / (high - low)
        if not 0.0 < scale < np.inf:  # one value, or values too far apart or too near
            stretches, scale = 1, 0.0
        ends = low + np.arange(stretches + 1) / scale if scale else np.array([low, high])
        starts = np.searchsorted(points, ends, side="left").astype(np.int64)
        starts[0], starts[-1] = 0, len(points)
        return cls(np.ascontiguousarray(points), float(low), float(scale), starts)

    def find(self, values: FloatArray) -> NDArray[np.int64]:
        """Count the points at or below each value, none NaN: `np.searchsorted(points, values, side="right")`.

        O(n) for n values where points are spread evenly, O(n · log n_points) at worst.
        """
        found: NDArray[np.int64] = _find(self.points, values, self.low, self.scale, self.starts)
        return found


@kernel(numba.int64[::1](_FLOATS, _FLOATS, numba.float64, numba.float64, _INDICES))
def _find(points, values, low, scale, starts):  # type: ignore[no-untyped-def]
    counts = np.empty(len(values), dtype=np.int64)
    last = len(starts) - 2
    for i in range(len(values)):
        value = values[i]
        at = (value - low) * scale
        stretch = 0 if not at > 0.0 else (last if at >= last else int(at))
        first, stop = starts[stretch], starts[stretch + 1]
        # Rounding may have led into a neighbour of the right stretch: then the search is for the whole.
        if first > 0 and points[first - 1] > value:
            first = 0
        if stop < len(points) and points[stop] <= value:
            stop = len(points)
        while first < stop:
            middle = (first + stop) >> 1
            if points[middle] <= value:
                first = middle + 1
            else:
                stop = middle
        counts[i] = first
    return counts
