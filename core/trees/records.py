"""The shared arrays of a fit of trees: records that kernels and threads read and write, and the phases of their work.

Kernels pass each other the address of these arrays (`arrays_at`): one number instead of forty arguments.
"""

from typing import Any, NamedTuple

import numba
import numpy as np

from core.coding.threads import tuple_at

from .coding import COLUMN, GROUP, MEMBER
from .predictor import CODED_SPLIT
from .splitting import SPLIT, SplitCriterion

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
        (
            "item",
            np.int64,
        ),  # of the batch that is partitioned, or of the siblings that are added up
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
SIBLINGS = np.dtype(
    [
        ("added", np.int64),  # the node whose rows are added up
        ("subtracted", np.int64),  # the other one; -1 for the root, which has none
        ("first_run", np.int64),
        ("n_runs", np.int64),  # 1: added up as both are finished
        ("is_summed", np.int64),  # 0: the rows are taken away from the histogram of the other
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
        ("shard", np.int64),  # number of the shard in this process, from 0
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
        ("run_task", np.int64),  # the address of `run_task`
        (
            "derivatives",
            np.int64,
        ),  # the address of the loss's kernel, see `derivatives`; 0 if it has none
    ],
    align=True,
)
"""What is the same for all trees of a fit."""
CRITERION = np.dtype(
    [(name, np.int64 if name == "objective" else np.float64) for name in SplitCriterion._fields],
    align=True,
)
"""A `SplitCriterion` as a record."""
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
        ("n_siblings", np.int64),  # pairs of siblings whose histograms are to be summed up
        ("n_batch", np.int64),  # nodes that are split at present; 0: the tree is grown
    ],
    align=True,
)
"""What is done at present, and how far the tree is."""

# Phases. BUILD completes the histograms of both siblings; FIND completes that of the other, and finds the best
# split of both; BUILD_AND_FIND does all while the cells are in the cache. SPLIT_NODE does all phases from MARK to
# BUILD_AND_FIND for a node of few rows.
LIST, DRAW, ROUND, ADD, BUILD, FIND, BUILD_AND_FIND = range(7)
MARK, PARTITION, GATHER, SUM, ROUTE, RESCALE, STEP, SPLIT_NODE = range(7, 15)
# Other work that a thread can be called for; see `schedule.run_worker`.
WORK, GROW, PLANT, ADVANCE, LIST_ROWS, ADD_ROOT, DIVIDE, ADD_SIBLINGS = range(15, 23)


class CodeArrays(NamedTuple):
    """The coded table, and which columns and codes a tree may split on.

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
    """The rows of a fit: their weights and scores, and the node and leaf that hold them.

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
    """Sums over rows: histograms, and sums of weights per leaf, pass and shard.

    Attributes
    ----------
    histograms, spare : ndarray of shape (n_histograms, n_cells), int64
        For each group the cells [code, column]: sums of weights in units, exact in any order. The upper half of a cell
        is the mass of positives, or the gradient, the lower that of negatives, or the Hessian; see
        `splitting.unpack_masses`. `spare` holds parts that are added up to histograms.
    by_leaf : ndarray of shape (n_passes, 2 + n_weights, n_leaves), float64
        See `Splits.sums`.
    by_pass : ndarray of shape (n_passes, 3), float64
        What `LIST`, `DRAW`, `RESCALE` and `STEP` sum up; and the least Hessian that `LIST` and `DRAW` find.
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
    """The tree under construction: its nodes and splits, and the nodes being split.

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
    siblings : ndarray of shape (n_batch,), `SIBLINGS`
    runs : ndarray, `RUN`
    group_splits : ndarray of shape (2 * n_batch, n_groups), `SPLIT`
        Best split by the columns of each group, of both nodes of each two siblings.
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
    siblings: Any
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
        _records(SIBLINGS),
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
