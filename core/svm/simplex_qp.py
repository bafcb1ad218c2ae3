"""The small quadratic programme of the cutting planes: min ½ u'Hu + q'u over u >= 0, Σ u = 1."""

import numba
import numpy as np

from core.kernel import kernel

_F = numba.float64
_FLOATS = numba.float64[::1]
_MATRIX = numba.float64[:, ::1]

# Of the gap between the programme and its dual, in units of its largest number.
TOLERANCE = 1e-15

MAX_STEPS = 80


@kernel(numba.void(_MATRIX, _FLOATS, _MATRIX))
def _factor(H, diagonal, L):  # type: ignore[no-untyped-def]
    """Factor H + diag(diagonal) = L L' in place; a pivot lost to rounding is made very large: its row moves no more."""
    for i in range(len(H)):
        for j in range(i + 1):
            total = H[i, j]
            if i == j:
                total += diagonal[i]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(total) if total > 1e-15 * (H[i, i] + diagonal[i]) else 1e30
            else:
                L[i, j] = total / L[j, j]


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS))
def _solve(L, right, x):  # type: ignore[no-untyped-def]
    """Solve L L' x = right."""
    n = len(L)
    for i in range(n):
        total = right[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= L[k, i] * x[k]
        x[i] = total / L[i, i]


@kernel(_F(_FLOATS, _FLOATS))
def _longest(x, dx):  # type: ignore[no-untyped-def]
    """How far x may go along dx before a part of it is 0."""
    step = np.inf
    for i in range(len(x)):
        if dx[i] < 0.0:
            step = min(step, -x[i] / dx[i])
    return step


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS))
def _multiply(H, u, out):  # type: ignore[no-untyped-def]
    for i in range(len(u)):
        total = 0.0
        for j in range(len(u)):
            total += H[i, j] * u[j]
        out[i] = total


@kernel(_FLOATS(_MATRIX, _FLOATS))
def solve_simplex_qp(H, q):  # type: ignore[no-untyped-def]
    """Minimise ½ u'Hu + q'u over the simplex.

    Parameters
    ----------
    H : ndarray of shape (k, k), float64
        Positive semidefinite; rows may be equal.
    q : ndarray of shape (k,), float64

    Returns
    -------
    ndarray of shape (k,), float64
        u >= 0, Σ u = 1; within about 1e-13 of the largest number in H and q of the minimum.

    Notes
    -----
    Mehrotra's predictor-corrector interior point with one step length for u and its multipliers, so that both stay
    feasible and u's is the duality gap itself. O(k³) a step, some 15 steps.

    References
    ----------
    S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optimization 2, 1992.
    """
    k = len(q)
    u = np.full(k, 1.0 / k)
    scale = q.max() - q.min()
    for i in range(k):
        scale = max(scale, H[i, i])
    if k == 1 or scale <= 0.0:
        return u
    A, b = H / scale, (q - q.min()) / scale
    L, gradient = np.zeros((k, k)), np.empty(k)
    right, step, toward_one, change = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    _multiply(A, u, gradient)
    gradient += b
    y = gradient.min() - 0.1
    slack = gradient - y
    for _ in range(MAX_STEPS):
        gap = (u * slack).sum()
        if gap < TOLERANCE:
            break
        _factor(A, slack / u, L)
        right[:] = 1.0
        _solve(L, right, toward_one)
        target = 0.0
        change[:] = 0.0
        for corrected in range(2):
            # (A + slack/u) du - dy = residual + (target - change)/u - slack, with Σ du = 1 - Σ u
            for i in range(k):
                off = slack[i] - gradient[i] + y
                right[i] = off + (target - change[i]) / u[i] - slack[i]
            _solve(L, right, step)
            dy = (1.0 - u.sum() - step.sum()) / toward_one.sum()
            du = step + dy * toward_one
            dslack = (target - change) / u - slack - slack / u * du
            length = min(_longest(u, du), _longest(slack, dslack))
            if corrected == 0:
                ahead = ((u + min(1.0, length) * du) * (slack + min(1.0, length) * dslack)).sum()
                target = (ahead / gap) ** 3 * gap / k
                change = du * dslack
        length = min(1.0, 0.995 * length)
        if length < 1e-10:
            break
        u = u + length * du
        slack = slack + length * dslack
        y += length * dy
        _multiply(A, u, gradient)
        gradient += b
    u = np.maximum(u, 0.0)
    return u / u.sum()
