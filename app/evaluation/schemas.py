"""Evaluations and comparisons over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

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
from app.models.schemas import Height, MeanArea, WindowArea
from app.platform.tables import Comparison as ComparisonRow
from app.platform.tables import DatasetKind
from app.platform.tables import Evaluation as EvaluationRow

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


class NewEvaluation(Body):
    """A model, and the dataset to evaluate it on."""

    model: Text = Field(description="The model: id, name, name:version or name@alias.")
    dataset_id: Text
    windows: Windows | None = Field(
        default=None,
        description="Windows of partial AUCs. Null: [0, 0.05] and the window of the model's objective. Not for pairs.",
    )
    level: float = LEVEL

    def to_request(self) -> EvaluationRequest:
        """What the service takes."""
        windows = None if self.windows is None else pairs_of(self.windows)
        return EvaluationRequest(self.model, self.dataset_id, windows, float(self.level))


class EvaluatedCut(Resource):
    """The rates on these rows at the model's threshold, which was chosen on its validation rows."""

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


class EvaluatedCurve(Resource):
    """Quality of the ranking on rows with one label."""

    auc: Interval
    pauc: list[WindowArea]
    tpr_at_fpr: list[Height]
    operating_point: EvaluatedCut | None = Field(
        description="For a model of the objective `tpr`; otherwise null."
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
    warnings: list[str]
    metrics: EvaluatedCurve | EvaluatedPairs | EvaluatedLabels | None = Field(
        description="The metrics; their form depends on `kind`. Null until the evaluation is ready."
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
    shown = {name: getattr(row, name) for name in same_fields(Evaluation)}
    metrics = None if row.metrics is None else _METRICS[row.kind].model_validate(row.metrics)
    return Evaluation.model_validate(
        shown | {"status": status_of(row), "metrics": metrics, "error": row.job.error}
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
    level: float = LEVEL

    def to_request(self) -> ComparisonRequest:
        """What the service takes."""
        return ComparisonRequest(
            self.models, self.dataset_id, pairs_of(self.windows), float(self.level)
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
