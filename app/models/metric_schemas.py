"""Metrics and gains tables over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from app.http.schemas import (
    GINI,
    KS,
    FiniteOrNull,
    FprMax,
    FprMin,
    Interval,
    Level,
    ModelId,
    Negatives,
    Positives,
    Resource,
)
from app.models.curve_schemas import APPROXIMATE, OfEvaluation, OfPart, OnPart
from app.models.metrics import metric_record
from app.models.operating_point_schemas import Cutoff
from app.platform.documents import GradeRows, ListMetrics

if TYPE_CHECKING:
    from core import metrics


class MetricEstimate(Interval):
    """A metric with its confidence interval and a test against random scores."""

    metric: str = Field(description="Name of the metric, as requested.")
    chance: float | None = Field(
        description="Value of the metric for random scores. Null if that is 0."
    )
    p_value: float | None = Field(
        description="One-sided p-value of the hypothesis that the metric is no better than for random scores. "
        "Null if `chance` is null, if a class has fewer than 10 effective rows, or if the window of a "
        "partial AUC holds fewer than 3."
    )
    adjusted_p_value: float | None = Field(
        description="p-value adjusted with Holm's method over all metrics of the request. Null if `p_value` is "
        "null."
    )


class MetricEstimates(Resource):
    """Metrics of a ranking."""

    level: Level = Field(description="Confidence level of each interval by itself.")
    metrics: list[MetricEstimate] = Field(description="One entry for each requested metric.")


class ModelMetricEstimates(OfPart, MetricEstimates):
    """Metrics of a model on one part of its data."""


class EvaluationMetricEstimates(OfEvaluation, MetricEstimates):
    """Metrics of a model on the rows of an evaluation."""


class Gain(Resource):
    """One row of a gains table: the highest-scored rows down to a given fraction."""

    share: float = Field(description="Fraction of all rows.")
    count: float = Field(
        validation_alias="size",
        description="Number of rows, or their total weight if rows are weighted.",
    )
    threshold: float = Field(description="Lowest score among these rows.")
    tied: float = Field(description="Number of rows with exactly that score.")
    taken: float = Field(
        description="Number of those that are included. They are chosen at random."
    )
    positives: float = Field(
        description="Number of positives among these rows. If the threshold splits a tie: the expected number."
    )
    precision: Interval = Field(description="Fraction of these rows that are positive.")
    recall: Interval = Field(description="Fraction of all positives that are among these rows.")
    lift: Interval = Field(
        description="`precision` divided by `prevalence`. A random order has a lift of 1."
    )


class Gains(Resource):
    """A gains table: how many positives the top of the list contains, for several list sizes."""

    level: Level = Field(description="Confidence level of each interval by itself.")
    prevalence: float = Field(
        description="Fraction of positives that the table assumes. Default: that of the data."
    )
    rows: list[Gain] = Field(description="One entry for each list size, ascending.")


class ModelGains(OfPart, Gains):
    """The gains table of a model on one part of its data."""


class EvaluationGains(OfEvaluation, Gains):
    """The gains table of a model on the rows of an evaluation."""


def metric_estimates_of(found: Sequence[metrics.MetricEstimate], level: float) -> dict[str, Any]:
    return {"level": level, "metrics": [MetricEstimate(**metric_record(each)) for each in found]}


class WindowArea(Interval):
    """Partial AUC: the mean TPR over a window of false positive rates."""

    fpr_min: FprMin
    fpr_max: FprMax
    empirical: float | None = Field(
        None,
        description="Fraction of the pairs that are strictly in order, over all positives and the negatives of "
        "rank ⌊n·fpr_min⌋ + 1 to ⌈n·fpr_max⌉ (Narasimhan & Agarwal 2016, eq. 2). It treats ties and "
        "the ends of the window differently from `value`. Null without a curve.",
    )


class Height(Resource):
    """The TPR at a given FPR. The interval includes the uncertainty of the threshold."""

    fpr: float = Field(description="False positive rate.")
    tpr: float = Field(description="True positive rate at this FPR.")
    low: float = Field(description="Lower end of the confidence interval.")
    high: float = Field(description="Upper end of the confidence interval.")


class _OfPart(Resource):
    """The part of a model's data, and the level of the intervals."""

    model_id: ModelId
    on: OnPart
    level: Level = Field(description="Confidence level of the intervals.")


class CurveMetrics(Resource):
    """Ranking metrics of rows with one label."""

    auc: Interval = Field(description="Area under the ROC curve.")
    pauc: list[WindowArea] = Field(description="Partial AUC over each window.")
    tpr_at_fpr: list[Height] = Field(description="TPR at fixed false positive rates.")
    positives: Positives
    negatives: Negatives
    ties: float = Field(
        description="Fraction of the positive–negative pairs that have equal scores."
    )
    lists: ListMetrics | None = Field(
        default=None,
        description="Metrics within queries; all other metrics treat the rows as one list. Null without queries.",
    )


class Metrics(CurveMetrics, _OfPart):
    """Ranking metrics of a model on one part of the data."""

    approximate: bool = Field(
        description="Applies to the curve and the values read from it, not to the areas. "
        + APPROXIMATE
    )
    gini: Interval = Field(description=GINI)
    ks: float | None = Field(description=KS + " Null without a curve.")
    ks_threshold: FiniteOrNull = Field(
        description="The threshold with the largest TPR − FPR. If the model ranks better than chance, this difference "
        "is `ks`. Null without a curve, or if the best is to flag no rows."
    )
    operating_point: Cutoff | None = Field(
        description="Rates on this part at the model's threshold, which was chosen on the validation rows. Null "
        "unless the objective is `tpr`."
    )
    metric: MetricEstimate | None = Field(
        None,
        description="The metric of an objective such as `average_precision` or `precision` on this part, as in "
        "`…/metric-estimates`. A row count refers to the validation rows. Null for other objectives, "
        "and for `ndcg` with repeated cross-validation.",
    )
    positive_weight: float = Field(description="Total weight of the positive rows.")
    negative_weight: float = Field(description="Total weight of the negative rows.")
    lists: ListMetrics | None = Field(
        default=None,
        description="Metrics within queries; all other metrics treat the rows as one list. Null without queries.",
    )


class EvaluatedPairs(Resource):
    """Metrics of the order of pairs of items."""

    pair_order: Interval = Field(
        description="Weighted fraction of the pairs in order; a tie counts half. The interval allows for pairs "
        "that share an item."
    )
    misrank_fraction: float = Field(
        description="Weighted fraction of the pairs out of order; a tie counts fully."
    )
    ties: float = Field(description="Weighted fraction of the pairs that have equal scores.")
    pairs: int = Field(description="Number of pairs.")
    items: int = Field(description="Number of different items in the pairs.")
    weight: float = Field(description="Total weight of the pairs.")
    effective_pairs: float = Field(
        description="Effective number of pairs in the worst case: this many pairs without shared items would be "
        "as informative."
    )


class PairMetrics(EvaluatedPairs, _OfPart):
    """Metrics of a model trained on pairs, on the pairs of one part."""


# Beside the stored document, because responses have one type of interval, whose members may be null.
class GradedOrder(Resource):
    """Ranking metrics of graded rows, treated as one list."""

    c_index: Interval = Field(
        description="Fraction of the pairs of rows with different grades that are in order; a tie counts half."
    )
    mean_auc: Interval = Field(description="Mean of the AUC over all pairs of grades.")
    volume: Interval | None = Field(
        description="Probability that one random row of each grade are all in order. Null for more than nine "
        "grades."
    )
    pairwise: list[list[float | None]] = Field(
        description="AUC of each grade (column) over each lower grade (row), by ascending grade; other entries "
        "are null."
    )


class EvaluatedGrades(Resource):
    """Ranking metrics on rows with grades."""

    grades: list[GradeRows] = Field(
        description="Number of rows of each grade, without rows of weight 0."
    )
    lists: ListMetrics | None = Field(
        description="Metrics within queries. Null if there are fewer than two queries with rows of different "
        "grades."
    )
    order: GradedOrder | None = Field(
        description="Metrics of all rows as one list. Null with queries."
    )


class GradedMetrics(EvaluatedGrades, _OfPart):
    """Metrics of a model trained on grades, on one part of the data."""


class EvaluatedLabel(Resource):
    """Ranking metrics of one label's scores."""

    label: str = Field(description="Name of the label.")
    auc: Interval | None = Field(
        description="Area under the ROC curve. Null if there are too few rows of a class."
    )
    pauc: list[WindowArea] = Field(description="Partial AUC over each window.")
    positives: Positives
    negatives: Negatives
    ties: float | None = Field(
        description="Fraction of the positive–negative pairs that have equal scores. Null if `auc` is null."
    )


class LabelMetrics(EvaluatedLabel):
    """Ranking metrics of one label's scores, on one part of the data."""

    ties: float | None = Field(
        description="Fraction of the positive–negative pairs that have equal scores. Null if `auc` is null."
    )


class MeanArea(Resource):
    """Mean of a partial AUC over the labels."""

    fpr_min: FprMin
    fpr_max: FprMax
    value: float | None = Field(description="Mean over the labels. Null if no label has the value.")


class MultilabelMetrics(_OfPart):
    """Metrics of a model with several labels on one part of the data: for each label, and their means."""

    labels: list[LabelMetrics] = Field(description="Metrics of each label.")
    evaluated: int = Field(
        description="Number of labels that have an AUC. The means are over these."
    )
    mean_auc: float | None = Field(
        description="Mean AUC over these labels. Null if there are none."
    )
    mean_pauc: list[MeanArea] = Field(
        description="Mean partial AUC over these labels, for each window."
    )


AnyMetrics = Metrics | PairMetrics | MultilabelMetrics | GradedMetrics


def metrics_of(found: Mapping[str, Any]) -> AnyMetrics:
    """The schema depends on the model's kind."""
    if "pair_order" in found:
        return PairMetrics.model_validate(found)
    if "labels" in found:
        return MultilabelMetrics.model_validate(found)
    if "grades" in found:
        return GradedMetrics.model_validate(found)
    return Metrics.model_validate(found)
