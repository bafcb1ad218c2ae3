"""The arrays that growth works on, and what their columns mean."""

from typing import Any, NamedTuple

import numba

MAX_LEAVES = 1024

CATEGORY_ROWS = 5.0
"""A category of fewer rows has no place in the order of a leaf's categories: chance would put it at an end."""

RUN_ROWS = 1 << 15
"""Rows of a run: what one thread does at a time. Runs are summed apart, then added in order."""

ROWS_PER_CODE = 128
"""So many rows at least per code of a run's histogram, so that its cells stay few beside its rows."""

# Columns of a split: the leaf, the feature, codes greater than which cut lie above, and whether the
# missing do. Where the feature is categorical, an array of sides says which codes lie above.
N_SPLIT_COLUMNS = 4
BY_SIDES = -2  # instead of a cut

# Columns of `leaves`: where a leaf's rows of the first class start and stop (two further on, those of
# the second), the place of its histogram, its depth, its best cut.
START, STOP, PLACE, DEPTH, FEATURE, CUT, MISSING_ABOVE = 0, 1, 4, 5, 6, 7, 8

# Columns of `runs`: the leaf, where its rows start and stop; when rows are divided: how many lie
# above the cut, and where those above and those below go; when they are added: which half of the
# histogram, which weights, and the spare histogram that takes the sum, -1 for the leaf's own.
LEAF, FROM, TO, N_ABOVE, ABOVE, BELOW = range(6)
HALF, WEIGHTS, SPARE = 3, 4, 5
IN_PLACE = (
    -1
)  # as ABOVE: a run's parts have no others of their leaf and class before or between them

# Columns of `pairs`, siblings to be finished: the leaf that was added up, its sibling (-1 for the
# root, which has none), the first and one after the last of its runs.
ADDED, SIBLING, FIRST_RUN, LAST_RUN = range(4)

N_LEAVES, N_BATCH, N_RUNS = range(3)  # of the counts of `State`


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
    category_charge : float
        What is taken off the gain for each category beyond two; see `sides`.
    category_mass : float
        Least mass of a category that is to have a place in the order.
    category_smoothing : float
        Mass of the leaf's own share that is added to each category's before they are put in order.
    """

    objective: int
    push: float
    smoothing: float
    least_mass: float
    category_charge: float
    category_mass: float
    category_smoothing: float


class Work(NamedTuple):
    """The arrays of growth, shared by its kernels.

    Attributes
    ----------
    words, per_word, blocks, categorical
        Of the table; see `layout.Table`.
    run_rows : int
    allowed : ndarray of shape (n_blocks, 32), bool
        Which features may be cut.
    rows : ndarray of shape (n_rows,), uint32
        The rows drawn, those of a leaf and class together, ascending.
    divided : ndarray of shape (n_rows,), uint32
        Where runs of rows are divided before they are put in their places; in the memory of `spare`.
    weights : ndarray of shape (1 or 2, n_rows), float64
    least_weight : float
        What the first weight of a row is raised to where it is less, and the second in proportion.
    histograms : ndarray of shape (n_leaves, 2 * n_cells), float64
        Of a leaf: of each block both masses per code and column, [half, code * 32 + column].
    spare : ndarray of shape (n_spare, n_cells), float64
        What further runs of a leaf add to it.
    leaves : ndarray of shape (n_leaves, 9), int64
    found : ndarray of shape (n_leaves, n_blocks + 1, 4), float64
        Gain, feature, cut and side of the missing of each block's best cut; last the best gain.
    sides : ndarray of shape (n_leaves, n_blocks + 1, n_codes), uint8
        1 for the codes above each block's best cut of a categorical column; last those of the best
        cut. No codes where no column is categorical.
    runs : ndarray of shape (n_runs, 6), int64
    pairs : ndarray of shape (n_leaves, 4), int64
    """

    words: Any
    per_word: Any
    blocks: Any
    categorical: Any
    run_rows: Any
    allowed: Any
    rows: Any
    divided: Any
    weights: Any
    least_weight: Any
    histograms: Any
    spare: Any
    leaves: Any
    found: Any
    sides: Any
    runs: Any
    pairs: Any


class State(NamedTuple):
    """How far a tree has come.

    Attributes
    ----------
    counts : ndarray of shape (3,), int64
        Leaves so far, leaves being divided, runs of their rows.
    batch : ndarray of shape (n_leaves,), int64
        The leaves being divided.
    splits : ndarray of shape (n_leaves - 1, 4), int64
    sides : ndarray of shape (n_leaves - 1, n_codes), uint8
        Of each split BY_SIDES.
    """

    counts: Any
    batch: Any
    splits: Any
    sides: Any


RULE_TYPE = numba.types.NamedTuple((numba.int64, *[numba.float64] * 6), Rule)
_I2 = numba.int64[:, ::1]
WORK_TYPE = numba.types.NamedTuple(
    (
        numba.uint64[:, ::1],
        numba.int64,
        _I2,
        numba.boolean[:, ::1],
        numba.int64,
        numba.boolean[:, ::1],
        numba.uint32[::1],
        numba.uint32[::1],
        numba.float64[:, ::1],
        numba.float64,
        numba.float64[:, ::1],
        numba.float64[:, ::1],
        _I2,
        numba.float64[:, :, ::1],
        numba.uint8[:, :, ::1],
        _I2,
        _I2,
    ),
    Work,
)
STATE_TYPE = numba.types.NamedTuple(
    (numba.int64[::1], numba.int64[::1], _I2, numba.uint8[:, ::1]), State
)
