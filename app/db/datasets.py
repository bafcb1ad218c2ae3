"""Queries on datasets."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete as sql_delete
from sqlalchemy import insert as sql_insert
from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session, selectinload

from app.db.base import Json
from app.db.page import Page, fetch_page
from app.db.profile_tables import DatasetProfile
from app.db.tables import FINAL_STATES, Dataset, DatasetStatus, Job
from app.db.time import db_now


def insert(session: Session, **values: Any) -> Dataset:
    """Add a dataset whose bytes are durable and have yet to be read, created now by the database's clock."""
    statement = (
        sql_insert(Dataset)
        .values(
            status=DatasetStatus.PROCESSING,
            columns=[],
            errors=[],
            created_at=db_now(),
            **values,
        )
        .returning(Dataset)
    )
    return session.scalars(statement).one()


def find(session: Session, owner: str, dataset_id: str, *, lock: bool = False) -> Dataset | None:
    """The owner's dataset with its pairs. `lock` holds the row until the transaction ends."""
    statement = select(Dataset).where(Dataset.id == dataset_id, Dataset.owner == owner)
    statement = statement.options(selectinload(Dataset.pairs))
    if lock:
        statement = statement.with_for_update()
    return session.scalars(statement).one_or_none()


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[Dataset]:
    """The owner's datasets with their pairs, newest first."""
    statement = select(Dataset).where(Dataset.owner == owner)
    statement = statement.options(selectinload(Dataset.pairs))
    return fetch_page(session, statement, Dataset.created_at, Dataset.id, limit=limit, after=after)


def unfinished_jobs(session: Session, owner: str, dataset_id: str) -> list[str]:
    """Ids of the jobs that still need the dataset, to train on or to judge by."""
    statement = select(Job.id).where(
        Job.owner == owner,
        Job.parent_id.is_(None),
        Job.state.not_in(FINAL_STATES),
        or_(
            Job.dataset_id == dataset_id,
            Job.spec["validation"]["dataset_id"].as_string() == dataset_id,
        ),
    )
    return list(session.scalars(statement))


def mark_ready(session: Session, owner: str, dataset_id: str, **values: Any) -> bool:
    """Write what the reading of the table found out; False when there is no such dataset in processing."""
    statement = (
        update(Dataset)
        .where(
            Dataset.id == dataset_id,
            Dataset.owner == owner,
            Dataset.status == DatasetStatus.PROCESSING,
        )
        .values(status=DatasetStatus.READY, errors=[], **values)
        .returning(Dataset.id)
    )
    return session.scalars(statement).one_or_none() is not None


def add_profile(session: Session, dataset_id: str, profile: Json) -> None:
    """Write the profile of a dataset; `columns` by name become a list in their order."""
    columns = [{"name": name, **found} for name, found in profile["columns"].items()]
    session.add(
        DatasetProfile(
            dataset_id=dataset_id,
            rows=profile["rows"],
            columns=columns,
            duplicates=profile["duplicates"],
        )
    )


def find_profile(session: Session, dataset_id: str) -> DatasetProfile | None:
    """The profile of a dataset that the caller has found to be the owner's."""
    return session.get(DatasetProfile, dataset_id)


def delete(session: Session, owner: str, dataset_id: str) -> None:
    """Remove the row."""
    session.execute(sql_delete(Dataset).where(Dataset.owner == owner, Dataset.id == dataset_id))
