"""Curves over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.http.schemas import EvaluationId, ModelId, Resource

DataPart = Literal["validation", "train"]


OnPart = Annotated[
    DataPart, Field(description="Part of the data: the validation rows or the training rows.")
]


APPROXIMATE = (
    "True if the model was cross-validated. The curve then comes from out-of-fold scores, "
    "converted to the scale of the served ranker. The thresholds of the served ranker itself were "
    "not tested."
)


BandKind = Literal["pointwise", "simultaneous"]


def is_none(value: object) -> bool:
    return value is None


class OfPart(Resource):
    """Members of what is measured on one part of a model's data."""

    model_id: ModelId
    on: OnPart
    approximate: bool = Field(description=APPROXIMATE)


class OfEvaluation(Resource):
    """Members of what is measured on the rows of an evaluation."""

    evaluation_id: EvaluationId
    model_id: ModelId


class Point(Resource):
    """A point of a ROC curve: the rates if every row with a score of at least `threshold` is flagged."""

    fpr: float
    """False positive rate at this threshold."""
    tpr: float
    """True positive rate at this threshold."""
    threshold: float | None
    """Lowest score that is flagged. Null: no row is flagged."""
    low: float | None = Field(default=None, exclude_if=is_none)
    """Lower confidence limit of the TPR at this FPR. Present only with `band`."""
    high: float | None = Field(default=None, exclude_if=is_none)
    """Upper confidence limit of the TPR at this FPR. Present only with `band`."""


class Band(Resource):
    """The confidence band of a ROC curve."""

    kind: BandKind
    """`pointwise`: the limits hold for each point separately. `simultaneous`: they hold for the whole curve at once."""
    level: float
    """Confidence level of the band."""


class Points(Resource):
    """A ROC curve from (0, 0) to (1, 1)."""

    exact: bool
    """False if points were omitted because of `max_points`."""
    total_points: int
    """Number of points of the full curve."""
    band: Band | None = Field(default=None, exclude_if=is_none)
    """The confidence band. Present only if `band` was requested."""
    points: list[Point]
    """The points of the curve, by ascending FPR."""


class Roc(OfPart, Points):
    """The ROC curve of a model on one part of its data."""


class EvaluationRoc(Points):
    """The ROC curve of an evaluation."""

    evaluation_id: EvaluationId


CurveKind = Literal["precision_recall", "gains", "cost", "histogram"]


class ListPoint(Resource):
    """A point of a curve with the threshold it belongs to, or one bin of the histogram."""

    x: float
    """Horizontal coordinate; see `axes`."""
    y: float
    """Vertical coordinate; see `axes`."""
    threshold: float | None
    """Lowest score that is flagged. For a histogram: lower end of the bin. Null: no row is flagged."""
    high: float | None = Field(default=None, exclude_if=is_none)
    """Upper end of the bin. Present only in a histogram."""
    negatives: float | None = Field(default=None, exclude_if=is_none)
    """Fraction of the negatives in the bin. Present only in a histogram."""


class ListCurve(Resource):
    """A precision-recall, gains or cost curve, or a histogram of the scores."""

    kind: CurveKind
    """Kind of curve."""
    axes: list[str] = Field(examples=[["recall", "precision"]])
    """Meaning of `x` and `y`: recall and precision; fraction of the rows and recall; weight and cost; or the lowest
    score of a bin and the fraction of the positives in it."""
    prevalence: float | None
    """Fraction of positives that the curve assumes. Default: that of the data. Null for cost curves, whose weight
    includes it, and for histograms, which show each class separately."""
    exact: bool
    """False if points were omitted because of `max_points`."""
    total_points: int
    """Number of points of the full curve."""
    points: list[ListPoint]
    """The points of the curve, from the highest threshold to the lowest; the bins of a histogram, from the lowest score
    to the highest."""


class ModelCurve(OfPart, ListCurve):
    """A curve of a model on one part of its data."""


class EvaluationCurve(OfEvaluation, ListCurve):
    """A curve of a model on the rows of an evaluation."""
