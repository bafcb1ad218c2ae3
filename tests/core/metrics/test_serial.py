"""Shares of rows that are a time series: their variance, and the level of tests of drift."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import norm

from core.errors import InvalidData
from core.metrics.comparison import ScoreSample, score_shift
from core.metrics.drift import bin_edges, population_stability
from core.metrics.serial import SerialDependence, order_matters, serial_dependence
from tests.long_form import LONG_FORM

Floats = NDArray[np.float64]
TRIALS = 1_000 if LONG_FORM else 40
TOLERANCE = 3.0 * math.sqrt(0.05 * 0.95 / TRIALS)


def autoregressive(n: int, phi: float, rng: np.random.Generator) -> Floats:
    """A Gaussian series with variance 1 whose neighbours correlate by `phi`."""
    noise = math.sqrt(1.0 - phi**2) * rng.normal(size=n + 300)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise)[300:])


def sample_of(scores: Floats) -> ScoreSample:
    values, counts = np.unique(-scores, return_counts=True)
    thresholds = np.concatenate(([np.inf], -values))
    return ScoreSample(thresholds, np.append(0, counts.cumsum()) / scores.size, scores.size)


def stability(
    before: Floats, after: Floats
) -> tuple[float | None, float | None, tuple[float, float]]:
    """The p-values of the index, as a series and as independent rows, and the interval."""
    edges = bin_edges(before)
    bins = [np.searchsorted(edges, each) for each in (before, after)]
    old_mass, new_mass = (np.bincount(each, minlength=10) for each in bins)
    rows = (before.size, after.size)
    plain = population_stability(old_mass, new_mass, rows).p_value
    old, new = (serial_dependence(each, 10, ordered=True) for each in bins)
    if old is None or new is None:
        return None, plain, (math.nan, math.nan)
    found = population_stability(old_mass, new_mass, rows, dependence=(old, new))
    return found.p_value, plain, found.psi[1:]


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("n", [500, 2_000])
def test_tests_of_series_keep_their_level_and_intervals_cover(n: int, phi: float) -> None:
    rng = np.random.default_rng([n, int(10 * phi)])
    index, plain, scores, covered = [], [], [], []
    bins = norm.ppf(np.arange(1, 10) / 10)
    shares = np.diff(np.concatenate(([0.0], norm.cdf(bins - 0.5), [1.0])))
    truth = float(np.sum((shares - 0.1) * np.log(shares / 0.1)))
    for _ in range(TRIALS):
        before, after = (autoregressive(n, phi, rng) for _ in range(2))
        found = stability(before, after)
        index.append(found[0])
        plain.append(found[1])
        shift = score_shift(sample_of(before), sample_of(after), series=after)
        scores.append(shift.p_value)
        _, _, (low, high) = stability(before, after + 0.5)
        covered += [] if math.isnan(low) else [low <= truth <= high]
    for p_values in (index, scores):
        known = [p_value for p_value in p_values if p_value is not None]
        assert len(known) >= (0.85 if phi == 0.9 and n == 500 else 0.99) * TRIALS - 1
        assert np.mean(np.array(known) < 0.05) <= 0.05 + TOLERANCE
    assert np.mean(covered) >= 0.95 - TOLERANCE
    if phi == 0.9:
        assert np.mean(np.array(plain) < 0.05) > 0.5


def test_a_shift_is_found_in_a_series() -> None:
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(20):
        before, after = autoregressive(2_000, 0.9, rng), autoregressive(2_000, 0.9, rng) + 0.8
        p_value = stability(before, after)[0]
        shift = score_shift(sample_of(before), sample_of(after), series=after).p_value
        assert p_value is not None
        assert shift is not None
        found += (p_value < 0.05) + (shift < 0.05)
    assert found >= 34


def test_the_covariance_is_that_of_shares_over_many_series() -> None:
    """Of n times the shares' covariance, over series in which neighbours correlate by .6."""
    rng = np.random.default_rng(2)
    edges, n = norm.ppf([0.2, 0.5, 0.7]), 3_000
    shares, estimates = [], []
    for _ in range(400 if LONG_FORM else 150):
        bins = np.searchsorted(edges, autoregressive(n, 0.6, rng))
        shares.append(np.bincount(bins, minlength=4) / n)
        found = serial_dependence(bins, 4, ordered=True)
        assert found is not None
        estimates.append(found.covariance)
    truth, estimate = n * np.cov(np.array(shares).T), np.mean(estimates, axis=0)
    assert estimate == pytest.approx(truth, abs=(0.2 if LONG_FORM else 0.3) * np.trace(truth))
    assert np.trace(estimate) == pytest.approx(np.trace(truth), rel=0.12 if LONG_FORM else 0.25)


def test_a_series_that_is_too_short_has_no_test() -> None:
    rng = np.random.default_rng(3)
    walk = np.cumsum(rng.normal(size=400))
    bins = np.searchsorted(bin_edges(walk), walk)
    assert serial_dependence(bins, 10, ordered=True) is None
    shift = score_shift(sample_of(rng.normal(size=400)), sample_of(walk), series=walk)
    assert shift.p_value is None
    assert shift.psi is None
    assert 0.0 < shift.distance <= 1.0
    assert serial_dependence(np.zeros(3, dtype=np.intp), 2, ordered=True) is None


def test_groups_say_how_much_rows_are_worth_at_most() -> None:
    rng = np.random.default_rng(4)
    bins = rng.integers(0, 5, 2_000)
    free = serial_dependence(bins, 5, ordered=False)
    grouped = serial_dependence(bins, 5, ordered=False, worth=0.1)
    assert free is not None
    assert grouped is not None
    assert np.trace(free.covariance) == pytest.approx(0.8, rel=0.2)
    assert np.trace(grouped.covariance) == pytest.approx(8.0, rel=1e-3)
    alternating = np.arange(1_000) % 2  # its shares do not vary at all
    floor = serial_dependence(alternating, 2, ordered=True)
    assert floor is None or np.trace(floor.covariance) >= 0.5 - 1e-9


def test_an_order_that_matters_is_seen_and_others_are_not() -> None:
    rng = np.random.default_rng(6)
    cases: dict[str, tuple[Callable[[], Floats], float, float]] = {
        "independent": (lambda: rng.normal(size=600), 0.0, 0.02),
        "series": (lambda: autoregressive(600, 0.5, rng), 0.98, 1.0),
        "weak but long": (
            lambda: autoregressive(600, 0.9, rng) + 1.5 * rng.normal(size=600),
            0.9,
            1.0,
        ),
        "sorted": (lambda: np.sort(rng.normal(size=600)), 1.0, 1.0),
        "constant": (lambda: np.zeros(600), 0.0, 0.0),
        "few": (lambda: np.arange(20.0), 0.0, 0.0),
    }
    for draw, least, most in cases.values():
        seen = []
        for _ in range(60):
            x = draw()
            edges = bin_edges(x)
            seen.append(order_matters(np.searchsorted(edges, x), edges.size + 1, ordered=True))
        assert least <= np.mean(seen) <= most


def test_a_table_that_is_sorted_by_its_label_is_no_series() -> None:
    rng = np.random.default_rng(7)
    label = np.repeat([0, 1], 400)
    bins = np.searchsorted([-0.5, 0.5, 1.5], rng.normal(size=800) + 1.5 * label)
    assert order_matters(bins, 4, ordered=True)
    assert not order_matters(bins, 4, ordered=True, stratum=label)
    series = autoregressive(800, 0.8, rng) + 1.5 * label
    bins = np.searchsorted([-0.5, 0.5, 1.5], series)
    assert order_matters(bins, 4, ordered=True, stratum=label)
    shuffled = rng.permutation(800)
    within = order_matters(bins[shuffled], 4, ordered=True, stratum=label[shuffled])
    assert not within


def test_categories_that_persist_are_a_series() -> None:
    rng = np.random.default_rng(8)
    for n_bins in (2, 7):
        drawn = rng.integers(0, n_bins, 400)
        kept = np.maximum.accumulate(np.where(rng.random(400) < 0.5, np.arange(400), 0))
        for bins, series in ((drawn, False), (drawn[kept], True)):
            assert order_matters(bins, n_bins, ordered=False) is series
            assert order_matters(bins, n_bins + 2, ordered=True) is series  # with empty bins
    assert not order_matters(np.zeros(400, dtype=np.intp), 1, ordered=True)


def test_a_series_is_checked() -> None:
    fine = sample_of(np.arange(30.0))
    for series in ([[1.0]], [math.nan], ["a"]):
        with pytest.raises(InvalidData):
            score_shift(fine, fine, series=series)


@pytest.mark.parametrize("moved", [False, True])
def test_a_series_in_one_bin_has_a_test(moved: bool) -> None:
    """Its fractions do not vary, so its covariance is 0; that of the earlier rows, of the same dependence, is not."""
    rng = np.random.default_rng(1)
    scores = np.full(300, 9.0 if moved else 0.0)
    found = score_shift(sample_of(rng.normal(size=400)), sample_of(scores), series=scores)
    assert found.psi is not None
    assert 0.25 < found.psi.low <= found.psi.value <= found.psi.high < math.inf
    constant = SerialDependence(np.zeros((2, 2)), 5.0)
    before, after = np.array([400.0, 0.0]), np.array([300.0, 0.0])[:: -1 if moved else 1]
    tested = population_stability(before, after, (400.0, 300.0), dependence=(constant, constant))
    assert tested.p_value == (0.0 if moved else 1.0)
    assert np.isfinite(tested.psi).all()
