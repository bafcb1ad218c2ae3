"""Evaluations and comparisons over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from app.evaluation.groups import BY_GROUP, Groups
from app.evaluation.service import (
    DEFAULT_LEVEL,
    LEVELS,
    MAX_MODELS,
    MAX_WINDOWS,
    MIN_MODELS,
    ComparisonRequest,
    EvaluationRequest,
)
from app.http.schemas import Body, Interval, Kind, Rate, Resource, Text, Timestamp, one_of
from app.jobs.kinds import STATUS, STATUSES, status_of
from app.models.schemas import Height, MeanArea, Reliability, ReliabilityPoint, WindowArea
from app.models.service import MAX_FIGURES
from app.platform.tables import Comparison as ComparisonRow
from app.platform.tables import DatasetKind
from app.platform.tables import Evaluation as EvaluationRow
from core.metrics.window import CUTS, MAX_GROUPS

LEVEL = Field(
    default=DEFAULT_LEVEL,
    ge=LEVELS[0],
    le=LEVELS[1],
    description="Confidence level of the intervals.",
)


class NewWindow(Body):
    """A window of false positive rates."""

    fpr_min: Rate = 0.0
    fpr_max: Rate


Windows = Annotated[list[NewWindow], Field(min_length=1, max_length=MAX_WINDOWS)]


def pairs_of(windows: list[NewWindow]) -> list[tuple[float, float]]:
    """The windows as the service takes them."""
    return [(float(window.fpr_min), float(window.fpr_max)) for window in windows]


def same_fields(shape: type[Resource]) -> set[str]:
    """What a row has as its shape does."""
    return shape.model_fields.keys() - {"status", "metrics", "error"}


class NewCut(Body):
    """The cut that an evaluation is judged at. Pass one of the three."""

    fpr: Rate | None = Field(
        default=None,
        description="The model's cut with at most this FPR, chosen on its validation rows.",
    )
    tpr: Rate | None = Field(
        default=None,
        description="The model's cut with at least this TPR, chosen on its validation rows.",
    )
    threshold: float | None = Field(
        default=None, description="Flag every row whose score is at least this."
    )

    def given(self) -> dict[str, float]:
        """What is not null, by its name."""
        return {name: float(value) for name, value in self if value is not None}


Cuts = Literal["equal_fpr", "equal_tpr"]


class NewEvaluation(Body):
    """A model, and the dataset to evaluate it on."""

    model: Text = Field(description="The model: id, name, name:version or name@alias.")
    dataset_id: Text
    windows: Windows | None = Field(
        default=None,
        description="Windows of partial AUCs. Null: [0, 0.05] and the window of the model's objective. Not for pairs.",
    )
    level: float = LEVEL
    group_by: Text | None = Field(
        default=None,
        description="A column of the dataset whose values are compared as groups: categories, booleans or few numbers. "
        f"At most {MAX_GROUPS} groups. The model need not use it. Rows without a value are a group of their own.",
    )
    at: NewCut | None = Field(
        default=None,
        description="The cut whose rates are measured. Default: the cut of a model of the objective `tpr`.",
    )
    cuts: Cuts | None = Field(
        default=None,
        description="Also choose a cut for each group, on these rows, with one FPR (`equal_fpr`) or one TPR "
        "(`equal_tpr`) within each group: the rate of `at`, or that of all rows at the cut.",
    )

    def to_request(self) -> EvaluationRequest:
        """What the service takes."""
        windows = None if self.windows is None else pairs_of(self.windows)
        at = None if self.at is None else self.at.given()
        groups = Groups(self.group_by, at, self.cuts)
        return EvaluationRequest(self.model, self.dataset_id, windows, float(self.level), groups)


class EvaluatedCut(Resource):
    """The rates on these rows at the threshold that `at` names, or that a model of the objective `tpr` has."""

    threshold: float | None
    fpr: Interval
    tpr: Interval
    precision: Interval
    lift: Interval


class Totals(Resource):
    """Total weight of each class, and its effective number of independent observations."""

    positive: float
    negative: float
    positive_effective: float = Field(
        description="Effective number of positive rows, given the weights. With a group column: effective number of "
        "groups."
    )
    negative_effective: float


class CalibrationDrift(Reliability):
    """How good the probabilities of a model's calibration are on later rows."""

    version: int = Field(description="The version of the calibration that was served.")


class EvaluatedCurve(Resource):
    """Quality of the ranking on rows with one label."""

    auc: Interval
    pauc: list[WindowArea]
    tpr_at_fpr: list[Height]
    operating_point: EvaluatedCut | None = Field(
        description="At the cut of `at`, or of a model of the objective `tpr`; otherwise null."
    )
    positives: int
    negatives: int
    totals: Totals
    groups: int | None = Field(
        description="Number of groups, if the dataset has a group column. The intervals then allow for correlation "
        "within a group."
    )
    ties: float = Field(
        description="Fraction of the pairs of a positive and a negative that have equal scores."
    )
    calibration: CalibrationDrift | None = Field(
        default=None,
        description="How good the model's probabilities are on these rows. Null if it had no calibration.",
    )


class GroupFigure(Interval):
    """A figure of one group, or the reason why it has none."""

    reason: str | None = Field(
        description="Null if there is a figure. Else what the group lacks, such as rows of a class."
    )


class GroupArea(GroupFigure):
    """Partial AUC within one group, over a window of FPR within the group."""

    fpr_min: float
    fpr_max: float


class GroupCut(Resource):
    """A group's own cut, chosen on these same rows: see `note`. The intervals do not include its choice."""

    threshold: float | None = Field(description="Null: no row is flagged.")
    threshold_low: float | None = Field(
        description="The cut of the population lies between this and `threshold_high`. Null: the rows set no limit."
    )
    threshold_high: float | None
    fpr: Interval
    tpr: Interval


class GroupCalibration(Resource):
    """The positives that the served probabilities predict in a group, and those that there are."""

    predicted: float | None = Field(description="Mean probability. Null if no row has a weight.")
    observed: GroupFigure = Field(description="Fraction of positives.")
    in_the_large: GroupFigure = Field(
        description="Log odds to add to every probability so that as many positives are predicted as there are. 0 lies "
        "outside of the interval: the group's probabilities are too low (above 0) or too high."
    )
    points: list[ReliabilityPoint] = Field(
        description="The group's reliability diagram, at most 11 points. Empty where `in_the_large` has none."
    )


class EvaluatedGroup(Resource):
    """The counts and figures of one group."""

    value: str | None = Field(
        description="Value of the column as text. Null: the rows without a value."
    )
    rows: int = Field(description="Number of rows of weight above 0.")
    positives: int
    negatives: int
    auc: GroupFigure
    pauc: list[GroupArea]
    tpr: GroupFigure | None = Field(
        description="Fraction of the group's positives at or above `threshold`. Null without a cut."
    )
    fpr: GroupFigure | None = Field(
        description="Fraction of the group's negatives at or above `threshold`. Null without a cut."
    )
    cut: GroupCut | None = Field(description="Null unless `cuts` was asked for.")
    cut_reason: str | None = Field(description="Why the group has no cut of its own.")
    calibration: GroupCalibration | None = Field(
        default=None, description="Null if the model had no calibration."
    )


class CrossGroupAuc(GroupFigure):
    """xAUC: the probability that a positive of one group scores above a negative of another; a tie counts half
    (Kallus & Zhou 2019).
    """

    positives_of: str | None = Field(description="The group of the positives.")
    negatives_of: str | None = Field(description="The group of the negatives.")


GroupMeasure = Annotated[str, one_of(("auc", "pauc", "tpr", "fpr"))]
TestedMeasure = Annotated[str, one_of(("auc", "pauc", "tpr", "fpr", "calibration"))]


class GroupTest(Resource):
    """A joint test that a figure is the same in all groups that have it."""

    of: TestedMeasure = Field(
        description="`calibration` is the calibration in the large: the groups' probabilities are wrong by the same "
        "log odds, or right."
    )
    fpr_min: float | None = Field(description="Of a partial AUC; otherwise null.")
    fpr_max: float | None
    groups: int = Field(description="Number of groups that have the figure.")
    p_value: float | None = Field(description="Null if fewer than two groups have the figure.")
    adjusted_p_value: float | None = Field(
        description="p-value adjusted by Holm over all tests shown here."
    )
    differs: bool | None = Field(
        description="True if the adjusted p-value is below 1 - level. Null without a test."
    )
    words: str


class WorstGroup(Interval):
    """The lowest area or TPR, or the greatest FPR, among the groups that have the figure. The value is that of the
    group observed to be worst; the interval is for the worst group of the population, whichever it is.
    """

    of: GroupMeasure
    fpr_min: float | None
    fpr_max: float | None
    value_of: str | None = Field(description="The group observed to be worst.")


class EvaluatedGroups(Resource):
    """Quality of the ranking by groups of rows."""

    column: str
    threshold: float | None = Field(description="The cut that all groups are judged at, if any.")
    cuts: Annotated[str, one_of(CUTS)] | None = Field(
        description="How the groups' own cuts were chosen. Null: there are none."
    )
    rate: float | None = Field(
        description="The FPR or TPR within each group that its own cut aims at."
    )
    note: str | None = Field(description="What must be known of the groups' own cuts.")
    groups: list[EvaluatedGroup] = Field(
        description="Ascending by value; the rows without one are last."
    )
    xauc: list[CrossGroupAuc] = Field(
        description="Every group's positives against every group's negatives; with its own negatives it is the AUC."
    )
    tests: list[GroupTest]
    worst: list[WorstGroup] = Field(description="Empty if fewer than two groups have a figure.")


class EvaluatedPairs(Resource):
    """Quality of the order of pairs of items."""

    pair_order: Interval
    misrank_fraction: float
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float


class EvaluatedLabel(Resource):
    """Quality of the ranking by one label's scores."""

    label: str
    auc: Interval | None = Field(description="Null if the dataset has too few rows of a class.")
    pauc: list[WindowArea]
    positives: int
    negatives: int


class EvaluatedLabels(Resource):
    """Quality of the ranking of a model with several labels."""

    labels: list[EvaluatedLabel]
    judged: int = Field(description="Number of labels that have an AUC. The means are over these.")
    mean_auc: float
    mean_pauc: list[MeanArea]


class AreaDrift(Resource):
    """Change of one area between the model's validation and this dataset: two independent samples."""

    of: Annotated[str, one_of(("auc", "pauc", "pair_order"))] = Field(
        description="`auc`, `pauc` or `pair_order`."
    )
    label: str | None = Field(
        default=None, description="The label, for a model with several labels."
    )
    fpr_min: float | None = None
    fpr_max: float | None = None
    before: Interval
    after: Interval
    change: Interval = Field(
        description="`after` minus `before`, with the interval of Zou and Donner."
    )
    p_value: float
    adjusted_p_value: float = Field(
        description="p-value adjusted by Holm over all tests of this drift."
    )
    changed: bool = Field(description="True if the adjusted p-value is below 1 - level.")
    words: str


class ScoreDrift(Resource):
    """Change of the scores of one class between the model's validation and this dataset."""

    of: Annotated[str, one_of(("positives", "negatives"))] = Field(
        description="`positives` or `negatives`."
    )
    distance: float = Field(
        description="Kolmogorov-Smirnov distance between the two samples of scores, from 0 to 1; `p_value` is that of "
        "its test."
    )
    higher: float = Field(
        description="Probability that a score on this dataset is greater than one of the validation; a tie counts half."
    )
    p_value: float
    adjusted_p_value: float
    changed: bool
    words: str


class Drift(Resource):
    """Significant changes since the model's validation."""

    level: float = Field(
        description="Confidence level of the model's intervals. The tests use 1 - level."
    )
    changed: bool
    summary: str
    areas: list[AreaDrift]
    scores: list[ScoreDrift] = Field(
        description="Change of the scores. If the scores change but the areas do not, choose new thresholds."
    )


class Evaluation(Resource):
    """The quality of a model on a dataset. It stays when the model or the dataset is deleted."""

    id: str
    status: Annotated[str, one_of(STATUSES)] = Field(description=STATUS)
    job_id: str
    model_id: str
    model_name: str
    model_version: int
    kind: Kind = Field(
        description="Kind of the dataset: `bipartite`, `preferences` or `multilabel`."
    )
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None = Field(description="SHA-256 of the content of that version.")
    windows: list[NewWindow]
    level: float
    group_by: str | None = Field(default=None, description="The column that names the groups.")
    at: NewCut | None = Field(default=None, description="The cut that was asked for.")
    cuts: Annotated[str, one_of(CUTS)] | None = Field(
        default=None, description="The groups' own cuts that were asked for."
    )
    warnings: list[str]
    metrics: EvaluatedCurve | EvaluatedPairs | EvaluatedLabels | None = Field(
        description="The metrics; their form depends on `kind`. Null until the evaluation is ready."
    )
    groups: EvaluatedGroups | None = Field(
        default=None,
        description="The metrics by group. Null without `group_by`, and until the evaluation is ready.",
    )
    drift: Drift | None = Field(
        description="Null if the model has no validation, or if it is not independent of these rows; a warning says "
        "which."
    )
    error: dict[str, Any] | None = Field(description="The problem, if the job failed.")
    created_at: Timestamp


_METRICS: dict[str, type[EvaluatedCurve | EvaluatedPairs | EvaluatedLabels]] = {
    DatasetKind.BIPARTITE: EvaluatedCurve,
    DatasetKind.PREFERENCES: EvaluatedPairs,
    DatasetKind.MULTILABEL: EvaluatedLabels,
}


def evaluation_of(row: EvaluationRow) -> Evaluation:
    """Show a row with the state of its job."""
    kept = same_fields(Evaluation) - {"group_by", "at", "cuts", "groups"}
    shown = {name: getattr(row, name) for name in kept}
    metrics = None if row.metrics is None else _METRICS[row.kind].model_validate(row.metrics)
    spec = row.job.spec
    grouping = spec.get("grouping") or {}
    asked = {
        "group_by": grouping.get("column"),
        "at": spec.get("at"),
        "cuts": grouping.get("cuts"),
        "groups": (row.metrics or {}).get(BY_GROUP),
    }
    return Evaluation.model_validate(
        shown | asked | {"status": status_of(row), "metrics": metrics, "error": row.job.error}
    )


class NewComparison(Body):
    """Models, and the dataset to compare them on."""

    models: Annotated[list[Text], Field(min_length=MIN_MODELS, max_length=MAX_MODELS)] = Field(
        description="The models, each as id, name, name:version or name@alias."
    )
    dataset_id: Text
    windows: Windows = Field(
        default=[NewWindow(fpr_max=1.0)],
        description="Windows of false positive rates; [0, 1] is the whole AUC.",
    )
    figures: Annotated[list[Text], Field(max_length=MAX_FIGURES)] = Field(
        default_factory=list,
        description="Other figures to compare by, each by its name in …/figures, such as `average_precision`, "
        "`precision@100` or `two_way:0.1,0.8`. Default: none.",
    )
    level: float = LEVEL

    def to_request(self) -> ComparisonRequest:
        """What the service takes."""
        return ComparisonRequest(
            self.models,
            self.dataset_id,
            pairs_of(self.windows),
            float(self.level),
            self.figures,
        )


class ComparedModel(Resource):
    """One of the models, under its name when the comparison was requested."""

    model_id: str
    name: str
    version: int


class ComparedValue(Interval):
    """The area of one model over a window, divided by the window's width."""

    model_id: str


class ComparedPair(Resource):
    """Area of `first` minus area of `second`, on the same rows."""

    first: str = Field(description="Id of a model.")
    second: str
    value: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float = Field(
        description="p-value adjusted by Holm over all pairs and windows."
    )


class ComparedWindow(Resource):
    """The areas of the models over one window, and their differences."""

    fpr_min: float
    fpr_max: float
    values: list[ComparedValue]
    differences: list[ComparedPair]
    p_value: float = Field(
        description="Joint p-value of the hypothesis that all areas over this window are equal."
    )


class ComparedFigure(Resource):
    """The models by one figure, and their differences."""

    figure: str = Field(description="The name of the figure.")
    values: list[ComparedValue]
    differences: list[ComparedPair] = Field(
        description="The adjusted p-values are Holm's over all pairs and figures, apart from the windows."
    )
    p_value: float = Field(
        description="Joint p-value of the hypothesis that all models have the same figure."
    )


class ComparisonResult(Resource):
    """The result of a comparison."""

    positives: int
    negatives: int
    groups: int | None = Field(
        description="Number of groups, if the dataset has a group column. The tests then allow for correlation within "
        "a group."
    )
    n_tests: int = Field(description="Number of tests: pairs of models times windows.")
    p_value: float = Field(
        description="Joint p-value of the hypothesis that all areas are equal in every window."
    )
    windows: list[ComparedWindow]
    figures: list[ComparedFigure] = Field(
        default_factory=list, description="The comparison by each of the `figures` of the request."
    )


class Comparison(Resource):
    """A comparison of models on one dataset. It stays when a model or the dataset is deleted."""

    id: str
    status: Annotated[str, one_of(STATUSES)] = Field(description=STATUS)
    job_id: str
    models: list[ComparedModel]
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None = Field(description="SHA-256 of the content of that version.")
    windows: list[NewWindow]
    level: float
    warnings: list[str] = Field(
        description="Warnings; one names the models that were trained on rows of the dataset."
    )
    result: ComparisonResult | None = Field(description="Null until the comparison is ready.")
    error: dict[str, Any] | None = Field(description="The problem, if the job failed.")
    created_at: Timestamp


def comparison_of(row: ComparisonRow) -> Comparison:
    """Show a row with the state of its job."""
    shown = {name: getattr(row, name) for name in same_fields(Comparison)}
    return Comparison.model_validate(shown | {"status": status_of(row), "error": row.job.error})
