"""The progress report of a running job: one small document in its row, written once a second at most.

A fit calls back with the number of a step and its figures. Of a `Report` the worker reads what the whole job is doing,
too. `workers/attempt.py` writes the document, or `child_jobs.py` for a job that waits for child jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

COMPILING = "compiling"
"""The phase of a job whose process compiles kernels."""
NEARLY_DONE = 0.99
MAX_IMPROVEMENTS = 100
EPS_VALUE = 1e-12
"""Values nearer than this are equal: a mean of the same numbers in another order."""

Callback = Callable[[int, int, Mapping[str, float]], None]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Report(Mapping[str, float]):
    """The figures of a step, which a callback is called with, and what the job reports beside them.

    `fraction` is the share of the whole job that is done. `end` is what a callback may raise to end early what is under
    way, and to keep what there is; None: nothing could be kept yet.
    """

    figures: Mapping[str, float]
    job: Mapping[str, Any]
    fraction: float
    end: type[BaseException] | None = None

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)


def clocked(
    progress: Json, spec: Mapping[str, Any], elapsed: float, compiling: float = 0.0
) -> Json:
    """Return the progress with `elapsed` seconds since the job's start and, of a job with a budget, the seconds left.

    What is done of a job with a budget is what is spent of it. The budget does not count the seconds of `compiling`
    among those elapsed. `improvements` goes on to the best candidate of now.
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
    """Return the progress that a job keeps at its end, with the improvements that it has `reported`.

    What it has chosen is among them if it is better than each candidate: a mean rank of several need not be. Without
    any report there are none, because no time is known.
    """
    known: list[Json] = reported.get("improvements") or []
    elapsed = reported.get("elapsed_seconds")
    if elapsed is not None and (not known or known[-1]["value"] < progress["best"]["value"]):
        known = _improvements({**progress, "improvements": known}, elapsed)
    return progress | {"improvements": known}


def _improvements(progress: Json, elapsed: float) -> list[Json]:
    """Return the values of the best candidate, rising, the last one that of now.

    A greater value than that of now was one of fewer rows, in a search by stages.
    """
    value = progress["best"]["value"]
    found: list[Json] = [
        each for each in progress.get("improvements") or [] if each["value"] <= value + EPS_VALUE
    ]
    if found and found[-1]["value"] >= value - EPS_VALUE:
        return found
    longer = [*found, {"seconds": elapsed, "value": value}]
    # The document is written again and again: of too many, every second one goes, but not the first or the latest.
    return longer if len(longer) <= MAX_IMPROVEMENTS else [*longer[:-1:2], longer[-1]]


def as_event(progress: Mapping[str, Any]) -> Json:
    """Return what an event holds of a progress report. The leaderboard and the improvements stand in the job's row
    alone.
    """
    left_out = {"leaderboard", "improvements", "partial", "ready", "trials_done"}
    return {name: value for name, value in progress.items() if name not in left_out}


def budget_of(spec: Mapping[str, Any]) -> float | None:
    """Return the seconds that `auto` may take; None for other algorithms, child jobs and other kinds of job."""
    budget: float | None = spec.get("algorithm", {}).get("parameters", {}).get("budget_seconds")
    return budget
