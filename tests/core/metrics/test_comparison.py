"""Two or more scorers on the same rows: DeLong over all pairs, joint tests, Holm, and what no variance means."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f, norm, rankdata

from core.errors import InvalidData, InvalidParameter
from core.metrics import (
    auc_interval,
    compare,
    compare_metrics,
    metric_named,
    partial_auc,
    partial_auc_interval,
)
from core.metrics.estimates import holm, one_sided_table
from core.metrics.runs import compare_stored
from tests.core.metrics.naive import delong_covariance, rankings, windows
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

WINDOWS = [(0.0, 1.0), (0.0, 0.2), (0.1, 0.5)]


def make_rows(
    n: int = 300, k: int = 3, seed: int = 0, gain: tuple[float, float, float] = (1.0, 1.2, 0.6)
) -> tuple[np.ndarray, list[np.ndarray], np.random.Generator]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    shared = rng.normal(size=n)
    scores = [np.round(g * y + shared + rng.normal(size=n), 1) for g in gain[:k]]
    return y, scores, rng


def test_differences_of_aucs_are_delongs() -> None:
    y, scores, _ = make_rows()
    areas, covariance = delong_covariance(y, scores)
    found = compare(y, scores, level=0.9).windows[0]
    for difference, (a, b) in zip(found.differences, combinations(range(3), 2), strict=True):
        error = math.sqrt(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b])
        d = areas[a] - areas[b]
        assert difference.value == pytest.approx(d)
        assert (difference.low, difference.high) == pytest.approx(
            (d - norm.ppf(0.95) * error, d + norm.ppf(0.95) * error)
        )
        assert difference.p_value == pytest.approx(2 * norm.sf(abs(d) / error))
    contrast = np.array([[1, -1, 0], [1, 0, -1]])
    d = contrast @ areas
    wald = d @ np.linalg.solve(contrast @ covariance @ contrast.T, d)
    m = min(y.sum(), (1 - y).sum()) - 1
    assert found.joint_p_value == pytest.approx(f.sf(wald * (m - 1) / (2 * m), 2, m - 1))


@given(rankings(), st.randoms(use_true_random=False))
def test_any_pair_is_delongs_or_differs_less_surely(
    ranking: tuple[np.ndarray, np.ndarray, None], random: Any
) -> None:
    y, one, _ = ranking
    other = np.array(random.sample(one.tolist(), len(one)))
    found = compare(y, [one, other]).windows[0]
    difference = found.differences[0]
    assert -1.0 <= difference.low <= difference.value <= difference.high <= 1.0
    assert difference.high - difference.low > 1e-6
    assert found.joint_p_value == difference.p_value
    if min(y.sum(), (1 - y).sum()) < 3:
        assert difference.p_value is None
        assert difference.low <= 0.0 <= difference.high
        return
    assert difference.p_value is not None
    assert 0.0 <= difference.p_value <= 1.0
    if min(y.sum(), (1 - y).sum()) > 1:
        areas, covariance = delong_covariance(y, [one, other])
        error = math.sqrt(max(0.0, covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]))
        if error > 1e-9:
            z = (areas[0] - areas[1]) / error
            # of few rows, or if most rows agree, the variance is uncertain
            assert difference.p_value >= 2 * norm.sf(abs(z)) - 1e-7


@given(rankings(weighted=True), windows)
def test_values_are_the_intervals_of_each_alone(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], window: tuple[float, float]
) -> None:
    y, scores, weights = ranking
    found = compare(y, [scores, scores[::-1]], [window], sample_weight=weights)
    for interval, column in zip(found.windows[0].values, (scores, scores[::-1]), strict=True):
        alone = partial_auc_interval(y, column, *window, sample_weight=weights)
        np.testing.assert_allclose(interval, alone, atol=1e-7)


def test_several_windows_are_each_window_by_itself_and_adjusted_together() -> None:
    y, scores, rng = make_rows()
    weight = rng.uniform(0.5, 2.0, len(y))
    all_at_once = compare(y, scores, WINDOWS, sample_weight=weight, names=["a", "b", "c"])
    p_values: list[float] = []
    for window, found in zip(WINDOWS, all_at_once.windows, strict=True):
        alone = compare(
            y, scores, [window], sample_weight=weight, names=["a", "b", "c"], adjust="none"
        ).windows[0]
        assert (found.fpr_min, found.fpr_max) == window
        assert found.values == alone.values
        assert found.joint_p_value == alone.joint_p_value
        for here, there in zip(found.differences, alone.differences, strict=True):
            assert (here.first, here.second) == (there.first, there.second)
            assert here.p_value == there.p_value == there.adjusted_p_value
        p_values.extend(here.p_value for here in found.differences)
    adjusted = [
        here.adjusted_p_value for found in all_at_once.windows for here in found.differences
    ]
    np.testing.assert_allclose(adjusted, holm(np.array(p_values)))
    assert all_at_once.n_tests == 9


def test_holm_is_rs() -> None:
    # p.adjust(c(.01, .04, .03, .005), "holm")
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_array_equal(holm(np.array([[0.9, 0.8]])), [[1.0, 1.0]])


# --- dependent contrasts --------------------------------------------------------------------------


def test_an_equal_scorer_takes_nothing_from_the_joint_test() -> None:
    y, scores, _ = make_rows()
    two = compare(y, scores[:2])
    three = compare(y, [scores[0], scores[1], 3.0 * scores[1] + 1.0])
    assert three.joint_p_value == pytest.approx(two.joint_p_value)
    assert three.windows[0].differences[2].p_value == 1.0


# --- no variance ----------------------------------------------------------------------------------


def test_equal_scorers_differ_by_nothing_and_the_interval_says_how_little_that_proves() -> None:
    y, scores, _ = make_rows()
    found = compare(y, [scores[0], scores[0]])
    difference = found.windows[0].differences[0]
    z, n = norm.ppf(0.975), y.sum()
    assert (difference.value, difference.p_value, difference.adjusted_p_value) == (0.0, 1.0, 1.0)
    assert found.joint_p_value == 1.0
    assert difference.high == pytest.approx(z**2 / (n + z**2))
    assert difference.low == pytest.approx(-difference.high)


def test_two_perfect_rankings_are_not_told_apart() -> None:
    y = np.repeat([1, 0], [50, 90])
    found = compare(y, [y + 0.0, y + 0.1 * np.arange(140)[::-1] / 140])
    difference = found.windows[0].differences[0]
    assert (difference.value, difference.p_value, found.joint_p_value) == (0.0, 1.0, 1.0)
    assert difference.high == pytest.approx(1.0 - auc_interval(y, y + 0.0).low)


def test_perfect_against_constant_and_reversed() -> None:
    y = np.repeat([1, 0], [20, 30])
    found = compare(y, [y + 0.0, 0.0 * y, -1.0 * y], adjust="none")
    first, whole, last = found.windows[0].differences
    assert (first.value, whole.value, last.value) == (0.5, 1.0, 0.5)
    # McNemar's test and Tango's interval: 20 pairs, of which 10 (or all) favour the first.
    assert first.p_value == pytest.approx(2 * norm.sf(math.sqrt(10)))
    assert whole.p_value == pytest.approx(2 * norm.sf(math.sqrt(20)))
    z = norm.ppf(0.975)
    assert (whole.low, whole.high) == pytest.approx(((20 - z**2) / (20 + z**2), 1.0))
    assert found.joint_p_value == pytest.approx(3 * whole.p_value)


@pytest.mark.parametrize("favoured", range(21))
def test_without_variance_the_interval_is_tangos(favoured: int) -> None:
    # n pairs, `favoured` one way, none the other: the ends solve the score equation, q found by search.
    n, d, z = 20, favoured / 20, norm.ppf(0.975)

    def score(delta: Any) -> Any:
        q = np.linspace(max(0.0, -delta), (1.0 - delta) / 2.0, 200_001)[1:-1]
        fit = favoured * np.log(q + delta) + (n - favoured) * np.log1p(-2 * q - delta)
        best = q[np.argmax(fit)]
        return n * (d - delta) ** 2 - z**2 * (2 * best + delta - delta**2)

    _, low, high = one_sided_table(d, n, 0.95)
    for end in {low, high} - {1.0}:
        assert score(end) == pytest.approx(0.0, abs=2e-3)
    assert one_sided_table(-d, n, 0.95)[1:] == pytest.approx((-high, -low))


# --- few negatives in the window ------------------------------------------------------------------


def test_a_window_of_few_negatives_has_no_p_value_and_says_how_many_it_needs(
    sentences: Sentences,
) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [200, 50])
    scores = [rng.normal(size=y.size) + y for _ in range(3)]
    found = compare(y, scores, [(0.0, 1.0), (0.0, 0.05)])
    whole, narrow = found.windows
    assert all(pair.p_value is not None for pair in whole.differences)
    assert whole.joint_p_value is not None
    for pair in narrow.differences:
        assert (pair.p_value, pair.adjusted_p_value) == (None, None)
        assert pair.low < 0.0 < pair.high
    assert narrow.joint_p_value is None
    # the window without p-values takes nothing from the others
    alone = compare(y, scores, [(0.0, 1.0)])
    assert found.windows[0] == alone.windows[0]
    assert (found.joint_p_value, found.n_tests) == (alone.joint_p_value, alone.n_tests)
    (words,) = found.warnings
    assert "60 negatives" in words
    assert "300 rows" in words
    sentences(words)
    y = np.repeat([1, 0], [200, 60])
    enough = compare(y, [rng.normal(size=y.size) + y for _ in range(2)], [(0.0, 0.05)])
    assert enough.warnings == ()
    assert enough.windows[0].differences[0].p_value is not None


def test_unequal_weights_need_more_negatives_in_the_window(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def missing(n_negatives: int, heavy: float) -> set[bool]:
        y = np.repeat([1, 0], [200, n_negatives])
        scores = [rng.normal(size=y.size) + y for _ in range(2)]
        weight = np.where(np.arange(y.size) % 4 == 0, heavy, 1.0)
        window = [(0.0, 0.05)]
        found = [
            compare(y, scores, window, sample_weight=weight).windows[0].differences,
            compare_stored(y == 1, scores, window, folder=tmp_path, sample_weight=weight)
            .windows[0]
            .differences,
            compare_metrics(y, scores, [metric_named("pauc:0,0.05")], sample_weight=weight)[
                0
            ].differences,
        ]
        return {pairs[0].p_value is None for pairs in found}

    assert missing(60, heavy=1.0) == {False}
    # effective numbers of 60.7 and 68.6: more than 60 = 3 / .05, but not times the square root of their share
    assert missing(68, heavy=2.0) == {True}
    assert missing(160, heavy=9.0) == {True}
    assert missing(240, heavy=9.0) == {False}


@pytest.mark.parametrize(
    ("n_positives", "n_negatives", "window"),
    [
        (200, 60, (0.0, 0.05)),
        (2_000, 60, (0.0, 0.05)),
        (500, 100, (0.0, 0.05)),
        (500, 100, (0.0, 0.1)),
        (2_000, 20, (0.1, 0.3)),
        (3, 100, (0.0, 1.0)),
    ],
)
def test_equally_good_scorers_seldom_differ_in_a_narrow_window(
    n_positives: int, n_negatives: int, window: tuple[float, float]
) -> None:
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], [n_positives, n_negatives])
    different, n_trials = 0, 2_000 if LONG_FORM else 80
    for _ in range(n_trials):
        shared = rng.normal(size=y.size) + 1.7 * y
        scores = [shared + rng.normal(size=y.size) for _ in range(2)]
        found = compare(y, scores, [window]).windows[0].differences[0]
        assert found.p_value is not None
        different += found.p_value < 0.05
    # by chance: 6 % and two and a half standard errors
    assert different / n_trials < 0.06 + 2.5 * math.sqrt(0.06 * 0.94 / n_trials)


# --- null -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS)
def test_under_the_null_hypothesis_p_values_are_uniform(window: tuple[float, float]) -> None:
    p_values, joint = [], []
    for seed in range(400 if LONG_FORM else 60):
        y, scores, _ = make_rows(n=200, seed=seed, gain=(1.0, 1.0, 1.0))
        found = compare(y, scores, [window]).windows[0]
        p_values.append(found.differences[0].p_value)
        joint.append(found.joint_p_value)
    for values in (p_values, joint):
        assert np.mean(np.array(values) < 0.05) == pytest.approx(
            0.05, abs=0.04 if LONG_FORM else 0.08
        )
        assert np.mean(values) == pytest.approx(0.5, abs=0.06 if LONG_FORM else 0.13)


def permuted_differences(
    y: np.ndarray,
    one: np.ndarray,
    other: np.ndarray,
    window: tuple[float, float],
    n_permutations: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Differences of areas when either scorer may have given either rank to a row (Bandos, Rockette & Gur 2005)."""
    ranks = np.array([rankdata(one), rankdata(other)])
    areas = np.empty((n_permutations, 2))
    for permutation in areas:
        swapped = rng.random(y.size) < 0.5
        mixed = np.where(swapped, ranks[::-1], ranks)
        permutation[:] = [partial_auc(y, column, *window) for column in mixed]
    return areas[:, 0] - areas[:, 1]


@pytest.mark.parametrize("window", [(0.0, 1.0), (0.0, 0.3), (0.2, 0.6)])
@pytest.mark.parametrize("gain", [0.0, 0.25])
def test_a_p_value_is_the_share_of_permutations_that_differ_as_much(
    window: tuple[float, float], gain: float
) -> None:
    rng = np.random.default_rng(3)
    y = np.repeat([1, 0], [150, 250])
    shared = y + rng.normal(size=y.size)
    one = np.round(shared + rng.normal(size=y.size) + gain * y, 2)
    other = np.round(shared + rng.normal(size=y.size), 2)
    found = compare(y, [one, other], [window]).windows[0].differences[0]
    null = permuted_differences(y, one, other, window, 600 if LONG_FORM else 150, rng)
    error = (found.high - found.low) / (2 * 1.959964)
    assert null.std() == pytest.approx(error, rel=0.15 if LONG_FORM else 0.25)
    share = np.mean(np.abs(null) >= abs(found.value))
    assert share == pytest.approx(found.p_value, abs=0.08 if LONG_FORM else 0.12)


def test_many_contrasts_on_few_rows_are_left_to_holm() -> None:
    # As chi-squared, Wald's statistic of these twelve contrasts calls the scorers different in every other sample.
    windows, different = [(0.0, 1.0), (0.0, 0.3), (0.2, 0.6)], 0
    n_trials = 200 if LONG_FORM else 40
    for seed in range(n_trials):
        rng = np.random.default_rng(seed)
        y = np.repeat([1, 0], [12, 25])
        shared = rng.normal(size=y.size) + y
        found = compare(y, [shared + rng.normal(size=y.size) for _ in range(5)], windows)
        different += found.joint_p_value < 0.05
        adjusted = [d.adjusted_p_value for window in found.windows for d in window.differences]
        assert found.joint_p_value == min(adjusted)
    assert different / n_trials < (0.1 if LONG_FORM else 0.2)


# --- bad input ------------------------------------------------------------------------------------

Y, ONE, TWO = [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8], [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("scores", "options", "error", "named"),
    [
        ([ONE], {}, InvalidParameter, ("scores", 1)),
        ([ONE, TWO[:3]], {}, InvalidData, ("scores[1]", 3)),
        ([ONE, [1, 2, 3, np.nan]], {}, InvalidData, ("scores[1]", "nan", 3)),
        ([ONE, TWO], {"windows": []}, InvalidParameter, ("windows",)),
        ([ONE, TWO], {"windows": [(0.1, 0.05)]}, InvalidParameter, ("fpr_max", 0.05)),
        ([ONE, TWO], {"windows": [(0.1,)]}, InvalidParameter, ("windows", (0.1,))),
        ([ONE, TWO], {"level": 1.0}, InvalidParameter, ("level", 1.0)),
        ([ONE, TWO], {"adjust": "bonferroni"}, InvalidParameter, ("adjust", "'bonferroni'")),
        (
            [ONE, TWO],
            {"names": ["a"]},
            InvalidParameter,
            ("names", 2, 1),
        ),
        ([ONE, TWO], {"names": ["a", "a"]}, InvalidParameter, ("names", ["a", "a"])),
        ([ONE, TWO], {"group": [1, 2, 3]}, InvalidData, ("group", 4, 3)),
        ([ONE, TWO], {"group": [1, 2, 3, np.nan]}, InvalidData, ("group", "NaN", 3)),
        (
            [ONE, TWO],
            {"group": [1, 2, 3, None]},
            InvalidData,
            ("group",),
        ),
        ([ONE, TWO], {"group": np.array([1, 2, 3, "a"], object)}, InvalidData, ("group",)),
        ([ONE, TWO], {"sample_weight": [1, 1, 1, -1]}, InvalidData, ("sample_weight", -1)),
    ],
)
def test_bad_input_is_refused_by_name(
    scores: list[list[float]] | list[Any], options: Any, error: type[Any], named: tuple[object, ...]
) -> None:
    with raises(error, *named):
        compare(Y, scores, **options)
