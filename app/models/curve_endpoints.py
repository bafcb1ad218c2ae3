"""Routes for /v1/models/{ref}/roc and …/curves: points of curves as JSON or CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, from_query
from app.http.responses import json_response
from app.models import curves
from app.models import service as models
from app.models.curve_schemas import BandKind, CurveKind, DataPart, ModelCurve, Roc
from app.platform.documents import document_of
from core import metrics
from core.metrics.window import MIN_WIDTH

if TYPE_CHECKING:
    from core.metrics import ClassTotals, RocCurve

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


CurvePart = Annotated[
    DataPart,
    Query(
        description="Part of the data. `validation`: the held-out rows. `train`: the training rows."
    ),
]


_ROWS_PER_CHUNK = 10_000


Floats = npt.NDArray[np.float64]


MaxPoints = Annotated[
    int, Query(ge=2, le=100_000, description="Maximum number of points of the curve.")
]


CurveFormat = Annotated[
    Literal["json", "csv"],
    Query(
        description="Format of the response. `json`: at most `max_points` points. `csv`: all points."
    ),
]


BandParameter = Annotated[
    BandKind | None,
    Query(
        description="Add confidence limits for the TPR. `pointwise`: for each point separately. `simultaneous`: "
        "for the whole curve at once."
    ),
]


@dataclass(frozen=True)
class CurveForm:
    """The requested form of a curve: format, number of points, and confidence band."""

    max_points: MaxPoints = 1000
    format: CurveFormat = "json"
    band: BandParameter = None


CurveFormDep = Annotated[CurveForm, from_query(CurveForm)]


def curve_response(
    of: Mapping[str, Any], curve: RocCurve, totals: ClassTotals, level: float, form: CurveForm
) -> Response:
    """`of` are further members of the JSON."""
    if form.format == "csv":
        columns = _columns(curve, curve, totals, level, form.band)
        return StreamingResponse(_csv_lines(columns), media_type="text/csv; charset=utf-8")
    return json_response(roc_document(of, curve, totals, level, form))


def _columns(
    shown: RocCurve, curve: RocCurve, totals: ClassTotals, level: float, band: BandKind | None
) -> dict[str, Floats]:
    columns = {"fpr": shown.fpr, "tpr": shown.tpr, "threshold": shown.thresholds}
    if band is not None:
        limits = metrics.roc_band(curve, totals, shown.fpr, kind=band, level=level)
        columns |= {"low": limits.low, "high": limits.high}
    return columns


def roc_document(
    of: Mapping[str, Any], curve: RocCurve, totals: ClassTotals, level: float, form: CurveForm
) -> dict[str, Any]:
    """Return JSON without Pydantic models: one for each point would block all other threads."""
    shown = curve.thin(form.max_points)
    columns = _columns(shown, curve, totals, level, form.band)
    points = [
        dict(zip(columns, point, strict=True)) | {"threshold": document_of(point[2])}
        for point in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
    document = {**of, "exact": len(shown) == len(curve), "total_points": len(curve)}
    if form.band is not None:
        document["band"] = {"kind": form.band, "level": level}
    return document | {"points": points}


def _csv_lines(columns: Mapping[str, Floats]) -> Iterator[str]:
    yield ",".join(columns) + "\n"
    for start in range(0, len(next(iter(columns.values()))), _ROWS_PER_CHUNK):
        part = (column[start : start + _ROWS_PER_CHUNK].tolist() for column in columns.values())
        yield "".join(
            ",".join(repr(value) if math.isfinite(value) else "" for value in row) + "\n"
            for row in zip(*part, strict=True)
        )


@router.get(
    "/{ref}/roc",
    response_model=Roc,
    summary="Read the ROC curve",
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
@needs("read")
async def read_roc(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    form: CurveFormDep,
    on: CurvePart = "validation",
) -> Response:
    """Return points of the curve from (0, 0) to (1, 1). If the curve has more than `max_points`, the response has those
    on the upper hull, and others evenly spaced along the curve. For models with more than 1,000,000 distinct scores,
    the service stores 1,000,000 points: the first 100,000, the upper hull, and others evenly spaced. Values read
    between them are too low by less than 0.00001 in FPR + TPR; areas and their intervals use all rows.
    """

    def work() -> Response:
        of = context.db.reading(curves.roc, caller.owner, ref, on)
        return curve_response(of_part(of), of.curve, of.totals, of.level, form)

    return await context.compute(caller.owner, work)


def of_part(measured: curves.PartCurve) -> dict[str, Any]:
    model, part = measured.model, measured.part
    return {
        "model_id": model.id,
        "on": part,
        "approximate": models.is_approximate(model, part),
    }


@dataclass(frozen=True)
class ListCurveForm:
    """The requested form of a curve of the list, and the assumed fraction of positives."""

    max_points: MaxPoints = 1000
    format: CurveFormat = "json"
    prevalence: Annotated[
        float | None,
        Query(
            ge=MIN_WIDTH,
            le=1.0 - MIN_WIDTH,
            description="Fraction of positives among future rows. Default: that of the data. Not for `cost` and "
            "`histogram`.",
        ),
    ] = None


ListCurveFormDep = Annotated[ListCurveForm, from_query(ListCurveForm)]


def list_curve_response(
    of: Mapping[str, Any],
    kind: CurveKind,
    curve: RocCurve,
    totals: ClassTotals,
    form: ListCurveForm,
) -> Response:
    """`of` are further members of the JSON."""
    if kind == "histogram":
        return _histogram_response(of, curve, form)
    whole, prevalence = curves.list_curve_on(kind, curve, totals, form.prevalence)
    axes = curves.AXES[kind]
    if form.format == "csv":
        columns = dict(zip((*axes, "threshold"), whole[:3], strict=True))
        return StreamingResponse(_csv_lines(columns), media_type="text/csv; charset=utf-8")
    shown = whole.thin(form.max_points)
    rows = zip(shown.x.tolist(), shown.y.tolist(), shown.thresholds.tolist(), strict=True)
    return json_response(
        {
            **of,
            "kind": kind,
            "axes": axes,
            "prevalence": prevalence,
            "exact": len(shown.x) == len(whole.x),
            "total_points": len(whole.x),
            "points": [{"x": x, "y": y, "threshold": document_of(cutoff)} for x, y, cutoff in rows],
        }
    )


def _histogram_response(of: Mapping[str, Any], curve: RocCurve, form: ListCurveForm) -> Response:
    """Return the histogram of the scores by class."""
    edges, positives, negatives = curves.histogram_on(curve, form.max_points, form.prevalence)
    low, high = edges[:-1], edges[1:]
    if form.format == "csv":
        columns = {"score": low, "high": high, "positives": positives, "negatives": negatives}
        return StreamingResponse(_csv_lines(columns), media_type="text/csv; charset=utf-8")
    rows = zip(low.tolist(), high.tolist(), positives.tolist(), negatives.tolist(), strict=True)
    return json_response(
        {
            **of,
            "kind": "histogram",
            "axes": curves.AXES["histogram"],
            "prevalence": None,
            "exact": True,
            "total_points": len(low),
            "points": [
                {"x": start, "y": found, "threshold": start, "high": end, "negatives": other}
                for start, end, found, other in rows
            ],
        }
    )


@router.get(
    "/{ref}/curves/{kind}",
    response_model=ModelCurve,
    summary="Read a precision-recall, gains or cost curve",
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
@needs("read")
async def read_list_curve(
    *,
    ref: str,
    kind: CurveKind,
    context: ContextDep,
    caller: CallerDep,
    form: ListCurveFormDep,
    on: CurvePart = "validation",
) -> Response:
    """Return one curve. `precision_recall`: the precision at every recall; do not interpolate it linearly. `gains`: the
    recall by the fraction of the list that is processed (the Lorenz curve from the top). `cost`: the lowest expected
    cost of any cutoff, by the weight of a missed positive (Drummond & Holte 2006). `histogram`: the fraction of each
    class in up to 40 bins of the score; the outermost bins also contain the scores beyond them.
    """

    def work() -> Response:
        of = context.db.reading(curves.roc, caller.owner, ref, on)
        return list_curve_response(of_part(of), kind, of.curve, of.totals, form)

    return await context.compute(caller.owner, work)
