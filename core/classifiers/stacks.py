"""Fitted classifiers as flat arrays: several of one kind, one after the other. In these they score and are stored."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.errors import ArtifactError
from core.ranker import Floats
from core.state import FINITE, NOT_NAN, Array, Index, Records, State, Totals

Integers = npt.NDArray[np.int64]

# What a scale is at least: half of less would be rounded.
LEAST_SCALE = float(np.finfo(np.float64).tiny)

TERMS_SHOWN = 20

# All trees of a forest predict so many rows at once.
BLOCK_ROWS = 4096


def expand(X: Floats, n_categories: Integers) -> Floats:
    """Turn each categorical column into columns of 0 and 1, one per category; missing is 0 in all.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        NaN is missing, and stays so in numeric columns; a category is its position.
    n_categories : ndarray of shape (n_features,), int64
        0 where the feature is numeric.

    Returns
    -------
    ndarray of shape (n_rows, n_columns), float64
        X itself where no feature is categorical.
    """
    if not n_categories.any():
        return X
    columns = []
    for column, count in zip(X.T, n_categories.tolist(), strict=True):
        if count:
            columns.append(column[:, np.newaxis] == np.arange(count))
        else:
            columns.append(column[:, np.newaxis])
    return np.concatenate(columns, axis=1, dtype=np.float64)


def count_columns(n_categories: Integers) -> int:
    """Give the number of columns that `expand` makes."""
    return int(np.maximum(n_categories, 1).sum())


class Stack(State, ABC):
    """Classifiers of one kind, each asked for by its number; its arrays are named after its format.

    Attributes
    ----------
    n_categories : ndarray of shape (n_features,), int64
        0 where a feature is numeric.
    """

    format: ClassVar[str]
    """How the arrays' names begin: "linear", "forest"."""

    n_categories: Integers

    @abstractmethod
    def __len__(self) -> int:
        """Number of classifiers."""

    @abstractmethod
    def score(self, number: int, X: Floats) -> Floats:
        """Score rows by one classifier: above 0 is its positive class.

        Parameters
        ----------
        number : int
        X : ndarray of shape (n_rows, n_features), float64
            NaN is missing; a category is its position.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            A row's score does not depend on the rows beside it.
        """

    @abstractmethod
    def take(self, numbers: Integers) -> Self:
        """Give some of the classifiers, in the order asked for."""

    @classmethod
    @abstractmethod
    def join(cls, stacks: Sequence["Stack"], n_categories: Integers) -> "Stack":
        """Put the classifiers of several stacks of this kind one after the other."""

    @abstractmethod
    def describe(self, number: int, name: Callable[[int], str]) -> dict[str, Any]:
        """Describe a classifier for JSON; `name` gives a column's name, as `expand` orders them."""

    @classmethod
    def read(
        cls, arrays: Mapping[str, npt.NDArray[Any]], n_classifiers: int, n_categories: Integers
    ) -> Self:
        """Read so many classifiers; see `State.from_arrays`."""
        known = {
            "n_classifiers": n_classifiers,
            "n_categories": n_categories,
            "n_columns": count_columns(n_categories),
        }
        return cls.from_arrays(arrays, known)


def _by_column(name: str) -> Array:
    return Array("n_classifiers", "n_columns", name=f"linear_{name}")


@dataclass(frozen=True)
class LinearStack(Stack):
    """intercept + Σ coef · (x - center) / scale; a missing x is at its center.

    Attributes
    ----------
    n_categories : ndarray of shape (n_features,), int64
    coef, center, scale : ndarray of shape (n_classifiers, n_columns), float64
        By column of `expand`; scale is at least `LEAST_SCALE`.
    intercept : ndarray of shape (n_classifiers,), float64
    """

    format: ClassVar[str] = "linear"

    n_categories: Integers
    coef: Annotated[Floats, _by_column("coef"), FINITE]
    center: Annotated[Floats, _by_column("center"), FINITE]
    scale: Annotated[Floats, _by_column("scale"), FINITE, Ge(LEAST_SCALE)]
    intercept: Annotated[Floats, Array("n_classifiers", name="linear_intercept"), FINITE]

    def __len__(self) -> int:
        """Number of classifiers."""
        return len(self.intercept)

    def score(self, number: int, X: Floats) -> Floats:
        """Score rows; see `Stack.score`."""
        from core.linear.design import standardise

        columns = expand(X, self.n_categories)
        scores = np.full(len(X), self.intercept[number])
        coef, center, scale = self.coef[number], self.center[number], self.scale[number]
        # Column by column: BLAS adds in an order that depends on its threads and the number of rows.
        for j in np.flatnonzero(coef):
            deviation = standardise(columns[:, j], center[j], scale[j])
            deviation[np.isnan(deviation)] = 0.0
            scores += coef[j] * deviation
        return scores

    def take(self, numbers: Integers) -> Self:
        """Give some of the classifiers."""
        parts = (self.coef, self.center, self.scale, self.intercept)
        return type(self)(self.n_categories, *(part[numbers] for part in parts))

    @classmethod
    def join(cls, stacks: Sequence[Stack], n_categories: Integers) -> "LinearStack":
        """Put several stacks one after the other."""
        none = np.empty((0, count_columns(n_categories)))
        own = [stack for stack in stacks if isinstance(stack, cls)]
        return cls(
            n_categories,
            np.concatenate([none, *(stack.coef for stack in own)]),
            np.concatenate([none, *(stack.center for stack in own)]),
            np.concatenate([none, *(stack.scale for stack in own)]),
            np.concatenate([none[:, 0], *(stack.intercept for stack in own)]),
        )

    def describe(self, number: int, name: Callable[[int], str]) -> dict[str, Any]:
        """Name the greatest terms, by coefficient on the standardised column."""
        coef = self.coef[number]
        greatest = np.argsort(-np.abs(coef), kind="stable")[:TERMS_SHOWN].tolist()
        terms = [(name(j), float(coef[j])) for j in greatest if coef[j]]
        words = "".join(f" {value:+.4g}·{term}" for term, value in terms)
        more = " + …" if np.count_nonzero(coef) > TERMS_SHOWN else ""
        return {
            "words": f"{self.intercept[number]:.4g}{words}{more} > 0 (columns standardised)",
            "intercept": float(self.intercept[number]),
            "coefficients": dict(terms),
        }


NODE = np.dtype(
    [
        ("column", np.int64),
        ("threshold", np.float64),
        ("missing_first", np.bool_),
        ("second", np.int64),
        ("value", np.float64),
    ]
)
"""A node of a tree: a row goes to the next node if column <= threshold, or is missing and
missing_first; else `second` nodes further on. column is -1 at a leaf, whose value, from -½ to ½, is
the share of positives less ½."""


@dataclass(frozen=True)
class ForestStack(Stack):
    """The mean of many trees' values.

    Attributes
    ----------
    n_categories : ndarray of shape (n_features,), int64
    n_trees : ndarray of shape (n_classifiers,), int64
        How many trees each classifier has.
    n_nodes : ndarray of shape (n_trees.sum(),), int64
        How many nodes each tree has.
    nodes : structured ndarray of shape (n_nodes.sum(),), `NODE`
    """

    format: ClassVar[str] = "forest"

    n_categories: Integers
    n_trees: Annotated[
        Integers, Array("n_classifiers", name="forest_n_trees"), Ge(1), Totals("n_all_trees")
    ]
    n_nodes: Annotated[
        Integers, Array("n_all_trees", name="forest_n_nodes"), Ge(1), Totals("n_all_nodes")
    ]
    nodes: Annotated[
        npt.NDArray[np.void],
        Records(
            NODE,
            "n_all_nodes",
            "forest_",
            column=Index("n_columns", least=-1),
            threshold=NOT_NAN,
            value=(Ge(-0.5), Le(0.5)),
        ),
    ]

    @cached_property
    def _first_tree(self) -> Integers:
        return np.concatenate([[0], np.cumsum(self.n_trees)])

    @cached_property
    def _root(self) -> Integers:
        return np.concatenate([[0], np.cumsum(self.n_nodes)])

    def __len__(self) -> int:
        """Number of classifiers."""
        return len(self.n_trees)

    def score(self, number: int, X: Floats) -> Floats:
        """Score rows; see `Stack.score`."""
        columns = expand(X, self.n_categories)
        scores = np.empty(len(X))
        for start in range(0, len(X), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            scores[block] = self._predict(number, columns[block])
        return scores

    def _predict(self, number: int, columns: Floats) -> Floats:
        """Give all rows' mean value over the trees of a forest: all rows go down all trees, level by level."""
        nodes = self.nodes
        trees = slice(self._first_tree[number], self._first_tree[number + 1])
        at = np.tile(self._root[trees], (len(columns), 1))
        row = np.arange(len(columns))[:, np.newaxis]
        while (column := nodes["column"][at]).max(initial=-1) >= 0:
            values = columns[row, np.maximum(column, 0)]
            first = np.where(
                np.isnan(values), nodes["missing_first"][at], values <= nodes["threshold"][at]
            )
            at += np.where(column < 0, 0, np.where(first, 1, nodes["second"][at]))
        means: Floats = nodes["value"][at].mean(axis=1)
        return means

    def take(self, numbers: Integers) -> Self:
        """Give some of the classifiers."""
        trees = _pieces(np.arange(len(self.n_nodes)), self._first_tree, numbers)
        return type(self)(
            self.n_categories,
            self.n_trees[numbers],
            self.n_nodes[trees],
            _pieces(self.nodes, self._root, trees),
        )

    @classmethod
    def join(cls, stacks: Sequence[Stack], n_categories: Integers) -> "ForestStack":
        """Put several stacks one after the other."""
        none = np.empty(0, dtype=np.int64)
        own = [stack for stack in stacks if isinstance(stack, cls)]
        return cls(
            n_categories,
            np.concatenate([none, *(stack.n_trees for stack in own)]),
            np.concatenate([none, *(stack.n_nodes for stack in own)]),
            np.concatenate([np.empty(0, dtype=NODE), *(stack.nodes for stack in own)]),
        )

    def describe(self, number: int, name: Callable[[int], str]) -> dict[str, Any]:
        """Name the columns that the trees ask about, the most frequent first."""
        trees = slice(self._first_tree[number], self._first_tree[number + 1])
        ends = self._root[trees.start], self._root[trees.stop]
        column = self.nodes["column"][ends[0] : ends[1]]
        asked, times = np.unique(column[column >= 0], return_counts=True)
        order = np.argsort(-times, kind="stable")
        uses = {name(int(asked[i])): int(times[i]) for i in order}
        shown = ", ".join(list(uses)[:5]) or "nothing"
        n_trees = int(self.n_trees[number])
        return {
            "words": f"{n_trees} trees say so by majority, asking most about {shown}",
            "trees": n_trees,
            "splits": uses,
        }

    def check(self) -> None:
        """See that every path ends at a leaf of its tree."""
        end = np.repeat(np.cumsum(self.n_nodes), self.n_nodes)
        inside = self.nodes["column"] >= 0
        left = end - np.arange(len(self.nodes))  # nodes from here to the end of the tree
        # Both ways lead on, and stay in the tree: so its last node must be a leaf.
        second = self.nodes["second"][inside]
        if not ((second >= 2) & (second < left[inside])).all():
            raise ArtifactError(
                "forest_second must lead to a later node of the tree, after the next"
            )


def _pieces(array: npt.NDArray[Any], start: Integers, numbers: Integers) -> npt.NDArray[Any]:
    """Put together some of the pieces that an array is cut into at `start`."""
    pieces = [array[start[number] : start[number + 1]] for number in numbers.tolist()]
    return np.concatenate([array[:0], *pieces])
