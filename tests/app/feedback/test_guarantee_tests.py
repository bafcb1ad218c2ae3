"""The scheduled test of a guarantee: missing outcomes, recurring entities, and decisions without ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from app.feedback import scheduled_tests
from app.feedback.period_rows import UNKNOWN, PeriodRows
from app.feedback.periods import Period, period_at
from app.feedback.scheduled_tests import GUARANTEE, StoredTest
from app.feedback.wording import say_test
from app.platform.documents import StoredGuarantee
from core.monitoring import window

PLAN = scheduled_tests.MonitorPlan({"period": "week", "alpha": 0.05, "tolerance": {}}, None)
FPR: StoredGuarantee = {"fpr": 0.05, "tpr": None, "confidence": 0.95}
TPR: StoredGuarantee = {"fpr": None, "tpr": 0.8, "confidence": 0.95}
FIRST = period_at(1_767_571_200.0, "week")


@pytest.fixture(autouse=True)
def _few_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "N_PATHS", 1 << 12)


def draw(
    rng: np.random.Generator,
    period: Period,
    *,
    fpr: float = 0.045,
    tpr: float = 0.82,
    missing: tuple[float, float] = (0.0, 0.0),
    entity: np.ndarray | None = None,
    has_ids: bool = True,
    size: int = 2000,
) -> PeriodRows:
    """Return a week of decisions, one of ten positive. `missing`: of the flagged and of the other outcomes."""
    n = size if entity is None else entity.size
    positive = rng.random(n) < 0.1
    flag = rng.random(n) < np.where(positive, tpr, fpr)
    known = rng.random(n) >= np.where(flag, *missing)
    return PeriodRows(
        models=["mdl_1"],
        model=np.zeros(n, np.int32),
        alias_revision=np.ones(n, np.int32),
        at=period.start + np.arange(n, dtype=float),
        score=flag + rng.random(n),
        probability=np.full(n, 0.1),
        threshold=np.ones(n),
        flag=flag.astype(np.int8),
        explored=np.zeros(n, np.bool_),
        propensity=np.full(n, np.nan),
        keep=np.ones(n),
        label=np.where(known, positive, UNKNOWN).astype(np.int8),
        weight=np.ones(n),
        corrected=np.zeros(n, np.int32),
        ambiguous=np.zeros(n, np.bool_),
        entity=(rng.integers(0, 2**63, n) if entity is None else entity).astype(np.uint64),
        identified=np.full(n, has_ids),
        kept=np.arange(n),
    )


def a_year(
    rng: np.random.Generator, guarantee: StoredGuarantee = FPR, weeks: int = 12, **given: Any
) -> Iterator[StoredTest]:
    before: list[StoredTest] = []
    period = FIRST
    for _ in range(weeks):
        before.append(run(draw(rng, period, **given), period, before, guarantee))
        yield before[-1]
        period = period.next()


def run(
    rows: PeriodRows, period: Period, before: list[StoredTest], guarantee: StoredGuarantee
) -> StoredTest:
    series = scheduled_tests.series_of(period, "mdl_1", before, None)
    found = scheduled_tests.begin_with_rows(period, series, "mdl_1", "rate", rows)
    return scheduled_tests.run_guarantee_test(found, series, rows, guarantee, PLAN)


def statuses(*args: Any, **given: Any) -> set[str]:
    return {each["status"] for each in a_year(*args, **given)}


@pytest.mark.parametrize("recurring", [False, True])
@pytest.mark.parametrize(
    ("guarantee", "given", "expected"),
    [
        (FPR, {}, {"passed"}),
        (FPR, {"missing": (0.0, 0.3)}, {"passed"}),
        (TPR, {"missing": (0.2, 0.0)}, {"passed"}),
    ],
)
def test_a_guarantee_that_holds_is_not_broken_by_missing_outcomes(
    guarantee: StoredGuarantee, given: dict[str, Any], expected: set[str], recurring: bool
) -> None:
    entity = np.repeat(np.arange(1000), 4) if recurring else None
    assert statuses(np.random.default_rng(1), guarantee, **given, entity=entity) == expected


@pytest.mark.parametrize("recurring", [False, True])
def test_a_broken_guarantee_is_found_although_outcomes_are_missing(recurring: bool) -> None:
    entity = np.repeat(np.arange(1000), 4) if recurring else None
    found = [*a_year(np.random.default_rng(2), fpr=0.07, missing=(0.0, 0.3), entity=entity)]
    assert found[-1]["status"] == "alarm"
    assert found[-1]["value"] == pytest.approx(0.07, abs=0.02)
    assert found[-1]["low"] is not None
    assert found[-1]["low"] < found[-1]["value"]


@pytest.mark.parametrize("recurring", [False, True])
def test_what_missing_outcomes_could_change_neither_passes_nor_raises_an_alarm(
    recurring: bool,
) -> None:
    entity = np.repeat(np.arange(1000), 4) if recurring else None
    found = [*a_year(np.random.default_rng(3), fpr=0.065, missing=(0.4, 0.0), entity=entity)]
    assert found[-1]["status"] == "not_tested"
    assert found[-1]["details"]["observed_since"] == pytest.approx(0.065, abs=0.015)
    assert found[-1]["low"] < 0.05 < found[-1]["high"]
    assert "alarm" not in {each["status"] for each in found}


@pytest.mark.parametrize("recurring", [False, True])
@pytest.mark.parametrize("missing", [(0.6, 0.0), (0.0, 0.6)])
def test_less_than_half_of_a_side_is_not_tested(
    missing: tuple[float, float], recurring: bool
) -> None:
    entity = np.repeat(np.arange(1000), 4) if recurring else None
    given = {"missing": missing, "entity": entity, "weeks": 2}
    assert statuses(np.random.default_rng(4), **given) == {"not_tested"}


def test_without_ids_there_is_no_alarm_and_no_pass() -> None:
    """Whether customers come back cannot be seen: see docs/monitoring.md."""
    for fpr in (0.02, 0.2):
        found = [*a_year(np.random.default_rng(5), fpr=fpr, has_ids=False, weeks=3)]
        assert {each["status"] for each in found} == {"not_tested"}
        assert found[0]["value"] == pytest.approx(fpr, abs=0.02)


def test_entities_that_come_back_are_tested_by_windows() -> None:
    rng = np.random.default_rng(6)
    before: list[StoredTest] = []
    period, weeks = FIRST, []
    for number in range(6):
        entity = rng.choice(2**40, 4000, replace=False) if number < 2 else np.arange(4000)
        before.append(run(draw(rng, period, entity=entity), period, before, FPR))
        weeks.append((before[-1]["details"].get("window") is not None, before[-1]["since"]))
        period = period.next()
    assert weeks == [(False, 0)] * 3 + [(True, 3)] * 3
    assert {each["status"] for each in before} == {"passed"}
    again = np.concatenate([np.arange(3999), [7]])
    once = run(draw(rng, FIRST, entity=again), FIRST, [], FPR)
    assert once["details"].get("window") is not None


def test_another_bound_begins_the_bets_again() -> None:
    rng = np.random.default_rng(7)
    before = [run(draw(rng, FIRST, fpr=0.09), FIRST, [], {**FPR, "fpr": 0.1})]
    period = FIRST.next()
    before.append(run(draw(rng, period), period, before, FPR))
    assert [(each["status"], each["expected"], each["since"]) for each in before] == [
        ("passed", 0.1, 0),
        ("passed", 0.05, 1),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"weight": np.tile([1.0, 2.0], 1000)},
        {"keep": np.tile([1.0, 0.5], 1000)},
        {"flag": np.full(2000, UNKNOWN)},
    ],
)
def test_what_cannot_be_tested(change: dict[str, np.ndarray]) -> None:
    rows = draw(np.random.default_rng(8), FIRST)
    found = run(PeriodRows(**{**vars(rows), **change}), FIRST, [], FPR)
    assert (found["status"], found["metric"], found["state"]) == ("not_tested", "fpr", {})
    assert found["reason"]


def test_a_guarantee_is_called_broken_only_by_an_alarm() -> None:
    rng = np.random.default_rng(9)
    for given in ({}, {"missing": (0.4, 0.0), "fpr": 0.065}, {"has_ids": False, "fpr": 0.2}):
        for found in a_year(rng, weeks=4, **given):
            said = say_test(GUARANTEE, dict(found))
            assert "broken" not in said
            assert "assumed" not in said
    (*_, alarm) = a_year(rng, weeks=4, fpr=0.08)
    assert "broken" in say_test(GUARANTEE, dict(alarm))
