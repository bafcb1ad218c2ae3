"""Over HTTP: algorithms, the job that trains one, and how its ranker was judged."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, StringConstraints, WithJsonSchema, model_validator

from app.datasets.schemas import Duplicates
from app.http.schemas import (
    NULL_IF_TOO_FEW,
    Body,
    Interval,
    Kind,
    Rate,
    Resource,
    Tags,
    Text,
    at_most,
    with_members,
)
from app.jobs import parameters
from app.platform.documents import Baseline, LeaderboardRow, Member
from app.platform.errors import NAME_PATTERN
from app.platform.tables import Model, ModelBaselines, ModelLeaderboard
from app.training import search, splits
from app.training.service import TrainRequest, refuse_unknown_methods
from core.metrics.window import MIN_WIDTH

DAY = 86_400.0
MAX_SEARCHED = 100
"""Parameters of a search; no algorithm has so many."""


class Algorithm(Resource):
    """An algorithm that can be trained."""

    name: str = Field(examples=["rankboost"])
    summary: str
    paper: str
    kinds: list[Kind] = Field(
        description="Kinds of datasets that it can train on.",
        examples=[["bipartite", "preferences"]],
    )
    parameters: dict[str, Any] = Field(
        description="JSON Schema of the parameters, which a job's `algorithm` has beside `name`: types, bounds and "
        "defaults."
    )


class Algorithms(Resource):
    """All algorithms."""

    data: list[Algorithm]


class Auc(Body):
    """Maximise the AUC: the area under the whole ROC curve."""

    metric: Literal["auc"]


class PartialAuc(Body):
    """Maximise the partial AUC over a window of false positive rates."""

    metric: Literal["pauc"]
    fpr_min: Rate = 0.0
    fpr_max: Rate


class TprAtFpr(Body):
    """Maximise the TPR at one FPR. The model comes with the threshold that flags at most this fraction of the
    negatives.

    Algorithms with a window are trained for [fpr/2, fpr]. The threshold is chosen on the validation rows.
    """

    metric: Literal["tpr"]
    fpr: Annotated[
        float, Field(gt=0, le=1, description="Maximum fraction of the negatives to flag.")
    ]


Count = Annotated[
    int,
    Field(
        ge=1,
        le=2**53,
        description="Number of first rows, of the validation rows. Where fewer rows judge, as in a search, it is the "
        "same share of them.",
    ),
]
Share = Annotated[
    float, Field(ge=MIN_WIDTH, le=1, description="Size of the list as a fraction of all rows.")
]


class AveragePrecision(Body):
    """Maximise the average precision: the mean precision at the thresholds of the positives."""

    metric: Literal["average_precision"]


class Precision(Body):
    """Maximise the precision of the first rows of the list: the fraction of them that is positive.

    Exactly one of `count` and `share` says how many rows these are.
    """

    metric: Literal["precision"]
    count: Count | None = None
    share: Share | None = None


class Lift(Body):
    """Maximise the lift of the first rows of the list: their precision divided by the prevalence."""

    metric: Literal["lift"]
    share: Share


class PrecisionAtRecall(Body):
    """Maximise the precision of the list down to where it holds a fraction of the positives."""

    metric: Literal["precision_at_recall"]
    recall: Annotated[
        float, Field(ge=MIN_WIDTH, le=1, description="Fraction of the positives to find.")
    ]


class NdcgOfList(Body):
    """Maximise the normalised discounted cumulative gain: each positive among the first rows counts
    1 / log2(rank + 1). Not for datasets with a weight column.
    """

    metric: Literal["ndcg"]
    count: Count | None = None


TimeColumn = Annotated[
    Text | None,
    Field(
        description="Column of numbers or ISO 8601 dates. Every validation row is then later than every training row. "
        "The column is not used as a feature. Default: the dataset's column of dates, if it has one without missing "
        "values, has no group and no query, and `repeats` is 1. Else, and with null, rows are drawn at random, "
        "stratified by class; dates are features then.",
    ),
]


class Holdout(Body):
    """Hold out a stratified fraction of the rows and validate on it."""

    method: Literal["holdout"]
    fraction: Annotated[float, Field(gt=0, lt=1)] = 0.25
    time_column: TimeColumn = None


class CrossValidation(Body):
    """Cross-validation: score each fold by a ranker trained on the other folds. Serve a ranker fitted on all rows.

    Areas are means over the folds. The curve, `fpr` and `tpr` of the served model come from the out-of-fold scores and
    are marked `approximate`. Each fold has its own parameter search.
    """

    method: Literal["cross_validation"]
    folds: Annotated[int, Field(ge=2, le=splits.MAX_FOLDS)] = splits.FOLDS
    repeats: Annotated[
        int,
        Field(
            ge=1,
            le=splits.MAX_REPEATS,
            description="Number of times that the rows are divided into folds. Must be 1 with a time_column.",
        ),
    ] = 1
    time_column: TimeColumn = None


class OtherDataset(Body):
    """Validate on another dataset."""

    method: Literal["dataset"]
    dataset_id: Text


class NoValidation(Body):
    """Train on all rows and do not validate. There is no curve, and scores have no `fpr` and `tpr`."""

    method: Literal["none"]


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
        description="Number of inner folds of the training rows that judge each candidate. Default: one part is held "
        "out instead.",
    ),
]
InnerFraction = Annotated[
    float,
    Field(
        gt=0,
        lt=1,
        description="Fraction of the training rows held out to judge candidates. Not used with `folds`.",
    ),
]
Candidates = Annotated[
    int | None,
    Field(
        ge=1, le=1000, description="Number of candidates to draw. Default: 20, or 27 for halving."
    ),
]


class GridSearch(Body):
    """Grid search: try every combination of values, and train with the best.

    One fit covers all values of `n_rounds`, or of an SVM's `C`. Candidates are trained on one part of the training rows
    and judged by the job's objective on the rest. The served ranker is fitted with the chosen values on all training
    rows. The validation rows of the model have no part in the choice.
    """

    method: Literal["grid"]
    space: Annotated[dict[str, list[JsonValue]], at_most(MAX_SEARCHED)] = Field(
        description="Parameters to search, each with 1 to 100 values."
    )
    folds: InnerFolds = None
    fraction: InnerFraction = search.FRACTION


class _Drawn(Body):
    space: Annotated[dict[str, Dimension], at_most(MAX_SEARCHED)] = Field(
        description="Parameters to search, each with a list of values or a range."
    )
    n_candidates: Candidates = None
    folds: InnerFolds = None
    fraction: InnerFraction = search.FRACTION


class RandomSearch(_Drawn):
    """Random search: try candidates drawn at random. Otherwise like a grid search."""

    method: Literal["random"]


class HalvingSearch(_Drawn):
    """Successive halving: try many random candidates on few rows, then the best third on three times as many rows, and
    so on.
    """

    method: Literal["halving"]


Validation = Annotated[
    Holdout | CrossValidation | OtherDataset | NoValidation, Field(discriminator="method")
]
Search = Annotated[GridSearch | RandomSearch | HalvingSearch, Field(discriminator="method")]


@with_members(parameters.asked_members())
class JobRequest(Body):
    """A training job. Only `dataset_id` and `algorithm.name` are required."""

    dataset_id: Text
    algorithm: dict[str, JsonValue] = Field(
        description="`name`, and any parameters of that algorithm: see GET /v1/algorithms."
    )
    name: Annotated[str, StringConstraints(pattern=NAME_PATTERN)] | None = Field(
        default=None, description="Name of the model. Default: the algorithm's name."
    )
    objective: Annotated[
        Auc
        | PartialAuc
        | TprAtFpr
        | AveragePrecision
        | Precision
        | Lift
        | PrecisionAtRecall
        | NdcgOfList,
        Field(discriminator="metric"),
    ] = Auc(metric="auc")
    validation: Validation = Holdout(method="holdout")
    search: Search | None = None
    baselines: bool | None = Field(
        default=None,
        description="Whether to fit controls afterwards: logistic regression and an SVM for the AUC, on the same "
        "splits, for comparison. Null, the default: yes, within a tenth of the job's time; if that is too short, on a "
        "sample of the rows. true: on all rows, however long it takes. false: no. `auto` counts them within its "
        "budget.",
    )
    timeout_seconds: Annotated[float, Field(gt=0, le=30 * DAY)] | None = Field(
        default=None,
        description="Maximum run time in seconds, at most the service's `RANKWRIGHT_MAX_JOB_SECONDS`. Default: its "
        "`RANKWRIGHT_JOB_TIMEOUT_SECONDS`.",
    )
    priority: Annotated[int, Field(ge=-100, le=100)] = Field(
        default=0,
        description="Of an owner's jobs, those with a higher priority start first, from -100 to 100.",
    )
    tags: Tags = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _offered(cls, data: Any) -> Any:
        refuse_unknown_methods(data)
        return data

    def to_request(self) -> TrainRequest:
        """Return the request as the service takes it."""
        given = self.model_dump(exclude_none=True)
        if "time_column" in self.validation.model_fields_set:  # null is not the default
            given["validation"].setdefault("time_column", None)
        return TrainRequest(**given | {"algorithm": self.algorithm})  # a parameter may be null


class Estimate(Resource):
    """Rough estimate from the size of the table."""

    seconds: float
    memory_bytes: int


@with_members(parameters.shown_members(optional=False))
class JobCheck(Resource):
    """The job is valid. Nothing was created."""

    valid: bool
    algorithm: dict[str, Any]
    objective: dict[str, Any]
    validation: dict[str, Any] = Field(
        description="As it will be stored: `time_column` names the column by which the newest rows judge."
    )
    search: dict[str, Any] | None
    baselines: dict[str, Any]
    estimate: Estimate
    warnings: list[str] = Field(
        description="Warnings about the data and the split that the model will have."
    )
    duplicates: Duplicates | None = Field(
        description="Rows of the dataset that are equal to another, and where they stand in the job's splits. Null "
        "without splits of its rows, and without a profile of the dataset."
    )


class FoldAuc(Resource):
    """The AUC of one fold."""

    repeat: int
    fold: int
    auc: float


class OutOfFold(Resource):
    """The out-of-fold scores of a cross-validated model. Its AUC and curve come from them."""

    model_id: str
    repeats: int
    folds: int
    fold_aucs: list[FoldAuc]
    columns: list[str]
    data: list[list[float]] = Field(
        description="One entry per row and repeat. `row` counts from 0 in the order of the dataset; `repeat` and "
        "`fold` count from 1; `y` is 1 for a positive. `score` is on the scale of the fold's ranker. `aligned_score` "
        "is the same on the scale of the served ranker: equal quantiles of the scores that both rankers give the "
        "fold's training rows are equal scores."
    )


class Difference(Interval):
    """The model's area minus the control's, and the p-value of the hypothesis that they are equal."""

    p_value: float | None = Field(description=NULL_IF_TOO_FEW)
    adjusted_p_value: float | None = Field(
        description="p-value adjusted by Holm over all controls and windows. Null without `p_value`."
    )


class BaselineArea(Resource):
    """The area of one control over one window."""

    algorithm: str
    area: Interval
    difference: Difference


class WindowBaselines(Resource):
    """The model and the controls over one window of false positive rates; [0, 1] is the AUC."""

    fpr_min: float
    fpr_max: float
    chosen: Interval
    baselines: list[BaselineArea]


class MetricBaselines(Resource):
    """The model and the controls by the figure that the job's objective names."""

    metric: str = Field(
        description="Its name, as …/metric-estimates has it. A count of rows is shown as the share that it is."
    )
    chosen: Interval
    baselines: list[BaselineArea]


class BaselineWindow(Resource):
    """A window of false positive rates."""

    fpr_min: float
    fpr_max: float


class Baselines(Resource):
    """Whether a model is significantly better than simple benchmark models."""

    model_id: str
    level: float
    beats: bool | None = Field(
        description="True if the model's `metric`, or without one its area over the window `decided_on`, is greater "
        "than that of every control, each with an adjusted p-value below 1 - level. False also if there are too few "
        "rows for a test. Null if no control was fitted."
    )
    decided_on: BaselineWindow = Field(
        description="Window of the job's objective. For `tpr`: the window that it is trained on."
    )
    baselines: list[Baseline]
    windows: list[WindowBaselines]
    metric: MetricBaselines | None = Field(
        None,
        description="For an objective such as `average_precision` or `precision`: the same by its figure.",
    )
    skipped: str | None = Field(description="Why no controls were fitted; otherwise null.")


class Leaderboard(Resource):
    """The candidates of `auto`, best first, and the members of the resulting model."""

    model_id: str
    budget_seconds: float
    seconds: float = Field(description="Duration of the search in seconds, without the final fit.")
    members: list[Member]
    candidates: list[LeaderboardRow]
    notes: list[str]


def baselines_of(model: Model, found: ModelBaselines) -> Baselines:
    """Show how a model compares with simple benchmark models."""
    same = ("level", "decided_on", "baselines", "skipped")
    shown = {field: getattr(found, field) for field in same}
    shown["windows"] = [each for each in found.windows if "metric" not in each]
    shown["metric"] = next((each for each in found.windows if "metric" in each), None)
    return Baselines.model_validate(shown | {"model_id": model.id, "beats": model.beats_baselines})


def leaderboard_of(model: Model, found: ModelLeaderboard) -> Leaderboard:
    """Show what `auto` has tried."""
    same = ("budget_seconds", "seconds", "members", "candidates", "notes")
    shown = {field: getattr(found, field) for field in same}
    return Leaderboard.model_validate(shown | {"model_id": model.id})
