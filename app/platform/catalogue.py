"""The catalogue of the blob store: which blobs exist, with their sizes and hashes.

A blob's entry is written in the transaction that writes the first row which refers to the blob. So no row refers, now
or later, to a blob without an entry, unless its transaction is still open; and no row can begin to refer to a blob
whose entry is marked `deleted`. Other rows may refer to a blob only by copying its key from a row that they lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import CursorResult, delete, event, exists, insert, select, update

from app.platform.blobs import Blob, BlobMissing, BlobWriter
from app.platform.database import Database
from app.platform.ids import uuid7
from app.platform.sql import Session, db_now
from app.platform.tables import BlobEntry, BlobHold, BlobState

_PER_STATEMENT = 500


def add(session: Session, blobs: Iterable[Blob]) -> None:
    """Insert the blobs of this transaction's rows. Fails if the sweeper has deleted one as a file without an entry."""
    rows = [
        {
            "key": b.key,
            "kind": b.kind,
            "sha256": b.sha256,
            "bytes": b.bytes,
            "state": BlobState.STORED,
        }
        for b in blobs
    ]
    if rows:
        session.execute(insert(BlobEntry).values(published_at=db_now()), rows)


def commit(session: Session, writer: BlobWriter) -> Blob:
    """Insert the blob's entry, and publish the blob when the transaction commits, after all that may refuse it. May be
    repeated with the transaction.
    """
    add(session, [writer.blob])
    event.listen(session, "before_commit", lambda _: writer.commit())
    return writer.blob


def find(session: Session, key: str) -> Blob:
    """Raises BlobMissing."""
    return find_all(session, [key])[key]


def find_all(session: Session, keys: Collection[str]) -> dict[str, Blob]:
    """Raises BlobMissing if one has no entry."""
    found = entries(session, list(keys))
    for key in keys:
        if key not in found:
            raise BlobMissing(key)
    return found


def entries(session: Session, keys: Sequence[str]) -> dict[str, Blob]:
    """Leave out keys without stored blobs."""
    found: dict[str, Blob] = {}
    for start in range(0, len(keys), _PER_STATEMENT):
        statement = select(BlobEntry.key, BlobEntry.sha256, BlobEntry.bytes).where(
            BlobEntry.key.in_(keys[start : start + _PER_STATEMENT]),
            BlobEntry.state == BlobState.STORED,
        )
        found |= {row.key: Blob(*row) for row in session.execute(statement)}
    return found


def all_stored(session: Session) -> list[Blob]:
    """In the order of keys."""
    statement = select(BlobEntry.key, BlobEntry.sha256, BlobEntry.bytes).where(
        BlobEntry.state == BlobState.STORED
    )
    return [Blob(*row) for row in session.execute(statement.order_by(BlobEntry.key))]


def stored_before(session: Session, age_seconds: float, after: str, limit: int) -> Sequence[str]:
    """Return blobs published at least `age_seconds` ago, in the order of keys."""
    statement = (
        select(BlobEntry.key)
        .where(
            BlobEntry.key > after,
            BlobEntry.state == BlobState.STORED,
            BlobEntry.published_at <= db_now() - age_seconds,
        )
        .order_by(BlobEntry.key)
        .limit(limit)
    )
    return session.scalars(statement).all()


def restart_grace(session: Session, keys: Collection[str]) -> None:
    """Begin a new grace period: a reader may still use a blob without a row."""
    session.execute(
        update(BlobEntry).where(BlobEntry.key.in_(keys)).values(published_at=db_now()),
        execution_options={"synchronize_session": False},
    )


def mark_deleted(session: Session, keys: Collection[str]) -> None:
    """Mark blobs without rows as deleted. Their files may be deleted after the commit."""
    session.execute(
        update(BlobEntry).where(BlobEntry.key.in_(keys)).values(state=BlobState.DELETED),
        execution_options={"synchronize_session": False},
    )


def mark_unknown(session: Session, keys: Sequence[str]) -> list[str]:
    """Insert `deleted` entries for files without one; returns what may be deleted.

    A transaction that still tries to refer to one of them then fails, instead of referring to a blob that does not
    exist.
    """
    statement = select(BlobEntry.key, BlobEntry.state).where(BlobEntry.key.in_(keys))
    known = {row.key: row.state for row in session.execute(statement)}
    unknown = [Blob(key, "", 0) for key in keys if key not in known]
    add(session, unknown)
    mark_deleted(session, [blob.key for blob in unknown])
    return [key for key in keys if known.get(key) != BlobState.STORED]


def prune_deleted(session: Session, age_seconds: float, limit: int) -> int:
    """Delete up to `limit` old entries of deleted blobs."""
    doomed = select(BlobEntry.key).where(
        BlobEntry.state == BlobState.DELETED, BlobEntry.published_at < db_now() - age_seconds
    )
    done: CursorResult[object] = session.execute(  # type: ignore[assignment]  # a DELETE's result counts its rows
        delete(BlobEntry).where(BlobEntry.key.in_(doomed.limit(limit))),
        execution_options={"synchronize_session": False},
    )
    return done.rowcount


@contextmanager
def hold(db: Database) -> Iterator[None]:
    """Prevent the deletion of blobs in use, for at most one grace period."""
    id_ = uuid7()
    with db.write() as session:
        session.execute(insert(BlobHold).values(id=id_, since=db_now()))
    try:
        yield
    finally:
        with db.write() as session:
            session.execute(delete(BlobHold).where(BlobHold.id == id_))


def is_held(session: Session, longest_seconds: float) -> bool:
    """Return True if a process prevents deletions. A hold older than `longest_seconds` is a dead process's."""
    alive = BlobHold.since > db_now() - longest_seconds
    return bool(session.scalar(select(exists().where(alive))))


def release_all(session: Session) -> None:
    """Delete all holds in a copy of the database, to which they do not apply."""
    session.execute(delete(BlobHold))
