"""The best cut of a leaf: a scan of its histogram, 32 columns side by side.

With P and N the leaf's masses and p and n those above a cut, the cut gains |p N - n P|: Λ in masses
instead of shares, the Youden index of the cut times P N. For columns of categories see
`category_peaks`.
"""

import numba
import numpy as np

from core.coding import MISSING
from core.coding.by_row import COLUMNS
from core.kernel import kernel

from .category_peaks import DUST, TIE, scan_categories


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.types.UniTuple(numba.int64, 2),
        numba.boolean,
        numba.types.UniTuple(numba.float64, 3),
        numba.float64[:, ::1],
    ),
    inner=True,
    fastmath={"nnan", "ninf", "nsz"},
    _nrt=False,
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
        numba.int64[::1],
        numba.int64[::1],
        numba.boolean[::1],
        numba.float64[::1],
        numba.float64,
        numba.float64[::1],
        numba.float64[::1],
    ),
    inner=True,
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
    total_p, total_n = masses[0], masses[1]
    total = total_p + total_n
    least = max(least_mass, DUST * total)
    limits = (total_p, total_n, least)
    slack = TIE * total_p * total_n
    lanes = np.empty((3, COLUMNS))
    for j in range(COLUMNS):
        lanes[2, j] = -1.0
    for side in range(2 if has_missing else 1):
        _scan_columns(histogram, (8 * n_words, n_bins), side == 1, limits, lanes)
    ways = np.empty((COLUMNS, 5))  # gain, cut, side of the missing, mass above, mass missing
    found[0] = -1.0
    column = 0
    for j in range(8 * n_words):
        if not allowed[j]:
            continue
        if n_unordered[j] > 0:
            scan_categories(histogram, j, n_unordered[j], limits, classes, ways[j])
            lanes[2, j] = ways[j, 0]
        if lanes[2, j] > found[0] + 10.0 * slack:
            found[0] = lanes[2, j]
            column = j
    if found[0] < 0.0:
        return
    if n_unordered[column] == 0:
        # the first cut whose gain is the greatest but for rounding
        missing = MISSING * COLUMNS + column
        ways[column, 4] = histogram[0, missing] + histogram[1, missing]
        for k in range(1, 4):
            ways[column, k] = 0.0
        target, most = lanes[2, column] - slack, total - least
        side, cut = 0, n_bins
        while side < 2 and cut >= n_bins - 1:
            p = total_p - (1 - side) * histogram[0, missing]
            n = total_n - (1 - side) * histogram[1, missing]
            cut = -1
            while cut < n_bins - 1:
                if cut >= 0:
                    p -= histogram[0, cut * COLUMNS + column]
                    n -= histogram[1, cut * COLUMNS + column]
                if abs(p * total_n - n * total_p) >= target and p + n >= least and p + n <= most:
                    ways[column, 1], ways[column, 2], ways[column, 3] = cut, side, p + n
                    break
                cut += 1
            side += 1
    has_none = ways[column, 4] <= DUST * total
    found[1], found[2] = column, ways[column, 1]
    found[3] = 2.0 * ways[column, 3] > total * (1.0 + TIE) if has_none else ways[column, 2]
