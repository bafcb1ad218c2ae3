"""The greedy pairwise heuristic against searches that try everything."""

import math
from typing import Any

import numpy as np
import pytest

from core import GreedyPairs
from core.linear.greedy_pairs import PartialAuc
from core.metrics import partial_auc

WINDOWS = [(0.0, 1.0), (0.0, 0.2), (0.1, 0.5)]


def make_rows(n: int = 60, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, -1] = np.round(X[:, -1])
    y = (X[:, 0] - X[:, 1] + 0.5 * X[:, -1] + rng.normal(size=n) > 0.5).astype(int)
    return X, y, rng.uniform(0.5, 2.0, n)


def standardise(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    mean = weight @ X / weight.sum()
    return (X - mean) / np.sqrt(weight @ (X - mean) ** 2 / weight.sum())


def search(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, window: tuple[float, float], coarseness: int
) -> tuple[float, np.ndarray]:
    """The same heuristic, from its description: no shortcut, every area of all rows."""

    def area(scores: Any) -> Any:
        return partial_auc(y, np.round(scores, 12), *window, sample_weight=weight)

    Z = standardise(X, weight).T
    signed = [max((area(s * z), s) for s in (1.0, -1.0)) for z in Z]
    first, *others = sorted(range(len(Z)), key=lambda j: (-signed[j][0], j))
    best, score = signed[first][0], signed[first][1] * Z[first]
    for j in others:
        grid = [-math.pi / 2 + math.pi * step / coarseness for step in range(coarseness + 1)]
        areas = [area(math.cos(angle) * score + math.sin(angle) * Z[j]) for angle in grid]
        if max(areas) > best + 1e-12:
            angle = grid[int(np.argmax(areas))]
            score = math.cos(angle) * score + math.sin(angle) * Z[j]
            score /= math.sqrt(weight @ score**2 / weight.sum())
            best = area(score)
    return best, score


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("seed", range(3))
def test_finds_what_the_full_search_finds(window: tuple[float, float], seed: int) -> None:
    X, y, weight = make_rows(seed=seed)
    low, high = window
    ranker = GreedyPairs(fpr_min=low, fpr_max=high, coarseness=20).fit(X, y, weight)
    best, score = search(X, y, weight, window, 20)
    assert ranker.pauc_[-1] == pytest.approx(best, abs=1e-12)
    assert ranker.decision_function(X) - ranker.offset_ == pytest.approx(score, abs=1e-9)
    reached = partial_auc(y, ranker.decision_function(X), low, high, sample_weight=weight)
    assert reached == pytest.approx(best, abs=1e-12)
    assert (np.diff(ranker.loss_) <= 0.0).all()


@pytest.mark.parametrize("window", WINDOWS)
def test_of_two_columns_no_weights_on_the_grid_are_better(window: tuple[float, float]) -> None:
    X, y, weight = make_rows(d=2)
    low, high = window
    ranker = GreedyPairs(fpr_min=low, fpr_max=high, coarseness=30).fit(X, y, weight)
    Z = standardise(X, weight)
    angles = math.pi * np.arange(60) / 30.0  # the whole circle, on the grid's angles
    every = [math.cos(a) * Z[:, 0] + math.sin(a) * Z[:, 1] for a in angles]
    areas = [partial_auc(y, s, low, high, sample_weight=weight) for s in every]
    # the heuristic keeps its first column's sign: of each line through the origin it tries one end
    assert ranker.pauc_[-1] == pytest.approx(max(areas), abs=1e-12)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_rows_on_top_give_the_area_of_all(window: tuple[float, float], weighted: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(4, 80))
        scores = np.round(rng.normal(size=n), int(rng.integers(0, 3)))
        positive = rng.random(n) < 0.5
        positive[:2] = True, False
        weight = rng.exponential(size=n) + 1e-3 if weighted else np.ones(n)
        top = PartialAuc(positive, weight, *window)
        expected = partial_auc(positive, scores, *window, sample_weight=weight)
        assert top.area(scores) == pytest.approx(expected, abs=1e-12)


def test_missing_values_are_at_the_mean() -> None:
    X, y, weight = make_rows()
    X[5:15, 0] = np.nan
    ranker = GreedyPairs().fit(X, y, weight)
    filled = np.where(np.isnan(X), ranker.mean_, X)
    assert (ranker.decision_function(X) == ranker.decision_function(filled)).all()
    known = ~np.isnan(X[:, 0])
    mean = np.average(X[known, 0], weights=weight[known])
    assert ranker.mean_[0] == pytest.approx(mean, abs=1e-12)


def test_columns_that_say_nothing_have_no_weight() -> None:
    X, y, _ = make_rows()
    X = np.column_stack([np.full(60, 0.1), X, np.full(60, np.nan)])
    ranker = GreedyPairs().fit(X, y)
    assert ranker.coef_[[0, -1]].tolist() == [0.0, 0.0]
    assert {entry["feature"] for entry in ranker.structure()["features"]} <= {"x1", "x2", "x3"}
    nothing = GreedyPairs().fit(X[:, [0, -1]], y)
    assert np.ptp(nothing.decision_function(X[:, [0, -1]])) == 0.0


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_units_do_not_matter(scale: float) -> None:
    X, y, weight = make_rows()
    expected = GreedyPairs(coarseness=10).fit(X, y, weight).decision_function(X)
    scores = GreedyPairs(coarseness=10).fit(scale * X, y, weight).decision_function(scale * X)
    assert scores == pytest.approx(expected, abs=1e-6)


def test_values_far_beyond_the_training_rows_have_finite_scores() -> None:
    X, y, _ = make_rows()
    scores = GreedyPairs().fit(1e-300 * X, y).decision_function([[1.7e308, -1.7e308, 1.7e308]])
    assert np.isfinite(scores).all()
