"""The choice of the reader for an uploaded table, by its format."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from app.ingest.archives import ZIP
from app.ingest.arrow import ArrowFile, ArrowTable, ParquetTable, check_claims, stream_of
from app.ingest.csv import CsvTable, UnnamedColumns, complete, find_codec, read_layout
from app.ingest.errors import BadTable
from app.ingest.formats import (
    ARROW,
    ARROW_FILE,
    CONTENT_TYPES,
    CSV,
    JSON_ARRAY,
    NDJSON,
    PARQUET,
    XLSX,
    Dialect,
)
from app.ingest.ndjson import NdjsonTable
from app.ingest.rows import CELL_BYTES, Source, most_rows
from app.ingest.stream import PLAIN, TableBytes, find_compression, plain_bytes, plain_file, too_long
from app.ingest.value_columns import MissingTokens
from app.ingest.workbook import open_sheet
from app.platform.errors import UnsupportedMedia


def open_source(payload: Mapping[str, Any], stack: ExitStack, missing: MissingTokens) -> Source:
    """The source stays open until `stack` closes."""
    limits = payload["limits"]
    dialect = Dialect(**payload.get("dialect") or {})  # lists of pairs have no such field
    inherited = payload.get("inherited") or {}
    setting = payload.get("bytes_setting", "RANKWRIGHT_MAX_UPLOAD_BYTES")
    upload = TableBytes(
        Path(payload["path"]), payload["content_encoding"], limits["bytes"], setting=setting
    )
    content_type, columns = payload["content_type"], limits["columns"]
    if content_type in (PARQUET, ARROW_FILE, XLSX):
        workdir = Path(payload["workdir"])
        encoding = upload.encoding
        if content_type == XLSX and encoding is None:
            found = find_compression(Path(payload["path"]), None)
            encoding = PLAIN if found == ZIP else found  # a workbook is an archive itself
        path = stack.enter_context(
            plain_file(Path(payload["path"]), encoding, upload.max_bytes, workdir, setting=setting)
        )
        if content_type == XLSX:
            return stack.enter_context(
                open_sheet(path, limits, workdir, dialect, missing, inherited.get("sheet"))
            )
        kind = ParquetTable if content_type == PARQUET else ArrowFile
        table = kind(path, columns, upload.max_bytes)
        table.notation = dialect.notation.or_point
        return table
    bounds = (columns, limits["rows"], limits.get("cells"))
    return streamed_source(upload, content_type, dialect, bounds, missing, inherited)


def streamed_source(
    upload: TableBytes,
    content_type: str,
    dialect: Dialect,
    bounds: tuple[int, int, int | None],
    missing: MissingTokens,
    inherited: Mapping[str, str] | None = None,
    unnamed: UnnamedColumns | None = None,
) -> Source:
    """Return the source for a format that is read sequentially.

    `inherited` are dialect fields of an earlier table, for what `dialect` leaves open. `unnamed` are the columns of a
    CSV whose first line may have values. `bounds` are the maximum numbers of columns, of rows and, for formats in which
    an empty cell takes no bytes, of cells.
    """
    if content_type == CSV:
        dialect = complete(upload, dialect, inherited or {})
        upload = find_codec(upload, dialect)
        layout = read_layout(upload, dialect, bounds[0], unnamed)
        return CsvTable(upload, layout, missing, dialect.notation)
    if content_type in (ARROW, NDJSON, JSON_ARRAY):
        table: Source
        if content_type == ARROW:
            table = ArrowTable(upload, bounds[0])
        else:
            table = NdjsonTable(upload, *bounds, is_array=content_type == JSON_ARRAY)
        table.notation = dialect.notation.or_point
        return table
    raise BadTable(
        f"the content type must be one of {', '.join(CONTENT_TYPES)}, got {content_type!r}"
    )


def source_in_memory(
    upload: TableBytes,
    content_type: str,
    dialect: Dialect,
    bounds: tuple[int, int, int | None],
    missing: MissingTokens,
    inherited: Mapping[str, str] | None = None,
    unnamed: UnnamedColumns | None = None,
) -> Source:
    """Return the `streamed_source` of bytes in memory. Raises BadTable for Arrow that claims to be too large."""
    if content_type in (ARROW, ARROW_FILE):
        assert not isinstance(upload.stored, Path)
        stream = _stream(upload.stored, content_type, upload.encoding, upload.max_bytes)
        check_claims(stream, bounds[1], upload.max_bytes)
        upload, content_type = TableBytes(stream, None, upload.max_bytes), ARROW
    return streamed_source(upload, content_type, dialect, bounds, missing, inherited, unnamed)


def _stream(
    stored: bytes | pa.Buffer, content_type: str, encoding: str | None, max_bytes: int
) -> bytes | pa.Buffer:
    plain = plain_bytes(stored, encoding, max_bytes)
    return plain if content_type == ARROW else stream_of(plain)


_SHEET_CELL_BYTES = 128
"""Bytes of memory that a cell of a sheet may take."""
SCORE_BYTES = "RANKWRIGHT_MAX_SCORE_BYTES"
"""The setting that limits a table which is read in the API's process."""
_STREAM = "stream"


def bounded(
    upload: Path,
    content_type: str,
    content_encoding: str | None,
    limits: Mapping[str, int],
    most_bytes: int,
    workdir: Path,
) -> dict[str, Any]:
    """Return the reader's part of the payload for a small upload whose size is checked before it is decoded.

    Decompressed bytes may be at most `most_bytes`, and so may eight times the cells, or 128 times those of a sheet.
    Rows may be at most `rows.most_rows`. Raises UnsupportedMedia for Parquet, and BadTable for a larger upload.
    """
    if content_type == PARQUET:
        raise UnsupportedMedia(
            f"{content_type} can be read only by a worker, so it cannot be checked here: omit validate"
        )
    max_rows = min(limits["rows"], most_rows(upload.stat().st_size))
    if content_type in (ARROW, ARROW_FILE):
        stream = _stream(upload.read_bytes(), content_type, content_encoding, most_bytes)
        claims = check_claims(stream, max_rows, most_bytes, setting=SCORE_BYTES)
        columns = ArrowTable(TableBytes(stream, None, most_bytes), limits["columns"]).names
        if claims.rows * len(columns) * CELL_BYTES > most_bytes:
            raise too_long(most_bytes, SCORE_BYTES)
        upload, content_type, content_encoding = workdir / _STREAM, ARROW, None
        upload.write_bytes(stream)
    return {
        "path": str(upload),
        "content_type": content_type,
        "content_encoding": content_encoding,
        "bytes_setting": SCORE_BYTES,
        "limits": {
            **limits,
            "bytes": most_bytes,
            "cells": most_bytes // (_SHEET_CELL_BYTES if content_type == XLSX else CELL_BYTES),
            "rows": max_rows,
        },
    }
