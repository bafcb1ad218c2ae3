"""The loops of this folder: sums of powers within cells, and sums of normal kernels between cells.

A sum over pairs of rows, Σ_i Σ_k w_i w_k k(f_i - f_k), costs rows times rows. The normal kernel k is
smooth, so within a short cell it is a polynomial as good as exactly: a row is to the sum what its
powers within its cell are. One pass over the rows gathers these, the rest is between cells.
"""

import math

import numba
import numpy as np

from core.kernel import kernel

# Cells on either side in which the kernel is not yet 0: 13 halves of the unit, e^{-6.5²} = 4e-19.
REACH = 13

_ROOT_PI = math.sqrt(math.pi)
_LINE = numba.float64[::1]
_TABLE = numba.float64[:, ::1]
_BLOCK = numba.float64[:, :, ::1]
_CELLS = numba.int64[::1]
_FLAGS = numba.boolean[::1]
_CODES = numba.uint8[::1]


@kernel(numba.void(_LINE, _TABLE, numba.float64, numba.float64, _BLOCK))
def sum_powers(scores, factors, origin, width, sums):  # type: ignore[no-untyped-def]
    """Sum factor · u^p by cell, u in [-1, 1) a score's place within its cell."""
    for i in range(len(scores)):
        place = (scores[i] - origin) / width
        cell = int(place)
        u = 2.0 * (place - cell) - 1.0
        for s in range(factors.shape[0]):
            value = factors[s, i]
            if value != 0.0:
                for p in range(sums.shape[2]):
                    sums[s, cell, p] += value
                    value *= u


@kernel(numba.void(_LINE, numba.float64, numba.float64, _TABLE, _LINE))
def evaluate(scores, origin, width, coefficients, values):  # type: ignore[no-untyped-def]
    """Evaluate the polynomial of each score's cell."""
    degree = coefficients.shape[1] - 1
    for i in range(len(scores)):
        place = (scores[i] - origin) / width
        cell = int(place)
        u = 2.0 * (place - cell) - 1.0
        value = coefficients[cell, degree]
        for p in range(degree - 1, -1, -1):
            value = value * u + coefficients[cell, p]
        values[i] = value


@kernel(numba.void(_LINE, _CELLS, _TABLE, _BLOCK, _FLAGS, _BLOCK))
def smooth(targets, cells, nodes, weights, used, sums):  # type: ignore[no-untyped-def]
    """Sum weight · k(node - target) and weight · k'(node - target), k(x) = e^{-x²}/√π.

    cells: the cell of each target; nodes of cells farther than REACH, or not used, add nothing.
    """
    for t in range(len(targets)):
        for b in range(cells[t] - REACH, cells[t] + REACH + 1):
            if not used[b]:
                continue
            for j in range(nodes.shape[1]):
                x = nodes[b, j] - targets[t]
                k = math.exp(-x * x) / _ROOT_PI
                for s in range(weights.shape[0]):
                    term = weights[s, b, j] * k
                    sums[0, s, t] += term
                    sums[1, s, t] -= 2.0 * x * term


@kernel(numba.void(_LINE, _CELLS, _TABLE, _TABLE, _LINE, _LINE))
def smooth_tail(targets, cells, nodes, weights, above, tails):  # type: ignore[no-untyped-def]
    """Sum weight · Φ(√2 (node - target)); above[b] is the weight of all cells from b on."""
    for t in range(len(targets)):
        tail = above[cells[t] + REACH + 1]
        for b in range(cells[t] - REACH, cells[t] + REACH + 1):
            for j in range(nodes.shape[1]):
                if weights[b, j] != 0.0:
                    tail += weights[b, j] * 0.5 * math.erfc(targets[t] - nodes[b, j])
        tails[t] = tail


@kernel(numba.void(_CODES, _LINE, _LINE, _LINE, _LINE, _TABLE))
def sum_piece_powers(codes, column, left, slope, weight, sums):  # type: ignore[no-untyped-def]
    """Sum weight · u^p by piece, u = (x - left) slope; the last row of sums is of the missing."""
    missing = sums.shape[0] - 1
    for i in range(len(codes)):
        value = weight[i]
        if value == 0.0:
            continue
        piece = codes[i]
        if piece >= missing:
            sums[missing, 0] += value
            continue
        u = (column[i] - left[piece]) * slope[piece]
        for p in range(sums.shape[1]):
            sums[piece, p] += value
            value *= u


@kernel(numba.void(_CODES, _LINE, _LINE, _LINE, _TABLE, numba.float64, _LINE))
def piece_values(codes, column, left, slope, pieces, missing, values):  # type: ignore[no-untyped-def]
    """Evaluate the cubic piece of each value."""
    for i in range(len(codes)):
        piece = codes[i]
        if piece >= len(pieces):
            values[i] = missing
            continue
        u = (column[i] - left[piece]) * slope[piece]
        values[i] = pieces[piece, 0] + u * (
            pieces[piece, 1] + u * (pieces[piece, 2] + u * pieces[piece, 3])
        )


_READ_ONLY_LINE = numba.types.Array(numba.float64, 1, "C", readonly=True)
_READ_ONLY_TABLE = numba.types.Array(numba.float64, 2, "C", readonly=True)
_READ_ONLY_CELLS = numba.types.Array(numba.int64, 1, "C", readonly=True)


@kernel(
    numba.void(
        _READ_ONLY_TABLE,
        _READ_ONLY_CELLS,
        _READ_ONLY_LINE,
        _READ_ONLY_LINE,
        _READ_ONLY_LINE,
        _READ_ONLY_TABLE,
        _READ_ONLY_LINE,
        _TABLE,
    )
)
def contribute(X, starts, breaks, left, slope, pieces, missing, parts):  # type: ignore[no-untyped-def]
    """Write the value of each feature's piecewise cubic at each row.

    Feature j has the breaks from starts[j] to starts[j + 1], and one piece more: piece c holds the
    x with breaks[c-1] < x <= breaks[c].
    """
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            if np.isnan(x):
                parts[i, j] = missing[j]
                continue
            low, high = starts[j], starts[j + 1]
            while low < high:
                middle = (low + high) >> 1
                if x > breaks[middle]:
                    low = middle + 1
                else:
                    high = middle
            c = low + j
            u = (x - left[c]) * slope[c]
            parts[i, j] = pieces[c, 0] + u * (pieces[c, 1] + u * (pieces[c, 2] + u * pieces[c, 3]))
