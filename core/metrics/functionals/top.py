"""Metrics of the top of a ranked list: precision, average precision, lift, precision at a recall, NDCG.

With T and F the masses of the positives and the negatives at or above a score, p the mass of positives at it,

* **average precision** is Σ (p / P) T / (T + F) over the distinct scores: a tie is one threshold, and nothing is
  interpolated, since precision between two points of the curve does not lie on a line (Davis & Goadrich 2006). U = T /
  (T + F) at the row's own score, plus Σ p F / (T + F)² over the scores up to it; D = −(N / P) Σ p T / (T + F)²; S =
  −D̄;
* **precision at k**: let η be the fraction of positives near the cutoff. A row above it pushes η positives out, so U =
  (P / k) (1 − η) and D = −(N / k) η above the cutoff, and 0 below. η is taken from the rows among which the cutoff lies
  with high probability. Of a share of the list, S = θ (1 − η) − π (θ − η);
* **lift at k**: precision at k, divided by the prevalence: S = (S' − θ' (1 − π)) / π with θ' and S' of the precision;
* **precision at a recall** r: the precision at the greatest threshold whose TPR is at least r; a tie is flagged as a
  whole. With t and u its TPR and FPR, θ = P t / (P t + N u), whose derivative by u is c = −θ² N / (P t), and by t is
  −c u / t. A negative above the cutoff raises u: D = c above the cutoff, and 0 below. A positive above it raises t by
  its own weight. But the cutoff then moves to where the TPR is r again, past rows with b negatives for each positive,
  unless a tie holds it (a = 1; without ties a = 0): U = −c (a u / t + b P / N) above the cutoff, and 0 below. a and b
  are taken from the rows near the cutoff, as far as the number of positives above it varies. S = θ (1 − θ). Its
  interval is another one, since few positives decide where the cutoff is, and the curve need not be straight there:
  the log odds of θ are log (t P / N) − log u. The limits of u are those of the FPR at TPR = r (see `bands`), at whole
  ties; they and those of log (P / N) are combined by MOVER;
* **NDCG at k**: as precision at k, each rank r counted 1 / log₂(r + 1). A row also moves those below it one rank down.
  S = (1 − π) (Ū − P B' θ / B) − π D̄, where B is the gain of the best order and B' what one more positive adds to it.

Where equal scores leave the order open, precision at k and NDCG are the mean over all orders of the ties (precision at
a cutoff within a tie is the mean of a hypergeometric distribution).

References
----------
Boyd, Eng & Page, "Area under the precision-recall curve: point estimates and confidence intervals", ECML PKDD (2013):
intervals of average precision on the logit scale.
Davis & Goadrich, "The relationship between precision-recall and ROC curves", ICML (2006).
Järvelin & Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20 (2002): NDCG.
McSherry & Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores",
ECIR (2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from core.errors import InvalidParameter
from core.metrics.bands import rate_half_width
from core.metrics.estimates import (
    EPSILON,
    Interval,
    normal_quantile,
    wilson_limits,
)
from core.metrics.functionals.base import (
    METRICS,
    Derivatives,
    Masses,
    Metric,
    check_size,
    null_variance,
    shown_size,
    size_of,
)
from core.metrics.groups import (
    FloatArray,
    inner,
    prefix_sums,
)
from core.metrics.window import (
    MIN_WIDTH,
    check_rate,
)

_MAX_SUMMED = 1_000_000
"""Ranks whose discounts are summed one by one; weights make more ranks than a list has rows."""

# Standard errors of the number of rows above a cutoff within which its local fraction of positives is taken.
NEAR_THE_CUTOFF = 2.0


@METRICS.named("average_precision")
@dataclass(frozen=True)
class AveragePrecision(Metric):
    """Average precision: the mean precision at the thresholds of the positives.

    Use it if the top of the list matters and positives are rare. Pass it to `measure`.

    References
    ----------
    Y. Bestgen, "Exact expected average precision of the random baseline for system evaluation", 2015.

    Examples
    --------
    >>> from core.metrics import AveragePrecision, measure
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [AveragePrecision()])[0].interval.value
    0.8333333333333333
    """

    name = "average_precision"
    has_heavy_null = True

    def null_moments(self, masses: Masses) -> tuple[float, float] | None:
        """Return the mean over random rankings (Bestgen 2015), and a conservative variance.

        The derivatives miss the first ranks, where a positive counts 1 / rank: (π²/6) p (1 − p) / m² for m positives
        and the prevalence p. Twice that keeps the level of the test (docs/statistics.md).
        """
        rows = sum(masses.effective)
        if rows <= 1.0:
            return None
        harmonic = math.log(rows) + float(np.euler_gamma) + 1.0 / (2.0 * rows)
        share = masses.prevalence
        mean = ((share * rows - 1.0) / (rows - 1.0) * (rows - harmonic) + harmonic) / rows
        first_ranks = self.hidden_variance(masses) * share * (1.0 - share)
        return min(max(mean, share), 1.0 - EPSILON), null_variance(self, masses) + first_ranks

    def hidden_variance(self, masses: Masses) -> float:
        """Return π² / (3 m²) for m positives, the variance that derivatives miss; see `null_moments`."""
        return math.pi**2 / 3.0 / masses.effective[0] ** 2

    def of(self, masses: Masses) -> Derivatives:
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
        return masses.prevalence

    def top(self, masses: Masses) -> float:
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the effective number of rows of the smaller class."""
        return min(masses.effective)


@METRICS.named("precision@{count}", "precision@{share}%")
@dataclass(frozen=True)
class PrecisionAt(Metric):
    """Precision at k: the fraction of positives among the first rows of the list.

    Use it if you can act on a fixed number or share of rows. Ties at the end of the list count with their mean.

    Parameters
    ----------
    count : int > 0, optional
        Number of first rows, at most all rows; their weight if rows are weighted.
    share : float in (0, 1], optional
        The first rows as a fraction of all rows. Give either `count` or `share`.

    Examples
    --------
    >>> from core.metrics import PrecisionAt
    >>> PrecisionAt(count=100).name, PrecisionAt(share=0.01).name
    ('precision@100', 'precision@1%')
    """

    count: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        check_size(self.count, self.share)

    @property
    def name(self) -> str:
        return f"precision@{shown_size(self.count, self.share)}"

    def of(self, masses: Masses) -> Derivatives:
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
        return masses.prevalence

    def top(self, masses: Masses) -> float:
        """Return the metric's maximum: the precision of a list that begins with all positives."""
        if not masses.fixed_prevalence:
            return 1.0
        size = size_of(self.count, self.share, sum(masses.totals))
        return min(1.0, masses.totals[0] / size)

    def trials(self, masses: Masses) -> float:
        """Return the effective number of flagged rows, or of positives if that is less."""
        size = size_of(self.count, self.share, sum(masses.totals))
        return trials_above(masses, size, positives_above(masses, size))


@METRICS.named("lift@{count}", "lift@{share}%")
@dataclass(frozen=True)
class Lift(Metric):
    """Lift: the precision of the first rows of the list divided by the prevalence.

    A random ranking has 1.

    Parameters
    ----------
    count : int > 0, optional
        Number of first rows, at most all rows; their weight if rows are weighted.
    share : float in (0, 1], optional
        The first rows as a fraction of all rows. Give either `count` or `share`.

    Examples
    --------
    >>> from core.metrics import Lift, measure
    >>> measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [Lift(share=0.5)])[0].interval.value
    1.5
    """

    count: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        check_size(self.count, self.share)

    @property
    def name(self) -> str:
        return f"lift@{shown_size(self.count, self.share)}"

    @property
    def _precision(self) -> PrecisionAt:
        return PrecisionAt(self.count, self.share)

    def of(self, masses: Masses) -> Derivatives:
        value, up, down, _ = self._precision.of(masses)
        prevalence = masses.prevalence
        near = positives_near(masses, self._share(masses) * sum(masses.totals))
        slope = lift_slope(value, near, prevalence)
        return Derivatives(value / prevalence, up / prevalence, down / prevalence, slope)

    def chance(self, masses: Masses) -> float | None:
        return 1.0

    def top(self, masses: Masses) -> float:
        if masses.fixed_prevalence:
            return self._precision.top(masses) / masses.prevalence
        return 1.0 / self._share(masses)

    def trials(self, masses: Masses) -> float:
        """Return the trials of the precision, or of the recall if the prevalence is not fixed."""
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

    def plain(self) -> Metric:
        return _RecallAt(self.count, self.share)

    def unit(self, masses: Masses) -> float:
        """Return the factor from recall to lift: all rows divided by the first rows."""
        total = sum(masses.totals)
        return total / size_of(self.count, self.share, total)

    def _share(self, masses: Masses) -> float:
        total = sum(masses.totals)
        return size_of(self.count, self.share, total) / total


@dataclass(frozen=True)
class _RecallAt(Lift):
    """Recall of the first rows, as a metric: their lift times their fraction of all rows."""

    def plain(self) -> Metric:
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
    """Return d precision / d log-odds of the prevalence; `near`: the fraction of positives near the cutoff."""
    return precision * (1.0 - near) - prevalence * (precision - near)


def lift_slope(precision: float, near: float, prevalence: float) -> float:
    """Return the lift's derivative by the log-odds of the prevalence; see `precision_slope`.

    It is 0 where all rows above the cutoff and near it are positive: a variance of the prevalence alone is too small.
    """
    if min(precision, near) > 1.0 - EPSILON:
        return 0.0
    slope = precision_slope(precision, near, prevalence)
    return (slope - precision * (1.0 - prevalence)) / prevalence


@METRICS.named("precision_at_recall:{recall}")
@dataclass(frozen=True)
class PrecisionAtRecall(Metric):
    """Precision at the greatest threshold that finds at least a given fraction of the positives.

    That is the shortest list of whole ties which contains this fraction: rows with the threshold's score are all in it.

    Examples
    --------
    >>> from core.metrics import PrecisionAtRecall, measure
    >>> round(measure([1, 0, 1, 0], [0.9, 0.4, 0.4, 0.1], [PrecisionAtRecall(0.75)])[0].interval.value, 3)
    0.667
    """

    recall: float
    """The fraction of the positives. In [1e-9, 1]."""

    def __post_init__(self) -> None:
        if not check_rate("recall", self.recall) >= MIN_WIDTH:
            raise InvalidParameter(f"recall must be in [{MIN_WIDTH:g}, 1], got {self.recall!r}")

    @property
    def name(self) -> str:
        return f"precision_at_recall:{self.recall:.12g}"

    def of(self, masses: Masses) -> Derivatives:
        end, wanted = self._end(masses, self.recall), float(self.recall) * masses.totals[0]
        caught, wrong = float(masses.above_positive[end]), float(masses.above_negative[end])
        value = caught / (caught + wrong)
        inside = np.zeros(masses.positive.size)
        inside[:end] = 1.0
        needed = inside.copy()  # of the positives: so many as the recall needs move the cutoff
        short = wanted - float(masses.above_positive[end - 1])
        needed[end - 1] = min(1.0, short / float(masses.positive[end - 1]))
        # the thresholds that other samples might have
        total, effective = masses.totals[0], masses.effective[0]
        spread = total * math.sqrt(self.recall * (1.0 - self.recall) / effective)
        reach = max(NEAR_THE_CUTOFF * spread, total / effective)
        low, high = max(0.0, wanted - reach), min(total, wanted + reach)
        first, last = (self._end(masses, each / total) for each in (low, high))
        moved, passed = (
            float(above[last] - above[first])
            for above in (masses.above_positive, masses.above_negative)
        )
        held = max(0.0, 1.0 - (moved + total / effective) / (high - low))
        by_negative = -(value**2) / caught  # of one more negative above the cutoff, by its weight
        by_positive = held * wrong / caught * inside + passed / (high - low) * needed
        positive, negative = masses.totals
        up, down = -by_negative * positive * by_positive, by_negative * negative * inside
        return Derivatives(value, up, down, value * (1.0 - value))

    def own_interval(self, masses: Masses, level: float) -> Interval:
        """Return the precision with limits derived from those of the FPR at this recall."""
        value, recall = self.of(masses).value, float(self.recall)
        positive, negative = masses.totals
        tpr, fpr = masses.above_positive / positive, masses.above_negative / negative
        end = self._end(masses, recall)
        rate = float(fpr[end])
        # Without negatives in the tie, the population's TPR is taken to be the recall; this sample has whole rows.
        reached = float(tpr[end]) if fpr[end] > fpr[end - 1] else recall
        half_width = float(rate_half_width(np.array(recall), masses.effective[0], level))
        ends = [0.0, 1.0]
        for side, at in enumerate((recall - half_width, recall + half_width)):
            if at <= 0.0 if side == 0 else at >= 1.0:
                continue
            there = self._end(masses, at)
            # the TPR of the population there, if its threshold is this one
            found = max(recall, float(tpr[there]) - max(0.0, float(tpr[there - 1]) - recall))
            ends[side] = min(1.0, float(fpr[there]) * reached / found)
        low, high = (
            float(each[0]) for each in wilson_limits(np.array([rate]), masses.effective[1], level)
        )
        least = max(0.0, rate - math.hypot(rate - low, max(0.0, rate - ends[0])))
        most = min(1.0, rate + math.hypot(high - rate, max(0.0, ends[1] - rate)))
        odds = math.log(positive) - math.log(negative) + math.log(reached)
        error = 0.0
        if not masses.fixed_prevalence:
            error = normal_quantile(level) * math.sqrt(sum(1.0 / e for e in masses.effective))
        own, best, worst = (
            odds - math.log(each) if each > 0.0 else math.inf for each in (rate, least, most)
        )
        if math.isinf(own):
            return Interval(value, min(value, _of_odds(worst - error)), 1.0)
        below, above = own - math.hypot(own - worst, error), own + math.hypot(best - own, error)
        return Interval(value, min(value, _of_odds(below)), max(value, _of_odds(above)))

    def _end(self, masses: Masses, recall: float) -> int:
        """Return the number of distinct scores that are flagged for at least this recall, from the greatest on."""
        above = masses.above_positive
        # a sum that is short of its target by rounding alone has reached it
        wanted = min(recall, 1.0) * float(above[-1]) * (1.0 - EPSILON)
        return int(np.searchsorted(above, wanted, side="left"))

    def chance(self, masses: Masses) -> float | None:
        return masses.prevalence

    def top(self, masses: Masses) -> float:
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the effective number of flagged rows, or of positives if that is less."""
        end = self._end(masses, self.recall)
        rows, caught = float(masses.above[end]), float(masses.above_positive[end])
        return min(trials_above(masses, rows, caught), masses.effective[0])


def _of_odds(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(min(-log_odds, 700.0)))


@METRICS.named("ndcg", "ndcg@{count}", "ndcg@{share}%")
@dataclass(frozen=True)
class Ndcg(Metric):
    """NDCG, the normalised discounted cumulative gain: each positive counts 1 / log₂(rank + 1).

    Use it if the order within the first rows matters. For grades and for lists per query use `measure_lists`.

    Parameters
    ----------
    count : int > 0, optional
        Number of first rows. Default: all rows.
    share : float in [1e-9, 1], optional
        The first rows as a fraction of all rows, rounded to a whole number of rows, at least one.

    Raises
    ------
    InvalidParameter
        `count` is not a whole number above 0, `share` is out of range, or both are given. Weights must be whole
        numbers, which count as so many rows, or all equal, which count as one row each.

    Examples
    --------
    >>> from core.metrics import Ndcg, measure
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
                raise InvalidParameter(
                    f"count must be a whole number of at least 1, got {self.count!r}"
                )

    @property
    def name(self) -> str:
        if self.count is None and self.share is None:
            return "ndcg"
        return f"ndcg@{shown_size(self.count, self.share)}"

    def of(self, masses: Masses) -> Derivatives:
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

    def null_p_value(self, masses: Masses, value: float, inflation: float) -> float | None:
        """Return the probability that the positives have at least this gain on random ranks."""
        first, end, row = self._ranks(masses)
        size, n_rows = self._size(float(end[-1])), end - first
        gains = _Gains(size)
        every = gains.between(np.minimum(first, size), np.minimum(end, size))
        every /= np.maximum(n_rows, 1.0)
        positives = round(masses.totals[0] / row)
        mean = positives * inner(every, n_rows) / float(end[-1])
        # the ranks of a row of weight k are drawn together, and are not as many rows
        together = zip(masses.totals, masses.effective, strict=True)
        factor = inflation * max(1.0, *(total / row / effective for total, effective in together))
        found = value * gains.of(min(size, positives))
        return gain_beyond(every, n_rows, positives, mean + (found - mean) / math.sqrt(factor))

    def _ranks(self, masses: Masses) -> tuple[FloatArray, FloatArray, float]:
        """Return the numbers of rows above and down to each score, and the weight that counts as one row."""
        total = sum(masses.totals)
        equal = total / sum(masses.effective)  # the weight of each row, if all weigh alike
        own = np.concatenate((masses.positive, masses.negative))
        # whole weights that are all equal count as one row each, as they would if they were fractions
        for row in (equal, 1.0) if own[own > 0.0].min() >= 0.5 * equal else (1.0, equal):
            off = np.abs(own / row - np.rint(own / row))
            # differences of a stored curve's rates have the rounding error of their total
            rounding = min(1e-6, 16.0 * np.finfo(np.float64).eps * total / row)
            if np.all(off <= EPSILON * own / row + rounding) and min(masses.totals) >= 0.5 * row:
                ranks = np.rint(masses.above / row)
                return ranks[:-1], ranks[1:], row
        raise InvalidParameter(
            f"{self.name} requires whole weights, or equal weights of independent rows, because ranks are "
            f"whole numbers; got a weight of {own[np.argmax(off)]:g} at one score"
        )

    def _size(self, total: float) -> float:
        if self.share is not None:
            return max(1.0, float(round(self.share * total)))
        return total if self.count is None else float(min(int(self.count), total))

    def chance(self, masses: Masses) -> float | None:
        _, end, row = self._ranks(masses)
        size = self._size(float(end[-1]))
        gains = _Gains(size)
        return (
            masses.prevalence * gains.of(size) / gains.of(min(size, round(masses.totals[0] / row)))
        )

    def top(self, masses: Masses) -> float:
        return 1.0

    def trials(self, masses: Masses) -> float:
        """Return the number of first rows, or the effective number of the smaller class if that is less."""
        _, end, _ = self._ranks(masses)
        return min(self._size(float(end[-1])), *masses.effective)


def _discount(rank: FloatArray) -> FloatArray:
    return 1.0 / np.log2(rank + 2.0)


class _Gains:
    """Sums of NDCG discounts over ranges of ranks; beyond `_MAX_SUMMED` ranks they are approximated by integrals."""

    def __init__(self, size: float) -> None:
        self._sums = prefix_sums(_discount(np.arange(min(size, _MAX_SUMMED))))

    def of(self, rank: float) -> float:
        return float(self.between(np.zeros(1), np.array([float(rank)]))[0])

    def between(self, first: FloatArray, end: FloatArray) -> FloatArray:
        most = self._sums.size - 1
        last = np.minimum(end, most).astype(np.intp)
        sums: FloatArray = self._sums[last] - self._sums[np.minimum(first, most).astype(np.intp)]
        far = end > most
        if far.any():
            sums[far] += _integrated(np.maximum(first[far], most), end[far])
        return sums


def _integrated(first: FloatArray, end: FloatArray) -> FloatArray:
    """Approximate sums over high ranks by integrals; few by their number times the middle one: no digits cancel."""
    from scipy.special import expi

    width = end - first
    middle = first + 1.5 + width / 2.0
    log = np.log(middle)
    few = width / log * (1.0 + (width / middle) ** 2 * (1.0 + 2.0 / log) / (24.0 * log))
    many = expi(np.log(end + 1.5)) - expi(np.log(first + 1.5))
    return np.where(width < 1e-3 * middle, few, many) * math.log(2.0)


_LISTED = 10
"""First rows of which all cases are listed: each may be positive or not."""


def gain_beyond(gains: FloatArray, n_rows: FloatArray, positives: int, total: float) -> float:
    """Return the probability that the sum of the gains of random rows, drawn without replacement, is at least `total`.

    The cases of the `_LISTED` rows with the greatest gains are listed, with their hypergeometric probabilities. The sum
    over the other rows has a gamma distribution (Pearson's type III) with its mean, variance and skewness.

    gains: (n,); gain of each row of a tie, falling.
    n_rows: (n,); rows of each tie.
    positives: number of drawn rows.
    """
    from scipy.special import gammaln

    all_rows = float(n_rows.sum())
    ends = np.cumsum(n_rows)
    listed = int(min(_LISTED, all_rows))
    head = gains[np.searchsorted(ends, np.arange(listed), side="right")]
    left = np.diff(np.maximum(ends, listed), prepend=float(listed))
    n = all_rows - listed
    mean = inner(gains, left) / n if n else 0.0
    squares, cubes = (float((left * (gains - mean) ** power).sum()) for power in (2, 3))
    cases = (np.arange(1 << listed)[:, np.newaxis] >> np.arange(listed)) & 1
    sums, drawn = cases @ head, cases.sum(axis=1)

    def log_choices(of: float, number: float) -> float:
        return float(gammaln(of + 1.0) - gammaln(number + 1.0) - gammaln(of - number + 1.0))

    found, rounding = 0.0, EPSILON * (1.0 + abs(total))
    for count in range(max(0, int(positives - n)), min(listed, positives) + 1):
        rest = positives - count
        share = log_choices(n, rest) - log_choices(all_rows, positives)
        spread = rest * (n - rest) / (n * (n - 1.0)) if n > 1.0 else 0.0
        skewed = spread * (n - 2.0 * rest) / (n - 2.0) if n > 2.0 else 0.0
        beyond = total - rounding - sums[drawn == count] - rest * mean
        found += math.exp(share) * float(
            _beyond_gamma(beyond, spread * squares, skewed * cubes).sum()
        )
    return min(1.0, found)


def _beyond_gamma(x: FloatArray, variance: float, cube: float) -> FloatArray:
    """Return the probabilities of more than x in a gamma distribution, moved to mean 0, by its central moments."""
    from scipy.special import gammaincc, ndtr

    if variance <= EPSILON**2:
        return (x <= 0.0).astype(np.float64)
    z, skewness = x / math.sqrt(variance), cube / variance**1.5
    if abs(skewness) < 1e-3:
        return np.asarray(ndtr(-z))
    shape = 4.0 / skewness**2
    at = np.maximum(0.0, shape + math.copysign(1.0, skewness) * math.sqrt(shape) * z)
    upper = np.asarray(gammaincc(shape, at))
    return upper if skewness > 0.0 else 1.0 - upper


def _from_here_on(values: FloatArray) -> FloatArray:
    return np.cumsum(values[::-1])[::-1]


def trials_above(masses: Masses, size: float, caught: float) -> float:
    """Return the effective number of first rows; of positives, if all positives are among them."""
    positive, negative = masses.totals
    # Σw² is taken as the class's own, in proportion
    squares = caught * (positive / masses.effective[0])
    squares += (size - caught) * (negative / masses.effective[1])
    rows = size**2 / squares
    return min(rows, masses.effective[0]) if size > positive else rows


def fraction_inside(masses: Masses, size: float) -> FloatArray:
    """Return the fraction of each tie that is among the first rows (weight `size`), shape (n_scores,)."""
    mass = masses.positive + masses.negative
    return np.clip((size - masses.above[:-1]) / np.where(mass > 0.0, mass, 1.0), 0.0, 1.0)


def positives_above(masses: Masses, size: float) -> float:
    """Return the weight of positives among the first rows of a list, ties in proportion. O(log n_scores)."""
    index = min(int(np.searchsorted(masses.above, size, side="left")), masses.positive.size)
    if index == 0:
        return 0.0
    start, end = float(masses.above[index - 1]), float(masses.above[index])
    part = 1.0 if end <= start else min(1.0, (size - start) / (end - start))
    return float(masses.above_positive[index - 1] + part * masses.positive[index - 1])


def positives_near(masses: Masses, size: float) -> float:
    """Return η, the fraction of positives among the rows near a cutoff. O(log n_scores)."""
    total = float(masses.above[-1])
    at_cutoff = positives_above(masses, size)
    positive, negative = masses.totals
    variance = 0.0
    for own, mass, effective in (
        (at_cutoff, positive, masses.effective[0]),
        (size - at_cutoff, negative, masses.effective[1]),
    ):
        rate = min(1.0, max(0.0, own / mass))
        variance += mass**2 * rate * (1.0 - rate) / effective
    reach = max(NEAR_THE_CUTOFF * math.sqrt(variance), total / sum(masses.effective))
    low, high = max(0.0, size - reach), min(total, size + reach)
    inside = positives_above(masses, high) - positives_above(masses, low)
    return min(1.0, max(0.0, inside / (high - low)))
