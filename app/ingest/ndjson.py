"""Newline-delimited JSON: one object a line; a key that is absent from a line is a missing value."""

from __future__ import annotations

import codecs
import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from app.ingest.csv import MAX_RECORD, Upload, check_names
from app.ingest.errors import ENOUGH, BadTable, Fault, Faults, show, too_many_rows
from app.ingest.rows import Rows, Source
from app.ingest.stream import Stream
from app.ingest.value_columns import spell_number

_CELLS = 400_000
_PAIRS = json.JSONDecoder(object_pairs_hook=list, parse_int=float)


class NdjsonTable(Source):
    """The columns are the keys of all lines, in the order of their first appearance."""

    decimal = "."

    def __init__(self, upload: Upload, max_columns: int, max_rows: int) -> None:
        self._upload = upload
        self._stream: Stream | None = None
        self._keys: list[str] = []
        self.names: list[str] = []
        faults = Faults()
        known: set[str] = set()
        for row, (number, line, record) in enumerate(self._objects(faults)):
            if row == max_rows:
                raise too_many_rows(max_rows)
            _check_doubled(number, line, record)
            if not record.keys() <= known:
                self._keys += [key for key in record if key not in known]
                known.update(record)
                self.names = check_names(self._keys, max_columns, number)
        if faults.total >= ENOUGH or not self.names:
            raise faults.summarise() if faults.total else _nothing()

    def progress(self) -> tuple[int, int]:
        """Return the bytes of the upload read so far, and all of them."""
        return (self._stream.position if self._stream else 0), self._upload.size

    def batches(
        self, faults: Faults, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        """Yield the rows, every value as text; lines that are no flat JSON object are faults."""
        wanted = self.names if columns is None else columns
        keys = [self._keys[self.names.index(name)] for name in wanted]
        records = self._records(faults, keys)
        first = 0
        while chunk := list(itertools.islice(records, max(1, _CELLS // max(1, len(self.names))))):
            lines = np.array([line for line, _ in chunk], dtype=np.int64)
            arrays = [
                pa.array([_text(record.get(key)) for _, record in chunk], pa.string())
                for key in keys
            ]
            batch = pa.RecordBatch.from_arrays(arrays, names=list(wanted))
            yield Rows(batch, first, partial(np.asarray, lines))
            first += len(chunk)

    def _records(
        self, faults: Faults, keys: Sequence[str] = ()
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the lines that are flat objects, as far as the keys go that are asked for."""
        flat = set(keys)
        for number, _, record in self._objects(faults):
            nested = next(
                (k for k, v in record.items() if isinstance(v, dict | list) and k in flat), None
            )
            if nested is not None:
                detail = "a value must be a number, a string, true, false or null"
                faults.add(Fault(detail, number, nested))
                continue
            yield number, record

    def _objects(self, faults: Faults) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        """Yield the number, the bytes and the object of every line that has one; blank lines do not count."""
        with self._upload.open() as stream:
            self._stream = stream
            for number, line in enumerate(_lines(stream), start=1):
                if faults.total >= ENOUGH:
                    return
                if not line.strip():
                    continue
                try:
                    record = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    detail = f"the line is not JSON: {error.msg} at character {error.colno}"
                    faults.add(Fault(detail, number))
                    continue
                if not isinstance(record, dict):
                    faults.add(Fault("the line must be a JSON object", number))
                    continue
                yield number, line, record


def _lines(stream: Stream) -> Iterator[bytes]:
    """Yield the lines without their ends, and the first without a byte order mark."""
    rest = stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
    count = 0
    while chunk := stream.read(1 << 20):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        count += len(whole)
        if len(rest) > MAX_RECORD:
            raise BadTable(f"a line must be shorter than {MAX_RECORD} bytes", line=count + 1)
    yield from rest.split(b"\n")


def _check_doubled(number: int, line: bytes, record: dict[str, Any]) -> None:
    """Raise BadTable for a key that comes twice: the parser keeps the last without a word.

    Of a flat object without one, every `"` stands around a key or a text; only other lines need a closer look.
    """
    texts = sum(isinstance(value, str) for value in record.values())
    if line.count(b'"') == 2 * (len(record) + texts):
        return
    try:
        pairs = _PAIRS.decode(line.decode())
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
    return BadTable("the file has no objects with keys: one a line is needed", line=1)


def _text(value: float | str | bool | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "-0.0" if value == 0 and math.copysign(1.0, value) < 0 else spell_number(value)
