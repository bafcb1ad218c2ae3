"""Queries for outcomes, their segments, and requests to erase an entity."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select

from app.platform.sql import Session, db_now
from app.platform.tables import AliasFeedback, DecisionSegment, Model, OutcomeSegment


class Segment(NamedTuple):
    """A segment: a blob by its key, or the content of a small request."""

    id: str
    at: float
    rows: int
    key: str | None
    content: bytes | None = None


def now(session: Session) -> float:
    """Return the present time by the database's clock."""
    return session.execute(select(db_now())).scalar_one()


def add(session: Session, row: OutcomeSegment) -> None:
    """Insert a segment of outcomes."""
    session.add(row)
    session.flush()


def outcome_segments(session: Session, owner: str, since: float = 0.0) -> list[Segment]:
    """Return the owner's segments of outcomes that were received at this time or later, oldest first."""
    columns = OutcomeSegment.__table__.c
    statement = (
        select(columns.id, columns.received_at, columns.rows, columns.segment_key, columns.content)
        .where(OutcomeSegment.readable_by(owner), OutcomeSegment.received_at >= since)
        .order_by(OutcomeSegment.received_at, OutcomeSegment.id)
    )
    return [Segment(*row) for row in session.execute(statement)]


def decision_segments(session: Session, owner: str, since: float) -> list[Segment]:
    """Return the owner's segments of decisions that were sealed at this time or later, oldest first."""
    columns = DecisionSegment.__table__.c
    statement = (
        select(columns.id, columns.sealed_at, columns.rows, columns.segment_key)
        .where(DecisionSegment.readable_by(owner), DecisionSegment.sealed_at >= since)
        .order_by(DecisionSegment.sealed_at, DecisionSegment.id)
    )
    return [Segment(*row) for row in session.execute(statement)]


def label_values(session: Session, owner: str) -> set[str]:
    """Return the label values of all models whose name has, or had, an alias with recorded decisions."""
    recorded = select(AliasFeedback.name).where(
        AliasFeedback.readable_by(owner), AliasFeedback.settings.is_not(None)
    )
    statement = (
        select(Model.positive, Model.negative)
        .where(Model.belongs_to(owner), Model.name.in_(recorded))
        .distinct()
    )
    return {value for row in session.execute(statement) for value in row if value is not None}
