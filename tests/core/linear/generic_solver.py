"""The program of the SVMs written out as a quadratic program, for scipy's general solver."""

from typing import Any

import numpy as np
from scipy.optimize import minimize


def epigraph_rows(
    Xp: np.ndarray, Xn: np.ndarray, low: int, high: int, top: int
) -> tuple[np.ndarray, np.ndarray, int]:
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


def minimum(
    Xp: np.ndarray,
    Xn: np.ndarray,
    low: int,
    high: int,
    C: float,
    *,
    naive: bool = False,
    center: np.ndarray | None = None,
) -> float:
    """The least of ½‖w - center‖² + C R(w)."""
    (m, d), n = Xp.shape, len(Xn)
    top = n if naive else high
    center = np.zeros(d) if center is None else center
    A, b, size = epigraph_rows(Xp, Xn, low, high, top)
    cost = np.zeros(size)
    cost[d : d + m] = C / (m * (high - low))

    def objective(x: Any) -> Any:
        step = x[:d] - center
        return 0.5 * step @ step + cost @ x

    def gradient(x: Any) -> Any:
        return cost + np.concatenate([x[:d] - center, np.zeros(size - d)])

    free = [(None, None)]
    bounds = free * d + [(0, None)] * m + free * top + [(0, None)] * (top * n)
    start = np.zeros(size)
    start[d : d + m] = high - low
    found = minimize(
        objective,
        start,
        jac=gradient,
        bounds=bounds,
        constraints={"type": "ineq", "fun": lambda x: A @ x - b, "jac": lambda x: A},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assert found.status in (0, 8), found.message  # 8: no further descent in floating point
    return found.fun
