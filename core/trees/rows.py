"""The rows of a leaf are added to its histogram, a run of them at a time."""

import numba
import numpy as np

from core.coding.by_row import COLUMNS, prefetch
from core.coding.rows import AHEAD_OF_ADDING, add_codes
from core.kernel import kernel


@numba.njit(inline="always")
def _add_rows(words, rows, weights, sizes, least, start, stop, n_words, per_word, histogram):  # type: ignore[no-untyped-def]
    last = stop - 1
    row_words = COLUMNS // per_word
    for i in range(start, stop):
        ahead = np.int64(rows[np.uint64(min(i + AHEAD_OF_ADDING, last))])
        prefetch(words, ahead * row_words)
        prefetch(weights, ahead)
        row = np.uint64(rows[np.uint64(i)])
        size = abs(sizes[row])
        weight = weights[row] * (least / size if size < least else 1.0)
        add_codes(words, row, weight, n_words, per_word, histogram)


@kernel(
    numba.void(
        numba.uint64[::1],
        numba.int64,
        numba.uint32[::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.float64,
        numba.int64,
        numba.int64,
        numba.int64,
        numba.float64[::1],
    ),
    inner=True,
    error_model="numpy",
)
def add_rows(words, per_word, rows, weights, sizes, least, start, stop, n_words, histogram):  # type: ignore[no-untyped-def]
    """Add the weights of rows[start:stop] to histogram[code * 32 + column] of a block.

    The weights of a row whose size is below the least grow as its size would to reach it.
    """
    # With constants for the numbers of words the compiler unrolls all additions of a row.
    if per_word == 4:
        _add_rows(words, rows, weights, sizes, least, start, stop, n_words, 4, histogram)
    elif n_words == 4:
        _add_rows(words, rows, weights, sizes, least, start, stop, 4, 8, histogram)
    elif n_words == 3:
        _add_rows(words, rows, weights, sizes, least, start, stop, 3, 8, histogram)
    elif n_words == 2:
        _add_rows(words, rows, weights, sizes, least, start, stop, 2, 8, histogram)
    else:
        _add_rows(words, rows, weights, sizes, least, start, stop, 1, 8, histogram)
