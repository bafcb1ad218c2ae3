"""Parquet files, Arrow streams and files: typed columns, no lines; a fault is told by the number of its row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.ingest.csv import Upload, check_names
from app.ingest.errors import BadTable, Faults, brief, show
from app.ingest.rows import MAX_NAME, Rows, Source
from app.ingest.stream import DAMAGE, find_compression, too_long
from app.ingest.value_columns import is_text

_BATCH_ROWS = 65_536
_BATCH_CELLS = 1 << 22
_VIEW_BYTES = 16  # of which the first four say how long the text is


def _batch_rows(columns: int) -> int:
    return max(1, min(_BATCH_ROWS, _BATCH_CELLS // max(1, columns)))


class ParquetTable(Source):
    """A Parquet file, row group by row group."""

    decimal = "."

    def __init__(self, path: Path, max_columns: int) -> None:
        try:
            self._file = pq.ParquetFile(
                path,
                memory_map=False,
                pre_buffer=False,
                coerce_int96_timestamp_unit="us",  # nanoseconds, the default, wrap around in 2262
            )
            self.schema: pa.Schema = self._file.schema_arrow
        except UnicodeDecodeError as error:
            raise _unreadable_name(error) from error
        except DAMAGE as error:
            raise BadTable(f"the file cannot be read as Parquet: {brief(error)}") from error
        self.names = _check_schema(self.schema, max_columns)
        self.rows: int = self._file.metadata.num_rows
        self._done = 0

    def progress(self) -> tuple[int, int]:
        """Return the rows read so far, and all of them."""
        return self._done, self.rows

    def batches(
        self, faults: Faults, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        """Yield the rows in batches of a bounded number of cells."""
        wanted = self.names if columns is None else columns
        stored = [self.schema.names[self.names.index(name)] for name in wanted]
        first = 0
        try:
            for batch in self._file.iter_batches(_batch_rows(len(wanted)), columns=stored):
                # A dot in a name would select a nested field as well: take the columns by their own names.
                arrays = [batch.column(name) for name in stored]
                yield Rows(_sound(arrays, wanted, first), first)
                first += batch.num_rows
                self._done = first
        except DAMAGE as error:
            raise BadTable(f"row {first + 1} cannot be read as Parquet: {brief(error)}") from error
        if first != self.rows:
            raise BadTable(f"the file says that it has {self.rows} rows, but {first} are there")


class ArrowTable(Source):
    """An Arrow IPC stream, which may be compressed as a whole."""

    decimal = "."

    def __init__(self, upload: Upload, max_columns: int) -> None:
        self._upload = upload
        try:
            with _opened(upload) as (file, _), pa.ipc.open_stream(file) as reader:
                self.schema: pa.Schema = reader.schema
        except DAMAGE as error:
            raise BadTable(f"the body cannot be read as an Arrow stream: {brief(error)}") from error
        self.names = _check_schema(self.schema, max_columns)
        self._done = 0

    def progress(self) -> tuple[int, int]:
        """Return the bytes of the upload read so far, and all of them."""
        return self._done, self._upload.size

    def batches(
        self, faults: Faults, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        """Yield the rows; large batches are cut."""
        wanted = self.names if columns is None else columns
        places = [self.names.index(name) for name in wanted]
        first = 0
        try:
            with _opened(self._upload) as (file, position):
                viewed = 0
                for whole in pa.ipc.open_stream(file):
                    viewed += self._check_views([whole.column(place) for place in places], viewed)
                    for rows in _cut(whole, places, wanted, first):
                        yield rows
                        first += rows.batch.num_rows
                    self._done = position()
                if file.read(1):  # which also looks at the last bytes of a compressed stream
                    raise BadTable("the Arrow stream goes on after its end")
        except DAMAGE as error:
            raise BadTable(f"row {first + 1} cannot be read as Arrow: {brief(error)}") from error

    def _check_views(self, columns: Sequence[pa.Array], before: int) -> int:
        """Return the bytes of the texts that columns of views hold. Raises BadTable if they take more than a table may.

        Any number of views may be of the same bytes, so that one long text is small only in the file. Those of a
        dictionary are not counted to the batches behind, which may share it.
        """
        sizes = [
            _viewed_bytes(c.dictionary if pa.types.is_dictionary(c.type) else c) for c in columns
        ]
        if before + sum(sizes) > self._upload.max_bytes:
            raise too_long(self._upload.max_bytes)
        return sum(
            size
            for c, size in zip(columns, sizes, strict=True)
            if not pa.types.is_dictionary(c.type)
        )


def _viewed_bytes(column: pa.Array) -> int:
    """Bytes of the texts of a column of views, by what these say of themselves; 0 for other columns."""
    if not pa.types.is_string_view(column.type) or not len(column):
        return 0
    views = column.buffers()[1]
    lengths = np.frombuffer(views, np.int32, count=len(views) // _VIEW_BYTES * 4)[::4]
    return int(np.sum(np.maximum(lengths, 0), dtype=np.int64))


@contextmanager
def _opened(upload: Upload) -> Iterator[tuple[pa.NativeFile, Callable[[], int]]]:
    """Open for Arrow's reader, and tell how far it is; plain bytes that lie in memory are not copied."""
    if (
        isinstance(upload.stored, bytes)
        and find_compression(upload.stored, upload.encoding) is None
    ):
        file = pa.BufferReader(upload.stored)
        yield file, file.tell
    else:
        with upload.open() as stream:
            yield pa.PythonFile(stream, "r"), lambda: stream.position


class ArrowFile(Source):
    """An Arrow IPC file, also known as Feather."""

    decimal = "."

    def __init__(self, path: Path, max_columns: int) -> None:
        try:
            self._file = pa.OSFile(str(path))
            self._reader = pa.ipc.open_file(self._file)
            self.schema: pa.Schema = self._reader.schema
        except DAMAGE as error:
            raise BadTable(f"the body cannot be read as an Arrow file: {brief(error)}") from error
        self.names = _check_schema(self.schema, max_columns)
        self._done = 0

    def progress(self) -> tuple[int, int]:
        """Return the batches read so far, and all of them."""
        return self._done, max(self._reader.num_record_batches, 1)

    def batches(
        self, faults: Faults, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        """Yield the rows; large batches are cut."""
        wanted = self.names if columns is None else columns
        places = [self.names.index(name) for name in wanted]
        first = 0
        try:
            for number in range(self._reader.num_record_batches):
                whole = self._reader.get_batch(number)
                for rows in _cut(whole, places, wanted, first):
                    yield rows
                    first += rows.batch.num_rows
                self._done = number + 1
        except DAMAGE as error:
            raise BadTable(f"row {first + 1} cannot be read as Arrow: {brief(error)}") from error


def _check_schema(schema: pa.Schema, max_columns: int) -> list[str]:
    """Return the names of the columns. Raises BadTable for those that `check_names` refuses, and bytes for text."""
    try:
        names = schema.names
    except UnicodeDecodeError as error:
        raise _unreadable_name(error) from error
    return check_names(names, max_columns, None)


def _unreadable_name(error: UnicodeDecodeError) -> BadTable:
    rule = f"a column name must be at most {MAX_NAME} printable UTF-8 characters"
    return BadTable(f"{rule}, got {show(error.object.decode('latin-1'))}")


def _cut(
    whole: pa.RecordBatch, places: Sequence[int], names: Sequence[str], first: int
) -> Iterator[Rows]:
    """Yield a batch's columns at those places, in pieces of a bounded number of cells."""
    batch = _sound([whole.column(place) for place in places], names, first)
    size = _batch_rows(len(names))
    for start in range(0, batch.num_rows, size):
        yield Rows(batch.slice(start, size), first + start)


def _sound(arrays: list[pa.Array], names: Sequence[str], first: int) -> pa.RecordBatch:
    """Return a batch whose text is UTF-8 and whose codes have a value each: a file may claim what it likes."""
    for name, array in zip(names, arrays, strict=True):
        try:
            array.validate(full=True)
        except DAMAGE as error:
            raise _damaged(array, name, first, error) from error
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _damaged(array: pa.Array, name: str, first: int, error: pa.ArrowException) -> BadTable:
    """Name the row of the first text that is not UTF-8, or else what Arrow found."""
    if (binary := _as_binary(array)) is not None:
        for row, value in enumerate(binary.to_pylist(), start=first + 1):
            try:
                (value or b"").decode()
            except UnicodeDecodeError as fault:
                detail = f"byte 0x{value[fault.start]:02X} is not UTF-8"
                latin = show(value.decode("latin-1"))
                return BadTable(f"row {row}: {detail} (as Latin-1 it reads {latin})", column=name)
    return BadTable(f"column {show(name)} is damaged: {brief(error)}", column=name)


def _as_binary(array: pa.Array) -> pa.Array | None:
    """Return the bytes of a text column; None for other types, or where even their places in memory are forged."""
    if not is_text(array.type):
        return None
    kind = pa.binary() if pa.types.is_string(array.type) else pa.large_binary()
    binary = array.view(pa.binary_view() if pa.types.is_string_view(array.type) else kind)
    try:
        binary.validate(full=True)
    except DAMAGE:
        return None
    return binary
