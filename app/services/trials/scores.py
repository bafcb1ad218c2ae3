"""Scores of a table that lies in columns."""

from __future__ import annotations

import numpy as np

from core.ranker import Floats, Ranker

_ROWS = 1 << 16


def score(ranker: Ranker, X: Floats) -> Floats:
    """Score in blocks: the ranker reads rows, the table lies in columns, and a whole copy would double its memory."""
    scores = np.empty(len(X))
    for start in range(0, len(X), _ROWS):
        block = np.ascontiguousarray(X[start : start + _ROWS])
        scores[start : start + _ROWS] = ranker.score_rows(block)
    return scores
