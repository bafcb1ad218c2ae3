"""The support vector machines for the whole AUC and for a window of false positive rates."""

from dataclasses import dataclass
from typing import Literal

from core.linear.design import Sample
from core.metrics.window import FprMax, FprMin, check_window

from .parameters import Anchor, SurrogateName
from .ranker import SupportVectorRanker
from .selection import PATH
from .solvers import (
    WHOLE,
    ConvexSolver,
    DifferenceSolver,
    Limits,
    Progress,
    SigmoidSolver,
    Solver,
)


class AUCSVM(SupportVectorRanker):
    """Rank by a linear score with the least hinge loss over all pairs of a positive and a negative.

    Minimises ½‖w‖² + C R(w) over standardised features, R the mean of (1 - (s - z))₊ over pairs, s the score of the
    positive and z that of the negative: an upper bound of 1 - AUC.

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
    objective_, gap_ : float
        The objective, and by how much at most it is above its minimum.
    n_iter_ : int
        Iterations of the last program.
    collapsed_ : bool
        Whether the classes have the same mean, so that constant scores are the optimum whatever C.

    Notes
    -----
    Numeric features are standardised, a missing value stands at the mean and has a coordinate of its own where any was
    missing at fit; each category is a coordinate of 0 and 1. Sparse matrices are not made dense. An iteration of the
    solver is O(n_samples · n_features + n_samples log n_samples), a handful of which are enough. The solver keeps at
    most 500 planes, a number per coordinate each. Where max_iter iterations are not enough it gives a
    `sklearn.exceptions.ConvergenceWarning`, which is a `SupportWarning`, too.

    With a feature map the score is linear in what the map makes of a row. "fourier" and "nystroem" stand for the
    Gaussian kernel exp(-‖x - x'‖²/2h²) over the coordinates above: n_components features drawn by the seed, kept in
    memory up to 512 MB for all rows, beyond that made anew for each product, which is some twenty times as slow; sparse
    rows are made dense a block at a time. With n_components no less than the number of distinct rows "nystroem" is the
    exact kernel machine, at O(n_components³). "bins" makes the score a sum of a step function per column: at most
    max_bins quantile bins of a column of numbers, one bin per category (the rarest share the last), one for the
    missing; contributions are then told as without a map, and a byte per value is kept.

    References
    ----------
    T. Joachims, "A support vector method for multivariate performance measures", ICML 2005.
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: eqs. 4 and 7.
    """

    def _window(self) -> tuple[float, float]:
        return WHOLE


@dataclass(kw_only=True, eq=False, repr=False)
class WindowParameters:
    """The window, and what is done where it collapses."""

    fpr_min: FprMin = 0.0
    fpr_max: FprMax = 0.1
    anchor: Anchor = "auto"


@dataclass(kw_only=True, eq=False, repr=False)
class WindowSVM(SupportVectorRanker, WindowParameters):
    """A support vector machine for a window of false positive rates."""

    def _check_parameters(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    def _window(self) -> tuple[float, float]:
        return self.fpr_min, self.fpr_max

    def _anchor(self) -> float | Literal["auto"] | None:
        return self.anchor


@dataclass(kw_only=True, eq=False, repr=False)
class PAUCSVM(WindowSVM):
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
        Iterations of the last program.
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

    surrogate: SurrogateName = "tight"

    def _has_gap(self) -> bool:
        return self.surrogate != "sigmoid"

    def _proves_collapse(self) -> bool:
        return self.surrogate != "sigmoid"

    def _solver(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> Solver:
        if self.surrogate == "sigmoid" and window == self._window():
            return SigmoidSolver(sample, window, limits, progress)
        naive = self.surrogate == "naive"
        return ConvexSolver(sample, window, limits, progress, naive=naive)


class PAUCSVMDC(WindowSVM):
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
        By how much the last convex program may be above its minimum; of the minimum of the whole nothing is known.
    n_iter_ : int
        Steps, each of which solves a convex program.
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

    def _proves_collapse(self) -> bool:
        return False

    def _solver(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> Solver:
        if window == WHOLE:
            return super()._solver(sample, window, limits, progress)
        return DifferenceSolver(sample, window, limits, progress)
