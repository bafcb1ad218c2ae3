"""The best cut of a leaf by a categorical column: which categories lie above it.

Categories are ordered by the positives' share of their mass, p / (p + q), or for GRADIENT by p / q,
and the order is cut in two. That is the best of all divisions: a worth is convex in (p, q), and it
grows in proportion to (p, q), so that the best division is by a line through the origin (Breiman,
Friedman, Olshen & Stone 1984, Theorem 4.5; Chou 1991). With smoothing it is so but for λ.

That order is fitted to the leaf's rows, and the more categories there are, the more of their noise
it finds. Two rules keep it in bounds. A category whose mass in the leaf is less than a leaf may have
takes no part: it goes where the missing go, as do those that the leaf has no rows of. And the
gain must exceed what chance would give: d + 2 groups that mean nothing, those that go with the missing
counting as one, gain when put in order about `category_charge` times a chi-squared variable of d degrees
of freedom (`losses`); its mean and two standard deviations, d + 2√(2d), are charged. So a column of names
that occur once is not put in order, one of many small groups only if they differ by more than
chance, and two categories are as good as two numbers.

References
----------
L. Breiman, J. Friedman, R. Olshen and C. Stone, "Classification and regression trees", 1984.
P. A. Chou, "Optimal partitioning for classification and regression trees", IEEE PAMI 13(4), 1991.
"""

import math

import numba
import numpy as np

from core.kernel import kernel
from core.scan.by_row import COLUMNS

from .workspace import RULE_TYPE
from .worth import DUST, GRADIENT, TIE, worth_of

_F1, _I1 = numba.float64[::1], numba.int64[::1]


@kernel(numba.int64(numba.float64[:, ::1], numba.int64, RULE_TYPE, _F1, _I1))
def _order(histogram, column, rule, share, order):  # type: ignore[no-untyped-def]
    """Write the codes that take part by falling share, equal ones by code; return how many."""
    n = 0
    for code in range(histogram.shape[1] // COLUMNS - 1):  # all but the missing
        p = histogram[0, code * COLUMNS + column]
        q = histogram[1, code * COLUMNS + column]
        if rule.objective == GRADIENT:
            mass, key = q, p / q if q > DUST else 0.0
        else:
            p, q = max(p, 0.0), max(q, 0.0)  # subtraction may leave less than nothing
            mass = p + q
            key = p / mass if mass > DUST else 0.0
        if mass > DUST and mass >= rule.least_mass:
            share[n] = -key
            order[n] = code
            n += 1
    ranks = np.argsort(share[:n], kind="mergesort")
    order[:n] = order[:n][ranks]
    return n


@kernel(
    numba.types.Tuple((numba.float64, numba.int64))(
        _F1, _F1, numba.int64, numba.int64, RULE_TYPE, _F1
    ),
    error_model="numpy",
)
def _best_prefix(above_p, above_q, first, last, rule, total):  # type: ignore[no-untyped-def]
    """Find which of above[first:last] is worth most with the rest of the total; -1 if none may be."""
    masses_add = rule.objective != GRADIENT
    whole = total[1] + (total[0] if masses_add else 0.0)
    best = -1e300
    at = -1
    for k in range(first, last):
        p, q = above_p[k], above_q[k]
        above = q + (p if masses_add else 0.0)
        if above >= rule.least_mass and whole - above >= rule.least_mass:
            value = worth_of(rule.objective, rule.push, rule.smoothing, p, q)
            value += worth_of(rule.objective, rule.push, rule.smoothing, total[0] - p, total[1] - q)
            if value > best + TIE * whole:
                best = value
                at = k
    return best, at


@kernel(
    numba.types.Tuple((numba.float64, numba.boolean))(
        numba.float64[:, ::1],
        numba.int64,
        RULE_TYPE,
        _F1,
        numba.float64,
        numba.float64,
        numba.uint8[::1],
    ),
    error_model="numpy",
)
def find_sides(histogram, column, rule, total, worth, to_beat, sides):  # type: ignore[no-untyped-def]
    """Find the best cut of a categorical column.

    histogram: (2, n_codes · 32), the missing code last; total: (2,), the column's masses; worth: of
    the whole. Returns the gain, less the charge, and whether the missing lie above; if the gain is
    above `to_beat`, `sides` gets a 1 for the codes above.
    """
    n_codes = histogram.shape[1] // COLUMNS
    share, order = np.empty(n_codes), np.empty(n_codes, dtype=np.int64)
    n = _order(histogram, column, rule, share, order)
    if n == 0:
        return 0.0, False
    above_p, above_q = np.zeros(n + 1), np.zeros(n + 1)
    for k in range(n):
        cell = order[k] * COLUMNS + column
        above_p[k + 1] = above_p[k] + histogram[0, cell]
        above_q[k + 1] = above_q[k] + histogram[1, cell]
    masses_add = rule.objective != GRADIENT
    whole = total[1] + (total[0] if masses_add else 0.0)
    rest_p, rest_q = total[0] - above_p[n], total[1] - above_q[n]
    rest = rest_q + (rest_p if masses_add else 0.0)
    best, at = _best_prefix(above_p, above_q, 1, n + 1, rule, total)
    missing_above = False
    if rest > TIE * whole:
        above_p += rest_p
        above_q += rest_q
        value, k = _best_prefix(above_p, above_q, 1, n, rule, total)
        if value > best + TIE * whole:
            best, at, missing_above = value, k, True
    elif at >= 0:
        above = above_q[at] + (above_p[at] if masses_add else 0.0)
        missing_above = 2.0 * above > whole * (1.0 + TIE)
    beyond_two = float(max(n + np.int64(rest > TIE * whole) - 2, 0))
    gain = best - worth - rule.category_charge * (beyond_two + 2.0 * math.sqrt(2.0 * beyond_two))
    if at < 0 or gain <= to_beat:
        return 0.0, False
    sides[:] = missing_above
    sides[order[:at]] = 1
    sides[order[at:n]] = 0
    return gain, missing_above
