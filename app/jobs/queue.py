"""A worker's operations on the queue: claim a job, extend its lease, end it or return it to the queue.

A `Claim` has the fencing token of its attempt. Every function here acts only while that token is valid, and raises
`LeaseLost` otherwise. `Unavailable` (the database is down or locked) means that the caller should retry; the lease is
not lost.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from functools import partial

from app.jobs import queue_repository
from app.jobs import repository as job_rows
from app.jobs.kinds import KINDS, Claim, kind_of
from app.jobs.progress import as_event
from app.platform import catalogue, events, failpoints, trace
from app.platform.blobs import Blob
from app.platform.errors import CancelRequested, LeaseLost, counted
from app.platform.settings import Settings
from app.platform.sql import Json, Session, after_commit
from app.platform.tables import Job, JobState

log = logging.getLogger("rankwright.jobs")

# The n-th retry after an infrastructure error waits 5, 20, then 60 seconds.
_BACKOFF_BASE = 5.0
_BACKOFF_FACTOR = 4.0
BACKOFF_MAX = 60.0


def claim(
    session: Session, settings: Settings, worker_id: str, kinds: Collection[str] | None = None
) -> Claim | None:
    """Claim the next eligible job, by fair share between owners, then by priority and age; None if there is none.

    With `kinds`, only jobs of these kinds are claimed; jobs that a later version has queued are left to its workers.
    Owners who have reached the limit of running jobs are skipped.
    """
    claimed = queue_repository.claim(
        session, worker_id, settings.lease_seconds, kinds, _most_running(session, settings)
    )
    if claimed is None:
        return None
    job, seconds_left = claimed
    timeout = float(job.timeout_seconds)  # SQLite returns whole numbers as int
    add_state_event(session, job, worker=worker_id, token=job.lease_token)
    log_line(session, job, "claimed", worker=worker_id)
    failpoints.reach("claim")
    return Claim(
        job_id=job.id,
        owner=job.owner,
        kind=job.kind,
        name=job.name,
        spec=_spec_of(session, job),
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
        request_id=job.request_id,
        traceparent=job.traceparent,
        improvements=job.progress.get("improvements") or (),
        waited_seconds=_waited(job, settings.lease_seconds),
    )


def _waited(job: Job, lease_seconds: float) -> float | None:
    """None for a later attempt or a child job."""
    if job.attempt > 1 or job.parent_id is not None or job.lease_expires_at is None:
        return None
    claimed_at = job.lease_expires_at - lease_seconds  # by the database's clock
    return max(0.0, claimed_at - max(job.created_at, job.not_before))


def _spec_of(session: Session, job: Job) -> Json:
    """A child job's has its parent's as `parent`."""
    if job.parent_id is None:
        return job.spec
    return {"parent": queue_repository.spec_of(session, job.parent_id)} | job.spec


def has_work(session: Session, settings: Settings, kinds: Collection[str] | None = None) -> bool:
    """Return True if a claim would find a job. An idle worker asks once a second."""
    return queue_repository.has_work(session, kinds, _most_running(session, settings))


def _most_running(session: Session, settings: Settings) -> int | None:
    if settings.quota_running_jobs is not None:
        return settings.quota_running_jobs
    return queue_repository.slot_share(session, job_rows.MISSED_BEATS * settings.heartbeat_seconds)


def heartbeat(
    session: Session,
    settings: Settings,
    claim: Claim,
    progress: Json | None = None,
    *,
    is_event: bool = True,
) -> queue_repository.Heartbeat:
    """Extend the lease and write progress, by default also as an event. Raises LeaseLost.

    A child job has no events: `child_jobs.report_progress` writes its progress into those of its parent.
    """
    is_event = is_event and progress is not None and claim.parent_id is None
    beat = queue_repository.beat(
        session, claim.job_id, claim.token, settings.lease_seconds, progress, is_event=is_event
    )
    if beat is None:
        raise lease_lost(claim)
    if is_event and progress is not None:
        event = as_event(progress)
        job_rows.add_event(session, claim.job_id, beat.event_seq, "progress", event)
    return beat


def keep_checkpoint(session: Session, claim: Claim, blob: Blob) -> None:
    """Store a new checkpoint, from which the next attempt resumes if this one is lost."""
    if not queue_repository.keep_checkpoint(session, claim.job_id, claim.token, blob.key):
        raise lease_lost(claim)
    catalogue.add(session, [blob])


def poll_requests(session: Session, claim: Claim) -> queue_repository.Requests:
    """Return the owner's requests to stop or end the job: one read by primary key, cheap enough for ten a second."""
    asked = queue_repository.requests(session, claim.job_id, claim.token)
    if asked is None:
        raise lease_lost(claim)
    return asked


def finish(
    session: Session,
    claim: Claim,
    *,
    model_id: str | None = None,
    messages: Sequence[str] = (),
    progress: Json | None = None,
) -> None:
    """End the job as succeeded, in the transaction that writes its result; an exception rolls both back.

    Raises `LeaseLost` when another attempt owns the job or it has ended, and `CancelRequested` when the success comes
    after a cancel: then `fail` ends it as cancelled. `messages` are written as events before the last one. `progress`
    is the final progress of the job.
    """
    seq = succeed(session, claim, model_id=model_id, progress=progress, n_events=len(messages) + 1)
    data: Json = {"state": JobState.SUCCEEDED, "attempt": claim.attempt}
    if model_id is not None:
        data["model_id"] = model_id
    for number, text in enumerate(messages, start=seq - len(messages)):
        job_rows.add_event(session, claim.job_id, number, "message", {"text": text})
    job_rows.add_event(session, claim.job_id, seq, "state", data)
    more = {} if model_id is None else {"model_id": model_id}
    record_end(session, claim.job_id, claim, JobState.SUCCEEDED, **more)


def succeed(
    session: Session,
    claim: Claim,
    *,
    model_id: str | None = None,
    result: Json | None = None,
    progress: Json | None = None,
    n_events: int = 1,
) -> int:
    """Change a running job to succeeded; returns the last event's number. Raises as `finish` does."""
    ended = queue_repository.succeed(
        session,
        claim.job_id,
        claim.token,
        model_id=model_id,
        result=result,
        progress=progress,
        n_events=n_events,
    )
    if ended is None:
        asked = queue_repository.requests(session, claim.job_id, claim.token)
        if asked is not None and asked.cancel:
            raise CancelRequested(f"{claim.job_id} was asked to stop before it could succeed")
        raise lease_lost(claim)
    seq, seconds = ended
    log_line(session, claim, JobState.SUCCEEDED, seconds)
    failpoints.reach("finish")
    return seq


def fail(
    session: Session, claim: Claim, error: Json | None, *, state: JobState = JobState.FAILED
) -> JobState:
    """End the job without a result: failed, cancelled, or timed out."""
    if state in {JobState.SUCCEEDED, JobState.QUEUED, JobState.RUNNING}:
        raise ValueError(
            f"a job ends without a result as failed, cancelled or timed_out, got {state}"
        )
    return end_locked(session, lock(session, claim), state, error)


def time_out(session: Session, claim: Claim) -> JobState:
    """End a job that exceeded its time limit."""
    return fail(session, claim, timed_out(claim.timeout_seconds), state=JobState.TIMED_OUT)


def problem(code: str, title: str, detail: str, errors: Sequence[Json] = ()) -> Json:
    """Return the problem of a job without a result, for its owner."""
    return {"code": code, "title": title, "detail": detail, "errors": [*errors]}


def timed_out(timeout_seconds: float) -> Json:
    """The job exceeded its time limit."""
    detail = f"the job ran longer than its timeout_seconds ({timeout_seconds:g})"
    return problem("timed_out", "Timed out", detail)


def retry_later(session: Session, claim: Claim, reason: str) -> JobState:
    """Requeue a job after a fault that is not its own, with a growing delay; fail it without attempts left.

    A job that was asked to stop is cancelled instead.
    """
    job = lock(session, claim)
    return retry_locked(session, job, reason, delay_seconds=backoff_seconds(job.attempt))


def give_back(
    session: Session, claim: Claim, reason: str = "the worker is shutting down"
) -> JobState:
    """Requeue the job as if it had never been claimed: this worker must end, or the attempt was overtaken."""
    job = lock(session, claim)
    if job.cancel_requested_at is not None:
        return end_locked(session, job, JobState.CANCELLED, None)
    return requeue_locked(session, job, reason, job.attempt - 1, 0.0)


def request_yield(session: Session, settings: Settings) -> str | None:
    """Ask a running job to give way if a job of another owner waits for its slot."""
    within = job_rows.MISSED_BEATS * settings.heartbeat_seconds
    job_id = queue_repository.request_yield(session, within)
    if job_id is not None:
        failpoints.reach("request_yield")
    return job_id


def give_way(session: Session, claim: Claim) -> JobState:
    """Requeue a job that gives way at a checkpoint. The attempt does not count, and its place in the queue is kept."""
    job = lock(session, claim)
    if job.cancel_requested_at is not None:
        return end_locked(session, job, JobState.CANCELLED, None)
    queue_repository.note_yield(session, job)
    state = requeue_locked(session, job, "a job of another owner waits", job.attempt - 1, 0.0)
    failpoints.reach("yield")
    return state


def backoff_seconds(attempt: int) -> float:
    """Return the delay before the retry that follows this attempt."""
    return min(BACKOFF_MAX, _BACKOFF_BASE * _BACKOFF_FACTOR ** (attempt - 1))


def retry_locked(session: Session, job: Job, reason: str, *, delay_seconds: float) -> JobState:
    """Cancel, requeue or fail a locked job whose attempt was lost."""
    if job.cancel_requested_at is not None:
        return end_locked(session, job, JobState.CANCELLED, None)
    if job.attempt < job.max_attempts:
        return requeue_locked(session, job, reason, job.attempt, delay_seconds)
    attempts = counted(job.max_attempts, "attempt", "attempts")
    detail = f"the job used up its {attempts}; the last one ended with: {reason}"
    error = problem("attempts_spent", "Attempts spent", detail)
    return end_locked(session, job, JobState.FAILED, error)


def end_locked(session: Session, job: Job, state: JobState, error: Json | None) -> JobState:
    """End a locked job without a result: write its event and run the on-end hook of its kind.

    The end of a child job also ends its parent, unless the parent can continue without it. The end of a parent also
    ends its child jobs; see `child_jobs`.
    """
    queue_repository.end(session, job, state, error)
    data = {} if error is None else {"code": error.get("code")}
    add_state_event(session, job, **data)
    log_line(session, job, state, queue_repository.seconds_since_start(session, job), **data)
    run_on_end(session, job, error)
    record_end(session, job.id, job, state, **data)
    if job.parent_id is not None and job.cancel_requested_at is None:
        parent = queue_repository.lock_parent(session, job.parent_id)
        if parent.state == JobState.WAITING:
            end_locked(session, parent, state, _of_part(job, error))
    return state


def _of_part(job: Job, error: Json | None) -> Json | None:
    """Return the problem of a child job for its parent, with the number of the file that it concerns."""
    number = job.spec["part"].get("number")
    if (
        error is None or number is None or error.get("code") == "too_many_rows"
    ):  # concerns all files together
        return error
    if f"{error['detail']}".startswith(f"part {number}"):
        return error
    return {**error, "detail": f"part {number}: {error['detail']}"}


def record_end(
    session: Session, job_id: str, job: Job | Claim, state: JobState, **fields: object
) -> None:
    """Record the end of a job for webhooks. A child job has no events."""
    if job.parent_id is not None:
        return
    events.record(
        session, job.owner, f"job.{state}", job_id, kind=job.kind, name=job.name, **fields
    )
    id_ = job.spec.get("evaluation_id")
    if id_ is not None and job.kind in KINDS and KINDS[job.kind].output == "evaluation":
        type_ = "evaluation.ready" if state == JobState.SUCCEEDED else "evaluation.failed"
        events.record(session, job.owner, type_, id_, job_id=job_id, **fields)


def run_on_end(session: Session, job: Job, error: Json | None) -> None:
    """Run the on-end hook of a job without a result. Kinds without one are not imported: dispatchers end all kinds."""
    if job.kind in KINDS and KINDS[job.kind].has_end_hook:
        kind_of(job.kind).on_end(session, job, error)


def requeue_locked(
    session: Session, job: Job, reason: str, attempt: int, delay_seconds: float
) -> JobState:
    """It can be claimed after `delay_seconds`."""
    seconds = queue_repository.seconds_since_start(session, job)
    log_line(session, job, JobState.QUEUED, seconds, reason=reason)
    queue_repository.requeue(session, job, attempt=attempt, delay_seconds=delay_seconds)
    add_state_event(session, job, reason=reason)
    return JobState.QUEUED


def log_line(
    session: Session,
    job: Job | Claim,
    became: str,
    seconds: float | None = None,
    **more: str | int | None,
) -> None:
    """Log the outcome after the commit; `seconds` are those since the claim. Nothing from the owner is logged."""
    fields: Json = {
        "job_id": job.id if isinstance(job, Job) else job.job_id,
        "parent_id": job.parent_id,
        "kind": job.kind,
        "owner": job.owner,
        "attempt": job.attempt,
        "outcome": str(became),
        "seconds": None if seconds is None else round(seconds, 3),
        "request_id": job.request_id,
        **more,
    }
    if job.traceparent is not None and (context := trace.parse(job.traceparent)) is not None:
        fields["trace_id"] = context.trace_id
    text = "%(job_id)s %(outcome)s: %(kind)s of %(owner)s, attempt %(attempt)d"
    text += "" if seconds is None else ", %(seconds).3f s"
    text += "".join(f", {name} %({name})s" for name in ("request_id", *more))
    after_commit(session, partial(log.info, text, fields, extra={"fields": fields}))


def lock(session: Session, claim: Claim) -> Job:
    """Lock the job, after its parent if it is a child job. Raises LeaseLost."""
    job = queue_repository.lock(session, claim.job_id, claim.token, claim.parent_id)
    if job is None:
        raise lease_lost(claim)
    return job


def add_state_event(session: Session, job: Job, **data: object) -> None:
    """Write the event of a locked job's new state, with the number in its row. A child job has none."""
    if job.parent_id is not None:
        return
    data = {"state": job.state, "attempt": job.attempt, **data}
    job_rows.add_event(session, job.id, job.event_seq, "state", data)


def lease_lost(claim: Claim) -> LeaseLost:
    """The token of an attempt is no longer valid."""
    return LeaseLost(f"attempt {claim.attempt} (token {claim.token}) no longer owns {claim.job_id}")
