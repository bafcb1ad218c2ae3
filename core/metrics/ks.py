"""An interval for the Kolmogorov–Smirnov distance of a ranking, the greatest difference of TPR and FPR.

The greatest of many differences is too great on the rows that chose it: with 20 + 200 rows and scores that say nothing
by .19. An interval around it covers 75 % there instead of 95. So the rows are dealt into parts, and each is judged by
the threshold that the others choose, as a cut of least cost is (see `amounts`). The lower end is that of the difference
of these held-out rates, which has no such bias. The upper end is that of the difference at the threshold that all rows
choose: a threshold that others choose is worse than the best one, so that the held-out upper end would be too low.

Either end is that of the difference of two rates with Wilson's intervals (MOVER).

References
----------
Newcombe, "Interval estimation for the difference between independent proportions", Statistics in Medicine 17 (1998),
method 10.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_seed
from core.metrics.amounts import Ranked, deal
from core.metrics.estimates import Interval, wilson_interval
from core.metrics.groups import FloatArray, check_rows, effective_units, inner
from core.metrics.window import check_level


def ks_interval(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    random_state: int = 0,
) -> Interval:
    """Compute the Kolmogorov–Smirnov distance, the greatest |TPR − FPR|, with a confidence interval.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Labels: two distinct values, of which the greater is positive.
    scores : array_like of float, shape (n_samples,)
        Finite scores; higher means more likely positive.
    level : float in (0, 1)
        Confidence level of each interval.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights. For intervals and tests only their ratios matter.
    group : array_like, shape (n_samples,), optional
        Rows with equal values were drawn together, such as several rows of one patient. Intervals then count groups.
    random_state : int
        Seed of the split of the rows into parts.

    Returns
    -------
    Interval
        The distance in [0, 1]. O(n log n).

    Raises
    ------
    InvalidData
        Lengths differ, a value is not finite, or a class is empty or has no weight.
    InvalidParameter
        A parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import ks_interval
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, 0], [200, 1000])
    >>> found = ks_interval(y, rng.normal(size=1200) + y)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.427, 0.305, 0.483)
    """
    level, seed = check_level(level), check_seed(random_state)
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    weight = np.ones(rows.positive.size) if rows.weight is None else rows.weight
    shares = [
        np.where(of_class, weight, 0.0) / float(weight[of_class].sum())
        for of_class in (rows.positive, ~rows.positive)
    ]
    effective, ranked = effective_units(rows), Ranked.of(rows.scores[0])
    ties, above = ranked.tie_of_row(), [ranked.sums_above(each) for each in shares]
    best, sign = _best(*above)
    whole = _difference(_rates((ties < best) == sign, shares), effective, level)
    parts = deal(rows, seed)
    low = 0.0
    if parts is not None:
        flagged = np.empty(ties.size, dtype=np.bool_)
        for part in range(int(parts.max()) + 1):
            own = parts == part
            rest = [
                sums - ranked.sums_above(np.where(own, each, 0.0))
                for sums, each in zip(above, shares, strict=True)
            ]
            cutoff, side = _best(*rest)
            flagged[own] = (ties[own] < cutoff) == side
        low = _difference(_rates(flagged, shares), effective, level).low
    value = min(1.0, max(0.0, whole.value))
    return Interval(value, min(value, max(0.0, low)), max(value, min(1.0, whole.high)))


def _best(tpr: FloatArray, fpr: FloatArray) -> tuple[int, bool]:
    """Return the number of distinct scores to flag, and False if the rest is to be flagged instead."""
    difference = tpr / (tpr[-1] or 1.0) - fpr / (fpr[-1] or 1.0)
    best = int(np.argmax(np.abs(difference)))
    return best, bool(difference[best] >= 0.0)


def _rates(flagged: NDArray[np.bool_], shares: list[FloatArray]) -> tuple[float, float]:
    tpr, fpr = (min(1.0, inner(flagged.astype(np.float64), each)) for each in shares)
    return tpr, fpr


def _difference(
    rates: tuple[float, float], effective: tuple[float, float], level: float
) -> Interval:
    first, second = (
        wilson_interval(rate, n, level) for rate, n in zip(rates, effective, strict=True)
    )
    value = first.value - second.value
    low = math.hypot(first.value - first.low, second.high - second.value)
    return Interval(
        value, value - low, value + math.hypot(first.high - first.value, second.value - second.low)
    )
