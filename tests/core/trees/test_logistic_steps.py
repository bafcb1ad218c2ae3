"""Steps of LogitBoost: no round raises the loss, however rare a class is and however unequal the weights are."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import LogitBoost
from core.metrics import auc


def draw_rare(
    n: int, n_positives: int, seed: int, spread: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with so many positives, where the sum of two columns and noise is greatest; weights of e^(± spread)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    signal = X[:, 0] + X[:, 1] + 0.5 * rng.logistic(size=n)
    y = np.zeros(n, dtype=bool)
    y[np.argsort(signal)[-n_positives:]] = True
    return X, y, np.exp(rng.uniform(-spread, spread, n))


def losses_of(ranker: LogitBoost, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The logistic loss before the first round and after each."""
    start = np.log(weight[y].sum() / weight[~y].sum())
    margins = np.where(y, start, -start)
    return np.append((weight * np.logaddexp(0.0, -margins)).sum(), ranker.loss_)


@settings(deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_positives=st.sampled_from([1, 2, 5, 40]),
    spread=st.sampled_from([0.0, 3.0, 20.0]),
    learning_rate=st.sampled_from([0.1, 0.4, 1.0]),
    min_samples_leaf=st.sampled_from([0.0, 1.0, 5.0]),
    smoothing=st.sampled_from([0.0, 1.0]),
    subsample=st.sampled_from([0.5, 1.0]),
    monotone=st.sampled_from(
        [None, {0: "increasing"}, {0: "increasing", 1: "decreasing", 2: "increasing"}]
    ),
)
def test_no_round_raises_the_training_loss(
    seed: int, n_positives: int, spread: float, monotone: Any, **options: Any
) -> None:
    X, y, weight = draw_rare(500, n_positives, seed, spread)
    ranker = LogitBoost(n_rounds=10, max_leaves=16, monotone=monotone, **options)
    ranker.fit(X, y, weight)
    losses = losses_of(ranker, y, weight)
    assert np.isfinite(losses).all()
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()
    assert np.abs(ranker.decision_function(X) - ranker.intercept_).max() <= 40.0


def test_a_few_positives_in_many_rows_are_ranked() -> None:
    """Unbounded steps took the loss to 1e6 and the AUC of other rows to .1."""
    X, y, _ = draw_rare(20_000, 40, seed=1)
    Z, z, _ = draw_rare(20_000, 400, seed=2)
    ranker = LogitBoost(n_rounds=30, learning_rate=0.4, min_samples_leaf=5.0).fit(X, y)
    assert ranker.loss_[-1] < ranker.loss_[0] < losses_of(ranker, y, np.ones(len(y)))[0]
    assert auc(z, ranker.decision_function(Z)) > 0.8


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_a_pure_leaf_moves_by_four_at_most(share: float) -> None:
    n = 200
    X = np.arange(n, dtype=float)[:, None]
    y = X[:, 0] >= n * (1.0 - share)
    options: dict[str, Any] = {"n_rounds": 1, "learning_rate": 1.0, "min_samples_leaf": 0.0}
    ranker = LogitBoost(smoothing=0.0, **options).fit(X, y)
    steps = ranker.decision_function(X) - ranker.intercept_
    # Newton's step of the positives is 1/share
    assert steps.max() == pytest.approx(min(1.0 / share, 4.0))
