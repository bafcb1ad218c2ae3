"""The bytes of a CSV: encodings, other formats, compression, headers and limits."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pyarrow as pa
import pytest
from uploads import Ready

from app.ingest.errors import BadTable

Read = Callable[..., Ready]


def test_latin_1_value(refused: Callable[..., BadTable]) -> None:
    body = "a,g,y\n1,Köln,0\n2,Bonn,1\n3,Münster,1\n".encode("latin-1")
    error = refused(body, label="y", group="g")
    assert error.errors == [
        {
            "line": 2,
            "column": "g",
            "detail": "byte 0xF6 is not UTF-8; with encoding=latin-1 it reads 'Köln'",
            "suggestion": {"encoding": "latin-1"},
        },
        {
            "line": 4,
            "column": "g",
            "detail": "byte 0xFC is not UTF-8; with encoding=latin-1 it reads 'Münster'",
        },
    ]


@pytest.mark.parametrize("codec", ["utf-32", "utf-32-le", "utf-32-be"])
def test_utf_32(refused: Callable[..., BadTable], codec: str) -> None:
    error = refused("a,y\n1,0\n2,1\n".encode(codec))
    assert error.errors[0]["line"] == 1
    if codec == "utf-32":
        assert error.detail == "the file is not CSV but UTF-32 text; save it as UTF-8"


# --- compression ---------------------------------------------------------------------------------

BODY = b"a,y\n" + b"".join(b"%d,%d\n" % (i, i % 2) for i in range(5000))


def compressed(codec: str) -> bytes:
    """Compress the body."""
    data: bytes = pa.compress(BODY, codec=codec, asbytes=True)
    return data


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("said", [True, False])
def test_compressed(ready: Read, codec: str, said: bool) -> None:
    table = ready(compressed(codec), encoding=codec if said else None)
    assert table.columns["a"] == [float(i) for i in range(5000)]


def test_several_gzip_members(ready: Read) -> None:
    half = BODY.index(b"\n2500,") + 1
    table = ready(gzip.compress(BODY[:half]) + gzip.compress(BODY[half:]), encoding="gzip")
    assert len(table.columns["a"]) == 5000


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_damaged_compression(refused: Callable[..., BadTable], codec: str) -> None:
    assert (
        f"the {codec} stream is damaged" in refused(compressed(codec)[:-20], encoding=codec).detail
    )
    assert f"the {codec} stream is damaged" in refused(b"a,y\n1,0\n", encoding=codec).detail


def test_decompressed_size_is_bounded(refused: Callable[..., BadTable]) -> None:
    bomb = gzip.compress(b"a,y\n1,0\n2,1\n" + b"\n" * 10_000_000)
    assert len(bomb) < 20_000
    error = refused(bomb, encoding="gzip", bytes=1_000_000)
    assert error.code == "too_large"
    assert error.detail == "the table must be at most 1000000 bytes once decompressed; it is longer"


# --- header and limits ---------------------------------------------------------------------------


def test_empty_file(refused: Callable[..., BadTable]) -> None:
    error = refused(b"")
    assert error.errors == [
        {"line": 1, "detail": "the file is empty: a header line and rows are needed"}
    ]
    assert "only blank lines" in refused(b"\n\r\n\n").detail
    assert refused(b"\xef\xbb\xbf").errors[0]["line"] == 1


@pytest.mark.parametrize("body", ["a,y", "a,y\n", "a,y\r\n\r\n"])
def test_header_only(refused: Callable[..., BadTable], body: str) -> None:
    assert refused(body).detail == "the table has a header but no rows"


@pytest.mark.parametrize(
    ("header", "number"),
    [(",a,y", 1), ("a,,y", 2), ('a,"",y', 2), ("a, \t,y", 2), ("a,y,", 3)],
)
def test_a_column_without_a_name_is_left_out(ready: Read, header: str, number: int) -> None:
    """A row index, or a comma at the end of each line; who means it as a feature says so."""
    rows = "0,1,0\n1,0,1\n" * 3
    table = ready(f"\n{header}\n{rows}")
    name = f"column {number}"
    (warning,) = table.result["warnings"]
    assert (warning["code"], warning["column"]) == ("column_without_name", name)
    assert set(table.columns) == {"a", "y"}
    roles = {column["name"]: column["role"] for column in table.result["columns"]}
    assert roles == {"a": "feature", "y": "label", name: "dropped"}
    kept = ready(f"\n{header}\n{rows}", numeric=[name], label="y")
    assert kept.result["warnings"] == []
    assert set(kept.columns) == {"a", "y", name}


def test_names_made_up_are_not_there_already(refused: Callable[..., BadTable]) -> None:
    error = refused("column 2,,y\n1,2,0\n")
    assert error.detail == "column names must differ: 'column 2' is column 1 and column 2"
    assert "at least one feature column" in refused(",,y\n1,2,0\n").detail


def test_too_many_columns(refused: Callable[..., BadTable]) -> None:
    header = ",".join(f"c{j}" for j in range(100_000))
    error = refused(header + "\n")
    assert error.errors == [
        {"line": 1, "detail": "a table must have at most 2000 columns, got 100000"}
    ]


def test_two_thousand_columns(ready: Read) -> None:
    header = ",".join([*(f"c{j}" for j in range(1999)), "y"])
    body = header + "\n" + ("1," * 1999 + "0\n") + ("2," * 1999 + "1\n")
    assert ready(body).columns["c1998"] == [1.0, 2.0]


def test_too_many_rows(refused: Callable[..., BadTable]) -> None:
    error = refused("a,y\n1,0\n2,1\n3,1\n", rows=2)
    assert error.code == "too_many_rows"
    assert error.detail == "a table must have at most 2 rows; it has more"


def test_lines_beyond_the_last_row_are_not_looked_at(refused: Callable[..., BadTable]) -> None:
    """A line of NDJSON is short, and its object takes time: not for all of them, where none can be used."""
    body = '{"a":1,"y":0}\n{"a":2,"y":1}\n{"a":3,"y":0}\nno JSON\n'
    error = refused(body, content_type="application/x-ndjson", rows=2)
    assert (error.code, error.errors[0].get("line")) == ("too_many_rows", None)
