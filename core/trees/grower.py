"""Growing a tree: a leaf is split, the histogram of its smaller child is summed up, that of the other by subtraction.

A tree is a list of splits. Leaf 0 is the root. Split s, counted from 0, names a leaf: rows above its cut stay in that
leaf, rows below it go to leaf s + 1. Level by level, all leaves with a gain are split; best first, the leaf of greatest
gain is split until there are `max_leaves`.

Trees can also be grown in cells, from the rows of each cell alone, all cells in one call: this is how LeafRank grows
the small tree in each node of a ranking tree. There the rows of the last splits are partitioned too, and the masses of
the nodes are summed up from their rows.

Best first, several leaves are split speculatively at the same time: those of greatest gain, which the tree will nearly
always get. Their gains decide which of them it gets, and in which order, as if they had been split one by one. This
gives the threads more to share, and they wait for each other less often.

The threads of a fit form a parallel region (`core.coding.threads`). One of them leads it through the phases of a tree.
A phase has many tasks, no two of which write to the same memory.

Histograms are sums of whole numbers: the weights of a tree's rows are rounded to units, small enough that all sums are
exact in 32 bits. A histogram by subtraction is that of the rows themselves, and the tree does not depend on the number
of threads, nor on the order in which rows are added. Other sums go over fixed runs of rows and are added in order, and
those of shards along a fixed tree (`core.coding.rows.Division`): those that choose the unit, and those of the leaves,
whose values are computed from the weights as they are. So rows may be elsewhere (`core.trees.shards`).

Kernels pass each other the address of the arrays of the fit (`place`) and of the thread's memory for scans (`room`),
and threads call the tasks by their address: `run_worker` is compiled without them.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
import numpy.typing as npt
from numba.core import cgutils
from numba.extending import intrinsic

from core.base.checkpoint import Resumable
from core.base.ranker import Floats
from core.base.shards import add_in_order
from core.base.state import Arrays
from core.coding.rows import Division
from core.coding.stored import mapped
from core.coding.threads import (
    REGION_TYPE,
    SPINS,
    YIELDS,
    Region,
    WorkerTeam,
    address_of,
    atomic_add,
    atomic_load,
    call_at,
    keep_alive,
    lay_out,
    publish,
    take_task,
    tuple_at,
    wait_for_all,
    yield_core,
)
from core.errors import ArtifactError, InvalidParameter
from core.kernels import INNER, address_of_kernel, kernel

from .coding import COLUMN, GROUP, LANES, MEMBER, Integers, Kind, Layout, Table
from .logistic import ROWS_AT_ONCE, write_derivatives
from .predictor import CODED_SPLIT, find_leaves
from .sampling import THRESHOLD_ROWS, close_up, find_threshold, uniform
from .splitting import (
    BUNDLE,
    BY_SUBSET,
    GRADIENT,
    MASS_RTOL,
    SPLIT,
    YOUDEN,
    SplitCriterion,
    find_split,
    make_scratch,
    mark_codes,
    masses_of,
    scratch_at,
)

MIN_LEAVES, MAX_LEAVES = 2, 1024
# Bytes of all histograms: 31 leaves of 255 bins × 30 columns take 4 MB, of 65,535 bins a gigabyte.
MAX_BYTES = 4 << 30

# Leaves that are split at the same time, best first, per thread and at most. A split that the tree does not get in the
# end is wasted, so that a single thread splits one leaf at a time.
SPLITS_PER_THREAD = 2
MAX_SPECULATIVE_SPLITS = 16
# Of a leader: a question to its followers takes milliseconds.
LED_SPLITS = 8

# Rows that one task partitions.
PARTITION_ROWS = 1 << 14
# Rows per code that one task adds to a histogram, at least: then clearing the histogram costs little.
MIN_ROWS_PER_CODE = 16
# Tasks into which a phase is divided, about.
TASKS_PER_PHASE = 8

# The weights of a tree's rows, in units of the histogram and times the margin, sum to less than 2 to this power, and to
# half of it at least. Half a cell holds 2^31: there is room for 700 million rows that are all rounded up.
UNIT_BITS = 30
# Weights that sum to 1, or to a simple fraction, are far from a sum at which the unit changes.
UNIT_MARGIN = 0.74
# The least unit is 2 to this power, so that one divided by it is a number.
MIN_UNIT = -1000
# Rows up to which each is rounded to the nearest unit: all together they lose less than 2^-10 of their sum. Of more
# rows, each is rounded up with the probability that keeps sums unbiased.
MAX_NEAREST_ROWS = 1 << 20
# Part of the least mass of a leaf that rounding may take: half a unit of each row, and no more than this.
MAX_ROUNDING = 0.05

# Rows of one run in a pass over all rows.
PASS_ROWS = 1 << 13
# Rows that are sent to their leaves together: their codes stay in the first-level cache.
ROUTED_ROWS = 1024
# Rows of a run whose weights are summed up: the sums of runs are added in order.
SUMMED_ROWS = 1 << 15
# Rows between prefetching a row and using it, about the time that memory takes: for adding and for partitioning.
PREFETCH_ADD = 64
PREFETCH_PARTITION = 256

NODE = np.dtype(
    [
        ("start", np.int64),  # of its rows
        ("stop", np.int64),
        ("histogram", np.int64),  # its index in `SumArrays.histograms`
        ("depth", np.int64),
        ("leaf", np.int64),  # its number, once its parent's split belongs to the tree
        ("is_split", np.int64),
        ("above", np.int64),  # its children, once it is partitioned
        ("below", np.int64),
        ("positive", np.float64),  # its masses, of trees of cells summed up from its rows
        ("negative", np.float64),
    ],
    align=True,
)
RUN = np.dtype(
    [
        ("start", np.int64),
        ("stop", np.int64),
        ("item", np.int64),  # of the batch that is partitioned, or of the pairs that are added up
        ("n_above", np.int64),  # where rows are partitioned
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
PASS = np.dtype(
    [
        ("start", np.int64),
        ("stop", np.int64),
        ("negative", np.int64),
        ("shard", np.int64),  # of those that are here, from 0
    ],
    align=True,
)
SETTINGS = np.dtype(
    [
        ("n_rows", np.int64),
        ("n_positives", np.int64),
        ("n_weights", np.int64),
        ("max_depth", np.int64),
        ("max_leaves", np.int64),
        ("best_first", np.int64),  # 0: level by level
        ("speculative_splits", np.int64),  # leaves that are split at the same time, best first
        ("rounds_to_nearest", np.int64),  # see `MAX_NEAREST_ROWS`
        ("positives_offset", np.int64),  # see `core.coding.rows.Division.offsets`
        ("negatives_offset", np.int64),
        ("role", np.int64),
        ("run_task", np.int64),  # the address of `_run_task`
    ],
    align=True,
)
"""What is the same for all trees of a fit."""

CRITERION = np.dtype(
    [(name, np.int64 if name == "objective" else np.float64) for name in SplitCriterion._fields],
    align=True,
)
"""A `SplitCriterion` as a record."""

N_SPLIT_FIELDS = len(CODED_SPLIT.names or ())

PROGRESS = np.dtype(
    [
        ("phase", np.int64),
        ("threshold", np.float64),  # of the draw of rows; 0 where all rows are taken
        ("key", np.uint64),  # of the draw of rows
        ("n_cells", np.int64),  # cells in which trees are grown; 0: one tree from all rows
        ("n_leaves", np.int64),
        ("n_nodes", np.int64),
        ("n_histograms", np.int64),
        ("n_free", np.int64),  # of these histograms, that no node needs any more
        ("n_columns", np.int64),  # that the tree has split on
        ("n_pairs", np.int64),  # pairs whose histograms are to be summed up
        ("n_batch", np.int64),  # nodes that are split at present; 0: the tree is grown
    ],
    align=True,
)
"""What is done at present, and how far the tree is."""

# Phases, and other work that a thread can be called for.
LIST, DRAW, ROUND, ADD, BUILD, MARK, PARTITION, GATHER, SUM, ROUTE, RESCALE, STEP = range(12)
WORK, GROW, PLANT, ADVANCE, LIST_ROWS, ADD_ROOT, DIVIDE, ADD_PAIRS = range(12, 20)

# What a grower does: it has rows and finds splits; or another one, which has no rows, finds splits for those that have.
WHOLE, LEADER, FOLLOWER = range(3)


class CodeArrays(NamedTuple):
    """The coded table, and what a tree may split on.

    Attributes
    ----------
    words, groups, columns, members
        Of the table; see `coding.Table`.
    features : ndarray of shape (n_trees, n_features), bool
        Features that each tree may split on.
    cuttable : ndarray of shape (n_cells,), bool
        Cells at which this tree may cut, if it may split on their column; see `coding.Table.cell_feature`.
    allowed : ndarray of shape (n_groups, 8), bool
        Columns that this tree may split on.
    """

    words: Any
    groups: Any
    columns: Any
    members: Any
    features: Any
    cuttable: Any
    allowed: Any


class RowArrays(NamedTuple):
    """The rows: their weights and scores, and in which node and leaf they are.

    Attributes
    ----------
    weights : ndarray of shape (n_rows * n_weights,), float64
        One weight per row, or gradient and Hessian.
    units : ndarray of shape (n_rows * n_weights,), uint32
        The weights in units of the histograms; see `round_weights`.
    sample_weight, scores : ndarray of shape (n_rows,) or (0,), float64
    leaves : ndarray of shape (n_rows,), uint16
        Leaf of each row in the last tree.
    listed : ndarray of shape (n_rows,), uint32
        The rows drawn; rows of a node are together, ascending.
    partitioned : ndarray of shape (n_rows,), uint32
        Rows after they were partitioned, before they are copied to `listed`; in the memory of `SumArrays.spare`.
    passes : ndarray of shape (n_passes,), `PASS`
        Runs of rows of one class.
    n_drawn : ndarray of shape (n_passes,), int64
        Number of rows drawn from each run.
    """

    weights: Any
    units: Any
    sample_weight: Any
    scores: Any
    leaves: Any
    listed: Any
    partitioned: Any
    passes: Any
    n_drawn: Any


class SumArrays(NamedTuple):
    """Sums over rows.

    Attributes
    ----------
    histograms, spare : ndarray of shape (n_histograms, n_cells), int64
        For each group the cells [code, column]: sums of weights in units, exact in any order. The upper half of a cell
        is the mass of positives, or the gradient, the lower that of negatives, or the Hessian; see
        `splitting.masses_of`. `spare` holds parts that are added up to histograms.
    by_leaf : ndarray of shape (n_passes, 2 + n_weights, n_leaves), float64
        See `Splits.sums`.
    by_pass : ndarray of shape (n_passes, 3), float64
        What `LIST`, `DRAW`, `RESCALE` and `STEP` sum up.
    by_shard : ndarray of shape (n_shards, 2), float64
        Sums of the weights from which the units are chosen.
    factors : ndarray of shape (2, n_leaves), float64
        What `RESCALE` multiplies weights by, or `STEP` adds to scores.
    """

    histograms: Any
    spare: Any
    by_leaf: Any
    by_pass: Any
    by_shard: Any
    factors: Any


class TreeArrays(NamedTuple):
    """The tree: its nodes and splits, and the nodes that are split at present.

    Attributes
    ----------
    nodes : ndarray of shape (n_nodes,), `NODE`
        The roots of all trees, then their other nodes.
    node_splits : ndarray of shape (n_nodes,), `SPLIT`
        Best split of each node.
    subsets : ndarray of shape (n_nodes, n_codes), uint8
        For a node that is split BY_SUBSET 1 for the codes above. Without categories n_codes is 0.
    open_leaves : ndarray of shape (n_leaves,), int64
        Node of each leaf; -1 if the leaf will not be split.
    open_gains : ndarray of shape (n_leaves,), float64
        Gain of the best split of each leaf; below 0 if the leaf will not be split.
    free : ndarray of shape (n_nodes,), int64
        Histograms that no node needs any more: the first `n_free`.
    batch : ndarray of shape (n_batch,), int64
        Nodes that are split at present.
    above : ndarray of shape (n_batch, n_codes), uint8
        For each of them 1 for the codes above its split.
    pairs : ndarray of shape (n_batch,), `PAIR`
    runs : ndarray, `RUN`
    group_splits : ndarray of shape (2 * n_batch, n_groups), `SPLIT`
        Best split by the columns of each group, of both nodes of each pair.
    splits : ndarray of shape (n_leaves - 1,), `TREE_SPLIT`
    coded_splits : ndarray of shape (n_leaves - 1,), `CODED_SPLIT`
        The same splits as `find_leaves` compares codes; columns are indices of `split_columns`.
    split_columns : ndarray of shape (n_leaves - 1,), int64
        Columns that the tree has split on: 8 · group + lane.
    """

    nodes: Any
    node_splits: Any
    subsets: Any
    open_leaves: Any
    open_gains: Any
    free: Any
    batch: Any
    above: Any
    pairs: Any
    runs: Any
    group_splits: Any
    splits: Any
    coded_splits: Any
    split_columns: Any


class FitArrays(NamedTuple):
    """The arrays of a fit, shared by its kernels and threads.

    Attributes
    ----------
    settings, criterion, progress : ndarray of shape (1,), `SETTINGS`, `CRITERION` and `PROGRESS`
    codes : CodeArrays
    rows : RowArrays
    sums : SumArrays
    tree : TreeArrays
    """

    settings: Any
    criterion: Any
    progress: Any
    codes: CodeArrays
    rows: RowArrays
    sums: SumArrays
    tree: TreeArrays


_F1, _F2, _I1 = numba.float64[::1], numba.float64[:, ::1], numba.int64[::1]


def _records(dtype: np.dtype[np.void]) -> Any:
    return numba.from_dtype(dtype)[::1]


_CODES_TYPE = numba.types.NamedTuple(
    (
        numba.uint64[::1],
        _records(GROUP),
        numba.from_dtype(COLUMN)[:, ::1],
        _records(MEMBER),
        numba.boolean[:, ::1],
        numba.boolean[::1],
        numba.boolean[:, ::1],
    ),
    CodeArrays,
)
_ROWS_TYPE = numba.types.NamedTuple(
    (
        _F1,
        numba.uint32[::1],
        _F1,
        _F1,
        numba.uint16[::1],
        numba.uint32[::1],
        numba.uint32[::1],
        _records(PASS),
        _I1,
    ),
    RowArrays,
)
_I2 = numba.int64[:, ::1]
_SUMS_TYPE = numba.types.NamedTuple((_I2, _I2, numba.float64[:, :, ::1], _F2, _F2, _F2), SumArrays)
_TREE_TYPE = numba.types.NamedTuple(
    (
        _records(NODE),
        _records(SPLIT),
        numba.uint8[:, ::1],
        _I1,
        _F1,
        _I1,
        _I1,
        numba.uint8[:, ::1],
        _records(PAIR),
        _records(RUN),
        numba.from_dtype(SPLIT)[:, ::1],
        _records(TREE_SPLIT),
        _records(CODED_SPLIT),
        _I1,
    ),
    TreeArrays,
)
FIT_TYPE = numba.types.NamedTuple(
    (
        _records(SETTINGS),
        _records(CRITERION),
        _records(PROGRESS),
        _CODES_TYPE,
        _ROWS_TYPE,
        _SUMS_TYPE,
        _TREE_TYPE,
    ),
    FitArrays,
)
arrays_at = tuple_at(FIT_TYPE)


@intrinsic
def prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Prefetch array[index] into the cache; array is 1-D of any dtype."""

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


@numba.njit(**INNER)
def find_first(rows, start, stop, least):  # type: ignore[no-untyped-def]
    """Return the first index from start to stop whose row is at least `least`; rows: (n,) uint32, ascending there."""
    while start < stop:
        middle = (start + stop) // 2
        if rows[middle] < least:
            start = middle + 1
        else:
            stop = middle
    return start


@numba.njit(**INNER)
def partition_rows(words, row_words, lane, above, start, stop, rows, upper, partitioned):  # type: ignore[no-untyped-def]
    """Partition rows[start:stop] by the codes of a column of a group; return the number of rows above.

    words: uint64, the group's codes; lane: the column in its group; above: (n_codes,) uint8, 1 for the codes above;
    rows, upper, partitioned: (n,) uint32. Rows above go to the front of upper[start:stop] in their order, the others to
    the back of partitioned[start:stop] in reverse. `upper` may be `rows` itself.
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
        prefetched = np.int64(rows[np.uint64(min(i + PREFETCH_PARTITION, last))])
        prefetch(words, prefetched * row_words + np.int64(at))
        row = rows[np.uint64(i)]
        # written to both ends, one of which is written again: no branch to mispredict
        upper[low] = row
        partitioned[high] = row
        code = (words[np.uint64(row) * np.uint64(row_words) + at] >> shift) & one_code
        is_above = np.uint64(above[code])
        low += is_above
        high -= np.uint64(1) - is_above
    return np.int64(low) - start


@numba.njit(**INNER)
def gather_rows(partitioned, start, middle, stop, rows, above, below):  # type: ignore[no-untyped-def]
    """Copy partitioned[start:middle] to rows[above:], partitioned[middle:stop] in reverse to rows[below:]; uint32."""
    for i in range(middle - start):
        rows[np.uint64(above + i)] = partitioned[np.uint64(start + i)]
    for i in range(stop - middle):
        rows[np.uint64(below + i)] = partitioned[np.uint64(stop - 1 - i)]


@numba.njit(inline="always")
def _sum_sizes(numbers, start, stop, stride):  # type: ignore[no-untyped-def]
    """Return the sum of the sizes of every stride-th number, in four parts: one alone would wait for each addition."""
    sums = 0.0, 0.0, 0.0, 0.0
    middle = stop - (stop - start) % (4 * stride)
    for i in range(start, middle, 4 * stride):
        sums = (
            sums[0] + abs(numbers[i]),
            sums[1] + abs(numbers[i + stride]),
            sums[2] + abs(numbers[i + 2 * stride]),
            sums[3] + abs(numbers[i + 3 * stride]),
        )
    total = sums[0] + sums[1] + sums[2] + sums[3]
    for i in range(middle, stop, stride):
        total += abs(numbers[i])
    return total


@numba.njit(**INNER)
def _list(place, t):  # type: ignore[no-untyped-def]
    """Write the rows of run t to `listed`, and sum up their weights."""
    fit = arrays_at(place)
    n_weights, weights = fit.settings[0].n_weights, fit.rows.weights
    start, stop = fit.rows.passes[t].start, fit.rows.passes[t].stop
    for i in range(start, stop):
        fit.rows.listed[i] = i
    first, last = n_weights * start, n_weights * stop
    fit.sums.by_pass[t, 0] = _sum_sizes(weights, first, last, n_weights)
    fit.sums.by_pass[t, 1] = fit.sums.by_pass[t, 0]
    if n_weights == 2:
        fit.sums.by_pass[t, 1] = _sum_sizes(weights[1:], first, last - 1, 2)


@numba.njit(error_model="numpy", **INNER)
def _draw(place, t):  # type: ignore[no-untyped-def]
    """Write the rows drawn from run t to `listed`, from the start of the run on, and sum up their weights."""
    fit = arrays_at(place)
    settings, progress = fit.settings[0], fit.progress[0]
    start, stop = fit.rows.passes[t].start, fit.rows.passes[t].stop
    offset = settings.negatives_offset if fit.rows.passes[t].negative else settings.positives_offset
    end = np.uint64(start)
    first_sum = second_sum = 0.0
    for i in range(start, stop):
        size = abs(fit.rows.weights[i * settings.n_weights])
        kept = uniform(progress.key, np.uint64(i + offset)) * progress.threshold < size
        fit.rows.listed[end] = i
        end += np.uint64(1) if kept else np.uint64(0)
        raised = max(size, progress.threshold)
        first_sum += raised if kept else 0.0
        if settings.n_weights == 2:
            second_sum += fit.rows.weights[2 * i + 1] * (raised / size) if kept else 0.0
    fit.rows.n_drawn[t] = np.int64(end) - start
    fit.sums.by_pass[t, 0] = first_sum
    fit.sums.by_pass[t, 1] = second_sum if settings.n_weights == 2 else first_sum


@numba.njit(**INNER)
def unit_of(total):  # type: ignore[no-untyped-def]
    """Return the power of two that is the unit of weights of this sum; see `UNIT_BITS`."""
    if not 0.0 < total < np.inf:
        return 1.0
    _, exponent = math.frexp(UNIT_MARGIN * total)
    return math.ldexp(1.0, max(exponent - UNIT_BITS, MIN_UNIT))


@numba.njit(error_model="numpy", **INNER)
def round_weights(weights, n_weights, rows, start, stop, least, scales, nearest, key, after, units):  # type: ignore[no-untyped-def]
    """Write the weights of rows[start:stop], in units, to units.

    weights: (n_rows · n_weights,) float64; rows: (n,) uint32; units: (n_rows · n_weights,) uint32: a single weight, or
    the Hessian and then the gradient in two's complement. A weight, or gradient, below `least` is raised to it, and the
    Hessian in proportion; see `sampling`. scales: two float64, 1 divided by the unit of the upper and of the lower half
    of a cell. Unless it is rounded to the nearest unit, key and the row's number in the whole table, row + after, say
    which way.
    """
    offset = 0.5
    for i in range(start, stop):
        row = np.uint64(rows[np.uint64(i)])
        if not nearest:
            offset = uniform(key, row + np.uint64(after))
        if n_weights == 1:
            units[row] = np.int64(max(weights[row], least) * scales[0] + offset)
            continue
        halves = np.uint64(2) * row
        first, second = weights[halves], weights[halves + np.uint64(1)]
        size = abs(first)
        raised = least / size if size < least else 1.0
        units[halves] = np.int64(second * raised * scales[1] + offset)
        units[halves + np.uint64(1)] = np.int64(np.floor(first * raised * scales[0] + offset))


@numba.njit(**INNER)
def _round(place, t):  # type: ignore[no-untyped-def]
    """Write the weights of a run of the root's rows, in units, to `units`."""
    fit = arrays_at(place)
    settings, progress, criterion = fit.settings[0], fit.progress[0], fit.criterion[0]
    root = fit.tree.nodes[fit.tree.pairs[0].added]
    start = root.start + PASS_ROWS * t
    stop = min(start + PASS_ROWS, root.stop)
    scales = 1.0 / criterion.first_unit, 1.0 / criterion.second_unit
    rows, weights, units = fit.rows.listed, fit.rows.weights, fit.rows.units
    nearest, key = settings.rounds_to_nearest != 0, ~progress.key  # not that of the draw
    middle = find_first(rows, start, stop, settings.n_positives)
    after, after_negatives = settings.positives_offset, settings.negatives_offset
    given = progress.threshold, scales, nearest, key, after, units
    if settings.n_weights == 2:
        round_weights(weights, 2, rows, start, middle, *given)
        given = progress.threshold, scales, nearest, key, after_negatives, units
        round_weights(weights, 2, rows, middle, stop, *given)
        return
    round_weights(weights, 1, rows, start, middle, *given)
    given = progress.threshold, (scales[1], scales[1]), nearest, key, after_negatives, units
    round_weights(weights, 1, rows, middle, stop, *given)


@numba.njit(inline="always")
def _add_words(words, rows, units, shift, sign, start, stop, histogram, row_words, n_weights):  # type: ignore[no-untyped-def]
    """Add rows[start:stop] to a histogram; see `add_rows`. The last two arguments are constants of the compiler."""
    last = stop - 1
    bits = np.uint64(8 * row_words)
    one_code = (np.uint64(1) << bits) - np.uint64(1)
    per_word = LANES // row_words
    for i in range(start, stop):
        prefetched = np.int64(rows[np.uint64(min(i + PREFETCH_ADD, last))])
        prefetch(words, prefetched * row_words)
        prefetch(units, prefetched * n_weights)
        row = np.uint64(rows[np.uint64(i)])
        if n_weights == 1:
            added = np.int64(units[row]) << shift
        else:
            halves = np.uint64(2) * row
            added = np.int64(units[halves]) | (np.int64(units[halves + np.uint64(1)]) << 32)
        added *= sign
        for q in range(row_words):
            word = words[row * np.uint64(row_words) + np.uint64(q)]
            for k in range(per_word):
                code = (word >> (bits * np.uint64(k))) & one_code
                histogram[code * np.uint64(LANES) + np.uint64(per_word * q + k)] += added


@numba.njit(**INNER)
def add_rows(words, row_words, rows, units, n_weights, sign, n_positives, start, stop, histogram):  # type: ignore[no-untyped-def]
    """Clear the histogram of a group and add rows[start:stop] to it; or take them away from it, if sign is -1.

    words: uint64, the group's codes, row_words (1 or 2) per row; rows: (n,) uint32, those below n_positives first;
    units: (n_rows · n_weights,) uint32, see `round_weights`; histogram: (8 · n_codes,) int64. A single weight is added
    to the half of the row's class: the upper one for rows below n_positives.
    """
    if sign > 0:
        for cell in range(len(histogram)):
            histogram[cell] = 0
    if n_weights == 2:
        # With constants for the numbers of words and weights the compiler unrolls all additions of a row.
        if row_words == 1:
            _add_words(words, rows, units, 0, sign, start, stop, histogram, 1, 2)
        else:
            _add_words(words, rows, units, 0, sign, start, stop, histogram, 2, 2)
        return
    middle = find_first(rows, start, stop, n_positives)
    for half in range(2):
        first, last = (start, middle) if half == 0 else (middle, stop)
        shift = 32 if half == 0 else 0
        if row_words == 1:
            _add_words(words, rows, units, shift, sign, first, last, histogram, 1, 1)
        else:
            _add_words(words, rows, units, shift, sign, first, last, histogram, 2, 1)


@numba.njit(**INNER)
def _criterion_of(place):  # type: ignore[no-untyped-def]
    """Return the present `SplitCriterion`."""
    fit = arrays_at(place)
    criterion = fit.criterion[0]
    return SplitCriterion(
        criterion.objective,
        criterion.push,
        criterion.smoothing,
        criterion.least_mass,
        criterion.category_penalty,
        criterion.category_mass,
        criterion.category_smoothing,
        criterion.class_positive,
        criterion.class_negative,
        criterion.inverse_ess_positive,
        criterion.inverse_ess_negative,
        criterion.first_unit,
        criterion.second_unit,
    )


@numba.njit(**INNER)
def _may_be_split(place, number):  # type: ignore[no-untyped-def]
    """Return True if a node has both classes, and the mass of two leaves: without these no split has a gain."""
    fit = arrays_at(place)
    p, q = fit.tree.nodes[number].positive, fit.tree.nodes[number].negative
    least = 2.0 * fit.criterion[0].least_mass * (1.0 - MASS_RTOL)
    if fit.criterion[0].objective == GRADIENT:
        return q >= least
    return min(p, q) > 0.0 and p + q >= least


@numba.njit(**INNER)
def _sum_weights(place, start, stop):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of listed[start:stop], summed up by runs."""
    fit = arrays_at(place)
    if len(fit.rows.sample_weight) == 0:
        return float(stop - start)
    total = 0.0
    for first in range(start, stop, SUMMED_ROWS):
        of_run = 0.0
        for i in range(first, min(first + SUMMED_ROWS, stop)):
            of_run += fit.rows.weights[np.uint64(fit.rows.listed[np.uint64(i)])]
        total += of_run
    return total


@numba.njit(**INNER)
def _sum_node(place, number):  # type: ignore[no-untyped-def]
    """Write both masses of a node."""
    fit = arrays_at(place)
    node = fit.tree.nodes[number]
    middle = find_first(fit.rows.listed, node.start, node.stop, fit.settings[0].n_positives)
    node.positive = _sum_weights(place, node.start, middle)
    node.negative = _sum_weights(place, middle, node.stop)


@numba.njit(**INNER)
def _build(place, p, g, room):  # type: ignore[no-untyped-def]
    """Complete group g of the histograms of pair p, and find the best split of each node by its columns."""
    fit = arrays_at(place)
    group, pair = fit.codes.groups[g], fit.tree.pairs[p]
    first = group.first_cell
    last = first + LANES * group.n_codes
    node = fit.tree.nodes[pair.added]
    own = fit.sums.histograms[node.histogram, first:last]
    settings, rows = fit.settings[0], fit.rows
    n_positives = settings.n_positives
    words = fit.codes.words[group.first_word :]
    coded = words, group.row_words, rows.listed, rows.units, settings.n_weights
    is_needed = pair.sibling < 0 or pair.n_runs > 1 or _may_be_split(place, pair.added)
    if settings.role == LEADER:  # its followers have added the rows up
        is_needed = True
    elif not is_needed:  # its rows are taken away from the histogram of its parent
        other = fit.sums.histograms[fit.tree.nodes[pair.sibling].histogram, first:last]
        add_rows(*coded, -1, n_positives, node.start, node.stop, other)
    elif pair.n_runs == 1:
        add_rows(*coded, 1, n_positives, node.start, node.stop, own)
    for r in range(pair.first_run, pair.first_run + pair.n_runs):
        if pair.n_runs > 1 and fit.tree.runs[r].spare >= 0:
            part = fit.sums.spare[fit.tree.runs[r].spare, first:last]
            for cell in range(len(own)):
                own[cell] += part[cell]
    cuttable = fit.codes.cuttable[group.first_cell : group.first_cell + LANES * group.n_codes]
    criterion = _criterion_of(place)
    for which in range(2 if pair.sibling >= 0 else 1):
        number = pair.added if which == 0 else pair.sibling
        best_split = fit.tree.group_splits[2 * p + which, g]
        if not _may_be_split(place, number):
            best_split.lane = -1
            continue
        if which == 1:
            other = fit.sums.histograms[fit.tree.nodes[number].histogram, first:last]
            if is_needed:
                for cell in range(len(own)):
                    other[cell] -= own[cell]
            own = other
        if settings.role == FOLLOWER:
            continue
        find_split(
            own,
            group,
            fit.codes.columns[g],
            fit.codes.members,
            fit.codes.allowed[g],
            cuttable,
            criterion,
            room,
            best_split,
        )
        best_split.group = g


@numba.njit(**INNER)
def _partition(place, t):  # type: ignore[no-untyped-def]
    fit = arrays_at(place)
    run = fit.tree.runs[t]
    split = fit.tree.node_splits[fit.tree.batch[run.item]]
    group = fit.codes.groups[split.group]
    words, above = fit.codes.words[group.first_word :], fit.tree.above[run.item]
    is_whole = run.above < 0  # then no other run is in the way of its rows above
    run.n_above = partition_rows(
        words,
        group.row_words,
        split.lane,
        above,
        run.start,
        run.stop,
        fit.rows.listed,
        fit.rows.listed if is_whole else fit.rows.partitioned,
        fit.rows.partitioned,
    )
    if is_whole:
        middle = run.start + run.n_above
        gather_rows(fit.rows.partitioned, middle, middle, run.stop, fit.rows.listed, middle, middle)


@numba.njit(**INNER)
def _write_leaves(place, first, last, listed_from, listed_to, s, leaf):  # type: ignore[no-untyped-def]
    """Write the leaf of the rows from `first` to `last` in listed[listed_from:listed_to]; if s >= 0 split s decides."""
    fit = arrays_at(place)
    rows, leaves = fit.rows.listed, fit.rows.leaves
    at = np.uint64(find_first(rows, listed_from, listed_to, first))
    end = np.uint64(find_first(rows, listed_from, listed_to, last))
    if s < 0:
        while at < end:
            leaves[np.uint64(rows[at])] = leaf
            at += np.uint64(1)
        return
    split = fit.tree.coded_splits[s]
    column = fit.tree.split_columns[split.column]
    group, lane = fit.codes.groups[column // LANES], column % LANES
    per_word = LANES // group.row_words
    words, n_words = (
        fit.codes.words[group.first_word + lane // per_word :],
        np.uint64(group.row_words),
    )
    bits = np.uint64(8 * group.row_words)
    shift, one_code = bits * np.uint64(lane % per_word), (np.uint64(1) << bits) - np.uint64(1)
    first_above, n_more, subset = np.uint64(split.first), np.uint64(split.n_more), split.subset
    subsets = fit.tree.subsets.reshape(-1)
    while at < end:
        row = np.uint64(rows[at])
        code = (words[row * n_words] >> shift) & one_code
        if subset >= 0:
            is_above = subsets[np.uint64(subset) + code] != 0
        else:
            is_above = ((code - first_above) & one_code) <= (n_more & one_code)
        leaves[row] = leaf if is_above else s + 1
        at += np.uint64(1)


@numba.njit(**INNER)
def _read_leaves(place, start, stop):  # type: ignore[no-untyped-def]
    """Write the leaf of the rows from start to stop, by the lists of the nodes; all rows must be listed."""
    fit = arrays_at(place)
    n_splits = fit.progress[0].n_leaves - 1
    for s in range(n_splits):
        split = fit.tree.splits[s]
        node = fit.tree.nodes[split.node]
        if not node.is_split:
            _write_leaves(place, start, stop, node.start, node.stop, s, split.leaf)
    for leaf in range(n_splits + 1):
        if fit.tree.open_leaves[leaf] < 0:
            continue
        node = fit.tree.nodes[fit.tree.open_leaves[leaf]]
        middle = fit.tree.nodes[node.above].stop if node.is_split else node.stop
        _write_leaves(place, start, stop, node.start, middle, -1, leaf)
        _write_leaves(place, start, stop, middle, node.stop, -1, leaf)


@numba.njit(**INNER)
def _find_leaves(place, start, stop):  # type: ignore[no-untyped-def]
    """Write the leaf of the rows from start to stop, by their codes."""
    fit = arrays_at(place)
    progress = fit.progress[0]
    n_columns, n_leaves = progress.n_columns, progress.n_leaves
    wide = False
    for u in range(n_columns):
        wide |= fit.codes.groups[fit.tree.split_columns[u] // LANES].row_words == 2
    narrow_codes = np.empty((0 if wide else n_columns, ROUTED_ROWS), dtype=np.uint8)
    wide_codes = np.empty((n_columns if wide else 0, ROUTED_ROWS), dtype=np.uint16)
    room = np.empty(ROUTED_ROWS, dtype=np.uint8)
    splits = fit.tree.coded_splits[: n_leaves - 1]
    subsets = fit.tree.subsets.reshape(-1)
    for low in range(start, stop, ROUTED_ROWS):
        n = min(ROUTED_ROWS, stop - low)
        for u in range(n_columns):
            g, lane = fit.tree.split_columns[u] // LANES, fit.tree.split_columns[u] % LANES
            group = fit.codes.groups[g]
            per_word = LANES // group.row_words
            first = group.first_word + low * group.row_words + lane // per_word
            words = fit.codes.words[first:]
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
        at = fit.rows.leaves[low : low + n]
        if wide:
            find_leaves(wide_codes, splits, subsets, room, at)
        else:
            find_leaves(narrow_codes, splits, subsets, room, at)


@numba.njit(**INNER)
def _route(place, t):  # type: ignore[no-untyped-def]
    """Write the leaf of each row of run t, and sums of weights to by_leaf[t, :, leaf]: see `Splits.sums`.

    Sample weights are all 1 if there are none.
    """
    fit = arrays_at(place)
    settings, progress = fit.settings[0], fit.progress[0]
    start, stop = fit.rows.passes[t].start, fit.rows.passes[t].stop
    n_leaves = progress.n_leaves
    if progress.threshold > 0.0:
        _find_leaves(place, start, stop)
    else:
        _read_leaves(place, start, stop)
    two_weights, weighted = settings.n_weights == 2, len(fit.rows.sample_weight) > 0
    sums = fit.sums.by_leaf[t]
    for j in range(len(sums)):
        for k in range(n_leaves):
            sums[j, k] = 0.0
    first_sums, second_sums = sums[fit.rows.passes[t].negative], sums[2]
    counts = sums[len(sums) - 1]
    for i in range(start, stop):
        leaf = np.uint64(fit.rows.leaves[i])
        if two_weights:
            first_sums[leaf] += fit.rows.weights[2 * i]
            second_sums[leaf] += fit.rows.weights[2 * i + 1]
        else:
            first_sums[leaf] += fit.rows.weights[i]
        counts[leaf] += fit.rows.sample_weight[i] if weighted else 1.0


@numba.njit(error_model="numpy", **INNER)
def _rescale(place, t):  # type: ignore[no-untyped-def]
    """Multiply the weights of run t by factors[class, leaf]; write Σ weight² / sample weight to by_pass[t, 0]."""
    fit = arrays_at(place)
    weighted = len(fit.rows.sample_weight) > 0
    factor = fit.sums.factors[fit.rows.passes[t].negative]
    total = 0.0
    for i in range(fit.rows.passes[t].start, fit.rows.passes[t].stop):
        weight = fit.rows.weights[i] * factor[fit.rows.leaves[i]]
        fit.rows.weights[i] = weight
        total += weight * weight / fit.rows.sample_weight[i] if weighted else weight * weight
    fit.sums.by_pass[t, 0] = total


@numba.njit(error_model="numpy", **INNER)
def _step(place, t):  # type: ignore[no-untyped-def]
    """Add factors[0, leaf] to each score of run t, and write gradient and Hessian of the logistic loss.

    Writes Σ loss, Σ Hessian and Σ Hessian² / sample weight to by_pass[t].
    """
    fit = arrays_at(place)
    weighted = len(fit.rows.sample_weight) > 0
    values = fit.sums.factors[0]
    sign = -1.0 if fit.rows.passes[t].negative else 1.0
    margins, losses = np.empty(ROWS_AT_ONCE), np.empty(ROWS_AT_ONCE)
    sum_loss = sum_hessian = sum_squares = 0.0
    stop = fit.rows.passes[t].stop
    for low in range(fit.rows.passes[t].start, stop, ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, stop - low)
        for i in range(n):
            score = fit.rows.scores[low + i] + values[fit.rows.leaves[low + i]]
            fit.rows.scores[low + i] = score
            margins[i] = sign * score
        counts = fit.rows.sample_weight[low : low + n]
        weights = fit.rows.weights[2 * low : 2 * (low + n)]
        write_derivatives(margins[:n], sign, counts, weights, losses)
        for i in range(n):
            hessian = weights[2 * i + 1]
            sum_loss += losses[i]
            sum_hessian += hessian
            sum_squares += hessian * hessian / counts[i] if weighted else hessian * hessian
    fit.sums.by_pass[t, 0] = sum_loss
    fit.sums.by_pass[t, 1] = sum_hessian
    fit.sums.by_pass[t, 2] = sum_squares


@numba.njit(**INNER)
def _mark(place, t, room):  # type: ignore[no-untyped-def]
    """Write which codes lie above the split of node t of the batch; if t < 0, of the node -1 - t, split BY_SUBSET."""
    fit = arrays_at(place)
    number = fit.tree.batch[t] if t >= 0 else -1 - t
    above = fit.tree.above[t] if t >= 0 else fit.tree.subsets[number]
    split = fit.tree.node_splits[number]
    g = split.group
    group = fit.codes.groups[g]
    first = group.first_cell
    histogram = fit.sums.histograms[
        fit.tree.nodes[number].histogram, first : first + LANES * group.n_codes
    ]
    criterion = _criterion_of(place)
    mark_codes(
        histogram, group, fit.codes.columns[g], fit.codes.members, criterion, room, split, above
    )
    if t >= 0 and split.cut == BY_SUBSET:
        fit.tree.subsets[number] = above


@kernel(numba.void(numba.int64, numba.int64, numba.int64), inner=True)
def _run_task(place, room, t):  # type: ignore[no-untyped-def]
    """Do task t of the present phase."""
    fit = arrays_at(place)
    phase, n_groups = fit.progress[0].phase, len(fit.codes.groups)
    if phase == BUILD:
        _build(place, t // n_groups, t % n_groups, room)
    elif phase == MARK:
        _mark(place, t, room)
    elif phase == PARTITION:
        _partition(place, t)
    elif phase == GATHER:
        run = fit.tree.runs[t]
        if run.above >= 0:
            middle = run.start + run.n_above
            gather_rows(
                fit.rows.partitioned,
                run.start,
                middle,
                run.stop,
                fit.rows.listed,
                run.above,
                run.below,
            )
    elif phase == ADD:
        run, group = fit.tree.runs[t // n_groups], fit.codes.groups[t % n_groups]
        first = group.first_cell
        last = first + LANES * group.n_codes
        if run.spare >= 0:
            part = fit.sums.spare[run.spare, first:last]
        else:
            node = fit.tree.nodes[fit.tree.pairs[run.item].added]
            part = fit.sums.histograms[node.histogram, first:last]
        add_rows(
            fit.codes.words[group.first_word :],
            group.row_words,
            fit.rows.listed,
            fit.rows.units,
            fit.settings[0].n_weights,
            1,
            fit.settings[0].n_positives,
            run.start,
            run.stop,
            part,
        )
    elif phase == SUM:
        _sum_node(place, fit.tree.nodes[fit.tree.batch[t]].above)
        _sum_node(place, fit.tree.nodes[fit.tree.batch[t]].below)
    elif phase == ROUTE:
        _route(place, t)
    elif phase == RESCALE:
        _rescale(place, t)
    elif phase == STEP:
        _step(place, t)
    elif phase == DRAW:
        _draw(place, t)
    elif phase == ROUND:
        _round(place, t)
    else:
        _list(place, t)


@numba.njit(**INNER)
def _scratch_of(place):  # type: ignore[no-untyped-def]
    fit = arrays_at(place)
    n_codes = 1
    for g in range(len(fit.codes.groups)):
        n_codes = max(n_codes, fit.codes.groups[g].n_codes)
    return make_scratch(n_codes)


@numba.njit(**INNER)
def _work(region, place, room):  # type: ignore[no-untyped-def]
    """Do tasks of the phases that another thread leads through, while there are any."""
    run_task = arrays_at(place).settings[0].run_task
    idle = 0
    while idle < SPINS + YIELDS and atomic_load(region.ended) == 0:
        t = take_task(region)
        if t < 0:
            idle += 1
            if idle > SPINS:
                yield_core()
            continue
        idle = 0
        if call_at(run_task, place, room, t):
            atomic_add(region.failed, 1)
        atomic_add(region.done, 1)  # even then: the leader waits for it


@numba.njit(**INNER)
def _do(place, room, phase, t):  # type: ignore[no-untyped-def]
    """Do a task as the leader; the present phase is the given one, or all its tasks are done."""
    arrays_at(place).progress[0].phase = phase
    if call_at(arrays_at(place).settings[0].run_task, place, room, t):
        raise MemoryError("a task of a tree failed, most likely for lack of memory")


@numba.njit(**INNER)
def _lead(region, place, room, phase, n_tasks):  # type: ignore[no-untyped-def]
    """Lead the workers through a phase of `n_tasks` tasks."""
    fit = arrays_at(place)
    fit.progress[0].phase = phase
    publish(region, n_tasks)
    t = take_task(region)
    while t >= 0:
        _do(place, room, phase, t)
        atomic_add(region.done, 1)
        t = take_task(region)
    wait_for_all(region, n_tasks)


@numba.njit(**INNER)
def _open_gain(place, number):  # type: ignore[no-untyped-def]
    """Return the gain of a node's best split; -1 if it has none or lies too deep."""
    fit = arrays_at(place)
    split = fit.tree.node_splits[number]
    too_deep = fit.tree.nodes[number].depth >= fit.settings[0].max_depth
    return -1.0 if split.lane < 0 or too_deep else split.gain


@numba.njit(**INNER)
def _best_open_leaf(place, unsplit_only):  # type: ignore[no-untyped-def]
    """Return the open leaf of greatest gain, level by level the first of least depth; -1 if none has a gain.

    unsplit_only: consider only nodes that are not split yet and whose children may be split.
    """
    fit = arrays_at(place)
    settings, progress = fit.settings[0], fit.progress[0]
    best, least_gain = -1, 0.0
    for leaf in range(progress.n_leaves):
        gain = fit.tree.open_gains[leaf]
        if gain < 0.0 or (settings.best_first and best >= 0 and gain <= least_gain):
            continue
        node = fit.tree.open_leaves[leaf]
        depth = fit.tree.nodes[node].depth
        if unsplit_only and (fit.tree.nodes[node].is_split or depth + 1 >= settings.max_depth):
            continue
        if settings.best_first or best < 0 or depth < fit.tree.nodes[best].depth:
            best, least_gain = node, gain * (1.0 + 1e-9)
    return best


@numba.njit(**INNER)
def _commit(place, number, room):  # type: ignore[no-untyped-def]
    """Add the split of a node to the tree."""
    fit = arrays_at(place)
    progress = fit.progress[0]
    node, split = fit.tree.nodes[number], fit.tree.node_splits[number]
    s, new = progress.n_leaves - 1, progress.n_leaves
    g, lane, cut = split.group, split.lane, split.cut
    group, column = fit.codes.groups[g], fit.codes.columns[g][lane]
    n_known = group.n_codes - group.has_missing
    of_tree, coded = fit.tree.splits[s], fit.tree.coded_splits[s]
    of_tree.leaf, of_tree.feature, of_tree.node = node.leaf, split.feature, number
    of_tree.missing_above = split.missing_above
    of_tree.cut = 0 if column.kind == BUNDLE else cut
    index = 0
    while index < progress.n_columns and fit.tree.split_columns[index] != LANES * g + lane:
        index += 1
    fit.tree.split_columns[index] = LANES * g + lane
    progress.n_columns = max(progress.n_columns, index + 1)
    coded.leaf, coded.column, coded.subset = node.leaf, index, -1
    if cut == BY_SUBSET:
        if not node.is_split:
            _do(place, room, MARK, -1 - number)
        coded.first = coded.n_more = 0
        coded.subset = number * fit.tree.subsets.shape[1]
    elif column.kind == BUNDLE:
        # the member's code alone, or the interval of all others, round the greatest code
        on_above = fit.codes.members[column.first_member + cut - 1].on_above != 0
        coded.first = cut if on_above else cut + 1
        coded.n_more = 0 if on_above else -2
    else:
        # The missing code, the greatest, ends the interval of those above or follows it.
        coded.first = cut + 1
        coded.n_more = n_known - 2 - cut + (split.missing_above if group.has_missing else 0)
    fit.tree.open_leaves[node.leaf] = node.above if node.is_split else -1
    fit.tree.open_leaves[new] = node.below if node.is_split else -1
    fit.tree.open_gains[node.leaf] = fit.tree.open_gains[new] = -1.0
    if node.is_split:
        fit.tree.nodes[node.above].leaf = node.leaf
        fit.tree.nodes[node.below].leaf = new
        fit.tree.open_gains[node.leaf] = _open_gain(place, node.above)
        fit.tree.open_gains[new] = _open_gain(place, node.below)
    progress.n_leaves += 1


@numba.njit(**INNER)
def _choose(place, room):  # type: ignore[no-untyped-def]
    """Add the splits of split nodes to the tree, then choose the batch of nodes to split next; return its size."""
    fit = arrays_at(place)
    settings, progress = fit.settings[0], fit.progress[0]
    if progress.n_leaves == 1:
        fit.tree.open_gains[0] = _open_gain(place, fit.tree.open_leaves[0])
    node = -1
    while progress.n_leaves < settings.max_leaves:
        node = _best_open_leaf(place, False)
        if node < 0:
            return 0
        children_matter = (
            progress.n_leaves + 1 < settings.max_leaves
            and fit.tree.nodes[node].depth + 1 < settings.max_depth
        )
        if children_matter and not fit.tree.nodes[node].is_split:
            break
        _commit(place, node, room)
    remaining = settings.max_leaves - progress.n_leaves
    if remaining == 0:
        return 0
    most = len(fit.tree.batch)
    if settings.best_first:
        waiting = 0
        for leaf in range(progress.n_leaves):
            number = fit.tree.open_leaves[leaf]
            waiting += 1 if number >= 0 and fit.tree.nodes[number].is_split else 0
        speculative = (
            settings.speculative_splits if progress.n_cells == 0 else 1
        )  # do not partition rows without need
        most = max(min(speculative - waiting, remaining // 2), 1)
    n = 0
    depth = 0
    while n < most:  # the first node is that which the tree waits for
        if n > 0:
            node = _best_open_leaf(place, True)
        if node < 0 or (n > 0 and not settings.best_first and fit.tree.nodes[node].depth > depth):
            break
        depth = fit.tree.nodes[node].depth
        fit.tree.nodes[node].is_split = 1
        fit.tree.batch[n] = node
        n += 1
    return n


@numba.njit(**INNER)
def _divide_masses(place, b):  # type: ignore[no-untyped-def]
    """Write the masses of both children of node b of the batch, from its histogram."""
    fit = arrays_at(place)
    parent = fit.tree.nodes[fit.tree.batch[b]]
    split, is_above = fit.tree.node_splits[fit.tree.batch[b]], fit.tree.above[b]
    group = fit.codes.groups[split.group]
    histogram, first = fit.sums.histograms[parent.histogram], group.first_cell + split.lane
    above, below = fit.tree.nodes[parent.above], fit.tree.nodes[parent.below]
    if fit.settings[0].role == FOLLOWER:  # the masses of all rows are not known here
        above.positive = above.negative = below.positive = below.negative = np.inf
        return
    cells_above = cells_below = np.int64(0)
    for code in range(group.n_codes):
        cell = histogram[first + LANES * code]
        cells_above += cell if is_above[code] else 0
        cells_below += 0 if is_above[code] else cell
    criterion = fit.criterion[0]
    above.positive, above.negative = masses_of(cells_above, criterion)
    below.positive, below.negative = masses_of(cells_below, criterion)


@numba.njit(**INNER)
def _free_histogram(place, number):  # type: ignore[no-untyped-def]
    """Let another node have the histogram of a node that will not be split."""
    fit = arrays_at(place)
    progress = fit.progress[0]
    fit.tree.free[progress.n_free] = fit.tree.nodes[number].histogram
    progress.n_free += 1


@numba.njit(**INNER)
def _split_batch(region, place, room, n_batch):  # type: ignore[no-untyped-def]
    """Partition the rows of the nodes of the batch, and pair their children; return the number of pairs.

    A pair is left out if neither child may be split.
    """
    fit = arrays_at(place)
    progress, role = fit.progress[0], fit.settings[0].role
    n = 0
    gathers = False
    for b in range(n_batch):
        node = fit.tree.nodes[fit.tree.batch[b]]
        if role != FOLLOWER:
            _do(place, room, MARK, b)
        size = node.stop - node.start
        parts = max((size + PARTITION_ROWS - 1) // PARTITION_ROWS, 1)
        gathers |= parts > 1
        for r in range(parts):
            run = fit.tree.runs[n + r]
            run.item = b
            run.start = node.start + size * r // parts
            run.stop = node.start + size * (r + 1) // parts
            run.above = 0 if parts > 1 else -1
            run.n_above = 0
        n += parts
    if role != LEADER:
        _lead(region, place, room, PARTITION, n)
    r = 0
    for b in range(n_batch):
        parent = fit.tree.nodes[fit.tree.batch[b]]
        first = r
        middle = parent.start
        while r < n and fit.tree.runs[r].item == b:
            middle += fit.tree.runs[r].n_above
            r += 1
        above, below = parent.start, middle
        for k in range(first, r if r - first > 1 else first):
            run = fit.tree.runs[k]
            run.above, run.below = above, below
            above += run.n_above
            below += run.stop - run.start - run.n_above
        parent.above, parent.below = progress.n_nodes, progress.n_nodes + 1
        for child in range(progress.n_nodes, progress.n_nodes + 2):
            fit.tree.nodes[child].depth = parent.depth + 1
            fit.tree.nodes[child].is_split = 0
            fit.tree.nodes[child].histogram = parent.histogram
        fit.tree.nodes[parent.above].start, fit.tree.nodes[parent.above].stop = parent.start, middle
        fit.tree.nodes[parent.below].start, fit.tree.nodes[parent.below].stop = middle, parent.stop
        # The smaller child gets a new histogram, its sibling the histogram of the parent.
        fewer_above = middle - parent.start < parent.stop - middle
        added = parent.above if fewer_above else parent.below
        if progress.n_free > 0:
            progress.n_free -= 1
            fit.tree.nodes[added].histogram = fit.tree.free[progress.n_free]
        else:
            fit.tree.nodes[added].histogram = progress.n_histograms
            progress.n_histograms += 1
        fit.tree.pairs[b].added = added
        fit.tree.pairs[b].sibling = parent.below if fewer_above else parent.above
        progress.n_nodes += 2
        if progress.n_cells == 0:
            _divide_masses(place, b)
    if gathers:
        _lead(region, place, room, GATHER, n)
    if progress.n_cells > 0:
        _lead(region, place, room, SUM, n_batch)
    n_pairs = 0
    for b in range(n_batch):
        added, sibling = fit.tree.pairs[b].added, fit.tree.pairs[b].sibling
        if _may_be_split(place, added) or _may_be_split(place, sibling):
            fit.tree.pairs[n_pairs].added, fit.tree.pairs[n_pairs].sibling = added, sibling
            n_pairs += 1
        else:
            for number in (added, sibling):
                fit.tree.node_splits[number].lane = -1
                _free_histogram(place, number)
    return n_pairs


@numba.njit(**INNER)
def _build_pairs(region, place, room, n_pairs):  # type: ignore[no-untyped-def]
    """Sum up the histograms of pairs of nodes, and find the best split of each node."""
    fit = arrays_at(place)
    n_groups = len(fit.codes.groups)
    n = n_spare = 0
    runs_each = (TASKS_PER_PHASE - 1) // (n_pairs * n_groups) + 1
    for p in range(n_pairs):
        pair = fit.tree.pairs[p]
        node = fit.tree.nodes[pair.added]
        size = node.stop - node.start
        parts = max(min(runs_each, size // (MIN_ROWS_PER_CODE * len(scratch_at(room).share))), 1)
        pair.first_run, pair.n_runs = n, parts
        for r in range(parts if parts > 1 else 0):
            run = fit.tree.runs[n]
            run.item = p
            run.start = node.start + size * r // parts
            run.stop = node.start + size * (r + 1) // parts
            run.spare = n_spare if r > 0 else -1
            n_spare += 1 if r > 0 else 0
            n += 1
    if n > 0:
        _lead(region, place, room, ADD, n * n_groups)
    _lead(region, place, room, BUILD, n_pairs * n_groups)
    for p in range(n_pairs if fit.settings[0].role != FOLLOWER else 0):
        for which in range(2):
            number = fit.tree.pairs[p].added if which == 0 else fit.tree.pairs[p].sibling
            if number < 0:
                continue
            best = 0
            node = fit.tree.nodes[number]
            for g in range(1, n_groups):
                split, so_far = (
                    fit.tree.group_splits[2 * p + which, g],
                    fit.tree.group_splits[2 * p + which, best],
                )
                if split.lane < 0:
                    continue
                tie = 1e-9 * so_far.gain
                if fit.criterion[0].objective == YOUDEN:
                    tie = 10.0 * MASS_RTOL * node.positive * node.negative
                near = abs(split.gain - so_far.gain) <= tie
                comes_first = split.feature < so_far.feature if near else split.gain > so_far.gain
                if so_far.lane < 0 or comes_first:
                    best = g
            fit.tree.node_splits[number] = fit.tree.group_splits[2 * p + which, best]
            if fit.tree.node_splits[number].lane < 0:
                _free_histogram(place, number)


@numba.njit(**INNER)
def _split_leaves(region, place, room):  # type: ignore[no-untyped-def]
    """Partition the rows of the splits whose children have no histograms: the last ones of a cell's tree."""
    fit = arrays_at(place)
    progress = fit.progress[0]
    n = 0
    for s in range(progress.n_leaves - 1):
        number = fit.tree.splits[s].node
        if not fit.tree.nodes[number].is_split:
            fit.tree.nodes[number].is_split = 1
            fit.tree.batch[n] = number
            n += 1
        if n == len(fit.tree.batch) or (n > 0 and s == progress.n_leaves - 2):
            _split_batch(region, place, room, n)
            n = 0
    for s in range(progress.n_leaves - 1):
        node = fit.tree.nodes[fit.tree.splits[s].node]
        fit.tree.nodes[node.above].leaf, fit.tree.nodes[node.below].leaf = node.leaf, s + 1


@numba.njit(**INNER)
def _allow(place, tree):  # type: ignore[no-untyped-def]
    """Write which columns a tree may split on, and at which cells of bundles it may cut."""
    fit = arrays_at(place)
    features = fit.codes.features[tree]
    for g in range(len(fit.codes.groups)):
        for k in range(LANES):
            column = fit.codes.columns[g][k]
            fit.codes.allowed[g, k] = features[column.feature] or column.kind == BUNDLE
            if column.kind == BUNDLE:
                for member in range(column.n_bins - 1):
                    cell = fit.codes.groups[g].first_cell + LANES * (member + 1) + k
                    fit.codes.cuttable[cell] = features[
                        fit.codes.members[column.first_member + member].feature
                    ]


@numba.njit(**INNER)
def _list_rows(region, place, room):  # type: ignore[no-untyped-def]
    """List the rows that a tree is grown on as those of the root, and sum up their weights, shard by shard."""
    fit = arrays_at(place)
    settings, progress, passes = fit.settings[0], fit.progress[0], fit.rows.passes
    n_rows = settings.n_rows
    if progress.threshold > 0.0:
        _lead(region, place, room, DRAW, len(passes))
        n_rows = close_up(fit.rows.listed, passes, fit.rows.n_drawn)
    else:
        _lead(region, place, room, LIST, len(passes))
    fit.tree.nodes[0].start, fit.tree.nodes[0].stop = 0, n_rows
    by_shard, of_both = fit.sums.by_shard, settings.n_weights == 2
    by_shard[:] = 0.0
    for t in range(len(passes)):
        of_shard, negative = by_shard[passes[t].shard], passes[t].negative
        of_shard[0] += fit.sums.by_pass[t, 0] if of_both or not negative else 0.0
        of_shard[1] += fit.sums.by_pass[t, 1] if of_both or negative else 0.0


@numba.njit(**INNER)
def _choose_units(place):  # type: ignore[no-untyped-def]
    """Choose the units of weights by their sums, which are added along the tree of `core.base.shards`."""
    fit = arrays_at(place)
    sums = fit.sums.by_shard
    width = len(sums)
    while width > 1:
        for k in range(width // 2):
            sums[k, 0] = sums[2 * k, 0] + sums[2 * k + 1, 0]
            sums[k, 1] = sums[2 * k, 1] + sums[2 * k + 1, 1]
        if width % 2 == 1:
            sums[width // 2, 0], sums[width // 2, 1] = sums[width - 1, 0], sums[width - 1, 1]
        width = (width + 1) // 2
    criterion = fit.criterion[0]
    criterion.first_unit, criterion.second_unit = unit_of(sums[0, 0]), unit_of(sums[0, 1])


@numba.njit(**INNER)
def _plant(place, number):  # type: ignore[no-untyped-def]
    """Begin a tree, whose root is the node of this number."""
    fit = arrays_at(place)
    progress, root = fit.progress[0], fit.tree.nodes[number]
    _allow(place, number)
    root.histogram = root.depth = root.leaf = root.is_split = 0
    progress.n_leaves = progress.n_histograms = 1
    progress.n_columns = progress.n_free = 0
    fit.tree.open_leaves[0] = number
    if progress.n_cells > 0:
        criterion = fit.criterion[0]
        criterion.first_unit = unit_of(root.positive)
        criterion.second_unit = unit_of(root.negative)
    else:
        progress.n_nodes = 1
        root.positive = root.negative = np.inf  # unknown
    fit.tree.pairs[0].added, fit.tree.pairs[0].sibling = number, -1
    progress.n_pairs = progress.n_batch = 1


@numba.njit(**INNER)
def _round_root(region, place, room):  # type: ignore[no-untyped-def]
    """Round the weights of the rows of the root that was planted last."""
    root = arrays_at(place).tree.nodes[arrays_at(place).tree.pairs[0].added]
    _lead(region, place, room, ROUND, (root.stop - root.start + PASS_ROWS - 1) // PASS_ROWS)


@numba.njit(**INNER)
def _advance(region, place, room):  # type: ignore[no-untyped-def]
    """Find the splits of the present pairs, add splits to the tree, and split the next nodes."""
    progress = arrays_at(place).progress[0]
    if progress.n_pairs > 0:
        _build_pairs(region, place, room, progress.n_pairs)
    progress.n_batch = _choose(place, room)
    if progress.n_batch > 0:
        progress.n_pairs = _split_batch(region, place, room, progress.n_batch)


@numba.njit(**INNER)
def _grow_trees(region, place, room):  # type: ignore[no-untyped-def]
    """Grow a tree from the rows drawn, then send all rows to their leaves and sum up; or grow a tree in each cell."""
    fit = arrays_at(place)
    progress = fit.progress[0]
    if progress.n_cells == 0:
        _list_rows(region, place, room)
        _choose_units(place)
    else:
        progress.n_nodes = progress.n_cells
    for number in range(max(progress.n_cells, 1)):
        _plant(place, number)
        _round_root(region, place, room)
        while progress.n_batch > 0:
            _advance(region, place, room)
        if progress.n_cells > 0:
            _split_leaves(region, place, room)
    if progress.n_cells == 0 and progress.n_leaves > 1:
        _lead(region, place, room, ROUTE, len(fit.rows.passes))


@kernel(numba.void(REGION_TYPE, numba.int64, numba.int64))
def run_worker(region, place, part):  # type: ignore[no-untyped-def]
    """Work in a region (WORK), or lead it: through a tree (GROW), a part of it, or a pass over all rows.

    place: the address of a laid out `FitArrays`. Parts of a tree are, for the `LEADER`, PLANT and ADVANCE: the first
    nodes, and the next ones, once histograms are there; for a `FOLLOWER` LIST_ROWS, ADD_ROOT (the root's histogram),
    DIVIDE (the rows of the nodes of the batch) and ADD_PAIRS (the histograms of pairs). A pass is ROUTE, RESCALE or
    STEP.
    """
    scratch = _scratch_of(place)
    room = address_of(scratch)
    progress = arrays_at(place).progress[0]
    if part == WORK:
        _work(region, place, room)
    elif part == GROW:
        _grow_trees(region, place, room)
    elif part == LIST_ROWS:
        _list_rows(region, place, room)
    elif part == PLANT:
        _choose_units(place)
        _plant(place, 0)
    elif part == ADVANCE:
        _advance(region, place, room)
    elif part == ADD_ROOT:
        _plant(place, 0)
        _round_root(region, place, room)
        _build_pairs(region, place, room, 1)
    elif part == DIVIDE:
        progress.n_pairs = _split_batch(region, place, room, progress.n_batch)
    elif part == ADD_PAIRS:
        _build_pairs(region, place, room, progress.n_pairs)
    else:
        _lead(region, place, room, part, len(arrays_at(place).rows.passes))
    keep_alive(scratch)


def _work_in(region: Region, _arrays: FitArrays, layout: Integers, part: int) -> None:
    """Call `run_worker`, and hold the arrays as long as it runs."""
    run_worker(region, layout.ctypes.data, part)


class Splits(NamedTuple):
    """A grown tree, and the sums of its leaves.

    Attributes
    ----------
    leaf, feature, cut : ndarray of shape (n_leaves - 1,), int64
        The leaf that each split splits, the feature, and the greatest bin below the cut: -1 separates the missing from
        all values, BY_SUBSET splits categories.
    missing_above : ndarray of shape (n_leaves - 1,), int64
    subsets : ndarray of shape (n_leaves - 1, n_codes), uint8
        If the cut is BY_SUBSET, 1 for the codes above.
    sums : ndarray of shape (2 + n_weights, n_leaves), float64
        The weights, or gradients, of positives and of negatives; the Hessian, if there is one; then the sample weight,
        as a number of rows.
    """

    leaf: Integers
    feature: Integers
    cut: Integers
    missing_above: Integers
    subsets: npt.NDArray[np.uint8]
    sums: Floats


class CodedSplits(NamedTuple):
    """The splits of a tree, as they compare codes.

    Attributes
    ----------
    splits : ndarray of shape (n_splits,), `CODED_SPLIT`
        Their subsets begin at multiples of n_codes.
    columns : ndarray of shape (n_columns,), int64
        See `TreeArrays.split_columns`.
    subsets : ndarray of shape (n_subsets, n_bytes), uint8
        A bit for each code: 1 above. Codes behind the last bit are as it is: no category has them.
    """

    splits: npt.NDArray[np.void]
    columns: Integers
    subsets: npt.NDArray[np.uint8]


class TreeStep(NamedTuple):
    """A tree, and what its leaves do to the rows.

    Attributes
    ----------
    splits : CodedSplits
    factors : ndarray of shape (2, n_leaves) or (1, n_leaves), float64
        For `TreeGrower.rescale`, or `step`.
    """

    splits: CodedSplits
    factors: Floats


class CellTrees(NamedTuple):
    """Trees grown in cells, and their rows.

    Attributes
    ----------
    nodes : ndarray of shape (n_nodes,), `NODE`
        The roots, one of each cell, then the other nodes.
    splits : ndarray of shape (n_nodes,), `SPLIT`
        Of the nodes that are split.
    subsets : ndarray of shape (n_nodes, n_codes), uint8
        For nodes that are split BY_SUBSET 1 for the codes above.
    rows : ndarray of uint32
        Rows of a leaf are together, its positives first.
    """

    nodes: npt.NDArray[np.void]
    splits: npt.NDArray[np.void]
    subsets: npt.NDArray[np.uint8]
    rows: npt.NDArray[np.uint32]


def count_leaves(table: Layout) -> int:
    """Return the greatest number of leaves, best first, whose histograms fit `MAX_BYTES`."""
    return MAX_BYTES // (8 * table.n_cells)


class TreeGrower:
    """Grows trees on one table, and holds the weights of its rows.

    Parameters
    ----------
    table : Table
    weight : ndarray of shape (n_rows,), float64
        Sample weights, above 0.
    n_weights : int
        1: one weight per row, summed by class. 2: gradient and Hessian per row, summed over all rows.
    max_depth : int
    max_leaves : int or None
        None: the tree grows level by level.
    rows : ndarray of uint32, optional
        Memory for the list of rows, or the rows of cells; None: new memory.
    n_cells : int
        Greatest number of cells of a call.
    division : Division, optional
        How the rows are divided into shards, whose sums are added up; None: all are in one.
    folder : pathlib.Path, optional
        For files of the scores, which a round reads and writes once, in their order, and of the units and leaves, which
        are read as the table is; None: they are in memory.

    Attributes
    ----------
    table : Table
    weights : ndarray of shape (n_rows, n_weights), float64
        Written by the loss.
    scores : ndarray of shape (n_rows,) or (0,), float64
        Written by the loss, if there are two weights.
    leaves : ndarray of shape (n_rows,), uint16
        Leaf of each row in the last tree.
    division : Division

    Raises
    ------
    InvalidParameter
        The histograms would take more than `MAX_BYTES`.

    Notes
    -----
    Memory: 8 bytes per row, 8 or 16 more for its weights, 4 or 8 for their units and the leaves, and 8 for the scores;
    and 64 bytes per leaf, code and group of eight columns, of which a tree touches only the part that it uses.
    """

    _role = WHOLE

    def __init__(
        self,
        table: Table,
        weight: Floats,
        n_weights: int,
        max_depth: int,
        max_leaves: int | None,
        rows: npt.NDArray[np.uint32] | None = None,
        n_cells: int = 1,
        division: Division | None = None,
        folder: Path | None = None,
    ) -> None:
        n_rows, m = table.n_rows, table.n_positives
        self.division = division = division or Division.of(weight, m)
        n_leaves = max_leaves or 2**max_depth
        n_numbers = table.n_cells
        # level by level the last splits' children need no histograms
        n_held = n_leaves if max_leaves is not None else max(n_leaves // 2, 1)
        n_bytes = min(n_held, division.n_rows) * n_numbers * 8
        if n_bytes > MAX_BYTES:
            raise InvalidParameter(
                f"max_bins or the trees' size must be less: histograms of {n_leaves} leaves and "
                f"{n_numbers:,} numbers take {n_bytes / 1e9:.1f} GB, at most {MAX_BYTES / 1e9:.1f}"
            )
        self.table = table
        sample_weight = np.empty(0)
        if division.scale is not None and n_rows > 0:
            sample_weight = np.asarray(weight / division.scale)
        # Of a tree, units are needed first, and leaves at its end: both use the same memory.
        units = mapped(folder, (n_rows * n_weights,), np.uint32)
        self._leaves = units.view(np.uint16)[:n_rows]
        self.weights = np.zeros((n_rows, n_weights))
        self.scores: Floats = mapped(folder, (n_rows if n_weights == 2 else 0,), np.float64)
        bounds: list[tuple[int, int, int, int]] = []
        # Of each class the passes of each shard.
        self._passes_of: tuple[list[slice], list[slice]] = [], []
        for k, of_class in enumerate(self._passes_of):
            for shard, runs in enumerate(division.runs if n_rows > 0 else []):
                own, before = runs[k], len(bounds)
                for start in range(own.start, own.stop, PASS_ROWS):
                    bounds.append((start, min(start + PASS_ROWS, own.stop), k, shard))
                of_class.append(slice(before, len(bounds)))
        settings = np.zeros(1, dtype=SETTINGS)
        settings["n_rows"], settings["n_positives"], settings["n_weights"] = n_rows, m, n_weights
        settings["max_depth"], settings["max_leaves"] = max_depth, n_leaves
        settings["best_first"] = max_leaves is not None
        settings["rounds_to_nearest"] = division.n_rows <= MAX_NEAREST_ROWS
        settings["positives_offset"], settings["negatives_offset"] = division.offsets
        settings["role"] = self._role
        settings["run_task"] = address_of_kernel(_run_task)
        n_groups = len(table.groups)
        n_speculative = max(
            min(MAX_SPECULATIVE_SPLITS, n_leaves // 2 - 1), 1
        )  # as in `_choose`, from two leaves on
        n_batch = n_speculative if max_leaves is not None else max(n_leaves // 2, 1)
        # The root's, one of each split but the last, and of each node that is partitioned in vain.
        n_splits = n_leaves - 1 + (n_speculative if n_speculative > 1 else 0)
        n_histograms = n_splits if max_leaves is not None else n_held
        n_nodes = max(2 * n_splits + 1, n_cells * (2 * n_leaves - 1))
        n_codes = int(table.groups["n_codes"].max())
        is_categorical = table.columns["kind"] == Kind.CATEGORICAL
        n_runs = n_batch * TASKS_PER_PHASE + n_rows // PARTITION_ROWS + 1
        n_spare = (TASKS_PER_PHASE - 1) // n_groups
        # Rows are first partitioned and copied, and only then added up: both use the same memory.
        room = np.empty(max(n_spare * n_numbers, -(-n_rows // 2)), dtype=np.int64)
        codes = CodeArrays(
            words=table.words,
            groups=table.groups,
            columns=table.columns,
            members=table.members,
            features=np.zeros((n_cells, table.n_features), dtype=np.bool_),
            cuttable=table.cell_feature >= 0,
            allowed=np.zeros((n_groups, LANES), dtype=np.bool_),
        )
        row_arrays = RowArrays(
            weights=self.weights.reshape(-1),
            units=units,
            sample_weight=sample_weight,
            scores=self.scores,
            leaves=self._leaves,
            listed=np.empty(n_rows, dtype=np.uint32) if rows is None else rows,
            partitioned=room.view(np.uint32)[:n_rows],
            passes=np.array(bounds, dtype=PASS),
            n_drawn=np.zeros(len(bounds), dtype=np.int64),
        )
        sums = SumArrays(
            histograms=np.empty((n_histograms, n_numbers), dtype=np.int64),
            spare=room[: n_spare * n_numbers].reshape(n_spare, n_numbers),
            by_leaf=np.zeros((len(bounds), 2 + n_weights, n_leaves)),
            by_pass=np.zeros((len(bounds), 3)),
            by_shard=np.zeros((division.n_shards if n_rows > 0 else 1, 2)),
            factors=np.empty((2, n_leaves)),
        )
        tree = TreeArrays(
            nodes=np.zeros(n_nodes, dtype=NODE),
            node_splits=np.zeros(n_nodes, dtype=SPLIT),
            subsets=np.zeros((n_nodes, n_codes if is_categorical.any() else 0), dtype=np.uint8),
            open_leaves=np.zeros(n_leaves, dtype=np.int64),
            open_gains=np.zeros(n_leaves),
            free=np.zeros(n_nodes, dtype=np.int64),
            batch=np.zeros(n_batch, dtype=np.int64),
            above=np.zeros((n_batch, n_codes), dtype=np.uint8),
            pairs=np.zeros(n_batch, dtype=PAIR),
            runs=np.zeros(n_runs, dtype=RUN),
            group_splits=np.zeros((2 * n_batch, n_groups), dtype=SPLIT),
            splits=np.zeros(n_leaves - 1, dtype=TREE_SPLIT),
            coded_splits=np.zeros(n_leaves - 1, dtype=CODED_SPLIT),
            split_columns=np.zeros(max(n_leaves - 1, 1), dtype=np.int64),
        )
        criterion, progress = np.zeros(1, dtype=CRITERION), np.zeros(1, dtype=PROGRESS)
        self.arrays = FitArrays(settings, criterion, progress, codes, row_arrays, sums, tree)
        self._shared = self.arrays, lay_out(FIT_TYPE, self.arrays)
        self._workers = WorkerTeam(n_rows * table.n_features, _work_in, *self._shared, WORK)
        n_threads = self._workers.n_threads
        settings["speculative_splits"] = (
            min(SPLITS_PER_THREAD * n_threads, n_speculative) if n_threads > 1 else 1
        )
        if self._role == LEADER:
            settings["speculative_splits"] = min(LED_SPLITS, n_speculative)

    def grow(
        self, criterion: SplitCriterion, features: npt.NDArray[np.bool_], fraction: float, key: int
    ) -> Splits:
        """Grow one tree, and send all rows to its leaves.

        Parameters
        ----------
        criterion : SplitCriterion
        features : ndarray of shape (n_features,), bool
            Features that it may split on.
        fraction : float
            Fraction of the rows that it is grown on, drawn by their weights; see `sampling`.
        key : int
            Of the draw.

        Returns
        -------
        Splits
            Empty if no split has a gain.

        Notes
        -----
        O(n_features · n_drawn · depth + n_rows · n_leaves).
        """
        fit, progress = self.arrays, self.arrays.progress[0]
        fit.codes.features[:] = features
        progress["n_cells"] = 0
        progress["threshold"] = 0.0
        if fraction < 1.0:
            step = max(self.division.n_rows // THRESHOLD_ROWS, 1)
            progress["threshold"] = find_threshold(self._sample_weights(step), fraction)
        progress["key"] = key
        self._set(criterion)
        self._grow()
        n_leaves = int(progress["n_leaves"])
        splits = fit.tree.splits[: n_leaves - 1]
        return Splits(
            splits["leaf"].copy(),
            splits["feature"].copy(),
            splits["cut"].copy(),
            splits["missing_above"].copy(),
            fit.tree.subsets[splits["node"]],
            self._sum_leaves(n_leaves) if n_leaves > 1 else np.empty((0, 0)),
        )

    def _grow(self) -> None:
        """Grow a tree, and send all rows to its leaves."""
        self._lead(GROW)
        if self.arrays.progress[0]["n_leaves"] == 1:
            self.send_to_root()

    def _sample_weights(self, step: int) -> Floats:
        """Return the weights, or gradients, of every step-th row of the table, in any order."""
        return np.concatenate(self.sample_weights(step))

    def sample_weights(self, step: int) -> list[Floats]:
        """Return for each shard the weights, or gradients, of its rows whose index in the whole table is k · step."""
        samples = []
        for runs in self.division.runs:
            both = [
                self.weights[own.start + -(own.start + offset) % step : own.stop : step, 0]
                for own, offset in zip(runs, self.division.offsets, strict=True)
            ]
            samples.append(np.concatenate(both))
        return samples

    def _sum_leaves(self, n_leaves: int) -> Floats:
        """Return the sums of the weights of each leaf, see `Splits.sums`."""
        return add_in_order(self.leaf_sums(n_leaves))

    def leaf_sums(self, n_leaves: int) -> list[Floats]:
        """Return for each shard what `Splits.sums` is of all, of the rows as they were last sent to leaves."""
        by_leaf = self.arrays.sums.by_leaf[:, :, :n_leaves]
        if self.division.n_shards == 1:
            return [by_leaf.sum(axis=0)]
        runs = zip(*self._passes_of, strict=True)
        return [np.concatenate([by_leaf[own] for own in both]).sum(axis=0) for both in runs]

    def grow_cells(
        self,
        criterion: SplitCriterion,
        cells: npt.NDArray[np.void],
        features: npt.NDArray[np.bool_],
    ) -> CellTrees:
        """Grow a tree in each cell, and sort the rows by its leaves. No two cells share a row.

        Parameters
        ----------
        criterion : SplitCriterion
        cells : ndarray of shape (n_cells,)
            With the fields `start` and `stop`, the range of their rows in `rows`, positives first; and `positive` and
            `negative`, their masses.
        features : ndarray of shape (n_features,) or (n_cells, n_features), bool
            Features that each tree may split on.

        Returns
        -------
        CellTrees
            In the memory of the grower: the next call changes them.
        """
        fit, progress, n = self.arrays, self.arrays.progress[0], len(cells)
        fit.codes.features[:n] = features
        for name in ("start", "stop", "positive", "negative"):
            fit.tree.nodes[name][:n] = cells[name]
        progress["n_cells"] = n
        self._set(criterion)
        self._lead(GROW)
        n_nodes = int(progress["n_nodes"])
        return CellTrees(
            fit.tree.nodes[:n_nodes],
            fit.tree.node_splits[:n_nodes],
            fit.tree.subsets,
            fit.rows.listed,
        )

    def send_to_root(self) -> None:
        """Let all rows be in leaf 0."""
        self._leaves.fill(0)

    def values_of_rows(self, values: Floats) -> Floats:
        """Return the value of each row's leaf in a new array, for rows that are in the leaves of the last tree.

        The numbers of leaves share memory with the next tree's units of weight, so nobody else reads them.
        """
        return values[self._leaves]

    def start_weights(self, weight: Floats) -> None:
        """Let these be the weights, (n_rows,) float64; all rows are in leaf 0."""
        self.send_to_root()
        self.weights[:, 0] = weight

    def start_scores(self, score: float) -> None:
        """Let all rows have this score; all are in leaf 0."""
        self.send_to_root()
        self.scores.fill(score)

    def rescale(self, factors: Floats) -> float:
        """Multiply weights by factors[class, leaf]; return Σ weight² / sample weight."""
        return float(self._pass_over(RESCALE, factors)[0].sum())

    def step(self, values: Floats) -> Floats:
        """Add values[leaf] to the scores, and write gradients and Hessians of the logistic loss.

        Returns
        -------
        ndarray of shape (3, 2), float64
            Σ loss, Σ Hessian, and Σ Hessian² / sample weight, each of positives and of negatives.
        """
        return self._pass_over(STEP, values[None])

    def _pass_over(self, phase: int, factors: Floats) -> Floats:
        """Pass over all rows, and return what is summed up of positives and of negatives, (3, 2) float64."""
        return add_in_order(self.pass_sums(phase, factors))

    def pass_sums(self, phase: int, factors: Floats) -> list[Floats]:
        """Pass over all rows; return for each shard what is summed up of positives and of negatives, (3, 2) float64."""
        self.arrays.sums.factors[: len(factors), : factors.shape[1]] = factors
        self._lead(phase)
        by_pass = np.ascontiguousarray(self.arrays.sums.by_pass.T)
        runs = zip(*self._passes_of, strict=True)
        return [np.array([[each[own].sum() for own in both] for each in by_pass]) for both in runs]

    def take_again(self, steps: Sequence[TreeStep]) -> None:
        """Take steps of another run from the start on."""
        self.arrays.progress[0]["threshold"] = 1.0  # rows are sent to leaves by their codes
        for step in steps:
            self.set_splits(step.splits)
            self._lead(ROUTE)
            self.pass_sums(RESCALE if len(step.factors) == 2 else STEP, step.factors)

    def coded_splits(self) -> CodedSplits:
        """Return the splits of the last tree."""
        tree, progress = self.arrays.tree, self.arrays.progress[0]
        n_splits, n_codes = int(progress["n_leaves"]) - 1, tree.subsets.shape[1]
        splits, columns = tree.coded_splits[:n_splits].copy(), tree.split_columns
        by_subset = splits["subset"] >= 0
        own = columns[splits["column"][by_subset]]
        n_bins = self.table.columns["n_bins"][own // LANES, own % LANES].max(initial=0)
        numbers = splits["subset"][by_subset] // max(n_codes, 1)
        subsets = np.packbits(tree.subsets[numbers, : 8 * (n_bins // 8 + 1)], axis=1)
        splits["subset"][by_subset] = n_codes * np.arange(len(subsets))
        return CodedSplits(splits, columns[: progress["n_columns"]].copy(), subsets)

    def set_splits(self, given: CodedSplits) -> None:
        """Let the last tree have these splits, of columns as they are here: rows can then be sent to its leaves."""
        tree, progress = self.arrays.tree, self.arrays.progress[0]
        splits, columns, subsets = given
        tree.coded_splits[: len(splits)] = splits
        tree.split_columns[: len(columns)] = columns
        if len(subsets):
            codes = np.unpackbits(subsets, axis=1)[:, : tree.subsets.shape[1]]
            tree.subsets[: len(subsets)] = codes[:, -1:]
            tree.subsets[: len(subsets), : codes.shape[1]] = codes
        progress["n_leaves"], progress["n_columns"] = len(splits) + 1, len(columns)

    def _set(self, criterion: SplitCriterion) -> None:
        """Set the criterion; what rounding may take of the least masses is given."""
        least = 1.0 - min(self.division.n_rows * 2.0**-UNIT_BITS, MAX_ROUNDING)
        criterion = criterion._replace(
            least_mass=criterion.least_mass * least, category_mass=criterion.category_mass * least
        )
        for name, value in criterion._asdict().items():
            self.arrays.criterion[0][name] = value

    def _lead(self, part: int) -> None:
        """Lead the threads through a part of the work; see `run_worker`."""
        with self._workers as region:
            _work_in(region, *self._shared, part)


class TreeSteps(Resumable):
    """The steps of a run: a checkpoint of it has these, and nothing of the rows, which take them again.

    Parameters
    ----------
    grower : TreeGrower
        At its start when a state is set.
    """

    def __init__(self, grower: TreeGrower) -> None:
        self._grower = grower
        self._steps: list[TreeStep] = []

    def add(self, factors: Floats) -> None:
        """Note the last tree with what `rescale`, (2, n_leaves), or `step`, (1, n_leaves), is about to take."""
        self._steps.append(TreeStep(self._grower.coded_splits(), factors))

    def get_state(self) -> Arrays:
        """Return all steps as one array of numbers, and the sets of codes."""
        numbers: list[npt.NDArray[Any]] = [np.empty(0)]
        sets = [np.empty(0, dtype=np.uint8)]
        for (splits, columns, subsets), factors in self._steps:
            sizes = len(splits), len(columns), *subsets.shape, len(factors)
            numbers += [np.array(sizes), splits.view(np.int64), columns, factors.ravel()]
            sets.append(subsets.ravel())
        return {
            "numbers": np.concatenate(numbers).astype(np.float64),
            "subsets": np.concatenate(sets),
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise ArtifactError if these are no steps."""
        _read_steps(state)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Let the rows take the steps of another run."""
        self._steps = _read_steps(state)
        self._grower.take_again(self._steps)


def _read_steps(state: Mapping[str, Any]) -> list[TreeStep]:
    steps: list[TreeStep] = []
    try:
        rest, sets = state["numbers"], state["subsets"]
        while len(rest):
            n_splits, n_columns, n_subsets, n_bytes, n_factors = map(int, rest[:5])
            sizes = N_SPLIT_FIELDS * n_splits, n_columns, n_factors * (n_splits + 1)
            if min(*sizes, n_subsets, n_bytes) < 0:
                raise ValueError("a number of numbers must be at least 0")
            *parts, rest = np.split(rest[5:], np.cumsum(sizes))
            splits, columns = parts[0].astype(np.int64), parts[1].astype(np.int64)
            subsets, sets = np.split(sets, [n_subsets * n_bytes])
            coded = CodedSplits(
                splits.view(CODED_SPLIT), columns, subsets.reshape(n_subsets, n_bytes)
            )
            steps.append(TreeStep(coded, parts[2].reshape(n_factors, n_splits + 1)))
    except (KeyError, ValueError, OverflowError) as error:
        raise ArtifactError(f"a checkpoint must hold the steps of trees: {error}") from error
    return steps
