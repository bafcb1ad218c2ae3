"""Walking trees with new rows: the kernels by which an ensemble scores few rows, and explains them.

Inside nodes of a tree come first, then its leaves, each of which is its own child: every row then
takes as many steps as the tree is deep, with no branch to mispredict.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.coding.category_sets import WORD_BITS
from core.kernel import kernel
from core.trees.cuts import NO_SET

from .layout import Floats, Integers

ROWS_AT_ONCE = 64
FEW_ROWS = (
    8  # each is walked to its leaf: with no others to fill the wait, all steps are not worth it
)


class Nodes(NamedTuple):
    """Trees as nodes; all but the per-tree arrays and `sets` have a value per node.

    Attributes
    ----------
    root, depth : ndarray of shape (n_trees,), int64
    feature : ndarray of int64
    threshold : ndarray of float64
    missing_above : ndarray of bool
    set : ndarray of int64
        Of a categorical feature the place of the first word of those above, else -1.
    n_categories : ndarray of int64
        Of the feature.
    child : ndarray of int64
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
    n_categories: Any
    child: Any
    mean: Any
    sets: Any


_I1, _F1, _B1 = numba.int64[::1], numba.float64[::1], numba.boolean[::1]
_NODES = numba.types.NamedTuple(
    (_I1, _I1, _I1, _F1, _B1, _I1, _I1, _I1, _F1, numba.uint64[::1]), Nodes
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
        np.zeros(n_nodes, dtype=np.int64),
        np.zeros(n_nodes),
        np.zeros(n_nodes, dtype=np.bool_),
        np.full(n_nodes, NO_SET),
        np.zeros(n_nodes, dtype=np.int64),
        np.empty(2 * n_nodes, dtype=np.int64),
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
    nodes.n_categories[:] = n_categories[nodes.feature]
    return nodes


_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)


@kernel(numba.int64(numba.float64, numba.int64, _NODES), inner=True)
def _next(x, node, nodes):  # type: ignore[no-untyped-def]
    first = nodes.set[node]
    if first == NO_SET:
        above = (x > nodes.threshold[node]) | (np.isnan(x) & nodes.missing_above[node])
    elif 0.0 <= x < nodes.n_categories[node]:
        category = np.int64(x)
        word = nodes.sets[first + category // WORD_BITS]
        above = (word >> np.uint64(category % WORD_BITS)) & np.uint64(1) != 0
    else:
        above = nodes.missing_above[node]
    return nodes.child[np.uint64(2 * node + np.int64(above))]


@kernel(numba.void(_MATRIX, _NODES, numba.int64, numba.int64, _F1))
def add_scores(X, nodes, first, last, scores):  # type: ignore[no-untyped-def]
    """Add the values of trees first:last to the scores, tree by tree, a block of rows at a time."""
    if X.shape[0] < FEW_ROWS:
        for i in range(X.shape[0]):
            for t in range(first, last):
                node = nodes.root[t]
                while nodes.child[np.uint64(2 * node)] != node:
                    node = _next(X[i, nodes.feature[node]], node, nodes)
                scores[i] += nodes.mean[node]
        return
    at = np.empty(ROWS_AT_ONCE, dtype=np.int64)
    for low in range(0, X.shape[0], ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, X.shape[0] - low)
        for t in range(first, last):
            for i in range(n):
                at[i] = nodes.root[t]
            for _ in range(nodes.depth[t]):
                for i in range(n):
                    node = at[i]
                    at[i] = _next(X[low + i, nodes.feature[node]], node, nodes)
            for i in range(n):
                scores[low + i] += nodes.mean[at[i]]


@kernel(numba.void(_MATRIX, _NODES, numba.float64[:, ::1]))
def add_parts(X, nodes, parts):  # type: ignore[no-untyped-def]
    """Add to parts[row, feature] what the mean changes by where that feature is asked."""
    for i in range(X.shape[0]):
        for t in range(len(nodes.root)):
            node = nodes.root[t]
            for _ in range(nodes.depth[t]):
                feature = nodes.feature[node]
                child = _next(X[i, feature], node, nodes)
                parts[i, feature] += nodes.mean[child] - nodes.mean[node]
                node = child
