"""Growing a ranking tree: cells are divided level by level, or the one that gains most first.

What divides cells is a `Division`: LeafRank's own, or any `Splitter`, asked about one cell after the other.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from core.base.ranker import Callback, Floats, StopFit

from .tree import Booleans, Integers, Rules, Tree

# Gains, in shares of P N, that differ by less than this are equal but for rounding.
TIE = 1e-11


class Sample(NamedTuple):
    """The rows that a tree is grown on.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        NaN is missing; a category is its position, 0 to n_categories - 1.
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.
    n_categories : ndarray of shape (n_features,), int64
        0 where the feature is numeric.
    """

    X: Floats
    positive: Booleans
    weight: Floats
    n_categories: Integers

    def take(self, rows: Integers) -> "Sample":
        """Give some of the rows."""
        return Sample(self.X[rows], self.positive[rows], self.weight[rows], self.n_categories)


class Cell(NamedTuple):
    """A node that may be split.

    Attributes
    ----------
    rows : Any
        Its rows, as whoever divides it knows them: of a `Splitter` numbers of rows of the sample, ascending.
    positive, negative : float
        Mass of each class.
    """

    rows: Any
    positive: float
    negative: float


class Divided(NamedTuple):
    """A cell, divided.

    Attributes
    ----------
    top, bottom : Cell
    rule : Any
        What it was divided by, for `Division.collect`.
    """

    top: Cell
    bottom: Cell
    rule: Any


class Division(Protocol):
    """What growth stands on: cells of one sample, and a way to divide them."""

    @property
    def root(self) -> Cell:
        """The cell of all rows."""

    def divide(self, cells: Sequence[Cell]) -> list[Divided | None]:
        """Divide cells, none of them pure, so that Λ = α(C) β(C') - β(C) α(C') is great; None for no way."""

    def collect(self, rules: Sequence[Any]) -> Rules:
        """Put the rules that were taken, in the order of the nodes, into flat arrays."""


class Split(NamedTuple):
    """How a splitting rule splits a cell.

    Attributes
    ----------
    top : ndarray of shape (n_rows,), bool
        Which of the cell's rows go to the top child, that of the greater β/α.
    rule : Any
        What to ask of new rows.
    """

    top: Booleans
    rule: Any


class Splitter(ABC):
    """Divides cells by a splitting rule, one cell after the other.

    Growth keeps the books: it drops a split without gain or with a child too small, and orders nodes.

    Parameters
    ----------
    sample : Sample
    """

    def __init__(self, sample: Sample) -> None:
        self.sample = sample

    @property
    def root(self) -> Cell:
        """See `Division`."""
        return self._cell(np.arange(len(self.sample.positive)))

    def divide(self, cells: Sequence[Cell]) -> list[Divided | None]:
        """Divide cells; see `Division`."""
        divided: list[Divided | None] = []
        for cell in cells:
            split = self.split(cell)
            if split is None:
                divided.append(None)
            else:
                top, bottom = self._cell(cell.rows[split.top]), self._cell(cell.rows[~split.top])
                divided.append(Divided(top, bottom, split.rule))
        return divided

    @abstractmethod
    def split(self, cell: Cell) -> Split | None:
        """Split a cell; None where there is no way."""

    @abstractmethod
    def collect(self, rules: Sequence[Any]) -> Rules:
        """Put rules into flat arrays; see `Division`."""

    def _cell(self, rows: Integers) -> Cell:
        weight, positive = self.sample.weight[rows], self.sample.positive[rows]
        return Cell(rows, float(weight[positive].sum()), float(weight[~positive].sum()))


class Limits(NamedTuple):
    """When to stop.

    Attributes
    ----------
    max_depth : int
    max_leaves : int or None
        None grows level by level; else the leaf that gains most is split first.
    least_mass : float
        Least mass of a leaf.
    """

    max_depth: int
    max_leaves: int | None
    least_mass: float


@dataclass(eq=False)
class _Node:
    """A node while the tree grows."""

    cell: Cell
    depth: int
    divided: Divided | None = None  # how it may be split
    gain: float = 0.0  # Λ of that, in masses
    children: list["_Node"] = field(default_factory=list)


class _Growth:
    def __init__(self, division: Division, limits: Limits) -> None:
        self._division = division
        self._limits = limits
        self.root = _Node(division.root, 0)
        self.n_leaves = 1
        self.gain = 0.0  # Σ Λ, in masses

    def look(self, nodes: Sequence[_Node]) -> list[_Node]:
        """Find how nodes may be split; give those that may."""
        limits = self._limits
        divisible = [
            node
            for node in nodes
            if node.depth < limits.max_depth
            and min(node.cell.positive, node.cell.negative) > 0.0
            and node.cell.positive + node.cell.negative >= 2.0 * limits.least_mass
        ]
        found = self._division.divide([node.cell for node in divisible])
        for node, divided in zip(divisible, found, strict=True):
            if divided is not None and self._gains(node, divided):
                node.divided = divided
        return [node for node in divisible if node.divided is not None]

    def _gains(self, node: _Node, divided: Divided) -> bool:
        whole, top, bottom = node.cell, divided.top, divided.bottom
        node.gain = whole.negative * top.positive - whole.positive * top.negative
        least = min(top.positive + top.negative, bottom.positive + bottom.negative)
        enough = least >= self._limits.least_mass and least > 0.0
        return enough and node.gain > TIE * whole.positive * whole.negative

    def split(self, node: _Node) -> list[_Node]:
        """Split a node; give its children."""
        assert node.divided is not None
        node.children = [
            _Node(cell, node.depth + 1) for cell in (node.divided.top, node.divided.bottom)
        ]
        self.n_leaves += 1
        self.gain += node.gain
        return node.children

    def report(self) -> dict[str, float]:
        """Give the number of leaves and the training AUC so far."""
        pairs = self.root.cell.positive * self.root.cell.negative
        return {"leaves": float(self.n_leaves), "training_auc": 0.5 + 0.5 * self.gain / pairs}


def grow(division: Division, limits: Limits, callback: Callback) -> Tree:
    """Grow a ranking tree.

    Parameters
    ----------
    division : Division
    limits : Limits
    callback : callable (step, of, info) -> None
        Gets the leaves and the training AUC after each level of max_depth, or after each split of
        max_leaves - 1; where growth ends early, the last one at once. StopFit ends growth, and the tree is
        what there is.

    Returns
    -------
    Tree

    Notes
    -----
    Nodes stay leaves where they are pure, where no split gains or leaves enough mass on both sides
    (Remark 4), and at the limits. Among equal gains the node found first is split first, and of
    siblings the top one.

    References
    ----------
    S. Clémençon, M. Depecker and N. Vayatis, "Adaptive partitioning schemes for bipartite ranking",
    Machine Learning 83, 2011: Fig. 2.
    """
    growth = _Growth(division, limits)
    with suppress(StopFit):
        if limits.max_leaves is None:
            _grow_by_level(growth, limits.max_depth, callback)
        else:
            _grow_best_first(growth, limits.max_leaves, callback)
    return _flatten(growth.root, division)


def _grow_by_level(growth: _Growth, max_depth: int, callback: Callback) -> None:
    nodes = [growth.root]
    for level in range(1, max_depth + 1):
        nodes = [child for node in growth.look(nodes) for child in growth.split(node)]
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
        for node in growth.look(new):
            heapq.heappush(waiting, (-node.gain, n_found, node))
            n_found += 1
        if not waiting:
            break
        new = growth.split(heapq.heappop(waiting)[2])
        callback(growth.n_leaves - 1, max_leaves - 1, growth.report())
    if growth.n_leaves < max_leaves:
        callback(max_leaves - 1, max_leaves - 1, growth.report())


def _flatten(root: _Node, division: Division) -> Tree:
    """Put the nodes in preorder."""
    nodes: list[_Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += reversed(node.children)
    leaves = [node.cell for node in nodes if not node.children]
    rules: list[Any] = [
        node.divided.rule for node in nodes if node.children and node.divided is not None
    ]
    return Tree(
        np.array([not node.children for node in nodes]),
        np.array([leaf.positive for leaf in leaves]),
        np.array([leaf.negative for leaf in leaves]),
        division.collect(rules),
    )


class Grower(Protocol):
    """Grows trees on parts of one sample."""

    def grow(self, rows: Integers, limits: Limits, callback: Callback) -> Tree:
        """Grow a tree on some rows of the sample, ascending."""


@dataclass(frozen=True)
class SplitterGrower:
    """Grows trees by a `Splitter`, made anew for each part of the rows."""

    sample: Sample
    make: Callable[[Sample], Splitter]

    def grow(self, rows: Integers, limits: Limits, callback: Callback) -> Tree:
        """Grow a tree; see `Grower`."""
        return grow(self.make(self.sample.take(rows)), limits, callback)
