"""Walking ranking trees with new rows: the kernels by which they score.

All cut trees of a ranking tree are linked to one: a leaf of a node's cut tree leads straight to the
first cut of the child it sends its rows to. Cuts come first, then the ranking tree's leaves, each of
which follows itself: every row then takes as many steps as the longest way, with no branch to
mispredict.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np

from core.coding.team import Team
from core.kernel import kernel
from core.ranker import Floats

from .preorder import Integers

if TYPE_CHECKING:
    from .cuts import CutRules
    from .tree import Tree

ROWS_AT_ONCE = 64  # their values of some thirty columns stay in the first-level cache

ROWS_PER_TREE = 512  # of several trees, where a tree's cuts are to be fetched, too

PIECE_ROWS = 1 << 14  # what a thread does at a time


class Links(NamedTuple):
    """The cuts of ranking trees, linked for walking: of each tree its cuts, then its leaves.

    Attributes
    ----------
    feature : ndarray of shape (n_nodes,), int32
    threshold : ndarray of shape (n_nodes,), float64
        Of a leaf its number: either side of it leads back to itself. Of a set the number of categories.
    missing_above : ndarray of shape (n_nodes,), bool
    word : ndarray of shape (n_nodes,), int64
    next : ndarray of shape (2 * n_nodes,), int32
        What follows node c: below at 2c, above at 2c + 1.
    words : ndarray of uint64
    root, first_leaf, depth : ndarray of shape (n_trees,), int64
        Of each tree: where to start, its first leaf, and how many cuts the longest way passes.
    """

    feature: Any
    threshold: Any
    missing_above: Any
    word: Any
    next: Any
    words: Any
    root: Any
    first_leaf: Any
    depth: Any


def link(tree: "Tree", rules: "CutRules") -> Links:
    """Link the cuts of a tree; see `Links`."""
    is_cut = rules.feature >= 0
    number = np.cumsum(is_cut) - 1  # of a cut among the cuts
    n_cuts = int(is_cut.sum())
    # where a node of the ranking tree sends a row: to the first cut of its rule, or to a leaf
    asks = tree.rule >= 0
    entry = n_cuts + tree.leaf_number
    entry[asks] = number[rules.start[tree.rule[asks]]]
    # each cut leaf's target, by its rule's node in the ranking tree
    node = np.repeat(np.flatnonzero(asks), np.diff(rules.start))
    child = np.where(rules.to_top, tree.top[node], tree.bottom[node])
    target = np.where(is_cut, number, entry[child])
    following = np.repeat(np.arange(n_cuts + tree.n_leaves), 2)
    following[0 : 2 * n_cuts : 2] = target[rules.below[is_cut]]
    following[1 : 2 * n_cuts : 2] = target[rules.above[is_cut]]
    no_cuts = np.zeros(tree.n_leaves, dtype=np.int64)
    return Links(
        np.concatenate([rules.feature[is_cut], no_cuts]).astype(np.int32),
        np.concatenate([rules.threshold[is_cut], np.arange(float(tree.n_leaves))]),
        np.concatenate([rules.missing_above[is_cut], no_cuts != 0]),
        np.concatenate([rules.word[is_cut], no_cuts - 1]),
        following.astype(np.int32),
        rules.words.copy(),  # as the kernels take no array that forbids writing
        entry[:1],
        np.array([n_cuts]),
        np.array([_longest(following, n_cuts)]),
    )


def join(trees: Sequence[Links]) -> Links:
    """Put the links of several trees together."""
    sizes = [len(links.feature) for links in trees]
    before = np.cumsum([0, *sizes])[:-1].tolist()
    words = np.cumsum([0, *(len(links.words) for links in trees)])[:-1].tolist()
    moved = [
        links._replace(
            next=links.next + np.int32(nodes),
            root=links.root + nodes,
            first_leaf=links.first_leaf + nodes,
            word=np.where(links.word >= 0, links.word + n_words, -1),
        )
        for links, nodes, n_words in zip(trees, before, words, strict=True)
    ]
    return Links(*(np.concatenate(arrays) for arrays in zip(*moved, strict=True)))


def _longest(following: Integers, n_cuts: int) -> int:
    """Count the cuts on the longest way: a cut's children come after it."""
    left = np.zeros(len(following) // 2, dtype=np.int64)
    for cut in range(n_cuts - 1, -1, -1):
        left[cut] = 1 + max(left[following[2 * cut]], left[following[2 * cut + 1]])
    return int(left[: n_cuts + 1].max())


def find_leaves(X: Floats, links: Links) -> Integers:
    """Give the number of the leaf of one tree in which each row ends.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64, C-contiguous
    links : Links
        Of one tree.

    Returns
    -------
    ndarray of shape (n_rows,), int64

    Notes
    -----
    O(n_rows · depth), in threads where that pays.
    """
    return sum_values(X, links, links.threshold).astype(np.int64)  # whole numbers are exact


def sum_values(X: Floats, links: Links, value: Floats) -> Floats:
    """Add up what the leaves hold in which each row ends, tree by tree.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64, C-contiguous
    links : Links
    value : ndarray of shape (n_nodes,), float64
        Of the leaves; cuts are not read.

    Returns
    -------
    ndarray of shape (n_rows,), float64
        A row's sum does not depend on the rows beside it.
    """
    total = np.zeros(len(X))
    n_pieces = -(-len(X) // PIECE_ROWS)
    team = Team(len(X) * int(links.depth.sum()))
    team.run(_sum_values, n_pieces, X, links, value, total)
    return total


_I1 = numba.int64[::1]
_LINKS = numba.types.NamedTuple(
    (
        numba.int32[::1],
        numba.float64[::1],
        numba.boolean[::1],
        _I1,
        numba.int32[::1],
        numba.uint64[::1],
        _I1,
        _I1,
        _I1,
    ),
    Links,
)
_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)
_U8 = numba.uint64


@kernel(_U8(_MATRIX, _LINKS, numba.boolean, _U8, _U8), inner=True, forceinline=True, _nrt=False)
def _step(X, links, with_sets, row, node):  # type: ignore[no-untyped-def]
    x = X[row, np.uint64(links.feature[node])]
    above = (x > links.threshold[node]) | (np.isnan(x) & links.missing_above[node])
    if with_sets and links.word[node] >= 0:
        above = links.missing_above[node]
        if 0.0 <= x < links.threshold[node]:  # what is no category counts as missing
            category = np.uint64(x)
            word = links.words[np.uint64(links.word[node]) + (category >> np.uint64(6))]
            above = ((word >> (category & np.uint64(63))) & np.uint64(1)) != 0
    return np.uint64(links.next[np.uint64(2) * node + np.uint64(above)])


@numba.njit(inline="always")
def _walk_rows(X, links, with_sets, tree, low, high, at):  # type: ignore[no-untyped-def]
    """Walk eight rows at a time: their steps do not wait for each other, and stay in registers."""
    root, depth = np.uint64(links.root[tree]), links.depth[tree]
    eights = low + (high - low) // 8 * 8
    for k in range(low, eights, 8):
        i = np.uint64(k)
        a = b = c = d = e = f = g = h = root
        for _ in range(depth):
            a = _step(X, links, with_sets, i, a)
            b = _step(X, links, with_sets, i + np.uint64(1), b)
            c = _step(X, links, with_sets, i + np.uint64(2), c)
            d = _step(X, links, with_sets, i + np.uint64(3), d)
            e = _step(X, links, with_sets, i + np.uint64(4), e)
            f = _step(X, links, with_sets, i + np.uint64(5), f)
            g = _step(X, links, with_sets, i + np.uint64(6), g)
            h = _step(X, links, with_sets, i + np.uint64(7), h)
        j = k - low
        at[j], at[j + 1], at[j + 2], at[j + 3] = a, b, c, d
        at[j + 4], at[j + 5], at[j + 6], at[j + 7] = e, f, g, h
    for k in range(eights, high):
        a = root
        for _ in range(depth):
            a = _step(X, links, with_sets, np.uint64(k), a)
        at[k - low] = a


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        _MATRIX,
        _LINKS,
        numba.float64[::1],
        numba.float64[::1],
    ),
)
def _sum_values(first, step, n, X, links, value, total):  # type: ignore[no-untyped-def]
    """Walk every step-th piece of the rows through all trees."""
    n_trees = len(links.root)
    size = ROWS_AT_ONCE if n_trees == 1 else ROWS_PER_TREE
    at = np.empty(ROWS_PER_TREE, dtype=np.int64)
    for piece in range(first, n, step):
        stop = min((piece + 1) * PIECE_ROWS, X.shape[0])
        for low in range(piece * PIECE_ROWS, stop, size):
            high = min(low + size, stop)
            for tree in range(n_trees):
                if len(links.words) > 0:
                    _walk_rows(X, links, True, tree, low, high, at)
                else:
                    _walk_rows(X, links, False, tree, low, high, at)
                for k in range(high - low):
                    total[low + k] += value[at[k]]
