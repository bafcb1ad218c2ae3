"""Guarantees: thresholds whose FPR or TPR in the population stays within a limit, with a given confidence.

Let a threshold flag the rows that score above the (m + 1)-th highest of n negatives. Whatever the distribution of the
scores, its FPR is above α with probability at most

    P(Bin(n, α) ≤ m),

with equality if no two scores are equal. So the largest m for which this is at most 1 − confidence gives the threshold
that flags most rows and keeps the guarantee "FPR ≤ α". Ties make the threshold flag fewer than m negatives, never more.
For the recall, the positives are asked the same question: a threshold that misses at most m of n positives has a TPR
below τ with probability at most P(Bin(n, 1 − τ) ≤ m). Without errors, m = 0, that is (1 − α)ⁿ: below

    n = ⌈log(1 − confidence) / log(1 − α)⌉

rows no threshold can be guaranteed, 59 for 5 % with 95 %.

This is exact for rows that are drawn independently from the population that the guarantee is about, and that the ranker
has not learnt from. An effective number of rows has no order statistics, so rows of unequal weight are refused.

References
----------
Tong, Feng & Li, "Neyman-Pearson classification algorithms and NP receiver operating characteristics", Science Advances
4 (2018), proposition 1.
Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical Statistics 12 (1941): n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from core.base.parameters import check_items, check_value
from core.errors import InvalidParameter
from core.metrics.curve import ClassTotals, RocCurve, curve_of, totals_of
from core.metrics.groups import FloatArray, check_rows, finite_vector, tie_groups
from core.metrics.operating import Costs, OperatingPoint, operating_point_on_curve
from core.metrics.window import MIN_WIDTH

Rate = Literal["fpr", "tpr"]

# Weights of one class whose effective number of rows differs from their number by no more than this are equal.
EQUAL_WEIGHTS = 1e-9

CLASS_OF = {"fpr": "negatives", "tpr": "positives"}


class TooFewRows(InvalidParameter):
    """Raised if no threshold can be guaranteed because there are fewer rows than `needed`.

    Examples
    --------
    >>> from core.metrics import TooFewRows, guaranteed_point
    >>> try:
    ...     guaranteed_point([0, 0, 1, 1], [1, 2, 3, 4], fpr=0.1)
    ... except TooFewRows as error:
    ...     print(error.code)
    too_few_rows
    """

    code = "too_few_rows"

    def __init__(self, detail: str, *, needed: int) -> None:
        super().__init__(detail)
        self.needed = needed


class NoGuarantee(InvalidParameter):
    """Raised if no threshold can be guaranteed on such rows, however many there are.

    Examples
    --------
    >>> from core.metrics import NoGuarantee, guaranteed_point
    >>> y, scores = [0] * 40 + [1] * 10, range(50)
    >>> try:
    ...     guaranteed_point(y, scores, fpr=0.1, sample_weight=[1, 2] * 25)
    ... except NoGuarantee as error:
    ...     print(error.code)
    no_guarantee
    """

    code = "no_guarantee"


@dataclass(frozen=True)
class Guarantee:
    """What a threshold guarantees about its rate in the population.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import guaranteed_point
    >>> found = guaranteed_point(np.arange(200) >= 150, np.arange(200.0), fpr=0.05).guarantee
    >>> found.rows, found.needed, found.errors
    (150, 59, 2)
    """

    rate: Rate
    """The FPR is at most `limit`, or the TPR at least `limit`."""
    limit: float
    """The limit of the rate."""
    confidence: float
    """Minimum probability, over samples such as this one, that the guarantee holds."""
    rows: int
    """Number of negatives (of positives for the TPR) that the guarantee is based on."""
    needed: int
    """Minimum number of them for any guarantee."""
    errors: int
    """The threshold flags at most this many of the negatives, or misses at most this many of the positives."""
    broken: float
    """Maximum probability that the guarantee does not hold; at most 1 − confidence."""


@dataclass(frozen=True)
class GuaranteedPoint:
    """A threshold, its rates on the sample, and what it guarantees about the population.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import guaranteed_point
    >>> found = guaranteed_point(np.arange(200) >= 150, np.arange(200.0), fpr=0.05)
    >>> found.point.threshold
    150.0
    """

    point: OperatingPoint
    """The threshold and its rates on the sample."""
    guarantee: Guarantee
    """The guarantee."""


@dataclass(frozen=True)
class GroupGuarantee:
    """The guaranteed threshold of one group of rows.

    Examples
    --------
    >>> from core.metrics import guarantees_on_scores
    >>> found = guarantees_on_scores({"a": range(100), "b": range(10)}, fpr=0.1).groups[1]
    >>> found.group, found.rows, found.threshold
    ('b', 10, None)
    """

    group: Any
    """Value of the group."""
    threshold: float | None
    """Rows of the group with score ≥ threshold are flagged; +inf flags none. None if the group has too few rows."""
    rows: int
    """Negatives (positives for the TPR) in the group."""
    needed: int
    """Minimum number of them for a guarantee."""
    guarantee: Guarantee | None = None
    """The guarantee; None if the group has too few rows."""


@dataclass(frozen=True)
class GroupGuarantees:
    """Thresholds that give the same guarantee in every group.

    Examples
    --------
    >>> from core.metrics import guarantees_on_scores
    >>> found = guarantees_on_scores({"a": range(100), "b": range(200)}, fpr=0.1)
    >>> round(found.threshold)
    188
    """

    groups: tuple[GroupGuarantee, ...]
    """One per group, in ascending order of the groups."""
    threshold: float | None
    """The single threshold that keeps the guarantee in every group. None if a group has too few rows."""
    together: bool
    """True if `confidence` is that of all guarantees at once, False if it is that of each one."""


def rows_to_guarantee(
    *, fpr: float | None = None, tpr: float | None = None, confidence: float = 0.95
) -> int:
    """Return the minimum number of rows that can guarantee a rate.

    Parameters
    ----------
    fpr, tpr : float in [1e-9, 1 - 1e-9]
        The limit of one of the two.
    confidence : float in (0, 1)
        Minimum probability that the guarantee holds.

    Returns
    -------
    int
        Number of negatives for an FPR, of positives for a TPR.

    Examples
    --------
    >>> from core.metrics import rows_to_guarantee
    >>> rows_to_guarantee(fpr=0.05), rows_to_guarantee(tpr=0.9, confidence=0.99)
    (59, 44)
    """
    rate, limit = _asked(fpr, tpr)
    return _needed(_error_rate(rate, limit), _check_confidence(confidence))


def guaranteed_point(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    confidence: float = 0.95,
    costs: Costs | None = None,
    prevalence: float | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> GuaranteedPoint:
    """Find the best threshold whose FPR or TPR in the population keeps a limit with a given confidence.

    Use it for rates that must hold on future rows. `operating_point` only looks at the sample. Among the thresholds
    that keep the guarantee it is the one with the greatest TPR (with the lowest FPR, if a TPR is guaranteed).

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Labels: two distinct values, of which the greater is positive.
    scores : array_like of float, shape (n_samples,)
        Finite scores of held-out rows that were drawn independently; higher means more likely positive.
    fpr, tpr : float in [1e-9, 1 - 1e-9]
        The limit of one of the two.
    confidence : float in (0, 1)
        Minimum probability that the guarantee holds in the population.
    costs, prevalence, level
        As for `operating_point`, for the rates of the threshold on the sample.
    sample_weight : array_like of float, shape (n_samples,), optional
        Equal within the class that the guarantee is about; any weights in the other class.

    Returns
    -------
    GuaranteedPoint
        The threshold, its rates on the sample, and the guarantee. O(n log n).

    Raises
    ------
    TooFewRows
        There are fewer rows than a guarantee needs.
    NoGuarantee
        The weights of the class differ.
    InvalidParameter
        Not exactly one of `fpr` and `tpr` is given, or a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import guaranteed_point
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, 0], [100, 400])
    >>> found = guaranteed_point(y, rng.normal(size=500) + 2 * y, fpr=0.05, confidence=0.95)
    >>> found.guarantee.errors, found.point.fpr.value, found.guarantee.needed
    (12, 0.03, 59)
    """
    check_value("costs", Costs | None, costs)
    rows = check_rows(y, {"scores": scores}, sample_weight)
    groups = tie_groups(rows)
    return guaranteed_point_on_curve(
        curve_of(groups),
        totals_of(rows, groups),
        (len(groups.positives), len(groups.negatives)),
        fpr=fpr,
        tpr=tpr,
        confidence=confidence,
        costs=costs,
        prevalence=prevalence,
        level=level,
    )


def guaranteed_point_on_curve(
    curve: RocCurve,
    totals: ClassTotals,
    rows: tuple[int, int],
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    confidence: float = 0.95,
    costs: Costs | None = None,
    prevalence: float | None = None,
    level: float = 0.95,
) -> GuaranteedPoint:
    """Find a `guaranteed_point` on a stored full curve.

    Parameters
    ----------
    curve, totals
        The full ROC curve and the weights of its classes, as from `summarise`.
    rows : (int, int)
        Numbers of positives and of negatives.
    fpr, tpr, confidence, costs, prevalence, level
        As for `guaranteed_point`.

    Returns
    -------
    GuaranteedPoint
        The threshold, its rates on the sample, and the guarantee. O(n_points).

    Raises
    ------
    NoGuarantee
        The weights of the class differ, or rows were drawn in groups, which their effective number shows.
    TooFewRows, InvalidParameter
        As for `guaranteed_point`.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import ClassTotals, guaranteed_point_on_curve, roc_curve
    >>> y, scores = np.repeat([1, 0], [10, 100]), np.concatenate([np.full(10, 200.0), np.arange(100.0)])
    >>> found = guaranteed_point_on_curve(roc_curve(y, scores), ClassTotals.of_counts(10, 100), (10, 100), fpr=0.05)
    >>> found.guarantee.errors, found.point.threshold
    (1, 200.0)
    """
    check_value("curve", RocCurve, curve)
    check_value("totals", ClassTotals, totals)
    check_value("costs", Costs | None, costs)
    if len(check_items("rows", rows, int)) != 2:
        raise InvalidParameter(f"rows must be the numbers of positives and negatives, got {rows}")
    rate, limit = _asked(fpr, tpr)
    of_positives = rate == "tpr"
    n = rows[0] if of_positives else rows[1]
    effective = totals.positive_effective if of_positives else totals.negative_effective
    if not counts_alike(effective, n):
        raise NoGuarantee(
            f"a guarantee of the {rate} requires independent rows of equal weight; these {n} "
            f"{CLASS_OF[rate]} have unequal weights or groups, with an effective number of {effective:.6g}"
        )
    guarantee = _guarantee(rate, limit, n, _check_confidence(confidence))
    fraction = guarantee.errors / n
    asked: dict[str, float] = {"tpr": 1.0 - fraction} if of_positives else {"fpr": fraction}
    point = operating_point_on_curve(
        curve, totals, **asked, costs=costs, prevalence=prevalence, level=level
    )
    return GuaranteedPoint(point, guarantee)


def counts_alike(effective: float, n_rows: int) -> bool:
    """Return True if a class's rows are independent and equally weighted: effective number equals row count."""
    return abs(effective - n_rows) <= EQUAL_WEIGHTS * n_rows


def guarantees_on_scores(
    groups: Mapping[Any, ArrayLike],
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    confidence: float = 0.95,
    together: bool = True,
) -> GroupGuarantees:
    """Find a threshold for each group of rows, such as regions, that keeps the guarantee in that group.

    Parameters
    ----------
    groups : mapping of group to array-like of float
        Scores of each group's negatives (positives for the TPR), in any order. They are of held-out rows that were
        drawn independently, with equal weights.
    fpr, tpr, confidence
        As for `guaranteed_point`.
    together : bool
        True: all guarantees hold at once with this confidence. Each of G groups then has confidence^(1/G), because
        their rows are independent. False: each group separately has the confidence.

    Returns
    -------
    GroupGuarantees
        The threshold of each group, and a single one for all. O(n), O(n log n) if scores are not ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import guarantees_on_scores
    >>> found = guarantees_on_scores({"a": np.arange(40.0), "b": np.arange(20.0)}, fpr=0.1, confidence=0.9)
    >>> [each.threshold for each in found.groups], [each.needed for each in found.groups]
    ([39.00000000000001, None], [29, 29])
    """
    check_value("together", bool, together)
    check_value("groups", Mapping, groups)
    rate, limit = _asked(fpr, tpr)
    confidence = _check_confidence(confidence)
    if together:
        confidence = confidence ** (1.0 / max(1, len(groups)))
    needed = _needed(_error_rate(rate, limit), confidence)
    found = []
    for name, given in groups.items():
        # A group may have no row of the class.
        own = (
            finite_vector(f"the scores of group {name!r}", given) if np.size(given) else np.empty(0)
        )
        if (own[1:] < own[:-1]).any():
            own = np.sort(own)
        threshold = guarantee = None
        if own.size >= needed:
            guarantee = _guarantee(rate, limit, own.size, confidence)
            threshold = _threshold(own, guarantee)
        found.append(GroupGuarantee(name, threshold, own.size, needed, guarantee))
    cutoffs = [each.threshold for each in found if each.threshold is not None]
    single = None
    if len(cutoffs) == len(found):
        single = min(cutoffs) if rate == "tpr" else max(cutoffs)
    return GroupGuarantees(tuple(found), single, together)


def _threshold(ascending: FloatArray, guarantee: Guarantee) -> float:
    """Return the lowest threshold that flags at most `errors` negatives, or the highest that misses at most as many
    positives.

    The ascending scores are of that class.
    """
    if guarantee.rate == "tpr":
        return float(ascending[guarantee.errors])
    return float(np.nextafter(ascending[ascending.size - 1 - guarantee.errors], np.inf))


def _guarantee(rate: Rate, limit: float, n: int, confidence: float) -> Guarantee:
    from scipy.special import bdtr  # which takes a tenth of a second to import

    share = _error_rate(rate, limit)
    needed = _needed(share, confidence)
    if n < needed:
        guaranteed = f"fpr at most {limit:g}" if rate == "fpr" else f"tpr at least {limit:g}"
        raise TooFewRows(
            f"{guaranteed} with confidence {confidence:g} requires {needed:,} {CLASS_OF[rate]}, "
            f"got {n:,}",
            needed=needed,
        )
    most = _risk(confidence)
    kept, broken = 0, n
    while broken - kept > 1:
        middle = (kept + broken) // 2
        if bdtr(float(middle), n, share) <= most:
            kept = middle
        else:
            broken = middle
    return Guarantee(
        rate, limit, confidence, n, needed, kept, min(1.0, float(bdtr(kept, n, share)))
    )


def _needed(share: float, confidence: float) -> int:
    """Return the smallest number of rows n with (1 − share)ⁿ ≤ 1 − confidence."""
    n = max(1, math.ceil(math.log(_risk(confidence)) / math.log1p(-share)))
    # rounding may have gone one too far
    return n - 1 if n > 1 and (n - 1) * math.log1p(-share) <= math.log(_risk(confidence)) else n


def _risk(confidence: float) -> float:
    # 1 - .95 is a little more than .05
    return (1.0 - confidence) * (1.0 + 1e-12)


def _error_rate(rate: Rate, limit: float) -> float:
    return limit if rate == "fpr" else 1.0 - limit


def _asked(fpr: float | None, tpr: float | None) -> tuple[Rate, float]:
    if (fpr is None) == (tpr is None):
        got = "none" if fpr is None else "both"
        raise InvalidParameter(f"exactly one of fpr and tpr can be guaranteed, got {got}")
    rate: Rate = "tpr" if fpr is None else "fpr"
    limit: Any = tpr if fpr is None else fpr
    number = isinstance(limit, Real) and not isinstance(limit, bool)
    if not number or not MIN_WIDTH <= limit <= 1.0 - MIN_WIDTH:
        raise InvalidParameter(
            f"{rate} must be from {MIN_WIDTH:g} to 1 - {MIN_WIDTH:g} for a guarantee, got {limit!r}"
        )
    return rate, float(limit)


def _check_confidence(confidence: float) -> float:
    number = isinstance(confidence, Real) and not isinstance(confidence, bool)
    if not number or not 0.0 < confidence < 1.0:
        raise InvalidParameter(f"confidence must be strictly between 0 and 1, got {confidence!r}")
    return float(confidence)
