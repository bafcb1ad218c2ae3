"""The best cut of a leaf by a categorical column: which categories lie above it.

Categories are ordered by the positives' share of their mass, p / (p + q), or for GRADIENT by p / q,
and the order is cut in two. That is the best of all divisions: a worth is convex in (p, q), and it
grows in proportion to (p, q), so that the best division is by a line through the origin (Breiman,
Friedman, Olshen & Stone 1984, Theorem 4.5; Chou 1991). With smoothing it is so but for λ.

That order is fitted to the leaf's rows, and the more categories there are, the more of their noise
it finds. Three rules keep it in bounds. A category of a few rows takes no part: it goes where the missing
go, as do those that the leaf has no rows of. Shares are drawn towards the leaf's own before they are put in
order, so that small categories stand at its ends only if they differ by much. And a share of what chance
would give is taken off the gain: d + 2 groups that mean nothing, those that go with the missing counting as
one, gain when put in order about a constant (`losses`) times a chi-squared variable of d degrees of freedom;
of its mean and two standard deviations, d + 2√(2d), `category_penalty` is charged. So a column of names that
occur once is not put in order, one of many small groups only if they differ, and two categories are as good as
two numbers.

References
----------
L. Breiman, J. Friedman, R. Olshen and C. Stone, "Classification and regression trees", 1984.
P. A. Chou, "Optimal partitioning for classification and regression trees", IEEE PAMI 13(4), 1991.
"""

import math

import numba
import numpy as np

from core.coding.by_row import COLUMNS
from core.coding.categories import sort_stably
from core.kernel import kernel

from .workspace import RULE_TYPE
from .worth import DUST, GRADIENT, TIE, worth_of

_F1 = numba.float64[::1]


@kernel(
    numba.types.Tuple((numba.float64, numba.int64))(
        _F1, _F1, numba.int64, numba.int64, RULE_TYPE, numba.float64, numba.float64
    ),
    inner=True,
    error_model="numpy",
)
def _best_prefix(above_p, above_q, first, last, rule, total_p, total_q):  # type: ignore[no-untyped-def]
    """Find which of above[first:last] is worth most with the rest of the total; -1 if none may be."""
    masses_add = rule.objective != GRADIENT
    whole = total_q + (total_p if masses_add else 0.0)
    best = -1e300
    at = -1
    for k in range(first, last):
        p, q = above_p[k], above_q[k]
        above = q + (p if masses_add else 0.0)
        if above >= rule.least_mass and whole - above >= rule.least_mass:
            value = worth_of(rule.objective, rule.push, rule.smoothing, p, q)
            value += worth_of(rule.objective, rule.push, rule.smoothing, total_p - p, total_q - q)
            if value > best + TIE * whole:
                best = value
                at = k
    return best, at


@kernel(
    numba.types.Tuple((numba.float64, numba.boolean))(
        _F1,
        numba.int64,
        RULE_TYPE,
        numba.float64,
        numba.float64,
        numba.float64,
        numba.float64,
        numba.uint8[::1],
    ),
    inner=True,
    error_model="numpy",
)
def find_sides(histogram, column, rule, total_p, total_q, worth, to_beat, sides):  # type: ignore[no-untyped-def]
    """Find the best cut of a categorical column.

    histogram: (2 · n_codes · 32,), both masses per code, the missing code last; total_p, total_q: the column's
    masses; worth: of the whole. Returns the gain, less the charge, and whether the missing lie above; if the
    gain is above `to_beat`, `sides` gets a 1 for the codes above.
    """
    half = len(histogram) // 2
    n_codes = half // COLUMNS
    masses_add = rule.objective != GRADIENT
    # The codes that take part, by falling share, equal ones by code.
    smoothing = rule.category_smoothing
    mean = total_p / max(total_q + (total_p if masses_add else 0.0), 1e-300)
    share, codes = np.empty(n_codes), np.empty(n_codes, dtype=np.int64)
    n = 0
    for code in range(n_codes - 1):
        p, q = histogram[code * COLUMNS + column], histogram[half + code * COLUMNS + column]
        if masses_add:
            p, q = max(p, 0.0), max(q, 0.0)  # subtraction may leave less than nothing
        mass = p + q if masses_add else q
        if mass > DUST and mass >= rule.category_mass:
            share[n] = -(p + smoothing * mean) / (mass + smoothing)
            codes[n] = code
            n += 1
    if n == 0:
        return 0.0, False
    order = np.empty(n, dtype=np.int64)
    sort_stably(share[:n], order)
    above_p, above_q = np.empty(n + 1), np.empty(n + 1)
    above_p[0] = above_q[0] = 0.0
    for k in range(n):
        cell = codes[order[k]] * COLUMNS + column
        above_p[k + 1] = above_p[k] + histogram[cell]
        above_q[k + 1] = above_q[k] + histogram[half + cell]
    whole = total_q + (total_p if masses_add else 0.0)
    rest_p, rest_q = total_p - above_p[n], total_q - above_q[n]
    rest = rest_q + (rest_p if masses_add else 0.0)
    best, at = _best_prefix(above_p, above_q, 1, n + 1, rule, total_p, total_q)
    missing_above = False
    if rest > TIE * whole:
        for k in range(n + 1):
            above_p[k] += rest_p
            above_q[k] += rest_q
        value, k = _best_prefix(above_p, above_q, 1, n, rule, total_p, total_q)
        if value > best + TIE * whole:
            best, at, missing_above = value, k, True
    elif at >= 0:
        above = above_q[at] + (above_p[at] if masses_add else 0.0)
        missing_above = 2.0 * above > whole * (1.0 + TIE)
    beyond_two = float(max(n - (1 if rest > TIE * whole else 2), 0))
    gain = best - worth - rule.category_charge * (beyond_two + 2.0 * math.sqrt(2.0 * beyond_two))
    if at < 0 or gain <= to_beat:
        return 0.0, False
    for code in range(n_codes):
        sides[code] = missing_above
    for k in range(n):
        sides[codes[order[k]]] = k < at
    return gain, missing_above
