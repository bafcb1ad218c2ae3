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
    """The coded table, and which columns and codes a tree may split on."""

    words: Any
    groups: Any
    columns: Any
    members: Any
    """Of the table; see `coding.Table`."""
    features: Any
    """Features that each tree may split on. Shape (n_trees, n_features), bool."""
    cuttable: Any
    """Cells at which this tree may cut, if it may split on their column; see `coding.Table.cell_feature`. Shape
    (n_cells,), bool."""
    allowed: Any
    """Columns that this tree may split on. Shape (n_groups, 8), bool."""


class RowArrays(NamedTuple):
    """The rows of a fit: their weights and scores, and the node and leaf that hold them."""

    weights: Any
    """One weight per row, or gradient and Hessian. Shape (n_rows * n_weights,), float64."""
    units: Any
    """The weights in units of the histograms; see `round_weights`. Shape (n_rows * n_weights,), uint32."""
    sample_weight: Any
    scores: Any
    """Shape (n_rows,) or (0,), float64."""
    leaves: Any
    """Leaf of each row in the last tree. Shape (n_rows,), uint16."""
    listed: Any
    """The rows drawn; rows of a node are together, ascending. Shape (n_rows,), uint32."""
    partitioned: Any
    """Rows after they were partitioned, before they are copied to `listed`; in the memory of `SumArrays.spare`. Shape
    (n_rows,), uint32."""
    passes: Any
    """Runs of rows of one class. Shape (n_passes,), `PASS`."""
    n_drawn: Any
    """Number of rows drawn from each run. Shape (n_passes,), int64."""


class SumArrays(NamedTuple):
    """Sums over rows: histograms, and sums of weights per leaf, pass and shard."""

    histograms: Any
    spare: Any
    """For each group the cells [code, column]: sums of weights in units, exact in any order. The upper half of a cell
    is the mass of positives, or the gradient, the lower that of negatives, or the Hessian; see
    `splitting.unpack_masses`. `spare` holds parts that are added up to histograms. Shape (n_histograms, n_cells),
    int64."""
    by_leaf: Any
    """See `Splits.sums`. Shape (n_passes, 2 + n_weights, n_leaves), float64."""
    by_pass: Any
    """What `LIST`, `DRAW`, `RESCALE` and `STEP` sum up; and the least Hessian that `LIST` and `DRAW` find. Shape
    (n_passes, 3), float64."""
    by_shard: Any
    """Sums of the weights from which the units are chosen. Shape (n_shards, 2), float64."""
    factors: Any
    """What `RESCALE` multiplies weights by, or `STEP` adds to scores. Shape (2, n_leaves), float64."""


class TreeArrays(NamedTuple):
    """The tree under construction: its nodes and splits, and the nodes being split."""

    nodes: Any
    """The roots of all trees, then their other nodes. Shape (n_nodes,), `NODE`."""
    node_splits: Any
    """Best split of each node. Shape (n_nodes,), `SPLIT`."""
    subsets: Any
    """For a node that is split BY_SUBSET 1 for the codes above. Without categories n_codes is 0. Shape (n_nodes,
    n_codes), uint8."""
    open_leaves: Any
    """Node of each leaf; -1 if the leaf will not be split. Shape (n_leaves,), int64."""
    open_gains: Any
    """Gain of the best split of each leaf; below 0 if the leaf will not be split. Shape (n_leaves,), float64."""
    free: Any
    """Histograms that no node needs any more: the first `n_free`. Shape (n_nodes,), int64."""
    batch: Any
    """Nodes that are split at present. Shape (n_batch,), int64."""
    above: Any
    """For each of them 1 for the codes above its split. Shape (n_batch, n_codes), uint8."""
    siblings: Any
    """Shape (n_batch,), `SIBLINGS`."""
    runs: Any
    group_splits: Any
    """Best split by the columns of each group, of both nodes of each two siblings. Shape (2 * n_batch, n_groups),
    `SPLIT`."""
    splits: Any
    """Shape (n_leaves - 1,), `TREE_SPLIT`."""
    coded_splits: Any
    """The same splits as `find_leaves` compares codes; columns are indices of `split_columns`. Shape (n_leaves - 1,),
    `CODED_SPLIT`."""
    split_columns: Any
    """Columns that the tree has split on: 8 · group + lane. Shape (n_leaves - 1,), int64."""


class FitArrays(NamedTuple):
    """The arrays of a fit, shared by its kernels and threads."""

    settings: Any
    criterion: Any
    progress: Any
    """Shape (1,), `SETTINGS`, `CRITERION` and `PROGRESS`."""
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
