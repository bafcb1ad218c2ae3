"""/v1/models/{ref}/calibration."""

from __future__ import annotations

from fastapi import APIRouter

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep
from app.models import calibrations
from app.models.calibration_schemas import Calibration

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get("/{ref}/calibration", summary="Read the calibration")
@needs("read")
def read_calibration(ref: str, context: ContextDep, caller: CallerDep) -> Calibration:
    """Return how scores are converted to probabilities: the method, the rows it was fitted on, how well the
    probabilities match the outcomes, and earlier versions. Returns 404 `no_calibration`, with the reason, if the model
    has none.
    """
    _, row, history = context.db.reading(calibrations.read, caller.owner, ref)
    return Calibration.from_row(row, history=history)
