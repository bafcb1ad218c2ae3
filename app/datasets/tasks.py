"""The ingest job: from the dataset row to the reader and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from app.datasets import repository as rows
from app.jobs import queue
from app.jobs.resources import check_owned
from app.platform.blobs import BlobStore
from app.platform.errors import Conflict
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.platform.tables import Dataset, DatasetPairs, DatasetStatus, Job

if TYPE_CHECKING:
    from app.ingest.build import Callback


TABLES = "tables"
_DECLARED = (
    *("label", "positive", "weight", "group", "item"),
    *("categorical", "numeric", "drop", "missing", "strict"),
)


def prepare(
    session: Session, blobs: BlobStore, settings: Settings, claim: queue.Claim, workdir: Path
) -> Json:
    """Gather what the reader needs to know about the upload."""
    dataset_id = claim.spec["dataset_id"]
    dataset = rows.find(session, claim.owner, dataset_id)
    parent = _find_parent(session, blobs, claim)
    waiting = dataset is not None and dataset.status == DatasetStatus.PROCESSING
    if dataset is None or not waiting or dataset.job_id != claim.job_id:
        raise Conflict(f"dataset {dataset_id} is not waiting to be read", code="dataset_deleted")
    return {
        "path": str(blobs.path(dataset.upload_key)),
        "content_type": dataset.content_type,
        "content_encoding": dataset.content_encoding,
        "dataset_kind": dataset.kind,
        "labels": None if dataset.labels is None else [entry["name"] for entry in dataset.labels],
        **declared(dataset),
        "dialect": dataset.dialect,
        "parent": parent,
        "limits": limits(settings),
    }


def declared(table: object) -> Json:
    """What is said of a table's columns by a dataset's row, or by the caller's description; but for several labels."""
    return {name: getattr(table, name) for name in _DECLARED}


def _find_parent(session: Session, blobs: BlobStore, claim: queue.Claim) -> Json | None:
    """What rows are to be added to; None for a table of its own."""
    if (parent_id := claim.spec.get("append_to")) is None:
        return None
    parent = rows.find(session, claim.owner, parent_id)
    if parent is None:
        raise Conflict(
            f"dataset {parent_id}, which rows were to be added to, was deleted",
            code="dataset_deleted",
        )
    return parent_of(blobs, parent)


def parent_of(blobs: BlobStore, dataset: Dataset) -> Json:
    """What the reader needs to know about a ready dataset that rows are to be added to."""
    assert dataset.table_key is not None
    labels = dataset.labels or [
        {"name": dataset.label, "negative": dataset.negative, "positive": dataset.positive}
    ]
    return {
        "path": str(blobs.path(dataset.table_key)),
        "rows": dataset.rows,
        "columns": [
            {member: column[member] for member in ("name", "type", "role")}
            for column in dataset.columns
        ],
        "pairs": {
            label["name"]: [label["negative"], label["positive"]]
            for label in labels
            if label["name"] is not None
        },
    }


def limits(settings: Settings) -> dict[str, int]:
    """Return the bounds on a table, as the reader takes them."""
    return {
        "rows": settings.max_rows,
        "columns": settings.max_columns,
        "bytes": settings.max_upload_bytes,
        "categories": settings.max_categories,
        "category_length": settings.max_category_length,
    }


def run(payload: Mapping[str, Any], callback: Callback) -> dict[str, Any]:
    """Read the upload and write the typed table."""
    from app.ingest.build import append, ingest

    read = ingest if payload["parent"] is None else append
    return read(payload, callback) | {"workdir": payload["workdir"]}


def publish(blobs: BlobStore, claim: queue.Claim, result: Mapping[str, Any]) -> Json:
    """Publish the table, and read its profile."""
    workdir = Path(result["workdir"])
    profile = orjson.loads((workdir / result["profile"]).read_bytes())
    key = blobs.publish(workdir / result["file"], TABLES, result["sha256"])
    return {"profile": profile, "table_key": key, "table_bytes": blobs.size(key)}


def complete(
    session: Session, claim: queue.Claim, result: Mapping[str, Any], published: Json
) -> None:
    """Write the dataset and the job's end."""
    found = (
        "rows",
        "positives",
        "negatives",
        "label",
        "labels",
        "item",
        "positive",
        "negative",
        "columns",
        "warnings",
    )
    dataset_id = claim.spec["dataset_id"]
    queue.finish(session, claim)
    values = {name: result[name] for name in found}
    values |= {name: published[name] for name in ("table_key", "table_bytes")}
    if not rows.mark_ready(session, claim.owner, dataset_id, claim.job_id, **values):
        raise Conflict(f"dataset {dataset_id} is not waiting to be read", code="dataset_deleted")
    rows.add_profile(session, dataset_id, published["profile"])


def find_to_read(session: Session, owner: str, dataset_id: str | None) -> Dataset:
    """The dataset that a job reads: ready when that was asked for, and so ever since, unless it was deleted."""
    dataset = rows.find(session, owner, dataset_id or "")
    if dataset is None:
        raise Conflict(
            f"dataset {dataset_id} was deleted before the job ran", code="dataset_deleted"
        )
    return dataset


def table_of(dataset: Dataset, blobs: BlobStore) -> Json:
    """Where a dataset's table lies, and which column is what."""
    return {
        "path": str(blobs.path(dataset.table_key or "")),
        "pairs": str(blobs.path(dataset.pairs.table_key or "")) if dataset.pairs else None,
        "label": dataset.label,
        "labels": [label["name"] for label in dataset.labels or []],
        "weight": dataset.weight,
        "group": dataset.group,
    }


def ended(session: Session, job: Job, error: Json | None) -> None:
    """Mark the upload of a job that will never have read it: nobody must wait for it."""
    rows.abandon(session, Dataset, job.id, upload_errors(job, error))


def upload_errors(job: Job, error: Json | None) -> list[Json]:
    """What an upload shows as its errors when its job ended with that problem, or was cancelled."""
    if error is None:
        return [{"detail": f"the upload's job was {job.state}"}]
    return error.get("errors") or [{"detail": error.get("detail")}]


def retry(session: Session, old: Job, again: Callable[[], Job]) -> Job:
    """Have another job read the upload; raises Conflict unless it is invalid and still this job's to read, and for
    rows of a version if a newer one has come.
    """
    parent_id = old.spec.get("append_to")
    dataset, *parents = hold_inputs(session, old, parent_id, to_change=True)
    for parent in parents:
        check_newest(session, parent)
    return read_again(session, old, dataset, dataset, again)


def hold_inputs(
    session: Session, job: Job, *more: str | None, to_change: bool = False
) -> list[Dataset]:
    """Lock the job's dataset and these others for another job that reads them; returns those that there are to read.

    Raises Conflict where one was deleted.
    """
    ids = [id_ for id_ in (job.dataset_id, *more) if id_ is not None]
    rows.hold_all(session, job.owner, ids, to_change=to_change)
    found = []
    for id_ in ids:
        dataset = rows.find_alone(session, job.owner, id_)
        if dataset is None:
            raise Conflict(
                f"a job can be retried while its dataset exists; {id_} was deleted",
                code="dataset_deleted",
            )
        found.append(dataset)
    return found


def read_again(
    session: Session,
    old: Job,
    dataset: Dataset,
    upload: Dataset | DatasetPairs,
    again: Callable[[], Job],
) -> Job:
    """Have another job read the upload of a dataset, its table or its pairs; raises Conflict unless it is invalid and
    belongs to the old job.
    """
    check_owned(session, old, f"the upload of {dataset.id}", upload.job_id)
    if upload.status != DatasetStatus.INVALID:
        raise Conflict(
            f"an upload can be read again once it is invalid; that of {dataset.id} is {upload.status}",
            code="job_not_retryable",
        )
    job = again()
    upload.status, upload.errors, upload.job_id = DatasetStatus.PROCESSING, [], job.id
    return job


def check_newest(session: Session, parent: Dataset) -> None:
    """Raise Conflict unless rows may be added to this version: no other that is not invalid came after it."""
    newest = rows.newest_version(session, parent.owner, parent.series_id)
    if newest is None or newest.id == parent.id:
        return
    raise Conflict(
        f"rows are added to the newest version: {parent.id} is version {parent.version}, and version "
        f"{newest.version} ({newest.id}) is {newest.status}",
        code="not_the_newest_version",
    )
