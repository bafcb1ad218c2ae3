"""Are areas different? Of scorers on the same rows, or on the same folds; and of one scorer on two samples.

Each pair of scorers over each window has a difference with an interval and a p-value, adjusted over all of them, and
there is a joint test for each window and for all.

**A pair over a window.** The difference d = A − A' has the variance Σ (u_g − u'_g)² of `intervals`, so what the two
share cancels. The interval is d ± z √Var, cut at ±1, and p is Wald's: for two AUCs without weights this is the test of
DeLong et al., for windows that of He & Escobar, for units Obuchowski's.

**Where the sample shows no variance**: the scorers rank the rows alike, or each is perfect, or a class has the weight
of one unit. Then the n trials of `intervals` are read as n pairs of outcomes of which n |d| favour the one scorer and
none the other. The interval is Tango's for such a table, p is McNemar's, 2 Φ(−√(n |d|)). Scorers that agree have the
difference 0, p = 1, and an interval of ±z² / (n + z²): that they agree on these rows does not prove that they are one.

**All scorers at once.** H₀: all areas of a window are equal; and over all windows: they are equal in each. With d the
differences to the first scorer and S their covariance, of rank r, Wald's statistic is dᵀ S⁺ d: equal scorers, and
windows made up of others, do no harm. As S is estimated, it is held to Hotelling's T² with r and m degrees of freedom;
m is one less than the effective units of the smaller class. (Held to χ², five scorers that were
equally good over three windows were called different in 56 % of samples of 10 + 20 rows.) The p-value is Holm's least
instead where m < 2 r, and where d leaves the range of S, so that a difference has no variance to be judged by. With
r = 1 it is the pair's own.

**Bootstrap.** The same formulas with the covariance of replicates, all scorers and windows on the same draws.

**Groups.** Student's t with m degrees of freedom takes the place of the normal distribution (see `intervals`).

**Many tests.** `adjusted_p_value` is Holm's, over all pairs and all windows of the comparison: the chance of any false
"different" among them stays below the level. The intervals are for one difference each.

Cross-validation
----------------
The scores of two folds come from two fitted rankers and need have no scale in common, so pooling them draws a curve
that is none of theirs, and DeLong's interval around it lacks its level. Here each fold has its own curve. With V_r
folds in repeat r of R, the area and the influence of a row (see `intervals`) are

    A = (1/R) Σ_r (1/V_r) Σ_f A_rf,   φ_i = (1/R) Σ_r φ_i,rf / V_r with f the fold of row i in repeat r,

and the variance is Σ φ_i² over rows, or over units after summing in each. A row enters once however often it was
scored: repeats steady the estimate, but they are no new rows, and the variance does not shrink as if they were. The
factor r = e / (e − F) counts the F means taken away, one a fold, from e effective units, both summed over the folds of
a repeat, on average. For a comparison all scorers are evaluated on the same folds.

The target is the mean area of the rankers that were fitted, on rows to come; how far another draw of training rows
would move them is not in the interval. A fold without rows of both classes has no area and is left out.

Two samples
-----------
**Areas.** Two independent estimates, each with its own interval, whatever that stands on (placement values, clusters,
folds, Wilson's where a sample shows no variance). The interval of their difference recovers the variances from the ends
of the two (MOVER): with estimates a and b and intervals [l, u] of one level,

    b − a − √((b − l_b)² + (u_a − a)²)   to   b − a + √((u_b − b)² + (a − l_a)²).

Each end uses the variance that holds near it, so the interval needs neither symmetry nor a normal estimate; with
symmetric intervals it is the usual one, with Wilson's of two shares it is Newcombe's. The p-value is that of the normal
distribution whose error is the distance to 0's own end: below 1 − level exactly when the interval leaves 0 out.

**Scores.** The scores of one class in two samples, each as a curve keeps them: a share at or above every score. The
distance is Kolmogorov and Smirnov's, D = max |S₁ − S₂|, its p-value that of the limit distribution at
√(n₁ n₂ / (n₁ + n₂)) D with effective numbers of rows. Ties make it careful, and so do small samples; it never claims
more than it should.

References
----------
DeLong, DeLong & Clarke-Pearson, "Comparing the areas under two or more correlated ROC curves", Biometrics 44 (1988).
He & Escobar, "Nonparametric statistical inference method for partial areas under ROC curves", Statistics in Medicine
27 (2008).
Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
Hotelling, "The generalization of Student's ratio", Annals of Mathematical Statistics 2 (1931).
LeDell, Petersen & van der Laan, "Computationally efficient confidence intervals for cross-validated area under the ROC
curve estimates", Electronic Journal of Statistics 9 (2015).
Mann & Whitney, "On a test of whether one of two random variables is stochastically larger than the other", Annals of
Mathematical Statistics 18 (1947).
McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 12 (1947).
Newcombe, "Interval estimation for the difference between independent proportions", Statistics in Medicine 17 (1998),
method 10.
Smirnov, "Table for estimating the goodness of fit of empirical distributions", Annals of Mathematical Statistics 19
(1948).
Tango, "Equivalence test and confidence interval for the difference in proportions for the paired-sample design",
Statistics in Medicine 17 (1998).
Zou & Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27 (2008), eq. 5: MOVER.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.target import number_units
from core.errors import InvalidData, InvalidParameter
from core.metrics.curve import check_rates, check_thresholds
from core.metrics.groups import (
    FloatArray,
    Rows,
    check_rows,
    effective_units,
    inner,
)
from core.metrics.intervals import (
    EPSILON,
    Areas,
    Interval,
    Method,
    area_interval,
    areas_of_units,
    bootstrap_areas,
    check_method,
    estimate_areas,
    least_trials,
    normal_quantile,
    quantile,
    row_influences,
    wilson_interval,
)
from core.metrics.window import Window, check_level, check_window

Adjustment = Literal["holm", "none"]
ADJUSTMENTS = ("holm", "none")

# Of a correlation matrix: an eigenvalue below this is a contrast that others make up.
_RANK = 1e-9
# Standard errors of a difference along such a contrast that are more than rounding.
_OUT_OF_RANGE = 1e-3


@dataclass(frozen=True)
class Difference:
    """How much greater the area of `first` is than that of `second`."""

    first: str
    second: str
    """Names of the scorers."""
    value: float
    """Area of `first` less area of `second`, each divided by the window's width. In [-1, 1]."""
    low: float
    high: float
    """Ends of its confidence interval. In [-1, 1]."""
    p_value: float
    """Two-sided, of H₀: the areas are equal. In [0, 1]."""
    adjusted_p_value: float
    """Adjusted over all differences of the comparison. In [0, 1]."""


@dataclass(frozen=True)
class WindowComparison:
    """The scorers over one window of false positive rates."""

    fpr_min: float
    fpr_max: float
    """In [0, 1]."""
    values: tuple[Interval, ...]
    """The area of each scorer, divided by the window's width, in the order of the scorers."""
    differences: tuple[Difference, ...]
    """Every pair of scorers, in their order: (1, 2), (1, 3), …, (2, 3), …."""
    joint_p_value: float
    """Of H₀: all areas over this window are equal. In [0, 1]."""


@dataclass(frozen=True)
class Comparison:
    """Scorers on the same rows, window by window."""

    names: tuple[str, ...]
    """The scorers."""
    windows: tuple[WindowComparison, ...]
    joint_p_value: float
    """Of H₀: all areas are equal in every window. In [0, 1]."""
    n_tests: int
    """Pairs of scorers times windows: what the adjusted p-values are adjusted for."""
    level: float
    """Level of each interval by itself. In (0, 1)."""


def compare(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    windows: Sequence[Window] = ((0.0, 1.0),),
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    method: Method = "analytic",
    n_bootstrap: int = 1000,
    random_state: int = 0,
    adjust: Adjustment = "holm",
) -> Comparison:
    """Compare the areas of two or more scorers on the same rows, over one or several windows.

    InvalidData, if lengths differ, a value is not finite, or a class is empty or without weight. InvalidParameter, if
    there are fewer than two scorers or no window, or a parameter is out of range. O(k n log n + k² n m) time and O(k n
    m) memory for k scorers and m windows; the bootstrap adds O(k n m) for each sample.

    Parameters
    ----------
    y
        As `auc`.
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
    method : {"analytic", "bootstrap"}
        Where variances and covariances come from: influences, or replicates of all areas on the same draws.
    n_bootstrap : int
        Number of samples, at least 2.
    random_state : int
        Seed of the samples, not negative.
    adjust : {"holm", "none"}
        How p-values are adjusted, over all pairs and windows.
    """
    checked, level = check_windows(windows), check_level(level)
    columns, named = _check_scorers(scores, names, adjust)
    check_method(method, n_bootstrap, random_state)
    rows = check_rows(y, columns, sample_weight, group)
    if method == "bootstrap":
        areas = bootstrap_areas(rows, checked, n_bootstrap, random_state)
    else:
        areas = estimate_areas(rows, checked)
    return compare_areas(areas, named, checked, level, adjust)


class Options(TypedDict, total=False):
    """The options of `compare` but for its windows."""

    level: float
    sample_weight: ArrayLike | None
    group: ArrayLike | None
    names: Sequence[str] | None
    method: Method
    n_bootstrap: int
    random_state: int
    adjust: Adjustment


def compare_auc(
    y: ArrayLike, scores: Sequence[ArrayLike], **options: Unpack[Options]
) -> Comparison:
    """`compare` the AUCs."""
    return compare(y, scores, ((0.0, 1.0),), **options)


def compare_partial_auc(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    **options: Unpack[Options],
) -> Comparison:
    """`compare` the partial AUCs over one window."""
    return compare(y, scores, ((fpr_min, fpr_max),), **options)


def cross_validated_areas(
    y: ArrayLike,
    scores: ArrayLike,
    fold: ArrayLike,
    windows: Sequence[Window] = ((0.0, 1.0),),
    *,
    repeat: ArrayLike | None = None,
    row: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> tuple[Interval, ...]:
    """The mean of the folds' areas over each window, with an interval.

    InvalidData, if lengths differ, a value is not finite, or no fold has rows of both classes. InvalidParameter, if a
    parameter is out of range, or there are repeats and neither `row` nor `group`. O(n log n + n · n_windows) for n
    out-of-fold rows.

    Parameters
    ----------
    y : array_like, shape (n_out_of_fold,)
        An out-of-fold row for each time that a row was scored by a ranker that had not learnt from it. Exactly two
        distinct values; the greater one is positive.
    scores : array_like of float, shape (n_out_of_fold,)
        Finite; higher means more likely positive, within a fold.
    fold : array_like, shape (n_out_of_fold,)
        The fold of each out-of-fold row: numbers or text.
    windows : sequence of (fpr_min, fpr_max)
        Windows of false positive rates; (0, 1) is the AUC.
    repeat : array_like, shape (n_out_of_fold,), optional
        The repetition of cross-validation that each belongs to.
    row : array_like, shape (n_out_of_fold,), optional
        Which row each is of; must be given if there are repeats, unless `group` is.
    level : float in (0, 1)
        Probability that an interval covers the mean area of these rankers in the population.
    sample_weight : array_like of float, shape (n_out_of_fold,), optional
        Non-negative; within a fold weights are shares, not counts.
    group : array_like, shape (n_out_of_fold,), optional
        Rows of one value are drawn together, wherever their folds.

    Returns
    -------
    tuple of Interval
        One per window, on the logit scale; Wilson's where the sample shows no variance, as `partial_auc_interval`.
    """
    checked, level = check_windows(windows), check_level(level)
    areas = _estimate(y, {"scores": scores}, fold, checked, repeat, row, sample_weight, group)
    return tuple(area_interval(areas, 0, j, window, level) for j, window in enumerate(checked))


def cross_validated_compare(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    fold: ArrayLike,
    windows: Sequence[Window] = ((0.0, 1.0),),
    *,
    repeat: ArrayLike | None = None,
    row: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
) -> Comparison:
    """`compare` of two or more scorers that were cross-validated on the same folds.

    InvalidData, InvalidParameter: as `cross_validated_areas` and `compare`. O(k n log n + k² n m) time for k scorers, n
    out-of-fold rows and m windows.

    Parameters
    ----------
    y, fold, windows, repeat, row, level, sample_weight, group
        As `cross_validated_areas`.
    scores : sequence of array_like of float, each of shape (n_out_of_fold,)
        Two or more scorers.
    names, adjust
        As `compare`.
    """
    checked, level = check_windows(windows), check_level(level)
    columns, named = _check_scorers(scores, names, adjust)
    areas = _estimate(y, columns, fold, checked, repeat, row, sample_weight, group)
    return compare_areas(areas, named, checked, level, adjust)


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


def _check_scorers(
    scores: Sequence[ArrayLike], names: Sequence[str] | None, adjust: Adjustment
) -> tuple[dict[str, ArrayLike], tuple[str, ...]]:
    """Two or more scorers by what errors call them, and the names that they go by, no two alike."""
    if len(scores) < 2:
        raise InvalidParameter(f"scores must hold at least two scorers, got {len(scores)}")
    columns = {f"scores[{k}]": column for k, column in enumerate(scores)}
    named = tuple(columns) if names is None else tuple(names)
    if len(named) != len(scores):
        raise InvalidParameter(
            f"names must name each of the {len(scores)} scorers, got {len(named)} names"
        )
    if len(set(named)) < len(named):
        raise InvalidParameter(f"names must differ from one another, got {list(named)}")
    if adjust not in ADJUSTMENTS:
        raise InvalidParameter(f"adjust must be one of {ADJUSTMENTS}, got {adjust!r}")
    return columns, named


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
        [compare_pair(areas, pair, j, window, level) for pair in pairs]
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
            joint_p_value(areas, [j], p_values[j]),
        )
        for j, window in enumerate(windows)
    )
    every = joint_p_value(areas, list(range(len(windows))), p_values)
    return Comparison(names, compared, every, p_values.size, level)


def difference_error(first: FloatArray, second: FloatArray) -> float:
    """Standard error of the difference of two areas, from the influences of the units on either."""
    parts = first - second
    return math.sqrt(inner(parts, parts))


def holm(p_values: FloatArray) -> FloatArray:
    """Holm's adjusted p-values (1979), in the shape of `p_values`."""
    flat = p_values.ravel()
    order = np.argsort(flat, kind="stable")
    steps = np.maximum.accumulate(flat[order] * np.arange(flat.size, 0, -1))
    adjusted = np.empty(flat.size)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted.reshape(p_values.shape)


def compare_pair(
    areas: Areas, pair: tuple[int, int], j: int, window: Window, level: float
) -> tuple[Interval, float]:
    """The difference of two areas with its interval, and its p-value."""
    first, second = pair
    value = float(areas.values[first, j] - areas.values[second, j])
    error = 0.0
    if areas.influence is not None:
        error = difference_error(areas.influence[first, j], areas.influence[second, j])
    if error <= EPSILON:
        trials = least_trials(areas.effective, window)
        return one_sided_table(value, trials, level), two_sided(math.sqrt(trials * abs(value)))
    reach = quantile(level, areas.degrees) * error
    p_value = two_sided(value / error, areas.degrees)
    return Interval(value, max(-1.0, value - reach), min(1.0, value + reach)), p_value


def one_sided_table(value: float, trials: float, level: float) -> Interval:
    """Tango's interval of a paired difference of shares, when `trials` |value| pairs favour one and none the other."""
    size, z_squared = abs(value), normal_quantile(level) ** 2
    _, low, high = wilson_interval(min(1.0, size), trials, level)
    mixed = (trials * size - z_squared) / (trials + z_squared)
    if mixed <= size / (2.0 - size):  # there the likeliest table has pairs of both kinds
        low = mixed
    return Interval(value, low, high) if value >= 0.0 else Interval(value, -high, -low)


def two_sided(z: float, degrees: float = math.inf) -> float:
    """The p-value of an estimate over its standard error, by the normal distribution or Student's."""
    if math.isinf(degrees):
        return math.erfc(abs(z) / math.sqrt(2.0))
    from scipy.special import stdtr

    return float(2.0 * stdtr(degrees, -abs(z)))


def _hotelling(statistic: float, rank: int, degrees: float) -> float:
    """The p-value of Hotelling's T² (1931)."""
    from scipy.special import fdtrc

    spare = degrees - rank + 1.0
    return float(fdtrc(rank, spare, statistic * spare / (degrees * rank)))


def joint_p_value(areas: Areas, windows: list[int], p_values: FloatArray) -> float:
    """P-value of H₀: in each of these windows all scorers have the same area, by Wald's statistic as Hotelling's T²."""
    least = float(holm(p_values).min())
    if areas.influence is None:
        return least
    values = (areas.values[1:, windows] - areas.values[0, windows]).ravel()
    parts = areas.influence[1:, windows] - areas.influence[0, windows]
    parts = parts.reshape(values.size, -1)
    covariance = np.einsum("ig,jg->ij", parts, parts)
    errors = np.sqrt(np.diag(covariance))
    shown = errors > EPSILON
    if np.any(np.abs(values[~shown]) > EPSILON):
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
    rank = int(np.count_nonzero(kept))
    if rank == 1:
        return two_sided(math.sqrt(statistic), areas.degrees)
    degrees = min(areas.effective) - 1.0
    return least if degrees < 2.0 * rank else _hotelling(statistic, rank, degrees)


def _estimate(
    y: ArrayLike,
    columns: Mapping[str, ArrayLike],
    fold: ArrayLike,
    windows: Sequence[Window],
    repeat: ArrayLike | None,
    row: ArrayLike | None,
    sample_weight: ArrayLike | None,
    group: ArrayLike | None,
) -> Areas:
    """The mean areas of the folds, and what each unit adds to them."""
    rows = check_rows(y, columns, sample_weight)
    size = np.shape(y)[0]
    kept = slice(None) if sample_weight is None else np.asarray(sample_weight) > 0
    folds = number_units("fold", fold, size)[kept]
    repeats = np.zeros_like(folds) if repeat is None else number_units("repeat", repeat, size)[kept]
    name, labels = ("row", row) if group is None else ("group", group)
    if labels is not None:
        rows = rows._replace(unit=number_units(name, labels, size)[kept])
    elif repeats.any():
        raise InvalidParameter("row must say which row each score is of, since there are repeats")
    usable = _usable_folds(rows.positive, repeats * (folds.max() + 1) + folds)
    if not usable:
        raise InvalidData("fold must name a fold with rows of both classes, got none")
    of_repeat = repeats[[rows_of_fold[0] for rows_of_fold in usable]]
    return _average(rows, usable, of_repeat, windows, clustered=group is not None)


def _average(
    rows: Rows,
    folds: Sequence[NDArray[np.intp]],
    of_repeat: NDArray[np.intp],
    windows: Sequence[Window],
    *,
    clustered: bool,
) -> Areas:
    """The mean of the repeats' means over their folds, and the influences on it, after LeDell et al. 2015."""
    _, repeat, n_folds = np.unique(of_repeat, return_inverse=True, return_counts=True)
    used = _take(rows, np.concatenate(folds))
    areas = np.empty((len(folds), len(rows.scores), len(windows)))
    influence = np.empty((*areas.shape[1:], used.positive.size))
    effective, start = np.zeros(2), 0
    for place, fold in enumerate(folds):
        held, end = _take(rows, fold), start + fold.size
        areas[place], phi = row_influences(held, windows)
        influence[:, :, start:end] = phi / (n_folds.size * n_folds[repeat[place]])
        effective += effective_units(held)
        start = end
    # Means of means, not sums of shares, which might round 1 to more than 1.
    values = np.mean([areas[repeat == r].mean(axis=0) for r in range(n_folds.size)], axis=0)
    mean = float(effective[0]) / n_folds.size, float(effective[1]) / n_folds.size
    n_means = len(folds) / n_folds.size
    return areas_of_units(values, influence, used, mean, n_means, clustered=clustered)


def _usable_folds(positive: NDArray[np.bool_], fold: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The out-of-fold rows of each fold that has rows of both classes."""
    order = np.argsort(fold, kind="stable")
    starts = np.flatnonzero(np.diff(fold[order])) + 1
    folds = np.split(order, starts)
    return [own for own in folds if positive[own].any() and not positive[own].all()]


def _take(rows: Rows, chosen: NDArray[np.intp]) -> Rows:
    """The rows of one fold, their units numbered anew."""
    return Rows(
        rows.positive[chosen],
        tuple(column[chosen] for column in rows.scores),
        None if rows.weight is None else rows.weight[chosen],
        None if rows.unit is None else np.unique(rows.unit[chosen], return_inverse=True)[1],
    )


class Change(NamedTuple):
    """How much an estimate has changed from one sample to another."""

    value: float
    """The later less the earlier."""
    low: float
    high: float
    """Ends of its confidence interval."""
    p_value: float
    """Of no change, two-sided. In [0, 1]."""


class ScoreShift(NamedTuple):
    """How far the scores of two samples are apart."""

    distance: float
    """Kolmogorov and Smirnov's: the greatest difference of the shares at or above a score. In [0, 1]."""
    higher: float
    """Probability that a later score is above an earlier one, ties counted half: Mann and Whitney's. In [0, 1]."""
    p_value: float
    """Of one distribution, by the distance. In [0, 1]."""


class ScoreSample(NamedTuple):
    """The scores of a sample, as a ROC curve keeps those of a class."""

    thresholds: FloatArray
    """Strictly decreasing, the first one +inf. Shape (n_points,), float64."""
    shares: FloatArray
    """Share of the sample at or above each threshold, from 0 to 1: the curve's FPR of the negatives, its TPR of the
    positives. Shape (n_points,), float64."""
    rows: float
    """Effective number of independent rows, above 0."""


def change(before: Interval, after: Interval, level: float = 0.95) -> Change:
    """Compare two estimates of one thing from independent samples, each with its interval at `level`, by MOVER's eq. 5.

    InvalidData, if an interval does not hold its value. InvalidParameter, if `level` is not strictly between 0 and 1.
    """
    level = check_level(level)
    for name, (value, low, high) in (("before", before), ("after", after)):
        if not low <= value <= high:
            raise InvalidData(f"{name} must lie in its interval [{low}, {high}], got {value}")
    value = after.value - before.value
    down = math.hypot(after.value - after.low, before.high - before.value)
    up = math.hypot(after.high - after.value, before.value - before.low)
    towards_nothing = down if value > 0.0 else up
    if value == 0.0:
        p_value = 1.0
    elif towards_nothing == 0.0:
        p_value = 0.0
    else:
        z = abs(value) / towards_nothing * normal_quantile(level)
        p_value = two_sided(z)
    return Change(value, value - down, value + up, p_value)


def score_shift(before: ScoreSample, after: ScoreSample) -> ScoreShift:
    """Compare the scores of two independent samples by Smirnov's test; O(n log n) in the number of points.

    InvalidData, if thresholds or shares are not those of a sample.
    """
    from scipy.special import kolmogorov

    before, after = _check_sample("before", before), _check_sample("after", after)
    every = np.unique(np.concatenate([before.thresholds[1:], after.thresholds[1:]]))
    distance = float(np.abs(_at_or_above(before, every) - _at_or_above(after, every)).max())
    own, mass = after.thresholds[1:], np.diff(after.shares)
    # of the earlier scores: at or above, and above, each of the later ones
    above = _at_or_above(before, np.nextafter(own, np.inf))
    higher = inner(mass, 1.0 - (_at_or_above(before, own) + above) / 2.0)
    rows = before.rows * after.rows / (before.rows + after.rows)
    p_value = float(kolmogorov(math.sqrt(rows) * distance))
    return ScoreShift(distance, min(max(higher, 0.0), 1.0), p_value)


def _check_sample(name: str, sample: ScoreSample) -> ScoreSample:
    thresholds, shares = (np.asarray(each, dtype=np.float64) for each in sample[:2])
    rows = sample.rows
    if not (thresholds.ndim == 1 and thresholds.shape == shares.shape and thresholds.size >= 2):
        raise InvalidData(
            f"thresholds and shares of {name} must be vectors of one length, 2 or more, "
            f"got {thresholds.shape} and {shares.shape}"
        )
    check_thresholds(f"thresholds of {name}", thresholds)
    check_rates(f"shares of {name}", shares)
    if not 0.0 < rows < math.inf:
        raise InvalidData(f"rows of {name} must be positive and finite, got {rows}")
    return ScoreSample(thresholds, shares, rows)


def _at_or_above(sample: ScoreSample, scores: FloatArray) -> FloatArray:
    """Share of the sample at or above each of the scores."""
    place = np.searchsorted(-sample.thresholds, -scores, side="right") - 1
    return sample.shares[place]
