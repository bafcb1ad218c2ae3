"""The rows of the monitor's page: what a month's periods say together, and what cannot be known yet."""

from __future__ import annotations

import math
from typing import Any

import pytest
from rankwright.types import Alarm, MonitoredPeriod, OutcomeRule

from app.console.monitoring import Month, PeriodRow, by_month, is_open, newest_tests, period_row

RULE = OutcomeRule.from_json({"horizon_days": 30.0, "silence": None})


def version(rows: int, flagged: int, threshold: float | None = 1.0, **known: int) -> dict[str, Any]:
    counts = {"known": 0, "positives": 0, "flagged_known": 0, "flagged_positives": 0, "explored": 0}
    return {
        "model_id": "mdl_1",
        "threshold": threshold,
        "rows": rows,
        "flagged": flagged,
        **counts,
        **known,
    }


def made(family: str, status: str, value: float | None = None, **more: Any) -> dict[str, Any]:
    return {"family": family, "status": status, "value": value, "window": None, **more}


def period(
    start: str, end: str, *tests: dict[str, Any], versions: list[dict[str, Any]]
) -> PeriodRow:
    found = {
        "start": f"{start}T00:00:00.000Z",
        "end": f"{end}T00:00:00.000Z",
        "decisions": sum(each["rows"] for each in versions),
        "lost": 2,
        "tests": list(tests),
        "versions": versions,
    }
    return period_row(MonitoredPeriod.from_json(found), RULE)


FINAL = version(100, 20, known=90, positives=12, flagged_known=16, flagged_positives=8)
MAY = [
    period(
        "2026-05-11",
        "2026-05-18",
        made("unlabelled", "passed", 0.02, psi={"age": 0.3, "income": 0.01}),
        made("ranking", "alarm", 0.7),
        versions=[FINAL, version(50, 0, None, known=10, positives=3)],
    ),
    period(
        "2026-05-04",
        "2026-05-11",
        made("unlabelled", "passed", 0.05, psi={"age": 0.1, "town": 0.2}),
        made("ranking", "waiting"),
        versions=[FINAL],
    ),
]
JUNE = period(
    "2026-06-01",
    "2026-06-08",
    made("unlabelled", "not_tested"),
    versions=[version(40, 4)],
)


def test_an_alarm_of_a_period_is_open_from_the_period_that_raised_it() -> None:
    raised = {"family": "ranking", "period_start": "2026-05-11T00:00:00.000Z"}
    alarms = [Alarm.from_json(raised)]
    newer, older = MAY
    assert is_open(alarms, "ranking", newer.of)
    assert not is_open(alarms, "ranking", older.of)  # an earlier alarm, which was acknowledged
    assert not is_open(alarms, "calibration", newer.of)
    assert not is_open([], "ranking", newer.of)


def test_the_counts_of_a_month_are_those_of_its_periods() -> None:
    june, may = by_month([JUNE, *MAY])
    assert (june.name, may.name) == ("2026-06", "2026-05")
    assert (may.decisions, may.lost) == (250, 4)
    assert may.flagged == (40, 200, 1.0)  # of decisions with a threshold
    assert may.positives == (27, 190, 1.0)
    assert may.precision == (16, 32, 1.0)
    assert may.precision.value == 0.5
    assert may.aucs == [0.7]
    assert may.psi == 0.05
    assert may.column_psi() == {"age": 0.3, "income": 0.01, "town": 0.2}
    assert (may.alarms, may.is_tested) == (["ranking"], True)


def test_outcomes_that_are_not_final_are_not_counted() -> None:
    (june,) = by_month([JUNE])
    assert june.flagged.value == 0.1
    assert june.mature == []
    for fraction in (june.positives, june.precision):
        assert (fraction, fraction.value) == ((0, 0, 1.0), None)
    assert (june.aucs, june.psi, june.column_psi()) == ([], None, {})
    assert (june.alarms, june.is_tested) == ([], False)
    assert (JUNE.missing, JUNE.final_at) == (None, "2026-07-08")
    # A month with final and later periods: its outcomes are those of the final ones.
    mixed = Month("2026-05", [JUNE, *MAY])
    assert (mixed.decisions, mixed.positives) == (290, (27, 190, 1.0))
    # Final without an outcome is missing.
    assert [each.missing for each in MAY] == [50, 10]


def test_a_rate_has_wilsons_interval_which_recurring_entities_widen() -> None:
    def month(*inflations: float) -> Month:
        windows = [{"inflation": each} for each in inflations]
        rows = [
            period(
                "2026-05-04",
                "2026-05-11",
                made("ranking", "passed", 0.7, window=w),
                versions=[FINAL],
            )
            for w in windows
        ]
        return Month("2026-05", rows)

    def wilson(part: float, whole: float) -> list[float]:
        z = 1.959963984540054
        middle = (part + z * z / 2.0) / (whole + z * z)
        half = z / (whole + z * z) * math.sqrt(part * (whole - part) / whole + z * z / 4.0)
        return [middle - half, middle + half]

    alone, weeks = month(3.0), month(1.0, 1.5)
    assert alone.precision.interval == pytest.approx(wilson(8, 16))  # one period: nobody comes back
    assert weeks.precision.interval == pytest.approx(wilson(16 / 1.5, 32 / 1.5))
    assert weeks.positives.interval == pytest.approx(wilson(24 / 1.5, 180 / 1.5))
    assert Month("2026-06", [JUNE]).precision.interval is None


def test_the_newest_test_of_each_family_is_the_conclusion() -> None:
    found = {each.family: each.status for each in newest_tests([JUNE, *MAY])}
    # A newer period that was not tested does not hide what the newest test found.
    assert found == {"unlabelled": "passed", "ranking": "alarm"}
    assert [each.status for each in newest_tests([JUNE])] == ["not_tested"]
    assert newest_tests([]) == []
