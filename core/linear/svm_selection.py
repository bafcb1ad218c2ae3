"""Selection for ranking SVMs: C chosen on validation rows; regularisation towards 0 or towards the AUC's SVM.

The paper (arXiv:1605.04337, appendix B.2) chooses C on a part of the training rows by the partial AUC; the anchor is
ours.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats
from core.metrics.window import MIN_RISE, WHOLE

from .cutting_planes import Solution
from .design import LinearSample
from .solvers import Solver

# C if "auto" and no rows can be held out to choose it.
DEFAULT_COST = 1.0

# Values of C to choose from.
PATH = tuple(10.0**power for power in range(-5, 5))


# Once this number of values of C in a row did worse than the best, no greater ones are tried.
PATIENCE = 3


class FittedProgram(NamedTuple):
    """The optimisation problem that was solved on all rows, and its solution."""

    solution: Solution
    C: float
    anchor_cost: float | None
    """C of the machine for the whole AUC that the program was anchored at; None if it was not anchored."""


class Choice(NamedTuple):
    """The C with the best partial AUC on the validation rows, and the coefficients fitted with it."""

    C: float
    w: Floats


def choose(
    costs: Iterable[float], solutions: Iterable[Solution], pauc: Callable[[Floats], float]
) -> Choice | None:
    """Return the C whose solution has the greatest partial AUC, the first among equals; None without solutions.

    After `PATIENCE` worse values in a row the greater C are not tried: they take longest.
    """
    best, greatest, n_worse = None, -math.inf, 0
    for C, solution in zip(costs, solutions, strict=False):
        value = pauc(solution.point.w)
        n_worse = n_worse + 1 if value < greatest - MIN_RISE else 0
        if value > greatest + MIN_RISE:
            best, greatest = Choice(C, solution.point.w), value
        if n_worse == PATIENCE:
            break
    return best


@dataclass
class Selection:
    """Chooses C and the regularisation target (0 or an anchor) of an SVM, then solves it on all rows.

    solver: Solver; of the window, on all rows.
    collapsed: bool; whether w = 0 is the optimum on all rows for every C; for a risk that is not convex, whether `run`
        found nothing better.
    """

    sample: LinearSample
    window: tuple[float, float]
    """Of the risk."""
    validation_window: tuple[float, float]
    """Of the partial AUC on the validation rows, which judges."""
    C: float | None
    """None: chosen from `path`."""
    anchor: float | Literal["auto"] | None
    path: tuple[float, ...]
    """Ascending."""
    make: Callable[[LinearSample, tuple[float, float]], Solver]
    """Returns a solver for a sample and a window."""
    draw_validation: Callable[[], npt.NDArray[np.bool_] | None]
    """Returns the mask of the validation rows; None if there are too few rows."""

    def __post_init__(self) -> None:
        self.solver = self.make(self.sample, self.window)
        self.collapsed = self.solver.collapsed
        self._default_cost = DEFAULT_COST if self.C is None else self.C  # if none can be chosen
        self._costs, self._anchored_costs = self.path, self.path
        if self.C is not None:  # an anchored program is tried with smaller C, too
            self._costs = (self.C,)
            self._anchored_costs = (*(cost for cost in self.path if cost < self.C), self.C)

    @cached_property
    def _validation_mask(self) -> npt.NDArray[np.bool_] | None:
        return self.draw_validation()

    @cached_property
    def _pauc(self) -> Callable[[Floats], float]:
        assert self._validation_mask is not None
        return self.sample.pauc(self.validation_window, self._validation_mask)

    @cached_property
    def _training_pauc(self) -> Callable[[Floats], float]:
        return self.sample.pauc(self.validation_window)

    @cached_property
    def _training(self) -> LinearSample:
        assert self._validation_mask is not None
        return self.sample.without(self._validation_mask)

    @cached_property
    def _auc_solver(self) -> Solver:
        return self.make(self.sample, WHOLE)

    def count(self) -> int:
        """Return the expected number of optimisation problems to solve, for progress reports."""
        if self.collapsed and self.anchor is not None:
            return 2 + len(self._costs) + len(self._anchored_costs)
        return (2 if self.anchor is not None else 1) + len(self._costs)

    def run(self) -> FittedProgram | None:
        """Return the optimisation problem solved on all rows; None if only w = 0 is left."""
        fitted = None
        if not self.collapsed and self.anchor in (None, "auto"):
            fitted = self._fit_free()
        if fitted is None and self.anchor is not None:
            fitted = self._fit_anchored()
        if fitted is None and not self.solver.convex:
            self.collapsed = True
        return fitted

    def _fit_free(self) -> FittedProgram | None:
        """Minimise ½‖w‖² + C R(w) on all rows; None if w = 0, or if the AUC's SVM is allowed and better.

        It is compared on the validation rows or, learnt without them, on all rows.
        """
        cost, start, of_auc = self._default_cost, None, None
        if self.C is None and self._validation_mask is not None:
            chosen = self._choose_free()
            if chosen is None:
                if self._make_auc() is not None and not self._auc_solver.collapsed:
                    return None
            else:
                cost, start = chosen
                of_auc = self._fit_auc(cost)
                if of_auc is not None and self._is_worse(self._pauc, chosen.w, of_auc):
                    return None
        solution = next(self.solver.free((cost,), start), None)
        # of a convex risk `collapsed` is proven; a solver that was stopped early proves nothing
        is_better = solution is not None and (
            self.solver.convex or cost - solution.objective > solution.gap
        )
        if solution is None or not is_better:
            self.collapsed = True
            return None
        # with few rows the program on all of them may have another solution than the one that was validated
        if of_auc is not None and self._is_worse(self._training_pauc, solution.point.w, of_auc):
            return None
        return FittedProgram(solution, cost, None)

    def _choose_free(self) -> Choice | None:
        part = self.make(self._training, self.window)
        return None if part.collapsed else choose(self._costs, part.free(self._costs), self._pauc)

    def _is_worse(self, pauc: Callable[[Floats], float], w: Floats, of_auc: Floats) -> bool:
        """Return True if w has a lower partial AUC than the AUC's SVM `of_auc`, unless that collapses on all rows."""
        return pauc(w) < pauc(of_auc) - MIN_RISE and not self._auc_solver.collapsed

    def _make_auc(self) -> Solver | None:
        """Return the AUC's solver on the training part; None if its optimum is w = 0 or no anchor is allowed."""
        if self.anchor is None or self.window == WHOLE:
            return None
        auc = self.make(self._training, WHOLE)
        return None if auc.collapsed else auc

    def _fit_auc(self, C: float) -> Floats | None:
        auc = self._make_auc()
        return None if auc is None else next(auc.free((C,))).point.w

    def _fit_anchored(self) -> FittedProgram | None:
        """Minimise ½‖w - κ v‖² + C R(w), v the solution for the whole AUC; None if the solution is w = 0."""
        auc = self._auc_solver
        if auc.collapsed:
            return None
        kappa = 1.0 if self.anchor == "auto" else float(self.anchor or 0.0)
        cost, start = self._default_cost, None
        window_C = self.path[0] if self.anchor == "auto" else cost
        if self.anchor == "auto" or self.C is None:
            chosen = self._choose_anchored(kappa)
            if chosen is not None:
                (cost, start), window_C = chosen
        of_auc = next(auc.free((cost,), start))
        anchor = of_auc.point.w
        while window_C >= 0.5 * self.path[0]:
            for solution in self.solver.anchored((window_C,), kappa * anchor):
                if self.anchor != "auto" or not self._is_worse(
                    self._training_pauc, solution.point.w, anchor
                ):
                    return FittedProgram(solution, window_C, cost)
            if self.anchor != "auto":
                return None
            window_C /= 10.0
        # no C of the window ranks the rows better than v; or v is so short that all end at w = 0, and v ranks whatever
        # its length
        return FittedProgram(of_auc._replace(objective=0.0, gap=0.0), 0.0, cost)

    def _choose_anchored(self, kappa: float) -> tuple[Choice, float] | None:
        """Return the best C for the anchor κ v on validation rows, and the AUC SVM's C; None if there is none."""
        if self._validation_mask is None:
            return None
        auc = self.make(self._training, WHOLE)
        if auc.collapsed:
            return None
        base = choose(self._costs, auc.free(self._costs), self._pauc)
        if base is None:
            return None
        windowed = self.make(self._training, self.window)
        solutions = windowed.anchored(self._anchored_costs, kappa * base.w)
        chosen = choose(self._anchored_costs, solutions, self._pauc)
        return base, self.path[0] if chosen is None else chosen.C
