"""Which program is solved: C chosen on rows held out, for the window's own risk or anchored at that of the AUC.

The paper (arXiv:1605.04337, appendix B.2) chooses C on a part of the training rows by the partial AUC; the anchor is
ours.
"""

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from core.linear.design import Sample
from core.ranker import Floats

from .cutting_planes import Solution
from .solvers import WHOLE, Solver

# C where none is given and no rows can be held out to choose one.
PLAIN_COST = 1.0

# The C to choose from.
PATH = tuple(10.0**power for power in range(-5, 5))

# An area counts as higher only if it is so by more than rounding.
LEAST_RISE = 1e-9

# Values of C in a row that do worse than the best, after which no more are tried.
PATIENCE = 3


class Objective(NamedTuple):
    """What is asked for; C is None where it is to be chosen from the path, which rises."""

    window: tuple[float, float]
    C: float | None
    anchor: float | Literal["auto"] | None
    path: tuple[float, ...]

    @property
    def plain_cost(self) -> float:
        """The C where none can be chosen."""
        return PLAIN_COST if self.C is None else self.C

    @property
    def costs(self) -> tuple[float, ...]:
        """The C to try."""
        return self.path if self.C is None else (self.C,)

    @property
    def anchored_costs(self) -> tuple[float, ...]:
        """The C to try for a program that is anchored: up to that which is given."""
        if self.C is None:
            return self.path
        return (*(cost for cost in self.path if cost < self.C), self.C)


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
        n_worse = n_worse + 1 if value < greatest - LEAST_RISE else 0
        if value > greatest + LEAST_RISE:
            best, greatest = Choice(C, solution.point.w), value
        if n_worse == PATIENCE:
            break
    return best


class Selection:
    """Chooses C and the program, and solves it, by solvers that are made of a sample and a window.

    `hold` draws the rows to hold out, None where there are too few. `solver` is that of the window on all rows,
    `collapsed` whether w = 0 is the optimum for them whatever C; of a risk that is not convex, whether `run` found
    nothing better.
    """

    def __init__(
        self,
        sample: Sample,
        objective: Objective,
        make: Callable[[Sample, tuple[float, float]], Solver],
        hold: Callable[[], npt.NDArray[np.bool_] | None],
    ) -> None:
        self._sample, self._asked, self._make, self._hold = sample, objective, make, hold
        self.solver = make(sample, objective.window)
        self.collapsed = self.solver.collapsed

    @cached_property
    def _held(self) -> npt.NDArray[np.bool_] | None:
        return self._hold()

    @cached_property
    def _pauc(self) -> Callable[[Floats], float]:
        assert self._held is not None
        return self._sample.validation_pauc(self._held, self._asked.window)

    @cached_property
    def _training(self) -> Sample:
        assert self._held is not None
        return self._sample.without(self._held)

    @cached_property
    def _auc_solver(self) -> Solver:
        return self._make(self._sample, WHOLE)

    def count(self) -> int:
        """Count the programs that are to be solved, as far as can be told beforehand."""
        if self.collapsed and self._asked.anchor is not None:
            return 2 + len(self._asked.costs) + len(self._asked.anchored_costs)
        return (2 if self._asked.anchor is not None else 1) + len(self._asked.costs)

    def run(self) -> Fitted | None:
        """Solve; None where only w = 0 is left."""
        found = None
        if not self.collapsed and self._asked.anchor in (None, "auto"):
            found = self._fit_free()
        if found is None and self._asked.anchor is not None:
            found = self._fit_anchored()
        if found is None and not self.solver.convex:
            self.collapsed = True
        return found

    def _fit_free(self) -> Fitted | None:
        """Minimise ½‖w‖² + C R(w).

        None where nothing but w = 0 comes of it, or where, as rows held out say, the machine for the whole AUC does
        better and there may be an anchor.
        """
        cost, start = self._asked.plain_cost, None
        if self._asked.C is None and self._held is not None:
            part = self._make(self._training, self._asked.window)
            chosen = None
            if not part.collapsed:
                chosen = choose(self._asked.costs, part.free(self._asked.costs), self._pauc)
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
        if self._asked.anchor is None or self._asked.window == WHOLE:
            return False
        auc = self._make(self._training, WHOLE)
        if auc.collapsed:
            return False
        if chosen is None:
            return not self._auc_solver.collapsed
        of_auc = next(auc.free((chosen.C,))).point.w
        is_worse = self._pauc(of_auc) > self._pauc(chosen.w) + LEAST_RISE
        return is_worse and not self._auc_solver.collapsed

    def _fit_anchored(self) -> Fitted | None:
        """Minimise ½‖w - κ v‖² + C R(w), v the solution for the whole AUC; None where nothing but w = 0 comes of it."""
        auc = self._auc_solver
        if auc.collapsed:
            return None
        kappa = 1.0 if self._asked.anchor == "auto" else float(self._asked.anchor or 0.0)
        cost, start = self._asked.plain_cost, None
        pull = self._asked.path[0] if self._asked.anchor == "auto" else cost
        if self._asked.anchor == "auto" or self._asked.C is None:
            chosen = self._choose_anchored(kappa)
            if chosen is not None:
                (cost, start), pull = chosen
        of_auc = next(auc.free((cost,), start))
        anchor = of_auc.point.w
        while pull >= 0.5 * self._asked.path[0]:
            for solution in self.solver.anchored((pull,), kappa * anchor):
                return Fitted(solution, pull, cost)
            if self._asked.anchor != "auto":
                return None
            pull /= 10.0
        # So short a v that any pull ends at 0: without one, v itself, which ranks whatever its length.
        return Fitted(of_auc._replace(objective=0.0, gap=0.0), 0.0, cost)

    def _choose_anchored(self, kappa: float) -> tuple[Choice, float] | None:
        """Choose C of the anchor, then that of the program anchored at it."""
        if self._held is None:
            return None
        auc = self._make(self._training, WHOLE)
        base = (
            None
            if auc.collapsed
            else choose(self._asked.costs, auc.free(self._asked.costs), self._pauc)
        )
        if base is None:
            return None
        windowed = self._make(self._training, self._asked.window)
        solutions = windowed.anchored(self._asked.anchored_costs, kappa * base.w)
        chosen = choose(self._asked.anchored_costs, solutions, self._pauc)
        return base, self._asked.path[0] if chosen is None else chosen.C
