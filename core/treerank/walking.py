"""Walking a ranking tree with new rows: the kernel by which it scores.

All cut trees of a ranking tree are linked to one: a leaf of a node's cut tree leads straight to the
first cut of the child it sends its rows to, or, where that child is a leaf, to the leaf's number.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np

if TYPE_CHECKING:
    from .cuts import CutRules
    from .tree import Tree

ROWS_AT_ONCE = 64


class Links(NamedTuple):
    """A ranking tree's cuts, linked for walking.

    Attributes
    ----------
    feature, word : ndarray of shape (n_cuts,), int64
    threshold : ndarray of shape (n_cuts,), float64
    missing_above : ndarray of shape (n_cuts,), bool
    next : ndarray of shape (2 * n_cuts,), int64
        Of cut c, below at 2c, above at 2c + 1: a cut, or ~number of a leaf.
    words : ndarray of uint64
    root : int
    """

    feature: Any
    threshold: Any
    missing_above: Any
    word: Any
    next: Any
    words: Any
    root: int


def link(tree: "Tree", rules: "CutRules") -> Links:
    """Link the cuts of a tree; see `Links`."""
    is_cut = rules.feature >= 0
    number = np.cumsum(is_cut) - 1  # of a cut among the cuts
    # where a node of the ranking tree sends a row: to the first cut of its rule, or to a leaf
    asks = tree.rule >= 0
    entry = np.where(asks, 0, ~tree.leaf_number)
    entry[asks] = number[rules.start[tree.rule[asks]]]
    # a rule's node in the ranking tree, then each cut leaf's target
    node_of_rule = np.flatnonzero(asks)
    rule_of_cut_node = np.repeat(np.arange(len(rules)), np.diff(rules.start))
    node = node_of_rule[rule_of_cut_node]
    child = np.where(rules.to_top, tree.top[node], tree.bottom[node])
    target = np.where(is_cut, number, entry[child])
    following = np.empty(2 * int(is_cut.sum()), dtype=np.int64)
    following[0::2] = target[rules.below[is_cut]]
    following[1::2] = target[rules.above[is_cut]]
    return Links(
        rules.feature[is_cut],
        rules.threshold[is_cut],
        rules.missing_above[is_cut],
        rules.word[is_cut],
        following,
        rules.words,
        int(entry[0]),
    )


_I1 = numba.int64[::1]
_LINKS = numba.types.NamedTuple(
    (
        _I1,
        numba.float64[::1],
        numba.boolean[::1],
        _I1,
        _I1,
        numba.uint64[::1],
        numba.int64,
    ),
    Links,
)
_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)


@numba.njit(numba.int64(_MATRIX, numba.int64, numba.int64, _LINKS), nogil=True, cache=True)
def _follow(X, row, cut, links):  # type: ignore[no-untyped-def]
    """Give what follows a cut for a row."""
    x = X[row, links.feature[cut]]
    above = x > links.threshold[cut]
    if links.word[cut] >= 0 and not np.isnan(x):
        category = np.uint64(x)
        word = links.words[np.uint64(links.word[cut]) + (category >> np.uint64(6))]
        above = ((word >> (category & np.uint64(63))) & np.uint64(1)) != 0
    above |= np.isnan(x) & links.missing_above[cut]
    return links.next[np.uint64(2 * cut + np.int64(above))]


@numba.njit(numba.void(_MATRIX, _LINKS, numba.int64[::1]), nogil=True, cache=True)
def find_leaves(X, links, leaf):  # type: ignore[no-untyped-def]
    """Write the number of the leaf in which each row ends.

    O(n_rows · depth). Rows go in blocks whose own values stay in the first-level cache.
    """
    at = np.empty(ROWS_AT_ONCE, dtype=np.int64)
    for low in range(0, X.shape[0], ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, X.shape[0] - low)
        at[:n] = links.root
        walking = links.root >= 0
        while walking:
            walking = False
            for i in range(n):
                if at[i] >= 0:
                    at[i] = _follow(X, low + i, at[i], links)
                    walking = True
        for i in range(n):
            leaf[low + i] = ~at[i]
