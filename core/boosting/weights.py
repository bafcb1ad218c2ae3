"""The weights of pairs, kept as one weight per row: d_ik = v_i v_k, each class summing to 1."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.scan import N_CODES, Peak, fill_histograms

from .kernels import rescale_sides, sum_sides


class Masses(NamedTuple):
    """Mass above and below a cut, of positives (p) and negatives (n), each class summing to 1."""

    above_p: float
    below_p: float
    above_n: float
    below_n: float


class PairWeights:
    """The weights of all crucial pairs of bipartite data, and the loss they come from.

    With v_i ∝ w_i e^{-f(x_i)} on positives and v_k ∝ w_k e^{f(x_k)} on negatives, each class
    normalised to 1, the pair (i, k) weighs v_i v_k: no pair is ever listed. Normalising after
    every step also keeps a class from underflowing, however far the scores have gone.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows), uint8
        Positives first.
    weight : ndarray of shape (n_rows,), float64
        Sample weights, above 0.
    n_positives : int

    Attributes
    ----------
    histograms : ndarray of shape (n_features, 2, 256), float64
        Mass per class and code under the present weights.
    log_f_plus, log_f_minus : float
        Logarithms of F₊ = Σ w_i e^{-f(x_i)} over positives and F₋ = Σ w_k e^{f(x_k)} over negatives.
    """

    def __init__(
        self, codes: npt.NDArray[np.uint8], weight: npt.NDArray[np.float64], n_positives: int
    ) -> None:
        self._codes = codes
        self._n_positives = n_positives
        total_p = float(weight[:n_positives].sum())
        total_n = float(weight[n_positives:].sum())
        self._weights = weight.copy()
        self._weights[:n_positives] /= total_p
        self._weights[n_positives:] /= total_n
        self.log_f_plus = math.log(total_p)
        self.log_f_minus = math.log(total_n)
        self.histograms = np.empty((len(codes), 2, N_CODES))
        fill_histograms(codes, self._weights, n_positives, self.histograms)

    @property
    def loss(self) -> float:
        """F̃ = F₊ F₋ = Σ w_i w_k e^{-(f(x_i) - f(x_k))}, a sum over pairs, not a mean."""
        return math.exp(self.log_f_plus + self.log_f_minus)

    def masses(self, peak: Peak) -> Masses:
        """Add up both sides of a cut, each from its own rows: what is empty is exactly 0."""
        above_p, below_p, above_n, below_n = sum_sides(
            self._codes[peak.feature], peak, self._weights, self._n_positives
        )
        total_p, total_n = above_p + below_p, above_n + below_n
        return Masses(above_p / total_p, below_p / total_p, above_n / total_n, below_n / total_n)

    def update(self, peak: Peak, masses: Masses, rise_above: float, rise_below: float) -> None:
        """Let f grow by one amount above the cut and by another below it.

        Parameters
        ----------
        peak : Peak
        masses : Masses
            Of that cut, under the present weights.
        rise_above, rise_below : float
        """
        above, below = math.exp(rise_above), math.exp(rise_below)
        shrink_p = masses.above_p / above + masses.below_p / below
        shrink_n = masses.above_n * above + masses.below_n * below
        self.log_f_plus += math.log(shrink_p)
        self.log_f_minus += math.log(shrink_n)
        column, m = self._codes[peak.feature], self._n_positives
        rescale_sides(
            column[:m], peak, 1 / above / shrink_p, 1 / below / shrink_p, self._weights[:m]
        )
        rescale_sides(column[m:], peak, above / shrink_n, below / shrink_n, self._weights[m:])
        fill_histograms(self._codes, self._weights, self._n_positives, self.histograms)
