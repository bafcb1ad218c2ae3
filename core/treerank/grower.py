"""Growing the cut trees of many cells at once.

A cell starts as leaf c of its own number. A split leaves what is above in its leaf and moves what
is below to a new one. In each round every leaf that may be split is (or of each cell the one that
gains most, where there is a limit to its leaves), the smaller child's histogram is added up, and
the sibling's is what remains of the parent's. At last a cell's leaves are merged to two sides, and
what is left of its cut tree is written down.

With P and N a leaf's masses and p and n those above a cut, the cut gains |p N - n P|: Λ in masses
instead of shares, the Youden index of the cut times P N. The share of positives of a category is
shrunk as far as chance explains it (`core.coding.categories`), and taken only of a bin that holds the mass of a
leaf, here, in this node: the others go with the missing. Where chance explains all, bins are not cut
from each other, only from the missing and the small ones.

Growth goes through phases. `prepare` lists the pieces of work of each, quickly, and `do_pieces` does
them: they write to places of their own and may be shared out to threads. Sums over the rows of a
leaf go by runs of fixed length and are added in order, so that the trees are the same whatever the
number of threads.

Only these two kernels are handed all arrays, which the compiler takes long over.
"""

from typing import Any, NamedTuple

import numba
import numpy as np

from core.coding import MISSING, N_CODES
from core.coding.by_row import CELLS, COLUMNS, PER_WORD, WORDS, prefetch
from core.coding.categories import SAME_SHARE, order_bins
from core.kernel import kernel
from core.trees.grower import gather_rows

from .growth import TIE

# Mass, in shares of the leaf's, below which it is what subtraction left of nothing.
EPSILON = 1e-12

RUN_ROWS = 1 << 15
"""Rows of a run: what one thread does at a time. Runs are summed apart, then added in order."""

ADD, FIND, DIVIDE, GATHER, CHILDREN, MERGE = range(6)  # the phases


def _record(integers: str, floats: str = "") -> np.dtype[np.void]:
    fields = [(name, np.int64) for name in integers.split()]
    return np.dtype(fields + [(name, np.float64) for name in floats.split()], align=True)


BLOCK = _record("n_words n_bins has_missing")
"""Words of a row in use, the greatest number of bins of its columns, whether any of them has missing values."""

CUT = _record("feature cut missing_above", "gain")
"""Greater codes lie above; of categories those after the first `cut + 1` of their order. The gain is in masses, below
0 without a cut."""

WAY = _record("cut missing_above", "gain mass_above mass_missing")
"""To cut a column: its best cut, the mass above, and that of what is missing or has no place in the order."""

LEAF = _record(
    "start middle stop place depth cell is_open feature cut missing_above split to_top subtree",
    "positive negative gain",
)
"""Where its rows start, its negatives start and its rows stop; the place of its histogram; its depth in its cut tree;
its cell; whether it may be split; its best cut; its last split; whether its rows go to the top child; while leaves
are merged its subtree, a leaf or ~ a split; its masses; the gain of its best cut, below 0 without one."""

SPLIT = _record("old new feature cut missing_above above below")
"""The leaf, which keeps what is above; the new one, which takes what is below; the cut; its subtrees, as of leaves."""

RUN = _record("leaf start stop half spare n_above above below", "mass_above mass_below")
"""Its leaf and rows; 0 for positives, 1 for negatives; the spare histogram that takes their sum, -1 for the leaf's own.
Where they are divided, how many lie above, where those above and those below go, and what they weigh."""

PAIR = _record("added sibling first_run last_run")
"""The leaf that is added up and its sibling, -1 for none; its first run, and one after the last."""

NODE = _record("feature cut missing_above split to_top")
"""Of a cut tree; the feature of a leaf is -1."""

SIDE = _record("start middle stop", "positive negative")
"""Of a cell that is divided: its rows, as of leaves, and its masses."""

CELL = _record("n_places best n_leaves n_merged", "gain")
"""One after the last place of a histogram that it has taken; its leaf that gains most, -1 for none; the leaves of its
cut tree; the cuts of which both leaves went to one side; Λ of its split, in masses, 0 without one."""

COUNTS = _record("n_leaves n_splits n_pairs n_new")
"""Leaves and splits so far; pairs to find cuts for; splits of the present round."""


class Work(NamedTuple):
    """The arrays of growth, shared by its kernels.

    Attributes
    ----------
    words : ndarray of shape (n_blocks, n_words), uint64
        See `core.coding.by_row`.
    blocks : ndarray of shape (n_blocks,), `BLOCK`
    n_unordered : ndarray of shape (n_blocks, 32), int64
        Of a categorical column its number of bins, else 0.
    weights : ndarray of shape (n_rows,) or (0,), float64
        Empty where all are 1.
    classes : ndarray of shape (4,), float64
        Mass of each class in all rows; how finely it is divided, see `core.coding.categories.Spread`.
    rows, divided : ndarray of shape (n_rows,), uint32
        Those of a cell together, its positives first; and where they wait before they are put in their places.
    histograms : ndarray of shape (n_places, n_blocks, 2, 256 * 32), float64
        Positive and negative mass per code and column.
    spare : ndarray of shape (n_spare, n_blocks, 256 * 32), float64
        What further runs of a leaf add to it.
    allowed : ndarray of shape (n_cells, n_blocks, 32), bool
        Which columns may be cut in each cell.
    leaves : ndarray of shape (n_leaves,), `LEAF`
    found : ndarray of shape (n_leaves, n_blocks), `CUT`
        The best of each block.
    above : ndarray of shape (n_splits, 256), uint8
        Which codes lie above a split's cut.
    runs : ndarray of shape (n_runs,), `RUN`
    pairs : ndarray of shape (n_leaves,), `PAIR`
        Siblings to be finished, or leaves being divided.
    splits : ndarray of shape (n_splits,), `SPLIT`
    cells : ndarray of shape (n_cells,), `CELL`
    sides : ndarray of shape (n_cells, 2), `SIDE`
        The top child, then the bottom one.
    nodes : ndarray of shape (n_cells, 2 * most leaves - 1), `NODE`
        Of each cell's cut tree, in preorder.
    node_masses : ndarray of shape (n_cells, most leaves, 2), float64
        Of its leaves; from the last place back, the feature and the gain, in masses, of each cut that was merged.
    counts : ndarray of shape (1,), `COUNTS`
    """

    words: Any
    blocks: Any
    n_unordered: Any
    weights: Any
    classes: Any
    rows: Any
    divided: Any
    histograms: Any
    spare: Any
    allowed: Any
    leaves: Any
    found: Any
    above: Any
    runs: Any
    pairs: Any
    splits: Any
    cells: Any
    sides: Any
    nodes: Any
    node_masses: Any
    counts: Any


_I8, _F8, _F1, _F2 = numba.int64, numba.float64, numba.float64[::1], numba.float64[:, ::1]
_ROWS, _BYTES = numba.uint32[::1], numba.uint8[::1]
_LEAVES, _RUNS, _SPLITS, _CELLS = (
    numba.from_dtype(dtype)[::1] for dtype in (LEAF, RUN, SPLIT, CELL)
)
_SIDES, _NODES = numba.from_dtype(SIDE)[:, ::1], numba.from_dtype(NODE)[:, ::1]
_TYPES = {
    "words": numba.uint64[:, ::1],
    "blocks": numba.from_dtype(BLOCK)[::1],
    "n_unordered": numba.int64[:, ::1],
    "weights": _F1,
    "classes": _F1,
    "rows": numba.uint32[::1],
    "divided": numba.uint32[::1],
    "histograms": numba.float64[:, :, :, ::1],
    "spare": numba.float64[:, :, ::1],
    "allowed": numba.boolean[:, :, ::1],
    "leaves": _LEAVES,
    "found": numba.from_dtype(CUT)[:, ::1],
    "above": numba.uint8[:, ::1],
    "runs": _RUNS,
    "pairs": numba.from_dtype(PAIR)[::1],
    "splits": _SPLITS,
    "cells": _CELLS,
    "sides": _SIDES,
    "nodes": _NODES,
    "node_masses": numba.float64[:, :, ::1],
    "counts": numba.from_dtype(COUNTS)[::1],
}
WORK_TYPE = numba.types.NamedTuple([_TYPES[name] for name in Work._fields], Work)


# Rows between asking for a row and using it: about the time that memory takes. Adding a row takes
# thirty times as long as dividing one off.
AHEAD_OF_ADDING = 24
AHEAD_OF_DIVIDING = 256

_COLUMNS, _WORDS, _PER_WORD = np.uint64(COLUMNS), np.uint64(WORDS), np.uint64(PER_WORD)
_BITS, _ONE_CODE = np.uint64(64 // PER_WORD), np.uint64(255)


@numba.njit(inline="always")
def _add_rows(words, rows, weights, start, stop, n_words, histogram):  # type: ignore[no-untyped-def]
    last = stop - 1
    weighted = len(weights) > 0
    for i in range(start, stop):
        ahead = np.int64(rows[np.uint64(min(i + AHEAD_OF_ADDING, last))])
        prefetch(words, ahead * WORDS)
        row = np.uint64(rows[np.uint64(i)])
        weight = 1.0
        if weighted:
            prefetch(weights, ahead)
            weight = weights[row]
        for q in range(n_words):
            word = words[row * _WORDS + np.uint64(q)]
            for k in range(PER_WORD):
                code = (word >> (_BITS * np.uint64(k))) & _ONE_CODE
                histogram[code * _COLUMNS + np.uint64(PER_WORD * q + k)] += weight


@kernel(numba.void(numba.uint64[::1], _ROWS, _F1, _I8, _I8, _I8, _F1), inner=True, _nrt=False)
def add_rows(words, rows, weights, start, stop, n_words, histogram):  # type: ignore[no-untyped-def]
    """Add the weights of rows[start:stop] to histogram[code * 32 + column] of a block."""
    # With a constant for the number of words the compiler unrolls all 32 additions of a row.
    if n_words == 4:
        _add_rows(words, rows, weights, start, stop, 4, histogram)
    elif n_words == 3:
        _add_rows(words, rows, weights, start, stop, 3, histogram)
    elif n_words == 2:
        _add_rows(words, rows, weights, start, stop, 2, histogram)
    else:
        _add_rows(words, rows, weights, start, stop, 1, histogram)


@kernel(_I8(numba.uint64[::1], _I8, _BYTES, _I8, _I8, _ROWS, _ROWS), inner=True, _nrt=False)
def divide_rows(words, column, above, start, stop, rows, divided):  # type: ignore[no-untyped-def]
    """Divide rows[start:stop] by the codes of a column of a block; return how many lie above.

    `above` holds a 1 for each code above, a 0 for the others. Rows above go to the front of
    divided[start:stop] in their order, the others to its back in reverse.
    """
    at = np.uint64(column) // _PER_WORD
    shift = _BITS * (np.uint64(column) % _PER_WORD)
    low, high, last = np.uint64(start), np.uint64(stop - 1), stop - 1
    for i in range(start, stop):
        ahead = np.int64(rows[np.uint64(min(i + AHEAD_OF_DIVIDING, last))])
        prefetch(words, ahead * WORDS + np.int64(at))
        row = rows[np.uint64(i)]
        # written to both ends, one of which is written again: no branch to mispredict
        divided[low] = divided[high] = row
        code = (words[np.uint64(row) * _WORDS + at] >> shift) & _ONE_CODE
        is_above = np.uint64(above[code])
        low += is_above
        high -= np.uint64(1) - is_above
    return np.int64(low) - start


@kernel(_F8(_ROWS, _F1, _I8, _I8), inner=True, _nrt=False)
def sum_rows(rows, weights, start, stop):  # type: ignore[no-untyped-def]
    """Add up the weights of rows[start:stop], in order."""
    if len(weights) == 0:
        return float(stop - start)
    total = 0.0
    for i in range(start, stop):
        total += weights[np.uint64(rows[np.uint64(i)])]
    return total


@kernel(_I8(_F2, _I8, _I8, _F8, _F1, numba.int64[::1], _F2), inner=True)
def _order(histogram, column, n_bins, least, classes, order, mixed):  # type: ignore[no-untyped-def]
    """Write the bins that hold enough by their shrunk share of positives, the lowest first.

    Their mixed masses, in shares of the class's mass in all rows, go to `mixed`. Returns their number.
    """
    masses = np.empty((2, n_bins))
    for code in range(n_bins):
        masses[0, code] = masses[1, code] = 0.0
        at = code * COLUMNS + column
        if histogram[0, at] + histogram[1, at] >= least * (1.0 - TIE):
            masses[0, code] = max(histogram[0, at], 0.0) / classes[0]
            masses[1, code] = max(histogram[1, at], 0.0) / classes[1]
    return order_bins(masses, n_bins, classes[2], classes[3], order, mixed)


@kernel(
    numba.void(_F2, _I8, _I8, numba.types.UniTuple(_F8, 3), _F1, numba.from_dtype(WAY)), inner=True
)
def scan_categories(histogram, column, n_bins, limits, classes, way):  # type: ignore[no-untyped-def]
    """Find a categorical column's best cut.

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
    rest = rest if rest > EPSILON * (total_p + total_n) else 0.0
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
    way.gain, way.mass_missing = -1.0, rest
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
            if enough and gain > way.gain + slack:
                way.gain, way.mass_above = gain, above
                way.cut, way.missing_above = cut, side
    way.gain *= classes[0] * classes[1]


@kernel(numba.void(_F2, _I8, _I8, _I8, numba.boolean, _F8, _F1, _BYTES), inner=True)
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


@kernel(
    numba.void(_F2, numba.types.UniTuple(_I8, 2), numba.boolean, numba.types.UniTuple(_F8, 3), _F2),
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
        _F2,
        numba.from_dtype(BLOCK),
        numba.int64[::1],
        numba.boolean[::1],
        numba.from_dtype(LEAF),
        _F8,
        _F1,
        numba.from_dtype(CUT),
    ),
    inner=True,
)
def find_cut(  # type: ignore[no-untyped-def]
    histogram, block, n_unordered, allowed, leaf, least_mass, classes, found
):
    """Find the best cut among up to 32 columns: write its gain, column, cut and side of the missing.

    A gain below 0 means that there is no cut with enough mass on both sides. `classes`: the mass of
    each class in all rows, and how finely it is divided. The lowest column wins among
    equals, then the missing below, then the lowest cut. The missing go to the side where they gain most, not to the
    node's mean as in §5; where this leaf has none, a later one goes to the side of greater mass.
    """
    width, n_bins = 8 * block.n_words, block.n_bins
    total_p, total_n = leaf.positive, leaf.negative
    total = total_p + total_n
    least = max(least_mass, EPSILON * total)
    limits = (total_p, total_n, least)
    slack = TIE * total_p * total_n
    lanes = np.empty((3, COLUMNS))
    for j in range(COLUMNS):
        lanes[2, j] = -1.0
    for side in range(2 if block.has_missing else 1):
        _scan_columns(histogram, (width, n_bins), side == 1, limits, lanes)
    ways = np.empty(COLUMNS, dtype=WAY)
    found.gain = -1.0
    column = 0
    for j in range(width):
        if not allowed[j]:
            continue
        if n_unordered[j] > 0:
            scan_categories(histogram, j, n_unordered[j], limits, classes, ways[j])
            lanes[2, j] = ways[j].gain
        if lanes[2, j] > found.gain + 10.0 * slack:
            found.gain = lanes[2, j]
            column = j
    if found.gain < 0.0:
        return
    way = ways[column]
    if n_unordered[column] == 0:
        # the first cut whose gain is the greatest but for rounding
        missing = MISSING * COLUMNS + column
        way.mass_missing = histogram[0, missing] + histogram[1, missing]
        way.cut = way.missing_above = 0
        way.mass_above = 0.0
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
                    way.cut, way.missing_above, way.mass_above = cut, side, p + n
                    break
                cut += 1
            side += 1
    found.feature, found.cut, found.missing_above = column, way.cut, way.missing_above
    if way.mass_missing <= EPSILON * total:
        found.missing_above = 2.0 * way.mass_above > total * (1.0 + TIE)


@kernel(numba.void(_F1, _F1, _F8, _I8), inner=True, _nrt=False)
def _change(histogram, other, sign, n_cells):  # type: ignore[no-untyped-def]
    """Add or subtract a histogram: the bins in use, and the missing one."""
    for cell in range(n_cells):
        histogram[cell] += sign * other[cell]
    for cell in range(COLUMNS * MISSING, CELLS):
        histogram[cell] += sign * other[cell]


@kernel(
    numba.void(
        _I8,
        _I8,
        _I8,
        _LEAVES,
        _SPLITS,
        _CELLS,
        _SIDES,
        _ROWS,
        _ROWS,
        _NODES,
        numba.float64[:, :, ::1],
    ),
    inner=True,
    _nrt=False,
)
def merge_leaves(  # type: ignore[no-untyped-def]
    c, n_leaves, n_splits, leaves, splits, cells, sides, rows, divided, nodes, node_masses
):
    """Merge the leaves of a cell to two sides, sort its rows by side and class, and write its cut tree.

    The partition-based rule (Fig. 4), by which the leaves of a cell are merged to the two sides that
    gain most, sorts by β/α and cuts at the best prefix, the shortest among equals. Along that order a
    leaf adds β - α, so the prefix is all leaves where β > α.
    """
    cell, top, bottom = cells[c], sides[c, 0], sides[c, 1]
    total_p = total_n = 0.0
    for k in range(n_leaves):
        if leaves[k].cell == c:
            total_p += leaves[k].positive
            total_n += leaves[k].negative
    for side in range(2):
        sides[c, side].positive = sides[c, side].negative = 0.0
    n_top = n_own = 0
    start = np.int64(len(rows))
    for k in range(n_leaves):
        leaf = leaves[k]
        if leaf.cell == c:
            n_own += 1
            start = min(start, leaf.start)
            p, q = leaf.positive, leaf.negative
            leaf.to_top = p * total_n - q * total_p > TIE * total_p * total_n
            n_top += leaf.to_top
            side = top if leaf.to_top else bottom
            side.positive += p
            side.negative += q
    cell.gain = 0.0
    if not 0 < n_top < n_own:
        return
    cell.gain = top.positive * total_n - top.negative * total_p
    at = start
    for part in range(4):  # positives of the top, its negatives, those of the bottom
        side, half = sides[c, part // 2], part % 2
        if half == 0:
            side.start = at
        for k in range(n_leaves):
            leaf = leaves[k]
            if leaf.cell == c and leaf.to_top != part // 2:
                first, last = (leaf.start, leaf.middle) if half == 0 else (leaf.middle, leaf.stop)
                for i in range(first, last):
                    divided[at] = rows[i]
                    at += 1
        if half == 0:
            side.middle = at
        else:
            side.stop = at
    for i in range(start, at):
        rows[i] = divided[i]
    # trees as they grow together, backwards, without splits both of whose sides go the same way
    n_merged = 0
    for k in range(n_leaves):
        if leaves[k].cell == c:  # those of other cells may be in other threads
            leaves[k].subtree = k
    for s in range(n_splits - 1, -1, -1):
        split = splits[s]
        old = leaves[split.old]
        if old.cell != c:
            continue
        over, under = old.subtree, leaves[split.new].subtree
        if over >= 0 and under >= 0 and leaves[over].to_top == leaves[under].to_top:
            first, second = leaves[over], leaves[under]
            n_merged += 1  # with each a leaf less is left, so that there is room for both
            gain = first.positive * second.negative - first.negative * second.positive
            node_masses[c, -n_merged, 0] = split.feature
            node_masses[c, -n_merged, 1] = abs(gain)
            first.positive += second.positive
            first.negative += second.negative
        else:
            split.above, split.below = over, under
            old.subtree = ~s
    # In preorder; what waits lies at the back of `nodes`, each for one or more of those places.
    back = nodes.shape[1] - 1
    nodes[c, back].feature = leaves[c].subtree
    n_waiting, n_nodes, n_cut_leaves = 1, 0, 0
    while n_waiting > 0:
        n_waiting -= 1
        this = nodes[c, back - n_waiting].feature
        node = nodes[c, n_nodes]
        if this >= 0:
            node.feature = -1
            node.cut = node.missing_above = node.split = 0
            node.to_top = leaves[this].to_top
            node_masses[c, n_cut_leaves, 0] = leaves[this].positive
            node_masses[c, n_cut_leaves, 1] = leaves[this].negative
            n_cut_leaves += 1
        else:
            split = splits[~this]
            node.feature, node.cut = split.feature, split.cut
            node.missing_above, node.split, node.to_top = split.missing_above, ~this, 0
            nodes[c, back - n_waiting].feature = split.below
            nodes[c, back - n_waiting - 1].feature = split.above
            n_waiting += 2
        n_nodes += 1
    cell.n_leaves, cell.n_merged = n_cut_leaves, n_merged


@kernel(numba.void(_I8, _I8, _I8, _I8, _F8, WORK_TYPE), _nrt=False)
def do_pieces(first, step, n, phase, least_mass, work):  # type: ignore[no-untyped-def]
    """Do every step-th piece of a phase. No two pieces write to the same place."""
    blocks, leaves, runs, rows, divided = (
        work.blocks,
        work.leaves,
        work.runs,
        work.rows,
        work.divided,
    )
    n_blocks = len(blocks)
    for t in range(first, n, step):
        if phase == ADD:
            run, b = runs[t // n_blocks], t % n_blocks
            histogram = work.histograms[leaves[run.leaf].place, b, run.half]
            if run.spare >= 0:
                histogram = work.spare[run.spare, b]
            for i in range(COLUMNS * blocks[b].n_bins):
                histogram[i] = 0.0
            for i in range(COLUMNS * MISSING, CELLS):
                histogram[i] = 0.0
            n_words = blocks[b].n_words
            add_rows(work.words[b], rows, work.weights, run.start, run.stop, n_words, histogram)
        elif phase == FIND:
            pair, b = work.pairs[t // n_blocks], t % n_blocks
            own, n_cells = work.histograms[leaves[pair.added].place, b], COLUMNS * blocks[b].n_bins
            for r in range(pair.first_run, pair.last_run):
                if runs[r].spare >= 0:
                    _change(own[runs[r].half], work.spare[runs[r].spare, b], 1.0, n_cells)
            for which in range(2 if pair.sibling >= 0 else 1):
                k = pair.added
                histogram = own
                if which == 1:
                    k = pair.sibling
                    histogram = work.histograms[leaves[k].place, b]
                    for half in range(2):
                        _change(histogram[half], own[half], -1.0, n_cells)
                if leaves[k].is_open:
                    found = work.found[k, b]
                    find_cut(
                        histogram,
                        blocks[b],
                        work.n_unordered[b],
                        work.allowed[leaves[k].cell, b],
                        leaves[k],
                        least_mass,
                        work.classes,
                        found,
                    )
                    found.feature += b * COLUMNS
        elif phase == DIVIDE:
            run = runs[t]
            leaf = leaves[run.leaf]
            run.n_above = divide_rows(
                work.words[leaf.feature // COLUMNS],
                leaf.feature % COLUMNS,
                work.above[leaf.split],
                run.start,
                run.stop,
                rows,
                divided,
            )
        elif phase == GATHER:
            run = runs[t]
            middle = run.start + run.n_above
            gather_rows(divided, run.start, middle, run.stop, rows, run.above, run.below)
            end_above, end_below = run.above + run.n_above, run.below + run.stop - middle
            run.mass_above = sum_rows(rows, work.weights, run.above, end_above)
            run.mass_below = sum_rows(rows, work.weights, run.below, end_below)
        else:
            merge_leaves(
                t,
                work.counts[0].n_leaves,
                work.counts[0].n_splits,
                leaves,
                work.splits,
                work.cells,
                work.sides,
                rows,
                divided,
                work.nodes,
                work.node_masses,
            )


@kernel(_I8(_LEAVES, _I8, _I8, _RUNS, _I8), inner=True, _nrt=False)
def _list_runs(leaves, k, half, runs, n):  # type: ignore[no-untyped-def]
    """List the runs of a class of a leaf from the n-th on; return how many there are then."""
    leaf = leaves[k]
    start, stop = (leaf.start, leaf.middle) if half == 0 else (leaf.middle, leaf.stop)
    while start < stop:
        run = runs[n]
        run.leaf, run.half, run.start = k, half, start
        start = min(start + RUN_ROWS, stop)
        run.stop = start
        n += 1
    return n


@kernel(_I8(_I8, numba.types.Tuple((_I8, _I8, _F8)), WORK_TYPE), _nrt=False)
def prepare(phase, limits, work):  # type: ignore[no-untyped-def]
    """Prepare a phase of a round; return the number of its pieces.

    ADD lists the runs of the leaves to add up. DIVIDE chooses the leaves to split and notes their
    splits. GATHER gives each part of a divided run its place, and the parts below to new leaves.
    CHILDREN, which ends a round, sums them up and lists the pairs of which one may be split.

    limits: 0 to split all leaves that may be, or the number of cells, to split of each the best; the
    greatest depth; the least mass of a leaf.
    """
    n_cells, max_depth, least_mass = limits
    counts, leaves, runs, pairs = work.counts[0], work.leaves, work.runs, work.pairs
    splits, cells, n_blocks = work.splits, work.cells, len(work.blocks)
    n_leaves, n_splits, n_new = counts.n_leaves, counts.n_splits, counts.n_new
    n = 0
    if phase == ADD:
        n_spare = 0
        for k in range(counts.n_pairs):
            added = pairs[k].added
            pairs[k].first_run = n
            for half in range(2):
                first = n
                n = _list_runs(leaves, added, half, runs, n)
                if n == first:  # no rows: its half of the histogram is still to be cleared
                    run = runs[n]
                    run.leaf, run.half = added, half
                    run.start = run.stop = 0
                    n += 1
                for r in range(first, n):
                    runs[r].spare = n_spare if r > first else -1
                    n_spare += r > first
            pairs[k].last_run = n
        return n * n_blocks
    if phase == DIVIDE:
        # the best of the blocks' cuts, the lowest block among equals
        for half in range(2 * counts.n_pairs):
            k = pairs[half // 2].sibling if half % 2 == 1 else pairs[half // 2].added
            if k < 0 or not leaves[k].is_open:
                continue
            leaf = leaves[k]
            leaf.gain = -1.0
            slack = 10.0 * TIE * leaf.positive * leaf.negative
            for b in range(n_blocks):
                found = work.found[k, b]
                if found.gain > leaf.gain + slack:
                    leaf.gain, leaf.feature = found.gain, found.feature
                    leaf.cut, leaf.missing_above = found.cut, found.missing_above
        for c in range(n_cells):
            cells[c].best = -1
        n_new = 0
        for k in range(n_leaves):
            leaf = leaves[k]
            if leaf.gain < 0.0:
                continue
            if n_cells == 0:
                splits[n_splits + n_new].old = k
                n_new += 1
            else:
                best = cells[leaf.cell].best
                if best < 0 or leaf.gain > leaves[best].gain * (1.0 + TIE):
                    cells[leaf.cell].best = k
        for c in range(n_cells):
            if cells[c].best >= 0:
                splits[n_splits + n_new].old = cells[c].best
                n_new += 1
        for new in range(n_new):
            split = splits[n_splits + new]
            leaf = leaves[split.old]
            split.new, split.feature = n_leaves + new, leaf.feature
            split.cut, split.missing_above = leaf.cut, leaf.missing_above
            leaf.split = n_splits + new
            b, column = leaf.feature // COLUMNS, leaf.feature % COLUMNS
            write_above(
                work.histograms[leaf.place, b],
                column,
                work.n_unordered[b, column],
                leaf.cut,
                leaf.missing_above != 0,
                least_mass,
                work.classes,
                work.above[leaf.split],
            )
            pairs[new].first_run = n
            for half in range(2):
                n = _list_runs(leaves, split.old, half, runs, n)
            pairs[new].last_run = n
        counts.n_new = n_new
        return n
    if phase == GATHER:
        for new in range(n_new):
            above, below = leaves[splits[n_splits + new].old], leaves[n_leaves + new]
            first_run, last_run = pairs[new].first_run, pairs[new].last_run
            positive_above = negative_above = 0
            for r in range(first_run, last_run):
                if runs[r].half == 0:
                    positive_above += runs[r].n_above
                else:
                    negative_above += runs[r].n_above
            positive_below = above.middle - above.start - positive_above
            below.stop = above.stop
            above.middle = above.start + positive_above
            above.stop = below.start = above.middle + negative_above
            below.middle = below.start + positive_below
            for half in range(2):
                to_above = above.start if half == 0 else above.middle
                to_below = below.start if half == 0 else below.middle
                for r in range(first_run, last_run):
                    run = runs[r]
                    if run.half == half:
                        run.above, run.below = to_above, to_below
                        to_above += run.n_above
                        to_below += run.stop - run.start - run.n_above
        return n
    for new in range(n_new):
        old = splits[n_splits + new].old
        above, below = leaves[old], leaves[n_leaves + new]
        below.cell = above.cell
        above.depth += 1
        below.depth = above.depth
        for side in range(2):
            child = above if side == 0 else below
            p = q = 0.0
            for r in range(pairs[new].first_run, pairs[new].last_run):
                mass = runs[r].mass_above if side == 0 else runs[r].mass_below
                if runs[r].half == 0:
                    p += mass
                else:
                    q += mass
            child.positive, child.negative = p, q
            child.gain = -1.0
            may = min(p, q) > 0.0 and p + q >= 2.0 * least_mass
            child.is_open = may and child.depth < max_depth
        if not above.is_open and not below.is_open:
            continue
        # what is added up takes a new place, what remains the parent's
        cell = cells[above.cell]
        if above.stop - above.start < below.stop - below.start:
            pairs[n].added, pairs[n].sibling = old, n_leaves + new
            below.place, above.place = above.place, cell.n_places
        else:
            pairs[n].added, pairs[n].sibling = n_leaves + new, old
            below.place = cell.n_places
        cell.n_places += 1
        n += 1
    counts.n_leaves, counts.n_splits = n_leaves + n_new, n_splits + n_new
    counts.n_pairs, counts.n_new = n, 0
    return n
