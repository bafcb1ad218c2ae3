"""The AUC by period of the rows' time: months, coarser periods, and rows without a time."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.datasets.matrices import Table
from app.evaluation.vintages import measure_periods
from app.ingest.periods import MAX_PERIODS
from core.metrics import auc_interval
from tests.app.evaluated_people import evaluate, train
from tests.app.workbench import Workbench
from tests.long_form import LONG_FORM


def seconds(
    year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0
) -> float:
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()


def rows_of(y: Any, weight: Any = None, group: Any = None) -> Table:
    return Table(np.empty((len(y), 0)), y, weight, group, (), ())


def measure(
    folder: Path,
    times: Any,
    *,
    weight: Any = None,
    group: Any = None,
    dated: bool = True,
    signal: float = 1.0,
) -> Any:
    """Return the periods of rows with these times, with their labels and scores."""
    times = np.asarray(times, dtype=np.float64)
    rng = np.random.default_rng(len(times))
    y = (np.arange(len(times)) % 2).astype(np.int8)
    scores = rng.normal(size=len(times)) + signal * y
    pq.write_table(pa.table({"t": times}), folder / "rows.parquet")
    table = rows_of(y, weight, group)
    how: Any = {"column": "t", "dated": dated}
    return measure_periods(table, scores, str(folder / "rows.parquet"), how, 0.95), y, scores


def test_months_are_those_of_utc_also_before_1970(tmp_path: Path) -> None:
    first = [seconds(1969, 12, 31, 23, 59, 59)] * 40
    second = [seconds(1970, 1, 1)] * 30
    last = [seconds(1970, 3, 31, 23, 59, 59)] * 20
    found, y, scores = measure(tmp_path, [*first, *second, *last])
    assert (found["unit"], found["missing"], found["omitted"]) == ("month", 0, 0)
    names = [(each["name"], each["start"], each["end"], each["rows"]) for each in found["periods"]]
    assert names == [
        ("1969-12", "1969-12-01", "1970-01-01", 40),
        ("1970-01", "1970-01-01", "1970-02-01", 30),
        ("1970-03", "1970-03-01", "1970-04-01", 20),
    ]
    own = auc_interval(y[40:70], scores[40:70])
    assert found["periods"][1]["auc"] == own._asdict()


def test_long_spans_have_coarser_periods(tmp_path: Path) -> None:
    for years, unit, names in (
        (5, "month", ("2000-01", "2004-12")),
        (6, "quarter", ("2000-Q1", "2005-Q4")),
        (40, "year", ("2000", "2039")),
        (200, "decade", ("2000s", "2190s")),
    ):
        times = [
            seconds(2000 + k // 12, k % 12 + 1, 15) for k in range(12 * years) for _ in range(2)
        ]
        found, _, _ = measure(tmp_path, times)
        assert found["unit"] == unit
        assert len(found["periods"]) <= MAX_PERIODS
        assert (found["periods"][0]["name"], found["periods"][-1]["name"]) == names
        assert sum(each["rows"] for each in found["periods"]) == len(times)


def test_a_date_that_stands_for_no_date_is_one_period(tmp_path: Path) -> None:
    found, _, _ = measure(tmp_path, [seconds(2024, 5, 1)] * 40 + [seconds(9999, 12, 31)] * 4)
    assert [each["name"] for each in found["periods"]] == ["2024-05", "9999-12"]
    assert found["periods"][1]["auc"] is None
    assert found["periods"][1]["reason"] is not None


def test_rows_without_a_time_or_a_weight_are_in_no_period(tmp_path: Path) -> None:
    times = np.full(60, seconds(2024, 5, 1))
    times[:7] = np.nan
    weight = np.ones(60)
    weight[50:] = 0.0
    found, y, scores = measure(tmp_path, times, weight=weight)
    assert found["missing"] == 7
    (period,) = found["periods"]
    assert period["rows"] == 43
    assert period["auc"] == auc_interval(y[7:50], scores[7:50])._asdict()
    nothing, _, _ = measure(tmp_path, [np.nan] * 20)
    assert nothing["periods"] == []
    assert nothing["reason"] is not None


def test_groups_count_once_within_each_period(tmp_path: Path) -> None:
    times = [seconds(2024, 5, 1)] * 60 + [seconds(2024, 6, 1)] * 60
    of_five = np.tile(np.repeat(np.arange(6), 10), 2).astype(np.uint64)
    found, _, _ = measure(tmp_path, times, group=of_five)
    assert [each["auc"] for each in found["periods"]] == [None, None]
    assert all("independent" in each["reason"] for each in found["periods"])
    spread = np.tile(np.arange(60), 2).astype(np.uint64)  # each group once in each period
    grouped, y, scores = measure(tmp_path, times, group=spread)
    assert grouped["periods"][0]["auc"]["value"] == auc_interval(y[:60], scores[:60]).value


def test_numbers_are_periods_if_there_are_few(tmp_path: Path) -> None:
    found, _, _ = measure(tmp_path, np.repeat([202401.0, 202402.0], 30), dated=False)
    assert found["unit"] == "value"
    assert [(each["name"], each["start"]) for each in found["periods"]] == [
        ("202401", None),
        ("202402", None),
    ]
    many, _, _ = measure(tmp_path, np.arange(200.0), dated=False)
    assert many["periods"] == []
    assert "200 distinct values" in many["reason"]


def test_intervals_cover_with_the_fewest_rows(tmp_path: Path) -> None:
    """Ten rows of each class in a period, and an AUC of 0.92."""
    covered = of = 0
    for k in range(40 if LONG_FORM else 4):
        times = np.repeat([seconds(2020 + j // 12, j % 12 + 1, 3) for j in range(50)], 20)
        pq.write_table(pa.table({"t": times}), tmp_path / "rows.parquet")
        rng = np.random.default_rng(k)
        y = np.tile(np.repeat([0, 1], 10), 50).astype(np.int8)
        scores = rng.normal(size=1000) + 2.0 * y
        table = rows_of(y)
        how: Any = {"column": "t", "dated": True}
        found = measure_periods(table, scores, str(tmp_path / "rows.parquet"), how, 0.95)
        assert found is not None
        for each in found["periods"]:
            covered += each["auc"]["low"] <= 0.9214 <= each["auc"]["high"]
            of += 1
    assert of >= 200
    assert covered / of > 0.91


def table_of(rows: int, seed: int, first: date) -> str:
    """Return a CSV of rows of twelve months, with their day."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows).round(4)
    y = rng.random(rows) < 1.0 / (1.0 + np.exp(-2.0 * a))
    days = np.datetime64(first) + np.sort(rng.integers(0, 360, rows))
    return "seen_at,a,b,y\n" + "".join(
        f"{days[k]},{a[k]},{k % 7},{int(y[k])}\n" for k in range(rows)
    )


def test_an_evaluation_has_the_periods_of_its_rows(bench: Workbench) -> None:
    old, new = table_of(900, 0, date(2023, 1, 1)), table_of(900, 1, date(2024, 1, 1))
    train(bench, bench.ready(old, label="y", positive="1").id, "timed", baselines=False)
    found = evaluate(bench, "timed", bench.ready(new, label="y", positive="1").id)
    periods = found.metrics["periods"]
    assert (periods["column"], periods["unit"], periods["missing"]) == ("seen_at", "month", 0)
    assert len(periods["periods"]) == 12
    assert sum(each["rows"] for each in periods["periods"]) == 900
    assert all(each["auc"]["low"] > 0.5 for each in periods["periods"])
