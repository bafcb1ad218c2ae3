"""One column as a scorer: its AUC, quantiles and histogram in one walk through the two classes, each sorted apart.

A table has many columns, and each is asked the same: what does it hold, and how well does it rank by itself? To sort
the values of each class is quicker than to order the rows, and the merge of the two sorted lists passes every tie
group once. There each positive finds its placement value, the share of the negatives below it, and each negative the
height of the curve at its place: what DeLong's variance is made of (see `intervals`).
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.kernels import kernel
from core.metrics.groups import FloatArray
from core.metrics.intervals import Interval, share_interval

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
HISTOGRAM_BINS = 20


class ColumnSurvey(NamedTuple):
    """What a column of numbers holds, and how it ranks."""

    known: int
    """Number of values that are not missing."""
    distinct: int
    """Distinct values among them."""
    quantiles: tuple[float, ...]
    """At `QUANTILES`; empty where no value is known. Each is a value of the column: the least that so many reach."""
    edges: tuple[float, ...]
    """A histogram of equal widths from the least to the greatest value; a single bar where all are equal."""
    counts: tuple[int, ...]
    auc: Interval | None
    """Of the known values as scores of the positive class, with DeLong's interval at level 0.95; Wilson's for the
    greatest variance where the sample cannot show its own. None where a class has no known value."""


def survey_column(
    values: npt.NDArray[np.float64],
    positive: npt.NDArray[np.bool_] | None,
    *,
    scratch: npt.NDArray[np.float64] | None = None,
) -> ColumnSurvey:
    """Survey one column of float64; NaN is missing, infinite values are not allowed.

    `positive` says which rows are; None where there is no label. `scratch`, float64 of the column's length, is
    overwritten: who surveys many columns need not allocate for each. O(n log n): two sorts and a merge. Weights have no
    part in it: it describes the rows as they are.
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
    """The AUC of a score of two values, as `ColumnSurvey.auc`.

    `positives` and `negatives` are the rows with the higher score, of at least one row of either class in all. With
    shares a and b the curve has one corner, (b, a), so its area is (1 + a - b) / 2. A positive's placement value is ½
    higher with the higher score, and so is a negative's height lower: the variances are those of two shares, over 4.
    """
    a, b = positives / of_positives, negatives / of_negatives
    value = (1.0 + a - b) / 2.0
    least, variance = min(of_positives, of_negatives), None
    if least > 1:
        variance = a * (1.0 - a) / (of_positives - 1) + b * (1.0 - b) / (of_negatives - 1)
        variance /= 4.0
    return share_interval(value, variance, least, 0.95)


def _area(positives: FloatArray, negatives: FloatArray, sums: FloatArray) -> Interval | None:
    """The AUC from the sums of placement values and heights and of their squares."""
    m, n = len(positives), len(negatives)
    if not m or not n:
        return None
    value, variance = min(1.0, float(sums[0]) / m), None
    if min(m, n) > 1:
        placement = (float(sums[1]) - m * value**2) / (m - 1)
        height = (float(sums[3]) - n * value**2) / (n - 1)
        variance = placement / m + height / n
    return share_interval(value, variance, min(m, n), 0.95)


def _histogram(
    positives: FloatArray, negatives: FloatArray
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    parts = [part for part in (positives, negatives) if len(part)]
    low = min(float(part[0]) for part in parts)
    high = max(float(part[-1]) for part in parts)
    if low == high:
        return (low, high), (sum(map(len, parts)),)
    # By halves, so that a column from one end of the doubles to the other does not overflow.
    share = np.arange(HISTOGRAM_BINS + 1) / HISTOGRAM_BINS
    edges = low * (1.0 - share) + high * share
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
    """Walk through both sorted classes at once, tie group by tie group.

    Fills the quantiles, the values at the ranks (ascending), and in `sums` those of the placement values, of their
    squares, of the heights and of their squares. Returns the number of distinct values.
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
