"""The typed table read back, a column of a row group at a time: neither many columns nor many rows take memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


class TableReader(AbstractContextManager["TableReader"]):
    """Reads the columns of a typed table, in the row groups that it was written in. Not for two threads at once."""

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path)
        self._places = {name: place for place, name in enumerate(self._file.schema_arrow.names)}

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def rows(self) -> int:
        """Rows of the table."""
        count: int = self._file.metadata.num_rows
        return count

    @property
    def groups(self) -> int:
        """Row groups of the table."""
        count: int = self._file.num_row_groups
        return count

    def rows_of(self, group: int) -> int:
        """Rows of a row group."""
        count: int = self._file.metadata.row_group(group).num_rows
        return count

    def read(self, group: int, name: str) -> pa.Array:
        """A column's part in a row group."""
        # By its place: a name with a dot would be taken for a path, and to look names up again and again takes time.
        places = [self._places[name]]
        table = self._file.reader.read_row_group(group, column_indices=places, use_threads=False)
        return table.column(0).combine_chunks()

    def column(self, name: str) -> Iterator[pa.Array]:
        """A whole column, part by part."""
        return (self.read(group, name) for group in range(self.groups))
