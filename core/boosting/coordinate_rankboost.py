"""Coordinate descent RankBoost (Rudin & Schapire 2009, Fig. 1)."""

from core.scan import Criterion

from .booster import StumpBooster


class CoordinateRankBoost(StumpBooster):
    """Boost stumps, each the one along which the ranking loss falls most steeply (eq. 3).

    It differs from `RankBoost` in the choice only: a round picks the stump that maximises
    d+ - d- = P - N, the weak ranker most accurate on the weighted pairs, and steps by
    ½ ln(d+/d-) along it.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        feature, threshold, sign, missing_above, alpha, d_plus, d_minus: see `loop.ROUND`.
    loss_ : ndarray of shape (n_taken,), float64
        F̃, the sum over pairs, after each round.
    intercept_ : float
        ½ ln(F₊/F₋), by Corollary 13; part of every score, so that `predict` cuts at 0.
    stop_reason_ : {"n_rounds", "no_edge", "perfect_stump"}
        Why there are no more rounds.

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

    @property
    def _criterion(self) -> Criterion:
        return Criterion.YOUDEN
