"""Partial dependence against its definition, by hand and one row at a time."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import AdaBoostMH, RankBoost
from core.errors import InvalidData, InvalidParameter
from core.explain import make_axis, partial_dependence, score_grid
from core.explain.dependence import BLOCK_ROWS
from tests.raising import raises
from tests.sentences import Sentences


def four_leaves(X: np.ndarray) -> np.ndarray:
    """x0 <= 0: 2 where x1 <= 0, else 5. x0 > 0: 1."""
    return np.where(X[:, 0] > 0, 1.0, np.where(X[:, 1] > 0, 5.0, 2.0))


# Of the six rows half have x1 > 0, but two of the three with x0 <= 0.
BY_HAND = np.array([[0, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 1]], dtype=float)


def test_it_is_the_average_over_all_rows_not_over_those_of_the_branch() -> None:
    axis = make_axis(0, BY_HAND[:, 0], np.ones(6), 32)
    at_left, at_right = score_grid(four_leaves, BY_HAND, np.ones(6), [axis])
    assert at_left == 3.5  # (2 + 5) / 2
    assert at_right == 1.0
    left = BY_HAND[BY_HAND[:, 0] <= 0]
    assert four_leaves(left).mean() == 4.0  # what a weighted walk of the tree would say


def test_weights_count_as_repeated_rows() -> None:
    weight = np.array([3.0, 1, 0, 2, 1, 1])
    axes = [make_axis(0, BY_HAND[:, 0], weight, 32), make_axis(1, BY_HAND[:, 1], weight, 32)]
    repeated = BY_HAND.repeat(weight.astype(int), axis=0)
    for some in (axes[:1], axes[1:], axes):
        weighted = score_grid(four_leaves, BY_HAND, weight, some)
        assert np.allclose(weighted, score_grid(four_leaves, repeated, np.ones(8), some))


def trained(n: int = 300, missing: float = 0.1) -> tuple[RankBoost, pd.DataFrame]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(0, 3, n)
    y = X[:, 0] + X[:, 3] + rng.normal(size=n) > 1
    X[rng.random(n) < missing, 1] = np.nan
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    return RankBoost(n_rounds=30, weak_ranker="tree").fit(table, y), table


def by_definition(ranker: RankBoost, table: pd.DataFrame, values: dict[str, float]) -> float:
    """One mean of one column of scores at a time."""
    return ranker.decision_function(table.assign(**values)).mean()


def test_one_feature_is_its_definition() -> None:
    ranker, table = trained()
    found = partial_dependence(ranker, table, ["d"])
    assert found.axes[0].feature == 3
    assert found.axes[0].values.tolist() == [0, 1, 2]
    expected = [by_definition(ranker, table, {"d": value}) for value in (0.0, 1.0, 2.0)]
    assert found.scores == pytest.approx(expected, rel=1e-12)


def test_two_features_are_their_definition_whatever_the_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranker, table = trained()
    for block in (BLOCK_ROWS, 299, 700):
        monkeypatch.setattr("core.explain.dependence.BLOCK_ROWS", block)
        found = partial_dependence(ranker, table, ["d", 1], n_points=4)
        b = found.axes[1].values
        assert found.scores.shape == (3, 5)
        for i in range(3):
            for k in range(5):
                expected = by_definition(ranker, table, {"d": float(i), "b": b[k]})
                assert found.scores[i, k] == pytest.approx(expected, rel=1e-12)


def test_missing_is_a_point_of_its_own_where_there_is_any() -> None:
    ranker, table = trained()
    values = partial_dependence(ranker, table, ["b"]).axes[0].values
    assert np.isnan(values[-1])
    assert np.isfinite(values[:-1]).all()
    assert (np.diff(values[:-1]) > 0).all()
    weight = table["b"].notna().to_numpy(dtype=float)
    present = partial_dependence(ranker, table, ["b"], sample_weight=weight)
    assert np.isfinite(present.axes[0].values).all()


@pytest.mark.parametrize(
    ("column", "weight", "n_points", "expected"),
    [
        ([3, 1, 2, 2], [1, 1, 1, 1], 3, [1, 2, 3]),  # few: every value
        (range(101), [1] * 101, 5, [0, 25, 50, 75, 100]),
        ([0, 1, 2, 3], [97, 1, 1, 1], 3, [0, 3]),  # a heavy value takes the points of its share
        ([0, 1, 2, 3], [1, 0, 0, 1], 2, [0, 3]),
        ([np.nan, np.nan], [1, 1], 5, [np.nan]),
        ([5, 5, np.nan], [1, 1, 1], 5, [5, np.nan]),
    ],
)
def test_axes(column: Any, weight: list[int], n_points: int, expected: Any) -> None:
    axis = make_axis(7, np.array(column, dtype=float), np.array(weight, dtype=float), n_points)
    assert axis.feature == 7
    assert np.array_equal(axis.values, np.array(expected, dtype=float), equal_nan=True)


def test_a_category_is_a_point_however_rare() -> None:
    axis = make_axis(0, np.array([0.0, 0, 4]), np.ones(3), 2, n_categories=6)
    assert axis.values.tolist() == [0, 1, 2, 3, 4, 5]
    column = np.array([3.0, 1, 3, 0, 2, 2])
    axis = make_axis(0, column, np.ones(6), 2, n_categories=5, most_categories=3)
    assert axis.values.tolist() == [0, 2, 3]  # 0 and 1 weigh the same
    axis = make_axis(0, np.array([0.0, np.nan]), np.ones(2), 2, n_categories=2)
    assert np.array_equal(axis.values, [0, 1, np.nan], equal_nan=True)


def test_a_score_per_label_has_an_axis_of_its_own() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    ranker = AdaBoostMH(n_rounds=5).fit(X, (X[:, :2] > 0).astype(int))
    found = partial_dependence(ranker, X, [0, 2], n_points=4)
    assert found.scores.shape == (4, 4, 2)
    moved = X.copy()
    moved[:, [0, 2]] = found.axes[0].values[1], found.axes[1].values[3]
    assert found.scores[1, 3] == pytest.approx(ranker.decision_function(moved).mean(axis=0))


@pytest.mark.parametrize(
    ("features", "named"),
    [
        ([], ()),
        (["a", "b", "c"], (3,)),
        ("a", ("'a'",)),
        (["a", "a"], ("'a'",)),
        (["a", 0], (0,)),
        (["z"], ("'z'",)),
        ([4], (0, 3, 4)),
        ([-1], (0, 3, -1)),
    ],
)
def test_other_features_are_refused(features: Any, named: tuple[object, ...]) -> None:
    ranker, table = trained()
    with raises(InvalidParameter, *named):
        partial_dependence(ranker, table, features)


def test_other_input_is_refused(sentences: Sentences) -> None:
    ranker, table = trained()
    with sentences.raises(InvalidParameter):
        partial_dependence(ranker, table, ["a"], n_points=1)
    with sentences.raises(InvalidData):
        partial_dependence(ranker, table, ["a"], sample_weight=np.zeros(300))
    with sentences.raises(InvalidData):
        partial_dependence(ranker, table, ["a"], sample_weight=np.ones(3))
    with pytest.raises(InvalidData):
        partial_dependence(ranker, table[["a", "b"]], ["a"])
    with pytest.raises(InvalidData):
        partial_dependence(ranker, table[:0], ["a"])
