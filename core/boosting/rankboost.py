"""RankBoost (Freund, Iyer, Schapire & Singer 2003), as Rudin & Schapire 2009 derive it."""

from core.scan import Criterion

from .booster import StumpBooster


class RankBoost(StumpBooster):
    """Boost stumps, each the one whose best step lowers the ranking loss the most (eq. 5).

    The loss is F̃ = Σ w_i w_k e^{-(f(x_i) - f(x_k))} over all pairs of a positive i and a negative
    k. A round picks the stump that minimises 2√(d+ d-) + d0 and steps by ½ ln(d+/d-).

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        feature, threshold, sign, missing_above, alpha, d_plus, d_minus: see `loop.ROUND`.
    loss_ : ndarray of shape (n_taken,), float64
        F̃, the sum over pairs, after each round.
    intercept_ : float
        ½ ln(F₊/F₋), by Corollary 13: with it the scores also minimise AdaBoost's loss, and
        `predict` cuts at 0. It is part of every score.
    stop_reason_ : {"n_rounds", "no_edge", "perfect_stump"}
        Why there are no more rounds.

    Notes
    -----
    Departures from the paper. Eq. 5 is blind to the sign: of a stump and its reverse the one with
    d+ >= d- is taken, so that steps are never negative. The step is smoothed,
    ½ ln((d+ + ε)/(d- + ε)), because d- = 0 asks for an infinite one; `smoothing` is ε.

    O(n_rounds · n_features · n_samples) after one sort of each column.

    References
    ----------
    C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
    RankBoost", JMLR 10, 2009: Section 4.1.2, eqs. 4 and 5; Corollary 13.
    """

    @property
    def _criterion(self) -> Criterion:
        return Criterion.LOSS
