"""Tables that are read one column at a time, because they may be larger than memory.

A `ColumnTable` takes the place of X in the fits that need no more of it than its codes: see `Ranker.reads_columns`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from core.errors import InvalidData

from .shards import Placement
from .table import Categories, check_text

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

ROWS_AT_ONCE = 1 << 20
"""Rows whose values are copied or changed together: eight megabytes a column."""
MIN_DISTINCT_ROWS = 30
MIN_ROWS_PER_KIND = 10
"""Below 30 distinct rows, with at least 10 copies of each on average, equal rows are rows of one kind, not copies of
one row. They may be split then: if all were held out, none of their kind would be left to learn from."""


def are_kinds(n_distinct: int, n_rows: int) -> bool:
    """Return True if distinct rows are so few that equal rows need not stay together; see `MIN_DISTINCT_ROWS`."""
    return n_distinct < MIN_DISTINCT_ROWS and n_rows >= MIN_ROWS_PER_KIND * n_distinct


class ColumnSource(ABC):
    """A source from which a `ColumnTable` reads columns. categories: None for a numeric column, else ascending."""

    names: tuple[str, ...]
    categories: Categories
    n_rows: int
    identity: bytes | None = None
    """A hash of all values, by which stored codes are found again; None: the codes are of this process alone."""

    @abstractmethod
    def read(self, column: int, values: Floats) -> None:
        """Write a column's numbers or category indices to `values`, (n_rows,) float64; NaN is missing."""


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """A table read column by column, which `fit` accepts in place of a matrix.

    The fitted ranker is that of the same rows in memory, bit for bit.

    InvalidData: the source has no rows or no columns, or its names are not text, each once.

    placement: where the rounds of a fit run; None: here. The ranker is the same, bit for bit, on machines of one kind.

    Examples
    --------
    >>> import tempfile
    >>> from core import RankBoost
    >>> X, y = np.arange(600.0).reshape(200, 3) % 17, np.arange(200) % 4 == 0
    >>> class Columns(ColumnSource):
    ...     n_rows, names, categories, identity = 200, ("a", "b", "c"), (None, None, None), None
    ...
    ...     def read(self, column, values):
    ...         values[:] = X[:, column]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = ColumnTable(Columns(), Path(folder))
    ...     ranker = RankBoost(n_rounds=5).fit(table, y)
    >>> bool((ranker.score_rows(X) == RankBoost(n_rounds=5).fit(X, y).score_rows(X)).all())
    True
    """

    source: ColumnSource
    folder: Path
    """For files of codes, one or two bytes a cell twice. Not on a file system that is memory."""
    is_taken: Bools | None = None
    """The rows of the source that are rows of this table; None: all. Shape (source.n_rows,), or None."""
    placement: Placement | None = None
    on_read: Callable[[], object] = lambda: None
    """Called before a column is read; what it raises ends the reading."""
    _categories: Categories | None = None
    _new_index: Mapping[int, Floats] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        names = self.source.names
        if not names or self.source.n_rows < 1:
            raise InvalidData(
                f"a table must have rows and columns, got {self.source.n_rows} rows and {len(names)} columns"
            )
        if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
            raise InvalidData(f"column names must be unique strings, got {list(names)}")

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names

    @property
    def categories(self) -> Categories:
        return self.source.categories if self._categories is None else self._categories

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self.names)

    def __len__(self) -> int:
        return self.source.n_rows if self.is_taken is None else int(np.count_nonzero(self.is_taken))

    def take(self, mask: Bools) -> ColumnTable:
        if self.is_taken is not None:
            within, mask = mask, np.zeros(self.source.n_rows, dtype=np.bool_)
            mask[self.is_taken] = within
        return replace(self, is_taken=mask)

    @property
    def rows(self) -> Integers:
        return (
            np.arange(self.source.n_rows)
            if self.is_taken is None
            else np.flatnonzero(self.is_taken)
        )

    def read(self, column: int, values: Floats) -> None:
        """Write all rows of a column of the source to `values`. InvalidData: the column holds an infinite value."""
        self.on_read()
        self.source.read(column, values)
        for start in range(0, len(values), ROWS_AT_ONCE):
            some = values[start : start + ROWS_AT_ONCE]
            if np.isinf(some).any():
                row = start + int(np.argmax(np.isinf(some)))
                raise InvalidData(
                    f"column {self.names[column]!r} must contain finite numbers, got {values[row]} at row {row}"
                )
            self.recode(column, some)

    def recode(self, column: int, values: Floats) -> None:
        """Replace the source's category indices in `values` by this table's, NaN for unknown ones."""
        new_index = self._new_index.get(column)
        if new_index is not None:
            known = ~np.isnan(values)
            values[known] = new_index[values[known].astype(np.intp)]

    def columns(self) -> Iterator[Floats]:
        """Yield each column of the table's rows, in a reused buffer: process one before the next."""
        values = np.empty(self.source.n_rows)
        taken = values if self.is_taken is None else np.empty(len(self))
        for column in range(len(self.names)):
            self.read(column, values)
            if self.is_taken is not None:
                compress(self.is_taken, values, taken)
            yield taken

    def keep_present(self) -> ColumnTable:
        check_text(self.names, self.categories)
        kept = list(self.categories)
        values = np.empty(self.source.n_rows if any(kept) else 0)
        for column, names in enumerate(self.categories):
            if names is None:
                continue
            self.read(column, values)
            present = np.zeros(len(names), dtype=np.bool_)
            for start in range(0, len(values), ROWS_AT_ONCE):
                some = values[start : start + ROWS_AT_ONCE]
                if self.is_taken is not None:
                    some = some[self.is_taken[start : start + ROWS_AT_ONCE]]
                known = some[~np.isnan(some)]
                if not np.isin(known, np.arange(len(names))).all():
                    raise InvalidData(
                        f"{self.names[column]!r} must contain positions 0 to {len(names) - 1}"
                    )
                present[known.astype(np.intp)] = True
            kept[column] = tuple(name for name, stays in zip(names, present, strict=True) if stays)
        return self.with_categories(tuple(kept))

    def with_categories(self, categories: Categories) -> ColumnTable:
        """Return the table with these categories per column; values that are not among them count as missing."""
        new_index = {}
        for column, (own, names) in enumerate(zip(self.source.categories, categories, strict=True)):
            if own is None or names is None or own == names:
                continue
            position = {name: float(k) for k, name in enumerate(names)}
            new_index[column] = np.array([position.get(name, np.nan) for name in own])
        return replace(self, _categories=categories, _new_index=new_index)


def compress(mask: Bools, values: Floats, taken: Floats) -> None:
    """Write the values where the mask is True to `taken`; less memory than `np.compress`."""
    done = 0
    for start in range(0, len(mask), ROWS_AT_ONCE):
        some = values[start : start + ROWS_AT_ONCE][mask[start : start + ROWS_AT_ONCE]]
        taken[done : done + len(some)] = some
        done += len(some)


def find_nth(mask: Bools, places: Integers) -> Integers:
    """Return, for each k of `places` (ascending, from 0), the index of the k-th True value of the mask."""
    found, before = [np.empty(0, dtype=np.int64)], 0
    for start in range(0, len(mask), ROWS_AT_ONCE):  # a list of all would take eight bytes a row
        rows = np.flatnonzero(mask[start : start + ROWS_AT_ONCE])
        first, last = np.searchsorted(places, (before, before + len(rows)))
        found.append(start + rows[places[first:last] - before])
        before += len(rows)
    return np.concatenate(found)
