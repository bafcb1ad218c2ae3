"""The ROC curve: its points, areas and hull, and the rates of given thresholds.

A curve can be stored without the rows. `ClassTotals` holds what else intervals and thresholds need of them.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numba
import numpy as np
from annotated_types import Gt
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_value
from core.errors import InvalidData, InvalidParameter
from core.kernels import kernel
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    RowGroups,
    ScoreGroups,
    effective_units,
    group_by_score,
    inner,
    spans,
)
from core.metrics.window import MAX_WHOLE, check_rate, check_window, window_weights

Definition = Literal["interpolated", "empirical"]
DEFINITIONS = ("interpolated", "empirical")


# Rounding error of a rate, which is a quotient in [0, 1]: a turn of the curve below it counts as straight.
RATE_ROUNDING = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class RocCurve:
    """A ROC curve: the points (FPR, TPR) of all thresholds, joined by straight lines.

    Point k flags the rows with score ≥ thresholds[k]. A diagonal step is a tie between the classes. `roc_curve` makes
    one from scores.

    Parameters
    ----------
    fpr, tpr : array_like of float64, shape (n_points,), in [0, 1]
        Rates, non-decreasing, from (0, 0) to (1, 1), no point twice.

    Examples
    --------
    >>> from core.metrics import RocCurve
    >>> curve = RocCurve([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0], [float("inf"), 0.9, 0.4, 0.1])
    >>> len(curve), curve.area(), curve.partial_area(0.0, 0.5)
    (4, 0.875, 0.75)
    """

    fpr: FloatArray
    tpr: FloatArray
    thresholds: FloatArray
    """Strictly decreasing. The first is +inf (flag nothing); the others are scores. Shape (n_points,)."""

    def __post_init__(self) -> None:
        for name in ("fpr", "tpr", "thresholds"):
            values = np.asarray(getattr(self, name), dtype=np.float64).view()
            values.flags.writeable = False  # the look-up tables below are computed once
            object.__setattr__(self, name, values)
        if not (self.fpr.ndim == 1 and self.fpr.shape == self.tpr.shape == self.thresholds.shape):
            shapes = f"{self.fpr.shape}, {self.tpr.shape} and {self.thresholds.shape}"
            raise InvalidData(
                f"fpr, tpr and thresholds must be vectors of the same length, got {shapes}"
            )
        if self.fpr.size < 2:
            raise InvalidData(f"a ROC curve must have at least 2 points, got {self.fpr.size}")
        check_rates("fpr", self.fpr)
        check_rates("tpr", self.tpr)
        if not np.all((self.fpr[1:] > self.fpr[:-1]) | (self.tpr[1:] > self.tpr[:-1])):
            raise InvalidData("each point of a ROC curve must differ from the previous one")
        check_thresholds("thresholds", self.thresholds)

    def __len__(self) -> int:
        return int(self.fpr.size)

    def area(self) -> float:
        """Return the area under the curve: the AUC, with ties counted half.

        Returns
        -------
        float in [0, 1]
            The area. O(n_points).
        """
        return self.partial_area(0.0, 1.0)

    def partial_area(
        self, fpr_min: float = 0.0, fpr_max: float = 1.0, *, standardize: bool = False
    ) -> float:
        """Return the mean height of the curve over a window of false positive rates.

        Parameters
        ----------
        fpr_min, fpr_max : float in [0, 1]
            The window of false positive rates, fpr_min < fpr_max.
        standardize : bool
            Rescale so that the chance diagonal has ½ and the perfect curve 1 (McClish).

        Returns
        -------
        float in [0, 1]

        References
        ----------
        McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9 (1989).
        """
        low, high = check_window(fpr_min, fpr_max)
        value = _Line(self.fpr, self.tpr).mean_height(low, high)
        return mcclish(value, low, high) if standardize else value

    def tpr_at(self, fpr: ArrayLike) -> FloatArray:
        """Return the height of the curve at false positive rates, interpolated.

        At a vertical step it is the top of the step.

        Parameters
        ----------
        fpr : array_like of float in [0, 1], any shape
            False positive rates.

        Returns
        -------
        ndarray of float64, the shape of `fpr`
        """
        rates = np.asarray(fpr, dtype=np.float64)
        if not np.all((rates >= 0.0) & (rates <= 1.0)):
            raise InvalidParameter("fpr must be in [0, 1]")
        return top_at(self.fpr, self.tpr, rates)

    def locate(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the FPR and TPR of the thresholds at given scores.

        Exact on a full curve. On a thinned curve the point may lie earlier; see `thin`.

        Parameters
        ----------
        scores : array_like of float, any shape
            Infinite scores are allowed.

        Returns
        -------
        fpr, tpr : ndarray of float64, the shape of `scores`
            Rates of flagging all rows with at least this score.

        Notes
        -----
        O(n_scores · log n_points) at worst; O(n_scores) if the thresholds are spread evenly.
        """
        values = np.asarray(scores, dtype=np.float64)
        if np.isnan(values).any():
            raise InvalidData("scores must not contain NaN")
        points = self._table.find((-values).ravel()).reshape(values.shape) - 1
        return self.fpr[points], self.tpr[points]

    def locate_one(self, score: float) -> tuple[float, float]:
        """Return the FPR and TPR of one threshold; faster than `locate` for a single score.

        Parameters
        ----------
        score : float
            The score.

        Returns
        -------
        (float, float)
            FPR and TPR.
        """
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
        # an array is as quick to bisect as a list, and takes a quarter of its memory
        return [array("d", each.tobytes()) for each in (-self.thresholds, self.fpr, self.tpr)]

    @property
    def ks(self) -> float:
        """The Kolmogorov–Smirnov distance: the greatest |TPR - FPR| over all thresholds. In [0, 1].

        A thinned curve has the same value if the ranking is better than chance. The value is biased upwards for few
        rows; `ks_interval` computes an interval from the rows.
        """
        return float(np.abs(self.tpr - self.fpr).max())

    @property
    def ks_point(self) -> int:
        """The index of the point with the greatest TPR - FPR, the threshold at which the classes differ most.

        Among equals, up to rounding, it is the point that flags the fewest rows. If the ranking is better than chance,
        the difference is `ks`. O(n_points).
        """
        difference = self.tpr - self.fpr
        return int(np.argmax(difference >= difference.max() - 4.0 * RATE_ROUNDING))

    def hull(self) -> RocCurve:
        """Return the upper convex hull: the points with the lowest cost for some costs and prevalence.

        Returns
        -------
        RocCurve
            The hull. O(n_points).

        References
        ----------
        Provost & Fawcett, "Robust classification for imprecise environments", Machine Learning 42 (2001).
        """
        return self._subset(upper_hull(self.fpr, self.tpr))

    def thin(self, max_points: int, *, n_first: int = 0) -> RocCurve:
        """Return a curve through at most `max_points` of the points.

        The end points are always kept. If all vertices of the upper hull fit, all are kept; otherwise half of the
        points are hull vertices. The other points are spread evenly along the curve.

        Parameters
        ----------
        max_points : int
            At least 2.
        n_first : int
            Number of points from the start that are also kept, so that the top of the list stays exact.

        Returns
        -------
        RocCurve

        Raises
        ------
        InvalidParameter
            `max_points` is less than 2, or `n_first` leaves fewer than 2 of them.

        Notes
        -----
        The length along the curve is FPR + TPR, 2 in all. With K = `max_points` minus the hull vertices kept, every
        point of the full curve has a kept point before it within h = 2 / (K + 1). So FPR + TPR of `locate` on the
        thinned curve is too low by less than h, and no point of either curve is further than h from the other curve.
        `max_points` does not count the first points here. O(n_points).
        """
        _check_size(max_points, n_first)
        if len(self) <= max_points:
            return self
        return self._subset(_Line(self.fpr, self.tpr).thinned(max_points, n_first))

    def _subset(self, points: NDArray[np.intp]) -> RocCurve:
        return RocCurve(self.fpr[points], self.tpr[points], self.thresholds[points])


def roc_curve(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    drop_collinear: bool = False,
) -> RocCurve:
    """Compute the ROC curve of scores, with one point per distinct score after (0, 0).

    Parameters
    ----------
    y, scores, sample_weight
        As for `auc`.
    drop_collinear : bool
        Leave out points inside straight stretches. The line is the same, but `RocCurve.locate` then knows only the
        remaining thresholds.

    Returns
    -------
    RocCurve
        The curve. O(n log n).

    Examples
    --------
    >>> from core.metrics import roc_curve
    >>> curve = roc_curve([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])
    >>> curve.fpr, curve.tpr
    (array([0. , 0. , 0.5, 1. ]), array([0. , 0.5, 1. , 1. ]))
    """
    return curve_of(group_by_score(y, scores, sample_weight), drop_collinear=drop_collinear)


def curve_of(groups: RowGroups, *, drop_collinear: bool = False) -> RocCurve:
    """Return the ROC curve of tie groups, with one point per distinct score after (0, 0)."""
    check_value("drop_collinear", bool, drop_collinear)
    tp, fp = groups.flagged_positive, groups.flagged_negative
    fpr, tpr = fp / fp[-1], tp / tp[-1]
    # A weight lost in rounding moves no point: the first of equal points stands for all.
    moved = (fpr[1:] > fpr[:-1]) | (tpr[1:] > tpr[:-1])
    if drop_collinear:
        dx, dy = groups.negative, groups.positive
        is_corner = dx[:-1] * dy[1:] != dx[1:] * dy[:-1]
        moved[:-1] &= is_corner | ~moved[1:]  # a point that also stands for the next one must stay
    kept = np.concatenate(([True], moved))
    return RocCurve(fpr[kept], tpr[kept], np.concatenate(([np.inf], groups.scores))[kept])


def thin_curve_of(groups: ScoreGroups, max_points: int, *, n_first: int = 0) -> RocCurve:
    """Return the ROC curve of tie groups (in memory or in files), thinned by `RocCurve.thin`.

    Of groups in files, only the points of the thinned curve are in memory.

    A point where the sums of weights do not grow, for rounding, is left out, as in `curve_of`.
    """
    _check_size(max_points, n_first)
    line = _line_of(groups)
    is_long = len(line) > max_points
    points = line.thinned(max_points, n_first) if is_long else np.arange(len(line))
    fpr, tpr = line.at(points)
    moved = np.concatenate(([True], (fpr[1:] > fpr[:-1]) | (tpr[1:] > tpr[:-1])))
    scores = np.concatenate(([np.inf], groups.scores_at(points[1:] - 1)))
    return RocCurve(fpr[moved], tpr[moved], scores[moved])


def _check_size(max_points: int, n_first: int) -> None:
    for name, value in (("max_points", max_points), ("n_first", n_first)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise InvalidParameter(f"{name} must be an integer, got {value!r}")
    if max_points < 2:
        raise InvalidParameter(f"max_points must be at least 2, got {max_points}")
    if not 0 <= n_first <= max_points - 2:
        raise InvalidParameter(
            f"n_first must be in [0, {max_points - 2}], two points below max_points, got {n_first}"
        )


@dataclass(frozen=True, eq=False)
class _Line:
    """An increasing polyline from (0, 0): a ROC curve, or its unnormalised sums of weights.

    Computations go over blocks of `AT_ONCE` points, to save memory.
    """

    x: FloatArray
    y: FloatArray
    """Non-decreasing. Shape (n_points,), float64."""
    x_total: float = 1.0
    y_total: float = 1.0

    def __len__(self) -> int:
        return int(self.x.size)

    def at(self, points: slice | NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        if self.x_total == self.y_total == 1.0:
            return self.x[points], self.y[points]
        return self.x[points] / self.x_total, self.y[points] / self.y_total

    def mean_height(self, low: float, high: float) -> float:
        first = bisect_right(self.x, low, key=self._rate)
        last = bisect_left(self.x, high, key=self._rate)
        knot, height = low, float(top_at(*self.at(slice(first - 1, first + 1)), low))
        end = float(foot_at(*self.at(slice(last - 1, last + 1)), high))
        doubled = 0.0
        for start, stop in spans(first, last):
            x, y = self.at(slice(start, stop))
            is_last = stop == last
            knots = np.concatenate(([knot], x, [high] if is_last else []))
            heights = np.concatenate(([height], y, [end] if is_last else []))
            doubled += inner(np.diff(knots) / (high - low), heights[1:] + heights[:-1])
            knot, height = float(knots[-1]), float(heights[-1])
        # Rounding must not lift a perfect curve above 1.
        return min(1.0, doubled / 2.0)

    def _rate(self, x: float) -> float:
        return float(x) / self.x_total

    def hull(self) -> NDArray[np.intp]:
        stretches = [
            start + _hull_of(*self.at(slice(start, stop + 1)))
            for start, stop in spans(0, len(self))
        ]
        if len(stretches) == 1:
            return stretches[0]
        points = np.unique(np.concatenate(stretches))
        return points[_hull_of(*self.at(points))]

    def thinned(self, max_points: int, n_first: int) -> NDArray[np.intp]:
        """Return the ascending indices of the points that `RocCurve.thin(max_points)` keeps.

        These are the first `n_first` points, the hull's vertices (if they would take more than half: some, evenly
        spaced), and further points spaced evenly by x + y.
        """
        max_points -= n_first
        kept = self.hull()
        if kept.size > max_points:
            n_inner = max(0, max_points // 2 - 2)
            x, y = self.at(kept)
            inner_points = kept[_evenly_spaced(x + y, n_inner)]
            kept = np.union1d(inner_points, [0, len(self) - 1])
        marks = _marks(max_points - kept.size)
        even = np.full(marks.size, len(self) - 1)
        n_found = 0
        for start, stop in spans(0, len(self)):
            x, y = self.at(slice(start, stop))
            length = x + y
            found = slice(n_found, int(np.searchsorted(marks, length[-1], side="right")))
            even[found] = start + np.searchsorted(length, marks[found], side="left")
            n_found = max(n_found, found.stop)
        every = np.concatenate([np.arange(n_first), kept, even])
        return np.unique(every)


def _line_of(groups: ScoreGroups) -> _Line:
    negative, positive = groups.flagged_negative, groups.flagged_positive
    return _Line(negative, positive, float(negative[-1]), float(positive[-1]))


@dataclass(frozen=True)
class ClassTotals:
    """Total weights and counts of the two classes, needed with a curve for intervals and operating points.

    Parameters
    ----------
    positive, negative : float > 0
        Total weight of each class; the numbers of rows if unweighted.
    positive_effective, negative_effective : float > 0
        Kish's effective numbers of rows, (Σw)² / Σw²; the numbers of rows if unweighted. If rows were drawn in groups,
        the effective numbers of groups. This treats the rows of a group as all flagged or none, so intervals are too
        wide rather than too narrow.

    Examples
    --------
    >>> from core.metrics import ClassTotals
    >>> ClassTotals.of_counts(30, 70).prevalence
    0.3
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
        """Return the totals of unweighted rows.

        Parameters
        ----------
        positives, negatives : int
            Numbers of rows.

        Returns
        -------
        ClassTotals
        """
        return cls(positives, negatives, positives, negatives)

    @property
    def prevalence(self) -> float:
        """Fraction of the total weight that belongs to positives."""
        return self.positive / (self.positive + self.negative)


def totals_of(rows: EvaluatedRows, groups: ScoreGroups) -> ClassTotals:
    return ClassTotals(
        float(groups.flagged_positive[-1]),
        float(groups.flagged_negative[-1]),
        *effective_units(rows),
    )


def auc(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Compute the AUC, the area under the ROC curve.

    It is the fraction of pairs of a positive and a negative that the scores put in order, with ties counted half. A
    random ranking has 0.5. `auc_interval` adds a confidence interval.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Labels: two distinct values, of which the greater is positive.
    scores : array_like of float, shape (n_samples,)
        Finite scores; higher means more likely positive.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights; a weight k counts as k rows.

    Returns
    -------
    float in [0, 1]
        The AUC. O(n log n). Without weights the count of pairs is exact while 2 · positives · negatives < 2**53.

    Examples
    --------
    >>> from core.metrics import auc
    >>> auc([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])  # 3 of 4 pairs in order, one tied
    0.875
    """
    return auc_of(group_by_score(y, scores, sample_weight))


def auc_of(groups: ScoreGroups) -> float:
    doubled = sum(
        inner(block.negative, block.flagged_positive[:-1] + block.flagged_positive[1:])
        for block in groups.blocks()
    )
    return min(1.0, doubled / (2.0 * _pair_mass(groups)))


def misrank_fraction(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the fraction of discordant pairs of a positive and a negative; ties are discordant.

    Parameters
    ----------
    y, scores, sample_weight
        As for `auc`.

    Returns
    -------
    float in [0, 1]
        1 − AUC + half the fraction of ties.

    References
    ----------
    Rudin & Schapire, "Margin-based ranking and an equivalence between AdaBoost and RankBoost",
    Journal of Machine Learning Research 10 (2009), §2.

    Examples
    --------
    >>> from core.metrics import misrank_fraction
    >>> misrank_fraction([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])
    0.25
    """
    return misrank_fraction_of(group_by_score(y, scores, sample_weight))


def misrank_fraction_of(groups: ScoreGroups) -> float:
    """Return the fraction of discordant pairs (ties included) of tie groups."""
    total = groups.flagged_positive[-1]
    discordant = sum(
        inner(block.negative, total - block.flagged_positive[:-1]) for block in groups.blocks()
    )
    return min(1.0, discordant / _pair_mass(groups))


def tied_fraction_of(groups: ScoreGroups) -> float:
    tied = sum(inner(block.positive, block.negative) for block in groups.blocks())
    return min(1.0, tied / _pair_mass(groups))


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
    """Compute the partial AUC: the area under the ROC curve in a window of false positive rates.

    Use it if only low false positive rates matter. The area is divided by the width of the window.

    Parameters
    ----------
    y, scores
        As for `auc`.
    fpr_min, fpr_max : float in [0, 1]
        The window of false positive rates, fpr_min < fpr_max.
    definition : {"interpolated", "empirical"}
        "interpolated": the area under straight lines between the points. Ties are diagonals, so constant scores have
        the area of the diagonal. "empirical": the fraction of pairs strictly in order, of all positives with the
        negatives ranked ⌊n·fpr_min⌋ + 1 to ⌈n·fpr_max⌉; constant scores have 0.
    standardize : bool
        Rescale so that the chance diagonal has ½ and the perfect curve 1 (McClish). With the empirical definition, the
        window is the one that the ranks span.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights; a weight k counts as k rows. With the empirical definition and weights of negatives that
        are not all whole numbers, the window ends at n·fpr_min and n·fpr_max without rounding to ranks.

    Returns
    -------
    float
        In [0, 1]. A standardised value can be as low as ½ − ½·c/(1 − c), where c is the middle of the window. O(n log
        n).

    References
    ----------
    Narasimhan & Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", eq. 2.
    McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9 (1989).

    Examples
    --------
    >>> from core.metrics import partial_auc
    >>> y, scores = [1, 0, 1, 1, 0], [0.9, 0.8, 0.6, 0.4, 0.2]
    >>> round(partial_auc(y, scores, 0.0, 0.5), 3)
    0.333
    """
    check_value("definition", str, definition)
    check_value("standardize", bool, standardize)
    low, high = check_window(fpr_min, fpr_max)
    if definition not in DEFINITIONS:
        raise InvalidParameter(f"definition must be one of {DEFINITIONS}, got {definition!r}")
    groups = group_by_score(y, scores, sample_weight)
    if definition == "interpolated":
        value = area_of(groups, low, high)
        return mcclish(value, low, high) if standardize else value
    total = float(groups.flagged_negative[-1])
    first, last = window_weights(total, low, high, whole=groups.negatives.whole)
    tpr = groups.flagged_positive / groups.flagged_positive[-1]
    value = strict_area(groups.flagged_negative, tpr, first, last)
    return mcclish(value, first / total, last / total) if standardize else value


def area_of(groups: ScoreGroups, fpr_min: float, fpr_max: float) -> float:
    """Return the partial AUC of tie groups over a window; over [0, 1] it is exactly `auc`."""
    if (fpr_min, fpr_max) == (0.0, 1.0):
        return auc_of(groups)
    return _line_of(groups).mean_height(fpr_min, fpr_max)


def empirical_area_of(curve: RocCurve, negative: float, fpr_min: float, fpr_max: float) -> float:
    """Compute the partial AUC of the empirical definition from a full curve.

    Parameters
    ----------
    curve : RocCurve
        A ROC curve with one point per distinct score.
    negative : float
        Total weight of the negatives; their number if unweighted.
    fpr_min, fpr_max : float in [0, 1]
        The window of false positive rates, fpr_min < fpr_max.

    Returns
    -------
    float in [0, 1]
        As `partial_auc` with definition="empirical". It may differ if weights are not whole numbers but their sums at
        each score are, because a curve only has the sums. The window then ends at ranks.

    Examples
    --------
    >>> from core.metrics import empirical_area_of, roc_curve
    >>> curve = roc_curve([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])
    >>> empirical_area_of(curve, 2, 0.0, 0.5)  # 1 of 2 positives scores above the highest negative
    0.5
    """
    check_value("curve", RocCurve, curve)
    check_value("negative", Annotated[float, Gt(0)], negative)
    fpr_min, fpr_max = check_window(fpr_min, fpr_max)
    flagged = curve.fpr * negative
    ranks = np.rint(flagged)
    # Rounding error of whole numbers that were divided by `negative` and multiplied again.
    rounding = 8.0 * np.finfo(np.float64).eps * negative
    whole = negative < MAX_WHOLE and bool((abs(flagged - ranks) <= rounding).all())
    if whole:
        flagged = ranks
    first, last = window_weights(negative, fpr_min, fpr_max, whole=whole)
    return strict_area(flagged, curve.tpr, first, last)


def tpr_at_fpr(
    y: ArrayLike, scores: ArrayLike, fpr: float, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the TPR at a false positive rate: the height of the ROC curve, interpolated.

    Between two points it is the TPR of choosing one of their thresholds at random. `operating_point` returns the best
    single threshold. At a vertical step it is the top of the step.

    Parameters
    ----------
    y, scores, sample_weight
        As for `auc`.
    fpr : float in [0, 1]
        The false positive rate.

    Returns
    -------
    float in [0, 1]
        The TPR. O(n log n).

    Examples
    --------
    >>> from core.metrics import tpr_at_fpr
    >>> tpr_at_fpr([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], 0.25)
    0.75
    """
    rate = check_rate("fpr", fpr)
    return float(curve_of(group_by_score(y, scores, sample_weight)).tpr_at(rate))


def _pair_mass(groups: ScoreGroups) -> float:
    return float(groups.flagged_positive[-1] * groups.flagged_negative[-1])


def strict_area(flagged: FloatArray, tpr: FloatArray, first: float, last: float) -> float:
    """Return the mean height of the step curve over a window: tied pairs count as misranked."""
    inside = np.diff(np.clip(flagged, first, last))
    return min(1.0, inner(inside, tpr[:-1]) / (last - first))


def check_rates(name: str, rates: FloatArray) -> None:
    if not (rates[0] == 0.0 and rates[-1] == 1.0 and np.all(rates[1:] >= rates[:-1])):
        raise InvalidData(f"{name} must be non-decreasing from 0 to 1")


def check_thresholds(name: str, thresholds: FloatArray) -> None:
    if thresholds[0] != np.inf or not np.all(thresholds[1:] < thresholds[:-1]):
        raise InvalidData(f"{name} must be strictly decreasing, starting at +inf")


def top_at(x: FloatArray, y: FloatArray, at: FloatArray | float) -> FloatArray:
    """Return the height of an increasing line at x = `at`; at a vertical step its top."""
    left = np.searchsorted(x, at, side="right") - 1
    return _between(x, y, left, np.minimum(left + 1, x.size - 1), at)


def foot_at(x: FloatArray, y: FloatArray, at: FloatArray | float) -> FloatArray:
    """Return the height of an increasing line at x = `at`; at a vertical step its foot."""
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
    """Return the height at x = `at`, interpolated between the points with indices `left` and `right`."""
    width = x[right] - x[left]  # 0 only at the ends of the line
    fraction = (at - x[left]) / np.where(width > 0.0, width, 1.0)
    return np.asarray(y[left] + fraction * (y[right] - y[left]))


def mcclish(value: float, fpr_min: float, fpr_max: float) -> float:
    """Return a mean height over a window, rescaled so that a random ranking has ½ and a perfect one 1."""
    chance = (fpr_min + fpr_max) / 2.0
    return (1.0 + (value - chance) / (1.0 - chance)) / 2.0


def _evenly_spaced(length: FloatArray, n_points: int) -> NDArray[np.intp]:
    marks = _marks(n_points)
    return np.minimum(np.searchsorted(length, marks, side="left"), length.size - 1)


def _marks(n_points: int) -> FloatArray:
    """Return evenly spaced positions inside (0, 2), the range of FPR + TPR."""
    return np.linspace(0.0, 2.0, n_points + 2)[1:-1]


def upper_hull(x: FloatArray, y: FloatArray) -> NDArray[np.intp]:
    """Return the ascending indices of the upper convex hull's vertices, for points that increase in [0, 1].

    The first and the last point are vertices; points inside a straight stretch are not. A point on or under the line
    between its neighbours is no vertex: passes over the whole array drop such points while that is quick, and one walk
    with a stack drops the others. Only the walk allows for rounding: two neighbours that are both almost straight may
    be a corner together. Of a long curve that is done stretch by stretch, then for the vertices of all. O(n_points).

    Andrew, "Another efficient algorithm for convex hulls in two dimensions", Information Processing Letters 9 (1979).
    """
    return _Line(x, y).hull()


def _hull_of(x: FloatArray, y: FloatArray) -> NDArray[np.intp]:
    """Return the hull vertices of one stretch of points: vectorised passes first, then a walk."""
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
    """Return the points that remain after a stack-based walk that drops those on or under the hull."""
    stack: list[int] = []
    for new in range(len(x)):
        while len(stack) > 1:
            before, top = stack[-2], stack[-1]
            dx1, dy1 = x[top] - x[before], y[top] - y[before]
            dx2, dy2 = x[new] - x[top], y[new] - y[top]
            if dx1 * dy2 - dx2 * dy1 < -RATE_ROUNDING * (dx1 + dx2 + dy1 + dy2):
                break
            stack.pop()
        stack.append(new)
    return points[stack]


# Stretches of a guide table per point, and at most (512 kB): most stretches then hold one point or none.
STRETCHES_PER_POINT = 2
MAX_STRETCHES = 1 << 16

_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INDICES = numba.types.Array(numba.int64, 1, "C", readonly=True)


@dataclass(frozen=True)
class GuideTable:
    """A lookup table that speeds up `np.searchsorted` in a long sorted array: the first point of each of many equal
    stretches, within which a bisection takes few steps.
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
        finite = points[np.isfinite(points)]
        low, high = (finite[0], finite[-1]) if len(finite) else np.zeros(2)
        stretches = int(min(STRETCHES_PER_POINT * len(points), MAX_STRETCHES))
        with np.errstate(over="ignore", divide="ignore"):
            scale = stretches / (high - low)
        if not 0.0 < scale < np.inf:  # one value, or values too far apart or too near
            stretches, scale = 1, 0.0
        ends = low + np.arange(stretches + 1) / scale if scale else np.array([low, high])
        starts = np.searchsorted(points, ends, side="left").astype(np.int64)
        starts[0], starts[-1] = 0, len(points)
        return cls(np.ascontiguousarray(points), float(low), float(scale), starts)

    def find(self, values: FloatArray) -> NDArray[np.int64]:
        """Return `np.searchsorted(points, values, side="right")`, in O(n) if the points are spread evenly; no NaN."""
        counts: NDArray[np.int64] = _find(self.points, values, self.low, self.scale, self.starts)
        return counts


@kernel(numba.int64[::1](_FLOATS, _FLOATS, numba.float64, numba.float64, _INDICES))
def _find(points, values, low, scale, starts):  # type: ignore[no-untyped-def]
    """Count the points at or below each value.

    A value v lies in the stretch floor((v - low) · scale), up to rounding; `starts` has the first point of each
    stretch. The points ascend, and no value is NaN.
    """
    counts = np.empty(len(values), dtype=np.int64)
    last = len(starts) - 2
    for i in range(len(values)):
        value = values[i]
        at = (value - low) * scale
        stretch = 0 if not at > 0.0 else (last if at >= last else int(at))
        first, stop = starts[stretch], starts[stretch + 1]
        # Rounding may have led to the neighbour of the right stretch: then all points are searched.
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
