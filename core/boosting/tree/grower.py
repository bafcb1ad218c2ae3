"""The memory in which trees are grown, and the door to `growth`."""

import numpy as np
import numpy.typing as npt

from core.scan import Team

from .growth import END_TREE, START_TREE, do_pieces, next_phase
from .layout import CELLS, COLUMNS, Floats, Integers, Table
from .workspace import N_LEAVES, N_SPLIT_COLUMNS, RUN_ROWS, Rule, State, Work


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

    Notes
    -----
    Memory: 8 bytes per row for the order of rows, and 128 KiB per leaf and block of 32 columns.
    """

    def __init__(
        self, table: Table, team: Team, n_weights: int, max_depth: int, max_leaves: int | None
    ) -> None:
        self._team = team
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
        self._state = State(
            np.zeros(3, dtype=np.int64),
            np.zeros(n_leaves, dtype=np.int64),
            np.zeros((n_leaves - 1, N_SPLIT_COLUMNS), dtype=np.int64),
        )

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
        phase, n_pieces = START_TREE, 0
        while phase != END_TREE:
            self._team.run(do_pieces, n_pieces, phase, work, rule)
            phase, n_pieces = next_phase(
                phase, work, self._max_depth, self._best_first, self._state
            )
        splits: Integers = self._state.splits[: self._state.counts[N_LEAVES] - 1].copy()
        return splits
