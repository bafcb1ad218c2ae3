"""Smooth margin ranking: eq. 12's values, a smooth margin that never falls, the greatest margin."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import RankBoost, SmoothMarginRank, load, save
from core.boosting.smooth_margin_rank import smooth_step
from tests.long_form import LONG_FORM


def test_worked_steps() -> None:
    assert smooth_step(0.1, 0.6, 0.2) == pytest.approx(0.41996192, abs=5e-9)
    assert smooth_step(0.0, 0.6, 0.2) == pytest.approx(0.54930614, abs=5e-9)
    assert smooth_step(0.25, 0.5, 0.0) == pytest.approx(math.log(3), rel=1e-15)


@given(g=st.floats(0, 0.9), wrong=st.floats(1e-9, 0.3), edge=st.floats(1e-6, 0.4))
def test_the_stable_form_is_eq_12(g: float, wrong: float, edge: float) -> None:
    right = wrong + edge
    d_zero = 1 - right - wrong
    root = math.sqrt(g * g * d_zero**2 + (1 + g) * (1 - g) * 4 * right * wrong)
    plain = math.log((-g * d_zero + root) / ((1 + g) * 2 * wrong)) if wrong > 1e-6 else None
    step = smooth_step(g, right, wrong)
    if plain is not None:
        assert step == pytest.approx(max(plain, 0.0), abs=1e-6)
    if edge > g + 1e-6:  # eq. 11: the slope of -ln F̃ after the step is g
        tau = right * math.exp(-step) + wrong * math.exp(step) + d_zero
        slope = (right * math.exp(-step) - wrong * math.exp(step)) / tau
        assert slope == pytest.approx(g, abs=1e-9)


def separable(seed: int, n: int = 60, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X.sum(axis=1) + 0.3 * X[:, 0] > 0).astype(int)
    return X, y


@given(seed=st.integers(0, 2**32), weighted=st.booleans())
@settings(max_examples=250 if LONG_FORM else 10)
def test_the_smooth_margin_never_falls_nor_passes_the_margin(seed: int, weighted: bool) -> None:
    X, y = separable(seed, n=40)
    if len(set(y)) < 2:
        return
    weight = np.random.default_rng(seed).integers(1, 5, len(y)) if weighted else np.ones(len(y))
    ranker = SmoothMarginRank(n_rounds=250).fit(X, y, weight)
    g, margin = ranker.smooth_margin_, ranker.margin_
    assert (g <= margin + 1e-9).all()
    above = np.flatnonzero(g > 0)
    if len(above):
        assert (np.diff(g[above[0] :]) >= -1e-12).all()
    # the definition of both, on explicit pairs
    f, norm = ranker.decision_function(X), ranker.rounds_["alpha"].sum()
    pairs = f[y == 1][:, None] - f[y == 0][None, :]
    pair_weight = weight[y == 1][:, None] * weight[y == 0][None, :]
    pair_weight = pair_weight / pair_weight.min()
    assert margin[-1] == pytest.approx(pairs.min() / norm, abs=1e-9)
    log_sum = math.log((pair_weight * np.exp(pairs.min() - pairs)).sum()) - pairs.min()
    assert g[-1] == pytest.approx(-log_sum / norm, abs=1e-9)


def test_it_reaches_a_greater_margin_than_rankboost() -> None:
    X, y = separable(1)
    smooth = SmoothMarginRank(n_rounds=3000).fit(X, y)
    plain = RankBoost(n_rounds=3000, smoothing=0.0).fit(X, y)
    f = plain.decision_function(X)
    margin = (f[y == 1].min() - f[y == 0].max()) / plain.rounds_["alpha"].sum()
    assert smooth.margin_[-1] > margin > 0


@pytest.mark.parametrize("seed", [1, 2, 6])
def test_theorem_7s_progress_where_it_is_assured(seed: int) -> None:
    X, y = separable(seed)
    ranker = SmoothMarginRank(n_rounds=200).fit(X, y)
    g = np.concatenate([[0.0], ranker.smooth_margin_])
    alpha = ranker.rounds_["alpha"]
    r = ranker.rounds_["d_plus"] - ranker.rounds_["d_minus"]
    assured = ranker.progress_assured_
    least = 0.5 * alpha * (r - g[:-1]) / np.cumsum(alpha)
    assert assured.sum() > 20
    progress = np.diff(g) >= least - 1e-12
    assert progress[assured].all()
    assert not progress.all()  # the condition matters: other rounds fall behind the bound


def test_data_that_cannot_be_separated_are_left_to_coordinate_descent() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (200, 2)).astype(float)
    y = rng.integers(0, 2, 200)
    ranker = SmoothMarginRank(n_rounds=50).fit(X, y)
    assert (ranker.smooth_margin_ < 0).all()
    assert (ranker.margin_ <= 0).all()
    assert not ranker.progress_assured_.any()


def test_pairs_that_can_all_be_in_order_get_a_margin() -> None:
    X = np.arange(6.0)[:, None] * [1.0, -1.0]
    X[:, 1] = [0, 3, 1, 4, 2, 5]
    pairs = np.array([[1, 0], [2, 1], [3, 2], [5, 4], [4, 3]])
    ranker = SmoothMarginRank(n_rounds=400).fit_pairs(X, pairs, [1, 2, 1, 3, 1])
    f, norm = ranker.decision_function(X), ranker.rounds_["alpha"].sum()
    margin = (f[pairs[:, 0]] - f[pairs[:, 1]]).min() / norm
    assert ranker.margin_[-1] == pytest.approx(margin)
    assert 0 < ranker.smooth_margin_[-1] <= margin
    assert margin == pytest.approx(1 / 5, abs=0.01)  # five gaps share the weight of five cuts
    again = load(save(ranker))
    assert (again.margin_ == ranker.margin_).all()
    assert (again.smooth_margin_ == ranker.smooth_margin_).all()


def test_a_cycle_of_pairs_has_no_margin() -> None:
    X = np.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])
    ranker = SmoothMarginRank(n_rounds=50).fit_pairs(X, [[0, 1], [1, 2], [2, 0]], [1, 1, 3])
    assert (ranker.margin_ <= 0).all()
    assert (ranker.smooth_margin_ < 0).all()
