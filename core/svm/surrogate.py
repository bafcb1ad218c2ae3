"""The convex surrogates of the partial AUC risk, and the plane that touches one at given scores."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.coding import find_pair_violations, find_violations
from core.metrics.window import window_counts
from core.ranker import Floats

from .kernels import sum_products

# Doubles count by ones up to here.
_WHOLE = 2.0**53


class Window(NamedTuple):
    """Masses of negatives, counted from the top: the window of false positive rates.

    Attributes
    ----------
    low, high : float
        j_α and j_β; 0 <= low < high <= total.
    total : float
        Mass of all negatives.
    """

    low: float
    high: float
    total: float


def window_of(weight: Floats, fpr_min: float, fpr_max: float) -> Window:
    """Turn a window of rates into one of masses.

    Parameters
    ----------
    weight : ndarray of shape (n,), float64
        Of the negatives.
    fpr_min, fpr_max : float
        As `core.metrics.window.check_window` returns them.

    Returns
    -------
    Window
        ⌊nα⌋ and ⌈nβ⌉ in exact decimals where all weights are whole: a row of weight k is k rows. Elsewhere nα and nβ
        themselves, as in `core.metrics.partial_auc`: fractions of rows have no ranks.
    """
    total = float(weight.sum())
    if total < _WHOLE and (weight == np.floor(weight)).all():
        low, high = window_counts(int(total), fpr_min, fpr_max)
        return Window(float(low), float(high), total)
    return Window(total * fpr_min, min(total * fpr_max, total), total)


class Violations(NamedTuple):
    """What a surrogate is at given scores, and the plane that touches it there.

    Attributes
    ----------
    value : float
        The surrogate R.
    loss : float
        The plane is loss + g·w.
    rows : ndarray of shape (k,), intp, or None
        The negatives in its gradient; None for all, in their order.
    crossed : ndarray of shape (k,), float64
        The share of each in g; together they are -Σ pushed.
    pushed : ndarray of shape (m,), float64
        The share of each positive in g, not above 0.
    """

    value: float
    loss: float
    rows: npt.NDArray[np.intp] | None
    crossed: Floats
    pushed: Floats

    def slope(self, s: Floats, z: Floats) -> float:
        """Give g·w, of the w under which the positives have the scores s and the negatives z."""
        crossed = z if self.rows is None else z[self.rows]
        return float(sum_products(self.pushed, s) + sum_products(self.crossed, crossed))


class Surrogate:
    """R(w) of the rows' scores: an upper bound of 1 - pAUC, convex in w.

    Parameters
    ----------
    positive_weight : ndarray of shape (m,), float64
    negative_weight : ndarray of shape (n,), float64
    window : Window
    naive : bool
        Whether to hold positives against negatives below the window, too, with margin 0 (eq. 11); else the tight
        surrogate (eq. 14 where low is 0, eq. 18).

    Notes
    -----
    Everything is divided by m (j_β - j_α), also the naive surrogate's feature map, for which the paper prints mn: only
    so tight <= naive. Negatives that are tied share alike, so that R's plane does not depend on the order of rows. At
    w = 0, R = 1.

    References
    ----------
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: eqs. 11, 14, 18; Algorithms 2 and 3; Appendix B.1.
    """

    def __init__(
        self,
        positive_weight: Floats,
        negative_weight: Floats,
        window: Window,
        *,
        naive: bool = False,
    ) -> None:
        self.window = window
        self.naive = naive
        self.weights = positive_weight, negative_weight
        self._p = positive_weight / positive_weight.sum()
        self._q = negative_weight
        self._unweighted = bool((negative_weight == 1.0).all())
        self._top = window.total if naive else window.high
        self._unit = window.high - window.low
        self._is_whole = window.low == 0.0 and window.high == window.total

    def at(self, s: Floats, z: Floats) -> Violations:
        """Evaluate R.

        Parameters
        ----------
        s : ndarray of shape (m,), float64
            Scores of the positives.
        z : ndarray of shape (n,), float64
            Scores of the negatives.

        Returns
        -------
        Violations

        Notes
        -----
        O((m + j_β) log j_β + n), tight and unweighted; O((m + n) log n), naive or weighted; O((m + n) log m) for the
        whole curve, where the positives are fewer.
        """
        if self._is_whole and len(s) < len(z):
            return self._at_whole(s, z)
        rows = self._highest(z)
        runs, crossed = np.empty(len(s)), np.empty(len(rows))
        low, high, _ = self.window
        q = self._q[: len(rows)] if self._unweighted else self._q[rows]
        value, loss = find_violations(s, self._p, z[rows], q, low, high, self._top, runs, crossed)
        crossed /= self._unit
        runs *= self._p
        runs /= -self._unit
        value, loss = value / self._unit, loss / self._unit
        if len(rows) < len(z):
            return Violations(value, loss, rows, crossed, runs)
        of_row = np.empty(len(z))
        of_row[rows] = crossed
        return Violations(value, loss, None, of_row, runs)

    def _at_whole(self, s: Floats, z: Floats) -> Violations:
        """Evaluate R by the order of the positives."""
        order = np.argsort(s)
        of_order, crossed = np.empty(len(s)), np.empty(len(z))
        value, loss = find_pair_violations(s[order], self._p[order], z, self._q, of_order, crossed)
        runs = np.empty(len(s))
        runs[order] = of_order
        runs *= self._p
        runs /= -self._unit
        crossed /= self._unit
        return Violations(value / self._unit, loss / self._unit, None, crossed, runs)

    def _highest(self, z: Floats) -> npt.NDArray[np.intp]:
        """List the negatives that may count by falling score: those of mass `top`, and ties of the last."""
        n = len(z)
        if self._unweighted and self._top < n:
            last = n - int(np.ceil(self._top))
            rows = np.flatnonzero(z >= np.partition(z, last)[last])
            return rows[np.argsort(-z[rows])]
        order = np.argsort(-z)
        if self._top == self.window.total:
            return order
        above = np.cumsum(self._q[order])
        end = int(np.searchsorted(above, self._top, side="left"))
        end = min(end, n - 1)
        while end + 1 < n and z[order[end + 1]] == z[order[end]]:
            end += 1
        return order[: end + 1]
