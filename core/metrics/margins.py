"""Margins of all (positive, negative) pairs of a ranking, computed from the ROC curve without listing the pairs.

With f normalised by ‖λ‖₁, the margin of a pair is f(x_i) - f(x_k). It is at most θ if the negative scores at least
s_i - θ‖λ‖₁; the fraction of such negatives is the curve's false positive rate there. So

    P{margin <= θ} = ∫ FPR(s - θ‖λ‖₁) dTPR(s)

At θ = 0 it is the fraction of discordant pairs, `misrank_fraction`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numba
import numpy as np
from numpy.typing import ArrayLike

from core.base.parameters import check_value
from core.errors import InvalidData, InvalidParameter
from core.kernels import kernel
from core.metrics.curve import RocCurve
from core.metrics.groups import FloatArray, ScoreGroups, inner, spans

DEFAULT_THETAS = 65


@dataclass(frozen=True, eq=False)
class MarginDistribution:
    """The distribution of the margins of a ranker's pairs.

    Examples
    --------
    >>> from core.metrics import margin_distribution, roc_curve
    >>> margins = margin_distribution(roc_curve([1, 0, 1, 0], [0.9, 0.4, 0.5, 0.1]), l1_norm=1.0)
    >>> round(margins.least, 3), margins.fraction_within(0.0), margins.fraction_within(0.8)
    (0.1, 0.0, 1.0)
    """

    thetas: FloatArray
    """Strictly increasing, from the least margin to the greatest. Shape (n_thetas,)."""
    fractions: FloatArray
    """Weighted fraction of pairs with a margin of at most each theta; non-decreasing, the last is 1. Shape
    (n_thetas,)."""

    @property
    def least(self) -> float:
        """The margin μ of the ranking, the minimum over pairs; above 0 if all pairs are in order."""
        return float(self.thetas[0])

    @property
    def greatest(self) -> float:
        """The maximum margin of a pair."""
        return float(self.thetas[-1])

    def fraction_within(self, theta: float) -> float:
        """Return the fraction of pairs with a margin of at most theta.

        It is exact at the `thetas`. Between two of them it is that of the upper one, so it is never too small and a
        bound stays a bound.

        Parameters
        ----------
        theta : float
            The margin.

        Returns
        -------
        float in [0, 1]
        """
        if theta < self.least:
            return 0.0
        above = int(np.searchsorted(self.thetas, theta))
        return float(self.fractions[min(above, self.thetas.size - 1)])


def margin_distribution(
    curve: RocCurve, l1_norm: float, n_thetas: int = DEFAULT_THETAS
) -> MarginDistribution:
    """Compute the distribution of the margins of all pairs of a positive and a negative.

    Margins are differences of scores already divided by ‖λ‖₁, compared as float64.

    Parameters
    ----------
    curve : RocCurve
        The full curve of the scores, a point per distinct score.
    l1_norm : float
        ‖λ‖₁, by which scores are divided; above 0.
    n_thetas : int
        Number of thetas, evenly spaced; 0 is added if it lies between them.

    Returns
    -------
    MarginDistribution
        The distribution. O(n_points · n_thetas).

    References
    ----------
    Rudin & Schapire, "Margin-based ranking and an equivalence between AdaBoost and RankBoost",
    Journal of Machine Learning Research 10 (2009), §2 and §3.

    Examples
    --------
    >>> from core.metrics import margin_distribution, roc_curve
    >>> margins = margin_distribution(roc_curve([1, 0, 1, 0], [0.9, 0.4, 0.5, 0.1]), l1_norm=1.0, n_thetas=3)
    >>> margins.thetas.round(2), margins.fractions
    (array([0.1 , 0.45, 0.8 ]), array([0.25, 0.5 , 1.  ]))
    """
    check_value("curve", RocCurve, curve)
    return _margin_distribution(
        curve.thresholds[1:].copy(), curve.tpr, curve.fpr, l1_norm, n_thetas
    )


def margin_distribution_of(groups: ScoreGroups, l1_norm: float) -> MarginDistribution:
    scores = groups.empty()
    for start, stop in spans(0, len(groups)):
        scores[start:stop] = groups.scores_at(slice(start, stop))
    positive, negative = groups.flagged_positive, groups.flagged_negative
    return _margin_distribution(scores, positive, negative, l1_norm, DEFAULT_THETAS)


def _margin_distribution(
    scores: FloatArray,
    positive: FloatArray,
    negative: FloatArray,
    l1_norm: float,
    n_thetas: int,
) -> MarginDistribution:
    """Return the distribution of margins, given descending scores and each class's weight above them (first 0).

    `scores` are changed.
    """
    _check_norm(l1_norm)
    # Measured from the lowest score, so that an intercept far from 0 cannot overflow.
    lowest = float(scores[-1])
    for start, stop in spans(0, scores.size):
        some = scores[start:stop]
        some -= lowest
        some /= l1_norm
    (first_p, last_p), (first_n, last_n) = _ends_of(positive), _ends_of(negative)
    thetas = _spaced(scores[last_p] - scores[first_n], scores[first_p] - scores[last_n], n_thetas)
    fractions = np.empty(thetas.size)
    _count_within(scores, positive, negative, thetas, fractions)
    np.minimum(fractions, 1.0, out=fractions)
    fractions[-1] = 1.0  # the sum may be rounded below 1
    return MarginDistribution(thetas, fractions)


def _ends_of(above: FloatArray) -> tuple[int, int]:
    first = int(np.searchsorted(above, above[0], side="right")) - 1
    return first, int(np.searchsorted(above, above[-1], side="left")) - 1


def listed_margin_distribution(
    margins: ArrayLike, weight: ArrayLike | None = None, n_thetas: int = DEFAULT_THETAS
) -> MarginDistribution:
    """Return the distribution of the margins of a list of pairs; see `margin_distribution`. O(n_pairs log n_pairs).

    InvalidData: there are no pairs, or a margin is not finite. InvalidParameter: n_thetas is below 2.

    margins: (n_pairs,).
    """
    values = np.asarray(margins, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise InvalidData("margins must be finite and not empty")
    weights = np.ones(values.size) if weight is None else np.asarray(weight, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    ordered, mass = values[order], np.cumsum(weights[order])
    thetas = _spaced(ordered[0], ordered[-1], n_thetas)
    within = np.searchsorted(ordered, thetas, side="right")
    return MarginDistribution(thetas, mass[within - 1] / mass[-1])


def log_listed_loss(differences: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return the log pairwise loss ln F̃ of listed pairs; weights are scaled so that the minimum is 1.

    differences: (n_pairs,); score of the better item minus score of the worse one, not divided by ‖λ‖₁.
    """
    exponents = -np.asarray(differences, dtype=np.float64)
    if weight is not None:
        weights = np.asarray(weight, dtype=np.float64)
        exponents += np.log(weights / weights.min())
    return log_sum(exponents)


def log_pair_loss(groups: ScoreGroups) -> float:
    """Return the log pairwise loss ln F̃, F̃ = Σ w_i w_k e^{-(s_i - s_k)}; the minimum pair weight is scaled to 1.

    Scores are not divided by ‖λ‖₁. F̃ is a sum, not a mean: with weights of at least 1 every pair's term is below it,
    which keeps the smooth margin below the margin (eq. 6). The result is finite for all finite scores.
    """
    greatest = [-math.inf, -math.inf]
    for block in groups.blocks():  # not by running sums, which a light row need not change
        for k, (direction, mass) in enumerate(((-1.0, block.positive), (1.0, block.negative))):
            own = direction * block.scores[mass > 0.0]
            greatest[k] = max(greatest[k], float(own.max(initial=-math.inf)))
    sums = [0.0, 0.0]
    for block in groups.blocks():
        for k, (direction, mass) in enumerate(((-1.0, block.positive), (1.0, block.negative))):
            with np.errstate(over="ignore"):  # to 0, of scores that are far apart
                exponents = np.where(mass > 0.0, direction * block.scores - greatest[k], 0.0)
            sums[k] += inner(mass, np.exp(exponents))
    return sum(
        most + math.log(total) - math.log(least)
        for most, total, least in zip(greatest, sums, groups.min_weights, strict=True)
    )


def smooth_margin(log_loss: float, l1_norm: float) -> float:
    """Return the smooth margin G̃ = -ln F̃/‖λ‖₁, which is below the margin μ and tends to it as ‖λ‖₁ grows.

    `log_loss` is ln F̃, as `log_pair_loss` returns it. InvalidParameter: l1_norm is not finite and above 0. Rudin &
    Schapire (2009), §4.2, eq. 6.
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
    check_value("n_thetas", int, n_thetas)
    if n_thetas < 2:
        raise InvalidParameter(f"n_thetas must be at least 2, got {n_thetas}")
    thetas = np.linspace(least, greatest, n_thetas)
    thetas[0], thetas[-1] = least, greatest
    if least < 0.0 < greatest:
        thetas = np.append(thetas, 0.0)
    return np.unique(thetas)


def log_sum(exponents: FloatArray) -> float:
    """Return ln Σ e^x, without overflow."""
    greatest = float(exponents.max())
    return greatest + math.log(float(np.exp(exponents - greatest).sum()))


def _check_norm(l1_norm: float) -> None:
    check_value("l1_norm", Real, l1_norm)
    if not (math.isfinite(l1_norm) and l1_norm > 0):
        raise InvalidParameter(f"l1_norm must be finite and above 0, got {l1_norm}")


_READ = numba.types.Array(numba.float64, 1, "C", readonly=True)


@kernel(numba.void(_READ, _READ, _READ, _READ, numba.float64[::1]))
def _count_within(scores, positive, negative, thetas, fractions):  # type: ignore[no-untyped-def]
    """Write the fraction of pairs with a margin of at most each theta.

    Scores are distinct and falling; positive, negative: (n + 1,), mass of each class at the k highest of them.
    """
    n = np.uint64(len(scores))
    all_positive, all_negative = positive[-1], negative[-1]
    for t in range(len(thetas)):
        theta = thetas[t]
        total = 0.0
        within = np.uint64(0)  # number of scores within theta of the positive's
        for i in range(len(scores)):
            if positive[i + 1] == positive[i]:
                continue
            score = scores[i]
            while within < n and score - scores[within] <= theta:
                within += np.uint64(1)
            rise = positive[i + 1] / all_positive - positive[i] / all_positive
            total += rise * (negative[within] / all_negative)
        fractions[t] = total
