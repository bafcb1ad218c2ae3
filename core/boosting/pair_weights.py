"""The weights of pairs of rows: the interface through which stumps and trees learn from pairs of any kind.

A pair (i, k) says that row i is better than row k. Its weight is d_ik = w_ik e^{-(f(x_i) - f(x_k))} / F̃, where F̃ is the
sum over all pairs. `pairs` has the weights of a list of pairs, `queries` those of the pairs within queries, which are
never listed. `pair_stumps` and `pair_trees` learn from either: another kind of pairs is one more `PairWeights`.

References
----------
C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
RankBoost", JMLR 10, 2009: F̃ of Section 4.1, the loss of general crucial pairs.
"""

from abc import ABC, abstractmethod

from core.base.checkpoint import Resumable
from core.base.ranker import Floats
from core.coding import Codes

from .data import Bools, Integers


class PairWeights(Resumable, ABC):
    """The weights of pairs, which sum to 1 after every step so that they never underflow; rows are those of `rows`."""

    rows: Integers
    """The place of each row in the table. Shape (n,)."""
    is_better: Bools
    is_worse: Bools
    """Whether a row is the better one, or the worse one, in some pair. Shape (n,)."""
    bin_weight: Floats
    """The weight of each row in the bins of trees. Shape (n,)."""
    has_classes: bool
    """Whether the pairs are those of two classes: then a category has a fraction of positives."""

    @property
    @abstractmethod
    def log_f(self) -> tuple[float, float]:
        """Two logarithms whose sum is ln F̃."""

    @abstractmethod
    def grow(self, factor: Floats) -> None:
        """Multiply each row's e^f by its factor, (n,) float64, above 0: its score f grows by ln factor."""

    @abstractmethod
    def by_row(self) -> tuple[Floats, Floats]:
        """Return for each row the weight of the pairs in which it is the better one, and the worse one, (n,) each."""

    def sort(self, codes: Codes, features: list[int], n_slots: int) -> None:
        """Prepare `sum_cuts` for new codes, before the first call of all features. n_slots: the most codes of a
        feature.
        """

    @abstractmethod
    def sum_cuts(
        self, codes: Codes, n_bins: Integers, masses: Floats, *, counts: bool = False
    ) -> None:
        """Write d+ and d-: the weights of the pairs that each split of each feature orders correctly and wrongly.

        codes: (n_features, n) uint8 or uint16; n_bins: (n_features,) int64; masses: (n_features, 2, 2, n_slots)
        float64, gets d+ and d- of the cuts -1 to n_bins - 2 by [feature, missing above?, wrongly?, cut + 1]. Sums may
        leave 1e-16 of the total for 0. counts: write the numbers of these pairs instead, which are exact.
        """

    @abstractmethod
    def sum_sides(self, is_above: Bools) -> tuple[float, float, float, float]:
        """Return the weights of pairs with no row above a split, only the worse, only the better, and both."""
