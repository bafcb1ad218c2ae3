"""Metrics by the share of positives among missing outcomes: by weighted pairs, and by the equation of the level."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from core.monitoring.missing import SHARES, auc_by_share, level_by_share, unchanged_shares


def rows(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores with ties, outcomes, of which a third is not known, and the side of each row."""
    rng = np.random.default_rng(0)
    positive, flag = rng.random(n) < 0.3, rng.random(n) < 0.4
    score = np.round(rng.normal(size=n) + positive, 1)
    return score, positive, rng.random(n) < np.where(flag, 0.9, 0.5), flag


def test_at_the_ends_all_missing_outcomes_are_of_one_class() -> None:
    score, positive, known, flag = rows()
    found = auc_by_share(score, positive, known, flag, np.ones(flag.size, np.bool_))
    assert found is not None
    for value, label in ((found[0], False), (found[-1], True)):
        assert value == pytest.approx(roc_auc_score(np.where(known, positive, label), score))


def test_outcomes_of_an_unchanged_side_are_as_often_positive_as_known_ones() -> None:
    score, positive, known, flag = rows(20_000)
    found = auc_by_share(score, positive, known, flag, flag)
    assert found is not None
    at = SHARES.searchsorted(positive[flag].mean())
    assert found[at] == pytest.approx(roc_auc_score(positive, score), abs=0.005)


def test_a_missing_row_is_no_pair_with_itself() -> None:
    score, positive = np.array([1.0, 2.0, 3.0]), np.array([False, False, True])
    known = np.array([True, False, True])
    found = auc_by_share(score, positive, known, known & False, ~known)
    assert found is not None
    assert found == pytest.approx(np.ones(SHARES.size))


@pytest.mark.parametrize("has_cutoff", [False, True])
def test_missing_outcomes_of_high_scores_explain_a_fall_and_a_few_at_random_do_not(
    has_cutoff: bool,
) -> None:
    rng = np.random.default_rng(1)
    score = rng.normal(size=20_000)
    flag = (score > 1.6) & has_cutoff
    positive = rng.random(score.size) < 1 / (1 + np.exp(2.6 - 1.5 * score))
    less = rng.random(score.size) < 1 / (1 + np.exp(2.6 - 0.7 * score))
    whole = roc_auc_score(positive, score)
    for label, is_missing, explains in (
        (
            positive,
            positive & (rng.random(score.size) < np.clip(0.3 * (score - 0.2), 0, 0.8)),
            True,
        ),
        (positive, (score > 1.0) & (rng.random(score.size) < 0.7), True),
        (less, rng.random(score.size) < 0.05, False),
        (less, rng.random(score.size) < 0.2, False),
    ):
        known = ~is_missing
        assert roc_auc_score(label[known], score[known]) < whole - 0.03
        found = auc_by_share(score, label, known, flag, ~known)
        assert found is not None
        assert (unchanged_shares(found, whole - 0.02, 1.0) is not None) is explains


def test_a_side_may_lack_a_class_if_its_outcomes_are_known() -> None:
    score, positive, known, flag = rows()
    known |= flag
    positive &= ~flag
    everything = np.ones(flag.size, np.bool_)
    found = auc_by_share(score, positive, known, flag, ~flag)
    assert found is not None
    assert 0.5 < found.min() < found.max() < 1
    known[np.flatnonzero(flag)[0]] = False  # of which class it may be, its side does not say
    assert auc_by_share(score, positive, known, flag, ~flag) is None
    assert auc_by_share(score, ~everything, everything, flag, everything) is None


def test_at_the_level_as_many_positives_are_expected_as_there_are() -> None:
    odds, positive, known, flag = rows()
    odds -= 1.0
    weight = np.random.default_rng(1).uniform(0.5, 2.0, odds.size)
    found = level_by_share(odds, positive, known, flag, weight)
    used = known | flag
    for share, level in zip(SHARES, found, strict=True):
        expected = (weight[used] / (1 + np.exp(-odds[used] - level))).sum()
        positives = weight[positive & known].sum() + share * weight[flag & ~known].sum()
        assert expected == pytest.approx(positives, rel=1e-3)


def test_the_level_without_a_positive_is_finite() -> None:
    odds = np.array([-1.0, 0.0, 1.0])
    known = np.array([True, True, False])
    low, *_, high = level_by_share(odds, ~known, known, ~known, np.ones(3))
    assert -72 < low < -12
    assert -2 < high < 0.5
    assert 12 < level_by_share(odds, known, known, ~known, np.ones(3))[-1] < 72


def test_the_shares_at_which_a_metric_is_within_limits() -> None:
    assert unchanged_shares(2 * SHARES, 0.5, 1.5) == pytest.approx((0.25, 0.75))
    assert unchanged_shares(1 - SHARES, 0.0, 0.25) == pytest.approx((0.75, 1.0))
    assert unchanged_shares(SHARES, 1.5, 2.0) is None
