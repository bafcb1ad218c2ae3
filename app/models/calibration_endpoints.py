"""/v1/models/{ref}/calibration."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep
from app.models import calibrations
from app.models.calibration_schemas import Calibration, CalibrationRestoration
from app.models.revisions import revision_of

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get("/{ref}/calibration", summary="Read the calibration")
@needs("read")
def read_calibration(
    *, ref: str, context: ContextDep, caller: CallerDep, response: Response
) -> Calibration:
    """Return how scores are converted to probabilities: the method, the rows it was fitted on, how well the
    probabilities match the outcomes, and earlier versions. Returns 404 `no_calibration`, with the reason, if the model
    has none.
    """
    _, row, history = context.db.reading(calibrations.read, caller.owner, ref)
    response.headers["ETag"] = f'"{row.version}"'
    return Calibration.from_row(row, history=history)


@router.post("/{ref}/calibration/restore", summary="Restore a calibration")
@needs("train")
def restore_calibration(
    *,
    ref: str,
    body: CalibrationRestoration,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
    if_match: Annotated[
        str | None,
        Header(
            description="ETag of the calibration: its current version. Required.", examples=['"2"']
        ),
    ] = None,
) -> Calibration:
    """Serve an earlier version of the calibration again, as a new version. To undo a recalibration, restore the version
    before it. Scores and their order do not change. All processes apply the change within a second. Returns 409
    `approval_required` if a protected alias points to the model: then use `POST /v1/alias-requests`.
    """
    _, row, history = context.db.writing(
        calibrations.restore,
        caller.owner,
        ref,
        body.version,
        reason=body.reason,
        author=caller.name,
        if_version=revision_of(if_match),
    )
    response.headers["ETag"] = f'"{row.version}"'
    return Calibration.from_row(row, history=history)
