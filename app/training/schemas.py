"""Request and response bodies of algorithms, training jobs and results of validation."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import Field, JsonValue, StringConstraints, WithJsonSchema, model_validator

from app.datasets.schemas import Duplicates
from app.findings.finding import Finding
from app.http.schemas import (
    NULL_IF_TOO_FEW,
    Body,
    FprMax,
    FprMin,
    Interval,
    IsValid,
    Level,
    ModelId,
    Resource,
    Tags,
    Text,
    at_most,
    with_members,
)
from app.jobs import parameters
from app.jobs.objectives import OBJECTIVES, Auc, ObjectiveBody
from app.models.simple import beats_baselines, is_baseline, say_beats_baselines
from app.platform.documents import Baseline, FoldAuc, FoldMembers, LeaderboardRow, Member
from app.platform.errors import NAME_PATTERN, invalid, shown
from app.platform.tables import Model, ModelBaselines
from app.training import search, splits
from app.training.algorithms import Algorithm
from app.training.service import TrainRequest

DAY = 86_400.0
MAX_PROTECTED = 100
"""Most protected columns that a job names as features."""
MAX_SEARCHED = 100
"""Parameters of a search; no algorithm has so many."""


class Algorithms(Resource):
    """All ranking algorithms."""

    data: list[Algorithm]
    """The algorithms."""


if TYPE_CHECKING:
    AnyObjective = ObjectiveBody
else:
    AnyObjective = Union[tuple(OBJECTIVES.values())]  # noqa: UP007 - of a registry


TimeColumn = Annotated[
    Text | None,
    Field(
        description="Column of numbers or ISO 8601 dates. The validation rows are then the newest rows: each is "
        "later than every training row. The column is not used as a feature. Default: the dataset's "
        "date column, if it has exactly one, the column has no missing values, the dataset has no "
        "group and no query, and `repeats` is 1. Otherwise, and with null, rows are drawn at random, "
        "stratified by class, and dates are used as features.",
    ),
]


class Holdout(Body):
    """Hold out a stratified fraction of the rows and validate on it."""

    method: Literal["holdout"]
    """Always `holdout`."""
    fraction: Annotated[
        float, Field(gt=0, lt=1, description="Fraction of the rows to hold out.")
    ] = splits.HOLDOUT_FRACTION
    time_column: TimeColumn = None


class CrossValidation(Body):
    """Score each fold with a ranker trained on the other folds. The served ranker is trained on all rows.

    Areas are means over the folds. The curve, `fpr` and `tpr` of the served model come from the out-of-fold scores and
    are marked `approximate`. Each fold has its own parameter search.
    """

    method: Literal["cross_validation"]
    """Always `cross_validation`."""
    folds: Annotated[int, Field(ge=2, le=splits.MAX_FOLDS, description="Number of folds.")] = (
        splits.FOLDS
    )
    repeats: Annotated[
        int,
        Field(
            ge=1,
            le=splits.MAX_REPEATS,
            description="How many times the rows are divided into folds. Must be 1 with a `time_column`.",
        ),
    ] = 1
    time_column: TimeColumn = None


class OtherDataset(Body):
    """Validate on another dataset."""

    method: Literal["dataset"]
    """Always `dataset`."""
    dataset_id: Text
    """Id of the dataset to validate on."""


class NoValidation(Body):
    """Train on all rows without validation. The model has no ROC curve, and its scores have no `fpr` and `tpr`."""

    method: Literal["none"]
    """Always `none`."""


Dimension = Annotated[
    JsonValue,
    # Without a type: generators of Java cannot write a choice that has an array.
    WithJsonSchema(
        {
            "description": "1 to 100 values as an array; or a range as an object with the numbers `low` and `high`, "
            "and optionally `log` and `integer`, which are true or false."
        }
    ),
]
"""Values to choose from, or a range to draw from, both ends included; `log` draws the logarithm."""

InnerFolds = Annotated[
    int | None,
    Field(
        ge=2,
        le=search.MAX_FOLDS,
        description="Number of inner folds of the training rows on which candidates are compared. Default: one "
        "part is held out instead.",
    ),
]
InnerFraction = Annotated[
    float,
    Field(
        gt=0,
        lt=1,
        description="Fraction of the training rows held out to compare candidates. Not used with `folds`.",
    ),
]
Candidates = Annotated[
    int | None,
    Field(
        ge=1, le=1000, description="Number of candidates to draw. Default: 20, or 27 for halving."
    ),
]


class GridSearch(Body):
    """Try every combination of values, and train with the best.

    One fit covers all values of `n_rounds`, or of an SVM's `C`. Candidates are trained on one part of the training rows
    and compared by the job's objective on the rest. The served ranker is trained with the chosen values on all training
    rows. The validation rows of the model are not used for the choice.
    """

    method: Literal["grid"]
    """Always `grid`."""
    space: Annotated[dict[str, list[JsonValue]], at_most(MAX_SEARCHED)]
    """Parameters to search, each with 1 to 100 values."""
    folds: InnerFolds = None
    fraction: InnerFraction = search.FRACTION


class _Drawn(Body):
    space: Annotated[dict[str, Dimension], at_most(MAX_SEARCHED)]
    """Parameters to search, each with a list of values or a range."""
    n_candidates: Candidates = None
    folds: InnerFolds = None
    fraction: InnerFraction = search.FRACTION


class RandomSearch(_Drawn):
    """Try candidates drawn at random. Otherwise the same as a grid search."""

    method: Literal["random"]
    """Always `random`."""


class HalvingSearch(_Drawn):
    """Successive halving: try many random candidates on few rows, then the best third on three times as many rows, and
    so on.
    """

    method: Literal["halving"]
    """Always `halving`."""


VALIDATION_METHODS = ("holdout", "cross_validation", "dataset", "none")
Validation = Annotated[
    Holdout | CrossValidation | OtherDataset | NoValidation, Field(discriminator="method")
]
Search = Annotated[GridSearch | RandomSearch | HalvingSearch, Field(discriminator="method")]


def _refuse_unknown_method(job: dict[str, Any], member: str, known: Collection[str]) -> None:
    """Raise Invalid, with the known methods, for an unknown method of search or validation."""
    given = job.get(member)
    method = given.get("method") if isinstance(given, dict) else None
    if isinstance(method, str) and method not in known:
        raise invalid(
            f"/{member}/method",
            f"{member}.method must be one of {', '.join(known)}, got {shown(method)}",
            code="unsupported",
        )


@with_members(parameters.asked_members())
class JobRequest(Body):
    """A training job. Only `dataset_id` and `algorithm.name` are required."""

    dataset_id: Text
    """Id of a ready dataset to train on."""
    algorithm: dict[str, JsonValue]
    """`name`, and optionally parameters of that algorithm: see `GET /v1/algorithms`."""
    name: Annotated[str, StringConstraints(pattern=NAME_PATTERN)] | None = None
    """Name of the model. Default: the name of the algorithm."""
    objective: Annotated[
        AnyObjective,
        Field(
            discriminator="metric",
            description="What to maximise. It chooses parameters, thresholds and, for some algorithms, the training "
            "loss.",
        ),
    ] = Auc(metric="auc")
    validation: Validation | None = None
    """How to validate the model. Default: a quarter of the rows is held out; repeated cross-validation for a small
    table, which has fewer than 3,000 rows, or fewer than 100 rows of a class among at most 100,000. It divides the rows
    into 5 folds 4 times (3 times for more than 3,000 rows, with a `search` or with `auto`). A quarter is also held out
    of a small table if it has another `kind`, a query or dates to split by, if `auto` has less than 2.5 seconds for
    each fold (1 second with fewer than 1,200 rows), and if too few rows of a class are distinct or in different
    groups."""
    search: Search | None = None
    """Search for good parameters before training. Null: train with the given parameters."""
    baselines: bool | None = None
    """Whether to train baselines on the same splits for comparison: logistic regression and an SVM for the AUC. Null,
    the default: yes, on a sample of a table with many rows and columns. `true`: on all
    rows, however long it takes. `false`: no. `auto` includes them in its budget."""
    protected_features: Annotated[list[Text], Field(max_length=MAX_PROTECTED)] = Field(
        default=[], examples=[["age"]]
    )
    """Protected columns of the dataset that are features of this model, each by its name. By default none is. The model
    records who decided so and when, and its report repeats it."""
    timeout_seconds: Annotated[float, Field(gt=0, le=30 * DAY)] | None = None
    """Maximum run time in seconds, up to the setting `RANKWRIGHT_MAX_JOB_SECONDS`. Default: the setting
    `RANKWRIGHT_JOB_TIMEOUT_SECONDS`."""
    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    """Priority from -100 to 100. Among the jobs of one owner, those with a higher priority start first."""
    tags: Tags = Field(default_factory=dict)
    """Key–value labels for your own use, up to 50. The model gets the same tags."""

    @model_validator(mode="before")
    @classmethod
    def _offered(cls, data: Any) -> Any:
        if isinstance(data, dict):
            _refuse_unknown_method(data, "search", search.METHODS)
            _refuse_unknown_method(data, "validation", VALIDATION_METHODS)
        return data

    def to_request(self, author: str | None) -> TrainRequest:
        """Return the request for the service; `author` is the name of the caller."""
        given = self.model_dump(exclude_none=True)
        asked = self.validation
        if asked is not None and "time_column" in asked.model_fields_set:
            given["validation"].setdefault("time_column", None)  # null is not the default
        return TrainRequest(
            **given | {"algorithm": self.algorithm, "author": author}
        )  # a parameter may be null


class Estimate(Resource):
    """A rough estimate from the size of the table."""

    seconds: float
    """Expected run time in seconds."""
    memory_bytes: int
    """Expected peak memory in bytes."""


@with_members(parameters.shown_members(optional=False))
class JobCheck(Resource):
    """The job is valid. Nothing was created."""

    valid: IsValid
    algorithm: dict[str, Any]
    """Name of the algorithm and all its parameters."""
    objective: dict[str, Any]
    """Objective of the training: `metric` and its parameters."""
    validation: dict[str, Any]
    """Validation method as it would be stored. `time_column` names the column that selects the newest rows for
    validation."""
    search: dict[str, Any] | None
    """The parameter search. Null without one."""
    baselines: dict[str, Any]
    """`algorithms`: the baselines to train. `skipped`: why there are none. `share`: the fraction of the budget of
    `auto` that they may take; null: they are trained on all rows, however long it takes."""
    protected_features: list[str]
    """Protected columns of the dataset that are features of the model."""
    estimate: Estimate
    """A rough estimate of time and memory."""
    warnings: list[str]
    """Warnings about the data and the split."""
    duplicates: Duplicates | None
    """Rows of the dataset that are equal to another row, and where they go in the job's splits. Null without splits of
    its rows, and without a profile of the dataset."""


class OutOfFold(Resource):
    """The out-of-fold scores of a cross-validated model. Its AUC and curve are computed from them."""

    model_id: ModelId
    repeats: int
    """Number of repeats."""
    folds: int
    """Number of folds in each repeat."""
    fold_aucs: list[FoldAuc]
    """AUC of each fold."""
    columns: list[str]
    """Names of the columns of `data`."""
    data: list[list[float]]
    """One entry per row and repeat. `row` counts from 0 in the order of the dataset; `repeat` and `fold` count from 1;
    `y` is 1 for a positive. `score` is on the scale of the fold's ranker. `aligned_score` is on the scale of the served
    ranker: equal quantiles of the two rankers' scores on the fold's training rows have equal scores."""


# The stored forms of the next classes are in platform/documents. Here, members may be null that are not stored so.
class Difference(Interval):
    """The model's value minus the baseline's value."""

    p_value: float | None = Field(
        description=("p-value of the hypothesis that both values are equal. " + NULL_IF_TOO_FEW)
    )
    adjusted_p_value: float | None
    """p-value adjusted with Holm's method over all baselines and windows. Null without `p_value`."""


class BaselineArea(Resource):
    """The value of one baseline."""

    algorithm: str
    """Name of the baseline's algorithm."""
    area: Interval
    """Value of the baseline."""
    difference: Difference
    """Difference between the two values: that of the model minus that of the baseline."""


class WindowBaselines(Resource):
    """The model and the baselines over one window of false positive rates; [0, 1] is the AUC."""

    fpr_min: FprMin
    fpr_max: FprMax
    chosen: Interval
    """Area of the model."""
    baselines: list[BaselineArea]
    """Areas of the baselines."""


class MetricBaselines(Resource):
    """The model and the baselines by the metric of the job's objective."""

    metric: str
    """Name of the metric, as in `…/metric-estimates`. A row count is given as a fraction."""
    chosen: Interval
    """Value of the model."""
    baselines: list[BaselineArea]
    """Values of the baselines."""


class BaselineWindow(Resource):
    """A window of false positive rates."""

    fpr_min: FprMin
    fpr_max: FprMax


class Baselines(Resource):
    """Whether a model is significantly better than its baselines."""

    model_id: ModelId
    level: Level
    beats: bool | None
    """True if the model is better than every baseline, by `metric` or else by the area over `decided_on`, each with an
    adjusted p-value below 1 − `level`. False also if there are too few rows for a test. Null if no baseline was
    trained, or if `is_baseline`."""
    is_baseline: bool = False
    """True if the model is itself of the same kind as a baseline: a logistic regression or a linear SVM for the AUC.
    The differences then show only the effect of its parameters."""
    decided_on: BaselineWindow
    """Window of the job's objective. For `tpr`: the window that the model is trained for."""
    baselines: list[Baseline]
    """The baselines."""
    windows: list[WindowBaselines]
    """Comparison over each window."""
    metric: MetricBaselines | None = None
    """Comparison by the metric of an objective such as `average_precision` or `precision`. Null for other
    objectives."""
    skipped: str | None
    """Why no baselines were trained; otherwise null."""
    finding: Finding
    """The answer in words, as in `GET /v1/models/{ref}/checks`."""


class Leaderboard(Resource):
    """The candidates of `auto`, best first, and the members of the resulting model.

    `members`, `rows` and `folds` are the plan that was carried out: a job with
    `"algorithm": {"name": "auto", "plan": "mdl_…"}` repeats it.
    """

    model_id: ModelId
    budget_seconds: float | None
    """Time budget in seconds. Null for a model that was trained by a plan."""
    seconds: float
    """Duration of the search in seconds, without the final fit."""
    members: list[Member]
    """Rankers of the resulting ensemble, with the numbers of rounds or trees that they were fitted with."""
    rows: float
    """Fraction of the training rows that they were fitted on."""
    folds: list[FoldMembers]
    """With cross-validation, the same for each fold."""
    repeatable: bool
    """True if a job with this plan, the same dataset, validation and seed gives the same model, bit for bit. False if
    the budget has ended a fit that has no parameter for its number of steps: the plan then completes this fit."""
    candidates: list[LeaderboardRow]
    """The candidates, best first."""
    notes: list[str]
    """Notes about the search."""


def baselines_of(model: Model, found: ModelBaselines) -> Baselines:
    """Return the response for the comparison of a model with its baselines."""
    return Baselines.from_row(
        found,
        model_id=model.id,
        beats=beats_baselines(model),
        finding=say_beats_baselines(model, found),
        is_baseline=is_baseline(model),
        windows=[each for each in found.windows if "metric" not in each],
        metric=next((each for each in found.windows if "metric" in each), None),
    )
