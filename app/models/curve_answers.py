"""ROC curves as answers: some points as JSON, or all of them as CSV, with limits if they are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from fastapi import Depends, Query
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.models.curves_schemas import BandKind, finite

if TYPE_CHECKING:
    from core.metrics import ClassTotals, RocCurve


_ROWS_A_CHUNK = 10_000
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CurveForm:
    """How a curve is to be shown."""

    max_points: int
    format: Literal["json", "csv"]
    band: BandKind | None


def _form(
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
) -> CurveForm:
    return CurveForm(max_points, format, band)


CurveFormDep = Annotated[CurveForm, Depends(_form)]


def answer_curve(
    of: Mapping[str, Any], curve: RocCurve, totals: ClassTotals, level: float, form: CurveForm
) -> Response:
    """The curve in that form; `of` says in JSON whose it is."""
    from core.metrics import roc_band_on_curve

    shown = curve if form.format == "csv" else curve.thin(form.max_points)
    columns = {"fpr": shown.fpr, "tpr": shown.tpr, "threshold": shown.thresholds}
    if form.band is not None:
        limits = roc_band_on_curve(curve, totals, shown.fpr, kind=form.band, level=level)
        columns |= {"low": limits.low, "high": limits.high}
    if form.format == "csv":
        return StreamingResponse(_csv(columns), media_type="text/csv; charset=utf-8")
    points = [
        dict(zip(columns, point, strict=True)) | {"threshold": finite(point[2])}
        for point in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
    found = {**of, "exact": len(shown) == len(curve), "total_points": len(curve)}
    if form.band is not None:
        found["band"] = {"kind": form.band, "level": level}
    return JSONResponse(found | {"points": points})


def _csv(columns: Mapping[str, Floats]) -> Iterator[str]:
    yield ",".join(columns) + "\n"
    for start in range(0, len(columns["fpr"]), _ROWS_A_CHUNK):
        part = (column[start : start + _ROWS_A_CHUNK].tolist() for column in columns.values())
        yield "".join(
            ",".join(repr(value) if math.isfinite(value) else "" for value in row) + "\n"
            for row in zip(*part, strict=True)
        )
