"""AUCBoost (Long & Servedio 2007, Section 3): any weak ranker, boosted by AdaBoost."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from annotated_doc import Doc

from core.classifiers import ClassifierName
from core.coding import Criterion, two_sided
from core.coding.bins import MaxBins
from core.ranker import Floats

from .booster import WEAK_LEARNERS, Booster
from .classifiers import ClassifierLearner, EstimatorLearner, WeakEstimator
from .options import (
    EarlyStoppingRounds,
    LearningRate,
    NRounds,
    RandomState,
    ValidationFraction,
)
from .rules import Hypothesis, StumpRule
from .weak_learner import WeakLearner
from .weights import Masses


@dataclass(kw_only=True, eq=False, repr=False)
class AUCBoost(Booster):
    """Boost any weak ranker: each is cut into a two-sided classifier, and AdaBoost adds those up.

    AdaBoost starts from ½D₊ + ½D₋, half the weight on each class. Each round's weak ranker is cut
    where TPR - FPR is greatest; a coin on one side of the cut makes it err alike on both classes
    (Lemma 4), so that any edge over a random ranking, γ = AUC - ½, becomes an advantage of γ/4 at
    least over a random classifier, and AdaBoost can boost it.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        d_minus is the error of the two-sided classifier. For stumps see `stumps.ROUND`.
    loss_ : ndarray of shape (n_taken,), float64
        ∏ Z_s up to each round, the mean of e^{-y f} with half the weight on each class; its square
        bounds 1 - AUC on the rows trained on.
    z_ : ndarray of shape (n_taken,), float64
        Z_t, by which each round multiplies that loss.
    intercept_ : float
        The sum of what the weak classifiers give to every row alike; `predict` cuts at 0.
    stop_reason_, f_, f_skew_, f_tilde_, validation_auc_
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

    n_rounds: NRounds = 100
    weak_ranker: Annotated[
        Literal["stump"] | ClassifierName | WeakEstimator,
        Doc(
            "What a round adds: a stump; a classifier, 'logistic', 'linear_svm' or "
            "'random_forest'; or in Python any scikit-learn estimator that takes sample weights "
            "and has decision_function or predict_proba."
        ),
    ] = "stump"
    learning_rate: LearningRate = 1.0
    max_bins: MaxBins = 255
    early_stopping_rounds: EarlyStoppingRounds = None
    validation_fraction: ValidationFraction = 0.2
    random_state: RandomState = 0

    @property
    def z_(self) -> Floats:
        """Z_t of each round."""
        loss = np.concatenate([[1.0], self.loss_])
        return np.asarray(loss[1:] / loss[:-1])

    def _weak_learner(self) -> type[WeakLearner]:
        if self.weak_ranker == "stump":
            return WEAK_LEARNERS["stump"]
        return ClassifierLearner if isinstance(self.weak_ranker, str) else EstimatorLearner

    def _known(self) -> dict[str, Any]:
        return super()._known() | {"name": self.weak_ranker}

    def _rule(self) -> "BalancedRule":
        return BalancedRule(learning_rate=self.learning_rate)


class BalancedRule(StumpRule):
    """Cuts made two-sided by Lemma 4, judged with half the weight on each class; the step is ½ ln((1 - ε)/ε)."""

    criterion = Criterion.YOUDEN

    def hypothesis(self, masses: Masses, share_p: float) -> Hypothesis:
        """Toss Lemma 4's coin on one side of the cut."""
        if masses.above_p >= masses.above_n:
            sign, h = 1, two_sided(masses.below_p, masses.above_n)
        else:
            sign, h = -1, two_sided(masses.above_p, masses.below_n)
        return Hypothesis(sign, h.above, h.below, 1.0 - h.error, h.error)

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Give ½ F₊/W₊ + ½ F₋/W₋, W the classes' weights at the start; the classes are balanced from there."""
        return 0.5 * (math.exp(log_f[0] - start[0]) + math.exp(log_f[1] - start[1]))
