"""The curve against counting every cut, scikit-learn, and itself after thinning."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidData, InvalidParameter
from core.metrics import RocCurve, roc_curve
from tests.core.metrics.naive import rankings, repeat_rows, roc_points, windows
from tests.sentences import Sentences


def random_ranking(
    n_rows: int, seed: int = 0, digits: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n_rows) < 0.3).astype(int)
    scores = rng.normal(size=n_rows) + y
    return y, scores if digits is None else np.round(scores, digits)


@given(rankings())
def test_points_are_the_rates_of_every_cut(ranking: tuple[np.ndarray, np.ndarray, None]) -> None:
    y, scores, _ = ranking
    curve = roc_curve(y, scores)
    fpr, tpr, cutoffs = roc_points(y, scores)
    np.testing.assert_array_equal(curve.fpr, fpr)
    np.testing.assert_array_equal(curve.tpr, tpr)
    np.testing.assert_array_equal(curve.thresholds, cutoffs)


@given(rankings(weighted=True))
def test_a_weight_counts_as_so_many_rows(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    y, scores, weights = ranking
    weighted, repeated = roc_curve(y, scores, weights), roc_curve(*repeat_rows(y, scores, weights))
    np.testing.assert_array_equal(weighted.fpr, repeated.fpr)
    np.testing.assert_array_equal(weighted.tpr, repeated.tpr)
    np.testing.assert_array_equal(weighted.thresholds, repeated.thresholds)


@given(rankings())
def test_rows_of_weight_zero_are_not_there(ranking: tuple[np.ndarray, np.ndarray, None]) -> None:
    y, scores, _ = ranking
    weights = np.concatenate([np.ones(len(y)), [0.0, 0.0]])
    padded = roc_curve(np.append(y, [0, 1]), np.append(scores, [99.0, -99.0]), weights)
    np.testing.assert_array_equal(padded.thresholds, roc_curve(y, scores).thresholds)


@given(rankings(weighted=True), windows)
def test_dropping_collinear_points_leaves_the_line_and_no_straight_angle(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], window: tuple[float, float]
) -> None:
    y, scores, weights = ranking
    full = roc_curve(y, scores, weights)
    short = roc_curve(y, scores, weights, drop_collinear=True)
    assert short.partial_area(*window) == pytest.approx(full.partial_area(*window), abs=1e-14)
    dx, dy = np.diff(short.fpr), np.diff(short.tpr)
    assert np.all(np.abs(dx[:-1] * dy[1:] - dx[1:] * dy[:-1]) > 1e-6)


def test_dropping_collinear_points_never_loses_the_end() -> None:
    # The last rows weigh nothing next to the others: several points coincide with (1, 1).
    y, scores = [1, 0, 0, 0, 1], [5.0, 4.0, 3.0, 2.0, 1.0]
    for drop in (False, True):
        curve = roc_curve(y, scores, [1, 1, 1e-30, 1e-30, 1e-30], drop_collinear=drop)
        assert (curve.fpr[-1], curve.tpr[-1]) == (1.0, 1.0)
        assert curve.fpr.tolist() == [0.0, 0.0, 1.0]


def test_height_refuses_what_is_no_rate(sentences: Sentences) -> None:
    curve = RocCurve([0, 1], [0, 1], [np.inf, 0])
    for rate in (-0.1, 1.1, np.nan):
        with sentences.raises(InvalidParameter):
            curve.tpr_at(rate)


# --- placing a score ----------------------------------------------------------------------------


@given(rankings(weighted=True), st.floats(-5, 5) | st.integers(-4, 4).map(float))
def test_locate_is_the_rates_of_the_cut_at_the_score(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], score: float
) -> None:
    y, scores, weights = ranking
    curve = roc_curve(y, scores, weights)
    flagged = scores >= score
    fpr = (weights * (y == 0))[flagged].sum() / weights[y == 0].sum()
    tpr = (weights * (y == 1))[flagged].sum() / weights[y == 1].sum()
    assert curve.locate_one(score) == (fpr, tpr)
    located = curve.locate([score, score])
    assert (located[0].tolist(), located[1].tolist()) == ([fpr, fpr], [tpr, tpr])


def test_locate_takes_infinite_scores_and_any_shape() -> None:
    y, scores = random_ranking(50)
    curve = roc_curve(y, scores)
    assert curve.locate_one(np.inf) == (0.0, 0.0)
    assert curve.locate_one(-np.inf) == (1.0, 1.0)
    fpr, tpr = curve.locate(np.full((2, 3), scores.max()))
    assert fpr.shape == tpr.shape == (2, 3)
    assert [type(rate) for rate in curve.locate_one(0.3)] == [float, float]


# --- hull -----------------------------------------------------------------------------------------


def check_hull(curve: RocCurve, hull: RocCurve) -> None:
    slopes_x, slopes_y = np.diff(hull.fpr), np.diff(hull.tpr)
    turns = slopes_x[:-1] * slopes_y[1:] - slopes_x[1:] * slopes_y[:-1]
    assert np.all(turns < 0), "concave, with no straight angle"
    inner = hull.tpr_at(curve.fpr)
    assert np.all(inner >= curve.tpr - 1e-12), "never below the curve"
    assert set(hull.thresholds) <= set(curve.thresholds), "made of the curve's own points"
    assert hull.thresholds[0] == np.inf
    assert hull.thresholds[-1] == curve.thresholds[-1]


@given(rankings(weighted=True))
def test_hull_is_the_least_concave_curve_above(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    y, scores, weights = ranking
    curve = roc_curve(y, scores, weights)
    hull = curve.hull()
    check_hull(curve, hull)
    # Its height is the greatest over all chords between two points of the curve.
    for x in np.linspace(0, 1, 21):
        best = 0.0
        for i in range(len(curve)):
            for j in range(i, len(curve)):
                x0, x1, y0, y1 = curve.fpr[i], curve.fpr[j], curve.tpr[i], curve.tpr[j]
                if x0 <= x <= x1:
                    best = max(best, y1 if x1 == x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0))
        assert float(hull.tpr_at(x)) == pytest.approx(best, abs=1e-12)


@given(rankings(weighted=True))
def test_ks_is_the_greatest_distance_of_the_two_distributions(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    y, scores, weights = ranking
    own = [(scores[y == k], weights[y == k]) for k in (0, 1)]
    below = [
        [weight[values <= cutoff].sum() / weight.sum() for cutoff in scores]
        for values, weight in own
    ]
    greatest = np.abs(np.subtract(*below)).max()
    assert roc_curve(y, scores, weights).ks == pytest.approx(greatest, abs=1e-12)


@pytest.mark.parametrize("digits", [None, 2])
def test_hull_of_many_points(digits: int | None) -> None:
    y, scores = random_ranking(20_000, digits=digits)
    curve = roc_curve(y, scores)
    check_hull(curve, curve.hull())


# --- thinning -------------------------------------------------------------------------------------


@given(rankings(max_rows=40), st.integers(2, 40))
def test_thinning_keeps_to_its_bound(
    ranking: tuple[np.ndarray, np.ndarray, None], max_points: int
) -> None:
    y, scores, _ = ranking
    curve = roc_curve(y, scores + np.arange(len(y)) / 100)
    check_thin(curve, max_points)


@pytest.mark.parametrize("max_points", [2, 3, 5, 20, 100, 1000])
@pytest.mark.parametrize("digits", [None, 2])
def test_thinning_a_long_curve_keeps_to_its_bound(max_points: int, digits: int | None) -> None:
    check_thin(roc_curve(*random_ranking(30_000, digits=digits)), max_points)


def check_thin(curve: RocCurve, max_points: int) -> None:
    thin = curve.thin(max_points)
    hull = curve.hull()
    assert len(thin) <= max_points
    kept = np.isin(curve.thresholds, thin.thresholds)
    assert kept[0]
    assert kept[-1]
    np.testing.assert_array_equal(curve.fpr[kept], thin.fpr)
    hull_kept = np.isin(hull.thresholds, thin.thresholds).sum()
    if len(hull) <= max_points:
        assert hull_kept == len(hull), "every vertex of the hull fits, so every one is kept"
        spacing = 2 / (max_points - len(hull) + 1)
    else:
        spacing = 2 / (max_points - max(2, max_points // 2) + 1)
    if len(curve) <= max_points:
        return
    fpr, tpr = thin.locate(curve.thresholds)
    behind = (curve.fpr - fpr) + (curve.tpr - tpr)
    assert np.all(fpr <= curve.fpr)
    assert np.all(tpr <= curve.tpr)
    assert behind.max() < spacing + 1e-12


@pytest.mark.parametrize("value", [1, 0, -3])
def test_thinning_needs_two_points(value: int, sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter):
        RocCurve([0, 1], [0, 1], [np.inf, 0]).thin(value)


# --- a curve from storage -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fpr", "tpr", "thresholds"),
    [
        ([0, 1], [0, 1, 1], [np.inf, 0]),
        ([[0, 1]], [[0, 1]], [[np.inf, 0]]),
        ([0], [0], [np.inf]),
        ([0.1, 1], [0, 1], [np.inf, 0]),
        ([0, 1], [0, 0.9], [np.inf, 0]),
        ([0, 0.6, 0.5, 1], [0, 0.1, 0.2, 1], [np.inf, 3, 2, 1]),
        ([0, np.nan, 1], [0, 0.1, 1], [np.inf, 1, 0]),
        ([0, 0, 1], [0, 0, 1], [np.inf, 1, 0]),
        ([0, 0.5, 1], [0, 0.5, 1], [np.inf, 1, 1]),
        ([0, 0.5, 1], [0, 0.5, 1], [9.0, 1, 0]),
        ([0, 0.5, 1], [0, 0.5, 1], [np.inf, np.nan, 0]),
    ],
)
def test_a_broken_curve_is_refused(
    fpr: Any, tpr: Any, thresholds: Any, sentences: Sentences
) -> None:
    with sentences.raises(InvalidData):
        RocCurve(np.array(fpr), np.array(tpr), np.array(thresholds))


def test_a_curve_is_read_only_and_leaves_the_callers_arrays_alone() -> None:
    fpr = np.array([0.0, 1.0])
    curve = RocCurve(fpr, [0, 1], [np.inf, 0])
    assert not curve.fpr.flags.writeable
    assert fpr.flags.writeable
