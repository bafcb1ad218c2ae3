"""Kernels that sum histograms: weights are rounded to integer multiples of a unit, so that sums ignore row order."""

import math

import numba
import numpy as np

from core.kernels import INNER

from .coding import LANES
from .partition import find_first, prefetch
from .sampling import uniform

# The weights of a tree's rows, in units of the histogram and times the margin, sum to less than 2 to this power, and to
# half of it at least. Half a cell holds 2^31: there is room for 700 million rows that are all rounded up.
UNIT_BITS = 30

# Weights that sum to 1, or to a simple fraction, are far from a sum at which the unit changes.
UNIT_MARGIN = 0.74

# The least unit is 2 to this power, so that one divided by it is a number.
MIN_UNIT = -1000

# Rows between prefetching a row and using it, about the time that memory takes.
PREFETCH_ADD = 64


@numba.njit(**INNER)
def unit_of(total):  # type: ignore[no-untyped-def]
    """Return the unit (a power of two) to which weights with this total are rounded; see `UNIT_BITS`."""
    if not 0.0 < total < np.inf:
        return 1.0
    _, exponent = math.frexp(UNIT_MARGIN * total)
    return math.ldexp(1.0, max(exponent - UNIT_BITS, MIN_UNIT))


@numba.njit(error_model="numpy", **INNER)
def round_weights(weights, n_weights, rows, start, stop, least, scales, nearest, key, after, units):  # type: ignore[no-untyped-def]
    """Write the weights of rows[start:stop], as whole numbers of units, to `units`.

    weights: (n_rows · n_weights,) float64; rows: (n,) uint32; units: (n_rows · n_weights,) uint32: a single weight, or
    the Hessian and then the gradient in two's complement. A weight, or gradient, below `least` is raised to it, and the
    Hessian in proportion; see `sampling`. scales: two float64, 1 divided by the unit of the upper and of the lower half
    of a cell. Unless it is rounded to the nearest unit, key and the row's number in the whole table, row + after, say
    which way.
    """
    offset = 0.5
    for i in range(start, stop):
        row = np.uint64(rows[np.uint64(i)])
        if not nearest:
            offset = uniform(key, row + np.uint64(after))
        if n_weights == 1:
            units[row] = np.int64(max(weights[row], least) * scales[0] + offset)
            continue
        halves = np.uint64(2) * row
        first, second = weights[halves], weights[halves + np.uint64(1)]
        size = abs(first)
        raised = least / size if size < least else 1.0
        units[halves] = np.int64(second * raised * scales[1] + offset)
        units[halves + np.uint64(1)] = np.int64(np.floor(first * raised * scales[0] + offset))


@numba.njit(error_model="numpy", **INNER)
def round_all_weights(weights, n_weights, start, middle, stop, scales, units):  # type: ignore[no-untyped-def]
    """Write the weights of rows start to stop, rounded to the nearest unit; see `round_weights`.

    Positives come before `middle`. Without a list of rows, and with 32 bits (enough, see `UNIT_BITS`), the compiler
    vectorises it.
    """
    if n_weights == 2:
        for i in range(start, stop):
            units[2 * i] = np.int32(weights[2 * i + 1] * scales[1] + 0.5)
            units[2 * i + 1] = np.int32(np.floor(weights[2 * i] * scales[0] + 0.5))
        return
    for i in range(start, middle):
        units[i] = np.int32(weights[i] * scales[0] + 0.5)
    for i in range(middle, stop):
        units[i] = np.int32(weights[i] * scales[1] + 0.5)


@numba.njit(inline="always")
def _add_words(words, rows, units, shift, sign, start, stop, histogram, row_words, n_weights):  # type: ignore[no-untyped-def]
    """Add rows[start:stop] to a histogram; see `add_rows`. row_words and n_weights are compile-time constants."""
    last = stop - 1
    bits = np.uint64(8 * row_words)
    one_code = (np.uint64(1) << bits) - np.uint64(1)
    per_word = LANES // row_words
    for i in range(start, stop):
        prefetched = np.int64(rows[np.uint64(min(i + PREFETCH_ADD, last))])
        prefetch(words, prefetched * row_words)
        prefetch(units, prefetched * n_weights)
        row = np.uint64(rows[np.uint64(i)])
        if n_weights == 1:
            added = np.int64(units[row]) << shift
        else:
            halves = np.uint64(2) * row
            added = np.int64(units[halves]) | (np.int64(units[halves + np.uint64(1)]) << 32)
        added *= sign
        for q in range(row_words):
            word = words[row * np.uint64(row_words) + np.uint64(q)]
            for k in range(per_word):
                code = (word >> (bits * np.uint64(k))) & one_code
                histogram[code * np.uint64(LANES) + np.uint64(per_word * q + k)] += added


@numba.njit(**INNER)
def add_rows(words, row_words, rows, units, n_weights, sign, n_positives, start, stop, histogram):  # type: ignore[no-untyped-def]
    """Write the histogram of rows[start:stop] in a column group; or subtract these rows from it, if sign is -1.

    words: uint64, the group's codes, row_words (1 or 2) per row; rows: (n,) uint32, those below n_positives first;
    units: (n_rows · n_weights,) uint32, see `round_weights`; histogram: (8 · n_codes,) int64. A single weight is added
    to the half of the row's class: the upper one for rows below n_positives.
    """
    if sign > 0:
        for cell in range(len(histogram)):
            histogram[cell] = 0
    if n_weights == 2:
        # With constants for the numbers of words and weights the compiler unrolls all additions of a row.
        if row_words == 1:
            _add_words(words, rows, units, 0, sign, start, stop, histogram, 1, 2)
        else:
            _add_words(words, rows, units, 0, sign, start, stop, histogram, 2, 2)
        return
    middle = find_first(rows, start, stop, n_positives)
    for half in range(2):
        first, last = (start, middle) if half == 0 else (middle, stop)
        shift = 32 if half == 0 else 0
        if row_words == 1:
            _add_words(words, rows, units, shift, sign, first, last, histogram, 1, 1)
        else:
            _add_words(words, rows, units, shift, sign, first, last, histogram, 2, 1)
