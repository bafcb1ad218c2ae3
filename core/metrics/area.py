"""Areas under the ROC curve, from scores: AUC, misranked pairs, and the two partial AUCs."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidParameter
from core.metrics.curve import RocCurve, curve_of, mcclish
from core.metrics.groups import FloatArray, ScoreGroups, group_by_score, inner
from core.metrics.window import check_rate, check_window, window_counts

Definition = Literal["interpolated", "empirical"]
DEFINITIONS = ("interpolated", "empirical")

# Doubles count by ones up to here.
_WHOLE = 2.0**53


def auc(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Area under the ROC curve: the share of positive–negative pairs in order, ties counted half.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    scores : array_like of float, shape (n_samples,)
        Finite; higher means more likely positive.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative; a weight k counts as k rows.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty or without weight.

    Notes
    -----
    O(n log n). Without weights the count of pairs is exact while 2 · positives · negatives < 2**53.

    Examples
    --------
    >>> auc([1, 0, 1, 0, 1, 0], [3, 3, 2, 2, 1, 1])
    0.5
    """
    return auc_of(group_by_score(y, scores, sample_weight))


def auc_of(groups: ScoreGroups) -> float:
    """`auc` of tie groups."""
    above, negative = groups.flagged_positive, groups.negative
    doubled = inner(negative, above[:-1] + above[1:])
    return min(1.0, doubled / (2.0 * _pair_mass(groups)))


def misrank_fraction(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """The share of positive–negative pairs out of order, a tie counted as a whole misrank.

    Parameters, errors and cost as `auc`.

    Returns
    -------
    float in [0, 1]
        1 − AUC + half the share of ties.

    References
    ----------
    Rudin & Schapire, "Margin-based ranking and an equivalence between AdaBoost and RankBoost",
    Journal of Machine Learning Research 10 (2009), §2.

    Examples
    --------
    >>> misrank_fraction([1, 0, 1, 0, 1, 0], [3, 3, 2, 2, 1, 1])
    0.6666666666666666
    """
    return misrank_fraction_of(group_by_score(y, scores, sample_weight))


def misrank_fraction_of(groups: ScoreGroups) -> float:
    """`misrank_fraction` of tie groups."""
    flagged = groups.flagged_positive
    at_or_below = flagged[-1] - flagged[:-1]
    return min(1.0, inner(groups.negative, at_or_below) / _pair_mass(groups))


def tied_fraction_of(groups: ScoreGroups) -> float:
    """The share of positive–negative pairs with equal scores, in [0, 1]."""
    return min(1.0, inner(groups.positive, groups.negative) / _pair_mass(groups))


def partial_auc(
    y: ArrayLike,
    scores: ArrayLike,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    *,
    definition: Definition = "interpolated",
    standardize: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Area under the ROC curve between two false positive rates, divided by their distance.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    scores : array_like of float, shape (n_samples,)
        Finite; higher means more likely positive.
    fpr_min, fpr_max : float in [0, 1]
        The window, fpr_min < fpr_max.
    definition : {"interpolated", "empirical"}
        "interpolated": the area under the curve of straight lines between the exact rates; ties are diagonals, so
        constant scores get the diagonal's area. "empirical": the share of pairs strictly in order, of every
        positive with the negatives ranked ⌊n·fpr_min⌋ + 1 to ⌈n·fpr_max⌉; constant scores get 0.
    standardize : bool
        Rescale so that the chance diagonal gives ½ and the perfect curve 1 (McClish). Under the empirical
        definition the window is the one that the ranks span.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative; a weight k counts as k rows. Under the empirical definition, if the negatives' weights are not all
        whole numbers, the window's ends are the masses n·fpr_min and n·fpr_max themselves, with no rounding to ranks,
        which fractions of rows do not have.

    Returns
    -------
    float
        In [0, 1]; a standardised value can be as low as ½ − ½·c/(1 − c), c the middle of the window.

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty or without weight.
    InvalidParameter
        If the window is empty or leaves [0, 1], or the definition is unknown.

    Notes
    -----
    O(n log n).

    References
    ----------
    Narasimhan & Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", eq. 2.
    McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9 (1989).
    """
    low, high = check_window(fpr_min, fpr_max)
    if definition not in DEFINITIONS:
        raise InvalidParameter(f"definition must be one of {DEFINITIONS}, got {definition!r}")
    groups = group_by_score(y, scores, sample_weight)
    if definition == "interpolated":
        value = area_of(groups, low, high)
        return mcclish(value, low, high) if standardize else value
    total = float(groups.flagged_negative[-1])
    first, last = _window_masses(groups, low, high)
    tpr = groups.flagged_positive / groups.flagged_positive[-1]
    value = _strict_share(groups.flagged_negative, tpr, first, last)
    return mcclish(value, first / total, last / total) if standardize else value


def area_of(
    groups: ScoreGroups, fpr_min: float, fpr_max: float, curve: RocCurve | None = None
) -> float:
    """The area of tie groups over a window; over [0, 1] as exact as `auc`. Pass their full curve if it is there."""
    if (fpr_min, fpr_max) == (0.0, 1.0):
        return auc_of(groups)
    return (curve_of(groups) if curve is None else curve).partial_area(fpr_min, fpr_max)


def empirical_area_of(curve: RocCurve, negative: float, fpr_min: float, fpr_max: float) -> float:
    """The partial AUC by the empirical definition, from a curve with a point per distinct score.

    Parameters
    ----------
    curve : RocCurve
    negative : float
        Weight of its negatives in all; their number when unweighted.
    fpr_min, fpr_max : float in [0, 1]

    Returns
    -------
    float in [0, 1]
        That of `partial_auc`. Where some weights are no whole numbers, but their sums at each score are, the window's
        ends are ranks all the same: a curve knows no more.
    """
    flagged = curve.fpr * negative
    ranks = np.rint(flagged)
    # What is left of whole numbers that were divided and multiplied again.
    rounding = 8.0 * np.finfo(np.float64).eps * negative
    if negative < _WHOLE and (abs(flagged - ranks) <= rounding).all():
        flagged = ranks
        first, last = map(float, window_counts(round(negative), fpr_min, fpr_max))
    else:
        first, last = negative * fpr_min, negative * fpr_max
    return _strict_share(flagged, curve.tpr, first, last)


def tpr_at_fpr(
    y: ArrayLike, scores: ArrayLike, fpr: float, sample_weight: ArrayLike | None = None
) -> float:
    """Height of the ROC curve at one false positive rate, interpolated; the top of a vertical step.

    Between two points this is the TPR of a cut drawn by lot; `operating_point` gives the best plain cut.

    Parameters
    ----------
    fpr : float in [0, 1]
        The others, the errors and the cost as `auc`.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    InvalidParameter
        If `fpr` lies outside [0, 1].
    """
    rate = check_rate("fpr", fpr)
    return float(curve_of(group_by_score(y, scores, sample_weight)).tpr_at(rate))


def _pair_mass(groups: ScoreGroups) -> float:
    return float(groups.flagged_positive[-1] * groups.flagged_negative[-1])


def _window_masses(groups: ScoreGroups, fpr_min: float, fpr_max: float) -> tuple[float, float]:
    """The negative masses above the two ends of a window, by the empirical definition."""
    total = float(groups.flagged_negative[-1])
    if groups.negatives.whole and total < _WHOLE:
        first, last = window_counts(int(total), fpr_min, fpr_max)
        return float(first), float(last)
    return total * fpr_min, total * fpr_max


def _strict_share(flagged: FloatArray, tpr: FloatArray, first: float, last: float) -> float:
    """Share of the pairs strictly in order, of the negatives between two masses counted from the top."""
    inside = np.diff(np.clip(flagged, first, last))
    return min(1.0, inner(inside, tpr[:-1]) / (last - first))
