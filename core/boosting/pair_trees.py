"""Weak learner of trees on the weights of pairs (`pair_weights`).

Every row enters once as the better one of its pairs, with their weight B_i, and once as the worse one, with W_i; each
sums to 1. If a tree raises the rows of its leaf l by c_l, F̃ becomes at most ½ Σ_l (B_l e^{-2 c_l} + W_l e^{2 c_l}),
for e^{-(a - b)} <= ½ e^{-2a} + ½ e^{2b}. The bound is a sum over leaves, so a tree is grown as if for two classes with
the weights B and W, and F̃ never rises; docs/papers/rankboost.md has the proof.
"""

from typing import Any

import numpy as np

from core.base.ranker import Callback, Floats, ignore
from core.base.training import TrainingData
from core.trees.grower import TreeGrower

from .data import Integers
from .pair_weights import PairWeights
from .pairs import BoostingData, weigh_pairs
from .plan import BoostingPlan
from .tree_learner import TreeLearner
from .tree_losses import PairLoss, RankingTreeAlgorithm


class WeightedPairLoss(PairLoss):
    """The exponential loss of pairs, bounded leaf by leaf.

    The grower's rows are those that are better in some pair, then those that are worse in some; `rows`, (n_roles,)
    int64, has the row of the pairs of each.
    """

    changing = ("_weights", "_unit", "log_f_plus", "log_f_minus", "_pairs")

    def __init__(
        self,
        grower: TreeGrower,
        pairs: PairWeights,
        rows: Integers,
        algorithm: RankingTreeAlgorithm,
    ) -> None:
        self._pairs, self._rows = pairs, rows
        self._n_better = grower.table.n_positives
        super().__init__(
            grower,
            self._masses_of_roles(),
            leaf=algorithm.leaf,
            smoothing=algorithm.smoothing,
            push=1.0,
        )
        self.log_f_plus, self.log_f_minus = pairs.log_f

    def update(self, values: Floats) -> None:
        factor = np.empty(len(self._pairs.rows))
        # A row's roles lie in the same leaf.
        factor[self._rows] = self._grower.values_of_rows(np.exp(values))
        self._pairs.grow(factor)
        self.log_f_plus, self.log_f_minus = self._pairs.log_f
        self._weights[:, 0] = self._masses_of_roles()
        self._rescale(np.ones((2, len(values))))

    def _masses_of_roles(self) -> Floats:
        better, worse = self._pairs.by_row()
        m = self._n_better
        return np.concatenate([better[self._rows[:m]], worse[self._rows[m:]]])


class PairTreeLearner(TreeLearner):
    """Weak learner that grows the next tree on the rows of pairs, each in its role as better or worse one.

    For the bins, and in the mean score, a row counts once for each of its roles. The roles of a row are its classes:
    only where they are given classes there is target encoding.
    """

    def __init__(
        self,
        parameters: Any,
        algorithm: RankingTreeAlgorithm,
        data: BoostingData,
        plan: BoostingPlan,
        callback: Callback = ignore,
    ) -> None:
        self._pairs = pairs = weigh_pairs(data)
        better, worse = np.flatnonzero(pairs.is_better), np.flatnonzero(pairs.is_worse)
        self._rows = np.concatenate([better, worse]).astype(np.int64)
        rows, is_better = pairs.rows[self._rows], np.arange(len(self._rows)) < len(better)
        self.encodes_targets = pairs.has_classes
        group = None if data.group is None else data.group[rows]
        weight = pairs.bin_weight[self._rows]
        super().__init__(
            parameters,
            algorithm,
            TrainingData(data.X[rows], is_better, weight, data.n_categories, group),
            plan,
            callback,
        )

    def _make_loss(self, algorithm: RankingTreeAlgorithm, weight: Floats) -> WeightedPairLoss:
        return WeightedPairLoss(self._grower, self._pairs, self._rows, algorithm)
