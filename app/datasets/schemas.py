"""Datasets over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import (
    AliasPath,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from app.datasets.description import CONTENT_ENCODINGS
from app.datasets.fields import ReadingFields, TableFields
from app.datasets.parts import MAX_PARTS
from app.datasets.protected import is_protected
from app.datasets.service import COPIES, describe_copies, is_constant
from app.http.schemas import Body, Kind, PageOf, Resource, Timestamp, one_of, with_members
from app.ingest.archives import ZIP
from app.ingest.fields import MAX_LIST_LENGTH, Flag, Text
from app.ingest.formats import CONTENT_TYPES, Dialect
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC
from app.platform.documents import GradeRows, QuerySizes
from app.platform.tables import DatasetStatus, VersionMode

ColumnType = Annotated[str, one_of((NUMERIC, BOOLEAN, DATETIME, CATEGORICAL))]
Role = Annotated[
    str, one_of(("feature", "label", "item", "weight", "group", "query", "identifier", "dropped"))
]
Status = Annotated[str, one_of(DatasetStatus)]
ContentType = Annotated[str, one_of(CONTENT_TYPES)]
Copies = Annotated[str, one_of(COPIES)]
ContentEncoding = Annotated[str, one_of((*CONTENT_ENCODINGS, ZIP))]


class TopValue(Resource):
    """A frequent value of a column, and how often it occurs."""

    value: float | bool | str | None = Field(
        description="The value. For a `datetime` column: seconds since 1970, as in `min`, `max` and `mean`."
    )
    count: int


class Column(Resource):
    """The profile of one column."""

    name: str
    type: ColumnType | None = Field(
        description="`numeric`, `boolean`, `datetime` or `categorical`. Null if the column was dropped.",
        examples=["numeric"],
    )
    role: Role = Field(
        description="`feature`, `label`, `item`, `weight`, `group` or `query`. `identifier`: a text column with a "
        "different value in nearly every row; it is not used as a feature. `dropped`: not read.",
        examples=["feature"],
    )
    protected: bool = Field(
        default=False,
        description="True if the name says that law often protects what the column holds, as `sex` or `age`. "
        "Evaluations compare its groups by themselves.",
    )
    missing: int | None
    distinct: int | None = Field(default=None, description="Number of different values.")
    distinct_is_bound: bool = Field(
        default=False, description="True if the column has `distinct` different values or more."
    )
    constant: bool | None = Field(
        default=None,
        description="For a feature: true if all rows have the same value, or all are missing. Such a feature cannot "
        "rank.",
    )
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    top: list[TopValue] | None = None

    @model_validator(mode="before")
    @classmethod
    def _add_derived(cls, column: Any) -> Any:
        """What is kept of a column says whether it is constant, and its name whether it is protected."""
        if not isinstance(column, dict):
            return column
        derived = {"protected": is_protected(column["name"])}
        if column.get("role") == "feature":
            derived["constant"] = is_constant(column)
        return column | derived


class ColumnInterval(Resource):
    """An AUC and its interval at level 0.95."""

    value: float
    low: float
    high: float


class Quantile(Resource):
    """A quantile: the smallest value that at least this fraction of the rows does not exceed."""

    at: float
    value: float


class Histogram(Resource):
    """A histogram with bins of equal width. There is one more edge than counts."""

    edges: list[float]
    counts: list[int]


class ColumnProfile(Resource):
    """The distribution of one feature, and how well it ranks the label alone, without missing values. Dates are seconds
    since 1970.
    """

    name: str
    quantiles: list[Quantile] | None = Field(description="Null for a categorical feature.")
    histogram: Histogram | None = Field(description="Null for a categorical feature.")
    auc: ColumnInterval | None = Field(
        description="AUC of the feature's values as scores. The score of a category is the fraction of positives "
        "among its other rows. Null without a label of two values."
    )
    missing_auc: ColumnInterval | None = Field(
        description="AUC of the score that is 1 for a missing value and 0 otherwise. Null if no value or every value "
        "is missing."
    )
    leak: bool = Field(
        description="True if its AUC is so extreme that it was probably made from the label."
    )


class Duplicates(Resource):
    """Rows that are equal to another row in every feature."""

    rows: int = Field(description="Number of rows that equal another row.")
    repeated: int = Field(description="Number of rows minus number of distinct rows.")
    rows_of_both_classes: int | None = Field(
        default=None,
        description="Number of rows with an equal row of the other class. No ranker can separate them.",
    )
    estimated: bool = Field(
        description="True if the counts are estimated from a sample of the rows."
    )
    kinds: int | None = Field(
        default=None,
        description="Number of distinct rows, exactly, if there are fewer than 30; null otherwise.",
    )
    in_splits: Copies | None = Field(
        description="Where equal rows stand when a job splits the rows of the table. `together`: on one side, and in "
        "one fold. On both sides they may stand with `groups` (equal rows of different groups or queries), with "
        "`few_kinds` (fewer than 30 distinct rows, each about 10 times or more), and with `time` (the check of a job "
        "that splits by time). Null for a dataset of kind `preferences`."
    )


class DatasetProfile(Resource):
    """The profile of a ready dataset."""

    dataset_id: str
    rows: int | None
    positives: int | None
    negatives: int | None
    queries: QuerySizes | None
    grades: list[GradeRows] | None
    columns: list[ColumnProfile]
    rows_looked_at: int = Field(
        description="Number of rows that were read: all, or a random sample of a large table."
    )
    duplicates: Duplicates
    warnings: list[TableWarning] = Field(description="Warnings of the dataset.")

    @classmethod
    def of_rows(cls, dataset: Any, profile: Any) -> DatasetProfile:
        """Show what was found."""
        return cls(
            dataset_id=dataset.id,
            rows=dataset.rows,
            positives=dataset.positives,
            negatives=dataset.negatives,
            queries=dataset.queries,
            grades=dataset.grades,
            columns=[ColumnProfile.model_validate(column) for column in profile.columns],
            rows_looked_at=profile.rows,
            duplicates=Duplicates.model_validate(describe_copies(dataset, profile.duplicates)),
            warnings=[TableWarning.model_validate(warning) for warning in dataset.warnings],
        )


class CountedValue(Resource):
    """A value of the label, and how many rows have it."""

    value: str
    count: int | None = Field(
        description="Number of rows. Null for a version to which rows were appended."
    )
    positive: bool = Field(description="True if the value counts as positive.")


class TableFault(Resource):
    """An error in a table, and its place."""

    detail: str
    part: int | None = Field(
        default=None, description="Number of the part. Null for a table of one file."
    )
    line: int | None = None
    column: str | None = None
    suggestion: dict[str, str] | None = Field(
        default=None,
        description="Fields of the upload that may correct the error, each with a value: a likely label, a positive "
        "value.",
    )
    values: list[CountedValue] | None = Field(
        default=None,
        description="For a label of more than two values: the values in the rows that were read, the most frequent "
        "first, at most 100. Name those that count as positive in `positive`.",
    )


class TableWarning(Resource):
    """How values of a column were changed because they could not be used as they are; or what a column may mean."""

    code: str = Field(
        description="`values_taken_for_missing`: rare values that do not fit their column count as missing. "
        "`words_pooled`: there are too many categories; the rarest count as missing. `identifier`: nearly every row "
        "has a different value; the column is not a feature. `column_without_name`: the column was left out. "
        "`rows_without_label`: these rows were left out. `label_of_many_values`: all values but the positive one are "
        "negative. `numbers_with_thousands`: numbers such as 1.234,56 are read as words. `dates_of_unknown_order`: "
        "dates such as 03/04/2026 are read as words. `words_among_numbers`: a column of numbers or dates is read as "
        "words, because of a few words in it. `rows_of_groups`: rows seem to belong together, as those of a customer "
        "do, and the upload has no group.",
        examples=["values_taken_for_missing"],
    )
    column: str
    detail: str
    count: int = Field(description="Number of values, words or rows that it concerns.")
    parameter: str = Field(description="Field of the upload that changes this.")
    line: int | None = Field(description="Line of the first one. Null if the format has no lines.")
    suggestion: dict[str, str] | None = Field(
        None,
        description="Fields of the upload with which the values would be read. Null: the service knows none.",
    )


class Pairs(Resource):
    """The pairs of a dataset of kind `preferences`: which item is better than which."""

    status: Status = Field(description="`processing`, `ready` or `invalid`.")
    job_id: str = Field(description="The job that reads the pairs.")
    content_type: ContentType
    content_encoding: ContentEncoding | None
    bytes: int
    sha256: str
    pairs: int | None = Field(description="Number of pairs.")
    items: int | None = Field(description="Number of different items in the pairs.")
    weighted: bool | None = Field(description="True if the pairs have weights.")
    errors: list[TableFault]
    created_at: Timestamp


class Label(Resource):
    """One of several labels. Its values and counts are null until the table was read."""

    name: str
    positive: str | None = None
    negative: str | None = None
    positives: int | None = None
    negatives: int | None = None


class DatasetSummary(Resource):
    """What a list and a dataset itself tell alike."""

    id: str
    series_id: str = Field(description="Id of the first version of this series.")
    version: int = Field(
        description="Number of the version in its series, from 1. It is never used again."
    )
    parent_id: str | None = Field(
        description="The version that it was made from; it may have been deleted. Null for the first version."
    )
    mode: Annotated[str, one_of(VersionMode)] | None = Field(
        description="`append`: the rows of the parent, then those of the upload. `replace`: only those of the upload. "
        "Null for the first version."
    )
    name: str
    kind: Kind
    status: Status = Field(description="`processing`, `ready` or `invalid`.")
    job_id: str | None = Field(description="The job that reads the table.")
    content_type: ContentType
    content_encoding: ContentEncoding | None
    label: str | None
    positive: str | None = Field(description="Value of the label that counts as positive.")
    negative: str | None
    weight: str | None
    group: str | None
    query: str | None = Field(
        description="Column of the queries: rows are put in order within each query."
    )
    item: str | None = Field(description="Column of the items' names.")
    bytes: int = Field(description="Size of the upload in bytes.")
    sha256: str = Field(
        description="SHA-256 of the content. For a first or replaced version: that of the uploaded bytes. For an "
        "appended version: that of the text made of the parent's `sha256` and `upload_sha256`, joined. For several "
        "files: as if each had been appended to those before."
    )
    upload_sha256: str = Field(
        description="SHA-256 of the uploaded bytes; of a dataset of several files: of the list of their hashes."
    )
    rows: int | None
    positives: int | None
    negatives: int | None
    pairs: Pairs | None = Field(
        description="The pairs of a dataset of kind `preferences`. Null until they are uploaded."
    )
    created_at: Timestamp


class ListedDataset(DatasetSummary):
    """An uploaded table in a list."""

    n_columns: int = Field(description="Number of columns; 0 until the table was read.")


@with_members(
    {
        name: (
            field.annotation,
            Field(description=field.description, validation_alias=AliasPath("reading", name)),
        )
        for name, field in ReadingFields.model_fields.items()
    }
)
class Dataset(DatasetSummary):
    """An uploaded table."""

    positive_guessed: bool | None = Field(
        description="True if the upload did not name the positive value, and the label's two values do not say by "
        "themselves which one it is, as `1` and `0` or `yes` and `no` do: check it. Null if it is not known."
    )
    label_values: list[CountedValue] | None = Field(
        description="The values of the label in the upload, the most frequent first: all that count as positive, and "
        "at most 100 in all. Null without one label of classes, and until the table was read."
    )
    queries: QuerySizes | None = Field(
        description="Number and sizes of the queries. Null without a query column, and until the table was read."
    )
    grades: list[GradeRows] | None = Field(
        description="The grades of a dataset of kind `graded`, the worst first; otherwise null."
    )
    labels: list[Label] | None = Field(
        description="The labels of a dataset of kind `multilabel`; otherwise null."
    )
    dialect: dict[str, str] | None = Field(
        description=f"How the text of the upload is written: `{'`, `'.join(Dialect.model_fields)}`."
    )
    columns: list[Column]
    errors: list[TableFault]
    warnings: list[TableWarning] = Field(
        description="How values were changed because they could not be used as they are."
    )

    @field_validator("columns", "errors", "warnings", mode="before")
    @classmethod
    def _absent_as_empty(cls, value: Any) -> Any:
        return value or []


def _text_of(value: Any) -> Any:
    """Take true and false as they are; every field may be a text, as in an upload."""
    return str(value).lower() if isinstance(value, bool) else value


# A bounded text must be valid Unicode; `describe` tells the bound of each field.
_FieldText = Annotated[str, StringConstraints(max_length=MAX_LIST_LENGTH)]


def _changed(type_: Text, schema: dict[str, Any]) -> Any:
    """Return a field of an upload as a member of a body."""
    is_flag = isinstance(type_, Flag)
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
    """Fields of an upload that are to be others, as text. A field that is not given stays as the dataset says; null is
    the default of `POST /v1/datasets`.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"positive": "yes", "group": "customer"}]}
    )

    def changes(self) -> dict[str, str | None]:
        """Return the fields that are given, as an upload has them."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class DatasetPage(PageOf[ListedDataset]):
    """One page of datasets."""


class Preview(Resource):
    """The first rows of a ready dataset."""

    columns: list[str]
    data: list[list[float | bool | str | None]]


class TableCheck(Resource):
    """The table is valid. Nothing was stored."""

    valid: bool
    rows: int
    positives: int | None
    negatives: int | None
    queries: QuerySizes | None
    grades: list[GradeRows] | None
    columns: list[Column]
    warnings: list[TableWarning]


class UploadPart(Resource):
    """One file of an upload."""

    number: int = Field(description="Number of the part, from 1: the order of the rows.")
    content_type: ContentType
    content_encoding: ContentEncoding | None
    bytes: int
    sha256: str | None = Field(
        description="SHA-256 of the bytes. Null for a file that the service reads where it lies."
    )
    path: str | None = Field(
        description="Path of a file that the service reads where it lies, below its folder for such files."
    )
    created_at: Timestamp


class Upload(Resource):
    """Files that are sent one by one, and then become one dataset."""

    id: str
    status: Annotated[str, one_of(("open", "closed"))] = Field(
        description="`open`: parts may be added. `closed`: it is a dataset."
    )
    fields: dict[str, str] = Field(
        description="How the table is to be read, as given when the upload was opened.",
        examples=[{"name": "churn", "label": "left"}],
    )
    n_parts: int = Field(description="Number of parts that have come.")
    bytes: int = Field(description="Sum of the sizes of the parts.")
    dataset_id: str | None = Field(description="The dataset. Null until the upload is closed.")
    parts: list[UploadPart] | None = Field(
        description="The parts in their order. Null in a list of uploads."
    )
    created_at: Timestamp

    @classmethod
    def of(cls, upload: Any, parts: Sequence[Any]) -> Upload:
        """Show an upload with its parts."""
        size = sum(part.bytes for part in parts)
        shown = cls.of_size(upload, len(parts), size)
        shown.parts = [UploadPart.model_validate(part) for part in parts]
        return shown

    @classmethod
    def of_size(cls, upload: Any, n_parts: int, size: int) -> Upload:
        """Show an upload without its parts."""
        return cls(
            id=upload.id,
            status="open" if upload.dataset_id is None else "closed",
            fields=upload.fields,
            n_parts=n_parts,
            bytes=size,
            dataset_id=upload.dataset_id,
            parts=None,
            created_at=upload.created_at,
        )


class UploadPage(PageOf[Upload]):
    """One page of uploads."""


class UploadClose(Body):
    """How many parts an upload has."""

    parts: int = Field(ge=1, le=MAX_PARTS, description="Number of parts that were sent.")


class ServerPath(Body):
    """A file of the service, or a folder."""

    path: str = Field(
        min_length=1,
        max_length=1024,
        description="Path below the service's folder for files: of a table, or of a folder of tables.",
        examples=["sales/2026"],
    )
