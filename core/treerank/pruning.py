"""Pruning: which subtree of a grown ranking tree to keep, and how its leaves rank.

The AUC of a subtree is ½ + ½ Σ Λ over its inside nodes, on whatever rows the Λ are counted. So a
penalty of λ per leaf (eq. 13) asks of each node whether what hangs below it adds more than λ per
leaf, and all there is to know of the answers, for every λ, is one number per node: the λ from which
on it is a leaf. λ is given, or chosen by folds (§4.1); rows held out choose a subtree themselves
(eq. 12); or a penalty that the number of leaves and rows alone decide (§4.2) does.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base.ranker import Floats, Groups
from core.base.splits import draw_folds, draw_part, number_inseparable
from core.base.state import Array, Constraint, read_state
from core.classifiers import count_columns
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.kernels import kernel

from .grid import GridRules
from .growth import Sample
from .tree import Booleans, Integers, LeafOrder, Tree


def _along(name: str) -> Array:
    return Array("n_subtrees", name=f"pruning_{name}")


_RATE = Constraint("a rate, or NaN", lambda values: ~((values < -1.0) | (values > 2.0)))


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

    penalty: Annotated[Floats, _along("penalty"), Ge(0), Le(1)]
    n_leaves: Annotated[Integers, _along("n_leaves"), Ge(1)]
    auc: Annotated[Floats, _along("auc"), _RATE]
    validation_auc: Annotated[Floats, _along("validation_auc"), _RATE]

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, npt.NDArray[Any]],
        known: Mapping[str, Any],
        meta: Mapping[str, Any],
    ) -> "PruningPath":
        """Read a path; see `State.from_arrays`."""
        path = cls(**read_state(cls, arrays, meta, known))
        if not len(path.penalty):
            raise ArtifactError("pruning_penalty must hold at least one value")
        return path


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
    """List the subtrees of a tree that are best for some penalty, by its `critical_penalties`."""
    inside = ~tree.is_leaf
    penalty = np.unique(np.concatenate([[0.0], critical[inside]]))
    n_inside = sum_above(critical, np.where(inside, 1.0, 0.0), penalty)
    auc = auc_along(critical, tree.gain, penalty)
    missing = np.full(len(penalty), np.nan)
    return PruningPath(penalty, np.rint(n_inside).astype(np.int64) + 1, auc, missing)


def keep_best(tree: Tree, penalty: float) -> Tree:
    """Prune a tree to the smallest subtree of greatest AUC - penalty · n_leaves (eq. 13), on its own rows.

    0 keeps all, splits that gain nothing, too.
    """
    return tree.collapse(critical_penalties(tree) <= penalty) if penalty else tree


def sum_above(critical: Floats, values: Floats, penalties: Floats) -> Floats:
    """Sum up the values of the nodes that are still inside at each penalty."""
    order = np.argsort(-critical, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(values[order])])
    return np.asarray(sums[np.searchsorted(-critical[order], -penalties, side="left")])


def weigh_anew(tree: Tree, sample: Sample) -> Tree:
    """Give the same tree with the masses of other rows, of both classes: their Λ may be below 0."""
    leaf = tree.find_leaves(np.ascontiguousarray(sample.X))
    positive, negative = (
        np.asarray(np.bincount(leaf, sample.weight * of_class, tree.n_leaves), np.float64)
        for of_class in (sample.positive, ~sample.positive)
    )
    return Tree(tree.is_leaf, positive, negative, tree.rules)


def best_subtree(tree: Tree, gain: Floats) -> Booleans:
    """Find the subtree of greatest AUC on a pruning sample; the smallest of several (eqs. 11, 12).

    Takes Λ of each node on that sample (see `weigh_anew`), gives which nodes to collapse. What a node's subtree adds
    is Λ and what its children's add, or nothing: O(n_nodes).
    """
    adds = np.zeros(tree.n_nodes)
    for node in np.flatnonzero(~tree.is_leaf)[::-1].tolist():  # children before parents
        below = adds[node + 1] + adds[tree.bottom[node]]
        adds[node] = max(gain[node] + below, 0.0)
    return np.asarray((~tree.is_leaf) & (adds == 0.0))


def middles(penalties: Floats) -> Floats:
    """Give a penalty within each interval of a path: geometric means, as CART takes them."""
    beyond = penalties[-1] * 2.0 + 1.0
    following = np.append(penalties[1:], beyond)
    return np.asarray(np.sqrt(penalties * following))


def auc_along(critical: Floats, gain: Floats, penalties: Floats) -> Floats:
    """Give the AUC of the best subtree for each penalty, on the rows on which Λ was counted."""
    return np.asarray(0.5 + 0.5 * sum_above(critical, gain, penalties))


# Growing a tree on some rows; the second argument counts the trees grown.
Grow = Callable[[Integers, int], Tree]

MIN_RISE = 1e-9  # an AUC counts as higher only if it is so by more than rounding


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


def choose_by_folds(
    sample: Sample, group: Groups | None, grow: Grow, n_folds: int, seed: int
) -> Chosen:
    """Prune by the penalty per leaf that is best over folds (§4.1): n_folds + 1 trees.

    There are fewer folds where a class has fewer rows, or groups of them; InvalidData where it has one only.
    Penalties are tried at the geometric means of neighbours on the whole tree's path, as in CART; of equal AUC the
    greatest wins, so the smallest tree.
    """
    n_rows = len(sample.positive)
    part = _draw_folds(sample, group, n_folds, seed)
    n_folds = int(part.max()) + 1
    tree = grow(np.arange(n_rows), 0)
    critical = critical_penalties(tree)
    path = trace_path(tree, critical)
    penalties = middles(path.penalty)
    folds, means = [], np.zeros(len(penalties))
    for k in range(n_folds):
        grown = grow(np.flatnonzero(part != k), k + 1)
        held = weigh_anew(grown, sample.take(np.flatnonzero(part == k)))
        fold_critical = critical_penalties(grown)
        means += auc_along(fold_critical, held.gain, penalties) / n_folds
        folds.append((grown, held, fold_critical))
    best = int(np.flatnonzero(means >= means.max() - MIN_RISE)[-1])
    pruned = [
        (grown.collapse(gone), held.collapse(gone))
        for grown, held, fold_critical in folds
        for gone in [fold_critical <= penalties[best]]
    ]
    kept = tree.collapse(critical <= path.penalty[best])
    return Chosen(kept, path._replace(validation_auc=means), better_order(pruned))


def choose_on_held_out(
    sample: Sample, group: Groups | None, grow: Grow, fraction: float, seed: int
) -> Chosen:
    """Prune to the subtree that ranks a part held out best (eq. 12, Remark 10).

    `fraction` of the rows of each class are held out, at least one row and not all; InvalidData where a class has
    one row, or group, only. The tree is grown on the others alone.
    """
    held = draw_part(sample.positive, fraction, seed, _units(sample, group))
    if held is None:
        raise InvalidData(
            "pruning='holdout' needs at least 2 rows of positive weight in each class, which differ and are of "
            "two groups where there are groups"
        )
    tree = grow(np.flatnonzero(~held), 0)
    return choose_on(tree, weigh_anew(tree, sample.take(np.flatnonzero(held))))


def _draw_folds(sample: Sample, group: Groups | None, n_folds: int, seed: int) -> Integers:
    """Draw folds, so many at most that each has rows of both classes."""
    unit = _units(sample, group)
    classes = sample.positive, ~sample.positive
    for k in range(min(n_folds, *(int(own.sum()) for own in classes)), 1, -1):
        part = draw_folds(sample.positive, k, seed, unit)
        if all(np.bincount(part[own], minlength=k).all() for own in classes):
            return part
    raise InvalidData(
        "pruning='cv' needs at least 2 rows of positive weight in each class, which differ and are of "
        "two groups where there are groups"
    )


def _units(sample: Sample, group: Groups | None) -> Integers | None:
    return number_inseparable(sample.X, sample.positive, sample.weight, group)


def choose_on(tree: Tree, held: Tree) -> Chosen:
    """Prune a tree to the subtree that ranks other rows best, whose masses are those of `held`."""
    critical = critical_penalties(tree)
    path = trace_path(tree, critical)
    means = auc_along(critical, held.gain, path.penalty)
    gone = best_subtree(tree, held.gain)
    kept = tree.collapse(gone)
    order = better_order([(kept, held.collapse(gone))])
    return Chosen(kept, path._replace(validation_auc=means), order)


def better_order(trees: Sequence[tuple[Tree, Tree]]) -> LeafOrder:
    """Say which order of the leaves ranks better on average; the tree's own if they are equal.

    Takes pairs: a tree, and the same with the masses of rows held out.
    """
    rise = 0.0
    for grown, held in trees:
        fpr, tpr = held.knots_along(grown.concave_order)
        rise += float(np.trapezoid(tpr, fpr)) - held.auc
    return "concave" if rise > MIN_RISE else "tree"


# The printed penalties bound a deviation with high probability, whatever the distribution; they are far
# above what pruning wants, and tell nothing as they are. The paper leaves their constants to resampling
# (§8). So they are scaled.

SCALE = 0.001
"""Times the printed penalty, this is what prunes as well as cross-validation does.

Calibrated on 92 trees by cuts, grown on 250, 1,000 and 4,000 rows of ten tables (four simulated, one of
them noise; spambase, magic, breast cancer, higgs, satimage, ijcnn1) and judged on 4,000 others or what
there was. Below the best subtree's AUC stand on average, with LeafRank of depth 3 and with single cuts:

    scale 0 (no pruning)    0.0013, 48 leaves    0.0007, 67 leaves
    scale 0.001             0.0027, 12 leaves    0.0015, 23 leaves
    scale 0.0043            0.0075,  5 leaves    0.0071,  8 leaves
    scale 0.03              0.086,   2 leaves    0.049,   3 leaves
    10-fold CV              0.0025, 16 leaves    0.0016, 35 leaves

0.0043 is where the penalty is nearest to the optimism of bootstrapped trees, training AUC less AUC out
of bag: that asks for more than is worth it, as bootstrapped trees meet their rows twice. At 0.001 one
tree does what cross-validation takes eleven for. Splits by half-spaces agree (0.0018 against 0.0019
of CV); those by cubes bear ten times the scale.
"""

PENALISED = ("leafrank", "axis", "grid", "logistic", "linear_svm")


def penalty_of_cuts(
    n_leaves: Integers, mass: float, share: float, n_features: int, n_cuts: int
) -> Floats:
    """Give pen(K, n) of trees whose nodes ask at most κ cuts along the axes.

    Parameters
    ----------
    n_leaves : ndarray of shape (n_subtrees,), int64
        K.
    mass : float
        n, where a row of weight k counts as k rows.
    share : float
        p, the share of positives, between 0 and 1: for its bounds from below and above stands what
        the training rows have.
    n_features : int
        q.
    n_cuts : int
        κ.

    Returns
    -------
    ndarray of shape (n_subtrees,), float64
        As printed, which is vacuous: 0.705 for K = 4 leaves, a million rows, q = 30, κ = 7 and
        p = ½, and 17.8 for p = 0.01. See `choose_subtree` for the scale.

    References
    ----------
    Clémençon, Depecker & Vayatis 2011, Proposition 6 (i).
    """
    each = 2.0 * n_cuts * (math.log(mass + 1.0) + math.log(n_features))
    return _penalty(n_leaves, mass, share, each)


def penalty_of_hyperplanes(n_leaves: Integers, mass: float, share: float, n_columns: int) -> Floats:
    """Give the same of trees whose nodes ask on which side of a hyperplane a row lies.

    Half-spaces of q dimensions shatter at most (n + 1)^(q + 1) ways (Remark 9).
    """
    each = 2.0 * (n_columns + 1) * math.log(mass + 1.0)
    return _penalty(n_leaves, mass, share, each)


def _penalty(n_leaves: Integers, mass: float, share: float, each: float) -> Floats:
    """Give the penalty where the shattering coefficient's logarithm is `each` per leaf."""
    size = math.log(16.0) + each * n_leaves + n_leaves
    return np.asarray(np.sqrt(32.0 * size / mass) / (share * (1.0 - share)))


def penalty_of_cubes(n_leaves: Integers, mass: float, share: float, n_cubes: int) -> Floats:
    """Give pen(K, n) of trees whose nodes ask in which of some cubes a row lies.

    Printed as 4K2Jq, the term is 4 K^(2^(J q)): K leaves to choose from for each cube. Here cubes with
    training rows are counted alone, as no other can make a difference on them.

    References
    ----------
    Clémençon, Depecker & Vayatis 2011, Proposition 6 (ii).
    """
    size = math.log(4.0) + n_cubes * np.log(n_leaves) + n_leaves
    return np.asarray(np.sqrt(size / (2.0 * mass)) / (share * (1.0 - share)))


def choose_subtree(path: PruningPath, penalty: Floats, scale: float) -> int:
    """Find the subtree of a path with the greatest AUC - scale · penalty, by its number; the smallest of several.

    It is so among all subtrees, not only those of the path: the penalties are concave in K, and the path
    holds the corners of the concave hull of the best AUC for each K. Along each side of the hull,
    hull - penalty is convex, so greatest at a corner.
    """
    value = path.auc - scale * penalty
    best = np.flatnonzero(value >= value.max())
    return int(best[np.argmin(path.n_leaves[best])])


def choose_by_penalty(
    tree: Tree, scale: float, splitter: object, max_cuts: int, n_categories: Integers
) -> Chosen:
    """Prune a tree by structural AUC maximisation (§4.2), the printed penalty times a scale.

    The splitter by which the tree was grown decides what there was to choose from; max_cuts is κ. No rows are held
    out: the order is the tree's own.
    """
    check_splitter(splitter)
    critical = critical_penalties(tree)
    path = trace_path(tree, critical)
    mass = float(tree.positive[0] + tree.negative[0])
    share = float(tree.positive[0]) / mass
    if splitter in ("axis", "leafrank"):
        penalty = penalty_of_cuts(path.n_leaves, mass, share, len(n_categories), max_cuts)
    elif splitter in ("logistic", "linear_svm"):
        n_columns = count_columns(n_categories)
        penalty = penalty_of_hyperplanes(path.n_leaves, mass, share, n_columns)
    else:
        assert isinstance(tree.rules, GridRules)  # what is left
        penalty = penalty_of_cubes(path.n_leaves, mass, share, len(tree.rules.cubes))
    kept = choose_subtree(path, penalty, scale)
    return Chosen(tree.collapse(critical <= path.penalty[kept]), path, "tree")


def check_splitter(splitter: object) -> None:
    """Raise InvalidParameter for a splitter without a penalty: nothing bounds what forests and estimators can say."""
    if splitter not in PENALISED:
        shown = repr(splitter) if isinstance(splitter, str) else type(splitter).__name__
        raise InvalidParameter(
            f"pruning='structural' has a penalty for the splitters {', '.join(PENALISED)}, "
            f"got {shown}"
        )
