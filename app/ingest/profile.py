"""Profiles of a table's columns: missing and distinct values, range, mean, most frequent values, duplicate rows."""

from __future__ import annotations

import base64
import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from app.ingest.errors import BadTable, show
from app.ingest.leaks import Leak, LeakFinder
from app.ingest.over_time import OverTime
from app.ingest.rows import (
    FACTOR_1,
    FACTOR_2,
    NO_TEXT,
    SHIFT_1,
    SHIFT_2,
    SHIFT_3,
    Hashes,
    hash_text,
    hash_word,
    hash_words,
    mix,
)
from app.ingest.sampling import sampled_rows
from app.ingest.values import DATETIME
from core.base.columns import MIN_DISTINCT_ROWS
from core.kernels import kernel
from core.metrics.column import QUANTILES, ColumnSurvey, binary_auc, survey_column
from core.metrics.leaks import halves

Floats = npt.NDArray[np.float64]
Json = dict[str, Any]
Integer = TypeVar("Integer", bound=np.integer[Any])

MIN_IDENTIFIERS = 20
"""Least known values of an identifier column: among fewer values, nearly all may differ by chance."""
MAX_DISTINCT = 10_000
"""Distinct values are counted exactly below this number; a column with more reports this number."""
_MIN_DAYS = 5
"""Distinct values that are days: of whole numbers of eight digits between the years, 1 in 27 is one by chance."""
_YEARS = 1900, 2100
BOUND = "distinct_is_bound"
"""Of a column's profile: True if it has the stated number of distinct values or more."""
_TOP = 10

_TINY = 2.0**-64
_TOTAL, _LOST, _SCALED, _REPEATED = range(4)
_MIN_SLOTS = 64

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
    """Update `sums` by a batch; returns statistics and the hash table of distinct values.

    Returns the number of known values, the least and greatest, whether all are whole and none negative, and the table:
    `bits` of values and `counts` of rows, 0 in free slots. It has no slots once there are too many values; the last of
    `sums` is then positive if one of them has several rows.

    Sums carry what the additions have lost (Neumaier 1974), so that it does not matter how the rows came in batches,
    and are scaled, because the sum of values near the largest double overflows.
    """
    known = 0
    low, high, whole = np.inf, -np.inf, True
    total, lost, scaled = sums[_TOTAL], sums[_LOST], sums[_SCALED]
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
        # At most three quarters full, so that searches for a free slot stay short.
        last, most = np.uint64(len(bits) - 1), min(3 * len(bits) >> 2, MAX_DISTINCT)
        while row < len(values) and distinct < most:
            value = values[row]
            bit = given[row] if value != 0.0 else _ZERO  # -0.0 is 0.0
            row += 1
            if np.isnan(value):
                continue
            mixed = (bit ^ (bit >> _HALF)) * _FACTOR
            slot = (mixed ^ (mixed >> _HALF)) & last
            while counts[slot] and bits[slot] != bit:
                slot = (slot + _ONE) & last
            if not counts[slot]:
                bits[slot] = bit
                distinct += 1
            counts[slot] += 1
        if distinct == MAX_DISTINCT:
            sums[_REPEATED] += np.count_nonzero(counts > 1)
            return known, low, high, whole and low >= 0, bits[:0], counts[:0]
        if distinct == most:
            old, old_counts = bits, counts
            bits, counts = np.zeros(4 * len(old), np.uint64), np.zeros(4 * len(old), np.int64)
            last = np.uint64(len(bits) - 1)
            for i in range(len(old)):
                if old_counts[i]:
                    mixed = (old[i] ^ (old[i] >> _HALF)) * _FACTOR
                    slot = (mixed ^ (mixed >> _HALF)) & last
                    while counts[slot]:
                        slot = (slot + _ONE) & last
                    bits[slot], counts[slot] = old[i], old_counts[i]
    return known, low, high, whole and low >= 0, bits, counts


def as_json(numbers: npt.NDArray[Any]) -> str:
    """Return non-negative integers as text (type and bytes): JSON lists need several times the space."""
    short = numbers.astype(np.min_scalar_type(numbers.max(initial=0)))
    return f"{short.dtype.str}:{base64.b64encode(short.tobytes()).decode()}"


def from_json(text: str, dtype: type[Integer]) -> npt.NDArray[Integer]:
    """Inverse of `as_json`."""
    short, _, content = text.partition(":")
    return np.frombuffer(base64.b64decode(content), short).astype(dtype)


class NumberProfile:
    def __init__(self) -> None:
        self.rows = 0
        self.missing = 0
        self.whole = True
        """True if all values are whole numbers and none is negative."""
        self._low = math.inf
        self._high = -math.inf
        self._sums = np.zeros(4)
        self._bits = np.zeros(_MIN_SLOTS, dtype=np.uint64)
        self._counts = np.zeros(_MIN_SLOTS, dtype=np.int64)

    @property
    def known(self) -> int:
        """The number of values that are not missing."""
        return self.rows - self.missing

    @property
    def distinct(self) -> int:
        """The number of distinct values, at most the bound."""
        return int(np.count_nonzero(self._counts)) if len(self._counts) else MAX_DISTINCT

    def is_identifier(self) -> bool:
        repeated = self._sums[_REPEATED] > 0 or self._counts.max(initial=0) > 1
        has_room = self._high - self._low >= self.known - 1
        return self.known >= MIN_IDENTIFIERS and self.whole and has_room and not repeated

    def written_day(self) -> str | None:
        """Return the first value if all are days written as numbers, such as 20240131, and some differ; else None."""
        values = np.sort(self._bits[self._counts > 0].view(np.float64))
        if not self.whole or len(values) < _MIN_DAYS:
            return None
        year, month, day = values // 10_000, values // 100 % 100, values % 100
        is_day = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        is_day &= (_YEARS[0] <= year) & (year <= _YEARS[1])
        return f"{values[0]:.0f}" if is_day.all() else None

    def update(self, values: Floats) -> tuple[float, float]:
        """Add a batch; returns its least and greatest value, infinities if all are missing."""
        known, low, high, whole, self._bits, self._counts = _sum_up(
            values, self._sums, self._bits, self._counts
        )
        self.rows += len(values)
        self.missing += len(values) - known
        self.whole = self.whole and whole
        self._low, self._high = min(self._low, low), max(self._high, high)
        return low, high

    def state(self) -> Json:
        """Return the state as JSON, for `absorb`. Doubles are bits, because they may be infinite."""
        found = self._counts > 0
        doubles = np.array([self._low, self._high, *self._sums])
        return {
            "rows": self.rows,
            "missing": self.missing,
            "whole": self.whole,
            "doubles": doubles.view(np.int64).tolist(),
            "bits": as_json(self._bits[found]),
            "counts": as_json(self._counts[found]),
            "all": len(self._counts) > 0,
        }

    def absorb(self, state: Json) -> None:
        """Add the profile of further rows from `state`. No batch can be added afterwards."""
        self.rows += state["rows"]
        self.missing += state["missing"]
        self.whole = self.whole and state["whole"]
        low, high, total, lost, scaled, repeated = np.array(state["doubles"], np.int64).view(
            np.float64
        )
        self._low, self._high = min(self._low, float(low)), max(self._high, float(high))
        with np.errstate(
            all="ignore"
        ):  # the plain sum may overflow, and the scaled one is used then
            before = self._sums[_TOTAL]
            longer = before + total
            larger, smaller = (before, total) if abs(before) >= abs(total) else (total, before)
            self._sums += (0.0, lost + ((larger - longer) + smaller), scaled, repeated)
        self._sums[_TOTAL] = longer
        known = self._counts > 0
        bits = np.append(self._bits[known], from_json(state["bits"], np.uint64))
        counts = np.append(self._counts[known], from_json(state["counts"], np.int64))
        complete = len(self._counts) > 0 and state["all"]
        self._bits, where = np.unique(bits, return_inverse=True)
        self._counts = np.bincount(where, counts, len(self._bits)).astype(np.int64)
        if not complete or len(self._bits) >= MAX_DISTINCT:
            self._sums[_REPEATED] += np.count_nonzero(self._counts > 1)
            self._bits, self._counts = self._bits[:0], self._counts[:0]
        elif not len(self._bits):
            self._bits, self._counts = np.zeros(1, np.uint64), np.zeros(1, np.int64)

    def _mean(self) -> float:
        total, lost, scaled, _ = self._sums.tolist()
        if math.isfinite(total):
            return float((total + lost) / self.known)
        return float(scaled / self.known / _TINY)

    def summary(self) -> dict[str, Any]:
        known = self.known > 0
        summary: dict[str, Any] = {
            "missing": self.missing,
            "distinct": self.distinct,
            "min": self._low if known else None,
            "max": self._high if known else None,
            "mean": self._mean() if known else None,
        }
        if not len(self._counts):
            summary[BOUND] = True
        else:
            found = self._counts > 0
            values, counts = self._bits[found].view(np.float64), self._counts[found]
            top = np.lexsort((values, -counts))[:_TOP]
            summary["top"] = [{"value": float(values[i]), "count": int(counts[i])} for i in top]
        return summary


class TextProfile:
    """The profile of a label or group column: its most frequent texts and their number, both up to the same limit."""

    def __init__(self) -> None:
        self.rows = 0
        self._counts: dict[str, int] | None = {}

    def update(self, counts: dict[str, int]) -> None:
        self.rows += sum(counts.values())
        if self._counts is None:
            return
        for value, count in counts.items():
            self._counts[value] = self._counts.get(value, 0) + count
        if len(self._counts) >= MAX_DISTINCT:
            self._counts = None

    def state(self) -> Json:
        """Return the state as JSON, for `absorb`."""
        return {"rows": self.rows, "counts": self._counts}

    def absorb(self, state: Json) -> None:
        """Add the profile of further rows from `state`."""
        if state["counts"] is None:
            self.rows += state["rows"]
            self._counts = None
        else:
            self.update(state["counts"])

    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = {
            "missing": 0,
            "distinct": MAX_DISTINCT if self._counts is None else len(self._counts),
            "min": None,
            "max": None,
            "mean": None,
        }
        if self._counts is None:
            summary[BOUND] = True
        else:
            top = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:_TOP]
            summary["top"] = [{"value": value, "count": count} for value, count in top]
        return summary


class TableReader(AbstractContextManager["TableReader"]):
    """Reads columns of a typed table by row groups. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path)
        self._index = {name: i for i, name in enumerate(self._file.schema_arrow.names)}

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def rows(self) -> int:
        count: int = self._file.metadata.num_rows
        return count

    @property
    def groups(self) -> int:
        count: int = self._file.num_row_groups
        return count

    def rows_of(self, group: int) -> int:
        count: int = self._file.metadata.row_group(group).num_rows
        return count

    def read(self, group: int, name: str) -> pa.Array:
        """Return the part of a column in a row group."""
        return self._read(group, [name]).column(0).combine_chunks()

    def _read(self, group: int, names: Sequence[str]) -> pa.Table:
        # By its index: a name with a dot would be read as a path, and looking names up again and again takes time.
        indices = [self._index[name] for name in names]
        table = self._file.reader.read_row_group(group, column_indices=indices, use_threads=False)
        return table.select(names)

    @property
    def sampled_rows(self) -> Rows:
        """The rows of `sample`, ascending."""
        return sampled_rows(self.rows, MAX_SAMPLED_ROWS)

    def sample(self, name: str) -> pa.ChunkedArray:
        """Return all rows, or a random sample of a long table; text is not dictionary-encoded."""
        return next(self.samples([name]))

    def samples(self, names: Sequence[str]) -> Iterator[pa.ChunkedArray]:
        """Yield `sample` of each column; several columns are read at a time."""
        chosen = self.sampled_rows
        for at in range(0, len(names), _COLUMNS_AT_ONCE):
            first, parts = 0, []
            for group in range(self.groups):
                part = self._read(group, names[at : at + _COLUMNS_AT_ONCE])
                own = _within(chosen, first, len(part))
                parts.append(part if len(own) == len(part) else part.take(pa.array(own)))
                first += len(part)
            for column in pa.concat_tables(parts).columns:
                text = pa.types.is_dictionary(column.type)
                yield column.cast(column.type.value_type) if text else column

    def column(self, name: str) -> Iterator[pa.Array]:
        """Yield a column by row groups."""
        return (self.read(group, name) for group in range(self.groups))


_NAN = np.array([np.nan]).view(np.uint64)[0]


@kernel(
    numba.void(
        numba.uint64[::1], numba.types.Array(numba.float64, 1, "C", readonly=True), numba.uint64
    )
)
def add_numbers(hashes, values, key):  # type: ignore[no-untyped-def]
    """Hash each row's number with the column's key; -0.0 equals 0.0, and all NaNs are equal."""
    bits = values.view(np.uint64)
    for row in range(len(values)):
        value = values[row]
        one = bits[row] if value != 0.0 else np.uint64(0)
        one = (_NAN if np.isnan(value) else one) ^ key
        one = (one ^ (one >> SHIFT_1)) * FACTOR_1
        one = (one ^ (one >> SHIFT_2)) * FACTOR_2
        hashes[row] += one ^ (one >> SHIFT_3)


def add_column(
    hashes: Hashes, name: str, values: npt.NDArray[np.float64], words: Hashes | None = None
) -> None:
    """Update each row's hash with its value of a column and the column's name.

    `values` are numbers, NaN where missing, or of a categorical column positions in `words`, the hashes of its texts.
    """
    key = np.uint64(hash_word(name))
    if words is None:
        add_numbers(hashes, np.ascontiguousarray(values), key)
    else:
        of_code = mix(np.append(words, np.uint64(NO_TEXT)) ^ key)
        for start in range(0, len(values), MAX_SAMPLED_ROWS):
            some = values[start : start + MAX_SAMPLED_ROWS]
            codes = np.where(np.isnan(some), -1.0, some).astype(np.intp)
            hashes[start : start + len(some)] += of_code[codes]


Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Callback = Callable[[], object]

MAX_SAMPLED_ROWS = 1 << 17
MAX_KEPT_CELLS = 1 << 23
"""Most rows of a table whose columns are all kept in memory; of a longer table the sampled rows are read back."""
MAX_HASHES = 1 << 19
"""Most hashes that are kept; beyond that the odd half is dropped. Equal rows have equal hashes, so they stay or go
together.
"""
_MAX_AT_ONCE = 2
_COLUMNS_AT_ONCE = 32
_SHRINKAGE = 10.0  # rows of the average kind that a category's share is mixed with
_SEED = 0
_LOWEST_BIT = np.uint64(1)
_NO_HASHES = np.empty(0, np.uint64)


class Survey:
    """Collects a sample of a table's features and hashes of its rows while it is written. The label, if any, is 0 or 1.

    If the number of rows is known, the sample is drawn beforehand.
    """

    def __init__(self, features: Sequence[str], label: str | None, rows: int | None = None) -> None:
        self._features = list(features)
        self._label = label
        self._texts: dict[str, _Texts] = {}
        self._duplicates = DuplicateCounter()
        self._rows = 0
        self._drawn = sampled_rows(MAX_SAMPLED_ROWS if rows is None else rows, MAX_SAMPLED_ROWS)
        self._most_rows = MAX_SAMPLED_ROWS if rows is None else rows
        self._n_held = 0
        n_expected = (
            0 if rows is None else min(len(self._drawn), MAX_KEPT_CELLS // max(1, len(features)))
        )
        self._held: dict[str, _Growing] | None = defaultdict(partial(_Growing, n_expected))
        self._counted = True

    def add(self, columns: Mapping[str, pa.Array], n_rows: int) -> None:
        """Add the next rows to the sample and to the count of duplicates."""
        held = self._draw_among(n_rows)
        hashes = np.zeros(n_rows, dtype=np.uint64)
        for name in self._features:
            values = self._numbers(name, columns[name])
            add_column(hashes, name, values, self._hashes_of(name))
            if self._held is not None:
                self._held[name].add(values[held])
        label = None if self._label is None else columns[self._label].to_numpy()
        self._duplicates.add(hashes, label)
        if label is not None and self._held is not None:
            self._held[str(self._label)].add(label[held])

    def sample(self, columns: Mapping[str, pa.Array], n_rows: int) -> None:
        """Add the next rows to the sample only; `absorb` adds their duplicates."""
        held = self._draw_among(n_rows)
        if self._held is None or not len(held):
            return
        of_rows = pa.array(held)
        for name in self._features:
            self._held[name].add(self._numbers(name, columns[name].take(of_rows)))
        if self._label is not None:
            self._held[self._label].add(columns[self._label].take(of_rows).to_numpy())

    def forget_duplicates(self) -> None:
        """Discard the count of duplicates: they are counted from the written table."""
        self._counted = False

    def _draw_among(self, n_rows: int) -> Rows:
        """Return which of the next rows are in the sample."""
        first, self._rows = self._rows, self._rows + n_rows
        held = _within(self._drawn, first, n_rows)
        self._n_held += len(held)
        too_many = self._n_held * len(self._features) > MAX_KEPT_CELLS
        if too_many or self._rows > self._most_rows:
            self._held = None
        return held

    def state(self) -> Json:
        """Return the state of the duplicates as JSON, for `absorb`."""
        return {"features": self._features, "duplicates": self._duplicates.state()}

    def absorb(self, state: Json) -> None:
        """Add the duplicates of further rows from `state`; with other features, they become unknown."""
        self._counted = self._counted and state["features"] == self._features
        self._duplicates.absorb(state["duplicates"])

    def describe(
        self,
        path: Path,
        features: Sequence[str],
        callback: Callback,
        types: Mapping[str, str] | None = None,
        row_time: str | None = None,
        weight: str | None = None,
        group: str | None = None,
    ) -> Json:
        """Return the statistics of the features of the written table.

        An exception of the callback stops the survey. Returns `columns`, one entry for each feature by name, `rows`,
        the number of rows in the sample, the counts of `duplicates`, and what has changed over time (`over_time`; None
        without times).

        types: of the features, by which their values are spelled; default: numbers or categories.
        row_time: the feature with the time of each row, which other dates are compared with.
        weight, group: the columns of the rows' weights, and of what they belong to.
        """
        pa.default_memory_pool().release_unused()  # of the memory that the reading of the table has left
        chosen = sampled_rows(self._rows, MAX_SAMPLED_ROWS)
        if not np.array_equal(chosen, self._drawn[: len(chosen)]):
            self._held = None
        own = threading.local()

        def read(name: str) -> Floats:
            if self._held is not None and name in self._held:
                return self._held.pop(name).values
            if not hasattr(own, "table"):
                own.table = TableReader(path)
            values, first = _Growing(len(chosen)), 0
            for part in own.table.column(name):
                values.add(self._numbers(name, part)[_within(chosen, first, len(part))])
                first += len(part)
            return values.values

        def describe_one(name: str) -> Json:
            if not hasattr(own, "scratch"):
                own.scratch = np.empty(len(chosen))
            values = times if times is not None and name == row_time else read(name)
            texts = self._texts.get(name)
            found = _describe(
                values, None if texts is None else len(texts.hashes), positive, own.scratch
            )
            if over_time is not None:
                n_texts = None if texts is None else len(texts.hashes)
                over_time.add(name, values, n_texts, is_date=of_type.get(name) == DATETIME)
            leak: Leak = {"leak": False, "leak_pattern": None, "order_auc": None}
            if finder is not None:
                words = None if texts is None else texts.words
                auc = None if found["auc"] is None else found["auc"]["value"]
                leak = finder.find(name, values, words, of_type.get(name), auc)
            return found | leak

        of_type = types or {}
        positive = None if self._label is None else read(self._label) == 1.0
        times = None if row_time is None else read(row_time)
        finder = None
        if positive is not None:
            first_half = halves(len(chosen), _SEED)
            finder = LeakFinder(positive, first_half, len(features), row_time, times)
        over_time = None
        if row_time is not None and times is not None:
            over_time = OverTime(
                row_time,
                times,
                positive,
                n_columns=len(features),
                weight=None if weight is None else read(weight),
                unit=None if group is None else _hash_column(path, group, chosen),
            )
        with ThreadPoolExecutor(min(_MAX_AT_ONCE, numba.get_num_threads())) as pool:
            try:
                described = pool.map(describe_one, features)
                duplicates = self._count_duplicates(path, features, callback)  # in the meantime
                columns: dict[str, Json] = {}
                for name, found in zip(features, described, strict=True):
                    columns[name] = found
                    callback()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return {
            "rows": len(chosen),
            "columns": columns,
            "duplicates": duplicates,
            "over_time": None if over_time is None else over_time.find(),
        }

    def _numbers(self, name: str, column: pa.Array) -> Floats:
        """Return numbers, NaN where missing; of a text column the index of each text."""
        if not pa.types.is_dictionary(column.type):
            numbers: Floats = column.to_numpy().astype(np.float64, copy=False)
            return numbers
        return self._texts.setdefault(name, _Texts()).find(column)

    def _hashes_of(self, name: str) -> Hashes | None:
        return self._texts[name].hashes if name in self._texts else None

    def _count_duplicates(self, path: Path, features: Sequence[str], callback: Callback) -> Json:
        """Return the counts of duplicate rows; they are counted from the file if the features have changed."""
        if self._counted and set(features) == set(self._features):
            return self._duplicates.count(with_classes=self._label is not None)
        # The first rows were wrong about identifiers.
        duplicates = DuplicateCounter()
        with TableReader(path) as table:
            for group in range(table.groups):
                label = None if self._label is None else table.read(group, self._label).to_numpy()
                duplicates.add(_hash_group(table, group, features), label)
                callback()
        return duplicates.count(with_classes=self._label is not None)


class _Growing:
    """An array that grows. Separate arrays would fragment the memory between the buffers of the batches."""

    def __init__(self, n_expected: int) -> None:
        self._room = np.empty(n_expected)
        self._count = 0

    def add(self, values: npt.NDArray[Any]) -> None:
        end = self._count + len(values)
        if end > len(self._room):
            room = np.empty(max(end, 2 * len(self._room)))
            room[: self._count] = self.values
            self._room = room
        self._room[self._count : end] = values
        self._count = end

    @property
    def values(self) -> Floats:
        return self._room[: self._count]


def count_queries(path: Path, query: str, label: str | None) -> Json:
    """Return the number of queries, of those with rows of different labels, and the sizes of the queries.

    Raises BadTable if every query has rows of one label only: then no two rows of a query can be put in order.
    """
    with TableReader(path) as table:
        hashes = np.concatenate([hash_text(column) for column in table.column(query)])
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        sizes = np.diff(np.r_[starts, len(ordered)])
        with_pairs = 0
        if label is not None:
            labels = np.concatenate([column.to_numpy() for column in table.column(label)])[order]
            least, most = np.minimum.reduceat(labels, starts), np.maximum.reduceat(labels, starts)
            with_pairs = int(np.count_nonzero(least < most))
    if not with_pairs:
        raise BadTable(
            f"at least one query must have rows with two different labels, got none among {len(sizes)} "
            f"queries in the column {show(query)}: rows are ranked within each query",
            column=query,
            code="no_pairs_in_queries",
        )
    return {
        "queries": len(sizes),
        "with_pairs": with_pairs,
        "min_rows": int(sizes.min()),
        "median_rows": float(np.median(sizes)),
        "max_rows": int(sizes.max()),
    }


class _Texts:
    def __init__(self) -> None:
        self.hashes: Hashes = np.empty(0, dtype=np.uint64)
        self._index: dict[str, int] = {}

    @property
    def words(self) -> list[str]:
        """The texts themselves, by their index."""
        return list(self._index)

    def find(self, column: pa.DictionaryArray) -> Floats:
        """Return the index of each row's text among distinct ones, in order of first occurrence; NaN: missing."""
        n = len(column.dictionary)
        codes = column.indices.fill_null(n).to_numpy()
        used = np.flatnonzero(np.bincount(codes, minlength=n + 1)[:n])
        texts = column.dictionary.take(pa.array(used)).to_pylist()
        if new := [text for text in dict.fromkeys(texts) if text not in self._index]:
            self._index |= zip(
                new, range(len(self._index), len(self._index) + len(new)), strict=True
            )
            self.hashes = np.append(self.hashes, hash_words(new))
        index = np.full(n + 1, np.nan)
        index[used] = [self._index[text] for text in texts]
        found: Floats = index[codes]
        return found


class DuplicateCounter:
    """Counts rows that equal another row in every feature, by their hashes and in bounded memory."""

    def __init__(self) -> None:
        self._kept: list[Hashes] = []
        self._level = 0
        self._kinds: Hashes | None = np.empty(0, dtype=np.uint64)
        """All distinct hashes while they are few, exactly; None: they are many, or not known."""

    def add(self, hashes: Hashes, label: npt.NDArray[np.int8] | None) -> None:
        """Add hashes of rows; the lowest bit of each is replaced by the row's label."""
        words = hashes & ~_LOWEST_BIT
        self._add_kinds(words)
        self._kept.append(self._share(words if label is None else words | label.astype(np.uint64)))
        if sum(map(len, self._kept)) > MAX_HASHES:
            self._level += 1
            self._kept = [self._share(np.concatenate(self._kept))]

    def count(self, *, with_classes: bool) -> Json:
        """Return the number of rows that equal another row, and of those whose equals have both labels.

        Counts are exact unless `estimated`: then they are scaled up from a sample of the rows.
        """
        words = np.sort(np.concatenate(self._kept)) if self._kept else np.empty(0, dtype=np.uint64)
        units = words >> _LOWEST_BIT
        starts = np.flatnonzero(np.r_[True, units[1:] != units[:-1]]) if len(units) else units[:0]
        sizes = np.diff(np.r_[starts, len(units)])
        found = {"rows": int(np.sum(sizes[sizes > 1])), "repeated": len(words) - len(starts)}
        if with_classes:
            hits = (
                np.add.reduceat((words & _LOWEST_BIT).astype(np.int64), starts)
                if len(starts)
                else sizes
            )
            found["rows_of_both_classes"] = int(np.sum(sizes[(hits > 0) & (hits < sizes)]))
        counts = {name: count << self._level for name, count in found.items()}
        kinds = None if self._kinds is None else len(self._kinds)
        return counts | {"estimated": self._level > 0, "kinds": kinds}

    def _add_kinds(self, words: Hashes) -> None:
        """Add to the distinct hashes, until there are `MIN_DISTINCT_ROWS` of them."""
        for part in (
            words[: 100 * MIN_DISTINCT_ROWS],
            words,
        ):  # in most tables the first are enough to know
            if self._kinds is None:
                return
            found = np.union1d(self._kinds, part)
            self._kinds = found if len(found) < MIN_DISTINCT_ROWS else None

    def state(self) -> Json:
        """Return the state as JSON, for `absorb`."""
        kept = as_json(np.concatenate([*self._kept, _NO_HASHES]))
        kinds = None if self._kinds is None else as_json(self._kinds)
        return {"level": self._level, "kept": kept, "kinds": kinds}

    def absorb(self, state: Json) -> None:
        """Add the hashes of further rows from `state`."""
        self._level = max(self._level, state["level"])
        if (kinds := state["kinds"]) is None:  # many
            self._kinds = None
        else:
            self._add_kinds(from_json(kinds, np.uint64))
        self._kept.append(from_json(state["kept"], np.uint64))
        self._kept = [self._share(np.concatenate(self._kept))]
        while len(self._kept[0]) > MAX_HASHES:
            self._level += 1
            self._kept = [self._share(self._kept[0])]

    def _share(self, words: Hashes) -> Hashes:
        """Return the hashes in a fixed sample of 1 in 2^level."""
        below = np.uint64((1 << self._level) - 1)
        return words if self._level == 0 else words[(words >> _LOWEST_BIT) & below == 0]


def _hash_column(path: Path, name: str, chosen: Rows) -> Hashes:
    """Return the hashes of the texts of a column in the chosen rows."""
    first, found = 0, []
    with TableReader(path) as table:
        for part in table.column(name):
            own = part.take(pa.array(_within(chosen, first, len(part))))
            first += len(part)
            found.append(hash_text(own))
    return np.concatenate(found)


def hash_rows(path: Path, features: Sequence[str]) -> Hashes:
    with TableReader(path) as table:
        hashes = [_hash_group(table, group, features) for group in range(table.groups)]
    return np.concatenate(hashes) if hashes else np.empty(0, dtype=np.uint64)


def _hash_group(table: TableReader, group: int, features: Sequence[str]) -> Hashes:
    hashes = np.zeros(table.rows_of(group), dtype=np.uint64)
    for name in features:
        column = table.read(group, name)
        if pa.types.is_dictionary(column.type):
            texts = _Texts()
            add_column(hashes, name, texts.find(column), texts.hashes)
        else:
            add_column(hashes, name, column.to_numpy())
    return hashes


def _within(chosen: Rows, first: int, n_rows: int) -> Rows:
    """Return the indices of the chosen rows among `n_rows` rows that begin at `first`."""
    start, end = np.searchsorted(chosen, (first, first + n_rows))
    return chosen[start:end] - first


def _describe(values: Floats, n_texts: int | None, positive: Mask | None, scratch: Floats) -> Json:
    """Return quantiles, histogram and AUC of the sampled values."""
    if n_texts is not None:
        scores = values if positive is None else _target_codes(values, n_texts, positive)
        survey = survey_column(scores, positive, scratch=scratch)
        found: Json = {"quantiles": None, "histogram": None, "auc": _interval(survey)}
    else:
        survey = survey_column(values, positive, scratch=scratch)
        found = {
            "quantiles": [
                {"at": at, "value": value}
                for at, value in zip(QUANTILES, survey.quantiles, strict=False)
            ],
            "histogram": {"edges": list(survey.edges), "counts": list(survey.counts)},
            "auc": _interval(survey),
        }
    found["missing_auc"] = None
    if positive is not None and 0 < survey.known < len(values):
        missing = np.isnan(values)
        of_positives, gaps = int(positive.sum()), int(missing.sum())
        among = int(np.count_nonzero(missing & positive))
        others = len(values) - of_positives
        found["missing_auc"] = binary_auc(among, of_positives, gaps - among, others)._asdict()
    return found


def _interval(survey: ColumnSurvey) -> Json | None:
    return None if survey.auc is None else survey.auc._asdict()


def _target_codes(codes: Floats, n_texts: int, positive: Mask) -> Floats:
    """Score each row by its category's fraction of positives in the *other* half of the rows, shrunk towards the
    average.

    A row must not be scored by its own label: otherwise a column of unique names would rank perfectly.
    """
    rng = np.random.Generator(np.random.Philox(_SEED))
    known = np.flatnonzero(~np.isnan(codes))
    half = (rng.random(len(codes)) < 0.5)[known].astype(np.intp)
    code, is_positive = codes[known].astype(np.intp), positive[known]
    cell = code + n_texts * half
    rows = np.bincount(cell, minlength=2 * n_texts).reshape(2, n_texts)
    hits = np.bincount(cell[is_positive], minlength=2 * n_texts).reshape(2, n_texts)
    with np.errstate(invalid="ignore"):  # a half may have no rows with a value
        average = hits.sum(axis=1, keepdims=True) / rows.sum(axis=1, keepdims=True)
    fractions = (hits + _SHRINKAGE * average) / (rows + _SHRINKAGE)
    # The halves' averages differ by chance, so a score is the distance to its half's average.
    scores = np.full(len(codes), np.nan)
    scores[known] = (fractions - average)[1 - half, code]
    return scores
