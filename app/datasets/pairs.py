"""The pairs of a dataset of kind `preferences`: which item is better than which."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from app.datasets import repository as dataset_rows
from app.datasets import repository as rows
from app.datasets import service as datasets
from app.jobs import service as jobs
from app.platform.database import Database
from app.platform.errors import Conflict, Invalid
from app.platform.settings import Settings
from app.platform.tables import Dataset, DatasetKind, DatasetStatus


def refuse_fields(given: Mapping[str, str]) -> None:
    """Raise Invalid for any field beside the pairs: their columns are named better, worse and weight."""
    if given:
        detail = (
            "a list of pairs takes no fields: its columns are better, worse and weight, "
            f"got {', '.join(given)[:100]}"
        )
        raise Invalid(
            detail, errors=[{"parameter": field[:100], "detail": detail} for field in given]
        )


def check_open(db: Database, owner: str, dataset_id: str) -> None:
    """Raise NotFound or Conflict unless the dataset would take pairs now: asked before any is sent."""
    with db.read() as session:
        _check_open(session, owner, datasets.find(session, owner, dataset_id))


def accept(
    session: Session, settings: Settings, owner: str, dataset_id: str, upload: datasets.Upload
) -> Dataset:
    """Write the pairs, in place of any before, and the job that will read them into the caller's transaction."""
    dataset = datasets.find(session, owner, dataset_id, lock=True)
    _check_open(session, owner, dataset)
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=jobs.INGEST_PAIRS,
        name=dataset.name,
        spec={"dataset_id": dataset.id},
        dataset_id=dataset.id,
        adds_bytes=upload.size,
    )
    rows.replace(
        session,
        dataset.id,
        job_id=job.id,
        content_type=upload.format.content_type,
        content_encoding=upload.format.content_encoding,
        upload_key=upload.key,
        bytes=upload.size,
        sha256=upload.sha256,
    )
    session.expire(dataset, ["pairs"])
    return dataset


def _check_open(session: Session, owner: str, dataset: Dataset) -> None:
    if dataset.kind != DatasetKind.PREFERENCES:
        raise Conflict(
            f"pairs belong to datasets of kind {DatasetKind.PREFERENCES}, "
            f"{dataset.id} is of kind {dataset.kind}",
            code="wrong_kind",
        )
    if dataset.status != DatasetStatus.READY:
        raise Conflict(
            f"dataset {dataset.id} must be ready to take pairs, it is {dataset.status}",
            code="dataset_not_ready",
        )
    busy = dataset_rows.unfinished_jobs(session, owner, dataset.id)
    if busy:
        raise Conflict(
            f"dataset {dataset.id} is in use by {len(busy)} unfinished jobs: {', '.join(busy[:5])}",
            code="dataset_in_use",
        )
