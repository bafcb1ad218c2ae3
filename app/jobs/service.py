"""An owner's operations on jobs: list, read, cancel, retry. Every job is created by `enqueue`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.access import quotas
from app.access.quotas import Counted
from app.jobs import queue, repository
from app.jobs import queue_repository as queue_rows
from app.jobs.kinds import KINDS, MODEL, SHOWN_KINDS, SHOWN_STATES, Claim, find_kind
from app.platform import failpoints, trace, tracing
from app.platform import logging as logs
from app.platform.audit import allow_over_quota, describe
from app.platform.callers import check_all_models, check_model
from app.platform.errors import Conflict, Invalid, NotFound, check_id
from app.platform.ids import is_id, new_id
from app.platform.settings import Settings
from app.platform.sql import ALL_ROWS, MAX_PAGE_SIZE, Page, RowFilter, Session
from app.platform.tables import FINAL_STATES, Job, JobEvent, JobOutputRow, JobState

TRAIN = "train"
IMPORTANCE = "importance"
IMPORT = "import"
ALL = "all"
"""In the place of a kind: jobs of every kind."""
INGEST = "ingest"
INGEST_FILES = "ingest_files"
INGEST_PAIRS = "ingest_pairs"
INGEST_SOURCE = "ingest_source"
INGEST_FETCHED = "ingest_fetched"
"""The kinds of job that read an upload, or the rows of a source."""

_QUOTAS: Mapping[str, Counted] = {MODEL: "models", "dataset": "dataset_rows"}
"""The quotas of the outputs of jobs, by the code of the output."""
_RETRYABLE = (JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT)
_MAX_SEQ = 2**63 - 1


def enqueue(
    session: Session,
    settings: Settings,
    *,
    owner: str,
    kind: str,
    name: str,
    spec: Mapping[str, Any],
    tags: Mapping[str, str] | None = None,
    dataset_id: str | None = None,
    timeout_seconds: float | None = None,
    priority: int = 0,
    not_before: float = 0.0,
    retry_of: str | None = None,
    adds_bytes: int = 0,
) -> Job:
    """Create a queued job and its first event in the caller's transaction.

    `not_before` is a time of the database's clock; 0 means at once. `adds_bytes` is the size of the upload that the job
    reads. Raises TooMany, Unavailable or OutOfSpace as `access.quotas.admit`.
    """
    quotas.admit(session, settings, owner, adds_bytes, quota_of(kind))
    job = repository.insert_job(
        session,
        id=new_id("job"),
        owner=owner,
        kind=kind,
        name=name,
        spec=dict(spec),
        tags=dict(tags or {}),
        dataset_id=dataset_id,
        retry_of=retry_of,
        request_id=logs.request_id.get(),
        traceparent=trace.current_traceparent(),
        priority=priority,
        max_attempts=settings.job_max_attempts,
        timeout_seconds=timeout_seconds or settings.job_timeout_seconds,
        not_before=not_before,
    )
    if (entry := KINDS.get(kind)) is not None:
        of = "" if dataset_id is None else f", dataset {dataset_id}"
        describe(session, f"{entry.label} {name}{of}", unless_described=True)
    return _begin(session, job)


def quota_of(kind: str) -> Counted | None:
    entry = KINDS.get(kind)
    return None if entry is None else _QUOTAS.get(entry.output or "")


def enqueue_rest(
    session: Session,
    claim: Claim,
    kind: str,
    spec: Mapping[str, Any],
    *,
    min_timeout_seconds: float,
) -> Job:
    """Create a job that continues another, in the transaction that ends that one. It needs no admission.

    It has the priority, tags and limits of the other job, but a timeout of at least `min_timeout_seconds`: the other
    job may have ended by its own timeout.
    """
    first = find(session, claim.owner, claim.job_id)
    job = repository.insert_job(
        session,
        id=new_id("job"),
        owner=claim.owner,
        kind=kind,
        name=claim.name,
        spec=dict(spec),
        tags=dict(first.tags),
        dataset_id=claim.dataset_id,
        retry_of=None,
        request_id=claim.request_id,
        traceparent=trace.current_traceparent() or claim.traceparent,
        priority=first.priority,
        max_attempts=claim.max_attempts,
        timeout_seconds=max(claim.timeout_seconds, min_timeout_seconds),
        not_before=0.0,
    )
    return _begin(session, job)


def _begin(session: Session, job: Job) -> Job:
    """Write the first event."""
    repository.add_event(
        session, job.id, job.event_seq, "state", {"state": job.state, "attempt": 0}
    )
    failpoints.reach("accept")
    return job


def list_page(
    session: Session,
    owner: str,
    *,
    state: str | None = None,
    kind: str | None = None,
    dataset_id: str | None = None,
    unresolved: bool = False,
    only: RowFilter = ALL_ROWS,
    limit: int = 50,
    after: str | None = None,
) -> Page[Job]:
    """Newest first. With `unresolved`, only failures without a later success."""
    if state is not None and state not in SHOWN_STATES:
        raise _no_choice("state", SHOWN_STATES, state)
    if kind is not None and kind not in (*SHOWN_KINDS, ALL):
        raise _no_choice("kind", (*SHOWN_KINDS, ALL), kind)
    check_id("dataset_id", dataset_id, "ds")
    return repository.list_page(
        session,
        owner,
        state=state,
        kind=None if kind == ALL else kind,
        dataset_id=dataset_id,
        unresolved=_tables_of_outputs() if unresolved else None,
        only=only,
        limit=limit,
        after=after,
    )


def _tables_of_outputs() -> dict[str, type[JobOutputRow]]:
    """The rows of these tables exist until they are deleted, however their jobs end."""
    kinds = {name: find_kind(name) for name in SHOWN_KINDS}
    return {name: kind.output.table for name, kind in kinds.items() if kind and kind.output}


def _no_choice(parameter: str, choices: Iterable[str], got: str) -> Invalid:
    detail = f"{parameter} must be one of {', '.join(choices)}, got {got[:100]!r}"
    return Invalid(detail, errors=[{"parameter": parameter, "detail": detail}])


def cancel(session: Session, owner: str, job_id: str) -> tuple[Job, bool]:
    """Request that a job stops; returns it, and True if anything changed.

    A queued job, and a job that waits for child jobs, end at once. A running job gets a request, and its worker (or the
    reaper) ends it. The row is locked during the decision, so a job that is just finishing has either finished or will
    see the request.
    """
    allow_over_quota(session)
    job = find(session, owner, job_id, lock=True)
    _check_model(job)
    if job.state == JobState.CANCELLED:
        return job, False
    if job.state in FINAL_STATES:
        raise Conflict(
            f"only an unfinished job can be cancelled; {job_id} has {job.state}",
            code="job_finished",
        )
    if job.cancel_requested_at is not None:
        return job, False
    before = job.state
    shown = queue_rows.request_cancel(session, job)
    describe(session, f"Job {job.name}: {before} → {shown}")
    repository.add_event(
        session, job.id, job.event_seq, "state", {"state": shown, "attempt": job.attempt}
    )
    if job.state == JobState.CANCELLED:
        queue.run_on_end(session, job, None)
        queue.record_end(session, job.id, job, JobState.CANCELLED)
        queue.log_line(session, job, job.state, queue_rows.seconds_since_start(session, job))
    session.refresh(job)
    return job, True


def _check_model(job: Job) -> None:
    """Raise Forbidden if the job creates or changes a model that the caller may not change."""
    kind = find_kind(job.kind)
    if kind is None:
        return
    if kind.changes_model:
        check_model(job.name)
    if kind.changes_all_models:
        check_all_models()


def retry(session: Session, settings: Settings, owner: str, job_id: str) -> Job:
    """Queue the work of a job without success as a new job, which takes over its output, in the caller's transaction.

    Raises Conflict if the output belongs to another job already, or if the work cannot be repeated.
    """
    old = find(session, owner, job_id, lock=True)
    tracing.link(old.traceparent)
    _check_model(old)
    if old.state not in _RETRYABLE:
        raise Conflict(
            f"only a job that is failed, cancelled or timed_out can be retried; {job_id} is {old.state}",
            code="job_not_retryable",
        )
    kind, output = find_kind(old.kind), None
    if kind is not None:
        kind.before_retry(session, old)
        if kind.output is not None:
            output = kind.output.find_to_retry(session, old)
    job = enqueue(
        session,
        settings,
        owner=owner,
        kind=old.kind,
        name=old.name,
        spec=old.spec,
        tags=old.tags,
        dataset_id=old.dataset_id,
        timeout_seconds=old.timeout_seconds,
        priority=old.priority,
        retry_of=old.id,
    )
    if kind is not None:
        kind.after_retry(session, job)
        if kind.output is not None and output is not None:
            kind.output.reassign(output, job)
    return job


def events(
    session: Session,
    owner: str,
    job_id: str,
    *,
    after: int = 0,
    limit: int = 50,
) -> Sequence[JobEvent]:
    """Return events above `after`, in order and without gaps."""
    if not 0 <= after <= _MAX_SEQ:
        raise Invalid(f"after must be the number of an event, 0 or more, got {after}")
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise Invalid(f"limit must be between 1 and {MAX_PAGE_SIZE}, got {limit}")
    job = find(session, owner, job_id)
    return repository.events_after(session, job.id, after, limit)


def find(session: Session, owner: str, job_id: str, *, lock: bool = False) -> Job:
    """With `lock`, locked until the transaction ends. Raises NotFound."""
    job = repository.find(session, owner, job_id, lock=lock) if is_id(job_id, "job") else None
    if job is None:
        raise NotFound(f"there is no job {job_id[:100]!r}")
    return job
