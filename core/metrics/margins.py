"""Margins of all pairs of a positive and a negative, computed from the ROC curve without listing the pairs.

With f normalised by ‖λ‖₁, the margin of a pair is f(x_i) - f(x_k). It is at most θ if the negative scores at least
s_i - θ‖λ‖₁; the fraction of such negatives is the curve's false positive rate there. So

    P{margin <= θ} = ∫ FPR(s - θ‖λ‖₁) dTPR(s)

At θ = 0 it is the fraction of discordant pairs, `misrank_fraction`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidData, InvalidParameter
from core.kernels import kernel
from core.metrics.curve import RocCurve
from core.metrics.groups import FloatArray, group_by_score

DEFAULT_THETAS = 65


@dataclass(frozen=True, eq=False)
class MarginDistribution:
    """The distribution of the margins of a ranker's pairs."""

    thetas: FloatArray
    """Strictly increasing, from the least margin to the greatest. Shape (n_thetas,)."""
    fractions: FloatArray
    """Weighted fraction of pairs with a margin of at most each theta; non-decreasing, the last is 1. Shape
    (n_thetas,), in [0, 1]."""

    @property
    def least(self) -> float:
        """μ, the margin of the ranking: above 0 if all pairs are in order."""
        return float(self.thetas[0])

    @property
    def greatest(self) -> float:
        """The largest margin of a pair."""
        return float(self.thetas[-1])

    def fraction_within(self, theta: float) -> float:
        """Return the fraction of pairs with a margin of at most theta; between two thetas, that of the upper one.

        It is exact at the thetas and never too small between them, so that a bound stays a bound.
        """
        if theta < self.least:
            return 0.0
        above = int(np.searchsorted(self.thetas, theta))
        return float(self.fractions[min(above, self.thetas.size - 1)])


def margin_distribution(
    curve: RocCurve, l1_norm: float, n_thetas: int = DEFAULT_THETAS
) -> MarginDistribution:
    """Return the distribution of the margins of all pairs of a positive and a negative.

    InvalidParameter: l1_norm is not finite and above 0, or n_thetas is below 2. O(n_points · n_thetas). Margins are
    differences of scores already divided by ‖λ‖₁, compared as float64.

    Parameters
    ----------
    curve : RocCurve
        The full curve of the scores, a point per distinct score.
    l1_norm : float
        ‖λ‖₁, by which scores are divided; above 0.
    n_thetas : int
        Number of thetas, evenly spaced; 0 is added if it lies between them.

    References
    ----------
    Rudin & Schapire, "Margin-based ranking and an equivalence between AdaBoost and RankBoost",
    Journal of Machine Learning Research 10 (2009), §2 and §3.

    Examples
    --------
    >>> from core.metrics import roc_curve
    >>> margins = margin_distribution(roc_curve([1, 0, 1, 0], [0.9, 0.4, 0.5, 0.1]), l1_norm=1.0, n_thetas=3)
    >>> margins.thetas.round(2), margins.fractions
    (array([0.1 , 0.45, 0.8 ]), array([0.25, 0.5 , 1.  ]))
    """
    _check_norm(l1_norm)
    # Measured from the lowest score, so that an intercept far from 0 cannot overflow.
    scores = (curve.thresholds[1:] - curve.thresholds[-1]) / l1_norm
    rises, steps = np.diff(curve.tpr), np.diff(curve.fpr) > 0
    positive, negative = scores[rises > 0], scores[steps]
    thetas = _spaced(positive[-1] - negative[0], positive[0] - negative[-1], n_thetas)
    fractions = np.empty(thetas.size)
    fpr = np.append(0.0, curve.fpr[1:][steps])
    _count_within(positive, rises[rises > 0], negative, fpr, thetas, fractions)
    np.minimum(fractions, 1.0, out=fractions)
    fractions[-1] = 1.0  # the sum may be rounded below 1
    return MarginDistribution(thetas, fractions)


def listed_margin_distribution(
    margins: ArrayLike, weight: ArrayLike | None = None, n_thetas: int = DEFAULT_THETAS
) -> MarginDistribution:
    """Return the distribution of the margins of a list of pairs; see `margin_distribution`. O(n_pairs log n_pairs).

    InvalidData: there are no pairs, or a margin is not finite. InvalidParameter: n_thetas is below 2.

    Parameters
    ----------
    margins : array_like of float, shape (n_pairs,)
    weight : array_like of float, shape (n_pairs,), optional
        Above 0.
    """
    values = np.asarray(margins, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise InvalidData("margins must be finite, and at least one")
    weights = np.ones(values.size) if weight is None else np.asarray(weight, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    ordered, mass = values[order], np.cumsum(weights[order])
    thetas = _spaced(ordered[0], ordered[-1], n_thetas)
    within = np.searchsorted(ordered, thetas, side="right")
    return MarginDistribution(thetas, mass[within - 1] / mass[-1])


def log_listed_loss(differences: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return ln F̃ of a list of pairs, the least weight scaled to 1; see `log_pair_loss`.

    Parameters
    ----------
    differences : array_like of float, shape (n_pairs,)
        Score of the better item minus score of the worse one, not divided by ‖λ‖₁.
    weight : array_like of float, shape (n_pairs,), optional
        Above 0.
    """
    exponents = -np.asarray(differences, dtype=np.float64)
    if weight is not None:
        weights = np.asarray(weight, dtype=np.float64)
        exponents += np.log(weights / weights.min())
    return _log_sum(exponents)


def log_pair_loss(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return ln F̃, with F̃ = Σ w_i w_k e^{-(s_i - s_k)} over all pairs, the least pair weight scaled to 1.

    InvalidData: as `auc`. O(n log n). F̃ is a sum, not a mean: with weights of at least 1 every pair's term is below
    it, which keeps the smooth margin below the margin (eq. 6). The result is finite for all finite scores.

    Parameters
    ----------
    y, scores, sample_weight
        As `auc`; scores are not divided by ‖λ‖₁.
    """
    groups = group_by_score(y, scores, sample_weight)
    log_f = 0.0
    for rows, direction in ((groups.positives, -1.0), (groups.negatives, 1.0)):
        exponents = direction * groups.scores[rows.group]
        if rows.weight is not None:
            exponents += np.log(rows.weight / rows.weight.min())
        log_f += _log_sum(exponents)
    return log_f


def smooth_margin(log_loss: float, l1_norm: float) -> float:
    """Return the smooth margin G̃ = -ln F̃/‖λ‖₁, which is below the margin μ and tends to it as ‖λ‖₁ grows.

    `log_loss` is ln F̃, as `log_pair_loss` returns it. InvalidParameter: l1_norm is not finite and above 0. Rudin &
    Schapire (2009), §4.2, eq. 6.

    Examples
    --------
    >>> round(smooth_margin(log_pair_loss([1, 0], [3.0, 1.0]), l1_norm=4.0), 3)
    0.5
    """
    _check_norm(l1_norm)
    return -log_loss / l1_norm


def max_tied_mass(edge: ArrayLike) -> FloatArray:
    """Return Theorem 7's upper bound of d0, the weight of the pairs that a weak ranker ties: ⅔(1 - r)(1 - r²).

    `edge` is r = d+ - d- of each round, shape (n_rounds,). Rudin & Schapire (2009).
    """
    r = np.asarray(edge, dtype=np.float64)
    return np.asarray(2 / 3 * (1 - r) * (1 - r**2))


def _spaced(least: float, greatest: float, n_thetas: int) -> FloatArray:
    """Return evenly spaced thetas from the least margin to the greatest, and 0 if it lies between them."""
    if n_thetas < 2:
        raise InvalidParameter(f"n_thetas must be at least 2, got {n_thetas}")
    thetas = np.linspace(least, greatest, n_thetas)
    thetas[0], thetas[-1] = least, greatest
    if least < 0.0 < greatest:
        thetas = np.append(thetas, 0.0)
    return np.unique(thetas)


def _log_sum(exponents: FloatArray) -> float:
    greatest = float(exponents.max())
    return greatest + math.log(float(np.exp(exponents - greatest).sum()))


def _check_norm(l1_norm: float) -> None:
    if not (math.isfinite(l1_norm) and l1_norm > 0):
        raise InvalidParameter(f"l1_norm must be finite and above 0, got {l1_norm}")


@kernel(numba.void(*[numba.float64[::1]] * 6))
def _count_within(positive, rises, negative, fpr, thetas, fractions):  # type: ignore[no-untyped-def]
    """Write the fraction of pairs with a margin of at most each theta.

    Parameters
    ----------
    positive, rises : ndarray of shape (m,), float64
        Distinct scores of positives, falling, and the fraction of the positives at each.
    negative : ndarray of shape (n,), float64
        Distinct scores of negatives, falling.
    fpr : ndarray of shape (n + 1,), float64
        fpr[k] is the fraction of the negatives at the k highest of these scores.
    thetas, fractions : ndarray of shape (n_thetas,), float64
        `fractions` is written.
    """
    n = np.uint64(len(negative))
    for t in range(len(thetas)):
        theta = thetas[t]
        total = 0.0
        within = np.uint64(0)  # number of negative scores within theta of the positive's
        for i in range(len(positive)):
            score = positive[i]
            while within < n and score - negative[within] <= theta:
                within += np.uint64(1)
            total += rises[i] * fpr[within]
        fractions[t] = total
