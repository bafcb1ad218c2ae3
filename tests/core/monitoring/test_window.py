"""The closed-end window monitor: critical values, false alarms, delays, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist, median

import numpy as np
import pytest

from core.errors import InvalidData, InvalidParameter
from core.metrics import ClassTotals, auc, partial_auc, roc_curve
from core.monitoring import (
    Measurement,
    measure_on_stored_curve,
    measure_periods,
    measure_validation,
    monitor_windows,
    smallest_detectable_drop,
    window,
)
from tests.core.monitoring.simulator import DESIGNS, WEEKS, Design
from tests.long_form import LONG_FORM, one_in
from tests.raising import raises
from tests.sentences import Sentences

ALPHA = 0.05
PLAN = {"planned": WEEKS, "alpha": ALPHA}
VALIDATION = Measurement(0.8, 6e-5, 1000, 9000)


def measured(
    value: float, period: int, variance: float = 3e-4, positives: int = 200
) -> Measurement:
    return Measurement(value, variance, positives, 9 * positives, period, period)


def weeks_of(values: list[float]) -> list[Measurement]:
    return [measured(value, week) for week, value in enumerate(values, start=1)]


def crossings(
    validation: float,
    variances: np.ndarray,
    weights: np.ndarray,
    critical: np.ndarray,
    n: int,
    drop: float = 0.0,
) -> np.ndarray:
    """Test of the first alarm of each of n streams, by the definition of the statistic; 0: none."""
    rng = np.random.default_rng(99)
    reference = drop + math.sqrt(validation) * rng.normal(size=n)
    values = np.sqrt(variances) * rng.normal(size=(n, variances.size))
    first = np.zeros(n, dtype=int)
    for t in range(variances.size):
        for j in range(t + 1):
            w = weights[j : t + 1] / weights[j : t + 1].sum()
            error = math.sqrt(validation + (w**2 * variances[j : t + 1]).sum())
            alarm = (reference - values[:, j : t + 1] @ w) / error > critical[t]
            first[alarm & (first == 0)] = t + 1
    return first


@pytest.mark.parametrize("ratio", [0.0001, 0.2, 1.0, 20.0])
def test_critical_values_keep_alpha_by_an_independent_simulation(ratio: float) -> None:
    validation = Measurement(0.8, 3e-4 * ratio, 1000, 9000)
    tests = monitor_windows(validation, weeks_of([0.8] * 26), planned=26, alpha=ALPHA).tests
    critical = np.array([test.critical_value for test in tests])
    n = 20_000
    first = crossings(validation.variance, np.full(26, 3e-4), np.ones(26), critical, n)
    assert np.mean(first > 0) == pytest.approx(ALPHA, abs=0.006)
    assert np.mean((first > 0) & (first <= 13)) == pytest.approx(ALPHA / 2, abs=0.005)


def test_critical_values_keep_alpha_when_periods_differ() -> None:
    rng = np.random.default_rng(5)
    size = rng.integers(50, 2000, 20)
    periods = [measured(0.8, i, 0.06 / n, int(n)) for i, n in enumerate(size, start=1)]
    tests = monitor_windows(VALIDATION, periods, planned=20, alpha=ALPHA).tests
    critical = np.array([test.critical_value for test in tests])
    first = crossings(VALIDATION.variance, 0.06 / size, size.astype(float), critical, 20_000)
    assert np.mean(first > 0) == pytest.approx(ALPHA, abs=0.006)


def test_the_statistic_is_the_maximum_over_windows() -> None:
    values = [0.80, 0.78, 0.81, 0.76, 0.75]
    periods = [measured(v, i, 3e-4 * i, 100 * i) for i, v in enumerate(values, start=1)]
    null = 0.79
    test = monitor_windows(VALIDATION, periods, **PLAN, tolerance=0.01).tests[-1]
    w, of = np.arange(1, 6) * 100.0, np.array(values)
    v = 3e-4 * np.arange(1, 6) * np.maximum(1.0, null * (1 - null) / (of * (1 - of)))
    by_window = {}
    for j in range(5):
        share = w[j:] / w[j:].sum()
        error = math.sqrt(VALIDATION.variance + (share**2 * v[j:]).sum())
        by_window[j + 1] = (null - share @ of[j:]) / error, share, error
    first = max(by_window, key=lambda j: by_window[j][0])
    statistic, share, error = by_window[first]
    assert (test.first, test.last) == (first, 5)
    assert test.statistic == pytest.approx(statistic)
    assert test.window_value == pytest.approx(share @ of[first - 1 :])
    assert test.drop == pytest.approx(0.8 - test.window_value)
    assert test.drop_high - test.drop_low == pytest.approx(2 * test.critical_value * error)


def test_later_periods_leave_earlier_answers_as_they_are() -> None:
    rng = np.random.default_rng(3)
    periods = [
        measured(0.8 - 0.002 * i, i, rng.uniform(1e-4, 1e-3), int(rng.integers(60, 400)))
        for i in range(1, 31)
    ]
    every = monitor_windows(VALIDATION, periods, **PLAN)
    assert every.alarm is not None
    for n in (1, 7, 29):
        assert monitor_windows(VALIDATION, periods[:n], **PLAN).tests == every.tests[:n]


def test_windows_begin_after_an_acknowledged_alarm_and_spend_what_is_left() -> None:
    periods = weeks_of([0.8] * 5 + [0.7, 0.7] + [0.8] * 5)
    before = monitor_windows(VALIDATION, periods, **PLAN)
    assert before.alarm is not None
    after = monitor_windows(VALIDATION, periods, **PLAN, since=7)
    assert [test.period for test in after.tests] == [8, 9, 10, 11, 12]
    assert after.alarm is None
    assert after.tests[-1].alpha_spent == pytest.approx(ALPHA * 5 / 52)
    assert all(test.first > 7 for test in after.tests)


def test_periods_after_an_acknowledgement_are_merged_anew() -> None:
    rng = np.random.default_rng(6)
    y = rng.random(6000) < 0.03
    scores, period = rng.normal(size=6000) + y, np.repeat(np.arange(1, 7), 1000)
    assert [(test.first, test.last) for test in measure_periods(y, scores, period)] == [
        (1, 2),
        (3, 4),
        (5, 6),
    ]
    after = measure_periods(y, scores, period, since=3)
    assert [(test.first, test.last) for test in after] == [(4, 5)]
    assert measure_periods(y[3000:], scores[3000:], period[3000:], since=3) == after
    tests = monitor_windows(VALIDATION, after, **PLAN, since=3).tests
    assert [test.first for test in tests] == [4]


def test_a_tolerance_raises_the_fall_that_is_needed() -> None:
    periods = weeks_of([0.75] * 6)
    without = monitor_windows(VALIDATION, periods, **PLAN)
    within = monitor_windows(VALIDATION, periods, **PLAN, tolerance=0.06)
    assert without.alarm is not None
    assert within.alarm is None


@pytest.fixture
def few_paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each stream of a simulation has variances, and so critical values, of its own."""
    monkeypatch.setattr(window, "N_PATHS", 1 << 12)
    window._critical_values.cache_clear()
    yield
    window._critical_values.cache_clear()


@pytest.mark.usefixtures("few_paths")
@pytest.mark.parametrize("name", one_in(4, DESIGNS))
def test_false_alarms_in_a_year(name: str) -> None:
    n = 400 if LONG_FORM else 16
    alarms = 0
    for seed in range(n):
        validation, periods = DESIGNS[name].run(np.random.default_rng([17, seed]))
        alarms += monitor_windows(validation, periods, **PLAN).alarm is not None
    assert alarms / n <= ALPHA + (0.025 if LONG_FORM else 0.15)


@pytest.mark.usefixtures("few_paths")
def test_cohorts_are_right_where_the_order_of_arrival_is_not() -> None:
    """The outcomes of high scores take longer. Nothing else changes; the horizon is six weeks."""
    runs = 60 if LONG_FORM else 6
    by_cohort = by_arrival = 0
    for seed in range(runs):
        rng, design = np.random.default_rng([41, seed]), Design()
        y, scores = design.draw(rng, 26 * design.rows, design.prevalence, design.area)
        validation = measure_validation(*design.draw(rng, 10_000, design.prevalence, design.area))
        scored = np.repeat(np.arange(1, 27), design.rows)
        arrives = scored + np.where(scores > 1.0, rng.integers(2, 7, y.size), 0)
        mature = scored <= 20
        cohorts = measure_periods(y[mature], scores[mature], scored[mature])
        known = arrives <= 26
        arrivals = measure_periods(y[known], scores[known], arrives[known])
        by_cohort += monitor_windows(validation, cohorts, **PLAN).alarm is not None
        by_arrival += monitor_windows(validation, arrivals, **PLAN).alarm is not None
    assert by_cohort <= 0.15 * runs
    assert by_arrival >= 0.8 * runs


def first_alarm(z: np.ndarray, critical: float) -> float:
    return float(np.argmax(z > critical)) + 1.0 if (z > critical).any() else math.inf


@pytest.mark.usefixtures("few_paths")
def test_delays_beside_weekly_bonferroni_and_uncorrected_tests() -> None:
    """AUC .80, and .75 from week 9 on. Each method has its false alarms in the same streams without the fall."""
    n = 200 if LONG_FORM else 10
    delays: dict[str, list[float]] = {"window": [], "Bonferroni": []}
    false = {"window": 0, "Bonferroni": 0, "uncorrected": 0}
    weekly = NormalDist().inv_cdf(1.0 - ALPHA / WEEKS)
    for seed in range(n):
        for fall in (False, True):
            rng = np.random.default_rng([23, seed])
            area_in = (lambda week: 0.75 if week > 8 else 0.8) if fall else None
            validation, periods = Design().run(rng, 26 if fall else WEEKS, area_in=area_in)
            z = np.array(
                [
                    (validation.value - each.value) / math.sqrt(validation.variance + each.variance)
                    for each in periods
                ]
            )
            alarm = monitor_windows(validation, periods, **PLAN).alarm
            first = {
                "window": alarm.period if alarm else math.inf,
                "Bonferroni": first_alarm(z, weekly),
                "uncorrected": first_alarm(z, NormalDist().inv_cdf(0.95)),
            }
            for method, week in first.items():
                if not fall:
                    false[method] += math.isfinite(week)
                elif method in delays and week > 8:
                    delays[method].append(week - 8)
    assert false["uncorrected"] >= 0.4 * n
    assert max(false["window"], false["Bonferroni"]) <= 0.1 * n
    mean = {method: np.minimum(each, 19).mean() for method, each in delays.items()}
    assert mean["window"] < 0.9 * mean["Bonferroni"]
    assert median(delays["window"]) <= 3


def test_the_limits_of_the_drop_cover_it_though_the_window_was_chosen() -> None:
    rng = np.random.default_rng(11)
    inside = 0
    for _ in range(300 if LONG_FORM else 80):
        reference = rng.normal(0.8, math.sqrt(VALIDATION.variance))
        values = rng.normal(0.76, math.sqrt(3e-4), 10)
        validation = Measurement(float(reference), 6e-5, 1000, 9000)
        tests = monitor_windows(validation, weeks_of(values.tolist()), planned=10, alpha=0.05).tests
        inside += all(test.drop_low <= 0.04 <= test.drop_high for test in tests)
    assert (
        inside / (300 if LONG_FORM else 80) >= 0.82
    )  # 1 − 2 α, and only the chosen window of each test is asked


def test_the_detectable_drop_is_found_with_the_power_that_it_has() -> None:
    plan = {"rows": 2000, "prevalence": 0.1, "planned": 26, "alpha": ALPHA}
    found = smallest_detectable_drop(VALIDATION, **plan, within=6)
    after = VALIDATION.value - found.drop
    of_week = VALIDATION.variance * (1 / 200 + 1 / 1800) / (1 / 1000 + 1 / 9000)
    of_week *= after * (1 - after) / (VALIDATION.value * (1 - VALIDATION.value))
    tests = monitor_windows(
        VALIDATION, [measured(0.8, i, of_week) for i in range(1, 7)], planned=26, alpha=ALPHA
    ).tests
    critical = np.array([test.critical_value for test in tests])
    first = crossings(
        VALIDATION.variance, np.full(6, of_week), np.ones(6), critical, 20_000, found.drop
    )
    assert np.mean(first > 0) == pytest.approx(0.8, abs=0.015)
    assert found.floor < found.drop
    tolerant = smallest_detectable_drop(VALIDATION, **plan, within=6, tolerance=0.01)
    assert tolerant.drop == pytest.approx(found.drop + 0.01, abs=1e-3)


def test_periods_with_few_positives_are_merged() -> None:
    found = smallest_detectable_drop(VALIDATION, rows=300, prevalence=0.05, planned=52, alpha=ALPHA)
    assert found.periods_per_test == 4


def test_measurements_are_those_of_the_metrics() -> None:
    rng = np.random.default_rng(1)
    y = rng.random(4000) < 0.2
    scores = np.round(rng.normal(size=4000) + y, 1)
    period = np.repeat([1, 2], 2000)
    for name, of in (("auc", auc), ("pauc:0,0.2", lambda y, s: partial_auc(y, s, fpr_max=0.2))):
        tests = measure_periods(y, scores, period, name)
        assert [test.value for test in tests] == pytest.approx(
            [of(y[period == k], scores[period == k]) for k in (1, 2)]
        )
        whole = measure_validation(y, scores, name)
        curve = roc_curve(y, scores)
        totals = ClassTotals.of_counts(int(y.sum()), int((~y).sum()))
        stored = measure_on_stored_curve(curve, totals, name)
        assert (stored.value, stored.variance) == pytest.approx((whole.value, whole.variance))


def test_periods_are_merged_by_their_effective_rows() -> None:
    """40 positives of weight 10 beside 40 of weight 1 count as 48 of equal weight; 4 twins are one unit."""
    y = np.tile(np.repeat([True, False], [80, 800]), 3)
    scores = np.random.default_rng(0).normal(size=y.size) + y
    period = np.repeat([1, 2, 3], 880)
    weight = np.where(y & (np.arange(y.size) % 2 == 0), 10.0, 1.0)
    tests = measure_periods(y, scores, period, sample_weight=weight)
    assert [(test.first, test.last) for test in tests] == [(1, 2)]
    assert tests[0].positives == pytest.approx((80 * 11) ** 2 / (80 * 101))
    twins = measure_periods(y, scores, period, group=np.arange(y.size) // 4)
    assert [(test.first, test.last, test.positives) for test in twins] == [(1, 3, 60.0)]
    assert monitor_windows(VALIDATION, tests, **PLAN).tests
    nothing = measure_periods(y, scores, period, sample_weight=np.where(y, 0.0, 1.0))
    assert nothing == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"value": math.nan}, "value must be"),
        ({"variance": 0.0}, "variance must be positive"),
        ({"positives": math.inf}, "positives must be positive"),
        ({"first": 3, "last": 2}, "first and last"),
    ],
)
def test_bad_measurements(fields: dict[str, float], message: str, sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter) as caught:
        Measurement(
            **{"value": 0.8, "variance": 1e-4, "positives": 100, "negatives": 900, **fields}
        )
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"planned": 0}, "planned must be from 1"),
        ({"planned": 401}, "planned must be from 1"),
        ({"planned": 5.5}, "planned must be a whole number"),
        ({"alpha": 0.0}, "alpha must be"),
        ({"alpha": 0.5}, "alpha must be"),
        ({"tolerance": -0.1}, "tolerance must be"),
        ({"since": 52}, "since must be"),
    ],
)
def test_bad_plans(plan: dict[str, float], message: str, sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter) as caught:
        monitor_windows(VALIDATION, weeks_of([0.8]), **{**PLAN, **plan})
    assert message in str(caught.value)


def test_bad_periods(sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        monitor_windows(VALIDATION, [measured(0.8, 1, positives=49)], **PLAN)
    with sentences.raises(InvalidData):
        monitor_windows(VALIDATION, [measured(0.8, 2), measured(0.8, 2)], **PLAN)
    with sentences.raises(InvalidData):
        monitor_windows(VALIDATION, [measured(0.8, 53)], **PLAN)
    with sentences.raises(InvalidData):
        monitor_windows(VALIDATION, [measured(1.2, 1)], **PLAN)
    with raises(InvalidParameter, "change", "'up'"):
        monitor_windows(VALIDATION, [], **PLAN, change="up")
    with sentences.raises(InvalidParameter):
        measure_periods([0, 1], [1.0, 2.0], [0, 1])
    with sentences.raises(InvalidData):
        measure_periods([0, 2], [1.0, 2.0], [1, 1])
    with sentences.raises(InvalidParameter):
        measure_validation([0, 1], [1.0, 2.0], "precision@1")
    assert measure_periods([], [], []) == []


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"power": 1.0}, "power must be"),
        ({"rows": 0}, "rows must be positive"),
        ({"prevalence": 1.0}, "prevalence must be"),
        ({"within": 60}, "within must be"),
        ({"rows": 5}, "rows must give 50 positives"),
    ],
)
def test_bad_questions_of_power(plan: dict[str, float], message: str, sentences: Sentences) -> None:
    usual = {"rows": 2000, "prevalence": 0.1, "planned": 52}
    with sentences.raises(InvalidParameter) as caught:
        smallest_detectable_drop(VALIDATION, **{**usual, **plan})
    assert message in str(caught.value)


def test_what_is_left_of_a_plan_is_a_plan() -> None:
    values = [0.8, 0.79, 0.76, 0.74]
    left = monitor_windows(VALIDATION, weeks_of(values), planned=26, alpha=ALPHA / 2)
    later = [measured(value, week) for week, value in enumerate(values, start=27)]
    after = monitor_windows(VALIDATION, later, **PLAN, since=26)
    assert [t.critical_value for t in after.tests] == [t.critical_value for t in left.tests]
    assert [test.first for test in after.tests] == [test.first + 26 for test in left.tests]


def test_windows_have_a_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "MAX_WINDOW", 3)
    periods = [measured(0.75, week, variance=3.01e-4) for week in range(1, 7)]
    found = monitor_windows(VALIDATION, periods, **PLAN)
    assert [test.first for test in found.tests] == [1, 1, 1, 2, 3, 4]


def test_a_plan_of_scarce_rows_is_one_of_merged_periods() -> None:
    scarce = smallest_detectable_drop(VALIDATION, rows=300, prevalence=0.1, planned=12)
    merged = smallest_detectable_drop(VALIDATION, rows=600, prevalence=0.1, planned=6)
    assert (scarce.periods_per_test, merged.periods_per_test) == (2, 1)
    assert (scarce.drop, scarce.floor) == (merged.drop, merged.floor)


def test_a_plan_of_one_period() -> None:
    found = smallest_detectable_drop(VALIDATION, rows=2000, prevalence=0.1, planned=1)
    assert (found.within, found.periods_per_test) == (1, 1)
    year = smallest_detectable_drop(VALIDATION, rows=2000, prevalence=0.1, planned=52)
    assert found.drop > year.drop > found.floor
