"""Readers of Parquet files, and of Arrow streams and files. Their columns have types, but their rows have no line
numbers: an error has the number of its row.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.ingest.errors import BadTable, Errors, brief, show, too_many_rows
from app.ingest.rows import CELL_BYTES, MAX_NAME_LENGTH, Rows, Source, check_names
from app.ingest.stream import DAMAGE, TableBytes, find_compression, too_long
from app.ingest.value_columns import is_text

BATCH_ROWS = 65_536
_BATCH_CELLS = 1 << 22
PART_BYTES = 1 << 28  # of texts that are in memory at once
_JOINED_BYTES = 1 << 26
_VIEW_BYTES = 16  # of which the first four are the length of the text


def _batch_rows(columns: int) -> int:
    return max(1, min(BATCH_ROWS, _BATCH_CELLS // max(1, columns)))


class ParquetTable(Source):
    """Reads a Parquet file by row groups; joins small ones. BadTable: above `max_text` bytes of decoded strings."""

    def __init__(self, path: Path, max_columns: int, max_text: int) -> None:
        self._max_text = max_text
        try:
            self._file = _open_parquet(path)
            self.schema: pa.Schema = self._file.schema_arrow
        except UnicodeDecodeError as error:
            raise _unreadable_name(error) from error
        except DAMAGE as error:
            raise BadTable(f"the file cannot be read as Parquet: {brief(error)}") from error
        self.names = _check_schema(self.schema, max_columns)
        self.unnamed = _find_indices(self.names)
        self.rows: int = self._file.metadata.num_rows
        self._done = 0
        texts = [field.name for field in self.schema if is_text(field.type)]
        if texts:
            deltas = _delta_columns(self._file.metadata, frozenset(texts))
            texts = [name for name in texts if name not in deltas]
        if texts:  # with each word once: written out row by row, a page may be any size
            self._file = _open_parquet(path, texts, self._file.metadata)

    def progress(self) -> tuple[int, int]:
        """The unit is rows."""
        return self._done, self.rows

    def is_empty(self, name: str) -> bool:
        found = self._file.metadata
        if found.num_columns != len(self.names):  # there are nested ones
            return False
        index = self.names.index(name)
        chunks = (found.row_group(group).column(index) for group in range(found.num_row_groups))
        return all(
            (known := chunk.statistics) is not None
            and known.has_null_count
            and known.null_count == chunk.num_values
            for chunk in chunks
        )

    def batches(
        self, errors: Errors, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        wanted = self.names if columns is None else columns
        called = self.schema.names
        indices = _indices_of(wanted, self.names)
        stored, types = [called[i] for i in indices], [self.schema.types[i] for i in indices]
        known, texts = Dictionaries(), _Texts(self._max_text)
        first = 0
        try:
            most = _batch_rows(len(wanted))
            for batch in _join_small(self._file.iter_batches(most, columns=stored), most):
                # A dot in a name would select a nested field as well: take the columns by their own names.
                arrays = [batch.column(name) for name in stored]
                for part in _write_out(arrays, types, texts):
                    rows = _with_own_words(_sound(part, wanted, first, known))
                    yield Rows(rows, first)
                    first += rows.num_rows
                self._done = first
        except DAMAGE as error:
            raise BadTable(f"row {first + 1} cannot be read as Parquet: {brief(error)}") from error
        if first != self.rows:
            raise BadTable(f"the file declares {self.rows} rows, but has {first}")


def _open_parquet(
    path: Path, as_words: Sequence[str] = (), metadata: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    """Columns `as_words` are read as dictionaries. `metadata` need not be read again."""
    return pq.ParquetFile(
        path,
        metadata=metadata,
        memory_map=False,
        pre_buffer=False,
        coerce_int96_timestamp_unit="us",  # nanoseconds, the default, wrap around in 2262
        read_dictionary=list(as_words) or None,
    )


def _join_small(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        is_sound = _has_sound_codes(batch)
        if held and (rows + batch.num_rows > most or size >= _JOINED_BYTES or not is_sound):
            yield _join(held)
            held, rows, size = [], 0, 0
        if not is_sound:  # it is not joined, because its codes have no words
            yield batch
            continue
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if held:
        yield _join(held)


def _has_sound_codes(batch: pa.RecordBatch) -> bool:
    """Return True if each dictionary code of a batch has a word."""
    try:
        for column in batch.columns:
            if pa.types.is_dictionary(column.type):
                column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()
    return batch


def _delta_columns(metadata: pq.FileMetaData, names: Collection[str]) -> set[str]:
    """Return which of these columns have delta-encoded pages, which Arrow cannot read as dictionaries."""
    places = [i for i in range(metadata.num_columns) if metadata.schema.column(i).path in names]
    return {
        chunk.path_in_schema
        for group in range(metadata.num_row_groups)
        for chunk in map(metadata.row_group(group).column, places)
        if any(encoding.startswith("DELTA") for encoding in chunk.encodings)
    }


def _write_out(
    arrays: list[pa.Array], types: Sequence[pa.DataType], texts: _Texts
) -> Iterator[list[pa.Array]]:
    """Decode dictionaries to their declared types: one part, or slices if the decoded texts are long."""
    as_words = [
        is_text(kind) and pa.types.is_dictionary(array.type)
        for array, kind in zip(arrays, types, strict=True)
    ]
    lengths = np.zeros(len(arrays[0]), dtype=np.int64)
    for array, is_coded in zip(arrays, as_words, strict=True):
        if is_coded:
            taken = pc.binary_length(array.dictionary).take(array.indices)
            lengths += taken.fill_null(0).to_numpy().astype(np.int64)
    ends = np.cumsum(lengths)
    written = [array for array, is_coded in zip(arrays, as_words, strict=True) if not is_coded]
    texts.add(written)
    texts.add_bytes(int(lengths.sum()))
    starts = [0, *(np.flatnonzero(np.diff(ends // PART_BYTES)) + 1).tolist(), len(lengths)]
    for start, end in itertools.pairwise(starts):
        part = [array.slice(start, end - start) for array in arrays]
        yield [
            array.dictionary_decode().cast(kind) if is_coded else array
            for array, kind, is_coded in zip(part, types, as_words, strict=True)
        ]


class ArrowTable(Source):
    """An Arrow IPC stream, perhaps compressed as a whole. `max_batch_text`: most bytes of text copied for a batch."""

    def __init__(
        self, upload: TableBytes, max_columns: int, max_batch_text: int | None = None
    ) -> None:
        self._upload = upload
        self._max_batch_text = max_batch_text
        try:
            with _opened(upload) as (file, _), pa.ipc.open_stream(file) as reader:
                self.schema: pa.Schema = reader.schema
        except DAMAGE as error:
            raise BadTable(f"the body cannot be read as an Arrow stream: {brief(error)}") from error
        self.names = _check_schema(self.schema, max_columns)
        self.unnamed = _find_indices(self.names)
        self._done = 0

    def progress(self) -> tuple[int, int]:
        """The unit is bytes of the upload."""
        return self._done, self._upload.size

    def batches(
        self, errors: Errors, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        texts = _Texts(self._upload.max_bytes, self._max_batch_text)
        return _read_batches(self._whole_batches(), self.names, columns, texts)

    def _whole_batches(self) -> Iterator[pa.RecordBatch]:
        with _opened(self._upload) as (file, position):
            for whole in pa.ipc.open_stream(file):
                yield whole
                self._done = position()
            if file.read(1):  # which also looks at the last bytes of a compressed stream
                raise BadTable("the Arrow stream has bytes after its end")


def _read_batches(
    batches: Iterable[pa.RecordBatch],
    names: Sequence[str],
    columns: Sequence[str] | None,
    texts: _Texts,
) -> Iterator[Rows]:
    wanted = names if columns is None else columns
    indices = _indices_of(wanted, names)
    known = Dictionaries()
    first = 0
    try:
        for whole in batches:
            arrays = [whole.column(index) for index in indices]
            _check_lengths(arrays, wanted, first)
            texts.add(arrays)
            for rows in _cut(arrays, wanted, first, known):
                yield rows
                first += rows.batch.num_rows
    except DAMAGE as error:
        raise BadTable(f"row {first + 1} cannot be read as Arrow: {brief(error)}") from error


class _Texts:
    """Counts the bytes of a table's texts when they are written out. A small file can contain a large table: a page of
    Parquet may repeat a text many times, views may point to the same bytes, and Arrow's buffers may be compressed.
    """

    def __init__(self, most: int, most_at_once: int | None = None) -> None:
        self._most = most
        self._most_at_once = most_at_once
        self._size = 0

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Count the texts of a batch. Raises BadTable above the limit for a batch or for the table.

        The texts of a dictionary do not count towards the table: later batches may share the dictionary.
        """
        sizes = list(map(_text_bytes, columns))
        size, most = sum(sizes), self._most_at_once
        if most is not None and size > most:
            raise BadTable(
                f"the strings of a batch of an Arrow stream can have at most {most} bytes here, got {size}: "
                "write smaller batches",
                code="too_large",
            )
        shared = sum(
            size
            for column, size in zip(columns, sizes, strict=True)
            if pa.types.is_dictionary(column.type)
        )
        self.add_bytes(size)
        self._size -= shared

    def add_bytes(self, size: int) -> None:
        self._size += size
        if self._size > self._most:
            raise too_long(self._most)


def _text_bytes(column: pa.Array) -> int:
    """Return the bytes of a column's texts. Of a dictionary column, only its dictionary's string views count."""
    if pa.types.is_dictionary(column.type):
        return _viewed_bytes(column.dictionary)
    if pa.types.is_string_view(column.type):
        return _viewed_bytes(column)
    if not is_text(column.type) or not len(column):
        return 0
    kind = np.int64 if pa.types.is_large_string(column.type) else np.int32
    buffer = column.buffers()[1]
    offsets = np.frombuffer(
        buffer or b"", kind, count=(buffer.size if buffer else 0) // kind().itemsize
    )
    # Of a damaged column the offsets may be anything: it is checked after this.
    last = min(column.offset + len(column), len(offsets) - 1)
    return max(0, int(offsets[last]) - int(offsets[min(column.offset, last)])) if last > 0 else 0


def _viewed_bytes(column: pa.Array) -> int:
    """Return the bytes of the texts of a string-view column, by the lengths in its views; 0 for other columns."""
    if not pa.types.is_string_view(column.type) or not len(column):
        return 0
    views = column.buffers()[1]
    lengths = np.frombuffer(views, np.int32, count=len(views) // _VIEW_BYTES * 4)[::4]
    return int(np.sum(np.maximum(lengths, 0), dtype=np.int64))


@contextmanager
def _opened(upload: TableBytes) -> Iterator[tuple[pa.NativeFile, Callable[[], int]]]:
    """Yield the opened upload and a function that returns the position in it. Uncompressed memory is not copied."""
    if (
        not isinstance(upload.stored, Path)
        and find_compression(upload.stored, upload.encoding) is None
    ):
        file = pa.BufferReader(upload.stored)
        yield file, file.tell
    else:
        with upload.open() as stream:
            yield pa.PythonFile(stream, "r"), lambda: stream.position


class ArrowFile(Source):
    """An Arrow IPC (Feather) file. Its texts may take at most `max_text` bytes."""

    def __init__(self, path: Path, max_columns: int, max_text: int) -> None:
        self._max_text = max_text
        try:
            self._file = pa.OSFile(str(path))
            self._reader = pa.ipc.open_file(self._file)
            self.schema: pa.Schema = self._reader.schema
        except DAMAGE as error:
            raise BadTable(f"the body cannot be read as an Arrow file: {brief(error)}") from error
        self.names = _check_schema(self.schema, max_columns)
        self.unnamed = _find_indices(self.names)
        self._done = 0

    def progress(self) -> tuple[int, int]:
        """The unit is batches."""
        return self._done, max(self._reader.num_record_batches, 1)

    def batches(
        self, errors: Errors, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        texts = _Texts(self._max_text)
        return _read_batches(self._whole_batches(), self.names, columns, texts)

    def _whole_batches(self) -> Iterator[pa.RecordBatch]:
        for number in range(self._reader.num_record_batches):
            yield self._reader.get_batch(number)
            self._done = number + 1


def _indices_of(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    index = {name: i for i, name in enumerate(names)}
    return [index[name] for name in wanted]


def _check_schema(schema: pa.Schema, max_columns: int) -> list[str]:
    try:
        names = schema.names
    except UnicodeDecodeError as error:
        raise _unreadable_name(error) from error
    return check_names(names, max_columns, None)


def _find_indices(names: Sequence[str]) -> frozenset[str]:
    """Return the columns that are an unnamed index which pandas has written as a column."""
    return frozenset(filter(re.compile("__index_level_[0-9]+__").fullmatch, names))


def _unreadable_name(error: UnicodeDecodeError) -> BadTable:
    rule = f"a column name must be at most {MAX_NAME_LENGTH} printable UTF-8 characters"
    return BadTable(f"{rule}, got {show(error.object.decode('latin-1'))}")


def _cut(
    arrays: list[pa.Array], names: Sequence[str], first: int, known: Dictionaries
) -> Iterator[Rows]:
    """Yield the batch in slices of a bounded number of cells."""
    batch = _sound(arrays, names, first, known)
    size = _batch_rows(len(names))
    for start in range(0, batch.num_rows, size):
        yield Rows(_with_own_words(batch.slice(start, size)), first + start)


def _with_own_words(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Limit each dictionary to as many words as the batch has rows, so that work per word costs no more than by row."""
    columns = [
        drop_unused_words(column)
        if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def drop_unused_words(column: pa.Array) -> pa.Array:
    """Return the column; if it is a dictionary column, with only the words that its rows use."""
    if not pa.types.is_dictionary(column.type):
        return column
    used = column.indices.unique().drop_null()
    codes = pc.index_in(column.indices, value_set=used)
    words = column.dictionary.take(used)
    return pa.DictionaryArray.from_arrays(codes, words).cast(column.type)


class Dictionaries:
    """The validated dictionaries of a table. Each is validated once, even if many batches share it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Hashable, pa.Array, pa.Array]] = {}

    def sound(self, column: pa.Array, name: str) -> pa.Array:
        """Validate the words and codes of a dictionary column; views become plain texts. Raises pa.ArrowInvalid."""
        words = column.dictionary
        buffers = [each and (each.address, each.size) for each in words.buffers()]
        key = (words.type, len(words), words.offset, *buffers)
        if name not in self._known or self._known[name][0] != key:
            words.validate(full=True)
            plain = words.cast(pa.string()) if pa.types.is_string_view(words.type) else words
            # The words are referenced, so that no other object gets their address.
            self._known[name] = key, words, plain
        column.indices.validate(full=True)
        plain = self._known[name][2]
        return pa.DictionaryArray.from_arrays(column.indices, plain, ordered=column.type.ordered)


def _check_lengths(arrays: Sequence[pa.Array], names: Sequence[str], first: int) -> None:
    """Raise BadTable for a dictionary whose length is invalid: `len` would fail."""
    for name, array in zip(names, arrays, strict=True):
        if pa.types.is_dictionary(array.type):
            try:
                array.dictionary.validate()
            except DAMAGE as error:
                raise _damaged(array, name, first, error) from error


def _sound(
    arrays: list[pa.Array], names: Sequence[str], first: int, known: Dictionaries
) -> pa.RecordBatch:
    """Return the columns as a batch whose texts are UTF-8 and whose dictionary codes have values. Raises BadTable."""
    found = []
    for name, array in zip(names, arrays, strict=True):
        try:
            if pa.types.is_dictionary(array.type):
                found.append(known.sound(array, name))
            else:
                array.validate(full=True)
                found.append(array)
        except DAMAGE as error:
            raise _damaged(array, name, first, error) from error
    return pa.RecordBatch.from_arrays(found, names=list(names))


def _damaged(array: pa.Array, name: str, first: int, error: pa.ArrowException) -> BadTable:
    """Name the row of the first text that is not UTF-8; without one, use Arrow's message."""
    if (binary := _as_binary(array)) is not None:
        for row, value in enumerate(binary.to_pylist(), start=first + 1):
            try:
                (value or b"").decode()
            except UnicodeDecodeError as wrong:
                detail = f"byte 0x{value[wrong.start]:02X} is not UTF-8"
                letters = show(value.decode("cp1252", "replace"))
                rule = f"row {row}: {detail} (as Windows-1252 it reads {letters})"
                return BadTable(rule, column=name)
    return BadTable(f"column {show(name)} is damaged: {brief(error)}", column=name)


def _as_binary(array: pa.Array) -> pa.Array | None:
    """Return None for other types, and for a column with invalid offsets."""
    if not is_text(array.type):
        return None
    kind = pa.binary() if pa.types.is_string(array.type) else pa.large_binary()
    binary = array.view(pa.binary_view() if pa.types.is_string_view(array.type) else kind)
    try:
        binary.validate(full=True)
    except DAMAGE:
        return None
    return binary


MAX_MESSAGES = 4096
"""Most messages of an Arrow stream in memory: each costs a visit to every column."""

_MAGIC, _END = b"ARROW1\0\0", b"ARROW1"
_FOOTER_LENGTH = struct.Struct("<i")
_NOT_COMPRESSED = -1
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3  # the fields of a RecordBatch that count here
_HEADER = 2  # of a Message
_ID, _DATA, _IS_DELTA = 0, 1, 2  # of a DictionaryBatch


@dataclass(frozen=True)
class Claims:
    """The size of an Arrow stream as its messages state it: rows, decompressed bytes, and values of dictionaries.

    Bytes and values of a dictionary count once for each batch that refers to it, because each batch is checked with it.
    `held` is the largest memory of one batch in addition to the bytes received: decompressed, with its dictionaries.
    """

    rows: int
    bytes: int
    values: int
    held: int


Whole = TypeVar("Whole", bytes, pa.Buffer)


def stream_of(file: Whole) -> Whole:
    """Return the stream inside an Arrow file. The footer is not used."""
    begin, end = bytes(file[: len(_MAGIC)]), bytes(file[max(0, len(file) - len(_END)) :])
    for says, what in ((begin == _MAGIC, "begin"), (end == _END, "end")):
        if not says:
            raise BadTable(
                f"the body cannot be read as an Arrow file: it does not {what} with ARROW1"
            )
    at = len(file) - len(_END) - _FOOTER_LENGTH.size
    (footer,) = _FOOTER_LENGTH.unpack_from(file, at)
    if not 0 <= footer <= at - len(_MAGIC):
        raise BadTable(
            f"the body cannot be read as an Arrow file: its footer declares {footer} bytes"
        )
    return file[len(_MAGIC) : at - footer]


def read_claims(stream: bytes | pa.Buffer, max_messages: int = MAX_MESSAGES) -> Claims:
    """Raise BadTable for bytes that are not a stream, and for too many messages."""
    rows = size = values = held = 0
    dictionaries: dict[int, tuple[int, int]] = {}  # values and bytes
    try:
        reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(stream))
        for number, message in enumerate(reader):
            if number >= max_messages:
                detail = f"an Arrow body can have at most {max_messages} messages, but has more"
                raise BadTable(f"{detail}: write larger batches", code="too_large")
            own = message.body.size if message.body is not None else 0
            header = _Table.root(message.metadata).table(_HEADER)
            if message.type == "dictionary":
                data, key = header.table(_DATA), header.number(_ID, "<q")
                own += _decompressed(data, message.body)
                is_delta = header.number(_IS_DELTA, "<b")
                count, taken = dictionaries.get(key, (0, 0)) if is_delta else (0, 0)
                # Arrow's reader takes the lengths of the nodes, and does not compare them with that of the batch.
                lengths = [_natural(length) for length, _ in data.pairs(_NODES)]
                dictionaries[key] = count + sum(lengths), taken + own
            elif message.type == "record batch":
                rows += _natural(header.number(_LENGTH, "<q"))
                more = _decompressed(header, message.body)
                for count, taken in dictionaries.values():
                    values += count
                    more += taken
                held = max(held, more)
                own += more
            size += own
    except (pa.ArrowException, OSError, struct.error) as error:
        raise BadTable(f"the body cannot be read as an Arrow stream: {error}") from error
    return Claims(rows, size, values, held)


def check_claims(
    stream: bytes | pa.Buffer,
    max_rows: int,
    max_bytes: int,
    max_messages: int = MAX_MESSAGES,
    setting: str = "",
) -> Claims:
    """Raise BadTable for a stream that claims more rows, or more bytes, received or as doubles."""
    claims = read_claims(stream, max_messages)
    if claims.rows > max_rows:
        raise too_many_rows(max_rows, claims.rows)
    if max(claims.bytes, claims.values * CELL_BYTES) > max_bytes:
        raise too_long(max_bytes, setting)
    return claims


def _natural(length: int) -> int:
    if length < 0:
        raise BadTable(f"a batch of an Arrow stream must have at least 0 values, got {length}")
    return length


def _decompressed(batch: _Table, body: pa.Buffer) -> int:
    if not batch.has(_COMPRESSION):
        return 0
    claimed = 0
    for offset, length in batch.pairs(_BUFFERS):
        if length > 0:
            (size,) = struct.unpack_from("<q", body, offset)
            if size < _NOT_COMPRESSED:
                raise BadTable(
                    f"a buffer of an Arrow stream declares {size} bytes after decompression"
                )
            claimed += max(size, 0)
    return claimed


@dataclass(frozen=True)
class _Table:
    """A FlatBuffer table at a position in its bytes. An offset outside the bytes raises struct.error."""

    data: bytes
    position: int

    @classmethod
    def root(cls, metadata: pa.Buffer) -> _Table:
        data = metadata.to_pybytes()
        return cls(data, cls._read(data, "<I", 0))

    @staticmethod
    def _read(data: bytes, form: str, position: int) -> int:
        if position < 0:  # which would count from the end
            raise struct.error("an offset points before the start of the message")
        (value,) = struct.unpack_from(form, data, position)
        return int(value)

    def _field(self, number: int) -> int:
        listed = self.position - self._read(self.data, "<i", self.position)
        size = self._read(self.data, "<H", listed)
        at = 4 + 2 * number
        offset = self._read(self.data, "<H", listed + at) if at + 2 <= size else 0
        return self.position + offset if offset else 0

    def has(self, field: int) -> bool:
        return self._field(field) != 0

    def number(self, field: int, form: str) -> int:
        """Return an integer field; 0 if it is absent."""
        position = self._field(field)
        return self._read(self.data, form, position) if position else 0

    def table(self, field: int) -> _Table:
        position = self._field(field)
        if not position:
            raise struct.error("a message has no header")
        return _Table(self.data, position + self._read(self.data, "<I", position))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        position = self._field(field)
        if not position:
            return []
        position += self._read(self.data, "<I", position)
        count = self._read(self.data, "<I", position)
        end = position + 4 + 16 * count
        if end > len(self.data):
            raise struct.error("a vector extends beyond its message")
        return list(struct.iter_unpack("<qq", self.data[position + 4 : end]))
