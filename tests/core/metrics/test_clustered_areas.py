"""Several rows a unit: Obuchowski's variance over all pairs, coverage, and what a group must not change."""

import math

import numpy as np
import pytest
from scipy.stats import norm, t

from core.metrics import auc_interval, compare, partial_auc_interval
from core.metrics.groups import check_rows
from core.metrics.intervals import estimate_areas
from tests.core.metrics.naive import structural_components
from tests.long_form import LONG_FORM

WINDOWS = [(0.0, 1.0), (0.0, 0.2), (0.1, 0.5)]


def clustered(
    rng: np.random.Generator,
    n_units: int,
    size: int,
    shares: float = 0.5,
    share_positive: float = 0.4,
    n_scorers: int = 1,
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Binormal rows of units that share half of their variance; rows of both classes in a unit."""
    unit = np.repeat(np.arange(n_units), size)
    y = (rng.random(unit.size) < share_positive).astype(int)
    own = rng.normal(size=n_units)[unit]
    scores = [
        1.2 * y + math.sqrt(shares) * own + math.sqrt(1 - shares) * rng.normal(size=y.size)
        for _ in range(n_scorers)
    ]
    return y, scores, unit


def variance(
    y: np.ndarray,
    scores: np.ndarray,
    unit: np.ndarray | None,
    window: tuple[float, float] = (0.0, 1.0),
    weight: np.ndarray | None = None,
) -> float:
    rows = check_rows(y, {"scores": scores}, weight, unit)
    return estimate_areas(rows, [window]).variance(0, 0)


def test_the_variance_is_obuchowskis() -> None:
    # Two positives and three negatives in each unit, so that each of her factors is I / (I - 1).
    rng = np.random.default_rng(0)
    n_units, y = 9, np.tile([1, 1, 0, 0, 0], 9)
    unit = np.repeat(np.arange(n_units), 5)
    scores = np.round(rng.normal(size=n_units)[unit] + rng.normal(size=y.size) + y, 1)
    v10, v01 = structural_components(y, scores)
    area = v10.mean()
    positive, negative = v10.reshape(n_units, 2), v01.reshape(n_units, 3)
    of_positive = (positive - area).sum(axis=1)
    of_negative = (negative - area).sum(axis=1)
    s10 = n_units / (n_units - 1) * (of_positive**2).sum() / 18
    s01 = n_units / (n_units - 1) * (of_negative**2).sum() / 27
    s11 = n_units / (n_units - 1) * (of_positive * of_negative).sum()
    expected = s10 / 18 + s01 / 27 + 2 * s11 / (18 * 27)
    assert variance(y, scores, unit) == pytest.approx(expected)
    value, low, _ = auc_interval(y, scores, group=unit)
    reach = math.log(value / (1 - value)) - math.log(low / (1 - low))
    error = math.sqrt(expected) / (value * (1 - value))
    # Satterthwaite: the units' own squares say how many of them make up the variance
    parts = np.sqrt(n_units / (n_units - 1)) * (of_positive / 18 + of_negative / 27)
    degrees = min(n_units - 1, 3 * ((parts**2).sum() ** 2 / (parts**4).sum() - 1))
    error *= math.sqrt(1 + 1 / degrees)
    assert reach == pytest.approx(t.ppf(0.975, degrees) * error)


@pytest.mark.parametrize("window", WINDOWS)
def test_each_row_a_unit_is_the_variance_of_rows(window: tuple[float, float]) -> None:
    y, (scores,), _ = clustered(np.random.default_rng(1), 60, 3)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, y.size)
    alone = variance(y, scores, None, window, weight)
    assert variance(y, scores, np.arange(y.size), window, weight) == pytest.approx(alone)


@pytest.mark.parametrize("window", WINDOWS)
def test_copies_of_a_row_in_its_unit_prove_nothing_more(window: tuple[float, float]) -> None:
    y, (scores,), unit = clustered(np.random.default_rng(3), 30, 3)
    once = partial_auc_interval(y, scores, *window, group=unit)
    rows = np.tile([y, scores], 3)
    thrice = partial_auc_interval(rows[0], rows[1], *window, group=np.tile(unit, 3))
    np.testing.assert_allclose(thrice, once)


def test_the_names_of_units_and_the_order_of_rows_do_not_matter() -> None:
    y, scores, unit = clustered(np.random.default_rng(4), 30, 3, n_scorers=2)
    named = np.array([f"patient {(7 * u) % 31}" for u in unit])
    mixed = np.random.default_rng(5).permutation(y.size)
    one = compare(y, scores, WINDOWS, group=unit)
    other = compare(y[mixed], [column[mixed] for column in scores], WINDOWS, group=named[mixed])
    for here, there in zip(one.windows, other.windows, strict=True):
        np.testing.assert_allclose(here.values, there.values)
        assert here.joint_p_value == pytest.approx(there.joint_p_value)
        assert here.differences[0].p_value == pytest.approx(there.differences[0].p_value)


def test_one_unit_of_a_class_shows_no_variance() -> None:
    y, scores, _ = clustered(np.random.default_rng(6), 10, 4, n_scorers=2)
    found = compare(y, scores, group=np.where(y == 1, 0, np.arange(y.size)))
    assert found.windows[0].values[0][2] - found.windows[0].values[0][1] > 0.5
    assert found.windows[0].differences[0].p_value is None


def test_more_contrasts_than_units_leave_holms_least() -> None:
    y, scores, unit = clustered(np.random.default_rng(7), 5, 12, n_scorers=6)
    found = compare(y, scores, WINDOWS, group=unit)
    adjusted = [
        d.adjusted_p_value
        for window in found.windows
        for d in window.differences
        if d.adjusted_p_value is not None
    ]
    assert found.joint_p_value == min(adjusted)


@pytest.mark.parametrize("n_units", [16, 60])
def test_clustered_intervals_and_tests_hold_their_level(n_units: int) -> None:
    rng = np.random.default_rng(8)
    window, n_trials = (0.0, 0.3), 300 if LONG_FORM else 50
    covered = different = 0
    rates = np.linspace(1e-9, window[1], 3001)
    truth = np.trapezoid(norm.sf(norm.isf(rates) - 1.2), rates) / window[1]
    for _ in range(n_trials):
        y, scores, unit = clustered(rng, n_units, 5, n_scorers=2, share_positive=0.3)
        found = compare(y, scores, [window], group=unit).windows[0]
        covered += found.values[0].low <= truth <= found.values[0].high
        different += found.joint_p_value < 0.05
    allowed = 3 * math.sqrt(0.05 * 0.95 / n_trials) + 0.01
    assert covered / n_trials == pytest.approx(0.95, abs=allowed)
    assert different / n_trials == pytest.approx(0.05, abs=allowed)
