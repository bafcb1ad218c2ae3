"""The parts of a training job: each one fit, needing nothing but the job's payload and what the part says.

A part answers with small JSON and leaves what is larger as files in its folder. The same functions run one after the
other in the job's own process, or each as a job of its own; the bits are the same.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from app.jobs.progress import Callback
from app.platform.errors import Invalid
from app.platform.sql import Json
from app.platform.tables import DatasetKind
from app.training import interpretation
from app.training.bipartite import BipartiteSplitData, BipartiteTable
from app.training.multilabel import MultilabelSplitData
from app.training.plan import (
    SCORES_FILE,
    SERVED,
    SHARD_FILE,
    Scope,
    scope_of,
    trial_of,
)
from app.training.preferences import PreferenceSplitData
from app.training.progress import (
    BASELINE,
    COMPARING,
    FIT,
    MEASURING,
    PREPARING,
    READING,
    SHARD,
    TRIAL,
    FitProgress,
    Reporter,
)
from app.training.result import CALIBRATION_FILE, quantiles_of
from app.training.splits import InnerSplits, SplitData
from core import artifact
from core.base.checkpoint import SharedRanker
from core.base.ranker import Floats, Ranker
from core.ensemble import count_at_once
from core.errors import CoreError
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

# Rows of a fit that only loads kernels.
FEW = 100

# Selection must not divide the rows as the job's own split does; no job's seed is so great.
_SALT = 2**32

_MAX_KEPT_CELLS = 20_000_000
"""Of inner splits that are kept, rows times features."""

Result = TypeVar("Result")


_READERS: Mapping[str, Callable[[Mapping[str, Any], list[str]], BipartiteTable | SplitData]] = {
    DatasetKind.BIPARTITE: BipartiteTable,
    DatasetKind.PREFERENCES: PreferenceSplitData,
    DatasetKind.MULTILABEL: MultilabelSplitData,
}
"""What reads the tables that a payload names, by the kind of dataset."""


class _TooSlow(Exception):
    """A baseline has taken too long."""


class FitContext:
    """What the fits of a payload have in common: its tables, read once, and the job's spec."""

    def __init__(self, payload: Mapping[str, Any], reporter: Reporter) -> None:
        self._payload = payload
        self._reporter = reporter
        self.spec: Mapping[str, Any] = payload["spec"]
        self._data: BipartiteTable | SplitData | None = None
        self._inner: dict[Any, SplitData] = {}
        self._lock = threading.RLock()

    @property
    def names(self) -> list[str]:
        """The features."""
        return [feature["name"] for feature in self._payload["table"]["features"]]

    @property
    def data(self) -> BipartiteTable | SplitData:
        """The tables, read when they are first asked for; only rows with one label are split more than once."""
        with self._lock:
            if self._data is None:
                self._reporter.enter(READING)
                self._data = _READERS[self._payload["dataset_kind"]](self._payload, self.names)
            return self._data

    def split_data(self, scope: Scope) -> SplitData:
        """The rows of a scope."""
        data = self.data
        if isinstance(data, BipartiteTable):
            return data.split_data(scope)
        assert scope is SERVED
        return data

    @property
    def at_once(self) -> int:
        """How many trials run at once."""
        if self._payload["dataset_kind"] != "bipartite":
            return 1
        n_rows, _, n_features, _ = self.counts(None)
        return count_at_once(n_rows, n_features)

    def held_out(self, scope: Scope, inner: InnerSplits, split: int) -> HeldOut:
        """The rows that judge the candidates of a scope."""
        return _bipartite(self._inner_split_data(scope, inner, split)).held_rows()

    def can_split(self, scope: Scope, inner: InnerSplits) -> bool:
        """Whether the rows that a scope has to learn from differ, and can be split so."""
        with self._lock:
            split_data = _bipartite(self.split_data(scope))
            return split_data.can_split(inner, self.spec["seed"] + _SALT)

    def counts(self, scope: Scope) -> tuple[int, int, int, int]:
        """The rows that a scope has to learn from, those of its rarer class, features, most categories of one."""
        train = _bipartite(self.split_data(scope)).train
        y = train.y
        positives = int(np.count_nonzero(y))
        most = max((len(texts or ()) for texts in train.categories), default=0)
        return len(y), min(positives, len(y) - positives), len(train.categories), most

    def run(self, part: Mapping[str, Any], folder: Path, progress: FitProgress) -> Json:
        """Run one part, and tell of it.

        Returns what it found, and the files that it has put into the folder, by name.
        """
        started = time.perf_counter()
        match part["what"]:
            case "tryout":
                result = self._run_trial(part, folder, progress)
            case "control":
                result = self._fit_baseline(part, folder, progress)
            case "share":
                result = self._fit_shard(part, folder, progress)
            case "fit":
                result = self._fit(part, folder, progress)
            case what:
                raise ValueError(
                    f"a part must be {TRIAL}, {SHARD}, {FIT} or {BASELINE}, got {what!r}"
                )
        files = {file.name: str(file) for file in sorted(folder.iterdir())}
        return result | {"elapsed": time.perf_counter() - started, "files": files}

    def _run_trial(self, part: Mapping[str, Any], folder: Path, progress: FitProgress) -> Json:
        trial, objective = trial_of(part), self.spec["objective"]
        inner = self._inner_split_data(scope_of(part), InnerSplits(**part["inner"]), trial.split)
        learning = inner
        if trial.rows < 1.0:
            learning = inner.thinned(trial.rows, self.spec["seed"])
        progress.enter(PREPARING, rows=learning.n_learnt)

        def metric(scores: Floats) -> Metrics:
            area = inner.value(scores, {"metric": "auc"})
            is_auc = objective["metric"] == "auc"
            return Metrics(area if is_auc else inner.value(scores, objective), area)

        tried = run_trial(trial, learning.fit, inner.held_out, metric, progress.step)
        if tried.scores:
            np.save(folder / SCORES_FILE, np.stack(tried.scores))
        return {
            "values": list(tried.values),
            "aucs": list(tried.aucs),
            "seconds": tried.seconds,
            "setup": tried.setup,
            "steps": tried.steps,
            "fitted": tried.fitted,
            "failed": tried.failed,
            "notes": list(inner.notes),
            "rows": learning.n_learnt,
            "along": path_parameter(ALGORITHMS[trial.algorithm]) if trial.path else None,
        }

    def _inner_split_data(self, scope: Scope, inner: InnerSplits, split: int) -> SplitData:
        """A scope's training rows split once more; the latest are kept, for trials come split by split."""
        which = (scope, inner, split)
        with self._lock:
            if which in self._inner:
                return self._inner[which]
            cells = len(self.split_data(scope).training_values(0)) * len(self.names)
            most = max(_MAX_KEPT_CELLS // max(cells, 1), self.at_once)
            while len(self._inner) >= most:
                del self._inner[next(iter(self._inner))]
            try:
                split_data = self.split_data(scope).inner(inner, split, self.spec["seed"] + _SALT)
            except Invalid as error:
                raise Invalid(
                    f"the search divides the training part once more: {error.detail}",
                    code=error.code,
                ) from error
            self._inner[which] = split_data
            return split_data

    def _fit_baseline(self, part: Mapping[str, Any], folder: Path, progress: FitProgress) -> Json:
        """Fit a plain algorithm for comparison; one that refuses the rows, or takes too long, is none."""
        split_data = self.split_data(scope_of(part))
        of, seed = len(_bipartite(split_data).train.y), self.spec["seed"]
        learning, rows = split_data, part.get("rows")
        if rows is not None:
            learning = split_data.thinned(rows / of, seed)
        learnt_from = {"rows": len(_bipartite(learning).train.y), "of": of}
        progress.enter(COMPARING, rows=learnt_from["rows"])
        until = time.perf_counter() + (part.get("seconds") or math.inf)

        def step(done: int, of: int, info: Mapping[str, float]) -> None:
            progress.step(done, of, info)
            if time.perf_counter() > until:
                raise _TooSlow

        try:
            if rows is not None:  # that kernels are loaded is not to count
                _fit([part], split_data.thinned(min(1.0, FEW / of), seed), step)
            ranker, seconds, _ = _fit([part], learning, step)
        except _TooSlow:
            failed = f"it took more than {part['seconds']:.3g} s on {learnt_from['rows']:,} rows"
            return learnt_from | {"failed": failed, "late": True, "seconds": part["seconds"]}
        except CoreError as error:
            return learnt_from | {"failed": str(error), "late": False, "seconds": 0.0}
        np.save(folder / SCORES_FILE, _bipartite(split_data).scores_of(ranker, "validation"))
        return learnt_from | {"failed": None, "late": False, "seconds": seconds}

    def _fit_shard(self, part: Mapping[str, Any], folder: Path, progress: FitProgress) -> Json:
        """Fit one shard of a ranker: some of its pieces, which another part will join."""
        split_data = _bipartite(self.split_data(scope_of(part)))
        progress.enter(PREPARING, rows=split_data.n_learnt)
        ranker, first, last = _sharded(part["members"]), part["first"], part["last"]
        share, seconds, notes = _timed(
            lambda: split_data.fit_share(ranker, first, last, progress.step)
        )
        (folder / SHARD_FILE).write_bytes(share)
        return {"seconds": seconds, "notes": notes}

    def _fit(self, part: Mapping[str, Any], folder: Path, progress: FitProgress) -> Json:
        scope = scope_of(part)
        split_data = self.split_data(scope)
        rows = part.get("rows", 1.0)
        learning = (
            split_data if rows == 1.0 else _bipartite(split_data).thinned(rows, self.spec["seed"])
        )
        progress.enter(PREPARING, rows=learning.n_learnt)
        if shares := part.get("shares"):
            ranker, seconds, notes = _join(part["members"], shares, split_data)
        else:
            limit = part.get("limit", math.inf)
            ranker, seconds, notes = _fit(part["members"], learning, progress.step, limit)
        progress.enter(MEASURING)
        if scope is SERVED:
            return self._serve(ranker, split_data, folder) | {"seconds": seconds, "notes": notes}
        fold = _bipartite(split_data)
        np.save(folder / SCORES_FILE, fold.scores_of(ranker, "validation"))
        np.save(folder / CALIBRATION_FILE, quantiles_of(fold.scores_of(ranker, "train")))
        return {"seconds": seconds, "notes": notes}

    def _serve(self, ranker: Ranker, split_data: SplitData, folder: Path) -> Json:
        """Measure the ranker that is served, and write it and what is asked of it later."""
        seed = self.spec["seed"]
        parts = split_data.evaluate(ranker, self.spec["objective"], folder)
        drawn = {part: split_data.sample(part, seed) for part in parts}
        kept = {
            part: interpretation.as_scored(sample, ranker)
            for part, sample in drawn.items()
            if sample is not None
        }
        data = artifact.save(ranker)
        (folder / ARTIFACT_FILE).write_bytes(data)
        names = self.names
        missing = [_missing_among(split_data.training_values(i)) for i in range(len(names))]
        empty = [name for name, (_, is_empty) in zip(names, missing, strict=True) if is_empty]
        return {
            "artifact": {
                "file": ARTIFACT_FILE,
                "sha256": hashlib.sha256(data).hexdigest(),
                "bytes": len(data),
            },
            "parts": parts,
            "samples": {
                part: interpretation.write_sample(folder, part, sample)
                for part, sample in kept.items()
            },
            "importance": interpretation.measure(ranker, split_data, kept["train"], seed),
            "features": [
                feature | {"missing": any_missing} | _categories_of(texts)
                for feature, (any_missing, _), texts in zip(
                    self._payload["table"]["features"], missing, ranker.categories_, strict=True
                )
            ],
            "trial_notes": list(split_data.notes),
            "empty_features": empty,
        }


def _bipartite(split_data: SplitData) -> BipartiteSplitData:
    """Folds, baselines and ensembles are for rows with one label; jobs of other kinds were refused."""
    assert isinstance(split_data, BipartiteSplitData)
    return split_data


def _fit(
    members: Sequence[Mapping[str, Any]],
    split_data: SplitData,
    callback: Callback,
    limit: float = math.inf,
) -> tuple[Ranker, float, list[str]]:
    """Fit one ranker, or the rank average of several, within so many seconds where a fit can keep what it has by then.

    The job's parameters were checked when it was taken in.
    """
    chosen = _chosen(members)
    until = time.perf_counter() + limit
    return _timed(lambda: fit_chosen(chosen, split_data.fit, callback, until))


def _join(
    members: Sequence[Mapping[str, Any]], shares: Sequence[Mapping[str, Any]], split_data: SplitData
) -> tuple[Ranker, float, list[str]]:
    """The ranker whose pieces were fitted in shards, as one fit would have made it; its time is that of all."""
    ranker = _sharded(members)
    files = [Path(share["file"]).read_bytes() for share in shares]
    _, seconds, notes = _timed(lambda: _bipartite(split_data).join_shares(ranker, files))
    seconds += sum(share["seconds"] for share in shares)
    earlier = [note for share in shares for note in share["notes"]]
    assert isinstance(ranker, Ranker)
    return ranker, seconds, list(dict.fromkeys([*earlier, *notes]))


def _timed(work: Callable[[], Result]) -> tuple[Result, float, list[str]]:
    """Do it; returns its result, its seconds, and the warnings that it gave."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = work()
    seconds = time.perf_counter() - started
    return result, seconds, [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


def _sharded(members: Sequence[Mapping[str, Any]]) -> SharedRanker:
    """A ranker that the plan has divided."""
    ranker = make_ranker(_chosen(members))
    assert isinstance(ranker, SharedRanker)
    return ranker


def _chosen(members: Sequence[Mapping[str, Any]]) -> Chosen:
    return Chosen(tuple(_member_of(member) for member in members), ())


def _member_of(member: Mapping[str, Any]) -> Member:
    if member["algorithm"] not in ALGORITHMS:
        raise Invalid(
            f"algorithm.name must be one of {', '.join(ALGORITHMS)}, got {member['algorithm']!r}",
            code="unknown_algorithm",
        )
    return Member(member["algorithm"], member["parameters"], member.get("weight", 1.0))


def _missing_among(values: npt.NDArray[np.float64]) -> tuple[bool, bool]:
    """Whether any is missing, and whether all are."""
    missing = np.isnan(values)
    return bool(missing.any()), bool(missing.all())


def _categories_of(texts: Sequence[str] | None) -> Json:
    """What is kept of a feature's categories in SQL: the artifact has them all."""
    if texts is None:
        return {}
    return {"categories": list(texts[:MAX_CATEGORIES_SHOWN]), "n_categories": len(texts)}
