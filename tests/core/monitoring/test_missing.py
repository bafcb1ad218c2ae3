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


@pytest.mark.parametrize("sides", [(False,), (True,), (False, True)])
def test_the_auc_is_that_of_weighted_known_rows(sides: tuple[bool, ...]) -> None:
    score, positive, known, flag = rows()
    changed = np.isin(flag, sides)
    found = auc_by_share(score, positive, known, flag, changed)
    assert found is not None
    for share, value in zip(SHARES, found, strict=True):
        weight = np.zeros(score.size)
        for side in (False, True):
            known_positive = known & (flag == side) & positive
            known_negative = known & (flag == side) & ~positive
            n_missing = (~known & (flag == side)).sum()
            of_known = known_positive.sum() / (known & (flag == side)).sum()
            part = share if side in sides else of_known
            for rows_of_class, extra in ((known_positive, part), (known_negative, 1 - part)):
                weight[rows_of_class] = 1 + n_missing * extra / rows_of_class.sum()
        assert value == pytest.approx(
            roc_auc_score(positive[known], score[known], sample_weight=weight[known])
        )


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
