"""Promises: a cut whose rate in the population stays within a limit, with a stated confidence.

Let a cut flag the rows that score above the (m + 1)-th highest of n negatives. Whatever the distribution of the scores,
its FPR is above α with probability at most

    P(Bin(n, α) ≤ m),

with equality if no two scores are equal. So the largest m for which this is at most 1 − confidence gives the cut that
flags most rows and keeps the promise "FPR ≤ α". Ties make the cut flag fewer than m negatives, never more. For the
recall, the positives are asked the same question: a cut that misses at most m of n positives has a TPR below τ with
probability at most P(Bin(n, 1 − τ) ≤ m). Without errors, m = 0, that is (1 − α)ⁿ: below

    n = ⌈log(1 − confidence) / log(1 − α)⌉

rows no cut can be promised, 59 for 5 % with 95 %.

This is exact for rows that are drawn independently from the population that the promise is about, and that the ranker
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

from core.base.target import as_vector, number_units
from core.errors import InvalidParameter
from core.metrics.curve import ClassTotals, RocCurve, curve_of, totals_of
from core.metrics.groups import FloatArray, check_rows, tie_groups
from core.metrics.operating import Costs, OperatingPoint, operating_point_on_curve
from core.metrics.window import MIN_WIDTH

Rate = Literal["fpr", "tpr"]

# Weights of one class whose effective number of rows differs from their number by no more than this are equal.
EQUAL_WEIGHTS = 1e-9

CLASS_OF = {"fpr": "negatives", "tpr": "positives"}


class TooFewRows(InvalidParameter):
    """No threshold can be guaranteed: there are fewer rows than `needed`.

    Examples
    --------
    >>> from core.metrics import TooFewRows, promised_point
    >>> try:
    ...     promised_point([0, 0, 1, 1], [1, 2, 3, 4], fpr=0.1)
    ... except TooFewRows as error:
    ...     print(error.code)
    too_few_rows
    """

    code = "too_few_rows"

    def __init__(self, detail: str, *, needed: int) -> None:
        super().__init__(detail)
        self.needed = needed


class NoGuarantee(InvalidParameter):
    """No cut can be promised on such rows, however many there are."""

    code = "no_guarantee"


@dataclass(frozen=True)
class Guarantee:
    """What a cut promises of its rate in the population."""

    rate: Rate
    limit: float
    confidence: float
    rows: int
    needed: int
    errors: int
    broken: float


@dataclass(frozen=True)
class GuaranteedPoint:
    """A cut, its rates on the sample, and what it promises of the population."""

    point: OperatingPoint
    guarantee: Guarantee


@dataclass(frozen=True)
class GroupGuarantee:
    """The cut of one group of rows."""

    group: Any
    threshold: float | None
    rows: int
    needed: int
    """Least number of them with which the cut can be promised."""
    guarantee: Guarantee | None = None
    """None if the group has too few rows."""


@dataclass(frozen=True)
class GroupGuarantees:
    """Cuts that keep one promise in every group."""

    groups: tuple[GroupGuarantee, ...]
    """One per group, in ascending order of the groups."""
    threshold: float | None
    together: bool


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

    Raises
    ------
    InvalidParameter
        Not exactly one of `fpr` and `tpr` is given, or a parameter is out of range.

    Examples
    --------
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
    """Return the cut whose FPR stays at or below a limit, or whose TPR stays at or above it, with a confidence.

    Among the cuts that keep the promise it is the one with the greatest TPR (with the least FPR, if a TPR is promised).

    InvalidData: as `auc`. TooFewRows: no cut can be promised, see `needed`. NoGuarantee: the weights of the class
    differ. InvalidParameter: not exactly one of `fpr` and `tpr` is given, or a parameter is out of range. O(n log n).

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
    PromisedPoint
        The threshold, its rates on the sample, and the guarantee. O(n log n).

    Raises
    ------
    InvalidData
        Lengths differ, a value is not finite, or a class is empty or has no weight.
    TooFewRows
        There are fewer rows than a guarantee needs.
    NoPromise
        The weights of the class differ.
    InvalidParameter
        Not exactly one of `fpr` and `tpr` is given, or a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import promised_point
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, 0], [100, 400])
    >>> found = guaranteed_point(y, rng.normal(size=500) + 2 * y, fpr=0.05, confidence=0.95)
    >>> found.guarantee.errors, found.point.fpr.value, found.guarantee.needed
    (12, 0.03, 59)
    """
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
    """Return `guaranteed_point` from a stored full curve, the totals, and the numbers of positives and of negatives.

    NoGuarantee also if rows were drawn in groups: their effective number is then that of the groups. O(n_points).

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import ClassTotals, promised_point_on_curve, roc_curve
    >>> y, scores = np.repeat([1, 0], [10, 100]), np.concatenate([np.full(10, 200.0), np.arange(100.0)])
    >>> found = guaranteed_point_on_curve(roc_curve(y, scores), ClassTotals.of_counts(10, 100), (10, 100), fpr=0.05)
    >>> found.guarantee.errors, found.point.threshold
    (1, 200.0)
    """
    rate, limit = _asked(fpr, tpr)
    of_positives = rate == "tpr"
    n = rows[0] if of_positives else rows[1]
    effective = totals.positive_effective if of_positives else totals.negative_effective
    if not counts_alike(effective, n):
        raise NoGuarantee(
            f"a {rate} is promised on rows of equal weight that were drawn one by one; these {n} {CLASS_OF[rate]} "
            f"have unequal weights or groups, and count as {effective:.6g}"
        )
    guarantee = _guarantee(rate, limit, n, _check_confidence(confidence))
    fraction = guarantee.errors / n
    asked: dict[str, float] = {"tpr": 1.0 - fraction} if of_positives else {"fpr": fraction}
    point = operating_point_on_curve(
        curve, totals, **asked, costs=costs, prevalence=prevalence, level=level
    )
    return GuaranteedPoint(point, guarantee)


def counts_alike(effective: float, n_rows: int) -> bool:
    """Return True if rows of a class have equal weights and were drawn one by one, by their effective number."""
    return abs(effective - n_rows) <= EQUAL_WEIGHTS * n_rows


def guarantees_by_group(
    y: ArrayLike,
    scores: ArrayLike,
    by: ArrayLike,
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    confidence: float = 0.95,
    together: bool = True,
) -> GroupGuarantees:
    """Return a cut for each group of rows, such as regions, that keeps the promise in that group.

    InvalidData: as `auc`, or `by` is not a vector of numbers, booleans or text. InvalidParameter: as
    `guaranteed_point`. O(n log n).

    Parameters
    ----------
    y, scores
        As `guaranteed_point`; rows count alike.
    by : array_like, shape (n_samples,)
        Group of each row; no value may be missing.
    fpr, tpr, confidence
        As `guaranteed_point`.
    together : bool
        True: all guarantees hold at once with this confidence. Each of G groups then has confidence^(1/G), because
        their rows are independent. False: each group separately has the confidence.

    Returns
    -------
    GroupPromises
        The threshold of each group, and a single one for all. O(n log n).

    Raises
    ------
    InvalidData
        As for `auc`, or `by` is not a vector of numbers, booleans or text.
    InvalidParameter
        As for `promised_point`.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import promises_by_group
    >>> y = np.tile([1, 0], 100)
    >>> found = guarantees_by_group(y, np.arange(200.0) * y, np.repeat(["a", "b"], 100), fpr=0.1)
    >>> [(each.rows, each.needed) for each in found.groups], found.threshold
    ([(50, 35), (50, 35)], 5e-324)
    """
    rate, _ = _asked(fpr, tpr)
    rows = check_rows(y, {"scores": scores})
    unit, names = number_units("by", by, rows.positive.size), np.unique(as_vector("by", by))
    of_class = rows.positive if rate == "tpr" else ~rows.positive
    own = {
        name: np.sort(rows.scores[0][of_class & (unit == number)])
        for number, name in enumerate(names.tolist())
    }
    return guarantees_on_scores(own, fpr=fpr, tpr=tpr, confidence=confidence, together=together)


def guarantees_on_scores(
    groups: Mapping[Any, FloatArray],
    *,
    fpr: float | None = None,
    tpr: float | None = None,
    confidence: float = 0.95,
    together: bool = True,
) -> GroupGuarantees:
    """Return `guarantees_by_group` from the scores of each group's negatives (positives for the TPR), ascending.

    InvalidParameter: as `guaranteed_point`. O(n_groups · log n).

    Examples
    --------
    >>> found = guarantees_on_scores({"a": np.arange(40.0), "b": np.arange(20.0)}, fpr=0.1, confidence=0.9)
    >>> [each.threshold for each in found.groups], [each.needed for each in found.groups]
    ([39.00000000000001, None], [29, 29])
    """
    rate, limit = _asked(fpr, tpr)
    confidence = _check_confidence(confidence)
    if together:
        confidence = confidence ** (1.0 / max(1, len(groups)))
    needed = _needed(_error_rate(rate, limit), confidence)
    found = []
    for name, own in groups.items():
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
    """
    if guarantee.rate == "tpr":
        return float(ascending[guarantee.errors])
    return float(np.nextafter(ascending[ascending.size - 1 - guarantee.errors], np.inf))


def _guarantee(rate: Rate, limit: float, n: int, confidence: float) -> Guarantee:
    """Return the promise with the most errors; TooFewRows if there is none."""
    from scipy.special import bdtr  # which takes a tenth of a second to import

    share = _error_rate(rate, limit)
    needed = _needed(share, confidence)
    if n < needed:
        guaranteed = f"fpr at most {limit:g}" if rate == "fpr" else f"tpr at least {limit:g}"
        raise TooFewRows(
            f"{guaranteed} with confidence {confidence:g} needs {needed:,} {CLASS_OF[rate]} or more, there are {n:,}",
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
    """Return the least n with (1 − share)ⁿ ≤ 1 − confidence."""
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
        raise InvalidParameter(f"exactly one of fpr and tpr can be promised, got {got}")
    rate: Rate = "tpr" if fpr is None else "fpr"
    limit: Any = tpr if fpr is None else fpr
    number = isinstance(limit, Real) and not isinstance(limit, bool)
    if not number or not MIN_WIDTH <= limit <= 1.0 - MIN_WIDTH:
        raise InvalidParameter(
            f"{rate} must be from {MIN_WIDTH:g} to 1 - {MIN_WIDTH:g} to be promised, got {limit!r}"
        )
    return rate, float(limit)


def _check_confidence(confidence: float) -> float:
    number = isinstance(confidence, Real) and not isinstance(confidence, bool)
    if not number or not 0.0 < confidence < 1.0:
        raise InvalidParameter(f"confidence must lie strictly between 0 and 1, got {confidence!r}")
    return float(confidence)
