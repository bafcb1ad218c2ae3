"""General crucial pairs: an explicit list (better, worse, weight) in place of two classes; stumps and trees on it.

Bipartite pairs factor, d_ik = v_i v_k, and `weights.PairWeights` never lists them. A list of pairs
may hold cycles, contradictions and any weights; nothing factors, so each pair keeps a weight of its
own. An item's potential Σ_k d_ik - Σ_k d_ki would be enough for d+ - d-, the slope of eq. 3, but
not for eqs. 4, 5 and 12, which need d+ and d- apart.

**What each cut orders.** A pair whose better item has code a and whose worse one has code b is ordered rightly by the
cuts b <= c < a, wrongly by a <= c < b: an interval of cuts either way. So a pair is two entries, at its
lower and its upper end, of an array of differences over the bins, and running sums of that array
give d+ and d- of every cut: O(pairs) for a feature, whatever the number of cuts. The missing have no place in that
order. Pairs with one missing item are kept apart, by the code of the other: with the missing above all values such a
pair is ordered rightly or wrongly from that code on, with the missing below up to it.

**Trees.** Every item stands once as the better one of its pairs, with their weight B_i, once as the worse one, with
W_i; each sums to 1. If the leaves l of a tree raise their items by c_l, F̃ becomes at most
½ Σ_l (B_l e^{-2 c_l} + W_l e^{2 c_l}), for e^{-(a - b)} <= ½ e^{-2a} + ½ e^{2b}. In this bound leaves are on their own:
a tree is grown and stepped as of two classes with the masses B and W, and F̃ never rises; docs/papers.md has the proof.

References
----------
C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
RankBoost", JMLR 10, 2009: eq. 1, for the loss of general crucial pairs.
"""

import math
from typing import Any, ClassVar, NamedTuple, Protocol

import numba
import numpy as np
import numpy.typing as npt

from core.base.monotone import Directions
from core.base.ranker import Floats
from core.coding import (
    WIDTHS,
    Bins,
    Codes,
    Criterion,
    Split,
    fit_bins,
    missing_code,
    order_bins,
    slot,
)
from core.coding.best_split import GAIN_RTOL, MIN_EDGE, bins_after
from core.coding.threads import shared_pool, take
from core.kernels import kernel
from core.trees.grower import TreeGrower

from .algorithms import RankingAlgorithm
from .data import Bools, Integers, ListedPairs, Rows
from .loop import BoostingHistory, WeakLearner
from .stumps import Stump, StumpMaker, StumpSum, breaks, sides_of
from .trees import PairLoss, RankingTreeAlgorithm, TreeLearner

# Mass of pairs, of all pairs, below which it is taken for 0: subtraction leaves that much.
EPS_PAIRS = 1e-15


class Cut(NamedTuple):
    """Fractions of the weight of pairs that a cut orders rightly, wrongly, or not at all (both items on one side)."""

    right: float
    wrong: float
    tied: float


class WeightsByItem(Protocol):
    """What `CategoryOrder` needs of pairs."""

    def by_item(self, weight: Floats) -> tuple[Floats, Floats]:
        """See `ListedPairs.by_item`."""


class CategoryOrder:
    """The order of categories under listed pairs: by the fraction of pairs in which they are the better.

    The codes of items are renewed as indices of that order. Let P_k be the weight of the pairs whose better item is in
    bin k, N_k of those whose worse one is. A set of bins has d+ - d- = Σ (P_k - N_k), so that the best one for eq. 3 is
    a cut along P_k/(P_k + N_k). Eq. 5 wants d+ and d- apart, which depend on both items of a pair; there the cuts
    along the same order are tried, and a better set may exist.

    Shares are shrunk as for two classes, see `core.coding.categories`: P_k and N_k to P'_k and N'_k. The weight T of
    the pairs that have both items in a set, which its P = d+ + T and N = d- + T both count, is shrunk in proportion,
    T' = T P'N'/(PN), with T/(PN) = 1 where it is 0/0. For the pairs of two classes T = PN, and all of it is what their
    scan does.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_items), uint8 or uint16
    bins : Bins

    Attributes
    ----------
    features : list of int
        The categorical ones.
    codes : ndarray of shape (n_features, n_items)
        Bins without mass are coded as missing.
    n_bins : ndarray of shape (n_features,), int64
    bins : dict of int to ndarray of int64
        Of each categorical feature the bins in order.
    """

    def __init__(self, codes: Codes, bins: Bins) -> None:
        self.features: list[int] = np.flatnonzero(bins.is_categorical).tolist()
        self.codes = codes.copy() if self.features else codes
        self.n_bins = bins.n_bins.copy()
        self.bins: dict[int, npt.NDArray[np.int64]] = {}
        self._masses: dict[int, tuple[Floats, Floats, Floats]] = {}
        self._given, self._n_given = codes, bins.n_bins
        self._n_slots = bins.n_slots

    def renew(self, pairs: WeightsByItem, weights: Floats) -> None:
        """Sort the bins under the present weights of pairs, which sum to 1."""
        if not self.features:
            return
        wins, losses = pairs.by_item(weights)
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
        """Shrink the weights that the cuts of a feature order rightly and wrongly.

        Parameters
        ----------
        j : int
            A categorical feature, in its present order.
        masses : ndarray of shape (2, 2, n_slots), float64
            Changed in place; [missing above?, wrongly?, cut + 1].
        """
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
    """Return the sums over the bins from each one on."""
    sums: Floats = masses[:, ::-1].cumsum(axis=1)[:, ::-1]
    return sums


class PairStumpLearner(WeakLearner):
    """The items, the weights of their pairs d ∝ w e^{-(f(better) - f(worse))}, and the scan for the best stump.

    The weights sum to 1 after every step, so that none underflows. Every item counts once for the bins, whatever its
    pairs weigh.

    Notes
    -----
    A round is O(n_features · n_pairs). Memory: 17 bytes a pair, 16 more during a step, and 4 kB a feature.
    """

    ensemble = StumpSum
    changing: ClassVar[tuple[str, ...]] = ("_weights", "_log_loss")

    def __init__(self, parameters: Any, algorithm: RankingAlgorithm, data: ListedPairs) -> None:
        n_items = len(data.rows)
        bins, codes = fit_bins(
            data.X, data.rows, np.ones(n_items), parameters.max_bins, data.n_categories
        )
        self._algorithm, self._pairs = algorithm, data
        self._directions: Directions | None = parameters.find_directions()
        self._bins, self._codes = bins, codes
        self._order = CategoryOrder(codes, bins)
        self._masses = np.zeros((len(codes), 2, 2, bins.n_slots))
        self._weights = np.ones(len(data.weight))
        self._fill(codes, bins.n_bins)  # counts of pairs, hence exact
        self._possible = self._masses > 0
        self._possible[self._order.features] = True  # because their cuts change with the order
        total = float(data.weight.sum())
        self._weights = data.weight / total
        self._log_loss = math.log(total)  # of F̃ = Σ w e^{-(f(better) - f(worse))}, a sum over pairs
        # Of the last cut: which ends of each pair are above it, 2 the better, 1 the worse, 3 both; and their weights.
        self._ends = np.zeros(len(data.weight), dtype=np.uint8)
        self._cut = Cut(0.0, 0.0, 1.0)
        # The share of each bin in the pairs' items; a pair counts for both.
        mass = np.add(*data.by_item(data.weight))
        shares = np.empty((len(codes), bins.n_slots))
        for feature, column in enumerate(codes):
            slots = np.minimum(column, bins.n_slots - 1)
            shares[feature] = np.bincount(slots, mass, bins.n_slots)
        shares /= mass.sum()
        self._maker = StumpMaker(bins, data.n_categories, shares)

    @property
    def log_f(self) -> tuple[float, float]:
        """Half the logarithm of F̃ each."""
        return 0.5 * self._log_loss, 0.5 * self._log_loss

    def scan(self) -> Stump | None:
        """Find the best stump under the present weights."""
        split = self._find_best_split()
        if split.feature < 0:
            return None
        outside, wrong, right, inside = self._sort_ends(split)
        total = right + wrong + inside + outside
        self._cut = Cut(right / total, wrong / total, (inside + outside) / total)
        if not self._bins.has_missing[split.feature]:
            # Missing values that may come later go to the side that holds more of the pairs' items.
            split = split._replace(missing_above=inside > outside)
        hypothesis = self._algorithm.pair_hypothesis(self._cut.right, self._cut.wrong)
        if hypothesis.d_plus - hypothesis.d_minus < MIN_EDGE:
            return None
        stump = self._maker.make(split, None, hypothesis)
        return None if breaks(stump, self._directions) else stump

    def update(self, weak_ranker: Stump, alpha: float) -> None:
        """Let f grow by alpha h; `weak_ranker` is the last result of `scan`."""
        rise, cut = alpha * weak_ranker.sign, self._cut
        right, wrong = math.exp(-rise), math.exp(rise)
        shrink = cut.right * right + cut.wrong * wrong + cut.tied
        self._log_loss += math.log(shrink)
        self._weights *= (np.array([1.0, wrong, right, 1.0]) / shrink)[self._ends]

    def collect(self, history: BoostingHistory) -> StumpSum:
        """Sum up the stumps of a run of the loop."""
        return self._maker.collect(history)

    def _sort_ends(self, split: Split) -> tuple[float, float, float, float]:
        """Return the weights of pairs of which no item is above a cut, the worse, the better, and both."""
        above = sides_of(self._codes[split.feature], split).is_above.view(np.uint8)
        pairs = self._pairs
        sums = sort_pairs(above, pairs.better, pairs.worse, self._weights, self._ends)
        return sums[0].item(), sums[1].item(), sums[2].item(), sums[3].item()

    def _renew_order(self) -> None:
        """Sort the categories under the present weights."""
        self._order.renew(self._pairs, self._weights)

    def _find_best_split(self) -> Split:
        """Return the best cut under the present weights; its feature is -1 if none has a gain."""
        self._renew_order()
        order = self._order
        self._fill(order.codes, order.n_bins)
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

    def _fill(self, codes: Codes, n_bins: Integers) -> None:
        """Sum up the weights that every cut of every feature orders rightly and wrongly.

        One thread sums a feature, in the order of the pairs, so that the result does not depend on the number of
        threads. Running sums of differences may leave 1e-16 of the total for 0.
        """
        by_width = (codes, _NO_WIDE) if codes.dtype == np.uint8 else (_NO_NARROW, codes)
        pairs = self._pairs
        arguments = (*by_width, pairs.better, pairs.worse, self._weights, n_bins, self._masses)
        shared_pool(len(codes) * len(pairs.better)).deal(_fill_features, len(codes), *arguments)


class ListedPairLoss(PairLoss):
    """The exponential loss of listed pairs; its rows are the items, once in each role.

    Parameters
    ----------
    grower : TreeGrower
        Over the items that are better in some pair, then over those that are worse in some.
    pairs : ListedPairs
    items : ndarray of shape (n_rows,), int64
        The item of each of these rows.
    algorithm : RankingTreeAlgorithm

    Its weights are B of the better items, then W of the worse ones; log_f_plus and log_f_minus are half ln F̃ each.

    Notes
    -----
    A step is O(n_pairs). Memory: 16 bytes a pair, and as much again during a step.
    """

    changing = ("_weights", "_unit", "log_f_plus", "log_f_minus", "_d")

    def __init__(
        self,
        grower: TreeGrower,
        pairs: ListedPairs,
        items: Integers,
        algorithm: RankingTreeAlgorithm,
    ) -> None:
        total = float(pairs.weight.sum())
        self._pairs, self._items = pairs, items
        self._d = pairs.weight / total
        self._n_better = grower.table.n_positives
        super().__init__(
            grower,
            self._masses_of_roles(),
            leaf=algorithm.leaf,
            smoothing=algorithm.smoothing,
            push=1.0,
        )
        self.log_f_plus = self.log_f_minus = 0.5 * math.log(total)

    def update(self, values: Floats) -> None:
        """Let the scores grow by a value per leaf, of the tree that rows were last sent through."""
        rise = np.empty(len(self._pairs.rows))
        # An item's two rows lie in the same leaf.
        rise[self._items] = self._grower.values_of_rows(values)
        self._d *= np.exp(rise[self._pairs.worse] - rise[self._pairs.better])
        shrink = float(self._d.sum())
        self._d /= shrink
        self.log_f_plus += 0.5 * math.log(shrink)
        self.log_f_minus = self.log_f_plus
        self._weights[:, 0] = self._masses_of_roles()
        self._rescale(np.ones((2, len(values))))

    def _masses_of_roles(self) -> Floats:
        wins, losses = self._pairs.by_item(self._d)
        m = self._n_better
        return np.concatenate([wins[self._items[:m]], losses[self._items[m:]]])


class PairTreeLearner(TreeLearner):
    """The items of listed pairs, and the growth of the next tree.

    For the bins, and in the mean score, an item counts once for each of its roles, whatever its pairs weigh. The
    classes of an item are its roles: they give no fraction of positives for other items, so that there is no target
    encoding.
    """

    encodes_targets = False

    def __init__(self, parameters: Any, algorithm: RankingTreeAlgorithm, data: ListedPairs) -> None:
        better, worse = np.unique(data.better), np.unique(data.worse)
        self._pairs, self._items = data, np.concatenate([better, worse]).astype(np.int64)
        n_items = len(self._items)
        X, is_better = data.X[data.rows[self._items]], np.arange(n_items) < len(better)
        super().__init__(
            parameters, algorithm, Rows(X, is_better, np.ones(n_items), data.n_categories)
        )

    def _make_loss(self, algorithm: RankingTreeAlgorithm, weight: Floats) -> ListedPairLoss:
        return ListedPairLoss(self._grower, self._pairs, self._items, algorithm)


# Arrays for the arguments that a call does not need.
_NO_NARROW, _NO_WIDE = np.empty((0, 0), dtype=np.uint8), np.empty((0, 0), dtype=np.uint16)


@kernel(
    *[
        numba.void(
            code[::1],
            numba.uint32[::1],
            numba.uint32[::1],
            numba.float64[::1],
            numba.float64[:, ::1],
        )
        for code in WIDTHS
    ],
    inner=True,
)
def _add_differences(column, better, worse, weights, differences):  # type: ignore[no-untyped-def]
    """Enter each pair at both ends of its interval of cuts in differences, (4, n_slots) float64.

    column: (n_items,) uint8 or uint16; better, worse: (n_pairs,) uint32; weights: (n_pairs,) float64. Rows 0 and 1 of
    `differences` hold pairs of two known items, whose better one has the greater code (0) or the lesser (1). Rows 2 and
    3 hold, at the code of the known item, the weight of pairs whose better (2) or worse (3) one is missing; their
    entries in the last slot mean nothing.
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
    numba.uint8[:, ::1],
    numba.uint16[:, ::1],
    numba.uint32[::1],
    numba.uint32[::1],
    numba.float64[::1],
    numba.int64[::1],
    numba.float64[:, :, :, ::1],
)


@kernel(numba.void(numba.int64[::1], numba.int64, *_FILL))
def _fill_features(queue, n, narrow, wide, better, worse, weights, n_bins, masses):  # type: ignore[no-untyped-def]
    """Write d+ and d- of the cuts -1 to n_bins - 2 to masses[feature, missing above?, wrongly?, cut + 1], float64.

    Features come from the queue. narrow: (n_features, n_items) codes of uint8, wide: of uint16; the other is empty.
    better, worse: (n_pairs,) uint32; weights: (n_pairs,) float64; n_bins: (n_features,) int64.
    """
    differences = np.empty((4, masses.shape[3]))
    j = take(queue)
    while j < n:
        if len(narrow) > 0:
            _add_differences(narrow[j], better, worse, weights, differences)
        else:
            _add_differences(wide[j], better, worse, weights, differences)
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
    numba.float64[::1](
        numba.uint8[::1],
        numba.uint32[::1],
        numba.uint32[::1],
        numba.float64[::1],
        numba.uint8[::1],
    )
)
def sort_pairs(above, better, worse, weights, ends):  # type: ignore[no-untyped-def]
    """Write which items of each pair are above a cut, and return the sums of weights of the four cases, (4,) float64.

    above: (n_items,) uint8, 1 if above; better, worse: (n_pairs,) uint32; weights: (n_pairs,) float64; ends: (n_pairs,)
    uint8, gets 2 for the better item, 1 for the worse one, 3 for both, 0 for none.
    """
    sums = np.zeros(4)
    for p in range(len(better)):
        end = 2 * above[better[p]] + above[worse[p]]
        ends[p] = end
        sums[end] += weights[p]
    return sums


def find_best_cut(
    right: Floats, wrong: Floats, n_bins: Integers, has_missing: Bools, criterion: Criterion
) -> tuple[int, int, bool, float]:
    """Return the best cut of all features.

    Parameters
    ----------
    right, wrong : ndarray of shape (n_features, 2, n_slots), float64
        d+ and d- by [feature, missing above?, cut + 1].
    n_bins : ndarray of shape (n_features,), int64
        Number of cuts of each feature.
    has_missing : ndarray of shape (n_features,), bool
    criterion : Criterion
        YOUDEN (eq. 3) or LOSS (eq. 5).

    Returns
    -------
    feature, cut, missing_above, gain
        The feature is -1 if no cut has a gain. Of cuts of equal gain, but for rounding, the lowest feature is taken,
        then the lowest cut, then missing below.
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
