"""The best cut of a leaf: a scan of its histogram, 32 columns side by side.

The gain of a cut is what both sides are worth beyond the whole (`worth`). For a categorical column
see `sides`.
"""

import numba
import numpy as np

from core.scan.by_row import COLUMNS

from .sides import find_sides
from .workspace import BY_SIDES, RULE_TYPE
from .worth import GRADIENT, TIE, write_worth


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.boolean,
        RULE_TYPE,
        numba.float64[:, ::1],
        numba.float64[:, ::1],
    ),
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"nnan", "ninf", "nsz"},
)
def scan_cuts(histogram, missing_above, rule, lanes, best):  # type: ignore[no-untyped-def]
    """Find each column's best cut with the missing on one side.

    `best` holds a row each for worth, cut, side of the missing and mass above, and is changed where
    a cut is better. `lanes` is for work; its first two rows hold each column's totals.
    """
    total_p, total_q = lanes[0], lanes[1]
    p, q, below_p, below_q = lanes[2], lanes[3], lanes[4], lanes[5]
    worth, worth_below = lanes[6], lanes[7]
    missing = histogram.shape[1] - COLUMNS
    for j in range(COLUMNS):
        p[j] = total_p[j] - (0.0 if missing_above else histogram[0, missing + j])
        q[j] = total_q[j] - (0.0 if missing_above else histogram[1, missing + j])
    side = 1.0 if missing_above else 0.0
    masses_add = rule.objective != GRADIENT
    for cut in range(-1, missing // COLUMNS - 1):
        if cut >= 0:
            for j in range(COLUMNS):
                p[j] -= histogram[0, cut * COLUMNS + j]
                q[j] -= histogram[1, cut * COLUMNS + j]
        for j in range(COLUMNS):
            below_p[j] = total_p[j] - p[j]
            below_q[j] = total_q[j] - q[j]
        write_worth(rule.objective, rule.push, rule.smoothing, p, q, worth)
        write_worth(rule.objective, rule.push, rule.smoothing, below_p, below_q, worth_below)
        at = float(cut)
        for j in range(COLUMNS):
            above = p[j] + q[j] if masses_add else q[j]
            whole = total_p[j] + total_q[j] if masses_add else total_q[j]
            value = worth[j] + worth_below[j]
            better = (
                (above >= rule.least_mass)
                & (whole - above >= rule.least_mass)
                & (value > best[0, j] + TIE * whole)
            )
            best[0, j] = value if better else best[0, j]
            best[1, j] = at if better else best[1, j]
            best[2, j] = side if better else best[2, j]
            best[3, j] = above if better else best[3, j]


@numba.njit(
    numba.types.Tuple((numba.float64, numba.int64, numba.int64, numba.boolean))(
        numba.float64[:, ::1],
        numba.boolean,
        numba.boolean[::1],
        numba.boolean[::1],
        RULE_TYPE,
        numba.uint8[::1],
    ),
    nogil=True,
    cache=True,
    error_model="numpy",
)
def find_cut(histogram, has_missing, categorical, allowed, rule, sides):  # type: ignore[no-untyped-def]
    """Find the best cut among up to 32 columns.

    histogram: (2, n_codes · 32), the missing code last; categorical, allowed: (32,), the columns
    without order and those that may be cut. Returns gain, column, cut and whether the missing lie
    above; the gain is 0 where no cut has any. Codes greater than the cut are above it; of a
    categorical column the cut is BY_SIDES and `sides` gets a 1 for those above. The lowest column
    wins among equals, then the missing below, then the lowest cut. A later missing goes to the side
    of greater mass where this leaf has none.
    """
    lanes = np.empty((8, COLUMNS))
    best = np.empty((4, COLUMNS))
    best[0] = -1e300
    lanes[:2] = 0.0
    for code in range(histogram.shape[1] // COLUMNS):
        for j in range(COLUMNS):
            lanes[0, j] += histogram[0, code * COLUMNS + j]
            lanes[1, j] += histogram[1, code * COLUMNS + j]
    scan_cuts(histogram, False, rule, lanes, best)
    if has_missing:
        scan_cuts(histogram, True, rule, lanes, best)
    write_worth(rule.objective, rule.push, rule.smoothing, lanes[0], lanes[1], lanes[2])
    gain = 0.0
    column = -1
    missing_above = False
    for j in range(COLUMNS):
        if allowed[j]:
            mass = lanes[1, j] + (lanes[0, j] if rule.objective != GRADIENT else 0.0)
            to_beat = gain + 10.0 * TIE * mass
            found = best[0, j] - lanes[2, j]
            if categorical[j]:
                total = lanes[:2, j].copy()
                found, above = find_sides(histogram, j, rule, total, lanes[2, j], to_beat, sides)
                missing_above = above if found > to_beat else missing_above
            if found > to_beat:
                gain = found
                column = j
    if column < 0:
        return 0.0, -1, -1, False
    if categorical[column]:
        return gain, column, BY_SIDES, missing_above
    mass = lanes[1, column] + (lanes[0, column] if rule.objective != GRADIENT else 0.0)
    missing = histogram.shape[1] - COLUMNS + column
    missing_mass = histogram[1, missing]
    if rule.objective != GRADIENT:
        missing_mass += histogram[0, missing]
    has_none = missing_mass <= TIE * mass
    missing_above = (
        2.0 * best[3, column] > mass * (1.0 + TIE) if has_none else best[2, column] > 0.0
    )
    return gain, column, np.int64(best[1, column]), missing_above
