"""Two sorted classes become one ranking: a step a row, no sort of places."""

from __future__ import annotations

import numba
import numpy as np

from core.kernel import kernel


@kernel(
    numba.int64(
        numba.float64[::1],
        numba.float64[::1],
        numba.intp[::1],
        numba.intp[::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
    )
)
def merge(  # type: ignore[no-untyped-def]
    positives, negatives, of_positives, of_negatives, distinct, above_positives, above_negatives
):
    """Number the distinct values of two ascending classes from the greatest on; return how many there are.

    A step takes the next row of either class; it has no branch, since which class comes next is as good as random.
    """
    n_positives, n_negatives = np.uint64(len(positives)), np.uint64(len(negatives))
    p, n, n_groups = np.uint64(0), np.uint64(0), np.uint64(0)
    one, last = np.uint64(1), np.inf
    while p < n_positives and n < n_negatives:
        own, other = positives[n_positives - one - p], negatives[n_negatives - one - n]
        from_positives = np.uint64(own >= other)
        value = max(own, other)
        n_groups += np.uint64(value != last)
        # Only the row taken keeps its number; the other is numbered again when its turn comes.
        of_positives[p] = of_negatives[n] = n_groups - one
        distinct[n_groups - one] = last = value
        p += from_positives
        n += one - from_positives
        above_positives[n_groups], above_negatives[n_groups] = p, n
    while p < n_positives or n < n_negatives:
        of_left = p < n_positives
        value = positives[n_positives - one - p] if of_left else negatives[n_negatives - one - n]
        n_groups += np.uint64(value != last)
        if of_left:
            of_positives[p] = n_groups - one
            p += one
        else:
            of_negatives[n] = n_groups - one
            n += one
        distinct[n_groups - one] = last = value
        above_positives[n_groups], above_negatives[n_groups] = p, n
    return np.int64(n_groups)
