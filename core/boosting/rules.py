"""A rule per algorithm: which cut the scan looks for, what weak ranker it makes, how far to go."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from core.coding import Criterion
from core.ranker import Floats

from .columns import Column
from .weak_learner import WeakRanker
from .weights import Masses

# The least share of the weight that counts as wrong when nothing is: the spacing of doubles.
NEVER_WRONG = 2.0**-52


class LoopState(NamedTuple):
    """What a step may depend on besides its weak ranker.

    Attributes
    ----------
    log_f_plus, log_f_minus : float
        See `WeakLearner.log_f`.
    norm : float
        ‖λ‖₁, the sum of the steps.
    """

    log_f_plus: float
    log_f_minus: float
    norm: float


class Hypothesis(NamedTuple):
    """The weak ranker that a rule makes of a cut, and how well it does.

    Attributes
    ----------
    sign : int
        1: h is `high` above the cut and `low` below it; -1: the reverse.
    high, low : float
    d_plus, d_minus : float
        Mass that it gets right and wrong: pairs for a ranking rule, rows for a classifying one.
    """

    sign: int
    high: float
    low: float
    d_plus: float
    d_minus: float


@dataclass(kw_only=True)
class Rule(ABC):
    """What tells one booster from another, whatever its weak rankers: its step and its loss.

    Parameters
    ----------
    learning_rate : float
        Share of the step that is taken.
    smoothing : float
        ε in ½ ln((d+ + ε)/(d- + ε)).
    """

    learning_rate: float = 1.0
    smoothing: float = 0.0

    def step(self, found: WeakRanker, state: LoopState) -> float:
        """Give alpha, the step along a weak ranker: eq. 4 of Rudin & Schapire 2009, smoothed."""
        return self.learning_rate * log_ratio(found.d_plus, found.d_minus, self.smoothing)

    @abstractmethod
    def loss(self, log_f: Floats, start: Floats) -> float:
        """Give the loss from (ln F₊, ln F₋), now and at the start."""

    def intercept(self, log_f: Floats) -> float:
        """Give what is added to f, so that 0 parts the classes."""
        return 0.0


class RowLossRule(Rule):
    """A rule that lowers AdaBoost's loss, a sum over rows."""

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Give F = F₊ + F₋ = Σ w_i e^{-y_i f(x_i)}."""
        return math.exp(log_f[0]) + math.exp(log_f[1])


class PairLossRule(Rule):
    """A rule that lowers RankBoost's loss, a sum over pairs."""

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Give F̃ = F₊ F₋ = Σ w_i w_k e^{-(f(x_i) - f(x_k))}, a sum over pairs, not a mean."""
        return math.exp(log_f[0] + log_f[1])

    def intercept(self, log_f: Floats) -> float:
        """Give ½ ln(F₊/F₋), by Corollary 13."""
        return float(0.5 * (log_f[0] - log_f[1]))


class StumpRule(Rule):
    """A rule for weak rankers that are cuts of a feature.

    Attributes
    ----------
    criterion : Criterion
        What the scan looks for.
    """

    criterion: Criterion

    @abstractmethod
    def hypothesis(self, masses: Masses, share_p: float) -> Hypothesis:
        """Make a weak ranker of a cut.

        Parameters
        ----------
        masses : Masses
            On both sides of the cut.
        share_p : float
            The positives' share of all rows' weight.
        """

    def constant_hypothesis(self, share_p: float) -> Hypothesis | None:
        """Make a weak ranker that is the same everywhere; None where the rule has no use for it."""
        return None


@dataclass(kw_only=True)
class RankingRule(PairLossRule, StumpRule):
    """Weak rankers in {0, 1}, judged by the pairs that they order: RankBoost and its kin."""

    criterion: Criterion

    def hypothesis(self, masses: Masses, share_p: float) -> Hypothesis:
        """Make a weak ranker of a cut, by the pairs of a positive and a negative."""
        return self.pair_hypothesis(
            masses.above_p * masses.below_n, masses.above_n * masses.below_p
        )

    def pair_hypothesis(self, right: float, wrong: float) -> Hypothesis:
        """Take of a stump and its reverse the one with d+ >= d-, so that alpha is positive."""
        sign = 1 if right >= wrong else -1
        return Hypothesis(sign, 1.0, 0.0, max(right, wrong), min(right, wrong))

    def step(self, found: WeakRanker, state: LoopState) -> float:
        """Step by eq. 4, smoothed; along a real-valued column by a line search for the same."""
        if isinstance(found, Column) and found.line is not None:
            return self.learning_rate * found.line.descend(self.smoothing)
        return super().step(found, state)


def log_ratio(d_plus: float, d_minus: float, smoothing: float = 0.0) -> float:
    """Give ½ ln((d+ + ε)/(d- + ε)).

    Plain, it is infinite where d- = 0: there the step is cut off at ½ ln(2^52) ≈ 18.
    """
    if smoothing == 0.0 and d_minus == 0.0:
        smoothing = NEVER_WRONG
    return 0.5 * math.log((d_plus + smoothing) / (d_minus + smoothing))


class Losses(NamedTuple):
    """AdaBoost's loss F = F₊ + F₋, the F-skew F₊ - F₋ and RankBoost's loss F̃ = F₊ F₋, by round."""

    f: Floats
    f_skew: Floats
    f_tilde: Floats


def losses_of(log_f: Floats, intercepts: Floats) -> Losses:
    """Give the losses of f + intercept.

    Parameters
    ----------
    log_f : ndarray of shape (n, 2), float64
        ln F₊ and ln F₋ of f.
    intercepts : ndarray of shape (n,), float64
    """
    with np.errstate(over="ignore", invalid="ignore"):
        plus, minus = np.exp(log_f[:, 0] - intercepts), np.exp(log_f[:, 1] + intercepts)
        return Losses(plus + minus, plus - minus, np.exp(log_f.sum(axis=1)))
