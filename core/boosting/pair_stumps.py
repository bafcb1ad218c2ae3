"""Weak learner of stumps on the weights of pairs (`pair_weights`)."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from core.base.monotone import Directions
from core.base.ranker import Floats
from core.coding import Bins, Codes, Criterion, Split, fit_bins, missing_code, order_bins
from core.coding.best_split import GAIN_RTOL, MIN_EDGE, bins_after

from .algorithms import RankingAlgorithm
from .data import Bools, Integers
from .loop import BoostingHistory, WeakLearner
from .pairs import BoostingData, weigh_pairs
from .stumps import Stump, StumpMaker, StumpSum, breaks, sides_of

# Mass of pairs, of all pairs, below which it is taken for 0: subtraction leaves that much.
EPS_PAIRS = 1e-15


class CategoryOrder:
    """The order of a feature's categories under listed pairs, by how often each is the better one of its pairs.

    The codes of items are renewed as indices of that order. Let P_k be the weight of the pairs whose better item is in
    bin k, N_k of those whose worse one is. A set of bins has d+ - d- = Σ (P_k - N_k), so that the best one for eq. 3 is
    a cut along P_k/(P_k + N_k). Eq. 5 wants d+ and d- apart, which depend on both items of a pair; there the cuts
    along the same order are tried, and a better set may exist.

    Shares are shrunk as for two classes, see `core.coding.categories`: P_k and N_k to P'_k and N'_k. The weight T of
    the pairs that have both items in a set, which its P = d+ + T and N = d- + T both count, is shrunk in proportion,
    T' = T P'N'/(PN), with T/(PN) = 1 where it is 0/0. For the pairs of two classes T = PN, and all of it is what their
    scan does.

    Of the attributes, `codes` has bins without mass as missing, and `bins` the ordered bins of each categorical
    feature.
    """

    def __init__(self, codes: Codes, bins: Bins) -> None:
        self.features: list[int] = np.flatnonzero(bins.is_categorical).tolist()
        self.codes = codes.copy() if self.features else codes
        self.n_bins = bins.n_bins.copy()
        self.bins: dict[int, npt.NDArray[np.int64]] = {}
        self._masses: dict[int, tuple[Floats, Floats, Floats]] = {}
        self._given, self._n_given = codes, bins.n_bins
        self._n_slots = bins.n_slots

    def renew(self, wins: Floats, losses: Floats) -> None:
        """Sort the categories under the current weights of the items as better and as worse one, (n_items,) each."""
        net = wins - losses
        inverse_ess = [float((np.maximum(side, 0.0) ** 2).sum()) for side in (net, -net)]
        for j in self.features:
            n_bins = int(self._n_given[j])
            slots = np.minimum(self._given[j], self._n_slots - 1)
            sums = [np.bincount(slots, w, self._n_slots) for w in (wins, losses)]
            masses = np.vstack(sums).astype(np.float64, copy=False)
            order, mixed = np.empty(n_bins, dtype=np.int64), np.empty((2, n_bins))
            n = order_bins(masses, n_bins, *inverse_ess, order, mixed)
            self.bins[j] = order = order[:n]
            self._masses[j] = masses[:, order], mixed[:, :n], masses[:, -1]
            missing = missing_code(self.codes.dtype)
            indices = np.full(missing + 1, missing, dtype=self.codes.dtype)
            indices[order] = np.arange(n)
            self.codes[j] = indices[self._given[j]]
            self.n_bins[j] = max(n, 1)

    def shrink(self, j: int, masses: Floats) -> None:
        """Shrink weights of pairs ordered by a feature's splits, by [missing above?, wrongly?, cut + 1], in place."""
        true, mixed, missing = self._masses[j]
        n = true.shape[1]
        total = mixed.sum(axis=1) + missing
        for side in range(2):  # the missing below, or above
            p, q = _sum_above(true) + side * missing[:, None]
            p_mixed, q_mixed = (_sum_above(mixed) + side * missing[:, None]) / total[:, None]
            tied = np.maximum(p - masses[side, 0, :n], 0.0)
            share = np.divide(tied, p * q, out=np.ones(n), where=p * q > 0.0)
            for wrong, part in enumerate((p_mixed, q_mixed)):
                ordered = part - share * p_mixed * q_mixed
                masses[side, wrong, :n] = np.where(ordered > EPS_PAIRS, ordered, 0.0)


def _sum_above(masses: Floats) -> Floats:
    sums: Floats = masses[:, ::-1].cumsum(axis=1)[:, ::-1]
    return sums


class PairStumpLearner(WeakLearner):
    """Weak learner that finds the best stump under the weights of pairs; each row counts once for the bins.

    A round is O(n_features · n_pairs) for listed pairs, O(n_features · n_rows · levels of a query) within queries.
    """

    ensemble = StumpSum
    changing = ("_pairs",)

    def __init__(self, parameters: Any, algorithm: RankingAlgorithm, data: BoostingData) -> None:
        self._pairs = pairs = weigh_pairs(data)
        n_rows = len(pairs.rows)
        bins, codes = fit_bins(
            data.X, pairs.rows, np.ones(n_rows), parameters.max_bins, data.n_categories
        )
        self._algorithm = algorithm
        self._directions: Directions | None = parameters.find_directions()
        self._bins, self._codes = bins, codes
        self._order = CategoryOrder(codes, bins)
        self._masses = np.zeros((len(codes), 2, 2, bins.n_slots))
        pairs.sort(codes, list(range(len(codes))), bins.n_slots)
        pairs.sum_cuts(codes, bins.n_bins, self._masses, counts=True)
        self._possible = self._masses > 0
        self._possible[self._order.features] = True  # because their cuts change with the order
        # The share of each bin in the pairs' rows; a pair counts for both.
        mass = np.add(*pairs.by_row())
        shares = np.empty((len(codes), bins.n_slots))
        for feature, column in enumerate(codes):
            slots = np.minimum(column, bins.n_slots - 1)
            shares[feature] = np.bincount(slots, mass, bins.n_slots)
        shares /= mass.sum()
        self._maker = StumpMaker(bins, data.n_categories, shares)

    @property
    def log_f(self) -> tuple[float, float]:
        return self._pairs.log_f

    def scan(self) -> Stump | None:
        split = self._find_best_split()
        if split.feature < 0:
            return None
        is_above = sides_of(self._codes[split.feature], split).is_above
        outside, wrong, right, inside = self._pairs.sum_sides(is_above)
        total = right + wrong + inside + outside
        if not self._bins.has_missing[split.feature]:
            # Missing values that may come later go to the side that holds more of the pairs' rows.
            split = split._replace(missing_above=inside > outside)
        hypothesis = self._algorithm.pair_hypothesis(right / total, wrong / total)
        if hypothesis.d_plus - hypothesis.d_minus < MIN_EDGE:
            return None
        stump = self._maker.make(split, None, hypothesis)
        return None if breaks(stump, self._directions) else stump

    def update(self, weak_ranker: Stump, alpha: float) -> None:
        above, below = (math.exp(alpha * value) for value in weak_ranker.above_below)
        is_above = sides_of(self._codes[weak_ranker.feature], weak_ranker.split).is_above
        self._pairs.grow(np.where(is_above, above, below))

    def collect(self, history: BoostingHistory) -> StumpSum:
        return self._maker.collect(history)

    def _find_best_split(self) -> Split:
        pairs, order = self._pairs, self._order
        if order.features:
            order.renew(*pairs.by_row())
            pairs.sort(order.codes, order.features, self._bins.n_slots)
        pairs.sum_cuts(order.codes, order.n_bins, self._masses)
        for j in order.features:
            order.shrink(j, self._masses[j])
        masses = np.where(self._possible, np.maximum(self._masses, 0.0), 0.0)
        if self._directions is not None:
            falls = (masses[:, :, 0] - masses[:, :, 1]) * self._directions[:, None, None] < 0.0
            falls[:, 0, 0] = False  # the missing against all values
            masses[np.broadcast_to(falls[:, :, None], masses.shape)] = 0.0
        feature, cut, missing_above, gain = find_best_cut(
            masses[:, :, 0],
            masses[:, :, 1],
            order.n_bins,
            self._bins.has_missing,
            self._algorithm.criterion,
        )
        bins_above = None
        if feature in order.features:
            n_bins = int(self._bins.n_bins[feature])
            bins_above = bins_after(order.bins[feature], cut, missing_above, n_bins)
        return Split(feature, cut, missing_above, gain, bins_above)


def find_best_cut(
    right: Floats, wrong: Floats, n_bins: Integers, has_missing: Bools, criterion: Criterion
) -> tuple[int, int, bool, float]:
    """Return the best split of all features as (feature, cut, missing_above, gain); feature -1 if none has a gain.

    right, wrong: (n_features, 2, n_slots) float64, d+ and d- by [feature, missing above?, cut + 1]. Of cuts of equal
    gain, up to rounding, the lowest feature is taken, then the lowest cut, then missing below.
    """
    if criterion is Criterion.YOUDEN:
        gains = np.abs(right - wrong)
    else:
        # (√d+ - √d-)² by the difference that is known exactly; the tiny term spares 0/0.
        gains = (right - wrong) ** 2 / (right + wrong + 2.0 * np.sqrt(right * wrong) + 1e-300)
    is_cut = np.arange(gains.shape[2]) < n_bins[:, None, None]
    gains = np.where(is_cut & (has_missing[:, None] | [True, False])[:, :, None], gains, 0.0)
    least = gains.max() * (1.0 - GAIN_RTOL)
    if least <= 0.0:
        return -1, -1, False, 0.0
    by_cut = gains.swapaxes(1, 2)
    index = np.unravel_index(np.argmax(by_cut >= least), by_cut.shape)
    feature, cut, side = map(int, index)
    return feature, cut - 1, side == 1, float(by_cut[index])
