"""The memory in which trees are grown, and the door to `growth`."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.coding import Team
from core.coding.by_row import COLUMNS
from core.coding.team import PARALLEL_CELLS
from core.errors import InvalidParameter

from .drawing import Drawn
from .growth import grow
from .layout import N_CODES, Floats, Integers, Table
from .phases import END_TREE, START_TREE
from .workspace import N_LEAVES, N_SPLIT_COLUMNS, ROWS_PER_CODE, RUN_ROWS, Rule, State, Work


class Splits(NamedTuple):
    """A tree as growth gives it; see `growth`.

    Attributes
    ----------
    cuts : ndarray of shape (n_leaves - 1, 4), int64
        Of each split the leaf, the feature, the cut (codes greater than it lie above) and whether
        the missing lie above.
    sides : ndarray of shape (n_leaves - 1, n_codes), uint8
        Where the cut is BY_SIDES, 1 for the codes above.
    """

    cuts: Integers
    sides: npt.NDArray[np.uint8]


# Of histograms. 31 leaves of 255 bins × 30 columns take 4 MB, of 65,535 bins a gigabyte.
MOST_BYTES = 4 << 30


class Grower:
    """Grows trees on one table; holds the memory for it.

    Parameters
    ----------
    table : Table
    team : Team
    n_weights : int
        1: one weight per row, summed by class. 2: a gradient and a curvature per row, summed over
        all rows.
    max_depth : int
    max_leaves : int or None
        None grows level by level.
    rows : ndarray of shape (n_rows,), uint32
        Room for the rows to grow a tree on; overwritten.

    Raises
    ------
    InvalidParameter
        The histograms of so many leaves and bins would take too much memory.

    Notes
    -----
    Memory: 8 bytes per row for the order of rows, and 512 bytes per leaf, bin and block of 32
    columns; only what a tree comes to use is ever touched.
    """

    def __init__(
        self,
        table: Table,
        team: Team,
        n_weights: int,
        max_depth: int,
        max_leaves: int | None,
        rows: npt.NDArray[np.uint32],
    ) -> None:
        self._team = team
        self._table = table
        self._max_depth = max_depth
        self._best_first = max_leaves is not None
        n_leaves = max_leaves or 2**max_depth
        n_blocks, n_rows, n_cells = len(table.blocks), table.n_rows, table.n_cells
        n_bytes = min(n_leaves, n_rows) * 2 * n_cells * 8
        if n_bytes > MOST_BYTES:
            raise InvalidParameter(
                f"max_bins or the trees' size must be less: histograms of {n_leaves} leaves and "
                f"{n_cells * 2:,} cells take {n_bytes / 1e9:.1f} GB, at most {MOST_BYTES / 1e9:.1f}"
            )
        most_codes = int(table.blocks[:, N_CODES].max())
        n_sided = most_codes if table.categorical.any() else 0
        run_rows = max(RUN_ROWS, ROWS_PER_CODE * most_codes)
        n_runs = 2 * (n_rows // run_rows + 2 * n_leaves + 2)
        n_spare = 2 * (n_rows // run_rows) + 2
        # Rows are divided, put in their places, and only then added up: both use the same room.
        room = np.empty(max(n_spare * n_cells, -(-n_rows // 2)))
        self._work = Work(
            table.words,
            table.per_word,
            table.blocks,
            table.categorical,
            run_rows,
            np.zeros((n_blocks, COLUMNS), dtype=np.bool_),
            rows,
            room.view(np.uint32)[:n_rows],
            np.empty((n_weights, 0)),
            0.0,
            np.empty((n_leaves, 2 * n_cells)),
            room[: n_spare * n_cells].reshape(n_spare, n_cells),
            np.zeros((n_leaves, 9), dtype=np.int64),
            np.zeros((n_leaves, n_blocks + 1, 4)),
            np.zeros((n_leaves, n_blocks + 1, n_sided), dtype=np.uint8),
            np.zeros((n_runs, 6), dtype=np.int64),
            np.zeros((n_leaves, 4), dtype=np.int64),
        )
        self._state = State(
            np.zeros(3, dtype=np.int64),
            np.zeros(n_leaves, dtype=np.int64),
            np.zeros((n_leaves - 1, N_SPLIT_COLUMNS), dtype=np.int64),
            np.zeros((n_leaves - 1, n_sided), dtype=np.uint8),
        )

    @property
    def rows(self) -> npt.NDArray[np.uint32]:
        """Room for the rows to grow the next tree on, which mixes them up: (n_rows,)."""
        rows: npt.NDArray[np.uint32] = self._work.rows
        return rows

    def grow(
        self, drawn: Drawn, weights: Floats, features: npt.NDArray[np.bool_], rule: Rule
    ) -> Splits:
        """Grow one tree.

        Parameters
        ----------
        drawn : Drawn
            How many rows to grow on; they are in `rows`.
        weights : ndarray of shape (n_weights, n_rows), float64
            Of all rows.
        features : ndarray of shape (n_features,), bool
            Which may be cut.
        rule : Rule

        Returns
        -------
        Splits
            Empty where no cut has a gain.

        Notes
        -----
        O(n_features · n_drawn · depth). Sums run over fixed runs of rows and are added in order,
        so that the tree does not depend on the number of threads.
        """
        work = self._work._replace(weights=weights, least_weight=drawn.least_weight)
        work.allowed.reshape(-1)[: len(features)] = features
        n_positives, n_drawn = drawn.n_positives, drawn.n_rows
        if len(weights) == 2:  # gradients tell the classes apart themselves
            n_positives = 0
        work.leaves[0] = (0, n_positives, n_positives, n_drawn, 0, 0, -1, 0, 0)
        shape = self._max_depth, self._best_first, self._state
        phase, n_pieces = START_TREE, 0
        nothing = np.zeros(1, dtype=np.int64)  # a queue from which 0 pieces are taken
        while True:
            phase, n_pieces = grow(nothing, 0, phase, work, rule, *shape, PARALLEL_CELLS)
            if phase == END_TREE:
                break
            self._team.deal(grow, n_pieces, phase, work, rule, *shape, 0)
        n_splits = self._state.counts[N_LEAVES] - 1
        return Splits(self._state.splits[:n_splits].copy(), self._state.sides[:n_splits].copy())
