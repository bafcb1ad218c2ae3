"""Tests of change between samples: against published figures, scipy, and their level without a change."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp, mannwhitneyu, norm

from core.errors import InvalidData, InvalidParameter
from core.metrics import Interval, auc_interval, roc_curve, wilson_interval
from core.metrics.comparison import ScoreSample, change, score_shift
from core.metrics.drift import _homogeneity, bin_edges, population_stability
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences


def test_shares_give_newcombe_s_intervals() -> None:
    """Newcombe 1998, Table II, method 10, his examples (a) to (h)."""
    for successes, of, others, of_others, low, high in (
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (6, 7, 2, 7, 0.0582, 0.8062),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (0, 10, 0, 20, -0.1611, 0.2775),
        (0, 10, 0, 10, -0.2775, 0.2775),
        (10, 10, 0, 20, 0.6791, 1.0),
        (10, 10, 0, 10, 0.6075, 1.0),
    ):
        after, before = (
            wilson_interval(successes / of, of),
            wilson_interval(others / of_others, of_others),
        )
        found = change(before, after)
        assert (found.low, found.high) == pytest.approx((low, high), abs=5.1e-5)
        assert found.value == successes / of - others / of_others
        assert (found.p_value < 0.05) == (not low <= 0 <= high)


def test_symmetric_intervals_give_the_normal_test() -> None:
    z = norm.ppf(0.95)
    before, after = (Interval(v, v - z * e, v + z * e) for v, e in ((0.8, 0.03), (0.7, 0.04)))
    found = change(before, after, 0.9)
    assert found.value == pytest.approx(-0.1)
    assert (found.low, found.high) == pytest.approx((-0.1 - z * 0.05, -0.1 + z * 0.05))
    assert found.p_value == pytest.approx(2 * norm.sf(2.0))
    back = change(after, before, 0.9)
    assert back == pytest.approx((-found.value, -found.high, -found.low, found.p_value))


def test_nothing_and_certainty() -> None:
    point = Interval(0.5, 0.5, 0.5)
    assert change(point, point) == (0.0, 0.0, 0.0, 1.0)
    assert change(point, Interval(0.75, 0.75, 0.75)) == (0.25, 0.25, 0.25, 0.0)
    one = auc_interval([0, 0, 1, 1], [1, 2, 3, 4])
    assert one.value == 1.0
    assert change(one, one).p_value == 1.0


def test_the_level_holds_where_nothing_has_changed() -> None:
    rng = np.random.default_rng(1)
    p_values, wrong, draws = [], [], 500 if LONG_FORM else 120
    for _ in range(draws):
        samples = [np.r_[rng.normal(size=240), rng.normal(1.2, 1, size=120)] for _ in range(2)]
        y = np.r_[np.zeros(240), np.ones(120)]
        p_values.append(change(*(auc_interval(y, scores) for scores in samples)).p_value)
        shifts = [
            ScoreSample(curve.thresholds, curve.fpr, 240)
            for curve in (roc_curve(y, s) for s in samples)
        ]
        wrong.append(score_shift(*shifts).p_value)
    for level in (0.05, 0.2):
        tolerance = 3 * np.sqrt(level * (1 - level) / draws)
        assert abs((np.array(p_values) <= level).mean() - level) < tolerance
        assert (np.array(wrong) <= level).mean() < level + tolerance


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_scores_against_scipy(digits: int) -> None:
    rng = np.random.default_rng(digits)
    before, after = rng.normal(size=300).round(digits), rng.normal(0.3, 1.2, size=200).round(digits)
    samples = []
    for scores in (before, after):
        values, counts = np.unique(-scores, return_counts=True)
        samples.append(
            ScoreSample(
                np.r_[np.inf, -values], np.r_[0, counts.cumsum()] / len(scores), len(scores)
            )
        )
    found = score_shift(*samples)
    assert found.distance == pytest.approx(ks_2samp(before, after).statistic)
    finite = ks_2samp(before, after, method="asymp").pvalue  # scipy allows for samples being finite
    assert finite <= found.p_value < 1.5 * finite
    assert found.higher == pytest.approx(mannwhitneyu(after, before).statistic / 200 / 300)
    same = score_shift(samples[0], samples[0])
    assert (same.distance, same.p_value) == (0.0, 1.0)
    assert same.higher == pytest.approx(0.5)


def test_refusals(sentences: Sentences) -> None:
    fine, inf = Interval(0.5, 0.4, 0.6), np.inf
    with sentences.raises(InvalidData):
        change(fine, Interval(0.5, 0.6, 0.7))
    with raises(InvalidParameter, "level", 1.0):
        change(fine, fine, 1.0)
    sound = ScoreSample([inf, 1.0], [0.0, 1.0], 3)
    for thresholds, shares, rows, *named in (
        ([inf], [0.0], 3, 2, (1,)),
        ([inf, 1.0], [0.0, 0.5, 1.0], 3, (2,), (3,)),
        ([2.0, 1.0], [0.0, 1.0], 3, "thresholds", "+inf"),
        ([inf, 1.0, 1.0], [0.0, 0.5, 1.0], 3, "thresholds", "+inf"),
        ([inf, 1.0], [0.0, 0.5], 3, "shares", 0, 1),
        ([inf, 1.0], [0.0, 1.0], 0, "rows", 0),
        ([inf, 1.0], [0.0, 1.0], float("nan"), "rows", "nan"),
    ):
        with raises(InvalidData, *named):
            score_shift(sound, ScoreSample(thresholds, shares, rows))


@pytest.mark.parametrize("n_bins", [2, 10])
@pytest.mark.parametrize(("n", "m"), [(100, 100), (10_000, 200), (300, 5_000)])
def test_the_stability_index_keeps_its_level(n_bins: int, n: int, m: int) -> None:
    """Of shifts of a normal distribution by 0, .4 and .8 standard deviations, over quantiles."""
    trials = 1_000 if LONG_FORM else 150
    rng = np.random.default_rng(0)
    before = np.ones(n_bins) / n_bins
    inner = norm.ppf(np.arange(1, n_bins) / n_bins)
    for shift in (0.0, 0.4, 0.8):
        after = np.diff(np.r_[0.0, norm.cdf(inner - shift), 1.0])
        truth = float(np.sum((after - before) * np.log(after / before)))
        found = [
            population_stability(rng.multinomial(n, before), rng.multinomial(m, after), (n, m))
            for _ in range(trials)
        ]
        covered = np.mean([each.psi.low <= truth <= each.psi.high for each in found])
        assert covered >= (0.93 if LONG_FORM else 0.9)
        if not shift:
            wrong = np.mean([each.p_value < 0.05 for each in found])
            assert wrong <= (0.07 if LONG_FORM else 0.1)


@pytest.mark.parametrize("rare", [0.0, 0.002])
@pytest.mark.parametrize(("n", "m"), [(500, 100), (10_000, 100), (10_000, 300), (10_000, 5_000)])
def test_the_test_of_an_index_keeps_small_levels(n: int, m: int, rare: float) -> None:
    """The p-values of a monitor are compared with about 5e-5: `LONG_FORM` looks there."""
    level, trials = (5e-5, 400_000) if LONG_FORM else (1e-3, 6_000)
    rng = np.random.default_rng(1)
    share = np.r_[rare, np.full(10, (1.0 - 2.0 * rare) / 10), rare]
    samples = zip(rng.multinomial(n, share, trials), rng.multinomial(m, share, trials), strict=True)
    wrong = sum(_homogeneity(*each) <= level for each in samples)
    assert wrong <= trials * level + 3.0 * np.sqrt(trials * level) * (1.0 + LONG_FORM)


def test_a_new_value_in_a_few_rows_is_found() -> None:
    before, after = np.r_[np.full(10, 1_000.0), 0.0], np.r_[np.full(10, 9.0), 10.0]
    assert population_stability(before, after, (1e4, 100.0)).p_value < 1e-12
    # Rows of clusters count for less, in fractions of rows.
    assert 1e-6 < population_stability(before, after, (1e3, 30.0)).p_value < 1e-3


def test_the_stability_index_is_the_usual_one_of_many_rows() -> None:
    before, after = np.array([2e6, 5e6, 3e6]), np.array([3e6, 5e6, 2e6])
    found = population_stability(before, after, (1e7, 1e7))
    assert found.psi.value == pytest.approx(2 * 0.1 * np.log(1.5), rel=1e-5)
    assert found.distance == pytest.approx(0.1)
    assert found.psi.low <= found.psi.value <= found.psi.high
    weighed = population_stability(before / 1e6, after / 1e6, (1e7, 1e7))
    assert weighed.psi == pytest.approx(found.psi)


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ([1, 2], [1, 2, 3], (3, 6)),
        ([0, 0], [1, 2], (1, 3)),
        ([-1, 2], [1, 2], (1, 3)),
        ([np.nan, 2], [1, 2], (1, 3)),
        ([1, 2], [1, 2], (0, 3)),
        ([1, 2], [1, 2], (np.inf, 3)),
        ([[1, 2]], [1, 2], (3, 3)),
    ],
)
def test_masses_that_are_none(before: Any, after: Any, rows: tuple[float, float]) -> None:
    with pytest.raises(InvalidData):
        population_stability(before, after, rows)


def test_bins_are_of_about_equal_mass() -> None:
    values = np.random.default_rng(0).normal(size=1_000)
    counts = np.bincount(np.searchsorted(bin_edges(values), values))
    assert counts.tolist() == [100] * 10
    few = np.repeat([0.0, 1.0, 5.0], [80, 15, 5])
    assert bin_edges(few).tolist() == [0.0, 1.0]
    assert bin_edges(np.empty(0)).size == 0
