"""The loops of `kernels` over the stored values of a sparse matrix in rows (CSR); what is not stored is 0."""

import numba
import numpy as np

from core.kernel import kernel

_OUT = numba.float64[::1]
# what a caller gives may be read-only
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INDICES = tuple(
    numba.types.Array(integer, 1, "C", readonly=True) for integer in (numba.int32, numba.int64)
)


@kernel(*[numba.void(_FLOATS, kind, kind, _FLOATS, _FLOATS, _OUT) for kind in _INDICES])
def add_sparse_scores(data, indices, starts, slope, absent, scores):  # type: ignore[no-untyped-def]
    """Add slope · x for each stored number and `absent` for each stored NaN to the row's score."""
    for i in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            x, j = data[k], indices[k]
            total += absent[j] if np.isnan(x) else x * slope[j]
        scores[i] += total


@kernel(*[numba.void(_FLOATS, kind, kind, _FLOATS, _FLOATS, _OUT, _OUT) for kind in _INDICES])
def sum_sparse_rows(data, indices, starts, share, unit, sums, absent):  # type: ignore[no-untyped-def]
    """Add share · x · unit of each stored number to its column's sum, and the share of each NaN to `absent`."""
    for i in range(len(share)):
        if share[i] == 0.0:
            continue
        for k in range(starts[i], starts[i + 1]):
            x, j = data[k], indices[k]
            if np.isnan(x):
                absent[j] += share[i]
            else:
                sums[j] += share[i] * (x * unit[j])


@kernel(*[numba.void(_FLOATS, kind, kind, _FLOATS, _OUT, _OUT, _OUT, _OUT) for kind in _INDICES])
def survey_sparse(data, indices, starts, weight, mass, absent, low, high):  # type: ignore[no-untyped-def]
    """Do over the stored values what `kernels.survey` does over all."""
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            x, j = data[k], indices[k]
            if np.isnan(x):
                absent[j] += weight[i]
            else:
                mass[j] += weight[i]
                low[j], high[j] = min(low[j], x), max(high[j], x)


@kernel(
    *[
        numba.void(_FLOATS, kind, kind, _FLOATS, _FLOATS, _FLOATS, _OUT, numba.int64)
        for kind in _INDICES
    ]
)
def add_sparse_moments(data, indices, starts, weight, center, scale, sums, order):  # type: ignore[no-untyped-def]
    """Do over the stored values what `kernels.add_moments` does over all."""
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            x, j = data[k], indices[k]
            if not np.isnan(x):
                measure = (0.5 * x - 0.5 * center[j]) * scale[j]
                sums[j] += weight[i] * (measure if order == 1 else measure * measure)
