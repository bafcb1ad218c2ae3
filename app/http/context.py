"""What one API process holds: made once at start, handed to the routes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import BoundedSemaphore

from prometheus_client import CollectorRegistry
from starlette.requests import Request

from app.access.service import KeyRing
from app.http.drain import Drain
from app.http.limits import Pace
from app.http.places import Places
from app.jobs.dispatcher import publish_after_commit
from app.jobs.watcher import Watcher
from app.platform.background import Errands
from app.platform.blobs import BlobStore
from app.platform.broker import Producer
from app.platform.database import Database
from app.platform.errors import TooMany
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
