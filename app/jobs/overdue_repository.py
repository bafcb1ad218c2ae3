"""What the dispatcher should have seen to long ago: the evidence by which its health is judged."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.jobs.queue_repository import lease_is_over
from app.platform.sql import db_now
from app.platform.tables import Job, JobState, Outbox


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


def leases(session: Session, lease_seconds: float, seconds: float) -> int:
    """How many running jobs have been without a lease that long."""
    lost = select(func.count()).select_from(Job).where(lease_is_over(lease_seconds, seconds))
    return session.scalars(lost).one()
