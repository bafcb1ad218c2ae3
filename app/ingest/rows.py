"""Batches of rows that know their position in the file, as all readers return them; column names; hashes of rows."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from app.ingest.errors import BadTable, Errors, RowError, show, too_many_columns
from app.ingest.values import USUAL, Notation

if TYPE_CHECKING:
    import pyarrow as pa

MAX_NAME_LENGTH = 255
"""Longest name of a column, in characters."""
MAX_LINE_LENGTH = 1 << 24
"""Longest line, and longest value, in characters: an unclosed quote must not swallow the memory too."""

ERRORS_IN_CELLS = "errors_in_cells"
"""The code of a warning, of a dataset or of rows to score."""
MAX_LISTED_ERRORS = 10
"""Most kinds of errors in cells that a warning lists."""
MIN_ROWS = 4_096
ROWS_PER_BYTE = 8

Numbers = npt.NDArray[np.int64]


CELL_BYTES = 8
"""Bytes of a value as a double."""


def most_rows(sent: int) -> int:
    """Return the maximum number of rows of a body of `sent` bytes that is read while the caller waits.

    Rows of real values take at least a bit each, also compressed. Rows of nothing do not: a few thousand bytes could
    claim millions of them, in a compressed body or in Arrow's columns of nulls.
    """
    return max(MIN_ROWS, ROWS_PER_BYTE * sent)


@dataclass(frozen=True)
class Rows:
    """A batch of rows, and the number of its first row (from 0).

    `find_lines` returns the line of each row, if the format has lines; they are counted only on demand, because most
    batches have no error. `chosen` are the indices in the batch as it was read, if rows were left out.
    """

    batch: pa.RecordBatch
    first: int
    count_lines: Callable[[], Numbers] | None = None
    chosen: Numbers | None = None

    @cached_property
    def lines(self) -> Numbers | None:
        """Counted from 1; None if the format has no lines."""
        if self.count_lines is None:
            return None
        lines = self.count_lines()
        return lines if self.chosen is None else lines[self.chosen]

    def keep(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """Return the rows of the mask; each keeps its position in the file."""
        import pyarrow as pa

        batch = self.batch.filter(pa.array(mask))
        return Rows(batch, self.first, self.count_lines, np.flatnonzero(mask).astype(np.int64))

    def error(self, row: int, column: str | None, detail: str) -> RowError:
        """The error has the row's line or, without lines, its number from 1."""
        if self.lines is not None:
            return RowError(detail, int(self.lines[row]), column)
        number = self.first + (row if self.chosen is None else int(self.chosen[row])) + 1
        return RowError(f"row {number}: {detail}", None, column, number)

    def report(
        self,
        errors: Errors,
        column: str,
        bad: npt.NDArray[np.bool_],
        detail: Callable[[int], str],
    ) -> None:
        """Count an error for each row of the mask; the first ones are stored with their message."""
        if count := int(np.count_nonzero(bad)):
            first = np.flatnonzero(bad)[: errors.wanted(column)].tolist()
            errors.add_many(column, count, [self.error(row, column, detail(row)) for row in first])


class ErrorCells(NamedTuple):
    """A column's cells with errors: their number, the line of the first one, the errors, and the part of several."""

    cells: int
    line: int
    errors: list[str]
    part: int | None = None

    @property
    def detail(self) -> str:
        """What a warning says: such cells count as missing."""
        cells = "1 cell has an error" if self.cells == 1 else f"{self.cells} cells have errors"
        errors = ", ".join(self.errors[:MAX_LISTED_ERRORS])
        of_part = f" of part {self.part}" if self.part else ""
        return f"{cells} ({errors}), which counts as missing; the first is in line {self.line}{of_part}"


class Source(Protocol):
    """A table that can be read repeatedly, in batches."""

    schema: pa.Schema | None = None
    """The types of the columns, if the format has types."""
    rows: int | None = None
    """Number of rows, if the format states it."""
    unnamed: Collection[str] = ()
    """Columns that had no name where they come from, as row indices have none."""

    names: list[str]
    notation: Notation = USUAL
    """How numbers and dates are written that are text."""
    error_cells: Mapping[str, ErrorCells] = {}
    """The columns of a sheet that have errors in cells, such as #DIV/0!. The errors are texts of their rows."""
    sheet: str | None = None
    """The sheet that is read, if the table is in a workbook."""
    sheets: Sequence[str] | None = None
    """All sheets of the workbook that can be read."""

    def batches(
        self,
        errors: Errors,
        columns: Sequence[str] | None = None,
        numeric: Collection[str] = (),
    ) -> Iterator[Rows]:
        """Unreadable rows are added to `errors`. A column of `numeric` may be float64 if all values are numbers."""
        ...

    def progress(self) -> tuple[int, int]:
        """Return the amount read so far, and the total, in any unit."""
        ...

    def is_empty(self, name: str) -> bool:
        """Return True if the format states that a column has no values."""
        return False


def errors_of_cells(source: Source) -> list[str]:
    """Return the texts of errors in cells, which count as missing."""
    return sorted({error for cells in source.error_cells.values() for error in cells.errors})


class ColumnNames:
    """Checks column names as they are read; `checked` has them without surrounding spaces."""

    def __init__(self, max_columns: int) -> None:
        self._max_columns = max_columns
        self._seen: dict[str, int] = {}
        self.checked: list[str] = []

    def add(self, names: Sequence[str], line: int | None) -> None:
        """Raises BadTable for empty, repeated, overlong or too many names."""
        count = len(self.checked) + len(names)
        if count > self._max_columns:
            raise too_many_columns(self._max_columns, count, line)
        for number, raw in enumerate(names, start=len(self.checked) + 1):
            name = raw.strip()
            if not name:
                raise BadTable(f"column {number} has no name", line=line)
            if not name.isprintable() or len(name) > MAX_NAME_LENGTH:
                raise BadTable(
                    f"the name of column {number} must be at most {MAX_NAME_LENGTH} printable UTF-8 characters, "
                    f"got {show(name)}",
                    line=line,
                )
            # é may be written as one character or as two.
            alike = unicodedata.normalize("NFC", name)
            if alike in self._seen:
                raise BadTable(
                    f"column names must differ: {show(name)} is column {self._seen[alike]} and column {number}",
                    line=line,
                    column=name,
                    code="duplicate_column",
                )
            self._seen[alike] = number
            self.checked.append(name)


def check_names(names: Sequence[str], max_columns: int, line: int | None) -> list[str]:
    """Return the names without surrounding spaces. Raises BadTable as `ColumnNames.add`."""
    columns = ColumnNames(max_columns)
    columns.add(names, line)
    return columns.checked


Hashes = npt.NDArray[np.uint64]

FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
FACTOR_2 = np.uint64(0x94D049BB133111EB)
NO_TEXT = 0x9E3779B97F4A7C15  # what a missing category hashes to
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


def hash_words(texts: Sequence[str]) -> Hashes:
    return np.fromiter(map(hash_word, texts), np.uint64, len(texts))


def hash_text(column: pa.Array | pa.ChunkedArray) -> Hashes:
    """Each distinct text is hashed once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = pc.dictionary_encode(column)
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    codes: Numbers = coded.indices.to_numpy()
    return hash_words(coded.dictionary.to_pylist())[codes]


def hash_word(text: str) -> int:
    """Return the first eight bytes of the SHA-256."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def mix(values: Hashes) -> Hashes:
    """Scramble 64-bit integers one to one: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    values = (values ^ (values >> SHIFT_1)) * FACTOR_1
    values = (values ^ (values >> SHIFT_2)) * FACTOR_2
    return values ^ (values >> SHIFT_3)
