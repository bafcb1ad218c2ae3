"""The three classifiers: in our arrays they say what scikit-learn's say, and nothing odd is read."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from core import AUCBoost, MartiRank, TreeRank, classifiers
from core.classifiers import (
    STACKS,
    fit_classifier,
)
from tests.long_form import one_in

NUMERIC = np.zeros(3, dtype=np.int64)


def table(
    n: int = 400, seed: int = 0, scale: tuple[float, float, float] = (1.0, 1000.0, 1e-3)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * scale + np.array([0, 5000.0, 0])
    z = (X - [0, 5000, 0]) / scale
    positive = z[:, 0] + z[:, 1] * z[:, 2] + 0.5 * rng.normal(size=n) > 0
    return X, positive, rng.integers(1, 4, n).astype(float)


def standardised(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    mean = np.average(X, axis=0, weights=weight)
    return (X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("logistic", LogisticRegression(solver="newton-cholesky", tol=1e-13)),
        # which has a penalty on the intercept, too: on a thousandth of it here
        ("linear_svm", LinearSVC(dual=False, intercept_scaling=1000.0, tol=1e-12, max_iter=10**5)),
    ],
)
def test_a_linear_one_has_the_minimum_of_scikit_learns(name: str, estimator: Any) -> None:
    X, positive, weight = table()
    stack = fit_classifier(name, X, positive, weight, NUMERIC, 0)
    Z = standardised(X, weight)
    estimator.fit(Z, positive, sample_weight=weight)
    assert stack.score(0, X) == pytest.approx(estimator.decision_function(Z), abs=1e-7)


def test_a_forest_scores_as_scikit_learn_does() -> None:
    X, positive, weight = table()
    X[::7, 1] = np.nan
    stack = fit_classifier("random_forest", X, positive, weight, NUMERIC, 5)
    present = ~np.isnan(X[:, 1])
    Z = standardised(np.where(np.isnan(X), 0.0, X), weight)
    shift = np.average(X[present, 1], weights=weight[present])
    spread = np.sqrt(np.average((X[present, 1] - shift) ** 2, weights=weight[present]))
    Z[:, 1] = (X[:, 1] - shift) / spread
    forest = RandomForestClassifier(
        n_estimators=50, max_depth=5, min_weight_fraction_leaf=0.01, random_state=5
    ).fit(Z, positive, sample_weight=weight)
    expected = forest.predict_proba(Z)[:, 1] - 0.5
    # It rounds to float32 before it compares: a row on a threshold may fall either way.
    assert np.isclose(stack.score(0, X), expected, atol=1e-9).mean() > 0.99


@pytest.mark.parametrize("name", ["logistic", "linear_svm"])
def test_a_row_of_weight_k_is_k_rows(name: str) -> None:
    X, positive, _ = table(40)
    weight = np.random.default_rng(0).integers(1, 9, 40)
    one = fit_classifier(name, X, positive, weight.astype(float), NUMERIC, 0)
    repeated = X.repeat(weight, axis=0), positive.repeat(weight)
    other = fit_classifier(name, *repeated, np.ones(weight.sum()), NUMERIC, 0)
    assert one.score(0, X) == pytest.approx(other.score(0, X), abs=2e-3)
    # and fewer rows stand farther behind the penalty
    fewer = fit_classifier(name, X, positive, weight / weight.mean(), NUMERIC, 0)
    assert np.ptp(fewer.score(0, X)) < 0.97 * np.ptp(one.score(0, X))


@pytest.mark.parametrize(
    "weak", ["logistic", "linear_svm", LogisticRegression(solver="newton-cholesky", tol=1e-9)]
)
@pytest.mark.parametrize(
    "make",
    [
        lambda weak: TreeRank(splitter=weak, max_depth=2, min_samples_leaf=10.0),
        lambda weak: MartiRank(weak_ranker=weak, n_rounds=3),
        lambda weak: AUCBoost(weak_ranker=weak, n_rounds=3),
    ],
    ids=["treerank", "martirank", "aucboost"],
)
def test_rankers_of_classifiers_take_a_row_of_weight_k_for_k_rows(
    make: Callable[..., Any], weak: Any
) -> None:
    X, positive, _ = table(60, scale=(1.0, 1.0, 1.0))
    weight = np.random.default_rng(0).integers(1, 30, 60)
    one = make(weak).fit(X, positive, weight)
    other = make(weak).fit(X.repeat(weight, axis=0), positive.repeat(weight))
    assert one.decision_function(X) == pytest.approx(other.decision_function(X), abs=1e-6)
    # weights whose mean is below 1 cannot be meant as numbers of rows: their ratios count
    light = make(weak).fit(X, positive, weight / 1e3)
    heavy = make(weak).fit(X, positive, weight / weight.mean())
    assert light.decision_function(X) == pytest.approx(heavy.decision_function(X), abs=1e-6)


@pytest.mark.parametrize("name", STACKS)
def test_missing_values_and_categories(name: str) -> None:
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 4, 600).astype(float)
    positive = np.isin(colour, [0, 2]) ^ (rng.random(600) < 0.05)
    X = np.column_stack([rng.normal(size=600), colour])
    X[:40] = np.nan
    stack = fit_classifier(name, X, positive, np.ones(600), np.array([0, 4]), 0)
    says = [stack.score(0, np.array([[np.nan, float(c)]]))[0] > 0 for c in range(4)]
    assert says == [True, False, True, False]
    assert np.isfinite(stack.score(0, X)).all()
    described = stack.describe(0, ["age", "blue", "green", "red", "white"].__getitem__)
    assert "blue" in described["words"]


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize(
    "values",
    [[1.7e308, -1.7e308], [1.7e308] * 9 + [-1.7e308], [1e-320, 0], [3.0], [np.nan]],
    ids=["wide", "lopsided", "subnormal", "constant", "missing"],
)
@pytest.mark.filterwarnings("error::RuntimeWarning", "error::UserWarning")
def test_odd_scales(name: str, values: list[float] | list[Any]) -> None:
    X = np.column_stack([np.resize(values, 100), np.arange(100.0), np.zeros(100)])
    stack = fit_classifier(name, X, np.arange(100) >= 50, np.ones(100), NUMERIC, 0)
    assert ((stack.score(0, X) > 0) == (np.arange(100) >= 50)).mean() > 0.9
    wild = np.array([[1.7e308, -1.7e308, 1.7e308], [np.nan] * 3])
    assert stack.score(0, wild).shape == (2,)


@pytest.mark.parametrize(("name", "missing"), one_in(5, STACKS, [False, True]))
def test_many_words_are_not_laid_out_row_by_row(
    name: Any, missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column for each of 400 words would take as much as 400 columns of numbers."""
    rng = np.random.default_rng(0)
    n, n_words = 5000, 400
    X = np.column_stack([rng.normal(size=n), rng.integers(0, n_words, n)])
    if missing:
        X[::9] = np.nan
    positive = (np.nan_to_num(X[:, 1]) % 3 == 0) ^ (rng.random(n) < 0.1)
    counts = np.array([0, n_words])
    fit_classifier(
        name, X[:50], positive[:50], np.ones(50), counts, 0
    )  # what it imports is not meant
    tracemalloc.start()
    try:
        stack = fit_classifier(name, X, positive, np.ones(n), counts, 0)
        scores = stack.score(0, X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (1.1 if missing and name == "random_forest" else 0.8) * n * n_words * 8
    monkeypatch.setattr(classifiers, "MAX_DENSE_COLUMNS", n_words + 1)
    dense = fit_classifier(name, X, positive, np.ones(n), counts, 0)
    if name == "random_forest":
        assert np.corrcoef(scores, dense.score(0, X))[0, 1] > 0.9
    else:
        assert scores == pytest.approx(dense.score(0, X), abs=1e-3)
        assert stack.arrays()["linear_scale"].tolist() == dense.arrays()["linear_scale"].tolist()
