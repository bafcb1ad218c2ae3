"""/v1/evaluations/{evaluation_id}/roc. The other routes are declared with the kinds of job."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.evaluation import evaluations
from app.http.dependencies import CallerDep, ContextDep
from app.models.endpoints import CurveFormDep, answer_curve
from app.models.schemas import EvaluationRoc

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
