"""Which reader reads a table, by its format; and how a CSV is written: delimiter, decimal mark, encoding."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.ingest.errors import BadTable
from app.platform.errors import UnsupportedMedia

if TYPE_CHECKING:
    from app.ingest.csv import Upload
    from app.ingest.rows import Source
    from app.ingest.value_columns import MissingTokens

ENCODINGS: Mapping[str, str] = {
    "utf-8": "utf-8",
    "utf-16": "utf-16",
    "latin-1": "latin-1",
    "windows-1252": "cp1252",
}
"""Name over HTTP -> Python's codec."""

DELIMITERS: Mapping[str, str] = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
DECIMALS: Mapping[str, str] = {"point": ".", "comma": ","}
CHOICES: Mapping[str, Mapping[str, str]] = {
    "encoding": ENCODINGS,
    "delimiter": DELIMITERS,
    "decimal": DECIMALS,
}
"""What a caller may say of a CSV, in these words."""

LONGEST_CONTENT_TYPE = 1000
_CHARSETS = {"us-ascii": "utf-8", "iso-8859-1": "latin-1", "cp1252": "windows-1252"}

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF32_MARKS = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")


@dataclass(frozen=True)
class Dialect:
    """What is said of a CSV, in the words of `CHOICES`; None where nothing is."""

    encoding: str | None = None
    delimiter: str | None = None
    decimal: str | None = None

    @property
    def decimal_mark(self) -> str:
        """What stands before decimals."""
        return DECIMALS[self.decimal or "point"]

    def codec(self, head: bytes) -> str | None:
        """Return Python's codec for a file that begins so; None for UTF-8, which needs none.

        The zero bytes of commas and line ends tell which of UTF-16's two orders it is.
        """
        codec = ENCODINGS[self.encoding] if self.encoding else _sniff_codec(head)
        if codec == "utf-16" and not head.startswith(_UTF16_MARKS):
            return "utf-16-be" if head[::2].count(0) > head[1::2].count(0) else "utf-16-le"
        return None if codec == "utf-8" else codec


def check_length(content_type: str) -> None:
    """Raise UnsupportedMedia for a Content-Type that is overlong: libraries take quadratic time for its parameters."""
    if len(content_type) > LONGEST_CONTENT_TYPE:
        raise UnsupportedMedia(
            f"Content-Type may have at most {LONGEST_CONTENT_TYPE} characters, got {len(content_type)}"
        )


def encoding_of(content_type: str) -> str | None:
    """Return the encoding that a Content-Type names by its charset; None without one. Raises ValueError for others."""
    message = Message()
    message["Content-Type"] = content_type
    charset = message.get_param("charset")
    if charset is None:
        return None
    encoding = _CHARSETS.get(str(charset).lower(), str(charset).lower())
    if encoding not in ENCODINGS:
        raise ValueError(
            f"charset must be one of {', '.join(ENCODINGS)}, got {str(charset)[:50]!r}"
        )
    return encoding


def _sniff_codec(head: bytes) -> str:
    """UTF-16 where the file says so, or where one of its first two bytes is zero, as in Latin letters; else UTF-8."""
    if head.startswith(_UTF32_MARKS):
        return "utf-8"  # which it is not; the header's names will say so
    in_turn = len(head) >= 2 and (head[0] == 0) != (head[1] == 0)
    return "utf-16" if head.startswith(_UTF16_MARKS) or in_turn else "utf-8"


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
    bounds = (columns, limits["rows"], limits.get("cells"))
    return streamed_source(upload, content_type, dialect, bounds, missing)


def streamed_source(
    upload: Upload,
    content_type: str,
    dialect: Dialect,
    bounds: tuple[int, int, int | None],
    missing: MissingTokens,
) -> Source:
    """Return the same for a format that is read from its first byte to its last; `bounds` are most columns, rows, and
    cells where those without bytes are to be bounded.
    """
    from app.ingest.arrow import ArrowTable
    from app.ingest.csv import CsvTable, find_codec, read_layout
    from app.ingest.ndjson import NdjsonTable

    if content_type == CSV:
        upload = find_codec(upload, dialect)
        return CsvTable(upload, read_layout(upload, dialect, bounds[0]), missing)
    if content_type == ARROW:
        return ArrowTable(upload, bounds[0])
    if content_type == NDJSON:
        return NdjsonTable(upload, *bounds)
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
    """Return what the reader is to know of a small upload that takes at most so many bytes decompressed, and as numbers
    where rows may have no bytes. Raises UnsupportedMedia for Parquet, and BadTable for what is larger.
    """
    from app.ingest.arrow import ArrowTable, read_claims, stream_of
    from app.ingest.csv import Upload
    from app.ingest.stream import plain_bytes, too_long

    if content_type == PARQUET:
        raise UnsupportedMedia(
            f"{PARQUET} is read by a worker alone, and cannot be checked without being kept: "
            "leave validate out"
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
