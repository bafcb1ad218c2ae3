"""The machines for (partial) areas end at the minimum of their objective: scipy's, and the one by definition."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from core import AUCSVM, PAUCSVM, PAUCSVMDC
from tests.core.linear.surrogate_oracle import (
    assert_no_step_pays,
    by_runs,
    hinge,
    minimum,
    sigmoid_by_pairs,
)
from tests.long_form import LONG_FORM, one_in

pytestmark = pytest.mark.filterwarnings("ignore::core.linear.SupportWarning")

PRECISE: dict[str, Any] = {"standardize": False, "tol": 1e-9, "max_iter": 20_000}


def fit(ranker: Any, Xp: np.ndarray, Xn: np.ndarray) -> Any:
    return ranker.fit(np.concatenate([Xp, Xn]), np.arange(len(Xp) + len(Xn)) < len(Xp))


def machine(low: float, high: float, C: float, **others: Any) -> PAUCSVM:
    return PAUCSVM(fpr_min=low, fpr_max=high, C=C, anchor=None, **PRECISE | others)


def draw_table(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray, int, int]:
    rng = np.random.default_rng(seed)
    m, n, d = rng.integers(1, 4), rng.integers(1, 5), rng.integers(1, 4)
    X = rng.normal(size=(m + n, d))
    X[:m] += rng.uniform(0, 2)
    if seed % 4 == 0:
        X = np.round(X)  # ties, duplicates and constants
    if seed % 5 == 0:
        X[:, -1] = X[:, 0]  # collinear
    low = int(rng.integers(0, n))
    high = low + 1 if seed % 7 == 0 else int(rng.integers(low + 1, n + 1))
    return rng, X[:m], X[m:], low, high


@pytest.mark.parametrize("seed", range(200 if LONG_FORM else 24))
def test_equal_to_a_general_solver(seed: int) -> None:
    rng, Xp, Xn, low, high = draw_table(seed)
    C, naive, n = float(10 ** rng.uniform(-2, 2)), bool(seed % 2), len(Xn)
    surrogate = "naive" if naive else "tight"
    # the columns' zero is their mean, on which nothing depends
    found = fit(machine(low / n, high / n, C, surrogate=surrogate), Xp, Xn)
    best = minimum(Xp, Xn, low, high, C, naive=naive)
    assert found.objective_ == pytest.approx(best, rel=1e-6, abs=1e-8)
    assert found.objective_ - found.gap_ <= best + 1e-8


POSITIVES = np.array([(2, 1), (1, 2), (0.5, -0.5), (3, 0)])
NEGATIVES = np.array(
    [(0, 0), (1, -1), (-1, 1), (-1, -1), (0.5, 0.5), (-2, 0), (0, -2), (1.5, 0), (-1, 2), (0, 1)]
)


@pytest.mark.parametrize(
    ("rates", "best"), [((0, 1), 0.4117188), ((0, 0.3), 0.6770833), ((0.2, 0.5), 0.4359153)]
)
def test_known_optima(rates: tuple[float, float], best: float) -> None:
    found = fit(machine(rates[0], rates[1], 1.0), POSITIVES, NEGATIVES)
    assert found.objective_ == pytest.approx(best, abs=1e-7)


def make_table(
    seed: int = 0, m: int = 15, n: int = 40, d: int = 3, shift: float = 1.5
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Xp, Xn = rng.normal(size=(m, d)), rng.normal(size=(n, d))
    Xp[:, 0] += shift
    return Xp, Xn


LOSSES = {
    "tight": lambda s, z: by_runs(s, z, 4, 16, 16),
    "naive": lambda s, z: by_runs(s, z, 4, 16, 40),
    "sigmoid": lambda s, z: sigmoid_by_pairs(s, z, 4, 16),
    "difference": lambda s, z: hinge(s, z, 4, 16),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_no_step_lowers_the_objective_by_definition(name: str, C: float) -> None:
    """Of those that are not convex it is a minimum as far as small steps go."""
    Xp, Xn = make_table(3, shift=2.5)
    if name == "difference":
        ranker: Any = PAUCSVMDC(fpr_min=0.1, fpr_max=0.4, C=C, anchor=None, **PRECISE)
    else:
        ranker = machine(0.1, 0.4, C, surrogate=name)
    w = fit(ranker, Xp, Xn).coef_
    assert w.any()

    def objective(w: np.ndarray) -> float:
        return float(0.5 * w @ w + C * LOSSES[name](Xp @ w, Xn @ w))

    tolerance = 1e-7 * C if name in ("tight", "naive") else 2e-3 * C
    assert_no_step_pays(objective, w, ranker.objective_, tolerance)


def test_the_papers_third_inequality_fails() -> None:
    """Fig. 3(c) says hinge <= tight on [α, β]."""
    s, z = np.array([0.5]), np.array([0.0, 0.0, -5.0])
    assert hinge(s, z, 1, 3) == 0.25
    assert by_runs(s, z, 1, 3, 3) == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_collapse_is_what_a_linear_program_says(seed: int) -> None:
    """w = 0 is optimal on [0, β] exactly if the positives' mean is a mean of negatives, none above 1/j_β of it."""
    shift = np.random.default_rng(seed).uniform(0.5, 2.5)
    Xp, Xn = make_table(seed, m=8, n=30, shift=shift)
    for high in (2, 5, 12):
        found = linprog(
            np.zeros(30),
            A_eq=np.vstack([Xn.T, np.ones(30)]),
            b_eq=np.append(Xp.mean(axis=0), 1.0),
            bounds=(0.0, 1.0 / high),
        )
        collapsed = fit(machine(0.0, high / 30, 1000.0), Xp, Xn).collapsed_
        assert collapsed == (found.status == 0)


def test_few_iterations_are_cut_off_with_the_best_point() -> None:
    Xp, Xn = make_table(m=60, n=400, d=6, shift=2.5)
    best = fit(machine(0.0, 0.1, 100.0), Xp, Xn)
    found = fit(machine(0.0, 0.1, 100.0, max_iter=2), Xp, Xn)
    assert best.objective_ < found.objective_ < 100.0
    assert found.objective_ - found.gap_ <= best.objective_


@pytest.mark.parametrize(
    "ranker", one_in(2, [AUCSVM(C=10.0), PAUCSVM(fpr_max=0.05, C=10.0), PAUCSVM()])
)
def test_memory_beside_the_table(ranker: AUCSVM | PAUCSVM) -> None:
    """The solver makes no copy of the table, and its vectors together take at most half of the table's bytes."""
    rng = np.random.default_rng(0)
    y = rng.random(30_000) < 0.02
    X = rng.normal(size=(30_000, 30))
    X[y, 0] += 2.5
    ranker.fit(X, y)  # what is loaded late is not the fit's
    tracemalloc.start()
    try:
        ranker.fit(X, y)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 0.55 * X.nbytes
