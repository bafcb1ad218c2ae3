"""Trees on listed pairs: every item once as the better one of its pairs, once as the worse one.

Let B_i be the weight of the pairs in which item i is the better one, W_i that of those in which it
is the worse one; each sums to 1. If the leaves l of a tree raise their items by c_l, a pair with
its better item in leaf a and its worse one in leaf b is multiplied by

    e^{-(c_a - c_b)} <= ½ e^{-2 c_a} + ½ e^{2 c_b},

the mean of a geometric sum being the greater. Summed over all pairs, F̃ becomes at most

    ½ Σ_l (B_l e^{-2 c_l} + W_l e^{2 c_l}),

in which leaves are on their own: no pair between two of them is left. So a tree is grown as of two
classes with the masses B and W, by the fall of Σ_l √(B_l W_l), and its leaves step by ½ ln(B_l/W_l)
or (B_l - W_l)/(B_l + W_l). With x = (B - W)/(B + W), a leaf's part of the bound is at most what it
was, ½ (B + W), as long as tanh |c| <= |x| and c has x's sign. Both steps are so, as is any share of
them and any smoothing of them: **F̃ never rises**, whatever the pairs, cycles included. For the pairs
of two classes B and W are the classes' own masses, and the trees those of `fit`: there the full step
is the best one.

References
----------
C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
RankBoost", JMLR 10, 2009: eq. 1, for the loss of general crucial pairs.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from core.ranker import Floats
from core.trees.passes import Passes

from .kinds import KINDS, CollectingLearner
from .pairs import ItemPairs
from .tree_losses import PairLoss
from .tree_rules import RankingTreeRule

if TYPE_CHECKING:
    from .booster import Booster


class ListedPairLoss(PairLoss):
    """The exponential loss of listed pairs, whose rows are the items in both their roles.

    Parameters
    ----------
    passes : Passes
        Over the items that are better in some pair, then over those that are worse in some.
    pairs : ItemPairs
    items : ndarray of shape (n_rows,), int64
        The item of each of these rows.
    rule : RankingTreeRule

    Attributes
    ----------
    weights : ndarray of shape (1, n_rows), float64
        B of the better items, then W of the worse ones.
    log_f_plus, log_f_minus : float
        Half the logarithm of F̃ each: two classes would share it out as F₊ and F₋.

    Notes
    -----
    A step is O(n_pairs). Memory: 16 bytes a pair, and as much again during a step.
    """

    changing = (*PairLoss.changing, "_d")

    def __init__(
        self, passes: Passes, pairs: ItemPairs, items: npt.NDArray[np.int64], rule: RankingTreeRule
    ) -> None:
        total = float(pairs.weight.sum())
        self._better, self._worse = pairs.better, pairs.worse
        self._d = pairs.weight / total
        self._items = items
        self._n_items = len(pairs.rows)
        self._n_better = passes.table.n_positives
        super().__init__(
            passes, self._masses_of_roles(), leaf=rule.leaf, smoothing=rule.smoothing, push=1.0
        )
        self.log_f_plus = self.log_f_minus = 0.5 * math.log(total)

    def update(self, values: Floats) -> None:
        """Let the scores grow by a value per leaf, of the tree that rows were last sent through."""
        rise = np.empty(self._n_items)
        rise[self._items] = values[self._passes.leaves]  # an item's two rows lie in the same leaf
        self._d *= np.exp(rise[self._worse] - rise[self._better])
        shrink = float(self._d.sum())
        self._d /= shrink
        self.log_f_plus += 0.5 * math.log(shrink)
        self.log_f_minus = self.log_f_plus
        self.weights[0] = self._masses_of_roles()
        self._rescale(np.ones((2, len(values))))

    def _masses_of_roles(self) -> Floats:
        b = np.bincount(self._better, self._d, self._n_items)
        w = np.bincount(self._worse, self._d, self._n_items)
        m = self._n_better
        return np.concatenate([b[self._items[:m]], w[self._items[m:]]])


def start_trees(
    booster: "Booster", rule: RankingTreeRule, X: Floats, pairs: ItemPairs
) -> CollectingLearner:
    """Lay out the items of listed pairs for trees.

    Parameters
    ----------
    booster : Booster
    rule : RankingTreeRule
    X : ndarray of shape (n_rows, n_features), float64
    pairs : ItemPairs

    Returns
    -------
    CollectingLearner
        Where bins are cut, and in the mean score, an item counts once for each role it has.
    """
    better, worse = np.unique(pairs.better), np.unique(pairs.worse)
    items = np.concatenate([better, worse]).astype(np.int64)
    is_better = np.arange(len(items)) < len(better)
    listed = _ListedRule(rule, pairs, items)
    # An item's classes are its roles in pairs: no share of positives that others could be judged by.
    booster = booster._with(target_encoding=None)
    return KINDS["tree"].start(
        booster, listed, X[pairs.rows[items]], is_better, np.ones(len(items))
    )


class _ListedRule:
    """What the kind "tree" asks of a rule."""

    def __init__(
        self, rule: RankingTreeRule, pairs: ItemPairs, items: npt.NDArray[np.int64]
    ) -> None:
        self._rule, self._pairs, self._items = rule, pairs, items

    def make_loss(self, passes: Passes, weight: Floats) -> ListedPairLoss:
        """Give the loss at f = 0; every row counts once, whatever its pairs weigh."""
        return ListedPairLoss(passes, self._pairs, self._items, self._rule)
