"""The best cut of a leaf: a scan of its histogram, 32 columns side by side.

With P and N the leaf's masses and p and n those above a cut, the cut gains |p N - n P|: Λ in masses
instead of shares, the Youden index of the cut times P N. A column of categories has its bins put in
the order of their share of positives first.
"""

import numba
import numpy as np

from core.scan import MISSING, N_CODES
from core.scan.by_row import COLUMNS

# Gains, in shares of P N, that differ by less than this are equal but for rounding.
TIE = 1e-11

# Mass of a side, in shares of the leaf's, below which it is what subtraction left of nothing.
DUST = 1e-12

_LANES = numba.float64[::1]


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.boolean,
        numba.float64,
        numba.float64,
        numba.float64,
        numba.float64[:, ::1],
        numba.float64[:, ::1],
    ),
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"nnan", "ninf", "nsz"},
)
def _scan_cuts(histogram, n_bins, missing_above, total_p, total_n, least, lanes, best):  # type: ignore[no-untyped-def]
    """Find each column's best cut with the missing on one side.

    `best` holds a row each for gain, cut, side of the missing and mass above, and is changed where
    a cut is better. `lanes` is for work.
    """
    p, n = lanes[0], lanes[1]
    missing = MISSING * COLUMNS
    for j in range(COLUMNS):
        p[j] = total_p - (0.0 if missing_above else histogram[0, missing + j])
        n[j] = total_n - (0.0 if missing_above else histogram[1, missing + j])
    side = 1.0 if missing_above else 0.0
    total = total_p + total_n
    slack = TIE * total_p * total_n
    for cut in range(-1, n_bins - 1):
        if cut >= 0:
            for j in range(COLUMNS):
                p[j] -= histogram[0, cut * COLUMNS + j]
                n[j] -= histogram[1, cut * COLUMNS + j]
        at = float(cut)
        for j in range(COLUMNS):
            above = p[j] + n[j]
            gain = abs(p[j] * total_n - n[j] * total_p)
            better = (above >= least) & (total - above >= least) & (gain > best[0, j] + slack)
            best[0, j] = gain if better else best[0, j]
            best[1, j] = at if better else best[1, j]
            best[2, j] = side if better else best[2, j]
            best[3, j] = above if better else best[3, j]


@numba.njit(
    numba.int64(numba.float64[:, ::1], numba.int64, numba.int64, numba.int64[::1]),
    nogil=True,
    cache=True,
    error_model="numpy",
)
def order_bins(histogram, column, n_bins, order):  # type: ignore[no-untyped-def]
    """Write the bins of a column by their share of positives, greatest first; return how many have mass."""
    share = np.empty(n_bins)
    n = 0
    total = 0.0
    for code in range(n_bins):
        total += histogram[0, code * COLUMNS + column] + histogram[1, code * COLUMNS + column]
    for code in range(n_bins):
        p = max(histogram[0, code * COLUMNS + column], 0.0)
        mass = p + max(histogram[1, code * COLUMNS + column], 0.0)
        if mass > DUST * total:
            order[n] = code
            share[n] = -p / mass
            n += 1
    order[:n] = order[:n][np.argsort(share[:n], kind="mergesort")]
    return n


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.boolean,
        numba.float64,
        numba.float64,
        numba.float64,
        numba.float64[:, ::1],
    ),
    nogil=True,
    cache=True,
)
def _scan_categories(histogram, column, n_bins, has_missing, total_p, total_n, least, best):  # type: ignore[no-untyped-def]
    """Find a categorical column's best cut: after the first `cut + 1` bins of its order."""
    order = np.empty(n_bins, dtype=np.int64)
    n_ordered = order_bins(histogram, column, n_bins, order)
    best[0, column] = -1.0
    slack = TIE * total_p * total_n
    for side in range(2 if has_missing else 1):
        p = histogram[0, MISSING * COLUMNS + column] * side
        n = histogram[1, MISSING * COLUMNS + column] * side
        for cut in range(n_ordered):
            p += histogram[0, order[cut] * COLUMNS + column]
            n += histogram[1, order[cut] * COLUMNS + column]
            gain = abs(p * total_n - n * total_p)
            enough = p + n >= least and total_p + total_n - p - n >= least
            if enough and gain > best[0, column] + slack:
                best[0, column] = gain
                best[1, column] = cut
                best[2, column] = side
                best[3, column] = p + n


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.boolean,
        numba.int64[::1],
        numba.boolean[::1],
        numba.float64,
        numba.float64,
        numba.float64,
        numba.float64[::1],
    ),
    nogil=True,
    cache=True,
)
def find_cut(  # type: ignore[no-untyped-def]
    histogram, n_bins, has_missing, n_unordered, allowed, total_p, total_n, least_mass, found
):
    """Find the best cut among up to 32 columns: write its gain, column, cut and side of the missing.

    Gain -1 means that there is no cut with enough mass on both sides. The lowest column wins among
    equals, then the missing below, then the lowest cut. A later missing goes to the side of greater
    mass where this leaf has none.
    """
    lanes = np.empty((2, COLUMNS))
    best = np.zeros((4, COLUMNS))
    best[0] = -1.0
    total = total_p + total_n
    least = max(least_mass, DUST * total)
    _scan_cuts(histogram, n_bins, False, total_p, total_n, least, lanes, best)
    if has_missing:
        _scan_cuts(histogram, n_bins, True, total_p, total_n, least, lanes, best)
    for j in range(COLUMNS):
        if n_unordered[j] > 0 and allowed[j]:
            _scan_categories(
                histogram, j, n_unordered[j], has_missing, total_p, total_n, least, best
            )
    found[0] = -1.0
    slack = 10.0 * TIE * total_p * total_n
    for j in range(COLUMNS):
        if allowed[j] and best[0, j] > found[0] + slack:
            missing = MISSING * COLUMNS + j
            has_none = histogram[0, missing] + histogram[1, missing] <= DUST * total
            found[0] = best[0, j]
            found[1] = j
            found[2] = best[1, j]
            found[3] = 2.0 * best[3, j] > total * (1.0 + TIE) if has_none else best[2, j]


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.boolean,
        numba.uint8[::1],
    ),
    nogil=True,
    cache=True,
)
def write_above(histogram, column, n_unordered, cut, missing_above, above):  # type: ignore[no-untyped-def]
    """Write which codes lie above a cut; a category's bin without mass goes with the missing."""
    if n_unordered == 0:
        for code in range(N_CODES):
            above[code] = code > cut
    else:
        order = np.empty(n_unordered, dtype=np.int64)
        n_ordered = order_bins(histogram, column, n_unordered, order)
        above[:] = missing_above
        for i in range(n_ordered):
            above[order[i]] = i <= cut
    above[MISSING] = missing_above
