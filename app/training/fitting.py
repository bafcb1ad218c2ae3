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

from app.platform.errors import Invalid
from app.training import importance as importances
from app.training import samples
from app.training.bipartite import BipartiteTrial
from app.training.kinds import KINDS, Data, Trial
from app.training.out_of_fold import YARDSTICK_FILE, mark
from app.training.plan import (
    CONTROL,
    FIT,
    SCORES_FILE,
    SERVED,
    SHARE,
    TRYOUT,
    Scope,
    scope_of,
    tryout_of,
)
from app.training.progress import COMPARING, MEASURING, PREPARING, READING, Reporter, Told
from app.training.shards import SHARE_FILE
from app.training.splits import Inner
from core import artifact
from core.checkpoint import SharedRanker
from core.ensemble import count_at_once
from core.errors import CoreError
from core.ranker import Floats, Ranker, StopFit
from core.registry import ALGORITHMS
from core.selection import Chosen, HeldOut, Member, Metrics, make_ranker, path_parameter, run_trial

ARTIFACT_FILE = "ranker.safetensors"
MOST_CATEGORIES_SHOWN = 100

# Rows of a fit that only loads kernels.
FEW = 100

# Selection must not divide the rows as the job's own split does; no job's seed is so great.
_SALT = 2**32

_MOST_KEPT_CELLS = 20_000_000
"""Of inner splits that are kept, rows times features."""

Callback = Callable[[int, int, Mapping[str, float]], None]
Json = dict[str, Any]
Result = TypeVar("Result")


class _Late(Exception):
    """A control has taken too long."""


class Bench:
    """The tables that a payload names, read once and shared by all parts that are run on it."""

    def __init__(self, payload: Mapping[str, Any], reporter: Reporter) -> None:
        self._payload = payload
        self._reporter = reporter
        self.spec: Mapping[str, Any] = payload["spec"]
        self._data: Data | None = None
        self._inner: dict[Any, Trial] = {}
        self._lock = threading.RLock()

    @property
    def names(self) -> list[str]:
        """The features."""
        return [feature["name"] for feature in self._payload["table"]["features"]]

    @property
    def data(self) -> Data:
        """The tables, read when they are first asked for."""
        with self._lock:
            if self._data is None:
                self._reporter.tell(READING)
                self._data = KINDS[self._payload["dataset_kind"]].read(self._payload, self.names)
            return self._data

    @property
    def at_once(self) -> int:
        """How many tryouts run at once."""
        if self._payload["dataset_kind"] != "bipartite":
            return 1
        n_rows, _, n_features, _ = self.counts(None)
        return count_at_once(n_rows, n_features)

    def held_out(self, scope: Scope, inner: Inner, split: int) -> HeldOut:
        """The rows that judge the candidates of a scope."""
        return _bipartite(self._inner_trial(scope, inner, split)).held_rows()

    def counts(self, scope: Scope) -> tuple[int, int, int, int]:
        """The rows that a scope has to learn from, those of its rarer class, features, most categories of one."""
        train = _bipartite(self.data.trial(scope)).train
        y = train.y
        positives = int(np.count_nonzero(y))
        most = max((len(texts or ()) for texts in train.categories), default=0)
        return len(y), min(positives, len(y) - positives), len(train.categories), most

    def run(self, part: Mapping[str, Any], folder: Path, told: Told) -> Json:
        """Run one part, and tell of it.

        Returns what it found, and the files that it has put into the folder, by name.
        """
        started = time.perf_counter()
        match part["what"]:
            case "tryout":
                result = self._try_out(part, folder, told)
            case "control":
                result = self._control(part, folder, told)
            case "share":
                result = self._share(part, folder, told)
            case "fit":
                result = self._fit(part, folder, told)
            case what:
                raise ValueError(
                    f"a part must be {TRYOUT}, {SHARE}, {FIT} or {CONTROL}, got {what!r}"
                )
        files = {file.name: str(file) for file in sorted(folder.iterdir())}
        return result | {"elapsed": time.perf_counter() - started, "files": files}

    def _try_out(self, part: Mapping[str, Any], folder: Path, told: Told) -> Json:
        tryout, objective = tryout_of(part), self.spec["objective"]
        inner = self._inner_trial(scope_of(part), Inner(**part["inner"]), tryout.split)
        learning = inner
        if tryout.rows < 1.0:
            learning = inner.thinned(tryout.rows, self.spec["seed"])
        told.tell(PREPARING, rows=learning.n_learnt)

        def metric(scores: Floats) -> Metrics:
            area = inner.value(scores, {"metric": "auc"})
            is_auc = objective["metric"] == "auc"
            return Metrics(area if is_auc else inner.value(scores, objective), area)

        tried = run_trial(tryout, learning.fit, inner.held_out, metric, told.step)
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
            "along": path_parameter(ALGORITHMS[tryout.algorithm]) if tryout.path else None,
        }

    def _inner_trial(self, scope: Scope, inner: Inner, split: int) -> Trial:
        """A scope's training rows divided once more; the latest are kept, for tryouts come split by split."""
        which = (scope, inner, split)
        with self._lock:
            if which in self._inner:
                return self._inner[which]
            cells = len(self.data.trial(scope).training_values(0)) * len(self.names)
            most = max(_MOST_KEPT_CELLS // max(cells, 1), self.at_once)
            while len(self._inner) >= most:
                del self._inner[next(iter(self._inner))]
            try:
                trial = self.data.trial(scope).inner(inner, split, self.spec["seed"] + _SALT)
            except Invalid as error:
                raise Invalid(
                    f"the search divides the training part once more: {error.detail}",
                    code=error.code,
                ) from error
            self._inner[which] = trial
            return trial

    def _control(self, part: Mapping[str, Any], folder: Path, told: Told) -> Json:
        """Fit a plain algorithm for comparison; one that refuses the rows, or takes too long, is none."""
        trial = self.data.trial(scope_of(part))
        of, seed = len(_bipartite(trial).train.y), self.spec["seed"]
        learning, rows = trial, part.get("rows")
        if rows is not None:
            learning = trial.thinned(rows / of, seed)
        learnt_from = {"rows": len(_bipartite(learning).train.y), "of": of}
        told.tell(COMPARING, rows=learnt_from["rows"])
        until = time.perf_counter() + (part.get("seconds") or math.inf)

        def step(done: int, of: int, info: Mapping[str, float]) -> None:
            told.step(done, of, info)
            if time.perf_counter() > until:
                raise _Late

        try:
            if rows is not None:  # that kernels are loaded is not to count
                _fit([part], trial.thinned(min(1.0, FEW / of), seed), step)
            ranker, seconds, _ = _fit([part], learning, step)
        except _Late:
            failed = f"it took more than {part['seconds']:.3g} s on {learnt_from['rows']:,} rows"
            return learnt_from | {"failed": failed, "late": True, "seconds": part["seconds"]}
        except CoreError as error:
            return learnt_from | {"failed": str(error), "late": False, "seconds": 0.0}
        np.save(folder / SCORES_FILE, _bipartite(trial).scores_of(ranker, "validation"))
        return learnt_from | {"failed": None, "late": False, "seconds": seconds}

    def _share(self, part: Mapping[str, Any], folder: Path, told: Told) -> Json:
        """Fit some of the pieces of a ranker that another part will join."""
        trial = _bipartite(self.data.trial(scope_of(part)))
        told.tell(PREPARING, rows=trial.n_learnt)
        ranker, first, last = _shared(part["members"]), part["first"], part["last"]
        share, seconds, notes = _timed(lambda: trial.fit_share(ranker, first, last, told.step))
        (folder / SHARE_FILE).write_bytes(share)
        return {"seconds": seconds, "notes": notes}

    def _fit(self, part: Mapping[str, Any], folder: Path, told: Told) -> Json:
        scope = scope_of(part)
        trial = self.data.trial(scope)
        rows = part.get("rows", 1.0)
        learning = trial if rows == 1.0 else _bipartite(trial).thinned(rows, self.spec["seed"])
        told.tell(PREPARING, rows=learning.n_learnt)
        if shares := part.get("shares"):
            ranker, seconds, notes = _join(part["members"], shares, trial)
        else:
            callback = _ends_in(told.step, part.get("limit"))
            ranker, seconds, notes = _fit(part["members"], learning, callback)
        told.tell(MEASURING)
        if scope is SERVED:
            return self._serve(ranker, trial, folder) | {"seconds": seconds, "notes": notes}
        fold = _bipartite(trial)
        np.save(folder / SCORES_FILE, fold.scores_of(ranker, "validation"))
        np.save(folder / YARDSTICK_FILE, mark(fold.scores_of(ranker, "train")))
        return {"seconds": seconds, "notes": notes}

    def _serve(self, ranker: Ranker, trial: Trial, folder: Path) -> Json:
        """Measure the ranker that is served, and write it and what is asked of it later."""
        seed = self.spec["seed"]
        parts = trial.judge(ranker, self.spec["objective"], folder)
        drawn = {part: trial.sample(part, seed) for part in parts}
        kept = {
            part: samples.as_scored(sample, ranker)
            for part, sample in drawn.items()
            if sample is not None
        }
        data = artifact.save(ranker)
        (folder / ARTIFACT_FILE).write_bytes(data)
        names = self.names
        missing = [_missing_among(trial.training_values(i)) for i in range(len(names))]
        empty = [name for name, (_, is_empty) in zip(names, missing, strict=True) if is_empty]
        return {
            "artifact": {
                "file": ARTIFACT_FILE,
                "sha256": hashlib.sha256(data).hexdigest(),
                "bytes": len(data),
            },
            "parts": parts,
            "samples": {part: samples.write(folder, part, sample) for part, sample in kept.items()},
            "importance": importances.measure(ranker, trial, kept["train"], seed),
            "features": [
                feature | {"missing": any_missing} | _categories_of(texts)
                for feature, (any_missing, _), texts in zip(
                    self._payload["table"]["features"], missing, ranker.categories_, strict=True
                )
            ],
            "trial_notes": list(trial.notes),
            "empty_features": empty,
        }


def _bipartite(trial: Trial) -> BipartiteTrial:
    """Folds, controls and ensembles are for rows with one label; jobs of other kinds were refused."""
    assert isinstance(trial, BipartiteTrial)
    return trial


def _fit(
    members: Sequence[Mapping[str, Any]], trial: Trial, callback: Callback
) -> tuple[Ranker, float, list[str]]:
    """Fit one ranker, or the rank average of several; the job's parameters were checked when it was taken in."""
    ranker = _make(members)
    _, seconds, notes = _timed(lambda: trial.fit(ranker, callback))
    return ranker, seconds, notes


def _ends_in(callback: Callback, limit: float | None) -> Callback:
    """The callback of a fit that ends after so many seconds, with what it has by then."""
    until = math.inf if limit is None else time.perf_counter() + limit

    def tell(step: int, of: int, info: Mapping[str, float]) -> None:
        callback(step, of, info)
        if time.perf_counter() > until and step < of:
            raise StopFit

    return tell


def _join(
    members: Sequence[Mapping[str, Any]], shares: Sequence[Mapping[str, Any]], trial: Trial
) -> tuple[Ranker, float, list[str]]:
    """The ranker whose pieces were fitted in shares, as one fit would have made it; its time is that of all."""
    ranker = _shared(members)
    files = [Path(share["file"]).read_bytes() for share in shares]
    _, seconds, notes = _timed(lambda: _bipartite(trial).join_shares(ranker, files))
    seconds += sum(share["seconds"] for share in shares)
    said = [note for share in shares for note in share["notes"]]
    assert isinstance(ranker, Ranker)
    return ranker, seconds, list(dict.fromkeys([*said, *notes]))


def _timed(work: Callable[[], Result]) -> tuple[Result, float, list[str]]:
    """Do it; returns its result, its seconds, and the warnings that it gave."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = work()
    seconds = time.perf_counter() - started
    return result, seconds, [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


def _shared(members: Sequence[Mapping[str, Any]]) -> SharedRanker:
    """A ranker that the plan has divided."""
    ranker = _make(members)
    assert isinstance(ranker, SharedRanker)
    return ranker


def _make(members: Sequence[Mapping[str, Any]]) -> Ranker:
    return make_ranker(Chosen(tuple(_member_of(member) for member in members), ()))


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
    return {"categories": list(texts[:MOST_CATEGORIES_SHOWN]), "n_categories": len(texts)}
