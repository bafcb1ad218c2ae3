"""What can read a table: by its format one reader, or several of which the fastest is asked first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.services.ingest.dialect import Dialect
from app.services.ingest.faults import BadTable
from app.services.ingest.missing import MissingTokens
from app.services.ingest.rows import Source

if TYPE_CHECKING:
    from app.services.ingest.columnar import ArrowFile, ArrowTable, ParquetTable
    from app.services.ingest.delimited import Upload
    from app.services.ingest.ndjson import NdjsonTable


CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
ARROW_FILE = "application/vnd.apache.arrow.file"
NDJSON = "application/x-ndjson"
CONTENT_TYPES = (CSV, PARQUET, ARROW, ARROW_FILE, NDJSON)

Numeric = Callable[[Sequence[str]], Collection[str]]
"""Tells which columns may hold numbers, given the names of all."""


def open_sources(
    payload: Mapping[str, Any], stack: ExitStack, missing: MissingTokens, numeric: Numeric
) -> Iterator[Source]:
    """Yield what can read the upload of a job, the fastest first and an exact source last."""
    from app.services.ingest.columnar import ArrowFile, ParquetTable
    from app.services.ingest.delimited import Upload
    from app.services.ingest.stream import plain_file

    limits = payload["limits"]
    upload = Upload(Path(payload["path"]), payload["content_encoding"], limits["bytes"])
    content_type, columns = payload["content_type"], limits["columns"]
    if content_type in (PARQUET, ARROW_FILE):
        path = stack.enter_context(
            plain_file(
                Path(payload["path"]), upload.encoding, upload.max_bytes, Path(payload["workdir"])
            )
        )
        yield from _hastily_first(
            ParquetTable(path, columns) if content_type == PARQUET else ArrowFile(path, columns)
        )
    else:
        dialect = Dialect(**payload.get("dialect") or {})  # lists of pairs say nothing of it
        yield from streamed_sources(
            upload, content_type, dialect, columns, limits["rows"], missing, numeric
        )


def streamed_sources(
    upload: Upload,
    content_type: str,
    dialect: Dialect,
    max_columns: int,
    max_rows: int,
    missing: MissingTokens,
    numeric: Numeric,
) -> Iterator[Source]:
    """Yield the same for a format that is read from its first byte to its last."""
    from app.services.ingest.columnar import ArrowTable
    from app.services.ingest.delimited import ExactCsv, find_codec, read_layout
    from app.services.ingest.fast_csv import FastCsv, plain_numbers
    from app.services.ingest.ndjson import NdjsonTable

    if content_type == CSV:
        upload = find_codec(upload, dialect)
        layout = read_layout(upload, dialect, max_columns)
        hoped = set(numeric(layout.names)).intersection(layout.names)
        if hoped:
            yield FastCsv(upload, layout, missing, hoped, hasty=True)
        text = FastCsv(upload, layout, missing)
        likely = plain_numbers(text, hoped)
        if likely != hoped:
            yield FastCsv(upload, layout, missing, likely, hasty=True)
        yield text  # what turns up late, and spellings that only a second look understands
        yield ExactCsv(upload, layout)
    elif content_type == ARROW:
        yield from _hastily_first(ArrowTable(upload, max_columns))
    elif content_type == NDJSON:
        yield from _hastily_first(NdjsonTable(upload, max_columns, max_rows))
    else:
        raise BadTable(
            f"the content type must be one of {', '.join(CONTENT_TYPES)}, got {content_type!r}"
        )


def _hastily_first(table: ParquetTable | ArrowTable | ArrowFile | NdjsonTable) -> Iterator[Source]:
    """Yield a table twice: first the types are those of its first rows, and any fault or other type is a doubt."""
    quick = copy(table)
    quick.exact, quick.hasty = False, True
    yield quick
    yield table
