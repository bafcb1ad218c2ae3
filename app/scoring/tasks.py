"""The batch score job: reads a model's artifact and rows, and writes a Parquet file of scores."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired

import numpy as np
from typing_extensions import TypedDict

from app.datasets.matrices import Floats
from app.datasets.tasks import Bytes, Limits, find_to_read, limits, lock_inputs
from app.ingest.formats import PARQUET
from app.ingest.rows import ERRORS_IN_CELLS, Source
from app.jobs.execution import complete_output
from app.jobs.kinds import Claim, Docs, JobKind, PublishedOutput, Routes, Work
from app.jobs.progress import Callback
from app.models import calibrations, curves, operating_points
from app.models import repository as model_repository
from app.models import service as models
from app.models.artifacts import load_ranker
from app.models.calibrations import CalibrationFile
from app.models.service import AliasFeedback
from app.platform.blobs import BlobKey, Publisher
from app.platform.documents import AliasCutoff, BatchSummary, ModelFeature
from app.platform.errors import Invalid, terse_detail
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import Json, Session, db_now
from app.platform.tables import BatchScore, DecisionSegment, Model
from app.scoring.batch import (
    BATCH_SCORE,
    BATCH_SCORES,
    CUTOFF,
    DICTIONARY,
    FEEDBACK,
    PROBABILITY_OPTIONS,
    REASON_OPTIONS,
    ROW_COLUMN,
    SCORE_COLUMNS,
    score_names,
    unread_columns,
)
from app.scoring.batch_drift import DriftMonitor, DriftReference, find_reference
from app.scoring.decisions import (
    DECISION_ID,
    REVIEW,
    Common,
    Decisions,
    DecisionStream,
    Piece,
    Recorder,
    Recording,
    SegmentFile,
)
from app.scoring.decisions import KIND as DECISIONS
from app.scoring.features import FeatureIndex
from app.scoring.probabilities import ProbabilityOptions
from app.scoring.reader import FeatureReader
from app.scoring.reasons import (
    ReasonOptions,
    Reasons,
    SourcesFile,
    as_arrow,
    make_reasoner,
    read_sources,
    write_sources,
)
from app.scoring.service import FLAG, Served, rank
from app.scoring.summary import MAX_IGNORED, N_FIRST, HistogramBuilder, first_rows
from app.scoring.table_rows import ALL, ID, Batch, RowReader, TableOptions, ids_of

if TYPE_CHECKING:
    import pyarrow as pa

    from app.ingest.rows import Source
    from app.scoring.kept_columns import ColumnForm


SCORES = "scores"
SCORE = SCORE_COLUMNS[0]
RESULT_FILE, DECISIONS_FILE = "scores.parquet", "decisions.parquet"
MAX_HELD_VALUES = 5_000_000
_CURVE_FILE = "model.curve"
_READ_AS_NUMBERS = ("boolean", "datetime")  # numbers in a dataset's own table, which is typed


class ReasonsFile(TypedDict):
    """The options of the requested reasons, and the stored data to compute them."""

    options: Json
    sources: SourcesFile


class RecordedAlias(TypedDict):
    """An alias whose decisions are recorded: owner, settings (`AliasFeedback`), and the batch score's id as request."""

    owner: str
    feedback: Json
    batch_score_id: str


class RecordedDecisions(TypedDict):
    """The file of decisions, its hash, and the columns of its segment."""

    file: str
    sha256: str
    segment: Json


class ScoringModel(TypedDict):
    """The model of a batch score; `path` and `curve` are files."""

    id: str
    sha256: str
    path: str
    features: list[ModelFeature]
    labels: list[str] | None
    curve: str | None
    calibration: CalibrationFile | None
    cutoff: AliasCutoff | None
    reasons: ReasonsFile | None


class ScoredTable(Bytes):
    """A table to score. A dataset's is `typed`, without tokens for missing values; an uploaded one has a `dialect`, and
    `inherited` fields of the training table's, which apply if they fit.
    """

    dialect: NotRequired[Json | None]
    inherited: NotRequired[Json]
    missing: Sequence[str] | None
    typed: bool
    read_options: Json
    probability: Json


class ScoringPayload(Work, ScoredTable):
    """The payload of the fit process. `keep` has the form of each copied column. Columns in `unread` are allowed.
    `terse`: error messages hide the values of rows.
    """

    model: ScoringModel
    limits: Limits
    terse: bool
    keep: dict[str, ColumnForm | None]
    unread: list[str]
    reference: DriftReference
    recorded: RecordedAlias | None


class ScoringResult(Work):
    """The file of scores, its hash, and its summary."""

    file: str
    sha256: str
    bytes: int
    rows: int
    columns: list[Json]
    summary: BatchSummary
    drift: Json
    decisions: RecordedDecisions | None


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> ScoringPayload:
    """Return the paths of artifact, curve and rows, and the options for reading rows."""
    batch = BATCH_SCORES.find_to_make(session, claim)
    model = models.find_to_read(session, claim.owner, batch.model_id)
    described = _model(session, model, batch, workdir)
    table, forms = _table(session, batch, model)
    return {
        "workdir": str(workdir),
        "model": described,
        "limits": limits(settings)
        if not table["typed"]
        else {**limits(settings), "bytes": settings.max_dataset_bytes},
        "terse": settings.terse_errors,
        "keep": forms,
        "unread": unread_columns(session, model),
        "reference": find_reference(
            session, model, operating_points.flag_threshold(batch.read_options.get(CUTOFF))
        ),
        "recorded": _recorded(batch),
        **table,
    }


def _recorded(batch: BatchScore) -> RecordedAlias | None:
    """Return the alias whose decisions are recorded, as of the request."""
    feedback = batch.read_options.get(FEEDBACK)
    if feedback is None:
        return None
    return {"owner": batch.owner, "feedback": feedback, "batch_score_id": batch.id}


def _model(session: Session, model: Model, batch: BatchScore, workdir: Path) -> ScoringModel:
    curve = model_repository.find_curve(session, model.id, models.VALIDATION)
    if curve is not None:
        curves.write_curve(workdir / _CURVE_FILE, curves.curve_of(curve))
    found = calibrations.find_served(session, model)
    return {
        "id": model.id,
        "sha256": model.artifact_sha256,
        "path": BlobKey(model.artifact_key),
        "features": model.features,
        "labels": None if model.labels is None else [label["name"] for label in model.labels],
        "curve": None if curve is None else _CURVE_FILE,
        "calibration": None if found is None else calibrations.write_file(found, workdir),
        "cutoff": batch.read_options.get(CUTOFF),
        "reasons": _reasons(session, model, batch.read_options, workdir),
    }


def _reasons(
    session: Session, model: Model, read_options: Json, workdir: Path
) -> ReasonsFile | None:
    """Use the reason codes of the time of the request; None without reasons."""
    if (options := read_options.get(REASON_OPTIONS)) is None:
        return None
    codes = None
    if (revision := read_options[DICTIONARY]) is not None:
        codes = model_repository.find_reason_codes(session, model.owner, model.name, revision)
        if codes is None:
            detail = (
                f"revision {revision} of the reason codes of {model.name} was deleted: create the batch score "
                "again"
            )
            raise Invalid(detail, code="no_reason_codes")
    entries = [] if codes is None else codes.entries
    return {"options": options, "sources": write_sources(session, model, entries, workdir)}


def _table(
    session: Session, batch: BatchScore, model: Model
) -> tuple[ScoredTable, dict[str, ColumnForm | None]]:
    """Return the table, and the form of each column to copy."""
    from app.scoring.kept_columns import form_of

    options = TableOptions.from_json(batch.read_options)
    if batch.upload_key is not None:
        dialect = options.dialect_of(model.table_dialect)
        read: ScoredTable = {
            "path": BlobKey(batch.upload_key),
            "content_type": batch.content_type or "",
            "content_encoding": batch.content_encoding,
            "dialect": dialect.dialect,
            "inherited": options.inherited_of(model.table_dialect),
            "missing": options.tokens_of(model.table_dialect),
            "typed": False,
            "read_options": batch.read_options,
            "probability": batch.read_options[PROBABILITY_OPTIONS],
        }
        return read, dict.fromkeys(options.keep)
    dataset = find_to_read(session, batch.owner, batch.dataset_id)
    read = {
        "path": BlobKey(dataset.table_key or ""),
        "content_type": PARQUET,
        "content_encoding": None,
        "missing": [],
        "typed": True,
        "read_options": TableOptions(
            ignore=(ALL,), keep=options.keep, top=options.top, id=options.id
        ).as_json(),
        "probability": batch.read_options[PROBABILITY_OPTIONS],
    }
    return read, {name: form_of(dataset, name) for name in options.keep}


def run(payload: ScoringPayload, callback: Callback) -> ScoringResult:
    """Only computes, on the files that the payload names."""
    try:
        return _run(payload, callback)
    except Invalid as error:
        if payload["terse"]:
            error.detail, error.errors = terse_detail(error.title), []
        raise


def _run(payload: ScoringPayload, callback: Callback) -> ScoringResult:
    import pyarrow as pa

    from app.ingest.arrow import drop_unused_words
    from app.ingest.readers import open_source
    from app.ingest.value_columns import MissingTokens
    from app.ingest.writer import ROW_GROUP, TableWriter
    from app.scoring.kept_columns import kept_fields, write_as

    workdir, model = Path(payload["workdir"]), payload["model"]
    served = _load(model, workdir, typed=payload["typed"])
    missing = MissingTokens(payload["missing"])
    options = TableOptions.from_json(payload["read_options"])
    max_rows, unread = payload["limits"]["rows"], payload["unread"]
    path = workdir / RESULT_FILE

    with ExitStack() as stack:
        recording = _begin_recording(payload, served, stack)
        columns = served.features if recording is None else recording.columns.noting()
        time = _reader_of_times(payload["reference"], served)
        reader = RowReader(columns, options, missing, max_rows, unread, time)
        source = open_source(payload, stack, missing)
        fields = kept_fields(source, payload["keep"])
        if options.id is not None:
            fields[0] = fields[0].with_name(ID)
        kept_names = [each.name for each in fields]
        probability = ProbabilityOptions.from_json(payload["probability"])
        # a kept column takes precedence over one of the same name
        added = [name for name in probability.names_of(served) if name not in kept_names]
        names = (*score_names(served.labels), *added)
        numbered = ROW_COLUMN not in (*kept_names, *names)
        fields += [pa.field(ROW_COLUMN, pa.int64())] if numbered else []
        fields += [pa.field(name, pa.float64()) for name in names]
        flagged = served.flag_threshold is not None and FLAG not in kept_names
        if served.reasoner is not None:
            fields += _reason_fields(served.reasoner.options)
        fields += [pa.field(FLAG, pa.bool_())] if flagged else []
        decided: list[str] = []
        if recording is not None:
            decided = [name for name in (DECISION_ID, REVIEW) if name not in kept_names]
            kinds = {DECISION_ID: pa.string(), REVIEW: pa.bool_()}
            fields += [pa.field(name, kinds[name]) for name in decided]
        count_flagged = 0
        writer = stack.enter_context(TableWriter(path, fields))
        best, deferred = None, _defers_reasons(served, options.top)
        scorer = replace(served, reasoner=None) if deferred else served
        monitor = DriftMonitor(payload["reference"], served)
        progress = ScoringProgress(callback, source, reasons_last=deferred)
        if served.reasoner is not None:
            served.reasoner.tick = progress.tick
        if served.labels is None:
            held = fields if not deferred else _held_fields(served, fields)
            best = BestRows(options.top or N_FIRST, pa.schema(held))
        histograms = [HistogramBuilder() for _ in served.labels or [SCORE]]
        for batch in reader.batches(source):
            progress.begin(batch.size)
            count = progress.rows
            kept = [
                write_as(column, form)
                for column, form in zip(batch.kept, payload["keep"].values(), strict=True)
            ]
            blocks = batch.blocks(len(columns.names))
            if deferred or recording is not None:
                blocks = iter(parts := [X.copy() for X in blocks])
            scores = _score(scorer, blocks, probability, added)
            for histogram, column in zip(histograms, scores, strict=False):
                histogram.add(column.to_numpy())
            monitor.add(batch, scores[0].to_numpy() if served.labels is None else None)
            for flags in served.flags(scores[0].to_numpy()).values():
                count_flagged += int(flags.sum())
                scores += [pa.array(flags)] if flagged else []
            if recording is not None:
                made = _record(recording, served, parts, scores[0].to_numpy(), batch, options)
                scores += [made[name] for name in decided]
            numbers = [pa.array(np.arange(count, count + batch.size) + 1)] if numbered else []
            row = [*kept, *numbers, *scores]
            row += [_held_values(parts, served)] if deferred else []
            if best is not None:
                best.add(row)
            if options.top is None:
                writer.write(row)
            progress.end()
        first_table = None if best is None else best.table()
        if first_table is not None and deferred:
            progress.begin(first_table.num_rows, last=True)
            first_table = _add_reasons(first_table, served, fields)
        if first_table is not None and options.top is not None:
            for part in first_table.to_batches(max_chunksize=ROW_GROUP):
                writer.write([drop_unused_words(column) for column in part.columns])
        ignored = [] if payload["typed"] else reader.unread(source.names)[:MAX_IGNORED]
    names_of_first, first = ([], None) if first_table is None else first_rows(first_table)
    cutoff = served.flag_threshold
    summary: BatchSummary = {
        "scores": [
            histogram.describe(name)
            for histogram, name in zip(histograms, served.labels or [SCORE], strict=True)
        ],
        "flagged": None if cutoff is None else count_flagged,
        "threshold": cutoff if cutoff is not None and np.isfinite(cutoff) else None,
        "ignored": ignored,
        "warnings": [*columns.warnings(), *_warnings_of_cells(source, columns)],
        "columns": names_of_first,
        "first": first,
    }
    if recording is not None:
        recording.close()
    return {
        "workdir": str(workdir),
        "file": RESULT_FILE,
        "sha256": _sha256_of(path),
        "bytes": path.stat().st_size,
        "rows": progress.rows,
        "columns": [{"name": field.name, "type": str(field.type)} for field in fields],
        "summary": summary,
        "drift": monitor.describe(),
        "decisions": None if recording is None else recording.describe(),
    }


def _reader_of_times(reference: DriftReference, served: Served) -> FeatureReader | None:
    """Return how the training table's column of times is read; None without one."""
    name, kind = reference["profile"]["time"], reference["profile"]["time_type"]
    if name is None or kind is None:
        return None
    return FeatureReader(name, kind, None, served.features.codes, served.features.notation)


def _warnings_of_cells(source: Source, columns: FeatureIndex) -> list[dict[str, str]]:
    return [
        {"code": ERRORS_IN_CELLS, "feature": name, "detail": cells.detail}
        for name, cells in source.error_cells.items()
        if name in columns.names
    ]


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class BatchRecording:
    """The decisions of a batch score, which become a segment of their own."""

    def __init__(
        self, recorded: RecordedAlias, served: Served, path: Path, types: list[str]
    ) -> None:
        self._feedback = AliasFeedback(**recorded["feedback"])
        self._path, self._at = path, time.time()
        self._batch_score_id = recorded["batch_score_id"]
        recorder = Recorder(recorded["owner"], self._feedback, served, self, types)
        self.columns = recorder.columns
        self._file = SegmentFile(path, recorder.stream.features)
        common = Common(self._at, None, "batch", self._batch_score_id)
        self._recording = Recording(recorder, common)

    def append(self, stream: DecisionStream, piece: Piece, *, wait: bool = False) -> None:
        self._file.append(stream, piece)

    def add(
        self, served: Served, blocks: Sequence[Floats], scores: Floats, ids: pa.Array | None
    ) -> Decisions:
        """Make and write decisions about the rows of some blocks."""
        X = np.concatenate(blocks)
        named = None if ids is None else ids.to_pylist()
        made = self._recording.add(served, X, scores, named)
        self._recording.commit()
        return made

    def close(self) -> None:
        self._file.close()

    def describe(self) -> RecordedDecisions:
        """The attempts of a job write one segment together."""
        return {
            "file": self._path.name,
            "sha256": _sha256_of(self._path),
            "segment": {
                "name": self._feedback.name,
                "alias": self._feedback.alias,
                "log_id": self._batch_score_id,
                "first_sequence": 1,
                "last_sequence": self._file.rows,
                "origin": "batch",
                "first_at": self._at,
                "last_at": self._at,
                "rows": self._file.rows,
                "lost": 0,
            },
        }


def _begin_recording(
    payload: ScoringPayload, served: Served, stack: ExitStack
) -> BatchRecording | None:
    """Return None if decisions are not recorded."""
    if payload["recorded"] is None:
        return None
    types = [feature["type"] for feature in payload["model"]["features"]]
    path = Path(payload["workdir"]) / DECISIONS_FILE
    recording = BatchRecording(payload["recorded"], served, path, types)
    stack.callback(recording.close)
    return recording


def _record(
    recording: BatchRecording,
    served: Served,
    blocks: Sequence[Floats],
    scores: Floats,
    batch: Batch,
    options: TableOptions,
) -> dict[str, pa.Array]:
    """Record the decisions about a batch; returns their columns of the result."""
    import pyarrow as pa

    if not blocks:
        return {DECISION_ID: pa.array([], pa.string()), REVIEW: pa.array([], pa.bool_())}
    ids = None if options.id is None else ids_of(batch.kept[0])
    made = recording.add(served, blocks, scores, ids).columns()
    return {name: as_arrow(column) for name, column in made.items()}


class ScoringProgress:
    """Reports the fraction of the table that was read; within a block, only rows whose reasons are computed count.

    A small table is read at once, as one block, whose reasons may take minutes. `reasons_last`: reasons come after all
    scores, and are the other half of the work. `rows` counts the rows of finished blocks.
    """

    def __init__(self, callback: Callback, source: Source, *, reasons_last: bool) -> None:
        self._callback, self._source, self._parts = callback, source, 1 + reasons_last
        self.rows = 0
        self._block, self._done, self._before = 0, 0, 0
        self._last = False

    def begin(self, n_rows: int, *, last: bool = False) -> None:
        """The `last` block only adds reasons to rows that are already scored."""
        self._block, self._done, self._last = n_rows, 0, last

    def tick(self, n_rows: int) -> None:
        """Report that the reasons of `n_rows` more rows of the block are computed."""
        self._done += n_rows
        read, whole = self._source.progress()
        read += whole if self._last else 0
        done = self._before + (read - self._before) * self._done // max(self._block, 1)
        metrics = {"rows": self.rows + (0 if self._last else self._done)}
        metrics |= {"rows with reasons": self._done} if self._last else {}
        self._callback(done, self._parts * whole, metrics)

    def end(self) -> None:
        """Report that the block is scored."""
        self.rows += self._block
        self._before, whole = self._source.progress()
        self._callback(self._before, self._parts * whole, {"rows": self.rows})


def _defers_reasons(served: Served, top: int | None) -> bool:
    """Return True to compute reasons at the end, for the result's rows only, if their features fit in memory."""
    n_features = len(served.features.names)
    return served.reasoner is not None and top is not None and top * n_features <= MAX_HELD_VALUES


def _held_fields(served: Served, fields: Sequence[pa.Field]) -> list[pa.Field]:
    """Return the fields in memory: those of the result without reasons, then the feature values."""
    import pyarrow as pa

    assert served.reasoner is not None
    names = served.reasoner.options.names
    values = pa.field("values", pa.list_(pa.float64(), len(served.features.names)))
    return [*(field for field in fields if field.name not in names), values]


def _held_values(blocks: Sequence[Floats], served: Served) -> pa.Array:
    import pyarrow as pa

    X = np.concatenate(blocks)[:, : len(served.features.names)]
    return pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])


def _add_reasons(held: pa.Table, served: Served, fields: Sequence[pa.Field]) -> pa.Table:
    """Replace the last column, the feature values, by reasons."""
    import pyarrow as pa

    assert served.reasoner is not None
    X = held.column(held.num_columns - 1).combine_chunks().flatten().to_numpy()
    X = np.ascontiguousarray(X.reshape(held.num_rows, len(served.features.names)))
    reasons = served.reasoner.of(X, held.column(SCORE).to_numpy())
    added = dict(zip(served.reasoner.options.names, _reason_columns([reasons]), strict=True))
    columns = [added[f.name] if f.name in added else held.column(f.name) for f in fields]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


class BestRows:
    """Collects the rows with the highest scores, best first; of equal scores, the earlier rows.

    Memory holds at most three times as many rows as the result, and only the texts of these rows. Adding n rows takes
    O(n), and O(k log k) after every k rows that may be among the best.
    """

    def __init__(self, top: int, schema: pa.Schema) -> None:
        self._top, self._schema = top, schema
        self._waiting: list[pa.RecordBatch] = []
        self.rows_held = 0
        self._worst = -np.inf

    def add(self, arrays: list[pa.Array]) -> None:
        """Add a batch with the columns of the schema, one of which is `score`."""
        import pyarrow as pa

        from app.ingest.arrow import drop_unused_words

        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        scores = batch.column(SCORE).to_numpy()
        # A later row never comes before an equal one.
        found = np.flatnonzero(scores > self._worst)
        if len(found) > self._top:
            found = np.sort(found[rank(scores[found], self._top)])
        if len(found) == 0:
            return
        columns = [drop_unused_words(column) for column in batch.take(pa.array(found)).columns]
        self._waiting.append(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self.rows_held += len(found)
        if self.rows_held > 2 * self._top:
            self.table()

    def table(self) -> pa.Table:
        import pyarrow as pa

        from app.ingest.arrow import drop_unused_words

        held = pa.Table.from_batches(self._waiting, self._schema).unify_dictionaries()
        scores = held.column(SCORE).to_numpy()
        order = rank(scores, self._top)
        parts = held.take(pa.array(order)).combine_chunks().to_batches()
        self._waiting = [
            pa.RecordBatch.from_arrays(
                [drop_unused_words(column) for column in part.columns], schema=self._schema
            )
            for part in parts
        ]
        best = pa.Table.from_batches(self._waiting, self._schema)
        self.rows_held = best.num_rows
        if self.rows_held == self._top:
            self._worst = float(scores[order[-1]])
        return best


def _load(model: ScoringModel, workdir: Path, *, typed: bool) -> Served:
    """For a typed table, booleans and dates are read as numbers."""
    ranker, _ = load_ranker(Path(model["path"]), model["sha256"])
    features = model["features"]
    if typed:
        features = [
            feature | ({"type": "numeric"} if feature["type"] in _READ_AS_NUMBERS else {})
            for feature in features
        ]
    curve = None
    if model["curve"] is not None:
        curve = curves.read_curve(workdir / model["curve"])
    index = FeatureIndex(features, ranker.categories_).noting()
    stored = model["calibration"]
    served = Served(
        model["id"],
        ranker,
        index,
        curve,
        model["sha256"],
        model["labels"],
        calibration=None if stored is None else calibrations.read_file(stored, workdir),
        flag_threshold=operating_points.flag_threshold(model["cutoff"]),
    )
    if (asked := model["reasons"]) is None:
        return served
    sources = read_sources(asked["sources"], workdir)
    types = [feature["type"] for feature in model["features"]]
    return replace(
        served,
        reasoner=make_reasoner(served, ReasonOptions(**asked["options"]), sources, None, types),
    )


def _score(
    served: Served,
    blocks: Iterator[np.ndarray[Any, Any]],
    options: ProbabilityOptions,
    added: Sequence[str],
) -> list[pa.Array]:
    """Return score, FPR, TPR and `added` columns (null without a curve or a calibration), or one score per label."""
    import pyarrow as pa

    scored = [served.score(X) for X in blocks]
    scores = np.concatenate([block.scores for block in scored])
    if served.labels is not None:
        return [pa.array(np.ascontiguousarray(column)) for column in scores.T]
    columns = options.columns(served, scores)
    return [
        pa.array(scores),
        _rates([block.fprs for block in scored], len(scores)),
        _rates([block.tprs for block in scored], len(scores)),
        *(_rates([columns[name]], len(scores)) for name in added),
        *_reason_columns([block.reasons for block in scored if block.reasons is not None]),
    ]


def _reason_columns(blocks: Sequence[Reasons]) -> list[pa.Array]:
    """Return no columns without reasons."""
    return (
        [as_arrow(column) for column in Reasons.join(blocks).as_columns().values()]
        if blocks
        else []
    )


def _reason_fields(options: ReasonOptions) -> list[pa.Field]:
    import pyarrow as pa

    texts = ("_code", "_text")
    return [
        pa.field(name, pa.string() if name.endswith(texts) else pa.float64())
        for name in options.names
    ]


def _rates(parts: Sequence[np.ndarray[Any, Any] | None], size: int) -> pa.Array:
    import pyarrow as pa

    known = [part for part in parts if part is not None]
    return pa.array(np.concatenate(known)) if known else pa.nulls(size, pa.float64())


def publish(blobs: Publisher, claim: Claim, result: ScoringResult) -> PublishedOutput:
    """Store the scores. An uploaded table is deleted once it is scored."""
    scores = blobs.publish(Path(result["workdir"]) / result["file"], SCORES, result["sha256"])
    columns = {
        "rows": result["rows"],
        "columns": result["columns"],
        "summary": result["summary"],
        "drift": result["drift"],
        "result_key": scores.key,
        "result_sha256": scores.sha256,
        "result_bytes": result["bytes"],
        "upload_key": None,
        "upload_bytes": None,
    }
    if result["decisions"] is None:
        return PublishedOutput(columns)
    made = result["decisions"]
    stored = blobs.publish(Path(result["workdir"]) / made["file"], DECISIONS, made["sha256"])
    segment = DecisionSegment(
        id=new_id("seg"),
        owner=claim.owner,
        segment_key=stored.key,
        segment_bytes=stored.bytes,
        sealed_at=db_now(),
        final_at=db_now(),
        **made["segment"],
    )
    return PublishedOutput(columns, [segment])


def _routes() -> Routes:
    from app.scoring.schemas import BatchScore, batch_score_of

    return Routes(
        path="/v1/batch-scores",
        tag="scoring",
        shape=BatchScore,
        show=batch_score_of,
        reads="score",
        writes="score",
        list_docs=Docs(
            "List batch scores",
            "Return the owner's batch scores, in the order of `sort`.",
        ),
        read_docs=Docs(
            "Read a batch score",
            "Return the batch score and its status. If it is `ready`, it has the columns of its result; "
            "if it `failed`, the reason.",
        ),
        delete_docs=Docs(
            "Delete a batch score",
            "Permanently delete the batch score and its result. Returns 409 while its job is unfinished.",
        ),
    )


KIND = JobKind(
    name=BATCH_SCORE,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete_output,
    output=BATCH_SCORES,
    before_retry=lock_inputs,
    routes=_routes,
)
