"""Spreadsheets, archives and arrays: read as the CSV of the same cells would be, and bounded whatever they claim."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from app.ingest import archives, workbook
from app.ingest.detection import find_foreign, find_format
from app.ingest.errors import BadTable, Errors
from app.ingest.formats import ARROW, ARROW_FILE, CSV, JSON_ARRAY, NDJSON, PARQUET, XLSX
from app.ingest.readers import bounded, open_source
from app.ingest.rows import Source
from app.ingest.value_columns import MissingTokens
from tests.raising import raises, warns
from tests.sentences import Sentences

LIMITS = {"rows": 1000, "columns": 20, "bytes": 1 << 22}
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="r1" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="r2" Type="{OFFICE}/worksheet" Target="worksheets/sheet2.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets><sheet name="hidden" sheetId="2" '
    'state="hidden" r:id="r2"/><sheet name="rows" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/styles.xml": f'<styleSheet {MAIN}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/>'
    '<xf numFmtId="46"/></cellXfs></styleSheet>',
    "xl/worksheets/sheet2.xml": f"<worksheet {MAIN}><sheetData/></worksheet>",
}


def cell(place: str, value: object, kind: str = "n", style: int = 0) -> str:
    return f'<c r="{place}" t="{kind}" s="{style}"><v>{value}</v></c>'


def book(path: Path, rows: Iterable[str], texts: Iterable[str] = (), **parts: str) -> Path:
    """Write a workbook: `rows` of its visible sheet as XML, and its shared texts."""
    shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
    sheet = f"<worksheet {MAIN}><sheetData>{''.join(rows)}</sheetData></worksheet>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in {
            **PARTS,
            "xl/sharedStrings.xml": f"<sst {MAIN}>{shared}</sst>",
            "xl/worksheets/sheet1.xml": sheet,
            **parts,
        }.items():
            file.writestr(name, text)
    return path


ROWS = [
    f'<row r="2">{"".join(cell(f"{letter}2", i, "s") for i, letter in enumerate("ABCDE"))}</row>',
    f'<row r="3">{cell("A3", "1.0")}{cell("B3", 5, "s")}{cell("C3", 46104, style=1)}{cell("D3", 1, "b")}'
    f"{cell('E3', 0.25, style=3)}</row>",
    f'<row r="5">{cell("A5", 2.5)}{cell("C5", 46104.4375, style=2)}{cell("D5", 0, "b")}</row>',
]
TEXTS = ["number", "text", "day", "flag", "length", "x,&#34;1&#34;"]


def read(
    path: Path, said: str = CSV, encoding: str | None = None, limits: Mapping[str, int] = LIMITS
) -> tuple[tuple[str, str | None], list[dict[str, Any]]]:
    """Return the format that the bytes have, and the rows as text."""
    content_type, encoding = find_format(path, said, encoding)
    payload = {"path": str(path), "content_type": content_type, "content_encoding": encoding}
    with ExitStack() as stack:
        source = open_source(
            {**payload, "limits": limits, "workdir": str(path.parent)}, stack, MissingTokens(None)
        )
        errors = Errors()
        rows = [
            {name: value or None for name, value in row.items()}
            for batch in source.batches(errors)
            for row in batch.batch.to_pylist()
        ]
        if errors.total:
            raise errors.summarise()
    return (content_type, encoding), rows


def test_the_first_visible_sheet_is_read_as_its_csv(tmp_path: Path) -> None:
    path = book(tmp_path / "table.csv", ROWS, TEXTS)
    found, rows = read(path)
    assert found == (XLSX, None)
    assert rows == [
        {"number": "1", "text": 'x,"1"', "day": "2026-03-23", "flag": "true", "length": "0.25"},
        {
            "number": "2.5",
            "text": None,
            "day": "2026-03-23T10:30:00",
            "flag": "false",
            "length": None,
        },
    ]
    assert [each.name for each in tmp_path.iterdir()] == ["table.csv"]  # nothing is left behind
    aside = [row.replace('r="A', 'r="F') for row in ROWS]
    _, rows = read(book(path, aside, TEXTS))
    assert [*rows[0]] == ["text", "day", "flag", "length", "number"]


RENAMED: dict[str, dict[str, str]] = {
    "strings elsewhere": {"xl/sharedStrings.xml": "xl/text/strings.xml"},
    "styles elsewhere": {"xl/styles.xml": "xl/style/s.xml"},
    "a book of another name": {"xl/workbook.xml": "xl/workbook22.xml"},
    "a book at the top": {"xl/workbook.xml": "book.xml"},
    "other cases of letters": {
        name: name.title() for name in ("xl/sharedStrings.xml", "xl/styles.xml")
    },
}


def renamed(
    path: Path, names: Mapping[str, str], separator: str = "/", *, links: bool = True
) -> Path:
    """Write the workbook of `ROWS` with parts of other names, to which its links lead if `links`."""
    usual = book(path.with_suffix(".usual"), ROWS, TEXTS)
    targets = {
        name: f"/{names.get(name, name) if links else name}"
        for name in (*PARTS, "xl/sharedStrings.xml")
    }
    with zipfile.ZipFile(usual) as file:
        parts = {name: file.read(name).decode() for name in file.namelist()}
    root, of_book = "_rels/.rels", "xl/_rels/workbook.xml.rels"
    parts[root] = parts[root].replace("xl/workbook.xml", targets["xl/workbook.xml"])
    more = "".join(
        f'<Relationship Id="{kind}" Type="{OFFICE}/{kind}" Target="{targets[part]}"/>'
        for kind, part in (("sharedStrings", "xl/sharedStrings.xml"), ("styles", "xl/styles.xml"))
    )
    linked = parts.pop(of_book).replace("worksheets/", "/xl/worksheets/")
    folder, _, name = names.get("xl/workbook.xml", "xl/workbook.xml").rpartition("/")
    parts[f"{folder}/_rels/{name}.rels".lstrip("/")] = linked.replace(
        "</Relationships>", f"{more}</Relationships>"
    )
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            info = zipfile.ZipInfo("x")
            info.filename = names.get(name, name).replace("/", separator)
            file.writestr(info, text)
    return path


@pytest.mark.parametrize("name", RENAMED)
def test_parts_are_found_by_their_links(name: str, tmp_path: Path) -> None:
    usual = read(book(tmp_path / "usual.xlsx", ROWS, TEXTS))
    assert read(renamed(tmp_path / "table.xlsx", RENAMED[name])) == usual


def test_part_names_are_compared_as_the_standard_says(tmp_path: Path) -> None:
    usual = read(book(tmp_path / "usual.xlsx", ROWS, TEXTS))
    other = RENAMED["other cases of letters"]
    assert read(renamed(tmp_path / "cases.xlsx", other, links=False)) == usual
    assert read(renamed(tmp_path / "backslashes.xlsx", {}, "\\")) == usual
    lost = renamed(tmp_path / "lost.xlsx", RENAMED["strings elsewhere"], links=False)
    with pytest.raises(BadTable):
        read(lost)


def test_errors_in_cells_are_texts(tmp_path: Path) -> None:
    """In a row to score such a value does not fit; a dataset counts it as missing, with a warning."""
    wrong = f'<row r="7">{cell("A7", "#DIV/0!", "e")}{cell("B7", 5, "s")}{cell("E7", "#N/A", "e")}</row>'
    _, rows = read(book(tmp_path / "table.xlsx", [*ROWS, wrong], TEXTS))
    assert [row["number"] for row in rows] == ["1", "2.5", "#DIV/0!"]
    assert rows[2]["length"] == "#N/A"


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        ("<f>A3*2</f>", True),
        ("<f>A3*2</f><v></v>", True),
        ("<f>A3*2</f><v/>", True),
        ("<f>A3*2</f><v>5</v>", False),
    ],
)
def test_a_formula_without_a_result_is_not_empty(
    content: str, refused: bool, tmp_path: Path
) -> None:
    formula = f'<row r="7"><c r="A7">{content}</c></row>'
    text = '<row r="8"><c r="A8"><v>1</v></c><c r="B8" t="str"><f>""</f><v></v></c></row>'
    path = book(tmp_path / "table.xlsx", [*ROWS, formula, text], TEXTS)
    if refused:
        with pytest.raises(BadTable) as caught:
            read(path)
        assert caught.value.errors[0]["cell"] == "A7"
    else:
        assert read(path)[1][2]["number"] == "5"


def test_lines_of_a_sheet_s_errors_are_its_rows(tmp_path: Path) -> None:
    path = book(tmp_path / "table.xlsx", ROWS, ["number", "number", *TEXTS[2:]])
    with raises(BadTable, "'number'") as caught:
        read(path)
    assert caught.value.errors[0]["line"] == 2


@pytest.mark.parametrize(
    ("rows", "texts", "code"),
    [
        ([cell("A1", 1) + cell("XFD1048576", 1)], [], "too_many_rows"),
        ([cell("A1", 1) + cell("XFD2", 1)], [], "too_many_columns"),
        (["<row>" + "<c><v>1</v></c>" * 21 + "</row>"], [], "too_many_columns"),
        (["<row r='1003'><c><v>1</v></c></row>"], [], "too_many_rows"),
        (["<row/>" * 1002], [], "too_many_rows"),
        (["<x:row xmlns:x='y'><x:c r='ZZZ1'/></x:row>"], [], "too_many_columns"),
        ([cell("A1", 1) * 600], [], "too_large"),
        (["<row>" + cell("A1", 0, "s") * 50 + "</row>"], ["x" * 100_000], "too_large"),
        ([cell("A1", 1)], [""] * 600, "too_large"),
        ([" " * (1 << 22)], [], "too_large"),
    ],
)
def test_a_small_workbook_takes_no_more_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str], texts: list[str], code: str
) -> None:
    monkeypatch.setattr(workbook, "MAX_CELLS", 500)
    path = book(tmp_path / "bomb.xlsx", rows, texts)
    assert path.stat().st_size < 20_000

    def untouched(*_: object) -> None:
        raise AssertionError("it was handed on")

    monkeypatch.setattr(workbook, "rows_of", untouched)
    with pytest.raises(BadTable) as caught:
        read(path)
    assert caught.value.code == code


def test_what_is_no_workbook_is_refused(tmp_path: Path, sentences: Sentences) -> None:
    path = tmp_path / "bad.xlsx"
    doctype = f'<!DOCTYPE a [<!ENTITY b "c">]><worksheet {MAIN}/>'
    for parts, *named in (
        ({"xl/worksheets/sheet1.xml": doctype}, "'rows'", "DTD"),
        ({"xl/worksheets/sheet1.xml": "<worksheet"}, "'rows'", "XML"),
        ({"xl/worksheets/sheet1.xml": f"<worksheet {MAIN}/>"}, "'rows'"),
        ({"xl/workbook.xml": f"<workbook {MAIN}/>"},),
        ({"xl/workbook.xml": "no XML"}, "XML"),
    ):
        book(path, ROWS, TEXTS, **parts)
        with raises(BadTable, *named):
            read(path)
    whole, intact = book(path, ROWS, TEXTS).read_bytes(), read(path)[1]
    for cut in range(40, len(whole), len(whole) // 40):
        path.write_bytes(whole[:cut] + whole[cut + 9 :])
        try:
            rows = read(path, XLSX)[1]
        except BadTable:
            continue
        assert rows == intact  # the damage is in a part that is not read
    book(path, ROWS, TEXTS)
    with zipfile.ZipFile(path, "a") as file, warns(UserWarning, "'xl/styles.xml'"):
        file.writestr("xl/styles.xml", PARTS["xl/styles.xml"])
    with sentences.raises(BadTable):
        read(path)


Cells = list[list[Any]]
LOANS: Cells = [["amount", "default"], [100.5, "no"], ["23,5", "yes"]]


def sheets(path: Path, tables: Mapping[str, Cells | None], hidden: Iterable[str] = ()) -> Path:
    """Write a workbook with these sheets; None is a chart."""
    with xlsxwriter.Workbook(path) as made:
        for name, rows in tables.items():
            if rows is None:
                chart = made.add_chart({"type": "line"})
                chart.add_series({"values": "=loans!$A$2:$A$3"})
                made.add_chartsheet(name).set_chart(chart)
                continue
            sheet = made.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
            if name in hidden:
                sheet.hide()
    return path


def read_sheet(
    path: Path, sheet: str | None = None, inherited: Mapping[str, str] | None = None, **limits: int
) -> tuple[Source, list[dict[str, Any]]]:
    """Return the source of a sheet, and its rows as text."""
    payload = {
        "path": str(path),
        "content_type": XLSX,
        "content_encoding": None,
        "limits": {**LIMITS, **limits},
        "workdir": str(path.parent),
        "dialect": None if sheet is None else {"sheet": sheet},
        "inherited": inherited,
    }
    with ExitStack() as stack:
        source = open_source(payload, stack, MissingTokens(None))
        return source, [
            row for batch in source.batches(Errors()) for row in batch.batch.to_pylist()
        ]


def test_a_sheet_is_read_by_its_name(tmp_path: Path) -> None:
    path = sheets(
        tmp_path / "t.xlsx",
        {"notes": [["x", "y"], [1, 2]], "curve": None, "loans": LOANS, "old": LOANS},
        hidden=["old"],
    )
    source, rows = read_sheet(path, "loans")
    assert (source.sheet, source.sheets) == ("loans", ["notes", "loans"])
    assert rows == [{"amount": "100.5", "default": "no"}, {"amount": "23,5", "default": "yes"}]
    assert read_sheet(path, "LOANS")[1] == rows  # a spreadsheet ignores case, too
    assert read_sheet(path)[0].sheet == "notes"
    assert read_sheet(path, inherited={"sheet": "loans"})[1] == rows
    assert read_sheet(path, "notes", {"sheet": "loans"})[0].sheet == "notes"
    alone = sheets(tmp_path / "alone.xlsx", {"Q3": LOANS, "old": LOANS}, hidden=["old"])
    source, found = read_sheet(alone, inherited={"sheet": "loans"})
    assert (source.sheet, source.sheets, found) == ("Q3", ["Q3"], rows)
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == []


def test_a_workbook_of_many_sheets_costs_one(tmp_path: Path) -> None:
    many: dict[str, Cells | None] = {"loans": LOANS, "large": [["x", "y"], *([[1, 2]] * 600)]}
    path = sheets(tmp_path / "t.xlsx", many)
    assert len(read_sheet(path, cells=50)[1]) == 2
    with raises(BadTable, 50, 1202) as caught:
        read_sheet(path, "large", cells=50)
    assert (caught.value.code, caught.value.errors[0]["sheet"]) == ("too_large", "large")


def test_a_sheet_that_cannot_be_read_is_refused(tmp_path: Path, sentences: Sentences) -> None:
    title: Cells = [["Loans 2026"], [], ["amount", "term", "default"], [1, 2, "no"]]
    made: dict[str, Cells | None] = {"notes": [], "curve": None, "loans": LOANS}
    path = sheets(tmp_path / "t.xlsx", {**made, "titled": title, "old": LOANS}, hidden=["old"])
    readable = ["notes", "loans", "titled"]
    for wanted, inherited in (
        *((name, None) for name in ("Q3", "old", "curve", "notes", "titled")),
        (None, {"sheet": "credits"}),
    ):
        with sentences.raises(BadTable) as caught:
            read_sheet(path, wanted, inherited)
        error = caught.value.errors[0]
        assert error["sheets"] == readable
        assert (error.get("parameter") == "sheet") == (wanted not in ("notes", "titled"))
        assert error.get("line") == (1 if wanted == "titled" else None)
    for name, tables, hidden, suggestion in (
        ("empty", {"notes": [], "loans": LOANS}, [], {"sheet": "loans"}),
        ("single", {"loans": LOANS}, [], {"sheet": "loans"}),
        ("chart", {"curve": None, "loans": LOANS}, ["loans"], None),
    ):
        path = sheets(tmp_path / f"{name}.xlsx", tables, hidden)
        with sentences.raises(BadTable) as caught:
            read_sheet(path, "Q3" if name == "single" else None)
        assert caught.value.errors[0].get("suggestion") == suggestion


@pytest.mark.parametrize(
    ("rows", "is_title"),
    [
        ([["a", "b"], [1, 2]], False),
        ([["", "a", "b"], [0, 1, 2], [1, 2, 3]], False),  # a row index has no name
        ([["a"], [1], [2]], False),
        ([["title"], ["a", "b"], [1, 2]], True),
        ([["title", "", "", "as of May"], ["a", "b", "c", "d", "e"], [1, 2, 3, 4, 5]], True),
        ([[], ["title"], [], ["a", "b"]], True),
        ([["a", "b", "c"], [1, "", ""], ["", "", ""], ["", 2, ""]], False),
    ],
)
def test_a_title_above_the_header_is_refused(tmp_path: Path, rows: Cells, is_title: bool) -> None:
    path = sheets(tmp_path / "t.xlsx", {"loans": rows})
    if not is_title:
        read_sheet(path)
        return
    with raises(BadTable, "row", "'title'"):
        read_sheet(path)


def test_errors_in_a_sheet_name_its_cells(tmp_path: Path) -> None:
    rows: Cells = [["", "note", "amount"], ["", "two\nlines\r\nor three", 1.0], [], ["", "x", 2.0]]
    path = sheets(tmp_path / "t.xlsx", {"loans": rows, "notes": []})
    payload: dict[str, Any] = {"path": str(path), "content_type": XLSX, "content_encoding": None}
    payload |= {"limits": LIMITS, "workdir": str(tmp_path)}

    def refuse() -> None:
        errors = Errors()
        with ExitStack() as stack:
            source = open_source(payload, stack, MissingTokens(None))
            for batch in source.batches(errors):
                assert batch.lines is not None
                assert batch.lines.tolist() == [2, 4]
                batch.report(errors, "amount", np.array([False, True]), lambda _: "too small")
            raise errors.summarise()

    with pytest.raises(BadTable) as caught:
        refuse()
    assert caught.value.detail == "sheet 'loans', cell C4, column 'amount': too small"
    assert caught.value.errors == [
        {"line": 4, "column": "amount", "detail": "too small", "sheet": "loans", "cell": "C4"}
        | {"sheets": ["loans", "notes"]}
    ]


def test_a_workbook_that_lies_about_its_parts_is_measured(
    tmp_path: Path, sentences: Sentences
) -> None:
    path = tmp_path / "t.xlsx"
    intact = read(book(path, ROWS, TEXTS))[1]
    large = (
        f"<worksheet {MAIN}><sheetData><row>{cell('XFD1048576', 1)}</row></sheetData></worksheet>"
    )
    link = '<Relationship Id="r1" Type="{}/worksheet" Target="{}"/>'
    for target in ("sharedStrings.xml", "/xl/styles.xml", "../xl/media/x.xml"):
        links = link.format(OFFICE, target) + link.format(OFFICE, "worksheets/sheet1.xml")
        for order in (links, link.format(OFFICE, "worksheets/sheet1.xml") + links):
            part = target.removeprefix("../").removeprefix("/")
            part = part if part.startswith("xl/") else f"xl/{part}"
            text = f'<Relationships xmlns="{PACKAGE}/relationships">{order}</Relationships>'
            book(path, ROWS, TEXTS, **{"xl/_rels/workbook.xml.rels": text, part: large})
            with suppress(BadTable):
                assert read(path)[1] == intact
    links = f'<Relationships xmlns="{PACKAGE}/relationships">{link.format(OFFICE, "none.xml")}</Relationships>'
    book(path, ROWS, TEXTS, **{"xl/_rels/workbook.xml.rels": links})
    with sentences.raises(BadTable):
        read(path)


def test_days_may_be_counted_from_1904(tmp_path: Path) -> None:
    path = book(
        tmp_path / "t.xlsx",
        ROWS,
        TEXTS,
        **{
            "xl/workbook.xml": PARTS["xl/workbook.xml"].replace(
                "<sheets>", '<workbookPr date1904="1"/><sheets>'
            )
        },
    )
    assert read(path)[1][0]["day"] == "2030-03-24"


def test_other_files_of_office_are_recognized(tmp_path: Path, sentences: Sentences) -> None:
    path = tmp_path / "t.xls"
    magic = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512)
    for text in (b"", "EncryptedPackage".encode("utf-16-le")):
        path.write_bytes(magic + text + bytes(512))
        sentences(find_foreign(path))
    path.write_bytes(b"a,b\n1,2\n")
    assert find_foreign(path) is None


def test_a_workbook_is_bounded_before_it_is_checked(tmp_path: Path) -> None:
    path = sheets(tmp_path / "t.xlsx", {"loans": LOANS})
    limits = bounded(path, XLSX, None, {"columns": 10, "rows": 9_000_000}, 1 << 20, tmp_path)[
        "limits"
    ]
    assert limits["cells"] * 100 < 1 << 20
    assert limits["rows"] < 9_000_000


TABLE = b"number,text\n1,x\n2.5,\n"
RECORDS = [{"number": "1", "text": "x"}, {"number": "2.5", "text": None}]


def zipped(path: Path, *files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in files:
            file.writestr(name, data)
    return path


def test_an_archive_of_one_table_is_read_as_the_table(tmp_path: Path) -> None:
    path = tmp_path / "table.zip"
    beside = (("__MACOSX/._table.csv", b"x"), ("folder/", b""), ("folder/.DS_Store", b"x"))
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        zipped(path, ("folder/table.csv", TABLE), *beside, method=method)
        assert read(path, "application/zip") == ((CSV, "zip"), RECORDS)
    zipped(path, ("table.csv", json.dumps(RECORDS).encode()))
    assert read(path, "application/zip") == ((JSON_ARRAY, "zip"), RECORDS)
    inner = book(tmp_path / "inner.xlsx", ROWS, TEXTS)
    zipped(path, ("inner.xlsx", inner.read_bytes()))
    found, rows = read(path, "application/zip")
    assert (found, len(rows)) == ((XLSX, "zip"), 2)


def test_a_bad_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.zip"

    def refused(*named: object) -> None:
        with raises(BadTable, *named):
            read(path)

    zipped(path, ("a.csv", TABLE), ("b.csv", TABLE))
    refused("ZIP", 2)
    zipped(path, ("folder/", b""))
    refused("ZIP", 0)
    zipped(path, ("a.csv", TABLE), method=zipfile.ZIP_LZMA)
    refused("'a.csv'", zipfile.ZIP_LZMA)
    zipped(path, ("a.csv", b"number\n" + b"1\n" * (LIMITS["bytes"] // 2)))
    refused(LIMITS["bytes"])
    whole = bytearray(zipped(path, ("a.csv", TABLE)).read_bytes())
    for flags in (6, whole.index(b"PK\x01\x02") + 8):
        whole[flags] |= 1
    path.write_bytes(whole)
    refused("'a.csv'")
    path.write_bytes(zipped(path, ("a.csv", TABLE)).read_bytes()[:-30])
    refused("ZIP")
    monkeypatch.setattr(archives, "MAX_DIRECTORY_BYTES", 1000)
    zipped(path, *((f"{i}.csv", b"") for i in range(50)))
    refused("ZIP", 1000)


def test_an_array_of_objects_is_read_as_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    records = [{"number": 1, "text": 'x\n"],[{', "é": None}, {"text": None, "number": 2.5}]
    rows = [
        {"number": "1", "text": 'x\n"],[{', "é": None},
        {"number": "2.5", "text": None, "é": None},
    ]
    for indent in (None, 1):
        path.write_text("\ufeff " + json.dumps(records, indent=indent, ensure_ascii=False) + "\n")
        assert read(path) == ((JSON_ARRAY, None), rows)
    monkeypatch.setattr("app.ingest.ndjson.PIECE", 3)
    assert read(path) == ((JSON_ARRAY, None), rows)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[]", 1),
        ('[{"a": 1},\n 3]', 2),
        ('[{"a": 1},\n]', 2),
        ('[{"a": 1}\n', 2),
        ('[{"a": 1}] x', 1),
        ('[\n{"a": 1} {"a": 2}]', 2),
        ('[{"a": 1},\n\n{"a": NaN}]', 3),
        ('[{"a": 1}, {"a": 1, "a": 2}]', 1),
        ('[{"a": ' + "[" * 100_000, 1),
        ('[{"a": "' + "x" * (1 << 20), 1),
        ('[{"a": [1]}]', 1),
        ('{"a": {"b": 1}}', 1),
    ],
)
def test_what_is_wrong_with_an_array_is_named_by_its_line(
    tmp_path: Path, text: str, line: int, sentences: Sentences
) -> None:
    path = tmp_path / "table.json"
    path.write_text(text)
    with sentences.raises(BadTable) as caught:
        read(path, JSON_ARRAY)
    assert caught.value.errors[0]["line"] == line


def test_the_bytes_decide_and_leave_open_what_they_do_not_say(tmp_path: Path) -> None:
    path, table = tmp_path / "table", pa.table({"a": [1]})
    pq.write_table(table, path)
    parquet = path.read_bytes()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write(table)
    arrow_file = path.read_bytes()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    for data, kind in (
        (parquet, PARQUET),
        (arrow_file, ARROW_FILE),
        (path.read_bytes(), ARROW),
        (b'[{"a": 1}]', JSON_ARRAY),
        (b'\n{"a": 1}\n', NDJSON),
    ):
        for packed in (data, pa.Codec("gzip").compress(data, asbytes=True)):
            path.write_bytes(packed)
            for said in (CSV, NDJSON, PARQUET, XLSX, ""):
                assert find_format(path, said, None) == (kind, None)
    for data, said, kind in (
        (b"a,b\n1,2\n", NDJSON, NDJSON),
        (b"a,b\n1,2\n", PARQUET, CSV),
        (b"a,b\n1,2\n", "", CSV),
        (b"a,b\n1,2\n", "application/msword", "application/msword"),
        (b"[id],{name}\n1,2\n", CSV, CSV),
        (b"\xff\xfea\0,\0", CSV, CSV),
        (b"\x89PNG\r\n\x1a\n\0\0", "image/png", "image/png"),
        (b"\0\1\2", PARQUET, PARQUET),
        (b"\x1f\x8b and then nothing", CSV, CSV),
        (b"PK\x03\x04 and then nothing", XLSX, XLSX),
    ):
        path.write_bytes(data)
        assert find_format(path, said, None) == (kind, None)
