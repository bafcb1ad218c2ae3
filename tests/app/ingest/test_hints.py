"""Which columns have dates, and which names what rows belong to."""

from __future__ import annotations

from typing import Any

import pytest

from app.ingest.hints import group_column, time_column


def column(name: str, kind: str = "datetime", **more: Any) -> dict[str, Any]:
    plain = {"role": "feature", "missing": 0, "distinct": 300, "min": 0.0, "max": 9.0, "top": []}
    return {"name": name, "type": kind, **plain, **more}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([], None),
        ([column("x", "numeric")], None),
        ([column("day")], None),  # no other feature
        ([column("day"), column("x", "numeric")], "day"),
        ([column("day", missing=1), column("x", "numeric")], None),
        ([column("day", distinct=1), column("x", "numeric")], None),
        ([column("day", role="dropped", missing=None), column("x", "numeric")], None),
        ([column("born", max=-5.0), column("sold"), column("x", "numeric")], "sold"),
        ([column("sold"), column("paid", missing=3, max=10.0), column("born", max=1.0)], "sold"),
    ],
)
def test_the_time_is_the_latest_date_that_all_rows_have(columns: Any, expected: str | None) -> None:
    assert time_column(columns) == expected


@pytest.mark.parametrize(
    ("name", "more", "is_group"),
    [
        ("customer_id", {}, True),
        ("customer_id", {"type": "categorical"}, True),
        ("PatientId", {}, True),
        ("Client number", {}, True),
        ("user", {}, True),
        ("ID", {}, True),
        ("customer_age", {}, False),
        ("room number", {}, False),
        ("paid", {}, False),
        ("customer_id", {"distinct": 29}, False),
        ("customer_id", {"distinct": 950}, False),  # nearly every row has its own
        ("customer_id", {"distinct": 850, "missing": 100}, False),
        ("customer_id", {"role": "identifier", "type": "categorical"}, False),
        ("customer_id", {"type": "datetime"}, False),
    ],
)
def test_what_rows_belong_to_has_such_a_name_and_repeats(
    name: str, more: dict[str, Any], is_group: bool
) -> None:
    columns = [column("x", "numeric"), column(name, "numeric") | more]
    assert group_column(columns, 1000) == (name if is_group else None)


def test_of_numbers_that_are_not_all_counted_the_range_decides() -> None:
    known = column("customer_id", "numeric", distinct=10_000, max=19_999.0)
    del known["top"]
    assert group_column([known], 100_000) == "customer_id"
    assert group_column([known], 20_000) is None
