"""Ratios of selection rates and differences of the calibration between groups."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from core.errors import InvalidData, InvalidParameter
from core.metrics.four_fifths import FOUR_FIFTHS
from core.monitoring import (
    Measurement,
    log_odds_gap,
    measure_calibration_difference,
    measure_selection_ratio,
    monitor_differences,
)
from tests.long_form import LONG_FORM
from tests.raising import raises

AT = {"first": 1, "last": 1}


def test_the_ratio_and_its_variance_are_those_of_two_binomials() -> None:
    selected = np.r_[np.arange(400) < 120, np.arange(1000) < 300]
    group = np.arange(1400) < 400
    found = measure_selection_ratio(selected, group, **AT)
    assert found is not None
    assert found.value == pytest.approx(0.0, abs=1e-12)
    variance = 0.7 / 0.3 * (1 / 400 + 1 / 1000)
    assert found.variance == pytest.approx(variance * 1400 / 1399)
    assert (found.positives, found.negatives) == (120.0, 280.0)
    assert found.by_entity == b""


def test_rows_of_one_entity_are_one_row_and_weights_are_repetitions() -> None:
    rng = np.random.default_rng(3)
    selected, group = rng.random(900) < 0.3, rng.random(900) < 0.4
    once = measure_selection_ratio(selected, group, **AT, entity=np.arange(900))
    thrice = measure_selection_ratio(
        np.tile(selected, 3), np.tile(group, 3), **AT, entity=np.tile(np.arange(900), 3)
    )
    weighted = measure_selection_ratio(selected, group, **AT, sample_weight=np.full(900, 2.5))
    assert once is not None
    assert thrice is not None
    assert weighted is not None
    assert thrice.value == pytest.approx(once.value)
    assert thrice.variance == pytest.approx(once.variance)
    assert (thrice.positives, thrice.negatives) == (once.positives, once.negatives)
    assert weighted.variance == pytest.approx(once.variance)


def test_the_difference_of_the_calibration_is_the_coefficient_of_the_group() -> None:
    rng = np.random.default_rng(5)
    p, group = rng.uniform(0.05, 0.5, 4000), rng.random(4000) < 0.3
    y = rng.random(4000) < p * np.where(group, 1.3, 0.9)
    odds = np.log(p / (1.0 - p))

    def loss(theta: Any) -> float:
        fitted = odds + theta[0] + theta[1] * group
        return float(np.logaddexp(0.0, fitted).sum() - (y * fitted).sum())

    found = measure_calibration_difference(p, y, group, **AT)
    assert found is not None
    assert found.value == pytest.approx(minimize(loss, [0.0, 0.0]).x[1], abs=1e-4)
    assert found.positives == float((y & group).sum())


@pytest.mark.parametrize("kind", ["no group", "no reference", "none selected", "all selected"])
def test_without_one_of_the_four_kinds_of_rows_nothing_is_measured(kind: str) -> None:
    group = np.arange(100) < {"no group": 0, "no reference": 100}.get(kind, 50)
    selected = np.full(100, kind == "all selected") if "selected" in kind else np.arange(100) % 2
    assert measure_selection_ratio(selected, group, **AT) is None
    p = np.full(100, 0.5)
    assert measure_calibration_difference(p, selected, group, **AT) is None


@pytest.mark.parametrize("of", ["selection", "calibration"])
def test_false_alarms_with_customers_that_come_back(of: str) -> None:
    """At the edge of what is tolerated; 20 % of the customers leave in each period, and each has a trait of its own."""
    years, planned, alpha = (400, 52, 0.05) if LONG_FORM else (60, 6, 0.2)
    alarms = 0
    for year in range(years):
        rng = np.random.default_rng((7, year))
        group = rng.random(1000) < 0.4
        trait, entity = rng.normal(size=1000), np.arange(1000)
        tests = []
        for week in range(1, planned + 1):
            gone = rng.random(1000) < 0.2
            trait[gone], entity[gone] = (
                rng.normal(size=gone.sum()),
                1000 * week + entity[gone] % 1000,
            )
            who = rng.integers(1000, size=2000)
            own = {"first": week, "last": week, "entity": entity[who]}
            if of == "selection":
                limit = np.where(group, 0.5244, 0.2533)  # rates of .3 and .4: a ratio of .75
                chosen = trait[who] + 0.7 * rng.normal(size=2000) > 1.2207 * limit[who]
                tests.append(measure_selection_ratio(chosen, group[who], **own))
            else:
                odds = -1.5 + 0.5 * trait[who] + rng.normal(size=2000)
                p = 1.0 / (1.0 + np.exp(-odds))
                tests.append(
                    measure_calibration_difference(p, rng.random(2000) < p, group[who], **own)
                )
        tolerance = -math.log(0.75) if of == "selection" else 0.0
        found = monitor_differences(
            [each for each in tests if each is not None],
            planned=planned,
            alpha=alpha,
            tolerance=tolerance,
        )
        alarms += found.alarm is not None
    assert alarms <= years * alpha + 3.0 * math.sqrt(years * alpha * (1.0 - alpha))


def test_the_gap_is_what_an_error_of_the_slope_does_to_a_difference() -> None:
    rng = np.random.default_rng(8)
    group = rng.random(40_000) < 0.5
    odds = rng.normal(-2.0, 1.0, 40_000) + group
    p = 1.0 / (1.0 + np.exp(-odds))
    gap, slope = log_odds_gap(p, group), 1.05
    wrong = 1.0 / (1.0 + np.exp(-slope * odds))
    expected = [
        measure_calibration_difference(p, rng.random(40_000) < wrong, group, **AT)
        for _ in range(20)
    ]
    values = [each.value for each in expected if each is not None]
    assert np.mean(values) == pytest.approx((slope - 1.0) * gap, abs=0.02)
    weight = rng.integers(1, 3, 40_000)
    repeated = log_odds_gap(np.repeat(p, weight), np.repeat(group, weight))
    assert log_odds_gap(p, group, weight) == pytest.approx(repeated)


def test_the_error_of_the_slope_is_no_difference() -> None:
    """The calibration is off by its standard error of .1, so groups one standard deviation apart differ."""
    alarms = {0.0: 0, 0.01: 0}
    for year in range(300 if LONG_FORM else 20):
        rng, tests, gaps = np.random.default_rng((9, year)), [], []
        slope = rng.normal(1.0, 0.1)
        for week in range(1, 5):
            group = rng.random(4000) < 0.5
            odds = rng.normal(-2.0, 1.0, 4000) + 1.5 * group
            p, true = (1.0 / (1.0 + np.exp(-each)) for each in (odds, slope * odds))
            own = {"first": week, "last": week}
            tests.append(measure_calibration_difference(p, rng.random(4000) < true, group, **own))
            gaps.append(log_odds_gap(p, group))
        for variance in alarms:
            found = monitor_differences(
                [each for each in tests if each is not None],
                planned=4,
                alpha=0.1,
                reference_variance=np.mean(gaps) ** 2 * variance,
            )
            alarms[variance] += found.alarm is not None
    years = 300 if LONG_FORM else 20
    assert alarms[0.0] > 0.25 * years
    assert alarms[0.01] <= years * 0.1 + 3.0 * math.sqrt(years * 0.09)


def test_a_ratio_below_four_fifths_is_found_in_both_directions() -> None:
    for ratio in (0.6, 1.0 / 0.6):
        weeks = [Measurement(math.log(ratio), 0.01, 100, 900, i, i) for i in range(1, 5)]
        found = monitor_differences(weeks, planned=52, alpha=0.01, tolerance=-math.log(FOUR_FIFTHS))
        assert found.alarm is not None
    weeks = [Measurement(math.log(0.85), 0.001, 100, 900, i, i) for i in range(1, 53)]
    assert (
        monitor_differences(weeks, planned=52, alpha=0.01, tolerance=-math.log(FOUR_FIFTHS)).alarm
        is None
    )


def test_bad_input_is_refused() -> None:
    with raises(InvalidData, "selected", 2, 0):
        measure_selection_ratio([2, 0], [1, 0], **AT)
    with raises(InvalidData, "in_group"):
        measure_selection_ratio([1, 0], [1, 0, 1], **AT)
    with raises(InvalidData, "entity"):
        measure_selection_ratio([1, 0], [1, 0], **AT, entity=[0.5, 1.0])
    with raises(InvalidData, "probability"):
        measure_calibration_difference([0.5, 1.5], [1, 0], [1, 0], **AT)
    with raises(InvalidData, "periods"):
        monitor_differences([Measurement(0.0, 1.0, 99, 99)], planned=52, alpha=0.01)
    with raises(InvalidParameter, "alpha"):
        monitor_differences([], planned=52, alpha=0.9)
