"""Parquet, Arrow and NDJSON: labels and groups of any type, row groups, limits; each type and line: corpus/."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.ingest import ndjson
from app.ingest.errors import MAX_COUNTED_ERRORS, BadTable
from tests.app.uploads import read

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
def test_errors_are_told_by_row(tmp_path: Path, content_type: str) -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0, math.inf], "y": [0, 1, None, 2]})
    with pytest.raises(BadTable) as caught:
        read(tmp_path, body_of(table, content_type), content_type, strict=True)
    assert [(error["column"], error["detail"].split(",")[0]) for error in caught.value.errors] == [
        ("y", "row 3: the label is missing"),
        ("y", "row 4: '2' is a third value of the label"),
        ("a", "row 4: 'inf' is not a finite number"),
    ]


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
    monkeypatch.setattr(ndjson, "MAX_LINE_LENGTH", 1000)
    body = '{"a": 1, "y": 0}\n{"a": "' + "x" * (3 << 20)
    with pytest.raises(BadTable, match="a line must be shorter than 1000 bytes") as caught:
        read(tmp_path, body, NDJSON)
    assert caught.value.errors[0]["line"] == 2


def test_ndjson_is_given_up_after_ten_thousand_errors(tmp_path: Path) -> None:
    with pytest.raises(BadTable) as refusal:
        read(tmp_path, "x\n" * 12_000 + '{"y": 1}\n', content_type=NDJSON)
    assert refusal.value.total == MAX_COUNTED_ERRORS
