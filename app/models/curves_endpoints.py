"""/v1/models/{ref}/roc and …/operating-point: the curve of a model, and its cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep
from app.models import service as models
from app.models.curve_answers import CurveFormDep, answer_curve
from app.models.curves_schemas import OperatingPoint, Roc, cut_of
from app.models.endpoints import On
from app.platform.errors import Invalid

if TYPE_CHECKING:
    from core.metrics import Costs


router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get(
    "/{ref}/roc",
    response_model=Roc,
    summary="The ROC curve",
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
@needs("read")
def read_roc(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    form: CurveFormDep,
    on: On = "validation",
) -> Response:
    """Points from (0, 0) to (1, 1). With more than `max_points`, the upper hull first, then evenly along the curve."""
    judged = models.roc(context.db, caller.owner, ref, on)
    approximate = models.is_approximate(judged.model, on)
    of = {"model_id": judged.model.id, "on": on, "approximate": approximate}
    return answer_curve(of, judged.curve, judged.totals, judged.level, form)


@router.get("/{ref}/operating-point", summary="One cut of the ranking")
@needs("read")
def read_operating_point(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    on: On = "validation",
    fpr: Annotated[
        float | None, Query(ge=0, le=1, description="The best cut with at most this FPR.")
    ] = None,
    tpr: Annotated[
        float | None, Query(ge=0, le=1, description="The best cut with at least this TPR.")
    ] = None,
    threshold: Annotated[
        float | None, Query(allow_inf_nan=False, description="The cut at this score.")
    ] = None,
    cost_false_positive: Annotated[
        float | None, Query(ge=0, allow_inf_nan=False, description="Of a negative that is flagged.")
    ] = None,
    cost_false_negative: Annotated[
        float | None, Query(ge=0, allow_inf_nan=False, description="Of a positive that is not.")
    ] = None,
    prevalence: Annotated[
        float | None,
        Query(
            gt=0, lt=1, description="Share of positives among rows to come; the data's by default."
        ),
    ] = None,
) -> OperatingPoint:
    """Give one of `fpr`, `tpr` and `threshold`; or both costs alone for the cut that costs least. With costs, any cut
    says what a row costs. Rates, precision, lift and cost come with intervals.
    """
    model, point = models.operating_point(
        context.db,
        caller.owner,
        ref,
        on,
        fpr=fpr,
        tpr=tpr,
        threshold=threshold,
        costs=_costs(cost_false_positive, cost_false_negative),
        prevalence=prevalence,
    )
    approximate = models.is_approximate(model, on)
    return OperatingPoint(model_id=model.id, on=on, approximate=approximate, **dict(cut_of(point)))


def _costs(false_positive: float | None, false_negative: float | None) -> Costs | None:
    from core.metrics import Costs

    if false_positive is None and false_negative is None:
        return None
    if false_positive is None or false_negative is None:
        absent = "cost_false_positive" if false_positive is None else "cost_false_negative"
        detail = f"{absent} must be given with the other cost, it is missing"
        raise Invalid(detail, errors=[{"parameter": absent, "detail": detail}])
    return Costs(false_positive, false_negative)
