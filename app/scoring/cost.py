"""The cost of scoring, measured when a model is loaded, so that expensive requests do not delay others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

INLINE_SECONDS = 0.005
"""Longest that a request may occupy the event loop: all other requests wait for so long."""
PERMIT_SECONDS = 0.25
"""Longest that a request may occupy a thread without a permit."""
_BYTE_SECONDS = 1e-7
_ROW_SECONDS = 2e-6
_WORD_SECONDS = 1e-6
_TEXT_SECONDS = 4e-6
"""Seconds to read a byte of a body, and besides a row and, in JSON, a category (from a string or a number) and another
string. A number or a boolean in quotes takes 1 to 4 µs, a date 3 to 9.
"""

_MOST_ROWS = 64
_ENOUGH_SECONDS = 0.02  # seconds of measuring
_REPEATS = 3


class ScoringCost(NamedTuple):
    """The cost of a ranker in seconds: per call, and per row in the call."""

    call: float
    row: float

    def of(self, rows: int) -> float:
        """Return the seconds for a call with this many rows."""
        return self.call + rows * self.row


def of_reading(n_bytes: int, rows: int = 0, words: int = 0, texts: int = 0) -> float:
    """Estimate the seconds to read a body; `words` and `texts` are categories and other strings of JSON."""
    beside_bytes = rows * _ROW_SECONDS + words * _WORD_SECONDS + texts * _TEXT_SECONDS
    return n_bytes * _BYTE_SECONDS + beside_bytes


def count_texts(body: bytes) -> int:
    """Return the number of strings in JSON that are no names; more, if strings contain quotes."""
    names = body.count(b'":') - body.count(b'\\":')
    return max(0, body.count(b'"') // 2 - names)


def measure(
    score: Callable[[Floats], object], n_categories: list[int | None], seed: int = 0
) -> ScoringCost:
    """Measure a ranker on random rows: numbers of all magnitudes, and categories.

    First one row is scored, then more and more rows, up to 64 or until a call takes long.
    """
    X = _draw(n_categories, seed)
    score(X[:1])  # the first call loads kernels
    first = last = min(_time(score, X[:1]) for _ in range(_REPEATS))
    n = 1
    while n < _MOST_ROWS and last < _ENOUGH_SECONDS:
        n *= 4
        last = min(_time(score, X[:n]) for _ in range(_REPEATS))
    row = first if n == 1 else max(0.0, last - first) / (n - 1)
    return ScoringCost(max(0.0, first - row), row)


def _time(score: Callable[[Floats], object], X: Floats) -> float:
    started = time.perf_counter()
    score(X)
    return time.perf_counter() - started


def _draw(n_categories: list[int | None], seed: int) -> Floats:
    """Draw random rows to time a ranker on: numbers of all magnitudes, or category positions below `n_categories`; the
    first row is all missing.
    """
    rng = np.random.default_rng(seed)
    shape = (_MOST_ROWS, len(n_categories))
    X = rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-3.0, 6.0, shape)
    for feature, count in enumerate(n_categories):
        if count is not None:
            X[:, feature] = rng.integers(count, size=_MOST_ROWS) if count else np.nan
    X[0] = np.nan
    return X
