"""Structural AUC maximisation: prune by a penalty that the number of leaves and rows alone decide.

The printed penalties bound a deviation with high probability, whatever the distribution; they are far
above what pruning wants, and tell nothing as they are. The paper leaves their constants to resampling
(§8). So they are scaled, by `SCALE`.
"""

import math

import numpy as np

from core.classifiers.design import count_columns
from core.errors import InvalidParameter
from core.ranker import Floats

from .grid import GridRules
from .growers import GrowthOptions
from .preorder import Integers
from .pruning import PruningPath, critical_penalties, trace_path
from .selection import Chosen
from .tree import Tree

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
    """Find the subtree of greatest AUC - scale · penalty; the smallest of several.

    Parameters
    ----------
    path : PruningPath
    penalty : ndarray of shape (n_subtrees,), float64
        Of each subtree of the path.
    scale : float
        1 for the printed penalty.

    Returns
    -------
    int
        Its number on the path.

    Notes
    -----
    Among all subtrees, not only those of the path: the penalties are concave in K, and the path
    holds the corners of the concave hull of the best AUC for each K. Along each side of the hull,
    hull - penalty is convex, so greatest at a corner.
    """
    value = path.auc - scale * penalty
    best = np.flatnonzero(value >= value.max())
    return int(best[np.argmin(path.n_leaves[best])])


def choose_by_penalty(
    tree: Tree, scale: float, options: GrowthOptions, n_categories: Integers
) -> Chosen:
    """Prune a tree by structural AUC maximisation (§4.2).

    Parameters
    ----------
    tree : Tree
    scale : float
        Times the printed penalty.
    options : GrowthOptions
        How the tree was grown, which decides what there was to choose from.
    n_categories : ndarray of shape (n_features,), int64

    Returns
    -------
    Chosen
        No rows were held out: the order is the tree's own.

    Raises
    ------
    InvalidParameter
        There is no penalty for the splitter: nothing bounds what a forest or a foreign classifier can say.
    """
    critical = critical_penalties(tree)
    path = trace_path(tree, critical)
    penalty = printed_penalty(tree, path.n_leaves, options, n_categories)
    kept = choose_subtree(path, penalty, scale)
    return Chosen(tree.collapse(critical <= path.penalty[kept]), path, "tree")


def printed_penalty(
    tree: Tree, n_leaves: Integers, options: GrowthOptions, n_categories: Integers
) -> Floats:
    """Give pen(K, n) of a tree's subtrees, by what its nodes ask."""
    check_splitter(options.splitter)
    mass = float(tree.positive[0] + tree.negative[0])
    share = float(tree.positive[0]) / mass
    if options.splitter in ("axis", "leafrank"):
        n_cuts = options.shape().max_leaves - 1
        return penalty_of_cuts(n_leaves, mass, share, len(n_categories), n_cuts)
    if options.splitter in ("logistic", "linear_svm"):
        return penalty_of_hyperplanes(n_leaves, mass, share, count_columns(n_categories))
    assert isinstance(tree.rules, GridRules)  # what is left
    return penalty_of_cubes(n_leaves, mass, share, len(tree.rules.cubes))


def check_splitter(splitter: object) -> None:
    """Raise InvalidParameter for a splitter that there is no penalty for."""
    if splitter not in PENALISED:
        shown = repr(splitter) if isinstance(splitter, str) else type(splitter).__name__
        raise InvalidParameter(
            f"pruning='structural' has a penalty for the splitters {', '.join(PENALISED)}, "
            f"got {shown}"
        )
