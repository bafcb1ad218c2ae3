"""Parquet, Arrow and NDJSON: labels and groups of any type, row groups, limits; each type and line: corpus/."""

from __future__ import annotations

import io
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.ingest import arrow, ndjson
from app.ingest.arrow import ArrowFile, ArrowTable, ParquetTable, read_claims
from app.ingest.errors import MAX_COUNTED_ERRORS, BadTable, Errors
from app.ingest.stream import TableBytes
from tests.app.uploads import read
from tests.long_form import rest
from tests.sentences import Sentences

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
def test_errors_are_told_by_row(tmp_path: Path, content_type: str, sentences: Sentences) -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0, math.inf], "y": [0, 1, None, 2]})
    with pytest.raises(BadTable) as caught:
        read(tmp_path, body_of(table, content_type), content_type, strict=True)
    assert [error["column"] for error in caught.value.errors] == ["y", "y", "a"]
    for error in caught.value.errors:
        sentences(error)


@typed
def test_an_index_that_pandas_wrote_is_left_out(tmp_path: Path, content_type: str) -> None:
    index = "__index_level_0__"
    body = body_of(pa.table({"a": [1.5, 2.5], "y": [0, 1], index: [7, 9]}), content_type)
    table = read(tmp_path, body, content_type)
    (warning,) = table.result["warnings"]
    assert (warning["code"], warning["column"]) == ("column_without_name", index)
    assert set(table.columns) == {"a", "y"}
    kept = read(tmp_path, body, content_type, label="y", numeric=[index])
    assert kept.result["warnings"] == []
    assert kept.columns[index] == [7.0, 9.0]


def test_small_row_groups_are_read_together(tmp_path: Path) -> None:
    words = ["a", None, "b", "c"] * 50
    table = pa.table({"x": [*range(199), None], "word": words, "y": [0, 1] * 100})
    for size in (1, 3, 200):
        pq.write_table(table, tmp_path / "groups", row_group_size=size)
        source = ParquetTable(tmp_path / "groups", 10, 1 << 20)
        (rows,) = source.batches(Errors())
        word = rows.batch.column("word")
        plain = word.dictionary_decode() if pa.types.is_dictionary(word.type) else word
        assert plain.to_pylist() == words
        assert rows.batch.column("x").to_pylist() == table["x"].to_pylist()


@pytest.mark.parametrize("content_type", [PARQUET, *rest(ARROW, ARROW_FILE)])
def test_row_groups_become_one_table(tmp_path: Path, content_type: str) -> None:
    rows = 200_000
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
        *[65_536] * 3,
        rows - 3 * 65_536,
    ]
    assert "BYTE_STREAM_SPLIT" in written.row_group(0).column(0).encodings


# --- NDJSON --------------------------------------------------------------------------------------


def repeated(text: str, rows: int) -> pa.Table:
    """A table that says one long text in every row."""
    return pa.table({"a": pa.array([text] * rows), "y": [i % 2 for i in range(rows)]})


@pytest.mark.parametrize("encoding", ["PLAIN_DICTIONARY", "DELTA_BYTE_ARRAY"])
def test_texts_of_parquet_take_no_more_than_a_table(tmp_path: Path, encoding: str) -> None:
    words = encoding == "PLAIN_DICTIONARY"
    sink = io.BytesIO()
    table = repeated("x" * 1_000, 3_000)
    how: dict[str, Any] = {} if words else {"column_encoding": {"a": encoding}}
    pq.write_table(table, sink, compression="zstd", use_dictionary=["a"] if words else False, **how)
    body = sink.getvalue()
    assert len(body) < 20_000
    with pytest.raises(BadTable) as caught:
        read(tmp_path, body, PARQUET, label="y", bytes=2_000_000)
    assert caught.value.code == "too_large"
    assert read(tmp_path, body, PARQUET, label="y", bytes=4_000_000).result["rows"] == 3_000


def test_long_texts_of_parquet_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "PART_BYTES", 10_000)
    texts = [None if i % 7 == 0 else "é" * (i % 90) for i in range(500)]
    table = pa.table({"a": texts, "b": pa.array(texts, pa.large_string()), "n": range(500)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=200)
    source = ParquetTable(tmp_path / "t.parquet", 10, 1 << 20)
    parts = list(source.batches(Errors()))
    assert len(parts) > 6
    assert [part.first for part in parts] == [0, *np.cumsum([p.batch.num_rows for p in parts])[:-1]]
    assert pa.Table.from_batches([part.batch for part in parts]).equals(table)


@pytest.mark.parametrize("as_file", [False, True])
def test_a_dictionary_costs_in_proportion_to_the_rows(tmp_path: Path, as_file: bool) -> None:
    """A long dictionary under many short batches is not read anew for each."""
    words = pa.array([f"word {i}" for i in range(1_000)], pa.string_view())
    batches = [
        pa.record_batch(
            {"a": pa.DictionaryArray.from_arrays(pa.array([i, None], pa.int16()), words)}
        )
        for i in (5, 999, 0)
    ]
    path = tmp_path / "t.arrow"
    new = pa.ipc.new_file if as_file else pa.ipc.new_stream
    with path.open("wb") as file, new(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    source = (
        ArrowFile(path, 10, 1 << 20) if as_file else ArrowTable(TableBytes(path, None, 1 << 20), 10)
    )
    found = [rows.batch.column("a") for rows in source.batches(Errors())]
    assert [len(column.dictionary) for column in found] == [1, 1, 1]
    assert [column.to_pylist() for column in found] == [
        ["word 5", None],
        ["word 999", None],
        ["word 0", None],
    ]


def with_length(stream: bytes, length: int, *, of_node: bool) -> bytes:
    """Return a stream whose dictionary says that it has so many values: its batch, or the array in it."""
    (said,) = struct.unpack_from("<I", stream, 4)
    start = 8 + said  # of the second message, behind the schema
    root = start + 8 + struct.unpack_from("<I", stream, start + 8)[0]

    def field(table: int, number: int) -> int:
        listed = table - struct.unpack_from("<i", stream, table)[0]
        return table + int(struct.unpack_from("<H", stream, listed + 4 + 2 * number)[0])

    def follow(at: int) -> int:
        return at + int(struct.unpack_from("<I", stream, at)[0])

    batch = follow(field(follow(field(root, 2)), 1))
    at = follow(field(batch, 1)) + 4 if of_node else field(batch, 0)
    return stream[:at] + struct.pack("<q", length) + stream[at + 8 :]


def of_words(kind: pa.DataType) -> bytes:
    words = pa.array(["x", "y", "z"], kind)
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), words)
    return body_of(pa.table({"a": column}), ARROW)


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()])
def test_a_dictionary_of_a_negative_length_is_refused(kind: pa.DataType) -> None:
    body = with_length(of_words(kind), -1, of_node=True)
    with pytest.raises(BadTable):
        list(ArrowTable(TableBytes(body, None, 1 << 20), 10).batches(Errors()))
    with pytest.raises(BadTable):
        read_claims(body)


def test_the_values_of_a_dictionary_are_those_that_are_read() -> None:
    """What its batch says is not: Arrow's reader does not look at it."""
    body = of_words(pa.string())
    for length in (0, 3, 1 << 40):
        assert read_claims(with_length(body, length, of_node=False)) == read_claims(body)


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


def test_an_endless_line_of_ndjson(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    monkeypatch.setattr(ndjson, "MAX_LINE_LENGTH", 1000)
    body = '{"a": 1, "y": 0}\n{"a": "' + "x" * (3 << 20)
    with sentences.raises(BadTable) as caught:
        read(tmp_path, body, NDJSON)
    assert caught.value.errors[0]["line"] == 2


def test_ndjson_is_given_up_after_ten_thousand_errors(tmp_path: Path) -> None:
    with pytest.raises(BadTable) as refusal:
        read(tmp_path, "x\n" * 12_000 + '{"y": 1}\n', content_type=NDJSON)
    assert refusal.value.total == MAX_COUNTED_ERRORS
