"""Queries for one owner's jobs and their outputs, and for workers. `queue_repository` has those of the queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import (
    BindParameter,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session, aliased, selectinload

from app.platform.sql import (
    ALL_ROWS,
    Json,
    Page,
    RowFilter,
    ascii_lower,
    db_now,
    delete_some,
    fetch_page,
)
from app.platform.tables import (
    Job,
    JobEvent,
    JobOutputRow,
    JobState,
    JobUpload,
    Role,
    Trashable,
    Worker,
)

Row = TypeVar("Row", bound=JobOutputRow)

# Built once: SQLAlchemy takes longer to build such a statement, or an alias, than SQLite to run it.
_INSERT = (
    insert(Job)
    .values(
        state=JobState.QUEUED,
        attempt=0,
        lease_token=0,
        heartbeat_count=0,
        progress={},
        event_seq=1,
        created_at=db_now(),
    )
    .returning(Job)
)
_ADD_EVENT = insert(JobEvent).values(at=db_now())
_LATER, _RETRY = aliased(Job), aliased(Job)
_UPLOADS = ("ingest", "ingest_files", "ingest_source")
"""Kinds of job that count as one: a table is read from one file, from several, or from a source."""


def insert_job(session: Session, **values: Any) -> Job:
    """Insert a job, created by the database's clock. The caller must write its first event (number 1)."""
    return session.scalars(_INSERT, values).one()


def add_event(session: Session, job_id: str, seq: int, type_: str, data: Json) -> None:
    """`seq` is `jobs.event_seq`, which the same transaction has just incremented."""
    session.execute(_ADD_EVENT, {"job_id": job_id, "seq": seq, "type": type_, "data": data})


def find(session: Session, owner: str, job_id: str, *, lock: bool = False) -> Job | None:
    """Never a child job. With `lock`, locked until the transaction ends (SQLite has only one writer anyway)."""
    statement = select(Job).where(Job.id == job_id, Job.readable_by(owner), Job.parent_id.is_(None))
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
    unresolved: Mapping[str, type[JobOutputRow]] | None = None,
    only: RowFilter = ALL_ROWS,
    limit: int,
    after: str | None,
) -> Page[Job]:
    """Newest first. `cancelling` is a running job with a request to stop; a job that waits for child jobs is running.

    With `unresolved`, the table of each kind with an output, only failures without a later success are returned.
    """
    statement = select(Job).where(Job.readable_by(owner), Job.parent_id.is_(None))
    statement = only.apply(statement, Job)
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
    if unresolved is not None:
        statement = _unresolved(statement, owner, unresolved)
    return fetch_page(
        session,
        statement,
        Job.created_at,
        Job.id,
        limit=limit,
        after=after,
        sort=only.sort,
        keys={"name": (ascii_lower(Job.name),)},
    )


def _unresolved(
    statement: Select[Job], owner: str, tables: Mapping[str, type[JobOutputRow]]
) -> Select[Job]:
    """Select failures and timeouts without a retry, a deleted output, or a later success of the same kind and name.

    Reading a table from one file or several is one kind.
    """
    later = and_(
        _LATER.readable_by(owner),
        _LATER.name == Job.name,
        _LATER.state == JobState.SUCCEEDED,
        _LATER.created_at >= Job.created_at,
        _LATER.parent_id.is_(None),
    )
    kept = [
        and_(Job.kind == name, Job.id.in_(select(table.job_id).where(table.readable_by(owner))))
        for name, table in tables.items()
    ]
    # An index answers each `exists` for one job: retries by `retry_of`, successes by kind and name.
    return statement.where(
        Job.state.in_((JobState.FAILED, JobState.TIMED_OUT)),
        not_(exists().where(later, _LATER.kind == Job.kind)),
        or_(Job.kind.not_in(_UPLOADS), not_(exists().where(later, _LATER.kind.in_(_UPLOADS)))),
        not_(exists().where(_RETRY.retry_of == Job.id)),
        or_(Job.kind.not_in(tables), *kept),
    )


def set_dataset(session: Session, owner: str, job_id: str, dataset_id: str) -> None:
    """Store the dataset that a job has made or used."""
    session.execute(
        update(Job).where(Job.readable_by(owner), Job.id == job_id).values(dataset_id=dataset_id)
    )


def events_after(session: Session, job_id: str, after: int, limit: int) -> Sequence[JobEvent]:
    """Return events above `after`, in order. The caller must have checked the owner."""
    statement = (
        select(JobEvent)
        .where(JobEvent.job_id == job_id, JobEvent.seq > after)
        .order_by(JobEvent.seq)
        .limit(limit)
    )
    return session.scalars(statement).all()


@cache
def _states_of_ids() -> Select[str, str, int]:
    """Cached: building the statement takes as long as running it, and it runs many times a second."""
    wanted: BindParameter[list[str]] = bindparam("ids", expanding=True)
    return select(Job.id, Job.state, Job.event_seq).where(Job.id.in_(wanted))


def states(session: Session, ids: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Return state and last event number of each job."""
    rows = session.execute(_states_of_ids(), {"ids": list(ids)})
    return {id_: (state, event_seq) for id_, state, event_seq in rows}


def insert_output(session: Session, table: type[Row], **values: Any) -> Row:
    statement = insert(table).values(created_at=db_now(), **values).returning(table)
    return session.scalars(statement).one()


def find_output(
    session: Session, table: type[Row], owner: str, id_: str, *, lock: bool = False
) -> Row | None:
    """Return an output with its job; with `lock`, locked until the transaction ends."""
    statement = select(table).where(table.readable_by(owner), table.id == id_)
    statement = statement.options(selectinload("*"))
    if lock:
        statement = statement.with_for_update()
    return session.scalars(statement).one_or_none()


def list_outputs(
    session: Session,
    table: type[Row],
    owner: str,
    *,
    model_id: str | None,
    dataset_id: str | None,
    only: RowFilter = ALL_ROWS,
    limit: int,
    after: str | None,
) -> Page[Row]:
    """Newest first, with jobs."""
    statement = only.apply(select(table).where(table.readable_by(owner)), table)
    if model_id is not None:
        statement = statement.where(table.of_model(model_id))
    if dataset_id is not None:
        statement = statement.where(table.of_dataset(dataset_id))
    return fetch_page(
        session,
        statement,
        table.created_at,
        table.id,
        limit=limit,
        after=after,
        sort=only.sort,
        keys={"name": (ascii_lower(table.sort_name()),)},
        options=[selectinload("*")],
    )


def write_output(
    session: Session, table: type[Row], owner: str, id_: str, job_id: str, **values: Any
) -> bool:
    """Write the result into the output's row; returns False if that was deleted or is another job's."""
    statement = update(table).where(
        table.readable_by(owner), table.id == id_, table.job_id == job_id
    )
    statement = statement.values(**values).returning(table.id)
    return session.scalars(statement).one_or_none() is not None


def delete_output(session: Session, table: type[Row], owner: str, id_: str) -> None:
    """Move the row to the trash, or, if its table has none, delete it with the rows that refer to it."""
    whose = table.readable_by(owner), table.id == id_
    if issubclass(table, Trashable):
        session.execute(update(table).where(*whose).values(deleted_at=db_now()))
    else:
        session.execute(delete(table).where(*whose))


def register(
    session: Session,
    worker_id: str,
    *,
    host: str,
    version: str,
    slots: int,
    role: Role = Role.WORKER,
) -> None:
    """Insert the row of a process. The id is new at every start, because host names and pids repeat."""
    session.execute(
        insert(Worker).values(
            id=worker_id,
            role=role,
            host=host,
            version=version,
            slots=slots,
            started_at=db_now(),
            seen_at=db_now(),
            by_message=0,
            by_poll=0,
        )
    )


def seen(
    session: Session,
    worker_id: str,
    *,
    by_message: int = 0,
    by_poll: int = 0,
    note: str | None = None,
) -> bool:
    """Record a heartbeat and how the process found its jobs; returns False without its row: it must register again."""
    updated = session.execute(
        update(Worker)
        .where(Worker.id == worker_id)
        .values(seen_at=db_now(), by_message=by_message, by_poll=by_poll, note=note)
        .returning(Worker.id),
        execution_options={"synchronize_session": False},
    )
    return updated.one_or_none() is not None


def deregister(session: Session, worker_id: str) -> None:
    """Delete the row of a process that ends normally."""
    session.execute(delete(Worker).where(Worker.id == worker_id))


MISSED_BEATS = 3
"""Heartbeats that a worker may miss and still count as alive."""


DISPATCHER_BEAT_SECONDS = 3.0
DISPATCHER_SILENCE_SECONDS = 12.0
"""A dispatcher that was not heard from for this time counts as absent."""


def dispatchers(session: Session) -> Sequence[Worker]:
    """Return the running dispatchers, oldest first."""
    return alive(session, DISPATCHER_SILENCE_SECONDS, Role.DISPATCHER)


def alive(session: Session, within_seconds: float, role: Role = Role.WORKER) -> Sequence[Worker]:
    """Return processes of a role with a heartbeat in the last `within_seconds`, oldest first."""
    return session.scalars(
        select(Worker)
        .where(Worker.role == role, Worker.seen_at > db_now() - within_seconds)
        .order_by(Worker.started_at, Worker.id)
    ).all()


def prune(session: Session, age_seconds: float, limit: int) -> int:
    """Delete up to `limit` processes without a heartbeat for at least `age_seconds`."""
    return delete_some(session, Worker, Worker.seen_at < db_now() - age_seconds, limit=limit)


def find_upload(session: Session, owner: str, job_id: str, part: str) -> JobUpload | None:
    """Return None if the job has ended, or has no such file."""
    statement = select(JobUpload).where(
        JobUpload.readable_by(owner), JobUpload.job_id == job_id, JobUpload.part == part
    )
    return session.scalars(statement).one_or_none()


def delete_uploads(session: Session, owner: str, job_id: str) -> None:
    session.execute(
        delete(JobUpload).where(JobUpload.readable_by(owner), JobUpload.job_id == job_id)
    )
