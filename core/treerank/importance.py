"""How much each feature gains in a ranking tree whose nodes ask cuts along the axes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from core.ranker import Floats

from .cuts import CutRules
from .tree import Tree


class FeatureGains(NamedTuple):
    """What the cuts on each feature gain, in training AUC.

    Attributes
    ----------
    squared : ndarray of shape (n_features,), float64
        I_j = Σ ΔAUC² over the cuts on feature j: the paper's squared importance.
    linear : ndarray of shape (n_features,), float64
        Σ ΔAUC, in units of AUC.
    """

    squared: Floats
    linear: Floats


def sum_gains(trees: Sequence[Tree], n_features: int) -> FeatureGains:
    """Sum up, over all cuts of all nodes, what each feature gains; of several trees the mean.

    Parameters
    ----------
    trees : sequence of Tree
        With rules of class `CutRules`.
    n_features : int

    Returns
    -------
    FeatureGains

    Notes
    -----
    ΔAUC of a cut of a cell C into C' and the rest is |α(C) β(C') - β(C) α(C')| / 2, with shares of
    all training rows, so that a cut near the root of the ranking tree weighs more than the same cut
    further down. All cuts that LeafRank made in a node count, also those whose leaves went to one side
    and that are no part of the rule. Hence the linear sums may add up to more than what the tree gains
    over ½. Artifacts of before hold the others alone.

    References
    ----------
    Clémençon, Depecker & Vayatis 2011, §5.1.
    """
    squared, linear = np.zeros((2, n_features))
    for tree in trees:
        rules = tree.rules
        assert isinstance(rules, CutRules)
        delta = rules.gains(tree.positive[0], tree.negative[0]) / 2.0
        cuts = rules.feature >= 0
        np.add.at(squared, rules.feature[cuts], delta[cuts] ** 2)
        np.add.at(linear, rules.feature[cuts], delta[cuts])
        delta = rules.merged_gain / tree.positive[0] / tree.negative[0] / 2.0
        np.add.at(squared, rules.merged_feature, delta**2)
        np.add.at(linear, rules.merged_feature, delta)
    return FeatureGains(squared / len(trees), linear / len(trees))
