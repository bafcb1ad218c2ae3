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


@numba.njit(inline="always")
def worth_of(objective, push, smoothing, p, q):  # type: ignore[no-untyped-def]
    """Say what a side of masses p and q is worth."""
    if objective == GRADIENT:
        return p**2 / (q + smoothing + 1e-300) if q > 0.0 else 0.0
    p = p if p > DUST else 0.0
    q = q if q > DUST else 0.0
    if objective == CLOSED:
        return -math.sqrt(p * q)
    if objective == NEWTON:
        return (p - q) ** 2 / (p + push * q + smoothing + 1e-300)
    share = push / (1.0 + push)
    if p > 0.0 and q > 0.0:
        return -math.exp(share * math.log(p) + (1.0 - share) * math.log(q))
    return 0.0
