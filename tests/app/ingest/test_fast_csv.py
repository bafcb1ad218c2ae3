"""The blocks of a CSV: wherever they are cut, rows, lines and errors are those that Python's csv module finds."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.ingest import csv as delimited
from app.ingest import formats as sources
from app.ingest.build import ingest
from app.ingest.csv import CsvTable, read_layout
from app.ingest.errors import BadTable, Errors
from app.ingest.formats import Dialect
from app.ingest.stream import TableBytes
from app.ingest.value_columns import MissingTokens
from tests.app.uploads import LIMITS, Ready, read
from tests.long_form import LONG_FORM

ROWS = ["1,plain,0", '2,"a, b",1', '3,"two\nlines\n",0', "", '"4","",1', '5,"\r\n",0', "6,é,1"] * 9
Found = tuple[list[tuple[int, str, str, str]], object]


def test_texts_of_a_single_column_may_have_semicolons() -> None:
    upload = TableBytes(b"note\nred; dark\nblue; light\n", None, 1 << 20)
    assert read_layout(upload, Dialect(), 10).names == ["note"]


def rows_of(body: str | bytes) -> Found:
    """The rows with their lines, and the errors, or the refusal."""
    upload = TableBytes(body.encode() if isinstance(body, str) else body, None, 1 << 20)
    table = CsvTable(upload, read_layout(upload, Dialect(), 10), MissingTokens())
    rows, errors = [], Errors()
    try:
        for each in table.batches(errors, None, ["n"]):
            values = [column.to_pylist() for column in each.batch.columns]
            assert each.lines is not None
            for line, n, text, y in zip(each.lines.tolist(), *values, strict=True):
                number = n if isinstance(n, float) else float(n) if n.strip().isdigit() else n
                rows.append((line, str(number), text or "", y))
    except BadTable as refusal:
        return [], refusal.errors
    return rows, [error for column in errors.counts for error in errors.of(column)]


def exact(monkeypatch: pytest.MonkeyPatch, body: str | bytes) -> Found:
    """The same by Python's csv module alone, in one block."""
    with monkeypatch.context() as patch:
        patch.setattr(delimited, "BLOCK_BYTES", 1 << 20)
        patch.setattr(CsvTable, "parse", lambda self, block, *_: None)
        return rows_of(body)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blocks_end_with_a_line(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    body = end.join(["n,text,y", *ROWS])
    expected = exact(monkeypatch, body)
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    for size in range(24, 60, 1 if LONG_FORM else 11):
        monkeypatch.setattr(delimited, "BLOCK_BYTES", size)
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
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 48)
    line = odd.encode() if isinstance(odd, str) else odd
    for place in range(0, 60, 7 if LONG_FORM else 25):
        body = "\n".join(["n,text,y", *ROWS[:place]]).encode() + b"\n" + line + b"\n1,x,0\n"
        assert rows_of(body) == exact(monkeypatch, body), place


VALUES = ["1", '5"', '"a\nb"', '"x\n5,6,7"', '"""q"', '"x"y', "", '"\r\n"', ' "q"', "é"]
few_rows = st.lists(st.tuples(*[st.sampled_from(VALUES)] * 3).map(",".join), min_size=1, max_size=6)


@given(
    rows=few_rows, end=st.sampled_from(["\n", "\r\n", "\r"]), size=st.sampled_from([8, 64, 4096])
)
@example(rows=['1,5",2', '3,4,"x\n5,6,7"'], end="\n", size=4096)
@settings(
    max_examples=2000 if LONG_FORM else 20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_rows_are_those_of_python_whatever_columns_are_read(
    monkeypatch: pytest.MonkeyPatch, rows: list[str], end: str, size: int
) -> None:
    body = end.join(["n,text,y", *rows, ""])
    expected = [row for row in csv.reader(io.StringIO(body, newline="")) if row][1:]
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", size)
    upload = TableBytes(body.encode(), None, 1 << 20)
    table = CsvTable(upload, read_layout(upload, Dialect(), 10), MissingTokens())
    for place, name in enumerate(table.names):
        found = [r.batch.column(0).to_pylist() for r in table.batches(Errors(), [name])]
        assert [value or "" for values in found for value in values] == [r[place] for r in expected]


def test_one_stray_quote_does_not_slow_the_reading_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the block with the quote nor those after it are for the slow reader."""

    def slow(*_: object) -> None:
        raise AssertionError("Python's module was asked")

    monkeypatch.setattr(CsvTable, "records", slow)
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 64)
    rows = [f"{i},disk,0" for i in range(20)]
    rows[3] = '3,5" disk,0'
    rows[4] = '4,"disk" 5,0'
    upload = TableBytes("\n".join(["n,text,y", *rows]).encode(), None, 1 << 20)
    table = CsvTable(upload, read_layout(upload, Dialect(), 10), MissingTokens())
    found = [r.batch.column(0).to_pylist() for r in table.batches(Errors(), ["text"])]
    expected = [*["disk"] * 3, '5" disk', "disk 5", *["disk"] * 15]
    assert [value for values in found for value in values] == expected


def test_doubled_quotes_are_for_the_fast_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> None:
        raise AssertionError("Python's module was asked")

    monkeypatch.setattr(CsvTable, "records", slow)
    upload = TableBytes(b'n,text,y\n1,"a ""b""",0\n2,"""",1\n', None, 1 << 20)
    table = CsvTable(upload, read_layout(upload, Dialect(), 10), MissingTokens())
    (rows,) = table.batches(Errors(), None, ["n"])
    assert rows.batch.column("text").to_pylist() == ['a "b"', '"']


# --- any bytes -------------------------------------------------------------------------------------


def outcome(folder: Path, body: bytes) -> tuple[str, Any]:
    """Read as a worker does; what came of it."""
    try:
        ready = read(folder, body, label="y", group="g")
    except BadTable as error:
        return "refused", (error.detail, error.errors)
    return "ready", (ready.result["columns"], ready.columns)


def exact_outcome(folder: Path, body: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any]:
    """Read by the exact reader alone."""
    with monkeypatch.context() as patch:
        patch.setattr(
            CsvTable, "parse", lambda self, block, wanted, _: self.parse_exactly(block, wanted)
        )
        return outcome(folder, body)


NUMBERS = [
    "0",
    "1",
    "2.5",
    "",
    " 3",
    "NA",
    "nan ",
    "4",
    "5",
    "6",
    "7",
    "8",
    "true",
    '"5"',
    "x",
    "1e999",
]
TEXTS = [
    "g", "h", '"g"', '"a,b"', '"a\nb"', '"a\r\nb"', '"a""b"', 'a"b', "é", " g ", '"g" ', '"h', "\0", "\xa0",
]  # fmt: skip
LABELS = ["0", "1", "0", "1", "0", "1", '"1"', " 0", "0 ", "2", "", "1,1", "é"]
ENDS = ["\n", "\n", "\r\n", "\r", "\n\n", ""]
rows = st.tuples(*(map(st.sampled_from, (NUMBERS, TEXTS + NUMBERS, TEXTS, LABELS, ENDS)))).map(
    lambda row: ",".join(row[:4]) + row[4]
)
soup = st.lists(rows, max_size=6).map("".join)


@given(body=soup, broken=st.booleans())
@example(body='1,c,a"b,0\n1,c,x,"1', broken=False)
@example(body='1,c,"a",0\n1,"d\n","b\n",1\n', broken=False)
@settings(
    max_examples=1200 if LONG_FORM else 15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_both_csv_readers_agree(monkeypatch: pytest.MonkeyPatch, body: str, broken: bool) -> None:
    data = b"a,c,g,y\n1,,g,0\n2,,h,1\n" + body.encode("latin-1" if broken else "utf-8")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        assert outcome(Path(one), data) == exact_outcome(Path(two), data, monkeypatch)


def test_the_fast_reader_takes_a_sound_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Booleans, missing values and quoted text are no reason to read a table twice."""

    def slow(*_: Any) -> Any:
        raise AssertionError("the exact reader was asked")

    monkeypatch.setattr(CsvTable, "parse_exactly", slow)
    ready: Ready = read(
        tmp_path,
        'a,b,c,g,y\n1,true,,"x, y",no\n2,FALSE,NA,"z\nz",yes\n,true,1e3,w,yes\n',
        group="g",
    )
    assert ready.columns["b"] == [1.0, 0.0, 1.0]
    assert ready.columns["g"] == ["x, y", "z\nz", "w"]


def test_progress_is_told_and_may_stop_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 16)
    body = b"a,y\n" + b"".join(b"%d,%d\n" % (i, i % 2) for i in range(60_000))
    (tmp_path / "upload").write_bytes(body)
    unsaid = (
        "label labels positive item weight group query categorical numeric drop protected missing"
    )
    payload = dict.fromkeys(unsaid.split()) | {
        "path": str(tmp_path / "upload"),
        "content_type": sources.CSV,
        "content_encoding": None,
        "dataset_kind": "bipartite",
        "strict": False,
        "workdir": str(tmp_path),
        "limits": LIMITS,
    }
    told: list[tuple[int, int, float]] = []
    ingest(payload, lambda step, of, info: told.append((step, of, info["rows"])))
    assert [of for _, of, _ in told] == [len(body)] * len(told)
    assert told == sorted(told)
    assert told[-1][::2] == (len(body), 60_000)

    class Stop(BaseException):
        pass

    def stop(step: int, of: int, info: Any) -> None:
        raise Stop

    with pytest.raises(Stop):
        ingest(payload, stop)
