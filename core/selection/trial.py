"""A tryout carried out: one fit, judged along its path."""

import math
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from core.errors import CoreError
from core.ranker import Callback, Floats, Ranker, StopFit, ignore
from core.registry import ALGORITHMS
from core.table import CodedTable

from .path import FollowingRanker, path_parameter, walk_path
from .planning import GIVEN_UP, Tried, Tryout

ROWS_A_ROUND = 4_000
"""A figure of more rows is found less often: it needs a sort."""

LEAST_WORTH = 0.05
"""Below so much, a figure of the first round is too small to measure others by."""


class Worth(NamedTuple):
    """What scores of the held-out rows are worth, by the objective and by the AUC."""

    value: float
    auc: float


def try_out(
    tryout: Tryout,
    fit: Callable[[Ranker, Callback], object],
    held_out: Any,
    judge: Callable[[Floats], Worth],
    callback: Callback = ignore,
    clock: Callable[[], float] = perf_counter,
) -> Tried:
    """Carry out one tryout.

    Parameters
    ----------
    tryout : Tryout
    fit : callable (ranker, callback) -> object
        Fits the ranker on the inner training rows of the tryout's split, on the share of them that it asks for.
    held_out : array or table of shape (n_held_out, n_features)
    judge : callable (scores) -> Worth
        Of scores of those rows.
    callback : callable (step, of, info) -> None, optional
        Told of the fit's steps. What it raises reaches the caller.
    clock : callable () -> float
        Seconds.

    Returns
    -------
    Tried
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
        if tryout.limit is not None and done < of and latest - start > tryout.limit:
            raise StopFit

    kept: list[Floats] = []
    aucs: list[float] = []

    def judge_and_keep(scores: Floats) -> float:
        value, area = judge(scores)
        aucs.append(area)
        if tryout.keep_scores:
            kept.append(scores.copy())
        return value

    steps = 0
    try:
        if tryout.patience is None:
            values = _fit_and_judge(tryout, fit, held_out, judge_and_keep, step)
        else:
            steps, scores = _fit_watched(tryout, fit, held_out, judge, step)
            values = (judge_and_keep(scores),)
    except StopFit:
        return _failure(tryout, clock() - start, f"{GIVEN_UP} after {clock() - start:.3g} s")
    except (CoreError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
        return _failure(tryout, clock() - start, str(error) or type(error).__name__)
    n_values = (
        len(tryout.path) or 1
    )  # where the fit ended early, the last counts for all that follow
    values += values[-1:] * (n_values - len(values))
    aucs += aucs[-1:] * (n_values - len(aucs))
    kept += kept[-1:] * (n_values - len(kept))
    seconds = clock() - start
    setup = seconds - (latest - first)
    kept_scores, areas = tuple(kept), tuple(aucs)
    return Tried(tryout, values, areas, seconds, kept_scores, None, setup, steps, fitted)


def _fit_and_judge(
    tryout: Tryout,
    fit: Callable[[Ranker, Callback], object],
    held_out: Any,
    judge: Callable[[Floats], float],
    callback: Callback,
) -> tuple[float, ...]:
    algorithm = ALGORITHMS[tryout.algorithm]
    along = path_parameter(algorithm) if tryout.path else None
    longest = {} if along is None else {along: max(tryout.path)}
    ranker: Any = algorithm(**{**tryout.parameters, **longest})
    if along is not None and isinstance(ranker, FollowingRanker):
        ranker.follow(tryout.path)
    fit(ranker, callback)
    if along is None:
        return (judge(ranker.decision_function(held_out)),)
    return tuple(found.value for found in walk_path(ranker, held_out, tryout.path, judge))


class _Watched:
    """Boosted trees whose fit is judged as they grow, and keeps the best number of rounds."""

    def __init__(self, tryout: Tryout, held_out: Any, judge: Callable[[Floats], float]) -> None:
        self.ranker: Any = ALGORITHMS[tryout.algorithm](**tryout.parameters)
        n_held = len(held_out.matrix if isinstance(held_out, CodedTable) else held_out)
        self._watch = {
            "X_valid": held_out,
            "judge": judge,
            "patience": tryout.patience,
            "every": math.ceil(n_held / ROWS_A_ROUND),
        }

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Callback) -> None:
        """Fit; see `Booster.fit_watched`."""
        self.ranker.fit_watched(X, y, sample_weight, **self._watch, callback=callback)


def _fit_watched(
    tryout: Tryout,
    fit: Callable[[Any, Callback], object],
    held_out: Any,
    judge: Callable[[Floats], Worth],
    callback: Callback,
) -> tuple[int, Floats]:
    """Fit boosted trees, judged as they grow; give the best number of rounds, and the held-out rows' scores then.

    Rounds are judged by the objective and by the AUC, each as a share of what the first round had: a window alone is
    too noisy to stop by.
    """
    first: list[Worth] = []

    def judge_both(scores: Floats) -> float:
        worth = judge(scores)
        first.append(worth)
        return sum(now / max(then, LEAST_WORTH) for now, then in zip(worth, first[0], strict=True))

    watched = _Watched(tryout, held_out, judge_both)
    fit(watched, callback)
    return len(watched.ranker.rounds_), watched.ranker.decision_function(held_out)


def _failure(tryout: Tryout, seconds: float, why: str) -> Tried:
    return Tried(tryout, (), (), seconds, failed=why)
