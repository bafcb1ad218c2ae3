"""The files that a job reads, as they were sent: they are deleted when the job ends, so that it cannot be retried."""

from __future__ import annotations

from app.jobs import repository
from app.platform.blobs import Blob
from app.platform.errors import Conflict
from app.platform.sql import Json, Session
from app.platform.tables import Job, JobUpload


def add(
    session: Session,
    job: Job,
    part: str,
    blob: Blob,
    content_type: str,
    content_encoding: str | None = None,
) -> None:
    """Add a file to a new job; `part` is the job's name for it."""
    session.add(
        JobUpload(
            job_id=job.id,
            part=part,
            owner=job.owner,
            content_type=content_type,
            content_encoding=content_encoding,
            upload_key=blob.key,
            upload_bytes=blob.bytes,
        )
    )
    session.flush()


def find(session: Session, owner: str, job_id: str, part: str) -> JobUpload:
    """Raises Conflict if the job has ended."""
    found = repository.find_upload(session, owner, job_id, part)
    if found is None:
        raise _gone(job_id)
    return found


def delete(session: Session, owner: str, job_id: str) -> None:
    repository.delete_uploads(session, owner, job_id)


def refuse_retry(session: Session, old: Job) -> None:
    """Raise Conflict: the `before_retry` of a job that reads such files."""
    raise _gone(old.id)


def delete_at_end(session: Session, job: Job, error: Json | None) -> None:
    """The `on_end` of a job that reads such files."""
    delete(session, job.owner, job.id)


def _gone(job_id: str) -> Conflict:
    return Conflict(
        f"what {job_id} was to read was deleted when the job ended: send it again",
        code="upload_deleted",
    )
