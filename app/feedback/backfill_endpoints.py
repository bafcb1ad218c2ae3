"""POST /v1/decisions: decisions that another system has made."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, cast

from fastapi import APIRouter
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.datasets.service import StoredUpload
from app.datasets.uploads import (
    Received,
    TableRequestDep,
    UploadHandler,
    accept_upload,
    body_docs,
    field_docs,
)
from app.feedback import backfill
from app.feedback import backfill_service as service
from app.feedback.backfill_service import BackfillRequest
from app.http.bodies import takes_body
from app.http.dependencies import Context
from app.http.idempotency import validated
from app.http.openapi import names_resources
from app.http.schemas import IsValid, Resource
from app.ingest.fields import (
    MAX_LIST_LENGTH,
    NamesField,
    TextField,
    TextFields,
    TokensField,
    find_unknown,
)
from app.ingest.formats import Dialect
from app.jobs.acceptance import WAITED_DOCS
from app.jobs.endpoints import JOB, show
from app.jobs.schemas import Job
from app.platform.errors import TooLarge, refuse_all
from app.platform.sql import Json, Session
from app.platform.tables import Job as JobRow
from app.scoring.dependencies import is_lenient
from app.scoring.table_rows import MAX_NAMES

PATH = "/v1/decisions"
router = APIRouter(prefix=PATH, tags=["feedback"], route_class=GuardedRoute)


class _OwnFields(TextFields):
    model: Annotated[str | None, TextField(max_length=MAX_LIST_LENGTH)] = Field(
        default=None,
        description="The alias that the decisions are recorded for, as name@alias. Required.",
        examples=["churn@live"],
    )
    ignore: Annotated[list[str] | None, NamesField(max_names=MAX_NAMES)] = Field(
        default=None,
        description="Columns to ignore; `*`: all columns that are not read.",
        examples=["customer_name"],
    )
    missing: Annotated[list[str] | None, TokensField()] = Field(
        default=None,
        description="Strings that mean a missing value. An empty cell is always missing. Default: as in the training "
        "dataset of the model.",
        examples=["NA,unknown,-999"],
    )


class BackfillFields(Dialect, _OwnFields):
    """The fields of a table of decisions."""


class DecisionTableCheck(Resource):
    """The decisions can be stored. Nothing was stored."""

    valid: IsValid
    rows: int
    """Number of rows."""


_DOCS: dict[str, Any] = {
    "parameters": field_docs(BackfillFields.schemas()),
    "requestBody": body_docs(
        "DecisionsForm",
        "id,at,score,flag,age,income\nc1,2026-01-31T12:00:00Z,0.72,true,41,52000\n"
        "c2,2026-01-31T12:00:05Z,-0.31,false,23,48000\n",
        BackfillFields.schemas(),
    ),
}


@validated(router, "", "decisions", DecisionTableCheck, openapi_extra=_DOCS)
@router.post(
    "",
    status_code=202,
    response_model=Job,
    summary="Send decisions of another system",
    openapi_extra=_DOCS,
    responses={201: {"model": Job, **WAITED_DOCS}},
)
@names_resources
@needs("score", model=True)
@takes_body("max_upload_bytes")
async def create_decisions(sending: TableRequestDep) -> Response:
    """Store decisions that were made elsewhere, as if this alias had made them. The table has the columns `at`,
    `score`, and `id` or `decision_id`. Optional columns are `threshold`, `flag`, `probability`, `explored`,
    `propensity` and `keep`. The recorded features are columns of their names, or `feature.…`.

    A `decision_id` is any string of at most 255 characters that your system has, such as a CRM's key, but not `.` or
    `..`; it names one decision of the owner. Where it is missing, the service makes one from alias, `id` and `at`.

    A job of kind `backfill` checks all rows, and then stores all or none. Decisions that are stored already are
    skipped, so the same table may be sent again. Returns 409 `no_feedback` if the alias does not record decisions.
    """
    context, owner = sending.context, sending.owner
    ref = sending.request.query_params.get("model")
    if ref is not None:  # checked before the body is read
        await run_in_threadpool(context.db.reading, service.check_alias, owner, ref)
    handler = UploadHandler(
        route=f"POST {PATH}",
        of=[],
        describe=partial(_describe, lenient=is_lenient(sending.request)),
        check=partial(_check, context, owner),
        accept=partial(_accept, context, owner),
        show=show,
        made=JOB,
    )
    return await accept_upload(sending, handler)


def _describe(given: Mapping[str, str], *, lenient: bool) -> BackfillRequest:
    """Raises Invalid with all unknown fields, or with all other errors."""
    refuse_all(find_unknown(given, tuple(BackfillFields.model_fields)))
    fields, errors = BackfillFields.read(given)
    if not fields.model and not any(each.get("parameter") == "model" for each in errors):
        detail = "model must name the alias that the decisions are recorded for, for example model=churn@live"
        errors.append({"parameter": "model", "detail": detail})
    refuse_all(errors)
    return BackfillRequest(
        model=fields.model or "",
        dialect=dict(fields.dialect or {}),
        missing=fields.missing,
        ignore=fields.ignore or [],
        lenient=lenient,
    )


def _accept(
    context: Context,
    owner: str,
    session: Session,
    table: Received[BackfillRequest],
    upload: StoredUpload,
) -> JobRow:
    return service.accept(session, context.settings, owner, table.description, upload)


def _check(context: Context, owner: str, table: Received[BackfillRequest]) -> Json:
    """Read the table as the job would, but in this process: with the limits of a POST to score."""
    from app.ingest.readers import bounded

    settings, path = context.settings, table.writer.path
    size = path.stat().st_size
    if size > settings.max_body_bytes:
        raise TooLarge(
            f"a table to check can have at most {settings.max_body_bytes} bytes "
            f"(RANKWRIGHT_MAX_BODY_BYTES), got {size}"
        )
    payload = context.db.reading(service.check, settings, owner, table.description, table.format)
    workdir = context.blobs.staging_dir()
    try:
        small = bounded(
            path,
            table.format.content_type,
            table.format.content_encoding,
            cast(Mapping[str, int], payload["limits"]),
            settings.max_score_bytes,
            workdir,
        )
        merged: Any = {**payload, **small, "workdir": str(workdir)}
        return {"valid": True, "rows": backfill.count_rows(merged)}
    finally:
        shutil.rmtree(workdir, ignore_errors=True)
