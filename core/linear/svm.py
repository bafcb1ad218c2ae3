"""Ranking support vector machines for the AUC, for the partial AUC in a window, and for the top of the list."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from core.base.monotone import Monotone
from core.base.parameters import Seed
from core.base.ranker import Callback
from core.base.state import FINITE, Value
from core.base.training import TrainingData
from core.base.warning import warn
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.metrics.window import WHOLE, FprMax, FprMin, check_window

from .design import Coordinates, FeatureMap, LinearRows, LinearSample, learn_coordinates
from .feature_maps import (
    MAX_BINS,
    BinnedMap,
    FourierMap,
    MapName,
    MapRows,
    NystroemMap,
    fit_binned,
    fit_fourier,
    fit_nystroem,
)
from .ranker import LinearRanker, NonNegative
from .solvers import (
    TOP,
    ConvexSolver,
    DifferenceSolver,
    Progress,
    SigmoidSolver,
    Solver,
    SolverLimits,
)
from .svm_selection import DEFAULT_COST, PATH, FittedProgram, Selection

MAPS: Mapping[MapName | None, type[FeatureMap]] = MappingProxyType(
    {None: Coordinates, "fourier": FourierMap, "nystroem": NystroemMap, "bins": BinnedMap}
)

OptionalNonNegative = Annotated[float | None, Value(), Ge(0.0), FINITE]

# A program that is solved only to choose C may end at this multiple of the tolerance, and after at most this number of
# iterations: the chosen program is solved again on all rows.
CHOOSING_TOLERANCE = 10.0
MAX_CHOOSING_ITERATIONS = 100

# Least C tried with a Gaussian map. Its rows have length 1: below this every C gives the same ranking.
MIN_KERNEL_COST = 0.1

Cost = Annotated[
    Annotated[float, Gt(0), Le(1e6)] | Literal["auto"],
    Doc(
        'Weight of the loss relative to ½‖w‖². "auto" takes the value from 1e-5 to 1e4 (0.1 to 1e4 with "fourier" '
        'and "nystroem") with the best partial AUC in the window on held-out training rows. One fit covers all '
        "values."
    ),
]
Tolerance = Annotated[
    float,
    Ge(1e-9),
    Le(0.1),
    Doc(
        "Stop when the objective is provably within tol · C of its minimum. While C is chosen, stop within 10 tol "
        "· C or after 100 iterations."
    ),
]
MaxIter = Annotated[int, Ge(1), Le(100_000), Doc("Maximum iterations of the solver for one C.")]
Standardize = Annotated[
    bool, Doc("Whether to divide numeric features by their standard deviation.")
]
SurrogateName = Annotated[
    Literal["tight", "naive", "sigmoid"],
    Doc(
        '"tight": pairs with negatives below the window do not count. "naive": they count, without a margin. '
        '"sigmoid": the area with smooth steps, which is not convex. L-BFGS minimises it from the solution for '
        "the full AUC with the same C, in at most max_iter iterations."
    ),
]
Anchor = Annotated[
    Annotated[float, Ge(0), Le(1e6)] | Literal["auto"] | None,
    Doc(
        "κ: minimise ½‖w - κ v‖² + C R(w) instead of ½‖w‖² + C R(w), where v is the solution for the full AUC. "
        '"auto": κ = 1, but only if the window by itself gives constant scores, or ranks the validation rows or '
        "all rows worse than v. A given C is then the greatest of those tried. None: never."
    ),
]
EvaluatedFprMin = Annotated[
    float,
    Ge(0),
    Lt(1),
    Doc(
        "Lower end of the window whose partial AUC on held-out rows chooses C. It is not part of the loss."
    ),
]
EvaluatedFprMax = Annotated[
    float,
    Gt(0),
    Le(1),
    Doc(
        "Upper end of the window whose partial AUC on held-out rows chooses C. It is not part of the loss."
    ),
]
HeldFraction = Annotated[
    float,
    Gt(0),
    Lt(1),
    Doc("Fraction of each class's weight that is held out to choose C. Not used if C is given."),
]
RandomState = Annotated[Seed, Doc("Seed of the rows that are held out to choose C.")]
FeatureMapName = Annotated[
    MapName | None,
    Doc(
        'Features in which the score is linear. None: the columns. "fourier": random Fourier features of the '
        'Gaussian kernel. "nystroem": the Gaussian kernel with random rows as landmarks, which is exact if '
        'n_components is at least the number of rows. "bins": the bins of each column, so that the score is a sum '
        "of step functions; only for dense tables."
    ),
]
Components = Annotated[
    int,
    Ge(1),
    Le(4096),
    Doc(
        'Number of features of "fourier" (they come in pairs), or of landmarks of "nystroem". Not used otherwise.'
    ),
]
Bandwidth = Annotated[
    Annotated[float, Ge(1e-6), Le(1e6)] | Literal["auto"],
    Doc(
        'h of the Gaussian kernel exp(-‖x - x\'‖²/2h²) over standardised features, for "fourier" and "nystroem". '
        '"auto": the median distance between random rows.'
    ),
]
MapBins = Annotated[
    int,
    Gt(1),
    Le(MAX_BINS),
    Doc(
        'Maximum number of bins per column for feature_map "bins", not counting the bin of missing values.'
    ),
]


@dataclass(kw_only=True, eq=False, repr=False)
class SupportVectorParameters:
    """The parameters shared by the ranking support vector machines."""

    C: Cost = "auto"
    tol: Tolerance = 1e-4
    max_iter: MaxIter = 1000
    standardize: Standardize = True
    feature_map: FeatureMapName = None
    n_components: Components = 300
    bandwidth: Bandwidth = "auto"
    max_bins: MapBins = 32
    monotone: Monotone = None
    validation_fraction: HeldFraction = 0.25
    random_state: RandomState = 0


class SupportWarning(UserWarning):
    """Warns that a support vector machine minimised another objective than its parameters ask for."""


class SupportConvergenceWarning(SupportWarning, ConvergenceWarning):
    """Warns that the solver stopped before the objective was within the tolerance of its minimum."""


class SupportVectorRanker(SupportVectorParameters, LinearRanker):
    """Base class of linear rankers that minimise ½‖w‖² + C R(w), R a surrogate of the (partial) AUC risk.

    The score is linear in the columns, or in the features of a map. Attributes: see `AUCSVM` and `PAUCSVM`.
    """

    path: ClassVar[tuple[float, ...]] = PATH
    """Values of C tried if C is "auto", ascending."""

    bandwidth_: float | None
    C_: NonNegative
    anchor_cost_: OptionalNonNegative
    objective_: NonNegative
    gap_: OptionalNonNegative
    n_iter_: Annotated[int, Value("iterations"), Ge(0)]
    collapsed_: Annotated[bool, Value()]
    critical_fpr_: OptionalNonNegative

    def check_parameters(self) -> None:
        if self.monotone and self.feature_map is not None:
            raise InvalidParameter(
                f"monotone requires feature_map None, got {self.feature_map!r}: the score is not linear in the "
                "columns"
            )

    @abstractmethod
    def _window(self) -> tuple[float, float]:
        """Return the window of false positive rates of the objective; `TOP` for the highest negative alone."""

    def _validation_window(self) -> tuple[float, float]:
        return self._window()

    def _anchor(self) -> float | Literal["auto"] | None:
        return None

    def _costs(self) -> tuple[float, ...]:
        if self.feature_map in (None, "bins"):
            return self.path
        return tuple(cost for cost in self.path if cost >= MIN_KERNEL_COST)

    def _has_gap(self) -> bool:
        return True

    def _solver(
        self,
        sample: LinearSample,
        window: tuple[float, float],
        limits: SolverLimits,
        progress: Progress,
    ) -> Solver:
        return ConvexSolver(sample, window, limits, progress)

    def _fit_sample(self, data: TrainingData, sample: LinearSample, callback: Callback) -> None:
        progress = Progress(callback)
        given = None if self.C == "auto" else float(self.C)
        values = self._start_path()
        draw_validation = partial(data.hold_out, self.validation_fraction, self.random_state)
        signs = self._signs(sample.rows)
        solvers: dict[tuple[bool, tuple[float, float]], Solver] = {}

        def make(part: LinearSample, window: tuple[float, float]) -> Solver:
            limits = SolverLimits(self.tol, self.max_iter, signs)
            if part is not sample:
                max_iter = min(self.max_iter, MAX_CHOOSING_ITERATIONS)
                limits = SolverLimits(CHOOSING_TOLERANCE * self.tol, max_iter, signs)
            if not values:
                return self._solver(part, window, limits, progress)
            key = part is sample, window  # the validation rows are the same for every C
            if key not in solvers:
                solvers[key] = self._solver(part, window, limits, progress)
            return solvers[key]

        for C in values or (given,):
            selection = Selection(
                sample,
                self._window(),
                self._validation_window(),
                C,
                self._anchor(),
                self._costs(),
                make,
                draw_validation,
            )
            progress.plan(selection.count() * max(len(values), 1))
            fitted = selection.run()
            self.collapsed_ = selection.collapsed
            self.critical_fpr_ = selection.solver.critical_fpr() if self.collapsed_ else None
            is_proven = selection.solver.convex
            del selection  # it holds vectors of n_rows
            self._take_fitted(fitted, C, sample, is_proven)
            if values:
                self._add_to_path()
        progress.finish(self.objective_, self.gap_ or 0.0, self.n_iter_)

    def _take_fitted(
        self, fitted: FittedProgram | None, C: float | None, sample: LinearSample, is_proven: bool
    ) -> None:
        """Set the solution, or w = 0; warn if another objective was minimised.

        `is_proven` says whether w = 0 is proven to be the optimum, or only nothing better was found.
        """
        if fitted is None:
            self.C_, self.anchor_cost_ = DEFAULT_COST if C is None else C, None
            w, self.objective_, gap, self.n_iter_ = np.zeros(sample.rows.size), self.C_, 0.0, 0
        else:
            solution, self.C_, self.anchor_cost_ = fitted
            w, self.objective_ = solution.point.w, solution.objective
            gap, self.n_iter_ = solution.gap, solution.n_iter
        self.gap_ = gap if self._has_gap() else None
        self._take_fit(sample, w)
        if fitted is not None and not fitted.solution.converged:
            message = f"the solver did not converge in max_iter = {self.max_iter} iterations"
            if self.gap_ is not None:
                message += f" (objective at most {self.gap_:.3g} above the minimum)"
            message += ". Increase max_iter or tol"
            warn(message, SupportConvergenceWarning)
        if (departure := self._describe_departure(is_proven)) is not None:
            warn(departure, SupportWarning)

    def _describe_departure(self, is_proven: bool) -> str | None:
        """Say which other objective was minimised, why, and what to do; None if none was."""
        low, high = self._window()
        aim = f"false positive rates of {low:g} to {high:g}"
        if (low, high) == TOP:
            aim = "the rows above the highest negative"
        constant = "all rows have the same score, so the ranker does not rank"
        advice = "Use a wider window, more features or an algorithm that is not linear"
        them = aim if self.anchor_cost_ is None else "them"
        if not self.collapsed_:
            if not self._w.any():
                return (
                    f"{constant}: no linear score is better than a constant one for {aim}, even together with the AUC "
                    f"(C = {self.C_:g}). {advice}"
                )
            if self.anchor_cost_ is None or self._anchor() != "auto":
                return None
            reason = "because training for them alone did not rank held-out rows better than an SVM for the AUC"
        elif is_proven:
            reason = (
                f"because training for {them} alone would give all rows the same score: whatever the coefficients, the "
                "highest negatives score on average at least as high as the positives"
            )
        else:
            reason = f"because training for {them} alone found no score that is better than a constant one"
        if self.anchor_cost_ is None:
            message = f"{constant}, {reason}"
        else:
            both = f"the AUC as well as for {aim}" if self.C_ else f"the AUC instead of {aim}"
            message = (
                f"the ranker was trained for {both}, {reason}. Its metrics are valid (C = {self.C_:g} for the window, "
                f"{self.anchor_cost_:g} for the AUC)"
            )
            advice = (
                "For a better order at the top of the list, try an algorithm that is not linear"
            )
        if self.critical_fpr_ is not None:
            with_svm = " with pauc_svm" if (low, high) == TOP else ""
            advice += f", or train{with_svm} for a window with fpr_max of {self.critical_fpr_:.3g} or more"
        return f"{message}. {advice}"

    def _fit_design(self, data: TrainingData, callback: Callback) -> LinearRows:
        if self.feature_map is None:
            return super()._fit_design(data, callback)
        self.map_, rows = fit_map(self, data)
        return rows

    def _known_sizes(self) -> dict[str, Any]:
        return super()._known_sizes() | {"map_": MAPS[self.feature_map]}

    def _restore(self) -> None:
        super()._restore()
        self.bandwidth_ = getattr(self.map_, "bandwidth", None)

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        super()._set_state(arrays, meta)
        if (self.gap_ is not None) != self._has_gap():
            raise ArtifactError(f"gap must be None where none is known, got {self.gap_!r}")
        if self.n_iter_ > self.max_iter:
            raise ArtifactError(f"iterations must be at most max_iter, got {self.n_iter_!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.feature_map != "bins"
        return tags

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        if self.feature_map == "bins" and sparse.issparse(X):
            raise InvalidData("feature_map 'bins' accepts only dense tables, got a sparse matrix")
        return super()._matrix(X, reset=reset)


class AUCSVM(SupportVectorRanker):
    """Linear ranking SVM: minimises the hinge loss over all pairs of a positive and a negative.

    Use it for a fast, small model with a proven optimum, or for sparse matrices of text. Feature maps (`feature_map`)
    make the score nonlinear. If only low false positive rates matter, use `PAUCSVM`.

    It minimises ½‖w‖² + C R(w) over standardised features. R is the mean of (1 - (s - z))₊ over pairs, with s the score
    of the positive and z that of the negative. R is an upper bound of 1 - AUC.

    Attributes
    ----------
    bandwidth_ : float or None
        h of the Gaussian kernel, as given or chosen; None without one.
    C_ : float
        As given, or as chosen.
    objective_ : float
        The objective at the solution.
    gap_ : float
        Upper bound of the objective's distance from its minimum.
    n_iter_ : int
        Number of iterations of the last optimisation.
    collapsed_ : bool
        Whether both classes have the same mean, so that constant scores are optimal for every C.

    Notes
    -----
    Numeric features are standardised. A missing value is replaced by the mean, and has its own coordinate if any value
    was missing in `fit`. Each category is a coordinate of 0 and 1. Sparse matrices stay sparse. An iteration of the
    solver is O(n_samples · n_features + n_samples log n_samples); about ten suffice. The solver keeps at most 500
    planes, each with a number per coordinate. If max_iter iterations do not suffice, the fit emits a
    `sklearn.exceptions.ConvergenceWarning`, which is also a `SupportWarning`.

    A constraint of `monotone` bounds the column's coefficient, also in the choice of C and in an anchor. It requires
    feature_map=None.

    With a feature map the score is linear in the features of the map. "fourier" and "nystroem" approximate the Gaussian
    kernel exp(-‖x - x'‖²/2h²) over the coordinates above. Their n_components features per row are kept in memory up to
    512 MB; above that they are recomputed for each product, which is about twenty times slower. Sparse rows are made
    dense in blocks. With n_components at least the number of distinct rows, "nystroem" is the exact kernel machine, at
    O(n_components³).

    "bins" makes the score a sum of one step function per column: at most max_bins quantile bins for a numeric column,
    one bin per category (the rarest share the last), and one bin for missing values. Contributions are then available
    as without a map, and the training rows take one byte per value.

    References
    ----------
    T. Joachims, "A support vector method for multivariate performance measures", ICML 2005.
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: eqs. 4 and 7.

    Examples
    --------
    >>> import numpy as np
    >>> from core import AUCSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ranker = AUCSVM(C=1.0).fit(X, X[:, 0] + 0.5 * X[:, 1] > 0.5)
    >>> ranker.collapsed_, ranker.predict([[2, 2], [-2, -2]])
    (False, array([ True, False]))
    """

    def _window(self) -> tuple[float, float]:
        return WHOLE


@dataclass(kw_only=True, eq=False, repr=False)
class WindowParameters:
    """The parameters of the support vector machines for a window of false positive rates."""

    fpr_min: FprMin = 0.0
    fpr_max: FprMax = 0.1
    anchor: Anchor = "auto"


@dataclass(kw_only=True, eq=False, repr=False)
class WindowSVM(SupportVectorRanker, WindowParameters):
    """Base class of support vector machines for a window of false positive rates."""

    def check_parameters(self) -> None:
        super().check_parameters()
        check_window(self.fpr_min, self.fpr_max)

    def _window(self) -> tuple[float, float]:
        return self.fpr_min, self.fpr_max

    def _anchor(self) -> float | Literal["auto"] | None:
        return self.anchor


@dataclass(kw_only=True, eq=False, repr=False)
class PAUCSVM(WindowSVM):
    """Linear SVM for the partial AUC in a window of false positive rates.

    Use it if only low false positive rates matter and you want a small linear model. If `collapsed_` is True on your
    data, the window is too narrow for it: prefer boosted trees, or `surrogate="sigmoid"`.

    It minimises ½‖w‖² + C R(w) over standardised features. R is the structural surrogate, a convex upper bound of 1 -
    pAUC on [fpr_min, fpr_max]. If the positives score too low among the negatives, w = 0 is the minimum for every C.
    The fit then sets `collapsed_` and minimises ½‖w - v‖² + C R(w) instead, where v is the solution for the full AUC.
    It does the same if C is chosen and v ranks the validation rows better. `anchor_cost_` is then a number, and the fit
    emits a warning.

    Attributes
    ----------
    bandwidth_ : float or None
        h of the Gaussian kernel, as given or chosen; None without one.
    C_ : float
        As given, or as chosen.
    anchor_cost_ : float or None
        C of the solution for the full AUC that anchored the fit; None without an anchor.
    objective_ : float
        The minimised objective at the solution; the anchored one if the fit was anchored.
    gap_ : float or None
        Upper bound of the objective's distance from its minimum; None with the sigmoid surrogate, whose minimum is
        unknown.
    n_iter_ : int
        Number of iterations of the last optimisation.
    collapsed_ : bool
        Whether constant scores (w = 0) are optimal for every C. With the sigmoid surrogate, whether no better point was
        found.
    critical_fpr_ : float or None
        If the fit collapsed, the smallest `fpr_max` with which it would not, to 2 %; None if there is none.

    Notes
    -----
    A window with a single negative gives the Infinite Push (Agarwal 2011): set `fpr_max` to 1/n for n negatives.

    Features are coded and mapped as in `AUCSVM`. An iteration of the solver is O(n_samples · n_features) plus a sort of
    the highest negatives.

    surrogate="sigmoid" decreases the mean of 2σ(θ_b - s_i) over the positives' scores s_i and thresholds θ_b, by L-BFGS
    from `AUCSVM` with the same C. The θ_b are the mean scores of up to 100 blocks of equal mass, into which the
    negatives of the window are divided. The factor 2 makes R(0) = 1, as for the other surrogates; only C controls how
    steep the steps are. The influence of outliers is bounded, so it often finds a solution where the convex surrogates
    collapse. The solution is a local minimum, the best point found.

    References
    ----------
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: eqs. 11, 14 and 18; Algorithms 1 to 3. The collapse is not in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from core import PAUCSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ranker = PAUCSVM(fpr_max=0.1, C=1.0).fit(X, X[:, 0] + 0.5 * X[:, 1] > 0.5)
    >>> ranker.collapsed_, ranker.predict([[2, 2], [-2, -2]])
    (False, array([ True, False]))
    """

    surrogate: SurrogateName = "tight"

    def _has_gap(self) -> bool:
        return self.surrogate != "sigmoid"

    def _solver(
        self,
        sample: LinearSample,
        window: tuple[float, float],
        limits: SolverLimits,
        progress: Progress,
    ) -> Solver:
        if self.surrogate == "sigmoid" and window == self._window():
            return SigmoidSolver(sample, window, limits, progress)
        naive = self.surrogate == "naive"
        return ConvexSolver(sample, window, limits, progress, naive=naive)


class PAUCSVMDC(WindowSVM):
    """Linear SVM for the partial AUC with a tighter, nonconvex bound (difference of convex functions).

    Use it to check whether a tighter bound than that of `PAUCSVM` helps on your data. It solves several convex problems
    and finds a local minimum.

    It decreases ½‖w‖² + C R(w). R is the mean of (1 - (s - z))₊ over the pairs of a positive of score s and a negative
    of score z that ranks between fpr_min and fpr_max. R is a tighter bound of 1 - pAUC than that of `PAUCSVM`. The fit
    starts from the solution for the full AUC with the same C.

    Attributes
    ----------
    bandwidth_ : float or None
        h of the Gaussian kernel, as given or chosen; None without one.
    C_ : float
        As given, or as chosen.
    anchor_cost_ : float or None
        C of the solution for the full AUC that anchored the fit; None without an anchor.
    objective_ : float
        The objective at the best point found.
    gap_ : float
        Upper bound of the distance of the last convex problem from its own minimum.
    n_iter_ : int
        Number of steps. Each solves one convex problem.
    collapsed_ : bool
        Whether no better point than constant scores (w = 0) was found.
    critical_fpr_ : None
        Not computed.

    Notes
    -----
    Features are coded and mapped as in `AUCSVM`. A collapse is handled as in `PAUCSVM`. C="auto" tries 1e-2 to 1e4.

    References
    ----------
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: eq. 9, §6 and Algorithm 4, with its constants repaired.

    Examples
    --------
    >>> import numpy as np
    >>> from core import PAUCSVMDC
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ranker = PAUCSVMDC(fpr_max=0.1, C=1.0).fit(X, X[:, 0] + 0.5 * X[:, 1] > 0.5)
    >>> ranker.collapsed_, ranker.predict([[2, 2], [-2, -2]])
    (False, array([ True, False]))
    """

    path = PATH[3:]

    def _solver(
        self,
        sample: LinearSample,
        window: tuple[float, float],
        limits: SolverLimits,
        progress: Progress,
    ) -> Solver:
        if window == WHOLE:
            return super()._solver(sample, window, limits, progress)
        return DifferenceSolver(sample, window, limits, progress)


@dataclass(kw_only=True, eq=False, repr=False)
class TopPushParameters:
    """The parameters of `TopPush` that `WindowSVM` does not have, or that mean something else there."""

    fpr_min: EvaluatedFprMin = 0.0
    fpr_max: EvaluatedFprMax = 0.05


@dataclass(kw_only=True, eq=False, repr=False)
class TopPush(TopPushParameters, WindowSVM):
    """Linear ranker that lifts the positives above the highest-scoring negative (TopPush).

    Use it if only the very top of the list matters and labels are clean. A single mislabelled negative spoils the fit.
    With noisy labels, use `PAUCSVM` or `PNormPush`.

    It minimises ½‖w‖² + C R(w) over standardised features. R is the mean over the positives of (1 + t - s)₊², with s
    the score of the positive and t the highest score of a negative. R is an upper bound of the fraction of positives
    that do not score above every negative.

    If no linear score lifts the mean of the positives above the highest negative, w = 0 is the minimum for every C.
    This happens on most tables with many rows. The fit then sets `collapsed_` and minimises ½‖w - v‖² + C R(w) instead,
    where v is the solution for the full AUC. It does the same if C is chosen and v ranks the validation rows better.
    `anchor_cost_` is then a number, and the fit emits a warning.

    Attributes
    ----------
    bandwidth_ : float or None
        h of the Gaussian kernel, as given or chosen; None without one.
    C_ : float
        As given, or as chosen.
    anchor_cost_ : float or None
        C of the solution for the full AUC that anchored the fit; None without an anchor.
    objective_ : float
        The minimised objective at the solution; the anchored one if the fit was anchored.
    gap_ : float
        Upper bound of the objective's distance from its minimum.
    n_iter_ : int
        Number of iterations of the last optimisation.
    collapsed_ : bool
        Whether constant scores (w = 0) are optimal for every C.
    critical_fpr_ : float or None
        If the fit collapsed, the smallest `fpr_max` with which `PAUCSVM` would not, to 2 %; None if there is none.

    Notes
    -----
    The paper solves the dual, with a variable per row, by Nesterov's accelerated gradient. Here the same objective is
    minimised by the cutting planes of the other machines: an iteration costs the same, two products with the table, and
    tens of iterations are enough where the accelerated gradient needs thousands (docs/papers/other-methods.md). Both
    end at the same minimum. One negative decides, so that a single mislabelled row among the positives spoils the fit.
    C, and whether the anchor is needed, are chosen by the partial AUC from fpr_min to fpr_max on held-out rows, since
    the positives above the highest negative of a small part say little. Features are coded and mapped as by `AUCSVM`.

    References
    ----------
    N. Li, R. Jin and Z.-H. Zhou, "Top Rank Optimization in Linear Time", NIPS 2014: eqs. 2 and 3. The collapse is not
    in the paper.
    S. Agarwal, "The Infinite Push: A new support vector ranking algorithm that directly optimizes accuracy at the
    absolute top of the list", SDM 2011: the same with the hinge loss, which is `PAUCSVM` with fpr_max below 1/n.

    Examples
    --------
    >>> import numpy as np
    >>> from core import TopPush
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ranker = TopPush(C=1.0).fit(X, X[:, 0] + 0.5 * X[:, 1] > 0.5)
    >>> ranker.collapsed_, ranker.predict([[2, 2], [-2, -2]])
    (False, array([ True, False]))
    """

    def _window(self) -> tuple[float, float]:
        return TOP

    def _validation_window(self) -> tuple[float, float]:
        return self.fpr_min, self.fpr_max


def fit_map(
    parameters: SupportVectorParameters, data: TrainingData
) -> tuple[FeatureMap, LinearRows]:
    """Return the feature map fitted on the training rows, and these rows in its features.

    InvalidData: the map would take too much memory.

    The classes do not shape a map: they are only part of the keys by which rows are drawn. X is dense for "bins".
    """
    X, positive, weight, n_categories = data.X, data.positive, data.weight, data.n_categories
    if parameters.feature_map == "bins":
        return fit_binned(X, weight, n_categories, parameters.max_bins)
    coordinates, _ = learn_coordinates(X, weight, n_categories, standardize=parameters.standardize)
    rows = MapRows(X, positive, weight, coordinates, parameters.random_state)
    fit = fit_fourier if parameters.feature_map == "fourier" else fit_nystroem
    return fit(rows, parameters.n_components, parameters.bandwidth)
