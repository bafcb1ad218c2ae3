"""The sigmoid surrogate held to double loops and finite differences, and the machine that lowers it."""

import json
import warnings
from typing import Any

import numpy as np
import pytest

from core import PAUCSVM, load, save
from core.errors import ArtifactError
from core.linear import SupportWarning
from core.linear.design import LinearSample, fit_design
from core.linear.solvers import Progress, SigmoidSolver, SolverLimits
from core.linear.surrogates import MAX_BLOCKS, MassWindow, SigmoidSurrogate, window_of
from core.metrics import partial_auc
from tests.sentences import Sentences


def sigmoid(t: float) -> float:
    return 1.0 / (1.0 + np.exp(-t))


def by_pairs(s: np.ndarray, z: np.ndarray, low: int, high: int) -> float:
    """The mean of 2σ(z_j - s_i) over the pairs with negatives j = low + 1 ... high from the top."""
    z = np.sort(z)[::-1]
    return float(np.mean([2 * sigmoid(z[j] - one) for one in s for j in range(low, high)]))


def draw(seed: int, n: int = 12, m: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=m) + 0.5, rng.normal(size=n)


@pytest.mark.parametrize("seed", range(20))
def test_the_mean_over_pairs(seed: int) -> None:
    s, z = draw(seed)
    low = seed % 5
    high = low + 1 + seed % 7
    if seed % 3 == 0:
        s, z = np.round(s), np.round(z)  # ties
    found = SigmoidSurrogate(np.ones(5), np.ones(12), MassWindow(low, high, 12.0)).at(s, z)
    assert found.value == pytest.approx(by_pairs(s, z, low, high))


def test_it_is_above_what_it_smooths_and_1_at_0() -> None:
    for seed in range(20):
        s, z = draw(seed)
        surrogate = SigmoidSurrogate(np.ones(5), np.ones(12), window_of(np.ones(12), 0.0, 0.5))
        y = np.r_[np.ones(5), np.zeros(12)]
        area = partial_auc(y, np.r_[s, z], 0.0, 0.5, standardize=False) / 0.5
        assert surrogate.at(s, z).value >= 1 - area - 1e-12
        assert surrogate.at(0 * s, 0 * z).value == pytest.approx(1.0)


def test_many_negatives_are_taken_in_blocks() -> None:
    s, z = draw(0, n=1000)
    low, high = 50, 300  # 2.5 negatives a block
    found = SigmoidSurrogate(np.ones(5), np.ones(1000), MassWindow(low, high, 1000.0)).at(s, z)
    ranked = np.sort(z)[::-1]
    halves = np.repeat(ranked[low:high], 2).reshape(MAX_BLOCKS, 5)  # two halves of each negative
    thresholds = halves.mean(axis=1)
    expected = np.mean([2 * sigmoid(t - one) for one in s for t in thresholds])
    assert found.value == pytest.approx(expected)
    assert found.value == pytest.approx(by_pairs(s, z, low, high), abs=1e-3)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_that_of_finite_differences(seed: int, weighted: bool) -> None:
    s, z = draw(seed, n=30 if seed % 2 else 400)
    rng = np.random.default_rng(seed)
    p, q = (rng.uniform(0.2, 2, len(part)) if weighted else np.ones(len(part)) for part in (s, z))
    surrogate = SigmoidSurrogate(p, q, window_of(q, 0.05, 0.6))
    found = surrogate.at(s, z)
    ds, dz = rng.normal(size=len(s)), rng.normal(size=len(z))
    step = 1e-6
    ahead, behind = (surrogate.at(s + t * ds, z + t * dz).value for t in (step, -step))
    assert found.slope(ds, dz) == pytest.approx((ahead - behind) / (2 * step), abs=1e-7)
    assert found.of_positives.sum() == pytest.approx(-found.of_negatives.sum())
    tangent = found.loss + found.slope(s, z)
    assert tangent == pytest.approx(found.value)


def test_weight_k_is_k_rows() -> None:
    s, z = draw(3, n=40)
    rng = np.random.default_rng(0)
    p, q = rng.integers(1, 4, 5).astype(float), rng.integers(1, 5, 40).astype(float)
    weighted = SigmoidSurrogate(p, q, window_of(q, 0.1, 0.5)).at(s, z)
    many = np.repeat(z, q.astype(int))
    repeated = SigmoidSurrogate(
        np.ones(int(p.sum())), np.ones(len(many)), window_of(np.ones(len(many)), 0.1, 0.5)
    ).at(np.repeat(s, p.astype(int)), many)
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.slope(s, z) == pytest.approx(repeated.slope(np.repeat(s, p.astype(int)), many))


def test_tied_negatives_share_alike() -> None:
    s, z = draw(1, n=30)
    z = np.round(2 * z)
    surrogate = SigmoidSurrogate(np.ones(5), np.ones(30), MassWindow(3.0, 9.0, 30.0))
    order = np.random.default_rng(0).permutation(30)
    shares = []
    for places in (np.arange(30), order):
        found = surrogate.at(s, z[places])
        share = np.zeros(30)
        share[places[found.rows]] = found.of_negatives
        shares.append(share)
    assert shares[1] == pytest.approx(shares[0])


def table(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] - 0.7 * X[:, 1] + rng.normal(size=n) > 1.0).astype(int)
    return X, y


def solver_of(
    X: np.ndarray, y: np.ndarray, window: tuple[float, float] = (0.0, 0.2)
) -> SigmoidSolver:
    rows = fit_design(X, np.ones(len(X)), np.zeros(X.shape[1], np.int64), standardize=True)
    sample = LinearSample(rows, np.flatnonzero(y == 1), np.flatnonzero(y == 0), np.ones(len(X)))
    return SigmoidSolver(sample, window, SolverLimits(1e-4, 1000), Progress(lambda *_: None))


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_descent_ends_low_and_never_above_its_start(C: float) -> None:
    solver = solver_of(*table())
    rng = np.random.default_rng(0)

    def objective(w: Any) -> Any:
        return 0.5 * w @ w + C * solver.problem.at(solver.problem.scores(w)).value

    for start in (np.zeros(3), np.array([1.0, -1.0, 0.0]), rng.normal(size=3)):
        found = solver.descend(C, np.zeros(3), solver.point(start))
        w = found.point.w
        assert found.converged
        assert found.objective == pytest.approx(objective(w))
        assert found.objective <= objective(start)
        nearby = [objective(w + 0.1 * np.linalg.norm(w) * rng.normal(size=3)) for _ in range(20)]
        assert found.objective <= min(nearby) + 1e-3 * C


def test_the_machine_tells_no_gap(sentences: Sentences) -> None:
    X, y = table()
    seen = []
    ranker = PAUCSVM(surrogate="sigmoid", C=100.0, fpr_max=0.2)
    ranker.fit(X, y, callback=lambda *report: seen.append(report))
    assert ranker.gap_ is None
    assert ranker.collapsed_ is False
    told = json.loads(json.dumps(ranker.structure(), allow_nan=False))
    assert told["gap"] is None
    steps = [step for step, *_ in seen]
    assert steps == sorted(steps)
    assert seen[-1][0] == seen[-1][1]
    again = load(save(ranker))
    assert again.gap_ is None
    assert (again.decision_function(X) == ranker.decision_function(X)).all()
    assert save(PAUCSVM(**ranker.get_params()).fit(X, y)) == save(ranker)
    plain = PAUCSVM(surrogate="tight", C=100.0, fpr_max=0.2).fit(X, y)
    for one, gap in ((ranker, 0.0), (plain, None)):
        arrays, meta = one.get_state()
        with sentences.raises(ArtifactError):
            PAUCSVM.from_state(one.get_params(), arrays, meta | {"gap": gap})


def outlying(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A fifth of the positives far behind: the mean of all is below that of the highest negatives."""
    rng = np.random.default_rng(seed)
    Xp, Xn = rng.normal(size=(100, 2)) * 0.3, rng.normal(size=(1000, 2))
    Xp[:, 0] += np.where(np.arange(100) < 80, 2.8, -3.0)
    return np.concatenate([Xp, Xn]), np.arange(1100) < 100


def test_it_need_not_collapse_where_the_convex_ones_do(sentences: Sentences) -> None:
    X, y = outlying()
    convex = PAUCSVM(C=100.0, fpr_max=0.05, anchor=None)
    with sentences.warns(SupportWarning):
        convex.fit(X, y)
    assert convex.collapsed_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        smooth = PAUCSVM(surrogate="sigmoid", C=100.0, fpr_max=0.05, anchor=None).fit(X, y)
    assert not smooth.collapsed_
    assert partial_auc(y, smooth.decision_function(X), 0, 0.05) / 0.05 > 0.7


def test_a_collapse_is_told_without_a_claim(sentences: Sentences) -> None:
    """The positives are in the middle of the negatives: whatever w, most of those in the window are above them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), np.arange(500) < 100
    X[y] *= 0.1
    ranker = PAUCSVM(surrogate="sigmoid", C=10.0, fpr_max=0.1, anchor=None)
    with sentences.warns(SupportWarning):
        ranker.fit(X, y)
    assert ranker.collapsed_
    assert ranker.critical_fpr_ is None
    assert ranker.gap_ is None
    assert load(save(ranker)).collapsed_


def test_classes_with_the_same_mean_have_no_start(sentences: Sentences) -> None:
    X = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    for window in ({}, {"fpr_max": 1.0}):
        with sentences.warns(SupportWarning):
            ranker = PAUCSVM(surrogate="sigmoid", C=1.0, **window).fit(X, [1, 1, 0, 0])
        assert (ranker.decision_function(X) == ranker.intercept_).all()
