"""Confidence intervals of the areas: analytic by placement values, or by the bootstrap.

The analytic variance sums squared influences; `influence` derives it. For single rows it is

    Var A = r₊ Σ w_i² (V_i − A)² / P² + r₋ Σ w_k² (h_k − h̄)² / N², with r = e / (e − 1), e = (Σw)² / Σw²,

which for the AUC without weights is DeLong's. The interval is symmetric on the logit scale, which keeps it inside
(0, 1) and near its level for areas close to 1.

When the sample cannot show its variance, because a class has the weight of one row, the area is 0 or 1, or no
placement differs, the interval is Wilson's for the greatest variance that any two distributions can give: a mean
of n values in [0, 1] has variance A (1 − A) / n at most, with n = min(e₊, e₋ · (b − a)); for the AUC this is Birnbaum &
Klose's bound. It is wide and honest: AUC 1 on 50 positives and 50 negatives gives [0.929, 1].

The bootstrap interval lies between two percentiles of the areas of samples drawn again. Plain percentiles are too
narrow for few rows, since samples of n units have (n − 1) / n of the variance and no tails of Student's; so the
percentiles are those of z = t √(n / (n − 1)) for n − 1 degrees of freedom, n the effective units of the smaller class.

References
----------
Birnbaum & Klose, "Bounds for the variance of the Mann-Whitney statistic", Annals of Mathematical Statistics 28 (1957).
Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69 (2015): percentiles.
Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
Pepe, "The Statistical Evaluation of Medical Tests for Classification and Prediction" (2003), §5.2: the logit scale.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidParameter
from core.metrics.area import area_of
from core.metrics.bootstrap import check_draws, draw_areas
from core.metrics.curve import RocCurve
from core.metrics.groups import FloatArray, Rows, ScoreGroups, check_rows, inner, tie_groups
from core.metrics.influence import (
    NOTHING,
    Areas,
    area_values,
    effective_rows,
    effective_units,
    estimate_areas,
    influences,
)
from core.metrics.window import Window, check_level, check_window

Method = Literal["analytic", "bootstrap"]
METHODS = ("analytic", "bootstrap")


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval."""

    value: float
    low: float
    high: float


def auc_interval(
    y: ArrayLike,
    scores: ArrayLike,
    level: float = 0.95,
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> Interval:
    """The AUC with DeLong's variance and an interval on the logit scale.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    scores : array_like of float, shape (n_samples,)
        Finite; higher means more likely positive.
    level : float in (0, 1)
        Probability that the interval covers the AUC of the population.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative. For the interval weights are shares, not counts: doubling all of them changes nothing.
    group : array_like, shape (n_samples,), optional
        Rows of one value are drawn together: several rows of a patient. They may be of both classes. The variance is
        then that of units, and Student's t takes the place of the normal distribution; see `influence`.

    Returns
    -------
    Interval
        0 ≤ low ≤ value ≤ high ≤ 1. Where the sample cannot show its variance (see the module), Wilson's interval for
        the greatest possible variance.

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty or without weight.
    InvalidParameter
        If `level` is not strictly between 0 and 1.

    Notes
    -----
    O(n log n).
    """
    return partial_auc_interval(y, scores, level=level, sample_weight=sample_weight, group=group)


def partial_auc_interval(
    y: ArrayLike,
    scores: ArrayLike,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    *,
    level: float = 0.95,
    method: Method = "analytic",
    n_bootstrap: int = 1000,
    random_state: int = 0,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> Interval:
    """The partial AUC (interpolated, divided by the window's width) with an interval.

    Parameters
    ----------
    y, scores, sample_weight, group
        As `auc_interval`.
    fpr_min, fpr_max : float in [0, 1]
        The window, fpr_min < fpr_max.
    level : float in (0, 1)
        Probability that the interval covers the partial AUC of the population.
    method : {"analytic", "bootstrap"}
        "analytic": placement values, on the logit scale. "bootstrap": percentiles over samples drawn with replacement
        within each class, or of whole groups (see `bootstrap`).
    n_bootstrap : int
        Number of samples, at least 2.
    random_state : int
        Seed of the samples, not negative.

    Returns
    -------
    Interval
        As `auc_interval`.

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty or without weight.
    InvalidParameter
        If a parameter is out of range.

    Notes
    -----
    O(n log n), with the bootstrap O(n log n + n · n_bootstrap). At level 0.95 the analytic interval covered 92.5 to
    97.5 % of simulated samples, tied or not, and 91 to 95 % where a window held only two to five negatives.
    """
    low, high = check_window(fpr_min, fpr_max)
    level = check_level(level)
    if method not in METHODS:
        raise InvalidParameter(f"method must be one of {METHODS}, got {method!r}")
    check_draws(n_bootstrap, random_state)
    rows, window = check_rows(y, {"scores": scores}, sample_weight, group), (low, high)
    if method == "bootstrap":
        return _percentiles(rows, window, level, n_bootstrap, random_state)
    if rows.unit is not None:
        return area_interval(estimate_areas(rows, [window]), 0, 0, window, level)
    return partial_auc_interval_of(tie_groups(rows), low, high, level)


def _percentiles(
    rows: Rows, window: Window, level: float, n_bootstrap: int, random_state: int
) -> Interval:
    """The interval between two percentiles of the bootstrap, a little further out than the level's own."""
    value = float(area_values(rows, [window])[0, 0])
    effective = effective_units(rows)
    replicates = draw_areas(rows, [window], n_bootstrap, random_state)[:, 0, 0]
    units = min(effective)
    if units <= 1.0 + NOTHING or np.ptp(replicates) <= NOTHING:
        return wilson_interval(value, least_trials(effective, window), level)
    spread = quantile(level, units - 1.0) * math.sqrt(units / (units - 1.0))
    tail = NormalDist().cdf(-spread)
    low, high = np.quantile(replicates, [tail, 1.0 - tail])
    return Interval(value, min(value, float(low)), max(value, float(high)))


def partial_auc_interval_of(
    groups: ScoreGroups,
    fpr_min: float,
    fpr_max: float,
    level: float,
    curve: RocCurve | None = None,
) -> Interval:
    """The analytic `partial_auc_interval` of tie groups; pass their full curve if it is there."""
    window = fpr_min, fpr_max
    value, variance = area_of(groups, *window, curve), area_variance(groups, *window)
    return _interval(value, variance, effective_of(groups), window, level)


def area_interval(areas: Areas, scorer: int, j: int, window: Window, level: float) -> Interval:
    """The analytic interval of one of several areas, over the j-th of their windows."""
    value, variance = float(areas.values[scorer, j]), areas.variance(scorer, j)
    return _interval(value, variance, areas.effective, window, level, areas.degrees)


def _interval(
    value: float,
    variance: float | None,
    effective: tuple[float, float],
    window: Window,
    level: float,
    degrees: float = math.inf,
) -> Interval:
    """Symmetric on the logit scale; Wilson's where the sample cannot show its variance."""
    if variance is None or math.sqrt(variance) <= NOTHING or not NOTHING < value < 1 - NOTHING:
        return wilson_interval(value, least_trials(effective, window), level)
    return logit_interval(value, variance, level, degrees)


def least_trials(effective: tuple[float, float], window: Window) -> float:
    """Trials that show an area over a window as poorly as any two distributions can: the n of the module."""
    return min(effective[0], effective[1] * (window[1] - window[0]))


def effective_of(groups: ScoreGroups) -> tuple[float, float]:
    """Effective number of rows of the positives and of the negatives."""
    return (
        effective_rows(groups.positive, groups.positive_squares),
        effective_rows(groups.negative, groups.negative_squares),
    )


def logit_interval(
    value: float, variance: float, level: float, degrees: float = math.inf
) -> Interval:
    """The interval of a share strictly between 0 and 1 that is symmetric on the logit scale."""
    logit = math.log(value / (1.0 - value))
    reach = quantile(level, degrees) * math.sqrt(variance) / (value * (1.0 - value))
    return Interval(value, min(value, _expit(logit - reach)), max(value, _expit(logit + reach)))


def area_variance(groups: ScoreGroups, fpr_min: float, fpr_max: float) -> float | None:
    """Variance of the partial AUC (divided by the window's width); None if a class has the weight of one row.

    Notes
    -----
    O(n_groups).
    """
    placement, height = influences(groups, fpr_min, fpr_max)
    positive = mean_variance(placement, groups.positive, groups.positive_squares)
    negative = mean_variance(height, groups.negative, groups.negative_squares)
    if positive is None or negative is None:
        return None
    return (positive + negative) / (fpr_max - fpr_min) ** 2


def mean_variance(values: FloatArray, mass: FloatArray, squares: FloatArray) -> float | None:
    """Variance of the weighted mean of independent values, given the sums of weights and of their squares."""
    total = float(mass.sum())
    effective = total**2 / float(squares.sum())
    if effective <= 1.0 + NOTHING:
        return None
    mean = inner(mass, values) / total
    spread = inner(squares, (values - mean) ** 2) / total**2
    return spread * effective / (effective - 1.0)


def wilson_interval(value: float, n: float, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share.

    Parameters
    ----------
    value : float in [0, 1]
        The share seen.
    n : float > 0
        Number of independent trials; with weights, the effective number.
    level : float in (0, 1)
        Probability that the interval covers the true share.

    Returns
    -------
    Interval
        0 ≤ low ≤ value ≤ high ≤ 1.

    Raises
    ------
    InvalidParameter
        If an argument is out of range.

    References
    ----------
    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    if not 0.0 <= value <= 1.0:
        raise InvalidParameter(f"value must lie in [0, 1], got {value}")
    if not 0.0 < n < math.inf:
        raise InvalidParameter(f"n must be positive and finite, got {n}")
    low, high = wilson_limits(np.array([value]), n, check_level(level))
    return Interval(value, float(low[0]), float(high[0]))


def wilson_limits(values: FloatArray, n: float, level: float) -> tuple[FloatArray, FloatArray]:
    """The ends of `wilson_interval` for each of many shares of n trials."""
    shift = normal_quantile(level) ** 2 / n
    centre = (values + shift / 2.0) / (1.0 + shift)
    reach = np.sqrt(shift * (values * (1.0 - values) + shift / 4.0)) / (1.0 + shift)
    # Exactly, the ends never pass the value, 0 or 1; rounding might.
    low = np.where(values == 0.0, 0.0, np.clip(centre - reach, 0.0, values))
    high = np.where(values == 1.0, 1.0, np.clip(centre + reach, values, 1.0))
    return low, high


def normal_quantile(level: float) -> float:
    """Half the width, in standard deviations, of the central interval that holds `level` of a normal distribution."""
    return NormalDist().inv_cdf((1.0 + level) / 2.0)


def quantile(level: float, degrees: float) -> float:
    """`normal_quantile`, or Student's with so many degrees of freedom if they are finite."""
    if math.isinf(degrees):
        return normal_quantile(level)
    from scipy.special import stdtrit  # which takes a tenth of a second to import

    return float(stdtrit(degrees, (1.0 + level) / 2.0))


def _expit(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else 1.0 - 1.0 / (1.0 + math.exp(x))
