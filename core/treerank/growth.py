"""Growing a ranking tree: cells are divided level by level, or the one that gains most first.

What divides cells is a `Division`: LeafRank's own, or any `Splitter`, asked about one cell after the other.
"""

import heapq
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from core.ranker import Callback, Floats, StopFit

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
    rows : ndarray of shape (n_rows,), int64
        Its rows in the sample, ascending.
    positive, negative : float
        Mass of each class; both above 0, as a pure cell is never asked about.
    """

    rows: Integers
    positive: float
    negative: float


class Split(NamedTuple):
    """How to split a cell.

    Attributes
    ----------
    top : ndarray of shape (n_rows,), bool
        Which of the cell's rows go to the top child, that of the greater β/α.
    rule : Any
        What to ask of new rows: of the splitter's own making, for `Splitter.collect`.
    """

    top: Booleans
    rule: Any


class Splitter(Protocol):
    """A splitting rule, made for one sample.

    Growth keeps the books: it sums up masses, drops a split without gain or with a child too small,
    and orders nodes.
    """

    def split(self, cell: Cell) -> Split | None:
        """Split a cell so that Λ = α(C) β(C') - β(C) α(C') is as great as can be; None for no way."""

    def collect(self, rules: Sequence[Any]) -> Rules:
        """Put the rules of the splits that were taken, in the order of the nodes, into flat arrays."""


class Massive(Protocol):
    """Whatever a division knows of a cell: growth asks for its masses only."""

    @property
    def positive(self) -> float:
        """Mass of positives."""

    @property
    def negative(self) -> float:
        """Mass of negatives."""


C = TypeVar("C", bound=Massive)


class Divided(NamedTuple, Generic[C]):
    """A cell, divided.

    Attributes
    ----------
    top, bottom : cells
    rule : Any
        What it was divided by, for `Division.collect`.
    """

    top: C
    bottom: C
    rule: Any


class Division(Protocol[C]):
    """What growth stands on: cells of one sample, and a way to divide them."""

    root: C

    def divide(self, cells: Sequence[C]) -> list[Divided[C] | None]:
        """Divide cells, none of them pure, so that each gains most; None where there is no way."""

    def collect(self, rules: Sequence[Any]) -> Rules:
        """Put the rules that were taken, in the order of the nodes, into flat arrays."""


class RowDivision:
    """Divides cells by a `Splitter`, which is asked about one after the other."""

    def __init__(self, sample: Sample, splitter: Splitter) -> None:
        self._sample = sample
        self._splitter = splitter
        self.root = self._cell(np.arange(len(sample.positive)))

    def divide(self, cells: Sequence[Cell]) -> list[Divided[Cell] | None]:
        """Divide cells; see `Division`."""
        return [self._divide(cell) for cell in cells]

    def collect(self, rules: Sequence[Any]) -> Rules:
        """Put rules into flat arrays; see `Division`."""
        return self._splitter.collect(rules)

    def _divide(self, cell: Cell) -> Divided[Cell] | None:
        split = self._splitter.split(cell)
        if split is None:
            return None
        top, bottom = self._cell(cell.rows[split.top]), self._cell(cell.rows[~split.top])
        return Divided(top, bottom, split.rule)

    def _cell(self, rows: Integers) -> Cell:
        weight, positive = self._sample.weight[rows], self._sample.positive[rows]
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
class _Node(Generic[C]):
    """A node while the tree grows."""

    cell: C
    depth: int
    divided: Divided[C] | None = None  # how it may be split
    gain: float = 0.0  # Λ of that, in masses
    children: list["_Node[C]"] = field(default_factory=list)


class _Growth(Generic[C]):
    def __init__(self, division: Division[C], limits: Limits) -> None:
        self._division = division
        self._limits = limits
        self.root = _Node(division.root, 0)
        self.n_leaves = 1
        self.gain = 0.0  # Σ Λ, in masses

    def look(self, nodes: Sequence[_Node[C]]) -> list[_Node[C]]:
        """Find how nodes may be split; give those that may."""
        limits = self._limits
        asked = [
            node
            for node in nodes
            if node.depth < limits.max_depth
            and min(node.cell.positive, node.cell.negative) > 0.0
            and node.cell.positive + node.cell.negative >= 2.0 * limits.least_mass
        ]
        found = self._division.divide([node.cell for node in asked])
        for node, divided in zip(asked, found, strict=True):
            if divided is not None and self._gains(node, divided):
                node.divided = divided
        return [node for node in asked if node.divided is not None]

    def _gains(self, node: _Node[C], divided: Divided[C]) -> bool:
        whole, top, bottom = node.cell, divided.top, divided.bottom
        node.gain = whole.negative * top.positive - whole.positive * top.negative
        least = min(top.positive + top.negative, bottom.positive + bottom.negative)
        enough = least >= self._limits.least_mass and least > 0.0
        return enough and node.gain > TIE * whole.positive * whole.negative

    def split(self, node: _Node[C]) -> list[_Node[C]]:
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


def grow(division: Division[C], limits: Limits, callback: Callback) -> Tree:
    """Grow a ranking tree.

    Parameters
    ----------
    division : Division
    limits : Limits
    callback : callable (step, of, info) -> None
        Told the leaves and the training AUC after each level of max_depth, or after each split of
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


def _grow_by_level(growth: _Growth[C], max_depth: int, callback: Callback) -> None:
    nodes = [growth.root]
    for level in range(1, max_depth + 1):
        nodes = [child for node in growth.look(nodes) for child in growth.split(node)]
        if not nodes:
            break
        callback(level, max_depth, growth.report())
    if not nodes:
        callback(max_depth, max_depth, growth.report())


def _grow_best_first(growth: _Growth[C], max_leaves: int, callback: Callback) -> None:
    waiting: list[
        tuple[float, int, _Node[C]]
    ] = []  # a heap; the second figure is the order of finding
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


def _flatten(root: _Node[C], division: Division[C]) -> Tree:
    """Put the nodes in preorder."""
    nodes: list[_Node[C]] = []
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
        part = self.sample.take(rows)
        return grow(RowDivision(part, self.make(part)), limits, callback)
