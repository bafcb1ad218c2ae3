"""Recurring entities: correlations from sketches, and monitors in years with the same customers."""

from __future__ import annotations

import numpy as np
import pytest

from core.monitoring import (
    Measurement,
    compare_by_period,
    measure_auc,
    measure_periods,
    measure_rate,
    monitor_windows,
    recurrence_of,
    smallest_detectable_drop,
    window,
)
from core.monitoring.recurrence import covariance_factor, sketch_of
from tests.core.monitoring.guaranteed import Customers
from tests.core.monitoring.recurring import World, alarms, simulate
from tests.long_form import LONG_FORM


@pytest.fixture(autouse=True)
def _few_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each year has critical values of its own."""
    monkeypatch.setattr(window, "N_PATHS", 1 << 13)


VALIDATION = Measurement(0.8, 0.00006, 1000, 9000)


def test_covariances_are_those_of_the_influences() -> None:
    rng = np.random.default_rng(0)
    entities = rng.integers(0, 2**63, 3000).astype(np.uint64)
    shared = rng.normal(size=3000)
    own = [shared + rng.normal(size=3000) for _ in range(3)]
    present = [slice(0, 2000), slice(500, 2500), slice(2500, 3000)]
    influences = [each[of] for each, of in zip(own, present, strict=True)]
    sketches = [sketch_of(each, entities[of]) for each, of in zip(influences, present, strict=True)]
    variances = np.array([float(each @ each) for each in influences])
    exact = np.zeros((3, 3))
    for s in range(3):
        for t in range(3):
            whole = np.zeros((2, 3000))
            whole[0, present[s]], whole[1, present[t]] = influences[s], influences[t]
            exact[s, t] = whole[0] @ whole[1]
    factor = covariance_factor(sketches, variances)
    error = (factor @ factor.T - exact) / np.sqrt(np.outer(variances, variances))
    assert np.abs(error).max() < 0.1
    assert np.allclose(np.diag(factor @ factor.T), variances)
    assert exact[0, 1] > 0.3 * variances[0]


def test_a_later_period_changes_no_earlier_row_and_equal_ones_stay_definite() -> None:
    rng = np.random.default_rng(1)
    same = sketch_of(rng.normal(size=50), np.arange(50, dtype=np.uint64))
    factor = covariance_factor([same] * 6, np.ones(6))
    assert np.all(np.diag(factor) > 0.0)
    for n in range(2, 6):
        part = covariance_factor([same] * n, np.ones(n))
        assert np.array_equal(part, factor[:n, :n])
    assert np.array_equal(covariance_factor([same, b""], np.ones(2)), np.eye(2))


@pytest.mark.parametrize("change", ["fall", "shift"])
@pytest.mark.parametrize("seed", range(6))
def test_the_tests_of_a_prefix_are_the_prefix_of_the_tests(seed: int, change: str) -> None:
    """Bit by bit, for periods with and without sketches; the first seed has its only sketch at the end."""
    rng = np.random.default_rng(seed)
    ids = np.arange(80, dtype=np.uint64)
    shared = rng.normal(size=80)
    periods = []
    for t in range(1, 9):
        has = rng.random() < 0.5 if seed else t == 8
        sketch = sketch_of(shared + rng.normal(size=80), ids) if has else b""
        size = int(rng.integers(55, 400))
        periods.append(Measurement(rng.normal(0.79, 0.02), 0.06 / size, size, 4000, t, t, sketch))
    plan = {"planned": 12, "change": change}
    every = monitor_windows(VALIDATION, periods, **plan).tests
    for n in range(1, 9):
        assert monitor_windows(VALIDATION, periods[:n], **plan).tests == every[:n]


def test_a_sketch_in_the_second_period_takes_no_alarm_of_the_first_away() -> None:
    first = Measurement(0.7375, 0.0003, 60, 1800, 1, 1)
    second = Measurement(
        0.8, 0.0003, 60, 1800, 2, 2, sketch_of(np.ones(9), np.arange(9, dtype=np.uint64))
    )
    plan = {"planned": 52}
    assert (
        monitor_windows(VALIDATION, [first], **plan).tests[0]
        == (monitor_windows(VALIDATION, [first, second], **plan).tests[0])
    )


def test_plans_with_entities_use_the_quantiles_of_the_tests() -> None:
    plan = {"rows": 600, "prevalence": 0.1, "planned": 1, "power": 0.5}
    assert smallest_detectable_drop(VALIDATION, **plan, recurrence=0.0).drop > (
        smallest_detectable_drop(VALIDATION, **plan).drop * 1.01
    )


def test_without_entities_nothing_changes() -> None:
    weeks = [Measurement(0.78, 0.0003, 200, 1800, i, i) for i in range(1, 6)]
    found = monitor_windows(VALIDATION, weeks, planned=10)
    assert {test.inflation for test in found.tests} == {1.0}


def test_the_same_customers_say_little_new() -> None:
    stream = simulate(World(turnover=0.0, hidden=2.0), np.random.default_rng(2), "")
    ids = np.array([f"customer {each}" for each in stream.customer])
    tests = measure_periods(stream.y, stream.score, stream.period, group=ids)
    assert recurrence_of([each.by_entity for each in tests]) > 0.3
    found = monitor_windows(VALIDATION, tests, planned=52)
    wide = [test for test in found.tests if test.last - test.first > 20]
    assert all(test.inflation > 5.0 for test in wide)
    plan = {"rows": 2000, "prevalence": 0.1, "planned": 52}
    alone = smallest_detectable_drop(VALIDATION, **plan, recurrence=0.0)
    assert smallest_detectable_drop(VALIDATION, **plan, recurrence=0.5).drop > 1.2 * alone.drop


def test_measuring_one_by_one_are_those_of_the_whole_year() -> None:
    stream = simulate(World(weeks=4), np.random.default_rng(3), "")
    together = measure_periods(stream.y, stream.score, stream.period, group=stream.customer)
    for each in together:
        rows = stream.period == each.last
        one = measure_auc(
            stream.y[rows],
            stream.score[rows],
            first=each.first,
            last=each.last,
            entity=stream.customer[rows],
        )
        assert (one.value, one.variance) == (each.value, each.variance)


def test_a_rate_of_the_same_customers() -> None:
    rng = np.random.default_rng(4)
    entity = np.tile(np.arange(400), 5)
    always = rng.random(400) < 0.08  # always flagged, or never
    events = always[entity]
    found = measure_rate(events, 0.05, first=1, last=1, entity=entity)
    assert found is not None
    assert found.variance == pytest.approx(always.mean() * (1 - always.mean()) / 399, rel=1e-9)
    assert measure_rate(events[:500], 0.05, first=1, last=1, entity=entity[:500]) is None


@pytest.mark.parametrize("test", ["ranking", "calibration", "challenger"])
def test_false_alarms_with_recurring_customers(test: str) -> None:
    years = 200 if LONG_FORM else 4
    world = World(customers=250, turnover=0.05, validation=4000, weeks=52 if LONG_FORM else 30)
    rng = np.random.default_rng(5)
    found = sum(alarms(world, rng, "", test, grouped=True) for _ in range(years))
    assert found <= (0.06 * years if LONG_FORM else 1)


def test_without_ids_the_same_customers_make_winners() -> None:
    """The defect that the ids of customers cure."""
    world = World(customers=100, each=10, turnover=0.0, weeks=30)
    false = 0
    for seed in range(4):
        stream = simulate(world, np.random.default_rng(seed), "")
        rows = (stream.y, stream.score, stream.rival, stream.period)
        false += any(test.winner for test in compare_by_period(*rows))
        tests = compare_by_period(*rows, group=stream.customer)
        assert not any(test.winner for test in tests)
    assert false >= 1


def test_a_rate_needs_50_entities_with_events_and_without() -> None:
    def measured(n: int, bound: float, entities: int) -> bool:
        event, entity = np.arange(n) % 20 == 0, np.arange(n) % entities
        return measure_rate(event, bound, first=1, last=1, entity=entity) is not None

    for bound in (0.25, 0.75):
        assert measured(200, bound, 200)
        assert not measured(199, bound, 199)
        assert not measured(200, bound, 50)
    assert measured(50 * 25, 0.25, 51)


def test_the_entities_of_a_rate_are_those_with_an_event_and_those_without() -> None:
    entity = np.repeat(np.arange(400), 4)
    found = measure_rate(entity % 10 == 0, 0.1, first=1, last=1, entity=entity)
    assert found is not None
    assert found.positives == pytest.approx(400 * (1 - 0.9**4))
    assert found.negatives == pytest.approx(400 * (1 - 0.1**4))


def test_a_rate_weights_each_side_by_what_is_known_of_it() -> None:
    event = np.arange(4000) % 10 == 0
    negative = np.where(event, np.arange(4000) % 20 == 0, 1.0)
    full = {"first": 1, "last": 1, "entity": np.arange(4000)}
    complete = measure_rate(event, 0.1, **full, of_class=negative)
    missing = np.where(~event & (np.arange(4000) % 3 == 0), np.nan, negative)
    found = measure_rate(event, 0.1, **full, of_class=missing)
    assert complete is not None
    assert found is not None
    assert found.value == pytest.approx(complete.value)
    assert found.variance == pytest.approx(complete.variance, rel=0.02)
    few = np.where(~event & (np.arange(4000) % 7 > 2), np.nan, negative)
    assert measure_rate(event, 0.1, **full, of_class=few) is None
    both = np.where(np.arange(4000) // 20 % 3 == 0, np.nan, negative)
    low, even, high = (
        measure_rate(event, 0.1, **full, of_class=both, missing_odds=odds)
        for odds in (0.5, 1.0, 2.0)
    )
    assert low is not None
    assert even is not None
    assert high is not None
    assert low.value < even.value < high.value


def test_the_variance_of_a_weighted_rate_is_that_of_its_repetitions() -> None:
    rng = np.random.default_rng(6)
    values, variances = [], []
    for _ in range(300):
        negative = rng.random(3000) < 0.9
        event = rng.random(3000) < np.where(negative, 0.1, 0.8)
        is_missing = rng.random(3000) < np.where(event, 0.1, 0.4)
        found = measure_rate(
            event,
            0.1,
            first=1,
            last=1,
            entity=np.arange(3000),
            of_class=np.where(is_missing, np.nan, negative),
        )
        assert found is not None
        values.append(found.value)
        variances.append(found.variance)
    assert np.mean(values) == pytest.approx(0.1, abs=0.002)
    assert np.var(values) == pytest.approx(np.mean(variances), rel=0.25)


@pytest.mark.parametrize(("rate", "alarm"), [(0.045, False), (0.07, True)])
def test_missing_outcomes_of_recurring_customers_break_no_guarantee(
    rate: float, alarm: bool
) -> None:
    years, weeks = (40, 52) if LONG_FORM else (2, 20)
    for seed in range(years):
        weighted, raw, _ = Customers(rate, 0.3).monitor(np.random.default_rng([40, seed]), weeks)
        assert (weighted.alarm is not None) is alarm
        assert raw.alarm is not None


def test_the_variance_of_an_area_of_1_is_that_of_a_rate_above_its_trials() -> None:
    y, entity = np.arange(120) < 60, np.arange(120)
    found = measure_auc(y, y * 2.0, first=1, last=1, entity=entity)
    middle = 60.5 / 61
    assert found.value == 1.0
    assert found.variance == pytest.approx(middle * (1 - middle) / 60)
