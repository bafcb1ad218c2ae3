"""JSON tables: one object per line, or an array of objects. A key that is absent from an object is a missing value."""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
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
BLOCK_LINES, BLOCK_BYTES = 1 << 14, 1 << 20
PIECE = 1 << 20
_NUMBERS = frozenset({int, float, type(None)})
_SCANNER = json.JSONDecoder(parse_int=float)
_SPACE = re.compile(r"[ \t\r\n]*")


Line = tuple[int, bytes]
"""The number of a line, from 1, and its bytes."""


class Block(NamedTuple):
    """Lines with objects: their numbers, and the parsed objects."""

    numbers: list[int]
    records: list[dict[str, Any]]
    nested: list[int]
    """Positions of the objects that have a list or an object as value."""
    size: int
    """Bytes of the lines."""
    is_numeric: bool = False
    """True only if every value is a number."""

    def without(self, positions: Collection[int]) -> Block:
        """Return the block without the lines at these positions."""
        kept = [i for i in range(len(self.records)) if i not in positions]
        numbers = [self.numbers[i] for i in kept]
        return Block(numbers, [self.records[i] for i in kept], [], self.size)


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
        self._kept: list[Block] | None = []
        names = ColumnNames(max_columns)
        errors = Errors()
        known: set[str] = set()
        cells = size = rows = 0
        for block in self._blocks(errors):
            first_lines: dict[tuple[str, ...], int] = {}
            for keys, number in zip(map(tuple, block.records), block.numbers, strict=True):
                first_lines.setdefault(keys, number)
            for keys, number in first_lines.items():
                if new := [key for key in keys if key not in known]:
                    names.add(new, number)
                    self._keys += new
                    known.update(new)
            before, rows = rows, rows + len(block.records)
            if rows > max_rows:
                # Rows to be scored have a limit of their own.
                raise too_many_rows(max_rows, setting=MAX_ROWS if upload.setting else "")
            if max_cells is not None and rows * len(self._keys) > max_cells:
                line = block.numbers[max(0, max_cells // len(self._keys) - before)]
                raise BadTable(
                    f"rows × columns can be at most {max_cells}; line {line} exceeds this",
                    line=line,
                    code="too_large",
                )
            cells += len(block.records) + sum(map(len, block.records))
            size += block.size
            if cells > _CELLS or size > _KEPT_BYTES:
                self._kept = None
            elif self._kept is not None:
                self._kept.append(block)
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
        are_numbers = [name in numeric for name in wanted]
        first = 0
        for block in self._flat_blocks(errors, set(keys)):
            if block.records:
                arrays = _to_arrays(block, keys, are_numbers)
                batch = pa.RecordBatch.from_arrays(arrays, names=list(wanted))
                yield Rows(batch, first, partial(np.array, block.numbers, np.int64))
                first += len(block.records)

    def _flat_blocks(self, errors: Errors, keys: Collection[str]) -> Iterator[Block]:
        """Yield blocks of lines whose values for these keys are not nested; other lines are reported."""
        for block in self._blocks(errors) if self._kept is None else self._kept:
            wrong = set()
            for i in block.nested:
                values = block.records[i].items()
                nested = next(
                    (k for k, v in values if isinstance(v, dict | list) and k in keys), None
                )
                if nested is not None:
                    rule = "a value must be a number, a string, true, false or null"
                    detail = f"{rule}; drop={nested} ignores the column"
                    errors.add(RowError(detail, block.numbers[i], nested))
                    wrong.add(i)
            yield block if not wrong else block.without(wrong)

    def _blocks(self, errors: Errors) -> Iterator[Block]:
        """Yield all lines with an object; invalid ones are reported."""
        with self._upload.open() as stream:
            self._stream = stream
            lines = self._split(stream)
            while errors.total < MAX_COUNTED_ERRORS and (chunk := _chunk(lines)):
                yield self._parse(chunk, errors)

    def _parse(self, lines: Sequence[Line], errors: Errors) -> Block:
        numbers, texts = map(list, zip(*lines, strict=True))
        size = sum(map(len, texts))
        if max(map(len, texts)) <= self._most_delimiters:
            with suppress(orjson.JSONDecodeError):
                records = list(map(orjson.loads, texts))
                if (types := json_text.types_of_flat(texts, records)) is not None:
                    return Block(numbers, records, [], size, types <= {float, int})
        block = Block([], [], [], size)
        for number, text in lines:
            if errors.total >= MAX_COUNTED_ERRORS:
                break
            if (record := self._parse_line(number, text, errors)) is None:
                continue
            if any(isinstance(value, dict | list) for value in record.values()):
                block.nested.append(len(block.records))
            block.numbers.append(number)
            block.records.append(record)
        return block

    def _parse_line(self, number: int, text: bytes, errors: Errors) -> dict[str, Any] | None:
        """Return None for a line that is reported."""
        if has_more_delimiters(text, self._most_delimiters, DELIMITERS):
            raise _too_many_delimiters(self._unit, self._most_delimiters, number)
        try:
            record = json_text.parse(text)
        except RepeatedKey as error:
            column = error.key if error.key.isprintable() else None
            raise BadTable(error.detail, line=number, column=column, code=error.code) from None
        except orjson.JSONDecodeError as error:
            detail = f"the {self._unit} is not valid JSON: {error.msg} at character {error.colno}"
            errors.add(RowError(detail, number))
            return None
        if not isinstance(record, dict):
            errors.add(RowError(f"the {self._unit} must be a JSON object", number))
            return None
        return record


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


def _chunk(lines: Iterator[Line]) -> list[Line]:
    """Return the next lines that are not blank; none at the end."""
    chunk: list[Line] = []
    size = 0
    for line in lines:
        if line[1] and not line[1].isspace():
            chunk.append(line)
            size += len(line[1])
            if size >= BLOCK_BYTES or len(chunk) == BLOCK_LINES:
                break
    return chunk


def _nothing(unit: str) -> BadTable:
    detail = f"the file has no objects with keys; each {unit} must be a JSON object"
    return BadTable(detail, line=1)


def _to_arrays(block: Block, keys: Sequence[str], are_numbers: Sequence[bool]) -> list[pa.Array]:
    if block.is_numeric and all(are_numbers) and len(keys) > 1:
        with suppress(KeyError):
            cells = itertools.chain.from_iterable(map(itemgetter(*keys), block.records))
            shape = len(block.records), len(keys)
            X = np.fromiter(cells, np.float64, shape[0] * shape[1]).reshape(shape)
            return list(map(pa.array, np.ascontiguousarray(X.T)))
    return [
        _to_array(_values_of(key, block.records), number=number)
        for key, number in zip(keys, are_numbers, strict=True)
    ]


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
