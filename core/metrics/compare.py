"""Are these scorers' areas different? Two or more scorers, one or several windows, on the same rows.

**A pair over a window.** The difference d = A − A' has the variance Σ (u_g − u'_g)² of `influence`, so what the two
share cancels. The interval is d ± z √Var, cut at ±1, and p is Wald's: for two AUCs without weights this is the test of
DeLong et al., for windows that of He & Escobar, for units Obuchowski's.

**Where the sample shows no variance**: the scorers rank the rows alike, or each is perfect, or a class has the weight
of one unit. Then the n trials of `intervals` are read as n pairs of outcomes of which n |d| favour the one scorer and
none the other. The interval is Tango's for such a table, p is McNemar's, 2 Φ(−√(n |d|)). Scorers that agree have the
difference 0, p = 1, and an interval of ±z² / (n + z²): that they agree on these rows does not prove that they are one.

**All scorers at once.** H₀: all areas of a window are equal; and over all windows: they are equal in each. With d the
differences to the first scorer and S their covariance, Wald's dᵀ S⁺ d is χ² with as many degrees of freedom as S has
rank, so that equal scorers, and windows made up of others, do no harm. Should d leave the range of S, a difference has
no variance to be judged by, and the joint p-value is the least of Holm's.

**Groups.** Student's t takes the place of the normal distribution (see `influence`), and Hotelling's F that of χ².
Where there are too few units for so many contrasts, the joint p-value is the least of Holm's.

**Many tests.** `adjusted_p_value` is Holm's, over all pairs and all windows of the comparison: the chance of any false
"different" among them stays below the level. The intervals are for one difference each.

References
----------
DeLong, DeLong & Clarke-Pearson, "Comparing the areas under two or more correlated ROC curves", Biometrics 44 (1988).
He & Escobar, "Nonparametric statistical inference method for partial areas under ROC curves", Statistics in Medicine
27 (2008).
Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 12 (1947).
Tango, "Equivalence test and confidence interval for the difference in proportions for the paired-sample design",
Statistics in Medicine 17 (1998).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2
from scipy.stats import f as fisher_f
from scipy.stats import t as student_t

from core.errors import InvalidParameter
from core.metrics.groups import FloatArray, check_rows
from core.metrics.influence import NOTHING, Areas, estimate_areas, sum_of_squares
from core.metrics.intervals import (
    Interval,
    area_interval,
    least_trials,
    normal_quantile,
    quantile,
    wilson_interval,
)
from core.metrics.window import check_level, check_window

Adjustment = Literal["holm", "none"]
ADJUSTMENTS = ("holm", "none")

Window = tuple[float, float]

# Of a correlation matrix: an eigenvalue below this is a contrast that others make up.
_RANK = 1e-9
# Standard errors of a difference along such a contrast that are more than rounding.
_OUT_OF_RANGE = 1e-3


@dataclass(frozen=True)
class Difference:
    """How much greater the area of `first` is than that of `second`.

    Attributes
    ----------
    first, second : str
        Names of the scorers.
    value : float in [-1, 1]
        Area of `first` less area of `second`, each divided by the window's width.
    low, high : float in [-1, 1]
        Ends of its confidence interval.
    p_value : float in [0, 1]
        Two-sided, of H₀: the areas are equal.
    adjusted_p_value : float in [0, 1]
        Adjusted over all differences of the comparison.
    """

    first: str
    second: str
    value: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float


@dataclass(frozen=True)
class WindowComparison:
    """The scorers over one window of false positive rates.

    Attributes
    ----------
    fpr_min, fpr_max : float in [0, 1]
    values : tuple of Interval
        The area of each scorer, divided by the window's width, in the order of the scorers.
    differences : tuple of Difference
        Every pair of scorers, in their order: (1, 2), (1, 3), …, (2, 3), …
    joint_p_value : float in [0, 1]
        Of H₀: all areas over this window are equal.
    """

    fpr_min: float
    fpr_max: float
    values: tuple[Interval, ...]
    differences: tuple[Difference, ...]
    joint_p_value: float


@dataclass(frozen=True)
class Comparison:
    """Scorers on the same rows, window by window.

    Attributes
    ----------
    names : tuple of str
        The scorers.
    windows : tuple of WindowComparison
    joint_p_value : float in [0, 1]
        Of H₀: all areas are equal in every window.
    n_tests : int
        Pairs of scorers times windows: what the adjusted p-values are adjusted for.
    level : float in (0, 1)
        Level of each interval by itself.
    """

    names: tuple[str, ...]
    windows: tuple[WindowComparison, ...]
    joint_p_value: float
    n_tests: int
    level: float


def compare(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    windows: Sequence[Window] = ((0.0, 1.0),),
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
) -> Comparison:
    """Compare the areas of two or more scorers on the same rows, over one or several windows.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    scores : sequence of array_like of float, each of shape (n_samples,)
        Two or more scorers. Finite; higher means more likely positive. Each may have a scale of its own.
    windows : sequence of (fpr_min, fpr_max)
        Windows of false positive rates; (0, 1) is the AUC.
    level : float in (0, 1)
        Level of each interval by itself.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative. Weights are shares, not counts: doubling all of them changes nothing.
    group : array_like, shape (n_samples,), optional
        Rows of one value are drawn together: several rows of a patient.
    names : sequence of str, optional
        Names of the scorers, all different; "scores[0]", … by default.
    adjust : {"holm", "none"}
        How p-values are adjusted, over all pairs and windows.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty or without weight.
    InvalidParameter
        If there are fewer than two scorers or no window, or a parameter is out of range.

    Notes
    -----
    O(k n log n + k² n m) time and O(k n m) memory for k scorers and m windows.

    Examples
    --------
    >>> y = [1, 1, 1, 1, 0, 0, 0, 0]
    >>> found = compare(y, [[8, 7, 6, 4, 5, 3, 2, 1], [4, 8, 2, 6, 7, 1, 5, 3]], names=["new", "old"])
    >>> found.windows[0].differences[0].value
    0.3125
    """
    checked = check_windows(windows)
    level = check_level(level)
    named = check_names(names, len(scores))
    if adjust not in ADJUSTMENTS:
        raise InvalidParameter(f"adjust must be one of {ADJUSTMENTS}, got {adjust!r}")
    columns = {f"scores[{k}]": column for k, column in enumerate(scores)}
    areas = estimate_areas(check_rows(y, columns, sample_weight, group), checked)
    return compare_areas(areas, named, checked, level, adjust)


def compare_auc(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
) -> Comparison:
    """`compare` of the AUCs."""
    return compare_partial_auc(
        y,
        scores,
        level=level,
        sample_weight=sample_weight,
        group=group,
        names=names,
        adjust=adjust,
    )


def compare_partial_auc(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
) -> Comparison:
    """`compare` of the partial AUCs over one window."""
    return compare(
        y,
        scores,
        ((fpr_min, fpr_max),),
        level=level,
        sample_weight=sample_weight,
        group=group,
        names=names,
        adjust=adjust,
    )


def check_windows(windows: Sequence[Window]) -> list[Window]:
    """The windows as `check_window` gives them; at least one."""
    checked = []
    for window in windows:
        try:
            low, high = window
        except (TypeError, ValueError) as error:
            raise InvalidParameter(
                f"a window must be a pair (fpr_min, fpr_max), got {window!r}"
            ) from error
        checked.append(check_window(low, high))
    if not checked:
        raise InvalidParameter("windows must name at least one window, got none")
    return checked


def check_names(names: Sequence[str] | None, n_scorers: int) -> tuple[str, ...]:
    """A name for each of two or more scorers, no two alike."""
    if n_scorers < 2:
        raise InvalidParameter(f"scores must hold at least two scorers, got {n_scorers}")
    if names is None:
        return tuple(f"scores[{k}]" for k in range(n_scorers))
    if len(names) != n_scorers:
        raise InvalidParameter(
            f"names must name each of the {n_scorers} scorers, got {len(names)} names"
        )
    if len(set(names)) < n_scorers:
        raise InvalidParameter(f"names must differ from one another, got {list(names)}")
    return tuple(names)


def compare_areas(
    areas: Areas,
    names: tuple[str, ...],
    windows: Sequence[Window],
    level: float,
    adjust: Adjustment,
) -> Comparison:
    """`compare` of areas that have been estimated on the same units."""
    pairs = list(combinations(range(len(names)), 2))
    found = [
        [_judge(areas, pair, j, window, level) for pair in pairs]
        for j, window in enumerate(windows)
    ]
    p_values = np.array([[p_value for _, p_value in of_window] for of_window in found])
    adjusted = p_values if adjust == "none" else holm(p_values)
    compared = tuple(
        WindowComparison(
            *window,
            tuple(area_interval(areas, k, j, window, level) for k in range(len(names))),
            tuple(
                Difference(names[a], names[b], *interval, float(p), float(adjusted[j, i]))
                for i, ((a, b), (interval, p)) in enumerate(zip(pairs, found[j], strict=True))
            ),
            _joint(areas, [j], p_values[j]),
        )
        for j, window in enumerate(windows)
    )
    every = _joint(areas, list(range(len(windows))), p_values)
    return Comparison(names, compared, every, p_values.size, level)


def difference_error(areas: Areas, first: int, second: int, j: int) -> float | None:
    """Standard error of the difference of two areas over the j-th window; None if a class is one unit's."""
    if areas.influence is None:
        return None
    return math.sqrt(sum_of_squares(areas.influence[first, j] - areas.influence[second, j]))


def holm(p_values: FloatArray) -> FloatArray:
    """Holm's adjusted p-values, in the shape of `p_values`."""
    flat = p_values.ravel()
    order = np.argsort(flat, kind="stable")
    steps = np.maximum.accumulate(flat[order] * np.arange(flat.size, 0, -1))
    adjusted = np.empty(flat.size)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted.reshape(p_values.shape)


def _judge(
    areas: Areas, pair: tuple[int, int], j: int, window: Window, level: float
) -> tuple[Interval, float]:
    """The difference of two areas with its interval, and its p-value."""
    value = float(areas.values[pair[0], j] - areas.values[pair[1], j])
    error = difference_error(areas, *pair, j)
    if error is None or error <= NOTHING:
        trials = least_trials(areas.effective, window)
        return one_sided_table(value, trials, level), _two_sided(math.sqrt(trials * abs(value)))
    reach = quantile(level, areas.degrees) * error
    p_value = _two_sided(value / error, areas.degrees)
    return Interval(value, max(-1.0, value - reach), min(1.0, value + reach)), p_value


def one_sided_table(value: float, trials: float, level: float) -> Interval:
    """Tango's interval of a paired difference of shares, when `trials` |value| pairs favour one and none the other."""
    size, z_squared = abs(value), normal_quantile(level) ** 2
    _, low, high = wilson_interval(min(1.0, size), trials, level)
    mixed = (trials * size - z_squared) / (trials + z_squared)
    if mixed <= size / (2.0 - size):  # there the likeliest table has pairs of both kinds
        low = mixed
    return Interval(value, low, high) if value >= 0.0 else Interval(value, -high, -low)


def _two_sided(z: float, degrees: float = math.inf) -> float:
    if math.isinf(degrees):
        return math.erfc(abs(z) / math.sqrt(2.0))
    return float(2.0 * student_t.sf(abs(z), degrees))


def _wald(statistic: float, rank: int, degrees: float) -> float | None:
    """P-value of Wald's statistic; None if the covariance stands on too few units for its rank."""
    if math.isinf(degrees):
        return float(chi2.sf(statistic, rank))
    spare = degrees - rank + 1.0
    if spare <= NOTHING:
        return None
    return float(fisher_f.sf(statistic * spare / (degrees * rank), rank, spare))


def _joint(areas: Areas, windows: list[int], p_values: FloatArray) -> float:
    """P-value of H₀: in each of these windows all scorers have the same area."""
    least = float(holm(p_values).min())
    if areas.influence is None:
        return least
    values = (areas.values[1:, windows] - areas.values[0, windows]).ravel()
    parts = areas.influence[1:, windows] - areas.influence[0, windows]
    parts = parts.reshape(values.size, -1)
    covariance = np.einsum("ig,jg->ij", parts, parts)
    errors = np.sqrt(np.diag(covariance))
    shown = errors > NOTHING
    if np.any(np.abs(values[~shown]) > NOTHING):
        return least
    if not shown.any():
        return 1.0
    z = values[shown] / errors[shown]
    correlation = covariance[np.ix_(shown, shown)] / np.outer(errors[shown], errors[shown])
    roots, axes = np.linalg.eigh(correlation)
    along = axes.T @ z
    kept = roots > _RANK * roots[-1]
    if np.any(np.abs(along[~kept]) > _OUT_OF_RANGE):
        return least
    statistic = float((along[kept] ** 2 / roots[kept]).sum())
    p_value = _wald(statistic, int(np.count_nonzero(kept)), areas.degrees)
    return least if p_value is None else p_value
