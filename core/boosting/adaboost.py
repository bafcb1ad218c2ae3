"""AdaBoost (Freund & Schapire 1997), which Rudin & Schapire 2009 show to be a ranker too."""

from dataclasses import dataclass
from typing import Annotated

from annotated_doc import Doc

from core.base.monotone import Monotone
from core.coding import Criterion

from .algorithms import CutMasses, Hypothesis, RowLossAlgorithm, StumpAlgorithm
from .booster import ExponentialBooster
from .options import (
    LearningRate,
    NRounds,
    StumpOnly,
)


@dataclass(kw_only=True, eq=False, repr=False)
class AdaBoost(ExponentialBooster):
    """Boosted ±1 classifiers on weighted rows (AdaBoost), which rank as RankBoost does.

    Use it to compare AdaBoost with `RankBoost`: with the constant classifier (the default) both converge to the same
    ranking. For accuracy, use `RankBoost` or `LogitBoost` with trees.

    The loss is F = Σ w_i e^{-y_i f(x_i)} over all rows. Each round picks the stump h = ±1 with the largest edge
    |Σ d_i y_i h(x_i)| and steps by ½ ln(d+/d-). Here d+ is the weight that h classifies correctly, and d- is the rest.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        feature, threshold, sign, missing_above, alpha, d_plus, d_minus. A constant weak classifier has feature -1.
    loss_ : ndarray of shape (n_taken,), float64
        F after each round.
    f_skew_ : ndarray of shape (n_taken,), float64
        F₊ - F₋ after each round: the loss of the positives minus that of the negatives. With the constant classifier it
        tends to 0, and the AUC tends to that of RankBoost.
    intercept_ : float
        The part of the score that the weak classifiers give to every row; `predict` has its threshold at 0.

    Notes
    -----
    d- = 0 would give an infinite step. The step is limited to ½ ln(2^52), and the fit ends. Stumps have values ±1 here
    and {0, 1} in `RankBoost`, so compare scores, not steps.

    Time: O(n_rounds · n_features · n_samples) after one sort of each column.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: Section 5, Theorems 10, 12 and 14, Corollary 11.

    Examples
    --------
    >>> from core import AdaBoost
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    >>> ranker = AdaBoost(n_rounds=5).fit(X, y)
    >>> ranker.decision_function(X).round(1).tolist()
    [-2.7, -2.7, 0.4, -0.9, 2.7, 2.7]
    """

    n_rounds: NRounds = 100
    weak_ranker: StumpOnly = "stump"
    include_constant: Annotated[
        bool,
        Doc(
            "Whether the constant classifier is one of the weak classifiers. The theorems need it."
        ),
    ] = True
    learning_rate: LearningRate = 1.0
    monotone: Monotone = None

    def _algorithm(self) -> "ClassifyingAlgorithm":
        return ClassifyingAlgorithm(
            learning_rate=self.learning_rate, include_constant=self.include_constant
        )


@dataclass(kw_only=True)
class ClassifyingAlgorithm(RowLossAlgorithm, StumpAlgorithm):
    """AdaBoost's rules: weak rankers in {-1, 1}, chosen by the weighted fraction of rows that they classify correctly.

    The step ½ ln(d+/d-) is ½ ln((1 + r)/(1 - r)), r the edge; the constant classifier is an intercept already.
    """

    criterion = Criterion.EDGE

    include_constant: bool

    def hypothesis(self, masses: CutMasses, share_p: float) -> Hypothesis:
        """Return the ±1 stump of a split, in the orientation that classifies more weight correctly."""
        share_n = 1.0 - share_p
        right = share_p * masses.above_p + share_n * masses.below_n
        wrong = share_p * masses.below_p + share_n * masses.above_n
        sign = 1 if right >= wrong else -1
        return Hypothesis(sign, 1.0, -1.0, max(right, wrong), min(right, wrong))

    def constant_hypothesis(self, share_p: float) -> Hypothesis | None:
        """Return the constant classifier that predicts the class of greater total weight for every row."""
        if not self.include_constant:
            return None
        value = 1.0 if share_p >= 0.5 else -1.0
        return Hypothesis(1, value, value, max(share_p, 1.0 - share_p), min(share_p, 1.0 - share_p))
