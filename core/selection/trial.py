"""A trial: one fit on one inner split, evaluated on the rows held out, along a path where the algorithm has one.

On a path one fit makes the rankers of all values of a parameter. Of a number of steps, the fit of the greatest holds
all lesser ones. Of a weight, as C, one solver after the other makes them, each knowing what the one before has found
out about the rows.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.base.ranker import Callback, Floats, PathEstimator, Ranker, StopFit, ignore
from core.base.table import CodedTable
from core.errors import CoreError
from core.registry import ALGORITHMS

GIVEN_UP = "given up"
"""How the reason begins of a trial that had nothing to keep when its limit came."""

ROWS_A_ROUND = 4_000
"""A figure of more rows is found less often: it needs a sort."""

MIN_METRIC = 0.05
"""Below so much, a figure of the first round is too small to measure others by."""

MIN_RISE = 1e-9
"""A candidate is better than one before it only if it is so by more than rounding."""


@dataclass(frozen=True)
class Trial:
    """One fit on one inner split, and what is evaluated of it."""

    algorithm: str
    """Name in `core.registry`."""
    parameters: Mapping[str, Any]
    """All that differ from the defaults, less the one along a path."""
    path: tuple[Any, ...] = ()
    """Values of the algorithm's path parameter, ascending, that this one fit is evaluated at; empty without a path."""
    rows: float = 1.0
    """Share of the inner training rows that it learns from; see `draw_rows`. In (0, 1]."""
    split: int = 0
    """Number of the inner split."""
    keep_scores: bool = False
    """Whether the scores of the held-out rows are wanted."""
    limit: float | None = None
    """Seconds after which the fit ends with what it has, or is given up where it has nothing yet."""
    label: str = ""
    """What the planner knows it by; of no meaning to others, who hand it back as it is."""
    patience: int | None = None
    """Boosted trees are evaluated as they grow, and end after so many rounds without a gain. None: they take all."""


@dataclass(frozen=True)
class TrialResult:
    """What a trial gave."""

    trial: Trial
    values: tuple[float, ...]
    """By the objective on the held-out rows, higher is better: one per value of the path, or one; empty if failed."""
    aucs: tuple[float, ...]
    """The areas under the whole curves, likewise."""
    seconds: float
    """From the start of the fit to the end of the evaluation."""
    scores: tuple[Floats, ...] = ()
    """Likewise, if they were to be kept. Shape (n_held_out,), float64."""
    failed: str | None = None
    """Why there is nothing to evaluate: such a candidate is out, the search goes on."""
    setup: float = 0.0
    """Of the seconds those before the fit's first step and after its last: what does not grow with the steps."""
    steps: int = 0
    """Rounds with the best value, where they were evaluated as they were added; 0 elsewhere."""
    fitted: int = 0
    """Steps that the fit has taken; 0: not known."""
    skipped: bool = False
    """Not made, or broken off, since the search was to end early; `failed` says so in words."""


@dataclass(frozen=True)
class HeldOut:
    """The held-out rows of an inner split, in the order in which they are scored."""

    y: npt.NDArray[Any]
    """1 for positive, 0 for negative. Shape (n_held_out,)."""
    weight: Floats | None = None
    """Shape (n_held_out,), float64."""
    group: npt.NDArray[Any] | None = None
    """Rows with the same value belong together. Shape (n_held_out,)."""


class Metrics(NamedTuple):
    """What a metric gives for scores of the held-out rows: the objective, and the AUC."""

    value: float
    auc: float


def path_parameter(algorithm: type) -> str | None:
    """Name the parameter along which one fit of this class holds all rankers, such as n_rounds or C; None without one.

    The class then has `check_path_parameters`, which refuses parameters under which a fit holds no path.
    """
    name: str | None = getattr(algorithm, "path_parameter", None)
    return name


def run_trial(
    trial: Trial,
    fit: Callable[[Ranker, Callback], object],
    held_out: Any,
    metric: Callable[[Floats], Metrics],
    callback: Callback = ignore,
    clock: Callable[[], float] = perf_counter,
) -> TrialResult:
    """Carry out one trial.

    Parameters
    ----------
    fit : callable (ranker, callback) -> object
        Fits the ranker on the inner training rows of the trial's split, on the share of them that it asks for.
    held_out : array or table of shape (n_held_out, n_features)
    metric : callable (scores) -> Metrics
        Of scores of those rows.
    callback : callable (step, of, info) -> None, optional
        Told of the fit's steps. What it raises reaches the caller.
    clock : callable () -> float
        Seconds.

    Returns
    -------
    TrialResult
        With `failed` set where the ranker refuses the rows or its parameters, where the numbers fail it, or
        where the limit comes before there is anything to keep. A limit is looked at after each of the fit's steps.
    """
    start = clock()
    first = latest = start
    fitted = 0

    def step(done: int, of: int, info: Mapping[str, float]) -> None:
        nonlocal first, latest, fitted
        latest, fitted = clock(), done
        first = first if first > start else latest
        callback(done, of, info)
        if trial.limit is not None and done < of and latest - start > trial.limit:
            raise StopFit

    kept: list[Floats] = []
    aucs: list[float] = []

    def keep_and_value(scores: Floats) -> float:
        value, area = metric(scores)
        aucs.append(area)
        if trial.keep_scores:
            kept.append(scores.copy())
        return value

    steps = 0
    try:
        if trial.patience is None:
            values = _fit_and_evaluate(trial, fit, held_out, keep_and_value, step)
        else:
            steps, scores = _fit_watched(trial, fit, held_out, metric, step)
            values = (keep_and_value(scores),)
    except StopFit:
        return _failure(trial, clock() - start, f"{GIVEN_UP} after {clock() - start:.3g} s")
    except (CoreError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
        return _failure(trial, clock() - start, str(error) or type(error).__name__)
    n_values = len(trial.path) or 1
    # where the fit ended early, the last counts for all that follow
    values += values[-1:] * (n_values - len(values))
    aucs += aucs[-1:] * (n_values - len(aucs))
    kept += kept[-1:] * (n_values - len(kept))
    seconds = clock() - start
    setup = seconds - (latest - first)
    kept_scores, areas = tuple(kept), tuple(aucs)
    return TrialResult(trial, values, areas, seconds, kept_scores, None, setup, steps, fitted)


def walk_path(
    ranker: Any,
    X: Any,
    values: Sequence[Any],
    metric: Callable[[Floats], float],
) -> list[float]:
    """Evaluate the rankers that lie on the path of a fitted one.

    One pass over the steps: O(n_steps · n_samples) for stumps.

    Returns list of float: in ascending order of the values. Where the fit has ended before one of them, a fit of so
    many steps would have ended there too, and the last step counts.

    Parameters
    ----------
    ranker : Ranker
        Fitted with the greatest of the values; a `PathEstimator` by `fit_path` with all of them. Any other has a
        `staged_decision_function`, whose scores after k steps are those of a ranker of k steps.
    X : array or table of shape (n_samples, n_features)
        Rows that it has not learnt from.
    values : sequence of int or float
        Distinct; numbers of steps are at least 1.
    metric : callable (scores) -> float
        Called with the scores of those rows, once for each ranker; higher is better.
    """
    wanted = sorted(values)
    if isinstance(ranker, PathEstimator):
        # a fit that was stopped has followed the first of the values alone
        return [
            metric(one.decision_function(X))
            for _, one in zip(wanted, ranker.path_rankers(), strict=False)
        ]
    found: list[float] = []
    for step, scores in enumerate(ranker.staged_decision_function(X), start=1):
        if step == wanted[len(found)]:
            found.append(metric(scores))
            if len(found) == len(wanted):
                return found
    last = metric(ranker.decision_function(X))
    return found + [last] * (len(wanted) - len(found))


def choose(values: Sequence[float]) -> int:
    """Choose the place of the greatest value, the first among equals; the simpler candidates come before the others.

    The greatest of several values is too good to be true: report the figures of other rows.
    """
    best = 0
    for place, value in enumerate(values):
        if value > values[best] + MIN_RISE:
            best = place
    return best


def draw_rows(strata: npt.NDArray[Any], share: float, seed: int) -> npt.NDArray[np.intp]:
    """Draw a share of the rows of each stratum; a greater share holds all rows of a lesser one.

    O(n_rows log n_rows). Returns ndarray of shape (n_drawn,), intp, ascending.

    Parameters
    ----------
    strata : ndarray of shape (n_rows,)
        What each row counts as, such as its label.
    share : float in (0, 1]
        Of each stratum as much is drawn, rounded up; two rows at least where it has so many.
    """
    if share >= 1.0:
        return np.arange(len(strata))
    drawn = []
    for place, value in enumerate(np.unique(strata)):
        rows = np.flatnonzero(strata == value)
        order = np.random.Generator(np.random.Philox(key=[seed % 2**64, place])).permutation(rows)
        drawn.append(order[: max(int(np.ceil(share * len(rows))), 2)])
    return np.sort(np.concatenate(drawn))


def _fit_and_evaluate(
    trial: Trial,
    fit: Callable[[Any, Callback], object],
    held_out: Any,
    metric: Callable[[Floats], float],
    callback: Callback,
) -> tuple[float, ...]:
    algorithm = ALGORITHMS[trial.algorithm]
    along = path_parameter(algorithm) if trial.path else None
    longest = {} if along is None else {along: max(trial.path)}
    ranker: Any = algorithm(**{**trial.parameters, **longest})
    if along is not None and isinstance(ranker, PathEstimator):
        fit(SimpleNamespace(fit=partial(ranker.fit_path, values=trial.path)), callback)
    else:
        fit(ranker, callback)
    if along is None:
        return (metric(ranker.decision_function(held_out)),)
    return tuple(walk_path(ranker, held_out, trial.path, metric))


def _fit_watched(
    trial: Trial,
    fit: Callable[[Any, Callback], object],
    held_out: Any,
    metric: Callable[[Floats], Metrics],
    callback: Callback,
) -> tuple[int, Floats]:
    """Fit boosted trees, evaluated as they grow; give the best number of rounds, and the held-out rows' scores then.

    Rounds are evaluated by the objective and by the AUC, each as a share of what the first round had: a window alone is
    too noisy to stop by.
    """
    first: list[Metrics] = []

    def relative(scores: Floats) -> float:
        found = metric(scores)
        first.append(found)
        return sum(now / max(then, MIN_METRIC) for now, then in zip(found, first[0], strict=True))

    ranker: Any = ALGORITHMS[trial.algorithm](**trial.parameters)
    n_held = len(held_out.matrix if isinstance(held_out, CodedTable) else held_out)
    fit_watched = partial(
        ranker.fit_watched,
        X_valid=held_out,
        metric=relative,
        patience=trial.patience,
        every=math.ceil(n_held / ROWS_A_ROUND),
    )
    fit(SimpleNamespace(fit=fit_watched), callback)
    return len(ranker.rounds_), ranker.decision_function(held_out)


def _failure(trial: Trial, seconds: float, why: str) -> TrialResult:
    return TrialResult(trial, (), (), seconds, failed=why)
