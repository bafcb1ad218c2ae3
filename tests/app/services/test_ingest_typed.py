"""Parquet, Arrow and NDJSON: labels and groups of any type, row groups, limits; each type and line: corpus/."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from uploads import read

from app.ingest import ndjson
from app.ingest.errors import ENOUGH, BadTable

PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
ARROW_FILE = "application/vnd.apache.arrow.file"
NDJSON = "application/x-ndjson"


def body_of(table: pa.Table, content_type: str) -> bytes:
    """Serialise a table."""
    sink = io.BytesIO()
    if content_type == PARQUET:
        pq.write_table(table, sink, row_group_size=2)
    else:
        new = pa.ipc.new_file if content_type == ARROW_FILE else pa.ipc.new_stream
        with new(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


typed = pytest.mark.parametrize("content_type", [PARQUET, ARROW, ARROW_FILE])


@typed
@pytest.mark.parametrize(
    ("array", "pair"),
    [
        (pa.array([0, 1, 1]), ("0", "1")),
        (pa.array([0.0, 1.0, 1.0]), ("0", "1")),
        (pa.array([-0.5, 1.0, 1.0]), ("-0.5", "1")),
        (pa.array([False, True, True]), ("false", "true")),
        (pa.array(["a", " b", "b"]), ("a", "b")),
        (pa.array(["a", "b", "b"], pa.large_string()), ("a", "b")),
        (pa.array(["a", "b", "b"]).dictionary_encode(), ("a", "b")),
        (pa.array([0, 1, 1], pa.float32()).cast(pa.float16()), ("0", "1")),
    ],
)
def test_types_of_labels_and_groups(
    tmp_path: Path, content_type: str, array: pa.Array, pair: tuple[str, str]
) -> None:
    table = pa.table({"a": [1, 2, 3], "g": array, "y": array})
    ready = read(tmp_path, body_of(table, content_type), content_type, group="g")
    assert (ready.result["negative"], ready.result["positive"]) == pair
    assert ready.columns["y"] == [0, 1, 1]
    assert ready.columns["g"] == [pair[0], pair[1], pair[1]]


@typed
def test_faults_are_told_by_row(tmp_path: Path, content_type: str) -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0, math.inf], "y": [0, 1, None, 2]})
    with pytest.raises(BadTable) as caught:
        read(tmp_path, body_of(table, content_type), content_type, strict=True)
    assert [(fault["column"], fault["detail"].split(",")[0]) for fault in caught.value.errors] == [
        ("y", "row 3: the label is missing"),
        ("y", "row 4: '2' is a third value of the label"),
        ("a", "row 4: 'inf' is not a finite number"),
    ]


@typed
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed_as_a_whole(tmp_path: Path, content_type: str, codec: str) -> None:
    body = body_of(pa.table({"a": [1, 2, 3], "y": [0, 1, 1]}), content_type)
    packed = pa.compress(body, codec=codec, asbytes=True)
    ready = read(tmp_path, packed, content_type, encoding=codec)
    assert ready.columns == {"a": [1.0, 2.0, 3.0], "y": [0, 1, 1]}
    assert not (tmp_path / "work" / "plain").exists()


@typed
def test_limits(tmp_path: Path, content_type: str) -> None:
    body = body_of(pa.table({"a": [1, 2, 3], "b": [1, 2, 3], "y": [0, 1, 1]}), content_type)
    with pytest.raises(BadTable, match="at most 2 rows"):
        read(tmp_path, body, content_type, rows=2)
    with pytest.raises(BadTable, match="at most 2 columns, got 3"):
        read(tmp_path, body, content_type, columns=2)


@typed
def test_empty_tables(tmp_path: Path, content_type: str) -> None:
    empty = pa.table({"a": pa.array([], pa.int64()), "y": pa.array([], pa.int64())})
    with pytest.raises(BadTable, match="no rows"):
        read(tmp_path, body_of(empty, content_type), content_type)
    with pytest.raises(BadTable):
        read(tmp_path, body_of(pa.table({}), content_type), content_type)


@typed
def test_row_groups_become_one_table(tmp_path: Path, content_type: str) -> None:
    rows = 300_000
    table = pa.table({"a": pa.array(range(rows)), "y": pa.array([i % 2 for i in range(rows)])})
    sink = io.BytesIO()
    if content_type == PARQUET:
        pq.write_table(table, sink, row_group_size=70_000)
    else:
        new = pa.ipc.new_file if content_type == ARROW_FILE else pa.ipc.new_stream
        with new(sink, table.schema) as writer:
            writer.write_table(table)
    ready = read(tmp_path, sink.getvalue(), content_type)
    assert ready.columns["a"] == [float(i) for i in range(rows)]
    written = pq.ParquetFile(tmp_path / "work" / "table.parquet").metadata
    assert [written.row_group(i).num_rows for i in range(written.num_row_groups)] == [
        *[65_536] * 4,
        rows - 4 * 65_536,
    ]
    assert "BYTE_STREAM_SPLIT" in written.row_group(0).column(0).encodings


# --- NDJSON --------------------------------------------------------------------------------------


def test_ndjson(tmp_path: Path) -> None:
    body = (
        '{"a": 1, "b": true, "y": "no"}\r\n\n'
        '{"y": "yes", "a": 1.5, "c": -2e3}\n'
        '{"a": "7", "b": null, "y": "yes", "c": "NA"}'
    )
    ready = read(tmp_path, body, NDJSON, label="y")
    assert ready.columns == {
        "a": [1.0, 1.5, 7.0],
        "b": [1.0, None, None],
        "c": [None, -2000.0, None],
        "y": [0, 1, 1],
    }
    assert [column["name"] for column in ready.result["columns"]] == ["a", "b", "y", "c"]


def test_an_endless_line_of_ndjson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "MAX_RECORD", 1000)
    body = '{"a": 1, "y": 0}\n{"a": "' + "x" * (3 << 20)
    with pytest.raises(BadTable, match="a line must be shorter than 1000 bytes") as caught:
        read(tmp_path, body, NDJSON)
    assert caught.value.errors[0]["line"] == 2


def test_unknown_content_type_and_encoding(tmp_path: Path) -> None:
    with pytest.raises(BadTable, match="the content type must be one of text/csv"):
        read(tmp_path, "a,y\n", "image/png")
    with pytest.raises(BadTable, match="must be gzip or zstd, got 'br'"):
        read(tmp_path, "a,y\n", encoding="br")


def test_ndjson_is_given_up_after_ten_thousand_faults(tmp_path: Path) -> None:
    with pytest.raises(BadTable) as refusal:
        read(tmp_path, "x\n" * 12_000 + '{"y": 1}\n', content_type=NDJSON)
    assert refusal.value.total == ENOUGH
