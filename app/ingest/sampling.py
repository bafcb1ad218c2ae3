"""Random samples of rows that depend on nothing but the rows' numbers: not on blocks, nor on who draws them.

Each row draws a random number, and the rows with the least numbers are the sample, so a small sample is part of a
larger one. Every n-th row would be no sample: rows may alternate, such as buyer and seller.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from app.ingest.rows import mix

Draws = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]

_STEP = 0x9E3779B97F4A7C15  # of SplitMix64 (Steele, Lea & Flood 2014)


def draws(first: int, n_rows: int) -> Draws:
    """Return what each of `n_rows` rows draws, shape (n_rows,); the first has the number `first`, from 0."""
    return mix(np.arange(first + 1, first + n_rows + 1, dtype=np.uint64) * np.uint64(_STEP))


def limit_of(drawn: Draws, most: int) -> np.uint64:
    """Return what a row may draw at most to be among the `most` rows with the least draws."""
    return np.uint64(np.partition(drawn, most - 1)[most - 1])


@lru_cache(maxsize=8)
def sampled_rows(n_rows: int, most: int) -> Rows:
    """Return the sample of a table, ascending: all rows, or `most` of them. Read-only."""
    if n_rows <= most:
        found = np.arange(n_rows)
    else:
        drawn = draws(0, n_rows)
        found = np.flatnonzero(drawn <= limit_of(drawn, most))
    found.flags.writeable = False
    return found
