"""Columns of text: when they are categories, which are declared, what is left out, and what a category may be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ingest import columns as categories
from app.ingest import csv as delimited
from app.ingest import writer
from app.ingest.columns import DistinctCounter
from app.ingest.csv import CsvTable
from app.ingest.errors import BadTable
from app.ingest.profile import from_json
from tests.app.uploads import ARROW, PARQUET, Ready, halves, read
from tests.long_form import long_form, rest
from tests.raising import raises
from tests.sentences import Sentences

Read = Callable[..., Ready]
Refuse = Callable[..., BadTable]
NDJSON = "application/x-ndjson"

COLOURS = "n,colour,y\n1,red,0\n2, green ,1\n3,?,0\n4,red,1\n5,Red,0\n"


def test_text_is_categorical(ready: Read) -> None:
    table = ready(COLOURS)
    assert table.columns["colour"] == ["red", "green", None, "red", "Red"]
    assert table.column("colour") == {
        "name": "colour", "type": "categorical", "role": "feature", "missing": 1, "distinct": 3,
        "min": None, "max": None, "mean": None,
        "top": [{"value": "red", "count": 2}, {"value": "Red", "count": 1}, {"value": "green", "count": 1}],
    }  # fmt: skip


def test_categories_need_no_second_reading(ready: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any) -> Any:
        raise AssertionError("the exact reader was asked")

    monkeypatch.setattr(CsvTable, "parse_exactly", slow)
    assert ready(COLOURS + '6,"dark, red",1\n').column("colour")["distinct"] == 4


def test_ndjson_and_typed_formats_agree_with_csv(tmp_path: Path) -> None:
    rows = [
        {"n": 1, "colour": "red", "y": 0},
        {"n": 2, "colour": " green ", "y": 1},
        {"n": 3, "colour": None, "y": 0},
        {"n": 4, "colour": "red", "y": 1},
        {"n": 5, "colour": "Red", "y": 0},
    ]
    expected = read(tmp_path, COLOURS)
    answer = read(tmp_path, "\n".join(map(json.dumps, rows)), NDJSON)
    assert (answer.columns, answer.result["columns"]) == (
        expected.columns,
        expected.result["columns"],
    )
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.large_string())):
        schema = pa.schema([("n", pa.int64()), ("colour", kind), ("y", pa.int64())])
        table = pa.Table.from_pylist(rows, schema)
        for content_type in (PARQUET, ARROW):
            answer = read(tmp_path, halves(table, content_type), content_type)
            assert answer.columns == expected.columns
            assert answer.result["columns"] == expected.result["columns"]


def test_the_typed_table_keeps_text(
    ready: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP", 2000)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    ready("n,colour,y\n" + "".join(f"{i},c{i % 7},{i % 2}\n" for i in range(3000)))
    file = pq.ParquetFile(tmp_path / "work" / "table.parquet")
    assert file.num_row_groups == 2
    assert file.schema_arrow.field("colour").type == pa.dictionary(pa.int32(), pa.string())
    assert "RLE_DICTIONARY" in file.metadata.row_group(0).column(1).encodings
    last = file.read_row_group(1).column("colour")
    assert last[-1].as_py() == f"c{2999 % 7}"


def test_a_row_group_keeps_no_texts_of_those_before(
    ready: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP", 500)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    names = [f"name-{i}" for i in range(3000)]
    ready("n,name,y\n" + "".join(f"{i},{name},{i % 2}\n" for i, name in enumerate(names)))
    file = pq.ParquetFile(tmp_path / "work" / "table.parquet")
    groups = [file.read_row_group(i).column("name").combine_chunks() for i in range(6)]
    assert [name for group in groups for name in group.to_pylist()] == names
    assert max(len(group.dictionary) for group in groups) < 700  # and those of a block cut in two


# --- numbers or categories -----------------------------------------------------------------------


@pytest.mark.parametrize("late", ['"x, y"', *rest("x", "x y")])
def test_the_type_is_settled_over_all_rows(
    ready: Read, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column that begins with many missing values or numbers, and ends as text."""
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    rows = 2000
    empty = "n,a,y\n" + "".join(f"{i},,{i % 2}\n" for i in range(rows)) + f"1,{late},0\n"
    assert ready(empty).columns["a"][-1] == late.strip('"')
    numbers = "".join(f"{i},{i % 5},{i % 2}\n" for i in range(rows))
    mixed = ready("n,a,y\n" + numbers + f"1,{late},0\n" * (rows // 5))
    assert mixed.column("a")["type"] == "categorical"
    assert mixed.column("a")["distinct"] == 6
    assert mixed.column("n")["type"] == "numeric"


def test_text_first_and_numbers_later(
    refused: Refuse, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    """The first rows look like categories; all rows are numbers but for those."""
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    body = "n,a,y\n" + "1,x,0\n" * 200 + "".join(f"{i},{i},{i % 2}\n" for i in range(4000))
    error = refused(body)
    assert error.total == 200
    assert error.errors[0]["line"] == 2
    sentences(error.errors[0])


# --- declared columns ----------------------------------------------------------------------------


def test_lists_cannot_be_declared_categorical(tmp_path: Path, sentences: Sentences) -> None:
    body = halves(pa.table({"n": [1, 2], "a": [[1], [2]], "y": [0, 1]}), ARROW)
    with sentences.raises(BadTable):
        read(tmp_path, body, ARROW, categorical=["a"])


# --- columns that are left out -------------------------------------------------------------------


def test_dropped_columns_are_not_read(ready: Read) -> None:
    body = b'n,bad,a,y\n1,K\xf6ln,x,0\n2,1e999,y,1\n3,"\0",x,1\n'
    table = ready(body, drop=["bad"])
    assert list(table.columns) == ["n", "a", "y"]
    assert table.column("bad") == {
        "name": "bad",
        "role": "dropped",
        "type": None,
        "missing": None,
    }
    ragged = ready('a,bad,y\n1,"x\ny",0\n2," 1",1\n', drop=["bad"])
    assert ragged.columns == {"a": [1.0, 2.0], "y": [0, 1]}


# --- identifiers ---------------------------------------------------------------------------------


def people(rows: int, names: int) -> str:
    """A table with a name a row, of which so many differ."""
    return "n,name,y\n" + "".join(f"{i},person {i % names},{i % 2}\n" for i in range(rows))


@pytest.mark.parametrize(
    ("rows", "names", "role"),
    [(19, 19, "feature"), (20, 20, "identifier"), (100, 91, "identifier"), (100, 90, "feature")],
)
def test_text_that_hardly_repeats_is_an_identifier(
    ready: Read, rows: int, names: int, role: str
) -> None:
    table = ready(people(rows, names))
    profile = table.column("name")
    assert (profile["role"], profile["type"]) == (role, "categorical")
    assert profile["distinct"] == names
    assert ("top" in profile) == (role == "feature")
    assert len(table.columns["name"]) == rows  # kept to be looked at


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("customer_id", range(1000, 1030), "identifier"),
        ("account number", range(30), "identifier"),
        ("amount", range(30), "feature"),
        ("customer_id", range(19), "feature"),
        ("customer_id", [k // 2 for k in range(40)], "feature"),
        ("customer_id", [k + 0.5 for k in range(30)], "feature"),
        ("id", range(-1, 29), "feature"),
        *rest(
            ("PassengerId", range(1, 20_001), "identifier"),
            ("customer_id", [k % 15_000 for k in range(20_000)], "feature"),
        ),
    ],
)
def test_unique_numbers_named_as_ids_are_identifiers(
    ready: Read, name: str, values: Iterable[float], role: str
) -> None:
    rows = "".join(f"{value},{k % 7},{k % 2}\n" for k, value in enumerate(values))
    text = f"{name},a,y\n{rows}"
    found = ready(text)
    assert found.column(name)["role"] == role
    warned = [each["column"] for each in found.result["warnings"] if each["code"] == "identifier"]
    assert warned == [name] * (role == "identifier")
    assert ready(text, numeric=[name]).column(name)["role"] == "feature"


def test_identifiers_may_be_long_and_many(ready: Read) -> None:
    rows = 5_000
    body = "n,text,y\n" + "".join(f"{i},{'x' * 300}{i}\0,{i % 2}\n" for i in range(rows))
    table = ready(body, categories=100)
    assert table.column("text") == {
        "name": "text", "type": "categorical", "role": "identifier", "missing": 0, "distinct": 100,
        "distinct_is_bound": True, "min": None, "max": None, "mean": None,
    }  # fmt: skip


@given(distinct=st.integers(1, 60_000), repeats=st.integers(1, 3))
@settings(max_examples=5)
def test_distinct_values_are_counted_in_bounded_memory(distinct: int, repeats: int) -> None:
    counter = DistinctCounter()
    texts = [f"text {i}" for i in range(distinct)] * repeats
    for start in range(0, len(texts), 7_000):
        counter.add(pa.array(texts[start : start + 7_000]))
    assert counter.count == pytest.approx(distinct, rel=0.06 if distinct > 16_384 else 0)
    assert len(from_json(counter.state()["kept"], np.uint64)) <= counter.ROOM


# --- any table -----------------------------------------------------------------------------------


# --- limits ----------------------------------------------------------------------------------------


def test_a_category_that_is_too_long_is_missing(ready: Read) -> None:
    table = ready(f'n,a,y\n1,x,0\n2,"{"é" * 11}",1\n3,x,0\n4,z,1\n', category_length=10)
    assert table.columns["a"] == ["x", None, "x", "z"]
    (warning,) = table.result["warnings"]
    assert (warning["code"], warning["line"], warning["count"]) == (
        "values_taken_for_missing",
        3,
        1,
    )


@pytest.mark.parametrize("declared", [None, ["a"]])
@pytest.mark.parametrize("block", [1 << 21, 40])
def test_the_rarest_categories_are_pooled(
    ready: Read,
    monkeypatch: pytest.MonkeyPatch,
    declared: list[str] | None,
    block: int,
    sentences: Sentences,
) -> None:
    """They are missing, as each word is that a model does not know; of equally rare ones the later in text order."""
    monkeypatch.setattr(delimited, "BLOCK_BYTES", block)
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    words = [f"c{i % 11}" for i in range(40)] + ["often"] * 5
    body = "n,a,y\n" + "".join(f"{i},{word},{i % 2}\n" for i, word in enumerate(words))
    table = ready(body, categories=10, categorical=declared)
    # c0 to c6 come four times, c7 to c10 three times.
    assert table.columns["a"] == [None if word in ("c8", "c9") else word for word in words]
    assert table.column("a")["distinct"] == 10
    (warning,) = table.result["warnings"]
    assert (warning["code"], warning["column"], warning["count"]) == ("words_pooled", "a", 2)
    sentences(warning)
    assert warning["parameter"] == "drop"
    assert ready(body, categories=12, categorical=declared).result["warnings"] == []


def test_declared_identifiers_are_held_to_the_limit(ready: Read) -> None:
    table = ready(people(50, 50), categories=49, categorical=["name"])
    assert table.columns["name"].count(None) == 1


def test_of_words_without_number_those_that_come_first_are_counted(
    ready: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(categories, "MAX_WORDS", 20)
    monkeypatch.setattr(categories, "MAX_WAITING", 10)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 200)
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    words = [f"w{i}" for i in range(30)] * 3 + ["w1"] * 20
    body = "n,a,y\n" + "".join(f"{i},{word},{i % 2}\n" for i, word in enumerate(words))
    table = ready(body, categories=5)
    kept = [word for word in table.columns["a"] if word is not None]
    assert set(kept) <= set(words[:20])
    assert kept.count("w1") == 23
    assert len(set(kept)) == 5
    assert table.result["warnings"][0]["detail"].startswith("30 ")


def test_bytes_that_are_not_utf_8(refused: Refuse, sentences: Sentences) -> None:
    body = 'n,a,y\n1,Bonn,0\n2,"Köln\nRhein",1\n3,Ulm,0\n4,Fürth,1\n'.encode("latin-1")
    errors = refused(body).errors
    for error in errors:
        sentences(error.pop("detail"))
    assert errors == [
        {"line": 3, "column": "a", "suggestion": {"encoding": "windows-1252"}},
        {"line": 6, "column": "a"},
    ]


@pytest.mark.parametrize("content_type", [PARQUET, ARROW])
def test_coded_text_that_is_not_utf_8(tmp_path: Path, content_type: str) -> None:
    values = pa.array([b"Bonn", b"K\xf6ln", b"Ulm", b"Bonn"])
    texts = pa.Array.from_buffers(pa.string(), 4, values.buffers())
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0], pa.int32()), texts)
    body = halves(pa.table({"n": [1, 2, 3, 4], "a": array, "y": [0, 1, 0, 1]}), content_type)
    with pytest.raises(BadTable) as caught:
        read(tmp_path, body, content_type)
    (error,) = caught.value.errors
    assert error["column"] == "a"


@long_form
def test_long_values_of_a_dictionary_are_not_written_out(tmp_path: Path) -> None:
    """One value of 4 MB in 20,000 rows would be 80 GB."""
    array = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(20_000, dtype=np.int32)), pa.array(["x" * (4 << 20)])
    )
    labels = pa.array(np.arange(20_000) % 2)
    body = halves(pa.table({"n": labels, "a": array, "y": labels}), ARROW)
    with raises(BadTable, 255):
        read(tmp_path, body, ARROW, strict=True)
    assert set(read(tmp_path, body, ARROW).columns["a"]) == {None}


@pytest.mark.parametrize("role", ["label", "group"])
def test_long_labels_of_a_dictionary_are_not_written_out(
    tmp_path: Path, role: str, sentences: Sentences
) -> None:
    array = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(20_000, dtype=np.int32) % 2), pa.array(["x" * (4 << 20), "y"])
    )
    columns = {"n": range(20_000), "a": array, "label": pa.array(np.arange(20_000) % 2)}
    body = halves(pa.table(columns), ARROW)
    roles: dict[str, Any] = {role: "a"} | ({"drop": ["label"]} if role == "label" else {})
    with sentences.raises(BadTable):
        read(tmp_path, body, ARROW, **roles)


def test_values_that_only_differ_in_spaces_are_one(tmp_path: Path) -> None:
    array = pa.array([" u", "u", "u\t", "NA", "?"]).dictionary_encode()
    body = halves(pa.table({"n": [1, 2, 3, 4, 5], "a": array, "y": [0, 1, 0, 1, 0]}), PARQUET)
    table = read(tmp_path, body, PARQUET)
    assert table.columns["a"] == ["u", "u", "u", None, None]
    assert table.column("a")["distinct"] == 1
