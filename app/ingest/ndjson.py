"""Newline-delimited JSON: one object a line; a key that is absent from a line is a missing value."""

from __future__ import annotations

import codecs
import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from app.ingest.errors import MAX_COUNTED_ERRORS, BadTable, Errors, RowError, show, too_many_rows
from app.ingest.rows import MAX_LINE_LENGTH, ColumnNames, Rows, Source
from app.ingest.stream import Stream, Upload
from app.ingest.values import spell

_CELLS = 400_000
_KEPT_BYTES = 1 << 24
_NUMBERS = frozenset({int, float, type(None)})
_PAIRS = json.JSONDecoder(object_pairs_hook=list, parse_int=float)


class Line(NamedTuple):
    """A line that is an object: its number from 1, its bytes, and what they say."""

    number: int
    text: bytes
    record: dict[str, Any]


class NdjsonTable(Source):
    """The columns are the keys of all lines, in the order of their first appearance.

    All lines are read once for their keys. The objects of a short file are kept, and not parsed a second time.
    """

    def __init__(
        self, upload: Upload, max_columns: int, max_rows: int, max_cells: int | None = None
    ) -> None:
        self._upload = upload
        self._stream: Stream | None = None
        self._keys: list[str] = []
        self._kept: list[Line] | None = []
        names = ColumnNames(max_columns)
        errors = Errors()
        known: set[str] = set()
        cells = size = 0
        for row, line in enumerate(self._parse(errors)):
            if row == max_rows:
                raise too_many_rows(max_rows)
            record = line.record
            _check_doubled(line)
            if not record.keys() <= known:
                new = [key for key in record if key not in known]
                names.add(new, line.number)
                self._keys += new
                known.update(new)
            if max_cells is not None and (row + 1) * len(self._keys) > max_cells:
                raise BadTable(
                    f"rows × columns may be at most {max_cells}; line {line.number} is beyond this",
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
            raise errors.summarise() if errors.total else _nothing()
        if errors.total:  # the second reading reports it
            self._kept = None

    def progress(self) -> tuple[int, int]:
        """Return the bytes of the upload read so far, and all of them."""
        return (self._stream.position if self._stream else 0), self._upload.size

    def batches(
        self, errors: Errors, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        """Yield the rows as text, but numbers of `numeric` columns; lines that are no flat JSON object are errors."""
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
        """Yield the lines whose values are flat, as far as the keys go that are asked for."""
        for line in self._parse(errors) if self._kept is None else self._kept:
            if b"[" in line.text or line.text.count(b"{") > 1:  # in a text, or around a value
                nested = next(
                    (k for k, v in line.record.items() if isinstance(v, dict | list) and k in keys),
                    None,
                )
                if nested is not None:
                    detail = "a value must be a number, a string, true, false or null"
                    errors.add(RowError(detail, line.number, nested))
                    continue
            yield line

    def _parse(self, errors: Errors) -> Iterator[Line]:
        """Yield every line that has an object; blank lines do not count."""
        with self._upload.open() as stream:
            self._stream = stream
            for number, text in enumerate(_lines(stream), start=1):
                if errors.total >= MAX_COUNTED_ERRORS:
                    return
                if not text.strip():
                    continue
                try:
                    record = orjson.loads(text)
                except orjson.JSONDecodeError as error:
                    detail = f"the line is not JSON: {error.msg} at character {error.colno}"
                    errors.add(RowError(detail, number))
                    continue
                if not isinstance(record, dict):
                    errors.add(RowError("the line must be a JSON object", number))
                    continue
                yield Line(number, text, record)


def _lines(stream: Stream) -> Iterator[bytes]:
    """Yield the lines without their ends, and the first without a byte order mark."""
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
    """Yield up to `count` lines, fewer if they are long."""
    size = 0
    for line in itertools.islice(lines, count):
        yield line
        size += len(line.text)
        if size >= _KEPT_BYTES:
            return


def _check_doubled(line: Line) -> None:
    """Raise BadTable for a key that comes twice: the parser keeps the last without a word.

    Of a flat object without one, every `"` stands around a key or a text; only other lines need a closer look.
    """
    number, text, record = line
    quotes = text.count(b'"') - 2 * len(record)
    if quotes == 0 or quotes == 2 * sum(type(value) is str for value in record.values()):
        return
    try:
        pairs = _PAIRS.decode(text.decode())
    except RecursionError:
        raise BadTable("the line is nested too deeply", line=number) from None
    for key, times in Counter(key for key, _ in pairs).items():
        if times > 1:
            raise BadTable(
                f"the key {show(key)} comes {times} times in one object",
                line=number,
                column=key if key.isprintable() else None,
                code="duplicate_column",
            )


def _nothing() -> BadTable:
    return BadTable("the file has no objects with keys; each line must be a JSON object", line=1)


def _values_of(key: str, records: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the values of a key, None where it is absent."""
    try:
        return list(map(itemgetter(key), records))
    except KeyError:
        return [record.get(key) for record in records]


def _to_array(values: list[Any], *, number: bool) -> pa.Array:
    """Return a column of a batch: numbers where it is to be of numbers and holds nothing else, or else text."""
    if number and _NUMBERS.issuperset(map(type, values)):
        return pa.array(np.array(values, dtype=np.float64), from_pandas=True)  # NaN is null
    return pa.array(map(_text, values), pa.string())


def _text(value: float | str | bool | None) -> str | None:
    return value if value is None or isinstance(value, str) else spell(value)
