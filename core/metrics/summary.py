"""Everything a service keeps about a set of scores, from one sort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from numpy.typing import ArrayLike

from core.metrics.area import misrank_fraction_of, tied_fraction_of
from core.metrics.curve import RocCurve, curve_of
from core.metrics.groups import Rows, ScoreGroups, check_rows, tie_groups
from core.metrics.influence import estimate_areas
from core.metrics.intervals import Interval, area_interval, partial_auc_interval_of
from core.metrics.totals import ClassTotals, totals_of
from core.metrics.window import check_level, check_window


class PartialArea(NamedTuple):
    """A window of false positive rates and the partial AUC over it (interpolated, divided by the width)."""

    fpr_min: float
    fpr_max: float
    interval: Interval


@dataclass(frozen=True)
class Summary:
    """What one ranking amounts to.

    Attributes
    ----------
    curve : RocCurve
        The full curve, a point per distinct score.
    auc : Interval
        Ties counted half; DeLong.
    partial_aucs : tuple of PartialArea
        One per window asked for, in that order.
    misrank_fraction : float in [0, 1]
        Share of pairs out of order, ties counted whole.
    ties : float in [0, 1]
        Share of positive–negative pairs with equal scores.
    positives, negatives : int
        Rows of each class with positive weight.
    totals : ClassTotals
        Total weight and effective rows of each class; with the curve, enough for an operating point.
    level : float in (0, 1)
        Level of the intervals.
    """

    curve: RocCurve
    auc: Interval
    partial_aucs: tuple[PartialArea, ...]
    misrank_fraction: float
    ties: float
    positives: int
    negatives: int
    totals: ClassTotals
    level: float


def summarise(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    windows: Sequence[tuple[float, float]] = ((0.0, 0.05),),
    level: float = 0.95,
    *,
    group: ArrayLike | None = None,
) -> Summary:
    """Curve, areas with intervals and counts of a ranking, from one sort.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    scores : array_like of float, shape (n_samples,)
        Finite; higher means more likely positive.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative.
    windows : sequence of (fpr_min, fpr_max)
        Windows of false positive rates for partial AUCs.
    level : float in (0, 1)
        Level of the intervals.
    group : array_like, shape (n_samples,), optional
        Rows of one value were drawn together, such as those of a patient: the intervals allow for that.

    Returns
    -------
    Summary

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty or without weight.
    InvalidParameter
        If a window or the level is out of range.

    Notes
    -----
    O(n log n + n · len(windows)).
    """
    level = check_level(level)
    checked = [check_window(*window) for window in windows]
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    groups = tie_groups(rows)
    curve = curve_of(groups)
    auc, *partial = _areas(rows, groups, curve, [(0.0, 1.0), *checked], level)
    return Summary(
        curve=curve,
        auc=auc,
        partial_aucs=tuple(
            PartialArea(*window, area) for window, area in zip(checked, partial, strict=True)
        ),
        misrank_fraction=misrank_fraction_of(groups),
        ties=tied_fraction_of(groups),
        positives=len(groups.positives),
        negatives=len(groups.negatives),
        totals=totals_of(rows, groups),
        level=level,
    )


def _areas(
    rows: Rows,
    groups: ScoreGroups,
    curve: RocCurve,
    windows: Sequence[tuple[float, float]],
    level: float,
) -> list[Interval]:
    if rows.unit is None:
        whole, *parts = windows
        auc = partial_auc_interval_of(groups, *whole, level)
        return [auc, *(partial_auc_interval_of(groups, *part, level, curve) for part in parts)]
    areas = estimate_areas(rows, windows)
    return [area_interval(areas, 0, j, window, level) for j, window in enumerate(windows)]
