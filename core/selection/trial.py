"""A tryout carried out: one fit, judged along its path."""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from core.errors import CoreError
from core.ranker import Callback, Floats, Ranker, ignore
from core.registry import ALGORITHMS

from .path import FollowingRanker, path_parameter, walk_path
from .planning import Tried, Tryout


class Worth(NamedTuple):
    """What scores of the held-out rows are worth, by the objective and by the AUC."""

    value: float
    auc: float


class _GivenUp(Exception):
    """The limit is reached."""


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
        where the fit is longer than the limit: a limit is looked at after each of the fit's steps.
    """
    start = clock()

    setup = 0.0

    def step(done: int, of: int, info: Mapping[str, float]) -> None:
        nonlocal setup
        setup = setup or clock() - start
        callback(done, of, info)
        if tryout.limit is not None and done < of and clock() - start > tryout.limit:
            raise _GivenUp

    kept: list[Floats] = []
    aucs: list[float] = []

    def judge_and_keep(scores: Floats) -> float:
        value, area = judge(scores)
        aucs.append(area)
        if tryout.keep_scores:
            kept.append(scores.copy())
        return value

    try:
        values = _fit_and_judge(tryout, fit, held_out, judge_and_keep, step)
    except _GivenUp:
        return _failure(tryout, clock() - start, f"given up after {clock() - start:.3g} s")
    except (CoreError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
        return _failure(tryout, clock() - start, str(error) or type(error).__name__)
    n_more = len(values) - len(
        aucs
    )  # where the fit ended early, the last counts for all that follow
    aucs += aucs[-1:] * n_more
    kept += kept[-1:] * n_more
    return Tried(tryout, values, tuple(aucs), clock() - start, tuple(kept), setup=setup)


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


def _failure(tryout: Tryout, seconds: float, why: str) -> Tried:
    return Tried(tryout, (), (), seconds, failed=why)
