"""The column that says when: numbers as they are, texts as ISO 8601 dates."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.errors import Invalid

_RULE = "it must hold numbers or ISO 8601 dates, as 2026-01-31 or 2026-01-31T12:00:00Z"


def read_times(path: Path, name: str) -> npt.NDArray[np.float64]:
    """Read the column of a typed table as numbers, the later the greater; raises Invalid where there is none."""
    column = pq.read_table(path, columns=[name]).column(0)
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    times = _dates(column, name) if pa.types.is_string(column.type) else column
    values: npt.NDArray[np.float64] = times.to_numpy().astype(np.float64)
    missing = int(np.isnan(values).sum())
    if missing:
        raise _invalid(name, f"{missing} rows have no value")
    return values


def _dates(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Seconds since 1970, each distinct text read once."""
    if column.null_count:
        raise _invalid(name, f"{column.null_count} rows have no value")
    distinct = pc.dictionary_encode(column).combine_chunks()
    stamps = [_stamp(text, name) for text in distinct.dictionary.to_pylist()]
    codes = distinct.indices.to_numpy()
    return pa.chunked_array([pa.array(np.array(stamps, dtype=np.float64)[codes])])


def _stamp(text: str, name: str) -> float:
    """Of a time without a zone as if it were UTC."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        shown = repr(text) if len(text) <= 100 else repr(text[:99]) + "…"
        raise _invalid(name, f"one value is {shown}") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _invalid(name: str, found: str) -> Invalid:
    detail = f"the time column {name!r} cannot order the rows: {found}; {_RULE}"
    return Invalid(
        detail,
        code="bad_time_column",
        errors=[{"pointer": "/validation/time_column", "detail": detail}],
    )
