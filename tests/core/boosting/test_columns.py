"""Given columns as weak rankers: paper 2's own setting, on explicit pairs, matrices and two classes."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

from core import CoordinateRankBoost, RankBoost, SmoothMarginRank, save
from core.errors import InvalidData
from tests.core.boosting.test_fit_pairs import random_pairs
from tests.core.oracles import pairs_of_classes
from tests.core.threads import on_one_thread_and_on_all
from tests.long_form import long_form
from tests.sentences import Sentences

ALL = pytest.mark.parametrize("algorithm", [RankBoost, CoordinateRankBoost, SmoothMarginRank])

# Rudin, Daubechies & Schapire, "The dynamics of AdaBoost", JMLR 5, 2004: AdaBoost comes to cycle on
# it, below the greatest margin.
CYCLIC = """
-+++ +--+
-++- -+++
+-++ +-++
+-++ -+++
+-+- +++-
++-+ +++-
++-+ ++-+
++++ --+-
"""


@pytest.fixture(scope="module")
def cyclic() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eight pairs of which row i ranks column j's way M_ij = ±1: each against one row of zeros."""
    rows = [row.replace(" ", "") for row in CYCLIC.split("\n") if row]
    M = np.array([[1.0 if sign == "+" else -1.0 for sign in row] for row in rows])
    return M, np.vstack([M, np.zeros(8)]), np.array([1] * 8 + [0])


def greatest_margin(M: np.ndarray) -> float:
    """ρ = max over ‖λ‖₁ = 1 of min_i (Mλ)_i, by linear programming."""
    m, n = M.shape
    program = linprog(
        np.r_[np.zeros(2 * n), -1.0],
        A_ub=np.c_[-M, M, np.ones(m)],
        b_ub=np.zeros(m),
        A_eq=[np.r_[np.ones(2 * n), 0.0]],
        b_eq=[1.0],
        bounds=[(0, None)] * (2 * n) + [(None, None)],
    )
    return -program.fun


def margin(ranker: Any, X: np.ndarray, y: np.ndarray) -> float:
    f = ranker.decision_function(X)
    return (f[y == 1].min() - f[y == 0].max()) / ranker.rounds_["alpha"].sum()


@pytest.mark.parametrize("algorithm", [RankBoost, CoordinateRankBoost])
def test_rankboost_stalls_below_the_greatest_margin(
    cyclic: tuple[np.ndarray, np.ndarray, np.ndarray], algorithm: type[Any]
) -> None:
    M, X, y = cyclic
    assert greatest_margin(M) == pytest.approx(3 / 8)
    ranker = algorithm(n_rounds=300, weak_ranker="column", smoothing=0.0).fit(X, y)
    assert margin(ranker, X, y) == pytest.approx(1 / 3, abs=2e-3)
    cycle = ranker.rounds_["feature"][-150:]
    assert (cycle[3:] == cycle[:-3]).all()


def test_smooth_margin_ranking_does_not(cyclic: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    _, X, y = cyclic
    ranker = SmoothMarginRank(n_rounds=2000, weak_ranker="column").fit(X, y)
    assert ranker.margin_[-1] > 0.372
    assert ranker.smooth_margin_[-1] > 0.36
    positive = ranker.smooth_margin_[ranker.smooth_margin_ > 0]
    assert (np.diff(positive) >= -1e-12).all()
    assert margin(ranker, X, y) == pytest.approx(ranker.margin_[-1])


def table(
    seed: int, n: int = 30, d: int = 4, *, binary: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    if binary:
        X = (X > 0).astype(float)
    y = (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    return X, y, rng.integers(1, 4, n).astype(float)


class Pairs:
    """The ranking loss on explicit pairs."""

    def __init__(self, X: Any, y: Any, weight: Any) -> None:
        self.M = (X[y == 1][:, None, :] - X[y == 0][None, :, :]).reshape(-1, X.shape[1])
        self.weight = (weight[y == 1][:, None] * weight[y == 0][None, :]).ravel()
        self.f = np.zeros(len(self.M))

    def d(self) -> Any:
        terms = self.weight * np.exp(-self.f)
        return terms / terms.sum()

    def fall(self, j: Any) -> Any:
        """Return the decrease of the loss by the best step along a column."""
        d, h = self.d(), self.M[:, j]
        if h.min() >= 0 or h.max() <= 0:
            return 1 - d[h == 0].sum()
        return 1 - minimize_scalar(lambda a: d @ np.exp(-a * h), method="brent").fun


@ALL
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_round_is_the_one_that_the_pairs_ask_for(
    algorithm: type[Any], binary: bool, seed: int
) -> None:
    X, y, weight = table(seed, binary=binary)
    smoothing = {} if algorithm is SmoothMarginRank else {"smoothing": 0.0}
    ranker = algorithm(n_rounds=12, weak_ranker="column", **smoothing).fit(X, y, weight)
    pairs = Pairs(X, y, weight)
    for row in ranker.rounds_:
        d = pairs.d()
        slopes = d @ pairs.M
        j, sign, alpha = row["feature"], row["sign"], row["alpha"]
        if algorithm is RankBoost:
            falls = [pairs.fall(k) for k in range(X.shape[1])]
            assert falls[j] == pytest.approx(max(falls), rel=1e-6)
        else:
            assert abs(slopes[j]) == pytest.approx(np.abs(slopes).max(), rel=1e-9)
        assert sign == np.sign(slopes[j])
        h = sign * pairs.M[:, j]
        assert row["d_plus"] == pytest.approx(d[h > 0].sum(), abs=1e-9)
        assert row["d_minus"] == pytest.approx(d[h < 0].sum(), abs=1e-9)
        # the loss is least there: no pair's data is separable in these tables
        after = d * np.exp(-alpha * h)
        assert (after @ h) / after.sum() == pytest.approx(0.0, abs=1e-9)
        pairs.f += alpha * h
    loss = (pairs.weight * np.exp(-pairs.f)).sum()
    scale = (weight[y == 1].min() * weight[y == 0].min()) if algorithm is SmoothMarginRank else 1
    assert ranker.loss_[-1] == pytest.approx(loss / scale, rel=1e-9)


@ALL
def test_a_column_in_perfect_order_ends_the_run(algorithm: type[Any]) -> None:
    X = np.array([[0.0], [0.4], [0.7], [2.0]])
    ranker = algorithm(weak_ranker="column").fit(-X, [0, 0, 1, 1])
    assert ranker.stop_reason_ == "perfect_ranker"
    assert np.diff(ranker.decision_function(-X)).min() > 0


@ALL
def test_values_beyond_all_sums_are_refused(algorithm: type[Any], sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        algorithm(weak_ranker="column").fit([[1e200], [0.0]], [0, 1])


@ALL
@pytest.mark.parametrize("binary", [True, False])
def test_one_thread_or_two_same_bits(algorithm: type[Any], binary: bool) -> None:
    X, y, weight = table(0, n=30_000, binary=binary)  # long enough for BLAS to share a sum out
    one, all_of_them = on_one_thread_and_on_all(
        lambda: save(algorithm(n_rounds=4, weak_ranker="column").fit(X, y, weight))
    )
    assert one == all_of_them


def test_rounds_do_not_hold_the_rows() -> None:
    """The memory that the search of a step takes per row is freed: otherwise memory would grow with every round."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4_000, 2))
    y = X.sum(axis=1) + rng.normal(size=len(X)) > 0
    held: list[int] = []
    tracemalloc.start()
    try:
        CoordinateRankBoost(n_rounds=40, weak_ranker="column").fit(
            X, y, callback=lambda *_: held.append(tracemalloc.get_traced_memory()[0])
        )
    finally:
        tracemalloc.stop()
    assert len(held) > 20
    assert held[-1] - held[2] < X.nbytes


# On listed pairs, Figure 1's own setting.


def z(alpha: float, d: np.ndarray, differences: np.ndarray) -> float:
    """The loss after a step, over the loss before it."""
    return (d * np.exp(-alpha * differences)).sum()


def some_pairs(seed: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, pairs, weight = random_pairs(seed, n=20, d=4, n_pairs=90, missing=0.1)
    if kind == "binary":
        X = np.where(np.isnan(X), X, X > 0)
    if kind == "mixed":
        X[:, 0] = X[:, 0] > 0
        X[:, 3] = 7.3  # constant: it ranks nothing
    return X, pairs, weight


@pytest.mark.parametrize("algorithm", [RankBoost, CoordinateRankBoost])
@pytest.mark.parametrize("kind", ["binary", "real", "mixed"])
def test_every_round_is_the_one_that_the_pairs_ask_for(algorithm: type[Any], kind: str) -> None:
    for seed in range(3):
        X, pairs, weight = some_pairs(seed, kind)
        ranker = algorithm(n_rounds=8, weak_ranker="column", smoothing=0.0)
        ranker.fit_pairs(X, pairs, weight)
        h = np.nan_to_num(X)[pairs]
        differences = h[:, 0] - h[:, 1]
        scores = np.zeros(len(pairs))
        for taken, loss in zip(ranker.rounds_, ranker.loss_, strict=True):
            terms = weight * np.exp(-scores)
            d = terms / terms.sum()

            best = [minimize_scalar(z, args=(d, x), bounds=(-20, 20)).fun for x in differences.T]
            slopes = np.abs(d @ differences)
            j, alpha = taken["feature"], taken["alpha"] * taken["sign"]
            if algorithm is RankBoost:
                assert best[j] == pytest.approx(min(best), abs=1e-6)
            else:
                assert slopes[j] == pytest.approx(slopes.max())
            assert z(alpha, d, differences[:, j]) == pytest.approx(best[j], abs=1e-6)
            signed = taken["sign"] * differences[:, j]
            assert taken["d_plus"] == pytest.approx(d[signed > 0].sum())
            assert taken["d_minus"] == pytest.approx(d[signed < 0].sum())
            scores += alpha * differences[:, j]
            assert loss == pytest.approx((weight * np.exp(-scores)).sum())
        f = ranker.decision_function(X)[pairs]
        assert f[:, 0] - f[:, 1] == pytest.approx(scores)


@ALL
@pytest.mark.parametrize("kind", ["binary", "real"])
def test_all_pairs_of_two_classes_are_the_bipartite_way(algorithm: type[Any], kind: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] - X[:, 1] + rng.normal(size=60) > 0).astype(int)
    if kind == "binary":
        X = (X > 0).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    listed = algorithm(n_rounds=25, weak_ranker="column").fit_pairs(X, pairs_of_classes(y))
    bipartite = algorithm(n_rounds=25, weak_ranker="column").fit(X, y)
    assert (listed.rounds_["feature"] == bipartite.rounds_["feature"]).all()
    for field in ("alpha", "d_plus", "d_minus"):
        assert listed.rounds_[field] == pytest.approx(bipartite.rounds_[field], rel=1e-6)
    assert listed.loss_ == pytest.approx(bipartite.loss_)
    difference = bipartite.decision_function(X) - listed.decision_function(X)
    assert difference == pytest.approx(np.full(60, bipartite.intercept_))


@long_form
def test_smooth_margin_ranking_goes_to_the_greatest_margin(
    cyclic: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Figure 1's matrix M as pairs of their own items: row i is x_better - x_worse of pair i."""
    M, _, _ = cyclic
    better, worse = np.maximum(M, 0.0), np.maximum(-M, 0.0)
    X = np.stack([better, worse], axis=1).reshape(16, 8)
    pairs = np.arange(16).reshape(8, 2)
    rho = greatest_margin(M)
    climbs = SmoothMarginRank(n_rounds=3000, weak_ranker="column").fit_pairs(X, pairs)
    assert rho == pytest.approx(3 / 8)
    assert climbs.margin_[-1] == pytest.approx(rho, abs=5e-3)
    assert (np.diff(climbs.smooth_margin_[climbs.smooth_margin_ > 0]) >= -1e-12).all()


def test_values_too_great_are_refused_where_a_pair_names_them(sentences: Sentences) -> None:
    X = np.array([[1.0], [2.0], [1e200]])
    RankBoost(weak_ranker="column", n_rounds=2).fit_pairs(X, [(1, 0)])
    with sentences.raises(InvalidData):
        RankBoost(weak_ranker="column").fit_pairs(X, [(1, 2)])
