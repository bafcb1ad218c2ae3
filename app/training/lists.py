"""Lists and grades: metrics within queries, metrics of grades, and the splits of graded rows.

If a dataset has queries, a ranker is trained on pairs of rows within a query, and evaluated query by query: a metric is
computed in each query, and its mean over the queries is reported. Queries whose rows all have the same label are left
out. The rows of a query are a unit (`splits`), so they are always on the same side of a split.

Grades are whole numbers; larger ones are better. Without queries, all graded rows form one list; its metrics are those
of `core.metrics.grades`, on the order of pairs with different grades.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import Columns, Table, read_table
from app.ingest.rows import Hashes, mix
from app.models.objectives import list_metric_of
from app.platform.documents import (
    GradedMetrics,
    GradedOrder,
    ListMetrics,
    Objective,
    TableFile,
    document_of,
    interval_of,
)
from app.platform.documents import ListMetric as ListMetricRecord
from app.platform.errors import Invalid
from app.training.interpretation import score
from app.training.records import TrainPayload
from app.training.splits import (
    InnerSplits,
    SplitData,
    check_one_split,
    divide,
    hold_out_units,
    no_such_validation,
)
from core import metrics as core_metrics
from core import selection

if TYPE_CHECKING:
    from core.base.ranker import Callback, Floats, Ranker

LEVEL = 0.95
"""Confidence level of intervals."""

METRICS = ("auc", "ndcg", "ndcg@5", "ndcg@10", "map", "mrr")
"""Metrics of lists that every model and every evaluation reports."""

MIN_QUERIES = 2
"""Queries with rows of different labels that a part needs, for its metrics: an interval needs two."""

Labels = npt.NDArray[np.int8]


def value_of(
    y: Labels,
    scores: Floats,
    query: Hashes | None,
    weight: Floats | None,
    objective: Objective,
    *,
    graded: bool,
) -> float:
    """Return the objective's mean over the queries; without queries, its value for one list."""
    lists = np.zeros(len(y), dtype=np.uint64) if query is None else query
    (found,) = core_metrics.measure_lists(
        y, scores, lists, [list_metric_of(objective)], graded=graded, sample_weight=weight
    )
    return found.interval.value


def measure(
    y: Labels,
    scores: Floats,
    query: Hashes | None,
    weight: Floats | None,
    *,
    graded: bool,
    objective: Objective | None = None,
    level: float = LEVEL,
) -> ListMetrics | None:
    """Return None without queries, or with too few."""
    if query is None or count_informative(y, query, weight) < MIN_QUERIES:
        return None
    names = list(METRICS)
    if objective is not None and (own := list_metric_of(objective).name) not in names:
        names.append(own)
    metrics = [core_metrics.list_metric_named(name) for name in names]
    measured = core_metrics.measure_lists(
        y, scores, query, metrics, graded=graded, level=level, sample_weight=weight
    )
    present = query if weight is None else query[weight > 0]
    records: list[ListMetricRecord] = [
        {
            "metric": each.metric.name,
            **interval_of(each.interval),
            "queries": each.queries,
            "skipped": each.skipped,
            "effective_queries": float(each.effective_queries),
        }
        for each in measured
    ]
    return {"level": level, "queries": len(np.unique(present)), "metrics": records}


def measure_order(table: Table, scores: Floats, level: float = LEVEL) -> GradedOrder:
    found = core_metrics.measure_graded(
        table.y, scores, level=level, sample_weight=table.weight, group=table.group
    )
    return {
        "c_index": interval_of(found.c_index),
        "mean_auc": interval_of(found.mean_auc),
        "volume": document_of(found.volume),
        "pairwise": document_of(found.pairwise),
    }


def count_informative(y: Labels, query: Hashes, weight: Floats | None) -> int:
    """Rows of weight 0 do not count."""
    if weight is not None:
        y, query = y[weight > 0], query[weight > 0]
    if not len(query):
        return 0
    order = np.argsort(query, kind="stable")
    ordered, labels = query[order], y[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    spread = np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)
    return int(np.count_nonzero(spread))


def check_queries(table: Table, what: str, least: int) -> None:
    """Raise Invalid unless at least `least` queries have rows of different labels. `what` names the rows."""
    if table.query is None:
        return
    found = count_informative(table.y, table.query, table.weight)
    if found < least:
        raise Invalid(
            f"{what} must have at least {least} queries with rows of different labels, got {found}: use "
            "more queries",
            code="too_few_rows",
        )


def check_grades(table: Table, what: str) -> None:
    """Raise Invalid unless rows (of one query, if any) have two different grades. `what` names the rows."""
    y = table.y if table.weight is None else table.y[table.weight > 0]
    if len(np.unique(y)) < 2:
        raise Invalid(
            f"{what} must have rows of at least 2 grades, got {len(np.unique(y))}",
            code="too_few_rows",
        )


def draw_queries(query: Hashes, fraction: float, seed: int) -> npt.NDArray[np.intp]:
    """Return the rows of a random fraction of the queries, ascending; a larger fraction contains a smaller one."""
    units, unit, sizes = np.unique(
        mix(query ^ np.uint64(seed % 2**64)), return_inverse=True, return_counts=True
    )
    ends = np.cumsum(sizes)
    n_units = 1 + int(np.searchsorted(ends, fraction * ends[-1] * (1.0 - 1e-9)))
    return np.flatnonzero(unit < min(n_units, len(units)))


def read_graded(table: TableFile, names: Sequence[str]) -> Table:
    columns = Columns(
        names, table["label"], table["weight"], table["group"], query=table.get("query")
    )
    return read_table(Path(table["path"]), columns)


class GradedSplitData(SplitData):
    """Training and validation rows with grades."""

    def __init__(self, payload: TrainPayload, names: list[str]) -> None:
        spec = payload["spec"]
        validation = spec["validation"]
        whole = read_graded(payload["table"], names)
        self.train, self.validation = whole, None
        match validation["method"]:
            case "none":
                pass
            case "holdout":
                self.train, self.validation = _divide(whole, validation["fraction"], spec["seed"])
            case "dataset":
                assert payload["validation_table"] is not None
                other = read_graded(payload["validation_table"], names)
                self.validation = other.coded_as(whole)
            case method:
                raise no_such_validation("grades", method)
        self._check_parts()

    def fit(self, ranker: Ranker, callback: Callback) -> None:
        train = self.train
        ranker.fit(
            train.coded,
            train.y,
            train.weight,
            groups=None if train.query is not None else train.group,
            query=train.query,
            graded=True,
            callback=callback,
        )

    def thinned(self, fraction: float, seed: int) -> GradedSplitData:
        train, thin = self.train, copy(self)
        if train.query is not None:
            rows = draw_queries(train.query, fraction, seed)
        else:
            rows = selection.draw_rows(train.y, fraction, seed)
        thin.train = train.take(rows).known_to()
        return thin

    def inner(self, inner: InnerSplits, split: int, seed: int) -> GradedSplitData:
        check_one_split(inner, "grades")
        divided = copy(self)
        divided.train, divided.validation = _divide(self.train, inner.fraction, seed)
        divided._check_parts()
        return divided

    def table(self, part: str) -> Table | None:
        return self.train if part == "train" else self.validation

    def value(self, scores: Floats, objective: Objective) -> float:
        rows = self._table_of("validation")
        return value_of(rows.y, scores, rows.query, rows.weight, objective, graded=True)

    def evaluate(
        self, ranker: Ranker, objective: Objective, workdir: Path
    ) -> dict[str, GradedMetrics]:
        return {
            part: measure_graded_rows(table, score(ranker, table), LEVEL, objective)
            for part, table in (("train", self.train), ("validation", self.validation))
            if table is not None
        }

    def _check_parts(self) -> None:
        check_grades(self.train, "the training part")
        check_queries(self.train, "the training part", 1)
        if self.validation is not None:
            check_grades(self.validation, "the validation part")
            check_queries(self.validation, "the validation part", MIN_QUERIES)


def measure_graded_rows(
    table: Table, scores: Floats, level: float, objective: Objective | None = None
) -> GradedMetrics:
    """Measure within queries, or without queries all rows as one list."""
    y = table.y if table.weight is None else table.y[table.weight > 0]
    grades, counts = np.unique(y, return_counts=True)
    lists = measure(
        table.y,
        scores,
        table.query,
        table.weight,
        graded=True,
        objective=objective,
        level=level,
    )
    alone = table.query is None
    return {
        "level": level,
        "grades": [
            {"grade": int(grade), "rows": int(count)}
            for grade, count in zip(grades, counts, strict=True)
        ],
        "lists": lists,
        "order": measure_order(table, scores, level) if alone else None,
    }


def _divide(table: Table, fraction: float, seed: int) -> tuple[Table, Table]:
    return divide(table, *hold_out_units(table, fraction, seed))
