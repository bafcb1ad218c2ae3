"""The typed table as Parquet: written row group by row group, in bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from app.platform.blobs import Writeback

CATEGORIES = pa.dictionary(pa.int32(), pa.string())
ROW_GROUP = 65_536
_GROUP_BYTES = 1 << 24
"""Most bytes of a row group, in memory: groups of wide tables or long texts have fewer rows."""


class TableWriter:
    """Writes the typed table: features as float64 with NaN for missing, or as categories; then the other columns."""

    def __init__(
        self, path: Path, fields: list[pa.Field], metadata: Mapping[str, str] | None = None
    ) -> None:
        self._schema = pa.schema(fields, metadata)
        width = 8 * len(fields)
        self._size = max(1, min(ROW_GROUP, _GROUP_BYTES // width))
        self._waiting: deque[pa.RecordBatch] = deque()
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
        self._aside = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._flush(1)
                self._wait()
        finally:
            self._aside.shutdown()
            os.close(self._descriptor)
            self._writer.close()

    def write(self, arrays: list[pa.Array]) -> None:
        """Add a batch. A full row group is written in a thread."""
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        self._flush(self._size if self._bytes < 2 * _GROUP_BYTES else 1)

    def _flush(self, least: int) -> None:
        while self._rows >= least and self._rows:
            group = self._take(min(self._size, self._rows))
            self._wait()
            self._writing = self._aside.submit(self._write_group, group)

    def _take(self, count: int) -> list[pa.RecordBatch]:
        taken = []
        self._rows -= count
        while count:
            batch = self._waiting.popleft()
            self._bytes -= batch.nbytes
            if batch.num_rows > count:
                rest = batch.slice(count)
                self._waiting.appendleft(rest)
                self._bytes += rest.nbytes
                batch = batch.slice(0, count)
            taken.append(batch)
            count -= batch.num_rows
        return taken

    def _wait(self) -> None:
        """Wait until the previous row group is written; raises the exception of its thread."""
        if self._writing is not None:
            self._writing.result()

    def _write_group(self, batches: list[pa.RecordBatch]) -> None:
        # Batches bring dictionaries of their own; a column of a row group has one, of no more than its own values.
        table = pa.Table.from_batches(batches, schema=self._schema).unify_dictionaries()
        self._writer.write_table(table, row_group_size=self._size)
        self._writeback.grown_to(os.fstat(self._descriptor).st_size)


def _repeats(field: pa.Field) -> bool:
    """Return True if a column's values are likely to repeat, so that dictionary encoding is worthwhile."""
    return bool(
        field.type == CATEGORIES or (field.metadata or {}).get(b"role") in (b"group", b"query")
    )
