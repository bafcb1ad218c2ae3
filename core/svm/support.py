"""The frame of the support vector machines: collapse, the choice of C, the anchor, and what is told of the fit."""

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from core.errors import ArtifactError
from core.holdout import hold_out
from core.ranker import Arrays, Callback, Floats

from .cutting_planes import Solution
from .design import lay_out
from .fitting import PATH, Choice, Progress, Sample, Trainer, choose
from .linear import LinearRanker

WHOLE = (0.0, 1.0)

# C where none is given and no rows can be held out to choose one.
PLAIN_COST = 1.0


class SupportWarning(UserWarning):
    """A support vector machine is not what its parameters ask for."""


class Aim(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    window : (float, float)
        Of false positive rates.
    naive : bool
    anchor : float, "auto" or None
    """

    window: tuple[float, float]
    naive: bool
    anchor: float | Literal["auto"] | None


class Fitted(NamedTuple):
    """What was found.

    Attributes
    ----------
    w : ndarray of shape (size,), float64
    objective, gap : float
    n_iter : int
    C : float
        Of the programme that was solved last.
    anchor_cost : float or None
        C of the whole-AUC machine that it was anchored at.
    converged : bool
    """

    w: Floats
    objective: float
    gap: float
    n_iter: int
    C: float
    anchor_cost: float | None
    converged: bool


class SupportVectorRanker(LinearRanker):
    """A linear ranker that minimises ½‖w‖² + C R(w), R a convex surrogate of the area above the ROC curve.

    Attributes
    ----------
    C_ : float
        As given, or as chosen.
    anchor_cost_ : float or None
        C of the machine for the whole AUC that it was anchored at; None where it was not.
    objective_, gap_ : float
        The objective, and by how much at most it is above its minimum.
    n_iter_ : int
        Iterations of the last programme.
    collapsed_ : bool
        Whether w = 0, constant scores, is the optimum for every C.
    critical_fpr_ : float or None
        Where it collapsed, the least `fpr_max`, but for 2 %, with which it would not; None where none would do.
    """

    C: float | Literal["auto"]
    tol: float
    max_iter: int
    standardize: bool
    validation_fraction: float
    random_state: int

    C_: float
    anchor_cost_: float | None
    objective_: float
    gap_: float
    n_iter_: int
    collapsed_: bool
    critical_fpr_: float | None

    @abstractmethod
    def _aim(self) -> Aim:
        """Say what is asked for."""

    def _fit(
        self, X: Any, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        aim, progress = self._aim(), Progress(callback)
        rows = lay_out(X, weight, self._n_categories(), standardize=self.standardize)
        sample = Sample(rows, np.flatnonzero(positive), np.flatnonzero(~positive), weight)
        trainer = self._trainer(sample, aim, progress)
        held = None
        if self.C == "auto" or (trainer.collapsed and aim.anchor == "auto"):
            held = hold_out(X, positive, weight, self.validation_fraction, self.random_state)
        progress.plan(self._count(trainer.collapsed or isinstance(aim.anchor, float)))
        found = None
        self.collapsed_ = trainer.collapsed
        if not self.collapsed_ and aim.anchor in (None, "auto"):
            found = self._fit_free(trainer, held, aim, progress)
            self.collapsed_ = found is None
        if found is None and aim.anchor is not None:
            found = self._fit_anchored(trainer, held, aim, progress)
        if found is None:
            nothing = np.zeros(rows.coordinates.size)
            cost = PLAIN_COST if self.C == "auto" else float(self.C)
            found = Fitted(nothing, cost, 0.0, 0, cost, None, True)
        self.critical_fpr_ = trainer.critical_fpr() if self.collapsed_ else None
        self._take_fit(sample, found.w)
        self._note(found)
        self._warn(aim, found.converged)
        progress.finish(found.objective, found.gap, found.n_iter)

    def _trainer(self, sample: Sample, aim: Aim, progress: Progress) -> Trainer:
        return Trainer(
            sample,
            aim.window,
            naive=aim.naive,
            tol=self.tol,
            max_iter=self.max_iter,
            progress=progress,
        )

    def _costs(self) -> tuple[float, ...]:
        return PATH if self.C == "auto" else (float(self.C),)

    def _pulls(self) -> tuple[float, ...]:
        """The C that are tried for a programme that is anchored: up to that which is given."""
        if self.C == "auto":
            return PATH
        return (*(cost for cost in PATH if cost < self.C), float(self.C))

    def _count(self, anchored: bool) -> int:
        """Count the programmes that are to be solved, at most."""
        if not anchored:
            return 1 + (len(PATH) if self.C == "auto" else 0)
        return 2 + len(self._costs()) + len(self._pulls())

    def _fit_free(
        self, trainer: Trainer, held: npt.NDArray[np.bool_] | None, aim: Aim, progress: Progress
    ) -> Fitted | None:
        """Minimise ½‖w‖² + C R(w); None where that leaves nothing but w = 0."""
        cost, start = PLAIN_COST if self.C == "auto" else float(self.C), None
        if self.C == "auto" and held is not None:
            part = self._trainer(trainer.sample.without(held), aim, progress)
            if part.collapsed:
                return None
            judge = trainer.sample.judge(held, aim.window)
            chosen = choose(PATH, part.free(PATH), judge)
            assert chosen is not None
            cost, start = chosen
        solution = next(trainer.free((cost,), start))
        if cost - solution.objective <= solution.gap:
            return None
        return _fitted(solution, cost, None)

    def _fit_anchored(
        self, trainer: Trainer, held: npt.NDArray[np.bool_] | None, aim: Aim, progress: Progress
    ) -> Fitted | None:
        """Minimise ½‖w - κ v‖² + C R(w), v the solution for the whole AUC; None where v = 0."""
        whole = aim._replace(window=WHOLE)
        auc = self._trainer(trainer.sample, whole, progress)
        if auc.collapsed:
            return None
        kappa = 1.0 if aim.anchor == "auto" else float(aim.anchor or 0.0)
        cost, start = PLAIN_COST if self.C == "auto" else float(self.C), None
        pull = PATH[0] if aim.anchor == "auto" else cost
        chosen = None
        if held is not None:
            chosen = self._choose_anchored(trainer.sample, held, aim, kappa, progress)
        if chosen is not None:
            (cost, start), pull = chosen
        anchor = next(auc.free((cost,), start)).point.w
        while pull >= 0.5 * PATH[0]:
            for solution in trainer.anchored((pull,), kappa * anchor):
                return _fitted(solution, pull, cost)
            if aim.anchor != "auto":
                return None
            pull /= 10.0
        return None

    def _choose_anchored(
        self,
        sample: Sample,
        held: npt.NDArray[np.bool_],
        aim: Aim,
        kappa: float,
        progress: Progress,
    ) -> tuple[Choice, float] | None:
        """Choose C of the anchor, then that of the programme anchored at it."""
        part, judge = sample.without(held), sample.judge(held, aim.window)
        auc = self._trainer(part, aim._replace(window=WHOLE), progress)
        if auc.collapsed:
            return None
        base = choose(self._costs(), auc.free(self._costs()), judge)
        assert base is not None
        pulls = self._pulls()
        windowed = self._trainer(part, aim, progress)
        chosen = choose(pulls, windowed.anchored(pulls, kappa * base.w), judge)
        return base, PATH[0] if chosen is None else chosen.C

    def _warn(self, aim: Aim, converged: bool) -> None:
        if not converged:
            warnings.warn(
                f"the solver stopped after max_iter = {self.max_iter} iterations, "
                f"up to {self.gap_:.3g} above the minimum",
                SupportWarning,
                stacklevel=4,
            )
        if self.collapsed_:
            warnings.warn(self._describe_collapse(aim), SupportWarning, stacklevel=4)

    def _describe_collapse(self, aim: Aim) -> str:
        low, high = aim.window
        message = (
            f"for false positive rates {low:g} to {high:g} constant scores are the optimum whatever C: "
            "no linear score lifts the mean of the positives above that of its highest negatives"
        )
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

    def _note(self, found: Fitted) -> None:
        self.C_, self.anchor_cost_ = found.C, found.anchor_cost
        self.objective_, self.gap_, self.n_iter_ = found.objective, found.gap, found.n_iter

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, meta = super()._get_state()
        return arrays, meta | self._figures()

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        super()._set_state(arrays, meta)
        for name in ("C", "objective", "gap"):
            _check_figure(name, meta[name])
        for name in ("anchor_cost", "critical_fpr"):
            if meta[name] is not None:
                _check_figure(name, meta[name])
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


def _fitted(solution: Solution, C: float, anchor_cost: float | None) -> Fitted:
    w, objective, gap, n_iter, converged = (
        solution.point.w,
        solution.objective,
        solution.gap,
        solution.n_iter,
        solution.converged,
    )
    return Fitted(w, objective, gap, n_iter, C, anchor_cost, converged)


def _check_figure(name: str, value: Any) -> None:
    if type(value) is not float or not 0.0 <= value < math.inf:
        raise ArtifactError(f"{name} must be a finite number, not negative, got {value!r}")
