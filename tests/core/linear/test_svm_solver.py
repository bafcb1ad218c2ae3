"""The solver held to scipy's, to values worked out elsewhere, and to its own certificate."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.linear import AUCSVM, PAUCSVM, cutting_planes
from core.linear.cutting_planes import (
    CuttingPlanes,
    Line,
    Point,
    Solution,
    find_descent_direction,
    solve_simplex_qp,
)
from core.linear.design import fit_design
from core.linear.surrogates import MassWindow, Problem, Surrogate, window_of
from tests.core.linear.generic_solver import minimum
from tests.long_form import LONG_FORM, one_in


def problem(Xp: np.ndarray, Xn: np.ndarray, masses: MassWindow, *, naive: bool = False) -> Problem:
    m, n = len(Xp), len(Xn)
    X = np.concatenate([Xp, Xn])
    rows = fit_design(X, np.ones(m + n), np.zeros(X.shape[1], np.int64), standardize=False)
    surrogate = Surrogate(np.ones(m), np.ones(n), masses, naive=naive)
    return Problem(rows, np.arange(m), np.arange(m, m + n), surrogate)


def solve(
    task: Problem,
    C: float,
    *,
    center: np.ndarray | None = None,
    rtol: float = 1e-9,
    planes: CuttingPlanes | None = None,
    start: Point | None = None,
) -> Solution:
    planes = planes or CuttingPlanes(task)
    center = np.zeros(task.size) if center is None else center
    return planes.solve(
        C,
        center,
        start or planes.point(center),
        lambda objective, gap: gap <= rtol * max(objective, 1e-6),
        max_iter=2000,
    )


def draw_problem(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray, int, int]:
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
    rng, Xp, Xn, low, high = draw_problem(seed)
    C, naive = float(10 ** rng.uniform(-2, 2)), bool(seed % 2)
    center = rng.normal(size=Xp.shape[1]) if seed % 3 == 0 else None
    task = problem(Xp, Xn, MassWindow(low, high, len(Xn)), naive=naive)
    found = solve(task, C, center=center)
    assert found.converged
    best = minimum(Xp, Xn, low, high, C, naive=naive, center=center)
    assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-8)
    assert found.objective - found.gap <= best + 1e-8


POSITIVES = np.array([(2, 1), (1, 2), (0.5, -0.5), (3, 0)])
NEGATIVES = np.array(
    [(0, 0), (1, -1), (-1, 1), (-1, -1), (0.5, 0.5), (-2, 0), (0, -2), (1.5, 0), (-1, 2), (0, 1)]
)


@pytest.mark.parametrize(
    ("rates", "best"), [((0, 1), 0.4117188), ((0, 0.3), 0.6770833), ((0.2, 0.5), 0.4359153)]
)
def test_known_optima(rates: Any, best: float) -> None:
    task = problem(POSITIVES, NEGATIVES, window_of(np.ones(10), *rates))
    assert solve(task, 1.0).objective == pytest.approx(best, abs=1e-7)


def table(
    seed: int = 0, m: int = 60, n: int = 400, d: int = 6, shift: float = 2.5
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Xp, Xn = rng.normal(size=(m, d)), rng.normal(size=(n, d))
    Xp[:, 0] += shift
    return Xp, Xn


def test_planes_serve_every_cost() -> None:
    """A path on one pool of planes ends where fresh solvers do, in fewer iterations."""
    Xp, Xn = table()
    task = problem(Xp, Xn, window_of(np.ones(400), 0.02, 0.1))
    planes, start, together, apart = CuttingPlanes(task), None, 0, 0
    for C in (0.01, 0.1, 1.0, 10.0, 100.0):
        warm, fresh = solve(task, C, planes=planes, start=start), solve(task, C)
        start = warm.point
        assert warm.objective == pytest.approx(fresh.objective, rel=1e-8)
        together, apart = together + warm.n_iter, apart + fresh.n_iter
    assert together < apart


def test_the_gap_is_told_and_never_grows_beyond_the_bound() -> None:
    Xp, Xn = table()
    task = problem(Xp, Xn, window_of(np.ones(400), 0.0, 0.1))
    best = solve(task, 10.0, rtol=1e-10).objective
    told = []
    planes = CuttingPlanes(task)
    planes.solve(
        10.0,
        np.zeros(6),
        planes.point(np.zeros(6)),
        lambda _, gap: gap <= 1e-6,
        max_iter=100,
        report=lambda *metrics: told.append(metrics),
    )
    objectives = [objective for _, objective, _ in told]
    assert objectives == sorted(objectives, reverse=True)
    for _, objective, gap in told:
        assert objective - gap <= best * (1 + 1e-9)
        assert gap >= objective - best - 1e-8
    assert told[-1][2] <= 1e-6 < told[0][2]


def test_few_iterations_are_cut_off_with_the_best_point() -> None:
    Xp, Xn = table()
    planes = CuttingPlanes(problem(Xp, Xn, window_of(np.ones(400), 0.0, 0.1)))
    start = planes.point(np.zeros(6))
    found = planes.solve(100.0, np.zeros(6), start, lambda _, gap: gap <= 1e-9, max_iter=2)
    assert not found.converged
    assert found.objective < 100.0
    assert found.gap > 1e-9


@settings(max_examples=1500 if LONG_FORM else 50)
@given(st.integers(0, 2**32 - 1))
@example(1451695)  # rounding ends the interior point method early
def test_small_programs(seed: int) -> None:
    """Any Gram matrix, singular ones too: no vertex of the simplex descends further."""
    rng = np.random.default_rng(seed)
    k, d = rng.integers(1, 30), rng.integers(1, 8)
    G = rng.normal(size=(k, d)) * 10.0 ** rng.uniform(-6, 6)
    G[k // 2] = G[0]
    if seed % 2:
        G *= 10.0 ** rng.uniform(-3, 3, size=(k, 1))
    H, q = G @ G.T, rng.normal(size=k) * 10.0 ** rng.uniform(-4, 4)
    u = solve_simplex_qp(H, q)
    assert u.min() >= 0
    assert u.sum() == pytest.approx(1.0)
    gradient = H @ u + q
    scale = max(np.diag(H).max(), np.ptp(q))
    assert u @ (gradient - gradient.min()) <= 1e-9 * scale


@pytest.mark.parametrize("seed", range(25))
def test_collapse_is_what_a_linear_program_says(seed: int) -> None:
    """w = 0 is optimal on [0, β] exactly if the positives' mean is a mean of negatives, none above 1/j_β of it."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    Xp, Xn = table(seed, m=8, n=30, d=3, shift=rng.uniform(0.5, 2.5))
    for high in (2, 5, 12):
        found = linprog(
            np.zeros(30),
            A_eq=np.vstack([Xn.T, np.ones(30)]),
            b_eq=np.append(Xp.mean(axis=0), 1.0),
            bounds=(0.0, 1.0 / high),
        )
        for low in (0, 1):
            planes = CuttingPlanes(problem(Xp, Xn, MassWindow(low, high, 30)))
            assert (find_descent_direction(planes) is None) == (found.status == 0)


@pytest.mark.parametrize("t", [0.0, 0.1, 0.45, 0.55, 0.9])
def test_slopes_along_a_line_by_differences(t: float) -> None:
    """The objective is piecewise quadratic in t: over a short step its change is the slope's."""
    Xp, Xn = table()
    planes = CuttingPlanes(problem(Xp, Xn, window_of(np.ones(400), 0.02, 0.1)))
    w, center = np.random.default_rng(0).normal(size=(2, 6))
    line = Line(planes.problem, planes.point(w), planes.point(2.0 - w), 3.0, center)
    found, after = line.first if t == 0.0 else line.try_at(t)[0], line.try_at(t + 1e-7)[0]
    assert found.slope == pytest.approx((after.value - found.value) / 1e-7, rel=1e-4)


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


@pytest.mark.parametrize("most", [12, 25])
def test_planes_are_capped_and_the_minimum_is_found_all_the_same(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planes of the least weight are merged into one, which costs iterations but keeps the bound."""
    Xp, Xn = table(d=20)
    task = problem(Xp, Xn, window_of(np.ones(400), 0.02, 0.1))
    free = solve(task, 1000.0, rtol=1e-4)
    monkeypatch.setattr(cutting_planes, "MAX_PLANES", most)
    planes = CuttingPlanes(task)
    counts, add = [], planes.add

    def counting(plane: Any) -> None:
        add(plane)
        counts.append(len(planes.planes.losses))

    planes.add = counting
    capped = solve(task, 1000.0, rtol=1e-4, planes=planes)
    assert max(counts) == most
    assert capped.converged
    assert capped.n_iter > free.n_iter
    assert capped.objective - capped.gap <= free.objective
    assert free.objective - free.gap <= capped.objective
