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
_LEAST_SLOTS = 64

_ZERO, _ONE, _HALF = np.uint64(0), np.uint64(1), np.uint64(32)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@kernel(
    numba.types.Tuple(
        (
            numba.int64,
            numba.float64,
            numba.float64,
            numba.bool_,
            numba.uint64[::1],
            numba.int64[::1],
        )
    )(
        numba.types.Array(numba.float64, 1, "C", readonly=True),
        numba.float64[::1],
        numba.uint64[::1],
        numba.int64[::1],
    )
)
def _sum_up(values, sums, bits, counts):  # type: ignore[no-untyped-def]
    """Return the number of known values, the least and the greatest, whether all are whole and none negative, and the
    hash table of distinct ones: their `bits` and the `counts` of their rows, 0 in free places. It has no places once
    there are too many values.

    Add them to `sums`, with what the additions have lost (Neumaier 1974), so that it does not matter how the rows came
    in batches; and scaled, as the sum of values near the largest double overflows.
    """
    known = 0
    low, high, whole = np.inf, -np.inf, True
    total, lost, scaled = sums
    for value in values:
        if not np.isnan(value):
            known += 1
            low, high = min(low, value), max(high, value)
            whole = whole and np.floor(value) == value
            longer = total + value
            if abs(total) >= abs(value):
                lost += (total - longer) + value
            else:
                lost += (value - longer) + total
            total = longer
            scaled += value * _TINY
    sums[_TOTAL], sums[_LOST], sums[_SCALED] = total, lost, scaled
    row = 0 if len(bits) else len(values)
    distinct = np.count_nonzero(counts)
    given = values.view(np.uint64)
    while row < len(values):
        # At most three quarters full: the ways to a free place stay short.
        last, most = np.uint64(len(bits) - 1), min(3 * len(bits) >> 2, MAX_DISTINCT)
        while row < len(values) and distinct < most:
            value = values[row]
            bit = given[row] if value != 0.0 else _ZERO  # -0.0 is 0.0
            row += 1
            if np.isnan(value):
                continue
            mixed = (bit ^ (bit >> _HALF)) * _FACTOR
            place = (mixed ^ (mixed >> _HALF)) & last
            while counts[place] and bits[place] != bit:
                place = (place + _ONE) & last
            if not counts[place]:
                bits[place] = bit
                distinct += 1
            counts[place] += 1
        if distinct == MAX_DISTINCT:
            return known, low, high, whole and low >= 0, bits[:0], counts[:0]
        if distinct == most:
            old, old_counts = bits, counts
            bits, counts = np.zeros(4 * len(old), np.uint64), np.zeros(4 * len(old), np.int64)
            last = np.uint64(len(bits) - 1)
            for slot in range(len(old)):
                if old_counts[slot]:
                    mixed = (old[slot] ^ (old[slot] >> _HALF)) * _FACTOR
                    place = (mixed ^ (mixed >> _HALF)) & last
                    while counts[place]:
                        place = (place + _ONE) & last
                    bits[place], counts[place] = old[slot], old_counts[slot]
    return known, low, high, whole and low >= 0, bits, counts


class ColumnProfile:
    """Sums up one numeric column, batch by batch; missing values are NaN."""

    def __init__(self) -> None:
        self.rows = 0
        self.missing = 0
        self.whole = True
        """Whether all are whole numbers without a sign."""
        self._low = math.inf
        self._high = -math.inf
        self._sums = np.zeros(3)
        self._bits = np.zeros(_LEAST_SLOTS, dtype=np.uint64)
        self._counts = np.zeros(_LEAST_SLOTS, dtype=np.int64)

    @property
    def known(self) -> int:
        """Values that are not missing."""
        return self.rows - self.missing

    @property
    def distinct(self) -> int:
        """Distinct values; where they are too many to be counted, the bound."""
        return int(np.count_nonzero(self._counts)) if len(self._counts) else MAX_DISTINCT

    def update(self, values: Floats) -> None:
        """Take a batch of float64 values in."""
        known, low, high, whole, self._bits, self._counts = _sum_up(
            values, self._sums, self._bits, self._counts
        )
        self.rows += len(values)
        self.missing += len(values) - known
        self.whole = self.whole and whole
        self._low, self._high = min(self._low, low), max(self._high, high)

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
        if len(self._counts):
            found = self._counts > 0
            values, counts = self._bits[found].view(np.float64), self._counts[found]
            top = np.lexsort((values, -counts))[:_TOP]
            summary["top"] = [{"value": float(values[i]), "count": int(counts[i])} for i in top]
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
