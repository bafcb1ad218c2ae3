"""The phases of a tree's growth: what each is to do, in pieces, and what follows it.

The pieces of a phase write to places of their own and may be shared out to threads; `next_phase`,
between them, is quick.
"""

import numba
import numpy as np

from core.coding.by_row import COLUMNS
from core.kernel import kernel

from .workspace import (
    ABOVE,
    ADDED,
    BELOW,
    DEPTH,
    FEATURE,
    FIRST_RUN,
    FROM,
    HALF,
    IN_PLACE,
    LAST_RUN,
    LEAF,
    N_ABOVE,
    N_BATCH,
    N_LEAVES,
    N_RUNS,
    N_SPLIT_COLUMNS,
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

_I2 = numba.int64[:, ::1]

START_TREE, ADD, FINISH, DIVIDE, GATHER, END_TREE = range(6)

# Takes as long as adding so many cells.
DIVIDING_A_ROW = 6
FINISHING_A_CELL = 2


@kernel(
    numba.int64(numba.int64, numba.int64, numba.int64, numba.int64, numba.int64, _I2),
    inner=True,
)
def _list_runs(n, leaf, start, stop, length, runs):  # type: ignore[no-untyped-def]
    """List rows[start:stop] of a leaf from runs[n] on, in runs of about equal length; return where the list ends."""
    size = stop - start
    parts = (size + length - 1) // length
    for r in range(parts):
        runs[n + r, LEAF] = leaf
        runs[n + r, FROM] = start + size * r // parts
        runs[n + r, TO] = start + size * (r + 1) // parts
    return n + parts


@kernel(
    numba.types.UniTuple(numba.int64, 3)(
        numba.int64, WORK_TYPE, numba.int64, numba.boolean, STATE_TYPE
    ),
    inner=True,
)
def next_phase(done, work, max_depth, best_first, state):  # type: ignore[no-untyped-def]
    """Prepare what follows a phase; return it, its number of pieces, and how much work it is.

    A tree starts with START_TREE done, and is grown when END_TREE follows. Work is told in cells added to a
    histogram.
    """
    n_blocks, n_cells = len(work.blocks), work.histograms.shape[1]
    leaves, runs, pairs, found = work.leaves, work.runs, work.pairs, work.found
    sides, length = work.sides, work.run_rows
    counts, batch, splits = state.counts, state.batch, state.splits
    if done == ADD:
        n_pairs = counts[N_BATCH]
        return FINISH, n_pairs * n_blocks, n_pairs * 2 * n_cells * FINISHING_A_CELL

    n = n_rows = 0
    if done == FINISH:
        # The best of the blocks' cuts, the lowest block among equals; it goes last.
        for half in range(2 * counts[N_BATCH]):
            at = pairs[half // 2, ADDED if half % 2 == 0 else SIBLING]
            if at < 0:
                continue
            best = 0.0
            leaves[at, FEATURE] = -1
            for block in range(n_blocks):
                if found[at, block, 0] > best * (1.0 + 1e-9):
                    best = found[at, block, 0]
                    for k in range(3):
                        leaves[at, FEATURE + k] = np.int64(found[at, block, 1 + k])
                    for code in range(sides.shape[2]):
                        sides[at, n_blocks, code] = sides[at, block, code]
            found[at, n_blocks, 0] = best
        # Choose the leaves to divide next, until there are any that will be divided again.
        most = len(splits) + 1
        while counts[N_LEAVES] < most:
            n_leaves = counts[N_LEAVES]
            n_batch = 0
            best = 0.0
            for leaf in range(n_leaves):
                gain = found[leaf, n_blocks, 0]
                if gain > 0.0 and leaves[leaf, DEPTH] < max_depth:
                    if not best_first:
                        batch[n_batch] = leaf
                        n_batch += 1
                    elif gain > best * (1.0 + 1e-9):
                        best = gain
                        batch[0] = leaf
                        n_batch = 1
            if n_batch == 0:
                break
            for b in range(n_batch):
                leaf, child, split = batch[b], n_leaves + b, n_leaves - 1 + b
                splits[split, 0] = leaf
                for k in range(1, N_SPLIT_COLUMNS):
                    splits[split, k] = leaves[leaf, FEATURE + k - 1]
                for code in range(sides.shape[2]):
                    state.sides[split, code] = sides[leaf, n_blocks, code]
                leaves[leaf, DEPTH] += 1
                leaves[child, DEPTH] = leaves[leaf, DEPTH]
                leaves[child, PLACE] = child
                found[leaf, n_blocks, 0] = found[child, n_blocks, 0] = 0.0
            if n_leaves + n_batch < most and leaves[batch[0], DEPTH] < max_depth:
                counts[N_BATCH] = n_batch
                for half in range(2 * n_batch):
                    leaf, k = batch[half // 2], half % 2
                    start, stop = leaves[leaf, START + 2 * k], leaves[leaf, STOP + 2 * k]
                    first = n
                    n = _list_runs(n, leaf, start, stop, length, runs)
                    for r in range(first, n):
                        # The only run of its leaf and class needs no other to find its parts' places.
                        runs[r, ABOVE] = IN_PLACE if n - first == 1 else 0
                    n_rows += stop - start
                counts[N_RUNS] = n
                return DIVIDE, n, n_rows * DIVIDING_A_ROW
            counts[N_LEAVES] += n_batch  # none of them will be divided again: their rows can stay
        return END_TREE, 0, 0

    n_leaves, n_batch = counts[N_LEAVES], counts[N_BATCH]
    if done == DIVIDE:
        # Each part of a divided run gets its place, and those below go to new leaves.
        last = 0
        for half in range(2 * n_batch):
            parent, child, k = batch[half // 2], n_leaves + half // 2, half % 2
            start, stop = leaves[parent, START + 2 * k], leaves[parent, STOP + 2 * k]
            first, last = last, last + (stop - start + length - 1) // length
            middle = start
            for r in range(first, last):
                middle += runs[r, N_ABOVE]
            above, below = start, middle
            for r in range(first, last if last - first > 1 else first):
                runs[r, ABOVE] = above
                runs[r, BELOW] = below
                above += runs[r, N_ABOVE]
                below += runs[r, TO] - runs[r, FROM] - runs[r, N_ABOVE]
                n_rows += runs[r, TO] - runs[r, FROM]
            leaves[parent, STOP + 2 * k] = leaves[child, START + 2 * k] = middle
            leaves[child, STOP + 2 * k] = stop
        if n_rows > 0:
            return GATHER, counts[N_RUNS], n_rows * DIVIDING_A_ROW

    if done == START_TREE:
        counts[N_LEAVES] = n_batch = counts[N_BATCH] = 1
        pairs[0, ADDED] = 0
        pairs[0, SIBLING] = -1
    else:
        # Of the siblings just made the smaller is added up.
        for b in range(n_batch):
            above, below = batch[b], n_leaves + b
            more = 0  # rows below
            for k in range(2):
                more += leaves[below, STOP + 2 * k] - leaves[below, START + 2 * k]
                more -= leaves[above, STOP + 2 * k] - leaves[above, START + 2 * k]
            if more > 0:  # the new place takes what is added, the parent's becomes the rest
                place = leaves[above, PLACE]
                leaves[above, PLACE] = leaves[below, PLACE]
                leaves[below, PLACE] = place
            pairs[b, ADDED] = above if more > 0 else below
            pairs[b, SIBLING] = below if more > 0 else above
        counts[N_LEAVES] += n_batch
    two_weights = len(work.weights) == 2
    n_spare = 0
    for b in range(n_batch):
        leaf = pairs[b, ADDED]
        pairs[b, FIRST_RUN] = n
        for half in range(2):
            first = n
            for k in range(2):
                if k == half or two_weights:
                    start, stop = leaves[leaf, START + 2 * k], leaves[leaf, STOP + 2 * k]
                    n = _list_runs(n, leaf, start, stop, length, runs)
            if n == first:  # no rows: the histogram is still to be cleared
                runs[n, LEAF] = leaf
                runs[n, FROM] = runs[n, TO] = 0
                n += 1
            for r in range(first, n):
                runs[r, HALF] = half
                runs[r, WEIGHTS] = half if two_weights else 0
                runs[r, SPARE] = n_spare if r > first else -1
                n_spare += 1 if r > first else 0
                n_rows += runs[r, TO] - runs[r, FROM]
        pairs[b, LAST_RUN] = n
    return ADD, n * n_blocks, n_rows * COLUMNS * n_blocks
