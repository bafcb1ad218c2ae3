"""The loops of `kernels` over the stored values of a sparse matrix in rows (CSR); what is not stored is 0."""

from typing import Any

import numba
import numpy as np

from core.kernel import kernel

_OUT = numba.float64[::1]
# what a caller gives may be read-only
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INDICES = numba.types.Array(numba.int32, 1, "C", readonly=True)
_STARTS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_STORED = (_FLOATS, _INDICES, _STARTS)


def stored(X: Any) -> tuple[Any, Any, Any]:
    """Give a CSR matrix's data, columns as int32, and where rows start as int64: SciPy has both in either width."""
    return X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)


@kernel(numba.void(*_STORED, _FLOATS, _FLOATS, _OUT), _nrt=False)
def add_sparse_scores(data, indices, starts, slope, absent, scores):  # type: ignore[no-untyped-def]
    """Add slope · x for each stored number and `absent` for each stored NaN to the row's score."""
    for i in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            x, j = data[k], indices[k]
            total += absent[j] if np.isnan(x) else x * slope[j]
        scores[i] += total


@kernel(numba.void(*_STORED, _FLOATS, _FLOATS, _OUT, _OUT), _nrt=False)
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


@kernel(numba.void(*_STORED, _FLOATS, _OUT, _OUT, _OUT, _OUT), _nrt=False)
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


@kernel(numba.void(*_STORED, _FLOATS, _FLOATS, _FLOATS, _OUT, numba.int64), _nrt=False)
def add_sparse_moments(data, indices, starts, weight, center, scale, sums, order):  # type: ignore[no-untyped-def]
    """Do over the stored values what `kernels.add_moments` does over all."""
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            x, j = data[k], indices[k]
            if not np.isnan(x):
                measure = (0.5 * x - 0.5 * center[j]) * scale[j]
                sums[j] += weight[i] * (measure if order == 1 else measure * measure)
