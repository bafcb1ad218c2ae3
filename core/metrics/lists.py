"""Metrics within lists (queries) and their means over lists: AUC, NDCG, precision, reciprocal rank.

A query (a search, a visit, a day) is a list of its own: only the order of its rows counts, and scores of two queries
are not compared. A metric is computed in each query and then averaged, so that each query counts alike, whatever its
length. A query in which a metric has no value is left out of its mean, and counted: one grade only leaves no pair to
order, and without a relevant row there is nothing to find.

Of a query whose rows have grades g (0 and 1 for two classes):

* **area**: the fraction of pairs of different grades that are in order, ties counted half; for two classes the AUC. A
  pair weighs the product of its rows' weights;
* **partial area**, for two classes: see `curve`;
* **NDCG at k** (Järvelin & Kekäläinen 2002; Burges et al. 2005): Σ (2^g − 1) / log₂(rank + 1) over the first k rows,
  divided by its greatest value;
* **average precision**: the mean over the relevant rows of the precision at their score; a tie is one threshold;
* **reciprocal rank**: 1 over the rank of the first relevant row;
* **precision at k**: the fraction of relevant rows among the first k, or among all rows of a shorter list.

Where equal scores leave the order open, NDCG, reciprocal rank and precision are means over all orders of the ties
(McSherry & Najork 2008). Weights count the pairs of an area and, by their mean, the query; the ranks of a list count
each of its rows once.

**Intervals.** Queries are drawn independently, their rows are not: the query is the unit. With ω_q the weights of
queries, the variance of θ = Σ ω_q θ_q / Σ ω_q is Σ ω_q² (θ_q − θ)² / (Σ ω_q)² · n / (n − 1), where n is the effective
number of queries; the interval is Student's with n − 1 degrees of freedom, symmetric on the logit scale. If the
queries show no variance it is Wilson's for n trials. Differences of two scorers on the same queries follow as those of
areas: see `comparison`.

References
----------
Burges et al., "Learning to rank using gradient descent", ICML (2005): the gain 2^g − 1.
Järvelin & Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20 (2002): NDCG.
McSherry & Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores",
ECIR (2008).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_value
from core.base.target import MAX_GRADE, as_vector, check_grades, number_units, two_classes
from core.errors import InvalidData, InvalidParameter
from core.kernels import kernel
from core.metrics.estimates import (
    EPSILON,
    Adjustment,
    ComparedMetric,
    Difference,
    Estimates,
    Interval,
    check_metrics,
    check_scorers,
    compare_scorers,
)
from core.metrics.functionals.names import MetricNames
from core.metrics.groups import (
    FloatArray,
    check_weights,
    effective_number,
    finite_vector,
    inner,
    prefix_sums,
)
from core.metrics.window import check_level, check_window

Integers = NDArray[np.int64]


class Lists(NamedTuple):
    """Rows of weight above 0 sorted by query, and within each query from the highest score down."""

    scores: FloatArray
    grade: Integers
    weight: FloatArray
    """Shape (n_rows,)."""
    starts: Integers
    """The rows of query q are those from starts[q] to starts[q + 1]. Shape (n_queries + 1,)."""
    relevant: int
    """Least grade of a relevant row."""


class ListMetric(ABC):
    """Base class of metrics of one list: a number from 0 to 1."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the metric in messages and tables, such as ndcg@10."""

    @abstractmethod
    def of(self, lists: Lists) -> FloatArray:
        """Return the metric of each list.

        Parameters
        ----------
        lists : Lists
            The rows by list.

        Returns
        -------
        ndarray of shape (n_lists,), float64
            One value per list; NaN where it is not defined.
        """


LIST_METRICS: MetricNames[ListMetric] = MetricNames("a metric of lists")
"""The metrics of lists by name."""


@LIST_METRICS.named("auc", "pauc:{fpr_min},{fpr_max}")
@dataclass(frozen=True)
class ListAuc(ListMetric):
    """AUC or partial AUC within a list, as a metric for `measure_lists`.

    Parameters
    ----------
    fpr_min, fpr_max : float in [0, 1]
        Window of false positive rates; the partial area is divided by its width. With more than two grades it must be
        [0, 1].

    Examples
    --------
    >>> from core.metrics import ListAuc, measure_lists
    >>> measure_lists([1, 0, 1, 0], [0.9, 0.4, 0.2, 0.3], [1, 1, 2, 2], [ListAuc()])[0].interval.value
    0.5
    """

    fpr_min: float = 0.0
    fpr_max: float = 1.0

    def __post_init__(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    @property
    def name(self) -> str:
        whole = (self.fpr_min, self.fpr_max) == (0.0, 1.0)
        return "auc" if whole else f"pauc:{self.fpr_min:g},{self.fpr_max:g}"

    def of(self, lists: Lists) -> FloatArray:
        out = _empty(lists)
        if (self.fpr_min, self.fpr_max) == (0.0, 1.0):
            _order_pairs(*lists[:4], out)
            return out
        if len(np.unique(lists.grade)) > 2:
            raise InvalidData(
                f"{self.name} requires labels of two classes, got {len(np.unique(lists.grade))} grades"
            )
        positive = (lists.grade == lists.grade.max()).astype(np.int64)
        _partial_areas(
            lists.scores, positive, *lists[2:4], float(self.fpr_min), float(self.fpr_max), out
        )
        return out


@LIST_METRICS.named("ndcg", "ndcg@{count}")
@dataclass(frozen=True)
class ListNdcg(ListMetric):
    """NDCG of the first rows of a list, with the gain 2^g − 1 of grade g.

    A list without a row of a grade above 0 has no value.

    Parameters
    ----------
    count : int, optional
        Number of first rows, from 1 to 1,000,000,000. Default: all rows.

    Examples
    --------
    >>> from core.metrics import ListNdcg, measure_lists
    >>> found, = measure_lists([2, 0, 1], [0.9, 0.5, 0.1], [7, 7, 7], [ListNdcg(10)], graded=True)
    >>> round(found.interval.value, 4)
    0.9639
    """

    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            _check_count(self.count)

    @property
    def name(self) -> str:
        return "ndcg" if self.count is None else f"ndcg@{self.count}"

    def of(self, lists: Lists) -> FloatArray:
        out = _empty(lists)
        longest = int(np.diff(lists.starts).max())
        count = longest if self.count is None else min(int(self.count), longest)
        sums = prefix_sums(1.0 / np.log2(np.arange(count) + 2.0))
        _ndcg(lists.scores, lists.grade, lists.starts, sums, out)
        return out


@LIST_METRICS.named("map")
@dataclass(frozen=True)
class ListAveragePrecision(ListMetric):
    """Average precision of a list; its mean over lists is MAP.

    A tie is one threshold, as for `AveragePrecision`.

    Examples
    --------
    >>> from core.metrics import ListAveragePrecision, measure_lists
    >>> measure_lists([1, 0, 0, 1], [0.9, 0.4, 0.3, 0.2], [1, 1, 2, 2], [ListAveragePrecision()])[0].interval.value
    0.75
    """

    name = "map"

    def of(self, lists: Lists) -> FloatArray:
        return _relevance(lists, 0, 0)


@LIST_METRICS.named("mrr")
@dataclass(frozen=True)
class ListReciprocalRank(ListMetric):
    """Reciprocal rank of the first relevant row of a list; its mean over lists is MRR.

    Examples
    --------
    >>> from core.metrics import ListReciprocalRank, measure_lists
    >>> measure_lists([1, 0, 0, 1], [0.9, 0.4, 0.3, 0.2], [1, 1, 2, 2], [ListReciprocalRank()])[0].interval.value
    0.75
    """

    name = "mrr"

    def of(self, lists: Lists) -> FloatArray:
        return _relevance(lists, 1, 0)


@LIST_METRICS.named("precision@{count}")
@dataclass(frozen=True)
class ListPrecision(ListMetric):
    """Precision at k of a list: the fraction of relevant rows among its first rows.

    Examples
    --------
    >>> from core.metrics import ListPrecision, measure_lists
    >>> measure_lists([1, 0, 0, 1], [0.9, 0.4, 0.3, 0.2], [1, 1, 2, 2], [ListPrecision(1)])[0].interval.value
    0.5
    """

    count: int
    """Number of first rows, from 1 to 1,000,000,000. A shorter list counts all of its rows."""

    def __post_init__(self) -> None:
        _check_count(self.count)

    @property
    def name(self) -> str:
        return f"precision@{self.count}"

    def of(self, lists: Lists) -> FloatArray:
        return _relevance(lists, 2, int(self.count))


MAX_COUNT = 1_000_000_000


def _check_count(count: object) -> None:
    whole = isinstance(count, Integral) and not isinstance(count, bool)
    if not whole or not 1 <= int(count) <= MAX_COUNT:  # type: ignore[call-overload]
        raise InvalidParameter(f"count must be a whole number from 1 to {MAX_COUNT}, got {count!r}")


def list_metric_named(name: str) -> ListMetric:
    """Return the list metric with a name, such as "ndcg@10" or "map".

    Parameters
    ----------
    name : str
        One of auc, ndcg, map, mrr, or a name with numbers such as pauc:0,0.1, ndcg@10 or precision@5.

    Returns
    -------
    ListMetric

    Examples
    --------
    >>> from core.metrics import list_metric_named
    >>> list_metric_named("ndcg@10")
    ListNdcg(count=10)
    """
    return LIST_METRICS.find(name)


@dataclass(frozen=True)
class ListMeasured:
    """The mean of a metric over lists, with its interval.

    Examples
    --------
    >>> from core.metrics import ListAuc, measure_lists
    >>> (found,) = measure_lists([0, 1, 0, 1, 0, 1], [1, 2, 3, 2, 1, 4], [1, 1, 2, 2, 3, 3], [ListAuc()])
    >>> found.queries, round(found.interval.value, 3)
    (3, 0.667)
    """

    metric: ListMetric
    """The metric."""
    interval: Interval
    """The mean with a confidence interval."""
    queries: int
    """Lists that have a value."""
    skipped: int
    """Lists without a value: those of one grade, or without a relevant row."""
    effective_queries: float
    """Number of lists of equal weight that would give the same variance."""


@dataclass(frozen=True)
class ListComparison:
    """The comparison of scorers by the mean of one metric over lists.

    Attributes
    ----------
    queries, skipped : int
        Lists with and without a value.

    Examples
    --------
    >>> from core.metrics import ListAuc, compare_lists
    >>> y, query = [0, 1, 0, 1, 0, 1], [1, 1, 2, 2, 3, 3]
    >>> (found,) = compare_lists(y, [[1, 2, 3, 2, 1, 4], [2, 1, 1, 3, 1, 2]], query, [ListAuc()])
    >>> [round(each.value, 3) for each in found.values]
    [0.667, 0.667]
    """

    metric: ListMetric
    """The metric."""
    values: tuple[Interval, ...]
    """Mean for each scorer, in their order."""
    differences: tuple[Difference, ...]
    """Every pair of scorers, in their order."""
    joint_p_value: float | None
    """For H₀: all scorers have the same mean."""
    queries: int
    skipped: int


def measure_lists(
    y: ArrayLike,
    scores: ArrayLike,
    query: ArrayLike,
    metrics: Sequence[ListMetric],
    *,
    graded: bool = False,
    relevant: int = 1,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> tuple[ListMeasured, ...]:
    """Compute means of metrics over lists (queries), with intervals that count lists.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Two values, of which the greater is positive; or grades, see `graded`.
    scores : array_like of float, shape (n_samples,)
        Finite scores; the highest comes first.
    query : array_like, shape (n_samples,)
        Numbers, booleans or text. Rows with equal values form one list.
    metrics : sequence of ListMetric
        Such as `ListAuc()`, `ListNdcg(10)` or `ListAveragePrecision()`.
    graded : bool
        Whether y holds grades, whole numbers from 0 to 31; 0 is not relevant.
    relevant : int
        Lowest grade of a relevant row, at least 1, for the metrics that do not use grades. 1 unless `graded`.
    level : float in (0, 1)
        Probability that an interval covers the mean over the population of lists.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights. A list has the mean weight of its rows; rows of weight 0 count as absent.

    Returns
    -------
    tuple of ListMeasured
        In the order of the metrics. O(n log n + n · n_grades).

    Raises
    ------
    InvalidData
        Lengths differ, a value is missing or not finite, labels break their rule, or no list has a value of a metric.
    InvalidParameter
        There is no metric, or a parameter is out of range.

    Examples
    --------
    >>> from core.metrics import ListAuc, measure_lists
    >>> y, query = [1, 0, 0, 1, 1, 0], ["a", "a", "a", "b", "b", "b"]
    >>> found, = measure_lists(y, [3, 2, 1, 1, 2, 3], query, [ListAuc()])
    >>> found.interval.value, found.queries
    (0.5, 2)
    """
    level, metrics = check_level(level), check_metrics(metrics)
    values, weight = _values(y, {"scores": scores}, query, metrics, graded, relevant, sample_weight)
    found = []
    for j, metric in enumerate(metrics):
        mean, queries = _means(metric, values[:, j], weight)
        found.append(
            ListMeasured(
                metric,
                mean.interval(0, 0, mean.effective[0], level),
                queries,
                len(weight) - queries,
                mean.effective[0],
            )
        )
    return tuple(found)


def compare_lists(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    query: ArrayLike,
    metrics: Sequence[ListMetric],
    *,
    graded: bool = False,
    relevant: int = 1,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    adjust: Adjustment = "holm",
) -> tuple[ListComparison, ...]:
    """Compare scorers on the same lists: differences of means with intervals and paired tests.

    Parameters
    ----------
    y, query, metrics, graded, relevant, level, sample_weight
        As for `measure_lists`.
    scores : sequence of array_like of float, each of shape (n_samples,)
        Scores of two or more scorers. Their scales may differ.
    names : sequence of str, optional
        Names of the scorers, all different. Default: "scores[0]", "scores[1]", …
    adjust : {"holm", "none"}
        Adjustment of the p-values over all pairs and metrics.

    Returns
    -------
    tuple of ListComparison
        In the order of the metrics.

    Examples
    --------
    >>> from core.metrics import ListAuc, compare_lists
    >>> y, query = [1, 0, 1, 0, 1, 0], [1, 1, 2, 2, 3, 3]
    >>> found, = compare_lists(y, [[1, 0, 1, 0, 1, 0], [1, 0, 0, 1, 0, 1]], query, [ListAuc()])
    >>> round(found.differences[0].value, 4)
    0.6667
    """
    level, metrics = check_level(level), check_metrics(metrics)
    columns, named = check_scorers(scores, names, adjust)
    values, weight = _values(y, columns, query, metrics, graded, relevant, sample_weight)
    means = [_means(metric, values[:, j], weight) for j, metric in enumerate(metrics)]
    compared = [ComparedMetric(mean, 0, [mean.effective[0]] * len(named)) for mean, _ in means]
    found = compare_scorers(compared, named, level, adjust)
    return tuple(
        ListComparison(
            metric,
            tuple(mean.interval(k, 0, mean.effective[0], level) for k in range(len(named))),
            differences.pairs,
            differences.joint_p_value,
            queries,
            len(weight) - queries,
        )
        for metric, (mean, queries), differences in zip(metrics, means, found, strict=True)
    )


def list_values(
    y: ArrayLike,
    scores: ArrayLike,
    query: ArrayLike,
    metrics: Sequence[ListMetric],
    *,
    graded: bool = False,
    relevant: int = 1,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Compute metrics of each list.

    Parameters
    ----------
    y, scores, query, metrics, graded, relevant, sample_weight
        As for `measure_lists`.

    Returns
    -------
    ndarray of shape (n_metrics, n_queries), float64
        NaN where a list has no value. Queries ascend; those of weight 0 are left out.

    Examples
    --------
    >>> from core.metrics import ListAuc, list_values
    >>> list_values([1, 0, 0, 1, 1], [3, 2, 1, 2, 1], ["a", "a", "b", "b", "c"], [ListAuc()]).tolist()
    [[1.0, 1.0, nan]]
    """
    metrics = check_metrics(metrics)
    columns = {"scores": scores}
    found, _ = _values(y, columns, query, metrics, graded, relevant, sample_weight)
    return np.asarray(found[0])


def take_lists(
    grade: Integers,
    scores: FloatArray,
    weight: FloatArray,
    query: NDArray[np.intp],
    relevant: int = 1,
) -> Lists:
    """Return checked rows as lists, sorted by query and score. O(n log n). Queries are numbered from 0 without gaps.

    `query` is numbered from 0 without gaps; the rows are checked already.
    """
    order = np.lexsort((-scores, query))
    starts = prefix_sums(np.bincount(query).astype(np.float64)).astype(np.int64)
    return Lists(scores[order], grade[order], weight[order], starts, relevant)


def _values(
    y: ArrayLike,
    scores: Mapping[str, ArrayLike],
    query: ArrayLike,
    metrics: Sequence[ListMetric],
    graded: bool,
    relevant: int,
    sample_weight: ArrayLike | None,
) -> tuple[FloatArray, FloatArray]:
    """Return every list's metrics, (n_scorers, n_metrics, n_queries), and the weights of the lists."""
    check_value("graded", bool, graded)
    most = MAX_GRADE if graded else 1
    if type(relevant) is not int or not 1 <= relevant <= most:
        raise InvalidParameter(
            f"relevant must be a whole number from 1 to {most}, got {relevant!r}"
        )
    labels = as_vector("y", y)
    grade = check_grades(labels, labels.size) if graded else two_classes(labels)[1].astype(int)
    columns = [finite_vector(name, column, grade.size) for name, column in scores.items()]
    unit = number_units("query", query, grade.size)
    weight = check_weights(sample_weight, grade.size)
    present = weight > 0
    if not present.all():
        grade, weight = grade[present], weight[present]
        columns = [column[present] for column in columns]
        unit = np.unique(unit[present], return_inverse=True)[1]
    of_query = np.bincount(unit, weight) / np.bincount(unit)
    found = np.empty((len(columns), len(metrics), len(of_query)))
    for k, column in enumerate(columns):
        lists = take_lists(grade, column, weight, unit, relevant)
        for j, metric in enumerate(metrics):
            found[k, j] = metric.of(lists)
    return found, of_query


def _means(metric: ListMetric, values: FloatArray, weight: FloatArray) -> tuple[Estimates, int]:
    """Return means over lists with influences, and the number of lists with a value.

    values: (n_scorers, n_queries), NaN in the same lists for every scorer, as labels decide it.
    """
    has = ~np.isnan(values[0])
    if not has.any():
        raise InvalidData(
            f"{metric.name} is undefined in all {len(weight)} queries: each has rows of only one grade, or "
            "no relevant row"
        )
    values, weight = np.ascontiguousarray(values[:, has]), weight[has]
    total = float(weight.sum())
    means = np.array([[min(1.0, inner(weight, one) / total)] for one in values])
    effective = effective_number(weight)
    influence = None
    if effective > 1.0 + EPSILON:
        scale = math.sqrt(effective / (effective - 1.0)) / total
        influence = (scale * weight * (values - means))[:, None, :]
    return Estimates(means, influence, (effective, effective), effective - 1.0), int(has.sum())


def _empty(lists: Lists) -> FloatArray:
    return np.empty(len(lists.starts) - 1)


def _relevance(lists: Lists, metric: int, count: int) -> FloatArray:
    """Return a metric of the relevant rows of each list; for its number see `_find_relevant`."""
    out = _empty(lists)
    is_relevant = (lists.grade >= lists.relevant).astype(np.int64)
    _find_relevant(lists.scores, is_relevant, lists.starts, metric, count, out)
    return out


_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_N_GRADES = MAX_GRADE + 1


@kernel(numba.void(_FLOATS, _INTEGERS, _FLOATS, _INTEGERS, numba.float64[::1]))
def _order_pairs(scores, grade, weight, starts, out):  # type: ignore[no-untyped-def]
    """Write each list's weighted fraction of pairs of different grades in order; NaN without any. See `Lists`."""
    below, tied = np.zeros(_N_GRADES), np.zeros(_N_GRADES)
    for q in range(len(starts) - 1):
        first, end = starts[q], starts[q + 1]
        most, heaviest = 0, 0.0
        for i in range(first, end):
            most = max(most, grade[i])
            heaviest = max(heaviest, weight[i])
        for g in range(most + 1):
            below[g] = tied[g] = 0.0
        right = pairs = 0.0
        last = end
        while last > first:  # ties from the lowest score up
            start = last
            while start > first and scores[start - 1] == scores[last - 1]:
                start -= 1
                tied[grade[start]] += weight[start] / heaviest
            lower = lower_tied = 0.0
            for g in range(most + 1):
                right += tied[g] * (lower + 0.5 * lower_tied)
                lower += below[g]
                lower_tied += tied[g]
            for g in range(most + 1):
                below[g] += tied[g]
                tied[g] = 0.0
            last = start
        lower = 0.0
        for g in range(most + 1):
            pairs += below[g] * lower
            lower += below[g]
        out[q] = min(1.0, right / pairs) if pairs > 0.0 else np.nan


@kernel(
    numba.void(
        _FLOATS,
        _INTEGERS,
        _FLOATS,
        _INTEGERS,
        numba.float64,
        numba.float64,
        numba.float64[::1],
    )
)
def _partial_areas(scores, positive, weight, starts, fpr_min, fpr_max, out):  # type: ignore[no-untyped-def]
    """Write each list's partial AUC over a window, divided by its width; NaN without rows of both classes."""
    for q in range(len(starts) - 1):
        first, end = starts[q], starts[q + 1]
        heaviest = 0.0
        for i in range(first, end):
            heaviest = max(heaviest, weight[i])
        totals = np.zeros(2)
        for i in range(first, end):
            totals[positive[i]] += weight[i] / heaviest
        if totals[0] == 0.0 or totals[1] == 0.0:
            out[q] = np.nan
            continue
        fpr = tpr = area = 0.0
        above = np.zeros(2)
        i = first
        while i < end:
            j = i
            while j < end and scores[j] == scores[i]:
                above[positive[j]] += weight[j] / heaviest
                j += 1
            next_fpr = min(1.0, above[0] / totals[0]) if j < end else 1.0
            next_tpr = min(1.0, above[1] / totals[1]) if j < end else 1.0
            low, high = max(fpr, fpr_min), min(next_fpr, fpr_max)
            if high > low:
                slope = (next_tpr - tpr) / (next_fpr - fpr)
                area += (high - low) * (tpr + slope * (0.5 * (low + high) - fpr))
            fpr, tpr = next_fpr, next_tpr
            i = j
        out[q] = min(1.0, max(0.0, area / (fpr_max - fpr_min)))


@kernel(numba.void(_FLOATS, _INTEGERS, _INTEGERS, _FLOATS, numba.float64[::1]))
def _ndcg(scores, grade, starts, sums, out):  # type: ignore[no-untyped-def]
    """Write the NDCG of each list; NaN without a grade above 0. sums: of the first ranks' discounts."""
    count = len(sums) - 1
    rows = np.zeros(_N_GRADES, dtype=np.int64)
    for q in range(len(starts) - 1):
        first, end = starts[q], starts[q + 1]
        rows[:] = 0
        found = 0.0
        i = first
        while i < end:
            j, gain = i, 0.0
            while j < end and scores[j] == scores[i]:
                gain += 2.0 ** grade[j] - 1.0
                rows[grade[j]] += 1
                j += 1
            discounts = sums[min(j - first, count)] - sums[min(i - first, count)]
            found += gain * discounts / (j - i)
            i = j
        best, rank = 0.0, 0
        for g in range(_N_GRADES - 1, 0, -1):
            best += (2.0**g - 1.0) * (sums[min(rank + rows[g], count)] - sums[min(rank, count)])
            rank += rows[g]
        out[q] = min(1.0, found / best) if best > 0.0 else np.nan


@kernel(numba.void(_FLOATS, _INTEGERS, _INTEGERS, numba.int64, numba.int64, numba.float64[::1]))
def _find_relevant(scores, relevant, starts, metric, count, out):  # type: ignore[no-untyped-def]
    """Write a metric of each list (0 average precision, 1 reciprocal rank, 2 precision at `count`); NaN if none is
    relevant.
    """
    for q in range(len(starts) - 1):
        first, end = starts[q], starts[q + 1]
        total = 0
        for i in range(first, end):
            total += relevant[i]
        if total == 0:
            out[q] = np.nan
            continue
        size = min(count, end - first)
        value = 0.0
        above = 0
        i = first
        while i < end:
            j, here = i, 0
            while j < end and scores[j] == scores[i]:
                here += relevant[j]
                j += 1
            tied = j - i
            if metric == 0:
                value += here * ((above + here) / (j - first)) / total
            elif metric == 1 and above == 0 and here > 0:
                chance = 1.0  # that none of the rows before is relevant
                for r in range(tied - here + 1):
                    own = here / (tied - r)
                    value += chance * own / (i - first + r + 1)
                    chance *= 1.0 - own
            elif metric == 2:
                inside = min(max(size - (i - first), 0), tied)
                value += here * (inside / tied) / size
            above += here
            i = j
        out[q] = min(1.0, value)
