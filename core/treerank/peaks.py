"""The best cut of a leaf: a scan of its histogram, 32 columns side by side.

With P and N the leaf's masses and p and n those above a cut, the cut gains |p N - n P|: Λ in masses
instead of shares, the Youden index of the cut times P N. A column of categories has its bins put in
the order of their share of positives first, as far as that can be believed.
"""

import numba
import numpy as np

from core.scan import MISSING, N_CODES
from core.scan.by_row import COLUMNS
from core.scan.categories import order_bins

# Gains, in shares of P N, that differ by less than this are equal but for rounding.
TIE = 1e-11

# Mass of a side, in shares of the leaf's, below which it is what subtraction left of nothing.
DUST = 1e-12

_LANES = numba.float64[::1]


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.types.UniTuple(numba.int64, 2),
        numba.boolean,
        numba.types.UniTuple(numba.float64, 3),
        numba.float64[:, ::1],
    ),
    nogil=True,
    cache=True,
    fastmath={"nnan", "ninf", "nsz"},
)
def _scan_columns(histogram, shape, missing_above, limits, lanes):  # type: ignore[no-untyped-def]
    """Raise lanes[2] to each column's greatest gain with the missing on one side.

    shape: how many columns and bins; limits: the leaf's masses and the least mass of a side. The
    first two lanes are for work.
    """
    (width, n_bins), (total_p, total_n, least) = shape, limits
    p, n, best = lanes[0], lanes[1], lanes[2]
    missing = MISSING * COLUMNS
    for j in range(width):
        p[j] = total_p - (0.0 if missing_above else histogram[0, missing + j])
        n[j] = total_n - (0.0 if missing_above else histogram[1, missing + j])
    most = total_p + total_n - least
    for cut in range(-1, n_bins - 1):
        if cut >= 0:
            for j in range(width):
                p[j] -= histogram[0, cut * COLUMNS + j]
                n[j] -= histogram[1, cut * COLUMNS + j]
        for j in range(width):
            above = p[j] + n[j]
            gain = abs(p[j] * total_n - n[j] * total_p)
            enough = (above >= least) & (above <= most)
            best[j] = max(best[j], gain if enough else -1.0)


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.types.UniTuple(numba.float64, 3),
        numba.float64,
        numba.float64[::1],
    ),
    nogil=True,
    cache=True,
)
def _locate(histogram, column, n_bins, limits, target, found):  # type: ignore[no-untyped-def]
    """Write the first cut of a column whose gain is the target but for rounding: cut, side, mass above."""
    total_p, total_n, least = limits
    most = total_p + total_n - least
    for side in range(2):
        missing = MISSING * COLUMNS + column
        p = total_p - (1 - side) * histogram[0, missing]
        n = total_n - (1 - side) * histogram[1, missing]
        for cut in range(-1, n_bins - 1):
            if cut >= 0:
                p -= histogram[0, cut * COLUMNS + column]
                n -= histogram[1, cut * COLUMNS + column]
            if abs(p * total_n - n * total_p) >= target and p + n >= least and p + n <= most:
                found[0], found[1], found[2] = cut, side, p + n
                return


@numba.njit(
    numba.int64(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.float64[::1],
        numba.int64[::1],
        numba.float64[:, ::1],
    ),
    nogil=True,
    cache=True,
    error_model="numpy",
)
def _order_column(histogram, column, n_bins, classes, order, mixed):  # type: ignore[no-untyped-def]
    """Write a categorical column's bins in the order of their believed share of positives.

    Their mixed masses, in shares of the class's mass in all rows, go to `mixed`; returns how many
    bins have mass. See `core.scan.categories`.
    """
    masses = np.empty((2, n_bins))
    total = 0.0
    for half in range(2):
        for code in range(n_bins):
            masses[half, code] = max(histogram[half, code * COLUMNS + column], 0.0) / classes[half]
            total += masses[half, code]
    return order_bins(masses, n_bins, DUST * total, classes[2], classes[3], order, mixed)


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.boolean,
        numba.float64,
        numba.float64[::1],
        numba.float64[::1],
    ),
    nogil=True,
    cache=True,
)
def _scan_categories(histogram, column, n_bins, has_missing, least, classes, found):  # type: ignore[no-untyped-def]
    """Find a categorical column's best cut: write its gain, cut, side of the missing and mass above.

    Bins after the first `cut + 1` of its order lie above.

    Gains are those of the mixed masses, but what lies on a side is not mixed. Where chance explains all
    differences, no cut gains; such a column may still be cut in the hope of what comes after it,
    unless its bins hold less than a leaf each on average, as an identifier's do.
    """
    order, mixed = np.empty(n_bins, dtype=np.int64), np.empty((2, n_bins))
    n_ordered = _order_column(histogram, column, n_bins, classes, order, mixed)
    missing = MISSING * COLUMNS + column
    missing_p = max(histogram[0, missing], 0.0) / classes[0]
    missing_n = max(histogram[1, missing], 0.0) / classes[1]
    missing_mass = histogram[0, missing] + histogram[1, missing]
    total_p, total_n = (
        missing_p + mixed[0, :n_ordered].sum(),
        missing_n + mixed[1, :n_ordered].sum(),
    )
    mass = 0.0
    for code in order[:n_ordered]:
        mass += histogram[0, code * COLUMNS + column] + histogram[1, code * COLUMNS + column]
    slack = TIE * total_p * total_n
    found[0] = -1.0
    floor = -1.0 if mass >= least * n_ordered else slack
    for side in range(2 if has_missing else 1):
        p, n = total_p - (1 - side) * missing_p, total_n - (1 - side) * missing_n
        above = mass + side * missing_mass
        for cut in range(-1, n_ordered - 1):
            if cut >= 0:
                p -= mixed[0, cut]
                n -= mixed[1, cut]
                code = order[cut] * COLUMNS + column
                above -= histogram[0, code] + histogram[1, code]
            gain = abs(p * total_n - n * total_p)
            enough = above >= least and mass + missing_mass - above >= least
            if enough and gain > max(found[0], floor) + slack:
                found[0], found[1], found[2], found[3] = gain, cut, side, above
    found[0] *= classes[0] * classes[1]


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.boolean[::1],
        numba.float64[::1],
        numba.float64,
        numba.float64[::1],
        numba.float64[::1],
    ),
    nogil=True,
    cache=True,
)
def find_cut(  # type: ignore[no-untyped-def]
    histogram, block, n_unordered, allowed, masses, least_mass, classes, found
):
    """Find the best cut among up to 32 columns: write its gain, column, cut and side of the missing.

    A gain below 0 means that there is no cut with enough mass on both sides. `classes`: the mass of
    each class in all rows, and how finely it is divided. The lowest column wins among
    equals, then the missing below, then the lowest cut. A later missing goes to the side of greater
    mass where this leaf has none.
    """
    n_words, n_bins, has_missing = block[0], block[1], block[2] != 0
    total = masses[0] + masses[1]
    limits = (masses[0], masses[1], max(least_mass, DUST * total))
    slack = TIE * masses[0] * masses[1]
    lanes = np.empty((3, COLUMNS))
    lanes[2] = -1.0
    _scan_columns(histogram, (8 * n_words, n_bins), False, limits, lanes)
    if has_missing:
        _scan_columns(histogram, (8 * n_words, n_bins), True, limits, lanes)
    best = lanes[2]
    ways = np.empty((COLUMNS, 4))  # of categorical columns: gain, cut, side, mass above
    for j in range(8 * n_words):
        if n_unordered[j] > 0 and allowed[j]:
            _scan_categories(histogram, j, n_unordered[j], has_missing, limits[2], classes, ways[j])
            best[j] = ways[j, 0]
    found[0] = -1.0
    column = 0
    for j in range(8 * n_words):
        if allowed[j] and best[j] > found[0] + 10.0 * slack:
            found[0] = best[j]
            column = j
    if found[0] < 0.0:
        return
    if n_unordered[column] == 0:
        _locate(histogram, column, n_bins, limits, best[column] - slack, ways[column, 1:])
    found[1], found[2] = column, ways[column, 1]
    missing = MISSING * COLUMNS + column
    has_none = histogram[0, missing] + histogram[1, missing] <= DUST * total
    above = ways[column, 3]
    found[3] = 2.0 * above > total * (1.0 + TIE) if has_none else ways[column, 2]


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.boolean,
        numba.float64[::1],
        numba.uint8[::1],
    ),
    nogil=True,
    cache=True,
)
def write_above(histogram, column, n_unordered, cut, missing_above, classes, above):  # type: ignore[no-untyped-def]
    """Write which codes lie above a cut; a category's bin without mass goes with the missing."""
    if n_unordered == 0:
        for code in range(N_CODES):
            above[code] = code > cut
    else:
        order, mixed = np.empty(n_unordered, dtype=np.int64), np.empty((2, n_unordered))
        n_ordered = _order_column(histogram, column, n_unordered, classes, order, mixed)
        above[:] = missing_above
        for i in range(n_ordered):
            above[order[i]] = i > cut
    above[MISSING] = missing_above
