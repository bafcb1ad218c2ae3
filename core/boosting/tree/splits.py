"""The best cut of a leaf: a scan of its histogram, 32 columns side by side.

A leaf holds two masses per code: of positives p and of negatives q, or for LogitBoost the sums of
gradients and of second derivatives. A side of a cut is worth

=========  ==================================  ====================================================
objective  worth                               where it comes from
=========  ==================================  ====================================================
CLOSED     -√(pq)                              the loss after the best step is (Σ √(P_l N_l))²
PUSH       -p^(r/(1+r)) q^(1/(1+r))            the same for the r-norm push, (Σ …)^(1+r)
NEWTON     (p - q)² / (p + rq + λ)             a quadratic model of the logarithm of the loss
GRADIENT   p² / (q + λ)                        the same, where p is gradient and q curvature
=========  ==================================  ====================================================

and the gain of a cut is what both sides are worth beyond the whole.
"""

import math
from enum import IntEnum

import numba
import numpy as np

from core.scan import MISSING

from .layout import COLUMNS


class Objective(IntEnum):
    """By what a cut is chosen; see the module."""

    CLOSED = 0
    PUSH = 1
    NEWTON = 2
    GRADIENT = 3


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
    if objective == 0:
        for j in range(COLUMNS):
            p_j = p[j] if p[j] > DUST else 0.0
            q_j = q[j] if q[j] > DUST else 0.0
            worth[j] = -math.sqrt(p_j * q_j)
    elif objective == 1:
        share = push / (1.0 + push)
        for j in range(COLUMNS):
            worth[j] = 0.0
            if p[j] > DUST and q[j] > DUST:
                worth[j] = -math.exp(share * math.log(p[j]) + (1.0 - share) * math.log(q[j]))
    elif objective == 2:
        for j in range(COLUMNS):
            p_j = p[j] if p[j] > DUST else 0.0
            q_j = q[j] if q[j] > DUST else 0.0
            worth[j] = (p_j - q_j) ** 2 / (p_j + push * q_j + smoothing + 1e-300)
    else:
        for j in range(COLUMNS):
            worth[j] = p[j] ** 2 / (q[j] + smoothing + 1e-300) if q[j] > 0.0 else 0.0


@numba.njit(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.boolean,
        numba.float64,
        numba.int64,
        numba.float64,
        numba.float64,
        numba.float64[:, ::1],
        numba.float64[:, ::1],
    ),
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"nnan", "ninf", "nsz"},
)
def scan_cuts(  # type: ignore[no-untyped-def]
    histogram, n_bins, missing_above, least_mass, objective, push, smoothing, lanes, best
):
    """Find each column's best cut with the missing on one side.

    `best` holds a row each for worth, cut, side of the missing and mass above, and is changed where
    a cut is better. `lanes` is for work; its first two rows hold each column's totals.
    """
    total_p, total_q = lanes[0], lanes[1]
    p, q, below_p, below_q = lanes[2], lanes[3], lanes[4], lanes[5]
    worth, worth_below = lanes[6], lanes[7]
    missing = MISSING * COLUMNS
    for j in range(COLUMNS):
        p[j] = total_p[j] - (0.0 if missing_above else histogram[0, missing + j])
        q[j] = total_q[j] - (0.0 if missing_above else histogram[1, missing + j])
    side = 1.0 if missing_above else 0.0
    masses_add = objective != 3
    for cut in range(-1, n_bins - 1):
        if cut >= 0:
            for j in range(COLUMNS):
                p[j] -= histogram[0, cut * COLUMNS + j]
                q[j] -= histogram[1, cut * COLUMNS + j]
        for j in range(COLUMNS):
            below_p[j] = total_p[j] - p[j]
            below_q[j] = total_q[j] - q[j]
        write_worth(objective, push, smoothing, p, q, worth)
        write_worth(objective, push, smoothing, below_p, below_q, worth_below)
        at = float(cut)
        for j in range(COLUMNS):
            above = p[j] + q[j] if masses_add else q[j]
            whole = total_p[j] + total_q[j] if masses_add else total_q[j]
            value = worth[j] + worth_below[j]
            better = (
                (above >= least_mass)
                & (whole - above >= least_mass)
                & (value > best[0, j] + TIE * whole)
            )
            best[0, j] = value if better else best[0, j]
            best[1, j] = at if better else best[1, j]
            best[2, j] = side if better else best[2, j]
            best[3, j] = above if better else best[3, j]


@numba.njit(
    numba.types.Tuple((numba.float64, numba.int64, numba.int64, numba.boolean))(
        numba.float64[:, ::1],
        numba.int64,
        numba.boolean,
        numba.boolean[::1],
        numba.float64,
        numba.int64,
        numba.float64,
        numba.float64,
    ),
    nogil=True,
    cache=True,
    error_model="numpy",
)
def find_cut(histogram, n_bins, has_missing, allowed, least_mass, objective, push, smoothing):  # type: ignore[no-untyped-def]
    """Find the best cut among up to 32 columns.

    histogram: (2, 256 · 32); allowed: (32,), the columns that may be cut. Returns gain, column, cut
    and whether the missing lie above; the gain is 0 where no cut has any. Codes greater than the cut
    are above it. The lowest column wins among equals, then the missing below, then the lowest cut.
    A later missing goes to the side of greater mass where this leaf has none.
    """
    lanes = np.empty((8, COLUMNS))
    best = np.empty((4, COLUMNS))
    best[0] = -1e300
    lanes[:2] = 0.0
    for code in range(n_bins):
        for j in range(COLUMNS):
            lanes[0, j] += histogram[0, code * COLUMNS + j]
            lanes[1, j] += histogram[1, code * COLUMNS + j]
    missing = MISSING * COLUMNS
    for j in range(COLUMNS):
        lanes[0, j] += histogram[0, missing + j]
        lanes[1, j] += histogram[1, missing + j]
    scan_cuts(histogram, n_bins, False, least_mass, objective, push, smoothing, lanes, best)
    if has_missing:
        scan_cuts(histogram, n_bins, True, least_mass, objective, push, smoothing, lanes, best)
    write_worth(objective, push, smoothing, lanes[0], lanes[1], lanes[2])
    gain = 0.0
    column = -1
    for j in range(COLUMNS):
        mass = lanes[1, j] + (lanes[0, j] if objective != 3 else 0.0)
        if allowed[j] and best[0, j] - lanes[2, j] > gain + 10.0 * TIE * mass:
            gain = best[0, j] - lanes[2, j]
            column = j
    if column < 0:
        return 0.0, -1, -1, False
    mass = lanes[1, column] + (lanes[0, column] if objective != 3 else 0.0)
    missing_mass = histogram[1, missing + column]
    if objective != 3:
        missing_mass += histogram[0, missing + column]
    has_none = missing_mass <= TIE * mass
    missing_above = (
        2.0 * best[3, column] > mass * (1.0 + TIE) if has_none else best[2, column] > 0.0
    )
    return gain, column, np.int64(best[1, column]), missing_above
