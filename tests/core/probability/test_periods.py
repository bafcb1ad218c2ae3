"""The level of probabilities over time: whether it moves, and the calibration that follows it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit, logit

from core.errors import InvalidData
from core.metrics.groups import check_rows
from core.probability import ChosenCalibration, choose_calibration
from core.probability.periods import MAX_PERIODS, Periods, levels_of
from tests.core.metrics.test_cox import DESIGNS
from tests.core.metrics.test_cox import draw as draw_rows
from tests.long_form import LONG_FORM
from tests.raising import raises

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]

RUNS = 100 if LONG_FORM else 40


def draw(levels: list[float], rows: int, seed: int) -> tuple[Labels, Floats, npt.NDArray[np.intp]]:
    """Draw rows of periods whose log odds are −2 + 1.5 z + the level of the period."""
    rng = np.random.default_rng(seed)
    period = np.repeat(np.arange(len(levels)), rows)
    z = rng.normal(size=period.size)
    return rng.random(period.size) < expit(-2.0 + 1.5 * z + np.array(levels)[period]), z, period


def known(levels: list[float], rows: int, seed: int) -> Periods:
    """Return the levels relative to −2 + 1.5 z, which are taken as they are."""
    y, z, period = draw(levels, rows, seed)
    found = levels_of(check_rows(y, {"scores": z}), -2.0 + 1.5 * z, period)
    assert found is not None
    return found


def level_error(chosen: ChosenCalibration, level: float) -> float:
    """Return the log odds that a calibration lacks at z = 0, in a period of this level."""
    return float(-2.0 + level - logit(chosen.calibration.probability_of(0.0)))


def test_levels_and_their_intervals() -> None:
    true, covered, moved = [-0.6, 0.0, 0.4], 0, 0
    for seed in range(RUNS):
        found = known(true, 300, seed)
        covered += sum(
            one.low <= value <= one.high for one, value in zip(found.levels, true, strict=True)
        )
        moved += found.p_value < 0.05
    assert 0.9 <= covered / (3.0 * RUNS) <= 1.0
    assert moved >= 0.85 * RUNS


def test_equal_levels_are_pooled_and_seldom_said_to_move() -> None:
    steps, moved, forecasts = [], 0, []
    for seed in range(2 * RUNS):
        found = known([0.0] * 5, 200, seed)
        steps.append(found.step)
        moved += found.p_value < 0.05
        forecasts.append(found.forecast)
    assert moved <= 0.12 * 2 * RUNS
    assert np.count_nonzero(np.array(steps) == 0.0) >= RUNS
    # Five periods together have a standard error of .09, the last one alone has .2.
    assert np.std(forecasts) < 0.15


def test_the_calibration_follows_a_level_that_moves() -> None:
    drift = [0.0, 0.2, 0.4, 0.6, 0.8]
    errors = []
    for seed in range(4):
        y, z, period = draw(drift, 1_000, seed)
        pooled, followed = choose_calibration(y, z), choose_calibration(y, z, period=period)
        assert followed.periods is not None
        assert followed.periods.p_value < 0.001
        assert followed.periods.forecast == 0.0
        assert followed.periods.levels[0].high < 0.0
        assert followed.calibration.prevalence > pooled.calibration.prevalence
        assert followed.held_out is not None
        assert followed.held_out.later
        assert followed.held_out.y.size == 1_000
        errors.append((level_error(pooled, 1.0), level_error(followed, 1.0)))
    before, after = np.mean(errors, axis=0)
    assert before > 0.5
    assert abs(after) < 0.3


def test_a_jump_is_followed_at_once() -> None:
    y, z, period = draw([0.0, 0.0, 0.0, 0.0, 0.8], 1_500, 3)
    assert level_error(choose_calibration(y, z), 0.8) > 0.5
    assert abs(level_error(choose_calibration(y, z, period=period), 0.8)) < 0.2


def test_the_name_of_a_period_is_its_order_alone() -> None:
    y, z, period = draw([0.0, 0.3, 0.6], 400, 4)
    first = choose_calibration(y, z, period=period)
    again = choose_calibration(y, z, period=100.0 * period - 7.0)
    np.testing.assert_array_equal(first.calibration.parameters, again.calibration.parameters)
    assert first.periods == again.periods
    back = choose_calibration(y, z, period=-period)
    assert back.calibration.prevalence < first.calibration.prevalence


def test_one_period_changes_nothing() -> None:
    y, z, _ = draw([0.0], 500, 5)
    one, none = choose_calibration(y, z, period=np.zeros(500)), choose_calibration(y, z)
    np.testing.assert_array_equal(one.calibration.parameters, none.calibration.parameters)
    assert one.periods is None
    assert one.held_out is not None
    assert not one.held_out.later


def test_few_positives_in_the_last_period_are_judged_by_folds() -> None:
    y, z, period = draw([0.0, 0.0, 0.0], 500, 6)
    kept = (period < 2) | ~y | (np.cumsum(y & (period == 2)) <= 3)
    chosen = choose_calibration(y[kept], z[kept], period=period[kept])
    assert chosen.periods is not None
    assert chosen.held_out is not None
    assert not chosen.held_out.later


def test_a_period_without_positives_has_a_finite_level() -> None:
    y, z, period = draw([0.0, 0.0, 0.0], 300, 7)
    found = levels_of(check_rows(y & (period != 1), {"scores": z}), -2.0 + 1.5 * z, period)
    assert found is not None
    assert -10.0 < found.levels[1].value < -2.0
    assert np.isfinite(found.forecast)
    assert found.p_value < 0.001


def test_rows_of_a_unit_count_as_one() -> None:
    moved = 0
    for seed in range(RUNS):
        y, z, period = draw([0.0] * 4, 100, seed)
        z, unit = np.tile(z, 8), np.tile(np.arange(400), 8)
        rows = check_rows(np.tile(y, 8), {"scores": z}, None, unit)
        found = levels_of(rows, -2.0 + 1.5 * z, np.tile(period, 8))
        assert found is not None
        moved += found.p_value < 0.05
    assert moved <= 0.16 * RUNS


def test_periods_that_are_none() -> None:
    y, z, period = draw([0.0, 0.1], 100, 8)
    for wrong in (period[:-1], np.where(period == 0, np.nan, 1.0), ["a"] * 200):
        with raises(InvalidData, "period"):
            choose_calibration(y, z, period=wrong)


def test_there_are_at_most_100_periods() -> None:
    y, z, period = draw([0.0] * MAX_PERIODS, 20, 0)
    assert choose_calibration(y, z, period=period).periods is not None
    period[0] = MAX_PERIODS
    with raises(InvalidData, "period", MAX_PERIODS, MAX_PERIODS + 1):
        choose_calibration(y, z, period=period)
    with raises(InvalidData, "period", y.size):
        choose_calibration(y, z, period=np.arange(y.size))


@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_of_levels_keep_their_level_with_weights_and_units(design: str) -> None:
    inside = []
    for run in range(RUNS):
        y, z, options = draw_rows(design, np.random.default_rng((5, run)))
        period = options.get("group", np.arange(z.size)) % 5
        found = levels_of(check_rows(y, {"scores": z}, **options), z, period)
        assert found is not None
        inside += [each.low <= 0.0 <= each.high for each in found.levels]
    assert np.mean(inside) >= 0.94 - 3.0 * np.sqrt(0.95 * 0.05 / len(inside))
