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
    DatasetVersion,
    Interval,
    Kind,
    PageOf,
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
APPROXIMATE = (
    "True if the model was cross-validated. The curve then comes from the out-of-fold scores, converted to "
    "the scale of the served ranker. The thresholds of the served ranker itself were not tested."
)
CALIBRATION_METHODS = ("platt", "beta", "isotonic")
CANDIDATE_STATES = ("chosen", "left", "failed", "untried")
BandKind = Literal["pointwise", "simultaneous"]


def _is_none(value: object) -> bool:
    return value is None


class Point(Resource):
    """The rates when every score of at least `threshold` is flagged. Null: nothing is flagged."""

    fpr: float
    tpr: float
    threshold: float | None
    low: float | None = Field(
        default=None,
        exclude_if=_is_none,
        description="Lower confidence limit of the curve's height at this FPR. Only with `band`.",
    )
    high: float | None = Field(
        default=None, exclude_if=_is_none, description="Upper confidence limit. Only with `band`."
    )


class Band(Resource):
    """The kind of the confidence limits."""

    kind: BandKind = Field(
        description="`pointwise`: for each point by itself. `simultaneous`: for the whole curve at once."
    )
    level: float


class Points(Resource):
    """A ROC curve from (0, 0) to (1, 1)."""

    exact: bool = Field(description="False if points were left out because of `max_points`.")
    total_points: int
    band: Band | None = Field(default=None, exclude_if=_is_none)
    points: list[Point]


class Roc(Points):
    """The ROC curve of a model on one part of its data."""

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)


class EvaluationRoc(Points):
    """The ROC curve of an evaluation."""

    evaluation_id: str


CurveKind = Literal["precision_recall", "gains", "cost", "histogram"]


class ListPoint(Resource):
    """A point of a curve of the list, and the cut that has it; or a bin of the histogram. Null: nothing is flagged."""

    x: float
    y: float
    threshold: float | None
    high: float | None = Field(
        default=None, exclude_if=_is_none, description="Upper end of the bin, of a histogram only."
    )
    negatives: float | None = Field(
        default=None,
        exclude_if=_is_none,
        description="Fraction of the negatives in the bin, of a histogram only.",
    )


class ListCurve(Resource):
    """A curve of the list that is worked off from its top."""

    kind: CurveKind
    axes: list[str] = Field(
        description="What x and y are: recall and precision; share of the list and recall; weight and cost; or the "
        "lowest score of a bin and the fraction of the positives in it.",
        examples=[["recall", "precision"]],
    )
    prevalence: float | None = Field(
        description="Fraction of positives that the curve assumes. Default: that of the data. Null for costs, whose "
        "weight includes it, and for a histogram, which has each class by itself."
    )
    exact: bool = Field(
        description="True if these are all points; false if only some of them, `max_points` at most."
    )
    total_points: int
    points: list[ListPoint]


class ModelCurve(ListCurve):
    """A curve of a model's list on one part of its data."""

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)


class EvaluationCurve(ListCurve):
    """A curve of a model's list on the rows of an evaluation."""

    evaluation_id: str
    model_id: str


class Cost(Interval):
    """Mean cost per row at this threshold."""

    flag_none: float = Field(description="Mean cost per row if no row is flagged.")
    flag_all: float = Field(description="Mean cost per row if every row is flagged.")
    false_positive: float
    false_negative: float


class Cutoff(Resource):
    """A threshold and its consequences: every score of at least `threshold` is flagged. Null: nothing is flagged."""

    threshold: float | None
    fpr: Interval = Field(description="Fraction of the negatives that are flagged.")
    tpr: Interval = Field(description="Fraction of the positives that are flagged.")
    precision: Interval
    lift: Interval
    flagged: Interval = Field(
        description="Fraction of all rows that are flagged, at this `prevalence`."
    )
    threshold_low: float | None = Field(
        description="Lower end of an interval, up to `threshold_high`, for the threshold that has the requested rate "
        "or the lowest cost in the population. Null: the data set no limit."
    )
    threshold_high: float | None
    prevalence: float = Field(
        description="Fraction of positives that precision, lift and cost assume. Default: that of the data."
    )
    tpr_at_fpr: Interval | None = Field(
        description="If `fpr` was requested: the TPR at exactly this FPR. The interval includes the uncertainty of "
        "the threshold."
    )
    fpr_at_tpr: Interval | None = Field(
        description="If `tpr` was requested: the FPR at exactly this TPR."
    )
    cost: Cost | None = Field(description="Mean cost per row, if costs were given.")


class RateGuarantee(Resource):
    """What the threshold promises of future rows that are drawn like these."""

    rate: Annotated[str, one_of(("fpr", "tpr"))] = Field(description="The rate that is promised.")
    limit: float = Field(description="The FPR stays at or below this, the TPR at or above it.")
    confidence: float = Field(
        description="Lowest probability that the promise is kept, over samples such as this one."
    )
    rows: int = Field(
        description="Number of negatives that the promise rests on; of positives, for a TPR."
    )
    needed: int = Field(
        description="Lowest number of them with which a threshold can be promised at all."
    )
    errors: int = Field(
        description="The threshold flags at most this many of the negatives, or misses at most this many of the "
        "positives."
    )
    broken: float = Field(
        description="Highest probability that the promise is broken: at most 1 - confidence."
    )


class OperatingPoint(Cutoff):
    """One threshold and its consequences on one part of the data."""

    guarantee: RateGuarantee | None = Field(
        default=None, description="The promise, if a `confidence` was requested; otherwise null."
    )

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)


TOGETHER, EACH = "together", "each"
TOGETHER_OR_EACH = (TOGETHER, EACH)
CUTOFFS_BY_GROUP = (
    "Each cut is for the rows of its group alone. Ask whether a cut that depends on the group is "
    "allowed."
)


class GroupGuarantee(Resource):
    """A cut for the rows of one group that keeps the promise among them."""

    value: str | None = Field(
        description="Value of the column as text. Null: the rows without a value."
    )
    threshold: float | None = Field(
        description="Rows of the group with at least this score are flagged. Null if the group has too few rows."
    )
    rows: int = Field(
        description="Number of the group's negatives (of its positives for a TPR), on which the promise rests."
    )
    needed: int = Field(description="Least number of them with which the cut can be promised.")
    errors: int | None = Field(
        description="The cut flags at most this many of the negatives, or misses at most this many of the positives."
    )
    broken: float | None = Field(
        description="Greatest probability that this group's promise is broken."
    )
    fpr: Interval | None = Field(
        description="FPR of the cut on the group's rows. Null without a cut or negatives, or if their weights differ."
    )
    tpr: Interval | None = Field(
        description="TPR of the cut on the group's rows. Null without a cut or positives, or if their weights differ."
    )


class GuaranteesByGroup(Resource):
    """Cuts that keep one promise in every group."""

    column: str
    by_group: Annotated[str, one_of(TOGETHER_OR_EACH)] = Field(
        description="`together`: all promises hold at once with the confidence. `each`: each by itself."
    )
    threshold: float | None = Field(
        description="The single cut that keeps the promise in every group. Null if a group has too few rows."
    )
    groups: list[GroupGuarantee]
    note: str = Field(description="What must be known of cuts by group.")


class EvaluationOperatingPoint(Cutoff):
    """One threshold and its consequences on the rows of an evaluation."""

    guarantee: RateGuarantee | None = Field(
        default=None, description="The promise, if a `confidence` was requested; otherwise null."
    )
    evaluation_id: str
    model_id: str
    groups: GuaranteesByGroup | None = Field(
        default=None, description="Cuts by group, if `by_group` asked for them; otherwise null."
    )


class OperatingPoints(Resource):
    """Thresholds along the curve of one part of the data, from the one that flags no row to the one that flags all."""

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)
    level: float = Field(description="Confidence level of each interval by itself.")
    exact: bool = Field(description="False if points of the curve were left out.")
    total_points: int = Field(description="Number of points of the curve.")
    least_cost: int | None = Field(
        description="Index in `points`, from 0, of the point with the lowest cost, if costs were given."
    )
    of_objective: int | None = Field(
        description="Index in `points`, from 0, of the best point at the FPR of the objective `tpr`."
    )
    of_flagged: int | None = Field(
        description="Index in `points`, from 0, of the best point that flags at most the fraction `flagged` of the "
        "rows, if that was given."
    )
    of_aliases: dict[str, int] = Field(
        description="For each alias of the model that flags rows, the index in `points`, from 0, of the point that "
        "flags the same of these rows; of more than 20 aliases, the last moved."
    )
    probabilities: list[float | None] | None = Field(
        description="For each of `points`, the probability of a row with exactly this score, by the calibration that "
        "the model is served with; null where nothing is flagged. Null if the model has no calibration."
    )
    points: list[Cutoff]


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
    """A figure of the ranking, with its interval and a test against chance."""

    metric: str = Field(description="The name of the figure, as it was asked for.")
    chance: float | None = Field(
        description="The figure of scores that say nothing. Null if that is 0."
    )
    p_value: float | None = Field(
        description="One-sided p-value of the hypothesis that the figure is no better than chance. Null without "
        "`chance`, if the rows of a class are worth fewer than 10 independent ones, or if the window of an area holds "
        "fewer than 3."
    )
    adjusted_p_value: float | None = Field(
        description="p-value adjusted by Holm over all figures of the request. Null without `p_value`."
    )


class MetricEstimates(Resource):
    """Figures of a ranking on some rows."""

    level: float = Field(description="Confidence level of each interval by itself.")
    metrics: list[MetricEstimate]


class ModelMetricEstimates(MetricEstimates):
    """Figures of a model on one part of its data."""

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)


class EvaluationMetricEstimates(MetricEstimates):
    """Figures of a model on the rows of an evaluation."""

    evaluation_id: str
    model_id: str


class Gain(Resource):
    """The first rows of the list, down to one size."""

    share: float = Field(description="Fraction of all rows.")
    count: float = Field(description="Number of rows; their weight, if rows are weighted.")
    threshold: float = Field(description="Lowest score among them.")
    tied: float = Field(description="Number of all rows with that score.")
    taken: float = Field(
        description="Number of those that are within the size; they are taken at random."
    )
    positives: float = Field(
        description="Number of positives among the first rows; the mean, if a tie lies across the cut."
    )
    precision: Interval
    recall: Interval
    lift: Interval


class Gains(Resource):
    """What a list catches, worked off from its top down to several sizes."""

    level: float = Field(description="Confidence level of each interval by itself.")
    prevalence: float = Field(
        description="Fraction of positives that the table assumes. Default: that of the data."
    )
    rows: list[Gain]


class ModelGains(Gains):
    """The gains table of a model on one part of its data."""

    model_id: str
    on: Part
    approximate: bool = Field(description=APPROXIMATE)


class EvaluationGains(Gains):
    """The gains table of a model on the rows of an evaluation."""

    evaluation_id: str
    model_id: str


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
    """How good probabilities are on rows that their calibration was not learnt on."""

    level: float = Field(description="Confidence level of each interval by itself.")
    n: int = Field(description="Number of rows.")
    n_positives: int
    predicted: float = Field(description="Mean probability.")
    observed: float = Field(description="Fraction of positives.")
    brier: ScoreParts = Field(description="Brier score: the mean of (probability − label)².")
    log: ScoreParts = Field(description="Log loss, with natural logarithms.")
    in_the_large: Interval | None = Field(
        description="Log odds to add to every probability so that as many positives are predicted as there are."
    )
    slope: Interval | None = Field(
        description="Factor of the log odds. Below 1: the probabilities are too extreme. Null if they are all equal."
    )
    shape: CalibrationShape | None = Field(
        default=None,
        description="Errors that change their sign along the probabilities, which level and slope do not show. Null if "
        "there are too few rows to test it, or if an earlier version measured the rows.",
    )
    histogram: list[float] = Field(
        description="Fraction of the rows with a probability in [0, .1), [.1, .2), …, [.9, 1]."
    )
    points: list[ReliabilityPoint]


class Reliability(MeasuredReliability):
    """How good the probabilities of a calibration are on rows of its own, each by a calibration of others."""

    later: bool = Field(
        default=False,
        description="True: the rows are of the last time window, and the calibration that gave their probabilities was "
        "fitted on the windows before. False: cross-fitted, each row has its probability from a calibration of the "
        "other folds of the same rows, which says nothing about later rows.",
    )
    periods: CalibrationPeriods | None = Field(
        default=None,
        description="The level in each time window. Null without validation by time windows, or with too few rows.",
    )


class CalibrationRequest(Body):
    """The rows to learn a calibration from."""

    dataset_id: Text = Field(
        description="A ready dataset with the model's features and label, whose rows the model was not trained on."
    )


class CalibrationSummary(Resource):
    """One version of a calibration."""

    version: int
    method: Annotated[str, one_of(CALIBRATION_METHODS)] = Field(
        description="`platt`, `beta` or `isotonic`: the one with the least log loss on held-out folds."
    )
    trained_on: Annotated[str, one_of(LEARNT_ON)] = Field(
        description="`validation`: the validation rows. `out_of_fold`: the out-of-fold scores of a cross-validated "
        "model, on the scale of the served ranker. `dataset`: a later dataset."
    )
    dataset: DatasetVersion | None = Field(description="The dataset of the rows.")
    rows: int
    positives: int
    prevalence: float = Field(
        description="Fraction of positives, by weight, in the rows: the population that probabilities are for, unless "
        "a request states another."
    )
    job_id: str
    created_at: Timestamp


class Calibration(CalibrationSummary):
    """What makes probabilities of a model's scores: a map that never decreases."""

    model_id: str
    log_losses: dict[str, float] = Field(
        description="Mean log loss of each compared method on held-out folds. Empty if there were too few rows of a "
        "class to compare: then the method is `platt`."
    )
    reliability: Reliability | None = Field(
        description="How good the probabilities are, on held-out rows of these. Null if there were too few."
    )
    history: list[CalibrationSummary] = Field(
        description="All versions, the latest first. The first of them is served."
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
    """Parameters that a search tried."""

    parameters: dict[str, Any]
    value: float | None = Field(
        description="Value of the objective `selected_by` on the inner validation rows, as mean over the folds. "
        "Higher is better. Null if the fit failed."
    )
    auc: float | None = None
    rows: float = Field(default=1.0, description="Fraction of the training rows in its last fit.")
    seconds: float | None = None
    state: Annotated[str, one_of(CANDIDATE_STATES)] | None = Field(
        default=None, description="`chosen`, `left`, `failed` or `untried`."
    )
    reason: str | None = None


class Search(Resource):
    """What the search tried and chose, on splits of the training rows. These validation rows are not used for any
    metrics.

    With cross-validation each fold has its own search on its own training rows: `folds_chosen`. Everything else here is
    the search for the served ranker.
    """

    method: Annotated[str, one_of(("grid", "random", "halving"))]
    space: dict[str, Any]
    n_candidates: int | None = None
    folds: int | None = Field(
        default=None, description="Number of inner folds. Null: one part was held out."
    )
    fraction: float = Field(
        description="Fraction of the training rows held out to choose by. Not used with folds."
    )
    candidates: list[SearchTrial]
    chosen: dict[str, Any] = Field(
        description="The best parameters; among equals those with fewest rounds. The served ranker was fitted with "
        "them on all training rows."
    )
    folds_chosen: list[FoldChosen]
    seconds: float = Field(description="Duration of the search in seconds, without `fit_seconds`.")


class Feature(Resource):
    """A feature that the model uses."""

    name: str
    type: Annotated[str, one_of(("numeric", "boolean", "datetime", "categorical"))] = Field(
        description="`numeric`, `boolean`, `datetime` or `categorical`."
    )
    missing: bool = Field(
        description="True if the feature had missing values in training. Then a row may leave it out."
    )
    categories: list[str] | None = Field(
        default=None,
        description="For a categorical feature: its first 100 categories in text order. The artifact has all. Any "
        "unknown text counts as missing.",
    )
    n_categories: int | None = Field(default=None, description="Number of all categories.")


class LabelValues(Resource):
    """One of several labels, and its two values."""

    name: str
    positive: str
    negative: str


class Artifact(Resource):
    """The file of the model."""

    sha256: str
    bytes: int


class ModelSummary(Resource):
    """What a list and a model itself tell alike."""

    id: str
    name: str
    version: int
    algorithm: dict[str, Any] = Field(description="Name and all parameters.")
    objective: dict[str, Any]
    validation: dict[str, Any]
    optimised_for: dict[str, Any]
    selected_by: dict[str, Any] | None = Field(
        description="The objective by which a search chose the parameters. Null without a search."
    )
    beats_baselines: bool | None = Field(
        description="True if its area is significantly greater than that of every control: see …/baselines. Null "
        "without controls."
    )
    dataset_id: str
    dataset: DatasetVersion | None = Field(
        description="The training dataset, under its name at that time. It stays when the dataset is deleted. Null if "
        "it was not recorded."
    )
    validation_dataset: DatasetVersion | None = Field(
        description="The dataset that validated it, with validation.method `dataset`."
    )
    kind: Kind = Field(description="Kind of the dataset.")
    job_id: str
    seed: int
    tags: dict[str, str]
    created_at: Timestamp


class ListedModel(ModelSummary):
    """A model in a list."""

    aliases: list[str]
    auc: Interval | None = Field(
        description="AUC on the validation rows. Null without validation, for pairs and for several labels: see "
        "…/metrics."
    )


class ModelPage(PageOf[ListedModel]):
    """One page of models."""


class Model(ModelSummary):
    """A trained ranker."""

    aliases: list[str]
    features: list[Feature] = Field(description="The features, in the order of the artifact.")
    dialect: dict[str, str] | None = Field(
        default=None,
        description="How the model's own table writes numbers and dates: `decimal`, `thousands`, `dates`. A CSV or a "
        "query to be scored is read so. Null: as usual.",
    )
    label: str | None = Field(
        description="Column of the label. Null if the model was trained on pairs or several labels."
    )
    query: str | None = Field(
        default=None,
        description="Column of the queries within which the model was trained. It is no feature: rows to score need "
        "none.",
    )
    positive: str | None
    negative: str | None
    labels: list[LabelValues] | None = Field(
        description="The labels of a model with several labels; otherwise null."
    )
    search: Search | None
    operating_point: Cutoff | None = Field(
        description="For the objective `tpr`: the best threshold on the validation rows at its FPR. Null for other "
        "objectives and without validation."
    )
    warnings: list[str]
    monotone: MonotoneProof | None = Field(
        description="The proof of its monotone constraints. Null if it was trained without."
    )
    importance_job_id: str | None = Field(
        description="The job that measures the importance of the features after the model, where the budget of `auto` "
        "had no time for it. Null if the training measured it."
    )
    fit_seconds: float
    artifact: Artifact
    included: ModelParts | None = Field(
        default=None,
        exclude_if=_is_none,
        description="The parts that `include` names. Only with `include`.",
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

    theta: float
    fraction: float


class MisrankBound(Resource):
    """Upper bound on the probability that the model misranks a future pair: a measured fraction plus epsilon."""

    name: str
    source: str
    value: float | None = Field(
        description="`margin_fraction + epsilon`. Null if the bound cannot be computed."
    )
    margin_fraction: float = Field(
        description="Fraction of the training pairs with a margin of at most theta; or fraction of the held-out pairs "
        "that are misranked."
    )
    epsilon: float | None
    terms: dict[str, float | None] = Field(description="The terms of epsilon.")
    applies: bool = Field(description="False if a condition of the theorem is not met.")
    reasons: list[str] = Field(description="Why the bound does not apply.")
    vacuous: bool = Field(description="True if the value is 1 or more: it then says nothing.")


class BestPossibleMargin(Resource):
    """The greatest margin of any combination of the weak rankers, computed by linear programming."""

    rho: float
    margin: float = Field(description="Margin of the best combination found. rho is at least this.")
    edge: float = Field(
        description="Greatest edge under the pair weights found. rho is at most this."
    )
    short_by: float = Field(description="rho minus the margin of the model.")


class MarginRound(Resource):
    """One round of boosting, under the pair weights of that round."""

    round: int
    edge: float = Field(
        description="r = d+ - d-: weight of the pairs in order minus weight of the pairs out of order."
    )
    tied: float = Field(description="d0: weight of the pairs that the weak ranker ties.")
    most_tied: float = Field(
        description="Theorem 7 holds if d0 is below this: 2/3 (1 - r)(1 - r²)."
    )
    holds: bool


class MarginRounds(Resource):
    """The condition of Theorem 7 for each round, from the first."""

    total: int
    holds: int = Field(description="Number of rounds, of all, in which the condition holds.")
    data: list[MarginRound]


class RoundLoss(Resource):
    """The losses after one round, on the training rows. Null: too large for a float64."""

    round: int
    f: float | None = Field(
        description="F: the loss of AdaBoost, of the scores with their intercept."
    )
    f_skew: float | None = Field(
        description="The part of F from the positives minus the part from the negatives."
    )
    f_tilde: float | None = Field(description="F̃: the loss of RankBoost.")
    smooth_margin: float | None = Field(
        description="-ln F̃ divided by the sum of the steps so far, with the smallest pair weight as 1. Null if the "
        "fit held out some of its rows."
    )


class RoundLosses(Resource):
    """The losses of each round, from the first."""

    total: int
    data: list[RoundLoss]


class Margins(Resource):
    """Margins of the training pairs (differences of scores, divided by `l1_norm`), and the bounds that follow from
    them.
    """

    model_id: str
    on: Part
    l1_norm: float = Field(description="Sum of the steps of all rounds. Scores are divided by it.")
    margin: float = Field(
        description="Smallest margin of a pair. Positive if all pairs are in order."
    )
    smooth_margin: float = Field(
        description="-ln of the ranking loss, divided by `l1_norm`. It is below `margin` and approaches it with more "
        "rounds."
    )
    weak_rankers: int = Field(description="Upper bound on the number of different weak rankers.")
    distribution: list[MarginShare] = Field(
        description="Distribution of the margins, from the smallest to the greatest."
    )
    theta: float
    delta: float
    bounds: list[MisrankBound]
    best: BestPossibleMargin | None = Field(
        description="Null if the linear programme is too large."
    )
    rounds: MarginRounds
    losses: RoundLosses


_Share = Annotated[float, Field(gt=0, lt=1)]


_KEPT = ("fpr", "tpr", "flagged", "threshold")


class AliasGuarantee(Body):
    """What every version behind an alias is to keep: exactly one of `fpr`, `tpr`, `flagged` and `threshold`."""

    fpr: _Share | None = Field(
        default=None, description="The FPR is at most this.", examples=[0.01]
    )
    tpr: _Share | None = Field(default=None, description="The TPR is at least this.")
    flagged: _Share | None = Field(
        default=None,
        description="At most this fraction of the rows is flagged, as on the validation rows: what can be worked off.",
    )
    threshold: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        default=None,
        description="Scores of at least this are flagged. Another version may have another scale of scores, and the "
        "same threshold then flags other rows.",
    )
    confidence: _Share | None = Field(
        default=None,
        description="Promise `fpr` or `tpr` of future rows with this confidence, as `…/operating-point` does. Null: "
        "the rate on the validation rows.",
        examples=[0.95],
    )

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        kept = [name for name in _KEPT if getattr(self, name) is not None]
        if len(kept) != 1:
            got = " and ".join(kept) or "none"
            raise ValueError(f"a promise must have exactly one of {', '.join(_KEPT)}, got {got}")
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
    """Why an alias is moved, for whoever asks later. Nothing is computed with it."""

    reason: _Words | None = Field(
        default=None, description="The reason.", examples=["Review team of four since May."]
    )
    approved_by: _Words | None = Field(
        default=None, description="Who has approved the decision.", examples=["Credit committee"]
    )
    review: _Rows | None = Field(
        default=None,
        description="How many of `rows` rows can be reviewed: at most `rows`. Both or none.",
        examples=[200],
    )
    rows: _Rows | None = Field(
        default=None, description="How many rows come, for example in a day.", examples=[5000]
    )
    cost_false_positive: _Cost | None = Field(
        default=None, description="What a false alarm costs, in any unit.", examples=[1]
    )
    cost_false_negative: _Cost | None = Field(
        default=None,
        description="What a missed positive costs, in the unit of `cost_false_positive`. Both or none.",
        examples=[20],
    )
    prevalence: _Share | None = Field(
        default=None, description="The fraction of positives that is expected of future rows."
    )

    @model_validator(mode="after")
    def _in_pairs(self) -> Self:
        for one, other in (("review", "rows"), ("cost_false_positive", "cost_false_negative")):
            given = [name for name in (one, other) if getattr(self, name) is not None]
            if len(given) == 1:
                raise ValueError(f"{one} and {other} must come together, got {given[0]} alone")
        if self.review is not None and self.rows is not None and self.review > self.rows:
            raise ValueError(f"review must be at most rows = {self.rows:g}, got {self.review:g}")
        return self

    def as_stored(self) -> documents.DecisionMemo:
        """Return the memo as a document."""
        return cast(documents.DecisionMemo, self.model_dump(mode="json"))


class AliasTarget(Body):
    """The model that an alias should point to."""

    model_id: Text = Field(
        description="A model of the alias's name: its id, `name:version`, `name` (the latest version) or another "
        "`name@alias`.",
        examples=["mdl_01a1f77425d3792391ae38bebae6593b"],
    )
    guarantee: AliasGuarantee | None = Field(
        default=None,
        description="What every version behind the alias keeps, from now on. Null takes the promise away. Absent: the "
        "alias keeps the promise that it has.",
    )

    memo: DecisionMemo | None = Field(
        default=None,
        description="Why the alias is moved. It belongs to this revision alone, and stays in the history.",
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
    """What every version behind an alias keeps: an FPR of at most `fpr`, a TPR of at least `tpr`, at most the fraction
    `flagged` of the rows, or scores of at least `threshold`. The others are null.
    """

    fpr: float | None
    tpr: float | None
    flagged: float | None = None
    threshold: float | None = None
    confidence: float | None = Field(
        description="The confidence with which the rate of future rows is promised. Null: the rate is that on the "
        "validation rows."
    )


class StoredMemo(Resource):
    """Why an alias was moved. What was not said is null."""

    reason: str | None
    approved_by: str | None
    review: float | None
    rows: float | None
    cost_false_positive: float | None
    cost_false_negative: float | None
    prevalence: float | None


class AliasStep(Resource):
    """The model that an alias pointed to from this time, with the promise and the cut of that time."""

    revision: int
    model_id: str
    guarantee: CurrentGuarantee | None
    cutoff: AliasCutoff | None
    memo: StoredMemo | None
    author: str | None
    at: Timestamp


class AliasSummary(Resource):
    """An alias: a name that can be moved to another model. `revision` is also its ETag."""

    name: str
    alias: str
    revision: int
    model_id: str
    guarantee: CurrentGuarantee | None = Field(
        description="What every version behind the alias keeps. Null: nothing is promised, and answers have no `flag`."
    )
    cutoff: AliasCutoff | None = Field(description="How the present version keeps the promise.")
    memo: StoredMemo | None = Field(description="Why the alias was moved, as the caller said.")
    author: str | None = Field(
        description="Name of the key that moved the alias. Null: the alias was moved without a key."
    )
    updated_at: Timestamp


class AliasPage(PageOf[AliasSummary]):
    """One page of aliases."""


class Alias(AliasSummary):
    """An alias with its history."""

    history: list[AliasStep]


def alias_of(state: AliasState) -> Alias:
    """Show an alias with its history."""
    steps = [AliasStep.model_validate(step) for step in state.history]
    return Alias(**dict(AliasSummary.model_validate(state.alias)), history=steps)


class ReasonEntry(Body):
    """The code and the text of some features' parts of a score. Features of one code count together: their parts are
    summed.
    """

    code: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=PLAIN_PATTERN)] = (
        Field(examples=["R12"])
    )
    text: Annotated[
        str, StringConstraints(min_length=1, max_length=500, pattern=NO_NUL_PATTERN)
    ] = Field(description="The same in all entries of a code.", examples=["Income too low"])
    columns: Annotated[list[Text], Field(min_length=1, max_length=1000)] = Field(
        description="Features of the latest version of the name.", examples=[["income"]]
    )
    direction: ReasonDirection | None = Field(
        default=None,
        description="Only for parts that raise the score, or that lower it. Null: all.",
    )
    min: float | str | None = Field(
        default=None,
        description="Only for values of at least this; a date as text. This and the next three need a single column.",
    )
    max: float | str | None = Field(default=None, description="Only for values of at most this.")
    categories: Annotated[list[Text], Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="Only for these categories."
    )
    missing: bool | None = Field(
        default=None,
        description="True: for missing values and new categories, too; alone: for them only. False: for known values "
        "only. Null: for all, or with `min`, `max` or `categories` for known values only.",
    )

    def as_stored(self) -> documents.StoredReasonEntry:
        """Return the entry as a document."""
        return cast(documents.StoredReasonEntry, self.model_dump(mode="json"))


class ReasonCodesRequest(Body):
    """A dictionary of reasons."""

    entries: Annotated[list[ReasonEntry], Field(max_length=MAX_ENTRIES)] = Field(
        description="Of the entries that fit a feature, its value and direction, the first tells it. A feature without "
        "one is told by a plain phrase, as `income is 52000`."
    )


class ReasonCodesStep(Resource):
    """A revision of a dictionary of reasons."""

    revision: int
    at: Timestamp


class ReasonCodes(Resource):
    """The dictionary of reasons of a name of models, for all its versions."""

    name: str = Field(examples=["churn"])
    revision: int = Field(description="Also the ETag.")
    entries: list[StoredReasonEntry]
    at: Timestamp
    history: list[ReasonCodesStep] = Field(
        description="At most 100 revisions, the latest first. `?revision=` reads each of them."
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
    """Partial AUC over a window of false positive rates: the mean height of the curve in the window."""

    fpr_min: float
    fpr_max: float
    empirical: float | None = Field(
        None,
        description="Fraction of the pairs strictly in order, over every positive and the negatives of rank "
        "⌊n·fpr_min⌋ + 1 to ⌈n·fpr_max⌉ (Narasimhan & Agarwal 2016, eq. 2). It counts ties and the ends of the window "
        "in another way than `value`. Null without a curve.",
    )


class Height(Resource):
    """The TPR at a given FPR, with its interval. The interval includes the uncertainty of the threshold."""

    fpr: float
    tpr: float
    low: float
    high: float


class Metrics(Resource):
    """Quality of the model's ranking on one part of the data."""

    model_id: str
    on: Part
    approximate: bool = Field(
        description="Concerns the curve and the figures read from it, not the areas. " + APPROXIMATE
    )
    level: float = Field(description="Confidence level of the intervals.")
    auc: Interval
    gini: Interval = Field(description=GINI)
    ks: float | None = Field(description=KS + " Null without a curve.")
    pauc: list[WindowArea]
    tpr_at_fpr: list[Height]
    operating_point: Cutoff | None = Field(
        description="For the objective `tpr`: the rates on this part at the model's threshold, which was chosen on "
        "the validation rows."
    )
    metric: MetricEstimate | None = Field(
        None,
        description="For an objective such as `average_precision` or `precision`: its figure on this part, from the "
        "curve, as …/metric-estimates has it. A count of first rows is one of the validation rows. Null for others, "
        "and for `ndcg` under repeated cross-validation.",
    )
    positives: int
    negatives: int
    positive_weight: float
    negative_weight: float
    ties: float = Field(
        description="Fraction of the pairs of a positive and a negative that have equal scores."
    )
    lists: ListMetrics | None = Field(
        default=None,
        description="Figures within queries. The figures above are of all rows as one list. Null without queries.",
    )


class PairMetrics(Resource):
    """Quality of a model trained on pairs, on the pairs of one part."""

    model_id: str
    on: Part
    level: float = Field(description="Confidence level of the interval.")
    pair_order: Interval = Field(
        description="Weighted fraction of the pairs in order; a tie counts half. The interval allows for pairs with a "
        "common item."
    )
    misrank_fraction: float = Field(
        description="Weighted fraction of the pairs out of order; a tie counts fully."
    )
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float = Field(
        description="Effective number of pairs, in the worst case: as many pairs without common items would be as "
        "informative."
    )


class GradedOrder(Resource):
    """How well rows with grades are in order, all of them as one list."""

    c_index: Interval = Field(
        description="Fraction of the pairs of rows of different grades that are in order; a tie counts half."
    )
    mean_auc: Interval = Field(description="Mean over all pairs of grades of the AUC between them.")
    volume: Interval | None = Field(
        description="Probability that one row of each grade, drawn at random, are all in order. Null for more than "
        "nine grades."
    )
    pairwise: list[list[float | None]] = Field(
        description="AUC of each grade (column) over each lower one (row), in ascending order of the grades; "
        "otherwise null."
    )


class GradedMetrics(Resource):
    """Quality of a model that was trained on grades, on one part."""

    model_id: str
    on: Part
    level: float = Field(description="Confidence level of the intervals.")
    grades: list[GradeRows] = Field(
        description="The rows of each grade, without those of weight 0."
    )
    lists: ListMetrics | None = Field(
        description="Figures within queries. Null without queries, and with fewer than two queries that have rows of "
        "different grades."
    )
    order: GradedOrder | None = Field(
        description="Figures of all rows as one list. Null with queries."
    )


class LabelMetrics(Resource):
    """Quality of the ranking by one label's scores, on one part."""

    label: str
    auc: Interval | None = Field(description="Null if the part has too few rows of a class.")
    pauc: list[WindowArea]
    positives: int
    negatives: int
    ties: float | None


class MeanArea(Resource):
    """Mean over the labels of a partial AUC."""

    fpr_min: float
    fpr_max: float
    value: float | None


class MultilabelMetrics(Resource):
    """Quality of a model with several labels on one part: for each label, and as mean."""

    model_id: str
    on: Part
    level: float = Field(description="Confidence level of the intervals.")
    labels: list[LabelMetrics]
    evaluated: int = Field(
        description="Number of labels that have an AUC. The means are over these."
    )
    mean_auc: float | None
    mean_pauc: list[MeanArea]


AnyMetrics = Metrics | PairMetrics | MultilabelMetrics | GradedMetrics


class AbsentPart(Resource):
    """A part that the model does not have."""

    part: PartName
    code: str = Field(description="The code of the problem that the part's own address answers.")
    detail: str


class ModelParts(Resource):
    """Parts of a model, each as its own address answers it. A part that the model lacks is in `absent`."""

    metrics: AnyMetrics | None = Field(
        default=None, exclude_if=_is_none, description="As …/metrics answers."
    )
    roc: Roc | None = Field(default=None, exclude_if=_is_none, description="As …/roc answers.")
    operating_points: OperatingPoints | None = Field(
        default=None, exclude_if=_is_none, description="As …/operating-points answers."
    )
    operating_point: OperatingPoint | None = Field(
        default=None, exclude_if=_is_none, description="As …/operating-point answers."
    )
    absent: list[AbsentPart]


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
    """Upper bound on 1 - pAUC of future rows: the measured value plus epsilon."""

    name: Annotated[str, one_of(("theorem_9", "held_out"))] = Field(
        description="`theorem_9` or `held_out`."
    )
    source: str
    on: Part = Field(description="The part of the data that was measured.")
    risk: float = Field(description="1 - pAUC of these rows, with the curve as a step function.")
    positives: int
    negatives: int
    vc_dimension: int | None = Field(
        description="VC dimension of the thresholds on all scores that the algorithm can learn from these rows. Null "
        "if it is not known, or if the model was trained without these rows."
    )
    epsilon: float | None
    value: float | None = Field(
        description="`risk + epsilon`. Null if the bound cannot be computed."
    )
    vacuous: bool = Field(
        description="True if the value is null, or 1 or more: it then says nothing."
    )
    applies: bool = Field(description="False if a condition of the bound is not met.")
    reasons: list[str] = Field(description="Why the bound does not apply.")


class WindowBounds(Resource):
    """Bounds on a model's partial AUC on future rows, over one window of false positive rates."""

    model_id: str
    fpr_min: float
    fpr_max: float
    delta: float
    bounds: list[WindowBound]


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
