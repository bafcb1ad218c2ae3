"""The rows of a leaf are added to its histogram, or summed up, a run of them at a time."""

import numba
import numpy as np

from core.coding.by_row import NARROW, WORDS, prefetch
from core.coding.rows import AHEAD_OF_ADDING, add_codes
from core.kernel import kernel


@numba.njit(inline="always")
def _add_rows(words, rows, weights, start, stop, n_words, histogram):  # type: ignore[no-untyped-def]
    last = stop - 1
    weighted = len(weights) > 0
    for i in range(start, stop):
        ahead = np.int64(rows[np.uint64(min(i + AHEAD_OF_ADDING, last))])
        prefetch(words, ahead * WORDS)
        row = np.uint64(rows[np.uint64(i)])
        weight = 1.0
        if weighted:
            prefetch(weights, ahead)
            weight = weights[row]
        add_codes(words, row, weight, n_words, NARROW, histogram)


@kernel(
    numba.void(
        numba.uint64[::1],
        numba.uint32[::1],
        numba.float64[::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.float64[::1],
    ),
    inner=True,
    _nrt=False,
)
def add_rows(words, rows, weights, start, stop, n_words, histogram):  # type: ignore[no-untyped-def]
    """Add the weights of rows[start:stop] to histogram[code * 32 + column] of a block."""
    # With a constant for the number of words the compiler unrolls all 32 additions of a row.
    if n_words == 4:
        _add_rows(words, rows, weights, start, stop, 4, histogram)
    elif n_words == 3:
        _add_rows(words, rows, weights, start, stop, 3, histogram)
    elif n_words == 2:
        _add_rows(words, rows, weights, start, stop, 2, histogram)
    else:
        _add_rows(words, rows, weights, start, stop, 1, histogram)


@kernel(
    numba.float64(numba.uint32[::1], numba.float64[::1], numba.int64, numba.int64),
    inner=True,
    _nrt=False,
)
def sum_rows(rows, weights, start, stop):  # type: ignore[no-untyped-def]
    """Add up the weights of rows[start:stop], in order."""
    if len(weights) == 0:
        return float(stop - start)
    total = 0.0
    for i in range(start, stop):
        total += weights[np.uint64(rows[np.uint64(i)])]
    return total
