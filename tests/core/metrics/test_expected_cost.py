"""Costs of errors: the cheapest cut is the cheapest of all, and the intervals hold what they say."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from core.errors import InvalidParameter
from core.metrics import (
    ClassTotals,
    Costs,
    operating_point,
    operating_point_on_curve,
    roc_curve,
    wilson_interval,
)
from tests.core.metrics.naive import rankings, roc_points
from tests.long_form import LONG_FORM
from tests.raising import raises

prices = st.sampled_from([0.0, 1.0, 3.0, 50.0])
shares = st.none() | st.floats(0.01, 0.99)


@given(rankings(), prices, prices, shares)
def test_no_cut_costs_less(
    ranking: tuple[np.ndarray, np.ndarray, None],
    false_positive: float,
    false_negative: float,
    prevalence: float | None,
) -> None:
    if false_positive == false_negative == 0.0:
        false_positive = 1.0
    y, scores, _ = ranking
    point = operating_point(
        y, scores, costs=Costs(false_positive, false_negative), prevalence=prevalence
    )
    share = np.mean(y) if prevalence is None else prevalence
    assert point.prevalence == pytest.approx(share)
    every = {
        (f, t): false_positive * (1 - share) * f + false_negative * share * (1 - t)
        for f, t, _ in zip(*roc_points(y, scores), strict=True)
    }
    value, low, high = point.cost.a_row
    assert value == pytest.approx(min(every.values()), abs=1e-12)
    assert value == pytest.approx(every[point.fpr.value, point.tpr.value], abs=1e-12)
    assert 0.0 <= low <= value <= high
    assert point.cost.flag_none == pytest.approx(false_negative * share)
    assert point.cost.flag_all == pytest.approx(false_positive * (1 - share))
    assert point.threshold_low <= point.threshold <= point.threshold_high


@pytest.mark.parametrize("costs", [Costs(1, 1), Costs(3, 1), Costs(0.5, 4)], ids=str)
def test_the_cuts_told_are_those_whose_cost_may_be_the_least(costs: Costs) -> None:
    rng = np.random.default_rng(4)
    y = np.repeat([1, 0], [50, 70])
    scores = np.round(rng.normal(size=120) + y, 1)
    share, level = 0.3, 0.8
    point = operating_point(y, scores, costs=costs, prevalence=share, level=level)
    missed, flagged = costs.false_negative * share, costs.false_positive * (1 - share)
    fpr, tpr, cutoffs = roc_points(y, scores)
    p, q = abs(tpr - point.tpr.value), abs(fpr - point.fpr.value)
    variance = missed**2 * p * (1 - p) / 50 + flagged**2 * q * (1 - q) / 70
    above = flagged * fpr + missed * (1 - tpr) - point.cost.a_row.value
    near = np.flatnonzero(above <= norm.ppf((1 + level) / 2) * np.sqrt(variance) + 1e-12)
    assert point.threshold_high == cutoffs[near[0]]
    assert point.threshold_low == cutoffs[near[-1] + 1]


def test_by_hand() -> None:
    # 4 of 10 positives and 1 of 20 negatives above the cut, prevalence 1/3, a miss five times as dear.
    y = np.repeat([1, 0, 1, 0], [4, 1, 6, 19])
    scores = np.repeat([1.0, 0.0], [5, 25])
    point = operating_point(y, scores, threshold=1.0, costs=Costs(1.0, 5.0))
    caught, flagged = wilson_interval(0.4, 10), wilson_interval(0.05, 20)
    value = 2 / 3 * 0.05 + 5 / 3 * 0.6
    low = value - math.hypot(2 / 3 * (0.05 - flagged.low), 5 / 3 * (caught.high - 0.4))
    high = value + math.hypot(2 / 3 * (flagged.high - 0.05), 5 / 3 * (0.4 - caught.low))
    np.testing.assert_allclose(point.cost.a_row, (value, low, high))
    assert (point.threshold_low, point.threshold_high) == (1.0, 1.0)
    # Where only misses cost, all are flagged; where only alarms do, none.
    assert operating_point(y, scores, costs=Costs(0, 1)).tpr.value == 1.0
    assert operating_point(y, scores, costs=Costs(1, 0)).threshold == math.inf


def test_a_prevalence_of_ones_own_moves_precision_and_lift() -> None:
    y = np.repeat([1, 0, 1, 0], [40, 10, 10, 90])
    scores = np.repeat([1.0, 0.0], [50, 100])
    own = operating_point(y, scores, threshold=1.0)
    rare = operating_point(y, scores, threshold=1.0, prevalence=0.01)
    assert rare.precision.value == pytest.approx(0.01 * 0.8 / (0.01 * 0.8 + 0.99 * 0.1))
    np.testing.assert_allclose(rare.lift, np.array(rare.precision) / 0.01)
    # At the sample's own share the two ways to an interval nearly meet.
    same = operating_point(y, scores, threshold=1.0, prevalence=1 / 3)
    np.testing.assert_allclose(same.precision, own.precision, atol=0.03)
    # Nothing wrongly flagged: no likelihood ratio is too great. Nothing rightly: it may be anything from 0 on.
    y, scores = np.repeat([1, 0], 20), np.repeat([1.0, 0.0], 20)
    value, low, high = operating_point(y, scores, threshold=1.0, prevalence=0.01).precision
    assert (value, high) == (1.0, 1.0)
    assert 0.02 < low < 0.1
    value, low, high = operating_point(y, -scores, threshold=0.0, prevalence=0.01).precision
    assert (value, low) == (0.0, 0.0)
    assert 0.0 < high < 0.01
    value, low, high = operating_point(y, scores, threshold=2.0, prevalence=0.01).precision
    assert math.isnan(value)
    assert (low, high) == (0.0, 1.0)


@pytest.mark.parametrize(("n_positive", "n_negative"), [(40, 60), (300, 700)])
def test_coverage(n_positive: int, n_negative: int) -> None:
    """Coverage for the least cost, its threshold, a rate's threshold, and the precision at another prevalence."""
    rng = np.random.default_rng(n_negative)
    costs, share, repeats = Costs(1, 9), 0.1, 400 if LONG_FORM else 60
    grid = np.linspace(-3, 5, 4001)

    def cost(threshold: Any) -> Any:
        return 0.9 * norm.sf(threshold) + 0.9 * norm.cdf(threshold - 1.5)

    best = grid[np.argmin(cost(grid))]
    y = np.repeat([1, 0], [n_positive, n_negative])
    totals = ClassTotals.of_counts(n_positive, n_negative)
    covered = dict.fromkeys(("cost", "best", "threshold", "precision"), 0)
    for _ in range(repeats):
        scores = rng.normal(size=y.size) + 1.5 * y
        curve = roc_curve(y, scores)
        point = operating_point_on_curve(curve, totals, costs=costs, prevalence=share)
        covered["cost"] += point.cost.a_row.low <= cost(best) <= point.cost.a_row.high
        covered["best"] += point.threshold_low < best <= point.threshold_high
        point = operating_point_on_curve(curve, totals, fpr=0.2, prevalence=share)
        covered["threshold"] += point.threshold_low < norm.isf(0.2) <= point.threshold_high
        caught, flagged = norm.sf(point.threshold - 1.5), norm.sf(point.threshold)
        truth = share * caught / (share * caught + (1 - share) * flagged)
        covered["precision"] += point.precision.low <= truth <= point.precision.high
    assert min(covered.values()) / repeats > (0.9 if LONG_FORM else 0.85), covered


@given(rankings(weighted=True), st.sampled_from(["fpr", "tpr"]), st.sampled_from([0.0, 0.3, 1.0]))
def test_at_a_rate_the_curve_is_told_too(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], by: str, rate: float
) -> None:
    y, scores, weights = ranking
    point = operating_point(y, scores, sample_weight=weights, **{by: rate})
    told, silent = ("tpr_at_fpr", "fpr_at_tpr") if by == "fpr" else ("fpr_at_tpr", "tpr_at_fpr")
    value, low, high = getattr(point, told)
    assert 0.0 <= low <= value <= high <= 1.0
    assert getattr(point, silent) is None
    assert point.cost is None
    if by == "fpr":
        assert value == pytest.approx(roc_curve(y, scores, weights).tpr_at(rate))
    assert point.threshold_low <= point.threshold <= point.threshold_high


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Costs(-1, 1), ("positive", -1)),
        (lambda: Costs(1, math.inf), ("negative", "inf")),
        (lambda: Costs(1, math.nan), ("negative", "nan")),
        (lambda: Costs(1e-300, 1), ("positive", 1e-300)),
        (lambda: Costs("1", 1), ("positive", "'1'")),
        (lambda: Costs(True, 1), ("positive", True)),
        (lambda: Costs(0, 0.0), ("positive", "negative", 0)),
        (lambda: point(prevalence=0.0), ("prevalence", 0.0)),
        (lambda: point(prevalence=math.nan), ("prevalence", "nan")),
        (lambda: point(fpr=0.1, costs=Costs(1, 1)), ("fpr", "threshold")),
    ],
)
def test_bad_costs_are_refused(make: Callable[..., Any], named: tuple[object, ...]) -> None:
    with raises(InvalidParameter, *named):
        make()


def point(**options: Any) -> Any:
    return operating_point([0, 1], [0.0, 1.0], threshold=0.5, **options)
