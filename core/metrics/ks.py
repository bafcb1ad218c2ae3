"""A confidence interval for the Kolmogorov–Smirnov distance of a ranking, the maximum of |TPR − FPR|.

On the rows that chose it, the greatest of many differences is too great: with 20 + 200 rows and scores that carry no
information by .19. An interval around it covers 75 % there instead of 95. So the rows are split at random into parts,
and each part is evaluated at the threshold that the other parts choose, as for a threshold of least cost (`amounts`).
The lower end is that of the difference of these held-out rates, which has no such bias. The upper end is that of the
difference at the threshold that all rows choose: a threshold that others choose is worse than the best one, so that the
held-out upper end would be too low.

Both ends come from Wilson's intervals of the two rates (MOVER).

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
from core.metrics.amounts import Ranked, random_parts
from core.metrics.estimates import Interval, combine, wilson_interval
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
    y, scores, level, sample_weight, group
        As for `auc_interval`.
    random_state : int
        Seed of the split of the rows into parts.

    Returns
    -------
    Interval
        The distance in [0, 1]. O(n log n).

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
    of_positives, of_negatives = (
        np.where(of_class, weight, 0.0) / float(weight[of_class].sum())
        for of_class in (rows.positive, ~rows.positive)
    )
    effective, ranked = effective_units(rows), Ranked.of(rows.scores[0])
    ties = ranked.tie_of_row()
    tpr, fpr = ranked.sums_above(of_positives), ranked.sums_above(of_negatives)

    def difference(flagged: NDArray[np.bool_]) -> Interval:
        rates = (inner(flagged.astype(np.float64), each) for each in (of_positives, of_negatives))
        own, other = (
            wilson_interval(min(1.0, rate), n, level)
            for rate, n in zip(rates, effective, strict=True)
        )
        value, below, above = combine(own, other, 1.0, -1.0)
        return Interval(value, value - below, value + above)

    n_flagged, flags_top = _greatest_difference(tpr, fpr)
    at_best = difference((ties < n_flagged) == flags_top)
    low, parts = 0.0, None
    if _smirnov(at_best.value, effective) < 1.0 - level:
        parts = random_parts(rows, seed)
    if parts is not None:
        flagged = np.empty(ties.size, dtype=np.bool_)
        for part in range(int(parts.max()) + 1):
            own = parts == part
            n_flagged, flags_top = _greatest_difference(
                tpr - ranked.sums_above(np.where(own, of_positives, 0.0)),
                fpr - ranked.sums_above(np.where(own, of_negatives, 0.0)),
            )
            flagged[own] = (ties[own] < n_flagged) == flags_top
        low = difference(flagged).low
    value = min(1.0, max(0.0, at_best.value))
    return Interval(value, min(value, max(0.0, low)), max(value, min(1.0, at_best.high)))


def _smirnov(distance: float, rows: tuple[float, float]) -> float:
    from scipy.special import kolmogorov

    return float(kolmogorov(math.sqrt(rows[0] * rows[1] / sum(rows)) * distance))


def _greatest_difference(tpr: FloatArray, fpr: FloatArray) -> tuple[int, bool]:
    """Return after how many distinct scores |TPR − FPR| is greatest, and whether the scores above are flagged.

    If the FPR is the greater one there, the rows with other scores are flagged instead. Both rates are given up to a
    factor, after a leading 0.
    """
    difference = tpr / (tpr[-1] or 1.0) - fpr / (fpr[-1] or 1.0)
    best = int(np.argmax(np.abs(difference)))
    return best, bool(difference[best] >= 0.0)
