"""Searching in one call, in one process: splits, tryouts, and the chosen ranker fitted on all rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from core.ensemble import RankAverage, count_at_once
from core.errors import InvalidData
from core.metrics import auc, partial_auc
from core.metrics.groups import number_units
from core.metrics.window import check_window
from core.ranker import Callback, Floats, Ranker, StopFit, ignore
from core.registry import ALGORITHMS
from core.table import Categories, CodedTable, is_table, to_matrix
from core.target import check_labels, check_weights

from .auto import Auto
from .planning import Chosen, HeldOut, Member, Planner, Tried, Tryout, draw_rows, run_plan
from .splits import split_rows
from .trial import Worth, try_out

_SALT = 1_000_003  # between the seeds of repeats


@dataclass(frozen=True)
class Searched:
    """What a search gave.

    Attributes
    ----------
    ranker : Ranker
        Fitted on all rows.
    chosen : Chosen
        With the leaderboard. Its figures chose: for those of the ranker take other rows.
    tried : list of Tried
    """

    ranker: Ranker
    chosen: Chosen
    tried: list[Tried]


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
        Rows of a group stay together in every split; without groups equal rows do.
    fpr_min, fpr_max : float in [0, 1], default=0 and 1
        The objective: the partial AUC on this window.
    random_state : int, default=0
        Of the splits and of the rows that a share has.
    callback : callable (step, of, info) -> None, optional
        Told of the steps of each fit, one after the other; what it raises ends the search.

    Returns
    -------
    Searched

    Raises
    ------
    InvalidData
        X, y, sample_weight or group break a rule, or a class has too few rows to be split.
    NothingFitted
        All candidates failed.
    """
    rows = _read(X, y, sample_weight, group)
    window = check_window(fpr_min, fpr_max)
    chosen, tried = _search(rows, planner, window, random_state, callback)
    ranker = make_ranker(chosen).fit(X, y, sample_weight, callback=callback)
    return Searched(ranker, chosen, tried)


def _search(
    rows: "_Rows",
    planner: Planner,
    window: tuple[float, float],
    random_state: int,
    callback: Callback,
) -> tuple[Chosen, list[Tried]]:
    splits = [
        split
        for repeat in range(planner.n_repeats)
        for split in split_rows(
            rows.matrix,
            rows.positive,
            rows.weight,
            planner.n_splits,
            fraction=planner.fraction,
            group=rows.group,
            seed=random_state + _SALT * repeat,
        )
    ]

    @cache
    def part(split: int, share: float) -> _Rows:
        learnt = rows.take(~splits[split])
        return learnt.take(draw_rows(learnt.positive, share, random_state))

    held_out = [rows.take(held) for held in splits]

    def fit(tryout: Tryout, told: Callback) -> Tried:
        learnt, held = part(tryout.split, tryout.rows), held_out[tryout.split]

        def judge(scores: Floats) -> Worth:
            return Worth(
                partial_auc(held.positive, scores, *window, sample_weight=held.weight),
                auc(held.positive, scores, held.weight),
            )

        return try_out(
            tryout,
            lambda ranker, told: ranker.fit(
                learnt.table, learnt.positive, learnt.weight, callback=told
            ),
            held.table,
            judge,
            told,
        )

    held = [HeldOut(one.positive.astype(np.int8), one.weight, one.group) for one in held_out]
    at_once = count_at_once(*rows.matrix.shape)
    return run_plan(planner, held, fit, at_once=at_once, callback=callback)


def auto_ranker(
    X: Any,
    y: Any,
    *,
    budget_seconds: float = 60.0,
    sample_weight: Any = None,
    group: Any = None,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    random_state: int = 0,
    callback: Callback = ignore,
) -> Searched:
    """Find a ranker within a time; see `Auto` and `search_ranker`.

    Parameters
    ----------
    X, y, sample_weight, group, fpr_min, fpr_max, random_state, callback
        See `search_ranker`.
    budget_seconds : float, default=60
        By the clock, the fits on all rows included.

    Returns
    -------
    Searched
    """
    rows = _read(X, y, sample_weight, group)
    window = check_window(fpr_min, fpr_max)
    n_rows, n_positive = len(rows.positive), int(np.count_nonzero(rows.positive))
    planner = Auto(
        n_rows=n_rows,
        n_rare=min(n_positive, n_rows - n_positive),
        n_features=rows.matrix.shape[1],
        most_categories=max((len(known or ()) for known in rows.categories), default=0),
        budget_seconds=budget_seconds,
        window=window,
        at_once=count_at_once(*rows.matrix.shape),
        random_state=random_state,
    )
    start = perf_counter()
    chosen, tried = _search(rows, planner, window, random_state, callback)

    def told(step: int, of: int, info: Mapping[str, float]) -> None:
        callback(step, of, info)
        if perf_counter() - start > budget_seconds and step < of:
            raise StopFit

    if chosen.rows < 1.0:
        _, positive = check_labels(y, len(y))
        drawn = np.zeros(len(positive))
        drawn[draw_rows(positive, chosen.rows, random_state)] = 1.0
        sample_weight = drawn if sample_weight is None else drawn * np.asarray(sample_weight)
    ranker = make_ranker(chosen).fit(X, y, sample_weight, callback=told)
    return Searched(ranker, chosen, tried)


def make_ranker(chosen: Chosen) -> Ranker:
    """Make the ranker that was chosen, not yet fitted.

    Parameters
    ----------
    chosen : Chosen

    Returns
    -------
    Ranker
        Of the one member, or a `RankAverage` of several.
    """
    rankers = [_make(member) for member in chosen.members]
    if len(rankers) == 1:
        return rankers[0]
    return RankAverage(members=rankers, weights=[member.weight for member in chosen.members])


def _make(member: Member) -> Ranker:
    return ALGORITHMS[member.algorithm](**member.parameters)


@dataclass(frozen=True)
class _Rows:
    """Checked rows."""

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

    def take(self, rows: npt.NDArray[Any]) -> "_Rows":
        """Give some rows, by number or by a mask."""
        return _Rows(
            self.matrix[rows],
            self.names,
            self.categories,
            self.positive[rows],
            self.weight[rows],
            None if self.group is None else self.group[rows],
        )


def _read(X: Any, y: Any, sample_weight: Any, group: Any) -> _Rows:
    """Check the rows as a fit does, and leave out those of weight 0."""
    import narwhals.stable.v2 as nw

    names: tuple[str, ...] | None = None
    categories: Categories = ()
    if is_table(X):
        matrix, categories = to_matrix(X)
        columns = X.names if isinstance(X, CodedTable) else nw.from_native(X).columns
        names = tuple(str(name) for name in columns)
    else:
        matrix = np.asarray(X, dtype=np.float64)
        if matrix.ndim != 2:
            raise InvalidData(f"X must have two dimensions, got {matrix.ndim}")
    classes, positive = check_labels(y, len(matrix))
    weight = check_weights(sample_weight, positive, classes)
    unit = None if group is None else number_units("group", group, len(matrix)).astype(np.uint64)
    return _Rows(matrix, names, categories, positive, weight, unit).take(weight > 0)
