"""Pruning: which subtree of a grown ranking tree to keep.

The AUC of a subtree is ½ + ½ Σ Λ over its inside nodes, on whatever rows the Λ are counted. So a
penalty of λ per leaf (eq. 13) asks of each node whether what hangs below it adds more than λ per
leaf, and all there is to know of the answers, for every λ, is one number per node: the λ from which
on it is a leaf.
"""

from typing import NamedTuple

import numba
import numpy as np

from core.kernel import kernel
from core.ranker import Floats

from .preorder import Booleans, Integers
from .tree import Tree


class PruningPath(NamedTuple):
    """The subtrees that are best for some penalty, from the whole tree to the root (Theorem 3).

    Attributes
    ----------
    penalty : ndarray of shape (n_subtrees,), float64
        λ from which on, up to the next, each is best; the first is 0.
    n_leaves : ndarray of shape (n_subtrees,), int64
    auc : ndarray of shape (n_subtrees,), float64
        On the training rows.
    validation_auc : ndarray of shape (n_subtrees,), float64
        Mean over the folds by which λ was chosen; NaN where none were used.
    """

    penalty: Floats
    n_leaves: Integers
    auc: Floats
    validation_auc: Floats


_LINKS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_GAINS = numba.types.Array(numba.float64, 1, "C", readonly=True)


def critical_penalties(tree: Tree) -> Floats:
    """Give for each node the λ from which on the best subtree has it as a leaf, or not at all.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    ndarray of shape (n_nodes,), float64
        -inf for leaves. `tree.collapse(critical <= λ)` is the smallest subtree of greatest
        AUC - λ · n_leaves.

    Notes
    -----
    Weakest links: the inside node whose subtree adds least AUC per leaf is collapsed, again and
    again. O(n_nodes · n_subtrees), in which the nodes of a link go at once.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen and C. Stone, "Classification and Regression Trees", 1984:
    Theorem 3.10. Clémençon, Depecker & Vayatis 2011: eq. 13, Theorem 3.
    """
    critical = np.full(tree.n_nodes, -np.inf)
    _collapse_weakest(tree.parent, tree.bottom, tree.gain / 2.0, critical)
    return critical


@kernel(numba.void(_LINKS, _LINKS, _GAINS, numba.float64[::1]))
def _collapse_weakest(parent, second, gain, critical):  # type: ignore[no-untyped-def]
    n = len(parent)
    is_inside = second >= 0
    total, links = np.empty(n), np.empty(n)
    least = 0.0
    while is_inside[0]:
        weakest = np.inf
        for node in range(n - 1, -1, -1):
            total[node] = links[node] = 0.0
            if is_inside[node]:
                total[node] = gain[node] + total[node + 1] + total[second[node]]
                links[node] = 1.0 + links[node + 1] + links[second[node]]
                weakest = min(weakest, total[node] / links[node])
        least = max(least, weakest)  # but for rounding it never falls
        for node in range(n):
            gone = parent[node] >= 0 and not is_inside[parent[node]]
            if is_inside[node] and (gone or total[node] <= least * links[node] * (1.0 + 1e-12)):
                is_inside[node] = False
                critical[node] = least


def trace_path(tree: Tree, critical: Floats) -> PruningPath:
    """List the subtrees of a tree that are best for some penalty.

    Parameters
    ----------
    tree : Tree
    critical : ndarray of shape (n_nodes,), float64
        See `critical_penalties`.

    Returns
    -------
    PruningPath
    """
    inside = tree.rule >= 0
    penalty = np.unique(np.concatenate([[0.0], critical[inside]]))
    n_inside = sum_above(critical, np.where(inside, 1.0, 0.0), penalty)
    auc = auc_along(critical, tree.gain, penalty)
    missing = np.full(len(penalty), np.nan)
    return PruningPath(penalty, np.rint(n_inside).astype(np.int64) + 1, auc, missing)


def keep_best(tree: Tree, penalty: float) -> Tree:
    """Prune a tree to the smallest subtree of greatest AUC - penalty · n_leaves (eq. 13).

    Parameters
    ----------
    tree : Tree
    penalty : float
        λ, in AUC on the rows that the tree was grown on; 0 keeps all, splits that gain nothing too.

    Returns
    -------
    Tree
    """
    return tree.collapse(critical_penalties(tree) <= penalty) if penalty else tree


def sum_above(critical: Floats, values: Floats, penalties: Floats) -> Floats:
    """Sum up the values of the nodes that are still inside at each penalty."""
    order = np.argsort(-critical, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(values[order])])
    return np.asarray(sums[np.searchsorted(-critical[order], -penalties, side="left")])


def weigh_anew(tree: Tree, X: Floats, positive: Booleans, weight: Floats) -> Tree:
    """Give the same tree with the masses of other rows: their Λ may be below 0.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n_rows, n_features), float64, C-contiguous
    positive : ndarray of shape (n_rows,), bool
        Rows of both classes.
    weight : ndarray of shape (n_rows,), float64

    Returns
    -------
    Tree
    """
    leaf = tree.find_leaves(X)
    of_positives = np.asarray(np.bincount(leaf, weight * positive, tree.n_leaves), np.float64)
    of_negatives = np.asarray(np.bincount(leaf, weight * ~positive, tree.n_leaves), np.float64)
    return Tree(tree.rule, of_positives, of_negatives, tree.rules)


def best_subtree(tree: Tree, gain: Floats) -> Booleans:
    """Find the subtree of greatest AUC on a pruning sample; the smallest of several (eqs. 11, 12).

    Parameters
    ----------
    tree : Tree
    gain : ndarray of shape (n_nodes,), float64
        Λ of each node on that sample; see `weigh_anew`.

    Returns
    -------
    ndarray of shape (n_nodes,), bool
        The nodes to collapse.

    Notes
    -----
    O(n_nodes): what a node's subtree adds is Λ and what its children's add, or nothing.
    """
    adds = np.zeros(tree.n_nodes)
    for node in np.flatnonzero(tree.rule >= 0)[::-1].tolist():  # children before parents
        below = adds[node + 1] + adds[tree.bottom[node]]
        adds[node] = max(gain[node] + below, 0.0)
    return np.asarray((tree.rule >= 0) & (adds == 0.0))


def middles(penalties: Floats) -> Floats:
    """Give a penalty within each interval of a path: geometric means, as CART takes them."""
    beyond = penalties[-1] * 2.0 + 1.0
    following = np.append(penalties[1:], beyond)
    return np.asarray(np.sqrt(penalties * following))


def auc_along(critical: Floats, gain: Floats, penalties: Floats) -> Floats:
    """Give the AUC of the best subtree for each penalty, on the rows on which Λ was counted."""
    return np.asarray(0.5 + 0.5 * sum_above(critical, gain, penalties))
