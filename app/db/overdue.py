"""What the dispatcher should have seen to long ago: the evidence by which its health is judged."""

from __future__ import annotations

from sqlalchemy import and_, case, func, select
from sqlalchemy.orm import Session
from sqlalchemy.sql import ColumnElement

from app.db.tables import Job, JobState, Outbox
from app.db.time import db_now, machine_now


def wake_ups(session: Session, seconds: float) -> int:
    """How many wake-ups have been due that long and were not sent."""
    due_before = db_now() - seconds
    owed = (
        select(func.count())
        .select_from(Outbox)
        .join(Job, Job.id == Outbox.job_id)
        .where(
            Outbox.published_at.is_(None),
            Outbox.created_at < due_before,
            Job.state == JobState.QUEUED,
            Job.not_before < due_before,
        )
    )
    return session.scalars(owed).one()


def lease_is_over(lease_seconds: float, for_seconds: float = 0.0) -> ColumnElement[bool]:
    """Whether a running job has been without its lease for that long.

    PostgreSQL's own clock says so. SQLite has only the clock of whichever process asks, which may be set at any
    moment, forth or back: there the time of the last heartbeat is compared with the machine's, and one that lies
    ahead is from before the machine was last started.
    """
    silence = lease_seconds + for_seconds
    return and_(
        Job.state == JobState.RUNNING,
        case(
            (Job.beaten_at.is_(None), Job.lease_expires_at < db_now() - for_seconds),
            else_=~machine_now().between(Job.beaten_at, Job.beaten_at + silence),
        ),
    )


def leases(session: Session, lease_seconds: float, seconds: float) -> int:
    """How many running jobs have been without a lease that long."""
    lost = select(func.count()).select_from(Job).where(lease_is_over(lease_seconds, seconds))
    return session.scalars(lost).one()
