"""Datasets over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from app.datasets.service import is_constant
from app.http.schemas import Resource, Timestamp


class TopValue(Resource):
    """A frequent value of a column."""

    value: float | bool | str | None = Field(
        description="Of a `datetime` column seconds since 1970, as its `min`, `max` and `mean` are."
    )
    count: int


class Column(Resource):
    """One column's profile."""

    name: str
    type: str | None = Field(
        description="`numeric`, `boolean`, `datetime` or `categorical`; null where the column was dropped.",
        examples=["numeric"],
    )
    role: str = Field(
        description="`feature`, `label`, `item`, `weight` or `group`; `identifier`: text of which nearly every row "
        "has its own, which is no feature; `dropped`: not read.",
        examples=["feature"],
    )
    missing: int | None
    distinct: int | None = None
    constant: bool | None = Field(
        default=None,
        description="Of a feature: whether all rows have the same value, or all have none. It tells no rows apart.",
    )
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    top: list[TopValue] | None = None

    @model_validator(mode="before")
    @classmethod
    def _judge(cls, column: Any) -> Any:
        """What is kept of a column says whether it is constant, in datasets of any age."""
        if isinstance(column, dict) and column.get("role") == "feature":
            return column | {"constant": is_constant(column)}
        return column


class ColumnInterval(Resource):
    """An AUC and its interval at level 0.95."""

    value: float
    low: float
    high: float


class Quantile(Resource):
    """The least value that such a share of the rows does not exceed."""

    at: float
    value: float


class Histogram(Resource):
    """Counts between edges of equal distance; one more edge than counts."""

    edges: list[float]
    counts: list[int]


class ColumnProfile(Resource):
    """What one feature holds, and how it ranks the label by itself. Missing values have no part in it. Dates are
    seconds since 1970 here, which have a mean and a distance.
    """

    name: str
    quantiles: list[Quantile] | None = Field(description="Null for a categorical feature.")
    histogram: Histogram | None = Field(description="Null for a categorical feature.")
    auc: ColumnInterval | None = Field(
        description="Of its values as scores; a category's score is its share of positives among other rows. "
        "Null without a label of two values."
    )
    missing_auc: ColumnInterval | None = Field(
        description="How well it ranks by which values are missing; null where none is, or all are."
    )
    leak: bool = Field(description="Whether it ranks so well that it has probably seen the label.")


class Duplicates(Resource):
    """Rows that are equal in every feature."""

    rows: int = Field(description="Rows that have an equal.")
    repeated: int = Field(description="Rows less distinct rows.")
    rows_of_both_classes: int | None = Field(
        default=None,
        description="Rows whose equals are of both classes: no ranker can tell them apart.",
    )
    estimated: bool = Field(
        description="Whether the counts are scaled up from a share of the rows."
    )


class DatasetProfile(Resource):
    """The second look at a ready dataset."""

    dataset_id: str
    rows: int | None
    positives: int | None
    negatives: int | None
    columns: list[ColumnProfile]
    rows_looked_at: int = Field(description="All, or in a large table so many drawn at random.")
    duplicates: Duplicates
    warnings: list[TableWarning] = Field(description="Those of the dataset.")

    @classmethod
    def of_rows(cls, dataset: Any, profile: Any) -> DatasetProfile:
        """Show what was found."""
        return cls(
            dataset_id=dataset.id,
            rows=dataset.rows,
            positives=dataset.positives,
            negatives=dataset.negatives,
            columns=[ColumnProfile.model_validate(column) for column in profile.columns],
            rows_looked_at=profile.rows,
            duplicates=Duplicates.model_validate(profile.duplicates),
            warnings=[TableWarning.model_validate(warning) for warning in dataset.warnings],
        )


class TableFault(Resource):
    """What is wrong with a table, and where."""

    detail: str
    line: int | None = None
    column: str | None = None
    suggestion: dict[str, str] | None = Field(
        default=None,
        description="Fields of the upload that may mend it, with a value for each: a likely label, a positive value.",
    )


class TableWarning(Resource):
    """What was done with values of a column that could not be taken as they are."""

    code: str = Field(
        description="`values_taken_for_missing`: rare values that do not fit their column. `words_pooled`: more words "
        "than categories; the rarest count as missing. `identifier`: nearly every row has its own value: no feature. "
        "`column_without_name`: left out. `rows_without_label`: rows left out. "
        "`label_of_many_values`: all but the positive one are negative.",
        examples=["values_taken_for_missing"],
    )
    column: str
    detail: str
    count: int = Field(description="Values, words or rows that it is about.")
    parameter: str = Field(description="The field of the upload that decides otherwise.")
    line: int | None = Field(description="Of the first, where the format has lines.")


class Pairs(Resource):
    """Which item is better than which, in a dataset of kind `preferences`."""

    status: str = Field(description="`processing`, `ready` or `invalid`.")
    job_id: str = Field(description="The job that reads them.")
    content_type: str
    content_encoding: str | None
    bytes: int
    sha256: str
    pairs: int | None = Field(description="Their number.")
    items: int | None = Field(description="How many items occur in them.")
    weighted: bool | None = Field(description="Whether they have a column of weights.")
    errors: list[TableFault]
    created_at: Timestamp


class Label(Resource):
    """One of several labels; its values and their counts are known once the table is read."""

    name: str
    positive: str | None = None
    negative: str | None = None
    positives: int | None = None
    negatives: int | None = None


class Dataset(Resource):
    """An uploaded table."""

    id: str
    series_id: str = Field(description="The id of the first version.")
    version: int = Field(description="Its number in the series, from 1; never given again.")
    parent_id: str | None = Field(
        description="The version that it was made from, which may be gone; null for the first."
    )
    mode: str | None = Field(
        description="`append`: the rows of its parent, and those of the upload. `replace`: those of the upload alone. "
        "Null for the first."
    )
    name: str
    kind: str
    status: str = Field(description="`processing`, `ready` or `invalid`.")
    job_id: str | None = Field(description="The job that reads the table.")
    content_type: str
    content_encoding: str | None
    label: str | None
    positive: str | None = Field(description="The label's value that counts as positive.")
    negative: str | None
    weight: str | None
    group: str | None
    item: str | None = Field(description="The column of the items' names.")
    labels: list[Label] | None = Field(description="Of a dataset of kind `multilabel`.")
    categorical: list[str] | None = Field(description="Columns that were declared categorical.")
    numeric: list[str] | None = Field(description="Columns that were declared numeric.")
    drop: list[str] | None = Field(description="Columns that were left out.")
    missing: list[str] | None = Field(
        description="What was said to stand for a missing value; null where the defaults do."
    )
    strict: bool = Field(
        description="Whether a value that does not fit its column, or a row without a label, is an error."
    )
    dialect: dict[str, str] | None = Field(
        description="What was said of how a CSV is written: `encoding`, `delimiter`, `decimal`."
    )
    bytes: int = Field(description="Of the upload.")
    sha256: str = Field(
        description="Of the content: that of the upload's bytes; where rows were added to a version, that of the text "
        "of the version's `sha256` and of `upload_sha256`, one after the other."
    )
    upload_sha256: str = Field(description="Of the bytes as they came.")
    rows: int | None
    positives: int | None
    negatives: int | None
    columns: list[Column]
    errors: list[TableFault]
    warnings: list[TableWarning] = Field(
        description="What was done with values that could not be taken as they are."
    )
    pairs: Pairs | None = Field(
        description="Of a dataset of kind `preferences`, once there are any."
    )
    created_at: Timestamp

    @field_validator("columns", "errors", "warnings", mode="before")
    @classmethod
    def _absent_as_empty(cls, value: Any) -> Any:
        return value or []


class Preview(Resource):
    """The first rows of a ready dataset."""

    columns: list[str]
    data: list[list[float | bool | str | None]]


class TableCheck(Resource):
    """What `?validate=true` found: a sound table. Nothing was kept."""

    valid: bool
    rows: int
    positives: int | None
    negatives: int | None
    columns: list[Column]
    warnings: list[TableWarning]
