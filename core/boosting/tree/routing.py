"""Passes over all rows of a coded table: send each to its leaf, sum up leaves, change weights.

Rows go in runs of fixed length, each class by itself; a thread takes runs from a queue. What runs
give is combined in their order, so that no figure depends on how many threads there are.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from core.kernel import kernel
from core.scan.by_row import COLUMNS, NARROW, prefetch
from core.scan.team import take

from .workspace import BY_SIDES

ROWS_AT_ONCE = 1024  # their codes of thirty columns stay in the first-level cache

_RUNS = numba.int64[:, ::1]
_LEAVES = numba.uint8[::1]


@kernel(
    numba.void(numba.uint8[::1], numba.int64, numba.int64, numba.uint8, numba.uint8, _LEAVES),
    numba.void(numba.uint16[::1], numba.int64, numba.int64, numba.uint8, numba.uint8, _LEAVES),
)
def move(codes, first, width, leaf, new, leaves):  # type: ignore[no-untyped-def]
    """Move the rows of a leaf whose code is not within `width` of `first` to a new one."""
    at, most = codes.dtype.type(first), codes.dtype.type(width)
    for i in range(len(leaves)):
        below = codes.dtype.type(codes[i] - at) > most
        leaves[i] = new if below & (leaves[i] == leaf) else leaves[i]


@kernel(
    numba.void(numba.uint8[::1], numba.uint8[::1], numba.uint8, numba.uint8, _LEAVES),
    numba.void(numba.uint16[::1], numba.uint8[::1], numba.uint8, numba.uint8, _LEAVES),
)
def move_by_sides(codes, above, leaf, new, leaves):  # type: ignore[no-untyped-def]
    """Move the rows of a leaf whose code has no 1 in `above` to a new one."""
    for i in range(len(leaves)):
        below = above[codes[i]] == 0
        leaves[i] = new if below & (leaves[i] == leaf) else leaves[i]


@kernel(numba.void(numba.uint64[::1], numba.uint64[::1], numba.uint64, numba.uint64))
def _exchange(first, second, shift, low):  # type: ignore[no-untyped-def]
    """Exchange the high parts of the first words and the low parts of the second."""
    for i in range(len(first)):
        a, b = first[i], second[i]
        exchanged = ((a >> shift) ^ b) & low
        first[i] = a ^ (exchanged << shift)
        second[i] = b ^ exchanged


@numba.njit(inline="always")
def _spread(words, start, n_rows, per_word, row_words, turned):  # type: ignore[no-untyped-def]
    ahead = ROWS_AT_ONCE * row_words
    for i in range(n_rows // per_word):
        for k in range(per_word):
            first = (start + i * per_word + k) * row_words
            prefetch(words, first + ahead)
            for q in range(row_words):
                turned[k, i * row_words + q] = words[np.uint64(first + q)]
    whole = n_rows - n_rows % per_word
    for k in range(n_rows - whole):
        for q in range(row_words):
            word = words[(start + whole + k) * row_words + q]
            turned[k, whole // per_word * row_words + q] = word


@kernel(numba.void(numba.uint64[::1], numba.int64, numba.int64, numba.int64, numba.uint64[:, ::1]))
def turn(words, start, n_rows, per_word, turned):  # type: ignore[no-untyped-def]
    """Turn a block of rows of codes into columns of codes.

    `per_word` rows that follow one another are dealt out to the rows of `turned`, one each. Then word
    i of row k there holds the k-th codes of those rows' i-th words: for each i a square of codes is
    transposed by exchanging ever larger squares in it (Warren, Hacker's Delight, section 7-3).
    """
    # With constants the compiler moves a row at once.
    if per_word == NARROW:
        _spread(words, start, n_rows, 8, 4, turned)
    else:
        _spread(words, start, n_rows, 4, 8, turned)
    bits = np.uint64(64 // per_word)
    distance = 1
    while distance < per_word:
        shift = bits * np.uint64(distance)
        low = ~np.uint64(0) // ((np.uint64(1) << shift) + np.uint64(1))
        for a in range(per_word):
            if a & distance == 0:
                _exchange(turned[a], turned[a + distance], shift, low)
        distance *= 2


class Route(NamedTuple):
    """A tree as questions to a coded table; see `Grower.grow` for splits and sides.

    Attributes
    ----------
    words, per_word
        Of the table; see `layout.Table`.
    splits : ndarray of shape (n_splits, 4), int64
    sides : ndarray of shape (n_splits, n_codes), uint8
    features : ndarray of int64
        Those that are asked for, ascending.
    asked : ndarray of shape (n_splits,), int64
        Of each split the place of its feature in `features`.
    missing : ndarray of shape (n_splits,), int64
        Of each split the missing code of its feature.
    """

    words: Any
    per_word: Any
    splits: Any
    sides: Any
    features: Any
    asked: Any
    missing: Any


_I1 = numba.int64[::1]
ROUTE_TYPE = numba.types.NamedTuple(
    (
        numba.uint64[:, ::1],
        numba.int64,
        numba.int64[:, ::1],
        numba.uint8[:, ::1],
        _I1,
        _I1,
        _I1,
    ),
    Route,
)


@kernel(
    numba.void(ROUTE_TYPE, numba.int64, numba.int64, numba.uint64[:, ::1], numba.uint64[:, ::1])
)
def _take_columns(route, low, n_rows, turned, columns):  # type: ignore[no-untyped-def]
    """Write the codes of the features asked for, of a block of rows."""
    per_word = route.per_word
    row_words = COLUMNS // per_word
    turned_block = -1
    for u, feature in enumerate(route.features):
        block, column = feature // COLUMNS, feature % COLUMNS
        if block != turned_block:
            turn(route.words[block], low, n_rows, per_word, turned)
            turned_block = block
        codes, at = turned[column % per_word], column // per_word
        for i in range(columns.shape[1]):
            columns[u, i] = codes[i * row_words + at]


@kernel(
    numba.void(numba.uint8[:, ::1], ROUTE_TYPE, _LEAVES),
    numba.void(numba.uint16[:, ::1], ROUTE_TYPE, _LEAVES),
)
def _ask(columns, route, at):  # type: ignore[no-untyped-def]
    """Let a block of rows meet each split once: those in its leaf and below its cut move on."""
    at[:] = 0
    for s in range(len(route.splits)):
        split, codes, new = route.splits[s], columns[route.asked[s]], np.uint8(s + 1)
        if split[2] == BY_SIDES:
            move_by_sides(codes, route.sides[s], np.uint8(split[0]), new, at)
        else:
            # The missing code, the greatest, ends the interval of those above or follows it.
            first = split[2] + 1
            width = route.missing[s] - 1 + split[3] - first
            move(codes, first, width, np.uint8(split[0]), new, at)


@kernel(numba.void(ROUTE_TYPE, numba.int64, numba.int64, _LEAVES))
def send(route, start, stop, leaves):  # type: ignore[no-untyped-def]
    """Write the leaf of each row in start:stop.

    A split costs a handful of vector instructions on the codes of a block of rows, whatever the
    depth.
    """
    part = ROWS_AT_ONCE // route.per_word
    # zeros, as the last block leaves a part as it is: nothing there may be more than a code
    turned = np.zeros((route.per_word, part * (COLUMNS // route.per_word)), dtype=np.uint64)
    columns = np.empty((len(route.features), part), dtype=np.uint64)
    for low in range(start, stop, ROWS_AT_ONCE):
        n_rows = min(ROWS_AT_ONCE, stop - low)
        _take_columns(route, low, n_rows, turned, columns)
        at = leaves[low : low + n_rows]
        if route.per_word == NARROW:
            _ask(columns.view(np.uint8), route, at)
        else:
            _ask(columns.view(np.uint16), route, at)


_SUM_RUN = (
    _RUNS,
    ROUTE_TYPE,
    numba.float64[:, ::1],
    numba.float64[::1],
    _LEAVES,
    numba.float64[:, :, ::1],
)


@kernel(numba.void(numba.int64, *_SUM_RUN))
def _sum_run(r, runs, route, weights, sample_weight, leaves, sums):  # type: ignore[no-untyped-def]
    start, stop, in_class = runs[r, 0], runs[r, 1], runs[r, 2]
    send(route, start, stop, leaves)
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


@kernel(numba.void(numba.int64[::1], numba.int64, *_SUM_RUN))
def sum_leaves(queue, n, runs, route, weights, sample_weight, leaves, sums):  # type: ignore[no-untyped-def]
    """For runs from the queue write each row's leaf, and sums of weights to sums[run, half, leaf].

    One weight per row is summed by class; of two, each has a half of its own. Sample weights, all 1
    if there are none, go to sums[run, 2, leaf].
    """
    r = take(queue)
    while r < n:
        _sum_run(r, runs, route, weights, sample_weight, leaves, sums)
        r = take(queue)


_RESCALE_RUN = (
    _RUNS,
    numba.uint8[::1],
    numba.float64[:, ::1],
    numba.float64[::1],
    numba.float64[::1],
    numba.float64[::1],
)


@kernel(numba.void(numba.int64, *_RESCALE_RUN), error_model="numpy")
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


@kernel(numba.void(numba.int64[::1], numba.int64, *_RESCALE_RUN))
def rescale(queue, n, runs, leaves, factors, sample_weight, weights, squares):  # type: ignore[no-untyped-def]
    """For runs from the queue multiply weights by factors[class, leaf], and write Σ weight² / w to squares.

    w is the sample weight; an empty sample_weight means that all are 1.
    """
    r = take(queue)
    while r < n:
        _rescale_run(r, runs, leaves, factors, sample_weight, weights, squares)
        r = take(queue)


_LOGISTIC_RUN = (
    _RUNS,
    numba.uint8[::1],
    numba.float64[::1],
    numba.float64[::1],
    numba.float64[::1],
    numba.float64[:, ::1],
    numba.float64[:, ::1],
)


@kernel(numba.void(numba.int64, *_LOGISTIC_RUN))
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


@kernel(numba.void(numba.int64[::1], numba.int64, *_LOGISTIC_RUN))
def step_logistic(queue, n, runs, leaves, values, sample_weight, scores, weights, sums):  # type: ignore[no-untyped-def]
    """For runs from the queue add each row's leaf value to its score, and write gradient and curvature.

    sums[run]: the logistic loss, Σ curvature, and Σ curvature² / sample weight.
    """
    r = take(queue)
    while r < n:
        _logistic_run(r, runs, leaves, values, sample_weight, scores, weights, sums)
        r = take(queue)
