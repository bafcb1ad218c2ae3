"""How a job's ranker is judged, and what is searched for it, over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, WithJsonSchema

from app.http.schemas import Body, Text
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
