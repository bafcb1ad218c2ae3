"""The progress of a training job: its current phase, and the best candidates so far.

A fit calls back with the number of a step and its values. A `Reporter` adds what the fit is for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, NotRequired, cast

import numpy as np
from typing_extensions import TypedDict

from app.jobs.progress import Callback, Report
from app.jobs.schemas import Best, ProgressRow
from app.platform.documents import Member, Parameters
from app.training.records import (
    BASELINE,
    FIT,
    TRIAL,
    BaselineOutcome,
    FinishedTrial,
    Outcome,
    PlanPart,
    TrainSpec,
    TrialOutcome,
    TrialPart,
    TrialRecord,
)
from app.training.search import AUTO, searches, trials_of
from app.training.splits import folds_of
from core import selection
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.selection import Chosen, LeaderboardRow

READING, PREPARING, FITTING = "reading the table", "preparing", "fitting"
MEASURING, COMPARING = "measuring", "comparing"
LAST_FITS = "last fits"
"""The phase of `auto` in which what it has chosen is fitted on all rows."""

MAX_ROWS, MAX_PARAMETERS, MAX_CHARACTERS = 10, 8, 40
"""Rows of the leaderboard, parameters of a row and characters of a value: the document is written again and again."""

MAX_PARTIAL = 100
"""Candidates that are waiting for their other inner splits."""

STAGE_FRACTION = 0.75
"""Fraction of the greatest number of rows from which on a candidate counts as one of the last stage."""

_MOST_INFLUENTIAL = (
    "max_leaves",
    "loss",
    "weak_ranker",
    "leaf",
    "max_depth",
    "n_rounds",
    "learning_rate",
)


class EndEarly(BaseException):
    """Ends a fit early: the owner wants the best result so far. Not an Exception, so that no algorithm catches it."""


class PartialCandidate(TypedDict):
    """A candidate with results for `n` of its inner splits. sums: one by value of its path; `auto` has `merits`."""

    key: str
    sums: list[float]
    merits: NotRequired[list[float]]
    n: int
    seconds: float


class BoardState(TypedDict):
    best: Best | None
    leaderboard: list[ProgressRow]
    keepable: bool
    trials_done: int
    partial: list[PartialCandidate]
    ready: list[list[int] | None]


class RunningPart(TypedDict):
    """The fold, trial, algorithm and parameters of a running part."""

    fold: int | None
    algorithm: str
    parameters: Parameters
    trial: NotRequired[int]
    trials: NotRequired[int | None]
    phase: NotRequired[str]
    auto_phase: NotRequired[str]
    rows: NotRequired[int]


class Leaderboard:
    """The best candidates so far; small enough to be stored often. Another process can continue from `state()`."""

    def __init__(self, spec: TrainSpec, state: Mapping[str, object] | None = None) -> None:
        known = cast(BoardState, state or {})  # others write into it, too: keys may be absent
        self._spec = spec
        self._rows = list(known.get("leaderboard") or ())
        self._partial = list(known.get("partial") or ())
        self._scopes = list(known.get("ready") or ())
        self.n_trials = known.get("trials_done") or 0
        self.n_known = 0

    def add(self, part: PlanPart, result: Outcome, trial: int | None = None) -> None:
        """`trial` is its number among the trials, by default the next one."""
        self.n_known += 1
        if part["what"] == FIT:
            self._make_ready(part["scope"])
        elif part["what"] == TRIAL and not result.get("skipped"):
            self.n_trials += 1
            self._add_trial(part, cast(TrialOutcome, result), trial or self.n_trials)

    def _add_trial(self, part: TrialPart, result: TrialOutcome, trial: int) -> None:
        from core.selection.candidates import path_merit

        is_auto = self._spec["search"] is None
        if is_auto and not _may_be_chosen(part):
            return
        key = key_of(part["tryout"], part["scope"])
        done = next((each for each in self._partial if each["key"] == key), None)
        if done is not None:
            self._partial.remove(done)
        if result["failed"]:
            return
        sums, n, seconds = [0.0] * len(result["values"]), 0, 0.0
        if done is not None:
            sums, n, seconds = done["sums"], done["n"], done["seconds"]
        candidate: PartialCandidate = {
            "key": key,
            "sums": [a + b for a, b in zip(sums, result["values"], strict=False)],
            "n": n + 1,
            "seconds": seconds + result["seconds"],
        }
        if is_auto:
            merits = path_merit(result["values"], result["aucs"]).tolist()
            if done is not None:  # a fit that its limit stopped has fewer values
                merits = [a + b for a, b in zip(merits, done["merits"], strict=False)]
            candidate["merits"] = merits
        # The mean of fewer splits is of other rows, and cannot be compared with that of all of them.
        if candidate["n"] < part["inner"]["n_splits"]:
            self._partial = [*self._partial, candidate][-MAX_PARTIAL:]
            return
        self._make_ready(part["scope"])
        if part["scope"] is None:
            self._add_row(trial, part["tryout"], result, candidate)

    def is_ready(self, scope: Sequence[int] | None) -> bool:
        """Return True if the scope has its ranker, or a candidate that can be chosen."""
        return (None if scope is None else list(scope)) in self._scopes

    def state(self) -> BoardState:
        """Return JSON from which another process can continue."""
        best: Best | None = None
        if self._rows:
            best = {**self._rows[0], "metric": self._spec["objective"]["metric"]}
        return {
            "best": best,
            "leaderboard": self._rows,
            "keepable": len(self._scopes) == 1 + len(folds_of(self._spec["validation"])),
            "trials_done": self.n_trials,
            "partial": self._partial,
            "ready": self._scopes,
        }

    def _make_ready(self, scope: list[int] | None) -> None:
        if scope not in self._scopes:
            self._scopes = [*self._scopes, scope]

    def _add_row(
        self,
        number: int,
        trial: TrialRecord,
        result: TrialOutcome,
        candidate: PartialCandidate,
    ) -> None:
        """Insert a candidate's row, if it is among the best."""
        from core.selection.candidates import best_of_merits

        sums = candidate["sums"]
        if "merits" in candidate:
            index = best_of_merits(np.array(candidate["merits"]))
        else:
            index = max(range(len(sums)), key=lambda k: sums[k])
        parameters = shown_parameters(self._spec, trial["parameters"])
        if along := result.get("along"):
            parameters[along] = trial["path"][index]
        elif n_rounds := result.get("steps"):
            parameters["n_rounds"] = n_rounds  # the best, where early stopping found them
        row: ProgressRow = {
            "trial": number,
            "algorithm": trial["algorithm"],
            "parameters": parameters,
            "rows": result["rows"],
            "splits": candidate["n"],
            "value": sums[index] / candidate["n"],
            "seconds": candidate["seconds"],
        }
        self._rows = _ranked([*self._rows, row])


class Reporter:
    """Reports the progress of the parts of a job in one process, some of them in parallel.

    `ended` is set once the job's owner has asked for the best so far.
    """

    def __init__(self, spec: TrainSpec, callback: Callback, *, ended: bool = False) -> None:
        self.spec = spec
        self.board = Leaderboard(spec)
        self.ended = ended
        self.is_cut_short = False
        self._is_search_cut = False
        self.fraction = 0.0
        self.lock = RLock()
        self._callback = callback
        self._state: Mapping[str, Any] = {}  # as last reported
        self._n_trials = trials_of(spec, 1 + len(folds_of(spec["validation"])))
        self._n_begun = 0

    def begin(
        self, part: PlanPart, fraction: float, callback: Callback | None = None
    ) -> FitProgress:
        """The part is a fraction of the whole job. `callback` replaces `send`."""
        with self.lock:
            return FitProgress(self, part, fraction, self._what_runs(part), callback or self.send)

    def enter(self, phase: str) -> None:
        """Report a phase that belongs to no part."""
        state = {"phase": phase, **self.board.state()}
        self.send(0, 0, Report({}, state, self.fraction))

    def send(self, step: int, of: int, info: Mapping[str, float]) -> None:
        """Pass a report to the job's callback, one at a time, with the newest fraction: another part may be further."""
        with self.lock:
            if isinstance(info, Report):
                info = replace(info, fraction=self.fraction)
                self._state = info.job
            self._callback(step, of, info)

    def tell(self, detail: str) -> None:
        """Report a detail of a phase without steps. The callback may raise to end the job."""
        with self.lock:
            self._callback(0, 0, Report({}, {**self._state, "detail": detail}, self.fraction))

    def may_leave_out(self, part: PlanPart) -> bool:
        """Return True if the job is to end early, and does not need this part."""
        return self.ended and self.can_do_without(part)

    def can_do_without(self, part: PlanPart) -> bool:
        """Return True if there is already a result without this part."""
        if part["what"] == TRIAL:
            return self.board.is_ready(part["scope"])
        return part["what"] == BASELINE and bool(self.board.state()["keepable"])

    def ends(self, scope: Sequence[int] | None) -> bool:
        ends = self.ended and self.board.is_ready(scope)
        self._is_search_cut = self._is_search_cut or ends
        return ends

    def notes(self) -> list[str]:
        if self.is_cut_short:
            return [
                "the fit was stopped early on request: the model is the ranker of its last step"
            ]
        if not self._is_search_cut:
            return []
        return [
            f"the search was stopped early on request after {self.board.n_trials} trials: the model is the best "
            "candidate"
        ]

    def _what_runs(self, part: PlanPart) -> RunningPart:
        scope = part["scope"]
        running: RunningPart = {
            "fold": None if scope is None else scope[1] + 1,
            "algorithm": "",
            "parameters": {},
        }
        tried: TrialRecord | Member
        if part["what"] == TRIAL:
            self._n_begun = max(self._n_begun, self.board.n_trials) + 1
            running |= {"trial": self._n_begun, "trials": self._n_trials}
            tried = part["tryout"]
            if self.spec["algorithm"]["name"] == AUTO:
                running["auto_phase"] = auto_phase_of(tried)
        elif part["what"] == BASELINE:
            return running | {"algorithm": part["algorithm"]}
        else:
            tried, *others = part["members"]
            if self.spec["algorithm"]["name"] == AUTO:
                running["auto_phase"] = LAST_FITS
            if others:
                names = "+".join(dict.fromkeys(each["algorithm"] for each in part["members"]))
                return running | {"algorithm": names[:MAX_CHARACTERS]}
        shown = shown_parameters(self.spec, tried["parameters"])
        return running | {"algorithm": tried["algorithm"], "parameters": shown}


class FitProgress:
    """Reports the progress of one part of a job."""

    def __init__(
        self,
        reporter: Reporter,
        part: PlanPart,
        fraction: float,
        running: RunningPart,
        callback: Callback,
    ) -> None:
        self._reporter = reporter
        self._part = part
        self._fraction = fraction
        self._running = running
        self._end: type[BaseException] | None = None
        self._stop = _stop_of(part, reporter.spec)
        self._callback = callback
        self._done = 0.0
        self._state: dict[str, object] = {}
        self._n_known = -1

    def enter(self, phase: str, rows: int | None = None) -> None:
        """Begin a phase without steps; `rows` is the number of training rows."""
        self._running["phase"] = phase
        if rows is not None:
            self._running["rows"] = rows
        self._refresh()
        self._callback(0, 0, Report({}, self._state, self._reporter.fraction, self._end))

    def step(self, step: int, of: int, info: Mapping[str, float]) -> None:
        """Report a step of the fit; the callback of rankers."""
        is_first = self._running["phase"] == PREPARING
        if is_first:
            self._running["phase"] = FITTING
        if is_first or self._n_known != self._reporter.board.n_known:
            self._refresh()
        self._reach(step / max(of, 1))
        report = Report(info, self._state, self._reporter.fraction, self._end)
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

    def finish(self, result: Outcome) -> None:
        """End the part, and add its result to the leaderboard."""
        self._reach(1.0)
        with self._reporter.lock:
            self._reporter.board.add(self._part, result, self._running.get("trial"))

    def _refresh(self) -> None:
        """Update the report with the results of the other parts."""
        with self._reporter.lock:
            board = self._reporter.board
            self._n_known = board.n_known
            self._state = {**self._running, **board.state()}
            may_end = not self._reporter.ended and self._reporter.can_do_without(self._part)
            self._end = EndEarly if may_end else None
        if self._stop is not None and self._running["phase"] == FITTING:
            self._state["keepable"], self._end = True, self._stop

    def _reach(self, done: float) -> None:
        with self._reporter.lock:
            more = max(done - self._done, 0.0)
            self._done += more
            self._reporter.fraction = min(self._reporter.fraction + self._fraction * more, 1.0)


def _stop_of(part: PlanPart, spec: TrainSpec) -> type[BaseException] | None:
    """Return the exception that stops the only fit of a job and keeps its result so far; None: no such fit."""
    if part["what"] != FIT or folds_of(spec["validation"]) or searches(spec):
        return None
    from core.base.ranker import StopFit

    (member,) = part["members"]
    return StopFit if ALGORITHMS[member["algorithm"]].keeps_when_stopped else None


def leave_out(part: PlanPart) -> TrialOutcome | BaselineOutcome:
    """Return the outcome of a part that was skipped because its job ended early."""
    why = "the search was stopped early on request"
    if part["what"] != TRIAL:
        return {"skipped": True, "failed": why, "seconds": 0.0, "elapsed": 0.0, "files": {}}
    return {
        "skipped": True,
        "failed": why,
        "seconds": 0.0,
        "elapsed": 0.0,
        "files": {},
        "values": [],
        "aucs": [],
        "setup": 0.0,
        "notes": [],
        "rows": 0,
        "along": None,
    }


def shown_parameters(spec: TrainSpec, parameters: Parameters) -> Parameters:
    """Return the shown parameters: those that are searched, or that `auto` has set."""
    search = spec["search"]
    names = search["space"] if search is not None else parameters
    if not searches(spec):
        return {}
    varied = {name: parameters[name] for name in names if name in parameters}
    varied.pop("random_state", None)
    shown = list(most_important_first(varied).items())[:MAX_PARAMETERS]
    return {
        name: value if _is_short(value) else str(value)[:MAX_CHARACTERS] for name, value in shown
    }


def most_important_first(parameters: Mapping[str, Any]) -> Parameters:
    """Sort by influence, the largest first, so that a truncated list shows what matters."""
    first = {name: parameters[name] for name in _MOST_INFLUENTIAL if name in parameters}
    return first | dict(parameters)


def auto_phase_of(trial: TrialRecord) -> str:
    """Return the phase of `auto` of a trial."""
    assert trial["key"] is not None  # `auto` names all its trials
    return trial["key"]["phase"]


def kept_board(spec: TrainSpec, chosen: Chosen, trials: Sequence[FinishedTrial]) -> dict[str, Any]:
    """Return the progress that a succeeded job keeps of its search: its best candidates. Empty without a search.

    `trials` are those by which the ranker that is served was chosen.
    """
    n_learnt = {each["spec"]["tryout"]["rows"]: each["result"].get("rows") for each in trials}
    rows: list[ProgressRow] = []
    best: ProgressRow | None = None
    for each in _best_on_paths(spec, chosen) if trials else ():
        assert each.value is not None
        row: ProgressRow = {
            "trial": _number_of(each, trials),
            "algorithm": each.algorithm,
            "parameters": _shown_of(spec, each),
            "rows": n_learnt.get(each.rows),
            "splits": trials[-1]["spec"]["inner"]["n_splits"],
            "value": each.value,
            "seconds": each.seconds,
        }
        rows.append(row)
        if each.state == "chosen" and best is None:
            best = row
    if best is None:
        return {}
    # The chosen candidate is first, even if others have a better value.
    others = _ranked([row for row in rows if row is not best])
    return {
        "best": {**best, "metric": spec["objective"]["metric"]},
        "leaderboard": [best, *others][:MAX_ROWS],
    }


def _best_on_paths(spec: TrainSpec, chosen: Chosen) -> list[LeaderboardRow]:
    """Return the candidates with a value; of those of one fit along a path, the best or the chosen one."""
    found: dict[str, LeaderboardRow] = {}
    search, along = spec["search"], None
    if search is not None:
        along = selection.path_parameter(ALGORITHMS[spec["algorithm"]["name"]])
    is_path = search is not None and along in search["space"]
    for number, each in enumerate(chosen.candidates):
        if each.value is None:
            continue
        others = {name: value for name, value in each.parameters.items() if name != along}
        key = repr((others, each.rows)) if is_path else str(number)
        known = found.get(key)
        if known is None or (each.state == "chosen", each.value) > (
            known.state == "chosen",
            known.value or 0.0,
        ):
            found[key] = each
    return list(found.values())


def _number_of(candidate: LeaderboardRow, trials: Sequence[FinishedTrial]) -> int:
    number = 0
    for n, each in enumerate(trials, start=1):
        tried = each["spec"]["tryout"]
        own = {name: value for name, value in tried["parameters"].items() if name != "n_rounds"}
        is_it = tried["algorithm"] == candidate.algorithm and tried["rows"] == candidate.rows
        if is_it and all(candidate.parameters.get(name) == own[name] for name in own):
            number = n
    return number


def _shown_of(spec: TrainSpec, candidate: LeaderboardRow) -> Parameters:
    """Of a mean rank, show the number of its members."""
    parameters = dict(candidate.parameters)
    if (members := parameters.get("members")) is not None and "weights" in parameters:
        return {"members": len(members)}
    return shown_parameters(spec, parameters)


def _ranked(rows: Sequence[ProgressRow]) -> list[ProgressRow]:
    """Return the best rows, those of the last stage of a search first: it chooses among these.

    A stage has at least twice the rows of the one before; the inner splits of one stage differ by a few.
    """
    most = max((row["rows"] or 0 for row in rows), default=0)
    last = STAGE_FRACTION * most
    return sorted(rows, key=lambda row: ((row["rows"] or 0) < last, -row["value"]))[:MAX_ROWS]


def _may_be_chosen(part: TrialPart) -> bool:
    """The first trial of `auto` only measures the duration of a round."""
    from core.selection.candidates import MEASURE

    return auto_phase_of(part["tryout"]) != MEASURE.name


def _is_short(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float)


def key_of(trial: TrialRecord, scope: Sequence[int] | None) -> str:
    """Return a key that the trials of one candidate share on all inner splits."""
    own = ("split", "limit", "hurried")
    candidate = {name: value for name, value in trial.items() if name not in own}
    text = json.dumps([scope, candidate], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
