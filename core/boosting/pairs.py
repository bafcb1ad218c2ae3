"""An explicit list of pairs (better, worse, weight) to learn from, in place of two classes.

The list may contain cycles, contradictions and any weights.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats
from core.base.splits import draw_fraction, draw_spread, number_inseparable
from core.base.target import Pairs
from core.base.training import Groups, TrainingData
from core.base.warning import warn
from core.coding import WIDTHS, Codes, slot
from core.coding.threads import shared_pool, take
from core.errors import InvalidData
from core.kernels import INNER, kernel
from core.metrics import pair_order

from .data import SAMPLE_ROWS, SAMPLE_SEED, Bools, Evaluation, Integers
from .pair_weights import PairWeights
from .queries import QueryWeights

# Pairs that the training and the validation part need, each, if items are held out: fewer say little.
MIN_PAIRS = 30


class ListedPairs(NamedTuple):
    """Training data given as a list of pairs (better, worse) of items."""

    X: Floats
    """The whole table. Shape (n_rows, n_features)."""
    rows: Integers
    """The row of each item, ascending. Shape (n_items,)."""
    better: npt.NDArray[np.uint32]
    worse: npt.NDArray[np.uint32]
    """Items. No pair occurs twice; they ascend, so that the result does not depend on the order of the list. Shape
    (n_pairs,)."""
    weight: Floats
    """Sum of the weights of all pairs of these two items. Shape (n_pairs,)."""
    n_categories: Integers
    group: Groups | None = None
    """For each row of the table; items with equal values are held out together; None: equal items are. Shape (n_rows,),
    uint64, or None."""

    @classmethod
    def of(
        cls, X: Floats, pairs: Pairs, n_categories: Integers, group: Groups | None = None
    ) -> "ListedPairs":
        """Return the pairs with items numbered from 0 and repeated pairs merged; O(n_pairs log n_pairs)."""
        occurs = np.zeros(len(X), dtype=np.bool_)
        occurs[pairs.better] = True
        occurs[pairs.worse] = True
        rows = np.flatnonzero(occurs)
        number = np.cumsum(occurs, dtype=np.int64) - 1
        key = number[pairs.better] * len(rows) + number[pairs.worse]
        # Sorted by weight, too: sums must not depend on the order of the list.
        order = np.lexsort((pairs.weight, key))
        key = key[order]
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        better, worse = np.divmod(key[first], len(rows))
        weight = np.add.reduceat(pairs.weight[order], first)
        ends = better.astype(np.uint32), worse.astype(np.uint32)
        return cls(X, rows, *ends, weight, n_categories, group)

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return tuple(value for value in self if value is not None)

    def by_item(self, weight: Floats) -> tuple[Floats, Floats]:
        """Return for each item the weight of the pairs in which it is the better one, and the worse one."""
        n = len(self.rows)
        better, worse = np.bincount(self.better, weight, n), np.bincount(self.worse, weight, n)
        return better.astype(np.float64, copy=False), worse.astype(np.float64, copy=False)

    def sample(self) -> Evaluation:
        """Evaluate as `evaluation` does, on at most `SAMPLE_ROWS` pairs drawn at random."""
        n_pairs = len(self.weight)
        return self._evaluation(draw_spread(n_pairs, min(SAMPLE_ROWS, n_pairs), SAMPLE_SEED))

    def evaluation(self) -> Evaluation:
        """Return an `Evaluation` by the weighted fraction of pairs ordered correctly (the AUC, for two classes)."""
        return self._evaluation(slice(None))

    def _evaluation(self, which: slice | Integers) -> Evaluation:
        weight = self.weight[which]
        items, ends = np.unique(self._ends()[which], return_inverse=True)
        order = partial(pair_order, pairs=ends.reshape(-1, 2), pair_weight=weight)
        X = np.ascontiguousarray(self.X[self.rows[items]])
        return Evaluation(X, (len(items),), len(weight), order)

    def split_off(self, fraction: float, seed: int) -> tuple["ListedPairs", "ListedPairs"]:
        """Return training and validation pairs that share no item, if there are enough pairs.

        All pairs of an item, its copies and its group are informative about it, so whole items are held out. Pairs
        between held-out items and others are not used: a fraction s of the items leaves about (1 - s)² of the pairs for
        training and s² for validation. If either part has fewer than `MIN_PAIRS`, pairs are held out instead, those of
        the same two items together; a UserWarning says that validation then concerns known items.

        The draw depends on the seed, the items and which of them are paired, not on the order of the list. InvalidData:
        all pairs are of the same two items.
        """
        rng = np.random.Generator(np.random.Philox(seed))
        X, ends, n_items = self.X[self.rows], self._ends(), len(self.rows)
        group = None if self.group is None else self.group[self.rows]
        unit = number_inseparable(X, np.zeros(n_items, np.bool_), np.ones(n_items), group)
        if unit is not None:
            ends, n_items = unit[ends], int(unit.max()) + 1
        if n_items < 2:
            raise InvalidData("early stopping requires items of at least 2 groups, got 1")
        better_mask, worse_mask = _draw_mask(n_items, fraction, rng)[ends].T
        training, validation = ~(better_mask | worse_mask), better_mask & worse_mask
        if min(training.sum(), validation.sum()) < MIN_PAIRS:
            units, number = np.unique(
                ends.min(axis=1) * n_items + ends.max(axis=1), return_inverse=True
            )
            if len(units) < 2:
                raise InvalidData(
                    "early stopping requires pairs of at least 3 items, got pairs of 2"
                )
            warn(
                "early stopping holds out pairs instead of items, because there are too few items: it measures the "
                "order of new pairs of known items, so the number of rounds may be too high for new items. Set "
                "n_rounds, or add items"
            )
            validation = _draw_mask(len(units), fraction, rng)[number]
            training = ~validation
        return self._take(training), self._take(validation)

    def _ends(self) -> Integers:
        return np.stack([self.better, self.worse], axis=1).astype(np.int64)

    def _take(self, which: Bools) -> "ListedPairs":
        better, worse = (self.rows[items[which]] for items in (self.better, self.worse))
        pairs = Pairs(better, worse, self.weight[which])
        return ListedPairs.of(self.X, pairs, self.n_categories, self.group)


def _draw_mask(n: int, fraction: float, rng: np.random.Generator) -> Bools:
    mask = np.zeros(n, dtype=np.bool_)
    mask[draw_fraction(np.arange(n), fraction, rng)] = True
    return mask


BoostingData = TrainingData | ListedPairs
"""What a booster can learn from: rows with labels, or listed pairs."""


class ListedPairWeights(PairWeights):
    """The weights of listed pairs, one number per pair.

    An item's potential Σ_k d_ik - Σ_k d_ki would be enough for d+ - d-, the slope of eq. 3, but not for eqs. 4, 5 and
    12, which need d+ and d- apart.

    **What each cut orders.** A pair whose better item has code a and whose worse item has code b is ordered correctly
    by the cuts b <= c < a, and wrongly by a <= c < b. So each pair adds to an array of differences over the bins at
    both ends of its interval, and cumulative sums give d+ and d- of every cut: O(n_pairs) per feature, whatever the
    number of cuts. Pairs with one missing item are kept separately, by the code of the other item: with missing values
    above all others such a pair is ordered from that code on, with missing values below up to it.

    A step is O(n_pairs). Memory: 16 bytes a pair.
    """

    changing = ("_weights", "_log_loss")
    has_classes = False

    def __init__(self, pairs: ListedPairs) -> None:
        self._pairs, self.rows = pairs, pairs.rows
        n_items = len(pairs.rows)
        self.bin_weight = np.ones(n_items)  # every item counts once, whatever its pairs weigh
        self.is_better, self.is_worse = np.zeros((2, n_items), dtype=np.bool_)
        self.is_better[pairs.better] = self.is_worse[pairs.worse] = True
        total = float(pairs.weight.sum())
        self._weights = pairs.weight / total
        self._log_loss = math.log(total)

    @property
    def log_f(self) -> tuple[float, float]:
        """Half of ln F̃ twice; see `PairWeights.log_f`."""
        return 0.5 * self._log_loss, 0.5 * self._log_loss

    def grow(self, factor: Floats) -> None:
        total = _grow(factor, 1.0 / factor, self._pairs.better, self._pairs.worse, self._weights)
        self._weights /= total
        self._log_loss += math.log(total)

    def by_row(self) -> tuple[Floats, Floats]:
        return self._pairs.by_item(self._weights)

    def sum_cuts(
        self, codes: Codes, n_bins: Integers, masses: Floats, *, counts: bool = False
    ) -> None:
        pairs, weights = self._pairs, np.ones(len(self._weights)) if counts else self._weights
        arguments = codes, pairs.better, pairs.worse, weights, n_bins, masses
        shared_pool(len(codes) * len(pairs.better)).deal(_fill_features, len(codes), *arguments)

    def sum_sides(self, is_above: Bools) -> tuple[float, float, float, float]:
        pairs = self._pairs
        sums = _sum_sides(is_above.view(np.uint8), pairs.better, pairs.worse, self._weights)
        return sums[0].item(), sums[1].item(), sums[2].item(), sums[3].item()


def weigh_pairs(data: BoostingData) -> PairWeights:
    """Return the initial weights (f = 0) of listed pairs, or of all pairs within queries."""
    return ListedPairWeights(data) if isinstance(data, ListedPairs) else QueryWeights(data)


@numba.njit(**INNER)
def _add_differences(column, better, worse, weights, differences):  # type: ignore[no-untyped-def]
    """Add each pair's weight at both ends of the interval of splits that separate it; a cumulative sum gives d±.

    Rows 0 and 1 of `differences` hold pairs of two known items, whose better one has the greater code (0) or the lesser
    (1). Rows 2 and 3 hold, at the code of the known item, the weight of pairs whose better (2) or worse (3) one is
    missing; their entries in the last slot mean nothing.
    """
    last = np.uint64(differences.shape[1] - 1)
    for row in range(4):
        for code in range(differences.shape[1]):
            differences[row, code] = 0.0
    for p in range(len(better)):
        a = slot(column[better[p]], last)
        b = slot(column[worse[p]], last)
        wrong = a < b
        low = a if wrong else b
        high = b if wrong else a
        row = (1 if wrong else 0) + (2 if high == last else 0)
        weight = weights[p] if low != high else 0.0
        differences[row, low] += weight
        differences[row, high] -= weight


_FILL = (
    numba.uint32[::1],
    numba.uint32[::1],
    numba.float64[::1],
    numba.int64[::1],
    numba.float64[:, :, :, ::1],
)


@kernel(*[numba.void(numba.int64[::1], numba.int64, code[:, ::1], *_FILL) for code in WIDTHS])
def _fill_features(queue, n, codes, better, worse, weights, n_bins, masses):  # type: ignore[no-untyped-def]
    """Write d+ and d- of the splits -1 to n_bins - 2 to masses[feature, missing above?, wrongly?, split + 1]."""
    differences = np.empty((4, masses.shape[3]))
    j = take(queue)
    while j < n:
        _add_differences(codes[j], better, worse, weights, differences)
        right = wrong = better_missing = worse_missing = 0.0
        for k in range(n_bins[j]):  # sums over the codes below k, which is all up to the cut k - 1
            masses[j, 0, 0, k] = masses[j, 1, 0, k] = right
            masses[j, 0, 1, k] = masses[j, 1, 1, k] = wrong
            masses[j, 1, 0, k] += better_missing
            masses[j, 1, 1, k] += worse_missing
            right += differences[0, k]
            wrong += differences[1, k]
            better_missing += differences[2, k]
            worse_missing += differences[3, k]
        better_missing = worse_missing = 0.0
        for k in range(n_bins[j] - 1, -1, -1):  # sums over the codes from k on
            better_missing += differences[2, k]
            worse_missing += differences[3, k]
            masses[j, 0, 0, k] += worse_missing
            masses[j, 0, 1, k] += better_missing
        j = take(queue)


@kernel(
    numba.float64[::1](numba.uint8[::1], numba.uint32[::1], numba.uint32[::1], numba.float64[::1])
)
def _sum_sides(above, better, worse, weights):  # type: ignore[no-untyped-def]
    """Return the pair weights by which items are above a split: none, worse, better, both."""
    sums = np.zeros(4)
    for p in range(len(better)):
        sums[2 * above[better[p]] + above[worse[p]]] += weights[p]
    return sums


@kernel(
    numba.float64(
        numba.float64[::1],
        numba.float64[::1],
        numba.uint32[::1],
        numba.uint32[::1],
        numba.float64[::1],
    )
)
def _grow(factor, inverse, better, worse, weights):  # type: ignore[no-untyped-def]
    """Multiply each pair's weight by factor[worse] · inverse[better], in place, and return their new sum."""
    total = 0.0
    for p in range(len(better)):
        weights[p] *= factor[worse[p]] * inverse[better[p]]
        total += weights[p]
    return total
