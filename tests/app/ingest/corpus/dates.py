"""Dates and times, as text of a CSV."""

from __future__ import annotations

from collections.abc import Iterator

from tests.app.ingest.corpus.case import Case, Refused, Table, column_of
from tests.app.ingest.corpus.values import DATES, NO_DATES, NO_DAYS


def cases() -> Iterator[Case]:
    """Every way to write a date, days that no calendar has, and other ways."""
    expected = Table({"a": [seconds for _, seconds in DATES]}, {"a": "datetime"})
    yield Case("all dates", "dates", column_of([text for text, _ in DATES]), expected)
    for text in NO_DAYS:
        body = column_of(["1970-01-02", text])
        refusal = Refused(f"'{text}' is not an ISO 8601 date", 3, "a")
        yield Case(f"the day {text}", "the calendar", body, refusal)
    for text in NO_DATES:
        expected = Table({"a": [text, "u"]}, {"a": "categorical"})
        body = column_of([f'"{text}"', "u"])
        yield Case(f"{text} is text", "dates are of ISO", body, expected)
    expected = Table({"a": [86400.0, 86400.0]}, {"a": "datetime"})
    yield Case("spaced dates", "dates", column_of([" 1970-01-02", "1970-01-02\t"]), expected)
    yield Case("quoted dates", "dates", column_of(['"1970-01-02"'] * 2), expected)


CASES = list(cases())
