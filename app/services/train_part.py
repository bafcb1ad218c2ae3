"""A part of a training job, done as a job of its own: one fit, of which files and small JSON go back to the parent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.db.session import Database
from app.infra.blobs import BlobStore
from app.infra.settings import Settings
from app.services import parts, queue, training
from app.services.staging import publish

TRAIN_PART = "train_part"
PARTS = "parts"

Callback = Callable[[int, int, Mapping[str, float]], None]
Json = dict[str, Any]


def prepare(db: Database, blobs: BlobStore, settings: Settings, claim: queue.Claim) -> Json:
    """Gather what the fit needs to know: the parent's payload, and which part of it this is."""
    parent = replace(claim, spec=claim.spec["parent"])
    payload = training.prepare(db, blobs, settings, parent)
    return payload | {"kind": claim.kind, "part": claim.spec["part"]}


def run(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Fit; pure computing on the files that the payload names."""
    result = training.run_part(payload, callback)
    files = {
        name: {"path": path, "sha256": _sha256(path)} for name, path in result["files"].items()
    }
    return {"result": result, "files": files}


def _sha256(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def complete(db: Database, blobs: BlobStore, claim: queue.Claim, result: Mapping[str, Any]) -> None:
    """Publish the files, then end the part; its parent goes on if it was the last.

    May be called again with the same result when the database was away.
    """
    keys = {
        name: publish(blobs, Path(file["path"]), PARTS, file["sha256"])
        for name, file in result["files"].items()
    }
    with db.write() as session:
        parts.finish(session, claim, result["result"], keys)
