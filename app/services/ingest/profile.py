"""What the columns look like: missing values, distinct values, range, mean and the most frequent values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MAX_DISTINCT = 10_000
"""Distinct values are counted exactly below this number; a column with more reports this number."""
_TOP = 10


class ColumnProfile:
    """Sums up one numeric column, batch by batch; missing values are NaN."""

    def __init__(self) -> None:
        self.rows = 0
        self.missing = 0
        self._low = math.inf
        self._high = -math.inf
        self._mean = 0.0
        self._values: Floats | None = np.empty(0)
        self._counts: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def update(self, values: Floats) -> None:
        """Take a batch of float64 values in."""
        known = values[~np.isnan(values)]
        self.rows += len(values)
        self.missing += len(values) - len(known)
        if not len(known):
            return
        self._low = min(self._low, float(known.min()))
        self._high = max(self._high, float(known.max()))
        seen = self.rows - self.missing
        # The running mean moves by shares, so that a column near the largest double does not overflow its sum.
        self._mean += float(np.sum(known / seen)) - self._mean * (len(known) / seen)
        self._count(known)

    def _count(self, known: Floats) -> None:
        if self._values is None:
            return
        values, counts = np.unique(known, return_counts=True)
        merged, places = np.unique(np.concatenate((self._values, values)), return_inverse=True)
        if len(merged) >= MAX_DISTINCT:
            self._values = None
            return
        totals = np.zeros(len(merged), dtype=np.int64)
        np.add.at(totals, places, np.concatenate((self._counts, counts)))
        self._values, self._counts = merged, totals

    def summary(self) -> dict[str, Any]:
        """Return the members of a column's profile that come from its values."""
        known = self.rows > self.missing
        summary: dict[str, Any] = {
            "missing": self.missing,
            "distinct": MAX_DISTINCT if self._values is None else len(self._values),
            "min": self._low if known else None,
            "max": self._high if known else None,
            "mean": self._mean if known else None,
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
