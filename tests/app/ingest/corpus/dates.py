"""Dates and times, as text of a CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.app.ingest.corpus.case import Case, Refused, Table, column_of
from tests.app.ingest.corpus.values import DATES, NO_DATES, NO_DAYS


def cases() -> Iterator[Case]:
    """Every way to write a date, days that no calendar has, and other ways."""
    expected = Table({"a": [seconds for _, seconds in DATES]}, {"a": "datetime"})
    yield Case("all dates", "dates", column_of([f'"{text}"' for text, _ in DATES]), expected)
    for text in NO_DAYS:
        body = column_of(["1970-01-02", text])
        refusal = Refused(f"'{text}' is not a date, such as 2026-01-31", 3, "a")
        yield Case(f"the day {text}", "the calendar", body, refusal)
    for text in NO_DATES:
        expected = Table({"a": [text, "u"]}, {"a": "categorical"})
        body = column_of([f'"{text}"', "u"])
        if "/" not in text:
            yield Case(f"{text} is text", "what a date is", body, expected)
    expected = Table({"a": [86400.0, 86400.0]}, {"a": "datetime"})
    yield Case("spaced dates", "dates", column_of([" 1970-01-02", "1970-01-02\t"]), expected)
    yield Case("quoted dates", "dates", column_of(['"1970-01-02"'] * 2), expected)
    yield from orders()


APRIL_3, MARCH_4, NOON_4 = 1775174400.0, 1772582400.0, 1772625600.0


def orders() -> Iterator[Case]:
    """Dates with slashes: the values say what comes first, or the caller does; else they are words."""
    rule = "dates with slashes"

    def case(name: str, cells: list[str], values: list[Any], kind: str, **said: Any) -> Case:
        return Case(name, rule, column_of(cells), Table({"a": values}, {"a": kind}), said=said)

    day, month = ({"dialect": {"dates": order}} for order in ("day_first", "month_first"))
    cells = ["03/04/2026", "3/4/2026"]
    yield case("an order that nobody says", cells, cells, "categorical")
    yield case("the day first, as is said", cells, [APRIL_3] * 2, "datetime", **day)
    yield case("the month first, as is said", cells, [MARCH_4] * 2, "datetime", **month)
    cells = ["03/04/2026", "04/04/2026", "20/01/2026"]
    days = [APRIL_3, APRIL_3 + 86400, 1768867200.0]
    yield case("the day first, as is seen", cells, days, "datetime")
    dashes = [cell.replace("/", "-") for cell in cells]
    yield case("dashes, as is seen", dashes, days, "datetime")
    cells = ["03/04/2026 12:00 PM", "3/4/2026 0:00", "1/20/2026 12:00"]
    yield case("the month first", cells, [NOON_4, MARCH_4, 1768910400.0], "datetime")
    cells = ["03/04/2026", "01/20/2026", "20/01/2026"]
    yield case("both orders", cells, cells, "categorical")
    cells = ["03/04/2026"] * 20 + ["20/01/2026"]
    yield case("one value is enough", cells, [APRIL_3] * 20 + [1768867200.0], "datetime")
    refusal = Refused(
        "'20/01/2026' is not a date, such as 2026-01-31, 2026-01-31T12:00:00Z, 01/31/2026", 22, "a"
    )
    yield Case("an order that is not the one said", rule, column_of(cells), refusal, said=month)
    other = b"a,b,y\n03/04/2026,20/01/2026,0\n03/04/2026,21/01/2026,1\n"
    found = Table({"a": [APRIL_3] * 2}, {"a": "datetime", "b": "datetime"})
    yield Case("one column shows it for all", rule, other, found)
    other = b"a,b,y\n20/01/2026,01/20/2026,0\n21/01/2026,01/21/2026,1\n"
    found = Table({"a": ["20/01/2026", "21/01/2026"]}, {"a": "categorical", "b": "categorical"})
    yield Case("two columns differ", rule, other, found)
    cells = ["13/01/2026", *["01/02/2026"] * 5, *["01/20/2026"] * 20]
    refusal = Refused(
        "'13/01/2026' is not a date, such as 2026-01-31, 2026-01-31T12:00:00Z, 01/31", 2, "a"
    )
    yield Case("all rows say the order, not the first", rule, column_of(cells), refusal)
    cells = ["03/04-2026", "u"]
    yield case("two kinds of marks", cells, cells, "categorical")


CASES = list(cases())
