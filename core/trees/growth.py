"""Growing one tree: leaves are divided, the smaller child is scanned, its sibling subtracted.

A tree is a list of splits. Leaf 0 is the root; the s-th split (from 0) divides the leaf it names:
rows above its cut stay in that leaf, those below it become leaf s + 1. Level by level all leaves
with a gain are divided at once; best first it is the one that gains most, until there are enough.

A tree goes through `phases`; here is the work of their pieces. Sums over the rows of a leaf go by runs
of fixed length and are added in order, so that the tree is the same whatever the number of threads.
"""

import numba
import numpy as np

from core.coding.by_row import COLUMNS
from core.coding.rows import divide_rows, gather_rows
from core.coding.team import take
from core.kernel import kernel

from .layout import FIRST_CELL, HAS_MISSING, N_CODES, N_ORDERED, N_WORDS
from .phases import ADD, DIVIDE, END_TREE, FINISH, GATHER, next_phase
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


@kernel(
    numba.types.UniTuple(numba.int64, 2)(
        numba.int64[::1],
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
def grow(queue, n_pieces, phase, work, rule, max_depth, best_first, state, few_cells):  # type: ignore[no-untyped-def]
    """Do the pieces of a phase as they come from the queue; then, alone, what phases follow.

    With `few_cells` 0 other threads take pieces too, and the phase is all that is done. Else phases follow one
    another until one has so many cells that threads should share it, or END_TREE; returns that phase and its number
    of pieces. Of a small tree each phase takes less time than a call from outside.
    """
    n_blocks = len(work.blocks)
    while True:
        # No two pieces write to the same place.
        t = take(queue)
        while t < n_pieces:
            if phase == ADD:
                r, block = t // n_blocks, t % n_blocks
                n_cells, first = (
                    work.blocks[block, N_CODES] * COLUMNS,
                    work.blocks[block, FIRST_CELL],
                )
                half = 2 * first + work.runs[r, HALF] * n_cells
                histogram = work.histograms[
                    work.leaves[work.runs[r, LEAF], PLACE], half : half + n_cells
                ]
                if work.runs[r, SPARE] >= 0:
                    histogram = work.spare[work.runs[r, SPARE], first : first + n_cells]
                for cell in range(n_cells):
                    histogram[cell] = 0.0
                add_rows(
                    work.words[block],
                    work.per_word,
                    work.rows,
                    work.weights[work.runs[r, WEIGHTS]],
                    work.weights[0],
                    work.least_weight,
                    work.runs[r, FROM],
                    work.runs[r, TO],
                    work.blocks[block, N_WORDS],
                    histogram,
                )
            elif phase != FINISH:
                run = work.runs[t]
                start, stop = run[FROM], run[TO]
                if phase == DIVIDE:
                    leaf = run[LEAF]
                    block, column = divmod(work.leaves[leaf, FEATURE], COLUMNS)
                    cut, n_codes = work.leaves[leaf, CUT], work.blocks[block, N_CODES]
                    above = np.empty(n_codes, dtype=np.uint8)  # 1 for each code above the cut
                    for code in range(n_codes):
                        if cut == BY_SIDES:
                            above[code] = work.sides[leaf, n_blocks, code]
                        elif code < n_codes - 1:
                            above[code] = code > cut
                        else:
                            above[code] = work.leaves[leaf, MISSING_ABOVE]
                    run[N_ABOVE] = divide_rows(
                        work.words[block],
                        work.per_word,
                        column,
                        above,
                        start,
                        stop,
                        work.rows,
                        work.divided,
                    )
                middle = start + run[N_ABOVE]
                if phase == GATHER and run[ABOVE] != IN_PLACE:
                    gather_rows(
                        work.divided, start, middle, stop, work.rows, run[ABOVE], run[BELOW]
                    )
                elif phase == DIVIDE and run[ABOVE] == IN_PLACE:
                    gather_rows(work.divided, start, middle, stop, work.rows, start, middle)
            else:
                # Finish a block of the histograms of two siblings and find the best cut of each.
                pair, block = t // n_blocks, t % n_blocks
                n_cells, first = (
                    work.blocks[block, N_CODES] * COLUMNS,
                    work.blocks[block, FIRST_CELL],
                )
                added, sibling = work.pairs[pair, ADDED], work.pairs[pair, SIBLING]
                histograms, place = work.histograms, work.leaves[added, PLACE]
                for r in range(work.pairs[pair, FIRST_RUN], work.pairs[pair, LAST_RUN]):
                    spare = work.runs[r, SPARE]
                    if spare >= 0:
                        half = 2 * first + work.runs[r, HALF] * n_cells
                        own, part = histograms[place, half:], work.spare[spare, first:]
                        for cell in range(n_cells):
                            own[cell] += part[cell]
                if sibling >= 0:
                    own, other = (
                        histograms[place, 2 * first :],
                        histograms[work.leaves[sibling, PLACE], 2 * first :],
                    )
                    for cell in range(2 * n_cells):
                        other[cell] -= own[cell]
                for which in range(2 if sibling >= 0 else 1):
                    leaf = sibling if which else added
                    start = 2 * first
                    gain, column, cut, missing_above = find_cut(
                        histograms[work.leaves[leaf, PLACE], start : start + 2 * n_cells],
                        work.blocks[block, HAS_MISSING] != 0,
                        work.blocks[block, N_ORDERED],
                        work.categorical[block],
                        work.allowed[block],
                        rule,
                        work.sides[leaf, block],
                    )
                    work.found[leaf, block, 0] = gain
                    work.found[leaf, block, 1] = block * COLUMNS + column
                    work.found[leaf, block, 2] = cut
                    work.found[leaf, block, 3] = missing_above
            t = take(queue)
        if few_cells == 0:
            return phase, n_pieces
        phase, n_pieces, n_cells = next_phase(phase, work, max_depth, best_first, state)
        if phase == END_TREE or n_cells >= few_cells:
            return phase, n_pieces
        queue[0] = 0
