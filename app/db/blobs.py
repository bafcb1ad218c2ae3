"""Which blobs are named by a row. Only the sweeper asks; it spans owners, for equal bytes are one blob."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import CompoundSelect, func, literal, select, union
from sqlalchemy.orm import Session

from app.db import parts
from app.db.model_tables import Model
from app.db.tables import Dataset, DatasetPairs, Job, JobState
from app.db.time import db_now
from app.db.validation_tables import ModelOutOfFold


def named(session: Session, keys: Sequence[str]) -> set[str]:
    """Those of the keys that a dataset, a model or the part of a job that goes on names."""
    # The inverse of BlobStore.adopt: kind/ab/abcdef…
    artifact = literal("artifacts/").concat(
        func.substr(Model.artifact_sha256, 1, 2).concat("/").concat(Model.artifact_sha256)
    )
    statement: CompoundSelect[str | None] = union(
        select(Dataset.upload_key).where(Dataset.upload_key.in_(keys)),
        select(Dataset.table_key).where(Dataset.table_key.in_(keys)),
        select(DatasetPairs.upload_key).where(DatasetPairs.upload_key.in_(keys)),
        select(DatasetPairs.table_key).where(DatasetPairs.table_key.in_(keys)),
        select(artifact).where(artifact.in_(keys)),
        select(ModelOutOfFold.blob_key).where(ModelOutOfFold.blob_key.in_(keys)),
    )
    found = {key for key in session.scalars(statement) if key is not None}
    if any(key.startswith("parts/") for key in keys):
        in_use = parts.results_in_use(session)
        found |= {key for result in in_use for key in result["files"].values()}.intersection(keys)
    return found


def runs_since(session: Session, age_seconds: float) -> bool:
    """Whether a job that started longer ago than that still runs, whose staging folder may be as old."""
    started = select(func.min(Job.started_at)).where(Job.state == JobState.RUNNING)
    return bool(session.scalar(select(started.scalar_subquery() < db_now() - age_seconds)))
