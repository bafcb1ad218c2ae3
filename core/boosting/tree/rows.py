"""Kernels over the rows of a leaf: add them to a histogram, divide them by a cut.

Each works on one run of rows. Runs are cut at fixed places, and what they give is combined in their
order, so that no figure depends on how many threads share them out.
"""

import numba
import numpy as np

from .layout import COLUMNS, WORDS, prefetch

AHEAD = 24  # rows between asking for a row and using it: about the time that memory takes

_COLUMNS = np.uint64(COLUMNS)
_WORDS = np.uint64(WORDS)
_ONE_CODE = np.uint64(255)


@numba.njit(inline="always")
def _add_rows(words, rows, weights, start, stop, n_words, histogram):  # type: ignore[no-untyped-def]
    last = stop - 1
    for i in range(start, stop):
        ahead = np.int64(rows[np.uint64(min(i + AHEAD, last))])
        prefetch(words, ahead * WORDS)
        prefetch(weights, ahead)
        row = np.uint64(rows[np.uint64(i)])
        weight = weights[row]
        for q in range(n_words):
            word = words[row * _WORDS + np.uint64(q)]
            for k in range(8):
                code = (word >> np.uint64(8 * k)) & _ONE_CODE
                histogram[code * _COLUMNS + np.uint64(8 * q + k)] += weight


@numba.njit(
    numba.void(
        numba.uint64[::1],
        numba.uint32[::1],
        numba.float64[::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.float64[::1],
    ),
    nogil=True,
    cache=True,
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


@numba.njit(
    numba.int64(
        numba.uint8[::1],
        numba.uint8,
        numba.uint8,
        numba.int64,
        numba.int64,
        numba.uint32[::1],
        numba.uint32[::1],
    ),
    nogil=True,
    cache=True,
)
def divide_rows(column, first, width, start, stop, rows, divided):  # type: ignore[no-untyped-def]
    """Divide rows[start:stop] by a cut; return how many lie above it.

    Those whose code is within `width` of `first`, modulo 256, go to the front of
    divided[start:stop] in their order, the others to its back in reverse.
    """
    low = np.uint64(start)
    high = np.uint64(stop - 1)
    for i in range(start, stop):
        row = rows[np.uint64(i)]
        # written to both ends, one of which is written again: no branch to mispredict
        divided[low] = row
        divided[high] = row
        above = np.uint64(np.uint8(column[np.uint64(row)] - first) <= width)
        low += above
        high -= np.uint64(1) - above
    return np.int64(low) - start


@numba.njit(
    numba.void(
        numba.uint32[::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.uint32[::1],
        numba.int64,
        numba.int64,
    ),
    nogil=True,
    cache=True,
)
def gather_rows(divided, start, middle, stop, rows, above, below):  # type: ignore[no-untyped-def]
    """Copy divided[start:middle] to rows[above:] and divided[middle:stop], reversed, to rows[below:]."""
    for i in range(middle - start):
        rows[np.uint64(above + i)] = divided[np.uint64(start + i)]
    for i in range(stop - middle):
        rows[np.uint64(below + i)] = divided[np.uint64(stop - 1 - i)]
