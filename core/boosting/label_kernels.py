"""Passes over the (row, label) pairs of a cut with votes.

A label's weak ranker is high where `is_above` is what its vote says: above where it is 1, below where
it is -1. Pairs are of four sorts: had and high, had and low, not had and high, not had and low; sums
and factors come in that order.
"""

import numba
import numpy as np

from core.kernel import kernel

_CELLS = numba.types.Array(numba.boolean, 2, "C")
_SIDES = (numba.boolean[::1], numba.int8[::1])


@kernel(numba.float64[::1](numba.float64[:, ::1], _CELLS, *_SIDES))
def sum_sorts(v, has, is_above, votes):  # type: ignore[no-untyped-def]
    """Sum the weights of each sort."""
    sums = np.zeros(4)
    for i in range(v.shape[0]):
        for k in range(v.shape[1]):
            is_high = is_above[i] == (votes[k] > 0)
            sums[(0 if has[i, k] else 2) + (0 if is_high else 1)] += v[i, k]
    return sums


@kernel(numba.void(numba.float64[:, ::1], _CELLS, *_SIDES, numba.float64[::1]))
def rescale_sorts(v, has, is_above, votes, factors):  # type: ignore[no-untyped-def]
    """Multiply the weights of each sort by its factor."""
    for i in range(v.shape[0]):
        for k in range(v.shape[1]):
            is_high = is_above[i] == (votes[k] > 0)
            v[i, k] *= factors[(0 if has[i, k] else 2) + (0 if is_high else 1)]


@kernel(numba.float64[::1](numba.float64[:, ::1], numba.boolean[::1]))
def sum_edges(signed, is_above):  # type: ignore[no-untyped-def]
    """Give per label the signed mass above the cut less that below it."""
    edges = np.zeros(signed.shape[1])
    for i in range(signed.shape[0]):
        sign = 1.0 if is_above[i] else -1.0
        for k in range(signed.shape[1]):
            edges[k] += sign * signed[i, k]
    return edges
