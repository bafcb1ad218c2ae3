"""Tests by betting: capital by hand, false alarms, delays, and what is refused."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import numpy as np
import pytest

from core.errors import InvalidData, InvalidParameter
from core.monitoring import betting, monitor_calibration, monitor_rate
from tests.long_form import LONG_FORM
from tests.sentences import Sentences

PERIODS = 52


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-z))


def test_the_capital_of_a_rate_is_the_mean_over_starts_and_bets() -> None:
    events, trials, bound, planned = [3, 0, 7], [40, 0, 50], 0.05, 6
    odds = [o * bound / (1 - bound) for o in betting._ODDS]
    rates = [o / (1 + o) for o in odds]
    capital = []
    for start in range(planned):
        for q in rates:
            c = 1.0
            for k, n in list(zip(events, trials, strict=True))[start:]:
                c *= (q / bound) ** k * ((1 - q) / (1 - bound)) ** (n - k)
            capital.append(c)
    found = monitor_rate(events, trials, bound, planned=planned)
    assert found.looks[-1].e_value == pytest.approx(np.mean(capital))
    assert [look.period for look in found.looks] == [1, 2, 3]


@pytest.mark.parametrize(("n", "bound"), [(1800, 0.05), (60, 0.01)])
def test_false_alarms_of_a_guarantee_at_any_look(n: int, bound: float) -> None:
    runs = 4000 if LONG_FORM else 150
    rng = np.random.default_rng(1)
    alarms = sum(
        monitor_rate(
            rng.binomial(n, bound, PERIODS), [n] * PERIODS, bound, planned=PERIODS, alpha=0.05
        ).alarm
        is not None
        for _ in range(runs)
    )
    assert alarms / runs <= (0.05 if LONG_FORM else 0.07)


def test_the_expected_capital_is_one_at_the_bound_and_less_below() -> None:
    n, bound = 6, 0.2
    for rate, most in ((bound, 1.0), (0.1, 0.999)):
        mean = sum(
            math.comb(n, k)
            * rate**k
            * (1 - rate) ** (n - k)
            * monitor_rate([k], [n], bound, planned=1).looks[0].e_value
            for k in range(n + 1)
        )
        assert mean <= most + 1e-12
        assert rate < bound or mean == pytest.approx(1.0)


def test_delay_of_a_guarantee() -> None:
    rng, delays = np.random.default_rng(2), []
    for _ in range(20):
        rate = np.where(np.arange(PERIODS) < 10, 0.05, 0.07)
        alarm = monitor_rate(
            rng.binomial(1800, rate), [1800] * PERIODS, 0.05, planned=PERIODS
        ).alarm
        assert alarm is not None
        delays.append(alarm.period - 10)
        assert alarm.observed is not None
        assert alarm.observed > 0.05
    assert 1 <= median(delays) <= 3


def stream(
    rng: np.random.Generator,
    n: int,
    periods: int,
    *,
    shift: float = 0.0,
    slope: float = 1.0,
    after: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecasts, outcomes whose log odds differ from them after some period, and the periods."""
    z, period = rng.normal(-2.5, 1.0, n * periods), np.repeat(np.arange(1, periods + 1), n)
    true = np.where(period > after, -2.5 + slope * (z + 2.5) + shift, z)
    return sigmoid(z), rng.random(z.size) < sigmoid(true), period


def test_the_expected_capital_of_calibration_bets_is_at_most_one() -> None:
    p = np.array([0.03, 0.4, 0.75])
    for tolerance, true in (
        (0.0, p),
        (0.3, sigmoid(np.log(p / (1 - p)) + np.array([0.3, -0.3, 0.1]))),
    ):
        mean = 0.0
        for case in range(8):
            y = np.array([case >> i & 1 for i in range(3)], dtype=bool)
            found = monitor_calibration(p, y, [1, 1, 1], planned=1, tolerance=tolerance)
            mean += float(np.prod(np.where(y, true, 1 - true))) * found.looks[0].e_value
        assert mean <= 1.0 + 1e-9
        assert tolerance > 0.0 or mean == pytest.approx(1.0)


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_false_alarms_of_the_calibration(tolerance: float) -> None:
    runs = 400 if LONG_FORM else 15
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(runs):
        p, y, period = stream(rng, 300, PERIODS, shift=tolerance)
        found = monitor_calibration(p, y, period, planned=PERIODS, alpha=0.05, tolerance=tolerance)
        alarms += found.alarm is not None
    assert alarms / runs <= (0.05 if LONG_FORM else 0.2)


@pytest.mark.parametrize("change", [{"shift": 0.6}, {"shift": -0.6}, {"slope": 0.5}])
def test_a_calibration_that_is_lost_is_found(change: dict[str, float]) -> None:
    rng, delays = np.random.default_rng(4), []
    for _ in range(10):
        p, y, period = stream(rng, 1000, 26, **change, after=8)
        alarm = monitor_calibration(p, y, period, planned=PERIODS, tolerance=0.1).alarm
        assert alarm is not None
        delays.append(alarm.period - 8)
    assert min(delays) >= 1
    assert median(delays) <= 4


def test_a_tolerance_covers_small_changes() -> None:
    rng = np.random.default_rng(5)
    p, y, period = stream(rng, 3000, 26, shift=0.15)
    assert monitor_calibration(p, y, period, planned=PERIODS).alarm is not None
    assert monitor_calibration(p, y, period, planned=PERIODS, tolerance=0.2).alarm is None


def test_certain_forecasts_stay_finite() -> None:
    found = monitor_calibration([0.0, 1.0, 0.5], [1, 0, 1], [1, 1, 2], planned=1 + 1)
    assert all(math.isfinite(look.e_value) for look in found.looks)
    assert found.alarm is not None
    extreme = monitor_rate([900], [1000], 0.001, planned=4)
    assert extreme.alarm is not None
    assert math.isfinite(extreme.looks[0].e_value)


def test_later_periods_leave_earlier_answers_and_an_alarm_stays() -> None:
    events, trials = [5, 20, 4, 5], [100] * 4
    every = monitor_rate(events, trials, 0.05, planned=10)
    assert [look.alarm for look in every.looks] == [False, True, True, True]
    for n in range(1, 4):
        assert monitor_rate(events[:n], trials[:n], 0.05, planned=10).looks == every.looks[:n]
    after = monitor_rate(events, trials, 0.05, planned=10, since=2)
    assert [look.period for look in after.looks] == [3, 4]
    assert after.alarm is None


def test_periods_without_rows_change_nothing() -> None:
    found = monitor_rate([0, 0], [0, 0], 0.05, planned=10)
    assert [look.e_value for look in found.looks] == pytest.approx([1.0, 1.0])
    assert found.looks[0].observed is None
    assert monitor_calibration([], [], [], planned=10).looks == ()
    skipped = monitor_calibration([0.2, 0.3], [0, 1], [1, 3], planned=10)
    assert [look.period for look in skipped.looks] == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], [2, 3], 0.1), "one value per period"),
        (([5], [4], 0.1), "0 <= events <= trials"),
        (([-1], [4], 0.1), "0 <= events <= trials"),
        (([0.5], [4], 0.1), "whole numbers"),
        (([1], [4], 0.0), "bound must be"),
        (([1], [4], 1.5), "bound must be"),
        (([1] * 53, [4] * 53, 0.1), "at most 52 periods"),
    ],
)
def test_bad_rates(arguments: Any, message: str, sentences: Sentences) -> None:
    with sentences.raises(InvalidData, InvalidParameter) as caught:
        monitor_rate(*arguments, planned=PERIODS)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"probability": [0.1, 1.1]}, "probability must be in"),
        ({"probability": [0.1]}, "one value for each"),
        ({"period": [1, 53]}, "at most 52"),
        ({"tolerance": -1.0}, "tolerance must be"),
        ({"alpha": 0.7}, "alpha must be"),
        ({"since": 60}, "since must be"),
    ],
)
def test_bad_forecasts(changed: dict[str, Any], message: str, sentences: Sentences) -> None:
    usual = {"probability": [0.1, 0.2], "y": [0, 1], "period": [1, 2], "planned": PERIODS}
    with sentences.raises(InvalidData, InvalidParameter) as caught:
        monitor_calibration(**{**usual, **changed})
    assert message in str(caught.value)
