"""Tests by betting: capital by hand, false alarms, delays, and what is refused."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import numpy as np
import pytest

from core.errors import InvalidData, InvalidParameter
from core.monitoring import betting, monitor_rate
from tests.core.monitoring.guaranteed import DESIGNS
from tests.long_form import LONG_FORM
from tests.raising import raises
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
    assert not any(test.unknown for test in found.tests)
    assert found.tests[0].observed is None


def test_the_capitals_of_missing_outcomes_by_hand() -> None:
    (events, others), (k_e, k_o), (n_e, n_o), bound = (3, 40), (6, 50), (9, 80), 0.05
    found = monitor_rate(
        [events], [events + others], bound, planned=1, known=[[k_e, k_o]], decisions=[[n_e, n_o]]
    ).tests[0]
    weights = {
        "e_low": (events, others + n_o - k_o, 1.0, 1.0),
        "e_value": (events, others, n_e / k_e, n_o / k_o),
    }
    for name, (c_e, c_o, w_e, w_o) in weights.items():
        capital = []
        for odds in betting._ODDS:
            q = odds * bound / (1 - bound) / (1 + odds * bound / (1 - bound))
            stake = (q - bound) / (bound * (1 - bound))
            capital.append(
                (1 + stake * (1 - bound) * w_e) ** c_e * (1 - stake * bound * w_o) ** c_o
            )
        assert getattr(found, name) == pytest.approx(np.mean(capital)), name
    assert found.e_low < found.e_value < found.e_high
    rows = (events * n_e / k_e, others * n_o / k_o)
    assert found.observed == pytest.approx(rows[0] / sum(rows))


def test_the_expected_capital_at_random_is_at_most_one() -> None:
    """Over all outcomes and all ways in which 2 of 3 and 3 of 4 outcomes of the sides are known."""
    (n_e, k_e), (n_o, k_o), bound, share = (3, 2), (4, 3), 0.3, 0.6
    p_event = share * bound / (share * bound + 0.2)  # of the flagged ones
    p_other = share * (1 - bound) / (share * (1 - bound) + 0.2)
    mean = 0.0
    for c_e in range(k_e + 1):
        for c_o in range(k_o + 1):
            chance = math.comb(k_e, c_e) * p_event**c_e * (1 - p_event) ** (k_e - c_e)
            chance *= math.comb(k_o, c_o) * p_other**c_o * (1 - p_other) ** (k_o - c_o)
            test = monitor_rate(
                [c_e], [c_e + c_o], bound, planned=1, known=[[k_e, k_o]], decisions=[[n_e, n_o]]
            ).tests[0]
            full = _mean_of_all(n_e, p_event, n_o, p_other, bound)
            mean += chance * test.e_value
    assert mean <= full + 1e-12


def _mean_of_all(n_e: int, p_e: float, n_o: int, p_o: float, bound: float) -> float:
    """Return the mean capital when all outcomes are known."""
    return sum(
        math.comb(n_e, i)
        * p_e**i
        * (1 - p_e) ** (n_e - i)
        * math.comb(n_o, j)
        * p_o**j
        * (1 - p_o) ** (n_o - j)
        * monitor_rate([i], [i + j], bound, planned=1).tests[0].e_value
        for i in range(n_e + 1)
        for j in range(n_o + 1)
    )


def test_less_than_half_of_a_side_is_unknown_and_counts_for_nothing() -> None:
    for known, unknown in (([50, 900], False), ([49, 900], True), ([100, 449], True)):
        test = monitor_rate(
            [10], [400], 0.05, planned=1, known=[known], decisions=[[100, 900]]
        ).tests[0]
        assert test.unknown is unknown
        assert (test.observed is None) is unknown
        assert (test.e_value == pytest.approx(1.0)) is unknown


@pytest.mark.parametrize(
    ("name", "raw", "alarm", "unknown"),
    [
        ("FPR 0.045; unflagged 0 %", False, False, False),
        ("FPR 0.045; unflagged 30 %", True, False, False),
        ("FPR 0.05; unflagged 30 %", True, False, False),
        ("FPR 0.07; unflagged 30 %", True, True, False),
        ("FPR 0.045; flagged 30 %, positives at odds × 10", False, False, True),
        ("FNR 0.18; flagged 40 %", True, False, False),
        ("FNR 0.26; flagged 0 %", True, True, False),
    ],
)
def test_missing_outcomes_break_no_guarantee(
    name: str, raw: bool, alarm: bool, unknown: bool
) -> None:
    years = 100 if LONG_FORM else 4
    counts = np.zeros(3)
    for seed in range(years):
        found, as_if_known = DESIGNS[name].monitor(np.random.default_rng([39, seed]))
        is_alarm = found.alarm is not None
        open_answers = any(test.unknown for test in found.tests) and not is_alarm
        counts += [as_if_known.alarm is not None, is_alarm, open_answers]
    for share, wanted in zip(counts / years, (raw, alarm, unknown), strict=True):
        assert share >= 0.9 if wanted else share <= 0.05


@pytest.mark.parametrize(
    ("known", "decisions", "values"),
    [
        ([[1, 3]], None, ["known", "decisions"]),
        ([[1, 3]], [[2]], ["decisions", (1, 1)]),
        ([[0, 3]], [[2, 4]], [1]),
        ([[1, 3]], [[0, 4]], [1]),
        ([[1, 3.5]], [[2, 4]], [1]),
    ],
)
def test_bad_numbers_of_sides(known: Any, decisions: Any, values: list[Any]) -> None:
    with raises((InvalidData, InvalidParameter), *values):
        monitor_rate([1], [4], 0.1, planned=4, known=known, decisions=decisions)


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
