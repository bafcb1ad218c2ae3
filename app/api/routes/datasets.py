"""/v1/datasets: upload, read, look into, delete."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.api.context import Context
from app.api.dependencies import (
    CallerDep,
    ContextDep,
    IdempotencyKeyDep,
    PagingDep,
    PatienceDep,
    ValidateOnly,
)
from app.api.multipart import Form, FormReader
from app.api.schemas.common import PageOf
from app.api.schemas.datasets import Dataset, Preview, TableCheck
from app.api.security import GuardedRoute, needs
from app.db.tables import DatasetStatus
from app.errors import Conflict, Invalid
from app.infra.blobs import BlobWriter
from app.services import datasets, idempotency
from app.services.ingest import CONTENT_TYPES

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=GuardedRoute)

ROUTE = "POST /v1/datasets"
FORM = "multipart/form-data"
_WRITE_BYTES = 1 << 20
_NOT_FIELDS = {"validate"}
_ENCODINGS = {".gz": "gzip", ".zst": "zstd"}
_SUFFIXES = {
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".arrows": "application/vnd.apache.arrow.stream",
    ".ndjson": "application/x-ndjson",
    ".jsonl": "application/x-ndjson",
}

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_FIELDS_SCHEMA = {
    "name": "Name of the dataset.",
    "label": "The label's column.",
    "positive": "The label's value that counts as positive.",
    "weight": "Column of row weights.",
    "group": "Column whose equal values stay on one side of a split.",
    "kind": "`bipartite`: rows with a label of two values.",
}
_UPLOAD_DOCS: dict[str, Any] = {
    "parameters": [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": text,
            "schema": {"type": "string", "minLength": 1, "maxLength": datasets.LONGEST_TEXT},
        }
        for name, text in _FIELDS_SCHEMA.items()
    ],
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {
                "schema": {"type": "string"},
                "example": "age,income,left\n41,52000,no\n23,31000,yes\n",
            },
            **{media: _BINARY for media in CONTENT_TYPES if media != "text/csv"},
            FORM: {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        **{
                            name: {"type": "string", "description": text}
                            for name, text in _FIELDS_SCHEMA.items()
                        },
                    },
                }
            },
        },
    },
}


@router.post(
    "",
    status_code=202,
    response_model=Dataset,
    summary="Upload a table",
    openapi_extra=_UPLOAD_DOCS,
    responses={
        200: {"model": TableCheck, "description": "Only checked (`?validate=true`)."},
        201: {"model": Dataset, "description": "Read within the wait: `ready` or `invalid`."},
    },
)
@needs("train")
async def upload_dataset(
    *,
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    patience: PatienceDep,
    key: IdempotencyKeyDep,
    validate: ValidateOnly = False,
) -> Response:
    """Send the raw bytes of a table with its Content-Type, or a form with a part `file`.

    The bytes are durable before the answer. A worker reads them; the dataset then is `ready`, or `invalid` with
    the lines and columns at fault. `Content-Encoding` may be gzip or zstd.
    """
    claim = (caller.owner, key)
    if key is not None:
        if claim in context.uploading:
            raise Conflict(
                "an upload under this Idempotency-Key is still under way", code="upload_under_way"
            )
        context.uploading.add(claim)
    try:
        with context.blobs.writer("uploads") as writer:
            table = await _receive(request, writer)
            if validate:
                return JSONResponse(await run_in_threadpool(_check, context, table))
            answer = await run_in_threadpool(_accept, context, caller.owner, table, key)
    finally:
        context.uploading.discard(claim)
    return await _accepted(context, answer, caller.owner, patience)


@dataclass(frozen=True)
class _Table:
    """Bytes on their way into the store, and what the caller says about them."""

    writer: BlobWriter
    description: datasets.Description
    format: datasets.Format


async def _receive(request: Request, writer: BlobWriter) -> _Table:
    """Stream the body to disk; what is wrong with the address or the headers is said before the body is read."""
    given = _query_fields(request)
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != FORM:
        description = datasets.describe(given)
        encoding = request.headers.get("content-encoding")
        table = _Table(writer, description, datasets.check_format(content_type, encoding))
        await _write(request.stream(), writer)
        return table
    reader = FormReader(content_type)
    await _write(reader.file(request.stream()), writer)
    twice = sorted(given.keys() & reader.form.fields.keys())
    if twice:
        raise Invalid(f"{twice[0]} must be given once, in the address or in the form")
    description = datasets.describe(given | reader.form.fields)
    return _Table(writer, description, datasets.check_format(*_file_format(reader.form)))


def _query_fields(request: Request) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise Invalid(f"{name} must be given once")
        given[name] = value
    return {name: value for name, value in given.items() if name not in _NOT_FIELDS}


def _file_format(form: Form) -> tuple[str, str | None]:
    """The part's own content type, or what its file name says where a browser or curl did not know better."""
    name = (form.file_name or "").lower()
    suffix = Path(name).suffix
    encoding = _ENCODINGS.get(suffix)
    if encoding is not None:
        suffix = Path(name.removesuffix(suffix)).suffix
    stated = (form.file_content_type or "").partition(";")[0].strip().lower()
    if stated in CONTENT_TYPES:
        return stated, encoding
    return _SUFFIXES.get(suffix, stated), encoding


async def _write(chunks: AsyncIterator[bytes], writer: BlobWriter) -> None:
    """Write in big pieces and in a thread: hashing and a slow disk must not hold up the loop."""
    pending: list[bytes] = []
    size = 0
    async for chunk in chunks:
        pending.append(chunk)
        size += len(chunk)
        if size >= _WRITE_BYTES:
            await run_in_threadpool(writer.write, b"".join(pending))
            pending, size = [], 0
    if size:
        await run_in_threadpool(writer.write, b"".join(pending))
    if writer.size == 0:
        raise Invalid("the body must hold a table, it is empty", code="empty_body")


def _check(context: Context, table: _Table) -> dict[str, Any]:
    table.writer.flush()
    path = table.writer.path
    return datasets.check_table(
        context.blobs, context.settings, table.description, path, table.format
    )


def _accept(context: Context, owner: str, table: _Table, key: str | None) -> idempotency.Answer:
    writer = table.writer
    writer.sync()  # the slow part, before the transaction

    def work(session: Session) -> tuple[int, dict[str, Any]]:
        # Published here, so that a replay or a refused key leaves no blob behind.
        blob_key, sha256 = writer.commit()
        upload = datasets.Upload(blob_key, writer.size, sha256, table.format)
        dataset = datasets.accept(session, context.settings, owner, table.description, upload)
        return 202, _shown(dataset)

    same = orjson.dumps([vars(table.description), vars(table.format), writer.sha256])
    fingerprint = hashlib.sha256(same).hexdigest()
    answer = idempotency.replay_or_run(context.db, owner, ROUTE, key, fingerprint, work)
    if not answer.replayed:
        context.wake_a_worker(answer.response["job_id"])
    return answer


async def _accepted(
    context: Context, answer: idempotency.Answer, owner: str, patience: PatienceDep
) -> Response:
    body = answer.response
    headers = {"Location": f"/v1/datasets/{body['id']}", "Retry-After": "1"}
    if answer.replayed:
        headers["Idempotent-Replayed"] = "true"
        return JSONResponse(body, answer.status_code, headers)
    if patience.seconds and not context.watcher.full:
        await context.watcher.wait(body["job_id"], lambda sight: sight.final, patience.seconds)
        dataset = await run_in_threadpool(datasets.get, context.db, owner, body["id"])
        body = _shown(dataset)
        if dataset.status != DatasetStatus.PROCESSING:
            response = JSONResponse(body, 201, {"Location": headers["Location"]})
            patience.applied(response)
            return response
    return JSONResponse(body, answer.status_code, headers)


@router.get("", summary="List datasets")
@needs("read")
def list_datasets(context: ContextDep, caller: CallerDep, paging: PagingDep) -> PageOf[Dataset]:
    """The owner's datasets, newest first."""
    page: Any = datasets.list_page(context.db, caller.owner, limit=paging.limit, after=paging.after)
    return PageOf[Dataset].model_validate(page)


@router.get("/{dataset_id}", summary="Read a dataset")
@needs("read")
def read_dataset(dataset_id: str, context: ContextDep, caller: CallerDep) -> Dataset:
    """Its status, and once `ready` the profile of its columns, or once `invalid` the faults."""
    return Dataset.model_validate(datasets.get(context.db, caller.owner, dataset_id))


@router.get("/{dataset_id}/preview", summary="Look at the first rows")
@needs("read")
def preview_dataset(
    *,
    dataset_id: str,
    context: ContextDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=200, description="Most rows.")] = 20,
) -> Preview:
    """The first rows of a ready dataset, typed as they were read; missing values are null."""
    return Preview(**datasets.preview(context.db, context.blobs, caller.owner, dataset_id, limit))


@router.delete("/{dataset_id}", status_code=204, summary="Delete a dataset")
@needs("train")
def delete_dataset(dataset_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Delete the table; its models stay. 409 while an unfinished job uses it."""
    datasets.delete(context.db, caller.owner, dataset_id)


def _shown(dataset: Any) -> dict[str, Any]:
    return Dataset.model_validate(dataset).model_dump(mode="json")
