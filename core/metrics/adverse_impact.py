"""Adverse impact: selection rates of groups of people at a threshold, their ratios, and the four-fifths rule.

**Selection.** A threshold flags the rows with score ≥ threshold. Which side is favourable depends on the use. A model
of risk flags loans to reject, so its favourable outcome is *not flagged*. A model of response flags customers who get
an offer, so its favourable outcome is *flagged*. Both sides are computed. They differ: rates of .98 and .96 not flagged
have the ratio .98, and the rates of .02 and .04 flagged the ratio .5.

**Ratio.** The adverse impact ratio of a group is its selection rate divided by that of the group with the highest rate
(EEOC Uniform Guidelines, 29 CFR 1607.4 D). A group of less than 2 % of the rows (29 CFR 1607.15 A) is compared, but it
is not the reference of others.

**Interval of two rates.** Koopman's score interval (1984): all ratios θ that the score test of p₁ = θ p₀ does not
reject. It exists for rates of 0 and 1. A continuity correction of (1 / n₁ + θ / n₀) / 2 makes up for the skewness of
rates near 0: without it, a group of 20 rows passes too often. Rates have effective trials n: rows; with weights, the
lesser of Kish's number and of the one at which flagged rows have the mean weight that they have in all groups (Kish's
number is too large where the heavy rows are the selected ones); with units (rows that were drawn together), the number
of independent rows that have the variance between units, at least the number of units, with Student's t as in
`fairness`. A unit with rows in several groups counts in each as if they were independent.

**Interval of the ratio to the highest rate.** The group with the highest rate of the sample need not be that of the
population, and its rate is too high on average. The population's ratio is θ_g = min(1, min over h of p_g / p_h). Its
lower end is the least of the lower ends of the ratios to each reference h. Its upper end is the least of the upper ends
at the level 1 − α / k for k references. Both cover whichever group is highest in the population.

**Verdict.** A group passes if its interval is at or above four fifths, and fails if the ratio is significantly below:
the p-value of H₀: θ_g ≥ 0.8 (the least of the k score tests, times k), adjusted by Holm over all groups of all columns,
is less than α. Otherwise there is not enough data. A column passes if each of its groups does (which needs no
adjustment), and fails if one fails.

References
----------
Koopman, "Confidence intervals for the ratio of two binomial proportions", Biometrics 40 (1984).
Miettinen & Nurminen, "Comparative analysis of two rates", Statistics in Medicine 4 (1985).
Equal Employment Opportunity Commission, "Uniform guidelines on employee selection procedures", 29 CFR part 1607 (1978).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_items, check_value
from core.errors import InvalidParameter
from core.metrics.estimates import (
    EPSILON,
    Interval,
    adjust_present,
    normal_quantile,
    student_shrinkage,
    wilson_interval,
)
from core.metrics.fairness import GroupMetric, number_groups
from core.metrics.four_fifths import FOUR_FIFTHS, MIN_REFERENCE_SHARE, SIDES, Side
from core.metrics.groups import (
    MIN_CLASS_ROWS,
    EvaluatedRows,
    FloatArray,
    check_rows,
    effective_number,
    has_enough,
    sum_by_unit,
)
from core.metrics.operating import check_threshold
from core.metrics.window import check_level

MAX_STEPS = 10_000
"""Thresholds that are stored: of more distinct scores, as many as evenly spaced in rank."""

_OF = ("all", "positives", "negatives")
_HALVINGS = 50
_GREAT = 1e9
_EXTREME = math.log(1e12)


@dataclass(frozen=True, eq=False)
class GroupSteps:
    """What each threshold flags in each group: enough for the rates of any threshold.

    Examples
    --------
    >>> from core.metrics import compare_at_threshold, group_steps
    >>> y, scores, sex = [0, 1] * 40, list(range(80)), ["f"] * 40 + ["m"] * 40
    >>> group_steps(y, scores, sex).values
    ('f', 'm')
    """

    values: tuple[str | None, ...]
    """The groups by value; None is the group of the rows without a value."""
    thresholds: FloatArray
    """Decreasing. Shape (n_steps,)."""
    counts: NDArray[np.int64]
    """Numbers of positive and negative rows of weight above 0. Shape (n_groups, 2)."""
    flagged: FloatArray
    """Weight of the positives and of the negatives at or above each threshold, after a leading 0. Shape (2, n_groups,
    n_steps + 1)."""
    weight: FloatArray
    """Weight of all positives and of all negatives. Shape (2, n_groups)."""
    trials: FloatArray
    """Effective trials of the share that is flagged: of all rows, of the positives and of the negatives. Shape (3,
    n_groups, n_steps + 1)."""
    effective: FloatArray
    """Effective numbers of rows or units. Shape (3, n_groups)."""
    units: bool
    """Whether rows are drawn together in units."""


class ImpactRatio(NamedTuple):
    """The adverse impact ratio of one group on one side of a threshold.

    Examples
    --------
    >>> from core.metrics import compare_at_threshold, group_steps
    >>> y, scores, sex = [0, 1] * 40, list(range(80)), ["f"] * 40 + ["m"] * 40
    >>> (found,) = compare_at_threshold([group_steps(y, scores, sex)], 60.0)
    >>> found.sides["not_flagged"].groups[1].ratio.interval.value
    0.5
    """

    rate: GroupMetric
    """Share of the group's rows on this side."""
    ratio: GroupMetric
    """To the highest rate of any group, at most 1."""
    p_value: float | None
    """Of H₀: the ratio is at least 0.8. None without a ratio."""
    adjusted_p_value: float | None
    """By Holm over all groups of all columns that were compared at once."""
    passes: bool | None
    """True: the interval is at or above 0.8. False: significantly below. None: not enough data."""


@dataclass(frozen=True)
class SideImpact:
    """Selection rates and adverse impact ratios of all groups on the favourable side.

    Examples
    --------
    >>> from core.metrics import compare_at_threshold, group_steps
    >>> y, scores, sex = [0, 1] * 40, list(range(80)), ["f"] * 40 + ["m"] * 40
    >>> (found,) = compare_at_threshold([group_steps(y, scores, sex)], 60.0)
    >>> found.sides["not_flagged"].passes
    False
    """

    side: Side
    """The favourable side."""
    reference: int | None
    """The group with the highest rate. None without ratios."""
    groups: tuple[ImpactRatio, ...]
    """In the order of the groups."""
    passes: bool | None
    """True if every group passes, False if one fails, None if there is not enough data."""


@dataclass(frozen=True)
class ThresholdGroups:
    """The rates of all groups of one column at a threshold.

    Attributes
    ----------
    tpr, fpr : tuple of GroupMetric
        Of each group.

    Examples
    --------
    >>> from core.metrics import compare_at_threshold, group_steps
    >>> y, scores, sex = [0, 1] * 40, list(range(80)), ["f"] * 40 + ["m"] * 40
    >>> (found,) = compare_at_threshold([group_steps(y, scores, sex)], 60.0)
    >>> sorted(found.sides)
    ['flagged', 'not_flagged']
    """

    threshold: float
    """As given."""
    values: tuple[str | None, ...]
    """The groups."""
    counts: tuple[tuple[int, int], ...]
    """Numbers of positive and negative rows of each group."""
    tpr: tuple[GroupMetric, ...]
    fpr: tuple[GroupMetric, ...]
    sides: dict[Side, SideImpact]
    """For each side of the threshold."""


def group_steps(
    y: ArrayLike,
    scores: ArrayLike,
    by: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    max_steps: int = MAX_STEPS,
) -> GroupSteps:
    """Summarise what each threshold flags in each group of rows, for `compare_at_threshold`.

    Parameters
    ----------
    y, scores, sample_weight, group
        As for `auc_interval`.
    by : array_like, shape (n_samples,)
        Group of each row: numbers, booleans or text. NaN and None form their own group.
    max_steps : int, at least 2
        Thresholds to keep. With more distinct scores, a threshold between two that are kept counts as the higher one.

    Returns
    -------
    GroupSteps
        O(n log n) time; O(n + n_groups · n_steps) memory.

    Examples
    --------
    >>> from core.metrics import group_steps
    >>> found = group_steps([0, 1, 0, 1], [1.0, 2.0, 2.0, 3.0], ["a", "a", "b", "b"])
    >>> found.thresholds.tolist(), found.flagged[:, 1].tolist()
    ([3.0, 2.0, 1.0], [[0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
    """
    check_value("max_steps", int, max_steps)
    if max_steps < 2:
        raise InvalidParameter(f"max_steps must be at least 2, got {max_steps}")
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    codes, values = number_groups(by, np.size(np.asarray(y)))
    if sample_weight is not None:
        codes = codes[np.asarray(sample_weight, dtype=np.float64) > 0]
    thresholds = np.unique(rows.scores[0])[::-1]
    if thresholds.size > max_steps:
        kept = np.linspace(0, thresholds.size - 1, max_steps).round().astype(np.intp)
        thresholds = thresholds[kept]
    n_groups, n_steps = len(values), thresholds.size
    counts = np.zeros((n_groups, 2), dtype=np.int64)
    flagged = np.zeros((2, n_groups, n_steps + 1))
    weight = np.zeros((2, n_groups))
    trials = np.zeros((3, n_groups, n_steps + 1))
    effective = np.zeros((3, n_groups))
    heaviness = None
    if rows.weight is not None and rows.unit is None:
        heaviness = _heaviness(rows.scores[0], rows.weight, thresholds)
    for code in range(n_groups):
        own = rows.take(np.flatnonzero(codes == code))
        for place, chosen in enumerate((None, own.positive, ~own.positive)):
            part = own if chosen is None else own.take(chosen)
            if not part.positive.size:
                continue
            mass, total, effective[place, code], trials[place, code] = _steps_of(part, thresholds)
            if place:
                flagged[place - 1, code], weight[place - 1, code] = mass, total
                counts[code, place - 1] = part.positive.size
            elif heaviness is not None:
                share = mass / total
                each = (1.0 - share) * heaviness[0] + share * heaviness[1]
                trials[0, code] = np.minimum(trials[0, code], total / each)
    return GroupSteps(
        tuple(values), thresholds, counts, flagged, weight, trials, effective, rows.unit is not None
    )


def _steps_of(
    rows: EvaluatedRows, thresholds: FloatArray
) -> tuple[FloatArray, float, float, FloatArray]:
    """Return the weight above each threshold (first 0), all weight, the effective rows or units, and trials by
    threshold.
    """
    order = np.argsort(-rows.scores[0], kind="stable")
    weight = np.ones(order.size) if rows.weight is None else rows.weight[order]
    at = np.searchsorted(-rows.scores[0][order], np.r_[-np.inf, -thresholds], side="right")
    mass, total = _before(weight)[at], float(weight.sum())
    if rows.unit is None:
        kish = total if rows.weight is None else effective_number(weight)
        return mass, total, kish, np.full(at.size, kish)
    unit = rows.unit[order]
    of_unit = sum_by_unit(weight, unit)
    effective = effective_number(of_unit[of_unit > 0.0])
    squares = _before(2.0 * _sums_before(weight, unit) * weight + weight**2)[at]
    products = _before(weight * of_unit[unit])[at]
    whole = float((of_unit**2).sum())
    variance = _variance(mass / total, squares, products, whole, total, effective)
    most = effective_number(weight)
    return mass, total, effective, _trials(mass / total, variance, effective, most)


def _heaviness(
    scores: FloatArray, weight: FloatArray, thresholds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return Σw² / Σw of the rows that each threshold flags, and of the others; that of all rows where there are none.

    With a share p flagged, a group of weight W has the variance p (1 − p) ((1 − p) a + p b) / W by these two.
    """
    order = np.argsort(-scores, kind="stable")
    at = np.searchsorted(-scores[order], np.r_[-np.inf, -thresholds], side="right")
    mass, squares = _before(weight[order])[at], _before(weight[order] ** 2)[at]
    whole = squares[-1] / mass[-1]
    flagged = np.divide(squares, mass, out=np.full(at.size, whole), where=at > 0)
    others = np.divide(
        squares[-1] - squares,
        mass[-1] - mass,
        out=np.full(at.size, whole),
        where=at < order.size,
    )
    return flagged, np.maximum(others, 0.0)


def _before(values: FloatArray) -> FloatArray:
    sums: FloatArray = np.r_[0.0, np.cumsum(values)]
    return sums


def _sums_before(weight: FloatArray, unit: NDArray[np.intp]) -> FloatArray:
    """Return for each row the weight of the earlier rows of its unit, shape (n_rows,)."""
    by_unit = np.argsort(unit, kind="stable")
    sums, ordered = _before(weight[by_unit]), unit[by_unit]
    starts = np.searchsorted(ordered, ordered, side="left")
    before = np.empty(unit.size)
    before[by_unit] = sums[:-1] - sums[starts]
    return before


def _variance(
    share: FloatArray,
    squares: FloatArray,
    products: FloatArray,
    whole: float,
    total: float,
    effective: float,
) -> FloatArray:
    """Return the variance of the share of the weight above each threshold, by the influence of rows or units.

    A unit of weight W with weight S above the threshold has the influence (S − share · W) / total. `squares` and
    `products` are the sums of S² and of S · W, and `whole` that of W².
    """
    scale = effective / max(effective - 1.0, 1.0) / total**2
    variance: FloatArray = (
        np.maximum(squares - 2.0 * share * products + share**2 * whole, 0.0) * scale
    )
    return variance


def _trials(share: FloatArray, variance: FloatArray, least: float, most: float) -> FloatArray:
    """Return the numbers of independent rows with these variances, in a range; the least where no variance is seen."""
    binomial = share * (1.0 - share)
    seen = (variance > EPSILON**2) & (binomial > EPSILON)
    trials: FloatArray = np.divide(binomial, variance, out=np.full(share.size, least), where=seen)
    return np.maximum(np.minimum(trials, most), least)


def compare_at_threshold(
    columns: Sequence[GroupSteps], threshold: float, *, level: float = 0.95
) -> tuple[ThresholdGroups, ...]:
    """Compare selection rates, adverse impact ratios, TPR and FPR of groups at a threshold.

    Parameters
    ----------
    columns : sequence of GroupSteps
        From `group_steps`, one per column.
    threshold : float
        Rows with score ≥ threshold are flagged. Infinite is allowed.
    level : float in (0, 1)
        Confidence level of each interval; 1 − level is the significance level of the verdicts.

    Returns
    -------
    tuple of ThresholdGroups
        One per column. O(n_groups²) time per column.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import compare_at_threshold, group_steps
    >>> rng = np.random.default_rng(0)
    >>> sex, y = np.repeat(["f", "m"], 1000), rng.integers(0, 2, 2000)
    >>> steps = group_steps(y, rng.normal(size=2000) + y + (sex == "f"), sex)
    >>> (found,) = compare_at_threshold([steps], 1.0)
    >>> of = found.sides["not_flagged"]
    >>> [round(group.ratio.interval.value, 2) for group in of.groups], of.passes
    ([0.46, 1.0], False)
    """
    check_items("columns", columns, GroupSteps)
    level, threshold = check_level(level), check_threshold(threshold)
    at = [int(np.searchsorted(-each.thresholds, -threshold, side="right")) for each in columns]
    sides: dict[Side, list[SideImpact]] = {}
    for side in SIDES:
        found = [_impact(each, step, side, level) for each, step in zip(columns, at, strict=True)]
        sides[side] = _decide(found, level)
    return tuple(
        ThresholdGroups(
            threshold,
            each.values,
            tuple((int(positives), int(negatives)) for positives, negatives in each.counts),
            _rates(each, step, 1, level),
            _rates(each, step, 2, level),
            {side: sides[side][index] for side in SIDES},
        )
        for index, (each, step) in enumerate(zip(columns, at, strict=True))
    )


def _rates(steps: GroupSteps, step: int, of: int, level: float) -> tuple[GroupMetric, ...]:
    """Return the flagged share of all rows (0), of the positives (1) or of the negatives (2) of each group."""
    return tuple(
        GroupMetric(None, lack)
        if (lack := _lacks(steps, group, of))
        else GroupMetric(
            wilson_interval(
                _share(steps, group, step, of),
                float(steps.trials[of, group, step]) * _shrinkage(steps, group, of, level),
                level,
            ),
            None,
        )
        for group in range(len(steps.values))
    )


def _share(steps: GroupSteps, group: int, step: int, of: int) -> float:
    """Return the flagged share of a group's rows, or of those of a class."""
    which = slice(None) if of == 0 else slice(of - 1, of)
    share = steps.flagged[which, group, step].sum() / steps.weight[which, group].sum()
    return min(1.0, float(share))


def _shrinkage(steps: GroupSteps, group: int, of: int, level: float) -> float:
    """Return the factor of the trials that makes a normal interval as wide as Student's t between units."""
    if not steps.units:
        return 1.0
    return student_shrinkage(level, max(float(steps.effective[of, group]) - 1.0, 1.0))


def _lacks(steps: GroupSteps, group: int, of: int) -> str | None:
    worth = float(steps.effective[of, group])
    if has_enough(worth, MIN_CLASS_ROWS):
        return None
    counts = steps.counts[group]
    count = int(counts.sum() if of == 0 else counts[of - 1])
    name = "rows" if of == 0 else _OF[of]
    need = f"at least {MIN_CLASS_ROWS} are needed"
    if count < MIN_CLASS_ROWS:
        return f"{count} {name}, {need}"
    return f"{count} {name} have an effective number of {worth:.1f}, {need}"


def _impact(steps: GroupSteps, step: int, side: Side, level: float) -> SideImpact:
    """Return the rates and ratios of one column on one side; `_decide` adjusts the p-values and decides."""
    flagged = _rates(steps, step, 0, level)
    rates = flagged if side == "flagged" else tuple(map(_complement, flagged))
    known = [group for group, rate in enumerate(rates) if rate.interval is not None]
    rows = steps.weight.sum(axis=0)
    eligible = [g for g in known if rows[g] >= MIN_REFERENCE_SHARE * rows.sum() * (1.0 - EPSILON)]
    lack = None
    if len(known) < 2 or not eligible:
        lack = "fewer than two groups have enough rows"
    share = {g: rates[g].interval.value for g in known}  # type: ignore[union-attr]  # known ones
    if lack is None and not max(share[g] for g in eligible):
        lack = "no group that can be the reference has a selected row"
    if lack is not None:
        none = tuple(
            ImpactRatio(rate, GroupMetric(None, rate.reason or lack), None, None, None)
            for rate in rates
        )
        return SideImpact(side, None, none, None)
    reference = max(eligible, key=lambda g: (share[g], rows[g]))
    ratios = _ratios_to_highest(steps, step, known, eligible, share, level)
    groups = []
    for group, rate in enumerate(rates):
        interval, p_value = ratios.get(group, (None, None))
        reason = rate.reason if interval is None else None
        groups.append(ImpactRatio(rate, GroupMetric(interval, reason), p_value, None, None))
    return SideImpact(side, reference, tuple(groups), None)


def _complement(rate: GroupMetric) -> GroupMetric:
    if rate.interval is None:
        return rate
    value, low, high = rate.interval
    return GroupMetric(Interval(1.0 - value, 1.0 - high, 1.0 - low), None)


def _ratios_to_highest(
    steps: GroupSteps,
    step: int,
    known: Sequence[int],
    eligible: Sequence[int],
    share: Mapping[int, float],
    level: float,
) -> dict[int, tuple[Interval, float]]:
    """Return each group's ratio to the highest rate with its interval, and the p-value of H₀: it is at least 0.8.

    `known` are the groups that have a rate (`share`), and `eligible` those of them that can be the reference.
    """
    p = np.array([[share[group]] for group in known])
    q = np.array([share[group] for group in eligible])
    is_other = np.array([[group != other for other in eligible] for group in known])
    k = max(int(is_other.sum(axis=1).max()), 1)

    def trials(confidence: float) -> tuple[FloatArray, FloatArray]:
        own, of_others = (
            np.array([steps.trials[0, g, step] * _shrinkage(steps, g, 0, confidence) for g in of])
            for of in (known, eligible)
        )
        return own[:, None], of_others

    strict = 1.0 - (1.0 - level) / k
    (own_low, others_low), (own, of_others) = trials(level), trials(strict)
    low, high = _ratio_ends(
        p,
        np.stack((own_low, own)),
        q,
        np.stack((others_low, of_others))[:, None],
        np.array([normal_quantile(level), -normal_quantile(strict)]),
    )
    z = _score_z(p, own, q, of_others, np.full(is_other.shape, FOUR_FIFTHS))
    found: dict[int, tuple[Interval, float]] = {}
    for place, group in enumerate(known):
        others = is_other[place]
        if not others.any():  # every other group is too small to be the reference
            found[group] = Interval(1.0, 1.0, 1.0), 1.0
            continue
        best = float(q[others].max())
        value = min(1.0, share[group] / best) if best else 1.0
        ends = min(1.0, float(low[place, others].min())), min(1.0, float(high[place, others].min()))
        below = max(0.0, -float(z[place, others].min()))
        p_value = min(1.0, k * math.erfc(below / math.sqrt(2.0)))
        found[group] = Interval(value, min(ends[0], value), max(ends[1], value)), p_value
    return found


def _score_z(
    p: FloatArray, n: FloatArray, q: FloatArray, m: FloatArray, theta: FloatArray
) -> FloatArray:
    """Return Koopman's score statistic of H₀: p / q = theta, with a continuity correction; it falls in theta.

    p has n trials, and q has m. Under H₀ the greatest likelihood is at the lesser root q̃ of
    (n + m) θ q² − (θ n + x + m + θ y) q + x + y for the successes x = n p and y = m q (Miettinen & Nurminen 1985,
    eq. 9).
    """
    x, y = n * p, m * q
    a = (n + m) * theta
    b = theta * n + x + m + theta * y
    c = x + y
    root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
    fitted_q = np.clip(2.0 * c / (b + root), 0.0, 1.0)  # the stable form of (b − root) / 2 a
    fitted_p = np.clip(theta * fitted_q, 0.0, 1.0)
    variance = fitted_p * (1.0 - fitted_p) / n + theta**2 * fitted_q * (1.0 - fitted_q) / m
    difference = p - theta * q
    beyond = np.maximum(np.abs(difference) - 0.5 * (1.0 / n + theta / m), 0.0)
    z: FloatArray = np.sign(difference) * np.divide(
        beyond, np.sqrt(variance), out=np.where(beyond > 0.0, _GREAT, 0.0), where=variance > 0.0
    )
    return z


def _ratio_ends(
    p: FloatArray, n: FloatArray, q: FloatArray, m: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ratios p / q at which the score statistic is z: the lower ends for z[0] > 0, the upper for z[1] < 0.

    p of shape (n_groups, 1) has n trials, (2, n_groups, 1), and q of shape (n_others,) has m, (2, 1, n_others).
    """
    shape = (2, p.shape[0], q.size)
    low, high = np.full(shape, -_EXTREME), np.full(shape, _EXTREME)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = _score_z(p, n, q, m, np.exp(middle)) > z[:, None, None]
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    ends = np.exp(0.5 * (low + high))
    return np.where(p == 0.0, 0.0, ends[0]), np.where(q == 0.0, np.inf, ends[1])


def _decide(found: Sequence[SideImpact], level: float) -> list[SideImpact]:
    adjusted = iter(adjust_present([one.p_value for each in found for one in each.groups]))
    decided = []
    for each in found:
        groups = tuple(
            one._replace(adjusted_p_value=p_value, passes=_passes(one, p_value, level))
            for one, p_value in zip(each.groups, adjusted, strict=False)
        )
        verdicts = [one.passes for one in groups]
        passes = None
        if False in verdicts:
            passes = False
        elif verdicts and all(verdicts):
            passes = True
        decided.append(replace(each, groups=groups, passes=passes))
    return decided


def _passes(one: ImpactRatio, adjusted: float | None, level: float) -> bool | None:
    interval = one.ratio.interval
    if interval is None or adjusted is None:
        return None
    if interval.low >= FOUR_FIFTHS:
        return True
    return False if adjusted < 1.0 - level and interval.high < FOUR_FIFTHS else None
