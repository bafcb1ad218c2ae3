"""What every format is read into: batches of rows that know where they stand in the file; and hashes of rows."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from app.ingest.errors import BadTable, Errors, RowError, show

if TYPE_CHECKING:
    import pyarrow as pa

MAX_NAME = 255
"""Longest name of a column, in characters."""
MAX_RECORD = 1 << 24
"""Longest line, and longest value, in characters: an unclosed quote must not swallow the memory too."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """A batch, the number of its first row (from 0) and, where the format has lines, what tells the line of each row.

    Lines are counted when somebody asks: of most batches nobody does. `chosen` are the places that rows had in the
    batch as it was read, where some were left out.
    """

    batch: pa.RecordBatch
    first: int
    count_lines: Callable[[], Numbers] | None = None
    chosen: Numbers | None = None

    @cached_property
    def lines(self) -> Numbers | None:
        """The line of each row, from 1; None where the format has none."""
        if self.count_lines is None:
            return None
        lines = self.count_lines()
        return lines if self.chosen is None else lines[self.chosen]

    def keep(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """Return some of the rows, which know where they stand all the same."""
        import pyarrow as pa

        batch = self.batch.filter(pa.array(mask))
        return Rows(batch, self.first, self.count_lines, np.flatnonzero(mask).astype(np.int64))

    def error(self, row: int, column: str | None, detail: str) -> RowError:
        """Describe what is wrong in a row of this batch, with its line or, without lines, its number from 1."""
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
        """Count an error of the column for each row of the mask, and describe as many as are kept."""
        if count := int(np.count_nonzero(bad)):
            first = np.flatnonzero(bad)[: errors.wanted(column)].tolist()
            errors.add_many(column, count, [self.error(row, column, detail(row)) for row in first])


class Source(Protocol):
    """A table that can be read any number of times, in batches."""

    schema: pa.Schema | None = None
    """The types, where the format has any."""
    rows: int | None = None
    """How many there are, as far as the format says so beforehand."""
    unnamed: Collection[str] = ()
    """Columns that have no name in the file: they are called by their place."""

    names: list[str]
    decimal: str
    """What stands before the decimals of numbers that are text."""

    def batches(
        self,
        errors: Errors,
        columns: Sequence[str] | None = None,
        numeric: Collection[str] = (),
    ) -> Iterator[Rows]:
        """Yield all rows, or of some columns. Rows that cannot be told apart from others go to `errors`.

        A format of text alone may give the columns of `numeric` as float64 wherever a batch holds nothing but numbers
        in them; the rest is text.
        """
        ...

    def progress(self) -> tuple[int, int]:
        """Return how far the reading is, and out of what."""
        ...


class ColumnNames:
    """The names of a table's columns, checked as they come: `checked` has them without spaces around."""

    def __init__(self, max_columns: int) -> None:
        self._max_columns = max_columns
        self._seen: dict[str, int] = {}
        self.checked: list[str] = []

    def add(self, names: Sequence[str], line: int | None) -> None:
        """Take more names in. Raises BadTable for empty, doubled, overlong or too many ones."""
        count = len(self.checked) + len(names)
        if count > self._max_columns:
            raise BadTable(
                f"a table must have at most {self._max_columns} columns, got {count}",
                line=line,
                code="too_many_columns",
            )
        for number, raw in enumerate(names, start=len(self.checked) + 1):
            name = raw.strip()
            if not name:
                raise BadTable(f"column {number} has no name", line=line)
            if not name.isprintable() or len(name) > MAX_NAME:
                raise BadTable(
                    f"the name of column {number} must be at most {MAX_NAME} printable UTF-8 characters, "
                    f"got {show(name)}",
                    line=line,
                )
            alike = unicodedata.normalize(
                "NFC", name
            )  # é may be written as one character or as two
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
    """Return the names without spaces around. Raises BadTable as `ColumnNames`."""
    columns = ColumnNames(max_columns)
    columns.add(names, line)
    return columns.checked


Hashes = npt.NDArray[np.uint64]

FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
FACTOR_2 = np.uint64(0x94D049BB133111EB)
NO_TEXT = 0x9E3779B97F4A7C15  # what a missing category hashes to
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


def hash_words(texts: Sequence[str]) -> Hashes:
    """The hash of each text."""
    return np.fromiter(map(hash_word, texts), np.uint64, len(texts))


def hash_word(text: str) -> int:
    """The first eight bytes of its SHA-256."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def mix(values: Hashes) -> Hashes:
    """Scramble 64 bits one to one: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    values = (values ^ (values >> SHIFT_1)) * FACTOR_1
    values = (values ^ (values >> SHIFT_2)) * FACTOR_2
    return values ^ (values >> SHIFT_3)
