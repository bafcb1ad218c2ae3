"""The ranking loss along one real-valued weak ranker, where no step is known in closed form."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from core.ranker import Floats

# The longest step, in units of one over the greatest |h(x_i) - h(x_k)|: where the closed form of a
# perfect weak ranker in {0, 1} is cut off, ½ ln(2^52).
LONGEST = 26.0 * math.log(2.0)


class Line:
    """Z(α) = F̃(λ + α e_j)/F̃(λ) = Σ d_ik e^{-α (h(x_i) - h(x_k))}, as a product of sums Σ w e^{-α h}.

    Of listed pairs it is one sum over them; of two classes a sum per class.

    Parameters
    ----------
    factors : sequence of (h, w), each an ndarray of float64
        w sums to 1 in each.
    spread : float
        A bound of |h(x_i) - h(x_k)|, above 0.
    """

    def __init__(self, factors: Sequence[tuple[Floats, Floats]], spread: float) -> None:
        self._factors = factors
        self._spread = spread

    @classmethod
    def of_classes(
        cls, positives: Floats, weights_p: Floats, negatives: Floats, weights_n: Floats
    ) -> "Line":
        """Take h on the rows of each class, and their weights, each class summing to 1."""
        most = max(positives.max(), negatives.max())
        least = min(positives.min(), negatives.min())
        return cls(((positives, weights_p), (-negatives, weights_n)), float(most - least))

    def forget(self) -> None:
        """Give the memory back: the step is found, and h stays with the rounds."""
        self._factors = ()

    def log_z(self, alpha: float) -> float:
        """Give ln Z(α)."""
        return sum(log_sum(w, -alpha * h) for h, w in self._factors)

    def slope(self, alpha: float) -> float:
        """Give -(ln Z)'(α), which falls as α grows; at 0 it is eq. 3's Σ d_ik (h(x_i) - h(x_k))."""
        total = 0.0
        for h, w in self._factors:
            tilted = w * np.exp(-alpha * h - (-alpha * h).max())
            total += dot(tilted, h) / float(tilted.sum())
        return total

    def descend(self, smoothing: float) -> float:
        """Find the step that lowers F̃ the most.

        `smoothing` is a share of the pairs' weight at either end of the spread, so that for h in
        {0, 1} the step is ½ ln((d+ + ε)/(d- + ε)).
        """

        def falls(alpha: float) -> float:
            push = smoothing * self._spread * 2.0 * math.sinh(alpha * self._spread)
            return math.exp(self.log_z(alpha)) * self.slope(alpha) - push

        return self._root(falls)

    def climb(self, log_f_tilde: float, norm: float) -> float:
        """Find the step that lifts the smooth margin the most: eq. 10.

        Parameters
        ----------
        log_f_tilde : float
            Below 0.
        norm : float
            ‖λ‖₁ before the step.
        """

        def rises(alpha: float) -> float:  # falls as α grows: its derivative is slope'(α)(‖λ‖₁ + α)
            return self.slope(alpha) * (norm + alpha) + log_f_tilde + self.log_z(alpha)

        return self._root(rises)

    def _root(self, condition: Callable[[float], float]) -> float:
        """Find where a falling condition meets 0; the longest step where it does not."""
        from scipy.optimize import brentq

        longest = LONGEST / self._spread
        if condition(0.0) <= 0.0:
            return 0.0
        if condition(longest) >= 0.0:
            return longest
        return float(brentq(condition, 0.0, longest, xtol=1e-15, rtol=1e-14))


def log_sum(weights: Floats, exponents: Floats) -> float:
    """Give ln Σ w e^x."""
    most = float(exponents.max())
    return most + math.log(dot(weights, np.exp(exponents - most)))


def dot(a: Floats, b: Floats) -> float:
    """Sum the products; BLAS would share a long sum out by its number of threads."""
    return float((a * b).sum())


@dataclass(frozen=True, slots=True)
class Column:
    """A column taken as h; `line` is the loss along it, None where its values are 0 and 1."""

    feature: int
    sign: int
    d_plus: float
    d_minus: float
    line: Line | None

    def values(self, X: Floats) -> Floats:
        """Give h(x) of each row."""
        return self.sign * known(X[:, self.feature])


def known(values: Floats) -> Floats:
    """Put 0 where a value is missing: the column says nothing there."""
    return np.where(np.isnan(values), 0.0, values)
