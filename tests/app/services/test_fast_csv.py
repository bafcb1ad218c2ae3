"""The blocks of a CSV: wherever they are cut, rows, lines and faults are those that Python's csv module finds."""

from __future__ import annotations

import pytest

from app.ingest import csv as delimited
from app.ingest.csv import CsvTable, Upload, read_layout
from app.ingest.errors import BadTable, Faults
from app.ingest.formats import Dialect
from app.ingest.values import MissingTokens

ROWS = ["1,plain,0", '2,"a, b",1', '3,"two\nlines\n",0', "", '"4","",1', '5,"\r\n",0', "6,é,1"] * 9
Found = tuple[list[tuple[int, str, str, str]], object]


def rows_of(body: str | bytes) -> Found:
    """The rows with their lines, and the faults, or the refusal."""
    upload = Upload(body.encode() if isinstance(body, str) else body, None, 1 << 20)
    table = CsvTable(upload, read_layout(upload, Dialect(), 10), MissingTokens())
    rows, faults = [], Faults()
    try:
        for each in table.batches(faults, None, ["n"]):
            values = [column.to_pylist() for column in each.batch.columns]
            assert each.lines is not None
            for line, n, text, y in zip(each.lines.tolist(), *values, strict=True):
                number = n if isinstance(n, float) else float(n) if n.strip().isdigit() else n
                rows.append((line, str(number), text or "", y))
    except BadTable as refusal:
        return [], refusal.errors
    return rows, [fault for column in faults.counts for fault in faults.of(column)]


def exact(monkeypatch: pytest.MonkeyPatch, body: str | bytes) -> Found:
    """The same by Python's csv module alone, in one block."""
    with monkeypatch.context() as patch:
        patch.setattr(delimited, "_BLOCK_BYTES", 1 << 20)
        patch.setattr(CsvTable, "_parse", lambda self, block, *_: None)
        return rows_of(body)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blocks_end_with_a_line(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    body = end.join(["n,text,y", *ROWS])
    expected = exact(monkeypatch, body)
    monkeypatch.setattr(delimited, "_COLUMN_BYTES", 1)
    for size in range(24, 60):
        monkeypatch.setattr(delimited, "_BLOCK_BYTES", size)
        assert rows_of(body) == expected, size


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param('1,5" disk,0', id="a quote within a value"),
        pytest.param('1,"5"" disk, or ""tape""",0', id="doubled quotes"),
        pytest.param('1,"never closed,0', id="an open quote"),
        pytest.param('1,"a"b"c",0', id="quotes that end too early"),
        pytest.param("1,x,0,7", id="a value too many"),
        pytest.param("-nan,x,0", id="a NaN that no spelling of missing values has"),
        pytest.param("inf,x,0", id="infinity"),
        pytest.param("word,x,0", id="a word among numbers"),
        pytest.param('"1\n",x,0', id="a line break in a number"),
        pytest.param(b"1,\xff,0", id="no UTF-8"),
        pytest.param("\ufeff1,x,0", id="a mark of the byte order"),
    ],
)
def test_what_is_odd_in_any_block_is_read_alike(
    monkeypatch: pytest.MonkeyPatch, odd: str | bytes
) -> None:
    monkeypatch.setattr(delimited, "_COLUMN_BYTES", 1)
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", 48)
    line = odd.encode() if isinstance(odd, str) else odd
    for place in range(0, 60, 7):
        body = "\n".join(["n,text,y", *ROWS[:place]]).encode() + b"\n" + line + b"\n1,x,0\n"
        assert rows_of(body) == exact(monkeypatch, body), place


def test_doubled_quotes_are_for_the_fast_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> None:
        raise AssertionError("Python's module was asked")

    monkeypatch.setattr(CsvTable, "_records", slow)
    upload = Upload(b'n,text,y\n1,"a ""b""",0\n2,"""",1\n', None, 1 << 20)
    table = CsvTable(upload, read_layout(upload, Dialect(), 10), MissingTokens())
    (rows,) = table.batches(Faults(), None, ["n"])
    assert rows.batch.column("text").to_pylist() == ['a "b"', '"']
