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
from app.http.schemas import Body, Interval, Rate, Resource, Text, Timestamp
from app.jobs.kinds import STATUS, status_of
from app.models.schemas import Height, MeanArea, WindowArea
from app.platform.tables import Comparison as ComparisonRow
from app.platform.tables import DatasetKind
from app.platform.tables import Evaluation as EvaluationRow

LEVEL = Field(default=DEFAULT_LEVEL, ge=LEVELS[0], le=LEVELS[1], description="Of the intervals.")


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
    """A model to be judged on a dataset."""

    model: Text = Field(description="Id, name, name:version or name@alias.")
    dataset_id: Text
    windows: Windows | None = Field(
        default=None,
        description="For partial AUCs. Null: [0, 0.05], and the window of the model's objective. Not for pairs.",
    )
    level: float = LEVEL

    def to_request(self) -> EvaluationRequest:
        """What the service takes."""
        windows = None if self.windows is None else pairs_of(self.windows)
        return EvaluationRequest(self.model, self.dataset_id, windows, float(self.level))


class EvaluatedCut(Resource):
    """What the model's own threshold, set on its validation rows, does to these rows."""

    threshold: float | None
    fpr: Interval
    tpr: Interval
    precision: Interval
    lift: Interval


class Totals(Resource):
    """Weight of each class, and how many independent observations it is worth."""

    positive: float
    negative: float
    positive_effective: float = Field(
        description="By the weights; where rows come in groups, of groups."
    )
    negative_effective: float


class EvaluatedCurve(Resource):
    """How well a model ranks rows with one label."""

    auc: Interval
    pauc: list[WindowArea]
    tpr_at_fpr: list[Height]
    operating_point: EvaluatedCut | None = Field(description="Of a model of the objective `tpr`.")
    positives: int
    negatives: int
    totals: Totals
    groups: int | None = Field(
        description="Where the dataset has a group column: the intervals allow for rows of a group being alike."
    )
    ties: float = Field(description="Share of the pairs of a positive and a negative.")


class EvaluatedPairs(Resource):
    """How well a model puts pairs of items in order."""

    pair_order: Interval
    misrank_fraction: float
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float


class EvaluatedLabel(Resource):
    """How well one label's scores rank."""

    label: str
    auc: Interval | None = Field(description="Null where the dataset has too few rows of a class.")
    pauc: list[WindowArea]
    positives: int
    negatives: int


class EvaluatedLabels(Resource):
    """How well a model with several labels ranks."""

    labels: list[EvaluatedLabel]
    judged: int = Field(description="Labels that have an AUC: the means are over these.")
    mean_auc: float
    mean_pauc: list[MeanArea]


class AreaDrift(Resource):
    """One area, at the model's validation and here: two independent samples."""

    of: str = Field(description="`auc`, `pauc` or `pair_order`.")
    label: str | None = Field(default=None, description="Of a model with several labels.")
    fpr_min: float | None = None
    fpr_max: float | None = None
    before: Interval
    after: Interval
    change: Interval = Field(description="`after` less `before`; its interval is Zou and Donner's.")
    p_value: float
    adjusted_p_value: float = Field(description="Holm's, over all tests of this drift.")
    changed: bool = Field(description="Whether the adjusted p-value is below 1 - level.")
    words: str


class ScoreDrift(Resource):
    """The scores of one class, at the model's validation and here."""

    of: str = Field(description="`positives` or `negatives`.")
    distance: float = Field(description="Kolmogorov and Smirnov's; the p-value is its.")
    higher: float = Field(
        description="Probability that a score here is above one of the validation, ties counted half."
    )
    p_value: float
    adjusted_p_value: float
    changed: bool
    words: str


class Drift(Resource):
    """What is otherwise than at the model's validation, beyond chance."""

    level: float = Field(description="Of the model's own intervals, and so of these tests.")
    changed: bool
    summary: str
    areas: list[AreaDrift]
    scores: list[ScoreDrift] = Field(
        description="Scores may move while the order stays as good: then thresholds are to be set anew."
    )


class Evaluation(Resource):
    """How good a model is on a dataset. It stays when the model or the dataset is deleted."""

    id: str
    status: str = Field(description=STATUS)
    job_id: str
    model_id: str
    model_name: str
    model_version: int
    kind: str = Field(description="Of the dataset: `bipartite`, `preferences` or `multilabel`.")
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None = Field(description="Of the content of that version.")
    windows: list[NewWindow]
    level: float
    warnings: list[str]
    metrics: EvaluatedCurve | EvaluatedPairs | EvaluatedLabels | None = Field(
        description="By the kind; null until it is ready."
    )
    drift: Drift | None = Field(
        description="Null where there is no validation to compare with, or it is not independent of these rows: "
        "a warning says which."
    )
    error: dict[str, Any] | None = Field(description="A problem, once its job has failed.")
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
    """Models to be compared on a dataset."""

    models: Annotated[list[Text], Field(min_length=MIN_MODELS, max_length=MAX_MODELS)] = Field(
        description="Each an id, name, name:version or name@alias."
    )
    dataset_id: Text
    windows: Windows = Field(
        default=[NewWindow(fpr_max=1.0)], description="[0, 1] compares the whole AUC."
    )
    level: float = LEVEL

    def to_request(self) -> ComparisonRequest:
        """What the service takes."""
        return ComparisonRequest(
            self.models, self.dataset_id, pairs_of(self.windows), float(self.level)
        )


class ComparedModel(Resource):
    """One of the models, as it was called when the comparison was asked for."""

    model_id: str
    name: str
    version: int


class ComparedValue(Interval):
    """The area of one model over a window, divided by the window's width."""

    model_id: str


class ComparedPair(Resource):
    """How much greater the area of `first` is than that of `second`, on the same rows."""

    first: str = Field(description="A model's id.")
    second: str
    value: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float = Field(description="Holm's, over all pairs and all windows.")


class ComparedWindow(Resource):
    """The models over one window."""

    fpr_min: float
    fpr_max: float
    values: list[ComparedValue]
    differences: list[ComparedPair]
    p_value: float = Field(description="Joint: of all areas over this window being equal.")


class ComparisonResult(Resource):
    """What the rows say of the models."""

    positives: int
    negatives: int
    groups: int | None = Field(
        description="Where the dataset has a group column: the tests allow for rows of a group being alike."
    )
    n_tests: int = Field(description="Pairs times windows.")
    p_value: float = Field(description="Joint: of all areas being equal in every window.")
    windows: list[ComparedWindow]


class Comparison(Resource):
    """Models on one dataset. It stays when a model or the dataset is deleted."""

    id: str
    status: str = Field(description=STATUS)
    job_id: str
    models: list[ComparedModel]
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None = Field(description="Of the content of that version.")
    windows: list[NewWindow]
    level: float
    warnings: list[str] = Field(
        description="Among them which models were trained on rows of the dataset."
    )
    result: ComparisonResult | None = Field(description="Null until it is ready.")
    error: dict[str, Any] | None = Field(description="A problem, once its job has failed.")
    created_at: Timestamp


def comparison_of(row: ComparisonRow) -> Comparison:
    """Show a row with the state of its job."""
    shown = {name: getattr(row, name) for name in same_fields(Comparison)}
    return Comparison.model_validate(shown | {"status": status_of(row), "error": row.job.error})
