"""Batch scores: tables too large for one request. Validates the request and submits a job."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.datasets import service as datasets
from app.datasets.description import Format
from app.datasets.protected import protected_columns_of
from app.datasets.repository import find_alone
from app.datasets.service import lock_datasets, missing_features, ready_dataset
from app.ingest.errors import show
from app.ingest.formats import XLSX
from app.jobs import service as jobs
from app.jobs.kinds import Output, status_of
from app.models import repository
from app.models.service import ResolvedModel, find_named, find_to_use
from app.platform.documents import BatchSummary
from app.platform.errors import Conflict, Invalid, TooLarge
from app.platform.settings import Settings
from app.platform.sql import Json, Reading, Session
from app.platform.tables import BatchScore, Dataset, Model
from app.scoring.probabilities import DEFAULT, ProbabilityOptions
from app.scoring.reasons import ReasonOptions, prepare, stored_references
from app.scoring.reasons import check_options as check_reason_options
from app.scoring.service import ModelCache
from app.scoring.summary import MAX_IGNORED
from app.scoring.table_rows import (
    FILE_NAME,
    ID,
    TableOptions,
    bounds_of,
    check_options,
    read_body,
    read_workbook,
    tidy_name,
)

BATCH_SCORE = "batch_score"
"""The kind of job that scores a table."""

BATCH_SCORES = Output(BatchScore, "bat", "batch score")

SCORE_COLUMNS = ("score", "fpr", "tpr")
PROBABILITY_OPTIONS = "probability"
"""Key of the `ProbabilityOptions` among the options that a batch score keeps."""
ROW_COLUMN = "row_number"
"""The number of each row in its table: 1 is the first row below the header."""
REASON_OPTIONS, DICTIONARY = "reasons", "dictionary"
"""Keys of the `ReasonOptions`, and of the revision of the reason codes."""
CUTOFF = "cutoff"
"""Key of the cutoff of the alias, if the alias has a guarantee."""
FEEDBACK = "feedback"
"""Key of the feedback settings of the alias, if its decisions are recorded."""
_DROPPED = "dropped"
NOTHING_KEPT = TableOptions()


@dataclass(frozen=True)
class UploadRequest:
    """A table to score: the model, and the `TableOptions` as JSON. Idempotency-Keys hash the names of the fields."""

    model: str
    terms: Json


@dataclass(frozen=True)
class _SentRows:
    """The rows to score (a dataset or an upload), and the model reference in the request."""

    ref: str
    upload: datasets.StoredUpload | None = None
    file_name: str | None = None
    dataset: Dataset | None = None


def unread_columns(session: Session, model: Model) -> list[str]:
    """Return the columns that rows may have although they are not read: labels, and others such as a group."""
    labels = _labels(model) or [name for name in (model.label,) if name is not None]
    dataset = find_alone(session, model.owner, model.dataset_id)
    features = {feature["name"] for feature in model.features}
    columns = [] if dataset is None else [column["name"] for column in dataset.columns]
    columns += protected_columns_of(model)  # also if the dataset was deleted
    return list(dict.fromkeys([*labels, *(name for name in columns if name not in features)]))


def score_names(labels: list[str] | None) -> tuple[str, ...]:
    return SCORE_COLUMNS if labels is None else tuple(labels)


def check_dataset(
    session: Session,
    owner: str,
    ref: str,
    dataset_id: str,
    kept: TableOptions,
    options: ProbabilityOptions,
    reasons: ReasonOptions | None = None,
    *,
    lock: bool = False,
) -> tuple[ResolvedModel, Dataset]:
    """Check that the model can score the dataset. Raises NotFound, Conflict or Invalid. `lock` locks both."""
    found = (find_to_use if lock else find_named)(session, owner, ref, {"pointer": "/model"})
    model = found.model
    if lock:
        lock_datasets(session, owner, dataset_id)
    dataset = ready_dataset(session, owner, dataset_id, {"pointer": "/dataset_id"})
    if (missing := missing_features(model.features, dataset)) is not None:
        detail = f"dataset {dataset.id} {missing}, which {model.name}:{model.version} needs"
        raise _invalid("pointer", "/dataset_id", detail, "unknown_column")
    there = {column["name"] for column in dataset.columns if column["role"] != _DROPPED}
    n_ids = int(kept.id is not None)
    for place, name in enumerate(kept.keep, -n_ids):
        if name not in there:
            detail = f"dataset {dataset.id} has no stored column {show(name)}"
            at = "/id" if place < 0 else f"/keep/{place}"
            raise _invalid("pointer", at, detail, "unknown_column")
    _check_results(_name(model), _labels(model), kept, options, reasons, "pointer", "/")
    _check_reasons(session, found, reasons, "pointer", "/")
    return found, dataset


def submit(
    session: Session,
    settings: Settings,
    owner: str,
    ref: str,
    dataset_id: str,
    kept: TableOptions = NOTHING_KEPT,
    options: ProbabilityOptions = DEFAULT,
    reasons: ReasonOptions | None = None,
) -> BatchScore:
    """Create the batch score of a dataset and its job in the caller's transaction."""
    found, dataset = check_dataset(
        session, owner, ref, dataset_id, kept, options, reasons, lock=True
    )
    given = _SentRows(ref, dataset=dataset)
    return _insert(session, settings, found, kept, options, reasons, given)


def accept(
    session: Session,
    settings: Settings,
    owner: str,
    request: UploadRequest,
    upload: datasets.StoredUpload,
    file_name: str | None = None,
) -> BatchScore:
    """Create the batch score of an upload, durable when the transaction ends, and its job.

    `file_name` is that of a form; a file name in the request takes precedence.
    """
    found = find_to_use(session, owner, request.model, {"parameter": "model"})
    options = check_options(TableOptions.from_json(request.terms), upload.format)
    options.dialect_of(found.model.table_dialect)  # raises if the separators contradict each other
    probability = ProbabilityOptions.from_json(request.terms[PROBABILITY_OPTIONS])
    reasons = ReasonOptions.from_json(request.terms.get(REASON_OPTIONS))
    _check_results(
        _name(found.model), _labels(found.model), options, probability, reasons, "parameter", ""
    )
    _check_reasons(session, found, reasons, "parameter", "")
    given = _SentRows(request.model, upload, request.terms.get(FILE_NAME) or tidy_name(file_name))
    return _insert(session, settings, found, options, probability, reasons, given)


def find_unread(session: Session, owner: str, ref: str) -> list[str]:
    """Return the `unread_columns` of the model. Raises NotFound."""
    return unread_columns(session, find_named(session, owner, ref, {"parameter": "model"}).model)


def _name(model: Model) -> str:
    return f"{model.name}:{model.version}"


def _labels(model: Model) -> list[str] | None:
    return None if model.labels is None else [label["name"] for label in model.labels]


def _check_reasons(
    session: Session,
    found: ResolvedModel,
    options: ReasonOptions | None,
    key: str,
    place: str,
) -> None:
    """Raise Invalid for requested reasons that the model cannot give."""
    if options is None:
        return
    model = found.model
    try:
        check_reason_options(
            options,
            labels=model.labels is not None,
            cutoff=found.cutoff is not None,
            references=stored_references(session, model),
        )
    except Invalid as error:
        at = f"{place}{error.errors[0]['parameter']}"
        raise _invalid(key, at, error.detail, error.code) from error


def _check_results(
    model: str,
    labels: list[str] | None,
    kept: TableOptions,
    options: ProbabilityOptions,
    reasons: ReasonOptions | None,
    key: str,
    place: str,
) -> None:
    """Raise Invalid if the result cannot have the requested columns; `place` is a prefix of fields in the error."""
    if kept.top is not None and labels is not None:
        detail = f"top requires a model with one score per row; {model} has {len(labels)}"
        raise _invalid(key, f"{place}top", detail, "invalid_parameter")
    taken = {*score_names(labels), *(options.names if options.asked and labels is None else ())}
    if reasons is not None:
        taken |= {*reasons.names}
    names = list(kept.keep)
    if kept.id is not None:
        names.remove(kept.id)
        if kept.id in names or ID in (*names, *taken):
            detail = (
                f"the result has the ids in the column {ID!r}: no other column can have this name, so keep "
                "cannot include it"
            )
            raise _invalid(key, f"{place}{ID}", detail, "column_in_two_roles")
    for name in names:
        if name in taken:
            detail = (
                f"keep cannot include a column with the name of a score column, got {show(name)}"
            )
            raise _invalid(key, f"{place}keep", detail, "column_in_two_roles")


def _invalid(key: str, place: str, detail: str, code: str) -> Invalid:
    return Invalid(detail, code=code, errors=[{key: place, "detail": detail}])


def _insert(
    session: Session,
    settings: Settings,
    found: ResolvedModel,
    options: TableOptions,
    probability: ProbabilityOptions,
    reasons: ReasonOptions | None,
    given: _SentRows,
) -> BatchScore:
    model, dataset, upload = found.model, given.dataset, given.upload
    kept: dict[str, Any] = {PROBABILITY_OPTIONS: probability.as_json(), CUTOFF: found.cutoff}
    if found.feedback is not None:
        kept[FEEDBACK] = found.feedback._asdict()
    if reasons is not None:
        codes = repository.find_reason_codes(session, model.owner, model.name)
        kept[REASON_OPTIONS] = reasons.as_json()
        kept[DICTIONARY] = None if codes is None else codes.revision
    job = jobs.enqueue(
        session,
        settings,
        owner=model.owner,
        kind=BATCH_SCORE,
        name=model.name,
        spec={"batch_score_id": BATCH_SCORES.new_id()},
        dataset_id=None if dataset is None else dataset.id,
        adds_bytes=0 if upload is None else upload.size,
    )
    return BATCH_SCORES.insert(
        session,
        job,
        model_id=model.id,
        model_name=model.name,
        model_version=model.version,
        dataset_id=None if dataset is None else dataset.id,
        dataset_name=None if dataset is None else dataset.name,
        content_type=None if upload is None else upload.format.content_type,
        content_encoding=None if upload is None else upload.format.content_encoding,
        upload_key=None if upload is None else upload.blob.key,
        upload_bytes=None if upload is None else upload.size,
        read_options=options.as_json() | kept,
        file_name=given.file_name,
        alias=given.ref.partition("@")[2] or None,
    )


def check(
    reading: Reading,
    cache: ModelCache,
    settings: Settings,
    owner: str,
    request: UploadRequest,
    upload: Path,
    table: Format,
) -> Json:
    """Read a table as its job would, without storing anything. Raises Invalid and BadTable with every error.

    It runs in the API's process, so it has the limits of a POST to score.
    """
    size = upload.stat().st_size
    if size > settings.max_body_bytes:
        raise TooLarge(
            f"a table to check can have at most {settings.max_body_bytes} bytes "
            f"(RANKWRIGHT_MAX_BODY_BYTES), got {size}"
        )
    served = cache.find(owner, request.model)
    unread = reading(find_unread, owner, request.model)
    options = check_options(TableOptions.from_json(request.terms), table)
    probability = ProbabilityOptions.from_json(request.terms[PROBABILITY_OPTIONS])
    reasons = ReasonOptions.from_json(request.terms.get(REASON_OPTIONS))
    _check_results(request.model, served.labels, options, probability, reasons, "parameter", "")
    if reasons is not None:
        prepare(reading, owner, served, reasons)
    how = (table, served.features, options, served.table_dialect, bounds_of(settings, size), unread)
    with ExitStack() as stack:
        if table.content_type == XLSX:
            reader, source = read_workbook(upload, *how, stack)
        else:
            reader, source = read_body(upload.read_bytes(), *how)
        count = sum(batch.size for batch in reader.batches(source))
    return {
        "valid": True,
        "rows": count,
        "ignored": reader.unread(source.names)[:MAX_IGNORED],
        "sheet": source.sheet,
        "sheets": source.sheets,
    }


def summary(session: Session, owner: str, batch_id: str) -> tuple[BatchScore, BatchSummary]:
    """Raises Conflict until the job has succeeded."""
    batch = _find_ready(session, owner, batch_id)
    assert batch.summary is not None  # the summary is written with the result
    return batch, batch.summary


def drift(session: Session, owner: str, batch_id: str) -> tuple[BatchScore, Json]:
    """Raises Conflict until the job has succeeded."""
    batch = _find_ready(session, owner, batch_id)
    assert batch.drift is not None  # written with the result
    return batch, batch.drift


def _find_ready(session: Session, owner: str, batch_id: str) -> BatchScore:
    batch = BATCH_SCORES.find(session, owner, batch_id)
    if batch.result_key is None:
        raise Conflict(
            f"batch score {batch.id} must be ready to have a result, but is {status_of(batch)}",
            code="batch_score_not_ready",
        )
    return batch


def result(session: Session, owner: str, batch_id: str) -> tuple[BatchScore, str]:
    """Return the blob key of the scores. Raises Conflict until the job has succeeded."""
    batch = _find_ready(session, owner, batch_id)
    assert batch.result_key is not None
    return batch, batch.result_key
