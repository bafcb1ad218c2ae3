"""Margins of all positive × negative pairs, read off the ROC curve: no pair is ever listed.

With f normalised by ‖λ‖₁, the margin of a pair is f(x_i) - f(x_k). A pair has a margin of at most θ
when its negative scores at least s_i - θ‖λ‖₁, and the share of such negatives is the curve's false
positive rate there. So the share of pairs within θ is the curve against itself, shifted:

    P{margin <= θ} = ∫ FPR(s - θ‖λ‖₁) dTPR(s)

At θ = 0 it is the misrank fraction.
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

MARGINS_KEPT = 65


@dataclass(frozen=True, eq=False)
class MarginDistribution:
    """How the margins of a ranker's pairs are spread, from the least to the greatest."""

    thetas: FloatArray
    """Strictly increasing, from the least margin to the greatest. Shape (n_thetas,)."""
    fractions: FloatArray
    """Weighted share of pairs with a margin of at most each theta; never falls, the last is 1. Shape (n_thetas,), in
    [0, 1]."""

    @property
    def least(self) -> float:
        """μ, the margin of the ranking: above 0 when it orders every pair rightly."""
        return float(self.thetas[0])

    @property
    def greatest(self) -> float:
        """The margin of the pair furthest apart."""
        return float(self.thetas[-1])

    def fraction_within(self, theta: float) -> float:
        """Share of pairs with a margin of at most theta; between two thetas that of the upper one.

        So it is exact at the thetas, and never too small between them: a bound stays a bound.
        """
        if theta < self.least:
            return 0.0
        above = int(np.searchsorted(self.thetas, theta))
        return float(self.fractions[min(above, self.thetas.size - 1)])


def margin_distribution(
    curve: RocCurve, l1_norm: float, n_thetas: int = MARGINS_KEPT
) -> MarginDistribution:
    """Spread of the margins of all positive × negative pairs.

    InvalidParameter, if l1_norm is not finite and above 0, or n_thetas is below 2. O(n_points · n_thetas) after the
    sort that made the curve. Margins are differences of scores already divided by ‖λ‖₁, compared as float64.

    Parameters
    ----------
    curve : RocCurve
        The full curve of the scores, a point per distinct score.
    l1_norm : float
        ‖λ‖₁, by which scores are divided; above 0.
    n_thetas : int
        Number of margins to keep, evenly spaced; 0 is kept besides when it lies between them.

    References
    ----------
    Rudin & Schapire, "Margin-based ranking and an equivalence between AdaBoost and RankBoost",
    Journal of Machine Learning Research 10 (2009), §2 and §3.
    """
    _check_norm(l1_norm)
    # Counted from the lowest score, so that an intercept far from 0 cannot overflow.
    scores = (curve.thresholds[1:] - curve.thresholds[-1]) / l1_norm
    rises, steps = np.diff(curve.tpr), np.diff(curve.fpr) > 0
    positive, negative = scores[rises > 0], scores[steps]
    thetas = _spaced(positive[-1] - negative[0], positive[0] - negative[-1], n_thetas)
    fractions = np.empty(thetas.size)
    fpr = np.append(0.0, curve.fpr[1:][steps])
    _count_within(positive, rises[rises > 0], negative, fpr, thetas, fractions)
    np.minimum(fractions, 1.0, out=fractions)
    fractions[-1] = 1.0  # what the additions lose to rounding
    return MarginDistribution(thetas, fractions)


def listed_margin_distribution(
    margins: ArrayLike, weight: ArrayLike | None = None, n_thetas: int = MARGINS_KEPT
) -> MarginDistribution:
    """Spread of the margins of a list of pairs; see `margin_distribution`. O(n_pairs log n_pairs).

    `margins`, shape (n_pairs,), are finite and at least one; weights are above 0.

    InvalidData, if there are no pairs, or a margin is not finite. InvalidParameter, if n_thetas is below 2.
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
    """ln F̃ of a list of pairs, the least weight scaled to 1; see `log_pair_loss`.

    `differences`, shape (n_pairs,), are scores of the better less scores of the worse, not divided by ‖λ‖₁; weights are
    above 0.
    """
    exponents = -np.asarray(differences, dtype=np.float64)
    if weight is not None:
        weights = np.asarray(weight, dtype=np.float64)
        exponents += np.log(weights / weights.min())
    return _log_sum(exponents)


def log_pair_loss(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """ln F̃, with F̃ = Σ w_i w_k e^{-(s_i - s_k)} over all pairs, the least pair weight scaled to 1.

    InvalidData: as `auc`. O(n log n). F̃ is a sum, not a mean: with weights of at least 1 every pair's term is below
    it, and that is what keeps the smooth margin below the margin (eq. 6). Returns float, finite, however far the scores
    have gone.

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
    """G̃ = -ln F̃/‖λ‖₁, of `log_pair_loss`: a smooth margin, below the margin μ and nearer to it the greater ‖λ‖₁ is.

    Rudin & Schapire (2009), §4.2, eq. 6. InvalidParameter, if l1_norm is not finite and above 0.
    """
    _check_norm(l1_norm)
    return -log_loss / l1_norm


def most_tied_mass(edge: ArrayLike) -> FloatArray:
    """Bound of Theorem 7 on d0, the mass of the pairs that a weak ranker ties: ⅔(1 - r)(1 - r²).

    `edge` is r = d+ - d- of each round, shape (n_rounds,); d0 must be below the bound. Rudin & Schapire (2009).
    """
    r = np.asarray(edge, dtype=np.float64)
    return np.asarray(2 / 3 * (1 - r) * (1 - r**2))


def _spaced(least: float, greatest: float, n_thetas: int) -> FloatArray:
    """Evenly from the least margin to the greatest, and 0 where it lies between them."""
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
    """Share of pairs within each theta.

    Scores fall. A positive score holds the share `rises` of the positives; fpr[k] is the share of
    the negatives at the k greatest negative scores.
    """
    n = np.uint64(len(negative))
    for t in range(len(thetas)):
        theta = thetas[t]
        total = 0.0
        within = np.uint64(0)  # how many of the negative scores are near enough to the positive's
        for i in range(len(positive)):
            score = positive[i]
            while within < n and score - negative[within] <= theta:
                within += np.uint64(1)
            total += rises[i] * fpr[within]
        fractions[t] = total
