"""The job that measures the importance of a model's features if the budget of its training had no time for it.

It is queued in the transaction that writes the model. It reads the same rows and draws the same samples, so its values
equal those that the training would have measured.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from app.datasets.tasks import lock_inputs
from app.jobs import queue
from app.jobs.kinds import Claim, JobKind, Work, conflict_with_newer_job
from app.jobs.progress import Callback
from app.jobs.service import IMPORTANCE
from app.models import repository as model_repository
from app.models.artifacts import load_ranker
from app.models.service import find_to_read
from app.platform.blobs import BlobKey, Publisher
from app.platform.errors import Conflict
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import Job, ModelImportance
from app.training import interpretation, tasks
from app.training.plan import SERVED
from app.training.progress import MEASURING, Reporter
from app.training.records import ImportanceRecord, ImportanceSpec, TrainPayload


class ImportancePayload(TrainPayload):
    artifact: str
    artifact_sha256: str


class ImportanceResult(Work):
    """`features` are the names."""

    features: list[str]
    importance: ImportanceRecord | None


def _spec_of(claim: Claim) -> ImportanceSpec:
    return cast(ImportanceSpec, claim.spec)


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> ImportancePayload:
    spec = _spec_of(claim)
    model = find_to_read(session, claim.owner, spec["importance_of"])
    training = replace(claim, spec=dict(spec["training"]))
    payload = tasks.prepare(session, settings, training, workdir)
    return {
        **payload,
        "artifact": BlobKey(model.artifact_key),
        "artifact_sha256": model.artifact_sha256,
    }


def run(payload: ImportancePayload, callback: Callback) -> ImportanceResult:
    """Only computes, on the files that the payload names."""
    from app.training.fitting import FitContext

    seed, reporter = payload["spec"]["seed"], Reporter(payload["spec"], callback)
    context = FitContext(payload, reporter)
    split_data = context.split_data(SERVED)
    sample = split_data.sample("train", seed)
    assert sample is not None
    reporter.enter(MEASURING)
    ranker, _ = load_ranker(Path(payload["artifact"]), payload["artifact_sha256"])
    measured = interpretation.measure(
        ranker, "train", interpretation.as_scored(sample, ranker), split_data.evaluation_rows, seed
    )
    return {"workdir": payload["workdir"], "features": context.names, "importance": measured}


def publish(blobs: Publisher, claim: Claim, result: ImportanceResult) -> ModelImportance | None:
    """Return None if the ranker has no importance."""
    if result["importance"] is None:
        return None
    return tasks.row_of_importance(
        _spec_of(claim)["importance_of"], result["importance"], result["features"]
    )


def complete(
    session: Session, claim: Claim, result: ImportanceResult, row: ModelImportance | None
) -> None:
    """Write the importance. Raises Conflict if the model was deleted."""
    model_id = _spec_of(claim)["importance_of"]
    if model_repository.find(session, claim.owner, model_id, lock=True) is None:
        raise Conflict(f"model {model_id} was deleted before the job ended", code="model_deleted")
    queue.finish(session, claim, model_id=model_id)
    if row is not None:
        session.merge(row)


def _lock_inputs(session: Session, old: Job) -> None:
    """Lock inputs for a retry. Raises Conflict if one was deleted, or if the importance exists or has another job."""
    validation = old.spec["training"].get("validation") or {}
    lock_inputs(session, old, validation.get("dataset_id"))
    model_id = old.spec["importance_of"]
    model = model_repository.find(session, old.owner, model_id, lock=True)
    if model is None:
        raise Conflict(
            f"a job can be retried only while its model exists, but {model_id} was deleted",
            code="model_deleted",
        )
    if (current := model.importance_job_id) is not None and current != old.id:
        raise conflict_with_newer_job(
            session, old.owner, f"the importance of model {model_id}", current
        )
    if model_repository.find_importance(session, model_id) is not None:
        raise Conflict(
            f"the importance of model {model_id} has already been measured",
            code="job_not_retryable",
        )


def _name_in_model(session: Session, job: Job) -> None:
    """Store the job that now measures the importance; `_lock_inputs` has locked the row."""
    model = find_to_read(session, job.owner, job.spec["importance_of"])
    model.importance_job_id = job.id


KIND = JobKind(
    name=IMPORTANCE,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete,
    before_retry=_lock_inputs,
    after_retry=_name_in_model,
)
