"""The typed table as Parquet: written row group by row group, in bounded memory."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from app.infra.writeback import Writeback

CATEGORIES = pa.dictionary(pa.int32(), pa.string())
ROW_GROUP = 65_536
_GROUP_BYTES = 1 << 24
"""A row group of a wide table, or of long texts, is cut shorter, to bound the memory it takes."""


class TableWriter:
    """Writes the typed table: features as float64 with NaN for missing or as categories, then other columns."""

    def __init__(self, path: Path, fields: list[pa.Field]) -> None:
        self._schema = pa.schema(fields)
        width = 8 * len(fields)
        self._size = max(1, min(ROW_GROUP, _GROUP_BYTES // width))
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0
        floats = [field.name for field in fields if field.type == pa.float64()]
        texts = [field.name for field in fields if _repeats(field)]
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            compression="lz4",
            use_dictionary=texts or False,
            use_byte_stream_split=floats,
            write_statistics=False,
        )
        self._descriptor = os.open(path, os.O_RDONLY)
        self._writeback = Writeback(self._descriptor)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._flush(1)
            self._writer.close()
        finally:
            os.close(self._descriptor)

    def write(self, arrays: list[pa.Array]) -> None:
        """Take a batch; a row group is written when it is full."""
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        self._flush(self._size if self._bytes < 2 * _GROUP_BYTES else 1)

    def _flush(self, least: int) -> None:
        while self._rows >= least and self._rows:
            # Batches bring dictionaries of their own; a column of a row group has one.
            table = pa.Table.from_batches(self._waiting, schema=self._schema).unify_dictionaries()
            self._writer.write_table(table.slice(0, self._size), row_group_size=self._size)
            self._writeback.grown_to(os.fstat(self._descriptor).st_size)
            rest = table.slice(self._size)
            self._waiting = rest.to_batches()
            self._rows = rest.num_rows
            self._bytes = rest.nbytes


def _repeats(field: pa.Field) -> bool:
    """Tell whether a column's values are likely to come again: each is then written once a row group."""
    return bool(field.type == CATEGORIES or (field.metadata or {}).get(b"role") == b"group")
