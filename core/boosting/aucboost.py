"""AUCBoost (Long & Servedio 2007, Section 3): any weak ranker, boosted by AdaBoost."""

import math
from typing import Annotated, Literal

import numpy as np
from annotated_doc import Doc

from core.classifiers import ClassifierName
from core.coding import Criterion, two_sided
from core.coding.options import MaxBins
from core.ranker import Floats

from .booster import Booster
from .classifiers import CLASSIFIER_KINDS
from .estimators import ESTIMATORS, WeakEstimator
from .kinds import KINDS, Kind
from .loop import Found, SoFar
from .options import (
    EarlyStoppingRounds,
    LearningRate,
    NRounds,
    RandomState,
    ValidationFraction,
)
from .rules import CutRule, Verdict, log_ratio
from .weights import Masses


class AUCBoost(Booster):
    """Boost any weak ranker: each is cut into a two-sided classifier, and AdaBoost adds those up.

    AdaBoost starts from ½D₊ + ½D₋, half the weight on each class. Each round's weak ranker is cut
    where TPR - FPR is greatest; a coin on one side of the cut makes it err alike on both classes
    (Lemma 4), so that any edge over a random ranking, γ = AUC - ½, becomes an advantage of γ/4 at
    least over a random classifier, and AdaBoost can boost it.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        d_minus is the error of the two-sided classifier. For stumps see `stump_sum.ROUND`.
    loss_ : ndarray of shape (n_taken,), float64
        ∏ Z_s up to each round, the mean of e^{-y f} with half the weight on each class; its square
        bounds 1 - AUC on the rows trained on.
    z_ : ndarray of shape (n_taken,), float64
        Z_t, by which each round multiplies that loss.
    intercept_ : float
        The sum of what the weak classifiers give to every row alike; `predict` cuts at 0.
    stop_reason_ : {"n_rounds", "no_edge", "perfect_ranker", "validation", "stopped"}
        Why there are no more rounds.
    f_, f_skew_, f_tilde_, validation_auc_ : ndarray of float64
        See `booster.Booster`.

    Notes
    -----
    Departures from the paper. The coin's expected value, in [-1, 1], stands for the coin: scores are
    the same in every run and finer, and the edge is the same. The bound ∏ Z_t² is on the AUC of the
    scores f; Theorem 2 states it for sign(f). Of several cuts equally good, that of an estimator's
    scores is the one whose errors differ least; stumps follow the scan's order.

    The coin is the price of taking any weak ranker: it slows boosting. On the same stumps `RankBoost`
    gets further in as many rounds.

    With stumps O(n_rounds · n_features · n_samples) after one sort of each column; else n_rounds
    fits of the estimator. Sums of stumps and of classifiers with names can be saved.

    References
    ----------
    P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007: Theorem 2,
    Lemma 4.
    """

    def __init__(
        self,
        *,
        n_rounds: NRounds = 100,
        weak_ranker: Annotated[
            Literal["stump"] | ClassifierName | WeakEstimator,
            Doc(
                "What a round adds: a stump; a classifier, 'logistic', 'linear_svm' or "
                "'random_forest'; or in Python any scikit-learn estimator that takes sample weights "
                "and has decision_function or predict_proba."
            ),
        ] = "stump",
        learning_rate: LearningRate = 1.0,
        max_bins: MaxBins = 255,
        early_stopping_rounds: EarlyStoppingRounds = None,
        validation_fraction: ValidationFraction = 0.2,
        random_state: RandomState = 0,
    ) -> None:
        self.n_rounds = n_rounds
        self.weak_ranker = weak_ranker
        self.learning_rate = learning_rate
        self.max_bins = max_bins
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @property
    def z_(self) -> Floats:
        """Z_t of each round."""
        loss = np.concatenate([[1.0], self.loss_])
        return np.asarray(loss[1:] / loss[:-1])

    def _kind(self) -> Kind:
        if self.weak_ranker == "stump":
            return KINDS["stump"]
        if isinstance(self.weak_ranker, str):
            return CLASSIFIER_KINDS[self.weak_ranker]
        return ESTIMATORS

    def _rule(self) -> "BalancedRule":
        return BalancedRule(self.learning_rate)


class BalancedRule(CutRule):
    """Cuts made two-sided by Lemma 4, judged with half the weight on each class."""

    criterion = Criterion.YOUDEN

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def judge(self, masses: Masses, share_p: float) -> Verdict:
        """Toss Lemma 4's coin on one side of the cut."""
        if masses.above_p >= masses.above_n:
            sign, h = 1, two_sided(masses.below_p, masses.above_n)
        else:
            sign, h = -1, two_sided(masses.above_p, masses.below_n)
        return Verdict(sign, h.above, h.below, 1.0 - h.error, h.error)

    def step(self, found: Found, so_far: SoFar) -> float:
        """Step by ½ ln((1 - ε)/ε)."""
        return self.learning_rate * log_ratio(found.d_plus, found.d_minus)

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Give ½ F₊/W₊ + ½ F₋/W₋, W the classes' weights at the start."""
        return 0.5 * (math.exp(log_f[0] - start[0]) + math.exp(log_f[1] - start[1]))

    def intercept(self, log_f: Floats) -> float:
        """Give 0: the classes are balanced from the start."""
        return 0.0
