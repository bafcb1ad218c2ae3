"""Queries on the jobs of one owner. What workers and the reaper do with them is in `queue.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from app.platform.sql import Json, Page, db_now, delete_some, fetch_page
from app.platform.tables import (
    Dataset,
    DatasetPairs,
    DatasetStatus,
    Job,
    JobEvent,
    JobState,
    Worker,
)

# Built once: SQLAlchemy takes longer to build such a statement than SQLite to run it.
_INSERT = (
    insert(Job)
    .values(
        state=JobState.QUEUED,
        attempt=0,
        lease_token=0,
        beats=0,
        progress={},
        event_seq=1,
        created_at=db_now(),
    )
    .returning(Job)
)
_ADD_EVENT = insert(JobEvent).values(at=db_now())


def insert_job(session: Session, **values: Any) -> Job:
    """Add a queued job, created now by the database's clock, whose first event (number 1) has yet to be written."""
    return session.scalars(_INSERT, values).one()


def add_event(session: Session, job_id: str, seq: int, type_: str, data: Json) -> None:
    """Write one event. `seq` is the `jobs.event_seq` that the same transaction has just raised."""
    session.execute(_ADD_EVENT, {"job_id": job_id, "seq": seq, "type": type_, "data": data})


def find(session: Session, owner: str, job_id: str, *, lock: bool = False) -> Job | None:
    """The owner's job, none of its parts. `lock` holds the row until the transaction ends (SQLite's writers are alone
    anyway).
    """
    statement = select(Job).where(Job.id == job_id, Job.owner == owner, Job.parent_id.is_(None))
    if lock:
        statement = statement.with_for_update()
    return session.scalars(statement).one_or_none()


def list_page(
    session: Session,
    owner: str,
    *,
    state: str | None,
    kind: str | None,
    dataset_id: str | None,
    limit: int,
    after: str | None,
) -> Page[Job]:
    """The owner's jobs, newest first. `cancelling` is a running job that was asked to stop; one that waits for its
    parts is running, too.
    """
    statement = select(Job).where(Job.owner == owner, Job.parent_id.is_(None))
    if state == "cancelling":
        statement = statement.where(
            Job.state == JobState.RUNNING, Job.cancel_requested_at.is_not(None)
        )
    elif state == JobState.RUNNING:
        statement = statement.where(
            Job.state.in_((JobState.RUNNING, JobState.WAITING)), Job.cancel_requested_at.is_(None)
        )
    elif state is not None:
        statement = statement.where(Job.state == state)
    if kind is not None:
        statement = statement.where(Job.kind == kind)
    if dataset_id is not None:
        statement = statement.where(Job.dataset_id == dataset_id)
    return fetch_page(session, statement, Job.created_at, Job.id, limit=limit, after=after)


def events_after(session: Session, job_id: str, after: int, limit: int) -> Sequence[JobEvent]:
    """The events numbered above `after`, in order. The caller has seen that the job is the owner's."""
    statement = (
        select(JobEvent)
        .where(JobEvent.job_id == job_id, JobEvent.seq > after)
        .order_by(JobEvent.seq)
        .limit(limit)
    )
    return session.scalars(statement).all()


def states(session: Session, ids: Iterable[str]) -> dict[str, tuple[str, int]]:
    """State and last event number of each job, for the watcher behind every waiting request."""
    rows = session.execute(select(Job.id, Job.state, Job.event_seq).where(Job.id.in_(ids)))
    return {id_: (state, event_seq) for id_, state, event_seq in rows}


def hold_datasets(
    session: Session, owner: str, ids: Iterable[str], *, to_change: bool = False
) -> None:
    """Have nobody change or delete the owner's datasets that a job reads until the transaction ends; others may hold
    them too, unless they are `to_change`.

    They are locked in the order of their ids: of two transactions that want the same ones none has what the other waits
    for.
    """
    statement = select(Dataset.id).where(Dataset.id.in_(ids), Dataset.owner == owner)
    session.execute(statement.order_by(Dataset.id).with_for_update(read=not to_change))


def find_dataset(session: Session, owner: str, dataset_id: str) -> Dataset | None:
    """The owner's dataset that a job reads."""
    dataset = session.get(Dataset, dataset_id)
    return dataset if dataset is not None and dataset.owner == owner else None


def abandon_upload(session: Session, job_id: str, errors: list[Json]) -> None:
    """End the table or the pairs of a job that will never have read them: nobody must wait for it."""
    for upload in (Dataset, DatasetPairs):
        session.execute(
            update(upload)
            .where(upload.job_id == job_id, upload.status == DatasetStatus.PROCESSING)
            .values(status=DatasetStatus.INVALID, errors=errors)
        )


def hello(session: Session, worker_id: str, *, host: str, version: str, slots: int) -> None:
    """Enter a worker process at its start. The id is new at every boot: host names repeat, and so do pids."""
    session.execute(
        insert(Worker).values(
            id=worker_id,
            host=host,
            version=version,
            slots=slots,
            started_at=db_now(),
            seen_at=db_now(),
            by_message=0,
            by_look=0,
        )
    )


def seen(
    session: Session, worker_id: str, *, by_message: int, by_look: int, note: str | None = None
) -> bool:
    """Note that the worker lives and how it found its jobs; False when its row is gone: say hello again."""
    updated = session.execute(
        update(Worker)
        .where(Worker.id == worker_id)
        .values(seen_at=db_now(), by_message=by_message, by_look=by_look, note=note)
        .returning(Worker.id),
        execution_options={"synchronize_session": False},
    )
    return updated.one_or_none() is not None


def goodbye(session: Session, worker_id: str) -> None:
    """Remove a worker that ends in good order."""
    session.execute(delete(Worker).where(Worker.id == worker_id))


def alive(session: Session, within_seconds: float) -> Sequence[Worker]:
    """The workers heard from within that time, oldest first."""
    return session.scalars(
        select(Worker)
        .where(Worker.seen_at > db_now() - within_seconds)
        .order_by(Worker.started_at, Worker.id)
    ).all()


def prune(session: Session, age_seconds: float, limit: int) -> int:
    """Forget so many workers that were silent for that long; returns how many."""
    return delete_some(session, Worker, Worker.seen_at < db_now() - age_seconds, limit=limit)
