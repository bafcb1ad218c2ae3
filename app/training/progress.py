"""The progress of a training job: what it is doing, and the best of what it has tried.

A fit calls back with the number of a step and its figures. Around that, a `Reporter` says what the fit is for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any

from app.jobs.progress import Callback, Report
from app.platform.sql import Json
from app.training.search import searches, trials_of
from app.training.splits import folds_of

TRIAL, SHARD, FIT, BASELINE = "tryout", "share", "fit", "control"
"""What a part is, as it is stored; `plan` says what each does."""

READING, PREPARING, FITTING = "reading the table", "preparing", "fitting"
MEASURING, COMPARING = "measuring", "comparing"

SHOWN_ROWS = 10
"""Of the leaderboard: the document is written again and again."""
SHOWN_PARAMETERS = 8
_TELLING = ("max_leaves", "loss", "weak_ranker", "leaf", "max_depth", "n_rounds", "learning_rate")
MAX_CHARACTERS = 40
MAX_PARTIAL = 100


class EndEarly(BaseException):
    """The job's owner asked for the best so far. Not an Exception, so that no algorithm swallows it."""


class Leaderboard:
    """The best of what a search has tried so far, trial by trial: small enough to be written again and again.

    A row is a candidate on some rows, once all inner splits have judged it, by the mean. `state()` can be stored, and
    given to another process to go on from.
    """

    def __init__(self, spec: Mapping[str, Any], state: Mapping[str, Any] | None = None) -> None:
        state = state or {}
        self._spec = spec
        self._rows: list[Json] = list(state.get("leaderboard") or ())
        self._partial: list[Json] = list(state.get("partial") or ())
        self._scopes: list[Any] = list(state.get("ready") or ())
        self.n_trials: int = state.get("trials_done") or 0
        self.n_known = 0

    def add(
        self, part: Mapping[str, Any], result: Mapping[str, Any], trial: int | None = None
    ) -> None:
        """Take note of a part that is done, by the number of its trial."""
        self.n_known += 1
        if part["what"] == FIT:
            self._make_ready(part["scope"])
        if part["what"] != TRIAL or result.get("skipped"):
            return
        self.n_trials += 1
        key = key_of(part["tryout"], part["scope"])
        found = next((each for each in self._partial if each["key"] == key), None)
        if found is not None:
            self._partial.remove(found)
        if result["failed"]:
            return
        done = found or {"key": key, "sums": [0.0] * len(result["values"]), "n": 0, "seconds": 0.0}
        candidate: Json = {
            "key": key,
            "sums": [a + b for a, b in zip(done["sums"], result["values"], strict=False)],
            "n": done["n"] + 1,
            "seconds": done["seconds"] + result["seconds"],
        }
        if candidate["n"] < part.get("asked", part["inner"]["n_splits"]):
            self._partial = [*self._partial, candidate][-MAX_PARTIAL:]
            return
        if self._spec.get("search") is not None or _is_full(part):
            self._make_ready(part["scope"])
        if part["scope"] is None:
            self._add_row(trial or self.n_trials, part["tryout"], result, candidate)

    def is_ready(self, scope: Sequence[int] | None) -> bool:
        """Whether the scope has a candidate that can be chosen, or its ranker."""
        return (None if scope is None else list(scope)) in self._scopes

    def state(self) -> Json:
        """What is shown of it, and what it takes to go on."""
        best = (
            {**self._rows[0], "metric": self._spec["objective"]["metric"]} if self._rows else None
        )
        return {
            "best": best,
            "leaderboard": self._rows,
            "keepable": len(self._scopes) == 1 + len(folds_of(self._spec["validation"])),
            "trials_done": self.n_trials,
            "partial": self._partial,
            "ready": self._scopes,
        }

    def _make_ready(self, scope: Any) -> None:
        if scope not in self._scopes:
            self._scopes = [*self._scopes, scope]

    def _add_row(
        self,
        number: int,
        trial: Mapping[str, Any],
        result: Mapping[str, Any],
        candidate: Json,
    ) -> None:
        sums = candidate["sums"]
        place = max(range(len(sums)), key=lambda k: sums[k])
        parameters = shown_parameters(self._spec, trial["parameters"])
        if along := result.get("along"):
            parameters[along] = trial["path"][place]
        elif n_rounds := result.get("steps"):
            parameters["n_rounds"] = n_rounds  # the best, where early stopping found them
        row = {
            "trial": number,
            "algorithm": trial["algorithm"],
            "parameters": parameters,
            "rows": result.get("rows"),  # a worker of an earlier version does not say
            "value": sums[place] / candidate["n"],
            "seconds": candidate["seconds"],
        }
        ranked = sorted([*self._rows, row], key=lambda each: -each["value"])
        self._rows = ranked[:SHOWN_ROWS]


class Reporter:
    """Tells of the parts of a job that one process runs, some of them at once.

    `ended` is set once the job's owner has asked for the best so far.
    """

    def __init__(self, spec: Mapping[str, Any], callback: Callback, *, ended: bool = False) -> None:
        self.spec = spec
        self.board = Leaderboard(spec)
        self.ended = ended
        self.is_cut_short = False
        self._is_search_cut = False
        self.fraction = 0.0
        self.lock = RLock()
        self._callback = callback
        self._n_trials = trials_of(spec, 1 + len(folds_of(spec["validation"])))
        self._n_begun = 0

    def begin(
        self, part: Mapping[str, Any], share: float, callback: Callback | None = None
    ) -> FitProgress:
        """A part begins that is a share of the whole job; `callback` takes the place of `send`."""
        with self.lock:
            return FitProgress(self, part, share, self._what_runs(part), callback or self.send)

    def enter(self, phase: str) -> None:
        """A phase begins that belongs to no part."""
        state = {"phase": phase, **self.board.state()}
        self.send(0, 0, Report({}, state, self.fraction))

    def send(self, step: int, of: int, info: Mapping[str, float]) -> None:
        """Pass a report on, one at a time."""
        with self.lock:
            self._callback(step, of, info)

    def may_leave_out(self, part: Mapping[str, Any]) -> bool:
        """Whether the job is to end early, and has something to keep in the place of this part."""
        return self.ended and self.can_do_without(part)

    def can_do_without(self, part: Mapping[str, Any]) -> bool:
        """Whether there is something to keep in the place of this part."""
        if part["what"] == TRIAL:
            return self.board.is_ready(part["scope"])
        return part["what"] == BASELINE and bool(self.board.state()["keepable"])

    def ends(self, scope: Sequence[int] | None) -> bool:
        """Whether the search of a scope is to choose now."""
        ends = self.ended and self.board.is_ready(scope)
        self._is_search_cut = self._is_search_cut or ends
        return ends

    def notes(self) -> list[str]:
        """What the owner of the model should know."""
        if self.is_cut_short:
            return ["the fit was ended early by request: what it had learnt so far is served"]
        if not self._is_search_cut:
            return []
        return [
            f"the search was ended early by request, after {self.board.n_trials} trials: "
            "the best so far is served"
        ]

    def _what_runs(self, part: Mapping[str, Any]) -> Json:
        scope = part["scope"]
        about: Json = {"fold": None if scope is None else scope[1] + 1}
        if part["what"] == TRIAL:
            self._n_begun = max(self._n_begun, self.board.n_trials) + 1
            about |= {"trial": self._n_begun, "trials": self._n_trials}
            tried = part["tryout"]
        elif part["what"] == BASELINE:
            return about | {"algorithm": part["algorithm"], "parameters": {}}
        else:
            tried, *others = part["members"]
            if others:
                names = "+".join(dict.fromkeys(each["algorithm"] for each in part["members"]))
                return about | {"algorithm": names[:MAX_CHARACTERS], "parameters": {}}
        shown = shown_parameters(self.spec, tried["parameters"])
        return about | {"algorithm": tried["algorithm"], "parameters": shown}


class FitProgress:
    """Tells of one part of a job."""

    def __init__(
        self,
        reporter: Reporter,
        part: Mapping[str, Any],
        share: float,
        about: Json,
        callback: Callback,
    ) -> None:
        self._reporter = reporter
        self._part = part
        self._share = share
        self._about = about
        self._end: type[BaseException] | None = None
        self._stop = _stop_of(part, reporter.spec)
        self._callback = callback
        self._done = 0.0
        self._now: Json = {}
        self._n_known = -1

    def enter(self, phase: str, **about: Any) -> None:
        """A phase begins that has no steps, or none yet."""
        self._about |= {"phase": phase, **about}
        self._look()
        self._callback(0, 0, Report({}, self._now, self._reporter.fraction, self._end))

    def step(self, step: int, of: int, info: Mapping[str, float]) -> None:
        """A step of the fit under way is done: the callback that rankers take."""
        is_first = self._about["phase"] == PREPARING
        if is_first:
            self._about["phase"] = FITTING
        if is_first or self._n_known != self._reporter.board.n_known:
            self._look()
        self._reach(step / max(of, 1))
        report = Report(info, self._now, self._reporter.fraction, self._end)
        if self._stop is None:
            self._callback(step, of, report)
            return
        try:
            self._callback(step, of, report)
            if self._reporter.ended:
                raise self._stop
        except self._stop:
            self._reporter.is_cut_short = True
            raise

    def finish(self, result: Mapping[str, Any]) -> None:
        """The part is done."""
        self._reach(1.0)
        with self._reporter.lock:
            self._reporter.board.add(self._part, result, self._about.get("trial"))

    def _look(self) -> None:
        """Take in what parts beside this one have found."""
        with self._reporter.lock:
            board = self._reporter.board
            self._n_known, self._now = board.n_known, self._about | board.state()
            may_end = not self._reporter.ended and self._reporter.can_do_without(self._part)
            self._end = EndEarly if may_end else None
        if self._stop is not None and self._about["phase"] == FITTING:
            self._now["keepable"], self._end = True, self._stop

    def _reach(self, done: float) -> None:
        with self._reporter.lock:
            more = max(done - self._done, 0.0)
            self._done += more
            self._reporter.fraction = min(self._reporter.fraction + self._share * more, 1.0)


def _stop_of(part: Mapping[str, Any], spec: Mapping[str, Any]) -> type[BaseException] | None:
    """What stops the only fit of a job and keeps what it has; None where nothing does."""
    if part["what"] != FIT or folds_of(spec["validation"]) or searches(spec):
        return None
    from core.base.ranker import StopFit
    from core.registry import ALGORITHMS

    (member,) = part["members"]
    return StopFit if ALGORITHMS[member["algorithm"]].keeps_when_stopped else None


def leave_out(part: Mapping[str, Any]) -> Json:
    """The result of a trial or a baseline that was left out, for its job was to end early."""
    why = "the search was ended before it, by request"
    result: Json = {"skipped": True, "failed": why, "seconds": 0.0, "elapsed": 0.0, "files": {}}
    if part["what"] == TRIAL:
        result |= {"values": [], "aucs": [], "setup": 0.0, "notes": [], "rows": 0, "along": None}
    return result


def shown_parameters(spec: Mapping[str, Any], parameters: Mapping[str, Any]) -> Json:
    """A candidate's parameters in short: those that are searched, or of `auto` those that it has set."""
    search = spec.get("search")
    names = search["space"] if search is not None else parameters
    if not searches(spec):
        return {}
    found = {name: parameters[name] for name in names if name in parameters}
    found.pop("random_state", None)
    shown = list(most_important_first(found).items())[:SHOWN_PARAMETERS]
    return {
        name: value if _is_short(value) else str(value)[:MAX_CHARACTERS] for name, value in shown
    }


def most_important_first(parameters: Mapping[str, Any]) -> Json:
    """The same parameters, those first that tell most of what a model is: what is cut off is then the least."""
    first = {name: parameters[name] for name in _TELLING if name in parameters}
    return first | dict(parameters)


def _is_full(part: Mapping[str, Any]) -> bool:
    """Whether a trial of `auto` is one of those that it chooses among; others say what to try."""
    return str(part["tryout"]["label"]).startswith("full/")


def _is_short(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float)


def key_of(trial: Mapping[str, Any], scope: Sequence[int] | None) -> str:
    """What the trials of one candidate on all inner splits have in common."""
    candidate = {name: trial[name] for name in trial if name not in ("split", "limit")}
    text = json.dumps([scope, candidate], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
