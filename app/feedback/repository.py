"""Queries for feedback settings, and for the segments of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, delete, exists, func, insert, or_, select, tuple_, update

from app.platform import catalogue
from app.platform.blobs import Blob
from app.platform.sql import (
    Page,
    Session,
    db_now,
    decode_cursor,
    delete_some,
    encode_cursor,
    upsert_into,
)
from app.platform.tables import AliasFeedback, DecisionSegment, LegalHold

SETTLED_SECONDS = 2.0
DAY = 86_400.0
_IDS_AT_ONCE = 500


def newest(session: Session, owner: str, name: str, alias: str) -> AliasFeedback | None:
    """Return the newest revision; None if there never was any."""
    return session.scalars(_revisions(owner, name, alias).limit(1)).one_or_none()


def _revisions(owner: str, name: str, alias: str) -> Select[AliasFeedback]:
    return (
        select(AliasFeedback)
        .where(
            AliasFeedback.readable_by(owner),
            AliasFeedback.name == name,
            AliasFeedback.alias == alias,
        )
        .order_by(AliasFeedback.revision.desc())
    )


def add_revision(session: Session, row: dict[str, Any]) -> bool:
    """Insert a revision; returns False if another request has just inserted it."""
    statement = (
        upsert_into(session, AliasFeedback)
        .values(at=db_now(), **row)
        .on_conflict_do_nothing()
        .returning(AliasFeedback.revision)
    )
    return session.execute(statement).one_or_none() is not None


def add_segment(session: Session, row: dict[str, Any], blob: Blob) -> bool:
    """Insert a segment and its blob's entry; returns False if its log is already sealed: the blob is then swept."""
    covers = exists().where(
        DecisionSegment.log_id == row["log_id"],
        DecisionSegment.first_sequence <= row["first_sequence"],
        DecisionSegment.last_sequence >= row["first_sequence"],
        DecisionSegment.readable_by(row["owner"]),
    )
    if session.scalar(select(covers)):
        return False
    statement = (
        upsert_into(session, DecisionSegment)
        .values(sealed_at=db_now(), **row)
        .on_conflict_do_nothing(index_elements=["log_id", "first_sequence"])
        .returning(DecisionSegment.id)
    )
    if session.execute(statement).one_or_none() is None:
        return False
    catalogue.add(session, [blob])
    return True


def list_segments(
    session: Session,
    owner: str,
    name: str | None,
    alias: str | None,
    *,
    limit: int,
    after: str | None,
) -> Page[DecisionSegment]:
    """Return final segments, oldest first, always with a cursor, so that the caller can continue there later.

    Segments that are not final are not listed: a caller who has read them would read their decisions again in the
    segment that replaces them. A segment is listed some seconds after it became final: a transaction that began earlier
    may end later, and the caller would miss its segment.
    """
    statement = select(DecisionSegment).where(
        DecisionSegment.readable_by(owner), DecisionSegment.final_at < db_now() - SETTLED_SECONDS
    )
    if name is not None:
        statement = statement.where(DecisionSegment.name == name)
    if alias is not None:
        statement = statement.where(DecisionSegment.alias == alias)
    place = DecisionSegment.final_at, DecisionSegment.id
    if after is not None:
        statement = statement.where(tuple_(*place) > tuple_(*decode_cursor(after)))
    rows = list(session.scalars(statement.order_by(*place).limit(limit + 1)))
    found = rows[:limit]
    following = encode_cursor(found[-1].final_at or 0.0, found[-1].id) if found else after
    return Page(found, len(rows) > limit, following)


def prune_segments(session: Session, owner: str, name: str, alias: str, limit: int) -> int:
    """Delete up to `limit` segments that are older than the days of their alias.

    The newest settings apply, also if decisions of the alias are no longer recorded, or the alias was deleted.
    """
    statement = _revisions(owner, name, alias).where(AliasFeedback.settings.is_not(None)).limit(1)
    newest = session.scalar(statement)
    if newest is None or newest.settings is None:
        return 0
    return delete_some(
        session,
        DecisionSegment,
        DecisionSegment.readable_by(owner),
        DecisionSegment.name == name,
        DecisionSegment.alias == alias,
        DecisionSegment.last_at < db_now() - newest.settings["days"] * DAY,
        ~LegalHold.covers(owner),
        limit=limit,
    )


def find_segment(session: Session, owner: str, segment_id: str) -> DecisionSegment | None:
    statement = select(DecisionSegment).where(
        DecisionSegment.readable_by(owner), DecisionSegment.id == segment_id
    )
    return session.scalars(statement).one_or_none()


def segments_at(
    session: Session, owner: str, first: float, last: float
) -> Sequence[DecisionSegment]:
    """Return segments that may have decisions from `first` to `last`."""
    statement = (
        select(DecisionSegment)
        .where(
            DecisionSegment.readable_by(owner),
            DecisionSegment.first_at <= last,
            DecisionSegment.last_at >= first,
        )
        .order_by(DecisionSegment.first_at, DecisionSegment.id)
    )
    return session.scalars(statement).all()


class PendingSegment(NamedTuple):
    """A segment that is not final yet. `key` is the key of its blob."""

    id: str
    name: str
    alias: str
    log_id: str
    first_sequence: int
    last_sequence: int
    origin: str
    first_at: float
    last_at: float
    rows: int
    lost: int
    sealed_at: float
    key: str


def pending_logs(session: Session, owner: str, before: float, rows: int) -> Sequence[str]:
    """Return logs with segments to make final: begun or sealed before a time, or with enough rows."""
    statement = (
        select(DecisionSegment.log_id)
        .where(DecisionSegment.readable_by(owner), DecisionSegment.final_at.is_(None))
        .group_by(DecisionSegment.log_id)
        .having(
            or_(
                func.min(DecisionSegment.sealed_at) < before,
                func.min(DecisionSegment.first_at) < before,
                func.sum(DecisionSegment.rows) >= rows,
            )
        )
    )
    return session.scalars(statement.order_by(DecisionSegment.log_id)).all()


def pending_segments(session: Session, owner: str, log_id: str, limit: int) -> list[PendingSegment]:
    """Return a log's first segments that are not final, in order."""
    columns = DecisionSegment.__table__.c
    fields = ("segment_key" if name == "key" else name for name in PendingSegment._fields)
    statement = (
        select(*(columns[name] for name in fields))
        .where(
            DecisionSegment.readable_by(owner),
            DecisionSegment.log_id == log_id,
            DecisionSegment.final_at.is_(None),
        )
        .order_by(DecisionSegment.first_sequence)
        .limit(limit)
    )
    return [PendingSegment(*row) for row in session.execute(statement)]


def final_keys(
    session: Session, owner: str, name: str, alias: str, first_at: float, last_at: float
) -> Sequence[str]:
    """Return the blobs of final segments of scored decisions between two times."""
    statement = select(DecisionSegment.segment_key).where(
        DecisionSegment.readable_by(owner),
        DecisionSegment.name == name,
        DecisionSegment.alias == alias,
        DecisionSegment.first_at <= last_at,
        DecisionSegment.last_at >= first_at,
        DecisionSegment.origin == "score",
        DecisionSegment.final_at.is_not(None),
    )
    return session.scalars(statement.order_by(DecisionSegment.id)).all()


def lock_alias(session: Session, owner: str, name: str, alias: str) -> None:
    """Let no other transaction make segments of the alias final until this one has ended."""
    statement = _revisions(owner, name, alias).with_only_columns(AliasFeedback.revision)
    session.execute(statement.limit(1).with_for_update())


def finish_segment(session: Session, owner: str, segment_id: str) -> bool:
    """Make a segment final unchanged. Returns False if it is gone."""
    statement = (
        update(DecisionSegment)
        .where(DecisionSegment.readable_by(owner), DecisionSegment.id == segment_id)
        .values(final_at=db_now())
        .returning(DecisionSegment.id)
    )
    return session.execute(statement).one_or_none() is not None


def replace_segments(
    session: Session, owner: str, old: Sequence[PendingSegment], row: dict[str, Any], blob: Blob
) -> bool:
    """Replace segments by a final one. Returns False, and changes nothing, if one has changed or is gone.

    The blobs of the others have their grace period before they are deleted, because they may be in use.
    """
    columns = DecisionSegment.__table__.c
    ids = [segment.id for segment in old]
    there: dict[str, str] = {}
    for start in range(0, len(ids), _IDS_AT_ONCE):
        statement = select(columns.id, columns.segment_key).where(
            DecisionSegment.readable_by(owner),
            columns.id.in_(ids[start : start + _IDS_AT_ONCE]),
            columns.final_at.is_(None),
        )
        found = session.execute(statement.with_for_update())
        there |= {each.id: each.segment_key for each in found}
    if there != {segment.id: segment.key for segment in old}:
        return False
    for start in range(0, len(ids), _IDS_AT_ONCE):
        some = old[start : start + _IDS_AT_ONCE]
        session.execute(
            delete(DecisionSegment).where(
                DecisionSegment.readable_by(owner), columns.id.in_([each.id for each in some])
            ),
            execution_options={"synchronize_session": False},
        )
        catalogue.restart_grace(session, [each.key for each in some])
    session.execute(insert(DecisionSegment).values(final_at=db_now(), **row))
    catalogue.add(session, [blob])
    return True
