"""A booster's description of its stumps, and the margins that follow from it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.bounds import best_bipartite_margin, stump_outputs
from core.metrics import roc_curve
from core.metrics.groups import group_by_score
from core.metrics.margins import log_pair_loss, margin_distribution, smooth_margin
from core.registry import ALGORITHMS

RANKING = ("rankboost", "coordinate_rankboost", "smooth_margin_rank")
CLASSIFYING = ("adaboost", "aucboost")


def table(
    seed: int, n_rows: int = 60, n_features: int = 3, separable: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, n_features)), 1)
    noise = 0.0 if separable else 1.0
    y = (X[:, 0] + X[:, 1] + noise * rng.normal(size=n_rows) > 0).astype(int)
    return X, y


def outputs_of(ranker: Any, X: np.ndarray) -> np.ndarray:
    """The weak rankers' values on each row, by rounds_, as {0, 1}."""
    columns = []
    for stump in ranker.rounds_:
        above = X[:, stump["feature"]] > stump["threshold"]
        columns.append(above == (stump["sign"] > 0))
    return np.array(columns, dtype=float).T


@pytest.mark.parametrize("name", RANKING + CLASSIFYING)
def test_scores_are_the_combination_up_to_a_constant(name: str) -> None:
    X, y = table(0)
    ranker = ALGORITHMS[name](n_rounds=20).fit(X, y)
    weights, d_plus, d_minus = ranker.combination()
    assert weights.min() >= 0
    assert len(weights) == len(ranker.rounds_)
    # A classifying rule's d+ and d- are masses of rows, not of pairs.
    assert (d_plus is None, d_minus is None) == (name in CLASSIFYING,) * 2
    scores = ranker.decision_function(X)
    rebuilt = outputs_of(ranker, X) @ weights
    assert scores - scores[0] == pytest.approx(rebuilt - rebuilt[0], abs=1e-12)


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize("seed", range(3))
def test_smooth_margin_below_margin_below_rho(name: str, seed: int) -> None:
    X, y = table(seed, separable=True)
    plain = {"smoothing": 0.0} if name != "smooth_margin_rank" else {}
    ranker = ALGORITHMS[name](n_rounds=300, **plain).fit(X, y)
    scores = ranker.decision_function(X)
    l1_norm = ranker.combination().weights.sum()
    margin = margin_distribution(roc_curve(y, scores), l1_norm).least
    outputs = stump_outputs(X, np.ones(len(X)), 255)
    best = best_bipartite_margin(outputs[y == 1], outputs[y == 0])
    assert (
        smooth_margin(log_pair_loss(group_by_score(y, scores)), l1_norm)
        < margin
        <= best.edge + 1e-9
    )
    assert best.gap < 1e-9
    assert margin > 0  # separable, and boosted long enough


def test_rankers_of_other_forms_combine_nothing() -> None:
    X, y = table(0)
    both = np.column_stack([y, 1 - y])
    assert ALGORITHMS["adaboost_mr"](n_rounds=3).fit(X, both).combination() is None


@pytest.mark.parametrize("name", RANKING)
def test_margins_of_categories_stay_below_rho(name: str) -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(0, 5, 60), rng.integers(0, 4, 60), rng.normal(size=60)])
    y = (np.isin(X[:, 0], [1, 3]) + np.isin(X[:, 1], [0, 3]) + 0.3 * X[:, 2] > 0.9).astype(int)
    table = pd.DataFrame(
        {"a": X[:, 0].astype(int).astype(str), "b": X[:, 1].astype(int).astype(str)}
    )
    table["x"] = X[:, 2]
    ranker = ALGORITHMS[name](n_rounds=100).fit(table, y)
    curve = roc_curve(y, ranker.decision_function(table))
    margin = margin_distribution(curve, ranker.combination().weights.sum()).least
    outputs = stump_outputs(X, np.ones(len(X)), 255, n_categories=np.array([5, 4, 0]))
    best = best_bipartite_margin(outputs[y == 1], outputs[y == 0])
    assert margin <= best.edge + 1e-9
    without = stump_outputs(X, np.ones(len(X)), 255)  # categories taken as numbers: fewer cuts
    assert best_bipartite_margin(without[y == 1], without[y == 0]).rho < best.rho
