"""The level of calibrated probabilities over time: whether it changes, and its forecast for the next period.

Rows come in periods, the earliest first. The *level* of a period is the constant a_k that the log odds of a calibration
lack there. If all levels are equal, the best estimate of the next one is their mean. If they move, it is an average in
which recent periods count more. Both follow from a local level model,

    estimate a_k = level_k + N(0, s_k²),    level_k = level_{k − 1} + N(0, τ²),

with τ² by restricted maximum likelihood. τ² = 0 gives all periods their full weight; the greater it is, the more the
forecast depends on the last one. A steady trend is followed one period late, not extrapolated.

**Test.** The directions of the score test are the indicators of the periods but one, without their regression on 1 and
the log odds; and beside it their linear trend alone, which has more power against a steady movement. The p-value is
twice the smaller of both.

**Adjustment.** Under a change of the level alone, the odds at every score are multiplied by the same factor, so a
positive of period k counts exp(f − a_k) times for the forecast level f: rows of all periods then give the shape of a
calibration, and its level is the forecast (as for another prevalence, see `calibration`).

References
----------
Durbin & Koopman, *Time Series Analysis by State Space Methods* (2012), chapter 2: the local level model.
Patterson & Thompson, "Recovery of inter-block information when block sizes are unequal", Biometrika 58 (1971): REML.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidData
from core.metrics.cox import level_of
from core.metrics.estimates import Interval, normal_quantile
from core.metrics.groups import EvaluatedRows, FloatArray, inner
from core.metrics.logistic import log_odds, sigmoid
from core.probability.score_test import (
    cells_of,
    odds_cells,
    score_test,
    without_line,
)

_LEVEL = 0.95  # of each interval
MAX_PERIODS = 100
"""Periods of one calibration: time grows at least with their square, and they share the cells of the test."""

_MAX_CELLS = 1 << 14  # periods times distinct probabilities
_STEPS = 60  # values of τ² that are compared


class Periods(NamedTuple):
    """Levels of a calibration by period, and the forecast for the next period.

    Examples
    --------
    >>> import numpy as np
    >>> from core.probability import choose_calibration
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=900)
    >>> found = choose_calibration(scores > rng.normal(size=900), scores, period=np.repeat([1, 2, 3], 300)).periods
    >>> len(found.levels), found.p_value > 0.05
    (3, True)
    """

    levels: list[Interval]
    """For each period, earliest first: the constant that the log-odds lack."""
    forecast: float
    """Expected level of the next period."""
    step: float
    """τ, the standard deviation of the change of the level between periods. 0: the level does not move."""
    p_value: float
    """For H₀: all levels are equal."""


def number_periods(period: FloatArray) -> NDArray[np.intp]:
    """Return each row's period number, from 0 for the earliest, shape (n,), intp.

    InvalidData: there are more than `MAX_PERIODS` periods.
    """
    periods, number = np.unique(period, return_inverse=True)
    if periods.size > MAX_PERIODS:
        raise InvalidData(
            f"period must have at most {MAX_PERIODS} distinct values, got {periods.size}: replace "
            "timestamps by the day, week or month"
        )
    return number


def levels_of(rows: EvaluatedRows, odds: FloatArray, period: NDArray[np.intp]) -> Periods | None:
    """Return the levels of periods and their forecast; None with fewer than two periods, or too few rows or groups.

    odds: (n,); log odds by a calibration that was fitted on all of the rows.
    period: (n,), intp; the period of each row, as `number_periods` returns it.
    """
    n_periods = int(period.max()) + 1
    if n_periods < 2:
        return None
    p_value = _test(rows, odds, period, n_periods)
    if p_value is None:
        return None
    estimates, variances = _estimates(rows, odds, period, n_periods)
    forecast, step = _forecast(estimates, variances)
    halves = normal_quantile(_LEVEL) * np.sqrt(variances)
    levels = [
        Interval(float(value), float(value - half), float(value + half))
        for value, half in zip(estimates, halves, strict=True)
    ]
    return Periods(levels, forecast, step, p_value)


def _test(
    rows: EvaluatedRows, odds: FloatArray, period: NDArray[np.intp], n_periods: int
) -> float | None:
    """Return the p-value of H₀: all periods have the same level (score test); None if it cannot be tested."""
    cell, of_cells = odds_cells(odds, rows.weight, _MAX_CELLS // n_periods)
    cells = cells_of(rows, sigmoid(odds), period * of_cells.size + cell, n_periods * of_cells.size)
    of_cells, number = np.tile(of_cells, n_periods), np.repeat(np.arange(n_periods), of_cells.size)
    indicators = (number[:, np.newaxis] == np.arange(1, n_periods)).astype(np.float64)
    trend = number[:, np.newaxis].astype(np.float64)
    tests = [
        score_test(cells, without_line(basis, of_cells, cells.information))
        for basis in ((indicators, trend) if n_periods > 2 else (trend,))
    ]
    p_values = [test.p_value for test in tests if test is not None]
    return min(1.0, len(tests) * min(p_values)) if len(p_values) == len(tests) else None


def _estimates(
    rows: EvaluatedRows, odds: FloatArray, period: NDArray[np.intp], n_periods: int
) -> tuple[FloatArray, FloatArray]:
    """Estimate each period's level and variance; an added row with the calibration's probability keeps them finite."""
    weight = np.ones(odds.size) if rows.weight is None else rows.weight / rows.weight.mean()
    found = []
    for number in range(n_periods):
        at = np.flatnonzero(period == number)
        own, of_own = rows.take(at), weight[at]
        prior = inner(of_own, sigmoid(odds[at])) / of_own.sum()
        parts = EvaluatedRows(
            np.append(own.positive, [True, False]),
            (),
            np.append(of_own, [prior, 1.0 - prior]),
            None if own.unit is None else np.append(own.unit, np.repeat(own.unit.max() + 1, 2)),
        )
        found.append(level_of(parts, np.append(odds[at], log_odds(np.full(2, prior)))))
    variances = np.array([each.null_variance for each in found])
    return np.array([each.value for each in found]), np.maximum(variances, 1e-12)


def _forecast(estimates: FloatArray, variances: FloatArray) -> tuple[float, float]:
    """Return the forecast of the next level and τ, the standard deviation of its steps, by REML."""
    n = estimates.size
    walk = np.minimum.outer(np.arange(n), np.arange(n)).astype(np.float64)
    least, most = (
        math.log(variances.mean() / 100.0),
        math.log(variances.mean() + np.ptp(estimates) ** 2),
    )
    best = (-math.inf, 0.0, 0.0)
    for tau2 in (0.0, *np.exp(np.linspace(least, most, _STEPS)).tolist()):
        covariance = np.diag(variances) + tau2 * walk
        inverse = np.linalg.inv(covariance)
        of_mean = float(inverse.sum())
        mean = float(inverse.sum(axis=0) @ estimates) / of_mean
        residual = estimates - mean
        weighted = inverse @ residual
        likelihood = -0.5 * (
            float(np.linalg.slogdet(covariance)[1]) + math.log(of_mean) + float(residual @ weighted)
        )
        if likelihood > best[0]:
            best = likelihood, mean + tau2 * float(walk[-1] @ weighted), math.sqrt(tau2)
    return best[1], best[2]


def at_forecast(rows: EvaluatedRows, period: NDArray[np.intp], levels: FloatArray) -> EvaluatedRows:
    """Return the rows reweighted as if every period had the forecast level; `levels` are relative to it."""
    weight = np.ones(rows.positive.size) if rows.weight is None else rows.weight
    return rows._replace(weight=np.where(rows.positive, weight * np.exp(-levels)[period], weight))
