"""Planners: which fits a search asks for, round by round, and what it chooses in the end; and how one is carried out.

A `Planner` decides and never fits. It is asked for its next trials with all that were tried before, so that
whoever runs them may do so in one process or in many, and ask again after a crash. `run_plan` runs them in this
process, `search_ranker` does all there is to do, from rows to a ranker.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.base.parameters import check_seed
from core.base.ranker import Callback, Floats, Ranker, StopFit, ignore
from core.base.splits import split_rows
from core.base.table import Categories, CodedTable, is_table, to_matrix, to_numbers
from core.base.target import check_labels, check_weights, number_units
from core.ensemble import RankAverage, count_at_once, fit_together
from core.errors import CoreError
from core.metrics import auc, partial_auc
from core.metrics.window import check_window
from core.registry import ALGORITHMS

from .trial import HeldOut, Metrics, Trial, TrialResult, draw_rows, run_trial

CHOOSE_NOW = 1e12
"""More seconds than any budget has."""

_SALT = 1_000_003  # between the seeds of repeats


class NothingFitted(CoreError):
    """Not one candidate of a search could be fitted and evaluated."""

    code = "no_candidate"


@dataclass(frozen=True)
class Member:
    """A ranker that was chosen, to be fitted on all training rows."""

    algorithm: str
    parameters: Mapping[str, Any]
    weight: float = 1.0
    """What it counts for in a `RankAverage`."""


@dataclass(frozen=True)
class LeaderboardRow:
    """A candidate's row on the leaderboard."""

    algorithm: str
    parameters: Mapping[str, Any]
    value: float | None = None
    auc: float | None = None
    """Mean over the splits, of the last trial; None where it failed or was not tried."""
    rows: float = 0.0
    """Share of the inner training rows that it learnt from last; 0 where it was not tried."""
    seconds: float = 0.0
    """All its trials together."""
    state: str = "left"
    """One of "chosen", "left" (others were better), "failed", or "untried"."""
    reason: str = ""
    """Why it is where it is, in words."""
    low: float | None = None
    high: float | None = None
    """Confidence interval of the value, where held-out scores were kept."""
    p_value: float | None = None
    """Two-sided, of no difference from the best single candidate on the same held-out rows."""


@dataclass(frozen=True)
class Chosen:
    """How a search ended."""

    members: tuple[Member, ...]
    """One ranker, or those of a `RankAverage`; to be fitted on all training rows."""
    candidates: tuple[LeaderboardRow, ...]
    """The leaderboard; a search along one algorithm lists its candidates in the order in which they were given."""
    notes: tuple[str, ...] = ()
    """What else a reader should know."""
    rows: float = 1.0
    """Share of the training rows that the members are fitted on; see `draw_rows`. In (0, 1]."""


@dataclass(frozen=True)
class CheckedRows:
    """Checked rows of weight above 0."""

    matrix: Floats
    names: tuple[str, ...] | None
    categories: Categories
    positive: npt.NDArray[np.bool_]
    weight: Floats
    group: npt.NDArray[np.uint64] | None

    @property
    def table(self) -> Any:
        """The features as rankers take them."""
        if self.names is None:
            return self.matrix
        return CodedTable(self.matrix, self.names, self.categories)

    def take(self, rows: npt.NDArray[Any]) -> "CheckedRows":
        """Return some rows, by number or by a mask."""
        return CheckedRows(
            self.matrix[rows],
            self.names,
            self.categories,
            self.positive[rows],
            self.weight[rows],
            None if self.group is None else self.group[rows],
        )


class Planner(Protocol):
    """Decides which fits a search makes.

    Attributes
    ----------
    n_splits : int
        Inner splits that it wants: 1 is a holdout, k are k folds; 0: none, it asks for no trial.
    n_repeats : int
        How often the rows are split anew into these folds. Splits are numbered repeat by repeat.
    fraction : float
        Of the rows, what a holdout keeps back.
    """

    @property
    def n_splits(self) -> int: ...

    @property
    def n_repeats(self) -> int: ...

    @property
    def fraction(self) -> float: ...

    def next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        """Ask for more trials, at least one, or end the search.

        NothingFitted: all candidates failed. Returns sequence of Trial, or Chosen: the same for the same arguments.

        Parameters
        ----------
        tried : sequence of TrialResult
            All that were asked for so far, in the order in which they were.
        held : sequence of HeldOut
            One per split.
        elapsed : float
            Seconds since the search began. Nothing else comes from a clock. `CHOOSE_NOW`: the search ends, with one of
            those that were tried; at least one was, and did not fail.
        """


def run_plan(
    planner: Planner,
    held: Sequence[HeldOut],
    fit: Callable[[Trial, Callback], TrialResult],
    *,
    at_once: int = 1,
    callback: Callback = ignore,
    clock: Callable[[], float] = perf_counter,
) -> tuple[Chosen, list[TrialResult]]:
    """Carry out a plan in this process.

    Parameters
    ----------
    held : sequence of HeldOut
        One per split.
    fit : callable (trial, callback) -> TrialResult
        Such as one that calls `run_trial`.
    at_once : int, default=1
        Of the trials that are asked for together so many run at once, each in a thread.
    callback : callable (step, of, info) -> None, optional
        Told of the steps of each fit. What it raises ends the search.
    clock : callable () -> float
        Seconds.

    Returns
    -------
    chosen : Chosen
    tried : list of TrialResult
    """
    start = clock()
    tried: list[TrialResult] = []

    def report(number: int, step: int, of: int, info: Mapping[str, float]) -> None:
        callback(step, of, info)

    def carry_out(trial: Trial) -> Callable[[Callback], TrialResult]:
        return lambda progress: fit(trial, progress)

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # of the fit that is served its owner will hear
        while True:
            step = planner.next(tried, held, clock() - start)
            if isinstance(step, Chosen):
                return step, tried
            tried += fit_together([carry_out(trial) for trial in step], report, at_once)


@dataclass(frozen=True)
class Searched:
    """What a search gave."""

    ranker: Ranker
    """Fitted on all rows."""
    chosen: Chosen
    """With the leaderboard. Its figures chose: for those of the ranker take other rows."""
    tried: list[TrialResult]


def search_ranker(
    X: Any,
    y: Any,
    planner: Planner,
    *,
    sample_weight: Any = None,
    group: Any = None,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    random_state: int = 0,
    callback: Callback = ignore,
) -> Searched:
    """Search as a planner says, and fit what it chooses on all rows.

    InvalidData: X, y, sample_weight or group break a rule, or a class has too few rows to be split. InvalidParameter:
    random_state is no seed. NothingFitted: all candidates failed.

    Parameters
    ----------
    X : array or table of shape (n_samples, n_features)
        As rankers take it.
    y : array-like of shape (n_samples,)
        Two distinct values; the greater one is positive.
    planner : Planner
        `GridSearch`, `RandomSearch`, `SuccessiveHalving` or `Auto`.
    sample_weight : array-like of shape (n_samples,), optional
    group : array-like of shape (n_samples,), optional
        CheckedRows of a group stay together in every split; without groups equal rows do.
    fpr_min, fpr_max : float in [0, 1], default=0 and 1
        The objective: the partial AUC on this window.
    random_state : int, default=0
        Of the splits and of the rows that a share has.
    callback : callable (step, of, info) -> None, optional
        Told of the steps of each fit, one after the other; what it raises ends the search.
    """
    check_seed(random_state)
    rows = read_rows(X, y, sample_weight, group)
    window = check_window(fpr_min, fpr_max)
    chosen, tried = run_search(rows, planner, window, random_state, callback)
    ranker = make_ranker(chosen).fit(X, y, sample_weight, groups=group, callback=callback)
    return Searched(ranker, chosen, tried)


def run_search(
    rows: CheckedRows,
    planner: Planner,
    window: tuple[float, float],
    random_state: int,
    callback: Callback,
) -> tuple[Chosen, list[TrialResult]]:
    """Carry out a plan on inner splits of these rows, by the partial AUC on a window."""
    splits = split_inner(rows, planner.n_splits, planner.n_repeats, planner.fraction, random_state)
    at_once = count_at_once(*rows.matrix.shape)

    # What is taken of the table is as large as the table: no more of it at a time than is fitted.
    @lru_cache(at_once)
    def learnt_of(split: int, share: float) -> CheckedRows:
        learnt = np.flatnonzero(~splits[split])
        return rows.take(learnt[draw_rows(rows.positive[learnt], share, random_state)])

    @lru_cache(at_once)
    def held_of(split: int) -> CheckedRows:
        return rows.take(splits[split])

    def fit(trial: Trial, progress: Callback) -> TrialResult:
        learnt, held = learnt_of(trial.split, trial.rows), held_of(trial.split)

        def metric(scores: Floats) -> Metrics:
            return Metrics(
                partial_auc(held.positive, scores, *window, sample_weight=held.weight),
                auc(held.positive, scores, held.weight),
            )

        return run_trial(
            trial,
            lambda ranker, step: ranker.fit(
                learnt.table, learnt.positive, learnt.weight, groups=learnt.group, callback=step
            ),
            held.table,
            metric,
            progress,
        )

    held = [
        HeldOut(
            rows.positive[split].astype(np.int8),
            rows.weight[split],
            None if rows.group is None else rows.group[split],
        )
        for split in splits
    ]
    return run_plan(planner, held, fit, at_once=at_once, callback=callback)


def split_inner(
    rows: CheckedRows, n_splits: int, n_repeats: int, fraction: float, random_state: int
) -> list[npt.NDArray[np.bool_]]:
    """Split the rows for choosing among rankers, repeat by repeat; InvalidData as `split_rows`."""
    return [
        split
        for repeat in range(n_repeats)
        for split in split_rows(
            rows.matrix,
            rows.positive,
            rows.weight,
            n_splits,
            fraction=fraction,
            group=rows.group,
            seed=random_state + _SALT * repeat,
        )
    ]


def fit_chosen(
    chosen: Chosen,
    fit: Callable[[Ranker, Callback], object],
    callback: Callback = ignore,
    until: float = math.inf,
    clock: Callable[[], float] = perf_counter,
) -> Ranker:
    """Fit what was chosen on all rows: until a time, where a fit keeps what it has when it is stopped.

    What keeps nothing takes the time that it needs; so does a mean rank, fitted once more with a UserWarning, not one
    of whose members was fitted in time.

    Parameters
    ----------
    fit : callable (ranker, callback) -> object
    callback : callable (step, of, info) -> None, optional
        Told of the steps. What it raises reaches the caller, `StopFit` where nothing is kept.
    until : float, optional
        In seconds, as the clock tells them.
    clock : callable () -> float
        Seconds.
    """
    is_late = False

    def step(done: int, of: int, info: Mapping[str, float]) -> None:
        nonlocal is_late
        callback(done, of, info)
        if done < of and clock() > until:
            is_late = True
            raise StopFit

    ranker = make_ranker(chosen)
    if len(chosen.members) == 1 and not ranker.keeps_when_stopped:
        fit(ranker, callback)
        return ranker
    try:
        fit(ranker, step)
    except StopFit:
        if not is_late:
            raise
        message = "nothing was fitted in time that could be kept: the ranker was given more"
        warnings.warn(message, UserWarning, stacklevel=2)
        ranker = make_ranker(chosen)
        fit(ranker, callback)
    return ranker


def make_ranker(chosen: Chosen) -> Ranker:
    """Make the ranker that was chosen, not yet fitted: of the one member, or a `RankAverage` of several."""
    rankers = [ALGORITHMS[member.algorithm](**member.parameters) for member in chosen.members]
    if len(rankers) == 1:
        return rankers[0]
    return RankAverage(members=rankers, weights=[member.weight for member in chosen.members])


def read_rows(X: Any, y: Any, sample_weight: Any, group: Any) -> CheckedRows:
    """Check the rows as a fit does, and leave out those of weight 0."""
    import narwhals.stable.v2 as nw

    names: tuple[str, ...] | None = None
    categories: Categories = ()
    if is_table(X):
        matrix, categories = to_matrix(X)
        columns = X.names if isinstance(X, CodedTable) else nw.from_native(X).columns
        names = tuple(str(name) for name in columns)
    else:
        matrix = to_numbers(X)
    classes, positive = check_labels(y, len(matrix))
    weight = check_weights(sample_weight, positive, classes)
    unit = None if group is None else number_units("group", group, len(matrix)).astype(np.uint64)
    return CheckedRows(matrix, names, categories, positive, weight, unit).take(weight > 0)
