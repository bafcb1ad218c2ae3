"""/v1/uploads: a dataset of several files, sent one by one and then closed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.access.authentication import GuardedRoute, needs
from app.datasets import parts
from app.datasets import service as datasets
from app.datasets.fields import TableFields, VersionFields
from app.datasets.schemas import Dataset, ServerPath, Upload, UploadClose, UploadPage, UploadPart
from app.datasets.uploads import (
    DATASET,
    QuotaUse,
    Received,
    body_docs,
    field_docs,
    query_fields,
    receive,
    shown,
    stated,
)
from app.http.bodies import takes_body
from app.http.dependencies import CallerDep, Context, ContextDep, PagingDep
from app.http.idempotency import Created, Creation, CreationDep, IdempotencyKeyDep
from app.ingest.fields import MAX_TEXT_LENGTH
from app.jobs.acceptance import PreferWaitDep, respond, wake_a_worker
from app.platform import catalogue
from app.platform.errors import Invalid
from app.platform.sql import Json, Session

PATH = "/v1/uploads"
router = APIRouter(prefix=PATH, tags=["datasets"], route_class=GuardedRoute)
_FIELDS: dict[str, dict[str, Any]] = {
    **TableFields.schemas(),
    parts.VERSION_OF: {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_TEXT_LENGTH,
        "description": (
            "Id of the dataset that the files are a new version of. It can be combined only with `mode` "
            "and the fields of a CSV."
        ),
    },
    parts.MODE: VersionFields.schemas()["mode"],
}


@router.post(
    "",
    status_code=201,
    response_model=Upload,
    summary="Open an upload of several files",
    openapi_extra={"parameters": field_docs(_FIELDS)},
)
@needs("train", model=False)
async def open_upload(
    request: Request, context: ContextDep, caller: CallerDep, key: IdempotencyKeyDep
) -> Response:
    """Describe the table with the fields of `POST /v1/datasets`, or name the dataset that it is a new version of. Then
    send its files as parts, and close the upload. It becomes one dataset, with the rows in the order of the parts.

    An upload that is not closed is deleted `RANKWRIGHT_KEEP_UPLOADS_DAYS` (default: 7) days after its last part.
    """
    given = query_fields(request)

    def open_one(session: Session) -> Json:
        upload = parts.open_upload(session, context.settings, caller.owner, given)
        return Upload.of_parts(upload, []).model_dump(mode="json")

    same = hashlib.sha256(orjson.dumps(given, option=orjson.OPT_SORT_KEYS)).hexdigest()
    new = Creation(context, f"POST {PATH}", caller.owner, key, same, only_check=False)
    created = await new.run_once(open_one)
    headers = {"Location": f"{PATH}/{created.body['id']}"} | created.headers
    return JSONResponse(created.body, 201, headers)


@router.get("", summary="List uploads")
@needs("read")
def list_uploads(context: ContextDep, caller: CallerDep, paging: PagingDep) -> UploadPage:
    """Return the owner's uploads of several files, newest first, without their parts."""
    page, sizes = context.db.reading(parts.list_page, caller.owner, **vars(paging))
    return UploadPage.of(page, lambda upload: Upload.of_size(upload, *sizes.get(upload.id, (0, 0))))


@router.get("/{upload_id}", summary="Read an upload")
@needs("read")
def read_upload(upload_id: str, context: ContextDep, caller: CallerDep) -> Upload:
    """Return the fields of the upload and the parts received so far. After an interruption, send only the missing
    parts.
    """
    return Upload.of_parts(*context.db.reading(parts.find_with_parts, caller.owner, upload_id))


@router.put(
    "/{upload_id}/parts/{number}",
    status_code=201,
    response_model=UploadPart,
    summary="Send a part",
    openapi_extra={
        "parameters": [
            {
                "name": "Content-Encoding",
                "in": "header",
                "description": "Compression of the body.",
                "schema": {"type": "string", "enum": ["gzip", "zstd"]},
            }
        ],
        "requestBody": body_docs(
            "FileForm", "age,income,contract,left\n37,48000,one year,no\n", {}
        ),
    },
    responses={
        200: {"model": UploadPart, "description": "The part already existed with these bytes."}
    },
)
@needs("train", model=False)
@takes_body("max_upload_bytes")
async def put_part(
    upload_id: str, number: int, request: Request, context: ContextDep, caller: CallerDep
) -> Response:
    """Send the bytes of one file, as for `POST /v1/datasets`. Parts are numbered from 1 and can be sent in any order
    and in parallel. All must have the same format, and the same columns in the same order. Each CSV file needs a
    header.

    Sending the same bytes again in the same format is allowed. Returns 409 `part_exists` for other bytes under the same
    number, and 409 `upload_closed` after the upload is closed.
    """
    owner = caller.owner
    format_, size = stated(request)
    there = await run_in_threadpool(
        context.db.reading,
        parts.check_takes_part,
        context.settings,
        owner,
        upload_id,
        number,
        format_,
        size,
    )
    with context.blobs.writer("uploads") as writer:
        quota_use = QuotaUse.NOTHING if there else QuotaUse.BYTES
        table = await receive(request, writer, _refuse_fields, quota_use=quota_use)
        status, body = await run_in_threadpool(_add, context, owner, upload_id, number, table)
    return JSONResponse(body, status)


def _refuse_fields(given: Mapping[str, str]) -> None:
    """Raise Invalid for any field: the table is described when the upload is opened."""
    if given:
        detail = (
            f"a part has no fields; set them when you open the upload; got {', '.join(given)[:100]}"
        )
        raise Invalid(detail, errors=[{"parameter": field, "detail": detail} for field in given])


def _close(context: Context, owner: str, upload_id: str, n_parts: int) -> tuple[Json, bool]:
    """Return the dataset's JSON, and True if it is new."""
    with context.blobs.writer("uploads") as writer:
        writer.write(context.db.reading(parts.manifest, owner, upload_id))
        writer.sync()  # the slow part, before the transaction

        def work(session: Session) -> tuple[Json, bool]:
            dataset, is_new = parts.close(
                session, context.settings, owner, upload_id, n_parts, writer
            )
            return shown(dataset), is_new

        return context.db.writing(work)


def _add(
    context: Context, owner: str, upload_id: str, number: int, table: Received[None]
) -> tuple[int, Json]:
    """Return the status code and the part's JSON."""
    writer = table.writer
    writer.sync()  # the slow part, before the transaction
    received = datasets.StoredUpload.of(writer.blob, table.format)

    def work(session: Session) -> tuple[int, Json]:
        part, is_new = parts.add_part(session, context.settings, owner, upload_id, number, received)
        body = UploadPart.model_validate(part).model_dump(mode="json")
        if is_new:
            catalogue.commit(session, writer)  # late, so that a refusal leaves no blob behind
        return (201 if is_new else 200), body

    return context.db.writing(work)


@router.post(
    "/{upload_id}/files",
    status_code=201,
    response_model=Upload,
    summary="Add files from the server",
)
@needs("train", model=False)
async def add_files(
    upload_id: str,
    body: ServerPath,
    new: CreationDep,
) -> Response:
    """Add a file, or all tables of a folder in the order of their names, as the next parts. Nothing is sent or copied:
    the service reads the files in place. `path` is relative to the folder of the key's owner in `RANKWRIGHT_FILES_DIR`.
    The files must not change until the dataset is ready.
    """
    files = await run_in_threadpool(parts.find_files, new.settings, new.owner, body.path)

    def add(session: Session) -> Json:
        found = parts.add_files(session, new.settings, new.owner, upload_id, files)
        return Upload.of_parts(*found).model_dump(mode="json")

    created = await new.run_once(add)
    headers = {"Location": f"{PATH}/{upload_id}"} | created.headers
    return JSONResponse(created.body, 201, headers)


@router.post(
    "/{upload_id}/close",
    status_code=202,
    response_model=Dataset,
    summary="Close an upload",
    responses={
        201: {"model": Dataset, "description": "The parts were read within the wait."},
    },
)
@needs("train", model=False)
async def close_upload(
    *,
    upload_id: str,
    body: UploadClose,
    context: ContextDep,
    caller: CallerDep,
    wait: PreferWaitDep,
) -> Response:
    """Create one dataset from the parts. `parts` is the number of parts that were sent: 409 `parts_missing` lists those
    that have not arrived.

    Workers read the parts in parallel, each with its own attempts. The dataset becomes `ready`, or `invalid` with the
    part, line and column of the errors. Closing an upload again returns its dataset.
    """
    owner = caller.owner

    dataset, is_new = await run_in_threadpool(_close, context, owner, upload_id, body.parts)
    if is_new:
        wake_a_worker(context, dataset["job_id"])

    return await respond(context, owner, Created(dataset, replayed=False), wait, DATASET)


@router.delete("/{upload_id}", status_code=204, summary="Delete an open upload")
@needs("train", model=False)
def delete_upload(upload_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Delete an open upload with its parts. Returns 409 `upload_closed` if it has become a dataset: delete the dataset
    instead.
    """
    context.db.writing(parts.delete, caller.owner, upload_id)
