"""The loops over rows of the feature maps. A row's features do not depend on the rows beside it."""

import math

import numba
import numpy as np

from core.kernel import kernel
from core.svm.kernels import FARTHEST

_OUT = numba.float64[::1]
_OUT_2 = numba.float64[:, ::1]
_CODES = numba.types.Array(numba.uint8, 2, "C", readonly=True)
# what a caller gives may be read-only
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INTS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)

# A coordinate is cut off here, so that no sum of squares or products is infinite.
FAR = 1e100


@kernel(numba.float64(numba.float64, numba.float64, numba.float64), inner=True)
def _coordinate(x, center, unit):  # type: ignore[no-untyped-def]
    return min(max(min(max(x - center, -FARTHEST), FARTHEST) * unit, -FAR), FAR)


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _INTS, _INTS, _MATRIX, _OUT_2))
def fill_waves(X, center, unit, first, gap, frequencies, out):  # type: ignore[no-untyped-def]
    """Write the cosine and the sine of each row along each frequency, divided by √K.

    Parameters
    ----------
    X : ndarray of shape (n, p), float64
    center, unit : ndarray of shape (p,), float64
        The number x is the coordinate (x - center) · unit. Of a column of categories unit is their number: what is
        none of them counts as missing.
    first, gap : ndarray of shape (p,), int64
        Places of the coordinates of a column's categories and of its missing values; -1: none.
    frequencies : ndarray of shape (n_coordinates, K), float64
        Numbers have the first p places.
    out : ndarray of shape (n, 2K), float64
    """
    n_waves = frequencies.shape[1]
    angles = np.empty(n_waves)
    size = 1.0 / math.sqrt(n_waves)
    for i in range(len(X)):
        angles[:] = 0.0
        for j in range(X.shape[1]):
            x, place, times = X[i, j], j, 1.0
            if np.isnan(x) or (first[j] >= 0 and not 0.0 <= x < unit[j]):
                place = gap[j]
            elif first[j] >= 0:
                place = first[j] + np.int64(x)
            else:
                times = _coordinate(x, center[j], unit[j])
            if place < 0:
                continue
            along = frequencies[place]
            for k in range(n_waves):
                angles[k] += times * along[k]
        for k in range(n_waves):
            out[i, k] = size * math.cos(angles[k])
            out[i, n_waves + k] = size * math.sin(angles[k])


@kernel(
    numba.void(_MATRIX, _FLOATS, _FLOATS, _INTS, _FLOATS, _MATRIX, _MATRIX, numba.float64, _OUT_2)
)
def fill_squares(X, center, unit, n_categories, counts, points, gaps, bandwidth, out):  # type: ignore[no-untyped-def]
    """Write the squared distance of each row to each of some points, or its exp(-square / 2 bandwidth²).

    Parameters
    ----------
    X : ndarray of shape (n, p), float64
    center, unit : ndarray of shape (p,), float64
        The number x is the coordinate (x - center) · unit.
    n_categories : ndarray of shape (p,), int64
        0 for a column of numbers. What is none of a column's categories counts as missing.
    counts : ndarray of shape (p,), float64
        1 where missing values have a coordinate of their own, else 0.
    points : ndarray of shape (p, D), float64
        A point's coordinate, 0 where it is missing; of a column of categories the category, -1 where it is missing.
    gaps : ndarray of shape (p, D), float64
        1 where the point's value is missing, else 0.
    bandwidth : float
        Infinite for the squares themselves.
    out : ndarray of shape (n, D), float64
    """
    n_points = points.shape[1]
    for i in range(len(X)):
        squares = out[i]
        squares[:] = 0.0
        for j in range(X.shape[1]):
            there, at, gap = not np.isnan(X[i, j]), points[j], gaps[j]
            if n_categories[j] > 0:
                there = 0.0 <= X[i, j] < n_categories[j]
                x = X[i, j] if there else -1.0
                own = 1.0 if there else counts[j]
                for d in range(n_points):
                    if x != at[d]:
                        squares[d] += own + (counts[j] if gap[d] == 1.0 else 1.0)
                continue
            x = _coordinate(X[i, j], center[j], unit[j]) if there else 0.0
            for d in range(n_points):
                squares[d] += (x - at[d]) * (x - at[d])
            if counts[j] == 1.0:
                missing = 0.0 if there else 1.0
                for d in range(n_points):
                    squares[d] += (missing - gap[d]) * (missing - gap[d])
        if bandwidth < np.inf:
            factor = -0.5 / (bandwidth * bandwidth)
            for d in range(n_points):
                squares[d] = math.exp(factor * squares[d])


@kernel(numba.void(_CODES, _INTS, _FLOATS, _OUT))
def score_codes(codes, first, worth, scores):  # type: ignore[no-untyped-def]
    """Add worth[first + code] of each column to each row's score; codes are column by column."""
    for j in range(len(codes)):
        for i in range(len(scores)):
            scores[i] += worth[first[j] + np.int64(codes[j, i])]


@kernel(numba.void(_CODES, _INTS, _FLOATS, _INTS, _OUT))
def sum_codes(codes, rows, share, first, sums):  # type: ignore[no-untyped-def]
    """Add the share of each of some rows to the sum of each of its codes."""
    for j in range(len(codes)):
        for i in rows:
            sums[first[j] + np.int64(codes[j, i])] += share[i]
