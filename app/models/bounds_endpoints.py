"""/v1/models/{ref}/bounds: what the measured partial AUC says of rows to come."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep
from app.models import bounds
from app.models.bounds_schemas import WindowBounds, bounds_of

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get("/{ref}/bounds", summary="What is its partial AUC on rows to come?")
@needs("read")
def read_bounds(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    fpr_min: Annotated[
        float | None, Query(ge=0, lt=1, description="By default that trained for, or 0.")
    ] = None,
    fpr_max: Annotated[
        float | None, Query(gt=0, le=1, description="By default that trained for, or 1.")
    ] = None,
    delta: Annotated[
        float, Query(gt=0, lt=1, description="Probability with which a bound may fail.")
    ] = 0.05,
) -> WindowBounds:
    """Bounds on 1 - pAUC beside the measured value: of the training rows for linear scores (Narasimhan & Agarwal,
    Theorem 9, with constants of our own), and of the rows held out for any. Mostly vacuous, and marked where they are.
    """
    found = bounds.read(
        context.db, caller.owner, ref, fpr_min=fpr_min, fpr_max=fpr_max, delta=delta
    )
    return bounds_of(found, delta)
