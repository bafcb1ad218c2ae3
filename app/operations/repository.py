"""What the service says about itself, over all owners."""

from __future__ import annotations

from sqlalchemy import case, func, select, text
from sqlalchemy.orm import Session

from app.platform.sql import db_now
from app.platform.tables import FINAL_STATES, Job, JobState


def ping(session: Session) -> None:
    """Have the database answer."""
    session.execute(select(1))


def now(session: Session) -> float:
    """The present by the database's clock."""
    return session.execute(select(db_now())).scalar_one()


def sqlite_faults(session: Session) -> list[str]:
    """What SQLite finds wrong with its file, having read all of it."""
    found = session.scalars(text("PRAGMA integrity_check")).all()
    return [fault for fault in found if fault != "ok"]


def open_jobs(session: Session) -> dict[str, int]:
    """Number of jobs that have yet to end by state, parts of jobs included."""
    statement = select(Job.state, func.count()).where(Job.state.not_in(FINAL_STATES))
    return dict(session.execute(statement.group_by(Job.state)).all())


def oldest_due(session: Session) -> float | None:
    """For how many seconds the oldest queued job that may begin has waited; None where none waits."""
    since = func.min(case((Job.not_before > Job.created_at, Job.not_before), else_=Job.created_at))
    due = select(since).where(Job.state == JobState.QUEUED, Job.not_before <= db_now())
    waited: float | None = session.scalar(select(db_now() - due.scalar_subquery()))
    return None if waited is None else max(0.0, waited)


def job_counts(session: Session) -> dict[tuple[str, str], int]:
    """Number of jobs by kind and state."""
    statement = select(Job.kind, Job.state, func.count()).group_by(Job.kind, Job.state)
    return {(kind, state): count for kind, state, count in session.execute(statement)}
