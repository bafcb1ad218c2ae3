"""Growing one tree: leaves are divided, the smaller child is scanned, its sibling subtracted.

A tree is a list of splits. Leaf 0 is the root; the s-th split (from 0) divides the leaf it names:
rows above its cut stay in that leaf, those below it become leaf s + 1. Level by level all leaves
with a gain are divided at once; best first it is the one that gains most, until there are
`max_leaves`.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.scan import MISSING, PARALLEL_LOCK

from .layout import CELLS, COLUMNS, Floats, Integers, Table
from .rows import add_rows, divide_rows, gather_rows
from .splits import find_cut

MAX_LEAVES = 256  # so that a leaf's number fits a byte

RUN_ROWS = 1 << 15
"""Rows of a run: what one thread does at a time. Runs are summed apart, then added in order."""

# Dividing work among threads costs some microseconds; this many cells repay it.
PARALLEL_CELLS = 200_000

# Columns of a split: the leaf, the feature, codes greater than which cut lie above, and whether the
# missing do.
N_SPLIT_COLUMNS = 4

# Columns of `leaves`: where a leaf's rows start and stop (class 0, then class 1), the place of its
# histogram, its depth, its best cut.
_START, _STOP, _PLACE, _DEPTH, _FEATURE, _CUT, _MISSING = 0, 2, 4, 5, 6, 7, 8

# Columns of `runs`: the leaf, where its rows start and stop; when rows are divided: how many lie
# above the cut, and where those above and those below go; when they are added: which half of the
# histogram, which weights, and the spare histogram that takes the sum, -1 for the leaf's own.
_LEAF, _FROM, _TO, _N_ABOVE, _ABOVE, _BELOW = range(6)
_HALF, _WEIGHTS, _SPARE = 3, 4, 5

# Columns of `pairs`, siblings to be finished: the leaf that was added up, its sibling (-1 for the
# root, which has none), the first and one after the last of its runs.
_ADDED, _SIBLING, _FIRST_RUN, _LAST_RUN = range(4)

_DIVIDE, _GATHER, _ADD, _FINISH = range(4)


class Rule(NamedTuple):
    """What makes a cut good; see `splits`.

    Attributes
    ----------
    objective : int
    push : float
    smoothing : float
        λ of the Newton objectives.
    least_mass : float
        Least mass of each side.
    """

    objective: int
    push: float
    smoothing: float
    least_mass: float


class Work(NamedTuple):
    """The arrays of growth, shared by its kernels."""

    codes: Any
    words: Any
    blocks: Any
    allowed: Any
    rows: Any
    divided: Any
    weights: Any
    histograms: Any
    spare: Any
    leaves: Any
    found: Any
    runs: Any
    pairs: Any


_RULE = numba.types.NamedTuple((numba.int64, numba.float64, numba.float64, numba.float64), Rule)
_I2 = numba.int64[:, ::1]
_WORK = numba.types.NamedTuple(
    (
        numba.types.Array(numba.uint8, 2, "C", readonly=False),
        numba.uint64[:, ::1],
        _I2,
        numba.boolean[:, ::1],
        numba.uint32[::1],
        numba.uint32[::1],
        numba.float64[:, ::1],
        numba.float64[:, :, :, ::1],
        numba.float64[:, :, ::1],
        _I2,
        numba.float64[:, :, ::1],
        _I2,
        _I2,
    ),
    Work,
)


class Grower:
    """Grows trees on one table; holds the memory for it.

    Parameters
    ----------
    table : Table
    n_weights : int
        1: one weight per row, summed by class. 2: a gradient and a curvature per row, summed over
        all rows.
    max_depth : int
    max_leaves : int or None
        None grows level by level.

    Notes
    -----
    Memory: 8 bytes per row for the order of rows, and 128 KiB per leaf and block of 32 columns.
    """

    def __init__(
        self, table: Table, n_weights: int, max_depth: int, max_leaves: int | None
    ) -> None:
        self._table = table
        self._max_depth = max_depth
        self._best_first = max_leaves is not None
        n_leaves = max_leaves or 2**max_depth
        n_blocks, n_rows = len(table.blocks), table.n_rows
        n_runs = 2 * (n_rows // RUN_ROWS + 2 * n_leaves + 2)
        self._work = Work(
            table.codes,
            table.words,
            table.blocks,
            np.zeros((n_blocks, COLUMNS), dtype=np.bool_),
            np.empty(n_rows, dtype=np.uint32),
            np.empty(n_rows, dtype=np.uint32),
            np.empty((n_weights, 0)),
            np.empty((n_leaves, n_blocks, 2, CELLS)),
            np.empty((2 * (n_rows // RUN_ROWS) + 2, n_blocks, CELLS)),
            np.zeros((n_leaves, 9), dtype=np.int64),
            np.zeros((n_leaves, n_blocks + 1, 4)),
            np.zeros((n_runs, 6), dtype=np.int64),
            np.zeros((n_leaves, 4), dtype=np.int64),
        )
        self._splits = np.zeros((n_leaves - 1, N_SPLIT_COLUMNS), dtype=np.int64)

    def grow(
        self,
        rows: npt.NDArray[np.uint32],
        n_positives: int,
        weights: Floats,
        features: npt.NDArray[np.bool_],
        rule: Rule,
    ) -> Integers:
        """Grow one tree.

        Parameters
        ----------
        rows : ndarray of shape (n_drawn,), uint32
            The rows to grow on, positives first, each class ascending.
        n_positives : int
            How many of `rows` are positive.
        weights : ndarray of shape (n_weights, n_rows), float64
        features : ndarray of shape (n_features,), bool
            Which may be cut.
        rule : Rule

        Returns
        -------
        ndarray of shape (n_leaves - 1, 4), int64
            Of each split the leaf, the feature, the cut (codes greater than it lie above) and
            whether the missing lie above. Empty where no cut has a gain.

        Notes
        -----
        O(n_features · n_drawn · depth). Sums run over fixed runs of rows and are added in order,
        so that the tree does not depend on the number of threads.
        """
        work = self._work._replace(weights=weights)
        work.allowed.reshape(-1)[: len(features)] = features
        work.rows[: len(rows)] = rows
        if len(weights) == 2:  # gradients tell the classes apart themselves
            n_positives = 0
        work.leaves[0] = (0, n_positives, n_positives, len(rows), 0, 0, -1, 0, 0)
        limits = self._max_depth, self._best_first
        cells = len(rows) * len(features)
        if cells < PARALLEL_CELLS or numba.get_num_threads() == 1:
            n = _grow(work, rule, *limits, False, self._splits)
        else:
            with PARALLEL_LOCK:
                n = _grow(work, rule, *limits, True, self._splits)
        return self._splits[:n].copy()


@numba.njit(numba.void(numba.int64[::1], numba.int64, _WORK, _RULE), nogil=True, cache=True)
def _finish(pair, block, work, rule):  # type: ignore[no-untyped-def]
    """Finish the histograms of two siblings and find the best cut of each."""
    own = work.histograms[work.leaves[pair[_ADDED], _PLACE], block]
    for r in range(pair[_FIRST_RUN], pair[_LAST_RUN]):
        run = work.runs[r]
        if run[_SPARE] >= 0:
            half, part = own[run[_HALF]], work.spare[run[_SPARE], block]
            for cell in range(CELLS):
                half[cell] += part[cell]
    if pair[_SIBLING] >= 0:
        other = work.histograms[work.leaves[pair[_SIBLING], _PLACE], block]
        for half in range(2):
            for cell in range(CELLS):
                other[half, cell] -= own[half, cell]
    n_bins, has_missing = work.blocks[block, 1], work.blocks[block, 2] != 0
    for leaf in (pair[_ADDED], pair[_SIBLING]):
        if leaf >= 0:
            histogram = work.histograms[work.leaves[leaf, _PLACE], block]
            gain, column, cut, missing_above = find_cut(
                histogram,
                n_bins,
                has_missing,
                work.allowed[block],
                rule.least_mass,
                rule.objective,
                rule.push,
                rule.smoothing,
            )
            found = work.found[leaf, block]
            found[0] = gain
            found[1] = block * COLUMNS + column
            found[2] = cut
            found[3] = missing_above


@numba.njit(numba.void(numba.int64, numba.int64, _WORK, _RULE), nogil=True, cache=True)
def _do(phase, t, work, rule):  # type: ignore[no-untyped-def]
    """Do one piece of a phase. No two pieces write to the same place."""
    n_blocks = len(work.blocks)
    if phase == _DIVIDE:
        run = work.runs[t]
        leaf = work.leaves[run[_LEAF]]
        first = leaf[_CUT] + 1
        width = MISSING - 1 + leaf[_MISSING] - first
        column = work.codes[leaf[_FEATURE]]
        run[_N_ABOVE] = divide_rows(
            column, np.uint8(first), np.uint8(width), run[_FROM], run[_TO], work.rows, work.divided
        )
    elif phase == _GATHER:
        run = work.runs[t]
        middle = run[_FROM] + run[_N_ABOVE]
        gather_rows(work.divided, run[_FROM], middle, run[_TO], work.rows, run[_ABOVE], run[_BELOW])
    elif phase == _ADD:
        run, block = work.runs[t // n_blocks], t % n_blocks
        if run[_SPARE] >= 0:
            histogram = work.spare[run[_SPARE], block]
        else:
            histogram = work.histograms[work.leaves[run[_LEAF], _PLACE], block, run[_HALF]]
        histogram[:] = 0.0
        weights, n_words = work.weights[run[_WEIGHTS]], work.blocks[block, 0]
        add_rows(work.words[block], work.rows, weights, run[_FROM], run[_TO], n_words, histogram)
    else:
        _finish(work.pairs[t // n_blocks], t % n_blocks, work, rule)


_DO_ALL = numba.void(numba.int64, numba.int64, _WORK, _RULE)


@numba.njit(_DO_ALL, nogil=True, cache=True)
def _do_serial(phase, n, work, rule):  # type: ignore[no-untyped-def]
    for t in range(n):
        _do(phase, t, work, rule)


@numba.njit(_DO_ALL, nogil=True, cache=True, parallel=True)
def _do_parallel(phase, n, work, rule):  # type: ignore[no-untyped-def]
    for t in numba.prange(n):
        _do(phase, t, work, rule)


@numba.njit(
    numba.void(numba.int64, numba.int64, _WORK, _RULE, numba.boolean), nogil=True, cache=True
)
def _do_all(phase, n, work, rule, parallel):  # type: ignore[no-untyped-def]
    if parallel and n > 1:
        _do_parallel(phase, n, work, rule)
    else:
        _do_serial(phase, n, work, rule)


@numba.njit(numba.int64(numba.int64, numba.int64, numba.int64, _I2), nogil=True, cache=True)
def _list_runs(leaf, start, stop, runs):  # type: ignore[no-untyped-def]
    """Cut rows[start:stop] of a leaf into runs; return how many."""
    n = 0
    while start < stop:
        runs[n, _LEAF] = leaf
        runs[n, _FROM] = start
        start = min(start + RUN_ROWS, stop)
        runs[n, _TO] = start
        n += 1
    return n


@numba.njit(
    numba.void(_WORK, _RULE, numba.boolean, numba.int64[::1], numba.int64), nogil=True, cache=True
)
def _divide_leaves(work, rule, parallel, batch, next_leaf):  # type: ignore[no-untyped-def]
    """Divide the rows of some leaves by their cuts; those below become leaves from next_leaf on."""
    n = 0
    for leaf in batch:
        for k in range(2):
            start, stop = work.leaves[leaf, _START + 2 * k], work.leaves[leaf, _START + 2 * k + 1]
            n += _list_runs(leaf, start, stop, work.runs[n:])
    _do_all(_DIVIDE, n, work, rule, parallel)
    r = 0
    for b, leaf in enumerate(batch):
        parent, child = work.leaves[leaf], work.leaves[next_leaf + b]
        for k in range(2):
            start, stop = parent[_START + 2 * k], parent[_START + 2 * k + 1]
            last = r
            middle = start
            while (
                last < n
                and work.runs[last, _LEAF] == leaf
                and (start <= work.runs[last, _FROM] < stop)
            ):
                middle += work.runs[last, _N_ABOVE]
                last += 1
            above, below = start, middle
            for i in range(r, last):
                work.runs[i, _ABOVE] = above
                work.runs[i, _BELOW] = below
                above += work.runs[i, _N_ABOVE]
                below += work.runs[i, _TO] - work.runs[i, _FROM] - work.runs[i, _N_ABOVE]
            r = last
            parent[_START + 2 * k + 1] = middle
            child[_START + 2 * k] = middle
            child[_START + 2 * k + 1] = stop
    _do_all(_GATHER, n, work, rule, parallel)


@numba.njit(numba.void(numba.int64[::1], numba.float64[:, ::1]), nogil=True, cache=True)
def _choose(leaf, found):  # type: ignore[no-untyped-def]
    """Take the best of the blocks' cuts, the lowest block among equals; its gain goes last."""
    last = len(found) - 1
    gain = 0.0
    leaf[_FEATURE] = -1
    for block in range(last):
        if found[block, 0] > gain * (1.0 + 1e-9):
            gain = found[block, 0]
            leaf[_FEATURE] = np.int64(found[block, 1])
            leaf[_CUT] = np.int64(found[block, 2])
            leaf[_MISSING] = np.int64(found[block, 3])
    found[last, 0] = gain


@numba.njit(numba.void(_WORK, _RULE, numba.boolean, numba.int64), nogil=True, cache=True)
def _scan_leaves(work, rule, parallel, n_pairs):  # type: ignore[no-untyped-def]
    """Add up one leaf of each pair of siblings, subtract it from the other, find the best cuts."""
    n_blocks = len(work.blocks)
    two_weights = len(work.weights) == 2
    n = n_spare = 0
    for t in range(n_pairs):
        pair = work.pairs[t]
        leaf = work.leaves[pair[_ADDED]]
        pair[_FIRST_RUN] = n
        for half in range(2):
            first = n
            for k in range(2):
                if k == half or two_weights:
                    start, stop = leaf[_START + 2 * k], leaf[_START + 2 * k + 1]
                    n += _list_runs(pair[_ADDED], start, stop, work.runs[n:])
            if n == first:  # no rows: the histogram is still to be cleared
                work.runs[n, _LEAF] = pair[_ADDED]
                work.runs[n, _FROM] = work.runs[n, _TO] = 0
                n += 1
            for r in range(first, n):
                work.runs[r, _HALF] = half
                work.runs[r, _WEIGHTS] = half if two_weights else 0
                work.runs[r, _SPARE] = -1
                if r > first:
                    work.runs[r, _SPARE] = n_spare
                    n_spare += 1
        pair[_LAST_RUN] = n
    _do_all(_ADD, n * n_blocks, work, rule, parallel)
    _do_all(_FINISH, n_pairs * n_blocks, work, rule, parallel)
    for t in range(n_pairs):
        for leaf in (work.pairs[t, _ADDED], work.pairs[t, _SIBLING]):
            if leaf >= 0:
                _choose(work.leaves[leaf], work.found[leaf])


@numba.njit(
    numba.int64(_WORK, numba.int64, numba.int64, numba.boolean, numba.int64[::1]),
    nogil=True,
    cache=True,
)
def _list_batch(work, n_leaves, max_depth, best_first, batch):  # type: ignore[no-untyped-def]
    """List the leaves to divide next; return how many."""
    n = 0
    best = 0.0
    for leaf in range(n_leaves):
        gain = work.found[leaf, len(work.blocks), 0]
        if gain > 0.0 and work.leaves[leaf, _DEPTH] < max_depth:
            if not best_first:
                batch[n] = leaf
                n += 1
            elif gain > best * (1.0 + 1e-9):
                best = gain
                batch[0] = leaf
                n = 1
    return n


@numba.njit(numba.int64(_WORK, numba.int64[::1], numba.int64, numba.int64), nogil=True, cache=True)
def _pair_up(work, batch, next_leaf, max_depth):  # type: ignore[no-untyped-def]
    """List the siblings just made that may be divided again, the smaller to be added up."""
    n = 0
    for b, leaf in enumerate(batch):
        above, below = work.leaves[leaf], work.leaves[next_leaf + b]
        if above[_DEPTH] == max_depth:
            continue
        n_above = above[1] - above[0] + above[3] - above[2]
        n_below = below[1] - below[0] + below[3] - below[2]
        if n_above < n_below:  # the new place takes what is added, the parent's becomes the rest
            above[_PLACE], below[_PLACE] = below[_PLACE], above[_PLACE]
            work.pairs[n, _ADDED] = leaf
            work.pairs[n, _SIBLING] = next_leaf + b
        else:
            work.pairs[n, _ADDED] = next_leaf + b
            work.pairs[n, _SIBLING] = leaf
        n += 1
    return n


@numba.njit(
    numba.int64(
        _WORK,
        _RULE,
        numba.int64,
        numba.boolean,
        numba.boolean,
        _I2,
    ),
    nogil=True,
    cache=True,
)
def _grow(work, rule, max_depth, best_first, parallel, splits):  # type: ignore[no-untyped-def]
    """Grow a tree; return its number of splits."""
    most = len(splits) + 1
    batch = np.empty(most, dtype=np.int64)
    work.pairs[0, _ADDED] = 0
    work.pairs[0, _SIBLING] = -1
    _scan_leaves(work, rule, parallel, 1)
    n_leaves = 1
    while n_leaves < most:
        n = _list_batch(work, n_leaves, max_depth, best_first, batch)
        if n == 0:
            break
        for b in range(n):
            leaf = work.leaves[batch[b]]
            splits[n_leaves - 1 + b, 0] = batch[b]
            splits[n_leaves - 1 + b, 1:] = leaf[_FEATURE : _MISSING + 1]
            leaf[_DEPTH] += 1
            child = work.leaves[n_leaves + b]
            child[_DEPTH] = leaf[_DEPTH]
            child[_PLACE] = n_leaves + b
            work.found[n_leaves + b, len(work.blocks), 0] = 0.0
            work.found[batch[b], len(work.blocks), 0] = 0.0
        if n_leaves + n < most:
            _divide_leaves(work, rule, parallel, batch[:n], n_leaves)
            n_pairs = _pair_up(work, batch[:n], n_leaves, max_depth)
            _scan_leaves(work, rule, parallel, n_pairs)
        n_leaves += n
    return n_leaves - 1
