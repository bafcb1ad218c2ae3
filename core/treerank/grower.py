"""Growing the cut trees of many cells at once.

A cell starts as leaf c of its own number. A split leaves what is above in its leaf and moves what
is below to a new one. In each round every leaf that may be split is (or of each cell the one that
gains most, where there is a limit to its leaves), the smaller child's histogram is added up, and
the sibling's is what remains of the parent's. At last a cell's leaves are merged to two sides, and
what is left of its cut tree is written down.

With P and N a leaf's masses and p and n those above a cut, the cut gains |p N - n P|: Λ in masses
instead of shares, the Youden index of the cut times P N. The share of positives of a category is
taken as far as chance does not explain it (`core.coding.categories`), and only of a bin that holds the mass of a
leaf, here, in this node: the others go with the missing. Where chance explains all, bins are not cut
from each other, only from the missing and the small ones.

Growth goes through phases. `prepare` lists the pieces of work of each, quickly, and `do_pieces` does
them: they write to places of their own and may be shared out to threads. Sums over the rows of a
leaf go by runs of fixed length and are added in order, so that the trees are the same whatever the
number of threads.

These two kernels are handed all arrays of growth, and those that take arrays one by one. Every kernel
that takes all of them has the compiler work through two hundred values: that is why there are two. And
they index rather than slice, and hold no reference (`_nrt`), which is what a compiler spends its time on.
"""

from typing import Any, NamedTuple

import numba
import numpy as np

from core.coding import MISSING, N_CODES
from core.coding.by_row import CELLS, COLUMNS, NARROW, WORDS, prefetch
from core.coding.categories import SAME_SHARE, order_bins
from core.coding.rows import AHEAD_OF_ADDING, add_codes, divide_rows, gather_rows
from core.kernel import kernel

from .growth import TIE

# Mass, in shares of the leaf's, below which it is what subtraction left of nothing.
EPSILON = 1e-12

RUN_ROWS = 1 << 15
"""Rows of a run: what one thread does at a time. Runs are summed apart, then added in order."""

# Columns of `leaves`: where a leaf's rows start, its positives end, and its rows end; the place of
# its histogram; its depth in its cut tree; its cell; its best cut; whether it may be split; its last
# split; what its subtree has become while leaves are merged: a leaf, or ~ a split.
START, MIDDLE, STOP, PLACE, DEPTH, CELL, FEATURE, CUT, MISSING_ABOVE, OPEN, SPLIT, SUBTREE = range(
    12
)
N_LEAF_COLUMNS = 12

# Columns of `runs`: the leaf, where its rows start and stop, which class; when they are added, the
# spare histogram that takes the sum, -1 for the leaf's own; when they are divided, how many lie
# above, and where those above and those below go.
LEAF, FROM, TO, CLASS, SPARE = range(5)
N_ABOVE, ABOVE, BELOW = 4, 5, 6
N_RUN_COLUMNS = 7

# Columns of `pairs`, siblings to be finished: the leaf that was added up, its sibling (-1: none),
# the first and one after the last of its runs. Of leaves being divided: the last two alone.
ADDED, SIBLING, FIRST_RUN, LAST_RUN = range(4)
N_PAIR_COLUMNS = 4

# Columns of `splits`: the leaf, which keeps what is above; the new one, which takes what is below;
# the feature, the cut, the side of the missing; its subtrees, as in `leaves`.
OLD, NEW, SPLIT_FEATURE = range(3)
SUBTREE_ABOVE, SUBTREE_BELOW = 5, 6
N_SPLIT_COLUMNS = 7

# Columns of `nodes`, of a cell's cut tree in preorder: the feature (-1: a leaf), the cut, the side of
# the missing, the split; of a leaf whether its rows go to the top child.
ASKED, AT, MISSING_SIDE, MADE_BY, TO_TOP = range(5)
N_NODE_COLUMNS = 5

# Columns of `cells`: start, middle and stop of the rows of the top child and of the bottom one, and
# one after the last place of a histogram that the cell has taken, the leaves of its cut tree, the leaf
# that gains most (-1: none), and the cuts of which both leaves went to one side.
LAST_PLACE, N_CUT_LEAVES, BEST, N_MERGED = 6, 7, 8, 9
N_CELL_COLUMNS = 10

# Members of `counts`: leaves and splits so far; pairs to find cuts for; splits of the present round.
N_LEAVES, N_SPLITS, N_PAIRS, N_NEW = range(4)
N_COUNTS = 4


class Work(NamedTuple):
    """The arrays of growth, shared by its kernels.

    Attributes
    ----------
    words : ndarray of shape (n_blocks, n_words), uint64
        See `core.coding.by_row`.
    blocks : ndarray of shape (n_blocks, 3), int64
        Of each block: its number of words in use, the greatest number of bins of its columns, and
        whether one of them has missing values.
    n_unordered : ndarray of shape (n_blocks, 32), int64
        Of a categorical column its number of bins, else 0.
    weights : ndarray of shape (n_rows,) or (0,), float64
        Empty where all are 1.
    classes : ndarray of shape (4,), float64
        Mass of each class in all rows; how finely it is divided, see `core.coding.categories.Spread`.
    rows : ndarray of shape (n_rows,), uint32
        Those of a cell together, its positives first.
    divided : ndarray of shape (n_rows,), uint32
        Where rows wait before they are put in their places.
    histograms : ndarray of shape (n_places, n_blocks, 2, 256 * 32), float64
        Positive and negative mass per code and column.
    spare : ndarray of shape (n_spare, n_blocks, 256 * 32), float64
        What further runs of a leaf add to it.
    allowed : ndarray of shape (n_cells, n_blocks, 32), bool
        Which columns may be cut in each cell.
    leaves : ndarray of shape (n_leaves, 12), int64
    masses : ndarray of shape (n_leaves, 2), float64
        Positive and negative.
    found : ndarray of shape (n_leaves, n_blocks + 1, 4), float64
        Gain, feature, cut and side of the missing of each block's best cut; last the best of all.
    above : ndarray of shape (n_splits, 256), uint8
        Which codes lie above a split's cut.
    runs : ndarray of shape (n_runs, 7), int64
    run_masses : ndarray of shape (n_runs, 2), float64
        Above and below.
    pairs : ndarray of shape (n_leaves, 4), int64
    splits : ndarray of shape (n_splits, 7), int64
    sides : ndarray of shape (n_leaves,), uint8
        Whether a leaf's rows go to the top child.
    cells : ndarray of shape (n_cells, 10), int64
    gains : ndarray of shape (n_cells, 5), float64
        Λ, in masses, of each cell's split; masses of the top child, then of the bottom one.
    nodes : ndarray of shape (n_cells, 2 * most leaves - 1, 5), int64
        Of each cell's cut tree.
    node_masses : ndarray of shape (n_cells, most leaves, 2), float64
        Of its leaves; from the last place back, the feature and the gain, in masses, of each cut that was merged.
    counts : ndarray of shape (4,), int64
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
    masses: Any
    found: Any
    above: Any
    runs: Any
    run_masses: Any
    pairs: Any
    splits: Any
    sides: Any
    cells: Any
    gains: Any
    nodes: Any
    node_masses: Any
    counts: Any


_I2, _F2 = numba.int64[:, ::1], numba.float64[:, ::1]
WORK_TYPE = numba.types.NamedTuple(
    (
        numba.uint64[:, ::1],
        _I2,
        _I2,
        numba.float64[::1],
        numba.float64[::1],
        numba.uint32[::1],
        numba.uint32[::1],
        numba.float64[:, :, :, ::1],
        numba.float64[:, :, ::1],
        numba.boolean[:, :, ::1],
        _I2,
        _F2,
        numba.float64[:, :, ::1],
        numba.uint8[:, ::1],
        _I2,
        _F2,
        _I2,
        _I2,
        numba.uint8[::1],
        _I2,
        _F2,
        numba.int64[:, :, ::1],
        numba.float64[:, :, ::1],
        numba.int64[::1],
    ),
    Work,
)


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
        add_codes(words, row, weight, n_words, NARROW, histogram)


@kernel(
    numba.void(
        numba.uint64[::1],
        numba.uint32[::1],
        numba.float64[::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.float64[::1],
    ),
    inner=True,
    _nrt=False,
)
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


@kernel(
    numba.float64(numba.uint32[::1], numba.float64[::1], numba.int64, numba.int64),
    inner=True,
    _nrt=False,
)
def sum_rows(rows, weights, start, stop):  # type: ignore[no-untyped-def]
    """Add up the weights of rows[start:stop], in order."""
    if len(weights) == 0:
        return float(stop - start)
    total = 0.0
    for i in range(start, stop):
        total += weights[np.uint64(rows[np.uint64(i)])]
    return total


@kernel(
    numba.int64(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.float64,
        numba.float64[::1],
        numba.int64[::1],
        numba.float64[:, ::1],
    ),
    inner=True,
)
def _order(histogram, column, n_bins, least, classes, order, mixed):  # type: ignore[no-untyped-def]
    """Write the bins that hold enough by their believed share of positives, the lowest first.

    Their mixed masses, in shares of the class's mass in all rows, go to `mixed`. Returns their number.
    """
    masses = np.empty((2, n_bins))
    for code in range(n_bins):
        masses[0, code] = masses[1, code] = 0.0
        at = code * COLUMNS + column
        if histogram[0, at] + histogram[1, at] >= least * (1.0 - TIE):
            masses[0, code] = max(histogram[0, at], 0.0) / classes[0]
            masses[1, code] = max(histogram[1, at], 0.0) / classes[1]
    return order_bins(masses, n_bins, 0.0, classes[2], classes[3], order, mixed)


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.types.UniTuple(numba.float64, 3),
        numba.float64[::1],
        numba.float64[::1],
    ),
    inner=True,
)
def scan_categories(histogram, column, n_bins, limits, classes, way):  # type: ignore[no-untyped-def]
    """Find a column's best cut: write its gain, cut, side of the missing, mass above and mass missing.

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
    way[0] = -1.0
    way[4] = rest
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
            if enough and gain > way[0] + slack:
                way[0], way[1], way[2], way[3] = gain, cut, side, above
    way[0] *= classes[0] * classes[1]


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.boolean,
        numba.float64,
        numba.float64[::1],
        numba.uint8[::1],
    ),
    inner=True,
)
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
    least = max(least_mass, EPSILON * total)
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
    has_none = ways[column, 4] <= EPSILON * total
    found[1], found[2] = column, ways[column, 1]
    found[3] = 2.0 * ways[column, 3] > total * (1.0 + TIE) if has_none else ways[column, 2]


ADD, FIND, DIVIDE, GATHER, CHILDREN, SETTLE = range(6)

_I8, _F8 = numba.int64, numba.float64


@kernel(numba.void(_F8[::1], _F8[::1], _F8, _I8), inner=True, _nrt=False)
def _change(histogram, other, sign, n_cells):  # type: ignore[no-untyped-def]
    """Add or subtract a histogram: the bins in use, and the missing one."""
    for cell in range(n_cells):
        histogram[cell] += sign * other[cell]
    for cell in range(COLUMNS * MISSING, CELLS):
        histogram[cell] += sign * other[cell]


@kernel(numba.void(_I8, _I8, _I8, _I8, _F8, WORK_TYPE), _nrt=False)
def do_pieces(first, step, n, phase, least_mass, work):  # type: ignore[no-untyped-def]
    """Do every step-th piece of a phase. No two pieces write to the same place.

    The partition-based rule (Fig. 4), by which the leaves of a cell are merged to the two sides that
    gain most, sorts by β/α and cuts at the best prefix, the shortest among equals. Along that order a
    leaf adds β - α, so the prefix is all leaves where β > α.
    """
    blocks, leaves, runs, masses = work.blocks, work.leaves, work.runs, work.masses
    rows, divided, words = work.rows, work.divided, work.words
    n_blocks = len(blocks)
    for t in range(first, n, step):
        if phase == ADD:
            r, block = t // n_blocks, t % n_blocks
            place, half = leaves[runs[r, LEAF], PLACE], runs[r, CLASS]
            histogram = work.histograms[place, block, half]
            if runs[r, SPARE] >= 0:
                histogram = work.spare[runs[r, SPARE], block]
            for i in range(COLUMNS * blocks[block, 1]):
                histogram[i] = 0.0
            for i in range(COLUMNS * MISSING, CELLS):
                histogram[i] = 0.0
            start, stop, n_words = runs[r, FROM], runs[r, TO], blocks[block, 0]
            add_rows(words[block], rows, work.weights, start, stop, n_words, histogram)
        elif phase == FIND:
            pair, block = t // n_blocks, t % n_blocks
            added, sibling = work.pairs[pair, ADDED], work.pairs[pair, SIBLING]
            n_cells = COLUMNS * blocks[block, 1]
            for r in range(work.pairs[pair, FIRST_RUN], work.pairs[pair, LAST_RUN]):
                if runs[r, SPARE] >= 0:
                    own = work.histograms[leaves[added, PLACE], block, runs[r, CLASS]]
                    _change(own, work.spare[runs[r, SPARE], block], 1.0, n_cells)
            for k in range(4 if sibling >= 0 else 1):
                # of the sibling first either class is subtracted; then both leaves are looked at
                if sibling >= 0 and k < 2:
                    own = work.histograms[leaves[added, PLACE], block, k]
                    _change(work.histograms[leaves[sibling, PLACE], block, k], own, -1.0, n_cells)
                    continue
                leaf = sibling if k == 3 else added
                if leaves[leaf, OPEN] != 0:
                    find_cut(
                        work.histograms[leaves[leaf, PLACE], block],
                        blocks[block],
                        work.n_unordered[block],
                        work.allowed[leaves[leaf, CELL], block],
                        masses[leaf],
                        least_mass,
                        work.classes,
                        work.found[leaf, block],
                    )
                    work.found[leaf, block, 1] += block * COLUMNS
        elif phase == DIVIDE:
            leaf = runs[t, LEAF]
            feature = leaves[leaf, FEATURE]
            runs[t, N_ABOVE] = divide_rows(
                words[feature // COLUMNS],
                NARROW,
                feature % COLUMNS,
                work.above[leaves[leaf, SPLIT]],
                runs[t, FROM],
                runs[t, TO],
                rows,
                divided,
            )
        elif phase == GATHER:
            above, below = runs[t, ABOVE], runs[t, BELOW]
            start, middle, stop = runs[t, FROM], runs[t, FROM] + runs[t, N_ABOVE], runs[t, TO]
            gather_rows(divided, start, middle, stop, rows, above, below)
            work.run_masses[t, 0] = sum_rows(rows, work.weights, above, above + middle - start)
            work.run_masses[t, 1] = sum_rows(rows, work.weights, below, below + stop - middle)
        else:
            cell, n_leaves = t, work.counts[N_LEAVES]
            total_p = total_n = 0.0
            for leaf in range(n_leaves):
                if leaves[leaf, CELL] == cell:
                    total_p += masses[leaf, 0]
                    total_n += masses[leaf, 1]
            top_p = top_n = bottom_p = bottom_n = 0.0
            n_top = n_own = 0
            for leaf in range(n_leaves):
                if leaves[leaf, CELL] == cell:
                    p, q = masses[leaf, 0], masses[leaf, 1]
                    n_own += 1
                    work.sides[leaf] = p * total_n - q * total_p > TIE * total_p * total_n
                    if work.sides[leaf] != 0:
                        n_top += 1
                        top_p += p
                        top_n += q
                    else:
                        bottom_p += p
                        bottom_n += q
            gains = work.gains
            gains[cell, 0] = 0.0
            gains[cell, 1], gains[cell, 2] = top_p, top_n
            gains[cell, 3], gains[cell, 4] = bottom_p, bottom_n
            if not 0 < n_top < n_own:
                continue
            gains[cell, 0] = top_p * total_n - top_n * total_p
            # rows of the leaves that go to the top before the others, positives first in each
            start = leaves[cell, START]
            for leaf in range(n_leaves):
                if leaves[leaf, CELL] == cell:
                    start = min(start, leaves[leaf, START])
            at = start
            for part in range(4):
                if part % 2 == 0:
                    work.cells[cell, part // 2 * 3] = at
                for leaf in range(n_leaves):
                    if leaves[leaf, CELL] == cell and work.sides[leaf] != part // 2:
                        for i in range(
                            leaves[leaf, START + part % 2], leaves[leaf, START + part % 2 + 1]
                        ):
                            divided[at] = rows[i]
                            at += 1
                work.cells[cell, part // 2 * 3 + part % 2 + 1] = at
            for i in range(start, at):
                rows[i] = divided[i]
            # trees as they grow together, backwards, without splits both of whose sides go the same way
            splits, nodes, node_masses = work.splits, work.nodes, work.node_masses
            n_merged = 0
            for leaf in range(n_leaves):
                if leaves[leaf, CELL] == cell:  # those of other cells may be in other threads
                    leaves[leaf, SUBTREE] = leaf
            for s in range(work.counts[N_SPLITS] - 1, -1, -1):
                old = splits[s, OLD]
                if leaves[old, CELL] == cell:
                    over, under = leaves[old, SUBTREE], leaves[splits[s, NEW], SUBTREE]
                    if over >= 0 and under >= 0 and work.sides[over] == work.sides[under]:
                        gain = (
                            masses[over, 0] * masses[under, 1] - masses[over, 1] * masses[under, 0]
                        )
                        n_merged += (
                            1  # with each a leaf less is left, so that there is room for both
                        )
                        node_masses[cell, -n_merged, 0] = splits[s, SPLIT_FEATURE]
                        node_masses[cell, -n_merged, 1] = abs(gain)
                        masses[over, 0] += masses[under, 0]
                        masses[over, 1] += masses[under, 1]
                    else:
                        splits[s, SUBTREE_ABOVE], splits[s, SUBTREE_BELOW] = over, under
                        leaves[old, SUBTREE] = ~s
            # In preorder; what waits lies at the back of `nodes`, each for one or more of those places.
            last = nodes.shape[1] - 1
            nodes[cell, last, ASKED] = leaves[cell, SUBTREE]
            n_waiting, n_nodes, n_cut_leaves = 1, 0, 0
            while n_waiting > 0:
                n_waiting -= 1
                this = nodes[cell, last - n_waiting, ASKED]
                if this >= 0:
                    for k in range(TO_TOP):
                        nodes[cell, n_nodes, k] = -1 if k == ASKED else 0
                    nodes[cell, n_nodes, TO_TOP] = work.sides[this]
                    node_masses[cell, n_cut_leaves, 0] = masses[this, 0]
                    node_masses[cell, n_cut_leaves, 1] = masses[this, 1]
                    n_cut_leaves += 1
                else:
                    for k in range(MADE_BY):
                        nodes[cell, n_nodes, k] = splits[~this, SPLIT_FEATURE + k]
                    nodes[cell, n_nodes, MADE_BY] = ~this
                    nodes[cell, n_nodes, TO_TOP] = 0
                    nodes[cell, last - n_waiting, ASKED] = splits[~this, SUBTREE_BELOW]
                    nodes[cell, last - n_waiting - 1, ASKED] = splits[~this, SUBTREE_ABOVE]
                    n_waiting += 2
                n_nodes += 1
            work.cells[cell, N_CUT_LEAVES], work.cells[cell, N_MERGED] = n_cut_leaves, n_merged


@kernel(_I8(_I8[:, ::1], _I8, _I8, _I8[:, ::1], _I8), inner=True, _nrt=False)
def _list_runs(leaves, leaf, half, runs, n):  # type: ignore[no-untyped-def]
    """List the runs of a class of a leaf from the n-th on; return how many there are then."""
    start, stop = leaves[leaf, START + half], leaves[leaf, START + half + 1]
    while start < stop:
        runs[n, LEAF] = leaf
        runs[n, FROM] = start
        start = min(start + RUN_ROWS, stop)
        runs[n, TO] = start
        runs[n, CLASS] = half
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
    counts, blocks, leaves, runs = work.counts, work.blocks, work.leaves, work.runs
    pairs, splits, found, masses, cells = (
        work.pairs,
        work.splits,
        work.found,
        work.masses,
        work.cells,
    )
    n_leaves, n_splits, n_new, last = counts[N_LEAVES], counts[N_SPLITS], counts[N_NEW], len(blocks)
    n = 0
    if phase == ADD:
        n_spare = 0
        for pair in range(counts[N_PAIRS]):
            pairs[pair, FIRST_RUN] = n
            for half in range(2):
                first = n
                n = _list_runs(leaves, pairs[pair, ADDED], half, runs, n)
                if n == first:  # no rows: its half of the histogram is still to be cleared
                    runs[n, LEAF] = pairs[pair, ADDED]
                    runs[n, FROM] = runs[n, TO] = 0
                    runs[n, CLASS] = half
                    n += 1
                for r in range(first, n):
                    runs[r, SPARE] = n_spare if r > first else -1
                    n_spare += r > first
            pairs[pair, LAST_RUN] = n
        return n * last
    if phase == DIVIDE:
        # the best of the blocks' cuts, the lowest block among equals; its gain goes last
        for half in range(2 * counts[N_PAIRS]):
            leaf = pairs[half // 2, SIBLING if half % 2 == 1 else ADDED]
            if leaf >= 0 and leaves[leaf, OPEN] != 0:
                found[leaf, last, 0] = -1.0
                slack = 10.0 * TIE * masses[leaf, 0] * masses[leaf, 1]
                for block in range(last):
                    if found[leaf, block, 0] > found[leaf, last, 0] + slack:
                        for k in range(4):
                            found[leaf, last, k] = found[leaf, block, k]
                for k in range(3):
                    leaves[leaf, FEATURE + k] = np.int64(found[leaf, last, 1 + k])
        for cell in range(n_cells):
            cells[cell, BEST] = -1
        n_new = 0
        for leaf in range(n_leaves):
            gain, cell = found[leaf, last, 0], leaves[leaf, CELL]
            if gain < 0.0:
                continue
            if n_cells == 0:
                splits[n_splits + n_new, OLD] = leaf
                n_new += 1
            else:
                own = cells[cell, BEST]
                if own < 0 or gain > found[own, last, 0] * (1.0 + TIE):
                    cells[cell, BEST] = leaf
        for cell in range(n_cells):
            if cells[cell, BEST] >= 0:
                splits[n_splits + n_new, OLD] = cells[cell, BEST]
                n_new += 1
        for b in range(n_new):
            split = n_splits + b
            old = splits[split, OLD]
            block, column = leaves[old, FEATURE] // COLUMNS, leaves[old, FEATURE] % COLUMNS
            splits[split, NEW] = n_leaves + b
            for k in range(3):
                splits[split, SPLIT_FEATURE + k] = leaves[old, FEATURE + k]
            leaves[old, SPLIT] = split
            write_above(
                work.histograms[leaves[old, PLACE], block],
                column,
                work.n_unordered[block, column],
                leaves[old, CUT],
                leaves[old, MISSING_ABOVE] != 0,
                least_mass,
                work.classes,
                work.above[split],
            )
            pairs[b, FIRST_RUN] = n
            for half in range(2):
                n = _list_runs(leaves, old, half, runs, n)
            pairs[b, LAST_RUN] = n
        counts[N_NEW] = n_new
        return n
    if phase == GATHER:
        for b in range(n_new):
            old, new = splits[n_splits + b, OLD], n_leaves + b
            positive_above = negative_above = 0
            for r in range(pairs[b, FIRST_RUN], pairs[b, LAST_RUN]):
                if runs[r, CLASS] == 0:
                    positive_above += runs[r, N_ABOVE]
                else:
                    negative_above += runs[r, N_ABOVE]
            positive_below = leaves[old, MIDDLE] - leaves[old, START] - positive_above
            leaves[new, STOP] = leaves[old, STOP]
            leaves[old, MIDDLE] = leaves[old, START] + positive_above
            leaves[old, STOP] = leaves[new, START] = leaves[old, MIDDLE] + negative_above
            leaves[new, MIDDLE] = leaves[new, START] + positive_below
            for half in range(2):
                above, below = leaves[old, START + half], leaves[new, START + half]
                for r in range(pairs[b, FIRST_RUN], pairs[b, LAST_RUN]):
                    if runs[r, CLASS] == half:
                        runs[r, ABOVE], runs[r, BELOW] = above, below
                        above += runs[r, N_ABOVE]
                        below += runs[r, TO] - runs[r, FROM] - runs[r, N_ABOVE]
        return n
    for b in range(n_new):
        old, new = splits[n_splits + b, OLD], n_leaves + b
        leaves[new, CELL] = leaves[old, CELL]
        leaves[old, DEPTH] += 1
        leaves[new, DEPTH] = leaves[old, DEPTH]
        for k in range(2):
            child = old if k == 0 else new
            p = q = 0.0
            for r in range(pairs[b, FIRST_RUN], pairs[b, LAST_RUN]):
                if runs[r, CLASS] == 0:
                    p += work.run_masses[r, k]
                else:
                    q += work.run_masses[r, k]
            masses[child, 0], masses[child, 1] = p, q
            found[child, last, 0] = -1.0
            may = min(p, q) > 0.0 and p + q >= 2.0 * least_mass
            leaves[child, OPEN] = may and leaves[child, DEPTH] < max_depth
        if leaves[old, OPEN] == 0 and leaves[new, OPEN] == 0:
            continue
        # what is added up takes a new place, what remains the parent's
        old_is_less = (
            leaves[old, STOP] - leaves[old, START] < leaves[new, STOP] - leaves[new, START]
        )
        added, sibling = (old, new) if old_is_less else (new, old)
        cell = leaves[old, CELL]
        leaves[sibling, PLACE] = leaves[old, PLACE]
        leaves[added, PLACE] = cells[cell, LAST_PLACE]
        cells[cell, LAST_PLACE] += 1
        pairs[n, ADDED] = added
        pairs[n, SIBLING] = sibling
        n += 1
    counts[N_LEAVES], counts[N_SPLITS] = n_leaves + n_new, n_splits + n_new
    counts[N_PAIRS], counts[N_NEW] = n, 0
    return n
