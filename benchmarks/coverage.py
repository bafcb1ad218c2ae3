"""How often intervals cover and tests err, by simulation: `python -m benchmarks.coverage`.

Two scorers are drawn that are equally good in the population, with scores of two normal distributions at a distance,
correlated .5 with each other. For each kind of sample the table says how often, in percent,

- the 95 % intervals of the first scorer cover the population's area: analytic, and by the bootstrap (--draws samples);
- the paired test at 5 % calls the two different, which they are not; a dash means that the rows are too few for a test.

Each figure comes three times: of the AUC, and of the windows [0, .1] and [.1, .3].

Kinds: continuous scores; scores rounded to whole numbers (the population's area is that of the rounded scores); rows of
exponential weights; several rows a unit, of both classes or of one, whose scores share half of their variance, with
units of equal or of lognormal size; folds of cross-validation whose scores have a scale each, the same rows in each of
two repeats.

The table `near` is of areas near 1, of windows with few negatives and of very unequal weights: how often the 95 %
intervals of the AUC, [0, .05] and [0, .1] cover, how often they do or come with a warning (`area_warnings`), and how
wide they are in the mean, as a multiple of ± 1.96 of DeLong's standard errors on the logit scale. Scores are normal;
exponential, which makes the curve FPR^θ; of Student's t with three degrees of freedom; normal with a few positives
below all other rows, which make up half of 1 − AUC; or normal with positives below and negatives above all other rows.

The table `bounds` compares intervals of the AUC: as served; with Hanley & McNeil's variance (1982) in place of the
greatest possible one, and a constant of 8 or 12 in place of 5; and method 5 of Newcombe (2006). Of each it has how
often, in percent, they cover, how often they cover or come with a warning, and how wide they are in the mean.

A second table is of rankers that are really fitted: linear discriminants on ten features, cross-validated in five
folds. What should be covered is the mean of their five true AUCs. Beside `cross_validated_areas` stands what it is
there to replace: DeLong's interval of all out-of-fold scores in one pool.

The table `repeated` is of such rankers, or of boosted stumps, that are cross-validated in five folds again and again.
What should be covered is the true area of a ranker of all rows, of this sample or in the mean over samples. Beside
`cross_validated_areas` stands the variance that takes the rankers as given, which has no entries of repeats; then the
width of the interval of the AUC, how far the mean is from what it estimates, and the standard deviations of the AUC of
one fold and of the mean.

A third table is of promises: how often the cut of `guaranteed_point` breaks its promise, of two and a half times as
many draws as trials; beside it the greatest probability of that, and how often the plain cut at the same rate of the
sample is beyond the limit.

A fourth table is of groups that one ranking serves equally well (`compare_groups`): how often intervals cover, and
how often the joint tests at 5 % call them different. A table after it is of groups whose probabilities are off by the
same log odds: of `in_the_large` and the fraction of positives, and of the test that they are off by the same.

A fifth table is of figures of the top of a list, for a quarter of the trials: how often the intervals of
`compare_metrics` cover, and how often its paired test at 5 % calls two equally good scorers different. Rows, or units,
are drawn one by one, so the numbers of positives vary around those that are shown. What should be covered is the figure
of a very large sample; for precision at a count and NDCG, which are about lists of this length, it is the mean over the
lists.

A sixth table is of `core.probability.reliability`, for a twentieth of the trials: how often, along the diagram, the
confidence interval covers the population's fraction of positives and the consistency interval has the curve; and how
often the intervals of Cox's line cover. Log odds are normal, with standard deviation 1.5; "too extreme" ones are twice
as great as they should be.

A seventh table is of amounts, for a quarter of the trials (`value_caught`, `cost_report`, `compare_costs`): how often
intervals cover where amounts have heavy tails, how far the least cost is from what the cut costs in the population, and
how often the paired test at 5 % calls two equally good scorers different. Amounts are exp(s z) with z normal.

An eighth table is of lists and grades, for a quarter of the trials: how often the intervals of `compare_lists`, whose
unit is the list, and of `measure_graded` cover, and how often the paired tests of lists at 5 % call two equally good
scorers different. Lists have 2 to 20 rows of four grades, rare at the top; half of the noise of a list's scores is
shared by both scorers, and lists differ in how hard they are.

The table `distance` is of `ks_interval`, for a quarter of the trials: how often it covers the Kolmogorov-Smirnov
distance of normal scores, and its mean width. The table `heavy` is of `measure` where few rows have most of the weight,
for a quarter of the trials: how often intervals cover the metrics of a population without weights.

The tables `checks` are of the readiness checks (`app.findings`), for a twentieth of the trials: how often
each says yes, no or not known, and of the rows that it says are needed the median. A validation of 300 positives and
1,200 negatives has an AUC of about .9; probabilities are tested on rows that they were not fitted on; two groups share
a threshold. Beside it is how often a check passes that only asks for significance. Then how often tests of the shape of
miscalibration reject at 5 %, the smooth test and, for comparison, the one of the GiViTI belt. The last one is of time
windows: the error in the next window, in log odds, of a calibration of all windows alike and of one that follows the
level, and how often the level is said to move.

The table `level` says how often paired tests call two equally good scorers different where few rows of a class are in
the window: of [0, .05], [0, .1], [.1, .3] and the AUC. A dash means that the rows are too few for a test there.

The table `chance` says how often scores that say nothing, without ties, are called better than chance (`measure`).

By chance alone a figure of n trials lies within ±2 √(p (1 − p) / n): .7 points of 95 % for 4,000 trials, 1.4 for 1,000.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student

from benchmarks import at_least_one, checks
from core import RankBoost
from core.metrics import (
    AmountCosts,
    Comparison,
    Interval,
    Ndcg,
    PrecisionAt,
    Price,
    auc,
    auc_interval,
    compare,
    compare_costs,
    compare_groups,
    compare_lists,
    compare_metrics,
    cost_report,
    cross_validated_areas,
    decision_curve,
    guaranteed_point,
    ks_interval,
    list_metric_named,
    list_values,
    measure_graded,
    metric_named,
    operating_point,
    partial_auc,
    value_caught,
    value_of_metric,
)
from core.metrics import measure as measure_list
from core.metrics.comparison import Folds, ScoreSample, estimate, score_shift
from core.metrics.drift import bin_edges, population_stability
from core.metrics.estimates import ONE_ROW, Estimates, wilson_interval
from core.metrics.functionals.base import Metric
from core.metrics.groups import check_rows
from core.metrics.intervals import area_interval, area_warnings, estimate_areas, row_influences
from core.metrics.serial import serial_dependence
from core.probability import brier_score, log_score, reliability
from tests.core.metrics.bootstrap import bootstrap_interval

N_FOLDS = 5
WINDOWS = ((0.0, 1.0), (0.0, 0.1), (0.1, 0.3))
LEVEL = 0.95

TABLES = (
    "areas",
    "level",
    "near",
    "bounds",
    "fitted",
    "repeated",
    "guarantees",
    "groups",
    "top",
    "chance",
    "probabilities",
    "amounts",
    "lists",
    "decisions",
    "distance",
    "heavy",
    "series",
    "checks",
)

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


class Sample(NamedTuple):
    """Labels, the two scorers, and the other arguments of the inference."""

    y: Labels
    scores: list[Floats]
    options: dict[str, Any]


class Kind(NamedTuple):
    """A kind of sample: how it is drawn, and how far the classes lie apart."""

    name: str
    n_positives: int
    n_negatives: int
    distance: float = 1.2
    digits: int | None = None
    weighted: bool = False
    unit: int = 1
    mixed: bool = False
    n_folds: int = 1
    size_spread: float = 0.0
    """Standard deviation of the log sizes of units; `unit` is then their mean size."""

    @property
    def label(self) -> str:
        """First column of the table."""
        return f"{self.name}, {self.n_positives:,} + {self.n_negatives:,}"


KINDS = (
    Kind("continuous", 10, 20),
    Kind("continuous", 50, 100),
    Kind("continuous", 300, 700),
    Kind("continuous", 3_000, 7_000),
    Kind("continuous, AUC .98", 50, 100, distance=2.9),
    Kind("continuous, AUC .98", 300, 700, distance=2.9),
    Kind("rounded", 10, 20, digits=0),
    Kind("rounded", 50, 100, digits=0),
    Kind("rounded", 300, 700, digits=0),
    Kind("weighted", 50, 100, weighted=True),
    Kind("weighted", 300, 700, weighted=True),
    Kind("10 units of both classes", 50, 100, unit=15, mixed=True),
    Kind("30 units of both classes", 150, 300, unit=15, mixed=True),
    Kind("100 units of both classes", 500, 1_000, unit=15, mixed=True),
    Kind(
        "100 units of both classes, of sizes 15 exp(z - 1/2)",
        500,
        1_000,
        unit=15,
        mixed=True,
        size_spread=1.0,
    ),
    Kind(
        "100 units of both classes, of sizes 15 exp(1.5 z - 9/8)",
        500,
        1_000,
        unit=15,
        mixed=True,
        size_spread=1.5,
    ),
    Kind("10 + 20 units of one class", 50, 100, unit=5),
    Kind("60 + 140 units of one class", 300, 700, unit=5),
    Kind("5 folds, 2 repeats", 50, 100, n_folds=5),
    Kind("5 folds, 2 repeats", 300, 700, n_folds=5),
)


def area(kind: Kind, window: tuple[float, float]) -> float:
    """Partial AUC of the population, divided by the window's width."""
    if kind.digits is None:
        cutoffs = np.linspace(10.0, -8.0, 200_001)
    else:
        cutoffs = (
            np.arange(10 * 10**kind.digits, -8 * 10**kind.digits, -1) - 0.5
        ) / 10**kind.digits
    fpr = np.concatenate(([0.0], norm.sf(cutoffs), [1.0]))
    tpr = np.concatenate(([0.0], norm.sf(cutoffs - kind.distance), [1.0]))
    inside = fpr[(fpr > window[0]) & (fpr < window[1])]
    rates = np.concatenate(([window[0]], inside, [window[1]]))
    return float(np.trapezoid(np.interp(rates, fpr, tpr), rates) / (window[1] - window[0]))


def draw(kind: Kind, rng: np.random.Generator) -> Sample:
    """Draw one sample."""
    n_rows = kind.n_positives + kind.n_negatives
    prevalence = kind.n_positives / n_rows
    y = np.repeat([1, 0], [kind.n_positives, kind.n_negatives])
    unit: npt.NDArray[np.int64] = np.arange(n_rows) // kind.unit
    if kind.size_spread:
        drawn = rng.lognormal(-(kind.size_spread**2) / 2.0, kind.size_spread, n_rows // kind.unit)
        sizes = np.maximum(np.rint(kind.unit * drawn), 1.0).astype(np.int64)
        unit, n_rows = np.repeat(np.arange(sizes.size), sizes), int(sizes.sum())
    if kind.mixed:
        y = (rng.random(n_rows) < prevalence).astype(np.int64)
    shared = rng.normal(size=n_rows)
    if kind.unit > 1:
        shared = rng.normal(size=unit[-1] + 1)[unit]
    scores = [math.sqrt(0.5) * (shared + rng.normal(size=n_rows)) for _ in range(2)]
    scores = [each + kind.distance * y for each in scores]
    if kind.digits is not None:
        scores = [np.round(each, kind.digits) for each in scores]
    options: dict[str, Any] = {}
    if kind.weighted:
        options["sample_weight"] = rng.exponential(size=n_rows)
    if kind.unit > 1:
        options["group"] = unit
    return Sample(y, scores, options)


def judge(kind: Kind, sample: Sample, rng: np.random.Generator) -> Comparison:
    """Compare the two scorers."""
    if kind.n_folds == 1:
        return compare(sample.y, sample.scores, WINDOWS, level=LEVEL, **sample.options)
    n_rows = sample.y.size
    entries: list[list[npt.NDArray[Any]]] = [[], [], []]
    for _ in range(2):
        fold = np.empty(n_rows, dtype=np.int64)  # each class spread evenly
        for label in (0, 1):
            rows = np.flatnonzero(sample.y == label)
            fold[rng.permutation(rows)] = np.arange(rows.size) % kind.n_folds
        scale, shift = rng.uniform(0.5, 2.0, kind.n_folds), rng.normal(size=kind.n_folds)
        for place, scores in enumerate(sample.scores):
            entries[place].append(scale[fold] * scores + 3.0 * shift[fold])
        entries[2].append(fold)
    one, two, folds = (np.concatenate(each) for each in entries)
    return compare(
        np.tile(sample.y, 2),
        [one, two],
        WINDOWS,
        fold=folds,
        repeat=np.repeat([0, 1], n_rows),
        row=np.tile(np.arange(n_rows), 2),
        level=LEVEL,
    )


def measure(kind: Kind, n_trials: int, n_bootstrapped: int, n_draws: int) -> str:
    """The row of the table for one kind."""
    rng = np.random.default_rng(0)
    truth = [area(kind, window) for window in WINDOWS]
    covered, drawn = np.zeros((2, len(WINDOWS)))
    rejected: list[list[bool]] = [[] for _ in WINDOWS]
    for trial in range(n_trials):
        sample = draw(kind, rng)
        for j, found in enumerate(judge(kind, sample, rng).windows):
            interval = found.values[0]
            covered[j] += interval.low <= truth[j] <= interval.high
            if (p_value := found.differences[0].p_value) is not None:
                rejected[j].append(p_value < 1.0 - LEVEL)
            if trial < n_bootstrapped and kind.n_folds == 1:
                low, high = bootstrap_interval(
                    sample.y, sample.scores[0], WINDOWS[j], LEVEL, n_draws, trial, **sample.options
                )
                drawn[j] += low <= truth[j] <= high
    by_draws = shares(drawn, n_bootstrapped) if kind.n_folds == 1 else "–"
    return (
        f"| {kind.label} | {shares(covered, n_trials)} | {by_draws} "
        f"| {' / '.join(_percent(outcomes) for outcomes in rejected)} |"
    )


def shares(counts: Floats, n_trials: int) -> str:
    """The counts of the three windows as percentages."""
    return " / ".join(f"{100 * count / n_trials:.1f}" for count in counts)


class Shape(NamedTuple):
    """Scores of the negatives and, for a distance of the classes, of the positives."""

    draw: Callable[[np.random.Generator, int], Floats]
    move: Callable[[Floats, float], Floats]
    survival: Callable[[Floats], Floats]
    survival_of_moved: Callable[[Floats, float], Floats]


def _location(distribution: Any, draw: Callable[[np.random.Generator, int], Floats]) -> Shape:
    return Shape(
        draw,
        lambda scores, d: scores + d,
        distribution.sf,
        lambda cutoffs, d: distribution.sf(cutoffs - d),
    )


SHAPES = {
    "normal": _location(norm, lambda rng, n: rng.normal(size=n)),
    "t": _location(student(3), lambda rng, n: rng.standard_t(3, size=n)),
    "exponential": Shape(
        lambda rng, n: rng.exponential(size=n),
        lambda scores, d: scores * math.exp(d),
        lambda cutoffs: np.exp(-np.maximum(cutoffs, 0.0)),
        lambda cutoffs, d: np.exp(-np.maximum(cutoffs, 0.0) / math.exp(d)),
    ),
}
BOTTOM, TOP = -5.0, 100.0
"""Scores of the positives below all other rows, and of the negatives above them."""


class Near(NamedTuple):
    """A kind of sample of the table `near`."""

    shape: str
    n_positives: int
    n_negatives: int
    auc: float
    rounded: bool = False
    below: float = 0.0
    """Share of the positives that are below all other rows."""
    above: float = 0.0
    """Share of the negatives that are above all other rows."""
    weight_spread: float = 0.0
    """Standard deviation of the log weights."""

    @property
    def label(self) -> str:
        """First column of the table."""
        more = [
            words
            for words, has in (
                ("rounded", self.rounded),
                (f"{100 * self.above:g} % of the negatives above", self.above),
                (f"{100 * self.below:g} % of the positives below", self.below),
                (f"weights exp({self.weight_spread:g} z)", self.weight_spread),
            )
            if has
        ]
        kind = ", ".join([self.shape, *more])
        return f"{kind}, {self.n_positives:,} + {self.n_negatives:,}, AUC {self.auc:g}"


NEAR_WINDOWS = ((0.0, 1.0), (0.0, 0.05), (0.0, 0.1))
NEAR = (
    *(Near("normal", 50, 100, auc) for auc in (0.6, 0.8, 0.9, 0.95)),
    *(Near("normal", 200, 2_000, auc) for auc in (0.6, 0.8, 0.9, 0.95)),
    *(Near("normal", 20, 2_000, auc) for auc in (0.9, 0.99, 0.999)),
    Near("normal", 50, 5_000, 0.99),
    Near("normal", 500, 10_000, 0.999),
    Near("normal", 200, 2_000, 0.999),
    Near("normal", 2_000, 20, 0.9),
    Near("normal", 20, 20, 0.9),
    Near("normal", 20, 2_000, 0.99, rounded=True),
    Near("exponential", 20, 2_000, 0.95),
    Near("exponential", 50, 2_000, 0.99),
    Near("t", 50, 2_000, 0.95),
    Near("t", 200, 2_000, 0.98),
    Near("normal", 50, 2_000, 0.95, below=0.025),
    Near("normal", 200, 2_000, 0.99, below=0.005),
    Near("normal", 200, 20_000, 0.965, below=0.005, above=0.03),
    Near("normal", 50, 100, 0.8, weight_spread=2.0),
    Near("normal", 300, 700, 0.8, weight_spread=2.0),
    Near("normal", 300, 700, 0.95, weight_spread=2.0),
)


def _population(near: Near, distance: float) -> Callable[[tuple[float, float]], float]:
    """Return the areas over windows of the population."""
    shape = SHAPES[near.shape]
    cutoffs = np.concatenate([np.linspace(1_000.0, 20.0, 5_000), np.linspace(20.0, -20.0, 80_001)])
    if near.rounded:
        cutoffs = np.arange(100, -40, -1) / 4.0 - 0.125
    below_top = near.above + (1.0 - near.above) * shape.survival(cutoffs)
    fpr = np.concatenate(([0.0], below_top, [1.0]))
    tpr = np.concatenate(([0.0], shape.survival_of_moved(cutoffs, distance), [1.0]))
    tpr[:-1] *= 1.0 - near.below

    def area_over(window: tuple[float, float]) -> float:
        inside = fpr[(fpr > window[0]) & (fpr < window[1])]
        rates = np.concatenate(([window[0]], inside, [window[1]]))
        height = np.interp(rates, fpr, tpr)
        if window[1] == 1.0:
            height[-1] = tpr[-2]  # the last step is vertical
        return float(np.trapezoid(height, rates) / (window[1] - window[0]))

    return area_over


class NearSamples(NamedTuple):
    """The areas of the population over `NEAR_WINDOWS`, and the estimates of one sample after another."""

    truth: list[float]
    estimates: Iterator[Estimates]


def draw_near(near: Near, n_trials: int) -> NearSamples:
    """Draw samples of one kind of the table `near`."""
    plain = near._replace(rounded=False)
    distance = brentq(lambda d: _population(plain, d)((0.0, 1.0)) - near.auc, 0.0, 60.0)
    area_over = _population(near, distance)
    return NearSamples(
        [area_over(window) for window in NEAR_WINDOWS], _estimates(near, distance, n_trials)
    )


def _estimates(near: Near, distance: float, n_trials: int) -> Iterator[Estimates]:
    rng, shape = np.random.default_rng(4), SHAPES[near.shape]
    y = np.repeat([1, 0], [near.n_positives, near.n_negatives])
    for _ in range(n_trials):
        scores = shape.draw(rng, y.size)
        scores[y == 1] = shape.move(scores[y == 1], distance)
        scores[(y == 1) & (rng.random(y.size) < near.below)] = BOTTOM
        if near.above:
            scores[(y == 0) & (rng.random(y.size) < near.above)] = TOP
        if near.rounded:
            scores = np.round(4.0 * scores)
        weight = (
            rng.lognormal(sigma=near.weight_spread, size=y.size) if near.weight_spread else None
        )
        yield estimate_areas(check_rows(y, {"scores": scores}, weight), NEAR_WINDOWS)


def measure_near(near: Near, n_trials: int) -> str:
    """The row of the table `near` for one kind of sample."""
    truth, estimates = draw_near(near, n_trials)
    sizes = near.n_positives, near.n_negatives
    covered, warned, widths, of_delong = np.zeros((4, len(NEAR_WINDOWS)))
    for areas in estimates:
        for j, window in enumerate(NEAR_WINDOWS):
            found = area_interval(areas, 0, j, window, LEVEL)
            said = area_warnings([window], [found], sizes, areas.effective)
            covered[j] += (holds := found.low <= truth[j] <= found.high)
            warned[j] += holds or bool(said)
            variance, slope = areas.variance(0, j), found.value * (1.0 - found.value)
            if variance and slope > 0.0:
                reach = norm.ppf(0.5 + LEVEL / 2.0) * math.sqrt(variance) / slope
                ends = expit(logit(found.value) + np.array([-reach, reach]))
                of_delong[j] += ends[1] - ends[0]
                widths[j] += found.high - found.low
    ratios = " / ".join(f"{ratio:.2f}" for ratio in widths / np.maximum(of_delong, 1e-300))
    return f"| {near.label} | {shares(covered, n_trials)} | {shares(warned, n_trials)} | {ratios} |"


BOUNDS = (
    Near("normal", 20, 2_000, 0.9),
    Near("normal", 20, 2_000, 0.99),
    Near("normal", 20, 2_000, 0.999),
    Near("normal", 2_000, 20, 0.99),
    Near("normal", 50, 5_000, 0.99),
    Near("normal", 50, 100, 0.95),
    Near("normal", 200, 2_000, 0.95),
    Near("exponential", 20, 2_000, 0.95),
    Near("exponential", 20, 2_000, 0.99),
    Near("exponential", 200, 2_000, 0.999),
    Near("t", 50, 2_000, 0.95),
    Near("t", 200, 2_000, 0.98),
    Near("normal", 50, 2_000, 0.95, below=0.025),
    Near("normal", 200, 2_000, 0.99, below=0.005),
    Near("normal", 500, 10_000, 0.995, below=0.0025),
    Near("normal", 200, 20_000, 0.965, below=0.005, above=0.03),
    Near("normal", 300, 700, 0.95, weight_spread=2.0),
)


def _rates_of_pairs(area: float) -> tuple[float, float]:
    """Return P(X, X' > Y) − A² and P(X > Y, Y') − A² of exponential scores, over A (1 − A) (Hanley & McNeil 1982)."""
    return (1.0 - area) / (2.0 - area), area / (1.0 + area)


def newcombe_interval(area: float, effective: tuple[float, float]) -> Interval:
    """Return the interval of method 5 of Newcombe 2006: Hanley & McNeil's variance at each end, sizes averaged."""
    m, n = effective
    z = float(norm.ppf(0.5 + LEVEL / 2.0))

    def beyond(end: float) -> float:
        excess = ((m + n) / 2.0 - 1.0) * sum(_rates_of_pairs(end))
        return abs(end - area) - z * math.sqrt(end * (1.0 - end) * (1.0 + excess) / (m * n))

    # The variance is 0 at an end of 1, too, which is not the solution.
    low = brentq(beyond, 1e-12, min(area, 1.0 - 1e-9)) if beyond(1e-12) > 0.0 else 0.0
    return Interval(area, low, brentq(beyond, area, 1.0) if area < 1.0 else 1.0)


def is_significant(p_value: float | None) -> bool:
    """Return True if a test was made, and rejects at the level of the benchmark."""
    return p_value is not None and p_value < 1.0 - LEVEL


def model_interval(
    area: float, variance: float | None, effective: tuple[float, float], enough: float
) -> Interval:
    """Return `area_interval` of the AUC with `enough` in place of `ENOUGH_ROWS_OF_CLASSES`."""
    least, most = sorted(effective)
    distance = min(area, 1.0 - area)
    if not variance or distance < 1e-12:
        return wilson_interval(area, least, LEVEL)
    of_least, of_most = _rates_of_pairs(1.0 - distance)
    excess = (most - 1.0) * of_most + (least - 1.0) * of_least
    trials, shown = max(least * most / (1.0 + excess), least), variance / (area * (1.0 - area))
    rows = 1.0 / (variance / distance**2 + 1.0 / least)
    hidden = 1.0 / (1.0 + (rows / enough) ** 2)
    mixed = 1.0 / (shown + hidden * max(1.0 / trials - shown, 0.0))
    _, low, high = wilson_interval(area, mixed, LEVEL)
    one_row = mixed * distance <= ONE_ROW
    return Interval(
        area, 0.0 if one_row and area <= 0.5 else low, 1.0 if one_row and area >= 0.5 else high
    )


def measure_bounds(near: Near, n_trials: int) -> str:
    """The row of the table `bounds` for one kind of sample."""
    truth, estimates = draw_near(near, n_trials)
    sizes = near.n_positives, near.n_negatives
    kept = np.zeros((4, 3))
    for areas in estimates:
        area, variance = float(areas.values[0, 0]), areas.variance(0, 0)
        every = (
            areas.interval(0, 0, min(areas.effective), LEVEL),  # the greatest possible variance
            area_interval(areas, 0, 0, (0.0, 1.0), LEVEL),
            model_interval(area, variance, areas.effective, 12.0),
            newcombe_interval(area, areas.effective),
        )
        for rule, found in enumerate(every):
            holds = found.low <= truth[0] <= found.high
            said = area_warnings([(0.0, 1.0)], [found], sizes, areas.effective)
            kept[rule] += holds, holds or bool(said), found.high - found.low
    cells = (f"{100 * c:.1f} / {100 * w:.1f} / {width:.4f}" for c, w, width in kept / n_trials)
    return f"| {near.label} | {' | '.join(cells)} |"


def measure_fitted(n_rows: int, n_trials: int) -> str:
    """The row of the second table for samples of so many rows, a quarter of them positive."""
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], [n_rows // 4, n_rows - n_rows // 4])
    shift = np.full(10, 1.2 / math.sqrt(10.0))
    covered = pooled = 0
    for _ in range(n_trials):
        X = rng.normal(size=(n_rows, shift.size)) + np.outer(y, shift)
        fold = np.concatenate([rng.permutation(np.flatnonzero(y == c)) for c in (1, 0)])
        fold = np.argsort(fold) % N_FOLDS
        scores, truth = np.empty(n_rows), 0.0
        for f in range(N_FOLDS):
            train = fold != f
            means = [X[train & (y == c)].mean(axis=0) for c in (0, 1)]
            spread = np.cov((X - np.where(y[:, None] == 1, means[1], means[0]))[train].T)
            direction = np.linalg.solve(spread, means[1] - means[0])
            scores[~train] = (X[~train] - (means[0] + means[1]) / 2.0) @ direction
            truth += norm.cdf(direction @ shift / math.sqrt(2.0 * direction @ direction)) / N_FOLDS
        (interval,) = cross_validated_areas(y, scores, fold, level=LEVEL)
        covered += interval.low <= truth <= interval.high
        of_pool = auc_interval(y, scores, LEVEL)
        pooled += of_pool.low <= truth <= of_pool.high
    return f"| {n_rows:,} | {100 * covered / n_trials:.1f} | {100 * pooled / n_trials:.1f} |"


class Repeated(NamedTuple):
    """A kind of table on which rankers are cross-validated again and again."""

    n_positives: int
    n_negatives: int
    area: float
    """AUC of the best ranker."""
    learner: str = "discriminant"
    """Or boosted stumps, whose scores have ties."""
    repeats: int = 4
    weighted: bool = False
    unit: int = 1
    """Rows of a group, which share half of the variance of their features."""

    @property
    def label(self) -> str:
        """First column of the table."""
        more = [self.learner, f"best AUC {self.area:g}"]
        more += ["weights exp(1)"] if self.weighted else []
        more += [f"groups of {self.unit}"] if self.unit > 1 else []
        more += [f"{self.repeats} repeats"] if self.repeats != 4 else []
        return f"{self.n_positives:,} + {self.n_negatives:,}, {', '.join(more)}"


REPEATED = (
    *(
        Repeated(n, m, a)
        for n, m in ((15, 135), (30, 270), (100, 400))
        for a in (0.6, 0.8, 0.95, 0.99)
    ),
    *(Repeated(n, m, 0.6, repeats=r) for n, m in ((15, 135), (100, 400)) for r in (2, 3, 10)),
    *(Repeated(30, 270, a, weighted=True) for a in (0.6, 0.8, 0.95)),
    *(Repeated(100, 400, a, unit=10) for a in (0.6, 0.8, 0.95)),
    *(Repeated(n, m, a, "stumps") for n, m in ((15, 135), (100, 400)) for a in (0.6, 0.8, 0.95)),
)
N_SHIFTED, N_NEW_ROWS = 10, 8_000
REPEATED_WINDOWS = ((0.0, 1.0), (0.0, 0.1))


def measure_repeated(kind: Repeated, n_trials: int, seed: int = 1) -> tuple[Floats, str]:
    """Return the shares of covered areas and a row of the table.

    The shares have the shape (2 windows, 3): of the ranker of this sample, of the mean over samples, and of this
    sample's ranker by the variance that takes the rankers as given.
    """
    rng = np.random.default_rng(seed)
    shift = np.full(N_SHIFTED, norm.ppf(kind.area) * math.sqrt(2.0 / N_SHIFTED))
    y = np.repeat([1, 0], [kind.n_positives, kind.n_negatives])
    new = np.repeat([1, 0], N_NEW_ROWS // 2)
    X_new = np.random.default_rng(0).normal(size=(N_NEW_ROWS, N_SHIFTED)) + np.outer(new, shift)
    truths, intervals, given, means, held_out = [], [], [], [], []
    for _ in range(n_trials):
        X = rng.normal(size=(y.size, N_SHIFTED))
        unit = rng.permutation(np.arange(y.size) // kind.unit)
        if kind.unit > 1:
            X = math.sqrt(0.5) * (X + rng.normal(size=X.shape)[unit])
        X += np.outer(y, shift)
        weight = rng.exponential(size=y.size) if kind.weighted else np.ones(y.size)
        fold = np.stack([_stratified(y, unit, rng) for _ in range(kind.repeats)])
        scores = np.empty(fold.shape)
        for r, f in np.ndindex(kind.repeats, N_FOLDS):
            test = fold[r] == f
            ranker = _fitted(kind.learner, X[~test], y[~test], weight[~test])
            scores[r, test] = ranker(X[test])
            if (r, f) == (0, 0):
                held_out.append(auc(y[test], scores[0, test], weight[test]))
        ranker = _fitted(kind.learner, X, y, weight)
        truths.append([partial_auc(new, ranker(X_new), *window) for window in REPEATED_WINDOWS])
        folds = Folds(
            fold.ravel(),
            np.repeat(np.arange(kind.repeats), y.size),
            np.tile(np.arange(y.size), kind.repeats),
        )
        areas = estimate(
            np.tile(y, kind.repeats),
            {"scores": scores.ravel()},
            partial(row_influences, windows=REPEATED_WINDOWS),
            folds,
            np.tile(weight, kind.repeats) if kind.weighted else None,
            np.tile(unit, kind.repeats) if kind.unit > 1 else None,
        )
        intervals.append(_intervals(areas))
        if areas.influence is not None:
            rows = replace(areas, influence=areas.influence[..., : -kind.repeats], repeats=1)
            given.append(_intervals(rows))
        else:
            given.append(intervals[-1])
        means.append(areas.values[0, 0])
    truth, found, fixed = np.array(truths), np.array(intervals), np.array(given)
    mean = truth.mean(axis=0)
    covered = np.stack(
        [
            np.mean((each[..., 1] <= of) & (of <= each[..., 2]), axis=0)
            for each, of in ((found, truth), (found, mean), (fixed, truth))
        ],
        axis=1,
    )
    cells = [" / ".join(f"{100 * share:.1f}" for share in own) for own in covered]
    width = np.mean(found[:, 0, 2] - found[:, 0, 1])
    bias = f"{np.mean(means) - mean[0]:+.3f}"
    spread = f"{np.std(held_out):.3f} / {np.std(means):.3f}"
    return covered, f"| {kind.label} | {' | '.join(cells)} | {width:.3f} | {bias} | {spread} |"


def _stratified(y: Labels, unit: Labels, rng: np.random.Generator) -> Labels:
    """Return a fold for each row; groups with a positive row, and those without, are spread evenly."""
    units = np.unique(unit)
    positive = np.isin(units, unit[y == 1])
    fold = np.empty(units.size, dtype=np.int64)
    for stratum in (positive, ~positive):
        fold[rng.permutation(np.flatnonzero(stratum))] = np.arange(stratum.sum()) % N_FOLDS
    return fold[np.searchsorted(units, unit)]


def _fitted(learner: str, X: Floats, y: Labels, weight: Floats) -> Callable[[Floats], Floats]:
    """Return the scoring function of a fitted ranker."""
    if learner == "stumps":
        return RankBoost(n_rounds=20).fit(X, y, weight).decision_function
    means = [np.average(X[y == c], axis=0, weights=weight[y == c]) for c in (0, 1)]
    rest = X - np.where(y[:, None] == 1, means[1], means[0])
    spread = rest.T @ (rest * weight[:, None]) / weight.sum()
    direction = np.linalg.solve(spread, means[1] - means[0])
    return lambda rows: rows @ direction


def _intervals(areas: Estimates) -> list[Interval]:
    return [area_interval(areas, 0, j, each, LEVEL) for j, each in enumerate(REPEATED_WINDOWS)]


GUARANTEES = (
    ("fpr", 0.05, 59, None),
    ("fpr", 0.05, 300, None),
    ("fpr", 0.01, 1_000, None),
    ("fpr", 0.05, 300, 1),
    ("tpr", 0.9, 50, None),
    ("tpr", 0.9, 500, None),
    ("tpr", 0.9, 500, 0),
)
"""Rate, limit, rows of its class, and the digits that scores are rounded to."""


def measure_guarantee(trials: int, rate: str, limit: float, n_rows: int, digits: int | None) -> str:
    """The row of the third table for one promise, with a confidence of 95 %."""
    rng = np.random.default_rng(2)
    y, distance = np.repeat([1, 0], n_rows), 1.2
    half_step = 0.0 if digits is None else 0.5 * 10.0**-digits
    asked: Any = {rate: limit}
    broken = plain = risk = 0.0
    for _ in range(trials):
        scores = rng.normal(size=y.size) + distance * y
        if digits is not None:
            scores = np.round(scores, digits)
        found = guaranteed_point(y, scores, confidence=LEVEL, **asked)
        risk = found.guarantee.broken
        cutoffs = found.point.threshold, operating_point(y, scores, **asked).threshold
        true = norm.sf(np.array(cutoffs) - half_step - (distance if rate == "tpr" else 0.0))
        beyond = true > limit if rate == "fpr" else true < limit
        broken, plain = broken + beyond[0], plain + beyond[1]
    kind = "continuous" if digits is None else f"rounded to {10.0**-digits:g}"
    return (
        f"| {'FPR ≤' if rate == 'fpr' else 'TPR ≥'} {limit:g}, {n_rows:,} rows, {kind} | "
        f"{100 * broken / trials:.2f} | {100 * risk:.2f} | {100 * plain / trials:.1f} |"
    )


class Grouped(NamedTuple):
    """Groups that are served equally well: a kind of sample each."""

    name: str
    kinds: tuple[Kind, ...]
    across_units: bool = False
    """Whether one sample is drawn, and the rows of each of its units belong to three groups in turn."""


def _equal(number: int, kind: Kind) -> Grouped:
    return Grouped(f"{number} groups: {kind.label}", (kind,) * number)


_SMALL, _LARGE = Kind("", 10, 30), Kind("", 300, 700)
GROUPED = (
    _equal(2, Kind("continuous", 10, 20)),
    _equal(5, Kind("continuous", 10, 20)),
    _equal(2, Kind("continuous", 50, 100)),
    _equal(5, Kind("continuous", 50, 100)),
    _equal(12, Kind("continuous", 50, 100)),
    _equal(5, Kind("continuous", 300, 700)),
    Grouped("10 + 30 beside 300 + 700", (_SMALL, _LARGE)),
    Grouped("4 groups of 10 + 30 beside 300 + 700", (_SMALL,) * 4 + (_LARGE,)),
    Grouped(
        "20 + 500, 200 + 100, 50 + 50", (Kind("", 20, 500), Kind("", 200, 100), Kind("", 50, 50))
    ),
    _equal(5, Kind("AUC .98", 50, 100, distance=2.9)),
    _equal(5, Kind("AUC .98", 300, 700, distance=2.9)),
    _equal(3, Kind("AUC .9", 12, 1_000, distance=1.8124)),
    _equal(4, Kind("AUC .98", 100, 5_000, distance=2.9044)),
    _equal(3, Kind("weighted", 50, 100, weighted=True)),
    _equal(3, Kind("20 + 40 units of one class", 100, 200, unit=5)),
    Grouped(
        "3 groups, each with rows of the same 100 units",
        (Kind("", 500, 1_000, unit=15, mixed=True),),
        across_units=True,
    ),
)
CUTOFF_FPR = 0.1
"""FPR of the population at the cut."""


def draw_groups(grouped: Grouped, rng: np.random.Generator) -> tuple[Sample, Labels]:
    """Draw one sample of all groups, and the group of each row."""
    samples = [draw(kind, rng) for kind in grouped.kinds]
    sizes = [sample.y.size for sample in samples]
    codes = np.repeat(np.arange(len(samples)), sizes)
    if grouped.across_units:
        codes = np.arange(sizes[0]) % 3
    options = {
        name: np.concatenate(
            [
                sample.options[name] + (0 if name == "sample_weight" else 1e6 * index)
                for index, sample in enumerate(samples)
            ]
        )
        for name in samples[0].options
    }
    y, scores = (
        np.concatenate(each) for each in zip(*((s.y, s.scores[0]) for s in samples), strict=True)
    )
    return Sample(y, [scores], options), codes


def measure_groups(grouped: Grouped, n_trials: int) -> str:
    """The row of the fourth table for one choice of groups."""
    rng, kind, window = np.random.default_rng(2), grouped.kinds[0], WINDOWS[1]
    cutoff = float(norm.isf(CUTOFF_FPR))
    truth = {
        "auc": area(kind, WINDOWS[0]),
        "pauc": area(kind, window),
        "tpr": float(norm.sf(cutoff - kind.distance)),
        "fpr": CUTOFF_FPR,
    }
    truth["xauc"] = truth["worst"] = truth["auc"]
    covered: dict[str, list[bool]] = {name: [] for name in truth}
    rejected: dict[str, list[bool]] = {name: [] for name in ("auc", "pauc", "tpr", "fpr", "any")}
    for _ in range(n_trials):
        sample, codes = draw_groups(grouped, rng)
        found = compare_groups(
            sample.y, sample.scores[0], codes, windows=[window], threshold=cutoff, **sample.options
        )
        metrics = [
            ("xauc", c.metric) for c in found.cross_areas if c.positives_of != c.negatives_of
        ]
        for one in found.groups:
            metrics += [("auc", one.auc), ("pauc", one.partial_aucs[0])]
            metrics += [("tpr", one.tpr), ("fpr", one.fpr)] if one.tpr and one.fpr else []
        shown = [(name, metric.interval) for name, metric in metrics]
        shown += [("worst", worst.interval) for worst in found.worst if worst.of == "auc"]
        for name, interval in shown:
            if interval is not None:
                covered[name].append(interval.low <= truth[name] <= interval.high)
        tested = [test for test in found.tests if test.p_value is not None]
        for test in tested:
            rejected[test.of].append((test.p_value or 0.0) < 1.0 - LEVEL)
        adjusted = [test.adjusted_p_value or 0.0 for test in tested]
        rejected["any"].append(min(adjusted) < 1.0 - LEVEL)
    cells = [" / ".join(_percent(each) for each in of.values()) for of in (covered, rejected)]
    return f"| {grouped.name} | {cells[0]} | {cells[1]} |"


def _percent(outcomes: list[bool]) -> str:
    return f"{100 * float(np.mean(outcomes)):.1f}" if outcomes else "–"


def print_groups(n_trials: int) -> None:
    """Print the fourth table."""
    print(
        "\n| groups | covered, %: AUC / [0, .1] / TPR / FPR / xAUC / worst AUC "
        "| called different, %: AUC / [0, .1] / TPR / FPR / any, by Holm |\n|---|---|---|"
    )
    for grouped in GROUPED:
        print(measure_groups(grouped, n_trials), flush=True)
    print(
        "\n| groups | covered, %: in the large / fraction of positives | called different, % |\n|---|---|---|"
    )
    for forecasts in FORECAST_GROUPS:
        print(measure_calibrations(forecasts, n_trials), flush=True)


class ForecastGroups(NamedTuple):
    """Groups of probabilities whose log odds are normal, with standard deviation 1.5."""

    name: str
    groups: tuple[tuple[int, float], ...]
    """Rows and mean log odds of each group."""
    shift: float = 0.0
    """What is missing in all log odds."""
    slope: float = 1.0
    """The factor of the log odds that would be right."""
    weighted: bool = False
    unit: int = 1
    """Rows of each unit; their labels are correlated."""
    across_units: bool = False
    """True if the rows of each unit belong to three groups in turn."""


FORECAST_GROUPS = (
    ForecastGroups("2 groups of 100", ((100, 0.0),) * 2),
    ForecastGroups("5 groups of 100", ((100, 0.0),) * 5),
    ForecastGroups("12 groups of 100, all off by 1", ((100, 0.0),) * 12, shift=1.0),
    ForecastGroups("5 groups of 200, one positive in 12", ((200, -3.0),) * 5),
    ForecastGroups("5 groups of 1,000, one positive in 12", ((1_000, -3.0),) * 5),
    ForecastGroups(
        "100, 1,000 and 3,000 of other prevalences, all off by 0.7",
        ((100, 0.0), (1_000, -1.7), (3_000, -3.0)),
        shift=-0.7,
    ),
    ForecastGroups("5 groups of 300, too extreme", ((300, -1.0),) * 5, slope=0.5),
    ForecastGroups("3 groups of 300, weighted", ((300, 0.0),) * 3, weighted=True),
    ForecastGroups("3 groups of 60 units of 5 rows", ((300, 0.0),) * 3, unit=5),
    ForecastGroups(
        "3 groups, each with rows of the same 100 units",
        ((1_500, 0.0),),
        unit=15,
        across_units=True,
    ),
)


def measure_calibrations(forecasts: ForecastGroups, n_trials: int) -> str:
    """The row of the table on calibrations for one choice of groups."""
    rng = np.random.default_rng(3)
    groups = forecasts.groups * 3 if forecasts.across_units else forecasts.groups
    truth = [_true_calibration(mean, forecasts.shift, forecasts.slope) for _, mean in groups]
    covered: tuple[list[bool], list[bool]] = ([], [])
    rejected: list[bool] = []
    for _ in range(n_trials):
        y, p, codes, options = draw_forecasts(forecasts, rng)
        found = compare_groups(y, p, codes, probability=p, **options)
        for expected, one in zip(truth, found.groups, strict=True):
            if one.calibration is None:
                continue
            metrics = one.calibration.in_the_large, one.calibration.observed
            for outcomes, value, metric in zip(covered, expected, metrics, strict=True):
                if metric.interval is not None:
                    outcomes.append(metric.interval.low <= value <= metric.interval.high)
        p_value = found.tests[-1].p_value
        rejected += [] if p_value is None else [p_value < 1.0 - LEVEL]
    shown = " / ".join(_percent(outcomes) for outcomes in covered)
    return f"| {forecasts.name} | {shown} | {_percent(rejected)} |"


def _true_calibration(mean: float, shift: float, slope: float) -> tuple[float, float]:
    """Return the calibration in the large and the fraction of positives of a population."""
    odds = norm.ppf((np.arange(100_000) + 0.5) / 100_000, mean, 1.5)
    positive = float(expit(slope * odds + shift).mean())
    off = brentq(lambda constant: float(expit(odds + constant).mean()) - positive, -20.0, 20.0)
    return float(off), positive


def draw_forecasts(
    forecasts: ForecastGroups, rng: np.random.Generator
) -> tuple[Labels, Floats, Labels, dict[str, Any]]:
    """Draw labels, probabilities, the group of each row, and the other arguments of the inference."""
    sizes = [size for size, _ in forecasts.groups]
    n_rows = sum(sizes)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    odds = np.repeat([mean for _, mean in forecasts.groups], sizes) + 1.5 * rng.normal(size=n_rows)
    unit = np.arange(n_rows) // forecasts.unit
    share = 0.0 if forecasts.unit == 1 else 0.5
    noise = math.sqrt(share) * rng.normal(size=n_rows)[unit]
    uniform = norm.cdf(noise + math.sqrt(1.0 - share) * rng.normal(size=n_rows))
    y = (uniform < expit(forecasts.slope * odds + forecasts.shift)).astype(np.int64)
    options: dict[str, Any] = {}
    if forecasts.weighted:
        options["sample_weight"] = rng.exponential(size=n_rows) + 1e-9
    if forecasts.unit > 1:
        options["group"] = unit
    return y, expit(odds), np.arange(n_rows) % 3 if forecasts.across_units else codes, options


METRICS = (
    "average_precision",
    "precision@1%",
    "precision@10%",
    "precision@20",
    "ndcg",
    "ndcg@20",
    "two_way:0.2,0.5",
    "precision_at_recall:0.5",
    "precision_at_recall:0.9",
    "lift@10%",
    "empirical:0,0.2",
)


class Level(NamedTuple):
    """A kind of sample of the table `level`."""

    n_positives: int
    n_negatives: int
    correlation: float = 0.5
    """Of the errors of the two scorers."""
    digits: int | None = None
    weight_spread: float = 0.0
    unit: int = 1
    n_folds: int = 1

    @property
    def label(self) -> str:
        """First column of the table."""
        more = [
            words
            for words, has in (
                ("errors independent", self.correlation == 0.0),
                ("rounded", self.digits is not None),
                (f"weights exp({self.weight_spread:g} z)", self.weight_spread),
                (f"units of {self.unit}", self.unit > 1),
                (f"{self.n_folds} folds", self.n_folds > 1),
            )
            if has
        ]
        return ", ".join([f"{self.n_positives:,} + {self.n_negatives:,}", *more])


LEVEL_WINDOWS = ((0.0, 0.05), (0.0, 0.1), (0.1, 0.3), (0.0, 1.0))
_LEVEL_SIZES = (
    (3, 100),
    (10, 10),
    (10, 20),
    (2_000, 20),
    (200, 60),
    (2_000, 60),
    (500, 100),
    (50, 100),
    (20, 2_000),
)
LEVELS = (
    *(Level(*sizes) for sizes in _LEVEL_SIZES),
    *(Level(*sizes, correlation=0.0) for sizes in _LEVEL_SIZES),
    Level(200, 60, digits=0),
    Level(500, 100, digits=0),
    *(
        Level(*sizes, weight_spread=spread)
        for spread in (0.5, 1.0, 2.0)
        for sizes in ((500, 100), (500, 300), (2_000, 500))
    ),
    Level(500, 300, unit=5),
    Level(200, 60, n_folds=5),
    Level(500, 400, n_folds=5),
)


def measure_level(level: Level, n_trials: int) -> str:
    """The row of the table `level` for one kind of sample."""
    rng = np.random.default_rng(5)
    sizes = level.n_positives, level.n_negatives
    y = np.repeat([1, 0], sizes)
    own = math.sqrt(1.0 - level.correlation)
    options: dict[str, Any] = {}
    unit = np.arange(y.size) // level.unit
    if level.unit > 1:
        options["group"] = unit
    rejected: list[list[bool]] = [[] for _ in LEVEL_WINDOWS]
    for _ in range(n_trials):
        shared = 1.2 * y + math.sqrt(level.correlation) * rng.normal(size=y.size)
        scores = [shared + own * rng.normal(size=y.size)[unit] for _ in range(2)]
        if level.digits is not None:
            scores = [np.round(each, level.digits) for each in scores]
        if level.weight_spread:
            options["sample_weight"] = rng.lognormal(sigma=level.weight_spread, size=y.size)
        if level.n_folds > 1:
            fold = np.concatenate([rng.permutation(np.arange(n) % level.n_folds) for n in sizes])
            options["fold"] = fold
        found = compare(y, scores, LEVEL_WINDOWS, **options)
        for outcomes, window in zip(rejected, found.windows, strict=True):
            if (p_value := window.differences[0].p_value) is not None:
                outcomes.append(p_value < 1.0 - LEVEL)
    return f"| {level.label} | {' / '.join(_percent(outcomes) for outcomes in rejected)} |"


CHANCE_METRICS = (
    "average_precision",
    "precision@10%",
    "precision_at_recall:0.5",
    "ndcg",
    "auc",
    "pauc:0,0.05",
    "pauc:0,0.1",
    "empirical:0,0.1",
    "two_way:0.5,0.2",
    "two_way:0.8,0.5",
)
CHANCE_ROWS = (
    (10, 90),
    (10, 1_000),
    (20, 80),
    (50, 100),
    (50, 1_000),
    (200, 60),
    (2_000, 60),
    (500, 100),
    (300, 700),
)
"""Positives and negatives."""
LISTS = (
    Kind("continuous", 20, 500),
    Kind("continuous, AUC .98", 20, 980, distance=2.9),
    Kind("continuous", 50, 100),
    Kind("continuous", 50, 1_000),
    Kind("continuous", 300, 700),
    Kind("continuous", 300, 10_000),
    Kind("rounded", 300, 700, digits=0),
    Kind("continuous, AUC .98", 50, 500, distance=2.9),
    Kind("60 + 140 units of one class", 300, 700, unit=5),
)


def measure_metrics(kind: Kind, names: Sequence[str], n_trials: int, population: int) -> str:
    """The row of the fifth table for one kind: the metrics of these names."""
    rng = np.random.default_rng(3)
    metrics = [metric_named(name) for name in names]
    times = max(population // (kind.n_positives + kind.n_negatives), 1)
    large = kind._replace(
        n_positives=times * kind.n_positives, n_negatives=times * kind.n_negatives, unit=1
    )
    sample = draw(large, rng)
    whole = measure_list(sample.y, sample.scores[0], [f for f in metrics if not _of_length(f)])
    truth = {each.metric.name: each.interval.value for each in whole}
    ends, called = np.zeros((n_trials, len(metrics), 3)), np.zeros(len(metrics))
    n_rows = kind.n_positives + kind.n_negatives
    for trial in range(n_trials):
        n_units = rng.binomial(n_rows // kind.unit, kind.n_positives / n_rows)
        of_trial = n_units * kind.unit
        sample = draw(kind._replace(n_positives=of_trial, n_negatives=n_rows - of_trial), rng)
        for j, found in enumerate(
            compare_metrics(sample.y, sample.scores, metrics, level=LEVEL, **sample.options)
        ):
            ends[trial, j] = found.values[0]
            called[j] += is_significant(found.differences[0].p_value)
    of_lists = ends[:, :, 0].mean(axis=0)
    target = np.array([truth.get(f.name, of_lists[j]) for j, f in enumerate(metrics)])
    covered = ((ends[:, :, 1] <= target) & (target <= ends[:, :, 2])).sum(axis=0)
    return (
        f"| {kind.label} | {shares(covered.astype(float), n_trials)} | {shares(called, n_trials)} |"
    )


def measure_chance(n_positives: int, n_negatives: int, n_trials: int) -> str:
    """The row of the table of tests against chance, for scores that say nothing."""
    rng = np.random.default_rng(4)
    metrics = [metric_named(name) for name in CHANCE_METRICS]
    y = np.repeat([1, 0], [n_positives, n_negatives])
    called: list[list[bool]] = [[] for _ in metrics]
    for _ in range(n_trials):
        found = measure_list(y, rng.normal(size=y.size), metrics)
        for outcomes, each in zip(called, found, strict=True):
            if each.p_value is not None:
                outcomes.append(each.p_value < 1.0 - LEVEL)
    shown = " / ".join(_percent(outcomes) for outcomes in called)
    return f"| {n_positives:,} + {n_negatives:,} | {shown} |"


def _of_length(metric: Metric) -> bool:
    """Return True if the figure depends on the length of the list."""
    return isinstance(metric, Ndcg) or (isinstance(metric, PrecisionAt) and metric.share is None)


class AmountKind(NamedTuple):
    """A kind of sample with amounts: one row in ten is positive, and amounts are exp(spread · normal)."""

    n_rows: int
    spread: float
    relation: float = 0.0
    """How much a row's score rises with the logarithm of its amount."""
    digits: int | None = None
    unit: int = 1
    """Rows that are drawn together: they share half of the variance of their amounts and scores."""

    @property
    def label(self) -> str:
        """First column of the table."""
        more = ", scores rise with amounts" if self.relation else ""
        more += "" if self.digits is None else ", rounded scores"
        more += "" if self.unit == 1 else f", units of {self.unit}"
        return f"{self.n_rows:,} rows, s = {self.spread:g}{more}"


AMOUNTS = (
    *(AmountKind(n, spread) for spread in (0.5, 1.0, 1.5, 2.0) for n in (300, 1_000, 5_000)),
    AmountKind(1_000, 1.0, relation=0.5),
    AmountKind(1_000, 1.0, digits=0),
    AmountKind(1_000, 1.0, unit=5),
)
AMOUNT_COSTS = AmountCosts(false_negative=Price(rate=1.0), review=0.3)
FIXED_CUTOFF = 1.2


class AmountRows(NamedTuple):
    """Labels, amounts, two equally good scorers, and the unit of each row."""

    y: npt.NDArray[np.bool_]
    amounts: Floats
    scores: tuple[Floats, Floats]
    unit: npt.NDArray[np.intp] | None


class AmountCover(NamedTuple):
    """Fractions of the samples, and relative errors of the cost of the chosen cut."""

    covered: dict[str, float]
    in_sample: float
    held_out: float
    called_different: float


def draw_amounts(kind: AmountKind, rng: np.random.Generator) -> AmountRows:
    """Rows with amounts."""
    n = kind.n_rows

    def normal() -> Floats:
        if kind.unit == 1:
            return rng.normal(size=n)
        shared = np.repeat(rng.normal(size=n // kind.unit), kind.unit)
        return (shared + rng.normal(size=n)) / math.sqrt(2.0)

    y, size, common = rng.random(n) < 0.1, normal(), normal()
    scores = [
        (common + normal()) / math.sqrt(2.0) + 1.5 * y + kind.relation * size for _ in range(2)
    ]
    if kind.digits is not None:
        scores = [np.round(each, kind.digits) for each in scores]
    unit = None if kind.unit == 1 else np.arange(n) // kind.unit
    return AmountRows(y, np.exp(kind.spread * size), (scores[0], scores[1]), unit)


def cover_amounts(kind: AmountKind, n_trials: int, population: int) -> AmountCover:
    """Count for one kind."""
    rng = np.random.default_rng(5)
    large = draw_amounts(kind._replace(n_rows=2 * population), rng)
    order = np.argsort(-large.scores[0])
    ranked = -large.scores[0][order]
    change = np.where(large.y, 0.3 - large.amounts, 0.3)[order]
    nobody = float((large.amounts * large.y).mean())
    costs = nobody + np.concatenate(([0.0], np.cumsum(change))) / change.size

    def cost(cutoff: float) -> float:
        return float(costs[np.searchsorted(ranked, -cutoff, side="right")])

    def values(rows: AmountRows) -> dict[str, Interval]:
        found = value_caught(rows.y, rows.scores[0], rows.amounts, at=[0.1, 0.5], group=rows.unit)
        other = value_caught(
            rows.y, rows.scores[0], rows.amounts, over="negatives", at=[0.05], group=rows.unit
        )
        shown = [each.recall for each in (*found.recalls, *other.recalls)]
        return dict(zip(("area", "10 %", "50 %", "FPR 5 %"), (found.area, *shown), strict=True))

    truth = {name: each.value for name, each in values(large._replace(unit=None)).items()}
    covered: dict[str, list[bool]] = {}
    chosen, called = [], []
    for _ in range(n_trials):
        rows = draw_amounts(kind, rng)
        if np.count_nonzero(rows.y) < 2:
            continue
        report = cost_report(
            rows.y,
            rows.scores[0],
            AMOUNT_COSTS,
            rows.amounts,
            threshold=FIXED_CUTOFF,
            group=rows.unit,
        )
        held_out, target = report.least.held_out, cost(report.least.threshold)
        if held_out is None or report.at is None:
            continue
        shown = {
            **values(rows),
            "fixed cut": report.at.cost,
            "chosen cut": held_out.cost,
            "saved": held_out.saved_to_none,
        }
        targets = truth | {
            "fixed cut": cost(FIXED_CUTOFF),
            "chosen cut": target,
            "saved": nobody - target,
        }
        for name, interval in shown.items():
            covered.setdefault(name, []).append(interval.low <= targets[name] <= interval.high)
        chosen.append((report.least.in_sample, held_out.cost.value, target))
        compared = compare_costs(rows.y, rows.scores, AMOUNT_COSTS, rows.amounts, group=rows.unit)
        called.append(is_significant(compared.differences[0].p_value))
    in_sample, held, population = np.mean(chosen, axis=0)
    return AmountCover(
        {name: float(np.mean(each)) for name, each in covered.items()},
        float(in_sample / population - 1.0),
        float(held / population - 1.0),
        float(np.mean(called)),
    )


def print_amounts(n_trials: int, population: int) -> None:
    """Print the seventh table."""
    print(
        "\n| sample | covered, %: area / 10 % / 50 % / FPR 5 % / fixed cut / chosen cut / saved "
        "| cost in sample / held out, off by % | called different, % |\n|---|---|---|---:|"
    )
    for kind in AMOUNTS:
        found = cover_amounts(kind, n_trials, population)
        cells = " / ".join(f"{100 * share:.1f}" for share in found.covered.values())
        off = f"{100 * found.in_sample:+.1f} / {100 * found.held_out:+.1f}"
        print(
            f"| {kind.label} | {cells} | {off} | {100 * found.called_different:.1f} |", flush=True
        )


LIST_METRICS = ("auc", "ndcg@10", "ndcg", "map", "mrr", "precision@5")
GRADED_METRICS = ("c_index", "mean_auc", "volume")
LIST_COUNTS = (10, 30, 100, 1_000)
GRADED_ROWS = ((60, 1), (150, 1), (300, 1), (3_000, 1), (300, 5), (1_500, 5))
"""Rows, and rows a unit."""
GRADE_SHARES = (0.55, 0.25, 0.15, 0.05)


class DrawnLists(NamedTuple):
    """Rows of lists, with grades and two scorers."""

    grade: Labels
    query: Labels
    scores: list[Floats]


def draw_lists(n_queries: int, rng: np.random.Generator) -> DrawnLists:
    """Draw lists of 2 to 20 rows."""
    query = np.repeat(np.arange(n_queries), rng.integers(2, 21, n_queries))
    grade = rng.choice(len(GRADE_SHARES), len(query), p=GRADE_SHARES)
    slope = rng.gamma(2.0, 0.5, n_queries)[query]
    shared = rng.normal(size=len(query))
    scores = [
        slope * grade + math.sqrt(0.5) * (shared + rng.normal(size=len(query))) for _ in range(2)
    ]
    return DrawnLists(grade.astype(np.int64), query, scores)


def draw_graded(n_rows: int, unit: int, rng: np.random.Generator) -> Sample:
    """Draw graded rows; those of a unit share half of the variance of their scores."""
    grade = rng.choice(len(GRADE_SHARES), n_rows, p=GRADE_SHARES)
    units = np.arange(n_rows) // unit
    shared = rng.normal(size=units[-1] + 1)[units]
    scores = [0.8 * grade + math.sqrt(0.5) * (shared + rng.normal(size=n_rows)) for _ in range(2)]
    return Sample(grade.astype(np.int64), scores, {"group": units} if unit > 1 else {})


def measure_coverage_of_lists(n_queries: int, n_trials: int, n_true: int) -> str:
    """The row of the eighth table for so many lists; the truth is the mean over `n_true` others."""
    rng = np.random.default_rng(7)
    metrics = [list_metric_named(name) for name in LIST_METRICS]
    large = draw_lists(n_true, rng)
    values = list_values(large.grade, large.scores[0], large.query, metrics, graded=True)
    truth = np.nanmean(values, axis=1)
    covered, called = np.zeros((2, len(metrics)))
    for _ in range(n_trials):
        grade, query, scores = draw_lists(n_queries, rng)
        for j, found in enumerate(compare_lists(grade, scores, query, metrics, graded=True)):
            covered[j] += found.values[0].low <= truth[j] <= found.values[0].high
            called[j] += is_significant(found.differences[0].p_value)
    return f"| {n_queries:,} lists | {shares(covered, n_trials)} | {shares(called, n_trials)} |"


def measure_graded_coverage(n_rows: int, unit: int, n_trials: int, n_true: int) -> str:
    """The same for rows with grades and without lists."""
    rng = np.random.default_rng(8)
    large = draw_graded(n_true, 1, rng)
    whole = measure_graded(large.y, large.scores[0])
    truth = [getattr(whole, name).value for name in GRADED_METRICS]
    covered = np.zeros(len(GRADED_METRICS))
    for _ in range(n_trials):
        sample = draw_graded(n_rows, unit, rng)
        found = measure_graded(sample.y, sample.scores[0], **sample.options)
        for j, name in enumerate(GRADED_METRICS):
            interval = getattr(found, name)
            covered[j] += interval.low <= truth[j] <= interval.high
    kind = f"{n_rows:,} rows" if unit == 1 else f"{n_rows:,} rows, {unit} a unit"
    return f"| {kind} | {shares(covered, n_trials)} |"


def print_lists(n_trials: int, population: int) -> None:
    """Print the eighth table."""
    header = "| sample | covered, % | called different, % |\n|---|---|---|"
    print(f"\n{', '.join(LIST_METRICS)}\n\n{header}")
    for n_queries in LIST_COUNTS:
        print(measure_coverage_of_lists(n_queries, n_trials, population // 5), flush=True)
    print(f"\n{', '.join(GRADED_METRICS)}\n\n| sample | covered, % |\n|---|---|")
    for n_rows, unit in GRADED_ROWS:
        print(measure_graded_coverage(n_rows, unit, n_trials, population), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=at_least_one, default=4_000)
    parser.add_argument("--bootstrapped", type=at_least_one, default=1_000)
    parser.add_argument("--draws", type=at_least_one, default=500)
    parser.add_argument(
        "--population",
        type=at_least_one,
        default=1_000_000,
        help="rows of the sample that gives the true values of grades and of the top; twice as many give amounts', "
        "a fifth as many lists give lists'",
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument(
        "--metrics", nargs="+", default=METRICS, help="metrics of the table `top`, by name"
    )
    options = parser.parse_args()
    if "areas" in options.tables:
        print_areas(options)
    if "bounds" in options.tables:
        print(
            "\n| sample | greatest variance | as served | Hanley & McNeil, 12 | Newcombe |\n"
            "|---|---|---|---|---|"
        )
        for near in BOUNDS:
            print(measure_bounds(near, options.trials), flush=True)
    if "fitted" in options.tables:
        print("\n| rows | covered, % | covered by the pool, % |\n|---:|---:|---:|")
        for n_rows in (60, 200, 1_000):
            print(measure_fitted(n_rows, options.trials), flush=True)
    if "repeated" in options.tables:
        print(
            "\n| rows | AUC covered, %: of this ranker / in the mean / rankers as given | the same of [0, .1] | "
            "width | bias | spread of a fifth of the rows / of the mean |\n|---|---|---|---:|---:|---|"
        )
        for repeated in REPEATED:
            print(measure_repeated(repeated, max(options.trials // 2, 1))[1], flush=True)
    if "top" in options.tables:
        print(
            f"\n{', '.join(options.metrics)}\n\n"
            "| sample | covered, % | called different, % |\n|---|---|---|"
        )
        for kind in LISTS:
            trials = max(options.trials // 4, 1)
            print(measure_metrics(kind, options.metrics, trials, options.population), flush=True)
    if "chance" in options.tables:
        print(
            f"\n{', '.join(CHANCE_METRICS)}\n\n| sample | called better than chance, % |\n|---|---|"
        )
        for n_positives, n_negatives in CHANCE_ROWS:
            print(measure_chance(n_positives, n_negatives, options.trials), flush=True)
    if "level" in options.tables:
        windows = " / ".join(f"[{low:g}, {high:g}]" for low, high in LEVEL_WINDOWS)
        print(f"\n| sample | called different, %: {windows} |\n|---|---|")
        for level in LEVELS:
            print(measure_level(level, options.trials), flush=True)
    if "near" in options.tables:
        print("\n| sample | covered, % | covered or warned, % | width |\n|---|---|---|---|")
        for near in NEAR:
            print(measure_near(near, options.trials), flush=True)
    if "guarantees" in options.tables:
        print("\n| promise | broken, % | at most, % | by the plain cut, % |\n|---|---|---|---|")
        for guarantee in GUARANTEES:
            print(measure_guarantee(options.trials * 5 // 2, *guarantee), flush=True)
    if "amounts" in options.tables:
        print_amounts(options.trials // 4, options.population)
    if "groups" in options.tables:
        print_groups(options.trials)
    if "lists" in options.tables:
        print_lists(max(options.trials // 4, 1), options.population)
    if "probabilities" in options.tables:
        print_probabilities(max(options.trials // 20, 1))
    if "decisions" in options.tables:
        print_decisions(max(options.trials // 4, 1), options.population)
    if "distance" in options.tables:
        print_distances(max(options.trials // 4, 1))
    if "heavy" in options.tables:
        print_heavy(max(options.trials // 4, 1), options.population)
    if "series" in options.tables:
        print_series(max(options.trials // 4, 1))
    if "checks" in options.tables:
        checks.print_tables(max(options.trials // 20, 1))


FORECASTS = (
    ("calibrated, 300", 300, 0.0, 1.0, None),
    ("calibrated, 3,000", 3_000, 0.0, 1.0, None),
    ("calibrated, one positive in 12, 3,000", 3_000, -3.0, 1.0, None),
    ("too extreme, 300", 300, 0.0, 0.5, None),
    ("too extreme, 3,000", 3_000, 0.0, 0.5, None),
    ("too extreme, rounded to 0.05, 3,000", 3_000, 0.0, 0.5, 20),
)
"""Label, rows, mean log odds, the slope that is right, and the number of steps that probabilities are rounded to."""


def print_probabilities(n_trials: int) -> None:
    """Print the table of reliability diagrams."""
    print("\n| sample | confidence, % | consistency, % | slope, % | in the large, % |")
    print("|---|---:|---:|---:|---:|")
    for label, n_rows, mean, slope, steps in FORECASTS:
        rng = np.random.default_rng([n_rows, int(-mean), int(2 * slope), steps or 0])
        covered = np.zeros(4)
        for seed in range(n_trials):
            p = expit(rng.normal(mean, 1.5, n_rows))
            if steps is not None:
                p = np.clip(np.round(p * steps) / steps, 0.01, 0.99)
            y = rng.random(n_rows) < expit(slope * logit(p))
            found = reliability(y, p, n_bootstrap=200, random_state=seed)
            at = np.array([point.probability for point in found.points])
            observed = np.array([point.observed for point in found.points])
            low, high = np.array([point.consistent for point in found.points]).T
            truth = expit(slope * logit(at))
            curve = observed[:, 0]
            covered += (
                np.mean((observed[:, 1] <= truth) & (truth <= observed[:, 2])),
                np.mean((low - 1e-12 <= curve) & (curve <= high + 1e-12)),
                found.slope.low <= slope <= found.slope.high,
                found.in_the_large.low <= 0.0 <= found.in_the_large.high,
            )
        shares = 100.0 * covered / n_trials
        cells = [f"{share:.1f}" for share in shares]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


class Decisions(NamedTuple):
    """A kind of sample with probabilities: log odds are normal, wrong by a factor, and positives are drawn by them."""

    label: str
    n_rows: int
    mean: float
    slope: float = 1.0
    steps: int | None = None
    """Steps that probabilities are rounded to."""
    weighted: bool = False
    unit: int = 1
    """Rows that are drawn together: they share their log odds but for a quarter of the variance."""
    certainty: float | None = None
    """All probabilities are this or 1 minus it, at random: few rows, or none, are wrong."""


DECISIONS = (
    Decisions("200 rows, 50 % positive", 200, 0.0),
    Decisions("200 rows, 10 positives", 200, -4.0),
    Decisions("1,000 rows, 10 positives", 1_000, -5.8),
    Decisions("1,000 rows, 10 %", 1_000, -3.0),
    Decisions("1,000 rows, 10 %, too extreme", 1_000, -3.0, slope=0.5),
    Decisions("1,000 rows, 10 %, rounded to 0.1", 1_000, -3.0, steps=10),
    Decisions("1,000 rows, 10 %, exponential weights", 1_000, -3.0, weighted=True),
    Decisions("1,000 rows, 10 %, 100 units", 1_000, -3.0, unit=10),
    Decisions("300 rows, 10 %, 20 units", 300, -3.0, unit=15),
    Decisions("20,000 rows, 1 %", 20_000, -5.8),
    Decisions("50 rows, .02 and .98", 50, 0.0, certainty=0.02),
    Decisions("100 rows, .02 and .98", 100, 0.0, certainty=0.02),
    Decisions("200 rows, .01 and .99", 200, 0.0, certainty=0.01),
    Decisions("1,000 rows, .002 and .998", 1_000, 0.0, certainty=0.002),
)
ACTED_AT = (0.02, 0.1, 0.3)


def draw_decisions(
    kind: Decisions, rng: np.random.Generator, n_rows: int
) -> tuple[Labels, Floats, dict[str, Any]]:
    """Return labels, probabilities, and weights and units."""
    odds = rng.normal(size=n_rows)
    options: dict[str, Any] = {}
    if kind.unit > 1:
        unit = np.arange(n_rows) // kind.unit
        odds = 0.5 * odds + math.sqrt(0.75) * rng.normal(size=unit[-1] + 1)[unit]
        options["group"] = unit
    odds = kind.mean + 1.5 * odds
    if kind.certainty is not None:
        odds = logit(kind.certainty) * np.sign(odds)
    y = (rng.random(n_rows) < expit(kind.mean + kind.slope * (odds - kind.mean))).astype(np.int64)
    p = expit(odds)
    if kind.steps is not None:
        p = np.clip(np.round(p * kind.steps) / kind.steps, 0.001, 0.999)
    if kind.weighted:
        options["sample_weight"] = rng.exponential(size=n_rows)
    return y, p, options


def cover_decisions(kind: Decisions, n_trials: int, population: int) -> str:
    """Return the row of a kind: net benefit at three thresholds, its advantage over acting on all, scores, KS."""
    rng = np.random.default_rng(11)
    y, p, _ = draw_decisions(kind, rng, population // kind.unit * kind.unit)
    large = decision_curve(y, p, ACTED_AT)
    truth = [each.benefit.value for each in large] + [each.over_all.value for each in large]
    truth += [large[0].flag_all.value, brier_score(y, p).score, log_score(y, p).score]
    truth.append(ks_interval(y, p).value)
    covered: list[list[bool]] = []
    while len(covered) < n_trials:
        y, p, options = draw_decisions(kind, rng, kind.n_rows)
        if not 2 <= y.sum() <= y.size - 2:
            continue
        found = decision_curve(y, p, ACTED_AT, **options)
        scores = (brier_score(y, p, **options), log_score(y, p, **options))
        intervals = [each.benefit for each in found] + [each.over_all for each in found]
        intervals += [found[0].flag_all, *(each.interval for each in scores if each.interval)]
        intervals.append(ks_interval(y, p, **options))
        covered.append(
            [low <= true <= high for (_, low, high), true in zip(intervals, truth, strict=True)]
        )
    cells = [f"{100 * share:.1f}" for share in np.mean(covered, axis=0)]
    return f"| {kind.label} | {' / '.join(cells[:3])} | {' / '.join(cells[3:6])} | {' | '.join(cells[6:])} |"


def print_decisions(n_trials: int, population: int) -> None:
    """Print the table of decision curves, proper scores and the Kolmogorov-Smirnov distance."""
    print(
        f"\n| sample | net benefit at {' / '.join(map(str, ACTED_AT))}, % | over acting on all, % | "
        "acting on all, % | Brier, % | log, % | KS, % |\n|---|---|---|---:|---:|---:|---:|"
    )
    for kind in DECISIONS:
        print(cover_decisions(kind, n_trials, population), flush=True)


def print_distances(n_trials: int) -> None:
    """Print the table of the Kolmogorov-Smirnov distance of normal scores, from random ones on."""
    print(
        "\n| rows, positive | covered, %: shift 0 / 0.05 / 0.1 / 0.3 / 1.2 | width |\n|---|---|---|"
    )
    for n_rows, share in product((150, 600, 3_000), (0.1, 0.5)):
        y = np.repeat([1, 0], [int(share * n_rows), n_rows - int(share * n_rows)])
        covered, widths = np.zeros((2, 5))
        for j, shift in enumerate((0.0, 0.05, 0.1, 0.3, 1.2)):
            rng, truth = np.random.default_rng(12), 2.0 * norm.cdf(shift / 2.0) - 1.0
            for seed in range(n_trials):
                _, low, high = ks_interval(
                    y, rng.normal(size=n_rows) + shift * y, random_state=seed
                )
                covered[j] += low <= truth <= high
                widths[j] += high - low
        cells = " / ".join(f"{width / n_trials:.3f}" for width in widths)
        print(
            f"| {n_rows:,}, {100 * share:g} % | {shares(covered, n_trials)} | {cells} |", flush=True
        )


HEAVY_METRICS = (
    "average_precision",
    "precision@10%",
    "lift@10%",
    "precision_at_recall:0.5",
    "auc",
    "pauc:0,0.1",
)
HEAVY: tuple[tuple[str, Callable[[np.random.Generator, int], Floats]], ...] = (
    ("100 on 1 %", lambda rng, n: np.where(rng.random(n) < 0.01, 100.0, 1.0)),
    ("exp(z)", lambda rng, n: rng.lognormal(size=n)),
    ("exp(2 z)", lambda rng, n: rng.lognormal(sigma=2.0, size=n)),
)


def print_heavy(n_trials: int, population: int) -> None:
    """Print the table of metrics of rows with very unequal weights."""
    metrics = [metric_named(name) for name in HEAVY_METRICS]
    print(f"\n{', '.join(HEAVY_METRICS)}\n\n| weights, rows, positive | covered, % |\n|---|---|")
    for (name, draw_weights), (n_rows, share) in product(
        HEAVY, ((300, 0.3), (1_000, 0.1), (2_000, 0.3), (10_000, 0.1))
    ):
        rng, covered = np.random.default_rng(13), np.zeros(len(metrics))
        y = (rng.random(population) < share).astype(np.int64)
        scores = rng.normal(size=y.size) + 1.2 * y
        truth = [value_of_metric(each, y, scores) for each in metrics]
        for _ in range(n_trials):
            y = (rng.random(n_rows) < share).astype(np.int64)
            scores = rng.normal(size=n_rows) + 1.2 * y
            found = measure_list(y, scores, metrics, sample_weight=draw_weights(rng, y.size))
            covered += [
                each.interval.low <= true <= each.interval.high
                for each, true in zip(found, truth, strict=True)
            ]
        print(
            f"| {name}, {n_rows:,}, {100 * share:g} % | {shares(covered, n_trials)} |", flush=True
        )


SERIES = tuple((n, m) for n, m in ((500, 500), (2_000, 2_000), (10_000, 500), (10_000, 10_000)))


def draw_series(n: int, phi: float, rng: np.random.Generator) -> Floats:
    """Return a Gaussian series with variance 1 whose neighbours correlate by phi."""
    noise = math.sqrt(1.0 - phi**2) * rng.normal(size=n + 300)
    series: Floats = lfilter([1.0], [1.0, -phi], noise)[300:]
    return series


def measure_series(n: int, m: int, phi: float, shift: float, n_trials: int) -> str:
    """Return the row of two series, the second one shifted: how often the tests find a change."""
    rng = np.random.default_rng([n, m, int(10 * phi), int(10 * shift)])
    shares = np.diff(norm.cdf(np.append(norm.ppf(np.arange(10) / 10), np.inf) - shift))
    truth = float(np.sum((shares - 0.1) * np.log(shares / 0.1)))
    found: dict[str, list[bool]] = {}

    def keep(name: str, *results: bool) -> None:
        found.setdefault(name, []).extend(results)

    for _ in range(n_trials):
        before, after = draw_series(n, phi, rng), draw_series(m, phi, rng) + shift
        edges = bin_edges(before)
        bins = [np.searchsorted(edges, each) for each in (before, after)]
        old_mass, new_mass = (np.bincount(each, minlength=10) for each in bins)
        keep("plain index", population_stability(old_mass, new_mass, (n, m)).p_value < 1.0 - LEVEL)
        old, new = (serial_dependence(each, 10, ordered=True) for each in bins)
        keep("none", old is None or new is None)
        if old is not None and new is not None:
            index = population_stability(old_mass, new_mass, (n, m), dependence=(old, new))
            keep("index", index.p_value < 1.0 - LEVEL)
            keep("covered", index.psi.low <= truth <= index.psi.high)
        sample, later = (
            ScoreSample(np.append(np.inf, np.sort(x)[::-1]), np.arange(x.size + 1) / x.size, x.size)
            for x in (before, after)
        )
        plain, series = score_shift(sample, later), score_shift(sample, later, series=after)
        keep("plain KS", plain.p_value is not None and plain.p_value < 1.0 - LEVEL)
        if series.p_value is not None:
            keep("KS", series.p_value < 1.0 - LEVEL)
    names = ("plain index", "index", "covered", "plain KS", "KS", "none")
    # A few trials may all lack an estimate of the dependence.
    cells = [f"{100 * np.mean(found[name]):.1f}" if name in found else "–" for name in names]
    return f"| {n:,}, {m:,} | {phi} | {shift} | {' | '.join(cells)} |"


def print_series(n_trials: int) -> None:
    """Print the table of drift tests on rows that are a time series."""
    print(
        "\n| rows | correlation | shift | PSI, as independent, % | PSI, % | covered, % | KS, as independent, % "
        "| KS, % | no test, % |\n|---|---|---|---:|---:|---:|---:|---:|---:|"
    )
    for n, m in SERIES:
        for phi, shift in (*product((0.0, 0.5, 0.9), (0.0, 0.2, 0.5)), (0.97, 0.0)):
            print(measure_series(n, m, phi, shift, n_trials), flush=True)


def print_areas(options: argparse.Namespace) -> None:
    """Print the first table."""
    print("| sample | covered, % | covered by the bootstrap, % | called different, % |")
    print("|---|---|---|---|")
    for kind in KINDS:
        trials = options.trials if kind.n_positives < 3_000 else options.trials // 4
        drawn = min(options.bootstrapped, trials)
        print(measure(kind, trials, drawn, options.draws), flush=True)


if __name__ == "__main__":
    main()
