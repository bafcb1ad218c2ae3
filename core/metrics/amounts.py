"""Rows with amounts: the fraction of the positives' amount that a ranking catches, and the least costly threshold.

**Shares of the value.** Row i has the amount a_i ≥ 0 and the weight w_i. The value curve is the share of the positives'
amount, Σ w a over the positives at or above a score, against what is flagged for it: a share x of all rows, of the
negatives, or of the negatives' amount. Both axes are ratios of sums over rows. With v_i = w_i a_i for positives, else
0, and V and X the sums of v and x, the area A = Σ v_i x_k K(i, k) / (V X), with K = 1 if i scores above k and ½ if they
tie, changes to first order by

    φ_i = v_i (P_i − A) / V + x_i (H_i − A) / X

if row i is left out: P_i is the share of x below row i, and H_i the share of v above it, half of the tie counted. The
height R at u changes by φ_i = v_i (I_i − R) / V − η x_i (I_i − u) / X: I_i is 1 above the threshold, 0 below and a
fraction in a tie at the threshold, and η is the slope of the curve near the threshold. The interval is that of a
proportion on the logit scale, with Student's t for e − 1 degrees of freedom, where e = (Σv)² / Σv²: a few great amounts
say little, however many rows there are. The variance is multiplied by e / (e − 1). If only negatives are on the axis,
they have their own e, (Σx)² / Σx²: each class's φ is multiplied by √(e / (e − 1)), and the smaller e sets the degrees
of freedom. If an e, also that of all rows, is below 2, one unit has most of the mass: the interval is Wilson's for e
trials. Sums over units replace v and x in e.

**Costs.** A flagged row costs its review; if it is negative, a false positive, too; if it is positive, its benefit is
taken off. A positive that is not flagged costs a false negative. Each is a fixed number plus a rate times the amount.
What is reported is the mean cost of a row, Σ w L / Σ w; rows are taken to be drawn one by one, so that its interval
includes that the fraction of positives varies. Losses are skewed: most rows cost nothing, and a few a lot. So the
interval is Hall's: with r_i = w_i (L_i − L̄), s² = Σ r² and k = Σ r³ / s³, the statistic T = (L̄ − μ) W / s, cleared of
its skewness by

    g(T) = T + k T² / 3 + k² T³ / 27 + k / 6,

is compared with Student's t. g rises everywhere and has an inverse. Plain T has intervals that lie too low. If no price
has a rate, the interval ends at the least and the greatest cost of a row. With fewer than two effective units, where
one has most of the weight, the interval is from the least to the greatest cost that a row here can have.

**The threshold of least cost.** Within a tie the cost is linear in the part that is flagged, so no threshold within a
tie costs less than both of its ends. The least of many costs on the rows that chose the threshold is too low. So the
rows are split at random into ten parts, whole units at a time; each row is evaluated at the threshold of least cost on
the other nine parts; and the interval is that of the mean of these held-out losses. It estimates what a threshold that
is chosen on nine tenths of the rows costs on other rows, which is a little more than what the threshold of all rows
costs there.

**Two ways to decide on the same rows**, one or both by thresholds that were chosen so: the variance of the mean
difference is multiplied by 1 + K / (K − 1) for K parts, Nadeau and Bengio's correction, since a row also moves the
thresholds at which the others are evaluated. Without it the paired test errs in 6 to 14 % of samples in place of 5 %,
with it in 1 to 3 %. Student's t has one degree of freedom less than the effective number of rows by their difference.

**Savings.** Let g_i be what flagging row i saves. Flagging a share s of the rows at random saves s ḡ on average, and a
threshold that flags the share s saves the mean of I g, where I is 1 for the rows that it flags. So its saving compared
with random flagging is the covariance of I and g, with the influence (I_i − s) (g_i − ḡ). The saving compared with
another rule is the mean of (I − J) g, where J is 1 for the rows that the rule flags. If the rule is another score, its
threshold is the one at which it flags the same share s; of a tie there it flags the fraction that is needed. Both
thresholds are taken as given, so the interval does not include how the rule's threshold varies with the sample.

References
----------
Elkan, "The foundations of cost-sensitive learning", IJCAI (2001).
Hall, "On the removal of skewness by transformation", Journal of the Royal Statistical Society B 54 (1992).
Nadeau & Bengio, "Inference for the generalization error", Machine Learning 52 (2003).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_items, check_seed, check_value
from core.base.target import MAX_WEIGHT, MIN_WEIGHT, as_array
from core.errors import InvalidData, InvalidParameter
from core.metrics.estimates import (
    EPSILON,
    Adjustment,
    Difference,
    Interval,
    check_scorers,
    name_differences,
    one_sided_table,
    proportion_interval,
    quantile,
    two_sided,
    wilson_interval,
)
from core.metrics.functionals.top import NEAR_THE_CUTOFF
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    check_probabilities,
    check_rows,
    effective_number,
    finite_vector,
    inner,
    prefix_sums,
    sum_by_unit,
)
from core.metrics.operating import COST_ROUNDING, check_threshold
from core.metrics.window import check_level, check_prevalence, check_rate

Over = Literal["rows", "negatives", "amount_of_negatives"]
OVERS: tuple[Over, ...] = ("rows", "negatives", "amount_of_negatives")
"""What is flagged for the value: a share of all rows, of the negatives, or of the negatives' amount."""

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares at which the value that is caught is reported."""

MAX_AMOUNT = 1e100
"""Of one row, in any unit. Its product with a rate, a weight and the number of rows is still a double."""

MIN_EFFECTIVE = 2.0
"""Effective units below which a sample shows no variance: one unit has most of the weight."""

MAX_PARTS = 10
"""Parts of the rows: each is evaluated at the threshold that the others choose."""


class Price(NamedTuple):
    """Cost of one row: `fixed` + `rate` · its amount.

    Examples
    --------
    >>> from core.metrics import AmountCosts, Price
    >>> AmountCosts(false_negative=Price(fixed=5.0, rate=0.8), review=2.0).need_amounts
    True
    """

    fixed: float = 0.0
    """Cost of every row, in the unit of the amounts."""
    rate: float = 0.0
    """Cost per unit of the amount."""


@dataclass(frozen=True)
class AmountCosts:
    """Costs of decisions, which may depend on the amount of a row.

    Raises
    ------
    InvalidParameter
        A number is neither 0 nor from 1e-100 to 1e100, or no decision makes a difference.

    Examples
    --------
    >>> from core.metrics import AmountCosts, Price
    >>> AmountCosts(false_positive=2, false_negative=Price(rate=1), review=5).need_amounts
    True
    """

    false_positive: Price | float = 0.0
    """Cost of flagging a negative, in addition to its review. A number is a fixed cost."""
    false_negative: Price | float = 0.0
    """Cost of a positive that is not flagged."""
    benefit: Price | float = 0.0
    """Benefit of a flagged positive."""
    review: float = 0.0
    """Cost of each flagged row."""

    def __post_init__(self) -> None:
        for name in ("false_positive", "false_negative", "benefit"):
            fixed, rate = _price(getattr(self, name))
            checked = Price(_check_cost(name, fixed), _check_cost(f"{name}.rate", rate))
            object.__setattr__(self, name, checked)
        object.__setattr__(self, "review", _check_cost("review", self.review))
        if not any((*_price(self.false_positive), self.review)):
            raise InvalidParameter(
                "false_positive or review must be above 0: otherwise nothing counts against flagging every "
                "row"
            )
        if not any((*_price(self.false_negative), *_price(self.benefit))):
            raise InvalidParameter(
                "false_negative or benefit must be above 0: otherwise nothing counts in favour of flagging "
                "any row"
            )

    @property
    def need_amounts(self) -> bool:
        """Whether a cost depends on the rows' amounts."""
        prices = (self.false_positive, self.false_negative, self.benefit)
        return any(_price(each).rate for each in prices)

    def of(self, amounts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the costs of a false negative and of a false positive, and the benefit, at each amount.

        Parameters
        ----------
        amounts : ndarray of shape (n_samples,), float64
            Amounts of the rows.

        Returns
        -------
        tuple of three ndarray of shape (n_samples,), float64
        """
        prices = (_price(self.false_negative), _price(self.false_positive), _price(self.benefit))
        missed, wrong, gain = (price.fixed + price.rate * amounts for price in prices)
        return missed, wrong, gain


def _price(price: Price | float) -> Price:
    return price if isinstance(price, Price) else Price(price)


def _check_cost(name: str, value: float) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not (value == 0 or MIN_WEIGHT <= value <= MAX_WEIGHT):
        raise InvalidParameter(
            f"{name} must be 0 or a number from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}, got {value!r}"
        )
    return float(value)


class ValueCurve(NamedTuple):
    """The value curve: fraction of the positives' amount caught, against the fraction flagged.

    Attributes
    ----------
    shares, values : ndarray of shape (n_points,), float64
        From (0, 0) to (1, 1), joined by straight lines (a tie is taken in random order).

    Examples
    --------
    >>> from core.metrics import value_caught
    >>> value_caught([0, 1, 0, 1], [1, 2, 3, 4], [10, 20, 30, 60]).curve.values.tolist()
    [0.0, 0.75, 0.75, 1.0, 1.0]
    """

    shares: FloatArray
    values: FloatArray
    thresholds: FloatArray
    """Rows with score ≥ threshold are flagged; the first is +inf. Shape (n_points,)."""


class ValueRecall(NamedTuple):
    """Fraction of the positives' amount that is caught by flagging a given fraction of the rows.

    Examples
    --------
    >>> from core.metrics import value_caught
    >>> found = value_caught([0, 1, 0, 1], [1, 2, 3, 4], [10, 20, 30, 60], at=[0.5])
    >>> found.recalls[0].threshold, round(found.recalls[0].recall.value, 3)
    (3.0, 0.75)
    """

    share: float
    """Share of the rows, of the negatives, or of the negatives' amount that is flagged."""
    threshold: float
    """Lowest score among the flagged rows. Of a tie there, a part is flagged."""
    recall: Interval
    """Share of the positives' amount that is caught."""


@dataclass(frozen=True)
class ValueCaught:
    """How much of the positives' amount a ranking catches.

    Examples
    --------
    >>> from core.metrics import value_caught
    >>> found = value_caught([0, 1, 0, 1], [1, 2, 3, 4], [10, 20, 30, 60])
    >>> found.amount, round(found.area.value, 3)
    (80.0, 0.75)
    """

    over: Over
    """What is flagged to catch the amount."""
    area: Interval
    """Mean height of the value curve; ½ for a random ranking."""
    recalls: tuple[ValueRecall, ...]
    """One per requested share."""
    amount: float
    """Total weighted amount of the positives."""
    effective: float
    """Effective number of positives by amount, (Σv)² / Σv²: the number of equal amounts with the same variance."""
    curve: ValueCurve
    """One point per distinct score."""


@dataclass(frozen=True)
class DecisionCost:
    """Mean cost per row of a way to decide which rows to flag, estimated on rows that did not choose it.

    Attributes
    ----------
    saved_to_none, saved_to_all : Interval
        Mean cost of a row if no row, or every row, is flagged, minus `cost`. Above 0: this way costs less.

    Examples
    --------
    >>> from core.metrics import AmountCosts, cost_report
    >>> y, scores = [0, 0, 1, 0, 1, 1] * 10, [1, 2, 3, 4, 5, 6] * 10
    >>> found = cost_report(y, scores, AmountCosts(false_positive=1.0, false_negative=5.0), threshold=3.0)
    >>> round(found.at.cost.value, 3), round(found.at.flagged, 3)
    (0.167, 0.667)
    """

    cost: Interval
    """Mean cost of a row; below 0 if benefits exceed the costs."""
    flagged: float
    """Fraction of the rows' weight that is flagged."""
    saved_to_none: Interval
    saved_to_all: Interval


class ThresholdCost(NamedTuple):
    """Mean cost per row of flagging the rows at or above a threshold, and what it saves.

    Examples
    --------
    >>> from core.metrics import AmountCosts, costs_at_thresholds
    >>> y, scores = [0, 0, 1, 0, 1, 1] * 10, [1, 2, 3, 4, 5, 6] * 10
    >>> costs = AmountCosts(false_positive=1.0, false_negative=5.0)
    >>> (found,) = costs_at_thresholds(y, scores, costs, thresholds=[3.0]).points
    >>> round(found.cost.value, 3), round(found.saved_to_random.value, 3)
    (0.167, 1.0)
    """

    threshold: float
    """Rows with score ≥ threshold are flagged; +inf flags none."""
    cost: Interval
    """Mean cost of a row."""
    flagged: float
    """Fraction of the rows' weight that is flagged."""
    saved_to_random: Interval
    """Mean cost of a row if as many rows are flagged at random, minus `cost`."""
    saved_to_rule: Interval | None
    """Mean cost of a row under the other rule, minus `cost`. None without a rule."""


@dataclass(frozen=True)
class ThresholdCosts:
    """Mean costs per row at several thresholds, of flagging none and all, and of another rule.

    Attributes
    ----------
    flag_none, flag_all : Interval
        Mean cost of a row if no row, or every row, is flagged.

    Examples
    --------
    >>> from core.metrics import AmountCosts, costs_at_thresholds
    >>> y, scores = [0, 0, 1, 0, 1, 1] * 10, [1, 2, 3, 4, 5, 6] * 10
    >>> costs = AmountCosts(false_positive=1.0, false_negative=5.0)
    >>> found = costs_at_thresholds(y, scores, costs, thresholds=[3.0])
    >>> found.least, round(found.flag_none.value, 3)
    (3.0, 2.5)
    """

    points: tuple[ThresholdCost, ...]
    """One per threshold, in their order."""
    least: float
    """The threshold with the lowest cost on these rows, of all thresholds; +inf flags none."""
    flag_none: Interval
    flag_all: Interval
    rule: Interval | None
    """Mean cost of a row under the other rule. None without decisions of another rule."""
    rule_flagged: float | None
    """Fraction of the rows' weight that the rule flags. None without decisions of another rule."""
    level: float
    """Confidence level of each interval. In (0, 1)."""


@dataclass(frozen=True)
class LeastCost:
    """The threshold with the lowest cost on the rows, and its cost on other rows.

    Attributes
    ----------
    threshold_low, threshold_high : float
        Lowest and highest threshold that the parts chose.

    Examples
    --------
    >>> from core.metrics import AmountCosts, cost_report
    >>> y, scores = [0, 0, 1, 0, 1, 1] * 10, [1, 2, 3, 4, 5, 6] * 10
    >>> found = cost_report(y, scores, AmountCosts(false_positive=1.0, false_negative=5.0)).least
    >>> found.threshold, round(found.in_sample, 3)
    (3.0, 0.167)
    """

    threshold: float
    """Rows with score ≥ threshold are flagged; +inf flags none."""
    flagged: float
    """Fraction of the rows' weight with such scores."""
    in_sample: float
    """Mean cost of a row on the rows that chose the threshold; it is too low."""
    held_out: DecisionCost | None
    """Cost of each row by the threshold that the other parts of the rows choose. None if there is only one unit."""
    parts: int
    """Number of parts."""
    threshold_low: float
    threshold_high: float


@dataclass(frozen=True)
class CostReport:
    """Mean costs per row of the errors of a ranking: at thresholds, and of decisions by probability.

    Attributes
    ----------
    flag_none, flag_all : Interval
        Mean cost of a row if no row, or every row, is flagged.

    Examples
    --------
    >>> from core.metrics import AmountCosts, cost_report
    >>> y, scores = [0, 0, 1, 0, 1, 1] * 10, [1, 2, 3, 4, 5, 6] * 10
    >>> found = cost_report(y, scores, AmountCosts(false_positive=1.0, false_negative=5.0))
    >>> found.rows, round(found.flag_none.value, 3), round(found.flag_all.value, 3)
    (60.0, 2.5, 0.5)
    """

    rows: float
    """Weight of all rows; a cost per row times this is the total."""
    flag_none: Interval
    flag_all: Interval
    least: LeastCost
    """The threshold with the lowest cost."""
    at: DecisionCost | None
    """Cost at the given threshold."""
    by_probability: DecisionCost | None
    """Cost if the probability and the amount of each row decide whether it is flagged."""
    probability_saves: Difference | None
    """Held-out cost of the best threshold minus that by probability. Above 0: probabilities cost less."""
    level: float
    """Confidence level of each interval. In (0, 1)."""


@dataclass(frozen=True)
class CostComparison:
    """Mean costs per row of several rankings of the same rows, each at its own best threshold.

    Examples
    --------
    >>> from core.metrics import AmountCosts, compare_costs
    >>> y = [0, 0, 1, 0, 1, 1] * 10
    >>> scores = [[1, 2, 3, 4, 5, 6] * 10, [2, 1, 4, 3, 6, 5] * 10]
    >>> found = compare_costs(y, scores, AmountCosts(false_positive=1.0, false_negative=5.0))
    >>> [round(each.in_sample, 3) for each in found.reports]
    [0.167, 0.0]
    """

    reports: tuple[LeastCost, ...]
    """One per scorer, in their order."""
    differences: tuple[Difference, ...]
    """Cost per row of the first minus that of the second, for every pair of scorers."""
    level: float
    """Confidence level of each interval. In (0, 1)."""


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """The weights of rows (divided by the greatest) and their independent units (groups), for means with intervals."""

    weight: FloatArray
    unit: NDArray[np.intp] | None
    effective: float
    """Effective number of units."""

    @classmethod
    def of(cls, rows: EvaluatedRows) -> WeightedRows:
        weight = np.ones(rows.positive.size) if rows.weight is None else rows.weight
        weight = weight / weight.max()
        return cls(weight, rows.unit, effective_number(sum_by_unit(weight, rows.unit)))

    def by_unit(self, parts: FloatArray) -> FloatArray:
        return sum_by_unit(parts, self.unit)

    def mean(self, values: FloatArray) -> float:
        scale = float(np.abs(values).max()) or 1.0
        return inner(self.weight, values / scale) / float(self.weight.sum()) * scale

    def moments(self, values: FloatArray) -> tuple[float, float, float]:
        """Return a weighted mean, its standard error (0 if the sample shows no variance) and its skewness."""
        scale = float(np.abs(values).max())
        if scale == 0.0 or self.effective < MIN_EFFECTIVE:
            return self.mean(values), 0.0, 0.0
        scaled, total = values / scale, float(self.weight.sum())
        mean = inner(self.weight, scaled) / total
        parts = self.by_unit(self.weight * (scaled - mean))
        squares = inner(parts, parts)
        error = math.sqrt(squares * self.effective / (self.effective - 1.0)) / total
        if error <= EPSILON:
            return mean * scale, 0.0, 0.0
        return mean * scale, error * scale, inner(parts, parts**2) / squares**1.5

    def interval(
        self,
        values: FloatArray,
        bounds: tuple[float, float],
        level: float,
        possible: tuple[float, float],
    ) -> Interval:
        """Return the weighted mean of a value per row with its confidence interval.

        bounds: the least and the greatest loss that a row can have: for samples that show no variance. They are the
            interval below `MIN_EFFECTIVE`.
        possible: no population has a mean outside.
        """
        mean, error, _ = moments = self.moments(values)
        low, high = bounds
        width = high - low
        if error > EPSILON * width:
            return self._skewed(moments, level, possible)
        if width <= 0.0:
            return Interval(mean, mean, mean)
        if self.effective >= MIN_EFFECTIVE:
            share = min(1.0, max(0.0, (mean - low) / width))
            _, lower, upper = wilson_interval(share, self.effective, level)
            low, high = low + lower * width, low + upper * width
        return Interval(mean, min(mean, low), max(mean, high))

    def _skewed(
        self, moments: tuple[float, float, float], level: float, possible: tuple[float, float]
    ) -> Interval:
        mean, error, skewness = moments
        z = quantile(level, self.effective - 1.0)
        low, high = (mean - error * unskewed(end, skewness) for end in (z, -z))
        return _within(mean, low, high, possible)

    def gain(self, gained: FloatArray, losses: _RowCosts, level: float) -> Interval:
        """Return the mean of what each row saves with its confidence interval."""
        mean, error, skewness = self.moments(gained)
        if abs(mean) <= COST_ROUNDING * losses.widest:  # no gain, but for the rounding of sums
            mean = 0.0
        if error <= COST_ROUNDING * losses.widest:
            return self._without_variance(mean, losses.widest, level)
        return self._skewed((mean, error, skewness), level, losses.possible_difference)

    def paired(
        self, values: FloatArray, losses: _RowCosts, level: float, parts: int | None = None
    ) -> tuple[Interval, float]:
        """Return the mean of differences of costs per row with its interval, and the p-value of H₀: it is 0.

        `parts` if thresholds that so many parts chose decide on the rows.
        """
        greatest = losses.widest
        mean, error, _ = self.moments(values)
        if error == 0.0:
            share = abs(mean) / greatest if greatest else 0.0
            p_value = two_sided(math.sqrt(self.effective * share))
            return self._without_variance(mean, greatest, level), p_value
        if parts is not None:
            error *= math.sqrt(1.0 + parts / (parts - 1.0))
        apart = np.abs(self.by_unit(self.weight * values / np.abs(values).max()))
        degrees = max(1.0, effective_number(apart) - 1.0)
        half_width = quantile(level, degrees) * error
        interval = _within(mean, mean - half_width, mean + half_width, losses.possible_difference)
        return interval, two_sided(mean / error, degrees)

    def _without_variance(self, mean: float, greatest: float, level: float) -> Interval:
        """Return Tango's interval of a mean difference for a sample without variance, scaled by the greatest one."""
        if greatest == 0.0:
            return Interval(mean, mean, mean)
        if self.effective < MIN_EFFECTIVE:
            return Interval(mean, min(mean, -greatest), max(mean, greatest))
        share = min(1.0, max(-1.0, mean / greatest))
        _, low, high = one_sided_table(share, self.effective, level)
        return Interval(mean, min(mean, low * greatest), max(mean, high * greatest))


def _within(mean: float, low: float, high: float, possible: tuple[float, float]) -> Interval:
    return Interval(mean, min(mean, max(possible[0], low)), max(mean, min(possible[1], high)))


def unskewed(z: float, skewness: float) -> float:
    """Return the solution t of g(t) = z, where g is Hall's skewness transformation (see the module's docstring)."""
    if abs(skewness) < 1e-5:
        return z - skewness * (z**2 / 3.0 + 1.0 / 6.0)
    return 3.0 / skewness * (math.cbrt(1.0 + skewness * (z - skewness / 6.0)) - 1.0)


def check_amounts(amount: ArrayLike, length: int) -> FloatArray:
    vector = finite_vector("amount", amount, length)
    outside = (vector < 0.0) | (vector > MAX_AMOUNT)
    if outside.any():
        index = int(np.argmax(outside))
        raise InvalidData(
            f"amount must be from 0 to {MAX_AMOUNT:g}, got {vector[index]:g} at index {index}"
        )
    return vector


def rows_with(
    y: ArrayLike,
    scores: Mapping[str, ArrayLike],
    columns: Mapping[str, FloatArray],
    sample_weight: ArrayLike | None,
    group: ArrayLike | None,
) -> tuple[EvaluatedRows, list[FloatArray]]:
    """Return checked rows, and the columns without the rows of weight 0."""
    rows = check_rows(y, {**scores, **columns}, sample_weight, group)
    split = len(scores)
    return rows._replace(scores=rows.scores[:split]), list(rows.scores[split:])


@dataclass(frozen=True, eq=False)
class Ranked:
    """Rows sorted by score, greatest first, with the ranks at which ties end."""

    order: NDArray[np.intp]
    ends: NDArray[np.intp]
    """Number of rows at or above each distinct score. Shape (n_scores,)."""
    scores: FloatArray
    """The distinct scores, falling. Shape (n_scores,)."""

    @classmethod
    def of(cls, scores: FloatArray) -> Ranked:
        order = np.argsort(scores)[::-1]
        ranked = scores[order]
        ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]) + 1, ranked.size)
        return cls(order, ends, ranked[ends - 1])

    def sums_above(self, values: FloatArray) -> FloatArray:
        """Return the sums of a value over the rows at or above each distinct score, after a 0, (n_scores + 1,)."""
        return self.sums_above_ordered(values[self.order])

    def sums_above_ordered(self, values: FloatArray) -> FloatArray:
        """Return `sums_above` of values that are already sorted like the scores."""
        sums = prefix_sums(values)
        return sums if self.ends.size == values.size else sums[np.append(0, self.ends)]

    def tie_of_row(self) -> NDArray[np.intp]:
        """For each row, in the original order: the index of its score among the distinct ones."""
        first = np.zeros(self.order.size, dtype=np.intp)
        first[self.ends[:-1]] = 1
        ties = np.empty(self.order.size, dtype=np.intp)
        ties[self.order] = np.cumsum(first)
        return ties


def value_caught(
    y: ArrayLike,
    scores: ArrayLike,
    amount: ArrayLike,
    *,
    over: Over = "rows",
    at: Sequence[float] = SHARES,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> ValueCaught:
    """Compute how much of the positives' amount a ranking catches, with intervals.

    Use it if rows have amounts, such as transactions or claims, and large positives matter more.

    Parameters
    ----------
    y, scores, level, sample_weight, group
        As for `auc_interval`.
    amount : array_like of float, shape (n_samples,)
        Amount of each row, from 0 to 1e100.
    over : {"rows", "negatives", "amount_of_negatives"}
        What is flagged to catch the amount: a share of all rows, of the negatives (an FPR), or of the negatives'
        amount.
    at : sequence of float in (0, 1]
        Shares at which the caught amount is reported.

    Returns
    -------
    ValueCaught
        The area, the recall at each share, and the curve. O(n log n + n · len(at)).

    Raises
    ------
    InvalidData
        As for `auc`; an amount is missing, negative or above 1e100; or no positive, or with
        `over="amount_of_negatives"` no negative, has an amount above 0.

    Examples
    --------
    >>> from core.metrics import value_caught
    >>> found = value_caught([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [30, 1, 10, 1], at=[0.25, 0.5])
    >>> found.area.value, [each.recall.value for each in found.recalls], found.effective
    (0.78125, [0.75, 0.875], 1.5999999999999999)
    """
    check_value("over", str, over)
    level = check_level(level)
    shares = [check_rate("at", share) for share in check_items("at", at)]
    if any(share == 0.0 for share in shares):
        raise InvalidParameter("at must contain fractions above 0, got 0")
    if over not in OVERS:
        raise InvalidParameter(f"over must be one of {', '.join(OVERS)}, got {over!r}")
    amounts = check_amounts(amount, as_array("y", y).size)
    rows, (amounts,) = rows_with(y, {"scores": scores}, {"amount": amounts}, sample_weight, group)
    sample = WeightedRows.of(rows)
    value, unit_of_value = _masses(sample.weight, amounts, rows.positive, "positive")
    flagged = sample.weight
    if over != "rows":
        of_each = amounts if over == "amount_of_negatives" else np.ones(amounts.size)
        flagged, _ = _masses(sample.weight, of_each, ~rows.positive, "negative")
    ranked = Ranked.of(rows.scores[0])
    along, up = ranked.sums_above(flagged), ranked.sums_above(value)
    along, up = along / along[-1], up / up[-1]
    ties = ranked.tie_of_row()
    of_value, of_flagged = value / value.sum(), flagged / flagged.sum()
    effective, of_axis = (effective_number(sample.by_unit(parts)) for parts in (value, flagged))
    trials = min(effective, of_axis)
    # all rows are on the axis of rows, the negatives alone on the others
    worth = (effective, effective) if over == "rows" else (effective, of_axis)
    shown = trials >= MIN_EFFECTIVE
    scale = np.where(rows.positive, *(math.sqrt(e / (e - 1.0)) if shown else 1.0 for e in worth))

    def interval(estimate: float, influence: FloatArray, n: float) -> Interval:
        if not shown:
            return proportion_interval(min(1.0, estimate), None, trials, level)
        parts = sample.by_unit(influence * scale)
        variance = inner(parts, parts)
        return proportion_interval(min(1.0, estimate), variance, n, level, min(worth) - 1.0)

    placement, height = 1.0 - (along[:-1] + along[1:]) / 2.0, (up[:-1] + up[1:]) / 2.0
    area = inner(np.diff(along), height)
    influence = of_value * (placement[ties] - area) + of_flagged * (height[ties] - area)
    recalls = []
    for share in shares:
        last = max(1, int(np.searchsorted(along, share * (1.0 - EPSILON), side="left")))
        part = min(1.0, (share - along[last - 1]) / max(along[last] - along[last - 1], EPSILON))
        if along[last] <= share * (1.0 + EPSILON):
            # a vertical step: the rows that follow add nothing to the share
            last, part = int(np.searchsorted(along, share * (1.0 + EPSILON), side="right")) - 1, 1.0
        recall = float(up[last - 1] + part * (up[last] - up[last - 1]))
        inside = np.where(ties < last - 1, 1.0, np.where(ties == last - 1, part, 0.0))
        slope = _slope(along, up, share, effective_number(flagged))
        moved = of_value * (inside - recall) - slope * of_flagged * (inside - share)
        limits = interval(recall, moved, min(worth))
        recalls.append(ValueRecall(share, float(ranked.scores[last - 1]), limits))
    total = 1.0 if rows.weight is None else float(rows.weight.max())
    return ValueCaught(
        over,
        interval(area, influence, trials),
        tuple(recalls),
        float(value.sum()) * unit_of_value * total,
        effective,
        ValueCurve(along, up, np.concatenate(([np.inf], ranked.scores))),
    )


def _masses(
    weight: FloatArray, amounts: FloatArray, of_class: NDArray[np.bool_], name: str
) -> tuple[FloatArray, float]:
    """Return weight · amount of one class's rows (0 for others) divided by its maximum, and the maximum."""
    greatest = float(amounts[of_class].max())
    if greatest == 0.0:
        raise InvalidData(f"amount must be above 0 for some {name}, got 0 for all of them")
    masses = np.where(of_class, amounts, 0.0) / greatest * weight
    scale = float(masses.max())
    return masses / scale, scale * greatest


def _slope(along: FloatArray, up: FloatArray, share: float, effective: float) -> float:
    """Return the slope of the value curve at a flagged fraction, estimated from the rows near it."""
    reach = NEAR_THE_CUTOFF * math.sqrt(max(share * (1.0 - share), 1.0 / effective) / effective)
    low, high = max(0.0, share - reach), min(1.0, share + reach)
    ends = np.interp([low, high], along, up)
    return float(ends[1] - ends[0]) / (high - low)


class _RowCosts(NamedTuple):
    unflagged: FloatArray
    flagged: FloatArray
    """Shape (n_rows,), float64."""
    bounds_unflagged: tuple[float, float]
    bounds_flagged: tuple[float, float]
    """The least and the greatest loss that a row can have."""
    gains: bool
    """A flagged row can bring in more than it costs."""
    fixed: bool
    """No price depends on the amount: the bounds are those of every population."""

    @property
    def bounds(self) -> tuple[float, float]:
        low = min(self.bounds_unflagged[0], self.bounds_flagged[0])
        return low, max(self.bounds_unflagged[1], self.bounds_flagged[1])

    @property
    def widest(self) -> float:
        low, high = self.bounds
        return high - low

    @property
    def possible_difference(self) -> tuple[float, float]:
        return (-self.widest, self.widest) if self.fixed else (-math.inf, math.inf)

    def possible(self, bounds: tuple[float, float], *, gains: bool) -> tuple[float, float]:
        return bounds if self.fixed else (-math.inf if gains else 0.0, math.inf)

    def of(self, decided: NDArray[np.bool_]) -> FloatArray:
        return np.where(decided, self.flagged, self.unflagged)


def losses_of(positive: NDArray[np.bool_], costs: AmountCosts, amounts: FloatArray) -> _RowCosts:
    missed, wrong, gain = costs.of(amounts)
    return _RowCosts(
        np.where(positive, missed, 0.0),
        np.where(positive, costs.review - gain, costs.review + wrong),
        (0.0, float(missed.max())),
        (costs.review - float(gain.max()), costs.review + float(wrong.max())),
        any(_price(costs.benefit)),
        not costs.need_amounts,
    )


@dataclass(frozen=True, eq=False)
class _Choice:
    threshold: float
    decided: NDArray[np.bool_]
    held_out: NDArray[np.bool_] | None
    parts: int
    ends: tuple[float, float]


def choose_threshold(
    scores: FloatArray, losses: _RowCosts, sample: WeightedRows, parts: NDArray[np.intp] | None
) -> _Choice:
    """Return the threshold with the lowest cost on all rows, and cross-fitted decisions on each row.

    Each part of the rows is decided by the threshold with the lowest cost on the other parts. O(n log n + n · n_parts).
    """
    ranked = Ranked.of(scores)
    ties = ranked.tie_of_row()
    steps = sample.weight * (losses.flagged - losses.unflagged)
    scale = float(np.abs(steps).max()) or 1.0
    steps = steps / scale
    rounding = COST_ROUNDING * float(np.abs(steps).sum())
    thresholds = np.concatenate(([np.inf], ranked.scores))
    total = ranked.sums_above(steps)

    def least(costs: FloatArray) -> int:
        # the first is the one that flags fewest rows
        return int(np.argmax(costs <= costs.min() + rounding))

    best = least(total)
    if parts is None:
        cutoff = float(thresholds[best])
        return _Choice(cutoff, ties < best, None, 1, (cutoff, cutoff))
    number = int(parts.max()) + 1
    ordered, dealt = steps[ranked.order], parts[ranked.order].astype(np.uint8)
    chosen = np.array(
        [
            least(total - ranked.sums_above_ordered(np.where(dealt == part, ordered, 0.0)))
            for part in range(number)
        ]
    )
    ends = float(thresholds[chosen.max()]), float(thresholds[chosen.min()])
    return _Choice(float(thresholds[best]), ties < best, ties < chosen[parts], number, ends)


def random_parts(rows: EvaluatedRows, random_state: int) -> NDArray[np.intp] | None:
    """Draw cross-fitting parts of about equal rows of each class, or whole units; None if all rows are in one."""
    rng = np.random.default_rng(random_state)
    if rows.unit is not None:
        # in the order of their first rows, whatever the units are called
        _, first, unit = np.unique(rows.unit, return_index=True, return_inverse=True)
        if first.size < 2:
            return None
        dealt = np.empty(first.size, dtype=np.intp)
        dealt[np.argsort(first)] = rng.permutation(first.size) % min(MAX_PARTS, first.size)
        return dealt[unit]
    parts = np.empty(rows.positive.size, dtype=np.intp)
    number = min(MAX_PARTS, parts.size)
    start = 0
    for of_class in (rows.positive, ~rows.positive):
        size = int(np.count_nonzero(of_class))
        parts[of_class] = (start + rng.permutation(size)) % number
        start += size
    return parts


def cost_report(
    y: ArrayLike,
    scores: ArrayLike,
    costs: AmountCosts,
    amount: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    probability: ArrayLike | None = None,
    level: float = 0.95,
    random_state: int = 0,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> CostReport:
    """Find the threshold with the lowest cost, and estimate its cost on other rows.

    It also reports the cost at a given threshold, and of decisions by probability.

    Parameters
    ----------
    y, scores, level, group
        As for `auc_interval`.
    costs : AmountCosts
        Costs and benefits of the decisions.
    amount : array_like of float, shape (n_samples,), optional
        Amount of each row, from 0 to 1e100.
    threshold : float, optional
        A threshold that was not chosen on these rows; infinite is allowed.
    probability : array_like of float, shape (n_samples,), optional
        Probability that each row is positive, fitted on other rows.
    random_state : int
        Seed of the parts, not negative.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights. The prevalence is that of the weighted rows.

    Returns
    -------
    CostReport
        Costs per row. O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import AmountCosts, Price, cost_report
    >>> rng = np.random.default_rng(0)
    >>> y, amount = rng.integers(0, 2, 500), rng.lognormal(size=500)
    >>> costs = AmountCosts(false_negative=Price(rate=1), review=0.5)
    >>> found = cost_report(y, rng.normal(size=500) + 2 * y, costs, amount)
    >>> round(found.least.threshold, 3), round(found.least.in_sample, 3), round(found.least.held_out.cost.value, 3)
    (0.194, 0.37, 0.41)
    """
    check_value("costs", AmountCosts, costs)
    level = check_level(level)
    check_seed(random_state)
    columns = _columns(as_array("y", y).size, costs, amount)
    if probability is not None:
        columns["probability"] = finite_vector("probability", probability, as_array("y", y).size)
        check_probabilities(columns["probability"])
    if threshold is not None:
        threshold = check_threshold(threshold)
    rows, found = rows_with(y, {"scores": scores}, columns, sample_weight, group)
    sample, losses = WeightedRows.of(rows), losses_of(rows.positive, costs, found[0])
    choice = choose_threshold(rows.scores[0], losses, sample, random_parts(rows, random_state))
    at = None
    if threshold is not None:
        at = _decision(rows.scores[0] >= threshold, losses, sample, level)
    by_probability = saves = None
    if probability is not None:
        missed, wrong, gain = costs.of(found[0])
        p = found[1]
        decided = p * (missed + gain) > (1.0 - p) * wrong + costs.review
        by_probability = _decision(decided, losses, sample, level)
        if choice.held_out is not None:
            by_cutoff, by_row = losses.of(choice.held_out), losses.of(decided)
            interval, p_value = sample.paired(by_cutoff - by_row, losses, level, choice.parts)
            saves = Difference("cutoff", "probability", *interval, p_value, p_value)
    total = float(rows.positive.size) if rows.weight is None else float(rows.weight.sum())
    return CostReport(
        total,
        *_none_and_all(losses, sample, level),
        _least(choice, losses, sample, level),
        at,
        by_probability,
        saves,
        level,
    )


def costs_at_thresholds(
    y: ArrayLike,
    scores: ArrayLike,
    costs: AmountCosts,
    amount: ArrayLike | None = None,
    *,
    thresholds: ArrayLike,
    rule: ArrayLike | None = None,
    rule_decides: bool = True,
    prevalence: float | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> ThresholdCosts:
    """Estimate the costs of errors at given thresholds, and what each saves.

    The savings are compared with flagging as many rows at random, and with another rule.

    Parameters
    ----------
    y, scores, level, sample_weight, group
        As for `auc_interval`.
    costs, amount
        As for `cost_report`.
    thresholds : array_like of float, shape (n_thresholds,)
        Thresholds that were not chosen on these rows; +inf flags none.
    rule : array_like of float, shape (n_samples,), optional
        Another rule: its decisions, not 0 for a flagged row, or its scores.
    rule_decides : bool
        True if `rule` has decisions. False if it has scores, of which the highest are flagged: as many as at the
        threshold.
    prevalence : float in (0, 1), optional
        Fraction of positives among future rows: the rows of each class are weighted accordingly.

    Returns
    -------
    ThresholdCosts
        Costs per row. O(n log n + n · n_thresholds).

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import AmountCosts, Price, costs_at_thresholds
    >>> rng = np.random.default_rng(0)
    >>> y, amount = rng.integers(0, 2, 500), rng.lognormal(size=500)
    >>> costs = AmountCosts(false_negative=Price(rate=1), false_positive=0.5)
    >>> found = costs_at_thresholds(y, rng.normal(size=500) + 2 * y, costs, amount, thresholds=[1.0])
    >>> round(found.points[0].cost.value, 3), round(found.points[0].saved_to_random.value, 3)
    (0.158, 0.33)
    """
    check_value("costs", AmountCosts, costs)
    level = check_level(level)
    columns = _columns(as_array("y", y).size, costs, amount)
    if rule is not None:
        columns["rule"] = finite_vector("rule", rule, as_array("y", y).size)
    cutoffs = [
        check_threshold(each, "thresholds")
        for each in np.atleast_1d(as_array("thresholds", thresholds)).tolist()
    ]
    rows, found = rows_with(y, {"scores": scores}, columns, sample_weight, group)
    if prevalence is not None:
        rows = rows._replace(weight=_weights_at(rows, check_prevalence(prevalence)))
    sample, losses = WeightedRows.of(rows), losses_of(rows.positive, costs, found[0])
    own, saves = rows.scores[0], losses.unflagged - losses.flagged
    possible = losses.possible(losses.bounds, gains=losses.gains)
    apart = saves - sample.mean(saves)
    decided = None if rule is None or not rule_decides else (found[1] != 0.0).astype(np.float64)
    other = None if rule is None or rule_decides else Ranked.of(found[1])
    points = []
    for cutoff in cutoffs:
        flags = own >= cutoff
        share = _share(flags, sample)
        its = decided if other is None else _flag_share(other, share, sample)
        points.append(
            ThresholdCost(
                cutoff,
                sample.interval(losses.of(flags), losses.bounds, level, possible),
                share,
                sample.gain((flags - share) * apart, losses, level),
                None if its is None else sample.paired((flags - its) * saves, losses, level)[0],
            )
        )
    by_rule = None
    if decided is not None:
        lost = losses.of(decided > 0.0)
        by_rule = sample.interval(lost, losses.bounds, level, possible)
    return ThresholdCosts(
        tuple(points),
        choose_threshold(own, losses, sample, None).threshold,
        *_none_and_all(losses, sample, level),
        by_rule,
        None if decided is None else _share(decided > 0.0, sample),
        level,
    )


def _none_and_all(
    losses: _RowCosts, sample: WeightedRows, level: float
) -> tuple[Interval, Interval]:
    """Return the mean costs of a row if no row, and if every row, is flagged."""
    none, every = losses.bounds_unflagged, losses.bounds_flagged
    return (
        sample.interval(losses.unflagged, none, level, losses.possible(none, gains=False)),
        sample.interval(losses.flagged, every, level, losses.possible(every, gains=losses.gains)),
    )


def _weights_at(rows: EvaluatedRows, prevalence: float) -> FloatArray:
    """Return the weights with which the positives have this fraction of the weight."""
    weight = np.ones(rows.positive.size) if rows.weight is None else rows.weight
    own = float(weight[rows.positive].sum()) / float(weight.sum())
    of_class = np.where(rows.positive, prevalence / own, (1.0 - prevalence) / (1.0 - own))
    changed: FloatArray = weight * of_class
    return changed


def cheapest_threshold(
    scores: FloatArray, saves: FloatArray, weight: FloatArray, max_flagged: float | None = None
) -> float:
    """Return the threshold that saves the most, or the lowest one that flags at most a fraction `max_flagged` of the
    rows' weight, if that is higher: up to the threshold that saves the most, each row is expected to save something.

    Among equals it is the one that flags the fewest rows; +inf flags none. `saves` is what flagging each row saves,
    float64 of shape (n_rows,). O(n log n).
    """
    ranked = Ranked.of(scores)
    scale = float(np.abs(saves).max()) or 1.0
    total = ranked.sums_above(weight * saves / scale)
    rounding = COST_ROUNDING * float(np.abs(weight * saves / scale).sum())
    best = int(np.argmax(total >= total.max() - rounding))
    if max_flagged is not None:
        held = ranked.sums_above(weight)
        limit = max_flagged * held[-1] * (1.0 + EPSILON)
        best = min(best, int(np.searchsorted(held, limit, side="right")) - 1)
    return math.inf if best == 0 else float(ranked.scores[best - 1])


def _flag_share(ranked: Ranked, share: float, sample: WeightedRows) -> FloatArray:
    """Return how much of each row is flagged if the highest scores are, up to a share of the weight; ties in part."""
    sums = ranked.sums_above(sample.weight)
    wanted = share * sums[-1]
    held = np.diff(sums)
    parts = np.clip((wanted - sums[:-1]) / np.where(held > 0.0, held, 1.0), 0.0, 1.0)
    flagged: FloatArray = parts[ranked.tie_of_row()]
    return flagged


def compare_costs(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    costs: AmountCosts,
    amount: ArrayLike | None = None,
    *,
    level: float = 0.95,
    random_state: int = 0,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
) -> CostComparison:
    """Compare the costs of several rankings of the same rows, each with its own best threshold.

    The parts of the rows are the same for all scorers, and the tests are paired.

    Parameters
    ----------
    y, level, group
        As for `auc_interval`.
    scores : sequence of array_like of float, each of shape (n_samples,)
        Scores of two or more scorers. Their scales may differ.
    costs, amount, random_state, sample_weight
        As for `cost_report`.
    names : sequence of str, optional
        Names of the scorers, all different. Default: "scores[0]", "scores[1]", …
    adjust : {"holm", "none"}
        Adjustment of the p-values over all pairs.

    Returns
    -------
    CostComparison
        Costs and their differences. O(n_scorers · n log n).

    Raises
    ------
    InvalidData, InvalidParameter
        As for `cost_report`, or there are fewer than two scorers, or only one unit of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from core.metrics import AmountCosts, Price, compare_costs
    >>> rng = np.random.default_rng(0)
    >>> y, amount = rng.integers(0, 2, 500), rng.lognormal(size=500)
    >>> good, bad = rng.normal(size=500) + 2 * y, rng.normal(size=500) + y
    >>> found = compare_costs(y, [good, bad], AmountCosts(false_negative=Price(rate=1), review=0.5), amount)
    >>> found.differences[0].value < 0, round(found.differences[0].p_value, 3)
    (True, 0.187)
    """
    check_value("costs", AmountCosts, costs)
    level = check_level(level)
    check_seed(random_state)
    scorers, named = check_scorers(scores, names, adjust)
    columns = _columns(as_array("y", y).size, costs, amount)
    rows, (amounts,) = rows_with(y, scorers, columns, sample_weight, group)
    parts = random_parts(rows, random_state)
    if parts is None:
        raise InvalidData("group must have at least two values to compare costs, got one")
    sample, losses = WeightedRows.of(rows), losses_of(rows.positive, costs, amounts)
    choices = [choose_threshold(column, losses, sample, parts) for column in rows.scores]
    lost = [losses.of(choice.held_out) for choice in choices if choice.held_out is not None]
    pairs = list(combinations(range(len(lost)), 2))
    number = choices[0].parts
    found = [sample.paired(lost[a] - lost[b], losses, level, number) for a, b in pairs]
    (differences,) = name_differences([found], named, adjust)
    return CostComparison(
        tuple(_least(choice, losses, sample, level) for choice in choices),
        differences,
        level,
    )


def _columns(length: int, costs: AmountCosts, amount: ArrayLike | None) -> dict[str, FloatArray]:
    if amount is None and costs.need_amounts:
        raise InvalidParameter("amount is required, because a price has a rate per amount")
    return {"amount": np.zeros(length) if amount is None else check_amounts(amount, length)}


def _least(choice: _Choice, losses: _RowCosts, sample: WeightedRows, level: float) -> LeastCost:
    held_out = choice.held_out
    return LeastCost(
        choice.threshold,
        _share(choice.decided, sample),
        sample.mean(losses.of(choice.decided)),
        None if held_out is None else _decision(held_out, losses, sample, level),
        choice.parts,
        *choice.ends,
    )


def _decision(
    decided: NDArray[np.bool_], losses: _RowCosts, sample: WeightedRows, level: float
) -> DecisionCost:
    lost = losses.of(decided)
    saved = (
        sample.gain(constant - lost, losses, level)
        for constant in (losses.unflagged, losses.flagged)
    )
    possible = losses.possible(losses.bounds, gains=losses.gains)
    return DecisionCost(
        sample.interval(lost, losses.bounds, level, possible), _share(decided, sample), *saved
    )


def _share(decided: NDArray[np.bool_], sample: WeightedRows) -> float:
    return float(sample.weight[decided].sum()) / float(sample.weight.sum())
