"""/v1/batch-scores: tables too large for one request, scored by a job."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.access.authentication import GuardedRoute, check_count, check_reads, needs, records_reads
from app.datasets.service import StoredUpload
from app.datasets.uploads import (
    Received,
    TableRequest,
    TableRequestDep,
    UploadHandler,
    accept_upload,
    body_docs,
    field_docs,
)
from app.http.bodies import takes_body
from app.http.dependencies import (
    CallerDep,
    ContextDep,
    refuse_unknown,
)
from app.http.idempotency import validated
from app.http.openapi import names_resources
from app.http.responses import (
    MAX_SHEET_CELLS,
    MAX_SHEET_TEXT,
    StoredFile,
    etag_matches,
    parquet_as_csv,
    parquet_as_xlsx,
)
from app.ingest.fields import find_unknown
from app.ingest.formats import PARQUET, XLSX
from app.jobs.acceptance import JobCreation, JobResource
from app.jobs.kinds import PROCESSING, status_of
from app.platform.callers import Caller
from app.platform.errors import Invalid, Malformed, TooLarge, refuse_all
from app.platform.sql import Session
from app.platform.tables import BatchScore as BatchScoreRow
from app.scoring import batch as batch_scores
from app.scoring import table_rows
from app.scoring.batch import BATCH_SCORES, UploadRequest
from app.scoring.dependencies import ModelsDep, is_json, is_lenient
from app.scoring.probabilities import ProbabilityFields
from app.scoring.reasons import ReasonFields
from app.scoring.schemas import (
    BatchDrift,
    BatchScore,
    BatchScoreRequest,
    BatchSummary,
    ScoreTableCheck,
    batch_drift_of,
    batch_score_of,
)
from app.scoring.table_rows import BatchFields, TableOptions

PATH = "/v1/batch-scores"
ROW_PATHS = re.compile(rf"{PATH}(/[a-z]+)?")
"""The paths that take rows."""
router = APIRouter(prefix=PATH, tags=["scoring"], route_class=GuardedRoute)

_MODEL = "model"
_SCHEMAS: dict[str, Mapping[str, Any]] = {
    **BatchFields.schemas(),
    **ProbabilityFields.schemas(),
    **ReasonFields.schemas(),
}
_TABLE_DOCS = body_docs(
    "RowsForm",
    "customer_id,age,income,contract\nc1,41,52000,two year\nc2,23,?,month-to-month\n",
    _SCHEMAS,
)
_DOCS: dict[str, Any] = {
    "parameters": field_docs(_SCHEMAS),
    "requestBody": _TABLE_DOCS
    | {
        "content": {
            "application/json": {"schema": BatchScoreRequest.model_json_schema()},
            **_TABLE_DOCS["content"],
        }
    },
}


@validated(
    router,
    "",
    "batch_score",
    ScoreTableCheck,
    more=" The response lists the columns that are not read.",
    openapi_extra=_DOCS,
)
@router.post(
    "",
    status_code=202,
    response_model=BatchScore,
    summary="Create a batch score",
    openapi_extra=_DOCS,
    responses={
        201: {
            "model": BatchScore,
            "description": "The job ended within the wait, in success or failure.",
        },
    },
)
@names_resources
@needs("score")
@takes_body("max_upload_bytes")
async def create_batch_score(
    *, sending: TableRequestDep, models: ModelsDep, caller: CallerDep
) -> Response:
    """Send JSON with a model and a dataset. Or send the rows, as raw bytes or in a form with a part `file`, with the
    model in the query or in the form. A job of kind `batch_score` scores them. The result is a Parquet file.

    Rows that you send need no label. They must have the model's features as columns, in any order. Other columns of the
    model's training dataset, such as its label or its group, are allowed and ignored. Any other column is an error,
    unless `keep` or `ignore` names it or the request has `Prefer: handling=lenient`. A row with an error fails the job;
    `error` has the lines and columns.
    """
    if is_json(sending.request):
        return await _of_dataset(sending, caller)
    context = sending.context
    model = sending.request.query_params.get(_MODEL)
    if model is not None:  # checked before the body is read
        await run_in_threadpool(context.db.reading, batch_scores.find_unread, sending.owner, model)
    lenient = is_lenient(sending.request)

    def check(table: Received[UploadRequest]) -> dict[str, Any]:
        path, asked = table.writer.path, table.description
        return batch_scores.check(
            context.db.reading, models, context.settings, sending.owner, asked, path, table.format
        )

    def accept(
        session: Session, table: Received[UploadRequest], upload: StoredUpload
    ) -> BatchScoreRow:
        asked = table.description
        return batch_scores.accept(
            session, context.settings, sending.owner, asked, upload, table.file_name
        )

    handler = UploadHandler(
        route=f"POST {PATH}",
        of=[],
        describe=lambda given: _describe(given, lenient=lenient),
        check=check,
        accept=accept,
        show=_shown,
        made=BATCH_SCORE,
    )
    return await accept_upload(sending, handler)


def _describe(given: Mapping[str, str], *, lenient: bool) -> UploadRequest:
    """Raises Invalid with every unknown field."""
    refuse_all(find_unknown(given, tuple(_SCHEMAS)))
    fields, errors = BatchFields.read(given)
    if not given.get(_MODEL):
        detail = "model must name the model that scores the rows, for example model=churn@champion"
        errors.append({"parameter": _MODEL, "detail": detail})
    refuse_all(errors)
    kept = table_rows.describe(fields, lenient=lenient)
    options = replace(kept, id=fields.id, keep=(*kept.keep, *(fields.keep or ())), top=fields.top)
    probability = ProbabilityFields.parse(given).options()
    terms = options.as_json() | {batch_scores.PROBABILITY_OPTIONS: probability.as_json()}
    if fields.file_name is not None:
        terms[table_rows.FILE_NAME] = fields.file_name
    wanted = ReasonFields.parse(given).options()
    if wanted is not None:
        terms[batch_scores.REASON_OPTIONS] = wanted.as_json()
    return UploadRequest(given[_MODEL], terms)


async def _of_dataset(sending: TableRequest, caller: Caller) -> Response:
    """Create the batch score, or only check it."""
    refuse_unknown(sending.request.query_params, [])
    context, body = sending.context, await _small_body(sending)
    asked = _parse(body)
    if asked.keep:
        check_reads(caller, "keep")
    if asked.id is not None:
        check_reads(caller, "id")

    options = asked.probability_options()
    wanted = asked.reason_options()
    if wanted is not None:  # the texts of reasons contain values of the row
        check_reads(caller, "reasons")
    kept = TableOptions(keep=tuple(asked.keep), top=asked.top)
    if asked.id is not None:
        kept = replace(kept, id=asked.id, keep=(asked.id, *kept.keep))
    given = (sending.owner, asked.model, asked.dataset_id, kept, options, wanted)
    fingerprint = hashlib.sha256(body).hexdigest()
    route = f"POST {PATH}"
    new = JobCreation(
        context, route, sending.owner, sending.key, fingerprint, sending.validate, sending.wait
    )

    def check(session: Session) -> None:
        batch_scores.check_dataset(session, *given)

    def submit(session: Session) -> dict[str, Any]:
        return _shown(batch_scores.submit(session, context.settings, *given))

    return await (
        new.check(check) if new.only_check else new.create_and_respond(BATCH_SCORE, submit)
    )


async def _small_body(sending: TableRequest) -> bytes:
    """Return the body up to the limit for JSON; the path itself accepts larger ones."""
    most = sending.context.settings.max_body_bytes
    body = bytearray()
    async for chunk in sending.request.stream():
        body += chunk
        if len(body) > most:
            raise TooLarge(f"a JSON body can have at most {most} bytes")
    return bytes(body)


def _parse(body: bytes) -> BatchScoreRequest:
    check_count(body)
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"the body is not valid JSON: {error}", code="malformed_json") from error
    try:
        asked = BatchScoreRequest.model_validate(given)
    except ValidationError as error:
        errors = [each | {"loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(errors, body=given) from error
    if len(set(asked.keep)) < len(asked.keep):
        detail = "keep must name each column once"
        raise Invalid(detail, errors=[{"pointer": "/keep", "detail": detail}])
    return asked


@router.get(
    "/{batch_score_id}/result",
    summary="Download the result of a batch score",
    response_class=StoredFile,
    responses={
        200: {
            "description": "The scores, in the chosen format.",
            "content": {
                PARQUET: {"schema": {"type": "string", "format": "binary"}},
                "text/csv": {"schema": {"type": "string"}},
                XLSX: {"schema": {"type": "string", "format": "binary"}},
            },
        },
        206: {"description": "The part of the Parquet file that the `Range` header requests."},
        304: {"description": "The file has not changed since the caller's copy."},
    },
)
@needs("score")
@records_reads
async def read_batch_score_result(
    *,
    batch_score_id: str,
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    format: Annotated[
        Literal["parquet", "csv", "xlsx"],
        Query(
            description="Format of the response. `parquet`: the file. `csv`: the same rows as text. `xlsx`: a "
            f"spreadsheet of up to {MAX_SHEET_CELLS:,} cells and {MAX_SHEET_TEXT:,} characters of text; integers of "
            "more than 15 digits become text."
        ),
    ] = "parquet",
    decimal: Annotated[
        Literal["point", "comma"],
        Query(
            description="Decimal separator of a CSV. With `comma`, values are separated by semicolons."
        ),
    ] = "point",
) -> Response:
    """Return the kept columns, `row_number`, `score`, `fpr`, `tpr` and `probability`, in the order of the rows, and
    `flag` if the request used an alias with a guarantee. `row_number` 1 is the first row of the table, below the header
    of a CSV. With several labels there is one score per label. With `top` the result has only the best rows, best
    first. Returns 409 until the batch score is ready. The Parquet file has an ETag and supports Range requests. Kept
    columns of a dataset, and reasons of its rows, also need the scope `read`.
    """
    batch, key = await run_in_threadpool(
        context.db.reading, batch_scores.result, caller.owner, batch_score_id
    )
    _check_kept(batch, caller)
    path = await run_in_threadpool(context.fetch, key)
    name = f"{batch.model_name}-{batch.model_version}-{batch.id}"
    if format == "csv":
        disposition = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        return StreamingResponse(
            parquet_as_csv(path, comma=decimal == "comma"),
            media_type="text/csv; charset=utf-8",
            headers=disposition,
        )
    if format == "xlsx":
        disposition = {"Content-Disposition": f'attachment; filename="{name}.xlsx"'}

        def write() -> Response:
            return Response(parquet_as_xlsx(path), media_type=XLSX, headers=disposition)

        return await context.compute(caller.owner, write)
    tag = f'"{batch.result_sha256}"'
    headers = {"ETag": tag, "Cache-Control": "private"}
    if etag_matches(request.headers.get("if-none-match", ""), tag):
        return Response(status_code=304, headers=headers)
    return StoredFile(path, media_type=PARQUET, filename=f"{name}.parquet", headers=headers)


@router.get(
    "/{batch_score_id}/summary",
    response_model=BatchSummary,
    summary="Read the summary of a batch score",
)
@needs("score")
def read_batch_score_summary(
    *, batch_score_id: str, context: ContextDep, caller: CallerDep
) -> BatchSummary:
    """Return the distribution of the scores, the number of flagged rows if the request used an alias with a guarantee,
    and the 50 rows with the highest scores, with reasons if they were requested. Returns 409 until the batch score is
    ready. Kept columns of a dataset, and reasons of its rows, also need the scope `read`.
    """
    batch, found = context.db.reading(batch_scores.summary, caller.owner, batch_score_id)
    _check_kept(batch, caller)
    return BatchSummary.model_validate({"batch_score_id": batch.id, "rows": batch.rows, **found})


@router.get(
    "/{batch_score_id}/drift",
    response_model=BatchDrift,
    summary="Read the drift of a batch score",
)
@needs("read")
def read_batch_score_drift(
    *, batch_score_id: str, context: ContextDep, caller: CallerDep
) -> BatchDrift:
    """Return how the scores and the columns of the rows differ from the model's validation and training rows,
    without labels. Returns 409 until the batch score is ready.
    """
    batch, found = context.db.reading(batch_scores.drift, caller.owner, batch_score_id)
    return batch_drift_of(batch, found)


def _check_kept(batch: BatchScoreRow, caller: Caller) -> None:
    """Raise Forbidden if the result has values of a dataset's columns that the key may not read."""
    if batch.dataset_id is None:
        return
    if batch.read_options[table_rows.KEEP]:
        check_reads(caller, "keep")
    if batch.read_options.get(batch_scores.REASON_OPTIONS) is not None:
        check_reads(caller, "reasons")


def _shown(row: BatchScoreRow) -> dict[str, Any]:
    return batch_score_of(row).model_dump(mode="json")


def _read_shown(session: Session, owner: str, id_: str) -> tuple[dict[str, Any], bool]:
    """Return True if the job has ended."""
    row = BATCH_SCORES.find(session, owner, id_)
    return _shown(row), status_of(row) != PROCESSING


BATCH_SCORE = JobResource(PATH, "job_id", _read_shown)
"""A batch score, as the response to its creation."""
