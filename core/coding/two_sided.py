"""Lemma 4 of Long & Servedio 2007: a cut of a ranking as a classifier that errs alike on both classes."""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.kernels import kernel

Floats = npt.NDArray[np.float64]

TIE = 1e-12  # differences so close are equal


class TwoSided(NamedTuple):
    """A two-sided classifier: what it says above its cut and below it."""

    above: float
    below: float
    """In [-1, 1]: the expected value of what the classifier says. One of the two is certain (1 above or -1 below); the
    other side is decided by a coin."""
    error: float
    """Its expected error on each class, the same on both."""


def two_sided(p_plus: float, p_minus: float) -> TwoSided:
    """Balance the errors of a cut by a coin.

    Parameters
    ----------
    p_plus : float
        Share of the positives' weight below the cut.
    p_minus : float
        Share of the negatives' weight above the cut; p_plus + p_minus <= 1.

    Returns
    -------
    TwoSided
        Where p_minus <= p_plus, 1 above and, below, 1 with probability
        ζ = (p_plus - p_minus)/(1 + p_plus - p_minus), else -1. Where p_minus > p_plus the same with
        the sides' roles exchanged. Its advantage ½ - error is at least a quarter of the ranking's
        γ = AUC - ½ if the cut is the one of greatest TPR - FPR.

    References
    ----------
    P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007: Lemma 4.
    """
    if p_minus <= p_plus:
        coin = (p_plus - p_minus) / (1.0 + p_plus - p_minus)
        return TwoSided(1.0, 2.0 * coin - 1.0, p_plus * (1.0 - coin))
    coin = (p_minus - p_plus) / (1.0 + p_minus - p_plus)
    return TwoSided(1.0 - 2.0 * coin, -1.0, p_minus * (1.0 - coin))


class Threshold(NamedTuple):
    """A cut of scores: above is score > value."""

    value: float
    p_plus: float
    p_minus: float


def youden_threshold(
    scores: Floats, positive: npt.NDArray[np.bool_], weight: Floats
) -> Threshold | None:
    """Find the cut of greatest TPR - FPR; of several, the one whose errors differ least.

    O(n_rows log n_rows). Cuts within 1e-12 of the greatest difference count as equal to it. Returns Threshold or None:
    None where all scores are equal. The value is a score of the data.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Both classes have some.
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
    best = np.flatnonzero(difference >= difference.max() - TIE)
    k = int(best[np.argmin(np.abs(p_plus - p_minus)[best])])
    return Threshold(float(values[k]), float(p_plus[k]), float(p_minus[k]))


@kernel(numba.types.UniTuple(numba.float64, 3)(numba.float64[::1], numba.float64[::1]))
def _best_cut(positives, negatives):  # type: ignore[no-untyped-def]
    """Find the cut of `youden_threshold` from the ascending scores of each class, all of one weight.

    Walks up both twice: for the greatest difference, and for the cut itself. NaN where there is no cut.
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
            elif difference >= greatest - TIE and abs(plus - minus) < least:
                least = abs(plus - minus)
                value, p_plus, p_minus = here, plus, minus
    return value, p_plus, p_minus
