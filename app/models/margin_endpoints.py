"""/v1/models/{ref}/bounds."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep
from app.models import margins
from app.models.margin_schemas import WindowBounds

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get("/{ref}/bounds", summary="Read bounds on the partial AUC")
@needs("read")
async def read_bounds(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    fpr_min: Annotated[
        float | None,
        Query(
            ge=0,
            lt=1,
            description="Lower end of the window. Default: that of the model's objective, otherwise 0.",
        ),
    ] = None,
    fpr_max: Annotated[
        float | None,
        Query(
            gt=0,
            le=1,
            description="Upper end of the window. Default: that of the model's objective, otherwise 1.",
        ),
    ] = None,
    delta: Annotated[
        float, Query(gt=0, lt=1, description="Probability that a bound fails.")
    ] = 0.05,
) -> WindowBounds:
    """Return upper bounds on 1 − pAUC of future rows, next to the measured value. One bound uses the training rows and
    holds for linear scores (Narasimhan & Agarwal, Theorem 9, with our own constants). The other uses the held-out rows
    and holds for any model. Most bounds are vacuous (1 or more), which `vacuous` shows.
    """

    def work() -> WindowBounds:
        curves = context.db.reading(
            margins.find_curves, caller.owner, ref, fpr_min=fpr_min, fpr_max=fpr_max
        )
        return margins.bound_window(curves, delta)

    return await context.compute(caller.owner, work)
