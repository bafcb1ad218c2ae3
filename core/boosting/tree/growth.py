"""Growing one tree: leaves are divided, the smaller child is scanned, its sibling subtracted.

A tree is a list of splits. Leaf 0 is the root; the s-th split (from 0) divides the leaf it names:
rows above its cut stay in that leaf, those below it become leaf s + 1. Level by level all leaves
with a gain are divided at once; best first it is the one that gains most, until there are enough.

A tree goes through `phases`; here is the work of their pieces. Sums over the rows of a leaf go by runs
of fixed length and are added in order, so that the tree is the same whatever the number of threads.
"""

import numba
import numpy as np

from core.kernel import kernel
from core.scan.by_row import COLUMNS
from core.scan.rows import divide_rows, gather_rows
from core.scan.team import take

from .layout import FIRST_CELL, HAS_MISSING, N_CODES, N_WORDS
from .phases import ADD, DIVIDE, END_TREE, GATHER, count_cells, next_phase
from .rows import add_rows
from .splits import find_cut
from .workspace import (
    ABOVE,
    ADDED,
    BELOW,
    BY_SIDES,
    CUT,
    FEATURE,
    FIRST_RUN,
    FROM,
    HALF,
    IN_PLACE,
    LAST_RUN,
    LEAF,
    MISSING_ABOVE,
    N_ABOVE,
    PLACE,
    RULE_TYPE,
    SIBLING,
    SPARE,
    STATE_TYPE,
    TO,
    WEIGHTS,
    WORK_TYPE,
)


@kernel(numba.float64[:, ::1](WORK_TYPE, numba.int64, numba.int64))
def histogram_of(work, leaf, block):  # type: ignore[no-untyped-def]
    """Give a block's part of a leaf's histogram: (2, n_codes * 32)."""
    n_cells, first = work.blocks[block, N_CODES] * COLUMNS, 2 * work.blocks[block, FIRST_CELL]
    part = work.histograms[work.leaves[leaf, PLACE], first : first + 2 * n_cells]
    return part.reshape(2, n_cells)


@kernel(numba.float64[::1](WORK_TYPE, numba.int64[::1], numba.int64))
def _spare_of(work, run, block):  # type: ignore[no-untyped-def]
    """Give a block's part of the spare histogram that takes a run's sum."""
    first = work.blocks[block, FIRST_CELL]
    return work.spare[run[SPARE], first : first + work.blocks[block, N_CODES] * COLUMNS]


@kernel(numba.uint8[::1](WORK_TYPE, numba.int64, numba.int64))
def _codes_above(work, at, n_codes):  # type: ignore[no-untyped-def]
    """Give a 1 for each code above a leaf's cut."""
    leaf = work.leaves[at]
    if leaf[CUT] == BY_SIDES:
        return work.sides[at, len(work.blocks), :n_codes]
    above = np.zeros(n_codes, dtype=np.uint8)
    above[leaf[CUT] + 1 : n_codes - 1] = 1
    above[n_codes - 1] = leaf[MISSING_ABOVE]
    return above


@kernel(numba.void(numba.int64[::1], numba.int64, WORK_TYPE, RULE_TYPE))
def _finish(pair, block, work, rule):  # type: ignore[no-untyped-def]
    """Finish the histograms of two siblings and find the best cut of each."""
    own = histogram_of(work, pair[ADDED], block)
    for r in range(pair[FIRST_RUN], pair[LAST_RUN]):
        run = work.runs[r]
        if run[SPARE] >= 0:
            half, part = own[run[HALF]], _spare_of(work, run, block)
            for cell in range(len(half)):
                half[cell] += part[cell]
    if pair[SIBLING] >= 0:
        other = histogram_of(work, pair[SIBLING], block)
        for half in range(2):
            for cell in range(own.shape[1]):
                other[half, cell] -= own[half, cell]
    for leaf in (pair[ADDED], pair[SIBLING]):
        if leaf >= 0:
            gain, column, cut, missing_above = find_cut(
                histogram_of(work, leaf, block),
                work.blocks[block, HAS_MISSING] != 0,
                work.categorical[block],
                work.allowed[block],
                rule,
                work.sides[leaf, block],
            )
            found = work.found[leaf, block]
            found[0] = gain
            found[1] = block * COLUMNS + column
            found[2] = cut
            found[3] = missing_above


@kernel(numba.void(WORK_TYPE, numba.int64[::1], numba.int64, numba.int64))
def _gather(work, run, above, below):  # type: ignore[no-untyped-def]
    """Put the two parts of a divided run in their places."""
    middle = run[FROM] + run[N_ABOVE]
    gather_rows(work.divided, run[FROM], middle, run[TO], work.rows, above, below)


@kernel(numba.void(numba.int64, numba.int64, WORK_TYPE, RULE_TYPE))
def _do(phase, t, work, rule):  # type: ignore[no-untyped-def]
    """Do one piece of a phase. No two pieces write to the same place."""
    n_blocks = len(work.blocks)
    if phase == DIVIDE:
        run = work.runs[t]
        feature = work.leaves[run[LEAF], FEATURE]
        block, column = feature // COLUMNS, feature % COLUMNS
        run[N_ABOVE] = divide_rows(
            work.words[block],
            work.per_word,
            column,
            _codes_above(work, run[LEAF], work.blocks[block, N_CODES]),
            run[FROM],
            run[TO],
            work.rows,
            work.divided,
        )
        if run[ABOVE] == IN_PLACE:
            _gather(work, run, run[FROM], run[FROM] + run[N_ABOVE])
    elif phase == GATHER:
        run = work.runs[t]
        if run[ABOVE] != IN_PLACE:
            _gather(work, run, run[ABOVE], run[BELOW])
    elif phase == ADD:
        run, block = work.runs[t // n_blocks], t % n_blocks
        histogram = histogram_of(work, run[LEAF], block)[run[HALF]]
        if run[SPARE] >= 0:
            histogram = _spare_of(work, run, block)
        histogram[:] = 0.0
        add_rows(
            work.words[block],
            work.per_word,
            work.rows,
            work.weights[run[WEIGHTS]],
            work.weights[0],
            work.least_weight,
            run[FROM],
            run[TO],
            work.blocks[block, N_WORDS],
            histogram,
        )
    else:
        _finish(work.pairs[t // n_blocks], t % n_blocks, work, rule)


@kernel(numba.void(numba.int64[::1], numba.int64, numba.int64, WORK_TYPE, RULE_TYPE))
def do_pieces(queue, n, phase, work, rule):  # type: ignore[no-untyped-def]
    """Do pieces of a phase, as they come from the queue."""
    t = take(queue)
    while t < n:
        _do(phase, t, work, rule)
        t = take(queue)


@kernel(
    numba.types.UniTuple(numba.int64, 2)(
        numba.int64,
        numba.int64,
        WORK_TYPE,
        RULE_TYPE,
        numba.int64,
        numba.boolean,
        STATE_TYPE,
        numba.int64,
    )
)
def do_small_phases(phase, n_pieces, work, rule, max_depth, best_first, state, few_cells):  # type: ignore[no-untyped-def]
    """Do phases one after the other until one has so many cells that threads should share it, or END_TREE.

    Of a small tree each phase takes less time than a call from outside.
    """
    while phase != END_TREE and count_cells(phase, n_pieces, work) < few_cells:
        for t in range(n_pieces):
            _do(phase, t, work, rule)
        phase, n_pieces = next_phase(phase, work, max_depth, best_first, state)
    return phase, n_pieces
