"""Queries for feedback settings, and for the segments of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, select, tuple_

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
from app.platform.tables import AliasFeedback, DecisionSegment

SETTLED_SECONDS = 2.0
DAY = 86_400.0


def newest(session: Session, owner: str, name: str, alias: str) -> AliasFeedback | None:
    """Return the newest revision of the feedback settings of an alias; None if it never had any."""
    return session.scalars(_revisions(owner, name, alias).limit(1)).one_or_none()


def _revisions(owner: str, name: str, alias: str) -> Select[AliasFeedback]:
    """Return the statement that selects the revisions of the feedback settings of an alias, newest first."""
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
    """Insert a revision of feedback settings; returns False if another request has just inserted it."""
    statement = (
        upsert_into(session, AliasFeedback)
        .values(at=db_now(), **row)
        .on_conflict_do_nothing()
        .returning(AliasFeedback.revision)
    )
    return session.execute(statement).one_or_none() is not None


def add_segment(session: Session, row: dict[str, Any], blob: Blob) -> bool:
    """Insert a segment and the entry of its blob; returns False if its log is already sealed. The blob then has no
    entry, and is swept.
    """
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
    """Return a page of the segments of decisions, oldest first. It has a cursor also if there are no more, so
    that the caller can continue there later.

    A segment is in the list some seconds after it was sealed: a transaction that began earlier may end later, and its
    segment would be missed.
    """
    statement = select(DecisionSegment).where(
        DecisionSegment.readable_by(owner), DecisionSegment.sealed_at < db_now() - SETTLED_SECONDS
    )
    if name is not None:
        statement = statement.where(DecisionSegment.name == name)
    if alias is not None:
        statement = statement.where(DecisionSegment.alias == alias)
    place = DecisionSegment.sealed_at, DecisionSegment.id
    if after is not None:
        statement = statement.where(tuple_(*place) > tuple_(*decode_cursor(after)))
    rows = list(session.scalars(statement.order_by(*place).limit(limit + 1)))
    found = rows[:limit]
    following = encode_cursor(found[-1].sealed_at, found[-1].id) if found else after
    return Page(found, len(rows) > limit, following)


def prune_segments(session: Session, owner: str, name: str, alias: str, limit: int) -> int:
    """Delete up to `limit` segments of decisions that are older than the days of their alias; returns their number.

    The newest settings apply; of an alias whose decisions are no longer recorded, or that was deleted, the last ones.
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
        limit=limit,
    )


def find_segment(session: Session, owner: str, segment_id: str) -> DecisionSegment | None:
    """Return a segment of decisions; None if it does not exist."""
    statement = select(DecisionSegment).where(
        DecisionSegment.readable_by(owner), DecisionSegment.id == segment_id
    )
    return session.scalars(statement).one_or_none()


def segments_at(
    session: Session, owner: str, first: float, last: float
) -> Sequence[DecisionSegment]:
    """Return the segments that may have decisions of a time from `first` to `last`."""
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
