"""What a worker does with the queue: claim a job, keep it, end it or give it back.

A `Claim` carries the fencing token of its attempt. Every call here acts only while that token holds and raises
`LeaseLost` when it does not. `Unavailable` (a database that is away or locked) means try again, never lost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.jobs import queue_repository as outbox
from app.jobs import queue_repository as part_rows
from app.jobs import queue_repository as rows
from app.jobs import repository as job_rows
from app.jobs.progress import as_event
from app.jobs.service import READINGS
from app.platform import failpoints
from app.platform.database import Database
from app.platform.errors import CancelRequested, LeaseLost
from app.platform.settings import Settings
from app.platform.sql import Json
from app.platform.tables import Job, JobState

# The n-th retry after an infrastructure error waits 5, 20, then 60 seconds.
_BACKOFF_BASE = 5.0
_BACKOFF_FACTOR = 4.0
BACKOFF_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt at a job, owned while `token` holds.

    `parent_id` is set for a part of a job. `seconds_left` is what remains of the timeout, less than the whole for
    one that is in parts, and `fraction_done` what such a job has told of its progress before this attempt.
    `keep_requested` says that the owner wants the best so far: an attempt before may have been asked for it.
    `checkpoint_key` names the blob that the attempt may go on from.
    """

    job_id: str
    owner: str
    kind: str
    name: str
    spec: Json
    dataset_id: str | None
    attempt: int
    token: int
    timeout_seconds: float
    max_attempts: int
    parent_id: str | None
    seconds_left: float
    fraction_done: float
    keep_requested: bool
    checkpoint_key: str | None


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat learns."""

    cancel_requested: bool


def claim(
    db: Database, settings: Settings, worker_id: str, kinds: Collection[str] | None = None
) -> Claim | None:
    """Take the next eligible job, by priority, fair share between owners, and age; None when there is none.

    Only of these kinds, if they are given: what a later version has put into the queue is left to its workers. Owners
    who have as many running as `quota_running_jobs` are passed over.
    """
    with db.write() as session:
        claimed = rows.claim(
            session, worker_id, settings.lease_seconds, kinds, settings.quota_running_jobs
        )
        if claimed is None:
            return None
        job, seconds_left = claimed
        timeout = float(job.timeout_seconds)  # SQLite returns whole numbers as int
        say(session, job, worker=worker_id, token=job.lease_token)
        failpoints.reach("claim")
        return Claim(
            job_id=job.id,
            owner=job.owner,
            kind=job.kind,
            name=job.name,
            spec=job.spec,
            dataset_id=job.dataset_id,
            attempt=job.attempt,
            token=job.lease_token,
            timeout_seconds=timeout,
            max_attempts=job.max_attempts,
            parent_id=job.parent_id,
            seconds_left=timeout if seconds_left is None else seconds_left,
            fraction_done=job.progress.get("fraction") or 0.0,
            keep_requested=job.keep_requested_at is not None,
            checkpoint_key=job.checkpoint_key,
        )


def has_work(
    db: Database, kinds: Collection[str] | None = None, most_running: int | None = None
) -> bool:
    """Whether a claim would find a job now: the look that an idle worker takes once a second."""
    with db.read() as session:
        return rows.has_work(session, kinds, most_running)


def heartbeat(db: Database, settings: Settings, claim: Claim, progress: Json | None = None) -> Beat:
    """Prolong the lease and tell the progress, if there is any to tell. That of a part is told by `parts.tell`."""
    with db.write() as session:
        beaten = rows.beat(session, claim.job_id, claim.token, settings.lease_seconds, progress)
        if beaten is None:
            raise lost(claim)
        if progress is not None and claim.parent_id is None:
            told = as_event(progress)
            job_rows.add_event(session, claim.job_id, beaten.event_seq, "progress", told)
    failpoints.reach("beat")
    return Beat(beaten.cancel_requested)


def keep_checkpoint(db: Database, claim: Claim, key: str) -> None:
    """Note a checkpoint, in place of the one before: should this attempt be lost, the next one goes on from it."""
    with db.write() as session:
        if not rows.keep_checkpoint(session, claim.job_id, claim.token, key):
            raise lost(claim)


def poll_requests(db: Database, claim: Claim) -> rows.Requests:
    """What was asked of the job: one read by primary key, cheap enough for ten a second."""
    with db.read() as session:
        asked = rows.requests(session, claim.job_id, claim.token)
    if asked is None:
        raise lost(claim)
    return asked


def finish(
    session: Session,
    claim: Claim,
    *,
    state: JobState = JobState.SUCCEEDED,
    model_id: str | None = None,
    error: Json | None = None,
    detail: Json | None = None,
    messages: Sequence[str] = (),
) -> None:
    """End the job in the transaction that writes what it made; an exception rolls both back.

    Raises `LeaseLost` when another attempt owns the job or it has ended, and `CancelRequested` when a success
    comes after a cancel: then call `fail(db, claim, None, state=JobState.CANCELLED)`. `detail` is for the event;
    `messages` are events of their own before it, of a job that succeeds.
    """
    if state != JobState.SUCCEEDED:
        _end(session, claim, state, error, detail)
        return
    seq = succeed(session, claim, model_id=model_id, n_events=len(messages) + 1)
    data = {"state": state, "attempt": claim.attempt, **(detail or {})}
    if model_id is not None:
        data["model_id"] = model_id
    for number, text in enumerate(messages, start=seq - len(messages)):
        job_rows.add_event(session, claim.job_id, number, "message", {"text": text})
    job_rows.add_event(session, claim.job_id, seq, "state", data)


def succeed(
    session: Session,
    claim: Claim,
    *,
    model_id: str | None = None,
    result: Json | None = None,
    n_events: int = 1,
) -> int:
    """Take the job from running to succeeded; returns the number of the last event to write. Raises as `finish`."""
    seq = rows.succeed(
        session, claim.job_id, claim.token, model_id=model_id, result=result, n_events=n_events
    )
    if seq is None:
        asked = rows.requests(session, claim.job_id, claim.token)
        if asked is not None and asked.cancel:
            raise CancelRequested(f"{claim.job_id} was asked to stop before it could succeed")
        raise lost(claim)
    failpoints.reach("finish")
    return seq


def fail(
    db: Database, claim: Claim, error: Json | None, *, state: JobState = JobState.FAILED
) -> None:
    """End the job without a result: failed by its own fault, cancelled, or timed out."""
    with db.write() as session:
        _end(session, claim, state, error, None)


def time_out(db: Database, claim: Claim) -> None:
    """End a job that ran longer than it may."""
    fail(db, claim, timed_out(claim.timeout_seconds), state=JobState.TIMED_OUT)


def timed_out(timeout_seconds: float) -> Json:
    """The problem of a job that ran longer than it may."""
    return {
        "code": "timed_out",
        "title": "Timed out",
        "detail": f"the job ran longer than its timeout_seconds ({timeout_seconds:g})",
        "errors": [],
    }


def retry_later(db: Database, settings: Settings, claim: Claim, reason: str) -> JobState:
    """Requeue after a fault that is not the job's: with a growing delay, or failed once the attempts are spent.

    Returns the state that came of it: a job that was asked to stop is cancelled instead.
    """
    with db.write() as session:
        job = hold(session, claim)
        return retry_held(session, job, reason, delay_seconds=backoff_seconds(job.attempt))


def give_back(db: Database, claim: Claim) -> JobState:
    """Requeue at once and as if it had never been claimed: this worker is told to end."""
    with db.write() as session:
        job = hold(session, claim)
        if job.cancel_requested_at is not None:
            return end_held(session, job, JobState.CANCELLED, None)
        return requeue_held(session, job, "the worker is shutting down", job.attempt - 1, 0.0)


def backoff_seconds(attempt: int) -> float:
    """How long the retry after this attempt waits."""
    return min(BACKOFF_MAX, _BACKOFF_BASE * _BACKOFF_FACTOR ** (attempt - 1))


def retry_held(session: Session, job: Job, reason: str, *, delay_seconds: float) -> JobState:
    """Decide what becomes of a locked job that lost its attempt: cancelled, queued again, or failed."""
    if job.cancel_requested_at is not None:
        return end_held(session, job, JobState.CANCELLED, None)
    if job.attempt < job.max_attempts:
        return requeue_held(session, job, reason, job.attempt, delay_seconds)
    error = {
        "code": "attempts_spent",
        "title": "Attempts spent",
        "detail": f"a job may be tried {job.max_attempts} times; the last attempt ended with: {reason}",
        "errors": [],
    }
    return end_held(session, job, JobState.FAILED, error)


def end_held(
    session: Session, job: Job, state: JobState, error: Json | None, detail: Json | None = None
) -> JobState:
    """End a locked job without a result, tell it, and release who waits for its dataset.

    A part takes its parent with it, unless that goes on without it, and a parent its parts; see `parts.py`.
    """
    rows.end(session, job, state, error)
    said = dict(detail or {})
    if error is not None:
        said["code"] = error.get("code")
    say(session, job, **said)
    if job.kind in READINGS:
        fallback = {"detail": f"the upload's job has {state}"}
        faults = (error or {}).get("errors") or [{"detail": (error or fallback).get("detail")}]
        job_rows.abandon_upload(session, job.id, faults)
    if job.parent_id is not None and job.cancel_requested_at is None:
        parent = part_rows.lock_parent(session, job.parent_id)
        if parent.state == JobState.WAITING:
            end_held(session, parent, state, error, detail)
    return state


def requeue_held(
    session: Session, job: Job, reason: str, attempt: int, delay_seconds: float
) -> JobState:
    """Put a locked job back into the queue, to be claimed after so many seconds."""
    rows.requeue(session, job, attempt=attempt, delay_seconds=delay_seconds)
    outbox.owe(session, job.id, attempt + 1)
    say(session, job, reason=reason)
    return JobState.QUEUED


def _end(
    session: Session, claim: Claim, state: JobState, error: Json | None, detail: Json | None
) -> None:
    if state in {JobState.SUCCEEDED, JobState.QUEUED, JobState.RUNNING}:
        raise ValueError(
            f"a job ends without a result as failed, cancelled or timed_out, got {state}"
        )
    end_held(session, hold(session, claim), state, error, detail)


def hold(session: Session, claim: Claim) -> Job:
    """Lock the job for the rest of the transaction, of a part its parent before it; raises `LeaseLost`."""
    job = rows.hold(session, claim.job_id, claim.token, claim.parent_id)
    if job is None:
        raise lost(claim)
    return job


def say(session: Session, job: Job, **data: object) -> None:
    """Write the event that a locked job's new state was given the number of. Nobody listens to a part."""
    if job.parent_id is not None:
        return
    said = {"state": job.state, "attempt": job.attempt, **data}
    job_rows.add_event(session, job.id, job.event_seq, "state", said)


def lost(claim: Claim) -> LeaseLost:
    return LeaseLost(f"attempt {claim.attempt} (token {claim.token}) no longer owns {claim.job_id}")
