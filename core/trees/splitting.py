"""Finding the best split of a leaf: a scan of its histogram, the eight columns of a group in parallel.

A side of a split holds two masses: p of positives and q of negatives, or for LogitBoost the sum of gradients and the
sum of Hessians. Its score, greater being better, is

=========  ==================================  ====================================================
objective  score                               where it comes from
=========  ==================================  ====================================================
CLOSED     -√(pq)                              the loss after the best step is (Σ √(P_l N_l))²
PUSH       -p^(r/(1+r)) q^(1/(1+r))            the same for the r-norm push, (Σ …)^(1+r)
NEWTON     (p - q)² / (p + rq + λ)             a quadratic model of the logarithm of the loss
GRADIENT   p² / (q + λ)                        the same, with p the gradient and q the Hessian
=========  ==================================  ====================================================

and the gain of a split is the score of both sides less that of the whole. For CLOSED, PUSH and NEWTON each class has
the mass 1 in all rows.

YOUDEN, the objective of LeafRank (Clémençon, Depecker & Vayatis 2011, eq. 9), has no such score: with p, q above a cut
and p', q' below, the gain is |p q' - q p'|: the Youden index of the cut in the node, times both masses of the node. A
split of gain 0 is allowed, since two cuts may separate what one cannot. Its categories are sorted by
`core.coding.categories`.

**Categories** are sorted by the fraction of positives in their mass, p / (p + q), or for GRADIENT by p / q, and the
order is cut in two. This is the best of all divisions in two: a score is convex in (p, q) and grows in proportion to
(p, q), so that the best division is by a line through the origin (Breiman, Friedman, Olshen & Stone 1984, Theorem 4.5;
Chou 1991). With smoothing this holds but for λ.

The order is fitted to the rows of the leaf: the more categories there are, the more it fits their noise. Three rules
limit this. A category of a few rows has no place in the order: it goes with the missing, as do categories without rows
in the leaf. Fractions are shrunk to that of the leaf before they are sorted, so that small categories stand at the
ends only if they differ by much. And a part of the gain that chance would give is taken off: d + 2 groups without
meaning, those that go with the missing counting as one, gain when they are sorted about a constant times a chi-squared
variable of d degrees of freedom. `category_penalty` is that constant times the fraction that is charged of the mean
and two standard deviations, d + 2√(2d). So a column of names that occur once is not sorted at all, one of many small
groups is split only if they differ, and two categories are treated as two numbers.

The shrinkage of `core.coding.categories`, which stumps and YOUDEN use, is not used for the other objectives: with it
the mean AUC on ten tables with words is .001 to .010 lower, on German credit .027.

References
----------
L. Breiman, J. Friedman, R. Olshen and C. Stone, "Classification and regression trees", 1984.
S. Clémençon, M. Depecker and N. Vayatis, "Adaptive partitioning schemes for bipartite ranking",
Machine Learning 83, 2011.

P. A. Chou, "Optimal partitioning for classification and regression trees", IEEE PAMI 13(4), 1991.
"""

import math
from enum import IntEnum
from typing import Any, NamedTuple

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
from numba.core import cgutils
from numba.extending import intrinsic

from core.coding.categories import SHARE_ATOL, order_bins, sort_stably
from core.coding.threads import tuple_at
from core.kernels import INNER, kernel

from .coding import COLUMN, GROUP, LANES, MEMBER, Kind


class Objective(IntEnum):
    """The formula by which the gain of a split is measured; see the table at the top of this module."""

    CLOSED = 0
    PUSH = 1
    NEWTON = 2
    GRADIENT = 3
    YOUDEN = 4


# As numbers, for kernels.
CLOSED, PUSH, NEWTON, GRADIENT, YOUDEN = (int(objective) for objective in Objective)
PADDING, ORDERED, CATEGORICAL, BUNDLE = (int(kind) for kind in Kind)

# Difference of gains or masses, as a fraction of the mass of the leaf, up to which they count as equal.
MASS_RTOL = 1e-11

# Difference of two sides, as a fraction of the mass of the leaf, up to which they count as equal when the missing go to
# the greater one: rounding to units may make some.
SIDE_RTOL = 1e-6

# Mass of a side, as a fraction of the mass of the leaf, below which it is taken for 0: subtraction leaves that much.
EPS_SIDE = 1e-12
# Mass of one class in a side, as a fraction of its mass in all rows, below which it is taken for 0.
EPS_CLASS = 1e-13

BY_SUBSET = -2
"""Stands for a cut: a subset of the categories lies above."""


class SplitCriterion(NamedTuple):
    """The criterion for the best split: the objective, its parameters and minimum leaf weights."""

    objective: int
    push: float
    smoothing: float
    """λ of the Newton objectives."""
    least_mass: float
    """Minimum mass of each side."""
    category_penalty: float
    """Taken off the gain for each category beyond two; see the module."""
    category_mass: float
    """Minimum mass of a category that has a place in the order."""
    category_smoothing: float
    """Mass, divided among the classes as in the leaf, that is added to each category before they are sorted."""
    class_positive: float = 1.0
    class_negative: float = 1.0
    """YOUDEN: mass of each class in all rows."""
    inverse_ess_positive: float = 0.0
    inverse_ess_negative: float = 0.0
    """YOUDEN: see `core.coding.categories.InverseESS`."""
    first_unit: float = 1.0
    second_unit: float = 1.0
    """What 1 in the upper and in the lower half of a cell stands for; powers of two."""


CRITERION_TYPE = numba.types.NamedTuple((numba.int64, *[numba.float64] * 12), SplitCriterion)

SPLIT = np.dtype(
    [
        ("gain", np.float64),
        ("feature", np.int64),
        ("group", np.int64),
        ("lane", np.int64),  # the column in its group; -1 without a split
        ("cut", np.int64),  # greater codes lie above; of a bundle the member's code; or BY_SUBSET
        ("missing_above", np.int64),
    ],
    align=True,
)

# Cells whose cuts are valued together: their numbers stay in the first-level cache.
BLOCK = 32 * LANES
_NONE = -1e300
_F1, _I1 = numba.float64[::1], numba.int64[::1]


class Scratch(NamedTuple):
    """Scratch memory of one thread for scanning columns of up to n_codes codes."""

    whole: Any
    sums: Any
    """The sum of all cells of each column, and of those below a cut. Shape (8,), int64."""
    below_p: Any
    below_q: Any
    above_p: Any
    above_q: Any
    """Masses below and above the cut at each cell of a block. Shape (BLOCK,), float64."""
    cells: Any
    cuttable: Any
    """The codes with rows of the leaf, then the missing. Shape (8 * (n_codes + 1),), int64 and bool."""
    kept: Any
    """The numbers of these codes. Shape (n_codes,), int64."""
    value: Any
    """Value of the cuts of all columns, see `_value_of`: first with the missing below, beginning with the cut -1 which
    separates the missing from all values, then with the missing above. Shape (2 * 8 * (n_codes + 1),), float64."""
    total: Any
    """Both masses of each column. Shape (2 * 8,), float64."""
    best: Any
    gain: Any
    """The greatest value of each column, and the gain of its best split. Shape (8,), float64."""
    feature: Any
    cut: Any
    side: Any
    """Best split of each column. Shape (8,), int64."""
    share: Any
    """Shape (n_codes,), float64."""
    codes: Any
    order: Any
    """Shape (n_codes,), int64."""
    sum_p: Any
    sum_q: Any
    """Shape (n_codes + 1,), float64."""


SCRATCH_TYPE = numba.types.NamedTuple(
    (
        *(_I1, _I1, *[_F1] * 4, _I1, numba.boolean[::1], _I1, *[_F1] * 4, *[_I1] * 3),
        *(_F1, _I1, _I1, _F1, _F1),
    ),
    Scratch,
)
scratch_at = tuple_at(SCRATCH_TYPE)


@numba.njit(**INNER)
def make_scratch(n_codes):  # type: ignore[no-untyped-def]
    """Return the scratch memory of one thread for scanning columns of up to n_codes codes."""
    return Scratch(
        np.empty(LANES, dtype=np.int64),
        np.empty(LANES, dtype=np.int64),
        np.empty(BLOCK),
        np.empty(BLOCK),
        np.empty(BLOCK),
        np.empty(BLOCK),
        np.empty(LANES * (n_codes + 1), dtype=np.int64),
        np.empty(LANES * (n_codes + 1), dtype=np.bool_),
        np.empty(n_codes, dtype=np.int64),
        np.empty(2 * LANES * (n_codes + 1)),
        np.empty(2 * LANES),
        np.empty(LANES),
        np.empty(LANES),
        np.empty(LANES, dtype=np.int64),
        np.empty(LANES, dtype=np.int64),
        np.empty(LANES, dtype=np.int64),
        np.empty(n_codes),
        np.empty(n_codes, dtype=np.int64),
        np.empty(n_codes, dtype=np.int64),
        np.empty(n_codes + 1),
        np.empty(n_codes + 1),
    )


def _address(context: Any, builder: Any, signature: Any, arguments: Any, k: int) -> Any:
    number = context.get_value_type(signature.args[k].dtype)
    data = context.make_array(signature.args[k])(context, builder, arguments[k]).data
    return builder.bitcast(data, llvmlite.ir.VectorType(number, LANES).as_pointer())


def _everywhere(builder: Any, number: Any) -> Any:
    vector = llvmlite.ir.VectorType(number.type, LANES)
    address = llvmlite.ir.IntType(32)
    first = builder.insert_element(
        llvmlite.ir.Constant(vector, llvmlite.ir.Undefined), number, address(0)
    )
    zeros = llvmlite.ir.Constant(llvmlite.ir.VectorType(address, LANES), [0] * LANES)
    return builder.shuffle_vector(first, first, zeros)


def _unpack(builder: Any, cells: Any, units: Any) -> tuple[Any, Any]:
    """Emit code that splits a vector of histogram cells into its two class weights; units: two float64 vectors."""
    half = llvmlite.ir.VectorType(llvmlite.ir.IntType(32), LANES)
    shift = llvmlite.ir.Constant(cells.type, [32] * LANES)
    first = builder.sitofp(builder.trunc(builder.ashr(cells, shift), half), units[0].type)
    second = builder.uitofp(builder.trunc(cells, half), units[1].type)
    return builder.fmul(first, units[0]), builder.fmul(second, units[1])


@numba.njit(inline="always")
def unpack_masses(cell, criterion):  # type: ignore[no-untyped-def]
    """Return the class weights of a histogram cell, or sum of cells: int64, upper half signed, lower not."""
    first = np.float64(cell >> np.int64(32)) * criterion.first_unit
    return first, np.float64(cell & np.int64(0xFFFFFFFF)) * criterion.second_unit


@intrinsic
def _sum_codes(typing_context, cells, n_codes, total):  # type: ignore[no-untyped-def]
    """Write the sums over all codes of 8 columns side by side (the compiler would do one at a time) to total."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        row, total = (_address(context, builder, signature, arguments, k) for k in (0, 2))
        so_far = cgutils.alloca_once_value(
            builder, llvmlite.ir.Constant(row.type.pointee, [0] * LANES)
        )
        with cgutils.for_range(builder, arguments[1]) as code:
            cell = builder.load(builder.gep(row, [code.index]), align=8)
            builder.store(builder.add(builder.load(so_far), cell), so_far)
        builder.store(builder.load(so_far), total, align=8)
        return context.get_dummy_value()

    return numba.types.void(cells, numba.int64, total), generate


@intrinsic
def _drop_empty(typing_context, cells, n_codes, cuttable, kept_cells, kept_cuttable, codes, total):  # type: ignore[no-untyped-def]
    """Copy the histogram cells of codes that have rows in any of the 8 columns, and return their number.

    kept_cells and kept_cuttable get the codes with rows, codes their numbers, total their sum. A cut at a code without
    rows is the cut at the last code with some.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        row, kept, total = (_address(context, builder, signature, arguments, k) for k in (0, 3, 6))
        byte = llvmlite.ir.VectorType(llvmlite.ir.IntType(8), LANES).as_pointer()
        may, kept_may = (
            builder.bitcast(
                context.make_array(signature.args[k])(context, builder, arguments[k]).data, byte
            )
            for k in (2, 4)
        )
        numbers = context.make_array(signature.args[5])(context, builder, arguments[5]).data
        whole = llvmlite.ir.IntType(64)
        zeros = llvmlite.ir.Constant(row.type.pointee, [0] * LANES)
        so_far = cgutils.alloca_once_value(builder, zeros)
        end = cgutils.alloca_once_value(builder, whole(0))
        with cgutils.for_range(builder, arguments[1]) as code:
            cell = builder.load(builder.gep(row, [code.index]), align=8)
            builder.store(builder.add(builder.load(so_far), cell), so_far)
            at = builder.load(end)
            builder.store(cell, builder.gep(kept, [at]), align=8)
            of_code = builder.load(builder.gep(may, [code.index]), align=1)
            builder.store(of_code, builder.gep(kept_may, [at]), align=1)
            builder.store(code.index, builder.gep(numbers, [at]))
            filled = builder.icmp_signed("!=", cell, zeros)
            bits = builder.bitcast(filled, llvmlite.ir.IntType(LANES))
            is_kept = builder.icmp_signed("!=", bits, bits.type(0))
            builder.store(builder.add(at, builder.zext(is_kept, whole)), end)
        builder.store(builder.load(so_far), total, align=8)
        return builder.load(end)

    given = cells, numba.int64, cuttable, kept_cells, kept_cuttable, codes, total
    return numba.int64(*given), generate


@intrinsic
def _run_sums(  # type: ignore[no-untyped-def]
    typing_context, cells, n_codes, whole, units, sums, below_p, below_q, above_p, above_q
):
    """Write the class weights below and above each code of 8 columns, continuing `sums`, the cells below the first
    code.

    `whole` holds all cells of the columns.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        row, whole, sums, *outputs = (
            _address(context, builder, signature, arguments, k) for k in (0, 2, 4, 5, 6, 7, 8)
        )
        units = [_everywhere(builder, builder.extract_value(arguments[3], k)) for k in range(2)]
        all_cells = builder.load(whole, align=8)
        so_far = cgutils.alloca_once_value(builder, builder.load(sums, align=8))
        with cgutils.for_range(builder, arguments[1]) as code:
            cell = builder.load(builder.gep(row, [code.index]), align=8)
            below = builder.add(builder.load(so_far), cell)
            builder.store(below, so_far)
            above = builder.sub(all_cells, below)
            masses = *_unpack(builder, below, units), *_unpack(builder, above, units)
            for mass, output in zip(masses, outputs, strict=True):
                builder.store(mass, builder.gep(output, [code.index]), align=8)
        builder.store(builder.load(so_far), sums, align=8)
        return context.get_dummy_value()

    given = cells, numba.int64, whole, _UNITS, sums, below_p, below_q, above_p, above_q
    return numba.types.void(*given), generate


_UNITS = numba.types.UniTuple(numba.float64, 2)


@intrinsic
def _greatest(typing_context, value, n_codes, best):  # type: ignore[no-untyped-def]
    """Raise best, (8,) float64, to the maximum value of each column; value: (8 · n_codes,) float64."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        row, best = (_address(context, builder, signature, arguments, k) for k in (0, 2))
        so_far = cgutils.alloca_once_value(builder, builder.load(best, align=8))
        with cgutils.for_range(builder, arguments[1]) as code:
            given, known = (
                builder.load(builder.gep(row, [code.index]), align=8),
                builder.load(so_far),
            )
            more = builder.fcmp_ordered(">", given, known)
            builder.store(builder.select(more, given, known), so_far)
        builder.store(builder.load(so_far), best, align=8)
        return context.get_dummy_value()

    return numba.types.void(value, numba.int64, best), generate


@numba.njit(inline="always")
def score_of(objective, push, smoothing, p, q):  # type: ignore[no-untyped-def]
    """Return the score (see the module's table) of one side of a split with class weights p and q."""
    if objective == YOUDEN:
        return 0.0
    if objective == GRADIENT:
        return p**2 / (q + smoothing + 1e-300) if q > 0.0 else 0.0
    p = p if p > EPS_CLASS else 0.0
    q = q if q > EPS_CLASS else 0.0
    if objective == CLOSED:
        return -math.sqrt(p * q)
    if objective == NEWTON:
        return (p - q) ** 2 / (p + push * q + smoothing + 1e-300)
    share = push / (1.0 + push)
    if p > 0.0 and q > 0.0:
        return -math.exp(share * math.log(p) + (1.0 - share) * math.log(q))
    return 0.0


@numba.njit(inline="always")
def _value_of(objective, push, smoothing, p, q, other_p, other_q):  # type: ignore[no-untyped-def]
    """Return a cheap number that increases with the score of a split: the sum of both scores; for CLOSED minus its
    square.
    """
    if objective == GRADIENT:
        mass, other_mass = q + smoothing + 1e-300, other_q + smoothing + 1e-300
        p = p if q > 0.0 else 0.0
        other_p = other_p if other_q > 0.0 else 0.0
        return (p * p * other_mass + other_p * other_p * mass) / (mass * other_mass)
    if objective == PUSH:
        own = score_of(objective, push, smoothing, p, q)
        return own + score_of(objective, push, smoothing, other_p, other_q)
    p = p if p > EPS_CLASS else 0.0
    q = q if q > EPS_CLASS else 0.0
    other_p = other_p if other_p > EPS_CLASS else 0.0
    other_q = other_q if other_q > EPS_CLASS else 0.0
    if objective == CLOSED:
        square, other_square = p * q, other_p * other_q
        return -(square + other_square + 2.0 * math.sqrt(square * other_square))
    mass, other_mass = p + push * q + smoothing, other_p + push * other_q + smoothing
    mass, other_mass = mass + 1e-300, other_mass + 1e-300
    edge, other_edge = p - q, other_p - other_q
    return (edge * edge * other_mass + other_edge * other_edge * mass) / (mass * other_mass)


@kernel(
    numba.void(numba.int64, numba.int64, numba.boolean[::1], CRITERION_TYPE, numba.int64, _F1),
    inner=True,
    forceinline=True,
    error_model="numpy",
    fastmath={"nnan", "ninf", "nsz"},
)
def _value_cuts(objective, n, cuttable, criterion, scratch_address, value):  # type: ignore[no-untyped-def]
    """Write the value of the splits at n codes; `_NONE` if a split is not allowed."""
    scratch = scratch_at(scratch_address)
    masses_add = objective != GRADIENT
    above_p, above_q = scratch.above_p, scratch.above_q
    below_p, below_q = scratch.below_p, scratch.below_q
    for i in range(n):
        p, q, other_p, other_q = above_p[i], above_q[i], below_p[i], below_q[i]
        above = p + q if masses_add else q
        below = other_p + other_q if masses_add else other_q
        given = _value_of(objective, criterion.push, criterion.smoothing, p, q, other_p, other_q)
        may = cuttable[i] & (above >= criterion.least_mass) & (below >= criterion.least_mass)
        value[i] = given if may else _NONE


@kernel(
    numba.void(
        numba.int64,
        _I1,
        numba.int64,
        numba.int64,
        numba.from_dtype(COLUMN)[::1],
        numba.boolean[::1],
        CRITERION_TYPE,
        numba.int64,
        _F1,
    ),
    inner=True,
    forceinline=True,
    error_model="numpy",
)
def _scan_cuts(  # type: ignore[no-untyped-def]
    objective, histogram, n_known, side, columns, cuttable, criterion, scratch_address, value
):
    """Write the value of every split; missing values are below (side 0) or above (1). See `find_split`."""
    scratch = scratch_at(scratch_address)
    whole, sums = scratch.whole, scratch.sums
    above_p, above_q = scratch.above_p, scratch.above_q
    below_p, below_q = scratch.below_p, scratch.below_q
    missing_below = len(histogram) > LANES * n_known and side == 0
    for k in range(LANES):
        sums[k] = histogram[LANES * n_known + k] if missing_below else 0
        value[k] = _NONE
        below_p[k], below_q[k] = unpack_masses(sums[k], criterion)
        above_p[k], above_q[k] = unpack_masses(whole[k] - sums[k], criterion)
    if missing_below:
        _value_cuts(
            objective, LANES, cuttable[n_known * LANES :], criterion, scratch_address, value
        )
    units = criterion.first_unit, criterion.second_unit
    for first in range(0, n_known * LANES, BLOCK):
        n = min(BLOCK, n_known * LANES - first)
        cells = histogram[first : first + n]
        _run_sums(cells, n // LANES, whole, units, sums, below_p, below_q, above_p, above_q)
        for k in range(LANES):
            if columns[k].kind == BUNDLE:
                for i in range(k, n, LANES):
                    above_p[i], above_q[i] = unpack_masses(cells[i], criterion)
                    below_p[i], below_q[i] = unpack_masses(whole[k] - cells[i], criterion)
        given = cuttable[first:], criterion, scratch_address, value[LANES + first :]
        _value_cuts(objective, n, *given)
    _greatest(value, n_known + 1, scratch.best)


@intrinsic
def _greatest_youden(typing_context, cells, n_codes, above, whole, units, least_mass, best):  # type: ignore[no-untyped-def]
    """Raise `best` to the maximum |p q' - q p'| over the splits below each code of each of 8 columns.

    above: the cells above the first of these cuts; whole: all cells.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        row, above, whole, best = (
            _address(context, builder, signature, arguments, k) for k in (0, 2, 3, 6)
        )
        units = [_everywhere(builder, builder.extract_value(arguments[4], k)) for k in range(2)]
        p, q = _unpack(builder, builder.load(whole, align=8), units)
        least = _everywhere(builder, arguments[5])
        most = builder.fsub(builder.fadd(p, q), least)
        none = llvmlite.ir.Constant(p.type, [_NONE] * LANES)
        now = cgutils.alloca_once_value(builder, builder.load(above, align=8))
        so_far = cgutils.alloca_once_value(builder, builder.load(best, align=8))
        with cgutils.for_range(builder, arguments[1]) as code:
            cells_above = builder.load(now)
            own_p, own_q = _unpack(builder, cells_above, units)
            gain = builder.fsub(builder.fmul(own_p, q), builder.fmul(own_q, p))
            mass = builder.fadd(own_p, own_q)
            enough = builder.and_(
                builder.fcmp_ordered(">=", mass, least), builder.fcmp_ordered("<=", mass, most)
            )
            reverse = builder.fneg(gain)
            gain = builder.select(builder.fcmp_ordered(">", gain, reverse), gain, reverse)
            gain = builder.select(enough, gain, none)
            known = builder.load(so_far)
            more = builder.fcmp_ordered(">", gain, known)
            builder.store(builder.select(more, gain, known), so_far)
            cell = builder.load(builder.gep(row, [code.index]), align=8)
            builder.store(builder.sub(cells_above, cell), now)
        builder.store(builder.load(so_far), best, align=8)
        return context.get_dummy_value()

    given = cells, numba.int64, above, whole, _UNITS, numba.float64, best
    return numba.types.void(*given), generate


@numba.njit(**INNER)
def _scan_youden(histogram, n_known, side, columns, cuttable, criterion, scratch_address):  # type: ignore[no-untyped-def]
    """Raise each column's best value to that of its splits with missing values below (0) or above (1), for YOUDEN."""
    scratch = scratch_at(scratch_address)
    sums, whole, best = scratch.sums, scratch.whole, scratch.best
    least_mass = criterion.least_mass
    missing_below = len(histogram) > LANES * n_known and side == 0
    for k in range(LANES):
        sums[k] = whole[k] - (histogram[LANES * n_known + k] if missing_below else 0)
    units = criterion.first_unit, criterion.second_unit
    _greatest_youden(histogram, n_known, sums, whole, units, least_mass, best)
    for k in range(LANES):
        if columns[k].kind == BUNDLE:
            best[k] = _NONE
            whole_p, whole_q = unpack_masses(whole[k], criterion)
            for code in range(1, columns[k].n_bins):
                p, q = unpack_masses(histogram[code * LANES + k], criterion)
                enough = p + q >= least_mass and p + q <= whole_p + whole_q - least_mass
                if cuttable[code * LANES + k] and enough:
                    best[k] = max(best[k], abs(p * whole_q - q * whole_p))


@numba.njit(**INNER)
def _first_near_youden(  # type: ignore[no-untyped-def]
    histogram, n_known, k, column, cuttable, n_sides, criterion, least_value, whole
):
    """Return the first split of a column with at least `least_value` for YOUDEN, and the side of missing values."""
    whole_p, whole_q = unpack_masses(whole[k], criterion)
    least_mass = criterion.least_mass
    has_missing = len(histogram) > LANES * n_known
    for side in range(n_sides):
        above = whole[k]
        if has_missing and side == 0:
            above -= histogram[n_known * LANES + k]
        for code in range(n_known):
            cell = code * LANES + k
            is_bundle = column.kind == BUNDLE
            p, q = unpack_masses(histogram[cell] if is_bundle else above, criterion)
            enough = p + q >= least_mass
            enough &= p + q <= whole_p + whole_q - least_mass
            if is_bundle:
                enough &= cuttable[cell]
            if enough and abs(p * whole_q - q * whole_p) >= least_value:
                return code if is_bundle else code - 1, side
            above -= histogram[cell]
    return 0, 0


@kernel(
    numba.void(
        _I1,
        numba.int64,
        numba.int64,
        numba.from_dtype(COLUMN)[::1],
        numba.from_dtype(MEMBER)[::1],
        CRITERION_TYPE,
        numba.int64,
    ),
    inner=True,
    error_model="numpy",
)
def _drop_falls(histogram, n_known, n_sides, columns, members, criterion, scratch_address):  # type: ignore[no-untyped-def]
    """Invalidate splits that violate a monotone constraint, and update each column's best value; see `find_split`.

    The histogram has no empty codes. A cut breaks a constraint if the step of the side that may not be less is less.
    The cut that separates the missing from all values breaks none.
    """
    scratch = scratch_at(scratch_address)
    whole = scratch.whole
    n_cuts = n_known + 1
    for k in range(LANES):
        is_bundle = columns[k].kind == BUNDLE
        if not is_bundle and columns[k].direction == 0:
            continue
        scratch.best[k] = _NONE
        for side in range(n_sides):
            below = np.int64(0)
            if len(histogram) > LANES * n_known and side == 0:
                below = histogram[n_known * LANES + k]
            scratch.best[k] = max(scratch.best[k], scratch.value[LANES * side * n_cuts + k])
            for i in range(n_known):
                code, cell = scratch.kept[i], histogram[i * LANES + k]
                below += cell
                of_below, direction = below, columns[k].direction
                if is_bundle:
                    if code == 0 or code >= columns[k].n_bins:
                        continue
                    of_below = whole[k] - cell
                    direction = members[columns[k].first_member + code - 1].direction
                at = LANES * (side * n_cuts + i + 1) + k
                if direction != 0 and scratch.value[at] > _NONE:
                    p, q = unpack_masses(of_below, criterion)
                    other_p, other_q = unpack_masses(whole[k] - of_below, criterion)
                    if direction * _rise(criterion, p, q, other_p, other_q) < 0.0:
                        scratch.value[at] = _NONE
                scratch.best[k] = max(scratch.best[k], scratch.value[at])


@numba.njit(inline="always")
def _rise(criterion, p, q, other_p, other_q):  # type: ignore[no-untyped-def]
    """Return a number with the sign of (step of the side other_p, other_q) minus (step of the side p, q)."""
    if criterion.objective == GRADIENT:
        return other_p * (q + criterion.smoothing) - p * (other_q + criterion.smoothing)
    p, q, other_p, other_q = max(p, 0.0), max(q, 0.0), max(other_p, 0.0), max(other_q, 0.0)
    if criterion.objective == NEWTON:
        mass = p + criterion.push * q + criterion.smoothing
        other_mass = other_p + criterion.push * other_q + criterion.smoothing
        return (other_p - other_q) * mass - (p - q) * other_mass
    return other_p * q - p * other_q


@numba.njit(**INNER)
def _first_near(value, k, n_cuts, n_sides, least):  # type: ignore[no-untyped-def]
    """Return the first split of column k whose value is at least `least`, and the side of missing values."""
    for side in range(n_sides):
        for cut in range(n_cuts):
            if value[LANES * (side * n_cuts + cut) + k] >= least:
                return cut - 1, side
    return 0, 0


@kernel(
    numba.void(
        _I1,
        numba.from_dtype(GROUP),
        numba.from_dtype(COLUMN)[::1],
        numba.from_dtype(MEMBER)[::1],
        numba.boolean[::1],
        numba.boolean[::1],
        CRITERION_TYPE,
        numba.int64,
        numba.from_dtype(SPLIT),
    ),
    error_model="numpy",
)
def find_split(  # type: ignore[no-untyped-def]
    histogram, group, columns, members, allowed, cuttable, criterion, scratch_address, best_split
):
    """Write the best split of a leaf over the columns of one group to `best_split`.

    histogram: (8 · n_codes,) int64, both masses of each cell [code, column], see `unpack_masses`; allowed: (8,) bool,
    the columns that may be used; cuttable: (8 · n_codes,) bool, the cells at which a cut is allowed, see
    `coding.Table.cell_feature`.
    Writes all of `best_split` but its group. Among equals the lowest feature wins, then the missing below, then the
    lowest cut. If the leaf has no missing, later ones go to the side of greater mass.
    """
    scratch = scratch_at(scratch_address)
    total, best, gain = scratch.total, scratch.best, scratch.gain
    is_youden = criterion.objective == YOUDEN
    n_known = group.n_codes - group.has_missing
    cells, kept_cuttable, n_kept = histogram, cuttable, n_known
    if group.has_cuts and not is_youden:
        cells, kept_cuttable = scratch.cells, scratch.cuttable
        n_kept = _drop_empty(
            histogram, n_known, cuttable, cells, kept_cuttable, scratch.kept, scratch.whole
        )
        for k in range(LANES if group.has_missing else 0):
            cells[n_kept * LANES + k] = histogram[n_known * LANES + k]
            kept_cuttable[n_kept * LANES + k] = cuttable[n_known * LANES + k]
            scratch.whole[k] += histogram[n_known * LANES + k]
        cells = cells[: (n_kept + group.has_missing) * LANES]
    else:
        _sum_codes(histogram, group.n_codes, scratch.whole)
    for k in range(LANES):
        total[2 * k], total[2 * k + 1] = unpack_masses(scratch.whole[k], criterion)
    best_split.gain = 0.0
    best_split.lane = -1
    masses_add = criterion.objective != GRADIENT
    whole = total[1] + (total[0] if masses_add else 0.0)
    if whole < 2.0 * criterion.least_mass:
        return
    if is_youden:
        criterion = _with_some_mass(criterion, whole)
    missing_mass = 0.0
    for k in range(LANES):
        best[k] = _NONE
        if group.has_missing:
            p, q = unpack_masses(histogram[n_known * LANES + k], criterion)
            missing_mass += q + (p if masses_add else 0.0)
    n_cuts, n_sides = n_kept + 1, 2 if missing_mass > MASS_RTOL * whole else 1
    # Because the objective is a constant here, the compiler makes vector code.
    for side in range(n_sides if group.has_cuts else 0):
        value = scratch.value[side * n_cuts * LANES :]
        given = cells, n_kept, side, columns, kept_cuttable, criterion, scratch_address, value
        if criterion.objective == CLOSED:
            _scan_cuts(CLOSED, *given)
        elif criterion.objective == PUSH:
            _scan_cuts(PUSH, *given)
        elif criterion.objective == NEWTON:
            _scan_cuts(NEWTON, *given)
        elif criterion.objective == GRADIENT:
            _scan_cuts(GRADIENT, *given)
        else:
            _scan_youden(histogram, n_known, side, columns, cuttable, criterion, scratch_address)
    if group.is_constrained:
        _drop_falls(cells, n_kept, n_sides, columns, members, criterion, scratch_address)
    slack = MASS_RTOL * (total[0] * total[1] if is_youden else whole)
    tie = 10.0 * slack
    least_gain = -1.0 if is_youden else tie
    greatest = least_gain
    for k in range(LANES):
        gain[k] = -1.0
        if not allowed[k] or columns[k].kind == PADDING:
            continue
        p, q = total[2 * k], total[2 * k + 1]
        undivided = score_of(criterion.objective, criterion.push, criterion.smoothing, p, q)
        if columns[k].kind == CATEGORICAL:
            subset_gain, missing_above, _, _ = find_subset(
                histogram, n_known, k, criterion, p, q, undivided, scratch_address
            )
            gain[k] = subset_gain
            scratch.side[k] = missing_above
        elif best[k] > _NONE:
            is_square = criterion.objective == CLOSED
            gain[k] = (-math.sqrt(-best[k]) if is_square else best[k]) - undivided
        greatest = max(greatest, gain[k])
    if greatest <= least_gain:
        return
    for k in range(LANES):
        if gain[k] < greatest - tie:
            continue
        feature, cut, side = columns[k].feature, BY_SUBSET, scratch.side[k]
        if columns[k].kind != CATEGORICAL:
            own_tie = slack
            if criterion.objective == CLOSED:
                own_tie *= 2.0 * math.sqrt(-best[k]) + own_tie
            least_value = best[k] - own_tie
            if is_youden:
                of_column = (
                    k,
                    columns[k],
                    cuttable,
                    n_sides,
                    criterion,
                    least_value,
                    scratch.whole,
                )
                cut, side = _first_near_youden(histogram, n_known, *of_column)
            else:
                cut, side = _first_near(scratch.value, k, n_cuts, n_sides, least_value)
                cut = scratch.kept[cut] if cut >= 0 else cut
        if columns[k].kind == BUNDLE:
            feature = members[columns[k].first_member + cut - 1].feature
        if best_split.lane < 0 or feature < best_split.feature:
            best_split.gain, best_split.feature, best_split.lane = gain[k], feature, k
            best_split.cut, best_split.missing_above = cut, side
    if best_split.cut == BY_SUBSET:
        return
    # The side of later missing values, if this leaf has none.
    lane = best_split.lane
    is_bundle = columns[lane].kind == BUNDLE
    first, last = (
        (best_split.cut, best_split.cut + 1) if is_bundle else (best_split.cut + 1, n_known)
    )
    above = missing_mass = 0.0
    for code in range(first, last):
        p, q = unpack_masses(histogram[code * LANES + lane], criterion)
        above += q + (p if masses_add else 0.0)
    if group.has_missing:
        p, q = unpack_masses(histogram[n_known * LANES + lane], criterion)
        missing_mass = q + (p if masses_add else 0.0)
    if missing_mass <= MASS_RTOL * whole:
        if is_bundle and not members[columns[lane].first_member + best_split.cut - 1].on_above:
            above = whole - above
        best_split.missing_above = 2.0 * above > whole * (1.0 + SIDE_RTOL)


@numba.njit(error_model="numpy", **INNER)
def _best_prefix(above_p, above_q, first, last, criterion, total_p, total_q):  # type: ignore[no-untyped-def]
    """Return the best score of splits between two indices, and its index (-1: none). above_p, above_q: masses above."""
    masses_add = criterion.objective != GRADIENT
    whole = total_q + (total_p if masses_add else 0.0)
    best = -1e300
    at = -1
    for k in range(first, last):
        p, q = above_p[k], above_q[k]
        above = q + (p if masses_add else 0.0)
        if above >= criterion.least_mass and whole - above >= criterion.least_mass:
            value = score_of(criterion.objective, criterion.push, criterion.smoothing, p, q)
            value += score_of(
                criterion.objective, criterion.push, criterion.smoothing, total_p - p, total_q - q
            )
            if value > best + MASS_RTOL * whole:
                best = value
                at = k
    return best, at


@numba.njit(**INNER)
def _with_some_mass(criterion, whole):  # type: ignore[no-untyped-def]
    """Return the criterion with a minimum leaf weight above the rounding error of a leaf of weight `whole`."""
    return take_criterion(criterion, max(criterion.least_mass, EPS_SIDE * whole))


@numba.njit(**INNER)
def take_criterion(values, least_mass):  # type: ignore[no-untyped-def]
    """Return a `SplitCriterion` with the values of a criterion (or record) and this minimum leaf weight."""
    return SplitCriterion(
        values.objective,
        values.push,
        values.smoothing,
        least_mass,
        values.category_penalty,
        values.category_mass,
        values.category_smoothing,
        values.class_positive,
        values.class_negative,
        values.inverse_ess_positive,
        values.inverse_ess_negative,
        values.first_unit,
        values.second_unit,
    )


@numba.njit(error_model="numpy", **INNER)
def _find_youden_subset(histogram, n_known, lane, criterion, total_p, total_q, scratch_address):  # type: ignore[no-untyped-def]
    """Find the best category subset of a column for YOUDEN; see `find_subset`.

    The shares of positives of codes with enough mass are shrunk as far as chance explains them
    (`core.coding.categories`). The gain is that of the shrunken masses. If chance explains all differences, codes are
    not cut from each other, only from those that go with the missing.
    """
    scratch = scratch_at(scratch_address)
    positive, negative, least = (
        criterion.class_positive,
        criterion.class_negative,
        criterion.least_mass,
    )
    masses, shrunk = np.zeros((2, n_known)), np.empty((2, n_known))
    for code in range(n_known):
        p, q = unpack_masses(histogram[code * LANES + lane], criterion)
        if p + q >= least * (1.0 - MASS_RTOL):
            masses[0, code], masses[1, code] = p / positive, q / negative
    codes, order = scratch.codes, scratch.order
    n = order_bins(
        masses,
        n_known,
        criterion.inverse_ess_positive,
        criterion.inverse_ess_negative,
        order[:n_known],
        shrunk,
    )
    known_p = known_q = shrunk_p = shrunk_q = 0.0
    for k in range(n):
        p, q = unpack_masses(histogram[order[k] * LANES + lane], criterion)
        known_p += p
        known_q += q
        shrunk_p += shrunk[0, k]
        shrunk_q += shrunk[1, k]
        codes[n - 1 - k] = order[k]  # by falling share
    mass = known_p + known_q
    rest = total_p + total_q - known_p - known_q
    rest = rest if rest > EPS_SIDE * (total_p + total_q) else 0.0
    rest_p = max(total_p - known_p, 0.0) / positive
    rest_q = max(total_q - known_q, 0.0) / negative
    all_p, all_q = rest_p + shrunk_p, rest_q + shrunk_q
    n_apart = n
    if n > 0:
        lowest = shrunk[0, 0] / (shrunk[0, 0] + shrunk[1, 0])
        highest = shrunk[0, n - 1] / (shrunk[0, n - 1] + shrunk[1, n - 1])
        n_apart = 1 if highest - lowest <= SHARE_ATOL else n
    best, at, missing_above = -1.0, 0, False
    mass_above = 0.0
    for side in range(2 if rest > 0.0 else 1):
        p, q = all_p - (1 - side) * rest_p, all_q - (1 - side) * rest_q
        above = mass + side * rest
        for cut in range(n_apart):  # `cut` codes, those of the lowest shares, lie below
            if cut > 0:
                p -= shrunk[0, cut - 1]
                q -= shrunk[1, cut - 1]
                of_code = unpack_masses(histogram[codes[n - cut] * LANES + lane], criterion)
                above -= of_code[0] + of_code[1]
            gain = abs(p * all_q - q * all_p)
            enough = above >= least and mass + rest - above >= least
            if enough and gain > best + MASS_RTOL * all_p * all_q:
                best, at, missing_above = gain, n - cut, side == 1
                mass_above = above
    if rest == 0.0:
        missing_above = 2.0 * mass_above > (total_p + total_q) * (1.0 + SIDE_RTOL)
    for k in range(n):
        order[k] = k
    return best * positive * negative, missing_above, n, at


@kernel(
    numba.types.Tuple((numba.float64, numba.boolean, numba.int64, numba.int64))(
        _I1,
        numba.int64,
        numba.int64,
        CRITERION_TYPE,
        numba.float64,
        numba.float64,
        numba.float64,
        numba.int64,
    ),
    inner=True,
    error_model="numpy",
)
def find_subset(histogram, n_known, lane, criterion, total_p, total_q, undivided, scratch_address):  # type: ignore[no-untyped-def]
    """Find the best subset split of a categorical column; for YOUDEN see `_find_youden_subset`.

    histogram: (8 · n_codes,) int64; undivided: score of the whole. Returns the gain less the penalty, whether the
    missing lie above, the number n of codes in the order, and the number m of those above the cut: `scratch.codes` in
    the order `scratch.order` are the n codes, and the first m of them lie above. All other codes go with the missing.
    """
    scratch = scratch_at(scratch_address)
    if criterion.objective == YOUDEN:
        return _find_youden_subset(
            histogram, n_known, lane, criterion, total_p, total_q, scratch_address
        )
    masses_add = criterion.objective != GRADIENT
    # The codes in the order, by falling share, equal ones by code.
    smoothing = criterion.category_smoothing
    mean = total_p / max(total_q + (total_p if masses_add else 0.0), 1e-300)
    share, codes = scratch.share, scratch.codes
    n = 0
    in_order = largest = 0.0
    for code in range(n_known):
        p, q = unpack_masses(histogram[code * LANES + lane], criterion)
        mass = p + q if masses_add else q
        if mass > EPS_CLASS and mass >= criterion.category_mass:
            share[n] = -(p + smoothing * mean) / (mass + smoothing)
            codes[n] = code
            n += 1
            in_order += mass
            largest = max(largest, mass)
    # Of the side without the greatest category, or without all that go with the missing, no more than the rest remains.
    whole = total_q + (total_p if masses_add else 0.0)
    most = whole - max(largest, whole - in_order)
    if n == 0 or most < criterion.least_mass - MASS_RTOL * whole:
        return 0.0, False, 0, 0
    order = scratch.order[:n]
    sort_stably(share[:n], order)
    above_p, above_q = scratch.sum_p, scratch.sum_q
    above_p[0] = above_q[0] = 0.0
    for k in range(n):
        p, q = unpack_masses(histogram[codes[order[k]] * LANES + lane], criterion)
        above_p[k + 1] = above_p[k] + p
        above_q[k + 1] = above_q[k] + q
    rest_p, rest_q = total_p - above_p[n], total_q - above_q[n]
    rest = rest_q + (rest_p if masses_add else 0.0)
    best, at = _best_prefix(above_p, above_q, 1, n + 1, criterion, total_p, total_q)
    missing_above = False
    if rest > MASS_RTOL * whole:
        for k in range(n + 1):
            above_p[k] += rest_p
            above_q[k] += rest_q
        value, k = _best_prefix(above_p, above_q, 1, n, criterion, total_p, total_q)
        if value > best + MASS_RTOL * whole:
            best, at, missing_above = value, k, True
    elif at >= 0:
        above = above_q[at] + (above_p[at] if masses_add else 0.0)
        missing_above = 2.0 * above > whole * (1.0 + SIDE_RTOL)
    if at < 0:
        return 0.0, False, 0, 0
    beyond_two = float(max(n - (1 if rest > MASS_RTOL * whole else 2), 0))
    penalty = criterion.category_penalty * (beyond_two + 2.0 * math.sqrt(2.0 * beyond_two))
    return best - undivided - penalty, missing_above, n, at


@kernel(
    numba.void(
        _I1,
        numba.from_dtype(GROUP),
        numba.from_dtype(COLUMN)[::1],
        numba.from_dtype(MEMBER)[::1],
        CRITERION_TYPE,
        numba.int64,
        numba.from_dtype(SPLIT),
        numba.uint8[::1],
    ),
    error_model="numpy",
)
def mark_codes(histogram, group, columns, members, criterion, scratch_address, split, above):  # type: ignore[no-untyped-def]
    """Write to above, (n_codes,) uint8, which codes lie above a split; `histogram` is that of the split leaf."""
    scratch = scratch_at(scratch_address)
    lane = split.lane
    n_known = group.n_codes - group.has_missing
    column = columns[lane]
    if split.cut == BY_SUBSET:
        whole = np.int64(0)
        for code in range(group.n_codes):
            whole += histogram[code * LANES + lane]
        p, q = unpack_masses(whole, criterion)
        if criterion.objective == YOUDEN:
            criterion = _with_some_mass(criterion, p + q)
        _, missing_above, n, at = find_subset(
            histogram, n_known, lane, criterion, p, q, 0.0, scratch_address
        )
        for code in range(group.n_codes):
            above[code] = missing_above
        for k in range(n):
            above[scratch.codes[scratch.order[k]]] = k < at
        return
    for code in range(n_known):
        if column.kind == BUNDLE:
            on = code == split.cut
            above[code] = on == (members[column.first_member + split.cut - 1].on_above != 0)
        else:
            above[code] = code > split.cut
    if group.has_missing:
        above[n_known] = split.missing_above
