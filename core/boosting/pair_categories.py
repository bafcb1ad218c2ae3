"""The order of categories under listed pairs: by the share of pairs in which they are the better.

Let P_k be the weight of the pairs whose better item is in bin k, N_k of those whose worse one is. A
set of bins has d+ - d- = Σ (P_k - N_k), so that the best one for eq. 3 is a cut along
P_k/(P_k + N_k). Eq. 5 wants d+ and d- apart, which depend on both items of a pair; there the cuts
along the same order are tried, and a better set may exist.

How far these shares can be believed is told as for two classes, see `core.coding.categories`: P'_k and
N'_k are what is believed of P_k and N_k. The weight T of the pairs that have both items in a set,
which its P = d+ + T and N = d- + T both count, is believed in proportion, T' = T P'N'/(PN), with
T/(PN) = 1 where it is 0/0. For the pairs of two classes T = PN, and all of it is what their scan does.
"""

import numpy as np
import numpy.typing as npt

from core.coding import Bins, Codes, missing_code, order_bins
from core.ranker import Floats

# What is left of a mass after subtraction may be so much where nothing is.
ROUNDING = 1e-15


class CategoryOrder:
    """The codes of items, those of categorical features renewed as places in an order.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_items), uint8 or uint16
    bins : Bins
    n_items : int

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

    def __init__(self, codes: Codes, bins: Bins, n_items: int) -> None:
        self.features: list[int] = np.flatnonzero(bins.is_categorical).tolist()
        self.codes = codes.copy() if self.features else codes
        self.n_bins = bins.n_bins.copy()
        self.bins: dict[int, npt.NDArray[np.int64]] = {}
        self._masses: dict[int, tuple[Floats, Floats, Floats]] = {}
        self._given, self._n_given = codes, bins.n_bins
        self._n_items, self._n_slots = n_items, bins.n_slots

    def renew(
        self, better: npt.NDArray[np.uint32], worse: npt.NDArray[np.uint32], weights: Floats
    ) -> None:
        """Put the bins in order under the present weights of pairs, which sum to 1."""
        if not self.features:
            return
        wins = np.bincount(better, weights, self._n_items)
        losses = np.bincount(worse, weights, self._n_items)
        net = wins - losses
        spread = [float((np.maximum(side, 0.0) ** 2).sum()) for side in (net, -net)]
        for j in self.features:
            n_bins = int(self._n_given[j])
            slots = np.minimum(self._given[j], self._n_slots - 1)
            sums = [np.bincount(slots, w, self._n_slots) for w in (wins, losses)]
            masses = np.vstack(sums).astype(np.float64, copy=False)
            order, mixed = np.empty(n_bins, dtype=np.int64), np.empty((2, n_bins))
            n = order_bins(masses, n_bins, 0.0, *spread, order, mixed)
            self.bins[j] = order = order[:n]
            self._masses[j] = masses[:, order], mixed[:, :n], masses[:, -1]
            missing = missing_code(self.codes.dtype)
            places = np.full(missing + 1, missing, dtype=self.codes.dtype)
            places[order] = np.arange(n)
            self.codes[j] = places[self._given[j]]
            self.n_bins[j] = max(n, 1)

    def believe(self, j: int, masses: Floats) -> None:
        """Replace what the cuts of a feature order rightly and wrongly by what is believed of it.

        Parameters
        ----------
        j : int
            A categorical feature, in its present order.
        masses : ndarray of shape (2, 2, n_slots), float64
            Changed in place; see `pair_kernels.fill_masses`.
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
                masses[side, wrong, :n] = np.where(ordered > ROUNDING, ordered, 0.0)


def _sum_above(masses: Floats) -> Floats:
    """Give the sums over bins from each one on."""
    sums: Floats = masses[:, ::-1].cumsum(axis=1)[:, ::-1]
    return sums
