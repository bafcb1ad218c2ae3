"""Which programmes are solved: the window's own, or one that is anchored at the machine for the whole AUC."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from core.ranker import Floats

from .cutting_planes import Solution
from .fitting import LEAST_RISE, Choice, Sample, choose

WHOLE = (0.0, 1.0)

# C where none is given and no rows can be held out to choose one.
PLAIN_COST = 1.0


class Aim(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    window : (float, float)
        Of false positive rates.
    C : float, or None
        None: to be chosen.
    anchor : float, "auto" or None
    path : tuple of float
        The C to choose from, rising.
    """

    window: tuple[float, float]
    C: float | None
    anchor: float | Literal["auto"] | None
    path: tuple[float, ...]


class Fitted(NamedTuple):
    """What was found.

    Attributes
    ----------
    solution : Solution
    C : float
        Of the programme that was solved last.
    anchor_cost : float or None
        C of the whole-AUC machine that it was anchored at.
    """

    solution: Solution
    C: float
    anchor_cost: float | None


class Solver(Protocol):
    """What `Trainer` and `DifferenceTrainer` do."""

    sample: Sample
    collapsed: bool
    convex: bool

    def free(self, costs: Iterable[float], start: Floats | None = None) -> Iterator[Solution]:
        """Minimise ½‖w‖² + C R(w) for each C."""

    def anchored(self, costs: Iterable[float], center: Floats) -> Iterator[Solution]:
        """Minimise ½‖w - center‖² + C R(w) for each C."""

    def critical_fpr(self) -> float | None:
        """Find the least upper end of the window with which it would not collapse."""


class Plan:
    """Chooses C and the programme, and solves it.

    Parameters
    ----------
    sample : Sample
    aim : Aim
    make : callable (sample, window) -> Solver
    hold : callable () -> ndarray of bool, or None
        Draws the rows to hold out; None where there are too few.

    Attributes
    ----------
    collapsed : bool
        Whether w = 0 is the optimum for all rows whatever C; of a risk that is not convex, whether `run` found nothing
        better.
    """

    def __init__(
        self,
        sample: Sample,
        aim: Aim,
        make: Callable[[Sample, tuple[float, float]], Solver],
        hold: Callable[[], npt.NDArray[np.bool_] | None],
    ) -> None:
        self._sample, self._aim, self._make, self._hold = sample, aim, make, hold
        self._whole = make(sample, aim.window)
        self.collapsed = self._whole.collapsed

    @cached_property
    def _held(self) -> npt.NDArray[np.bool_] | None:
        return self._hold()

    @cached_property
    def _judge(self) -> Callable[[Floats], float]:
        assert self._held is not None
        return self._sample.judge(self._held, self._aim.window)

    @cached_property
    def _part(self) -> Sample:
        assert self._held is not None
        return self._sample.without(self._held)

    @cached_property
    def _whole_auc(self) -> Solver:
        return self._make(self._sample, WHOLE)

    @property
    def _costs(self) -> tuple[float, ...]:
        return self._aim.path if self._aim.C is None else (self._aim.C,)

    @property
    def _pulls(self) -> tuple[float, ...]:
        """The C to try for a programme that is anchored: up to that which is given."""
        if self._aim.C is None:
            return self._aim.path
        return (*(cost for cost in self._aim.path if cost < self._aim.C), self._aim.C)

    def count(self) -> int:
        """Count the programmes that are to be solved, as far as can be told beforehand."""
        if self.collapsed and self._aim.anchor is not None:
            return 2 + len(self._costs) + len(self._pulls)
        return (2 if self._aim.anchor is not None else 1) + len(self._costs)

    def critical_fpr(self) -> float | None:
        """Find the least upper end of the window with which it would not collapse."""
        return self._whole.critical_fpr()

    def run(self) -> Fitted | None:
        """Solve; None where only w = 0 is left."""
        found = None
        if not self.collapsed and self._aim.anchor in (None, "auto"):
            found = self._fit_free()
        if found is None and self._aim.anchor is not None:
            found = self._fit_anchored()
        if found is None and not self._whole.convex:
            self.collapsed = True
        return found

    def _fit_free(self) -> Fitted | None:
        """Minimise ½‖w‖² + C R(w).

        None where nothing but w = 0 comes of it, or where, as rows held out say, the machine for the whole AUC does
        better and there may be an anchor.
        """
        cost, start = PLAIN_COST if self._aim.C is None else self._aim.C, None
        if self._aim.C is None and self._held is not None:
            part = self._make(self._part, self._aim.window)
            chosen = None
            if not part.collapsed:
                chosen = choose(self._costs, part.free(self._costs), self._judge)
            if self._is_worse_than_whole(chosen):
                return None
            if chosen is not None:
                cost, start = chosen
        solution = next(self._whole.free((cost,), start), None)
        # of a convex risk `collapsed` is proven; a solver that was stopped early proves nothing
        is_better = solution is not None and (
            self._whole.convex or cost - solution.objective > solution.gap
        )
        if solution is None or not is_better:
            self.collapsed = True
            return None
        return Fitted(solution, cost, None)

    def _is_worse_than_whole(self, chosen: Choice | None) -> bool:
        """Whether the machine for the whole AUC does better on rows held out; None: constant scores, whatever C."""
        if self._aim.anchor is None or self._aim.window == WHOLE:
            return False
        auc = self._make(self._part, WHOLE)
        if auc.collapsed:
            return False
        if chosen is None:
            return not self._whole_auc.collapsed
        of_auc = next(auc.free((chosen.C,))).point.w
        is_worse = self._judge(of_auc) > self._judge(chosen.w) + LEAST_RISE
        return is_worse and not self._whole_auc.collapsed

    def _fit_anchored(self) -> Fitted | None:
        """Minimise ½‖w - κ v‖² + C R(w), v the solution for the whole AUC; None where nothing but w = 0 comes of it."""
        auc = self._whole_auc
        if auc.collapsed:
            return None
        kappa = 1.0 if self._aim.anchor == "auto" else float(self._aim.anchor or 0.0)
        cost, start = PLAIN_COST if self._aim.C is None else self._aim.C, None
        pull = self._aim.path[0] if self._aim.anchor == "auto" else cost
        if self._aim.anchor == "auto" or self._aim.C is None:
            chosen = self._choose_anchored(kappa)
            if chosen is not None:
                (cost, start), pull = chosen
        of_auc = next(auc.free((cost,), start))
        anchor = of_auc.point.w
        while pull >= 0.5 * self._aim.path[0]:
            for solution in self._whole.anchored((pull,), kappa * anchor):
                return Fitted(solution, pull, cost)
            if self._aim.anchor != "auto":
                return None
            pull /= 10.0
        # So short a v that any pull ends at 0: without one, v itself, which ranks whatever its length.
        return Fitted(of_auc._replace(objective=0.0, gap=0.0), 0.0, cost)

    def _choose_anchored(self, kappa: float) -> tuple[Choice, float] | None:
        """Choose C of the anchor, then that of the programme anchored at it."""
        if self._held is None:
            return None
        auc = self._make(self._part, WHOLE)
        base = None if auc.collapsed else choose(self._costs, auc.free(self._costs), self._judge)
        if base is None:
            return None
        windowed = self._make(self._part, self._aim.window)
        solutions = windowed.anchored(self._pulls, kappa * base.w)
        chosen = choose(self._pulls, solutions, self._judge)
        return base, self._aim.path[0] if chosen is None else chosen.C
