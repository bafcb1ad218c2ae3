"""Has anything changed from one sample of rows to another, drawn independently of it?

**Areas.** Two independent estimates, each with its own interval, whatever that stands on (placement values, clusters,
folds, Wilson's where a sample shows no variance). The interval of their difference recovers the variances from the ends
of the two (MOVER): with estimates a and b and intervals [l, u] of one level,

    b − a − √((b − l_b)² + (u_a − a)²)   to   b − a + √((u_b − b)² + (a − l_a)²).

Each end uses the variance that holds near it, so the interval needs neither symmetry nor a normal estimate; with
symmetric intervals it is the usual one, with Wilson's of two shares it is Newcombe's. The p-value is that of the normal
distribution whose error is the distance to 0's own end: below 1 − level exactly when the interval leaves 0 out.

**Scores.** The scores of one class in two samples, each as a curve keeps them: a share at or above every score. The
distance is Kolmogorov and Smirnov's, D = max |S₁ − S₂|, its p-value that of the limit distribution at
√(n₁ n₂ / (n₁ + n₂)) D with effective numbers of rows. Ties make it careful, and so do small samples; it never claims
more than it should.

References
----------
Zou & Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27 (2008), eq. 5: MOVER.
Newcombe, "Interval estimation for the difference between independent proportions", Statistics in Medicine 17 (1998),
method 10.
Smirnov, "Table for estimating the goodness of fit of empirical distributions", Annals of Mathematical Statistics 19
(1948).
Mann & Whitney, "On a test of whether one of two random variables is stochastically larger than the other", Annals of
Mathematical Statistics 18 (1947).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidData
from core.metrics.groups import FloatArray
from core.metrics.intervals import Interval, normal_quantile
from core.metrics.window import check_level


class Change(NamedTuple):
    """How much an estimate has changed from one sample to another.

    Attributes
    ----------
    value : float
        The later less the earlier.
    low, high : float
        Ends of its confidence interval.
    p_value : float in [0, 1]
        Of no change, two-sided.
    """

    value: float
    low: float
    high: float
    p_value: float


class ScoreShift(NamedTuple):
    """How far the scores of two samples are apart.

    Attributes
    ----------
    distance : float in [0, 1]
        Kolmogorov and Smirnov's: the greatest difference of the shares at or above a score.
    higher : float in [0, 1]
        Probability that a later score is above an earlier one, ties counted half: Mann and Whitney's.
    p_value : float in [0, 1]
        Of one distribution, by the distance.
    """

    distance: float
    higher: float
    p_value: float


class ScoreSample(NamedTuple):
    """The scores of a sample, as a ROC curve keeps those of a class.

    Attributes
    ----------
    thresholds : ndarray of shape (n_points,), float64
        Strictly decreasing, the first one +inf.
    shares : ndarray of shape (n_points,), float64
        Share of the sample at or above each threshold, from 0 to 1.
    rows : float
        Effective number of independent rows, above 0.
    """

    thresholds: FloatArray
    shares: FloatArray
    rows: float


def change(before: Interval, after: Interval, level: float = 0.95) -> Change:
    """Compare two estimates that stem from independent samples.

    Parameters
    ----------
    before, after : Interval
        Estimates of the same thing, each with its interval at `level`.
    level : float in (0, 1)
        Of these intervals, and of that of the change.

    Returns
    -------
    Change

    Raises
    ------
    InvalidData
        If an interval does not hold its value.
    InvalidParameter
        If `level` is not strictly between 0 and 1.
    """
    level = check_level(level)
    for name, (value, low, high) in (("before", before), ("after", after)):
        if not low <= value <= high:
            raise InvalidData(f"{name} must lie in its interval [{low}, {high}], got {value}")
    value = after.value - before.value
    down = math.hypot(after.value - after.low, before.high - before.value)
    up = math.hypot(after.high - after.value, before.value - before.low)
    towards_nothing = down if value > 0.0 else up
    if value == 0.0:
        p_value = 1.0
    elif towards_nothing == 0.0:
        p_value = 0.0
    else:
        z = abs(value) / towards_nothing * normal_quantile(level)
        p_value = math.erfc(z / math.sqrt(2.0))
    return Change(value, value - down, value + up, p_value)


def score_shift(before: ScoreSample, after: ScoreSample) -> ScoreShift:
    """Compare the scores of two independent samples.

    Parameters
    ----------
    before, after : ScoreSample

    Returns
    -------
    ScoreShift

    Raises
    ------
    InvalidData
        If a sample is not one.

    Notes
    -----
    O(n log n) in the number of points.
    """
    from scipy.special import kolmogorov

    for name, sample in (("before", before), ("after", after)):
        _check(name, sample)
    every = np.unique(np.concatenate([before.thresholds[1:], after.thresholds[1:]]))
    distance = float(np.abs(_at_or_above(before, every) - _at_or_above(after, every)).max())
    own, mass = after.thresholds[1:], np.diff(after.shares)
    # of the earlier scores: at or above, and above, each of the later ones
    above = _at_or_above(before, np.nextafter(own, np.inf))
    higher = float(mass @ (1.0 - (_at_or_above(before, own) + above) / 2.0))
    rows = before.rows * after.rows / (before.rows + after.rows)
    p_value = float(kolmogorov(math.sqrt(rows) * distance))
    return ScoreShift(distance, min(max(higher, 0.0), 1.0), p_value)


def sample_of(thresholds: ArrayLike, shares: ArrayLike, rows: float) -> ScoreSample:
    """The sample of a class from its curve: its thresholds, and FPR of the negatives or TPR of the positives."""
    return ScoreSample(
        np.asarray(thresholds, dtype=np.float64), np.asarray(shares, dtype=np.float64), rows
    )


def _check(name: str, sample: ScoreSample) -> None:
    thresholds, shares, rows = sample
    if not (thresholds.ndim == 1 and thresholds.shape == shares.shape and thresholds.size >= 2):
        raise InvalidData(
            f"thresholds and shares of {name} must be vectors of one length, 2 or more, "
            f"got {thresholds.shape} and {shares.shape}"
        )
    if thresholds[0] != np.inf or not np.all(thresholds[1:] < thresholds[:-1]):
        raise InvalidData(f"thresholds of {name} must fall strictly, starting at +inf")
    if not (shares[0] == 0.0 and shares[-1] == 1.0 and np.all(shares[1:] >= shares[:-1])):
        raise InvalidData(f"shares of {name} must rise from 0 to 1 without falling")
    if not 0.0 < rows < math.inf:
        raise InvalidData(f"rows of {name} must be positive and finite, got {rows}")


def _at_or_above(sample: ScoreSample, scores: FloatArray) -> FloatArray:
    """Share of the sample at or above each of the scores."""
    place = np.searchsorted(-sample.thresholds, -scores, side="right") - 1
    return sample.shares[place]
