"""The fast reader's blocks: wherever they are cut, the rows are those of the exact reader."""

from __future__ import annotations

import pytest

from app.services.ingest import fast_csv
from app.services.ingest.delimited import ExactCsv, Upload, read_layout
from app.services.ingest.dialect import Dialect
from app.services.ingest.fast_csv import FastCsv
from app.services.ingest.faults import Faults
from app.services.ingest.missing import MissingTokens
from app.services.ingest.rows import Doubt, Source

ROWS = ["1,plain,0", '2,"a, b",1', '3,"two\nlines\n",0', "", '"4","",1', '5,"\r\n",0', "6,é,1"] * 9


def readers(body: str | bytes) -> tuple[FastCsv, ExactCsv]:
    upload = Upload(body.encode() if isinstance(body, str) else body, None, 1 << 20)
    layout = read_layout(upload, Dialect(), 10)
    return FastCsv(upload, layout, MissingTokens(), ["n"]), ExactCsv(upload, layout)


def rows_of(source: Source) -> list[tuple[float, str, str]]:
    rows = []
    for batch in (each.batch for each in source.batches(Faults())):
        values = [column.to_pylist() for column in batch.columns]
        rows += [(float(n), text or "", y) for n, text, y in zip(*values, strict=True)]
    return rows


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blocks_end_with_a_line(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    fast, exact = readers(end.join(["n,text,y", *ROWS]))
    expected = rows_of(exact)
    monkeypatch.setattr(fast_csv, "_COLUMN_BYTES", 1)
    for size in range(24, 60):
        monkeypatch.setattr(fast_csv, "_BLOCK_BYTES", size)
        assert rows_of(fast) == expected, size


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param('1,5" disk,0', id="a quote within a value"),
        pytest.param('1,"never closed,0', id="an open quote"),
        pytest.param("1,x,0,7", id="a value too many"),
        pytest.param("-nan,x,0", id="a NaN that no spelling of missing values has"),
        pytest.param('"1\n",x,0', id="a line break in a number"),
        pytest.param(b"1,\xff,0", id="no UTF-8"),
        pytest.param("\ufeff1,x,0", id="a mark of the byte order"),
    ],
)
def test_what_is_odd_in_any_block_is_a_doubt(
    monkeypatch: pytest.MonkeyPatch, odd: str | bytes
) -> None:
    monkeypatch.setattr(fast_csv, "_COLUMN_BYTES", 1)
    monkeypatch.setattr(fast_csv, "_BLOCK_BYTES", 48)
    line = odd.encode() if isinstance(odd, str) else odd
    for place in range(0, 60, 7):
        body = "\n".join(["n,text,y", *ROWS[:place]]).encode() + b"\n" + line + b"\n1,x,0\n"
        fast, _ = readers(body)
        with pytest.raises(Doubt):
            rows_of(fast)
