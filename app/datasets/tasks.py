"""The ingest job: from the dataset row to the reader and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy.orm import Session

from app.datasets import repository as rows
from app.jobs import queue
from app.platform.blobs import BlobStore, publish
from app.platform.database import Database
from app.platform.errors import Conflict
from app.platform.settings import Settings
from app.platform.sql import Json
from app.platform.tables import Dataset, DatasetStatus

if TYPE_CHECKING:
    from app.ingest.build import Callback


TABLES = "tables"
_DECLARED = (
    *("label", "positive", "weight", "group", "item"),
    *("categorical", "numeric", "drop", "missing", "strict"),
)


def prepare(
    db: Database, blobs: BlobStore, settings: Settings, claim: queue.Claim
) -> dict[str, Any]:
    """Gather what the reader needs to know about the upload."""
    dataset_id = claim.spec["dataset_id"]
    with db.read() as session:
        dataset = rows.find(session, claim.owner, dataset_id)
        parent = _find_parent(session, blobs, claim)
    if dataset is None or dataset.status != DatasetStatus.PROCESSING:
        raise Conflict(f"dataset {dataset_id} is not waiting to be read", code="dataset_deleted")
    return {
        "kind": claim.kind,
        "path": str(blobs.path(dataset.upload_key)),
        "content_type": dataset.content_type,
        "content_encoding": dataset.content_encoding,
        "dataset_kind": dataset.kind,
        "labels": None if dataset.labels is None else [entry["name"] for entry in dataset.labels],
        **declared(dataset),
        "dialect": dataset.dialect,
        "parent": parent,
        "limits": limits(settings),
        "workdir": str(blobs.staging_dir()),
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


def complete(db: Database, blobs: BlobStore, claim: queue.Claim, result: Mapping[str, Any]) -> None:
    """Publish the table, then write the dataset and the job's end in one transaction.

    May be called again with the same result when the database was away.
    """
    profile = orjson.loads(Path(result["workdir"], result["profile"]).read_bytes())
    key = publish(blobs, Path(result["workdir"]) / result["file"], TABLES, result["sha256"])
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
    with db.write() as session:
        queue.finish(session, claim)
        values = {name: result[name] for name in found}
        if not rows.mark_ready(
            session, claim.owner, dataset_id, table_key=key, table_bytes=blobs.size(key), **values
        ):
            raise Conflict(
                f"dataset {dataset_id} is not waiting to be read", code="dataset_deleted"
            )
        rows.add_profile(session, dataset_id, profile)
