"""Growing cut trees in many cells at once.

A cell starts as leaf c of its own number. A split leaves what is above in its leaf and moves what
is below to a new one. In each round every leaf that may be split is (or of each cell the one that
gains most, where there is a limit to its leaves), the smaller child's histogram is added up, and
the sibling's is what remains of the parent's. At last a cell's leaves are merged to two sides, and
what is left of its cut tree is written down.

Growth goes through phases. `prepare` lists the pieces of work of each, quickly, and `do_pieces` does
them: they write to places of their own and may be shared out to threads. Sums over the rows of a
leaf go by runs of fixed length and are added in order, so that the trees are the same whatever the
number of threads.

These two kernels are handed all arrays of growth, and those that take arrays one by one. Every kernel
that takes all of them has the compiler work through two hundred values: that is why there are two. And
they index rather than slice, and hold no reference (`_nrt`), which is what a compiler spends its time on.
"""

import numba
import numpy as np

from core.coding import MISSING
from core.coding.by_row import CELLS, COLUMNS, NARROW
from core.coding.rows import divide_rows, gather_rows
from core.kernel import kernel

from .category_peaks import TIE, write_above
from .peaks import find_cut
from .rows import add_rows, sum_rows
from .workspace import (
    ABOVE,
    ADDED,
    ASKED,
    BELOW,
    BEST,
    CELL,
    CLASS,
    CUT,
    DEPTH,
    FEATURE,
    FIRST_RUN,
    FROM,
    LAST_PLACE,
    LAST_RUN,
    LEAF,
    MADE_BY,
    MIDDLE,
    MISSING_ABOVE,
    N_ABOVE,
    N_CUT_LEAVES,
    N_LEAVES,
    N_MERGED,
    N_NEW,
    N_PAIRS,
    N_SPLITS,
    NEW,
    OLD,
    OPEN,
    PLACE,
    RUN_ROWS,
    SIBLING,
    SPARE,
    SPLIT,
    SPLIT_FEATURE,
    START,
    STOP,
    SUBTREE,
    SUBTREE_ABOVE,
    SUBTREE_BELOW,
    TO,
    TO_TOP,
    WORK_TYPE,
)

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
