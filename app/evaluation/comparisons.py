"""Comparisons: several models on one dataset, asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.datasets.lineage import lineage_of
from app.evaluation import repository as rows
from app.evaluation import requests
from app.evaluation.requests import COMPARE, DEFAULT_LEVEL
from app.jobs import service as jobs
from app.models.objectives import WHOLE, Window
from app.platform.errors import Invalid
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.tables import Comparison, DatasetKind

LEAST_MODELS, MOST_MODELS = 2, 20


@dataclass(frozen=True)
class ComparisonRequest:
    """What a caller asked for."""

    models: Sequence[str]
    dataset_id: str
    windows: Sequence[Window] = (WHOLE,)
    level: float = DEFAULT_LEVEL


def check(
    session: Session, owner: str, request: ComparisonRequest, *, hold: bool = False
) -> tuple[requests.Judged, list[requests.Json]]:
    """Check everything; returns what is judged, and the windows. Raises as `find_judged`, which `hold` is for."""
    requests.check_level(request.level)
    windows = requests.check_windows(request.windows)
    if not LEAST_MODELS <= len(request.models) <= MOST_MODELS:
        detail = f"models must be {LEAST_MODELS} to {MOST_MODELS}, got {len(request.models)}"
        raise Invalid(detail, errors=[{"pointer": "/models", "detail": detail}])
    pointers = [f"/models/{number}" for number in range(len(request.models))]
    judged = requests.find_judged(
        session, owner, request.models, pointers, request.dataset_id, hold=hold
    )
    models, dataset = judged.models, judged.dataset
    if dataset.kind != DatasetKind.BIPARTITE:
        detail = (
            f"models are compared by their ROC curves, which those of kind {dataset.kind} lack: "
            "evaluate each of them"
        )
        faults = [{"pointer": "/dataset_id", "detail": detail}]
        raise Invalid(detail, code="wrong_kind", errors=faults)
    for number, model in enumerate(models):
        if model.id in [other.id for other in models[:number]]:
            detail = f"models must differ, {model.name}:{model.version} is there twice"
            raise Invalid(detail, errors=[{"pointer": pointers[number], "detail": detail}])
    return judged, windows


def submit(
    session: Session, settings: Settings, owner: str, request: ComparisonRequest
) -> Comparison:
    """Check, and write the comparison and its job into the caller's transaction."""
    judged, windows = check(session, owner, request, hold=True)
    models, dataset = judged.models, judged.dataset
    seen = [requests.seen_before(model, dataset) for model in models]
    comparison_id = new_id("cmp")
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=COMPARE,
        name=dataset.name,
        spec={"comparison_id": comparison_id, "dataset": lineage_of(dataset)},
        dataset_id=dataset.id,
    )
    return rows.insert_comparison(
        session,
        [{"model_id": model.id, "name": model.name, "version": model.version} for model in models],
        id=comparison_id,
        owner=owner,
        job_id=job.id,
        dataset_id=dataset.id,
        dataset_name=dataset.name,
        dataset_version=dataset.version,
        dataset_sha256=dataset.sha256,
        windows=windows,
        level=request.level,
        warnings=[warning for warning in seen if warning is not None],
    )
