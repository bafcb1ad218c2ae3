"""Fairness across groups: areas and rates of one ranking in each group of rows, xAUC, and joint tests.

A group is a value of one column, such as a region; rows without a value are a group of their own. Every group is
listed. A metric whose classes are too small in a group is None, with a reason.

**Areas and rates.** Within a group areas have the interval of `intervals`, and the fraction of a class with score ≥ the
threshold has Wilson's. With units, the trials of a rate are the number of rows that would have the variance between
units (Korn & Graubard 1998), which Student's t makes smaller for few units.

**Across groups.** xAUC(a, b) is the probability that a positive of group a scores above a negative of group b, ties
counted half (Kallus & Zhou 2019). Positives and negatives enter it as in an AUC, so its variance is
DeLong's: that of the positives' placement among the negatives of b, plus that of the negatives' placement among the
positives of a. On the diagonal it is the group's AUC. One sort and one pass with the running weight of every group
yield all placements: O(n log n + n · n_groups) time. The memory is O(n), whatever the number of groups.

**Equal areas and rates.** Each of k groups has a metric p_a with n_a effective trials (see `intervals`). With p̄ the
mean weighted by them, Q = Σ n_a (p_a − p̄)² / (p̄ (1 − p̄)) is Pearson's statistic: its variances are those under the
hypothesis, so a group with an area of 1, or without any flagged row, does no harm. The trials of an area are estimated;
Q is then compared as Welch (1951) does with F: for ν_a degrees of freedom of the variance (Satterthwaite's over the two
classes; the effective units less one with units), w_a = n_a and Λ = Σ (1 − w_a / Σw)² / ν_a,

    F = Q / (k − 1) / (1 + 2 (k − 2) Λ / (k² − 1)),   with k − 1 and (k² − 1) / (3 Λ) degrees of freedom.

Where a unit has rows in several groups, the Q of areas uses the whole covariance. Groups of few rows hide much of their
variance, which their trials allow for: differences between them must be great to be found.

**Equal calibration.** With probabilities p, a group's calibration *in the large* is the constant c for which the log
odds of p plus c predict as many positives as the group has: 0 if they are right on the whole, the same in all groups if
only the prevalence has moved. Its variance is Σ u² / H² for u = w (y − p̃), summed over each unit first, and
H = Σ w p̃ (1 − p̃), p̃ being the moved probabilities: right also where the probabilities are wrong in other ways. The
groups' c are compared as areas are.

**Many tests.** `adjusted_p_value` is Holm's over all tests that the result shows.

**The worst group.** The value is the worst that was observed, which is too pessimistic as an estimate. The interval
covers the metric of the group that is worst in the population, whichever that is: for areas and the TPR, its lower end
is the least of the groups' lower ends, its upper end the least of the groups' upper ends at the level 1 − α / k.

References
----------
Kallus & Zhou, "The fairness of risk scores beyond classification: bipartite ranking and the xAUC metric", NeurIPS 2019.
Korn & Graubard, "Confidence intervals for proportions with small expected number of positive counts estimated from
survey data", Survey Methodology 24 (1998).
Welch, "On the comparison of several mean values: an alternative approach", Biometrika 38 (1951).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_value
from core.base.target import as_vector, missing_labels
from core.errors import InvalidData, InvalidParameter
from core.kernels import kernel
from core.metrics.cox import level_of
from core.metrics.curve import ClassTotals, curve_of
from core.metrics.estimates import (
    EPSILON,
    Estimates,
    Interval,
    adjust_present,
    effective_trials,
    group_degrees,
    proportion_interval,
    quantile,
    student_shrinkage,
)
from core.metrics.groups import (
    MIN_CLASS_ROWS,
    EvaluatedRows,
    FloatArray,
    check_probabilities,
    check_rows,
    effective_number,
    effective_units,
    has_enough,
    inner,
    sum_by_unit,
    tie_groups,
)
from core.metrics.intervals import classes_of, estimate_areas, worst_case_trials
from core.metrics.logistic import log_odds
from core.metrics.operating import check_threshold, operating_point_on_curve
from core.metrics.window import (
    CUTOFFS,
    MAX_GROUPS,
    WHOLE,
    Cutoffs,
    Window,
    check_level,
    check_rate,
    check_windows,
)

MIN_WINDOW_NEGATIVES = 2
"""Effective negatives of a group within a window: tests on fewer err too often (docs/statistics-evidence.md)."""

MAX_PLACEMENTS = 1 << 24
"""Placements of rows in memory at once, 8 bytes each."""

IN_SAMPLE = (
    "These cutoffs were chosen on these same rows, so the rates are too optimistic. Evaluate the "
    "cutoffs on other rows before you use them, and check whether a cutoff that depends on the "
    "group is allowed."
)


class GroupMetric(NamedTuple):
    """A metric in one group with its interval, or the reason why it has none."""

    interval: Interval | None
    reason: str | None


class GroupCutoff(NamedTuple):
    """The threshold of one group, and its rates on the rows on which it was chosen."""

    threshold: float
    """Rows of the group with score ≥ threshold are flagged; +inf flags none."""
    threshold_low: float
    threshold_high: float
    """The population's threshold lies above the one and at most at the other; infinite if the sample sets no limit."""
    fpr: Interval
    tpr: Interval
    """Intervals for this threshold, which do not include its choice."""


@dataclass(frozen=True)
class GroupCalibration:
    """Predicted and observed fraction of positives in one group."""

    predicted: float
    """Mean probability; NaN if the group has no row of weight above 0."""
    observed: GroupMetric
    """Share of the positives."""
    in_the_large: GroupMetric
    """Log odds to add to every probability so that as many positives are predicted as there are."""


@dataclass(frozen=True)
class GroupQuality:
    """The counts and metrics of one group of rows."""

    value: str | None
    """The value of the column as text; None is the group of the rows without a value."""
    rows: int
    positives: int
    negatives: int
    """Rows of weight above 0."""
    auc: GroupMetric
    partial_aucs: tuple[GroupMetric, ...]
    """One per window."""
    tpr: GroupMetric | None
    fpr: GroupMetric | None
    """At the common threshold; None if there is none."""
    cutoff: GroupCutoff | None
    cutoff_reason: str | None
    """The group's own threshold, or why there is none; both None if no thresholds by group were asked for."""
    calibration: GroupCalibration | None = None
    """None if no probabilities were passed."""


class CrossArea(NamedTuple):
    """xAUC: the probability that a positive of one group scores above a negative of another."""

    positives_of: int
    negatives_of: int
    """Indices of groups."""
    metric: GroupMetric


Measured = Literal["auc", "pauc", "tpr", "fpr", "calibration"]


@dataclass(frozen=True)
class GroupTest:
    """A joint test of H₀: a metric is equal in all groups that have a value of it."""

    of: Measured
    window: Window | None
    """Of a partial AUC."""
    groups: int
    """Number of groups that have the metric."""
    p_value: float | None
    """None if fewer than two groups have the metric."""
    adjusted_p_value: float | None
    """By Holm over all tests of the comparison."""


class WorstGroup(NamedTuple):
    """The group with the lowest area or TPR, or the greatest FPR, among the groups that have a value."""

    of: Measured
    window: Window | None
    group: int
    """Index of the group observed to be worst."""
    interval: Interval
    """The metric observed there; the ends are for the worst group of the population, whichever it is."""


@dataclass(frozen=True)
class GroupComparison:
    """Metrics of one ranking in each group of rows, and tests of equality.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import compare_groups
    >>> rng = np.random.default_rng(0)
    >>> y, by = rng.integers(0, 2, 200), np.repeat(["a", "b"], 100)
    >>> found = compare_groups(y, rng.normal(size=200) + y, by)
    >>> [group.value for group in found.groups]
    ['a', 'b']
    """

    groups: tuple[GroupQuality, ...]
    """One per group, by value. Rows without a value are the last group."""
    cross_areas: tuple[CrossArea, ...]
    """The AUC of each group's positives against each group's negatives, row by row of the matrix."""
    tests: tuple[GroupTest, ...]
    """Joint tests of equality across groups."""
    worst: tuple[WorstGroup, ...]
    """The worst group by each metric; empty if fewer than two groups have a value."""
    threshold: float | None
    """The common threshold, as given."""
    cutoffs: Cutoffs | None
    """How the groups' own thresholds were chosen, as given."""
    rate: float | None
    """The FPR or TPR that the groups' own thresholds aim at."""
    windows: tuple[Window, ...]
    """Windows of the partial AUCs."""
    level: float
    """Confidence level of each interval. In (0, 1)."""


@dataclass(frozen=True, eq=False)
class _GroupEstimate:
    """A proportion (area or rate) of one group, or its calibration in the large: for intervals and joint tests."""

    value: float
    variance: float | None
    """None for a rate, and if the sample shows none."""
    trials: float | None
    """Of a proportion; None for the calibration, which is in log odds."""
    degrees: float
    """Degrees of freedom of Student's t in the interval."""
    variance_degrees: float
    """Degrees of freedom of the variance, for the joint test."""
    classes: tuple[float, float] | None = None
    """As `proportion_interval`."""
    influence: FloatArray | None = None
    """Of each unit, or of each row if there are no units. None for a rate, and if the sample shows no variance."""

    def interval(self, level: float) -> Interval:
        trials = self.trials
        if trials is None:
            half = quantile(level, self.degrees) * math.sqrt(self.variance or 0.0)
            return Interval(self.value, self.value - half, self.value + half)
        if self.variance is None and math.isfinite(self.degrees):  # trials that were estimated
            trials *= student_shrinkage(level, self.degrees)
        return proportion_interval(
            self.value, self.variance, trials, level, self.degrees, self.classes
        )


@dataclass(frozen=True, eq=False)
class _Group:
    rows: EvaluatedRows
    effective: tuple[float, float]
    units: NDArray[np.intp] | None
    """The number among all rows of each unit of the group, ascending."""
    areas: Estimates | None
    """None if a class is too small."""
    probability: FloatArray | None
    """Shape (n_rows,)."""


def compare_groups(
    y: ArrayLike,
    scores: ArrayLike,
    by: ArrayLike,
    *,
    windows: Sequence[Window] = (),
    threshold: float | None = None,
    cutoffs: Cutoffs | None = None,
    rate: float | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    probability: ArrayLike | None = None,
) -> GroupComparison:
    """Compare the quality of one ranking across groups of rows (fairness), with joint tests of equality.

    Parameters
    ----------
    y, scores, level, sample_weight, group
        As for `auc_interval`.
    by : array_like, shape (n_samples,)
        Group of each row: numbers, booleans or text. NaN and None form their own group.
    windows : sequence of (fpr_min, fpr_max)
        Windows of partial AUCs; the FPR is that within the group.
    threshold : float, optional
        One threshold for all groups: rows with score ≥ threshold are flagged. Infinite is allowed.
    cutoffs : {"equal_fpr", "equal_tpr"}, optional
        Choose a threshold for each group on these rows: the greatest TPR with at most this FPR within the group, or the
        lowest FPR with at least this TPR.
    rate : float in [0, 1], optional
        The rate of the groups' own thresholds. Default: that of all rows at `threshold`.
    probability : array_like of float, shape (n_samples,), in [0, 1], optional
        Probability of each row, to compare calibration.

    Returns
    -------
    GroupComparison
        Metrics by group, across groups, and tests. O(n log n + n · (n_groups + n_windows)) time, O(n) memory.

    Raises
    ------
    InvalidData
        As for `auc`, a probability is not in [0, 1], or `by` is not a vector of numbers, booleans or text with one
        value per row, or has more than `MAX_GROUPS` values.
    InvalidParameter
        A parameter is out of range, or thresholds by group are requested with neither a rate nor a threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import compare_groups
    >>> rng = np.random.default_rng(0)
    >>> y, region = rng.integers(0, 2, 400), rng.choice(["north", "south"], 400)
    >>> scores = rng.normal(size=400) + 1.5 * y * (region == "north")
    >>> found = compare_groups(y, scores, region, threshold=1.0)
    >>> [(one.value, round(one.auc.interval.value, 2)) for one in found.groups]
    [('north', 0.88), ('south', 0.47)]
    """
    check_value("cutoffs", str | None, cutoffs)
    level = check_level(level)
    checked = check_windows(windows)
    if threshold is not None:
        threshold = check_threshold(threshold)
    named = {"scores": scores} | ({} if probability is None else {"probability": probability})
    rows = check_rows(y, named, sample_weight, group)
    if probability is not None:
        check_probabilities(rows.scores[1])
    codes, values = number_groups(by, np.size(np.asarray(y)))
    if sample_weight is not None:
        codes = codes[np.asarray(sample_weight, dtype=np.float64) > 0]
    ascending = np.argsort(rows.scores[0])  # the sorts of the groups are quick then
    rows, codes = rows.take(ascending), codes[ascending]
    own_scores, *probabilities = rows.scores
    rows = rows._replace(scores=(own_scores,))
    target = _target_rate(rows, threshold, cutoffs, rate)
    members = np.split(
        np.argsort(codes.astype(np.uint8), kind="stable"),  # by radix
        np.cumsum(np.bincount(codes, minlength=len(values)))[:-1],
    )
    own = [
        _group_of(rows, chosen, checked, *(column[chosen] for column in probabilities))
        for chosen in members
    ]
    areas = [
        [_area_of(one, j, window) for one in own] for j, window in enumerate([WHOLE, *checked])
    ]
    rates = {} if threshold is None else _rates(own, threshold)
    tests, worst = [], []
    for j, window in enumerate([WHOLE, *checked]):
        shown = None if j == 0 else window
        of: Measured = "pauc" if j else "auc"
        tests.append(_test(of, shown, areas[j], own))
        worst += _worst(of, shown, areas[j], level)
    for name in ("tpr", "fpr"):
        if name in rates:
            tests.append(_test(name, None, rates[name], own))
            worst += _worst(name, None, rates[name], level)
    shifts = [_shift_of(one) for one in own]
    if probabilities:
        tests.append(_test("calibration", None, shifts, own))
    return GroupComparison(
        groups=tuple(
            GroupQuality(
                value,
                int(one.rows.positive.size),
                int(np.count_nonzero(one.rows.positive)),
                int(np.count_nonzero(~one.rows.positive)),
                _shown(areas[0][index], level),
                tuple(_shown(of_window[index], level) for of_window in areas[1:]),
                _shown(rates["tpr"][index], level) if rates else None,
                _shown(rates["fpr"][index], level) if rates else None,
                *_cutoff_of(one, cutoffs, target, level),
                _calibration_of(one, shifts[index], level),
            )
            for index, (value, one) in enumerate(zip(values, own, strict=True))
        ),
        cross_areas=_cross_areas(rows, codes, own, level),
        tests=_adjust(tests),
        worst=tuple(worst),
        threshold=threshold,
        cutoffs=cutoffs,
        rate=target,
        windows=tuple(checked),
        level=level,
    )


def number_groups(by: ArrayLike, length: int) -> tuple[NDArray[np.intp], list[str | None]]:
    """Return groups by row, and their values as text (None: missing). InvalidData: as `compare_groups`."""
    vector = as_vector("by", by)
    if vector.size != length:
        raise InvalidData(
            f"by must have one value for each of the {length} rows of y, got {vector.size}"
        )
    if vector.dtype.kind not in "biufUSO":
        raise InvalidData(f"by must contain numbers, booleans or strings, got {vector.dtype}")
    missing = missing_labels(vector)
    codes = np.empty(length, dtype=np.intp)
    known = vector[~missing]
    try:
        distinct, codes[~missing] = np.unique(known, return_inverse=True)
    except TypeError as error:
        raise InvalidData("by must contain values that can be ordered") from error
    values: list[str | None] = [_text(value) for value in distinct.tolist()]
    if missing.any():
        codes[missing] = len(values)
        values.append(None)
    if len(values) > MAX_GROUPS:
        raise InvalidData(f"by must have at most {MAX_GROUPS} groups, got {len(values)}")
    return codes, values


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, str | int | float):
        return f"{value:.17g}" if isinstance(value, float) and value.is_integer() else str(value)
    raise InvalidData(f"by must contain numbers, booleans or strings, got {type(value).__name__}")


def _target_rate(
    rows: EvaluatedRows, threshold: float | None, cutoffs: Cutoffs | None, rate: float | None
) -> float | None:
    if cutoffs is None:
        if rate is not None:
            raise InvalidParameter(f"rate requires cutoffs, got rate={rate!r} without cutoffs")
        return None
    if cutoffs not in CUTOFFS:
        raise InvalidParameter(f"cutoffs must be one of {CUTOFFS}, got {cutoffs!r}")
    if rate is not None:
        return check_rate("rate", rate)
    if threshold is None:
        raise InvalidParameter("cutoffs requires a rate or a threshold, got neither")
    of_class = rows.positive if cutoffs == "equal_tpr" else ~rows.positive
    return _flagged_share(rows, of_class, threshold)


def _flagged_share(rows: EvaluatedRows, of_class: NDArray[np.bool_], threshold: float) -> float:
    weight = None if rows.weight is None else rows.weight[of_class]
    return _mean_of(rows.scores[0][of_class] >= threshold, weight)


def _group_of(
    rows: EvaluatedRows,
    chosen: NDArray[np.intp],
    windows: Sequence[Window],
    probability: FloatArray | None = None,
) -> _Group:
    taken = rows.take(chosen)
    effective = effective_units(taken)
    areas = None
    if not any(_class_lacks(taken, effective)):
        areas = estimate_areas(taken, [WHOLE, *windows])
    units = None if rows.unit is None else np.unique(rows.unit[chosen])
    return _Group(taken, effective, units, areas, probability)


def _class_lacks(
    rows: EvaluatedRows, effective: tuple[float, float]
) -> tuple[str | None, str | None]:
    positive = int(np.count_nonzero(rows.positive))
    counts = {"positives": positive, "negatives": rows.positive.size - positive}
    lacks: list[str | None] = []
    for (name, count), worth in zip(counts.items(), effective, strict=True):
        need = f"at least {MIN_CLASS_ROWS} are needed"
        if has_enough(worth, MIN_CLASS_ROWS):
            lacks.append(None)
        elif count < MIN_CLASS_ROWS:
            lacks.append(f"{count} {name}, {need}")
        else:
            lacks.append(f"{count} {name} have an effective number of {worth:.1f}, {need}")
    return lacks[0], lacks[1]


def _area_of(one: _Group, j: int, window: Window) -> _GroupEstimate | str:
    if one.areas is None:
        return "; ".join(filter(None, _class_lacks(one.rows, one.effective)))
    inside = one.effective[1] * (window[1] - window[0])
    if not has_enough(inside, MIN_WINDOW_NEGATIVES):
        return (
            f"the window [{window[0]:g}, {window[1]:g}] holds {inside:.2g} negatives of the group, but at "
            f"least {MIN_WINDOW_NEGATIVES} are needed"
        )
    areas = one.areas
    variance, of_interval = areas.spread(0, j)
    degrees = areas.degrees
    if one.rows.unit is None and areas.influence is not None:
        parts = areas.influence[0, j]
        own = [
            (inner(parts[of_class], parts[of_class]), worth - 1.0)
            for of_class, worth in zip(
                (one.rows.positive, ~one.rows.positive), one.effective, strict=True
            )
        ]
        degrees = _degrees_of_sum(own)
    trials = worst_case_trials(one.effective, window)
    classes = classes_of(one.effective, window)
    value = float(areas.values[0, j])
    influence = None if areas.influence is None else areas.influence[0, j]
    return _GroupEstimate(value, variance, trials, of_interval, degrees, classes, influence)


def _degrees_of_sum(parts: Sequence[tuple[float, float]]) -> float:
    """Return Satterthwaite's degrees of freedom of a sum of variances, each with its own degrees."""
    below = sum(variance**2 / degrees for variance, degrees in parts)
    return sum(variance for variance, _ in parts) ** 2 / below if below > 0.0 else math.inf


def _rates(
    groups: Sequence[_Group], threshold: float
) -> dict[Measured, list[_GroupEstimate | str]]:
    found: dict[Measured, list[_GroupEstimate | str]] = {"tpr": [], "fpr": []}
    for one in groups:
        lacks = _class_lacks(one.rows, one.effective)
        found["tpr"].append(lacks[0] or _rate(one, one.rows.positive, threshold, one.effective[0]))
        found["fpr"].append(lacks[1] or _rate(one, ~one.rows.positive, threshold, one.effective[1]))
    return found


def _rate(
    one: _Group, of_class: NDArray[np.bool_], threshold: float, effective: float
) -> _GroupEstimate:
    rows = one.rows
    return _share(
        rows.scores[0][of_class] >= threshold,
        None if rows.weight is None else rows.weight[of_class],
        None if rows.unit is None else rows.unit[of_class],
        effective,
    )


def _share(
    counted: NDArray[np.bool_],
    weight: FloatArray | None,
    unit: NDArray[np.intp] | None,
    effective: float,
) -> _GroupEstimate:
    """Return a weighted fraction of rows, with the number of trials of its Wilson interval.

    The trials are the effective number of rows. If rows are in groups (`unit`), they are the number of independent rows
    with the variance between groups, but at least the number of groups.
    """
    share = _mean_of(counted, weight)
    trials, degrees = effective, math.inf
    if unit is not None:
        parts = np.asarray(counted - share, dtype=np.float64)
        if weight is not None:
            parts *= weight
        total = float(parts.size if weight is None else weight.sum())
        of_unit = sum_by_unit(parts / total, unit)
        variance = inner(of_unit, of_unit) * effective / (effective - 1.0)
        if variance > EPSILON**2:
            most = parts.size if weight is None else effective_number(weight)
            trials = max(effective, min(share * (1.0 - share) / variance, most))
            degrees = effective - 1.0
    return _GroupEstimate(share, None, trials, degrees, degrees)


def _mean_of(counted: NDArray[np.bool_], weight: FloatArray | None) -> float:
    if weight is None:
        return float(np.count_nonzero(counted)) / counted.size
    return min(1.0, float(weight[counted].sum()) / float(weight.sum()))


def _calibration_of(
    one: _Group, shift: _GroupEstimate | str, level: float
) -> GroupCalibration | None:
    if one.probability is None:
        return None
    rows, n = one.rows, one.rows.positive.size
    if not n:
        lacks = GroupMetric(None, f"0 rows, but at least {MIN_CLASS_ROWS} are needed")
        return GroupCalibration(math.nan, lacks, lacks)
    weight = np.ones(n) if rows.weight is None else rows.weight
    predicted = min(1.0, inner(weight, one.probability) / float(weight.sum()))
    effective = _effective_of_all(rows)
    observed: _GroupEstimate | str
    if has_enough(effective, MIN_CLASS_ROWS):
        observed = _share(rows.positive, rows.weight, rows.unit, effective)
    elif n < MIN_CLASS_ROWS:
        observed = f"{n} rows, but at least {MIN_CLASS_ROWS} are needed"
    else:
        observed = (
            f"{n} rows have an effective number of {effective:.1f}, but at least {MIN_CLASS_ROWS} are "
            "needed"
        )
    return GroupCalibration(predicted, _shown(observed, level), _shown(shift, level))


def _effective_of_all(rows: EvaluatedRows) -> float:
    weight = rows.weight
    if rows.unit is not None:
        weight = sum_by_unit(weight, rows.unit)
    return float(rows.positive.size) if weight is None else effective_number(weight)


def _shift_of(one: _Group) -> _GroupEstimate | str:
    """Return the calibration in the large: the constant to add to the log odds; or why there is none."""
    lacks = "; ".join(filter(None, _class_lacks(one.rows, one.effective)))
    if lacks or one.probability is None:
        return lacks
    rows, p = one.rows, one.probability
    weight = np.ones(p.size) if rows.weight is None else rows.weight
    if ((p == 0.0) | (p == 1.0)).all():
        return "all probabilities are 0 or 1"
    # no finite shift moves a probability of 0 or 1
    for certain, of_class, name in (
        (p == 1.0, rows.positive, "1: at least as many rows as are positive"),
        (p == 0.0, ~rows.positive, "0: at least as many rows as are negative"),
    ):
        mass = float(weight[of_class].sum())
        if float(weight[certain].sum()) >= mass * (1.0 - EPSILON):
            return f"too many probabilities are {name}"
    found = level_of(rows, log_odds(p))
    if found.variance <= 0.0:
        return "the probabilities and the labels show no variance"
    influence = found.influence * math.sqrt(
        found.variance / inner(found.influence, found.influence)
    )
    return _GroupEstimate(
        found.value, found.variance, None, found.degrees, found.degrees, influence=influence
    )


def _shown(metric: _GroupEstimate | str, level: float) -> GroupMetric:
    if isinstance(metric, str):
        return GroupMetric(None, metric)
    return GroupMetric(metric.interval(level), None)


def _cutoff_of(
    one: _Group, cutoffs: Cutoffs | None, rate: float | None, level: float
) -> tuple[GroupCutoff | None, str | None]:
    if cutoffs is None:
        return None, None
    lacks = "; ".join(filter(None, _class_lacks(one.rows, one.effective)))
    if lacks:
        return None, lacks
    groups = tie_groups(one.rows._replace(unit=None))
    totals = ClassTotals(
        float(groups.flagged_positive[-1]), float(groups.flagged_negative[-1]), *one.effective
    )
    fpr, tpr = (rate, None) if cutoffs == "equal_fpr" else (None, rate)
    point = operating_point_on_curve(curve_of(groups), totals, fpr=fpr, tpr=tpr, level=level)
    return GroupCutoff(
        point.threshold, point.threshold_low, point.threshold_high, point.fpr, point.tpr
    ), None


def _test(
    of: Measured,
    window: Window | None,
    metrics: Sequence[_GroupEstimate | str],
    groups: Sequence[_Group],
) -> GroupTest:
    has = [
        (one, group.units)
        for one, group in zip(metrics, groups, strict=True)
        if not isinstance(one, str)
    ]
    return GroupTest(of, window, len(has), _equal_means(has) if len(has) > 1 else None, None)


def _adjust(tests: Sequence[GroupTest]) -> tuple[GroupTest, ...]:
    adjusted = adjust_present([test.p_value for test in tests])
    return tuple(
        replace(test, adjusted_p_value=own) for test, own in zip(tests, adjusted, strict=True)
    )


def _equal_means(has: Sequence[tuple[_GroupEstimate, NDArray[np.intp] | None]]) -> float:
    """Return Welch's p-value of H₀: the estimates of groups, each with the group's units, have equal means."""
    metrics = [one for one, _ in has]
    z, degrees = np.array([(one.value, one.variance_degrees) for one in metrics]).T
    influences = [one.influence for one in metrics]
    if metrics[0].trials is None:
        variance = np.array([one.variance for one in metrics], dtype=np.float64)
    else:
        trials = np.array([_trials_of(one) for one in metrics])
        mean = inner(trials, z) / trials.sum()
        if not EPSILON < mean < 1.0 - EPSILON:
            return 1.0
        variance = mean * (1.0 - mean) / trials
        for index, (own, under) in enumerate(zip(influences, variance, strict=True)):
            if own is not None:  # the correlations stay what they are
                shown = inner(own, own)
                influences[index] = own * math.sqrt(under / shown) if shown else None
    weight = 1.0 / variance
    covariance = _covariance_of_units([units for _, units in has], influences)
    if covariance is None:
        mean = inner(weight, z) / weight.sum()
        statistic = inner(weight, (z - mean) ** 2)
    else:
        np.fill_diagonal(covariance, variance)
        contrast = np.hstack((-np.ones((len(z) - 1, 1)), np.eye(len(z) - 1)))
        d = contrast @ z
        inverse = np.linalg.pinv(contrast @ covariance @ contrast.T, hermitian=True)
        statistic = max(0.0, float(d @ inverse @ d))
    return welch_p_value(statistic, weight, degrees)


def _trials_of(one: _GroupEstimate) -> float:
    """Return the number of trials with which a proportion enters the joint test.

    Without `classes`, unlike the interval's: the variance of Hanley & McNeil is too small for a shape that few rows
    make up. Groups of 100 positives and 1,000 negatives, 1 or 2 % of the positives below all other rows, are called
    different in 7 to 9 % of samples with it, and in 1 to 4 % without (docs/statistics-evidence.md).
    """
    assert one.trials is not None
    return effective_trials(one.value, one.variance, one.trials, one.degrees)


def welch_p_value(statistic: float, weight: FloatArray, degrees: FloatArray) -> float:
    """Return Welch's p-value of a weighted sum of squares; `weight` are inverse variances with `degrees` each."""
    from scipy.special import chdtrc, fdtrc

    k = len(weight)
    spread = float(((1.0 - weight / weight.sum()) ** 2 / degrees).sum())
    if spread == 0.0:
        return float(chdtrc(k - 1, statistic))
    ratio = statistic / (k - 1) / (1.0 + 2.0 * (k - 2) * spread / (k**2 - 1))
    return float(fdtrc(k - 1, (k**2 - 1) / (3.0 * spread), ratio))


def _covariance_of_units(
    units: Sequence[NDArray[np.intp] | None], influences: Sequence[FloatArray | None]
) -> FloatArray | None:
    """Return the covariance of the groups' estimates due to units with rows in several groups; None without any.

    units: the ascending units that each group has rows of; None if each row is a unit. influences: of each of them on
    the group's estimate; None if it shows no variance.
    """
    covariance, shared = np.zeros((len(units), len(units))), False
    n_units = max((int(own[-1]) + 1 for own in units if own is not None and own.size), default=0)
    place = np.full(n_units, -1)
    for row in range(len(units)):
        own, of_own = units[row], influences[row]
        if own is None:
            return None
        if of_own is None:
            continue
        place[own] = np.arange(own.size)
        for column in range(row):
            other, of_other = units[column], influences[column]
            if other is None:
                return None
            if of_other is None:
                continue
            at = place[other]
            theirs = np.flatnonzero(at >= 0)
            if theirs.size:
                shared = True
                together = inner(of_own[at[theirs]], of_other[theirs])
                covariance[row, column] = covariance[column, row] = together
        place[own] = -1
    return covariance if shared else None


def _worst(
    of: Measured, window: Window | None, metrics: Sequence[_GroupEstimate | str], level: float
) -> list[WorstGroup]:
    has = [(index, one) for index, one in enumerate(metrics) if not isinstance(one, str)]
    if len(has) < 2:
        return []
    intervals = [one.interval(level) for _, one in has]
    wider = [one.interval(1.0 - (1.0 - level) / len(has)) for _, one in has]
    if of == "fpr":
        index, found = max(has, key=lambda each: each[1].value)
        low, high = max(each.low for each in wider), max(each.high for each in intervals)
    else:
        index, found = min(has, key=lambda each: each[1].value)
        low, high = min(each.low for each in intervals), min(each.high for each in wider)
    ends = min(low, found.value), max(high, found.value)
    return [WorstGroup(of, window, index, Interval(found.value, *ends))]


def _cross_areas(
    rows: EvaluatedRows, codes: NDArray[np.intp], groups: Sequence[_Group], level: float
) -> tuple[CrossArea, ...]:
    lacks = [_class_lacks(one.rows, one.effective) for one in groups]
    effective_of = np.array([one.effective for one in groups])
    values, variances, fourths = cross_moments(rows, codes, effective_of)
    found = []
    for a, of_a in enumerate(groups):
        for b, of_b in enumerate(groups):
            reasons = (
                lack and f"{lack} in group {index + 1} of the list"
                for lack, index in ((lacks[a][0], a), (lacks[b][1], b))
            )
            reason = "; ".join(filter(None, reasons))
            interval = None
            if not reason:
                effective = of_a.effective[0], of_b.effective[1]
                variance, degrees = float(variances[a, b]), math.inf
                if rows.unit is not None:
                    of_variance = group_degrees(variance, float(fourths[a, b]))
                    degrees = min(min(effective) - 1.0, of_variance)
                    variance *= 1.0 + 1.0 / degrees
                trials = worst_case_trials(effective, WHOLE)
                interval = proportion_interval(
                    float(values[a, b]), variance, trials, level, degrees, effective
                )
            found.append(CrossArea(a, b, GroupMetric(interval, reason or None)))
    return tuple(found)


def cross_moments(
    rows: EvaluatedRows, codes: NDArray[np.intp], effective: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return xAUC and its variance for the positives of group a (row) and the negatives of group b (column).

    The third result is the sum of the fourth powers of the influences of units, 0 without units. All three have the
    shape (n_groups, n_groups).

    NaN where a class has no row, or the weight of one for the variance.

    rows: with one scorer, by ascending score.
    codes: (n_rows,), intp; the group of each row.
    effective: (n_groups, 2); effective units of the positives and of the negatives of each group.
    """
    n_groups = len(effective)
    weight = np.ones(codes.size) if rows.weight is None else rows.weight
    mass = np.zeros((2, n_groups))
    for side, of_class in enumerate((~rows.positive, rows.positive)):
        mass[side] = np.bincount(codes[of_class], weight[of_class], n_groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        spare = np.where(effective > 1.0 + EPSILON, effective - 1.0, np.nan)
        scale = np.sqrt(effective / spare) / mass[::-1].T
    values, variances, fourths = np.zeros((3, n_groups, n_groups))
    of_rows = rows.scores[0], codes, rows.positive, weight
    _add_placements(*of_rows, scale, mass, values, variances, rows.unit is None)
    if rows.unit is not None:
        _add_by_unit(of_rows, rows.unit, scale, mass, values, variances, fourths)
    return values, variances, fourths


def _add_by_unit(
    of_rows: tuple[FloatArray, NDArray[np.intp], NDArray[np.bool_], FloatArray],
    unit: NDArray[np.intp],
    scale: FloatArray,
    mass: FloatArray,
    values: FloatArray,
    variances: FloatArray,
    fourths: FloatArray,
) -> None:
    """Add the squared influence of each row group on each xAUC to `variances`, and its square to `fourths`.

    Placements are found by score and added by row group. So they are kept in between: those of some row groups at a
    time, together at most `MAX_PLACEMENTS` unless one row group alone has more.
    """
    n_groups, by_unit = len(values), np.argsort(unit, kind="stable")
    starts = np.flatnonzero(np.diff(unit[by_unit], prepend=-1))
    ends = np.append(starts[1:], len(unit))
    most = max(MAX_PLACEMENTS // n_groups, 1)
    first = 0
    while first < len(starts):
        last = max(int(np.searchsorted(ends, starts[first] + most, side="right")), first + 1)
        order = by_unit[starts[first] : ends[last - 1]]
        place = np.full(len(unit), -1)
        place[order] = np.arange(order.size)
        placement = np.empty((order.size, n_groups))
        _place(*of_rows, mass, place, placement)
        _add_squares(order, unit, *of_rows[1:], placement, values, scale, variances, fourths)
        first = last


@kernel(
    numba.void(
        numba.types.Array(numba.float64, 1, "C", readonly=True),
        numba.intp[::1],
        numba.boolean[::1],
        numba.types.Array(numba.float64, 1, "C", readonly=True),
        numba.float64[:, ::1],
        numba.float64[:, ::1],
        numba.float64[:, ::1],
        numba.float64[:, ::1],
        numba.boolean,
    ),
    error_model="numpy",
)
def _add_placements(  # type: ignore[no-untyped-def]
    scores, codes, positive, weight, scale, mass, values, variances, by_row
):
    """Add each positive's placement to its areas; then, if `by_row`, each row's squared influence on the areas.

    The placements of a row are used at once, so that memory does not grow with the number of rows. Scores ascend.
    scale: (n_groups, 2), √r over the weight of each class of each group; mass: (2, n_groups), of negatives and
    positives; values, variances: (n_groups, n_groups), zeros at first; receive the areas, NaN where a class has no row,
    and their variances.
    """
    n_rows, n_groups = len(scores), len(values)
    below, upto, placed = np.zeros((2, n_groups)), np.zeros((2, n_groups)), np.zeros((2, n_groups))
    for squares in range(2 if by_row else 1):
        below[:], upto[:] = 0.0, 0.0
        start = 0
        while start < n_rows:
            end, n_positive = start, 0
            while end < n_rows and scores[end] == scores[start]:
                n_positive += positive[end]
                upto[1 if positive[end] else 0, codes[end]] += weight[end]
                end += 1
            if n_positive:
                for group in range(n_groups):
                    middle = 0.5 * (below[0, group] + upto[0, group])
                    placed[1, group] = middle / mass[0, group] if mass[0, group] else 0.0
            if squares and n_positive < end - start:
                for group in range(n_groups):
                    middle = 0.5 * (below[1, group] + upto[1, group])
                    total = mass[1, group]
                    placed[0, group] = (total - middle) / total if total else 0.0
            for row in range(start, end):
                own = codes[row]
                if squares:
                    side = 1 if positive[row] else 0
                    factor = weight[row] * scale[own, 1 - side]
                    for group in range(n_groups):
                        a, b = (own, group) if side else (group, own)
                        part = factor * (placed[side, group] - values[a, b])
                        variances[a, b] += part**2
                elif positive[row]:
                    for group in range(n_groups):
                        values[own, group] += weight[row] * placed[1, group]
            for row in range(start, end):
                side = 1 if positive[row] else 0
                below[side, codes[row]] = upto[side, codes[row]]
            start = end
        if not squares:
            for a in range(n_groups):
                for b in range(n_groups):
                    area = min(values[a, b] / mass[1, a], 1.0)
                    values[a, b] = area if mass[0, b] > 0.0 and mass[1, a] > 0.0 else np.nan


@kernel(
    numba.void(
        numba.types.Array(numba.float64, 1, "C", readonly=True),
        numba.intp[::1],
        numba.boolean[::1],
        numba.types.Array(numba.float64, 1, "C", readonly=True),
        numba.float64[:, ::1],
        numba.intp[::1],
        numba.float64[:, ::1],
    ),
    error_model="numpy",
)
def _place(scores, codes, positive, weight, mass, place, placement):  # type: ignore[no-untyped-def]
    """Write some rows' placements: the fraction of the other class, by group, that ranks worse; ties count half.

    mass: (2, n_groups), of negatives and positives; place: where the placements of a row are written, −1 for nowhere;
    placement: (n_places, n_groups), for a positive the fraction of a group's negatives below it, for a negative the
    fraction of its positives above it; 0 if there are none.
    """
    n_rows, n_groups = len(scores), placement.shape[1]
    below, upto = np.zeros((2, n_groups)), np.zeros((2, n_groups))
    start = 0
    while start < n_rows:
        end = start
        while end < n_rows and scores[end] == scores[start]:
            upto[1 if positive[end] else 0, codes[end]] += weight[end]
            end += 1
        for row in range(start, end):
            at, other = place[row], 0 if positive[row] else 1
            if at < 0:
                continue
            for group in range(n_groups):
                total = mass[other, group]
                middle = 0.5 * (below[other, group] + upto[other, group])
                if other:
                    middle = total - middle
                placement[at, group] = middle / total if total else 0.0
        for row in range(start, end):
            side = 1 if positive[row] else 0
            below[side, codes[row]] = upto[side, codes[row]]
        start = end


@kernel(
    numba.void(
        numba.intp[::1],
        numba.types.Array(numba.intp, 1, "C", readonly=True),
        numba.intp[::1],
        numba.boolean[::1],
        numba.types.Array(numba.float64, 1, "C", readonly=True),
        numba.float64[:, ::1],
        numba.float64[:, ::1],
        numba.float64[:, ::1],
        numba.float64[:, ::1],
        numba.float64[:, ::1],
    )
)
def _add_squares(  # type: ignore[no-untyped-def]
    order, unit, codes, positive, weight, placement, values, scale, variances, fourths
):
    """Add the squared influence of each row or row group on each xAUC, which sum to its variance.

    order: rows, those of one unit together; placement: of each row in `order`, as `_place` writes it; values: the
    areas; scale: as `_add_placements`; variances, fourths: (n_groups, n_groups), the squared influences and their
    fourth powers are added.
    """
    n_rows, n_groups = placement.shape
    of_unit = np.zeros((n_groups, n_groups))
    start = 0
    while start < n_rows:
        end = start
        while end < n_rows and unit[order[end]] == unit[order[start]]:
            row = order[end]
            own = codes[row]
            for group in range(n_groups):
                a, b = (own, group) if positive[row] else (group, own)
                factor = weight[row] * scale[own, 0 if positive[row] else 1]
                of_unit[a, b] += factor * (placement[end, group] - values[a, b])
            end += 1
        # A cell that was added is set back to 0: seen again, for another row of the unit, it adds nothing.
        for at in range(start, end):
            row = order[at]
            own = codes[row]
            for group in range(n_groups):
                a, b = (own, group) if positive[row] else (group, own)
                variances[a, b] += of_unit[a, b] ** 2
                fourths[a, b] += of_unit[a, b] ** 4
                of_unit[a, b] = 0.0
        start = end
