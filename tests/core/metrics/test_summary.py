"""The summary is what the single metrics say, from one sort."""

import numpy as np
import pytest
from hypothesis import given
from pair_reference import pair_auc, rankings

from core.errors import InvalidParameter
from core.metrics import (
    ClassTotals,
    auc_interval,
    misrank_fraction,
    partial_auc_interval,
    roc_curve,
    summarise,
)

WINDOWS = [(0.0, 0.05), (0.1, 0.4)]


@given(rankings(weighted=True))
def test_each_part_is_the_single_metric(ranking):
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
def test_ties_are_the_difference_between_auc_and_misranks(ranking):
    y, scores, weights = ranking
    summary = summarise(y, scores, weights)
    tied = pair_auc(y, scores, weights, tie=1) - pair_auc(y, scores, weights, tie=0)
    assert summary.ties == pytest.approx(tied, abs=1e-14)
    assert summary.auc.value == pytest.approx(1 - summary.misrank_fraction + summary.ties / 2)


def test_counts_are_rows_that_carry_weight_and_totals_are_weights():
    summary = summarise([1, 1, 0, 0, 0, 1], [6, 5, 4, 3, 2, 1], [1, 3, 2, 2, 2, 0])
    assert (summary.positives, summary.negatives) == (2, 3)
    assert summary.totals == ClassTotals(4.0, 6.0, 1.6, 3.0)
    assert summary.totals.prevalence == 0.4


def test_no_windows_no_partial_areas():
    assert summarise([0, 1], [0, 1], windows=[]).partial_aucs == ()


def test_a_bad_level_is_refused():
    with pytest.raises(InvalidParameter, match="level"):
        summarise([0, 1], [0, 1], level=0)
