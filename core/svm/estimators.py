"""The support vector machines for the whole AUC and for a window of false positive rates, and what they share."""

import warnings
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

from core.base.parameters import Seed
from core.base.ranker import Callback, Floats, Groups
from core.base.splits import hold_out
from core.base.state import FINITE, Value
from core.errors import ArtifactError, InvalidData
from core.linear.design import Coordinates, FeatureMap, Ints, Rows, Sample, learn_coordinates
from core.linear.ranker import Figure, LinearRanker
from core.metrics.window import FprMax, FprMin, check_window

from .feature_maps import (
    MAX_BINS,
    BinnedMap,
    FourierMap,
    MapName,
    NystroemMap,
    TrainingRows,
    fit_binned,
    fit_fourier,
    fit_nystroem,
)
from .selection import DEFAULT_COST, PATH, Fitted, Selection
from .solvers import (
    WHOLE,
    ConvexSolver,
    DifferenceSolver,
    Limits,
    Progress,
    SigmoidSolver,
    Solver,
)

MAPS: Mapping[MapName | None, type[FeatureMap]] = MappingProxyType(
    {None: Coordinates, "fourier": FourierMap, "nystroem": NystroemMap, "bins": BinnedMap}
)

OptionalFigure = Annotated[float | None, Value(), Ge(0.0), FINITE]

# Programs that are solved only to choose C by the rows held out may end so many times further from their minimum, and
# after so many iterations in any case.
CHOOSING, CHOOSING_ITERATIONS = 10.0, 100

# Rows under a Gaussian map are of length 1: with less the scores are the difference of the classes' means, whatever C.
MIN_KERNEL_COST = 0.1

Cost = Annotated[
    Annotated[float, Gt(0), Le(1e6)] | Literal["auto"],
    Doc(
        "Weight of the risk beside ½‖w‖². auto: the best of 1e-5 to 1e4, with fourier and nystroem "
        "of 0.1 to 1e4, by the partial AUC asked for, on a part of the training rows that is held "
        "out for it; all are fitted along one path."
    ),
]
Tolerance = Annotated[
    float,
    Ge(1e-9),
    Le(0.1),
    Doc(
        "Stop when the objective is proven to be within tol · C of its minimum; 10 tol · C, or 100 "
        "iterations, where a program only serves to choose C."
    ),
]
MaxIter = Annotated[int, Ge(1), Le(100_000), Doc("Most iterations of the solver for one C.")]
Standardize = Annotated[
    bool, Doc("Whether to divide numeric features by their standard deviation.")
]
SurrogateName = Annotated[
    Literal["tight", "naive", "sigmoid"],
    Doc(
        "tight: pairs with negatives below the window do not count. naive: they do, without margin. "
        "sigmoid: the area itself with smooth steps, which is not convex, by L-BFGS from the machine "
        "for the whole AUC with the same C; max_iter is then that of L-BFGS, too."
    ),
]
Anchor = Annotated[
    Annotated[float, Ge(0), Le(1e6)] | Literal["auto"] | None,
    Doc(
        "κ: minimise ½‖w - κ v‖² + C R(w) instead of ½‖w‖² + C R(w), v the solution for the whole "
        "AUC. auto: with κ = 1, and only where the window alone gives constant scores or, C chosen, "
        "does worse than v on the rows held out; a C that is given is then the greatest of those "
        "tried. None: never."
    ),
]
HeldFraction = Annotated[
    float,
    Gt(0),
    Lt(1),
    Doc("Share of each class's weight held out to choose C; without it, not used."),
]
RandomState = Annotated[Seed, Doc("Seed of the draw of what is held out to choose C.")]
FeatureMapName = Annotated[
    MapName | None,
    Doc(
        "What the linear score is taken over. None: the columns. fourier: random Fourier features "
        "of the Gaussian kernel. nystroem: the Gaussian kernel with rows drawn as landmarks; exact "
        "where n_components is at least the number of rows. bins: the bins of each column, which "
        "makes the score a sum of step functions; dense tables only."
    ),
]
Components = Annotated[
    int,
    Ge(1),
    Le(4096),
    Doc("Features of fourier, in pairs, or landmarks of nystroem; else not used."),
]
Bandwidth = Annotated[
    Annotated[float, Ge(1e-6), Le(1e6)] | Literal["auto"],
    Doc(
        "h of the Gaussian kernel exp(-‖x - x'‖²/2h²) over standardised features, of fourier and "
        "nystroem. auto: the median distance of rows drawn by seed."
    ),
]
MapBins = Annotated[
    int, Gt(1), Le(MAX_BINS), Doc("Most bins of a column, the missing one apart, of bins.")
]


@dataclass(kw_only=True, eq=False, repr=False)
class SupportVectorParameters:
    """What all machines for an area have."""

    C: Cost = "auto"
    tol: Tolerance = 1e-4
    max_iter: MaxIter = 1000
    standardize: Standardize = True
    feature_map: FeatureMapName = None
    n_components: Components = 300
    bandwidth: Bandwidth = "auto"
    max_bins: MapBins = 32
    validation_fraction: HeldFraction = 0.25
    random_state: RandomState = 0


class SupportWarning(UserWarning):
    """A support vector machine is not what its parameters ask for."""


class SupportConvergenceWarning(SupportWarning, ConvergenceWarning):
    """The solver stopped before it came within the tolerance."""


class SupportVectorRanker(SupportVectorParameters, LinearRanker):
    """A linear ranker that minimises ½‖w‖² + C R(w), R a surrogate of the area above the ROC curve.

    It is linear in the columns, or in what a feature map makes of them. `AUCSVM` and `PAUCSVM` tell the attributes.
    """

    path: ClassVar[tuple[float, ...]] = PATH
    """The C that are tried where C is "auto"."""

    bandwidth_: float | None
    C_: Figure
    anchor_cost_: OptionalFigure
    objective_: Figure
    gap_: OptionalFigure
    n_iter_: Annotated[int, Value("iterations"), Ge(0)]
    collapsed_: Annotated[bool, Value()]
    critical_fpr_: OptionalFigure

    @abstractmethod
    def _window(self) -> tuple[float, float]:
        """Return the window of false positive rates that is asked for."""

    def _anchor(self) -> float | Literal["auto"] | None:
        """Return the anchor that is asked for."""
        return None

    def _costs(self) -> tuple[float, ...]:
        """Return the C to choose from."""
        if self.feature_map in (None, "bins"):
            return self.path
        return tuple(cost for cost in self.path if cost >= MIN_KERNEL_COST)

    def _has_gap(self) -> bool:
        """Whether the distance from a minimum is known."""
        return True

    def _solver(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> Solver:
        """Return what solves the programs of a window."""
        return ConvexSolver(sample, window, limits, progress)

    def _fit_sample(
        self,
        X: Any,
        sample: Sample,
        positive: npt.NDArray[np.bool_],
        group: Groups | None,
        callback: Callback,
    ) -> None:
        progress = Progress(callback)
        given = None if self.C == "auto" else float(self.C)
        values = self._followed()
        hold = partial(
            hold_out,
            X,
            positive,
            sample.weight,
            self.validation_fraction,
            self.random_state,
            group,
        )
        solvers: dict[tuple[bool, tuple[float, float]], Solver] = {}

        def make(part: Sample, window: tuple[float, float]) -> Solver:
            limits = Limits(self.tol, self.max_iter)
            if part is not sample:
                limits = Limits(CHOOSING * self.tol, min(self.max_iter, CHOOSING_ITERATIONS))
            if not values:
                return self._solver(part, window, limits, progress)
            key = part is sample, window  # each C holds the same rows out
            if key not in solvers:
                solvers[key] = self._solver(part, window, limits, progress)
            return solvers[key]

        for C in values or (given,):
            selection = Selection(
                sample, self._window(), C, self._anchor(), self._costs(), make, hold
            )
            progress.plan(selection.count() * max(len(values), 1))
            found = selection.run()
            self.collapsed_ = selection.collapsed
            self.critical_fpr_ = selection.solver.critical_fpr() if self.collapsed_ else None
            is_proven = selection.solver.convex
            del selection  # it holds vectors as long as the rows are many
            self._take_found(found, C, sample, is_proven)
            if values:
                self._keep_on_path()
        progress.finish(self.objective_, self.gap_ or 0.0, self.n_iter_)

    def _take_found(
        self, found: Fitted | None, C: float | None, sample: Sample, is_proven: bool
    ) -> None:
        """Take what was found, w = 0, where R is 1, if nothing was; warn of what it is not.

        `is_proven` says whether a collapse is proven, or is that nothing better was found.
        """
        if found is None:
            self.C_, self.anchor_cost_ = DEFAULT_COST if C is None else C, None
            w, self.objective_, gap, self.n_iter_ = np.zeros(sample.rows.size), self.C_, 0.0, 0
        else:
            solution, self.C_, self.anchor_cost_ = found
            w, self.objective_ = solution.point.w, solution.objective
            gap, self.n_iter_ = solution.gap, solution.n_iter
        self.gap_ = gap if self._has_gap() else None
        self._take_fit(sample, w)
        if found is not None and not found.solution.converged:
            message = f"the solver stopped after max_iter = {self.max_iter} iterations"
            if self.gap_ is not None:
                message += f", up to {self.gap_:.3g} above the minimum"
            warnings.warn(message, SupportConvergenceWarning, stacklevel=4)
        if (departure := self._describe_departure(is_proven)) is not None:
            warnings.warn(departure, SupportWarning, stacklevel=4)

    def _describe_departure(self, is_proven: bool) -> str | None:
        """Say what else was minimised than the window's objective, and why; None where that was."""
        low, high = self._window()
        message = f"for false positive rates {low:g} to {high:g} "
        if not self.collapsed_:
            if not self._w.any():
                return (
                    f"{message}nothing is better than constant scores by more than tol · C to the "
                    f"anchored objective with C = {self.C_:g}. The scores are constant"
                )
            if self.anchor_cost_ is None or self._anchor() != "auto":
                return None
            message += (
                "the window's own risk did not rank the rows held out better "
                "than the machine for the whole AUC"
            )
        elif is_proven:
            message += (
                "constant scores are the optimum whatever C: "
                "no linear score lifts the mean of the positives above that of its highest negatives"
            )
        else:
            message += "nothing better than constant scores was found"
        if self.critical_fpr_ is not None:
            message += f"; with fpr_max from {self.critical_fpr_:.3g} on one does"
        if self.anchor_cost_ is None:
            return f"{message}. The scores are constant"
        return (
            f"{message}. The scores are those of the window's risk (C = {self.C_:g}) anchored at "
            f"the machine for the whole AUC (C = {self.anchor_cost_:g})"
        )

    def _fit_design(self, X: Any, positive: npt.NDArray[np.bool_], weight: Floats) -> Rows:
        if self.feature_map is None:
            return super()._fit_design(X, positive, weight)
        self._map, rows = fit_map(self, X, positive, weight, self._n_categories())
        return rows

    def _known(self) -> dict[str, Any]:
        return super()._known() | {"_map": MAPS[self.feature_map]}

    def _restore(self) -> None:
        super()._restore()
        self.bandwidth_ = getattr(self._map, "bandwidth", None)

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
        """Check X; a sparse matrix stays one, and is refused where columns are read whole."""
        if self.feature_map == "bins" and sparse.issparse(X):
            raise InvalidData("feature_map 'bins' takes dense tables only, got a sparse matrix")
        return super()._matrix(X, reset=reset)


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
    anchor_cost_ : float or None
        C of the machine for the whole AUC that it was anchored at; None where it was not.
    objective_ : float
        The objective that was minimised: the anchored one where it was anchored.
    gap_ : float or None
        By how much at most the objective is above its minimum; None with the sigmoid surrogate, of whose minimum
        nothing is known.
    collapsed_ : bool
        Whether w = 0, constant scores, is the optimum for every C; with the sigmoid surrogate, whether no better
        point than w = 0 was found.
    critical_fpr_ : float or None
        Where it collapsed, the least `fpr_max`, but for 2 %, with which it would not; None where none would do.
    coef_, bandwidth_, intercept_, C_, n_iter_
        As of `AUCSVM`.

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
    objective_ : float
        The objective at the best point found.
    gap_ : float
        By how much the last convex program may be above its minimum; of the minimum of the whole nothing is known.
    n_iter_ : int
        Steps, each of which solves a convex program.
    collapsed_ : bool
        Whether no better point than w = 0, constant scores, was found.
    critical_fpr_ : None
    coef_, bandwidth_, intercept_, C_, anchor_cost_
        As of `PAUCSVM`.

    Notes
    -----
    Features are taken, and mapped, as by `AUCSVM`, a collapse is met as by `PAUCSVM`. C = "auto" tries 1e-2 to 1e4.

    References
    ----------
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: eq. 9, §6 and Algorithm 4, with its constants repaired.
    """

    path = PATH[3:]

    def _solver(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> Solver:
        if window == WHOLE:
            return super()._solver(sample, window, limits, progress)
        return DifferenceSolver(sample, window, limits, progress)


def fit_map(
    asked: SupportVectorParameters,
    X: Any,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    n_categories: Ints,
) -> tuple[FeatureMap, Rows]:
    """Learn the feature map that parameters ask for; return it, and the training rows as its features are to be weighed.

    In X, dense for "bins", NaN is missing and a category is its position. Labels are only for keys of rows: classes do
    not shape a map. Raises InvalidData where the map would take too much memory.
    """
    if asked.feature_map == "bins":
        return fit_binned(X, weight, n_categories, asked.max_bins)
    coordinates, _ = learn_coordinates(X, weight, n_categories, standardize=asked.standardize)
    rows = TrainingRows(X, positive, weight, coordinates, asked.random_state)
    fit = fit_fourier if asked.feature_map == "fourier" else fit_nystroem
    return fit(rows, asked.n_components, asked.bandwidth)
