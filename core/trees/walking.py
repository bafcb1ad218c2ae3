"""Walking trees with new rows: the kernels by which trees score rows, and explain them.

Inside nodes of a tree come first, then its leaves, each of which is its own child: every row then
takes as many steps as the tree is deep, with no branch to mispredict. Several nodes may lead to one
child, as those of LeafRank's small trees do.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.coding.team import Team
from core.kernel import kernel
from core.ranker import Floats
from core.trees.cuts import NO_SET

from .coding import Integers

ROWS_AT_ONCE = 64  # of one tree: their values of some thirty columns stay in the first-level cache
ROWS_PER_TREE = 512  # of several trees, where a tree's nodes are to be fetched, too
PIECE_ROWS = 1 << 14  # what a thread does at a time


class Nodes(NamedTuple):
    """Trees as nodes; all but the per-tree arrays and `sets` have a value per node.

    Attributes
    ----------
    root, depth : ndarray of shape (n_trees,), int64
    feature : ndarray of int32
    threshold : ndarray of float64
        Of a categorical feature its number of categories.
    missing_above : ndarray of bool
    set : ndarray of int64
        Of a categorical feature the place of the first word of those above, else -1.
    child : ndarray of int32
        Of node k: below at 2k, above at 2k + 1.
    mean : ndarray of float64
        Of a leaf its value, of another node the mean of its leaves by mass.
    sets : ndarray of shape (n_words,), uint64
    """

    root: Any
    depth: Any
    feature: Any
    threshold: Any
    missing_above: Any
    set: Any
    child: Any
    mean: Any
    sets: Any


_I1, _I4, _F1 = numba.int64[::1], numba.int32[::1], numba.float64[::1]
_NODES = numba.types.NamedTuple(
    (_I1, _I1, _I4, _F1, numba.boolean[::1], _I1, _I4, _F1, numba.uint64[::1]), Nodes
)


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.uint16[::1],
        _F1,
        _F1,
        _NODES,
    ),
    error_model="numpy",
)
def _link_tree(tree, root, split_leaf, values, weights, nodes):  # type: ignore[no-untyped-def]
    n_splits = len(split_leaf)
    hangs_at = np.empty(n_splits + 1, dtype=np.int64)  # which entry of `child` names a leaf
    level = np.empty(n_splits + 1, dtype=np.int64)
    weight = np.empty(2 * n_splits + 1)
    depth = level[0] = 0
    for s in range(n_splits):
        leaf = split_leaf[s]
        if s > 0:
            nodes.child[hangs_at[leaf]] = root + s
        hangs_at[leaf] = 2 * (root + s) + 1
        hangs_at[s + 1] = 2 * (root + s)
        level[leaf] += 1
        level[s + 1] = level[leaf]
        depth = max(depth, level[leaf])
    for leaf in range(n_splits + 1):
        node = root + n_splits + leaf
        nodes.child[hangs_at[leaf]] = node
        nodes.child[2 * node] = nodes.child[2 * node + 1] = node
        nodes.mean[node] = values[leaf]
        weight[n_splits + leaf] = weights[leaf]
    for s in range(n_splits - 1, -1, -1):  # children come after their parents
        below, above = nodes.child[2 * (root + s)], nodes.child[2 * (root + s) + 1]
        weight[s] = weight[below - root] + weight[above - root]
        share = weight[above - root] / weight[s] if weight[s] > 0.0 else 0.5
        nodes.mean[root + s] = share * nodes.mean[above] + (1.0 - share) * nodes.mean[below]
    nodes.root[tree] = root
    nodes.depth[tree] = depth


def link(
    n_leaves: Integers,
    splits: npt.NDArray[np.void],
    values: Floats,
    weights: Floats,
    sets: npt.NDArray[np.uint64],
    n_categories: Integers,
) -> Nodes:
    """Turn lists of splits into nodes; see `tree_sum.TreeSum` for the arrays."""
    n_trees, n_nodes = len(n_leaves), int(2 * n_leaves.sum()) - len(n_leaves)
    nodes = Nodes(
        np.empty(n_trees, dtype=np.int64),
        np.empty(n_trees, dtype=np.int64),
        np.zeros(n_nodes, dtype=np.int32),
        np.zeros(n_nodes),
        np.zeros(n_nodes, dtype=np.bool_),
        np.full(n_nodes, NO_SET),
        np.empty(2 * n_nodes, dtype=np.int32),
        np.empty(n_nodes),
        sets.copy(),
    )
    # copied, as the kernel takes none that forbid writing
    split_leaf, values, weights = splits["leaf"].copy(), values.copy(), weights.copy()
    first_split = first_leaf = 0
    for t, n in enumerate(n_leaves.tolist()):
        root = first_split + first_leaf
        of_splits, of_leaves = (
            slice(first_split, first_split + n - 1),
            slice(first_leaf, first_leaf + n),
        )
        _link_tree(t, root, split_leaf[of_splits], values[of_leaves], weights[of_leaves], nodes)
        for name in ("feature", "threshold", "missing_above", "set"):
            getattr(nodes, name)[root : root + n - 1] = splits[name][of_splits]
        first_split, first_leaf = of_splits.stop, of_leaves.stop
    is_set = nodes.set != NO_SET
    nodes.threshold[is_set] = n_categories[nodes.feature[is_set]]
    return nodes


_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)


_U8 = numba.uint64


@kernel(_U8(_MATRIX, _NODES, numba.boolean, _U8, _U8), inner=True, forceinline=True, _nrt=False)
def _step(X, nodes, with_sets, row, node):  # type: ignore[no-untyped-def]
    x = X[row, np.uint64(nodes.feature[node])]
    above = (x > nodes.threshold[node]) | (np.isnan(x) & nodes.missing_above[node])
    if with_sets and nodes.set[node] != NO_SET:
        above = nodes.missing_above[node]
        if 0.0 <= x < nodes.threshold[node]:  # what is no category counts as missing
            category = np.uint64(x)
            word = nodes.sets[np.uint64(nodes.set[node]) + (category >> np.uint64(6))]
            above = ((word >> (category & np.uint64(63))) & np.uint64(1)) != 0
    return np.uint64(nodes.child[np.uint64(2) * node + np.uint64(above)])


@numba.njit(inline="always")
def _walk_rows(X, nodes, with_sets, tree, low, high, at):  # type: ignore[no-untyped-def]
    """Walk eight rows at a time: their steps do not wait for each other, and stay in registers."""
    root, depth = np.uint64(nodes.root[tree]), nodes.depth[tree]
    eights = low + (high - low) // 8 * 8
    for k in range(low, eights, 8):
        i = np.uint64(k)
        a = b = c = d = e = f = g = h = root
        for _ in range(depth):
            a = _step(X, nodes, with_sets, i, a)
            b = _step(X, nodes, with_sets, i + np.uint64(1), b)
            c = _step(X, nodes, with_sets, i + np.uint64(2), c)
            d = _step(X, nodes, with_sets, i + np.uint64(3), d)
            e = _step(X, nodes, with_sets, i + np.uint64(4), e)
            f = _step(X, nodes, with_sets, i + np.uint64(5), f)
            g = _step(X, nodes, with_sets, i + np.uint64(6), g)
            h = _step(X, nodes, with_sets, i + np.uint64(7), h)
        j = k - low
        at[j], at[j + 1], at[j + 2], at[j + 3] = a, b, c, d
        at[j + 4], at[j + 5], at[j + 6], at[j + 7] = e, f, g, h
    for k in range(eights, high):
        a, before = root, np.uint64(len(nodes.feature))
        while a != before:  # a leaf is its own child
            before = a
            a = _step(X, nodes, with_sets, np.uint64(k), a)
        at[k - low] = a


@kernel(
    numba.void(
        numba.int64, numba.int64, numba.int64, _MATRIX, _NODES, numba.int64, numba.int64, _F1
    )
)
def _add_scores(first_piece, step, n_pieces, X, nodes, first, last, scores):  # type: ignore[no-untyped-def]
    """Walk every step-th piece of the rows through trees first:last."""
    size = ROWS_AT_ONCE if last - first == 1 else ROWS_PER_TREE
    at = np.empty(ROWS_PER_TREE, dtype=np.int64)
    for piece in range(first_piece, n_pieces, step):
        stop = min((piece + 1) * PIECE_ROWS, X.shape[0])
        for low in range(piece * PIECE_ROWS, stop, size):
            high = min(low + size, stop)
            for tree in range(first, last):
                if len(nodes.sets) > 0:
                    _walk_rows(X, nodes, True, tree, low, high, at)
                else:
                    _walk_rows(X, nodes, False, tree, low, high, at)
                for k in range(high - low):
                    scores[low + k] += nodes.mean[at[k]]


def add_scores(X: Floats, nodes: Nodes, first: int, last: int, scores: Floats) -> None:
    """Add the values of trees first:last to the scores, tree by tree, in threads where that pays.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64, C-contiguous
    nodes : Nodes
    first, last : int
    scores : ndarray of shape (n_rows,), float64
        A row's sum does not depend on the rows beside it.

    Notes
    -----
    O(n_rows · n_trees · depth).
    """
    n_pieces = -(-len(X) // PIECE_ROWS)
    if n_pieces == 1:
        _add_scores(0, 1, 1, X, nodes, first, last, scores)
    else:
        team = Team(len(X) * int(nodes.depth[first:last].sum()))
        team.run(_add_scores, n_pieces, X, nodes, first, last, scores)


@kernel(numba.void(_MATRIX, _NODES, numba.float64[:, ::1]))
def add_parts(X, nodes, parts):  # type: ignore[no-untyped-def]
    """Add to parts[row, feature] what the mean changes by where that feature is asked."""
    for i in range(X.shape[0]):
        for t in range(len(nodes.root)):
            node = np.uint64(nodes.root[t])
            for _ in range(nodes.depth[t]):
                child = _step(X, nodes, True, np.uint64(i), node)
                parts[i, nodes.feature[node]] += nodes.mean[child] - nodes.mean[node]
                node = child
