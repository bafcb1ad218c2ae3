"""JSON tables: one object per line, or an array of objects. A key that is absent from an object is a missing value."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
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


Numbers = npt.NDArray[np.float64]
Lines = tuple[Sequence[int], bytes]
"""The numbers of lines, from 1, and their bytes, without the end of the last; blank lines, too."""


@dataclass
class Block:
    """Lines with objects: their numbers, and the objects, or the numbers in them."""

    numbers: Sequence[int]
    text: bytes
    """The lines, without the end of the last."""
    nested: list[int] = field(default_factory=list)
    """Positions of the objects that have a list or an object as value."""
    matrix: Numbers | None = None
    """If the objects have the same keys, and numbers or null as values: one row per object, NaN for null."""
    matrix_keys: Sequence[str] = ()
    """The keys of the columns of `matrix`."""

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        return list(map(orjson.loads, self.text.split(b"\n")))

    def list_keys(self) -> Iterator[tuple[Sequence[str], int]]:
        """Yield the different lists of keys, each with the number of the first line that has it."""
        if self.matrix is not None:
            yield self.matrix_keys, self.numbers[0]
            return
        first_lines: dict[tuple[str, ...], int] = {}
        for keys, number in zip(map(tuple, self.records), self.numbers, strict=True):
            first_lines.setdefault(keys, number)
        yield from first_lines.items()

    def count_cells(self) -> int:
        if self.matrix is not None:
            return self.matrix.size
        return sum(map(len, self.records))

    def without(self, positions: Collection[int]) -> Block:
        """Return the block without the lines at these positions."""
        kept = [i for i in range(len(self.numbers)) if i not in positions]
        found = Block([self.numbers[i] for i in kept], b"")
        found.records = [self.records[i] for i in kept]
        return found


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
            partial(_elements_in_blocks, most_delimiters=self._most_delimiters)
            if is_array
            else _lines_in_blocks
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
            for keys, number in block.list_keys():
                if new := [key for key in keys if key not in known]:
                    names.add(new, number)
                    self._keys += new
                    known.update(new)
            before, rows = rows, rows + len(block.numbers)
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
            cells += len(block.numbers) + block.count_cells()
            size += len(block.text)
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
            if block.numbers:
                arrays = _to_arrays(block, keys, are_numbers)
                batch = pa.RecordBatch.from_arrays(arrays, names=list(wanted))
                yield Rows(batch, first, partial(np.array, block.numbers, np.int64))
                first += len(block.numbers)

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
            for numbers, text in self._split(stream):
                if errors.total >= MAX_COUNTED_ERRORS:
                    return
                yield self._parse(numbers, text, errors)

    def _parse(self, numbers: Sequence[int], text: bytes, errors: Errors) -> Block:
        most = self._most_delimiters
        if (found := json_text.numbers_of_flat(text, len(numbers), most)) is not None:
            keys, matrix = found
            return Block(numbers, text, matrix=matrix, matrix_keys=keys)
        texts = text.split(b"\n")
        if max(map(len, texts)) <= most:
            with suppress(orjson.JSONDecodeError):
                records = list(map(orjson.loads, texts))
                if json_text.are_flat(text, records):
                    block = Block(numbers, text)
                    block.records = records
                    return block
        own_numbers: list[int] = []
        block = Block(own_numbers, text)
        block.records = []
        for number, line in zip(numbers, texts, strict=True):
            if errors.total >= MAX_COUNTED_ERRORS:
                break
            if not line or line.isspace():
                continue
            if (record := self._parse_line(number, line, errors)) is None:
                continue
            if any(isinstance(value, dict | list) for value in record.values()):
                block.nested.append(len(block.records))
            own_numbers.append(number)
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


def _lines_in_blocks(stream: Stream) -> Iterator[Lines]:
    """Yield lines without their ends, nor a byte order mark. Raises BadTable for an overlong line."""
    rest = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    count = 0
    more = True
    while more:
        chunk = stream.read(BLOCK_BYTES)
        more = bool(chunk)
        text, end, rest = (rest + chunk).rpartition(b"\n") if more else (rest, b"\n", b"")
        if end:
            before, count = count, count + text.count(b"\n") + 1
            yield from _in_blocks(range(before + 1, count + 1), text)
        if len(rest) > MAX_LINE_LENGTH:
            raise BadTable(f"a line must be shorter than {MAX_LINE_LENGTH} bytes", line=count + 1)


def _in_blocks(numbers: range, text: bytes) -> Iterator[Lines]:
    if len(numbers) <= BLOCK_LINES:
        yield numbers, text
        return
    texts = text.split(b"\n")
    for start in range(0, len(texts), BLOCK_LINES):
        block = slice(start, start + BLOCK_LINES)
        yield numbers[block], b"\n".join(texts[block])


def _elements_in_blocks(stream: Stream, most_delimiters: int) -> Iterator[Lines]:
    numbers: list[int] = []
    texts: list[bytes] = []
    size = 0
    for number, text in _elements(stream, most_delimiters):
        numbers.append(number)
        texts.append(text)
        size += len(text)
        if size >= BLOCK_BYTES or len(texts) == BLOCK_LINES:
            yield numbers, b"\n".join(texts)
            numbers, texts, size = [], [], 0
    if texts:
        yield numbers, b"\n".join(texts)


def _nothing(unit: str) -> BadTable:
    detail = f"the file has no objects with keys; each {unit} must be a JSON object"
    return BadTable(detail, line=1)


def _to_arrays(block: Block, keys: Sequence[str], are_numbers: Sequence[bool]) -> list[pa.Array]:
    if block.matrix is not None and all(are_numbers):
        place = {key: j for j, key in enumerate(block.matrix_keys)}
        columns = np.ascontiguousarray(block.matrix.T)
        nothing = pa.nulls(len(columns.T), pa.float64())
        return [
            pa.array(columns[place[key]], from_pandas=True) if key in place else nothing
            for key in keys
        ]
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
