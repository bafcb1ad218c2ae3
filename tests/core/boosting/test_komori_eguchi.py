"""Boosting splines for the smoothed partial AUC."""

from typing import Any

import numpy as np
import pytest

from core import KomoriEguchiBoost
from core.boosting.smooth_pauc import SmoothArea
from core.metrics import auc, partial_auc


def make_rows(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A continuous, a discrete, a binary and a constant column; some values missing; ties."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 6, n), rng.integers(0, 2, n), np.full(n, 7.0)]
    )
    y = (np.sin(2.0 * X[:, 0]) + 0.4 * X[:, 1] + X[:, 2] + rng.normal(size=n) > 2.2).astype(int)
    X[rng.random((n, 4)) < 0.05] = np.nan
    return X, y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("window", [(0.0, 1.0), (0.0, 0.1), (0.05, 0.3)])
@pytest.mark.parametrize("penalty", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("weak_ranker", ["spline", "stump"])
def test_every_round_raises_the_objective(
    window: tuple[float, float], penalty: float, weak_ranker: str
) -> None:
    X, y, weight = make_rows()
    low, high = window
    parameters = {"fpr_min": low, "fpr_max": high, "penalty": penalty, "weak_ranker": weak_ranker}
    ranker = KomoriEguchiBoost(n_rounds=8, **parameters).fit(X, y, weight)
    start = 1.0 - (low + high) / 2.0  # all scores equal: the diagonal
    assert (np.diff(np.append(start, ranker.loss_)) < 0.0).all()
    area = SmoothArea(y == 1, weight, low, high).at(ranker.decision_function(X))
    assert area.value == pytest.approx(ranker.smooth_pauc_[-1], abs=1e-9)
    fewer = KomoriEguchiBoost(n_rounds=3, **parameters).fit(X, y, weight)
    assert (fewer.loss_ == ranker.loss_[:3]).all()


def test_the_penalty_is_what_splines_bend() -> None:
    X, y, _ = make_rows(seed=1)
    X, y = X[~np.isnan(X[:, :1]).any(axis=1), :1], y[~np.isnan(X[:, :1]).any(axis=1)]
    ranker = KomoriEguchiBoost(n_rounds=20, penalty=0.01, n_knots=6).fit(X, y)
    share = np.where(y == 1, 0.5 / y.sum(), 0.5 / (1 - y).sum())
    deviation = np.sqrt(share @ (X[:, 0] - share @ X[:, 0]) ** 2)
    x = np.linspace(X.min(), X.max(), 200_001)
    f = ranker.contributions(x[:, None])[:, 0]
    h = (x[1] - x[0]) / deviation
    bent = (np.diff(f, 2) ** 2).sum() / h**3
    price = ranker.loss_[-1] - (1.0 - ranker.smooth_pauc_[-1])
    assert price == pytest.approx(0.01 * bent, rel=1e-3)


def test_the_penalty_is_what_steps_differ() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (200, 1)).astype(float)
    y = (X[:, 0] + rng.normal(size=200) > 2.5).astype(int)
    ranker = KomoriEguchiBoost(n_rounds=15, penalty=0.01).fit(X, y)
    jumps = np.diff(ranker.contributions(np.arange(5.0)[:, None])[:, 0])
    price = ranker.loss_[-1] - (1.0 - ranker.smooth_pauc_[-1])
    assert price == pytest.approx(0.01 * (np.diff(np.r_[0.0, jumps, 0.0]) ** 2).sum(), abs=1e-12)


def test_splines_are_smooth_within_and_constant_outside() -> None:
    X, y, _ = make_rows()
    ranker = KomoriEguchiBoost(n_rounds=10).fit(X, y)
    knots = np.array(ranker.structure()["features"][0]["breaks"])

    def f(x: Any) -> Any:
        return ranker.contributions(np.column_stack([x, np.full((len(x), 3), np.nan)]))[:, 0]

    e = 1e-5
    inner = knots[1:-1]
    assert f(inner - 1e-12) == pytest.approx(f(inner + 1e-12), abs=1e-8)
    slopes = [(f(inner) - f(inner - e)) / e, (f(inner + e) - f(inner)) / e]
    assert slopes[0] == pytest.approx(slopes[1], abs=1e-2)
    assert f(np.array([knots[0] - 1.0, -1e300])) == pytest.approx(f(knots[[0, 0]]), abs=1e-12)
    assert f(np.array([knots[-1] + 1.0, 1e300])) == pytest.approx(f(knots[[-1, -1]]), abs=1e-12)


def test_a_curved_feature_that_no_line_can_rank() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (np.abs(X[:, 0]) + 0.3 * rng.normal(size=600) < 0.5).astype(int)
    ranker = KomoriEguchiBoost(fpr_max=1.0).fit(X, y)
    assert auc(y, ranker.decision_function(X)) > auc(y, -np.abs(X[:, 0])) - 0.01


def test_the_window_is_what_is_raised() -> None:
    """A column that is good at the top, and one that is good over the whole curve."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [400, 1600])
    X = np.empty((2000, 2))
    X[:, 0] = rng.normal(size=2000) + 1.2 * y
    X[:, 1] = np.where((y == 1) & (rng.random(2000) < 0.4), 5.0, 0.0) + 0.1 * rng.normal(size=2000)
    X[y == 0, 1] += rng.exponential(size=1600) * (rng.random(1600) < 0.5)
    scores = [
        KomoriEguchiBoost(n_rounds=4, fpr_max=high).fit(X, y).decision_function(X)
        for high in (0.02, 1.0)
    ]
    assert partial_auc(y, scores[0], 0.0, 0.02) > partial_auc(y, scores[1], 0.0, 0.02)
    assert auc(y, scores[1]) > auc(y, scores[0])


def test_missing_values_have_a_step_of_their_own() -> None:
    y = np.repeat([1, 0], 50)
    X = np.random.default_rng(0).normal(size=(100, 1))
    X[y == 1] = np.nan
    ranker = KomoriEguchiBoost(n_rounds=40, penalty=0.0).fit(X, y)
    assert auc(y, ranker.decision_function(X)) == 1.0
    assert np.isnan(ranker.rounds_["knot"][0])
    assert (ranker.predict(X) == y).all()


def test_a_perfect_feature_ends_the_rounds() -> None:
    x = np.r_[np.arange(20.0), np.arange(100.0, 120.0)]
    ranker = KomoriEguchiBoost(penalty=0.0, weak_ranker="stump", n_rounds=500)
    ranker.fit(x[:, None], x > 50)
    assert ranker.stop_reason_ == "perfect_ranker"
    assert ranker.smooth_pauc_[-1] > 1.0 - 1e-6


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_units_do_not_matter(scale: float) -> None:
    X, y, weight = make_rows()
    expected = KomoriEguchiBoost(n_rounds=10).fit(X, y, weight).decision_function(X)
    ranker = KomoriEguchiBoost(n_rounds=10).fit(scale * X, y, weight)
    assert ranker.decision_function(scale * X) == pytest.approx(expected, abs=1e-6)


def test_absurd_ranges_and_weights_are_survived() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[0, 0], X[1, 0] = 1.7e308, -1.7e308
    X[2, 1] = 1e200
    X[:, 2] = 5e-324 * rng.integers(0, 40, 60)
    y = rng.integers(0, 2, 60)
    weight = 10.0 ** rng.uniform(-100, 100, 60)
    with np.errstate(all="raise", under="ignore"):
        ranker = KomoriEguchiBoost().fit(X, y, weight)
    scores = ranker.decision_function(np.r_[X, [[1.7e308, -1.7e308, 1.0]]])
    assert np.isfinite(scores).all()
