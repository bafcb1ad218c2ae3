"""The phases of a tree's growth: what each is to do, in pieces, and what follows it.

The pieces of a phase write to places of their own and may be shared out to threads; `next_phase`,
between them, is quick.
"""

import numba
import numpy as np

from core.kernel import kernel
from core.scan.by_row import COLUMNS

from .workspace import (
    ABOVE,
    ADDED,
    BELOW,
    CUT,
    DEPTH,
    FEATURE,
    FIRST_RUN,
    FROM,
    HALF,
    IN_PLACE,
    LAST_RUN,
    LEAF,
    MISSING_ABOVE,
    N_ABOVE,
    N_BATCH,
    N_LEAVES,
    N_RUNS,
    PLACE,
    SIBLING,
    SPARE,
    START,
    STATE_TYPE,
    STOP,
    TO,
    WEIGHTS,
    WORK_TYPE,
)

START_TREE, ADD, FINISH, DIVIDE, GATHER, END_TREE = range(6)

# Takes as long as adding so many cells.
DIVIDING_A_ROW = 6
FINISHING_A_CELL = 2


@kernel(numba.int64(numba.int64, numba.int64, numba.int64, numba.int64, numba.int64[:, ::1]))
def _list_runs(leaf, start, stop, length, runs):  # type: ignore[no-untyped-def]
    """Cut rows[start:stop] of a leaf into runs of about equal length; return how many."""
    size = stop - start
    n = (size + length - 1) // length
    for r in range(n):
        runs[r, LEAF] = leaf
        runs[r, FROM] = start + size * r // n
        runs[r, TO] = start + size * (r + 1) // n
    return n


@kernel(numba.int64(WORK_TYPE, numba.int64[::1]))
def _list_divisions(work, batch):  # type: ignore[no-untyped-def]
    """List the runs of leaves that are to be divided; return how many.

    A run that is all there is of its leaf and class needs no other to find its parts' places.
    """
    n = 0
    for leaf in batch:
        for k in range(2):
            start, stop = work.leaves[leaf, START + 2 * k], work.leaves[leaf, STOP + 2 * k]
            n_runs = _list_runs(leaf, start, stop, work.run_rows, work.runs[n:])
            work.runs[n : n + n_runs, ABOVE] = IN_PLACE if n_runs == 1 else 0
            n += n_runs
    return n


@kernel(numba.boolean(WORK_TYPE, numba.int64[::1], numba.int64))
def _place_divisions(work, batch, next_leaf):  # type: ignore[no-untyped-def]
    """Give each part of a divided run its place, and those below to leaves from next_leaf on.

    Returns whether any is not yet where it belongs.
    """
    last = 0
    moves = False
    for b, leaf in enumerate(batch):
        parent, child = work.leaves[leaf], work.leaves[next_leaf + b]
        for k in range(2):
            start, stop = parent[START + 2 * k], parent[STOP + 2 * k]
            first, last = last, last + (stop - start + work.run_rows - 1) // work.run_rows
            middle = start + work.runs[first:last, N_ABOVE].sum()
            above, below = start, middle
            for r in range(first, last if last - first > 1 else first):
                moves = True
                run = work.runs[r]
                run[ABOVE] = above
                run[BELOW] = below
                above += run[N_ABOVE]
                below += run[TO] - run[FROM] - run[N_ABOVE]
            parent[STOP + 2 * k] = child[START + 2 * k] = middle
            child[STOP + 2 * k] = stop
    return moves


@kernel(numba.void(WORK_TYPE, numba.int64))
def _choose(work, at):  # type: ignore[no-untyped-def]
    """Take the best of the blocks' cuts, the lowest block among equals; it goes last."""
    leaf, found, sides = work.leaves[at], work.found[at], work.sides[at]
    last = len(found) - 1
    gain = 0.0
    leaf[FEATURE] = -1
    for block in range(last):
        if found[block, 0] > gain * (1.0 + 1e-9):
            gain = found[block, 0]
            leaf[FEATURE] = np.int64(found[block, 1])
            leaf[CUT] = np.int64(found[block, 2])
            leaf[MISSING_ABOVE] = np.int64(found[block, 3])
            sides[last] = sides[block]
    found[last, 0] = gain


@kernel(numba.int64(WORK_TYPE, numba.int64))
def _list_additions(work, n_pairs):  # type: ignore[no-untyped-def]
    """List the runs of the leaf to add up of each pair; return how many."""
    two_weights = len(work.weights) == 2
    n = n_spare = 0
    for pair in work.pairs[:n_pairs]:
        leaf = work.leaves[pair[ADDED]]
        pair[FIRST_RUN] = n
        for half in range(2):
            first = n
            for k in range(2):
                if k == half or two_weights:
                    start, stop = leaf[START + 2 * k], leaf[STOP + 2 * k]
                    n += _list_runs(pair[ADDED], start, stop, work.run_rows, work.runs[n:])
            if n == first:  # no rows: the histogram is still to be cleared
                work.runs[n, LEAF] = pair[ADDED]
                work.runs[n, FROM] = work.runs[n, TO] = 0
                n += 1
            for r in range(first, n):
                work.runs[r, HALF] = half
                work.runs[r, WEIGHTS] = half if two_weights else 0
                work.runs[r, SPARE] = -1
                if r > first:
                    work.runs[r, SPARE] = n_spare
                    n_spare += 1
        pair[LAST_RUN] = n
    return n


@kernel(numba.int64(WORK_TYPE, numba.int64, numba.int64, numba.boolean, numba.int64[::1]))
def _list_batch(work, n_leaves, max_depth, best_first, batch):  # type: ignore[no-untyped-def]
    """List the leaves to divide next; return how many."""
    n = 0
    best = 0.0
    for leaf in range(n_leaves):
        gain = work.found[leaf, len(work.blocks), 0]
        if gain > 0.0 and work.leaves[leaf, DEPTH] < max_depth:
            if not best_first:
                batch[n] = leaf
                n += 1
            elif gain > best * (1.0 + 1e-9):
                best = gain
                batch[0] = leaf
                n = 1
    return n


@kernel(numba.int64(numba.int64[::1]))
def _count_rows(leaf):  # type: ignore[no-untyped-def]
    return leaf[STOP] - leaf[START] + leaf[STOP + 2] - leaf[START + 2]


@kernel(numba.void(WORK_TYPE, numba.int64[::1], numba.int64))
def _pair_up(work, batch, next_leaf):  # type: ignore[no-untyped-def]
    """List the siblings just made, the smaller to be added up."""
    for b, leaf in enumerate(batch):
        above, below = work.leaves[leaf], work.leaves[next_leaf + b]
        n_above, n_below = _count_rows(above), _count_rows(below)
        if n_above < n_below:  # the new place takes what is added, the parent's becomes the rest
            above[PLACE], below[PLACE] = below[PLACE], above[PLACE]
            work.pairs[b, ADDED] = leaf
            work.pairs[b, SIBLING] = next_leaf + b
        else:
            work.pairs[b, ADDED] = next_leaf + b
            work.pairs[b, SIBLING] = leaf


@kernel(numba.void(WORK_TYPE, numba.int64[::1], numba.int64, STATE_TYPE))
def _split_leaves(work, batch, n_leaves, state):  # type: ignore[no-untyped-def]
    """Note the splits of some leaves, and make their new leaves."""
    last = len(work.blocks)
    for b, at in enumerate(batch):
        leaf, child = work.leaves[at], work.leaves[n_leaves + b]
        split = state.splits[n_leaves - 1 + b]
        split[0] = at
        split[1:] = leaf[FEATURE : MISSING_ABOVE + 1]
        state.sides[n_leaves - 1 + b] = work.sides[at, last]
        leaf[DEPTH] += 1
        child[DEPTH] = leaf[DEPTH]
        child[PLACE] = n_leaves + b
        work.found[at, last, 0] = work.found[n_leaves + b, last, 0] = 0.0


@kernel(numba.int64(numba.int64, numba.int64, WORK_TYPE))
def count_cells(phase, n_pieces, work):  # type: ignore[no-untyped-def]
    """Say how much work a phase is, in cells added to a histogram."""
    n_blocks = len(work.blocks)
    if phase == FINISH:
        return n_pieces // n_blocks * 2 * work.histograms.shape[1] * FINISHING_A_CELL
    per_row = COLUMNS * n_blocks if phase == ADD else DIVIDING_A_ROW
    n_runs = n_pieces // n_blocks if phase == ADD else n_pieces
    n_rows = 0
    for run in work.runs[:n_runs]:
        if phase != GATHER or run[ABOVE] != IN_PLACE:
            n_rows += run[TO] - run[FROM]
    return n_rows * per_row


@kernel(
    numba.types.UniTuple(numba.int64, 2)(
        numba.int64, WORK_TYPE, numba.int64, numba.boolean, STATE_TYPE
    )
)
def next_phase(done, work, max_depth, best_first, state):  # type: ignore[no-untyped-def]
    """Prepare what follows a phase; return it and its number of pieces.

    A tree starts with START_TREE done, and is grown when END_TREE follows.
    """
    n_blocks, counts = len(work.blocks), state.counts
    batch = state.batch[: counts[N_BATCH]]
    if done == START_TREE:
        counts[N_LEAVES] = counts[N_BATCH] = 1
        work.pairs[0, ADDED] = 0
        work.pairs[0, SIBLING] = -1
        return ADD, _list_additions(work, 1) * n_blocks
    if done == ADD:
        return FINISH, counts[N_BATCH] * n_blocks
    if done == DIVIDE and _place_divisions(work, batch, counts[N_LEAVES]):
        return GATHER, counts[N_RUNS]
    if done in (DIVIDE, GATHER):
        _pair_up(work, batch, counts[N_LEAVES])
        counts[N_LEAVES] += counts[N_BATCH]
        return ADD, _list_additions(work, counts[N_BATCH]) * n_blocks
    for pair in work.pairs[: counts[N_BATCH]]:
        for leaf in (pair[ADDED], pair[SIBLING]):
            if leaf >= 0:
                _choose(work, leaf)
    most = len(state.splits) + 1
    while counts[N_LEAVES] < most:
        n = _list_batch(work, counts[N_LEAVES], max_depth, best_first, state.batch)
        if n == 0:
            break
        batch = state.batch[:n]
        _split_leaves(work, batch, counts[N_LEAVES], state)
        if counts[N_LEAVES] + n < most and work.leaves[batch[0], DEPTH] < max_depth:
            counts[N_BATCH] = n
            counts[N_RUNS] = _list_divisions(work, batch)
            return DIVIDE, counts[N_RUNS]
        counts[N_LEAVES] += n  # none of them will be divided again: their rows can stay
    return END_TREE, 0
