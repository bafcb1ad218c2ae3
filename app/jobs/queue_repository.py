"""The queue's own queries: claim, heartbeat, end, requeue. They span owners, and time is never the caller's.

Every one that acts for a worker names the fencing token. `jobs.lease_token` grows with each claim, so whoever
was paused, cut off or declared dead holds a number that no row has any more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    JSON,
    Boolean,
    Float,
    ScalarSelect,
    Select,
    Subquery,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.dml import ReturningUpdate

from app.jobs import child_jobs_repository as parts
from app.platform.sql import Json, db_now, machine_now
from app.platform.tables import Job, JobState


class Held(NamedTuple):
    """A running job as the reaper read it: `token` and `beats` tell whether it moved since."""

    job_id: str
    token: int
    beats: int
    parent_id: str | None


class Requests(NamedTuple):
    """What a job's owner has asked of it while it runs: to stop, or to end early and keep the best so far."""

    cancel: bool
    keep: bool


class Beaten(NamedTuple):
    """What a heartbeat learns."""

    cancel_requested: bool
    event_seq: int


def _is_known(kind: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    return or_(
        bindparam("any_kind", type_=Boolean), kind.in_(bindparam("known_kinds", expanding=True))
    )


def _known(kinds: Collection[str] | None) -> dict[str, Any]:
    return {"any_kind": kinds is None, "known_kinds": sorted(kinds or ())}


def _busy_owners() -> Subquery:
    """Owners with jobs that run, and how many."""
    running = aliased(Job)
    counts = select(running.owner, func.count().label("jobs"))
    return counts.where(running.state == JobState.RUNNING).group_by(running.owner).subquery()


def _next_id(*, capped: bool) -> ScalarSelect[str]:
    # Priority, then the owner with the fewest running jobs, then age; where a quota caps them, owners who have as many
    # are passed over. On PostgreSQL a row that another claim is just taking is skipped, not waited for; SQLite's
    # writers are alone and its dialect leaves the clause out.
    job, busy = aliased(Job), _busy_owners()
    already = func.coalesce(busy.c.jobs, 0)
    statement = (
        select(job.id)
        .outerjoin(busy, busy.c.owner == job.owner)
        .where(job.state == JobState.QUEUED, job.not_before <= db_now(), _is_known(job.kind))
        .order_by(job.priority.desc(), already, job.created_at, job.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=job)
    )
    if capped:
        statement = statement.where(already < bindparam("most_running"))
    return statement.scalar_subquery()


# The statements of the hot paths are built once: SQLAlchemy takes longer to build one than SQLite to run it.

# Nothing of these rows is in the session yet, so it has nothing to synchronise.
_AS_IT_IS = {"synchronize_session": False}

_HELD = (
    Job.id == bindparam("held_id"),
    Job.lease_token == bindparam("held_token"),
    Job.state == JobState.RUNNING,
)
_LEASE_END = db_now() + bindparam("lease", type_=Float)

_DUE = (Job.state == JobState.QUEUED, Job.not_before <= db_now(), _is_known(Job.kind))
_HAS_WORK = select(exists().where(*_DUE))


def _has_work_capped() -> Select[tuple[bool]]:
    busy = _busy_owners()  # counted once, not for each of ten thousand jobs in the queue
    due = select(Job.id).outerjoin(busy, busy.c.owner == Job.owner).where(*_DUE)
    return select(due.where(func.coalesce(busy.c.jobs, 0) < bindparam("most_running")).exists())


_HAS_WORK_CAPPED = _has_work_capped()

# A job in parts goes on where it was: its time counts from its first start, and its progress never falls.
_IN_PARTS = Job.deadline_at.is_not(None)


def _claim(*, capped: bool) -> ReturningUpdate[Job, float | None]:
    return (
        update(Job)
        .where(Job.id == _next_id(capped=capped), Job.state == JobState.QUEUED)
        .values(
            state=JobState.RUNNING,
            attempt=Job.attempt + 1,
            lease_token=Job.lease_token + 1,
            lease_expires_at=_LEASE_END,
            beats=0,
            beaten_at=machine_now(),
            worker_id=bindparam("claimed_by"),
            progress=case((_IN_PARTS, Job.progress), else_=literal({}, JSON)),
            started_at=case((_IN_PARTS, func.coalesce(Job.started_at, db_now())), else_=db_now()),
            event_seq=Job.event_seq + 1,
        )
        .returning(Job, (Job.deadline_at - db_now()).label("seconds_left"))
    )


_CLAIM, _CLAIM_CAPPED = _claim(capped=False), _claim(capped=True)

# Two claims at once would both count before either of them runs. The number is any that nobody else takes.
_CLAIM_TURN = text("SELECT pg_advisory_xact_lock(7236512904)")

_BEAT = (
    update(Job)
    .where(*_HELD)
    .values(lease_expires_at=_LEASE_END, beats=Job.beats + 1, beaten_at=machine_now())
    .returning(Job.cancel_requested_at, Job.event_seq)
)

_PROGRESS = _BEAT.values(progress=bindparam("now_at", type_=JSON), event_seq=Job.event_seq + 1)

_REQUESTS = select(Job.cancel_requested_at, Job.keep_requested_at).where(*_HELD)


def has_work(
    session: Session, kinds: Collection[str] | None = None, most_running: int | None = None
) -> bool:
    """Whether a claim would find a job now. A plain read, so that idle workers never hold up a writer."""
    if most_running is None:
        return bool(session.scalar(_HAS_WORK, _known(kinds)))
    return bool(session.scalar(_HAS_WORK_CAPPED, _known(kinds) | {"most_running": most_running}))


def claim(
    session: Session,
    worker_id: str,
    lease_seconds: float,
    kinds: Collection[str] | None = None,
    most_running: int | None = None,
) -> tuple[Job, float | None] | None:
    """Hand the next eligible job of these kinds to a worker, with a lease and a new token; None when there is none.

    With it come the seconds until its deadline, which a job in parts has. No owner has more than `most_running`.
    """
    values = {"claimed_by": worker_id, "lease": lease_seconds} | _known(kinds)
    statement = _CLAIM
    if most_running is not None:
        statement, values["most_running"] = _CLAIM_CAPPED, most_running
        if session.get_bind().dialect.name == "postgresql":
            session.execute(_CLAIM_TURN)
    row = session.execute(statement, values, execution_options=_AS_IT_IS).one_or_none()
    return None if row is None else (row[0], row[1])


def beat(
    session: Session, job_id: str, token: int, lease_seconds: float, progress: Json | None
) -> Beaten | None:
    """Prolong the lease; None when the token no longer holds. Progress takes an event number for itself."""
    values = {"held_id": job_id, "held_token": token, "lease": lease_seconds}
    if progress is None:
        row = session.execute(_BEAT, values, execution_options=_AS_IT_IS).one_or_none()
    else:
        values["now_at"] = progress
        row = session.execute(_PROGRESS, values, execution_options=_AS_IT_IS).one_or_none()
    return None if row is None else Beaten(row[0] is not None, row[1])


def requests(session: Session, job_id: str, token: int) -> Requests | None:
    """What was asked of the job; None when the token no longer holds."""
    values = {"held_id": job_id, "held_token": token}
    row = session.execute(_REQUESTS, values).one_or_none()
    return None if row is None else Requests(row[0] is not None, row[1] is not None)


def keep_checkpoint(session: Session, job_id: str, token: int, key: str) -> bool:
    """Note what the next attempt may go on from; False when the token no longer holds."""
    noted = update(Job).where(*_HELD).values(checkpoint_key=key).returning(Job.id)
    values = {"held_id": job_id, "held_token": token}
    return session.scalar(noted, values, execution_options=_AS_IT_IS) is not None


def succeed(
    session: Session,
    job_id: str,
    token: int,
    *,
    model_id: str | None = None,
    result: Json | None = None,
    n_events: int = 1,
) -> int | None:
    """End the job well if the token holds and nobody asked to cancel; returns the number of the last event to write.

    One UPDATE decides between success and a cancel that comes at the same moment: both change this row, the
    second of them sees what the first did.
    """
    return session.scalar(
        update(Job)
        .where(
            Job.id == job_id,
            Job.lease_token == token,
            Job.state == JobState.RUNNING,
            Job.cancel_requested_at.is_(None),
        )
        .values(
            state=JobState.SUCCEEDED,
            progress={"fraction": 1.0},
            model_id=model_id,
            result=result,
            checkpoint_key=None,
            finished_at=db_now(),
            lease_expires_at=None,
            event_seq=Job.event_seq + n_events,
        )
        .returning(Job.event_seq),
        execution_options=_AS_IT_IS,
    )


def hold(
    session: Session,
    job_id: str,
    token: int,
    parent_id: str | None,
    beats: int | None = None,
    *,
    patient: bool = True,
) -> Job | None:
    """Lock a running job for the rest of the transaction; None when the token (or the heartbeat) moved on.

    Of a part its parent is locked first: whatever ends the one may end the other. Without patience None, too, when
    another transaction is at either of them: it may be that of a process that stands still.
    """
    if parent_id is not None:
        lock = parts.lock_parent if patient else parts.try_lock_parent
        if lock(session, parent_id) is None:
            return None
    statement = select(Job).where(
        Job.id == job_id, Job.lease_token == token, Job.state == JobState.RUNNING
    )
    if beats is not None:
        statement = statement.where(Job.beats == beats)
    return session.scalars(statement.with_for_update(skip_locked=not patient)).one_or_none()


def end(session: Session, job: Job, state: JobState, error: Json | None) -> None:
    """End a locked job in a state other than `succeeded`, its parts with it, and number the event that says so."""
    if job.state == JobState.WAITING:
        parts.cancel_open(session, job.id)
    job.state = state
    job.error = error
    job.checkpoint_key = None
    job.finished_at = db_now()
    job.lease_expires_at = None
    job.event_seq += 1
    session.flush()


def request_cancel(session: Session, job: Job) -> str:
    """End a locked job that no worker has, or ask its worker to; returns the state to show, and numbers the event."""
    job.cancel_requested_at = db_now()
    if job.state != JobState.RUNNING:
        end(session, job, JobState.CANCELLED, None)
        return JobState.CANCELLED
    job.event_seq += 1
    session.flush()
    return "cancelling"


def request_keep(session: Session, job: Job) -> None:
    """Ask a locked job to end early and keep the best so far, and number the event."""
    job.keep_requested_at = db_now()
    job.event_seq += 1
    session.flush()


def requeue(session: Session, job: Job, *, attempt: int, delay_seconds: float) -> None:
    """Put a locked job back into the queue, and number the event that says so.

    Without a delay `not_before` is 0 rather than now, so that a clock set back does not hold the job up.
    """
    job.state = JobState.QUEUED
    job.attempt = attempt
    job.not_before = db_now() + delay_seconds if delay_seconds else 0.0
    job.lease_expires_at = job.beaten_at = None
    job.worker_id = None
    job.event_seq += 1
    session.flush()


def release_misdated(session: Session, longest_delay: float) -> None:
    """Let go of jobs whose retry lies further ahead than any delay we give: the clock was set back meanwhile."""
    session.execute(
        update(Job)
        .where(
            Job.state == JobState.QUEUED,
            Job.attempt > 0,  # a job's own first `not_before` may lie as far ahead as it likes
            Job.not_before > db_now() + longest_delay,
        )
        .values(not_before=0.0),
        execution_options=_AS_IT_IS,
    )


def lease_is_over(lease_seconds: float, for_seconds: float = 0.0) -> ColumnElement[bool]:
    """Whether a running job has been without its lease for that long.

    PostgreSQL's own clock says so. SQLite has only the clock of whichever process asks, which may be set at any
    moment, forth or back: there the time of the last heartbeat is compared with the machine's, and one that lies
    ahead is from before the machine was last started. A job that an older version claimed first has none.
    """
    silence = lease_seconds + for_seconds
    return and_(
        Job.state == JobState.RUNNING,
        case(
            (Job.beaten_at.is_(None), Job.lease_expires_at < db_now() - for_seconds),
            else_=~machine_now().between(Job.beaten_at, Job.beaten_at + silence),
        ),
    )


def silent(session: Session, lease_seconds: float) -> Sequence[Held]:
    """The running jobs whose lease is over."""
    held = select(Job.id, Job.lease_token, Job.beats, Job.parent_id)
    return [Held(*row) for row in session.execute(held.where(lease_is_over(lease_seconds)))]
