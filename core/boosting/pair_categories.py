"""The order of categories under listed pairs: by the share of pairs in which they are the better.

Let P_k be the weight of the pairs whose better item is in bin k, N_k of those whose worse one is. A
set of bins has d+ - d- = Σ (P_k - N_k), so that the best one for eq. 3 is a cut along
P_k/(P_k + N_k). Eq. 5 wants d+ and d- apart, which depend on both items of a pair; there the cuts
along the same order are tried, and a better set may exist.
"""

import numpy as np
import numpy.typing as npt

from core.ranker import Floats
from core.scan import Bins, Codes, missing_code, order_bins


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
    belief : dict of int to float
        Of each categorical feature the share of its bins' differences that chance does not explain;
        see `core.scan.categories`. It is not spread over bins here, since pairs have two ends.
    """

    def __init__(self, codes: Codes, bins: Bins, n_items: int) -> None:
        self.features: list[int] = np.flatnonzero(bins.is_categorical).tolist()
        self.codes = codes.copy() if self.features else codes
        self.n_bins = bins.n_bins
        self.bins: dict[int, npt.NDArray[np.int64]] = {}
        self.belief: dict[int, float] = {}
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
        spread = 0.5 * float(((wins - losses) ** 2).sum())
        for j in self.features:
            n_bins = int(self._n_given[j])
            slots = np.minimum(self._given[j], self._n_slots - 1)
            masses = np.vstack([np.bincount(slots, w, self._n_slots) for w in (wins, losses)])
            order, mixed = np.empty(n_bins, dtype=np.int64), np.empty((2, n_bins))
            n = order_bins(masses, n_bins, 0.0, spread, spread, order, mixed)
            self.bins[j] = order = order[:n]
            differences = np.abs(masses[0, order] - masses[1, order]).sum()
            believed = np.abs(mixed[0, :n] - mixed[1, :n]).sum()
            self.belief[j] = min(float(believed / differences), 1.0) if differences > 0 else 0.0
            missing = missing_code(self.codes.dtype)
            places = np.full(missing + 1, missing, dtype=self.codes.dtype)
            places[order] = np.arange(n)
            self.codes[j] = places[self._given[j]]
            self.n_bins[j] = max(n, 1)
