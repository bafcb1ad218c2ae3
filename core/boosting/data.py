"""How a booster evaluates scores: the metric on its validation rows, and the sample of its training rows."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from core.base import state
from core.base.columns import ColumnTable, find_nth
from core.base.ranker import Floats
from core.base.splits import draw_spread
from core.base.target import MAX_WEIGHT
from core.base.training import TrainingData, has_pairs
from core.metrics import auc
from core.metrics.groups import inner
from core.metrics.lists import ListAuc, ListMetric, take_lists

Bools = state.Booleans
Integers = state.Integers

# Greatest number of rows, or pairs, of the sample whose training AUC is reported as progress.
SAMPLE_ROWS = 5_000
SAMPLE_SEED = 0


class Evaluation(NamedTuple):
    """Rows to score during a fit, and the metric of their scores."""

    X: Any
    """For its scores, `WeakLearner.extend` makes stand-ins of a table that is read column by column. Shape (n_rows,
    n_features), float64, C-contiguous; ColumnTable or StandIns."""
    shape: tuple[int, ...]
    """Shape of their scores: (n_rows,), or (n_rows, n_labels)."""
    size: int
    """Number of rows, or of pairs: the cost of an evaluation."""
    metric: Callable[[Floats], float]
    """The AUC, or another number that is higher for a better ranking."""
    name: str = "validation_auc"
    """Name of the metric in the callback's figures."""


def evaluate(
    data: TrainingData, metric: ListMetric | None = None, name: str = "validation_auc"
) -> Evaluation:
    """Evaluate rows by the AUC (of several labels over all (row, label) pairs), or the metric's mean over queries."""
    n_rows, n_labels = len(data.positive), data.positive.size // len(data.positive)
    X = data.X if isinstance(data.X, ColumnTable) else np.ascontiguousarray(data.X)
    if data.query is not None:
        rows = data.target, data.weight, data.query.astype(np.intp)
        mean = partial(_mean_over_queries, ListAuc() if metric is None else metric, *rows)
        return Evaluation(X, (n_rows,), n_rows, mean, name)
    positive, weight = data.positive.ravel(), np.repeat(data.weight, n_labels)
    return Evaluation(
        X, data.positive.shape, n_rows, lambda scores: auc(positive, scores.ravel(), weight), name
    )


def _mean_over_queries(
    metric: ListMetric, grade: Integers, weight: Floats, query: Integers, scores: Floats
) -> float:
    of_query = np.bincount(query, weight) / np.bincount(query)
    values = metric.of(take_lists(grade, scores, weight, query))
    has = ~np.isnan(values)
    if not has.any():
        return math.nan
    return min(1.0, inner(of_query[has], values[has]) / float(of_query[has].sum()))


def draw_sample(data: TrainingData) -> TrainingData:
    """Return a sample of about `SAMPLE_ROWS` training rows: equally many per stratum, or whole queries."""
    if len(data.positive) <= SAMPLE_ROWS:
        return data
    return _sample_strata(data) if data.query is None else _sample_queries(data, data.query)


def _sample_strata(data: TrainingData) -> TrainingData:
    """Sample `SAMPLE_ROWS` rows, equally many with and without the label (or any of several labels).

    A stratum with fewer rows is used completely, and the others get more. Each sampled row has the total weight of the
    rows that it represents.
    """
    has = data.positive if data.positive.ndim == 1 else np.any(data.positive, axis=1)
    strata = [mask for mask in (has, ~has) if mask.any()]
    sizes = [int(np.count_nonzero(mask)) for mask in strata]
    taken, scale = np.zeros(len(data.positive), dtype=np.bool_), np.empty(0)
    chosen = np.empty(0, dtype=np.int64)
    for mask, size in zip(strata, sizes, strict=True):
        most = min(max(SAMPLE_ROWS // len(strata), SAMPLE_ROWS - min(sizes)), size)
        some = find_nth(mask, draw_spread(size, most, SAMPLE_SEED))
        taken[some] = True
        chosen, scale = np.append(chosen, some), np.append(scale, np.full(most, size / most))
    sample = data.take(taken)
    scale = scale[np.argsort(chosen)]
    return replace(sample, weight=np.minimum(sample.weight * scale, MAX_WEIGHT))


def _sample_queries(data: TrainingData, query: Integers) -> TrainingData:
    """Sample whole queries; of a list longer than the sample, rows of each grade."""
    n_rows, sizes = len(query), np.bincount(query)
    if sizes.max() > SAMPLE_ROWS:
        order = np.lexsort((data.target, query))
        taken = np.zeros(n_rows, dtype=np.bool_)
        taken[order[draw_spread(n_rows, SAMPLE_ROWS, SAMPLE_SEED)]] = True
    else:
        n_taken = max(int(len(sizes) * SAMPLE_ROWS / n_rows), 1)
        queries = np.zeros(len(sizes), dtype=np.bool_)
        queries[draw_spread(len(sizes), n_taken, SAMPLE_SEED)] = True
        taken = queries[query]
    sample = data.take(taken)
    return sample.with_pairs() if has_pairs(sample.target, sample.query).any() else data
