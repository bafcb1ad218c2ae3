"""The rules of boosted trees: the loss they descend, and how far each goes."""

import math
from typing import Protocol

import numpy as np

from core.boosting.rules import LoopState, RankingRule, Rule
from core.boosting.weak_learner import WeakRanker
from core.coding import Criterion
from core.ranker import Floats
from core.trees.grower import Grower

from .tree_losses import Leaf, LogisticLoss, Loss, PairLoss


class TreeRule(Protocol):
    """A rule whose loss trees can descend."""

    @property
    def n_weights(self) -> int:
        """1: the loss gives each row a weight; 2: gradient and curvature."""

    def make_loss(self, grower: Grower, weight: Floats) -> Loss:
        """Give the loss of rows, positives first, before the first tree."""


class RankingTreeRule(RankingRule):
    """RankBoost on trees: each leaf goes its best step, and the score a share of it.

    Parameters
    ----------
    leaf : {"closed", "newton"}
    learning_rate, smoothing, push : float
        See `tree_losses.PairLoss`.
    """

    n_weights = 1

    def __init__(self, leaf: Leaf, learning_rate: float, smoothing: float, push: float) -> None:
        super().__init__(criterion=Criterion.LOSS, learning_rate=learning_rate, smoothing=smoothing)
        self.leaf = leaf
        self.push = push

    def make_loss(self, grower: Grower, weight: Floats) -> Loss:
        """Give the loss at f = 0 of rows, positives first."""
        return PairLoss(grower, weight, leaf=self.leaf, smoothing=self.smoothing, push=self.push)

    def step(self, found: WeakRanker, state: LoopState) -> float:
        """Take the learning rate's share of the best step."""
        return self.learning_rate

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Give F₊^r Σ_k w_k e^{r f(x_k)}; without a push, r = 1, it is F̃."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.push * log_f[0] + log_f[1]))

    def intercept(self, log_f: Floats) -> float:
        """Give ½ ln(F₊/F₋), by Corollary 13; with a push the same of its parts, over 1 + r."""
        return float(log_f[0] - log_f[1]) / (1.0 + self.push)


class LogisticRule(Rule):
    """LogitBoost on trees; the parts of the loss stand where F₊ and F₋ do.

    Parameters
    ----------
    learning_rate, smoothing : float
        See `tree_losses.LogisticLoss`.
    """

    n_weights = 2

    def __init__(self, learning_rate: float, smoothing: float) -> None:
        self.learning_rate = learning_rate
        self.smoothing = smoothing

    def make_loss(self, grower: Grower, weight: Floats) -> Loss:
        """Give the loss of rows, positives first, all scored by the classes' log odds."""
        return LogisticLoss(grower, weight, smoothing=self.smoothing)

    def step(self, found: WeakRanker, state: LoopState) -> float:
        """Take the learning rate's share of the best step."""
        return self.learning_rate

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Give Σ w_i ln(1 + e^{-y_i f(x_i)})."""
        return math.exp(log_f[0]) + math.exp(log_f[1])

    def intercept(self, log_f: Floats) -> float:
        """Give 0: scores are log odds as they are."""
        return 0.0
