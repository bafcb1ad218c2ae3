"""Weights of the pairs within queries: lists of rows with two classes or grades.

A query is a list of its own: a pair is two rows of one query, of which one has the greater grade. The loss is the sum
over these pairs, F̃ = Σ w_i w_k e^{-(f(x_i) - f(x_k))}, and no pair is ever listed. The rows of one grade in one query
are a *level*. With A_l = Σ w_i e^{-f(x_i)} and B_l = Σ w_k e^{f(x_k)} over the rows of a level, a query has
Σ A_l B_m over its levels l above m, so that

    F̃ = Σ over queries, Σ over levels l > m of A_l B_m,

and the pair of rows i and k weighs a_i b_k A_l B_m / F̃, where a and b are the rows' shares of A_l and B_m.

**What each cut orders.** Rows of a query go above the cut one after the other, by falling value. A row that goes up
orders its pairs with lower levels that are still below, and no longer misorders those with higher levels: sums by level
of what is above and what is below tell both. That is O(rows · levels of a query) for all cuts of a feature.

References
----------
C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and RankBoost", JMLR 10, 2009:
F̃ of Section 4.1, whose pairs may be any; Freund, Iyer, Schapire & Singer, "An efficient boosting algorithm for
combining preferences", JMLR 4, 2003: weights that factorise.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from core.base.ranker import Floats
from core.base.training import TrainingData
from core.coding import WIDTHS, Codes, slot
from core.coding.threads import shared_pool, take
from core.kernels import INNER, kernel
from core.metrics.groups import inner
from core.metrics.margins import log_sum

from .data import Bools, Integers
from .pair_weights import PairWeights


class Levels(NamedTuple):
    """The levels of queries: each level is the set of rows of one grade in one query."""

    order: Integers
    """Rows by query, and within each by grade. Shape (n_rows,)."""
    starts: Integers
    """The rows of level l are order[starts[l]:starts[l + 1]]. Shape (n_levels + 1,)."""
    of_query: Integers
    """The levels of query q are those from of_query[q] to of_query[q + 1]. Shape (n_queries + 1,)."""
    better: Integers
    worse: Integers
    """Pairs of levels of a query, by the better one and then by the worse one. Shape (n_pairs,)."""
    pairs: Integers
    """The pairs of query q are those from pairs[q] to pairs[q + 1]. Shape (n_queries + 1,)."""

    @classmethod
    def of(cls, data: TrainingData) -> "Levels":
        """Return the levels of rows with queries; there are at most 31 pairs of levels for each 2 rows."""
        grade, query = data.target, data.query
        assert query is not None
        order = np.lexsort((grade, query))
        grades, queries = grade[order], query[order]
        new = (grades[1:] != grades[:-1]) | (queries[1:] != queries[:-1])
        starts = np.flatnonzero(np.concatenate([[True], new, [True]]))
        n_levels = np.bincount(queries[starts[:-1]])
        of_query = np.concatenate([[0], np.cumsum(n_levels)])
        # level l of a query is the better one of l pairs
        place = np.arange(len(starts) - 1) - np.repeat(of_query[:-1], n_levels)
        better = np.repeat(np.arange(len(place)), place)
        first = np.cumsum(place) - place
        worse = np.arange(len(better)) - first[better] + (np.arange(len(place)) - place)[better]
        pairs = np.concatenate([[0], np.cumsum(n_levels * (n_levels - 1) // 2)])
        return cls(order, starts, of_query, better, worse, pairs)


class QueryWeights(PairWeights):
    """The weights of all pairs within queries, factored into two normalised weights per row and one per pair of levels.

    Rows are in the order of `Levels`. A level's shares sum to 1, and so do the weights of the pairs of levels: however
    large scores are, no level and no sum of weights underflows.

    better, worse: (n_rows,), float64; a and b of the module: shares of e^{-f} and of e^{f} in the row's level.
    pair: (n_level_pairs,), float64; a_l B_m / F̃.
    log_loss: float; ln F̃, a sum over pairs.
    """

    changing = ("better", "worse", "pair", "_logs", "log_loss")

    def __init__(self, data: TrainingData) -> None:
        assert data.query is not None
        self.levels = levels = Levels.of(data)
        self.rows = levels.order
        self.bin_weight = data.weight[levels.order]
        self.has_classes = data.grade is None
        sizes = np.diff(levels.starts)
        self.of_row = np.repeat(np.arange(len(sizes)), sizes)
        self._is_top = np.zeros(len(sizes), dtype=np.bool_)
        self._is_top[levels.of_query[1:] - 1] = True
        has_worse, has_better = np.zeros((2, len(sizes)), dtype=np.bool_)
        has_worse[levels.better] = has_better[levels.worse] = True
        self.is_better, self.is_worse = has_worse[self.of_row], has_better[self.of_row]
        self._query = data.query[levels.order]
        self._starts = levels.starts[levels.of_query]
        self._places = np.empty((0, 0), dtype=np.uint32)
        self.better, self.worse = self.bin_weight.copy(), self.bin_weight.copy()
        self._logs = np.zeros((2, len(sizes)))  # ln A and ln B of each level
        self.pair = np.zeros(len(levels.better))
        self.log_loss = 0.0
        self.grow(np.ones(len(self.of_row)))

    @property
    def log_f(self) -> tuple[float, float]:
        """Logarithms whose sum is ln F̃; for classes they differ by ln of F₊ over F₋, each summed over all queries."""
        half = 0.5 * self.log_loss
        if not self.has_classes:
            return half, half
        plus, minus = log_sum(self._logs[0, self._is_top]), log_sum(self._logs[1, ~self._is_top])
        return half + 0.5 * (plus - minus), half - 0.5 * (plus - minus)

    def grow(self, factor: Floats) -> None:
        """Update the weights as the score of each row, in the order of levels, grows by the logarithm of its factor."""
        levels = self.levels
        self.better /= factor
        self.worse *= factor
        for k, share in enumerate((self.better, self.worse)):
            sums = np.add.reduceat(share, levels.starts[:-1])
            np.divide(share, sums[self.of_row], out=share)
            self._logs[k] += np.log(sums)
        exponents = self._logs[0, levels.better] + self._logs[1, levels.worse]
        most = float(exponents.max())
        np.exp(exponents - most, out=self.pair)
        total = float(self.pair.sum())
        self.pair /= total
        self.log_loss = most + math.log(total)

    def sum_levels(self, rows: Floats) -> Floats:
        return np.asarray(np.add.reduceat(rows, self.levels.starts[:-1]))

    def by_row(self) -> tuple[Floats, Floats]:
        n_levels = len(self._is_top)
        of_better = np.bincount(self.levels.better, self.pair, n_levels)
        of_worse = np.bincount(self.levels.worse, self.pair, n_levels)
        return self.better * of_better[self.of_row], self.worse * of_worse[self.of_row]

    def sort(self, codes: Codes, features: list[int], n_slots: int) -> None:
        if self._places.shape != codes.shape:
            self._places = np.empty(codes.shape, dtype=np.uint32)
        columns = np.array(features, dtype=np.int64)
        arguments = codes, columns, self._query, self._starts, n_slots, self._places
        shared_pool(codes.size).deal(_sort_queries, len(features), *arguments)

    def sum_cuts(
        self, codes: Codes, n_bins: Integers, masses: Floats, *, counts: bool = False
    ) -> None:
        levels = self.levels
        weights = self.better, self.worse, np.ones(len(levels.starts) - 1), self.pair
        if counts:
            ones, sizes = np.ones(len(self.rows)), np.diff(levels.starts).astype(np.float64)
            weights = ones, ones, sizes, np.ones(len(self.pair))
        of_rows = self._places, self._starts, self.of_row, levels.of_query, levels.pairs
        arguments = codes, *of_rows, *weights, n_bins, masses
        shared_pool(codes.size).deal(_fill_queries, len(codes), *arguments)

    def sum_sides(self, is_above: Bools) -> tuple[float, float, float, float]:
        levels = self.levels
        better = [self.sum_levels(self.better * side) for side in (~is_above, is_above)]
        worse = [self.sum_levels(self.worse * side) for side in (~is_above, is_above)]
        sums = [
            inner(self.pair, better[i][levels.better] * worse[k][levels.worse])
            for i in range(2)
            for k in range(2)
        ]
        return sums[0], sums[1], sums[2], sums[3]


@numba.njit(**INNER)
def _sort_column(column, query, starts, n_slots, places):  # type: ignore[no-untyped-def]
    """Write the rows of each query by ascending code, missing last, to places; rows of equal codes ascend."""
    last = np.uint64(n_slots - 1)
    ends = np.zeros(n_slots + 1, dtype=np.int64)
    for i in range(len(column)):
        ends[slot(column[i], last) + np.uint64(1)] += 1
    for k in range(n_slots):
        ends[k + 1] += ends[k]
    order = np.empty(len(column), dtype=np.uint32)
    for i in range(len(column)):
        code = slot(column[i], last)
        order[ends[code]] = i
        ends[code] += 1
    next_place = starts.copy()
    for t in range(len(order)):
        q = query[order[t]]
        places[next_place[q]] = order[t]
        next_place[q] += 1


@kernel(
    *[
        numba.void(
            numba.int64[::1],
            numba.int64,
            code[:, ::1],
            numba.int64[::1],
            numba.int64[::1],
            numba.int64[::1],
            numba.int64,
            numba.uint32[:, ::1],
        )
        for code in WIDTHS
    ]
)
def _sort_queries(queue, n, codes, features, query, starts, n_slots, places):  # type: ignore[no-untyped-def]
    """Apply `_sort_column` to features from the queue."""
    k = take(queue)
    while k < n:
        j = features[k]
        _sort_column(codes[j], query, starts, n_slots, places[j])
        k = take(queue)


_MAX_LEVELS = 32


@numba.njit(**INNER)
def _add_queries(  # type: ignore[no-untyped-def]
    column, places, starts, level, of_query, pairs, better, worse, sums, pair, gains, side
):
    """Add to `gains` the weights of pairs that each split of one feature orders correctly, [0], and wrongly, [1].

    The rows of a query move above the split one by one, by descending code. A row that moves up begins to order
    correctly its pairs with lower levels still below the split, and stops misordering those with higher levels above.
    `side`, (4, 32), holds the sums by level above and below. gains: (2, 2, n_slots); better, worse, pair: see
    `QueryWeights`; sums: of better and worse together; starts, of_query, pairs: see `Levels`.
    """
    last = np.uint64(gains.shape[2] - 1)
    for q in range(len(starts) - 1):
        first, end = starts[q], starts[q + 1]
        origin, n_levels = of_query[q], of_query[q + 1] - of_query[q]
        has_missing = slot(column[places[end - 1]], last) == last
        for missing_above in range(2 if has_missing else 1):
            for m in range(n_levels):
                side[0, m] = side[1, m] = 0.0
                side[2, m] = side[3, m] = sums[origin + m]
            for t in range(end - 1, first - 1, -1):
                row = places[t]
                code = slot(column[row], last)
                if code == last and missing_above == 0:
                    continue  # the missing stay below
                own_level = level[row] - origin
                a, b = better[row], worse[row]
                right = wrong = 0.0
                p = pairs[q] + own_level * (own_level - 1) // 2
                for m in range(own_level):
                    right += a * pair[p + m] * side[3, m]
                    wrong -= a * pair[p + m] * side[1, m]
                side[0, own_level] += a
                side[2, own_level] -= a
                for m in range(own_level + 1, n_levels):
                    p = pairs[q] + m * (m - 1) // 2 + own_level
                    right -= b * pair[p] * side[0, m]
                    wrong += b * pair[p] * side[2, m]
                side[1, own_level] += b
                side[3, own_level] -= b
                gains[missing_above, 0, code] += right
                gains[missing_above, 1, code] += wrong
                if not has_missing:
                    gains[1, 0, code] += right
                    gains[1, 1, code] += wrong


@kernel(
    *[
        numba.void(
            numba.int64[::1],
            numba.int64,
            code[:, ::1],
            numba.uint32[:, ::1],
            *[numba.int64[::1]] * 4,
            *[numba.float64[::1]] * 4,
            numba.int64[::1],
            numba.float64[:, :, :, ::1],
        )
        for code in WIDTHS
    ]
)
def _fill_queries(  # type: ignore[no-untyped-def]
    queue,
    n,
    codes,
    places,
    starts,
    level,
    of_query,
    pairs,
    better,
    worse,
    sums,
    pair,
    n_bins,
    masses,
):
    """Write d+ and d- of the splits -1 to n_bins - 2 to masses[feature, missing above?, wrongly?, split + 1].

    Features come from the queue. For the arrays see `_add_queries`.
    """
    gains = np.empty((2, 2, masses.shape[3]))
    side = np.empty((4, _MAX_LEVELS))
    j = take(queue)
    while j < n:
        gains[:] = 0.0
        of_rows = places[j], starts, level, of_query, pairs
        _add_queries(codes[j], *of_rows, better, worse, sums, pair, gains, side)
        for missing_above in range(2):
            for wrongly in range(2):
                total = gains[missing_above, wrongly, masses.shape[3] - 1]
                for k in range(n_bins[j] - 1, -1, -1):
                    total += gains[missing_above, wrongly, k]
                    masses[j, missing_above, wrongly, k] = total
        j = take(queue)
