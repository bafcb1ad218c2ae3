"""What routes ask for: the caller, the process's context, a page, a preference, an idempotency key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import BoundedSemaphore
from typing import Annotated

from fastapi import Depends, Header, Query
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response

from app.access.service import Caller, KeyRing
from app.http.limits import Pace, Places
from app.http.server import Drain
from app.jobs.dispatcher import publish_after_commit
from app.jobs.watcher import Watcher
from app.platform.background import Errands
from app.platform.blobs import BlobStore
from app.platform.broker import Producer
from app.platform.database import Database
from app.platform.errors import Invalid, TooMany
from app.platform.settings import Settings
from app.scoring.service import ModelCache

AT_ONCE = 2
LONGEST_TURN_WAIT = 2.0
"""So many long computations run in a process at once, beside the scores; another waits so long, in seconds."""
LOOKUPS_AT_ONCE = 4
"""So many keys that this process has not met are looked up at once: threads are left for those that it has."""


@dataclass(frozen=True)
class Context:
    """The settings, the doors to database, blobs and broker, and this process's caches."""

    settings: Settings
    db: Database
    blobs: BlobStore
    producer: Producer
    keys: KeyRing
    models: ModelCache
    watcher: Watcher
    drain: Drain
    registry: CollectorRegistry
    uploads: Places
    waiters: Places
    requests: Places
    publish: Errands
    chores: Errands
    strangers: Pace
    pace: Pace | None = None
    stranger_lookups: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(LOOKUPS_AT_ONCE)
    )
    turns: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(AT_ONCE))
    uploading: set[tuple[str, str | None]] = field(default_factory=set)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let a long computation run if there is room for it; a client that asks for many gets 429."""
        if not self.turns.acquire(timeout=LONGEST_TURN_WAIT):
            raise TooMany(f"{AT_ONCE} answers like this are being computed: try again in a moment")
        try:
            yield
        finally:
            self.turns.release()

    async def wait_for_end(self, owner: str, job_id: str, seconds: float) -> bool:
        """Wait till the job ends or the time is up; false, at once, where the owner has no place to wait."""
        if self.waiters.refusal(owner) is not None:
            return False
        with self.waiters.take(owner):
            await self.watcher.wait(job_id, lambda sight: sight.final, seconds)
        return True

    def wake_a_worker(self, job_id: str) -> None:
        """Say that there is work, in the background: a broker that hangs must not hold up an answer."""
        self.publish.ask(partial(publish_after_commit, self.producer, job_id))


def context_of(request: Request) -> Context:
    """The process's context."""
    context: Context = request.app.state.context
    return context


LONGEST_WAIT = 60.0
_LONGEST_IDEMPOTENCY_KEY = 255


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


@dataclass(frozen=True)
class Paging:
    """Which page of a list."""

    limit: int
    after: str | None


def _paging(
    limit: Annotated[int, Query(ge=1, le=200, description="Most entries on the page.")] = 50,
    after: Annotated[
        str | None, Query(description="Cursor of the page: `next` of the one before.")
    ] = None,
) -> Paging:
    return Paging(limit, after)


@dataclass(frozen=True)
class Judged:
    """Which evaluations or comparisons a list is of."""

    model_id: str | None
    dataset_id: str | None


def _judged(
    model_id: Annotated[str | None, Query(description="Only those of this model.")] = None,
    dataset_id: Annotated[str | None, Query(description="Only those on this dataset.")] = None,
) -> Judged:
    return Judged(model_id, dataset_id)


def preferences(request: Request) -> dict[str, str]:
    """The Prefer header's preferences by name (RFC 7240); of one given twice the first counts."""
    found: dict[str, str] = {}
    for header in request.headers.getlist("prefer"):
        for part in header.split(","):
            name, _, value = part.partition(";")[0].partition("=")
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


@dataclass(frozen=True)
class Patience:
    """How long the caller will wait for the work itself; 0 for not at all."""

    seconds: float

    def applied(self, response: Response) -> None:
        """Tell the caller that the wait was granted."""
        response.headers["Preference-Applied"] = f"wait={self.seconds:g}"


def _patience(
    request: Request,
    prefer: Annotated[
        str | None,
        Header(
            description="`wait=N` holds the answer until the work is done, for at most N ≤ 60 seconds.",
            examples=["wait=30"],
        ),
    ] = None,
) -> Patience:
    text = preferences(request).get("wait", "")
    # An odd preference is ignored, as RFC 7240 has it.
    seconds = float(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0
    return Patience(min(seconds, LONGEST_WAIT))


def _idempotency_key(
    idempotency_key: Annotated[
        str | None,
        Header(
            description="Any text of the caller's choice. The same key with the same request replays the first answer.",
            examples=["nightly-2026-01-31"],
        ),
    ] = None,
) -> str | None:
    if idempotency_key is None:
        return None
    fits = 0 < len(idempotency_key) <= _LONGEST_IDEMPOTENCY_KEY
    if not fits or not idempotency_key.isascii() or not idempotency_key.isprintable():
        raise Invalid(
            f"Idempotency-Key must have 1 to {_LONGEST_IDEMPOTENCY_KEY} printable ASCII characters"
        )
    return idempotency_key


ContextDep = Annotated[Context, Depends(context_of)]
CallerDep = Annotated[Caller, Depends(_caller)]
PagingDep = Annotated[Paging, Depends(_paging)]
JudgedDep = Annotated[Judged, Depends(_judged)]
PatienceDep = Annotated[Patience, Depends(_patience)]
IdempotencyKeyDep = Annotated[str | None, Depends(_idempotency_key)]
ValidateOnly = Annotated[
    bool, Query(alias="validate", description="Check everything and create nothing.")
]
