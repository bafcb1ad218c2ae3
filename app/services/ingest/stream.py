"""The plain bytes of an upload: decompressed, counted, and refused beyond the limit."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from app.services.ingest.faults import BadTable

_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_PIECE = 16 << 20
CODECS = frozenset(_MAGIC.values())


class Stream(io.RawIOBase):
    """Reads a file once, from the start. What is compressed but does not say so is recognised by its first bytes.

    `size` counts the plain bytes so far and `quotes` the `"` among them; `position` is the place in the file.
    """

    def __init__(self, path: Path, encoding: str | None, max_bytes: int) -> None:
        super().__init__()
        with path.open("rb") as file:
            head = file.read(4)
        if encoding is None:
            encoding = next(
                (name for magic, name in _MAGIC.items() if head.startswith(magic)), None
            )
        elif encoding not in CODECS:
            raise BadTable(f"Content-Encoding must be gzip or zstd, got {encoding!r}")
        self._file = pa.OSFile(str(path))
        self._plain = pa.CompressedInputStream(self._file, encoding) if encoding else self._file
        self._encoding = encoding
        self._max_bytes = max_bytes
        self.size = 0
        self.quotes = 0

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        return self._file.tell() if not self._file.closed else 0

    def readable(self) -> bool:
        """Say yes: `io` asks."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes; fewer only at the end. A damaged file may ask for any number of them."""
        pieces = []
        left = size if size >= 0 else self._max_bytes + 1
        try:
            while left > 0 and (piece := self._plain.read(min(left, _PIECE))):
                pieces.append(piece)
                left -= len(piece)
        except OSError as error:
            raise BadTable(f"the {self._encoding or 'file'} stream is damaged: {error}") from error
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.size += len(data)
        if self.size > self._max_bytes:
            raise BadTable(
                f"the table must be at most {self._max_bytes} bytes once decompressed; it is longer",
                code="too_large",
            )
        self.quotes += data.count(b'"')
        return data

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]  # io types it as any buffer
        """Fill a buffer, for io.BufferedReader."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def skip(self, count: int) -> None:
        """Read past so many bytes."""
        while count > 0:
            count -= len(self.read(min(count, 1 << 20)))

    def close(self) -> None:
        """Close the file beneath as well."""
        if not self.closed:
            self._plain.close()
            self._file.close()
        super().close()


@contextmanager
def plain_file(path: Path, encoding: str | None, max_bytes: int, workdir: Path) -> Iterator[Path]:
    """Give a file that allows random access: the upload itself, or a decompressed copy while the block lasts."""
    if encoding is None:
        yield path
        return
    copy = workdir / "plain"
    try:
        with Stream(path, encoding, max_bytes) as stream, copy.open("wb") as file:
            while chunk := stream.read(1 << 20):
                file.write(chunk)
        yield copy
    finally:
        copy.unlink(missing_ok=True)
