"""Growing the trees of a random forest: each node draws its features, and the tree grows until nothing can be split.

A tree is grown on column-wise bin codes, all of whose columns are ordered, level by level. The rows of a leaf are one
run of a list, which a split divides in place. A node sums the masses of both classes by code for the drawn features
alone. Nodes of few rows sort them instead. A tree depends on its key and the rows, not on the thread that grows it.
"""

import math
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats
from core.coding.bins import Codes
from core.kernels import INNER, kernel
from core.trees.sampling import uniform

MAX_DEPTH = 64
N_CODES = 256
MISSING = N_CODES - 1

# Rows of a node up to which sorting them can be faster than sums by code.
MAX_SORTED_ROWS = 48

NODE_SPLIT = np.dtype(
    [
        ("leaf", np.uint16),  # that it splits; see `core.boosting.tree_sum.SPLITS`
        ("missing_above", np.bool_),
        ("cut", np.int16),  # the greatest code below; -1 separates the missing from all values
        ("column", np.int32),
    ],
    align=True,
)


class ForestShape(NamedTuple):
    """What the trees of a forest have in common."""

    n_positives: int
    """Rows before this one are positives."""
    n_drawn: int
    """Features that a node draws."""
    min_mass: float
    """Minimum mass of a leaf, in rows."""
    max_leaves: int
    is_random: bool
    """Whether trees have all rows and random thresholds (extremely randomised trees), not a bootstrap sample."""
    is_entropy: bool
    """Whether a split minimises the entropy, not the Gini impurity."""


class GrownTree(NamedTuple):
    """A tree: its splits in the order of growth, and the masses in its leaves."""

    splits: npt.NDArray[np.void]
    """Shape (n_leaves - 1,), `NODE_SPLIT`."""
    positive: Floats
    weight: Floats
    """Mass of the positives and of all rows. Shape (n_leaves,)."""


_F1 = numba.float64[::1]
_SHAPE = numba.types.NamedTuple(
    (
        numba.int64,
        numba.int64,
        numba.float64,
        numba.int64,
        numba.boolean,
        numba.boolean,
    ),
    ForestShape,
)


def grow_tree(
    codes: Codes, values: Floats, mass: Floats, shape: ForestShape, key: int
) -> GrownTree:
    """Grow a tree.

    codes: (n_columns, n_rows), uint8; positives come first; 255 is missing.
    values: (n_columns, 256); of the codes, for random thresholds.
    mass: (n_rows,); number of rows that each row stands for.
    key: of its draws, below 2^64.

    O(n_rows · n_drawn · depth).
    """
    most = min(shape.max_leaves, codes.shape[1])
    splits, masses = np.empty(most, dtype=NODE_SPLIT), np.empty((2, most))
    n_leaves = _grow_tree(codes, values, mass, shape, np.uint64(key), splits, *masses)
    return GrownTree(splits[: n_leaves - 1].copy(), *masses[:, :n_leaves].copy())


@numba.njit(inline="always")
def _purity(positive, negative, is_entropy):  # type: ignore[no-untyped-def]
    """Return the purity of a side, times its mass: higher is better, up to a constant for both sides together."""
    total = positive + negative
    if not is_entropy:
        return (positive * positive + negative * negative) / total
    purity = -total * math.log(total)
    if positive > 0.0:
        purity += positive * math.log(positive)
    if negative > 0.0:
        purity += negative * math.log(negative)
    return purity


@numba.njit(**INNER)
def _sort_codes(own, rows, times, m, code, here):  # type: ignore[no-untyped-def]
    """List the codes of few rows by insertion; see `_sum_codes`."""
    here[MISSING, 0] = here[MISSING, 1] = 0.0
    n_here = 0
    for row in rows:
        c, kind = np.int64(own[row]), np.int64(row < m)
        if c == MISSING:
            here[MISSING, kind] += times[row]
            continue
        at = n_here
        while at > 0 and code[at - 1] > c:
            at -= 1
        if at > 0 and code[at - 1] == c:
            here[at - 1, kind] += times[row]
            continue
        for k in range(n_here, at, -1):
            code[k] = code[k - 1]
            here[k, 0], here[k, 1] = here[k - 1, 0], here[k - 1, 1]
        code[at], here[at, 1 - kind], here[at, kind] = c, 0.0, times[row]
        n_here += 1
    return n_here


@numba.njit(**INNER)
def _sum_codes(own, rows, times, m, code, here, sums, values, part):  # type: ignore[no-untyped-def]
    """List the codes of rows in a column, ascending, with the masses of both classes; return their number.

    own: (n_rows,) uint8, codes; rows: (n,) uint32, in the node; times: (n_rows,) float64, masses; sums: (256, 2)
    float64, 0; values: (256,) float64, of the codes. code: (256,) int64, and here: (256, 2) float64, the masses of
    negatives and positives, are written; here[255] has the missing.

    part: at least 0: list only the two codes at a threshold, this part of the way from the least value to the greatest.
    """
    low, high = np.int64(MISSING), np.int64(-1)
    for row in rows:
        c = np.int64(own[row])
        if c != MISSING:
            low, high = min(low, c), max(high, c)
    cut, step = low, max(high - low, np.int64(1))
    if part >= 0.0 and high > low:
        threshold = values[low] + part * (values[high] - values[low])
        cut = low + np.searchsorted(values[low + 1 : high], threshold, side="right")
    if part < 0.0:
        step = np.int64(1)
        for row in rows:
            sums[own[row], np.int64(row < m)] += times[row]
    else:
        for row in rows:
            c = np.int64(own[row])
            side = high if c > cut else low
            sums[c if c == MISSING else side, np.int64(row < m)] += times[row]
    n_here = 0
    for k in range(low, high + 1, step):
        if sums[k, 0] + sums[k, 1] > 0.0:
            code[n_here] = k
            here[n_here, 0], here[n_here, 1] = sums[k, 0], sums[k, 1]
            sums[k, 0] = sums[k, 1] = 0.0
            n_here += 1
    here[MISSING, 0], here[MISSING, 1] = sums[MISSING, 0], sums[MISSING, 1]
    sums[MISSING, 0] = sums[MISSING, 1] = 0.0
    if part >= 0.0 and n_here == 2:
        code[0], code[1] = cut, cut + 1
    return n_here


@kernel(
    numba.int64(
        numba.uint8[:, ::1],
        numba.float64[:, ::1],
        _F1,
        _SHAPE,
        numba.uint64,
        numba.from_dtype(NODE_SPLIT)[::1],
        _F1,
        _F1,
    ),
    error_model="numpy",
)
def _grow_tree(codes, values, mass, shape, key, splits, positives, masses):  # type: ignore[no-untyped-def]
    """Grow a tree; return its number of leaves.

    codes: (n_columns, n_rows) uint8; values: (n_columns, 256) float64; mass: (n_rows,) float64; splits: (max_leaves,)
    `NODE_SPLIT`; positives, masses: (max_leaves,) float64, of the leaves. The last three are written.
    """
    n_columns, n_rows, m, most = codes.shape[0], codes.shape[1], shape.n_positives, len(masses)
    times = np.empty(n_rows)  # mass of a row in this tree
    rows, spare = np.empty(n_rows, dtype=np.uint32), np.empty(n_rows, dtype=np.uint32)
    start, end = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    depth, waiting = np.empty(most, dtype=np.int64), np.empty(2 * most, dtype=np.int64)
    columns = np.arange(n_columns)
    sums = np.zeros((N_CODES, 2))
    # The codes in a node, ascending, with the mass of negatives and of positives of each.
    code, here = np.empty(N_CODES, dtype=np.int64), np.empty((N_CODES, 2))
    counter = np.uint64(0)
    for i in range(n_rows):
        times[i] = mass[i] if shape.is_random else 0.0
    if not shape.is_random:
        for i in range(n_rows):  # as many of each class as there are
            low, high = (0, m) if i < m else (m, n_rows)
            counter += np.uint64(1)
            row = low + np.int64(uniform(key, counter) * (high - low))
            times[row] += mass[row]
    n = 0
    for i in range(n_rows):
        if times[i] > 0.0:
            rows[n] = i
            n += 1
    start[0], end[0], depth[0], waiting[0] = 0, n, 0, 0
    n_leaves, first, last = 1, 0, 1
    while first < last:
        leaf = waiting[first]
        first += 1
        own_rows = rows[start[leaf] : end[leaf]]
        total_n = total_p = 0.0
        for row in own_rows:
            if row < m:
                total_p += times[row]
            else:
                total_n += times[row]
        positives[leaf], masses[leaf] = total_p, total_p + total_n
        is_pure = total_p == 0.0 or total_n == 0.0
        if is_pure or n_leaves == most or depth[leaf] == MAX_DEPTH:
            continue
        best, best_column, best_cut, best_side = -np.inf, -1, -1, np.int64(0)
        for visited in range(n_columns):
            if visited >= shape.n_drawn and best_column >= 0:
                break
            counter += np.uint64(1)
            drawn = visited + np.int64(uniform(key, counter) * (n_columns - visited))
            column = columns[drawn]
            columns[drawn], columns[visited] = columns[visited], column
            own = codes[column]
            if shape.is_random:
                counter += np.uint64(1)
                part = uniform(key, counter)
                n_here = _sum_codes(own, own_rows, times, m, code, here, sums, values[column], part)
            elif len(own_rows) <= MAX_SORTED_ROWS:
                n_here = _sort_codes(own, own_rows, times, m, code, here)
            else:
                n_here = _sum_codes(own, own_rows, times, m, code, here, sums, values[column], -1.0)
            missing_n, missing_p = here[MISSING, 0], here[MISSING, 1]
            has_missing = missing_n + missing_p > 0.0
            below_n = below_p = 0.0
            for at in range(-1 if has_missing else 0, n_here - 1):
                if at >= 0:
                    below_n += here[at, 0]
                    below_p += here[at, 1]
                # the missing below, then above; alone below if the cut is below all values
                for side in range(2 if has_missing and at >= 0 else 1):
                    low_n, low_p = below_n, below_p
                    if side == 0:
                        low_n, low_p = below_n + missing_n, below_p + missing_p
                    high_n, high_p = max(total_n - low_n, 0.0), max(total_p - low_p, 0.0)
                    if min(low_n + low_p, high_n + high_p) < shape.min_mass:
                        continue
                    value = _purity(low_p, low_n, shape.is_entropy)
                    value += _purity(high_p, high_n, shape.is_entropy)
                    if value > best:
                        best, best_column, best_side = value, column, np.int64(side)
                        best_cut = (code[at] + code[at + 1] - 1) // 2 if at >= 0 else -1
                        if not has_missing:  # those to come follow the greater part
                            best_side = np.int64(high_n + high_p > low_n + low_p)
        if best_column < 0:
            continue
        own, n_above, n_below = codes[best_column], 0, 0
        for row in own_rows:
            c = np.int64(own[row])
            if best_side == 1 if c == MISSING else c > best_cut:
                own_rows[n_above] = row
                n_above += 1
            else:
                spare[n_below] = row
                n_below += 1
        own_rows[n_above:] = spare[:n_below]
        split = splits[n_leaves - 1]
        split.leaf, split.column, split.cut = leaf, best_column, best_cut
        split.missing_above = best_side == 1
        start[n_leaves], end[n_leaves] = start[leaf] + n_above, end[leaf]
        end[leaf] = start[n_leaves]
        depth[leaf] += 1
        depth[n_leaves] = depth[leaf]
        waiting[last], waiting[last + 1] = leaf, n_leaves
        last += 2
        n_leaves += 1
    return n_leaves
