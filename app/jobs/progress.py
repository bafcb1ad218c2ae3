"""The progress report of a running job: a small JSON document in the job's row, written at most once a second.

Some of the reports are also stored as events, with increasing intervals the longer the job runs.

A fit calls back with the number of a step and its values. A `Report` also has the progress of the whole job.
`workers/attempt.py` writes the document, or `child_jobs.py` for a job that waits for child jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

COMPILING = "compiling"
"""The phase of a job whose process compiles kernels."""
NEARLY_DONE = 0.99
PROGRESS_SECONDS = 1.0
"""Seconds between two writes of a job's progress into its row, at least."""
EVENT_SHARE = 0.01
MAX_IMPROVEMENTS = 100
EPS_VALUE = 1e-12
"""Values nearer than this are equal: a mean of the same numbers in another order."""

Callback = Callable[[int, int, Mapping[str, float]], None]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Report(Mapping[str, float]):
    """The values of a step, and the progress of the whole job.

    `fraction` is the fraction of the whole job that is done. `end` is the exception that a callback may raise to end
    the fit early and keep the model so far; None while there is no model.
    """

    metrics: Mapping[str, float]
    job: Mapping[str, Any]
    fraction: float
    end: type[BaseException] | None = None

    def __getitem__(self, name: str) -> float:
        return self.metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)


def clocked(
    progress: Json, spec: Mapping[str, Any], elapsed: float, compiling: float = 0.0
) -> Json:
    """Add `elapsed` seconds since the job's start and, if the job has a budget, the seconds left.

    The progress of a job with a budget is the spent fraction of the budget, without the seconds of `compiling`.
    `improvements` ends with the current best candidate.
    """
    timed = progress | {"elapsed_seconds": elapsed}
    if progress.get("best"):
        timed["improvements"] = _improvements(progress, elapsed)
    budget = budget_of(spec)
    if budget is None:
        return timed
    spent = elapsed - compiling
    return timed | {
        "fraction": min(spent / budget, NEARLY_DONE),
        "seconds_left": max(budget - spent, 0.0),
    }


def concluded(progress: Json, reported: Json) -> Json:
    """Return the final progress of a job, with the improvements that it has `reported`.

    The chosen model is among them if it is better than every candidate: a mean rank of several models may not be.
    Without any report there are no improvements, because their times are unknown.
    """
    known: list[Json] = reported.get("improvements") or []
    elapsed = reported.get("elapsed_seconds")
    if elapsed is not None and (not known or known[-1]["value"] < progress["best"]["value"]):
        known = _improvements({**progress, "improvements": known}, elapsed)
    return progress | {"improvements": known}


def _improvements(progress: Json, elapsed: float) -> list[Json]:
    """Return the best values over time, ascending to the current one: greater ones of a staged search: fewer rows."""
    value = progress["best"]["value"]
    found: list[Json] = [
        each for each in progress.get("improvements") or [] if each["value"] <= value + EPS_VALUE
    ]
    if found and found[-1]["value"] >= value - EPS_VALUE:
        return found
    longer = [*found, {"seconds": elapsed, "value": value}]
    # The document is written repeatedly. If it has too many improvements, every second one is dropped, except the first
    # and the latest.
    return longer if len(longer) <= MAX_IMPROVEMENTS else [*longer[:-1:2], longer[-1]]


def as_event(progress: Mapping[str, Any]) -> Json:
    """Leave out leaderboard and improvements, which only the job's row has."""
    left_out = {"leaderboard", "improvements", "partial", "ready", "trials_done"}
    return {name: value for name, value in progress.items() if name not in left_out}


def seconds_between_events(elapsed: float) -> float:
    """Return the least time between two progress events after `elapsed` seconds: a hundredth, at least
    `PROGRESS_SECONDS`.

    So the number of events grows with the logarithm of the time: about 800 in a day, 1,000 in a week.
    """
    return max(PROGRESS_SECONDS, EVENT_SHARE * elapsed)


def budget_of(spec: Mapping[str, Any]) -> float | None:
    """Return the budget of `auto`; None for other algorithms, child jobs and kinds."""
    budget: float | None = spec.get("algorithm", {}).get("parameters", {}).get("budget_seconds")
    return budget
