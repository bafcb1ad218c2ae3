"""Planners: they decide which trials a search runs, and make the final choice.

A `Planner` never fits. It is asked for the next trials, given all results so far, so that trials may run in one process
or in many, and a search can go on after a crash. `run_plan` runs a plan in this process; `search_ranker` goes from rows
to a fitted ranker.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from numbers import Real
from time import perf_counter
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from core.base.parameters import check_seed, check_value
from core.base.ranker import Callback, Floats, Ranker, StopFit, ignore
from core.base.splits import split_rows
from core.base.table import Categories, CodedTable, is_table, to_matrix, to_numbers
from core.base.target import check_class_weights, check_labels, number_units
from core.base.training import TrainingData
from core.base.warning import warn
from core.ensemble import RankAverage, count_at_once, fit_together
from core.errors import CoreError
from core.metrics import auc
from core.metrics.functionals.base import Metric, check_scale_free, metric_of
from core.metrics.window import check_window
from core.registry import ALGORITHMS

from .trial import HeldOut, Metrics, Trial, TrialResult, draw_rows, run_trial, value_of

CHOOSE_NOW = 1e12
"""Seconds elapsed that tell a planner to choose at once: more than any budget."""


class NothingFitted(CoreError):
    """No candidate of a search could be fitted and evaluated.

    Examples
    --------
    >>> from core.selection import NothingFitted
    >>> NothingFitted.code
    'no_candidate'
    """

    code = "no_candidate"


@dataclass(frozen=True)
class Member:
    """A chosen ranker, to be fitted on all training rows, with its weight in an ensemble.

    Examples
    --------
    >>> from core.selection import Member
    >>> Member("logistic", {"C": 0.1})
    Member(algorithm='logistic', parameters={'C': 0.1}, weight=1.0)
    """

    algorithm: str
    """Name in `core.registry`."""
    parameters: Mapping[str, Any]
    """Its parameters."""
    weight: float = 1.0
    """Weight in a `RankAverage`."""


RowState = Literal["chosen", "left", "failed", "untried"]
"""What became of a candidate; "left": others were better."""


@dataclass(frozen=True)
class LeaderboardRow:
    """A candidate's row on the leaderboard of a search.

    It has no interval and no p-value. Its rows have chosen the best candidate: an interval of the best would lie above
    the truth too often, and a test against the best would find differences too often. See docs/auto.md.

    Attributes
    ----------
    value, auc : float or None
        Objective and AUC: the mean over the splits of its last trial. None if it failed or was not tried.

    Examples
    --------
    >>> from core.selection import LeaderboardRow
    >>> LeaderboardRow("logistic", {"C": 0.1}).value is None
    True
    """

    algorithm: str
    """Name in `core.registry`."""
    parameters: Mapping[str, Any]
    """Its parameters."""
    value: float | None = None
    auc: float | None = None
    rows: float = 0.0
    """Fraction of the inner training rows of its last trial; 0 if it was not tried."""
    seconds: float = 0.0
    """Duration of all of its trials."""
    state: RowState = "left"
    """What became of it, such as "left"."""
    reason: str = ""
    """The reason for the state, in words."""


class NoteKind(StrEnum):
    """The subject of a note of a search.

    Examples
    --------
    >>> from core.selection import NoteKind
    >>> NoteKind("no_trees") is NoteKind.NO_TREES
    True
    """

    NO_TREES = "no_trees"  # all boosted trees failed
    NO_BOUND = "no_bound"  # no candidate scores a row within the given time
    ENDED = "ended"  # the budget ended before these phases were complete
    HURRIED = "hurried"  # with more time, trials of these phases would have been others
    LONGER = "longer"  # the best candidate is fitted with more rounds than were tried
    FEWER_ROWS = "fewer_rows"  # the budget is too short to learn from all rows
    COPIES = "copies"  # some members differ by their seed alone
    LEFT_OUT = "left_out"  # algorithms that cannot keep the constraints
    UNCOMPARED = "uncompared"  # nothing was compared


class Note(NamedTuple):
    """A note of a search for the user.

    Examples
    --------
    >>> from core.selection import Note, NoteKind
    >>> note = Note(NoteKind.FEWER_ROWS, "the model learns from 10 % of the rows")
    >>> note.kind is NoteKind.ENDED
    False
    """

    kind: NoteKind
    """What it is about."""
    text: str
    """The remark."""
    phases: tuple[str, ...] = ()
    """Names of the phases of the search that it is about."""


@dataclass(frozen=True)
class Chosen:
    """The final choice of a planner: the rankers to fit on all training rows, with leaderboard and notes.

    Examples
    --------
    >>> from core.selection import Chosen, Member
    >>> Chosen((Member("logistic", {}),), ()).rows
    1.0
    """

    members: tuple[Member, ...]
    """One ranker, or the members of a `RankAverage`."""
    candidates: tuple[LeaderboardRow, ...]
    """The leaderboard. A search over one algorithm lists its candidates in their order."""
    notes: tuple[Note, ...] = ()
    """Remarks for the user."""
    rows: float = 1.0
    """Fraction of the training rows that the members are fitted on; see `draw_rows`. In (0, 1]."""
    score_microseconds: float | None = None
    """Predicted time in µs to score a row in bulk, in one thread; None if it was not predicted."""
    repeatable: bool = True
    """Whether another fit of the members gives the same ranker: not if the one that was stopped has no parameter for
    its number of steps."""


@dataclass(frozen=True, eq=False)
class SearchedRows(TrainingData):
    """The training rows of a search, with the column names and categories to rebuild a table."""

    names: tuple[str, ...] | None = None
    """None: X was no table."""
    categories: Categories = ()

    @property
    def table(self) -> Any:
        if self.names is None:
            return self.X
        return CodedTable(self.X, self.names, self.categories)


@runtime_checkable
class Planner(Protocol):
    """Interface of searches: a planner decides which trials a search makes.

    Attributes
    ----------
    n_splits : int
        Number of inner splits: 1 is a holdout, k > 1 are k folds, 0 if it asks for no trial.
    fraction : float
        Fraction of the rows that a holdout sets apart.

    Examples
    --------
    >>> from core.selection import GridSearch, Planner
    >>> planner: Planner = GridSearch("logistic", {"C": [0.1, 1.0]})
    >>> planner.next([], [], elapsed=0.0)[0].path  # one fit for all values of C
    (0.1, 1.0)
    """

    @property
    def n_splits(self) -> int:
        """Number of inner splits."""
        ...

    @property
    def fraction(self) -> float:
        """Fraction of the rows in a holdout validation set."""
        ...

    def next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        """Return the next trials, at least one, or the choice that ends the search.

        The result is the same for the same arguments.

        Parameters
        ----------
        tried : sequence of TrialResult
            Results of all trials returned so far, in their order.
        held : sequence of HeldOut
            Validation rows of each split.
        elapsed : float
            Seconds since the search began, the only time that the decision uses. `CHOOSE_NOW` ends the search with one
            of the candidates tried, of which at least one did not fail.

        Returns
        -------
        sequence of Trial, or Chosen
            The next trials, or the end of the search.

        Raises
        ------
        NothingFitted
            All candidates failed.
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
    """Run a planner's trials in this process; return the final choice and the results of all trials.

    Parameters
    ----------
    planner : Planner
        Decides which trials to make.
    held : sequence of HeldOut
        Validation rows of each split.
    fit : callable (trial, callback) -> TrialResult
        Makes a trial, usually by `run_trial`.
    at_once : int, default=1
        Number of trials that run at the same time, each in a thread.
    callback : callable (step, of, info) -> None, optional
        Called after each step of each fit. An exception raised here ends the search.
    clock : callable () -> float
        Seconds.

    Returns
    -------
    chosen : Chosen
    tried : list of TrialResult
        Results of all trials.

    Examples
    --------
    >>> import numpy as np
    >>> from core.selection import GridSearch, HeldOut, TrialResult, run_plan
    >>> def fit(trial, callback):  # every C has its own value
    ...     return TrialResult(trial, values=(0.7, 0.9), aucs=(0.7, 0.9), seconds=1.0)
    >>> chosen, tried = run_plan(GridSearch("logistic", {"C": [0.1, 1.0]}), [HeldOut(np.array([0, 1]))], fit)
    >>> chosen.members[0].parameters, len(tried)
    ({'C': 1.0}, 1)
    """
    check_value("at_once", Annotated[int, Ge(1)], at_once)
    check_value("planner", Planner, planner)
    check_value("fit", Callable, fit)
    check_value("clock", Callable, clock)
    start = clock()
    tried: list[TrialResult] = []

    def report(number: int, step: int, of: int, info: Mapping[str, float]) -> None:
        callback(step, of, info)

    def carry_out(trial: Trial) -> Callable[[Callback], TrialResult]:
        return lambda progress: fit(trial, progress)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit on all rows will warn again
        while True:
            step = planner.next(tried, held, clock() - start)
            if isinstance(step, Chosen):
                return step, tried
            tried += fit_together([carry_out(trial) for trial in step], report, at_once)


@dataclass(frozen=True)
class Searched:
    """The result of a search: the fitted ranker, the final choice and all trials.

    Examples
    --------
    >>> import numpy as np
    >>> from core.selection import GridSearch, search_ranker
    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> searched = search_ranker(X, X[:, 0] > 0, GridSearch("logistic", {"C": [0.1, 1.0]}))
    >>> type(searched.ranker).__name__, len(searched.tried)
    ('Logistic', 1)
    """

    ranker: Ranker
    """The chosen ranker, fitted on all rows."""
    chosen: Chosen
    """The choice and the leaderboard. Its metrics are biased upwards: evaluate the ranker on other rows."""
    tried: list[TrialResult]
    """Results of all trials."""


def search_ranker(
    X: Any,
    y: Any,
    planner: Planner,
    *,
    sample_weight: Any = None,
    group: Any = None,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    metric: Metric | str | None = None,
    random_state: int = 0,
    callback: Callback = ignore,
) -> Searched:
    """Search for the best parameters of an algorithm on held-out rows, and fit it on all rows.

    Parameters
    ----------
    X, y
        As for `auto_ranker`.
    planner : Planner
        `GridSearch`, `RandomSearch`, `SuccessiveHalving` or `Auto`.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    group : array-like of shape (n_samples,), optional
        Rows with equal values stay together in every split; without groups, equal rows do.
    fpr_min, fpr_max : float in [0, 1], default=0 and 1
        Window of the objective, the partial AUC.
    metric : Metric or str, optional
        The objective instead of the partial AUC, or its name, such as `PrecisionAt(share=0.01)` or
        "average_precision". Its size must be a share, because validation rows are fewer than all.
    random_state : int, default=0
        Seed of the splits and of the fractions of rows.
    callback : callable (step, of, info) -> None, optional
        Called after each step of each fit. An exception raised here ends the search.

    Returns
    -------
    Searched

    Raises
    ------
    NothingFitted
        All candidates failed.

    Examples
    --------
    >>> import numpy as np
    >>> from core.selection import GridSearch, search_ranker
    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> y = X[:, 0] + 0.5 * X[:, 1] > 0
    >>> searched = search_ranker(X, y, GridSearch("rankboost", {"n_rounds": [1, 20]}, n_splits=3))
    >>> searched.chosen.members[0].parameters
    {'n_rounds': 20}
    """
    check_value("planner", Planner, planner)
    check_value("callback", Callable, callback)
    check_seed(random_state)
    rows = read_rows(X, y, sample_weight, group)
    window = check_window(fpr_min, fpr_max)
    objective = None if metric is None else metric_of(metric)
    chosen, tried = run_search(rows, planner, window, objective, random_state, callback)
    ranker = make_ranker(chosen).fit(X, y, sample_weight, groups=group, callback=callback)
    return Searched(ranker, chosen, tried)


def run_search(
    rows: SearchedRows,
    planner: Planner,
    window: tuple[float, float],
    metric: Metric | None,
    random_state: int,
    callback: Callback,
    clock: Callable[[], float] = perf_counter,
) -> tuple[Chosen, list[TrialResult]]:
    """Run a planner on inner splits of these rows; the objective is a metric, or the partial AUC on a window."""
    if metric is not None:
        check_scale_free(metric)
    splits = split_inner(rows, planner.n_splits, planner.fraction, random_state)
    at_once = count_at_once(*rows.X.shape)

    # A part is about as large as the table: keep only as many as are fitted at the same time.
    @lru_cache(at_once)
    def training_part(split: int, fraction: float) -> SearchedRows:
        training = np.flatnonzero(~splits[split])
        return rows.take(training[draw_rows(rows.positive[training], fraction, random_state)])

    @lru_cache(at_once)
    def validation_part(split: int) -> SearchedRows:
        return rows.take(splits[split])

    def fit(trial: Trial, progress: Callback) -> TrialResult:
        training, validation = training_part(trial.split, trial.rows), validation_part(trial.split)

        def measured(scores: Floats) -> Metrics:
            return Metrics(
                value_of(HeldOut(validation.positive, validation.weight), scores, window, metric),
                auc(validation.positive, scores, validation.weight),
            )

        return run_trial(
            trial,
            lambda ranker, step: ranker.fit(
                training.table,
                training.positive,
                training.weight,
                groups=training.group,
                callback=step,
            ),
            validation.table,
            measured,
            progress,
            clock,
        )

    held = [
        HeldOut(
            rows.positive[split].astype(np.int8),
            rows.weight[split],
            None if rows.group is None else rows.group[split],
        )
        for split in splits
    ]
    return run_plan(planner, held, fit, at_once=at_once, callback=callback, clock=clock)


def split_inner(
    rows: SearchedRows, n_splits: int, fraction: float, random_state: int
) -> list[npt.NDArray[np.bool_]]:
    if not n_splits:
        return []
    return split_rows(
        rows.X,
        rows.positive,
        rows.weight,
        n_splits,
        fraction=fraction,
        group=rows.group,
        seed=random_state,
    )


def fit_chosen(
    chosen: Chosen,
    fit: Callable[[Ranker, Callback], object],
    callback: Callback = ignore,
    until: float = math.inf,
    clock: Callable[[], float] = perf_counter,
) -> tuple[Ranker, Chosen]:
    """Fit the chosen ranker on all rows, within a time limit if it can be stopped early.

    A ranker that cannot be stopped takes the time that it needs. So does a `RankAverage` if no member was fitted in
    time: it is fitted again, with a UserWarning.

    A ranker that was stopped has the parameters of what was fitted: the number of rounds or trees, and only the members
    that were ready. A fit with these parameters gives the same ranker, bit for bit.

    Parameters
    ----------
    chosen : Chosen
        The choice of a search.
    fit : callable (ranker, callback) -> object
        Fits the ranker on all rows.
    callback : callable (step, of, info) -> None, optional
        Called after each step. An exception raised here reaches the caller; `StopFit` does if nothing can be kept.
    until : float, optional
        Time of the clock, in seconds, at which fits are stopped.
    clock : callable () -> float
        Seconds.

    Returns
    -------
    ranker : Ranker
    chosen : Chosen
        The choice, with the members as they were fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from core.selection import Chosen, Member, fit_chosen
    >>> X, y = np.arange(20.0)[:, None], np.arange(20) >= 10
    >>> chosen = Chosen((Member("rankboost", {"n_rounds": 2}),), ())
    >>> ranker, fitted = fit_chosen(chosen, lambda ranker, callback: ranker.fit(X, y, callback=callback))
    >>> ranker.n_rounds, fitted.repeatable
    (2, True)
    """
    check_value("chosen", Chosen, chosen)
    check_value("fit", Callable, fit)
    check_value("callback", Callable, callback)
    check_value("clock", Callable, clock)
    check_value("until", Real, until)
    is_late = is_stopped = False

    def step(done: int, of: int, info: Mapping[str, float]) -> None:
        nonlocal is_late, is_stopped
        try:
            callback(done, of, info)
            if done < of and clock() > until:
                is_late = True
                raise StopFit
        except StopFit:
            is_stopped = True
            raise

    ranker = make_ranker(chosen)
    if len(chosen.members) == 1 and not ranker.keeps_when_stopped:
        fit(ranker, callback)
        return ranker, chosen
    try:
        fit(ranker, step)
        if is_stopped:
            return _as_fitted(ranker, chosen)
    except StopFit:
        if not is_late:
            raise
        message = (
            "the final fit took longer than its time limit, because it could not be stopped halfway: it is complete, "
            "and you need to do nothing"
        )
        warn(message)
        ranker = make_ranker(chosen)
        fit(ranker, callback)
    return ranker, chosen


def _as_fitted(ranker: Ranker, chosen: Chosen) -> tuple[Ranker, Chosen]:
    """Return a ranker that was stopped, and the choice of which a complete fit gives it."""
    kept = ranker.kept_ if isinstance(ranker, RankAverage) else [0]
    repeatable = ranker.keep_length()
    templates, classes = [ranker], ranker.classes_
    if isinstance(ranker, RankAverage):
        assert ranker.members is not None
        templates = list(ranker.members)
        if len(kept) == 1:
            (ranker,) = ranker.members_
            ranker.classes_ = classes
    members = []
    for k, template in zip(kept, templates, strict=True):
        member = chosen.members[k]
        planned = ALGORITHMS[member.algorithm](**member.parameters).get_params(deep=False)
        now = template.get_params(deep=False)
        changed = {name: value for name, value in now.items() if value != planned[name]}
        members.append(replace(member, parameters={**member.parameters, **changed}))
    return ranker, replace(chosen, members=tuple(members), repeatable=repeatable)


def make_ranker(chosen: Chosen) -> Ranker:
    """Return the chosen ranker, unfitted: the only member, or a `RankAverage` of all members.

    Parameters
    ----------
    chosen : Chosen
        The choice of a search.

    Returns
    -------
    Ranker

    Examples
    --------
    >>> from core.selection import Chosen, Member, make_ranker
    >>> chosen = Chosen((Member("logistic", {}), Member("auc_svm", {}, weight=0.5)), ())
    >>> make_ranker(chosen).weights
    [1.0, 0.5]
    """
    check_value("chosen", Chosen, chosen)
    rankers = [ALGORITHMS[member.algorithm](**member.parameters) for member in chosen.members]
    if len(rankers) == 1:
        return rankers[0]
    return RankAverage(members=rankers, weights=[member.weight for member in chosen.members])


def read_rows(X: Any, y: Any, sample_weight: Any, group: Any) -> SearchedRows:
    """Return the rows of weight above 0, with the input checked as in `fit`."""
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
    weight = check_class_weights(sample_weight, positive, classes)
    unit = None if group is None else number_units("group", group, len(matrix)).astype(np.uint64)
    n_categories = np.zeros(matrix.shape[1], dtype=np.int64)
    n_categories[: len(categories)] = [len(known or ()) for known in categories]
    rows = SearchedRows(
        matrix, positive, weight, n_categories, unit, names=names, categories=categories
    )
    return rows.present()
