"""Lists of rows: of a class, and of a leaf, whose codes are added up and which a cut divides.

Kernels work on one run of rows. Runs are cut at fixed places, and what they give is combined in their
order, so that no figure depends on how many threads share them out.
"""

import numba
import numpy as np
import numpy.typing as npt

from core.kernel import kernel

from .by_row import COLUMNS, prefetch

# Rows between asking for a row and using it: about the time that memory takes. Adding a row takes
# thirty times as long as dividing one off.
AHEAD_OF_ADDING = 24
AHEAD_OF_DIVIDING = 256

_COLUMNS = np.uint64(COLUMNS)


def positives_first(positive: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.uint32], int]:
    """List the rows of the positives, then those of the others; return how many are positive."""
    rows, n_positives = np.empty(len(positive), dtype=np.uint32), int(np.count_nonzero(positive))
    rows[:n_positives] = np.flatnonzero(positive)
    rows[n_positives:] = np.flatnonzero(~positive)
    return rows, n_positives


def take_weights(
    weight: npt.NDArray[np.float64], rows: npt.NDArray[np.uint32]
) -> npt.NDArray[np.float64]:
    """Give the weights of rows; where all weigh the same, a view of one number, without memory."""
    if (weight != weight[0]).any():
        return np.asarray(weight[rows])
    return np.broadcast_to(weight[0], len(rows))


@numba.njit(inline="always")
def add_codes(words, row, weight, n_words, per_word, histogram):  # type: ignore[no-untyped-def]
    """Add a row's weight to histogram[code * 32 + column] of a block; n_words are in use of the row.

    With constants for n_words and per_word the compiler unrolls all additions.
    """
    bits = np.uint64(64 // per_word)
    one_code = (np.uint64(1) << bits) - np.uint64(1)
    row_words = np.uint64(COLUMNS // per_word)
    for q in range(n_words):
        word = words[row * row_words + np.uint64(q)]
        for k in range(per_word):
            code = (word >> (bits * np.uint64(k))) & one_code
            histogram[code * _COLUMNS + np.uint64(per_word * q + k)] += weight


@kernel(
    numba.int64(
        numba.uint64[::1],
        numba.int64,
        numba.int64,
        numba.uint8[::1],
        numba.int64,
        numba.int64,
        numba.uint32[::1],
        numba.uint32[::1],
    ),
    inner=True,
)
def divide_rows(words, per_word, column, above, start, stop, rows, divided):  # type: ignore[no-untyped-def]
    """Divide rows[start:stop] by the codes of a column of a block; return how many lie above.

    `above` holds a 1 for each code above, a 0 for the others. Rows above go to the front of
    divided[start:stop] in their order, the others to its back in reverse.
    """
    row_words = np.uint64(COLUMNS // per_word)
    bits = np.uint64(64 // per_word)
    one_code = (np.uint64(1) << bits) - np.uint64(1)
    at = np.uint64(column // per_word)
    shift = bits * np.uint64(column % per_word)
    low = np.uint64(start)
    high = np.uint64(stop - 1)
    last = stop - 1
    for i in range(start, stop):
        ahead = np.int64(rows[np.uint64(min(i + AHEAD_OF_DIVIDING, last))])
        prefetch(words, ahead * np.int64(row_words) + np.int64(at))
        row = rows[np.uint64(i)]
        # written to both ends, one of which is written again: no branch to mispredict
        divided[low] = row
        divided[high] = row
        code = (words[np.uint64(row) * row_words + at] >> shift) & one_code
        is_above = np.uint64(above[code])
        low += is_above
        high -= np.uint64(1) - is_above
    return np.int64(low) - start


@kernel(
    numba.void(
        numba.uint32[::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.uint32[::1],
        numba.int64,
        numba.int64,
    ),
    inner=True,
)
def gather_rows(divided, start, middle, stop, rows, above, below):  # type: ignore[no-untyped-def]
    """Copy divided[start:middle] to rows[above:] and divided[middle:stop], reversed, to rows[below:]."""
    for i in range(middle - start):
        rows[np.uint64(above + i)] = divided[np.uint64(start + i)]
    for i in range(stop - middle):
        rows[np.uint64(below + i)] = divided[np.uint64(stop - 1 - i)]
