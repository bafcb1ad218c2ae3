"""Paired tests of AUC differences: between scorers on the same rows or folds, or of one scorer between two samples.

Each pair of scorers over each window has a difference with an interval and a p-value, adjusted over all of them, and
there is a joint test for each window and for all.

**A pair over a window** has the difference, interval and tests of `estimates`: for two AUCs without weights this is the
test of DeLong et al., for windows that of He & Escobar, for units Obuchowski's. The joint test is for each window, and
for all windows at once.

**Few negatives in the window.** A window that holds fewer than three effective negatives, in each fold, has no p-values
(see `estimates`); `Comparison.warnings` says how many are needed.

**Groups.** Student's t with m degrees of freedom replaces the normal distribution (see `intervals`).

Cross-validation
----------------
The scores of two folds come from two fitted rankers and may have different scales. Pooling them would give a curve of
no ranker, and DeLong's interval would lose its level. Here each fold has its own curve. With V_r folds in repeat r of
R, the area and the influence of a row (see `intervals`) are

    A = (1/R) Σ_r (1/V_r) Σ_f A_rf,   φ_i = (1/R) Σ_r φ_i,rf / V_r with f the fold of row i in repeat r,

and Σ φ_i² over rows, or over units after summing in each, is the variance of A for rankers that are given. A row enters
once, however often it was scored: repeats make the estimate more stable, but they are not new rows, and do not reduce
the variance as new rows would. The factor r = e / (e − F) allows for the F means subtracted, one per fold, from e
effective units; both are summed over the folds of a repeat and averaged over the repeats. All scorers of a comparison
have the same folds.

The rankers are not given, though: they were trained on the rows that evaluate each other. Let pairs of rows interact,
by what one contributes to the training and the other to the evaluation. A pair enters A if its rows are in different
folds, which has the probability p = 1 − 1/V. The variance of such terms is p² h² of A's mean over all divisions into
folds, and p (1 − p) h² from one division to another: V − 1 times less. So the variance τ² of the means of the repeats,
which can be observed, shows the other:

    Var A = Σ φ_i² + (V − 1 + 1/R) τ²,   τ² = Σ_r (A_r − A)² / (R − 1).

Some of these terms are in Σ φ_i², too, so the sum is rather too large; it also makes up for what the target adds (see
below). It is written as R more units, of influence √((V − 1 + 1/R) / (R − 1)) (A_r − A), so that covariances, degrees
of freedom and tests contain it. Without repeats nothing shows τ², and the interval is too short if rows are few and
hardly tell the classes apart (docs/statistics-evidence.md).

With repeats, the target is the area, on future rows, of a ranker that is trained on all rows. (The mean of such areas
over samples is covered, too.) The rankers of the folds have fewer rows, so A is rather below it. Without repeats it is
the mean area of the fitted rankers. A fold without rows of both classes has no area and is left out.

Two samples
-----------
**Areas.** Two independent estimates have an interval each, of any of the kinds above. The interval of their difference
recovers the variances from the ends of the two (MOVER): with estimates a and b and intervals [l, u] of one level,

    b − a − √((b − l_b)² + (u_a − a)²)   to   b − a + √((u_b − b)² + (a − l_a)²).

Each end uses the variance near it, so neither the intervals nor the estimates need be symmetric; with symmetric
intervals it is the usual interval, with Wilson's of two proportions it is Newcombe's. The p-value is that of a normal
distribution whose standard error is taken from the end towards 0: it is below 1 − level exactly if the interval
excludes 0.

**Scores.** The scores of one class in two samples, each as a curve stores them: the fraction at or above every score.
The distance is Kolmogorov and Smirnov's, D = max |S₁ − S₂|, its p-value that of the limit distribution at
√(n₁ n₂ / (n₁ + n₂)) D with effective numbers of rows. With ties and in small samples the p-value is rather too large.
If the later scores are a series, the effective numbers are smaller by the mean of the variances of its cumulative
shares over that of independent rows, at tenths of the earlier scores (see `serial`). The p-value is the mean over the
distribution of that estimate.

References
----------
DeLong, DeLong & Clarke-Pearson, "Comparing the areas under two or more correlated ROC curves", Biometrics 44 (1988).
He & Escobar, "Nonparametric statistical inference method for partial areas under ROC curves", Statistics in Medicine
27 (2008).
LeDell, Petersen & van der Laan, "Computationally efficient confidence intervals for cross-validated area under the ROC
curve estimates", Electronic Journal of Statistics 9 (2015).
Mann & Whitney, "On a test of whether one of two random variables is stochastically larger than the other", Annals of
Mathematical Statistics 18 (1947).
Newcombe, "Interval estimation for the difference between independent proportions", Statistics in Medicine 17 (1998),
method 10.
Smirnov, "Table for estimating the goodness of fit of empirical distributions", Annals of Mathematical Statistics 19
(1948).
Zou & Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27 (2008), eq. 5: MOVER.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.target import number_units
from core.errors import InvalidData, InvalidParameter
from core.metrics.curve import check_rates, check_thresholds
from core.metrics.drift import N_BINS, population_stability
from core.metrics.estimates import (
    Adjustment,
    ComparedMetric,
    Difference,
    Estimates,
    Interval,
    check_scorers,
    combine,
    compare_scorers,
    enough_for_tests,
    estimates_of_units,
    joint_p_value,
    normal_quantile,
    two_sided,
)
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    check_rows,
    effective_units,
    finite_vector,
    inner,
)
from core.metrics.intervals import (
    area_interval,
    area_name,
    missing_test_warning,
    row_influences,
    rows_inside,
    worst_case_trials,
)
from core.metrics.serial import SerialDependence, at_least_independent, serial_dependence
from core.metrics.window import Window, check_level, check_windows


@dataclass(frozen=True)
class WindowComparison:
    """Comparison of scorers over one window of false positive rates.

    Attributes
    ----------
    fpr_min, fpr_max : float in [0, 1]
        The window.

    Examples
    --------
    >>> from core.metrics import compare
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> window = compare(y, [[1, 3, 2, 4, 3, 5, 6, 7], [2, 1, 4, 6, 3, 5, 7, 8]]).windows[0]
    >>> [round(each.value, 3) for each in window.values]
    [0.906, 0.812]
    """

    fpr_min: float
    fpr_max: float
    values: tuple[Interval, ...]
    """Area of each scorer, divided by the width of the window, in the order of the scorers."""
    differences: tuple[Difference, ...]
    """Every pair of scorers, in the order (1, 2), (1, 3), …, (2, 3), …."""
    joint_p_value: float | None
    """For H₀: all areas over this window are equal. None if the window has too few rows for a test."""


@dataclass(frozen=True)
class Comparison:
    """Comparison of scorers on the same rows.

    Examples
    --------
    >>> from core.metrics import compare
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> found = compare(y, [[1, 3, 2, 4, 3, 5, 6, 7], [2, 1, 4, 6, 3, 5, 7, 8]], names=["old", "new"])
    >>> found.names, len(found.windows)
    (('old', 'new'), 1)
    """

    names: tuple[str, ...]
    """Names of the scorers."""
    windows: tuple[WindowComparison, ...]
    """One per window, in the requested order."""
    joint_p_value: float | None
    """For H₀: all areas are equal in every window that is tested. None if no window is."""
    n_tests: int
    """Pairs of scorers times tested windows: the number of tests that the adjusted p-values account for."""
    level: float
    """Confidence level of each interval. In (0, 1)."""
    warnings: tuple[str, ...] = ()
    """Why windows have no p-values, and how many rows they need."""


def compare(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    windows: Sequence[Window] = ((0.0, 1.0),),
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    fold: ArrayLike | None = None,
    repeat: ArrayLike | None = None,
    row: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
) -> Comparison:
    """Compare the AUC or partial AUC of two or more scorers on the same rows, with paired tests.

    Use it to find out whether a new model ranks significantly better. For other metrics use `compare_metrics`.

    Parameters
    ----------
    y, level, sample_weight, group
        As for `auc_interval`.
    scores : sequence of array_like of float, each of shape (n_samples,)
        Scores of two or more scorers. Their scales may differ.
    windows : sequence of (fpr_min, fpr_max)
        Windows of false positive rates; (0, 1) is the AUC.
    fold, repeat, row : array_like, shape (n_samples,), optional
        As for `cross_validated_areas`, for scorers that were cross-validated on the same folds: their mean areas over
        the folds are then compared.
    names : sequence of str, optional
        Names of the scorers, all different. Default: "scores[0]", "scores[1]", …
    adjust : {"holm", "none"}
        Adjustment of the p-values over all pairs and windows.

    Returns
    -------
    Comparison
        Areas, differences and p-values. O(k n log n + k² n m) time and O(k n m) memory for k scorers and m windows.

    Raises
    ------
    InvalidData
        Lengths differ, a value is not finite, a class is empty or has no weight, or no fold has rows of both classes.
    InvalidParameter
        There are fewer than two scorers or no window, a parameter is out of range, or there are repeats but neither
        `row` nor `group`.

    Examples
    --------
    >>> from core.metrics import compare
    >>> y = [1, 1, 0, 1, 0, 0, 1, 0]
    >>> first, second = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2], [0.8, 0.9, 0.3, 0.7, 0.6, 0.2, 0.5, 0.1]
    >>> comparison = compare(y, [first, second], [(0.0, 1.0), (0.0, 0.8)], names=["first", "second"])
    >>> comparison.n_tests
    2
    """
    checked, level = check_windows(windows, least=1), check_level(level)
    columns, named = check_scorers(scores, names, adjust)
    folds = Folds.given(fold, repeat, row)
    areas = estimate(
        y, columns, partial(row_influences, windows=checked), folds, sample_weight, group
    )
    return compare_areas(areas, named, checked, level, adjust)


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
    """Compute the mean over folds of the AUC or partial AUC, with a confidence interval.

    Parameters
    ----------
    y : array_like, shape (n_out_of_fold,)
        Labels of the out-of-fold rows, with one entry each time that a ranker that was not fitted on the row scored it.
        Two distinct values, of which the greater is positive.
    scores : array_like of float, shape (n_out_of_fold,)
        Finite scores; higher means more likely positive, within a fold.
    fold : array_like, shape (n_out_of_fold,)
        Fold of each out-of-fold row: numbers or text.
    windows : sequence of (fpr_min, fpr_max)
        Windows of false positive rates; (0, 1) is the AUC.
    repeat : array_like, shape (n_out_of_fold,), optional
        Repeat of cross-validation that each out-of-fold row belongs to.
    row : array_like, shape (n_out_of_fold,), optional
        Identifies the row behind each out-of-fold row. Required if there are repeats and no `group`.
    level : float in (0, 1)
        Probability that an interval covers, with repeats, the area in the population of a ranker trained on all rows;
        without repeats, the mean area of the rankers of the folds.
    sample_weight : array_like of float, shape (n_out_of_fold,), optional
        Non-negative weights. Within a fold only their ratios matter.
    group : array_like, shape (n_out_of_fold,), optional
        Rows with equal values were drawn together, whatever their folds.

    Returns
    -------
    tuple of Interval
        One per window, as from `partial_auc_interval`. O(n log n + n · n_windows) for n out-of-fold rows.

    Raises
    ------
    InvalidData
        Lengths differ, a value is not finite, or no fold has rows of both classes.
    InvalidParameter
        A parameter is out of range, or there are repeats but neither `row` nor `group`.

    Examples
    --------
    >>> from core.metrics import cross_validated_areas
    >>> y, scores = [1, 1, 0, 1, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    >>> area, = cross_validated_areas(y, scores, fold=[0, 1, 0, 1, 0, 1, 0, 1])
    >>> area.value
    0.75
    """
    checked, level = check_windows(windows, least=1), check_level(level)
    influences, folds = partial(row_influences, windows=checked), Folds(fold, repeat, row)
    areas = estimate(y, {"scores": scores}, influences, folds, sample_weight, group)
    return tuple(area_interval(areas, 0, j, window, level) for j, window in enumerate(checked))


def compare_areas(
    areas: Estimates,
    names: tuple[str, ...],
    windows: Sequence[Window],
    level: float,
    adjust: Adjustment,
) -> Comparison:
    trials = [worst_case_trials(areas.effective, window) for window in windows]
    inside = [rows_inside(areas.effective_for_tests, window, areas.parts) for window in windows]
    tested = [enough_for_tests(min(each), areas.parts) for each in inside]
    metrics = [
        ComparedMetric(areas, j, [n] * len(names), has)
        for j, (n, has) in enumerate(zip(trials, tested, strict=True))
    ]
    found = compare_scorers(metrics, names, level, adjust)
    compared = tuple(
        WindowComparison(
            *window,
            tuple(area_interval(areas, k, j, window, level) for k in range(len(names))),
            found[j].pairs,
            found[j].joint_p_value,
        )
        for j, window in enumerate(windows)
    )
    p_values = [pair.p_value for each in found for pair in each.pairs if pair.p_value is not None]
    every = joint_p_value(areas, [j for j, has in enumerate(tested) if has], p_values)
    missing = (
        missing_test_warning(area_name(window), each, areas.effective_for_tests, areas.parts)
        for window, each in zip(windows, inside, strict=True)
    )
    warned = tuple(words for words in missing if words is not None)
    return Comparison(names, compared, every, len(p_values), level, warned)


class Folds(NamedTuple):
    """The folds of a cross-validation: fold, repeat and row number of each out-of-fold score."""

    fold: ArrayLike
    repeat: ArrayLike | None = None
    row: ArrayLike | None = None

    @classmethod
    def given(
        cls, fold: ArrayLike | None, repeat: ArrayLike | None, row: ArrayLike | None
    ) -> Folds | None:
        """Return the folds given by arrays; None without `fold` (then `repeat` and `row` are InvalidParameter)."""
        if fold is not None:
            return cls(fold, repeat, row)
        if repeat is not None or row is not None:
            raise InvalidParameter("fold must be given if repeat or row is")
        return None


Estimator = Callable[[EvaluatedRows], tuple[FloatArray, FloatArray]]
"""Returns the metrics of each scorer on the rows, shape (n_scorers, n_metrics), and φ of each row, shape
(n_scorers, n_metrics, n_rows)."""


def estimate(
    y: ArrayLike,
    columns: Mapping[str, ArrayLike],
    estimator: Estimator,
    folds: Folds | None,
    sample_weight: ArrayLike | None,
    group: ArrayLike | None,
) -> Estimates:
    """Return every scorer's metrics, on all rows or as means over folds, with the influence of each row or group."""
    if folds is None:
        rows = check_rows(y, columns, sample_weight, group)
        return estimates_of_units(*estimator(rows), rows)
    fold, repeat, row = folds
    rows = check_rows(y, columns, sample_weight)
    size = np.shape(y)[0]
    kept = slice(None) if sample_weight is None else np.asarray(sample_weight) > 0
    number = number_units("fold", fold, size)[kept]
    repeats = np.zeros_like(number)
    if repeat is not None:
        repeats = number_units("repeat", repeat, size)[kept]
    name, labels = ("row", row) if group is None else ("group", group)
    if labels is not None:
        rows = rows._replace(unit=number_units(name, labels, size)[kept])
    elif repeats.any():
        raise InvalidParameter("row must give the row of each score, because there are repeats")
    usable = _usable_folds(rows.positive, repeats * (number.max() + 1) + number)
    if not usable:
        raise InvalidData("fold must include a fold with rows of both classes, got none")
    of_repeat = repeats[[rows_of_fold[0] for rows_of_fold in usable]]
    return _average(rows, usable, of_repeat, estimator, clustered=group is not None)


def _average(
    rows: EvaluatedRows,
    folds: Sequence[NDArray[np.intp]],
    of_repeat: NDArray[np.intp],
    estimator: Estimator,
    *,
    clustered: bool,
) -> Estimates:
    """Return the metrics' means over folds and repeats, with each row's or group's influence (LeDell et al. 2015)."""
    _, repeat, n_folds = np.unique(of_repeat, return_inverse=True, return_counts=True)
    used = rows.take(np.concatenate(folds))
    of_folds, influences, effective = [], [], np.zeros(2)
    for index, fold in enumerate(folds):
        in_fold = rows.take(fold)
        values, phi = estimator(in_fold)
        of_folds.append(values)
        influences.append(phi / (n_folds.size * n_folds[repeat[index]]))
        effective += effective_units(in_fold)
    areas, influence = np.array(of_folds), np.concatenate(influences, axis=-1)
    # Means of means: a sum of fractions might round 1 to more than 1.
    of_repeats = np.array([areas[repeat == r].mean(axis=0) for r in range(n_folds.size)])
    values = of_repeats.mean(axis=0)
    mean = float(effective[0]) / n_folds.size, float(effective[1]) / n_folds.size
    n_means = len(folds) / n_folds.size
    found = estimates_of_units(
        values, influence, used, clustered=clustered, centred_on=(mean, n_means)
    )
    found = replace(found, parts=n_means, repeats=int(n_folds.size))
    if found.influence is None or n_folds.size == 1:
        return found
    of_splits = _influences_of_splits(of_repeats, n_means)
    return replace(found, influence=np.concatenate([found.influence, of_splits], axis=-1))


def _influences_of_splits(of_repeats: FloatArray, n_folds: float) -> FloatArray:
    """Return the units that stand for the rows' effect on the rankers, (n_scorers, n_metrics, n_repeats); see the
    module.

    `of_repeats` has the means of the repeats, (n_repeats, n_scorers, n_metrics).
    """
    n_repeats = len(of_repeats)
    factor = math.sqrt((n_folds - 1.0 + 1.0 / n_repeats) / (n_repeats - 1.0))
    deviations: FloatArray = factor * (of_repeats - of_repeats.mean(axis=0))
    return np.moveaxis(deviations, 0, -1)


def _usable_folds(positive: NDArray[np.bool_], fold: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    order = np.argsort(fold, kind="stable")
    starts = np.flatnonzero(np.diff(fold[order])) + 1
    folds = np.split(order, starts)
    return [own for own in folds if positive[own].any() and not positive[own].all()]


class Change(NamedTuple):
    """The change of an estimate from one sample to another, with interval and p-value."""

    value: float
    """The later estimate minus the earlier one."""
    low: float
    high: float
    """Ends of its confidence interval."""
    p_value: float
    """Two-sided, of H₀: no change. In [0, 1]."""


class ScoreShift(NamedTuple):
    """The difference between the score distributions of two samples."""

    distance: float
    """Kolmogorov and Smirnov's: the greatest difference of the fractions at or above a score. In [0, 1]."""
    higher: float
    """Mann and Whitney's: probability that a later score is above an earlier one, ties counted half. In [0, 1]."""
    p_value: float | None
    """Of H₀: both samples have one distribution, by the distance. In [0, 1]. None if a series is too short for its
    serial dependence."""
    psi: Interval | None
    """Population stability index over tenths of the earlier scores. At least 0. None as `p_value`."""
    bins: tuple[ScoreBin, ...]
    """The tenths, from the lowest scores."""


class ScoreBin(NamedTuple):
    """A range of scores, and the fraction of each sample in it."""

    low: float | None
    """Lowest score of the bin; None: no limit."""
    high: float | None
    """Score that all scores of the bin are below; None: no limit."""
    before: float
    """Fraction of the earlier sample. In [0, 1]."""
    after: float
    """Fraction of the later sample. In [0, 1]."""


class ScoreSample(NamedTuple):
    """The score distribution of a sample: distinct scores and cumulative fractions."""

    thresholds: FloatArray
    """Strictly decreasing, the first one +inf. Shape (n_points,), float64."""
    shares: FloatArray
    """Fraction of the sample at or above each threshold, from 0 to 1: the curve's FPR for the negatives, its TPR for
    the positives. Shape (n_points,), float64."""
    rows: float
    """Effective number of independent rows, above 0."""


def change(before: Interval, after: Interval, level: float = 0.95) -> Change:
    """Return the difference between two independent estimates, with its interval and p-value.

    Both estimates have intervals at `level`, which are combined by MOVER (eq. 5).

    InvalidData: an interval does not contain its value. InvalidParameter: `level` is not strictly between 0 and 1.
    """
    level = check_level(level)
    for name, (value, low, high) in (("before", before), ("after", after)):
        if not low <= value <= high:
            raise InvalidData(f"{name} must be in its interval [{low}, {high}], got {value}")
    value, down, up = combine(after, before, 1.0, -1.0)
    towards_zero = down if value > 0.0 else up
    if value == 0.0:
        p_value = 1.0
    elif towards_zero == 0.0:
        p_value = 0.0
    else:
        z = abs(value) / towards_zero * normal_quantile(level)
        p_value = two_sided(z)
    return Change(value, value - down, value + up, p_value)


def score_shift(
    before: ScoreSample,
    after: ScoreSample,
    level: float = 0.95,
    *,
    series: ArrayLike | None = None,
) -> ScoreShift:
    """Return the difference between the score distributions of two independent samples, by Smirnov's test.

    O(n_points log n_points).

    InvalidData: thresholds or shares are not those of a sample. InvalidParameter: `level`, that of the index's
    interval, is not strictly between 0 and 1.

    level: float in (0, 1).
    series: (n_rows,); the later scores in the order of time, if neighbours may be alike. The earlier sample is taken to
        have the same serial dependence. O(n_rows log n_rows).
    """
    before, after = _check_sample("before", before), _check_sample("after", after)
    every = np.unique(np.concatenate([before.thresholds[1:], after.thresholds[1:]]))
    distance = float(np.abs(_at_or_above(before, every) - _at_or_above(after, every)).max())
    own, mass = after.thresholds[1:], np.diff(after.shares)
    # fractions of the earlier scores at or above, and above, each of the later ones
    above = _at_or_above(before, np.nextafter(own, np.inf))
    higher = inner(mass, 1.0 - (_at_or_above(before, own) + above) / 2.0)
    higher = min(max(higher, 0.0), 1.0)
    at = np.searchsorted(before.shares, np.arange(1, N_BINS) / N_BINS, side="left")
    cutoffs = np.unique(before.thresholds[np.maximum(at, 1)])[::-1]
    old, new = (np.diff([0.0, *_at_or_above(each, cutoffs), 1.0]) for each in (before, after))
    ends = [None, *cutoffs[::-1].tolist(), None]
    limits = zip(pairwise(ends), old[::-1].tolist(), new[::-1].tolist(), strict=True)
    in_bins = tuple(ScoreBin(*pair, *shares) for pair, *shares in limits)
    rows, dependence, inflation, degrees = (before.rows, after.rows), None, 1.0, math.inf
    if series is not None:
        scores = finite_vector("series", series)
        bins = np.searchsorted(-cutoffs, -scores, side="left")
        worth = min(1.0, after.rows / scores.size)
        found = serial_dependence(bins, cutoffs.size + 1, ordered=True, worth=worth)
        if found is None:
            return ScoreShift(distance, higher, None, None, in_bins)
        rows = before.rows / worth, after.rows / worth
        earlier = at_least_independent(found.covariance, old, worth)
        dependence = found._replace(covariance=earlier), found
        inflation, degrees = _inflation(found, new), found.degrees
    p_value = _smirnov(distance, rows, inflation, degrees)
    stability = population_stability(old, new, rows, level, dependence)
    return ScoreShift(distance, higher, p_value, stability.psi, in_bins)


_POINTS = (np.arange(64) + 0.5) / 64  # of a distribution whose mean is taken


def _smirnov(distance: float, rows: tuple[float, float], inflation: float, degrees: float) -> float:
    """Return Smirnov's p-value of a distance between two samples' distribution functions.

    Its variance is `inflation` times that of independent rows, as estimated with `degrees` degrees of freedom.
    """
    from scipy.special import chdtri, kolmogorov

    size = math.sqrt(rows[0] * rows[1] / (rows[0] + rows[1]) / inflation) * distance
    if math.isinf(degrees):
        return float(kolmogorov(size))
    return float(np.mean(kolmogorov(size * np.sqrt(chdtri(degrees, _POINTS) / degrees))))


def _inflation(found: SerialDependence, shares: FloatArray) -> float:
    """Return the factor, at least 1, by which serial dependence increases the variance of cumulative fractions."""
    below = np.cumsum(shares)[:-1]
    independent = float((below * (1.0 - below)).sum())
    if independent <= 0.0:
        return 1.0
    sums = found.covariance.cumsum(axis=0).cumsum(axis=1)
    return max(1.0, float(np.trace(sums[:-1, :-1])) / independent)


def _check_sample(name: str, sample: ScoreSample) -> ScoreSample:
    thresholds, shares = (np.asarray(each, dtype=np.float64) for each in sample[:2])
    rows = sample.rows
    if not (thresholds.ndim == 1 and thresholds.shape == shares.shape and thresholds.size >= 2):
        raise InvalidData(
            f"thresholds and shares of {name} must be vectors of the same length, at least 2, got "
            f"{thresholds.shape} and {shares.shape}"
        )
    check_thresholds(f"thresholds of {name}", thresholds)
    check_rates(f"shares of {name}", shares)
    if not 0.0 < rows < math.inf:
        raise InvalidData(f"rows of {name} must be positive and finite, got {rows}")
    return ScoreSample(thresholds, shares, rows)


def _at_or_above(sample: ScoreSample, scores: FloatArray) -> FloatArray:
    point = np.searchsorted(-sample.thresholds, -scores, side="right") - 1
    return sample.shares[point]
