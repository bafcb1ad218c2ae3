"""The stratified bootstrap of areas under the ROC curve.

Units are drawn with replacement within strata. A unit is a row, or all rows of a group. Its stratum is the set of
classes that it holds: positives, negatives or both. Every sample so has the same number of units of each kind, and none
lacks a class. A row keeps its weight.

No sample is sorted. The rows are sorted once by each scorer; a sample is the number of times that each unit was drawn,
and one pass down the sorted rows adds up its curve. All scorers are evaluated on the same draws, so that replicates of
their differences are paired.

Draws are exact: words of the counter generator Philox4x32-10, brought to a range by Lemire's multiplication with
rejection. Seed and replicate are the generator's key and counter: a replicate has the same bits whichever thread draws
it, and the first replicates of a longer run are those of a shorter one.

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
from core.metrics.groups import EvaluatedRows, FloatArray, group_rows
from core.metrics.window import Window

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


def draw_areas(
    rows: EvaluatedRows, windows: Sequence[Window], n_bootstrap: int, random_state: int
) -> FloatArray:
    """Return the areas of bootstrap samples, divided by the window's width.

    O(n_scorers · n log n + n_bootstrap · n_scorers · n · n_windows) time, O(n) memory per thread.

    Returns
    -------
    ndarray of shape (n_bootstrap, n_scorers, n_windows), float64
    """
    n_scorers = len(rows.scores)
    first = group_rows(rows, 0)[1]  # rows sorted by the first scorer are read in order of memory
    order = np.empty((n_scorers, first.size), dtype=np.int64)
    last = np.empty((n_scorers, first.size), dtype=np.bool_)
    index = np.empty(first.size, dtype=np.int64)
    index[first] = np.arange(first.size)
    for scorer in range(n_scorers):
        ranked = group_rows(rows, scorer)[1]
        scores = rows.scores[scorer][ranked]
        order[scorer] = index[ranked]
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
    """Return the units, ordered by stratum, and the index at which each stratum begins and the last one ends."""
    n_units = int(unit.max()) + 1
    holds = np.zeros(n_units, dtype=np.int64)
    holds[unit[positive]] |= 1
    holds[unit[~positive]] |= 2
    units = np.argsort(holds, kind="stable")
    return units, np.searchsorted(holds[units], [1, 2, 3, 4])


@kernel(numba.void(numba.uint64[::1], numba.uint64, numba.uint64, numba.uint64[::1]))
def philox(key, high, low, words):  # type: ignore[no-untyped-def]
    """Write Philox4x32-10 of a key at the counter (low, high) to `words`.

    `key`, shape (2,), and `words`, shape (4,), are of uint64 and hold 32 bits each; `low` and `high` are uint64.
    """
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
    """Write the areas of replicates start, start + step, …; see `draw_areas`.

    Parameters
    ----------
    start, step, n_replicates : int
    key : ndarray of shape (2,), uint64
        Key of Philox.
    units : ndarray of shape (n_units,), int64
        Ordered by stratum.
    starts : ndarray of shape (4,), int64
        Where each of the three strata begins in `units`, and where the last one ends.
    unit : ndarray of shape (n_rows,), int64
        The unit of each row, rows being in the order of the first scorer.
    positive, negative : ndarray of shape (n_rows,), float64
        Weight of the row in each class.
    order : ndarray of shape (n_scorers, n_rows), int64
        Rows from the highest score down.
    last : ndarray of shape (n_scorers, n_rows), bool
        Whether the row is the last of its tie in that order.
    windows : ndarray of shape (n_windows, 2), float64
    areas : ndarray of shape (n_bootstrap, n_scorers, n_windows), float64
        Written.
    """
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
