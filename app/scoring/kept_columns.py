"""Columns that are copied from a table to the result of its scoring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NotRequired

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypedDict

from app.ingest.errors import BadTable, brief
from app.ingest.rows import Source
from app.ingest.value_columns import as_doubles, is_text
from app.ingest.writer import CATEGORIES
from app.platform.tables import Dataset

_MICROSECONDS = 1e6
_TYPES = {
    "datetime": pa.timestamp("us", "UTC"),
    "boolean": pa.bool_(),
    "numeric": pa.float64(),
    "words": pa.string(),
}


ColumnForm = TypedDict("ColumnForm", {"as": str, "words": NotRequired[list[str]]})
"""How a kept column is written: `as` is a key of `_TYPES`, `words` are the two values of a label."""


def form_of(dataset: Dataset, name: str) -> ColumnForm | None:
    """Return how a dataset's column is copied: labels as values, seconds as times; None: unchanged."""
    labels = dataset.labels or [
        {"name": dataset.label, "negative": dataset.negative, "positive": dataset.positive}
    ]
    for label in labels:
        if label["name"] == name:
            return {"as": "words", "words": [label["negative"], label["positive"]]}
    kind = next(column["type"] for column in dataset.columns if column["name"] == name)
    return {"as": kind} if kind in _TYPES else None


def kept_fields(source: Source, keep: Mapping[str, ColumnForm | None]) -> list[pa.Field]:
    """Return the Arrow fields: by form for a dataset, with their own type for a typed file, else text."""
    types: dict[str, pa.DataType] = {}
    if source.schema is not None:
        types = dict(zip(source.names, source.schema.types, strict=True))
    kinds = {
        name: _plain_type(types.get(name, pa.string())) if form is None else _TYPES[form["as"]]
        for name, form in keep.items()
    }
    return [pa.field(name, kind) for name, kind in kinds.items()]


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column of a typed file is written.

    All texts are `string`, dictionaries stay only if they are of text, times are in UTC (a file may claim an unknown
    zone), and types that Parquet lacks are replaced: whole seconds, negative scales.
    """
    types = pa.types
    if types.is_dictionary(kind):
        return CATEGORIES if is_text(kind.value_type) else _plain_type(kind.value_type)
    if types.is_timestamp(kind):
        unit = "us" if kind.unit == "s" else kind.unit
        return pa.timestamp(unit, None if kind.tz is None else "UTC")
    if types.is_decimal(kind) and kind.scale < 0:
        return pa.float64()
    return pa.string() if is_text(kind) else kind


def _plain(column: pa.Array) -> pa.Array:
    """Convert to `_plain_type`. Raises BadTable."""
    kind = _plain_type(column.type)
    if kind != CATEGORIES:
        values = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        if pa.types.is_decimal(values.type) and kind == pa.float64():
            return as_doubles(values)
        try:
            return values.cast(kind)
        except pa.ArrowInvalid as error:
            raise BadTable(f"a kept column cannot be written: {brief(error)}") from error
    codes, texts = column.indices.cast(pa.int32()), column.dictionary.cast(pa.string())
    return pa.DictionaryArray.from_arrays(codes, texts)


def write_as(column: pa.Array, form: ColumnForm | None) -> pa.Array:
    """Return one column of a batch in the form of `form_of`."""
    if form is None:
        return _plain(column)
    if form["as"] == "words":
        return pa.array(form["words"], pa.string()).take(column)
    values = column.to_numpy(zero_copy_only=False)
    return _FROM_NUMBERS[form["as"]](values, np.isnan(values))


def _to_times(values: np.ndarray[Any, Any], missing: np.ndarray[Any, Any]) -> pa.Array:
    ticks = np.where(missing, 0.0, np.rint(values * _MICROSECONDS)).astype(np.int64)
    return pc.cast(pa.array(ticks, mask=missing), _TYPES["datetime"])


_FROM_NUMBERS: Mapping[str, Callable[..., pa.Array]] = {
    "datetime": _to_times,
    "boolean": lambda values, missing: pa.array(values == 1.0, mask=missing),
    "numeric": lambda values, missing: pa.array(values, mask=missing),
}
