"""Queries for the files of decisions that jobs read and write."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select

from app.platform.sql import Session, db_now
from app.platform.tables import AliasFeedback, DecisionSegment

KIND = "decisions"
"""Kind of the files of decisions in the blob store."""
BACKFILL = "backfill"
"""Origin of decisions of another system."""


def find_settings(
    session: Session, owner: str, name: str, alias: str, revision: int
) -> AliasFeedback | None:
    """Return None if it does not exist."""
    statement = select(AliasFeedback).where(
        AliasFeedback.readable_by(owner),
        AliasFeedback.name == name,
        AliasFeedback.alias == alias,
        AliasFeedback.revision == revision,
    )
    return session.scalars(statement).one_or_none()


def segments_of_origin(session: Session, owner: str, origin: str) -> Sequence[DecisionSegment]:
    """Oldest first."""
    statement = select(DecisionSegment).where(
        DecisionSegment.readable_by(owner), DecisionSegment.origin == origin
    )
    return session.scalars(statement.order_by(DecisionSegment.first_at, DecisionSegment.id)).all()


def add_segments(session: Session, rows: Sequence[DecisionSegment]) -> None:
    """Insert segments, sealed and final now. A repeated transaction may add a row again."""
    for row in rows:
        columns = {
            column.key: getattr(row, column.key)
            for column in DecisionSegment.__table__.columns
            if column.key not in ("sealed_at", "final_at")
        }
        times = {"sealed_at": db_now(), "final_at": db_now()}
        session.execute(insert(DecisionSegment).values(**times, **columns))
