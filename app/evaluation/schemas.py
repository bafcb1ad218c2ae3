"""Response bodies of evaluations and comparisons."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field, model_validator

from app.evaluation.amounts import BY_AMOUNT
from app.evaluation.checks import findings_of
from app.evaluation.groups import BY_GROUP, PROTECTED
from app.evaluation.requests import NewCosts, NewWindow, RateOrThreshold, ReviewCapacity
from app.evaluation.service import (
    CURVE_POINTS,
    Seen,
    seen_in,
    seen_of,
)
from app.evaluation.vintages import BY_PERIOD
from app.findings.finding import Acknowledgement, Answer, Finding
from app.http.schemas import (
    GINI,
    KS,
    NULL_IF_TOO_FEW,
    Body,
    CreatedAt,
    DatasetId,
    FprMax,
    FprMin,
    High,
    Interval,
    JobId,
    Kind,
    Level,
    Low,
    ModelId,
    ModelName,
    ModelVersion,
    Negatives,
    Positives,
    PValue,
    ReasonText,
    Resource,
    Words,
    one_of,
)
from app.jobs.kinds import STATUS, STATUSES, status_of
from app.measures import describe_segments, measures
from app.models.calibration_schemas import MeasuredReliability
from app.models.drift_schemas import FeatureDrift, ScoreDrift
from app.models.metric_schemas import (
    CurveMetrics,
    EvaluatedGrades,
    EvaluatedLabel,
    EvaluatedPairs,
    MeanArea,
)
from app.models.threshold_group_schemas import GroupCalibration, GroupMetric
from app.platform.documents import ListMetrics
from app.platform.tables import Comparison as ComparisonRow
from app.platform.tables import DatasetKind
from app.platform.tables import Evaluation as EvaluationRow
from core.metrics.window import CUTOFFS

LowestFlagged = Annotated[
    float | None, Field(description="Lowest score that is flagged. Null: no row is flagged.")
]
OwnFprMin = Annotated[
    float | None, Field(description="Lower end of the window of a partial AUC; otherwise null.")
]
OwnFprMax = Annotated[
    float | None, Field(description="Upper end of the window of a partial AUC; otherwise null.")
]


class Fit(Resource):
    """Whether a dataset can be used with a model."""

    model: str
    """The model, as the request named it."""
    dataset_id: DatasetId
    fits: bool
    """True if the dataset has what the model needs."""
    reason: str | None
    """What the dataset lacks. Completes a sentence that starts with “the dataset”. Null if it fits."""


class Fits(Resource):
    """Compatibility of models and datasets, with one entry for each pair."""

    data: list[Fit]
    """One entry for each pair of a model and a dataset."""


class EvaluationCutoff(Resource):
    """The cutoff that the rows were evaluated at, and its source."""

    threshold: LowestFlagged
    source: Annotated[str, one_of(("at", "alias", "objective"))]
    """`at`: the request. `alias`: the cutoff of the alias at the time of the request. `objective`: the model's
    objective `tpr`."""


class EvaluatedCutoff(Resource):
    """Rates on these rows at the threshold of `cutoff`."""

    threshold: LowestFlagged
    fpr: Interval
    """Fraction of the negatives that are flagged."""
    tpr: Interval
    """Fraction of the positives that are flagged."""
    precision: Interval
    """Fraction of the flagged rows that are positive."""
    lift: Interval
    """Precision divided by the fraction of positives."""


class Totals(Resource):
    """Total weight and effective number of rows of each class."""

    positive: float
    """Total weight of the positives."""
    negative: float
    """Total weight of the negatives."""
    positive_effective: float
    """Effective number of positive rows, given the weights. With a group column: effective number of groups."""
    negative_effective: float
    """Effective number of negative rows, or of groups."""


class CalibrationDrift(MeasuredReliability):
    """How well the probabilities of a model's calibration match the outcomes on these rows."""

    version: int
    """Version of the calibration that was served."""


class NetBenefit(Resource):
    """Net benefit of acting on the rows with a probability of at least `threshold`, in true positives per row: the
    fraction of true positives minus the fraction of false positives times threshold / (1 − threshold) (Vickers &
    Elkin 2006). Acting on no row has a net benefit of 0.
    """

    threshold: float
    """Threshold probability, between 0 and 1."""
    flagged: float
    """Fraction of the rows with at least this probability."""
    benefit: Interval
    """Net benefit. Above 0: better than acting on no row."""
    flag_all: Interval
    """Net benefit of acting on every row."""
    over_all: Interval
    """`benefit` minus `flag_all`, as a paired difference. Above 0: better than acting on every row."""


class EvaluatedCurve(CurveMetrics):
    """Ranking metrics on rows with one label."""

    gini: Interval | None = Field(
        default=None, description=GINI + " Null for evaluations that were made before it was added."
    )
    ks: float | None = Field(
        default=None, description=KS + " Null for evaluations that were made before it was added."
    )
    ks_interval: Interval | None = None
    """`ks` with a confidence interval. The lower end comes from thresholds that were chosen on other rows. Null for
    evaluations made before it was added."""
    operating_point: EvaluatedCutoff | None
    """Rates at the threshold of `cutoff`. Null without a cutoff."""
    totals: Totals
    """Weights of the two classes."""
    groups: int | None
    """Number of groups. Null unless the dataset has a column of groups or queries; the intervals then allow for
    correlation within a group."""
    calibration: CalibrationDrift | None = None
    """How well the model's probabilities match the outcomes on these rows. Null if the model had no calibration."""
    decision_curve: list[NetBenefit] | None = None
    """Net benefit by threshold probability: 0.01 to 0.50, then 0.55 to 0.95. Each interval covers one threshold. The
    rows must have the same prevalence as those on which decisions are made. Null if the model had no calibration, and
    for evaluations made before it was added."""
    lists: ListMetrics | None = None
    """Metrics within queries; all other metrics treat the rows as one list. Null without queries."""


class GroupArea(GroupMetric):
    """Partial AUC within one group. The window refers to the FPR within the group."""

    fpr_min: FprMin
    fpr_max: FprMax


class GroupCutoff(Resource):
    """The cutoff of one group, chosen on these same rows: see `note`. The intervals do not include the uncertainty of
    this choice.
    """

    threshold: float | None
    """Lowest score that is flagged in this group. Null: no row is flagged."""
    threshold_low: float | None
    """Lower end of a confidence interval for the cutoff in the population. Null: the rows set no limit."""
    threshold_high: float | None
    """Upper end of that interval. Null: the rows set no limit."""
    fpr: Interval
    """FPR within the group."""
    tpr: Interval
    """TPR within the group."""


class EvaluatedGroup(Resource):
    """Counts and metrics of one group."""

    value: str | None
    """Value of the column as text. Null: the rows without a value."""
    rows: int
    """Number of rows with a weight above 0."""
    positives: Positives
    negatives: Negatives
    auc: GroupMetric
    """Area under the ROC curve within the group."""
    pauc: list[GroupArea]
    """Partial AUC within the group, over each window."""
    tpr: GroupMetric | None
    """Fraction of the group's positives with a score of at least `threshold`. Null without a cutoff."""
    fpr: GroupMetric | None
    """Fraction of the group's negatives with a score of at least `threshold`. Null without a cutoff."""
    cutoff: GroupCutoff | None
    """The cutoff of this group. Null unless `cutoffs` was requested, or if the group has none."""
    cutoff_reason: str | None
    """Why no cutoff could be chosen for the group. Null otherwise."""
    calibration: GroupCalibration | None = None
    """Predicted and observed positives. Null if the model had no calibration."""


class CrossGroupAuc(GroupMetric):
    """xAUC: the probability that a positive of one group scores above a negative of another; a tie counts half (Kallus
    & Zhou 2019).
    """

    positives_of: str | None
    """Group of the positives. Null: the rows without a value."""
    negatives_of: str | None
    """Group of the negatives. Null: the rows without a value."""


GroupMeasure = Annotated[str, one_of(("auc", "pauc", "tpr", "fpr"))]
TestedMeasure = Annotated[str, one_of(("auc", "pauc", "tpr", "fpr", "calibration"))]


class GroupTest(Resource):
    """A joint test of the hypothesis that a metric is equal in all groups."""

    of: TestedMeasure
    """The tested metric. `calibration`: whether the probabilities of all groups are off by the same log odds."""
    fpr_min: OwnFprMin
    fpr_max: OwnFprMax
    groups: int
    """Number of groups for which the metric is available."""
    p_value: float | None
    """p-value of the test. Null if the metric is available for fewer than two groups."""
    adjusted_p_value: float | None
    """p-value adjusted with Holm's method over all tests shown here. Null without `p_value`."""
    differs: bool | None
    """True if the adjusted p-value is below 1 − `level`. Null without a test."""
    words: Words


class WorstGroup(Interval):
    """The worst group by one metric: the lowest AUC, pAUC or TPR, or the highest FPR. The value is that of the group
    observed to be worst; the interval covers the worst group in the population.
    """

    of: GroupMeasure
    """The metric."""
    fpr_min: OwnFprMin
    fpr_max: OwnFprMax
    value_of: str | None
    """The group observed to be worst. Null: the rows without a value."""


class EvaluatedGroups(Resource):
    """Ranking metrics by group."""

    column: str
    """The column that defines the groups."""
    threshold: float | None
    """The cutoff that all groups are evaluated at. Null without one."""
    cutoffs: Annotated[str, one_of(CUTOFFS)] | None
    """How the cutoffs of the groups were chosen. Null if none were requested."""
    rate: float | None
    """FPR or TPR that each group's cutoff is chosen for. Null without cutoffs by group."""
    note: str | None
    """A caution about cutoffs by group. Null without them."""
    groups: list[EvaluatedGroup]
    """The groups by ascending value; rows without a value come last."""
    xauc: list[CrossGroupAuc]
    """xAUC of each group's positives against each group's negatives. Within one group it is the AUC."""
    tests: list[GroupTest]
    """Tests of equality between the groups."""
    worst: list[WorstGroup]
    """The worst group by each metric. Empty if fewer than two groups have metrics."""


Over = Annotated[str, one_of(("rows", "negatives", "amount_of_negatives"))]


class ValueRecall(Interval):
    """Fraction of the positives' total amount among the flagged rows."""

    share: float
    """Fraction of the rows, or of the negatives, that are flagged; see `over`."""
    threshold: float
    """Lowest score among the flagged rows. Rows tied at this score are flagged in part."""


class EvaluatedValue(Resource):
    """How much of the positives' total amount the ranking captures."""

    over: Over
    """Horizontal axis of the curve: the flagged fraction of all rows, of the negatives (FPR), or of the negatives'
    amount."""
    area: Interval | None
    """Mean height of the curve. A random order has 0.5. Null if `reason` is set."""
    recalls: list[ValueRecall]
    """Captured fraction of the amount at several list sizes."""
    reason: str | None
    """Why the values are unavailable: all amounts of a class are 0. Null otherwise."""


class ValuePoint(Resource):
    """A point of the value curves."""

    threshold: LowestFlagged
    rows: float
    """Fraction of the rows that are flagged."""
    negatives: float
    """Fraction of the negatives that are flagged."""
    amount_of_negatives: float | None
    """Fraction of the negatives' total amount that is flagged. Null if that total is 0."""
    value: float
    """Fraction of the positives' total amount that is flagged."""


class DecisionCost(Resource):
    """Cost per row of a decision rule, on rows that were not used to choose it."""

    flagged: float
    """Fraction of the rows that are flagged."""
    cost: Interval
    """Mean cost per row. Below 0 if the benefits exceed the costs."""
    saved_to_none: Interval
    """Cost per row of flagging no row, minus `cost`. Above 0: this rule is cheaper."""
    saved_to_all: Interval
    """Cost per row of flagging every row, minus `cost`. Above 0: this rule is cheaper."""


class LeastCost(Resource):
    """The cutoff with the lowest cost on these rows."""

    threshold: LowestFlagged
    flagged: float
    """Fraction of the rows that are flagged."""
    in_sample: float
    """Mean cost per row on the rows that chose the cutoff. This is too low as an estimate for new rows."""
    held_out: DecisionCost | None
    """Cost on held-out rows: each part of the rows is evaluated at the cutoff that the other parts choose. Null if all
    rows belong to one group."""
    parts: int
    """Number of parts that the rows were divided into."""
    threshold_low: float | None
    """Lowest cutoff that a part chose. Null: no row is flagged."""
    threshold_high: float | None
    """Highest cutoff that a part chose. Null: no row is flagged."""


class ProbabilitySaving(Interval):
    """Held-out cost per row of the cutoff, minus that of deciding by probability. Above 0: deciding by probability is
    cheaper.
    """

    p_value: PValue


class EvaluatedCosts(Resource):
    """Costs of errors per row."""

    rows: float
    """Total weight of the rows. Multiply a cost per row by this for the total cost."""
    flag_none: Interval
    """Mean cost per row if no row is flagged."""
    flag_all: Interval
    """Mean cost per row if every row is flagged."""
    least: LeastCost
    """The cutoff with the lowest cost."""
    threshold: float | None
    """The cutoff of `at`, or of a model with the objective `tpr`. Null without one."""
    at: DecisionCost | None
    """Cost at `threshold`, which these rows did not choose. Null without a threshold."""
    by_probability: DecisionCost | None
    """Cost if each row is flagged when its probability and amount make that cheaper on average. Null if the model has
    no calibration."""
    probability_saves: ProbabilitySaving | None
    """Saving of deciding by probability. Null if the model has no calibration."""
    note: str
    """Which rows chose the cutoff, and which evaluate it."""


class EvaluatedAmounts(Resource):
    """Metrics weighted by the amount of each row."""

    column: str | None
    """The column of amounts. Null if all costs are fixed."""
    amount_of_positives: float | None
    """Total amount of the positives, weighted. Null without `column`."""
    effective: float | None
    """Effective number of positives by amount. It is small, and intervals are wide, if a few positives make up most of
    the total. Null without `column`."""
    values: list[EvaluatedValue]
    """Captured amount, over each horizontal axis."""
    curve: list[ValuePoint]
    """Up to 100 points of the value curves."""
    costs: EvaluatedCosts | None
    """Costs of errors. Null if no `costs` were requested."""


class EvaluatedLabels(Resource):
    """Ranking metrics of a model with several labels."""

    labels: list[EvaluatedLabel]
    """Metrics of each label."""
    evaluated: int
    """Number of labels that have an AUC. The means are over these."""
    mean_auc: float
    """Mean AUC over these labels."""
    mean_pauc: list[MeanArea]
    """Mean partial AUC over these labels, for each window."""


class AreaDrift(Resource):
    """Change of one metric between the model's validation and this dataset, as two independent samples."""

    of: Annotated[str, one_of(("auc", "pauc", "pair_order", "list", "grades", "prevalence"))]
    """`auc`, `pauc`, `pair_order`, `list` (a metric within queries), `grades` or `prevalence`."""
    metric: str | None = None
    """Name of the metric, such as `ndcg@10`. Null for areas."""
    label: str | None = None
    """Name of the label. Null unless the model has several labels."""
    fpr_min: OwnFprMin = None
    fpr_max: OwnFprMax = None
    before: Interval
    """Value on the model's validation."""
    after: Interval
    """Value on this dataset."""
    change: Interval
    """`after` minus `before`, with the interval of Zou and Donner."""
    p_value: PValue
    adjusted_p_value: float
    """p-value adjusted with Holm's method over all tests of this drift."""
    changed: bool
    """True if the change is statistically significant by the adjusted p-value."""
    words: Words


class ProbabilityDrift(Interval):
    """Difference between the model's probabilities and the outcomes on this dataset."""

    of: Annotated[str, one_of(("in_the_large", "slope", "shape"))]
    """`in_the_large`: constant error of the log odds, 0 if predicted and observed positives agree. `slope`: slope of
    the log odds, 1 if the probabilities are neither too extreme nor too moderate. `shape`: root mean square distance of
    the log odds from a line, 0 if no error changes sign along the probabilities."""
    predicted: float
    """Mean predicted probability."""
    observed: float
    """Observed fraction of positives."""
    p_value: float
    """p-value of the test. It allows for the error of the calibration, which was fitted on the validation rows; the
    interval covers only these rows."""
    adjusted_p_value: float
    """p-value adjusted with Holm's method over all tests of this drift."""
    changed: bool
    """True if the change is statistically significant and large enough to matter."""
    words: Words


class Drift(Resource):
    """Changes since the model's validation. A test reports `changed` if its adjusted p-value is significant and the
    effect is large enough: a PSI of at least 0.1, or a difference of at least 0.1 in log odds or slope. Areas have
    no minimum effect. The tests that use outcomes have a significance level of 1 − `level` together, those of the
    scores of all rows and of the features `alpha`.
    """

    level: float
    """Confidence level of the model's intervals."""
    alpha: float
    """Significance level of the tests of all scores and of the features together."""
    areas: list[AreaDrift]
    """Change of the AUC and the other ranking metrics."""
    prevalence: AreaDrift | None = None
    """Change of the fraction of positives. Null unless there is exactly one label."""
    probabilities: list[ProbabilityDrift] = Field(default=[])
    """Change of the calibration. Empty if the model has no calibration."""
    features: list[FeatureDrift]
    """Change of up to 100 features, the most important first, by importance and size."""
    scores: list[ScoreDrift]
    """Change of the scores. If the scores change but the areas do not, choose new thresholds."""


class EvaluatedPeriod(Resource):
    """The AUC of the rows of one period."""

    name: str = Field(examples=["2026-03"])
    """Name, such as 2026-03, 2026-Q1, 2026 or 2020s; for a column of numbers its value."""
    start: str | None
    """First day of the period, UTC. Null for a column of numbers."""
    end: str | None
    """First day after the period, UTC. Null for a column of numbers."""
    rows: int
    """Number of rows with positive weight."""
    positives: int
    """Number of positives among them."""
    negatives: int
    """Number of negatives among them."""
    auc: Interval | None
    """AUC of these rows. Null if a class has too few rows; `reason` says which."""
    reason: str | None
    """Why there is no AUC. Null if there is one."""


class EvaluatedPeriods(Resource):
    """The AUC by period of the rows' time (vintages), the earliest first."""

    column: str
    """The column with the time of the rows."""
    unit: Annotated[str, one_of(("month", "quarter", "year", "decade", "value"))]
    """Length of the periods: the shortest with at most 60 periods that have rows. `value`: each value of a column of
    numbers."""
    missing: int
    """Number of rows without a time. They are in no period."""
    omitted: int
    """Number of rows of periods before the last 60."""
    reason: str | None
    """Why there are no periods. Null if there are any."""
    periods: list[EvaluatedPeriod]
    """The periods that have rows."""


SEEN = Annotated[str, one_of(get_args(Seen))]
SEEN_WORDS = (
    "Whether the model has seen these rows before. `trained`: it was trained on rows of the dataset, so its metrics "
    "are optimistic. `validated`: it was validated on rows of the dataset. `overlaps`: too many rows are equal to "
    "training rows; a warning gives the number. `new`: none of these. "
)


class AcknowledgementRequest(Body):
    """The reason for taking no further action on a change that an evaluation found."""

    reason: ReasonText = Field(
        examples=["Known: the campaign in March. Retraining is planned for June."]
    )
    """Reason, of up to 2,000 characters."""


class _OnDataset(Resource):
    """Members of an evaluation and of a comparison."""

    id: str
    """Id of the evaluation or of the comparison."""
    status: Annotated[str, one_of(STATUSES)] = Field(description=STATUS)
    job_id: JobId
    dataset_id: DatasetId
    dataset_name: str
    """Name of the dataset."""
    dataset_version: int | None
    """Version of the dataset. Null if it was not recorded."""
    dataset_sha256: str | None
    """SHA-256 of the content of that version. Null if it was not recorded."""
    windows: list[NewWindow]
    """The windows of the partial AUCs."""
    level: Level
    amount: str | None = None
    """The column of amounts. Null if none was requested."""
    costs: NewCosts | None = None
    """The requested costs. Null if none were requested."""
    warnings: list[str]
    """Warnings about the rows and the result."""
    error: dict[str, Any] | None
    """The problem, if the job failed; otherwise null."""
    created_at: CreatedAt


class EvaluationSummary(_OnDataset):
    """The members that an evaluation and a list of evaluations share."""

    model_id: ModelId
    model_name: ModelName
    model_version: ModelVersion
    alias: str | None = None
    """The alias that the request named. Null if it named the version."""
    kind: Kind
    """Kind of the dataset."""
    group_by: str | None = None
    """The column that defines the groups. Null if none was requested."""
    at: RateOrThreshold | None = None
    """The requested cutoff. Null if none was requested."""
    cutoff: EvaluationCutoff | None = None
    """The cutoff that the rows were evaluated at. Null without one, and until the evaluation is ready."""
    cutoffs: Annotated[str, one_of(CUTOFFS)] | None = None
    """Requested cutoffs by group. Null if none were requested."""
    seen: SEEN | None = Field(
        default=None,
        description=f"{SEEN_WORDS}Null until this is known, and if the training table was deleted before.",
    )
    metric: Interval | None
    """The main metric: the AUC, the fraction of pairs in order (`preferences`) or the C-index (`graded`). Null for
    several labels, if a class has no rows, and until the evaluation is ready."""
    periods: EvaluatedPeriods | None = None
    """AUC by period of the rows' time. Null if the dataset has no column of times, if rows do not have exactly one
    label, and until the evaluation is ready."""
    acknowledgement: Acknowledgement | None
    """Who has seen the change that the evaluation found, when, and the reason for taking no further action. Null if
    nobody has."""
    created_at: CreatedAt


class ListedEvaluation(EvaluationSummary):
    """An evaluation in a list."""

    changed: bool | None
    """True if one of the `findings` is a `no`. Null if the rows were not compared with the model's validation."""


class Evaluation(EvaluationSummary):
    """Metrics of a model on a dataset. An evaluation remains when the model or the dataset is deleted."""

    metrics: EvaluatedCurve | EvaluatedPairs | EvaluatedLabels | EvaluatedGrades | None
    """The metrics; the members depend on `kind`. Null until the evaluation is ready."""
    groups: EvaluatedGroups | None = None
    """Metrics by group. Null without `group_by`, and until the evaluation is ready."""
    protected: list[EvaluatedGroups] = Field(default_factory=list)
    """Metrics by group for each protected column."""
    amounts: EvaluatedAmounts | None = None
    """Captured amounts and costs of errors. Null without `amount` and `costs`, and until the evaluation is ready."""
    drift: Drift | None
    """Changes since the model's validation. Null if the model has no validation, or if it is not independent of these
    rows; a warning says which."""
    findings: list[Finding] = Field(default_factory=list)
    """The answers of this evaluation, which `GET …/models/{ref}/checks` uses if its rows are the newest: first how the
    model ranks. Empty without `drift`."""


_METRICS: dict[str, type[EvaluatedCurve | EvaluatedPairs | EvaluatedLabels | EvaluatedGrades]] = {
    DatasetKind.BIPARTITE: EvaluatedCurve,
    DatasetKind.PREFERENCES: EvaluatedPairs,
    DatasetKind.MULTILABEL: EvaluatedLabels,
    DatasetKind.GRADED: EvaluatedGrades,
}


def _cutoff_of(row: EvaluationRow) -> EvaluationCutoff | None:
    point = (row.metrics or {}).get("operating_point")
    if point is None:
        return None
    spec, source = row.job.spec, "objective"
    if "at" in spec:
        source = "at"
    elif "alias_threshold" in spec:
        source = "alias"
    return EvaluationCutoff(threshold=point["threshold"], source=source)


def _summary_of(row: EvaluationRow) -> dict[str, Any]:
    spec = row.job.spec
    grouping, money = spec.get("grouping") or {}, spec.get("amounts") or {}
    main = None
    if row.metrics is not None and row.kind != DatasetKind.MULTILABEL:
        main = next(measures(row.metrics), None)
    return {
        "status": status_of(row),
        "error": row.job.error,
        "alias": spec.get("alias"),
        "group_by": grouping.get("column"),
        "at": spec.get("at"),
        "cutoff": _cutoff_of(row),
        "cutoffs": grouping.get("cutoffs"),
        "amount": money.get("column"),
        "costs": money.get("costs"),
        "seen": seen_of(row),
        "metric": main and Interval(value=main.value, low=main.low, high=main.high),
        "periods": (row.metrics or {}).get(BY_PERIOD),
    }


def listed_evaluation_of(row: EvaluationRow) -> ListedEvaluation:
    return ListedEvaluation.from_row(
        row,
        changed=any(each.answer == "no" for each in row.findings) if row.findings else None,
        **_summary_of(row),
    )


def evaluation_of(row: EvaluationRow) -> Evaluation:
    metrics = row.metrics or {}
    if (weak := metrics.get("weak_segments")) is not None:
        metrics = {**metrics, "weak_segments": describe_segments(weak)}
    return Evaluation.from_row(
        row,
        metrics=None if row.metrics is None else _METRICS[row.kind].model_validate(metrics),
        groups=metrics.get(BY_GROUP),
        protected=metrics.get(PROTECTED, []),
        amounts=metrics.get(BY_AMOUNT),
        findings=findings_of(row),
        **_summary_of(row),
    )


class ModelChecks(Resource):
    """Whether the model is ready for use: six findings about its stored results."""

    model_id: ModelId
    answer: Answer
    """`no` if one of the findings is `no`; else `unknown` if one is; else `yes`. Those that are `not_applicable` do not
    count."""
    findings: list[Finding]
    """`ranks`, `beats_baselines`, `probabilities`, `ranking_kept`, `stable` and `groups`, in this order."""


class ComparedModel(Resource):
    """One of the compared models, under its name at the time of the request."""

    model_id: ModelId
    name: ModelName
    version: ModelVersion
    seen: SEEN | None = Field(
        default=None,
        description=f"{SEEN_WORDS}Null until this is known, and if the training table was deleted before.",
    )


class ComparedValue(Interval):
    """The value of one model."""

    model_id: ModelId


class ComparedPair(Resource):
    """The value of `first` minus the value of `second`, on the same rows."""

    first: str
    """Id of the first model."""
    second: str
    """Id of the second model."""
    value: float
    """The difference."""
    low: Low
    high: High
    p_value: float | None = Field(description=NULL_IF_TOO_FEW)
    adjusted_p_value: float | None
    """p-value adjusted with Holm's method over all pairs and windows. Null without `p_value`."""


SIGNIFICANT = 0.05
"""The greatest adjusted p-value of a difference by which one model is better than another."""


class _Compared(Resource):
    """Models compared by one number; higher is better."""

    differences: list[ComparedPair]
    """Difference of each pair of models."""
    winner: str | None = Field(
        default=None,
        description="Id of the model that is better than every other one, each difference with an adjusted p-value of "
        f"at most {SIGNIFICANT}. Null if there is none.",
    )

    @model_validator(mode="after")
    def _name_winner(self) -> _Compared:
        """Name the model that is significantly better than every other one."""
        pairs = [
            *((each.first, each.value, each) for each in self.differences),
            *((each.second, -each.value, each) for each in self.differences),
        ]
        for model in dict.fromkeys(model for model, _, _ in pairs):
            own = [(by, each) for one, by, each in pairs if one == model]
            p_values = [each.adjusted_p_value for _, each in own]
            significant = all(p is not None and p <= SIGNIFICANT for p in p_values)
            if significant and all(by > 0.0 for by, _ in own):
                self.winner = model
        return self


class ComparedWindow(_Compared):
    """Areas of the models over one window, and their differences."""

    fpr_min: FprMin
    fpr_max: FprMax
    values: list[ComparedValue]
    """Area of each model over the window, divided by its width."""
    p_value: float | None = Field(
        description=f"Joint p-value of the hypothesis that all areas over this window are equal. {NULL_IF_TOO_FEW}"
    )


class ComparedMetric(_Compared):
    """The models compared by one metric."""

    metric: str
    """Name of the metric."""
    values: list[ComparedValue]
    """Value of each model."""
    differences: list[ComparedPair]
    """Difference of each pair of models. p-values are adjusted with Holm's method over all pairs and metrics,
    separately from the windows."""
    p_value: float | None
    """Joint p-value of the hypothesis that the metric is equal for all models. Null for an area over a window that
    holds fewer than 3 effective negatives."""


class ComparedCost(LeastCost):
    """Costs of one model at its cutoff of lowest cost."""

    model_id: ModelId


class ComparedCostPair(ComparedPair):
    """Held-out cost per row of `first` minus that of `second`. Below 0: `first` is cheaper."""

    p_value: PValue
    adjusted_p_value: float
    """p-value adjusted with Holm's method over all pairs."""


class ComparedCosts(Resource):
    """The models compared by the costs of their errors."""

    models: list[ComparedCost]
    """Costs of each model."""
    differences: list[ComparedCostPair]
    """Difference of each pair of models."""


class ComparedLists(ComparedMetric):
    """The models compared by the mean of one metric over the queries. The tests are paired by query."""

    queries: int
    """Number of queries in which the metric is defined."""
    skipped: int
    """Number of queries in which the metric is undefined."""


class ComparedPoint(Resource):
    """A point of a ROC curve."""

    fpr: float
    """False positive rate."""
    tpr: float
    """True positive rate."""


class ComparedCurve(Resource):
    """The ROC curve of one model on the compared rows."""

    model_id: ModelId
    points: list[ComparedPoint] = Field(
        description=f"At most {CURVE_POINTS} points, from (0, 0) to (1, 1)."
    )


class ComparedAtCapacity(_Compared):
    """The models compared by the number of positives among the rows that can be reviewed."""

    review: int
    """Number of rows that can be reviewed, as requested."""
    rows: int
    """Number of rows that they are chosen from, as requested."""
    metric: str
    """The metric that the numbers are computed from: the precision in this fraction of the rows."""
    values: list[ComparedValue]
    """For each model, the expected number of positives among the reviewed rows: `review` times the precision. The
    interval is that of the mean; the number in a single list also varies by chance."""
    p_value: float | None
    """Joint p-value of the hypothesis that all models find equally many."""


class ComparisonResult(Resource):
    """The result of a comparison."""

    positives: Positives
    negatives: Negatives
    groups: int | None
    """Number of groups. Null unless the dataset has a group column; the tests then allow for correlation within a
    group."""
    n_tests: int
    """Number of tests: pairs of models times windows that have p-values."""
    p_value: float | None
    """Joint p-value of the hypothesis that all areas are equal in every window that has p-values. Null if no window
    has."""
    windows: list[ComparedWindow]
    """The comparison over each window."""
    metrics: list[ComparedMetric] = Field(default_factory=list)
    """The comparison by each of the requested `metrics`."""
    capacity: ComparedAtCapacity | None = None
    """The comparison at the requested review capacity. Null without one."""
    costs: ComparedCosts | None = None
    """The comparison by costs. Null if no costs were requested."""
    lists: list[ComparedLists] = Field(default_factory=list)
    """The comparison within queries, by `auc`, `ndcg@10` and `map`. Empty without a query column."""
    curves: list[ComparedCurve] = Field(default_factory=list)
    """ROC curve of each model on these rows."""


class ComparisonSummary(_OnDataset):
    """The members that a comparison and a list of comparisons share."""

    models: list[ComparedModel]
    """The compared models, in the order of the request."""
    warnings: list[str]
    """Warnings about the rows and the result. One names the models that were trained on rows of the dataset."""
    capacity: ReviewCapacity | None = None
    """The requested review capacity. Null if none was requested."""
    created_at: CreatedAt


class ListedComparison(ComparisonSummary):
    """A comparison in a list."""

    p_value: float | None
    """Joint p-value of the hypothesis that all areas are equal in every window. Null if no window has one, and until
    the comparison is ready."""


class Comparison(ComparisonSummary):
    """A comparison of models on one dataset. A comparison remains when a model or the dataset is deleted."""

    result: ComparisonResult | None
    """The result. Null until the comparison is ready."""


def _comparison_summary_of(row: ComparisonRow) -> dict[str, Any]:
    money, capacity = row.job.spec.get("amounts") or {}, row.job.spec.get("capacity")
    return {
        "status": status_of(row),
        "error": row.job.error,
        "models": [
            ComparedModel.from_row(one, seen=seen_in(row, one.model_id)) for one in row.models
        ],
        "amount": money.get("column"),
        "costs": money.get("costs"),
        "capacity": capacity and {name: capacity[name] for name in ReviewCapacity.model_fields},
    }


def listed_comparison_of(row: ComparisonRow) -> ListedComparison:
    p_value = (row.result or {}).get("p_value")
    return ListedComparison.from_row(row, p_value=p_value, **_comparison_summary_of(row))


def comparison_of(row: ComparisonRow) -> Comparison:
    return Comparison.from_row(row, **_comparison_summary_of(row))
