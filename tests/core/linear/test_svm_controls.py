"""Logistic regression and the asymmetric SVM against scikit-learn, and against their own conditions of optimality."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from core import AsymmetricSVM, Logistic, load, save
from core.base.ranker import StopFit
from core.base.splits import hold_out
from core.base.table import to_matrix
from core.linear.design import StoredRows, fit_design
from core.linear.smooth import ASYMMETRIES, COSTS
from core.metrics import partial_auc
from tests.long_form import one_in
from tests.sentences import Sentences


def make_rows(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1.0, 10.0, 1e-3, 1.0, 5.0] + 3.0
    y = (X[:, 0] + 0.1 * X[:, 1] + 0.5 * X[:, 3] + rng.normal(size=n) > 6.0).astype(int)
    return X, y, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_logistic_is_scikit_learns(C: float) -> None:
    X, y, weight = make_rows()
    ranker = Logistic(C=C).fit(X, y, weight)
    scaler = StandardScaler().fit(X, sample_weight=weight)
    other = LogisticRegression(C=C, tol=1e-10, max_iter=10_000)
    other.fit(scaler.transform(X), y, weight)
    expected = other.decision_function(scaler.transform(X))
    assert ranker.decision_function(X) == pytest.approx(expected, abs=1e-5)
    assert ranker.coef_ * scaler.scale_ == pytest.approx(other.coef_[0], abs=1e-5)
    assert (ranker.predict(X) == other.predict(scaler.transform(X))).all()


def asymmetric_objective(
    line: np.ndarray, Z: np.ndarray, y: np.ndarray, C: float, asymmetry: float
) -> float:
    w, b = line[:-1], line[-1]
    short = np.maximum(1.0 - np.where(y == 1, 1.0, -1.0) * (Z @ w + b), 0.0) ** 2
    loss = (short[y == 1].mean() + asymmetry * short[y == 0].mean()) / (1.0 + asymmetry)
    return 0.5 * w @ w + C * loss


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("asymmetry", [0.1, 1.0, 30.0])
def test_no_step_away_from_the_asymmetric_machine_pays(C: float, asymmetry: float) -> None:
    X, y, _ = make_rows()
    ranker = AsymmetricSVM(C=C, asymmetry=asymmetry).fit(X, y)
    Z = StandardScaler().fit_transform(X)
    args = Z, y, C, asymmetry
    b = minimize_scalar(lambda b: asymmetric_objective(np.append(weights_of(ranker), b), *args)).x
    line = np.append(weights_of(ranker), b)
    assert ranker.objective_ == pytest.approx(asymmetric_objective(line, *args), rel=1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        for step in rng.normal(size=(20, len(line))):
            assert asymmetric_objective(line + size * step, *args) > ranker.objective_ - 1e-12


def draw_words(n: int = 3000, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Columns of words that go together, one of them of 600 words: more coordinates than are taken with one another."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 600, n)
    table = pd.DataFrame(
        {
            "kind": [f"k{k}" for k in kind],
            "group": [f"g{k}" for k in np.where(rng.random(n) < 0.9, kind % 7, 3)],
            "size": kind % 5 + rng.normal(size=n),
            "gap": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        }
    )
    y = (rng.normal(size=600)[kind] + 0.5 * table["size"] + rng.normal(size=n) > 1.0).astype(int)
    return table, y


@pytest.mark.parametrize("C", one_in(2, [1e-3, 1.0]))
def test_logistic_on_words_is_scikit_learns(C: float) -> None:
    table, y = draw_words()
    ranker = Logistic(C=C).fit(table, y)
    rows = fit_design(*coded(table, ranker), standardize=True)
    other = LogisticRegression(C=C, tol=1e-9, max_iter=20_000, solver="newton-cg")
    other.fit(rows.points - shifts(rows), y)
    assert weights_of(ranker) == pytest.approx(other.coef_[0], abs=2e-4 * abs(other.coef_).max())
    assert ranker.n_iter_ < 30


def weights_of(ranker: Any) -> np.ndarray:
    """The weights of the coordinates."""
    w: np.ndarray = ranker.get_state()[0]["w"]
    return w


def coded(table: pd.DataFrame, ranker: Logistic) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    matrix, _ = to_matrix(table, ranker.categories_)
    return matrix, np.ones(len(table)), np.array([len(names or ()) for names in ranker.categories_])


def shifts(rows: StoredRows) -> np.ndarray:
    return np.pad(rows.shift, (0, rows.size - len(rows.shift)))


def stop_at(step: int) -> Callable[..., Any]:
    def callback(k: Any, of: Any, info: Any) -> None:
        if k == step:
            raise StopFit

    return callback


def test_a_logistic_regression_that_is_stopped_keeps_its_last_step(sentences: Sentences) -> None:
    X, y, _ = make_rows()
    whole = Logistic().fit(X, y)
    with sentences.warns(UserWarning):
        ranker = Logistic().fit(X, y, callback=stop_at(2))
    assert (ranker.n_iter_, whole.n_iter_ > 2) == (2, True)
    assert whole.objective_ < ranker.objective_ < 1.1 * whole.objective_
    assert load(save(ranker)).n_iter_ == 2


def test_a_path_that_is_stopped_has_the_values_it_came_to(sentences: Sentences) -> None:
    X, y, _ = make_rows()
    costs = [1e-3, 1e-2, 1e-1]
    ranker, seen = Logistic(), []
    ranker.fit_path(X, y, values=costs, callback=lambda step, of, info: seen.append(step))
    first, _, _ = ranker.path_rankers()
    with sentences.warns(UserWarning):
        ranker.fit_path(X, y, values=costs, callback=stop_at(first.n_iter_ + 1))
    same, cut = ranker.path_rankers()
    assert (weights_of(same) == weights_of(first)).all()
    assert cut.n_iter_ == 1
    assert seen[-1] > first.n_iter_ + 1


def test_an_asymmetric_machine_that_is_stopped_takes_the_best_so_far(sentences: Sentences) -> None:
    X, y, _ = make_rows()
    with sentences.warns(UserWarning):
        ranker = AsymmetricSVM().fit(X, y, callback=stop_at(3))
    assert ranker.asymmetry_ == ASYMMETRIES[0]
    assert ranker.C_ in COSTS[:3]


def test_auto_takes_the_best_of_the_grid_on_rows_held_out() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=300) > 1.5).astype(int)
    ranker = AsymmetricSVM(fpr_min=0.05, fpr_max=0.3, standardize=False).fit(X, y)
    held = hold_out(X, y == 1, np.ones(300), 0.25, 0)
    areas = {}
    for C in COSTS:
        for asymmetry in ASYMMETRIES:
            other = AsymmetricSVM(C=C, asymmetry=asymmetry, standardize=False)
            scores = other.fit(X[~held], y[~held]).decision_function(X[held])
            areas[asymmetry, C] = partial_auc(y[held], scores, 0.05, 0.3)
    assert max(areas.values()) - min(areas.values()) > 0.02
    assert areas[ranker.asymmetry_, ranker.C_] == pytest.approx(max(areas.values()), abs=1e-9)


def test_too_few_rows_to_hold_any_out() -> None:
    ranker = AsymmetricSVM().fit([[0.0], [1.0]], [0, 1])
    assert (ranker.C_, ranker.asymmetry_) == (1.0, 1.0)
    assert np.diff(ranker.decision_function([[0.0], [1.0]])) > 0


@pytest.mark.parametrize("ranker", [Logistic(), AsymmetricSVM(C=1.0, asymmetry=4.0)])
def test_sparse_rows_are_as_dense_ones(ranker: Logistic | AsymmetricSVM) -> None:
    X, y, _ = make_rows()
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.6, 0.0, X)
    dense = ranker.fit(X, y).decision_function(X)
    thin = ranker.fit(sparse.csr_matrix(X), y).decision_function(X)
    assert thin == pytest.approx(dense, abs=1e-8)


@pytest.mark.parametrize("algorithm", [Logistic, AsymmetricSVM])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_separable_rows_of_any_scale(algorithm: type[Any], scale: float) -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]]) * scale
    ranker = algorithm(C=1e6).fit(X, [0, 0, 1, 1], [1e3, 1.0, 1e-3, 3.0])
    scores = ranker.decision_function(X)
    assert np.isfinite(scores).all()
    assert (np.diff(scores) > 0).all()
