"""What the columns look like: missing values, distinct values, range, mean and the most frequent values."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from core.kernel import kernel

Floats = npt.NDArray[np.float64]

MAX_DISTINCT = 10_000
"""Distinct values are counted exactly below this number; a column with more reports this number."""
_TOP = 10


_TINY = 2.0**-64

_TOTAL, _LOST, _SCALED = range(3)


@kernel(
    numba.types.Tuple((numba.int64, numba.float64, numba.float64))(
        numba.types.Array(numba.float64, 1, "C", readonly=True), numba.float64[::1]
    )
)
def _sum_up(values, sums):  # type: ignore[no-untyped-def]
    """Count the known values and return the least and the greatest.

    Add them to `sums`, with what the additions have lost (Neumaier 1974), so that it does not matter how the rows came
    in batches; and scaled, as the sum of values near the largest double overflows.
    """
    known = 0
    low, high = np.inf, -np.inf
    total, lost, scaled = sums
    for value in values:
        if not np.isnan(value):
            known += 1
            low, high = min(low, value), max(high, value)
            longer = total + value
            if abs(total) >= abs(value):
                lost += (total - longer) + value
            else:
                lost += (value - longer) + total
            total = longer
            scaled += value * _TINY
    sums[_TOTAL], sums[_LOST], sums[_SCALED] = total, lost, scaled
    return known, low, high


class ColumnProfile:
    """Sums up one numeric column, batch by batch; missing values are NaN."""

    def __init__(self) -> None:
        self.rows = 0
        self.missing = 0
        self._low = math.inf
        self._high = -math.inf
        self._sums = np.zeros(3)
        self._values: Floats | None = np.empty(0)
        self._counts: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    @property
    def known(self) -> int:
        """Values that are not missing."""
        return self.rows - self.missing

    @property
    def distinct(self) -> int:
        """Distinct values; where they are too many to be counted, the bound."""
        return MAX_DISTINCT if self._values is None else len(self._values)

    def update(self, values: Floats) -> None:
        """Take a batch of float64 values in."""
        known, low, high = _sum_up(values, self._sums)
        self.rows += len(values)
        self.missing += len(values) - known
        if not known:
            return
        self._low, self._high = min(self._low, low), max(self._high, high)
        if self._values is not None:
            self._count(self._values, values if known == len(values) else values[~np.isnan(values)])

    def _count(self, before: Floats, known: Floats) -> None:
        values, counts = np.unique(known, return_counts=True)
        places = np.searchsorted(before, values)
        is_new = np.append(before, np.nan)[places] != values
        if len(before) + np.count_nonzero(is_new) >= MAX_DISTINCT:
            self._values = None
            return
        self._counts[places[~is_new]] += counts[~is_new]
        if is_new.any():
            self._values = np.insert(before, places[is_new], values[is_new])
            self._counts = np.insert(self._counts, places[is_new], counts[is_new])

    def _mean(self) -> float:
        total, lost, scaled = self._sums.tolist()
        if math.isfinite(total):
            return float((total + lost) / self.known)
        return float(scaled / self.known / _TINY)

    def summary(self) -> dict[str, Any]:
        """Return the members of a column's profile that come from its values."""
        known = self.known > 0
        summary: dict[str, Any] = {
            "missing": self.missing,
            "distinct": self.distinct,
            "min": self._low if known else None,
            "max": self._high if known else None,
            "mean": self._mean() if known else None,
        }
        if self._values is not None:
            order = np.lexsort((self._values, -self._counts))[:_TOP]
            summary["top"] = [
                {"value": float(self._values[i]), "count": int(self._counts[i])} for i in order
            ]
        return summary


class TextProfile:
    """Sums up a label or group column: the most frequent texts, and distinct ones up to the same bound."""

    def __init__(self) -> None:
        self.rows = 0
        self._counts: dict[str, int] | None = {}

    def update(self, counts: dict[str, int]) -> None:
        """Take the counts of a batch in."""
        self.rows += sum(counts.values())
        if self._counts is None:
            return
        for value, count in counts.items():
            self._counts[value] = self._counts.get(value, 0) + count
        if len(self._counts) >= MAX_DISTINCT:
            self._counts = None

    def summary(self) -> dict[str, Any]:
        """Return the members of a column's profile that come from its values; text has no range."""
        summary: dict[str, Any] = {
            "missing": 0,
            "distinct": MAX_DISTINCT if self._counts is None else len(self._counts),
            "min": None,
            "max": None,
            "mean": None,
        }
        if self._counts is not None:
            top = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:_TOP]
            summary["top"] = [{"value": value, "count": count} for value, count in top]
        return summary
