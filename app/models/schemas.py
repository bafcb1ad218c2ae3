"""Models over HTTP."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import Field, StringConstraints, model_validator

from app.http.schemas import (
    GINI,
    KS,
    Body,
    CreatedAt,
    DatasetId,
    DatasetVersion,
    EvaluationId,
    FprMax,
    FprMin,
    Interval,
    JobId,
    Kind,
    Level,
    ModelId,
    Negatives,
    PageOf,
    Positives,
    Resource,
    Text,
    Timestamp,
    one_of,
)
from app.ingest.formats import notation_fields
from app.models import margins
from app.models.calibrations import LEARNT_ON
from app.models.reason_codes import MAX_ENTRIES, Dictionary
from app.models.service import (
    AliasState,
    CutoffsAlong,
    Listed,
    PartName,
    is_approximate,
    metric_record,
)
from app.platform import documents
from app.platform.documents import (
    AliasCutoff,
    CalibrationPeriods,
    CalibrationShape,
    FoldChosen,
    GradeRows,
    ListMetrics,
    MonotoneProof,
    ReasonDirection,
    ReliabilityPoint,
    ScoreParts,
    StoredReasonEntry,
)
from app.platform.errors import NO_NUL_PATTERN, PLAIN_PATTERN
from app.platform.tables import Model as ModelRow
from app.platform.tables import ModelCalibration

if TYPE_CHECKING:
    from core import metrics

Part = Literal["validation", "train"]
OnPart = Annotated[
    Part, Field(description="Part of the data: the validation rows or the training rows.")
]
APPROXIMATE = (
    "True if the model was cross-validated. The curve then comes from out-of-fold scores, "
    "converted to the scale of the served ranker. The thresholds of the served ranker itself were "
    "not tested."
)
CALIBRATION_METHODS = ("platt", "beta", "isotonic")
CANDIDATE_STATES = ("chosen", "left", "failed", "untried")
BandKind = Literal["pointwise", "simultaneous"]


def _is_none(value: object) -> bool:
    return value is None


class Point(Resource):
    """A point of a ROC curve: the rates if every row with a score of at least `threshold` is flagged."""

    fpr: float = Field(description="False positive rate at this threshold.")
    tpr: float = Field(description="True positive rate at this threshold.")
    threshold: float | None = Field(
        description="Lowest score that is flagged. Null: no row is flagged."
    )
    low: float | None = Field(
        default=None,
        exclude_if=_is_none,
        description="Lower confidence limit of the TPR at this FPR. Present only with `band`.",
    )
    high: float | None = Field(
        default=None,
        exclude_if=_is_none,
        description="Upper confidence limit of the TPR at this FPR. Present only with `band`.",
    )


class Band(Resource):
    """The confidence band of a ROC curve."""

    kind: BandKind = Field(
        description="`pointwise`: the limits hold for each point separately. `simultaneous`: they hold for the "
        "whole curve at once."
    )
    level: float = Field(description="Confidence level of the band.")


class Points(Resource):
    """A ROC curve from (0, 0) to (1, 1)."""

    exact: bool = Field(description="False if points were omitted because of `max_points`.")
    total_points: int = Field(description="Number of points of the full curve.")
    band: Band | None = Field(
        default=None,
        exclude_if=_is_none,
        description="The confidence band. Present only if `band` was requested.",
    )
    points: list[Point] = Field(description="The points of the curve, by ascending FPR.")


class Roc(Points):
    """The ROC curve of a model on one part of its data."""

    model_id: ModelId
    on: OnPart
    approximate: bool = Field(description=APPROXIMATE)


class EvaluationRoc(Points):
    """The ROC curve of an evaluation."""

    evaluation_id: EvaluationId


CurveKind = Literal["precision_recall", "gains", "cost", "histogram"]


class ListPoint(Resource):
    """A point of a curve with the threshold it belongs to, or one bin of the histogram."""

    x: float = Field(description="Horizontal coordinate; see `axes`.")
    y: float = Field(description="Vertical coordinate; see `axes`.")
    threshold: float | None = Field(
        description="Lowest score that is flagged. For a histogram: lower end of the bin. Null: no row is "
        "flagged."
    )
    high: float | None = Field(
        default=None,
        exclude_if=_is_none,
        description="Upper end of the bin. Present only in a histogram.",
    )
    negatives: float | None = Field(
        default=None,
        exclude_if=_is_none,
        description="Fraction of the negatives in the bin. Present only in a histogram.",
    )


class ListCurve(Resource):
    """A precision-recall, gains or cost curve, or a histogram of the scores."""

    kind: CurveKind = Field(description="Kind of curve.")
    axes: list[str] = Field(
        description="Meaning of `x` and `y`: recall and precision; fraction of the rows and recall; weight and "
        "cost; or the lowest score of a bin and the fraction of the positives in it.",
        examples=[["recall", "precision"]],
    )
    prevalence: float | None = Field(
        description="Fraction of positives that the curve assumes. Default: that of the data. Null for cost "
        "curves, whose weight includes it, and for histograms, which show each class separately."
    )
    exact: bool = Field(description="False if points were omitted because of `max_points`.")
    total_points: int = Field(description="Number of points of the full curve.")
    points: list[ListPoint] = Field(
        description="The points of the curve, from the highest threshold to the lowest; the bins of a histogram, "
        "from the lowest score to the highest."
    )


class ModelCurve(ListCurve):
    """A curve of a model on one part of its data."""

    model_id: ModelId
    on: OnPart
    approximate: bool = Field(description=APPROXIMATE)


class EvaluationCurve(ListCurve):
    """A curve of a model on the rows of an evaluation."""

    evaluation_id: EvaluationId
    model_id: ModelId


class Cost(Interval):
    """Mean cost per row at this threshold."""

    flag_none: float = Field(description="Mean cost per row if no row is flagged.")
    flag_all: float = Field(description="Mean cost per row if every row is flagged.")
    false_positive: float = Field(description="Cost of a false positive, as requested.")
    false_negative: float = Field(description="Cost of a false negative, as requested.")


class Cutoff(Resource):
    """A cutoff: a threshold, and the rates that result from flagging every row with at least this score."""

    threshold: float | None = Field(
        description="Lowest score that is flagged. Null: no row is flagged."
    )
    fpr: Interval = Field(description="Fraction of the negatives that are flagged.")
    tpr: Interval = Field(description="Fraction of the positives that are flagged.")
    precision: Interval = Field(
        description="Fraction of the flagged rows that are positive, at this `prevalence`."
    )
    lift: Interval = Field(
        description="`precision` divided by `prevalence`. Random flagging has a lift of 1."
    )
    flagged: Interval = Field(
        description="Fraction of all rows that are flagged, at this `prevalence`."
    )
    threshold_low: float | None = Field(
        description="Lower end of a confidence interval for the threshold that has the requested rate, or the "
        "lowest cost, in the population. Null: the data set no limit."
    )
    threshold_high: float | None = Field(
        description="Upper end of that interval. Null: the data set no limit."
    )
    prevalence: float = Field(
        description="Fraction of positives that precision, lift and cost assume. Default: that of the data."
    )
    tpr_at_fpr: Interval | None = Field(
        description="The TPR at exactly the requested `fpr`. The interval includes the uncertainty of the "
        "threshold. Null if no `fpr` was requested."
    )
    fpr_at_tpr: Interval | None = Field(
        description="The FPR at exactly the requested `tpr`. Null if no `tpr` was requested."
    )
    cost: Cost | None = Field(description="Mean cost per row. Null if no costs were given.")


class RateGuarantee(Resource):
    """The guarantee of a threshold for future rows from the same population."""

    rate: Annotated[str, one_of(("fpr", "tpr"))] = Field(description="The guaranteed rate.")
    limit: float = Field(
        description="The guaranteed limit: the FPR is at most this, or the TPR is at least this."
    )
    confidence: float = Field(
        description="Probability, over samples like this one, with which the guarantee holds at least."
    )
    rows: int = Field(
        description="Number of rows that the guarantee is based on: negatives for an FPR, positives for a TPR."
    )
    needed: int = Field(
        description="Smallest number of these rows with which any threshold can be guaranteed."
    )
    errors: int = Field(
        description="Largest number of these rows that the threshold may get wrong: negatives flagged or "
        "positives missed."
    )
    broken: float = Field(
        description="Upper bound on the probability that the guarantee fails: at most 1 − `confidence`."
    )


class OperatingPoint(Cutoff):
    """One threshold and its consequences on one part of the data."""

    guarantee: RateGuarantee | None = Field(
        default=None, description="The guarantee. Null if no `confidence` was requested."
    )

    model_id: ModelId
    on: OnPart
    approximate: bool = Field(description=APPROXIMATE)


TOGETHER, EACH = "together", "each"
TOGETHER_OR_EACH = (TOGETHER, EACH)
CUTOFFS_BY_GROUP = (
    "Each cutoff applies only to the rows of its group. Check whether a cutoff that depends on "
    "the group is allowed."
)


class GroupGuarantee(Resource):
    """A cutoff for the rows of one group, with a guarantee within that group."""

    value: str | None = Field(
        description="Value of the column as text. Null: the rows without a value."
    )
    threshold: float | None = Field(
        description="Lowest score that is flagged in this group. Null if the group has too few rows."
    )
    rows: int = Field(
        description="Number of rows of the group that the guarantee is based on: negatives for an FPR, positives "
        "for a TPR."
    )
    needed: int = Field(
        description="Smallest number of these rows with which a cutoff can be guaranteed."
    )
    errors: int | None = Field(
        description="Largest number of these rows that the cutoff may get wrong. Null without a cutoff."
    )
    broken: float | None = Field(
        description="Upper bound on the probability that the guarantee fails in this group. Null without a "
        "cutoff."
    )
    fpr: Interval | None = Field(
        description="FPR of the cutoff in the group. Null if there is no cutoff, if the group has no negatives, "
        "or if their weights differ."
    )
    tpr: Interval | None = Field(
        description="TPR of the cutoff in the group. Null if there is no cutoff, if the group has no positives, "
        "or if their weights differ."
    )


class GuaranteesByGroup(Resource):
    """Cutoffs by group, all with the same guarantee."""

    column: str = Field(description="The column that defines the groups.")
    by_group: Annotated[str, one_of(TOGETHER_OR_EACH)] = Field(
        description="`together`: all guarantees hold at once with the confidence. `each`: each guarantee holds "
        "separately with the confidence."
    )
    threshold: float | None = Field(
        description="One cutoff whose guarantee holds in every group. Null if a group has too few rows."
    )
    groups: list[GroupGuarantee] = Field(description="The cutoff of each group.")
    note: str = Field(description="A caution about cutoffs by group.")


class EvaluationOperatingPoint(Cutoff):
    """One threshold and its consequences on the rows of an evaluation."""

    guarantee: RateGuarantee | None = Field(
        default=None, description="The guarantee. Null if no `confidence` was requested."
    )
    evaluation_id: EvaluationId
    model_id: ModelId
    groups: GuaranteesByGroup | None = Field(
        default=None, description="Cutoffs by group. Null unless `by_group` was requested."
    )


class OperatingPoints(Resource):
    """Thresholds along the ROC curve of one part of the data, from flagging no row to flagging all rows."""

    model_id: ModelId
    on: OnPart
    approximate: bool = Field(description=APPROXIMATE)
    level: Level = Field(description="Confidence level of each interval by itself.")
    exact: bool = Field(description="False if points of the curve were omitted.")
    total_points: int = Field(description="Number of points of the full curve.")
    least_cost: int | None = Field(
        description="Index in `points`, from 0, of the point with the lowest cost. Null if no costs were given."
    )
    of_objective: int | None = Field(
        description="Index in `points`, from 0, of the best point at the FPR of the objective `tpr`. Null for "
        "other objectives."
    )
    of_flagged: int | None = Field(
        description="Index in `points`, from 0, of the best point that flags at most the fraction `flagged` of "
        "the rows. Null if `flagged` was not given."
    )
    of_aliases: dict[str, int] = Field(
        description="Alias → index in `points`, from 0, of the point that flags the same rows. Only aliases with "
        "a cutoff; if there are more than 20, the most recently moved."
    )
    probabilities: list[float | None] | None = Field(
        description="For each entry of `points`, the calibrated probability of a row with exactly this score; "
        "null where no row is flagged. Null if the model has no calibration."
    )
    points: list[Cutoff] = Field(
        description="The thresholds with their rates, from flagging no row to flagging all rows."
    )


def cutoffs_of(
    found: CutoffsAlong, on: Part, probabilities: list[float | None] | None
) -> OperatingPoints:
    """Show cuts along a curve, and the probabilities of their thresholds."""
    of = found.of
    return OperatingPoints(
        model_id=of.model.id,
        on=on,
        approximate=is_approximate(of.model, on),
        level=of.level,
        exact=len(found.points) == len(of.curve),
        total_points=len(of.curve),
        least_cost=found.least_cost,
        of_objective=found.of_objective,
        of_flagged=found.of_flagged,
        of_aliases=found.of_aliases,
        probabilities=probabilities,
        points=[point_of(point) for point in found.points],
    )


def point_of(point: metrics.OperatingPoint) -> Cutoff:
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
    return Cutoff(
        threshold=finite(point.threshold),
        threshold_low=finite(point.threshold_low),
        threshold_high=finite(point.threshold_high),
        fpr=_shown(point.fpr),
        tpr=_shown(point.tpr),
        precision=_shown(point.precision),
        lift=_shown(point.lift),
        flagged=_shown(point.flagged),
        prevalence=point.prevalence,
        tpr_at_fpr=None if point.tpr_at_fpr is None else _shown(point.tpr_at_fpr),
        fpr_at_tpr=None if point.fpr_at_tpr is None else _shown(point.fpr_at_tpr),
        cost=cost,
    )


def guarantee_of(guarantee: metrics.Guarantee | None) -> RateGuarantee | None:
    """Show a promise."""
    return (
        None if guarantee is None else RateGuarantee.model_validate(guarantee, from_attributes=True)
    )


def _shown(interval: metrics.Interval) -> Interval:
    return Interval(**{bound: finite(value) for bound, value in interval._asdict().items()})


def finite(value: float) -> float | None:
    """JSON knows neither NaN nor infinity."""
    return value if math.isfinite(value) else None


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


class ModelMetricEstimates(MetricEstimates):
    """Metrics of a model on one part of its data."""

    model_id: ModelId
    on: OnPart
    approximate: bool = Field(description=APPROXIMATE)


class EvaluationMetricEstimates(MetricEstimates):
    """Metrics of a model on the rows of an evaluation."""

    evaluation_id: EvaluationId
    model_id: ModelId


class Gain(Resource):
    """One row of a gains table: the highest-scored rows down to a given fraction."""

    share: float = Field(description="Fraction of all rows.")
    count: float = Field(description="Number of rows, or their total weight if rows are weighted.")
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


class ModelGains(Gains):
    """The gains table of a model on one part of its data."""

    model_id: ModelId
    on: OnPart
    approximate: bool = Field(description=APPROXIMATE)


class EvaluationGains(Gains):
    """The gains table of a model on the rows of an evaluation."""

    evaluation_id: EvaluationId
    model_id: ModelId


def metric_estimates_of(found: Sequence[metrics.MetricEstimate], level: float) -> dict[str, Any]:
    """Show figures: the fields of `Figures`."""
    return {
        "level": level,
        "metrics": [MetricEstimate.model_validate(metric_record(each)) for each in found],
    }


def gains_of(found: Sequence[metrics.Gain], prevalence: float, level: float) -> dict[str, Any]:
    """Show a gains table: the fields of `Gains`."""
    return {
        "level": level,
        "prevalence": prevalence,
        "rows": [
            Gain(
                share=gain.share,
                count=gain.size,
                threshold=gain.threshold,
                tied=gain.tied,
                taken=gain.taken,
                positives=gain.positives,
                precision=_shown(gain.precision),
                recall=_shown(gain.recall),
                lift=_shown(gain.lift),
            )
            for gain in found
        ],
    }


class MeasuredReliability(Resource):
    """How well probabilities match the outcomes on rows that the calibration was not fitted on."""

    level: Level = Field(description="Confidence level of each interval by itself.")
    n: int = Field(description="Number of rows.")
    n_positives: Positives
    predicted: float = Field(description="Mean predicted probability.")
    observed: float = Field(description="Observed fraction of positives.")
    brier: ScoreParts = Field(description="Brier score: the mean of (probability − label)².")
    log: ScoreParts = Field(description="Log loss, with natural logarithms.")
    in_the_large: Interval | None = Field(
        description="Calibration in the large: the log odds to add to every probability so that predicted and "
        "observed positives agree. Null if it cannot be estimated."
    )
    slope: Interval | None = Field(
        description="Calibration slope: the factor of the log odds. Below 1: the probabilities are too extreme. "
        "Null if all probabilities are equal."
    )
    shape: CalibrationShape | None = Field(
        default=None,
        description="Calibration errors that change sign along the probabilities, which level and slope do not "
        "show. Null if there are too few rows to test it, or if an earlier version measured the rows.",
    )
    histogram: list[float] = Field(
        description="Fraction of the rows with a probability in [0, 0.1), [0.1, 0.2), …, [0.9, 1]."
    )
    points: list[ReliabilityPoint] = Field(
        description="Points of the reliability diagram, by ascending probability."
    )


class Reliability(MeasuredReliability):
    """How well the probabilities match the outcomes on the calibration's own rows. Each row is predicted by a
    calibration fitted on other rows.
    """

    later: bool = Field(
        default=False,
        description="True: the rows are those of the last time window, and the calibration was fitted on the "
        "windows before. False: the rows are cross-fitted, which does not test later rows.",
    )
    periods: CalibrationPeriods | None = Field(
        default=None,
        description="Calibration level of each time window. Null without validation by time windows, or with too "
        "few rows.",
    )


class CalibrationRequest(Body):
    """The dataset to fit a calibration on."""

    dataset_id: Text = Field(
        description="A ready dataset with the model's features and label. The model must not have been trained on "
        "its rows."
    )


class CalibrationSummary(Resource):
    """One version of a calibration."""

    version: int = Field(description="Version number of the calibration, from 1.")
    method: Annotated[str, one_of(CALIBRATION_METHODS)] = Field(
        description="`platt`, `beta` or `isotonic`: the method with the lowest log loss on held-out folds."
    )
    trained_on: Annotated[str, one_of(LEARNT_ON)] = Field(
        description="Rows that the calibration was fitted on. `validation`: the validation rows. `out_of_fold`: "
        "the out-of-fold scores of a cross-validated model, on the scale of the served ranker. "
        "`dataset`: a later dataset."
    )
    dataset: DatasetVersion | None = Field(
        description="Dataset of these rows. Null if it was not recorded."
    )
    rows: int = Field(description="Number of rows that the calibration was fitted on.")
    positives: Positives
    prevalence: float = Field(
        description="Fraction of positives among these rows, by weight. Probabilities assume this prevalence "
        "unless a request states another."
    )
    job_id: JobId
    created_at: CreatedAt


class Calibration(CalibrationSummary):
    """The calibration of a model: a non-decreasing map from scores to probabilities."""

    model_id: ModelId
    log_losses: dict[str, float] = Field(
        description="Mean log loss of each compared method on held-out folds. Empty if a class has too few rows "
        "to compare methods; the method is then `platt`."
    )
    reliability: Reliability | None = Field(
        description="How well the probabilities match the outcomes, on held-out rows. Null if there are too few "
        "rows."
    )
    history: list[CalibrationSummary] = Field(
        description="All versions, the newest first. The newest is served."
    )


def calibration_of(
    model: ModelRow, row: ModelCalibration, history: Sequence[ModelCalibration]
) -> Calibration:
    """Show a calibration."""
    return Calibration(
        **_calibration_summary(row),
        model_id=model.id,
        log_losses=row.log_losses,
        reliability=None
        if row.reliability is None
        else Reliability.model_validate(row.reliability),
        history=[CalibrationSummary(**_calibration_summary(each)) for each in history],
    )


def _calibration_summary(row: ModelCalibration) -> dict[str, Any]:
    return {name: getattr(row, name) for name in CalibrationSummary.model_fields}


class SearchTrial(Resource):
    """A candidate of a parameter search."""

    parameters: dict[str, Any] = Field(description="The searched parameters of the candidate.")
    value: float | None = Field(
        description="Mean value of the objective `selected_by` on the inner validation rows. Higher is better. "
        "Null if the fit failed."
    )
    auc: float | None = Field(
        default=None,
        description="Mean AUC on the inner validation rows. Null if it was not measured.",
    )
    rows: float = Field(
        default=1.0, description="Fraction of the training rows in the candidate's last fit."
    )
    seconds: float | None = Field(
        default=None, description="Fit time in seconds. Null if it was not measured."
    )
    state: Annotated[str, one_of(CANDIDATE_STATES)] | None = Field(
        default=None,
        description="`chosen`, `left` (not chosen), `failed` or `untried`. Null if it was not recorded.",
    )
    reason: str | None = Field(
        default=None, description="Why the candidate failed or was not tried. Null otherwise."
    )


class Search(Resource):
    """The candidates and the choice of a parameter search on splits of the training rows. The inner validation rows are
    not used for any metrics.

    With cross-validation each fold has its own search on its own training rows: see `folds_chosen`. All other members
    describe the search for the served ranker.
    """

    method: Annotated[str, one_of(("grid", "random", "halving"))] = Field(
        description="`grid`, `random` or `halving`."
    )
    space: dict[str, Any] = Field(
        description="The searched parameters, each with its values or its range."
    )
    n_candidates: int | None = Field(
        default=None, description="Number of candidates drawn. Null for a grid search."
    )
    folds: int | None = Field(
        default=None, description="Number of inner folds. Null: one part was held out."
    )
    fraction: float = Field(
        description="Fraction of the training rows held out to compare candidates. Not used with `folds`."
    )
    candidates: list[SearchTrial] = Field(description="The candidates and their results.")
    chosen: dict[str, Any] = Field(
        description="The best parameters; among ties, those with the fewest rounds. The served ranker is fitted "
        "with them on all training rows."
    )
    folds_chosen: list[FoldChosen] = Field(
        description="The parameters chosen in each fold. Empty without cross-validation."
    )
    seconds: float = Field(description="Duration of the search in seconds, without `fit_seconds`.")


class Feature(Resource):
    """A feature that the model uses."""

    name: str = Field(description="Name of the column.")
    type: Annotated[str, one_of(("numeric", "boolean", "datetime", "categorical"))] = Field(
        description="`numeric`, `boolean`, `datetime` or `categorical`."
    )
    missing: bool = Field(
        description="True if the feature had missing values in training. Rows to score may then omit it."
    )
    categories: list[str] | None = Field(
        default=None,
        description="The first 100 categories in text order; the artifact has all. An unknown category counts as "
        "missing. Null unless the feature is categorical.",
    )
    n_categories: int | None = Field(
        default=None, description="Number of categories. Null unless the feature is categorical."
    )


class LabelValues(Resource):
    """One label of a model with several labels, and its two values."""

    name: str = Field(description="Name of the label column.")
    positive: str = Field(description="Value that counts as positive.")
    negative: str = Field(description="Value that counts as negative.")


class Artifact(Resource):
    """The file of the trained model."""

    sha256: str = Field(description="SHA-256 of the file.")
    bytes: int = Field(description="Size of the file in bytes.")


class ModelSummary(Resource):
    """The members that a model and a list of models share."""

    id: str = Field(description="Id of the model.")
    name: str = Field(description="Name of the model. Its versions share the name.")
    version: int = Field(description="Version number under this name, from 1.")
    algorithm: dict[str, Any] = Field(description="Name of the algorithm and all its parameters.")
    objective: dict[str, Any] = Field(
        description="Objective of the training: `metric` and its parameters."
    )
    validation: dict[str, Any] = Field(description="Validation method and its parameters.")
    optimised_for: dict[str, Any] = Field(
        description="Objective that the algorithm itself optimises. It may differ from `objective`."
    )
    selected_by: dict[str, Any] | None = Field(
        description="Objective by which a search chose the parameters. Null without a search."
    )
    beats_baselines: bool | None = Field(
        description="True if the model is significantly better than every baseline: see `…/baselines`. Null "
        "without baselines."
    )
    dataset_id: DatasetId
    dataset: DatasetVersion | None = Field(
        description="The training dataset, under its name at that time. It remains when the dataset is deleted. "
        "Null if it was not recorded."
    )
    validation_dataset: DatasetVersion | None = Field(
        description="The dataset that the model was validated on. Null unless the validation method is `dataset`."
    )
    kind: Kind = Field(description="Kind of the training dataset.")
    job_id: JobId
    seed: int = Field(description="Seed of all random numbers of the training.")
    tags: dict[str, str] = Field(description="Tags of the training job.")
    created_at: CreatedAt


class ListedModel(ModelSummary):
    """A model in a list."""

    aliases: list[str] = Field(description="Aliases that point to this version.")
    auc: Interval | None = Field(
        description="AUC on the validation rows. Null without validation, and for models of pairs or several "
        "labels: see `…/metrics`."
    )


class ModelPage(PageOf[ListedModel]):
    """One page of models."""


class Model(ModelSummary):
    """A trained ranker."""

    aliases: list[str] = Field(description="Aliases that point to this version.")
    features: list[Feature] = Field(description="The features, in the order of the artifact.")
    dialect: dict[str, str] | None = Field(
        default=None,
        description="How the training table writes numbers and dates: `decimal`, `thousands` and `dates`. CSV "
        "rows and query parameters to score are read in the same way. Null: the default notation.",
    )
    label: str | None = Field(
        description="Name of the label column. Null if the model was trained on pairs or several labels."
    )
    query: str | None = Field(
        default=None,
        description="Column of the queries within which the model was trained. It is not a feature, so rows to "
        "score do not need it. Null without queries.",
    )
    positive: str | None = Field(
        description="Label value that counts as positive. Null without a single binary label."
    )
    negative: str | None = Field(
        description="Label value that counts as negative. Null without a single binary label."
    )
    labels: list[LabelValues] | None = Field(
        description="The labels of a model with several labels; otherwise null."
    )
    search: Search | None = Field(description="The parameter search. Null without one.")
    operating_point: Cutoff | None = Field(
        description="Best threshold on the validation rows at the FPR of the objective `tpr`. Null for other "
        "objectives and without validation."
    )
    warnings: list[str] = Field(description="Warnings from the training.")
    monotone: MonotoneProof | None = Field(
        description="Verification of the monotone constraints. Null if the model was trained without them."
    )
    importance_job_id: str | None = Field(
        description="Job that measures the feature importances after the training. Null if the training measured "
        "them."
    )
    fit_seconds: float = Field(description="Time of the final fit in seconds.")
    artifact: Artifact = Field(description="Checksum and size of the model file.")
    included: ModelParts | None = Field(
        default=None,
        exclude_if=_is_none,
        description="The parts requested by `include`. Absent without `include`.",
    )


def listed_of(found: Listed) -> ListedModel:
    """Show a model in a list."""
    row = found.metrics
    auc = None if row is None else Interval(value=row.auc, low=row.auc_low, high=row.auc_high)
    return ListedModel(**_common(found.model), aliases=found.aliases, auc=auc)


def model_of(row: ModelRow, aliases: list[str], point: metrics.OperatingPoint | None) -> Model:
    """Show a row in full."""
    return Model(
        **_common(row),
        aliases=aliases,
        features=[Feature.model_validate(feature) for feature in row.features],
        label=row.label,
        query=row.query,
        positive=row.positive,
        negative=row.negative,
        dialect=notation_fields(row.table_dialect) or None,
        labels=None
        if row.labels is None
        else [LabelValues.model_validate(label) for label in row.labels],
        search=None if row.search is None else Search.model_validate(row.search),
        operating_point=None if point is None else point_of(point),
        warnings=row.warnings,
        monotone=None if row.monotone is None else row.monotone,
        importance_job_id=row.importance_job_id,
        fit_seconds=row.fit_seconds,
        artifact=Artifact(sha256=row.artifact_sha256, bytes=row.artifact_bytes),
    )


def _common(row: ModelRow) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ModelSummary.model_fields.keys() - {"algorithm"}}
    return shown | {"algorithm": {"name": row.algorithm, **row.parameters}}


class MarginShare(Resource):
    """Fraction of the training pairs with a margin of at most `theta`."""

    theta: float = Field(description="Margin.")
    fraction: float = Field(
        description="Weighted fraction of the training pairs with at most this margin."
    )


class MisrankBound(Resource):
    """Upper bound on the probability that the model misranks a future pair: a measured fraction plus `epsilon`."""

    name: str = Field(description="Name of the bound.")
    source: str = Field(description="Publication and theorem of the bound.")
    value: float | None = Field(
        description="`margin_fraction` + `epsilon`. Null if the bound cannot be computed."
    )
    margin_fraction: float = Field(
        description="Fraction of the training pairs with a margin of at most theta. For the held-out bound: "
        "fraction of the held-out pairs that are misranked."
    )
    epsilon: float | None = Field(description="Sum of `terms`. Null if it cannot be computed.")
    terms: dict[str, float | None] = Field(
        description="The terms of `epsilon`. Null values cannot be computed."
    )
    applies: bool = Field(description="False if a condition of the theorem is not met.")
    reasons: list[str] = Field(description="Why the bound does not apply. Empty if it does.")
    vacuous: bool = Field(
        description="True if `value` is 1 or more: the bound then has no content."
    )


class BestPossibleMargin(Resource):
    """The largest margin of any combination of the weak rankers, computed by linear programming."""

    rho: float = Field(description="The largest possible margin, between `margin` and `edge`.")
    margin: float = Field(
        description="Margin of the best combination found: a lower bound on `rho`."
    )
    edge: float = Field(
        description="Largest edge under the pair weights found: an upper bound on `rho`."
    )
    short_by: float = Field(description="`rho` minus the margin of the model.")


class MarginRound(Resource):
    """One round of boosting, under the pair weights of that round."""

    round: int = Field(description="Number of the round, from 1.")
    edge: float = Field(
        description="r = d+ − d−: weight of the pairs in order minus weight of the pairs out of order."
    )
    tied: float = Field(description="d0: weight of the pairs that the weak ranker ties.")
    most_tied: float = Field(
        description="Theorem 7 requires `tied` to be below this: 2/3 (1 − r)(1 − r²)."
    )
    holds: bool = Field(description="True if `tied` is below `most_tied`.")


class MarginRounds(Resource):
    """The condition of Theorem 7 for each round, from the first."""

    total: int = Field(description="Number of rounds.")
    holds: int = Field(description="Number of rounds in which the condition holds.")
    data: list[MarginRound] = Field(description="One entry for each round shown.")


class RoundLoss(Resource):
    """Losses on the training rows after one round. Values too large for a float64 are null."""

    round: int = Field(description="Number of the round, from 1.")
    f: float | None = Field(description="F: the loss of AdaBoost, for scores with their intercept.")
    f_skew: float | None = Field(
        description="The part of F from the positives minus the part from the negatives."
    )
    f_tilde: float | None = Field(description="F̃: the loss of RankBoost.")
    smooth_margin: float | None = Field(
        description="−ln F̃ divided by the sum of the steps so far, with the smallest pair weight as 1. Null if "
        "the fit held out some of its rows."
    )


class RoundLosses(Resource):
    """The losses of each round, from the first."""

    total: int = Field(description="Number of rounds.")
    data: list[RoundLoss] = Field(description="One entry for each round shown.")


class Margins(Resource):
    """Margins of the training pairs (score differences divided by `l1_norm`) and the generalisation bounds based on
    them.
    """

    model_id: ModelId
    on: OnPart
    l1_norm: float = Field(description="Sum of the steps of all rounds. Scores are divided by it.")
    margin: float = Field(
        description="Smallest margin of a pair. Positive if all pairs are in order."
    )
    smooth_margin: float = Field(
        description="−ln of the ranking loss, divided by `l1_norm`. It is below `margin` and approaches it with "
        "more rounds."
    )
    weak_rankers: int = Field(description="Upper bound on the number of different weak rankers.")
    distribution: list[MarginShare] = Field(
        description="Distribution of the margins, from the smallest to the largest."
    )
    theta: float = Field(description="Margin at which the bounds are evaluated, as requested.")
    delta: float = Field(description="Probability that a bound fails, as requested.")
    bounds: list[MisrankBound] = Field(
        description="The bounds on the probability of misranking a future pair."
    )
    best: BestPossibleMargin | None = Field(
        description="The best margin of any combination of the weak rankers. Null if the linear programme is too "
        "large."
    )
    rounds: MarginRounds = Field(description="Condition of Theorem 7 in each round.")
    losses: RoundLosses = Field(description="Training losses of each round.")


_Share = Annotated[float, Field(gt=0, lt=1)]


_KEPT = ("fpr", "tpr", "flagged", "threshold")


class AliasGuarantee(Body):
    """The guarantee of every version behind an alias. Set exactly one of `fpr`, `tpr`, `flagged` and `threshold`."""

    fpr: _Share | None = Field(
        default=None, description="The FPR is at most this.", examples=[0.01]
    )
    tpr: _Share | None = Field(default=None, description="The TPR is at least this.")
    flagged: _Share | None = Field(
        default=None,
        description="At most this fraction of the rows is flagged, measured on the validation rows. Use it for a "
        "fixed review capacity.",
    )
    threshold: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        default=None,
        description="Rows with at least this score are flagged. Another version may have another score scale, so "
        "the same threshold can flag other rows.",
    )
    confidence: _Share | None = Field(
        default=None,
        description="Guarantees `fpr` or `tpr` for future rows with this confidence, as `…/operating-point` does. "
        "Null: the rate holds on the validation rows.",
        examples=[0.95],
    )

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        kept = [name for name in _KEPT if getattr(self, name) is not None]
        if len(kept) != 1:
            got = " and ".join(kept) or "none"
            raise ValueError(f"a guarantee must have exactly one of {', '.join(_KEPT)}, got {got}")
        if self.confidence is not None and kept[0] not in ("fpr", "tpr"):
            raise ValueError(f"confidence must come with fpr or tpr, got {kept[0]}")
        return self


_Words = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=2000, pattern=NO_NUL_PATTERN),
]
_Rows = Annotated[float, Field(gt=0.0, le=1e12, allow_inf_nan=False)]
_Cost = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class DecisionMemo(Body):
    """Why an alias is moved. The service stores the memo but does not compute anything from it."""

    reason: _Words | None = Field(
        default=None,
        description="Reason for the decision.",
        examples=["Review team of four since May."],
    )
    approved_by: _Words | None = Field(
        default=None, description="Who approved the decision.", examples=["Credit committee"]
    )
    review: _Rows | None = Field(
        default=None,
        description="Number of rows that can be reviewed, of every `rows` rows. Set both or neither.",
        examples=[200],
    )
    rows: _Rows | None = Field(
        default=None,
        description="Number of rows that arrive, for example in a day.",
        examples=[5000],
    )
    cost_false_positive: _Cost | None = Field(
        default=None, description="Cost of a false positive, in any unit.", examples=[1]
    )
    cost_false_negative: _Cost | None = Field(
        default=None,
        description="Cost of a false negative, in the unit of `cost_false_positive`. Set both or neither.",
        examples=[20],
    )
    prevalence: _Share | None = Field(
        default=None, description="Expected fraction of positives among future rows."
    )

    @model_validator(mode="after")
    def _in_pairs(self) -> Self:
        for one, other in (("review", "rows"), ("cost_false_positive", "cost_false_negative")):
            given = [name for name in (one, other) if getattr(self, name) is not None]
            if len(given) == 1:
                raise ValueError(f"{one} and {other} must be given together, got only {given[0]}")
        if self.review is not None and self.rows is not None and self.review > self.rows:
            raise ValueError(f"review must be at most rows = {self.rows:g}, got {self.review:g}")
        return self

    def as_stored(self) -> documents.DecisionMemo:
        """Return the memo as a document."""
        return cast(documents.DecisionMemo, self.model_dump(mode="json"))


class AliasTarget(Body):
    """The model that an alias should point to."""

    model_id: Text = Field(
        description="A model with the alias's name: its id, `name:version`, `name` (latest version) or another "
        "`name@alias`.",
        examples=["mdl_01a1f77425d3792391ae38bebae6593b"],
    )
    guarantee: AliasGuarantee | None = Field(
        default=None,
        description="The guarantee of the alias from now on. Null removes the guarantee. If absent, the alias "
        "keeps its current guarantee.",
    )

    memo: DecisionMemo | None = Field(
        default=None,
        description="Why the alias is moved. The memo is stored with this revision.",
    )

    def new_guarantee(self) -> documents.AliasGuarantee | Literal["keep"] | None:
        """Return the promise to store; "keep" if the request has none."""
        if "guarantee" not in self.model_fields_set:
            return "keep"
        if self.guarantee is None:
            return None
        given = self.guarantee
        kept: documents.AliasGuarantee = {
            "fpr": given.fpr,
            "tpr": given.tpr,
            "confidence": given.confidence,
        }
        if given.flagged is not None:
            kept["flagged"] = given.flagged
        if given.threshold is not None:
            kept["threshold"] = given.threshold
        return kept


class CurrentGuarantee(Resource):
    """The guarantee of an alias. Exactly one of `fpr`, `tpr`, `flagged` and `threshold` is set; the others are null."""

    fpr: float | None = Field(description="Upper limit of the FPR.")
    tpr: float | None = Field(description="Lower limit of the TPR.")
    flagged: float | None = Field(
        default=None, description="Largest fraction of the rows that is flagged."
    )
    threshold: float | None = Field(default=None, description="Lowest score that is flagged.")
    confidence: float | None = Field(
        description="Confidence with which the rate is guaranteed for future rows. Null: the rate holds on the "
        "validation rows."
    )


class StoredMemo(Resource):
    """Why an alias was moved. Members that were not given are null."""

    reason: str | None = Field(description="Reason for the decision.")
    approved_by: str | None = Field(description="Who approved the decision.")
    review: float | None = Field(
        description="Number of rows that can be reviewed, of every `rows` rows."
    )
    rows: float | None = Field(description="Number of rows that arrive in a period.")
    cost_false_positive: float | None = Field(description="Cost of a false positive.")
    cost_false_negative: float | None = Field(
        description="Cost of a false negative, in the same unit."
    )
    prevalence: float | None = Field(
        description="Expected fraction of positives among future rows."
    )


class AliasStep(Resource):
    """One revision of an alias: its model, guarantee and cutoff from this time on."""

    revision: int = Field(description="Revision number, from 1.")
    model_id: ModelId
    guarantee: CurrentGuarantee | None = Field(
        description="Guarantee of this revision. Null without one."
    )
    cutoff: AliasCutoff | None = Field(
        description="Cutoff of this revision. Null without a guarantee."
    )
    memo: StoredMemo | None = Field(
        description="Why the alias was moved. Null if no memo was given."
    )
    author: str | None = Field(
        description="Name of the key that moved the alias. Null if it was moved without a key."
    )
    at: Timestamp = Field(description="Time of the change.")


class AliasSummary(Resource):
    """An alias: a name that can be moved from one version of a model to another."""

    name: str = Field(description="Name of the models.")
    alias: str = Field(description="The alias, such as `live`.")
    revision: int = Field(description="Revision number, from 1. It is also the ETag.")
    model_id: str = Field(description="Id of the model that the alias points to.")
    guarantee: CurrentGuarantee | None = Field(
        description="Guarantee of every version behind the alias. Null: there is none, and score responses have "
        "no `flag`."
    )
    cutoff: AliasCutoff | None = Field(
        description="Threshold with which the current version meets the guarantee. Null without a guarantee."
    )
    memo: StoredMemo | None = Field(
        description="Why the alias was last moved. Null if no memo was given."
    )
    author: str | None = Field(
        description="Name of the key that last moved the alias. Null if it was moved without a key."
    )
    updated_at: Timestamp = Field(description="Time of the last change.")


class AliasPage(PageOf[AliasSummary]):
    """One page of aliases."""


class Alias(AliasSummary):
    """An alias with its history."""

    history: list[AliasStep] = Field(description="The revisions of the alias, the newest first.")


def alias_of(state: AliasState) -> Alias:
    """Show an alias with its history."""
    steps = [AliasStep.model_validate(step) for step in state.history]
    return Alias(**dict(AliasSummary.model_validate(state.alias)), history=steps)


class ReasonEntry(Body):
    """One reason code: its text and the features it covers. Contributions of features with the same code are summed."""

    code: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=PLAIN_PATTERN)] = (
        Field(examples=["R12"], description="Reason code.")
    )
    text: Annotated[
        str, StringConstraints(min_length=1, max_length=500, pattern=NO_NUL_PATTERN)
    ] = Field(
        description="Text of the reason. It must be the same in all entries with this code.",
        examples=["Income too low"],
    )
    columns: Annotated[list[Text], Field(min_length=1, max_length=1000)] = Field(
        description="Features of the latest version of the model that this code covers.",
        examples=[["income"]],
    )
    direction: ReasonDirection | None = Field(
        default=None,
        description="Use this code only for contributions that raise the score, or only for those that lower it. "
        "Null: both.",
    )
    min: float | str | None = Field(
        default=None,
        description="Use this code only for values of at least this; write a date as text. This and the next "
        "three members require exactly one column.",
    )
    max: float | str | None = Field(
        default=None,
        description="Use this code only for values of at most this; write a date as text.",
    )
    categories: Annotated[list[Text], Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="Use this code only for these categories."
    )
    missing: bool | None = Field(
        default=None,
        description="True: also for missing values and new categories, or only for them if no other condition is "
        "set. False: only for known values. Null: for all values, or only for known values if `min`, "
        "`max` or `categories` is set.",
    )

    def as_stored(self) -> documents.StoredReasonEntry:
        """Return the entry as a document."""
        return cast(documents.StoredReasonEntry, self.model_dump(mode="json"))


class ReasonCodesRequest(Body):
    """Reason codes for a model name."""

    entries: Annotated[list[ReasonEntry], Field(max_length=MAX_ENTRIES)] = Field(
        description="The reason codes. The first entry that matches a feature, its value and its direction is "
        "used. A feature without a matching entry gets a generic text such as `income is 52000`."
    )


class ReasonCodesStep(Resource):
    """One revision of the reason codes."""

    revision: int = Field(description="Revision number, from 1.")
    at: Timestamp = Field(description="Time of the change.")


class ReasonCodes(Resource):
    """The reason codes of a model name. They apply to all its versions."""

    name: str = Field(examples=["churn"], description="Name of the models.")
    revision: int = Field(description="Revision number, from 1. It is also the ETag.")
    entries: list[StoredReasonEntry] = Field(
        description="The reason codes, in the order in which they are matched."
    )
    at: Timestamp = Field(description="Time of this revision.")
    history: list[ReasonCodesStep] = Field(
        description="Up to 100 revisions, the newest first. Read one with `?revision=`."
    )


def reason_codes_of(found: Dictionary) -> ReasonCodes:
    """Show a revision of a dictionary."""
    return ReasonCodes(
        name=found.row.name,
        revision=found.row.revision,
        entries=found.row.entries,
        at=found.row.at,
        history=[ReasonCodesStep(revision=revision, at=at) for revision, at in found.revisions],
    )


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


class Metrics(Resource):
    """Ranking metrics of a model on one part of the data."""

    model_id: ModelId
    on: OnPart
    approximate: bool = Field(
        description="Applies to the curve and the values read from it, not to the areas. "
        + APPROXIMATE
    )
    level: Level = Field(description="Confidence level of the intervals.")
    auc: Interval = Field(description="Area under the ROC curve.")
    gini: Interval = Field(description=GINI)
    ks: float | None = Field(description=KS + " Null without a curve.")
    pauc: list[WindowArea] = Field(description="Partial AUC over each window.")
    tpr_at_fpr: list[Height] = Field(description="TPR at fixed false positive rates.")
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
    positives: Positives
    negatives: Negatives
    positive_weight: float = Field(description="Total weight of the positive rows.")
    negative_weight: float = Field(description="Total weight of the negative rows.")
    ties: float = Field(
        description="Fraction of the positive–negative pairs that have equal scores."
    )
    lists: ListMetrics | None = Field(
        default=None,
        description="Metrics within queries; all other metrics treat the rows as one list. Null without queries.",
    )


class PairMetrics(Resource):
    """Metrics of a model trained on pairs, on the pairs of one part."""

    model_id: ModelId
    on: OnPart
    level: Level = Field(description="Confidence level of the interval.")
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


class GradedMetrics(Resource):
    """Metrics of a model trained on grades, on one part of the data."""

    model_id: ModelId
    on: OnPart
    level: Level = Field(description="Confidence level of the intervals.")
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


class LabelMetrics(Resource):
    """Ranking metrics of one label's scores, on one part of the data."""

    label: str = Field(description="Name of the label.")
    auc: Interval | None = Field(
        description="Area under the ROC curve. Null if the part has too few rows of a class."
    )
    pauc: list[WindowArea] = Field(description="Partial AUC over each window.")
    positives: Positives
    negatives: Negatives
    ties: float | None = Field(
        description="Fraction of the positive–negative pairs that have equal scores. Null if `auc` is null."
    )


class MeanArea(Resource):
    """Mean of a partial AUC over the labels."""

    fpr_min: FprMin
    fpr_max: FprMax
    value: float | None = Field(description="Mean over the labels. Null if no label has the value.")


class MultilabelMetrics(Resource):
    """Metrics of a model with several labels on one part of the data: for each label, and their means."""

    model_id: ModelId
    on: OnPart
    level: Level = Field(description="Confidence level of the intervals.")
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


class AbsentPart(Resource):
    """A requested part that the model does not have."""

    part: PartName = Field(description="Name of the part.")
    code: str = Field(description="Error code that the part's own route returns.")
    detail: str = Field(description="Why the part is absent.")


class ModelParts(Resource):
    """Parts of a model, each as its own route returns it. Parts that the model does not have are listed in `absent`."""

    metrics: AnyMetrics | None = Field(
        default=None, exclude_if=_is_none, description="As returned by `…/metrics`."
    )
    roc: Roc | None = Field(
        default=None, exclude_if=_is_none, description="As returned by `…/roc`."
    )
    operating_points: OperatingPoints | None = Field(
        default=None, exclude_if=_is_none, description="As returned by `…/operating-points`."
    )
    operating_point: OperatingPoint | None = Field(
        default=None, exclude_if=_is_none, description="As returned by `…/operating-point`."
    )
    absent: list[AbsentPart] = Field(description="Requested parts that the model does not have.")


Model.model_rebuild()


def metrics_of(found: Mapping[str, Any]) -> AnyMetrics:
    """Show what is known of a part, in the shape of the model's kind."""
    if "pair_order" in found:
        return PairMetrics.model_validate(found)
    if "labels" in found:
        return MultilabelMetrics.model_validate(found)
    if "grades" in found:
        return GradedMetrics.model_validate(found)
    point = found["operating_point"]
    shown = {**found, "operating_point": None if point is None else point_of(point)}
    return Metrics.model_validate(shown)


class WindowBound(Resource):
    """Upper bound on 1 − pAUC of future rows: the measured value plus `epsilon`."""

    name: Annotated[str, one_of(("theorem_9", "held_out"))] = Field(
        description="`theorem_9` or `held_out`."
    )
    source: str = Field(description="Publication and theorem of the bound.")
    on: Part = Field(description="Part of the data that `risk` was measured on.")
    risk: float = Field(description="1 − pAUC of these rows, with the curve as a step function.")
    positives: Positives
    negatives: Negatives
    vc_dimension: int | None = Field(
        description="VC dimension of the class of thresholds on all scores that the algorithm can produce from "
        "these rows. Null if it is unknown, or if the model was trained without these rows."
    )
    epsilon: float | None = Field(description="Width of the bound. Null if it cannot be computed.")
    value: float | None = Field(
        description="`risk` + `epsilon`. Null if the bound cannot be computed."
    )
    vacuous: bool = Field(
        description="True if `value` is null, or 1 or more: the bound then has no content."
    )
    applies: bool = Field(description="False if a condition of the bound is not met.")
    reasons: list[str] = Field(description="Why the bound does not apply. Empty if it does.")


class WindowBounds(Resource):
    """Upper bounds on 1 − pAUC on future rows, over one window of false positive rates."""

    model_id: ModelId
    fpr_min: FprMin
    fpr_max: FprMax
    delta: float = Field(description="Probability that a bound fails, as requested.")
    bounds: list[WindowBound] = Field(description="The bounds.")


def bounds_of(found: margins.WindowBounds, delta: float) -> WindowBounds:
    """Show the bounds of one window."""
    low, high = found.window
    return WindowBounds(
        model_id=found.model.id,
        fpr_min=low,
        fpr_max=high,
        delta=delta,
        bounds=[WindowBound.model_validate(bound) for bound in found.bounds],
    )
