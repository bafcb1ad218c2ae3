"""Growing cut trees in many cells at once.

A cell starts as leaf c of its own number. A split leaves what is above in its leaf and moves what
is below to a new one. In each round every leaf that may be split is (or of each cell the one that
gains most, where there is a limit to its leaves), the smaller child's histogram is added up, and
the sibling's is what remains of the parent's.

Growth goes through phases. The work of each is cut into pieces that write to places of their own
and may be shared out to threads; what comes between them is quick. Sums over the rows of a leaf go
by runs of fixed length and are added in order, so that the trees are the same whatever the number
of threads.
"""

import numba
import numpy as np

from core.kernel import kernel
from core.scan import MISSING
from core.scan.by_row import CELLS, COLUMNS, NARROW
from core.scan.rows import divide_rows, gather_rows

from .category_peaks import TIE, write_above
from .peaks import find_cut
from .rows import add_rows, sum_rows
from .settling import settle
from .workspace import (
    ABOVE,
    ADDED,
    BELOW,
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
    MIDDLE,
    MISSING_ABOVE,
    N_ABOVE,
    NEW,
    OLD,
    OPEN,
    PLACE,
    RUN_ROWS,
    SIBLING,
    SPARE,
    SPLIT,
    START,
    STOP,
    TO,
    WORK_TYPE,
)

ADD, FIND, DIVIDE, GATHER, SETTLE = range(5)


@kernel(numba.void(numba.float64[::1], numba.float64[::1], numba.float64, numba.int64))
def _change(histogram, other, sign, n_cells):  # type: ignore[no-untyped-def]
    """Add or subtract a histogram: the bins in use, and the missing one."""
    for cell in range(n_cells):
        histogram[cell] += sign * other[cell]
    for cell in range(COLUMNS * MISSING, CELLS):
        histogram[cell] += sign * other[cell]


@kernel(numba.void(numba.int64[::1], numba.int64, numba.float64, WORK_TYPE))
def _find(pair, block, least_mass, work):  # type: ignore[no-untyped-def]
    """Finish a block of the histograms of two siblings and find the best cut of each."""
    own = work.histograms[work.leaves[pair[ADDED], PLACE], block]
    n_cells = COLUMNS * work.blocks[block, 1]
    for r in range(pair[FIRST_RUN], pair[LAST_RUN]):
        run = work.runs[r]
        if run[SPARE] >= 0:
            _change(own[run[CLASS]], work.spare[run[SPARE], block], 1.0, n_cells)
    if pair[SIBLING] >= 0:
        other = work.histograms[work.leaves[pair[SIBLING], PLACE], block]
        for half in range(2):
            _change(other[half], own[half], -1.0, n_cells)
    for leaf in (pair[ADDED], pair[SIBLING]):
        if leaf >= 0 and work.leaves[leaf, OPEN] != 0:
            find_cut(
                work.histograms[work.leaves[leaf, PLACE], block],
                work.blocks[block],
                work.n_unordered[block],
                work.allowed[work.leaves[leaf, CELL], block],
                work.masses[leaf],
                least_mass,
                work.classes,
                work.found[leaf, block],
            )
            work.found[leaf, block, 1] += block * COLUMNS


@kernel(numba.void(numba.int64, WORK_TYPE))
def _gather(r, work):  # type: ignore[no-untyped-def]
    """Put the parts of a divided run in their places, and add up their mass."""
    run = work.runs[r]
    middle = run[FROM] + run[N_ABOVE]
    n_below = run[TO] - middle
    gather_rows(work.divided, run[FROM], middle, run[TO], work.rows, run[ABOVE], run[BELOW])
    work.run_masses[r, 0] = sum_rows(work.rows, work.weights, run[ABOVE], run[ABOVE] + run[N_ABOVE])
    work.run_masses[r, 1] = sum_rows(work.rows, work.weights, run[BELOW], run[BELOW] + n_below)


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.types.UniTuple(numba.int64, 2),
        numba.float64,
        WORK_TYPE,
    )
)
def _do(phase, t, sizes, least_mass, work):  # type: ignore[no-untyped-def]
    """Do one piece of a phase. No two pieces write to the same place."""
    n_blocks = len(work.blocks)
    if phase == ADD:
        run, block = work.runs[t // n_blocks], t % n_blocks
        if run[SPARE] >= 0:
            histogram = work.spare[run[SPARE], block]
        else:
            histogram = work.histograms[work.leaves[run[LEAF], PLACE], block, run[CLASS]]
        histogram[: COLUMNS * work.blocks[block, 1]] = 0.0
        histogram[COLUMNS * MISSING :] = 0.0
        n_words = work.blocks[block, 0]
        add_rows(work.words[block], work.rows, work.weights, run[FROM], run[TO], n_words, histogram)
    elif phase == FIND:
        _find(work.pairs[t // n_blocks], t % n_blocks, least_mass, work)
    elif phase == DIVIDE:
        run = work.runs[t]
        leaf = work.leaves[run[LEAF]]
        run[N_ABOVE] = divide_rows(
            work.words[leaf[FEATURE] // COLUMNS],
            NARROW,
            leaf[FEATURE] % COLUMNS,
            work.above[leaf[SPLIT]],
            run[FROM],
            run[TO],
            work.rows,
            work.divided,
        )
    elif phase == GATHER:
        _gather(t, work)
    else:
        settle(t, sizes, work)


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        numba.int64,
        numba.types.UniTuple(numba.int64, 2),
        numba.float64,
        WORK_TYPE,
    )
)
def do_pieces(first, step, n, phase, sizes, least_mass, work):  # type: ignore[no-untyped-def]
    """Do every step-th piece of a phase; sizes: how many leaves and splits there are."""
    for t in range(first, n, step):
        _do(phase, t, sizes, least_mass, work)


@kernel(numba.int64(numba.int64, numba.int64, WORK_TYPE, numba.int64))
def _list_runs(leaf, half, work, n):  # type: ignore[no-untyped-def]
    """List the runs of a class of a leaf from the n-th on; return how many there are then."""
    start, stop = work.leaves[leaf, START + half], work.leaves[leaf, START + half + 1]
    while start < stop:
        work.runs[n, LEAF] = leaf
        work.runs[n, FROM] = start
        start = min(start + RUN_ROWS, stop)
        work.runs[n, TO] = start
        work.runs[n, CLASS] = half
        n += 1
    return n


@kernel(numba.int64(WORK_TYPE, numba.int64))
def list_additions(work, n_pairs):  # type: ignore[no-untyped-def]
    """List the runs of the leaf to add up of each pair; return how many."""
    n = n_spare = 0
    for pair in work.pairs[:n_pairs]:
        pair[FIRST_RUN] = n
        for half in range(2):
            first = n
            n = _list_runs(pair[ADDED], half, work, n)
            if n == first:  # no rows: its half of the histogram is still to be cleared
                work.runs[n, LEAF] = pair[ADDED]
                work.runs[n, FROM] = work.runs[n, TO] = 0
                work.runs[n, CLASS] = half
                n += 1
            for r in range(first, n):
                work.runs[r, SPARE] = -1
                if r > first:
                    work.runs[r, SPARE] = n_spare
                    n_spare += 1
        pair[LAST_RUN] = n
    return n


@kernel(numba.void(numba.int64, WORK_TYPE))
def _choose(leaf, work):  # type: ignore[no-untyped-def]
    """Take the best of the blocks' cuts, the lowest block among equals; its gain goes last."""
    found, last = work.found[leaf], len(work.blocks)
    found[last, 0] = -1.0
    slack = 10.0 * TIE * work.masses[leaf, 0] * work.masses[leaf, 1]
    for block in range(last):
        if found[block, 0] > found[last, 0] + slack:
            found[last] = found[block]
    for k in range(3):
        work.leaves[leaf, FEATURE + k] = np.int64(found[last, 1 + k])


@kernel(numba.int64(WORK_TYPE, numba.int64, numba.int64, numba.int64, numba.int64[::1]))
def _list_batch(work, n_pairs, n_leaves, n_cells, batch):  # type: ignore[no-untyped-def]
    """List the leaves to split: all, or with n_cells > 0 of each cell the best; return how many."""
    last = len(work.blocks)
    for pair in work.pairs[:n_pairs]:
        for leaf in (pair[ADDED], pair[SIBLING]):
            if leaf >= 0 and work.leaves[leaf, OPEN] != 0:
                _choose(leaf, work)
    best = np.full(n_cells, -1, dtype=np.int64)
    n = 0
    for leaf in range(n_leaves):
        gain = work.found[leaf, last, 0]
        if gain < 0.0:
            continue
        if n_cells == 0:
            batch[n] = leaf
            n += 1
        else:
            own = best[work.leaves[leaf, CELL]]
            if own < 0 or gain > work.found[own, last, 0] * (1.0 + TIE):
                best[work.leaves[leaf, CELL]] = leaf
    for leaf in best:
        if leaf >= 0:
            batch[n] = leaf
            n += 1
    return n


@kernel(
    numba.types.UniTuple(numba.int64, 2)(
        WORK_TYPE,
        numba.int64,
        numba.types.UniTuple(numba.int64, 2),
        numba.int64,
        numba.float64,
        numba.int64[::1],
    )
)
def list_divisions(work, n_pairs, sizes, n_cells, least_mass, batch):  # type: ignore[no-untyped-def]
    """Choose the leaves to split and note their splits; return how many, and of how many runs."""
    n_leaves, n_splits = sizes
    n = _list_batch(work, n_pairs, n_leaves, n_cells, batch)
    n_runs = 0
    for b in range(n):
        old = batch[b]
        leaf = work.leaves[old]
        block, column = leaf[FEATURE] // COLUMNS, leaf[FEATURE] % COLUMNS
        work.splits[n_splits + b, OLD] = old
        work.splits[n_splits + b, NEW] = n_leaves + b
        work.splits[n_splits + b, 2:] = leaf[FEATURE : MISSING_ABOVE + 1]
        leaf[SPLIT] = n_splits + b
        write_above(
            work.histograms[leaf[PLACE], block],
            column,
            work.n_unordered[block, column],
            leaf[CUT],
            leaf[MISSING_ABOVE] != 0,
            least_mass,
            work.classes,
            work.above[leaf[SPLIT]],
        )
        work.pairs[b, FIRST_RUN] = n_runs
        for half in range(2):
            n_runs = _list_runs(old, half, work, n_runs)
        work.pairs[b, LAST_RUN] = n_runs
    return n, n_runs


@kernel(numba.void(WORK_TYPE, numba.int64, numba.int64[::1]))
def place_divisions(work, n_leaves, batch):  # type: ignore[no-untyped-def]
    """Give each part of a divided run its place, and the parts below to leaves from n_leaves on."""
    for b in range(len(batch)):
        old, new = work.leaves[batch[b]], work.leaves[n_leaves + b]
        runs = work.runs[work.pairs[b, FIRST_RUN] : work.pairs[b, LAST_RUN]]
        n_above = np.zeros(2, dtype=np.int64)
        for run in runs:
            n_above[run[CLASS]] += run[N_ABOVE]
        n_positive_below = old[MIDDLE] - old[START] - n_above[0]
        above = np.array([old[START], old[START] + n_above[0]])
        middle = above[1] + n_above[1]
        below = np.array([middle, middle + n_positive_below])
        new[START], new[MIDDLE], new[STOP] = middle, below[1], old[STOP]
        old[MIDDLE], old[STOP] = above[1], middle
        for run in runs:
            half = run[CLASS]
            run[ABOVE], run[BELOW] = above[half], below[half]
            above[half] += run[N_ABOVE]
            below[half] += run[TO] - run[FROM] - run[N_ABOVE]


@kernel(numba.int64(WORK_TYPE, numba.int64, numba.int64[::1], numba.int64, numba.float64))
def pair_up(work, n_leaves, batch, max_depth, least_mass):  # type: ignore[no-untyped-def]
    """Sum up the children just made, and list the pairs of which one may be split; return how many."""
    n_pairs = 0
    last = len(work.blocks)
    for b in range(len(batch)):
        children = (batch[b], n_leaves + b)
        old, new = work.leaves[children[0]], work.leaves[children[1]]
        new[CELL] = old[CELL]
        new[DEPTH] = old[DEPTH] = old[DEPTH] + 1
        masses = np.zeros((2, 2))
        for r in range(work.pairs[b, FIRST_RUN], work.pairs[b, LAST_RUN]):
            for k in range(2):
                masses[k, work.runs[r, CLASS]] += work.run_masses[r, k]
        for k in range(2):
            work.masses[children[k]] = masses[k]
            work.found[children[k], last, 0] = -1.0
            may = masses[k].min() > 0.0 and masses[k].sum() >= 2.0 * least_mass
            work.leaves[children[k], OPEN] = may and old[DEPTH] < max_depth
        if old[OPEN] == 0 and new[OPEN] == 0:
            continue
        # what is added up takes a new place, what remains the parent's
        cell = work.cells[old[CELL]]
        old_is_less = old[STOP] - old[START] < new[STOP] - new[START]
        added, sibling = (children[0], children[1]) if old_is_less else (children[1], children[0])
        work.leaves[sibling, PLACE] = old[PLACE]
        work.leaves[added, PLACE] = cell[LAST_PLACE]
        cell[LAST_PLACE] += 1
        work.pairs[n_pairs, ADDED] = added
        work.pairs[n_pairs, SIBLING] = sibling
        n_pairs += 1
    return n_pairs
