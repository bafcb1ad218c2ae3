"""The fraction of listed pairs that scores put in order, with its confidence interval.

The value is θ = Σ w s / Σ w over pairs (better, worse, w), where s is 1 if the better item is scored above the worse
one, ½ if they tie, else 0. Over all pairs of a positive and a negative it is the AUC.

**Interval.** Pairs that share an item are not independent. With residuals e = s − θ and weights w that sum to 1, the
variance of θ is estimated by the products of residuals over all pairs of pairs that share an item, the *dyadic
cluster-robust* variance:

    V = Σ over items (Σ of w e over the item's pairs)² − Σ over pairs of items (Σ of w e between the two)²

where the second sum takes away what the first counts twice. Between pairs of different items this is zero by
assumption. V is no less than Σ (w e)² over pairs of items, the variance of independent pairs: two pairs with one item
in common are never correlated negatively if items are drawn alike, so a smaller V is noise. The worst case, in which
all pairs of an item vary together, has the variance θ (1 − θ) / n with

    n = 1 / (Σ over items (Σ w)² − Σ over pairs of items (Σ w)²),

the *effective number of pairs*: that of the pairs when none share an item, m n / (m + n − 1) for all pairs of m
positives and n negatives, 1 when all pairs share one item. V is multiplied by n / (n − 1). The interval is that of an
area (see `intervals`), with the greatest variance of min(e, e') trials, the effective numbers of the better and of the
worse items: as for the AUC, an item of one side cannot vary together with the whole other side.

References
----------
Fafchamps & Gubert, "The formation of risk sharing networks", Journal of Development Economics 83 (2007): the variance.
Aronow, Samii & Assenova, "Cluster-robust variance estimation for dyadic data", Political Analysis 23 (2015).
Rudin & Schapire, "Margin-based ranking and an equivalence between AdaBoost and RankBoost", JMLR 10 (2009): crucial
pairs, and misranks, which count a tie as wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.target import Pairs, check_pairs
from core.metrics.estimates import EPSILON, Interval, proportion_interval
from core.metrics.groups import FloatArray, finite_vector
from core.metrics.window import check_level


@dataclass(frozen=True)
class PairSummary:
    """How well scores order a list of pairs: fraction in order, ties and counts.

    Examples
    --------
    >>> from core.metrics import summarise_pairs
    >>> found = summarise_pairs([0.1, 0.4, 0.3], [[1, 0], [2, 0], [2, 1]])  # (better, worse)
    >>> found.pairs, found.items, round(found.misrank_fraction, 3)
    (3, 3, 0.333)
    """

    order: Interval
    """Weighted fraction of pairs in order, ties counted half."""
    misrank_fraction: float
    """Weighted fraction of discordant pairs, ties included. In [0, 1]."""
    ties: float
    """Weighted fraction of pairs with equal scores. In [0, 1]."""
    pairs: int
    """Number of pairs of weight above 0."""
    items: int
    """Number of items in them."""
    weight: float
    """Total weight."""
    effective_pairs: float
    """Effective number of independent pairs, at least 1; see the module `pairs`."""
    level: float
    """Confidence level of the interval. In (0, 1)."""


def pair_order(scores: ArrayLike, pairs: ArrayLike, pair_weight: ArrayLike | None = None) -> float:
    """Compute the weighted fraction of pairs that the scores put in order, ties counted half.

    Use it for rankers that were fitted on preferences.

    Parameters
    ----------
    scores : array_like of float, shape (n_items,)
        Finite scores; higher means better.
    pairs : array_like of int, shape (n_pairs, 2)
        Indices into `scores`, (better, worse).
    pair_weight : array_like of float, shape (n_pairs,), optional
        Finite, not negative.

    Returns
    -------
    float in [0, 1]
        The fraction. O(n_pairs).

    Raises
    ------
    InvalidData
        There are no pairs, they have another shape, one names an unknown item or the same item twice, or a score or a
        weight is out of range.

    Examples
    --------
    >>> from core.metrics import pair_order
    >>> pair_order([3.0, 1.0, 2.0], [[0, 1], [1, 2]])  # 3 > 1 is in order, 1 > 2 is not
    0.5
    """
    listed, right, tied = _outcomes(scores, pairs, pair_weight)
    return _fraction(listed, right + 0.5 * tied)


def summarise_pairs(
    scores: ArrayLike,
    pairs: ArrayLike,
    pair_weight: ArrayLike | None = None,
    level: float = 0.95,
) -> PairSummary:
    """Compute the fraction of pairs in order with its interval, the ties and the counts.

    Parameters
    ----------
    scores, pairs, pair_weight
        As for `pair_order`. For the interval only the ratios of weights matter.
    level : float in (0, 1)
        Probability that the interval covers the fraction in the population that the items were drawn from.

    Returns
    -------
    PairSummary
        The results. O(n_pairs log n_pairs).

    Notes
    -----
    At level 0.95 the interval (dyadic cluster-robust, on the logit scale) covered the true value in 93 to 99 % of
    simulated samples of 40 and 200 items: pairs without common items, five pairs per item, all pairs of an order, and
    all pairs of two classes, also with few positives.

    Examples
    --------
    >>> from core.metrics import summarise_pairs
    >>> summary = summarise_pairs([3.0, 1.0, 2.0], [[0, 1], [1, 2]])
    >>> summary.order.value, summary.pairs, summary.items
    (0.5, 2, 3)
    """
    level = check_level(level)
    listed, right, tied = _outcomes(scores, pairs, pair_weight)
    total = float(listed.weight.sum())
    weight = listed.weight / total
    value = _fraction(listed, right + 0.5 * tied)
    dyad = _number_dyads(listed)
    residual = weight * (right + 0.5 * tied - value)
    between = _squares(residual, dyad)
    variance = max(_squares_by_item(residual, listed) - between, between)
    effective = 1.0 / (_squares_by_item(weight, listed) - _squares(weight, dyad))
    shown = variance * effective / (effective - 1.0) if effective > 1.0 + EPSILON else None
    return PairSummary(
        order=proportion_interval(value, shown, _worst_case_trials(weight, listed), level),
        misrank_fraction=_fraction(listed, ~right),
        ties=_fraction(listed, tied),
        pairs=len(listed.weight),
        items=len(np.unique(np.concatenate((listed.better, listed.worse)))),
        weight=total,
        effective_pairs=effective,
        level=level,
    )


def _outcomes(
    scores: ArrayLike, pairs: ArrayLike, pair_weight: ArrayLike | None
) -> tuple[Pairs, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the pairs of weight above 0, and the masks of those in order and of those tied."""
    values = finite_vector("scores", scores)
    listed = check_pairs(pairs, pair_weight, len(values))
    better, worse = values[listed.better], values[listed.worse]
    return listed, better > worse, better == worse


def _fraction(listed: Pairs, counted: NDArray[Any]) -> float:
    return float((listed.weight * counted).sum()) / float(listed.weight.sum())


def _number_dyads(listed: Pairs) -> NDArray[Any]:
    """Return a number for the unordered item pair of each pair: (a, b) and (b, a) have the same one."""
    low = np.minimum(listed.better, listed.worse)
    high = np.maximum(listed.better, listed.worse)
    number: NDArray[Any] = np.unique(low * (high.max() + 1) + high, return_inverse=True)[1]
    return number


def _squares(terms: FloatArray, group: NDArray[Any]) -> float:
    return float((np.bincount(group, terms) ** 2).sum())


def _worst_case_trials(weight: FloatArray, listed: Pairs) -> float:
    roles = (np.bincount(role, weight) for role in (listed.better, listed.worse))
    return min(1.0 / float((sums**2).sum()) for sums in roles)


def _squares_by_item(terms: FloatArray, listed: Pairs) -> float:
    sums = np.bincount(listed.better, terms)
    worse = np.bincount(listed.worse, terms)
    both = np.zeros(max(len(sums), len(worse)))
    both[: len(sums)] += sums
    both[: len(worse)] += worse
    return float((both**2).sum())
