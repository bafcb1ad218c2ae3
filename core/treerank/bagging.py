"""Trees of a forest, each grown on rows and features drawn anew from one coded table."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.coding.categories import count_rows
from core.coding.team import PARALLEL_CELLS, Team
from core.errors import ArtifactError
from core.ranker import Arrays, Floats, ignore

from .coding import CodedTable
from .cuts import CutRules
from .growth import Limits, grow
from .leafrank import FeatureDraw, LeafRank, Shape
from .preorder import Integers
from .splitting import Sample
from .tree import Tree, read_nodes
from .walking import PIECE_ROWS


class Grown(NamedTuple):
    """A tree, the rows it did not see, and the leaf of each of these."""

    tree: Tree
    unseen: Integers
    leaf: Integers


class Bag:
    """Grows trees and looks at them again.

    Parameters
    ----------
    sample : Sample
    seed : int
    """

    def __init__(self, sample: Sample, seed: int) -> None:
        self._X = np.ascontiguousarray(sample.X)
        self._weight = sample.weight
        self._seed = seed
        positive = sample.positive
        self._rows = np.concatenate([np.flatnonzero(positive), np.flatnonzero(~positive)])
        self._n_positives = int(positive.sum())

    def grow(
        self,
        numbers: range,
        table: CodedTable,
        limits: Limits,
        shape: Shape,
        n_drawn_features: int,
    ) -> Generator[Grown, None, None]:
        """Grow the trees of these numbers, in threads where that pays, and give them in order."""
        weight = self._weight[self._rows]  # as the coded table has them
        count = count_rows(weight)

        def grow_one(number: int) -> Grown:
            times, generator = self._draw(number)
            division = LeafRank(
                table,
                np.flatnonzero(times),
                weight * times,
                count * times,
                shape,
                Team(0),
                FeatureDraw(table.n_features, n_drawn_features, generator),
            )
            tree = grow(division, limits, ignore)
            unseen = self._rows[times == 0]
            leaf = np.empty(len(unseen), dtype=np.int64)
            for start in range(0, len(unseen), PIECE_ROWS):  # each copied for its tree
                piece = slice(start, start + PIECE_ROWS)
                leaf[piece] = tree.find_leaves(self._X[unseen[piece]])
            return Grown(tree, unseen, leaf)

        n_cells = table.n_rows * table.n_features * len(numbers)
        n_threads = numba.get_num_threads()
        at_once = min(n_threads, len(numbers)) if n_cells >= PARALLEL_CELLS else 1
        # A new thread of numba's default would start as many for each tree, whatever the caller is set to.
        pool = ThreadPoolExecutor(
            at_once, initializer=numba.set_num_threads, initargs=(n_threads // at_once,)
        )
        try:
            yield from pool.map(grow_one, numbers)
        finally:  # also when a callback has stopped the fit
            pool.shutdown(cancel_futures=True)

    def recall(self, trees: Iterable[tuple[Tree, Integers]]) -> Iterator[Grown]:
        """Give all trees of a forest, from number 0, with the leaves of the rows unseen, as `grow` did.

        Raises
        ------
        ArtifactError
            A tree comes with leaves that are not its own, or with too many or too few.
        """
        for number, (tree, leaf) in enumerate(trees):
            unseen = self._rows[self._draw(number)[0] == 0]
            if len(leaf) != len(unseen) or (leaf.size and leaf.max() >= tree.n_leaves):
                raise ArtifactError(
                    f"tree {number} must come with one of its {tree.n_leaves} leaves for each of "
                    f"{len(unseen)} rows, got {len(leaf)} leaves up to {leaf.max(initial=0)}"
                )
            yield Grown(tree, unseen, leaf)

    def _draw(self, number: int) -> tuple[Integers, np.random.Generator]:
        """Give how often a tree has each row, positives first, and the generator to go on with."""
        key = np.array([self._seed, number], dtype=np.uint64)
        generator = np.random.Generator(np.random.Philox(key=key))
        m, n = self._n_positives, len(self._rows)
        drawn = np.concatenate([generator.integers(0, m, m), generator.integers(m, n, n - m)])
        return np.bincount(drawn, minlength=n), generator


def rank_leaves(tree: Tree, order: str) -> Floats:
    """Give where each leaf stands: the share of the mass in leaves below, plus half of its own."""
    best_first = tree.concave_order if order == "concave" else np.arange(tree.n_leaves)
    mass = (tree.leaf_positive + tree.leaf_negative)[best_first]
    below = np.cumsum(mass[::-1])[::-1] - mass
    ranks = np.empty(tree.n_leaves)
    ranks[best_first] = (below + 0.5 * mass) / mass.sum()
    return ranks


def write_trees(trees: Sequence[Tree]) -> Arrays:
    """Give trees as arrays: those of `Tree.arrays`, one after the other."""
    rules = CutRules.join([tree.rules for tree in trees if isinstance(tree.rules, CutRules)])
    return {
        "n_nodes": np.array([tree.n_nodes for tree in trees]),
        "is_leaf": np.concatenate([tree.rule < 0 for tree in trees]),
        "leaf_positive": np.concatenate([tree.leaf_positive for tree in trees]),
        "leaf_negative": np.concatenate([tree.leaf_negative for tree in trees]),
    } | rules.arrays()


def write_share_of_trees(grown: Sequence[Grown]) -> Arrays:
    """Give trees as `write_trees` does, and the leaves of the rows that each did not see."""
    leaf = np.concatenate([each.leaf for each in grown])
    small = max(each.tree.n_leaves for each in grown) <= 1 << 16
    return write_trees([each.tree for each in grown]) | {
        "leaf": leaf.astype(np.uint16 if small else np.uint32),
        "n_unseen": np.array([len(each.leaf) for each in grown]),
    }


def read_share_of_trees(
    arrays: Mapping[str, npt.NDArray[Any]], n_categories: Integers
) -> list[tuple[Tree, Integers]]:
    """Rebuild what `write_share_of_trees` gave: each tree with its leaves."""
    trees = read_trees(arrays, n_categories)
    leaf, n_unseen = arrays["leaf"], arrays["n_unseen"]
    check_array("n_unseen", n_unseen, np.int64, (len(trees),))
    check_array("leaf", leaf, np.uint16 if leaf.dtype == np.uint16 else np.uint32, (leaf.size,))
    if not ((n_unseen >= 0) & (n_unseen <= leaf.size)).all() or n_unseen.sum() != leaf.size:
        raise ArtifactError("n_unseen must share out leaf")
    ends = np.cumsum(n_unseen)
    return [
        (tree, leaf[last - n : last].astype(np.int64))
        for tree, n, last in zip(trees, n_unseen, ends, strict=True)
    ]


def read_trees(arrays: Mapping[str, npt.NDArray[Any]], n_categories: Integers) -> tuple[Tree, ...]:
    """Rebuild trees from `write_trees`."""
    n_nodes = arrays["n_nodes"]
    check_array("n_nodes", n_nodes, np.int64, (n_nodes.size,))
    is_leaf, positive, negative = read_nodes(arrays)
    if not ((n_nodes >= 1) & (n_nodes <= len(is_leaf))).all() or n_nodes.sum() != len(is_leaf):
        raise ArtifactError("n_nodes must share out the nodes of is_leaf")
    rules = CutRules.from_arrays(arrays, int((~is_leaf).sum()), n_categories)
    ends = np.cumsum(n_nodes)
    leaves_before = np.concatenate([[0], np.cumsum(is_leaf)])
    trees = []
    for first, last in zip(ends - n_nodes, ends, strict=True):
        leaves = slice(leaves_before[first], leaves_before[last])
        own = np.arange(first - leaves.start, last - leaves.stop)
        trees.append(
            Tree.of(is_leaf[first:last], positive[leaves], negative[leaves], rules.take(own))
        )
    return tuple(trees)
