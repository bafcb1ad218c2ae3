"""How much more partial AUC one scorer has than another on the same rows, and how surely."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.metrics.curve import curve_of
from core.metrics.groups import FloatArray, group_by_score
from core.metrics.intervals import influences, mean_variance
from core.metrics.window import check_window


class Rise(NamedTuple):
    """Two partial AUCs on the same rows, and the standard error of their difference.

    Attributes
    ----------
    before, after : float in [0, 1]
        Interpolated, divided by the window's width.
    error : float
        Standard error of after - before; 1, as much as a difference can be, where a class has the weight of
        one unit only.
    """

    before: float
    after: float
    error: float


def partial_auc_rise(
    y: ArrayLike,
    before: ArrayLike,
    after: ArrayLike,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    *,
    sample_weight: ArrayLike,
    unit: ArrayLike,
) -> Rise:
    """Compare two scorers by their partial AUC on the same rows.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    before, after : array_like of float, shape (n_samples,)
        The scores of either.
    fpr_min, fpr_max : float in [0, 1]
        The window, fpr_min < fpr_max.
    sample_weight : array_like of float, shape (n_samples,)
        Above 0. Shares, not counts: doubling all of them changes nothing.
    unit : array_like, shape (n_samples,)
        Rows of a class with the same value are one observation: equal rows, say.

    Returns
    -------
    Rise

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty.
    InvalidParameter
        If the window is empty or leaves [0, 1].

    Notes
    -----
    To first order the difference is a mean over positives of the difference of their placement values, less
    one over negatives of the difference of the curves' heights there; see `intervals`. O(n log n).
    """
    low, high = check_window(fpr_min, fpr_max)
    labels, weight, units = np.asarray(y), np.asarray(sample_weight), np.asarray(unit)
    areas, parts = [], []
    for scores in (np.asarray(before), np.asarray(after)):
        groups = group_by_score(labels, scores, weight)
        curve = curve_of(groups)
        areas.append(curve.partial_area(low, high))
        place = np.searchsorted(-groups.scores, -scores)
        parts.append([values[place] for values in influences(groups, curve, low, high)])
    positive = labels == labels.max()
    variance = 0.0
    for rows, one, other in zip((positive, ~positive), *parts, strict=True):
        part = _variance(other[rows] - one[rows], weight[rows], units[rows])
        if part is None:
            return Rise(areas[0], areas[1], 1.0)
        variance += part
    return Rise(areas[0], areas[1], math.sqrt(variance) / (high - low))


def _variance(values: FloatArray, weight: FloatArray, unit: FloatArray) -> float | None:
    """Variance of the weighted mean of values, those of a unit together."""
    _, place = np.unique(unit, return_inverse=True)
    mass = np.bincount(place, weights=weight).astype(np.float64)
    means = np.bincount(place, weights=weight * values).astype(np.float64) / mass
    return mean_variance(means, mass, mass**2)
