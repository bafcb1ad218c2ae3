"""CSV tables: the header, and the rows, which Arrow's reader parses in blocks of whole lines in parallel.

One scan of the bytes (`scan_rows`) decides where rows end, by the rules of Python's csv module: a quote counts only at
the beginning of a value. Python's csv module, which is slower, parses blocks with a row that is too short or too long,
or with bytes that are not UTF-8, because Arrow's reader has no line numbers. Both agree on every row. From a row longer
than a block, the rest of the file is parsed by Python.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from app.ingest.delimiters import count_delimiters
from app.ingest.errors import (
    MAX_COUNTED_ERRORS,
    BadTable,
    Errors,
    RowError,
    show,
    too_many_columns,
)
from app.ingest.formats import DELIMITERS, ENCODINGS, Dialect
from app.ingest.rows import (
    MAX_LINE_LENGTH,
    MAX_NAME_LENGTH,
    Numbers,
    Rows,
    Source,
    check_names,
)
from app.ingest.stream import UNREAD_CODECS, Stream, TableBytes
from app.ingest.value_columns import MissingTokens, plain_numbers
from app.ingest.values import PADDED, USUAL, Notation
from core.kernels import kernel

MAX_HEADER_LINES = 100
"""Most lines of a header. A quoted name may contain line ends; such a name is refused, but must be read to be named."""
MAX_LINES_ABOVE = 10_000
"""Most blank lines above a header: each takes as long as a row."""
_MAX_TITLE_LINES = 20
"""Lines below a title within which a header is looked for."""
MIN_HEADER_LENGTH = 1 << 16
MAX_SURPLUS = 100_000
"""Values that a row may have beyond its columns before reading stops: each takes memory before the row is refused."""
_EXACT_CELLS = 400_000
_MAX_DIGITS = 300
_SCANNED = 1 << 16  # bytes that are scanned at once: the masks fit the CPU's cache
BLOCK_BYTES = 1 << 21
COLUMN_BYTES = 1 << 15  # of a block, so that the batches of a wide table are not a handful of rows
_MAX_BLOCK_BYTES = 1 << 23
BOM = b"\xef\xbb\xbf"
_END_MARK = "\x1a"
"""Ctrl-Z: the end of a text for DOS. It is not data at the end of a file."""
_FOREIGN = {
    b"\xff\xfe\x00\x00": "UTF-32 text; save it as UTF-8",
    b"\x00\x00\xfe\xff": "UTF-32 text; save it as UTF-8",
    b"PAR1": "Parquet; send it as application/vnd.apache.parquet",
    b"ARROW1\0\0": "an Arrow file; send it as application/vnd.apache.arrow.file",
    b"PK\x05\x06": "an empty ZIP archive; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet or another document of an old Office format; save the sheet as CSV",
    b"%PDF": "PDF; save the table as CSV",
    b"\x89PNG": "a picture; save the table as CSV",
    b"\xff\xd8\xff": "a picture; save the table as CSV",
    **{magic: f"compressed with {name}; unpack it" for magic, name in UNREAD_CODECS.items()},
}
_OF_BYTES = ("latin-1", "windows-1252")
"""Encodings in which any bytes are text."""
_LINE_END = re.compile(r"\r\n|\r|\n")
csv.field_size_limit(MAX_LINE_LENGTH)


class _Lines:
    """A stream's lines with their ends (LF, CRLF or CR), numbered from 1. Bytes other than UTF-8 become surrogates."""

    def __init__(self, stream: io.RawIOBase | io.BytesIO, before: int = 0) -> None:
        self._text = io.TextIOWrapper(
            io.BufferedReader(stream, 1 << 20), "utf-8", errors="surrogateescape", newline=""
        )
        self.number = before
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(MAX_LINE_LENGTH)
        if not line:
            self.ended = True
            raise StopIteration
        self.number += 1
        if len(line) >= MAX_LINE_LENGTH:
            raise BadTable(
                f"a line must be shorter than {MAX_LINE_LENGTH} characters", line=self.number
            )
        return line.removesuffix(_END_MARK)  # a line without an end is the last one


class _HeaderLines(_Lines):
    """Iterates over the blank lines above a header and those of the header, and counts their bytes to find its end.

    Reading stops after `most` characters: the names may need a thousand times the memory of their bytes.
    """

    def __init__(self, stream: io.RawIOBase, most: int) -> None:
        super().__init__(stream)
        self.bytes = 0
        self._left = most

    def __next__(self) -> str:
        line = self._text.readline(self._left + 1)
        if not line:
            self.ended = True
            raise StopIteration
        self.number += 1
        if line.strip("\r\n"):
            self._left -= len(line)
        if self._left < 0:
            raise _OverlongHeader(line)
        self.bytes += len(line.encode("utf-8", "surrogateescape"))
        return line


class _OverlongHeader(Exception):
    """Raised with the beginning of the line at which the header is too long."""


@dataclass(frozen=True)
class Layout:
    """A header: the names, which of them were generated, the position of the first row, and the delimiter."""

    names: list[str]
    unnamed: frozenset[str]
    delimiter: str
    header_bytes: int
    header_lines: int


def find_codec(upload: TableBytes, dialect: Dialect) -> TableBytes:
    """Set the codec of the text. Raises BadTable for a file that is not text."""
    with upload.open() as stream:
        head = stream.read(max(map(len, _FOREIGN)))
    if not head:
        raise BadTable("the file is empty: it must have a header and rows", line=1)
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise BadTable(f"the file is not CSV but {what}", line=1)
    return replace(upload, codec=dialect.codec(head))


def complete(upload: TableBytes, dialect: Dialect, inherited: Mapping[str, str]) -> Dialect:
    """Complete a dialect by an earlier table's encoding and delimiter (`inherited`), where the file allows them.

    Text that is valid UTF-8 or begins like UTF-16 is not read in an inherited single-byte encoding: every file is valid
    in these, so letters would change unnoticed. A delimiter must be in the header.
    """
    if not inherited:
        return dialect
    encoding, delimiter = inherited.get("encoding"), inherited.get("delimiter")
    with upload.open() as stream:
        head = stream.read(8)
    is_open = dialect.encoding is None and dialect.codec(head) is None
    if encoding in _OF_BYTES and is_open and not _is_utf_8(upload):
        dialect = dialect.model_copy(update={"encoding": encoding})
    if delimiter is not None and dialect.delimiter is None:
        with replace(upload, codec=dialect.codec(head)).open() as stream:
            lines = stream.read(MIN_HEADER_LENGTH).lstrip(BOM).splitlines()
        header = next(filter(None, lines), b"").decode("utf-8", "replace")
        if count_delimiters(header, DELIMITERS[delimiter], 1):
            dialect = dialect.model_copy(update={"delimiter": delimiter})
    return dialect


def _is_utf_8(upload: TableBytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with upload.open() as stream:
            while piece := stream.read(1 << 20):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


_MAX_CHANCE = 2
"""A first line of at most this many numbers could be a row, even if it equals the names of the features."""


@dataclass(frozen=True)
class UnnamedColumns:
    """How columns of a CSV are named if its first line has values instead of names, or may have them (not `known`).

    required: the names that a first line must contain to be a header.
    """

    names: list[str]
    required: frozenset[str]
    known: bool

    def has_values(self, first: Sequence[str], line: int) -> bool:
        """Return True if the first line has values. Raises BadTable for another number of values, or for an incomplete
        header.

        A header has each required name once. If all its values are numbers, as the names of a model of an array are,
        it could as well be a row: it is a header if it has three names or more in the order of the model, else refused.
        """
        if not self.known:
            values = [value.strip() for value in first]
            times = Counter(values)
            named = [name for name in self.names if times[name]]
            may_be_row = all(map(_is_number, first))
            doubled = next((name for name in named if times[name] > 1), None)
            absent = next((name for name in self.names if name in self.required - set(named)), None)
            if named and doubled is None and absent is None:
                if not may_be_row or (values == self.names and len(values) > _MAX_CHANCE):
                    return False
                if len(values) == len(self.names):
                    raise BadTable(
                        f"the first line may be a row or the names of the features, got {show(','.join(values))}: send "
                        "header=present or header=absent with the Content-Type",
                        line=line,
                    )
            if not may_be_row and any(not _is_number(name) for name in named):
                why = (
                    f"not {show(absent)}"
                    if absent is not None
                    else f"{show(doubled or named[0])} twice"
                )
                raise BadTable(
                    f"the first line has {show(named[0])}, the name of a feature, but {why}: name each required "
                    "feature once, or send header=absent with the Content-Type",
                    line=line,
                )
        if len(first) != len(self.names):
            raise BadTable(
                f"a CSV without a header must have {len(self.names)} columns, the features of the model "
                f"in their order, got {len(first)}",
                line=line,
            )
        return True


def _is_number(text: str) -> bool:
    try:
        float(text.strip().replace(",", ".") or "nan")
    except ValueError:
        return False
    return True


def read_layout(
    upload: TableBytes,
    dialect: Dialect,
    max_columns: int,
    unnamed: UnnamedColumns | None = None,
) -> Layout:
    """Raise BadTable for a missing header or unusable names. With `unnamed`, the first line may be a row."""
    with upload.open() as stream:
        head = stream.read(2 * len(BOM))
    # A program that writes a mark before a text that has one writes two.
    mark = len(head) - len(head.removeprefix(BOM).removeprefix(BOM))
    with upload.open() as stream:
        stream.skip(mark)
        most = max(MIN_HEADER_LENGTH, max_columns * (2 * MAX_NAME_LENGTH + len('"",')))
        lines = _HeaderLines(stream, most)
        line = 1
        try:
            above = itertools.islice(lines, MAX_LINES_ABOVE + 1)
            filled = (line for line in above if line.strip("\r\n"))
            start = next(filled, None)
            delimiter = _delimiter_above(start or "", lines.number)
            if delimiter or (start or "").startswith(_POWERSHELL):
                start = next(filled, None)
            if start is None:
                raise _no_header(lines)
            if dialect.delimiter or not delimiter:
                delimiter = _delimiter_of(start, dialect, max_columns)
            line = lines.number
            above_bytes = lines.bytes - len(start.encode("utf-8", "surrogateescape"))
            # Before each name is read. A few too many are read, so that the error has their number.
            if count_delimiters(start, delimiter, 2 * max_columns) == 2 * max_columns:
                raise too_many_columns(max_columns, 2 * max_columns + 1, line, at_least=True)
            up_to_end = itertools.islice(lines, MAX_HEADER_LINES)
            names = next(csv.reader(itertools.chain([start], up_to_end), delimiter=delimiter))
        except csv.Error:
            raise _overlong(line) from None
        except _OverlongHeader as error:
            raise _overlong_header(str(error), dialect, most, max_columns, lines.number) from None
        if lines.ended:
            raise BadTable("the header opens a quote but does not close it", line=line)
        if lines.number > line + MAX_HEADER_LINES - 1:
            rule = f"the header must end within {MAX_HEADER_LINES} lines"
            raise BadTable(f"{rule}; is a closing quote missing?", line=line)
        if len(names) > max_columns:  # before each of them is named
            raise too_many_columns(max_columns, len(names), line)
        if unnamed is not None and unnamed.has_values(names, line):
            columns = list(unnamed.names)
            return Layout(columns, frozenset(), delimiter, mark + above_bytes, line - 1)
        if (refusal := _foreign_letters(names, line)) is not None:
            raise refusal
        read_bytes, read_lines = lines.bytes, lines.number
        if names[0].strip() and not any(map(str.strip, names[1:])):
            _refuse_title(lines, names[0].strip(), line, dialect, max_columns)
        called = [name if name.strip() else f"column {n}" for n, name in enumerate(names, start=1)]
        return Layout(
            check_names(called, max_columns, line),
            frozenset(own for own, name in zip(called, names, strict=True) if not name.strip()),
            delimiter,
            mark + read_bytes,
            read_lines,
        )


def _refuse_title(
    lines: _HeaderLines, title: str, line: int, dialect: Dialect, max_columns: int
) -> None:
    """Raise BadTable if a line with one value seems to be a title above the header.

    Then one of the lines below it begins rows of several columns, the first with names, the second with a number. Rows
    without numbers may be texts of a single column, with semicolons.
    """
    before: list[str] = []
    for text in itertools.islice(lines, _MAX_TITLE_LINES):
        delimiter = _delimiter_of(text, dialect, max_columns)
        with suppress(csv.Error):
            row = [value.strip() for value in next(csv.reader([text], delimiter=delimiter), [])]
            has_names = not any(map(_is_number, before)) and any(map(_is_number, row))
            if len(before) == len(row) > 1 and has_names:
                raise BadTable(
                    "the first line with values must be the header, but it has only 1 value "
                    f"({show(title)}) for {len(row)} columns: delete the lines above the header, which seems to be "
                    f"line {lines.number - 1}",
                    line=line,
                )
            before = row if len({*row}) == len(row) else []


_POWERSHELL = "#TYPE "
"""Before the header, PowerShell 5 writes a line with the type of its objects."""
_EXCEL = re.compile(r'("?)sep=(.)\1,*[\r\n]*')


def _delimiter_above(line: str, number: int) -> str:
    """Return the delimiter of a line `sep=;`, as Excel reads it; empty for another line. BadTable: unsupported."""
    found = _EXCEL.fullmatch(line)
    if found is None:
        return ""
    if found[2] not in DELIMITERS.values():
        raise BadTable(
            f"the line {show(line.strip())} above the header states the delimiter {show(found[2])}; it must be "
            f"{', '.join(DELIMITERS)}",
            line=number,
        )
    return found[2]


def _no_header(lines: _HeaderLines) -> BadTable:
    if lines.ended:
        return BadTable("the file has only blank lines: it must have a header and rows", line=1)
    return BadTable(f"the header must be within the first {MAX_LINES_ABOVE} lines", line=1)


def _overlong_header(
    text: str, dialect: Dialect, most: int, max_columns: int, line: int
) -> BadTable:
    """`text` is the beginning of the header."""
    delimiter = _delimiter_of(text, dialect, max_columns)
    if count_delimiters(text, delimiter, max_columns) == max_columns:
        return too_many_columns(max_columns, max_columns + 1, line, at_least=True)
    rule = f"the header can have at most {most} characters"
    return BadTable(f"{rule}; is a line break or a closing quote missing?", line=line)


def _foreign_letters(names: Sequence[str], line: int) -> BadTable | None:
    """Return the error for a header that is not UTF-8, with its likely encoding; None for a valid one."""
    name = next((name for name in names if any(_is_foreign(sign) for sign in name)), None)
    if name is None:
        return None
    detail, encoding = _describe_bytes(name)
    raw = " ".join(names).encode("utf-8", "surrogateescape")
    if not raw.decode(ENCODINGS[encoding], "replace").isprintable():
        return None
    refusal = BadTable(f"the header: {detail}", line=line)
    refusal.suggest("", {"encoding": encoding})
    return refusal


def _is_foreign(sign: str) -> bool:
    return "\udc80" <= sign <= "\udcff"


def _describe_bytes(text: str) -> tuple[str, str]:
    """Return the message for a text that is not UTF-8, and its likely encoding: Windows-1252, which has all letters of
    Latin-1 and more, unless a byte is none of its characters.
    """
    raw = text.encode("utf-8", "surrogateescape")
    bad = next(ord(sign) - 0xDC00 for sign in text if _is_foreign(sign))
    encoding = "latin-1"
    with suppress(UnicodeDecodeError):
        raw.decode("cp1252")
        encoding = "windows-1252"
    shown = show(raw.decode(ENCODINGS[encoding]))
    return f"byte 0x{bad:02X} is not UTF-8; with encoding={encoding} it reads {shown}", encoding


def _overlong(line: int) -> BadTable:
    rule = f"a value in the row that starts here has more than {MAX_LINE_LENGTH} characters"
    return BadTable(f"{rule}; is a closing quote missing?", line=line)


def _delimiter_of(header: str, dialect: Dialect, max_columns: int) -> str:
    return DELIMITERS[dialect.delimiter] if dialect.delimiter else _sniff(header, max_columns)


def _sniff(header: str, max_columns: int) -> str:
    """Return the likely delimiter: a comma if there is one outside quotes, else the most frequent of the others."""
    if count_delimiters(header, ",", 1):
        return ","
    counts = {each: count_delimiters(header, each, max_columns) for each in DELIMITERS.values()}
    return max(counts, key=counts.__getitem__)


@dataclass(frozen=True)
class _Block:
    """A block of whole rows: its bytes, its offset, the lines before it, and its number of rows if it has quotes.
    Without text: a row longer than a block.
    """

    text: bytes
    offset: int
    lines_above: int
    rows: int | None

    @property
    def quoted(self) -> bool:
        return self.rows is not None


@dataclass(frozen=True)
class _Parsed:
    """The rows of a parsed block, the errors of rejected rows, and the line of each row if known."""

    batch: pa.RecordBatch
    lines: Numbers | None = None
    errors: Errors | None = None


class _Open(Exception):
    """Raised when a block ends inside a row."""


class CsvTable(Source):
    """A CSV. A column of a batch is float64 if that was requested and all its texts are numbers, else text."""

    def __init__(
        self, upload: TableBytes, layout: Layout, missing: MissingTokens, notation: Notation = USUAL
    ) -> None:
        self.names = layout.names
        self.unnamed = layout.unnamed
        self.notation = notation
        self._missing = missing.spellings()
        self._upload = upload
        self._layout = layout
        self._stream: Stream | None = None

    def progress(self) -> tuple[int, int]:
        """The unit is bytes of the upload."""
        return (self._stream.position if self._stream else 0), self._upload.size

    def batches(
        self,
        errors: Errors,
        columns: Sequence[str] | None = None,
        numeric: Collection[str] = (),
    ) -> Iterator[Rows]:
        """Rows with a wrong number of values, or bytes that are not UTF-8, are added to `errors`."""
        wanted = list(self.names if columns is None else columns)
        first = 0
        with self._upload.open() as stream:
            self._stream = stream
            stream.skip(self._layout.header_bytes)
            blocks = _blocks(stream, self._layout, self._block_bytes())
            for block, parsed in self._side_by_side(blocks, wanted, set(numeric)):
                if parsed is None:
                    break
                if parsed.errors is not None:
                    errors.add_all(parsed.errors)
                lines = parsed.lines
                known = partial(np.asarray, lines) if lines is not None else None
                count = known or partial(self._count_lines, block, parsed.batch.num_rows)
                yield Rows(parsed.batch, first, count)
                first += parsed.batch.num_rows
            else:
                return
        yield from self._rest(block, first, wanted, errors)

    def line_of_header(self) -> int | None:
        """Return the line of the first row if it seems to be the header, below a title with as many values.

        It then has names, and below one of them are only numbers.
        """
        with suppress(BadTable):
            rows = next(self.batches(Errors()), None)
            if rows is None or not rows.batch.num_rows:
                return None
            head = rows.batch.slice(0, _MAX_TITLE_LINES).to_pydict()
            first, *others = zip(*head.values(), strict=True)
            is_named = len({*first}) == len(first) and not any(map(_is_number, first))
            has_numbers = any(all(map(_is_number, values)) for values in zip(*others, strict=True))
            if is_named and has_numbers and rows.lines is not None:
                return int(rows.lines[0])
        return None

    def _block_bytes(self) -> int:
        return max(BLOCK_BYTES, min(_MAX_BLOCK_BYTES, len(self.names) * COLUMN_BYTES))

    def _side_by_side(
        self, blocks: Iterator[_Block], wanted: list[str], numeric: set[str]
    ) -> Iterator[tuple[_Block, _Parsed | None]]:
        """Parse the blocks in threads, in order. The first is parsed alone: a caller who needs only the first rows need
        not wait.

        Columns that are not numeric after all are removed from `numeric`. Yields None for a block that does not end
        with a row.
        """
        if (block := next(blocks, None)) is None:
            return
        yield block, self.parse(block, wanted, numeric)
        threads = numba.get_num_threads()
        waiting: deque[tuple[_Block, Future[_Parsed | None]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for block in blocks:
                waiting.append((block, pool.submit(self.parse, block, wanted, numeric)))
                if len(waiting) > threads:
                    done, parsed = waiting.popleft()
                    yield done, parsed.result()
            while waiting:
                done, parsed = waiting.popleft()
                yield done, parsed.result()

    def parse(self, block: _Block, wanted: list[str], numeric: set[str]) -> _Parsed | None:
        """Parse a block by Arrow if possible, else by Python; None if it ends inside a row."""
        # The mark of the byte order is taken away by Arrow's reader, whatever block begins with it.
        if not block.text or block.text.startswith(BOM):
            return self.parse_exactly(block, wanted)
        tried = numeric.intersection(wanted)
        # Arrow's reader does not support thousands separators, and drops leading zeros.
        as_text = bool(self.notation.thousands) or _may_have_leading_zeros(
            block.text, self._layout.delimiter
        )
        try:
            batch = self._by_arrow(block, wanted, () if as_text else tried)
        except pa.ArrowInvalid:
            try:  # as text any value is valid; a wrong number of values is not
                batch = self._by_arrow(block, wanted, ()) if tried else None
            except pa.ArrowInvalid:
                batch = None
            if batch is None:
                return self.parse_exactly(block, wanted)
        arrays = [
            _as_numbers(column, self._missing, self.notation)
            if name in tried and column.type == pa.string()
            else column
            for name, column in zip(wanted, batch.columns, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, names=wanted)
        numeric.difference_update(n for n in tried if batch.column(n).type == pa.string())
        if block.rows is not None and batch.num_rows != block.rows:
            return self.parse_exactly(block, wanted)
        return _Parsed(batch)

    def _by_arrow(
        self, block: _Block, wanted: list[str], numeric: Collection[str]
    ) -> pa.RecordBatch:
        """Parse a block by Arrow. Raises ArrowInvalid if a value or a row does not fit."""
        table = pyarrow.csv.read_csv(
            pa.BufferReader(block.text),
            read_options=pyarrow.csv.ReadOptions(
                column_names=self.names, block_size=len(block.text) + 1, use_threads=False
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self._layout.delimiter, newlines_in_values=block.quoted
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={
                    name: pa.float64() if name in numeric else pa.string() for name in self.names
                },
                include_columns=wanted,
                null_values=self._missing,  # of numbers; texts are interpreted by role
                decimal_point=self.notation.decimal,
            ),
        )
        columns = [column.combine_chunks() for column in table.columns]  # none of blank lines
        for column in columns:
            if column.type == pa.float64() and pc.all(pc.is_finite(column)).as_py() is False:
                raise pa.ArrowInvalid("nan and inf are not allowed as numbers")
        return pa.RecordBatch.from_arrays(columns, schema=table.schema)

    def parse_exactly(self, block: _Block, wanted: list[str]) -> _Parsed | None:
        """Parse a block by Python's csv module; None if it ends inside a row."""
        errors = Errors()
        if not block.text:
            return None
        try:
            lines = _Lines(io.BytesIO(block.text), block.lines_above)
            chunk = list(self.records(lines, errors, whole=False))
        except _Open:
            return None
        batch, at = self._table_of(chunk, wanted, errors)
        return _Parsed(batch, at, errors)

    def _count_lines(self, block: _Block, n_rows: int) -> Numbers:
        """Return the line of each row of a block that Arrow has parsed."""
        if block.quoted:
            lines = _Lines(io.BytesIO(block.text), block.lines_above)
            at = [line for line, _ in self.records(lines, Errors(), whole=True)]
        else:
            texts = block.text.splitlines()
            at = [line for line, text in enumerate(texts, block.lines_above + 1) if text]
        assert len(at) == n_rows
        return np.array(at, dtype=np.int64)

    def _rest(self, block: _Block, first: int, wanted: list[str], errors: Errors) -> Iterator[Rows]:
        with self._upload.open() as stream:
            self._stream = stream
            stream.skip(block.offset)
            records = self.records(_Lines(stream, block.lines_above), errors, whole=True)
            size = max(1, _EXACT_CELLS // len(self.names))
            while chunk := list(itertools.islice(records, size)):
                batch, lines = self._table_of(chunk, wanted, errors)
                yield Rows(batch, first, partial(np.asarray, lines))
                first += batch.num_rows

    def records(
        self, lines: _Lines, errors: Errors, *, whole: bool
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield rows with their lines. A quote left open at the end is an error if `whole`, else raises `_Open`."""
        delimiter, width = self._layout.delimiter, len(self.names)
        most = width + MAX_SURPLUS
        begun: str | None = None  # the first line of a row, whose separators are counted roughly
        at_start, separators = True, 0

        def counted() -> Iterator[str]:
            """Raise BadTable for a row with so many values that parsing would need too much memory."""
            nonlocal at_start, begun, separators
            for text in lines:
                if at_start:
                    at_start, begun, separators = False, text, text.count(delimiter)
                else:  # a row continues only inside quotes
                    if begun is not None:
                        separators, begun = count_delimiters(begun, delimiter, most + 1), None
                    separators += count_delimiters(text, delimiter, most + 1, in_quotes=True)
                if separators > most and begun is not None:
                    separators, begun = count_delimiters(begun, delimiter, most + 1), None
                if separators > most:
                    got = f"more than {most} values, but the header has {width}"
                    raise BadTable(got, line=lines.number)
                yield text

        reader = csv.reader(counted(), delimiter=delimiter)
        while True:
            line, at_start = lines.number + 1, True
            try:
                record = next(reader, None)
            except csv.Error:
                raise _overlong(line) from None
            if record is None:
                return
            if lines.ended:
                raise self._unclosed(record, line) if whole else _Open
            if len(record) == width:
                yield line, record
            elif record:
                values = "1 value" if len(record) == 1 else f"{len(record)} values"
                errors.add(RowError(f"{values}, but the header has {width}", line))
                if errors.total >= MAX_COUNTED_ERRORS:
                    return

    def _unclosed(self, record: list[str], line: int) -> BadTable:
        breaks = sum(len(_LINE_END.findall(value)) for value in record[:-1])
        column = self.names[len(record) - 1] if len(record) <= len(self.names) else None
        return BadTable("a quote is opened here but not closed", line=line + breaks, column=column)

    def _table_of(
        self, chunk: list[tuple[int, list[str]]], wanted: list[str], errors: Errors
    ) -> tuple[pa.RecordBatch, Numbers]:
        """Rows that are not UTF-8 are reported and left out."""
        try:
            return self._build(chunk, wanted)
        except UnicodeEncodeError:
            looked_at = frozenset(wanted)
            sound = [row for row in chunk if not self._report_bytes(*row, looked_at, errors)]
            return self._build(sound, wanted)

    def _build(
        self, chunk: list[tuple[int, list[str]]], wanted: list[str]
    ) -> tuple[pa.RecordBatch, Numbers]:
        lines = np.array([line for line, _ in chunk], dtype=np.int64)
        values = list(zip(*(record for _, record in chunk), strict=True)) or [()] * len(self.names)
        cells = dict(zip(self.names, values, strict=True))
        arrays = [pa.array(cells[name], pa.string()) for name in wanted]
        return pa.RecordBatch.from_arrays(arrays, names=wanted), lines

    def _report_bytes(
        self, line: int, record: list[str], wanted: Collection[str], errors: Errors
    ) -> bool:
        """Report a row's values that are not UTF-8; returns True if there are any."""
        found = False
        for name, value in zip(self.names, record, strict=True):
            if name not in wanted:
                continue
            if any(_is_foreign(sign) for sign in value):
                errors.add(RowError(_describe_bytes(value)[0], line, name))
                found = True
        return found


def _blocks(stream: Stream, layout: Layout, size: int) -> Iterator[_Block]:
    """Yield blocks of whole rows. The last has no text if its row exceeds a block, or leaves a quote open."""
    offset, lines, returned = layout.header_bytes, layout.header_lines, False
    text, ended = b"", False
    while text or not ended:
        most = max(size, len(text))  # twice the text, so that a long row is scanned few times
        piece = stream.read(most)
        text, ended = text + piece, len(piece) < most
        if ended:
            text = text.removesuffix(_END_MARK.encode())
        end, rows = _end_of_rows(text, layout.delimiter, ended=ended)
        if not end and not ended and len(text) <= max(size, _MAX_BLOCK_BYTES):
            continue
        if not text:
            return
        lines -= returned and text.startswith(b"\n")  # one line end, cut in two
        block, text = text[:end], text[end:]
        yield _Block(block, offset, lines, rows)
        if not block:
            return
        offset += len(block)
        lines += _count_ends(block)
        returned = block.endswith(b"\r")


def _end_of_rows(text: bytes, delimiter: str, *, ended: bool) -> tuple[int, int | None]:
    """Return the end of the last whole row (0: none), and the number of rows before it if the text has quotes.

    With `ended`, the text ends the file, so that its last row needs no line end.
    """
    if b'"' not in text:
        return len(text) if ended else max(text.rfind(b"\n"), text.rfind(b"\r")) + 1, None
    end, rows, rest = scan_rows(np.frombuffer(text, np.uint8), np.uint8(ord(delimiter)))
    if ended and rest == _IN_ROW:
        return len(text), rows + 1
    return (len(text) if ended and rest == _BETWEEN else end), rows


_BETWEEN, _IN_ROW, _IN_QUOTES = 0, 1, 2
"""Where a text ends: after a row, in a row outside quotes, or in a quoted value."""
_AT_VALUE, _IN_VALUE, _QUOTED, _AFTER_QUOTE = 0, 1, 2, 3
_LF, _CR, _QUOTE = ord("\n"), ord("\r"), ord('"')


@kernel(
    numba.types.UniTuple(numba.int64, 3)(
        numba.types.Array(numba.uint8, 1, "C", readonly=True), numba.uint8
    )
)
def scan_rows(text, delimiter):  # type: ignore[no-untyped-def]
    """Return the end of the last whole row, the number of rows before it without blank lines, and where the text ends.
    The text begins with a row.
    """
    end = rows = 0
    state, blank = _AT_VALUE, True
    for i in range(len(text)):
        sign = text[i]
        if state == _QUOTED:
            if sign == _QUOTE:
                state = _AFTER_QUOTE
        elif sign in (_LF, _CR):
            rows += not blank
            end, state, blank = i + 1, _AT_VALUE, True
        else:
            blank = False
            if sign == delimiter:
                state = _AT_VALUE
            elif sign == _QUOTE and state != _IN_VALUE:  # at its begin, or the second of a pair
                state = _QUOTED
            else:
                state = _IN_VALUE
    return end, rows, _BETWEEN if blank else _IN_QUOTES if state == _QUOTED else _IN_ROW


def _count_ends(text: bytes) -> int:
    feeds = text.count(b"\n")
    return feeds + text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else feeds


def _may_have_leading_zeros(text: bytes, delimiter: str) -> bool:
    """False means that no value is a whole number with leading zeros."""
    signs = np.frombuffer(text, np.uint8)
    around = np.zeros(256, dtype=np.bool_)
    around[list(b'\r\n" \t' + delimiter.encode())] = True
    found = _find_zeros(signs, delimiter)
    found = found[(found == 0) | around[signs[found - 1]]]
    found = found[_are_digits(signs[found + 1])] + 1
    for _ in range(_MAX_DIGITS):  # of a number the digits end at a delimiter, of a date at a point
        if not len(found):
            return False
        found = found + 1
        if (found == len(signs)).any():
            return True
        last = signs[found]
        if around[last].any():
            return True
        found = found[_are_digits(last)]
    return True


def _find_zeros(signs: npt.NDArray[np.uint8], delimiter: str) -> npt.NDArray[np.intp]:
    """Return zeros that may begin a value, before a digit, and some false ones (after a sign, before a letter)."""
    found = [np.flatnonzero(signs[:-1][:1] == ord("0"))]
    for start in range(0, len(signs) - 2, _SCANNED):
        part = signs[start : start + _SCANNED + 2]
        before, zeros = part[:-2], part[1:-1] == ord("0")
        zeros &= part[2:] >= ord("0")
        zeros &= (before < ord(".")) | (before == ord(delimiter))
        if zeros.any():
            found.append(np.flatnonzero(zeros) + (start + 1))
    return np.concatenate(found)


def _are_digits(signs: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    digits: npt.NDArray[np.bool_] = signs - np.uint8(ord("0")) < 10  # below 0 it wraps around
    return digits


def _as_numbers(text: pa.Array, missing: Sequence[str], notation: Notation) -> pa.Array:
    """Convert texts if all are missing or finite numbers without leading zeros; else return them unchanged."""
    if pc.any(pc.match_substring_regex(text, PADDED)).as_py():
        return text
    try:
        known = pc.if_else(pc.is_in(text, pa.array(missing)), pa.scalar(None, pa.string()), text)
        values = pc.cast(plain_numbers(known, notation), pa.float64())
    except pa.ArrowInvalid:
        return text
    return values if pc.all(pc.is_finite(values)).as_py() is not False else text
