"""What a side of a cut is worth.

A side holds two masses per code: of positives p and of negatives q, or for LogitBoost the sums of
gradients and of second derivatives. A side of a cut is worth

=========  ==================================  ====================================================
objective  worth                               where it comes from
=========  ==================================  ====================================================
CLOSED     -√(pq)                              the loss after the best step is (Σ √(P_l N_l))²
PUSH       -p^(r/(1+r)) q^(1/(1+r))            the same for the r-norm push, (Σ …)^(1+r)
NEWTON     (p - q)² / (p + rq + λ)             a quadratic model of the logarithm of the loss
GRADIENT   p² / (q + λ)                        the same, where p is gradient and q curvature
=========  ==================================  ====================================================

Masses of PUSH and NEWTON are of classes that each sum to 1 in all rows, as are those of CLOSED.
"""

import math
from enum import IntEnum

import numba

from core.scan.by_row import COLUMNS


class Objective(IntEnum):
    """By what a cut is chosen; see the module."""

    CLOSED = 0
    PUSH = 1
    NEWTON = 2
    GRADIENT = 3


# as numbers, for kernels; the halves of the last one are no masses of classes
CLOSED, PUSH, NEWTON, GRADIENT = (int(objective) for objective in Objective)

# Gains, in shares of the leaf's mass, that differ by less than this are equal but for rounding.
TIE = 1e-11

# A class's mass in a side, of 1 in all rows, below which it is what subtraction left of nothing.
DUST = 1e-13

_LANES = numba.float64[::1]


@numba.njit(
    numba.void(numba.int64, numba.float64, numba.float64, _LANES, _LANES, _LANES),
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"nnan", "ninf", "nsz"},
)
def write_worth(objective, push, smoothing, p, q, worth):  # type: ignore[no-untyped-def]
    """Write what sides of masses p and q are worth."""
    if objective == CLOSED:
        for j in range(COLUMNS):
            p_j = p[j] if p[j] > DUST else 0.0
            q_j = q[j] if q[j] > DUST else 0.0
            worth[j] = -math.sqrt(p_j * q_j)
    elif objective == PUSH:
        share = push / (1.0 + push)
        for j in range(COLUMNS):
            worth[j] = 0.0
            if p[j] > DUST and q[j] > DUST:
                worth[j] = -math.exp(share * math.log(p[j]) + (1.0 - share) * math.log(q[j]))
    elif objective == NEWTON:
        for j in range(COLUMNS):
            p_j = p[j] if p[j] > DUST else 0.0
            q_j = q[j] if q[j] > DUST else 0.0
            worth[j] = (p_j - q_j) ** 2 / (p_j + push * q_j + smoothing + 1e-300)
    else:
        for j in range(COLUMNS):
            worth[j] = p[j] ** 2 / (q[j] + smoothing + 1e-300) if q[j] > 0.0 else 0.0
