"""Changes of a table over time: which are found and dated, and which are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from app.ingest.over_time import FOLLOWS_TIME, TOO_FEW, OverTime
from app.ingest.periods import MAX_PERIODS, UNITS, divide

Floats = npt.NDArray[np.float64]
DAY = 86_400.0


def spread(rng: np.random.Generator, n: int, months: int = 12) -> tuple[Floats, Floats]:
    """Times over so many months of 2025, and the number of each row's month."""
    ends = (np.datetime64("2025-01", "M") + np.arange(months + 1)).astype("datetime64[s]")
    edges = ends.astype(np.float64)
    times = rng.uniform(edges[0], edges[-1], n)
    return times, np.searchsorted(edges, times, side="right").astype(np.float64) - 1.0


def found_in(
    columns: dict[str, Floats], times: Floats, positive: Any = None, **more: Any
) -> dict[str, Any]:
    over_time = OverTime("at", times, positive, n_columns=len(columns), **more)
    for name, values in columns.items():
        over_time.add(name, values, None)
    found = over_time.find()
    assert found is not None
    return found


def dated(found: dict[str, Any]) -> list[Any]:
    return [
        (each["first"], each["last"], [column["name"] for column in each["columns"]])
        for each in found["changes"]
    ]


def test_a_mix_that_changes_for_good_is_dated() -> None:
    rng = np.random.default_rng(0)
    times, month = spread(rng, 6000)
    product = (rng.random(6000) < np.where(month >= 2, 0.6, 0.3)).astype(float)
    positive = rng.random(6000) < np.where(month >= 2, 0.3, 0.1)
    found = found_in({"product": product, "noise": rng.normal(size=6000)}, times, positive)
    assert dated(found) == [("2025-03", None, ["product"])]
    (change,) = found["changes"]
    assert change["columns"][0]["psi"]["low"] < 0.38 < change["columns"][0]["psi"]["high"]
    assert change["positives"]["changed"]
    assert change["positives"]["inside"]["value"] == pytest.approx(0.3, abs=0.03)
    assert change["positives"]["outside"]["value"] == pytest.approx(0.1, abs=0.03)
    assert "2025-03" in found["words"]
    assert [period["name"] for period in found["periods"]][:2] == ["2025-01", "2025-02"]
    assert sum(period["rows"] for period in found["periods"]) == 6000
    assert len(change["columns"][0]["by_period"]) == 12


@pytest.mark.parametrize(("first", "last"), [(4, 4), (4, 6), (0, 0)])
def test_a_change_for_some_months_is_dated(first: int, last: int) -> None:
    rng = np.random.default_rng(1)
    times, month = spread(rng, 12_000)
    inside = (month >= first) & (month <= last)
    found = found_in({"product": (rng.random(12_000) < 0.3 + 0.3 * inside).astype(float)}, times)
    # Of the first months, the others are those that are said to have changed.
    names = ("2025-02", None) if first == 0 else (f"2025-0{first + 1}", f"2025-0{last + 1}")
    assert dated(found) == [(*names, ["product"])]
    assert found["changes"][0]["positives"] is None


def test_rows_without_a_change_have_no_finding() -> None:
    rng = np.random.default_rng(2)
    times, _ = spread(rng, 3000)
    found = found_in({"a": rng.normal(size=3000)}, times, rng.random(3000) < 0.1)
    assert (found["words"], found["changes"], found["varying"]) == (None, [], [])


def test_the_fraction_of_positives_alone_may_change() -> None:
    rng = np.random.default_rng(3)
    times, month = spread(rng, 12_000)
    positive = rng.random(12_000) < np.where(month >= 6, 0.3, 0.15)
    found = found_in({"a": rng.normal(size=12_000)}, times, positive)
    assert dated(found) == [("2025-07", None, [])]
    assert found["words"] is not None


def test_columns_that_follow_the_calendar_are_not_tested() -> None:
    rng = np.random.default_rng(4)
    times, month = spread(rng, 6000)
    over_time = OverTime("at", times, None, n_columns=3)
    over_time.add("at", times, None, is_date=True)
    over_time.add("month", month, None)
    over_time.add("counter", np.argsort(np.argsort(times)).astype(float), None)
    over_time.add("other date", times + DAY, None, is_date=True)
    found = over_time.find()
    assert found is not None
    assert {each["name"] for each in found["untested"]} == {"month", "counter", "other date"}
    assert {each["reason"] for each in found["untested"]} == {FOLLOWS_TIME}
    assert found["words"] is None


def test_a_season_is_no_change_from_a_month_on() -> None:
    rng = np.random.default_rng(5)
    times, month = spread(rng, 24_000, 24)
    warm = np.sin(2.0 * np.pi * month / 12.0)
    found = found_in({"degrees": rng.normal(size=24_000) + warm}, times)
    assert found["changes"] == []
    assert [each["name"] for each in found["varying"]] == ["degrees"]


def test_customers_with_many_rows_are_no_rows_of_their_own() -> None:
    rng = np.random.default_rng(16)
    times, month = spread(rng, 6000)
    # Each month has 20 customers of its own, with 25 rows each.
    customer = (20 * month + rng.integers(0, 20, 6000)).astype(np.intp)
    values = (rng.random(240) < 0.5)[customer].astype(float)
    assert found_in({"a": values}, times)["words"] is not None
    told = found_in({"a": values}, times, unit=customer)
    assert told["words"] is None


def test_weights_of_0_and_missing_times_are_no_rows() -> None:
    rng = np.random.default_rng(7)
    times, month = spread(rng, 6000)
    changed = (rng.random(6000) < np.where(month >= 6, 0.8, 0.2)).astype(float)
    weight = np.where(month == 3, 0.0, 1.0)
    times[:100] = np.nan
    found = found_in({"a": changed}, times, weight=weight)
    assert found["rows"] == np.count_nonzero((month != 3)[100:])
    assert dated(found) == [("2025-07", None, ["a"])]


def test_too_few_rows_are_said_to_be_untested() -> None:
    rng = np.random.default_rng(8)
    times, _ = spread(rng, 150)
    found = found_in({"a": rng.normal(size=150)}, times)
    assert found["untested"] == [{"name": "a", "reason": TOO_FEW}]


def test_rows_of_one_period_have_no_finding() -> None:
    times = np.full(500, 1.7e9)
    over_time = OverTime("at", times, None, n_columns=1)
    over_time.add("a", np.arange(500.0), None)
    assert over_time.find() is None


@pytest.mark.parametrize(
    ("days", "unit", "first"),
    [
        (40, "week", "2024-12-30"),
        (200, "month", "2025-01"),
        (8 * 365, "quarter", "2025-Q1"),
        (30 * 365, "year", "2025"),
        (300 * 365, "decade", "2020s"),
    ],
)
def test_the_length_of_periods_follows_the_span(days: int, unit: str, first: str) -> None:
    start = np.datetime64("2025-01-01", "s").astype(np.float64)
    times = start + np.arange(0, days * DAY, days * DAY / 2000)
    found = found_in({"a": np.zeros(len(times))}, times)
    assert (found["unit"], found["periods"][0]["name"]) == (unit, first)
    assert len(found["periods"]) <= MAX_PERIODS


def test_periods_follow_each_other() -> None:
    seconds: Floats = np.arange(-400.0, 400.0) * DAY
    for unit in UNITS:
        divided = divide(seconds, (unit,))
        for number in np.unique(divided.number)[:-1].tolist():
            assert divided.limits(number)["end"] == divided.limits(number + 1)["start"]
