"""CSV: every trap is the right parse, or a refusal with line, column, value and rule; what is plain is in corpus/."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable

import pytest

from app.ingest import csv as delimited
from app.ingest import stream
from app.ingest.csv import CsvTable, UnnamedColumns, read_layout
from app.ingest.errors import MAX_ERRORS, MAX_ERRORS_PER_COLUMN, BadTable
from app.ingest.fields import split_names
from app.ingest.formats import CSV, NDJSON, Dialect
from app.ingest.stream import TableBytes
from app.ingest.values import DEFAULT_TOKENS
from tests.app.uploads import Ready
from tests.long_form import long_form, one_in
from tests.sentences import Sentences

Read = Callable[..., Ready]


def test_types_are_settled_over_all_rows(ready: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """An integer column that turns 1.5 in a late block keeps both exact."""
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 14)
    rows = 20_000
    table = ready("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(rows)) + "1.5,1\n")
    assert table.columns["a"][-3:] == [rows - 2.0, rows - 1.0, 1.5]
    assert len(table.columns["a"]) == rows + 1


def test_text_late_in_a_numeric_column_is_found_with_its_line(
    refused: Callable[..., BadTable], monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 14)
    rows = 20_000  # many blocks
    error = refused("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(rows)) + "oops,1\n")
    sentences(error.errors[0].pop("detail"))
    assert error.errors == [{"line": rows + 2, "column": "a"}]


def test_column_without_any_value_is_a_missing_numeric_column(ready: Read) -> None:
    table = ready("a,b,y\n1,,0\n2,NA,1\n")
    assert table.columns["b"] == [None, None]
    profile = table.column("b")
    assert profile == {
        "name": "b", "type": "numeric", "role": "feature", "missing": 2, "distinct": 0,
        "min": None, "max": None, "mean": None, "top": [],
    }  # fmt: skip


def test_many_errors_are_counted_and_the_first_are_told(
    refused: Callable[..., BadTable],
    sentences: Sentences,
) -> None:
    names = [f"c{j}" for j in range(8)]
    body = ",".join([*names, "y"]) + "\n" + ",".join(["1"] * 8 + ["0"]) + "\n"
    body += "".join(",".join(["1e999"] * 8 + ["1"]) + "\n" for _ in range(200))
    error = refused(body)
    assert error.total == 1600
    assert len(error.errors) == MAX_ERRORS
    rule = "'1e999' is outside the range of a float64"
    assert error.errors[0] == {"line": 3, "column": "c0", "detail": rule}
    assert sum(error["column"] == "c0" for error in error.errors) <= MAX_ERRORS_PER_COLUMN
    assert {error["column"] for error in error.errors} == set(names)
    sentences(error)


def test_reading_ends_when_there_are_errors_enough(
    refused: Callable[..., BadTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.ingest.build.MAX_COUNTED_ERRORS", 1000)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 200)
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    error = refused("a,y\n1,0\n" + "inf,1\n" * 5000)
    assert 1000 <= error.total <= 1100


# --- rows and quotes -----------------------------------------------------------------------------


def test_unclosed_quote_does_not_swallow_the_memory(
    refused: Callable[..., BadTable], monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    monkeypatch.setattr(delimited, "MAX_LINE_LENGTH", 1000)
    before = csv.field_size_limit(1000)
    try:
        error = refused('a,g,y\n1,x,0\n2,"x\n' + "3,x,1\n" * 1000, label="y", group="g")
    finally:
        csv.field_size_limit(before)
    sentences(error.errors[0].pop("detail"))
    assert error.errors == [{"line": 3}]


def test_a_line_without_an_end_is_refused(
    refused: Callable[..., BadTable], monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    monkeypatch.setattr(delimited, "MAX_LINE_LENGTH", 1000)
    before = csv.field_size_limit(1000)
    try:
        for body, line in (
            ('a,"y\n' + "1,0\n" * 1000, 1),
            ("a,y\n1,0\n2,1\n" + "1," * 1000 + "\n", 4),
        ):
            error = refused(body)
            sentences(error.errors[0])
            assert error.errors[0]["line"] == line
    finally:
        csv.field_size_limit(before)


def test_row_longer_than_the_fast_readers_block(
    ready: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 64)
    monkeypatch.setattr(delimited, "COLUMN_BYTES", 1)
    long = "g" * 250
    table = ready(f"a,g,y\n1,{long},0\n2,x,1\n", label="y", group="g")
    assert table.columns["g"] == [long, "x"]


# --- header and limits ---------------------------------------------------------------------------


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


NUMBERS = [str(n / 4) for n in range(40)]
DAYS = [f"2026-01-{day:02}" for day in range(1, 29)]


@pytest.mark.parametrize(
    ("cells", "words", "tokens"),
    [
        ([*NUMBERS, *["unknown"] * 10], 10, ["unknown"]),
        ([*NUMBERS, *["n.k.", "."] * 10, *['"left, out"'] * 5], 15, ["left, out", "n.k."]),
        ([*DAYS, *["open"] * 8], 8, ["open"]),
        ([*NUMBERS, *["10+"] * 10], 10, None),  # which is no missing value
        ([*NUMBERS, *["unknown", "10+"] * 10], 20, None),
    ],
)
def test_few_words_among_numbers_are_told(
    ready: Read, cells: list[str], words: int, tokens: list[str] | None
) -> None:
    """With what is suggested the column has its type, and no warning."""
    body = "a,b,y\n" + "".join(f"{cell},{i % 3},{i % 2}\n" for i, cell in enumerate(cells))
    table = ready(body)
    assert table.column("a")["type"] == "categorical"
    (warning,) = table.result["warnings"]
    told = (warning["code"], warning["column"], warning["count"])
    assert told == ("words_among_numbers", "a", words)
    if tokens is None:
        assert "suggestion" not in warning
        return
    missing = split_names(warning["suggestion"]["missing"])
    assert missing == [*DEFAULT_TOKENS, *tokens]
    mended = ready(body, missing=missing)
    assert mended.column("a")["type"] in ("numeric", "datetime")
    assert mended.result["warnings"] == []
    assert ready(body, categorical=["a"]).result["warnings"] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["NA", "DE", "FR", "ZA"], "NA"),
        (["NA", "EU", "AS"], "NA"),
        (["Null", "Smith", "Jones"], "Null"),
        (["?", "!", "."], "?"),
        (["NA", "low", "high"], None),
        (["", "DE", "FR"], None),
        (["null", "Smith", "Jones"], None),
        (["NA", "1.5", "2.5"], None),
    ],
)
def test_a_missing_word_that_may_be_a_code_is_told(
    ready: Read, words: list[str], told: str | None
) -> None:
    body = "a,y\n" + "".join(f"{words[i % len(words)]},{i % 2}\n" for i in range(120))
    table = ready(body)
    found = [w for w in table.result["warnings"] if w["code"] == "missing_word_like_code"]
    if told is None:
        assert found == []
        return
    assert [(w["count"], w["column"]) for w in found] == [(120 // len(words), "a")]
    mended = ready(body, missing=split_names(found[0]["suggestion"]["missing"]))
    assert mended.column("a")["missing"] == 0
    assert mended.column("a")["distinct"] == len(words)


def test_words_for_missing_values_are_names_of_groups_and_items(ready: Read) -> None:
    words = ["NA", "null", "?", "NaN", "1.0", "1", "True", "true"]
    body = "g,x,y\n" + "".join(f"{words[i % 8]},{i},{i % 2}\n" for i in range(16))
    assert ready(body, group="g", label="y").columns["g"] == words * 2


def test_words_of_several_columns_are_one_suggestion(ready: Read) -> None:
    cells = [f"{n},{n}" for n in NUMBERS] + ["none given,x"] * 10
    body = "a,b,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells))
    first, second = ready(body).result["warnings"]
    assert first["suggestion"] == second["suggestion"]
    table = ready(body, missing=split_names(first["suggestion"]["missing"]))
    assert [table.column(name)["type"] for name in "ab"] == ["numeric", "numeric"]


@pytest.mark.parametrize(
    "cells",
    [
        [*NUMBERS, *["V1", "V2", "V3", "V4", "V5", "V6"] * 3],  # codes
        ["0", "1", "2", "3+"] * 5,
        ["x", *["None"] * 30, "z"],
    ],
)
def test_words_and_codes_are_told_of_by_nothing(ready: Read, cells: list[str]) -> None:
    table = ready("a,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells)))
    assert table.column("a")["type"] == "categorical"
    assert table.result["warnings"] == []


def test_names_made_up_are_not_there_already(
    refused: Callable[..., BadTable], sentences: Sentences
) -> None:
    sentences(refused("column 2,,y\n1,2,0\n").detail)
    sentences(refused(",,y\n1,2,0\n").detail)


@long_form
def test_two_thousand_columns(ready: Read) -> None:
    header = ",".join([*(f"c{j}" for j in range(1999)), "y"])
    body = header + "\n" + ("1," * 1999 + "0\n") + ("2," * 1999 + "1\n")
    assert ready(body).columns["c1998"] == [1.0, 2.0]


def test_lines_beyond_the_last_row_are_not_looked_at(refused: Callable[..., BadTable]) -> None:
    """A line of NDJSON is short, and its object takes time: not for all of them, where none can be used."""
    body = '{"a":1,"y":0}\n{"a":2,"y":1}\n{"a":3,"y":0}\nno JSON\n'
    error = refused(body, content_type="application/x-ndjson", rows=2)
    assert (error.code, error.errors[0].get("line")) == ("too_many_rows", None)


# --- encodings and dialects ------------------------------------------------------------------------


Refuse = Callable[..., BadTable]


def test_characters_that_lie_across_pieces(ready: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """UTF-16 read a few bytes at a time: pairs of surrogates come apart, and grow together again."""
    monkeypatch.setattr(stream, "MIN_RECODED", 1)
    monkeypatch.setattr(stream, "PIECE", 3)
    table = ready("t,y\n😀,0\n🎉,1\n😀,1\n".encode("utf-16-le"), dialect={"encoding": "utf-16"})
    assert table.columns["t"] == ["😀", "🎉", "😀"]


def test_what_is_recoded_counts_against_the_limit(refused: Refuse) -> None:
    """Each byte of Latin-1 may become two."""
    body = ("a,y\n" + "é,0\nè,1\n" * 500).encode("latin-1")
    error = refused(body, dialect={"encoding": "latin-1"}, bytes=len(body) + 100)
    assert error.code == "too_large"


def test_decimal_commas_late_in_a_long_table(ready: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 14)
    rows = 20_000
    body = "a;y\n" + "".join(f"{i};{i % 2}\n" for i in range(rows)) + "1,5;1\n"
    assert ready(body, dialect={"decimal": "comma"}).columns["a"][-2:] == [rows - 1.0, 1.5]


def test_a_stream_that_was_refused_can_be_closed(sentences: Sentences) -> None:
    """As `io` closes each when it goes: what fails then is printed by Python 3.13."""
    refused = stream.Stream.__new__(stream.Stream)
    with sentences.raises(BadTable):
        refused.__init__(b"a,y\n", "br", 100)  # type: ignore[misc]  # what is made in part is the test
    refused.close()
    assert refused.closed


@pytest.mark.parametrize(
    ("names", "first", "has_values"),
    [
        (["a", "b"], "a,b", False),
        (["a", "b"], "b,x,a", False),
        (["a", "b"], " a ,b", False),
        (["a", "b"], '"a","b"', False),
        (["a", "b"], "1,2", True),
        (["a", "b"], "1,", True),
        (["a", "b"], "u,v", True),
        (["0", "1", "2"], "0,1, 2", False),
        (["0", "1", "2"], "0,1,3", True),
        (["0", "1", "2"], "2,1,0", None),
        (["0", "1", "2"], "0,1,2,3", None),
        (["0", "1"], "0,1", None),
        (["0", "1", "x"], "x,1,0", False),
        (["a", "b"], "a,c", None),
        (["a", "b"], "a,b,b", None),
        (["a", "b"], "u,v,w", None),
        (["a", "b"], "1,2,3", None),
    ],
)
def test_first_line_is_a_header_or_a_row(
    names: list[str], first: str, has_values: bool | None, sentences: Sentences
) -> None:
    """It is a header if it has each required name once, and is no row of numbers but by chance. None: it is refused."""
    columns = UnnamedColumns(names, frozenset(names), known=False)
    upload = TableBytes(f"{first}\n1,2,3\n".encode(), None, 1 << 20)
    if has_values is None:
        with sentences.raises(BadTable):
            read_layout(upload, Dialect(), 10, columns)
        return
    layout = read_layout(upload, Dialect(), 10, columns)
    assert (layout.header_lines == 0) is has_values
    assert layout.header_bytes == (0 if has_values else len(first) + 1)


FOREIGN_LINES: dict[str, tuple[str, str]] = {
    "sep=;": ("sep=;\r\n", ";"),
    "quoted sep=;": ('"sep=;"\r\n', ";"),
    "sep=, ": ("sep=,\n", ","),
    "sep= and a tab": ("sep=\t\n", "\t"),
    "a delimiter that the header hides": ("sep=|\n", "|"),
    "PowerShell": ("#TYPE Selected.Row\r\n", ","),
    "two marks": ("\ufeff", ","),
    "a mark and sep=;": ("sep=;\r\n", ";"),
}


@pytest.mark.parametrize(
    ("name", "codec", "end"),
    one_in(7, FOREIGN_LINES, ["utf-8", "utf-8-sig", "utf-16"], ["", "\x1a", "\r\n\x1a"]),
)
def test_first_lines_and_last_bytes_of_programs_are_not_data(
    ready: Read, monkeypatch: pytest.MonkeyPatch, name: str, codec: str, end: str
) -> None:
    above, mark = FOREIGN_LINES[name]
    rows = [["a", "b", "y"], ["1", "u", "0"], ["2", "v", "1"]]
    body = (above + "\r\n".join(map(mark.join, rows)) + end).encode(codec)
    for exactly in (False, True):
        if exactly:
            monkeypatch.setattr(CsvTable, "parse", lambda self, block, *_: None)
        found = ready(body, label="y")
        assert found.columns["a"] == [1.0, 2.0]
        assert found.columns["b"] == ["u", "v"]


@pytest.mark.parametrize(
    ("above", "mark", "line"),
    [
        ("Customers of January\n", ";", 2),
        ("# exported 2026-01-31\n", ",", 2),
        ("Sales;;\n", ";", 2),
        ("Sales\nof 2026\n\n", ",", 4),
        ("Sales, January, 2026\n", ",", 2),
    ],
)
def test_a_title_above_the_header_is_named(
    refused: Callable[..., BadTable], above: str, mark: str, line: int
) -> None:
    rows = [["a", "b", "y"], *(["1", "u", str(i % 2)] for i in range(4))]
    body = above + "".join(mark.join(row) + "\n" for row in rows)
    for label in ("y", None):
        assert f"line {line}" in refused(body.encode(), label=label).detail


@pytest.mark.parametrize(
    "text", ["a,y\nu,0\nv,1\n", ",a,y\nu,x,0\nv,w,1\n", "a,y\nkg,0\n1,1\n2,0\n"]
)
def test_a_header_is_no_title(ready: Read, text: str) -> None:
    ready(text.encode(), label="y")


def test_a_delimiter_that_is_not_read_is_named(sentences: Sentences) -> None:
    for body in (b"sep=#\na#y\n1#0\n", b"sep=;\n", b"#TYPE x\n\n"):
        upload = TableBytes(body, None, 1 << 20)
        with sentences.raises(BadTable):
            read_layout(upload, Dialect(), 10)


FORMS = ("$ {}.5", "- {}.5", "\u00a0\u2212{}.5\u00a0")


@pytest.mark.parametrize("content_type", [CSV, NDJSON])
def test_numbers_as_people_write_them_are_numeric(ready: Read, content_type: str) -> None:
    """A column of nothing else is no identifier and no category."""
    cells = [form.format(i) for i in range(60) for form in [FORMS[i % 3]]]
    if content_type == CSV:
        body = "a,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells))
    else:
        body = "".join(json.dumps({"a": c, "y": i % 2}) + "\n" for i, c in enumerate(cells))
    table = ready(body, content_type=content_type)
    assert table.column("a")["type"] == "numeric"
    assert table.columns["a"][:4] == [0.5, -1.5, -2.5, 3.5]
    assert table.result["warnings"] == []


def test_several_currencies_are_no_numbers(ready: Read) -> None:
    body = "a,y\n" + "".join(f"{'$€'[i % 2]}{i % 7},{i % 2}\n" for i in range(60))
    assert ready(body).column("a")["type"] == "categorical"


def test_a_declared_number_that_is_mostly_words_is_refused(ready: Read) -> None:
    body = "a,b,y\n" + "".join(f"{'word' if i else 5}{i},{i},{i % 2}\n" for i in range(60))
    with pytest.raises(BadTable) as caught:
        ready(body, numeric=["a"])
    assert (caught.value.errors[0]["column"], caught.value.total) == ("a", 59)
    assert "59 of 60" in caught.value.detail


def german(encoding: str) -> bytes:
    """A table as a German spreadsheet writes it, with k.A. (keine Angabe) for missing values."""
    lines = ["Nummer;Straße;Betrag;Quote;Gekündigt"]
    for i in range(120):
        amount = "k.A." if i % 8 == 0 else f"{i},5{i % 10}"
        share = "k.A." if i % 11 == 0 else f"0,{i:03}"
        lines.append(f"K{i:05};{['Bühl', 'Süd', 'Ost'][i % 3]};{amount};{share};{i % 2}")
    return ("\n".join(lines) + "\n").encode(encoding)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le", "utf-16-be", "utf-8"])
def test_one_repair_reads_what_is_wrong_in_several_ways(ready: Read, encoding: str) -> None:
    with pytest.raises(BadTable) as caught:
        ready(german(encoding), label="Gekündigt")
    (error,) = caught.value.errors
    said = dict(error["suggestion"])
    missing = split_names(said.pop("missing"))
    assert said == {"decimal": "comma"} | (
        {"encoding": "windows-1252"} if encoding == "cp1252" else {}
    )
    table = ready(german(encoding), label="Gekündigt", missing=missing, dialect=said)
    types = {each["name"]: (each["type"], each["role"]) for each in table.result["columns"]}
    assert types["Nummer"] == ("categorical", "identifier")
    assert types["Betrag"] == types["Quote"] == ("numeric", "feature")
    assert table.column("Betrag")["missing"] == 15
    assert [warning["code"] for warning in table.result["warnings"]] == ["identifier"]
