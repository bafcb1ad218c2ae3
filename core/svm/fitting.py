"""From rows to a coefficient vector: one programme after another along a path of C, and how far it has come."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.metrics import partial_auc
from core.ranker import Callback, Floats

from .collapse import critical_mass, depart, leave_origin
from .cutting_planes import CuttingPlanes, Report, Solution
from .design import Ints, Rows, StoredRows
from .line import Point
from .problem import Problem
from .surrogate import Surrogate, Window, window_of

PATH = tuple(10.0**power for power in range(-5, 5))

# Of what can be gained over w = 0, the share that a solution must be proven to gain.
SURE = 0.9

# Directions to try at one mass, in the search for the least that would not collapse.
CRITICAL_DIRECTIONS = 50

# An area counts as higher only if it is so by more than rounding.
LEAST_RISE = 1e-9

# Values of C in a row that do worse than the best, after which no more are tried.
PATIENCE = 3

# Steps that are told of a programme.
STEPS = 100


class Progress:
    """Tells a callback how far a fit has come: the gap's way to its goal, programme by programme.

    Parameters
    ----------
    callback : Callback
    """

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self._n_programmes, self._done = 1, 0
        self._step = 0
        self._first_gap = math.nan

    def plan(self, n_programmes: int) -> None:
        """Say how many programmes are to be solved."""
        self._n_programmes = n_programmes

    def start(self, goal: float) -> Report:
        """Give what the solver of the next programme, which ends at a gap of `goal`, reports to."""
        self._first_gap = math.nan

        def report(n_iter: int, objective: float, gap: float) -> None:
            if math.isnan(self._first_gap):
                self._first_gap = max(gap, goal)
            way = math.log(self._first_gap / goal)
            come = math.log(self._first_gap / max(gap, goal)) / way if way > 0.0 else 1.0
            at = STEPS * self._done + int((STEPS - 1) * min(max(come, 0.0), 1.0))
            self._tell(at, {"loss": objective, "gap": gap, "iteration": float(n_iter)})

        return report

    def end(self) -> None:
        """Note that a programme is solved."""
        self._done += 1

    def _tell(self, at: int, info: Mapping[str, float]) -> None:
        of = STEPS * self._n_programmes
        self._step = min(max(self._step, at, 1), of)
        self._callback(self._step, of, info)

    def finish(self, objective: float, gap: float, n_iter: int) -> None:
        """Tell that all is done."""
        of = STEPS * self._n_programmes
        self._tell(of, {"loss": objective, "gap": gap, "iteration": float(n_iter)})


class Sample(NamedTuple):
    """Rows to learn from, of both classes.

    Attributes
    ----------
    rows : Rows
        May hold other rows, too.
    positives, negatives : ndarray of int64
        Which of them are learnt from, rising.
    weight : ndarray of shape (n_rows,), float64
    """

    rows: Rows
    positives: Ints
    negatives: Ints
    weight: Floats

    def problem(self, masses: Window, *, naive: bool = False) -> Problem:
        """Give the risk of these rows on a window of masses."""
        surrogate = Surrogate(
            self.weights(self.positives), self.weights(self.negatives), masses, naive=naive
        )
        return Problem(self.rows, self.positives, self.negatives, surrogate)

    def weights(self, rows: Ints) -> Floats:
        """Give the weights of some rows; no copy where all weights are alike."""
        alike = self.weight[0] == self.weight[-1] and (self.weight == self.weight[0]).all()
        return self.weight[: len(rows)] if alike else self.weight[rows]

    def without(self, held: npt.NDArray[np.bool_]) -> "Sample":
        """Leave some rows out; of stored ones the others are taken over, so that no pass reads them in vain."""
        positives = self.positives[~held[self.positives]]
        negatives = self.negatives[~held[self.negatives]]
        if not isinstance(self.rows, StoredRows):
            return self._replace(positives=positives, negatives=negatives)
        kept = np.flatnonzero(~held)
        place = np.cumsum(~held) - 1
        rows = self.rows.take(kept)
        return Sample(rows, place[positives], place[negatives], self.weight[kept])

    def mean(self) -> Floats:
        """Give the mean of all rows' coordinates, weighted."""
        return self.rows.total(self.weight / self.weight.sum())

    def judge(
        self, held: npt.NDArray[np.bool_], window: tuple[float, float]
    ) -> Callable[[Floats], float]:
        """Give a function that tells the interpolated partial AUC of w on the rows held out."""
        taken = np.flatnonzero(held)
        positive = np.zeros(len(held), dtype=np.bool_)
        positive[self.positives] = True
        weight = self.weight[taken]

        def pauc(w: Floats) -> float:
            scores = self.rows.scores(w)[taken]
            return partial_auc(positive[taken], scores, *window, sample_weight=weight)

        return pauc


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


class Trainer:
    """Solves a sample's programmes for one window and surrogate.

    Parameters
    ----------
    sample : Sample
    window : (float, float)
        Of false positive rates.
    naive : bool
    tol : float
    max_iter : int
    progress : Progress

    Attributes
    ----------
    collapsed : bool
        Whether w = 0 is the optimum for every C.
    convex : bool
    """

    convex = True

    def __init__(
        self,
        sample: Sample,
        window: tuple[float, float],
        *,
        naive: bool,
        tol: float,
        max_iter: int,
        progress: Progress,
    ) -> None:
        self.sample = sample
        self._naive, self._tol, self._max_iter, self._progress = naive, tol, max_iter, progress
        masses = window_of(sample.weights(sample.negatives), *window)
        self._planes = CuttingPlanes(sample.problem(masses, naive=naive))
        self._way_out = leave_origin(self._planes)
        self.collapsed = self._way_out is None

    def free(self, costs: Iterable[float], start: Floats | None = None) -> Iterator[Solution]:
        """Minimise ½‖w‖² + C R(w) for each C, one after the other; not where it has collapsed.

        Stops only where nine tenths of what can be gained over w = 0 are, however small C: no noise.
        """
        assert self._way_out is not None
        point = None if start is None else self._planes.point(start)
        center = np.zeros(self._planes.problem.size)
        before = math.nan
        for C in costs:
            if point is None:
                point = depart(self._planes, C, self._way_out)
            elif before < C:  # while every pair is inside its margin, w grows as C does
                point = self._planes.stretch(point, C / before, C)
            before = C

            def good_enough(objective: float, gap: float, C: float = C) -> bool:
                return gap <= self._tol * C and gap <= (1.0 / SURE - 1.0) * (C - objective)

            solution = self._solve(C, center, point, good_enough)
            point = solution.point
            yield solution

    def anchored(self, costs: Iterable[float], center: Floats) -> Iterator[Solution]:
        """Minimise ½‖w - center‖² + C R(w) for each C; ends where w = 0 would do as well."""
        point = self._planes.point(center)
        for C in costs:

            def good_enough(objective: float, gap: float, C: float = C) -> bool:
                return gap <= self._tol * C

            solution = self._solve(C, center, point, good_enough)
            at_origin = 0.5 * float((center * center).sum()) + C
            if at_origin - solution.objective <= solution.gap:
                return
            point = solution.point
            yield solution

    def _solve(
        self, C: float, center: Floats, start: Point, good_enough: Callable[[float, float], bool]
    ) -> Solution:
        report = self._progress.start(self._tol * C)
        solution = self._planes.solve(
            C, center, start, good_enough, max_iter=self._max_iter, report=report
        )
        self._progress.end()
        return solution

    def critical_fpr(self) -> float | None:
        """Find an upper end of the window, the least but for 2 %, with which it would not collapse.

        None where the whole AUC collapses, too: the classes' means are the same.
        """
        low, high, total = self._planes.problem.surrogate.window

        def collapses(mass: float) -> bool:
            planes = CuttingPlanes(self.sample.problem(Window(low, mass, total), naive=self._naive))
            return leave_origin(planes, CRITICAL_DIRECTIONS) is None

        if high >= total or collapses(total):
            return None
        return critical_mass(collapses, high, total) / total
