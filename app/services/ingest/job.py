"""The ingest job: from the dataset row to the reader and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from app.db import datasets as rows
from app.db.session import Database
from app.db.tables import DatasetStatus
from app.errors import Conflict
from app.infra.blobs import BlobStore
from app.infra.settings import Settings
from app.services import queue
from app.services.ingest.build import Callback, ingest
from app.services.staging import publish

TABLES = "tables"


def prepare(
    db: Database, blobs: BlobStore, settings: Settings, claim: queue.Claim
) -> dict[str, Any]:
    """Gather what the reader needs to know about the upload."""
    dataset_id = claim.spec["dataset_id"]
    with db.read() as session:
        dataset = rows.find(session, claim.owner, dataset_id)
    if dataset is None or dataset.status != DatasetStatus.PROCESSING:
        raise Conflict(f"dataset {dataset_id} is not waiting to be read", code="dataset_deleted")
    return {
        "kind": claim.kind,
        "path": str(blobs.path(dataset.upload_key)),
        "content_type": dataset.content_type,
        "content_encoding": dataset.content_encoding,
        "dataset_kind": dataset.kind,
        "label": dataset.label,
        "positive": dataset.positive,
        "labels": None if dataset.labels is None else [entry["name"] for entry in dataset.labels],
        "item": dataset.item,
        "weight": dataset.weight,
        "group": dataset.group,
        "categorical": dataset.categorical,
        "drop": dataset.drop,
        "missing": dataset.missing,
        "dialect": dataset.dialect,
        "limits": limits(settings),
        "workdir": str(blobs.staging_dir()),
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
    return ingest(payload, callback) | {"workdir": payload["workdir"]}


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
