"""Drawing the rows that a tree is grown on: those of great weight always, the others by chance.

A row of weight w is kept with probability min(1, w/μ) and then weighs max(w, μ): of all draws of so
many rows whose sums are right on average, this one varies least (Ibragimov & Gusev 2019). μ is set
so that the wanted number of rows is kept. Class-normalised weights make rare positives heavy: they
are all kept.
"""

import numba
import numpy as np

from core.base.ranker import Floats
from core.kernels import INNER, kernel

# μ is found on so many rows, spread evenly.
ESTIMATED_ON = 1 << 12


def find_threshold(weights: Floats, share: float) -> float:
    """Find μ with Σ min(1, w/μ) = share · n, on rows spread evenly.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,), float64
    share : float
        Above 0, below 1.

    Returns
    -------
    float
    """
    some = np.sort(np.abs(weights[:: max(len(weights) // ESTIMATED_ON, 1)]))
    n = len(some)
    # If just the k lightest are drawn by chance, μ follows from their sum; the fewest that leave
    # no heavier row below μ are the ones.
    drawn_of_light = share * n - np.arange(n - 1, -1, -1)
    sums = np.cumsum(some)
    heavier = np.append(some[1:], np.inf)
    k = int(np.argmax((drawn_of_light > 0) & (sums <= heavier * drawn_of_light)))
    return float(sums[k] / drawn_of_light[k])


@kernel(numba.float64(numba.uint64, numba.uint64))
def uniform(key, counter):  # type: ignore[no-untyped-def]
    """Draw from [0, 1) by a number: splitmix64 (Steele, Lea & Flood 2014) at key + counter."""
    z = key + (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@numba.njit(**INNER)
def close_up(rows, runs, counts):  # type: ignore[no-untyped-def]
    """Move the runs' kept rows together at the front; return how many."""
    end = 0
    for r in range(len(runs)):
        start = runs[r].start
        for i in range(counts[r]):
            rows[end + i] = rows[start + i]
        end += counts[r]
    return end
