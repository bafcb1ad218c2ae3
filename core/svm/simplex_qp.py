"""The small quadratic program of the cutting planes: min ½ u'Hu + q'u over u >= 0, Σ u = 1."""

import numba
import numpy as np

from core.kernel import kernel

_F = numba.float64
_FLOATS = numba.float64[::1]
_MATRIX = numba.float64[:, ::1]

# Of the gap between the program and its dual, in units of its largest number.
TOLERANCE = 1e-15

MAX_STEPS = 80


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS), inner=True)
def _solve(U, right, x):  # type: ignore[no-untyped-def]
    """Solve U' U x = right; U is upper triangular."""
    n = len(U)
    for i in range(n):
        x[i] = right[i]
    for k in range(n):
        x[k] /= U[k, k]
        row, rest, factor = U[k, k + 1 :], x[k + 1 :], x[k]
        for i in range(len(row)):
            rest[i] -= row[i] * factor
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= U[i, k] * x[k]
        x[i] = total / U[i, i]


@kernel(_FLOATS(_MATRIX, _FLOATS), error_model="numpy")
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
    u, slack, gradient, b = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    right, step, toward_one, change = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    du, dslack, A, U = np.empty(k), np.empty(k), np.empty((k, k)), np.empty((k, k))
    lowest = highest = q[0]
    for i in range(k):
        u[i] = 1.0 / k
        lowest, highest = min(lowest, q[i]), max(highest, q[i])
    scale = highest - lowest
    for i in range(k):
        scale = max(scale, H[i, i])
    if k == 1 or scale <= 0.0:
        return u
    for i in range(k):
        b[i] = (q[i] - lowest) / scale
        for j in range(k):
            A[i, j] = H[i, j] / scale
    y = 0.0
    for iteration in range(MAX_STEPS + 1):
        least = np.inf
        for i in range(k):
            gradient[i] = 0.0
        for j in range(k):
            for i in range(k):
                gradient[i] += A[j, i] * u[j]
        for i in range(k):
            gradient[i] += b[i]
            least = min(least, gradient[i])
        if iteration == 0:
            y = least - 0.1
            for i in range(k):
                slack[i] = gradient[i] - y
        gap = 0.0
        for i in range(k):
            gap += u[i] * slack[i]
        if gap < TOLERANCE or iteration == MAX_STEPS:
            break
        # Factor A + diag(slack / u) = U'U, row by row, each less multiples of those above: loops that become vector
        # instructions. A pivot lost to rounding is made very large: its row moves no more.
        for j in range(k):
            own = A[j, j] + slack[j] / u[j]
            row, given = U[j, j:], A[j, j:]
            row[0] = own
            for i in range(1, len(row)):
                row[i] = given[i]
            for m in range(j):
                above, factor = U[m, j:], U[m, j]
                for i in range(len(row)):
                    row[i] -= factor * above[i]
            pivot = np.sqrt(row[0]) if row[0] > 1e-15 * own else 1e30
            row[0] = pivot
            for i in range(1, len(row)):
                row[i] /= pivot
        for i in range(k):
            right[i] = 1.0
            change[i] = 0.0
        _solve(U, right, toward_one)
        target = length = dy = 0.0
        for corrected in range(2):
            # (A + slack/u) du - dy = residual + (target - change)/u - slack, with Σ du = 1 - Σ u
            for i in range(k):
                off = slack[i] - gradient[i] + y
                right[i] = off + (target - change[i]) / u[i] - slack[i]
            _solve(U, right, step)
            of_u = of_step = of_one = 0.0
            for i in range(k):
                of_u += u[i]
                of_step += step[i]
                of_one += toward_one[i]
            dy = (1.0 - of_u - of_step) / of_one
            length = np.inf  # how far u and slack may go before a part of them is 0
            for i in range(k):
                du[i] = step[i] + dy * toward_one[i]
                dslack[i] = (target - change[i]) / u[i] - slack[i] - slack[i] / u[i] * du[i]
                if du[i] < 0.0:
                    length = min(length, -u[i] / du[i])
                if dslack[i] < 0.0:
                    length = min(length, -slack[i] / dslack[i])
            if corrected == 0:
                ahead = 0.0
                for i in range(k):
                    at = u[i] + min(1.0, length) * du[i]
                    ahead += at * (slack[i] + min(1.0, length) * dslack[i])
                    change[i] = du[i] * dslack[i]
                target = (ahead / gap) ** 3 * gap / k
        length = min(1.0, 0.995 * length)
        if length < 1e-10:
            break
        for i in range(k):
            u[i] = u[i] + length * du[i]
            slack[i] = slack[i] + length * dslack[i]
        y += length * dy
    total = 0.0
    for i in range(k):
        u[i] = max(u[i], 0.0)
        total += u[i]
    for i in range(k):
        u[i] /= total
    return u
