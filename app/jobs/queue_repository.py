"""SQL of the queue: claim, heartbeat, end, requeue. It concerns jobs of all owners, and uses the database's clock.

Every query on behalf of a worker checks the fencing token. `jobs.lease_token` is incremented by each claim, so a worker
that was paused, disconnected or declared dead has a number that no row has any more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    JSON,
    BigInteger,
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
    insert,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.dml import ReturningUpdate

from app.platform import trace
from app.platform.sql import Json, db_now, delete_some, machine_now
from app.platform.tables import (
    FINAL_STATES,
    ApiKey,
    Job,
    JobEvent,
    JobState,
    OwnerQuota,
    Role,
    Worker,
)

_AS_IT_IS = {"synchronize_session": False}  # nothing of these rows is in the session yet
_OPEN = (JobState.QUEUED, JobState.RUNNING)


class ChildProgress(NamedTuple):
    """The finished fraction of the whole job, and the counts of its last stage."""

    fraction: float
    stage: int
    finished: int
    of: int


def lock_parent(session: Session, parent_id: str) -> Job:
    return session.scalars(select(Job).where(Job.id == parent_id).with_for_update()).one()


def spec_of(session: Session, job_id: str) -> Json:
    return session.scalars(select(Job.spec).where(Job.id == job_id)).one()


def try_lock_parent(session: Session, parent_id: str) -> Job | None:
    """Return None if another transaction has locked it."""
    statement = select(Job).where(Job.id == parent_id)
    return session.scalars(statement.with_for_update(skip_locked=True)).one_or_none()


def lock_waiting(session: Session, parent_id: str) -> Job | None:
    """Lock a job that waits for its child jobs; None if it does not wait, or is locked already."""
    statement = select(Job).where(Job.id == parent_id, Job.state == JobState.WAITING)
    return session.scalars(statement.with_for_update(skip_locked=True)).one_or_none()


def wait(session: Session, job: Job) -> None:
    """Set a locked running job to wait for child jobs, without a worker, and number its event."""
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
    """They have the age and the priority of their parent."""
    common: dict[str, object] = {
        "owner": parent.owner,
        "kind": kind,
        "name": parent.name,
        "state": JobState.QUEUED,
        "tags": {},
        "dataset_id": parent.dataset_id,
        "parent_id": parent.id,
        "request_id": parent.request_id,
        "traceparent": trace.current_traceparent() or parent.traceparent,
        "stage": stage,
        "priority": parent.priority,
        "attempt": 0,
        "max_attempts": parent.max_attempts,
        "timeout_seconds": parent.timeout_seconds,
        "deadline_at": parent.deadline_at,
        "not_before": 0.0,
        "lease_token": 0,
        "heartbeat_count": 0,
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


def of_parent(session: Session, parent_id: str) -> Sequence[Job]:
    """Order by stage and number."""
    statement = select(Job).where(Job.parent_id == parent_id).order_by(Job.stage, Job.part)
    return session.scalars(statement).all()


def sum_of_results(session: Session, parent_id: str, member: str) -> int:
    """Use the finished child jobs of the latest stage."""
    stage = select(func.max(Job.stage)).where(Job.parent_id == parent_id).scalar_subquery()
    statement = select(func.coalesce(func.sum(Job.result[member].as_integer()), 0)).where(
        Job.parent_id == parent_id, Job.stage == stage, Job.result.is_not(None)
    )
    return int(session.execute(statement).scalar_one())


def results_of_ended(session: Session, member: str, parent_id: str | None) -> Sequence[Json]:
    """Return results with this member whose parent (one, or any) has ended."""
    parent = aliased(Job)
    statement = (
        select(Job.result)
        .join(parent, parent.id == Job.parent_id)
        .where(parent.state.in_(FINAL_STATES), Job.result[member].as_boolean())
    )
    if parent_id is not None:
        statement = statement.where(Job.parent_id == parent_id)
    return [result for result in session.scalars(statement) if result is not None]


def any_open(session: Session, parent_id: str) -> bool:
    """Ignore child jobs that were requested to stop."""
    waited_for = (Job.state.in_(_OPEN), Job.cancel_requested_at.is_(None))
    return bool(session.scalar(select(exists().where(Job.parent_id == parent_id, *waited_for))))


def open_specs(session: Session, parent_id: str) -> Sequence[tuple[str, str, Json]]:
    """Return (id, kind, specification) of child jobs that have not ended."""
    statement = select(Job.id, Job.kind, Job.spec["part"]).where(
        Job.parent_id == parent_id, Job.state.in_(_OPEN)
    )
    return [(id_, kind, spec) for id_, kind, spec in session.execute(statement)]


def last_stage(session: Session, parent_id: str) -> int | None:
    return session.scalar(select(func.max(Job.stage)).where(Job.parent_id == parent_id))


def done(session: Session, parent_id: str) -> ChildProgress:
    """The job must have child jobs."""
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
    return ChildProgress(min(sum(row[1] for row in by_stage), 1.0), stage, finished, of)


def progress_within(session: Session, job: Job, seconds: float) -> bool:
    """Return True if the last event is a progress event, no older than `seconds`."""
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
    """End the child jobs of a locked job that no worker runs, and request that others stop (only `ids`), in one
    statement.

    A child job may be claimed at this moment.
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
    """Return waiting jobs past their deadline, or without an unfinished child job."""
    child = aliased(Job)
    waited_for = (child.state.in_(_OPEN), child.cancel_requested_at.is_(None))
    nothing_open = ~exists().where(child.parent_id == Job.id, *waited_for)
    statement = select(Job.id).where(
        Job.state == JobState.WAITING, or_(Job.deadline_at < db_now(), nothing_open)
    )
    return session.scalars(statement).all()


def overdue(session: Session, job: Job) -> bool:
    """Return True if the deadline of a job with child jobs has passed."""
    return bool(session.scalar(select(job.deadline_at < db_now())))


def seconds_since_start(session: Session, job: Job) -> float:
    """Return seconds since the (first) claim; 0 if there was none."""
    if job.started_at is None:
        return 0.0
    return float(session.scalar(select(db_now() - job.started_at)) or 0.0)


def results_in_use(session: Session) -> Sequence[tuple[str, Json]]:
    """Return (id, result) of the child jobs of all unfinished jobs, of all owners."""
    parent = aliased(Job)
    statement = (
        select(Job.id, Job.result)
        .join(parent, parent.id == Job.parent_id)
        .where(Job.result.is_not(None), parent.state.not_in(FINAL_STATES))
    )
    return [(id_, result) for id_, result in session.execute(statement) if result is not None]


def prune_child_jobs(session: Session, age_seconds: float, limit: int) -> int:
    """Delete up to `limit` child jobs of jobs that ended at least `age_seconds` ago."""
    parent = aliased(Job)
    forgotten = exists().where(
        parent.id == Job.parent_id,
        parent.state.in_(FINAL_STATES),
        parent.finished_at < db_now() - age_seconds,
    )
    return delete_some(session, Job, forgotten, Job.state.in_(FINAL_STATES), limit=limit)


class RunningJob(NamedTuple):
    """A running job as the reaper read it. A different `token` or `heartbeat_count` shows that it has changed since."""

    job_id: str
    token: int
    heartbeat_count: int
    parent_id: str | None


class Requests(NamedTuple):
    """Requests for a running job: its owner's, to stop or keep the best model so far; the dispatcher's, to give way."""

    cancel: bool
    keep: bool
    give_way: bool


class Heartbeat(NamedTuple):
    """The result of a heartbeat: whether cancellation was requested, and the number of the job's last event."""

    cancel_requested: bool
    event_seq: int


def _is_known(kind: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    return or_(
        bindparam("any_kind", type_=Boolean), kind.in_(bindparam("known_kinds", expanding=True))
    )


def _known_kinds(kinds: Collection[str] | None) -> dict[str, Any]:
    return {"any_kind": kinds is None, "known_kinds": sorted(kinds or ())}


def _at_most(running: int | None) -> dict[str, Any]:
    return {"most_running": 2**31 - 1 if running is None else running}


def slot_share(session: Session, heard_within_seconds: float) -> int | None:
    """Return the most running jobs of an owner without quota: all slots but one.

    None where the service has one slot, or one owner with a usable key.
    """
    slots, owners = session.execute(_SLOTS_AND_OWNERS, {"within": heard_within_seconds}).one()
    return slots - 1 if slots > 1 and owners > 1 else None


_MOST_RUNNING = func.coalesce(OwnerQuota.running_jobs, bindparam("most_running", type_=BigInteger))
"""The maximum number of running jobs of an owner: its own limit, or that of all others."""
_HAS_RUNNING_QUOTA = select(exists().where(OwnerQuota.running_jobs.is_not(None)))

_SHARE_SECONDS = 3600.0
"""How far back the seconds count that decide which owner is next."""


def _use_by_owner() -> Subquery:
    """Select owners of running, ended and yielding jobs: their running jobs, and seconds of slots in the last hour."""
    job, now = aliased(Job), db_now()
    since = now - _SHARE_SECONDS
    started = case((job.started_at > since, job.started_at), else_=since)
    # A job that waited for its child jobs took no slot meanwhile: the child jobs count in its place.
    alone = or_(job.deadline_at.is_(None), job.parent_id.is_not(None))
    has_slot = or_(job.state == JobState.RUNNING, job.finished_at > since)
    seconds = case(
        (and_(alone, has_slot), func.coalesce(job.finished_at, now) - started), else_=0.0
    )
    # Otherwise a job that gave way would be claimed again at once.
    too_long = job.yielded_seconds > _SHARE_SECONDS
    yielded = case((too_long, _SHARE_SECONDS), else_=job.yielded_seconds)
    yielded = case((job.yielded_at > since, yielded), else_=0.0)
    return (
        select(
            job.owner,
            func.sum(case((job.state == JobState.RUNNING, 1), else_=0)).label("running"),
            func.sum(seconds + yielded).label("seconds"),
        )
        .where(or_(and_(has_slot, job.started_at.is_not(None)), job.yielded_at > since))
        .group_by(job.owner)
        .subquery()
    )


def _next_id() -> ScalarSelect[str]:
    """Select the next job to claim: of the owner with the least use, then by priority and age."""
    # The owner with the fewest running jobs, then the one whose jobs took the fewest seconds lately; of its jobs the
    # one of the highest priority, then the oldest. Owners with `most_running` jobs are skipped. On PostgreSQL a row
    # that another claim has locked is skipped without waiting. SQLite has one writer at a time, and its dialect omits
    # the clause.
    job, use = aliased(Job), _use_by_owner()
    running, seconds = func.coalesce(use.c.running, 0), func.coalesce(use.c.seconds, 0.0)
    return (
        select(job.id)
        .outerjoin(use, use.c.owner == job.owner)
        .where(job.state == JobState.QUEUED, job.not_before <= db_now(), _is_known(job.kind))
        .outerjoin(OwnerQuota, OwnerQuota.owner == job.owner)
        .where(running < _MOST_RUNNING)
        .order_by(running, seconds, job.priority.desc(), job.created_at, job.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=job)
        .scalar_subquery()
    )


_SLOTS_AND_OWNERS = select(
    select(func.coalesce(func.sum(Worker.slots), 0))
    .where(Worker.role == Role.WORKER, Worker.seen_at > db_now() - bindparam("within", type_=Float))
    .scalar_subquery(),
    select(func.count(ApiKey.owner.distinct()))
    .where(
        ApiKey.revoked_at.is_(None),
        or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > db_now()),
    )
    .scalar_subquery(),
)

# The statements of the hot paths are built once: SQLAlchemy takes longer to build one than SQLite to run it.

_HELD = (
    Job.id == bindparam("held_id"),
    Job.lease_token == bindparam("held_token"),
    Job.state == JobState.RUNNING,
)
_LEASE_END = db_now() + bindparam("lease", type_=Float)


def _has_work() -> Select[tuple[bool]]:
    running = aliased(Job)
    counts = select(running.owner, func.count().label("jobs"))
    busy = counts.where(running.state == JobState.RUNNING).group_by(running.owner).subquery()
    due = select(Job.id).outerjoin(busy, busy.c.owner == Job.owner)
    due = due.where(Job.state == JobState.QUEUED, Job.not_before <= db_now(), _is_known(Job.kind))
    due = due.outerjoin(OwnerQuota, OwnerQuota.owner == Job.owner)
    return select(due.where(func.coalesce(busy.c.jobs, 0) < _MOST_RUNNING).exists())


_HAS_WORK = _has_work()

# A job with child jobs continues: its time counts from its first start, and its progress never falls.
_HAS_CHILDREN = Job.deadline_at.is_not(None)


def _claim() -> ReturningUpdate[Job, float | None]:
    return (
        update(Job)
        .where(Job.id == _next_id(), Job.state == JobState.QUEUED)
        .values(
            state=JobState.RUNNING,
            attempt=Job.attempt + 1,
            lease_token=Job.lease_token + 1,
            lease_expires_at=_LEASE_END,
            heartbeat_count=0,
            beaten_at=machine_now(),
            worker_id=bindparam("claimed_by"),
            progress=case((_HAS_CHILDREN, Job.progress), else_=literal({}, JSON)),
            started_at=case(
                (_HAS_CHILDREN, func.coalesce(Job.started_at, db_now())), else_=db_now()
            ),
            event_seq=Job.event_seq + 1,
        )
        .returning(Job, (Job.deadline_at - db_now()).label("seconds_left"))
    )


_CLAIM = _claim()

# Two simultaneous claims would both count before either runs. The lock's number is arbitrary, but unused elsewhere.
_CLAIM_TURN = text("SELECT pg_advisory_xact_lock(7236512904)")

_BEAT = (
    update(Job)
    .where(*_HELD)
    .values(
        lease_expires_at=_LEASE_END,
        heartbeat_count=Job.heartbeat_count + 1,
        beaten_at=machine_now(),
    )
    .returning(Job.cancel_requested_at, Job.event_seq)
)

_PROGRESS = _BEAT.values(progress=bindparam("now_at", type_=JSON))
_PROGRESS_EVENT = _PROGRESS.values(event_seq=Job.event_seq + 1)

_REQUESTS = select(Job.cancel_requested_at, Job.keep_requested_at, Job.yield_requested_at).where(
    *_HELD
)


def has_work(
    session: Session, kinds: Collection[str] | None = None, most_running: int | None = None
) -> bool:
    """Return True if a claim would find a job. It only reads, so that idle workers never delay a writer."""
    return bool(session.scalar(_HAS_WORK, _known_kinds(kinds) | _at_most(most_running)))


def claim(
    session: Session,
    worker_id: str,
    lease_seconds: float,
    kinds: Collection[str] | None = None,
    most_running: int | None = None,
) -> tuple[Job, float | None] | None:
    """Claim the next eligible job of these kinds for a worker, with a lease and a new token; None if there is none.

    Returns the job, and the seconds until its deadline (only a job with child jobs has one). Owners with `most_running`
    running jobs, or as many as their own quota, are skipped.
    """
    values = {"claimed_by": worker_id, "lease": lease_seconds}
    values |= _known_kinds(kinds) | _at_most(most_running)
    if session.get_bind().dialect.name == "postgresql" and (
        most_running is not None or session.scalar(_HAS_RUNNING_QUOTA)
    ):
        session.execute(_CLAIM_TURN)
    row = session.execute(_CLAIM, values, execution_options=_AS_IT_IS).one_or_none()
    return None if row is None else (row[0], row[1])


def beat(
    session: Session,
    job_id: str,
    token: int,
    lease_seconds: float,
    progress: Json | None,
    *,
    is_event: bool,
) -> Heartbeat | None:
    """Extend the lease, and number the event if there is one; None if the token is no longer valid."""
    values = {"held_id": job_id, "held_token": token, "lease": lease_seconds}
    statement = _BEAT
    if progress is not None:
        values["now_at"] = progress
        statement = _PROGRESS_EVENT if is_event else _PROGRESS
    row = session.execute(statement, values, execution_options=_AS_IT_IS).one_or_none()
    return None if row is None else Heartbeat(row[0] is not None, row[1])


def requests(session: Session, job_id: str, token: int) -> Requests | None:
    """Return None if the token is no longer valid."""
    values = {"held_id": job_id, "held_token": token}
    row = session.execute(_REQUESTS, values).one_or_none()
    return None if row is None else Requests(*(each is not None for each in row))


def keep_checkpoint(session: Session, job_id: str, token: int, key: str) -> bool:
    """Return False if the token is no longer valid."""
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
    progress: Json | None = None,
    n_events: int = 1,
) -> tuple[int, float] | None:
    """End the job as succeeded if the token is valid and no cancellation was requested.

    Returns the number of the last event to write, and the seconds since its start; else None. One UPDATE decides
    between success and a simultaneous cancel: both change this row, and the second one sees the change of the first.
    """
    row = session.execute(
        update(Job)
        .where(
            Job.id == job_id,
            Job.lease_token == token,
            Job.state == JobState.RUNNING,
            Job.cancel_requested_at.is_(None),
        )
        .values(
            state=JobState.SUCCEEDED,
            progress={**(progress or {}), "fraction": 1.0},
            model_id=model_id,
            result=result,
            checkpoint_key=None,
            finished_at=db_now(),
            lease_expires_at=None,
            event_seq=Job.event_seq + n_events,
        )
        .returning(Job.event_seq, Job.finished_at - Job.started_at),
        execution_options=_AS_IT_IS,
    ).one_or_none()
    return None if row is None else (row[0], row[1] or 0.0)


def lock(
    session: Session,
    job_id: str,
    token: int,
    parent_id: str | None,
    heartbeat_count: int | None = None,
    *,
    wait: bool = True,
) -> Job | None:
    """Lock a running job; None if the token (or the heartbeat) has changed.

    The parent of a child job is locked first, because the end of either may end the other. Without `wait`, it also
    returns None if another transaction has locked either of them: that process may hang.
    """
    if parent_id is not None:
        lock_it = lock_parent if wait else try_lock_parent
        if lock_it(session, parent_id) is None:
            return None
    statement = select(Job).where(
        Job.id == job_id, Job.lease_token == token, Job.state == JobState.RUNNING
    )
    if heartbeat_count is not None:
        statement = statement.where(Job.heartbeat_count == heartbeat_count)
    return session.scalars(statement.with_for_update(skip_locked=not wait)).one_or_none()


def end(session: Session, job: Job, state: JobState, error: Json | None) -> None:
    """End a locked job without success, with its child jobs, and number its event."""
    if job.state == JobState.WAITING:
        cancel_open(session, job.id)
    job.state = state
    job.error = error
    job.checkpoint_key = None
    job.finished_at = db_now()
    job.lease_expires_at = None
    job.event_seq += 1
    session.flush()


def request_cancel(session: Session, job: Job) -> str:
    """End a locked job without a worker, or request it; returns the shown state, and numbers the event."""
    job.cancel_requested_at = db_now()
    if job.state != JobState.RUNNING:
        end(session, job, JobState.CANCELLED, None)
        return JobState.CANCELLED
    job.event_seq += 1
    session.flush()
    return "cancelling"


def request_keep(session: Session, job: Job) -> None:
    """Request that a locked job ends early with its best result, and number the event."""
    job.keep_requested_at = db_now()
    job.event_seq += 1
    session.flush()


SLICE_SECONDS = 60.0
"""How long a job runs at least before it gives way to another owner's job."""


def request_yield(session: Session, heard_within_seconds: float) -> str | None:
    """Ask a running job to give way if one owner holds all slots while another owner's job would be claimed next.

    The longest running job of those with a checkpoint is asked, one at a time; a job that does not follow within
    `SLICE_SECONDS` does not keep others from it. It must have run for `SLICE_SECONDS`, and for as long as in all its
    earlier slices together: so a job always advances, however often it repeats what no checkpoint keeps. The last of
    several attempts is not asked, because it would not resume.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(_CLAIM_TURN)  # no claim changes the counts meanwhile
    slots, _ = session.execute(_SLOTS_AND_OWNERS, {"within": heard_within_seconds}).one()
    running = session.execute(
        select(Job.owner, func.count(), func.max(Job.yield_requested_at) > db_now() - SLICE_SECONDS)
        .where(Job.state == JobState.RUNNING)
        .group_by(Job.owner)
    ).all()
    if len(running) != 1 or not slots:
        return None
    owner, jobs, asked = running[0]
    if jobs < slots or asked:
        return None
    waiting = session.scalars(
        select(Job.owner)
        .where(Job.state == JobState.QUEUED, Job.not_before <= db_now(), Job.owner != owner)
        .distinct()
    ).all()
    if not waiting:
        return None
    use = _use_by_owner()
    used = session.execute(select(use.c.owner, use.c.seconds)).all()
    seconds: dict[str, float] = {row.owner: row.seconds for row in used}
    # The order of claims: the fewest running jobs, then the fewest seconds.
    if jobs == 1 and min(seconds.get(each, 0.0) for each in waiting) >= seconds.get(owner, 0.0):
        return None
    job = session.scalars(
        select(Job)
        .where(
            Job.state == JobState.RUNNING,
            Job.readable_by(owner),
            Job.checkpoint_key.is_not(None),
            Job.yield_requested_at.is_(None),
            Job.cancel_requested_at.is_(None),
            Job.keep_requested_at.is_(None),
            or_(Job.deadline_at.is_(None), Job.parent_id.is_not(None)),
            or_(Job.attempt == 1, Job.attempt < Job.max_attempts),
            Job.started_at <= db_now() - SLICE_SECONDS,
            Job.started_at <= db_now() - func.coalesce(Job.yielded_seconds, 0.0),
        )
        .order_by(Job.started_at, Job.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    ).one_or_none()
    if job is None:
        return None
    job.yield_requested_at = db_now()
    session.flush()
    return job.id


def note_yield(session: Session, job: Job) -> None:
    """Note that a locked job gives way, and how long it has run. Its next slice begins when it is claimed."""
    job.yielded_seconds = (job.yielded_seconds or 0.0) + seconds_since_start(session, job)
    job.yielded_at = db_now()
    job.started_at = None
    session.flush()


def requeue(session: Session, job: Job, *, attempt: int, delay_seconds: float) -> None:
    """Return a locked job to the queue, and number its event.

    Without a delay `not_before` is 0 rather than the present time, so that a clock set back does not delay the job.
    """
    job.state = JobState.QUEUED
    job.attempt = attempt
    job.not_before = db_now() + delay_seconds if delay_seconds else 0.0
    job.lease_expires_at = job.beaten_at = job.yield_requested_at = None
    job.worker_id = None
    job.event_seq += 1
    session.flush()


def release_misdated(session: Session, longest_delay: float) -> None:
    """Queue jobs whose retry is later than the longest delay allows, because the clock was set back."""
    session.execute(
        update(Job)
        .where(
            Job.state == JobState.QUEUED,
            Job.attempt > 0,  # the first `not_before` of a job has no upper limit
            Job.not_before > db_now() + longest_delay,
        )
        .values(not_before=0.0),
        execution_options=_AS_IT_IS,
    )


def lease_is_over(lease_seconds: float, for_seconds: float = 0.0) -> ColumnElement[bool]:
    """Select running jobs whose lease expired at least `for_seconds` ago.

    PostgreSQL's own clock is used; `beaten_at` is null there. SQLite has only the clock of the process, which may be
    set forward or back at any moment, so heartbeats use the machine's monotonic clock. A heartbeat in the future of
    that clock dates from before the machine's last start.
    """
    silence = lease_seconds + for_seconds
    return and_(
        Job.state == JobState.RUNNING,
        case(
            (Job.beaten_at.is_(None), Job.lease_expires_at < db_now() - for_seconds),
            else_=~machine_now().between(Job.beaten_at, Job.beaten_at + silence),
        ),
    )


def expired(session: Session, lease_seconds: float) -> Sequence[RunningJob]:
    """Return running jobs whose lease has expired."""
    leased = select(Job.id, Job.lease_token, Job.heartbeat_count, Job.parent_id)
    leased = leased.where(lease_is_over(lease_seconds))
    return [RunningJob(*row) for row in session.execute(leased)]


def leases(session: Session, lease_seconds: float, seconds: float) -> int:
    """Count running jobs whose lease expired at least `seconds` ago."""
    lost = select(func.count()).select_from(Job).where(lease_is_over(lease_seconds, seconds))
    return session.scalars(lost).one()
