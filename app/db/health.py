"""What the service says about itself, over all owners."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.db.tables import Job


def ping(session: Session) -> None:
    """Have the database answer."""
    session.execute(select(1))


def job_counts(session: Session) -> dict[tuple[str, str], int]:
    """Number of jobs by kind and state."""
    statement = select(Job.kind, Job.state, func.count()).group_by(Job.kind, Job.state)
    return {(kind, state): count for kind, state, count in session.execute(statement)}
