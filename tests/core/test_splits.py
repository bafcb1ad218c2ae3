"""Parts and folds: by the values of rows, or at random."""

import numpy as np
import pytest

from core.splits import draw_folds, draw_part, hold_out


@pytest.mark.parametrize("n_values", [2, 3, 5, 40])
def test_equal_rows_stay_together_whatever_their_class(n_values: int) -> None:
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


def test_as_much_of_each_class_is_held_out_as_was_asked_for() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 400, 4000)
    positive, X = rng.random(4000) < 0.2, x[:, None].astype(float)
    held = hold_out(X, positive, np.ones(4000), 0.25, 0)
    shares = [held[own].mean() for own in (positive, ~positive)]
    assert max(shares) <= 0.25
    assert min(shares) > 0.22


def test_folds_and_parts_at_random_are_drawn_from_each_class() -> None:
    positive = np.arange(23) < 7
    fold = draw_folds(positive, 3, 5)
    for own in (positive, ~positive):
        sizes = np.bincount(fold[own], minlength=3)
        assert sizes.max() - sizes.min() <= 1
    for fraction, expected in ((0.25, (2, 4)), (0.001, (1, 1)), (0.999, (6, 15))):
        part = draw_part(positive, fraction, 5)
        assert (part[positive].sum(), part[~positive].sum()) == expected
    assert (draw_part(positive, 0.25, 5) != draw_part(positive, 0.25, 6)).any()
    assert draw_part(np.arange(9) < 1, 0.5, 0) is None
    assert draw_part(np.zeros((8, 2), dtype=bool), 0.25, 0).sum() == 2
