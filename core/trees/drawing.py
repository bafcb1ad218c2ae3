"""Drawing the rows that a tree is grown on: those of great weight always, the others by chance.

A row of weight w is kept with probability min(1, w/μ) and then weighs max(w, μ): of all draws of so
many rows whose sums are right on average, this one varies least (Ibragimov & Gusev 2019). μ is set
so that the wanted number of rows is kept. Class-normalised weights make rare positives heavy: they
are all kept.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.coding.team import take
from core.kernel import kernel
from core.ranker import Floats

from .layout import Integers

# μ is found on so many rows, spread evenly.
ESTIMATED_ON = 1 << 12


class Drawn(NamedTuple):
    """How many rows a tree is grown on, and what the light ones weigh.

    Attributes
    ----------
    n_positives, n_rows : int
        How many positives were drawn, and how many rows; listed positives first, each class ascending.
    least_weight : float
        μ; 0 where all rows are taken as they are.
    """

    n_positives: int
    n_rows: int
    least_weight: float


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


@kernel(
    numba.void(
        numba.int64[::1],
        numba.int64,
        numba.int64[:, ::1],
        numba.float64[::1],
        numba.float64,
        numba.uint64,
        numba.uint32[::1],
        numba.int64[::1],
    )
)
def draw(queue, n, runs, weights, threshold, key, rows, counts):  # type: ignore[no-untyped-def]
    """For runs from the queue write the rows that are kept, from the run's start on, and their number."""
    r = take(queue)
    while r < n:
        end = np.uint64(runs[r, 0])
        for i in range(runs[r, 0], runs[r, 1]):
            rows[end] = i
            kept = uniform(key, np.uint64(i)) * threshold < abs(weights[i])
            end += np.uint64(1) if kept else np.uint64(0)
        counts[r] = np.int64(end) - runs[r, 0]
        r = take(queue)


def close_up(rows: npt.NDArray[np.uint32], runs: Integers, counts: Integers) -> Integers:
    """Move the runs' kept rows together at the front; return how many of each class."""
    end = 0
    for start, count in zip(runs[:, 0].tolist(), counts.tolist(), strict=True):
        rows[end : end + count] = rows[start : start + count]
        end += count
    return np.bincount(runs[:, 2], weights=counts, minlength=2).astype(np.int64)
