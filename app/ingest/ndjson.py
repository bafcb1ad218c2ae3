"""JSON tables: one object per line, or an array of objects. A key that is absent from an object is a missing value."""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from app.ingest import json_text
from app.ingest.delimiters import has_more_delimiters
from app.ingest.errors import (
    MAX_COUNTED_ERRORS,
    MAX_ROWS,
    BadTable,
    Errors,
    RowError,
    show,
    too_many_rows,
)
from app.ingest.json_text import RepeatedKey
from app.ingest.rows import MAX_LINE_LENGTH, ColumnNames, Rows, Source
from app.ingest.stream import Stream, TableBytes
from app.ingest.values import spell

MAX_DELIMITERS = 100_000
"""Most commas, colons and opening brackets of a line outside its texts, beside two for each column: what they separate
takes up to thirty times its bytes.
"""
DELIMITERS = "{[:,"
_CELLS = 400_000
_KEPT_BYTES = 1 << 24
PIECE = 1 << 20
_NUMBERS = frozenset({int, float, type(None)})
_SCANNER = json.JSONDecoder(parse_int=float)
_SPACE = re.compile(r"[ \t\r\n]*")


class Line(NamedTuple):
    """A line with an object: its number from 1, its bytes, and the parsed object."""

    number: int
    text: bytes
    record: dict[str, Any]


class NdjsonTable(Source):
    """A table of JSON objects. The columns are all keys, in the order of their first appearance.

    All lines are read once to collect the keys. A short file's objects are cached, and not parsed again.
    """

    def __init__(
        self,
        upload: TableBytes,
        max_columns: int,
        max_rows: int,
        max_cells: int | None = None,
        *,
        is_array: bool = False,
    ) -> None:
        self._upload = upload
        self._most_delimiters = MAX_DELIMITERS + 2 * max_columns
        self._split = (
            partial(_elements, most_delimiters=self._most_delimiters) if is_array else _lines
        )
        self._unit = "element" if is_array else "line"
        self._stream: Stream | None = None
        self._keys: list[str] = []
        self._kept: list[Line] | None = []
        names = ColumnNames(max_columns)
        errors = Errors()
        known: set[str] = set()
        cells = size = 0
        for row, line in enumerate(self._parse(errors)):
            if row == max_rows:
                # Rows to be scored have a limit of their own.
                raise too_many_rows(max_rows, setting=MAX_ROWS if upload.setting else "")
            record = line.record
            if not record.keys() <= known:
                new = [key for key in record if key not in known]
                names.add(new, line.number)
                self._keys += new
                known.update(new)
            if max_cells is not None and (row + 1) * len(self._keys) > max_cells:
                raise BadTable(
                    f"rows × columns can be at most {max_cells}; line {line.number} exceeds this",
                    line=line.number,
                    code="too_large",
                )
            cells += 1 + len(record)
            size += len(line.text)
            if cells > _CELLS or size > _KEPT_BYTES:
                self._kept = None
            elif self._kept is not None:
                self._kept.append(line)
        self.names: list[str] = names.checked
        if errors.total >= MAX_COUNTED_ERRORS or not self.names:
            raise errors.summarise() if errors.total else _nothing(self._unit)
        if errors.total:  # the second reading reports it
            self._kept = None

    def progress(self) -> tuple[int, int]:
        """The unit is bytes of the upload."""
        return (self._stream.position if self._stream else 0), self._upload.size

    def batches(
        self, errors: Errors, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        """Yield text, or numbers in `numeric` columns. Lines that are not a flat JSON object are errors."""
        wanted = self.names if columns is None else columns
        key_of = dict(zip(self.names, self._keys, strict=True))
        keys = [key_of[name] for name in wanted]
        lines = self._flat_lines(errors, set(keys))
        first = 0
        while chunk := list(_chunk(lines, max(1, _CELLS // max(1, len(self.names))))):
            records = [line.record for line in chunk]
            arrays = [
                _to_array(_values_of(key, records), number=name in numeric)
                for name, key in zip(wanted, keys, strict=True)
            ]
            numbers = np.array([line.number for line in chunk], dtype=np.int64)
            batch = pa.RecordBatch.from_arrays(arrays, names=list(wanted))
            yield Rows(batch, first, partial(np.asarray, numbers))
            first += len(chunk)

    def _flat_lines(self, errors: Errors, keys: Collection[str]) -> Iterator[Line]:
        """Yield the lines whose values for these keys are not nested; others are reported."""
        for line in self._parse(errors) if self._kept is None else self._kept:
            if b"[" in line.text or line.text.count(b"{") > 1:  # in a text, or around a value
                nested = next(
                    (k for k, v in line.record.items() if isinstance(v, dict | list) and k in keys),
                    None,
                )
                if nested is not None:
                    rule = "a value must be a number, a string, true, false or null"
                    detail = f"{rule}; drop={nested} ignores the column"
                    errors.add(RowError(detail, line.number, nested))
                    continue
            yield line

    def _parse(self, errors: Errors) -> Iterator[Line]:
        """Yield every line with an object; blank lines are skipped, and invalid ones reported."""
        with self._upload.open() as stream:
            self._stream = stream
            for number, text in self._split(stream):
                if errors.total >= MAX_COUNTED_ERRORS:
                    return
                if not text.strip():
                    continue
                if has_more_delimiters(text, self._most_delimiters, DELIMITERS):
                    raise _too_many_delimiters(self._unit, self._most_delimiters, number)
                try:
                    record = json_text.parse(text)
                except RepeatedKey as error:
                    column = error.key if error.key.isprintable() else None
                    raise BadTable(
                        error.detail, line=number, column=column, code=error.code
                    ) from None
                except orjson.JSONDecodeError as error:
                    detail = f"the {self._unit} is not valid JSON: {error.msg} at character {error.colno}"
                    errors.add(RowError(detail, number))
                    continue
                if not isinstance(record, dict):
                    errors.add(RowError(f"the {self._unit} must be a JSON object", number))
                    continue
                yield Line(number, text, record)


def _too_many_delimiters(unit: str, most: int, line: int) -> BadTable:
    detail = f"a {unit} can have at most {most} commas, colons and opening brackets outside strings"
    return BadTable(detail, line=line, code="too_large")


def _elements(stream: Stream, most_delimiters: int) -> Iterator[tuple[int, bytes]]:
    """Yield an array's elements with the lines at which they begin."""
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    text, at, line, more = "", 0, 1, True

    def fill() -> None:
        nonlocal text, at, more
        piece = stream.read(PIECE)
        more = bool(piece)
        try:
            text, at = text[at:] + decode(piece, final=not more), 0
        except UnicodeDecodeError as error:
            raise BadTable(f"the text must be UTF-8: {error.reason}", line=line) from None

    def sign() -> str:
        """Return the next character that is not whitespace; empty at the end."""
        nonlocal at, line
        while True:
            found = _SPACE.match(text, at)
            assert found is not None
            line += text.count("\n", at, found.end())
            at = found.end()
            if at < len(text) or not more:
                return text[at : at + 1]
            fill()

    def refuse(rule: str) -> BadTable:
        return BadTable(
            f"{rule}, got {show(text[at : at + 40]) if text[at:] else 'its end'}", line=line
        )

    if sign() != "[":
        raise refuse("the file must be a JSON array of objects")
    at += 1
    if sign() == "]":
        at += 1
    else:
        while True:
            sign()
            while True:
                try:
                    _, end = _SCANNER.raw_decode(text, at)
                    if end < len(text) or not more:  # a number may go on in the next bytes
                        break
                except json.JSONDecodeError as error:
                    if not more:
                        raise refuse(f"an element is not valid JSON: {error.msg}") from None
                except RecursionError:
                    raise BadTable("the element is nested too deeply", line=line) from None
                if len(text) - at > MAX_LINE_LENGTH:
                    raise BadTable(
                        f"an element must be JSON, and shorter than {MAX_LINE_LENGTH} characters",
                        line=line,
                    )
                # All the text that is left belongs to one element. It is not parsed again if it is too large.
                if len(text) - at > PIECE and has_more_delimiters(
                    text[at:].encode(), most_delimiters, DELIMITERS
                ):
                    raise _too_many_delimiters("element", most_delimiters, line)
                fill()
            element = text[at:end]
            yield line, element.replace("\n", " ").encode()
            line += element.count("\n")
            at = end
            following = sign()
            if following not in (",", "]"):
                raise refuse("a comma or the end of the array must follow an element")
            at += 1
            if following == "]":
                break
    if sign():
        raise refuse("nothing may follow the array")


def _lines(stream: Stream) -> Iterator[tuple[int, bytes]]:
    """Yield numbered lines without their ends, nor a byte order mark."""
    return enumerate(_texts_of_lines(stream), start=1)


def _texts_of_lines(stream: Stream) -> Iterator[bytes]:
    """Raises BadTable for an overlong line."""
    rest = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    count = 0
    while chunk := stream.read(1 << 20):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        count += len(whole)
        if len(rest) > MAX_LINE_LENGTH:
            raise BadTable(f"a line must be shorter than {MAX_LINE_LENGTH} bytes", line=count + 1)
    yield from rest.split(b"\n")


def _chunk(lines: Iterator[Line], count: int) -> Iterator[Line]:
    """Yield up to `count` lines; fewer if they are long."""
    size = 0
    for line in itertools.islice(lines, count):
        yield line
        size += len(line.text)
        if size >= _KEPT_BYTES:
            return


def _nothing(unit: str) -> BadTable:
    detail = f"the file has no objects with keys; each {unit} must be a JSON object"
    return BadTable(detail, line=1)


def _values_of(key: str, records: Sequence[dict[str, Any]]) -> list[Any]:
    try:
        return list(map(itemgetter(key), records))
    except KeyError:
        return [record.get(key) for record in records]


def _to_array(values: list[Any], *, number: bool) -> pa.Array:
    """Return numbers if `number` and all values are numbers, else text."""
    if number and _NUMBERS.issuperset(map(type, values)):
        return pa.array(np.array(values, dtype=np.float64), from_pandas=True)  # NaN is null
    return pa.array(map(_text, values), pa.string())


def _text(value: float | str | bool | None) -> str | None:
    return value if value is None or isinstance(value, str) else spell(value)
