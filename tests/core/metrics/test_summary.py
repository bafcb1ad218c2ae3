"""The summary equals the single metrics, from one sort."""

import numpy as np
import pytest
from hypothesis import given

from core.metrics import (
    ClassTotals,
    auc_interval,
    misrank_fraction,
    operating_point,
    partial_auc_interval,
    roc_curve,
    summarise,
)
from tests.core.metrics.naive import pair_auc, rankings

WINDOWS = [(0.0, 0.05), (0.1, 0.4)]


@given(rankings(weighted=True))
def test_each_part_is_the_single_metric(ranking: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    y, scores, weights = ranking
    summary = summarise(y, scores, weights, WINDOWS, 0.9)
    assert summary.auc == auc_interval(y, scores, 0.9, sample_weight=weights)
    assert summary.misrank_fraction == misrank_fraction(y, scores, weights)
    for (low, high), area in zip(WINDOWS, summary.partial_aucs, strict=True):
        interval = partial_auc_interval(y, scores, low, high, level=0.9, sample_weight=weights)
        assert area == (low, high, interval)
    curve = roc_curve(y, scores, weights)
    np.testing.assert_array_equal(summary.curve.fpr, curve.fpr)
    np.testing.assert_array_equal(summary.curve.tpr, curve.tpr)
    np.testing.assert_array_equal(summary.curve.thresholds, curve.thresholds)
    assert summary.level == 0.9


@given(rankings(weighted=True))
def test_ties_are_the_difference_between_auc_and_misranks(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    y, scores, weights = ranking
    summary = summarise(y, scores, weights)
    tied = pair_auc(y, scores, weights, tie=1) - pair_auc(y, scores, weights, tie=0)
    assert summary.ties == pytest.approx(tied, abs=1e-14)
    assert summary.auc.value == pytest.approx(1 - summary.misrank_fraction + summary.ties / 2)


def test_counts_are_rows_that_carry_weight_and_totals_are_weights() -> None:
    summary = summarise([1, 1, 0, 0, 0, 1], [6, 5, 4, 3, 2, 1], [1, 3, 2, 2, 2, 0])
    assert (summary.positives, summary.negatives) == (2, 3)
    assert summary.totals == ClassTotals(4.0, 6.0, 1.6, 3.0)
    assert summary.totals.prevalence == 0.4


def test_rows_that_come_twice_in_one_group_tell_no_more_than_once() -> None:
    rng = np.random.default_rng(3)
    y, scores = np.repeat([1, 0], [30, 50]), rng.normal(size=80).round(1)
    scores[y == 1] += 1
    windows = [(0.0, 0.1), (0.3, 0.6)]
    once = summarise(y, scores, windows=windows, group=np.arange(80))
    thrice = summarise(np.repeat(y, 3), np.repeat(scores, 3), windows=windows)
    together = summarise(
        np.repeat(y, 3),
        np.repeat(scores, 3),
        windows=windows,
        group=np.repeat(np.arange(80), 3),
    )
    np.testing.assert_allclose(together.auc, once.auc)
    for ours, theirs in zip(together.partial_aucs, once.partial_aucs, strict=True):
        np.testing.assert_allclose(ours.interval, theirs.interval)
    assert together.totals == ClassTotals(90.0, 150.0, 30.0, 50.0)
    assert thrice.auc.high - thrice.auc.low < 0.7 * (together.auc.high - together.auc.low)
    at = {"fpr": 0.2, "group": np.repeat(np.arange(80), 3)}
    point = operating_point(*(np.repeat(values, 3) for values in (y, scores)), **at)
    assert point.tpr_at_fpr == operating_point(y, scores, fpr=0.2).tpr_at_fpr
