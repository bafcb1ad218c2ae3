"""Holding rows out by their values."""

import numpy as np
import pytest

from core.holdout import hold_out


@pytest.mark.parametrize("n_values", [2, 3, 5, 40])
def test_equal_rows_stay_together_whatever_their_class(n_values):
    rng = np.random.default_rng(n_values)
    for seed in range(60):
        x = rng.integers(0, n_values, 60)
        positive = rng.random(60) < rng.uniform(0.2, 0.8, n_values)[x]
        weight = rng.integers(1, 4, 60).astype(float)
        X = np.column_stack([x, x % 2]).astype(float)
        held = hold_out(X, positive, weight, 0.25, seed)
        classes = [positive, ~positive]
        if min(len(set(x[own])) for own in classes) < 2:
            assert held is None
            continue
        assert not set(x[held]) & set(x[~held])
        for own in classes:
            assert held[own].any()
            assert not held[own].all()


def test_as_much_of_each_class_is_held_out_as_was_asked_for():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 400, 4000)
    positive, X = rng.random(4000) < 0.2, x[:, None].astype(float)
    held = hold_out(X, positive, np.ones(4000), 0.25, 0)
    shares = [held[own].mean() for own in (positive, ~positive)]
    assert max(shares) <= 0.25
    assert min(shares) > 0.22
