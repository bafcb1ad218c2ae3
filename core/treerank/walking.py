"""Walking a ranking tree with new rows: the kernel by which it scores.

All cut trees of a ranking tree are linked to one: a leaf of a node's cut tree leads straight to the
first cut of the child it sends its rows to. Cuts come first, then the ranking tree's leaves, each of
which follows itself: every row then takes as many steps as the longest way, with no branch to
mispredict.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np

from core.ranker import Floats
from core.scan.team import Team

from .preorder import Integers

if TYPE_CHECKING:
    from .cuts import CutRules
    from .tree import Tree

ROWS_AT_ONCE = 64  # their values of some thirty columns stay in the first-level cache

PIECE_ROWS = 1 << 14  # what a thread does at a time


class Links(NamedTuple):
    """A ranking tree's cuts, linked for walking; the leaves of the ranking tree follow the cuts.

    Attributes
    ----------
    feature, word : ndarray of shape (n_cuts + n_leaves,), int64
    threshold : ndarray of shape (n_cuts + n_leaves,), float64
    missing_above : ndarray of shape (n_cuts + n_leaves,), bool
    next : ndarray of shape (2 * (n_cuts + n_leaves),), int32
        Of cut c, below at 2c, above at 2c + 1.
    words : ndarray of uint64
    root, n_cuts, depth : int
        Where to start, how many cuts there are, and how many the longest way passes.
    """

    feature: Any
    threshold: Any
    missing_above: Any
    word: Any
    next: Any
    words: Any
    root: int
    n_cuts: int
    depth: int


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
    following = np.repeat(np.arange(n_cuts + tree.n_leaves, dtype=np.int32), 2)
    following[0 : 2 * n_cuts : 2] = target[rules.below[is_cut]]
    following[1 : 2 * n_cuts : 2] = target[rules.above[is_cut]]
    no_cuts = np.zeros(tree.n_leaves, dtype=np.int64)
    return Links(
        np.concatenate([rules.feature[is_cut], no_cuts]),
        np.concatenate([rules.threshold[is_cut], no_cuts]),
        np.concatenate([rules.missing_above[is_cut], no_cuts != 0]),
        np.concatenate([rules.word[is_cut], no_cuts - 1]),
        following,
        rules.words.copy(),  # as the kernel takes no array that forbids writing
        int(entry[0]),
        n_cuts,
        _longest(following, n_cuts),
    )


def _longest(following: Any, n_cuts: int) -> int:
    """Count the cuts on the longest way: a cut's children come after it."""
    left = np.zeros(len(following) // 2, dtype=np.int64)
    for cut in range(n_cuts - 1, -1, -1):
        left[cut] = 1 + max(left[following[2 * cut]], left[following[2 * cut + 1]])
    return int(left[: n_cuts + 1].max())


def find_leaves(X: Floats, links: Links) -> Integers:
    """Give the number of the leaf in which each row ends.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64, C-contiguous
    links : Links

    Returns
    -------
    ndarray of shape (n_rows,), int64

    Notes
    -----
    O(n_rows · depth), in threads where that pays.
    """
    leaf = np.empty(len(X), dtype=np.int64)
    n_pieces = -(-len(X) // PIECE_ROWS)
    Team(len(X) * links.depth).run(_walk_pieces, n_pieces, X, links, leaf)
    return leaf


_LINKS = numba.types.NamedTuple(
    (
        numba.int64[::1],
        numba.float64[::1],
        numba.boolean[::1],
        numba.int64[::1],
        numba.int32[::1],
        numba.uint64[::1],
        numba.int64,
        numba.int64,
        numba.int64,
    ),
    Links,
)
_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)


@numba.njit(inline="always")
def _walk(X, links, with_sets, low, high, at):  # type: ignore[no-untyped-def]
    at[:] = links.root
    for _ in range(links.depth):
        for i in range(high - low):
            cut = np.uint64(at[i])
            x = X[np.uint64(low + i), np.uint64(links.feature[cut])]
            above = (x > links.threshold[cut]) | (np.isnan(x) & links.missing_above[cut])
            if with_sets and links.word[cut] >= 0 and not np.isnan(x):
                category = np.uint64(x)
                word = links.words[np.uint64(links.word[cut]) + (category >> np.uint64(6))]
                above = ((word >> (category & np.uint64(63))) & np.uint64(1)) != 0
            at[i] = links.next[np.uint64(2) * cut + np.uint64(above)]


@numba.njit(
    numba.void(numba.int64, numba.int64, numba.int64, _MATRIX, _LINKS, numba.int64[::1]),
    nogil=True,
    cache=True,
)
def _walk_pieces(first, step, n, X, links, leaf):  # type: ignore[no-untyped-def]
    """Walk every step-th piece of the rows."""
    at = np.empty(ROWS_AT_ONCE, dtype=np.int64)
    with_sets = len(links.words) > 0
    for piece in range(first, n, step):
        stop = min((piece + 1) * PIECE_ROWS, X.shape[0])
        for low in range(piece * PIECE_ROWS, stop, ROWS_AT_ONCE):
            high = min(low + ROWS_AT_ONCE, stop)
            if with_sets:
                _walk(X, links, True, low, high, at)
            else:
                _walk(X, links, False, low, high, at)
            for i in range(high - low):
                leaf[low + i] = at[i] - links.n_cuts
