"""Confidence bands: coverage in simulation, values by hand, and where they must claim nothing."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from core.errors import InvalidParameter
from core.metrics import (
    ClassTotals,
    RocCurve,
    fpr_at_tpr_interval,
    roc_band,
    roc_curve,
    tpr_at_fpr_interval,
    wilson_interval,
)
from tests.core.metrics.naive import curve_and_totals, rankings
from tests.long_form import LONG_FORM, long_form
from tests.raising import raises

RATES = np.array([0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 1.0])
DRAWS = 400 if LONG_FORM else 100
# Coverage that a true level of 95 % falls short of once in ten thousand times.
LEAST = 0.95 - 3.8 * math.sqrt(0.95 * 0.05 / DRAWS)


def binormal(
    rng: np.random.Generator,
    n_positive: int,
    n_negative: int,
    separation: float,
    spread: float,
    decimals: None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of two normal classes: ROC(t) = Φ(separation/spread + Φ⁻¹(t)/spread)."""
    scores = np.concatenate(
        [separation + spread * rng.normal(size=n_positive), rng.normal(size=n_negative)]
    )
    y = np.repeat([1, 0], [n_positive, n_negative])
    return y, scores if decimals is None else scores.round(decimals)


@pytest.mark.parametrize(
    ("n_positive", "n_negative"), [(30, 40), (60, 600), pytest.param(800, 500, marks=long_form)]
)
def test_both_bands_cover_what_they_say(n_positive: int, n_negative: int) -> None:
    rng = np.random.default_rng(n_positive)
    separation, spread = 1.5, 1.2
    grid = np.linspace(0.0, 1.0, 201)
    truth = norm.cdf((separation + norm.ppf(grid)) / spread)
    asked = [2, 10, 40, 100, 160]  # FPR .01, .05, .2, .5, .8
    covered, whole, at_tpr = np.zeros(len(asked)), 0, 0
    wanted_fpr = norm.sf(separation + spread * norm.ppf(0.2))  # where the TPR is .8
    for _ in range(DRAWS):
        y, scores = binormal(rng, n_positive, n_negative, separation, spread)
        curve, totals = roc_curve(y, scores), ClassTotals.of_counts(n_positive, n_negative)
        band = roc_band(curve, totals, grid)
        covered += ((band.low <= truth) & (truth <= band.high))[asked]
        band = roc_band(curve, totals, grid, kind="simultaneous")
        whole += bool(np.all((band.low <= truth + 1e-12) & (truth <= band.high + 1e-12)))
        low, high = fpr_at_tpr_interval(curve, totals, 0.8)[1:]
        at_tpr += low <= wanted_fpr <= high
    assert (covered / DRAWS > LEAST).all(), covered
    assert at_tpr / DRAWS > LEAST
    assert whole / DRAWS > LEAST


def test_the_threshold_has_a_variance_of_its_own() -> None:
    """On a steep curve, binomial intervals of the TPR alone would be far too short."""
    rng = np.random.default_rng(1)
    covered = alone = 0
    rate = 0.02
    truth = norm.cdf((2.0 + norm.ppf(rate)) / 0.3)
    for _ in range(DRAWS):
        y, scores = binormal(rng, 2000, 200, 2.0, 0.3)
        curve = roc_curve(y, scores)
        value, low, high = tpr_at_fpr_interval(curve, ClassTotals.of_counts(2000, 200), rate)
        covered += low <= truth <= high
        bounds = wilson_interval(value, 2000)
        alone += bounds.low <= truth <= bounds.high
    assert covered / DRAWS > LEAST - 0.03
    assert alone / DRAWS < 0.5


def test_by_hand() -> None:
    steps = np.arange(101) / 100
    curve = RocCurve(steps, np.sqrt(steps), np.concatenate(([np.inf], 1 - steps[1:])))
    totals = ClassTotals.of_counts(100, 100)
    z, rate = 1.959963984540054, 0.25
    reach = z * math.sqrt(rate * (1 - rate) / 100)
    height, least, most = wilson_interval(0.5, 100)
    foot, top = np.interp([rate - reach, rate + reach], steps, np.sqrt(steps))
    low = height - math.hypot(height - least, height - foot)
    high = height + math.hypot(most - height, top - height)
    np.testing.assert_allclose(tpr_at_fpr_interval(curve, totals, rate), (0.5, low, high))
    d = math.sqrt(math.log(2 / (1 - math.sqrt(0.95))) / 200)
    band = roc_band(curve, totals, [rate], kind="simultaneous")
    foot, top = np.interp([rate - d, rate + d], steps, np.sqrt(steps))
    np.testing.assert_allclose([band.low[0], band.high[0]], [foot - d, top + d])
    # The curve mirrored at the falling diagonal is its own with the classes exchanged.
    value, low, high = fpr_at_tpr_interval(curve, totals, 0.5)
    assert value == 0.25
    assert curve.tpr_at(value) == 0.5
    assert low < 0.25 < high


@given(rankings(weighted=True), st.sampled_from([0.5, 0.95, 0.999]))
def test_a_band_is_ordered_holds_the_curve_and_widens_with_the_level(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], level: float
) -> None:
    y, scores, weights = ranking
    curve, totals = curve_and_totals(y, scores, weights)
    heights = curve.tpr_at(RATES)
    bands = {
        kind: roc_band(curve, totals, RATES, kind=kind, level=level)
        for kind in ("pointwise", "simultaneous")
    }
    for kind, band in bands.items():
        assert np.all((band.low >= 0) & (band.low <= heights + 1e-12))
        assert np.all((band.high <= 1) & (band.high >= heights - 1e-12))
        assert (band.low[-1], band.high[-1]) == (1.0, 1.0)
        wider = roc_band(curve, totals, RATES, kind=kind, level=(1 + level) / 2)
        assert np.all(wider.low <= band.low + 1e-12)
        assert np.all(wider.high >= band.high - 1e-12)


@given(rankings(weighted=True), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_exchanging_the_classes_exchanges_the_questions(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], rate: float
) -> None:
    y, scores, weights = ranking
    curve = roc_curve(y, scores, weights)
    totals = ClassTotals(3.0, 4.0, 3.0, 4.0)
    value, low, high = fpr_at_tpr_interval(curve, totals, rate)
    assert 0.0 <= low <= value <= high <= 1.0
    reached = curve.fpr[curve.tpr >= rate - 1e-12]
    assert value <= reached.min() + 1e-9
    other = roc_curve(1 - y, -scores, weights)
    exchanged = ClassTotals(4.0, 3.0, 4.0, 3.0)
    mirrored = tpr_at_fpr_interval(other, exchanged, 1.0 - rate)
    if rate > 0:
        np.testing.assert_allclose(
            (value, low, high), (1 - mirrored[0], 1 - mirrored[2], 1 - mirrored[1]), atol=1e-9
        )


def test_what_cannot_be_known_is_not_claimed() -> None:
    y, scores = np.repeat([1, 0], 50), np.arange(100.0)[::-1]  # perfect
    band = roc_band(*curve_and_totals(y, scores), [0.0, 0.01, 0.5])
    # Nobody has seen a threshold that 1 % of the negatives pass: they are 50.
    assert band.low[:2].tolist() == [0.0, 0.0]
    assert band.high.tolist() == [1.0, 1.0, 1.0]
    assert 0.85 < band.low[2] < 0.95  # no misses of 50: Wilson
    one = roc_band(*curve_and_totals([0, 1], [0.0, 1.0]), RATES, kind="simultaneous")
    assert np.all(one.low[:-1] == 0.0)
    assert np.all(one.high == 1.0)
    assert fpr_at_tpr_interval(roc_curve(y, scores), ClassTotals.of_counts(50, 50), 0.0) == (
        0,
        0,
        0,
    )


@pytest.mark.parametrize(
    ("rates", "options", "named"),
    [
        ([0.5, 1.5], {}, ("fpr",)),
        ([np.nan], {}, ("fpr",)),
        ([[0.1]], {}, ("fpr",)),
        ([0.5], {"kind": "both"}, ("kind", "'both'")),
        ([0.5], {"level": 1.0}, ("level", 1.0)),
    ],
)
def test_bad_bands_are_refused(
    rates: list[float] | list[list[float]], options: Any, named: tuple[object, ...]
) -> None:
    with raises(InvalidParameter, *named):
        roc_band(*curve_and_totals([0, 1], [0.0, 1.0]), rates, **options)
