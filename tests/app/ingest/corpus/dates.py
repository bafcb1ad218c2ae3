"""Dates and times, as text of a CSV."""

from __future__ import annotations

from collections.abc import Iterator

from corpus.case import Case, Refused, Table, column_of

NOON = 1769860800.0  # 2026-01-31T12:00:00Z
FORMS: list[tuple[str, float]] = [
    ("2026-01-31", NOON - 43200), ("2026-01-31T12:00", NOON), ("2026-01-31 12:00", NOON),
    ("2026-01-31T12:00:00", NOON),
    ("2026-01-31T12:00:00Z", NOON), ("2026-01-31 12:00:00Z", NOON), ("2026-01-31T12:00Z", NOON),
    ("2026-01-31T12:00:00.5Z", NOON + 0.5), ("2026-01-31T12:00:00.25", NOON + 0.25),
    ("2026-01-31T12:00:00.123456", NOON + 0.123456), ("2026-01-31T12:00:00.000001Z", NOON + 0.000001),
    ("2026-01-31T13:00+01:00", NOON), ("2026-01-31T13:00:00+0100", NOON), ("2026-01-31T13:00+01", NOON),
    ("2026-01-31T06:30:00-05:30", NOON), ("2026-02-01T11:59+23:59", NOON), ("2026-01-30T12:01-23:59", NOON),
    ("1970-01-01", 0.0), ("1969-12-31T23:59:59Z", -1.0), ("1969-12-31T23:59:59.5Z", -0.5),
    ("0001-01-01", -62135596800.0), ("9999-12-31T23:59:59.999999", 253402300799.999999),
    ("0001-01-01T00:00+14:00", -62135596800.0 - 50400), ("9999-12-31T23:59-12:00", 253402300740.0 + 43200),
    ("2024-02-29", 1709164800.0), ("1900-02-28", -2203977600.0), ("2000-02-29", 951782400.0),
]  # fmt: skip
NO_DAY = [
    "2026-02-30", "2026-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-01-00", "2026-01-32",
    "0000-01-01", "0000-12-31T12:00Z",
    "2026-01-31T24:00", "2026-01-31T12:60", "2016-12-31T23:59:60Z", "2026-01-31T25:00:00", "2026-01-31T99:99",
]  # fmt: skip
OTHERS = [
    "26-01-31", "2026-1-31", "31.01.2026", "01/31/2026", "2026/01/31", "2026-W05-6", "2026-031", "2026-01",
    "2026-01-31T",
    "2026-01-31T12", "2026-01-31T12:00:00,5", "2026-01-31T12:00:00.1234567", "2026-01-31t12:00z",
    "2026-01-31T12:00+24:00",
    "2026-01-31T12:00+01:60", "2026-01-31  12:00", "+2026-01-31", "-0001-01-01", "12026-01-31",
    "2026-01-31T12:00 UTC",
    "2026-01-31T12:00+1", "２０２６-01-31", "20260131T120000Z", "Jan 31, 2026",
]  # fmt: skip


def cases() -> Iterator[Case]:
    """Every way to write a date, days that no calendar has, and other ways."""
    for text, seconds in FORMS:
        expected = Table({"a": [seconds, 86400.0]}, {"a": "datetime"})
        yield Case(f"the date {text}", "dates", column_of([text, "1970-01-02"]), expected)
    for text in NO_DAY:
        body = column_of(["1970-01-02", text])
        refusal = Refused(f"'{text}' is not an ISO 8601 date", 3, "a")
        yield Case(f"the day {text}", "the calendar", body, refusal)
    for text in OTHERS:
        expected = Table({"a": [text, "u"]}, {"a": "categorical"})
        body = column_of([f'"{text}"', "u"])
        yield Case(f"{text} is text", "dates are of ISO", body, expected)
    expected = Table({"a": [86400.0, 86400.0]}, {"a": "datetime"})
    yield Case("spaced dates", "dates", column_of([" 1970-01-02", "1970-01-02\t"]), expected)
    yield Case("quoted dates", "dates", column_of(['"1970-01-02"'] * 2), expected)


CASES = list(cases())
