"""The given columns as weak rankers on listed pairs: the setting of Rudin & Schapire 2009, Figure 1."""

import math
from typing import TYPE_CHECKING

import numpy as np

from core.ranker import Floats

from .columns import ColumnScan, check_range
from .line import Column, Line, known, log_sum
from .pairs import ItemPairs
from .rules import RankingRule

if TYPE_CHECKING:
    from .booster import Booster


class PairColumnLearner(ColumnScan):
    """The items, the weights of their pairs, and the choice among the columns.

    Parameters
    ----------
    rule : RankingRule
    X : ndarray of shape (n_rows, n_features), float64
    pairs : ItemPairs

    Notes
    -----
    Under eq. 3 a round is O(n_pairs + n_features · n_items), for the slope of a column needs no more
    than the items' potentials Σ_k d_ik - Σ_k d_ki. Under eq. 5 it is O(n_features · n_pairs), and each
    column whose values are not 0 and 1 alone takes a line search of some tens of passes.
    """

    changing = ("_f", "_weights", "_log_loss")

    def __init__(self, rule: RankingRule, X: Floats, pairs: ItemPairs) -> None:
        self._items = known(X[pairs.rows])
        self._better, self._worse = pairs.better, pairs.worse
        b, w = self._by_item(pairs.weight)
        super().__init__(rule, self._items, b + w)
        total = float(pairs.weight.sum())
        self._shares = pairs.weight / total
        self._weights = self._shares
        self._log_loss = self._log_total = math.log(total)
        self._f = np.zeros(len(pairs.rows))

    @property
    def log_f_plus(self) -> float:
        """Half the logarithm of F̃: two classes would share it out as F₊ and F₋."""
        return 0.5 * self._log_loss

    @property
    def log_f_minus(self) -> float:
        """The other half, so that the intercept ½ ln(F₊/F₋) is 0."""
        return 0.5 * self._log_loss

    def update(self, found: Column, alpha: float) -> None:
        """Let f grow by alpha h."""
        if found.line is not None:
            found.line.forget()
        self._f += alpha * found.sign * self._items[:, found.feature]
        exponents = self._f[self._worse] - self._f[self._better]
        self._log_loss = self._log_total + log_sum(self._shares, exponents)
        weights = self._shares * np.exp(exponents - exponents.max())
        self._weights = weights / weights.sum()

    def _by_item(self, weights: Floats) -> tuple[Floats, Floats]:
        """Add up the weights of each item's pairs: those in which it is better, and worse."""
        n = len(self._items)
        b, w = np.bincount(self._better, weights, n), np.bincount(self._worse, weights, n)
        return b.astype(np.float64, copy=False), w.astype(np.float64, copy=False)

    def _slopes(self) -> Floats:
        b, w = self._by_item(self._weights)
        slopes: Floats = np.einsum("i,ij->j", b - w, self._items)
        return slopes

    def _line(self, j: int, sign: int) -> Line:
        column = self._items[:, j]
        factor = sign * self._differences(j), self._weights
        return Line((factor,), float(column.max() - column.min()))

    def _binary_pairs(self, j: int, sign: int) -> tuple[float, float]:
        return self._pairs(j, sign)

    def _pairs(self, j: int, sign: int) -> tuple[float, float]:
        differences = sign * self._differences(j)
        right, wrong = self._weights[differences > 0].sum(), self._weights[differences < 0].sum()
        return min(float(right), 1.0), min(float(wrong), 1.0)

    def _differences(self, j: int) -> Floats:
        column = self._items[:, j]
        return column[self._better] - column[self._worse]


def start_columns(
    booster: "Booster", rule: RankingRule, X: Floats, pairs: ItemPairs
) -> PairColumnLearner:
    """Lay out the items for `pair_fit.PAIR_KINDS`."""
    check_range(X[pairs.rows])
    return PairColumnLearner(rule, X, pairs)
