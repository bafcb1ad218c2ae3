"""The plain bytes of an upload: decompressed, converted to UTF-8, and limited."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from app.ingest import archives
from app.ingest.errors import BadTable, brief

DAMAGE: tuple[type[Exception], ...] = (pa.ArrowException, OSError)
"""Exceptions that Arrow raises for damaged files."""
_DAMAGED: tuple[type[Exception], ...] = (*DAMAGE, EOFError, zlib.error)
"""Exceptions of the decoders."""

Look = Callable[[], object]

_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b"),
    # RFC 8878, 3.1.2: the first frame may be skippable.
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    archives.ZIP: re.compile(re.escape(archives.MAGIC)),
}
UNREAD_CODECS: Mapping[bytes, str] = {
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
    b"\xfd7zXZ\0": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xff\x06\0\0sNaPpY": "snappy",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "RAR",
}
"""The first bytes of compressed files that are not decompressed, and the name of the compression."""
_HEAD_BYTES = max(map(len, UNREAD_CODECS))
_PLAIN = "plain-"
PIECE = 16 << 20
MIN_RECODED = 1 << 16
_PIECE_BYTES = 1 << 20
CODECS = frozenset(_MAGIC)
DEFLATE = "deflate"
"""A coding of HTTP that only its header declares: zlib data."""
PLAIN = "identity"
"""The encoding of bytes that are not to be decompressed, whatever they begin with."""


class _Recoder:
    """Converts text of another encoding to UTF-8, piece by piece."""

    def __init__(self, codec: str) -> None:
        self._codec = codec
        self._decoder = codecs.getincrementaldecoder(codec)()
        self._ready = b""
        self._lines = 1
        self._after_return = False
        self._at_start = True
        self.ended = False

    def feed(self, stored: bytes) -> None:
        """Empty bytes mean the end."""
        self.ended = not stored
        try:
            text = self._decoder.decode(stored, final=self.ended)
        except UnicodeDecodeError as error:
            held = len(error.object) - len(stored)  # of the bytes before, an unfinished character
            self._count_lines(self._decoder.decode(stored[: max(0, error.start - held)]))
            raise BadTable(
                f"byte 0x{error.object[error.start]:02X} is not {self._codec} ({error.reason})",
                line=self._lines,
            ) from error
        if self._at_start and text:
            text, self._at_start = text.removeprefix("\ufeff"), False
        self._count_lines(text)
        self._ready += text.encode()

    def _count_lines(self, text: str) -> None:
        """Count LF, CR, or CRLF as one, even if it is split between two pieces."""
        split = self._after_return and text.startswith("\n")
        self._lines += text.count("\n") + text.count("\r") - text.count("\r\n") - split
        self._after_return = text.endswith("\r") if text else self._after_return

    def take(self, size: int) -> bytes:
        taken, self._ready = self._ready[:size], self._ready[size:]
        return taken


def map_file(path: Path) -> pa.Buffer:
    """Map a file into memory: only the used parts are read, and they can be evicted."""
    with pa.memory_map(str(path)) as file:
        return file.read_buffer()


def open_stored(stored: Path | bytes | pa.Buffer) -> pa.NativeFile:
    """Open bytes as stored, without decompression."""
    return pa.OSFile(str(stored)) if isinstance(stored, Path) else pa.BufferReader(stored)


def find_compression(stored: Path | bytes | pa.Buffer, encoding: str | None) -> str | None:
    """Return the declared compression, else the one of the first bytes; None for plain bytes. Raises BadTable for an
    unsupported one.
    """
    if encoding is None:
        with open_stored(stored) as file:
            head = file.read(_HEAD_BYTES)
        _refuse_unread(head)
        return next((name for name, magic in _MAGIC.items() if magic.match(head)), None)
    if encoding == PLAIN:
        return None
    if encoding not in CODECS and encoding != DEFLATE:
        raise BadTable(f"Content-Encoding must be gzip or zstd, got {encoding!r}")
    return encoding


def _refuse_unread(head: bytes) -> None:
    """Raise BadTable for a compression that is not supported."""
    if name := next((name for magic, name in UNREAD_CODECS.items() if head.startswith(magic)), ""):
        raise BadTable(
            f"the file is compressed with {name}; only gzip, zstd and ZIP are decompressed: unpack it, or "
            "compress it with one of them"
        )


class _Deflated:
    """Decompresses zlib data, piece by piece."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._decoder = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """Return no bytes only at the end. Raises EOFError and zlib.error."""
        while not self._decoder.eof:
            stored = self._decoder.unconsumed_tail or self._file.read(MIN_RECODED)
            if piece := self._decoder.decompress(stored, size):
                return piece
            if not stored:
                raise EOFError("the data end before the end of the stream")
        if self._decoder.unused_data or self._file.read(1):
            raise zlib.error("there are bytes after the end of the stream")
        return b""

    def close(self) -> None:
        """Do nothing: the file is not of this decoder."""


class Stream(io.RawIOBase):
    """Reads a stored upload once from the start: the only decoder of uploads and bodies. Undeclared compression is
    detected.

    A gzip stream is any number of members (RFC 1952, 2.2), of which zeros may follow the last; a zstd stream is any
    number of frames, also skippable ones.

    With a `codec` of Python, text is converted to UTF-8 without a byte order mark. `size` counts the plain bytes so
    far; `position` counts the stored bytes. `look` is called before each piece is read, and may raise an exception.
    """

    def __init__(
        self,
        stored: Path | bytes | pa.Buffer,
        encoding: str | None,
        max_bytes: int,
        codec: str | None = None,
        look: Look | None = None,
        setting: str = "",
    ) -> None:
        super().__init__()
        # Before any refusal: a stream is closed in any case.
        self._file = open_stored(stored)
        self._plain: Any = self._file
        encoding = find_compression(stored, encoding)
        if encoding == archives.ZIP:
            self._plain = archives.Member(self._file)
        elif encoding == "gzip":
            self._plain = gzip.GzipFile(fileobj=self._file, mode="rb")
        elif encoding == DEFLATE:
            self._plain = _Deflated(self._file)
        elif encoding:
            self._plain = pa.CompressedInputStream(self._file, encoding)
        self._encoding = encoding
        self._at_start = encoding is not None
        self._max_bytes = max_bytes
        self._setting = setting
        self._look = look
        self._recoder = _Recoder(codec) if codec else None
        self.size = 0

    @property
    def position(self) -> int:
        return self._file.tell() if not self._file.closed else 0

    def readable(self) -> bool:
        """Required by `io`."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Fewer bytes only at the end. The size may come from a damaged file, so it is not allocated at once."""
        pieces = []
        left = size if size >= 0 else self._max_bytes + 1
        while left > 0 and (piece := self._piece(min(left, PIECE))):
            pieces.append(piece)
            left -= len(piece)
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.size += len(data)
        if self.size > self._max_bytes:
            raise too_long(self._max_bytes, self._setting)
        return data

    def _piece(self, size: int) -> bytes:
        """Return UTF-8 text or plain bytes; none only at the end."""
        if self._look is not None:
            self._look()
        if self._recoder is None:
            return self._stored(size)
        while not (text := self._recoder.take(size)):
            if self._recoder.ended:
                return b""
            self._recoder.feed(self._stored(max(size, MIN_RECODED)))
        return text

    def _stored(self, size: int) -> bytes:
        """Raises BadTable for damaged bytes."""
        try:
            # A decoder may allocate all that it is asked for.
            stored: bytes = self._plain.read(min(size, _PIECE_BYTES))
        except _DAMAGED as error:
            if "too much memory" in str(error):
                raise BadTable(
                    "the zstd stream has a window of more than 128 MiB, which takes as much memory to read: compress "
                    "it without --long"
                ) from error
            what = self._encoding or "file"
            raise BadTable(f"the {what} stream is damaged: {brief(error)}") from error
        if self._at_start:
            self._at_start = False
            self._refuse_doubled(stored[:_HEAD_BYTES])
        return stored

    def _refuse_doubled(self, head: bytes) -> None:
        """Raise BadTable for bytes compressed twice; a ZIP archive may be a workbook."""
        _refuse_unread(head)
        if name := next((name for name in ("gzip", "zstd") if _MAGIC[name].match(head)), ""):
            raise BadTable(
                f"the {self._encoding} data are compressed again with {name}: compress the file once"
            )

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # io types it as any buffer
        """Required by io.BufferedReader."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def skip(self, count: int) -> None:
        """Skip `count` bytes."""
        while count > 0:
            count -= len(self.read(min(count, 1 << 20)))

    def close(self) -> None:
        if not self.closed:
            self._plain.close()
            self._file.close()
        super().close()


@dataclass(frozen=True)
class TableBytes:
    """An upload, in a file or in memory, with what is needed to open it."""

    stored: Path | bytes | pa.Buffer
    encoding: str | None
    max_bytes: int
    codec: str | None = None
    look: Look | None = None
    setting: str = ""
    """The name of the setting that limits the bytes."""

    def open(self) -> Stream:
        """Open the plain bytes from the start; with a codec, converted to UTF-8."""
        return Stream(
            self.stored, self.encoding, self.max_bytes, self.codec, self.look, self.setting
        )

    @property
    def size(self) -> int:
        return self.stored.stat().st_size if isinstance(self.stored, Path) else len(self.stored)


def too_long(max_bytes: int, setting: str = "") -> BadTable:
    """`setting` is the setting of the limit."""
    named = f" ({setting})" if setting else ""
    return BadTable(
        f"the table can have at most {max_bytes} bytes{named} after decompression; this one has more",
        code="too_large",
    )


def plain_bytes(
    stored: bytes | pa.Buffer, encoding: str | None, max_bytes: int
) -> bytes | pa.Buffer:
    """Decompress bytes in memory if they are declared or detected as compressed."""
    if find_compression(stored, encoding) is None:
        return stored
    with Stream(stored, encoding, max_bytes) as stream:
        return stream.read()


@contextmanager
def plain_file(
    path: Path,
    encoding: str | None,
    max_bytes: int,
    workdir: Path,
    look: Look | None = None,
    setting: str = "",
) -> Iterator[Path]:
    """Yield a file for random access: the upload itself, or a decompressed copy that is deleted at the end."""
    if find_compression(path, encoding) is None:
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix=_PLAIN, dir=workdir) as file:
        with Stream(path, encoding, max_bytes, look=look, setting=setting) as stream:
            while chunk := stream.read(1 << 20):
                file.write(chunk)
        file.flush()
        yield Path(file.name)
