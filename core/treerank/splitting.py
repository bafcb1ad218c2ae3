"""What growth asks of a splitting rule: given cells, which of their rows go to the top child, and why."""

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from core.ranker import Floats

from .preorder import Booleans, Integers
from .tree import Rules


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
    n_categories: npt.NDArray[np.int64]


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
