"""Passes over all rows of a coded table: send each to its leaf, sum up leaves, change weights.

Rows go in runs of fixed length, each class by itself; a thread takes runs from a queue. What runs
give is combined in their order, so that no figure depends on how many threads there are.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from core.coding.by_row import COLUMNS, NARROW, prefetch
from core.coding.team import take
from core.kernel import kernel

ROWS_AT_ONCE = 1024  # their codes of thirty columns stay in the first-level cache

_RUNS = numba.int64[:, ::1]
_LEAVES = numba.uint16[::1]

MOST_MET = 255  # splits, so that a leaf's number fits a byte


@kernel(
    numba.void(
        numba.uint8[:, ::1], numba.int64[:, ::1], numba.uint8[::1], numba.uint8[::1], _LEAVES
    ),
    numba.void(
        numba.uint16[:, ::1], numba.int64[:, ::1], numba.uint8[::1], numba.uint8[::1], _LEAVES
    ),
    inner=True,
)
def find_leaves(columns, splits, sides, room, found):  # type: ignore[no-untyped-def]
    """Find the leaf of each row of a block.

    columns: (n_asked, n_rows or more), codes of the features asked for; splits: see `Route`; room: (n_rows,).

    All rows, in leaf 0 at first, meet each split once: those in its leaf and below its cut move on. That takes a
    handful of vector instructions, whatever the depth. Of more splits than a byte can number each row meets
    those on its own way alone.
    """
    code = columns.dtype.type
    if len(splits) > MOST_MET:
        # The split that a leaf's rows meet next; of a leaf that is not divided again its number, inverted.
        n_splits = len(splits)
        following = np.empty(n_splits + 1, dtype=np.int64)
        ways = np.empty((n_splits, 2), dtype=np.int64)
        for number in range(n_splits + 1):
            following[number] = ~number
        for s in range(n_splits - 1, -1, -1):
            ways[s, 0], ways[s, 1] = following[s + 1], following[splits[s, 0]]
            following[splits[s, 0]] = s
        for i in range(len(found)):
            at = np.int64(0)
            while at >= 0:
                c, place = columns[splits[at, 1], i], splits[at, 4]
                above = code(c - code(splits[at, 2])) <= code(splits[at, 3])
                if place >= 0:
                    above = sides[place + c] != 0
                at = ways[at, 1 if above else 0]
            found[i] = ~at
        return
    leaves = room[: len(found)]
    for i in range(len(leaves)):
        leaves[i] = 0
    for s in range(len(splits)):
        leaf, new, codes = np.uint8(splits[s, 0]), np.uint8(s + 1), columns[splits[s, 1]]
        place = splits[s, 4]
        if place >= 0:
            above = sides[place:]
            for i in range(len(leaves)):
                below = above[codes[i]] == 0
                leaves[i] = new if below & (leaves[i] == leaf) else leaves[i]
        else:
            first, width = code(splits[s, 2]), code(splits[s, 3])
            for i in range(len(leaves)):
                below = code(codes[i] - first) > width
                leaves[i] = new if below & (leaves[i] == leaf) else leaves[i]
    for i in range(len(leaves)):
        found[i] = leaves[i]


@kernel(numba.void(numba.uint64[::1], numba.uint64[::1], numba.uint64, numba.uint64), inner=True)
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


@kernel(
    numba.void(numba.uint64[::1], numba.int64, numba.int64, numba.int64, numba.uint64[:, ::1]),
    inner=True,
)
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
    """A tree as questions to a coded table.

    Attributes
    ----------
    words, per_word
        Of the table; see `layout.Table`.
    features : ndarray of int64
        Those that are asked for, ascending.
    splits : ndarray of shape (n_splits, 5), int64
        The leaf, the place of the feature in `features`, the first code above the cut, how many codes
        follow it above the cut, and the place of the sides in `sides`, -1 if it has none; where it has
        some, first and number mean nothing.
    sides : ndarray of uint8
        1 for the codes above.
    """

    words: Any
    per_word: Any
    features: Any
    splits: Any
    sides: Any


ROUTE_TYPE = numba.types.NamedTuple(
    (
        numba.uint64[:, ::1],
        numba.int64,
        numba.int64[::1],
        numba.int64[:, ::1],
        numba.uint8[::1],
    ),
    Route,
)


@kernel(numba.void(ROUTE_TYPE, numba.int64, numba.int64, _LEAVES), inner=True)
def send(route, start, stop, leaves):  # type: ignore[no-untyped-def]
    """Write the leaf of each row in start:stop."""
    per_word = route.per_word
    row_words, part = COLUMNS // per_word, ROWS_AT_ONCE // per_word
    # zeros, as the last block leaves a part as it is: nothing there may be more than a code
    turned = np.empty((per_word, part * row_words), dtype=np.uint64)
    for k in range(per_word):
        for i in range(part * row_words):
            turned[k, i] = np.uint64(0)
    columns = np.empty((len(route.features), part), dtype=np.uint64)
    room = np.empty(ROWS_AT_ONCE, dtype=np.uint8)
    for low in range(start, stop, ROWS_AT_ONCE):
        n_rows = min(ROWS_AT_ONCE, stop - low)
        turned_block = -1
        for u in range(len(route.features)):
            feature = route.features[u]
            block, column = feature // COLUMNS, feature % COLUMNS
            if block != turned_block:
                turn(route.words[block], low, n_rows, per_word, turned)
                turned_block = block
            codes, at = turned[column % per_word], column // per_word
            for i in range(part):
                columns[u, i] = codes[i * row_words + at]
        at = leaves[low : low + n_rows]
        if per_word == NARROW:
            find_leaves(columns.view(np.uint8), route.splits, route.sides, room, at)
        else:
            find_leaves(columns.view(np.uint16), route.splits, route.sides, room, at)


@kernel(
    numba.void(
        numba.int64[::1],
        numba.int64,
        _RUNS,
        ROUTE_TYPE,
        numba.float64[:, ::1],
        numba.float64[::1],
        _LEAVES,
        numba.float64[:, :, ::1],
    )
)
def sum_leaves(queue, n, runs, route, weights, sample_weight, leaves, sums):  # type: ignore[no-untyped-def]
    """For runs from the queue write each row's leaf, and sums of weights to sums[run, half, leaf].

    One weight per row is summed by class; of two, each has a half of its own. Sample weights, all 1
    if there are none, go to sums[run, 2, leaf].
    """
    two_weights, weighted = len(weights) == 2, len(sample_weight) > 0
    r = take(queue)
    while r < n:
        start, stop, in_class = runs[r, 0], runs[r, 1], runs[r, 2]
        send(route, start, stop, leaves)
        for half in range(sums.shape[1]):
            for k in range(len(route.splits) + 1):
                sums[r, half, k] = 0.0
        first = sums[r, 0 if two_weights else in_class]
        second, counts = sums[r, 1], sums[r, 2]
        for i in range(start, stop):
            leaf = np.uint64(leaves[i])
            first[leaf] += weights[0, i]
            if two_weights:
                second[leaf] += weights[1, i]
            counts[leaf] += sample_weight[i] if weighted else 1.0
        r = take(queue)


@kernel(
    numba.void(
        numba.int64[::1],
        numba.int64,
        _RUNS,
        _LEAVES,
        numba.float64[:, ::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
    ),
    error_model="numpy",
)
def rescale(queue, n, runs, leaves, factors, sample_weight, weights, squares):  # type: ignore[no-untyped-def]
    """For runs from the queue multiply weights by factors[class, leaf], and write Σ weight² / w to squares.

    w is the sample weight; an empty sample_weight means that all are 1.
    """
    weighted = len(sample_weight) > 0
    r = take(queue)
    while r < n:
        factor = factors[runs[r, 2]]
        total = 0.0
        for i in range(runs[r, 0], runs[r, 1]):
            weight = weights[i] * factor[leaves[i]]
            weights[i] = weight
            total += weight * weight / sample_weight[i] if weighted else weight * weight
        squares[r] = total
        r = take(queue)


@kernel(
    numba.void(
        numba.int64[::1],
        numba.int64,
        _RUNS,
        _LEAVES,
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[:, ::1],
        numba.float64[:, ::1],
    )
)
def step_logistic(queue, n, runs, leaves, values, sample_weight, scores, weights, sums):  # type: ignore[no-untyped-def]
    """For runs from the queue add each row's leaf value to its score, and write gradient and curvature.

    sums[run]: the logistic loss, Σ curvature, and Σ curvature² / sample weight.
    """
    weighted = len(sample_weight) > 0
    r = take(queue)
    while r < n:
        sign = 1.0 if runs[r, 2] == 0 else -1.0
        loss = curvature = square = 0.0
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
        r = take(queue)
