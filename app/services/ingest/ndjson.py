"""Newline-delimited JSON: one object a line; a key that is absent from a line is a missing value."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from app.services.ingest.delimited import MAX_RECORD, Upload, check_names
from app.services.ingest.faults import BadTable, Fault, Faults
from app.services.ingest.rows import Rows
from app.services.ingest.stream import Stream
from app.services.ingest.text import spell_number

_CELLS = 400_000


class NdjsonTable:
    """The columns are the keys of all lines, in the order of their first appearance."""

    schema = None
    hasty = False
    decimal = "."

    def __init__(self, upload: Upload, max_columns: int) -> None:
        self.exact = True
        self._upload = upload
        self._stream: Stream | None = None
        names: dict[str, None] = {}
        for _, record in self._records(Faults()):
            if not record.keys() <= names.keys():
                names.update(dict.fromkeys(record))
                if len(names) > max_columns:
                    break
        self._keys = list(names)
        self.names = check_names(self._keys, max_columns, None)

    def progress(self) -> tuple[int, int]:
        """Return the bytes of the upload read so far, and all of them."""
        return (self._stream.position if self._stream else 0), self._upload.size

    def batches(self, faults: Faults, columns: Sequence[str] | None = None) -> Iterator[Rows]:
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
            yield Rows(pa.RecordBatch.from_arrays(arrays, names=list(wanted)), first, lines)
            first += len(chunk)

    def _records(
        self, faults: Faults, keys: Sequence[str] = ()
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the lines that are flat objects, as far as the keys go that are asked for."""
        flat = set(keys)
        with self._upload.open() as stream:
            self._stream = stream
            for number, line in enumerate(_lines(stream), start=1):
                if not line.strip():
                    continue
                try:
                    record = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    faults.add(Fault(f"the line is not JSON: {error}", number))
                    continue
                if not isinstance(record, dict):
                    faults.add(Fault("the line must be a JSON object", number))
                    continue
                nested = next(
                    (k for k, v in record.items() if isinstance(v, dict | list) and k in flat), None
                )
                if nested is not None:
                    detail = "a value must be a number, a string, true, false or null"
                    faults.add(Fault(detail, number, nested))
                    continue
                yield number, record


def _lines(stream: Stream) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(1 << 20):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        if len(rest) > MAX_RECORD:
            raise BadTable(f"a line must be shorter than {MAX_RECORD} bytes")
    if rest:
        yield rest


def _text(value: float | str | bool | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return spell_number(value)
