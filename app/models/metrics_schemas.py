"""How good a model is, over HTTP: a shape for each kind of dataset that it may have been trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from app.http.schemas import Interval, Resource
from app.models.curves_schemas import APPROXIMATE, Cut, Part, cut_of


class Window(Interval):
    """Partial AUC on a window of false positive rates: the mean height of the curve there."""

    fpr_min: float
    fpr_max: float
    empirical: float | None = Field(
        None,
        description="The share of pairs strictly in order, of every positive with the negatives ranked ⌊n·fpr_min⌋ + 1 "
        "to ⌈n·fpr_max⌉ (Narasimhan & Agarwal 2016, eq. 2). Ties, and the ends of the window, are counted otherwise "
        "than in `value`. Null without a curve.",
    )


class Height(Resource):
    """The curve's height at a false positive rate, and its interval, which allows for the threshold's own variance."""

    fpr: float
    tpr: float
    low: float
    high: float


class Metrics(Resource):
    """How well the model ranks one part of the data."""

    model_id: str
    on: Part
    approximate: bool = Field(
        description="Of the curve and what is read off it, not of the areas. " + APPROXIMATE
    )
    level: float = Field(description="Of the intervals.")
    auc: Interval
    pauc: list[Window]
    tpr_at_fpr: list[Height]
    operating_point: Cut | None = Field(
        description="Of the objective `tpr`: what the model's threshold, set on validation rows, does to this part."
    )
    positives: int
    negatives: int
    positive_weight: float
    negative_weight: float
    ties: float = Field(
        description="Share of pairs of a positive and a negative with equal scores."
    )


class PairMetrics(Resource):
    """How well a model trained on pairs puts the pairs of one part in order."""

    model_id: str
    on: Part
    level: float = Field(description="Of the interval.")
    pair_order: Interval = Field(
        description="Weighted share of pairs in order, ties counted half. "
        "The interval allows for pairs that share an item."
    )
    misrank_fraction: float = Field(
        description="Weighted share of pairs out of order, ties counted whole."
    )
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float = Field(
        description="So many pairs without a common item would tell as much, at the worst."
    )


class LabelMetrics(Resource):
    """How well one label's scores rank one part."""

    label: str
    auc: Interval | None = Field(description="Null where the part has too few rows of a class.")
    pauc: list[Window]
    positives: int
    negatives: int
    ties: float | None


class MeanArea(Resource):
    """A partial AUC's mean over the labels."""

    fpr_min: float
    fpr_max: float
    value: float | None


class MultilabelMetrics(Resource):
    """How well a model with several labels ranks one part: label by label, and on average."""

    model_id: str
    on: Part
    level: float = Field(description="Of the intervals.")
    labels: list[LabelMetrics]
    judged: int = Field(description="Labels that have an AUC: the means are over these.")
    mean_auc: float | None
    mean_pauc: list[MeanArea]


AnyMetrics = Metrics | PairMetrics | MultilabelMetrics


def metrics_of(found: Mapping[str, Any]) -> AnyMetrics:
    """Show what is known of a part, in the shape of the model's kind."""
    if "pair_order" in found:
        return PairMetrics.model_validate(found)
    if "labels" in found:
        return MultilabelMetrics.model_validate(found)
    point = found["operating_point"]
    shown = {**found, "operating_point": None if point is None else cut_of(point)}
    return Metrics.model_validate(shown)
