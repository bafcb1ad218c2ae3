"""A cell's cut tree, grown: its leaves are merged to two sides, and what is left of it is written down."""

import numba
import numpy as np

from core.kernel import kernel

from .category_peaks import TIE
from .workspace import (
    ASKED,
    CELL,
    MADE_BY,
    N_CUT_LEAVES,
    NEW,
    OLD,
    START,
    TO_TOP,
    WORK_TYPE,
)


@kernel(numba.void(numba.int64, numba.int64[::1], WORK_TYPE))
def _regroup(cell, own, work):  # type: ignore[no-untyped-def]
    """Put the rows of the leaves that go to the top before the others, positives first in each."""
    start = work.leaves[own, START].min()
    at = start
    for side in range(2):
        work.cells[cell, 3 * side] = at
        for half in range(2):
            for leaf in own:
                if work.sides[leaf] != side:
                    first = work.leaves[leaf, START + half]
                    last = work.leaves[leaf, START + half + 1]
                    work.divided[at : at + last - first] = work.rows[first:last]
                    at += last - first
            work.cells[cell, 3 * side + half + 1] = at
    work.rows[start:at] = work.divided[start:at]


@kernel(numba.void(numba.int64, numba.int64[::1], numba.int64, WORK_TYPE))
def _write_down(cell, own, n_splits, work):  # type: ignore[no-untyped-def]
    """Write a cell's cut tree in preorder, without cuts both of whose sides go the same way."""
    n = len(own)
    # trees as they grow together, backwards: a leaf's number, or n + a split's
    tree = np.arange(n)
    masses = work.masses[own]
    children = np.empty((n_splits, 2), dtype=np.int64)
    for s in range(n_splits - 1, -1, -1):
        if work.leaves[work.splits[s, OLD], CELL] == cell:
            old = np.searchsorted(own, work.splits[s, OLD])
            new = np.searchsorted(own, work.splits[s, NEW])
            above, below = tree[old], tree[new]
            alike = above < n and below < n and work.sides[own[above]] == work.sides[own[below]]
            if alike:
                masses[above] += masses[below]
            else:
                children[s, 0], children[s, 1] = above, below
                tree[old] = n + s
    waiting = np.empty(n, dtype=np.int64)
    waiting[0] = tree[0]
    n_waiting, n_nodes, n_leaves = 1, 0, 0
    while n_waiting > 0:
        n_waiting -= 1
        this, node = waiting[n_waiting], work.nodes[cell, n_nodes]
        n_nodes += 1
        if this < n:
            node[:] = 0
            node[ASKED] = -1
            node[TO_TOP] = work.sides[own[this]]
            work.node_masses[cell, n_leaves] = masses[this]
            n_leaves += 1
        else:
            node[ASKED:MADE_BY] = work.splits[this - n, NEW + 1 :]
            node[MADE_BY] = this - n
            node[TO_TOP] = 0
            waiting[n_waiting] = children[this - n, 1]
            waiting[n_waiting + 1] = children[this - n, 0]
            n_waiting += 2
    work.cells[cell, N_CUT_LEAVES] = n_leaves


@kernel(numba.void(numba.int64, numba.types.UniTuple(numba.int64, 2), WORK_TYPE))
def settle(cell, sizes, work):  # type: ignore[no-untyped-def]
    """Merge a cell's leaves to the two sides that gain most, and put its rows in their order.

    The partition-based rule (Fig. 4) sorts by β/α and cuts at the best prefix, the shortest among
    equals. Along that order a leaf adds β - α, so the prefix is all leaves where β > α.
    """
    n_leaves, n_splits = sizes
    own = np.flatnonzero(work.leaves[:n_leaves, CELL] == cell)
    total_p, total_n = work.masses[own, 0].sum(), work.masses[own, 1].sum()
    rounding = TIE * total_p * total_n
    sums = np.zeros((2, 2))
    n_top = 0
    for leaf in own:
        p, n = work.masses[leaf]
        is_top = p * total_n - n * total_p > rounding
        work.sides[leaf] = is_top
        n_top += is_top
        sums[0 if is_top else 1] += work.masses[leaf]
    gains = work.gains[cell]
    gains[0] = 0.0
    gains[1:] = sums.ravel()
    if 0 < n_top < len(own):
        gains[0] = sums[0, 0] * total_n - sums[0, 1] * total_p
        _regroup(cell, own, work)
        _write_down(cell, own, n_splits, work)
