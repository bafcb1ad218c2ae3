"""Passes over all rows of a coded table: send each to its leaf, sum up leaves, change weights.

Rows go in runs of fixed length, each class by itself; a thread does every step-th run from a first
one on. What runs give is combined in their order, so that no figure depends on how many threads
there are.
"""

import math

import numba
import numpy as np

from core.scan import MISSING

ROWS_AT_ONCE = 1024  # their codes of thirty columns stay in the first-level cache

_RUNS = numba.int64[:, ::1]


@numba.njit(
    numba.void(
        numba.uint8[::1], numba.uint8, numba.uint8, numba.uint8, numba.uint8, numba.uint8[::1]
    ),
    nogil=True,
    cache=True,
)
def _move(column, first, width, leaf, new, leaves):  # type: ignore[no-untyped-def]
    """Move the rows of a leaf whose code is not within `width` of `first` to a new one."""
    for i in range(len(leaves)):
        below = np.uint8(column[i] - first) > width
        leaves[i] = new if below & (leaves[i] == leaf) else leaves[i]


@numba.njit(
    numba.void(
        numba.uint8[:, ::1], numba.int64[:, ::1], numba.int64, numba.int64, numba.uint8[::1]
    ),
    nogil=True,
    cache=True,
)
def route(codes, splits, start, stop, leaves):  # type: ignore[no-untyped-def]
    """Write the leaf of each row in start:stop; splits as from `Grower.grow`.

    A block of rows meets each split once: those in the split leaf and below its cut move on. That
    is a handful of vector instructions on bytes, whatever the depth.
    """
    for low in range(start, stop, ROWS_AT_ONCE):
        high = min(low + ROWS_AT_ONCE, stop)
        leaves[low:high] = 0
        for s in range(len(splits)):
            first = splits[s, 2] + 1
            width = MISSING - 1 + splits[s, 3] - first
            _move(
                codes[splits[s, 1], low:high],
                np.uint8(first),
                np.uint8(width),
                np.uint8(splits[s, 0]),
                np.uint8(s + 1),
                leaves[low:high],
            )


_SUM_RUN = (
    numba.uint8[:, ::1],
    numba.int64[:, ::1],
    _RUNS,
    numba.float64[:, ::1],
    numba.float64[::1],
    numba.uint8[::1],
    numba.float64[:, :, ::1],
)


@numba.njit(numba.void(numba.int64, *_SUM_RUN), nogil=True, cache=True)
def _sum_run(r, codes, splits, runs, weights, sample_weight, leaves, sums):  # type: ignore[no-untyped-def]
    start, stop, in_class = runs[r, 0], runs[r, 1], runs[r, 2]
    route(codes, splits, start, stop, leaves)
    sums[r] = 0.0
    first = sums[r, in_class] if len(weights) == 1 else sums[r, 0]
    second, counts = sums[r, 1], sums[r, 2]
    two_weights, weighted = len(weights) == 2, len(sample_weight) > 0
    for i in range(start, stop):
        leaf = np.uint64(leaves[i])
        first[leaf] += weights[0, i]
        if two_weights:
            second[leaf] += weights[1, i]
        counts[leaf] += sample_weight[i] if weighted else 1.0


@numba.njit(numba.void(numba.int64, numba.int64, numba.int64, *_SUM_RUN), nogil=True, cache=True)
def sum_leaves(first, step, n, codes, splits, runs, weights, sample_weight, leaves, sums):  # type: ignore[no-untyped-def]
    """For every step-th run write each row's leaf, and sums of weights to sums[run, half, leaf].

    One weight per row is summed by class; of two, each has a half of its own. Sample weights, all 1
    if there are none, go to sums[run, 2, leaf].
    """
    for r in range(first, n, step):
        _sum_run(r, codes, splits, runs, weights, sample_weight, leaves, sums)


_RESCALE_RUN = (
    _RUNS,
    numba.uint8[::1],
    numba.float64[:, ::1],
    numba.float64[::1],
    numba.float64[::1],
    numba.float64[::1],
)


@numba.njit(
    numba.void(numba.int64, *_RESCALE_RUN),
    nogil=True,
    cache=True,
    error_model="numpy",
)
def _rescale_run(r, runs, leaves, factors, sample_weight, weights, squares):  # type: ignore[no-untyped-def]
    start, stop = runs[r, 0], runs[r, 1]
    factor = factors[runs[r, 2]]
    weighted = len(sample_weight) > 0
    total = 0.0
    for i in range(start, stop):
        weight = weights[i] * factor[leaves[i]]
        weights[i] = weight
        total += weight * weight / sample_weight[i] if weighted else weight * weight
    squares[r] = total


@numba.njit(
    numba.void(numba.int64, numba.int64, numba.int64, *_RESCALE_RUN), nogil=True, cache=True
)
def rescale(first, step, n, runs, leaves, factors, sample_weight, weights, squares):  # type: ignore[no-untyped-def]
    """For every step-th run multiply weights by factors[class, leaf], and write Σ weight² / w to squares.

    w is the sample weight; an empty sample_weight means that all are 1.
    """
    for r in range(first, n, step):
        _rescale_run(r, runs, leaves, factors, sample_weight, weights, squares)


_LOGISTIC_RUN = (
    _RUNS,
    numba.uint8[::1],
    numba.float64[::1],
    numba.float64[::1],
    numba.float64[::1],
    numba.float64[:, ::1],
    numba.float64[:, ::1],
)


@numba.njit(numba.void(numba.int64, *_LOGISTIC_RUN), nogil=True, cache=True)
def _logistic_run(r, runs, leaves, values, sample_weight, scores, weights, sums):  # type: ignore[no-untyped-def]
    sign = 1.0 if runs[r, 2] == 0 else -1.0
    loss = curvature = square = 0.0
    weighted = len(sample_weight) > 0
    for i in range(runs[r, 0], runs[r, 1]):
        score = scores[i] + values[leaves[i]]
        scores[i] = score
        margin = sign * score
        small = math.exp(-abs(margin))
        wrong = 1.0 / (1.0 + small) if margin < 0.0 else small / (1.0 + small)
        bend = small / (1.0 + small) ** 2
        weight = sample_weight[i] if weighted else 1.0
        weights[0, i] = sign * weight * wrong
        weights[1, i] = weight * bend
        loss += weight * (math.log1p(small) + max(-margin, 0.0))
        curvature += weight * bend
        square += weight * bend * bend
    sums[r, 0] = loss
    sums[r, 1] = curvature
    sums[r, 2] = square


@numba.njit(
    numba.void(numba.int64, numba.int64, numba.int64, *_LOGISTIC_RUN), nogil=True, cache=True
)
def step_logistic(first, step, n, runs, leaves, values, sample_weight, scores, weights, sums):  # type: ignore[no-untyped-def]
    """For every step-th run add each row's leaf value to its score, and write gradient and curvature.

    sums[run]: the logistic loss, Σ curvature, and Σ curvature² / sample weight.
    """
    for r in range(first, n, step):
        _logistic_run(r, runs, leaves, values, sample_weight, scores, weights, sums)
