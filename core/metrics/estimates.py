"""Intervals, paired differences and tests, computed from metric values and influences; shared by all metrics.

A metric gives its value θ for each scorer, and the influence of each unit on it: how much θ changes, to first order, if
the unit is left out (`Estimates`). A unit is a row, or all rows of a group that were drawn together. With u_g the
influence of unit g, √r included (r = e / (e − 1), e the effective number of units),

    Var θ = Σ u_g²,   Cov(θ, θ') = Σ u_g u'_g   for any two metrics or scorers on the same units.

Interval of a metric in [0, 1]
------------------------------
It is Wilson's for n* trials: the trials of a proportion that is as uncertain as the metric (as Korn & Graubard 1998 do
for surveys). From the observed variance, n* would be θ (1 − θ) / Var θ. But if θ is close to 1, a few rows make up
1 − θ, and a sample that lacks one of them shows too small a variance and too great a value. DeLong's interval on the
logit scale covered 80 % instead of 95 with 20 positives, 2,000 negatives and an AUC of .99. So Var θ is mixed with the
greatest variance that any population can have: a mean of n values in [0, 1] has variance θ (1 − θ) / n at most. Each
metric says its n (`trials`). With q = min(θ, 1 − θ),

    1 / n* = (1 − w) Var θ / (θ (1 − θ)) + w / n,   w = 1 / (1 + (k / 5)²),   1 / k = Var θ / q² + 1 / n,

but no less than Var θ / (θ (1 − θ)): metrics of a new sample, whose prevalence varies, may have more than that bound.
k is the effective number of rows that make up q: (Σd)² / Σd² for the parts d of the rows in it. With many of them w
vanishes and the interval is DeLong's; with none, n* is n: AUC 1 on 50 positives and 50 negatives gives [0.929, 1]. If q
is worth one and a half trials or fewer, a single row may be all of it, and the interval reaches to 0 or 1. The 5 was
chosen by simulation (docs/statistics-evidence.md). n* is also n if the sample shows no variance.

The AUC has a narrower bound than any mean (`classes`): w / n is replaced by w V / (A (1 − A)), with V the variance of
Hanley & McNeil (1982) for exponential scores, those of the smaller class the wider ones, and the 5 by an 8. The n in
1 / k stays. With 20 positives, 2,000 negatives and an AUC of .99 the interval is a third narrower than with
A (1 − A) / n (docs/statistics-evidence.md). The mean of the AUCs of folds keeps A (1 − A) / n, unless repeats show how
the rankers depend on the rows (see `comparison`).

With units of several rows, the interval is ± t standard errors on the logit scale: Student's t allows for few units,
and the greatest variance of whole units, all rows of which are wrong, is beyond what samples have. Units of unequal
sizes need more, since the few large ones make up most of V, which is then uncertain: with k = V² / Σu⁴, the degrees of
freedom ν are 3 (k − 1), if that is less than the units have, and the variance is V (1 + 1 / ν).

Rows of unequal weights are uncertain in the same way. The degrees of freedom that weights cost (see below) widen V; of
metrics other than areas, whose intervals are also computed from sums by score.

Difference of two scorers
-------------------------
The difference d = θ − θ' has the variance V = Σ v_g² with v_g = u_g − u'_g. If many units contribute to V, d is
compared with a normal distribution: for AUCs this is DeLong's test. If few do, such as the few negatives in a narrow
window, V is itself a random number and is often too small. With k = V² / Σ v_g⁴, the effective number of units that
contribute, Satterthwaite's approximation gives V the degrees of freedom

    1 / ν = max(0, 1 / (2 (k − 1)) − 1 / 60),

and d is compared with Student's t for ν degrees and the variance V (1 + 1 / ν). From 31 effective units on this is the
normal distribution, bit for bit. Without it, two equally good scorers differ in 38 % of samples of 2,000 + 20 rows over
[0, .05]. No difference of n trials has a variance above (1 − d²) / n, which bounds the interval where the scorers agree
on nearly all rows. With units of several rows, ν is at most one less than their effective number.

The sum of influences is only the first-order approximation of d. Below `MIN_TEST_ROWS` effective rows of a class in the
window it is wrong whatever the distribution, so there is no p-value: `p_value` is None, and the interval has at least
the greatest possible variance. In cross-validation each fold has a curve, and needs `MIN_FOLD_TEST_ROWS`. If n units of
unequal weights have the effective number e, a few heavy ones may fill the window, which then holds fewer effective
units than its share of e. They are therefore counted as e √(e / n); without that factor, tests over [0, .1] of 500 +
100 rows with lognormal weights err in 7 to 10 %, and after it in at most 6 % (docs/statistics-evidence.md).

If the sample shows no variance, because the scorers rank the rows alike, each is perfect, or a class has the weight of
one unit, the n trials are taken as n pairs of outcomes, of which n |d| favour one scorer and none the other. The
interval is Tango's for such a table, p is McNemar's, 2 Φ(−√(n |d|)). Scorers that agree have the difference 0, p = 1,
and the interval ±z² / (n + z²): agreement on these rows does not prove that they are the same.

Several tests
-------------
`adjusted_p_value` is Holm's, over all pairs and all metrics of a comparison: the probability of any false "different"
among them stays below the level. Each interval is for one difference.

H₀: all scorers have the same value. With d the differences to the first scorer and S their covariance, of rank r,
Wald's statistic is dᵀ S⁺ d: equal scorers, and windows that others determine, do no harm. Since S is estimated, the
statistic is compared with Hotelling's T² of r and m degrees of freedom; m is one less than the effective units of the
smaller class, or the least ν of the differences if that is less. (Compared with χ², five equally good scorers over
three windows were called different in 56 % of samples of 10 + 20 rows.) The p-value is Holm's least instead if m < 2 r,
or if d leaves the range of S, so that a difference has no variance. Of two scorers it is the p-value of their
difference. Metrics without a p-value are left out.

References
----------
Hanley & McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC) curve", Radiology 143
(1982).
Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
Hotelling, "The generalization of Student's ratio", Annals of Mathematical Statistics 2 (1931).
Korn & Graubard, "Confidence intervals for proportions with small expected number of positive counts estimated from
survey data", Survey Methodology 24 (1998).
McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 12 (1947).
Obuchowski, "Nonparametric analysis of clustered ROC curve data", Biometrics 53 (1997).
Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2 (1946).
Tango, "Equivalence test and confidence interval for the difference in proportions for the paired-sample design",
Statistics in Medicine 17 (1998).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Real
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_items, check_value
from core.errors import MAX_VALUE, InvalidParameter, shorten
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    RowGroups,
    count_units,
    effective_units,
    has_enough,
    inner,
    spans,
)
from core.metrics.window import (
    check_level,
)

M = TypeVar("M")

# Standard errors, and distances to 0 or 1, below this are rounding.
EPSILON = 1e-12


# Degrees of freedom of Student's t. Below, SciPy's quantile overflows; here it exceeds 1e128, and the interval is
# everything that is possible.
MIN_DEGREES = 0.01


MIN_UNEVEN_DEGREES = 0.5
"""Least degrees of freedom of a variance that groups of unequal sizes, or rows of unequal weights, have."""


MANY_DEGREES = 60.0
"""Degrees of freedom of a variance from which on a difference is compared with the normal distribution."""


MIN_TEST_ROWS = 3
"""Effective rows of a class in a window below which a difference of areas has no p-value."""


MIN_FOLD_TEST_ROWS = 4
"""The same of each fold: the errors of the first-order approximation add up over folds."""


ENOUGH_ROWS = 5.0
"""Effective number of rows behind an area's distance to 0 or 1 at which half of the variance is the observed one."""


ENOUGH_ROWS_OF_CLASSES = 8.0
"""The same for the AUC, whose variance is mixed with that of Hanley & McNeil."""


ONE_ROW = 1.5
"""Trials up to which an area's distance to 0 or 1 may come from a single row."""


class Interval(NamedTuple):
    """An estimate with the limits of its confidence interval.

    Attributes
    ----------
    low, high : float
        Ends of the interval.

    Examples
    --------
    >>> from core.metrics import Interval
    >>> Interval(0.8, 0.7, 0.9).low
    0.7
    """

    value: float
    """The estimate."""
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Estimates:
    """Values of metrics for several scorers on the same rows, with each unit's (group's) influence on each value."""

    values: FloatArray
    """Shape (n_scorers, n_metrics), float64. Of areas: divided by the window's width."""
    influence: FloatArray | None
    """u_g of each unit (see the module), shape (n_scorers, n_metrics, n_units); None if a class has the weight of one
    unit only, which shows no variance."""
    effective: tuple[float, float]
    """Effective numbers of units of the positives and of the negatives."""
    degrees: float = math.inf
    """Degrees of freedom of Student's t for a value over its standard error; inf, the normal distribution, if each row
    is a unit."""
    parts: float = 1.0
    """Number of parts that the units are divided into, each with a value of its own; of folds, those of a repeat."""
    repeats: int = 1
    """Number of times that the units were divided into parts. With several, `influence` has so many entries more than
    there are units: the rows' effect on the rankers of the folds (see `comparison`)."""
    units: tuple[int, int] | None = None
    """Numbers of units with positives and with negatives; None if they are not known: weights then count as equal."""
    grouped: bool = False
    """Whether units have several rows."""
    weight: FloatArray | None = None
    """Weight of each row, if the units are single rows of unequal weights. Shape (n_units,)."""

    @property
    def evenness(self) -> tuple[float, float]:
        """√(e / n) per class, e the effective and n the actual number of rows or groups; 1 if all weigh the same."""
        if self.units is None:
            return 1.0, 1.0
        positive, negative = (
            min(1.0, math.sqrt(e / n)) for e, n in zip(self.effective, self.units, strict=True)
        )
        return positive, negative

    @property
    def effective_for_tests(self) -> tuple[float, float]:
        """Effective number of rows or groups per class times the evenness, which decides whether tests are made."""
        (positive, negative), even = self.effective, self.evenness
        return positive * even[0], negative * even[1]

    def variance(self, scorer: int, metric: int) -> float | None:
        if self.influence is None:
            return None
        parts = self.influence[scorer, metric]
        return inner(parts, parts)

    def interval(
        self,
        scorer: int,
        metric: int,
        trials: float,
        level: float,
        classes: tuple[float, float] | None = None,
    ) -> Interval:
        value, (variance, degrees) = float(self.values[scorer, metric]), self.spread(scorer, metric)
        return proportion_interval(value, variance, trials, level, degrees, classes)

    def spread(self, scorer: int, metric: int) -> tuple[float | None, float]:
        """Return a metric's variance and degrees of freedom, which few large groups reduce: see `group_degrees`."""
        variance = self.variance(scorer, metric)
        if not variance or not self.grouped or self.influence is None:
            return variance, self.degrees
        parts = self.influence[scorer, metric]
        degrees = min(self.degrees, group_degrees(variance, inner(parts**2, parts**2)))
        return variance * (1.0 + 1.0 / degrees), degrees

    def weighted_spread(self, scorer: int, metric: int, level: float) -> tuple[float | None, float]:
        """Return `spread`, where a few rows of great weight make the variance uncertain, too.

        The degrees of freedom that weights cost are those by `variance_degrees` beyond what rows of equal weight cost.
        They widen the variance, as Student's t would the interval at `level`.
        """
        variance, degrees = self.spread(scorer, metric)
        if not variance or self.weight is None or self.influence is None:
            return variance, degrees
        own = self.influence[scorer, metric][: self.weight.size]
        lost = 1.0 / variance_degrees(own, np.zeros_like(own))
        lost -= 1.0 / variance_degrees(own / self.weight, np.zeros_like(own))
        if lost < EPSILON:
            return variance, degrees
        lost = min(lost, 1.0 / MIN_UNEVEN_DEGREES)
        return variance * (1.0 + lost) / student_shrinkage(level, 1.0 / lost), degrees


def group_degrees(squares: float, fourths: float) -> float:
    """Return the degrees of freedom of a variance that is a sum of squared influences of groups.

    Normal influences of the variances σ² have Satterthwaite's (Σσ²)² / Σσ⁴, and E Σu⁴ = 3 Σσ⁴. Of n groups alike, the
    result is n − 1 in the mean.

    squares, fourths: float >= 0; sums of the second and of the fourth powers of the influences.
    """
    if fourths == 0.0:  # as fourth powers of rounding errors are
        return math.inf
    return max(3.0 * (squares * squares / fourths - 1.0), MIN_UNEVEN_DEGREES)


def influence_of_rows(
    rows: EvaluatedRows,
    groups: RowGroups,
    order: NDArray[np.intp],
    of_classes: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return the influence of each row, highest score first, given those of rows of weight 1 in each tie group."""
    positive = rows.positive[order]
    phi = np.empty(order.size)
    phi[positive] = of_classes[0][groups.positives.group]
    phi[~positive] = of_classes[1][groups.negatives.group]
    return phi if rows.weight is None else phi * rows.weight[order]


def estimates_of_units(
    values: FloatArray,
    influence: FloatArray,
    rows: EvaluatedRows,
    *,
    clustered: bool | None = None,
    centred_on: tuple[tuple[float, float], float] | None = None,
) -> Estimates:
    """Return estimates with the scaled influence of each unit (group), from the influence of each row.

    `influence` is changed in place. The symbols u, φ and r are explained in the docstring of the module.

    values: (n_scorers, n_metrics).
    influence: (n_scorers, n_metrics, n_rows); φ of each row.
    clustered: whether a unit has several rows: their number then sets the degrees of freedom. Default: whether rows
        have units.
    centred_on: effective numbers of units of the positives and of the negatives, over the means that φ was centred on,
        and the number of these means. Default: one mean of all rows.
    """
    whole, units = effective_units(rows), count_units(rows)
    effective, n_means = centred_on or (whole, 1.0)
    if clustered is None:
        clustered = rows.unit is not None
    degrees = max(min(whole) - 1.0, MIN_DEGREES) if clustered else math.inf
    if min(effective) <= n_means + EPSILON or min(whole) <= 1.0 + EPSILON:
        return Estimates(values, None, whole, degrees, units=units, grouped=clustered)
    influence *= np.where(rows.positive, *(math.sqrt(e / (e - n_means)) for e in effective))
    sums, weight = sum_influences(influence, rows.unit), None
    if not clustered and sums.shape[-1] == rows.positive.size:
        weight = rows.weight
    return Estimates(values, sums, whole, degrees, units=units, grouped=clustered, weight=weight)


def sum_influences(influence: FloatArray, unit: NDArray[np.intp] | None) -> FloatArray:
    """Return the influences summed over the rows of each group, along the last axis (Obuchowski 1997)."""
    if unit is None:
        return influence
    flat = influence.reshape(-1, influence.shape[-1])
    n_units = int(unit.max()) + 1
    sums = np.array([np.bincount(unit, row, n_units) for row in flat])
    return sums.reshape(*influence.shape[:-1], n_units)


def proportion_interval(
    value: float,
    variance: float | None,
    n: float,
    level: float,
    degrees: float = math.inf,
    classes: tuple[float, float] | None = None,
) -> Interval:
    """Return the confidence interval of an area, or of another mean of values in [0, 1].

    value: float in [0, 1].
    variance: None if the sample shows none.
    n: float > 0; trials of a proportion with the greatest variance that the value can have.
    level: float in (0, 1).
    degrees: float > 0; degrees of freedom of Student's t; inf for the normal distribution.
    classes: effective numbers of rows, if the value is the area of the whole curve: it then has a narrower bound than
        n.
    """
    if variance is None or not _shows_variance(value, variance):
        return wilson_interval(value, n, level)
    if not math.isinf(degrees):
        return logit_interval(value, variance, n, level, degrees)
    trials = effective_trials(value, variance, n, classes=classes)
    _, low, high = wilson_interval(value, trials, level)
    nearest = min(value, 1.0 - value)
    if trials * nearest <= ONE_ROW:  # at 0.5, where rounding would choose, to both sides
        low = 0.0 if value <= nearest + EPSILON else low
        high = 1.0 if 1.0 - value <= nearest + EPSILON else high
    return Interval(value, low, high)


def logit_interval(
    value: float, variance: float, n: float, level: float, degrees: float = math.inf
) -> Interval:
    """Return the interval of ± t standard errors on the logit scale; parameters as in `proportion_interval`."""
    if not _shows_variance(value, variance):
        return wilson_interval(value, n, level)
    logit = math.log(value / (1.0 - value))
    half_width = quantile(level, degrees) * math.sqrt(variance) / (value * (1.0 - value))
    low, high = _expit(logit - half_width), _expit(logit + half_width)
    return Interval(value, min(value, low), max(value, high))


def _shows_variance(value: float, variance: float) -> bool:
    return variance > EPSILON**2 and EPSILON < value < 1.0 - EPSILON


def effective_trials(
    value: float,
    variance: float | None,
    n: float,
    degrees: float = math.inf,
    classes: tuple[float, float] | None = None,
    rows: float | None = None,
) -> float:
    """Return n*, the number of trials of a proportion as uncertain as the value (see the module's docstring).

    Parameters as `proportion_interval`; `rows` is the number of rows behind the value (k), where more is known than the
    sample shows. It is `n` if the sample shows no variance.
    """
    if variance is None or not _shows_variance(value, variance):
        return n
    of_one_trial = value * (1.0 - value)
    if not math.isinf(degrees):
        return of_one_trial / variance
    if rows is None:
        rows = 1.0 / (variance / min(value, 1.0 - value) ** 2 + 1.0 / n)
    enough, most = ENOUGH_ROWS, n
    if classes is not None:
        enough, most = ENOUGH_ROWS_OF_CLASSES, max(n, _model_trials(value, classes))
    hidden = hidden_share(rows, enough)
    # Where the prevalence varies, too, this may be more than 1 / n: what is hidden only widens.
    shown = variance / of_one_trial
    return 1.0 / (shown + hidden * max(1.0 / most - shown, 0.0))


def hidden_share(rows: float, enough: float = ENOUGH_ROWS) -> float:
    """Return the weight w of the worst-case variance in a value's variance, given its effective rows."""
    return 1.0 / (1.0 + (rows / enough) ** 2)


def _model_trials(value: float, classes: tuple[float, float]) -> float:
    """Return trials for the variance of an AUC by Hanley & McNeil (1982): the smaller class has the wider of their
    scores.
    """
    area = max(value, 1.0 - value)
    least, most = sorted(classes)
    excess = (most - 1.0) * area / (1.0 + area) + (least - 1.0) * (1.0 - area) / (2.0 - area)
    return least * most / (1.0 + excess)


_Values = tuple[tuple[FloatArray, FloatArray, FloatArray], ...]
"""Of each mean: values, sums of weights, and sums of squared weights."""


def mean_variance(values: FloatArray, mass: FloatArray, squares: FloatArray) -> float | None:
    (variance,) = mean_variances(lambda: [((values, mass, squares),)])
    return variance


def mean_variances(blocks: Callable[[], Iterable[_Values]]) -> list[float | None]:
    """Return the `mean_variance` of several means, whose values come in blocks; `blocks` is called twice."""
    sums = sum(
        np.array(
            [(mass.sum(), squares.sum(), inner(mass, values)) for values, mass, squares in block]
        )
        for block in blocks()
    )
    totals, squares_of_weights, products = np.asarray(sums).T
    means = products / totals
    spreads = sum(
        np.array(
            [
                inner(squares, (values - mean) ** 2)
                for (values, _, squares), mean in zip(block, means, strict=True)
            ]
        )
        for block in blocks()
    )
    effective = totals**2 / squares_of_weights
    return [
        None if e <= 1.0 + EPSILON else float(spread / total**2 * e / (e - 1.0))
        for spread, total, e in zip(np.asarray(spreads), totals, effective, strict=True)
    ]


def wilson_interval(value: float, n: float, level: float = 0.95) -> Interval:
    """Compute Wilson's score interval of a proportion.

    Parameters
    ----------
    value : float in [0, 1]
        The observed proportion.
    n : float > 0
        Number of independent trials; with weights, the effective number.
    level : float in (0, 1)
        Probability that the interval covers the true proportion.

    Returns
    -------
    Interval
        0 ≤ low ≤ value ≤ high ≤ 1.

    References
    ----------
    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).

    Examples
    --------
    >>> from core.metrics import wilson_interval
    >>> print("{:.3f}, from {:.3f} to {:.3f}".format(*wilson_interval(0.9, 50)))
    0.900, from 0.786 to 0.957
    """
    check_value("value", Real, value)
    check_value("n", Real, n)
    if not 0.0 <= value <= 1.0:
        raise InvalidParameter(f"value must be in [0, 1], got {value}")
    if not 0.0 < n < math.inf:
        raise InvalidParameter(f"n must be positive and finite, got {n}")
    low, high = wilson_limits(np.array([value]), n, check_level(level))
    return Interval(value, float(low[0]), float(high[0]))


def wilson_limits(values: FloatArray, n: float, level: float) -> tuple[FloatArray, FloatArray]:
    shift = normal_quantile(level) ** 2 / n
    centre = (values + shift / 2.0) / (1.0 + shift)
    half_width = np.sqrt(shift * (values * (1.0 - values) + shift / 4.0)) / (1.0 + shift)
    # Exactly, the ends never pass the value, 0 or 1; rounding might.
    low = np.where(values == 0.0, 0.0, np.clip(centre - half_width, 0.0, values))
    high = np.where(values == 1.0, 1.0, np.clip(centre + half_width, values, 1.0))
    return low, high


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal variable is in ± z with probability `level`."""
    return NormalDist().inv_cdf((1.0 + level) / 2.0)


def quantile(level: float, degrees: float) -> float:
    """Return t such that Student's t is in ± t with probability `level`; normal if `degrees` is inf."""
    if math.isinf(degrees):
        return normal_quantile(level)
    from scipy.special import stdtrit  # which takes a tenth of a second to import

    return float(stdtrit(degrees, (1.0 + level) / 2.0))


def student_shrinkage(level: float, degrees: float) -> float:
    """Return (z / t)², by which to multiply trials so that a normal interval is as wide as Student's t."""
    return (normal_quantile(level) / quantile(level, degrees)) ** 2


def combine(
    first: Interval, second: Interval, weight: float, other: float
) -> tuple[float, float, float]:
    """Return weight · first + other · second of independent estimates, and its distances to both ends, by MOVER.

    Zou & Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27 (2008), eq. 5.
    """
    value = weight * first.value + other * second.value
    below, above = zip(*(_reach(*each) for each in ((first, weight), (second, other))), strict=True)
    return value, math.hypot(*below), math.hypot(*above)


def _reach(estimate: Interval, weight: float) -> tuple[float, float]:
    value, low, high = estimate
    if weight < 0.0:
        return -weight * (high - value), -weight * (value - low)
    return weight * (value - low), weight * (high - value)


def _expit(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else 1.0 - 1.0 / (1.0 + math.exp(x))


Adjustment = Literal["holm", "none"]


ADJUSTMENTS = ("holm", "none")


# Eigenvalues of a correlation matrix below this fraction of the greatest count as 0.
MIN_EIGENVALUE = 1e-9


# Along the axes of such eigenvalues, a difference of at most this number of standard errors is rounding.
MAX_RESIDUAL = 1e-3


@dataclass(frozen=True)
class Difference:
    """Difference of a metric between two scorers, with interval and p-value.

    Attributes
    ----------
    first, second : str
        Names of the scorers.
    low, high : float
        Ends of its confidence interval.

    Examples
    --------
    >>> from core.metrics import compare
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> found = compare(y, [[1, 3, 2, 4, 3, 5, 6, 7], [2, 1, 4, 6, 3, 5, 7, 8]], names=["old", "new"])
    >>> difference = found.windows[0].differences[0]
    >>> difference.first, difference.second, round(difference.value, 3)
    ('old', 'new', 0.094)
    """

    first: str
    second: str
    value: float
    """Metric of `first` minus that of `second`. For areas, which are divided by the window's width, in [-1, 1]."""
    low: float
    high: float
    p_value: float | None
    """Two-sided, for H₀: both are equal. None if there are too few rows for a test."""
    adjusted_p_value: float | None
    """Adjusted over all differences of the comparison that have a p-value. None without `p_value`."""


def check_metrics(metrics: Sequence[M]) -> Sequence[M]:
    if len(check_items("metrics", metrics)) == 0:
        raise InvalidParameter("metrics must contain at least one metric, got none")
    for each in metrics:
        if not hasattr(each, "of"):
            raise InvalidParameter(f"metrics must be metrics, got {shorten(repr(each), MAX_VALUE)}")
    return metrics


def check_scorers(
    scores: Sequence[ArrayLike], names: Sequence[str] | None, adjust: Adjustment
) -> tuple[dict[str, ArrayLike], tuple[str, ...]]:
    """Return the score arrays by argument name, for error messages, and the scorers' unique names."""
    check_value("adjust", str, adjust)
    if len(check_items("scores", scores)) < 2:
        raise InvalidParameter(f"scores must contain at least two scorers, got {len(scores)}")
    columns = {f"scores[{k}]": column for k, column in enumerate(scores)}
    named = tuple(columns) if names is None else tuple(check_items("names", names, str))
    if len(named) != len(scores):
        raise InvalidParameter(
            f"names must have one name for each of the {len(scores)} scorers, got {len(named)}"
        )
    if len(set(named)) < len(named):
        raise InvalidParameter(f"names must be unique, got {list(named)}")
    if adjust not in ADJUSTMENTS:
        raise InvalidParameter(f"adjust must be one of {ADJUSTMENTS}, got {adjust!r}")
    return columns, named


def difference_error(first: FloatArray, second: FloatArray) -> float:
    total = 0.0
    for start, stop in spans(0, first.size):
        parts = first[start:stop] - second[start:stop]
        total += inner(parts, parts)
    return math.sqrt(total)


def adjust_present(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm-adjusted p-values; those that are None stay None and are not counted."""
    present = np.array([p_value for p_value in p_values if p_value is not None])
    adjusted = iter(holm(present).tolist() if present.size else [])
    return [None if p_value is None else next(adjusted) for p_value in p_values]


def holm(p_values: FloatArray) -> FloatArray:
    """Return Holm-adjusted p-values (1979), in the shape of `p_values`."""
    flat = p_values.ravel()
    order = np.argsort(flat, kind="stable")
    steps = np.maximum.accumulate(flat[order] * np.arange(flat.size, 0, -1))
    adjusted = np.empty(flat.size)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted.reshape(p_values.shape)


def variance_degrees(first: FloatArray, second: FloatArray) -> float:
    """Return Satterthwaite's degrees of freedom ν of the variance of a difference of two metrics.

    first, second: (n_units,); influences of the units on each value. For the variance of one value, `second` is 0.

    Result: at least `MIN_DEGREES`; inf if `MANY_DEGREES` or more, or if no unit contributes.
    """
    blocks = list(spans(0, first.size))
    peak = max(float(np.abs(first[i:j] - second[i:j]).max()) for i, j in blocks)
    if peak == 0.0:
        return math.inf
    total = fourth = 0.0
    for i, j in blocks:
        # As fractions of the greatest: their fourth powers neither overflow nor vanish.
        squares = ((first[i:j] - second[i:j]) / peak) ** 2
        total += float(squares.sum())
        fourth += inner(squares, squares)
    degrees = max(2.0 * (total * total / fourth - 1.0), MIN_DEGREES)
    return math.inf if degrees >= MANY_DEGREES else 1.0 / (1.0 / degrees - 1.0 / MANY_DEGREES)


def pair_degrees(estimates: Estimates, first: int, second: int, metric: int) -> float:
    parts = estimates.influence
    if parts is None:
        return estimates.degrees
    return min(variance_degrees(parts[first, metric], parts[second, metric]), estimates.degrees)


def compare_pair(
    estimates: Estimates,
    pair: tuple[int, int],
    metric: int,
    trials: float,
    level: float,
    *,
    tested: bool = True,
) -> tuple[Interval, float | None]:
    """Return the difference of two scorers in a metric with its interval, and its p-value.

    `trials` is the n of `proportion_interval`. A metric that is not `tested` has no p-value, and the interval of a
    difference is at least that of the greatest possible variance and contains 0: rows too few for a test exclude no
    difference of 0.
    """
    interval, p_value = _compare_pair(estimates, pair, metric, trials, level, tested)
    if not tested:
        interval = interval._replace(low=min(interval.low, 0.0), high=max(interval.high, 0.0))
    return interval, p_value


def _compare_pair(
    estimates: Estimates,
    pair: tuple[int, int],
    metric: int,
    trials: float,
    level: float,
    tested: bool,
) -> tuple[Interval, float | None]:
    first, second = pair
    value = float(estimates.values[first, metric] - estimates.values[second, metric])
    error = 0.0
    if estimates.influence is not None:
        error = difference_error(
            estimates.influence[first, metric], estimates.influence[second, metric]
        )
    if error <= EPSILON:
        p_value = two_sided(math.sqrt(trials * abs(value))) if tested else None
        return one_sided_table(value, trials, level), p_value
    degrees = pair_degrees(estimates, first, second, metric)
    greatest = math.sqrt(max(0.0, 1.0 - value * value) / trials)
    normal_error = max(error, greatest)
    if not tested:
        half_width, p_value = normal_quantile(level) * normal_error, None
    elif math.isinf(degrees):
        half_width, p_value = normal_quantile(level) * error, two_sided(value / error)
    else:
        error *= math.sqrt(1.0 + 1.0 / degrees)
        half_width = min(quantile(level, degrees) * error, normal_quantile(level) * normal_error)
        p_value = min(two_sided(value / error, degrees), two_sided(value / normal_error))
    return Interval(value, max(-1.0, value - half_width), min(1.0, value + half_width)), p_value


@dataclass(frozen=True, eq=False)
class ComparedMetric:
    """One metric of a comparison: its column in the estimates, and how its differences are tested."""

    estimates: Estimates
    column: int
    trials: Sequence[float]
    """n of `proportion_interval` for each scorer; a difference has the lesser of the two."""
    tested: bool = True
    """Whether there are enough rows for p-values; see the module."""
    factor: float = 1.0
    """What differences are multiplied by, such as 1 / prevalence for a lift."""


def enough_for_tests(inside: float, parts: float = 1.0) -> bool:
    """Return whether areas have p-values, given the scarcer class's effective rows in the window of each part."""
    return has_enough(inside, rows_for_tests(parts))


def rows_for_tests(parts: float) -> int:
    """Return the effective rows of the scarcer class that each part needs for p-values."""
    return MIN_TEST_ROWS if parts == 1.0 else MIN_FOLD_TEST_ROWS


class Differences(NamedTuple):
    """The comparison of all scorers by one metric: the difference of every pair, and a joint test."""

    pairs: tuple[Difference, ...]
    """In the order (1, 2), (1, 3), …, (2, 3), …."""
    joint_p_value: float | None
    """Of H₀: all scorers have the same value. In [0, 1]; None if the metric is not tested."""


def compare_scorers(
    metrics: Sequence[ComparedMetric], names: tuple[str, ...], level: float, adjust: Adjustment
) -> tuple[Differences, ...]:
    """Return the differences of all pairs of scorers by each metric; p-values are adjusted over all of them."""
    pairs = list(combinations(range(len(names)), 2))
    found = []
    for each in metrics:
        of_metric = []
        for a, b in pairs:
            trials = min(each.trials[a], each.trials[b])
            interval, p_value = compare_pair(
                each.estimates, (a, b), each.column, trials, level, tested=each.tested
            )
            of_metric.append((rescaled(interval, each.factor), p_value))
        found.append(of_metric)
    return tuple(
        Differences(
            differences,
            of_metric[0][1]
            if len(pairs) == 1
            else joint_p_value(each.estimates, [each.column], [p for _, p in of_metric]),
        )
        for each, differences, of_metric in zip(
            metrics, name_differences(found, names, adjust), found, strict=True
        )
    )


def name_differences(
    found: Sequence[Sequence[tuple[Interval, float | None]]],
    names: tuple[str, ...],
    adjust: Adjustment,
) -> list[tuple[Difference, ...]]:
    """Name the differences of all pairs by metric (in the order of `Differences.pairs`), with adjusted p-values."""
    p_values = [p_value for of_metric in found for _, p_value in of_metric]
    adjusted = iter(p_values if adjust == "none" else adjust_present(p_values))
    return [
        tuple(
            Difference(first, second, *interval, p_value, next(adjusted))
            for (first, second), (interval, p_value) in zip(
                combinations(names, 2), of_metric, strict=True
            )
        )
        for of_metric in found
    ]


def rescaled(interval: Interval, factor: float, shift: float = 0.0) -> Interval:
    if factor != 1.0:
        interval = Interval(*(each * factor for each in interval))
    return Interval(*(each + shift for each in interval)) if shift else interval


def one_sided_table(value: float, trials: float, level: float) -> Interval:
    """Return Tango's interval of a paired difference of proportions if all differing pairs favour one scorer."""
    size, z_squared = abs(value), normal_quantile(level) ** 2
    _, low, high = wilson_interval(min(1.0, size), trials, level)
    mixed = (trials * size - z_squared) / (trials + z_squared)
    if mixed <= size / (2.0 - size):  # there the likeliest table has pairs of both kinds
        low = mixed
    return Interval(value, low, high) if value >= 0.0 else Interval(value, -high, -low)


def two_sided(z: float, degrees: float = math.inf) -> float:
    """Return the two-sided p-value of z, an estimate over its standard error; normal or Student's t."""
    if math.isinf(degrees):
        return math.erfc(abs(z) / math.sqrt(2.0))
    from scipy.special import stdtr

    return float(2.0 * stdtr(degrees, -abs(z)))


def _hotelling(statistic: float, rank: int, degrees: float) -> float:
    """Return the p-value of Hotelling's T² statistic (1931)."""
    from scipy.special import fdtrc

    spare = degrees - rank + 1.0
    return float(fdtrc(rank, spare, statistic * spare / (degrees * rank)))


def joint_p_value(
    estimates: Estimates, metrics: Sequence[int], p_values: Sequence[float | None]
) -> float | None:
    """Return Hotelling's T² p-value of H₀: all scorers are equal in these metrics; None without `p_values`."""
    present = np.array([p_value for p_value in p_values if p_value is not None])
    if present.size == 0:
        return None
    least = float(holm(present).min())
    if estimates.influence is None:
        return least
    columns = list(metrics)
    values = (estimates.values[1:, columns] - estimates.values[0, columns]).ravel()
    covariance = np.zeros((values.size, values.size))
    for start, stop in spans(0, estimates.influence.shape[-1]):
        parts = (
            estimates.influence[1:, columns, start:stop]
            - estimates.influence[0, columns, start:stop]
        )
        parts = parts.reshape(values.size, -1)
        covariance += np.einsum("ig,jg->ij", parts, parts)
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
    kept = roots > MIN_EIGENVALUE * roots[-1]
    if np.any(np.abs(along[~kept]) > MAX_RESIDUAL):
        return least
    statistic = float((along[kept] ** 2 / roots[kept]).sum())
    rank = int(np.count_nonzero(kept))
    if rank == 1:  # every difference is a multiple of one
        return float(present.min())
    contrasts = [(scorer, j) for scorer in range(1, len(estimates.values)) for j in columns]
    shown_contrasts = [contrast for contrast, has in zip(contrasts, shown, strict=True) if has]
    of_variance = min(pair_degrees(estimates, 0, *contrast) for contrast in shown_contrasts)
    if not math.isinf(of_variance):
        statistic /= 1.0 + 1.0 / of_variance
    degrees = min(min(estimates.effective) - 1.0, of_variance)
    return least if degrees < 2.0 * rank else _hotelling(statistic, rank, degrees)


MAX_VARIANCE_SHARE = 0.5
"""Of one unit in a variance, as far as it is corrected for."""


def weigh_by_others(influence: FloatArray) -> FloatArray:
    """Divide influences by 1 − their share of the variance, which few rows or groups otherwise underestimate."""
    squares = influence**2
    total = float(squares.sum())
    if total == 0.0:
        return influence
    return influence / (1.0 - np.minimum(squares / total, MAX_VARIANCE_SHARE))
