"""The layered branching program: its nodes, its scores, and its state."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.coding.category_sets import unpack
from core.errors import ArtifactError
from core.ranker import Arrays, Floats
from core.table import Categories

from .node import NODE, check_nodes, describe_node
from .walking import Nodes, walk

Output = Literal["position", "vote"]

MOST_WORDS = 1 << 24  # far more than any fit makes; so that sums of counts stay integers


def n_nodes(n_layers: int) -> int:
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


def arrays_of(programs: Sequence[Program]) -> Arrays:
    """Give the state of programs, one after the other."""
    nodes = np.concatenate([program.nodes for program in programs])
    return {name: nodes[name].copy() for name in NODE.names or ()} | {
        "n_layers": np.array([program.n_layers for program in programs], dtype=np.int64),
        "n_words": np.array([len(program.words) for program in programs], dtype=np.int64),
        "words": np.concatenate([program.words for program in programs]),
    }


def read_programs(
    arrays: Mapping[str, npt.NDArray[Any]],
    n_programs: int,
    most_layers: int,
    n_categories: npt.NDArray[np.int64],
) -> list[Program]:
    """Take what `arrays_of` gave; refuse anything else with ArtifactError.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    n_programs, most_layers : int
        How many programs there must be, and how many layers each may have.
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    """
    n_layers, word_counts = arrays["n_layers"], arrays["n_words"]
    for name, counts in (("n_layers", n_layers), ("n_words", word_counts)):
        check_array(name, counts, np.int64, (n_programs,))
        if (counts < 0).any() or (counts > MOST_WORDS).any():
            raise ArtifactError(f"{name} must be from 0 to {MOST_WORDS}")
    if (n_layers > most_layers).any():
        raise ArtifactError(f"n_layers must be at most {most_layers}, got {n_layers.max()}")
    sizes = [n_nodes(layers) for layers in n_layers.tolist()]
    nodes = np.empty(sum(sizes), dtype=NODE)
    for name in NODE.names or ():
        check_array(name, arrays[name], NODE[name], (len(nodes),))
        nodes[name] = arrays[name]
    check_array("words", arrays["words"], np.uint64, (int(word_counts.sum()),))
    ends, word_ends = np.cumsum(sizes), np.cumsum(word_counts)
    programs = []
    for p in range(n_programs):
        own = nodes[ends[p] - sizes[p] : ends[p]]
        words = arrays["words"][word_ends[p] - word_counts[p] : word_ends[p]]
        check_nodes(own, len(words), n_categories)
        sets = (
            own["word"] >= 0
        )  # their numbers of categories: 0 in an artifact of before there was one
        own["threshold"][sets] = n_categories[own["feature"][sets]]
        programs.append(Program(int(n_layers[p]), own, words))
    return programs
