"""Measuring metrics of a ranking, with intervals and tests: `measure`, `compare_metrics` and their parts.

Each metric θ of a ranking is a function of the two classes' distributions of scores and of the prevalence π. To first
order it is a sum over rows: positive i counts with w_i (U_i − Ū + S) / P, negative k with w_k (D_k − D̄ − S) / N, where
U and D are the derivatives of θ in the direction of one row of its class, and S is that by the log odds of π. Variance,
intervals, groups, covariance of several scorers and paired tests follow: see `estimates`.

So the intervals are for a new sample, whose rows are drawn one by one: its prevalence varies, too. With
`fixed_prevalence` S is left out: the interval is then for a population with the prevalence of these rows, such as one
of which a given number of rows of each class was drawn. Areas do not depend on the prevalence: their S is 0.

`functionals` has the metrics, each with its formulas.

The influences do not have the variance of the first ranks of a list, which matters to average precision with few
positives (`Metric.hidden_variance`). Its distribution is skewed, so only the lower end of the interval has that
variance and Student's t for the number of positives.

A p-value against chance is one-sided, of H₀: the scores say nothing. Holm's adjusts over all metrics of one call. The
value of chance moves with the prevalence as θ then does, so the prevalence is fixed in the test.

* **Areas**: under H₀ all orders of the rows are equally likely, which gives θ a mean μ and a variance σ². The p-value
  is that of the Beta distribution on [0, 1] with these two: it is skewed as θ is near 0, and normal for many rows. For
  the AUC this is the test of Mann & Whitney. With units of several rows, σ² is multiplied by what the units add to the
  variance of θ, and Student's t replaces the normal distribution.
* **NDCG**: under H₀ it is a sum of discounts over the ranks of the positives, a sample without replacement. All cases
  of the first ten rows are listed; the sum over the other rows has a gamma distribution with its three moments. With
  groups, as for areas.
* **Other metrics**: the logit of θ, less that of chance, over its standard error. Average precision has the greater of
  both p-values: with few positives its null distribution has a heavier tail than either.

With fewer than `MIN_CLASS_ROWS` effective rows of a class, or three in the window of an area, there is none: the test
would err several times too often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.base.parameters import check_value
from core.metrics.comparison import Folds, estimate
from core.metrics.curve import ClassTotals, RocCurve
from core.metrics.estimates import (
    EPSILON,
    MIN_DEGREES,
    Adjustment,
    ComparedMetric,
    Difference,
    Estimates,
    Interval,
    adjust_present,
    check_metrics,
    check_scorers,
    compare_scorers,
    enough_for_tests,
    estimates_of_units,
    influence_of_rows,
    mean_variance,
    proportion_interval,
    quantile,
    rescaled,
)
from core.metrics.functionals import MODULES  # noqa: F401 - declares the names
from core.metrics.functionals.base import (
    METRICS,
    Derivatives,
    Masses,
    Metric,
    check_scale_free,
    masses_on_curve,
)
from core.metrics.groups import (
    MIN_CLASS_ROWS,
    EvaluatedRows,
    FloatArray,
    check_rows,
    effective_units,
    group_rows,
    has_enough,
    inner,
    tie_groups,
)
from core.metrics.intervals import missing_test_warning
from core.metrics.window import (
    check_level,
)


def metric_named(name: str) -> Metric:
    """Return the metric with a name, such as "auc", "pauc:0,0.05" or "precision@100".

    Parameters
    ----------
    name : str
        One of auc, gini, average_precision, ndcg, or a name with numbers such as pauc:0,0.05, empirical:0,0.05,
        two_way:0.1,0.8, precision@100, precision@1%, lift@15%, precision_at_recall:0.8, ndcg@10 or ndcg@1%.

    Returns
    -------
    Metric

    Examples
    --------
    >>> from core.metrics import metric_named
    >>> metric_named("two_way:0.1,0.8")
    TwoWayArea(fpr_max=0.1, tpr_min=0.8)
    """
    return METRICS.find(name)


@dataclass(frozen=True)
class MetricEstimate:
    """The value of a metric for one ranking, with confidence interval and test against a random ranking.

    Examples
    --------
    >>> from core.metrics import AveragePrecision, measure
    >>> (found,) = measure([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6], [AveragePrecision()])
    >>> round(found.interval.value, 3), found.chance
    (0.917, 0.5)
    """

    metric: Metric
    """The metric."""
    interval: Interval
    """Its value with a confidence interval."""
    chance: float | None
    """Value of a random ranking; None if it is 0."""
    p_value: float | None
    """One-sided, for H₀: the scores carry no information. None without `chance`, if a class has fewer than
    `MIN_CLASS_ROWS` effective rows, or if the window of an area has fewer than three."""
    adjusted_p_value: float | None
    """Adjusted by Holm's method over all metrics of the call. None without `p_value`."""


def measure(
    y: ArrayLike,
    scores: ArrayLike,
    metrics: Sequence[Metric],
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    fixed_prevalence: bool = False,
) -> tuple[MetricEstimate, ...]:
    """Compute metrics of a ranking, each with a confidence interval and a test against a random ranking.

    Parameters
    ----------
    y, scores, group
        As for `auc_interval`.
    metrics : sequence of Metric
        Such as `AveragePrecision()`, `PrecisionAt(count=100)`, `Ndcg(10)` or `TwoWayArea(0.1, 0.8)`.
    level : float in (0, 1)
        Probability that an interval covers the value of the population.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights. NDCG needs whole numbers.
    fixed_prevalence : bool
        Whether the population has the prevalence of these rows. By default rows were drawn one by one, and the
        intervals include the variance of the prevalence.

    Returns
    -------
    tuple of MetricEstimate
        In the order of the metrics. O(n log n + n · n_metrics).

    Examples
    --------
    >>> from core.metrics import AveragePrecision, PrecisionAt, measure
    >>> y, scores = [1, 1, 0, 1, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    >>> found = measure(y, scores, [AveragePrecision(), PrecisionAt(count=2)])
    >>> [round(each.interval.value, 4) for each in found]
    [0.8304, 1.0]
    """
    check_value("fixed_prevalence", bool, fixed_prevalence)
    level, metrics = check_level(level), check_metrics(metrics)
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    if rows.unit is None and rows.weight is None:
        groups = tie_groups(rows)
        masses = Masses(groups.positive, groups.negative, effective_units(rows), fixed_prevalence)
        return measure_masses(masses, metrics, level)
    bases = _bases(metrics)
    areas, every = estimate_metrics(rows, bases, fixed_prevalence=True)
    shown = areas if fixed_prevalence else estimate_metrics(rows, bases)[0]
    found = [
        _Found(float(areas.values[0, j]), areas.variance(0, j), *_spread(shown, 0, j, base, level))
        for j, base in enumerate(bases)
    ]
    masses = replace(every[0], fixed_prevalence=fixed_prevalence)
    alone = None if rows.unit is None else rows._replace(unit=None)
    return _measured(masses, metrics, found, level, areas.degrees, alone)


def measure_on_curve(
    curve: RocCurve,
    totals: ClassTotals,
    metrics: Sequence[Metric],
    *,
    level: float = 0.95,
    fixed_prevalence: bool = False,
) -> tuple[MetricEstimate, ...]:
    """Compute `measure` from a stored full curve and the totals of its data.

    With weights or groups the intervals use effective numbers, as if weights were spread evenly within each class and
    each group had rows of one class.

    Parameters
    ----------
    curve, totals
        The full ROC curve and the weights of its classes, as from `summarise`.
    metrics, level, fixed_prevalence
        As for `measure`.

    Returns
    -------
    tuple of MetricEstimate
        In the order of the metrics. O(n_points · n_metrics).

    Examples
    --------
    >>> from core.metrics import ClassTotals, measure_on_curve, metric_named, roc_curve
    >>> curve = roc_curve([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])
    >>> measure_on_curve(curve, ClassTotals.of_counts(2, 2), [metric_named("precision@50%")])[0].interval.value
    0.75
    """
    check_value("fixed_prevalence", bool, fixed_prevalence)
    masses = replace(masses_on_curve(curve, totals), fixed_prevalence=fixed_prevalence)
    return measure_masses(masses, check_metrics(metrics), check_level(level))


class _Found(NamedTuple):
    """A metric's value and variances: at a fixed prevalence, and for its interval; None if the sample shows none."""

    value: float
    fixed: float | None
    variance: float | None
    degrees: float = math.inf
    """Degrees of freedom of `variance`."""


def measure_masses(
    masses: Masses, metrics: Sequence[Metric], level: float
) -> tuple[MetricEstimate, ...]:
    found = []
    for metric in _bases(metrics):
        derivatives = metric.of(masses)
        fixed = variance_of(derivatives, masses)
        variance = with_prevalence_variance(fixed, derivatives.slope, masses)
        found.append(_Found(derivatives.value, fixed, variance))
    return _measured(masses, metrics, found, level, math.inf)


def variance_of(derivatives: Derivatives, masses: Masses) -> float | None:
    """Return the variance of a metric at a fixed prevalence; None if a class has the weight of one row."""
    parts = []
    for values, mass, total, effective in zip(
        derivatives[1:3],
        (masses.positive, masses.negative),
        masses.totals,
        masses.effective,
        strict=True,
    ):
        with np.errstate(over="ignore", invalid="ignore"):  # weights of 1e-100 beside 1e100
            parts.append(mean_variance(values, mass, mass * (total / effective)))
    positive, negative = parts
    return None if positive is None or negative is None else positive + negative


def _spread(
    estimates: Estimates, scorer: int, j: int, metric: Metric, level: float
) -> tuple[float | None, float]:
    if metric.is_area:
        return estimates.spread(scorer, j)
    return estimates.weighted_spread(scorer, j, level)


def with_prevalence_variance(variance: float | None, slope: float, masses: Masses) -> float | None:
    """Return a variance plus the part due to the varying prevalence, unless the prevalence is fixed."""
    if variance is None or masses.fixed_prevalence:
        return variance
    return variance + slope**2 * sum(1.0 / (each - 1.0) for each in masses.effective)


def _measured(
    masses: Masses,
    metrics: Sequence[Metric],
    found: Sequence[_Found],
    level: float,
    degrees: float,
    alone: EvaluatedRows | None = None,
) -> tuple[MetricEstimate, ...]:
    """Return estimates, given values and variances of their `_bases`. `alone` are rows without units, for tests."""
    tested = has_enough(min(masses.effective), MIN_CLASS_ROWS)
    at_fixed = replace(masses, fixed_prevalence=True)
    intervals, chances = [], []
    p_values: list[float | None] = []
    for metric, base, each in zip(metrics, _bases(metrics), found, strict=True):
        value, fixed, variance, own_degrees = each
        interval = base.own_interval(masses, level)
        if interval is None:
            scale = scale_of(base, [masses])
            interval = scaled_interval(value, variance, scale, level, own_degrees)
        chance = base.chance(masses)
        top, trials, *_ = scale_of(base, [at_fixed])
        # a list of all rows has the metric of chance by its definition
        chance = None if chance is None or not 0.0 < chance < top * (1.0 - EPSILON) else chance
        p_values.append(None)
        if chance is not None and tested and enough_for_tests(min(base.rows_inside(masses))):
            p_value = _above_null(base, masses, value, fixed, degrees, alone)
            if p_value is None or base.has_heavy_null:
                estimated = _above_chance(value / top, chance / top, fixed, top, trials, degrees)
                p_value = max(p_value or 0.0, estimated)
            p_values[-1] = p_value
        if metric is not base:
            unit = metric.unit(masses)
            interval = rescaled(interval, unit, metric.shift)
            chance = None if chance is None else unit * chance + metric.shift
        intervals.append(interval)
        chances.append(chance)
    return tuple(
        MetricEstimate(*each)
        for each in zip(
            metrics, intervals, chances, p_values, adjust_present(p_values), strict=True
        )
    )


def _above_null(
    metric: Metric,
    masses: Masses,
    value: float,
    variance: float | None,
    degrees: float,
    alone: EvaluatedRows | None,
) -> float | None:
    """Return the probability that a random ranking has at least a value; None if the metric does not know it.

    With groups, the variance under H₀ is that of rows, multiplied by what groups add to the value's variance.
    """
    from scipy.special import betainc

    inflation = 1.0
    if alone is not None:
        masses = replace(masses, effective=effective_units(alone))
        of_rows = estimate_metrics(alone, [metric], fixed_prevalence=True)[0].variance(0, 0)
        inflation = max(1.0, variance / of_rows) if variance and of_rows else 1.0
    p_value = metric.null_p_value(masses, value, inflation)
    if p_value is None:
        moments = metric.null_moments(masses)
        if moments is None:
            return None
        mean, spread = moments[0], moments[1] * inflation
        if spread <= EPSILON**2:  # all scores are equal
            return 1.0
        trials = max(mean * (1.0 - mean) / spread - 1.0, EPSILON)
        beyond = min(1.0, max(0.0, 1.0 - value))
        p_value = float(betainc((1.0 - mean) * trials, mean * trials, beyond))
    return _with_degrees(p_value, degrees)


def _with_degrees(p_value: float, degrees: float) -> float:
    if math.isinf(degrees):
        return p_value
    from scipy.special import ndtri, stdtr

    return float(stdtr(degrees, ndtri(p_value)))


def _bases(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics to estimate: for a shifted metric such as Gini = 2 AUC − 1 its base, the AUC."""
    return [metric.plain() if metric.shift else metric for metric in metrics]


def scaled_interval(
    value: float,
    variance: float | None,
    scale: Scale,
    level: float,
    degrees: float = math.inf,
) -> Interval:
    """Return a metric's confidence interval, computed on its fraction of the maximum possible value.

    With a hidden variance, the lower end allows for it and for the uncertain variance of few positives: such a metric
    is skewed, and its interval would miss above in up to 11 % with 10 positives.
    """
    top, trials, hidden, degrees_below, classes = scale
    scaled = None
    if variance is not None and math.isfinite(variance):
        scaled = (math.sqrt(variance) / top) ** 2  # the square of a top of 1e-180 would be 0
    share = min(1.0, value / top)
    _, low, high = proportion_interval(share, scaled, trials, level, degrees, classes)
    if hidden > 0.0 and scaled is not None and scaled > EPSILON**2:
        below = scaled + hidden * share * (1.0 - share)
        if math.isinf(degrees):
            level = min(math.erf(quantile(level, degrees_below) / math.sqrt(2.0)), 1.0 - EPSILON)
        low = min(low, proportion_interval(share, below, trials, level, degrees).low)
    return Interval(value, min(value, low * top), max(value, min(top, high * top)))


def value_of_metric(
    metric: Metric, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the value of one metric for a ranking.

    Parameters
    ----------
    metric : Metric
        Such as `AveragePrecision()`.
    y, scores, sample_weight
        As for `auc`.

    Returns
    -------
    float
        The value. O(n log n).

    Examples
    --------
    >>> from core.metrics import PrecisionAt, value_of_metric
    >>> value_of_metric(PrecisionAt(count=2), [1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])
    0.75
    """
    check_value("metric", Metric, metric)
    rows = check_rows(y, {"scores": scores}, sample_weight)
    groups = tie_groups(rows)
    return metric.of(Masses(groups.positive, groups.negative, effective_units(rows))).value


def _above_chance(
    value: float,
    chance: float,
    variance: float | None,
    top: float,
    trials: float,
    degrees: float,
) -> float:
    """Return the one-sided p-value of H₀: the metric (a share of the greatest) is at most a random ranking's."""
    inside = EPSILON < value < 1.0 - EPSILON
    if variance is None or variance <= EPSILON**2 or not inside:
        # Wilson's test: the variance under H₀
        z = (value - chance) / math.sqrt(chance * (1.0 - chance) / trials)
        return NormalDist().cdf(-z)
    error = math.sqrt(variance) / top / (value * (1.0 - value))
    z = (math.log(value / (1.0 - value)) - math.log(chance / (1.0 - chance))) / error
    if math.isinf(degrees):
        return math.erfc(z / math.sqrt(2.0)) / 2.0
    from scipy.special import stdtr

    return float(stdtr(degrees, -z))


@dataclass(frozen=True)
class MetricComparison:
    """The comparison of scorers by one metric.

    Examples
    --------
    >>> from core.metrics import AveragePrecision, compare_metrics
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> scores = [[1, 3, 2, 4, 3, 5, 6, 7], [2, 1, 4, 6, 3, 5, 7, 8]]
    >>> (found,) = compare_metrics(y, scores, [AveragePrecision()])
    >>> [round(each.value, 3) for each in found.values]
    [0.917, 0.854]
    """

    metric: Metric
    """The metric."""
    values: tuple[Interval, ...]
    """Its value for each scorer, in their order."""
    differences: tuple[Difference, ...]
    """Every pair of scorers, in their order."""
    joint_p_value: float | None
    """For H₀: all scorers have the same value. None if its window has too few rows for a test."""
    warning: str | None = None
    """Why there are no p-values, and how many rows they need; None if there are p-values."""


def compare_metrics(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    metrics: Sequence[Metric],
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    fold: ArrayLike | None = None,
    repeat: ArrayLike | None = None,
    row: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
    fixed_prevalence: bool = False,
) -> tuple[MetricComparison, ...]:
    """Compare scorers on the same rows by metrics: differences with intervals and paired tests.

    For the AUC and partial AUC, `compare` offers more.

    Parameters
    ----------
    y, level, sample_weight, group
        As for `auc_interval`.
    scores : sequence of array_like of float, each of shape (n_samples,)
        Scores of two or more scorers. Their scales may differ.
    metrics : sequence of Metric
        As for `measure`. With folds, a share refers to the rows of each fold, and a count is rejected, because folds
        have fewer rows.
    fold, repeat, row : array_like, shape (n_samples,), optional
        As for `compare`.
    names : sequence of str, optional
        Names of the scorers, all different. Default: "scores[0]", "scores[1]", …
    adjust : {"holm", "none"}
        Adjustment of the p-values over all pairs and metrics.
    fixed_prevalence : bool
        As for `measure`.

    Returns
    -------
    tuple of MetricComparison
        In the order of the metrics. O(k n log n + k² n m) time and O(k n m) memory for k scorers and m metrics.

    Examples
    --------
    >>> from core.metrics import AveragePrecision, compare_metrics
    >>> y = [1, 1, 0, 1, 0, 0, 1, 0]
    >>> first, second = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2], [0.8, 0.9, 0.3, 0.7, 0.6, 0.2, 0.5, 0.1]
    >>> found, = compare_metrics(y, [first, second], [AveragePrecision()])
    >>> round(found.differences[0].value, 4)
    -0.1196
    """
    check_value("fixed_prevalence", bool, fixed_prevalence)
    level, metrics = check_level(level), check_metrics(metrics)
    columns, named = check_scorers(scores, names, adjust)
    folds = Folds.given(fold, repeat, row)
    if folds is not None:
        for metric in metrics:
            check_scale_free(metric)
    plain = [metric.plain() for metric in metrics]
    of_parts: list[list[Masses]] = []

    def estimator(rows: EvaluatedRows) -> tuple[FloatArray, FloatArray]:
        values, influence, masses = metric_influences(
            rows, plain, fixed_prevalence=fixed_prevalence
        )
        of_parts.append(masses)
        return values, influence

    every = estimate(y, columns, estimator, folds, sample_weight, group)
    scales = [
        [scale_of(metric, [part[k] for part in of_parts], every.repeats) for metric in plain]
        for k in range(len(named))
    ]
    units = [float(np.mean([metric.unit(part[0]) for part in of_parts])) for metric in metrics]
    evaluated = [own for part in of_parts for own in part]
    missing = [_missing_test(metric, evaluated, every) for metric in metrics]
    compared = [
        ComparedMetric(every, j, [own[j].trials for own in scales], missing[j] is None, units[j])
        for j in range(len(metrics))
    ]
    differences = compare_scorers(compared, named, level, adjust)

    def interval_of(k: int, j: int) -> Interval:
        metric = metrics[j]
        own = metric.own_interval(evaluated[k], level) if folds is None else None
        if own is not None:
            return own
        variance, degrees = _spread(every, k, j, plain[j], level)
        value = float(every.values[k, j])
        found = scaled_interval(value, variance, scales[k][j], level, degrees)
        return rescaled(found, units[j], metric.shift)

    return tuple(
        MetricComparison(
            metric,
            tuple(interval_of(k, j) for k in range(len(named))),
            differences[j].pairs,
            differences[j].joint_p_value,
            missing[j],
        )
        for j, metric in enumerate(metrics)
    )


class Scale(NamedTuple):
    """What a metric's interval needs besides value and variance: maximum, trials and hidden variance."""

    top: float
    trials: float
    hidden: float = 0.0
    """`Metric.hidden_variance`."""
    degrees: float = math.inf
    """Degrees of freedom of the positives' variance, for the lower end of a metric with a hidden variance."""
    classes: tuple[float, float] | None = None
    """As `proportion_interval`."""


def scale_of(metric: Metric, masses: Sequence[Masses], repeats: int = 1) -> Scale:
    """Return the scale of a metric's mean over parts of the rows; each row is in `repeats` parts."""
    top = float(np.mean([metric.top(own) for own in masses]))
    trials = sum(metric.trials(own) for own in masses) / repeats
    n_parts = len(masses) / repeats
    hidden = float(np.mean([metric.hidden_variance(own) for own in masses])) / n_parts
    positives = sum(own.effective[0] for own in masses) / repeats
    classes = masses[0].effective if metric.is_whole_area and len(masses) == 1 else None
    return Scale(top, trials, hidden, max(positives - n_parts, MIN_DEGREES), classes)


def _missing_test(metric: Metric, masses: Sequence[Masses], every: Estimates) -> str | None:
    even = every.evenness
    inside = np.array([metric.plain().rows_inside(own) for own in masses]).mean(axis=0) * even
    return missing_test_warning(
        metric.name, (float(inside[0]), float(inside[1])), every.effective_for_tests, every.parts
    )


def metric_influences(
    rows: EvaluatedRows, metrics: Sequence[Metric], *, fixed_prevalence: bool = False
) -> tuple[FloatArray, FloatArray, list[Masses]]:
    """Return every scorer's metrics, the influence φ of each row on them, and the class weights by score.

    Shapes: metrics (n_scorers, n_metrics), influences (n_scorers, n_metrics, n_rows).
    """
    effective = effective_units(rows)
    values = np.empty((len(rows.scores), len(metrics)))
    influence = np.empty((*values.shape, rows.positive.size))
    every = []
    for scorer in range(len(rows.scores)):
        groups, order = group_rows(rows, scorer)
        masses = Masses(groups.positive, groups.negative, effective, fixed_prevalence)
        for j, metric in enumerate(metrics):
            values[scorer, j], up, down, slope = metric.of(masses)
            slope = 0.0 if fixed_prevalence else slope
            positive, negative = masses.totals
            of_classes = (
                (up - inner(masses.positive, up) / positive + slope) / positive,
                (down - inner(masses.negative, down) / negative - slope) / negative,
            )
            influence[scorer, j, order] = influence_of_rows(rows, groups, order, of_classes)
        every.append(masses)
    return values, influence, every


def estimate_metrics(
    rows: EvaluatedRows, metrics: Sequence[Metric], *, fixed_prevalence: bool = False
) -> tuple[Estimates, list[Masses]]:
    values, influence, every = metric_influences(rows, metrics, fixed_prevalence=fixed_prevalence)
    return estimates_of_units(values, influence, rows), every
