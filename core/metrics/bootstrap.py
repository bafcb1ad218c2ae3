"""Areas of samples drawn again: with replacement, unit by unit, within strata.

A unit is a row, or all rows of a group. Its stratum says which classes it holds: positives, negatives or both. Drawing
within strata keeps the number of units of each kind, so no sample lacks a class, and without groups it is the
stratified bootstrap: as many positives and negatives as there are. A row keeps its weight.

No sample is sorted. The rows are sorted once by each scorer; a sample is a vector of counts, how often each unit was
drawn, and one walk down the sorted rows adds up its curve. Scorers are evaluated on the same draws, so that replicates
of their differences are paired.

Draws are exact: words of the counter generator Philox4x32-10, brought to a range by Lemire's multiplication with
rejection. Seed and replicate are the generator's key and counter, so that a replicate has the same bits whichever
thread draws it, and the first replicates of two runs are the same.

References
----------
Efron & Tibshirani, "An Introduction to the Bootstrap" (1993).
Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11: Philox.
Lemire, "Fast random integer generation in an interval", ACM TOMACS 29 (2019).
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
from numpy.typing import NDArray

from core.coding.threads import ThreadPool
from core.kernels import kernel
from core.metrics.groups import FloatArray, Rows, group_rows
from core.metrics.window import Window

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


def draw_areas(
    rows: Rows, windows: Sequence[Window], n_bootstrap: int, random_state: int
) -> FloatArray:
    """Areas of samples, each divided by its window's width.

    O(n_scorers · n log n + n_bootstrap · n_scorers · n · n_windows) time, O(n) memory for each thread. Returns ndarray
    of float64, shape (n_bootstrap, n_scorers, n_windows).
    """
    n_scorers = len(rows.scores)
    first = group_rows(rows, 0)[1]  # rows in the order of one scorer are read one after the other
    order = np.empty((n_scorers, first.size), dtype=np.int64)
    last = np.empty((n_scorers, first.size), dtype=np.bool_)
    place = np.empty(first.size, dtype=np.int64)
    place[first] = np.arange(first.size)
    for scorer in range(n_scorers):
        ranked = group_rows(rows, scorer)[1]
        scores = rows.scores[scorer][ranked]
        order[scorer] = place[ranked]
        last[scorer] = np.append(scores[1:] != scores[:-1], True)
    weight = np.ones(first.size) if rows.weight is None else rows.weight[first]
    positive = rows.positive[first]
    unit = np.arange(first.size) if rows.unit is None else rows.unit[first]
    units, starts = _strata(positive, unit)
    areas = np.empty((n_bootstrap, n_scorers, len(windows)))
    key = np.random.SeedSequence(int(random_state)).generate_state(2, np.uint32)
    ThreadPool(n_bootstrap * order.size).run(
        _draw_and_walk,
        n_bootstrap,
        key.astype(np.uint64),
        units,
        starts,
        unit.astype(np.int64),
        np.where(positive, weight, 0.0),
        np.where(positive, 0.0, weight),
        order,
        last,
        np.array(windows, dtype=np.float64),
        areas,
    )
    return areas


def _strata(
    positive: NDArray[np.bool_], unit: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Units with rows, ordered by the classes they hold, and where each stratum begins and ends."""
    n_units = int(unit.max()) + 1
    holds = np.zeros(n_units, dtype=np.int64)
    holds[unit[positive]] |= 1
    holds[unit[~positive]] |= 2
    units = np.argsort(holds, kind="stable")
    return units, np.searchsorted(holds[units], [1, 2, 3, 4])


@kernel(numba.void(numba.uint64[::1], numba.uint64, numba.uint64, numba.uint64[::1]))
def philox(key, high, low, words):  # type: ignore[no-untyped-def]
    """Fill four words of 32 bits: Philox4x32-10 of a key of two words at the counter (low, high)."""
    a, b = low & _MASK, low >> _HALF
    c, d = high & _MASK, high >> _HALF
    k, m = key[0], key[1]
    for _ in range(_ROUNDS):
        one, two = _MULTIPLIERS[0] * a, _MULTIPLIERS[1] * c
        a, b, c, d = (two >> _HALF) ^ b ^ k, two & _MASK, (one >> _HALF) ^ d ^ m, one & _MASK
        k, m = (k + _WEYL[0]) & _MASK, (m + _WEYL[1]) & _MASK
    words[0], words[1], words[2], words[3] = a, b, c, d


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        numba.uint64[::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.int64[:, ::1],
        numba.boolean[:, ::1],
        numba.float64[:, ::1],
        numba.float64[:, :, ::1],
    )
)
def _draw_and_walk(  # type: ignore[no-untyped-def]
    start,
    step,
    n_replicates,
    key,
    units,
    starts,
    unit,
    positive,
    negative,
    order,
    last,
    windows,
    areas,
):
    """Fill the areas of replicates start, start + step, …; see `draw_areas`."""
    counts = np.empty(len(units), dtype=np.int32)
    drawn = np.empty((2, len(unit)))
    words = np.empty(4, dtype=np.uint64)
    ends = np.empty((len(windows), 2))
    for replicate in range(start, n_replicates, step):
        # Count how often each unit is drawn, as often in each stratum as it has units.
        used, block = 4, np.uint64(0)
        for i in range(len(counts)):
            counts[i] = 0
        for stratum in range(len(starts) - 1):
            first = starts[stratum]
            size = np.uint64(starts[stratum + 1] - first)
            if size == np.uint64(0):
                continue
            refused = ((_MASK + np.uint64(1)) - size) % size
            n_drawn = np.uint64(0)
            while n_drawn < size:
                if used == 4:
                    philox(key, np.uint64(replicate), block, words)
                    used, block = 0, block + np.uint64(1)
                product = words[used] * size
                used += 1
                if (product & _MASK) >= refused:
                    counts[units[first + np.int64(product >> _HALF)]] += 1
                    n_drawn += np.uint64(1)
        all_positive = all_negative = 0.0
        for i in range(len(unit)):
            times = np.float64(counts[unit[i]])
            drawn[0, i], drawn[1, i] = times * positive[i], times * negative[i]
            all_positive += drawn[0, i]
            all_negative += drawn[1, i]
        furthest = 0.0
        for j in range(len(ends)):
            ends[j, 0], ends[j, 1] = windows[j, 0] * all_negative, windows[j, 1] * all_negative
            furthest = max(furthest, ends[j, 1])
        for scorer in range(order.shape[0]):
            # Walk down the ranking, tie by tie, and add up the area over each window.
            for j in range(len(ends)):
                areas[replicate, scorer, j] = 0.0
            x = y = dx = dy = 0.0
            for i in range(order.shape[1]):
                dy += drawn[0, order[scorer, i]]
                dx += drawn[1, order[scorer, i]]
                if not last[scorer, i]:
                    continue
                if dx > 0.0:
                    for j in range(len(ends)):
                        left, right = max(x, ends[j, 0]), min(x + dx, ends[j, 1])
                        if right > left:
                            height = y + dy * ((left + right) / 2.0 - x) / dx
                            areas[replicate, scorer, j] += (right - left) * height
                    x += dx
                    if x >= furthest:
                        break
                y += dy
                dx = dy = 0.0
            for j in range(len(ends)):
                areas[replicate, scorer, j] /= (ends[j, 1] - ends[j, 0]) * all_positive
