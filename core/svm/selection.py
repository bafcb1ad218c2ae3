"""Which program is solved: C chosen on rows held out, for the window's own risk or anchored at that of the AUC.

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
from core.linear.design import Sample

from .cutting_planes import Solution
from .solvers import WHOLE, Solver

# C where none is given and no rows can be held out to choose one.
DEFAULT_COST = 1.0

# The C to choose from.
PATH = tuple(10.0**power for power in range(-5, 5))

# An area counts as higher only if it is so by more than rounding.
MIN_RISE = 1e-9

# Values of C in a row that do worse than the best, after which no more are tried.
PATIENCE = 3


class Fitted(NamedTuple):
    """What was found: the solution of the last program, its C, and that of the whole-AUC machine it was anchored at."""

    solution: Solution
    C: float
    anchor_cost: float | None


class Choice(NamedTuple):
    """The C that did best on rows held out, and the coefficients found with it."""

    C: float
    w: Floats


def choose(
    costs: Iterable[float], solutions: Iterable[Solution], pauc: Callable[[Floats], float]
) -> Choice | None:
    """Take the solution of greatest partial AUC, of equal ones the first; None where there is none.

    Once so many in a row as `PATIENCE` have been worse, greater C are not tried: they take longest.
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
    """Chooses C and the program of a window, and solves it, by solvers that are made of a sample and a window.

    C is None where it is to be chosen from the path, which rises. `hold` draws the rows to hold out, None where there
    are too few. `solver` is that of the window on all rows, `collapsed` whether w = 0 is the optimum for them whatever
    C; of a risk that is not convex, whether `run` found nothing better.
    """

    sample: Sample
    window: tuple[float, float]
    C: float | None
    anchor: float | Literal["auto"] | None
    path: tuple[float, ...]
    make: Callable[[Sample, tuple[float, float]], Solver]
    hold: Callable[[], npt.NDArray[np.bool_] | None]

    def __post_init__(self) -> None:
        self.solver = self.make(self.sample, self.window)
        self.collapsed = self.solver.collapsed
        self._default_cost = DEFAULT_COST if self.C is None else self.C  # where none can be chosen
        self._costs, self._anchored_costs = self.path, self.path
        if self.C is not None:  # an anchored program is tried with lesser C, too
            self._costs = (self.C,)
            self._anchored_costs = (*(cost for cost in self.path if cost < self.C), self.C)

    @cached_property
    def _held(self) -> npt.NDArray[np.bool_] | None:
        return self.hold()

    @cached_property
    def _pauc(self) -> Callable[[Floats], float]:
        assert self._held is not None
        return self.sample.validation_pauc(self._held, self.window)

    @cached_property
    def _training(self) -> Sample:
        assert self._held is not None
        return self.sample.without(self._held)

    @cached_property
    def _auc_solver(self) -> Solver:
        return self.make(self.sample, WHOLE)

    def count(self) -> int:
        """Count the programs that are to be solved, as far as can be told beforehand."""
        if self.collapsed and self.anchor is not None:
            return 2 + len(self._costs) + len(self._anchored_costs)
        return (2 if self.anchor is not None else 1) + len(self._costs)

    def run(self) -> Fitted | None:
        """Solve; None where only w = 0 is left."""
        found = None
        if not self.collapsed and self.anchor in (None, "auto"):
            found = self._fit_free()
        if found is None and self.anchor is not None:
            found = self._fit_anchored()
        if found is None and not self.solver.convex:
            self.collapsed = True
        return found

    def _fit_free(self) -> Fitted | None:
        """Minimise ½‖w‖² + C R(w).

        None where nothing but w = 0 comes of it, or where, as rows held out say, the machine for the whole AUC does
        better and there may be an anchor.
        """
        cost, start = self._default_cost, None
        if self.C is None and self._held is not None:
            part = self.make(self._training, self.window)
            chosen = None
            if not part.collapsed:
                chosen = choose(self._costs, part.free(self._costs), self._pauc)
            if self._is_worse_than_auc(chosen):
                return None
            if chosen is not None:
                cost, start = chosen
        solution = next(self.solver.free((cost,), start), None)
        # of a convex risk `collapsed` is proven; a solver that was stopped early proves nothing
        is_better = solution is not None and (
            self.solver.convex or cost - solution.objective > solution.gap
        )
        if solution is None or not is_better:
            self.collapsed = True
            return None
        return Fitted(solution, cost, None)

    def _is_worse_than_auc(self, chosen: Choice | None) -> bool:
        """Whether the machine for the whole AUC does better on rows held out; None: constant scores, whatever C."""
        if self.anchor is None or self.window == WHOLE:
            return False
        auc = self.make(self._training, WHOLE)
        if auc.collapsed:
            return False
        if chosen is None:
            return not self._auc_solver.collapsed
        of_auc = next(auc.free((chosen.C,))).point.w
        is_worse = self._pauc(of_auc) > self._pauc(chosen.w) + MIN_RISE
        return is_worse and not self._auc_solver.collapsed

    def _fit_anchored(self) -> Fitted | None:
        """Minimise ½‖w - κ v‖² + C R(w), v the solution for the whole AUC; None where nothing but w = 0 comes of it."""
        auc = self._auc_solver
        if auc.collapsed:
            return None
        kappa = 1.0 if self.anchor == "auto" else float(self.anchor or 0.0)
        cost, start = self._default_cost, None
        pull = self.path[0] if self.anchor == "auto" else cost
        if self.anchor == "auto" or self.C is None:
            chosen = self._choose_anchored(kappa)
            if chosen is not None:
                (cost, start), pull = chosen
        of_auc = next(auc.free((cost,), start))
        anchor = of_auc.point.w
        while pull >= 0.5 * self.path[0]:
            for solution in self.solver.anchored((pull,), kappa * anchor):
                return Fitted(solution, pull, cost)
            if self.anchor != "auto":
                return None
            pull /= 10.0
        # So short a v that any pull ends at 0: without one, v itself, which ranks whatever its length.
        return Fitted(of_auc._replace(objective=0.0, gap=0.0), 0.0, cost)

    def _choose_anchored(self, kappa: float) -> tuple[Choice, float] | None:
        """Choose C of the anchor, then that of the program anchored at it."""
        if self._held is None:
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
