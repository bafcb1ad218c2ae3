"""The SVMs over feature maps: their rankings, descriptions and stored form."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from core import AUCSVM, PAUCSVM, PAUCSVMDC
from core.errors import InvalidData, InvalidParameter
from core.metrics import auc
from tests.core.linear.mapped_tables import NAMES, frame_of, mixed_table, xor
from tests.sentences import Sentences


@pytest.mark.filterwarnings("ignore::core.linear.SupportWarning")
@pytest.mark.parametrize("algorithm", [AUCSVM, PAUCSVM, PAUCSVMDC])
def test_xor_needs_a_kernel(algorithm: type[Any]) -> None:
    (X, y), (X_new, y_new) = xor(), xor(seed=1)
    plain = algorithm(C=100.0).fit(X, y)
    assert auc(y_new, plain.decision_function(X_new)) < 0.6
    for name in ("fourier", "nystroem"):
        ranker = algorithm(C=100.0, feature_map=name).fit(X, y)
        assert auc(y_new, ranker.decision_function(X_new)) > 0.97


def test_bins_follow_a_function_that_is_not_monotonous() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = (abs(X[:, 0]) < 0.7).astype(int)
    assert auc(y, AUCSVM(C=10.0).fit(X, y).decision_function(X)) < 0.65
    assert auc(y, AUCSVM(C=10.0, feature_map="bins").fit(X, y).decision_function(X)) > 0.98


def test_structure_says_what_bins_add() -> None:
    X, positive, _ = mixed_table(300)
    ranker = AUCSVM(feature_map="bins", max_bins=3, C=10.0).fit(frame_of(X), positive)
    told = ranker.structure()
    assert (told["map"], told["n_terms"]) == ("bins", 3 + 3 + 3 + 2 + 4)
    row = frame_of(X).iloc[[5]]
    added = ranker.offset_
    for term in told["terms"]:
        value = row[term["feature"]].iloc[0]
        if "is" in term:
            holds = (term["is"] is None) == bool(pd.isna(value)) and (
                term["is"] is None or value in term["is"]
            )
        else:
            low = -np.inf if term["above"] is None else term["above"]
            high = np.inf if term["up_to"] is None else term["up_to"]
            holds = low < value <= high
        assert term["words"].endswith(f"adds {term['weight']:.4g}")
        added += term["weight"] * holds
    assert added == pytest.approx(ranker.decision_function(row)[0])


def test_contributions_of_a_kernel_are_refused(sentences: Sentences) -> None:
    X, y = xor(50)
    ranker = AUCSVM(feature_map="fourier", C=1.0).fit(X, y)
    with sentences.raises(InvalidParameter):
        ranker.contributions(X)


@pytest.mark.parametrize("name", ["fourier", "nystroem"])
def test_sparse_rows_are_scored_as_dense_ones(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) * (rng.random((200, 6)) < 0.3)
    y = X[:, 0] + X[:, 1] ** 2 > 0.1
    ranker = AUCSVM(feature_map=name, n_components=30, C=10.0).fit(X, y)
    scores = ranker.decision_function(X)
    assert (ranker.decision_function(sparse.csr_matrix(X)) == scores).all()
    own = AUCSVM(feature_map=name, n_components=30, C=10.0).fit(sparse.csr_matrix(X), y)
    assert auc(y, own.decision_function(sparse.csc_matrix(X))) > 0.8


def test_bins_take_no_sparse_matrix(sentences: Sentences) -> None:
    X, y = xor(50)
    with sentences.raises(InvalidData):
        AUCSVM(feature_map="bins", C=1.0).fit(sparse.csr_matrix(X), y)


@pytest.mark.parametrize("name", NAMES)
def test_any_order_and_weights_as_rows(name: str) -> None:
    X, y = xor(150)
    X = np.column_stack([X, X[:, 0], np.where(X[:, 1] > 1, np.nan, X[:, 1])])
    ranker = AUCSVM(feature_map=name, n_components=20, C=10.0, tol=1e-9)
    # the gap of 1e-9 · C lets coefficients differ by √(2 · 1e-8)
    weight = np.random.default_rng(0).integers(1, 4, 150)
    scores = ranker.fit(X, y, weight).decision_function(X)
    rows, columns = np.random.default_rng(1).permutation(150), [3, 1, 0, 2]
    moved = ranker.fit(X[rows][:, columns], y[rows], weight[rows]).decision_function(X[:, columns])
    assert moved == pytest.approx(scores, abs=2e-4)
    repeated = ranker.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).decision_function(X)
    assert repeated == pytest.approx(scores, abs=2e-4)


def test_another_seed_draws_others() -> None:
    X, y = xor(100)
    for name in ("fourier", "nystroem"):
        one, other = (
            AUCSVM(feature_map=name, n_components=10, C=1.0, random_state=seed).fit(X, y)
            for seed in (0, 1)
        )
        assert (one.decision_function(X) != other.decision_function(X)).any()


EXTREMES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tiny": lambda B: B * 1e-300,
    "huge": lambda B: B * 1e307,
    "all scales": lambda B: B * [1e-200, 1.0, 1e200],
    "opposite ends": lambda B: np.where(B > 1, 1.7e308, -1.7e308),
    "constant": np.ones_like,
    "few distinct": lambda B: np.repeat(B[:4], 10, axis=0),
    "nothing but missing": lambda B: np.where([True, False, False], np.nan, B),
    "collinear": lambda B: np.repeat(B, 2, axis=1),
}


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::core.linear.SupportWarning")
@pytest.mark.filterwarnings("ignore:.*encountered in reduce:RuntimeWarning:sklearn")
@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("name", NAMES)
def test_scores_are_finite_whatever_the_numbers(name: str, extreme: str) -> None:
    B = np.random.default_rng(0).normal(size=(40, 3))
    X, y = EXTREMES[extreme](B), B[:, 0] ** 2 > 1
    for surrogate in ("tight", "sigmoid"):
        ranker = PAUCSVM(feature_map=name, n_components=30, C=1.0, fpr_max=0.3, surrogate=surrogate)
        ranker.fit(X, y)
        assert np.isfinite(ranker.decision_function(X)).all()
        for far in (np.nan, 1e308, -1e308):
            assert np.isfinite(ranker.score_rows(np.full((1, X.shape[1]), far))).all()
