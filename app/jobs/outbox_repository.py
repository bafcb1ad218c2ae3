"""The outbox: wake-ups owed to the queue, one row for each attempt of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, exists, insert, or_, select, tuple_, update
from sqlalchemy.orm import Session

from app.platform.sql import db_now, delete_some
from app.platform.tables import FINAL_STATES, Job, JobState, Outbox


class Owed(NamedTuple):
    """A wake-up that has not been marked as sent; `needed` tells whether its attempt still waits for a worker."""

    job_id: str
    attempt: int
    created_at: float
    needed: bool


_INSERT = insert(Outbox).values(created_at=db_now(), tries=0)


def insert_first(session: Session, job_ids: Sequence[str]) -> None:
    """Owe the wake-up for the first attempt of each of these new jobs."""
    session.execute(_INSERT, [{"job_id": job_id, "attempt": 1} for job_id in job_ids])


def owe(session: Session, job_id: str, attempt: int) -> None:
    """Owe a wake-up for this attempt, again if it was sent before. The caller holds the job's row."""
    owed = session.execute(
        update(Outbox)
        .where(Outbox.job_id == job_id, Outbox.attempt == attempt)
        .values(created_at=db_now(), published_at=None)
        .returning(Outbox.attempt),
        execution_options={"synchronize_session": False},
    )
    if owed.one_or_none() is None:
        session.execute(_INSERT, {"job_id": job_id, "attempt": attempt})


def unpublished(session: Session, limit: int) -> list[Owed]:
    """The oldest wake-ups due: not those of a job that is backing off, whose time will come."""
    rows = session.execute(
        select(Outbox.job_id, Outbox.attempt, Outbox.created_at, Job.state, Job.attempt)
        .join(Job, Job.id == Outbox.job_id)
        .where(
            Outbox.published_at.is_(None),
            or_(Job.state != JobState.QUEUED, Job.not_before <= db_now()),
        )
        .order_by(Outbox.created_at)
        .limit(limit)
    )
    return [
        Owed(job_id, attempt, created_at, state == JobState.QUEUED and attempt == done + 1)
        for job_id, attempt, created_at, state, done in rows
    ]


_MARK = (
    update(Outbox.__table__)  # type: ignore[arg-type]  # the Core table: one plain executemany
    .where(
        Outbox.job_id == bindparam("owed_job_id"),
        Outbox.attempt == bindparam("owed_attempt"),
        # Owed anew since it was read: that wake-up is still to be sent.
        Outbox.created_at == bindparam("owed_created_at"),
    )
    .values(published_at=db_now(), tries=Outbox.tries + 1)
)


def mark_published(session: Session, sent: list[Owed]) -> None:
    """Note that these wake-ups are with the broker (or needed no more)."""
    session.connection().execute(
        _MARK,
        [
            {
                "owed_job_id": owed.job_id,
                "owed_attempt": owed.attempt,
                "owed_created_at": owed.created_at,
            }
            for owed in sent
        ],
    )


def owe_again(session: Session, sent_before_seconds: float, limit: int) -> int:
    """Owe again the wake-ups that were sent that long ago and whose job nobody claimed; returns how many."""
    stale = (
        select(Outbox.job_id, Outbox.attempt)
        .join(Job, Job.id == Outbox.job_id)
        .where(
            Outbox.published_at < db_now() - sent_before_seconds,
            Job.state == JobState.QUEUED,
            Job.attempt == Outbox.attempt - 1,
            Job.not_before <= db_now(),
        )
        .order_by(Outbox.published_at)
        .limit(limit)
    )
    owed = session.execute(
        update(Outbox)
        .where(tuple_(Outbox.job_id, Outbox.attempt).in_(stale))
        .values(created_at=db_now(), published_at=None)
        .returning(Outbox.attempt),
        execution_options={"synchronize_session": False},
    )
    return len(owed.all())


def prune(session: Session, age_seconds: float, limit: int) -> int:
    """Remove so many wake-ups of jobs that ended, once they are that old; returns how many."""
    ended = exists().where(Job.id == Outbox.job_id, Job.state.in_(FINAL_STATES))
    old = Outbox.published_at < db_now() - age_seconds
    return delete_some(session, Outbox, old, ended, limit=limit)
