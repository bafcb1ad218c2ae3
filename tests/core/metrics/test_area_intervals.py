"""Intervals: DeLong over all pairs, coverage by simulation, and the degenerate cases."""

import math
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import norm

from core.errors import InvalidParameter
from core.metrics import (
    Interval,
    auc,
    auc_interval,
    partial_auc,
    partial_auc_interval,
    wilson_interval,
)
from core.metrics.groups import group_by_score
from core.metrics.intervals import area_variance, area_warnings, missing_test_warning
from core.metrics.window import WHOLE
from tests.core.metrics.naive import (
    area_interval,
    binormal_area,
    delong_variance,
    interpolated_pauc,
    rankings,
    windows,
)
from tests.long_form import LONG_FORM, long_form
from tests.raising import raises
from tests.sentences import Sentences


def variance(
    y: np.ndarray,
    scores: np.ndarray,
    window: tuple[float, float] = (0.0, 1.0),
    weights: None = None,
) -> float | None:
    return area_variance(group_by_score(y, scores, weights), *window)


def two_classes(
    rng: np.random.Generator,
    n_positive: int,
    n_negative: int,
    shift: float,
    digits: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    y = np.repeat([1, 0], [n_positive, n_negative])
    scores = rng.normal(size=y.size) + shift * y
    return y, scores if digits is None else np.round(scores, digits)


@given(rankings())
def test_the_variance_is_delongs(ranking: tuple[np.ndarray, np.ndarray, None]) -> None:
    y, scores, _ = ranking
    if min(y.sum(), (1 - y).sum()) < 2:
        assert variance(y, scores) is None
    else:
        assert variance(y, scores) == pytest.approx(delong_variance(y, scores), abs=1e-15)


def test_the_variance_in_a_window_comes_from_the_derivatives_in_the_weights() -> None:
    # Where a window ends at a vertical step, the slopes to both sides differ: half of each counts.
    y, scores = np.array([1, 1, 0, 1, 0, 0, 1, 0, 1, 0]), np.array([9, 8, 7, 6, 5, 5, 5, 4, 3, 2])
    step = 1e-6
    for window in ((0.0, 0.2), (0.2, 0.6), (0.1, 0.5), (0.3, 0.8), (0.8, 1.0)):

        def area(row: int, change: float, window: tuple[float, float] = window) -> float:
            weights = np.ones(10)
            weights[row] += change
            return interpolated_pauc(y, scores, *window, weights)

        slopes = np.array([area(row, step) - area(row, -step) for row in range(10)]) / (2 * step)
        of_classes = [5 / 4 * (slopes[y == label] ** 2).sum() for label in (0, 1)]
        assert variance(y, scores, window) == pytest.approx(sum(of_classes), rel=1e-4)


def test_published_example() -> None:
    # Hanley & McNeil (1982), table I: 51 abnormal and 58 normal images, rated 1 to 5. Area .893; DeLong's standard
    # error .0307 and the symmetric interval (.833, .953) are those of Stata's manual (roctab, hanley.dta).
    abnormal, normal = [3, 2, 2, 11, 33], [33, 6, 6, 11, 2]
    y = np.repeat([1, 0], [51, 58])
    ratings = np.concatenate([np.repeat(np.arange(1, 6), counts) for counts in (abnormal, normal)])
    assert auc(y, ratings) == pytest.approx(0.8932, abs=5e-5)
    error = math.sqrt(variance(y, ratings))
    assert error == pytest.approx(0.0307, abs=5e-5)
    assert auc(y, ratings) - norm.ppf(0.975) * error == pytest.approx(0.83295, abs=5e-5)


def test_the_interval_is_wilsons_for_the_effective_trials() -> None:
    y, scores = two_classes(np.random.default_rng(0), 30, 40, 1.0)
    value, low, high = auc_interval(y, scores)
    assert (low, high) == pytest.approx(
        area_interval(value, delong_variance(y, scores), 30, (30, 40))
    )


def test_few_positives_near_one_are_covered_by_narrower_intervals_than_those_of_any_distribution() -> (
    None
):
    rng, distance = np.random.default_rng(6), math.sqrt(2) * norm.ppf(0.99)
    widths, of_any, covered, n_trials = 0.0, 0.0, 0, 60
    for _ in range(n_trials):
        y, scores = two_classes(rng, 20, 2_000, distance)
        value, low, high = auc_interval(y, scores)
        worst = area_interval(value, delong_variance(y, scores), 20) if value < 1.0 else (low, high)
        widths, of_any = widths + high - low, of_any + worst[1] - worst[0]
        covered += low <= 0.99 <= high
    assert widths < 0.75 * of_any
    assert covered >= 0.9 * n_trials


@pytest.mark.parametrize("area", [0.6, 0.8, 0.9, 0.99])
def test_of_many_rows_the_interval_is_delongs(area: float) -> None:
    y, scores = two_classes(np.random.default_rng(1), 5_000, 5_000, math.sqrt(2) * norm.ppf(area))
    value, low, high = auc_interval(y, scores)
    reach = norm.ppf(0.975) * math.sqrt(variance(y, scores))
    assert low == pytest.approx(value - reach, abs=0.15 * reach)
    assert high == pytest.approx(value + reach, abs=0.15 * reach)


@given(rankings(), windows)
def test_a_higher_level_is_wider(
    ranking: tuple[np.ndarray, np.ndarray, None], window: tuple[float, float]
) -> None:
    y, scores, _ = ranking
    every = [partial_auc_interval(y, scores, *window, level=level) for level in (0.5, 0.9, 0.99)]
    for inner, outer in pairwise(every):
        assert outer.low <= inner.low
        assert outer.high >= inner.high


@given(rankings(weighted=True), windows)
def test_an_interval_holds_its_value_and_is_never_nothing(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], window: tuple[float, float]
) -> None:
    y, scores, weights = ranking
    for interval, value in (
        (auc_interval(y, scores, sample_weight=weights), auc(y, scores, weights)),
        (
            partial_auc_interval(y, scores, *window, sample_weight=weights),
            partial_auc(y, scores, *window, sample_weight=weights),
        ),
    ):
        assert interval.value == value
        assert 0.0 <= interval.low <= value <= interval.high <= 1.0
        assert interval.high - interval.low > 1e-6


# --- where the sample cannot show its variance ----------------------------------------------------


def test_a_perfect_ranking_gets_wilsons_interval_for_the_smaller_class() -> None:
    y = np.repeat([1, 0], [50, 90])
    interval = auc_interval(y, y.astype(float))
    assert interval == wilson_interval(1.0, 50)
    assert interval.low == pytest.approx(0.929, abs=5e-4)
    assert auc_interval(y, -y.astype(float)) == wilson_interval(0.0, 50)


def test_a_window_counts_its_own_share_of_the_negatives() -> None:
    y = np.repeat([1, 0], [50, 100])
    assert partial_auc_interval(y, y.astype(float), 0, 0.2) == wilson_interval(1.0, 20)


@pytest.mark.parametrize("lone", [0, 1])
def test_one_row_of_a_class_shows_no_variance(lone: int) -> None:
    y = np.full(20, 1 - lone)
    y[7] = lone
    scores = np.arange(20.0)
    interval = auc_interval(y, scores)
    assert interval == wilson_interval(auc(y, scores), 1)
    assert interval.high - interval.low > 0.7


# --- coverage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [None, 0])
@pytest.mark.parametrize("window", [(0.0, 1.0), (0.0, 0.2), (0.1, 0.3)])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_the_analytic_interval_covers_as_often_as_it_says(
    digits: int | None, window: tuple[float, float], level: float
) -> None:
    rng = np.random.default_rng(20)
    truth, n_trials = binormal_area(1.2, window, digits), 800 if LONG_FORM else 60
    covered = 0
    for _ in range(n_trials):
        y, scores = two_classes(rng, 80, 200, 1.2, digits)
        interval = partial_auc_interval(y, scores, *window, level=level)
        covered += interval.low <= truth <= interval.high
    # Three standard errors of the simulation and one point for the asymptotics.
    allowed = 3 * math.sqrt(level * (1 - level) / n_trials) + 0.01
    assert covered / n_trials == pytest.approx(level, abs=allowed)


@long_form
@pytest.mark.parametrize(
    ("n_positive", "n_negative", "n_trials"),
    [
        (12, 18, 800),
        (3_000, 7_000, 200),
    ],
)
def test_it_does_so_for_few_rows_and_for_many(
    n_positive: int, n_negative: int, n_trials: int
) -> None:
    rng = np.random.default_rng(22)
    windows, covered = [(0.0, 1.0), (0.0, 0.3)], np.zeros(2)
    truth = [binormal_area(1.2, window) for window in windows]
    for _ in range(n_trials):
        y, scores = two_classes(rng, n_positive, n_negative, 1.2)
        for j, window in enumerate(windows):
            interval = partial_auc_interval(y, scores, *window)
            covered[j] += interval.low <= truth[j] <= interval.high
    allowed = 3 * math.sqrt(0.05 * 0.95 / n_trials) + 0.01
    assert np.all(covered / n_trials >= 0.95 - allowed)


@pytest.mark.parametrize(
    ("n_positive", "n_negative", "area", "window"),
    [
        (20, 2_000, 0.99, (0.0, 1.0)),
        (50, 2_000, 0.995, (0.0, 1.0)),
        (2_000, 20, 0.9, (0.0, 0.05)),
        (500, 20, 0.99, (0.0, 0.1)),
    ],
)
@pytest.mark.parametrize("digits", [None, 0])
def test_it_covers_near_1_and_with_few_negatives_in_the_window(
    n_positive: int,
    n_negative: int,
    area: float,
    window: tuple[float, float],
    digits: int | None,
) -> None:
    rng, distance = np.random.default_rng(23), math.sqrt(2) * norm.ppf(area)
    truth, n_trials = binormal_area(distance, window, digits), 150 if LONG_FORM else 50
    covered = 0
    for _ in range(n_trials):
        y, scores = two_classes(rng, n_positive, n_negative, distance, digits)
        interval = partial_auc_interval(y, scores, *window)
        covered += interval.low <= truth <= interval.high
    assert covered / n_trials >= 0.95 - 3.2 * math.sqrt(0.05 * 0.95 / n_trials)


@long_form
@pytest.mark.parametrize("area", [0.8, 0.95])
def test_it_covers_with_very_unequal_weights(area: float) -> None:
    rng, distance, covered = np.random.default_rng(24), math.sqrt(2) * norm.ppf(area), 0
    for _ in range(200):
        y, scores = two_classes(rng, 50, 100, distance)
        interval = auc_interval(y, scores, sample_weight=rng.lognormal(sigma=2.0, size=y.size))
        covered += interval.low <= area <= interval.high
    assert covered / 200 >= 0.91


def test_a_weighted_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(21)
    truth, n_trials = binormal_area(1.2, (0.0, 0.3)), 800 if LONG_FORM else 60
    covered = 0
    for _ in range(n_trials):
        y, scores = two_classes(rng, 150, 300, 1.2)
        weights = rng.exponential(size=y.size)
        interval = partial_auc_interval(y, scores, 0, 0.3, sample_weight=weights)
        covered += interval.low <= truth <= interval.high
    assert covered / n_trials == pytest.approx(
        0.95, abs=3 * math.sqrt(0.05 * 0.95 / n_trials) + 0.01
    )


# --- where an interval may miss --------------------------------------------------------------------


def test_an_interval_that_the_rows_cannot_bear_is_named_with_the_rows_it_needs() -> None:
    near = Interval(0.985, 0.9, 1.0)
    (words,) = area_warnings([WHOLE], [near], (30, 2_000), (30.0, 2_000.0))
    assert "AUC" in words
    assert "30 positives" in words
    assert "267 positives" in words  # four of them out of order
    assert area_warnings([WHOLE], [near], (267, 2_000), (267.0, 2_000.0)) == []
    (words,) = area_warnings([WHOLE], [near], (60, 2_000), (30.0, 2_000.0))
    assert "30.0 independent" in words
    assert "534 positives" in words
    # More than ten times as many are not named: near 1 the number says nothing.
    (words,) = area_warnings([WHOLE], [near], (20, 2_000), (20.0, 2_000.0))
    assert "267" not in words
    assert "10 times" in words


def test_the_negatives_of_a_window_are_named() -> None:
    wide = Interval(0.5, 0.05, 0.95)
    (words,) = area_warnings([(0.0, 0.05)], [wide], (2_000, 20), (2_000.0, 20.0))
    assert "FPR 0 to 0.05" in words
    assert "160 negatives" in words
    assert area_warnings([(0.0, 0.05)], [wide], (2_000, 160), (2_000.0, 160.0)) == []


def test_an_interval_that_may_be_too_narrow_says_so_itself(sentences: Sentences) -> None:
    """As the service does, which has them in its responses."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [200, 20_000])
    scores = rng.normal(size=y.size) + 3.7 * y
    scores[200:800] = 100.0
    with sentences.warns() as said:
        found = auc_interval(y, scores)
    (words,) = area_warnings([WHOLE], [found], (200, 20_000), (200.0, 20_000.0))
    assert [str(each.message) for each in said] == [words]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        auc_interval(y[:2_000], rng.normal(size=2_000) + y[:2_000])


def test_a_kind_of_positives_that_the_sample_lacks_is_warned_of() -> None:
    # 3 % of the negatives are above all positives, and one positive in 200 is below all rows: in two samples of five
    # there is none of these, and the interval shows the negatives' variance alone.
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [200, 5_000])
    truth, n_trials = 0.995 * 0.97, 60
    missed = unwarned = 0
    for _ in range(n_trials):
        scores = np.where(y == 1, 12.0, 0.0) + rng.normal(size=y.size)
        scores[(y == 0) & (rng.random(y.size) < 0.03)] = 50.0
        scores[(y == 1) & (rng.random(y.size) < 0.005)] = -50.0
        area = auc_interval(y, scores)
        if not area.low <= truth <= area.high:
            missed += 1
            unwarned += not area_warnings([WHOLE], [area], (200, 5_000), (200.0, 5_000.0))
    assert missed > 5
    assert unwarned <= 4


# --- Wilson ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_wilson_solves_its_equation(share: float) -> None:
    value, low, high = wilson_interval(share, 10, 0.9)
    assert value == share
    for end in {low, high} - {share}:
        assert abs(share - end) == pytest.approx(norm.ppf(0.95) * math.sqrt(end * (1 - end) / 10))


def test_wilson_published_example() -> None:
    # Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I, method 3.
    assert wilson_interval(81 / 263, 263)[1:] == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0.0, 20)[1:] == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson_interval(1 / 29, 29)[1:] == pytest.approx((0.0061, 0.1718), abs=5e-5)


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, float("nan"), "0.95", True, None])
def test_a_level_lies_strictly_between_0_and_1(level: Any, sentences: Sentences) -> None:
    for call in (
        lambda: auc_interval([0, 1], [0, 1], level),
        lambda: partial_auc_interval([0, 1], [0, 1], level=level),
        lambda: wilson_interval(0.5, 10, level),
    ):
        with sentences.raises(InvalidParameter):
            call()


@pytest.mark.parametrize(
    ("value", "n"), [(-0.1, 5), (1.1, 5), (float("nan"), 5), (0.5, 0), (0.5, math.inf)]
)
def test_wilson_refuses_what_is_no_share_of_trials(value: float, n: float) -> None:
    with raises(InvalidParameter, "value" if n == 5 else "n"):
        wilson_interval(value, n)


@given(rankings(weighted=True, max_rows=12))
def test_the_interval_of_reversed_scores_is_the_mirrored_one(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    y, scores, weights = ranking
    value, low, high = auc_interval(y, scores, sample_weight=weights / 7.0)
    mirrored = auc_interval(y, -scores, sample_weight=weights / 7.0)
    assert tuple(mirrored) == pytest.approx((1.0 - value, 1.0 - high, 1.0 - low), abs=1e-9)


def test_of_few_rows_the_interval_of_one_half_reaches_as_far_to_both_sides() -> None:
    for weight in (1.0, 1.0 / 7.0, 3.0):
        weights = np.full(4, weight)
        value, low, high = auc_interval([1, 0, 0, 1], [4.0, 3.0, 2.0, 1.0], sample_weight=weights)
        assert value == pytest.approx(0.5)
        assert (low, high) == (0.0, 1.0)


def test_an_empty_window_has_no_number_of_rows_that_is_enough() -> None:
    words = missing_test_warning("a metric", (20.0, 0.0), (20.0, 50.0))
    assert words is not None
    assert "there are 0" in words
    assert "About" not in words
