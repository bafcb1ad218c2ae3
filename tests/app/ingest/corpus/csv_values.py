"""The values of a CSV: numbers, booleans, dates, missing values, text, and which of them a column is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.app.ingest.corpus.case import Case, Refused, Table, column_of
from tests.app.ingest.corpus.values import NO_NUMBERS, NUMBERS, SPACED, TOKENS, TYPED

MEANT: list[tuple[str, str]] = [
    ("inf", "'inf' is not a finite number"),
    ("-inf", "'-inf' is not a finite"),
    ("Infinity", "not a finite number"),
    ("+INF", "'+INF' is not a finite number"),
    ("1e400", "'1e400' is outside the range of a float64"),
    ("-1e400", "'-1e400' is outside the range of a float64"),
    ("1e999999999", "is outside the range of a float64"),
    ("9" * 400, "is outside the range of a float64"),
    ('"1,5"', "write the decimal point: '1.5', or set decimal=comma"),
    ('"-0,5"', "write the decimal point: '-0.5'"),
    ('",5"', "write the decimal point: '.5'"),
    ('"1,000"', "set thousands=comma if it is 1000, or decimal=comma if it is 1.000"),
]
SLIPS = [
    (
        '"1.000,5"',
        "it has thousands separators; set decimal=comma and thousands=point, or write '1000.5'",
    ),
    ('"1,000,000"', "it has thousands separators; set thousands=comma, or write '1000000'"),
    ("1'000", "it has thousands separators; set thousands=apostrophe, or write '1000'"),
    ("1\0", "'1\\x00' is not a number"),
    ("-nan", "'-nan' is not a number"),
    ("x" * 50, f"'{'x' * 40}…' is not"),
]

FORMULAS = [
    "=1+1", "=cmd|' /C calc'!A0", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", "=HYPERLINK(0)",
    "'=1", "%0A",
]  # fmt: skip
HOSTILE = [
    "../../etc/passwd", "C:\\Windows\\x", "file:///etc/passwd", "<script>alert(1)</script>", "{{7*7}}",
    "${jndi:ldap://x}",
    "'; DROP TABLE datasets; --", "%s%n", "x\x01z", "x\x7fz", "\x1b[31mx", "x\u200bz", "x\u202ez", "x\u2028z",
    "x\x85z", "x\xa0",
    "\xa0x", "\ufeffx", "\ufffd", "\ue000x", "\U0001f98a x", "e\u0301", "é x", "ﬁ x", "Ω x", "K x", "שלום x",
    "ı x", "İ x", "ẞ x", "x" * 255,
]  # fmt: skip
ALIKE = [
    ("é", "e\u0301"), ("a", "а"), ("K", "K"), ("x", "X"), ("x z", "x  z"), ("ß", "ss"), ("x", "x\u200b"),
    ("ı", "i"),
]  # fmt: skip


def numbers() -> Iterator[Case]:
    """Numbers, other texts, and texts that were meant as numbers."""
    some = [*NUMBERS, *SPACED]
    expected = Table({"a": [value for _, value in some]}, {"a": "numeric"})
    yield Case("all numbers", "numbers", column_of([cell for cell, _ in some]), expected)
    for cell in NO_NUMBERS:
        expected = Table({"a": [cell, "1", "2"]}, {"a": "categorical"})
        yield Case(
            f"the text {cell}", "only numbers are numbers", column_of([cell, "1", "2"]), expected
        )
    for cell, detail in MEANT:
        body = column_of(["1", cell, "2"])
        yield Case(f"{cell[:24]} is meant", "meant as numbers", body, Refused(detail, 3, "a"))
    for cell, detail in SLIPS:
        body = column_of([*map(str, range(12)), cell])
        yield Case(f"{cell[:24]!r} is a slip", "text is no slip", body, Refused(detail, 14, "a"))
    late = [*map(str, range(12)), "1.5"]
    expected = Table({"a": [float(cell) for cell in late]}, {"a": "numeric"})
    yield Case("decimals that come late", "numbers", column_of(late), expected)
    late = ["1", "2", *["x", "z"] * 6]
    expected = Table({"a": late}, {"a": "categorical"})
    yield Case("text that comes late", "all rows have a say", column_of(late), expected)
    late = ["x", *map(str, range(12))]
    refusal = Refused("'x' is not a number, unlike nearly all other values", 2, "a")
    yield Case("numbers that come late", "all rows have a say", column_of(late), refusal)


def shares() -> Iterator[Case]:
    """Both sides of nine in ten."""

    def mixed(name: str, some: Sequence[str], other: str, kind: str, values: list[Any]) -> Case:
        expected = Table({"a": values}, {"a": kind})
        return Case(name, "text is no slip", column_of([*some, other]), expected)

    digits = [str(i) for i in range(40)]
    days = [f"2026-01-{day:02}" for day in range(1, 29)]
    detail = (
        "'x' is not a number, unlike nearly all other values; list the string for missing values"
    )
    no_date = "'x' is not a date, such as 2026-01-31"
    for count in (9, 1, 5):
        some = digits[:count]
        yield mixed(f"{count} numbers and a text", some, "x", "categorical", [*some, "x"])
        some = days[:count]
        yield mixed(f"{count} dates and a text", some, "x", "categorical", [*some, "x"])
    for count in (10, 19, 40):
        body = column_of([*digits[:count], "x"])
        refusal = Refused(detail, count + 2, "a")
        yield Case(f"{count} numbers and a text", "slips are errors", body, refusal)
    for count in (10, 28):
        body = column_of([*days[:count], "x"])
        refusal = Refused(no_date, count + 2, "a")
        yield Case(f"{count} dates and a text", "slips are errors", body, refusal)
    cells = [*digits[:10], *["?", ""] * 5, "x"]
    refusal = Refused(detail, 22, "a")
    yield Case("missing values have no say", "slips are errors", column_of(cells), refusal)
    cells = [*["1", "2"] * 9, "x", "z"]
    yield mixed("18 numbers and two texts", cells[:-1], "z", "categorical", list(cells))
    cells = [*digits[:19], "x", "z"]
    refusal = Refused(detail, 21, "a", total=2)
    yield Case("19 numbers and two texts", "slips are errors", column_of(cells), refusal)
    cells = [*(["250.83", "428", "0401"] * 11), "V58", "V58", "V58"]
    yield Case(
        "codes of which some look like numbers",
        "codes beside numbers",
        column_of(cells),
        Table({"a": cells}, {"a": "categorical"}),
    )
    cells = [*(str(75_000 + i) for i in range(210)), *(f"2A{i:03}" for i in range(20))] * 2
    yield Case(
        "codes of letters and digits beside whole numbers",
        "codes beside numbers",
        column_of(cells),
        Table({"a": cells}, {"a": "categorical"}),
    )
    for cells in ([*digits, "x"], [*digits[:4] * 60, "x"], [*digits * 30, *["?x"] * 2]):
        expected = Table(
            {"a": [float(c) if c.isdigit() else None for c in cells]}, {"a": "numeric"}
        )
        name = f"a rare word among {len(cells)}"
        yield Case(name, "slips are no codes", column_of(cells), expected)
    cells = [*digits[:11], "2026-01-31"]
    refusal = Refused("'2026-01-31' is not a number", 13, "a")
    yield Case("a date among numbers", "slips are errors", column_of(cells), refusal)
    cells = [*days[:11], "5"]
    refusal = Refused("'5' is not a date, such as 2026-01-31", 13, "a")
    yield Case("a number among dates", "slips are errors", column_of(cells), refusal)
    cells = [*days[:3], *digits[:3]]
    yield mixed("dates and numbers", cells[:-1], cells[-1], "categorical", list(cells))


def booleans() -> Iterator[Case]:
    """Two words in any case."""
    cells = ["true", "FALSE", "NA", '"True"', " fAlSe\t"]
    expected = Table({"a": [1.0, 0.0, None, 1.0, 0.0]}, {"a": "boolean"})
    yield Case("booleans in any case", "booleans", column_of(cells), expected)
    expected = Table({"a": [1.0, 1.0]}, {"a": "boolean"})
    yield Case("true alone", "booleans", column_of(["true", "true"]), expected)
    for words in (["yes", "no"], ["t", "f"], ["on", "off"], ["true", "falsch"], ["T", "true", "f"]):
        expected = Table({"a": words}, {"a": "categorical"})
        name = f"{' and '.join(words)} are text"
        yield Case(name, "booleans are two words", column_of(words), expected)
    expected = Table({"a": ["true", "1"]}, {"a": "categorical"})
    yield Case("a number after true", "booleans", column_of(["true", "1"]), expected)
    expected = Table({"a": [*(float(i) for i in range(30)), None]}, {"a": "numeric"})
    cells = [*map(str, range(30)), "true"]
    yield Case("true after numbers", "rare slips are missing", column_of(cells), expected)
    refusal = Refused("'true' is not a number, unlike nearly all other values", 32, "a")
    yield Case("true after numbers, strictly", "slips are errors", column_of(cells), refusal)


def missing_values() -> Iterator[Case]:
    """The usual tokens, and those of the caller."""
    tokens = ["", " ", '""', '"  "', *TOKENS]
    expected = Table({"a": [*[1.5] * 3, *[None] * len(tokens)]}, {"a": "numeric"})
    yield Case("missing numbers", "missing tokens", column_of([*["1.5"] * 3, *tokens]), expected)
    expected = Table({"a": ["x", *[None] * len(tokens), "x"]}, {"a": "categorical"})
    yield Case("missing texts", "missing tokens", column_of(["x", *tokens, "x"]), expected)
    expected = Table({"a": [None, None]}, {"a": "numeric"})
    yield Case("nothing but tokens", "missing tokens", column_of(["?", "NA"]), expected)
    yield Case("nothing but a dash", "missing tokens", column_of(["-", "None"]), expected)
    for of_type, cell, value in (
        ("numeric", "1.5", 1.5),
        ("boolean", "true", 1.0),
        ("datetime", "1970-01-01", 0.0),
    ):
        for name, listed in (("", None), (", whatever is said", ["unknown"]), (", if none is", [])):
            expected = Table({"a": [value, *[None] * len(TYPED)]}, {"a": of_type})
            body = column_of([cell, *TYPED])
            about = f"more tokens than values of type {of_type}{name}"
            yield Case(about, "tokens of a type", body, expected, said={"missing": listed})
    expected = Table({"a": ["x", "None", "-", "."]}, {"a": "categorical"})
    yield Case("words that may be tokens", "text", column_of(["x", "None", "-", "."]), expected)
    said: list[tuple[str, list[str], list[str], list[Any], str]] = [
        ("a word", ["unknown"], ["1", "Unknown", "2"], [1.0, None, 2.0], "numeric"),
        ("words", ["no idea", "-"], ["x", "NO IDEA", "-"], ["x", None, None], "categorical"),
        ("a number", ["-999"], ["1", "-999", "-999.0"], [1.0, None, None], "numeric"),
        ("a number among text", ["99"], ["x", "99", "z"], ["x", None, "z"], "categorical"),
        ("a number otherwise", ["1e3"], ["1", "1000", "2"], [1.0, None, 2.0], "numeric"),
        ("a date", ["1900-01-01"], ["1970-01-01", "1900-01-01"], [0.0, None], "datetime"),
        ("nothing else", [], ["x", "NA", "?"], ["x", "NA", "?"], "categorical"),
        ("another", ["x"], ["x", "NA", "null"], [None, "NA", "null"], "categorical"),
        ("in other letters", ["Ä"], ["ä", "u", "w"], [None, "u", "w"], "categorical"),
        ("a boolean", ["false"], ["true", "false"], [1.0, None], "boolean"),
    ]
    for name, tokens, cells, values, kind in said:
        expected = Table({"a": values}, {"a": kind})
        body = column_of(cells)
        rule = "what is said to be missing"
        yield Case(f"{name} is said to be missing", rule, body, expected, said={"missing": tokens})
    expected = Table({"a": [1000.0, 5.0]}, {"a": "numeric"})
    given = {"missing": ["1_000", "٥"]}
    body = column_of(["1000", "5"])
    yield Case("tokens that Python counts", "a token is no Python", body, expected, said=given)


def texts() -> Iterator[Case]:
    """Text as it stands, whatever it is made of."""
    for cell in [*FORMULAS, *HOSTILE]:
        quoted = f'"{cell}"'
        expected = Table({"a": [cell, "u"]}, {"a": "categorical"})
        name = f"the text {cell[:24].encode('unicode_escape').decode()}"
        yield Case(f"{name} is kept", "text is kept", column_of([quoted, "u"]), expected)
    for one, other in ALIKE:
        expected = Table({"a": [one, other, one]}, {"a": "categorical"})
        name = f"{one} and {other.encode('unicode_escape').decode()} differ"
        yield Case(name, "text is kept", column_of([one, other, one]), expected)
    expected = Table({"a": ["u", "u", "u", "w"]}, {"a": "categorical"})
    body = column_of([" u", "u\t", "u", '" w "'])
    yield Case("spaces around text", "spaces around", body, expected)
    expected = Table({"a": ["u", "w"]}, {"a": "categorical"})
    yield Case("words are categories", "text", column_of(["u", "w"]), expected)
    nul = Refused(
        "a category must have at most 255 characters (RANKWRIGHT_MAX_CATEGORY_LENGTH) without NUL, got 3: 'x\\x00z'",
        3,
        "a",
    )
    yield Case("a NUL in text", "no NUL in a category", column_of(["u", "x\0z"]), nul)
    codes = {
        "zip codes": ["01234", "1234"],
        "numbers": ["1", "2"],
        "007": ["007", "7"],
        "big ones": ["9007199254740993", "9007199254740992"],
    }
    for name, cells in codes.items():
        expected = Table({"a": cells}, {"a": "categorical"})
        given = {"categorical": ["a"]}
        rule = "categorical by declaration"
        yield Case(f"{name} by declaration", rule, column_of(cells), expected, said=given)
    expected = Table({"a": ["2026-01-31", None]}, {"a": "categorical"})
    given = {"categorical": ["a"]}
    body = column_of(["2026-01-31", "NA"])
    yield Case("dates by declaration", "categorical by declaration", body, expected, said=given)


def identifiers() -> Iterator[Case]:
    """Text that hardly repeats is no feature, from twenty values on."""

    def names(count: int, distinct: int) -> bytes:
        rows = [f"{i % 3},n{min(i, distinct - 1)},{i % 2}\n" for i in range(count)]
        return ("n,a,y\n" + "".join(rows)).encode()

    for count, distinct in ((20, 20), (20, 19), (40, 37)):
        expected = Table({}, {"a": "categorical"}, {"a": "identifier", "n": "feature"})
        yield Case(f"{distinct} of {count} differ", "identifiers", names(count, distinct), expected)
    for count, distinct in ((19, 19), (20, 18), (40, 36), (30, 2)):
        expected = Table({}, {"a": "categorical"}, {"a": "feature"})
        name = f"{distinct} of {count} differ"
        yield Case(name, "categories are no identifiers", names(count, distinct), expected)
    expected = Table({}, {"a": "categorical"}, {"a": "feature"})
    given = {"categorical": ["a"]}
    rule = "categorical by declaration"
    yield Case("identifiers by declaration", rule, names(20, 20), expected, said=given)
    body = b"a,y\n" + b"".join(b"n%d,%d\n" % (i, i % 2) for i in range(20))
    refusal = Refused("nearly every row has a different value in 'a'", None, "a", "no_features")
    yield Case("nothing but identifiers", "identifiers alone are no table", body, refusal)


CASES = [
    *numbers(), *shares(), *booleans(), *missing_values(), *texts(), *identifiers()
]  # fmt: skip
