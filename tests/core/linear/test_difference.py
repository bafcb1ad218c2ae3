"""CCCP: the linearisation by finite differences, the objective by its definition, and a descent in every step."""

from typing import Any

import numpy as np
import pytest

from core import AUCSVM, PAUCSVM, PAUCSVMDC
from core.base.ranker import ignore
from core.linear.design import LinearSample, fit_design
from core.linear.solvers import DifferenceSolver, Progress, SolverLimits
from tests.core.linear.surrogate_oracle import hinge

WINDOW = (0.1, 0.4)
LOW, HIGH = 4, 16


def make_solver(
    seed: int = 0, m: int = 15, n: int = 40, d: int = 3, shift: float = 1.5
) -> tuple[DifferenceSolver, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m + n, d))
    X[:m, 0] += shift
    rows = fit_design(X, np.ones(m + n), np.zeros(d, np.int64), standardize=False)
    sample = LinearSample(rows, np.arange(m), np.arange(m, m + n), np.ones(m + n))
    solver = DifferenceSolver(sample, WINDOW, SolverLimits(1e-6, 2000), Progress(ignore))
    return solver, X[:m], X[m:]


@pytest.mark.parametrize("seed", range(10))
def test_the_objective_is_the_hinge_of_the_window(seed: int) -> None:
    solver, Xp, Xn = make_solver(seed)
    w, center = np.random.default_rng(seed).normal(size=(2, 3))
    value = solver.value(2.0, center, solver.point(w))
    expected = 0.5 * ((w - center) ** 2).sum() + 2.0 * hinge(Xp @ w, Xn @ w, LOW, HIGH)
    assert value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_linearisation_by_finite_differences(seed: int) -> None:
    """The plane's gradient is that of R_α, and the constant with which it comes is j_α/(j_β - j_α)."""
    solver, Xp, Xn = make_solver(seed)
    w = np.random.default_rng(seed).normal(size=3)
    gradient = solver.lower_gradient(solver.point(w))
    step = 1e-6
    for k in range(3):
        e = step * np.eye(3)[k]
        rise = hinge(Xp @ (w + e), Xn @ (w + e), 0, LOW) - hinge(Xp @ (w - e), Xn @ (w - e), 0, LOW)
        assert gradient[k] == pytest.approx(rise / (2 * step), abs=1e-5)
    assert solver.weights == (HIGH / (HIGH - LOW), LOW / (HIGH - LOW))


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_every_step_descends(C: float) -> None:
    """The surrogate that a step minimises touches the objective at its start and lies above it elsewhere."""
    solver, Xp, Xn = make_solver(3)
    point, center = solver.point(np.array([1.0, -1.0, 0.5])), np.zeros(3)
    start = solver.value(C, center, point)
    moved = center + C * solver.weights.lower * solver.lower_gradient(point)
    touching = None
    for w in (point.w, *np.random.default_rng(0).normal(size=(50, 3))):
        above = 0.5 * ((w - moved) ** 2).sum() + C * solver.weights.upper * hinge(
            Xp @ w, Xn @ w, 0, HIGH
        )
        value = 0.5 * (w**2).sum() + C * hinge(Xp @ w, Xn @ w, LOW, HIGH)
        touching = above - value if touching is None else touching
        assert above - value >= touching - 1e-9
    found = solver.descend(C, center, point)
    assert found.objective < start
    assert found.converged
    again = solver.descend(C, center, found.point)
    assert again.objective >= found.objective - 1e-4 * C


def test_from_zero_on_it_is_the_convex_machine() -> None:
    rng = np.random.default_rng(0)
    y = rng.random(500) < 0.3
    X = rng.normal(size=(500, 3))
    X[y, 0] += 1.5
    convex = PAUCSVM(fpr_max=0.3, C=1.0, tol=1e-7, max_iter=5000).fit(X, y)
    same = PAUCSVMDC(fpr_max=0.3, C=1.0, tol=1e-7, max_iter=5000).fit(X, y)
    assert same.objective_ == pytest.approx(convex.objective_, rel=1e-6)


def test_it_is_lower_in_the_hinge_than_its_start() -> None:
    rng = np.random.default_rng(1)
    y = rng.random(1000) < 0.2
    X = rng.normal(size=(1000, 4))
    X[y, 0] += 2.0
    X[y, 1] *= 2.0
    ranker = PAUCSVMDC(fpr_min=0.1, fpr_max=0.3, C=10.0).fit(X, y)
    start = AUCSVM(C=10.0).fit(X, y)
    n = (~y).sum()
    low, high = int(n * 0.1), int(np.ceil(n * 0.3))

    def objective(fitted: Any) -> Any:
        scores, w = fitted.decision_function(X), fitted.coef_ * X.std(axis=0)
        return 0.5 * (w**2).sum() + 10.0 * hinge(scores[y], scores[~y], low, high)

    assert not ranker.collapsed_
    assert objective(ranker) == pytest.approx(ranker.objective_, rel=1e-6)
    assert objective(ranker) < objective(start)
