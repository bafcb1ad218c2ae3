"""/v1/models/{ref}/roc and …/operating-point: the curve of a model, and its cuts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.api.dependencies import CallerDep, ContextDep
from app.api.routes.models import On
from app.api.schemas.curves import BandKind, OperatingPoint, Roc, cut_of, finite
from app.api.security import GuardedRoute, needs
from app.errors import Invalid
from app.services import models
from core.metrics import Costs, roc_band_on_curve

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)

_ROWS_A_CHUNK = 10_000
Floats = npt.NDArray[np.float64]


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
    on: On = "validation",
    max_points: Annotated[int, Query(ge=2, le=100_000, description="Most points.")] = 1000,
    format: Annotated[
        Literal["json", "csv"], Query(description="`csv` streams every point.")
    ] = "json",
    band: Annotated[
        BandKind | None,
        Query(
            description="Limits of the curve's height: of each by itself, or of the whole curve."
        ),
    ] = None,
) -> Response:
    """Points from (0, 0) to (1, 1). With more than `max_points`, the upper hull first, then evenly along the curve."""
    judged = models.roc(context.db, caller.owner, ref, on)
    shown = judged.curve if format == "csv" else judged.curve.thin(max_points)
    columns = {"fpr": shown.fpr, "tpr": shown.tpr, "threshold": shown.thresholds}
    if band is not None:
        limits = roc_band_on_curve(
            judged.curve, judged.totals, shown.fpr, kind=band, level=judged.level
        )
        columns |= {"low": limits.low, "high": limits.high}
    if format == "csv":
        return StreamingResponse(_csv(columns), media_type="text/csv; charset=utf-8")
    points = [
        dict(zip(columns, point, strict=True)) | {"threshold": finite(point[2])}
        for point in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
    found = {
        "model_id": judged.model.id,
        "on": on,
        "exact": len(shown) == len(judged.curve),
        "total_points": len(judged.curve),
    }
    if band is not None:
        found["band"] = {"kind": band, "level": judged.level}
    return JSONResponse(found | {"points": points})


def _csv(columns: dict[str, Floats]) -> Iterator[str]:
    yield ",".join(columns) + "\n"
    for start in range(0, len(columns["fpr"]), _ROWS_A_CHUNK):
        part = (column[start : start + _ROWS_A_CHUNK].tolist() for column in columns.values())
        yield "".join(
            ",".join(repr(value) if math.isfinite(value) else "" for value in row) + "\n"
            for row in zip(*part, strict=True)
        )


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
    return OperatingPoint(model_id=model.id, on=on, **dict(cut_of(point)))


def _costs(false_positive: float | None, false_negative: float | None) -> Costs | None:
    if false_positive is None and false_negative is None:
        return None
    if false_positive is None or false_negative is None:
        absent = "cost_false_positive" if false_positive is None else "cost_false_negative"
        detail = f"{absent} must be given with the other cost, it is missing"
        raise Invalid(detail, errors=[{"parameter": absent, "detail": detail}])
    return Costs(false_positive, false_negative)
