"""AdaBoost against its definition, and beside RankBoost: paper 2's Section 5."""

import math
from typing import Any

import numpy as np
import pytest

from core import AdaBoost, RankBoost
from core.metrics import auc


def table(seed: int, n: int = 60, d: int = 3, levels: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, d)).astype(float)
    y = (X.sum(axis=1) + levels / 2 * rng.normal(size=n) > d * levels / 2).astype(int)
    y[:2] = 0, 1
    return X, y


def stump_values(X: np.ndarray) -> np.ndarray:
    """Every ±1 stump on the columns, and the constant: h of each row, first among equals first."""
    columns = []
    for j in range(X.shape[1]):
        for threshold in np.unique(X[:, j])[:-1]:
            columns.append(np.where(X[:, j] > threshold, 1.0, -1.0))
    return np.array(columns).T


def plain_adaboost(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, n_rounds: int, *, include_constant: bool
) -> np.ndarray:
    """Freund & Schapire 1997 on an explicit matrix of all weak classifiers."""
    signs = np.where(y == 1, 1.0, -1.0)
    h = stump_values(X)
    if include_constant:
        h = np.column_stack([h, np.ones(len(X))])
    f = np.zeros(len(X))
    for _ in range(n_rounds):
        d = weight * np.exp(-signs * f)
        d /= d.sum()
        edges = (d * signs) @ h
        best = int(np.argmax(np.abs(edges) >= np.abs(edges).max() * (1 - 1e-9)))
        f += 0.5 * math.log((1 + edges[best]) / (1 - edges[best])) * h[:, best]
    return f


@pytest.mark.parametrize("include_constant", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_scores_are_those_of_the_definition(seed: int, include_constant: bool) -> None:
    X, y = table(seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    ranker = AdaBoost(n_rounds=30, include_constant=include_constant).fit(X, y, weight)
    expected = plain_adaboost(X, y, weight, 30, include_constant=include_constant)
    assert ranker.decision_function(X) == pytest.approx(expected, abs=1e-9)
    margins = np.where(y == 1, 1, -1) * expected
    assert ranker.loss_[-1] == pytest.approx((weight * np.exp(-margins)).sum(), rel=1e-9)
    skew = (weight * np.exp(-expected))[y == 1].sum() - (weight * np.exp(expected))[y == 0].sum()
    assert ranker.f_skew_[-1] == pytest.approx(skew, abs=1e-9 * ranker.loss_[-1])


def test_rows_of_one_class_are_told_by_the_constant_first() -> None:
    X, y = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 0, 1, 1])
    ranker = AdaBoost(n_rounds=1).fit(X, y, np.where(y == 1, 100.0, 1.0))
    assert ranker.rounds_["feature"].tolist() == [-1]
    assert ranker.decision_function(X).tolist() == [ranker.rounds_["alpha"][0]] * len(y)
    assert ranker.intercept_ == ranker.rounds_["alpha"][0]
    assert (ranker.predict(X) == 1).all()
    assert ranker.structure()["rules"] == []


def test_identity_of_the_three_losses() -> None:
    X, y = table(1)
    ranker = AdaBoost(n_rounds=40).fit(X, y)
    assert ranker.f_**2 - ranker.f_skew_**2 == pytest.approx(4 * ranker.f_tilde_, rel=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_adaboost_and_rankboost_meet(seed: int) -> None:
    # Theorems 10, 12 and 14, Corollaries 11 and 13: data that no sum of stumps separates.
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (400, 2)).astype(float)
    y = (rng.random(400) < 0.15 + 0.09 * X.sum(axis=1)).astype(int)
    ada = AdaBoost(n_rounds=4000).fit(X, y)
    rank = RankBoost(n_rounds=4000, smoothing=0.0).fit(X, y)
    assert ada.f_tilde_[-1] == pytest.approx(rank.f_tilde_[-1], rel=1e-6)
    assert ada.f_[-1] == pytest.approx(rank.f_[-1], rel=1e-6)
    assert abs(ada.f_skew_[-1]) < 1e-3 * abs(ada.f_skew_[0])
    assert abs(rank.f_skew_[-1]) < 1e-9 * rank.f_[-1]
    assert auc(y, np.round(ada.decision_function(X), 6)) == pytest.approx(
        auc(y, np.round(rank.decision_function(X), 6)), abs=1e-12
    )
    corrected = rank.decision_function(X)
    assert (
        min(abs(ada.decision_function(X)).min(), abs(corrected).min()) > 1e-3
    )  # none on the border
    assert (ada.predict(X) == rank.predict(X)).all()
    uncorrected = corrected - rank.intercept_  # without Corollary 13 the theorem fails
    assert ((uncorrected > 0) != y).mean() > (rank.predict(X) != y).mean() + 0.05


def test_a_perfect_stump_ends_the_run() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    ranker = AdaBoost().fit(X, [0, 0, 1, 1])
    assert ranker.stop_reason_ == "perfect_ranker"
    assert ranker.predict(X).tolist() == [0, 0, 1, 1]


def balanced_confidence_rated_adaboost(
    X: np.ndarray, positive: np.ndarray, n_rounds: int
) -> np.ndarray:
    """Schapire & Singer 1999 on stumps, the class totals set to ½ before each round.

    A stump splits the rows in two; it predicts ½ ln(W₊/W₋) on each side and minimises
    Z = 2 Σ √(W₊ W₋).
    """
    scores = np.zeros(len(X))
    weight = np.ones(len(X))
    for _ in range(n_rounds):
        for rows in (positive, ~positive):
            weight[rows] /= 2 * weight[rows].sum()
        best: tuple[float, Any, Any] = (np.inf, None, None)
        for column in X.T:
            for threshold in np.unique(column)[:-1]:
                above = column > threshold
                sides = [(weight[s & positive].sum(), weight[s & ~positive].sum())
                         for s in (above, ~above)]  # fmt: skip
                z = 2 * sum(np.sqrt(p * n) for p, n in sides)
                if z < best[0] - 1e-12:
                    best = (z, above, sides)
        _, above, sides = best
        confidence = np.where(above, *(0.5 * np.log(p / n) for p, n in sides))
        scores += confidence
        weight = weight * np.exp(np.where(positive, -confidence, confidence))
    return scores


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rankboost_is_confidence_rated_adaboost_rebalanced_every_round(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (400, 3)).astype(float)
    positive = X.sum(axis=1) + 6 * rng.normal(size=400) > 18
    expected = balanced_confidence_rated_adaboost(X, positive, 30)
    ranker = RankBoost(n_rounds=30, smoothing=0.0).fit(X, positive)
    assert (ranker.rounds_["d_minus"] > 0).all()  # else a confidence is infinite
    difference = ranker.decision_function(X) - expected
    assert np.ptp(difference) < 1e-12 * np.ptp(expected) * 30
