"""Growing a ranking tree from a splitter of nodes, level by level or best gain first.

A `CellSplitter` finds the splits: `leafrank.LeafRank`, of many cells at a time, or any `Splitter`, of one cell at a
time.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from core.base.ranker import Callback, Floats, StopFit
from core.base.training import TrainingData
from core.coding.stored import StoredCodes

from .tree import Booleans, Integers, RankingTree, Rules

# Least gain Λ that counts as one, as a fraction of P N (the masses of both classes): less is rounding.
EPS_GAIN = 1e-11


@dataclass(frozen=True, eq=False)
class TreeRows(TrainingData):
    """The training rows on which a ranking tree is grown."""

    stored: StoredCodes | None = None
    """The codes of X if it is a `ColumnTable`."""

    def find_leaves(self, find: Callable[[Floats], Integers]) -> Integers:
        """Return the leaf of each row, found by `find`; column-wise tables are passed as equivalent stand-in values."""
        if self.stored is None:
            return find(np.ascontiguousarray(self.X))
        return self.stored.stand_ins(self.X).apply(find)


class Cell(NamedTuple):
    """The training rows of a node that may be split, with their class weights."""

    rows: Any
    """Its rows, in the form of its `CellSplitter`; of a `Splitter` an ascending array of row indices."""
    positive: float
    negative: float
    """Mass of each class."""


class CellSplit(NamedTuple):
    """A split of a node's rows (cell) into a top and a bottom cell, with its rule."""

    top: Cell
    bottom: Cell
    rule: Any
    """Which rows go to the top, in the form that `CellSplitter.collect` takes."""


class CellSplitter(Protocol):
    """Interface of a splitter: it finds splits of cells (row sets of tree nodes) of one training sample."""

    @property
    def root(self) -> Cell:
        """The cell with all rows."""

    def split_cells(self, cells: Sequence[Cell]) -> list[CellSplit | None]:
        """Return a split with a large gain Λ = α(C) β(C') - β(C) α(C') for each cell; None where there is none.

        Each of the cells has rows of both classes.
        """

    def collect(self, rules: Sequence[Any]) -> Rules:
        """Return the split rules of a tree's inner nodes, in preorder, as flat arrays."""


class CellDivision(NamedTuple):
    """The result of `Splitter.split`: which rows of a cell go to the top, and the rule."""

    top: Booleans
    """Which of the cell's rows go to the top child, that of the greater β/α. Shape (n_rows,)."""
    rule: Any
    """The same for new rows, in the form that `Splitter.collect` takes."""


class Splitter(ABC):
    """Base class of splitters that split one cell at a time."""

    def __init__(self, sample: TreeRows) -> None:
        self.sample = sample

    @property
    def root(self) -> Cell:
        return self._cell(np.arange(len(self.sample.positive)))

    def split_cells(self, cells: Sequence[Cell]) -> list[CellSplit | None]:
        splits: list[CellSplit | None] = []
        for cell in cells:
            split = self.split(cell)
            if split is None:
                splits.append(None)
            else:
                top, bottom = self._cell(cell.rows[split.top]), self._cell(cell.rows[~split.top])
                splits.append(CellSplit(top, bottom, split.rule))
        return splits

    @abstractmethod
    def split(self, cell: Cell) -> CellDivision | None:
        """Return a split of a cell; None where there is none."""

    @abstractmethod
    def collect(self, rules: Sequence[Any]) -> Rules:
        """Return the split rules as flat arrays; see `CellSplitter.collect`."""

    def _cell(self, rows: Integers) -> Cell:
        weight, positive = self.sample.weight[rows], self.sample.positive[rows]
        return Cell(rows, float(weight[positive].sum()), float(weight[~positive].sum()))


class TreeLimits(NamedTuple):
    """The size limits of a ranking tree."""

    max_depth: int
    max_leaves: int | None
    """None: grow level by level. Else the leaf that gains most is split first."""
    min_mass: float
    """Smallest mass (sum of sample weight) of a leaf."""


@dataclass(eq=False)
class _Node:
    cell: Cell
    depth: int
    split: CellSplit | None = None  # the best one; None if there is none or it is not allowed
    gain: float = 0.0  # Λ of that split, in masses
    children: list["_Node"] = field(default_factory=list)


class _Growth:
    def __init__(self, splitter: CellSplitter, limits: TreeLimits) -> None:
        self._splitter = splitter
        self._limits = limits
        self.root = _Node(splitter.root, 0)
        self.n_leaves = 1
        self.gain = 0.0  # Σ Λ, in masses

    def find_splits(self, nodes: Sequence[_Node]) -> list[_Node]:
        """Find the best split of each node; return the nodes that have one."""
        limits = self._limits
        candidates = [
            node
            for node in nodes
            if node.depth < limits.max_depth
            and min(node.cell.positive, node.cell.negative) > 0.0
            and node.cell.positive + node.cell.negative >= 2.0 * limits.min_mass
        ]
        splits = self._splitter.split_cells([node.cell for node in candidates])
        for node, split in zip(candidates, splits, strict=True):
            if split is not None and self._gains(node, split):
                node.split = split
        return [node for node in candidates if node.split is not None]

    def _gains(self, node: _Node, split: CellSplit) -> bool:
        """Set a node's gain for a split, and return whether it is positive and both children are large enough."""
        whole, top, bottom = node.cell, split.top, split.bottom
        node.gain = whole.negative * top.positive - whole.positive * top.negative
        smaller = min(top.positive + top.negative, bottom.positive + bottom.negative)
        is_large = smaller >= self._limits.min_mass and smaller > 0.0
        return is_large and node.gain > EPS_GAIN * whole.positive * whole.negative

    def split(self, node: _Node) -> list[_Node]:
        assert node.split is not None
        node.children = [
            _Node(cell, node.depth + 1) for cell in (node.split.top, node.split.bottom)
        ]
        self.n_leaves += 1
        self.gain += node.gain
        return node.children

    def report(self) -> dict[str, float]:
        pairs = self.root.cell.positive * self.root.cell.negative
        return {"leaves": float(self.n_leaves), "training_auc": 0.5 + 0.5 * self.gain / pairs}


def grow(splitter: CellSplitter, limits: TreeLimits, callback: Callback) -> RankingTree:
    """Grow a ranking tree.

    callback: callable (step, of, info) -> None; called with the number of leaves and the training AUC: after each of
        max_depth levels, or after each of max_leaves - 1 splits. Where growth ends early, the last step is reported at
        once. StopFit ends growth, and the tree that there is is returned.

    A node stays a leaf if all its rows are of one class, if no split gains and leaves enough mass on both sides
    (Clémençon, Depecker & Vayatis 2011, Fig. 2, Remark 4), or at the limits. Of nodes of equal gain the one found first
    is split first, and of siblings the top one.
    """
    growth = _Growth(splitter, limits)
    with suppress(StopFit):
        if limits.max_leaves is None:
            _grow_by_level(growth, limits.max_depth, callback)
        else:
            _grow_best_first(growth, limits.max_leaves, callback)
    return _flatten(growth.root, splitter)


def _grow_by_level(growth: _Growth, max_depth: int, callback: Callback) -> None:
    nodes = [growth.root]
    for level in range(1, max_depth + 1):
        nodes = [child for node in growth.find_splits(nodes) for child in growth.split(node)]
        if not nodes:
            break
        callback(level, max_depth, growth.report())
    if not nodes:
        callback(max_depth, max_depth, growth.report())


def _grow_best_first(growth: _Growth, max_leaves: int, callback: Callback) -> None:
    # a heap, in which the second figure is the order of finding
    waiting: list[tuple[float, int, _Node]] = []
    new = [growth.root]
    n_found = 0
    while growth.n_leaves < max_leaves:
        for node in growth.find_splits(new):
            heapq.heappush(waiting, (-node.gain, n_found, node))
            n_found += 1
        if not waiting:
            break
        new = growth.split(heapq.heappop(waiting)[2])
        callback(growth.n_leaves - 1, max_leaves - 1, growth.report())
    if growth.n_leaves < max_leaves:
        callback(max_leaves - 1, max_leaves - 1, growth.report())


def _flatten(root: _Node, splitter: CellSplitter) -> RankingTree:
    nodes: list[_Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += reversed(node.children)
    leaves = [node.cell for node in nodes if not node.children]
    rules: list[Any] = [
        node.split.rule for node in nodes if node.children and node.split is not None
    ]
    return RankingTree(
        np.array([not node.children for node in nodes]),
        np.array([leaf.positive for leaf in leaves]),
        np.array([leaf.negative for leaf in leaves]),
        splitter.collect(rules),
    )


class RankingTreeGrower(Protocol):
    """Interface of a grower: it grows ranking trees on subsets of the rows of one sample."""

    def grow(self, rows: Integers, limits: TreeLimits, callback: Callback) -> RankingTree:
        """Return a ranking tree grown on some rows of the sample, given by ascending indices."""


@dataclass(frozen=True)
class SplitterGrower:
    """Grows ranking trees with a `Splitter`, created anew for each subset of the rows."""

    sample: TreeRows
    make: Callable[[TreeRows], Splitter]

    def grow(self, rows: Integers, limits: TreeLimits, callback: Callback) -> RankingTree:
        return grow(self.make(self.sample.take(rows)), limits, callback)
