"""The text of a CSV: quotes, line ends, ragged rows, encodings, delimiters, decimal marks."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

from tests.app.ingest.corpus.case import Case, Refused, Table, column_of

A = [1.0, 2.0]
Y = [0, 1]
PLAIN = Table({"a": A, "y": Y}, {"a": "numeric"}, result={"negative": "0", "positive": "1"})


def text_case(name: str, rule: str, cells: list[str], values: list[str | None]) -> Case:
    """A categorical column whose cells stand for these values."""
    return Case(name, rule, column_of(cells), Table({"a": values}, {"a": "categorical"}))


def quotes() -> Iterator[Case]:
    """Quotes around values and within."""
    cells = {
        "comma": ('"x,z"', "x,z"),
        "doubled": ('"say ""x"""', 'say "x"'),
        "nothing but a quote": ('""""', '"'),
        "a line feed": ('"x\nz"', "x\nz"),
        "CRLF": ('"x\r\nz"', "x\r\nz"),
        "CR": ('"x\rz"', "x\rz"),
        "blank lines": ('"x\n\n\nz"', "x\n\n\nz"),
        "the row after": ('"x\n1,0\nz"', "x\n1,0\nz"),
        "all": ('"x"', "x"),
        "a part": ('"x"z', "xz"),
        "what is within a value": ('x"z"', 'x"z"'),
        "an inch": ('5" disk', '5" disk'),
        "emoji and comma": ('"🦊,x"', "🦊,x"),
        "a formula": ('"=SUM(A1,B1)"', "=SUM(A1,B1)"),
    }
    for name, (cell, value) in cells.items():
        yield text_case(f"quotes around {name}", "csv grammar", [cell, "w"], [value, "w"])
    yield Case(
        "quoted numbers",
        "csv grammar",
        column_of(['"1"', '"2"']),
        Table({"a": A}, {"a": "numeric"}),
    )
    yield Case("a quoted header", "csv grammar", b'"a","y"\n1,0\n2,1\n', PLAIN)
    yield Case(
        "a header with a comma",
        "csv grammar",
        b'"a,b",y\n1,0\n2,1\n',
        Table({"a,b": A, "y": Y}),
    )
    yield Case(
        "a header with a quote", "csv grammar", b'"a""b",y\n1,0\n2,1\n', Table({'a"b': A, "y": Y})
    )
    yield Case(
        "the line of an error after a quoted line break",
        "rows as wide as the header",
        b'a,b,y\n1,"p\nq",0\n2,"r\r\ns",1\n3,t\n',
        Refused("2 values, but the header has 3", 6),
    )
    for name, cells_of_row, line, column in (
        ("first cell", '"1,0\n2,1\n3,0\n', 3, "a"),
        ("last cell", '1,"0\n2,1\n3,0\n', 3, "y"),
        ("last row", '1,0\n2,"1', 4, "y"),
        ("after a quoted line break", '"1\n1","0\n2,1\n', 4, "y"),
        ("at the very end", '1,0\n2,1\n"', 5, "a"),
        ("last cell after a quote within a value", 'x"z,"1', 3, "y"),
    ):
        body = "a,y\n5,1\n" + cells_of_row
        yield Case(
            f"an unclosed quote in the {name}",
            "unclosed quotes",
            body.encode(),
            Refused("a quote is opened here but not closed", line, column),
        )
    yield Case(
        "an unclosed quote in the header",
        "unclosed quotes",
        b'a,"y\n1,0\n2,1\n',
        Refused("the header opens a quote but does not close it", 1),
    )


def line_ends() -> Iterator[Case]:
    """LF, CR and CRLF, blank lines, and rows of a wrong width."""
    for name, end in (("CRLF", "\r\n"), ("CR", "\r")):
        yield Case(f"{name} ends lines", "csv grammar", column_of(["1", "2"], end=end), PLAIN)
        body = end.join(["a,y", "1,0", "2,1", "3", "4,0", ""]).encode()
        yield Case(
            f"{name} ends lines that are counted",
            "rows as wide as the header",
            body,
            Refused("1 value, but the header has 2", 4),
        )
    three = Table({"a": [1.0, 2.0, 3.0]})
    yield Case("line ends of three kinds", "csv grammar", b"a,y\r\n1,0\n2,1\r3,0\r\n", three)
    yield Case("no line end at the end", "csv grammar", b"a,y\r\n1,0\r\n2,1", PLAIN)
    blank = {
        "below the header": b"a,y\n\n\n1,0\n2,1\n",
        "between rows": b"a,y\n1,0\n\n2,1\n",
        "at the end": b"a,y\n1,0\n2,1\n\n\n\n",
        "of CRLF at the end": b"a,y\r\n1,0\r\n2,1\r\n\r\n\r\n",
        "of CR at the end": b"a,y\r1,0\r2,1\r\r\r",
        "by CR before CRLF": b"a,y\r\r\n1,0\r\r\n2,1\r\r\n",
    }
    for name, body in blank.items():
        yield Case(f"blank lines {name}", "csv grammar", body, PLAIN)
    wide = "rows as wide as the header"
    for name, row, count in (
        ("short", "3", "1 value"),
        ("of spaces", "   ", "1 value"),
        ("long", "3,0,1", "3 values"),
        ("with a comma at its end", "3,0,", "3 values"),
        ("of commas", ",,,,", "5 values"),
    ):
        detail = f"{count}, but the header has 2"
        yield Case(
            f"a row {name}", wide, f"a,y\n1,0\n2,1\n{row}\n4,1\n".encode(), Refused(detail, 4)
        )
        body = f"a,y\n1,0\n2,1\n\n{row}".encode()
        yield Case(f"a row {name}, the last", wide, body, Refused(detail, 5))
    above = b"\n\r\n\na,y\n1,0\n2\n"
    detail = "1 value, but the header has 2"
    yield Case("blank lines above the header", wide, above, Refused(detail, 6))
    yield Case(
        "rows short and long",
        wide,
        b"a,b,y\n1,2\n1,2,0\n1,2,3,4\n5,6,1\n7\n",
        Refused("2 values, but the header has 3", 2, total=3),
    )
    yield Case(
        "a decimal comma makes a row long",
        wide,
        b"a,y\n1,5,0\n2,1\n",
        Refused("3 values, but the header has 2", 2),
    )


def bytes_and_codecs() -> Iterator[Case]:
    """UTF-8 and what is not, byte order marks, other encodings."""
    words = ["é", "€ 5", "漢字", "🦊"]
    table = Table({"ä": [*words], "y": [0, 1, 0, 1]}, {"ä": "categorical"})
    text = "ä,y\n" + "".join(f"{word},{i % 2}\n" for i, word in enumerate(words))
    yield Case("UTF-8 with a mark", "byte order mark", b"\xef\xbb\xbf" + text.encode(), table)
    quoted = b'\xef\xbb\xbf"a",y\n1,0\n2,1\n'
    yield Case("UTF-8 with a mark and a quote", "byte order mark", quoted, PLAIN)
    for codec in ("utf-16", "utf-16-le", "utf-16-be"):
        plain = "a,y\n1,0\n2,1\n".encode(codec)
        yield Case(f"{codec} is seen", "UTF-16 is seen", plain, PLAIN)
    marked = "\ufeff" + text
    for codec in ("utf-16-le", "utf-16-be"):
        yield Case(f"{codec} with a mark", "UTF-16 is seen", marked.encode(codec), table)
    crlf = "a,y\r\n1,0\r\n2,1\r\n".encode("utf-16-le")
    yield Case("UTF-16 with CRLF", "UTF-16 is seen", crlf, PLAIN)
    given = {"dialect": {"encoding": "utf-8"}}
    yield Case("UTF-8 is said", "what is said of a CSV", text.encode(), table, said=given)
    for codec in ("utf-8-sig", "utf-16"):
        packed = gzip.compress(text.encode(codec))
        yield Case(f"gzip around {codec}", "compression is seen", packed, table)
    said: list[tuple[str, str, str, list[str | None]]] = [
        ("latin-1", "latin-1", "é,ÿ,\x85,¤", ["é", "ÿ", "\x85", "¤"]),
        ("windows-1252", "cp1252", "€,œ,é,“", ["€", "œ", "é", "“"]),
        ("utf-16", "utf-16-be", "漢,字,🦊,é", ["漢", "字", "🦊", "é"]),
    ]
    for name, codec, cells, values in said:
        body = column_of(cells.split(",")).decode().encode(codec)
        if name == "utf-16":
            body = "漢,y\n1,0\n2,1\n".encode(codec)
            expected = Table({"漢": A})
        else:
            expected = Table({"a": values}, {"a": "categorical"})
        given = {"dialect": {"encoding": name}}
        yield Case(f"{name} is said", "what is said of a CSV", body, expected, said=given)
    yield from broken_bytes()


def broken_bytes() -> Iterator[Case]:
    """Bytes that are no text."""
    broken = {
        "German": (
            b"K\xf6ln",
            "byte 0xF6 is not UTF-8; with encoding=windows-1252 it reads 'Köln'",
        ),
        "an overlong form": (b"x\xc0\x80", "byte 0xC0 is not UTF-8"),
        "a surrogate": (b"\xed\xa0\x80", "byte 0xED is not UTF-8"),
        "a stray byte": (b"x\x80z", "byte 0x80 is not UTF-8"),
        "half a character": (b"x\xe2\x82", "byte 0xE2 is not UTF-8"),
        "beyond Unicode": (b"\xf4\x90\x80\x80", "byte 0xF4 is not UTF-8"),
        "five bytes": (b"\xf8\x88\x80\x80\x80", "byte 0xF8 is not UTF-8"),
    }
    for name, (cell, detail) in broken.items():
        body = b"a,b,y\n1,u,0\n2," + cell + b",1\n3,w,1\n"
        yield Case(f"{name} in UTF-8", "UTF-8", body, Refused(detail, 3, "b"))
    bad = b"a,y\n1,0\n2,1\n3\xff,1\n"
    yield Case("a bad byte in a number", "UTF-8", bad, Refused("byte 0xFF is not", 4, "a"))
    bad = b"a,y\n1,0\n2,n\xe9\n3,0\n"
    yield Case("a bad byte in a label", "UTF-8", bad, Refused("byte 0xE9 is not", 3, "y"))
    head = b"gr\xf6\xdfe,y\n1,0\n2,1\n"
    detail = "the header: byte 0xF6 is not UTF-8; with encoding=windows-1252 it reads 'größe'"
    yield Case("a bad byte in a name", "UTF-8", head, Refused(detail, 1))
    rule = "bytes of an encoding"
    for name, end in (("LF", "\n"), ("CRLF", "\r\n"), ("CR", "\r")):
        body = end.join(["a,y", "u,0", "w\x81,1", "x,0"]).encode("latin-1")
        given = {"dialect": {"encoding": "windows-1252"}}
        yield Case(
            f"a byte that Windows-1252 has not, {name}",
            rule,
            body,
            Refused("byte 0x81 is not cp1252", 3),
            said=given,
        )
    odd = "a,y\n1,0\n2,1\n".encode("utf-16-le") + b"3"
    yield Case("half a character of UTF-16", rule, odd, Refused("byte 0x33 is not utf-16-le", 4))
    alone = "a,y\nu,0\n".encode("utf-16-le") + b"\x00\xd8" + "x,1\nw,0\n".encode("utf-16-le")
    yield Case("half a pair in UTF-16", rule, alone, Refused("is not utf-16-le", 3))
    for codec in ("utf-32-le", "utf-32-be"):
        body = "\ufeffa,y\n1,0\n2,1\n".encode(codec)
        detail = "the file is not CSV but UTF-32 text; save it as UTF-8"
        yield Case(f"{codec} is named", "no other format", body, Refused(detail, 1))
        yield Case(f"{codec} without a mark", "no other format", body[4:], Refused("", 1))
    others = {
        "Parquet": b"PAR1\x15\x04",
        "an empty ZIP archive": b"PK\x05\x06\0\0",
        "a spreadsheet or another document of an old Office format": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "PDF": b"%PDF-1.7\n",
        "a picture": b"\x89PNG\r\n\x1a\n",
        "an Arrow file": b"ARROW1\0\0",
    }
    for name, body in others.items():
        refusal = Refused(f"the file is not CSV but {name}", 1)
        yield Case(f"{name} is named", "no other format", body, refusal)
    for name, body in (
        ("7z", b"7z\xbc\xaf'\x1c"),
        ("RAR", b"Rar!\x1a\x07"),
        ("xz", b"\xfd7zXZ\0\0"),
    ):
        refusal = Refused(f"the file is compressed with {name}")
        yield Case(f"{name} is named", "no other format", body, refusal)


def dialects() -> Iterator[Case]:
    """Delimiters and decimal marks, detected or given."""
    marks = {"semicolon": ";", "tab": "\t", "pipe": "|"}
    for name, mark in marks.items():
        body = column_of(["1", "2"], mark)
        yield Case(f"a {name} is seen", "the delimiter is seen", body, PLAIN)
        given: dict[str, Any] = {"dialect": {"delimiter": name}}
        hidden = f"a,b{mark}y\n1{mark}0\n2{mark}1\n".encode()
        expected = Table({"a,b": A, "y": Y})
        yield Case(f"a {name} is said", "what is said of a CSV", hidden, expected, said=given)
    body = b"a|b;c;y\n1;2;0\n3;4;1\n"
    expected = Table({"a|b": [1.0, 3.0], "c": [2.0, 4.0]})
    yield Case("the most frequent is seen", "the delimiter is seen", body, expected)
    body = b"a;b,y\n1,0\n2,1\n"
    yield Case("a comma comes first", "the delimiter is seen", body, Table({"a;b": A, "y": Y}))
    body = b'"a,b";y\n1;0\n2;1\n'
    expected = Table({"a,b": A, "y": Y})
    yield Case("a quoted comma is no delimiter", "the delimiter is seen", body, expected)
    body = b"a;y\n1;0\n2;1\n"
    given = {"dialect": {"delimiter": "comma"}}
    refusal = Refused("at least one feature column, got only 'a;y'", code="no_features")
    yield Case("a comma is said", "what is said of a CSV", body, refusal, said=given)
    comma = {"dialect": {"decimal": "comma"}}
    for cell, value in (
        ("1,5", 1.5), ("-0,25", -0.25), (",5", 0.5), ("1,", 1.0), ("1,5e3", 1500.0), (" 2,5 ", 2.5),
        ("+1,5E-1", 0.15),
    ):  # fmt: skip
        body = f"a;y\n{cell};0\n2,5;1\n".encode()
        expected = Table({"a": [value, 2.5]}, {"a": "numeric"})
        yield Case(
            f"{cell!r} has a decimal comma", "what is said of a CSV", body, expected, said=comma
        )
    body = b'a,y\n"1,5",0\n"2,5",1\n'
    expected = Table({"a": [1.5, 2.5]})
    yield Case("decimal commas in quotes", "what is said of a CSV", body, expected, said=comma)
    ten = "".join(f"{i},5;{i % 2}\n" for i in range(20))
    for cell, detail in (
        ("1.5", "'1.5' is not a number; write the decimal comma: '1,5'"),
        (
            "1.234,5",
            "it has thousands separators; set thousands=point, or write '1234,5'",
        ),
        ("1.234", "it has thousands separators; set thousands=point, or write '1234'"),
        ("1,2,3", "'1,2,3' is not a number"),
    ):
        body = f"a;y\n{ten}{cell};1\n".encode()
        refusal = Refused(detail, 22, "a")
        name = f"{cell!r} among decimal commas"
        yield Case(name, "what is said of a CSV", body, refusal, said=comma)


GROUPED = {
    ("comma", "point"): {
        "1.234,5": 1234.5, "-1.234.567": -1234567.0, "+12.345,": 12345.0, "123.456e3": 123456e3, "1234,5": 1234.5,
        ",5": 0.5, " 1.234 ": 1234.0,
    },
    ("point", "comma"): {"1,234.5": 1234.5, "12,345,678": 12345678.0, "1234.5": 1234.5, "0.125": 0.125},
    ("comma", "space"): {"1 234,5": 1234.5, "1\u202f234": 1234.0, "1\u00a0234\u2009567": 1234567.0},
    ("point", "apostrophe"): {"1'234.5": 1234.5, "1\u2019234": 1234.0},
}  # fmt: skip
NO_GROUPS = [
    "1.23",
    "1.2345",
    "12.34,5",
    "1234.567",
    "1..234",
    ".234",
    "1.234.",
    "0.125",
    "1,5.000",
    "1.234 567",
]


def marks() -> Iterator[Case]:
    """Marks between thousands: only between groups of three digits, before the decimal mark."""
    rule = "thousands separators"
    for (decimal, thousands), cells in GROUPED.items():
        said = {"dialect": {"decimal": decimal, "thousands": thousands, "delimiter": "semicolon"}}
        expected = Table({"a": list(cells.values())}, {"a": "numeric"})
        yield Case(
            f"{thousands} and {decimal}", rule, column_of(list(cells), ";"), expected, said=said
        )
    said = {"dialect": {"decimal": "comma", "thousands": "point", "delimiter": "semicolon"}}
    for cell in NO_GROUPS:
        body = column_of([*map(str, range(12)), cell], ";")
        detail = (
            f"{cell!r} is not a number with thousands=point and decimal=comma: thousands separators"
        )
        yield Case(f"no number: {cell}", rule, body, Refused(detail, 14, "a"), said=said)


CASES = [*quotes(), *line_ends(), *bytes_and_codecs(), *dialects(), *marks()]
