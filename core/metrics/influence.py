"""What each row adds to an area under the ROC curve, to first order: the one source of every analytic variance.

Let ROC be the curve through tie groups, w the weights, P and N the class masses and [a, b] the window. Both classes
enter the area A = ∫_a^b ROC(u) du as sums of independent terms, to first order:

* positives, exactly: ROC is the mean of the curves of single positives, so A = Σ w_i V_i / P, where the *placement
  value* V_i is the part of the window that lies below positive i: the width of [a, b] to the right of its FPR. Inside a
  tie the single curve is a ramp;
* negatives: with S₊ and S₋ the survival functions, moving mass ε towards score y moves the threshold at rate u by
  (1[y ≥ c] − S₋(c)) ε / f₋(c), and so A by −ε ∫ f₊(c) (1[y ≥ c] − S₋(c)) dc over the thresholds c of the window, which
  is ε S₊(c) at c = y clipped into the window, up to a constant. So negative k counts with h_k, the height of
  the curve at its own FPR clipped into [a, b] (averaged over its tie's stretch).

The *influence* of a row is φ_i = w_i (V_i − V̄) / P, or φ_k = w_k (h_k − h̄) / N: what the area would lose of itself,
to first order, without it. Rows of one *unit* (several rows of a patient) are drawn together, so their influences are
summed before anything is squared. With u_g = Σ over the unit's rows of √r φ, where r = e / (e − 1) of the row's class
and e = (Σm)² / Σm² is the effective number of units, of masses m, that the class has,

    Var A = Σ u_g²,   Cov(A, A') = Σ u_g u'_g   for any two areas on the same units.

When each row is a unit no u mixes the classes. For [0, 1] without weights this is then the variance and covariance of
DeLong et al. to the last term; for other windows it is He & Escobar's and, before smoothing, that of Dodd & Pepe's
estimator. With units it is Obuchowski's, but for her factors I / (I − 1), of counts of units: ours also know how
unequal the units are, and keep every variance above zero. Few units make a variance uncertain in itself, whatever the
number of rows: what is divided by its root is held to Student's t with min(e₊, e₋) − 1 degrees of freedom.

References
----------
DeLong, DeLong & Clarke-Pearson, "Comparing the areas under two or more correlated ROC curves", Biometrics 44 (1988).
Dodd & Pepe, "Partial AUC estimation and regression", Biometrics 59 (2003).
He & Escobar, "Nonparametric statistical inference method for partial areas under ROC curves", Statistics in Medicine
27 (2008).
Obuchowski, "Nonparametric analysis of clustered ROC curve data", Biometrics 53 (1997).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from core.kernel import kernel
from core.metrics.area import area_of
from core.metrics.groups import FloatArray, Rows, ScoreGroups, group_rows, inner
from core.metrics.window import Window

# Below this a standard error, or a distance to 0 or 1, is rounding, not sampling.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Areas:
    """The areas of several scorers over several windows, on the same rows.

    Attributes
    ----------
    values : ndarray of float64, shape (n_scorers, n_windows)
        Interpolated, divided by the window's width.
    influence : ndarray of float64, shape (n_scorers, n_windows, n_units), or None
        The u of the module; None if a class has the weight of one unit only, which shows no variance.
    effective : (float, float)
        Effective number of units of the positives and of the negatives.
    degrees : float
        Degrees of freedom of Student's t that an area over its standard error is held to; inf, the normal
        distribution, when each row is a unit.
    """

    values: FloatArray
    influence: FloatArray | None
    effective: tuple[float, float]
    degrees: float = math.inf

    def variance(self, scorer: int, window: int) -> float | None:
        """Variance of one area; None where the sample shows none."""
        if self.influence is None:
            return None
        parts = self.influence[scorer, window]
        return inner(parts, parts)


def estimate_areas(rows: Rows, windows: Sequence[Window]) -> Areas:
    """Areas and influences of every scorer over every window.

    Notes
    -----
    O(n_scorers · (n log n + n · n_windows)) time, O(n_scorers · n_windows · n) memory.
    """
    values, influence = row_influences(rows, windows)
    effective = effective_units(rows)
    return areas_of_units(values, influence, rows, effective, 1.0, clustered=rows.unit is not None)


def area_values(rows: Rows, windows: Sequence[Window]) -> FloatArray:
    """The areas alone, shape (n_scorers, n_windows)."""
    every = [group_rows(rows, scorer)[0] for scorer in range(len(rows.scores))]
    return np.array([[area_of(groups, *window) for window in windows] for groups in every])


def row_influences(rows: Rows, windows: Sequence[Window]) -> tuple[FloatArray, FloatArray]:
    """Areas, shape (n_scorers, n_windows), and the φ of each row, shape (n_scorers, n_windows, n_rows)."""
    values = np.empty((len(rows.scores), len(windows)))
    influence = np.empty((*values.shape, rows.positive.size))
    for scorer in range(len(rows.scores)):
        groups, order = group_rows(rows, scorer)
        for j, window in enumerate(windows):
            values[scorer, j] = area_of(groups, *window)
            influence[scorer, j, order] = _of_rows(groups, window, rows, order)
    return values, influence


def areas_of_units(
    values: FloatArray,
    influence: FloatArray,
    rows: Rows,
    effective: tuple[float, float],
    n_means: float,
    *,
    clustered: bool,
) -> Areas:
    """Areas with the u of each unit, from the φ of rows.

    In each class φ was centred on `n_means` means of `effective` units together. `clustered` says that units are few
    to rows, so that their number must show in the degrees of freedom. `influence` is stretched in place.
    """
    whole = effective_units(rows)
    degrees = min(whole) - 1.0 if clustered else math.inf
    if min(effective) <= n_means + NOTHING or min(whole) <= 1.0 + NOTHING:
        return Areas(values, None, whole, degrees)
    influence *= np.where(rows.positive, *(math.sqrt(e / (e - n_means)) for e in effective))
    return Areas(values, sum_by_unit(influence, rows.unit), whole, degrees)


def sum_by_unit(influence: FloatArray, unit: NDArray[np.intp] | None) -> FloatArray:
    """Sums over the rows of each unit, along the last axis."""
    if unit is None:
        return influence
    flat = influence.reshape(-1, influence.shape[-1])
    n_units = int(unit.max()) + 1
    sums = np.array([np.bincount(unit, row, n_units) for row in flat])
    return sums.reshape(*influence.shape[:-1], n_units)


def effective_units(rows: Rows) -> tuple[float, float]:
    """Effective number of units of the positives and of the negatives."""
    positive, negative = rows.positive, ~rows.positive
    return _effective(rows, positive), _effective(rows, negative)


def _effective(rows: Rows, of_class: NDArray[np.bool_]) -> float:
    weight = None if rows.weight is None else rows.weight[of_class]
    if rows.unit is not None:
        weight = np.bincount(rows.unit[of_class], weight).astype(np.float64, copy=False)
    if weight is None:
        return float(np.count_nonzero(of_class))
    return effective_rows(weight, weight**2)


def effective_rows(mass: FloatArray, squares: FloatArray) -> float:
    """Kish's number of equally weighted rows that would be worth as much: (Σw)² / Σw²."""
    return float(mass.sum()) ** 2 / float(squares.sum())


def influences(
    groups: ScoreGroups, fpr_min: float, fpr_max: float
) -> tuple[FloatArray, FloatArray]:
    """What a row of each tie group is to the area over the window (not divided by its width).

    Returns
    -------
    placement, height : ndarray of shape (n_groups,), float64
        V of a positive and h of a negative; see the module.

    Notes
    -----
    O(n_groups).
    """
    placement, height = np.empty((2, groups.scores.size))
    negative, positive = groups.flagged_negative, groups.flagged_positive
    ends = [_middle_height(negative, positive, fpr) for fpr in (fpr_min, fpr_max)]
    _influences(negative, positive, fpr_min, fpr_max, *ends, placement, height)
    return placement, height


def _middle_height(negative: FloatArray, positive: FloatArray, fpr: float) -> float:
    """Height at a rate of the curve through prefix sums; the middle of a vertical step."""
    total, all_positive = float(negative[-1]), float(positive[-1])
    right = bisect_left(negative, fpr, key=lambda mass: float(mass) / total)
    end = float(negative[right]) / total
    if end > fpr:
        start = float(negative[right - 1]) / total
        share = (fpr - start) / (end - start)
        rise = float(positive[right] - positive[right - 1])
        return (float(positive[right - 1]) + share * rise) / all_positive
    top = bisect_right(negative, fpr, lo=right, key=lambda mass: float(mass) / total) - 1
    return float(positive[right] + positive[top]) / 2.0 / all_positive


def _of_rows(
    groups: ScoreGroups,
    window: Window,
    rows: Rows,
    order: NDArray[np.intp],
) -> FloatArray:
    """φ of each row, of the area divided by the window's width, in the given order of rows."""
    placement, height = influences(groups, *window)
    positive = rows.positive[order]
    phi = np.empty(order.size)
    classes = (
        (positive, groups.positives.group, placement, groups.positive),
        (~positive, groups.negatives.group, height, groups.negative),
    )
    for of_class, group, values, mass in classes:
        total = mass.sum()
        centred = (values - (mass * values).sum() / total) / (total * (window[1] - window[0]))
        phi[of_class] = centred[group]
    return phi if rows.weight is None else phi * rows.weight[order]


_PREFIX_SUMS = numba.types.Array(numba.float64, 1, "C", readonly=True)


@kernel(
    numba.void(
        _PREFIX_SUMS,
        _PREFIX_SUMS,
        numba.float64,
        numba.float64,
        numba.float64,
        numba.float64,
        numba.float64[::1],
        numba.float64[::1],
    )
)
def _influences(  # type: ignore[no-untyped-def]
    negative, positive, fpr_min, fpr_max, of_start, of_end, placement, height
):
    """Fill `influences` from the prefix sums of both classes; of_start and of_end: heights at the window's ends."""
    start, scale = 0.0, 0.5 / positive[-1]
    for i in range(len(placement)):
        end = negative[i + 1] / negative[-1]
        width = end - start
        if start >= fpr_min and end <= fpr_max:
            placement[i] = fpr_max - (start + end) / 2.0
            height[i] = (positive[i] + positive[i + 1]) * scale
        elif width == 0.0:  # positives alone, outside
            placement[i], height[i] = max(fpr_max - max(end, fpr_min), 0.0), 0.0
        else:
            # Where in the tie's own stretch of FPR, from 0 to 1, the window begins and ends.
            enters = min(max((fpr_min - start) / width, 0.0), 1.0)
            leaves = min(max((fpr_max - start) / width, 0.0), 1.0)
            inside, middle = leaves - enters, (enters + leaves) / 2.0
            placement[i] = width * inside * middle + max(fpr_max - max(end, fpr_min), 0.0)
            rise = middle * (positive[i + 1] - positive[i])
            height[i] = enters * of_start + (1.0 - leaves) * of_end
            height[i] += inside * (positive[i] + rise) / positive[-1]
        start = end
