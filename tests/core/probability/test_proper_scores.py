"""Brier and log score, their parts, and the reliability diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss

from core.errors import InvalidData, InvalidParameter
from core.probability import brier_score, log_score, reliability
from tests.long_form import LONG_FORM
from tests.raising import raises


@pytest.fixture
def generator() -> Generator:
    return np.random.default_rng(21)


def forecasts(generator: Generator, n: int, digits: int | None = None) -> tuple[Any, Any]:
    """Labels, and the probabilities that they were drawn from."""
    p = 1 / (1 + np.exp(-1.5 * generator.normal(size=n)))
    p = p if digits is None else np.clip(np.round(p, digits), 0.01, 0.99)
    return generator.random(n) < p, p


@pytest.mark.parametrize("digits", [1, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_scikit_learns_and_the_sum_of_their_parts(
    generator: Generator, digits: int | None, weighted: bool
) -> None:
    y, p = forecasts(generator, 500, digits)
    weight = generator.random(500) + 0.01 if weighted else None
    fitted = IsotonicRegression(y_min=0, y_max=1).fit(p, y, sample_weight=weight).predict(p)
    share = np.full(500, np.average(y, weights=weight))
    for ours, theirs in ((brier_score, brier_score_loss), (log_score, log_loss)):
        found = ours(y, p, weight)
        assert found.score == pytest.approx(theirs(y, p, sample_weight=weight), abs=1e-12)
        parts = found.miscalibration - found.discrimination + found.uncertainty
        assert parts == pytest.approx(found.score, abs=1e-15)
        known = np.clip(fitted, 1e-300, 1) if theirs is log_loss else fitted
        best = theirs(y, known, sample_weight=weight)
        assert found.miscalibration == pytest.approx(found.score - best, abs=1e-9)
        uncertainty = theirs(y, share, sample_weight=weight)
        assert found.uncertainty == pytest.approx(uncertainty, abs=1e-12)
        assert found.miscalibration >= 0 <= found.discrimination


def test_a_certain_forecast_that_is_wrong_costs_infinitely_much_in_log_score() -> None:
    assert log_score([0, 1, 1], [0.0, 0.0, 1.0]).score == np.inf
    assert log_score([0, 1], [0.0, 1.0]).score == 0.0
    assert brier_score([0, 1, 1], [0.0, 0.0, 1.0]).score == pytest.approx(1 / 3)


def test_the_diagram_is_the_isotonic_regression(generator: Generator) -> None:
    y, p = forecasts(generator, 700)
    found = reliability(y, p, n_bootstrap=20)
    at = [point.probability for point in found.points]
    fitted = IsotonicRegression(y_min=0, y_max=1).fit(p, y)
    assert [point.observed.value for point in found.points] == pytest.approx(fitted.predict(at))
    assert at == sorted(at)
    assert (at[0], at[-1]) == pytest.approx((p.min(), p.max()), abs=0.02)
    assert found.predicted == pytest.approx(p.mean())
    assert found.observed == pytest.approx(y.mean())
    assert found.histogram == pytest.approx(np.histogram(p, 10, (0, 1))[0] / 700)
    assert (found.n, found.n_positives) == (700, int(y.sum()))
    again = reliability(y, p, n_bootstrap=20)
    assert again.points == found.points


def test_the_line_on_log_odds_is_the_logistic_regression(generator: Generator) -> None:
    y, p = forecasts(generator, 2000)
    odds = np.log(p / (1 - p))
    too_extreme = 1 / (1 + np.exp(-2 * odds - 1))
    found = reliability(y, too_extreme, n_bootstrap=20)
    theirs = LogisticRegression(C=1e12, tol=1e-10).fit((2 * odds + 1)[:, np.newaxis], y)
    assert found.slope.value == pytest.approx(theirs.coef_[0, 0], rel=1e-4)
    assert found.slope.low < 0.5 < found.slope.high < 1
    # as many positives are predicted as there are, once the intercept is added
    moved = 1 / (1 + np.exp(-(2 * odds + 1 + found.in_the_large.value)))
    assert moved.mean() == pytest.approx(y.mean(), abs=1e-6)
    assert found.in_the_large.high < 0
    constant = reliability(y, np.full(2000, 0.5), n_bootstrap=20)
    assert np.isnan(constant.slope.value)
    assert len(constant.points) == 1


def test_the_intervals_keep_their_level(generator: Generator) -> None:
    """docs/statistics-evidence.md has the table of many more samples."""
    consistent, confident, straight = [], [], []
    for seed in range(40 if LONG_FORM else 10):
        y, p = forecasts(generator, 400)
        found = reliability(y, p, n_bootstrap=60, random_state=seed)
        observed = np.array([point.observed for point in found.points])
        low, high = np.array([point.consistent for point in found.points]).T
        truth = np.array([point.probability for point in found.points])
        consistent.append(np.mean((observed[:, 0] >= low - 1e-9) & (observed[:, 0] <= high + 1e-9)))
        confident.append(np.mean((observed[:, 1] <= truth) & (truth <= observed[:, 2])))
        straight.append(found.slope.low <= 1 <= found.slope.high)
    assert 0.85 < np.mean(consistent) <= 1.0
    assert 0.8 < np.mean(confident) <= 1.0
    assert np.mean(straight) >= (0.85 if LONG_FORM else 0.7)


def test_weights_of_one_size_change_nothing_and_groups_widen(generator: Generator) -> None:
    y, p = forecasts(generator, 400, 1)
    plain = reliability(y, p, n_bootstrap=20)
    weighted = reliability(y, p, sample_weight=np.full(400, 3.0), n_bootstrap=20)
    assert [point.probability for point in weighted.points] == [
        point.probability for point in plain.points
    ]
    assert weighted.slope == pytest.approx(plain.slope, rel=1e-9)
    grouped = reliability(
        np.repeat(y, 4), np.repeat(p, 4), group=np.repeat(np.arange(400), 4), n_bootstrap=20
    )
    assert grouped.slope == pytest.approx(plain.slope, rel=1e-9)


def test_the_consistency_band_of_units_keeps_its_level(generator: Generator) -> None:
    """Units of five rows with one label and nearly one probability are worth one row each."""
    inside = []
    unit = np.repeat(np.arange(80), 5)
    for seed in range(40 if LONG_FORM else 10):
        y, p = forecasts(generator, 80)
        near = np.clip(p[unit] + generator.normal(0.0, 1e-6, 400), 0.0, 1.0)
        found = reliability(y[unit], near, group=unit, n_bootstrap=60, random_state=seed)
        inside += [
            point.consistent[0] - 1e-9 <= point.observed.value <= point.consistent[1] + 1e-9
            for point in found.points
        ]
    assert 0.85 < np.mean(inside) <= 1.0


@pytest.mark.parametrize(
    ("p", "options", "error", "named"),
    [
        ([0.1, 1.1], {}, InvalidData, ("probability", 1.1, 1)),
        ([0.1, np.nan], {}, InvalidData, ("probability", "nan", 1)),
        ([0.1, 0.2], {"level": 1}, InvalidParameter, ("level", 1)),
        ([0.1, 0.2], {"n_bootstrap": 5}, InvalidParameter, ("n_bootstrap", 5)),
        ([0.1, 0.2], {"random_state": -1}, InvalidParameter, ("random_state", -1)),
    ],
)
def test_bad_input_is_refused(
    p: Any, options: Any, error: type[Exception], named: tuple[object, ...]
) -> None:
    with raises(error, *named):
        reliability([0, 1], p, **options)


@pytest.mark.parametrize(
    ("n", "c", "spread"),
    [(50, 0.02, 0.0), (50, 0.02, 1.0), (100, 0.02, 1.0), (200, 0.01, 1.0), (1_000, 0.002, 1.0)],
)
def test_intervals_allow_for_wrong_rows_that_a_sample_lacks(
    generator: Generator, n: int, c: float, spread: float
) -> None:
    trials = 400 if LONG_FORM else 80

    def draw(size: int) -> Any:
        p = c * np.exp(spread * generator.uniform(-1.0, 1.0, size))
        return np.where(generator.random(size) < 0.5, p, 1.0 - p)

    many = draw(400_000 if LONG_FORM else 100_000)
    truth = np.mean(many * (1 - many)), -np.mean(many * np.log(many) + (1 - many) * np.log1p(-many))
    covered = np.zeros(2)
    for _ in range(trials):
        p = draw(n)
        y = generator.random(n) < p
        if y.all() or not y.any():
            continue
        for index, score in enumerate((brier_score, log_score)):
            _, low, high = score(y, p).interval or (np.nan,) * 3
            covered[index] += low <= truth[index] <= high
    assert (covered / trials >= (0.93 if LONG_FORM else 0.87)).all()


def test_with_enough_wrong_rows_intervals_are_halls(generator: Generator) -> None:
    p = generator.uniform(0.1, 0.9, 1_000)
    y = generator.random(1_000) < p
    for found, losses in (
        (brier_score(y, p), (y - p) ** 2),
        (log_score(y, p), -np.log(np.where(y, p, 1 - p))),
    ):
        assert found.interval is not None
        half = 1.96 * losses.std() / np.sqrt(1_000)
        np.testing.assert_allclose(found.interval.low, losses.mean() - half, rtol=5e-3)
        np.testing.assert_allclose(found.interval.high, losses.mean() + half, rtol=5e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_rounding_is_no_variance(weighted: bool) -> None:
    p = np.tile([1e-7, 1.0 - 1e-7], 100)
    y = p > 0.5
    weight = np.tile([1.0, 1.0, 2.0, 2.0], 50) if weighted else None
    found = brier_score(y, p, weight).interval
    assert found is not None
    # None of 200 rows is wrong: a share of up to 1.9 % is not excluded.
    assert found.low <= found.value
    assert 0.015 < found.high < 0.025
