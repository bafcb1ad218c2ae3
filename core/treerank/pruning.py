"""Pruning of ranking trees: which subtree to keep, and in which order its leaves rank.

The AUC of a subtree is ½ + ½ Σ Λ over its inside nodes, whichever rows the Λ are computed on. With a penalty of λ per
leaf (eq. 13) a node stays inside if its subtree adds more than λ per leaf. So one number per node describes the best
subtree for every λ: the λ from which on the node is a leaf. λ is a parameter, or is chosen by cross-validation (§4.1);
or a validation part chooses the subtree itself (eq. 12); or a penalty does that depends on the numbers of leaves and
rows alone (§4.2).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base.ranker import Floats
from core.base.splits import draw_folds, draw_part
from core.base.state import Array, Constraint, read_state
from core.classifiers import count_columns
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.kernels import kernel

from .grid import GridRules
from .growth import TreeRows
from .tree import Booleans, Integers, LeafOrder, RankingTree


def _along(name: str) -> Array:
    return Array("n_subtrees", name=f"pruning_{name}")


_RATE = Constraint("a rate, or NaN", lambda values: ~((values < -1.0) | (values > 2.0)))


class PruningPath(NamedTuple):
    """The sequence of subtrees that are optimal for some penalty, from the whole tree to the root (Theorem 3)."""

    penalty: Annotated[Floats, _along("penalty"), Ge(0), Le(1)]
    """Each subtree is best from this λ up to the next one; the first is 0. Shape (n_subtrees,)."""
    n_leaves: Annotated[Integers, _along("n_leaves"), Ge(1)]
    """Shape (n_subtrees,)."""
    auc: Annotated[Floats, _along("auc"), _RATE]
    """On the training rows. Shape (n_subtrees,)."""
    validation_auc: Annotated[Floats, _along("validation_auc"), _RATE]
    """Mean over the folds by which λ was chosen; NaN if there were none. Shape (n_subtrees,)."""

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, npt.NDArray[Any]],
        known: Mapping[str, Any],
        meta: Mapping[str, Any],
    ) -> "PruningPath":
        path = cls(**read_state(cls, arrays, meta, known))
        if not len(path.penalty):
            raise ArtifactError("pruning_penalty must contain at least one value")
        return path


_LINKS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_GAINS = numba.types.Array(numba.float64, 1, "C", readonly=True)


def critical_penalties(tree: RankingTree) -> Floats:
    """Return for each node the least penalty λ for which it is a leaf (or gone) in the best subtree; -inf for leaves.

    `tree.collapse(critical <= λ)` is the smallest subtree with the greatest AUC - λ · n_leaves (eq. 13, Theorem 3).
    Weakest-link pruning (Breiman et al. 1984, Theorem 3.10) repeatedly collapses the inner node whose subtree adds the
    least AUC per leaf, with all nodes that tie with it. O(n_nodes · n_subtrees).
    """
    critical = np.full(tree.n_nodes, -np.inf)
    _collapse_weakest(tree.parent, tree.bottom, tree.gain / 2.0, critical)
    return critical


@kernel(numba.void(_LINKS, _LINKS, _GAINS, numba.float64[::1]))
def _collapse_weakest(parent, second, gain, critical):  # type: ignore[no-untyped-def]
    """Write each inside node's critical penalty, collapsing the weakest links in turn. gain: ΔAUC; see `tree.Links`."""
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
        least = max(least, weakest)  # it never decreases, except by rounding
        for node in range(n):
            gone = parent[node] >= 0 and not is_inside[parent[node]]
            if is_inside[node] and (gone or total[node] <= least * links[node] * (1.0 + 1e-12)):
                is_inside[node] = False
                critical[node] = least


def trace_path(tree: RankingTree, critical: Floats) -> PruningPath:
    inside = ~tree.is_leaf
    penalty = np.unique(np.concatenate([[0.0], critical[inside]]))
    n_inside = sum_above(critical, np.where(inside, 1.0, 0.0), penalty)
    auc = auc_along(critical, tree.gain, penalty)
    missing = np.full(len(penalty), np.nan)
    return PruningPath(penalty, np.rint(n_inside).astype(np.int64) + 1, auc, missing)


def keep_best(tree: RankingTree, penalty: float) -> RankingTree:
    """Return the smallest subtree with the greatest AUC - penalty · n_leaves (eq. 13) on the training rows.

    A penalty of 0 keeps the whole tree, also splits that gain nothing.
    """
    return tree.collapse(critical_penalties(tree) <= penalty) if penalty else tree


def sum_above(critical: Floats, values: Floats, penalties: Floats) -> Floats:
    """Return, for each penalty, the sum of `values` over the inner nodes of its best subtree."""
    order = np.argsort(-critical, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(values[order])])
    return np.asarray(sums[np.searchsorted(-critical[order], -penalties, side="left")])


def reweigh(tree: RankingTree, sample: TreeRows) -> RankingTree:
    """Return the same tree with the class weights of other rows (of both classes); Λ may then be negative."""
    leaf = sample.find_leaves(tree.find_leaves)
    positive, negative = (
        np.asarray(np.bincount(leaf, sample.weight * of_class, tree.n_leaves), np.float64)
        for of_class in (sample.positive, ~sample.positive)
    )
    return RankingTree(tree.is_leaf, positive, negative, tree.rules)


def best_subtree(tree: RankingTree, gain: Floats) -> Booleans:
    """Return which nodes to collapse for the smallest subtree of greatest AUC on a pruning sample (eqs. 11, 12).

    Of several the smallest. `gain` is Λ of each node on that sample (see `reweigh`). A node's subtree adds Λ and what
    its children's subtrees add, or 0 if it is collapsed: O(n_nodes).
    """
    adds = np.zeros(tree.n_nodes)
    for node in np.flatnonzero(~tree.is_leaf)[::-1].tolist():  # children before parents
        below = adds[node + 1] + adds[tree.bottom[node]]
        adds[node] = max(gain[node] + below, 0.0)
    return np.asarray((~tree.is_leaf) & (adds == 0.0))


def middles(penalties: Floats) -> Floats:
    """Return one penalty inside each interval of a pruning path: the geometric mean of its ends, as in CART."""
    beyond = penalties[-1] * 2.0 + 1.0
    following = np.append(penalties[1:], beyond)
    return np.asarray(np.sqrt(penalties * following))


def auc_along(critical: Floats, gain: Floats, penalties: Floats) -> Floats:
    """Return the AUC of each penalty's best subtree, on the rows for which the nodes' Λ (`gain`) was computed."""
    return np.asarray(0.5 + 0.5 * sum_above(critical, gain, penalties))


# Grows a tree on the rows of these indices; the second argument counts the trees from 0.
Grow = Callable[[Integers, int], RankingTree]

MIN_RISE = (
    1e-9  # an AUC counts as higher only if it exceeds the other by more than this: less is rounding
)


class PrunedTree(NamedTuple):
    """The pruned tree, its pruning path, and the order of its leaves."""

    tree: RankingTree
    path: PruningPath
    order: LeafOrder
    """The order of the leaves that ranked better on validation rows."""


def validation_auc(chosen: PrunedTree) -> float:
    """Return the best validation AUC along the pruning path; 0 if there were no validation rows."""
    areas = chosen.path.validation_auc
    return round(float(areas.max()), 9) if np.isfinite(areas).all() else 0.0


def choose_by_folds(sample: TreeRows, grow: Grow, n_folds: int, seed: int) -> PrunedTree:
    """Return the subtree for the penalty per leaf chosen by cross-validation (§4.1); grows n_folds + 1 trees.

    If a class has fewer rows (or groups) than n_folds, there are as many folds; with one only, InvalidData is raised.
    The penalties tried are the geometric means of neighbours on the path of the tree of all rows, as in CART. Of equal
    AUC the greatest penalty wins, so the smallest tree.
    """
    n_rows = len(sample.positive)
    part = _draw_folds(sample, n_folds, seed)
    n_folds = int(part.max()) + 1
    tree = grow(np.arange(n_rows), 0)
    critical = critical_penalties(tree)
    path = trace_path(tree, critical)
    penalties = middles(path.penalty)
    folds, means = [], np.zeros(len(penalties))
    for k in range(n_folds):
        grown = grow(np.flatnonzero(part != k), k + 1)
        validated = reweigh(grown, sample.take(np.flatnonzero(part == k)))
        fold_critical = critical_penalties(grown)
        means += auc_along(fold_critical, validated.gain, penalties) / n_folds
        folds.append((grown, validated, fold_critical))
    best = int(np.flatnonzero(means >= means.max() - MIN_RISE)[-1])
    pruned = [
        (grown.collapse(collapsed), validated.collapse(collapsed))
        for grown, validated, fold_critical in folds
        for collapsed in [fold_critical <= penalties[best]]
    ]
    kept = tree.collapse(critical <= path.penalty[best])
    return PrunedTree(kept, path._replace(validation_auc=means), better_order(pruned))


def choose_on_held_out(sample: TreeRows, grow: Grow, fraction: float, seed: int) -> PrunedTree:
    """Return the subtree with the best AUC on held-out rows (eq. 12, Remark 10), grown on the other rows.

    The validation part has `fraction` of the rows of each class, at least one row and not all. InvalidData: a class has
    only one row, or one group.
    """
    validation_mask = draw_part(sample.positive, fraction, seed, sample.number_inseparable())
    if validation_mask is None:
        raise InvalidData(
            "pruning='holdout' requires at least 2 different rows of positive weight in each class (in "
            "two groups, if there are groups)"
        )
    tree = grow(np.flatnonzero(~validation_mask), 0)
    return choose_on(tree, reweigh(tree, sample.take(np.flatnonzero(validation_mask))))


def _draw_folds(sample: TreeRows, n_folds: int, seed: int) -> Integers:
    """Return the cross-validation fold of each row; fewer than n_folds if a class has too few rows."""
    unit = sample.number_inseparable()
    classes = sample.positive, ~sample.positive
    for k in range(min(n_folds, *(int(own.sum()) for own in classes)), 1, -1):
        part = draw_folds(sample.positive, k, seed, unit)
        if all(np.bincount(part[own], minlength=k).all() for own in classes):
            return part
    raise InvalidData(
        "pruning='cv' requires at least 2 different rows of positive weight in each class (in two "
        "groups, if there are groups)"
    )


def choose_on(tree: RankingTree, validated: RankingTree) -> PrunedTree:
    """Return the subtree with the best validation AUC; `validated` is the tree with validation weights (`reweigh`)."""
    critical = critical_penalties(tree)
    path = trace_path(tree, critical)
    means = auc_along(critical, validated.gain, path.penalty)
    collapsed = best_subtree(tree, validated.gain)
    kept = tree.collapse(collapsed)
    order = better_order([(kept, validated.collapse(collapsed))])
    return PrunedTree(kept, path._replace(validation_auc=means), order)


def better_order(trees: Sequence[tuple[RankingTree, RankingTree]]) -> LeafOrder:
    """Return the leaf order with the better mean validation AUC; the tree's own on equality.

    Takes pairs: a tree, and the same tree with the weights of validation rows.
    """
    rise = 0.0
    for grown, validated in trees:
        fpr, tpr = validated.knots_along(grown.concave_order)
        rise += float(np.trapezoid(tpr, fpr)) - validated.auc
    return "concave" if rise > MIN_RISE else "tree"


# The printed penalties bound a deviation with high probability for any distribution: far too large to prune by. The
# paper leaves their constants to resampling (§8), so they are scaled.

SCALE = 0.001
"""Factor of the printed penalty with which it prunes about as well as cross-validation.

Calibrated on 92 trees by cuts, grown on 250 to 4,000 rows of ten tables. The AUC below that of the best subtree, and
the leaves, are on average 0.0027 and 12 at 0.001 (10-fold CV: 0.0025 and 16; no pruning: 0.0013 and 48; 0.0043: 0.0075
and 5). One tree does what cross-validation takes eleven for. Splits by half-spaces agree; those by cubes bear ten times
the scale.
"""

PENALISED = ("leafrank", "axis", "grid", "logistic", "linear_svm")


def penalty_of_cuts(
    n_leaves: Integers, mass: float, positive_fraction: float, n_features: int, n_cuts: int
) -> Floats:
    """Return the complexity penalty pen(K, n) of trees whose nodes are split by at most κ thresholds.

    n_leaves: (n_subtrees,), int64; K.
    mass: n, where a row of weight k counts as k rows.
    positive_fraction: p, between 0 and 1. The paper has a lower and an upper bound of it; here both are that of the
        training rows.
    n_features: q.
    n_cuts: κ.

    Result: (n_subtrees,), float64; as printed, which is vacuous: 0.705 for K = 4 leaves, a million rows, q = 30, κ = 7
        and p = ½, and 17.8 for p = 0.01. See `choose_subtree` for the scale.

    Clémençon, Depecker & Vayatis 2011, Proposition 6 (i).
    """
    each = 2.0 * n_cuts * (math.log(mass + 1.0) + math.log(n_features))
    return _penalty(n_leaves, mass, positive_fraction, each)


def penalty_of_hyperplanes(
    n_leaves: Integers, mass: float, positive_fraction: float, n_columns: int
) -> Floats:
    """Return the complexity penalty pen(K, n) of trees split by hyperplanes; see `penalty_of_cuts`.

    Half-spaces of q dimensions shatter at most (n + 1)^(q + 1) ways (Remark 9).
    """
    each = 2.0 * (n_columns + 1) * math.log(mass + 1.0)
    return _penalty(n_leaves, mass, positive_fraction, each)


def _penalty(n_leaves: Integers, mass: float, positive_fraction: float, each: float) -> Floats:
    """Return the complexity penalty for a log shattering coefficient of `each` per leaf."""
    size = math.log(16.0) + each * n_leaves + n_leaves
    return np.asarray(np.sqrt(32.0 * size / mass) / (positive_fraction * (1.0 - positive_fraction)))


def penalty_of_cubes(
    n_leaves: Integers, mass: float, positive_fraction: float, n_cubes: int
) -> Floats:
    """Return the complexity penalty pen(K, n) of trees split by sets of cubes; see `penalty_of_cuts`.

    The term printed as 4K2Jq is 4 K^(2^(J q)): each cube belongs to one of K leaves. Here only cubes with training rows
    count, as no other changes anything on those.

    Clémençon, Depecker & Vayatis 2011, Proposition 6 (ii).
    """
    size = math.log(4.0) + n_cubes * np.log(n_leaves) + n_leaves
    return np.asarray(
        np.sqrt(size / (2.0 * mass)) / (positive_fraction * (1.0 - positive_fraction))
    )


def choose_subtree(path: PruningPath, penalty: Floats, scale: float) -> int:
    """Return the pruning-path index of the smallest subtree with the greatest AUC - scale · penalty.

    It is the best of all subtrees, not only of those on the path: the penalties are concave in K, and the path has the
    corners of the concave hull of the best AUC for each K. Along each side of the hull, hull - penalty is convex, so
    greatest at a corner.
    """
    value = path.auc - scale * penalty
    best = np.flatnonzero(value >= value.max())
    return int(best[np.argmin(path.n_leaves[best])])


def choose_by_penalty(
    tree: RankingTree, scale: float, splitter: object, max_cuts: int, n_categories: Integers
) -> PrunedTree:
    """Return the subtree by structural AUC maximisation (§4.2), with the paper's penalty times `scale`.

    The penalty depends on the splitter that the tree was grown with; max_cuts is κ. No rows are held out, so the order
    of the leaves is the tree's own.
    """
    check_splitter(splitter)
    critical = critical_penalties(tree)
    path = trace_path(tree, critical)
    mass = float(tree.positive[0] + tree.negative[0])
    positive_fraction = float(tree.positive[0]) / mass
    if splitter in ("axis", "leafrank"):
        penalty = penalty_of_cuts(
            path.n_leaves, mass, positive_fraction, len(n_categories), max_cuts
        )
    elif splitter in ("logistic", "linear_svm"):
        n_columns = count_columns(n_categories)
        penalty = penalty_of_hyperplanes(path.n_leaves, mass, positive_fraction, n_columns)
    else:
        assert isinstance(tree.rules, GridRules)  # the remaining tree
        penalty = penalty_of_cubes(path.n_leaves, mass, positive_fraction, len(tree.rules.cubes))
    kept = choose_subtree(path, penalty, scale)
    return PrunedTree(tree.collapse(critical <= path.penalty[kept]), path, "tree")


def check_splitter(splitter: object) -> None:
    """Raise InvalidParameter for a splitter without a complexity penalty: forests and users' estimators."""
    if splitter not in PENALISED:
        shown = repr(splitter) if isinstance(splitter, str) else type(splitter).__name__
        raise InvalidParameter(
            f"pruning='structural' supports only the splitters {', '.join(PENALISED)}, got {shown}"
        )
