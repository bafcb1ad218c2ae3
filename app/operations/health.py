"""Whether the parts that a request needs are there, each by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from app.jobs import workers_repository as worker_rows
from app.operations import repository as rows
from app.platform.blobs import BlobStore
from app.platform.broker import BrokerAway, Producer
from app.platform.database import Database
from app.platform.errors import ServiceError
from app.platform.settings import Settings
from app.platform.tables import Worker

SILENT_BEATS = 3


@dataclass(frozen=True)
class Check:
    """One part: whether it is well, and a sentence on how it is."""

    name: str
    ok: bool
    detail: str


def ready(db: Database, blobs: BlobStore, producer: Producer, settings: Settings) -> list[Check]:
    """Look at each part. All must be well for the service to take and do work."""
    return [
        _check("database", lambda: _database(db)),
        _check("blob_store", lambda: _blob_store(blobs)),
        _check("broker", lambda: _broker(producer)),
        _check("worker", lambda: _worker(db, settings)),
    ]


def _check(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except _Unwell as error:
        return Check(name, False, str(error))
    except (ServiceError, BrokerAway, OSError) as error:
        return Check(name, False, str(error))


class _Unwell(Exception):
    """A part answers, but not as it should."""


def _database(db: Database) -> str:
    with db.read() as session:
        rows.ping(session)
    return "answers"


def _blob_store(blobs: BlobStore) -> str:
    if not os.access(blobs.root, os.R_OK | os.W_OK | os.X_OK):
        raise _Unwell("the blob folder cannot be read and written")
    return "can be read and written"


def _broker(producer: Producer) -> str:
    producer.ping()
    return "answers"


def _worker(db: Database, settings: Settings) -> str:
    within = SILENT_BEATS * settings.heartbeat_seconds
    with db.read() as session:
        alive = worker_rows.alive(session, within)
    if not alive:
        raise _Unwell(f"no worker was heard from within {within:g} s; accepted jobs wait")
    notes = [note for note in map(_note, alive) if note]
    return f"{len(alive)} heard from" + "".join(f"; {note}" for note in notes)


def _note(worker: Worker) -> str | None:
    """A worker that finds its jobs by looking, not by message, says so in its row."""
    return f"{worker.host}: {worker.note}" if worker.note else None
