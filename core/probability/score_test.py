"""Rao's score test of whether probabilities are wrong in given directions.

With probabilities p that are right under H₀, weights w and a basis b of k functions of a row, the scores are
U_j = Σ w (y − p) b_j. Their covariance is V_jk = Σ w² p (1 − p) b_j b_k, which holds for any weights, and U' V⁻¹ U
has a χ² distribution. Nothing is fitted, so the test does not fail where a maximum likelihood estimate would not exist.

Rows of a unit may be correlated. Then V is the covariance of the sums by unit, and Hotelling's T² replaces χ².

References
----------
Rao, "Large sample tests of statistical hypotheses concerning several parameters", Mathematical Proceedings of the
Cambridge Philosophical Society 44 (1948).
Rogers, "Regression standard errors in clustered samples", Stata Technical Bulletin 13 (1993).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.metrics.groups import EvaluatedRows, FloatArray, inner, sum_by_unit

MIN_UNITS = 30.0
"""Effective number of units below which their covariance is too uncertain for a test."""
_RANK = 1e-9  # of the information: directions with less are linear combinations of others
_LEAST = 1e-300


class ScoreTest(NamedTuple):
    """The result of a score test: statistic, degrees of freedom and p-value."""

    statistic: float
    """The value of a χ² distribution that is as rare as the test's."""
    p_value: float
    """Of H₀: the probabilities are right in all directions of the basis. In [0, 1]."""
    degrees: int
    """Degrees of freedom: the rank of the basis."""
    information: float
    """Σ p (1 − p) of as many independent rows of equal weight as these are worth."""


class Cells(NamedTuple):
    """Rows grouped by about equal log-odds, with sums of residuals and variances per cell."""

    residual: FloatArray
    """Σ w (y − p) of each cell, shape (n_cells,), float64."""
    information: FloatArray
    """Σ w p (1 − p)."""
    variance: FloatArray
    """Σ w² p (1 − p): of the residual, if p is right."""
    of_row: FloatArray
    """w (y − p) of each row, shape (n,), float64."""
    cell: NDArray[np.intp]
    """The cell of each row, shape (n,), intp."""
    unit: NDArray[np.intp] | None
    """The unit of each row, shape (n,), intp; None if rows are independent."""

    @property
    def total(self) -> float:
        """The total information Σ p (1 − p), in effective rows: (Σ w p (1 − p))² / Σ w² p (1 − p)."""
        return float(self.information.sum()) ** 2 / max(float(self.variance.sum()), _LEAST)


def cells_of(
    rows: EvaluatedRows, probability: FloatArray, cell: NDArray[np.intp], n_cells: int
) -> Cells:
    """Return the rows grouped into cells, with weights scaled to a mean of 1.

    `probability` is of each row, shape (n,), float64.
    """

    def sums_of(values: FloatArray) -> FloatArray:
        return np.bincount(cell, values, n_cells).astype(np.float64, copy=False)

    weight = np.ones(probability.size) if rows.weight is None else rows.weight / rows.weight.mean()
    of_row = weight * (rows.positive - probability)
    information = weight * probability * (1.0 - probability)
    alone = rows.unit is None or int(rows.unit.max()) + 1 == rows.unit.size
    return Cells(
        sums_of(of_row),
        sums_of(information),
        sums_of(weight * information),
        of_row,
        cell,
        None if alone else rows.unit,
    )


def odds_cells(
    odds: FloatArray, weight: FloatArray | None, max_cells: int
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return each row's cell of about equal log-odds, and the log-odds of the cells, ascending. O(n log n).

    A cell has one value; of more than `max_cells` values it has neighbours, of about equal mass together.
    """
    distinct, cell = np.unique(odds, return_inverse=True)
    if distinct.size <= max_cells:
        return cell, distinct
    mass = np.bincount(cell, weight)
    sums = np.cumsum(mass)
    part = np.minimum((sums - mass / 2.0) / sums[-1] * max_cells, max_cells - 1).astype(np.intp)
    _, part = np.unique(part, return_inverse=True)
    of_parts = np.bincount(part, mass)
    return part[cell], np.bincount(part, mass * distinct) / of_parts


def score_test(cells: Cells, basis: FloatArray) -> ScoreTest | None:
    """Return the score test in the directions of a basis, (n_cells, k); None if no direction can be tested.

    With units, the information is divided by the design effect: the mean ratio of the variance of the scores to what it
    would be if rows were independent.
    """
    from scipy.special import chdtrc

    covariance = np.einsum("i,ij,ik->jk", cells.variance, basis, basis)
    scores = np.einsum("i,ij->j", cells.residual, basis)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _RANK * max(float(cells.variance.sum()), _LEAST)
    degrees = int(np.count_nonzero(kept))
    if degrees == 0:
        return None
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    scores = scores @ whiten
    if cells.unit is not None:
        return _of_units(cells, cells.unit, basis, scores, whiten)
    statistic = float(scores @ scores)
    return ScoreTest(statistic, float(chdtrc(degrees, statistic)), degrees, cells.total)


def _of_units(
    cells: Cells, unit: NDArray[np.intp], basis: FloatArray, scores: FloatArray, whiten: FloatArray
) -> ScoreTest | None:
    """Return the score test if rows of a group may be correlated (Hotelling's T²)."""
    from scipy.special import chdtri, fdtrc

    sums = np.stack(
        [np.bincount(unit, cells.of_row * column[cells.cell]) for column in basis.T], axis=1
    )
    covariance = whiten.T @ np.einsum("ij,ik->jk", sums, sums) @ whiten
    degrees = scores.size
    mean = cells.information / np.maximum(np.bincount(cells.cell, minlength=basis.shape[0]), 1)
    mass = sum_by_unit(mean[cells.cell], unit)
    n_units = float(mass.sum()) ** 2 / max(inner(mass, mass), _LEAST)
    if n_units < MIN_UNITS:
        return None
    raw = float(scores @ np.linalg.pinv(covariance, hermitian=True) @ scores)
    below = n_units - degrees
    p_value = float(fdtrc(degrees, below, raw * below / (degrees * (n_units - 1.0))))
    statistic = float(chdtri(degrees, max(p_value, _LEAST))) if p_value < 1.0 else 0.0
    design_effect = float(np.trace(covariance)) / degrees
    return ScoreTest(statistic, p_value, degrees, cells.total / max(design_effect, 1.0))


def without_line(basis: FloatArray, odds: FloatArray, information: FloatArray) -> FloatArray:
    """Return basis functions, (n_cells, k), minus their regression on a constant and the log-odds.

    The scores then do not change, to first order, with an intercept and a slope that were fitted on the same rows.
    """
    total = max(float(information.sum()), _LEAST)
    centred = odds - inner(information, odds) / total
    spread = inner(information, np.square(centred))
    remainder: FloatArray = basis - np.einsum("i,ij->j", information, basis) / total
    if spread > 1e-12 * total:
        slope = np.einsum("i,ij->j", information * centred, basis) / spread
        remainder = remainder - centred[:, np.newaxis] * slope
    return remainder


def size_of(test: ScoreTest, level: float) -> tuple[float, float, float]:
    """Return the root mean square error of the log-odds in the tested directions, with its interval.

    With errors δ the statistic is about a noncentral χ² with noncentrality I mean(δ²), for the information I. So what
    it would be by chance is taken off the value, and the interval is that of the noncentrality.
    """
    from scipy.special import chdtrc, chndtrinc

    tail = (1.0 - level) / 2.0
    above = float(chdtrc(test.degrees, test.statistic))
    low, high = (
        float(chndtrinc(test.statistic, test.degrees, side)) if above < 1.0 - side else 0.0
        for side in (1.0 - tail, tail)
    )
    value = max(0.0, test.statistic - test.degrees)
    ends = (value, min(low, value), max(high, value))
    value, low, high = (math.sqrt(each / test.information) for each in ends)
    return value, low, high
