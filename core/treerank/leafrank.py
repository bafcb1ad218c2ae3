"""LeafRank: split a cell by a tree of axis cuts whose leaves are merged to two sides (Fig. 5)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from core.coding import N_CODES, Bins, fit_bins
from core.coding.by_row import CELLS, COLUMNS, by_row
from core.coding.categories import NO_SPREAD, count_rows, measure_spread, pack
from core.coding.team import Team
from core.ranker import Callback, Floats

from . import grower
from .cuts import CutRules
from .grower import (
    ADD,
    BLOCK,
    CELL,
    CHILDREN,
    COUNTS,
    CUT,
    DIVIDE,
    FIND,
    GATHER,
    LEAF,
    MERGE,
    NODE,
    PAIR,
    RUN,
    RUN_ROWS,
    SIDE,
    SPLIT,
    Work,
)
from .growth import Cell, Divided, Limits, Sample, grow
from .tree import Booleans, Integers, Tree

HISTOGRAM_BYTES = 1 << 23  # that cells looked at together may take: more would leave the cache


@dataclass(frozen=True)
class CodedTable:
    """A coded table.

    Attributes
    ----------
    bins : Bins
    words : ndarray of shape (n_blocks, n_words), uint64
        Codes row by row; see `core.coding.by_row`.
    order : ndarray of shape (n_rows,), int64
        Which row of the sample each is: positives first.
    n_positives : int
    blocks : ndarray of shape (n_blocks,), `grower.BLOCK`
        Of each block of 32 columns.
    n_unordered : ndarray of shape (n_blocks, 32), int64
        Of a categorical column its number of bins, else 0.
    n_categories : ndarray of shape (n_features,), int64
    """

    bins: Bins
    words: npt.NDArray[np.uint64]
    order: Integers
    n_positives: int
    blocks: npt.NDArray[np.void]
    n_unordered: Integers
    n_categories: Integers

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.order)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.bins.edges)


def code(sample: Sample, max_bins: int) -> CodedTable:
    """Code a table.

    Parameters
    ----------
    sample : Sample
    max_bins : int
        At most 255.

    Returns
    -------
    CodedTable

    Notes
    -----
    O(n_features · n_rows log n_rows).
    """
    order = np.concatenate([np.flatnonzero(sample.positive), np.flatnonzero(~sample.positive)])
    bins, codes = fit_bins(sample.X, order, sample.weight[order], max_bins, sample.n_categories)
    n_features = len(codes)
    n_blocks = -(-n_features // COLUMNS)
    n_bins = _pad(bins.n_bins, n_blocks)
    has_missing = _pad(bins.has_missing, n_blocks)
    blocks = np.empty(n_blocks, dtype=BLOCK)
    blocks["n_words"] = -(-np.clip(n_features - COLUMNS * np.arange(n_blocks), 0, COLUMNS) // 8)
    blocks["n_bins"], blocks["has_missing"] = n_bins.max(axis=1), has_missing.any(axis=1)
    return CodedTable(
        bins,
        by_row(codes),
        order,
        int(sample.positive.sum()),
        blocks,
        n_bins * _pad(bins.is_categorical, n_blocks),
        sample.n_categories,
    )


def _pad(of_features: npt.NDArray[np.int64] | Booleans, n_blocks: int) -> Integers:
    """Put a figure of each feature in blocks of 32, the last one filled up with 0."""
    padded = np.zeros(n_blocks * COLUMNS, dtype=np.int64)
    padded[: len(of_features)] = of_features
    return padded.reshape(n_blocks, COLUMNS)


NO_CODES = np.empty((0, N_CODES), dtype=np.uint8)


class CutTree(NamedTuple):
    """A cell's cut tree as it was grown.

    Attributes
    ----------
    nodes : ndarray of int64
        In preorder, each the numbers of a `grower.NODE`.
    masses : ndarray of shape (n_leaves, 2), float64
        Positive and negative.
    above : ndarray of shape (n_categorical, 256), uint8
        Which codes lie above the cuts of categorical features, in the order of the nodes.
    merged : ndarray of shape (n_merged, 2), float64
        Feature and gain, in masses, of each cut that is no part of the tree, as both its leaves went to one side.
    """

    nodes: Integers
    masses: Floats
    above: npt.NDArray[np.uint8]
    merged: Floats


NO_CUT_TREE = CutTree(np.empty(0, dtype=np.int64), np.empty((0, 2)), NO_CODES, np.empty((0, 2)))


def join(trees: Sequence[CutTree], table: CodedTable) -> CutRules:
    """Put cut trees into flat arrays; codes become values and categories."""
    numbers, masses, above, merged = map(np.concatenate, zip(NO_CUT_TREE, *trees, strict=True))
    nodes = numbers.view(NODE)
    feature, is_leaf = nodes["feature"].copy(), nodes["feature"] < 0
    by_category = ~is_leaf & table.bins.is_categorical[feature]
    sets = _sets(nodes[by_category], above, table)
    n_words = np.zeros(len(nodes), dtype=np.int64)
    n_words[by_category] = [len(words) for words in sets]
    threshold = _thresholds(nodes, is_leaf | by_category, table)
    threshold[by_category] = table.n_categories[feature[by_category]]
    n_merged = np.array([len(tree.merged) for tree in trees], dtype=np.int64)
    return CutRules(
        n_categories=table.n_categories,
        n_leaves=np.array([len(tree.masses) for tree in trees], dtype=np.int64),
        feature=feature,
        threshold=threshold,
        missing_above=nodes["missing_above"] != 0,
        speaks_of_missing=~is_leaf & table.bins.has_missing[feature],
        n_words=n_words,
        to_top=nodes["to_top"] != 0,
        leaf_positive=masses[:, 0].copy(),
        leaf_negative=masses[:, 1].copy(),
        words=np.concatenate([np.empty(0, dtype=np.uint64), *sets]),
        merged_rule=np.repeat(np.arange(len(trees)), n_merged),
        merged_feature=merged[:, 0].astype(np.int64),
        merged_gain=merged[:, 1].copy(),
    )


def _thresholds(
    nodes: npt.NDArray[np.void], has_none: npt.NDArray[np.bool_], table: CodedTable
) -> Floats:
    """Give the edge at each cut; a cut below all bins sets the missing apart."""
    edges = table.bins.edges
    first = np.cumsum([0, *(len(of_feature) for of_feature in edges)])
    threshold = np.zeros(len(nodes))
    at = ~has_none & (nodes["cut"] >= 0)
    threshold[at] = np.concatenate(edges)[first[nodes["feature"][at]] + nodes["cut"][at]]
    threshold[~has_none & (nodes["cut"] < 0)] = -np.inf
    return threshold


def _sets(
    nodes: npt.NDArray[np.void], above: npt.NDArray[np.uint8], table: CodedTable
) -> list[npt.NDArray[np.uint64]]:
    """Give the words of the set of each cut by category; one that no row has goes with the missing."""
    sets = []
    for node, codes in zip(nodes, above, strict=True):
        bins = table.bins.category_bins[node["feature"]]
        assert bins is not None  # these nodes' features are categorical
        held = np.where(bins >= 0, codes[bins], node["missing_above"]) != 0
        sets.append(pack(held))
    return sets


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

    @classmethod
    def of(
        cls, depth: int, max_leaves: int | None, min_samples_leaf: float, sample: Sample
    ) -> "Shape":
        """Take the parameters: weights of a mean below 1 count no rows."""
        most = 2**depth
        least_mass = min_samples_leaf * min(float(sample.weight.mean()), 1.0)
        return cls(depth, min(max_leaves or most, most), least_mass)


@dataclass(frozen=True)
class FeatureDraw:
    """Draws the features that a cell may ask, n_drawn of n_features."""

    n_features: int
    n_drawn: int
    generator: np.random.Generator

    def draw(self, allowed: Booleans) -> None:
        """Write which columns each cell draws; `allowed` is of shape (n_cells, n_blocks, 32)."""
        every = np.tile(np.arange(self.n_features), (len(allowed), 1))
        drawn = self.generator.permuted(every, axis=1)[:, : self.n_drawn]
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
        self.root = Cell((0, middle, n_rows), *masses)
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
            np.zeros(n_leaves, dtype=LEAF),
            np.zeros((n_leaves, n_blocks), dtype=CUT),
            np.zeros((n_leaves, 256), dtype=np.uint8),
            np.zeros(n_runs, dtype=RUN),
            np.zeros(n_leaves, dtype=PAIR),
            np.zeros(n_leaves, dtype=SPLIT),
            np.zeros(n_cells, dtype=CELL),
            np.zeros((n_cells, 2), dtype=SIDE),
            np.zeros((n_cells, 2 * most_leaves - 1), dtype=NODE),
            np.zeros((n_cells, most_leaves, 2)),
            np.zeros(1, dtype=COUNTS),
        )
        self._work.allowed.reshape(n_cells, -1)[:, : table.n_features] = True

    def divide(self, cells: Sequence[Cell]) -> list[Divided | None]:
        """Find the best way to divide each cell; None where none gains. See `growth.Division`."""
        divided: list[Divided | None] = []
        for first in range(0, len(cells), self.n_cells):
            divided += self._divide(cells[first : first + self.n_cells])
        return divided

    def collect(self, trees: Sequence[CutTree]) -> CutRules:
        """Put cut trees into flat arrays."""
        return join(trees, self._table)

    def _divide(self, cells: Sequence[Cell]) -> list[Divided | None]:
        self._grow(cells)
        self._run(MERGE, len(cells))
        work, n = self._work, len(cells)
        found = [work.cells[name][:n].tolist() for name in ("gain", "n_leaves", "n_merged")]
        divided: list[Divided | None] = [None] * n
        sides = work.sides[:n].tolist()
        for c, (gain, n_leaves, n_merged, two) in enumerate(zip(*found, sides, strict=True)):
            if gain != 0.0:
                top, bottom = (Cell(side[:3], side[3], side[4]) for side in two)
                divided[c] = Divided(top, bottom, self._cut_tree(c, n_leaves, n_merged))
        return divided

    def _cut_tree(self, c: int, n_leaves: int, n_merged: int) -> CutTree:
        nodes = self._work.nodes[c, : 2 * n_leaves - 1].copy()
        above = NO_CODES
        if self._has_categories:
            feature = nodes["feature"]
            by_category = (feature >= 0) & self._table.bins.is_categorical[feature]
            above = self._work.above[nodes["split"][by_category]]
        masses = self._work.node_masses[c]
        merged = masses[len(masses) - n_merged :].copy()
        return CutTree(nodes.view(np.int64), masses[:n_leaves].copy(), above, merged)

    def _run(self, phase: int, n_pieces: int) -> None:
        self._team.run(grower.do_pieces, n_pieces, phase, self._shape.least_mass, self._work)

    def _grow(self, cells: Sequence[Cell]) -> None:
        """Grow the cut tree of each cell."""
        work, shape = self._work, self._shape
        self._start(cells)
        best_first = shape.max_leaves < 2**shape.max_depth
        limits = (len(cells) if best_first else 0, shape.max_depth, shape.least_mass)
        for _ in range(shape.max_leaves - 1 if best_first else shape.max_depth):
            self._run(ADD, grower.prepare(ADD, limits, work))
            self._run(FIND, int(work.counts[0]["n_pairs"]) * len(work.blocks))
            n_runs = grower.prepare(DIVIDE, limits, work)
            if n_runs == 0:
                break
            self._run(DIVIDE, n_runs)
            grower.prepare(GATHER, limits, work)
            self._run(GATHER, n_runs)
            grower.prepare(CHILDREN, limits, work)

    def _start(self, cells: Sequence[Cell]) -> None:
        """Make each cell the first leaf of its cut tree."""
        work, n = self._work, len(cells)
        if self._features is not None:
            self._features.draw(work.allowed[:n])
        leaves, pairs, numbers = work.leaves[:n], work.pairs[:n], np.arange(n)
        leaves["start"], leaves["middle"], leaves["stop"] = np.array([c.rows for c in cells]).T
        leaves["positive"] = [cell.positive for cell in cells]
        leaves["negative"] = [cell.negative for cell in cells]
        leaves["place"], leaves["cell"] = numbers * self._n_places, numbers
        leaves["depth"], leaves["is_open"], leaves["gain"] = 0, 1, -1.0
        work.cells["n_places"][:n] = numbers * self._n_places + 1
        pairs["added"], pairs["sibling"] = numbers, -1
        work.counts[0] = (n, 0, n, 0)


@dataclass(frozen=True)
class CutGrower:
    """Grows trees by cuts along the axes, on one coded table.

    Attributes
    ----------
    table : CodedTable
    weight, count : ndarray of shape (n_rows,), float64
        See `LeafRank`.
    shape : Shape
    """

    table: CodedTable
    weight: Floats
    count: Floats
    shape: Shape

    @classmethod
    def of(cls, sample: Sample, max_bins: int, shape: Shape) -> Self:
        """Code a sample."""
        table = code(sample, max_bins)
        weight = sample.weight[table.order]
        return cls(table, weight, count_rows(weight), shape)

    def with_leaves(self, most: int) -> Self:
        """Give a grower on the same table whose cut trees have no more leaves."""
        return replace(self, shape=self.shape._replace(max_leaves=most))

    def sizes(self) -> list[int]:
        """List numbers of leaves worth trying, each about half as many again."""
        most = self.shape.max_leaves
        return sorted(
            {most, *(n for n in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128) if n < most)}
        )

    def grow(self, rows: Integers, limits: Limits, callback: Callback) -> Tree:
        """Grow a tree; see `Grower`."""
        team = Team(len(rows) * self.table.n_features)
        taken = np.zeros(self.table.n_rows, dtype=np.bool_)
        taken[rows] = True
        places = np.flatnonzero(taken[self.table.order])
        division = LeafRank(self.table, places, self.weight, self.count, self.shape, team)
        return grow(division, limits, callback)
