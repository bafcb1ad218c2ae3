"""The best cut of a leaf: a scan of its histogram, 32 columns side by side.

The gain of a cut is what both sides are worth beyond the whole (`worth`). For a categorical column
see `sides`.
"""

import numba
import numpy as np

from core.coding.by_row import COLUMNS
from core.kernel import kernel

from .sides import find_sides
from .workspace import BY_SIDES, RULE_TYPE
from .worth import CLOSED, GRADIENT, NEWTON, PUSH, TIE, worth_of

# Of the lanes, an array of 32 for each: both totals of a column, its masses above the cut, and of its
# best cut the worth, the cut, the side of the missing and the mass above.
_TOTAL_P, _TOTAL_Q, _P, _Q, _WORTH, _CUT, _SIDE, _ABOVE = (np.uint64(k * COLUMNS) for k in range(8))
N_LANES = 8


@kernel(
    numba.void(
        numba.int64, numba.float64[::1], numba.int64, numba.boolean, RULE_TYPE, numba.float64[::1]
    ),
    inner=True,
    forceinline=True,
    error_model="numpy",
    fastmath={"nnan", "ninf", "nsz"},
)
def _scan_cuts(objective, histogram, n_ordered, missing_above, rule, lanes):  # type: ignore[no-untyped-def]
    """Find each column's best cut with the missing on one side, where it is better than that in `lanes`."""
    half = len(histogram) // 2
    missing = half - COLUMNS
    masses_add = objective != GRADIENT
    for k in range(COLUMNS):
        j = np.uint64(k)
        lanes[_P + j] = lanes[_TOTAL_P + j] - (0.0 if missing_above else histogram[missing + k])
        lanes[_Q + j] = lanes[_TOTAL_Q + j]
        lanes[_Q + j] -= 0.0 if missing_above else histogram[half + missing + k]
    side = 1.0 if missing_above else 0.0
    for cut in range(-1, n_ordered - 1):
        if cut >= 0:
            for k in range(COLUMNS):
                j, cell = np.uint64(k), np.uint64(cut * COLUMNS + k)
                lanes[_P + j] -= histogram[cell]
                lanes[_Q + j] -= histogram[np.uint64(half) + cell]
        at = float(cut)
        for k in range(COLUMNS):
            j = np.uint64(k)
            total_p, total_q, p, q = (
                lanes[_TOTAL_P + j],
                lanes[_TOTAL_Q + j],
                lanes[_P + j],
                lanes[_Q + j],
            )
            above = p + q if masses_add else q
            whole = total_p + total_q if masses_add else total_q
            value = worth_of(objective, rule.push, rule.smoothing, p, q)
            value += worth_of(objective, rule.push, rule.smoothing, total_p - p, total_q - q)
            better = (
                (above >= rule.least_mass)
                & (whole - above >= rule.least_mass)
                & (value > lanes[_WORTH + j] + TIE * whole)
            )
            lanes[_WORTH + j] = value if better else lanes[_WORTH + j]
            lanes[_CUT + j] = at if better else lanes[_CUT + j]
            lanes[_SIDE + j] = side if better else lanes[_SIDE + j]
            lanes[_ABOVE + j] = above if better else lanes[_ABOVE + j]


@kernel(
    numba.types.Tuple((numba.float64, numba.int64, numba.int64, numba.boolean))(
        numba.float64[::1],
        numba.boolean,
        numba.int64,
        numba.boolean[::1],
        numba.boolean[::1],
        RULE_TYPE,
        numba.uint8[::1],
    ),
    error_model="numpy",
)
def find_cut(histogram, has_missing, n_ordered, categorical, allowed, rule, sides):  # type: ignore[no-untyped-def]
    """Find the best cut among up to 32 columns.

    histogram: (2 · n_codes · 32,), both masses per code, the missing code last; n_ordered: the most bins of a
    numeric column, 0 without any; categorical, allowed: (32,), the columns without order and those that may be
    cut. Returns gain, column, cut and whether the missing lie above; the gain is 0 where no cut has any. Codes
    greater than the cut are above it; of a categorical column the cut is BY_SIDES and `sides` gets a 1 for
    those above. The lowest column wins among equals, then the missing below, then the lowest cut. A later
    missing goes to the side of greater mass where this leaf has none.
    """
    half = len(histogram) // 2
    lanes = np.empty(N_LANES * COLUMNS)
    for k in range(N_LANES * COLUMNS):
        lanes[k] = 0.0
    for k in range(COLUMNS):
        lanes[_WORTH + np.uint64(k)] = -1e300
    for code in range(half // COLUMNS):
        for k in range(COLUMNS):
            j, cell = np.uint64(k), np.uint64(code * COLUMNS + k)
            lanes[_TOTAL_P + j] += histogram[cell]
            lanes[_TOTAL_Q + j] += histogram[np.uint64(half) + cell]
    # With a constant for the objective the compiler makes vector code.
    for side in range((2 if has_missing else 1) if n_ordered > 0 else 0):
        if rule.objective == CLOSED:
            _scan_cuts(CLOSED, histogram, n_ordered, side == 1, rule, lanes)
        elif rule.objective == PUSH:
            _scan_cuts(PUSH, histogram, n_ordered, side == 1, rule, lanes)
        elif rule.objective == NEWTON:
            _scan_cuts(NEWTON, histogram, n_ordered, side == 1, rule, lanes)
        else:
            _scan_cuts(GRADIENT, histogram, n_ordered, side == 1, rule, lanes)
    gain = 0.0
    column = -1
    missing_above = False
    masses_add = rule.objective != GRADIENT
    for k in range(COLUMNS):
        if allowed[k]:
            j = np.uint64(k)
            p, q = lanes[_TOTAL_P + j], lanes[_TOTAL_Q + j]
            to_beat = gain + 10.0 * TIE * (q + (p if masses_add else 0.0))
            undivided = worth_of(rule.objective, rule.push, rule.smoothing, p, q)
            found = lanes[_WORTH + j] - undivided
            if categorical[k]:
                found, above = find_sides(histogram, k, rule, p, q, undivided, to_beat, sides)
                missing_above = above if found > to_beat else missing_above
            if found > to_beat:
                gain = found
                column = k
    if column < 0:
        return 0.0, -1, -1, False
    if categorical[column]:
        return gain, column, BY_SIDES, missing_above
    j = np.uint64(column)
    mass = lanes[_TOTAL_Q + j] + (lanes[_TOTAL_P + j] if masses_add else 0.0)
    missing = half - COLUMNS + column
    missing_mass = histogram[half + missing]
    if masses_add:
        missing_mass += histogram[missing]
    has_none = missing_mass <= TIE * mass
    missing_above = (
        2.0 * lanes[_ABOVE + j] > mass * (1.0 + TIE) if has_none else lanes[_SIDE + j] > 0.0
    )
    return gain, column, np.int64(lanes[_CUT + j]), missing_above
