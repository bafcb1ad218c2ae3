"""What repeats of a cross-validation show about the variance of rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.errors import InvalidData
from core.metrics.splits import rate_inflation
from tests.long_form import LONG_FORM
from tests.raising import raises

REPEATS, FOLDS = 4, 5


def inflation(scores: np.ndarray, **given: Any) -> float:
    """Return the factor of scores of the shape (n_repeats, n_rows)."""
    repeats, n = scores.shape
    row, repeat = np.tile(np.arange(n), repeats), np.repeat(np.arange(repeats), n)
    given = {"effective": n, "n_folds": FOLDS} | given
    return rate_inflation(scores.ravel(), row, repeat, **given)


def test_one_repeat_or_equal_ones_show_no_variance() -> None:
    scores = np.random.default_rng(0).normal(size=(1, 50))
    assert inflation(scores) == 1.0
    assert inflation(np.repeat(scores, 3, axis=0)) == 1.0
    assert inflation(np.ones((3, 50))) == 1.0  # no threshold divides them


def test_rows_that_change_on_their_own_count_once() -> None:
    """Each row's score varies from repeat to repeat, independently: the rows are as independent as ever."""
    rng = np.random.default_rng(1)
    found = [
        inflation(rng.normal(size=80) + rng.normal(size=(REPEATS, 80)))
        for _ in range(400 if LONG_FORM else 60)
    ]
    assert np.median(found) < 1.3
    assert np.mean(found) < 1.8


def test_a_shift_of_all_rows_counts_by_its_variance() -> None:
    """With shifts of a standard deviation s, rates vary by about (φ(z) s)²; four repeats show it with 3 degrees."""
    rng, n, s = np.random.default_rng(2), 400, 0.1
    scores = [
        rng.normal(size=n) + s * rng.normal(size=(REPEATS, 1))
        for _ in range(1000 if LONG_FORM else 100)
    ]
    z = np.array([-1.28, -0.84, -0.52, -0.25, 0.0, 0.25, 0.52, 0.84, 1.28])
    share = np.arange(1, 10) / 10
    shifted = np.sum(np.exp(-(z**2)) / (2.0 * np.pi)) * s**2
    expected = 1.0 + (FOLDS - 1 + 1 / REPEATS) * shifted * n / np.sum(share * (1.0 - share))
    found = np.mean([inflation(each) for each in scores])
    assert found == pytest.approx(expected, rel=0.25)


def test_weights_count_copies_and_copies_in_a_group_count_once() -> None:
    rng = np.random.default_rng(3)
    shift = np.array([[-0.4], [0.0], [0.4]])
    scores = np.clip(np.floor(2.0 + rng.normal(size=60) + shift), 0.0, 3.0)
    weight = rng.integers(1, 4, 60)
    by_weight = inflation(scores, effective=50, sample_weight=np.tile(weight, 3))
    group = np.tile(np.repeat(np.arange(60), weight), 3)
    by_copies = inflation(np.repeat(scores, weight, axis=1), effective=50, group=group)
    assert by_weight == pytest.approx(by_copies)
    assert by_weight > 2.0


def test_a_repeat_must_have_every_row() -> None:
    with raises(InvalidData, "row"):
        rate_inflation([1.0, 2.0, 3.0], [0, 1, 0], [0, 0, 1], 2, 2)
    with raises(InvalidData, "row"):
        rate_inflation([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 0], [0, 0, 1, 1], 2, 2)
    with raises(InvalidData, "sample_weight", 4, 1):
        rate_inflation([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1], [0, 0, 1, 1], 2, 2, sample_weight=[1.0])
    with pytest.raises(InvalidData):
        rate_inflation([1.0, np.nan], [0, 1], [0, 0], 2, 2)
