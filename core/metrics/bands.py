"""Confidence bands of a ROC curve, from the curve and its class totals alone.

The height of the curve at a false positive rate t has two errors, one from each class:

* the positives: with the threshold c fixed, the share of them above it is binomial;
* the negatives: where the threshold of the population, c with S₋(c) = t, lies in the sample is not known. The share of
  the sample's negatives above it has mean t and variance t(1 − t)/n₋, so with the band's probability it is in
  [t₁, t₂] = t ± z √(t(1 − t)/n₋), and the height lies between the foot of the sample's curve at t₁ and its top at t₂.

The *pointwise* band joins the two by the method of variance estimates recovery (MOVER): with R the sample's height at t
and [l, u] Wilson's interval for it,

    low = R − √((R − l)² + (R − R(t₁))²),   high = R + √((u − R)² + (R(t₂) − R)²),

where R(t₁) is 0 if t₁ ≤ 0 and R(t₂) is 1 if t₂ ≥ 1. To first order this is the variance of Hsieh & Turnbull's Theorem
2.2, R(1 − R)/n₊ + R'(t)² t(1 − t)/n₋, of which Linnet shows that the second part must not be left out. But the slope,
which would need a smoother, is the curve's own over just the distance that matters, the ends stay in [0, 1], and where
t is less than about z²/n₋ the band says what is true: no threshold is known to flag so few, and nothing holds the curve
up from below.

The *simultaneous* band is Campbell's: if each class's distribution function is within d of the sample's everywhere,
then the curve is nowhere beyond the sample's moved by (d₋, d₊). By the inequality of Dvoretzky, Kiefer, Wolfowitz
and Massart that holds with probability at least 1 − 2 exp(−2 n d²) a class, for every n and any ties; the classes are
independent, so each is given the level √level. It is wide, and its level is a guarantee.

References
----------
Linnet, "Comparison of quantitative diagnostic tests: type I error, power, and sample size", Statistics in Medicine 6
(1987).
Hsieh & Turnbull, "Nonparametric and semiparametric estimation of the receiver operating characteristic curve", Annals
of Statistics 24 (1996).
Pepe, "The statistical evaluation of medical tests for classification and prediction" (2003), §5.2.
Zou & Donner, "Construction of confidence limits about effect measures: a general approach", Statistics in Medicine
27 (2008): MOVER.
Campbell, "Advances in statistical methodology for the evaluation of diagnostic and laboratory tests", Statistics in
Medicine 13 (1994).
Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Annals of Probability 18 (1990).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidParameter
from core.metrics.curve import ClassTotals, RocCurve, curve_of, foot_at, top_at, totals_of
from core.metrics.groups import FloatArray, check_rows, tie_groups
from core.metrics.intervals import Interval, normal_quantile, wilson_limits
from core.metrics.window import check_level, check_rate

BandKind = Literal["pointwise", "simultaneous"]
BANDS = ("pointwise", "simultaneous")


@dataclass(frozen=True, eq=False)
class RocBand:
    """Limits of a ROC curve's height at false positive rates."""

    fpr: FloatArray
    """Shape (n,), in [0, 1]."""
    low: FloatArray
    high: FloatArray
    """At 1 both are 1: who flags all catches all. Shape (n,), in [0, 1]."""
    kind: BandKind
    """Whether the level is that of each height by itself or of the whole curve."""
    level: float
    """In (0, 1)."""


def roc_band(
    y: ArrayLike,
    scores: ArrayLike,
    fpr: ArrayLike,
    *,
    kind: BandKind = "pointwise",
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> RocBand:
    """A confidence band of the ROC curve of scores.

    InvalidData: as `auc`. InvalidParameter, if a rate, the kind or the level is out of range.

    Parameters
    ----------
    y, scores
        As `auc`.
    fpr : array_like of float in [0, 1], shape (n,)
        Where the band is wanted.
    kind : {"pointwise", "simultaneous"}
        "pointwise": covers the height at any one rate with probability `level`, about. "simultaneous": covers the whole
        curve with probability at least `level`.
    level : float in (0, 1)
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative. The classes then count with their effective numbers of rows, to first order.
    group : array_like, shape (n_samples,), optional
        Rows of one value were drawn together, such as those of a patient. The band then counts groups.

    Notes
    -----
    O(n_samples log n_samples + n log n_samples). Of simulated binormal curves the pointwise band of level 0.95 covered
    93 to 100 % at each of eight rates from .005 to .8, with 30 to 2,000 rows a class; it errs to the safe side where
    n₊ or n₋·fpr is small. Of whole curves the simultaneous band covered all but one in 3,000.
    """
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    groups = tie_groups(rows)
    return roc_band_on_curve(curve_of(groups), totals_of(rows, groups), fpr, kind=kind, level=level)


def roc_band_on_curve(
    curve: RocCurve,
    totals: ClassTotals,
    fpr: ArrayLike,
    *,
    kind: BandKind = "pointwise",
    level: float = 0.95,
) -> RocBand:
    """`roc_band` from a stored curve and the totals of its data. O(n log n_points)."""
    level = check_level(level)
    if kind not in BANDS:
        raise InvalidParameter(f"kind must be one of {BANDS}, got {kind!r}")
    rates = np.atleast_1d(np.asarray(fpr, dtype=np.float64))
    if rates.ndim != 1 or not np.all((rates >= 0.0) & (rates <= 1.0)):
        raise InvalidParameter("fpr must be a list of numbers in [0, 1]")
    limits = _pointwise if kind == "pointwise" else _simultaneous
    low, high = limits(curve.fpr, curve.tpr, totals, rates, level)
    everything = rates == 1.0
    return RocBand(
        rates, np.where(everything, 1.0, low), np.where(everything, 1.0, high), kind, level
    )


def tpr_at_fpr_interval(
    curve: RocCurve, totals: ClassTotals, fpr: float, level: float = 0.95
) -> Interval:
    """The curve's height at a false positive rate, interpolated, with its pointwise limits. O(log n_points).

    The threshold at which the population has this rate is not known, and the interval allows for it.
    """
    rate = check_rate("fpr", fpr)
    band = roc_band_on_curve(curve, totals, rate, level=level)
    return Interval(float(curve.tpr_at(rate)), float(band.low[0]), float(band.high[0]))


def fpr_at_tpr_interval(
    curve: RocCurve, totals: ClassTotals, tpr: float, level: float = 0.95
) -> Interval:
    """The least FPR at which the curve reaches a TPR, interpolated, with its pointwise limits. O(n_points).

    It is `tpr_at_fpr_interval` with the classes' parts exchanged.
    """
    rate = 1.0 - check_rate("tpr", tpr)
    x, y = 1.0 - curve.tpr[::-1], 1.0 - curve.fpr[::-1]
    exchanged = ClassTotals(
        totals.negative, totals.positive, totals.negative_effective, totals.positive_effective
    )
    if rate == 1.0:  # a TPR of 0 costs nothing
        return Interval(0.0, 0.0, 0.0)
    at = np.array([rate])
    low, high = _pointwise(x, y, exchanged, at, check_level(level))
    value = 1.0 - float(top_at(x, y, at)[0])
    return Interval(value, min(value, 1.0 - float(high[0])), max(value, 1.0 - float(low[0])))


def _pointwise(
    x: FloatArray, y: FloatArray, totals: ClassTotals, rates: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """By MOVER, to first order the variance of Hsieh & Turnbull 1996, Theorem 2.2."""
    height = top_at(x, y, rates)
    least, most = wilson_limits(height, totals.positive_effective, level)
    reach = threshold_reach(rates, totals.negative_effective, level)
    foot, top = _moved(x, y, rates, reach)
    low = height - np.hypot(height - least, np.maximum(height - foot, 0.0))
    high = height + np.hypot(most - height, np.maximum(top - height, 0.0))
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def _simultaneous(
    x: FloatArray, y: FloatArray, totals: ClassTotals, rates: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Campbell's rectangles, each side by Massart's constant."""
    risk = -math.log((1.0 - math.sqrt(level)) / 2.0) / 2.0
    aside = math.sqrt(risk / totals.negative_effective)
    up = math.sqrt(risk / totals.positive_effective)
    foot, top = _moved(x, y, rates, np.full(rates.size, aside))
    return np.maximum(foot - up, 0.0), np.minimum(top + up, 1.0)


def _moved(
    x: FloatArray, y: FloatArray, rates: FloatArray, reach: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The foot of the line at rates − reach and its top at rates + reach; 0 and 1 beyond its ends."""
    before, after = rates - reach, rates + reach
    foot = np.where(before <= 0.0, 0.0, foot_at(x, y, np.maximum(before, 0.0)))
    top = np.where(after >= 1.0, 1.0, top_at(x, y, np.minimum(after, 1.0)))
    return foot, top


def threshold_reach(rates: FloatArray, n: float, level: float) -> FloatArray:
    """How far the sample's rate at the population's threshold may be from the rate that threshold is for."""
    return np.asarray(normal_quantile(level) * np.sqrt(rates * (1.0 - rates) / n))
