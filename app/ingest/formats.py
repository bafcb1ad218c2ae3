"""What reads a table: by its format one reader."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.ingest.dialect import Dialect
from app.ingest.errors import BadTable

if TYPE_CHECKING:
    from app.ingest.csv import Upload
    from app.ingest.rows import Source
    from app.ingest.values import MissingTokens


CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
ARROW_FILE = "application/vnd.apache.arrow.file"
NDJSON = "application/x-ndjson"
CONTENT_TYPES = (CSV, PARQUET, ARROW, ARROW_FILE, NDJSON)
SUFFIXES: Mapping[str, str] = {
    ".csv": CSV,
    ".tsv": CSV,
    ".txt": CSV,
    ".parquet": PARQUET,
    ".ndjson": NDJSON,
    ".jsonl": NDJSON,
    ".arrows": ARROW,
    ".arrow": ARROW_FILE,
    ".feather": ARROW_FILE,
}
"""How the name of a file ends -> its content type."""
COMPRESSED: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd"}
"""What may stand behind that -> its content encoding."""


def open_source(payload: Mapping[str, Any], stack: ExitStack, missing: MissingTokens) -> Source:
    """Return what reads the upload of a job."""
    from app.ingest.arrow import ArrowFile, ParquetTable
    from app.ingest.csv import Upload
    from app.ingest.stream import plain_file

    limits = payload["limits"]
    upload = Upload(Path(payload["path"]), payload["content_encoding"], limits["bytes"])
    content_type, columns = payload["content_type"], limits["columns"]
    if content_type in (PARQUET, ARROW_FILE):
        path = stack.enter_context(
            plain_file(
                Path(payload["path"]), upload.encoding, upload.max_bytes, Path(payload["workdir"])
            )
        )
        return ParquetTable(path, columns) if content_type == PARQUET else ArrowFile(path, columns)
    dialect = Dialect(**payload.get("dialect") or {})  # lists of pairs say nothing of it
    return streamed_source(upload, content_type, dialect, columns, limits["rows"], missing)


def streamed_source(
    upload: Upload,
    content_type: str,
    dialect: Dialect,
    max_columns: int,
    max_rows: int,
    missing: MissingTokens,
) -> Source:
    """Return the same for a format that is read from its first byte to its last."""
    from app.ingest.arrow import ArrowTable
    from app.ingest.csv import CsvTable, find_codec, read_layout
    from app.ingest.ndjson import NdjsonTable

    if content_type == CSV:
        upload = find_codec(upload, dialect)
        return CsvTable(upload, read_layout(upload, dialect, max_columns), missing)
    if content_type == ARROW:
        return ArrowTable(upload, max_columns)
    if content_type == NDJSON:
        return NdjsonTable(upload, max_columns, max_rows)
    raise BadTable(
        f"the content type must be one of {', '.join(CONTENT_TYPES)}, got {content_type!r}"
    )
