"""Evaluations: how good a model is on a dataset, asked for, found, listed, deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from app.datasets.lineage import lineage_of
from app.evaluation import repository as rows
from app.evaluation import requests
from app.evaluation import service as judgements
from app.evaluation.requests import DEFAULT_LEVEL, EVALUATE
from app.jobs import service as jobs
from app.models.objectives import Window
from app.models.service import curve_of
from app.platform.database import Database
from app.platform.errors import NotFound
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.tables import DatasetKind, Evaluation
from app.training.bipartite import windows_of

if TYPE_CHECKING:
    from core.metrics import ClassTotals, RocCurve


@dataclass(frozen=True)
class EvaluationRequest:
    """What a caller asked for; without windows those that the model itself is reported in."""

    model: str
    dataset_id: str
    windows: Sequence[Window] | None = None
    level: float = DEFAULT_LEVEL


def check(
    session: Session, owner: str, request: EvaluationRequest, *, hold: bool = False
) -> tuple[requests.Judged, list[requests.Json]]:
    """Check everything; returns what is judged, and the windows. Raises as `find_judged`, which `hold` is for."""
    requests.check_level(request.level)
    given = None if request.windows is None else requests.check_windows(request.windows)
    judged = requests.find_judged(
        session, owner, [request.model], ["/model"], request.dataset_id, hold=hold
    )
    if given is not None:
        requests.refuse_windows(judged.dataset)
        return judged, given
    if judged.dataset.kind == DatasetKind.PREFERENCES:
        return judged, []
    return judged, requests.check_windows(windows_of(judged.models[0].objective))


def submit(
    session: Session, settings: Settings, owner: str, request: EvaluationRequest
) -> Evaluation:
    """Check, and write the evaluation and its job into the caller's transaction."""
    judged, windows = check(session, owner, request, hold=True)
    (model,), dataset = judged.models, judged.dataset
    evaluation_id = new_id("evl")
    seen = requests.seen_before(model, dataset)
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=EVALUATE,
        name=model.name,
        spec={
            "evaluation_id": evaluation_id,
            "independent": seen is None,
            "dataset": lineage_of(dataset),
        },
        dataset_id=dataset.id,
    )
    return rows.insert_evaluation(
        session,
        id=evaluation_id,
        owner=owner,
        job_id=job.id,
        model_id=model.id,
        model_name=model.name,
        model_version=model.version,
        kind=model.kind,
        dataset_id=dataset.id,
        dataset_name=dataset.name,
        dataset_version=dataset.version,
        dataset_sha256=dataset.sha256,
        windows=windows,
        level=request.level,
        warnings=[] if seen is None else [seen],
    )


def roc(db: Database, owner: str, evaluation_id: str) -> tuple[Evaluation, RocCurve, ClassTotals]:
    """The full ROC curve of an evaluation that has one, with what intervals at its points need."""
    from core.metrics import ClassTotals

    with db.read() as session:
        evaluation = judgements.find(session, Evaluation, owner, evaluation_id)
        row = rows.find_curve(session, evaluation.id)
        if row is None or evaluation.metrics is None:
            raise _no_curve(evaluation)
        totals = ClassTotals(**evaluation.metrics["totals"])
        return evaluation, curve_of(row), totals


def _no_curve(evaluation: Evaluation) -> NotFound:
    if evaluation.metrics is None:
        why = f"its job {evaluation.job_id} has {evaluation.job.state}"
        if judgements.status_of(evaluation) == judgements.PROCESSING:
            why = f"its job {evaluation.job_id} has yet to make it"
    else:
        why = f"it is of kind {evaluation.kind}, which has metrics alone"
    return NotFound(f"evaluation {evaluation.id} has no ROC curve: {why}", code="no_curve")
