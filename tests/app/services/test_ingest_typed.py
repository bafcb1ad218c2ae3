"""Parquet, Arrow and NDJSON: what a type or a line may be, and how their faults are told."""

from __future__ import annotations

import datetime
import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from uploads import read

from app.services.ingest import ndjson
from app.services.ingest.faults import ENOUGH, BadTable

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
    ("array", "values", "kind"),
    [
        (pa.array([1, None, -3], pa.int8()), [1.0, None, -3.0], "numeric"),
        (pa.array([1, 2, 2**53 + 1], pa.int64()), [1.0, 2.0, 2.0**53], "numeric"),
        (pa.array([1, 2, 2**64 - 1], pa.uint64()), [1.0, 2.0, 2.0**64], "numeric"),
        (pa.array([1.5, None, math.nan], pa.float64()), [1.5, None, None], "numeric"),
        (pa.array([0.1, 2, 3], pa.float32()), [pytest.approx(0.1, rel=1e-7), 2.0, 3.0], "numeric"),
        (pa.array([1, 2, 3], pa.float32()).cast(pa.float16()), [1.0, 2.0, 3.0], "numeric"),
        (pa.array([Decimal("1.25"), None, Decimal(-2)], pa.decimal128(9, 2)), [1.25, None, -2.0], "numeric"),
        (pa.array([True, None, False]), [1.0, None, 0.0], "boolean"),
        (pa.array([None, None, None], pa.null()), [None, None, None], "numeric"),
        (pa.array([7, 8, 7]).dictionary_encode(), [7.0, 8.0, 7.0], "numeric"),
    ],
)  # fmt: skip
def test_types_of_features(
    tmp_path: Path, content_type: str, array: pa.Array, values: list[Any], kind: str
) -> None:
    table = pa.table({"a": array, "y": ["n", "p", "p"]})
    ready = read(tmp_path, body_of(table, content_type), content_type)
    assert ready.columns["a"] == values
    assert ready.column("a")["type"] == kind
    assert ready.columns["y"] == [0, 1, 1]


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
@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (pa.array([datetime.timedelta(days=1)] * 3), "duration["),
        (pa.array([datetime.time(12)] * 3), "time64["),
        (pa.array([[1], [2], [3]]), "list<"),
        (pa.array([{"b": 1}] * 3), "struct<"),
        (pa.array([b"x"] * 3), "binary"),
    ],
)
def test_types_that_are_no_numbers(
    tmp_path: Path, content_type: str, array: pa.Array, shown: str
) -> None:
    table = pa.table({"ok": [1, 2, 3], "a": array, "y": [0, 1, 1]})
    with pytest.raises(BadTable) as caught:
        read(tmp_path, body_of(table, content_type), content_type)
    assert caught.value.detail.startswith("column 'a' has the type ")
    assert shown in caught.value.detail
    assert caught.value.errors[0]["column"] == "a"


@typed
def test_every_column_of_a_wrong_type_is_named(tmp_path: Path, content_type: str) -> None:
    table = pa.table({"s": [b"u", b"v"], "t": [[1], [2]], "a": [1, 2], "y": [0, 1]})
    with pytest.raises(BadTable) as caught:
        read(tmp_path, body_of(table, content_type), content_type)
    assert caught.value.code == "unsupported_type"
    assert "(2 such columns: 's', 't')" in caught.value.detail
    assert [fault["column"] for fault in caught.value.errors] == ["s", "t"]


@typed
def test_nested_label(tmp_path: Path, content_type: str) -> None:
    table = pa.table({"a": [1, 2], "y": [[1], [2]]})
    with pytest.raises(BadTable, match="must hold text, numbers or booleans, not list"):
        read(tmp_path, body_of(table, content_type), content_type)


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
def test_names(tmp_path: Path, content_type: str) -> None:
    table = pa.table({" a.b ": [1, 2], "a": [3, 4], "y": [0, 1]})
    ready = read(tmp_path, body_of(table, content_type), content_type)
    assert ready.columns == {"a.b": [1.0, 2.0], "a": [3.0, 4.0], "y": [0, 1]}
    same = pa.Table.from_arrays([pa.array([1, 2])] * 3, names=["a", "a", "y"])
    if content_type == ARROW:  # Parquet's writer knows no such table
        with pytest.raises(BadTable, match="column 1 and column 2"):
            read(tmp_path, body_of(same, content_type), content_type)


@typed
@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.3, 0.6, 0.8])
def test_files_that_are_cut_short(tmp_path: Path, content_type: str, share: float) -> None:
    body = body_of(pa.table({"a": [1, 2, 3], "y": [0, 1, 1]}), content_type)
    with pytest.raises(BadTable):
        read(tmp_path, body[: int(share * len(body))], content_type)


@typed
def test_flipped_bytes_are_refused_or_read_but_never_crash(
    tmp_path: Path, content_type: str
) -> None:
    body = body_of(pa.table({"a": [1.5, 2, 3], "y": [0, 1, 1]}), content_type)
    for place in range(0, len(body), 7):
        spoilt = body[:place] + bytes([body[place] ^ 0xFF]) + body[place + 1 :]
        try:
            read(tmp_path, spoilt, content_type)
        except BadTable:
            continue


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


@pytest.mark.parametrize(
    ("line", "column", "detail"),
    [
        ("[1, 2]", None, "the line must be a JSON object"),
        ('{"a": 1, "y": }', None, "the line is not JSON"),
        ('{"a": [1], "y": 1}', "a", "a value must be a number, a string, true, false or null"),
        ('{"a": "1e999", "y": 1}', "a", "'1e999' is beyond the range of a double"),
        ('{"a": 2, "y": 5}', "y", "'5' is a third value of the label, beside '0' and '1'"),
        ('{"a": 2}', "y", "the label is missing"),
        ('{"a": 1e999, "y": 1}', None, "the line is not JSON"),
        ('{"a": "\\ud800", "y": 1}', None, "the line is not JSON"),
    ],
)
def test_ndjson_faults(tmp_path: Path, line: str, column: str | None, detail: str) -> None:
    body = f'{{"a": 1, "y": 0}}\n\n{{"a": 2, "y": 1}}\n{line}\n'
    with pytest.raises(BadTable) as caught:
        read(tmp_path, body, NDJSON, strict=True)
    (fault,) = caught.value.errors
    assert fault["line"] == 4
    assert fault.get("column") == column
    assert fault["detail"].startswith(detail)


@pytest.mark.parametrize("body", ["", "\n\n", "{}\n", "not json\n", "3\n"])
def test_ndjson_without_columns(tmp_path: Path, body: str) -> None:
    with pytest.raises(BadTable):
        read(tmp_path, body, NDJSON)


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
