"""The best cut of a leaf: a scan of its histogram, 32 columns side by side.

With P and N the leaf's masses and p and n those above a cut, the cut gains |p N - n P|: Λ in masses
instead of shares, the Youden index of the cut times P N. For columns of categories see
`category_peaks`.
"""

import numba
import numpy as np

from core.kernel import kernel
from core.scan import MISSING
from core.scan.by_row import COLUMNS

from .category_peaks import DUST, TIE, scan_categories


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.types.UniTuple(numba.int64, 2),
        numba.boolean,
        numba.types.UniTuple(numba.float64, 3),
        numba.float64[:, ::1],
    ),
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


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.types.UniTuple(numba.float64, 3),
        numba.float64,
        numba.float64[::1],
    )
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


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.boolean[::1],
        numba.float64[::1],
        numba.float64,
        numba.float64[::1],
        numba.float64[::1],
    )
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
    ways = np.zeros((COLUMNS, 5))  # gain, cut, side of the missing, mass above, mass missing
    for j in range(8 * n_words):
        if n_unordered[j] > 0 and allowed[j]:
            scan_categories(histogram, j, n_unordered[j], limits, classes, ways[j])
            best[j] = ways[j, 0]
    found[0] = -1.0
    column = 0
    for j in range(8 * n_words):
        if allowed[j] and best[j] > found[0] + 10.0 * slack:
            found[0] = best[j]
            column = j
    if found[0] < 0.0:
        return
    way = ways[column]
    if n_unordered[column] == 0:
        missing = MISSING * COLUMNS + column
        way[4] = histogram[0, missing] + histogram[1, missing]
        _locate(histogram, column, n_bins, limits, best[column] - slack, way[1:])
    has_none = way[4] <= DUST * total
    found[1], found[2] = column, way[1]
    found[3] = 2.0 * way[3] > total * (1.0 + TIE) if has_none else way[2]
