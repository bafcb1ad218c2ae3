"""TopPush: the surrogate by definition; the optimum by the paper's dual and a quadratic program; the collapse."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from core import AUCSVM, PAUCSVM, TopPush, load, save
from core.errors import InvalidData
from core.linear import SupportWarning
from core.linear.surrogates import MassWindow, TopSurrogate
from tests.sentences import Sentences

Floats = np.ndarray


def make_rows(
    seed: int, n_positives: int = 12, n_negatives: int = 18, n_features: int = 3
) -> tuple[Floats, Floats, Floats]:
    """Return rows on a coarse grid (ties), labels and whole weights."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0], [n_positives, n_negatives])
    X = rng.normal(size=(len(y), n_features)) + 1.8 * y[:, None]
    return X.round(1), y, rng.integers(1, 4, len(y)).astype(float)


def risk(w: Floats, X: Floats, y: Floats, weight: Floats) -> float:
    """Return the mean squared hinge loss of the positives, each against the negative that costs most."""
    scores = X @ w
    losses = [max(max(1.0 + z - s, 0.0) ** 2 for z in scores[y == 0]) for s in scores[y == 1]]
    return float(np.average(losses, weights=weight[y == 1]))


def project(a: Floats, b: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Return the nearest point with a, b >= 0 and p·a = Σ b, distances of a weighted by p (the paper's Algorithm 2).

    It is (a - shift)₊ and (b + shift)₊. The sums of both are linear in the shift between neighbouring ends.
    """
    ends = np.sort(np.concatenate([a, -b]))
    excess = np.maximum(a - ends[:, None], 0.0) @ p - np.maximum(b + ends[:, None], 0.0).sum(axis=1)
    k = int(np.searchsorted(-excess, 0.0))
    if k == 0:
        return np.zeros_like(a), np.zeros_like(b)
    k = min(k, len(ends) - 1)
    fraction = excess[k - 1] / (excess[k - 1] - excess[k]) if excess[k - 1] > excess[k] else 0.0
    shift = ends[k - 1] + fraction * (ends[k] - ends[k - 1])
    return np.maximum(a - shift, 0.0), np.maximum(b + shift, 0.0)


def solve_dual(
    X: Floats, y: Floats, weight: Floats, C: float, n_steps: int
) -> tuple[Floats, float]:
    """Return w and the value of the dual by accelerated gradient (Li, Jin & Zhou 2014, Algorithm 1), with restarts.

    The dual is max Σ p (a - a²/4) - ½ C ‖Xᵀa - Zᵀb‖² over the variables a of the positives and b of the negatives,
    and w = C (Xᵀ(p a) - Zᵀb).
    """
    positives, negatives = X[y == 1], X[y == 0]
    p = weight[y == 1] / weight[y == 1].sum()
    both = np.vstack([np.sqrt(p)[:, None] * positives, -negatives])
    step = 1.0 / (0.5 + C * np.linalg.norm(both, 2) ** 2)
    a, b = np.zeros(len(p)), np.zeros(len(negatives))
    last_a, last_b, t = a, b, 1.0
    for _ in range(n_steps):
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        pull = (t - 1.0) / t_next
        ahead_a, ahead_b = a + pull * (a - last_a), b + pull * (b - last_b)
        w = C * (positives.T @ (p * ahead_a) - negatives.T @ ahead_b)
        last_a, last_b = a, b
        a, b = project(
            ahead_a - step * (ahead_a / 2.0 - 1.0 + positives @ w),
            ahead_b + step * (negatives @ w),
            p,
        )
        turn = (p * (ahead_a - a)) @ (a - last_a) + (ahead_b - b) @ (b - last_b)
        t = 1.0 if turn > 0.0 else t_next
    w = C * (positives.T @ (p * a) - negatives.T @ b)
    return w, float(C * (p @ (a - a * a / 4.0)) - 0.5 * w @ w)


@pytest.mark.parametrize("seed", range(5))
def test_the_surrogate_is_its_definition_and_its_plane_a_lower_bound(seed: int) -> None:
    X, y, weight = make_rows(seed)
    rng = np.random.default_rng(seed)
    q = weight[y == 0]
    surrogate = TopSurrogate(weight[y == 1], q, MassWindow(0.0, q.min(), q.sum()))
    for _ in range(10):
        w = rng.normal(size=3).round(1)
        scores = X @ w
        found = surrogate.at(scores[y == 1], scores[y == 0])
        assert found.value == pytest.approx(risk(w, X, y, weight), abs=1e-12)
        row_weight = np.zeros(len(y))
        row_weight[np.flatnonzero(y == 1)] = found.of_positives
        row_weight[np.flatnonzero(y == 0)[found.rows]] = found.of_negatives
        gradient = row_weight @ X
        assert row_weight.sum() == pytest.approx(0.0, abs=1e-12)
        assert found.loss + gradient @ w == pytest.approx(found.value, abs=1e-12)
        for other in w + rng.normal(size=(20, 3)):
            assert risk(other, X, y, weight) >= found.loss + gradient @ other - 1e-12


@pytest.mark.parametrize(("seed", "C"), [(0, 0.03), (1, 1.0), (2, 30.0)])
def test_the_optimum_is_that_of_the_dual_and_of_a_quadratic_program(seed: int, C: float) -> None:
    """Two other ways to it: a variable per row under the paper's constraint, and a bound per pair of rows."""
    X, y, weight = make_rows(seed)
    machine = TopPush(C=C, tol=1e-9, max_iter=10_000, standardize=False, anchor=None)
    machine.fit(X, y, weight)
    assert not machine.collapsed_
    X = X - np.average(X, axis=0, weights=weight)  # nothing depends on where the columns' zero is
    reached = 0.5 * machine.coef_ @ machine.coef_ + C * risk(machine.coef_, X, y, weight)
    assert reached == pytest.approx(machine.objective_, rel=1e-9)

    w, bound = solve_dual(X, y, weight, C, 4_000)
    assert bound <= reached <= bound + 1e-6 * C
    assert machine.coef_ == pytest.approx(w, abs=1e-3 * max(C, 1.0))

    p = weight[y == 1] / weight[y == 1].sum()
    positives, negatives = X[y == 1], X[y == 0]
    n_features, m = (
        X.shape[1],
        len(p),
    )  # the variables are w, the highest score t, and each positive's shortfall

    def objective(v: Floats) -> float:
        return float(0.5 * v[:n_features] @ v[:n_features] + C * p @ v[-m:] ** 2)

    def slope(v: Floats) -> Floats:
        return np.concatenate([v[:n_features], [0.0], 2.0 * C * p * v[-m:]])

    pushed = np.hstack([positives, -np.ones((m, 1)), np.eye(m)])
    above = np.hstack([-negatives, np.ones((len(negatives), 1)), np.zeros((len(negatives), m))])
    found = minimize(
        objective,
        np.concatenate([np.zeros(n_features + 1), np.ones(m)]),
        jac=slope,
        method="SLSQP",
        bounds=[(None, None)] * (n_features + 1) + [(0.0, None)] * m,
        constraints=[
            {"type": "ineq", "fun": lambda v: pushed @ v - 1.0, "jac": lambda _: pushed},
            {"type": "ineq", "fun": lambda v: above @ v, "jac": lambda _: above},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success
    assert reached == pytest.approx(found.fun, abs=1e-6 * C)


def test_more_positives_stand_above_every_negative_than_with_the_whole_area() -> None:
    """One negative in a hundred lies far beyond the positives in a column that orders most pairs correctly."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [300, 1000])
    X = rng.normal(size=(1300, 2)) + np.outer(y, [3.0, 3.0])
    X[300:310] = rng.normal([12.0, 0.0], 0.5, (10, 2))

    def above_all(ranker: Any) -> float:
        scores = ranker.fit(X, y).decision_function(X)
        return float((scores[y == 1] > scores[y == 0].max()).mean())

    assert above_all(TopPush(C=100.0)) > 0.7 > 0.5 > above_all(AUCSVM(C=100.0))


def test_a_row_of_weight_k_is_k_rows_and_one_of_weight_zero_none() -> None:
    X, y, weight = make_rows(3)
    weight[[2, 20]] = 0.0
    X[20] = 50.0  # a negative above all others, but for its weight
    times = weight.astype(int)
    tight: dict[str, Any] = {"C": 2.0, "tol": 1e-9, "max_iter": 10_000, "anchor": None}
    weighted = TopPush(**tight).fit(X, y, weight)
    repeated = TopPush(**tight).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-8)
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-4)
    scaled = TopPush(**tight).fit(X, y, 1e-90 * weight)
    assert scaled.coef_ == pytest.approx(weighted.coef_, abs=1e-4)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e140])
def test_the_scale_of_a_column_does_not_matter(scale: float) -> None:
    X, y, _ = make_rows(4)
    plain = TopPush(C=1.0).fit(X, y).decision_function(X)
    assert TopPush(C=1.0).fit(X * scale, y).decision_function(X * scale) == pytest.approx(plain)
    raw = TopPush(C=1.0, standardize=False, max_iter=50)
    with warnings.catch_warnings():  # a raw scale may be too great or small to learn from
        warnings.simplefilter("ignore", SupportWarning)
        assert np.isfinite(raw.fit(X * scale, y).decision_function(X * scale)).all()


def test_positives_inside_the_hull_of_the_negatives_collapse_and_are_anchored(
    sentences: Sentences,
) -> None:
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], [40, 400])
    X = rng.normal(size=(440, 2)) * np.where(y, 0.5, 3.0)[:, None] + y[:, None]
    with sentences.warns(SupportWarning):
        alone = TopPush(C=1.0, anchor=None).fit(X, y)
    assert alone.collapsed_
    assert alone.objective_ == alone.C_
    assert not alone.coef_.any()
    with sentences.warns(SupportWarning):
        anchored = TopPush(C=1.0).fit(X, y)
    assert anchored.collapsed_
    assert anchored.anchor_cost_ is not None
    assert anchored.coef_.any()
    near = anchored.critical_fpr_
    assert near == alone.critical_fpr_
    assert near is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error", SupportWarning)
        PAUCSVM(C=1.0, anchor=None, fpr_max=1.03 * near).fit(X, y)
    again = load(save(anchored))
    assert again.decision_function(X).tobytes() == anchored.decision_function(X).tobytes()


def test_one_positive_and_one_negative_and_one_class() -> None:
    ranker = TopPush().fit([[0.0], [1.0]], [0, 1])
    assert ranker.predict([[0.0], [1.0]]).tolist() == [0, 1]
    with pytest.raises(InvalidData, match="class"):
        TopPush().fit([[0.0], [1.0]], [1, 1])
    with pytest.raises(InvalidData):
        TopPush().fit([[0.0], [1.0]], [0, 1], [0.0, 1.0])
