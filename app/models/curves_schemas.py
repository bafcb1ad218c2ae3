"""ROC curves and their cuts over HTTP."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from app.http.schemas import Interval, Resource

if TYPE_CHECKING:
    from core import metrics


Part = Literal["validation", "train"]
APPROXIMATE = (
    "The model was cross-validated: the curve is put together from the folds' scores, brought onto the scale of the "
    "ranker that is served, whose own thresholds were never tried."
)
BandKind = Literal["pointwise", "simultaneous"]


class Point(Resource):
    """Flagging every score at or above `threshold` gives these rates; null flags nothing."""

    fpr: float
    tpr: float
    threshold: float | None
    low: float | None = Field(
        default=None,
        description="Lower limit of the curve's height at this FPR, if `band` was asked for.",
    )
    high: float | None = Field(default=None, description="Upper limit.")


class Band(Resource):
    """What the limits of the points are."""

    kind: BandKind = Field(
        description="`pointwise`: of each height by itself. `simultaneous`: of the whole curve."
    )
    level: float


class Points(Resource):
    """A ROC curve from (0, 0) to (1, 1)."""

    exact: bool = Field(description="False where points were left out to keep to `max_points`.")
    total_points: int
    band: Band | None = None
    points: list[Point]


class Roc(Points):
    """The curve of a model on one part of its data."""

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)


class EvaluationRoc(Points):
    """The curve of an evaluation."""

    evaluation_id: str


class Cost(Interval):
    """What a row costs on average with this cut."""

    flag_none: float = Field(description="What it costs to flag nothing.")
    flag_all: float = Field(description="What it costs to flag everything.")
    false_positive: float
    false_negative: float


class Cut(Resource):
    """A cut of the ranking: what it means to flag every score at or above `threshold`; null flags nothing."""

    threshold: float | None
    fpr: Interval = Field(description="Share of the negatives that this threshold flags.")
    tpr: Interval = Field(description="Share of the positives that it flags.")
    precision: Interval
    lift: Interval
    threshold_low: float | None = Field(
        description="Above here and up to `threshold_high` the population's threshold may lie, of the rate or of the "
        "least cost asked for. Null where the data set no end."
    )
    threshold_high: float | None
    prevalence: float = Field(
        description="Share of positives that precision, lift and cost stand on: the data's, unless given."
    )
    tpr_at_fpr: Interval | None = Field(
        description="Asked by `fpr`: the TPR at exactly this FPR. Its threshold is not known, and the interval allows "
        "for that."
    )
    fpr_at_tpr: Interval | None = Field(description="Asked by `tpr`: the FPR at exactly this TPR.")
    cost: Cost | None = Field(description="Of a row, if costs were given.")


class OperatingPoint(Cut):
    """One cut of the ranking on one part of the data."""

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)


def cut_of(point: metrics.OperatingPoint) -> Cut:
    """Show a cut; what is not finite becomes null."""
    cost = None
    if point.cost is not None:
        cost = Cost(
            **dict(_shown(point.cost.a_row)),
            flag_none=point.cost.flag_none,
            flag_all=point.cost.flag_all,
            false_positive=point.cost.costs.false_positive,
            false_negative=point.cost.costs.false_negative,
        )
    return Cut(
        threshold=finite(point.threshold),
        threshold_low=finite(point.threshold_low),
        threshold_high=finite(point.threshold_high),
        fpr=_shown(point.fpr),
        tpr=_shown(point.tpr),
        precision=_shown(point.precision),
        lift=_shown(point.lift),
        prevalence=point.prevalence,
        tpr_at_fpr=None if point.tpr_at_fpr is None else _shown(point.tpr_at_fpr),
        fpr_at_tpr=None if point.fpr_at_tpr is None else _shown(point.fpr_at_tpr),
        cost=cost,
    )


def _shown(interval: metrics.Interval) -> Interval:
    return Interval(**{bound: finite(value) for bound, value in interval._asdict().items()})


def finite(value: float) -> float | None:
    """JSON knows neither NaN nor infinity."""
    return value if math.isfinite(value) else None
