"""Scoring over HTTP. The model's own feature index checks what comes in; these shapes document it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import Field, WithJsonSchema

from app.http.schemas import Body, Resource, Text, Timestamp, bytes_of, one_of, tables_of
from app.ingest.formats import ARROW, ARROW_FILE, NDJSON, PARQUET
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC, spell_date
from app.jobs.kinds import STATUS, STATUSES, status_of
from app.models.schemas import Part, finite
from app.platform.documents import ScoreHistogram
from app.platform.errors import Invalid, invalid
from app.platform.tables import BatchScore as BatchScoreRow
from app.scoring import batch as batch_scores
from app.scoring import probabilities, table_rows
from app.scoring.dependence import Dependence, DependenceOnVariables
from app.scoring.probabilities import ProbabilityOptions
from app.scoring.reasons import (
    DIRECTIONS,
    EXPLAIN_METHODS,
    MAX_REASONS,
    METHODS,
    REFERENCES,
    ReasonFields,
    ReasonOptions,
)
from app.scoring.reasons import options_of as reason_options_of
from app.scoring.scorecard import AttributeKind
from app.scoring.scorecard import Scorecard as MadeScorecard
from app.scoring.table_rows import MAX_NAMES, MAX_TOP
from app.training.interpretation import METHODS as IMPORTANCES
from app.training.interpretation import Importances

_ROW = {"age": 41, "income": 52000, "contract": "two year"}
_MODEL_ID = "mdl_0198f0c2c0a17e5b8d6c7b8a9f0e1d2c"
_VALUE = {
    "type": ["number", "boolean", "string", "null"],
    "description": "A text for a categorical feature or a date, a number for a numeric feature, null for a missing "
    "value.",
}

Cell = Annotated[float | bool | str | None, WithJsonSchema(_VALUE)]


RowId = Annotated[
    str | None,
    Field(
        description="Field or column that holds the id of each row: it comes back with the row's score. Or name it in "
        "the query."
    ),
]
Ignored = Annotated[
    list[str] | None,
    Field(
        description="Fields or columns to ignore that are not features; `*`: all of them. Or name them in the query."
    ),
]


class RowsAsObjects(Body):
    """Rows to score, each as an object of its features."""

    rows: list[dict[str, Cell]]
    id: RowId = None
    ignore: Ignored = None


class RowsAsLists(Body):
    """Rows to score, as lists of values in the order of `columns`."""

    columns: list[str]
    data: list[list[Cell]]
    id: RowId = None
    ignore: Ignored = None


ROWS = (RowsAsObjects, RowsAsLists)
ROWS_SCHEMA: dict[str, Any] = {
    "oneOf": [{"$ref": f"#/components/schemas/{shape.__name__}"} for shape in ROWS]
}

ROWS_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": ROWS_SCHEMA,
                "examples": {
                    "rows": {
                        "value": {"rows": [_ROW, {"age": 23, "income": None, "contract": None}]}
                    },
                    "columns": {
                        "value": {
                            "columns": ["age", "income", "contract"],
                            "data": [[41, 52000, "two year"], [23, None, None]],
                        }
                    },
                },
            }
        },
    }
}

_CSV_BODY = "contract,age,income\ntwo year,41,52000\n,23,?\n"

TABLE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            **ROWS_BODY["requestBody"]["content"],
            **tables_of(_CSV_BODY, NDJSON, ARROW, ARROW_FILE),
        },
    }
}

TABLE_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/csv": {
                "schema": {"type": "string"},
                "example": "score,fpr,tpr,probability\n1.3721,0.0123,0.41,0.173\n-0.2,0.45,0.93,0.012\n",
            },
            **bytes_of(ARROW),
            "application/x-ndjson": {
                "schema": {"type": "string", "description": "One JSON object per line."},
                "example": '{"score":1.3721,"fpr":0.0123,"tpr":0.41,"probability":0.173}\n'
                '{"score":-0.2,"fpr":0.45,"tpr":0.93,"probability":0.012}\n',
            },
            **bytes_of(PARQUET),
        }
    },
}


Probability = Annotated[
    float | None,
    Field(
        description="Probability that the row is positive, by the model's calibration. Null without one. Absent with "
        "`probability=false`.",
        examples=[0.173],
    ),
]
ProbabilityLow = Annotated[
    float | None,
    Field(
        description="With `interval=true`: the probability if the row itself counts as a negative.",
        examples=[0.168],
    ),
]
ProbabilityHigh = Annotated[
    float | None,
    Field(
        description="With `interval=true`: the probability if the row itself counts as a positive.",
        examples=[0.181],
    ),
]
Probabilities = Annotated[
    list[float] | None,
    Field(
        description="Probability that each row is positive, by the model's calibration. Null without one. Absent with "
        "`probability=false`.",
        examples=[[0.173, 0.012]],
    ),
]
ProbabilitiesLow = Annotated[
    list[float] | None,
    Field(
        description="With `interval=true`: the probabilities if the row itself counts as a negative.",
        examples=[[0.168, 0.011]],
    ),
]
ProbabilitiesHigh = Annotated[
    list[float] | None,
    Field(
        description="With `interval=true`: the probabilities if the row itself counts as a positive.",
        examples=[[0.181, 0.015]],
    ),
]
NoProbability = Annotated[
    str | None,
    Field(
        description="Why there is no probability, if one was asked for and the model has no calibration."
    ),
]


_ID = Annotated[
    float | bool | str | None,
    WithJsonSchema(
        {
            "type": ["string", "number", "boolean", "null"],
            "description": "The id of the row, if one was asked to come back (`id`).",
        }
    ),
]
_IDS = Annotated[
    list[_ID] | None,
    Field(
        description="The id of each row, if ids were asked to come back (`id`). A table has the column `id`.",
        examples=[["c1", "c2"]],
    ),
]


class ReasonReference(Resource):
    """What reasons compare a score with, and how they are told."""

    kind: Annotated[str, one_of(REFERENCES)] = Field(
        description="`negative`: the average of the negatives. `average`: the average training row. `cutoff`: a score, "
        "as the point with that score on the line between the average negative and the average positive."
    )
    score: float = Field(description="The score of the reference.", examples=[-0.81])
    on: Part | None = Field(description="The part of the data whose rows were averaged.")
    rows: int | None = Field(
        description="Number of rows that were averaged: of negatives, except for `average`."
    )
    method: Annotated[str, one_of(METHODS)] = Field(description=" ".join(METHODS.values()))
    direction: Annotated[str, one_of(DIRECTIONS)] = Field(
        description="`raises`, `lowers` or `both`: the parts that are reasons."
    )
    dictionary: int | None = Field(
        description="Revision of the reason codes. Null: the name has none."
    )


class Reason(Resource):
    """A part of the difference between the score and the reference."""

    code: str | None = Field(
        description="Null if the dictionary has no entry that fits.", examples=["R12"]
    )
    text: str = Field(examples=["Income too low"])
    columns: list[str] = Field(
        description="The features that the code sums.", examples=[["income", "salary"]]
    )
    contribution: float = Field(examples=[0.64])
    error: float = Field(
        description="Standard error of the contribution, where it is estimated: with 95 % confidence it is within "
        "twice this. 0: it is exact. Of a code that sums several features it is an upper bound.",
        examples=[0.0],
    )


_REFERENCE = "With `reasons`: what they compare with."
_EXACT = "With `reasons`: true if no part of the score is an estimate."


class Score(Resource):
    """The score of one row, its position on the model's validation curve, and the probability that it is positive."""

    model_id: str = Field(examples=[_MODEL_ID])
    id: _ID = None
    score: float = Field(examples=[1.3721])
    fpr: float | None = Field(
        description="Fraction of the negatives with at least this score, from 0 to 1. Null without a validation curve.",
        examples=[0.0123],
    )
    tpr: float | None = Field(
        description="Fraction of the positives with at least this score, from 0 to 1. Null without a validation curve.",
        examples=[0.41],
    )
    probability: Probability = None
    probability_low: ProbabilityLow = None
    probability_high: ProbabilityHigh = None
    no_probability: NoProbability = None
    flag: bool | None = Field(
        default=None,
        description="True if the score is at least the threshold by which the model keeps the promise of the alias. "
        "Absent if `ref` is no alias that keeps a promise.",
        examples=[True],
    )
    approximate: bool = Field(
        default=False,
        description="True if `fpr` and `tpr` come from the out-of-fold scores of a cross-validated model. Absent "
        "otherwise.",
    )
    reasons: list[Reason] | None = Field(
        default=None,
        description="With `reasons=3`: the greatest parts, the first the greatest; fewer if the row has fewer. They, "
        "`reasons_rest` and the score of the reference sum to the score.",
    )
    reasons_rest: float | None = Field(
        default=None, description="With `reasons`: the sum of all other parts.", examples=[-0.05]
    )
    reference: ReasonReference | None = Field(default=None, description=_REFERENCE)

    exact: bool | None = Field(default=None, description=_EXACT)


class Scores(Resource):
    """The scores, in the order of the rows. `fprs` and `tprs` are null without a validation curve."""

    model_id: str = Field(examples=[_MODEL_ID])
    ids: _IDS = None
    scores: list[float] = Field(examples=[[1.3721, -0.2]])
    fprs: list[float] | None = Field(examples=[[0.0123, 0.45]])
    tprs: list[float] | None = Field(examples=[[0.41, 0.93]])
    probabilities: Probabilities = None
    probabilities_low: ProbabilitiesLow = None
    probabilities_high: ProbabilitiesHigh = None
    no_probability: NoProbability = None
    flags: list[bool] | None = Field(
        default=None,
        description="For each row, true if the score is at least the threshold by which the model keeps the promise "
        "of the alias. Absent if `ref` is no alias that keeps a promise.",
        examples=[[True, False]],
    )
    approximate: bool = Field(
        default=False,
        description="True if `fpr` and `tpr` come from the out-of-fold scores of a cross-validated model. Absent "
        "otherwise.",
    )
    reasons: list[list[Reason]] | None = Field(
        default=None,
        description="With `reasons=3`: the greatest parts of each score, see `Score`. A table has the columns "
        "`reason_1_code`, `reason_1_text`, `reason_1_contribution`, `reason_1_error` and so on, `reasons_rest` and "
        "`reference_score`.",
    )
    reasons_rest: list[float] | None = Field(
        default=None, description="With `reasons`: the sum of all other parts of each score."
    )
    reference: ReasonReference | None = Field(default=None, description=_REFERENCE)
    exact: list[bool] | None = Field(default=None, description=_EXACT)


class LabelScore(Resource):
    """The scores of one row, one per label, by a model with several labels."""

    model_id: str = Field(examples=[_MODEL_ID])
    id: _ID = None
    scores: dict[str, float] = Field(examples=[{"sports": 1.3, "politics": -0.2}])
    no_probability: NoProbability = None


class LabelScores(Resource):
    """For each row a list of scores, one per label, by a model with several labels."""

    model_id: str = Field(examples=[_MODEL_ID])
    ids: _IDS = None
    labels: list[str] = Field(examples=[["sports", "politics"]])
    scores: list[list[float]] = Field(examples=[[[1.3, -0.2], [0.4, 0.9]]])
    no_probability: NoProbability = None


class Ranking(Resource):
    """Row numbers, counted from 0, best row first, with their scores and probabilities."""

    model_id: str = Field(examples=[_MODEL_ID])
    ids: _IDS = None
    indices: list[int] = Field(examples=[[1, 0]])
    scores: list[float] = Field(examples=[[1.3721, -0.2]])
    probabilities: Probabilities = None
    probabilities_low: ProbabilitiesLow = None
    probabilities_high: ProbabilitiesHigh = None
    no_probability: NoProbability = None


class Explanation(Resource):
    """One score as a sum: `offset` (the mean score of the training rows, or of some of them) plus all contributions."""

    id: _ID = None
    score: float
    fpr: float | None
    tpr: float | None
    probability: Probability = None
    probability_low: ProbabilityLow = None
    probability_high: ProbabilityHigh = None
    offset: float
    contributions: dict[str, float]
    method: Annotated[str, one_of(EXPLAIN_METHODS)] = Field(
        description=" ".join(EXPLAIN_METHODS.values())
    )
    exact: bool = Field(
        description="False: the contributions are estimates, for the model's scores are no sums by feature. They sum "
        "to the score exactly nevertheless."
    )
    errors: dict[str, float] | None = Field(
        description="Standard error of each contribution. Null: they are exact."
    )


class Explanations(Resource):
    """One explanation per row."""

    model_id: str
    explanations: list[Explanation]
    no_probability: NoProbability = None


class BatchScoreRequest(Body):
    """A model, and the dataset whose rows it scores."""

    model: Text = Field(description="The model: id, name, name:version or name@alias.")
    dataset_id: Text = Field(
        description="A ready dataset that has the model's features. It needs no label."
    )
    id: Text | None = Field(
        default=None,
        description="Column of the dataset that holds the ids of the rows: it becomes the column `id` of the result. "
        "Needs the scope `read` as well.",
    )
    keep: Annotated[list[Text], Field(max_length=MAX_NAMES)] = Field(
        default_factory=list,
        description="Columns of the dataset to copy to the result. Needs the scope `read` as well. Default: none.",
    )
    top: int | None = Field(
        default=None,
        ge=1,
        le=MAX_TOP,
        description="Keep only so many rows, those with the highest scores, best first. Default: all, in their order.",
    )
    probability: bool = Field(default=True, description="False leaves the probability out.")
    interval: bool = Field(
        default=False, description="True adds the pair of Venn and Abers to each probability."
    )
    prevalence: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="Fraction of positives in the population of the rows: probabilities are converted to it. Default: "
        "that of the rows the calibration was learnt on.",
    )

    reasons: int | None = Field(
        default=None,
        ge=1,
        le=MAX_REASONS,
        description=ReasonFields.model_fields["reasons"].description,
    )
    reference: Literal["negative", "average", "cutoff"] | None = Field(
        default=None, description=ReasonFields.model_fields["reference"].description
    )
    direction: Literal["raises", "lowers", "both"] | None = Field(
        default=None, description=ReasonFields.model_fields["direction"].description
    )
    threshold: float | None = Field(
        default=None, description=ReasonFields.model_fields["threshold"].description
    )

    def reason_options(self) -> ReasonOptions | None:
        """Return the reasons that the caller wants."""
        named = {name: getattr(self, name) for name in ReasonFields.model_fields}
        parameters = {name: str(value) for name, value in named.items() if value is not None}
        try:
            return reason_options_of(parameters)
        except Invalid as error:
            first = error.errors[0]
            raise invalid(f"/{first['parameter']}", first["detail"]) from error

    def probability_options(self) -> ProbabilityOptions:
        """Return the caller's options for probabilities."""
        named = self.model_fields_set & {*probabilities.NAMES}
        if not self.probability and (self.interval or self.prevalence is not None):
            detail = (
                "interval and prevalence are for probabilities, which probability=false leaves out"
            )
            raise invalid("/probability", detail)
        return ProbabilityOptions(
            self.probability,
            self.interval,
            self.prevalence,
            asked=self.probability and bool(named),
        )


class ResultColumn(Resource):
    """A column of the result."""

    name: str = Field(examples=["score"])
    type: str = Field(description="Name of the type in Arrow.", examples=["double"])


class BatchReasons(Resource):
    """The reasons beside the scores of a table."""

    n: int = Field(description="Reasons per row.")
    reference: Annotated[str, one_of(REFERENCES)]
    direction: Annotated[str, one_of(DIRECTIONS)]
    threshold: float | None
    dictionary: int | None = Field(
        description="Revision of the reason codes. Null: the name had none."
    )


class BatchScore(Resource):
    """A table that a job scores. If it is `ready`, `…/result` has the kept columns, row numbers and scores, in the
    order of the rows, and `…/summary` tells what is in it.
    """

    id: str = Field(examples=["bat_0198f0c2a4d37c1e8a4b5c6d7e8f9012"])
    status: Annotated[str, one_of(STATUSES)] = Field(description=STATUS)
    job_id: str
    model_id: str
    model_name: str = Field(examples=["churn"])
    model_version: int
    dataset_id: str | None = Field(
        description="The dataset that was scored. Null if the rows were sent with the request."
    )
    dataset_name: str | None
    file_name: str | None = Field(
        default=None,
        description="Name of the file of the rows, if it was sent: as `file_name`, or by a form.",
        examples=["customers-may.csv"],
    )
    alias: str | None = Field(
        default=None,
        description="The alias that the model was named by. Null: it was named by version, name or id.",
        examples=["champion"],
    )
    keep: list[str] = Field(
        description="Columns that are copied to the result.", examples=[["customer_id"]]
    )
    top: int | None = Field(
        default=None,
        description="The result has at most this many rows: those with the highest scores, best first; equal scores in "
        "their order. Null: all rows.",
    )
    reasons: BatchReasons | None = Field(
        default=None, description="The reasons in the result. Null: none were asked for."
    )
    rows: int | None = Field(description="Number of rows that were scored, if `ready`.")
    flagged: int | None = Field(
        default=None,
        description="Number of rows that the alias flags, if `ready`. Null: the model was not named by an alias with a "
        "cut.",
    )
    columns: list[ResultColumn] | None = Field(description="Columns of the result, if `ready`.")
    bytes: int | None = Field(description="Size of the result in bytes, if `ready`.")
    sha256: str | None = Field(
        description="SHA-256 of the result, if `ready`. It is also the ETag."
    )
    error: dict[str, Any] | None = Field(
        description="The problem, if the job failed. Its `errors` have lines and columns."
    )
    created_at: Timestamp


class ScoreTableCheck(Resource):
    """The rows can be scored. Nothing was created."""

    valid: bool
    rows: int | None = Field(default=None, description="Number of rows, if rows were sent.")
    ignored: list[str] | None = Field(
        default=None,
        description="Columns of the rows that are not read, such as the model's label; at most 100. If rows were sent.",
    )


class BatchSummary(Resource):
    """What the result of a batch score holds, in short."""

    batch_score_id: str
    rows: int = Field(description="Number of rows that were scored.")
    scores: list[ScoreHistogram] = Field(
        description="The scores of all rows, also with `top`. One entry per label."
    )
    threshold: float | None = Field(
        description="Cut of the alias, if it keeps a promise and flags a score."
    )
    flagged: int | None = Field(
        description="Number of rows with a score of at least the cut. Null if the model was not named by an alias that "
        "keeps a promise."
    )
    ignored: list[str] = Field(
        description="Columns of the rows sent that were not read, such as the model's label; at most 100."
    )
    columns: list[str] = Field(
        description="Columns of `first`: those of the result, at most 150. Of more, kept columns are left out."
    )
    first: list[list[float | int | bool | str | None]] | None = Field(
        description="The 50 rows with the highest scores, best first; one value per column. `row_number` is the row's "
        "number in the table, from 1. Texts end after 200 characters. Null for a model with several labels."
    )


def batch_score_of(row: BatchScoreRow) -> BatchScore:
    """Return the resource of a row."""
    columns = None if row.columns is None else [ResultColumn(**column) for column in row.columns]
    return BatchScore(
        id=row.id,
        status=status_of(row),
        job_id=row.job_id,
        model_id=row.model_id,
        model_name=row.model_name,
        model_version=row.model_version,
        dataset_id=row.dataset_id,
        dataset_name=row.dataset_name,
        file_name=row.file_name,
        alias=row.alias,
        keep=row.read_options[table_rows.KEEP],
        top=row.read_options.get(table_rows.TOP),
        reasons=None
        if (reasons := row.read_options.get(batch_scores.REASON_OPTIONS)) is None
        else BatchReasons(**reasons, dictionary=row.read_options[batch_scores.DICTIONARY]),
        rows=row.rows,
        flagged=row.flagged,
        columns=columns,
        bytes=row.result_bytes,
        sha256=batch_scores.sha256_of(row),
        error=row.job.error,
        created_at=row.created_at,
    )


Value = float | bool | str | None


class FeatureImportance(Resource):
    """How much one feature matters."""

    name: str
    importance: float
    root: float | None = Field(
        default=None, description="For `squared_auc_gain`: the square root of `importance`."
    )
    auc_gain: float | None = Field(
        default=None,
        description="For `squared_auc_gain`: the sum of the gains in training AUC, not squared.",
    )


class Importance(Resource):
    """The features, most important first. Values of different methods cannot be compared."""

    model_id: str
    method: Annotated[str, one_of(IMPORTANCES)] = Field(
        description="`squared_auc_gain` for ranking trees, `mean_absolute_contribution` for models that are a sum "
        "over features, `permutation_auc` for all others."
    )
    description: str = Field(description="One sentence that says what the method measures.")
    on: Part = Field(description="The part of the data that it was measured on.")
    label: str | None = Field(
        description="Label whose scores were used. Null for a model with one label."
    )
    features: list[FeatureImportance]


def importance_of(measured: Importances) -> Importance:
    """Show the importances of a model."""
    row = measured.row
    return Importance(
        model_id=measured.model.id,
        method=row.method,
        description=IMPORTANCES[row.method],
        on=cast(Part, row.part),
        label=measured.label,
        features=[FeatureImportance.model_validate(feature) for feature in measured.features],
    )


class DependenceAxis(Resource):
    """One feature and the values of its grid."""

    name: str
    type: Annotated[str, one_of((NUMERIC, BOOLEAN, DATETIME, CATEGORICAL))] = Field(
        description="`numeric`, `boolean`, `datetime` or `categorical`."
    )
    values: list[Value] = Field(
        description="The values; dates as ISO 8601. The last is null: a missing value."
    )


class PartialDependence(Resource):
    """Mean scores when one or two features are set to the values of a grid."""

    model_id: str
    on: Part = Field(description="The part of the data that scores are averaged over.")
    label: str | None = Field(
        description="Label whose scores were used. Null for a model with one label."
    )
    rows: int = Field(description="Number of rows that each mean is over.")
    features: list[DependenceAxis]
    # Described without the type of its items: generators of Java cannot write a choice of two arrays.
    scores: Annotated[
        list[float] | list[list[float]], WithJsonSchema({"type": "array", "items": {}})
    ] = Field(
        description="Mean scores, one per value of the feature. For two features: one list per value of the first, "
        "one entry per value of the second."
    )


def dependence_of(found: Dependence, part: Part, label: str | None) -> PartialDependence:
    """Show the values in the caller's words."""
    axes = []
    for feature, axis, texts in zip(found.features, found.axes, found.categories, strict=True):
        values = [_shown(value, feature["type"], texts) for value in axis.values.tolist()]
        axes.append(DependenceAxis(name=feature["name"], type=feature["type"], values=values))
    return PartialDependence(
        model_id=found.model.id,
        on=part,
        label=label,
        rows=found.averaged,
        features=axes,
        scores=found.scores.tolist(),
    )


class VariableDependence(Resource):
    """How much scores depend on each of some features, and on two of them together."""

    model_id: str
    on: Part
    rows: int = Field(description="How many were looked at.")
    features: list[str]
    main: list[float] = Field(
        description="Variance of the feature's partial dependence, as a share of the variance of the scores."
    )
    joint: list[list[float]] = Field(
        description="H² of Friedman & Popescu: the share of the variance of two features' partial dependence that "
        "is in neither's own; 0 where their effects only add up."
    )


def variables_of(found: DependenceOnVariables, part: Part) -> VariableDependence:
    """Return the dependence with the features' names."""
    return VariableDependence(
        model_id=found.model.id,
        on=part,
        rows=found.rows,
        features=[feature["name"] for feature in found.features],
        main=found.dependence.main.tolist(),
        joint=found.dependence.joint.tolist(),
    )


def _shown(value: float, type_: str, texts: Sequence[str] | None) -> Value:
    if math.isnan(value):
        return None
    if texts is not None:
        return texts[int(value)]
    if type_ == DATETIME:
        return spell_date(value)
    return bool(value) if type_ == BOOLEAN else value


class ScorecardAttribute(Resource):
    """What a value of a feature adds."""

    of: Annotated[str, one_of(get_args(AttributeKind))] = Field(
        description="`unit`: each unit of a number. `values`: a number above `low` and up to `high`. `category`. "
        "`missing`: no value."
    )
    low: float | str | None = Field(description="Null: no limit. A date is a text.")
    high: float | str | None = Field(description="Null: no limit.")
    category: str | None
    weight: float = Field(description="Added to the log odds of the positives.")
    odds_ratio: float | None = Field(
        description="Factor of the odds of the positives. Null: too great."
    )
    points: float


class ScorecardCharacteristic(Resource):
    """A feature and its attributes. A pair of features has none: its table is in the structure."""

    name: str
    span: float | None = Field(
        description="Greatest points less the least. Null for a number that counts by the unit."
    )
    attributes: list[ScorecardAttribute]


class Scorecard(Resource):
    """A model in points."""

    model_id: str
    pdo: float
    base_score: float
    base_odds: float
    base_points: float = Field(description="Points of a row all of whose values add nothing.")
    complete: bool = Field(
        description="False if the score has parts that are not among the attributes: those of pairs of features, or of "
        "too many terms."
    )
    characteristics: list[ScorecardCharacteristic] = Field(description="The greatest span first.")


def scorecard_of(model_id: str, found: MadeScorecard) -> Scorecard:
    """Show a scorecard."""
    return Scorecard(
        model_id=model_id,
        **vars(found.scale),
        base_points=found.base_points,
        complete=found.complete,
        characteristics=[
            ScorecardCharacteristic(
                name=each.name,
                span=each.span,
                attributes=[
                    ScorecardAttribute(**vars(one) | {"odds_ratio": finite(one.odds_ratio)})
                    for one in each.attributes
                ],
            )
            for each in found.characteristics
        ],
    )
