"""PAUCSVM: the support vector machine for a window of false positive rates."""

from typing import Literal

from core.metrics.window import FprMax, FprMin, check_window

from .fitting import Progress, Sample, Trainer
from .maps import Bandwidth, Components, FeatureMapName, MapBins
from .options import (
    Anchor,
    Cost,
    HeldFraction,
    MaxIter,
    Seed,
    Standardize,
    SurrogateName,
    Tolerance,
)
from .plan import Solver
from .sigmoid import SigmoidTrainer
from .support import Limits, SupportVectorRanker


class PAUCSVM(SupportVectorRanker):
    """Rank by a linear score that has the least convex bound of the area above the ROC curve in a window.

    Minimises ½‖w‖² + C R(w) over standardised features, R the structural surrogate of 1 - pAUC on [fpr_min, fpr_max].
    Where the positives stand too deep among the negatives, w = 0 minimises that whatever C: the fit says so
    (`collapsed_`), and minimises ½‖w - v‖² + C R(w) instead, v the machine for the whole AUC. It does so, too, where C
    is chosen and v ranks the rows held out better; `anchor_cost_` is then a number, and a warning says it.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        Change of the score per unit of a numeric feature; 0 for a categorical one. Only without a feature map.
    bandwidth_ : float or None
        h of the Gaussian kernel, as given or as chosen; None without one.
    intercept_ : float
        `predict` cuts at 0: at the Youden point of the training rows.
    C_ : float
        As given, or as chosen.
    anchor_cost_ : float or None
        C of the machine for the whole AUC that it was anchored at; None where it was not.
    objective_ : float
        The objective that was minimised: the anchored one where it was anchored.
    gap_ : float or None
        By how much at most the objective is above its minimum; None with the sigmoid surrogate, of whose minimum
        nothing is known.
    n_iter_ : int
        Iterations of the last programme.
    collapsed_ : bool
        Whether w = 0, constant scores, is the optimum for every C; with the sigmoid surrogate, whether no better
        point than w = 0 was found.
    critical_fpr_ : float or None
        Where it collapsed, the least `fpr_max`, but for 2 %, with which it would not; None where none would do.

    Notes
    -----
    A window that holds one negative is the Infinite Push (Agarwal 2011): `fpr_max` a little less than 1/n, as
    0.9/n, since a rate is rounded up to whole negatives and 1/n itself may be written as more. A window of the FROC
    curve: `core.metrics.froc_window`.

    Features are taken, and mapped, as by `AUCSVM`. An iteration of the solver is O(n_samples · n_features) and a sort
    of the highest negatives.

    surrogate = "sigmoid" lowers, by L-BFGS from `AUCSVM` with the same C, the mean of 2σ(θ_b - s_i) over the positives
    and the thresholds θ_b, the mean scores of up to 100 blocks of equal mass that the window's negatives are cut into.
    The factor makes R(0) = 1, as of the other surrogates; C alone decides how steep the steps come out. Far outliers
    pull no more than others, so it finds a solution in many a window where the convex surrogates collapse; it is a
    local minimum, and the best point seen.

    References
    ----------
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: eqs. 11, 14 and 18; Algorithms 1 to 3. The collapse is not in the paper.
    """

    def __init__(
        self,
        *,
        fpr_min: FprMin = 0.0,
        fpr_max: FprMax = 0.1,
        C: Cost = "auto",
        surrogate: SurrogateName = "tight",
        anchor: Anchor = "auto",
        tol: Tolerance = 1e-4,
        max_iter: MaxIter = 1000,
        standardize: Standardize = True,
        feature_map: FeatureMapName = None,
        n_components: Components = 300,
        bandwidth: Bandwidth = "auto",
        max_bins: MapBins = 32,
        validation_fraction: HeldFraction = 0.25,
        random_state: Seed = 0,
    ) -> None:
        self.fpr_min = fpr_min
        self.fpr_max = fpr_max
        self.C = C
        self.surrogate = surrogate
        self.anchor = anchor
        self.tol = tol
        self.max_iter = max_iter
        self.standardize = standardize
        self.feature_map = feature_map
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.max_bins = max_bins
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    def _window(self) -> tuple[float, float]:
        return self.fpr_min, self.fpr_max

    def _anchor(self) -> float | Literal["auto"] | None:
        return self.anchor

    def _has_gap(self) -> bool:
        return self.surrogate != "sigmoid"

    def _proves_collapse(self) -> bool:
        return self.surrogate != "sigmoid"

    def _solver(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> Solver:
        if self.surrogate == "sigmoid" and window == self._window():
            return SigmoidTrainer(sample, window, progress=progress, **limits._asdict())
        return Trainer(
            sample,
            window,
            naive=self.surrogate == "naive",
            progress=progress,
            **limits._asdict(),
        )
