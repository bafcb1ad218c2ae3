"""Figures of a ranking beside its areas: precision at the top, average precision, NDCG and two-way partial areas.

Each figure θ of a ranking is a function of the two classes' distributions of scores and of the prevalence π. To first
order it is a sum over rows: positive i counts with w_i (U_i − Ū + S) / P, negative k with w_k (D_k − D̄ − S) / N, where
U and D are the derivatives of θ in the direction of one row of its class, and S is that by the log odds of π. Variance,
covariance of several scorers, groups and degrees of freedom follow as for areas (see `intervals`), and so do paired
tests (see `comparison`). A few rows at the top may have most of the variance of a difference, which is then estimated
too low: each u of a pair is divided by 1 − u² / Σ u², and at most doubled, but for areas.

So the intervals are for a new sample, whose rows are drawn one by one: its prevalence varies, too. With
`fixed_prevalence` S is left out: the interval is then for a population with the prevalence of these rows, such as one
of which a given number of rows of each class was drawn. Areas do not depend on the prevalence: their S is 0.

With T and F the masses of the positives and the negatives at or above a score, p the mass of positives at it,

* **average precision** is Σ (p / P) T / (T + F) over the distinct scores: a tie is one threshold, and nothing is
  interpolated, since precision between two points of the curve does not lie on a line (Davis & Goadrich 2006).
  U = T / (T + F) at the row's own score, plus Σ p F / (T + F)² over the scores up to it; D = −(N / P) Σ p T / (T + F)²;
  S = −D̄;
* **precision at k**: let η be the fraction of positives near the cut. A row above it pushes η positives out, so
  U = (P / k) (1 − η) and D = −(N / k) η above the cut, and 0 below. η is taken from the rows among which the cut lies
  with high probability. Of a share of the list, S = θ (1 − η) − π (θ − η);
* **lift at k**: precision at k, divided by the prevalence: S = (S' − θ' (1 − π)) / π with θ' and S' of the precision;
* **precision at a recall** r: let u be the FPR at which the curve passes TPR = r; then θ = P r / (P r + N u), whose
  derivative by u is c = −θ² N / (P r). A negative above the cut raises u: D = c above the cut, and 0 below. A positive
  above it moves the cut, past f₀ / f₁ negatives in proportion: U = −c f₀ / f₁ above the cut, and 0 below. With η near
  the cut, among rows that reach as far as the number of positives above it varies, f₀ / f₁ = P (1 − η) / (N η).
  S = θ (1 − θ). Its interval is another one, since few positives decide where the cut is, and the curve need not be
  straight there: the log odds of θ are log (r P / N) − log u, and the limits of u at TPR = r (see `bands`) and of
  log (P / N) are combined by MOVER;
* **NDCG at k**: as precision at k, each rank r counted 1 / log₂(r + 1). A row also moves those below it one rank down.
  S = (1 − π) (Ū − P B' θ / B) − π D̄, where B is the gain of the best order and B' what one more positive adds to it;
* **two-way partial area**: the area of the curve over FPR ≤ β and above TPR = α, divided by β (1 − α). With u the FPR
  at which the curve passes α, its derivatives are those of the partial area over [u, β]: that u moves changes nothing
  to first order, since the integrand is 0 there;
* **partial area**: see `intervals`; the strict one, of the negatives of certain ranks, is the area of another curve.

Where equal scores leave the order open, precision at k and NDCG are the mean over all orders of the ties (precision at
a cut through a tie is the mean of a hypergeometric distribution).

A p-value against chance is one-sided, of H₀: θ is at most its value for scores that say nothing, on the logit scale as
the intervals; Holm's adjusts over all figures asked for. That value moves with the prevalence as θ then does, so the
prevalence is fixed in the test. With fewer than `MIN_CLASS_ROWS` effective rows of a class
there is none: the variance of so few rows is too uncertain, and the test would err several times too often.

References
----------
Boyd, Eng & Page, "Area under the precision-recall curve: point estimates and confidence intervals", ECML PKDD (2013):
intervals of average precision on the logit scale.
Davis & Goadrich, "The relationship between precision-recall and ROC curves", ICML (2006).
Järvelin & Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20 (2002): NDCG.
McSherry & Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores",
ECIR (2008).
Yang, Lu, Lyu & Hu, "Two-way partial AUC and its properties", Statistical Methods in Medical Research 28 (2019).
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidParameter
from core.metrics.bands import fpr_at_tpr_interval
from core.metrics.comparison import average_over_folds
from core.metrics.curve import ClassTotals, RocCurve, strict_area
from core.metrics.estimates import (
    EPSILON,
    Adjustment,
    ComparedMetric,
    Difference,
    Estimates,
    Interval,
    adjust_present,
    check_scorers,
    compare_scorers,
    estimates_of_units,
    mean_variance,
    normal_quantile,
    proportion_interval,
    times,
)
from core.metrics.groups import (
    MIN_CLASS_ROWS,
    FloatArray,
    Rows,
    check_rows,
    effective_units,
    group_rows,
    has_enough,
    inner,
    prefix_sums,
    tie_groups,
)
from core.metrics.intervals import influences_of_masses
from core.metrics.window import (
    MAX_WHOLE,
    MIN_WIDTH,
    check_level,
    check_rate,
    check_window,
    window_weights,
)

_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,12})?"
_NAME = re.compile(rf"([a-z_]{{1,20}})(?:([:@])({_NUMBER}(?:,{_NUMBER})?%?))?")

# Standard errors of the number of rows above a cut within which its local fraction of positives is taken.
NEAR_THE_CUT = 2.0


@dataclass(frozen=True, eq=False)
class Masses:
    """The weight of each class at each distinct score, highest first, and the effective number of rows of each."""

    positive: FloatArray
    negative: FloatArray
    """Shape (n_scores,), float64."""
    effective: tuple[float, float]
    """Of the positives and of the negatives."""
    fixed_prevalence: bool = False
    """Whether the population is known to have the prevalence of the masses."""

    @cached_property
    def above_positive(self) -> FloatArray:
        """Weight at or above each score, after a leading 0. Shape (n_scores + 1,)."""
        return prefix_sums(self.positive)

    @cached_property
    def above_negative(self) -> FloatArray:
        """As `above_positive`, of the negatives."""
        return prefix_sums(self.negative)

    @cached_property
    def above(self) -> FloatArray:
        """As `above_positive`, of all rows."""
        return self.above_positive + self.above_negative

    @property
    def totals(self) -> tuple[float, float]:
        """Weight of the positives and of the negatives."""
        return float(self.above_positive[-1]), float(self.above_negative[-1])

    @property
    def prevalence(self) -> float:
        """Fraction of the weight that is of positives."""
        positive, negative = self.totals
        return positive / (positive + negative)

    def with_prevalence(self, prevalence: float) -> Masses:
        """Return masses with the negatives weighted so that the positives have this fraction, which is known."""
        positive, negative = self.totals
        factor = positive * (1.0 - prevalence) / (prevalence * negative)
        return Masses(self.positive, self.negative * factor, self.effective, fixed_prevalence=True)


def masses_on_curve(curve: RocCurve, totals: ClassTotals) -> Masses:
    """Return the masses of a stored curve that has a point for each distinct score."""
    return Masses(
        _mass(curve.tpr, totals.positive),
        _mass(curve.fpr, totals.negative),
        (totals.positive_effective, totals.negative_effective),
    )


def _mass(rates: FloatArray, total: float) -> FloatArray:
    above = rates * total
    ranks = np.rint(above)
    # Rounding error of whole numbers that were divided by their total and multiplied again.
    rounding = 8.0 * np.finfo(np.float64).eps * total
    return np.diff(ranks if bool((np.abs(above - ranks) <= rounding).all()) else above)


class Derivatives(NamedTuple):
    """A figure, and its derivatives in the direction of a row of each class at each score."""

    value: float
    positive: FloatArray
    negative: FloatArray
    """U and D of the module. Shape (n_scores,), float64."""
    slope: float
    """S of the module: the derivative by the log odds of the prevalence."""


class Figure(ABC):
    """A metric of a ranking: a number from 0 to `top`, and its derivatives, from which all else follows.

    Interval, tests, weights, groups, comparison of scorers and the routes of the API need nothing but this class.
    """

    few_rows = True
    """Whether a few rows may have most of the variance of a difference; see `estimates`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A name for messages and tables."""

    @abstractmethod
    def of(self, masses: Masses) -> Derivatives:
        """Return the figure and its derivatives. O(n_scores)."""

    @abstractmethod
    def chance(self, masses: Masses) -> float | None:
        """Return the figure of scores that say nothing; None if that is 0 or not known."""

    @abstractmethod
    def top(self, masses: Masses) -> float:
        """Return the greatest value that a ranking can have, at any prevalence if that is not fixed."""

    @abstractmethod
    def trials(self, masses: Masses) -> float:
        """Return n such that the figure over `top` varies no more than a proportion of n trials."""

    def plain(self) -> Figure:
        """Return the figure in [0, 1] by which scorers are compared; this one is `unit` times that."""
        return self

    def unit(self, masses: Masses) -> float:
        """Return the factor from `plain` to this figure."""
        return 1.0

    def own_interval(self, masses: Masses, level: float) -> Interval | None:
        """Return an interval that does not follow from the variance; None: the one of `estimates`."""
        return None


@dataclass(frozen=True)
class AveragePrecision(Figure):
    """The mean precision at the thresholds of the positives.

    Examples
    --------
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [AveragePrecision()])[0].interval.value
    0.8333333333333333
    """

    name = "average_precision"

    def of(self, masses: Masses) -> Derivatives:
        """Return the figure and its derivatives."""
        above, below = masses.above_positive[1:], masses.above_negative[1:]
        flagged = above + below
        total, negative = masses.totals
        # the highest scores may be of no weight once rounded
        seen = flagged > 0.0
        flagged = np.where(seen, flagged, 1.0)
        precision = np.where(seen, above / flagged, 0.0)
        share = masses.positive / flagged**2
        up = precision + _from_here_on(share * below)
        down = -(negative / total) * _from_here_on(share * above)
        value = min(1.0, inner(masses.positive, precision) / total)
        return Derivatives(value, up, down, -inner(masses.negative, down) / negative)

    def chance(self, masses: Masses) -> float | None:
        """Return the prevalence."""
        return masses.prevalence

    def top(self, masses: Masses) -> float:
        """Return 1."""
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the effective number of the smaller class."""
        return min(masses.effective)


@dataclass(frozen=True)
class PrecisionAt(Figure):
    """The fraction of positives among the first rows of the list; ties at the cut count their mean.

    InvalidParameter: not exactly one of the two is given, or it is out of range.

    Parameters
    ----------
    count : int > 0, optional
        Number of first rows; their weight if rows are weighted. At most all rows.
    share : float in (0, 1], optional
        Their fraction of all rows.

    Examples
    --------
    >>> PrecisionAt(count=100).name, PrecisionAt(share=0.01).name
    ('precision@100', 'precision@1%')
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [PrecisionAt(count=2)])[0].interval.value
    0.75
    """

    count: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        check_size(self.count, self.share)

    @property
    def name(self) -> str:
        """Such as precision@100 or precision@1%."""
        return f"precision@{shown_size(self.count, self.share)}"

    def of(self, masses: Masses) -> Derivatives:
        """Return the figure and its derivatives."""
        total = sum(masses.totals)
        size = size_of(self.count, self.share, total)
        inside = fraction_inside(masses, size)
        near = positives_near(masses, size)
        push = inside * near
        value = inner(masses.positive, inside) / size
        value = min(1.0, masses.totals[0] / size, value)
        up, down = (each / size for each in masses.totals)
        slope = precision_slope(value, near, masses.prevalence)
        return Derivatives(value, up * (inside - push), -down * push, slope)

    def chance(self, masses: Masses) -> float | None:
        """Return the prevalence."""
        return masses.prevalence

    def top(self, masses: Masses) -> float:
        """Return the precision of a list that begins with all positives, or at any prevalence 1."""
        if not masses.fixed_prevalence:
            return 1.0
        size = size_of(self.count, self.share, sum(masses.totals))
        return min(1.0, masses.totals[0] / size)

    def trials(self, masses: Masses) -> float:
        """Return the effective number of rows above the cut, or of the positives if that is less."""
        size = size_of(self.count, self.share, sum(masses.totals))
        return trials_above(masses, size, positives_above(masses, size))


@dataclass(frozen=True)
class Lift(Figure):
    """The precision of the first rows of the list, divided by the prevalence; see `PrecisionAt`.

    Examples
    --------
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [Lift(share=0.5)])[0].interval.value
    1.5
    """

    count: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        check_size(self.count, self.share)

    @property
    def name(self) -> str:
        """Such as lift@100 or lift@15%."""
        return f"lift@{shown_size(self.count, self.share)}"

    @property
    def _precision(self) -> PrecisionAt:
        return PrecisionAt(self.count, self.share)

    def of(self, masses: Masses) -> Derivatives:
        """Return the figure and its derivatives."""
        value, up, down, _ = self._precision.of(masses)
        prevalence = masses.prevalence
        near = positives_near(masses, self._share(masses) * sum(masses.totals))
        slope = lift_slope(value, near, prevalence)
        return Derivatives(value / prevalence, up / prevalence, down / prevalence, slope)

    def chance(self, masses: Masses) -> float | None:
        """Return 1."""
        return 1.0

    def top(self, masses: Masses) -> float:
        """Return the lift of a list that begins with all positives, or at any prevalence of one with no others."""
        if masses.fixed_prevalence:
            return self._precision.top(masses) / masses.prevalence
        return 1.0 / self._share(masses)

    def trials(self, masses: Masses) -> float:
        """Return those of the precision; if the prevalence is not fixed, those of the fraction of positives caught."""
        trials = self._precision.trials(masses)
        if masses.fixed_prevalence:
            return trials
        size = self._share(masses) * sum(masses.totals)
        caught = size / masses.totals[0]
        if caught >= 1.0 or positives_above(masses, size) < size * (1.0 - EPSILON):
            return masses.effective[0]
        # Of positives alone: half the logarithm of Wilson's lower end, its z² near 4, and the error of the prevalence.
        variance = (math.log1p(4.0 / trials) / 2.0) ** 2
        variance += (1.0 - masses.prevalence) ** 2 * sum(1.0 / each for each in masses.effective)
        return (1.0 - caught) / (caught * variance)

    def plain(self) -> Figure:
        """Return the fraction of positives that are among the first rows."""
        return _RecallAt(self.count, self.share)

    def unit(self, masses: Masses) -> float:
        """Return all rows divided by the first rows."""
        total = sum(masses.totals)
        return total / size_of(self.count, self.share, total)

    def _share(self, masses: Masses) -> float:
        total = sum(masses.totals)
        return size_of(self.count, self.share, total) / total


@dataclass(frozen=True)
class _RecallAt(Lift):
    """The fraction of positives that are among the first rows: their lift times their share of all rows."""

    def plain(self) -> Figure:
        return self

    def unit(self, masses: Masses) -> float:
        return 1.0

    def of(self, masses: Masses) -> Derivatives:
        share = self._share(masses)
        value, up, down, slope = super().of(masses)
        return Derivatives(min(1.0, share * value), share * up, share * down, share * slope)

    def top(self, masses: Masses) -> float:
        return self._share(masses) * super().top(masses)


def precision_slope(precision: float, near: float, prevalence: float) -> float:
    """Return S of the precision of a share of the list, given the fraction of positives near the cut."""
    return precision * (1.0 - near) - prevalence * (precision - near)


def lift_slope(precision: float, near: float, prevalence: float) -> float:
    """Return S of the lift, as `precision_slope`; 0 where all rows above the cut and near it are positive.

    There the rows show no variance of the precision, and a variance of the prevalence alone would be too small.
    """
    if min(precision, near) > 1.0 - EPSILON:
        return 0.0
    slope = precision_slope(precision, near, prevalence)
    return (slope - precision * (1.0 - prevalence)) / prevalence


@dataclass(frozen=True)
class PrecisionAtRecall(Figure):
    """The precision of the list down to where it holds a fraction of the positives; of a tie, its share of the rows.

    InvalidParameter: the recall is out of range.

    Parameters
    ----------
    recall : float in [1e-9, 1]

    Examples
    --------
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [PrecisionAtRecall(0.75)])[0].interval.value
    0.75
    """

    recall: float

    def __post_init__(self) -> None:
        if not check_rate("recall", self.recall) >= MIN_WIDTH:
            raise InvalidParameter(f"recall must lie in [{MIN_WIDTH:g}, 1], got {self.recall!r}")

    @property
    def name(self) -> str:
        """Such as precision_at_recall:0.8."""
        return f"precision_at_recall:{self.recall:.12g}"

    def of(self, masses: Masses) -> Derivatives:
        """Return the figure and its derivatives."""
        positive, negative = masses.totals
        caught = self._caught(masses)
        index, part = _cut_at(masses, caught)
        wrong = float(masses.above_negative[index] + part * masses.negative[index])
        value = caught / (caught + wrong)
        inside = np.zeros(masses.positive.size)
        inside[:index], inside[index] = 1.0, part
        near = self._positives_near(masses, caught)
        slope = -(value**2) * negative / caught
        rows_passed = positive * (1.0 - near) / (negative * near) if near > 0.0 else 0.0
        up = -slope * rows_passed * inside
        return Derivatives(value, up, slope * inside, value * (1.0 - value))

    def own_interval(self, masses: Masses, level: float) -> Interval:
        """Return the figure with limits that follow from those of the FPR at this recall; see the module."""
        value = self.of(masses).value
        positive, negative = masses.totals
        totals = ClassTotals(positive, negative, *masses.effective)
        fpr = fpr_at_tpr_interval(_roc(masses), totals, float(self.recall), level)
        odds = math.log(positive) - math.log(negative) + math.log(self.recall)
        error = 0.0
        if not masses.fixed_prevalence:
            error = normal_quantile(level) * math.sqrt(sum(1.0 / e for e in masses.effective))
        own, least, most = (odds - math.log(u) if u > 0.0 else math.inf for u in fpr)
        if math.isinf(own):
            return Interval(value, min(value, _of_odds(most - error)), 1.0)
        low, high = own - math.hypot(own - most, error), own + math.hypot(least - own, error)
        return Interval(value, min(value, _of_odds(low)), max(value, _of_odds(high)))

    def _caught(self, masses: Masses) -> float:
        total = float(masses.above_positive[-1])
        return min(float(self.recall) * total, total)

    def _positives_near(self, masses: Masses, caught: float) -> float:
        """Return the fraction of positives among the rows near the cut, η of the module.

        The rows reach as many positives up and down as the number above a cut varies by.
        """
        total, effective = masses.totals[0], masses.effective[0]
        spread = total * math.sqrt(self.recall * (1.0 - self.recall) / effective)
        reach = max(NEAR_THE_CUT * spread, total / effective)
        low, high = max(0.0, caught - reach), min(total, caught + reach)
        passed = [_rows_above(masses, number) for number in (low, high)]
        return min(1.0, (high - low) / (passed[1] - passed[0])) if passed[1] > passed[0] else 1.0

    def chance(self, masses: Masses) -> float | None:
        """Return the prevalence."""
        return masses.prevalence

    def top(self, masses: Masses) -> float:
        """Return 1."""
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the effective number of rows above the cut, or of the positives if that is less."""
        caught = self._caught(masses)
        return min(trials_above(masses, _rows_above(masses, caught), caught), masses.effective[0])


def _of_odds(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(min(-log_odds, 700.0)))


def _cut_at(masses: Masses, caught: float) -> tuple[int, float]:
    """Return the index of the score that completes a number of positives, and the fraction of its rows it takes."""
    above = masses.above_positive
    # a sum that is short of its target by rounding alone has reached it
    index = int(np.searchsorted(above, caught * (1.0 - EPSILON), side="left")) - 1
    index = min(max(index, 0), masses.positive.size - 1)
    own = float(masses.positive[index])
    part = (caught - float(above[index])) / own if own > 0.0 else 1.0
    return index, min(1.0, max(0.0, part))


def _rows_above(masses: Masses, caught: float) -> float:
    """Return the weight of the rows down to where they hold a number of positives."""
    index, part = _cut_at(masses, caught)
    return caught + float(masses.above_negative[index] + part * masses.negative[index])


@dataclass(frozen=True)
class Ndcg(Figure):
    """The normalised discounted cumulative gain of the first rows: each positive counts 1 / log₂(rank + 1).

    InvalidParameter: `count` is not a whole number above 0, `share` is out of range, or both are given. `of` refuses
    weights that are neither whole numbers, which count as so many rows, nor all equal, which count as one row each.

    Parameters
    ----------
    count : int > 0, optional
        Number of first rows; all rows by default.
    share : float in [1e-9, 1], optional
        Their fraction of all rows, which is rounded to a whole number of rows, at least one.

    Examples
    --------
    >>> round(measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [Ndcg(2)])[0].interval.value, 4)
    0.8066
    """

    count: int | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None:
            check_size(self.count, self.share)
        if self.count is not None:
            whole = isinstance(self.count, Integral) and not isinstance(self.count, bool)
            if not whole or self.count < 1:
                raise InvalidParameter(f"count must be a whole number from 1, got {self.count!r}")

    @property
    def name(self) -> str:
        """Such as ndcg@10 or ndcg@1%."""
        if self.count is None and self.share is None:
            return "ndcg"
        return f"ndcg@{shown_size(self.count, self.share)}"

    def of(self, masses: Masses) -> Derivatives:
        """Return the figure and its derivatives."""
        first, end, row = self._ranks(masses)
        size = self._size(float(end[-1]))
        gains = _Gains(size)
        rows = np.maximum(end - first, 1.0)  # none of a tie whose weight is lost in rounding
        mean = gains.between(np.minimum(first, size), np.minimum(end, size)) / rows
        total, negative = (each / row for each in masses.totals)
        positive_rows = masses.positive / row
        positives = round(total)
        best = gains.of(min(size, positives))
        # what the positives of a tie lose if they all move one rank down, but for those that leave the list
        loss = _discount(np.minimum(end, size - 1.0)) - _discount(np.minimum(first, size - 1.0))
        loss *= positive_rows / rows
        pushed = _from_here_on(loss) - loss / 2.0
        if size < end[-1]:
            inside = fraction_inside(masses, size * row)
            last = float(_discount(np.array(size - 1.0)))
            pushed -= positives_near(masses, size * row) * last * inside
        value = min(1.0, inner(positive_rows, mean) / best)
        up, down = (mean + pushed) * (total / best), pushed * (negative / best)
        more = float(_discount(np.array(total - 0.5))) if total < size else 0.0
        of_positive = inner(positive_rows, up) / total - total * more * value / best
        prevalence = masses.prevalence
        slope = (1.0 - prevalence) * of_positive
        slope -= prevalence * inner(masses.negative / row, down) / negative
        return Derivatives(value, up, down, slope)

    def _ranks(self, masses: Masses) -> tuple[FloatArray, FloatArray, float]:
        """Return the numbers of rows above and down to each score, and the weight of a row."""
        total = sum(masses.totals)
        equal = total / sum(masses.effective)  # the weight of each row, if all weigh alike
        own = np.concatenate((masses.positive, masses.negative))
        for row in (1.0, equal):
            off = np.abs(own / row - np.rint(own / row))
            # differences of a stored curve's rates have the rounding error of their total
            rounding = min(1e-6, 16.0 * np.finfo(np.float64).eps * total / row)
            if np.all(off <= EPSILON * own / row + rounding) and min(masses.totals) >= 0.5 * row:
                ranks = np.rint(masses.above / row)
                return ranks[:-1], ranks[1:], row
        raise InvalidParameter(
            f"{self.name} needs whole weights, or equal ones of rows that were drawn one by one: a rank has no "
            f"fractions, got a weight of {own[np.argmax(off)]:g} at one score"
        )

    def _size(self, total: float) -> float:
        if self.share is not None:
            return max(1.0, float(round(self.share * total)))
        return total if self.count is None else float(min(int(self.count), total))

    def chance(self, masses: Masses) -> float | None:
        """Return the mean over all orders of the rows."""
        _, end, row = self._ranks(masses)
        size = self._size(float(end[-1]))
        gains = _Gains(size)
        return (
            masses.prevalence * gains.of(size) / gains.of(min(size, round(masses.totals[0] / row)))
        )

    def top(self, masses: Masses) -> float:
        """Return 1."""
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the number of first rows, or the effective number of the smaller class if that is less."""
        _, end, _ = self._ranks(masses)
        return min(self._size(float(end[-1])), *masses.effective)


_MAX_SUMMED = 1_000_000
"""Ranks whose discounts are summed one by one; weights make more ranks than a list has rows."""


def _discount(rank: FloatArray) -> FloatArray:
    """Return what a positive counts after so many rows, 1 / log₂(rank + 2)."""
    return 1.0 / np.log2(rank + 2.0)


class _Gains:
    """Sums of the discounts of the ranks of a list; an integral beyond `_MAX_SUMMED` ranks."""

    def __init__(self, size: float) -> None:
        self._sums = prefix_sums(_discount(np.arange(min(size, _MAX_SUMMED))))

    def of(self, rank: float) -> float:
        """Return the sum over the first `rank` ranks."""
        return float(self.between(np.zeros(1), np.array([float(rank)]))[0])

    def between(self, first: FloatArray, end: FloatArray) -> FloatArray:
        """Return the sums over the ranks after `first` up to `end`."""
        most = self._sums.size - 1
        last = np.minimum(end, most).astype(np.intp)
        sums: FloatArray = self._sums[last] - self._sums[np.minimum(first, most).astype(np.intp)]
        far = end > most
        if far.any():
            sums[far] += _integrated(np.maximum(first[far], most), end[far])
        return sums


def _integrated(first: FloatArray, end: FloatArray) -> FloatArray:
    """Return the sums of the discounts over far ranks; over few of them by the middle one, so that no digits cancel."""
    from scipy.special import expi

    width = end - first
    middle = first + 1.5 + width / 2.0
    log = np.log(middle)
    few = width / log * (1.0 + (width / middle) ** 2 * (1.0 + 2.0 / log) / (24.0 * log))
    many = expi(np.log(end + 1.5)) - expi(np.log(first + 1.5))
    return np.where(width < 1e-3 * middle, few, many) * math.log(2.0)


@dataclass(frozen=True)
class WindowArea(Figure):
    """The area of the ROC curve over a window of false positive rates, divided by the width; [0, 1] is the AUC.

    InvalidParameter: the window is empty or leaves [0, 1].

    Examples
    --------
    >>> WindowArea(0.0, 0.05).name, measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [WindowArea()])[0].interval.value
    ('pauc:0,0.05', 0.875)
    """

    fpr_min: float = 0.0
    fpr_max: float = 1.0

    few_rows = False

    def __post_init__(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    @property
    def name(self) -> str:
        """Such as pauc:0,0.05, or auc."""
        if (self.fpr_min, self.fpr_max) == (0.0, 1.0):
            return "auc"
        return f"pauc:{self.fpr_min:.12g},{self.fpr_max:.12g}"

    def of(self, masses: Masses) -> Derivatives:
        """Return the figure and its derivatives."""
        value = _roc(masses).partial_area(self.fpr_min, self.fpr_max)
        width = self.fpr_max - self.fpr_min
        placement, height = influences_of_masses(
            masses.above_negative, masses.above_positive, self.fpr_min, self.fpr_max
        )
        return Derivatives(value, placement / width, height / width, 0.0)

    def chance(self, masses: Masses) -> float | None:
        """Return the height of the diagonal in the middle of the window."""
        return (self.fpr_min + self.fpr_max) / 2.0

    def top(self, masses: Masses) -> float:
        """Return 1."""
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the effective positives, or the effective negatives within the window if these are fewer."""
        positive, negative = masses.effective
        return min(positive, negative * (self.fpr_max - self.fpr_min))


@dataclass(frozen=True)
class EmpiricalArea(Figure):
    """The strict partial AUC: the fraction of pairs strictly in order, of all positives with the negatives of a window.

    These are the negatives ranked ⌊n·fpr_min⌋ + 1 to ⌈n·fpr_max⌉ (Narasimhan & Agarwal, eq. 2); see `partial_auc` with
    definition="empirical". It is the area of the curve on which the negatives of a tie come first, so that its
    derivatives are those of areas.

    InvalidParameter: the window is empty or leaves [0, 1].

    Examples
    --------
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [EmpiricalArea(0.0, 0.5)])[0].interval.value
    0.5
    """

    fpr_min: float = 0.0
    fpr_max: float = 1.0

    def __post_init__(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    @property
    def name(self) -> str:
        """Such as empirical:0,0.05."""
        return f"empirical:{self.fpr_min:.12g},{self.fpr_max:.12g}"

    def of(self, masses: Masses) -> Derivatives:
        """Return the figure and its derivatives."""
        positive, negative = masses.totals
        first, last, _ = self._ranks(masses)
        tpr = masses.above_positive / positive
        value = strict_area(masses.above_negative, tpr, first, last)
        # the negatives of each score, then its positives
        strict = np.repeat(masses.above_negative, 2)[1:]
        above = np.repeat(masses.above_positive, 2)[:-1]
        low, high = first / negative, min(1.0, last / negative)
        placement, height = influences_of_masses(strict, above, low, high)
        width = high - low
        return Derivatives(value, placement[1::2] / width, height[::2] / width, 0.0)

    def _ranks(self, masses: Masses) -> tuple[float, float, bool]:
        """Return the weights of the negatives above the window and down to its end, and whether these are ranks."""
        above, total = masses.above_negative, masses.totals[1]
        whole = total < MAX_WHOLE and bool((above == np.rint(above)).all())
        return (*window_weights(total, self.fpr_min, self.fpr_max, whole=whole), whole)

    def chance(self, masses: Masses) -> float | None:
        """Return the mean over all orders of the rows, without ties; with ties it is lower."""
        first, last, whole = self._ranks(masses)
        step = 1.0 if whole else 0.0
        return (first + last + step) / (2.0 * (masses.totals[1] + step))

    def top(self, masses: Masses) -> float:
        """Return 1."""
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the effective positives, or the effective negatives within the window if these are fewer."""
        first, last, _ = self._ranks(masses)
        positive, negative = masses.effective
        return min(positive, negative * (last - first) / masses.totals[1])


@dataclass(frozen=True)
class TwoWayArea(Figure):
    """The area of the ROC curve over FPR ≤ `fpr_max` and above TPR = `tpr_min`, divided by that rectangle's area.

    It is the fraction of pairs in order, of the negatives that score highest with the positives that score lowest.

    InvalidParameter: `fpr_max` is not in (0, 1], or `tpr_min` not in [0, 1).

    Examples
    --------
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [TwoWayArea(0.5, 0.5)])[0].interval.value
    0.5
    """

    fpr_max: float
    tpr_min: float

    def __post_init__(self) -> None:
        check_window(0.0, self.fpr_max)
        if not check_rate("tpr_min", self.tpr_min) <= 1.0 - 1e-9:
            raise InvalidParameter(f"tpr_min must be less than 1, got {self.tpr_min}")

    @property
    def name(self) -> str:
        """Such as two_way:0.1,0.8."""
        return f"two_way:{self.fpr_max:.12g},{self.tpr_min:.12g}"

    def of(self, masses: Masses) -> Derivatives:
        """Return the figure and its derivatives."""
        curve, least = _roc(masses), float(self.tpr_min)
        start = _passes(curve, least)
        n_scores, size = masses.positive.size, self.fpr_max * (1.0 - least)
        if start >= self.fpr_max:
            return Derivatives(0.0, np.zeros(n_scores), np.zeros(n_scores), 0.0)
        width = self.fpr_max - start
        if width < 1e-9:
            return Derivatives(0.0, np.zeros(n_scores), np.zeros(n_scores), 0.0)
        area = (curve.partial_area(start, self.fpr_max) - least) * width
        placement, height = influences_of_masses(
            masses.above_negative, masses.above_positive, start, self.fpr_max
        )
        value = min(1.0, max(0.0, area / size))
        return Derivatives(value, placement / size, np.maximum(height, least) / size, 0.0)

    def chance(self, masses: Masses) -> float | None:
        """Return the area of the diagonal; None if it does not reach the rectangle."""
        reach = float(self.fpr_max) - float(self.tpr_min)
        return reach**2 / 2.0 / (self.fpr_max * (1.0 - self.tpr_min)) if reach > 0.0 else None

    def top(self, masses: Masses) -> float:
        """Return 1."""
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the effective rows of either class within the rectangle, the fewer of the two."""
        positive, negative = masses.effective
        return min(positive * (1.0 - self.tpr_min), negative * self.fpr_max)


_FAMILIES = (
    "auc, pauc:FPR_MIN,FPR_MAX, empirical:FPR_MIN,FPR_MAX, two_way:FPR_MAX,TPR_MIN, average_precision, precision@K, "
    "precision@P%, lift@K, lift@P%, precision_at_recall:RECALL, ndcg, ndcg@K or ndcg@P%"
)


def figure_named(name: str) -> Figure:
    """Return the figure of a name: auc, pauc:0,0.05, empirical:0,0.05, two_way:0.1,0.8, average_precision,
    precision@100, precision@1%, lift@15%, precision_at_recall:0.8, ndcg, ndcg@10 or ndcg@1%.

    InvalidParameter: no figure has this name, or a number in it is out of range.

    Examples
    --------
    >>> figure_named("two_way:0.1,0.8")
    TwoWayArea(fpr_max=0.1, tpr_min=0.8)
    """
    shown = name if len(name) <= 60 else f"{name[:59]}…"
    family, mark, numbers, is_share = split_figure_name(name)
    try:
        match (family, mark, len(numbers), is_share):
            case "auc", None, 0, False:
                return WindowArea()
            case "pauc", ":", 2, False:
                return WindowArea(*numbers)
            case "empirical", ":", 2, False:
                return EmpiricalArea(*numbers)
            case "two_way", ":", 2, False:
                return TwoWayArea(*numbers)
            case "average_precision", None, 0, False:
                return AveragePrecision()
            case "precision", "@", 1, False:
                return PrecisionAt(count=whole_number(numbers[0]))
            case "precision", "@", 1, True:
                return PrecisionAt(share=numbers[0] / 100.0)
            case "lift", "@", 1, False:
                return Lift(count=whole_number(numbers[0]))
            case "lift", "@", 1, True:
                return Lift(share=numbers[0] / 100.0)
            case "precision_at_recall", ":", 1, False:
                return PrecisionAtRecall(numbers[0])
            case "ndcg", None, 0, False:
                return Ndcg()
            case "ndcg", "@", 1, False:
                return Ndcg(whole_number(numbers[0]))
            case "ndcg", "@", 1, True:
                return Ndcg(share=numbers[0] / 100.0)
    except InvalidParameter as error:
        raise InvalidParameter(f"figure {shown!r}: {error}") from error
    raise InvalidParameter(f"a figure must be {_FAMILIES}, got {shown!r}")


def split_figure_name(name: str) -> tuple[str, str | None, list[float], bool]:
    """Return the family of a figure's name, its mark, the numbers after it, and whether they are a percentage.

    The family is empty if the name has another form.
    """
    found = _NAME.fullmatch(name)
    family, mark, rest = found.groups() if found else ("", None, None)
    numbers = [float(number) for number in (rest or "").rstrip("%").split(",") if number]
    return family, mark, numbers, (rest or "").endswith("%")


def whole_number(number: float) -> int:
    """Return a number of rows as an int; InvalidParameter if it is not whole."""
    if number != int(number):
        raise InvalidParameter(f"a number of rows must be whole, got {number:g}")
    return int(number)


def check_size(count: float | None, share: float | None) -> None:
    """Raise InvalidParameter unless exactly one of the two sizes of a list is given and in range."""
    if (count is None) == (share is None):
        got = "none" if count is None else "both"
        raise InvalidParameter(f"exactly one of count and share must be given, got {got}")
    value = share if count is None else count
    number = isinstance(value, Real) and not isinstance(value, bool)
    name, least, most = ("share", MIN_WIDTH, 1.0) if count is None else ("count", 0.0, math.inf)
    if not number or not least <= float(value or 0.0) <= most or value in (0.0, math.inf):
        rule = f"lie in [{least:g}, 1]" if count is None else "be a number above 0"
        raise InvalidParameter(f"{name} must {rule}, got {value!r}")


def size_of(count: float | None, share: float | None, total: float) -> float:
    """Return the weight of the first rows; InvalidParameter if there are not so many."""
    if share is not None:
        return float(share) * total
    assert count is not None
    if count > total * (1.0 + EPSILON):
        raise InvalidParameter(f"count must be at most the {total:.12g} rows, got {count!r}")
    return min(float(count), total)


def shown_size(count: float | None, share: float | None) -> str:
    """Return the size of a list as text: 100, or 1%."""
    return f"{count:.12g}" if share is None else f"{100.0 * share:.12g}%"


def _from_here_on(values: FloatArray) -> FloatArray:
    """Return the sums from each index to the end."""
    return np.cumsum(values[::-1])[::-1]


def trials_above(masses: Masses, size: float, caught: float) -> float:
    """Return the effective number of the first rows, `caught` of them positive; of the positives if all fit in."""
    positive, negative = masses.totals
    # Σw² is taken as the class's own, in proportion
    squares = caught * (positive / masses.effective[0])
    squares += (size - caught) * (negative / masses.effective[1])
    rows = size**2 / squares
    return min(rows, masses.effective[0]) if size > positive else rows


def fraction_inside(masses: Masses, size: float) -> FloatArray:
    """Return the fraction of each tie that is among the first rows, shape (n_scores,)."""
    mass = masses.positive + masses.negative
    return np.clip((size - masses.above[:-1]) / np.where(mass > 0.0, mass, 1.0), 0.0, 1.0)


def positives_above(masses: Masses, size: float) -> float:
    """Return the weight of the positives among the first rows of a list, of a tie its share. O(log n_scores)."""
    index = min(int(np.searchsorted(masses.above, size, side="left")), masses.positive.size)
    if index == 0:
        return 0.0
    start, end = float(masses.above[index - 1]), float(masses.above[index])
    part = 1.0 if end <= start else min(1.0, (size - start) / (end - start))
    return float(masses.above_positive[index - 1] + part * masses.positive[index - 1])


def positives_near(masses: Masses, size: float) -> float:
    """Return the fraction of positives among the rows near a cut, η of the module. O(log n_scores)."""
    total = float(masses.above[-1])
    at_cut = positives_above(masses, size)
    positive, negative = masses.totals
    variance = 0.0
    for own, mass, effective in (
        (at_cut, positive, masses.effective[0]),
        (size - at_cut, negative, masses.effective[1]),
    ):
        rate = min(1.0, max(0.0, own / mass))
        variance += mass**2 * rate * (1.0 - rate) / effective
    reach = max(NEAR_THE_CUT * math.sqrt(variance), total / sum(masses.effective))
    low, high = max(0.0, size - reach), min(total, size + reach)
    inside = positives_above(masses, high) - positives_above(masses, low)
    return min(1.0, max(0.0, inside / (high - low)))


def _roc(masses: Masses) -> RocCurve:
    positive, negative = masses.above_positive, masses.above_negative
    fpr, tpr = negative / negative[-1], positive / positive[-1]
    kept = np.concatenate(([True], (fpr[1:] > fpr[:-1]) | (tpr[1:] > tpr[:-1])))
    fpr, tpr = fpr[kept], tpr[kept]
    return RocCurve(fpr, tpr, np.concatenate(([np.inf], -np.arange(1.0, fpr.size))))


def _passes(curve: RocCurve, tpr: float) -> float:
    """Return the lowest FPR at which the curve is as high."""
    right = int(np.searchsorted(curve.tpr, tpr, side="left"))
    if right == 0 or curve.tpr[right] == curve.tpr[right - 1]:
        return float(curve.fpr[right])
    part = (tpr - curve.tpr[right - 1]) / (curve.tpr[right] - curve.tpr[right - 1])
    return float(curve.fpr[right - 1] + part * (curve.fpr[right] - curve.fpr[right - 1]))


@dataclass(frozen=True)
class FigureEstimate:
    """A figure of one ranking."""

    figure: Figure
    interval: Interval
    chance: float | None
    """The figure of scores that say nothing; None if that is 0."""
    p_value: float | None
    """One-sided, of H₀: the figure is at most that of chance. None without `chance`, or if a class has fewer than
    `MIN_CLASS_ROWS` effective rows."""
    adjusted_p_value: float | None
    """Adjusted by Holm over all figures that were asked for together. None without `p_value`."""


def measure(
    y: ArrayLike,
    scores: ArrayLike,
    figures: Sequence[Figure],
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    fixed_prevalence: bool = False,
) -> tuple[FigureEstimate, ...]:
    """Return figures of a ranking, each with an interval and a test against chance.

    InvalidData: as `auc`. InvalidParameter: there is no figure, or a parameter is out of range.
    O(n log n + n · n_figures).

    Parameters
    ----------
    y, scores
        As `auc`.
    figures : sequence of Figure
        Such as `AveragePrecision()`, `PrecisionAt(count=100)`, `Ndcg(10)`, `TwoWayArea(0.1, 0.8)`.
    level : float in (0, 1)
        Probability that an interval covers the figure of the population.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative. NDCG needs whole numbers.
    group : array_like, shape (n_samples,), optional
        Rows with equal values were drawn together.
    fixed_prevalence : bool
        Whether the population has the prevalence of these rows; by default the intervals include its variance, as for
        rows that were drawn one by one.

    Examples
    --------
    >>> y, scores = [1, 1, 0, 1, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    >>> found = measure(y, scores, [AveragePrecision(), PrecisionAt(count=2)])
    >>> [round(each.interval.value, 4) for each in found]
    [0.8304, 1.0]
    """
    level, figures = check_level(level), check_figures(figures)
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    if rows.unit is None and rows.weight is None:
        groups = tie_groups(rows)
        masses = Masses(groups.positive, groups.negative, effective_units(rows), fixed_prevalence)
        return measure_masses(masses, figures, level)
    areas, every = estimate_figures(rows, figures, fixed_prevalence=True)
    shown = areas if fixed_prevalence else estimate_figures(rows, figures)[0]
    found = [
        _Found(float(areas.values[0, j]), areas.variance(0, j), shown.variance(0, j))
        for j in range(len(figures))
    ]
    masses = replace(every[0], fixed_prevalence=fixed_prevalence)
    return _measured(masses, figures, found, level, areas.degrees)


def measure_on_curve(
    curve: RocCurve,
    totals: ClassTotals,
    figures: Sequence[Figure],
    *,
    level: float = 0.95,
    fixed_prevalence: bool = False,
) -> tuple[FigureEstimate, ...]:
    """Return `measure` from a stored full curve and the totals of its data. O(n_points · n_figures).

    With weights or groups the intervals use effective numbers, as if weights were spread evenly within each class, and
    each group had rows of one class.

    Examples
    --------
    >>> from core.metrics import roc_curve
    >>> curve = roc_curve([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])
    >>> measure_on_curve(curve, ClassTotals.of_counts(2, 2), [figure_named("precision@50%")])[0].interval.value
    0.75
    """
    masses = replace(masses_on_curve(curve, totals), fixed_prevalence=fixed_prevalence)
    return measure_masses(masses, check_figures(figures), check_level(level))


class _Found(NamedTuple):
    """A figure with its variance at a fixed prevalence, and the variance of its interval; None if none shows."""

    value: float
    fixed: float | None
    variance: float | None


def measure_masses(
    masses: Masses, figures: Sequence[Figure], level: float
) -> tuple[FigureEstimate, ...]:
    """Return figures of checked masses."""
    found = []
    for figure in figures:
        value, up, down, slope = figure.of(masses)
        with np.errstate(over="ignore", invalid="ignore"):  # weights of 1e-100 beside 1e100
            variances = [
                mean_variance(values, mass, mass * (total / effective))
                for values, mass, total, effective in zip(
                    (up, down),
                    (masses.positive, masses.negative),
                    masses.totals,
                    masses.effective,
                    strict=True,
                )
            ]
        none = variances[0] is None or variances[1] is None
        fixed = None if none else sum(each for each in variances if each is not None)
        found.append(_Found(value, fixed, with_prevalence_variance(fixed, slope, masses)))
    return _measured(masses, figures, found, level, math.inf)


def with_prevalence_variance(variance: float | None, slope: float, masses: Masses) -> float | None:
    """Return the variance of a figure with that of the log odds of the prevalence, unless it is fixed."""
    if variance is None or masses.fixed_prevalence:
        return variance
    return variance + slope**2 * sum(1.0 / (each - 1.0) for each in masses.effective)


def _measured(
    masses: Masses,
    figures: Sequence[Figure],
    found: Sequence[_Found],
    level: float,
    degrees: float,
) -> tuple[FigureEstimate, ...]:
    tested = has_enough(min(masses.effective), MIN_CLASS_ROWS)
    at_fixed = replace(masses, fixed_prevalence=True)
    intervals, chances = [], []
    p_values: list[float | None] = []
    for figure, (value, fixed, variance) in zip(figures, found, strict=True):
        interval = figure.own_interval(masses, level)
        if interval is None:
            interval = scaled_interval(value, variance, scale_of(figure, [masses]), level, degrees)
        chance = figure.chance(masses)
        top, trials = scale_of(figure, [at_fixed])
        # a list of all rows has the figure of chance by its definition
        chance = None if chance is None or not 0.0 < chance < top * (1.0 - EPSILON) else chance
        intervals.append(interval)
        chances.append(chance)
        p_values.append(
            None
            if chance is None or not tested
            else _above_chance(value / top, chance / top, fixed, top, trials, degrees)
        )
    return tuple(
        FigureEstimate(*each)
        for each in zip(
            figures, intervals, chances, p_values, adjust_present(p_values), strict=True
        )
    )


def scaled_interval(
    value: float,
    variance: float | None,
    scale: Scale,
    level: float,
    degrees: float = math.inf,
) -> Interval:
    """Return the interval of a figure, on the logit scale of its fraction of the greatest value."""
    top, trials = scale
    scaled = None
    if variance is not None and math.isfinite(variance):
        scaled = (math.sqrt(variance) / top) ** 2  # the square of a top of 1e-180 would be 0
    _, low, high = proportion_interval(min(1.0, value / top), scaled, trials, level, degrees)
    return Interval(value, min(value, low * top), max(value, min(top, high * top)))


def value_of_figure(
    figure: Figure, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return the figure of a ranking. InvalidData, InvalidParameter: as `measure`. O(n log n).

    Examples
    --------
    >>> value_of_figure(PrecisionAt(count=2), [1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1])
    0.75
    """
    rows = check_rows(y, {"scores": scores}, sample_weight)
    groups = tie_groups(rows)
    return figure.of(Masses(groups.positive, groups.negative, effective_units(rows))).value


def _above_chance(
    value: float,
    chance: float,
    variance: float | None,
    top: float,
    trials: float,
    degrees: float,
) -> float:
    """Return the one-sided p-value of H₀: the figure is at most that of chance; both are fractions of `top`."""
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
class FigureComparison:
    """The scorers by one figure."""

    figure: Figure
    values: tuple[Interval, ...]
    """In the order of the scorers."""
    differences: tuple[Difference, ...]
    """Every pair of scorers, in their order."""
    joint_p_value: float
    """Of H₀: all scorers have the same figure. In [0, 1]."""


def compare_figures(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    figures: Sequence[Figure],
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
    fixed_prevalence: bool = False,
) -> tuple[FigureComparison, ...]:
    """Compare scorers on the same rows by figures: every pair's difference with interval and p-value.

    InvalidData, InvalidParameter: as `compare` and `measure`. P-values are adjusted over all pairs and figures.
    O(k n log n + k² n m) time and O(k n m) memory for k scorers and m figures.

    Parameters
    ----------
    y, scores, level, sample_weight, group, names, adjust
        As `compare`.
    figures, fixed_prevalence
        As `measure`.

    Examples
    --------
    >>> y = [1, 1, 0, 1, 0, 0, 1, 0]
    >>> first, second = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2], [0.8, 0.9, 0.3, 0.7, 0.6, 0.2, 0.5, 0.1]
    >>> found, = compare_figures(y, [first, second], [AveragePrecision()])
    >>> round(found.differences[0].value, 4)
    -0.1196
    """
    level, figures = check_level(level), check_figures(figures)
    columns, named = check_scorers(scores, names, adjust)
    rows = check_rows(y, columns, sample_weight, group)
    plain = [figure.plain() for figure in figures]
    every, masses = estimate_figures(rows, plain, fixed_prevalence=fixed_prevalence)
    scales = [[scale_of(figure, [own]) for figure in plain] for own in masses]
    units = [figure.unit(masses[0]) for figure in figures]
    compared = []
    for found in _compared(every, scales, units, figures, named, level, adjust):
        own = (found.figure.own_interval(of_scorer, level) for of_scorer in masses)
        values = tuple(own or shown for own, shown in zip(own, found.values, strict=True))
        compared.append(replace(found, values=values))
    return tuple(compared)


def cross_validated_compare_figures(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    fold: ArrayLike,
    figures: Sequence[Figure],
    *,
    repeat: ArrayLike | None = None,
    row: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
    fixed_prevalence: bool = False,
) -> tuple[FigureComparison, ...]:
    """Compare two or more scorers that were cross-validated on the same folds, by the means of the folds' figures.

    InvalidData, InvalidParameter: as `cross_validated_compare` and `compare_figures`.

    Parameters
    ----------
    y, scores, fold, repeat, row, level, sample_weight, group, names, adjust
        As `cross_validated_compare`.
    figures : sequence of Figure
        As `measure`. A share is one of each fold's rows; a count is refused, since folds have fewer rows.
    fixed_prevalence
        As `measure`.

    Examples
    --------
    >>> y, fold = [1, 1, 0, 1, 0, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0, 1]
    >>> first, second = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2], [0.8, 0.9, 0.3, 0.7, 0.6, 0.2, 0.5, 0.1]
    >>> found, = cross_validated_compare_figures(y, [first, second], fold, [AveragePrecision()])
    >>> [round(each.value, 4) for each in found.values]
    [0.875, 0.9167]
    """
    level, figures = check_level(level), check_figures(figures)
    columns, named = check_scorers(scores, names, adjust)
    for figure in figures:
        check_scale_free(figure)
    plain = [figure.plain() for figure in figures]
    of_folds: list[list[Masses]] = []

    def estimate(rows: Rows) -> tuple[FloatArray, FloatArray]:
        values, influence, masses = figure_influences(
            rows, plain, fixed_prevalence=fixed_prevalence
        )
        of_folds.append(masses)
        return values, influence

    every = average_over_folds(y, columns, fold, estimate, repeat, row, sample_weight, group)
    repeats = 1 if repeat is None else len(np.unique(np.asarray(repeat)))
    scales = [
        [scale_of(figure, [of_fold[k] for of_fold in of_folds], repeats) for figure in plain]
        for k in range(len(named))
    ]
    units = [
        float(np.mean([figure.unit(of_fold[0]) for of_fold in of_folds])) for figure in figures
    ]
    return _compared(every, scales, units, figures, named, level, adjust)


class Scale(NamedTuple):
    """What an interval of a figure needs beside its variance."""

    top: float
    trials: float


def scale_of(figure: Figure, masses: Sequence[Masses], repeats: int = 1) -> Scale:
    """Return the scale of the mean of a figure over parts with these masses; each row is in `repeats` parts."""
    top = float(np.mean([figure.top(own) for own in masses]))
    return Scale(top, sum(figure.trials(own) for own in masses) / repeats)


def check_scale_free(figure: Figure) -> None:
    """Raise InvalidParameter for a figure of a number of rows, which means something else in each part of the rows."""
    if getattr(figure, "count", None) is not None:
        raise InvalidParameter(
            f"{figure.name} needs a share instead of a count: parts have fewer rows than the whole"
        )


def _compared(
    every: Estimates,
    scales: Sequence[Sequence[Scale]],
    units: Sequence[float],
    figures: Sequence[Figure],
    named: tuple[str, ...],
    level: float,
    adjust: Adjustment,
) -> tuple[FigureComparison, ...]:
    """Return the comparison of plain figures, in the units of the figures; `scales` are by scorer and figure."""
    metrics = [
        ComparedMetric(every, j, [own[j].trials for own in scales], figure.few_rows, units[j])
        for j, figure in enumerate(figures)
    ]
    found = compare_scorers(metrics, named, level, adjust)
    return tuple(
        FigureComparison(
            figure,
            tuple(
                times(
                    scaled_interval(
                        float(every.values[k, j]),
                        every.variance(k, j),
                        scales[k][j],
                        level,
                        every.degrees,
                    ),
                    units[j],
                )
                for k in range(len(named))
            ),
            found[j].pairs,
            found[j].joint_p_value,
        )
        for j, figure in enumerate(figures)
    )


def check_figures(figures: Sequence[Figure]) -> Sequence[Figure]:
    """Return the figures; InvalidParameter if there is none."""
    if len(figures) == 0:
        raise InvalidParameter("figures must name at least one figure, got none")
    return figures


def figure_influences(
    rows: Rows, figures: Sequence[Figure], *, fixed_prevalence: bool = False
) -> tuple[FloatArray, FloatArray, list[Masses]]:
    """Return the figures, shape (n_scorers, n_figures), φ of each row, shape (n_scorers, n_figures, n_rows), and the
    masses of every scorer.
    """
    effective = effective_units(rows)
    values = np.empty((len(rows.scores), len(figures)))
    influence = np.empty((*values.shape, rows.positive.size))
    every = []
    for scorer in range(len(rows.scores)):
        groups, order = group_rows(rows, scorer)
        masses = Masses(groups.positive, groups.negative, effective, fixed_prevalence)
        positive = rows.positive[order]
        of_group = np.empty(order.size, dtype=np.intp)
        of_group[positive], of_group[~positive] = groups.positives.group, groups.negatives.group
        for j, figure in enumerate(figures):
            values[scorer, j], up, down, slope = figure.of(masses)
            slope = 0.0 if fixed_prevalence else slope
            phi = np.empty(order.size)
            for of_class, each, by_prevalence, mass, total in zip(
                (positive, ~positive),
                (up, down),
                (slope, -slope),
                (masses.positive, masses.negative),
                masses.totals,
                strict=True,
            ):
                centred = (each - inner(mass, each) / total + by_prevalence) / total
                phi[of_class] = centred[of_group[of_class]]
            influence[scorer, j, order] = phi if rows.weight is None else phi * rows.weight[order]
        every.append(masses)
    return values, influence, every


def estimate_figures(
    rows: Rows, figures: Sequence[Figure], *, fixed_prevalence: bool = False
) -> tuple[Estimates, list[Masses]]:
    """Return the figures of every scorer with the influence of each unit, and the masses of every scorer."""
    values, influence, every = figure_influences(rows, figures, fixed_prevalence=fixed_prevalence)
    effective, clustered = effective_units(rows), rows.unit is not None
    return estimates_of_units(values, influence, rows, effective, 1.0, clustered=clustered), every
