"""The frame of the support vector machines: collapse, the choice of C, the anchor, and what is told of the fit."""

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from core.errors import ArtifactError
from core.holdout import hold_out
from core.ranker import Arrays, Callback, Floats

from .fitting import PATH, Progress, Sample, Trainer
from .linear import check_figure
from .mapped import MappedRanker
from .plan import PLAIN_COST, Aim, Fitted, Plan, Solver

# Programmes that are solved only to choose C by the rows held out may end so many times further from their minimum, and
# after so many iterations in any case.
CHOOSING, CHOOSING_ITERATIONS = 10.0, 100

# Rows under a Gaussian map are of length 1: with less the scores are the difference of the classes' means, whatever C.
LEAST_KERNEL_COST = 0.1


class SupportWarning(UserWarning):
    """A support vector machine is not what its parameters ask for."""


class Limits(NamedTuple):
    """When a programme ends: within tol · C of its minimum, or after max_iter iterations."""

    tol: float
    max_iter: int


class SupportVectorRanker(MappedRanker):
    """A linear ranker that minimises ½‖w‖² + C R(w), R a convex surrogate of the area above the ROC curve.

    Attributes
    ----------
    C_ : float
        As given, or as chosen.
    anchor_cost_ : float or None
        C of the machine for the whole AUC that it was anchored at; None where it was not.
    objective_, gap_ : float
        The objective that was minimised, the anchored one where it was anchored, and by how much at most it is above
        its minimum.
    n_iter_ : int
        Iterations of the last programme.
    collapsed_ : bool
        Whether w = 0, constant scores, is the optimum for every C; of a risk that is not convex, whether nothing better
        was found.
    critical_fpr_ : float or None
        Where it collapsed, the least `fpr_max`, but for 2 %, with which it would not; None where none would do.
    """

    path: ClassVar[tuple[float, ...]] = PATH
    """The C that are tried where C is "auto"."""

    C: float | Literal["auto"]
    tol: float
    max_iter: int
    validation_fraction: float

    C_: float
    anchor_cost_: float | None
    objective_: float
    gap_: float | None
    n_iter_: int
    collapsed_: bool
    critical_fpr_: float | None

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
        """Give what solves the programmes of a window."""
        return Trainer(sample, window, naive=False, progress=progress, **limits._asdict())

    def _fit(
        self, X: Any, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1, user_api="blas"):  # whose sums depend on its threads
            self._fit_path(X, positive, weight, callback)

    def _fit_path(
        self, X: Any, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        progress = Progress(callback)
        rows = self._lay_out(X, positive, weight)
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
            plan = Plan(
                sample,
                Aim(self._window(), C, self._anchor(), self._costs()),
                make,
                lambda: hold_out(X, positive, weight, self.validation_fraction, self.random_state),
            )
            progress.plan(plan.count() * max(len(values), 1))
            w, converged = self._solve(plan, sample, C)
            del plan  # it holds vectors as long as the rows are many
            self._take_fit(sample, w)
            self._warn(converged)
            if values:
                self._keep_on_path()
        progress.finish(self.objective_, self.gap_ or 0.0, self.n_iter_)

    def _solve(self, plan: Plan, sample: Sample, C: float | None) -> tuple[Floats, bool]:
        """Run a plan; give the coefficients found, and whether the solver converged."""
        found = plan.run()
        self.collapsed_ = plan.collapsed
        self.critical_fpr_ = plan.critical_fpr() if self.collapsed_ else None
        self._note(found, C)
        if found is None:
            return np.zeros(sample.rows.size), True
        return found.solution.point.w, found.solution.converged

    def _note(self, found: Fitted | None, C: float | None) -> None:
        if found is None:  # w = 0, where R is 1
            self.C_ = PLAIN_COST if C is None else C
            self.anchor_cost_ = None
            self.objective_, self.gap_, self.n_iter_ = self.C_, 0.0 if self._has_gap() else None, 0
            return
        solution, self.C_, self.anchor_cost_ = found
        self.objective_ = solution.objective
        self.gap_ = solution.gap if self._has_gap() else None
        self.n_iter_ = solution.n_iter

    def _warn(self, converged: bool) -> None:
        if not converged:
            message = f"the solver stopped after max_iter = {self.max_iter} iterations"
            if self.gap_ is not None:
                message += f", up to {self.gap_:.3g} above the minimum"
            warnings.warn(message, SupportWarning, stacklevel=4)
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

    def _figures(self) -> dict[str, Any]:
        return {
            "C": self.C_,
            "anchor_cost": self.anchor_cost_,
            "objective": self.objective_,
            "gap": self.gap_,
            "iterations": self.n_iter_,
            "collapsed": self.collapsed_,
            "critical_fpr": self.critical_fpr_,
        }

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, meta = super()._get_state()
        return arrays, meta | self._figures()

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        super()._set_state(arrays, meta)
        for name in ("C", "objective"):
            check_figure(name, meta[name])
        if (meta["gap"] is not None) != self._has_gap():
            raise ArtifactError(f"gap must be None where none is known, got {meta['gap']!r}")
        for name in ("gap", "anchor_cost", "critical_fpr"):
            if meta[name] is not None:
                check_figure(name, meta[name])
        if type(meta["iterations"]) is not int or not 0 <= meta["iterations"] <= self.max_iter:
            raise ArtifactError(
                f"iterations must be from 0 to max_iter, got {meta['iterations']!r}"
            )
        if type(meta["collapsed"]) is not bool:
            raise ArtifactError(f"collapsed must be true or false, got {meta['collapsed']!r}")
        self.C_, self.anchor_cost_ = meta["C"], meta["anchor_cost"]
        self.objective_, self.gap_, self.n_iter_ = (
            meta["objective"],
            meta["gap"],
            meta["iterations"],
        )
        self.collapsed_, self.critical_fpr_ = meta["collapsed"], meta["critical_fpr"]
