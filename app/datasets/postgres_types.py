"""The types of PostgreSQL that a dataset can have, and how the columns of a result are cast to them.

The driver has no type of its own for many types of PostgreSQL: it returns them as opaque bytes, or as integers without
their unit. A column of any type that is not listed here is rejected by name. docs/sources.md has the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.ingest.errors import BadTable, show

_TYPE = b"POSTGRESQL:type"
_NUMBERS = ("int2", "int4", "int8", "float4", "float8")
_ADVICE: Mapping[str, str] = {
    "money": "cast it in the query to numeric",
    "oid": "cast it in the query to int8",
    "interval": "use EXTRACT(epoch FROM …) in the query",
    "time": "use EXTRACT(epoch FROM …) in the query, or cast it to text",
    "timetz": "use EXTRACT(epoch FROM …) in the query, or cast it to text",
    "bytea": "use encode(…, 'hex') in the query",
}
_ELSE = "cast it in the query to text, or leave it out"
_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_BYTES, _UUID_LENGTH = 16, 36
_HYPHENS = (8, 13, 18, 23)


def schema_of(found: pa.Schema) -> pa.Schema:
    """Convert a result's schema. Raises BadTable with all columns of unsupported types."""
    types = [_target(field) for field in found]
    bad = [field for field, kind in zip(found, types, strict=True) if kind is None]
    if bad:
        errors = [{"column": field.name, "detail": _unsupported(field)} for field in bad]
        problem = BadTable(errors[0]["detail"], column=bad[0].name, code="unsupported_type")
        problem.errors = errors
        problem.total = len(errors)
        raise problem
    return pa.schema(list(zip(found.names, types, strict=True)))


def convert(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Raises BadTable for a date that no dataset can have."""
    columns = [
        _cast(name, column, kind)
        for name, column, kind in zip(schema.names, batch.columns, schema.types, strict=True)
    ]
    return pa.record_batch(columns, schema=schema)


def _name_of(field: pa.Field) -> str:
    return bytes((field.metadata or {}).get(_TYPE, b"")).decode("utf-8", "replace")


def _target(field: pa.Field) -> pa.DataType | None:
    """Return None for an unsupported type."""
    name, kind, types = _name_of(field), field.type, pa.types
    if isinstance(kind, pa.OpaqueType):
        return {"numeric": pa.float64(), "citext": pa.string()}.get(kind.type_name)
    if isinstance(kind, pa.JsonType | pa.UuidType):
        return pa.string()
    if types.is_boolean(kind) or types.is_string(kind) or types.is_date32(kind):
        return kind
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return kind if name in _NUMBERS else None  # others are integers, too: money, oid and regproc


def _unsupported(field: pa.Field) -> str:
    name = _name_of(field)
    if isinstance(field.type, pa.OpaqueType) and name.startswith("unnamed"):
        name = "another type"  # the driver does not know those that no table has, such as ranges
    advice = _ADVICE.get(name, _ELSE)
    return (
        f"column {show(field.name)} has PostgreSQL's type {name}, which is not supported: {advice}"
    )


def _cast(name: str, column: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(column.type, pa.UuidType):
        return _uuid_texts(column.storage)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        _check_dates(name, column)
    return column.cast(kind)


def _check_dates(name: str, column: pa.Array) -> None:
    """Raise BadTable for infinity, and for dates outside of the years 1 to 9999."""
    least, most = pc.min_max(column).values()
    if not least.is_valid:  # there is no value
        return
    whole = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    first, last = (_position(limit, column.type) for limit in (_FIRST, _LAST))
    if least.cast(whole).as_py() < first or most.cast(whole).as_py() > last:
        raise BadTable(
            f"column {show(name)} has infinity, or a date outside of the years 1 to 9999: replace it in the query, for "
            "example by NULL",
            column=name,
        )


def _position(at: datetime, kind: pa.DataType) -> int:
    """Return the integer by which Arrow represents a time."""
    days = at.toordinal() - date(1970, 1, 1).toordinal()
    if pa.types.is_date32(kind):
        return days
    seconds = (at - datetime(at.year, at.month, at.day)).seconds
    return (days * 86_400 + seconds) * 1_000_000 + at.microsecond


def _uuid_texts(column: pa.Array) -> pa.Array:
    """Return texts with hyphens: Arrow casts only their bytes."""
    count = len(column)
    raw = np.zeros((count, _UUID_BYTES), np.uint8)
    values: Any = column.buffers()[1]
    if values is not None and count:
        taken = np.frombuffer(values, np.uint8)[column.offset * _UUID_BYTES :]
        raw[:] = taken[: count * _UUID_BYTES].reshape(count, _UUID_BYTES)
    digits = np.empty((count, 2 * _UUID_BYTES), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = _HEX[raw >> 4], _HEX[raw & 15]
    texts: npt.NDArray[np.uint8] = np.full((count, _UUID_LENGTH), ord("-"), np.uint8)
    places = [place for place in range(_UUID_LENGTH) if place not in _HYPHENS]
    texts[:, places] = digits
    offsets = np.arange(0, (count + 1) * _UUID_LENGTH, _UUID_LENGTH, dtype=np.int32)
    made = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts))
    return pc.if_else(column.is_valid(), made, pa.scalar(None, pa.string()))
