"""PAUCSVMDC: the support vector machine for a window by the hinge surrogate itself, which is not convex."""

from typing import Literal

from core.metrics.window import FprMax, FprMin, check_window

from .difference import DifferenceTrainer
from .fitting import PATH, Progress, Sample
from .maps import Bandwidth, Components, FeatureMapName, MapBins
from .options import (
    Anchor,
    Cost,
    HeldFraction,
    MaxIter,
    Seed,
    Standardize,
    Tolerance,
)
from .plan import WHOLE, Solver
from .support import Limits, SupportVectorRanker


class PAUCSVMDC(SupportVectorRanker):
    """Rank by a linear score that has little hinge loss over the pairs with negatives in a window.

    Lowers ½‖w‖² + C R(w), R the mean of (1 - (s - z))₊ over the pairs of a positive with each negative that stands
    between fpr_min and fpr_max: a closer bound of 1 - pAUC than `PAUCSVM`'s, but a difference of convex functions. It
    starts from the machine for the whole AUC with the same C, and ends in a local minimum.

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
        The objective at the best point found.
    gap_ : float
        By how much the last convex programme may be above its minimum; of the minimum of the whole nothing is known.
    n_iter_ : int
        Steps, each of which solves a convex programme.
    collapsed_ : bool
        Whether no better point than w = 0, constant scores, was found.
    critical_fpr_ : None

    Notes
    -----
    Features are taken, and mapped, as by `AUCSVM`, a collapse is met as by `PAUCSVM`. C = "auto" tries 1e-2 to 1e4.

    References
    ----------
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: eq. 9, §6 and Algorithm 4, with its constants repaired.
    """

    path = PATH[3:]

    def __init__(
        self,
        *,
        fpr_min: FprMin = 0.0,
        fpr_max: FprMax = 0.1,
        C: Cost = "auto",
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

    def _proves_collapse(self) -> bool:
        return False

    def _solver(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> Solver:
        if window == WHOLE:
            return super()._solver(sample, window, limits, progress)
        return DifferenceTrainer(sample, window, progress=progress, **limits._asdict())
