"""The reading of each spelling of a value, by route: the grammar of `app.ingest.values` as a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC

UPLOAD, TEXT, JSON = "upload", "text", "json"
"""A cell of a table to learn from; a text to score, wherever it stands; and a literal of JSON."""
REFUSED = "(refused)"
"""An error; in an upload a value that does not fit its column."""

CATEGORIES = tuple(
    sorted(
        ("-5", "0", "12", "2.5", "3", "a&b=c", "dark red", "eight bb", "false", "green", "grün", "re\nd\n", "red",
         "sixteen letters!", "true", "ü", "\U0001f600", "1e+300")
    )
)  # fmt: skip
"""What the models know."""


class Value(NamedTuple):
    """A spelling, and what it comes to: a number, the text of a category, None where it is missing, or REFUSED."""

    carrier: str
    kind: str
    spelling: str
    found: float | str | None


NUMBERS: list[tuple[str, float]] = [
    ("0", 0.0), ("-0", -0.0), ("-0.0", -0.0), ("+5", 5.0), ("007", 7.0), ("00.50", 0.5), ("1.", 1.0), (".5", 0.5),
    ("-.5", -0.5), ("+.5", 0.5), ("1e3", 1e3), ("1E3", 1e3), ("1e+3", 1e3), ("1.5e-7", 1.5e-7), ("1e0", 1.0),
    ("5e-324", 5e-324), ("1e-400", 0.0), ("-1e-400", -0.0), ("2.2250738585072014e-308", 2.2250738585072014e-308),
    ("1.7976931348623157e308", 1.7976931348623157e308), ("9007199254740993", 2.0**53),
    ("9007199254740995", 2.0**53 + 4), ("18446744073709551616", 2.0**64), ("-9223372036854775809", -(2.0**63)),
    ("123456789012345678901234567890", 1.2345678901234568e29), ("0.1", 0.1),
    ("0.30000000000000004", 0.30000000000000004),
    ("0.1000000000000000055511151231257827", 0.1), ("8.41", 8.41), ("1" + "0" * 300, 1e300),
    ("0." + "0" * 300 + "1", 1e-301),
]  # fmt: skip
SPACED = [(" 3", 3.0), ("3 ", 3.0), ("\t3", 3.0), (" 3\t ", 3.0)]
DRESSED = [
    ("\u22125", -5.0), ("\u20135.5", -5.5), ("5-", -5.0), ("5\u2212", -5.0), ("(5)", -5.0), ("($5.50)", -5.5),
    ("$5", 5.0), ("-$5", -5.0), ("$-5", -5.0), ("$ 5", 5.0), ("5\u00a0$", 5.0), ("12%", 0.12), ("12.5 %", 0.125),
    ("-3\u202f%", -0.03), ("1\u00a0234", 1234.0), ("-1\u202f234\u202f567.5", -1234567.5), ("1\u2009000", 1000.0),
    ("- 5", -5.0), ("+ 5", 5.0), ("\u2212\u00a05.5", -5.5), ("- $5", -5.0), ("\u00a05", 5.0), ("5\u00a0", 5.0),
    ("\u202f-5%\u00a0", -0.05), ("１２", 12.0), ("－１２．５", -12.5), ("０", 0.0), ("１２％", 0.12), ("＄５", 5.0),
    ("1２", 12.0),
]  # fmt: skip
"""Numbers as people write them."""
NO_NUMBERS = [
    "0x10", "0b1", "1_000", "1 000", "1'000", "$5€", "5%%", "(5", "5)", "-5-", "(-5)", "1e", "e5", "--5", "+-5",
    "1.2.3", "٣", "Ⅳ", "½", "００１２", "１２個",
    "5–10", "5--", "1/2", "10:30", "∞", "nan(1)", "1.5f", "1d5", "..", "+", "--", "1e+", "1e5.5", "5 5", "1·5",
    "3 000",
    "0x1p3", "1.#INF", "infinit", "#N/B",
]  # fmt: skip
NOT_FINITE = ["inf", "-inf", "Infinity", "+INF", "1e400", "-1e400", "1e999999999", "9" * 400]
TOKENS = [
    "NA",
    "na",
    "Na",
    "N/A",
    "n/a",
    "null",
    "NULL",
    "Null",
    "NaN",
    "nan",
    "NAN",
    "?",
    "#N/A",
    "#n/a",
    "<NA>",
    r"\N",
    " NULL ",
    "na\t",
]
TYPED = [".", "-", "None", "NONE", " . ", "none\t"]
"""Missing in a column of a type; a word among words."""

NOON = 1769860800.0  # 2026-01-31T12:00:00Z
DATES: list[tuple[str, float]] = [
    ("2026-01-31", NOON - 43200), ("2026-01-31T12:00", NOON), ("2026-01-31 12:00", NOON),
    ("2026-01-31T12:00:00", NOON),
    ("2026-01-31T12:00:00Z", NOON), ("2026-01-31 12:00:00Z", NOON), ("2026-01-31T12:00Z", NOON),
    ("2026-01-31T12:00:00.5Z", NOON + 0.5), ("2026-01-31T12:00:00.25", NOON + 0.25),
    ("2026-01-31T12:00:00,5Z", NOON + 0.5), ("2026-01-31t12:00:00z", NOON), ("2026-01-31 12:00:00 UTC", NOON),
    ("2026-01-31T12:00:00.5000000Z", NOON + 0.5), ("2026-01-31T12:00:00.250000999 UTC", NOON + 0.25),
    ("2026-01-31T12:00Z", NOON), ("2026-01-31T13:00:00.123456789+01:00", NOON + 0.123456),
    ("2026-01-31T12:00:00.123456", NOON + 0.123456), ("2026-01-31T12:00:00.000001Z", NOON + 0.000001),
    ("2026-01-31T13:00+01:00", NOON), ("2026-01-31T13:00:00+0100", NOON), ("2026-01-31T13:00+01", NOON),
    ("2026-01-31T06:30:00-05:30", NOON), ("2026-02-01T11:59+23:59", NOON), ("2026-01-30T12:01-23:59", NOON),
    ("1970-01-01", 0.0), ("1969-12-31T23:59:59Z", -1.0), ("1969-12-31T23:59:59.5Z", -0.5),
    ("0001-01-01", -62135596800.0), ("9999-12-31T23:59:59.999999", 253402300799.999999),
    ("0001-01-01T00:00+14:00", -62135596800.0 - 50400), ("9999-12-31T23:59-12:00", 253402300740.0 + 43200),
    ("2024-02-29", 1709164800.0), ("1900-02-28", -2203977600.0), ("2000-02-29", 951782400.0),
    ("31.01.2026", NOON - 43200), ("31.1.2026", NOON - 43200), ("31.01.2026 12:00", NOON), ("31.01.2026, 12:00", NOON),
    ("31.1.2026 12:00:00.5", NOON + 0.5), ("31.01.2026 13:00:00+01:00", NOON), ("31.01.2026 9:05", NOON - 10500),
    ("31.01.2026 12:00 AM", NOON - 43200), ("31.01.2026 12:00pm", NOON), ("31.01.2026 1:05 pm", NOON + 3900),
    ("29.02.2024", 1709164800.0), ("01.02.0001", -62132918400.0),
]  # fmt: skip
NO_DAYS = [
    "2026-02-30", "2026-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-01-00", "2026-01-32",
    "0000-01-01", "0000-12-31T12:00Z",
    "30.02.2026", "29.02.1900", "01.01.0000", "31.01.2026 24:00", "31.01.2026 13:00 pm", "31.01.2026 0:30 AM",
    "2026-01-31T24:00", "2026-01-31T12:60", "2016-12-31T23:59:60Z", "2026-01-31T25:00:00", "2026-01-31T99:99",
]  # fmt: skip
NO_DATES = [
    "26-01-31", "2026-1-31", "31.01.26", "32.01.2026", "31.13.2026", "31.01-2026", "31.01.2026T12:00", "31.01.2026 12",
    "2026.01.31", "01.31.2026", "01/31/2026", "31/01/2026", "2026/01/31", "2026-W05-6", "2026-031", "2026-01",
    "2026-01-31T",
    "2026-01-31T12", "2026-01-31T12:00:00,", "2026-01-31T12:00:00.", "2026-01-31T12:00 GMT", "2026-01-31T12:00 utc",
    "2026-01-31T12:00+24:00",
    "2026-01-31T12:00+01:60", "2026-01-31  12:00", "+2026-01-31", "-0001-01-01", "12026-01-31",
    "2026-01-31T12:00+1", "２０２６-01-31", "20260131T120000Z", "Jan 31, 2026",
]  # fmt: skip

KNOWN = [
    *((text, text) for text in CATEGORIES),
    (" red", "red"), ("red\t", "red"), (" \t dark red \t", "dark red"), (" sixteen letters! ", "sixteen letters!"),
    ("ü ", "ü"), (" " * 1_000 + "red", "red"),
    ("3.0", "3"), (" 3.00", "3"), ("-5.0", "-5"), ("-0.0", "0"), ("True", "true"), ("FALSE", "false"),
]  # fmt: skip
UNKNOWN = [
    "Red", "re", "redd", "red\n", "re d", "3.", "3.0.0", "+3", "03", "03.0", "2.50", "3.000", "eight b",
    "gru\u0308n", "ｒｅｄ", "日本",
    "\u00a0red", "red\u200b", "\x7f", "~", "[[],{}", "2026-01-31", "x" * 5_000,
]  # fmt: skip


def text_values() -> Iterator[Value]:
    """Cells of tables, values of queries, and strings of JSON."""
    for carrier in (UPLOAD, TEXT):
        for text, number in [*NUMBERS, *SPACED, *DRESSED]:
            yield Value(carrier, NUMERIC, text, number)
        for text in [*NO_NUMBERS, *NOT_FINITE, "true", "2026-01-31", "1,5", "[1]", '"1"', "1=2"]:
            yield Value(carrier, NUMERIC, text, REFUSED)
        for text, seconds in DATES:
            yield Value(carrier, DATETIME, text, seconds)
            yield Value(carrier, DATETIME, f" {text}\t", seconds)
        for text in [*NO_DAYS, *NO_DATES, "5", "true"]:
            yield Value(carrier, DATETIME, text, REFUSED)
        for text in ("true", "True", "TRUE", " tRuE\t"):
            yield Value(carrier, BOOLEAN, text, 1.0)
        yield Value(carrier, BOOLEAN, "faLse ", 0.0)
        for kind in (NUMERIC, BOOLEAN, DATETIME, CATEGORICAL):
            for text in ("", " ", "\t "):
                yield Value(carrier, kind, text, None)
            if kind != CATEGORICAL:
                for text in [*TOKENS, *TYPED]:
                    yield Value(carrier, kind, text, None)
            elif carrier == UPLOAD:
                for text in TYPED:
                    yield Value(carrier, kind, text, text.strip())
        for text, category in KNOWN:
            yield Value(carrier, CATEGORICAL, text, category)
        for text in UNKNOWN:
            if carrier != UPLOAD:
                yield Value(carrier, CATEGORICAL, text, None)
        for text in TOKENS:
            yield Value(carrier, CATEGORICAL, text, None)
        for text, kind, value in (("5", NUMERIC, 5.0), ("1970-01-02", DATETIME, 86400.0)):
            for space in (
                "\n",
                "\r\n",
                "\xa0",
            ):  # other white space counts, but for some around numbers
                found = value if kind == NUMERIC and space == "\xa0" else REFUSED
                yield Value(carrier, kind, text + space, found)
                yield Value(carrier, kind, space + text, found)
        if carrier != UPLOAD:
            for text, flag in (
                ("1", 1.0),
                ("0", 0.0),
                ("1.0", 1.0),
                ("0.0", 0.0),
                ("+1", 1.0),
                ("-0", 0.0),
            ):
                yield Value(carrier, BOOLEAN, text, flag)
            for text in ("2", "-1", "0.5", "yes", "t", "on", "truee", "1e400", "1970-01-02"):
                yield Value(carrier, BOOLEAN, text, REFUSED)


NO_JSON = [
    "",
    "+5",
    ".5",
    "5.",
    "05",
    "-",
    "1e",
    "1e+",
    "0x10",
    "NaN",
    "Infinity",
    "tru",
    "True",
    "nul",
    "'x'",
    "red",
]
NO_JSON += ['"', '"x', '"red""', '"\\x"', '"\\ud800"', '"a\tb"', '"a\nb"', "1e400", "9" * 400]


def json_values() -> Iterator[Value]:
    """Literals of JSON."""

    def value(kind: str, literal: str, found: float | str | None) -> Value:
        return Value(JSON, kind, literal, found)

    for text, number in NUMBERS:
        if text[0] in "+." or text.startswith(("-.", "00")) or text.endswith("."):
            yield value(NUMERIC, text, REFUSED)
        else:
            yield value(
                NUMERIC, text, 0.0 if text == "-0" else number
            )  # an integer has no such sign
    for literal in ("true", "false", "[1]", "{}", '["1"]'):
        yield value(NUMERIC, literal, REFUSED)
    for literal, flag in (
        ("true", 1.0),
        ("false", 0.0),
        ("1", 1.0),
        ("0", 0.0),
        ("1.0", 1.0),
        ("0e5", 0.0),
    ):
        yield value(BOOLEAN, literal, flag)
    for literal in ("2", "-1", "0.5", "[true]", "{}"):
        yield value(BOOLEAN, literal, REFUSED)
    for literal in ("0", "86400.5", "true", '["1970-01-02"]', "{}"):
        yield value(DATETIME, literal, REFUSED)
    for literal, category in (
        ("3", "3"), ("3.0", "3"), ("30e-1", "3"), ("2.50", "2.5"), ("-5", "-5"), ("0", "0"), ("-0", "0"), ("-0.0", "0"),
        ("true", "true"), ("false", "false"), ("7", None), ("1e300", "1e+300"), ("123456789012345678", None),
        ('"r\\u0065d"', "red"), ('"\\ud83d\\ude00"', "\U0001f600"),
    ):  # fmt: skip
        yield value(CATEGORICAL, literal, category)
    for literal in ("[]", '["red"]', "{}", '{"red": 1}'):
        yield value(CATEGORICAL, literal, REFUSED)
    for kind in (NUMERIC, BOOLEAN, DATETIME, CATEGORICAL):
        yield value(kind, "null", None)
        for literal in NO_JSON:
            yield value(kind, literal, REFUSED)


VALUES = [*text_values(), *json_values()]
