"""The job that reads a dataset's pairs: from their row to the reader and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.datasets import repository as rows
from app.datasets.tasks import TABLES, hold_inputs, limits, read_again, upload_errors
from app.jobs import queue
from app.platform.blobs import BlobStore
from app.platform.errors import Conflict
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.platform.tables import DatasetPairs, DatasetStatus, Job

if TYPE_CHECKING:
    from app.ingest.build import Callback


def prepare(
    session: Session, blobs: BlobStore, settings: Settings, claim: queue.Claim, workdir: Path
) -> Json:
    """Gather what the reader needs to know about the upload and the table of items."""
    dataset_id = claim.spec["dataset_id"]
    dataset = rows.find(session, claim.owner, dataset_id)
    pairs = rows.find_pairs(session, dataset_id)
    own = pairs is not None and pairs.job_id == claim.job_id
    waiting = pairs is not None and pairs.status == DatasetStatus.PROCESSING
    if dataset is None or pairs is None or dataset.table_key is None or not (own and waiting):
        raise _not_waiting(dataset_id)
    return {
        "path": str(blobs.path(pairs.upload_key)),
        "content_type": pairs.content_type,
        "content_encoding": pairs.content_encoding,
        "items": {"path": str(blobs.path(dataset.table_key)), "column": dataset.item},
        "limits": limits(settings),
    }


def run(payload: Mapping[str, Any], callback: Callback) -> dict[str, Any]:
    """Read the upload and write the pairs by row number."""
    from app.ingest.pairs import ingest_pairs

    return ingest_pairs(payload, callback) | {"workdir": payload["workdir"]}


def publish(blobs: BlobStore, claim: queue.Claim, result: Mapping[str, Any]) -> Json:
    """Publish the pairs."""
    key = blobs.publish(Path(result["workdir"]) / result["file"], TABLES, result["sha256"])
    return {"table_key": key, "table_bytes": blobs.size(key)}


def complete(
    session: Session, claim: queue.Claim, result: Mapping[str, Any], published: Json
) -> None:
    """Write the pairs' row and the job's end."""
    queue.finish(session, claim)
    values = {name: result[name] for name in ("pairs", "items", "weighted")}
    if not rows.mark_pairs_ready(session, claim.job_id, **values, **published):
        raise _not_waiting(claim.spec["dataset_id"])


def ended(session: Session, job: Job, error: Json | None) -> None:
    """Mark the pairs of a job that will never have read them: nobody must wait for them."""
    rows.abandon(session, DatasetPairs, job.id, upload_errors(job, error))


def retry(session: Session, old: Job, again: Callable[[], Job]) -> Job:
    """Have another job read the pairs; raises Conflict unless they are invalid and still this job's to read."""
    (dataset,) = hold_inputs(session, old, to_change=True)
    pairs = rows.find_pairs(session, dataset.id)
    if pairs is None:
        raise _not_waiting(dataset.id)
    return read_again(session, old, dataset, pairs, again)


def _not_waiting(dataset_id: str) -> Conflict:
    return Conflict(
        f"dataset {dataset_id} has no pairs that wait to be read", code="dataset_deleted"
    )
