"""General crucial pairs: an explicit list (better, worse, weight) in place of two classes.

Bipartite pairs factor, d_ik = v_i v_k, and `weights.PairWeights` never lists them. A list of pairs
may hold cycles, contradictions and any weights; nothing factors, so each pair keeps a weight of its
own. An item's potential Σ_k d_ik - Σ_k d_ki would be enough for d+ - d-, the slope of eq. 3, but
not for eqs. 4, 5 and 12, which need d+ and d- apart: see `pair_kernels`.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.checkpoint import Resumable
from core.coding import Bins, Codes, Criterion, Peak, fit_bins
from core.coding.peak import TIE, bins_after
from core.ranker import Floats
from core.target import Pairs

from .kernels import divide
from .loop import LEAST_EDGE, Path
from .pair_categories import CategoryOrder
from .pair_kernels import fill_masses, find_best, rescale_pairs, sum_pairs
from .rules import RankingRule
from .stump_sum import Stump, StumpMaker, StumpSum


class ItemPairs(NamedTuple):
    """Pairs between the items that occur in them.

    Attributes
    ----------
    rows : ndarray of shape (n_items,), int64
        The row of each item, ascending.
    better, worse : ndarray of shape (n_pairs,), uint32
        Items. No pair comes twice; ascending, so that the order of the list does not matter.
    weight : ndarray of shape (n_pairs,), float64
        The sum over all pairs of these two.
    """

    rows: npt.NDArray[np.int64]
    better: npt.NDArray[np.uint32]
    worse: npt.NDArray[np.uint32]
    weight: Floats


def number_items(pairs: Pairs, n_rows: int) -> ItemPairs:
    """Number the items that occur, and merge the pairs that come more than once.

    Parameters
    ----------
    pairs : Pairs
    n_rows : int

    Returns
    -------
    ItemPairs

    Notes
    -----
    O(n_pairs log n_pairs) time, O(n_rows + n_pairs) memory.
    """
    occurs = np.zeros(n_rows, dtype=np.bool_)
    occurs[pairs.better] = True
    occurs[pairs.worse] = True
    rows = np.flatnonzero(occurs)
    number = np.cumsum(occurs, dtype=np.int64) - 1
    key = number[pairs.better] * len(rows) + number[pairs.worse]
    order = np.lexsort(
        (pairs.weight, key)
    )  # by weight too: sums must not depend on the list's order
    key = key[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    better, worse = np.divmod(key[first], len(rows))
    weight = np.add.reduceat(pairs.weight[order], first)
    return ItemPairs(rows, better.astype(np.uint32), worse.astype(np.uint32), weight)


class Cut(NamedTuple):
    """A cut, and the weights of pairs by where they stand to it, the whole being 1.

    Attributes
    ----------
    peak : Peak
    right : float
        Better item above the cut, worse one below it.
    wrong : float
        The other way round.
    tied : float
        Both on the same side.
    """

    peak: Peak
    right: float
    wrong: float
    tied: float


class PairListWeights(Resumable):
    """The weights of listed pairs, d ∝ w e^{-(f(better) - f(worse))}, and the loss they come from.

    They sum to 1 after every step, so that no score is too far out for them.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_items), uint8 or uint16
    pairs : ItemPairs
    bins : Bins

    Attributes
    ----------
    log_loss : float
        Logarithm of F̃ = Σ w e^{-(f(better) - f(worse))}, a sum over pairs.

    Notes
    -----
    12 to 16 bytes a pair, and 4 kB a feature.
    """

    changing = ("_weights", "log_loss")

    def __init__(self, codes: Codes, pairs: ItemPairs, bins: Bins) -> None:
        self._codes = codes
        self._categories = CategoryOrder(codes, bins, len(pairs.rows))
        self._better, self._worse = pairs.better, pairs.worse
        self._n_bins, self._has_missing = bins.n_bins, bins.has_missing
        total = float(pairs.weight.sum())
        self._weights = np.ones(len(pairs.weight))
        self._masses = np.zeros((len(codes), 2, 2, bins.n_slots))
        self._fill(codes, self._n_bins)  # counts of pairs, hence exact
        self._possible = self._masses > 0
        self._possible[self._categories.features] = True  # for their cuts change with the order
        self._weights = pairs.weight / total
        self.log_loss = math.log(total)

    def find_peak(self, criterion: Criterion) -> Peak:
        """Find the best cut under the present weights; its feature is -1 where none has a gain."""
        order = self._categories
        order.renew(self._better, self._worse, self._weights)
        self._fill(order.codes, order.n_bins)
        for j in order.features:
            order.believe(j, self._masses[j])
        feature, cut, missing_above, gain = find_best(
            self._masses,
            self._possible,
            order.n_bins,
            self._has_missing,
            int(criterion),
            TIE,
        )
        bins_above = None
        if feature in order.features:
            n_bins = int(self._n_bins[feature])
            bins_above = bins_after(order.bins[feature], cut, missing_above, n_bins)
        return Peak(feature, cut, missing_above, gain, bins_above)

    def divide(self, peak: Peak) -> Cut:
        """Add up the pairs on all sides of a cut, each side from its own pairs.

        Where a feature has no missing value, those that may come later go to the side that holds
        more of the pairs' items.
        """
        right, wrong, inside, outside = self._sum(peak)
        total = right + wrong + inside + outside
        if not self._has_missing[peak.feature]:
            peak = peak._replace(missing_above=inside > outside)
        return Cut(peak, right / total, wrong / total, (inside + outside) / total)

    def update(self, cut: Cut, rise: float) -> None:
        """Let f grow by `rise` above a cut, or fall where it is negative."""
        factors = math.exp(-rise), math.exp(rise), 1.0
        shrink = cut.right * factors[0] + cut.wrong * factors[1] + cut.tied
        self.log_loss += math.log(shrink)
        right, wrong, tied = (factor / shrink for factor in factors)
        column, above, _ = divide(self._codes[cut.peak.feature], cut.peak)
        rescale_pairs(
            column, self._better, self._worse, self._weights, *above, (right, wrong, tied)
        )

    def _sum(self, peak: Peak) -> tuple[float, float, float, float]:
        column, above, _ = divide(self._codes[peak.feature], peak)
        sums: tuple[float, float, float, float] = sum_pairs(
            column, self._better, self._worse, self._weights, *above
        )
        return sums

    def _fill(self, codes: Codes, n_bins: npt.NDArray[np.int64]) -> None:
        fill_masses(codes, self._better, self._worse, self._weights, n_bins, self._masses)


class PairStumpLearner(Resumable):
    """The items, the weights of their pairs, and the scan for the best stump.

    Parameters
    ----------
    rule : RankingRule
    X : ndarray of shape (n_rows, n_features), float64
    pairs : ItemPairs
    max_bins : int
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.

    Notes
    -----
    Every item counts once where bins are cut, whatever its pairs weigh. A round is
    O(n_features · n_pairs).
    """

    changing = ("_weights",)

    def __init__(
        self,
        rule: RankingRule,
        X: Floats,
        pairs: ItemPairs,
        max_bins: int,
        n_categories: npt.NDArray[np.int64],
    ) -> None:
        bins, codes = fit_bins(X, pairs.rows, np.ones(len(pairs.rows)), max_bins, n_categories)
        self._rule = rule
        self._weights = PairListWeights(codes, pairs, bins)
        shares = _bin_shares(codes, pairs, bins.n_slots)
        self._maker = StumpMaker(bins, n_categories, shares)

    @property
    def log_f_plus(self) -> float:
        """Half the logarithm of F̃: two classes would share it out as F₊ and F₋."""
        return 0.5 * self._weights.log_loss

    @property
    def log_f_minus(self) -> float:
        """The other half, so that the intercept ½ ln(F₊/F₋) is 0."""
        return 0.5 * self._weights.log_loss

    def scan(self) -> Stump | None:
        """Find the best stump under the present weights."""
        peak = self._weights.find_peak(self._rule.criterion)
        if peak.feature < 0:
            return None
        cut = self._weights.divide(peak)
        verdict = self._rule.judge_pairs(cut.right, cut.wrong)
        if verdict.d_plus - verdict.d_minus < LEAST_EDGE:
            return None
        return self._maker.make(cut.peak, None, verdict)

    def update(self, found: Stump, alpha: float) -> None:
        """Let f grow by alpha h."""
        self._weights.update(self._weights.divide(found.peak), alpha * found.verdict.sign)

    def collect(self, path: Path) -> StumpSum:
        """Sum up the stumps of a run of the loop."""
        return self._maker.collect(path)


def _bin_shares(codes: Codes, pairs: ItemPairs, n_slots: int) -> Floats:
    """Give the share of each bin in the pairs' items, (n_features, n_slots); a pair counts for both."""
    n_items = len(pairs.rows)
    mass = np.bincount(pairs.better, pairs.weight, n_items)
    mass += np.bincount(pairs.worse, pairs.weight, n_items)
    shares: Floats = np.empty((len(codes), n_slots))
    for feature, column in enumerate(codes):
        slots = np.minimum(column, n_slots - 1)
        shares[feature] = np.bincount(slots, mass, n_slots)
    shares /= mass.sum()
    return shares
