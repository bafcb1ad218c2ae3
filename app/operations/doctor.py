"""The examination, part by part; each is looked at even where another one is not well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlalchemy.exc import DBAPIError

from app.operations import doctor_blobs as blobs
from app.operations import doctor_database as database
from app.operations import doctor_queue as queue
from app.operations import doctor_state as state
from app.operations.doctor_finding import Finding, Level, fail
from app.platform.database import Database
from app.platform.errors import ServiceError
from app.platform.settings import Settings


def examine(
    settings: Settings,
    environment: Mapping[str, str],
    *,
    broker_url: str,
    runs: bool | None,
    deep: bool,
) -> Iterator[Finding]:
    """Look at everything, and say of each part how it is as soon as that is known.

    `runs` tells whether `rankwright serve` runs on this state; None where the service is not run by it. With `deep`
    every byte is read: SQLite's file is checked, and each blob's hash.
    """
    yield from state.settings(settings, environment)
    yield from state.folder(settings)
    yield from state.disk(settings)
    yield queue.broker(broker_url, runs=runs)
    found = database.tables(settings)
    yield found
    if found.level == Level.FAIL:
        return
    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        if deep:
            yield from database.pages(db)
        yield database.clock(db)
        yield database.keys(db, settings)
        yield from queue.jobs(db, settings, runs=runs)
        yield queue.workers(db, settings, runs=runs)
        yield from blobs.store(db, settings, deep=deep)
    except (ServiceError, DBAPIError) as error:
        why = error.detail if isinstance(error, ServiceError) else f"it refuses: {error.orig}"
        yield fail("database", why, "see the database's own log")
    finally:
        db.close()
