"""What is read off the curve of an evaluation. The other routes are declared with the kinds of job."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.evaluation import evaluations, recalibration
from app.http.dependencies import CallerDep, ContextDep
from app.http.idempotency import IdempotentDep
from app.http.schemas import Valid
from app.jobs.acceptance import PreferWaitDep, create, dry_run
from app.jobs.endpoints import PATH, refetch_job, show
from app.jobs.schemas import Job
from app.models import service as models
from app.models.endpoints import (
    CurveFormDep,
    CutQueryDep,
    FiguresQuery,
    GainsQueryDep,
    answer_curve,
)
from app.models.schemas import (
    EvaluationFigures,
    EvaluationGains,
    EvaluationOperatingPoint,
    EvaluationRoc,
    NewCalibration,
    figures_of,
    point_of,
    promise_of,
)
from app.platform.sql import Session

calibration_router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@calibration_router.put(
    "/{ref}/calibration",
    status_code=202,
    response_model=Job,
    summary="Recalibrate on a newer dataset",
    responses={
        200: {
            "model": Job | Valid,
            "description": "The request was only checked (`?validate=true`), or the job ended within the wait.",
        }
    },
)
@needs("train")
async def put_calibration(
    *,
    ref: str,
    body: NewCalibration,
    context: ContextDep,
    caller: CallerDep,
    wait: PreferWaitDep,
    idempotent: IdempotentDep,
) -> Response:
    """Learn how scores become probabilities from another dataset. A job of kind `calibrate` does the work; then the new
    version is served, and earlier ones stay in `history`. Scores and their order stay as they are.

    409 `rows_seen` if the model was trained on rows of the dataset.
    """
    asked = (caller.owner, ref, body.dataset_id)

    def work(session: Session) -> dict[str, object]:
        return show(recalibration.submit(session, context.settings, *asked))

    check = dry_run(
        context.settings, caller.owner, lambda session: recalibration.check(session, *asked)
    )
    refetch = refetch_job(caller.owner)
    return await create(context, idempotent, wait, PATH, work, refetch, check=check, done=200)


router = APIRouter(prefix=evaluations.PATH, tags=["evaluations"], route_class=GuardedRoute)


@router.get(
    "/{evaluation_id}/roc",
    response_model=EvaluationRoc,
    summary="Read the ROC curve",
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
@needs("read")
def read_evaluation_roc(
    *,
    evaluation_id: str,
    context: ContextDep,
    caller: CallerDep,
    form: CurveFormDep,
) -> Response:
    """Points of the curve from (0, 0) to (1, 1), as for a model. 404 until the evaluation is ready, and for datasets of
    pairs or of several labels.
    """
    row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
    return answer_curve({"evaluation_id": row.id}, curve, totals, row.level, form)


@router.get("/{evaluation_id}/operating-point", summary="Read one operating point")
@needs("read")
def read_evaluation_operating_point(
    *, evaluation_id: str, context: ContextDep, caller: CallerDep, asked: CutQueryDep
) -> EvaluationOperatingPoint:
    """A threshold and its consequences on the rows of the evaluation, as for a model. With `confidence` the rate is
    promised of future rows drawn like these.
    """
    row, point, promise = context.db.reading(
        evaluations.operating_point,
        caller.owner,
        evaluation_id,
        asked.confidence,
        asked.keywords(),
    )
    return EvaluationOperatingPoint(
        evaluation_id=row.id,
        model_id=row.model_id,
        promise=promise_of(promise),
        **dict(point_of(point)),
    )


@router.get("/{evaluation_id}/figures", summary="Compute figures of the ranking")
@needs("read")
def read_evaluation_figures(
    *, evaluation_id: str, context: ContextDep, caller: CallerDep, names: FiguresQuery
) -> EvaluationFigures:
    """Average precision, precision at k, NDCG and areas on the rows of the evaluation, as for a model."""
    row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
    with context.computation():
        found = models.measured_on(curve, totals, names, row.level)
    return EvaluationFigures(
        evaluation_id=row.id, model_id=row.model_id, **figures_of(found, row.level)
    )


@router.get("/{evaluation_id}/gains", summary="Read the gains table")
@needs("read")
def read_evaluation_gains(
    *, evaluation_id: str, context: ContextDep, caller: CallerDep, asked: GainsQueryDep
) -> EvaluationGains:
    """Precision, recall and lift of the first rows of the list on the rows of the evaluation, as for a model."""
    row, curve, totals = context.db.reading(evaluations.roc, caller.owner, evaluation_id)
    with context.computation():
        table = asked.table(curve, totals, row.level)
    return EvaluationGains(evaluation_id=row.id, model_id=row.model_id, **table)
