"""Names of columns, and the bounds on a table."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from app.ingest.formats import ARROW, CSV, NDJSON
from tests.app.ingest.corpus.case import SHORT, TYPED, Case, Refused, Table, column_of, typed_body

NAMES = [
    "../../etc/passwd", "a/b", "a\\b", ".", "..", "a.b", "[0]", ".a", "C:", "__proto__", "$where", "=1+1",
    "@x", "<b>", "%s", "{0}", "; rm -rf /", "' OR 1=1", "שלום", "نص", "漢字", "🦊", "a b", "a, b", 'a"b', "Ω", "ﬁ",
    "e\u0301", "x" * 255,
    "é" * 255, "𝒳" * 255, "-", "#", "a\tb"[:1] + "·b", "?", "NA x",
]  # fmt: skip
UNPRINTABLE = [
    "a\0b", "a\x01b", "a\x7fb", "a\x1bb", "a\nb", "a\rb", "a\tb", "a\u00a0b", "a\u00adb", "a\u200bb", "a\u200eb",
    "a\u202eb", "a\u2028b",
    "a\ufeffb", "a\ufffeb", "a\ue000b", "a\u0378b", "a\U000e0041b",
]  # fmt: skip


def names() -> Iterator[Case]:
    """Which names are kept as they are, and which cannot be used."""
    for name in NAMES:
        quoted = '"' + name.replace('"', '""') + '"'
        body = f"{quoted},y\n1,0\n2,1\n".encode()
        title = f"the name {name[:20]} of {len(name)}"
        yield Case(title, "names are kept", body, Table({name: [1.0, 2.0], "y": [0, 1]}))
    expected = Table({"a b": [1.0, 2.0], "y": [0, 1]})
    yield Case("spaces around names", "names are kept", b" a b ,\ty\n1,0\n2,1\n", expected)
    for name in UNPRINTABLE:
        body = f'"{name}",y\n1,0\n2,1\n'.encode()
        detail = "the name of column 1 must be at most 255 printable UTF-8 characters, got"
        title = f"the name {name.encode('unicode_escape').decode()}"
        yield Case(title, "names are printable", body, Refused(detail, 1))
        line_of = json.dumps({name: 1, "y": 0}) + "\n"
        detail = "must be at most 255 printable UTF-8 characters"
        if name in UNPRINTABLE[:4]:
            body = line_of.encode()
            yield Case(title, "names are printable", body, Refused(detail, 1), NDJSON)


def unfit_names() -> Iterator[Case]:
    """Names that are too long, or there already."""
    for name, length in (("x", 256), ("é", 256), ("x", 70_000)):
        body = f"b,{name * length},y\n1,1,0\n2,2,1\n".encode()
        detail = "the name of column 2 must be at most 255 printable UTF-8 characters"
        title = f"a name of {length} times {name}"
        yield Case(title, "names have a length", body, Refused(detail, 1))
    for title, header, name in (
        ("the same", "a,a,y", "a"),
        ("the same but for spaces", "a, a ,y", "a"),
        ("the label", "a,y,y", "y"),
        ("the same in quotes", '"a b",a b,y', "a b"),
    ):
        body = f"{header}\n1,2,0\n3,4,1\n".encode()
        refusal = Refused("column names must differ", 1, name, "duplicate_column")
        yield Case(f"names that are {title}", "names differ", body, refusal)
    for one, other in (("é", "e\u0301"), ("Å", "\u212b"), ("한", "\u1112\u1161\u11ab")):
        body = f"{one},{other},y\n1,2,0\n3,4,1\n".encode()
        refusal = Refused("column names must differ", 1, other, "duplicate_column")
        rule = "names differ in any form"
        yield Case(f"{one} in two forms", rule, body, refusal)
    same = pa.Table.from_arrays([pa.array([1, 2])] * 3, names=["a", "a", "y"])
    refusal = Refused("'a' is column 1 and column 2", None, "a", "duplicate_column")
    yield Case("names that are the same", "names differ", typed_body(same, ARROW), refusal, ARROW)
    body = b'{"a": 1, "y": 0}\n{" a": 1, "y": 1}\n'
    refusal = Refused("'a' is column 1 and column 3", 2, "a", "duplicate_column")
    yield Case("names that are the same", "names differ", body, refusal, NDJSON)
    differ = {"case": "a,A,y", "look": "a,а,y", "width": "a,ａ,y", "spaces within": "a b,a  b,y"}
    for title, header in differ.items():
        one, other, _ = header.split(",")
        body = f"{header}\n1,2,0\n3,4,1\n".encode()
        expected = Table({one: [1.0, 3.0], other: [2.0, 4.0]})
        yield Case(f"names that differ in {title}", "names are kept", body, expected)
    for content_type in TYPED:
        table = pa.table({"nAZZ": [1, 2], "y": [0, 1]})
        for options in [{}, {"store_schema": False}] if content_type == TYPED[0] else [{}]:
            forged = typed_body(table, content_type, **options).replace(b"nAZZ", b"n\xff\xfe\x80")
            refusal = Refused(
                "a column name must be at most 255 printable UTF-8 characters, got 'n"
            )
            title = f"a name that is no UTF-8 {options or ''}"
            yield Case(title, "names are UTF-8", forged, refusal, content_type)


def bodies() -> Iterator[tuple[str, bytes]]:
    """Three rows of three columns, in every format."""
    rows = [(1, 4, 0), (2, 5, 1), (3, 6, 1)]
    yield CSV, b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % row for row in rows)
    yield (
        NDJSON,
        "".join(json.dumps(dict(zip("aby", row, strict=True))) + "\n" for row in rows).encode(),
    )
    table = pa.table(dict(zip("aby", map(list, zip(*rows, strict=True)), strict=True)))
    for content_type in TYPED:
        yield content_type, typed_body(table, content_type)


def limits() -> Iterator[Case]:
    """Bounds reached, and bounds crossed."""
    whole = Table({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0], "y": [0, 1, 1]})
    for content_type, body in bodies():
        line = 1 if content_type in (CSV, NDJSON) else None
        for what in ("rows", "columns"):
            yield Case(
                f"three {what} of three",
                f"as many {what} as may be",
                body,
                whole,
                content_type,
                {what: 3},
            )
        detail = "a table can have at most 2 rows (RANKWRIGHT_MAX_ROWS); this one has more"
        refusal = Refused(detail, code="too_many_rows")
        yield Case(
            "a row too many", "at most so many rows", body, refusal, content_type, {"rows": 2}
        )
        detail = "a table can have at most 2 columns (RANKWRIGHT_MAX_COLUMNS), got 3"
        refusal = Refused(detail, line, code="too_many_columns")
        rule = "at most so many columns"
        yield Case("a column too many", rule, body, refusal, content_type, {"columns": 2})
        for codec in ("gzip", "zstd"):
            packed = pa.compress(body, codec=codec, asbytes=True)
            given: dict[str, Any] = {"encoding": codec, "bytes": len(body)}
            title = f"as many bytes in {codec} as may be"
            yield Case(title, "as many bytes as may be", packed, whole, content_type, given)
            given = {"encoding": codec, "bytes": len(body) - 1}
            detail = (
                f"the table can have at most {len(body) - 1} bytes (RANKWRIGHT_MAX_UPLOAD_BYTES) "
                "after decompression; this one has more"
            )
            refusal = Refused(detail, code="too_large")
            yield Case(
                f"a byte too many in {codec}",
                "at most so many bytes",
                packed,
                refusal,
                content_type,
                given,
            )
    bomb = gzip.compress(b"a,y\n1,0\n2,1\n" + b"\n" * 1_000_000)
    refusal = Refused("the table can have at most 5000 bytes", code="too_large")
    yield Case("a gzip bomb", "at most so many bytes", bomb, refusal, said={"bytes": 5000})
    body = column_of(["u", "w", "x", "u"])
    expected = Table({"a": ["u", "w", "x", "u"]}, {"a": "categorical"})
    rule = "as many categories as may be"
    yield Case("three categories of three", rule, body, expected, said={"categories": 3})
    expected = Table({"a": ["u", "w", None, "u"]}, {"a": "categorical"})
    rule = "at most so many categories"
    yield Case("a category too many", rule, body, expected, said={"categories": 2})
    given = {"categories": 2, "categorical": ["a"]}
    numbers = column_of(["3", "2", "1"])
    expected = Table({"a": [None, "2", "1"]}, {"a": "categorical"})
    yield Case("a declared category too many", rule, numbers, expected, said=given)
    body = column_of(["u", "ééé", "x"])
    expected = Table({"a": ["u", "ééé", "x"]})
    rule = "as long a category as may be"
    yield Case("a category of three characters", rule, body, expected, said={"category_length": 3})
    refusal = Refused(
        "at most 2 characters (RANKWRIGHT_MAX_CATEGORY_LENGTH) without NUL, got 3: 'ééé'", 3, "a"
    )
    rule = "at most so long a category"
    yield Case("a character too many", rule, body, refusal, said={"category_length": 2})


def emptiness() -> Iterator[Case]:
    """Empty files, nearly empty ones, and a header alone."""
    nothing = Refused("the file is empty: it must have a header and rows", 1)
    yield Case("no bytes", "not empty", b"", nothing)
    for title, body in (
        ("a mark alone", b"\xef\xbb\xbf"),
        ("line ends alone", b"\n\r\n\r\n"),
        ("a marked line end", b"\xef\xbb\xbf\n"),
    ):
        refusal = Refused("the file has only blank lines: it must have a header and rows", 1)
        beside = body + b"a,y\n1,0\n2,1\n"
        yield Case(title, "", body, refusal, beside=beside)
    for title, body in (
        ("", b"a,y"),
        (" and a line end", b"a,y\n"),
        (" and blank lines", b"a,y\r\n\r\n\r\n"),
        (" of one column", b"a\n"),
    ):
        refusal = Refused("the table has a header but no rows", code="no_rows")
        if title == " of one column":
            detail = "a table needs a label and at least one feature column, got only 'a'"
            refusal = Refused(detail, code="no_features")
        rule = "there are features" if title == " of one column" else "there are rows"
        yield Case(f"a header alone{title}", rule, body, refusal)
    for content_type in TYPED:
        empty = pa.table({"a": pa.array([], pa.int64()), "y": pa.array([], pa.int64())})
        refusal = Refused("the table has a header but no rows", code="no_rows")
        yield Case(
            "no rows", "there are rows", typed_body(empty, content_type), refusal, content_type
        )
        refusal = Refused("got only no column", code="no_features")
        body = typed_body(pa.table({}), content_type)
        yield Case("no columns", "there are features", body, refusal, content_type)


CASES = [*names(), *unfit_names(), *limits(), *emptiness()]
assert set(SHORT) == {content_type for content_type, _ in bodies()}
