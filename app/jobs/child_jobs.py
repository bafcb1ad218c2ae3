"""Child jobs: a job fans out into child jobs, waits for them, and combines their results in its next attempt.

A child job is claimed, kept alive, requeued and retried like any job. Only its end differs. The transaction that ends
the last child job of a stage also queues the parent. The parent's next claim is the join: its payload has the results
of the child jobs. A child job that fails ends its parent, and a parent that ends ends its child jobs. Every transaction
locks the parent before the child.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.jobs import queue, queue_repository
from app.jobs import repository as job_rows
from app.jobs import service as jobs
from app.jobs.kinds import CHILD, Claim, FanOut, find_kind
from app.jobs.progress import as_event, clocked, seconds_between_events
from app.platform import failpoints
from app.platform.audit import allow_over_quota
from app.platform.blobs import BlobKey
from app.platform.errors import CancelRequested, Conflict
from app.platform.ids import new_id
from app.platform.sql import Session
from app.platform.tables import FINAL_STATES, Job, JobState

# Members of the latest child job's progress that the job shows.
_OF_CHILD = ("phase", "algorithm", "parameters", "rows", "fold", "trial", "trials")
DEFAULT_FRACTION = 0.5
OWNED = "owned"
"""Member of a child job's result: its files have the bytes of no other job's, and go when the parent has ended."""

Json = dict[str, Any]


def fan_out(session: Session, claim: Claim, asked: FanOut) -> None:
    """Queue the child jobs of a stage, and set the job to wait for them.

    The token must be valid: an attempt that is replayed after its fan-out has lost its lease. Raises `LeaseLost` and
    `CancelRequested` as `queue.finish` does, and ValueError for a wrong stage, such as one that has already run, which
    could repeat forever.
    """
    stage, parts, fraction = asked["stage"], asked["parts"], asked.get("share", DEFAULT_FRACTION)
    if not parts:
        raise ValueError(f"stage {stage} must have a part")
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"share must be above 0 and at most 1, got {fraction}")
    if claim.parent_id is not None:
        raise ValueError(f"{claim.job_id} is a child job and cannot create child jobs")
    job = queue.lock(session, claim)
    if job.cancel_requested_at is not None:
        raise CancelRequested(f"{job.id} was asked to stop before it could create child jobs")
    if job.keep_requested_at is not None and not claim.keep_requested:
        # This attempt did not know of the request. The next one does, and asks only for the child jobs that it needs.
        queue.requeue_locked(session, job, "asked to end early", job.attempt - 1, 0.0)
        return
    last = queue_repository.last_stage(session, job.id)
    if last is not None and stage <= last:
        raise ValueError(f"stage must be above {last}, the last stage of {job.id}, got {stage}")
    done = 0.0 if last is None else queue_repository.done(session, job.id).fraction
    share = (1.0 - done) * fraction / len(parts)
    queue_repository.wait(session, job)
    queue_repository.insert_queued(
        session,
        job,
        stage,
        f"{job.kind}{CHILD}",
        sorted(new_id("job") for _ in parts),  # the ids order rows of the same age
        [{"part": part, "share": share} for part in parts],
    )
    seconds = queue_repository.seconds_since_start(session, job)
    queue.log_line(session, job, job.state, seconds, parts=len(parts))
    # As far as its owner sees, a job that waits for its child jobs is running.
    queue.add_state_event(session, job, state=JobState.RUNNING, stage=stage, parts=len(parts))
    failpoints.reach("fan_out")


def finish(
    session: Session,
    claim: Claim,
    result: Json,
    files: Mapping[str, str],
    merge: Callable[[Json], Json] = lambda progress: progress,
) -> None:
    """End a child job as succeeded, and queue its parent if it was the last one. Raises as `queue.finish` does.

    `result` and `files` (blob keys by name) are stored until the parent has ended. `merge` adds the child job's results
    to the parent's progress.
    """
    if claim.parent_id is None:
        raise ValueError(f"{claim.job_id} is not a child job")
    parent = queue_repository.lock_parent(session, claim.parent_id)
    queue.succeed(session, claim, result=result | {"files": dict(files)})
    parent.progress = merge(parent.progress)
    if not _join(session, parent):
        _report_progress(session, parent)


def end_early(session: Session, owner: str, job_id: str) -> tuple[Job, bool]:
    """Request that a training job ends now with its best model so far; returns it, and True if anything changed.

    The worker passes the request on to the process that fits. A job that waits for child jobs is queued at once. The
    child jobs that it does not need are asked to stop. The request is stored in the job's row, for whichever worker
    runs it. Raises NotFound, and Conflict for a job that has ended, is being cancelled, or has no model yet.
    """
    allow_over_quota(session)
    job = jobs.find(session, owner, job_id, lock=True)
    if job.state in FINAL_STATES:
        raise Conflict(
            f"keep requires an unfinished job; {job_id} has {job.state}",
            code="job_finished",
        )
    if job.cancel_requested_at is not None:
        raise Conflict(
            f"keep requires a running job; {job_id} has already been asked to stop",
            code="job_cancelling",
        )
    if job.keep_requested_at is not None:
        return job, False
    if not job.progress.get("keepable"):
        raise Conflict(f"{job_id} has nothing to keep: {_why_nothing(job)}", code="nothing_to_keep")
    queue_repository.request_keep(session, job)
    text = "asked to end early and keep the best candidate"
    job_rows.add_event(session, job.id, job.event_seq, "message", {"text": text})
    if job.state == JobState.WAITING:
        left_out = [
            id_
            for id_, kind, spec in queue_repository.open_specs(session, job.id)
            if (child := find_kind(kind)) is not None and child.may_skip(spec)
        ]
        queue_repository.cancel_open(session, job.id, left_out)
        _join(session, job)
    session.refresh(job)
    return job, True


def _why_nothing(job: Job) -> str:
    """Return why a job cannot end early."""
    if "algorithm" not in job.spec:
        return f"keep applies only to training jobs; this job is of kind {job.kind!r}"
    return (
        "no candidate has been fitted yet; cancel the job without keep, or try again when "
        "progress.keepable is true"
    )


def finished(session: Session, job_id: str) -> list[Json]:
    """Return the results of child jobs by stage and number, each file as a `BlobKey`; None for those asked to stop."""
    children = queue_repository.of_parent(session, job_id)
    return [
        {
            "stage": child.stage,
            "part": child.part,
            "spec": child.spec["part"],
            "result": None if child.result is None else _with_keys(child.result),
        }
        for child in children
        if child.result is not None or child.cancel_requested_at is not None
    ]


def unneeded_files(session: Session, job_id: str | None = None) -> list[str]:
    """Return the files of child jobs whose parent has ended: of one parent, or of all."""
    results = queue_repository.results_of_ended(session, OWNED, job_id)
    return [key for result in results for key in result["files"].values()]


def report_progress(session: Session, parent_id: str, progress: Json | None = None) -> None:
    """Write the progress of a waiting job with that of one child job, as often as `seconds_between_events` allows."""
    parent = queue_repository.lock_waiting(session, parent_id)
    if parent is not None:
        _report_progress(session, parent, progress)


def recover_stuck(session: Session, job_id: str) -> JobState | None:
    """End or queue a stuck job; returns its new state, or None if it is not stuck any more.

    A job past its deadline is ended, although all its child jobs may still be queued. A job without an unfinished child
    job is queued; only manual edits of rows can cause that state.
    """
    job = queue_repository.lock_waiting(session, job_id)
    if job is None:
        return None
    if queue_repository.overdue(session, job):
        return queue.end_locked(
            session, job, JobState.TIMED_OUT, queue.timed_out(job.timeout_seconds)
        )
    return JobState.QUEUED if _join(session, job) else None


def _join(session: Session, parent: Job) -> bool:
    """Queue a locked job whose child jobs have all ended, as if it had never been claimed."""
    if parent.state != JobState.WAITING or queue_repository.any_open(session, parent.id):
        return False
    parent.progress = parent.progress | {
        "fraction": queue_repository.done(session, parent.id).fraction
    }
    queue.requeue_locked(session, parent, "its parts are done", parent.attempt - 1, 0.0)
    failpoints.reach("join")
    return True


def _report_progress(session: Session, parent: Job, of_child: Json | None = None) -> None:
    """Write a progress event of a locked waiting job, unless there was a recent one."""
    if parent.state != JobState.WAITING:
        return
    elapsed = queue_repository.seconds_since_start(session, parent)
    if queue_repository.progress_within(session, parent, seconds_between_events(elapsed)):
        return
    done = queue_repository.done(session, parent.id)
    now = {
        "fraction": done.fraction,
        "step": done.finished,
        "of": done.of,
        "detail": f"{done.finished} of {done.of} parts of stage {done.stage} are done",
    }
    if of_child is not None:
        now |= {name: of_child[name] for name in _OF_CHILD if name in of_child}
    if "trial" in now:
        now["trial"] = parent.progress.get("trials_done", 0) + 1
    parent.progress = clocked(parent.progress | now, parent.spec, elapsed)
    parent.event_seq += 1
    session.flush()
    event = as_event(parent.progress)
    job_rows.add_event(session, parent.id, parent.event_seq, "progress", event)


def _with_keys(result: Json) -> Json:
    files = {name: BlobKey(key) for name, key in result["files"].items()}
    return result | {"files": files}
