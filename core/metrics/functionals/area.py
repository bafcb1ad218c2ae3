"""Areas of the ROC curve as metrics: partial AUC, strict partial AUC, two-way partial AUC.

* **two-way partial area**: the area of the curve over FPR ≤ β and above TPR = α, divided by β (1 − α). With u the FPR
  at which the curve passes α, its derivatives are those of the partial area over [u, β]: that u moves changes nothing
  to first order, since the integrand is 0 there;
* **partial area**: see `intervals`; the strict one, of the negatives of certain ranks, is the area of another curve.

References
----------
Yang, Lu, Lyu & Hu, "Two-way partial AUC and its properties", Statistical Methods in Medical Research 28 (2019).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import InvalidParameter
from core.metrics.curve import RocCurve, strict_area
from core.metrics.functionals.base import (
    METRICS,
    Derivatives,
    Masses,
    Metric,
    null_variance,
    roc_of,
)
from core.metrics.intervals import influences_of_masses
from core.metrics.window import (
    MAX_WHOLE,
    WHOLE,
    check_rate,
    check_window,
    window_weights,
)


@METRICS.named("auc", "pauc:{fpr_min},{fpr_max}")
@dataclass(frozen=True)
class WindowArea(Metric):
    """Partial AUC as a metric: the ROC area over a window of false positive rates; [0, 1] is the AUC.

    The area is divided by the width of the window.

    Parameters
    ----------
    fpr_min, fpr_max : float in [0, 1]
        The window of false positive rates, fpr_min < fpr_max.

    Examples
    --------
    >>> from core.metrics import WindowArea, measure
    >>> WindowArea(0.0, 0.05).name, measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [WindowArea()])[0].interval.value
    ('pauc:0,0.05', 0.875)
    """

    fpr_min: float = 0.0
    fpr_max: float = 1.0

    is_area = True

    def __post_init__(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    @property
    def name(self) -> str:
        if (self.fpr_min, self.fpr_max) == (0.0, 1.0):
            return "auc"
        return f"pauc:{self.fpr_min:.12g},{self.fpr_max:.12g}"

    @property
    def is_whole_area(self) -> bool:
        """Whether the window is [0, 1]."""
        return (self.fpr_min, self.fpr_max) == WHOLE

    def of(self, masses: Masses) -> Derivatives:
        value = roc_of(masses).partial_area(self.fpr_min, self.fpr_max)
        width = self.fpr_max - self.fpr_min
        placement, height = influences_of_masses(
            masses.above_negative, masses.above_positive, self.fpr_min, self.fpr_max
        )
        return Derivatives(value, placement / width, height / width, 0.0)

    def chance(self, masses: Masses) -> float | None:
        """Return the value of a random ranking: the mean height of the diagonal over the window."""
        return (self.fpr_min + self.fpr_max) / 2.0

    def null_moments(self, masses: Masses) -> tuple[float, float] | None:
        negatives, middle = masses.effective[1], (self.fpr_min + self.fpr_max) / 2.0
        mean = (middle * negatives + 0.5) / (negatives + 1.0)
        return mean, null_variance(self, masses) * _of_ranks(negatives * self.fpr_max)

    def rows_inside(self, masses: Masses) -> tuple[float, float]:
        return masses.effective[0], masses.effective[1] * (self.fpr_max - self.fpr_min)

    def top(self, masses: Masses) -> float:
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the effective number of positives, or of negatives in the window if that is less."""
        positive, negative = masses.effective
        return min(positive, negative * (self.fpr_max - self.fpr_min))


@METRICS.named("gini")
@dataclass(frozen=True)
class Gini(Metric):
    """Gini coefficient of a ranking (accuracy ratio, Somers' D): 2 AUC − 1, from -1 to 1.

    Examples
    --------
    >>> from core.metrics import Gini, measure
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [Gini()])[0].interval.value
    0.75
    """

    name = "gini"
    shift = -1.0

    def plain(self) -> Metric:
        return WindowArea()

    def unit(self, masses: Masses) -> float:
        """Return 2: a change of the AUC counts twice."""
        return 2.0

    def of(self, masses: Masses) -> Derivatives:
        value, up, down, slope = self.plain().of(masses)
        return Derivatives(2.0 * value - 1.0, 2.0 * up, 2.0 * down, slope)

    def chance(self, masses: Masses) -> float | None:
        return 0.0

    def top(self, masses: Masses) -> float:
        return 1.0

    def trials(self, masses: Masses) -> float:
        return self.plain().trials(masses)


@METRICS.named("empirical:{fpr_min},{fpr_max}")
@dataclass(frozen=True)
class EmpiricalArea(Metric):
    """Strict partial AUC: the fraction of pairs strictly in order, in a window of negatives.

    The pairs are those of all positives with the negatives ranked ⌊n·fpr_min⌋ + 1 to ⌈n·fpr_max⌉ (Narasimhan & Agarwal,
    eq. 2); see `partial_auc` with definition="empirical". It is the area of the curve on which the negatives of a tie
    come first, so its derivatives are those of areas.

    Parameters
    ----------
    fpr_min, fpr_max : float in [0, 1]
        The window of false positive rates, fpr_min < fpr_max.

    Examples
    --------
    >>> from core.metrics import EmpiricalArea, measure
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [EmpiricalArea(0.0, 0.5)])[0].interval.value
    0.5
    """

    fpr_min: float = 0.0
    fpr_max: float = 1.0

    def __post_init__(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    @property
    def name(self) -> str:
        return f"empirical:{self.fpr_min:.12g},{self.fpr_max:.12g}"

    def of(self, masses: Masses) -> Derivatives:
        positive, negative = masses.totals
        first, last, _ = self._ranks(masses)
        tpr = masses.above_positive / positive
        value = strict_area(masses.above_negative, tpr, first, last)
        # the negatives of each score, then its positives
        strict = np.repeat(masses.above_negative, 2)[1:]
        above = np.repeat(masses.above_positive, 2)[:-1]
        low, high = first / negative, min(1.0, last / negative)
        placement, height = influences_of_masses(strict, above, low, high)
        width = high - low
        return Derivatives(value, placement[1::2] / width, height[::2] / width, 0.0)

    def _ranks(self, masses: Masses) -> tuple[float, float, bool]:
        """Return the window's ends as weights of negatives counted from the top, and whether these are whole ranks."""
        above, total = masses.above_negative, masses.totals[1]
        whole = total < MAX_WHOLE and bool((above == np.rint(above)).all())
        return (*window_weights(total, self.fpr_min, self.fpr_max, whole=whole), whole)

    def chance(self, masses: Masses) -> float | None:
        """Return the value of a random ranking without ties; with ties it is lower."""
        first, last, whole = self._ranks(masses)
        step = 1.0 if whole else 0.0
        return (first + last + step) / (2.0 * (masses.totals[1] + step))

    def null_moments(self, masses: Masses) -> tuple[float, float] | None:
        mean = self.chance(masses)
        assert mean is not None
        ranks = masses.effective[1] * self._ranks(masses)[1] / masses.totals[1]
        return mean, null_variance(self, masses) * _of_ranks(ranks)

    def rows_inside(self, masses: Masses) -> tuple[float, float]:
        first, last, _ = self._ranks(masses)
        positive, negative = masses.effective
        return positive, negative * (last - first) / masses.totals[1]

    def top(self, masses: Masses) -> float:
        return 1.0

    def trials(self, masses: Masses) -> float:
        return min(self.rows_inside(masses))


@METRICS.named("two_way:{fpr_max},{tpr_min}")
@dataclass(frozen=True)
class TwoWayArea(Metric):
    """Two-way partial AUC: the ROC area with FPR ≤ fpr_max and TPR ≥ tpr_min.

    The area is divided by that of the rectangle. It is the fraction of pairs in order, of the negatives with the
    highest scores and the positives with the lowest.

    Examples
    --------
    >>> from core.metrics import TwoWayArea, measure
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [TwoWayArea(0.5, 0.5)])[0].interval.value
    0.5
    """

    fpr_max: float
    """Right end of the rectangle. In (0, 1]."""
    tpr_min: float
    """Lower end of the rectangle. In [0, 1)."""

    def __post_init__(self) -> None:
        check_window(0.0, self.fpr_max)
        if not check_rate("tpr_min", self.tpr_min) <= 1.0 - 1e-9:
            raise InvalidParameter(f"tpr_min must be less than 1, got {self.tpr_min}")

    @property
    def name(self) -> str:
        return f"two_way:{self.fpr_max:.12g},{self.tpr_min:.12g}"

    def of(self, masses: Masses) -> Derivatives:
        curve, least = roc_of(masses), float(self.tpr_min)
        start = _passes(curve, least)
        n_scores, size = masses.positive.size, self.fpr_max * (1.0 - least)
        if start >= self.fpr_max:
            return Derivatives(0.0, np.zeros(n_scores), np.zeros(n_scores), 0.0)
        width = self.fpr_max - start
        if width < 1e-9:
            return Derivatives(0.0, np.zeros(n_scores), np.zeros(n_scores), 0.0)
        area = (curve.partial_area(start, self.fpr_max) - least) * width
        placement, height = influences_of_masses(
            masses.above_negative, masses.above_positive, start, self.fpr_max
        )
        value = min(1.0, max(0.0, area / size))
        return Derivatives(value, placement / size, np.maximum(height, least) / size, 0.0)

    def chance(self, masses: Masses) -> float | None:
        """Return the value of a random ranking: the diagonal's area; None if it does not reach the rectangle."""
        reach = float(self.fpr_max) - float(self.tpr_min)
        return reach**2 / 2.0 / (self.fpr_max * (1.0 - self.tpr_min)) if reach > 0.0 else None

    def null_moments(self, masses: Masses) -> tuple[float, float] | None:
        mean = self.chance(masses)
        return None if mean is None else (mean, null_variance(self, masses))

    def rows_inside(self, masses: Masses) -> tuple[float, float]:
        positive, negative = masses.effective
        return positive * (1.0 - self.tpr_min), negative * self.fpr_max

    def top(self, masses: Masses) -> float:
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the effective number of positives or of negatives in the rectangle, the smaller of both.

        The variance of the area is at most that of a proportion of so many trials; see `Metric.trials`.
        """
        return min(self.rows_inside(masses))


def _of_ranks(ranks: float) -> float:
    """Return the exact variance of a mean over the first `ranks` ranks, relative to its first-order approximation."""
    return (1.0 + 1.0 / ranks) * (1.0 + 0.5 / ranks)


def _passes(curve: RocCurve, tpr: float) -> float:
    right = int(np.searchsorted(curve.tpr, tpr, side="left"))
    if right == 0 or curve.tpr[right] == curve.tpr[right - 1]:
        return float(curve.fpr[right])
    part = (tpr - curve.tpr[right - 1]) / (curve.tpr[right] - curve.tpr[right - 1])
    return float(curve.fpr[right - 1] + part * (curve.fpr[right] - curve.fpr[right - 1]))
