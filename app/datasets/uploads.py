"""Receipt of a table: from the body of a request (raw bytes or a form) to bytes in the blob store."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import orjson
from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.access import quotas
from app.access.authentication import check_again
from app.access.quotas import Counted
from app.datasets import service as datasets
from app.datasets.description import Format, check_format, told_by_bytes
from app.datasets.schemas import Dataset
from app.http import idempotency
from app.http.bodies import announced_length
from app.http.dependencies import (
    CallerDep,
    Context,
    ContextDep,
    context_of,
)
from app.http.forms import FORM, MAX_FIELD_BYTES, FormReader, UploadForm
from app.http.idempotency import IdempotencyKeyDep, ValidateOnlyDep
from app.http.limits import Permit
from app.http.schemas import tables_of
from app.ingest.formats import CONTENT_TYPES, CSV, JSON_ARRAY, ZIP_ARCHIVE, type_of_file
from app.jobs.acceptance import JobResource, PreferWait, PreferWaitDep, respond, wake_a_worker
from app.platform import catalogue, resources
from app.platform.blobs import BlobWriter
from app.platform.errors import Conflict, Invalid, ServiceError, Unavailable
from app.platform.sql import Json, Session
from app.platform.tables import Dataset as DatasetRow
from app.platform.tables import DatasetStatus

_WRITE_BYTES = 1 << 20
_LOOK_BYTES = 1 << 24  # between two checks of free space and quota
_BYTES = Format("application/octet-stream", None)

Described = TypeVar("Described")


class QuotaUse(Enum):
    """The use of the owner's quotas by an upload."""

    JOB = "a job, and its bytes"
    BYTES = "its bytes"
    NOTHING = "nothing, because they are already stored"


@dataclass(frozen=True)
class Received(Generic[Described]):
    """A received file, not yet in the blob store, and its description; a form also gives `file_name`."""

    writer: BlobWriter
    description: Described
    format: Format
    file_name: str | None = None


def field_docs(schemas: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Describe query parameters for OpenAPI."""
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": schema["description"],
            "schema": {key: value for key, value in schema.items() if key != "description"},
        }
        for name, schema in schemas.items()
    ]


def body_docs(title: str, example: str, schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Describe a body that is a table, raw or in a form of name `title`, for OpenAPI."""
    return {
        "required": True,
        "content": {
            **tables_of(
                example, *(media for media in CONTENT_TYPES if media not in (CSV, JSON_ARRAY))
            ),
            FORM: {
                "schema": {
                    "title": title,
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "The table.",
                        },
                        **schemas,
                    },
                }
            },
        },
    }


async def receive(
    request: Request,
    writer: BlobWriter,
    describe: Callable[[Mapping[str, str]], Described],
    *,
    replays: tuple[str, str] | None = None,
    check_only: bool = False,
    quota_use: QuotaUse = QuotaUse.JOB,
    makes: Counted | None = None,
    max_field_bytes: int | None = None,
) -> Received[Described]:
    """Stream a table to disk; returns it with its description. The URL and headers are checked before the body is read.

    `describe` validates the fields of the address and the form. Free space and the owner's quota are checked before the
    body is read, and during the upload. `replays` is the route and the Idempotency-Key of a request that may be a
    replay, which uses no quota; `quota_use` is the use of any other request, and `makes` what its job makes.
    `max_field_bytes`: limit of a form field in bytes, of an upload that is not a table.
    """
    context, owner = context_of(request), request.scope["caller"].owner
    with context.uploads.hold(owner) as permit:
        known = announced_length(request) or 0
        # An upload that is too large for any owner is refused as too large while it is read.
        permit.size = known if known <= context.settings.max_upload_bytes else 0
        admission = _AdmissionCheck(context, owner, permit)
        await run_in_threadpool(admission.admit, replays, check_only, quota_use, makes)
        body = request.stream()
        table = await _receive(request, body, admission, writer, describe, max_field_bytes)
    writer.flush()
    if max_field_bytes is None:
        known_format = await run_in_threadpool(told_by_bytes, writer.path, table.format)
        table = replace(table, format=known_format)
    await check_again(request)  # a body may take hours
    return table


class _AdmissionCheck:
    """Checks free disk space, and that the owner's uploads here fit the quota, before and during an upload."""

    def __init__(self, context: Context, owner: str, permit: Permit, *, keeps: bool = True) -> None:
        self._context = context
        self._settings = context.settings
        self._owner = owner
        self._permit = permit
        self._keeps = keeps  # whether the quota counts the bytes: not for a check or a replay
        self._next_look = 0

    def admit(
        self,
        replays: tuple[str, str] | None,
        check_only: bool,
        quota_use: QuotaUse,
        makes: Counted | None,
    ) -> None:
        """Check before the body is read. Raises TooMany, Unavailable or OutOfSpace."""
        resources.check(self._settings, self._permit.size)
        with self._context.db.read() as session:
            replayed = replays is not None and idempotency.is_known(session, self._owner, *replays)
            replayed |= quota_use is QuotaUse.NOTHING
            if not replayed:
                size = self._context.uploads.size_of(self._owner)
                if quota_use is QuotaUse.JOB:
                    quotas.check(session, self._settings, self._owner, size, makes)
                else:
                    quotas.check_bytes(session, self._settings, self._owner, size)
        if check_only or replayed:
            self._keeps, self._permit.size = False, 0

    def grown_to(self, size: int) -> None:
        """Check again at intervals: the length may be unknown, and other uploads use space, too."""
        if self._keeps:
            self._permit.size = max(self._permit.size, size)
        if size < self._next_look:
            return
        self._next_look = size + min(size, _LOOK_BYTES)
        try:
            resources.check(self._settings)
            self._check_quota()
        except ServiceError as error:
            error.headers["Connection"] = "close"  # the rest of the body is not read
            raise

    def _check_quota(self) -> None:
        """Raise TooMany above the quota. Without a database nothing is checked."""
        if not self._keeps:
            return
        adds = self._context.uploads.size_of(self._owner)
        try:
            with self._context.db.read() as session:
                quotas.check_bytes(session, self._settings, self._owner, adds)
        except Unavailable:
            return  # without a database the quota is unknown; it is checked again when the upload is accepted


class SpoolFile:
    """A temporary file for a request body. The code that created its folder deletes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._file = path.open("xb", buffering=0)

    def write(self, chunk: bytes) -> None:
        """Append a chunk."""
        left = memoryview(chunk)
        while left:
            left = left[self._file.write(left) :]
        self.size += len(chunk)

    def close(self) -> None:
        self._file.close()


async def spool(request: Request, permit: Permit, body: AsyncIterator[bytes], path: Path) -> None:
    """Stream a body to a temporary file. Free space is checked as for an upload, but the file uses no quota."""
    context, owner = context_of(request), request.scope["caller"].owner
    known = announced_length(request) or 0
    await run_in_threadpool(resources.check, context.settings, known)
    file = await run_in_threadpool(SpoolFile, path)
    try:
        await _write(body, _AdmissionCheck(context, owner, permit, keeps=False), file)
    finally:
        file.close()
    await check_again(request)  # a body may take hours


async def _receive(
    request: Request,
    body: AsyncIterator[bytes],
    admission: _AdmissionCheck,
    writer: BlobWriter,
    describe: Callable[[Mapping[str, str]], Described],
    max_field_bytes: int | None,
) -> Received[Described]:
    """Write the file in a raw body or a form to disk."""
    is_table = max_field_bytes is None
    given = query_fields(request)
    if not _is_form(request):
        description = describe(given)
        format_ = _stated_format(request) if is_table else _BYTES
        table = Received(writer, description, format_)
        await _write(body, admission, writer)
        return table
    most = MAX_FIELD_BYTES if max_field_bytes is None else max_field_bytes
    reader = FormReader(request.headers["content-type"], most)
    await _write(reader.file(body), admission, writer)
    twice = sorted(given.keys() & reader.form.fields.keys())
    if twice:
        raise Invalid(f"{twice[0]} must be given only once, in the query or in the form")
    description = describe(given | reader.form.fields)
    format_ = _file_format(reader.form) if is_table else _BYTES
    return Received(writer, description, format_, reader.form.file_name)


def _is_form(request: Request) -> bool:
    media_type = request.headers.get("content-type", "").partition(";")[0]
    return media_type.strip().lower() == FORM


def _stated_format(request: Request) -> Format:
    headers = request.headers
    return check_format(headers.get("content-type", ""), headers.get("content-encoding"))


def stated(request: Request) -> tuple[Format | None, int | None]:
    """Return the format and size that the headers declare for a raw body; None for a form. Raises UnsupportedMedia."""
    if _is_form(request):
        return None, None
    said = _stated_format(request)
    known = None if said.content_type == ZIP_ARCHIVE else said
    return known, announced_length(request)


def query_fields(request: Request) -> dict[str, str]:
    """Raises Invalid if a parameter occurs twice."""
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise Invalid(f"{name} must be given once")
        given[name] = value
    return given


def _file_format(form: UploadForm) -> Format:
    """Use the content type of the file's part, or the file name for a generic type."""
    told, encoding = type_of_file(form.file_name or "")
    stated = (form.file_content_type or "").partition(";")[0].strip().lower()
    if stated == CSV:
        check_format(form.file_content_type or "", None)
    return Format(stated if stated in CONTENT_TYPES else told or stated, encoding)


async def _write(
    chunks: AsyncIterator[bytes], admission: _AdmissionCheck, writer: BlobWriter | SpoolFile
) -> None:
    """Write each chunk in a thread while the next arrives: hashing and a slow disk must not block the event loop."""
    writing: asyncio.Task[None] | None = None

    def write(piece: bytes) -> None:
        writer.write(piece)
        admission.grown_to(writer.size)

    try:
        async for piece in _pieces(chunks):
            if writing is not None:
                await writing
            writing = asyncio.create_task(run_in_threadpool(write, piece))
        if writing is not None:
            await writing
    finally:
        if writing is not None:
            await asyncio.wait([writing])  # before the file is closed
    if writer.size == 0:
        raise Invalid("the file is empty", code="empty_body")


async def _pieces(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the same bytes in larger pieces."""
    pending: list[bytes] = []
    size = 0
    async for chunk in chunks:
        pending.append(chunk)
        size += len(chunk)
        if size >= _WRITE_BYTES:
            yield b"".join(pending)
            pending, size = [], 0
    if size:
        yield b"".join(pending)


@dataclass(frozen=True)
class TableRequest:
    """A request that uploads a table: its caller, its Idempotency-Key, and options for the response."""

    request: Request
    context: Context
    owner: str
    key: str | None
    wait: PreferWait
    validate: bool


async def _table_request(
    *,
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    key: IdempotencyKeyDep,
    wait: PreferWaitDep,
    validate: ValidateOnlyDep,
) -> TableRequest:
    return TableRequest(request, context, caller.owner, key, wait, validate)


TableRequestDep = Annotated[TableRequest, Depends(_table_request)]


def shown(dataset: DatasetRow) -> Json:
    return Dataset.model_validate(dataset).model_dump(mode="json")


def _read_shown(session: Session, owner: str, dataset_id: str) -> tuple[Json, bool]:
    """Return True if the table has been read."""
    dataset = datasets.find(session, owner, dataset_id)
    return shown(dataset), dataset.status != DatasetStatus.PROCESSING


DATASET = JobResource("/v1/datasets", "job_id", _read_shown)
"""A dataset, as the response to its upload."""


@dataclass(frozen=True)
class UploadHandler(Generic[Described]):
    """The functions for one kind of upload. `check` reads the table without storing it; `accept` creates the row.

    `stage` stores what the description brings besides the upload, before the transaction of `accept`. `show` returns
    it as JSON. `of` has the values that must be equal in a replay, in addition to the upload.
    `max_field_bytes`: limit of a form field in bytes, of an upload that is not a table.
    """

    route: str
    of: Sequence[str]
    describe: Callable[[Mapping[str, str]], Described]
    check: Callable[[Received[Described]], Json]
    accept: Callable[[Session, Received[Described], datasets.StoredUpload], Any]
    stage: Callable[[Described], object] = lambda _: None
    show: Callable[[Any], Json] = shown
    made: JobResource = DATASET
    makes: Counted | None = None
    max_field_bytes: int | None = None


async def accept_upload(sending: TableRequest, handler: UploadHandler[Described]) -> Response:
    """Stream the table to disk, then create its resource, or only check it for a path `…/validate`."""
    context = sending.context
    with _alone(sending), context.blobs.writer("uploads") as writer:
        table = await receive(
            sending.request,
            writer,
            handler.describe,
            replays=None if sending.key is None else (handler.route, sending.key),
            check_only=sending.validate,
            makes="dataset_rows" if handler.made is DATASET else handler.makes,
            max_field_bytes=handler.max_field_bytes,
        )
        if sending.validate:
            writer.flush()
            # Only the limits of the table bound the memory of a check.
            return JSONResponse(await context.compute(sending.owner, partial(handler.check, table)))
        created = await run_in_threadpool(_accept, sending, handler, table)

    return await respond(context, sending.owner, created, sending.wait, handler.made)


@contextmanager
def _alone(sending: TableRequest) -> Iterator[None]:
    """Raise an error while an upload with the same Idempotency-Key is running."""
    uploading, claim = sending.context.uploading, (sending.owner, sending.key)
    if sending.key is None:
        yield
        return
    if claim in uploading:
        raise Conflict(
            "an upload with this Idempotency-Key is still running", code="upload_under_way"
        )
    uploading.add(claim)
    try:
        yield
    finally:
        uploading.discard(claim)


def _accept(
    sending: TableRequest, handler: UploadHandler[Described], table: Received[Described]
) -> idempotency.Created:
    """Create the resource once per Idempotency-Key, and wake a worker."""
    writer, context = table.writer, sending.context
    writer.sync()  # the slow part, before the transaction
    handler.stage(table.description)

    def work(session: Session) -> Json:
        upload = datasets.StoredUpload.of(writer.blob, table.format)
        body = handler.show(handler.accept(session, table, upload))
        catalogue.commit(
            session, writer
        )  # late, so that a replay or a refusal leaves no blob behind
        return body

    same = orjson.dumps([vars(table.description), vars(table.format), writer.sha256, *handler.of])
    created = context.db.writing(
        idempotency.run_once,
        sending.owner,
        handler.route,
        sending.key,
        hashlib.sha256(same).hexdigest(),
        work,
    )
    if not created.replayed:
        wake_a_worker(context, created.body[handler.made.job_member])
    return created
