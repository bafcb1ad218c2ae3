"""Logistic regression by Newton's method, and log odds.

References
----------
Levenberg, "A method for the solution of certain non-linear problems in least squares", Quarterly of Applied Mathematics
2 (1944).
Marquardt, "An algorithm for least-squares estimation of nonlinear parameters", SIAM Journal on Applied Mathematics 11
(1963).
"""

from __future__ import annotations

import math

import numba
import numpy as np

from core.kernels import kernel
from core.metrics.groups import FloatArray

_MAX_STEPS = 200  # those that were refused included
_MIN_DAMPING = 1e-6
_TOLERANCE = 1e-10  # of the gradient per row


def sigmoid(odds: FloatArray) -> FloatArray:
    """Return the probabilities of log-odds, never exactly 0 or 1."""
    p: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(odds, -36.0, 36.0)))
    return p


def log_odds(probability: FloatArray) -> FloatArray:
    """Return the log-odds of probabilities, limited to ±36."""
    with np.errstate(divide="ignore"):
        odds = np.log(probability) - np.log1p(-probability)
    clipped: FloatArray = np.clip(odds, -36.0, 36.0)
    return clipped


def minimise_log_loss(
    features: FloatArray,
    mass: FloatArray,
    target: FloatArray,
    offset: FloatArray | None = None,
    start: FloatArray | None = None,
) -> tuple[float, FloatArray, FloatArray]:
    """Return the log loss, coefficients (intercept last) and covariance matrix of a fitted logistic model.

    By Newton's method, damped where a step would not lower the loss (Levenberg & Marquardt): the loss never ends above
    that of the start. If the classes do not overlap there is no least loss: it then ends at large
    coefficients.

    features: (n_features, n).
    mass, target: (n,); mass of the rows, and the mass of them that counts as positive.
    offset: (n,); added to the log odds.
    start: (n_features + 1,); coefficients to start from, instead of the intercept alone.
    """
    n = features.shape[0] + 1
    fixed = np.zeros(mass.size) if offset is None else offset
    total = float(mass.sum())
    theta = np.zeros(n) if start is None else start.copy()
    if start is None:
        theta[-1] = math.log(float(target.sum()) / float((mass - target).sum()))
    gradient, hessian = np.empty(n), np.empty((n, n))
    greatest = np.zeros((n, n))
    loss = _log_loss(features, fixed, mass, target, theta, gradient, hessian)
    next_gradient, next_hessian = np.empty(n), np.empty((n, n))
    damping = 0.0
    for _ in range(_MAX_STEPS):
        if np.max(np.abs(gradient)) <= _TOLERANCE * total:
            break
        step = np.linalg.solve(_regular(hessian + damping * greatest), gradient)
        expected = float(gradient @ step)
        moved = theta - step
        new = _log_loss(features, fixed, mass, target, moved, next_gradient, next_hessian)
        if expected > 0.0 and new <= loss - 1e-4 * expected:
            fall = loss - new
            theta, loss = moved, new
            gradient, next_gradient = next_gradient, gradient
            hessian, next_hessian = next_hessian, hessian
            damping = damping / 10.0 if damping > _MIN_DAMPING else 0.0
            if fall <= 1e-15 * abs(loss):
                break
        elif damping >= 1.0:  # such a step lowers any loss, but for rounding
            break
        else:
            if damping == 0.0:  # the second derivatives are nowhere greater than at log odds of 0
                _log_loss(
                    features,
                    np.zeros(mass.size),
                    mass,
                    target,
                    np.zeros(n),
                    next_gradient,
                    greatest,
                )
            damping = max(10.0 * damping, _MIN_DAMPING)
    return float(loss), theta, np.linalg.inv(_regular(hessian)).astype(np.float64)


def _regular(hessian: FloatArray) -> FloatArray:
    """Return a Hessian with a small ridge added, so that it is invertible."""
    diagonal = np.diag(hessian)
    ridge: FloatArray = np.diag(1e-12 * diagonal + 1e-12 * max(float(diagonal.max()), 1e-12))
    return hessian + ridge


@kernel(
    numba.float64(
        numba.float64[:, ::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[:, ::1],
    )
)
def _log_loss(features, offset, mass, target, theta, gradient, hessian):  # type: ignore[no-untyped-def]
    """Return the log loss of a logistic model, and write its gradient and Hessian.

    features: (n_features, n); theta: coefficients, the intercept last.
    """
    k = features.shape[0]
    loss = 0.0
    gradient[:] = 0.0
    hessian[:, :] = 0.0
    for i in range(len(mass)):
        odds = theta[k] + offset[i]
        for j in range(k):
            odds += theta[j] * features[j, i]
        part = math.exp(-abs(odds))
        p = 1.0 / (1.0 + part) if odds >= 0.0 else part / (1.0 + part)
        loss += mass[i] * (max(odds, 0.0) + math.log1p(part)) - target[i] * odds
        error, curvature = mass[i] * p - target[i], mass[i] * part / (1.0 + part) ** 2
        for j in range(k):
            gradient[j] += error * features[j, i]
            for m in range(j + 1):
                hessian[j, m] += curvature * features[j, i] * features[m, i]
            hessian[k, j] += curvature * features[j, i]
        gradient[k] += error
        hessian[k, k] += curvature
    for j in range(k + 1):
        for m in range(j):
            hessian[m, j] = hessian[j, m]
    return loss
