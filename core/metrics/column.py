"""Statistics of one column: its quantiles, its histogram, and its AUC as a score.

The values of each class are sorted apart, which is quicker than an argsort of the rows, and merged in one pass over the
tie groups. The pass sums the placement values of the positives (the fraction of negatives below) and the heights of the
curve at the negatives, from which DeLong's variance follows (see `intervals`).
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.kernels import kernel
from core.metrics.estimates import Interval, proportion_interval
from core.metrics.groups import FloatArray

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
HISTOGRAM_BINS = 20


class ColumnSurvey(NamedTuple):
    """The quantiles, histogram and AUC of a numeric column."""

    known: int
    """Number of values that are not missing."""
    distinct: int
    """Number of distinct values among them."""
    quantiles: tuple[float, ...]
    """At `QUANTILES`, each the value of rank ⌈q · known⌉; empty if no value is known."""
    edges: tuple[float, ...]
    """Edges of a histogram of bars of equal width from the least to the greatest value; one bar if all are equal."""
    counts: tuple[int, ...]
    """Number of values in each bar."""
    auc: Interval | None
    """Of the known values as scores, with DeLong's interval at level 0.95, or Wilson's for the greatest variance if the
    sample does not show its own. None if a class has no known value."""


def survey_column(
    values: npt.NDArray[np.float64],
    positive: npt.NDArray[np.bool_] | None,
    *,
    scratch: npt.NDArray[np.float64] | None = None,
) -> ColumnSurvey:
    """Return the quantiles, histogram and AUC of one column of unweighted rows. O(n log n): two sorts and a merge.

    values: (n_rows,), float64; NaN is missing; finite otherwise.
    positive: (n_rows,), bool, or None; which rows are positive; None if there is no label.
    scratch: (n_rows,), float64; overwritten; saves an allocation for each of many columns.
    """
    scratch = np.empty(len(values)) if scratch is None else scratch
    known = ~np.isnan(values)
    total = int(np.count_nonzero(known))
    labels = np.zeros(len(values), dtype=np.bool_) if positive is None else positive
    parts = (known & labels, known & ~labels)
    m = int(np.count_nonzero(parts[0]))
    positives, negatives = scratch[:m], scratch[m:total]
    for mask, part in zip(parts, (positives, negatives), strict=True):
        np.compress(mask, values, out=part)
        part.sort()
    if not total:
        return ColumnSurvey(0, 0, (), (), (), None)
    ranks = np.maximum(np.ceil(np.array(QUANTILES) * total).astype(np.int64) - 1, 0)
    quantiles, sums = np.empty(len(QUANTILES)), np.zeros(4)
    distinct = _merge(positives, negatives, ranks, quantiles, sums)
    edges, counts = _histogram(positives, negatives)
    return ColumnSurvey(
        total, distinct, tuple(quantiles.tolist()), edges, counts, _area(positives, negatives, sums)
    )


def binary_auc(positives: int, of_positives: int, negatives: int, of_negatives: int) -> Interval:
    """Return the AUC of a two-valued score with its interval, from counts per class.

    `positives` of `of_positives` and `negatives` of `of_negatives` rows have the higher score; there is at least one
    row of each class. With the fractions a and b of them the curve has one corner, (b, a), so its area is
    (1 + a - b) / 2. The higher score raises a positive's placement value by ½, and lowers a negative's height by ½: the
    variances are those of two proportions, divided by 4.
    """
    a, b = positives / of_positives, negatives / of_negatives
    value = (1.0 + a - b) / 2.0
    least, variance = min(of_positives, of_negatives), None
    if least > 1:
        variance = a * (1.0 - a) / (of_positives - 1) + b * (1.0 - b) / (of_negatives - 1)
        variance /= 4.0
    classes = float(of_positives), float(of_negatives)
    return proportion_interval(value, variance, least, 0.95, classes=classes)


def _area(positives: FloatArray, negatives: FloatArray, sums: FloatArray) -> Interval | None:
    m, n = len(positives), len(negatives)
    if not m or not n:
        return None
    value, variance = min(1.0, float(sums[0]) / m), None
    if min(m, n) > 1:
        placement = (float(sums[1]) - m * value**2) / (m - 1)
        height = (float(sums[3]) - n * value**2) / (n - 1)
        variance = placement / m + height / n
    return proportion_interval(value, variance, min(m, n), 0.95, classes=(float(m), float(n)))


def _histogram(
    positives: FloatArray, negatives: FloatArray
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    parts = [part for part in (positives, negatives) if len(part)]
    low = min(float(part[0]) for part in parts)
    high = max(float(part[-1]) for part in parts)
    if low == high:
        return (low, high), (sum(map(len, parts)),)
    # By halves, so that a column from one end of the doubles to the other does not overflow.
    fraction = np.arange(HISTOGRAM_BINS + 1) / HISTOGRAM_BINS
    edges = low * (1.0 - fraction) + high * fraction
    inner = sum(np.searchsorted(part, edges[1:-1], side="left") for part in parts)
    counts = np.diff(np.concatenate(([0], inner, [sum(map(len, parts))])))
    return tuple(edges.tolist()), tuple(counts.tolist())


@kernel(
    numba.int64(
        numba.float64[::1],
        numba.float64[::1],
        numba.int64[::1],
        numba.float64[::1],
        numba.float64[::1],
    )
)
def _merge(positives, negatives, ranks, quantiles, sums):  # type: ignore[no-untyped-def]
    """Merge both sorted classes in one pass over tie groups; write the statistics, return the number of values.

    ranks: ascending, counted from 0; quantiles: receives the value at each rank; sums: the placement values, their
    squares, the heights and their squares are added.
    """
    m, n = len(positives), len(negatives)
    i = j = distinct = wanted = 0
    while i < m or j < n:
        from_positives = j == n or (i < m and positives[i] <= negatives[j])
        value = positives[i] if from_positives else negatives[j]
        first_i, first_j = i, j
        while i < m and positives[i] == value:
            i += 1
        while j < n and negatives[j] == value:
            j += 1
        distinct += 1
        while wanted < len(ranks) and ranks[wanted] < i + j:
            quantiles[wanted] = value
            wanted += 1
        if m and n:
            placement = 0.5 * (first_j + j) / n
            height = (m - 0.5 * (first_i + i)) / m
            sums[0] += (i - first_i) * placement
            sums[1] += (i - first_i) * placement**2
            sums[2] += (j - first_j) * height
            sums[3] += (j - first_j) * height**2
    return distinct
