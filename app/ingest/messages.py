"""What the messages of an Arrow stream claim, read before Arrow makes room for it.

A few bytes can claim any number of rows (a column of nulls has no bytes at all), and a compressed buffer any size once
decompressed. Arrow believes both and allocates. Nothing here is decoded: the sizes stand in the messages' metadata, a
FlatBuffer whose layout Arrow's format fixes (Schema.fbs, Message.fbs), and at the head of each compressed buffer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pyarrow as pa

from app.ingest.errors import BadTable

MOST_MESSAGES = 4096
"""Of a table in memory: each costs a visit to every column."""

_MAGIC, _END = b"ARROW1\0\0", b"ARROW1"
_FOOTER_LENGTH = struct.Struct("<i")
_NOT_COMPRESSED = -1
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3  # the fields of a RecordBatch that count here
_HEADER = 2  # of a Message
_ID, _DATA, _IS_DELTA = 0, 1, 2  # of a DictionaryBatch


@dataclass(frozen=True)
class Claims:
    """Rows of all batches, bytes once decompressed, and values of dictionaries; what dictionaries hold is counted as
    often as a batch refers to them, for so often it is looked at.
    """

    rows: int
    bytes: int
    values: int


def stream_of(file: bytes) -> bytes:
    """Return the stream within an Arrow file: its messages, and not what the footer says of them."""
    for says, what in ((file.startswith(_MAGIC), "begin"), (file.endswith(_END), "end")):
        if not says:
            raise BadTable(
                f"the body cannot be read as an Arrow file: it does not {what} with ARROW1"
            )
    at = len(file) - len(_END) - _FOOTER_LENGTH.size
    (footer,) = _FOOTER_LENGTH.unpack_from(file, at)
    if not 0 <= footer <= at - len(_MAGIC):
        raise BadTable(
            f"the body cannot be read as an Arrow file: its footer claims {footer} bytes"
        )
    return file[len(_MAGIC) : at - footer]


def read_claims(stream: bytes) -> Claims:
    """Add up what the messages of a stream claim. Raises BadTable for what is no stream, or is in too many pieces."""
    rows = size = values = 0
    dictionaries: dict[int, tuple[int, int]] = {}  # values and bytes
    try:
        reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(stream))
        for number, message in enumerate(reader):
            if number >= MOST_MESSAGES:
                detail = f"an Arrow body may have at most {MOST_MESSAGES} messages, it has more"
                raise BadTable(f"{detail}: write larger batches", code="too_large")
            own = message.body.size if message.body is not None else 0
            header = _Table.root(message.metadata).table(_HEADER)
            if message.type == "dictionary":
                data = header.table(_DATA)
                key, length = header.number(_ID, "<q"), data.number(_LENGTH, "<q")
                own += _decompressed(data, message.body)
                is_delta = header.number(_IS_DELTA, "<b")
                count, taken = dictionaries.get(key, (0, 0)) if is_delta else (0, 0)
                dictionaries[key] = count + _natural(length), taken + own
            elif message.type == "record batch":
                rows += _natural(header.number(_LENGTH, "<q"))
                own += _decompressed(header, message.body)
                for count, taken in dictionaries.values():
                    values += count
                    own += taken
            size += own
    except (pa.ArrowException, OSError, struct.error) as error:
        raise BadTable(f"the body cannot be read as an Arrow stream: {error}") from error
    return Claims(rows, size, values)


def _natural(length: int) -> int:
    if length < 0:
        raise BadTable(f"a batch of an Arrow stream must have at least 0 rows, got {length}")
    return length


def _decompressed(batch: _Table, body: pa.Buffer) -> int:
    """Bytes that the compressed buffers of a batch claim to become."""
    if not batch.has(_COMPRESSION):
        return 0
    claimed = 0
    for offset, length in batch.pairs(_BUFFERS):
        if length > 0:
            (size,) = struct.unpack_from("<q", body, offset)
            if size < _NOT_COMPRESSED:
                raise BadTable(f"a buffer of an Arrow stream claims {size} bytes once decompressed")
            claimed += max(size, 0)
    return claimed


@dataclass(frozen=True)
class _Table:
    """A table of a FlatBuffer, by the place where it stands. What points elsewhere is a struct.error."""

    data: bytes
    place: int

    @classmethod
    def root(cls, metadata: pa.Buffer) -> _Table:
        data = metadata.to_pybytes()
        return cls(data, cls._read(data, "<I", 0))

    @staticmethod
    def _read(data: bytes, form: str, place: int) -> int:
        if place < 0:  # which would count from the end
            raise struct.error("an offset points before the message")
        (value,) = struct.unpack_from(form, data, place)
        return int(value)

    def _field(self, number: int) -> int:
        """Where a field stands; 0 where it is left out."""
        listed = self.place - self._read(self.data, "<i", self.place)
        size = self._read(self.data, "<H", listed)
        at = 4 + 2 * number
        offset = self._read(self.data, "<H", listed + at) if at + 2 <= size else 0
        return self.place + offset if offset else 0

    def has(self, field: int) -> bool:
        return self._field(field) != 0

    def number(self, field: int, form: str) -> int:
        """A number; one that is left out is 0."""
        place = self._field(field)
        return self._read(self.data, form, place) if place else 0

    def table(self, field: int) -> _Table:
        place = self._field(field)
        if not place:
            raise struct.error("a message lacks its header")
        return _Table(self.data, place + self._read(self.data, "<I", place))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """A vector of structs of two int64."""
        place = self._field(field)
        if not place:
            return []
        place += self._read(self.data, "<I", place)
        count = self._read(self.data, "<I", place)
        end = place + 4 + 16 * count
        if end > len(self.data):
            raise struct.error("a vector reaches beyond its message")
        return list(struct.iter_unpack("<qq", self.data[place + 4 : end]))
