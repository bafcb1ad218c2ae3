"""SQL of schedules."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import func, select

from app.platform.sql import Page, Session, fetch_page
from app.platform.tables import Job, Schedule


def add(session: Session, row: Schedule) -> None:
    session.add(row)
    session.flush()


def count(session: Session, owner: str) -> int:
    statement = select(func.count()).select_from(Schedule).where(Schedule.readable_by(owner))
    return session.scalars(statement).one()


def find(session: Session, owner: str, schedule_id: str, *, lock: bool = False) -> Schedule | None:
    """With `lock`, read it anew, locked until the transaction ends."""
    statement = select(Schedule).where(Schedule.readable_by(owner), Schedule.id == schedule_id)
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    return session.scalars(statement).one_or_none()


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[Schedule]:
    statement = select(Schedule).where(Schedule.readable_by(owner))
    return fetch_page(
        session, statement, Schedule.created_at, Schedule.id, limit=limit, after=after
    )


def states_of_jobs(
    session: Session, owner: str, ids: Collection[str]
) -> dict[str, tuple[str, str | None]]:
    """Return state and dataset by job; jobs that do not exist are omitted."""
    if not ids:
        return {}
    columns = (Job.id, Job.state, Job.dataset_id)
    found = session.execute(select(*columns).where(Job.readable_by(owner), Job.id.in_(ids)))
    return {id_: (state, dataset_id) for id_, state, dataset_id in found}


def remove(session: Session, row: Schedule) -> None:
    session.delete(row)
    session.flush()
