"""AUC and partial AUC with confidence intervals, from the influences of rows.

Let ROC be the curve through tie groups, w the weights, P and N the class masses and [a, b] the window. Both classes
enter the area A = ∫_a^b ROC(u) du as sums of independent terms, to first order:

* positives, exactly: ROC is the mean of the curves of single positives, so A = Σ w_i V_i / P, where the *placement
  value* V_i is the part of the window that lies below positive i: the width of [a, b] to the right of its FPR. Inside a
  tie the single curve is a ramp;
* negatives: with S₊ and S₋ the survival functions, moving mass ε towards score y moves the threshold at rate u by
  (1[y ≥ c] − S₋(c)) ε / f₋(c), and so A by −ε ∫ f₊(c) (1[y ≥ c] − S₋(c)) dc over the thresholds c of the window, which
  is ε S₊(c) at c = y clipped into the window, up to a constant. So negative k counts with h_k, the height of
  the curve at its own FPR clipped into [a, b] (averaged over its tie's stretch).

The *influence* of a row is φ_i = w_i (V_i − V̄) / P, or φ_k = w_k (h_k − h̄) / N: the change of the area, to first
order, if the row is left out. Rows of one *unit* (several rows of a patient) are drawn together, so their influences
are summed before they are squared. Let e = (Σm)² / Σm² be the effective number of units of a class, m being the weight
of each unit in it, and r = e / (e − 1). With u_g = Σ √r φ over the rows of unit g,

    Var A = Σ u_g²,   Cov(A, A') = Σ u_g u'_g   for any two areas on the same units.

When each row is a unit no u mixes the classes. For [0, 1] without weights this is then the variance and covariance of
DeLong et al. to the last term; for other windows it is He & Escobar's and, before smoothing, that of Dodd & Pepe's
estimator. With units it is Obuchowski's, except for her factors I / (I − 1), which count units: ours also reflect how
unequal the units are, and keep every variance above zero. With few units the variance is itself uncertain, whatever the
number of rows: an area over its standard error is then compared with Student's t with min(e₊, e₋) − 1 degrees of
freedom.

For single rows the analytic variance is

    Var A = r₊ Σ w_i² (V_i − A)² / P² + r₋ Σ w_k² (h_k − h̄)² / N², with r = e / (e − 1), e = (Σw)² / Σw²,

which for the AUC without weights is DeLong's.

**The interval** is that of `estimates` for n = min(e₊, e₋ · (b − a)) trials; for the AUC this is Birnbaum & Klose's
bound, and where the sample shows some variance it is mixed with Hanley & McNeil's.

Rows of a kind that the sample lacks altogether are beyond every interval. `area_warnings` says so where an interval
ends within four rows of 0 or 1, and where it reaches down less than the area would fall by such rows: n rows lack a
kind that makes up 1 − .2^(1/n) of the population in 20 % of samples, and if these rows rank last, the area is that
fraction less. Elsewhere misses are about as frequent as the level says.

References
----------
Birnbaum & Klose, "Bounds for the variance of the Mann-Whitney statistic", Annals of Mathematical Statistics 28 (1957).
DeLong, DeLong & Clarke-Pearson, "Comparing the areas under two or more correlated ROC curves", Biometrics 44 (1988).
Dodd & Pepe, "Partial AUC estimation and regression", Biometrics 59 (2003).
He & Escobar, "Nonparametric statistical inference method for partial areas under ROC curves", Statistics in Medicine
27 (2008).
Obuchowski, "Nonparametric analysis of clustered ROC curve data", Biometrics 53 (1997).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike

from core.base.warning import warn
from core.kernels import kernel
from core.metrics.curve import (
    ClassTotals,
    RocCurve,
    area_of,
    curve_of,
    misrank_fraction_of,
    thin_curve_of,
    tied_fraction_of,
    totals_of,
)
from core.metrics.estimates import (
    EPSILON,
    Estimates,
    Interval,
    _Values,
    enough_for_tests,
    estimates_of_units,
    influence_of_rows,
    mean_variances,
    proportion_interval,
    rows_for_tests,
)
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    GroupBlock,
    ScoreGroups,
    check_rows,
    effective_units,
    group_rows,
    has_enough,
    spans,
    tie_groups,
)
from core.metrics.window import WHOLE, Window, check_level, check_window, check_windows

UNSEEN_ROWS = 4.0
"""An interval that ends within this number of rows of 0 or 1 can miss what rows outside the sample are like."""


UNSEEN_KIND = 0.2
"""Probability with which a sample lacks the kind of rows that an interval must allow for to have no warning."""


class PartialArea(NamedTuple):
    """A window of false positive rates and the partial AUC over it.

    Attributes
    ----------
    fpr_min, fpr_max : float in [0, 1]
        The window.

    Examples
    --------
    >>> from core.metrics import summarise
    >>> found = summarise([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], windows=[(0.0, 0.5)])
    >>> round(found.partial_aucs[0].interval.value, 3)
    0.778
    """

    fpr_min: float
    fpr_max: float
    interval: Interval
    """The interpolated partial AUC, divided by the width of the window."""


@dataclass(frozen=True)
class Summary:
    """The ROC curve, areas with intervals and counts of one ranking.

    Attributes
    ----------
    positives, negatives : int
        Rows of each class with positive weight.

    Examples
    --------
    >>> from core.metrics import summarise
    >>> found = summarise([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6])
    >>> found.positives, round(found.auc.value, 3)
    (3, 0.889)
    """

    curve: RocCurve
    """The full curve, with one point per distinct score."""
    auc: Interval
    """The AUC, with ties counted half and DeLong's interval."""
    partial_aucs: tuple[PartialArea, ...]
    """One per requested window, in that order."""
    misrank_fraction: float
    """Fraction of discordant pairs of a positive and a negative, ties included. In [0, 1]."""
    ties: float
    """Fraction of pairs of a positive and a negative with equal scores. In [0, 1]."""
    positives: int
    negatives: int
    totals: ClassTotals
    """Total weight and effective number of rows of each class."""
    level: float
    """Confidence level of the intervals. In (0, 1)."""
    groups: ScoreGroups
    """The rows by score, from which other metrics of the same ranking are computed."""


def summarise(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    windows: Sequence[tuple[float, float]] = ((0.0, 0.05),),
    level: float = 0.95,
    *,
    group: ArrayLike | None = None,
) -> Summary:
    """Compute the ROC curve, the areas with intervals and the counts of a ranking, with one sort.

    Parameters
    ----------
    y, scores, sample_weight, level, group
        As for `auc_interval`.
    windows : sequence of (fpr_min, fpr_max)
        Windows of false positive rates for partial AUCs.

    Returns
    -------
    Summary
        The results. O(n log n + n · len(windows)).

    Examples
    --------
    >>> from core.metrics import summarise
    >>> y, scores = [1, 1, 0, 1, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    >>> summary = summarise(y, scores, windows=[(0.0, 0.5)])
    >>> summary.auc.value, summary.misrank_fraction, summary.positives
    (0.75, 0.25, 4)
    """
    level = check_level(level)
    checked = check_windows(windows)
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    groups = tie_groups(rows)
    every, areas = [WHOLE, *checked], None
    if rows.unit is not None:
        estimated = estimate_areas(rows, every)
        areas = [area_interval(estimated, 0, j, window, level) for j, window in enumerate(every)]
    return _summary(groups, curve_of(groups), totals_of(rows, groups), checked, level, areas)


def summarise_groups(
    groups: ScoreGroups,
    windows: Sequence[tuple[float, float]] = ((0.0, 0.05),),
    level: float = 0.95,
    *,
    max_points: int,
    n_first: int = 0,
) -> Summary:
    """Return the same as `summarise` of tie groups, which may be in files; the curve is thinned by `RocCurve.thin`.

    InvalidParameter: as `summarise` and `RocCurve.thin`. Memory: that of the curve. The metrics are those of
    `summarise` bit for bit where rows have no weights; with weights, sums are taken in another order.

    groups: such as `core.metrics.runs.ScoreRuns.merge` returns.
    windows, level: as `summarise`.
    max_points, n_first: as `RocCurve.thin`.
    """
    level = check_level(level)
    checked = check_windows(windows)
    curve = thin_curve_of(groups, max_points, n_first=n_first)
    masses = float(groups.flagged_positive[-1]), float(groups.flagged_negative[-1])
    totals = ClassTotals(*masses, *effective_of(groups))
    return _summary(groups, curve, totals, checked, level)


def _summary(
    groups: ScoreGroups,
    curve: RocCurve,
    totals: ClassTotals,
    windows: Sequence[Window],
    level: float,
    areas: Sequence[Interval] | None = None,
) -> Summary:
    """Summarise tie groups, given their curve and totals.

    `areas` are the intervals over [0, 1] and the windows; None if rows were drawn one by one: then they are computed.
    """
    if areas is None:
        areas = [partial_auc_interval_of(groups, *each, level) for each in (WHOLE, *windows)]
    auc, *partial = areas
    positives, negatives = groups.counts
    return Summary(
        curve=curve,
        auc=auc,
        partial_aucs=tuple(
            PartialArea(*window, area) for window, area in zip(windows, partial, strict=True)
        ),
        misrank_fraction=misrank_fraction_of(groups),
        ties=tied_fraction_of(groups),
        positives=positives,
        negatives=negatives,
        totals=totals,
        level=level,
        groups=groups,
    )


def auc_interval(
    y: ArrayLike,
    scores: ArrayLike,
    level: float = 0.95,
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> Interval:
    """Compute the AUC with a confidence interval (DeLong).

    Parameters
    ----------
    y, scores
        As for `auc`.
    level : float in (0, 1)
        Probability that the interval covers the AUC of the population.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights. For intervals and tests only their ratios matter.
    group : array_like, shape (n_samples,), optional
        Rows with equal values were drawn together, such as several rows of one patient. They may be of both classes.
        The variance is then that of groups, and Student's t replaces the normal distribution.

    Returns
    -------
    Interval
        0 ≤ low ≤ value ≤ high ≤ 1. O(n log n). If the sample does not show its variance, it is Wilson's interval for
        the greatest possible variance; see the module `intervals`.

    Warns
    -----
    UserWarning
        As for `partial_auc_interval`.

    Examples
    --------
    >>> from core.metrics import auc_interval
    >>> y, scores = [1, 1, 0, 1, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    >>> print("{:.3f}, from {:.3f} to {:.3f}".format(*auc_interval(y, scores)))
    0.750, from 0.319 to 1.000
    """
    return partial_auc_interval(y, scores, level=level, sample_weight=sample_weight, group=group)


def partial_auc_interval(
    y: ArrayLike,
    scores: ArrayLike,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> Interval:
    """Compute the partial AUC with a confidence interval.

    The area is interpolated and divided by the width of the window.

    Parameters
    ----------
    y, scores, sample_weight, group
        As for `auc_interval`.
    fpr_min, fpr_max : float in [0, 1]
        The window of false positive rates, fpr_min < fpr_max.
    level : float in (0, 1)
        Probability that the interval covers the partial AUC of the population.

    Returns
    -------
    Interval
        0 ≤ low ≤ value ≤ high ≤ 1. O(n log n).

    Warns
    -----
    UserWarning
        The interval may miss the true value more often than it should, because rows that such a sample may lack count
        for much; it names the number of rows that are enough.

    Examples
    --------
    >>> from core.metrics import partial_auc_interval
    >>> y, scores = [1, 1, 0, 1, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    >>> print("{:.3f}, from {:.3f} to {:.3f}".format(*partial_auc_interval(y, scores, 0.0, 0.5)))
    0.625, from 0.143 to 1.000
    """
    window, level = check_window(fpr_min, fpr_max), check_level(level)
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    found = interval_of_rows(rows, window, level)
    n_positive = int(np.count_nonzero(rows.positive))
    counts = n_positive, rows.positive.size - n_positive
    for words in area_warnings([window], [found], counts, effective_units(rows)):
        warn(words)
    return found


def interval_of_rows(rows: EvaluatedRows, window: Window, level: float) -> Interval:
    if rows.unit is not None:
        return area_interval(estimate_areas(rows, [window]), 0, 0, window, level)
    return partial_auc_interval_of(tie_groups(rows), *window, level)


def estimate_areas(rows: EvaluatedRows, windows: Sequence[Window]) -> Estimates:
    """Return the area of every scorer over every window, with the influence of each row or group on it.

    O(n_scorers · (n log n + n · n_windows)) time, O(n_scorers · n_windows · n) memory.
    """
    return estimates_of_units(*row_influences(rows, windows), rows)


def row_influences(rows: EvaluatedRows, windows: Sequence[Window]) -> tuple[FloatArray, FloatArray]:
    """Return areas, (n_scorers, n_windows), and influences φ of rows, (n_scorers, n_windows, n_rows)."""
    values = np.empty((len(rows.scores), len(windows)))
    influence = np.empty((*values.shape, rows.positive.size))
    for scorer in range(len(rows.scores)):
        groups, order = group_rows(rows, scorer)
        for j, window in enumerate(windows):
            values[scorer, j] = area_of(groups, *window)
            of_classes = centred_influences(groups, window)
            influence[scorer, j, order] = influence_of_rows(rows, groups, order, of_classes)
    return values, influence


def influences(
    groups: ScoreGroups, fpr_min: float, fpr_max: float
) -> tuple[FloatArray, FloatArray]:
    """Return a positive's placement value and a negative's curve height in each tie group, (n_groups,) each.

    They are V and h of the module's docstring, not divided by the window's width. Over [0, 1] they are the structural
    components of DeLong et al. 1988, over windows those of He & Escobar 2008.

    O(n_groups).
    """
    placement, height = groups.empty(), groups.empty()
    for (start, stop), (_, *values) in zip(
        spans(0, len(groups)), _influence_blocks(groups, fpr_min, fpr_max), strict=True
    ):
        placement[start:stop], height[start:stop] = values
    return placement, height


def _influence_blocks(
    groups: ScoreGroups, fpr_min: float, fpr_max: float
) -> Iterator[tuple[GroupBlock, FloatArray, FloatArray]]:
    ends = _ends(groups.flagged_negative, groups.flagged_positive, fpr_min, fpr_max)
    for block in groups.blocks():
        placement, height = np.empty((2, block.scores.size))
        _influences(block.flagged_negative, block.flagged_positive, ends, placement, height)
        yield block, placement, height


def influences_of_masses(
    negative: FloatArray, positive: FloatArray, fpr_min: float, fpr_max: float
) -> tuple[FloatArray, FloatArray]:
    """Return `influences` from the weight of each class at or above each score, after a leading 0."""
    placement, height = np.empty((2, negative.size - 1))
    ends = _ends(negative, positive, fpr_min, fpr_max)
    _influences(negative, positive, ends, placement, height)
    return placement, height


def _ends(negative: FloatArray, positive: FloatArray, fpr_min: float, fpr_max: float) -> FloatArray:
    """Return the constants of the kernel `_influences`: class totals, window, and curve heights at its ends."""
    heights = [_middle_height(negative, positive, fpr) for fpr in (fpr_min, fpr_max)]
    return np.array([negative[-1], positive[-1], fpr_min, fpr_max, *heights])


def _middle_height(negative: FloatArray, positive: FloatArray, fpr: float) -> float:
    """Return the curve's height at an FPR, at a vertical step its middle; the curve is given by prefix sums."""
    total, all_positive = float(negative[-1]), float(positive[-1])
    right = bisect_left(negative, fpr, key=lambda mass: float(mass) / total)
    end = float(negative[right]) / total
    if end > fpr:
        start = float(negative[right - 1]) / total
        fraction = (fpr - start) / (end - start)
        rise = float(positive[right] - positive[right - 1])
        return (float(positive[right - 1]) + fraction * rise) / all_positive
    top = bisect_right(negative, fpr, lo=right, key=lambda mass: float(mass) / total) - 1
    return float(positive[right] + positive[top]) / 2.0 / all_positive


def centred_influences(groups: ScoreGroups, window: Window) -> tuple[FloatArray, FloatArray]:
    """Return the influence of a positive and of a negative of weight 1 in each tie group, (n_groups,) each."""
    values = influences(groups, *window)
    sums = np.zeros((2, 2))
    for (start, stop), block in zip(spans(0, len(groups)), groups.blocks(), strict=True):
        for k, mass in enumerate((block.positive, block.negative)):
            sums[k] += mass.sum(), (mass * values[k][start:stop]).sum()
    for of_class, (total, product) in zip(values, sums, strict=True):
        for start, stop in spans(0, len(groups)):
            some = of_class[start:stop]
            some -= product / total
            some /= total * (window[1] - window[0])
    return values


def partial_auc_interval_of(
    groups: ScoreGroups,
    fpr_min: float,
    fpr_max: float,
    level: float,
) -> Interval:
    window = fpr_min, fpr_max
    value, variance = area_of(groups, *window), area_variance(groups, *window)
    effective = effective_of(groups)
    trials = worst_case_trials(effective, window)
    return proportion_interval(
        value, variance, trials, level, classes=classes_of(effective, window)
    )


def area_interval(areas: Estimates, scorer: int, j: int, window: Window, level: float) -> Interval:
    effective = areas.effective
    trials = worst_case_trials(effective, window)
    # The rankers of folds depend on the rows that evaluate the others. Where no repeats show by how much, the narrower
    # bound would cover 91 % of 60 rows.
    known = areas.parts == 1.0 or areas.repeats > 1
    classes = classes_of(effective, window) if known else None
    return areas.interval(scorer, j, trials, level, classes)


def classes_of(effective: tuple[float, float], window: Window) -> tuple[float, float] | None:
    """Return the argument `classes` of `proportion_interval`: effective numbers for the AUC, else None."""
    return effective if window == WHOLE else None


def area_warnings(
    windows: Sequence[Window],
    areas: Sequence[Interval],
    rows: tuple[int, int],
    effective: tuple[float, float],
) -> list[str]:
    """Return warnings about areas' intervals that may be unreliable, with the number of rows needed.

    areas: one per window.
    rows, effective: number of rows of each class, and their `effective_units`.
    """
    found = (_area_warning(*each, rows, effective) for each in zip(windows, areas, strict=True))
    return [words for words in found if words is not None]


def missing_test_warning(
    name: str, inside: tuple[float, float], effective: tuple[float, float], parts: float = 1.0
) -> str | None:
    """Return why differences by a metric have no p-values, and how many rows they need; None if they have some.

    name: what messages call the metric.
    inside: effective rows of each class in the metric's window, in each of the parts. 0 where a window holds no row:
        then no number of rows like these is known to be enough, and none is named.
    effective: `Estimates.effective_for_tests`.
    parts: number of folds that the rows are divided into.
    """
    scarcer = min(inside)
    if enough_for_tests(scarcer, parts):
        return None
    scarce = 0 if inside[0] <= inside[1] else 1
    kind = ("positives", "negatives")[scarce]
    least = rows_for_tests(parts)
    windowed = inside[scarce] * parts < effective[scarce] * (1.0 - 1e-9)
    where = "in the window" if windowed else ""
    where = " ".join(filter(None, (where, "" if parts == 1.0 else "in each fold")))
    words = (
        f"it was not tested whether models differ in {name}: a test needs at least {least} independent {kind}"
        f"{' ' + where if where else ''}, but there are {scarcer:.2g}"
    )
    if scarcer == 0.0:
        return words
    needed, of_all = (
        math.ceil(n * least / scarcer - 1e-6) for n in (effective[scarce], sum(effective))
    )
    return f"{words}. About {needed:,} {kind}, or {of_all:,} rows like these, are enough"


def rows_inside(
    effective: tuple[float, float], window: Window, parts: float = 1.0
) -> tuple[float, float]:
    """Return the effective positives, and the effective negatives inside a window, per part of the rows."""
    return effective[0] / parts, effective[1] * (window[1] - window[0]) / parts


def area_name(window: Window) -> str:
    return "the AUC" if window == WHOLE else f"the partial AUC (FPR {window[0]:g} to {window[1]:g})"


def _area_warning(
    window: Window, area: Interval, rows: tuple[int, int], effective: tuple[float, float]
) -> str | None:
    distance = min(area.value, 1.0 - area.value)
    n = worst_case_trials(effective, window)
    if distance <= EPSILON:
        return None  # there the variance is the greatest possible one
    # A sample of n rows lacks a kind that makes up this share of the population with the probability UNSEEN_KIND.
    unseen = area.value * -math.expm1(math.log(UNSEEN_KIND) / n)
    near, reach = min(1.0 - area.low, area.high) * n < UNSEEN_ROWS, area.value - area.low
    if not near and reach >= unseen:
        return None
    scarce = 0 if effective[0] <= n else 1
    kind = ("positives", "negatives")[scarce]
    count, worth = rows[scarce], effective[scarce]
    known = f"{count:,} {kind}"
    if not has_enough(worth, count):
        known += f" (equivalent to {worth:.1f} independent ones)"
    if scarce == 1 and window != WHOLE:
        known += f" ({n:.2g} of them in the window)"
    # With so many rows, the area itself is UNSEEN_ROWS of them away from 0 and 1, and the interval reaches far enough:
    # its width falls with the root of their number.
    factor = UNSEEN_ROWS / (distance * n) if near else 1.0
    if reach > 0.0:
        factor = max(factor, (unseen / reach) ** 2)
    needed = f"about {math.ceil(count * factor):,} {kind} are"
    if factor > _MAX_FACTOR:
        needed = f"more than {_MAX_FACTOR:g} times as many are"
    return (
        f"the confidence interval of {area_name(window)} may be too narrow, because it is from only {known}. Do not "
        f"base a decision on it: {needed} needed for a reliable interval"
    )


_MAX_FACTOR = 10.0
"""Greatest multiple of the rows there are that is stated as needed: near 0 and 1, a projection farther than that says
nothing."""


def worst_case_trials(effective: tuple[float, float], window: Window) -> float:
    """Return the trials of a proportion with the maximum variance that an area can have."""
    return min(effective[0], effective[1] * (window[1] - window[0]))


def effective_of(groups: ScoreGroups) -> tuple[float, float]:
    sums = np.zeros((2, 2))
    for block in groups.blocks():
        sums[0] += block.positive.sum(), block.positive_squares.sum()
        sums[1] += block.negative.sum(), block.negative_squares.sum()
    positive, negative = (float(mass) ** 2 / float(squares) for mass, squares in sums)
    return positive, negative


def area_variance(groups: ScoreGroups, fpr_min: float, fpr_max: float) -> float | None:
    """Return the variance of the partial AUC (normalised by width); None if a class has only one effective row.

    Over [0, 1] and without weights it is that of DeLong et al. 1988, eqs. 3 to 6.
    """

    def of_classes() -> Iterator[_Values]:
        for block, placement, height in blocks():
            yield (
                (placement, block.positive, block.positive_squares),
                (height, block.negative, block.negative_squares),
            )

    def blocks() -> Iterable[tuple[GroupBlock, FloatArray, FloatArray]]:
        return [only] if only else _influence_blocks(groups, fpr_min, fpr_max)

    only = None
    if groups.is_one_block:  # computed once
        (only,) = _influence_blocks(groups, fpr_min, fpr_max)
    positive, negative = mean_variances(of_classes)
    if positive is None or negative is None:
        return None
    return (positive + negative) / (fpr_max - fpr_min) ** 2


_PREFIX_SUMS = numba.types.Array(numba.float64, 1, "C", readonly=True)


@kernel(
    numba.void(
        _PREFIX_SUMS,
        _PREFIX_SUMS,
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
    )
)
def _influences(negative, positive, ends, placement, height):  # type: ignore[no-untyped-def]
    """Write placement values and curve heights (`influences`) of consecutive tie groups.

    negative, positive: prefix sums of each class's weight; ends: total weights of negatives and positives, the window,
    and the heights of the curve at its ends.
    """
    all_negative, all_positive = ends[0], ends[1]
    fpr_min, fpr_max, of_start, of_end = ends[2], ends[3], ends[4], ends[5]
    start, scale = negative[0] / all_negative, 0.5 / all_positive
    for i in range(len(placement)):
        end = negative[i + 1] / all_negative
        width = end - start
        if start >= fpr_min and end <= fpr_max:
            placement[i] = fpr_max - (start + end) / 2.0
            height[i] = (positive[i] + positive[i + 1]) * scale
        elif width == 0.0:  # positives alone, outside
            placement[i], height[i] = max(fpr_max - max(end, fpr_min), 0.0), 0.0
        else:
            # The fractions of the tie's own stretch of FPR at which the window begins and ends.
            enters = min(max((fpr_min - start) / width, 0.0), 1.0)
            leaves = min(max((fpr_max - start) / width, 0.0), 1.0)
            inside, middle = leaves - enters, (enters + leaves) / 2.0
            placement[i] = width * inside * middle + max(fpr_max - max(end, fpr_min), 0.0)
            rise = middle * (positive[i + 1] - positive[i])
            height[i] = enters * of_start + (1.0 - leaves) * of_end
            height[i] += inside * (positive[i] + rise) / all_positive
        start = end
