"""Decision curves: the net benefit of acting on probabilities, at each threshold probability.

Who acts on rows with a probability of at least t values one false positive at t / (1 − t) true positives: at t = .1,
missing a positive is nine times as bad as acting on a negative in vain. In true positives per row, the net benefit is

    NB(t) = TP / n − FP / n · t / (1 − t).

Acting on nobody has the net benefit 0, acting on everybody π − (1 − π) t / (1 − t) with the prevalence π. A model is of
use at t if its net benefit is above both.

**Intervals.** Each row is in one of four cells (true or false, positive or negative), and the net benefit is a weighted
difference of two shares. Each share has Wilson's interval for its effective trials, p (1 − p) / v with the variance v
over rows or, where that is greater, over groups; Student's t replaces the normal quantile for groups. The interval of
the difference recovers the variances from the two (MOVER), with the correlation of the shares, which is negative: with
shares a and b, weights α and β and correlation ρ, the lower end is αa − βb − √(A² + B² − 2ρAB) with A = α (a − l_a) and
B = β (u_b − b). This also holds where no row, or only positives, are acted on, and a variance would be 0. Each
threshold has an interval by itself.

References
----------
Vickers & Elkin, "Decision curve analysis: a novel method for evaluating prediction models", Medical Decision Making 26
(2006), eq. 1.
Vickers, Van Calster & Steyerberg, "A simple, step-by-step guide to interpreting decision curve analysis", Diagnostic
and Prognostic Research 3 (2019).
Zou & Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27 (2008), eq. 6: MOVER
with correlation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_items
from core.errors import InvalidParameter
from core.metrics.estimates import (
    EPSILON,
    MIN_DEGREES,
    Interval,
    quantile,
    two_sided,
    wilson_interval,
)
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    check_probabilities,
    check_rows,
    effective_number,
    sum_by_unit,
)
from core.metrics.window import check_level, check_rate

THRESHOLDS = (*(k / 100 for k in range(1, 51)), *(k / 100 for k in range(55, 100, 5)))
"""Thresholds at which the net benefit is reported: each hundredth up to one half, then each twentieth."""

_TP, _FP, _FN, _TN = range(4)


class NetBenefit(NamedTuple):
    """Net benefit of acting on rows with at least a threshold probability, in true positives per row.

    Examples
    --------
    >>> from core.metrics import decision_curve
    >>> (found,) = decision_curve([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.5, 0.8, 0.9], [0.3])
    >>> round(found.benefit.value, 3), round(found.flag_all.value, 3)
    (0.429, 0.286)
    """

    threshold: float
    """The threshold probability. In (0, 1)."""
    flagged: float
    """Fraction of the rows' weight with at least this probability."""
    benefit: Interval
    """The net benefit. Above 0: better than acting on nobody."""
    flag_all: Interval
    """The net benefit of acting on every row."""
    over_all: Interval
    """`benefit` minus `flag_all` on the same rows. Above 0: better than acting on every row."""


def decision_curve(
    y: ArrayLike,
    probability: ArrayLike,
    thresholds: Sequence[float] = THRESHOLDS,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> tuple[NetBenefit, ...]:
    """Compute the decision curve: net benefit at threshold probabilities, with intervals.

    Use it for models with calibrated probabilities. Scores that are not probabilities have no net benefit.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Labels: two distinct values, of which the greater is positive. The rows must have the prevalence of the
        population, or weights that give it.
    probability : array_like of float, shape (n_samples,), in [0, 1]
        Probability of being positive, on held-out rows.
    thresholds : sequence of float in (0, 1)
        Threshold probabilities.
    level, group
        As for `auc_interval`.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights. Only their ratios matter.

    Returns
    -------
    tuple of NetBenefit
        In the order of the thresholds. O(n log k + k) for n rows and k thresholds; O(n k) with groups.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import decision_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> (found,) = decision_curve(rng.random(1000) < p, p, [0.25])
    >>> round(found.benefit.value, 3), round(found.flag_all.value, 3), found.over_all.low > 0.0
    (0.401, 0.364, True)
    """
    level = check_level(level)
    if len(check_items("thresholds", thresholds)) == 0:
        raise InvalidParameter("thresholds must contain at least one threshold, got none")
    checked = [check_rate("thresholds", each) for each in thresholds]
    for each in checked:
        if not 0.0 < each < 1.0:
            raise InvalidParameter(f"thresholds must be strictly between 0 and 1, got {each}")
    rows = check_rows(y, {"probability": probability}, sample_weight, group)
    check_probabilities(rows.scores[0])
    cells = _Cells.of(rows, checked, level)
    return tuple(_at(cells, number, each) for number, each in enumerate(checked))


class _Cells(NamedTuple):
    shares: FloatArray
    """Shape (n_thresholds, 4), float64."""
    covariance: FloatArray
    """Of the shares. Shape (n_thresholds, 4, 4), float64."""
    of_rows: FloatArray
    """The same if rows were independent: groups whose shares vary less may do so by chance."""
    effective: float
    """Effective number of units."""
    level: float
    """At which Wilson's interval has Student's quantile."""

    @classmethod
    def of(cls, rows: EvaluatedRows, thresholds: Sequence[float], level: float) -> _Cells:
        weight = np.ones(rows.positive.size) if rows.weight is None else rows.weight
        weight = weight / weight.sum()
        order = np.sort(thresholds)
        above = np.searchsorted(order, rows.scores[0], side="right")  # thresholds at or below
        place = np.searchsorted(order, thresholds, side="left")
        shares, squares = (
            _sums_at(above, rows.positive, each, order.size)[place] for each in (weight, weight**2)
        )
        covariance = of_rows = _covariance_of_rows(shares, squares)
        if rows.unit is None:
            effective, shown = effective_number(weight), level
        else:
            of_unit = sum_by_unit(weight, rows.unit)
            effective = effective_number(of_unit)
            t = quantile(level, max(effective - 1.0, MIN_DEGREES))
            shown = min(1.0 - two_sided(t), 1.0 - EPSILON)
            covariance = np.array(
                [
                    _covariance_of_units(above > at, rows.positive, weight, rows.unit, of_unit, own)
                    for at, own in zip(place, shares, strict=True)
                ]
            )
        if effective > 1.0 + EPSILON:
            covariance = covariance * (effective / (effective - 1.0))
        return cls(shares, covariance, of_rows, effective, shown)

    def share(self, number: int, *cells: int) -> Interval:
        variance = max(
            float(each[number][np.ix_(cells, cells)].sum())
            for each in (self.covariance, self.of_rows)
        )
        value = min(1.0, max(0.0, float(self.shares[number, list(cells)].sum())))
        trials = self.effective
        if variance > EPSILON**2 and EPSILON < value < 1.0 - EPSILON:
            trials = value * (1.0 - value) / variance
        return wilson_interval(value, trials, self.level)

    def correlation(self, number: int, first: int, second: int) -> float:
        matrix = self.covariance[number]
        variances = float(matrix[first, first] * matrix[second, second])
        if variances <= EPSILON**4:
            return 0.0
        return max(-1.0, min(1.0, float(matrix[first, second]) / math.sqrt(variances)))


def _at(cells: _Cells, number: int, threshold: float) -> NetBenefit:
    odds = threshold / (1.0 - threshold)
    shares = [cells.share(number, cell) for cell in range(4)]
    benefit = _difference(shares[_TP], shares[_FP], 1.0, odds, cells.correlation(number, _TP, _FP))
    over_all = _difference(shares[_TN], shares[_FN], odds, 1.0, cells.correlation(number, _TN, _FN))
    flag_all = Interval(*(each * (1.0 + odds) - odds for each in cells.share(number, _TP, _FN)))
    flagged = min(1.0, shares[_TP].value + shares[_FP].value)
    return NetBenefit(threshold, flagged, benefit, flag_all, over_all)


def _difference(
    first: Interval, second: Interval, weight: float, other: float, correlation: float
) -> Interval:
    """Return weight · first − other · second, for correlated estimates, with its interval (Zou & Donner, eq. 6)."""
    value = weight * first.value - other * second.value
    down = weight * (first.value - first.low), other * (second.high - second.value)
    up = weight * (first.high - first.value), other * (second.value - second.low)
    low, high = (
        math.sqrt(max(0.0, a**2 + b**2 - 2.0 * correlation * a * b)) for a, b in (down, up)
    )
    return Interval(value, max(-other, value - low), min(weight, value + high))


def _sums_at(
    above: NDArray[np.intp], positive: NDArray[np.bool_], mass: FloatArray, n_thresholds: int
) -> FloatArray:
    found = np.empty((n_thresholds, 4))
    for of_class, hit, rest in ((positive, _TP, _FN), (~positive, _FP, _TN)):
        sums = np.bincount(above[of_class], mass[of_class], n_thresholds + 1)
        found[:, hit] = np.cumsum(sums[::-1])[::-1][1:]
        found[:, rest] = np.cumsum(sums)[:-1]
    return found


def _covariance_of_rows(shares: FloatArray, squares: FloatArray) -> FloatArray:
    """Return Σ w² (e − p)(e − p)ᵀ of independent rows, e the unit vector of a row's cell, from sums of w and w²."""
    n_thresholds = len(shares)
    found = np.zeros((n_thresholds, 4, 4))
    found[:, range(4), range(4)] = squares
    cross: FloatArray = squares[:, :, np.newaxis] * shares[:, np.newaxis, :]
    outer = shares[:, :, np.newaxis] * shares[:, np.newaxis, :]
    total: FloatArray = squares.sum(axis=1)[:, np.newaxis, np.newaxis]
    return found - cross - cross.transpose(0, 2, 1) + total * outer


def _covariance_of_units(
    flagged: NDArray[np.bool_],
    positive: NDArray[np.bool_],
    weight: FloatArray,
    unit: NDArray[np.intp],
    of_unit: FloatArray,
    shares: FloatArray,
) -> FloatArray:
    """Return Σ (m − M p)(m − M p)ᵀ over groups with weights m in the cells, M in all, and the cells' shares p."""
    cell = np.where(flagged, np.where(positive, _TP, _FP), np.where(positive, _FN, _TN))
    masses = np.bincount(unit * 4 + cell, weight, 4 * of_unit.size).reshape(-1, 4)
    apart = masses - of_unit[:, np.newaxis] * shares
    found: FloatArray = np.einsum("ui,uj->ij", apart, apart)
    return found
