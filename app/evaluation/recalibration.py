"""The job that fits a model's calibration again on a later dataset: scores the rows, and adds a new version."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from typing_extensions import TypedDict

from app.datasets.service import lineage_of
from app.datasets.tasks import find_to_read, lock_inputs, table_of
from app.evaluation import metrics
from app.evaluation.metrics import BipartiteMeasure, EvaluatedModel
from app.evaluation.service import Inputs, find_inputs, was_trained_on
from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.kinds import Claim, JobKind, Work
from app.jobs.progress import Callback
from app.models import calibrations
from app.models import repository as model_rows
from app.models import service as models
from app.models.calibrations import CalibrationMarks, CalibrationRecord
from app.models.protection import BREAK_GLASS, Approval, protected_aliases
from app.platform.audit import describe
from app.platform.blobs import Publisher
from app.platform.callers import check_model
from app.platform.documents import DatasetLineage, TableFile
from app.platform.errors import Conflict, invalid
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import DatasetKind, Job, ModelCalibration

CALIBRATE = "calibrate"
"""The kind of job."""


class CalibrationSpec(TypedDict):
    """The specification of a calibration job."""

    calibrates: str
    dataset: DatasetLineage
    seed: int
    marks: CalibrationMarks
    calibration_version: int | None
    """The calibration of the model when the job was submitted."""
    protected: Mapping[str, int]
    """The protected aliases of the model at that time, with their revisions: the change was permitted for these."""


class CalibrationPayload(Work):
    """The input of a calibration in the fit process."""

    table: TableFile
    model: EvaluatedModel
    seed: int


class CalibrationResult(Work):
    """The output of a calibration in the fit process."""

    calibration: CalibrationRecord


def check(
    session: Session,
    owner: str,
    ref: str,
    dataset_id: str,
    *,
    lock: bool = False,
) -> Inputs:
    """Check that the dataset can calibrate the model. Raises NotFound, Conflict or Invalid. `lock` locks both."""
    inputs = find_inputs(session, owner, [ref], [""], dataset_id, lock=lock)
    (model,), dataset = inputs.models, inputs.dataset
    check_model(model.name)
    name = f"{model.name}:{model.version}"
    if model.kind != DatasetKind.BIPARTITE:
        raise invalid("/dataset_id", f"{name}: {calibrations.why_none(model)}", code="wrong_kind")
    if was_trained_on(session, model, dataset):
        detail = (
            f"{name} was trained on rows of this dataset: a calibration must be fitted on rows that the "
            "model has not seen"
        )
        errors = [{"pointer": "/dataset_id", "detail": detail}]
        raise Conflict(detail, code="rows_seen", errors=errors)
    return inputs


def check_direct(
    session: Session, owner: str, ref: str, dataset_id: str, reason: str | None
) -> None:
    """Raise the errors of `submit` without approval."""
    (model,) = check(session, owner, ref, dataset_id).models
    calibrations.permit_change(session, owner, model, reason, None)


def submit(
    session: Session,
    settings: Settings,
    owner: str,
    ref: str,
    dataset_id: str,
    reason: str | None,
    author: str | None,
    approval: Approval | None = None,
) -> Job:
    """Create the job in the caller's transaction. Raises Conflict for a protected alias without an `approval`."""
    inputs = check(session, owner, ref, dataset_id, lock=True)
    (model,), dataset = inputs.models, inputs.dataset
    break_glass = calibrations.permit_change(session, owner, model, reason, approval)
    now = "none" if model.calibration_version is None else model.calibration_version
    describe(
        session,
        f"{model.name} v{model.version}: recalibration on {dataset.name} requested (calibration now: {now})"
        f"{BREAK_GLASS if break_glass else ''}",
    )
    spec: CalibrationSpec = {
        "calibrates": model.id,
        "dataset": lineage_of(dataset),
        "seed": model.seed,
        "marks": calibrations.marks_of(reason, author, approval, break_glass=break_glass),
        "calibration_version": model.calibration_version,
        "protected": protected_aliases(session, owner, model.id),
    }
    return jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=CALIBRATE,
        name=model.name,
        spec=spec,
        dataset_id=dataset.id,
    )


def prepare(
    session: Session, settings: Settings, claim: Claim, workdir: Path
) -> CalibrationPayload:
    spec = cast(CalibrationSpec, claim.spec)
    model = models.find_to_read(session, claim.owner, spec["calibrates"])
    dataset = find_to_read(session, claim.owner, claim.dataset_id)
    return {
        "workdir": str(workdir),
        "table": table_of(dataset),
        "model": metrics.model_of(session, model, dataset),
        "seed": spec["seed"],
    }


def run(payload: CalibrationPayload, callback: Callback) -> CalibrationResult:
    """Only computes, on the files that the payload names."""
    model = payload["model"]
    measure = BipartiteMeasure(metrics.load_ranker(model), payload["table"], model["features"])
    callback(1, 2, {})
    fitted = measure.calibrate(Path(payload["workdir"]), payload["seed"])
    callback(2, 2, {})
    return {"workdir": payload["workdir"], "calibration": fitted}


def publish(blobs: Publisher, claim: Claim, result: CalibrationResult) -> ModelCalibration:
    """The row lacks its version number."""
    spec = cast(CalibrationSpec, claim.spec)
    return calibrations.row_of(
        spec["calibrates"],
        result["calibration"],
        Path(result["workdir"]),
        version=0,
        job_id=claim.job_id,
        dataset=spec["dataset"],
        marks=spec["marks"],
    )


def complete(
    session: Session, claim: Claim, result: CalibrationResult, row: ModelCalibration
) -> None:
    """Serve the calibration as the model's next version."""
    queue.finish(session, claim, model_id=row.model_id)
    _check_unchanged(session, claim.owner, cast(CalibrationSpec, claim.spec), lock=True)
    calibrations.add(session, claim.owner, row)


def _before_retry(session: Session, job: Job) -> None:
    lock_inputs(session, job)
    _check_unchanged(session, job.owner, cast(CalibrationSpec, job.spec))


def _check_unchanged(
    session: Session, owner: str, spec: CalibrationSpec, *, lock: bool = False
) -> None:
    """Raise Conflict if a protected alias serves the model now without a permission for its revision and this
    calibration.

    When the job was submitted, the alias was not protected, or served another model.
    """
    model = model_rows.find(session, owner, spec["calibrates"], lock=lock)
    if model is None:
        return  # `calibrations.add` has the error
    session.refresh(model)
    name = f"{model.name}:{model.version}"
    for alias, revision in protected_aliases(session, owner, model.id).items():
        if spec["protected"].get(alias) != revision:
            raise Conflict(
                f"the recalibration of {name} was not approved for {alias} at revision {revision}: request it again",
                code="approval_required",
            )
        if spec["calibration_version"] != model.calibration_version:
            raise Conflict(
                f"the recalibration of {name} was approved for its calibration {spec['calibration_version']}, but it "
                f"is at {model.calibration_version}: request it again",
                code="approval_required",
            )


KIND = JobKind(
    name=CALIBRATE,
    changes_model=True,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete,
    before_retry=_before_retry,
)
