"""How a job's ranker is judged, and what is searched for it, over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, WithJsonSchema

from app.http.schemas import Body, Interval, Resource, Text
from app.platform.tables import Model, ModelControls, ModelLeaderboard
from app.training import search
from app.training import splits as divisions

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
    folds: Annotated[int, Field(ge=2, le=divisions.MOST_FOLDS)] = divisions.FOLDS
    repeats: Annotated[
        int,
        Field(
            ge=1,
            le=divisions.MOST_REPEATS,
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
        le=search.MOST_FOLDS,
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
    space: dict[str, list[JsonValue]] = Field(
        description="For each parameter that is searched its values, 1 to 100 of them."
    )
    folds: InnerFolds = None
    fraction: InnerFraction = search.FRACTION


class _Drawn(Body):
    space: dict[str, Dimension] = Field(
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
