"""ROC curves and their cuts over HTTP."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from app.api.schemas.common import Interval, Resource
from core import metrics

Part = Literal["validation", "train"]


class Point(Resource):
    """Flagging every score at or above `threshold` gives these rates; null flags nothing."""

    fpr: float
    tpr: float
    threshold: float | None


class Roc(Resource):
    """A ROC curve from (0, 0) to (1, 1)."""

    model_id: str
    on: Part
    exact: bool = Field(description="False where points were left out to keep to `max_points`.")
    total_points: int
    points: list[Point]


class Cut(Resource):
    """A cut of the ranking: what it means to flag every score at or above `threshold`; null flags nothing."""

    threshold: float | None
    fpr: Interval
    tpr: Interval
    precision: Interval
    lift: Interval


class OperatingPoint(Cut):
    """One cut of the ranking on one part of the data."""

    model_id: str
    on: Part


def cut_of(point: metrics.OperatingPoint) -> Cut:
    """Show a cut; what is not finite becomes null."""
    intervals = {
        name: Interval(**{bound: finite(value) for bound, value in interval._asdict().items()})
        for name in ("fpr", "tpr", "precision", "lift")
        for interval in [getattr(point, name)]
    }
    return Cut(threshold=finite(point.threshold), **intervals)


def finite(value: float) -> float | None:
    """JSON knows neither NaN nor infinity."""
    return value if math.isfinite(value) else None
