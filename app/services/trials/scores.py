"""Scores of a table that lies in columns."""

from __future__ import annotations

import numpy as np

from core.ranker import Floats, Ranker

_ROWS = 1 << 16


def score(ranker: Ranker, X: Floats) -> Floats:
    """Score in blocks: the ranker reads rows, the table lies in columns, and a whole copy would double its memory."""
    return _score(ranker, X, np.empty(len(X)))


def score_labels(ranker: Ranker, X: Floats, n_labels: int) -> Floats:
    """The same with a score per label, of shape (rows, labels)."""
    return _score(ranker, X, np.empty((len(X), n_labels)))


def _score(ranker: Ranker, X: Floats, scores: Floats) -> Floats:
    for start in range(0, len(X), _ROWS):
        block = np.ascontiguousarray(X[start : start + _ROWS])
        scores[start : start + _ROWS] = ranker.score_rows(block)
    return scores
