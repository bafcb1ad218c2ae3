"""Scores as they are answered: JSON, or a table of them in the media type that the caller accepts."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson

from app.http.responses import safe
from app.ingest.formats import ARROW, CSV, NDJSON, PARQUET

if TYPE_CHECKING:
    import pyarrow as pa


JSON = "application/json"
OFFERS = (JSON, CSV, ARROW, NDJSON, PARQUET)
"""What scores can be answered in, the default first."""

Column = npt.NDArray[Any] | None


@dataclass(frozen=True)
class Answer:
    """What is told of rows: in JSON, and as columns of a table; a column without values is null in every row."""

    json: Mapping[str, Any]
    columns: Mapping[str, Column]

    def write(self, media_type: str) -> bytes:
        """Write it in one of the `OFFERS`."""
        import pyarrow as pa
        import pyarrow.csv as pa_csv
        import pyarrow.parquet as pq

        if media_type == JSON:
            return orjson.dumps(self.json, option=orjson.OPT_SERIALIZE_NUMPY)
        table = self._table()
        if media_type == NDJSON:
            lines = zip(*(column.to_pylist() for column in table.columns), strict=True)
            names = table.column_names
            return b"".join(
                orjson.dumps(dict(zip(names, line, strict=True)), option=orjson.OPT_APPEND_NEWLINE)
                for line in lines
            )
        sink = pa.BufferOutputStream()
        if media_type == CSV:
            sink.write(csv_header(table.column_names))
            pa_csv.write_csv(table, sink, pa_csv.WriteOptions(include_header=False))
        elif media_type == ARROW:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
        else:
            pq.write_table(table, sink, compression="zstd")
        written: bytes = sink.getvalue().to_pybytes()
        return written

    def _table(self) -> pa.Table:
        import pyarrow as pa

        rows = next(len(column) for column in self.columns.values() if column is not None)
        nothing = pa.nulls(rows, pa.float64())
        arrays = [
            nothing if column is None else pa.array(np.ascontiguousarray(column))
            for column in self.columns.values()
        ]
        return pa.table(arrays, names=list(self.columns))


def csv_header(names: list[str]) -> bytes:
    """The first line of a CSV; a name that a spreadsheet would take for a formula is made plain text."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(map(safe, names))
    return line.getvalue().encode()
