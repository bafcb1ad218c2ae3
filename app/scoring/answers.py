"""Responses for scored rows: as JSON, and as tables in every format; at once, or block by block to files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt
import orjson

from app.http.responses import csv_header
from app.ingest.formats import ARROW, CSV, NDJSON, PARQUET
from app.scoring.reasons import as_arrow

if TYPE_CHECKING:
    import pyarrow as pa

JSON = "application/json"
OFFERS = (JSON, CSV, ARROW, NDJSON, PARQUET)
"""Media types of the answer, the default first."""

MAX_WARNINGS = 10
"""Most warnings in a header."""

ColumnValues = Any
"""A column of an answer: an array of numpy or of Arrow, or None."""


def warning_headers(warnings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the first warnings in ASCII; no header without warnings."""
    return {"X-Warnings": json.dumps(warnings[:MAX_WARNINGS])} if warnings else {}


@dataclass(frozen=True)
class ScoresResponse:
    """The response for scored rows: as JSON, and as columns of a table. A column of None is null in every row."""

    json: Mapping[str, Any]
    columns: Mapping[str, ColumnValues]

    def write(self, media_type: str) -> bytes | memoryview:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if media_type == JSON:
            return orjson.dumps(self.json, option=orjson.OPT_SERIALIZE_NUMPY, default=_listed)
        if media_type == NDJSON:
            return self.lines()
        if media_type == CSV:
            return csv_header(list(self.columns)) + self.csv_rows()
        table = self.table()
        sink = pa.BufferOutputStream()
        if media_type == ARROW:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        else:
            pq.write_table(table, sink, compression="zstd")
        return memoryview(sink.getvalue())

    def csv_rows(self) -> bytes:
        """Omit the header. Programs read it: each text is as it was sent."""
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        sink = pa.BufferOutputStream()
        plain = [
            each.dictionary_decode() if pa.types.is_dictionary(each.type) else each
            for each in self._arrays()
        ]
        batch = pa.RecordBatch.from_arrays(plain, names=list(self.columns))
        pa_csv.write_csv(batch, sink, pa_csv.WriteOptions(include_header=False))
        written: bytes = sink.getvalue().to_pybytes()
        return written

    def lines(self) -> bytes:
        """Return the rows as lines of JSON, one object per row."""
        rows = self._count()
        if not rows:
            return b""
        columns = [
            [b"null"] * rows if column is None else _cells(column)
            for column in self.columns.values()
        ]
        names = [orjson.dumps(name).replace(b"%", b"%%") for name in self.columns]
        line = b"{" + b",".join(name + b":%s" for name in names) + b"}\n"
        cells: list[bytes] = [b""] * (rows * len(columns))
        for i, column in enumerate(columns):
            cells[i :: len(columns)] = column
        return (line * rows) % tuple(cells)

    def table(self) -> pa.Table:
        import pyarrow as pa

        return pa.table(self._arrays(), names=list(self.columns))

    def _arrays(self) -> list[pa.Array]:
        import pyarrow as pa

        nothing = pa.nulls(self._count(), pa.float64())
        return [nothing if column is None else as_arrow(column) for column in self.columns.values()]

    def _count(self) -> int:
        return next(len(column) for column in self.columns.values() if column is not None)


def _cells(column: npt.NDArray[Any] | pa.Array) -> list[bytes]:
    if not isinstance(column, np.ndarray) or column.dtype == np.object_:
        return [orjson.dumps(value) for value in column.tolist()]
    return _as_json(column).split(b",")


def _listed(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values


def _as_json(values: npt.NDArray[Any] | pa.Array) -> bytes:
    """Return the inside of a JSON array."""
    if not isinstance(values, np.ndarray):
        return orjson.dumps(_listed(values))[1:-1]
    return orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]


class ScoresFiles:
    """A response in one of the `OFFERS` that is written block by block to files in a folder.

    Its parts together equal `ScoresResponse.write` for all rows; in JSON, CSV and NDJSON they are the same
    bytes. Arrow and Parquet have the blocks of rows as their batches and row groups.
    """

    def __init__(self, media_type: str, folder: Path) -> None:
        self._media_type = media_type
        self._folder = folder
        self._files: dict[str, BinaryIO] = {}
        self._json: dict[str, Any] = {}
        self._writer: Any = None

    def __enter__(self) -> ScoresFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def add(self, block: ScoresResponse) -> None:
        """Append the next rows. The first block (it may be empty) also has the members that apply to all rows."""
        if self._media_type == JSON:
            self._add_json(block)
        elif self._media_type == NDJSON:
            self._file().write(block.lines())
        elif self._media_type == CSV:
            if not self._files:
                self._file().write(csv_header(list(block.columns)))
            self._file().write(block.csv_rows())
        else:
            table = block.table()
            if self._writer is None:
                self._writer = self._open_writer(table.schema)
            self._writer.write_table(table)

    def _add_json(self, block: ScoresResponse) -> None:
        """Append to one file per JSON array."""
        import pyarrow as pa

        is_first = not self._json
        for name, value in block.json.items():
            if not isinstance(value, np.ndarray | pa.Array):
                self._json.setdefault(name, value)
                continue
            self._json[name] = None
            file = self._file(name)
            if not is_first and len(value):
                file.write(b",")
            file.write(_as_json(value))

    def warn(self, warnings: Sequence[Mapping[str, str]]) -> None:
        """Set the warnings of the whole request, which only JSON has."""
        if warnings:
            self._json["warnings"] = warnings

    def _open_writer(self, schema: pa.Schema) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._media_type == ARROW:
            return pa.ipc.new_stream(self._file(), schema)
        return pq.ParquetWriter(self._file(), schema, compression="zstd")

    def _file(self, name: str = "") -> BinaryIO:
        """The file is created at the first call."""
        if name not in self._files:
            path = self._folder / f"answer{len(self._files)}"
            self._files[name] = path.open("x+b")
            path.unlink()  # the file is removed even if this process is killed
        return self._files[name]

    def parts(self) -> list[bytes | BinaryIO]:
        """The caller must close the files."""
        if self._writer is not None:
            self._writer.close()
        files, self._files = self._files, {}
        for file in files.values():
            file.seek(0)
        if self._media_type != JSON:
            return list(files.values())
        parts: list[bytes | BinaryIO] = []
        mark = b"{"
        for name, value in self._json.items():
            mark += orjson.dumps(name) + b":"
            if name in files:
                parts += [mark + b"[", files[name]]
                mark = b"],"
            else:
                mark += orjson.dumps(value) + b","
        return [*parts, mark.removesuffix(b",") + b"}"]
