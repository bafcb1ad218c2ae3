"""Kernels over an explicit list of pairs: what each cut orders rightly and wrongly.

A pair whose better item has code a and whose worse one has code b is ordered rightly by the cuts
b <= c < a, wrongly by a <= c < b: an interval of cuts either way. So a pair is two entries, at its
lower and its upper end, of an array of differences over the bins, and running sums of that array
give d+ and d- of every cut: O(pairs) for a feature, whatever the number of cuts.

The missing have no place in that order. Pairs with one missing item are kept apart, by the code of
the other: with the missing above all values such a pair is ordered rightly or wrongly from that
code on, with the missing below up to it.
"""

import math

import numba
import numpy as np
import numpy.typing as npt

from core.coding import WIDTHS, Codes, slot
from core.coding.team import shared_team, take
from core.kernel import kernel

Rows = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]

# Codes of the width that a call has no use for.
_NO_NARROW, _NO_WIDE = np.empty((0, 0), dtype=np.uint8), np.empty((0, 0), dtype=np.uint16)


def fill_masses(
    codes: Codes,
    better: Rows,
    worse: Rows,
    weights: Floats,
    n_bins: npt.NDArray[np.int64],
    masses: Floats,
) -> None:
    """Add up what every cut of every feature orders rightly and wrongly.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_items), uint8 or uint16, C-contiguous
    better, worse : ndarray of shape (n_pairs,), uint32
        Items.
    weights : ndarray of shape (n_pairs,), float64
    n_bins : ndarray of shape (n_features,), int64
    masses : ndarray of shape (n_features, 2, 2, n_slots), float64
        Overwritten: [feature, missing above?, wrongly?, cut + 1]. Running sums of differences
        leave some 1e-16 of the total where nothing is.

    Notes
    -----
    O(n_features · n_pairs). A feature is summed by one thread in the order of the pairs, so the
    result is the same for any number of threads.
    """
    is_narrow = codes.dtype == np.uint8
    by_width = (codes, _NO_WIDE) if is_narrow else (_NO_NARROW, codes)
    arguments = (*by_width, better, worse, weights, n_bins, masses)
    shared_team(len(codes) * len(better)).deal(_fill_features, len(codes), *arguments)


@kernel(
    *[
        numba.void(
            code[::1],
            numba.uint32[::1],
            numba.uint32[::1],
            numba.float64[::1],
            numba.float64[:, ::1],
        )
        for code in WIDTHS
    ],
    inner=True,
)
def _add_differences(column, better, worse, weights, differences):  # type: ignore[no-untyped-def]
    """Enter each pair at both ends of its interval of cuts.

    Rows 0 and 1 of `differences` hold pairs of two known items, whose better one has the greater
    code (0) or the lesser (1). Rows 2 and 3 hold, at the code of the known item, the weight of
    pairs whose better (2) or worse (3) one is missing; their entries in the last slot mean nothing.
    """
    last = np.uint64(differences.shape[1] - 1)
    for row in range(4):
        for code in range(differences.shape[1]):
            differences[row, code] = 0.0
    for p in range(len(better)):
        a = slot(column[better[p]], last)
        b = slot(column[worse[p]], last)
        wrong = a < b
        low = a if wrong else b
        high = b if wrong else a
        row = (1 if wrong else 0) + (2 if high == last else 0)
        weight = weights[p] if low != high else 0.0
        differences[row, low] += weight
        differences[row, high] -= weight


_FILL = (
    numba.uint8[:, ::1],
    numba.uint16[:, ::1],
    numba.uint32[::1],
    numba.uint32[::1],
    numba.float64[::1],
    numba.int64[::1],
    numba.float64[:, :, :, ::1],
)


@kernel(numba.void(numba.int64[::1], numba.int64, *_FILL))
def _fill_features(queue, n, narrow, wide, better, worse, weights, n_bins, masses):  # type: ignore[no-untyped-def]
    """Fill the masses of features from the queue, from the codes of either width.

    d+ and d- of the cuts -1 to n_bins - 2 go to masses[feature, missing above?, wrongly?, cut + 1].
    """
    differences = np.empty((4, masses.shape[3]))
    j = take(queue)
    while j < n:
        if len(narrow) > 0:
            _add_differences(narrow[j], better, worse, weights, differences)
        else:
            _add_differences(wide[j], better, worse, weights, differences)
        right = wrong = better_missing = worse_missing = 0.0
        for k in range(n_bins[j]):  # sums over the codes below k, which is all up to the cut k - 1
            masses[j, 0, 0, k] = masses[j, 1, 0, k] = right
            masses[j, 0, 1, k] = masses[j, 1, 1, k] = wrong
            masses[j, 1, 0, k] += better_missing
            masses[j, 1, 1, k] += worse_missing
            right += differences[0, k]
            wrong += differences[1, k]
            better_missing += differences[2, k]
            worse_missing += differences[3, k]
        better_missing = worse_missing = 0.0
        for k in range(n_bins[j] - 1, -1, -1):  # sums over the codes from k on
            better_missing += differences[2, k]
            worse_missing += differences[3, k]
            masses[j, 0, 0, k] += worse_missing
            masses[j, 0, 1, k] += better_missing
        j = take(queue)


_SIDES = (
    numba.uint8[::1],
    numba.uint32[::1],
    numba.uint32[::1],
    numba.float64[::1],
    numba.uint8,
    numba.uint8,
)


@kernel(numba.types.UniTuple(numba.float64, 4)(*_SIDES))
def sum_pairs(column, better, worse, weights, first, width):  # type: ignore[no-untyped-def]
    """Sum the weights of pairs by where they stand to an interval of codes, each from its own.

    Returns the weight of pairs with the better item alone inside, with the worse alone inside,
    with both inside and with neither.
    """
    right = wrong = inside = outside = 0.0
    for p in range(len(better)):
        a = column.dtype.type(column[better[p]] - first) <= width
        b = column.dtype.type(column[worse[p]] - first) <= width
        weight = weights[p]
        if a and b:
            inside += weight
        elif a:
            right += weight
        elif b:
            wrong += weight
        else:
            outside += weight
    return right, wrong, inside, outside


@kernel(numba.void(*_SIDES, numba.types.UniTuple(numba.float64, 3)))
def rescale_pairs(column, better, worse, weights, first, width, factors):  # type: ignore[no-untyped-def]
    """Multiply the weights of pairs with the better item alone inside, the worse alone, or else."""
    right, wrong, tied = factors
    for p in range(len(better)):
        a = column.dtype.type(column[better[p]] - first) <= width
        b = column.dtype.type(column[worse[p]] - first) <= width
        weights[p] *= tied if a == b else (right if a else wrong)


@kernel(
    numba.types.Tuple((numba.int64, numba.int64, numba.boolean, numba.float64))(
        numba.float64[:, :, :, ::1],
        numba.boolean[:, :, :, ::1],
        numba.int64[::1],
        numba.boolean[::1],
        numba.int64,
        numba.float64,
    )
)
def find_best(masses, possible, n_bins, has_missing, criterion, tie):  # type: ignore[no-untyped-def]
    """Find the best cut of all features: feature (-1 for none), cut, missing above?, gain.

    A gain is as `core.coding.Criterion` defines it.
    `possible` tells where there is any pair to be ordered rightly or wrongly. Of those within a
    share `tie` of the best, the lowest feature is taken, then the lowest cut, then missing below.
    """
    gains = np.empty((len(n_bins), 2, masses.shape[3]))
    best = 0.0
    for j in range(len(n_bins)):
        for side in range(2 if has_missing[j] else 1):
            for k in range(n_bins[j]):
                plus = max(masses[j, side, 0, k], 0.0) if possible[j, side, 0, k] else 0.0
                minus = max(masses[j, side, 1, k], 0.0) if possible[j, side, 1, k] else 0.0
                if criterion == 0:
                    gain = abs(plus - minus)
                else:
                    # (√d+ - √d-)² by the difference that is known exactly; the tiny term spares 0/0.
                    root = plus + minus + 2.0 * math.sqrt(plus * minus) + 1e-300
                    gain = (plus - minus) ** 2 / root
                gains[j, side, k] = gain
                best = max(best, gain)
    least = best * (1.0 - tie)
    if least > 0.0:
        for j in range(len(n_bins)):
            for k in range(n_bins[j]):
                for side in range(2 if has_missing[j] else 1):
                    if gains[j, side, k] >= least:
                        return j, k - 1, side == 1, gains[j, side, k]
    return -1, -1, False, 0.0
