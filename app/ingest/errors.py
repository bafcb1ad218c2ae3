"""Errors of a table: the first hundred, and the number of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.platform.errors import Invalid

MAX_ERRORS = 100
MAX_ERRORS_PER_COLUMN = 20
"""Most errors that are kept of one column, so that one bad column does not hide another."""
MAX_COUNTED_ERRORS = 10_000
"""Number of errors at which reading stops: nobody mends so many by hand."""
_SHOWN = 40
_BRIEF = 200


@dataclass(frozen=True)
class RowError:
    """One broken rule. `line` counts the file's lines from 1, quoted line breaks included. `row`, from 1, is used where
    a format has no lines. `part` is the number of the file, from 1, in a table of several.
    """

    detail: str
    line: int | None = None
    column: str | None = None
    row: int = 0
    part: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the members that are not None, as the dataset stores them."""
        known = {
            "part": self.part,
            "line": self.line,
            "column": self.column,
            "detail": self.detail,
        }
        return {key: value for key, value in known.items() if value is not None}

    @property
    def place(self) -> tuple[int, int]:
        """The position in the table, by which errors are sorted."""
        return self.part or 0, self.line or self.row


class BadTable(Invalid):
    """The upload is not a table on which a ranker can be trained."""

    code = "invalid_table"
    title = "Invalid table"

    def __init__(
        self,
        detail: str,
        *,
        line: int | None = None,
        column: str | None = None,
        code: str | None = None,
    ) -> None:
        error = RowError(detail, line, column)
        super().__init__(detail, code=code, errors=[error.as_json()])
        self.total = 1

    def of_part(self, part: int) -> BadTable:
        """Mark the errors as those of one file in a table of several."""
        refusal = BadTable(f"part {part}: {self.detail}", code=self.code)
        refusal.errors = [{"part": part, **error} for error in self.errors]
        refusal.total = self.total
        return refusal

    def suggest(
        self,
        detail: str,
        suggestion: Mapping[str, str],
        about: str = "",
        values: Sequence[Mapping[str, Any]] = (),
        column: str | None = None,
    ) -> None:
        """Add to the first error (of `column`) that contains `about` the fields with which the table would be valid,
        and the label's values with their rows.
        """
        error = next(
            error
            for error in self.errors
            if about in error["detail"] and column in (None, error.get("column"))
        )
        error["detail"] += detail
        if suggestion:
            error["suggestion"] = dict(suggestion)
        if values:
            error["values"] = list(values)
        self.detail += detail


class Errors:
    """Collects the errors of a whole table, in the order of its lines."""

    def __init__(self) -> None:
        self.total = 0
        self._kept: list[RowError] = []
        self._by_column: Counter[str | None] = Counter()
        self.counts: Counter[str | None] = Counter()

    def add(self, error: RowError) -> None:
        """Count an error; store it if it is among the first of its column."""
        self.add_many(error.column, 1, [error])

    def add_many(self, column: str | None, count: int, first: Iterable[RowError]) -> None:
        """Count `count` errors of a column; `first` describes the first ones."""
        self.total += count
        self.counts[column] += count
        room = MAX_ERRORS if column is None else MAX_ERRORS_PER_COLUMN
        for error in first:
            if self._by_column[column] < room:
                self._kept.append(error)
                self._by_column[column] += 1

    def add_all(self, other: Errors) -> None:
        """Add the errors that were collected in later lines of the file."""
        for column, count in other.counts.items():
            self.add_many(column, count, other.of(column))

    def state(self) -> list[Any]:
        """Return the state as JSON, for `absorb`."""
        return [
            [column, count, [[e.detail, e.line, e.row] for e in self.of(column)]]
            for column, count in self.counts.items()
        ]

    def absorb(self, state: Sequence[Any], part: int) -> None:
        """Add the errors of another file of the table from `state`."""
        for column, count, first in state:
            errors = [RowError(detail, line, column, row, part) for detail, line, row in first]
            self.add_many(column, count, errors)

    def of(self, column: str | None) -> list[RowError]:
        """Return the stored errors of a column, in file order."""
        kept = [error for error in self._kept if error.column == column]
        return sorted(kept, key=lambda error: error.place)

    def wanted(self, column: str | None) -> int:
        """Return how many more errors of this column would be stored."""
        room = MAX_ERRORS if column is None else MAX_ERRORS_PER_COLUMN
        return room - self._by_column[column]

    def summarise(self) -> BadTable:
        """Return one error that summarizes all."""
        kept = sorted(self._kept, key=lambda error: error.place)
        refusal = BadTable(self._detail(kept[0]))
        refusal.errors = [error.as_json() for error in kept[:MAX_ERRORS]]
        refusal.total = self.total
        return refusal

    def _detail(self, first: RowError) -> str:
        where = [f"part {first.part}"] if first.part else []
        where += [f"line {first.line}"] if first.line else []
        where += [f"column {show(first.column)}"] if first.column else []
        more = f" (and {self.total - 1} more)" if self.total > 1 else ""
        return ", ".join(where) + (": " if where else "") + first.detail + more


def brief(message: object) -> str:
    """Return a library's message on one line, shortened to a readable length."""
    text = " ".join(str(message).split())
    if isinstance(message, MemoryError):
        text = f"it needs more memory than is available ({text})"
    return text if len(text) <= _BRIEF else text[:_BRIEF] + "…"


def show(value: str) -> str:
    """Quote a value, shortened to a readable length."""
    return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")


MAX_ROWS = "RANKWRIGHT_MAX_ROWS"
"""The setting that limits the rows of a dataset."""


def too_many_columns(
    most: int, count: int, line: int | None = None, *, at_least: bool = False
) -> BadTable:
    """`at_least`: `count` is a lower bound."""
    got = f"at least {count}" if at_least else count
    return BadTable(
        f"a table can have at most {most} columns (RANKWRIGHT_MAX_COLUMNS), got {got}",
        line=line,
        code="too_many_columns",
    )


def too_many_rows(most: int, count: int | None = None, *, setting: str = "") -> BadTable:
    """`count` is the number of rows, if known, and `setting` the setting of the limit."""
    found, named = "more" if count is None else count, f" ({setting})" if setting else ""
    return BadTable(
        f"a table can have at most {most} rows{named}; this one has {found}", code="too_many_rows"
    )
