"""Kernels over the rows of a leaf: add them to a histogram, divide them by a cut.

Each works on one run of rows. Runs are cut at fixed places, and what they give is combined in their
order, so that no figure depends on how many threads share them out.
"""

import numba
import numpy as np

from core.scan.by_row import COLUMNS, WORDS, prefetch

AHEAD = 24  # rows between asking for a row and using it: about the time that memory takes

_COLUMNS = np.uint64(COLUMNS)
_WORDS = np.uint64(WORDS)
_ONE_CODE = np.uint64(255)


@numba.njit(inline="always")
def _add_rows(words, rows, weights, start, stop, n_words, histogram):  # type: ignore[no-untyped-def]
    last = stop - 1
    weighted = len(weights) > 0
    for i in range(start, stop):
        ahead = np.int64(rows[np.uint64(min(i + AHEAD, last))])
        prefetch(words, ahead * WORDS)
        row = np.uint64(rows[np.uint64(i)])
        weight = 1.0
        if weighted:
            prefetch(weights, ahead)
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
        numba.uint64[::1],
        numba.int64,
        numba.uint8[::1],
        numba.int64,
        numba.int64,
        numba.uint32[::1],
        numba.uint32[::1],
    ),
    nogil=True,
    cache=True,
)
def divide_rows(words, column, above, start, stop, rows, divided):  # type: ignore[no-untyped-def]
    """Divide rows[start:stop] by a column's code; return how many lie above.

    Those with above[code] = 1 go to the front of divided[start:stop] in their order, the others to
    its back in reverse.
    """
    low = np.uint64(start)
    high = np.uint64(stop - 1)
    last = stop - 1
    at, shift = np.uint64(column // 8), np.uint64(8 * (column % 8))
    for i in range(start, stop):
        prefetch(words, np.int64(rows[np.uint64(min(i + AHEAD, last))]) * WORDS)
        row = rows[np.uint64(i)]
        code = (words[np.uint64(row) * _WORDS + at] >> shift) & _ONE_CODE
        # written to both ends, one of which is written again: no branch to mispredict
        divided[low] = row
        divided[high] = row
        is_above = np.uint64(above[code])
        low += is_above
        high -= np.uint64(1) - is_above
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


@numba.njit(
    numba.float64(numba.uint32[::1], numba.float64[::1], numba.int64, numba.int64),
    nogil=True,
    cache=True,
)
def sum_rows(rows, weights, start, stop):  # type: ignore[no-untyped-def]
    """Add up the weights of rows[start:stop], in order."""
    if len(weights) == 0:
        return float(stop - start)
    total = 0.0
    for i in range(start, stop):
        total += weights[np.uint64(rows[np.uint64(i)])]
    return total
