"""Gains of a ranked list worked off from its top: gains tables, and gains, precision–recall and cost curves.

A list of a given size flags its first rows. If the cutoff lies within a tie, the rows of the tie are taken at
random: of a mass m with p positives, r are taken, and r p / m of the positives are among them in the mean (the
hypergeometric distribution). Recall and lift at a size are one metric with two scales. Precision is a third one if the
prevalence is given; otherwise the prevalence varies from sample to sample, which moves the precision in another way.
The intervals are those of `metrics.PrecisionAt` and `metrics.Lift`: they include that the cutoff itself is not known.

References
----------
Drummond & Holte, "Cost curves: an improved method for visualizing classifier performance", Machine Learning 65 (2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from core.base.parameters import check_items, check_value
from core.errors import InvalidParameter
from core.metrics.curve import ClassTotals, RocCurve, upper_hull
from core.metrics.estimates import EPSILON, Interval
from core.metrics.functionals.base import Masses, check_size, masses_on_curve, size_of
from core.metrics.functionals.top import (
    Lift,
    PrecisionAt,
    lift_slope,
    positives_above,
    positives_near,
    precision_slope,
)
from core.metrics.groups import FloatArray
from core.metrics.measuring import scale_of, scaled_interval, with_prevalence_variance
from core.metrics.operating import share_of_list
from core.metrics.window import MIN_WIDTH, check_level, check_prevalence

SHARES = (0.01, 0.02, 0.05, *(tenth / 10 for tenth in range(1, 11)))
"""The sizes of a gains table, as fractions of the list."""


@dataclass(frozen=True)
class Gain:
    """Precision, recall and lift of the first rows of a list.

    Attributes
    ----------
    precision, recall, lift : Interval
        Fraction of positives among the first rows, fraction of the positives that are among them, and precision divided
        by the prevalence.

    Examples
    --------
    >>> from core.metrics import ClassTotals, gains_table, roc_curve
    >>> curve = roc_curve([0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6])
    >>> (gain,) = gains_table(curve, ClassTotals.of_counts(3, 3), counts=[2])
    >>> gain.positives, round(gain.recall.value, 3), round(gain.lift.value, 3)
    (2.0, 0.667, 2.0)
    """

    share: float
    """The first rows as a fraction of all rows. In (0, 1]."""
    size: float
    """Their weight; their number if unweighted."""
    threshold: float
    """Lowest score among them. If rows beyond have the same score, this threshold flags more rows."""
    tied: float
    """Weight of all rows with that score."""
    taken: float
    """Weight of those of them that are among the first rows."""
    positives: float
    """Weight of the positives among the first rows; the mean over all orders of a tie at the end."""
    precision: Interval
    recall: Interval
    lift: Interval


def gains_table(
    curve: RocCurve,
    totals: ClassTotals,
    *,
    shares: Sequence[float] = (),
    counts: Sequence[float] = (),
    level: float = 0.95,
    prevalence: float | None = None,
) -> tuple[Gain, ...]:
    """Compute precision, recall and lift of the first rows of a list, for several sizes.

    Use it if you can call, review or mail only part of the list.

    Parameters
    ----------
    curve, totals
        The full ROC curve and the weights of its classes, as from `summarise`.
    shares : sequence of float in [1e-9, 1]
        Sizes as fractions of all rows. Without shares and counts: 1, 2, 5, 10, 20, …, 100 %.
    counts : sequence of float > 0
        Sizes as numbers of rows (their weight, if rows are weighted), at most all rows.
    level : float in (0, 1)
        Confidence level of each interval. It covers the value of the population at that share of a list.
    prevalence : float in [1e-9, 1 − 1e-9], optional
        Fraction of positives among future rows, taken as known. Default: that of the sample; the intervals then include
        its variance.

    Returns
    -------
    tuple of Gain
        The shares, then the counts, in the given order. O(n_points + n_sizes · log n_points).

    Examples
    --------
    >>> from core.metrics import gains_table, summarise
    >>> found = summarise([1, 1, 0, 1, 0, 0, 1, 0], [0.9, 0.8, 0.8, 0.8, 0.5, 0.4, 0.3, 0.2])
    >>> gain, = gains_table(found.curve, found.totals, counts=[2])
    >>> round(gain.positives, 4), gain.tied, gain.taken, round(gain.precision.value, 4), round(gain.lift.value, 4)
    (1.6667, 3.0, 1.0, 0.8333, 1.6667)
    """
    level = check_level(level)
    masses = masses_on_curve(curve, totals)
    if prevalence is not None:
        if len(counts):
            raise InvalidParameter(
                f"counts refer to these rows: use shares at another prevalence, got prevalence {prevalence!r}"
            )
        if not MIN_WIDTH <= check_prevalence(prevalence) <= 1.0 - MIN_WIDTH:
            raise InvalidParameter(
                f"prevalence must be from {MIN_WIDTH:g} to 1 - {MIN_WIDTH:g} for gains, got {prevalence!r}"
            )
        masses = masses.with_prevalence(float(prevalence))
    sizes: list[tuple[float | None, float | None]] = [
        (None, share) for share in check_items("shares", shares, float)
    ]
    sizes += [(count, None) for count in check_items("counts", counts, float)]
    sizes = sizes or [(None, share) for share in SHARES]
    for count, share in sizes:
        check_size(count, share)
    total = float(masses.above[-1])
    return tuple(
        _gain(curve, masses, size_of(count, share, total), level) for count, share in sizes
    )


def _gain(curve: RocCurve, masses: Masses, size: float, level: float) -> Gain:
    total = float(masses.above[-1])
    positive, negative = masses.totals
    index = int(np.searchsorted(masses.above, size * (1.0 - EPSILON), side="left"))
    index = min(max(index, 1), masses.positive.size)
    start, end = float(masses.above[index - 1]), float(masses.above[index])
    taken = min(size, end) - start
    tied = end - start
    part = taken / tied if tied > 0.0 else 1.0
    caught = positives_above(masses, size)
    near = positives_near(masses, size)
    # The variance of `PrecisionAt`: U and D are constant above the cutoff, 0 below, and a part of that in the tie.
    variance: float | None = 0.0
    for mass, above, of_tie, weight, effective in (
        (positive, masses.above_positive, masses.positive, 1.0 - near, masses.effective[0]),
        (negative, masses.above_negative, masses.negative, near, masses.effective[1]),
    ):
        if effective <= 1.0 + EPSILON:
            variance = None
        if variance is None:
            break
        before, own = float(above[index - 1]), float(of_tie[index - 1])
        mean = (before + part * own) / mass
        square = (before + part**2 * own) / mass
        # Where all rows of the class are alike, rounding leaves a trace.
        spread = square - mean**2 if square - mean**2 > EPSILON * square else 0.0
        variance += (weight * mass / size) ** 2 * spread / (effective - 1.0)
    prevalence = masses.prevalence
    value = min(1.0, positive / size, caught / size)
    slope = precision_slope(value, near, prevalence)
    of_lift = None if variance is None else variance / prevalence**2
    precision, lift = (
        scaled_interval(
            own,
            with_prevalence_variance(spread_of, by_prevalence, masses),
            scale_of(metric, [masses]),
            level,
        )
        for metric, own, spread_of, by_prevalence in (
            (PrecisionAt(count=size), value, variance, slope),
            (Lift(count=size), value / prevalence, of_lift, lift_slope(value, near, prevalence)),
        )
    )
    return Gain(
        share=min(1.0, size / total),
        size=size,
        threshold=float(curve.thresholds[index]),
        tied=tied,
        taken=taken,
        positives=caught,
        precision=precision,
        recall=Interval(*(min(1.0, each * size / total) for each in lift)),
        lift=lift,
    )


ListCurveKind = Literal["precision_recall", "gains", "cost"]


class ListCurve(NamedTuple):
    """A curve (x, y) over the thresholds of a ranked list; x never decreases.

    Attributes
    ----------
    x, y : ndarray of shape (n_points,), float64
        The points.

    Examples
    --------
    >>> from core.metrics import list_curve, roc_curve
    >>> curve = list_curve("gains", roc_curve([0, 1, 0, 1], [1, 2, 3, 4]), prevalence=0.5)
    >>> curve.x.tolist(), curve.y.tolist()
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """

    x: FloatArray
    y: FloatArray
    thresholds: FloatArray
    """Threshold of each point: rows with at least this score are flagged. Shape (n_points,)."""
    spread: tuple[FloatArray, FloatArray]
    """Two measures of length along the curve by which `thin` spreads its points. Neither decreases. Each of shape
    (n_points,)."""

    def thin(self, max_points: int) -> ListCurve:
        """Return the curve with at most `max_points` of its points.

        The ends are kept, and the others are spread by both measures of length.

        Parameters
        ----------
        max_points : int
            At least 2.

        Returns
        -------
        ListCurve
            The thinned curve. O(n_points).
        """
        if max_points < 2:
            raise InvalidParameter(f"max_points must be at least 2, got {max_points}")
        if len(self.x) <= max_points:
            return self
        kept = np.array([0, len(self.x) - 1])
        first = (max_points - 2) // 2
        for way, n_points in zip(self.spread, (first, max_points - 2 - first), strict=True):
            marks = np.linspace(way[0], way[-1], n_points + 2)[1:-1]
            kept = np.union1d(kept, np.searchsorted(way, marks, side="left"))
        kept = kept[kept < len(self.x)]
        return ListCurve(
            self.x[kept],
            self.y[kept],
            self.thresholds[kept],
            (self.spread[0][kept], self.spread[1][kept]),
        )


def list_curve(kind: ListCurveKind, curve: RocCurve, prevalence: float) -> ListCurve:
    """Compute a precision–recall, gains or cost curve at a prevalence from a ROC curve.

    Parameters
    ----------
    kind : {"precision_recall", "gains", "cost"}
        "precision_recall": recall and precision of every threshold, as points that no straight line joins. "gains":
        share of the list and recall from (0, 0) on, joined by straight lines. "cost": the corners of the cost curve,
        joined by straight lines; its thresholds are the best ones from the corner on. Its x is the weight of a missed
        positive, π c₊ / (π c₊ + (1 − π) c₋), and its y the lowest cost as a fraction of the greatest possible one.
    curve : RocCurve
        A ROC curve with one point per distinct score.
    prevalence : float in (0, 1)
        Fraction of positives among all rows.

    Returns
    -------
    ListCurve
        The curve. O(n_points).

    Examples
    --------
    >>> from core.metrics import list_curve, roc_curve
    >>> curve = roc_curve([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])
    >>> list_curve("precision_recall", curve, 0.5).y
    array([1.        , 0.66666667, 0.5       ])
    """
    check_value("curve", RocCurve, curve)
    check_value("kind", str, kind)
    if kind not in get_args(ListCurveKind):
        kinds = ", ".join(get_args(ListCurveKind))
        raise InvalidParameter(f"kind must be one of {kinds}, got {str(kind)[:100]!r}")
    share = share_of_list(curve, prevalence)
    if kind == "gains":
        return ListCurve(share, curve.tpr, curve.thresholds, (share + curve.tpr, _log(share)))
    if kind == "precision_recall":
        recall, flagged = curve.tpr[1:], share[1:]
        precision = prevalence * recall / flagged
        return ListCurve(recall, precision, curve.thresholds[1:], (recall, _log(flagged)))
    hull = upper_hull(curve.fpr, curve.tpr)
    missed, wrong = 1.0 - curve.tpr[hull], curve.fpr[hull]
    # Two neighbours on the hull cost alike at one weight; before it the threshold that flags less is the better one.
    falls, rises = -np.diff(missed), np.diff(wrong)
    corners = rises / (rises + falls)
    x = np.concatenate(([0.0], corners, [1.0]))
    cutoff = np.concatenate(([0], np.arange(1, hull.size), [hull.size - 1]))
    y = x * missed[cutoff] + (1.0 - x) * wrong[cutoff]
    x = np.maximum.accumulate(x)
    return ListCurve(x, y, curve.thresholds[hull][cutoff], (x, x))


class ScoreHistogram(NamedTuple):
    """Histogram of the scores of each class, in bins of equal width.

    Attributes
    ----------
    positives, negatives : ndarray of shape (n_bins,), float64
        Fraction of the class in each bin; each sums to 1.

    Examples
    --------
    >>> from core.metrics import roc_curve, score_histogram
    >>> score_histogram(roc_curve([0, 1, 0, 1], [1, 2, 3, 4]), n_bins=3).positives
    array([0. , 0.5, 0.5])
    """

    edges: FloatArray
    """Ends of the bins, ascending. The outermost bins include all scores beyond them. Shape (n_bins + 1,)."""
    positives: FloatArray
    negatives: FloatArray


MAX_TAIL = 0.005
"""Fraction of a list's rows, both classes weighing alike, beyond either end of a histogram's edges: one far outlier
would leave all others in a single bin."""


def score_histogram(curve: RocCurve, n_bins: int = 40) -> ScoreHistogram:
    """Compute the histogram of the scores of each class from a ROC curve.

    Each point of the curve stands for the rows between it and the previous point, as if their score were its threshold.
    That is exact if the curve has a point per score. If all scores are equal, there is one bin of width 1 around them.

    Parameters
    ----------
    curve : RocCurve
        A ROC curve with one point per distinct score.
    n_bins : int
        Number of bins, at least 1.

    Returns
    -------
    ScoreHistogram
        The histogram. O(n_points).

    Examples
    --------
    >>> from core.metrics import roc_curve, score_histogram
    >>> found = score_histogram(roc_curve([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1]), 2)
    >>> found.edges, found.positives, found.negatives
    (array([0.1, 0.5, 0.9]), array([0.5, 0.5]), array([1., 0.]))
    """
    check_value("curve", RocCurve, curve)
    check_value("n_bins", int, n_bins)
    if n_bins < 1:
        raise InvalidParameter(f"n_bins must be at least 1, got {n_bins}")
    scores = curve.thresholds[:0:-1]
    positives, negatives = np.diff(curve.tpr)[::-1], np.diff(curve.fpr)[::-1]
    below = np.cumsum(positives + negatives) / 2.0
    ends = np.searchsorted(below, [MAX_TAIL, 1.0 - MAX_TAIL])
    low, high = scores[np.minimum(ends, len(scores) - 1)].tolist()
    if low < high:  # by halves, for the difference of two finite scores may be infinite
        edges = 2.0 * np.linspace(0.5 * low, 0.5 * high, n_bins + 1)
    else:
        width = max(0.5, 1e-9 * abs(low))  # of a great score 0.5 is nothing
        edges = np.nan_to_num(np.array([low - width, low + width]))
    bins = len(edges) - 1
    at = np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, bins - 1)
    heights = np.zeros((2, bins))
    np.add.at(heights[0], at, positives)
    np.add.at(heights[1], at, negatives)
    return ScoreHistogram(edges, heights[0], heights[1])


def _log(share: FloatArray) -> FloatArray:
    least = float(share[share > 0.0][0])
    logs: FloatArray = np.log(np.maximum(share, least / 2.0))
    return logs
