"""Shared parts of the boosting algorithms: the best split's criterion, the weak ranker made of it, and the step."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from core.base.ranker import Floats
from core.coding import Criterion

from .columns import Column
from .loop import BoostingAlgorithm, LoopState, WeakRanker


class CutMasses(NamedTuple):
    """The class weights on both sides of a split, each summed from its own bins, so that an empty side is exactly 0."""

    above_p: float
    below_p: float
    above_n: float
    below_n: float
    """Mass of positives (p) and negatives (n), each class summing to 1."""
    total_p: float
    total_n: float
    """Sum of the weights of each class."""


class Hypothesis(NamedTuple):
    """The weak ranker that an algorithm derives from a split, with its weights of correct and wrong rows or pairs."""

    sign: int
    """1: h is `high` above the cut and `low` below it; -1: the reverse."""
    high: float
    low: float
    d_plus: float
    d_minus: float
    """Mass that it gets right and wrong: pairs for a ranking algorithm, rows for a classifying one."""


class RowLossAlgorithm(BoostingAlgorithm):
    """An algorithm that lowers AdaBoost's loss, a sum over rows."""

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Return F = F₊ + F₋ = Σ w_i e^{-y_i f(x_i)}."""
        return math.exp(log_f[0]) + math.exp(log_f[1])


class PairLossAlgorithm(BoostingAlgorithm):
    """An algorithm that lowers RankBoost's loss, a sum over pairs."""

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Return F̃ = F₊ F₋ = Σ w_i w_k e^{-(f(x_i) - f(x_k))}, a sum over pairs, not a mean."""
        return math.exp(log_f[0] + log_f[1])

    def intercept(self, log_f: Floats) -> float:
        """Return the intercept that centres f: ½ ln(F₊/F₋), by Corollary 13 of Rudin & Schapire 2009."""
        return float(0.5 * (log_f[0] - log_f[1]))


class StumpAlgorithm(BoostingAlgorithm):
    """A boosting algorithm whose weak rankers are stumps: splits of one feature."""

    criterion: Criterion
    """Which cut is best."""

    push: float = 1.0
    """r: a negative weighs w_k e^{r f(x_k)}; 1 without a push."""

    @abstractmethod
    def hypothesis(self, masses: CutMasses, share_p: float) -> Hypothesis:
        """Return the weak ranker derived from a split; `share_p` is the fraction of all weight on positives."""

    def constant_hypothesis(self, share_p: float) -> Hypothesis | None:
        """Return a weak ranker with the same value for every row; None if the algorithm does not use one."""
        return None


@dataclass(kw_only=True)
class RankingAlgorithm(PairLossAlgorithm, StumpAlgorithm):
    """RankBoost's rules: weak rankers in {0, 1}, chosen by the weight of the pairs that they order correctly.

    With a push r > 1 the loss is F₊^r Σ_k w_k e^{r f(x_k)} = Σ_k w_k (Σ_i w_i e^{-(f(x_i) - f(x_k))})^r over the
    negatives k: those that stand highest weigh more. It factorises as F̃ does. Along a cut its least value is at the
    step ln(d+/d-)/(1 + r).

    C. Rudin, "The P-Norm Push", JMLR 10, 2009: Section 3.
    """

    criterion: Criterion
    push: float = 1.0

    def hypothesis(self, masses: CutMasses, share_p: float) -> Hypothesis:
        """Return the stump of a split, with the weights of the pairs that it orders correctly and wrongly."""
        return self.pair_hypothesis(
            masses.above_p * masses.below_n, masses.above_n * masses.below_p
        )

    def pair_hypothesis(self, right: float, wrong: float) -> Hypothesis:
        """Return the stump or its reverse, whichever has d+ >= d-, so that alpha is not negative."""
        sign = 1 if right >= wrong else -1
        return Hypothesis(sign, 1.0, 0.0, max(right, wrong), min(right, wrong))

    def step(self, weak_ranker: WeakRanker, state: LoopState) -> float:
        """Return the step alpha: eq. 4 of Rudin & Schapire 2009, smoothed; for a real-valued column, by line search."""
        if isinstance(weak_ranker, Column) and weak_ranker.line is not None:
            return self.learning_rate * weak_ranker.line.descend(self.smoothing)
        return 2.0 / (1.0 + self.push) * super().step(weak_ranker, state)

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Return F₊^r Σ_k w_k e^{r f(x_k)}; without a push, r = 1, it is F̃."""
        if self.push == 1.0:
            return super().loss(log_f, start)
        with np.errstate(over="ignore"):
            return float(np.exp(self.push * log_f[0] + log_f[1]))

    def intercept(self, log_f: Floats) -> float:
        """Return the intercept that centres f: ½ ln(F₊/F₋), by Corollary 13; with a push r, ln(F₊/F₋)/(1 + r)."""
        return float((log_f[0] - log_f[1]) / (1.0 + self.push))


class Losses(NamedTuple):
    """AdaBoost's loss F = F₊ + F₋, the F-skew F₊ - F₋ and RankBoost's loss F̃ = F₊ F₋, one value per round."""

    f: Floats
    f_skew: Floats
    f_tilde: Floats


def exponential_losses(log_f: Floats, intercepts: Floats) -> Losses:
    """Return the exponential losses of f + intercept after each round; log_f: (n, 2), ln F₊ and ln F₋ of f."""
    with np.errstate(over="ignore", invalid="ignore"):
        plus, minus = np.exp(log_f[:, 0] - intercepts), np.exp(log_f[:, 1] + intercepts)
        return Losses(plus + minus, plus - minus, np.exp(log_f.sum(axis=1)))
