"""The arrays that LeafRank works on, and what their columns mean."""

from typing import Any, NamedTuple

import numba

RUN_ROWS = 1 << 15
"""Rows of a run: what one thread does at a time. Runs are summed apart, then added in order."""

# Columns of `leaves`: where a leaf's rows start, its positives end, and its rows end; the place of
# its histogram; its depth in its cut tree; its cell; its best cut; whether it may be split; its last
# split; what its subtree has become while leaves are merged: a leaf, or ~ a split.
START, MIDDLE, STOP, PLACE, DEPTH, CELL, FEATURE, CUT, MISSING_ABOVE, OPEN, SPLIT, SUBTREE = range(
    12
)
N_LEAF_COLUMNS = 12

# Columns of `runs`: the leaf, where its rows start and stop, which class; when they are added, the
# spare histogram that takes the sum, -1 for the leaf's own; when they are divided, how many lie
# above, and where those above and those below go.
LEAF, FROM, TO, CLASS, SPARE = range(5)
N_ABOVE, ABOVE, BELOW = 4, 5, 6
N_RUN_COLUMNS = 7

# Columns of `pairs`, siblings to be finished: the leaf that was added up, its sibling (-1: none),
# the first and one after the last of its runs. Of leaves being divided: the last two alone.
ADDED, SIBLING, FIRST_RUN, LAST_RUN = range(4)
N_PAIR_COLUMNS = 4

# Columns of `splits`: the leaf, which keeps what is above; the new one, which takes what is below;
# the feature, the cut, the side of the missing; its subtrees, as in `leaves`.
OLD, NEW, SPLIT_FEATURE = range(3)
SUBTREE_ABOVE, SUBTREE_BELOW = 5, 6
N_SPLIT_COLUMNS = 7

# Columns of `nodes`, of a cell's cut tree in preorder: the feature (-1: a leaf), the cut, the side of
# the missing, the split; of a leaf whether its rows go to the top child.
ASKED, AT, MISSING_SIDE, MADE_BY, TO_TOP = range(5)
N_NODE_COLUMNS = 5

# Columns of `cells`: start, middle and stop of the rows of the top child and of the bottom one, and
# one after the last place of a histogram that the cell has taken, the leaves of its cut tree, the leaf
# that gains most (-1: none), and the cuts of which both leaves went to one side.
LAST_PLACE, N_CUT_LEAVES, BEST, N_MERGED = 6, 7, 8, 9
N_CELL_COLUMNS = 10

# Members of `counts`: leaves and splits so far; pairs to find cuts for; splits of the present round.
N_LEAVES, N_SPLITS, N_PAIRS, N_NEW = range(4)
N_COUNTS = 4


class Work(NamedTuple):
    """The arrays of growth, shared by its kernels.

    Attributes
    ----------
    words : ndarray of shape (n_blocks, n_words), uint64
        See `core.coding.by_row`.
    blocks : ndarray of shape (n_blocks, 3), int64
        Of each block: its number of words in use, the greatest number of bins of its columns, and
        whether one of them has missing values.
    n_unordered : ndarray of shape (n_blocks, 32), int64
        Of a categorical column its number of bins, else 0.
    weights : ndarray of shape (n_rows,) or (0,), float64
        Empty where all are 1.
    classes : ndarray of shape (4,), float64
        Mass of each class in all rows; how finely it is divided, see `core.coding.categories.Spread`.
    rows : ndarray of shape (n_rows,), uint32
        Those of a cell together, its positives first.
    divided : ndarray of shape (n_rows,), uint32
        Where rows wait before they are put in their places.
    histograms : ndarray of shape (n_places, n_blocks, 2, 256 * 32), float64
        Positive and negative mass per code and column.
    spare : ndarray of shape (n_spare, n_blocks, 256 * 32), float64
        What further runs of a leaf add to it.
    allowed : ndarray of shape (n_cells, n_blocks, 32), bool
        Which columns may be cut in each cell.
    leaves : ndarray of shape (n_leaves, 12), int64
    masses : ndarray of shape (n_leaves, 2), float64
        Positive and negative.
    found : ndarray of shape (n_leaves, n_blocks + 1, 4), float64
        Gain, feature, cut and side of the missing of each block's best cut; last the best of all.
    above : ndarray of shape (n_splits, 256), uint8
        Which codes lie above a split's cut.
    runs : ndarray of shape (n_runs, 7), int64
    run_masses : ndarray of shape (n_runs, 2), float64
        Above and below.
    pairs : ndarray of shape (n_leaves, 4), int64
    splits : ndarray of shape (n_splits, 7), int64
    sides : ndarray of shape (n_leaves,), uint8
        Whether a leaf's rows go to the top child.
    cells : ndarray of shape (n_cells, 10), int64
    gains : ndarray of shape (n_cells, 5), float64
        Λ, in masses, of each cell's split; masses of the top child, then of the bottom one.
    nodes : ndarray of shape (n_cells, 2 * most leaves - 1, 5), int64
        Of each cell's cut tree.
    node_masses : ndarray of shape (n_cells, most leaves, 2), float64
        Of its leaves; from the last place back, the feature and the gain, in masses, of each cut that was merged.
    counts : ndarray of shape (4,), int64
    """

    words: Any
    blocks: Any
    n_unordered: Any
    weights: Any
    classes: Any
    rows: Any
    divided: Any
    histograms: Any
    spare: Any
    allowed: Any
    leaves: Any
    masses: Any
    found: Any
    above: Any
    runs: Any
    run_masses: Any
    pairs: Any
    splits: Any
    sides: Any
    cells: Any
    gains: Any
    nodes: Any
    node_masses: Any
    counts: Any


_I2, _F2 = numba.int64[:, ::1], numba.float64[:, ::1]
WORK_TYPE = numba.types.NamedTuple(
    (
        numba.uint64[:, ::1],
        _I2,
        _I2,
        numba.float64[::1],
        numba.float64[::1],
        numba.uint32[::1],
        numba.uint32[::1],
        numba.float64[:, :, :, ::1],
        numba.float64[:, :, ::1],
        numba.boolean[:, :, ::1],
        _I2,
        _F2,
        numba.float64[:, :, ::1],
        numba.uint8[:, ::1],
        _I2,
        _F2,
        _I2,
        _I2,
        numba.uint8[::1],
        _I2,
        _F2,
        numba.int64[:, :, ::1],
        numba.float64[:, :, ::1],
        numba.int64[::1],
    ),
    Work,
)
