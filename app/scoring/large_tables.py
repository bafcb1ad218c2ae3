"""Tables too large for memory, scored in the API's process block by block, from a file to files."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from app.datasets.description import Format
from app.datasets.uploads import spool
from app.http.bodies import announced_length, receive_whole
from app.http.dependencies import Context, context_of
from app.http.limits import release_at_end
from app.http.responses import disconnected
from app.platform import resources
from app.platform.settings import Settings
from app.scoring.answers import ScoresFiles, ScoresResponse, warning_headers
from app.scoring.service import ModelCache, RowScores, Served, join_scores
from app.scoring.table_rows import (
    FileBounds,
    TableOptions,
    read_file,
    refuse_for_workers,
)
from app.scoring.turns import find_model

if TYPE_CHECKING:
    import pyarrow as pa

    from app.ingest.stream import Look
    from core.base.ranker import Floats

TURN_SECONDS = 60.0
"""Longest that a table waits until others are scored, in seconds."""
_TURN_LOOK_SECONDS = 0.1
BLOCK_ROWS = 1 << 15
_BODY, _DECISIONS = "body", "decisions"

Parts = list[bytes | BinaryIO]


@dataclass(frozen=True)
class LargeTable:
    """A request to score a large table: the model, the reading options, and `make`, which constructs the response."""

    ref: str
    format: Format
    options: TableOptions
    media_type: str
    make: Callable[[Served, RowScores], ScoresResponse]


class _CallerGone(Exception):
    """Raised when the caller has disconnected."""


async def read_up_to(
    request: Request, most: int
) -> tuple[bytes | memoryview, AsyncIterator[bytes] | None]:
    """Return a body of at most `most` bytes and None; for a longer one, its first bytes and an iterator over the rest.

    If a body announces more bytes, nothing is read.
    """
    length = announced_length(request)
    if length is not None and length <= most:
        return await receive_whole(request, length), None
    body = request.stream()
    if length is not None:
        return b"", body
    pieces: list[bytes] = []
    size = 0
    async for piece in body:
        pieces.append(piece)
        size += len(piece)
        if size > most:
            return b"".join(pieces), body
    return b"".join(pieces), None


async def score(
    request: Request,
    models: ModelCache,
    table: LargeTable,
    begin: bytes | memoryview,
    rest: AsyncIterator[bytes],
) -> tuple[Parts, dict[str, str], Callable[[], None]]:
    """Score a body that begins with these bytes.

    Returns the parts of the response, its headers about the model and the rows, and a function that releases the disk
    space. The upload permit is held until the response is sent, because the files occupy disk space until then; they
    are temporary, so they count towards no quota. The end of the request also releases the permit. Errors that do not
    depend on the body are raised before it is read.
    """
    refuse_for_workers(table.format)
    context, caller = context_of(request), request.scope["caller"]
    owner = caller.owner
    with ExitStack() as stack, _folder(context) as folder:
        permit = stack.enter_context(context.uploads.hold(owner))
        await find_model(models, owner, table.ref)
        await spool(request, permit, _joined(begin, rest), folder / _BODY)

        def work(look: Look) -> tuple[Parts, dict[str, str]]:
            found = models.find(owner, table.ref)
            served = found.noting()
            with ScoresFiles(table.media_type, folder) as answer, ExitStack() as files:
                if served.recorder is not None:
                    spool = files.enter_context((folder / _DECISIONS).open("w+b"))
                    served = served.recorded(request.scope, caller, spool)
                score_file(served, folder / _BODY, table, bounds_of(context.settings), answer, look)
                (folder / _BODY).unlink()
                warnings = served.columns.warnings()
                answer.warn(warnings)
                parts = answer.parts()
                if served.recording is not None:  # the table has no error
                    served.recording.commit()
                return parts, {"X-Model-ID": served.model_id, **warning_headers(warnings)}

        parts, headers = await _in_turn(request, context, owner, work)
        for part in parts:
            if not isinstance(part, bytes):
                stack.callback(part.close)
        done = stack.pop_all().close
    release_at_end(request.scope, done)
    return parts, headers, done


def bounds_of(settings: Settings) -> FileBounds:
    return FileBounds(
        settings.max_columns,
        settings.max_streamed_bytes,
        rows=settings.max_rows,
        held=settings.max_score_bytes,
    )


@contextmanager
def _folder(context: Context) -> Iterator[Path]:
    """Yield a temporary folder."""
    folder = context.blobs.staging_dir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _joined(begin: bytes | memoryview, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield bytes(begin)
    async for piece in rest:
        yield piece


async def _in_turn(
    request: Request,
    context: Context,
    owner: str,
    work: Callable[[Look], tuple[Parts, dict[str, str]]],
) -> tuple[Parts, dict[str, str]]:
    """Run the work in a thread when the owner has a permit; cancel it if the caller hangs up.

    `work` must call its argument from time to time. Raises TooMany if others take too long.
    """
    gone = threading.Event()

    def look() -> None:
        if gone.is_set():
            raise _CallerGone
        resources.check(context.settings)

    async def wait_and_work() -> tuple[Parts, dict[str, str]]:
        deadline = time.monotonic() + TURN_SECONDS
        while (refusal := context.tables.refusal(owner)) is not None:
            if gone.is_set() or time.monotonic() >= deadline:
                raise refusal
            await asyncio.sleep(_TURN_LOOK_SECONDS)
        with context.tables.hold(owner):
            return await run_in_threadpool(work, look)

    working = asyncio.create_task(wait_and_work())
    leaving = asyncio.create_task(disconnected(request.receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        gone.set()
        leaving.cancel()
        await asyncio.wait([working, leaving])  # the thread must not outlive its files
        if not working.cancelled():
            working.exception()


def score_file(
    served: Served,
    path: Path,
    table: LargeTable,
    bounds: FileBounds,
    answer: ScoresFiles,
    look: Look,
) -> None:
    """Score a file block by block into `answer`. Raises Invalid and BadTable with all errors.

    `look` is called between blocks, and may raise.
    """
    scored: list[RowScores] = []
    rows, empty = 0, True
    with ExitStack() as stack:
        for X, ids in _matrices(served, path, table, bounds, stack, look):
            scored.append(served.score_identified(X, ids))
            rows += len(X)
            if rows >= BLOCK_ROWS:
                look()
                answer.add(
                    table.make(
                        served, join_scores(served, scored, with_ids=bool(table.options.keep))
                    )
                )
                scored, rows, empty = [], 0, False
        if scored or empty:
            answer.add(
                table.make(served, join_scores(served, scored, with_ids=bool(table.options.keep)))
            )


def _matrices(
    served: Served,
    path: Path,
    table: LargeTable,
    bounds: FileBounds,
    stack: ExitStack,
    look: Look,
) -> Iterator[tuple[Floats, pa.Array | None]]:
    """Yield blocks with ids, as `score_body` reads them. A block is valid until the next one."""
    features = served.columns
    how = (table.format, features, table.options, served.table_dialect, bounds)
    reader, source = read_file(path, *how, stack, look)
    for batch in reader.batches(source):
        look()
        yield from batch.identified(len(features.names))
