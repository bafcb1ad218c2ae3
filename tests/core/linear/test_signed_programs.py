"""Monotone constraints of the machines for areas: the optimum with bounds, the collapse, and what is refused."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, minimize

from core import AUCSVM, PAUCSVM, PAUCSVMDC, TopPush
from core.base.monotone import check_monotone
from core.errors import InvalidParameter
from core.linear import SupportWarning
from core.linear.design import LinearSample, fit_design
from core.linear.surrogates import problem_of, window_of
from tests.long_form import long_form
from tests.sentences import Sentences

Floats = np.ndarray


def make_rows(seed: int) -> tuple[Floats, Floats]:
    """Return rows of four columns on a coarse grid; columns 1 and 3 order most pairs against their constraints."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0], [10, 14])
    X = rng.normal(size=(24, 4)) + np.outer(y, [2.5, -1.0, 1.5, 0.8])
    return X.round(1), y


MONOTONE: dict[str | int, Any] = {0: "increasing", 1: "increasing", 3: "decreasing"}
LOW, HIGH = np.array([0, 0, -np.inf, -np.inf]), np.array([np.inf, np.inf, np.inf, 0])
BOUNDS = list(zip(LOW, HIGH, strict=True))


def least(pairs: Floats, C: float, power: int, owner: Floats) -> float:
    """Return the least ½‖w‖² + C mean loss^power, the loss of each owner being at least 1 - pairs·w of its pairs."""
    n, m = pairs.shape[1], int(owner.max()) + 1
    rows = np.hstack([pairs, np.eye(m)[owner]])
    start = np.concatenate([np.zeros(n), np.ones(m)])

    def objective(v: Floats) -> float:
        return float(0.5 * v[:n] @ v[:n] / C + (v[n:] ** power).mean())

    def slope(v: Floats) -> Floats:
        return np.concatenate([v[:n] / C, power * v[n:] ** (power - 1) / m])

    found = minimize(
        objective, start, jac=slope, method="SLSQP", bounds=[*BOUNDS, *[(0.0, None)] * m],
        constraints=[LinearConstraint(rows, 1.0, np.inf)], options={"maxiter": 1000, "ftol": 1e-13},
    )  # fmt: skip
    w = np.clip(found.x[:n], LOW, HIGH)
    losses = np.zeros(m)
    np.maximum.at(losses, owner, np.maximum(1.0 - pairs @ w, 0.0))
    return float(0.5 * w @ w + C * (losses**power).mean())


@pytest.mark.parametrize(
    ("seed", "C"), [(0, 0.1), pytest.param(1, 3.0, marks=long_form), (2, 100.0)]
)
def test_the_optimum_is_that_of_a_quadratic_program_with_bounds(seed: int, C: float) -> None:
    X, y = make_rows(seed)
    pairs = (X[y == 1][:, None] - X[y == 0]).reshape(-1, 4)
    of: dict[str, Any] = {"C": C, "standardize": False, "tol": 1e-8, "max_iter": 20_000}
    machine = AUCSVM(monotone=MONOTONE, **of).fit(X, y)
    expected = least(pairs, C, 1, np.arange(140))
    assert machine.objective_ == pytest.approx(expected, abs=1e-6 * C)
    assert machine.objective_ > AUCSVM(**of).fit(X, y).objective_ + 1e-3 * min(C, 1.0)
    assert check_monotone(machine).verdict == "proven"

    top = TopPush(monotone=MONOTONE, anchor=None, **of).fit(X, y)
    assert not top.collapsed_
    owner = np.repeat(np.arange(10), 14)
    assert top.objective_ == pytest.approx(least(pairs, C, 2, owner), abs=1e-6 * C)
    assert check_monotone(top).verdict == "proven"


@pytest.mark.parametrize("surrogate", ["tight", "naive"])
def test_no_step_that_keeps_the_signs_lowers_the_objective_of_a_window(surrogate: Any) -> None:
    X, y = make_rows(1)
    X[y == 1, 0] += 2.0
    rng, C = np.random.default_rng(0), 2.0
    of: dict[str, Any] = {"C": C, "standardize": False, "tol": 1e-8, "max_iter": 20_000}
    window: dict[str, Any] = {"fpr_max": 0.5, "anchor": None, "surrogate": surrogate}
    machine = PAUCSVM(monotone=MONOTONE, **window, **of).fit(X, y)
    assert not machine.collapsed_
    assert machine.coef_[1] == machine.coef_[3] == 0.0
    rows = fit_design(X, np.ones(24), np.zeros(4, np.int64), standardize=False)
    sample = LinearSample(rows, np.flatnonzero(y == 1), np.flatnonzero(y == 0), np.ones(24))
    problem = problem_of(sample, window_of(np.ones(14), 0.0, 0.5), naive=surrogate == "naive")

    def objective(w: Floats) -> float:
        return float(0.5 * w @ w + C * problem.at(problem.scores(w)).value)

    assert objective(machine.coef_) == pytest.approx(machine.objective_, abs=1e-9)
    for size in (1e-4, 1e-2, 1.0):
        for step in rng.normal(size=(200, 4)):
            w = np.clip(machine.coef_ + size * step, LOW, HIGH)
            assert objective(w) >= machine.objective_ - 1e-7 * C


def test_under_constraints_the_collapse_is_that_of_a_linear_program() -> None:
    """w = 0 is the optimum where no w that keeps its signs has the positives' mean above the highest negative."""
    n_collapsed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = np.repeat([1, 0], [4, 8])
        X = rng.normal(size=(12, 3)) + 0.9 * y[:, None]
        differences = X[y == 1].mean(axis=0) - X[y == 0]
        # max t: differences·w >= t, w in [-1, 1] with its signs
        found = linprog(
            [0, 0, 0, -1],
            A_ub=np.hstack([-differences, np.ones((8, 1))]),
            b_ub=np.zeros(8),
            bounds=[(0, 1), (-1, 0), (-1, 1), (None, None)],
        )
        machine = TopPush(
            C=1.0, standardize=False, anchor=None, monotone={0: "increasing", 1: "decreasing"}
        )
        expected = bool(-found.fun < 1e-9)
        with pytest.warns(SupportWarning) if expected else nullcontext():
            machine.fit(X, y)
        assert machine.collapsed_ == expected
        n_collapsed += expected
    assert 5 < n_collapsed < 35


@pytest.mark.parametrize("algorithm", [AUCSVM, PAUCSVM, PAUCSVMDC, TopPush])
@pytest.mark.filterwarnings("ignore::core.linear.SupportWarning")
def test_the_choice_of_C_the_anchor_and_missing_values_keep_the_signs(algorithm: Any) -> None:
    rng = np.random.default_rng(2)
    y = np.repeat([1, 0], [60, 140])
    X = rng.normal(size=(200, 4)) * np.where(y, 0.5, 2.0)[:, None] + np.outer(y, [1, -1, 0.5, 1])
    X[rng.random(X.shape) < 0.1] = np.nan
    ranker = algorithm(monotone=MONOTONE).fit(X, y)
    assert check_monotone(ranker).verdict == "proven"
    assert ranker.decision_function(X).std() > 0.0
    ranker.fit_path(X, y, values=[0.01, 1.0, 100.0])
    assert all(check_monotone(one).verdict == "proven" for one in ranker.path_rankers())


@pytest.mark.parametrize("feature_map", ["bins", "fourier", "nystroem"])
def test_a_feature_map_is_refused(feature_map: Any, sentences: Sentences) -> None:
    X, y = make_rows(0)
    with sentences.raises(InvalidParameter):
        AUCSVM(C=1.0, monotone={0: "increasing"}, feature_map=feature_map).fit(X, y)
    AUCSVM(C=1.0, monotone={}, feature_map="bins").fit(X, y)
