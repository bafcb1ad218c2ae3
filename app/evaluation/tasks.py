"""The job that evaluates: a model's artifact and a table in, metrics, curve and drift out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.datasets.tasks import find_to_read, lock_inputs, table_of
from app.evaluation import metrics
from app.evaluation.metrics import MEASURES, BipartiteMeasure, Overlap
from app.evaluation.service import EVALUATE, EVALUATIONS
from app.jobs.execution import complete_output
from app.jobs.kinds import Claim, JobKind, Made
from app.jobs.progress import Callback
from app.models import service as models
from app.models.objectives import Window
from app.platform.blobs import BlobStore
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.platform.tables import EvaluationCurve

_CURVE_FILE = "evaluation.curve"


def prepare(
    session: Session, blobs: BlobStore, settings: Settings, claim: Claim, workdir: Path
) -> Json:
    """Gather where artifact and table lie, and what the model's validation has said."""
    evaluation = EVALUATIONS.find_to_make(session, claim)
    model = models.find_to_read(session, claim.owner, evaluation.model_id)
    dataset = find_to_read(session, claim.owner, claim.dataset_id)
    described = metrics.model_of(session, model, dataset, blobs)
    remembered: Json | None = None
    notes: list[str] = []
    if claim.spec["independent"]:
        remembered, notes = metrics.remember_validation(session, model, workdir)
    point = models.point_of_objective(session, model)
    return {
        "dataset_kind": dataset.kind,
        "table": table_of(dataset, blobs),
        "model": described,
        "windows": [[window["fpr_min"], window["fpr_max"]] for window in evaluation.windows],
        "level": evaluation.level,
        "threshold": None if point is None else point.threshold,
        "validation": remembered,
        "warnings": [*evaluation.warnings, *notes],
    }


def run(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Score and measure; pure computing on the files that the payload names."""
    workdir = Path(payload["workdir"])
    model = payload["model"]
    measured = MEASURES[payload["dataset_kind"]]
    measure = measured(metrics.load_ranker(model), payload["table"], model["features"])
    callback(1, 2, {})
    windows = [(fpr_min, fpr_max) for fpr_min, fpr_max in payload["windows"]]
    found = measure.metrics(windows, payload["level"], payload["threshold"])
    curve = None
    if isinstance(measure, BipartiteMeasure):
        curve = _CURVE_FILE
        models.write_curve(workdir / curve, measure.curve)
    drifted = None
    if (before := payload["validation"]) is not None:
        areas = measure.areas(_windows_of(before), before["level"])
        scored = None
        if isinstance(measure, BipartiteMeasure):
            scored = metrics.ScoredRows(measure.curve, measure.effective, measure.rows)
        drifted = metrics.measure_drift(before, areas, workdir, scored)
    callback(2, 2, {})
    return {
        "workdir": str(workdir),
        "metrics": found,
        "drift": drifted,
        "curve": curve,
        "warnings": [
            *payload["warnings"],
            *measure.notes,
            *Overlap(payload["table"]["path"]).notes([model]),
        ],
    }


def _windows_of(before: Mapping[str, Any]) -> list[Window]:
    found = [(area["fpr_min"], area["fpr_max"]) for area in before["areas"] if "fpr_min" in area]
    return sorted(set(found))


def publish(blobs: BlobStore, claim: Claim, result: Mapping[str, Any]) -> Made:
    """Pack the curve, where there is one."""
    columns = {name: result[name] for name in ("metrics", "drift", "warnings")}
    curve = []
    if result["curve"]:
        packed = models.curve_columns(Path(result["workdir"]) / result["curve"])
        curve = [EvaluationCurve(evaluation_id=claim.spec[EVALUATIONS.key], **packed)]
    return Made(columns, curve, messages=result["warnings"])


KIND = JobKind(
    name=EVALUATE,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete_output,
    output=EVALUATIONS,
    before_retry=lock_inputs,
)
