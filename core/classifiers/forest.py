"""Forests as arrays: trees in preorder, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.errors import ArtifactError
from core.ranker import Floats
from core.state import NOT_NAN, Array, Index, Records, Totals

from .design import Integers, expand
from .stack import Stack

# All trees of a forest walk so many rows down at once.
BLOCK_ROWS = 4096

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
            scores[block] = self._walk(number, columns[block])
        return scores

    def _walk(self, number: int, columns: Floats) -> Floats:
        """Let all rows walk down all trees of a forest, step by step."""
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
        """See that every walk ends at a leaf of its tree."""
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
