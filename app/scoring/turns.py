"""Where a request is scored: in the event loop if that is quick, else in a thread; if it takes long, under a permit."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from starlette.concurrency import run_in_threadpool

from app.http.dependencies import Context
from app.ingest.formats import CSV, NDJSON
from app.ingest.rows import most_rows
from app.scoring import cost
from app.scoring.answers import JSON
from app.scoring.service import ModelCache, Served

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")


async def find_model(models: ModelCache, owner: str, ref: str) -> Served:
    """As `ModelCache.find`; while an owner's model loads, its other requests wait without occupying threads."""
    served = models.cached(owner, ref) or await _look(models, owner, ref)
    if served is not None:
        return served
    async with models.turn(owner):
        return await run_in_threadpool(models.find, owner, ref)


async def _look(models: ModelCache, owner: str, ref: str) -> Served | None:
    """As `ModelCache.look`. Concurrent calls share a look-up if no process here changed a model between them."""
    token = models.token()
    if token is None:
        return await run_in_threadpool(models.look, owner, ref)
    key = owner, ref, token
    looking = models.looking.get(key)
    if looking is None:
        looking = asyncio.ensure_future(run_in_threadpool(models.look, owner, ref))
        models.looking[key] = looking
        looking.add_done_callback(partial(_end_look, models, key))
    return await asyncio.shield(looking)  # the end of one request must not end those of others


def _end_look(
    models: ModelCache, key: tuple[str, str, bytes], looking: asyncio.Future[Served | None]
) -> None:
    del models.looking[key]
    if not looking.cancelled():
        looking.exception()  # is retrieved, also if no request waits for it any more


def seconds_of(
    served: Served,
    body: bytes | memoryview | pa.Buffer,
    media_type: str,
    *,
    compressed: bool,
    by_column: bool = False,
) -> float:
    """Bound the seconds that scoring a body takes, before it is parsed.

    `by_column`: JSON may have a list per column, so counting brackets does not bound the number of rows.
    """
    if compressed:
        return math.inf
    least = cost.of_reading(len(body))
    if (
        least > cost.PERMIT_SECONDS
    ):  # `run` does the same however many rows there are: they need not be counted
        return least
    words = texts = 0
    if media_type == JSON:
        text = bytes(body)
        cells = 1 + text.count(b",")
        rows = cells if by_column else max(text.count(b"{"), text.count(b"["))
        words = min(cells, rows * served.columns.n_categorical)
        texts = max(0, cost.count_texts(text) - words)
    elif media_type in (CSV, NDJSON):
        text = bytes(body)
        rows = 1 + text.count(b"\n") + text.count(b"\r")
    else:
        rows = most_rows(len(body))
    return cost.of_reading(len(body), rows, words, texts) + served.cost.of(rows)


async def run(
    context: Context,
    owner: str,
    seconds: float,
    work: Callable[[], Result],
    *,
    inline: bool = False,
) -> Result:
    """Run work of at most `seconds`; with `inline`, very quick work runs in the event loop."""
    if inline and seconds <= cost.INLINE_SECONDS:
        return work()
    if seconds <= cost.PERMIT_SECONDS:
        return await run_in_threadpool(work)
    return await context.compute(owner, work)
