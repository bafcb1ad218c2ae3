"""CSV: its header, and the exact reader, that knows every line.

It agrees with the fast one (see `fast_csv`) on every table that is sound. Where that stumbles, over numbers first and
then over text, the exact one reads the table again and its word holds, be it the right parse or the faults with their
lines.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from app.services.ingest.dialect import DELIMITERS, Dialect
from app.services.ingest.faults import BadTable, Fault, Faults, show
from app.services.ingest.rows import MAX_NAME, Rows
from app.services.ingest.stream import Stream

MAX_RECORD = 1 << 24
"""Longest line, and longest value, in characters: an unclosed quote must not swallow the memory too."""
_EXACT_CELLS = 400_000
BOM = b"\xef\xbb\xbf"
_FOREIGN = {
    b"\xff\xfe\x00\x00": "UTF-32 text; save it as UTF-8",
    b"\x00\x00\xfe\xff": "UTF-32 text; save it as UTF-8",
    b"PAR1": "Parquet; send it as application/vnd.apache.parquet",
    b"ARROW1\0\0": "an Arrow file; send it as application/vnd.apache.arrow.file",
    b"PK\x03\x04": "a ZIP archive or a spreadsheet; save it as CSV",
    b"%PDF": "PDF; save the table as CSV",
}
_LINE_END = re.compile(r"\r\n|\r|\n")
csv.field_size_limit(MAX_RECORD)


@dataclass(frozen=True)
class Upload:
    """Where the bytes lie, in a file or in memory, and how they are to be opened."""

    stored: Path | bytes
    encoding: str | None
    max_bytes: int
    codec: str | None = None

    def open(self) -> Stream:
        """Open the plain bytes from the start; with a codec, as UTF-8."""
        return Stream(self.stored, self.encoding, self.max_bytes, self.codec)

    @property
    def size(self) -> int:
        """Bytes as they are stored."""
        return self.stored.stat().st_size if isinstance(self.stored, Path) else len(self.stored)


class _Lines:
    """The lines of a stream with their ends (LF, CRLF or CR), counted from 1. Bytes that are not UTF-8 come as
    surrogates, so that the cell they stand in can be named.
    """

    def __init__(self, stream: Stream) -> None:
        self._text = io.TextIOWrapper(
            io.BufferedReader(stream, 1 << 20), "utf-8", errors="surrogateescape", newline=""
        )
        self.number = 0
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(MAX_RECORD)
        if not line:
            self.ended = True
            raise StopIteration
        self.number += 1
        if len(line) >= MAX_RECORD:
            raise BadTable(f"a line must be shorter than {MAX_RECORD} characters", line=self.number)
        return line


class _Recorder(_Lines):
    """Counts the bytes of the lines it hands out, to know where the header ends."""

    bytes = 0

    def __next__(self) -> str:
        line = super().__next__()
        self.bytes += len(line.encode("utf-8", "surrogateescape"))
        return line


@dataclass(frozen=True)
class Layout:
    """What the header tells: the names, and where the rows begin; and what stands between and within values."""

    names: list[str]
    delimiter: str
    decimal: str
    header_bytes: int
    header_lines: int


def find_codec(upload: Upload, dialect: Dialect) -> Upload:
    """Return the upload with the codec of its text. Raises BadTable for what is no text."""
    with upload.open() as stream:
        head = stream.read(8)
    if not head:
        raise BadTable("the file is empty: a header line and rows are needed", line=1)
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise BadTable(f"the file is not CSV but {what}", line=1)
    return replace(upload, codec=dialect.codec(head))


def read_layout(upload: Upload, dialect: Dialect, max_columns: int) -> Layout:
    """Read the header. Raises BadTable when there is none, or when its names cannot be used."""
    with upload.open() as stream:
        head = stream.read(len(BOM))
    with upload.open() as stream:
        if head.startswith(BOM):
            stream.skip(len(BOM))
        lines = _Recorder(stream)
        start = next((line for line in lines if line.strip("\r\n")), None)
        if start is None:
            raise BadTable("the file has only blank lines: a header and rows are needed", line=1)
        line = lines.number
        delimiter = DELIMITERS[dialect.delimiter] if dialect.delimiter else _sniff(start)
        try:
            names = next(csv.reader(itertools.chain([start], lines), delimiter=delimiter))
        except csv.Error:
            raise _overlong(line) from None
        if lines.ended:
            raise BadTable("the header opens a quote that is never closed", line=line)
        header_bytes = lines.bytes + (len(BOM) if head.startswith(BOM) else 0)
        return Layout(
            check_names(names, max_columns, line),
            delimiter,
            dialect.decimal_mark,
            header_bytes,
            lines.number,
        )


def _overlong(line: int) -> BadTable:
    rule = f"a value in the row that begins here is over {MAX_RECORD} characters"
    return BadTable(f"{rule}; is a quote unclosed?", line=line)


def _sniff(header: str) -> str:
    """Return the delimiter: a comma if the header has one outside quotes, else the most frequent of the others."""
    outside = "".join(header.split('"')[::2])
    marks = DELIMITERS.values()
    return max(marks, key=lambda mark: (mark in outside, mark == ",", outside.count(mark)))


def check_names(names: Sequence[str], max_columns: int, line: int | None) -> list[str]:
    """Return the names without spaces around. Raises BadTable for empty, doubled, overlong or too many ones."""
    if len(names) > max_columns:
        raise BadTable(
            f"a table must have at most {max_columns} columns, got {len(names)}",
            line=line,
            code="too_many_columns",
        )
    seen: dict[str, int] = {}
    checked = []
    for number, raw in enumerate(names, start=1):
        name = raw.strip()
        if not name:
            raise BadTable(f"column {number} has no name (is it a row index?)", line=line)
        if not name.isprintable() or len(name) > MAX_NAME:
            raise BadTable(
                f"the name of column {number} must be at most {MAX_NAME} printable UTF-8 characters, "
                f"got {show(name)}",
                line=line,
            )
        alike = unicodedata.normalize("NFC", name)  # é may be written as one character or as two
        if alike in seen:
            raise BadTable(
                f"column names must differ: {show(name)} is column {seen[alike]} and column {number}",
                line=line,
                column=name,
                code="duplicate_column",
            )
        seen[alike] = number
        checked.append(name)
    return checked


class ExactCsv:
    """Python's csv reader with the line of every row: slower, and right about everything."""

    schema = None
    exact = True
    hasty = False

    def __init__(self, upload: Upload, layout: Layout) -> None:
        self.names = layout.names
        self.decimal = layout.decimal
        self._upload = upload
        self._layout = layout
        self._stream: Stream | None = None

    def progress(self) -> tuple[int, int]:
        """Return the bytes of the upload read so far, and all of them."""
        return (self._stream.position if self._stream else 0), self._upload.size

    def batches(self, faults: Faults, columns: Sequence[str] | None = None) -> Iterator[Rows]:
        """Yield the sound rows; ragged ones and bytes that are not UTF-8 are faults."""
        with self._upload.open() as stream:
            self._stream = stream
            stream.skip(self._layout.header_bytes)
            first = 0
            records = self._records(stream, faults)
            size = max(1, _EXACT_CELLS // len(self.names))
            while chunk := list(itertools.islice(records, size)):
                rows = self._rows(chunk, first, faults, columns)
                first += rows.batch.num_rows
                yield rows

    def _records(self, stream: Stream, faults: Faults) -> Iterator[tuple[int, list[str]]]:
        lines = _Lines(stream)
        lines.number = self._layout.header_lines
        reader = csv.reader(lines, delimiter=self._layout.delimiter)
        width = len(self.names)
        while True:
            line = lines.number + 1
            try:
                record = next(reader, None)
            except csv.Error:
                raise _overlong(line) from None
            if record is None:
                return
            if lines.ended:
                raise self._unclosed(record, line)
            if len(record) == width:
                yield line, record
            elif record:
                values = "1 value" if len(record) == 1 else f"{len(record)} values"
                faults.add(Fault(f"{values} where the header has {width}", line))

    def _unclosed(self, record: list[str], line: int) -> BadTable:
        breaks = sum(len(_LINE_END.findall(value)) for value in record[:-1])
        column = self.names[len(record) - 1] if len(record) <= len(self.names) else None
        return BadTable(
            "a quote is opened here and never closed", line=line + breaks, column=column
        )

    def _rows(
        self,
        chunk: list[tuple[int, list[str]]],
        first: int,
        faults: Faults,
        columns: Sequence[str] | None,
    ) -> Rows:
        try:
            return self._build(chunk, first, columns)
        except UnicodeEncodeError:
            wanted = self.names if columns is None else columns
            sound = [row for row in chunk if not self._report_bytes(*row, wanted, faults)]
            return self._build(sound, first, columns)

    def _build(
        self, chunk: list[tuple[int, list[str]]], first: int, columns: Sequence[str] | None
    ) -> Rows:
        lines = np.array([line for line, _ in chunk], dtype=np.int64)
        values = list(zip(*(record for _, record in chunk), strict=True)) or [()] * len(self.names)
        cells = dict(zip(self.names, values, strict=True))
        wanted = self.names if columns is None else columns
        arrays = [pa.array(cells[name], pa.string()) for name in wanted]
        return Rows(pa.RecordBatch.from_arrays(arrays, names=list(wanted)), first, lines)

    def _report_bytes(
        self, line: int, record: list[str], wanted: Collection[str], faults: Faults
    ) -> bool:
        found = False
        for name, value in zip(self.names, record, strict=True):
            if name not in wanted:
                continue
            bad = next((c for c in value if "\udc80" <= c <= "\udcff"), None)
            if bad is not None:
                shown = show(value.encode("utf-8", "surrogateescape").decode("latin-1"))
                detail = f"byte 0x{ord(bad) - 0xDC00:02X} is not UTF-8; with encoding=latin-1 it reads {shown}"
                faults.add(Fault(detail, line, name))
                found = True
        return found
