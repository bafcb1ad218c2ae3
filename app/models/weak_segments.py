"""Weak segments of a model on held-out rows: see `core.metrics.segments`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import Table
from app.ingest.values import spell_as
from app.platform.documents import SegmentCondition, WeakSegment, WeakSegments

if TYPE_CHECKING:
    from core.base.ranker import Floats
    from core.metrics import segments

Rows = npt.NDArray[np.intp]

MAX_CELLS = 4_000_000
"""Rows × features that are looked at, which takes about five seconds; of more rows, a random sample."""
MIN_ROWS = 5_000
"""Rows of a wide table that are looked at, however many features it has."""


def find_weak_segments(
    table: Table,
    rows: Rows | None,
    scores: Floats,
    *,
    fold: npt.NDArray[np.intp] | None = None,
    types: Mapping[str, str],
    seed: int,
) -> WeakSegments | None:
    """Return the segments in which held-out scores rank worse, by the features; None if there are too few rows.

    rows: indices of the scored rows in the table; None: all of them, in order.
    fold: of each scored row, the fold whose ranker scored it.
    types: of the features, by which their values are spelled.
    """
    from core.metrics.segments import category_levels, number_levels, weak_segments

    n_rows, most = len(scores), max(MIN_ROWS, MAX_CELLS // max(1, len(table.names)))
    where = np.arange(n_rows) if rows is None else rows
    if n_rows > most:
        rng = np.random.Generator(np.random.Philox(seed))
        chosen = np.sort(rng.choice(n_rows, most, replace=False, shuffle=False))
        where, scores = where[chosen], scores[chosen]
        fold = None if fold is None else fold[chosen]
    y, weight = table.y[where], None if table.weight is None else table.weight[where]
    if not _has_both_classes(y, weight):
        return None
    columns = {
        name: (number_levels if categories is None else category_levels)(table.column(i)[where])
        for i, (name, categories) in enumerate(zip(table.names, table.categories, strict=True))
    }
    search = weak_segments(
        y,
        scores,
        columns,
        sample_weight=weight,
        group=None if table.group is None else table.group[where],
        fold=fold,
    )
    if not search.n_segments:
        return None
    categories_of = dict(zip(table.names, table.categories, strict=True))
    found: list[WeakSegment] = [
        {
            "conditions": [
                _condition(name, level, categories_of[name], types.get(name))
                for name, level in zip(each.columns, each.levels, strict=True)
            ],
            "verdict": each.verdict,
            "auc": each.auc,
            "auc_of_others": each.auc_of_others,
            "drop_low": each.drop_low,
            "rows": each.rows,
            "positives": each.positives,
            "share": each.share,
        }
        for each in search.found
    ]
    return {"segments": search.n_segments, "rows": len(where), "found": found}


def _has_both_classes(y: npt.NDArray[np.int8], weight: Floats | None) -> bool:
    present = y if weight is None else y[weight > 0.0]
    return bool(present.any() and not present.all())


def _condition(
    column: str,
    level: segments.SegmentLevel,
    categories: tuple[str, ...] | None,
    type_: str | None,
) -> SegmentCondition:
    if level.kind == "missing":
        return {"column": column, "value": None}
    if categories is not None:
        return {"column": column, "value": categories[int(level.low)]}
    low, high = (spell_as(type_, end) for end in (level.low, level.high))
    return {"column": column, "value": low if low == high else f"{low} to {high}"}
