"""JSON schemas of /v1/datasets and /v1/uploads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import (
    AliasPath,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from app.datasets.description import CONTENT_ENCODINGS
from app.datasets.fields import ReadingFields, TableFields
from app.datasets.leaks import leak_in_words
from app.datasets.parts import MAX_PARTS
from app.datasets.protected import PROTECTED, marks_of
from app.datasets.service import COPIES, describe_copies, is_constant
from app.datasets.sources import MAX_OBJECTS, MAX_URL_LENGTH, DatasetSource
from app.http.schemas import (
    Body,
    ColumnName,
    CreatedAt,
    DatasetId,
    High,
    Interval,
    IsValid,
    Kind,
    Low,
    Name,
    PageOf,
    Resource,
    Words,
    one_of,
    with_members,
)
from app.ingest.archives import ZIP
from app.ingest.fields import MAX_LIST_LENGTH, MAX_TEXT_LENGTH, FlagField, TextField
from app.ingest.formats import CONTENT_TYPES, Dialect
from app.ingest.periods import UNITS
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC, USUAL
from app.platform.connections import DRIVERS, PARAMETER_TYPES
from app.platform.documents import (
    GradeRows,
    QuerySizes,
)
from app.platform.tables import DatasetStatus, VersionMode

ColumnType = Annotated[str, one_of((NUMERIC, BOOLEAN, DATETIME, CATEGORICAL))]
Role = Annotated[
    str,
    one_of(
        (
            *("feature", PROTECTED, "label", "item", "weight", "group", "query"),
            *("identifier", "dropped"),
        )
    ),
]
Status = Annotated[str, one_of(DatasetStatus)]
ContentType = Annotated[str, one_of(CONTENT_TYPES)]
Copies = Annotated[str, one_of(COPIES)]
RowsOrNull = Annotated[
    int | None, Field(description="Number of rows. Null until the table has been read.")
]
PositivesOrNull = Annotated[
    int | None,
    Field(
        description="Number of positive rows. Null without a single binary label, and until the table has been read."
    ),
]
NegativesOrNull = Annotated[
    int | None,
    Field(
        description="Number of negative rows. Null without a single binary label, and until the table has been read."
    ),
]
ContentEncoding = Annotated[str, one_of((*CONTENT_ENCODINGS, ZIP))]


class TopValue(Resource):
    """A frequent value of a column, and the number of rows that have it."""

    value: float | bool | str | None
    """The value. For a `datetime` column: seconds since 1970, as in `min`, `max` and `mean`."""
    count: int
    """Number of rows with this value."""


class Column(Resource):
    """The profile of one column."""

    name: ColumnName
    type: ColumnType | None = Field(examples=["numeric"])
    """`numeric`, `boolean`, `datetime` or `categorical`. Null if the column was dropped."""
    role: Role = Field(examples=["feature"])
    """`feature`, `label`, `item`, `weight`, `group` or `query`. `protected`: declared in the upload field `protected`;
    it is a feature only of models whose training job names it in `protected_features`. `identifier`: a text column with
    a different value in nearly every row; it is not used as a feature. `dropped`: not read."""
    protected: bool = False
    """True if the upload declared the column as protected. Evaluations compare its groups."""
    seems_protected: bool = False
    """True if the column is not declared as protected, but its name suggests a legally protected attribute, such as
    `sex` or `age`. Evaluations compare its groups, too."""
    missing: int | None
    """Number of rows without a value. Null if the column was not read."""
    distinct: int | None = None
    """Number of different values. Null if the column was not read."""
    distinct_is_bound: bool = False
    """True if the actual number of different values may be greater than `distinct`."""
    constant: bool | None = None
    """True if all rows of a feature have the same value or none has a value. Such a feature is useless for ranking.
    Null if the column is not a feature."""
    min: float | None = None
    """Smallest value. Null unless the column has numbers or dates."""
    max: float | None = None
    """Largest value. Null unless the column has numbers or dates."""
    mean: float | None = None
    """Mean value. Null unless the column has numbers or dates."""
    top: list[TopValue] | None = None
    """The most frequent values. Null if they were not counted."""

    @model_validator(mode="before")
    @classmethod
    def _add_derived(cls, column: Any) -> Any:
        """Derive from the profile whether a column is constant, and whether it is or seems to be protected."""
        if not isinstance(column, dict):
            return column
        derived: dict[str, bool] = marks_of(column)
        if column.get("role") in ("feature", PROTECTED):
            derived["constant"] = is_constant(column)
        return column | derived


class ColumnInterval(Resource):
    """An AUC with its confidence interval at level 0.95."""

    value: float
    """The AUC."""
    low: Low
    high: High


class Quantile(Resource):
    """A quantile: the smallest value that at least the fraction `at` of the rows does not exceed."""

    at: float
    """Fraction of the rows."""
    value: float
    """Value of the quantile."""


class Histogram(Resource):
    """A histogram with bins of equal width."""

    edges: list[float]
    """Edges of the bins, ascending; one more than `counts`."""
    counts: list[int]
    """Number of rows in each bin."""


class LeakPattern(Resource):
    """A pattern of a column that nearly only rows of one class have. The counts are those of the profiled rows."""

    pattern: str
    """The pattern, such as `is above 0` or `is missing`."""
    positive: bool
    """True if the positives have it, false if the negatives have it."""
    rows: int
    """Number of rows of the class that have it."""
    of_rows: int
    """Number of rows of the class."""
    others: int
    """Number of rows of the other class that have it."""
    of_others: int
    """Number of rows of the other class."""


class ColumnProfile(Resource):
    """Distribution of a feature, and how well it ranks the label by itself. Missing values are excluded. Dates are in
    seconds since 1970.
    """

    name: ColumnName
    quantiles: list[Quantile] | None
    """Quantiles of the values. Null for a categorical feature."""
    histogram: Histogram | None
    """Histogram of the values. Null for a categorical feature."""
    auc: ColumnInterval | None
    """AUC of the feature's values as scores. A category is scored by the fraction of positives among its other rows.
    Null without a binary label."""
    missing_auc: ColumnInterval | None
    """AUC of a score that is 1 for a missing value and 0 otherwise. Null if no value or every value is missing."""
    leak: bool
    """True if the feature probably states the label: see `leak_pattern` and `order_auc`."""
    leak_pattern: LeakPattern | None = None
    """A pattern that nearly only rows of one class have. Null if there is none."""
    order_auc: ColumnInterval | None = None
    """AUC of rows that are scored by the rows with the nearest values of a whole number without repetitions, such as a
    row number. Null unless the order of the numbers follows the label; the level allows for the number of features."""
    leak_words: str | None = None
    """Sentence about the leak. Null if there is none."""


class Duplicates(Resource):
    """Rows that are equal to another row in every feature."""

    rows: int
    """Number of rows that are equal to another row."""
    repeated: int
    """Number of rows minus number of distinct rows."""
    rows_of_both_classes: int | None = None
    """Number of rows with an equal row of the other class; no ranker can separate them. Null without a binary label."""
    estimated: bool
    """True if the counts are estimated from a sample of the rows."""
    kinds: int | None = None
    """Exact number of distinct rows if it is below 30; otherwise null."""
    in_splits: Copies | None
    """Where equal rows go when a job splits the table. `together`: to the same side and the same fold. Equal rows can
    be on both sides with `groups` (they belong to different groups or queries), `few_kinds` (fewer than 30 distinct
    rows, each about 10 times or more) and `time` (the job splits by time). Null for a dataset of kind `preferences`."""


class RowsOfPeriod(Resource):
    """The rows of a calendar period (UTC)."""

    name: str
    """Name of the period, such as `2026-03`, `2026-Q1`, or of a week its first day."""
    start: str
    """First day of the period."""
    end: str
    """First day after the period."""
    rows: int
    """Number of profiled rows."""
    positives: Interval | None
    """Fraction of the rows that is positive. Null without a binary label."""


class ChangedColumn(Resource):
    """A column that has changed over time."""

    name: ColumnName
    psi: Interval
    """Population stability index (PSI) of the rows in the periods of the change against those of all other periods,
    corrected for sampling noise."""
    adjusted_p_value: float
    """p-value, adjusted for all stretches of periods and all columns."""
    by_period: list[float | None]
    """PSI of each of the `periods` against all others. Null if the period or the others have fewer than 100 rows."""


class PositivesOfChange(Resource):
    """Fractions of positives, in the periods of a change and in all others."""

    inside: Interval
    """Fraction of positives in the periods of the change."""
    outside: Interval
    """Fraction of positives in all other periods."""
    changed: bool | None
    """True if the fraction of positives has changed significantly in these periods, false if it has not changed at
    all. Null if it has changed in other periods, or was not tested."""


class ChangeOverTime(Resource):
    """Consecutive periods in which columns, or the fraction of positives, differ from all other periods."""

    first: str
    """Name of the first period of the change."""
    last: str | None
    """Name of its last period. Null: the change lasts until the end of the table."""
    rows: int
    """Number of profiled rows in these periods."""
    other_rows: int
    """Number of profiled rows in all other periods."""
    columns: list[ChangedColumn]
    """The columns that have changed, those with the greatest PSI first; 20 at most."""
    more_columns: int
    """Number of columns that are not in the list."""
    positives: PositivesOfChange | None
    """Fractions of positives. Null without a binary label."""
    words: Words


class UntestedColumn(Resource):
    """A column without a test."""

    name: ColumnName
    reason: str
    """Why it has no test."""


class OverTime(Resource):
    """Changes of the table's rows over time, by the column of dates that orders them."""

    column: str
    """Name of the column with the time of each row."""
    unit: Annotated[str, one_of(UNITS)]
    """Length of the periods."""
    rows: int
    """Number of profiled rows with a time."""
    tested_rows: int
    """Number of rows whose columns were compared: all, or a random sample."""
    level: float
    """Confidence level of the intervals."""
    alpha: float
    """Probability that a table without a change has a finding."""
    periods: list[RowsOfPeriod]
    """The periods with rows, the earliest first; at most 60, of longer tables longer ones."""
    changes: list[ChangeOverTime]
    """The changes; empty if nothing has changed."""
    varying: list[ChangedColumn]
    """Columns that differ from period to period without one change that explains most of it; 20 at most. `psi` is that
    of the periods that differ most."""
    positives_vary: bool
    """True if the fraction of positives differs in this way."""
    untested: list[UntestedColumn]
    """Columns without a test."""
    words: str | None
    """What has changed, and what to do. Null if nothing has."""


class DatasetProfile(Resource):
    """The profile of a ready dataset."""

    dataset_id: DatasetId
    rows: RowsOrNull
    positives: PositivesOrNull
    negatives: NegativesOrNull
    queries: QuerySizes | None
    """Number and sizes of the queries. Null without a query column."""
    grades: list[GradeRows] | None
    """Number of rows of each grade. Null unless the dataset is of kind `graded`."""
    columns: list[ColumnProfile]
    """The features and their distributions."""
    profiled_rows: int
    """Number of rows that were read: all, or a random sample of a large table."""
    duplicates: Duplicates
    """Rows that are equal to another row."""
    over_time: OverTime | None
    """What has changed over time. Null without a column of dates that orders the rows, or if all rows are of one
    period."""
    warnings: list[TableWarning]
    """Warnings about the table."""

    @classmethod
    def of_rows(cls, dataset: Any, profile: Any) -> DatasetProfile:
        return cls.from_row(
            dataset,
            dataset_id=dataset.id,
            columns=[
                {**column, "leak_words": leak_in_words(column, dataset.rows)}
                for column in profile.columns
            ],
            profiled_rows=profile.rows,
            duplicates=describe_copies(dataset, profile.duplicates),
            over_time=profile.over_time,
        )


class CountedValue(Resource):
    """A value of the label, and the number of rows that have it."""

    value: str
    """The value, as text."""
    count: int | None
    """Number of rows with this value. Null for a version to which rows were appended."""
    positive: bool
    """True if the value counts as positive."""


class TableFault(Resource):
    """An error in a table, with its location."""

    detail: str
    """What is wrong: the column, the rule and the value."""
    part: int | None = None
    """Number of the file in an upload of several files. Null for a single file."""
    line: int | None = None
    """Line number, from 1. Null if the error has no line."""
    column: str | None = None
    """Name of the column. Null if the error has no column."""
    sheet: str | None = None
    """Name of the sheet. Null if the table is not in a workbook."""
    cell: str | None = None
    """Address of the cell in the sheet, such as C3. Null if the error has no cell."""
    sheets: list[str] | None = None
    """Names of the workbook's sheets that can be read, if there are several: one for `sheet`."""
    suggestion: dict[str, str] | None = None
    """Upload fields that may correct the error, with a value for each: for example the likely label or positive value.
    Null if there is no suggestion."""
    values: list[CountedValue] | None = None
    """For a label with more than two values: up to 100 of the values read, most frequent first. List the positive ones
    in `positive`. Null for other errors."""


class TableWarning(Resource):
    """How values of a column were changed because they could not be used as they are, or what a column may mean."""

    code: str = Field(examples=["values_taken_for_missing"])
    """`values_taken_for_missing`: rare values that do not fit their column count as missing. `words_pooled`: there are
    too many categories; the rarest count as missing. `identifier`: nearly every row has a different value, so the
    column is not a feature. `column_without_name`: the column was ignored. `rows_without_label`: these rows were
    ignored. `label_of_many_values`: all values but the positive one count as negative. `numbers_with_thousands`:
    numbers such as 1.234,56 were read as categories. `dates_of_unknown_order`: dates such as 03/04/2026 were read as
    categories. `dates_not_read`: values that look like dates, such as 20240131, 31JAN2024 or 2024/01/31, were read as
    numbers or categories. `leading_zeros`: whole numbers such as 04109 were read as categories because all have the
    same number of digits, or as numbers, which lose the zeros. `words_among_numbers`: a column of numbers or dates was
    read as categories because it contains a few words. `missing_word_like_code`: a word that counts as missing is
    written like the categories of the column, such as NA beside DE and FR. `errors_in_cells`: cells of a sheet have
    errors, such as #DIV/0!, and count as missing. `rows_of_groups`: rows seem to belong together, such as all rows of
    one customer, but the upload has no group column."""
    column: ColumnName
    detail: str
    """The warning in one or two sentences."""
    count: int
    """Number of affected values, categories or rows."""
    parameter: str
    """Upload field that changes this."""
    line: int | None
    """Line of the first occurrence. Null if the format has no lines."""
    suggestion: dict[str, str] | None = None
    """Upload fields with which the values would be read, with a value for each. Null if there is no suggestion."""


class Pairs(Resource):
    """The pairs of a dataset of kind `preferences`: which item is better than which."""

    status: Annotated[str, one_of(("processing", "ready", "invalid"))]
    """`processing`, `ready` or `invalid`."""
    job_id: str
    """Id of the job that reads the pairs."""
    content_type: ContentType
    """Media type of the upload."""
    content_encoding: ContentEncoding | None
    """Compression of the upload. Null: none."""
    bytes: int
    """Size of the upload in bytes."""
    sha256: str
    """SHA-256 of the uploaded bytes."""
    pairs: int | None
    """Number of pairs. Null until they have been read."""
    items: int | None
    """Number of different items in the pairs. Null until they have been read."""
    weighted: bool | None
    """True if the pairs have weights. Null until they have been read."""
    errors: list[TableFault]
    """Errors in the table. Empty unless `status` is `invalid`."""
    created_at: CreatedAt


class Label(Resource):
    """One label of a dataset with several labels."""

    name: ColumnName
    positive: str | None = None
    """Value that counts as positive. Null until the table has been read."""
    negative: str | None = None
    """Value that counts as negative. Null until the table has been read."""
    positives: int | None = None
    """Number of positive rows. Null until the table has been read."""
    negatives: int | None = None
    """Number of negative rows. Null until the table has been read."""


def _moment(value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"must be {USUAL.date_rule}")
    return USUAL.read_date(value.strip())


Moment = Annotated[
    float | None,
    BeforeValidator(_moment),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]}),
]


class SourceRequest(Body):
    """Where the rows come from. Exactly one of `decisions`, `url` and `connection` is given."""

    decisions: str | None = Field(
        default=None, min_length=1, max_length=MAX_TEXT_LENGTH, examples=["churn@live"]
    )
    """The alias whose decisions are the rows, as name@alias, with the labels that their outcomes give them. It must
    record decisions."""
    since: Moment = Field(default=None, examples=["2026-01-01"])
    """With `decisions`: time of the earliest decision, as a date or a time. Null: no limit."""
    until: Moment = Field(default=None, examples=["2026-07-01"])
    """With `decisions`: only decisions before this date or time. Null: no limit."""
    url: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_URL_LENGTH,
        description="URL of an object below the prefix of a connection of `GET /v1/sources`. With a slash at the end: "
        f"all objects below it, at most {MAX_OBJECTS:,}, in the order of their keys.",
        examples=["s3://warehouse/exports/loans.parquet"],
    )
    connection: str | None = Field(
        default=None, min_length=1, max_length=63, examples=["warehouse"]
    )
    """Name of a database of `GET /v1/sources`."""
    query: str | None = Field(default=None, min_length=1, max_length=63, examples=["loans-since"])
    """With `connection`: name of one of its queries."""
    parameters: dict[str, Any] = Field(
        default_factory=dict, max_length=100, examples=[{"since": "2026-01-01"}]
    )
    """With `connection`: the value of each parameter of the query, by name."""

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        """Raise ValueError unless the members belong to exactly one kind of source."""
        given = [name for name in _SOURCE_MEMBERS if getattr(self, name) is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none"
            raise ValueError(f"must have exactly one of decisions, url and connection, got {got}")
        kind = given[0]
        for name in self.model_fields_set - {kind, *_SOURCE_MEMBERS[kind]}:
            raise ValueError(f"{name} cannot be given with {kind}")
        if kind == "connection" and self.query is None:
            raise ValueError("query must be given with connection")
        return self

    @property
    def kind(self) -> str:
        if self.decisions is not None:
            return "decisions"
        return "object" if self.url is not None else "query"


_SOURCE_MEMBERS: dict[str, tuple[str, ...]] = {
    "decisions": ("since", "until"),
    "url": (),
    "connection": ("query", "parameters"),
}
"""The members of a request that names a source by this member."""


class QueryParameter(Resource):
    """A parameter of a query."""

    name: str
    """Name of the parameter."""
    type: Annotated[str, one_of(PARAMETER_TYPES)]
    """Type of its values."""


class SourceQuery(Resource):
    """A query that can be read."""

    name: str
    """Name of the query."""
    parameters: list[QueryParameter]
    """Its parameters; each must be given."""


class SourceConnection(Resource):
    """A connection from which datasets can be read."""

    name: str
    """Name of the connection."""
    driver: Annotated[str, one_of(DRIVERS)]
    """Kind of object store or database."""
    prefix: str | None
    """URL below which objects can be read. Null for a database."""
    queries: list[SourceQuery] | None
    """Queries that can be read. Null for an object store."""


class SourceList(Resource):
    """The connections of the owner, in alphabetical order."""

    data: list[SourceConnection]
    """The connections."""


class DatasetSummary(Resource):
    """The members that a dataset and a list of datasets share."""

    id: str
    """Id of the dataset."""
    series_id: str
    """Id of the first version of this series."""
    version: int
    """Version number: counts the datasets of this name, from 1. Numbers are never reused."""
    parent_id: str | None
    """The version that this one was made from; it may have been deleted. Null for the first version."""
    refresh_of: str | None = None
    """The dataset that this one refreshes: its source was read again. It may have been deleted. Null for any other
    dataset."""
    mode: Annotated[str, one_of(VersionMode)] | None
    """`append`: the rows of the parent, followed by the uploaded rows. `replace`: only the uploaded rows. Null for
    the first version."""
    name: str
    """Name of the dataset."""
    kind: Kind
    """Kind of dataset."""
    status: Status
    """`processing`, `ready`, `invalid`, or `unchanged`: a refresh has read the rows of `refresh_of`."""
    job_id: str | None
    """Id of the job that reads the table. Null if there is none."""
    content_type: ContentType
    """Media type of the upload."""
    content_encoding: ContentEncoding | None
    """Compression of the upload. Null: none."""
    label: str | None
    """Name of the label column. Null without a single label, and until the service has chosen one."""
    positive: str | None
    """Label value that counts as positive. Null without a single binary label, and until the table has been read."""
    negative: str | None
    """Label value that counts as negative. Null without a single binary label, and until the table has been read."""
    weight: str | None
    """Name of the weight column. Null without one."""
    group: str | None
    """Name of the group column. Null without one."""
    query: str | None
    """Name of the query column: rows are ranked within each query. Null without one."""
    item: str | None
    """Name of the column of item names. Null unless the dataset is of kind `preferences`."""
    bytes: int
    """Size of the upload in bytes. 0 if the rows come from a source that was not read successfully."""
    sha256: str
    """SHA-256 of the content. For a first or replaced version: of the uploaded bytes. For an appended version: of the
    parent's `sha256` and `upload_sha256`, joined as text. For several files: as if each had been appended to the
    previous ones."""
    upload_sha256: str
    """SHA-256 of the uploaded bytes. For several files: of the list of their hashes."""
    rows: RowsOrNull
    positives: PositivesOrNull
    negatives: NegativesOrNull
    pairs: Pairs | None
    """The pairs of a dataset of kind `preferences`. Null until they are uploaded."""
    created_at: CreatedAt


class ListedDataset(DatasetSummary):
    """A dataset in a list."""

    n_columns: int
    """Number of columns. 0 until the table has been read."""


@with_members(
    {
        name: (
            field.annotation,
            Field(
                description=field.description,
                validation_alias=AliasPath("reading", name),
            ),
        )
        for name, field in ReadingFields.model_fields.items()
    }
)
class Dataset(DatasetSummary):
    """An uploaded table."""

    positive_guessed: bool | None
    """True if the service guessed which label value is positive, because the upload did not say and the values are not
    self-explanatory, such as `1` and `0` or `yes` and `no`. Check the guess. Null if it was not recorded."""
    label_values: list[CountedValue] | None
    """Values of the label in the upload, most frequent first: all positive values, and up to 100 in total. Null without
    a single label of classes, and until the table has been read."""
    queries: QuerySizes | None
    """Number and sizes of the queries. Null without a query column, and until the table has been read."""
    grades: list[GradeRows] | None
    """The grades of a dataset of kind `graded`, the lowest first; otherwise null."""
    labels: list[Label] | None
    """The labels of a dataset of kind `multilabel`; otherwise null."""
    source: DatasetSource | None
    """Where the service took the rows from. Null: they were uploaded."""
    dialect: dict[str, str] | None = Field(
        description=f"How the upload is written: `{'`, `'.join(Dialect.model_fields)}`. For a workbook of several "
        "sheets, `sheet` is the one that was read."
    )
    columns: list[Column]
    """Profiles of the columns. Empty until the table has been read."""
    errors: list[TableFault]
    """Errors in the table. Empty unless `status` is `invalid`."""
    warnings: list[TableWarning]
    """How values were changed because they could not be used as they are, and what columns may mean."""

    @field_validator("columns", "errors", "warnings", mode="before")
    @classmethod
    def _absent_as_empty(cls, value: Any) -> Any:
        return value or []


def _text_of(value: Any) -> Any:
    """True and false stay unchanged: every field may also be given as a text."""
    return str(value).lower() if isinstance(value, bool) else value


# A bounded text must be valid Unicode; `describe` checks the bound of each field.
_FieldText = Annotated[str, StringConstraints(max_length=MAX_LIST_LENGTH)]


def _changed(type_: TextField, schema: dict[str, Any]) -> Any:
    is_flag = isinstance(type_, FlagField)
    text = Annotated[_FieldText, BeforeValidator(_text_of)] if is_flag else _FieldText
    booleans = [{"type": "boolean"}] if is_flag else []
    types: list[Any] = [*booleans, type_.schema, {"type": "null"}]
    words = schema["description"]
    return text | None, Field(default=None, description=words, json_schema_extra={"anyOf": types})


@with_members(
    {
        name: _changed(TableFields.types()[name], schema)
        for name, schema in TableFields.schemas().items()
    }
)
class TableReading(Body):
    """Upload fields to change, as strings. Omitted fields keep the value of the dataset; null resets a field to the
    default of `POST /v1/datasets`.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"positive": "yes", "group": "customer"}]}
    )

    def changes(self) -> dict[str, str | None]:
        return {name: getattr(self, name) for name in self.model_fields_set}


@with_members(
    {
        name: _changed(TableFields.types()[name], schema)
        for name, schema in TableFields.schemas().items()
        if name != "name"
    }
)
class DatasetRequest(Body):
    """A dataset whose rows the service takes from a source. The other members are the fields of an upload, as strings;
    with `decisions` there are none.
    """

    name: Name = Field(examples=["churn-decisions"])
    """Name of the dataset."""
    source: SourceRequest
    """Where the rows come from."""

    def fields(self) -> dict[str, str]:
        given = {name: getattr(self, name) for name in TableFields.model_fields}
        return {name: text for name, text in given.items() if text is not None}


class DatasetPage(PageOf[ListedDataset]):
    """One page of datasets."""


class Preview(Resource):
    """The first rows of a table."""

    columns: list[str]
    """Names of the columns."""
    data: list[list[float | bool | str | None]]
    """The rows, each as a list of values in the order of `columns`. Missing values are null."""


class TableCheck(Resource):
    """The table is valid. Nothing was stored."""

    valid: IsValid
    rows: int
    """Number of rows."""
    positives: int | None
    """Number of positive rows. Null without a single binary label."""
    negatives: int | None
    """Number of negative rows. Null without a single binary label."""
    queries: QuerySizes | None
    """Number and sizes of the queries. Null without a query column."""
    grades: list[GradeRows] | None
    """Number of rows of each grade. Null unless the kind is `graded`."""
    columns: list[Column]
    """Profiles of the columns."""
    warnings: list[TableWarning]
    """How values would be changed because they cannot be used as they are, and what columns may mean."""
    sheet: str | None
    """Name of the sheet that was read. Null if the table is not a workbook."""
    sheets: list[str] | None
    """Names of the workbook's sheets that can be read, in its order. Null if the table is not a workbook."""
    preview: Preview
    """The first rows, as they would be stored."""


class UploadPart(Resource):
    """One file of an upload in several files."""

    number: int
    """Number of the part, from 1. Rows are read in this order."""
    content_type: ContentType
    """Media type of the part."""
    content_encoding: ContentEncoding | None
    """Compression of the part. Null: none."""
    bytes: int
    """Size of the part in bytes."""
    sha256: str | None
    """SHA-256 of the bytes. Null for a file that the service reads in place."""
    path: str | None
    """Path of a file that the service reads in place, relative to its folder for such files. Null for a part that was
    sent."""
    created_at: CreatedAt


class Upload(Resource):
    """An upload in several files, which are sent one by one and then become one dataset."""

    id: str
    """Id of the upload."""
    status: Annotated[str, one_of(("open", "closed"))]
    """`open`: parts can be added. `closed`: the upload has become a dataset."""
    fields: dict[str, str] = Field(examples=[{"name": "churn", "label": "left"}])
    """How to read the table, as given when the upload was opened."""
    n_parts: int
    """Number of parts received."""
    bytes: int
    """Total size of the parts in bytes."""
    dataset_id: str | None
    """Id of the dataset. Null until the upload is closed."""
    parts: list[UploadPart] | None
    """The parts in order. Null in a list of uploads."""
    created_at: CreatedAt

    @classmethod
    def of_parts(cls, upload: Any, parts: Sequence[Any]) -> Upload:
        size = sum(part.bytes for part in parts)
        return cls.of_size(upload, len(parts), size, parts)

    @classmethod
    def of_size(
        cls, upload: Any, n_parts: int, size: int, parts: Sequence[Any] | None = None
    ) -> Upload:
        """By default the response has no list of parts."""
        status = "open" if upload.dataset_id is None else "closed"
        return cls.from_row(upload, status=status, n_parts=n_parts, bytes=size, parts=parts)


class UploadPage(PageOf[Upload]):
    """One page of uploads."""


class UploadClose(Body):
    """The number of parts of an upload."""

    parts: int = Field(ge=1, le=MAX_PARTS)
    """Number of parts that were sent. The upload must have exactly the parts 1 to this number."""


class ServerPath(Body):
    """A file or folder on the server."""

    path: str = Field(min_length=1, max_length=1024, examples=["sales/2026"])
    """Path relative to the service's folder for files: a table, or a folder of tables."""
