"""Bytes that are not what they claim to be: cut, forged, compressed twice, declared as something else."""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.ingest.formats import ARROW, ARROW_FILE, CSV, NDJSON, PARQUET
from tests.app.ingest.corpus.case import SHORT, TYPED, Case, Refused, Table, column_of, typed_body

TABLE = pa.table({"a": [1.0, 2.0, 3.0], "t": ["u", "w", "u"], "y": [0, 1, 1]})
WHOLE = Table({"a": [1.0, 2.0, 3.0], "t": ["u", "w", "u"], "y": [0, 1, 1]})
CANNOT = {
    PARQUET: "the file cannot be read as Parquet",
    ARROW: "the body cannot be read as an Arrow stream",
    ARROW_FILE: "the body cannot be read as an Arrow file",
}


def in_every_format() -> Iterator[tuple[str, bytes]]:
    """Yield the same table in every format."""
    yield CSV, b"a,t,y\n1,u,0\n2,w,1\n3,u,1\n"
    yield NDJSON, b'{"a":1,"t":"u","y":0}\n{"a":2,"t":"w","y":1}\n{"a":3,"t":"u","y":1}\n'
    for content_type in TYPED:
        yield content_type, typed_body(TABLE, content_type)


def cut() -> Iterator[Case]:
    """Files that end too early, or that are of another format."""
    for content_type in TYPED:
        body = typed_body(TABLE, content_type)
        starts = {"nothing": 0, "a byte": 1, "eight bytes": 8, "a tenth": len(body) // 10}
        if content_type != ARROW:
            starts |= {
                "a half": len(body) // 2,
                "all but eight bytes": len(body) - 8,
                "all but a byte": len(body) - 1,
            }
        for name, end in starts.items():
            refusal = Refused(CANNOT[content_type])
            yield Case(f"{name} of a file", "damage is told", body[:end], refusal, content_type)
        others = [
            b"\0" * 100,
            b"a,y\n1,0\n2,1\n",
            b"PAR1",
            b"ARROW1\0\0",
        ]
        others += [typed_body(TABLE, other) for other in TYPED if other != content_type]
        for number, other in enumerate(others):
            refusal = Refused(CANNOT[content_type])
            yield Case(f"another format {number}", "damage is told", other, refusal, content_type)
        archive, refusal = b"PK\x03\x04" + b"\0" * 60, Refused("the ZIP archive is damaged")
        yield Case("a damaged archive", "damage is told", archive, refusal, content_type)
    stream = typed_body(TABLE, ARROW)
    schema = stream.index(b"\xff\xff\xff\xff", 8)
    refusal = Refused("row 1 cannot be read as Arrow")
    for name, body in (
        ("the half of a batch", stream[: (schema + len(stream)) // 2]),
        ("a message's length", stream[: schema + 6]),
    ):
        yield Case(f"{name} of a stream", "damage is told", body, refusal, ARROW)
    refusal = Refused("the Arrow stream has bytes after its end")
    for name, more in (("a byte", b"\n"), ("a stream", stream)):
        yield Case(f"{name} after a stream", "", stream + more, refusal, ARROW, beside=stream)
    refusal = Refused("the table has a header but no rows", code="no_rows")
    yield Case("the schema of a stream", "there are rows", stream[:schema], refusal, ARROW)


def forged() -> Iterator[Case]:
    """Lengths and counts that lie."""
    parquet = typed_body(TABLE, PARQUET)
    (length,) = struct.unpack("<I", parquet[-8:-4])
    for name, claim in (
        ("none", 0),
        ("too long", len(parquet)),
        ("huge", 0x7FFFFFFF),
        ("negative", 0xFFFFFFFF),
        ("short", length // 2),
    ):
        body = parquet[:-8] + struct.pack("<I", claim) + b"PAR1"
        refusal = Refused(CANNOT[PARQUET])
        yield Case(f"a footer's length that is {name}", "damage is told", body, refusal, PARQUET)
    for name, magic in (("encrypted", b"PARE"), ("another", b"PAR2")):
        refusal = Refused(CANNOT[PARQUET])
        yield Case(
            f"a footer that is {name}", "damage is told", parquet[:-4] + magic, refusal, PARQUET
        )
    zeros = parquet[:4] + b"\0" * (len(parquet) - length - 12) + parquet[-length - 8 :]
    refusal = Refused("row 1 cannot be read as Parquet")
    yield Case("pages of zeros", "damage is told", zeros, refusal, PARQUET)
    footer = parquet[: -length - 8] + b"\xff" * length + parquet[-8:]
    refusal = Refused(CANNOT[PARQUET])
    yield Case("a footer of ones", "damage is told", footer, refusal, PARQUET)
    rows = typed_body(pa.table({"a": range(1000), "y": [0, 1] * 500}), PARQUET, compression="none")
    (length,) = struct.unpack("<I", rows[-8:-4])
    said, more = b"\xd0\x0f", b"\xd0\x7f"  # 1,000 and 8,168 as Thrift writes them
    lied = rows[:-length] + rows[-length:].replace(said, more)
    refusal = Refused("the file declares 8168 rows, but has 1000")
    yield Case("more rows than there are", "", lied, refusal, PARQUET, beside=rows)
    for name, claim in (("huge", 0x7FFFFFF0), ("negative", 0xFFFFFFF0)):
        stream = typed_body(TABLE, ARROW)
        body = stream[:4] + struct.pack("<I", claim) + stream[8:]
        yield Case(
            f"a schema that is {name}", "damage is told", body, Refused(CANNOT[ARROW]), ARROW
        )
        second = stream.index(b"\xff\xff\xff\xff", 8)
        body = stream[: second + 4] + struct.pack("<I", claim) + stream[second + 8 :]
        refusal = Refused("row 1 cannot be read as Arrow")
        yield Case(f"a batch that is {name}", "damage is told", body, refusal, ARROW)
        file = typed_body(TABLE, ARROW_FILE)
        body = file[:-10] + struct.pack("<I", claim) + file[-6:]
        refusal = Refused(CANNOT[ARROW_FILE])
        yield Case(f"a footer that is {name}", "damage is told", body, refusal, ARROW_FILE)
    yield from arrays()


def arrays() -> Iterator[Case]:
    """Columns whose insides do not fit together: to read them unseen would read other memory."""
    rule = "arrays are sound"
    labels = pa.array([0, 1, 0, 1])
    for content_type in (ARROW, ARROW_FILE):
        for name, codes in (("beyond", [0, 1, 5, 0]), ("negative", [0, 1, -3, 0])):
            array = pa.DictionaryArray.from_arrays(
                pa.array(codes, pa.int32()), pa.array(["u", "v"]), safe=False
            )
            body = typed_body(pa.table({"n": range(4), "a": array, "y": labels}), content_type)
            refusal = Refused("column 'a' is damaged", None, "a")
            yield Case(f"codes that are {name}", rule, body, refusal, content_type)
        bad = pa.array([b"Bonn", b"K\xf6ln", None, b"Ulm"])
        for kind, wide in ((pa.string(), pa.binary()), (pa.large_string(), pa.large_binary())):
            array = pa.Array.from_buffers(kind, 4, bad.cast(wide).buffers())
            body = typed_body(pa.table({"n": range(4), "a": array, "y": labels}), content_type)
            refusal = Refused(
                "row 2: byte 0xF6 is not UTF-8 (as Windows-1252 it reads 'Köln')", None, "a"
            )
            yield Case(f"a {kind} that is no UTF-8", rule, body, refusal, content_type)
        for name, offsets in (
            ("backwards", [0, 4, 2, 6, 8]),
            ("beyond", [0, 2, 4, 1 << 30, 8]),
            ("negative", [0, -4, 2, 6, 8]),
        ):
            buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"u" * 8)]
            array = pa.Array.from_buffers(pa.string(), 4, buffers)
            body = typed_body(pa.table({"n": range(4), "a": array, "y": labels}), content_type)
            refusal = Refused("column 'a' is damaged", None, "a")
            yield Case(f"offsets that go {name}", rule, body, refusal, content_type)
    table = pa.table(
        {"n": range(4), "a": pa.Array.from_buffers(pa.string(), 4, bad.buffers()), "y": labels}
    )
    refusal = Refused("row 2: byte 0xF6 is not UTF-8 (as Windows-1252 it reads 'Köln')", None, "a")
    yield Case("a text that is no UTF-8", rule, typed_body(table, PARQUET), refusal, PARQUET)


def compressed() -> Iterator[Case]:
    """gzip and zstd around every format, sound and damaged."""
    for content_type, body in in_every_format():
        for codec in ("gzip", "zstd"):
            packed = pa.compress(body, codec=codec, asbytes=True)
            said = {"encoding": codec}
            yield Case(f"{codec}, said", "compression is undone", packed, WHOLE, content_type, said)
            yield Case(f"{codec}, not said", "compression is seen", packed, WHOLE, content_type)
            detail = f"the {codec} stream is damaged"
            ends = (len(packed) // 2, len(packed) - 1) if codec == "gzip" else (len(packed) // 2,)
            for end in ends:
                name = f"{end - len(packed)} bytes of {codec}"
                yield Case(
                    name, "damage is told", packed[:end], Refused(detail), content_type, said
                )
            other = {"gzip": "zstd", "zstd": "gzip"}[codec]
            refusal = Refused(f"the {other} stream is damaged")
            name = f"{codec}, said to be {other}"
            yield Case(name, "damage is told", packed, refusal, content_type, {"encoding": other})
            plain = Refused(detail)
            yield Case(
                f"plain, said to be {codec}", "damage is told", body, plain, content_type, said
            )
            if content_type != PARQUET:
                yield Case(
                    f"rubbish after {codec}",
                    "damage is told",
                    packed + b"rubbish",
                    Refused(detail),
                    content_type,
                    said,
                )
        half = len(body) // 2
        members = gzip.compress(body[:half]) + gzip.compress(b"") + gzip.compress(body[half:])
        yield Case("gzip in three members", "compression is seen", members, WHOLE, content_type)
        zstd = b"".join(
            pa.compress(part, codec="zstd", asbytes=True) for part in (body[:half], body[half:])
        )
        yield Case("zstd in two frames", "compression is seen", zstd, WHOLE, content_type)
        refusal = Refused("Content-Encoding must be gzip or zstd, got 'br'")
        yield Case("br", "known compression", body, refusal, content_type, {"encoding": "br"})
    empty = Refused("the file is empty: it must have a header and rows", 1)
    for codec in ("gzip", "zstd"):
        packed = pa.compress(b"", codec=codec, asbytes=True)
        yield Case(f"nothing in {codec}", "not empty", packed, empty)
        yield Case(f"no {codec} at all", "not empty", b"", empty, said={"encoding": codec})
    twice = gzip.compress(gzip.compress(b"a,y\n1,0\n2,1\n"))
    refusal = Refused("the gzip data are compressed again with gzip")
    yield Case("gzip in gzip", "compression is seen", twice, refusal)
    beside = column_of(["1", "2"])
    refusal = Refused("the content type must be one of text/csv")
    yield Case("a picture", "known format", beside, refusal, "image/png")


def pages() -> Iterator[Case]:
    """Parquet in all its ways to write a page."""
    sound = Table({"a": [1.0, 2.0, 3.0], "t": ["u", "w", "u"]})
    ways: dict[str, dict[str, object]] = {
        **{codec: {"compression": codec} for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4")},
        "version 1": {"version": "1.0"},
        "pages of version 2": {"data_page_version": "2.0"},
        "no dictionary": {"use_dictionary": False},
        "byte streams": {"use_dictionary": False, "column_encoding": {"a": "BYTE_STREAM_SPLIT"}},
        "deltas": {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY",
        "y": "DELTA_BINARY_PACKED"}},
        "groups of a row": {"row_group_size": 1},
        "no schema of Arrow": {"store_schema": False},
        "checksums": {"write_page_checksum": True},
    }  # fmt: skip
    for name, options in ways.items():
        sink = io.BytesIO()
        pq.write_table(TABLE, sink, **options)
        yield Case(f"Parquet with {name}", "floats", sink.getvalue(), sound, PARQUET)
    for codec in ("lz4", "zstd"):
        for content_type in (ARROW, ARROW_FILE):
            sink = io.BytesIO()
            new = pa.ipc.new_file if content_type == ARROW_FILE else pa.ipc.new_stream
            with new(
                sink, TABLE.schema, options=pa.ipc.IpcWriteOptions(compression=codec)
            ) as writer:
                writer.write_table(TABLE, max_chunksize=2)
            name = f"{SHORT[content_type]} of buffers in {codec}"
            yield Case(name, "floats", sink.getvalue(), sound, content_type)


CASES = [*cut(), *forged(), *compressed(), *pages()]
