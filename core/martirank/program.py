"""The layered branching program: its nodes, its scores, and its state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from core.coding.category_sets import count_words, unpack
from core.errors import ArtifactError
from core.ranker import Floats
from core.state import Array, Index, Records, State, Totals, pieces
from core.table import Categories

from .node import NODE, RULES, check_nodes, describe_node
from .walking import Nodes, walk

Output = Literal["position", "vote"]

Integers = npt.NDArray[np.int64]
Count = TypeVar("Count", int, Integers)


def n_nodes(n_layers: Count) -> Count:
    """Nodes of a program: layer t has t of them."""
    return n_layers * (n_layers + 1) // 2


def layer(t: int) -> slice:
    """Where the nodes of layer t lie, counted from 0: it has t + 1."""
    return slice(n_nodes(t), n_nodes(t + 1))


@dataclass(frozen=True, eq=False)
class Program:
    """T layers of nodes; node (i, t), at position i of layer t, leads to (i, t+1) and (i+1, t+1).

    Attributes
    ----------
    n_layers : int
        T.
    nodes : structured ndarray of shape (T(T+1)/2,)
        Layer by layer, by position within each; see `node.NODE`.
    words : ndarray of shape (n_words,), uint64
        Sets of categories: bit c % 64 of word c // 64 tells whether category c lies above.
    """

    n_layers: int
    nodes: npt.NDArray[np.void]
    words: npt.NDArray[np.uint64]

    def __reduce__(self) -> tuple[type["Program"], tuple[Any, ...]]:
        return Program, (self.n_layers, self.nodes, self.words)  # not what is cached: see below

    @cached_property
    def _columns(self) -> Nodes:
        columns = [self.nodes[name].copy() for name in Nodes._fields[:-1]]
        for array in (*columns, words := self.words.copy()):
            array.flags.writeable = False  # shared by threads, and what the kernel was compiled for
        return Nodes._make([*columns, words])

    def score(self, X: Floats, output: Output) -> Floats:
        """Walk rows through the program, in expectation over its coins, unchecked.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous
        output : {"position", "vote"}
            E[j]/T, where j is the position after the last layer; or P(j >= T/2). A row that froze at
            position i of layer t (from 0) with label b, 0 or 1, counts as one that went on to
            i + (T - t) b; its vote is b.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            In [0, 1].

        Notes
        -----
        O(n_rows · T²).
        """
        scores = np.empty(len(X))
        walk(X, self._columns, self.n_layers, output == "vote", scores)
        return scores

    def describe(self, name: Callable[[int], str], categories: Categories) -> list[Any]:
        """Describe the nodes layer by layer, ready for JSON.

        Parameters
        ----------
        name : callable feature -> str
        categories : tuple, one entry per feature
            The names of a categorical feature's categories.
        """
        return [
            [
                {"position": position}
                | describe_node(node, self._condition(node, name, categories), self.n_layers - t)
                for position, node in enumerate(self.nodes[layer(t)])
            ]
            for t in range(self.n_layers)
        ]

    def _condition(
        self, node: npt.NDArray[np.void], name: Callable[[int], str], categories: Categories
    ) -> str | None:
        feature = int(node["feature"])
        if feature < 0:
            return None
        word, or_missing = int(node["word"]), " or missing" * bool(node["missing_above"])
        if word >= 0:
            known = categories[feature] or ()
            held = unpack(self.words, word, len(known))
            names = (category for category, is_held in zip(known, held, strict=True) if is_held)
            return f"{name(feature)} in {{{', '.join(names)}}}{or_missing}"
        if node["threshold"] == -np.inf:
            return f"{name(feature)} is known"
        return f"{name(feature)} > {node['threshold']:.10g}{or_missing}"


@dataclass(frozen=True, eq=False)
class Programs(State):
    """Programs one after the other, as they are kept.

    Attributes
    ----------
    n_layers, n_words : ndarray of shape (n_programs,), int64
    nodes : structured ndarray, `node.NODE`
    words : ndarray, uint64
        A node's `word` counts from its program's first.
    """

    n_categories: Integers
    n_layers: Annotated[
        Integers, Array("n_programs"), Index("n_rounds + 1"), Totals("n_nodes", n_nodes)
    ]
    n_words: Annotated[Integers, Array("n_programs"), Totals("n_all_words")]
    nodes: Annotated[npt.NDArray[np.void], Records(NODE, "n_nodes", **RULES)]
    words: Annotated[npt.NDArray[np.uint64], Array("n_all_words")]

    @classmethod
    def join(cls, programs: Sequence[Program], n_categories: Integers) -> "Programs":
        """Put programs one after the other."""
        return cls(
            n_categories,
            np.array([program.n_layers for program in programs]),
            np.array([len(program.words) for program in programs]),
            np.concatenate([program.nodes for program in programs]),
            np.concatenate([program.words for program in programs]),
        )

    def split(self) -> list[Program]:
        """Give each program."""
        nodes = pieces(self.nodes, n_nodes(self.n_layers))
        words = pieces(self.words, self.n_words)
        return [Program(*each) for each in zip(self.n_layers.tolist(), nodes, words, strict=True)]

    def check(self) -> None:
        """See that nodes make sense, and that sets are where features are categorical, and whole."""
        check_nodes(self.nodes)
        feature, word = self.nodes["feature"], self.nodes["word"]
        categories = np.where(feature >= 0, self.n_categories[feature], 0)
        sets = categories > 0
        if ((word >= 0) != sets).any():
            raise ArtifactError(
                "word must be that of a set where the feature is categorical, else -1"
            )
        room = np.repeat(self.n_words, n_nodes(self.n_layers))[sets] - count_words(categories[sets])
        if (word[sets] > room).any():
            raise ArtifactError("word must leave room for its set among its program's n_words")
        # 0 in an artifact of before sets had their number of categories there
        self.nodes["threshold"][sets] = categories[sets]
