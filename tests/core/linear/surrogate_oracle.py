"""The surrogates of the machines by their definitions, and their minimum by scipy's general solver. For tiny inputs."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

Floats = np.ndarray


def hinge(s: Floats, z: Floats, low: int, high: int) -> float:
    """Eq. 9."""
    inside = np.sort(z)[::-1][low:high]
    return float(np.maximum(1 - (s[:, None] - inside[None, :]), 0).mean())


def by_runs(s: Floats, z: Floats, low: int, high: int, top: int) -> float:
    """Eq. 20: the best r_i of each positive by trying every one."""
    z = np.sort(z)[::-1]
    total = 0.0
    for score in s:
        gains = [(z[:r] - score).sum() + min(max(r - low, 0), high - low) for r in range(top + 1)]
        total += max(gains)
    return total / (len(s) * (high - low))


def sigmoid_by_pairs(s: Floats, z: Floats, low: int, high: int) -> float:
    """The mean of 2σ(z_j - s_i) over the pairs with negatives j = low + 1 ... high from the top."""
    inside = np.sort(z)[::-1][low:high]
    return float(np.mean(2.0 / (1.0 + np.exp(s[:, None] - inside))))


def assert_no_step_pays(
    objective: Callable[[Floats], float],
    w: Floats,
    least: float,
    tolerance: float,
    bounds: tuple[Floats | float, Floats | float] = (-np.inf, np.inf),
) -> None:
    """Check that the objective of w is `least`, and that of no point around it lower."""
    assert np.isclose(objective(w), least, rtol=1e-9, atol=1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        for step in rng.normal(size=(100, len(w))):
            assert objective(np.clip(w + size * step, *bounds)) >= least - tolerance


def epigraph_rows(
    Xp: Floats, Xn: Floats, low: int, high: int, top: int
) -> tuple[Floats, Floats, int]:
    """Rows A, b with A x >= b over x = (w, h_i, t_r, e_rj): h_i >= the gain of the run of r, for every r.

    The sum of the r highest of z is the least of r t + Σ (z_j - t)₊ over t.
    """
    (m, d), n = Xp.shape, len(Xn)
    size = d + m + top + top * n
    A, b = [], []
    for r in range(1, top + 1):
        t = d + m + r - 1
        e = d + m + top + (r - 1) * n
        for i in range(m):
            row = np.zeros(size)
            row[:d], row[d + i], row[t], row[e : e + n] = r * Xp[i], 1.0, -r, -1.0
            A.append(row)
            b.append(min(max(r - low, 0), high - low))
        for j in range(n):
            row = np.zeros(size)
            row[:d], row[t], row[e + j] = -Xn[j], 1.0, 1.0
            A.append(row)
            b.append(0.0)
    return np.array(A), np.array(b), size


def minimum(Xp: Floats, Xn: Floats, low: int, high: int, C: float, *, naive: bool = False) -> float:
    """The least of ½‖w‖² + C R(w), R of eq. 20."""
    (m, d), n = Xp.shape, len(Xn)
    top = n if naive else high
    A, b, size = epigraph_rows(Xp, Xn, low, high, top)
    cost = np.zeros(size)
    cost[d : d + m] = C / (m * (high - low))
    start = np.zeros(size)
    start[d : d + m] = high - low
    found = minimize(
        lambda x: 0.5 * x[:d] @ x[:d] + cost @ x,
        start,
        jac=lambda x: cost + np.concatenate([x[:d], np.zeros(size - d)]),
        bounds=[(None, None)] * d
        + [(0, None)] * m
        + [(None, None)] * top
        + [(0, None)] * (top * n),
        constraints={"type": "ineq", "fun": lambda x: A @ x - b, "jac": lambda x: A},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assert found.status in (0, 8), found.message  # 8: no further descent in floating point
    return float(found.fun)
