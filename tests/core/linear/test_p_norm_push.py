"""The p-norm push of linear scores: its loss over explicit pairs, the optimum by another solver."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from core import PNormPush, load, save
from core.base.monotone import check_monotone
from core.base.ranker import StopFit
from core.metrics import partial_auc
from tests.core.oracles import pair_loss
from tests.sentences import Sentences

Floats = np.ndarray


def make_rows(seed: int, n: int = 40) -> tuple[Floats, Floats, Floats]:
    """Return rows on a coarse grid (ties), labels of both classes, and whole weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    y = (X @ [1.0, -0.5, 0.0] + rng.normal(0, 1, n) > 0.3).astype(int)
    y[:2] = 0, 1
    return X, y, rng.integers(1, 4, n).astype(float)


def explicit(scores: Floats, y: Floats, weight: Floats, push: float) -> float:
    """Return the loss from the sum over pairs."""
    share = np.where(y == 1, weight / weight[y == 1].sum(), weight / weight[y == 0].sum())
    return float(np.log(pair_loss(scores, y == 1, share, push)) / push)


@pytest.mark.parametrize("monotone", [None, {1: "increasing", 2: "decreasing"}])
@pytest.mark.parametrize(("push", "C"), [(1.0, 0.3), (3.0, 1.0), (64.0, 30.0)])
def test_the_optimum_is_that_of_another_solver(push: float, C: float, monotone: Any) -> None:
    """Column 1 is against its constraint, so that its bound binds."""
    X, y, weight = make_rows(1)
    ranker = PNormPush(push=push, C=C, standardize=False, monotone=monotone).fit(X, y, weight)

    def objective(w: Floats) -> float:
        return float(0.5 * w @ w + C * explicit(X @ w, y, weight, push))

    bounds = [(None, None)] * 3 if monotone is None else [(None, None), (0, None), (None, 0)]
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}
    found = minimize(objective, np.zeros(3), method="L-BFGS-B", bounds=bounds, options=options)
    assert ranker.objective_ == pytest.approx(objective(ranker.coef_), abs=1e-9 * C)
    assert ranker.objective_ <= found.fun + 1e-9 * C
    assert ranker.coef_ == pytest.approx(found.x, abs=1e-3)
    if monotone is not None:
        assert ranker.coef_[1] == 0.0
        assert check_monotone(ranker).verdict == "proven"


def test_a_row_of_weight_k_is_k_rows_and_one_of_weight_zero_none() -> None:
    X, y, weight = make_rows(2)
    weight[5] = 0.0
    times = weight.astype(int)
    weighted = PNormPush(C=3.0).fit(X, y, weight)
    repeated = PNormPush(C=3.0).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-5)
    assert PNormPush(C=3.0).fit(X, y, 1e-90 * weight).coef_ == pytest.approx(
        weighted.coef_, abs=1e-5
    )


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_nothing_overflows(scale: float) -> None:
    X, y, _ = make_rows(3)
    X[:, 0] = np.where(y == 1, 5.0, -5.0)  # separable
    plain = PNormPush(C=1e6, push=64.0).fit(X, y).decision_function(X)
    assert plain[y == 1].min() > plain[y == 0].max()
    scaled = PNormPush(C=1e6, push=64.0).fit(X * scale, y).decision_function(X * scale)
    assert scaled == pytest.approx(plain, rel=1e-3)
    raw = PNormPush(C=1.0, push=64.0, standardize=False).fit(X * scale, y)
    assert np.isfinite(raw.decision_function(X * scale)).all()


def test_a_greater_push_raises_the_top_where_a_column_speaks_of_it_alone() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [500, 5000])
    X = rng.normal(size=(5500, 2)) + np.outer(y, [2.0, 1.2])
    X[500:600] = rng.normal([6.0, -1.0], 0.5, (100, 2))

    def top(push: float) -> float:
        scores = PNormPush(push=push, C=100.0).fit(X, y).decision_function(X)
        return partial_auc(y, scores, 0.0, 0.01)

    assert top(16.0) > top(1.0) + 0.05


def test_C_is_chosen_on_held_out_rows_and_a_stopped_choice_keeps_the_best(
    sentences: Sentences,
) -> None:
    X, y, weight = make_rows(4, 300)
    ranker = PNormPush().fit(X, y, weight)
    assert PNormPush(C=ranker.C_).fit(X, y, weight).coef_ == pytest.approx(ranker.coef_, abs=1e-4)
    again = load(save(ranker))
    assert again.decision_function(X).tobytes() == ranker.decision_function(X).tobytes()

    def stop_at_three(step: int, of: int, info: Any) -> None:
        if step >= 3:
            raise StopFit

    with sentences.warns(UserWarning):
        stopped = PNormPush().fit(X, y, weight, callback=stop_at_three)
    assert stopped.C_ <= 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PNormPush().fit([[0.0], [1.0]], [0, 1]).predict([[0.0], [1.0]]).tolist() == [0, 1]
