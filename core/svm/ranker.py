"""What the support vector machines for an area share: choice of C, the anchor, feature maps and the fitted state."""

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Ge
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from core.errors import ArtifactError, InvalidData
from core.linear.blas import one_blas_thread
from core.linear.design import Coordinates, FeatureMap, Ints, Rows, Sample, learn_coordinates
from core.linear.ranker import Figure, LinearRanker
from core.ranker import Callback, Floats
from core.splits import hold_out
from core.state import FINITE, Value

from .feature_maps import BinnedMap, MapName, fit_binned
from .gaussian_maps import FourierMap, NystroemMap, TrainingRows, fit_fourier, fit_nystroem
from .parameters import SupportVectorParameters
from .selection import PATH, PLAIN_COST, Fitted, Objective, Selection
from .solvers import ConvexSolver, Limits, Progress, Solver

MAPS: Mapping[MapName | None, type[FeatureMap]] = MappingProxyType(
    {None: Coordinates, "fourier": FourierMap, "nystroem": NystroemMap, "bins": BinnedMap}
)

OptionalFigure = Annotated[float | None, Value(), Ge(0.0), FINITE]

# Programs that are solved only to choose C by the rows held out may end so many times further from their minimum, and
# after so many iterations in any case.
CHOOSING, CHOOSING_ITERATIONS = 10.0, 100

# Rows under a Gaussian map are of length 1: with less the scores are the difference of the classes' means, whatever C.
LEAST_KERNEL_COST = 0.1


class SupportWarning(UserWarning):
    """A support vector machine is not what its parameters ask for."""


class SupportConvergenceWarning(SupportWarning, ConvergenceWarning):
    """The solver stopped before it came within the tolerance."""


class SupportVectorRanker(SupportVectorParameters, LinearRanker):
    """A linear ranker that minimises ½‖w‖² + C R(w), R a surrogate of the area above the ROC curve.

    It is linear in the columns, or in what a feature map makes of them.

    Attributes
    ----------
    bandwidth_ : float or None
        h of the Gaussian kernel; None where there is none.
    C_ : float
        As given, or as chosen.
    anchor_cost_ : float or None
        C of the machine for the whole AUC that it was anchored at; None where it was not.
    objective_, gap_ : float
        The objective that was minimised, the anchored one where it was anchored, and by how much at most it is above
        its minimum.
    n_iter_ : int
        Iterations of the last program.
    collapsed_ : bool
        Whether w = 0, constant scores, is the optimum for every C; of a risk that is not convex, whether nothing better
        was found.
    critical_fpr_ : float or None
        Where it collapsed, the least `fpr_max`, but for 2 %, with which it would not; None where none would do.
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
        """Give the window of false positive rates that is asked for."""

    def _anchor(self) -> float | Literal["auto"] | None:
        """Give the anchor that is asked for."""
        return None

    def _costs(self) -> tuple[float, ...]:
        """Give the C to choose from."""
        if self.feature_map in (None, "bins"):
            return self.path
        return tuple(cost for cost in self.path if cost >= LEAST_KERNEL_COST)

    def _has_gap(self) -> bool:
        """Whether the distance from a minimum is known."""
        return True

    def _proves_collapse(self) -> bool:
        """Whether a collapse is proven for every C; else it is that nothing better was found with those tried."""
        return True

    def _solver(
        self, sample: Sample, window: tuple[float, float], limits: Limits, progress: Progress
    ) -> Solver:
        """Give what solves the programs of a window."""
        return ConvexSolver(sample, window, limits, progress)

    def _fit(
        self, X: Any, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        with one_blas_thread():
            self._fit_path(X, positive, weight, callback)

    def _fit_path(
        self, X: Any, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        progress = Progress(callback)
        rows = self._fit_design(X, positive, weight)
        sample = Sample(rows, np.flatnonzero(positive), np.flatnonzero(~positive), weight)
        given = None if self.C == "auto" else float(self.C)
        values = self._followed()
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
                sample,
                Objective(self._window(), C, self._anchor(), self._costs()),
                make,
                lambda: hold_out(X, positive, weight, self.validation_fraction, self.random_state),
            )
            progress.plan(selection.count() * max(len(values), 1))
            found = selection.run()
            self.collapsed_ = selection.collapsed
            self.critical_fpr_ = selection.solver.critical_fpr() if self.collapsed_ else None
            del selection  # it holds vectors as long as the rows are many
            self._take_found(found, C, sample)
            if values:
                self._keep_on_path()
        progress.finish(self.objective_, self.gap_ or 0.0, self.n_iter_)

    def _take_found(self, found: Fitted | None, C: float | None, sample: Sample) -> None:
        """Take what was found, w = 0, where R is 1, if nothing was; warn of what it is not."""
        if found is None:
            self.C_, self.anchor_cost_ = PLAIN_COST if C is None else C, None
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
        if (departure := self._describe_departure()) is not None:
            warnings.warn(departure, SupportWarning, stacklevel=4)

    def _describe_departure(self) -> str | None:
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
        elif self._proves_collapse():
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


def fit_map(
    asked: SupportVectorParameters,
    X: Any,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    n_categories: Ints,
) -> tuple[FeatureMap, Rows]:
    """Learn the feature map that parameters ask for.

    Parameters
    ----------
    asked : SupportVectorParameters
        With a feature map.
    X : ndarray or scipy.sparse CSR of shape (n, p), float64
        NaN is missing; a category is its position. Dense for "bins".
    positive : ndarray of shape (n,), bool
        Only for keys of rows: classes do not shape a map.
    weight : ndarray of shape (n,), float64
        Above 0.
    n_categories : ndarray of shape (p,), int64
        0 for a column of numbers.

    Returns
    -------
    FeatureMap
    Rows
        The training rows under it, as their features are to be weighed: products are the kernel's.

    Raises
    ------
    InvalidData
        The map would take too much memory.
    """
    if asked.feature_map == "bins":
        return fit_binned(X, weight, n_categories, asked.max_bins)
    coordinates, _ = learn_coordinates(X, weight, n_categories, standardize=asked.standardize)
    rows = TrainingRows(X, positive, weight, coordinates, asked.random_state)
    fit = fit_fourier if asked.feature_map == "fourier" else fit_nystroem
    return fit(rows, asked.n_components, asked.bandwidth)
