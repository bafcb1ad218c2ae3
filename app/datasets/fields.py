"""The fields of an upload, each declared once: for all routes, the stored dataset, the reader's payload and the
console.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from app.ingest.fields import (
    ChoiceField,
    ColumnField,
    ColumnsField,
    FlagField,
    MarkedColumnsField,
    NameField,
    TextField,
    TextFields,
    TokensField,
)
from app.ingest.formats import Dialect, DialectField
from app.ingest.values import DEFAULT_TOKENS, TYPED_TOKENS
from app.platform.tables import Dataset, DatasetKind, VersionMode

MAX_LABELS = 100
_BIPARTITE, _GRADED = DatasetKind.BIPARTITE, DatasetKind.GRADED
_ITEMS, _MULTILABEL = DatasetKind.PREFERENCES, DatasetKind.MULTILABEL
_NO_LABEL = {_ITEMS: "items have no label; pairs say which one is better"}
_ONE_LABEL = {_MULTILABEL: "use labels instead"}
_SEVERAL_LABELS = dict.fromkeys((_BIPARTITE, _GRADED), "several labels require kind=multilabel") | (
    _NO_LABEL
)
_NO_ITEMS = dict.fromkeys((_BIPARTITE, _MULTILABEL, _GRADED), "items require kind=preferences")


class RoleFields(TextFields):
    """The upload fields that are columns of the table `datasets`; the reader completes some."""

    name: Annotated[str, NameField()] = Field(
        default="table", description="Name of the dataset. Default: `table`."
    )
    label: Annotated[str | None, ColumnField(_NO_LABEL | _ONE_LABEL)] = Field(
        default=None, description="Name of the label column."
    )
    positive: Annotated[
        str | None,
        TextField(
            _NO_LABEL | _ONE_LABEL | {_GRADED: "grades are whole numbers, and higher is better"}
        ),
    ] = Field(
        default=None,
        description="Label value that counts as positive, or several values separated by commas. All other values "
        "are negative.",
    )
    weight: Annotated[
        str | None, ColumnField({_ITEMS: "items have no weight; give weights to the pairs"})
    ] = Field(default=None, description="Column with the weight of each row.")
    group: Annotated[str | None, ColumnField()] = Field(
        default=None,
        description="Column of groups, such as customers. Rows of the same group are never split between training "
        "and validation.",
    )
    query: Annotated[
        str | None,
        ColumnField(
            {
                _ITEMS: "pairs define which items are compared; use group for items of one query",
                _MULTILABEL: "rows of a query are ranked by one label",
            }
        ),
    ] = Field(
        default=None,
        description="Column of queries. Rows with the same value form one list, such as the results of one "
        "search, and are ranked within it. Rows of the same query are never split between training "
        "and validation.",
    )
    item: Annotated[str | None, ColumnField(_NO_ITEMS)] = Field(
        default=None, description="Column with the names of the items, for `preferences`."
    )
    labels: Annotated[
        list[str] | None,
        ColumnsField(
            _SEVERAL_LABELS,
            max_names=MAX_LABELS,
            what="the label columns of a multilabel table",
        ),
    ] = Field(default=None, description="Label columns, for `multilabel`.")
    kind: Annotated[str, ChoiceField(words={kind: kind for kind in DatasetKind})] = Field(
        default=DatasetKind.BIPARTITE,
        description="`bipartite`: rows with a label of two values. `preferences`: rows are items, and `PUT "
        "/v1/datasets/{dataset_id}/pairs` says which is better than which. `multilabel`: rows with "
        "several labels of two values each. `graded`: rows with a grade from 0 to 31, where higher is "
        "better.",
    )


class ReadingFields(TextFields):
    """The upload fields that define how columns are read. A dataset stores them as one JSON document."""

    categorical: Annotated[list[str] | None, ColumnsField()] = Field(
        default=None,
        description="Columns of numbers to read as categories.",
        examples=["zip,shop"],
    )
    numeric: Annotated[list[str] | None, ColumnsField()] = Field(
        default=None,
        description="Columns to read as numbers. Any other value in them counts as missing.",
    )
    drop: Annotated[list[str] | None, ColumnsField()] = Field(
        default=None,
        description="Columns to ignore.",
        examples=['customer_id,"name, first"'],
    )
    protected: Annotated[list[str] | None, MarkedColumnsField()] = Field(
        default=None,
        description="Columns with a legally protected attribute, such as sex or age. They are stored, compared "
        "between groups and monitored, but are not features of a model unless the training job names them in "
        "`protected_features`.",
        examples=["sex,age"],
    )
    missing: Annotated[list[str] | None, TokensField()] = Field(
        default=None,
        description="Strings that mean a missing value, ignoring case. An empty cell is always missing, and so "
        f"are `{'`, `'.join(TYPED_TOKENS)}` in columns of numbers, dates or booleans. Default: "
        f"`{','.join(DEFAULT_TOKENS)}`.",
        examples=["NA,unknown,-999"],
    )
    strict: Annotated[bool, FlagField()] = Field(
        default=False,
        description="`true`: a value that does not fit its column, or a row without a label, is an error. "
        "`false`: it is a warning. Default: `false`.",
    )


class TableFields(Dialect, ReadingFields, RoleFields):
    @classmethod
    def of(cls, dataset: Dataset) -> TableFields:
        """For a ready dataset they include what was detected: label, positive value, item, order of dates."""
        roles = {name: getattr(dataset, name) for name in RoleFields.model_fields}
        if dataset.labels is not None:
            roles["labels"] = [each["name"] for each in dataset.labels]
        return cls.model_construct(**roles, **dataset.reading, **(dataset.dialect or {}))

    def roles(self) -> dict[str, Any]:
        """Return the values for the dataset's row; several labels as JSON documents."""
        roles = {name: getattr(self, name) for name in RoleFields.model_fields}
        if self.labels is not None:
            roles["labels"] = [{"name": name} for name in self.labels]
        return roles

    def reading(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ReadingFields.model_fields}

    def columns(self) -> Iterator[tuple[str, str]]:
        """Yield each column that a field refers to, except those only marked: the field, and the column's name."""
        for field, type_ in type(self).types().items():
            value = getattr(self, field)
            if value is None or not isinstance(type_, ColumnField | ColumnsField):
                continue
            for column in [value] if isinstance(type_, ColumnField) else value:
                yield field, column


class VersionFields(Dialect):
    """The fields that describe another version of a dataset; all other fields are the parent's."""

    mode: Annotated[str, ChoiceField(words={mode: mode for mode in VersionMode})] = Field(
        default=VersionMode.APPEND,
        description="`append`: the rows of the old version, followed by the uploaded rows. `replace`: only the "
        "uploaded rows. Default: `append`.",
    )

    @classmethod
    def unset(cls, choice: DialectField) -> str:
        """Return the value that a dialect field has if it is not given."""
        return "as in the dataset"
