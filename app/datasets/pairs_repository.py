"""Queries on the pairs of datasets. The caller has seen that the dataset is the owner's."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, insert, inspect, update
from sqlalchemy.orm import Session

from app.platform.sql import db_now
from app.platform.tables import DatasetPairs, DatasetStatus


def find(session: Session, dataset_id: str) -> DatasetPairs | None:
    """The pairs of a dataset."""
    return session.get(DatasetPairs, dataset_id)


def replace(session: Session, dataset_id: str, **values: Any) -> None:
    """Give a dataset pairs whose bytes are durable and have yet to be read, in place of any it has."""
    session.execute(delete(DatasetPairs).where(DatasetPairs.dataset_id == dataset_id))
    session.execute(
        insert(DatasetPairs).values(
            dataset_id=dataset_id,
            status=DatasetStatus.PROCESSING,
            errors=[],
            created_at=db_now(),
            **values,
        )
    )


def mark_ready(session: Session, job_id: str, **values: Any) -> bool:
    """Write what the reading of the pairs found out; False when none wait for this job."""
    statement = (
        update(DatasetPairs)
        .where(DatasetPairs.job_id == job_id, DatasetPairs.status == DatasetStatus.PROCESSING)
        .values(status=DatasetStatus.READY, errors=[], **values)
        .returning(DatasetPairs.dataset_id)
    )
    return session.scalars(statement).one_or_none() is not None


def copy(session: Session, pairs: DatasetPairs, dataset_id: str) -> None:
    """Give a dataset the pairs of another one whose items it begins with, if these are ready."""
    if pairs.status != DatasetStatus.READY:
        return
    columns = {column.key: getattr(pairs, column.key) for column in inspect(DatasetPairs).columns}
    session.execute(insert(DatasetPairs).values({**columns, "dataset_id": dataset_id}))
