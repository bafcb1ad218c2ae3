"""Operating points against trying every cut, from data and from the stored curve."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from core.errors import InvalidData, InvalidParameter
from core.metrics import (
    ClassTotals,
    Costs,
    cutoffs_along,
    operating_point,
    operating_point_on_curve,
    operating_points_on_curve,
    roc_curve,
    summarise,
    wilson_interval,
)
from tests.core.metrics.naive import rankings, repeat_rows, roc_points
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

rates = st.integers(0, 24).map(lambda k: k / 24) | st.floats(0, 1)


@given(rankings(), rates)
def test_at_an_fpr_no_cut_within_it_is_better(
    ranking: tuple[np.ndarray, np.ndarray, None], fpr: float
) -> None:
    y, scores, _ = ranking
    point = operating_point(y, scores, fpr=fpr)
    cutoffs = [(t, -f) for f, t, _ in zip(*roc_points(y, scores), strict=True) if f <= fpr + 1e-12]
    assert (point.tpr.value, -point.fpr.value) == max(cutoffs)


@given(rankings(), rates)
def test_at_a_tpr_no_cut_that_reaches_it_is_better(
    ranking: tuple[np.ndarray, np.ndarray, None], tpr: float
) -> None:
    y, scores, _ = ranking
    point = operating_point(y, scores, tpr=tpr)
    cutoffs = [(f, -t) for f, t, _ in zip(*roc_points(y, scores), strict=True) if t >= tpr - 1e-12]
    assert (point.fpr.value, -point.tpr.value) == min(cutoffs)


@given(rankings(weighted=True), st.sampled_from(["fpr", "tpr", "threshold"]), rates)
def test_the_threshold_flags_what_the_point_says(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], by: str, value: float
) -> None:
    y, scores, weights = ranking
    point = operating_point(y, scores, sample_weight=weights, **{by: value})
    flagged = scores >= point.threshold
    positive, negative = weights * (y == 1), weights * (y == 0)
    assert point.tpr.value == pytest.approx(positive[flagged].sum() / positive.sum())
    assert point.fpr.value == pytest.approx(negative[flagged].sum() / negative.sum())
    if flagged.any():
        precision = positive[flagged].sum() / weights[flagged].sum()
        assert point.precision.value == pytest.approx(precision)
        assert point.lift.value == pytest.approx(precision * weights.sum() / positive.sum())
    else:
        assert math.isnan(point.precision.value)
        assert math.isnan(point.lift.value)
        assert point.precision[1:] == (0.0, 1.0)


@given(rankings(weighted=True), rates, st.none() | st.floats(0.01, 0.99))
def test_the_best_cut_that_flags_at_most_a_share_of_the_rows(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], share: float, prevalence: float | None
) -> None:
    """Of those that flag no more: the last, or with costs the cheapest of all thresholds, if it flags fewer."""
    y, scores, weights = ranking
    summary = summarise(y, scores, weights)
    costs = Costs(1.0, 3.0)
    every = operating_points_on_curve(
        summary.curve,
        summary.totals,
        range(len(summary.curve)),
        costs=costs,
        prevalence=prevalence,
    )
    within = [point for point in every if point.flagged.value <= share + 1e-12]
    asked: dict[str, Any] = {"flagged": share, "prevalence": prevalence, "sample_weight": weights}
    point = operating_point(y, scores, **asked)
    assert point.threshold == point.threshold_low == point.threshold_high == within[-1].threshold
    cheapest = operating_point(y, scores, costs=costs, **asked)
    best = operating_point(y, scores, **{**asked, "flagged": None}, costs=costs)
    fits = best.threshold in [each.threshold for each in within]
    assert cheapest.threshold == (best if fits else within[-1]).threshold


def test_a_capacity_below_the_cheapest_cut_is_used_up() -> None:
    """Of the rows 239 to 300 none is positive in this sample, but flagging up to row 400 pays."""
    y = np.zeros(1000, int)
    y[:238:2] = 1
    y[300:400] = 1
    scores = -np.arange(1000.0)
    costs = Costs(false_positive=1.0, false_negative=4.0)
    assert operating_point(y, scores, costs=costs).threshold == -399.0
    for share, last in ((0.3, 299), (0.35, 349), (0.4, 399), (0.9, 399)):
        assert operating_point(y, scores, costs=costs, flagged=share).threshold == -last


def test_equal_rates_gain_nothing() -> None:
    """Also where their sums are rounded differently: a seventh of the weight of each class is flagged."""
    y, weights = np.repeat([0, 1, 0, 1], 7), np.repeat([0.1, 0.3, 0.6, 1.8], 7)
    scores = np.repeat([1.0, 1.0, 0.0, 0.0], 7)
    costs = Costs(1.0, 3.0)
    asked: dict[str, Any] = {"costs": costs, "sample_weight": weights}
    for threshold in (1.0, 0.0):
        cost = operating_point(y, scores, threshold=threshold, **asked).cost
        assert cost is not None
        assert cost.saved_to_random.value == 0.0


def test_a_literal_rate_finds_its_own_point() -> None:
    # 7 of 100 negatives above the threshold: FPR 0.07 must find that cut and not the one before.
    y = np.repeat([0, 1, 0], [7, 50, 93])
    scores = np.concatenate([np.full(7, 3.0), np.full(50, 2.5), np.arange(93) / 100])
    point = operating_point(y, scores, fpr=0.07)
    assert (point.threshold, point.fpr.value, point.tpr.value) == (2.5, 0.07, 1.0)


@given(rankings(weighted=True), st.sampled_from(["fpr", "tpr", "threshold"]), rates)
def test_the_curve_and_the_totals_are_enough(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], by: str, value: float
) -> None:
    y, scores, weights = ranking
    summary = summarise(y, scores, weights)
    from_curve = operating_point_on_curve(summary.curve, summary.totals, **{by: value})
    assert repr(from_curve) == repr(
        operating_point(y, scores, sample_weight=weights, **{by: value})
    )


@given(rankings(weighted=True), rates)
def test_a_weight_counts_as_so_many_rows_in_the_values(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], fpr: float
) -> None:
    y, scores, weights = ranking
    weighted = operating_point(y, scores, fpr=fpr, sample_weight=weights)
    repeated = operating_point(*repeat_rows(y, scores, weights), fpr=fpr)
    assert weighted.threshold == repeated.threshold
    for name in ("fpr", "tpr", "precision", "lift"):
        ours, theirs = getattr(weighted, name).value, getattr(repeated, name).value
        assert ours == pytest.approx(theirs, nan_ok=True)


def test_intervals_are_wilsons_on_the_counts() -> None:
    y = np.repeat([1, 0, 1, 0], [30, 10, 20, 40])
    scores = np.repeat([1.0, 0.0], [40, 60])
    point = operating_point(y, scores, threshold=1.0, level=0.9)
    assert point.tpr == wilson_interval(0.6, 50, 0.9)
    assert point.fpr == wilson_interval(0.2, 50, 0.9)
    np.testing.assert_allclose(point.precision, wilson_interval(0.75, 40, 0.9))


@pytest.mark.parametrize(("share", "distance", "cutoff"), [(0.3, 2.9, 2.4), (0.3, 1.2, -0.5)])
def test_the_lift_covers_in_new_samples_whose_prevalence_varies(
    share: float, distance: float, cutoff: float
) -> None:
    """With the prevalence as known it would cover 36 and 100 %."""
    rng, draws = np.random.default_rng(3), 400 if LONG_FORM else 100
    tpr, fpr = norm.sf(cutoff - distance), norm.sf(cutoff)
    truth = tpr / (share * tpr + (1.0 - share) * fpr)
    covered = 0
    for _ in range(draws):
        y = rng.random(500) < share
        scores = rng.normal(size=500) + distance * y
        lift = operating_point(y, scores, threshold=cutoff).lift
        covered += lift.low <= truth <= lift.high
    assert binom.ppf(0.001, draws, 0.95) <= covered <= binom.ppf(0.999, draws, 0.95)


def test_the_lift_has_an_interval_at_every_threshold() -> None:
    y, scores = np.repeat([1, 0], [5, 20]), np.r_[np.arange(5.0), np.arange(-20.0, 0.0)]
    for threshold in (math.inf, 3.5, 2.0, 0.0, -3.0, -math.inf):
        value, low, high = operating_point(y, scores, threshold=threshold).lift
        assert math.isnan(value) or 0.0 <= low <= value <= high < math.inf
    missed = operating_point(y, -scores, threshold=19.0).lift
    assert (missed.value, missed.low) == (0.0, 0.0)
    assert 0.0 < missed.high < 5.0


def test_weights_of_any_size_have_intervals() -> None:
    rng = np.random.default_rng(0)
    for trial in range(60):
        n = int(rng.integers(4, 12))
        y, scores = np.r_[0, 1, rng.integers(0, 2, n - 2)], rng.normal(size=n).round(trial % 2)
        powers = rng.integers(-100, 101, n)
        weights = 10.0 ** (powers if trial % 3 else np.where(y == 1, powers[0], powers[1]))
        for threshold in np.unique(scores):
            point = operating_point(y, scores, threshold=threshold, sample_weight=weights)
            for name in ("precision", "lift", "flagged"):
                value, low, high = getattr(point, name)
                assert low <= value <= high, (name, trial)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, ("fpr", "tpr", "threshold", "flagged")),
        ({"fpr": 0.1, "tpr": 0.2}, ("fpr", "tpr", "threshold", "flagged")),
        ({"fpr": 1.5}, ("fpr", 1.5)),
        ({"tpr": -0.5}, ("tpr", -0.5)),
        ({"tpr": float("nan")}, ("tpr", "nan")),
        ({"threshold": float("nan")}, ("threshold", "nan")),
        ({"fpr": 0.1, "flagged": 0.2}, ("fpr", "tpr", "threshold", "flagged")),
        ({"flagged": 1.5}, ("flagged", 1.5)),
        ({"flagged": float("nan")}, ("flagged", "nan")),
        ({"threshold": "high"}, ("threshold", "'high'")),
        ({"fpr": 0.1, "level": 2}, ("level", 2)),
    ],
)
def test_bad_requests_are_refused(options: Any, named: tuple[str, ...]) -> None:
    y, scores = [0, 1], [0.0, 1.0]
    with raises(InvalidParameter, *named):
        operating_point(y, scores, **options)
    with raises(InvalidParameter, *named):
        operating_point_on_curve(roc_curve(y, scores), ClassTotals.of_counts(1, 1), **options)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_totals_must_be_positive(value: float, sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        ClassTotals(1.0, value, 1.0, 1.0)


@given(rankings(weighted=True), st.none() | st.floats(0.01, 0.99))
def test_many_cuts_at_once_are_the_single_ones(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], prevalence: float | None
) -> None:
    y, scores, weights = ranking
    summary = summarise(y, scores, weights)
    terms = {"costs": Costs(1.0, 3.0), "prevalence": prevalence}
    every = cutoffs_along(summary.curve, 1000)
    assert every.tolist() == list(range(len(summary.curve)))
    found = operating_points_on_curve(summary.curve, summary.totals, every, **terms)
    for point, threshold in zip(found, summary.curve.thresholds.tolist(), strict=True):
        single = operating_point_on_curve(
            summary.curve, summary.totals, threshold=threshold, **terms
        )
        assert repr(point) == repr(single)


@given(rankings(weighted=True), rates)
def test_the_flagged_share_is_that_of_the_rows(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], threshold: float
) -> None:
    y, scores, weights = ranking
    point = operating_point(y, scores, sample_weight=weights, threshold=threshold)
    share = weights[scores >= threshold].sum() / weights.sum()
    assert point.flagged.value == pytest.approx(share)
    assert 0.0 <= point.flagged.low <= point.flagged.value <= point.flagged.high <= 1.0
    everything = operating_point(y, scores, threshold=-math.inf, prevalence=0.2)
    assert everything.flagged.value == 1.0
    assert everything.flagged.high == 1.0


def test_the_flagged_share_by_hand() -> None:
    """A tenth of rows to come is positive; MOVER joins Wilson's ends of 4 of 5 and of 1 of 5."""
    y, scores = np.repeat([1, 0], 5), [5.0, 4.0, 3.0, 2.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]
    point = operating_point(y, scores, threshold=1.0, prevalence=0.1)
    caught, flagged = wilson_interval(0.8, 5), wilson_interval(0.2, 5)
    assert point.flagged.value == pytest.approx(0.1 * 0.8 + 0.9 * 0.2)
    reach = math.hypot(0.1 * (0.8 - caught.low), 0.9 * (0.2 - flagged.low))
    assert point.flagged.low == pytest.approx(point.flagged.value - reach)
    reach = math.hypot(0.1 * (caught.high - 0.8), 0.9 * (flagged.high - 0.2))
    assert point.flagged.high == pytest.approx(point.flagged.value + reach)


def test_cuts_along_a_long_curve_have_both_ends_the_top_and_what_is_kept() -> None:
    rng = np.random.default_rng(0)
    y = rng.random(20_000) < 0.3
    curve = roc_curve(y, rng.normal(size=y.size) + y)
    for most in (10, 200):
        cutoffs = cutoffs_along(curve, most, kept=[4321])
        assert most / 2 < cutoffs.size <= most
        assert np.all(np.diff(cutoffs) > 0)
        assert {0, 4321, len(curve) - 1} <= set(cutoffs.tolist())
    length = curve.fpr[cutoffs] + curve.tpr[cutoffs]
    assert np.diff(length).max() <= 2.5 / 100
    # The top thousandth, which is a thousandth of the curve's length or little more, has many.
    assert (curve.fpr[cutoffs] <= 0.001).sum() > 10


def test_bad_points_of_a_curve(sentences: Sentences) -> None:
    summary = summarise([0, 1, 0], [1.0, 2.0, 3.0])
    for points in ([-1], [4], [0.5], [[0]]):
        with sentences.raises(InvalidParameter):
            operating_points_on_curve(summary.curve, summary.totals, points)
    with sentences.raises(InvalidParameter):
        operating_points_on_curve(summary.curve, summary.totals, [0], prevalence=1.0)
    with sentences.raises(InvalidParameter):
        cutoffs_along(summary.curve, 2, kept=[1])
