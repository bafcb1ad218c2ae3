"""What is wrong with a table, value by value: the first hundred faults and how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.platform.errors import Invalid

MAX_FAULTS = 100
PER_COLUMN = 20
"""Faults kept of one column, so that one bad column does not hide another."""
ENOUGH = 10_000
"""Faults after which reading stops: the table is beyond mending by hand."""
_SHOWN = 40
_BRIEF = 200


@dataclass(frozen=True)
class Fault:
    """One broken rule. `line` counts the lines of the file from 1, quoted line breaks included.

    `place` puts faults in the order of the file where there are rows but no lines.
    """

    detail: str
    line: int | None = None
    column: str | None = None
    place: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the members that are known, as they are stored on the dataset."""
        known = {"line": self.line, "column": self.column, "detail": self.detail}
        return {key: value for key, value in known.items() if value is not None}


class BadTable(Invalid):
    """The upload is no table that a ranker can be trained on."""

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
        fault = Fault(detail, line, column)
        super().__init__(detail, code=code, errors=[fault.as_json()])
        self.total = 1

    def suggest(self, detail: str, suggestion: Mapping[str, str], about: str = "") -> None:
        """Add to the first fault that is about something what may be said so that the table is taken."""
        fault = next(fault for fault in self.errors if about in fault["detail"])
        fault["detail"] += detail
        if suggestion:
            fault["suggestion"] = dict(suggestion)
        self.detail += detail


class Faults:
    """Collects faults over the whole table, in the order of its lines."""

    def __init__(self) -> None:
        self.total = 0
        self._kept: list[Fault] = []
        self._by_column: Counter[str | None] = Counter()
        self.counts: Counter[str | None] = Counter()

    def add(self, fault: Fault) -> None:
        """Count a fault, and keep it if it is among the first of its column."""
        self.add_many(fault.column, 1, [fault])

    def add_many(self, column: str | None, count: int, first: Iterable[Fault]) -> None:
        """Count `count` faults of a column, of which only the first need be described."""
        self.total += count
        self.counts[column] += count
        room = MAX_FAULTS if column is None else PER_COLUMN
        for fault in first:
            if self._by_column[column] < room:
                self._kept.append(fault)
                self._by_column[column] += 1

    def add_all(self, other: Faults) -> None:
        """Take in what others have collected further down the file."""
        for column, count in other.counts.items():
            self.add_many(column, count, other.of(column))

    def of(self, column: str | None) -> list[Fault]:
        """Return the faults of a column that are kept, in the order of the file."""
        kept = [fault for fault in self._kept if fault.column == column]
        return sorted(kept, key=lambda fault: fault.line or fault.place)

    def wanted(self, column: str | None) -> int:
        """Return how many more descriptions of this column's faults would be kept."""
        room = MAX_FAULTS if column is None else PER_COLUMN
        return room - self._by_column[column]

    def summarise(self) -> BadTable:
        """Return the refusal."""
        kept = sorted(self._kept, key=lambda fault: fault.line or fault.place)
        refusal = BadTable(self._detail(kept[0]))
        refusal.errors = [fault.as_json() for fault in kept[:MAX_FAULTS]]
        refusal.total = self.total
        return refusal

    def _detail(self, first: Fault) -> str:
        places = [f"line {first.line}"] if first.line else []
        places += [f"column {show(first.column)}"] if first.column else []
        more = f" (and {self.total - 1} more)" if self.total > 1 else ""
        return ", ".join(places) + (": " if places else "") + first.detail + more


def brief(said: object) -> str:
    """What a library says of itself or of a type, on one line and cut to a length that a message can bear."""
    text = " ".join(str(said).split())
    if isinstance(said, MemoryError):
        text = f"it needs more memory than there is ({text})"
    return text if len(text) <= _BRIEF else text[:_BRIEF] + "…"


def show(value: str) -> str:
    """Quote a value for a message, cut to a length that a message can bear."""
    return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")


def too_many_rows(most: int) -> BadTable:
    """The refusal of a table that is too long."""
    return BadTable(f"a table must have at most {most} rows; it has more", code="too_many_rows")
