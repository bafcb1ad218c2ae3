"""Over HTTP: algorithms, the job that trains one, and how its ranker was judged."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, StringConstraints, WithJsonSchema, model_validator

from app.http.schemas import Body, Interval, Rate, Resource, Tags, Text, at_most
from app.platform.tables import Model, ModelControls, ModelLeaderboard
from app.training import search, splits
from app.training.service import NAME_PATTERN, TrainRequest, refuse_unknown_methods

DAY = 86_400.0
MAX_SEARCHED = 100
"""Parameters of a search; no algorithm has so many."""


class Algorithm(Resource):
    """An algorithm of the registry."""

    name: str = Field(examples=["rankboost"])
    summary: str
    paper: str
    kinds: list[str] = Field(
        description="Kinds of datasets that it learns from: `bipartite`, `preferences`, `multilabel`.",
        examples=[["bipartite", "preferences"]],
    )
    parameters: dict[str, Any] = Field(
        description="JSON Schema of what goes beside `name` in a job's `algorithm`: types, bounds and defaults."
    )


class Algorithms(Resource):
    """All of them."""

    data: list[Algorithm]


class Auc(Body):
    """Aim at the whole curve."""

    metric: Literal["auc"]


class PartialAuc(Body):
    """Aim at a window of false positive rates."""

    metric: Literal["pauc"]
    fpr_min: Rate = 0.0
    fpr_max: Rate


class TprAtFpr(Body):
    """Aim at the TPR of one cut: at the threshold that flags so many negatives at most, which the model comes with.

    Algorithms that take a window are trained for [fpr/2, fpr]. The threshold is read off the validation rows.
    """

    metric: Literal["tpr"]
    fpr: Annotated[float, Field(gt=0, le=1, description="Share of the negatives flagged at most.")]


TimeColumn = Annotated[
    Text | None,
    Field(
        description="A column of numbers or ISO 8601 dates by which rows are ordered, so that those that judge come "
        "later than all that were learnt from. It is no feature then. Default: rows are drawn at random, stratified.",
    ),
]


class Holdout(Body):
    """Keep a stratified share of the rows out of training, and judge on it."""

    method: Literal["holdout"]
    fraction: Annotated[float, Field(gt=0, lt=1)] = 0.25
    time_column: TimeColumn = None


class CrossValidation(Body):
    """Judge every row by a ranker that has not learnt from it, fold by fold; serve one fitted on all rows.

    Areas are means over the folds. The served model's curve, `fpr` and `tpr` come from the out-of-fold scores and say
    `approximate`. A search is done anew within each fold.
    """

    method: Literal["cross_validation"]
    folds: Annotated[int, Field(ge=2, le=splits.MAX_FOLDS)] = splits.FOLDS
    repeats: Annotated[
        int,
        Field(
            ge=1,
            le=splits.MAX_REPEATS,
            description="Times that the rows are divided anew; 1 with a time_column.",
        ),
    ] = 1
    time_column: TimeColumn = None


class OtherDataset(Body):
    """Judge on another dataset."""

    method: Literal["dataset"]
    dataset_id: Text


class NoValidation(Body):
    """Train on all rows, judge on none: no curve, and scores come without `fpr` and `tpr`."""

    method: Literal["none"]


Dimension = Annotated[
    JsonValue,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {}, "minItems": 1, "maxItems": 100},
                {
                    "type": "object",
                    "required": ["low", "high"],
                    "additionalProperties": False,
                    "properties": {
                        "low": {"type": "number"},
                        "high": {"type": "number"},
                        "log": {"type": "boolean", "default": False},
                        "integer": {"type": "boolean", "default": False},
                    },
                },
            ]
        }
    ),
]
"""Values to choose from, or a range to draw from, both ends included; `log` draws the logarithm."""

InnerFolds = Annotated[
    int | None,
    Field(
        ge=2,
        le=search.MAX_FOLDS,
        description="Judge each candidate on so many folds of the rows to learn from. Default: one part is held out.",
    ),
]
InnerFraction = Annotated[
    float,
    Field(gt=0, lt=1, description="Share of the rows to learn from that judges, without folds."),
]
Candidates = Annotated[
    int | None, Field(ge=1, le=1000, description="How many are drawn: 20, or 27 for halving.")
]


class GridSearch(Body):
    """Try every combination of values on a part of the rows to learn from, and train with the best.

    The values of `n_rounds`, or of an SVM's `C`, share one fit, which follows them. Candidates learn from one share of
    the rows to learn from, and are judged by the job's objective on the rest. The ranker that is served is fitted on
    all of them with the values chosen. The rows by which the model is judged have no part in the choice.
    """

    method: Literal["grid"]
    space: Annotated[dict[str, list[JsonValue]], at_most(MAX_SEARCHED)] = Field(
        description="For each parameter that is searched its values, 1 to 100 of them."
    )
    folds: InnerFolds = None
    fraction: InnerFraction = search.FRACTION


class _Drawn(Body):
    space: Annotated[dict[str, Dimension], at_most(MAX_SEARCHED)] = Field(
        description="For each parameter that is searched its values, or a range."
    )
    n_candidates: Candidates = None
    folds: InnerFolds = None
    fraction: InnerFraction = search.FRACTION


class RandomSearch(_Drawn):
    """Try candidates drawn at random; otherwise as a grid."""

    method: Literal["random"]


class HalvingSearch(_Drawn):
    """Try many candidates drawn at random on few rows, the best third of them on three times as many, and so on."""

    method: Literal["halving"]


Validation = Annotated[
    Holdout | CrossValidation | OtherDataset | NoValidation, Field(discriminator="method")
]
Search = Annotated[GridSearch | RandomSearch | HalvingSearch, Field(discriminator="method")]


class JobRequest(Body):
    """A ranker to train. Only `dataset_id` and `algorithm.name` are required."""

    dataset_id: Text
    algorithm: dict[str, JsonValue] = Field(
        description="`name`, and beside it any parameters of that algorithm: see GET /v1/algorithms."
    )
    name: Annotated[str, StringConstraints(pattern=NAME_PATTERN)] | None = Field(
        default=None, description="Name of the model. Default: the algorithm's name."
    )
    objective: Annotated[Auc | PartialAuc | TprAtFpr, Field(discriminator="metric")] = Auc(
        metric="auc"
    )
    validation: Validation = Holdout(method="holdout")
    search: Search | None = None
    controls: bool | None = Field(
        default=None,
        description="Whether logistic regression and an SVM for the AUC are fitted on the same divisions, for "
        "comparison, after it. Default: yes, in a tenth of the job's time, else on a sample of the rows, which is "
        "named; true: on all rows, whatever it takes. `auto` counts them within its budget.",
    )
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    label_noise: Annotated[float, Field(ge=0, lt=0.5)] | None = Field(
        default=None,
        description="Share of the labels that are known to be flipped, if it is known: algorithms with a "
        "`noise_rate` take it out; kept with the job for all. Null: sampled_martirank guesses it.",
    )
    timeout_seconds: Annotated[float, Field(gt=0, le=30 * DAY)] | None = Field(
        default=None, description="Longest run. Default: the service's own."
    )
    priority: Annotated[int, Field(ge=-100, le=100)] = Field(
        default=0, description="Higher is claimed first."
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
        return TrainRequest(**given | {"algorithm": self.algorithm})  # a parameter may be null


class Estimate(Resource):
    """A rough guess from the table's size."""

    seconds: float
    memory_bytes: int


class JobCheck(Resource):
    """What `?validate=true` found: a sound job. Nothing was created."""

    valid: bool
    algorithm: dict[str, Any]
    objective: dict[str, Any]
    validation: dict[str, Any]
    search: dict[str, Any] | None
    controls: dict[str, Any]
    seed: int
    label_noise: float | None
    estimate: Estimate


class FoldAuc(Resource):
    """A fold's AUC."""

    repeat: int
    fold: int
    auc: float


class OutOfFold(Resource):
    """The scores that a cross-validated model's AUC and curve come from."""

    model_id: str
    repeats: int
    folds: int
    fold_aucs: list[FoldAuc]
    columns: list[str]
    data: list[list[float]] = Field(
        description="An entry per row and repeat. `row` counts from 0 in the order of the dataset; `repeat` and `fold` "
        "from 1; `y` is 1 for positive. `score` is on the scale of the fold's own ranker, `aligned_score` on that of "
        "the ranker that is served."
    )


class Difference(Interval):
    """By how much the model's area is greater than the control's, and the p-value of there being no difference."""

    p_value: float
    adjusted_p_value: float = Field(description="By Holm, over all controls and windows.")


class ControlArea(Resource):
    """A control over one window."""

    algorithm: str
    area: Interval
    difference: Difference


class ControlWindow(Resource):
    """The model and the controls over one window of false positive rates; [0, 1] is the AUC."""

    fpr_min: float
    fpr_max: float
    chosen: Interval
    controls: list[ControlArea]


class Control(Resource):
    """A plain algorithm that was fitted on the same divisions."""

    algorithm: str
    parameters: dict[str, Any]
    fit_seconds: float = Field(description="Of all folds.")
    failed: str | None = Field(description="Why it could not be fitted.")
    rows: int | None = Field(
        default=None,
        description="Rows that it learnt from, in the first fold; null for models of earlier versions.",
    )
    of_rows: int | None = Field(
        default=None,
        description="Rows that it could have learnt from: more than `rows` of a sample.",
    )


class BaselineWindow(Resource):
    """A window of false positive rates."""

    fpr_min: float
    fpr_max: float


class Controls(Resource):
    """Whether a model is better than plain algorithms, beyond chance."""

    model_id: str
    level: float
    beats: bool | None = Field(
        description="Greater than every control in the window `decided_on`, each with an adjusted p-value below "
        "1 - level. Null where there is none to compare with."
    )
    decided_on: BaselineWindow = Field(
        description="That of the job's objective; of `tpr` the one it is trained by."
    )
    controls: list[Control]
    windows: list[ControlWindow]
    skipped: str | None = Field(description="Why no controls were fitted.")


class LeaderboardRow(Resource):
    """A candidate of `auto`. Its figures are of the rows that chose, on which the best are too good to be true."""

    algorithm: str
    parameters: dict[str, Any]
    value: float | None = Field(description="By the objective; null where it failed or never came.")
    auc: float | None
    low: float | None
    high: float | None
    p_value: float | None = Field(
        description="Of no difference from the best single candidate, on the same rows."
    )
    rows: float = Field(description="Share of the rows to learn from that it was last given.")
    seconds: float
    state: str = Field(description="`chosen`, `left`, `failed` or `untried`.")
    reason: str


class Member(Resource):
    """A ranker that the model is made of."""

    algorithm: str
    parameters: dict[str, Any]
    weight: float


class Leaderboard(Resource):
    """What `auto` has tried, the best first, and what it made of it."""

    model_id: str
    budget_seconds: float
    seconds: float = Field(
        description="What the search has taken of it; the last fit comes on top."
    )
    members: list[Member]
    candidates: list[LeaderboardRow]
    notes: list[str]


def controls_of(model: Model, found: ModelControls) -> Controls:
    """Show how a model compares with plain algorithms."""
    same = ("level", "decided_on", "controls", "windows", "skipped")
    shown = {field: getattr(found, field) for field in same}
    return Controls.model_validate(shown | {"model_id": model.id, "beats": model.beats_controls})


def leaderboard_of(model: Model, found: ModelLeaderboard) -> Leaderboard:
    """Show what `auto` has tried."""
    same = ("budget_seconds", "seconds", "members", "candidates", "notes")
    shown = {field: getattr(found, field) for field in same}
    return Leaderboard.model_validate(shown | {"model_id": model.id})
