"""The plan of a training job: which fits it takes, stage by stage, as parts that run one by one or at once.

A *scope* is a set of rows to learn from, with or without rows to judge by. The scope `None` is that of the ranker that
is served: the training part of a holdout, or under cross-validation all rows, with none to judge by. Under
cross-validation each fold (repeat, fold) is a scope of its own.

A *part* is one fit in one scope. Its `what` says which:

- `tryout` (`TRIAL`): a planner of `core.selection` tries a candidate on an inner split of the scope's training rows.
- `fit` (`FIT`): what the planner has chosen, fitted on all training rows; it scores the scope's rows to judge by. So
  rows by which anything is judged have chosen nothing, whatever the job searches.
- `share` (`SHARD`): some pieces of one large fit, before the part `fit` that joins them. A forest grows its trees one
  by one, and what each draws depends on its number alone (`core.base.checkpoint`): joined they are bit for bit one
  fit's.
- `control` (`BASELINE`): a plain algorithm on the same rows, for comparison, after all else: by then it is known what
  time there is for it.

`Plan.next` is pure: what comes next depends on the job's spec and on what has been found, so that whoever runs the
parts may ask again after a crash, in another process.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from app.platform.sql import Json
from app.training import search
from app.training.baselines import (
    FIRST_ROWS,
    LATE,
    MIN_SECONDS,
    BaselineTry,
    next_rows,
    parameters_of,
    seconds_for,
)
from app.training.progress import BASELINE, FIT, SHARD, TRIAL, key_of, leave_out
from app.training.splits import Fold, InnerSplits, folds_of
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.selection import Chosen, HeldOut, Planner, Trial, TrialResult

SHARD_FILE = "share.bin"
MAX_SHARDS = 16
MIN_PIECES = 8
"""Each shard prepares the table once more, which takes about as long as one of its pieces."""

STAGE_SHARE = 0.9
"""How much of the work that is left the shards of a fit are taken for; the rest is to join and judge them."""

Scope = Fold | None
"""None for what is served."""

SERVED: Scope = None
SCORES_FILE = "scores.npy"
MIN_LEFT, MIN_FIT_SECONDS = 0.1, 1.0
"""Of a budget, and in seconds, what the fit that is served has in any case."""

MIN_CHILD_JOBS = 10
"""Child jobs that the smallest job makes which fans out."""


def scope_of(part: Mapping[str, Any]) -> Scope:
    """The scope that a part's specification names."""
    scope = part["scope"]
    return None if scope is None else (scope[0], scope[1])


def is_served(part: Mapping[str, Any]) -> bool:
    """Whether a part makes the ranker that is served."""
    return part["what"] == FIT and scope_of(part) is SERVED


def is_trial_for_served(part: Mapping[str, Any]) -> bool:
    """Whether a part was tried to choose the ranker that is served."""
    return part["what"] == TRIAL and scope_of(part) is SERVED


class Rows(Protocol):
    """What planners may ask of the rows; only `auto` does."""

    def can_split(self, scope: Scope, inner: InnerSplits) -> bool:
        """Whether the rows that a scope has to learn from differ, and can be split so."""

    def held_out(self, scope: Scope, inner: InnerSplits, split: int) -> HeldOut:
        """The held-out rows of an inner split of a scope."""

    def counts(self, scope: Scope) -> tuple[int, int, int, int]:
        """The rows that a scope has to learn from, those of its rarer class, the features, and the categorical ones."""


class Plan:
    """Says what a job is to run next, given what has been run.

    `ends` says of a scope whether its search is to choose now, by its owner's request, among what was tried.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        rows: Rows,
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

    def next(
        self, finished: Sequence[Mapping[str, Any]], least_pieces: float = math.inf
    ) -> list[Json]:
        """The specifications of the next stage's parts; none when all is done.

        `finished` holds `stage`, `part`, `spec` and `result` of every part so far, in order. A fit that is alone is
        divided into shards of at least so many pieces.
        """
        parts: list[Json] = []
        done = _by_scope(finished)
        for scope in self._scopes:
            parts += self._next_of(scope, done[scope], math.inf if self.folds else least_pieces)
        return parts or self._next_baselines(finished)

    def chosen(self, scope: Scope, finished: Sequence[Mapping[str, Any]]) -> Chosen:
        """What a scope's search ended in, once it has."""
        from core.selection import Chosen

        step = self._choose(scope, _by_scope(finished)[scope])
        assert isinstance(step, Chosen)  # the scope's rankers were fitted after it
        return step

    def _next_of(
        self, scope: Scope, done: Sequence[Mapping[str, Any]], least_pieces: float
    ) -> list[Json]:
        from core.selection import Chosen

        if any(each["spec"]["what"] == FIT for each in done):
            return []
        step = self._choose(scope, done)
        if isinstance(step, Chosen):
            members = [asdict(member) for member in step.members]
            if step.rows < 1.0:
                limit = self._limit(done)
                return [_part(FIT, scope, members=members, rows=step.rows, **limit)]
            if shares := [_shard_of_fit(each) for each in done if each["spec"]["what"] == SHARD]:
                return [_part(FIT, scope, members=members, shares=shares)]
            ranges = divide_fit(members, least_pieces)
            return [
                _part(SHARD, scope, members=members, first=first, last=last)
                for first, last in ranges
            ] or [_part(FIT, scope, members=members, **self._limit(done))]
        inner = asdict(self._inner(scope))
        asked = [asdict(trial) for trial in step]
        n_asked = Counter(key_of(trial, scope) for trial in asked)
        return [
            _part(TRIAL, scope, tryout=each, inner=inner, asked=n_asked[key_of(each, scope)])
            for each in asked
        ]

    def _limit(self, done: Sequence[Mapping[str, Any]]) -> Json:
        """The seconds that are left of a budget for the fit of a scope."""
        budget = search.budget_of(self._spec, len(self._scopes))
        if budget is None:
            return {}
        return {"limit": max(budget - seconds_of(done), MIN_LEFT * budget, MIN_FIT_SECONDS)}

    def _choose(self, scope: Scope, done: Sequence[Mapping[str, Any]]) -> Sequence[Trial] | Chosen:
        from core.selection import CHOOSE_NOW, Chosen, Member

        if scope in self._chosen:
            return self._chosen[scope]
        planner = self._planner(scope)
        if planner is None:
            algorithm = self._spec["algorithm"]
            return Chosen((Member(algorithm["name"], algorithm["parameters"]),), ())
        tried = [each for each in done if each["spec"]["what"] == TRIAL]
        inner = self._inner(scope)
        held = _HeldOuts(
            inner.n_splits * inner.n_repeats,
            lambda split: self._rows.held_out(scope, inner, split),
        )
        recalled = [self._recall(each) for each in tried]
        if search.budget_of(self._spec, 1) is not None:
            recalled = _whole(recalled)
        elapsed = CHOOSE_NOW if self._ends(scope) else seconds_of(done)
        step = planner.next(recalled, held, elapsed)
        if isinstance(step, Chosen):
            self._chosen[scope] = step
        return step

    def _planner(self, scope: Scope) -> Planner | None:
        if scope not in self._planners:
            self._planners[scope] = search.planner_of(
                self._spec,
                len(self._scopes),
                lambda: self._rows.counts(scope),
                lambda splits, repeats, fraction: self._rows.can_split(
                    scope, InnerSplits(splits, fraction, repeats)
                ),
            )
        return self._planners[scope]

    def _inner(self, scope: Scope) -> InnerSplits:
        planner = self._planner(scope)
        assert planner is not None
        is_auto = search.budget_of(self._spec, 1) is not None
        fraction = planner.fraction if is_auto else search.fraction_of(self._spec)
        return InnerSplits(planner.n_splits, fraction, planner.n_repeats)

    def _recall(self, each: Mapping[str, Any]) -> TrialResult:
        """A trial as its planner knows it; its scores are read from their file once."""
        number = each["stage"], each["part"]
        if number not in self._tried:
            self._tried[number] = _tried(each)
        return self._tried[number]

    def _next_baselines(self, finished: Sequence[Mapping[str, Any]]) -> list[Json]:
        """The next fits of baselines: one after the other, each on more rows, as far as their time goes."""
        names = self._spec.get("controls", {}).get("algorithms", ())
        if not names:
            return []
        own = [each for each in finished if each["spec"]["what"] == BASELINE]
        spent = sum(
            each["result"]["elapsed"] for each in finished if each["spec"]["what"] != BASELINE
        )
        seconds = seconds_for(self._spec, spent)
        if not own and seconds <= 0.0:
            return []
        left = seconds - sum(each["result"]["elapsed"] for each in own)
        for place, name in enumerate(names):
            tried = [each for each in own if each["spec"]["algorithm"] == name]
            if parts := self._fits_of_baseline(name, tried, left / (len(names) - place)):
                return parts
        return []

    def _fits_of_baseline(
        self, name: str, tried: Sequence[Mapping[str, Any]], left: float
    ) -> list[Json]:
        """Tries in the first of the scopes that are judged, until the rows are chosen; then the other scopes."""
        first, *others = self._scopes[1:] or [SERVED]
        if any(each["result"]["failed"] and not each["result"].get("late") for each in tried):
            return []
        of = self._rows.counts(first)[0]
        here = [each for each in tried if scope_of(each["spec"]) == first]
        done = {scope_of(each["spec"]) for each in tried}
        rows = None
        if not done.intersection(others):
            tries = [_try_of(each, of) for each in here]
            rows = next_rows(tries, of, 1 + len(others), left)
            if rows is not None and (rows < of or rows > FIRST_ROWS):
                return [self._baseline_part(name, first, rows if rows < of else None, left)]
            if rows is not None:  # so few that all scopes are fitted at once
                return [self._baseline_part(name, it, None, left) for it in (first, *others)]
        sound = [each for each in here if not each["result"].get("late")]
        if not sound:
            return []
        chosen = sound[-1]["spec"].get("rows")
        return [self._baseline_part(name, it, chosen, left) for it in others if it not in done]

    def _baseline_part(self, name: str, scope: Scope, rows: int | None, left: float) -> Json:
        """A baseline's fit on so many rows, or on all; given up where it takes much longer than there is time for."""
        seconds = None if math.isinf(left) else LATE * max(left, MIN_SECONDS)
        parameters = parameters_of(name, self._spec)
        return _part(
            BASELINE, scope, algorithm=name, parameters=parameters, rows=rows, seconds=seconds
        )


def divide_fit(members: Sequence[Mapping[str, Any]], least_pieces: float) -> list[tuple[int, int]]:
    """The first piece of each shard, and the one after its last; none where the fit is not worth dividing.

    `members` are what is to be fitted: several make a rank average, which is not divided. A shard has at least
    `least_pieces`, such that it is worth a job of its own.
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


def _try_of(finished: Mapping[str, Any], of: int) -> BaselineTry:
    result = finished["result"]
    rows = finished["spec"].get("rows")
    return BaselineTry(
        of if rows is None else rows, of, result["seconds"], bool(result.get("late"))
    )


def seconds_of(done: Sequence[Mapping[str, Any]]) -> float:
    """What the search of a scope has taken: all its parts but the fit that came of it, its shards, and baselines."""
    searching = [each for each in done if each["spec"]["what"] not in {SHARD, FIT, BASELINE}]
    return float(sum(each["result"]["elapsed"] for each in searching))


def share_of(parts: Sequence[Mapping[str, Any]]) -> float:
    """How much of the work that is left a stage is taken for.

    Half of it for one of trials, for what comes after it is not known yet; but little of it where they are limited,
    for then they come a few at a time. One of fits is the last.
    """
    if any(part["what"] == SHARD for part in parts):
        return STAGE_SHARE
    trials = [part["tryout"] for part in parts if part["what"] == TRIAL]
    if not trials:
        return 1.0
    return 0.5 if trials[0]["limit"] is None else 0.05


class _HeldOuts(Sequence["HeldOut"]):
    """The held-out rows of each split, read when they are asked for."""

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


def _part(what: str, scope: Scope, **more: Any) -> Json:
    return {"what": what, "scope": None if scope is None else list(scope), **more}


def _shard_of_fit(finished: Mapping[str, Any]) -> Json:
    """What the part that joins needs to know of a shard."""
    result = finished["result"]
    return {
        "file": result["files"][SHARD_FILE],
        "seconds": result["seconds"],
        "notes": result["notes"],
    }


def _by_scope(
    finished: Sequence[Mapping[str, Any]],
) -> dict[Scope, list[Mapping[str, Any]]]:
    done: dict[Scope, list[Mapping[str, Any]]] = defaultdict(list)
    for each in finished:
        done[scope_of(each["spec"])].append(each)
    return done


def _whole(tried: Sequence[TrialResult]) -> list[TrialResult]:
    """Without the candidates of which some splits were left out: `auto` takes them for untried."""
    left_out = {one.trial.label for one in tried if one.skipped}
    return [one for one in tried if one.trial.label not in left_out]


def trial_of(part: Mapping[str, Any]) -> Trial:
    """The trial that a part's specification describes."""
    from core.selection import Trial

    given = part["tryout"]
    return Trial(**{**given, "path": tuple(given["path"])})


def _tried(finished: Mapping[str, Any]) -> TrialResult:
    from core.selection import TrialResult

    result = finished["result"]
    scores = ()
    if SCORES_FILE in result["files"]:
        scores = tuple(np.load(result["files"][SCORES_FILE]))
    return TrialResult(
        trial_of(finished["spec"]),
        tuple(result["values"]),
        tuple(result["aucs"]),
        result["seconds"],
        scores,
        result["failed"],
        result["setup"],
        result.get("steps", 0),
        result.get("fitted", 0),
        result.get("skipped", False),
    )


def fits_a_part(cells: int, fan_out_cells: int) -> int:
    """How many fits on a table of so many cells go into one child job.

    A child job costs about a tenth of a second beside its fits: it is claimed, reads the table, and publishes what it
    found.
    """
    return max(1, fan_out_cells // MIN_CHILD_JOBS // max(cells, 1))


def pack(fits: Sequence[Json], size: int) -> list[Json]:
    """The specifications of child jobs of so many fits each, in the order of the plan."""
    return [{"fits": list(fits[start : start + size])} for start in range(0, len(fits), size)]


def name_file(number: int, name: str) -> str:
    """The name among a child job's files of one that its fit of this number has made."""
    return f"{number}/{name}"


def unpack(finished: Sequence[Mapping[str, Any]]) -> list[Json]:
    """What the fits of finished child jobs brought back, numbered within their stage."""
    found: list[Json] = []
    for part in finished:
        for spec, result in _results_of(part):
            first = not found or found[-1]["stage"] != part["stage"]
            number = 0 if first else found[-1]["part"] + 1
            found.append({"stage": part["stage"], "part": number, "spec": spec, "result": result})
    return found


def _results_of(part: Mapping[str, Any]) -> Iterator[tuple[Json, Json]]:
    """The fits of a child job and what each found; of one that was left out, that each was."""
    if part["result"] is None:
        yield from ((spec, leave_out(spec)) for spec in part["spec"]["fits"])
        return
    files = part["result"]["files"]
    fits = zip(part["spec"]["fits"], part["result"]["results"], strict=True)
    for number, (spec, result) in enumerate(fits):
        start = name_file(number, "")
        own = {
            name.removeprefix(start): path for name, path in files.items() if name.startswith(start)
        }
        yield spec, result | {"files": own}
