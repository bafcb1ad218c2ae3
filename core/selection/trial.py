"""A trial: one fit on one inner split, evaluated on its validation rows.

Along a path one fit gives the rankers of all values of a parameter. If the parameter is a number of steps, the fit with
the most steps contains all shorter ones. If it is a weight such as C, the programs are solved in order, each one from
the solution and the cutting planes of the one before.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from time import perf_counter
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_types import Gt, Le

from core.base.parameters import Seed, check_items, check_value
from core.base.ranker import Callback, Floats, PathEstimator, Ranker, StopFit, ignore
from core.base.table import CodedTable
from core.base.target import as_vector
from core.errors import CoreError, InvalidData, InvalidParameter
from core.metrics import partial_auc, value_of_metric
from core.metrics.functionals.base import Metric
from core.metrics.window import MIN_RISE
from core.registry import ALGORITHMS

ROWS_PER_EVALUATION = 4_000
"""With n validation rows boosted trees are evaluated every ⌈n / this⌉ rounds, since a metric needs a sort."""

MIN_METRIC = 0.05
"""Metrics are divided by that of the first round, but at least by this."""


@dataclass(frozen=True)
class TrialKey:
    """How a planner identifies a trial.

    Examples
    --------
    >>> from core.selection import TrialKey
    >>> TrialKey("portfolio", "logistic").attempt
    1
    """

    phase: str
    """Name of the phase of the search."""
    candidate: str
    """Name of the candidate."""
    change: int = 0
    """Number of the random change that made the candidate; 0 for a candidate that was given."""
    attempt: int = 1
    """Number of the attempt at the candidate; a later attempt has more time."""


@dataclass(frozen=True)
class Trial:
    """One planned fit on one inner split, and how to evaluate it.

    Examples
    --------
    >>> from core.selection import Trial
    >>> Trial("rankboost", {}, path=(10, 100)).split
    0
    """

    algorithm: str
    """Name in `core.registry`."""
    parameters: Mapping[str, Any]
    """Parameters that differ from the defaults, without the one along the path."""
    path: tuple[Any, ...] = ()
    """Ascending values of the algorithm's path parameter at which this one fit is evaluated; empty without a path."""
    rows: float = 1.0
    """Fraction of the inner training rows that it is fitted on; see `draw_rows`. In (0, 1]."""
    split: int = 0
    """Number of the inner split."""
    keep_scores: bool = False
    """Whether the result has the scores of the validation rows."""
    limit: float | None = None
    """Seconds after which the fit ends with what it has, or is given up if it has nothing yet. None: no limit."""
    key: TrialKey | None = None
    """The planner's name for the trial; returned unchanged."""
    hurried: bool = False
    """Whether the trial would have more rounds, smaller steps, more rows or an earlier turn if there were more time."""
    patience: int | None = None
    """Boosted trees are evaluated as they grow, and end after this number of rounds without an improvement. None: all
    rounds are fitted."""


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial: values, scores, time or failure.

    Attributes
    ----------
    scores : tuple of ndarray of shape (n_held_out,), float64
        Scores of the validation rows, likewise, if they were kept.

    Examples
    --------
    >>> from core.selection import Trial, TrialResult
    >>> result = TrialResult(Trial("logistic", {}), values=(0.8,), aucs=(0.9,), seconds=1.5)
    >>> result.failed is None
    True
    """

    trial: Trial
    """The trial."""
    values: tuple[float, ...]
    """Objective on the validation rows, higher is better: one per value of the path, or one; empty if it failed. A fit
    that its limit stopped only has the values that it reached."""
    aucs: tuple[float, ...]
    """AUC on the validation rows, likewise."""
    seconds: float
    """From the start of the fit to the end of the evaluation."""
    scores: tuple[Floats, ...] = ()
    failed: str | None = None
    """Why there is nothing to evaluate; the candidate then leaves the search. None if it did not fail."""
    setup: float = 0.0
    """Seconds before the first step of the fit and after the last one, which do not grow with the number of steps."""
    steps: int = 0
    """Best number of rounds, if rounds were evaluated as they were added; else 0."""
    fitted: int = 0
    """Number of steps of the fit; 0 if unknown."""
    stopped: bool = False
    """Whether its limit ended the fit. A failed fit had nothing to keep then."""
    skipped: bool = False
    """Whether the trial was not made, or was interrupted, because the search was to end early; `failed` says so."""


@dataclass(frozen=True)
class HeldOut:
    """The validation rows of an inner split, in the order in which they are scored.

    Examples
    --------
    >>> import numpy as np
    >>> from core.selection import HeldOut
    >>> HeldOut(np.array([1, 0, 1])).weight is None
    True
    """

    y: npt.NDArray[Any]
    """1 for positive, 0 for negative. Shape (n_held_out,)."""
    weight: Floats | None = None
    """Weights of the rows. Shape (n_held_out,), or None."""
    group: npt.NDArray[Any] | None = None
    """Rows with equal values were drawn together. Shape (n_held_out,)."""

    def take(self, rows: npt.NDArray[np.intp]) -> "HeldOut":
        """Return the given validation rows, without their groups.

        Parameters
        ----------
        rows : ndarray of intp
            Indices of the rows.

        Returns
        -------
        HeldOut
        """
        return HeldOut(self.y[rows], None if self.weight is None else self.weight[rows])


def value_of(
    held: HeldOut, scores: Floats, window: tuple[float, float], metric: Metric | None
) -> float:
    """Return the metric of scores on validation rows; without a metric, their partial AUC on the window."""
    if metric is not None:
        return value_of_metric(metric, held.y, scores, held.weight)
    return partial_auc(held.y, scores, *window, sample_weight=held.weight)


class Metrics(NamedTuple):
    """The objective and the AUC of scores on the validation rows.

    Examples
    --------
    >>> from core.selection import Metrics
    >>> Metrics(value=0.6, auc=0.8).auc
    0.8
    """

    value: float
    """The objective; higher is better."""
    auc: float
    """The AUC."""


def path_parameter(algorithm: type) -> str | None:
    """Return the name of a class's path parameter, such as n_rounds or C; None if it has none.

    One fit returns the rankers of all of its values. The class's `check_path_parameters` rejects parameters with which
    a fit has no path.

    Parameters
    ----------
    algorithm : type
        Class of a ranker.

    Returns
    -------
    str or None

    Examples
    --------
    >>> from core.selection import path_parameter
    >>> from core import Logistic, RankBoost
    >>> path_parameter(RankBoost), path_parameter(Logistic)
    ('n_rounds', 'C')
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
    """Fit and evaluate one trial.

    Parameters
    ----------
    trial : Trial
        The trial.
    fit : callable (ranker, callback) -> object
        Fits the ranker on the inner training rows of the trial's split, or on the fraction of them that it asks for.
    held_out : array or table of shape (n_held_out, n_features)
        Features of the validation rows.
    metric : callable (scores) -> Metrics
        Returns the metrics of scores of those rows.
    callback : callable (step, of, info) -> None, optional
        Called after each step of the fit. An exception raised here reaches the caller.
    clock : callable () -> float
        Seconds.

    Returns
    -------
    TrialResult
        `failed` is set if the ranker rejects the rows or its parameters, if the computation fails numerically, or if
        the limit is reached before there is anything to keep. The limit is checked after each step.

    Examples
    --------
    >>> import numpy as np
    >>> from core.selection import Metrics, Trial, run_trial
    >>> X, y = np.arange(20.0)[:, None], np.arange(20) >= 10
    >>> result = run_trial(
    ...     Trial("rankboost", {}, path=(1, 2)),
    ...     lambda ranker, callback: ranker.fit(X, y, callback=callback),
    ...     X,
    ...     lambda scores: Metrics(1.0, float(np.mean(scores[10:] > scores[:10]))),
    ... )
    >>> result.aucs
    (1.0, 1.0)
    """
    check_value("trial", Trial, trial)
    check_value("fit", Callable, fit)
    check_value("metric", Callable, metric)
    check_value("callback", Callable, callback)
    check_value("clock", Callable, clock)
    start = clock()
    first = latest = start
    fitted, is_late = 0, False

    def step(done: int, of: int, info: Mapping[str, float]) -> None:
        nonlocal first, latest, fitted, is_late
        now = clock()
        if done:  # step 0 is a search for crosses
            first = first if first > start else now
            latest, fitted = now, done
        callback(done, of, info)
        if trial.limit is not None and done < of and now - start > trial.limit:
            is_late = True
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
        return _give_up(trial, clock() - start)
    except (CoreError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
        return _failure(trial, clock() - start, str(error) or type(error).__name__)
    seconds = clock() - start
    n_values, n_reached = len(trial.path) or 1, len(values)
    if is_late and trial.path and _counts_steps(trial):
        # what the fit would have become after more steps is not known
        n_reached = sum(value <= fitted for value in trial.path)
        if not n_reached:
            return _give_up(trial, seconds)
    elif not is_late:  # if the fit ended by itself, its last ranker counts for all greater values
        n_reached = n_values
        values += values[-1:] * (n_values - len(values))
        aucs += aucs[-1:] * (n_values - len(aucs))
        kept += kept[-1:] * (n_values - len(kept))
    return TrialResult(
        trial,
        values[:n_reached],
        tuple(aucs[:n_reached]),
        seconds,
        tuple(kept[:n_reached]),
        setup=seconds - (latest - first),
        steps=steps,
        fitted=fitted,
        stopped=is_late,
    )


def walk_path(
    ranker: Any,
    X: Any,
    values: Sequence[Any],
    metric: Callable[[Floats], float],
) -> list[float]:
    """Compute a metric for each ranker on the path of a fitted one.

    Parameters
    ----------
    ranker : Ranker
        Fitted with the greatest of the values; a `PathEstimator` by `fit_path` with all of them. Any other has a
        `staged_decision_function`, whose scores after k steps are those of a ranker with k steps.
    X : array or table of shape (n_samples, n_features)
        Validation rows.
    values : sequence of int or float
        Distinct values; numbers of steps are at least 1.
    metric : callable (scores) -> float
        Called with the scores of X, once for each ranker; higher is better.

    Returns
    -------
    list of float
        In ascending order of the values. If the fit ended before a value, its last step counts, because a fit with that
        many steps would have ended there, too. O(n_steps · n_samples) for stumps.

    Raises
    ------
    InvalidParameter
        There is no value, two are equal, or a number of steps is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from core.selection import walk_path
    >>> from core import RankBoost
    >>> from core.metrics import auc
    >>> X, y = np.arange(8.0)[:, None], np.array([0, 0, 1, 0, 1, 1, 0, 1])
    >>> ranker = RankBoost(n_rounds=3).fit(X, y)
    >>> [round(area, 3) for area in walk_path(ranker, X, [1, 3], lambda scores: auc(y, scores))]
    [0.75, 0.906]
    """
    check_value("ranker", Ranker, ranker)
    check_value("metric", Callable, metric)
    wanted = sorted(check_items("values", values, float))
    if not wanted:
        raise InvalidParameter("values must have at least one value, got []")
    if len(set(wanted)) < len(wanted):
        raise InvalidParameter(f"values must be distinct, got {list(values)}")
    if isinstance(ranker, PathEstimator):
        # a fit that was stopped has followed the first of the values alone
        return [
            metric(one.decision_function(X))
            for _, one in zip(wanted, ranker.path_rankers(), strict=False)
        ]
    if wanted[0] < 1:
        raise InvalidParameter(f"values must be numbers of steps, at least 1, got {wanted[0]}")
    metrics: list[float] = []
    for step, scores in enumerate(ranker.staged_decision_function(X), start=1):
        if step == wanted[len(metrics)]:
            metrics.append(metric(scores))
            if len(metrics) == len(wanted):
                return metrics
    last = metric(ranker.decision_function(X))
    return metrics + [last] * (len(wanted) - len(metrics))


def choose(values: Sequence[float]) -> int:
    """Return the index of the greatest value, the first among equals.

    Simpler candidates come first.

    The greatest of several values is biased upwards: report the metric on other rows.

    Parameters
    ----------
    values : sequence of float
        Values of the candidates; NaN is below every other value.

    Returns
    -------
    int
        Index of the greatest; 0 if all are NaN.

    Raises
    ------
    InvalidData
        There is no value.

    Examples
    --------
    >>> from core.selection import choose
    >>> choose([0.7, 0.9, 0.9])
    1
    """
    if not check_items("values", values, Real):
        raise InvalidData("values must have at least one value, got []")
    best = 0
    for index, value in enumerate(values):
        if value > values[best] + MIN_RISE or (math.isnan(values[best]) and not math.isnan(value)):
            best = index
    return best


def draw_rows(strata: npt.NDArray[Any], share: float, seed: int) -> npt.NDArray[np.intp]:
    """Return a random fraction of the rows of each stratum; a greater fraction contains a smaller one.

    Parameters
    ----------
    strata : ndarray of shape (n_rows,)
        Stratum of each row, such as its label.
    share : float in (0, 1]
        Fraction of each stratum to draw, rounded up; at least two rows if it has two.
    seed : int
        Seed of the draw.

    Returns
    -------
    ndarray of shape (n_drawn,), intp
        Indices of the rows, ascending. O(n_rows log n_rows).

    Examples
    --------
    >>> import numpy as np
    >>> from core.selection import draw_rows
    >>> labels = np.array([0, 0, 0, 0, 1, 1])
    >>> rows = draw_rows(labels, 0.5, seed=0)
    >>> np.bincount(labels[rows])
    array([2, 2])
    """
    check_value("share", Annotated[float, Gt(0), Le(1)], share)
    check_value("seed", Seed, seed)
    strata = as_vector("strata", strata)
    if strata.dtype.kind == "O":
        raise InvalidData("strata must be numbers, booleans or text, got objects")
    if share >= 1.0:
        return np.arange(len(strata))
    drawn = []
    for stratum, value in enumerate(np.unique(strata)):
        rows = np.flatnonzero(strata == value)
        generator = np.random.Generator(np.random.Philox(key=[seed % 2**64, stratum]))
        order = generator.permutation(rows)
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
    """Fit boosted trees with early stopping; return the best number of rounds, and the validation scores there.

    Rounds are evaluated by the sum of the objective and the AUC, each divided by that of the first round: the objective
    over a window alone is too noisy to stop by.
    """
    first: list[Metrics] = []

    def relative(scores: Floats) -> float:
        metrics = metric(scores)
        first.append(metrics)
        return sum(now / max(then, MIN_METRIC) for now, then in zip(metrics, first[0], strict=True))

    ranker: Any = ALGORITHMS[trial.algorithm](**trial.parameters)
    n_held = len(held_out.matrix if isinstance(held_out, CodedTable) else held_out)
    fit_watched = partial(
        ranker.fit_watched,
        X_valid=held_out,
        metric=relative,
        patience=trial.patience,
        every=math.ceil(n_held / ROWS_PER_EVALUATION),
    )
    fit(SimpleNamespace(fit=fit_watched), callback)
    return len(ranker.rounds_), ranker.decision_function(held_out)


def _counts_steps(trial: Trial) -> bool:
    """Return True if the path parameter counts the steps of one fit; False if each value is fitted separately."""
    return not issubclass(ALGORITHMS[trial.algorithm], PathEstimator)


def _give_up(trial: Trial, seconds: float) -> TrialResult:
    """Return the result of a trial that its time limit stopped."""
    return replace(_failure(trial, seconds, f"given up after {seconds:.3g} s"), stopped=True)


def _failure(trial: Trial, seconds: float, why: str) -> TrialResult:
    return TrialResult(trial, (), (), seconds, failed=why)
