"""The one decoder of uploads and bodies: every complete stream of gzip, zstd and deflate is read as a whole, and what
is not read is refused by its name.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib

import pyarrow as pa
import pytest

from app.ingest.errors import BadTable
from app.ingest.stream import Stream
from tests.sentences import Sentences

TEXT = b"a,y\n" + b"".join(b"%d,%d\n" % (i, i % 2) for i in range(100))
PARTS = TEXT[:150], TEXT[150:]


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


def frame(data: bytes, window_log: int) -> bytes:
    """A zstd frame of one raw block (RFC 8878, 3.1.1), with a window of 2 to the `window_log` bytes."""
    head = b"\x28\xb5\x2f\xfd\0" + bytes([(window_log - 10) << 3])
    return head + (len(data) << 3 | 1).to_bytes(3, "little") + data


def skippable(count: int) -> bytes:
    return b"\x50\x2a\x4d\x18" + count.to_bytes(4, "little") + b"x" * count


MEMBERS = b"".join(map(gzip.compress, PARTS))


@pytest.mark.parametrize(
    ("packed", "declared"),
    {
        "gzip": (gzip.compress(TEXT), "gzip"),
        "gzip, two members": (MEMBERS, "gzip"),
        "gzip, an empty member first": (gzip.compress(b"") + MEMBERS, "gzip"),
        "gzip, an empty member last": (MEMBERS + gzip.compress(b""), "gzip"),
        "gzip, zeros after the last member": (MEMBERS + b"\0" * 512, "gzip"),
        "deflate": (zlib.compress(TEXT), "deflate"),
        "zstd": (zstd(TEXT), "zstd"),
        "zstd, two frames": (b"".join(map(zstd, PARTS)), "zstd"),
        "zstd, a skippable frame first": (skippable(12) + zstd(TEXT), "zstd"),
        "zstd, a skippable frame last": (zstd(TEXT) + skippable(12), "zstd"),
        "zstd, a window of 128 MiB": (frame(TEXT, 27), "zstd"),
    }.values(),
)
def test_complete_streams(packed: bytes, declared: str) -> None:
    for encoding in {declared, None} - ({None} if declared == "deflate" else set()):
        for size in (7, 1 << 20):
            with Stream(packed, encoding, 1 << 20) as stream:
                found = b"".join(iter(lambda: stream.read(size), b""))  # noqa: B023 - called at once
            assert found == TEXT


@pytest.mark.parametrize(
    ("packed", "encoding", "word"),
    {
        "a cut member": (MEMBERS[:-30], "gzip", "damaged"),
        "bytes after the last member": (MEMBERS + b"x", "gzip", "damaged"),
        "cut zlib data": (zlib.compress(TEXT)[:-3], "deflate", "damaged"),
        "bytes after zlib data": (zlib.compress(TEXT) + b"x", "deflate", "damaged"),
        "a cut frame": (zstd(TEXT)[:-3], "zstd", "damaged"),
        "a window of 256 MiB": (frame(TEXT, 28), None, "128 MiB"),
        "a window of 2 GiB": (frame(TEXT, 31), "zstd", "128 MiB"),
        "gzip within gzip": (gzip.compress(MEMBERS), "gzip", "again"),
        "zstd within gzip": (gzip.compress(zstd(TEXT)), None, "again"),
        "bzip2": (bz2.compress(TEXT), None, "bzip2"),
        "bzip2 within gzip": (gzip.compress(bz2.compress(TEXT)), None, "bzip2"),
        "xz": (lzma.compress(TEXT), None, "xz"),
    }.values(),
)
def test_what_is_not_read_is_named(
    packed: bytes, encoding: str | None, word: str, sentences: Sentences
) -> None:
    with sentences.raises(BadTable) as refused, Stream(packed, encoding, 1 << 20) as stream:
        stream.read()
    assert word in str(refused.value)
