"""Request and response bodies of scoring. The model's feature index validates requests; these schemas document them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from app.findings.finding import Answer, Finding
from app.http.schemas import (
    Body,
    CreatedAt,
    FeatureName,
    Interval,
    IsValid,
    ModelId,
    ModelVersion,
    PValue,
    Resource,
    Text,
    bytes_of,
    one_of,
    tables_of,
)
from app.ingest.formats import ARROW, ARROW_FILE, NDJSON, PARQUET
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC, spell_date
from app.jobs.kinds import STATUS, STATUSES, status_of
from app.models.curve_schemas import DataPart
from app.models.drift_schemas import FeatureDrift, ScoreDrift
from app.platform.documents import ScoreHistogram
from app.platform.errors import Invalid, invalid
from app.platform.sql import Json
from app.platform.tables import BatchScore as BatchScoreRow
from app.scoring import batch as batch_scores
from app.scoring import table_rows
from app.scoring.dependence import Dependence
from app.scoring.probabilities import ProbabilityFields, ProbabilityOptions
from app.scoring.reasons import (
    DIRECTIONS,
    EXPLAIN_METHODS,
    MAX_REASONS,
    METHODS,
    REFERENCES,
    ReasonFields,
    ReasonOptions,
)
from app.scoring.table_rows import MAX_NAMES, MAX_TOP
from app.training.interpretation import METHODS as IMPORTANCES
from app.training.interpretation import Importances

_ROW = {"age": 41, "income": 52000, "contract": "two year"}
_MODEL_ID = "mdl_0198f0c2c0a17e5b8d6c7b8a9f0e1d2c"
_VALUE = {
    "type": ["number", "boolean", "string", "null"],
    "description": "String for a categorical feature or a date, number for a numeric feature, null for a missing "
    "value.",
}

Cell = Annotated[float | bool | str | None, WithJsonSchema(_VALUE)]


RowId = Annotated[
    str | None,
    Field(
        description="Field or column with the id of each row, which is returned with its score. It can also be a query "
        "parameter."
    ),
]
Ignored = Annotated[
    list[str] | None,
    Field(
        description="Fields or columns that are not features and should be ignored; `*`: all of them. It can also be a "
        "query parameter."
    ),
]


class RowsAsObjects(Body):
    """Rows to score, each as an object with its features."""

    rows: list[dict[str, Cell]]
    """The rows. Each maps feature names to values."""
    id: RowId = None
    ignore: Ignored = None


class RowsAsLists(Body):
    """Rows to score, as lists of values in the order of `columns`."""

    columns: list[str]
    """Names of the columns, in the order of the values."""
    data: list[list[Cell]]
    """The rows, each as a list of values."""
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


_IF_CALIBRATED = (
    "positive, by the model's calibration. Null if the model has no calibration. Absent with "
    "`probability=false`."
)
_LOW, _HIGH = (
    f"if the row itself is counted as a {of}. Present only with `interval=true`."
    for of in ("negative", "positive")
)
_ONE, _ALL = "Venn–Abers pair: the probability", "Venn–Abers pairs: the probabilities"

Probability = Annotated[
    float | None,
    Field(description=f"Probability that the row is {_IF_CALIBRATED}", examples=[0.173]),
]
ProbabilityLow = Annotated[
    float | None, Field(description=f"Lower value of the {_ONE} {_LOW}", examples=[0.168])
]
ProbabilityHigh = Annotated[
    float | None, Field(description=f"Upper value of the {_ONE} {_HIGH}", examples=[0.181])
]
Probabilities = Annotated[
    list[float] | None,
    Field(description=f"Probability that each row is {_IF_CALIBRATED}", examples=[[0.173, 0.012]]),
]
ProbabilitiesLow = Annotated[
    list[float] | None,
    Field(description=f"Lower values of the {_ALL} {_LOW}", examples=[[0.168, 0.011]]),
]
ProbabilitiesHigh = Annotated[
    list[float] | None,
    Field(description=f"Upper values of the {_ALL} {_HIGH}", examples=[[0.181, 0.015]]),
]
NoProbability = Annotated[
    str | None,
    Field(
        description="Why there is no probability. Present only if one was requested and the model has no "
        "calibration."
    ),
]
_POINTS = (
    "by the scale of the model. More points mean lower odds of a positive. Absent unless the model is of the algorithm "
    "`scorecard`."
)
Points = Annotated[
    float | None,
    Field(description=f"The score in points, {_POINTS}", examples=[560.4]),
]
PointsOfRows = Annotated[
    list[float] | None,
    Field(
        description=f"The scores in points, {_POINTS}",
        examples=[[560.4, 605.8]],
    ),
]

RowIdValue = Annotated[
    int | float | bool | str | None,
    WithJsonSchema(
        {
            "type": ["string", "number", "boolean", "null"],
            "description": "Id of the row, if `id` was requested.",
        }
    ),
]
_IDS = Annotated[
    list[RowIdValue] | None,
    Field(
        description="Id of each row. Present only if `id` was requested. In a table, this is the column `id`.",
        examples=[["c1", "c2"]],
    ),
]


class ReasonReference(Resource):
    """The reference that reasons compare a score with, and how the contributions are computed."""

    kind: Annotated[str, one_of(REFERENCES)]
    """`negative`: the average negative row. `average`: the average training row. `cutoff`: a cutoff, represented by the
    point with that score on the line between the average negative and the average positive."""
    score: float = Field(examples=[-0.81])
    """Score of the reference."""
    on: DataPart | None
    """Part of the data whose rows were averaged. Null if it was not recorded."""
    rows: int | None
    """Number of rows that were averaged: negatives, or all rows for `average`. Null if it was not recorded."""
    method: Annotated[str, one_of(METHODS)] = Field(description=" ".join(METHODS.values()))
    direction: Annotated[str, one_of(DIRECTIONS)]
    """Contributions that are returned: those that raise the score, those that lower it, or both."""
    dictionary: int | None
    """Revision of the reason codes. Null if the model name has none."""
    protected_features: list[str]
    """Features of the model that are protected columns: declared so in the upload, or by their names."""
    protected_excluded: bool
    """Whether the protected columns are left out of the reasons (`exclude_protected`)."""
    warning: str | None
    """Says that the score depends on protected columns. Null if it does not."""


class Reason(Resource):
    """A reason: a part of the difference between the score and the reference."""

    code: str | None = Field(examples=["R12"])
    """Reason code. Null if no entry of the reason codes matches."""
    text: str = Field(examples=["Income too low"])
    """Text of the reason."""
    columns: list[str] = Field(examples=[["income", "salary"]])
    """Features whose contributions are summed."""
    contribution: float = Field(examples=[0.64])
    """Contribution to the difference between the score and the reference."""
    error: float = Field(examples=[0.0])
    """Standard error of an estimated contribution: the exact value is within twice this with 95 % confidence. 0: the
    contribution is exact. For a code that sums several features it is an upper bound."""
    protected: bool = Field(examples=[False])
    """Whether one of the columns is a protected column."""


_REFERENCE = "The reference that the reasons compare the score with. Present only with `reasons`."
_EXACT = "True if no contribution is an estimate. Present only with `reasons`."


_DECISION_ID = "dec_0198f0c2a6d37c1e8a4b5c6d7e8f9012"
_DecisionIds = Annotated[
    list[str] | None,
    Field(
        description="Id of the decision about each row, to which its outcome refers. Absent if the decisions of the "
        "alias are not recorded.",
        examples=[[_DECISION_ID]],
    ),
]
_Reviews = Annotated[
    list[bool] | None,
    Field(
        description="Whether to review each row: it is flagged, or drawn at random. Absent if the decisions of the "
        "alias are not recorded.",
        examples=[[True]],
    ),
]


class ScoreWarning(Resource):
    """What may be wrong with the rows of a request that was answered."""

    code: str = Field(examples=["unknown_categories"])
    """`unknown_categories`: every known value of a feature is a category that the model does not have.
    `errors_in_cells`: cells of a sheet have errors, such as #DIV/0!, and count as missing."""
    feature: str
    """Name of the feature."""
    detail: str
    """The warning in one sentence."""


Warnings = Annotated[
    list[ScoreWarning] | None,
    Field(
        description="Absent without warnings. Responses in other formats than JSON have the first ten as JSON in the "
        "header `X-Warnings`."
    ),
]


class Score(Resource):
    """The score of one row, its position on the validation curve, and the probability that it is positive."""

    model_id: ModelId = Field(examples=[_MODEL_ID])
    warnings: Warnings = None
    id: RowIdValue = None
    score: float = Field(examples=[1.3721])
    """Score of the row. A higher score means that the row is more likely to be positive."""
    fpr: float | None = Field(examples=[0.0123])
    """Fraction of the validation negatives with at least this score. Null without a validation curve."""
    tpr: float | None = Field(examples=[0.41])
    """Fraction of the validation positives with at least this score. Null without a validation curve."""
    probability: Probability = None
    probability_low: ProbabilityLow = None
    probability_high: ProbabilityHigh = None
    no_probability: NoProbability = None
    points: Points = None
    flag: bool | None = Field(default=None, examples=[True])
    """True if the score reaches the threshold with which the model meets the alias's guarantee. Absent if `ref` is not
    an alias with a guarantee."""
    decision_id: str | None = Field(default=None, examples=[_DECISION_ID])
    """Id of the decision, to which its outcome refers. Absent if the decisions of the alias are not recorded."""
    review: bool | None = Field(default=None, examples=[True])
    """Whether to review the row: it is flagged, or drawn at random. Absent if the decisions of the alias are not
    recorded."""
    approximate: bool = False
    """True if `fpr` and `tpr` come from the out-of-fold scores of a cross-validated model. Absent otherwise."""
    reasons: list[Reason] | None = None
    """The largest contributions, largest first; fewer than requested if the row has fewer. With `reasons_rest` and the
    score of the reference, they sum to the score. Present only with `reasons`."""
    reasons_rest: float | None = Field(default=None, examples=[-0.05])
    """Sum of all other contributions. Present only with `reasons`."""
    reference: ReasonReference | None = Field(default=None, description=_REFERENCE)

    exact: bool | None = Field(default=None, description=_EXACT)


class Scores(Resource):
    """The scores, in the order of the rows."""

    model_id: ModelId = Field(examples=[_MODEL_ID])
    warnings: Warnings = None
    ids: _IDS = None
    scores: list[float] = Field(examples=[[1.3721, -0.2]])
    """Score of each row."""
    fprs: list[float] | None = Field(examples=[[0.0123, 0.45]])
    """For each row, the fraction of the validation negatives with at least its score. Null without a validation
    curve."""
    tprs: list[float] | None = Field(examples=[[0.41, 0.93]])
    """For each row, the fraction of the validation positives with at least its score. Null without a validation
    curve."""
    probabilities: Probabilities = None
    probabilities_low: ProbabilitiesLow = None
    probabilities_high: ProbabilitiesHigh = None
    no_probability: NoProbability = None
    points: PointsOfRows = None
    flags: list[bool] | None = Field(default=None, examples=[[True, False]])
    """For each row, true if the score reaches the threshold with which the model meets the alias's guarantee. Absent if
    `ref` is not an alias with a guarantee."""
    decision_ids: _DecisionIds = None
    reviews: _Reviews = None
    approximate: bool = False
    """True if `fprs` and `tprs` come from the out-of-fold scores of a cross-validated model. Absent otherwise."""
    reasons: list[list[Reason]] | None = None
    """The largest contributions to each score; see `Score`. Present only with `reasons`. A table has the columns
    `reason_1_code`, `reason_1_text`, `reason_1_contribution`, `reason_1_error` and so on, `reasons_rest` and
    `reference_score`."""
    reasons_rest: list[float] | None = None
    """Sum of all other contributions to each score. Present only with `reasons`."""
    reference: ReasonReference | None = Field(default=None, description=_REFERENCE)
    exact: list[bool] | None = Field(default=None, description=_EXACT)


class LabelScore(Resource):
    """The scores of one row by a model with several labels."""

    model_id: ModelId = Field(examples=[_MODEL_ID])
    warnings: Warnings = None
    id: RowIdValue = None
    scores: dict[str, float] = Field(examples=[{"sports": 1.3, "politics": -0.2}])
    """Score of each label, by name."""
    no_probability: NoProbability = None


class LabelScores(Resource):
    """The scores of several rows by a model with several labels."""

    model_id: ModelId = Field(examples=[_MODEL_ID])
    warnings: Warnings = None
    ids: _IDS = None
    labels: list[str] = Field(examples=[["sports", "politics"]])
    """Names of the labels, in the order of the scores."""
    scores: list[list[float]] = Field(examples=[[[1.3, -0.2], [0.4, 0.9]]])
    """For each row, a list of scores, one per label."""
    no_probability: NoProbability = None


class Ranking(Resource):
    """Row numbers, best row first, with their scores and probabilities."""

    model_id: ModelId = Field(examples=[_MODEL_ID])
    warnings: Warnings = None
    ids: _IDS = None
    indices: list[int] = Field(examples=[[1, 0]])
    """Row numbers, from 0, best row first."""
    scores: list[float] = Field(examples=[[1.3721, -0.2]])
    """Score of each row, in the order of `indices`."""
    probabilities: Probabilities = None
    probabilities_low: ProbabilitiesLow = None
    probabilities_high: ProbabilitiesHigh = None
    no_probability: NoProbability = None
    points: PointsOfRows = None
    decision_ids: _DecisionIds = None
    reviews: _Reviews = None


class Explanation(Resource):
    """One score as a sum: `offset` plus all contributions."""

    id: RowIdValue = None
    score: float
    """Score of the row."""
    fpr: float | None
    """Fraction of the validation negatives with at least this score. Null without a validation curve."""
    tpr: float | None
    """Fraction of the validation positives with at least this score. Null without a validation curve."""
    probability: Probability = None
    probability_low: ProbabilityLow = None
    probability_high: ProbabilityHigh = None
    points: Points = None
    offset: float
    """Mean score of the training rows, or of a sample of them."""
    contributions: dict[str, float]
    """Contribution of each feature. `offset` plus all contributions is the score."""
    method: Annotated[str, one_of(EXPLAIN_METHODS)] = Field(
        description=" ".join(EXPLAIN_METHODS.values())
    )
    exact: bool
    """False if the contributions are estimates, because the score is not a sum over features. Even then they sum
    exactly to the score."""
    errors: dict[str, float] | None
    """Standard error of each contribution. Null: the contributions are exact."""


class Explanations(Resource):
    """One explanation for each row."""

    model_id: ModelId
    explanations: list[Explanation]
    """One explanation for each row, in the order of the rows."""
    no_probability: NoProbability = None


class BatchScoreRequest(Body):
    """A model and the dataset to score."""

    model: Text
    """The model: id, name, name:version or name@alias."""
    dataset_id: Text
    """Id of a ready dataset with the model's features. It does not need a label."""
    id: Text | None = None
    """Column of the dataset with the ids of the rows; it is copied to the column `id` of the result. Also requires the
    scope `read`."""
    keep: Annotated[list[Text], Field(max_length=MAX_NAMES)] = Field(default_factory=list)
    """Columns of the dataset to copy to the result. Also requires the scope `read`. Default: none."""
    top: int | None = Field(default=None, ge=1, le=MAX_TOP)
    """Keep only this many rows: those with the highest scores, best first. Default: all rows, in their order."""
    probability: bool = True
    """False omits the probability."""
    interval: bool = False
    """True adds the Venn–Abers pair to each probability."""
    prevalence: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Fraction of positives in the population that the rows come from. Probabilities are converted to it. Default: the
    prevalence of the rows that the calibration was fitted on."""

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
    exclude_protected: bool | None = Field(
        default=None, description=ReasonFields.model_fields["exclude_protected"].description
    )

    def reason_options(self) -> ReasonOptions | None:
        """Return None for no reasons. Raises Invalid."""
        named = {name: getattr(self, name) for name in ReasonFields.model_fields}
        parameters = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in named.items()
            if value is not None
        }
        try:
            return ReasonFields.parse(parameters).options()
        except Invalid as error:
            first = error.errors[0]
            raise invalid(f"/{first['parameter']}", first["detail"]) from error

    def probability_options(self) -> ProbabilityOptions:
        named = self.model_fields_set & ProbabilityFields.model_fields.keys()
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
    """Name of the column."""
    type: str = Field(examples=["double"])
    """Arrow type of the column."""


class BatchReasons(Resource):
    """Options of the reasons in the result."""

    n: int
    """Number of reasons per row."""
    reference: Annotated[str, one_of(REFERENCES)]
    """Reference that the scores are compared with."""
    direction: Annotated[str, one_of(DIRECTIONS)]
    """Contributions that are returned: those that raise the score, those that lower it, or both."""
    threshold: float | None
    """Score to compare with, for the reference `cutoff`. Null: the cutoff of the alias, or another reference."""
    dictionary: int | None
    """Revision of the reason codes. Null if the model name had none."""
    exclude_protected: bool = False
    """Whether protected columns are left out of the reasons."""


class BatchScore(Resource):
    """A table that a job scores. Once it is `ready`, `…/result` returns the kept columns, row numbers and scores, in
    the order of the rows, and `…/summary` describes them.
    """

    id: str = Field(examples=["bat_0198f0c2a4d37c1e8a4b5c6d7e8f9012"])
    """Id of the batch score."""
    status: Annotated[str, one_of(STATUSES)] = Field(description=STATUS)
    job_id: str
    """Id of the job that scores the table."""
    model_id: ModelId
    model_name: str = Field(examples=["churn"])
    """Name of the model."""
    model_version: ModelVersion
    dataset_id: str | None
    """Id of the dataset that was scored. Null if the rows were sent with the request."""
    dataset_name: str | None
    """Name of the dataset that was scored. Null if the rows were sent with the request."""
    file_name: str | None = Field(default=None, examples=["customers-may.csv"])
    """Name of the file that was sent, from `file_name` or a form. Null if there was none."""
    alias: str | None = Field(default=None, examples=["champion"])
    """The alias that the request used. Null if it named the model by version, name or id."""
    keep: list[str] = Field(examples=[["customer_id"]])
    """Columns that are copied to the result."""
    top: int | None = None
    """Maximum number of rows of the result: those with the highest scores, best first, ties in their original order.
    Null: all rows."""
    reasons: BatchReasons | None = None
    """Options of the reasons in the result. Null if none were requested."""
    rows: int | None
    """Number of rows that were scored. Null until `ready`."""
    flagged: int | None = None
    """Number of rows that the alias flags. Null until `ready`, and if the request did not use an alias with a
    cutoff."""
    warnings: list[ScoreWarning] | None = None
    """What may be wrong with the rows. Null until `ready`."""
    stable: Answer | None = None
    """Whether scores and columns are as at the model's validation and training, without labels; `…/drift` has the
    finding and the tests. `yes`: they are. `no`: the scores, or columns that matter to the model, have changed.
    `unknown`: the rows are inconclusive. Null until `ready`."""
    columns: list[ResultColumn] | None
    """Columns of the result. Null until `ready`."""
    bytes: int | None
    """Size of the result in bytes. Null until `ready`."""
    sha256: str | None
    """SHA-256 of the result, which is also its ETag. Null until `ready`."""
    error: dict[str, Any] | None
    """The problem, if the job failed; otherwise null. Its `errors` give lines and columns."""
    created_at: CreatedAt


class ScoreTableCheck(Resource):
    """The rows can be scored. Nothing was created."""

    valid: IsValid
    rows: int | None = None
    """Number of rows. Null if no rows were sent."""
    ignored: list[str] | None = None
    """Up to 100 columns of the rows that are not read, such as the model's label. Null if no rows were sent."""
    sheet: str | None = None
    """Name of the sheet that was read. Null if no workbook was sent."""
    sheets: list[str] | None = None
    """Names of the workbook's sheets that can be read. Null if no workbook was sent."""


class BatchSummary(Resource):
    """Summary of the result of a batch score."""

    batch_score_id: str
    """Id of the batch score."""
    rows: int
    """Number of rows that were scored."""
    scores: list[ScoreHistogram]
    """Distribution of the scores of all rows, even with `top`. One entry per label."""
    threshold: float | None
    """Cutoff of the alias. Null if the request did not use an alias with a guarantee, or if no score is flagged."""
    flagged: int | None
    """Number of rows with a score at or above the cutoff. Null if the request did not use an alias with a guarantee."""
    ignored: list[str]
    """Up to 100 columns of the sent rows that were not read, such as the model's label."""
    columns: list[str]
    """Columns of `first`: up to 150 columns of the result. If there are more, kept columns are omitted."""
    first: list[list[float | int | bool | str | None]] | None
    """The 50 rows with the highest scores, best first, with one value per column. `row_number` is the row's number in
    the table, from 1. Strings are truncated to 200 characters. Null for a model with several labels."""


class FlaggedDrift(Resource):
    """The fraction of rows with a score at or above a threshold: that of the alias, or of the model's objective."""

    threshold: float
    """The lowest score that is flagged."""
    before: Interval
    """Fraction of the validation rows."""
    after: Interval
    """Fraction of these rows."""
    change: Interval
    """`after` minus `before`, with the interval of Zou and Donner."""
    p_value: PValue


class BatchDrift(Resource):
    """Changes of the scores and the columns since the model's validation and training, without labels. A test reports
    `changed` if its p-value, adjusted with Holm's method over all tests of the batch, is below `alpha` and its PSI is
    at least 0.1. Long tables are compared by a sample.
    """

    batch_score_id: str
    """Id of the batch score."""
    finding: Finding
    """Are scores and columns as at validation and training? `no`: the scores, or a column with at least 1 % of the
    importance, have changed. `yes`: they have not, and a PSI of 0.25 or more can be excluded for the scores and for
    columns with at least 90 % of the importance. `unknown`: neither."""
    level: float
    """Confidence level of the intervals."""
    alpha: float
    """Significance level of all tests of the batch together."""
    rows: int
    """Number of rows that were scored."""
    sampled_rows: int
    """Number of rows that were compared: all rows of a table of up to 16,384 (fewer with more than 64
    columns), and a random sample of a longer one."""
    scores: ScoreDrift | None
    """Change of the scores since validation. Null if the model has no validation scores; `no_scores` says why."""
    no_scores: str | None
    """Why the scores were not compared. Null if they were."""
    flagged: FlaggedDrift | None
    """Change of the fraction of flagged rows. Null without a threshold."""
    features: list[FeatureDrift]
    """Change of up to 100 columns since training: changed ones first, then by importance and size."""
    n_features: int
    """Number of columns that were compared."""
    reason: str | None
    """Why the columns, or nothing at all, were not compared. Null if they were."""


def batch_drift_of(row: BatchScoreRow, found: Json) -> BatchDrift:
    rows = {
        "of": "batch_score",
        "name": row.dataset_name or row.file_name or "the rows of the request",
        "id": row.id,
    }
    finding = {**found["finding"], "rows": rows, "measured_at": row.created_at}
    return BatchDrift.model_validate({"batch_score_id": row.id, **found, "finding": finding})


def batch_score_of(row: BatchScoreRow) -> BatchScore:
    reasons = row.read_options.get(batch_scores.REASON_OPTIONS)
    if reasons is not None:
        reasons = reasons | {"dictionary": row.read_options[batch_scores.DICTIONARY]}
    return BatchScore.from_row(
        row,
        status=status_of(row),
        keep=row.read_options[table_rows.KEEP],
        top=row.read_options.get(table_rows.TOP),
        reasons=reasons,
        bytes=row.result_bytes,
        sha256=row.result_sha256,
        error=row.job.error,
    )


GridValue = float | bool | str | None


class FeatureImportance(Resource):
    """The importance of one feature."""

    name: FeatureName
    importance: float
    """Importance, in the unit of `method`."""
    root: float | None = None
    """Square root of `importance`. Null unless the method is `squared_auc_gain`."""
    auc_gain: float | None = None
    """Sum of the gains in training AUC, not squared. Null unless the method is `squared_auc_gain`."""


class Importance(Resource):
    """The features, most important first. Values of different methods are not comparable."""

    model_id: ModelId
    method: Annotated[str, one_of(IMPORTANCES)]
    """`squared_auc_gain` for ranking trees, `mean_absolute_contribution` for models that are a sum over features,
    `permutation_auc` for all others."""
    description: str
    """What the method measures, in one sentence."""
    on: DataPart
    """Part of the data that the importance was measured on."""
    label: str | None
    """Label whose scores were used. Null for a model with one label."""
    features: list[FeatureImportance]
    """The features, most important first."""


def importance_of(measured: Importances) -> Importance:
    return Importance.from_row(
        measured.row,
        model_id=measured.model.id,
        description=IMPORTANCES[measured.row.method],
        on=measured.row.part,
        label=measured.label,
        features=measured.features,
    )


class DependenceAxis(Resource):
    """A feature and its grid values."""

    name: FeatureName
    type: Annotated[str, one_of((NUMERIC, BOOLEAN, DATETIME, CATEGORICAL))]
    """`numeric`, `boolean`, `datetime` or `categorical`."""
    values: list[GridValue]
    """The grid values; dates in ISO 8601. The last value is null: a missing value."""


class PartialDependence(Resource):
    """Mean scores when one or two features are set to each value of a grid."""

    model_id: ModelId
    on: DataPart
    """Part of the data that the scores are averaged over."""
    label: str | None
    """Label whose scores were used. Null for a model with one label."""
    rows: int
    """Number of rows that each mean is taken over."""
    features: list[DependenceAxis]
    """The one or two features and their grid values."""
    # Described without the type of its items: generators of Java cannot write a choice of two arrays.
    scores: Annotated[
        list[float] | list[list[float]], WithJsonSchema({"type": "array", "items": {}})
    ]
    """Mean scores, one per grid value. For two features: one list for each value of the first, with one entry for each
    value of the second."""


def dependence_of(found: Dependence, part: DataPart, label: str | None) -> PartialDependence:
    """Show values as callers write them."""
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


def _shown(value: float, type_: str, texts: Sequence[str] | None) -> GridValue:
    """Return a number, a boolean, a date, a category or None, as callers write it."""
    if math.isnan(value):
        return None
    if texts is not None:
        return texts[int(value)]
    if type_ == DATETIME:
        return spell_date(value)
    return bool(value) if type_ == BOOLEAN else value
