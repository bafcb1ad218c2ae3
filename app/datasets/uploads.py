"""A table on its way in: from the body of a request, raw or a form, to bytes in the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from app.access import quotas
from app.access.authentication import check_again
from app.datasets import service as datasets
from app.datasets.multipart import Form, FormReader
from app.http import idempotency
from app.http.dependencies import Context, context_of
from app.http.limits import Place
from app.http.schemas import bytes_of
from app.ingest.formats import COMPRESSED, CONTENT_TYPES, CSV, SUFFIXES
from app.platform import resources as space
from app.platform.blobs import BlobWriter
from app.platform.errors import Invalid, ServiceError, TooLarge, Unavailable

FORM = "multipart/form-data"
_WRITE_BYTES = 1 << 20
_LOOK_BYTES = 1 << 24  # that may come between two looks at free space and quota

Said = TypeVar("Said")


@dataclass(frozen=True)
class Received(Generic[Said]):
    """Bytes on their way into the store, and what the caller says about them."""

    writer: BlobWriter
    description: Said
    format: datasets.Format


def body_docs(example: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """OpenAPI's words for a body that is a table, with these fields in the form."""
    named = {name: {"type": "string", "description": text} for name, text in fields.items()}
    return {
        "required": True,
        "content": {
            "text/csv": {"schema": {"type": "string"}, "example": example},
            **bytes_of(*(media for media in CONTENT_TYPES if media != CSV)),
            FORM: {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}, **named},
                }
            },
        },
    }


async def receive(
    request: Request,
    writer: BlobWriter,
    describe: Callable[[Mapping[str, str]], Said],
    *,
    replays: tuple[str, str] | None = None,
    check_only: bool = False,
) -> Received[Said]:
    """Stream the body to disk; what is wrong with the address or the headers is said before the body is read.

    What is checked and not kept may be no larger than an ordinary body, and is given up where it is.

    `describe` checks the fields of the address and the form. Where there is no room for an upload, or the owner has no
    quota left for it, that is said before the body is read, and while it comes. `replays` is the route and the
    Idempotency-Key of a request that may be a replay, which takes nothing.
    """
    context, owner = context_of(request), request.state.caller.owner
    with context.uploads.take(owner) as place:
        length = request.headers.get("content-length", "")
        known = int(length) if length.isascii() and length.isdigit() else 0
        # One that is too large for any owner is refused as such, when it is read.
        place.size = known if known <= context.settings.max_upload_bytes else 0
        room = _Room(context, owner, place)
        await run_in_threadpool(room.admit, replays, check_only)
        most = context.settings.max_body_bytes if check_only else None
        table = await _receive(request, _up_to(request.stream(), most), room, writer, describe)
    await check_again(request)  # a body may take hours
    return table


class _Room:
    """Whether there is room for an upload: free space, and the owner's quota for all that they are sending here."""

    def __init__(self, context: Context, owner: str, place: Place) -> None:
        self._context = context
        self._settings = context.settings
        self._owner = owner
        self._place = place
        self._keeps = True  # whether the bytes will count: not those of a check or a replay
        self._next_look = 0

    def admit(self, replays: tuple[str, str] | None, check_only: bool) -> None:
        """Look before the body comes; raises TooMany, Unavailable or OutOfSpace."""
        space.check(self._settings, self._place.size)
        with self._context.db.read() as session:
            replayed = replays is not None and idempotency.is_known(session, self._owner, *replays)
            if not replayed:
                adds = self._context.uploads.size_of(self._owner)
                quotas.check(session, self._settings, self._owner, adds)
        if check_only or replayed:
            self._keeps, self._place.size = False, 0

    def grown_to(self, size: int) -> None:
        """Look now and then while the body comes: its length may be unknown, and others take room as well."""
        if self._keeps:
            self._place.size = max(self._place.size, size)
        if size < self._next_look:
            return
        self._next_look = size + min(size, _LOOK_BYTES)
        try:
            space.check(self._settings)
            self._check_quota()
        except ServiceError as error:
            error.headers["Connection"] = "close"  # what is left of the body is not read
            raise

    def _check_quota(self) -> None:
        if not self._keeps or self._settings.quota_bytes is None:
            return
        adds = self._context.uploads.size_of(self._owner)
        try:
            with self._context.db.read() as session:
                quotas.check_bytes(session, self._settings, self._owner, adds)
        except Unavailable:
            return  # a database that is away says nothing of the quota; whoever accepts the upload asks again


async def _receive(
    request: Request,
    body: AsyncIterator[bytes],
    room: _Room,
    writer: BlobWriter,
    describe: Callable[[Mapping[str, str]], Said],
) -> Received[Said]:
    given = _query_fields(request)
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != FORM:
        description = describe(given)
        encoding = request.headers.get("content-encoding")
        table = Received(writer, description, datasets.check_format(content_type, encoding))
        await _write(body, room, writer)
        return table
    reader = FormReader(content_type)
    await _write(reader.file(body), room, writer)
    twice = sorted(given.keys() & reader.form.fields.keys())
    if twice:
        raise Invalid(f"{twice[0]} must be given once, in the address or in the form")
    description = describe(given | reader.form.fields)
    return Received(writer, description, datasets.check_format(*_file_format(reader.form)))


def _query_fields(request: Request) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise Invalid(f"{name} must be given once")
        given[name] = value
    return given


def _file_format(form: Form) -> tuple[str, str | None]:
    """The part's own content type, or what its file name says where a browser or curl did not know better."""
    name = (form.file_name or "").lower()
    suffix = Path(name).suffix
    encoding = COMPRESSED.get(suffix)
    if encoding is not None:
        suffix = Path(name.removesuffix(suffix)).suffix
    stated = (form.file_content_type or "").partition(";")[0].strip().lower()
    if stated in CONTENT_TYPES:
        return stated, encoding
    return SUFFIXES.get(suffix, stated), encoding


async def _up_to(chunks: AsyncIterator[bytes], most: int | None) -> AsyncIterator[bytes]:
    """The same bytes; raises TooLarge as soon as they are more than that."""
    seen = 0
    async for chunk in chunks:
        seen += len(chunk)
        if most is not None and seen > most:
            raise TooLarge(
                f"a table is checked without being kept up to {most} bytes, this one has more"
            )
        yield chunk


async def _write(chunks: AsyncIterator[bytes], room: _Room, writer: BlobWriter) -> None:
    """Write in a thread, one piece while the next comes in: hashing and a slow disk must not hold up the loop."""
    writing: asyncio.Task[None] | None = None

    def write(piece: bytes) -> None:
        writer.write(piece)
        room.grown_to(writer.size)

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
        raise Invalid("the body must hold a table, it is empty", code="empty_body")


async def _pieces(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in big pieces."""
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
