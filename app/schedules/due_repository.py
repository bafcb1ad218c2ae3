"""SQL of the dispatcher, which runs the schedules of all owners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select

from app.platform.sql import Session, db_now
from app.platform.tables import Schedule


class DueSchedule(NamedTuple):
    """A schedule that is due, and the due time."""

    id: str
    owner: str
    due_at: float


def list_due(session: Session, limit: int) -> Sequence[DueSchedule]:
    """Return those of all owners, longest due first."""
    statement = (
        select(Schedule.id, Schedule.owner, Schedule.due_at)
        .where(Schedule.due_at <= db_now())
        .order_by(Schedule.due_at)
        .limit(limit)
    )
    return [DueSchedule(row.id, row.owner, row.due_at) for row in session.execute(statement)]


def seconds_until_due(session: Session) -> float | None:
    """None if all are paused, or there is none."""
    found = session.scalar(select(func.min(Schedule.due_at) - db_now()))
    return None if found is None else float(found)


def claim(session: Session, due: DueSchedule) -> Schedule | None:
    """Lock a schedule until the transaction ends; None if it is not due at this time, or locked."""
    return session.scalars(
        select(Schedule)
        .where(
            Schedule.readable_by(due.owner), Schedule.id == due.id, Schedule.due_at == due.due_at
        )
        .with_for_update(skip_locked=True)
        .execution_options(populate_existing=True)
    ).one_or_none()
