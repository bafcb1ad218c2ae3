"""Areas from cross-validation: the mean over folds, each judged by itself, with intervals and paired tests.

The scores of two folds come from two fitted rankers and need have no scale in common, so pooling them draws a curve
that is none of theirs, and DeLong's interval around it lacks its level. Here each fold has its own curve. With V_r
folds in repeat r of R, the area and the influence of a row (see `influence`) are

    A = (1/R) Σ_r (1/V_r) Σ_f A_rf,   φ_i = (1/R) Σ_r φ_i,rf / V_r with f the fold of row i in repeat r,

and the variance is Σ φ_i² over rows, or over units after summing in each. A row enters once however often it was
scored: repeats steady the estimate, but they are no new rows, and the variance does not shrink as if they were. The
factor r = e / (e − F) counts the F means taken away, one a fold, from e effective units, both summed over the folds of
a repeat, on average. For a comparison all scorers are judged on the same folds.

The target is the mean area of the rankers that were fitted, on rows to come; how far another draw of training rows
would move them is not in the interval. A fold without rows of both classes has no area and is left out.

References
----------
LeDell, Petersen & van der Laan, "Computationally efficient confidence intervals for cross-validated area under the ROC
curve estimates", Electronic Journal of Statistics 9 (2015).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidData, InvalidParameter
from core.metrics.comparison import (
    ADJUSTMENTS,
    Adjustment,
    Comparison,
    check_names,
    check_windows,
    compare_areas,
)
from core.metrics.groups import Rows, check_rows, number_units
from core.metrics.influence import (
    Areas,
    areas_of_units,
    effective_units,
    row_influences,
)
from core.metrics.intervals import Interval, area_interval
from core.metrics.window import Window, check_level


def cross_validated_areas(
    y: ArrayLike,
    scores: ArrayLike,
    fold: ArrayLike,
    windows: Sequence[Window] = ((0.0, 1.0),),
    *,
    repeat: ArrayLike | None = None,
    row: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> tuple[Interval, ...]:
    """The mean of the folds' areas over each window, with an interval.

    Parameters
    ----------
    y : array_like, shape (n_entries,)
        One entry for each time a row was scored by a ranker that had not learnt from it. Exactly two distinct values;
        the greater one is positive.
    scores : array_like of float, shape (n_entries,)
        Finite; higher means more likely positive, within a fold.
    fold : array_like, shape (n_entries,)
        The fold of each entry: numbers or text.
    windows : sequence of (fpr_min, fpr_max)
        Windows of false positive rates; (0, 1) is the AUC.
    repeat : array_like, shape (n_entries,), optional
        The repetition of cross-validation that each entry belongs to.
    row : array_like, shape (n_entries,), optional
        Which row each entry is of; must be given if there are repeats, unless `group` is.
    level : float in (0, 1)
        Probability that an interval covers the mean area of these rankers in the population.
    sample_weight : array_like of float, shape (n_entries,), optional
        Non-negative; within a fold weights are shares, not counts.
    group : array_like, shape (n_entries,), optional
        Rows of one value are drawn together, wherever their folds.

    Returns
    -------
    tuple of Interval
        One per window, on the logit scale; Wilson's where the sample shows no variance, as `partial_auc_interval`.

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or no fold has rows of both classes.
    InvalidParameter
        If a parameter is out of range, or there are repeats and neither `row` nor `group`.

    Notes
    -----
    O(n log n + n · n_windows) for n entries.
    """
    checked, level = check_windows(windows), check_level(level)
    areas = _estimate(y, {"scores": scores}, fold, checked, repeat, row, sample_weight, group)
    return tuple(area_interval(areas, 0, j, window, level) for j, window in enumerate(checked))


def cross_validated_compare(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    fold: ArrayLike,
    windows: Sequence[Window] = ((0.0, 1.0),),
    *,
    repeat: ArrayLike | None = None,
    row: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
) -> Comparison:
    """`compare` of two or more scorers that were cross-validated on the same folds.

    Parameters
    ----------
    y, fold, windows, repeat, row, level, sample_weight, group
        As `cross_validated_areas`.
    scores : sequence of array_like of float, each of shape (n_entries,)
        Two or more scorers.
    names, adjust
        As `compare`.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidData, InvalidParameter
        As `cross_validated_areas` and `compare`.

    Notes
    -----
    O(k n log n + k² n m) time for k scorers, n entries and m windows.
    """
    checked, level = check_windows(windows), check_level(level)
    named = check_names(names, len(scores))
    if adjust not in ADJUSTMENTS:
        raise InvalidParameter(f"adjust must be one of {ADJUSTMENTS}, got {adjust!r}")
    columns = {f"scores[{k}]": column for k, column in enumerate(scores)}
    areas = _estimate(y, columns, fold, checked, repeat, row, sample_weight, group)
    return compare_areas(areas, named, checked, level, adjust)


def _estimate(
    y: ArrayLike,
    columns: Mapping[str, ArrayLike],
    fold: ArrayLike,
    windows: Sequence[Window],
    repeat: ArrayLike | None,
    row: ArrayLike | None,
    sample_weight: ArrayLike | None,
    group: ArrayLike | None,
) -> Areas:
    """The mean areas of the folds, and what each unit adds to them."""
    rows = check_rows(y, columns, sample_weight)
    size = np.shape(y)[0]
    kept = slice(None) if sample_weight is None else np.asarray(sample_weight) > 0
    folds = number_units("fold", fold, size)[kept]
    repeats = np.zeros_like(folds) if repeat is None else number_units("repeat", repeat, size)[kept]
    name, labels = ("row", row) if group is None else ("group", group)
    if labels is not None:
        rows = rows._replace(unit=number_units(name, labels, size)[kept])
    elif repeats.any():
        raise InvalidParameter("row must say which row each entry is of, since there are repeats")
    judged = _judged_folds(rows.positive, repeats * (folds.max() + 1) + folds)
    if not judged:
        raise InvalidData("fold must name a fold with rows of both classes, got none")
    of_repeat = repeats[[entries[0] for entries in judged]]
    return _average(rows, judged, of_repeat, windows, clustered=group is not None)


def _average(
    rows: Rows,
    judged: Sequence[NDArray[np.intp]],
    of_repeat: NDArray[np.intp],
    windows: Sequence[Window],
    *,
    clustered: bool,
) -> Areas:
    """The mean of the repeats' means over their folds, and the influences on it."""
    _, repeat, n_folds = np.unique(of_repeat, return_inverse=True, return_counts=True)
    used = _take(rows, np.concatenate(judged))
    areas = np.empty((len(judged), len(rows.scores), len(windows)))
    influence = np.empty((*areas.shape[1:], used.positive.size))
    effective, start = np.zeros(2), 0
    for place, entries in enumerate(judged):
        held, end = _take(rows, entries), start + entries.size
        areas[place], phi = row_influences(held, windows)
        influence[:, :, start:end] = phi / (n_folds.size * n_folds[repeat[place]])
        effective += effective_units(held)
        start = end
    # Means of means, not sums of shares, which might round 1 to more than 1.
    values = np.mean([areas[repeat == r].mean(axis=0) for r in range(n_folds.size)], axis=0)
    mean = float(effective[0]) / n_folds.size, float(effective[1]) / n_folds.size
    n_means = len(judged) / n_folds.size
    return areas_of_units(values, influence, used, mean, n_means, clustered=clustered)


def _judged_folds(positive: NDArray[np.bool_], fold: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The entries of each fold that has rows of both classes."""
    order = np.argsort(fold, kind="stable")
    starts = np.flatnonzero(np.diff(fold[order])) + 1
    folds = np.split(order, starts)
    return [entries for entries in folds if positive[entries].any() and not positive[entries].all()]


def _take(rows: Rows, entries: NDArray[np.intp]) -> Rows:
    """The rows of one fold, their units numbered anew."""
    return Rows(
        rows.positive[entries],
        tuple(column[entries] for column in rows.scores),
        None if rows.weight is None else rows.weight[entries],
        None if rows.unit is None else np.unique(rows.unit[entries], return_inverse=True)[1],
    )
