"""Coordinate descent RankBoost (Rudin & Schapire 2009, Fig. 1)."""

from dataclasses import dataclass

from core.coding import Criterion
from core.coding.bins import MaxBins

from .booster import PairBooster
from .options import (
    EarlyStoppingRounds,
    LearningRate,
    NRounds,
    RandomState,
    Smoothing,
    StumpOrColumn,
    ValidationFraction,
)
from .rules import RankingRule


@dataclass(kw_only=True, eq=False, repr=False)
class CoordinateRankBoost(PairBooster):
    """Boost stumps, each the one along which the ranking loss falls most steeply (eq. 3).

    It differs from `RankBoost` in the choice only: a round picks the stump that maximises
    d+ - d- = P - N, the weak ranker most accurate on the weighted pairs, and steps by
    ½ ln(d+/d-) along it. With weak_ranker="column" the given columns are the weak rankers, as in
    `RankBoost`. There are no trees: under eq. 3 a cut within a leaf gains nothing unless its sides
    point in opposite directions, so that growth stalls; see docs/papers.md.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        feature, threshold, sign, missing_above, alpha, d_plus, d_minus: see `stumps.ROUND`.
    loss_ : ndarray of shape (n_taken,), float64
        F̃, the sum over pairs, after each round.
    intercept_ : float
        ½ ln(F₊/F₋), by Corollary 13; part of every score, so that `predict` cuts at 0.
    stop_reason_, f_, f_skew_, f_tilde_, validation_auc_
        See `booster.Booster`.

    Notes
    -----
    Departures from the paper. Fig. 1's initial weight 1/m should read 1/|C_p|, one over the number
    of crucial pairs. The step is smoothed, ½ ln((d+ + ε)/(d- + ε)), because d- = 0 asks for an
    infinite one; `smoothing` is ε. The output is not divided by ‖λ‖₁, which changes no ranking.

    O(n_rounds · n_features · n_samples) after one sort of each column.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: Figure 1, eqs. 3 and 4; Corollary 13.
    """

    n_rounds: NRounds = 100
    weak_ranker: StumpOrColumn = "stump"
    learning_rate: LearningRate = 1.0
    max_bins: MaxBins = 255
    smoothing: Smoothing = 1e-2
    early_stopping_rounds: EarlyStoppingRounds = None
    validation_fraction: ValidationFraction = 0.2
    random_state: RandomState = 0

    def _rule(self) -> RankingRule:
        return RankingRule(
            criterion=Criterion.YOUDEN, learning_rate=self.learning_rate, smoothing=self.smoothing
        )
