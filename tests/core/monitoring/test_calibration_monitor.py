"""The calibration monitor: level and slope by an independent solver, false alarms, what is found and refused."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from core.errors import InvalidData, InvalidParameter
from core.metrics import ClassTotals, roc_curve
from core.metrics.cox import level_of
from core.metrics.groups import EvaluatedRows
from core.monitoring import (
    CalibrationMeasurement,
    CalibrationMonitor,
    calibration_reference,
    measure_calibration,
    measure_level_on_stored_curve,
    monitor_calibration,
    smallest_detectable_shift,
    window,
)
from tests.core.monitoring.recurring import World, alarms
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

PERIODS = 52


@pytest.fixture(autouse=True)
def _few_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each year has critical values of its own."""
    monkeypatch.setattr(window, "N_PATHS", 1 << 13)


EXACT = calibration_reference(
    (0.0, -0.02, 0.02), (1.0, 0.98, 1.02), level=0.95, positives=1e5, negatives=1e6
)


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-z))


def year(
    rng: np.random.Generator,
    n: int,
    periods: int,
    *,
    shift: float = 0.0,
    slope: float = 1.0,
    after: int = 0,
) -> list[CalibrationMeasurement]:
    """Measurements of forecasts whose outcomes differ from them after some period."""
    tests = []
    for period in range(1, periods + 1):
        z = rng.normal(-2.0, 1.0, n)
        true = -2.0 + slope * (z + 2.0) + shift if period > after else z
        y = rng.random(n) < sigmoid(true)
        tests.append(measure_calibration(sigmoid(z), y, first=period, last=period))
    return tests


def alarm_of(found: CalibrationMonitor) -> int | None:
    both = [each.alarm.period for each in (found.level, found.slope) if each and each.alarm]
    return min(both, default=None)


def test_level_and_slope_are_those_of_a_generic_solver() -> None:
    rng = np.random.default_rng(0)
    z, weight = rng.normal(-1.0, 1.5, 400), rng.uniform(0.5, 3.0, 400)
    y = rng.random(400) < sigmoid(0.3 + 0.7 * z)
    found = measure_calibration(sigmoid(z), y, first=1, last=1, sample_weight=weight)

    def loss(theta: np.ndarray, slope: float | None) -> float:
        odds = theta[0] + (theta[1] if slope is None else slope) * z
        return float(np.sum(weight * (np.logaddexp(0.0, odds) - y * odds)))

    level = minimize(loss, [0.0], args=(1.0,), tol=1e-10).x[0]
    line = minimize(loss, [0.0, 1.0], args=(None,), tol=1e-10).x
    assert found.level.value == pytest.approx(level, abs=1e-5)
    assert found.slope is not None
    assert found.slope.value == pytest.approx(line[1], abs=1e-5)


def test_variances_are_those_of_repetitions() -> None:
    rng = np.random.default_rng(1)
    values, variances = [], []
    for _ in range(300):
        entity = np.repeat(np.arange(250), 4)
        z = np.repeat(rng.normal(-1.5, 1.0, 250), 4)
        y = rng.random(1000) < sigmoid(z + np.repeat(rng.normal(0.0, 0.8, 250), 4) - 0.2)
        found = measure_calibration(sigmoid(z), y, first=1, last=1, entity=entity)
        assert found.slope is not None
        values.append((found.level.value, found.slope.value))
        variances.append((found.level.variance, found.slope.variance))
    ratio = np.mean(variances, axis=0) / np.var(values, axis=0)
    assert np.all((ratio > 0.8) & (ratio < 1.4))


@pytest.mark.parametrize("rows", [1000, 10_000])
def test_the_error_of_the_calibration_is_no_change(rows: int) -> None:
    years = 200 if LONG_FORM else 5
    world = World(customers=1000, each=1, turnover=1.0, weeks=26, validation=rows)
    rng = np.random.default_rng(2)
    found = sum(alarms(world, rng, "", "calibration", grouped=False) for _ in range(years))
    assert found <= (0.02 * years + 3 if LONG_FORM else 1)


@pytest.mark.parametrize("change", [{"shift": 0.6}, {"shift": -0.6}, {"slope": 0.5}])
def test_a_calibration_that_is_lost_is_found(change: dict[str, float]) -> None:
    rng, delays = np.random.default_rng(4), []
    for _ in range(6):
        tests = year(rng, 1000, 20, **change, after=8)
        alarm = alarm_of(monitor_calibration(EXACT, tests, planned=PERIODS, tolerance=0.1))
        assert alarm is not None
        delays.append(alarm - 8)
    assert min(delays) >= 1
    assert median(delays) <= 4


def test_a_tolerance_covers_small_changes() -> None:
    tests = year(np.random.default_rng(5), 3000, 20, shift=0.15)
    assert alarm_of(monitor_calibration(EXACT, tests, planned=PERIODS)) is not None
    assert alarm_of(monitor_calibration(EXACT, tests, planned=PERIODS, tolerance=0.2)) is None


def test_what_a_small_validation_cannot_show() -> None:
    rough = calibration_reference((0.0, -0.4, 0.4), None, level=0.95, positives=100, negatives=1000)
    tests = year(np.random.default_rng(6), 2000, 20, shift=0.4)
    assert alarm_of(monitor_calibration(EXACT, tests, planned=PERIODS)) is not None
    assert alarm_of(monitor_calibration(rough, tests, planned=PERIODS)) is None
    assert 0.6 < smallest_detectable_shift(rough.level, planned=PERIODS, alpha=0.01) < 1.0


def test_certain_and_equal_forecasts() -> None:
    certain = measure_calibration([0.0, 1.0, 0.5, 0.5], [1, 0, 1, 0], first=1, last=1)
    assert math.isfinite(certain.level.value)
    equal = measure_calibration(np.full(400, 0.1), np.arange(400) % 4 == 0, first=1, last=1)
    assert equal.slope is None
    assert equal.level.value == pytest.approx(math.log(1 / 3) - math.log(1 / 9))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"probability": [0.1, 1.1]}, "probability must be in"),
        ({"probability": [0.1]}, "one value for each"),
        ({"y": [0, 0]}, "y must"),
        ({"y": [0, 2]}, "y must"),
        ({"entity": [0.5, 1.0]}, "entity must"),
        ({"entity": [1]}, "entity must"),
        ({"sample_weight": [-1, 1]}, "sample_weight"),
    ],
)
def test_bad_rows(changed: dict[str, Any], message: str, sentences: Sentences) -> None:
    usual = {"probability": [0.1, 0.2], "y": [0, 1], "first": 1, "last": 1}
    with sentences.raises(InvalidData, InvalidParameter) as caught:
        measure_calibration(**{**usual, **changed})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tolerance": -1.0}, "tolerance must be"),
        ({"alpha": 0.7}, "alpha must be"),
        ({"since": 60}, "since must be"),
    ],
)
def test_bad_plans(changed: dict[str, Any], message: str, sentences: Sentences) -> None:
    with sentences.raises(InvalidData, InvalidParameter) as caught:
        monitor_calibration(EXACT, [], **{"planned": PERIODS, **changed})
    assert message in str(caught.value)


def test_limits_that_are_none(sentences: Sentences) -> None:
    for limits in ((0.0, math.nan, 1.0), (0.0, 1.0, -1.0)):
        with sentences.raises(InvalidData):
            calibration_reference(limits, None, level=0.95, positives=10, negatives=10)


def test_the_variance_of_the_level_by_its_formula() -> None:
    rng = np.random.default_rng(11)
    z = rng.normal(-2.0, 1.0, 2000)
    y = rng.random(2000) < sigmoid(z + 0.7)
    level = measure_calibration(sigmoid(z), y, first=1, last=1).level
    expected, by_null = sigmoid(z + level.value), sigmoid(z)
    own, of_null = ((each * (1 - each)).sum() for each in (expected, by_null))
    units = min(y.sum(), (~y).sum())
    by_row = ((y - expected) ** 2).sum() / own**2 * units / (units - 1)
    assert own > of_null
    assert level.variance == pytest.approx(by_row * own / of_null, rel=1e-6)


@pytest.mark.parametrize("flagged", [True, False])
def test_the_level_on_a_stored_curve_is_that_of_its_rows(flagged: bool) -> None:
    rng = np.random.default_rng(12)
    scores = rng.normal(size=2000).round(2)
    y = rng.random(2000) < expit(scores - 1.0)
    inside = (scores >= 0.5) == flagged
    own = level_of(EvaluatedRows(y[inside], (), None, None), scores[inside] - 1.5)
    curve = roc_curve(y, scores)
    for factor in (1.0, 4.0):
        totals = ClassTotals(y.sum(), (~y).sum(), y.sum() / factor, (~y).sum() / factor)
        found = measure_level_on_stored_curve(
            curve, totals, expit(curve.thresholds[1:] - 1.5), 0.5, flagged=flagged
        )
        assert found is not None
        assert found.value == pytest.approx(own.value)
        assert found.variance == pytest.approx(factor * own.variance, rel=0.02)
        assert found.positives == pytest.approx(np.count_nonzero(y & inside) / factor)


def test_a_range_of_scores_without_a_class_has_no_level() -> None:
    curve, totals = roc_curve([1, 1, 0], [3.0, 2.0, 1.0]), ClassTotals.of_counts(2, 1)
    assert measure_level_on_stored_curve(curve, totals, [0.9, 0.8, 0.1], 2.0, flagged=True) is None
    with raises(InvalidData, "probability", 2):
        measure_level_on_stored_curve(curve, totals, [0.9, 0.8], 2.0, flagged=True)
    with raises(InvalidData, "probability", 1.1):
        measure_level_on_stored_curve(curve, totals, [0.9, 0.8, 1.1], 2.0, flagged=True)


def test_rows_of_weight_0_change_nothing() -> None:
    rng = np.random.default_rng(12)
    p = rng.uniform(0.1, 0.5, 600)
    y, weight = rng.random(600) < p, rng.integers(0, 3, 600).astype(float)
    kept = weight > 0
    entity = np.arange(600) % 200
    assert measure_calibration(
        p, y, first=1, last=1, sample_weight=weight, entity=entity
    ) == measure_calibration(
        p[kept], y[kept], first=1, last=1, sample_weight=weight[kept], entity=entity[kept]
    )


def test_level_and_slope_share_the_probability_of_a_false_alarm() -> None:
    tests = year(np.random.default_rng(13), 500, 4)
    alone = calibration_reference(
        (0.0, -0.02, 0.02), None, level=0.95, positives=1e5, negatives=1e6
    )
    both = monitor_calibration(EXACT, tests, planned=PERIODS, alpha=0.02)
    assert both.slope is not None
    assert both.level == monitor_calibration(alone, tests, planned=PERIODS, alpha=0.01).level
    assert both.slope.tests[-1].alpha_spent == both.level.tests[-1].alpha_spent


def test_the_detectable_shift_is_beyond_the_tolerance() -> None:
    plan = {"planned": 6, "alpha": 0.01}
    least = smallest_detectable_shift(EXACT.level, **plan)
    assert smallest_detectable_shift(EXACT.level, **plan, tolerance=0.25) == least + 0.25
    assert smallest_detectable_shift(EXACT.level, planned=1, alpha=0.01) > 0
