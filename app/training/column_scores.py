"""Scores of a table that lies in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.datasets.matrices import Table

if TYPE_CHECKING:
    from core.ranker import Floats, Ranker


_ROWS = 1 << 16


def score(ranker: Ranker, table: Table) -> Floats:
    """Score in blocks: the ranker reads rows, the table lies in columns, and a whole copy would double its memory."""
    return _score(ranker, table, np.empty(len(table.X)))


def score_labels(ranker: Ranker, table: Table, n_labels: int) -> Floats:
    """The same with a score per label, of shape (rows, labels)."""
    return _score(ranker, table, np.empty((len(table.X), n_labels)))


def _score(ranker: Ranker, table: Table, scores: Floats) -> Floats:
    from core.table import to_matrix

    X, _ = to_matrix(table.coded, ranker.categories_)
    for start in range(0, len(X), _ROWS):
        block = np.ascontiguousarray(X[start : start + _ROWS])
        scores[start : start + _ROWS] = ranker.score_rows(block)
    return scores
