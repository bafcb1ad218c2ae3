"""Deletion of the blobs to which no row refers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

from app.jobs import child_jobs
from app.operations import repository
from app.platform import catalogue, failpoints
from app.platform.blobs import BlobStore
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.sql import Session

_BATCH = 500  # keys looked up by one statement


def sweep(db: Database, blobs: BlobStore, settings: Settings) -> int:
    """Delete unreferenced blobs after their grace period, but not during a backup."""
    grace = settings.blob_grace_seconds
    with db.read() as session:
        spare_staging = repository.runs_since(session, grace)
        parts = child_jobs.unneeded_files(session)
    removed = 0 if spare_staging else blobs.clear_staging(grace)
    # The files of child jobs go whatever their age. They remain if the parent ended without an attempt that deletes
    # them.
    removed += discard(db, blobs, settings, parts)
    after = ""
    while True:
        with db.read() as session:
            page = catalogue.stored_before(session, grace, after, _BATCH)
            unnamed = set(page) - repository.named(session, page)
        removed += discard(db, blobs, settings, unnamed)
        if len(page) < _BATCH:
            break
        after = page[-1]
    old = (found.key for found in blobs.list() if found.age > grace)
    # Python 3.11 has no `itertools.batched`.
    return removed + sum(
        _discard_unknown(db, blobs, settings, batch)
        for batch in iter(lambda: tuple(islice(old, _BATCH)), ())
    )


def discard(db: Database, blobs: BlobStore, settings: Settings, keys: Collection[str]) -> int:
    """Delete unreferenced blobs of `keys`, whatever their age, but not during a backup."""

    def mark(session: Session) -> set[str]:
        # A backup that starts after this transaction copies a database that does not name these blobs either.
        if catalogue.is_held(session, settings.blob_grace_seconds):
            return set()
        unnamed = set(keys) - repository.named(session, list(keys))
        catalogue.mark_deleted(session, unnamed)
        return unnamed

    return _delete(blobs, db.writing(mark)) if keys else 0


def _discard_unknown(
    db: Database, blobs: BlobStore, settings: Settings, keys: Collection[str]
) -> int:
    """Delete files without an entry in the catalogue, or with one in state `deleted`."""
    with db.read() as session:
        unknown = set(keys) - set(catalogue.entries(session, list(keys)))
    if not unknown:
        return 0

    def mark(session: Session) -> list[str]:
        if catalogue.is_held(session, settings.blob_grace_seconds):
            return []
        named = repository.named(session, list(unknown))  # by a row that was written by hand
        return catalogue.mark_unknown(session, sorted(unknown - named))

    return _delete(blobs, db.writing(mark))


def _delete(blobs: BlobStore, keys: Iterable[str]) -> int:
    failpoints.reach("sweep")
    return sum(blobs.delete(key) for key in keys)
