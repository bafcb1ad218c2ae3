"""The summary of a batch score: the distribution of the scores, the number of flagged rows, and the best rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app.platform.documents import ScoreHistogram

if TYPE_CHECKING:
    import pyarrow as pa

    from core.base.ranker import Floats


N_FIRST = 50
"""Rows of a summary: those with the highest scores."""
MAX_COLUMNS = 150
"""Columns of these rows: kept columns beyond are only in the result."""
MAX_TEXT = 200
"""Characters of a text in them."""
MAX_IGNORED = 100
"""Names of ignored columns that are returned."""
MAX_BINS = 40

_MAX_VALUES = 4096  # distinct values that are counted one by one
_MAX_FINE = 20_000  # bins between the lowest and the highest score, while scores come
_WIDTHS = (1, 2, 5, 10)
_NO_FRACTION = re.compile(r"\.0+(?=Z?$)")  # of a second
_LEAST = 1e-300  # a width that differs from 0


class HistogramBuilder:
    """Counts scores block by block in equal bins whose width is 1, 2 or 5 times a power of ten; exactly, in O(1)
    memory.

    While there are few distinct values, each value is counted. After that, bins with the width of a power of ten are
    counted; when the range of the scores grows, ten bins are merged into one.
    """

    def __init__(self) -> None:
        self._power: int | None = None  # power of ten of the width; None: `_places` are the values
        self._places: Floats = np.empty(0)
        self._counts: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._sum, self._n = 0.0, 0
        self._low, self._high = math.inf, -math.inf

    def add(self, scores: Floats) -> None:
        """Add finite scores, shape (n,)."""
        if len(scores) == 0:
            return
        self._low = min(self._low, float(scores.min()))
        self._high = max(self._high, float(scores.max()))
        with np.errstate(over="ignore"):
            self._sum, self._n = self._sum + float(scores.sum()), self._n + len(scores)
        if self._power is not None:
            self._widen()
            scores = _floor(scores / 10.0**self._power)
        self._merge(*np.unique(scores, return_counts=True))
        if self._power is None and len(self._places) > _MAX_VALUES:
            self._power = self._fine_power()
            self._merge_into(10.0**self._power)

    def _fine_power(self) -> int:
        return math.floor(math.log10(max(self._high / 1000 - self._low / 1000, _LEAST)))

    def _widen(self) -> None:
        assert self._power is not None
        while self._high / _MAX_FINE - self._low / _MAX_FINE > 10.0**self._power:
            self._power += 1
            self._merge_into(10.0)

    def _merge_into(self, width: float) -> None:
        places, counts = _floor(self._places / width), self._counts
        self._places, self._counts = np.empty(0), np.empty(0, dtype=np.int64)
        self._merge(places, counts)

    def _merge(self, places: Floats, counts: npt.NDArray[np.int64]) -> None:
        self._places, where = np.unique(np.concatenate([self._places, places]), return_inverse=True)
        both = np.concatenate([self._counts, counts])
        self._counts = np.bincount(where, both, len(self._places)).astype(np.int64)

    def describe(self, name: str) -> ScoreHistogram:
        """Return at most `MAX_BINS` bins from the lowest to the highest score."""
        if self._n == 0:
            return {
                "name": name,
                "low": None,
                "high": None,
                "mean": None,
                "edges": [],
                "counts": [],
            }
        spread = self._high / (MAX_BINS - 2) - self._low / (MAX_BINS - 2)
        if spread <= max(
            _LEAST, 1e-12 * abs(self._low), 1e-12 * abs(self._high)
        ):  # one value: a bin around it
            edges, counts = [self._low, math.nextafter(self._high, math.inf)], [self._n]
        else:
            edges, counts = self._bins(spread)
        mean = self._sum / self._n
        return {
            "name": name,
            "low": self._low,
            "high": self._high,
            "mean": mean if math.isfinite(mean) else None,
            "edges": edges,
            "counts": counts,
        }

    def _bins(self, spread: float) -> tuple[list[float], list[int]]:
        power = math.floor(math.log10(spread))
        if self._power is not None:
            power = max(power, self._power)
        fine = self._places
        for times in _WIDTHS:
            places = _floor(fine / (times * 10.0 ** (power - (self._power or 0))))
            if places[-1] - places[0] < MAX_BINS:
                break
        first = int(places[0])
        n_bins = int(places[-1]) - first + 1
        counts = np.bincount((places - first).astype(np.int64), self._counts, n_bins)
        edges = [_multiple((first + k) * times, power) for k in range(n_bins + 1)]
        return edges, [int(count) for count in counts]


def _floor(places: Floats) -> Floats:
    """Round down, except what rounding errors left a billionth below an integer: 0.3 / 0.1 is 3."""
    return np.floor(places + 1e-9)


def _multiple(times: int, power: int) -> float:
    """Return `times` · 10^`power`, rounded once."""
    return float(f"{times}e{power}")


def first_rows(best: pa.Table) -> tuple[list[str], list[list[Any]]]:
    """Return names, and rows as JSON values."""
    names = best.column_names
    if len(names) > MAX_COLUMNS:  # the kept columns come first, the scores and reasons last
        at = names.index("score") - 1
        names = [*names[: max(0, MAX_COLUMNS - (len(names) - at))], *names[at:]]
    columns = [_as_json(best.column(name).slice(0, N_FIRST)) for name in names]
    return names, [list(row) for row in zip(*columns, strict=True)]


def _as_json(column: pa.ChunkedArray) -> Sequence[Any]:
    """Return values for JSON."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    elif pa.types.is_temporal(kind):
        texts = column.cast(pa.string()).to_pylist()
        return [text and _NO_FRACTION.sub("", text) for text in texts]
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        column = column.cast(pa.string())
    return [_shown(value) for value in column.to_pylist()]


def _shown(value: Any) -> Any:
    """Return None for a non-finite number, and long texts shortened."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return value[: MAX_TEXT - 1] + "…"
    return value
