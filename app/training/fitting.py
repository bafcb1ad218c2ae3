"""Execution of the parts of a training job. Each is one fit, and needs only the job's payload and its specification.

A part returns small JSON, and leaves large results as files in its folder. The same functions run one after the other
in the job's own process, or each in a child job; the results are bit for bit the same.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from typing_extensions import TypedDict

from app.datasets.matrices import StoredTable, Table
from app.jobs.progress import Callback
from app.models.objectives import without_count
from app.models.rows import SAMPLED
from app.models.service import VALIDATION
from app.models.simple import BASELINES
from app.platform import documents
from app.platform.documents import HeldOutBins, MonotoneProof, RandomSplits
from app.platform.errors import Invalid
from app.platform.tables import DatasetKind
from app.training import interpretation, search
from app.training.baselines import baseline_ranker, reserved_for
from app.training.bipartite import BipartiteSplitData, BipartiteTable, in_files, scores_file
from app.training.lists import GradedSplitData
from app.training.multilabel import MultilabelSplitData
from app.training.plan import (
    FINISHING_MICROSECONDS,
    SCORES_FILE,
    SERVED,
    SHARD_FILE,
    Scope,
    scope_of,
    trial_of,
)
from app.training.preferences import PreferenceSplitData
from app.training.progress import (
    COMPARING,
    MEASURING,
    PREPARING,
    READING,
    FitProgress,
    Reporter,
)
from app.training.records import (
    BASELINE,
    FIT,
    SHARD,
    TRIAL,
    BaselineOutcome,
    BaselinePart,
    FitOutcome,
    FitPart,
    ImportanceRecord,
    Outcome,
    PlanPart,
    ReferenceRecord,
    ServedOutcome,
    ShardFile,
    ShardPart,
    TrainPayload,
    TrialOutcome,
    TrialPart,
)
from app.training.result import QUANTILES_FILE, quantiles_of
from app.training.splits import Fold, InnerSplits, RowSplit, SplitData, folds_of
from app.training.time_effect import compare_with_random_splits
from core import artifact, metrics
from core.base.checkpoint import SharedRanker
from core.base.monotone import check_monotone
from core.base.ranker import Floats, Ranker
from core.ensemble import count_at_once
from core.errors import CoreError
from core.kernels import WorkClock
from core.registry import ALGORITHMS
from core.selection import (
    Chosen,
    HeldOut,
    Member,
    Metrics,
    fit_chosen,
    make_ranker,
    path_parameter,
    run_trial,
)

ARTIFACT_FILE = "ranker.safetensors"
MAX_CATEGORIES_SHOWN = 100
"""Categories of a feature that SQL keeps: the artifact has them all."""

MIN_MEASURED_ROWS = 10_000
"""Training rows that a model's training metrics are of, at least, however little time is left of a budget."""

BYTES_PER_MEASURED_ROW = 300
"""Of a part whose rows are in a file, and counted by groups: twice what the metrics of a row take."""

TIME_TEST_FRACTION = 0.02
"""Of the budget of `auto`, what the comparison with random splits may take."""

MAX_BASELINE_ROWS = 57_344
"""Rows of a table in a file that baselines learn from, in memory, at most."""

MIN_BASELINE_ROWS = 50
"""Rows that a baseline needs: from fewer it would learn nothing worth a comparison."""

MIN_COMPILING_SECONDS = 1.0
"""Seconds of compiling from which on a job with a budget notes it."""

MIN_IMPORTANCE_SECONDS = 0.5
"""Seconds that the importance may take in any case: a job of its own would take as long."""

WARM_UP_ROWS = 100
"""Rows of a fit that only loads kernels."""

_SALT = 2**32
"""Added to the seed of inner splits, so that they differ from the job's own split; no job's seed is as great."""

_MAX_CACHED_CELLS = 20_000_000
"""Rows × features of the inner splits that are cached."""

Result = TypeVar("Result")


_READERS: Mapping[str, Callable[[TrainPayload, list[str]], SplitData]] = {
    DatasetKind.PREFERENCES: PreferenceSplitData,
    DatasetKind.MULTILABEL: MultilabelSplitData,
    DatasetKind.GRADED: GradedSplitData,
}
"""Reads the tables of a payload, by the kind of dataset; rows with one label are a `BipartiteTable`."""


class _TooSlow(Exception):
    """Raised to end a baseline that takes too long."""


class FitContext:
    """What the fits of a payload share: its tables, read once, and the job's specification."""

    def __init__(self, payload: TrainPayload, reporter: Reporter) -> None:
        self._payload = payload
        self._reporter = reporter
        self.clock = WorkClock()
        self.spec = payload["spec"]
        started, budget = payload.get("started", time.monotonic()), search.budget_of(self.spec, 1)
        self._budget = math.inf if budget is None else budget
        self._ends = math.inf if folds_of(self.spec["validation"]) else started + self._budget
        self._data: BipartiteTable | SplitData | None = None
        self._of_baselines: tuple[Scope, BipartiteSplitData] | None = None
        self._inner: dict[tuple[Scope, InnerSplits, int], SplitData] = {}
        self._lock = threading.RLock()

    @property
    def names(self) -> list[str]:
        return [feature["name"] for feature in self._payload["table"]["features"]]

    @property
    def data(self) -> BipartiteTable | SplitData:
        """The tables, read at the first access."""
        with self._lock:
            if self._data is None:
                self._reporter.enter(READING)
                kind = self._payload["dataset_kind"]
                if kind == DatasetKind.BIPARTITE:
                    self._data = BipartiteTable(self._payload, self.names, self._reporter.tell)
                else:
                    self._data = _READERS[kind](self._payload, self.names)
            return self._data

    def split_data(self, scope: Scope) -> SplitData:
        data = self.data
        if isinstance(data, BipartiteTable):
            return data.split_data(scope)
        assert scope is SERVED
        return data

    @property
    def at_once(self) -> int:
        if self._payload["dataset_kind"] != "bipartite":
            return 1
        n_rows, _, n_features, _ = self.counts(None)
        return count_at_once(n_rows, n_features)

    def held_out(self, scope: Scope, inner: InnerSplits, split: int) -> HeldOut:
        """Return the rows on which the candidates of a scope are evaluated."""
        return _bipartite(self._inner_split_data(scope, inner, split)).held_out_rows()

    def can_split(self, scope: Scope, inner: InnerSplits) -> bool:
        with self._lock:
            split_data = _bipartite(self.split_data(scope))
            return split_data.can_split(inner, self.spec["seed"] + _SALT)

    def counts(self, scope: Scope) -> tuple[int, int, int, int]:
        """Return a scope's numbers: training rows, rows of the rarer class, features, most categories of a feature."""
        train = _bipartite(self.split_data(scope)).train
        y = train.y
        positives = int(np.count_nonzero(y))
        most = max((len(texts or ()) for texts in train.categories), default=0)
        return len(y), min(positives, len(y) - positives), len(train.categories), most

    def n_rows(self) -> int:
        """Rows only for validation count, too."""
        served = _bipartite(self.split_data(SERVED))
        return len(served.train.y) + (0 if served.validation is None else len(served.validation.y))

    @property
    def uncounted(self) -> float:
        """The seconds of compilation that do not count towards the budget, as far as the job's timeout allows."""
        most = self._payload.get("seconds_left", math.inf) - self._budget
        return max(min(self.clock.compiling, most), 0.0)

    def notes(self) -> list[str]:
        """Return the warnings about the budget for the model's owner."""
        if math.isinf(self._budget) or self.clock.compiling < MIN_COMPILING_SECONDS:
            return []
        counted = self.clock.compiling - self.uncounted
        of_these = (
            f"{counted:.0f} s of this counted towards the budget, because the timeout of the job left no "
            "more time"
            if counted >= MIN_COMPILING_SECONDS
            else "this time does not count towards the budget"
        )
        return [
            f"compiling kernels for this machine took {self.clock.compiling:.0f} s: {of_these}. This happens once "
            "(`python -m workers.compile` compiles beforehand)"
        ]

    def run(self, part: PlanPart, folder: Path, progress: FitProgress) -> Outcome:
        """Run one part; the outcome has the paths of the files written to the folder, by name."""
        started = self.clock()
        result: Outcome
        if part["what"] == TRIAL:
            result = self._run_trial(part, folder, progress)
        elif part["what"] == BASELINE:
            baseline = result = self.fit_baseline(part, folder, progress)
            if baseline["failed"] is None and self._tests_time(part):
                fitted = self.clock()
                baseline["random_split"] = self._test_time(part, progress)
                if math.isinf(self._budget):  # not among the seconds that baselines may take
                    started += self.clock() - fitted
        elif part["what"] == SHARD:
            result = self._fit_shard(part, folder, progress)
        elif part["what"] == FIT:
            result = self._fit(part, folder, progress)
        else:
            raise ValueError(
                f"a part must be {TRIAL}, {SHARD}, {FIT} or {BASELINE}, got {part['what']!r}"
            )
        result["files"] = _files_in(folder)
        result["elapsed"] = self.clock() - started
        return result

    def _run_trial(self, part: TrialPart, folder: Path, progress: FitProgress) -> TrialOutcome:
        trial = trial_of(part)
        objective = without_count(self.spec["objective"], self.spec.get("evaluated_rows"))
        inner = self._inner_split_data(scope_of(part), InnerSplits(**part["inner"]), trial.split)
        learning = inner
        if trial.rows < 1.0:
            learning = inner.thinned(trial.rows, self.spec["seed"])
        progress.enter(PREPARING, rows=learning.n_learnt)

        def metric(scores: Floats) -> Metrics:
            area = inner.value(scores, {"metric": "auc"})
            is_auc = objective["metric"] == "auc"
            return Metrics(area if is_auc else inner.value(scores, objective), area)

        tried = run_trial(trial, learning.fit, inner.held_out, metric, progress.step, self.clock)
        if tried.scores:
            np.save(folder / SCORES_FILE, np.stack(tried.scores))
        return {
            "values": list(tried.values),
            "aucs": list(tried.aucs),
            "seconds": tried.seconds,
            "setup": tried.setup,
            "steps": tried.steps,
            "fitted": tried.fitted,
            "stopped": tried.stopped,
            "failed": tried.failed,
            "notes": list(inner.notes),
            "rows": learning.n_learnt,
            "along": path_parameter(ALGORITHMS[trial.algorithm]) if trial.path else None,
            "elapsed": 0.0,
            "files": {},
        }

    def _inner_split_data(self, scope: Scope, inner: InnerSplits, split: int) -> SplitData:
        """The latest inner splits are cached, because trials are ordered by split."""
        which = (scope, inner, split)
        with self._lock:
            if which in self._inner:
                return self._inner[which]
            cells = len(self.split_data(scope).training_values(0)) * len(self.names)
            max_cached = max(_MAX_CACHED_CELLS // max(cells, 1), self.at_once)
            while len(self._inner) >= max_cached:
                del self._inner[next(iter(self._inner))]
            try:
                split_data = self.split_data(scope).inner(inner, split, self.spec["seed"] + _SALT)
            except Invalid as error:
                raise Invalid(
                    f"the search splits the training rows again: {error.detail}",
                    code=error.code,
                ) from error
            self._inner[which] = split_data
            return split_data

    def fit_baseline(
        self, part: BaselinePart, folder: Path, progress: FitProgress
    ) -> BaselineOutcome:
        """`failed` is set if the baseline rejected the rows, or took too long."""
        split_data = _bipartite(self.split_data(scope_of(part)))
        of, seed = len(split_data.train.y), self.spec["seed"]
        max_rows, rows = self._max_baseline_rows(split_data), part.get("rows")
        if MIN_BASELINE_ROWS <= max_rows < of:
            split_data = self._rows_of_baselines(scope_of(part), split_data, max_rows / of)
        learning, n_known = split_data, len(split_data.train.y)
        has_room = max_rows >= min(of, MIN_BASELINE_ROWS)
        if rows is not None and rows < n_known and has_room:
            learning = split_data.thinned(rows / n_known, seed)
        n_rows = len(learning.train.y)
        progress.enter(COMPARING, rows=n_rows)
        seconds = part.get("seconds")
        until = time.perf_counter() + (math.inf if seconds is None else seconds)
        outcome: BaselineOutcome = {
            "rows": n_rows,
            "of": of,
            "failed": None,
            "seconds": 0.0,
            "elapsed": 0.0,
            "files": {},
        }

        if not has_room:
            outcome["rows"], outcome["failed"] = (
                0,
                (
                    f"the job's memory holds only {max_rows:,} of {of:,} rows, and a comparison needs "
                    f"{MIN_BASELINE_ROWS}"
                ),
            )
            return outcome

        def step(done: int, of: int, info: Mapping[str, float]) -> None:
            progress.step(done, of, info)
            if time.perf_counter() > until:
                raise _TooSlow

        try:
            if rows is not None:  # loading kernels must not count
                few = split_data.thinned(min(1.0, WARM_UP_ROWS / n_known), seed)
                fit_baseline(part, few, step)
            ranker, outcome["seconds"] = fit_baseline(part, learning, step)
        except _TooSlow:
            outcome["seconds"] = seconds or 0.0
            outcome["failed"] = f"it took more than {seconds:.3g} s on {n_rows:,} rows"
            return outcome
        except CoreError as error:
            outcome["failed"] = str(error)
            return outcome
        split_data.write_scores(ranker, "validation", folder / SCORES_FILE)
        return outcome

    def _tests_time(self, part: BaselinePart) -> bool:
        """Return True for the first fit of the first baseline, whose AUC is compared with those on random splits."""
        scopes: list[Scope] = [*folds_of(self.spec["validation"])] or [SERVED]
        return part["algorithm"] == BASELINES[0] and scope_of(part) == scopes[0]

    def _test_time(self, part: BaselinePart, progress: FitProgress) -> RandomSplits | None:
        """Compare a baseline's AUC on the newest rows with random splits; None without times, or if impossible."""
        data = self.data
        if not isinstance(data, BipartiteTable) or (timed := data.timed) is None:
            return None

        def auc_of(table: Table, row_split: RowSplit) -> metrics.Interval:
            split_data = data.divided(table, row_split)
            ranker, _ = fit_baseline(part, split_data, progress.step)
            return split_data.auc(ranker)

        limit = None if math.isinf(self._budget) else TIME_TEST_FRACTION * self._budget
        try:
            return compare_with_random_splits(timed, auc_of, self.spec["seed"], limit)
        except CoreError:
            return None

    def _rows_of_baselines(
        self, scope: Scope, split_data: BipartiteSplitData, fraction: float
    ) -> BipartiteSplitData:
        if self._of_baselines is None or self._of_baselines[0] != scope:
            self._of_baselines = scope, split_data.thinned(fraction, self.spec["seed"])
        return self._of_baselines[1]

    def _max_baseline_rows(self, split_data: BipartiteSplitData) -> int:
        train = split_data.train
        if not isinstance(train, StoredTable):
            return len(train.y)
        # Of each class the rows are rounded up, to two at least: together they may be three more.
        return max(min(MAX_BASELINE_ROWS, train.max_rows - 3), 0)

    def _fit_shard(self, part: ShardPart, folder: Path, progress: FitProgress) -> FitOutcome:
        """Fit some pieces of a ranker, which another part will join."""
        split_data = _bipartite(self.split_data(scope_of(part)))
        progress.enter(PREPARING, rows=split_data.n_learnt)
        ranker, first, last = _sharded(part["members"]), part["first"], part["last"]
        shard, seconds, notes = _timed(
            lambda: split_data.fit_share(ranker, first, last, progress.step)
        )
        (folder / SHARD_FILE).write_bytes(shard)
        return {"seconds": seconds, "notes": notes, "elapsed": 0.0, "files": {}}

    def _fit(self, part: FitPart, folder: Path, progress: FitProgress) -> FitOutcome:
        """Fit the chosen ranker, or join its shards, and score the validation rows."""
        scope = scope_of(part)
        split_data = self.split_data(scope)
        rows = part.get("rows", 1.0)
        learning = (
            split_data if rows == 1.0 else _bipartite(split_data).thinned(rows, self.spec["seed"])
        )
        progress.enter(PREPARING, rows=learning.n_learnt)
        outcome: FitOutcome = {"seconds": 0.0, "notes": [], "elapsed": 0.0, "files": {}}
        if shards := part.get("shares"):
            ranker, seconds, notes = _join(part["members"], shards, split_data)
        else:
            limit = part.get("limit", math.inf)
            ranker, chosen, seconds, notes = fit_members(
                part["members"], learning, progress.step, limit, self.clock
            )
            outcome["members"] = [cast(documents.Member, asdict(each)) for each in chosen.members]
            outcome["repeatable"] = chosen.repeatable
        progress.enter(MEASURING)
        outcome |= {"seconds": seconds, "notes": notes}
        if scope is SERVED:
            served = self._serve(ranker, split_data, outcome, folder)
            if folds := folds_of(self.spec["validation"]):
                self._write_quantiles(ranker, folds, folder)
            return served
        fold = _bipartite(split_data)
        np.save(folder / SCORES_FILE, fold.scores_of(ranker, "validation"))
        np.save(folder / QUANTILES_FILE, quantiles_of(fold.scores_of(ranker, "train")))
        return outcome

    def serve(self, ranker: Ranker, folder: Path) -> ServedOutcome:
        """Measure a ranker that was fitted elsewhere, as the served one."""
        outcome: FitOutcome = {"seconds": 0.0, "notes": [], "elapsed": 0.0, "files": {}}
        served = self._serve(ranker, self.split_data(SERVED), outcome, folder)
        served["files"] = _files_in(folder)
        return served

    def _serve(
        self, ranker: Ranker, split_data: SplitData, outcome: FitOutcome, folder: Path
    ) -> ServedOutcome:
        """Measure the served ranker, and write it with the data for its interpretation."""
        seed = self.spec["seed"]
        measured = self._thin_training_rows(ranker, split_data, outcome)
        parts = measured.evaluate(ranker, self.spec["objective"], folder)
        tables = [table for part in parts if (table := split_data.table(part)) is not None]
        with interpretation.read_together(tables, seed):
            drawn = {part: split_data.sample(part, seed) for part in parts}
            reference = _measure_reference(ranker, split_data, seed, folder)
            if reference is None:
                drawn |= _draw_references(split_data, seed)
        samples = {
            part: interpretation.as_scored(sample, ranker)
            for part, sample in drawn.items()
            if sample is not None
        }
        first = next(iter(parts))  # the training part, if the rows have one
        if (trained_on := self.spec.get("dataset")) is not None:
            ranker.data_sha256_ = trained_on["sha256"]
        data = artifact.save(ranker)
        (folder / ARTIFACT_FILE).write_bytes(data)
        names = self.names
        missing = split_data.missing()
        empty = [name for name, (_, is_empty) in zip(names, missing, strict=True) if is_empty]
        return {
            **outcome,
            "artifact": {
                "file": ARTIFACT_FILE,
                "sha256": hashlib.sha256(data).hexdigest(),
                "bytes": len(data),
            },
            "parts": dict(parts),
            "samples": {
                part: interpretation.write_sample(folder, part, sample)
                for part, sample in samples.items()
            },
            **self.measure_importance(ranker, first, samples[first], split_data),
            "reference": reference,
            "features": [
                {**feature, "missing": any_missing, **_categories_of(texts)}
                for feature, (any_missing, _), texts in zip(
                    self._payload["table"]["features"], missing, ranker.categories_, strict=True
                )
            ],
            "monotone": _prove_monotone(ranker),
            "held_out_bins": _measure_bins(ranker, split_data, seed),
            "trial_notes": list(split_data.notes),
            "empty_features": empty,
        }

    def _write_quantiles(self, ranker: Ranker, folds: Sequence[Fold], folder: Path) -> None:
        """Write the quantiles of the served ranker's scores of each fold's training rows, one array row per fold."""
        data = self.data
        assert isinstance(data, BipartiteTable)
        scores = np.load(folder / scores_file("train"))
        if len(scores) < data.served.n_learnt:  # fewer rows were measured
            scores = data.served.scores_of(ranker, "train")
        own = [quantiles_of(scores[data.row_split(fold).train]) for fold in folds]
        np.save(folder / QUANTILES_FILE, np.stack(own))

    def _thin_training_rows(
        self, ranker: Ranker, split_data: SplitData, outcome: FitOutcome
    ) -> SplitData:
        """Return the rows for the metrics: fewer training rows if the budget has no time to score all, or if memory is
        too small for the metrics of groups.
        """
        most, limit, train = math.inf, self._payload.get("memory_bytes"), split_data.table("train")
        if limit is not None and isinstance(train, StoredTable) and in_files(train) is None:
            most = max(limit // BYTES_PER_MEASURED_ROW, MIN_MEASURED_ROWS)
        if math.isinf(self._ends):
            return _thin(
                split_data, most, self.spec["seed"], outcome, "not enough memory for all rows"
            )
        sample = split_data.sample("train", self.spec["seed"])
        assert sample is not None
        one = interpretation.seconds_a_row(lambda rows: interpretation.score(ranker, rows), sample)
        n_rows, n_train = self.n_rows(), split_data.n_learnt
        left = self._seconds_left()
        n_scored = max(int(left / max(one, 1e-9)) - (n_rows - n_train), MIN_MEASURED_ROWS)
        why = "no time left in the budget for all rows"
        return _thin(split_data, min(n_scored, most), self.spec["seed"], outcome, why)

    def measure_importance(
        self, ranker: Ranker, part: str, sample: Table, split_data: SplitData
    ) -> _Importance:
        """`sample` is of a part. Without time in the budget, a separate job measures it."""
        draw = split_data.evaluation_rows
        if not math.isinf(self._ends):
            left = self._seconds_left()
            seconds = interpretation.predict_seconds(ranker, sample, draw)
            if seconds > max(left, MIN_IMPORTANCE_SECONDS):
                return {"importance": None, "importance_later": True}
        measured = interpretation.measure(ranker, part, sample, draw, self.spec["seed"])
        return {"importance": measured, "importance_later": False}

    def _seconds_left(self) -> float:
        after = 1e-6 * FINISHING_MICROSECONDS * self.n_rows() + reserved_for(self.spec)
        return self._ends + self.uncounted - after - time.monotonic()


def _files_in(folder: Path) -> dict[str, str]:
    return {file.name: str(file) for file in sorted(folder.iterdir())}


def _thin(
    split_data: SplitData, n_rows: float, seed: int, outcome: FitOutcome, why: str
) -> SplitData:
    """Keep at most `n_rows` training rows, and add a note with the reason."""
    n_train = split_data.n_learnt
    if n_rows >= n_train:
        return split_data
    thin = split_data.thinned(n_rows / n_train, seed)
    outcome["notes"].append(
        f"the {SAMPLED} ({thin.n_learnt:,} of {n_train:,} training rows): {why}. The model and its validation are not "
        "affected"
    )
    return thin


def _measure_reference(
    ranker: Ranker, split_data: SplitData, seed: int, folder: Path
) -> ReferenceRecord | None:
    """Write the average negative and positive row of the validation part, else of the training part."""
    if not isinstance(split_data, BipartiteSplitData):
        return None
    return interpretation.measure_reference(ranker, *_evaluated(split_data), seed, folder)


def _draw_references(split_data: SplitData, seed: int) -> Mapping[str, Table]:
    """Return sampled rows of both classes, for rankers without average rows."""
    if not isinstance(split_data, BipartiteSplitData):
        return {}
    return interpretation.draw_references(*_evaluated(split_data), seed)


def _evaluated(split_data: BipartiteSplitData) -> tuple[str, Table]:
    if split_data.validation is None:
        return "train", split_data.train
    return VALIDATION, split_data.validation


def _measure_bins(ranker: Ranker, split_data: SplitData, seed: int) -> HeldOutBins | None:
    """Return the held-out rows in the bins of a scorecard; None without such rows, and for other rankers."""
    table = split_data.table(VALIDATION)
    if not isinstance(split_data, BipartiteSplitData) or table is None:
        return None
    return interpretation.measure_bins(ranker, table, seed)


def _prove_monotone(ranker: Ranker) -> MonotoneProof | None:
    """Return the proof that the ranker satisfies its monotone constraints; None if it has none."""
    if ranker.find_directions() is None:
        return None
    record: Any = check_monotone(ranker).as_json()
    return cast(MonotoneProof, record)


def _bipartite(split_data: SplitData) -> BipartiteSplitData:
    """Narrow the type: folds, baselines and ensembles exist only for rows with one label."""
    assert isinstance(split_data, BipartiteSplitData)
    return split_data


def fit_members(
    members: Sequence[documents.Member],
    split_data: SplitData,
    callback: Callback,
    limit: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Ranker, Chosen, float, list[str]]:
    """Fit a ranker, or the rank average of several; returns it with the members as they were fitted, the seconds of the
    fit and its warnings.

    After `limit` seconds, a fit that supports it ends with its result so far. The parameters are already validated.
    """
    chosen = _chosen(members)
    until = clock() + limit
    fit = partial(fit_chosen, chosen, split_data.fit, callback, until, clock)
    (ranker, chosen), seconds, notes = _timed(fit)
    notes = fold_stopped(notes)
    if clock() > until:
        notes.append(
            "the final fit was stopped at the end of the budget, so the same seed may give another model. Set a longer "
            "budget for a complete fit"
        )
    return ranker, chosen, seconds, notes


_STOPPED = re.compile(r"stopped after \d+ of \d+ (?!members)")


def fold_stopped(notes: Sequence[str]) -> list[str]:
    """Return the warnings of a model's fits; those about early stops become one, which says what it means.

    Examples
    --------
    >>> fold_stopped(["stopped after 3 of 40 rounds", "stopped after 1 of 9 rounds", "a column is empty"])[1:]
    ['a column is empty']
    """
    stopped = [each for each in notes if _STOPPED.match(each)]
    others = [each for each in notes if not _STOPPED.match(each)]
    if not stopped:
        return others
    which = f"the final fit was {stopped[0]}"
    if len(stopped) > 1:
        which = f"{len(stopped)} of the last fits were stopped before they were complete"
    return [
        f"{which}: the model has what was trained until then. It may rank better with more time",
        *others,
    ]


def fit_baseline(
    part: BaselinePart, split_data: BipartiteSplitData, callback: Callback
) -> tuple[Ranker, float]:
    """Fit a baseline; returns it with the seconds of the fit."""
    ranker = baseline_ranker(part["algorithm"], part["parameters"])
    _, seconds, _ = _timed(lambda: split_data.fit(ranker, callback))
    return ranker, seconds


def _join(
    members: Sequence[documents.Member], shards: Sequence[ShardFile], split_data: SplitData
) -> tuple[Ranker, float, list[str]]:
    """Join a ranker from its shards, equal to one fit; returns it with the seconds of all fits and the warnings."""
    ranker = _sharded(members)
    files = [Path(shard["file"]).read_bytes() for shard in shards]
    _, seconds, notes = _timed(lambda: _bipartite(split_data).join_shares(ranker, files))
    seconds += sum(shard["seconds"] for shard in shards)
    earlier = [note for shard in shards for note in shard["notes"]]
    assert isinstance(ranker, Ranker)
    return ranker, seconds, list(dict.fromkeys([*earlier, *notes]))


def _timed(work: Callable[[], Result]) -> tuple[Result, float, list[str]]:
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = work()
    seconds = time.perf_counter() - started
    return result, seconds, [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


def _sharded(members: Sequence[documents.Member]) -> SharedRanker:
    ranker = make_ranker(_chosen(members))
    assert isinstance(ranker, SharedRanker)
    return ranker


def _chosen(members: Sequence[documents.Member]) -> Chosen:
    return Chosen(tuple(_member_of(member) for member in members), ())


def _member_of(member: documents.Member) -> Member:
    """Return a member of the choice. Raises Invalid for an unknown algorithm."""
    if member["algorithm"] not in ALGORITHMS:
        raise Invalid(
            f"algorithm.name must be one of {', '.join(ALGORITHMS)}, got {member['algorithm']!r}",
            code="unknown_algorithm",
        )
    return Member(member["algorithm"], member["parameters"], member.get("weight", 1.0))


class _Importance(TypedDict):
    importance: ImportanceRecord | None
    importance_later: bool


class _Categories(TypedDict, total=False):
    categories: list[str]
    n_categories: int


def _categories_of(texts: Sequence[str] | None) -> _Categories:
    """Return the first categories and their number, as the database stores them."""
    if texts is None:
        return {}
    return {"categories": list(texts[:MAX_CATEGORIES_SHOWN]), "n_categories": len(texts)}
