"""Which reader reads an uploaded table, by its format."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from app.ingest.arrow import ArrowFile, ArrowTable, ParquetTable, read_claims, stream_of
from app.ingest.csv import CsvTable, find_codec, read_layout
from app.ingest.errors import BadTable
from app.ingest.formats import (
    ARROW,
    ARROW_FILE,
    CONTENT_TYPES,
    CSV,
    NDJSON,
    PARQUET,
    Dialect,
)
from app.ingest.ndjson import NdjsonTable
from app.ingest.rows import Source
from app.ingest.stream import Upload, plain_bytes, plain_file, too_long
from app.ingest.value_columns import MissingTokens
from app.platform.errors import UnsupportedMedia


def open_source(payload: Mapping[str, Any], stack: ExitStack, missing: MissingTokens) -> Source:
    """Return the reader of a job's upload."""
    limits = payload["limits"]
    dialect = Dialect(**payload.get("dialect") or {})  # lists of pairs have no such field
    upload = Upload(Path(payload["path"]), payload["content_encoding"], limits["bytes"])
    content_type, columns = payload["content_type"], limits["columns"]
    if content_type in (PARQUET, ARROW_FILE):
        path = stack.enter_context(
            plain_file(
                Path(payload["path"]), upload.encoding, upload.max_bytes, Path(payload["workdir"])
            )
        )
        table = ParquetTable(path, columns) if content_type == PARQUET else ArrowFile(path, columns)
        table.notation = dialect.notation.or_point
        return table
    bounds = (columns, limits["rows"], limits.get("cells"))
    return streamed_source(upload, content_type, dialect, bounds, missing)


def streamed_source(
    upload: Upload,
    content_type: str,
    dialect: Dialect,
    bounds: tuple[int, int, int | None],
    missing: MissingTokens,
) -> Source:
    """Return the reader of a format that is read from its first byte to its last.

    `bounds` are the most columns, the most rows, and the most cells, for formats in which an empty cell takes no
    bytes.
    """
    if content_type == CSV:
        upload = find_codec(upload, dialect)
        layout = read_layout(upload, dialect, bounds[0])
        return CsvTable(upload, layout, missing, dialect.notation)
    if content_type in (ARROW, NDJSON):
        table = (
            ArrowTable(upload, bounds[0]) if content_type == ARROW else NdjsonTable(upload, *bounds)
        )
        table.notation = dialect.notation.or_point
        return table
    raise BadTable(
        f"the content type must be one of {', '.join(CONTENT_TYPES)}, got {content_type!r}"
    )


_CELL_BYTES = 8
_STREAM = "stream"


def bounded(
    upload: Path,
    content_type: str,
    content_encoding: str | None,
    limits: Mapping[str, int],
    most_bytes: int,
    workdir: Path,
) -> dict[str, Any]:
    """Return the reader's part of the payload for a small upload, whose size is bounded before it is decoded.

    Decompressed bytes may be at most `most_bytes`, and so may eight times the cells. Raises UnsupportedMedia for
    Parquet, and BadTable for a larger upload.
    """
    if content_type == PARQUET:
        raise UnsupportedMedia(
            f"{PARQUET} is read only by a worker and cannot be checked at once: leave out validate"
        )
    if content_type in (ARROW, ARROW_FILE):
        plain = plain_bytes(upload.read_bytes(), content_encoding, most_bytes)
        stream = plain if content_type == ARROW else stream_of(plain)
        claims = read_claims(stream)
        columns = ArrowTable(Upload(stream, None, most_bytes), limits["columns"]).names
        cells = max(claims.values, claims.rows * len(columns))
        if max(claims.bytes, cells * _CELL_BYTES) > most_bytes:
            raise too_long(most_bytes)
        upload, content_type, content_encoding = workdir / _STREAM, ARROW, None
        upload.write_bytes(stream)
    return {
        "path": str(upload),
        "content_type": content_type,
        "content_encoding": content_encoding,
        "limits": {**limits, "bytes": most_bytes, "cells": most_bytes // _CELL_BYTES},
    }
