"""Thresholding a ranking into a classifier with equal errors on both classes (Long & Servedio 2007, Lemma 4)."""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.kernels import kernel

Floats = npt.NDArray[np.float64]

# Difference of two rates up to which they count as equal: it may be rounding.
RATE_ATOL = 1e-12


class TwoSided(NamedTuple):
    """A two-valued classifier: its outputs above and below its threshold."""

    above: float
    below: float
    """Expected value of the classifier, in [-1, 1]. One of the two is certain (1 above or -1 below), a coin decides the
    other."""
    error: float
    """Its expected error, the same on both classes."""


def two_sided(p_plus: float, p_minus: float) -> TwoSided:
    """Return the classifier with equal errors on both classes: a threshold, randomised on one of its sides.

    p_plus: fraction of the positives' weight that is below the cut.
    p_minus: fraction of the negatives' weight that is above the cut; p_plus + p_minus <= 1.

    Result: where p_minus <= p_plus, 1 above and, below, 1 with probability ζ = (p_plus - p_minus)/(1 + p_plus -
        p_minus), else -1. Where p_minus > p_plus the same with the sides' roles exchanged. Its advantage ½ - error is
        at least a quarter of the ranking's γ = AUC - ½ if the cut is the one of greatest TPR - FPR.

    P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007: Lemma 4.
    """
    if p_minus <= p_plus:
        coin = (p_plus - p_minus) / (1.0 + p_plus - p_minus)
        return TwoSided(1.0, 2.0 * coin - 1.0, p_plus * (1.0 - coin))
    coin = (p_minus - p_plus) / (1.0 + p_minus - p_plus)
    return TwoSided(1.0 - 2.0 * coin, -1.0, p_minus * (1.0 - coin))


class Threshold(NamedTuple):
    """A threshold of scores (a row is above if score > value), and its error rates."""

    value: float
    p_plus: float
    p_minus: float


def youden_threshold(
    scores: Floats, positive: npt.NDArray[np.bool_], weight: Floats
) -> Threshold | None:
    """Return the threshold with the greatest TPR - FPR; None if all scores are equal.

    Differences within 1e-12 of the greatest count as equal; among those the threshold whose errors differ least is
    chosen. Its value is a score of the data. O(n_rows log n_rows).

    scores: (n_rows,).
    weight: (n_rows,); each class has a weight above 0.
    """
    if (weight == weight[0]).all():  # sorted apart, the classes need no order of rows
        ends = np.sort(scores[positive]), np.sort(scores[~positive])
        value, p_plus, p_minus = _best_cut(*ends)
        return None if np.isnan(value) else Threshold(value, p_plus, p_minus)
    values, group = np.unique(scores, return_inverse=True)
    if len(values) < 2:
        return None
    positives = np.bincount(group, weights=weight * positive, minlength=len(values))
    negatives = np.bincount(group, weights=weight * ~positive, minlength=len(values))
    p_plus = (np.cumsum(positives) / positives.sum())[:-1]
    above_n = np.cumsum(negatives[::-1])[::-1] / negatives.sum()
    p_minus = above_n[1:]
    difference = 1.0 - p_plus - p_minus
    best = np.flatnonzero(difference >= difference.max() - RATE_ATOL)
    k = int(best[np.argmin(np.abs(p_plus - p_minus)[best])])
    return Threshold(float(values[k]), float(p_plus[k]), float(p_minus[k]))


@kernel(numba.types.UniTuple(numba.float64, 3)(numba.float64[::1], numba.float64[::1]))
def _best_cut(positives, negatives):  # type: ignore[no-untyped-def]
    """Return value, p_plus, p_minus of `youden_threshold` for rows of equal weight; NaN if there is none.

    Ascending scores are walked through twice: for the greatest difference, and for the cut itself.
    """
    m, n = len(positives), len(negatives)
    greatest, least = -np.inf, np.inf
    value, p_plus, p_minus = np.nan, np.nan, np.nan
    for walk in range(2):
        i = j = 0
        while True:
            from_positives = j == n or (i < m and positives[i] <= negatives[j])
            here = positives[i] if from_positives else negatives[j]
            while i < m and positives[i] == here:
                i += 1
            while j < n and negatives[j] == here:
                j += 1
            if i == m and j == n:
                break
            plus, minus = i / m, (n - j) / n
            difference = 1.0 - plus - minus
            if walk == 0:
                greatest = max(greatest, difference)
            elif difference >= greatest - RATE_ATOL and abs(plus - minus) < least:
                least = abs(plus - minus)
                value, p_plus, p_minus = here, plus, minus
    return value, p_plus, p_minus
