"""What one API process holds: made once at start, handed to the routes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from starlette.requests import Request

from app.api.middleware import Traffic
from app.api.watcher import Watcher
from app.db.session import Database
from app.infra.blobs import BlobStore
from app.infra.errand import Errands
from app.infra.producer import Producer
from app.infra.settings import Settings
from app.services.dispatch import publish_after_commit
from app.services.keys import KeyRing
from app.services.scoring import ModelCache


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
    traffic: Traffic
    publish: Errands
    chores: Errands
    uploading: set[tuple[str, str | None]] = field(default_factory=set)

    def wake_a_worker(self, job_id: str) -> None:
        """Say that there is work, in the background: a broker that hangs must not hold up an answer."""
        self.publish.ask(partial(publish_after_commit, self.producer, job_id))


def context_of(request: Request) -> Context:
    """The process's context."""
    context: Context = request.app.state.context
    return context
