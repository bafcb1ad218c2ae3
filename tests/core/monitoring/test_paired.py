"""Challenger and champion by period: the limits by hand, false winners, and what is refused."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import numpy as np
import pytest

from core.errors import InvalidData, InvalidParameter
from core.metrics import WindowArea, auc, compare_metrics
from core.monitoring import (
    PairedMeasurement,
    compare_by_period,
    compare_measurements,
    measure_pair,
    swap_set,
)
from tests.core.monitoring.simulator import gap
from tests.long_form import LONG_FORM, one_in
from tests.sentences import Sentences


def draw(
    rng: np.random.Generator,
    weeks: int,
    *,
    rows: int = 2000,
    prevalence: float = 0.1,
    areas: tuple[float, float] = (0.8, 0.8),
    in_grades: bool = False,
    alike: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two models whose errors correlate by .8, on the same rows; a part of the rows has the same score by both."""
    n = rows * weeks
    y, common = rng.random(n) < prevalence, rng.normal(size=n)
    scores = [
        math.sqrt(0.8) * common + math.sqrt(0.2) * rng.normal(size=n) + gap(area) * y
        for area in areas
    ]
    scores[1] = np.where(rng.random(n) < alike, scores[0], scores[1])
    if in_grades:
        scores = [np.round(each) for each in scores]
    return y, scores[0], scores[1], np.repeat(np.arange(1, weeks + 1), rows)


EQUAL: dict[str, tuple[str, dict[str, Any]]] = {
    "usual": ("auc", {}),
    "top": ("precision@5%", {}),
    "few near 1": ("auc", {"rows": 1100, "prevalence": 0.05, "areas": (0.97, 0.97)}),
    "ties": ("auc", {"in_grades": True}),
    "nearly the same": ("auc", {"alike": 0.99}),
    "narrow": ("pauc:0,0.05", {"rows": 1100, "prevalence": 0.05}),
}


@pytest.mark.parametrize("name", one_in(2, EQUAL))
def test_equal_models_have_no_winner(name: str) -> None:
    metric, options = EQUAL[name]
    runs = 200 if LONG_FORM else 6
    false = 0
    for seed in range(runs):
        tests = compare_by_period(*draw(np.random.default_rng([7, seed]), 52, **options), metric)
        false += tests[-1].winner is not None
    assert false / runs <= (0.05 if LONG_FORM else 0.17)


def test_peeking_finds_a_winner_between_equal_models() -> None:
    runs = 100 if LONG_FORM else 8
    false = 0
    for seed in range(runs):
        y, champion, challenger, period = draw(np.random.default_rng([7, seed]), 26)
        for week in range(2, 27, 2):
            seen = period <= week
            (found,) = compare_metrics(y[seen], [champion[seen], challenger[seen]], [WindowArea()])
            p_value = found.differences[0].p_value
            if p_value is not None and p_value < 0.05:
                false += 1
                break
    assert false / runs >= 0.15


def test_a_better_model_wins_and_the_number_of_rows_was_foreseen() -> None:
    runs, wins, foreseen = (60 if LONG_FORM else 5), [], []
    for seed in range(runs):
        tests = compare_by_period(*draw(np.random.default_rng([8, seed]), 30, areas=(0.8, 0.81)))
        won = [test.period for test in tests if test.winner == "challenger"]
        wins.append(won[0] if won else 99)
        assert tests[-1].winner != "champion"
        assert tests[1].further_rows is not None
        foreseen.append((tests[1].rows + tests[1].further_rows) / 2000)
    assert 4 <= median(wins) <= 14
    assert 6 <= median(foreseen) <= 20


def test_the_limits_by_their_formula() -> None:
    y, champion, challenger, period = draw(np.random.default_rng(1), 3)
    tests = compare_by_period(y, champion, challenger, period, alpha=0.05, tolerance=0.01)
    weights, differences = [], []
    for week in (1, 2, 3):
        inside = period == week
        weights.append(y[inside].sum())
        values = [auc(y[inside], each[inside]) for each in (champion, challenger)]
        differences.append(values[1] - values[0])
    assert tests[-1].difference == pytest.approx(np.average(differences, weights=weights))
    assert [test.rows for test in tests] == [2000, 4000, 6000]
    assert tests[-1].positives == y.sum()
    widths = [test.high - test.low for test in tests]
    assert widths[0] > widths[1] > widths[2]


def test_a_winner_is_what_the_limits_say_now() -> None:
    before, after = (
        PairedMeasurement(last, difference, 1e-5, 2000.0, 2000, 200)
        for last, difference in ((1, 0.05), (2, -0.15))
    )
    first, second = compare_measurements([before, after])
    assert (first.winner, second.winner) == ("challenger", "champion")
    assert second.high < 0.0


def test_later_periods_leave_earlier_answers() -> None:
    y, champion, challenger, period = draw(np.random.default_rng(2), 30, areas=(0.8, 0.83))
    every = compare_by_period(y, champion, challenger, period)
    for week in (1, 4, 20):
        seen = period <= week
        assert (
            compare_by_period(y[seen], champion[seen], challenger[seen], period[seen])
            == every[:week]
        )
    assert "challenger" in [test.winner for test in every]
    swapped = compare_by_period(y, challenger, champion, period)
    assert swapped[-1].winner == "champion"
    assert swapped[-1].difference == pytest.approx(-every[-1].difference)


@pytest.mark.parametrize(
    ("metric", "reach"),
    [
        ("auc", 1.0),
        ("gini", 2.0),
        ("lift@50%", 2.0),
        ("lift@10%", 10.0),
        ("average_precision", 1.0),
    ],
)
def test_the_variance_of_one_positive_is_that_of_the_whole_range(metric: str, reach: float) -> None:
    y = np.arange(10) == 3
    best, worst = y.astype(float), -y.astype(float)
    found = measure_pair(y, worst, best, metric, last=1)
    assert found.difference <= reach
    assert math.sqrt(found.variance * found.trials) == pytest.approx(reach)


def test_models_that_differ_by_nothing_that_matters_are_equivalent() -> None:
    tests = compare_by_period(*draw(np.random.default_rng(3), 20, alike=0.95), tolerance=0.02)
    assert tests[-1].equivalent
    assert tests[-1].winner is None
    assert tests[-1].further_rows == 0
    assert tests[0].further_rows != 0 or tests[0].equivalent


def test_weights_groups_and_merged_periods() -> None:
    y, champion, challenger, period = draw(np.random.default_rng(5), 8, rows=600, prevalence=0.05)
    tests = compare_by_period(y, champion, challenger, period)
    assert 1 < len(tests) < 8
    assert compare_by_period(y, champion, challenger, period, sample_weight=np.full(y.size, 7.0))[
        -1
    ].high == pytest.approx(tests[-1].high)
    twice = np.repeat(np.arange(y.size), 2)
    doubled = compare_by_period(
        y[twice], champion[twice], challenger[twice], period[twice], group=twice
    )
    assert doubled[-1].difference == pytest.approx(tests[-1].difference, abs=0.02)
    assert doubled[-1].high - doubled[-1].low > 0.6 * (tests[-1].high - tests[-1].low)
    assert compare_by_period([], [], [], []) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must be"),
        ({"alpha": 0.5}, "alpha must be"),
        ({"champion": [1.0]}, "champion must have one value"),
        ({"challenger": [1.0, math.inf]}, "challenger must be finite"),
        ({"period": [1, 1.5]}, "whole number"),
        ({"group": [1]}, "group must have one value"),
        ({"metric": "speed"}, "metric"),
    ],
)
def test_bad_comparisons(changed: dict[str, Any], message: str, sentences: Sentences) -> None:
    usual = {"y": [0, 1], "champion": [1.0, 2.0], "challenger": [1.0, 2.0], "period": [1, 1]}
    with sentences.raises(InvalidData, InvalidParameter) as caught:
        compare_by_period(**{**usual, **changed})
    assert message in str(caught.value)


def test_swap_sets_by_hand(sentences: Sentences) -> None:
    found = swap_set(
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 0, 1, 1, 0, 0],
        positive=[1, 0, 1, 1, 1, 0, 1],
        known=[1, 1, 1, 1, 0, 1, 0],
    )
    assert vars(found.both) == {"rows": 2, "known": 2, "positives": 1}
    assert vars(found.champion_only) == {"rows": 1, "known": 1, "positives": 1}
    assert vars(found.challenger_only) == {"rows": 2, "known": 1, "positives": 1}
    assert vars(found.neither) == {"rows": 2, "known": 1, "positives": 0}
    with sentences.raises(InvalidData):
        swap_set([1], [1], [1], [3])
