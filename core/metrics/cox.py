"""Cox's calibration line: level, slope and differences of probabilities, with variances that hold for any sample.

The *level* is the intercept a of log odds(y) = a + log odds(p), the *slope* the b of log odds(y) = a + b log odds(p),
and the *contrast* of some rows with the others the d of log odds(y) = a + log odds(p) + d x, where x is 1 in these rows
and 0 elsewhere. Each is the first coefficient of a logistic regression with weights.

**Variance.** A row's influence on a coefficient is w (y − p̂) h, where h is the row's regressors times the coefficient's
row of the inverse information. The variance is the sum of squares of the influences by unit (Huber's sandwich, by
cluster), so it holds if a class is weighted or sampled, if rows of a unit are correlated, and if the line is wrong. If
the probabilities separate the classes, it is at least the model's own, Σ w² p̂ (1 − p̂) h², because the residuals of rows
that are all right say nothing of the first wrong one.

**Under H₀** the same coefficient has the information of the probabilities of the null model: with the level 0, the
slope 1 or the contrast 0. Its other coefficients are fitted, so that a shift which all rows have in common does not
count as evidence about a slope or a contrast.

References
----------
Cox, "Two further applications of a model for binary regression", Biometrika 45 (1958).
Huber, "The behavior of maximum likelihood estimates under nonstandard conditions", Berkeley Symposium 5 (1967).
Rogers, "Regression standard errors in clustered samples", Stata Technical Bulletin 13 (1993).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from core.metrics.estimates import Interval, quantile
from core.metrics.groups import EvaluatedRows, FloatArray, effective_units, inner, sum_by_unit
from core.metrics.logistic import minimise_log_loss, sigmoid


class Coefficient(NamedTuple):
    """The estimate of a coefficient, in log odds."""

    value: float
    variance: float
    """Sandwich variance, by unit."""
    null_variance: float
    """The same, for tests: at least what it would be under H₀. Otherwise a value that is high by chance would also look
    precise."""
    influence: FloatArray
    """Of each unit, or of each row if there are no units."""
    intercept: float
    """The intercept of the same model; of a level its value."""
    degrees: float
    """Degrees of freedom of the variance."""

    def interval(self, level: float) -> Interval:
        half = quantile(level, self.degrees) * math.sqrt(self.variance)
        return Interval(self.value, self.value - half, self.value + half)


def level_of(rows: EvaluatedRows, odds: FloatArray) -> Coefficient:
    """Return the level of log odds, (n,), on rows of both classes."""
    return _first_coefficient(rows, np.empty((0, odds.size)), odds, 0.0)


def slope_of(rows: EvaluatedRows, odds: FloatArray) -> Coefficient | None:
    """Return the slope of log odds, (n,), on rows of both classes; None if they are all equal, or separate the classes:
    the greatest likelihood then has an infinite slope.
    """
    if np.ptp(odds) == 0.0 or separates(rows, odds) or separates(rows, -odds):
        return None
    return _first_coefficient(rows, odds[np.newaxis], np.zeros(odds.size), 1.0)


def separates(rows: EvaluatedRows, odds: FloatArray) -> bool:
    """Return True if all positives have greater values than all negatives."""
    return bool(odds[rows.positive].min() > odds[~rows.positive].max())


def contrast_of(rows: EvaluatedRows, odds: FloatArray, of: FloatArray) -> Coefficient:
    """Return the difference of the level between the rows where `of`, (n,), is 1 and those where it is 0."""
    return _first_coefficient(rows, of[np.newaxis], odds, 0.0)


def _first_coefficient(
    rows: EvaluatedRows, features: FloatArray, offset: FloatArray, expected: float
) -> Coefficient:
    weight = np.ones(offset.size) if rows.weight is None else rows.weight / rows.weight.mean()
    target = weight * rows.positive
    start = np.zeros(len(features) + 1)
    start[:1] = expected  # near the estimate: the probabilities are about right
    _, theta, inverse = minimise_log_loss(features, weight, target, offset, start)
    p = sigmoid(offset + np.einsum("i,in->n", theta[:-1], features) + theta[-1])
    gradient = np.einsum("i,in->n", inverse[0, :-1], features) + inverse[0, -1]
    influence = sum_by_unit(weight * (rows.positive - p) * gradient, rows.unit)
    degrees = max(min(effective_units(rows)) - 1.0, 1.0)
    squares = inner(influence, influence)
    if separates(rows, offset):
        squares = max(squares, inner((weight * gradient) ** 2, p * (1.0 - p)))
    variance = squares * (degrees + 1.0) / degrees
    null = offset.copy()
    if len(features):
        null += expected * features[0]
        null += minimise_log_loss(features[1:], weight, target, null, np.zeros(1))[1][-1]
    own, by_null = (_variance_by_model(features, weight, each) for each in (p, sigmoid(null)))
    null_variance = variance * max(1.0, by_null / own) if own > 0.0 else variance
    value, intercept = float(theta[0]), float(theta[-1])
    return Coefficient(value, variance, null_variance, influence, intercept, degrees)


def _variance_by_model(features: FloatArray, weight: FloatArray, p: FloatArray) -> float:
    """Return the variance of the first coefficient by the model, for probabilities p."""
    design = np.vstack([features, np.ones(p.size)])
    matrix = np.einsum("in,n,jn->ij", design, weight * p * (1.0 - p), design)
    return float(np.linalg.pinv(matrix, hermitian=True)[0, 0])
