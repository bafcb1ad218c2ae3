"""Content negotiation (RFC 9110, §12.5.1), compressed and ranged responses, and tables safe for spreadsheets."""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
import math
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fastapi.responses import FileResponse
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from app.platform.errors import Invalid, NotAcceptable, ServiceError

if TYPE_CHECKING:
    import pyarrow as pa
    from xlsxwriter.worksheet import Worksheet

_SHOWN = 100


def choose_media_type(request: Request, offers: Sequence[str]) -> str:
    """Return the offer that the Accept header prefers; of equal ones the first. Raises NotAcceptable."""
    accept = ",".join(request.headers.getlist("accept"))
    ranges = _ranges(accept)
    if not ranges:
        return offers[0]
    best = max(offers, key=lambda offer: _quality(offer, ranges))
    if _quality(best, ranges) > 0.0:
        return best
    raise NotAcceptable(
        f"Accept must allow one of {', '.join(offers)}, got {accept[:_SHOWN]!r}",
        errors=[
            {"header": "Accept", "detail": f"this route can return {offer}"} for offer in offers
        ],
    )


def _ranges(accept: str) -> dict[str, float]:
    """Parameters other than q are ignored."""
    ranges: dict[str, float] = {}
    for entry in accept.split(","):
        name, *parameters = (part.strip().lower() for part in entry.split(";"))
        if name:
            qualities = (text.removeprefix("q=") for text in parameters if text.startswith("q="))
            ranges[name] = max(ranges.get(name, 0.0), _read_quality(next(qualities, "1")))
    return ranges


def _quality(offer: str, ranges: dict[str, float]) -> float:
    """The most specific range counts."""
    media_type = offer.partition(";")[0]
    for name in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        if name in ranges:
            return ranges[name]
    return 0.0


def _read_quality(text: str) -> float:
    """Invalid text counts as 0, so that the range is not accepted."""
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0.0 <= quality <= 1.0 else 0.0


MIN_COMPRESSED_BYTES = 1_000
"""Size in bytes from which a text is compressed."""
# Compressing a larger answer takes several milliseconds: another thread does it.
_MIN_THREADED_BYTES = 1 << 18
_LEVEL = 6


def accepts_gzip(accept_encoding: str) -> bool:
    """See RFC 9110, §12.5.3."""
    codings = _ranges(accept_encoding)
    return codings.get("gzip", codings.get("*", 0.0)) > 0.0


class CompressedResponse(Response):
    """A text that is compressed by gzip for callers that accept it: for pages and documents.

    Scores and streams of events are not compressed: they are small, or come in small pieces. gzip is the only coding
    that every supported Python has.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers.add_vary_header("Accept-Encoding")
        accepted = ",".join(Headers(scope=scope).getlist("accept-encoding"))
        if len(self.body) >= MIN_COMPRESSED_BYTES and accepts_gzip(accepted):
            work = partial(gzip.compress, self.body, _LEVEL, mtime=0)
            self.body = (
                await run_in_threadpool(work) if len(self.body) > _MIN_THREADED_BYTES else work()
            )
            self.headers["Content-Encoding"] = "gzip"
            self.headers["Content-Length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


class CompressedPage(CompressedResponse, HTMLResponse):
    """A compressed HTML page."""


class StoredText:
    """A text that is sent many times, and compressed only once."""

    def __init__(self, content: bytes, media_type: str) -> None:
        self.content = content
        self._compressed = gzip.compress(content, mtime=0)
        self._media_type = media_type

    def answer(self, request: Request, **headers: str) -> Response:
        """Compress for a caller that accepts gzip."""
        content, headers = self.content, {"Vary": "Accept-Encoding", **headers}
        if accepts_gzip(",".join(request.headers.getlist("accept-encoding"))):
            content, headers["Content-Encoding"] = self._compressed, "gzip"
        return Response(content, headers=headers, media_type=self._media_type)


def json_response(answer: object) -> Response:
    """Serialize in the calling thread, so that a large object does not block the event loop."""
    content = to_json(answer, by_alias=True, inf_nan_mode="null")
    return Response(content, media_type="application/json")


_ONE_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")


_ROWS_PER_CHUNK = 10_000


class RangeNotSatisfiable(ServiceError):
    """The range begins beyond the end of the file."""

    code, status, title = "range_not_satisfiable", 416, "Range not satisfiable"


class StoredFile(FileResponse):
    """A file that can be read in one range. Other Range headers get the whole file, as RFC 9110 allows."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        asked = headers.get("range")
        if asked is not None and not await self._can_serve(asked, "if-range" in headers):
            kept = [(name, value) for name, value in scope["headers"] if name != b"range"]
            scope = {**scope, "headers": kept}
        await super().__call__(scope, receive, send)

    async def _can_serve(self, asked: str, conditional: bool) -> bool:
        """Return True for one range within the file. Raises RangeNotSatisfiable beyond its end, unless conditional."""
        found = _ONE_RANGE.fullmatch(asked.strip().lower())
        if found is None:
            return False
        first, last, suffix = found.groups()
        if first and last and int(last) < int(first):
            return False
        size = (await run_in_threadpool(os.stat, self.path)).st_size
        beyond = int(suffix) == 0 if suffix else int(first) >= size
        if beyond and not conditional:
            raise RangeNotSatisfiable(
                f"the range must begin within the {size} bytes of the file, got {asked[:100]!r}",
                headers={"Content-Range": f"bytes */{size}"},
            )
        return not beyond


_PIECE_BYTES = 1 << 18


class FilesResponse(Response):
    """Sends bytes and files in pieces, read in a thread.

    `done` is called when everything is read, before the last piece is sent, or when the caller has disconnected. It may
    be called twice.
    """

    def __init__(
        self,
        parts: Sequence[bytes | BinaryIO],
        media_type: str,
        headers: Mapping[str, str],
        done: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(media_type=media_type, headers=headers)
        self._parts = parts
        self._done = done
        self.headers["Content-Length"] = str(sum(map(size_of, parts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        last = b""
        leaving = asyncio.create_task(disconnected(receive))
        try:
            await send({"type": "http.response.start", **start})
            async for piece in self._pieces():
                if leaving.done():
                    return
                if last:
                    await send({"type": "http.response.body", "body": last, "more_body": True})
                last = piece
            self._done()
            await send({"type": "http.response.body", "body": last})
        finally:
            leaving.cancel()
            for part in self._parts:
                if not isinstance(part, bytes):
                    part.close()
            self._done()

    async def _pieces(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
                continue
            while piece := await run_in_threadpool(part.read, _PIECE_BYTES):
                yield piece


async def disconnected(receive: Receive) -> None:
    """Return at the disconnect; discard the rest of the body."""
    while (await receive())["type"] != "http.disconnect":
        pass


def size_of(part: bytes | BinaryIO) -> int:
    """Return the number of bytes of a part of a body."""
    return len(part) if isinstance(part, bytes) else os.fstat(part.fileno()).st_size


_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"  # spreadsheets read the full-width forms as well
_SIGNED_NUMBER = r"^[+\-](?:[0-9]+(?:[.,][0-9]+)*[.,]?|[.,][0-9]+)(?:[eE][+\-]?[0-9]+)?%?\z"


def escape_formula(text: str) -> str:
    """Add an apostrophe if a spreadsheet would read a formula; a signed number is none."""
    import pyarrow as pa

    escaped: str = _escape(pa.array([text]))[0].as_py()
    return escaped


def escape_formulas(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Apply `escape_formula` to text columns; dictionary columns become plain text."""
    import pyarrow as pa

    from app.ingest.value_columns import is_text

    columns = []
    for column in batch.columns:
        words = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        columns.append(_escape(words) if is_text(words.type) else words)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _escape(words: pa.Array) -> pa.Array:
    """Add an apostrophe before formulas."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_formula = pc.and_not(
        pc.match_substring_regex(words, _FORMULA), pc.match_substring_regex(words, _SIGNED_NUMBER)
    )
    apostrophe, nothing = pa.scalar("'", words.type), pa.scalar("", words.type)
    escaped = pc.binary_join_element_wise(apostrophe, words, nothing)
    return pc.if_else(is_formula, escaped, words)


def csv_header(names: Sequence[str], delimiter: str = ",") -> bytes:
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(names)
    return line.getvalue().encode()


def parquet_as_csv(path: Path, *, comma: bool = False) -> Iterator[bytes]:
    """Yield CSV for people, with a header and escaped formulas.

    With `comma`, decimals have a comma and columns are separated by semicolons, as spreadsheets in many countries
    expect.
    """
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    delimiter = ";" if comma else ","
    options = pa_csv.WriteOptions(include_header=False, delimiter=delimiter)
    with pq.ParquetFile(path) as file:
        yield csv_header(list(map(escape_formula, file.schema_arrow.names)), delimiter)
        for batch in file.iter_batches(_ROWS_PER_CHUNK):
            sink = pa.BufferOutputStream()
            shown = escape_formulas(batch)
            pa_csv.write_csv(_with_commas(shown) if comma else shown, sink, options)
            yield sink.getvalue().to_pybytes()


def _with_commas(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Write decimals as texts with a comma."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [
        pc.replace_substring(column.cast(pa.string()), ".", ",")
        if pa.types.is_floating(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


MAX_SHEET_CELLS = 1_000_000
"""Most cells of a spreadsheet: it is written in some ten seconds. Excel itself reads 1,048,576 rows."""
MAX_SHEET_TEXT = 50_000_000
"""Most characters of all texts of a spreadsheet, which is made in memory."""
_MAX_CELL_TEXT = 32_767  # characters, by the format
# A spreadsheet keeps 15 digits: a longer identifier would become another one.
_MAX_SHEET_INTEGER = 10**15


def parquet_as_xlsx(path: Path) -> bytes:
    """Return a spreadsheet. Texts stay texts: none becomes a formula, a number or a link.

    Raises Invalid for more than MAX_SHEET_CELLS cells or MAX_SHEET_TEXT characters.
    """
    import pyarrow.parquet as pq
    import xlsxwriter

    made = io.BytesIO()
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        cells = file.metadata.num_rows * len(names)
        if cells > MAX_SHEET_CELLS:
            raise _sheet_too_large(f"{MAX_SHEET_CELLS:,} cells; these rows have {cells:,}")
        with xlsxwriter.Workbook(made, {"constant_memory": True}) as book:
            sheet = book.add_worksheet("scores")
            for column, name in enumerate(names):
                sheet.write_string(0, column, name[:_MAX_CELL_TEXT])
            row = characters = 0
            for batch in file.iter_batches(_ROWS_PER_CHUNK):
                characters += sum(
                    min(len(value), _MAX_CELL_TEXT)
                    for column in batch.columns
                    for value in column.to_pylist()
                    if isinstance(value, str)
                )
                if characters > MAX_SHEET_TEXT:
                    raise _sheet_too_large(
                        f"{MAX_SHEET_TEXT:,} characters of text; these rows have more"
                    )
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    row += 1
                    for column, value in enumerate(values):
                        _write_cell(sheet, row, column, value)
    return made.getvalue()


def _sheet_too_large(limit: str) -> Invalid:
    detail = f"a spreadsheet can have at most {limit}: use csv"
    return Invalid(detail, errors=[{"parameter": "format", "detail": detail}])


def _write_cell(sheet: Worksheet, row: int, column: int, value: Any) -> None:
    """Write a boolean, a number or a text; leave out an empty or non-finite value."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, float) or (isinstance(value, int) and abs(value) < _MAX_SHEET_INTEGER):
        sheet.write_number(row, column, value)
    else:
        sheet.write_string(row, column, str(value)[:_MAX_CELL_TEXT])


def etag_matches(if_none_match: str | None, tag: str) -> bool:
    """Compare weakly (RFC 9110)."""
    if if_none_match is None:
        return False
    held = [entry.strip().removeprefix("W/") for entry in if_none_match.split(",")]
    return "*" in held or tag in held
