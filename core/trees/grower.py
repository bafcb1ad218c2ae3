"""Growing a tree: leaves are divided, the smaller child is added up, its sibling subtracted.

A tree is a list of splits. Leaf 0 is the root; the s-th split (from 0) divides the leaf it names: rows above its cut
stay in that leaf, those below it become leaf s + 1. Level by level all leaves with a gain are divided; best first it is
the one that gains most, until there are enough.

A tree may also be grown from some of the rows alone, those of a cell, one cell after the other in one call: that is how
LeafRank grows the small tree in each node of a ranking tree. The rows of its last splits are divided, too, and the
masses of its nodes summed up from their rows.

Best first, several leaves are divided ahead at the same time: those that gain most, which will hardly be left out.
Which of them the tree gets, and in what order, is decided by their gains as if they had been divided one by one. So
threads have more to share, and wait for each other less often.

The threads of a fit form a parallel region (`core.coding.threads`). One of them leads it through the phases of a tree,
each of many pieces that no two of which write to the same place. Sums go over fixed runs of rows and are added in
order, so that the tree is the same whatever the number of threads.
"""

from typing import Any, NamedTuple

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
import numpy.typing as npt
from numba.core import cgutils
from numba.extending import intrinsic

from core.base.checkpoint import Resumable
from core.base.ranker import Floats
from core.coding import effective_counts
from core.coding.threads import (
    REGION_TYPE,
    SPINS,
    YIELDS,
    Helpers,
    atomic_add,
    atomic_load,
    publish,
    take_piece,
    wait_for_all,
    yield_core,
)
from core.errors import InvalidParameter
from core.kernels import INNER, kernel

from .coding import CELL, COLUMN, GROUP, LANES, MEMBER, Integers, Kind, Table
from .logistic import ROWS_AT_ONCE, write_derivatives
from .predictor import CODED_SPLIT, find_leaves
from .sampling import close_up, find_threshold, uniform
from .splitting import (
    BUNDLE,
    BY_SUBSET,
    SCRATCH_TYPE,
    SPLIT,
    TIE,
    YOUDEN,
    SplitCriterion,
    find_split,
    make_scratch,
    mark_codes,
)

MIN_LEAVES, MAX_LEAVES = 2, 1024
MAX_BYTES = (
    4 << 30
)  # of histograms: 31 leaves of 255 bins × 30 columns take 4 MB, of 65,535 bins a gigabyte

# Leaves that are divided at the same time, best first, by as many threads as share them; and at most. Those that the
# tree does not get in the end are work for nothing, so that one thread divides one leaf at a time.
AHEAD_PER_THREAD = 2
MAX_AHEAD = 16

# Rows that are divided as one piece; rows at least per code that are added up as one piece, so that clearing and
# adding up its histogram costs little beside; and pieces of a phase that are enough.
DIVIDED_ROWS = 1 << 14
ROWS_PER_CODE = 16
ENOUGH_PIECES = 8

# Rows of a run of passes over all rows, and those that are sent to their leaves at once: their codes stay in the
# first-level cache.
PASS_ROWS = 1 << 13
ROUTED_ROWS = 1024

# Rows between asking for a row and using it: about the time that memory takes.
SUMMED_ROWS = 1 << 15  # rows of a run whose weights are summed up: runs are added in order
AHEAD_OF_ADDING = 64
AHEAD_OF_DIVIDING = 256

NODE = np.dtype(
    [
        ("start", np.int64),  # of its rows
        ("stop", np.int64),
        ("place", np.int64),  # of its histogram
        ("depth", np.int64),
        ("leaf", np.int64),  # its number, once its parent's split belongs to the tree
        ("is_divided", np.int64),
        ("above", np.int64),  # its children, once it is divided
        ("below", np.int64),
        ("positive", np.float64),  # its masses, summed up from its rows; of trees of cells alone
        ("negative", np.float64),
    ],
    align=True,
)
RUN = np.dtype(
    [
        ("start", np.int64),
        ("stop", np.int64),
        ("item", np.int64),  # of the batch that is divided, or of the pairs that are added up
        ("n_above", np.int64),  # where rows are divided
        ("above", np.int64),  # where those above go; -1 where the run is all of its leaf
        ("below", np.int64),
        (
            "spare",
            np.int64,
        ),  # where rows are added up: the histogram that takes them, -1 for the leaf's own
    ],
    align=True,
)
PAIR = np.dtype(
    [
        ("added", np.int64),  # the node whose rows are added up
        ("sibling", np.int64),  # -1 for the root, which has none
        ("first_run", np.int64),
        ("n_runs", np.int64),  # 1: added up as the pair is finished
    ],
    align=True,
)
TREE_SPLIT = np.dtype(
    [
        ("leaf", np.int64),
        ("feature", np.int64),
        ("cut", np.int64),  # greater bins lie above; or BY_SUBSET
        ("missing_above", np.int64),
        ("node", np.int64),
    ],
    align=True,
)
PASS = np.dtype([("start", np.int64), ("stop", np.int64), ("negative", np.int64)], align=True)
TASK = np.dtype(
    [
        ("phase", np.int64),
        ("n_rows", np.int64),
        ("n_positives", np.int64),
        ("n_weights", np.int64),
        ("max_depth", np.int64),
        ("most_leaves", np.int64),
        ("best_first", np.int64),
        ("ahead", np.int64),  # leaves that are divided at the same time, best first
        ("threshold", np.float64),  # of the draw; 0 where all rows are taken
        ("key", np.uint64),
        ("objective", np.int64),
        ("push", np.float64),
        ("smoothing", np.float64),
        ("least_mass", np.float64),
        ("category_penalty", np.float64),
        ("category_mass", np.float64),
        ("category_smoothing", np.float64),
        ("class_positive", np.float64),
        ("class_negative", np.float64),
        ("inverse_ess_positive", np.float64),
        ("inverse_ess_negative", np.float64),
        ("n_cells", np.int64),  # from whose rows trees are grown; 0: one tree from all rows
        ("n_leaves", np.int64),
        ("n_nodes", np.int64),
        ("n_places", np.int64),
        ("n_columns", np.int64),
    ],
    align=True,
)

LIST, DRAW, ADD, BUILD, DIVIDE, GATHER, SUM, ROUTE, RESCALE, STEP = range(10)  # the phases
HELP, GROW = range(10, 12)  # what else a thread does


class FitArrays(NamedTuple):
    """The arrays of a fit, shared by its kernels.

    Attributes
    ----------
    task : ndarray of shape (1,), `TASK`
        What is done at present, and how far the tree is.
    words, groups, columns, members
        Of the table; see `coding.Table`.
    features : ndarray of shape (n_trees, n_features), bool
        Which features each tree may ask.
    cuttable : ndarray of shape (n_cells,), bool
        The cells at which a tree may cut that asks their column; see `coding.Table.cell_feature`.
    allowed : ndarray of shape (n_groups, 8), bool
        The columns that this tree may ask.
    weights : ndarray of shape (n_rows * n_weights,), float64
        Of each row a weight, or gradient and curvature.
    sample_weight, scores : ndarray of shape (n_rows,) or (0,), float64
    leaves : ndarray of shape (n_rows,), uint16
        Where each row was last sent.
    passes : ndarray of shape (n_passes,), `PASS`
        Runs of rows of one class.
    counts : ndarray of shape (n_passes,), int64
        Rows drawn of each run.
    sums : ndarray of shape (n_passes, 3, n_leaves), float64
    pass_sums : ndarray of shape (n_passes, 3), float64
    factors : ndarray of shape (2, n_leaves), float64
    rows : ndarray of shape (n_rows,), uint32
        The rows drawn, those of a node together, ascending.
    divided : ndarray of shape (n_rows,), uint32
        Where runs of rows are divided before they are put in their places; in the memory of `spare`.
    histograms, spare : ndarray of shape (n_places, 2 * n_cells), float64
        Of each group both numbers of each cell [code, column].
    nodes : ndarray of shape (n_nodes,), `NODE`
        The roots of all trees, then their other nodes.
    node_splits : ndarray of shape (n_nodes,), `SPLIT`
        The best of each.
    subsets : ndarray of shape (n_nodes, n_codes), uint8
        Of each node that is divided BY_SUBSET 1 for the codes above. No codes without categories.
    frontier : ndarray of shape (n_leaves,), int64
        The node that each leaf is; -1 if it will not be divided.
    batch : ndarray of shape (n_batch,), int64
        The nodes that are divided now.
    above : ndarray of shape (n_batch, n_codes), uint8
        1 for the codes above the split of each.
    pairs : ndarray of shape (n_batch,), `PAIR`
    found : ndarray of shape (2 * n_batch, n_groups), `SPLIT`
    runs : ndarray, `RUN`
    splits : ndarray of shape (n_leaves - 1,), `TREE_SPLIT`
    coded_splits : ndarray of shape (n_leaves - 1,), `CODED_SPLIT`
        The same splits as codes are compared, of columns by their places in `split_columns`.
    split_columns : ndarray of shape (n_leaves - 1,), int64
        Columns that the tree asks: 8 · group + lane.
    """

    task: Any
    words: Any
    groups: Any
    columns: Any
    members: Any
    features: Any
    cuttable: Any
    allowed: Any
    weights: Any
    sample_weight: Any
    scores: Any
    leaves: Any
    passes: Any
    counts: Any
    sums: Any
    pass_sums: Any
    factors: Any
    rows: Any
    divided: Any
    histograms: Any
    spare: Any
    nodes: Any
    node_splits: Any
    subsets: Any
    frontier: Any
    batch: Any
    above: Any
    pairs: Any
    found: Any
    runs: Any
    splits: Any
    coded_splits: Any
    split_columns: Any


_RECORDS = {
    "task": TASK,
    "groups": GROUP,
    "members": MEMBER,
    "passes": PASS,
    "nodes": NODE,
    "node_splits": SPLIT,
    "pairs": PAIR,
    "runs": RUN,
    "splits": TREE_SPLIT,
    "coded_splits": CODED_SPLIT,
}
_F1, _F2, _I1 = numba.float64[::1], numba.float64[:, ::1], numba.int64[::1]
_TYPES = {name: numba.from_dtype(dtype)[::1] for name, dtype in _RECORDS.items()} | {
    "words": numba.uint64[::1],
    "columns": numba.from_dtype(COLUMN)[:, ::1],
    "features": numba.boolean[:, ::1],
    "cuttable": numba.boolean[::1],
    "allowed": numba.boolean[:, ::1],
    "weights": _F1,
    "sample_weight": _F1,
    "scores": _F1,
    "leaves": numba.uint16[::1],
    "counts": _I1,
    "sums": numba.float64[:, :, ::1],
    "pass_sums": _F2,
    "factors": _F2,
    "rows": numba.uint32[::1],
    "divided": numba.uint32[::1],
    "histograms": _F2,
    "spare": _F2,
    "subsets": numba.uint8[:, ::1],
    "frontier": _I1,
    "batch": _I1,
    "above": numba.uint8[:, ::1],
    "found": numba.from_dtype(SPLIT)[:, ::1],
    "split_columns": _I1,
}
ARRAYS_TYPE = numba.types.NamedTuple([_TYPES[name] for name in FitArrays._fields], FitArrays)


@intrinsic
def prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Ask for array[index] to be brought into the cache."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = llvmlite.ir.IntType(8).as_pointer(), llvmlite.ir.IntType(32)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        kind = llvmlite.ir.FunctionType(llvmlite.ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # for reading, into all levels, data rather than instructions
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.int64), generate


@intrinsic
def _add_pair(typing_context, histogram, cell, first, second):  # type: ignore[no-untyped-def]
    """Add two numbers to two of a histogram, by one instruction."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = llvmlite.ir.VectorType(llvmlite.ir.DoubleType(), 2)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), kind.as_pointer())
        more = llvmlite.ir.Constant(kind, llvmlite.ir.Undefined)
        for k in range(2):
            place = llvmlite.ir.Constant(llvmlite.ir.IntType(32), k)
            more = builder.insert_element(more, arguments[2 + k], place)
        builder.store(builder.fadd(builder.load(address, align=8), more), address, align=8)
        return context.get_dummy_value()

    return numba.types.void(histogram, numba.uint64, numba.float64, numba.float64), generate


@numba.njit(inline="always")
def _add_words(words, rows, weights, least, start, stop, histogram, row_words, n_weights):  # type: ignore[no-untyped-def]
    last = stop - 1
    bits = np.uint64(8 * row_words)
    one_code = (np.uint64(1) << bits) - np.uint64(1)
    for i in range(start, stop):
        ahead = np.int64(rows[np.uint64(min(i + AHEAD_OF_ADDING, last))])
        prefetch(words, ahead * row_words)
        prefetch(weights, ahead * n_weights)
        row = np.uint64(rows[np.uint64(i)])
        first, second = weights[row * np.uint64(n_weights)], 0.0
        if n_weights == 1:
            first = max(first, least)
        else:
            size = abs(first)
            raised = least / size if size < least else 1.0
            first, second = first * raised, weights[np.uint64(2) * row + np.uint64(1)] * raised
        for q in range(row_words):
            word = words[row * np.uint64(row_words) + np.uint64(q)]
            per_word = LANES // row_words
            for k in range(per_word):
                code = (word >> (bits * np.uint64(k))) & one_code
                cell = code * np.uint64(CELL * LANES) + np.uint64(CELL * (per_word * q + k))
                if n_weights == 1:
                    histogram[cell] += first
                else:
                    _add_pair(histogram, cell, first, second)


@numba.njit(**INNER)
def find_first(rows, start, stop, least):  # type: ignore[no-untyped-def]
    """Find the first of rows[start:stop] that is not below `least`; those that are come first."""
    while start < stop:
        middle = (start + stop) // 2
        if rows[middle] < least:
            start = middle + 1
        else:
            stop = middle
    return start


@numba.njit(error_model="numpy", **INNER)
def add_rows(  # type: ignore[no-untyped-def]
    words, row_words, rows, weights, n_weights, least, n_positives, start, stop, histogram
):
    """Clear the histogram of a group and add rows[start:stop] to it.

    One weight is added to the cells of the row's class; gradient and curvature to both numbers of a cell. The weight of
    a row, or its gradient, is raised to `least` where it is less, and its curvature in proportion; see `sampling`.
    """
    for cell in range(len(histogram)):
        histogram[cell] = 0.0
    if n_weights == 2:
        # With constants for the numbers of words and weights the compiler unrolls all additions of a row.
        if row_words == 1:
            _add_words(words, rows, weights, least, start, stop, histogram, 1, 2)
        else:
            _add_words(words, rows, weights, least, start, stop, histogram, 2, 2)
        return
    middle = find_first(rows, start, stop, n_positives)
    for half in range(2):
        first, last = (start, middle) if half == 0 else (middle, stop)
        if row_words == 1:
            _add_words(words, rows, weights, least, first, last, histogram[half:], 1, 1)
        else:
            _add_words(words, rows, weights, least, first, last, histogram[half:], 2, 1)


@numba.njit(**INNER)
def divide_rows(words, row_words, lane, above, start, stop, rows, divided):  # type: ignore[no-untyped-def]
    """Divide rows[start:stop] by the codes of a column of a group; return how many lie above.

    `above` holds a 1 for each code above, a 0 for the others. Rows above go to the front of
    divided[start:stop] in their order, the others to its back in reverse.
    """
    per_word = LANES // row_words
    bits = np.uint64(8 * row_words)
    one_code = (np.uint64(1) << bits) - np.uint64(1)
    at = np.uint64(lane // per_word)
    shift = bits * np.uint64(lane % per_word)
    low = np.uint64(start)
    high = np.uint64(stop - 1)
    last = stop - 1
    for i in range(start, stop):
        ahead = np.int64(rows[np.uint64(min(i + AHEAD_OF_DIVIDING, last))])
        prefetch(words, ahead * row_words + np.int64(at))
        row = rows[np.uint64(i)]
        # written to both ends, one of which is written again: no branch to mispredict
        divided[low] = row
        divided[high] = row
        code = (words[np.uint64(row) * np.uint64(row_words) + at] >> shift) & one_code
        is_above = np.uint64(above[code])
        low += is_above
        high -= np.uint64(1) - is_above
    return np.int64(low) - start


@numba.njit(**INNER)
def gather_rows(divided, start, middle, stop, rows, above, below):  # type: ignore[no-untyped-def]
    """Copy divided[start:middle] to rows[above:] and divided[middle:stop], reversed, to rows[below:]."""
    for i in range(middle - start):
        rows[np.uint64(above + i)] = divided[np.uint64(start + i)]
    for i in range(stop - middle):
        rows[np.uint64(below + i)] = divided[np.uint64(stop - 1 - i)]


@numba.njit(**INNER)
def _draw(job, t):  # type: ignore[no-untyped-def]
    """Write the rows of a run that are kept, from its start on; see `sampling`."""
    task = job.task[0]
    start, stop = job.passes[t].start, job.passes[t].stop
    end = np.uint64(start)
    for i in range(start, stop):
        size = abs(job.weights[i * task.n_weights])
        kept = uniform(task.key, np.uint64(i)) * task.threshold < size
        job.rows[end] = i
        end += np.uint64(1) if kept else np.uint64(0)
    job.counts[t] = np.int64(end) - start


@numba.njit(**INNER)
def _add(job, g, node, start, stop, histogram):  # type: ignore[no-untyped-def]
    task, group = job.task[0], job.groups[g]
    add_rows(
        job.words[group.first_word :],
        group.row_words,
        job.rows,
        job.weights,
        task.n_weights,
        task.threshold,
        task.n_positives,
        start,
        stop,
        histogram,
    )


@numba.njit(**INNER)
def _criterion_of(task):  # type: ignore[no-untyped-def]
    return SplitCriterion(
        task.objective,
        task.push,
        task.smoothing,
        task.least_mass,
        task.category_penalty,
        task.category_mass,
        task.category_smoothing,
        task.class_positive,
        task.class_negative,
        task.inverse_ess_positive,
        task.inverse_ess_negative,
    )


@numba.njit(**INNER)
def _may_be_divided(job, number):  # type: ignore[no-untyped-def]
    """Whether a node of a cell's tree has both classes, and the mass of two leaves."""
    p, q = job.nodes[number].positive, job.nodes[number].negative
    return min(p, q) > 0.0 and p + q >= 2.0 * job.task[0].least_mass


@numba.njit(**INNER)
def _sum_weights(job, start, stop):  # type: ignore[no-untyped-def]
    """Sum up the weights of rows[start:stop], by runs."""
    if len(job.sample_weight) == 0:
        return float(stop - start)
    total = 0.0
    for first in range(start, stop, SUMMED_ROWS):
        of_run = 0.0
        for i in range(first, min(first + SUMMED_ROWS, stop)):
            of_run += job.weights[np.uint64(job.rows[np.uint64(i)])]
        total += of_run
    return total


@numba.njit(**INNER)
def _sum_node(job, number):  # type: ignore[no-untyped-def]
    """Sum up both masses of a node."""
    node = job.nodes[number]
    middle = find_first(job.rows, node.start, node.stop, job.task[0].n_positives)
    node.positive = _sum_weights(job, node.start, middle)
    node.negative = _sum_weights(job, middle, node.stop)


@numba.njit(**INNER)
def _build(job, p, g, scratch):  # type: ignore[no-untyped-def]
    """Finish a group of the histograms of two siblings, and find the best split of each by its columns."""
    task, group, pair = job.task[0], job.groups[g], job.pairs[p]
    first = CELL * group.first_cell
    last = first + CELL * LANES * group.n_codes
    node = job.nodes[pair.added]
    own = job.histograms[node.place, first:last]
    if pair.n_runs == 1:
        _add(job, g, pair.added, node.start, node.stop, own)
    for r in range(pair.first_run, pair.first_run + pair.n_runs):
        if pair.n_runs > 1 and job.runs[r].spare >= 0:
            part = job.spare[job.runs[r].spare, first:last]
            for cell in range(len(own)):
                own[cell] += part[cell]
    cuttable = job.cuttable[group.first_cell : group.first_cell + LANES * group.n_codes]
    criterion = _criterion_of(task)
    for which in range(2 if pair.sibling >= 0 else 1):
        number = pair.added
        if which == 1:
            number = pair.sibling
            other = job.histograms[job.nodes[number].place, first:last]
            for cell in range(len(own)):
                other[cell] -= own[cell]
            own = other
        found = job.found[2 * p + which, g]
        if task.n_cells > 0:
            if not _may_be_divided(job, number):
                found.lane = -1
                continue
            for k in range(LANES):
                scratch.total[CELL * k] = job.nodes[number].positive
                scratch.total[CELL * k + 1] = job.nodes[number].negative
        find_split(
            own,
            group,
            job.columns[g],
            job.members,
            job.allowed[g],
            cuttable,
            criterion,
            scratch,
            found,
        )
        found.group = g


@numba.njit(**INNER)
def _divide(job, t):  # type: ignore[no-untyped-def]
    run = job.runs[t]
    split = job.node_splits[job.batch[run.item]]
    group = job.groups[split.group]
    words, above = job.words[group.first_word :], job.above[run.item]
    run.n_above = divide_rows(
        words, group.row_words, split.lane, above, run.start, run.stop, job.rows, job.divided
    )
    if run.above < 0:
        middle = run.start + run.n_above
        gather_rows(job.divided, run.start, middle, run.stop, job.rows, run.start, middle)


@numba.njit(**INNER)
def _write_leaves(job, first, last, listed_from, listed_to, s, leaf):  # type: ignore[no-untyped-def]
    """Write the leaf of the rows from `first` to `last` in a part of the list, divided by split s if that is not -1."""
    rows, leaves = job.rows, job.leaves
    at = np.uint64(find_first(rows, listed_from, listed_to, first))
    end = np.uint64(find_first(rows, listed_from, listed_to, last))
    if s < 0:
        while at < end:
            leaves[np.uint64(rows[at])] = leaf
            at += np.uint64(1)
        return
    split = job.coded_splits[s]
    column = job.split_columns[split.column]
    group, lane = job.groups[column // LANES], column % LANES
    per_word = LANES // group.row_words
    words, n_words = job.words[group.first_word + lane // per_word :], np.uint64(group.row_words)
    bits = np.uint64(8 * group.row_words)
    shift, one_code = bits * np.uint64(lane % per_word), (np.uint64(1) << bits) - np.uint64(1)
    first_above, n_more, place = np.uint64(split.first), np.uint64(split.n_more), split.subset
    subsets = job.subsets.reshape(-1)
    while at < end:
        row = np.uint64(rows[at])
        code = (words[row * n_words] >> shift) & one_code
        if place >= 0:
            is_above = subsets[np.uint64(place) + code] != 0
        else:
            is_above = ((code - first_above) & one_code) <= (n_more & one_code)
        leaves[row] = leaf if is_above else s + 1
        at += np.uint64(1)


@numba.njit(**INNER)
def _read_leaves(job, start, stop):  # type: ignore[no-untyped-def]
    """Write the leaf of the rows from start to stop: by the lists of the nodes, which have all rows."""
    n_splits = job.task[0].n_leaves - 1
    for s in range(n_splits):
        split = job.splits[s]
        node = job.nodes[split.node]
        if not node.is_divided:
            _write_leaves(job, start, stop, node.start, node.stop, s, split.leaf)
    for leaf in range(n_splits + 1):
        if job.frontier[leaf] < 0:
            continue
        node = job.nodes[job.frontier[leaf]]
        middle = job.nodes[node.above].stop if node.is_divided else node.stop
        _write_leaves(job, start, stop, node.start, middle, -1, leaf)
        _write_leaves(job, start, stop, middle, node.stop, -1, leaf)


@numba.njit(**INNER)
def _find_leaves(job, start, stop):  # type: ignore[no-untyped-def]
    """Write the leaf of the rows from start to stop: by their codes."""
    task = job.task[0]
    n_columns, n_leaves = task.n_columns, task.n_leaves
    wide = False
    for u in range(n_columns):
        wide |= job.groups[job.split_columns[u] // LANES].row_words == 2
    narrow_codes = np.empty((0 if wide else n_columns, ROUTED_ROWS), dtype=np.uint8)
    wide_codes = np.empty((n_columns if wide else 0, ROUTED_ROWS), dtype=np.uint16)
    room = np.empty(ROUTED_ROWS, dtype=np.uint8)
    splits = job.coded_splits[: n_leaves - 1]
    subsets = job.subsets.reshape(-1)
    for low in range(start, stop, ROUTED_ROWS):
        n = min(ROUTED_ROWS, stop - low)
        for u in range(n_columns):
            g, lane = job.split_columns[u] // LANES, job.split_columns[u] % LANES
            group = job.groups[g]
            per_word = LANES // group.row_words
            first = group.first_word + low * group.row_words + lane // per_word
            words = job.words[first:]
            shift = np.uint64(lane % per_word * 8 * group.row_words)
            if wide and group.row_words == 2:
                for i in range(n):
                    wide_codes[u, i] = np.uint16((words[2 * i] >> shift) & np.uint64(0xFFFF))
            elif wide:
                for i in range(n):
                    wide_codes[u, i] = np.uint16((words[i] >> shift) & np.uint64(0xFF))
            else:
                for i in range(n):
                    narrow_codes[u, i] = np.uint8((words[i] >> shift) & np.uint64(0xFF))
        at = job.leaves[low : low + n]
        if wide:
            find_leaves(wide_codes, splits, subsets, room, at)
        else:
            find_leaves(narrow_codes, splits, subsets, room, at)


@numba.njit(**INNER)
def _route(job, t):  # type: ignore[no-untyped-def]
    """Write each row's leaf, and sums of weights to sums[run, half, leaf].

    One weight per row is summed by class; of two, each has a half of its own. Sample weights, all 1
    if there are none, go to sums[run, 2, leaf].
    """
    task, start, stop = job.task[0], job.passes[t].start, job.passes[t].stop
    n_leaves = task.n_leaves
    if task.threshold > 0.0:
        _find_leaves(job, start, stop)
    else:
        _read_leaves(job, start, stop)
    two_weights, weighted = task.n_weights == 2, len(job.sample_weight) > 0
    sums = job.sums[t]
    for half in range(3):
        for k in range(n_leaves):
            sums[half, k] = 0.0
    first_sums, second_sums = sums[0 if two_weights else job.passes[t].negative], sums[1]
    counts = sums[2]
    for i in range(start, stop):
        leaf = np.uint64(job.leaves[i])
        if two_weights:
            first_sums[leaf] += job.weights[2 * i]
            second_sums[leaf] += job.weights[2 * i + 1]
        else:
            first_sums[leaf] += job.weights[i]
        counts[leaf] += job.sample_weight[i] if weighted else 1.0


@numba.njit(error_model="numpy", **INNER)
def _rescale(job, t):  # type: ignore[no-untyped-def]
    """Multiply weights by factors[class, leaf], and sum up weight² / w, w being the sample weight."""
    weighted = len(job.sample_weight) > 0
    factor = job.factors[job.passes[t].negative]
    total = 0.0
    for i in range(job.passes[t].start, job.passes[t].stop):
        weight = job.weights[i] * factor[job.leaves[i]]
        job.weights[i] = weight
        total += weight * weight / job.sample_weight[i] if weighted else weight * weight
    job.pass_sums[t, 0] = total


@numba.njit(error_model="numpy", **INNER)
def _step(job, t):  # type: ignore[no-untyped-def]
    """Add factors[0, leaf] to each row's score, and write gradient and curvature of the logistic loss.

    Sums up the loss, the curvature, and curvature² / sample weight.
    """
    weighted = len(job.sample_weight) > 0
    values = job.factors[0]
    sign = -1.0 if job.passes[t].negative else 1.0
    margins, losses = np.empty(ROWS_AT_ONCE), np.empty(ROWS_AT_ONCE)
    loss = curvature = square = 0.0
    stop = job.passes[t].stop
    for low in range(job.passes[t].start, stop, ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, stop - low)
        for i in range(n):
            score = job.scores[low + i] + values[job.leaves[low + i]]
            job.scores[low + i] = score
            margins[i] = sign * score
        counts = job.sample_weight[low : low + n]
        weights = job.weights[2 * low : 2 * (low + n)]
        write_derivatives(margins[:n], sign, counts, weights, losses)
        for i in range(n):
            bend = weights[2 * i + 1]
            loss += losses[i]
            curvature += bend
            square += bend * bend / counts[i] if weighted else bend * bend
    job.pass_sums[t, 0] = loss
    job.pass_sums[t, 1] = curvature
    job.pass_sums[t, 2] = square


@kernel(numba.void(ARRAYS_TYPE, SCRATCH_TYPE, numba.int64), inner=True)
def _do_piece(job, scratch, t):  # type: ignore[no-untyped-def]
    """Do a piece of the present phase."""
    phase, n_groups = job.task[0].phase, len(job.groups)
    if phase == BUILD:
        _build(job, t // n_groups, t % n_groups, scratch)
    elif phase == DIVIDE:
        _divide(job, t)
    elif phase == GATHER:
        run = job.runs[t]
        if run.above >= 0:
            middle = run.start + run.n_above
            gather_rows(job.divided, run.start, middle, run.stop, job.rows, run.above, run.below)
    elif phase == ADD:
        run, g = job.runs[t // n_groups], t % n_groups
        first = CELL * job.groups[g].first_cell
        last = first + CELL * LANES * job.groups[g].n_codes
        node = job.pairs[run.item].added
        if run.spare >= 0:
            _add(job, g, node, run.start, run.stop, job.spare[run.spare, first:last])
        else:
            own = job.histograms[job.nodes[node].place, first:last]
            _add(job, g, node, run.start, run.stop, own)
    elif phase == SUM:
        _sum_node(job, job.nodes[job.batch[t]].above)
        _sum_node(job, job.nodes[job.batch[t]].below)
    elif phase == ROUTE:
        _route(job, t)
    elif phase == RESCALE:
        _rescale(job, t)
    elif phase == STEP:
        _step(job, t)
    elif phase == DRAW:
        _draw(job, t)
    else:
        for i in range(job.passes[t].start, job.passes[t].stop):
            job.rows[i] = i


@numba.njit(**INNER)
def _scratch_of(job):  # type: ignore[no-untyped-def]
    n_codes = 1
    for g in range(len(job.groups)):
        n_codes = max(n_codes, job.groups[g].n_codes)
    return make_scratch(n_codes)


@numba.njit(**INNER)
def _help_out(region, job, scratch):  # type: ignore[no-untyped-def]
    """Do pieces of the phases that another thread leads through, while there are any."""
    idle = 0
    while idle < SPINS + YIELDS and atomic_load(region.ended) == 0:
        t = take_piece(region)
        if t < 0:
            idle += 1
            if idle > SPINS:
                yield_core()
            continue
        idle = 0
        try:  # a piece that is never done would be waited for in vain
            _do_piece(job, scratch, t)
        except Exception:
            atomic_add(region.failed, 1)
        atomic_add(region.done, 1)


@kernel(numba.void(REGION_TYPE, ARRAYS_TYPE, SCRATCH_TYPE, numba.int64, numba.int64), inner=True)
def _lead(region, job, scratch, phase, n_pieces):  # type: ignore[no-untyped-def]
    """Go through a phase of so many pieces together with those who help."""
    job.task[0].phase = phase
    publish(region, n_pieces)
    t = take_piece(region)
    while t >= 0:
        _do_piece(job, scratch, t)
        atomic_add(region.done, 1)
        t = take_piece(region)
    wait_for_all(region, n_pieces)


@numba.njit(**INNER)
def _best_of_frontier(job, undivided):  # type: ignore[no-untyped-def]
    """Give the node that comes next: the one that gains most, or the first of the least depth; -1 without a gain.

    undivided: only among nodes that are not divided yet and whose children might be.
    """
    task = job.task[0]
    best = -1
    for leaf in range(task.n_leaves):
        node = job.frontier[leaf]
        if node < 0:
            continue
        depth = job.nodes[node].depth
        if undivided and (job.nodes[node].is_divided or depth + 1 >= task.max_depth):
            continue
        gain = job.node_splits[node].gain
        if job.node_splits[node].lane < 0 or depth >= task.max_depth:
            continue
        if best < 0:
            best = node
        elif task.best_first:
            best = node if gain > job.node_splits[best].gain * (1.0 + 1e-9) else best
        else:
            best = node if depth < job.nodes[best].depth else best
    return best


@numba.njit(**INNER)
def _mark(job, node, scratch, above):  # type: ignore[no-untyped-def]
    """Write which codes lie above the split of a node that is not divided yet."""
    task, split = job.task[0], job.node_splits[node]
    g = split.group
    group = job.groups[g]
    first = CELL * group.first_cell
    histogram = job.histograms[job.nodes[node].place, first : first + CELL * LANES * group.n_codes]
    criterion = _criterion_of(task)
    mark_codes(histogram, group, job.columns[g], job.members, criterion, scratch, split, above)


@numba.njit(**INNER)
def _commit(job, number, scratch):  # type: ignore[no-untyped-def]
    """Make the split of a node the tree's next one."""
    task, node, split = job.task[0], job.nodes[number], job.node_splits[number]
    s, new = task.n_leaves - 1, task.n_leaves
    g, lane, cut = split.group, split.lane, split.cut
    group, column = job.groups[g], job.columns[g][lane]
    n_known = group.n_codes - group.has_missing
    of_tree, coded = job.splits[s], job.coded_splits[s]
    of_tree.leaf, of_tree.feature, of_tree.node = node.leaf, split.feature, number
    of_tree.missing_above = split.missing_above
    of_tree.cut = 0 if column.kind == BUNDLE else cut
    place = 0
    while place < task.n_columns and job.split_columns[place] != LANES * g + lane:
        place += 1
    job.split_columns[place] = LANES * g + lane
    task.n_columns = max(task.n_columns, place + 1)
    coded.leaf, coded.column, coded.subset = node.leaf, place, -1
    if cut == BY_SUBSET:
        if not node.is_divided:
            _mark(job, number, scratch, job.subsets[number])
        coded.first = coded.n_more = 0
        coded.subset = number * job.subsets.shape[1]
    elif column.kind == BUNDLE:
        # the member's code alone, or the interval of all others, round the greatest code
        on_above = job.members[column.first_member + cut - 1].on_above != 0
        coded.first = cut if on_above else cut + 1
        coded.n_more = 0 if on_above else -2
    else:
        # The missing code, the greatest, ends the interval of those above or follows it.
        coded.first = cut + 1
        coded.n_more = n_known - 2 - cut + (split.missing_above if group.has_missing else 0)
    job.frontier[node.leaf] = node.above if node.is_divided else -1
    job.frontier[new] = node.below if node.is_divided else -1
    if node.is_divided:
        job.nodes[node.above].leaf = node.leaf
        job.nodes[node.below].leaf = new
    task.n_leaves += 1


@numba.njit(**INNER)
def _choose(job, scratch):  # type: ignore[no-untyped-def]
    """Commit to splits as far as nodes are divided, then choose those to divide next; return how many."""
    task = job.task[0]
    while task.n_leaves < task.most_leaves:
        node = _best_of_frontier(job, False)
        if node < 0:
            return 0
        children_matter = (
            task.n_leaves + 1 < task.most_leaves and job.nodes[node].depth + 1 < task.max_depth
        )
        if children_matter and not job.nodes[node].is_divided:
            break
        _commit(job, node, scratch)
    remaining = task.most_leaves - task.n_leaves
    if remaining == 0:
        return 0
    most = len(job.batch)
    if task.best_first:
        waiting = 0
        for leaf in range(task.n_leaves):
            node = job.frontier[leaf]
            waiting += 1 if node >= 0 and job.nodes[node].is_divided else 0
        ahead = task.ahead if task.n_cells == 0 else 1  # rows of a leaf must not be divided in vain
        most = max(min(ahead - waiting, remaining // 2), 1)
    n = 0
    depth = 0
    while n < most:
        node = _best_of_frontier(job, True)
        if node < 0 or (n > 0 and not task.best_first and job.nodes[node].depth > depth):
            break
        depth = job.nodes[node].depth
        job.nodes[node].is_divided = 1
        job.batch[n] = node
        n += 1
    return n


@numba.njit(**INNER)
def _divide_batch(region, job, scratch, n_batch):  # type: ignore[no-untyped-def]
    """Divide the rows of the nodes chosen among their children, and pair these; return the number of pairs.

    Of a cell's tree those pairs are left out of which neither may be divided further.
    """
    task = job.task[0]
    n = 0
    gathers = False
    for b in range(n_batch):
        node = job.nodes[job.batch[b]]
        _mark(job, job.batch[b], scratch, job.above[b])
        if job.node_splits[job.batch[b]].cut == BY_SUBSET:
            for code in range(job.subsets.shape[1]):
                job.subsets[job.batch[b], code] = job.above[b, code]
        size = node.stop - node.start
        parts = max((size + DIVIDED_ROWS - 1) // DIVIDED_ROWS, 1)
        gathers |= parts > 1
        for r in range(parts):
            run = job.runs[n + r]
            run.item = b
            run.start = node.start + size * r // parts
            run.stop = node.start + size * (r + 1) // parts
            run.above = 0 if parts > 1 else -1
        n += parts
    _lead(region, job, scratch, DIVIDE, n)
    r = 0
    for b in range(n_batch):
        parent = job.nodes[job.batch[b]]
        first = r
        middle = parent.start
        while r < n and job.runs[r].item == b:
            middle += job.runs[r].n_above
            r += 1
        above, below = parent.start, middle
        for k in range(first, r if r - first > 1 else first):
            run = job.runs[k]
            run.above, run.below = above, below
            above += run.n_above
            below += run.stop - run.start - run.n_above
        parent.above, parent.below = task.n_nodes, task.n_nodes + 1
        for child in range(task.n_nodes, task.n_nodes + 2):
            job.nodes[child].depth = parent.depth + 1
            job.nodes[child].is_divided = 0
            job.nodes[child].place = parent.place
        job.nodes[parent.above].start, job.nodes[parent.above].stop = parent.start, middle
        job.nodes[parent.below].start, job.nodes[parent.below].stop = middle, parent.stop
        # The smaller child is added up at a new place; the parent's becomes its sibling's.
        fewer_above = middle - parent.start < parent.stop - middle
        added = parent.above if fewer_above else parent.below
        job.nodes[added].place = task.n_places
        job.pairs[b].added = added
        job.pairs[b].sibling = parent.below if fewer_above else parent.above
        task.n_places += 1
        task.n_nodes += 2
    if gathers:
        _lead(region, job, scratch, GATHER, n)
    if task.n_cells == 0:
        return n_batch
    _lead(region, job, scratch, SUM, n_batch)
    n_pairs = 0
    for b in range(n_batch):
        added, sibling = job.pairs[b].added, job.pairs[b].sibling
        if _may_be_divided(job, added) or _may_be_divided(job, sibling):
            job.pairs[n_pairs].added, job.pairs[n_pairs].sibling = added, sibling
            n_pairs += 1
        else:
            job.node_splits[added].lane = job.node_splits[sibling].lane = -1
    return n_pairs


@numba.njit(**INNER)
def _build_pairs(region, job, scratch, n_pairs):  # type: ignore[no-untyped-def]
    """Add up the histograms of pairs of nodes, and find the best split of each."""
    n_groups = len(job.groups)
    n = n_spare = 0
    # Best first, how many pairs there are depends on the threads, which sums must not.
    together = 1 if job.task[0].best_first else n_pairs
    runs_each = (ENOUGH_PIECES - 1) // (together * n_groups) + 1
    for p in range(n_pairs):
        pair = job.pairs[p]
        node = job.nodes[pair.added]
        size = node.stop - node.start
        parts = max(min(runs_each, size // (ROWS_PER_CODE * len(scratch.share))), 1)
        pair.first_run, pair.n_runs = n, parts
        for r in range(parts if parts > 1 else 0):
            run = job.runs[n]
            run.item = p
            run.start = node.start + size * r // parts
            run.stop = node.start + size * (r + 1) // parts
            run.spare = n_spare if r > 0 else -1
            n_spare += 1 if r > 0 else 0
            n += 1
    if n > 0:
        _lead(region, job, scratch, ADD, n * n_groups)
    _lead(region, job, scratch, BUILD, n_pairs * n_groups)
    for p in range(n_pairs):
        for which in range(2):
            number = job.pairs[p].added if which == 0 else job.pairs[p].sibling
            if number < 0:
                continue
            best = 0
            node = job.nodes[number]
            for g in range(1, n_groups):
                split, so_far = job.found[2 * p + which, g], job.found[2 * p + which, best]
                if split.lane < 0:
                    continue
                tie = 1e-9 * so_far.gain
                if job.task[0].objective == YOUDEN:
                    tie = 10.0 * TIE * node.positive * node.negative
                near = abs(split.gain - so_far.gain) <= tie
                comes_first = split.feature < so_far.feature if near else split.gain > so_far.gain
                if so_far.lane < 0 or comes_first:
                    best = g
            job.node_splits[number] = job.found[2 * p + which, best]


@numba.njit(**INNER)
def _divide_leaves(region, job, scratch):  # type: ignore[no-untyped-def]
    """Divide the rows of those splits of the tree whose children nobody has looked at."""
    task = job.task[0]
    n = 0
    for s in range(task.n_leaves - 1):
        number = job.splits[s].node
        if not job.nodes[number].is_divided:
            job.nodes[number].is_divided = 1
            job.batch[n] = number
            n += 1
        if n == len(job.batch) or (n > 0 and s == task.n_leaves - 2):
            _divide_batch(region, job, scratch, n)
            n = 0
    for s in range(task.n_leaves - 1):
        node = job.nodes[job.splits[s].node]
        job.nodes[node.above].leaf, job.nodes[node.below].leaf = node.leaf, s + 1


@numba.njit(**INNER)
def _allow(job, tree):  # type: ignore[no-untyped-def]
    """Note which columns a tree may ask, and at which cells of bundles it may cut."""
    features = job.features[tree]
    for g in range(len(job.groups)):
        for k in range(LANES):
            column = job.columns[g][k]
            job.allowed[g, k] = features[column.feature] or column.kind == BUNDLE
            if column.kind == BUNDLE:
                for member in range(column.n_bins - 1):
                    cell = job.groups[g].first_cell + LANES * (member + 1) + k
                    job.cuttable[cell] = features[job.members[column.first_member + member].feature]


@numba.njit(**INNER)
def _grow_trees(region, job, scratch):  # type: ignore[no-untyped-def]
    """Grow a tree on the rows drawn, then send all rows to their leaves and sum these up; or a tree in each cell."""
    task = job.task[0]
    if task.n_cells == 0:
        n_rows = task.n_rows
        if task.threshold > 0.0:
            _lead(region, job, scratch, DRAW, len(job.passes))
            n_rows = close_up(job.rows, job.passes, job.counts)
        else:
            _lead(region, job, scratch, LIST, len(job.passes))
        job.nodes[0].start, job.nodes[0].stop = 0, n_rows
    task.n_nodes = max(task.n_cells, 1)
    for number in range(task.n_nodes):
        _allow(job, number)
        root = job.nodes[number]
        root.place = root.depth = root.leaf = root.is_divided = 0
        task.n_leaves = task.n_places = 1
        task.n_columns = 0
        job.frontier[0] = number
        job.pairs[0].added, job.pairs[0].sibling = number, -1
        n_pairs, n_batch = 1, 1
        while n_batch > 0:
            if n_pairs > 0:
                _build_pairs(region, job, scratch, n_pairs)
            n_batch = _choose(job, scratch)
            if n_batch > 0:
                n_pairs = _divide_batch(region, job, scratch, n_batch)
        if task.n_cells > 0:
            _divide_leaves(region, job, scratch)
    if task.n_cells == 0 and task.n_leaves > 1:
        _lead(region, job, scratch, ROUTE, len(job.passes))


@kernel(numba.void(REGION_TYPE, ARRAYS_TYPE, numba.int64))
def take_part(region, job, part):  # type: ignore[no-untyped-def]
    """Help in a region (HELP), or lead: grow trees (GROW), or go over all rows (RESCALE or STEP).

    Whatever a thread does is one kernel, so that the pieces of a tree are compiled once.
    """
    scratch = _scratch_of(job)
    if part == HELP:
        _help_out(region, job, scratch)
    elif part == GROW:
        _grow_trees(region, job, scratch)
    else:
        _lead(region, job, scratch, part, len(job.passes))


class Splits(NamedTuple):
    """A tree as it is grown, and what its leaves hold.

    Attributes
    ----------
    leaf, feature, cut : ndarray of shape (n_leaves - 1,), int64
        Of each split the leaf that it divides, the feature, and the bin beyond which rows lie above: -1 sets the
        missing apart, BY_SUBSET divides categories.
    missing_above : ndarray of shape (n_leaves - 1,), int64
    subsets : ndarray of shape (n_leaves - 1, n_codes), uint8
        Where the cut is BY_SUBSET, 1 for the codes above.
    sums : ndarray of shape (3, n_leaves), float64
        Positive and negative mass, or gradient and curvature; then the number of rows.
    """

    leaf: Integers
    feature: Integers
    cut: Integers
    missing_above: Integers
    subsets: npt.NDArray[np.uint8]
    sums: Floats


class CellTrees(NamedTuple):
    """Trees grown in cells, and their rows.

    Attributes
    ----------
    nodes : ndarray of shape (n_nodes,), `NODE`
        The roots, one of each cell, then the other nodes.
    splits : ndarray of shape (n_nodes,), `SPLIT`
        Of the nodes that are divided.
    subsets : ndarray of shape (n_nodes, n_codes), uint8
        Of those that are divided BY_SUBSET 1 for the codes above.
    rows : ndarray of uint32
        Those of a leaf together, its positives first.
    """

    nodes: npt.NDArray[np.void]
    splits: npt.NDArray[np.void]
    subsets: npt.NDArray[np.uint8]
    rows: npt.NDArray[np.uint32]


def count_leaves(table: Table) -> int:
    """Count the leaves of whose histograms there may be so many, of a tree that is grown best first."""
    return MAX_BYTES // (8 * CELL * table.n_cells)


class Grower(Resumable):
    """Grows trees on one table, and holds what its rows weigh.

    Parameters
    ----------
    table : Table
    weight : ndarray of shape (n_rows,), float64
        Sample weights, above 0.
    n_weights : int
        1: one weight per row, summed by class. 2: a gradient and a curvature per row, summed over
        all rows.
    max_depth : int
    max_leaves : int or None
        None grows level by level.
    rows : ndarray of uint32, optional
        Room for all rows, or those that cells have; None: of its own.
    n_cells : int
        Most cells of a call.

    Attributes
    ----------
    table : Table
    weights : ndarray of shape (n_rows, n_weights), float64
        To be written by the loss.
    scores : ndarray of shape (n_rows,) or (0,), float64
        Of two weights; to be written by the loss.
    leaves : ndarray of shape (n_rows,), uint16
        Where each row was last sent.
    sample_weight : ndarray of shape (n_rows,) or (0,), float64
        For how many rows each stands, see `core.coding.effective_counts`; empty where all weights are 1.
    row_weight : float
        The sample weight of what counts as one row, at most 1.

    Raises
    ------
    InvalidParameter
        The histograms of so many leaves and bins would take too much memory.

    Notes
    -----
    Memory: 10 bytes per row, 8 or 24 more for its weights; and 128 bytes per leaf, code and group of eight columns,
    of which only what a tree comes to use is ever touched.
    """

    def __init__(
        self,
        table: Table,
        weight: Floats,
        n_weights: int,
        max_depth: int,
        max_leaves: int | None,
        rows: npt.NDArray[np.uint32] | None = None,
        subsample: float = 1.0,
        n_cells: int = 1,
    ) -> None:
        n_rows, m = table.n_rows, table.n_positives
        n_leaves = max_leaves or 2**max_depth
        n_numbers = CELL * table.n_cells
        # level by level the last splits' children need no histograms
        n_held = n_leaves if max_leaves is not None else max(n_leaves // 2, 1)
        n_bytes = min(n_held, n_rows) * n_numbers * 8
        if n_bytes > MAX_BYTES:
            raise InvalidParameter(
                f"max_bins or the trees' size must be less: histograms of {n_leaves} leaves and "
                f"{n_numbers:,} numbers take {n_bytes / 1e9:.1f} GB, at most {MAX_BYTES / 1e9:.1f}"
            )
        is_weighted = bool((weight != 1.0).any())
        self.table = table
        self.sample_weight = effective_counts(weight) if is_weighted else np.empty(0)
        self.row_weight = float(weight[0] / self.sample_weight[0]) if is_weighted else 1.0
        self.leaves = np.zeros(n_rows, dtype=np.uint16)
        self.weights = np.zeros((n_rows, n_weights))
        self.scores = np.zeros(n_rows if n_weights == 2 else 0)
        bounds = [(start, min(start + PASS_ROWS, m), 0) for start in range(0, m, PASS_ROWS)]
        bounds += [
            (start, min(start + PASS_ROWS, n_rows), 1) for start in range(m, n_rows, PASS_ROWS)
        ]
        self._passes = np.array(bounds, dtype=PASS)
        task = np.zeros(1, dtype=TASK)
        task["n_rows"], task["n_positives"], task["n_weights"] = n_rows, m, n_weights
        task["max_depth"], task["most_leaves"] = max_depth, n_leaves
        task["best_first"] = max_leaves is not None
        n_groups = len(table.groups)
        n_ahead = max(
            min(MAX_AHEAD, n_leaves // 2 - 1), 1
        )  # as `_choose` has it, from two leaves on
        n_batch = n_ahead if max_leaves is not None else max(n_leaves // 2, 1)
        # The root's, one of each split but the last, and of each node that is divided in vain.
        n_splits = n_leaves - 1 + n_ahead
        n_places = n_splits if max_leaves is not None else n_held
        n_nodes = max(2 * n_splits + 1, n_cells * (2 * n_leaves - 1))
        n_codes = int(table.groups["n_codes"].max())
        is_categorical = table.columns["kind"] == Kind.CATEGORICAL
        n_runs = n_batch * ENOUGH_PIECES + n_rows // DIVIDED_ROWS + 1
        n_spare = (n_ahead if max_leaves is not None else 1) * ((ENOUGH_PIECES - 1) // n_groups)
        # Rows are divided and put in their places, and only then added up: both use the same room.
        room = np.empty(max(n_spare * n_numbers, -(-n_rows // 2)))
        self._arrays = FitArrays(
            task=task,
            words=table.words,
            groups=table.groups,
            columns=table.columns,
            members=table.members,
            features=np.zeros((n_cells, table.n_features), dtype=np.bool_),
            cuttable=table.cell_feature >= 0,
            allowed=np.zeros((n_groups, LANES), dtype=np.bool_),
            weights=self.weights.reshape(-1),
            sample_weight=self.sample_weight,
            scores=self.scores,
            leaves=self.leaves,
            passes=self._passes,
            counts=np.zeros(len(bounds), dtype=np.int64),
            sums=np.zeros((len(bounds), 3, n_leaves)),
            pass_sums=np.zeros((len(bounds), 3)),
            factors=np.empty((2, n_leaves)),
            rows=np.empty(n_rows, dtype=np.uint32) if rows is None else rows,
            divided=room.view(np.uint32)[:n_rows],
            histograms=np.empty((n_places, n_numbers)),
            spare=room[: n_spare * n_numbers].reshape(n_spare, n_numbers),
            nodes=np.zeros(n_nodes, dtype=NODE),
            node_splits=np.zeros(n_nodes, dtype=SPLIT),
            subsets=np.zeros((n_nodes, n_codes if is_categorical.any() else 0), dtype=np.uint8),
            frontier=np.zeros(n_leaves, dtype=np.int64),
            batch=np.zeros(n_batch, dtype=np.int64),
            above=np.zeros((n_batch, n_codes), dtype=np.uint8),
            pairs=np.zeros(n_batch, dtype=PAIR),
            found=np.zeros((2 * n_batch, n_groups), dtype=SPLIT),
            runs=np.zeros(n_runs, dtype=RUN),
            splits=np.zeros(n_leaves - 1, dtype=TREE_SPLIT),
            coded_splits=np.zeros(n_leaves - 1, dtype=CODED_SPLIT),
            split_columns=np.zeros(max(n_leaves - 1, 1), dtype=np.int64),
        )
        self._helpers = Helpers(n_rows * table.n_features, take_part, self._arrays, HELP)
        n_threads = self._helpers.n_threads
        task["ahead"] = min(AHEAD_PER_THREAD * n_threads, MAX_AHEAD) if n_threads > 1 else 1

    def grow(
        self, criterion: SplitCriterion, features: npt.NDArray[np.bool_], share: float, key: int
    ) -> Splits:
        """Grow one tree, and send all rows to its leaves.

        Parameters
        ----------
        criterion : SplitCriterion
        features : ndarray of shape (n_features,), bool
            Which may be cut.
        share : float
            Of the rows that it is grown on, drawn by their weights; see `sampling`.
        key : int
            Of the draw.

        Returns
        -------
        Splits
            Empty where no cut has a gain.

        Notes
        -----
        O(n_features · n_drawn · depth + n_rows · n_leaves).
        """
        job, task = self._arrays, self._arrays.task[0]
        job.features[:] = features
        task["n_cells"] = 0
        task["threshold"] = find_threshold(self.weights[:, 0], share) if share < 1.0 else 0.0
        task["key"] = key
        self._start(criterion)
        n_leaves = int(task["n_leaves"])
        splits = job.splits[: n_leaves - 1]
        sums = job.sums[:, :, :n_leaves].sum(axis=0) if n_leaves > 1 else np.empty((3, 1))
        return Splits(
            splits["leaf"].copy(),
            splits["feature"].copy(),
            splits["cut"].copy(),
            splits["missing_above"].copy(),
            job.subsets[splits["node"]],
            sums,
        )

    def grow_cells(
        self,
        criterion: SplitCriterion,
        cells: npt.NDArray[np.void],
        features: npt.NDArray[np.bool_],
    ) -> CellTrees:
        """Grow a tree in each of some cells, whose rows no two share, and sort the rows by its leaves.

        Parameters
        ----------
        criterion : SplitCriterion
        cells : ndarray of shape (n_cells,)
            With the fields `start` and `stop`, of their rows among `rows`, positives first, and `positive` and
            `negative`, their masses.
        features : ndarray of shape (n_features,) or (n_cells, n_features), bool
            Which may be cut.

        Returns
        -------
        CellTrees
            In the grower's own memory: the next call changes them.
        """
        job, task, n = self._arrays, self._arrays.task[0], len(cells)
        job.features[:n] = features
        for name in ("start", "stop", "positive", "negative"):
            job.nodes[name][:n] = cells[name]
        task["n_cells"] = n
        self._start(criterion)
        n_nodes = int(task["n_nodes"])
        return CellTrees(job.nodes[:n_nodes], job.node_splits[:n_nodes], job.subsets, job.rows)

    def _start(self, criterion: SplitCriterion) -> None:
        for name, value in criterion._asdict().items():
            self._arrays.task[0][name] = value
        with self._helpers as region:
            take_part(region, self._arrays, GROW)

    def rescale(self, factors: Floats) -> float:
        """Multiply weights by factors[class, leaf]; give Σ weight² / w, w being the sample weight."""
        return sum(self._pass_over(RESCALE, factors)[0])

    def step(self, values: Floats) -> list[tuple[float, float]]:
        """Add values[leaf] to the scores, and write the logistic loss's gradients and curvatures.

        Returns
        -------
        list of (float, float)
            The loss, Σ curvature, and Σ curvature² / w, each of positives and of negatives.
        """
        return self._pass_over(STEP, values[None])

    def _pass_over(self, phase: int, factors: Floats) -> list[tuple[float, float]]:
        self._arrays.factors[: len(factors), : factors.shape[1]] = factors
        with self._helpers as region:
            take_part(region, self._arrays, phase)
        negative = self._passes["negative"] == 1
        return [
            (float(sums[~negative].sum()), float(sums[negative].sum()))
            for sums in self._arrays.pass_sums.T
        ]
