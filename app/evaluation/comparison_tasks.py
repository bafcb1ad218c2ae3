"""The job that compares: several models' artifacts and a table in, differences with intervals and p-values out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from app.datasets.tasks import find_to_read, lock_inputs, table_of
from app.evaluation.metrics import Overlap, load_ranker, model_of, read_rows
from app.evaluation.service import COMPARE, COMPARISONS
from app.jobs.execution import complete_output
from app.jobs.kinds import Claim, JobKind, Made
from app.jobs.progress import Callback
from app.models import service as model_service
from app.platform.blobs import BlobStore
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.training.interpretation import score

if TYPE_CHECKING:
    from core import metrics


def prepare(
    session: Session, blobs: BlobStore, settings: Settings, claim: Claim, workdir: Path
) -> Json:
    """Gather where the artifacts and the table lie."""
    comparison = COMPARISONS.find_to_make(session, claim)
    dataset = find_to_read(session, claim.owner, claim.dataset_id)
    models = [
        model_service.find_to_read(session, claim.owner, compared.model_id)
        for compared in comparison.models
    ]
    described = [
        {"model_id": model.id, **model_of(session, model, dataset, blobs)} for model in models
    ]
    return {
        "table": table_of(dataset, blobs),
        "models": described,
        "windows": [[window["fpr_min"], window["fpr_max"]] for window in comparison.windows],
        "level": comparison.level,
        "warnings": comparison.warnings,
    }


def run(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Score with each model and compare; pure computing on the files that the payload names.

    The table is read once for all models that take the same features in the same order.
    """
    from core import metrics

    models, scores = payload["models"], []
    features: list[str] | None = None
    for number, model in enumerate(models, start=1):
        if model["features"] != features:
            features = model["features"]
            table = read_rows(payload["table"], features)
        scores.append(score(load_ranker(model), table))
        callback(number, len(models), {})
    names = [model["model_id"] for model in models]
    found = metrics.compare(
        table.y,
        scores,
        [(fpr_min, fpr_max) for fpr_min, fpr_max in payload["windows"]],
        level=payload["level"],
        sample_weight=table.weight,
        group=table.group,
        names=names,
    )
    present = np.ones(len(table.y), dtype=bool) if table.weight is None else table.weight > 0
    positives = int(table.y[present].sum())
    return {
        "workdir": payload["workdir"],
        "warnings": [*payload["warnings"], *Overlap(payload["table"]["path"]).notes(models)],
        "result": {
            "positives": positives,
            "negatives": int(present.sum()) - positives,
            "groups": None if table.group is None else len(np.unique(table.group[present])),
            "n_tests": found.n_tests,
            "p_value": found.joint_p_value,
            "windows": [_window(window, names) for window in found.windows],
        },
    }


def _window(window: metrics.WindowComparison, names: list[str]) -> Json:
    return {
        "fpr_min": window.fpr_min,
        "fpr_max": window.fpr_max,
        "values": [
            {"model_id": name, **value._asdict()}
            for name, value in zip(names, window.values, strict=True)
        ],
        "differences": [vars(difference) for difference in window.differences],
        "p_value": window.joint_p_value,
    }


def publish(blobs: BlobStore, claim: Claim, result: Mapping[str, Any]) -> Made:
    """Return what was found; there are no files."""
    columns = {name: result[name] for name in ("result", "warnings")}
    return Made(columns, messages=result["warnings"])


KIND = JobKind(
    name=COMPARE,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete_output,
    output=COMPARISONS,
    before_retry=lock_inputs,
)
