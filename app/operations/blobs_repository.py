"""Which blobs are named by a row. It spans owners, for equal bytes are one blob."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import CompoundSelect, func, literal, select, union
from sqlalchemy.orm import Session

from app.jobs import child_jobs_repository as parts
from app.platform.sql import db_now
from app.platform.tables import (
    FINAL_STATES,
    BatchScore,
    Dataset,
    DatasetPairs,
    Job,
    JobState,
    Model,
    ModelOutOfFold,
)

# The inverse of BlobStore.adopt: kind/ab/abcdef…
_ARTIFACT = literal("artifacts/").concat(
    func.substr(Model.artifact_sha256, 1, 2).concat("/").concat(Model.artifact_sha256)
)


class Namer(NamedTuple):
    """A column whose rows name blobs: what such a row is called, its id, and the key."""

    what: str
    id: Any
    key: Any


NAMERS = (
    Namer("upload of dataset", Dataset.id, Dataset.upload_key),
    Namer("table of dataset", Dataset.id, Dataset.table_key),
    Namer("uploaded pairs of dataset", DatasetPairs.dataset_id, DatasetPairs.upload_key),
    Namer("pairs of dataset", DatasetPairs.dataset_id, DatasetPairs.table_key),
    Namer("artifact of model", Model.id, _ARTIFACT),
    Namer("out-of-fold scores of model", ModelOutOfFold.model_id, ModelOutOfFold.blob_key),
    Namer("upload of batch scores", BatchScore.id, BatchScore.upload_key),
    Namer("batch scores", BatchScore.id, BatchScore.result_key),
)
"""Every column that names blobs, but for the results of parts, and checkpoints: a job can do without. What is missing
here is swept, and not backed up."""


def named(session: Session, keys: Sequence[str]) -> set[str]:
    """Those of the keys that a row of `NAMERS`, or a job or part that goes on, names."""
    statement: CompoundSelect[Any] = union(
        *(select(namer.key).where(namer.key.in_(keys)) for namer in NAMERS)
    )
    found = {key for key in session.scalars(statement) if key is not None}
    if any(key.startswith("parts/") for key in keys):
        found |= {key for _, key in of_parts(session)}.intersection(keys)
    if any(key.startswith("checkpoints/") for key in keys):
        checkpoints = select(Job.checkpoint_key).where(
            Job.checkpoint_key.in_(keys),
            Job.state.not_in(FINAL_STATES),  # a worker of an earlier version clears nothing
        )
        found |= {key for key in session.scalars(checkpoints) if key is not None}
    return found


def page(session: Session, namer: Namer, after: str, limit: int) -> Sequence[tuple[str, str]]:
    """So many rows that name a blob, behind the id `after` and in the order of ids: (id, key)."""
    statement = (
        select(namer.id, namer.key)
        .where(namer.id > after, namer.key.is_not(None))
        .order_by(namer.id)
        .limit(limit)
    )
    return [(id_, key) for id_, key in session.execute(statement)]


def of_parts(session: Session) -> Sequence[tuple[str, str]]:
    """The files that parts brought back for jobs that have yet to end: (id of the part, key)."""
    return [
        (part_id, key)
        for part_id, result in parts.results_in_use(session)
        for key in result["files"].values()
    ]


def runs_since(session: Session, age_seconds: float) -> bool:
    """Whether a job that started longer ago than that still runs, whose staging folder may be as old."""
    started = select(func.min(Job.started_at)).where(Job.state == JobState.RUNNING)
    return bool(session.scalar(select(started.scalar_subquery() < db_now() - age_seconds)))
