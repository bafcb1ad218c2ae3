"""A few rows of each part of a table, kept beside a model so that it can be asked how its scores depend on features.

They are people's data: they go when the dataset goes that they came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from app.datasets.matrices import Floats, Rows, Table
from app.platform.sql import Json
from app.platform.tables import ModelSample

if TYPE_CHECKING:
    from core.ranker import Floats, Ranker

MOST_ROWS = 1_000
LEAST_ROWS = 100
MOST_VALUES = 500_000
"""A sample's rows, and its rows times features, are no more: 4 MB, or 100 rows of a wider table."""

_ROWS_AT_ONCE = 1 << 16


def draw(table: Table, seed: int, rows: Rows | None = None) -> Table:
    """A few rows of weight above 0, of all or of some, in random order: the first of them are a sample, too."""
    among = np.arange(len(table.X)) if rows is None else rows
    return table.take(_draw(table, seed, among, _most(table)))


def draw_classes(table: Table, seed: int) -> Table:
    """As many rows of one class as of the other, or all that there are: what AUC is estimated from best."""
    half = _most(table) // 2
    drawn = [_draw(table, seed, np.flatnonzero(table.y == y), half) for y in (0, 1)]
    return table.take(np.concatenate(drawn))


def _most(table: Table) -> int:
    n_features: int = table.X.shape[1]
    return min(MOST_ROWS, max(LEAST_ROWS, MOST_VALUES // n_features))


def _draw(table: Table, seed: int, among: Rows, most: int) -> Rows:
    if table.weight is not None:
        among = among[table.weight[among] > 0]
    generator = np.random.Generator(np.random.Philox(key=seed % 2**64))
    return generator.permutation(among)[:most]


def as_scored(sample: Table, ranker: Ranker) -> Table:
    """The rows with the ranker's own categories, which may be fewer than the table's."""
    from core.table import to_matrix

    X, categories = to_matrix(sample.coded, ranker.categories_)
    return replace(sample, X=X, categories=categories)


def write(workdir: Path, part: str, sample: Table) -> Json:
    """Put the rows into a file, as they will lie in SQL."""
    name = f"{part}.sample"
    weight = b"" if sample.weight is None else sample.weight.astype("<f8").tobytes()
    (workdir / name).write_bytes(sample.X.astype("<f8").tobytes("C") + weight)
    return {"file": name, "rows": len(sample.X), "features": sample.X.shape[1]}


def row_of(
    model_id: str, part: str, dataset_id: str, written: Mapping[str, Any], workdir: Path
) -> ModelSample:
    """What `write` has written, as a row."""
    data = (workdir / written["file"]).read_bytes()
    end = 8 * written["rows"] * written["features"]
    return ModelSample(
        model_id=model_id,
        part=part,
        dataset_id=dataset_id,
        rows=written["rows"],
        values=data[:end],
        weight=data[end:] or None,
    )


def read(row: ModelSample) -> tuple[Floats, Floats]:
    """The rows, of shape (rows, features), and their weights."""
    values = np.frombuffer(row.values, dtype="<f8").reshape(row.rows, -1)
    if row.weight is None:
        return values, np.ones(row.rows)
    return values, np.frombuffer(row.weight, dtype="<f8")


def score(ranker: Ranker, table: Table) -> Floats:
    """Score in blocks: the ranker reads rows, the table lies in columns, and a whole copy would double its memory."""
    return _score(ranker, table, np.empty(len(table.X)))


def score_labels(ranker: Ranker, table: Table, n_labels: int) -> Floats:
    """The same with a score per label, of shape (rows, labels)."""
    return _score(ranker, table, np.empty((len(table.X), n_labels)))


def _score(ranker: Ranker, table: Table, scores: Floats) -> Floats:
    from core.table import to_matrix

    X, _ = to_matrix(table.coded, ranker.categories_)
    for start in range(0, len(X), _ROWS_AT_ONCE):
        block = np.ascontiguousarray(X[start : start + _ROWS_AT_ONCE])
        scores[start : start + _ROWS_AT_ONCE] = ranker.score_rows(block)
    return scores
