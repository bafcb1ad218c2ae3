"""SQL of schedules."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import func, select

from app.platform.sql import Page, Session, fetch_page
from app.platform.tables import Job, Schedule


def add(session: Session, row: Schedule) -> None:
    """Insert a schedule."""
    session.add(row)
    session.flush()


def count(session: Session, owner: str) -> int:
    """Return the number of the owner's schedules."""
    statement = select(func.count()).select_from(Schedule).where(Schedule.readable_by(owner))
    return session.scalars(statement).one()


def find(session: Session, owner: str, schedule_id: str, *, lock: bool = False) -> Schedule | None:
    """Return a schedule; with `lock`, as it is now and locked until the transaction ends. None if there is none."""
    statement = select(Schedule).where(Schedule.readable_by(owner), Schedule.id == schedule_id)
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    return session.scalars(statement).one_or_none()


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[Schedule]:
    """Return a page of the owner's schedules, newest first."""
    statement = select(Schedule).where(Schedule.readable_by(owner))
    return fetch_page(
        session, statement, Schedule.created_at, Schedule.id, limit=limit, after=after
    )


def states_of_jobs(
    session: Session, owner: str, ids: Collection[str]
) -> dict[str, tuple[str, str | None]]:
    """Return state and dataset of each of the owner's jobs with one of these ids, by id. Jobs that do not exist are
    omitted.
    """
    if not ids:
        return {}
    columns = (Job.id, Job.state, Job.dataset_id)
    found = session.execute(select(*columns).where(Job.readable_by(owner), Job.id.in_(ids)))
    return {id_: (state, dataset_id) for id_, state, dataset_id in found}


def remove(session: Session, row: Schedule) -> None:
    """Delete a schedule."""
    session.delete(row)
    session.flush()
