"""Queries on the parts of a job that fanned out: children of its row, which waits for them.

Whoever changes a part together with its parent locks the parent first. So two parts that end at the same moment see
each other, and no two transactions wait for one another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import case, exists, func, insert, or_, select, update
from sqlalchemy.orm import Session, aliased

from app.jobs import outbox_repository as outbox
from app.platform.sql import Json, db_now, delete_some
from app.platform.tables import FINAL_STATES, Job, JobEvent, JobState

_AS_IT_IS = {"synchronize_session": False}
_OPEN = (JobState.QUEUED, JobState.RUNNING)


class Done(NamedTuple):
    """How far the parts of a job are: the share of the whole job, and those of its last stage."""

    fraction: float
    stage: int
    finished: int
    of: int


def lock_parent(session: Session, parent_id: str) -> Job:
    """Lock the job that a part belongs to for the rest of the transaction, and return it."""
    return session.scalars(select(Job).where(Job.id == parent_id).with_for_update()).one()


def try_lock_parent(session: Session, parent_id: str) -> Job | None:
    """The same; None when another transaction is at it."""
    statement = select(Job).where(Job.id == parent_id)
    return session.scalars(statement.with_for_update(skip_locked=True)).one_or_none()


def lock_waiting(session: Session, parent_id: str) -> Job | None:
    """Lock a job that waits for its parts; None when it does not, or when another transaction is at it."""
    statement = select(Job).where(Job.id == parent_id, Job.state == JobState.WAITING)
    return session.scalars(statement.with_for_update(skip_locked=True)).one_or_none()


def wait(session: Session, job: Job) -> None:
    """Take a locked running job from its worker until its parts are done, and number the event that says so."""
    if job.deadline_at is None:
        job.deadline_at = Job.started_at + Job.timeout_seconds
    job.state = JobState.WAITING
    job.lease_expires_at = None
    job.worker_id = None
    job.event_seq += 1
    session.flush()


def insert_queued(
    session: Session, parent: Job, stage: int, kind: str, ids: Sequence[str], specs: Sequence[Json]
) -> None:
    """Queue the parts of a stage, with a wake-up owed for each. They are as old as their parent, and as urgent."""
    common: dict[str, object] = {
        "owner": parent.owner,
        "kind": kind,
        "name": parent.name,
        "state": JobState.QUEUED,
        "tags": {},
        "dataset_id": parent.dataset_id,
        "parent_id": parent.id,
        "stage": stage,
        "priority": parent.priority,
        "attempt": 0,
        "max_attempts": parent.max_attempts,
        "timeout_seconds": parent.timeout_seconds,
        "deadline_at": parent.deadline_at,
        "not_before": 0.0,
        "lease_token": 0,
        "beats": 0,
        "progress": {},
        "event_seq": 0,
        "created_at": parent.created_at,
    }
    session.execute(
        insert(Job),
        [
            common | {"id": id_, "part": part, "spec": spec}
            for part, (id_, spec) in enumerate(zip(ids, specs, strict=True))
        ],
    )
    outbox.insert_first(session, ids)


def of_parent(session: Session, parent_id: str) -> Sequence[Job]:
    """The parts of a job, in order."""
    statement = select(Job).where(Job.parent_id == parent_id).order_by(Job.stage, Job.part)
    return session.scalars(statement).all()


def any_open(session: Session, parent_id: str) -> bool:
    """Whether the job waits for a part: for one that was asked to stop it does not."""
    waited_for = (Job.state.in_(_OPEN), Job.cancel_requested_at.is_(None))
    return bool(session.scalar(select(exists().where(Job.parent_id == parent_id, *waited_for))))


def open_specs(session: Session, parent_id: str) -> Sequence[tuple[str, Json]]:
    """The parts that have yet to end: (id, specification)."""
    statement = select(Job.id, Job.spec["part"]).where(
        Job.parent_id == parent_id, Job.state.in_(_OPEN)
    )
    return [(id_, spec) for id_, spec in session.execute(statement)]


def last_stage(session: Session, parent_id: str) -> int | None:
    """The number of the job's last stage so far; None when it has none."""
    return session.scalar(select(func.max(Job.stage)).where(Job.parent_id == parent_id))


def done(session: Session, parent_id: str) -> Done:
    """How far the parts of a job are that has some."""
    fraction = func.coalesce(Job.progress["fraction"].as_float(), 0.0)
    by_stage = session.execute(
        select(
            Job.stage,
            func.sum(fraction * Job.spec["share"].as_float()),
            func.sum(case((Job.state == JobState.SUCCEEDED, 1), else_=0)),
            func.count(),
        )
        .where(Job.parent_id == parent_id)
        .group_by(Job.stage)
        .order_by(Job.stage)
    ).all()
    stage, _, finished, of = by_stage[-1]
    return Done(min(sum(row[1] for row in by_stage), 1.0), stage, finished, of)


def told_within(session: Session, job: Job, seconds: float) -> bool:
    """Whether the job's last event tells of progress, and is no older than that."""
    now = db_now()
    statement = select(
        exists().where(
            JobEvent.job_id == job.id,
            JobEvent.seq == job.event_seq,
            JobEvent.type == "progress",
            JobEvent.at.between(now - seconds, now),
        )
    )
    return bool(session.scalar(statement))


def cancel_open(session: Session, parent_id: str, ids: Collection[str] | None = None) -> None:
    """End the parts of a locked job that nobody runs, all or those, and ask the others to stop.

    One statement, for a part may be claimed at this moment.
    """
    queued = Job.state == JobState.QUEUED
    which = Job.parent_id == parent_id if ids is None else Job.id.in_(ids)
    session.execute(
        update(Job)
        .where(which, Job.state.in_(_OPEN))
        .values(
            cancel_requested_at=db_now(),
            state=case((queued, JobState.CANCELLED), else_=Job.state),
            finished_at=case((queued, db_now()), else_=Job.finished_at),
            checkpoint_key=None,
        ),
        execution_options=_AS_IT_IS,
    )


def stuck(session: Session) -> Sequence[str]:
    """The waiting jobs that are past their deadline, or have no part left to wait for."""
    part = aliased(Job)
    waited_for = (part.state.in_(_OPEN), part.cancel_requested_at.is_(None))
    nothing_open = ~exists().where(part.parent_id == Job.id, *waited_for)
    statement = select(Job.id).where(
        Job.state == JobState.WAITING, or_(Job.deadline_at < db_now(), nothing_open)
    )
    return session.scalars(statement).all()


def overdue(session: Session, job: Job) -> bool:
    """Whether the deadline of a job in parts has passed."""
    return bool(session.scalar(select(job.deadline_at < db_now())))


def seconds_since_start(session: Session, job: Job) -> float:
    """How long ago a job in parts was first claimed."""
    return float(session.scalar(select(db_now() - job.started_at)) or 0.0)


def results_in_use(session: Session) -> Sequence[tuple[str, Json]]:
    """What the parts of every job brought back that has yet to end, over all owners: (id of the part, result)."""
    parent = aliased(Job)
    statement = (
        select(Job.id, Job.result)
        .join(parent, parent.id == Job.parent_id)
        .where(Job.result.is_not(None), parent.state.not_in(FINAL_STATES))
    )
    return [(id_, result) for id_, result in session.execute(statement) if result is not None]


def prune(session: Session, age_seconds: float, limit: int) -> int:
    """Remove so many parts of jobs that ended that long ago, which nothing will ask for; returns how many."""
    parent = aliased(Job)
    forgotten = exists().where(
        parent.id == Job.parent_id,
        parent.state.in_(FINAL_STATES),
        parent.finished_at < db_now() - age_seconds,
    )
    return delete_some(session, Job, forgotten, Job.state.in_(FINAL_STATES), limit=limit)
