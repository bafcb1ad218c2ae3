"""Choosing a subtree and the order of its leaves on rows that the tree was not grown on."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from core.errors import InvalidData

from . import pruning
from .preorder import Booleans, Integers
from .pruning import PruningPath
from .splitting import Sample
from .tree import Tree

# Growing a tree on some rows; the second argument counts the trees grown.
Grow = Callable[[Integers, int], Tree]

LeafOrder = Literal["tree", "concave"]

LEAST_RISE = 1e-9  # an AUC counts as higher only if it is so by more than rounding


class Chosen(NamedTuple):
    """A tree to keep, and how.

    Attributes
    ----------
    tree : Tree
    path : PruningPath
    order : {"tree", "concave"}
        Which order of the leaves ranked better on the rows held out.
    """

    tree: Tree
    path: PruningPath
    order: LeafOrder


def validation_auc(chosen: Chosen) -> float:
    """Give the best AUC along the path on rows held out; 0 where none were."""
    areas = chosen.path.validation_auc
    return round(float(areas.max()), 9) if np.isfinite(areas).all() else 0.0


def split_rows(positive: Booleans, n_parts: int, seed: int) -> Integers:
    """Deal the rows of each class out to parts of equal size, at random.

    Parameters
    ----------
    positive : ndarray of shape (n_rows,), bool
    n_parts : int
    seed : int

    Returns
    -------
    ndarray of shape (n_rows,), int64
        The part of each row.
    """
    rng = np.random.Generator(np.random.Philox(seed))
    part = np.empty(len(positive), dtype=np.int64)
    for rows in (np.flatnonzero(positive), np.flatnonzero(~positive)):
        part[rng.permutation(rows)] = np.arange(len(rows)) % n_parts
    return part


def choose_by_folds(sample: Sample, grow: Grow, n_folds: int, seed: int) -> Chosen:
    """Prune by the penalty per leaf that is best over folds (§4.1).

    Parameters
    ----------
    sample : Sample
    grow : callable (rows, number) -> Tree
    n_folds : int
        Fewer where a class has fewer rows.
    seed : int

    Returns
    -------
    Chosen

    Raises
    ------
    InvalidData
        A class has one row only.

    Notes
    -----
    n_folds + 1 trees. Penalties are tried at the geometric means of neighbours on the whole tree's
    path, as in CART; of equal AUC the greatest wins, so the smallest tree.
    """
    n_rows = len(sample.positive)
    n_folds = min(n_folds, *np.bincount(sample.positive, minlength=2).tolist())
    if n_folds < 2:
        raise InvalidData(
            "pruning='cv' needs at least 2 rows of positive weight in each class, got 1"
        )
    tree = grow(np.arange(n_rows), 0)
    critical = pruning.critical_penalties(tree)
    path = pruning.trace_path(tree, critical)
    penalties = pruning.middles(path.penalty)
    part = split_rows(sample.positive, n_folds, seed)
    folds, means = [], np.zeros(len(penalties))
    for k in range(n_folds):
        grown = grow(np.flatnonzero(part != k), k + 1)
        held = _weigh_anew(grown, sample, np.flatnonzero(part == k))
        fold_critical = pruning.critical_penalties(grown)
        means += pruning.auc_along(fold_critical, held.gain, penalties) / n_folds
        folds.append((grown, held, fold_critical))
    best = int(np.flatnonzero(means >= means.max() - LEAST_RISE)[-1])
    pruned = [
        (grown.collapse(gone), held.collapse(gone))
        for grown, held, fold_critical in folds
        for gone in [fold_critical <= penalties[best]]
    ]
    kept = tree.collapse(critical <= path.penalty[best])
    return Chosen(kept, path._replace(validation_auc=means), better_order(pruned))


def choose_on_held_out(sample: Sample, grow: Grow, fraction: float, seed: int) -> Chosen:
    """Prune to the subtree that ranks a part held out best (eq. 12, Remark 10).

    Parameters
    ----------
    sample : Sample
    grow : callable (rows, number) -> Tree
    fraction : float
        Share of the rows of each class to hold out; at least one row, and not all.
    seed : int

    Returns
    -------
    Chosen
        Grown on the other rows alone.

    Raises
    ------
    InvalidData
        A class has one row only.
    """
    rng = np.random.Generator(np.random.Philox(seed))
    held = np.zeros(len(sample.positive), dtype=np.bool_)
    for rows in (np.flatnonzero(sample.positive), np.flatnonzero(~sample.positive)):
        if len(rows) < 2:
            raise InvalidData(
                "pruning='holdout' needs at least 2 rows of positive weight in each class, got 1"
            )
        n_held = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
        held[rng.permutation(rows)[:n_held]] = True
    tree = grow(np.flatnonzero(~held), 0)
    return choose_on(tree, _weigh_anew(tree, sample, np.flatnonzero(held)))


def choose_on(tree: Tree, held: Tree) -> Chosen:
    """Prune a tree to the subtree that ranks other rows best, whose masses are those of `held`."""
    critical = pruning.critical_penalties(tree)
    path = pruning.trace_path(tree, critical)
    means = pruning.auc_along(critical, held.gain, path.penalty)
    gone = pruning.best_subtree(tree, held.gain)
    kept = tree.collapse(gone)
    order = better_order([(kept, held.collapse(gone))])
    return Chosen(kept, path._replace(validation_auc=means), order)


def better_order(trees: Sequence[tuple[Tree, Tree]]) -> LeafOrder:
    """Say which order of the leaves ranks better on average; the tree's own if they are equal.

    Parameters
    ----------
    trees : sequence of (grown, held)
        A tree, and the same with the masses of rows held out.
    """
    rise = 0.0
    for grown, held in trees:
        order = grown.concave_order
        fpr, tpr = (
            np.concatenate([[0.0], np.cumsum(mass[order]) / mass.sum()])
            for mass in (held.leaf_negative, held.leaf_positive)
        )
        rise += float(np.trapezoid(tpr, fpr)) - held.auc
    return "concave" if rise > LEAST_RISE else "tree"


def _weigh_anew(tree: Tree, sample: Sample, rows: Integers) -> Tree:
    X = np.ascontiguousarray(sample.X[rows])
    return pruning.weigh_anew(tree, X, sample.positive[rows], sample.weight[rows])
