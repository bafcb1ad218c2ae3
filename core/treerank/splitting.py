"""What growth asks of a splitting rule: given cells, which of their rows go to the top child, and why."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from core.ranker import Floats

from .tree import Booleans, Integers, Rules


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
