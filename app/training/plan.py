"""The plan of a training job: the fits that it needs, stage by stage, as parts that run sequentially or in parallel.

A *scope* is a set of training rows, with or without validation rows. The scope `None` is that of the served ranker: the
training part of a holdout or, with cross-validation, all rows, without validation rows. With cross-validation, each
fold (repeat, fold) is a separate scope.

A *part* is one fit in one scope. Its `what` is one of:

- `tryout` (`TRIAL`): a planner of `core.selection` evaluates a candidate on an inner split of the scope's training
  rows.
- `fit` (`FIT`): the choice of the planner, fitted on all training rows; it scores the scope's validation rows. So
  validation rows never influence a choice.
- `share` (`SHARD`): some pieces of one large fit, before the part `fit` that joins them. The trees of a forest are
  independent, and the random draws of each depend only on its number (`core.base.checkpoint`), so the result equals
  that of one fit bit for bit.
- `baseline` (`BASELINE`): a simple model on the same rows, for comparison, after all other parts: only then is it known
  how much time is left for it.

`Plan.next` is pure: the next parts depend only on the job's specification and on the finished parts, so that it can be
repeated after a crash, in another process.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from app.platform.documents import Member
from app.training import search
from app.training.baselines import (
    MAX_SECONDS,
    MIN_TRY_SECONDS,
    parameters_of,
    reserved_for,
    sample_rows,
    seconds_for,
)
from app.training.progress import leave_out
from app.training.records import (
    BASELINE,
    FIT,
    SHARD,
    TRIAL,
    BaselinePart,
    Finished,
    FinishedBaseline,
    FinishedServed,
    FinishedShard,
    FinishedTrial,
    FitPart,
    InnerSplitsRecord,
    Outcome,
    PackedParts,
    PlanPart,
    ShardFile,
    ShardPart,
    TrainSpec,
    TrialPart,
    TrialRecord,
    is_baseline,
    is_fit,
    is_shard,
    is_trial,
)
from app.training.splits import Fold, InnerSplits, folds_of
from core import selection
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.selection import Chosen, HeldOut, Planner, Trial, TrialResult

SHARD_FILE = "share.bin"
MAX_SHARDS = 16
MIN_PIECES = 8
"""Pieces of a shard: it prepares the table once more, which takes about as long as one piece."""

SHARDS_FRACTION = 0.9
"""Fraction of the remaining work that the shards of a fit count as; the rest is to join and evaluate them."""

Scope = Fold | None
"""A fold, or None for what is served."""

SERVED: Scope = None
SCORES_FILE = "scores.npy"
MIN_FIT_FRACTION, MIN_FIT_SECONDS = 0.1, 1.0
"""Time that the last fit of a scope has in any case: a fraction of its budget, and seconds."""

FINISHING_SECONDS = 0.5
"""Seconds from the last fit to the end of the job on any table: average rows, files, the transaction."""

FINISHING_MICROSECONDS = 2.0
"""Microseconds more for each row of the table: metrics, curve, calibration, comparison."""

MAX_FINISHING_FRACTION = 0.25
"""Fraction of a budget that is reserved for these steps, at most."""

MIN_CHILD_JOBS = 10
"""Child jobs of the smallest job that fans out."""


def scope_of(part: PlanPart) -> Scope:
    scope = part["scope"]
    return None if scope is None else (scope[0], scope[1])


def fit_of_served(finished: Sequence[Finished]) -> FinishedServed:
    fits = (each for each in finished if is_fit(each) and scope_of(each["spec"]) is SERVED)
    return cast(FinishedServed, next(fits))


def trials_for_served(finished: Sequence[Finished]) -> list[FinishedTrial]:
    return [each for each in finished if is_trial(each) and scope_of(each["spec"]) is SERVED]


class PlanRows(Protocol):
    """The information about rows that planners may request; only `auto` does."""

    def can_split(self, scope: Scope, inner: InnerSplits) -> bool:
        """Return True if the scope's training rows are distinct enough."""

    def held_out(self, scope: Scope, inner: InnerSplits, split: int) -> HeldOut:
        """Return the held-out rows of an inner split of a scope."""

    def counts(self, scope: Scope) -> tuple[int, int, int, int]:
        """Return a scope's numbers: training rows, rows of the rarer class, features, most categories of a feature."""

    def n_rows(self) -> int:
        """Return the number of rows of the job, including those that are only for validation."""


class Plan:
    """Determines the parts that a job runs next, given the finished ones.

    `ends(scope)` is True if the search must choose now, because the job's owner requested an early end.
    """

    def __init__(
        self,
        spec: TrainSpec,
        rows: PlanRows,
        ends: Callable[[Scope], bool] = lambda scope: False,
    ) -> None:
        self._spec = spec
        self._rows = rows
        self._ends = ends
        self.folds = folds_of(spec["validation"])
        self._scopes: list[Scope] = [SERVED, *self.folds]
        self._planners: dict[Scope, Planner | None] = {}
        self._chosen: dict[Scope, Chosen] = {}
        self._tried: dict[tuple[int, int], TrialResult] = {}

    def next(self, finished: Sequence[Finished], least_pieces: float = math.inf) -> list[PlanPart]:
        """Return the parts of the next stage; none when all is done.

        `finished` has all parts so far, in order. A fit that is alone in its stage is divided into shards of at least
        `least_pieces` pieces.
        """
        parts: list[PlanPart] = []
        done = _by_scope(finished)
        for scope in self._scopes:
            parts += self._next_of(scope, done[scope], math.inf if self.folds else least_pieces)
        return parts or self._next_baselines(finished)

    def chosen(self, scope: Scope, finished: Sequence[Finished]) -> selection.Chosen:
        """Return the choice of a search, which must be complete."""
        step = self._choose(scope, _by_scope(finished)[scope])
        assert isinstance(step, selection.Chosen)  # the scope's rankers were fitted after it
        return step

    def _next_of(
        self, scope: Scope, done: Sequence[Finished], least_pieces: float
    ) -> Sequence[PlanPart]:
        """Return the trials, or the fit of the choice."""
        if any(is_fit(each) for each in done):
            return []
        step = self._choose(scope, done)
        if isinstance(step, selection.Chosen):
            return self._parts_of_chosen(step, scope, done, least_pieces)
        inner = cast(InnerSplitsRecord, asdict(self._inner(scope)))
        asked = [cast(TrialRecord, asdict(trial)) for trial in step]
        return [
            TrialPart(what=TRIAL, scope=_stored(scope), tryout=each, inner=inner) for each in asked
        ]

    def _parts_of_chosen(
        self, chosen: Chosen, scope: Scope, done: Sequence[Finished], least_pieces: float
    ) -> Sequence[PlanPart]:
        """Return the fit of the chosen members, or the shards into which it is divided."""
        members = [cast(Member, asdict(member)) for member in chosen.members]
        fit = FitPart(what=FIT, scope=_stored(scope), members=members)
        if chosen.rows < 1.0:
            fit["rows"] = chosen.rows
        elif shards := [_file_of(each) for each in done if is_shard(each)]:
            fit["shares"] = shards
            return [fit]
        elif ranges := divide_fit(members, least_pieces):
            return [
                ShardPart(what=SHARD, scope=_stored(scope), members=members, first=first, last=last)
                for first, last in ranges
            ]
        budget = search.budget_of(self._spec, len(self._scopes))
        if budget is not None:
            left = budget - seconds_of(done) - self.finishing(budget, chosen)
            fit["limit"] = max(left, MIN_FIT_FRACTION * budget, MIN_FIT_SECONDS)
        return [fit]

    def _choose(self, scope: Scope, done: Sequence[Finished]) -> Sequence[Trial] | selection.Chosen:
        """Return the next trials of a scope, or the choice."""
        if scope in self._chosen:
            return self._chosen[scope]
        planner = self._planner(scope)
        if (plan := self._spec.get("plan")) is not None:
            return search.planned(plan, scope)
        if planner is None:
            algorithm = self._spec["algorithm"]
            return selection.Chosen(
                (selection.Member(algorithm["name"], algorithm["parameters"]),), ()
            )
        inner = self._inner(scope)
        held_out = _HeldOutSplits(
            inner.n_splits,
            lambda split: self._rows.held_out(scope, inner, split),
        )
        recalled = [self._recall(each) for each in done if is_trial(each)]
        if search.budget_of(self._spec, 1) is not None:
            recalled = _whole(recalled)
        elapsed = seconds_of(done)
        if (budget := search.budget_of(self._spec, len(self._scopes))) is not None:
            elapsed += self.finishing(budget)
        step = planner.next(
            recalled, held_out, selection.CHOOSE_NOW if self._ends(scope) else elapsed
        )
        if isinstance(step, selection.Chosen):
            self._chosen[scope] = step
        return step

    def finishing(self, budget: float, chosen: Chosen | None = None) -> float:
        """Return the seconds of a scope's budget that are reserved for work after its last fit."""
        one = FINISHING_MICROSECONDS
        if chosen is not None and chosen.score_microseconds is not None:
            passes = 1 if len(chosen.members) == 1 else 2  # an average also ranks the training rows
            one += passes * chosen.score_microseconds
        seconds = FINISHING_SECONDS + 1e-6 * one * self._rows.n_rows()
        seconds += reserved_for(self._spec) / len(self._scopes)
        return min(seconds, MAX_FINISHING_FRACTION * budget)

    def _planner(self, scope: Scope) -> Planner | None:
        if scope not in self._planners:
            self._planners[scope] = search.planner_of(
                self._spec,
                len(self._scopes),
                lambda: self._rows.counts(scope),
                lambda splits, fraction: self._rows.can_split(scope, InnerSplits(splits, fraction)),
            )
        return self._planners[scope]

    def _inner(self, scope: Scope) -> InnerSplits:
        planner = self._planner(scope)
        assert planner is not None
        is_auto = search.budget_of(self._spec, 1) is not None
        fraction = planner.fraction if is_auto else search.fraction_of(self._spec)
        return InnerSplits(planner.n_splits, fraction)

    def _recall(self, each: FinishedTrial) -> TrialResult:
        """Return a trial as its planner expects it; its scores are read from their file once."""
        number = each["stage"], each["part"]
        if number not in self._tried:
            self._tried[number] = _tried(each)
        return self._tried[number]

    def _next_baselines(self, finished: Sequence[Finished]) -> list[PlanPart]:
        """Return the next fits of baselines: one baseline after the other, as far as the budget of `auto` goes."""
        if not (names := self._spec["baselines"]["algorithms"]):
            return []
        own = [each for each in finished if is_baseline(each)]
        spent = sum(each["result"]["elapsed"] for each in finished if not is_baseline(each))
        seconds = seconds_for(
            self._spec, spent, 1e-6 * FINISHING_MICROSECONDS * self._rows.n_rows()
        )
        left = seconds - sum(each["result"]["elapsed"] for each in own)
        for index, name in enumerate(names):
            tried = [each for each in own if each["spec"]["algorithm"] == name]
            if parts := self._fits_of_baseline(name, tried, left / (len(names) - index)):
                return [*parts]
        return []

    def _fits_of_baseline(
        self, name: str, tried: Sequence[FinishedBaseline], left: float
    ) -> list[BaselinePart]:
        """Return a baseline's fits that are not done yet; none after one has failed, or without time."""
        scopes = self._scopes[1:] or [SERVED]
        if left < MIN_TRY_SECONDS or any(each["result"]["failed"] for each in tried):
            return []
        done = {scope_of(each["spec"]) for each in tried}
        of, _, columns, _ = self._rows.counts(scopes[0])
        rows = sample_rows(self._spec, of, columns, len(scopes))
        missing = [scope for scope in scopes if scope not in done]
        seconds = left / max(len(missing), 1)
        if math.isinf(seconds) and rows is not None:
            seconds = MAX_SECONDS
        return [
            {
                "what": BASELINE,
                "scope": _stored(scope),
                "algorithm": name,
                "parameters": parameters_of(name, self._spec),
                "rows": rows,
                "seconds": None if math.isinf(seconds) else seconds,
            }
            for scope in missing
        ]


def divide_fit(members: Sequence[Member], least_pieces: float) -> list[tuple[int, int]]:
    """Return the pieces (first, one after the last) of each shard; none if dividing the fit is not worthwhile.

    A rank average of several rankers is not divided. A shard has at least `least_pieces` pieces, so that it is worth a
    separate job.
    """
    from core.base.checkpoint import SharedRanker

    (member, *others) = members
    algorithm = ALGORITHMS.get(member["algorithm"])
    if others or algorithm is None or math.isinf(least_pieces):
        return []
    ranker = algorithm(**member["parameters"])
    if not isinstance(ranker, SharedRanker):
        return []
    n = ranker.n_pieces
    n_shards = min(MAX_SHARDS, int(n // max(least_pieces, MIN_PIECES)))
    if n_shards < 2:
        return []
    return [(k * n // n_shards, (k + 1) * n // n_shards) for k in range(n_shards)]


def seconds_of(done: Sequence[Finished]) -> float:
    """Return the seconds that the trials of a scope have taken."""
    return float(sum(each["result"]["elapsed"] for each in done if is_trial(each)))


def fraction_of(parts: Sequence[PlanPart]) -> float:
    """Return the fraction of the remaining work that a stage counts as.

    A stage of trials is half of it, for what comes after is not known yet; but little of it where trials are limited in
    time, for then they come a few at a time. A stage of fits is the last.
    """
    if any(part["what"] == SHARD for part in parts):
        return SHARDS_FRACTION
    trials = [part["tryout"] for part in parts if part["what"] == TRIAL]
    if not trials:
        return 1.0
    return 0.5 if trials[0]["limit"] is None else 0.05


class _HeldOutSplits(Sequence["HeldOut"]):
    """The held-out rows of each split, read at the first access."""

    def __init__(self, n_splits: int, read: Callable[[int], HeldOut]) -> None:
        self._n_splits = n_splits
        self._read = read

    def __len__(self) -> int:
        return self._n_splits

    def __getitem__(self, split: Any) -> Any:
        if isinstance(split, slice):
            return [self._read(k) for k in range(*split.indices(self._n_splits))]
        if not -self._n_splits <= split < self._n_splits:
            raise IndexError(split)
        return self._read(split % self._n_splits)


def _stored(scope: Scope) -> list[int] | None:
    return None if scope is None else list(scope)


def _file_of(finished: FinishedShard) -> ShardFile:
    """Return what the part that joins shards needs to know of one."""
    result = finished["result"]
    return {
        "file": result["files"][SHARD_FILE],
        "seconds": result["seconds"],
        "notes": result["notes"],
    }


def _by_scope(finished: Sequence[Finished]) -> dict[Scope, list[Finished]]:
    done: dict[Scope, list[Finished]] = defaultdict(list)
    for each in finished:
        done[scope_of(each["spec"])].append(each)
    return done


def _whole(tried: Sequence[TrialResult]) -> list[TrialResult]:
    """Return the trials of candidates with results for all splits; `auto` regards the others as untried."""
    left_out = {one.trial.key for one in tried if one.skipped}
    return [one for one in tried if one.trial.key not in left_out]


def trial_of(part: TrialPart) -> selection.Trial:
    record = part["tryout"]
    key = None if record["key"] is None else selection.TrialKey(**record["key"])
    values: dict[str, Any] = {**record, "path": tuple(record["path"]), "key": key}
    return selection.Trial(**values)


def _tried(finished: FinishedTrial) -> selection.TrialResult:
    result = finished["result"]
    scores = ()
    if SCORES_FILE in result["files"]:
        scores = tuple(np.load(result["files"][SCORES_FILE]))
    return selection.TrialResult(
        trial_of(finished["spec"]),
        tuple(result["values"]),
        tuple(result["aucs"]),
        result["seconds"],
        scores,
        result["failed"],
        result["setup"],
        result.get("steps", 0),
        result.get("fitted", 0),
        result.get("stopped", False),
        result.get("skipped", False),
    )


def fits_a_part(cells: int, fan_out_cells: int) -> int:
    """Return how many fits of `cells` cells one child job runs: it costs about a tenth of a second besides."""
    return max(1, fan_out_cells // MIN_CHILD_JOBS // max(cells, 1))


def pack(fits: Sequence[PlanPart], size: int) -> list[PackedParts]:
    """Return child jobs of `size` fits each, in the order of the plan."""
    return [{"fits": list(fits[start : start + size])} for start in range(0, len(fits), size)]


def name_file(number: int, name: str) -> str:
    """Name a file of fit `number` among the files of a child job."""
    return f"{number}/{name}"


def unpack(children: Sequence[Mapping[str, Any]]) -> list[Finished]:
    """Return the fits of finished child jobs (`child_jobs.finished`), numbered within their stage."""
    finished: list[Finished] = []
    for child in children:
        for spec, result in _results_of(child):
            first = not finished or finished[-1]["stage"] != child["stage"]
            number = 0 if first else finished[-1]["part"] + 1
            finished.append(as_finished(child["stage"], number, spec, result))
    return finished


def as_finished(stage: int, number: int, spec: PlanPart, result: Outcome) -> Finished:
    """The outcome must be of the part's kind."""
    return cast(Finished, {"stage": stage, "part": number, "spec": spec, "result": result})


def _results_of(child: Mapping[str, Any]) -> Iterator[tuple[PlanPart, Outcome]]:
    """Yield the fits with their results; of a skipped child job, that it was left out."""
    if child["result"] is None:
        yield from ((spec, leave_out(spec)) for spec in child["spec"]["fits"])
        return
    files = child["result"]["files"]
    fits = zip(child["spec"]["fits"], child["result"]["results"], strict=True)
    for number, (spec, result) in enumerate(fits):
        start = name_file(number, "")
        own = {
            name.removeprefix(start): path for name, path in files.items() if name.startswith(start)
        }
        yield spec, result | {"files": own}
