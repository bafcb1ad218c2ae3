"""Columns of a table that state the label: see `core.metrics.leaks`. `app.datasets.leaks` has the sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from app.ingest.errors import show
from app.ingest.values import DATETIME, spell_as
from core.metrics.leaks import (
    may_number_rows,
    order_area,
    pure_pattern,
    spike_codes,
)
from core.metrics.separation import MIN_NEAR_LIMIT, separation

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_MAX_NAMED = 3
"""Levels of a pattern that are named; of more, their number."""


class LeakPattern(TypedDict):
    """What nearly only rows of one class have; the counts are those of the profiled rows."""

    pattern: str
    positive: bool
    rows: int
    of_rows: int
    others: int
    of_others: int


class Leak(TypedDict):
    """Of a column's profile: whether it states the label, by its values or by their order."""

    leak: bool
    leak_pattern: LeakPattern | None
    order_auc: dict[str, float] | None


class LeakFinder:
    """Looks for the columns of one table that state its label."""

    def __init__(
        self,
        positive: Bools,
        first_half: Bools,
        n_columns: int,
        time_name: str | None = None,
        times: Floats | None = None,
    ) -> None:
        """`times`: the time of each row, of the column `time_name`."""
        self._positive = positive
        self._first_half = first_half
        self._n_columns = n_columns
        self._time_name, self._times = time_name, times

    def find(
        self,
        name: str,
        values: Floats,
        words: Sequence[str] | None,
        type_: str | None,
        auc: float | None,
    ) -> Leak:
        """Return what a column states, given its AUC.

        words: the texts of a categorical column, whose `values` are their indices.
        """
        found = next(self._patterns(name, values, words, type_, auc), None)
        area = None
        if found is None and words is None and type_ != DATETIME and may_number_rows(values):
            area = order_area(values, self._positive, self._first_half, self._n_columns)
        return {
            "leak": found is not None or area is not None,
            "leak_pattern": found,
            "order_auc": None if area is None else area._asdict(),
        }

    def _patterns(
        self,
        name: str,
        values: Floats,
        words: Sequence[str] | None,
        type_: str | None,
        auc: float | None,
    ) -> Iterator[LeakPattern]:
        if words is not None:
            codes = np.where(np.isnan(values), len(words), values).astype(np.intp)
            yield from self._pattern(codes, [*(f"is {show(word)}" for word in words), "is missing"])
            return
        codes, places = spike_codes(values)
        yield from self._pattern(codes, [_place(*each, type_) for each in places])
        if type_ == DATETIME and self._times is not None and name != self._time_name:
            later = np.where(np.isnan(values), 2, values > self._times).astype(np.intp)
            names = ["", f"is later than {self._time_name}", "is missing"]
            # That a date is not later than the row is as it should be.
            yield from (each for each in self._pattern(later, names) if each["pattern"])
        if auc is not None and max(auc, 1.0 - auc) >= MIN_NEAR_LIMIT:
            yield from self._threshold(values, type_, 1.0 if auc > 0.5 else -1.0)

    def _pattern(self, codes: npt.NDArray[np.intp], names: Sequence[str]) -> Iterator[LeakPattern]:
        found = pure_pattern(codes, self._positive, self._first_half, self._n_columns)
        if found is not None:
            yield {
                "pattern": _joined([names[level] for level in found.levels]),
                "positive": found.positive,
                "rows": found.rows,
                "of_rows": found.of_rows,
                "others": found.others,
                "of_others": found.of_others,
            }

    def _threshold(self, values: Floats, type_: str | None, sign: float) -> Iterator[LeakPattern]:
        """Yield the threshold of a number that separates the classes; sign: that of its effect."""
        known = ~np.isnan(values)
        found = separation(self._positive[known], sign * values[known])
        if found.is_separated and found.threshold is not None:
            has = known & (sign * values >= found.threshold)
            side = "at least" if sign > 0.0 else "at most"
            yield {
                "pattern": f"is {side} {spell_as(type_, sign * found.threshold)}",
                "positive": True,
                "rows": int(np.count_nonzero(has & self._positive)),
                "of_rows": int(np.count_nonzero(self._positive)),
                "others": int(np.count_nonzero(has & ~self._positive)),
                "of_others": int(np.count_nonzero(~self._positive)),
            }


def _place(place: str, value: float, type_: str | None) -> str:
    if place in ("known", "missing"):
        return f"is {place}"
    number = spell_as(type_, value)
    return f"is {number}" if place == "at" else f"is {place} {number}"


def _joined(names: Sequence[str]) -> str:
    named = [names[0], *(name.removeprefix("is ") for name in names[1:_MAX_NAMED])]
    if (more := len(names) - _MAX_NAMED) > 0:
        named.append(f"one of {more:,} other values" if more > 1 else "one other value")
    return " or ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
