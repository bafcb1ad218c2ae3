"""A rule per algorithm: which cut the scan looks for, what weak ranker it makes, how far to go."""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from core.coding import Criterion
from core.ranker import Floats

from .line import Column
from .loop import Found, SoFar
from .weights import Masses

# The least share of the weight that counts as wrong when nothing is: the spacing of doubles.
NEVER_WRONG = 2.0**-52


class Verdict(NamedTuple):
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


class Rule(ABC):
    """What tells one booster from another, whatever its weak rankers: its step and its loss."""

    @abstractmethod
    def step(self, found: Found, so_far: SoFar) -> float:
        """Give alpha, the step along a weak ranker."""

    @abstractmethod
    def loss(self, log_f: Floats, start: Floats) -> float:
        """Give the loss from (ln F₊, ln F₋), now and at the start."""

    @abstractmethod
    def intercept(self, log_f: Floats) -> float:
        """Give what is added to f, so that 0 parts the classes."""


class CutRule(Rule):
    """A rule for weak rankers that are cuts of a feature.

    Attributes
    ----------
    criterion : Criterion
        What the scan looks for.
    """

    criterion: Criterion

    @abstractmethod
    def judge(self, masses: Masses, share_p: float) -> Verdict:
        """Make a weak ranker of a cut.

        Parameters
        ----------
        masses : Masses
            On both sides of the cut.
        share_p : float
            The positives' share of all rows' weight.
        """

    def judge_constant(self, share_p: float) -> Verdict | None:
        """Make a weak ranker that is the same everywhere; None where the rule has no use for it."""
        return None


class RankingRule(CutRule):
    """Weak rankers in {0, 1}, judged by the pairs that they order: RankBoost and its kin.

    Parameters
    ----------
    criterion : Criterion
    learning_rate : float
        Share of the step that is taken.
    smoothing : float
        ε in ½ ln((d+ + ε)/(d- + ε)).
    """

    def __init__(
        self, criterion: Criterion, learning_rate: float = 1.0, smoothing: float = 0.0
    ) -> None:
        self.criterion = criterion
        self.learning_rate = learning_rate
        self.smoothing = smoothing

    def judge(self, masses: Masses, share_p: float) -> Verdict:
        """Make a weak ranker of a cut, by the pairs of a positive and a negative."""
        return self.judge_pairs(masses.above_p * masses.below_n, masses.above_n * masses.below_p)

    def judge_pairs(self, right: float, wrong: float) -> Verdict:
        """Take of a stump and its reverse the one with d+ >= d-, so that alpha is positive."""
        return Verdict(1 if right >= wrong else -1, 1.0, 0.0, max(right, wrong), min(right, wrong))

    def step(self, found: Found, so_far: SoFar) -> float:
        """Step by eq. 4, smoothed; along a real-valued column by a line search for the same."""
        if isinstance(found, Column) and found.line is not None:
            return self.learning_rate * found.line.descend(self.smoothing)
        return self.learning_rate * log_ratio(found.d_plus, found.d_minus, self.smoothing)

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Give F̃ = F₊ F₋ = Σ w_i w_k e^{-(f(x_i) - f(x_k))}, a sum over pairs, not a mean."""
        return math.exp(log_f[0] + log_f[1])

    def intercept(self, log_f: Floats) -> float:
        """Give ½ ln(F₊/F₋), by Corollary 13."""
        return float(0.5 * (log_f[0] - log_f[1]))


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
