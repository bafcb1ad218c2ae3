"""LeafRank: split a cell by a tree of axis cuts whose leaves are merged to two sides (Fig. 5)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from core.coding.by_row import CELLS, COLUMNS
from core.coding.categories import NO_SPREAD, measure_spread
from core.coding.team import Team
from core.ranker import Floats

from . import leafgrowth
from .coding import CodedTable
from .cut_trees import NO_CODES, CutTree, join
from .cuts import CutRules
from .leafgrowth import ADD, CHILDREN, DIVIDE, FIND, GATHER, SETTLE
from .preorder import Booleans, Integers
from .splitting import Divided
from .workspace import (
    ADDED,
    ASKED,
    CELL,
    DEPTH,
    LAST_PLACE,
    MADE_BY,
    N_CELL_COLUMNS,
    N_COUNTS,
    N_CUT_LEAVES,
    N_LEAF_COLUMNS,
    N_LEAVES,
    N_MERGED,
    N_NEW,
    N_NODE_COLUMNS,
    N_PAIR_COLUMNS,
    N_PAIRS,
    N_RUN_COLUMNS,
    N_SPLIT_COLUMNS,
    N_SPLITS,
    OPEN,
    PLACE,
    RUN_ROWS,
    SIBLING,
    START,
    STOP,
    Work,
)

HISTOGRAM_BYTES = 1 << 23  # that cells looked at together may take: more would leave the cache


class Shape(NamedTuple):
    """How large a cut tree may be.

    Attributes
    ----------
    max_depth : int
        1 for a single cut.
    max_leaves : int
        Where fewer than 2**max_depth, the leaf that gains most is split first.
    least_mass : float
        Least mass of a leaf.
    """

    max_depth: int
    max_leaves: int
    least_mass: float


class Rows(NamedTuple):
    """A cell: where its rows are.

    Attributes
    ----------
    start, middle, stop : int
        Of its positives and its negatives in the order of rows.
    positive, negative : float
        Mass of each class.
    """

    start: int
    middle: int
    stop: int
    positive: float
    negative: float


class FeatureDraw:
    """Draws the features that a cell may ask.

    Parameters
    ----------
    n_features : int
        Of the table.
    n_drawn : int
    generator : numpy.random.Generator
    """

    def __init__(self, n_features: int, n_drawn: int, generator: np.random.Generator) -> None:
        self._n_features = n_features
        self._n_drawn = n_drawn
        self._generator = generator

    def draw(self, allowed: Booleans) -> None:
        """Write which columns each cell draws; `allowed` is of shape (n_cells, n_blocks, 32)."""
        every = np.tile(np.arange(self._n_features), (len(allowed), 1))
        drawn = self._generator.permuted(every, axis=1)[:, : self._n_drawn]
        columns = allowed.reshape(len(allowed), -1)
        columns[:] = False
        np.put_along_axis(columns, drawn, True, axis=1)


class LeafRank:
    """Divides cells of one table; holds the memory for it.

    Parameters
    ----------
    table : CodedTable
    rows : ndarray of shape (n_rows_in_use,), int64
        Rows of the table to grow on, ascending, of weight above 0.
    weight, count : ndarray of shape (n_rows,), float64
        Of the table's rows, in its order: their weight, and for how many rows each stands.
    shape : Shape
    team : Team
    features : FeatureDraw or None
        Which features each cell may ask; None: all.

    Notes
    -----
    Memory beside the table: 16 bytes per row at most, and 8 MiB of histograms.
    """

    def __init__(
        self,
        table: CodedTable,
        rows: Integers,
        weight: Floats,
        count: Floats,
        shape: Shape,
        team: Team,
        features: "FeatureDraw | None" = None,
    ) -> None:
        self._table = table
        self._shape = shape
        self._team = team
        self._features = features
        n_blocks, n_rows = len(table.blocks), len(rows)
        self._n_places = min(2 ** (shape.max_depth - 1), shape.max_leaves - 1)
        cell_bytes = self._n_places * n_blocks * 2 * CELLS * 8
        self.n_cells = n_cells = max(1, HISTOGRAM_BYTES // cell_bytes)
        most_leaves = min(2**shape.max_depth, shape.max_leaves)
        n_leaves = n_cells * most_leaves
        n_runs = 2 * (n_rows // RUN_ROWS + n_leaves) + 2
        middle = int(np.searchsorted(rows, table.n_positives))
        masses = [float(weight[part].sum()) for part in (rows[:middle], rows[middle:])]
        self.root = Rows(0, middle, n_rows, *masses)
        self._has_categories = bool(table.bins.is_categorical.any())
        spread = NO_SPREAD  # of categories alone
        if self._has_categories:
            spread = measure_spread(weight[rows], count[rows], middle)
        self._work = Work(
            table.words,
            table.blocks,
            table.n_unordered,
            weight if (weight[rows] != 1.0).any() else np.empty(0),
            np.array([*masses, *spread]),
            rows.astype(np.uint32),
            np.empty(n_rows, dtype=np.uint32),
            np.empty((n_cells * self._n_places, n_blocks, 2, CELLS)),
            np.empty((2 * (n_rows // RUN_ROWS) + 2, n_blocks, CELLS)),
            np.zeros((n_cells, n_blocks, COLUMNS), dtype=np.bool_),
            np.zeros((n_leaves, N_LEAF_COLUMNS), dtype=np.int64),
            np.zeros((n_leaves, 2)),
            np.zeros((n_leaves, n_blocks + 1, 4)),
            np.zeros((n_leaves, 256), dtype=np.uint8),
            np.zeros((n_runs, N_RUN_COLUMNS), dtype=np.int64),
            np.zeros((n_runs, 2)),
            np.zeros((n_leaves, N_PAIR_COLUMNS), dtype=np.int64),
            np.zeros((n_leaves, N_SPLIT_COLUMNS), dtype=np.int64),
            np.zeros(n_leaves, dtype=np.uint8),
            np.zeros((n_cells, N_CELL_COLUMNS), dtype=np.int64),
            np.zeros((n_cells, 5)),
            np.zeros((n_cells, 2 * most_leaves - 1, N_NODE_COLUMNS), dtype=np.int64),
            np.zeros((n_cells, most_leaves, 2)),
            np.zeros(N_COUNTS, dtype=np.int64),
        )
        self._work.allowed.reshape(n_cells, -1)[:, : table.n_features] = True

    def divide(self, cells: Sequence[Rows]) -> list[Divided[Rows] | None]:
        """Find the best way to divide each cell; None where none gains. See `splitting.Division`."""
        divided: list[Divided[Rows] | None] = []
        for first in range(0, len(cells), self.n_cells):
            divided += self._divide(cells[first : first + self.n_cells])
        return divided

    def collect(self, trees: Sequence[CutTree]) -> CutRules:
        """Put cut trees into flat arrays."""
        return join(trees, self._table)

    def _divide(self, cells: Sequence[Rows]) -> list[Divided[Rows] | None]:
        self._grow(cells)
        self._run(SETTLE, len(cells))
        work = self._work
        gains, bounds = work.gains[: len(cells)].tolist(), work.cells[: len(cells)].tolist()
        divided: list[Divided[Rows] | None] = []
        for c, ((gain, *masses), cell) in enumerate(zip(gains, bounds, strict=True)):
            if gain == 0.0:
                divided.append(None)
                continue
            top, bottom = Rows(*cell[:3], *masses[:2]), Rows(*cell[3:6], *masses[2:])
            divided.append(
                Divided(top, bottom, self._cut_tree(c, cell[N_CUT_LEAVES], cell[N_MERGED]))
            )
        return divided

    def _cut_tree(self, cell: int, n_leaves: int, n_merged: int) -> CutTree:
        nodes = self._work.nodes[cell, : 2 * n_leaves - 1].copy()
        above = NO_CODES
        if self._has_categories:
            asked = nodes[:, ASKED]
            by_category = (asked >= 0) & self._table.bins.is_categorical[asked]
            above = self._work.above[nodes[by_category, MADE_BY]]
        masses = self._work.node_masses[cell]
        merged = masses[len(masses) - n_merged :].copy()
        return CutTree(nodes, masses[:n_leaves].copy(), above, merged)

    def _run(self, phase: int, n_pieces: int) -> None:
        self._team.run(leafgrowth.do_pieces, n_pieces, phase, self._shape.least_mass, self._work)

    def _grow(self, cells: Sequence[Rows]) -> None:
        """Grow the cut tree of each cell."""
        work, shape = self._work, self._shape
        self._start(cells)
        best_first = shape.max_leaves < 2**shape.max_depth
        limits = (len(cells) if best_first else 0, shape.max_depth, shape.least_mass)
        for _ in range(shape.max_leaves - 1 if best_first else shape.max_depth):
            self._run(ADD, leafgrowth.prepare(ADD, limits, work))
            self._run(FIND, int(work.counts[N_PAIRS]) * len(work.blocks))
            n_runs = leafgrowth.prepare(DIVIDE, limits, work)
            if n_runs == 0:
                break
            self._run(DIVIDE, n_runs)
            leafgrowth.prepare(GATHER, limits, work)
            self._run(GATHER, n_runs)
            leafgrowth.prepare(CHILDREN, limits, work)

    def _start(self, cells: Sequence[Rows]) -> None:
        """Make each cell the first leaf of its cut tree."""
        work, n = self._work, len(cells)
        if self._features is not None:
            self._features.draw(work.allowed[:n])
        numbers = np.arange(n)
        figures = np.array(cells)
        leaves = work.leaves[:n]
        leaves[:, START : STOP + 1] = figures[:, :3]
        leaves[:, PLACE] = numbers * self._n_places
        leaves[:, DEPTH] = 0
        leaves[:, CELL] = numbers
        leaves[:, OPEN] = 1
        work.masses[:n] = figures[:, 3:]
        work.found[:n, -1, 0] = -1.0
        work.cells[:n, LAST_PLACE] = numbers * self._n_places + 1
        work.pairs[:n, ADDED] = numbers
        work.pairs[:n, SIBLING] = -1
        work.counts[[N_LEAVES, N_SPLITS, N_PAIRS, N_NEW]] = n, 0, n, 0
