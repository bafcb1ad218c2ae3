"""Permutation importances: features that matter are found, and others have none."""

import numpy as np
import pytest

from core import RankBoost
from core.explain import mean_absolute, permutation_importance
from core.metrics import auc


def test_mean_absolute_by_hand() -> None:
    parts = np.array([[1.0, -2.0], [-3.0, 0.0]])
    assert mean_absolute(parts, np.ones(2)).tolist() == [2.0, 1.0]
    assert mean_absolute(parts, np.array([3.0, 1.0])).tolist() == [1.5, 1.5]
    by_label = np.stack([parts, 2 * parts], axis=2)
    assert mean_absolute(by_label, np.ones(2)).tolist() == [[2.0, 4.0], [1.0, 2.0]]


def planted(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (2 * X[:, 1] - X[:, 3] + rng.normal(size=n) > 0).astype(int)


def test_the_planted_features_matter_in_their_order() -> None:
    ranker = RankBoost(n_rounds=50).fit(*planted(1000, 0))
    X, y = planted(1000, 1)
    losses = permutation_importance(ranker.score_rows, X, y)
    assert np.argsort(-losses)[:2].tolist() == [1, 3]
    assert losses[1] > 0.2
    assert losses[3] > 0.05
    assert np.abs(losses[[0, 2]]).max() < 0.02
    sizes = mean_absolute(ranker.contributions(X), np.ones(1000))
    assert np.argsort(-sizes)[:2].tolist() == [1, 3]


def test_a_feature_that_the_score_is_made_of_loses_all_and_another_nothing() -> None:
    X, y = planted(400, 2)
    losses = permutation_importance(lambda rows: rows[:, 1], X, y, n_repeats=20)
    assert losses[1] == pytest.approx(auc(y, X[:, 1]) - 0.5, abs=0.03)
    assert losses[[0, 2, 3]].tolist() == [0.0, 0.0, 0.0]
