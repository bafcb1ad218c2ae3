"""Categorical columns of a leaf: their bins in the order of their share of positives, and the best cut.

A share is believed as far as chance does not explain it (`core.coding.categories`), and only of a bin that
holds the mass of a leaf, here, in this node: the others go with the missing. Where chance explains all,
bins are not cut from each other, only from the missing and the small ones.
"""

import numba
import numpy as np

from core.coding import MISSING, N_CODES
from core.coding.by_row import COLUMNS
from core.coding.categories import SAME_SHARE, order_bins
from core.kernel import kernel

# Gains, in shares of P N, that differ by less than this are equal but for rounding.
TIE = 1e-11

# Mass, in shares of the leaf's, below which it is what subtraction left of nothing.
DUST = 1e-12


@kernel(
    numba.int64(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.float64,
        numba.float64[::1],
        numba.int64[::1],
        numba.float64[:, ::1],
    ),
    inner=True,
)
def _order(histogram, column, n_bins, least, classes, order, mixed):  # type: ignore[no-untyped-def]
    """Write the bins that hold enough by their believed share of positives, the lowest first.

    Their mixed masses, in shares of the class's mass in all rows, go to `mixed`. Returns their number.
    """
    masses = np.empty((2, n_bins))
    for code in range(n_bins):
        masses[0, code] = masses[1, code] = 0.0
        at = code * COLUMNS + column
        if histogram[0, at] + histogram[1, at] >= least * (1.0 - TIE):
            masses[0, code] = max(histogram[0, at], 0.0) / classes[0]
            masses[1, code] = max(histogram[1, at], 0.0) / classes[1]
    return order_bins(masses, n_bins, 0.0, classes[2], classes[3], order, mixed)


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.types.UniTuple(numba.float64, 3),
        numba.float64[::1],
        numba.float64[::1],
    ),
    inner=True,
)
def scan_categories(histogram, column, n_bins, limits, classes, way):  # type: ignore[no-untyped-def]
    """Find a column's best cut: write its gain, cut, side of the missing, mass above and mass missing.

    Bins after the first `cut + 1` of the order lie above. The gain is that of the mixed masses, the
    masses are true. Without enough bins the gain is -1.
    """
    total_p, total_n, least = limits
    order, mixed = np.empty(n_bins, dtype=np.int64), np.empty((2, n_bins))
    n_ordered = _order(histogram, column, n_bins, least, classes, order, mixed)
    ordered_p = ordered_n = 0.0
    mixed_p = mixed_n = 0.0
    for i in range(n_ordered):
        ordered_p += histogram[0, order[i] * COLUMNS + column]
        ordered_n += histogram[1, order[i] * COLUMNS + column]
        mixed_p += mixed[0, i]
        mixed_n += mixed[1, i]
    mass, rest = ordered_p + ordered_n, total_p + total_n - ordered_p - ordered_n
    rest = rest if rest > DUST * (total_p + total_n) else 0.0
    rest_p = max(total_p - ordered_p, 0.0) / classes[0]
    rest_n = max(total_n - ordered_n, 0.0) / classes[1]
    all_p, all_n = rest_p + mixed_p, rest_n + mixed_n
    slack = TIE * all_p * all_n
    n_apart = n_ordered
    if n_ordered > 0:
        last = n_ordered - 1
        lowest = mixed[0, 0] / (mixed[0, 0] + mixed[1, 0])
        if mixed[0, last] / (mixed[0, last] + mixed[1, last]) - lowest <= SAME_SHARE:
            n_apart = 1
    way[0] = -1.0
    way[4] = rest
    for side in range(2 if rest > 0.0 else 1):
        p, n = all_p - (1 - side) * rest_p, all_n - (1 - side) * rest_n
        above = mass + side * rest
        for cut in range(-1, n_apart - 1):
            if cut >= 0:
                p -= mixed[0, cut]
                n -= mixed[1, cut]
                code = order[cut] * COLUMNS + column
                above -= histogram[0, code] + histogram[1, code]
            gain = abs(p * all_n - n * all_p)
            enough = above >= least and mass + rest - above >= least
            if enough and gain > way[0] + slack:
                way[0], way[1], way[2], way[3] = gain, cut, side, above
    way[0] *= classes[0] * classes[1]


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.boolean,
        numba.float64,
        numba.float64[::1],
        numba.uint8[::1],
    ),
    inner=True,
)
def write_above(  # type: ignore[no-untyped-def]
    histogram, column, n_unordered, cut, missing_above, least, classes, above
):
    """Write which codes lie above a cut; what is not in the order goes with the missing."""
    if n_unordered == 0:
        for code in range(N_CODES):
            above[code] = code > cut
    else:
        order, mixed = np.empty(n_unordered, dtype=np.int64), np.empty((2, n_unordered))
        n_ordered = _order(histogram, column, n_unordered, least, classes, order, mixed)
        for code in range(N_CODES):
            above[code] = missing_above
        for i in range(n_ordered):
            above[order[i]] = i > cut
    above[MISSING] = missing_above
