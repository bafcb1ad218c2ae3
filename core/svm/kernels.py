"""The loops over rows in memory row by row: scores, sums of rows by the share of each, moments of columns.

Rows of finite numbers of a sane size take loops that the compiler turns into vector instructions; a row with a missing
or an enormous value takes a plainer one. Which of them a row takes follows from the row alone.
"""

import numba
import numpy as np

from core.kernel import kernel

_OUT = numba.float64[::1]
# what a caller gives may be read-only
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_ROWS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)

# Sums and products of numbers up to here, standardised, stay finite; beyond, differences are cut off at FARTHEST.
SANE = 1e300
FARTHEST = 1e308


@kernel(numba.float64(_FLOATS, _FLOATS), _nrt=False)
def sum_products(a, b):  # type: ignore[no-untyped-def]
    """Sum a · b; not by BLAS, whose sums depend on its threads."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel(numba.boolean(_FLOATS), inner=True, _nrt=False)
def _is_plain(row):  # type: ignore[no-untyped-def]
    """Whether no value is missing or beyond SANE."""
    plain = True
    for j in range(len(row)):
        plain &= abs(row[j]) <= SANE
    return plain


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _ROWS, _FLOATS, _OUT), _nrt=False)
def score_rows(X, center, reach, slope, missing, first, table, scores):  # type: ignore[no-untyped-def]
    """Score each row by what its values are worth.

    Parameters
    ----------
    X : ndarray of shape (n, p), float64
    center, reach, slope, missing : ndarray of shape (p,), float64
        A number x adds slope · (x - center), the difference cut off at ± reach; NaN adds `missing`.
    first : ndarray of shape (p,), int64
        -1 for a column of numbers. In a column of categories the category c adds table[first + c]; `reach` says how
        many there are, and what is none of them adds `missing`.
    table : ndarray, float64
    scores : ndarray of shape (n,), float64
        Receives the sums.
    """
    p = X.shape[1]
    whole = p - p % 8
    for i in range(len(X)):
        row = X[i]
        total = np.nan
        if len(table) == 0:
            a = b = c = d = e = f = g = h = 0.0  # eight sums, which one vector instruction adds to
            for j in range(0, whole, 8):
                a += (row[j] - center[j]) * slope[j]
                b += (row[j + 1] - center[j + 1]) * slope[j + 1]
                c += (row[j + 2] - center[j + 2]) * slope[j + 2]
                d += (row[j + 3] - center[j + 3]) * slope[j + 3]
                e += (row[j + 4] - center[j + 4]) * slope[j + 4]
                f += (row[j + 5] - center[j + 5]) * slope[j + 5]
                g += (row[j + 6] - center[j + 6]) * slope[j + 6]
                h += (row[j + 7] - center[j + 7]) * slope[j + 7]
            total = ((a + b) + (c + d)) + ((e + f) + (g + h))
            for j in range(whole, p):
                total += (row[j] - center[j]) * slope[j]
        if not abs(total) <= SANE:  # a category, a missing value, or the sum of numbers overflows
            total = 0.0
            for j in range(p):
                x = row[j]
                if np.isnan(x) or (first[j] >= 0 and not 0.0 <= x < reach[j]):
                    total += missing[j]
                elif first[j] >= 0:
                    total += table[first[j] + np.int64(x)]
                else:
                    total += min(max(x - center[j], -reach[j]), reach[j]) * slope[j]
        scores[i] = total


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _FLOATS, _ROWS, _OUT, _OUT, _OUT), _nrt=False)
def sum_rows(X, share, center, unit, first, sums, absent, table):  # type: ignore[no-untyped-def]
    """Sum rows, each times its share: what `score_rows` is the transpose of.

    Parameters
    ----------
    X : ndarray of shape (n, p), float64
    share : ndarray of shape (n,), float64
        A row of share 0 is not read.
    center, unit : ndarray of shape (p,), float64
    first : ndarray of shape (p,), int64
    sums, absent : ndarray of shape (p,), float64
        Added to: Σ share · (x - center) · unit over the numbers of each column, Σ share over its missing values.
    table : ndarray, float64
        Added to: Σ share by category.
    """
    p = X.shape[1]
    for i in range(len(X)):
        weight = share[i]
        if weight == 0.0:
            continue
        row = X[i]
        if len(table) == 0 and _is_plain(row):
            for j in range(p):
                sums[j] += weight * ((row[j] - center[j]) * unit[j])
            continue
        for j in range(p):
            x = row[j]
            if np.isnan(x):
                absent[j] += weight
            elif first[j] >= 0:
                table[first[j] + np.int64(x)] += weight
            else:
                sums[j] += weight * (min(max(x - center[j], -FARTHEST), FARTHEST) * unit[j])


@kernel(numba.void(_MATRIX, _FLOATS, _OUT, _OUT, _OUT, _OUT), _nrt=False)
def survey(X, weight, mass, absent, low, high):  # type: ignore[no-untyped-def]
    """Add up the weight of each column's numbers and of its missing values; find its least and greatest number."""
    p = X.shape[1]
    for i in range(len(X)):
        row, w = X[i], weight[i]
        if _is_plain(row):
            for j in range(p):
                mass[j] += w
                low[j] = min(low[j], row[j])
                high[j] = max(high[j], row[j])
            continue
        for j in range(p):
            if np.isnan(row[j]):
                absent[j] += w
            else:
                mass[j] += w
                low[j] = min(low[j], row[j])
                high[j] = max(high[j], row[j])


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _FLOATS, _OUT, numba.int64), _nrt=False)
def add_moments(X, weight, center, scale, sums, order):  # type: ignore[no-untyped-def]
    """Add up Σ weight · (½ (x - center) · scale)^order over each column's numbers; order is 1 or 2.

    Nothing overflows where 1 / scale is half the column's range.
    """
    p = X.shape[1]
    for i in range(len(X)):
        row, w = X[i], weight[i]
        plain = _is_plain(row)
        for j in range(p):
            measure = (0.5 * row[j] - 0.5 * center[j]) * scale[j]
            worth = w * (measure if order == 1 else measure * measure)
            if plain or not np.isnan(worth):
                sums[j] += worth
