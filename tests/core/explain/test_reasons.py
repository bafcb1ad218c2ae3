"""Reasons are exact: Shapley values beside all orders of the features, and sums to the last digits."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from core import (
    AUCSVM,
    Additive,
    AUCBoost,
    CoordinateRankBoost,
    GreedyPairs,
    KomoriEguchiBoost,
    Logistic,
    LogitBoost,
    MartiRank,
    RankAverage,
    RankBoost,
    SmoothMarginRank,
    TreeRank,
)
from core.base.table import CodedTable, to_matrix
from core.errors import InvalidParameter
from core.explain import average_reference, largest, mean_reference, reference_at
from core.explain.reasons import Reference
from tests.raising import raises

ADDITIVE = [
    AUCSVM(),
    AUCSVM(feature_map="bins"),
    Additive(n_bags=2, max_rounds=150, learning_rate=0.3),
    CoordinateRankBoost(n_rounds=5),
    GreedyPairs(),
    KomoriEguchiBoost(n_rounds=5),
    Logistic(),
    LogitBoost(n_rounds=5),
    LogitBoost(weak_ranker="tree", n_rounds=5, monotone={0: "increasing"}),
    RankBoost(n_rounds=5),
    RankBoost(weak_ranker="tree", n_rounds=5),
    SmoothMarginRank(n_rounds=5),
]
NOT_ADDITIVE = [
    AUCSVM(feature_map="fourier", n_components=5),
    MartiRank(),
    RankAverage(members=[Logistic(), RankBoost(n_rounds=2)]),
    TreeRank(),
]


def rows(n: int = 120, seed: int = 0) -> tuple[Any, Any]:
    """Return numbers, some of them missing, and labels that depend on two of them together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n) > 0
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


@pytest.mark.parametrize("ranker", ADDITIVE, ids=repr)
def test_parts_sum_to_the_difference_from_the_reference(ranker: Any) -> None:
    X, y = rows()
    weight = np.linspace(0.5, 2.0, len(X))
    ranker.fit(X, y, weight)
    scores, parts = ranker.decision_function(X), ranker.shapley_values(X)
    negative = mean_reference(ranker, X[~y], weight[~y])
    positive = mean_reference(ranker, X[y], weight[y])
    assert negative.score == pytest.approx(np.average(scores[~y], weights=weight[~y]), abs=1e-8)
    cut = float(np.quantile(scores, 0.8))
    for reference in (negative, average_reference(ranker), reference_at(cut, negative, positive)):
        difference = (parts - reference.parts).sum(axis=1)
        np.testing.assert_allclose(difference, scores - reference.score, atol=1e-8, rtol=1e-12)


@pytest.mark.parametrize("ranker", NOT_ADDITIVE, ids=repr)
def test_other_scores_have_no_parts(ranker: Any) -> None:
    X, y = rows()
    ranker.fit(np.nan_to_num(X), y)
    with pytest.raises(InvalidParameter):
        ranker.shapley_values(X)


def test_estimators_have_no_parts() -> None:
    X, y = rows()
    ranker = AUCBoost(weak_ranker="logistic", n_rounds=2).fit(np.nan_to_num(X), y)
    with raises(InvalidParameter, "weak_ranker", "logistic"):
        ranker.shapley_values(np.nan_to_num(X))


def mean_score(trees: Any, x: Any, known: set[int]) -> float:
    """Return the score of a row of which only some features are known, by its definition."""
    nodes, cover = trees.nodes, trees.cover

    def value(node: int) -> float:
        below, above = nodes.child[2 * node], nodes.child[2 * node + 1]
        if below == node:
            return float(nodes.mean[node])
        feature, limit = nodes.feature[node], nodes.threshold[node]
        if feature not in known:
            share = cover[above] / cover[node] if cover[node] else 0.5
            return float(share * value(above) + (1 - share) * value(below))
        goes_above = bool(nodes.missing_above[node])
        if nodes.set[node] >= 0 and 0 <= x[feature] < limit:
            category = int(x[feature])
            word = int(nodes.sets[nodes.set[node] + category // 64])
            goes_above = bool(word >> category % 64 & 1)
        elif nodes.set[node] < 0 and not np.isnan(x[feature]):
            goes_above = x[feature] > limit
        return value(above if goes_above else below)

    return sum(map(value, nodes.root.tolist()))


def shapley(trees: Any, x: Any) -> list[float]:
    """Return the Shapley values by all sets of features."""
    n = len(x)
    values = []
    for j in range(n):
        others = [k for k in range(n) if k != j]
        value = 0.0
        for size in range(n):
            share = math.factorial(size) * math.factorial(n - 1 - size) / math.factorial(n)
            for known in map(set, itertools.combinations(others, size)):
                gain = mean_score(trees, x, known | {j}) - mean_score(trees, x, known)
                value += share * gain
        values.append(value)
    return values


@pytest.mark.parametrize("seed", range(3))
def test_parts_of_trees_are_shapley_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(200, 3)), rng.integers(0, 70, 200)])
    y = X[:, 0] * X[:, 1] + (X[:, 3] % 7 > 3) + 0.3 * rng.normal(size=200) > 0.5
    X[rng.random(X.shape) < 0.1] = np.nan
    categories = (None, None, None, tuple(f"c{k:02d}" for k in range(70)))
    table = CodedTable(X, ("a", "b", "c", "d"), categories)
    ranker = RankBoost(weak_ranker="tree", n_rounds=4, max_leaves=12, min_samples_leaf=2)
    ranker.fit(table, y, rng.integers(1, 4, 200))
    few = CodedTable(X[:6], ("a", "b", "c", "d"), categories)
    found = ranker.shapley_values(few)
    coded, _ = to_matrix(few, ranker.categories_)
    for x, parts in zip(coded, found, strict=True):
        np.testing.assert_allclose(parts, shapley(ranker.ensemble_, x), atol=1e-12)


def test_a_reference_needs_positives_above_negatives() -> None:
    low, high = Reference(0.0, np.zeros(2)), Reference(2.0, np.array([0.5, 1.5]))
    assert reference_at(3.0, low, high).parts.tolist() == [0.75, 2.25]
    assert reference_at(0.0, low, high).parts.tolist() == [0.0, 0.0]
    for positive in (low, Reference(-1.0, np.zeros(2)), Reference(math.inf, np.zeros(2))):
        with raises(InvalidParameter, f"{positive.score:g}"):
            reference_at(1.0, low, positive)
    for far in (41.0, -41.0, math.inf):
        with raises(InvalidParameter, f"{far:g}"):
            reference_at(far, low, high)


def test_equal_parts_are_in_the_order_of_their_columns() -> None:
    parts = np.array([[0.5, -1.0, 0.5, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0, -0.1]])
    assert largest(parts, 3, "raises").tolist() == [[4, 0, 2], [-1, -1, -1]]
    assert largest(parts, 3, "lowers").tolist() == [[1, -1, -1], [4, -1, -1]]
    assert largest(parts, 3, "both").tolist() == [[4, 1, 0], [4, -1, -1]]
    assert largest(parts, 9, "both").shape == (2, 5)
    assert largest(np.array([[1.0, 0.1, 1e-17]]), 3, "raises").tolist() == [[0, 1, -1]]
    assert largest(np.empty((0, 5)), 3, "both").shape == (0, 3)
