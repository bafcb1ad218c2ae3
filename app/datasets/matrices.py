"""Tables of ready datasets as matrices.

In a categorical column, the matrix has positions in the list of the training rows' categories. A value that occurs only
in other rows is missing, as it will be when the ranker scores new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app.ingest import rows as row_hashes
from app.ingest.rows import Hashes
from app.platform.errors import Invalid, counted, shown
from core.base.columns import ROWS_AT_ONCE, ColumnSource, ColumnTable, find_nth
from core.base.table import CodedTable, keep_present, to_matrix

if TYPE_CHECKING:
    import pyarrow as pa

    from core.base.table import Categories, CodedTable


Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

MIN_PER_CLASS = 2
"""Rows of each class that a part needs, to be fitted on or to be judged by."""

TOO_FEW_ROWS = "too_few_rows"
"""Code of the error for a part with fewer."""


@dataclass(frozen=True)
class Columns:
    """The columns of a typed table by their roles; the features have the order of the model."""

    features: Sequence[str]
    label: str | None
    weight: str | None
    group: str | None
    time: str | None = None
    query: str | None = None


@dataclass(frozen=True)
class Table:
    """A table in memory. X has shape (rows, features), Fortran order, NaN for missing values and positions among
    `categories`.

    y is 1 for positive rows, or the grades; without a label it is 0. Weights, hashed groups, times and hashed queries
    are optional. Queries are groups, too.
    """

    X: Floats
    y: npt.NDArray[np.int8]
    weight: Floats | None
    group: Hashes | None
    names: tuple[str, ...]
    categories: Categories
    time: Floats | None = None
    query: Hashes | None = None

    @property
    def coded(self) -> CodedTable | ColumnTable:
        return CodedTable(self.X, self.names, self.categories)

    def column(self, feature: int) -> Floats:
        return self.X[:, feature]

    def blocks(self, rows: int) -> Iterator[Table]:
        """Yield the rows in blocks of about `rows`."""
        for start in range(0, len(self.X), rows):
            yield self.with_features(self.X[start : start + rows], slice(start, start + rows))

    def take(self, rows: Rows) -> Table:
        """Copy some rows, in the given order."""
        return self.with_features(take_rows(self.X, rows), rows)

    def part(self, rows: Rows) -> Table:
        """Return some rows (ascending and unique) as a separate table."""
        return self.take(rows)

    def with_features(self, X: Any, rows: Rows | slice) -> Table:
        """Return the table of these rows with the features `X`."""
        return Table(
            X,
            self.y[rows],
            None if self.weight is None else self.weight[rows],
            None if self.group is None else self.group[rows],
            self.names,
            self.categories,
            None if self.time is None else self.time[rows],
            None if self.query is None else self.query[rows],
        )

    def known_to(self, rows: Rows | None = None) -> Table:
        """Keep only the categories of `rows` (default: those with a weight above 0); others become missing values."""
        if rows is None and self.weight is not None:
            rows = np.flatnonzero(self.weight > 0)
        X, categories = keep_present(self.X, self.categories, rows)
        return replace(self, X=X, categories=categories)

    def coded_as(self, other: Table) -> Table:
        """Use the categories of another table; others become missing values."""

        X, categories = to_matrix(self.coded, other.categories)
        return replace(self, X=X, categories=categories)


def take_rows(X: Floats, rows: Rows) -> Floats:
    """Copy some rows in Fortran order; `X[rows]` would be in another order, and copied again."""
    taken = np.empty((len(rows), X.shape[1]), order="F")
    for feature in range(X.shape[1]):
        np.take(X[:, feature], rows, out=taken[:, feature])
    return taken


MAX_BYTES_TAKEN = 1 << 26
"""Bytes of a stored table's features that may be in memory at once, where a job may take eight times as much."""

READ_AHEAD_BYTES = 1 << 24
"""Bytes of columns that are read together, so that a wide table is not opened column by column."""


def max_bytes_taken(memory_bytes: int) -> int:
    """Return how many bytes of a stored table's features a job may load at once."""
    return min(MAX_BYTES_TAKEN, memory_bytes // 8)


@dataclass(frozen=True)
class StoredTable(Table):
    """A table whose features stay in their file: `X` is a `ColumnTable`. At most `max_bytes` are copied at once."""

    X: Any
    max_bytes: int = MAX_BYTES_TAKEN

    @property
    def coded(self) -> ColumnTable:
        table: ColumnTable = self.X
        return table

    def column(self, feature: int) -> Floats:
        values = np.empty(self.coded.source.n_rows)
        self.coded.read(feature, values)
        return values if self.coded.is_taken is None else values[self.coded.is_taken]

    def blocks(self, rows: int) -> Iterator[Table]:
        """Yield one row group at a time."""
        for (block,) in blocks_of([self]):
            yield block

    def take(self, rows: Rows) -> Table:
        if are_ascending(rows):
            X = self.source.read_rows(self.source_rows(rows))
        else:
            distinct, place = np.unique(rows, return_inverse=True)
            X = self.source.read_rows(self.source_rows(distinct))
            if len(distinct) < len(rows):
                X = take_rows(X, place)
            else:  # each column in its own memory
                for feature in range(X.shape[1]):
                    X[:, feature] = X[place, feature]
        self.recode(X)
        return self.with_features(X, rows)

    def source_rows(self, rows: Rows) -> Rows:
        """Return positions in the file."""
        return rows if self.coded.is_taken is None else find_nth(self.coded.is_taken, rows)

    def part(self, rows: Rows) -> Table:
        """Return a table in memory if it fits, else one that reads from the file."""
        if len(rows) <= self.max_rows:
            return self.take(rows)
        if not are_ascending(rows):
            raise ValueError("rows of a part must be in ascending order, each once")
        mask = np.zeros(len(self.X), dtype=np.bool_)
        mask[rows] = True
        values = vars(self.with_features(self.coded.take(mask), rows))
        return StoredTable(**values, max_bytes=self.max_bytes)

    @property
    def max_rows(self) -> int:
        """The number of rows whose features may be in memory at once."""
        return self.max_bytes // (8 * len(self.names))

    def known_to(self, rows: Rows | None = None) -> Table:
        """Default of `rows`: those with a weight above 0."""
        if rows is not None:
            raise ValueError("a stored table knows the categories of its rows of weight above 0")
        learnt = self.coded if self.weight is None else self.coded.take(self.weight > 0)
        return self._coded_by(learnt.keep_present().categories)

    def coded_as(self, other: Table) -> Table:
        return self._coded_by(other.categories)

    def _coded_by(self, categories: Categories) -> StoredTable:
        return replace(self, X=self.coded.with_categories(categories), categories=categories)

    def recode(self, X: Floats) -> None:
        """Convert the file's category indices in `X`, in place, to this table's."""
        for feature in range(X.shape[1]):
            self.coded.recode(feature, X[:, feature])

    @property
    def source(self) -> ParquetColumns:
        source = self.coded.source
        assert isinstance(source, ParquetColumns)
        return source


def are_ascending(rows: Rows) -> bool:
    return all(
        bool((np.diff(rows[max(start - 1, 0) : start + ROWS_AT_ONCE]) > 0).all())
        for start in range(0, len(rows), ROWS_AT_ONCE)
    )


def blocks_of(tables: Sequence[StoredTable]) -> Iterator[list[Table]]:
    """Yield, for each row group, the rows of several tables that share one file, which is read once."""
    done = [0] * len(tables)
    for start, X in tables[0].source.read_groups():
        blocks = []
        for k, table in enumerate(tables):
            own = np.arange(len(X))
            if table.coded.is_taken is not None:
                own = np.flatnonzero(table.coded.is_taken[start : start + len(X)])
            taken = take_rows(X, own)
            table.recode(taken)
            blocks.append(table.with_features(taken, slice(done[k], done[k] + len(taken))))
            done[k] += len(taken)
        yield blocks


def store_table(
    path: Path,
    columns: Columns,
    folder: Path,
    memory_bytes: int,
    on_read: Callable[[str], None] | None = None,
) -> StoredTable:
    """Return a table whose features are read from the file on demand; other columns are in memory.

    Binned codes are cached in `folder`; the file is named by its content. `memory_bytes` is what the job may use.
    `on_read`: see `ParquetColumns`.
    """
    rest = read_table(path, replace(columns, features=()))
    source = ParquetColumns(path, columns.features, path.name.encode(), on_read)
    X, names = ColumnTable(source, folder), tuple(columns.features)
    values = {**vars(rest), "X": X, "names": names, "categories": X.categories}
    table = StoredTable(**values, max_bytes=max_bytes_taken(memory_bytes))
    source.read_ahead = min(READ_AHEAD_BYTES, table.max_bytes)
    known = table.known_to()
    assert isinstance(known, StoredTable)
    return known


def read_table(path: Path, columns: Columns) -> Table:
    """Read by row groups: memory holds the matrix and one of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    books: dict[str, _CodeBook] = {}
    numeric = [*columns.features, *([columns.weight] if columns.weight else [])]
    with pq.ParquetFile(path) as file:
        rows = file.metadata.num_rows
        place = {name: index for index, name in enumerate(file.schema_arrow.names)}
        X = np.empty((rows, len(columns.features)), order="F")
        y = np.zeros(rows, dtype=np.int8)
        weight = np.empty(rows) if columns.weight else None
        # The rows of a query stay together, like the rows of a group; a table has either queries or groups.
        units = columns.group or columns.query
        group = np.empty(rows, dtype=np.uint64) if units else None
        wanted = [*numeric, *(name for name in (columns.label, units) if name)]
        start = 0
        for number in range(file.num_row_groups):
            part = file.read_row_group(number, columns=sorted(wanted, key=place.__getitem__))
            end = start + part.num_rows
            for feature, name in enumerate(columns.features):
                column = part.column(name)
                if pa.types.is_dictionary(column.type):
                    book = books.setdefault(name, _CodeBook())
                    X[start:end, feature] = book.encode(column)
                else:
                    X[start:end, feature] = column.to_numpy()
            if columns.label is not None:
                y[start:end] = part.column(columns.label).to_numpy()
            if weight is not None:
                weight[start:end] = part.column(columns.weight).to_numpy()
            if group is not None:
                group[start:end] = row_hashes.hash_text(part.column(units))
            start = end
    categories: list[tuple[str, ...] | None] = [None] * len(columns.features)
    for feature, name in enumerate(columns.features):
        if name in books:
            categories[feature] = books[name].sort(X[:, feature])
    time = None if columns.time is None else read_times(path, columns.time)
    query = group if columns.query else None
    table = Table(X, y, weight, group, tuple(columns.features), tuple(categories), time, query)
    return table.known_to()


def read_times(path: Path, name: str, *, complete: bool = True) -> Floats:
    """Read times as ascending numbers. Raises Invalid for a missing time; unless `complete`, it is NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from app.ingest.value_columns import is_text, read_dates

    column = pq.read_table(path, columns=[name]).column(0)
    if not (pa.types.is_dictionary(column.type) or is_text(column.type)):
        times: Floats = column.to_numpy().astype(np.float64)
    elif complete and column.null_count:
        raise _no_times(name, f"{counted(column.null_count, 'row has', 'rows have')} no value")
    else:  # each distinct text is parsed once
        texts = column.cast(pa.string()).combine_chunks().dictionary_encode()
        seconds, bad = read_dates(pc.utf8_trim_whitespace(texts.dictionary))
        if bad.any():
            text = texts.dictionary[int(np.argmax(bad))].as_py()
            raise _no_times(name, f"one value is {shown(text)}")
        times = np.append(seconds, np.nan)[texts.indices.fill_null(len(seconds)).to_numpy()]
    if complete and (missing := int(np.isnan(times).sum())):
        raise _no_times(name, f"{counted(missing, 'row has', 'rows have')} no value")
    return times


def _no_times(name: str, found: str) -> Invalid:
    rule = "it must contain numbers or ISO 8601 dates, such as 2026-01-31 or 2026-01-31T12:00:00Z"
    detail = f"the time column {name!r} cannot order the rows: {found}; {rule}"
    return Invalid(
        detail,
        code="bad_time_column",
        errors=[{"pointer": "/validation/time_column", "detail": detail}],
    )


class ParquetColumns(ColumnSource):
    """The columns of a typed table as float64, each read on demand; in order, several are read ahead.

    Parameters
    ----------
    path : pathlib.Path
    names : sequence of str
    identity : bytes or None
        Identifies the file's content; with None, codes are not stored.
    on_read : callable (str), optional
        Called after each read with a line about the progress. It may raise an exception that ends the job.

    Attributes
    ----------
    read_ahead : int
        Bytes of the columns that are read together.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        identity: bytes | None,
        on_read: Callable[[str], None] | None = None,
    ) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.names, self.identity = tuple(names), identity
        self.read_ahead = READ_AHEAD_BYTES
        self._on_read = on_read
        self._file = pq.ParquetFile(path)
        self.n_rows = self._file.metadata.num_rows
        self._ahead, self._ahead_first = np.empty((self.n_rows, 0)), 0
        self._kept = np.empty(0, dtype=np.intp), np.empty((0, len(self.names)))
        schema = self._file.schema_arrow
        self._books = {
            name: _CodeBook()
            for name in self.names
            if pa.types.is_dictionary(schema.field(name).type)
        }
        worded = list(self._books)
        for number in range(self._file.num_row_groups if worded else 0):
            part = self._file.read_row_group(number, columns=worded, use_threads=False)
            for name, book in self._books.items():
                book.encode(part.column(name))
            self._tell(f"row group {number + 1} of {self._file.num_row_groups}")
        self.categories = tuple(
            self._books[name].order() if name in self._books else None for name in self.names
        )

    def read(self, column: int, values: Floats) -> None:
        """See `core.base.columns.ColumnSource`."""
        place = column - self._ahead_first
        if not 0 <= place < self._ahead.shape[1]:
            is_next = column == self._ahead_first + max(self._ahead.shape[1], 1)
            n = max(self.read_ahead // max(8 * self.n_rows, 1), 1) if is_next or column == 0 else 1
            n = min(n, len(self.names) - column)
            self._ahead, self._ahead_first, place = np.empty((self.n_rows, 0)), column, 0
            if n == 1:
                self._read(column, values[:, None])
                return
            ahead = np.empty((self.n_rows, n), order="F")
            self._read(column, ahead)
            self._ahead = ahead
        values[:] = self._ahead[:, place]

    def _read(self, first: int, X: Floats) -> None:
        """Read as many columns into `X` as it has, from column `first` on."""
        names, start = self.names[first : first + X.shape[1]], 0
        for number in range(self._file.num_row_groups):
            part = self._file.read_row_group(number, columns=list(names), use_threads=False)
            self._write(part, names, X[start : start + part.num_rows])
            start += part.num_rows
        self._tell(f"column {first + X.shape[1]} of {len(self.names)}")

    def _write(self, part: pa.Table, names: Sequence[str], X: Floats) -> None:
        for feature, name in enumerate(names):
            book, column = self._books.get(name), part.column(name)
            X[:, feature] = column.to_numpy() if book is None else book.encode(column)

    def keep(self, rows: Rows) -> None:
        """Load some rows (ascending and unique). Until the next call, `read_rows` does not read the file for them."""
        self._kept = rows, self.read_rows(rows)

    def read_rows(self, rows: Rows) -> Floats:
        """Return some rows (ascending and unique), shape (n, n_features)."""
        kept, X = self._kept
        found = np.minimum(np.searchsorted(kept, rows), len(kept) - 1)
        if len(kept) and bool((kept[found] == rows).all()):
            return take_rows(X, found)
        X = np.empty((len(rows), len(self.names)), order="F")
        for start, group in self.read_groups(rows):
            first, last = np.searchsorted(rows, (start, start + len(group)))
            X[first:last] = group[rows[first:last] - start]
        return X

    def read_groups(self, rows: Rows | None = None) -> Iterator[tuple[int, Floats]]:
        """Yield each row group with some of these rows (ascending): the position of its first row, and its features."""
        start = 0
        for number in range(self._file.num_row_groups):
            stop = start + self._file.metadata.row_group(number).num_rows
            if rows is None or np.searchsorted(rows, start) < np.searchsorted(rows, stop):
                part = self._file.read_row_group(
                    number, columns=list(self.names), use_threads=False
                )
                X = np.empty((stop - start, len(self.names)), order="F")
                self._write(part, self.names, X)
                self._tell(f"row {stop} of {self.n_rows}")
                yield start, X
            start = stop

    def _tell(self, done: str) -> None:
        if self._on_read is not None:
            self._on_read(done)


class _CodeBook:
    """Numbers the distinct texts in order of first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def encode(self, column: pa.ChunkedArray) -> Floats:
        """Return NaN for missing texts."""
        numbers = []
        for chunk in column.chunks:
            texts = chunk.dictionary.to_pylist()
            own = [self._numbers.setdefault(text, len(self._numbers)) for text in texts]
            places = chunk.indices.fill_null(len(own)).to_numpy()
            numbers.append(np.array([*own, np.nan])[places])
        return np.concatenate(numbers) if numbers else np.empty(0)

    def order(self) -> tuple[str, ...]:
        """Return the texts in ascending order; from now on, number them in this order."""
        texts = sorted(self._numbers)
        self._numbers = {text: position for position, text in enumerate(texts)}
        return tuple(texts)

    def sort(self, codes: Floats) -> tuple[str, ...]:
        """Return the texts in ascending order; convert the numbers in `codes` in place."""
        texts = sorted(self._numbers)
        position = np.empty(len(texts) + 1)
        position[[self._numbers[text] for text in texts]] = np.arange(len(texts))
        position[-1] = np.nan
        missing = np.isnan(codes)
        codes[:] = position[np.where(missing, len(texts), codes).astype(np.intp)]
        return tuple(texts)


def check_classes(y: npt.NDArray[np.int8], what: str) -> None:
    """Raise Invalid unless there are enough rows of each class."""
    positives = int(np.count_nonzero(y))
    negatives = len(y) - positives
    if min(positives, negatives) < MIN_PER_CLASS:
        raise Invalid(
            f"{what} must have at least {MIN_PER_CLASS} rows of each class, "
            f"got {positives} positive and {negatives} negative",
            code=TOO_FEW_ROWS,
        )
