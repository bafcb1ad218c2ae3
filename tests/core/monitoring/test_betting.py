"""Tests by betting: capital by hand, false alarms, delays, and what is refused."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import numpy as np
import pytest

from core.errors import InvalidData, InvalidParameter
from core.monitoring import betting, monitor_rate
from tests.long_form import LONG_FORM
from tests.sentences import Sentences

PERIODS = 52


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
    assert found.tests[-1].e_value == pytest.approx(np.mean(capital))
    assert [test.period for test in found.tests] == [1, 2, 3]


@pytest.mark.parametrize(("n", "bound"), [(1800, 0.05), (60, 0.01)])
def test_false_alarms_of_a_guarantee_at_any_test(n: int, bound: float) -> None:
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
            * monitor_rate([k], [n], bound, planned=1).tests[0].e_value
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


def test_an_extreme_rate_stays_finite() -> None:
    extreme = monitor_rate([900], [1000], 0.001, planned=4)
    assert extreme.alarm is not None
    assert math.isfinite(extreme.tests[0].e_value)


def test_later_periods_leave_earlier_answers_and_an_alarm_stays() -> None:
    events, trials = [5, 20, 4, 5], [100] * 4
    every = monitor_rate(events, trials, 0.05, planned=10)
    assert [test.alarm for test in every.tests] == [False, True, True, True]
    for n in range(1, 4):
        assert monitor_rate(events[:n], trials[:n], 0.05, planned=10).tests == every.tests[:n]
    after = monitor_rate(events, trials, 0.05, planned=10, since=2)
    assert [test.period for test in after.tests] == [3, 4]
    assert after.alarm is None


def test_periods_without_rows_change_nothing() -> None:
    found = monitor_rate([0, 0], [0, 0], 0.05, planned=10)
    assert [test.e_value for test in found.tests] == pytest.approx([1.0, 1.0])
    assert found.tests[0].observed is None


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


def test_the_bet_that_has_won_most_says_since_when() -> None:
    test = monitor_rate([2, 2, 9, 9], [40] * 4, 0.05, planned=6).tests[-1]
    assert (test.first, test.period) == (3, 4)
    assert test.observed == 18 / 80
    assert test.expected == pytest.approx(0.05)
    after = monitor_rate([9, 9, 2, 9], [40] * 4, 0.05, planned=6, since=2).tests[-1]
    assert (after.first, after.period) == (4, 4)
