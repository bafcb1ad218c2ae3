"""The weights of (row, label) pairs: the multilabel boosters' examples."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.checkpoint import Resumable
from core.errors import InvalidData
from core.ranker import Floats

from .label_kernels import rescale_sorts, sum_sorts
from .line import dot

Bools = npt.NDArray[np.bool_]


class Sides(NamedTuple):
    """Where a weak ranker is high: above the cut for the labels whose vote is 1, else below it."""

    is_above: Bools
    votes: npt.NDArray[np.int8]


class LabelWeights(Resumable):
    """The weights v ∝ w e^{-f} of (row, label) pairs that are had, v ∝ w e^{f} of those that are not.

    Either kind sums to 1, so that nothing underflows; F₊ and F₋ keep their logarithms.

    Parameters
    ----------
    has : ndarray of shape (n_rows, n_labels), bool
    weight : ndarray of shape (n_rows,), float64
    """

    changing = ("v", "_log_f_plus", "_log_f_minus")

    def __init__(self, has: Bools, weight: Floats) -> None:
        self.has = np.ascontiguousarray(has)
        spread = np.repeat(weight[:, None], has.shape[1], axis=1)
        totals = spread[has].sum(), spread[~has].sum()
        self.v: Floats = np.ascontiguousarray(spread / np.where(has, *totals))
        self._log_f_plus, self._log_f_minus = map(math.log, totals)

    @property
    def log_f_plus(self) -> float:
        """Logarithm of F₊."""
        return self._log_f_plus

    @property
    def log_f_minus(self) -> float:
        """Logarithm of F₋."""
        return self._log_f_minus

    @property
    def share_p(self) -> float:
        """F₊'s share of F₊ + F₋."""
        return 1.0 / (1.0 + math.exp(min(self._log_f_minus - self._log_f_plus, 700.0)))

    def sums(self, sides: Sides) -> tuple[float, float, float, float]:
        """Sum the weights that are had and high, had and low, not had and high, not had and low."""
        had_high, had_low, other_high, other_low = sum_sorts(self.v, self.has, *sides).tolist()
        return had_high, had_low, other_high, other_low

    def grow(self, sides: Sides, rise_high: float, rise_low: float) -> None:
        """Let f grow by one amount where a weak ranker is high, by another where it is low."""
        rises = np.array([-rise_high, -rise_low, rise_high, rise_low])
        factors = np.exp(rises)
        products = factors * self.sums(sides)
        totals = float(products[:2].sum()), float(products[2:].sum())
        factors[:2] /= totals[0]
        factors[2:] /= totals[1]
        rescale_sorts(self.v, self.has, *sides, factors)
        self._log_f_plus += math.log(totals[0])
        self._log_f_minus += math.log(totals[1])


class ExampleWeights(LabelWeights):
    """The weights of pairs of a label had and one not had by the same row (Schapire & Singer).

    Their loss is L = Σ_i w_i/(|Y_i| |Ȳ_i|) Σ_{l in Y_i} Σ_{l' not in Y_i} e^{-(f(x_i, l) - f(x_i, l'))},
    over Σ_i w_i; rows without such a pair count for nothing. With V_i the sum of a row's v of either
    kind, a row weighs c_i V_i₊ V_i₋ times F₊F₋, and no pair is listed.

    Raises
    ------
    InvalidData
        No row has some labels but not all.
    """

    def __init__(self, has: Bools, weight: Floats) -> None:
        super().__init__(has, weight)
        n_had = has.sum(axis=1)
        n_pairs = n_had * (has.shape[1] - n_had)
        if not n_pairs.any():
            raise InvalidData("pairs 'example' needs a row that has some labels, but not all")
        paired = n_pairs > 0
        self._c = np.zeros(len(weight))
        self._c[paired] = 1.0 / (weight[paired] * n_pairs[paired] * weight[paired].sum())

    @property
    def log_f_plus(self) -> float:
        """Half of ln L, and half of ln(F₊/F₋), which is what the intercept is made of."""
        return 0.5 * (self._log_loss + self._log_f_plus - self._log_f_minus)

    @property
    def log_f_minus(self) -> float:
        """The other half of ln L, less half of ln(F₊/F₋)."""
        return 0.5 * (self._log_loss - self._log_f_plus + self._log_f_minus)

    @property
    def _log_loss(self) -> float:
        total = dot(self._c, self._sum(self.has) * self._sum(~self.has))
        return self._log_f_plus + self._log_f_minus + math.log(max(total, 1e-300))

    def signed(self) -> Floats:
        """Give ±½ of the weight of all pairs that a (row, label) is in, the pairs' whole being 1."""
        had, not_had = self._sum(self.has), self._sum(~self.has)
        scale = self._scale(had * not_had)[:, None]
        partners = np.where(self.has, not_had[:, None], -had[:, None])
        return 0.5 * self.v * partners * scale

    def weigh(self, sides: Sides) -> tuple[float, float]:
        """Give the weight of the pairs that a weak ranker in {0, 1} orders rightly and wrongly."""
        has, is_high = self.has, sides.is_above[:, None] == (sides.votes > 0)
        scale = self._scale(self._sum(has) * self._sum(~has))
        right = self._sum(has & is_high) * self._sum(~has & ~is_high)
        wrong = self._sum(has & ~is_high) * self._sum(~has & is_high)
        return dot(right, scale), dot(wrong, scale)

    def _sum(self, cells: Bools) -> Floats:
        return np.asarray(np.where(cells, self.v, 0.0).sum(axis=1))

    def _scale(self, products: Floats) -> Floats:
        return self._c / max(dot(self._c, products), 1e-300)
