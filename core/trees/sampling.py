"""Sampling the rows on which a tree is grown: rows of large weight always, the others at random.

A row of weight w is kept with probability min(1, w/μ) and then has the weight max(w, μ). Of all draws of
that size whose sums are unbiased, this one has the least variance (Ibragimov & Gusev 2019). μ is set so
that the wanted number of rows is kept. Weights that are normalised by class make rare positives heavy:
they are all kept.
"""

import numba
import numpy as np

from core.base.ranker import Floats
from core.base.splits import GOLDEN_GAMMA, Integers, draw_spread, splitmix64
from core.kernels import INNER, kernel

# Rows, drawn at random, that μ is computed from.
THRESHOLD_ROWS = 1 << 12


def draw_rows(n_rows: int, key: int) -> Integers:
    """Return the ascending numbers of the rows that μ is computed from."""
    return draw_spread(n_rows, min(n_rows, THRESHOLD_ROWS), key)


def find_threshold(weights: Floats, fraction: float) -> float:
    """Return μ with Σ min(1, w/μ) = fraction · n, the weight above which a row is always drawn.

    weights: (n,); of a sample of rows.
    fraction: above 0, below 1.
    """
    some = np.abs(weights)
    some.sort()
    n = len(some)
    # If exactly the k lightest rows are drawn at random, μ follows from their sum. The right k is the least one for
    # which no heavier row is below μ.
    drawn_of_light = fraction * n - np.arange(n - 1, -1, -1)
    sums = np.cumsum(some)
    some[1:] *= drawn_of_light[:-1]
    is_right = drawn_of_light > 0
    is_right[:-1] &= sums[:-1] <= some[1:]
    k = int(np.argmax(is_right))
    return float(sums[k] / drawn_of_light[k])


_splitmix64 = numba.njit(inline="always")(splitmix64)


@kernel(numba.float64(numba.uint64, numba.uint64))
def uniform(key, counter):  # type: ignore[no-untyped-def]
    """Return a pseudo-random number in [0, 1) determined by key and counter (uint64), by splitmix64."""
    return np.float64(_splitmix64(key + counter * GOLDEN_GAMMA) >> np.uint64(11)) * 2.0**-53


@numba.njit(**INNER)
def close_up(rows, runs, counts):  # type: ignore[no-untyped-def]
    """Move the rows sampled from each run to the front of rows, (n_rows,) uint32; return their number.

    runs: (n_runs,) `grower.PASS`; counts: (n_runs,) int64, rows drawn from the start of each run on.
    """
    end = 0
    for r in range(len(runs)):
        start = runs[r].start
        for i in range(counts[r]):
            rows[end + i] = rows[start + i]
        end += counts[r]
    return end
