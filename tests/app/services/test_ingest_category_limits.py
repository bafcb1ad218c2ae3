"""What a category may be: limits, bytes that are no text, files that claim too much."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from uploads import ARROW, PARQUET, Ready, halves, read

from app.ingest import columns as categories
from app.ingest import csv as delimited
from app.ingest.errors import BadTable

Read = Callable[..., Ready]
Refuse = Callable[..., BadTable]


def people(rows: int, names: int) -> str:
    """A table with a name a row, of which so many differ."""
    return "n,name,y\n" + "".join(f"{i},person {i % names},{i % 2}\n" for i in range(rows))


def test_a_category_that_is_too_long(refused: Refuse, ready: Read) -> None:
    body = f'n,a,y\n1,x,0\n2,"{"é" * 11}",1\n3,x,0\n4,{"z" * 12},1\n'
    rule = "a category must have at most 10 characters without NUL, got"
    error = refused(body, category_length=10)
    assert error.errors == [
        {"line": 3, "column": "a", "detail": f"{rule} 11: 'ééééééééééé'"},
        {"line": 5, "column": "a", "detail": f"{rule} 12: 'zzzzzzzzzzzz'"},
    ]
    assert ready(body, category_length=12).column("a")["distinct"] == 3


def test_a_nul_in_a_category(refused: Refuse) -> None:
    error = refused("n,a,y\n1,x,0\n2,re\0d,1\n3,x,0\n")
    assert error.errors == [
        {
            "line": 3,
            "column": "a",
            "detail": "a category must have at most 255 characters without NUL, got 4: 're\\x00d'",
        }
    ]


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
    ready: Read, monkeypatch: pytest.MonkeyPatch, declared: list[str] | None, block: int
) -> None:
    """They are missing, as each word is that a model does not know; of equally rare ones the later in text order."""
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", block)
    monkeypatch.setattr(delimited, "_COLUMN_BYTES", 1)
    words = [f"c{i % 11}" for i in range(40)] + ["often"] * 5
    body = "n,a,y\n" + "".join(f"{i},{word},{i % 2}\n" for i, word in enumerate(words))
    table = ready(body, categories=10, categorical=declared)
    # c0 to c6 come four times, c7 to c10 three times.
    assert table.columns["a"] == [None if word in ("c8", "c9") else word for word in words]
    assert table.column("a")["distinct"] == 10
    (warning,) = table.result["warnings"]
    assert (warning["code"], warning["column"], warning["count"]) == ("words_pooled", "a", 2)
    assert warning["detail"].startswith(
        "12 words are more than 10 categories: the 2 rarest are pooled, and their 6 rows count as missing"
    )
    assert warning["parameter"] == "drop"
    assert ready(body, categories=12, categorical=declared).result["warnings"] == []


def test_declared_identifiers_are_held_to_the_limit(ready: Read) -> None:
    table = ready(people(50, 50), categories=49, categorical=["name"])
    assert table.columns["name"].count(None) == 1


def test_of_words_without_number_those_that_come_first_are_counted(
    ready: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(categories, "_MOST_WORDS", 20)
    monkeypatch.setattr(categories, "_MOST_WAITING", 10)
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 200)
    monkeypatch.setattr(delimited, "_COLUMN_BYTES", 1)
    words = [f"w{i}" for i in range(30)] * 3 + ["w1"] * 20
    body = "n,a,y\n" + "".join(f"{i},{word},{i % 2}\n" for i, word in enumerate(words))
    table = ready(body, categories=5)
    kept = [word for word in table.columns["a"] if word is not None]
    assert set(kept) <= set(words[:20])
    assert kept.count("w1") == 23
    assert len(set(kept)) == 5
    assert "30 words are more than 5 categories" in table.result["warnings"][0]["detail"]


def test_bytes_that_are_not_utf_8(refused: Refuse) -> None:
    body = 'n,a,y\n1,Bonn,0\n2,"Köln\nRhein",1\n3,Ulm,0\n4,Fürth,1\n'.encode("latin-1")
    assert refused(body).errors == [
        {
            "line": 3,
            "column": "a",
            "detail": "byte 0xF6 is not UTF-8; with encoding=latin-1 it reads 'Köln\\nRhein'",
            "suggestion": {"encoding": "latin-1"},
        },
        {
            "line": 6,
            "column": "a",
            "detail": "byte 0xFC is not UTF-8; with encoding=latin-1 it reads 'Fürth'",
        },
    ]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
@pytest.mark.parametrize("content_type", [PARQUET, ARROW])
def test_typed_text_that_is_not_utf_8(tmp_path: Path, content_type: str, kind: pa.DataType) -> None:
    values = pa.array([b"Bonn", b"K\xf6ln", b"Ulm", b"Bonn"])
    wide = pa.types.is_large_string(kind)
    binary = values.cast(pa.large_binary() if wide else pa.binary())
    flat = pa.Array.from_buffers(pa.large_string() if wide else pa.string(), 4, binary.buffers())
    array = (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0], pa.int32()), flat)
        if pa.types.is_dictionary(kind)
        else flat
    )
    body = halves(pa.table({"n": [1, 2, 3, 4], "a": array, "y": [0, 1, 0, 1]}), content_type)
    with pytest.raises(BadTable) as caught:
        read(tmp_path, body, content_type)
    (fault,) = caught.value.errors
    assert fault["column"] == "a"
    if not pa.types.is_dictionary(kind):
        detail = "row 2: byte 0xF6 is not UTF-8 (as Latin-1 it reads 'Köln')"
        assert fault["detail"] == detail


def test_codes_beyond_their_dictionary(tmp_path: Path) -> None:
    """An Arrow stream may claim codes that its dictionary does not have: reading them would be a crash."""
    codes = pa.array([0, 1, 5, -3], pa.int32())
    array = pa.DictionaryArray.from_arrays(codes, pa.array(["u", "v"]), safe=False)
    body = halves(pa.table({"n": [1, 2, 3, 4], "a": array, "y": [0, 1, 0, 1]}), ARROW)
    with pytest.raises(BadTable, match="column 'a' is damaged"):
        read(tmp_path, body, ARROW)


def test_long_values_of_a_dictionary_are_not_written_out(tmp_path: Path) -> None:
    """One value of 4 MB in 20,000 rows would be 80 GB."""
    array = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(20_000, dtype=np.int32)), pa.array(["x" * (4 << 20)])
    )
    labels = pa.array(np.arange(20_000) % 2)
    body = halves(pa.table({"n": labels, "a": array, "y": labels}), ARROW)
    with pytest.raises(BadTable, match="at most 255 characters"):
        read(tmp_path, body, ARROW, strict=True)
    assert set(read(tmp_path, body, ARROW).columns["a"]) == {None}


@pytest.mark.parametrize("role", ["label", "group"])
def test_long_labels_of_a_dictionary_are_not_written_out(tmp_path: Path, role: str) -> None:
    array = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(20_000, dtype=np.int32) % 2), pa.array(["x" * (4 << 20), "y"])
    )
    columns = {"n": range(20_000), "a": array, "label": pa.array(np.arange(20_000) % 2)}
    body = halves(pa.table(columns), ARROW)
    with pytest.raises(BadTable, match="must take at most 268435456 bytes a batch"):
        read(
            tmp_path, body, ARROW, **{role: "a"} | ({"drop": ["label"]} if role == "label" else {})
        )


def test_values_that_only_differ_in_spaces_are_one(tmp_path: Path) -> None:
    array = pa.array([" u", "u", "u\t", "NA", "?"]).dictionary_encode()
    body = halves(pa.table({"n": [1, 2, 3, 4, 5], "a": array, "y": [0, 1, 0, 1, 0]}), PARQUET)
    table = read(tmp_path, body, PARQUET)
    assert table.columns["a"] == ["u", "u", "u", None, None]
    assert table.column("a")["distinct"] == 1
