"""Scoring: the cache of loaded models, and the scores of rows with their FPR and TPR on the validation curve."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from app.datasets.description import Format
from app.ingest.rows import Source
from app.ingest.values import DATETIME, spell_date
from app.models import calibrations, curves, operating_points, repository
from app.models import service as models
from app.models.artifacts import artifact_of, load_ranker
from app.models.calibrations import ServedCalibration
from app.models.service import AliasFeedback
from app.platform.background import TtlCache
from app.platform.blobs import BlobStore
from app.platform.callers import Caller
from app.platform.documents import AliasCutoff, TableDialect
from app.platform.errors import Invalid, NotFound, Unavailable
from app.platform.outage import OutageMemory
from app.platform.sql import Json, Reading, Session
from app.platform.tables import Measurement, Model, ModelCalibration
from app.scoring import cost, json_rows, reasons
from app.scoring.cost import ScoringCost
from app.scoring.decisions import Decisions, DecisionSink, Recorder, Recording, recording_of
from app.scoring.features import FeatureIndex
from app.scoring.json_rows import IdAndIgnored, JsonRows
from app.scoring.probabilities import NOTHING, ProbabilityOptions
from app.scoring.reasons import CONTRIBUTIONS, Estimates, Reasoner, Reasons
from app.scoring.table_rows import (
    Bounds,
    RowReader,
    TableOptions,
    index_of,
    read_body,
)
from core.base.table import CodedTable
from core.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

    from core.base.ranker import Floats, Ranker
    from core.linear.points import PointsScale
    from core.metrics import RocCurve

FLAG = "flag"
"""The column that says whether a score reaches the threshold of the alias that was asked."""
MAX_EXPLAINED = 1_000
REFERENCES = 8
"""References that are remembered, for each model that may be loaded."""
_ARTIFACT_FACTOR = 4  # a loaded ranker takes two to five times the bytes of its artifact
# bytes of a category in the index; its letters count as part of the artifact
_BYTES_PER_CATEGORY = 150


class RowScores(NamedTuple):
    """Scores of shape (rows,) or (rows, labels); with a validation curve also their FPR and TPR on it."""

    scores: Floats
    fprs: Floats | None
    tprs: Floats | None
    reasons: Reasons | None = None
    """If they were asked for."""
    ids: pa.Array | None = None
    """The id of each row, if it was asked to come back."""
    decisions: Decisions | None = None
    """The decisions about the rows, if they are recorded."""


@dataclass(frozen=True, eq=False)
class Served:
    """A loaded model, ready to score; immutable."""

    model_id: str
    ranker: Ranker
    features: FeatureIndex
    curve: RocCurve | None
    artifact_sha256: str
    labels: list[str] | None = None
    """The labels of a model that has several: it gives a score for each."""
    approximate: bool = False
    """True if the curve is of out-of-fold scores."""
    table_dialect: TableDialect | None = None
    """How the model's own table spells missing values and decimals; None: as usual."""
    n_bytes: int = 0
    """Estimate of its memory, see `count_bytes`."""
    calibration: ServedCalibration | None = None
    """What makes probabilities of scores."""
    why_no_calibration: str = ""
    """The reason why there is none."""
    flag_threshold: float | None = None
    """Scores of at least this are flagged. None: the request does not name an alias with a guarantee."""
    reasoner: Reasoner | None = None
    """Computes the reasons of scores, if a request asks for them."""
    recorder: Recorder | None = None
    """Makes decisions of scores. None: the request does not name an alias whose decisions are recorded."""
    recording: Recording | None = None
    """The decisions of the request that scores."""
    noted: FeatureIndex | None = None
    """The columns of the request's rows, with notes of unknown categories."""
    cost: ScoringCost = ScoringCost(0.0, 0.0)  # noqa: RUF009  # immutable
    """What scores cost where the model is served."""

    @cached_property
    def scale(self) -> PointsScale | None:
        """Scale of the points beside the scores. None: the model is no scorecard."""
        return getattr(self.ranker, "scale", None)

    @property
    def columns(self) -> FeatureIndex:
        """The columns that a row to score may have: the features, and then the protected columns that are recorded."""
        if self.noted is not None:
            return self.noted
        return self.features if self.recorder is None else self.recorder.columns

    def noting(self) -> Served:
        """Return the model for one request, whose warnings `columns` collects."""
        return replace(self, noted=self.columns.noting())

    def label(self, name: str | None) -> int:
        """Return a label's position; for a model with one label, `name` must be None. Raises Invalid."""
        return models.find_label(self.labels, name)

    def score_one(self, row: Floats) -> tuple[float, float | None, float | None]:
        """The row has shape (1, n_columns); FPR and TPR are None without a curve."""
        score = self.ranker.score_rows(self._scored(row)).item()
        if self.curve is None:
            return score, None, None
        return score, *self.curve.locate_one(score)

    def score(self, X: Floats) -> RowScores:
        """With FPR and TPR if there is a validation curve. X has shape (rows, n_columns)."""
        X = self._scored(X)
        scores = self.ranker.score_rows(X)
        reasons = None if self.reasoner is None else self.reasoner.of(X, scores)
        if self.curve is None:
            return RowScores(scores, None, None, reasons)
        return RowScores(scores, *self.curve.locate(scores), reasons)

    def read_features(
        self, body: bytes, beside: IdAndIgnored, bounds: Bounds, *, lenient: bool
    ) -> JsonRows:
        """Read rows in JSON, which may have protected columns, too, and return their features."""
        rows = json_rows.read(self.columns, body, beside, bounds, lenient=lenient)
        return rows._replace(X=self._scored(rows.X))

    def _scored(self, X: Floats) -> Floats:
        """Return the features of rows that may have protected columns, too."""
        n = len(self.features.names)
        return X if X.shape[1] == n else np.ascontiguousarray(X[:, :n])

    def recorded(
        self, scope: Mapping[str, Any], caller: Caller, spool: BinaryIO | None = None
    ) -> Served:
        """Add a recording for a request (its ASGI scope), if decisions are recorded.

        `spool` is a file for the decisions about a table that is too large for memory.
        """
        if self.recorder is None:
            return self
        return replace(self, recording=self.recording_of(scope, caller, spool))

    def recording_of(
        self, scope: Mapping[str, Any], caller: Caller, spool: BinaryIO | None = None
    ) -> Recording | None:
        if self.recorder is None:
            return None
        return recording_of(self.recorder, scope, caller, spool)

    def score_identified(self, X: Floats, ids: pa.Array | None) -> RowScores:
        """Score the next rows of a request, with ids, and decisions if they are recorded."""
        found = self.score(X)._replace(ids=ids)
        if self.recording is None:
            return found
        named = None if ids is None else ids.to_pylist()
        return found._replace(decisions=self.recording.add(self, X, found.scores, named))

    def flags(self, scores: Floats) -> dict[str, npt.NDArray[np.bool_]]:
        """Return the column `flag` by name; empty without a guarantee."""
        return {} if self.flag_threshold is None else {FLAG: scores >= self.flag_threshold}

    def entity_tag(self, row: Floats, asked: bytes = b"") -> str:
        """Hash the artifact, the calibration, the parsed row, and the options of the request."""
        tag = self._tag.copy()
        tag.update(row.data)
        tag.update(asked)
        return f'"{tag.hexdigest()}"'

    @cached_property
    def _tag(self) -> hashlib.blake2b:
        # The id besides the artifact: two models may share an artifact and differ in their curves.
        version = 0 if self.calibration is None else self.calibration.version
        of = f"{self.artifact_sha256} {self.model_id} {version}"
        return hashlib.blake2b(of.encode(), digest_size=16)


class _ModelRead(NamedTuple):
    """A model read from the database with its loaded form, or with the data to load it."""

    model: Model
    served: Served | None
    curve: Measurement | None
    calibration: ModelCalibration | None
    cutoff: AliasCutoff | None
    feedback: AliasFeedback | None


class _Remembered(NamedTuple):
    """A model with the threshold and the recorder of its reference, and the token before it was looked up."""

    served: Served
    token: bytes


class _Meaning(NamedTuple):
    """The model id to which a reference resolves, and the threshold and the feedback settings of its alias."""

    model_id: str
    cutoff: AliasCutoff | None
    feedback: AliasFeedback | None


def _calibration_of(found: _ModelRead) -> ServedCalibration | None:
    return None if found.calibration is None else calibrations.served_of(found.calibration)


class ModelCache:
    """The loaded models of one process: at most `size` of them, and `max_bytes` in all, but always one.

    The least recently used is dropped first. `reading` opens a read transaction; the caller of the cache must have none
    open. `later` schedules a function, and returns at once. While the database is unavailable, references resolve to
    the loaded models that `memory` has recorded for them. `preload` imports what loading a model needs. `decisions`
    takes those of aliases with feedback. `token` reads `HostTokens.models`: until it changes, what a reference means is
    remembered, for a second at most, because other hosts have tokens of their own.
    """

    def __init__(
        self,
        reading: Reading,
        blobs: BlobStore,
        size: int,
        later: Callable[[Callable[[], object]], object],
        *,
        max_bytes: int = 1 << 30,
        memory: OutageMemory | None = None,
        preload: Callable[[], object] = lambda: None,
        decisions: DecisionSink | None = None,
        token: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        self._preload = preload
        self.token = token
        self._decisions = decisions
        self._reading = reading
        self._blobs = blobs
        self._size = size
        self._max_bytes = max_bytes
        self._served: OrderedDict[tuple[str, str], Served] = OrderedDict()  # by owner and id
        self.recent: TtlCache[tuple[str, str], _Remembered] = TtlCache(
            lambda seen: later(partial(self.refresh, *seen)), size=REFERENCES * size
        )
        self.looking: dict[tuple[str, str, bytes], asyncio.Future[Served | None]] = {}
        """The look-ups that run, by owner, reference and token; for the event loop alone."""
        self._memory = memory or OutageMemory(0.0)
        self._lock = threading.Lock()
        self._loading: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._recorders: OrderedDict[tuple[str, str], tuple[AliasFeedback, str, Recorder]] = (
            OrderedDict()
        )
        self._quick_hits = 0  # counted in the event loop alone; the others under the lock
        self._hits = self._misses = 0

    def lookups(self) -> tuple[int, int]:
        """Return how many look-ups found the model in memory, and how many loaded it."""
        return self._quick_hits + self._hits, self._misses

    def turn(self, owner: str) -> asyncio.Lock:
        """Return the lock for loading an owner's models; waiting for it occupies no thread."""
        return self._turns.setdefault(owner, asyncio.Lock())

    def cached(self, owner: str, ref: str) -> Served | None:
        """Return a model read in the last second, unchanged on this host since. Never waits. For the event loop."""
        found = self.recent.get((owner, ref))
        if found is None or found.token != self.token():
            return None
        self._quick_hits += 1
        return found.served

    def find(self, owner: str, ref: str) -> Served:
        """Return the model as it is in the database now; loads it if necessary. Raises NotFound."""
        served = self._find(owner, ref, load=True)
        assert served is not None
        return served

    def look(self, owner: str, ref: str) -> Served | None:
        """As `find`, but None if the model is not loaded."""
        return self._find(owner, ref, load=False)

    def _find(self, owner: str, ref: str, *, load: bool, for_request: bool = True) -> Served | None:
        """Without `load`, return None if the model is not loaded."""
        read_at, token = time.monotonic(), self.token()
        read: list[_ModelRead] = []

        def look_up() -> _Meaning:
            found = self._reading(self._read_row, owner, ref)
            read.append(found)
            return _Meaning(found.model.id, found.cutoff, found.feedback)

        model_id, cutoff, feedback = cast(_Meaning, self._memory.ask((owner, ref), look_up))
        if not read:
            served = self._loaded(owner, model_id)
            read_at = time.monotonic()  # the next request need not wait for the database, too
            self._count_hit(for_request)
        elif (loaded := read[0].served) is not None:
            served = loaded
            self._count_hit(for_request)
        elif load:
            served = self._load(read[0])
        else:
            return None
        if cutoff is not None or feedback is not None:
            served = replace(
                served,
                flag_threshold=operating_points.flag_threshold(cutoff),
                recorder=self._recorder(owner, ref, feedback, served),
            )
        if token is not None:
            self.recent.put((owner, ref), _Remembered(served, token), read_at)
        return served

    def _count_hit(self, for_request: bool = True) -> None:
        if for_request:
            with self._lock:
                self._hits += 1

    def _recorder(
        self, owner: str, ref: str, feedback: AliasFeedback | None, served: Served
    ) -> Recorder | None:
        """Return what records an alias's decisions, made once for each of its states; None: they are not recorded."""
        if feedback is None or self._decisions is None:
            return None
        known = self._recorders.get((owner, ref))
        if known is not None and known[0] == feedback and known[1] == served.model_id:
            return known[2]
        self._recorders.pop((owner, ref), None)  # the oldest stands first
        if len(self._recorders) >= self._size:
            self._recorders.popitem(last=False)
        recorder = Recorder(owner, feedback, served, self._decisions)
        self._recorders[owner, ref] = (feedback, served.model_id, recorder)
        return recorder

    def _loaded(self, owner: str, model_id: str) -> Served:
        """Use memory during an outage of the database. Raises Unavailable if the model is not loaded."""
        with self._lock:
            served = self._served.get((owner, model_id))
        if served is None:
            raise Unavailable(
                "the database is unavailable, and the model is not in memory",
                code="database_unavailable",
            )
        return served

    def serve(self, model: Model) -> Served:
        """Return the loaded form of a model that was just read; it is read again only to load it."""
        served = self._get(model)
        if served is None:
            return self.find(model.owner, model.id)
        self._count_hit()
        return served

    def forget(self, owner: str, model_id: str) -> None:
        """Drop a model that was deleted by this process."""
        self._drop_references(owner, model_id)
        with self._lock:
            self._served.pop((owner, model_id), None)

    def refresh(self, owner: str, ref: str) -> None:
        """Look a reference up again; if its model no longer exists, drop it."""
        try:
            self._find(owner, ref, load=True, for_request=False)
        except NotFound:
            self.recent.drop((owner, ref))
            self.forget(owner, ref)

    def _drop_references(self, owner: str, model_id: str) -> None:
        """Forget which references mean a model: they would keep it in memory."""
        self.recent.drop_where(
            lambda key, found: (key[0], found.served.model_id) == (owner, model_id)
        )

    def _read_row(self, session: Session, owner: str, ref: str) -> _ModelRead:
        """Return a model with its loaded form, or with the data to load it."""
        model, cutoff, feedback = models.find_with_cutoff(session, owner, ref)
        served = self._get(model)
        if served is not None:
            return _ModelRead(model, served, None, None, cutoff, feedback)
        curve = repository.find_curve(session, model.id, models.VALIDATION)
        calibration = calibrations.find_served(session, model)
        return _ModelRead(model, None, curve, calibration, cutoff, feedback)

    def _get(self, model: Model) -> Served | None:
        key = (model.owner, model.id)
        with self._lock:
            served = self._served.get(key)
            if served is not None:
                loaded = served.calibration and served.calibration.version
                if loaded != model.calibration_version:  # the model was recalibrated
                    return None
                self._served.move_to_end(key)
            return served

    def _load(self, found: _ModelRead) -> Served:
        """Load a model, or only its new calibration."""
        model = found.model
        with self._lock:
            loading = self._loading.setdefault(model.owner, threading.Lock())
        with loading:  # one model of an owner at a time: a request that has waited finds it loaded
            served = self._get(model)
            if served is not None:
                self._count_hit()
                return served
            with self._lock:
                before = self._served.get((model.owner, model.id))
            if before is not None:
                calibration = _calibration_of(found)
                n_bytes = before.n_bytes + _bytes_of(calibration) - _bytes_of(before.calibration)
                served = replace(before, calibration=calibration, n_bytes=n_bytes)
                self._drop_references(model.owner, model.id)
            else:
                served = self._load_blob(found)
            with self._lock:
                self._served[model.owner, model.id] = served
                self._make_room()
                if before is None:
                    self._misses += 1
                else:
                    self._hits += 1
            return served

    def _make_room(self) -> None:
        """Drop the least recently used models until the limits are met."""
        n_bytes = sum(served.n_bytes for served in self._served.values())
        while len(self._served) > self._size or (
            n_bytes > self._max_bytes and len(self._served) > 1
        ):
            key, gone = self._served.popitem(last=False)
            n_bytes -= gone.n_bytes
            self._drop_references(*key)

    def _load_blob(self, found: _ModelRead) -> Served:
        self._preload()  # else this thread and the one that preloads may see each other's modules half loaded
        model = found.model
        ranker, size = load_ranker(self._blobs.fetch(artifact_of(model)), model.artifact_sha256)
        curve, calibration = found.curve, _calibration_of(found)
        n_bytes = count_bytes(size, ranker.categories_)
        served = Served(
            model.id,
            ranker,
            index_of(model.features, ranker.categories_, model.table_dialect),
            None if curve is None else curves.curve_of(curve),
            model.artifact_sha256,
            None if model.labels is None else [label["name"] for label in model.labels],
            models.is_approximate(model, models.VALIDATION),
            model.table_dialect,
            n_bytes + _bytes_of(calibration),
            calibration,
            calibrations.why_none(model),
        )
        # Kernels are loaded, or even compiled, here and not in the event loop, where one row is scored.
        categories = ranker.categories_ or [None] * len(model.features)
        measured = cost.measure(
            served.score, [None if words is None else len(words) for words in categories]
        )
        return replace(served, cost=measured)


def _bytes_of(calibration: ServedCalibration | None) -> int:
    return 0 if calibration is None else calibration.n_bytes


def count_bytes(artifact_bytes: int, categories: Sequence[Sequence[str] | None] | None) -> int:
    """Estimate a loaded model's memory in bytes."""
    n_categories = sum(len(words or ()) for words in categories or ())
    return _ARTIFACT_FACTOR * artifact_bytes + _BYTES_PER_CATEGORY * n_categories


def rank(scores: Floats, top: int | None) -> npt.NDArray[np.intp]:
    """Return the indices of the first `top` rows, best first; equal scores keep their order. O(n + top · log top)."""
    if top is None or top >= len(scores):
        return np.argsort(-scores, kind="stable")
    worst = np.partition(scores, len(scores) - top)[len(scores) - top]
    above = np.flatnonzero(scores > worst)
    tied = np.flatnonzero(scores == worst)[: top - len(above)]
    return np.concatenate([above[np.argsort(-scores[above], kind="stable")], tied])


def check_explained(reading: Reading, owner: str, served: Served, rows: int) -> Estimates | None:
    """Return an estimator if scores are not sums by feature. Invalid: so many rows cannot be explained at once."""
    if rows > MAX_EXPLAINED:
        raise Invalid(f"at most {MAX_EXPLAINED} rows can be explained per request, got {rows}")
    if _contributions(served, np.full((1, len(served.features.names)), np.nan)) is not None:
        return None
    estimates = reasons.average_estimates(reading, owner, served)
    most = estimates.most_rows(MAX_EXPLAINED)
    if most is not None and rows > most:
        raise Invalid(
            f"at most {most} rows of this model can be explained per request, because contributions are "
            f"estimated, got {rows}",
            code="too_many_rows",
        )
    return estimates


def _contributions(served: Served, X: Floats) -> Floats | None:
    """Return None if scores are not sums."""
    from core.base.ranker import ContributionRanker

    ranker = served.ranker
    if not isinstance(ranker, ContributionRanker):
        return None
    try:
        return ranker.contributions(CodedTable(X, tuple(served.features.names), ranker.categories_))
    except InvalidParameter:
        return None


def explain(
    served: Served,
    X: Floats,
    label: str | None = None,
    options: ProbabilityOptions = NOTHING,
    estimates: Estimates | None = None,
) -> list[Json]:
    """Return each row's score as a sum (`schemas.Explanation`), with the columns of `options`.

    For a model with several labels it is the score of one label. `estimates` is the result of `check_explained`.
    """
    position = served.label(label)
    if not len(X):
        return []
    ranker: Any = served.ranker
    scores, fprs, tprs, *_ = served.score(X)
    names = served.features.names
    exact, errors = np.ones(len(X), dtype=np.bool_), np.zeros((len(X), len(names)))
    if estimates is not None:
        offset = estimates.score
        parts, errors, exact = estimates.attribute(X)
    else:
        found = _contributions(served, X)
        assert found is not None
        parts, offset = found, ranker.offset_  # comes with `contributions`
    if served.labels is not None:
        scores, parts = scores[:, position], parts[..., position]
        offset = ranker.offset_[position]
    derived = options.columns(served, scores)
    return [
        {
            "score": float(scores[i]),
            "fpr": None if fprs is None else float(fprs[i]),
            "tpr": None if tprs is None else float(tprs[i]),
            **{
                name: None if column is None else float(column[i])
                for name, column in derived.items()
            },
            "offset": float(offset),
            "contributions": dict(zip(names, parts[i].tolist(), strict=True)),
            "method": CONTRIBUTIONS if estimates is None else reasons.ROWS,
            "exact": bool(exact[i]),
            "errors": None if exact[i] else dict(zip(names, errors[i].tolist(), strict=True)),
        }
        for i in range(len(X))
    ]


@contextmanager
def _dates_in_words(served: Served) -> Iterator[None]:
    """Make the ranker describe conditions on dates as dates, not as seconds."""
    from core.explain.conditions import spelling_numbers

    known = zip(served.features.names, served.features.types, strict=True)
    with spelling_numbers({name: spell_date for name, kind in known if kind == DATETIME}):
        yield


def picture(served: Served, title: str) -> str:
    """Return the model as a self-contained SVG document. Raises Invalid unless the ranker is a tree."""
    from app.scoring.program_picture import draw_program
    from app.scoring.tree_picture import draw_tree
    from core.martirank.martirank import ProgramRanker
    from core.treerank import TreeRank

    ranker = served.ranker
    with _dates_in_words(served):
        if isinstance(ranker, TreeRank):
            return draw_tree(ranker.named_tree(), title)
        if isinstance(ranker, ProgramRanker):
            return draw_program(ranker, title)
    raise _not_a_tree(served, "svg")


def text(served: Served) -> str:
    """Return the model as lines of text. Raises Invalid unless the ranker is a tree."""
    write = getattr(served.ranker, "to_text", None)
    if write is None:
        raise _not_a_tree(served, "text")
    with _dates_in_words(served):
        lines: str = write()
    return lines


def _not_a_tree(served: Served, format: str) -> Invalid:
    """Return the error for a format that only trees support."""
    detail = (
        f"format {format} is available only for single ranking trees; this is a "
        f"{type(served.ranker).__name__}: use json"
    )
    errors = [{"parameter": "format", "detail": detail}]
    return Invalid(detail, code="not_a_tree", errors=errors)


def structure(served: Served) -> dict[str, Any]:
    with _dates_in_words(served):
        described = served.ranker.structure()
    if served.labels is not None:
        named = zip(served.labels, described["labels"], strict=True)
        described["labels"] = [{"label": name, **label} for name, label in named]
    return described


def score_body(
    served: Served,
    body: bytes | pa.Buffer,
    table: Format,
    options: TableOptions,
    bounds: Bounds,
    *,
    may_lack_header: bool = False,
) -> RowScores:
    """Raises Invalid and BadTable with all errors of the table."""
    how = (table, served.columns, options, served.table_dialect, bounds)
    reader, source = read_body(body, *how, may_lack_header=may_lack_header)
    blocks = list(_score_blocks(served, reader, source))
    return join_scores(served, blocks, with_ids=bool(options.keep))


def join_scores(
    served: Served, blocks: Sequence[RowScores], *, with_ids: bool = False
) -> RowScores:
    """Without blocks, the result has no rows."""
    import pyarrow as pa

    if len(blocks) == 1:
        return blocks[0]
    if not blocks:
        none = served.score_identified(np.empty((0, len(served.columns.names))), None)
        return none._replace(ids=pa.array([], pa.string())) if with_ids else none
    scores, fprs, tprs, reasons, ids, decisions = zip(*blocks, strict=True)
    known = [each for each in reasons if each is not None]
    joined = Reasons.join(known) if known else None
    named = None if ids[0] is None else pa.concat_arrays(ids)
    made = Decisions.join(decisions)
    return RowScores(np.concatenate(scores), _join(fprs), _join(tprs), joined, named, made)


def _score_blocks(served: Served, reader: RowReader, source: Source) -> Iterator[RowScores]:
    for batch in reader.batches(source):
        for X, ids in batch.identified(len(served.columns.names)):
            yield served.score_identified(X, ids)


def _join(blocks: tuple[Floats | None, ...]) -> Floats | None:
    known = [block for block in blocks if block is not None]
    return np.concatenate(known) if known else None
