"""How many of a list of pairs the scores put in order, and how surely.

The value is θ = Σ w s / Σ w over pairs (better, worse, w), where s is 1 if the better item is scored above the worse
one, ½ if they tie, else 0. Over all pairs of a positive and a negative it is the AUC.

**Interval.** Pairs that share an item are not independent. With residuals e = s − θ and shares w of the whole weight,
the variance of θ is estimated by the products of residuals over all pairs of pairs that share an item, the *dyadic
cluster-robust* variance:

    V = Σ over items (Σ of w e over the item's pairs)² − Σ over pairs of items (Σ of w e between the two)²

where the second sum takes away what the first counts twice. Between pairs of different items this is zero by
assumption. V is no less than Σ (w e)² over pairs of items, the variance of independent pairs: two pairs with one item
in common are never correlated negatively when items are drawn alike, so a smaller V is noise. The least favourable
case, all pairs of an item rising and falling together, has the variance θ (1 − θ) / n with

    n = 1 / (Σ over items (Σ w)² − Σ over pairs of items (Σ w)²),

the *effective number of pairs*: that of the pairs when none share an item, m n / (m + n − 1) for all pairs of m
positives and n negatives, 1 when all pairs share one item. V is multiplied by n / (n − 1), and the interval is
symmetric on the logit scale. Where the sample cannot show its variance, because θ is 0 or 1, no residual differs from
0, or n is 1, the interval is Wilson's for θ and n.

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
from core.metrics.groups import FloatArray, finite_vector
from core.metrics.intervals import EPSILON, Interval, share_interval
from core.metrics.window import check_level


@dataclass(frozen=True)
class PairSummary:
    """What a ranking does to a list of pairs."""

    order: Interval
    """Weighted share of pairs in order, ties counted half."""
    misrank_fraction: float
    """Weighted share of pairs not in order, ties counted whole. In [0, 1]."""
    ties: float
    """Weighted share of pairs with equal scores. In [0, 1]."""
    pairs: int
    """Pairs of weight above 0."""
    items: int
    """Items that occur in them."""
    weight: float
    """Total weight."""
    effective_pairs: float
    """The number n above."""
    level: float
    """Level of the interval. In (0, 1)."""


def pair_order(scores: ArrayLike, pairs: ArrayLike, pair_weight: ArrayLike | None = None) -> float:
    """The weighted share of pairs that the scores put in order, ties counted half.

    InvalidData, if the pairs are empty or not of that shape, one names no item or the same item twice, or a score or a
    weight is out of its range. O(n_pairs).

    Parameters
    ----------
    scores : array_like of float, shape (n_items,)
        Finite; higher means better.
    pairs : array_like of int, shape (n_pairs, 2)
        Indices into `scores`, (better, worse).
    pair_weight : array_like of float, shape (n_pairs,), optional
        Finite, not negative.

    Returns
    -------
    float in [0, 1]
    """
    listed, right, tied = _outcomes(scores, pairs, pair_weight)
    return _share(listed, right + 0.5 * tied)


def pair_misrank_fraction(
    scores: ArrayLike, pairs: ArrayLike, pair_weight: ArrayLike | None = None
) -> float:
    """The weighted share of pairs that the scores do not put in order, ties counted whole, in [0, 1].

    Parameters and errors as `pair_order`.
    """
    listed, right, _ = _outcomes(scores, pairs, pair_weight)
    return _share(listed, ~right)


def pair_order_interval(
    scores: ArrayLike,
    pairs: ArrayLike,
    pair_weight: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """`pair_order` with a dyadic cluster-robust interval on the logit scale.

    InvalidData: as `pair_order`. InvalidParameter, if `level` is not strictly between 0 and 1. O(n_pairs log n_pairs).
    At level 0.95 it covered 93 to 99 % of simulated samples of 40 and 200 items: pairs that share nothing, five pairs
    an item, all pairs of an order, and all of two classes, few positives too.

    Parameters
    ----------
    scores, pairs, pair_weight
        As `pair_order`. For the interval weights are shares, not counts: doubling all of them changes nothing.
    level : float in (0, 1)
        Probability that the interval covers the share in the population that the items were drawn from.

    Returns
    -------
    Interval
        0 ≤ low ≤ value ≤ high ≤ 1.
    """
    return summarise_pairs(scores, pairs, pair_weight, level).order


def summarise_pairs(
    scores: ArrayLike,
    pairs: ArrayLike,
    pair_weight: ArrayLike | None = None,
    level: float = 0.95,
) -> PairSummary:
    """Share in order with its interval, misranks, ties and counts, at once.

    Parameters and errors as `pair_order_interval`.
    """
    level = check_level(level)
    listed, right, tied = _outcomes(scores, pairs, pair_weight)
    total = float(listed.weight.sum())
    share = listed.weight / total
    value = _share(listed, right + 0.5 * tied)
    dyad = _number_dyads(listed)
    residual = share * (right + 0.5 * tied - value)
    between = _squares(residual, dyad)
    variance = max(_squares_by_item(residual, listed) - between, between)
    effective = 1.0 / (_squares_by_item(share, listed) - _squares(share, dyad))
    shown = variance * effective / (effective - 1.0) if effective > 1.0 + EPSILON else None
    return PairSummary(
        order=share_interval(value, shown, effective, level),
        misrank_fraction=_share(listed, ~right),
        ties=_share(listed, tied),
        pairs=len(listed.weight),
        items=len(np.unique(np.concatenate((listed.better, listed.worse)))),
        weight=total,
        effective_pairs=effective,
        level=level,
    )


def _outcomes(
    scores: ArrayLike, pairs: ArrayLike, pair_weight: ArrayLike | None
) -> tuple[Pairs, NDArray[np.bool_], NDArray[np.bool_]]:
    """The pairs of weight above 0, which of them are in order, and which tie."""
    values = finite_vector("scores", scores)
    listed = check_pairs(pairs, pair_weight, len(values))
    better, worse = values[listed.better], values[listed.worse]
    return listed, better > worse, better == worse


def _share(listed: Pairs, held: NDArray[Any]) -> float:
    """Of the weight of all pairs, that of those that hold, in [0, 1]: 1 if all do, for both sums are of one order."""
    return float((listed.weight * held).sum()) / float(listed.weight.sum())


def _number_dyads(listed: Pairs) -> NDArray[Any]:
    """Number the unordered pairs of items: a pair that comes again, or the other way round, is the same."""
    low = np.minimum(listed.better, listed.worse)
    high = np.maximum(listed.better, listed.worse)
    number: NDArray[Any] = np.unique(low * (high.max() + 1) + high, return_inverse=True)[1]
    return number


def _squares(terms: FloatArray, group: NDArray[Any]) -> float:
    return float((np.bincount(group, terms) ** 2).sum())


def _squares_by_item(terms: FloatArray, listed: Pairs) -> float:
    sums = np.bincount(listed.better, terms)
    worse = np.bincount(listed.worse, terms)
    both = np.zeros(max(len(sums), len(worse)))
    both[: len(sums)] += sums
    both[: len(worse)] += worse
    return float((both**2).sum())
