"""Columns of text: when they are categories, which are declared, and what is left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uploads import ARROW, PARQUET, Ready, halves, read

from app.ingest import columns, writer
from app.ingest import csv as delimited
from app.ingest.columns import DistinctCounter
from app.ingest.csv import CsvTable
from app.ingest.errors import BadTable

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

    monkeypatch.setattr(CsvTable, "_parse_exactly", slow)
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
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(delimited, "_COLUMN_BYTES", 1)
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
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(delimited, "_COLUMN_BYTES", 1)
    names = [f"name-{i}" for i in range(3000)]
    ready("n,name,y\n" + "".join(f"{i},{name},{i % 2}\n" for i, name in enumerate(names)))
    file = pq.ParquetFile(tmp_path / "work" / "table.parquet")
    groups = [file.read_row_group(i).column("name").combine_chunks() for i in range(6)]
    assert [name for group in groups for name in group.to_pylist()] == names
    assert max(len(group.dictionary) for group in groups) < 700  # and those of a block cut in two


# --- numbers or categories -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2", "3"], "numeric"),
        (["1", "2", "XL"], "categorical"),
        (["true", "false", "maybe"], "categorical"),
        (["true", "FALSE", ""], "boolean"),
        (["1", "x", "true"], "categorical"),
        (["", "", ""], "numeric"),
        (["12", "1.5e3", "7"], "numeric"),
        (["a,5", "b", "c"], "categorical"),
        (["2024-01-31", "2024-02-01", "2024-01-31"], "datetime"),
        (["2024-01-31", "2024-02-01", "soon"], "categorical"),
        (["1"] * 9 + ["x"], "categorical"),
    ],
)
def test_types(ready: Read, values: list[str], kind: str) -> None:
    rows = "".join(f'{i},"{value}",{i % 2}\n' for i, value in enumerate(values))
    assert ready("n,a,y\n" + rows).column("a")["type"] == kind


@pytest.mark.parametrize("late", ["x", "x y", '"x, y"'])
def test_the_type_is_settled_over_all_rows(
    ready: Read, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column that begins with many missing values or numbers, and ends as text."""
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(delimited, "_COLUMN_BYTES", 1)
    rows = 2000
    empty = "n,a,y\n" + "".join(f"{i},,{i % 2}\n" for i in range(rows)) + f"1,{late},0\n"
    assert ready(empty).columns["a"][-1] == late.strip('"')
    numbers = "".join(f"{i},{i % 5},{i % 2}\n" for i in range(rows))
    mixed = ready("n,a,y\n" + numbers + f"1,{late},0\n" * (rows // 5))
    assert mixed.column("a")["type"] == "categorical"
    assert mixed.column("a")["distinct"] == 6
    assert mixed.column("n")["type"] == "numeric"


def test_text_first_and_numbers_later(refused: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows look like categories; all rows are numbers but for those."""
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(delimited, "_COLUMN_BYTES", 1)
    body = "n,a,y\n" + "1,x,0\n" * 200 + "".join(f"{i},{i},{i % 2}\n" for i in range(4000))
    error = refused(body)
    assert error.total == 200
    assert error.errors[0]["line"] == 2
    assert error.errors[0]["detail"].startswith("'x' is not a number, as nearly all values are")


@pytest.mark.parametrize("values", [["1,5", "2,5", "3"], ["1", "inf", "2"], ["1e999", "2", "3"]])
def test_what_is_meant_as_a_number_makes_no_category(refused: Refuse, values: list[str]) -> None:
    rows = "".join(f'{i},"{value}",{i % 2}\n' for i, value in enumerate(values))
    assert refused("n,a,y\n" + rows).errors[0]["column"] == "a"


# --- declared columns ----------------------------------------------------------------------------


def test_codes_that_are_declared_categorical(tmp_path: Path) -> None:
    csv = "code,n,y\n007,1,0\n7,2,1\n7,3,0\n,4,1\n"
    assert read(tmp_path, csv).column("code")["type"] == "numeric"
    table = read(tmp_path, csv, categorical=["code"])
    assert table.columns["code"] == ["007", "7", "7", None]
    assert table.column("code")["type"] == "categorical"


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([7, 8, None]), ["7", "8", None]),
        (pa.array([7.0, 2.5, None]), ["7", "2.5", None]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array([Decimal("7.0"), Decimal("2.5"), None]), ["7", "2.5", None]),
        (pa.array([7, 8, None]).dictionary_encode(), ["7", "8", None]),
        (pa.array(["a", "a", "b"]), ["a", "a", "b"]),
        (pa.array([19_000, 19_001, 19_000], pa.date32()), ["2022-01-08", "2022-01-09", "2022-01-08"]),
        (pa.array([None, None, None], pa.null()), [None, None, None]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("content_type", [PARQUET, ARROW])
def test_typed_columns_that_are_declared_categorical(
    tmp_path: Path, array: pa.Array, values: list[str], content_type: str
) -> None:
    body = halves(pa.table({"n": [1, 2, 3], "a": array, "y": [0, 1, 1]}), content_type)
    table = read(tmp_path, body, content_type, categorical=["a"])
    assert table.columns["a"] == values
    assert table.column("a")["type"] == "categorical"


def test_numbers_of_json_that_are_declared_categorical(tmp_path: Path) -> None:
    body = (
        '{"a":3,"n":1,"y":0}\n{"a":3.0,"n":1,"y":1}\n{"a":"3","n":1,"y":1}\n{"a":2.5,"n":1,"y":1}'
    )
    table = read(tmp_path, body + '\n{"a":true,"n":1,"y":1}', NDJSON, categorical=["a"])
    assert table.columns["a"] == ["3", "3", "3", "2.5", "true"]


def test_lists_cannot_be_declared_categorical(tmp_path: Path) -> None:
    body = halves(pa.table({"n": [1, 2], "a": [[1], [2]], "y": [0, 1]}), ARROW)
    with pytest.raises(BadTable, match="must hold text, numbers or booleans, not list"):
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


@pytest.mark.parametrize("content_type", [PARQUET, ARROW])
def test_dropped_columns_may_have_any_type(tmp_path: Path, content_type: str) -> None:
    body = halves(pa.table({"n": [1, 2], "a": [[1], [2]], "y": [0, 1]}), content_type)
    assert read(tmp_path, body, content_type, drop=["a"]).columns == {"n": [1.0, 2.0], "y": [0, 1]}


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


def test_an_identifier_that_is_declared_is_a_feature(ready: Read) -> None:
    assert ready(people(50, 50), categorical=["name"]).column("name")["role"] == "feature"


def test_identifiers_may_be_long_and_many(ready: Read) -> None:
    rows = 30_000
    body = "n,text,y\n" + "".join(f"{i},{'x' * 300}{i}\0,{i % 2}\n" for i in range(rows))
    table = ready(body, categories=100)
    assert table.column("text") == {
        "name": "text", "type": "categorical", "role": "identifier", "missing": 0, "distinct": 100,
        "min": None, "max": None, "mean": None,
    }  # fmt: skip


def test_nothing_but_identifiers(refused: Refuse) -> None:
    error = refused("name,y\n" + "".join(f"p{i},{i % 2}\n" for i in range(30)))
    assert error.code == "no_features"
    assert "nearly every row has its own value in 'name'" in error.detail
    assert error.errors[0]["column"] == "name"


@given(distinct=st.integers(1, 60_000), repeats=st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_distinct_values_are_counted_in_bounded_memory(distinct: int, repeats: int) -> None:
    counter = DistinctCounter()
    texts = [f"text {i}" for i in range(distinct)] * repeats
    for start in range(0, len(texts), 7_000):
        counter.add(pa.array(texts[start : start + 7_000]))
    assert counter.count == pytest.approx(distinct, rel=0.06 if distinct > 16_384 else 0)
    assert len(counter._kept) <= counter._ROOM


# --- any table -----------------------------------------------------------------------------------

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
cells = st.none() | words.map(lambda text: "w" + text.strip(" \t"))


@given(values=st.lists(cells, min_size=2, max_size=30).filter(any))
@settings(max_examples=60, deadline=None)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, values: list[str | None]) -> None:
    folder = tmp_path_factory.mktemp("upload")
    labels = [i % 2 for i in range(len(values))]
    table = pa.table({"n": labels, "a": pa.array(values, pa.string()), "y": labels})
    lines = [json.dumps(row) for row in table.to_pylist()]
    tidy = [None if value is None else value.strip(" \t") for value in values]
    for body, content_type in (
        (halves(table, PARQUET), PARQUET),
        (halves(table, ARROW), ARROW),
        ("\n".join(lines).encode(), NDJSON),
    ):
        ready = read(folder, body, content_type, categorical=["a"])
        assert ready.columns["a"] == tidy
        assert ready.column("a")["missing"] == tidy.count(None)
        assert ready.column("a")["distinct"] == len(set(tidy) - {None})


def test_the_rule_of_identifiers_is_the_documented_one() -> None:
    assert (columns.LEAST_IDENTIFIERS, columns.MOSTLY) == (20, 0.9)
