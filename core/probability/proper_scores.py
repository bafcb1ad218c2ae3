"""Evaluation of probabilities: Brier and log score with their decomposition, and the reliability diagram.

**Parts.** Let S be the mean score of the probabilities, S_C that of the isotonic regression of the labels on them, and
S_R that of the prevalence, the same for every row. Then

    S = miscalibration − discrimination + uncertainty = (S − S_C) − (S_R − S_C) + S_R,

and the first two are never below 0 (CORP: Dimitriadis, Gneiting & Jordan). No bins have to be chosen.

**Interval of a score.** A score is a mean loss of rows, most of them small and a few great. With enough wrong rows the
interval is Hall's for skewed losses, as of costs (`core.metrics.amounts`), with effective numbers of rows or groups.
But a sample of 50 rows with the probabilities .02 and .98 often has no wrong row, and shows neither the great losses
nor their variance: Hall's interval covers 65 % there. So each end is (1 − w) times Hall's plus w times that of a
proportion, the score divided by a great loss g, with the effective trials and the w of `core.metrics.estimates`. The k
in w is the effective number of rows that the variance comes from, (Σr²)² / Σr⁴ for the deviations r of the losses from
their mean m: the lesser of what the sample shows and of what is expected if the probabilities are right. And g is
m + √(Σr⁴ / Σr²) as expected, the great loss that the variance mostly comes from, or the greatest that is seen if that
is more. If all rows have the probability c or 1 − c it is about the loss of a wrong row. With the greatest possible
loss in its place the intervals of log scores are up to four times as wide: a single row with a probability of 1e-9
decides then. The expected k is divided by the rows of a unit that are wrong together. Probabilities of exactly 0 and 1
have an infinite log loss if they are wrong; the interval of the log score supposes that they are right in the
population, as they are in the sample.

**Diagram.** The isotonic regression itself: at each probability the share of positives that was observed. Two
intervals, at each probability by itself:

* *consistency*: where the curve lies if the probabilities are right. The labels are drawn anew from the probabilities,
  and the isotonic regression is fitted again. A curve outside shows miscalibration.
* *confidence*: for the share of positives in the population. The labels are drawn from the curve itself, linear between
  the middles of its blocks: drawn from the steps, the intervals would be too narrow (Sen & Xu). The ends are
  percentiles, or Wilson's limits for the block if they are further out: a block of 0 or 1 shows no variance.

The draws are by the probabilities that there are, with as many rows each as their weights are worth. Of more than 1,000
distinct ones, or more than effective rows (see `masses_of`), neighbours are drawn together, so that a draw is of one
row or more: labels of a fifth of a row would vary too little. The same seed gives the same bits.

**Cox's line** (`core.metrics.cox`). Its level is the calibration *in the large* (0: as many positives as predicted;
above 0: more). Its slope is 1 if the probabilities are as far apart as they should be; below 1 they are too extreme.
What the line cannot show, an error that changes its sign along the probabilities, is the *shape* (see `shape`).

References
----------
Dimitriadis, Gneiting & Jordan, "Stable reliability diagrams for probabilistic classifiers", PNAS 118 (2021): CORP.
Sen & Xu, "Model based bootstrap methods for interval censored data", Computational Statistics & Data Analysis 81
(2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_seed
from core.errors import InvalidParameter
from core.metrics.amounts import MIN_EFFECTIVE, WeightedRows
from core.metrics.cox import level_of, separates, slope_of
from core.metrics.estimates import (
    ONE_ROW,
    Interval,
    effective_trials,
    hidden_share,
    student_shrinkage,
    wilson_interval,
)
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    check_probabilities,
    check_rows,
    effective_number,
    effective_rows,
    inner,
)
from core.metrics.logistic import log_odds
from core.metrics.window import check_level
from core.probability.isotonic import ScoreMasses, isotonic_values, masses_of
from core.probability.shape import Shape, shape_of

MAX_BOOTSTRAP = 10_000
N_BINS = 10
_MAX_CELLS = 1_000  # distinct probabilities whose labels are drawn
_DRAWS_AT_ONCE = 100
_MAX_POINTS = 100  # of the diagram


class Decomposition(NamedTuple):
    """A mean score (lower is better) and its parts: miscalibration − discrimination + uncertainty.

    Examples
    --------
    >>> from core.probability import brier_score
    >>> found = brier_score([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.5, 0.8, 0.9])
    >>> round(found.score, 3), round(found.uncertainty, 3)
    (0.118, 0.25)
    """

    score: float
    """The mean score."""
    miscalibration: float
    """What the isotonic regression would gain; 0 if calibrated on these rows."""
    discrimination: float
    """How much better than the prevalence the probabilities separate the rows."""
    uncertainty: float
    """The score of the prevalence."""
    interval: Interval | None = None
    """Confidence interval of the score; None if that is infinite."""


class ReliabilityPoint(NamedTuple):
    """A point of a reliability diagram: a probability and the fraction of positives observed there.

    Examples
    --------
    >>> from core.probability import reliability
    >>> y, p = [0, 0, 1, 0, 1, 1] * 10, [0.1, 0.2, 0.4, 0.5, 0.8, 0.9] * 10
    >>> point = reliability(y, p, n_bootstrap=20).points[0]
    >>> point.probability, point.observed.value
    (0.1, 0.0)
    """

    probability: float
    """The predicted probability."""
    observed: Interval
    """The isotonic regression, with its confidence interval."""
    consistent: tuple[float, float]
    """Range of `observed` if the probabilities were right."""


@dataclass(frozen=True)
class Reliability:
    """The evaluation of probabilities: reliability diagram, scores, calibration slope and tests.

    Attributes
    ----------
    n, n_positives : int
        Numbers of rows and of positives.

    Examples
    --------
    >>> from core.probability import reliability
    >>> y, p = [0, 0, 1, 0, 1, 1] * 10, [0.1, 0.2, 0.4, 0.5, 0.8, 0.9] * 10
    >>> found = reliability(y, p, n_bootstrap=20)
    >>> round(found.predicted, 3), found.observed, found.n
    (0.483, 0.5, 60)
    """

    points: list[ReliabilityPoint]
    """From the lowest to the highest probability: at most 100, as quantiles of the rows."""
    brier: Decomposition
    """Brier score."""
    log: Decomposition
    """Log score with the natural logarithm; infinite if a probability of 0 or 1 was wrong."""
    in_the_large: Interval
    """Log-odds to add so that the predicted number of positives equals the observed one."""
    slope: Interval
    """Factor of the log-odds; NaN if all probabilities are equal, or separate the classes."""
    shape: Shape | None
    """Distance of the log-odds of the outcome from a line; None if there are too few rows to test it, or no slope."""
    separated: bool
    """Whether each positive has a higher probability than all negatives."""
    predicted: float
    """Mean probability."""
    observed: float
    """Fraction of positives."""
    histogram: list[float]
    """Fraction of the rows with a probability in [0, 0.1), [0.1, 0.2), …, [0.9, 1]."""
    n: int
    n_positives: int
    level: float
    """Confidence level of each interval. In (0, 1)."""


def brier_score(
    y: ArrayLike,
    probability: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    group: ArrayLike | None = None,
    level: float = 0.95,
) -> Decomposition:
    """Compute the Brier score, the mean of (p − y)², with its decomposition and an interval.

    Parameters
    ----------
    y, sample_weight
        As for `core.metrics.auc`.
    probability : array_like of float, shape (n_samples,), in [0, 1]
        Probability of being positive.
    group : array_like, shape (n_samples,), optional
        Rows with equal values were drawn together, such as several rows of one patient. The interval counts them as
        fewer rows.
    level : float in (0, 1)
        Confidence level of the interval.

    Returns
    -------
    Decomposition
        The score and its parts. O(n log n).

    Examples
    --------
    >>> from core.probability import brier_score
    >>> score, miscalibration, discrimination, uncertainty, _ = brier_score([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    >>> round(score, 4), round(miscalibration - discrimination + uncertainty, 4)
    (0.1425, 0.1425)
    """
    rows = _rows(y, probability, sample_weight, group)
    return _brier(masses_of(rows), rows, check_level(level))


def log_score(
    y: ArrayLike,
    probability: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    group: ArrayLike | None = None,
    level: float = 0.95,
) -> Decomposition:
    """Compute the log score, the mean of −ln of the label's probability, with its decomposition.

    It is infinite if a label had the probability 0.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Labels: two distinct values, of which the greater is positive.
    probability, sample_weight, group, level
        As for `brier_score`.

    Returns
    -------
    Decomposition
        The score and its parts. O(n log n).

    Examples
    --------
    >>> from core.probability import log_score
    >>> round(log_score([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]).score, 4)
    0.4389
    """
    rows = _rows(y, probability, sample_weight, group)
    return _log(masses_of(rows), rows, check_level(level))


def reliability(
    y: ArrayLike,
    probability: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    level: float = 0.95,
    n_bootstrap: int = 300,
    random_state: int = 0,
) -> Reliability:
    """Evaluate probabilities on held-out rows: reliability diagram, scores, calibration slope and tests.

    Parameters
    ----------
    y, sample_weight, level
        As for `core.metrics.auc_interval`.
    probability : array_like of float, shape (n_samples,), in [0, 1]
        Probability of being positive, for rows that it was not fitted on.
    group : array_like, shape (n_samples,), optional
        Rows with equal values were drawn together, such as several rows of one patient. The intervals count them as
        fewer rows.
    n_bootstrap : int, 20 to 10,000
        Draws of labels for each kind of interval.
    random_state : int
        Seed, not negative.

    Returns
    -------
    Reliability
        The results. O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from core.probability import reliability
    >>> generator = np.random.default_rng(1)
    >>> p = generator.random(2000)
    >>> found = reliability(generator.random(2000) < p, p)
    >>> found.slope.low < 1 < found.slope.high, len(found.points)
    (True, 100)
    """
    level, seed = check_level(level), check_seed(random_state)
    whole = isinstance(n_bootstrap, int) and not isinstance(n_bootstrap, bool)
    if not whole or not 20 <= n_bootstrap <= MAX_BOOTSTRAP:
        raise InvalidParameter(
            f"n_bootstrap must be a whole number from 20 to {MAX_BOOTSTRAP}, got {n_bootstrap!r}"
        )
    rows = _rows(y, probability, sample_weight, group)
    masses = masses_of(rows)
    total = float(masses.mass.sum())
    share = masses.mass / total
    bins = np.minimum((masses.scores * N_BINS).astype(np.intp), N_BINS - 1)
    odds = log_odds(rows.scores[0])
    slope = slope_of(rows, odds)
    return Reliability(
        points=_points(masses, level, n_bootstrap, np.random.default_rng(seed)),
        brier=_brier(masses, rows, level),
        log=_log(masses, rows, level),
        in_the_large=level_of(rows, odds).interval(level),
        slope=Interval(math.nan, -math.inf, math.inf) if slope is None else slope.interval(level),
        shape=None if slope is None else shape_of(rows, slope.intercept, slope.value, level),
        separated=separates(rows, odds),
        predicted=inner(share, masses.scores),
        observed=float(masses.positive.sum()) / total,
        histogram=np.bincount(bins, share, N_BINS).tolist(),
        n=int(rows.positive.size),
        n_positives=int(np.count_nonzero(rows.positive)),
        level=level,
    )


def _rows(
    y: ArrayLike,
    probability: ArrayLike,
    sample_weight: ArrayLike | None,
    group: ArrayLike | None,
) -> EvaluatedRows:
    """Return the rows, checked, with the probabilities in place of scores."""
    rows = check_rows(y, {"probability": probability}, sample_weight, group)
    check_probabilities(rows.scores[0])
    return rows


def _brier(masses: ScoreMasses, rows: EvaluatedRows, level: float) -> Decomposition:
    negative = masses.mass - masses.positive

    def mean(p: FloatArray | float) -> float:
        squares = masses.positive * (1.0 - p) ** 2 + negative * np.square(p)
        return float(squares.sum() / masses.mass.sum())

    p = rows.scores[0]
    return _parts(mean, masses)._replace(
        interval=_interval_of((1.0 - p) ** 2, p**2, rows, (0.0, 1.0), level)
    )


def _log(masses: ScoreMasses, rows: EvaluatedRows, level: float) -> Decomposition:
    negative = masses.mass - masses.positive

    def mean(p: FloatArray | float) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            of_positives = np.where(masses.positive > 0.0, masses.positive * np.log(p), 0.0)
            of_negatives = np.where(negative > 0.0, negative * np.log1p(-np.asarray(p)), 0.0)
        return float(-(of_positives + of_negatives).sum() / masses.mass.sum())

    found, p = _parts(mean, masses), rows.scores[0]
    if not math.isfinite(found.score):
        return found
    certain = (p == 0.0) | (p == 1.0)  # these rows are right: the score is finite
    with np.errstate(divide="ignore"):
        if_positive, if_negative = (
            np.where(certain, 0.0, -each) for each in (np.log(p), np.log1p(-p))
        )
    return found._replace(
        interval=_interval_of(if_positive, if_negative, rows, (0.0, math.inf), level)
    )


def _interval_of(
    if_positive: FloatArray,
    if_negative: FloatArray,
    rows: EvaluatedRows,
    possible: tuple[float, float],
    level: float,
) -> Interval:
    """Return the mean loss with its interval, given each row's loss for either label. possible: no population is
    outside.
    """
    losses = np.where(rows.positive, if_positive, if_negative)
    sample = WeightedRows.of(rows)
    count, variance, great = _expected(if_positive, if_negative, rows, sample)
    greatest = max(great, float(losses.max()))
    hall = sample.interval(losses, (0.0, greatest), level, possible)
    n = sample.effective
    if greatest == 0.0 or n < MIN_EFFECTIVE:
        return hall
    share, error, _ = sample.moments(losses / greatest)
    of_rows = sample.weight * (losses / greatest - share)
    of_units = sample.by_unit(of_rows)
    if sample.unit is not None:
        count /= _rows_per_unit(of_rows, of_units, variance / greatest**2, sample)
    behind = min(count, _effective_squares(of_units**2, of_units**4))
    trials = effective_trials(share, error**2, n, rows=behind)
    shrunk = trials * student_shrinkage(level, n - 1.0)
    _, low, high = wilson_interval(min(1.0, share), shrunk, level)
    if trials * share <= ONE_ROW:
        low = 0.0
    hidden = hidden_share(behind)
    low, high = (
        (1.0 - hidden) * end + hidden * greatest * other
        for end, other in ((hall.low, low), (hall.high, high))
    )
    return Interval(hall.value, min(hall.value, low), max(hall.value, high))


def _expected(
    if_positive: FloatArray, if_negative: FloatArray, rows: EvaluatedRows, sample: WeightedRows
) -> tuple[float, float, float]:
    """Return k, Σr² and g (see the module's docstring) expected for correct probabilities and independent rows."""
    scale = float(max(if_positive.max(), if_negative.max()))
    if scale == 0.0:
        return 0.0, 0.0, 0.0
    p, weight = rows.scores[0], sample.weight
    if_positive, if_negative = if_positive / scale, if_negative / scale
    mean = inner(weight, p * if_positive + (1.0 - p) * if_negative) / float(weight.sum())
    squares, fourths = (
        p * (if_positive - mean) ** power + (1.0 - p) * (if_negative - mean) ** power
        for power in (2, 4)
    )
    count = _effective_squares(weight**2 * squares, weight**4 * fourths)
    spread = inner(weight, squares)
    # no variance is expected if all probabilities are 0 or 1: then it is what one of them would cost
    great = mean + math.sqrt(inner(weight, fourths) / spread) if spread > 0.0 else 1.0
    return count, inner(weight**2, squares) * scale**2, great * scale


def _rows_per_unit(
    of_rows: FloatArray, of_units: FloatArray, variance: float, sample: WeightedRows
) -> float:
    """Return the design effect of groups of rows: the factor by which correlated errors increase the variance.

    It is estimated from the sample if the losses vary at least as much as expected for correct probabilities. The less
    they vary, the more it is taken from the worst case, that all rows of a group are wrong together.
    """
    most = max(1.0, effective_number(sample.weight) / sample.effective)
    found = inner(of_rows, of_rows)
    if found == 0.0:
        return most
    seen = min(most, max(1.0, inner(of_units, of_units) / found))
    known = min(1.0, found / variance) if variance > 0.0 else 0.0
    return known * seen + (1.0 - known) * most


def _effective_squares(squares: FloatArray, fourths: FloatArray) -> float:
    """Return the effective number of rows that make up a variance; 0 if there is no variance."""
    return effective_rows(squares, fourths) if fourths.any() else 0.0


def _parts(mean: Callable[[FloatArray | float], float], masses: ScoreMasses) -> Decomposition:
    score = mean(masses.scores)
    best = min(mean(isotonic_values(masses.mass, masses.positive)), score)
    uncertainty = mean(float(masses.positive.sum() / masses.mass.sum()))
    return Decomposition(score, score - best, max(uncertainty - best, 0.0), uncertainty)


def _points(
    masses: ScoreMasses, level: float, n_bootstrap: int, generator: np.random.Generator
) -> list[ReliabilityPoint]:
    cells = masses.in_cells(min(_MAX_CELLS, max(1, round(float(masses.mass.sum())))))
    p, mass = cells.scores, cells.mass
    curve = isotonic_values(mass, cells.positive)
    marks = (np.arange(_MAX_POINTS) + 0.5) / _MAX_POINTS * float(mass.sum())
    at = np.unique(np.searchsorted(np.cumsum(mass), marks).clip(0, p.size - 1))
    at = np.unique(np.concatenate(([0], at, [p.size - 1]))) if at.size < _MAX_POINTS else at
    tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
    consistent = _quantiles(p, mass, at, n_bootstrap, tails, generator)
    smooth = _between_blocks(p, mass, curve)
    drawn = _quantiles(smooth, mass, at, n_bootstrap, tails, generator)
    block = np.cumsum(np.append(False, curve[1:] > curve[:-1]))
    rows = np.bincount(block, mass)[block[at]]
    of_block = [
        wilson_interval(float(value), float(n), level)
        for value, n in zip(curve[at], rows, strict=True)
    ]
    low = np.minimum(drawn[0], [interval.low for interval in of_block])
    high = np.maximum(drawn[1], [interval.high for interval in of_block])
    return [
        ReliabilityPoint(
            float(p[i]), Interval(float(curve[i]), float(a), float(b)), (float(c), float(d))
        )
        for i, a, b, c, d in zip(at, low, high, *consistent, strict=True)
    ]


def _quantiles(
    p: FloatArray,
    mass: FloatArray,
    at: NDArray[np.intp],
    n_bootstrap: int,
    tails: tuple[float, float],
    generator: np.random.Generator,
) -> FloatArray:
    """Return quantiles of isotonic regressions of simulated labels with probabilities p, shape (2, n_at)."""
    trials = np.maximum(np.rint(mass), 1.0).astype(np.int64)
    curves = np.empty((n_bootstrap, at.size))
    for start in range(0, n_bootstrap, _DRAWS_AT_ONCE):
        size = min(_DRAWS_AT_ONCE, n_bootstrap - start), p.size
        drawn = np.minimum(generator.binomial(trials, p, size) * (mass / trials), mass)
        for draw, positive in enumerate(drawn, start):
            curves[draw] = isotonic_values(mass, positive)[at]
    found: FloatArray = np.quantile(curves, tails, axis=0)
    return found


def _between_blocks(p: FloatArray, mass: FloatArray, curve: FloatArray) -> FloatArray:
    """Return the isotonic curve, made linear between the middles of its blocks."""
    starts = np.flatnonzero(np.append(True, curve[1:] > curve[:-1]))
    middles = np.add.reduceat(p * mass, starts) / np.add.reduceat(mass, starts)
    smooth: FloatArray = np.interp(p, middles, curve[starts])
    return smooth
