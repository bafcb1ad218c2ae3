"""The base class of metrics of two-class rankings: functions of the two classes' score distributions.

A class that derives from `Metric` gives the value and its derivatives U and D in the direction of one row of each
class, and S, the derivative by the log odds of the prevalence (see `metrics`). Its name is declared with
`METRICS.named`. Interval, test against chance, comparison, weights, groups, the routes and the command line follow.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import NamedTuple

import numpy as np

from core.base.parameters import check_value
from core.errors import MAX_VALUE, InvalidParameter, shorten
from core.metrics.curve import ClassTotals, RocCurve
from core.metrics.estimates import (
    EPSILON,
    Interval,
)
from core.metrics.functionals.names import MetricNames
from core.metrics.groups import (
    FloatArray,
    inner,
    prefix_sums,
)
from core.metrics.window import (
    MIN_WIDTH,
)


@dataclass(frozen=True, eq=False)
class Masses:
    """The weight of each class at each distinct score, highest score first, and the effective rows of each class."""

    positive: FloatArray
    negative: FloatArray
    """Shape (n_scores,), float64."""
    effective: tuple[float, float]
    """Of the positives and of the negatives."""
    fixed_prevalence: bool = False
    """Whether the population is known to have the prevalence of the masses."""

    @cached_property
    def above_positive(self) -> FloatArray:
        """Weight of the positives at or above each score, after a leading 0. Shape (n_scores + 1,)."""
        return prefix_sums(self.positive)

    @cached_property
    def above_negative(self) -> FloatArray:
        """Weight of the negatives at or above each score, after a leading 0. Shape (n_scores + 1,)."""
        return prefix_sums(self.negative)

    @cached_property
    def above(self) -> FloatArray:
        """Weight of all rows at or above each score, after a leading 0. Shape (n_scores + 1,)."""
        return self.above_positive + self.above_negative

    @property
    def totals(self) -> tuple[float, float]:
        return float(self.above_positive[-1]), float(self.above_negative[-1])

    @property
    def prevalence(self) -> float:
        positive, negative = self.totals
        return positive / (positive + negative)

    def without_information(self) -> Masses:
        """Return the same scores made uninformative: the overall prevalence at each score."""
        all_rows, share = self.positive + self.negative, self.prevalence
        return Masses(all_rows * share, all_rows * (1.0 - share), self.effective, True)

    def with_prevalence(self, prevalence: float) -> Masses:
        """Return the distribution at another, known prevalence, by reweighting the negatives."""
        positive, negative = self.totals
        factor = positive * (1.0 - prevalence) / (prevalence * negative)
        return Masses(self.positive, self.negative * factor, self.effective, fixed_prevalence=True)


def masses_on_curve(curve: RocCurve, totals: ClassTotals) -> Masses:
    """Return the weights at each score of a stored ROC curve that has a point for each distinct score."""
    check_value("curve", RocCurve, curve)
    check_value("totals", ClassTotals, totals)
    return Masses(
        _mass(curve.tpr, totals.positive),
        _mass(curve.fpr, totals.negative),
        (totals.positive_effective, totals.negative_effective),
    )


def _mass(rates: FloatArray, total: float) -> FloatArray:
    """Return the weight at each score, from cumulative rates; rounded to whole numbers if the total is whole."""
    above = rates * total
    ranks = np.rint(above)
    # Rounding error of whole numbers that were divided by their total and multiplied again.
    rounding = 8.0 * np.finfo(np.float64).eps * total
    return np.diff(ranks if bool((np.abs(above - ranks) <= rounding).all()) else above)


class Derivatives(NamedTuple):
    """The value of a metric, and its derivatives with respect to the weight of each class at each score."""

    value: float
    positive: FloatArray
    negative: FloatArray
    """Derivatives by a positive and by a negative, U and D in the module's docstring. Shape (n_scores,), float64."""
    slope: float
    """The derivative by the log odds of the prevalence, S in the module's docstring."""


class Metric(ABC):
    """Base class of metrics of a ranking. A metric defines its value and derivatives; intervals and tests follow.

    Intervals, tests, weights, groups and comparisons of scorers need nothing but this class.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the metric in messages and tables."""

    @abstractmethod
    def of(self, masses: Masses) -> Derivatives:
        """Return the value of the metric and its derivatives.

        Parameters
        ----------
        masses : Masses
            Weights of the classes at each distinct score.

        Returns
        -------
        Derivatives
            The value and its derivatives. O(n_scores).
        """

    @abstractmethod
    def chance(self, masses: Masses) -> float | None:
        """Return the metric's value for a random ranking; None if it is 0 or unknown.

        Parameters
        ----------
        masses : Masses
            Weights of the classes at each distinct score.

        Returns
        -------
        float or None
            The value of a random ranking.
        """

    @abstractmethod
    def top(self, masses: Masses) -> float:
        """Return the metric's maximum over all rankings, at any prevalence unless that is fixed.

        Parameters
        ----------
        masses : Masses
            Weights of the classes at each distinct score.

        Returns
        -------
        float
        """

    @abstractmethod
    def trials(self, masses: Masses) -> float:
        """Return n such that the metric divided by `top` varies at most like a proportion of n trials.

        Parameters
        ----------
        masses : Masses
            Weights of the classes at each distinct score.

        Returns
        -------
        float
        """

    @property
    def is_whole_area(self) -> bool:
        """Whether the metric is the AUC, whose variance has a tighter bound; see `estimates`."""
        return False

    is_area = False
    """Whether it is a partial area: weights then count in its interval as in `partial_auc_interval`."""

    has_heavy_null = False
    """Whether the tail of the null distribution is heavier than `null_moments` say."""

    def null_moments(self, masses: Masses) -> tuple[float, float] | None:
        """Return the metric's mean and variance over random rankings; None if unknown.

        Parameters
        ----------
        masses : Masses
            Weights of the classes at each distinct score.

        Returns
        -------
        (float, float) or None
            Mean and variance.
        """
        return None

    def null_p_value(self, masses: Masses, value: float, inflation: float) -> float | None:
        """Return the probability that a random ranking has at least a value; None if unknown.

        Then the test uses `null_moments`, or an estimate.

        Parameters
        ----------
        masses : Masses
            Weights of the classes at each distinct score.
        value : float
            The value.
        inflation : float >= 1
            Factor by which groups increase the variance.

        Returns
        -------
        float or None
        """
        return None

    def rows_inside(self, masses: Masses) -> tuple[float, float]:
        """Return the effective rows of each class in the metric's window, on which tests depend.

        Parameters
        ----------
        masses : Masses
            Weights of the classes at each distinct score.

        Returns
        -------
        (float, float)
            Positives and negatives; inf without a window.
        """
        return math.inf, math.inf

    def hidden_variance(self, masses: Masses) -> float:
        """Return the variance due to the first ranks that the derivatives miss, divided by θ (1 − θ).

        Parameters
        ----------
        masses : Masses
            Weights of the classes at each distinct score.

        Returns
        -------
        float
        """
        return 0.0

    shift = 0.0
    """What is added to `unit` times `plain`. If it is not 0, this metric is measured as that, too."""

    def plain(self) -> Metric:
        """Return the metric in [0, 1], a rescaling of this one, by which scorers are compared.

        Returns
        -------
        Metric
            This metric is `unit` times that one, plus `shift`.
        """
        return self

    def unit(self, masses: Masses) -> float:
        """Return the factor from differences of `plain` to differences of this metric.

        Parameters
        ----------
        masses : Masses
            Weights of the classes at each distinct score.

        Returns
        -------
        float
        """
        return 1.0

    def own_interval(self, masses: Masses, level: float) -> Interval | None:
        """Return a confidence interval specific to the metric; None for the usual one from the variance.

        Parameters
        ----------
        masses : Masses
            Weights of the classes at each distinct score.
        level : float in (0, 1)
            Confidence level of each interval.

        Returns
        -------
        Interval or None
        """
        return None


def null_variance(metric: Metric, masses: Masses) -> float:
    """Return the variance over random rankings; for the AUC over all orders, with ties (Mann & Whitney 1947)."""
    null = masses.without_information()
    _, up, down, _ = metric.of(null)
    share = (null.positive + null.negative) / (null.totals[0] + null.totals[1])
    rows = sum(masses.effective)
    spreads = [inner(share, (values - inner(share, values)) ** 2) for values in (up, down)]
    parts = (spread / e for spread, e in zip(spreads, masses.effective, strict=True))
    return sum(parts) * rows / (rows - 1.0)


def check_size(count: float | None, share: float | None) -> None:
    """Raise InvalidParameter unless exactly one of count and share (the size of a list's top) is given and valid."""
    if (count is None) == (share is None):
        got = "none" if count is None else "both"
        raise InvalidParameter(f"exactly one of count and share must be given, got {got}")
    value = share if count is None else count
    number = isinstance(value, Real) and not isinstance(value, bool)
    name, least, most = ("share", MIN_WIDTH, 1.0) if count is None else ("count", 0.0, math.inf)
    if not number or not least <= float(value or 0.0) <= most or value in (0.0, math.inf):
        rule = f"be in [{least:g}, 1]" if count is None else "be a number above 0"
        raise InvalidParameter(f"{name} must {rule}, got {shorten(repr(value), MAX_VALUE)}")


def size_of(count: float | None, share: float | None, total: float) -> float:
    """Return the weight of a list's top of `count` rows or a `share`. InvalidParameter: fewer rows than `count`."""
    if share is not None:
        return float(share) * total
    assert count is not None
    if count > total * (1.0 + EPSILON):
        raise InvalidParameter(f"count must be at most the {total:.12g} rows, got {count!r}")
    return min(float(count), total)


def shown_size(count: float | None, share: float | None) -> str:
    """Return the size of a list's top as text: 100, or 1%."""
    return f"{count:.12g}" if share is None else f"{100.0 * share:.12g}%"


def check_scale_free(metric: Metric) -> None:
    """Raise InvalidParameter for a metric of a fixed number of rows, which has no meaning on a part of the rows."""
    if getattr(metric, "count", None) is not None:
        raise InvalidParameter(
            f"{metric.name} requires a share instead of a count, because parts have fewer rows than the "
            "whole"
        )


METRICS: MetricNames[Metric] = MetricNames("a metric")
"""The metrics by name."""


def metric_of(metric: Metric | str) -> Metric:
    return (
        METRICS.find(metric) if isinstance(metric, str) else check_value("metric", Metric, metric)
    )


def roc_of(masses: Masses) -> RocCurve:
    """Return the ROC curve of the two classes' score distributions."""
    positive, negative = masses.above_positive, masses.above_negative
    fpr, tpr = negative / negative[-1], positive / positive[-1]
    kept = np.concatenate(([True], (fpr[1:] > fpr[:-1]) | (tpr[1:] > tpr[:-1])))
    fpr, tpr = fpr[kept], tpr[kept]
    return RocCurve(fpr, tpr, np.concatenate(([np.inf], -np.arange(1.0, fpr.size))))
