"""What an owner does with jobs: see them, cancel them, retry them. `enqueue` is how every job begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy.orm import Session

from app.access import service
from app.datasets import repository as pair_rows
from app.datasets import series
from app.evaluation import repository as evaluation_rows
from app.jobs import queue_repository as outbox
from app.jobs import queue_repository as queue
from app.jobs import repository as rows
from app.platform import failpoints
from app.platform.database import Database, again_after_deadlock
from app.platform.errors import Conflict, Invalid, NotFound, check_id
from app.platform.ids import is_id, new_id
from app.platform.settings import Settings
from app.platform.sql import MAX_LIMIT, Json, Page
from app.platform.tables import (
    FINAL_STATES,
    Dataset,
    DatasetPairs,
    DatasetStatus,
    Job,
    JobEvent,
    JobState,
)
from app.scoring import repository as batch_score_rows

INGEST = "ingest"
INGEST_PAIRS = "ingest_pairs"
READINGS = (INGEST, INGEST_PAIRS)
"""The kinds of job that read an upload."""

# A job that waits for its parts is shown as running.
_SHOWN_STATES = (*(state for state in JobState if state != JobState.WAITING), "cancelling")
_RETRYABLE = (JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT)
_MAX_SEQ = 2**63 - 1


def enqueue(
    session: Session,
    settings: Settings,
    *,
    owner: str,
    kind: str,
    name: str,
    spec: Json,
    tags: Mapping[str, str] | None = None,
    dataset_id: str | None = None,
    timeout_seconds: float | None = None,
    priority: int = 0,
    not_before: float = 0.0,
    retry_of: str | None = None,
    adds_bytes: int = 0,
) -> Job:
    """Write a job, its wake-up and its first event into the caller's transaction: all are accepted, or none.

    `not_before` is a time of the database's clock; 0 means at once, whatever that clock says. `adds_bytes` is the size
    of the upload that the job reads. Raises TooMany, Unavailable or OutOfSpace as `quotas.admit`.
    """
    service.admit(session, settings, owner, adds_bytes)
    job = rows.insert_job(
        session,
        id=new_id("job"),
        owner=owner,
        kind=kind,
        name=name,
        spec=spec,
        tags=dict(tags or {}),
        dataset_id=dataset_id,
        retry_of=retry_of,
        priority=priority,
        max_attempts=settings.job_max_attempts,
        timeout_seconds=timeout_seconds or settings.job_timeout_seconds,
        not_before=not_before,
    )
    outbox.insert_first(session, [job.id])
    rows.add_event(session, job.id, job.event_seq, "state", {"state": job.state, "attempt": 0})
    failpoints.reach("accept")
    return job


def get(db: Database, owner: str, job_id: str) -> Job:
    """The owner's job; another owner's is as absent as one that never was."""
    with db.read() as session:
        return find_within(session, owner, job_id)


def list_page(
    db: Database,
    owner: str,
    *,
    state: str | None = None,
    kind: str | None = None,
    dataset_id: str | None = None,
    limit: int = 50,
    after: str | None = None,
) -> Page[Job]:
    """The owner's jobs, newest first. A dataset that cannot be has none."""
    if state is not None and state not in _SHOWN_STATES:
        raise Invalid(f"state must be one of {', '.join(_SHOWN_STATES)}, got {state[:100]!r}")
    if kind is not None and not (kind.isascii() and kind.isprintable()):
        raise Invalid(f"kind must be a name such as train or ingest, got {kind[:100]!r}")
    check_id("dataset_id", dataset_id, "ds")
    with db.read() as session:
        return rows.list_page(
            session,
            owner,
            state=state,
            kind=kind,
            dataset_id=dataset_id,
            limit=limit,
            after=after,
        )


@again_after_deadlock
def cancel(db: Database, owner: str, job_id: str) -> tuple[Job, bool]:
    """Ask a job to stop; returns it and whether this call changed anything.

    A queued job ends at once, and so does one that waits for its parts. A running one is asked, and its worker (or
    the reaper) ends it. The row is locked while that is decided, so a job that is just finishing either has finished,
    or will see the request.
    """
    with db.write() as session:
        job = find_within(session, owner, job_id, lock=True)
        if job.state == JobState.CANCELLED:
            return job, False
        if job.state in FINAL_STATES:
            raise Conflict(
                f"a job can be cancelled until it has finished; {job_id} has {job.state}",
                code="job_finished",
            )
        if job.cancel_requested_at is not None:
            return job, False
        shown = queue.request_cancel(session, job)
        rows.add_event(
            session, job.id, job.event_seq, "state", {"state": shown, "attempt": job.attempt}
        )
        if job.kind in READINGS and job.state == JobState.CANCELLED:
            rows.abandon_upload(session, job.id, [{"detail": "the upload's job was cancelled"}])
        session.refresh(job)
        return job, True


def retry_within(session: Session, settings: Settings, owner: str, job_id: str) -> Job:
    """Queue the work of a job that failed, was cancelled or timed out as a new job, in the caller's transaction."""
    old = find_within(session, owner, job_id, lock=True)
    if old.state not in _RETRYABLE:
        raise Conflict(
            f"a job can be retried once it is failed, cancelled or timed_out; {job_id} is {old.state}",
            code="job_not_retryable",
        )
    judged_by = (old.spec.get("validation") or {}).get("dataset_id")
    needed = [id_ for id_ in (old.dataset_id, judged_by) if id_ is not None]
    held = [*needed, *filter(None, [old.spec.get("append_to")])]
    rows.hold_datasets(session, owner, held, to_change=old.kind in READINGS)
    found = [rows.find_dataset(session, owner, id_) for id_ in needed]
    if None in found:
        gone = needed[found.index(None)]
        raise Conflict(
            f"a job can be retried while its dataset exists; {gone} was deleted",
            code="dataset_deleted",
        )
    dataset = None if old.dataset_id is None else found[0]
    upload = _upload_of(session, old, dataset)
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
    evaluation_rows.take_over(session, old.id, job.id)
    batch_score_rows.take_over(session, old.id, job.id)
    if upload is not None:
        upload.status = DatasetStatus.PROCESSING
        upload.errors = []
        upload.job_id = job.id
    return job


def _upload_of(
    session: Session, job: Job, dataset: Dataset | None
) -> Dataset | DatasetPairs | None:
    """What a job has read that is to be read again; None when it was to read nothing."""
    if dataset is None or job.kind not in READINGS:
        return None
    if job.kind == INGEST:
        upload: Dataset | DatasetPairs | None = dataset
        if (parent_id := job.spec.get("append_to")) is not None:
            series.check_again(session, job.owner, parent_id)
    else:  # pairs may have been replaced since by others
        pairs = pair_rows.find_pairs(session, dataset.id)
        upload = pairs if pairs is not None and pairs.job_id == job.id else None
    if upload is None or upload.status != DatasetStatus.INVALID:
        status = "replaced" if upload is None else upload.status
        raise Conflict(
            f"an upload can be read again once it is invalid; that of {dataset.id} is {status}",
            code="job_not_retryable",
        )
    return upload


def events(
    db: Database, owner: str, job_id: str, *, after: int = 0, limit: int = 50
) -> Sequence[JobEvent]:
    """The job's events numbered above `after`, in order and without gaps."""
    if not 0 <= after <= _MAX_SEQ:
        raise Invalid(f"after must be an event's number, from 0, got {after}")
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"limit must be between 1 and {MAX_LIMIT}, got {limit}")
    with db.read() as session:
        job = find_within(session, owner, job_id)
        return rows.events_after(session, job.id, after, limit)


def states(db: Database, ids: Iterable[str]) -> dict[str, tuple[str, int]]:
    """State and last event number of each job in one query, for the watcher behind all waiting requests."""
    with db.read() as session:
        return rows.states(session, ids)


def find_within(session: Session, owner: str, job_id: str, *, lock: bool = False) -> Job:
    """The owner's job in the caller's transaction, locked if it is to be changed."""
    job = rows.find(session, owner, job_id, lock=lock) if is_id(job_id, "job") else None
    if job is None:
        raise NotFound(f"there is no job {job_id[:100]!r}")
    return job
