"""Metrics and gains tables over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from app.http.schemas import (
    GINI,
    KS,
    ColumnName,
    FiniteOrNull,
    FprMax,
    FprMin,
    High,
    Interval,
    Level,
    Low,
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

    metric: str
    """Name of the metric, as requested."""
    chance: float | None
    """Value of the metric for random scores. Null if that is 0."""
    p_value: float | None
    """One-sided p-value of the hypothesis that the metric is no better than for random scores. Null if `chance` is
    null, if a class has fewer than 10 effective rows, or if the window of a partial AUC holds fewer than 3."""
    adjusted_p_value: float | None
    """p-value adjusted with Holm's method over all metrics of the request. Null if `p_value` is null."""


class MetricEstimates(Resource):
    """Metrics of a ranking."""

    level: Level
    metrics: list[MetricEstimate]
    """One entry for each requested metric."""


class ModelMetricEstimates(OfPart, MetricEstimates):
    """Metrics of a model on one part of its data."""


class EvaluationMetricEstimates(OfEvaluation, MetricEstimates):
    """Metrics of a model on the rows of an evaluation."""


class Gain(Resource):
    """One row of a gains table: the highest-scored rows down to a given fraction."""

    share: float
    """Fraction of all rows."""
    count: float = Field(validation_alias="size")
    """Number of rows, or their total weight if rows are weighted."""
    threshold: float
    """Lowest score among these rows."""
    tied: float
    """Number of rows with exactly that score."""
    taken: float
    """Number of those that are included. They are chosen at random."""
    positives: float
    """Number of positives among these rows. If the threshold splits a tie: the expected number."""
    precision: Interval
    """Fraction of these rows that are positive."""
    recall: Interval
    """Fraction of all positives that are among these rows."""
    lift: Interval
    """`precision` divided by `prevalence`. A random order has a lift of 1."""


class Gains(Resource):
    """A gains table: how many positives the top of the list contains, for several list sizes."""

    level: Level
    prevalence: float
    """Fraction of positives that the table assumes. Default: that of the data."""
    rows: list[Gain]
    """One entry for each list size, ascending."""


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
    empirical: float | None = None
    """Fraction of the pairs that are strictly in order, over all positives and the negatives of rank ⌊n·fpr_min⌋ + 1 to
    ⌈n·fpr_max⌉ (Narasimhan & Agarwal 2016, eq. 2). It treats ties and the ends of the window differently from `value`.
    Null without a curve."""


class Height(Resource):
    """The TPR at a given FPR. The interval includes the uncertainty of the threshold."""

    fpr: float
    """False positive rate."""
    tpr: float
    """True positive rate at this FPR."""
    low: Low
    high: High


class _OfPart(Resource):
    """The part of a model's data, and the level of the intervals."""

    model_id: ModelId
    on: OnPart
    level: Level


class SegmentCondition(Resource):
    """What all rows of a segment have in a column."""

    column: ColumnName
    value: str | None
    """The category, number or range of numbers. Null if the value is missing."""


class WeakSegment(Resource):
    """A segment of the rows in which the model ranks worse than elsewhere."""

    conditions: list[SegmentCondition]
    """One or two; the rows meet all of them."""
    verdict: Literal["worse", "random", "wrong_way_round"]
    """`worse`: than within the other values. `random`: the AUC is also below 0.55. `wrong_way_round`: below 0.5. Both
    at level 0.95 over all segments."""
    auc: float
    """AUC within the segment."""
    auc_of_others: float
    """Mean AUC within the other values of the same columns."""
    drop_low: float
    """Lower limit of `auc_of_others` − `auc`, at level 0.95 over all segments that were looked at."""
    rows: int
    """Number of rows in the segment."""
    positives: int
    """Number of positives in the segment."""
    share: float
    """Share of the weight of all rows."""
    words: str
    """The finding as a sentence."""


class WeakSegments(Resource):
    """The segments in which the model ranks worse than elsewhere."""

    segments: int
    """Number of segments that were looked at: categories, missing values and ranges of numbers, and pairs of them of
    five columns. Each has at least 10 independent rows of each class, and at most half of the rows."""
    rows: int
    """Number of rows that were looked at: all, or a random sample."""
    found: list[WeakSegment]
    """The greatest drop first. Empty if no segment is significantly worse."""


class CurveMetrics(Resource):
    """Ranking metrics of rows with one label."""

    auc: Interval
    """Area under the ROC curve."""
    pauc: list[WindowArea]
    """Partial AUC over each window."""
    tpr_at_fpr: list[Height]
    """TPR at fixed false positive rates."""
    positives: Positives
    negatives: Negatives
    ties: float
    """Fraction of the positive–negative pairs that have equal scores."""
    lists: ListMetrics | None = None
    """Metrics within queries; all other metrics treat the rows as one list. Null without queries."""
    weak_segments: WeakSegments | None = None
    """Segments of the rows in which the model ranks worse than elsewhere. Null for training rows, with too few rows of
    a class, with queries, if the model separates the classes, and for a validation table that is read column by
    column."""


class Metrics(CurveMetrics, _OfPart):
    """Ranking metrics of a model on one part of the data."""

    approximate: bool = Field(
        description="Applies to the curve and the values read from it, not to the areas. "
        + APPROXIMATE
    )
    gini: Interval = Field(description=GINI)
    ks: float | None = Field(description=KS + " Null without a curve.")
    ks_threshold: FiniteOrNull
    """The threshold with the largest TPR − FPR. If the model ranks better than chance, this difference is `ks`. Null
    without a curve, or if the best is to flag no rows."""
    operating_point: Cutoff | None
    """Rates on this part at the model's threshold, which was chosen on the validation rows. Null unless the objective
    is `tpr`."""
    metric: MetricEstimate | None = None
    """The metric of an objective such as `average_precision` or `precision` on this part, as in `…/metric-estimates`. A
    row count refers to the validation rows. Null for other objectives, and for `ndcg` with repeated
    cross-validation."""
    positive_weight: float
    """Total weight of the positive rows."""
    negative_weight: float
    """Total weight of the negative rows."""
    lists: ListMetrics | None = None
    """Metrics within queries; all other metrics treat the rows as one list. Null without queries."""


class EvaluatedPairs(Resource):
    """Metrics of the order of pairs of items."""

    pair_order: Interval
    """Weighted fraction of the pairs in order; a tie counts half. The interval allows for pairs that share an item."""
    misrank_fraction: float
    """Weighted fraction of the pairs out of order; a tie counts fully."""
    ties: float
    """Weighted fraction of the pairs that have equal scores."""
    pairs: int
    """Number of pairs."""
    items: int
    """Number of different items in the pairs."""
    weight: float
    """Total weight of the pairs."""
    effective_pairs: float
    """Effective number of pairs in the worst case: this many pairs without shared items would be as informative."""


class PairMetrics(EvaluatedPairs, _OfPart):
    """Metrics of a model trained on pairs, on the pairs of one part."""


# Beside the stored document, because responses have one type of interval, whose members may be null.
class GradedOrder(Resource):
    """Ranking metrics of graded rows, treated as one list."""

    c_index: Interval
    """Fraction of the pairs of rows with different grades that are in order; a tie counts half."""
    mean_auc: Interval
    """Mean of the AUC over all pairs of grades."""
    volume: Interval | None
    """Probability that one random row of each grade are all in order. Null for more than nine grades."""
    pairwise: list[list[float | None]]
    """AUC of each grade (column) over each lower grade (row), by ascending grade; other entries are null."""


class EvaluatedGrades(Resource):
    """Ranking metrics on rows with grades."""

    grades: list[GradeRows]
    """Number of rows of each grade, without rows of weight 0."""
    lists: ListMetrics | None
    """Metrics within queries. Null if there are fewer than two queries with rows of different grades."""
    order: GradedOrder | None
    """Metrics of all rows as one list. Null with queries."""


class GradedMetrics(EvaluatedGrades, _OfPart):
    """Metrics of a model trained on grades, on one part of the data."""


class EvaluatedLabel(Resource):
    """Ranking metrics of one label's scores."""

    label: str
    """Name of the label."""
    auc: Interval | None
    """Area under the ROC curve. Null if there are too few rows of a class."""
    pauc: list[WindowArea]
    """Partial AUC over each window."""
    positives: Positives
    negatives: Negatives
    ties: float | None
    """Fraction of the positive–negative pairs that have equal scores. Null if `auc` is null."""


class LabelMetrics(EvaluatedLabel):
    """Ranking metrics of one label's scores, on one part of the data."""

    ties: float | None
    """Fraction of the positive–negative pairs that have equal scores. Null if `auc` is null."""


class MeanArea(Resource):
    """Mean of a partial AUC over the labels."""

    fpr_min: FprMin
    fpr_max: FprMax
    value: float | None
    """Mean over the labels. Null if no label has the value."""


class MultilabelMetrics(_OfPart):
    """Metrics of a model with several labels on one part of the data: for each label, and their means."""

    labels: list[LabelMetrics]
    """Metrics of each label."""
    evaluated: int
    """Number of labels that have an AUC. The means are over these."""
    mean_auc: float | None
    """Mean AUC over these labels. Null if there are none."""
    mean_pauc: list[MeanArea]
    """Mean partial AUC over these labels, for each window."""


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
