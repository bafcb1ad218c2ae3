"""The ROC curve: made from scores, and complete in itself, so that a service can keep the curve alone."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidData, InvalidParameter
from core.metrics.groups import FloatArray, ScoreGroups, group_by_score, inner
from core.metrics.hull import upper_hull
from core.metrics.placing import Guide
from core.metrics.window import check_window


@dataclass(frozen=True, eq=False)
class RocCurve:
    """The points (FPR, TPR) that cutting a ranking can reach, joined by straight lines.

    Point k flags the rows with score ≥ thresholds[k]. A diagonal step is a tie between the classes.

    Parameters
    ----------
    fpr, tpr : array_like of float64, shape (n_points,), in [0, 1]
        Non-decreasing, from (0, 0) to (1, 1), no point twice.
    thresholds : array_like of float64, shape (n_points,)
        Strictly decreasing; the first is +inf (flag nothing), the others are scores.

    Raises
    ------
    InvalidData
        If the arrays do not form such a curve.
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
        for name, rate in (("fpr", self.fpr), ("tpr", self.tpr)):
            if not (rate[0] == 0.0 and rate[-1] == 1.0 and np.all(rate[1:] >= rate[:-1])):
                raise InvalidData(f"{name} must rise from 0 to 1 without falling")
        if not np.all((self.fpr[1:] > self.fpr[:-1]) | (self.tpr[1:] > self.tpr[:-1])):
            raise InvalidData("each point of a ROC curve must differ from the one before")
        if self.thresholds[0] != np.inf or not np.all(self.thresholds[1:] < self.thresholds[:-1]):
            raise InvalidData("thresholds must fall strictly, starting at +inf")

    def __len__(self) -> int:
        return int(self.fpr.size)

    def area(self) -> float:
        """Area under the curve, in [0, 1]: the AUC with ties counted half. O(n_points)."""
        return self.partial_area(0.0, 1.0)

    def partial_area(
        self, fpr_min: float = 0.0, fpr_max: float = 1.0, *, standardize: bool = False
    ) -> float:
        """Mean height of the curve over a window of false positive rates, in [0, 1].

        Parameters
        ----------
        fpr_min, fpr_max : float in [0, 1]
            The window; the area is divided by its width.
        standardize : bool
            Rescale so that the chance diagonal gives ½ and the perfect curve 1 (McClish).

        Raises
        ------
        InvalidParameter
            If the window is empty or leaves [0, 1].

        Notes
        -----
        O(log n_points + points in the window).

        References
        ----------
        McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9 (1989).
        """
        low, high = check_window(fpr_min, fpr_max)
        first = int(np.searchsorted(self.fpr, low, side="right"))
        last = int(np.searchsorted(self.fpr, high, side="left"))
        knots = np.concatenate(([low], self.fpr[first:last], [high]))
        heights = np.concatenate(
            ([self._height_after(low)], self.tpr[first:last], [self._height_before(high)])
        )
        shares = np.diff(knots) / (high - low)
        # Rounding must not lift a perfect curve above 1.
        value = min(1.0, inner(shares, heights[1:] + heights[:-1]) / 2.0)
        return mcclish(value, low, high) if standardize else value

    def tpr_at(self, fpr: ArrayLike) -> FloatArray:
        """Height of the curve at false positive rates, interpolated; the top of a vertical step.

        Parameters
        ----------
        fpr : array_like of float in [0, 1], any shape

        Returns
        -------
        ndarray of float64, the shape of `fpr`

        Raises
        ------
        InvalidParameter
            If a rate lies outside [0, 1].
        """
        rates = np.asarray(fpr, dtype=np.float64)
        if not np.all((rates >= 0.0) & (rates <= 1.0)):
            raise InvalidParameter("fpr must lie in [0, 1]")
        left = np.searchsorted(self.fpr, rates, side="right") - 1
        right = np.minimum(left + 1, len(self) - 1)
        width = self.fpr[right] - self.fpr[left]  # 0 only at the end of the curve
        share = (rates - self.fpr[left]) / np.where(width > 0, width, 1.0)
        return np.asarray(self.tpr[left] + share * (self.tpr[right] - self.tpr[left]))

    def _height_after(self, fpr: float) -> float:
        return float(self.tpr_at(fpr))

    def _height_before(self, fpr: float) -> float:
        first = int(np.searchsorted(self.fpr, fpr, side="left"))
        return float(self.tpr[first]) if self.fpr[first] == fpr else self._height_after(fpr)

    def locate(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Place scores on the curve: the rates of the cut that flags every score at or above them.

        Exact on a full curve. On a thinned one the point found may lie earlier, see `thin`.

        Parameters
        ----------
        scores : array_like of float, any shape
            Infinite scores are allowed.

        Returns
        -------
        fpr, tpr : ndarray of float64, the shape of `scores`

        Raises
        ------
        InvalidData
            If a score is NaN.

        Notes
        -----
        O(n_scores · log n_points) at worst, O(n_scores) where thresholds are spread evenly.
        """
        values = np.asarray(scores, dtype=np.float64)
        if np.isnan(values).any():
            raise InvalidData("scores must not hold NaN")
        points = self._guide.find((-values).ravel()).reshape(values.shape) - 1
        return self.fpr[points], self.tpr[points]

    def locate_one(self, score: float) -> tuple[float, float]:
        """`locate` for one score, without numpy's cost per call: under a microsecond."""
        if isnan(score):
            raise InvalidData("score must not be NaN")
        ascending, fpr, tpr = self._lookup
        point = bisect_right(ascending, -score) - 1
        return fpr[point], tpr[point]

    @cached_property
    def _ascending(self) -> FloatArray:
        return -self.thresholds

    @cached_property
    def _guide(self) -> Guide:
        return Guide.to(self._ascending)

    @cached_property
    def _lookup(self) -> tuple[Sequence[float], Sequence[float], Sequence[float]]:
        # array: as quick to bisect as a list, a quarter of its memory.
        return _plain(self._ascending), _plain(self.fpr), _plain(self.tpr)

    def hull(self) -> RocCurve:
        """The least concave curve at or above this one: the cuts that are best for some cost and prevalence.

        Notes
        -----
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

        Parameters
        ----------
        max_points : int
            At least 2.

        Raises
        ------
        InvalidParameter
            If `max_points` is less than 2.

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
    """The ROC curve of scores.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    scores : array_like of float, shape (n_samples,)
        Finite; higher means more likely positive.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative; a weight k counts as k rows.
    drop_collinear : bool
        Leave out the points inside straight stretches. The line is the same, but `RocCurve.locate` can then find
        only the thresholds that are left.

    Returns
    -------
    RocCurve
        One point per distinct score, after (0, 0).

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty or without weight.

    Notes
    -----
    O(n log n).

    Examples
    --------
    >>> curve = roc_curve([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])
    >>> curve.tpr.tolist()
    [0.0, 0.5, 0.5, 1.0, 1.0]
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


def mcclish(value: float, fpr_min: float, fpr_max: float) -> float:
    """A mean height over a window, rescaled: the chance diagonal becomes ½, the perfect curve stays 1."""
    chance = (fpr_min + fpr_max) / 2.0
    return (1.0 + (value - chance) / (1.0 - chance)) / 2.0


def _evenly_spaced(length: FloatArray, n_points: int) -> NDArray[np.intp]:
    """Indices of the first points at or past `n_points` evenly spaced inner marks of (0, 2)."""
    marks = np.linspace(0.0, 2.0, n_points + 2)[1:-1]
    return np.minimum(np.searchsorted(length, marks, side="left"), length.size - 1)


def _plain(values: FloatArray) -> Sequence[float]:
    return array("d", values.tobytes())
