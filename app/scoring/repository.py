"""Queries on tables scored by a job."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete as sql_delete
from sqlalchemy import insert as sql_insert
from sqlalchemy import select, update
from sqlalchemy.orm import Session, selectinload

from app.platform.sql import Page, db_now, fetch_page
from app.platform.tables import FINAL_STATES, BatchScore, Job


def insert(session: Session, **values: Any) -> BatchScore:
    """Add one that its job has yet to make, created now by the database's clock."""
    statement = sql_insert(BatchScore).values(created_at=db_now(), **values).returning(BatchScore)
    return session.scalars(statement).one()


def find(session: Session, owner: str, id_: str, *, lock: bool = False) -> BatchScore | None:
    """The owner's, with its job. `lock` holds the row until the transaction ends."""
    statement = select(BatchScore).where(BatchScore.owner == owner, BatchScore.id == id_)
    statement = statement.options(selectinload(BatchScore.job))
    if lock:
        statement = statement.with_for_update()
    return session.scalars(statement).one_or_none()


def list_page(
    session: Session,
    owner: str,
    *,
    model_id: str | None,
    dataset_id: str | None,
    limit: int,
    after: str | None,
) -> Page[BatchScore]:
    """The owner's, newest first, of one model or dataset if one is given."""
    statement = select(BatchScore).where(BatchScore.owner == owner)
    statement = statement.options(selectinload(BatchScore.job))
    if model_id is not None:
        statement = statement.where(BatchScore.model_id == model_id)
    if dataset_id is not None:
        statement = statement.where(BatchScore.dataset_id == dataset_id)
    return fetch_page(
        session, statement, BatchScore.created_at, BatchScore.id, limit=limit, after=after
    )


def write(session: Session, owner: str, id_: str, **values: Any) -> bool:
    """Write what the job has made; False where the row was deleted meanwhile."""
    statement = update(BatchScore).where(BatchScore.owner == owner, BatchScore.id == id_)
    statement = statement.values(upload_key=None, upload_bytes=None, **values)
    return session.scalars(statement.returning(BatchScore.id)).one_or_none() is not None


def take_over(session: Session, old_job_id: str, job_id: str) -> None:
    """Have another job make what an earlier one did not."""
    session.execute(update(BatchScore).where(BatchScore.job_id == old_job_id).values(job_id=job_id))


def unfinished_of_model(session: Session, owner: str, model_id: str) -> list[str]:
    """Ids of the jobs that have yet to score with this model."""
    statement = (
        select(Job.id)
        .join(BatchScore, BatchScore.job_id == Job.id)
        .where(
            Job.owner == owner,
            Job.state.not_in(FINAL_STATES),
            BatchScore.model_id == model_id,
        )
    )
    return list(session.scalars(statement))


def delete(session: Session, owner: str, id_: str) -> None:
    """Remove the row."""
    session.execute(sql_delete(BatchScore).where(BatchScore.owner == owner, BatchScore.id == id_))
