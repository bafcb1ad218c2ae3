"""What is wrong with a table, value by value: the first hundred faults and how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.errors import Invalid

MAX_FAULTS = 100
PER_COLUMN = 20
"""Faults kept of one column, so that one bad column does not hide another."""
ENOUGH = 10_000
"""Faults after which reading stops: the table is beyond mending by hand."""
_SHOWN = 40


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


class Faults:
    """Collects faults over the whole table, in the order of its lines."""

    def __init__(self) -> None:
        self.total = 0
        self._kept: list[Fault] = []
        self._by_column: Counter[str | None] = Counter()

    def add(self, fault: Fault) -> None:
        """Count a fault, and keep it if it is among the first of its column."""
        self.add_many(fault.column, 1, [fault])

    def add_many(self, column: str | None, count: int, first: Iterable[Fault]) -> None:
        """Count `count` faults of a column, of which only the first need be described."""
        self.total += count
        room = MAX_FAULTS if column is None else PER_COLUMN
        for fault in first:
            if self._by_column[column] < room:
                self._kept.append(fault)
                self._by_column[column] += 1

    def wanted(self, column: str | None) -> int:
        """Return how many more descriptions of this column's faults would be kept."""
        room = MAX_FAULTS if column is None else PER_COLUMN
        return room - self._by_column[column]

    def has(self, column: str) -> bool:
        """Tell whether any fault names this column."""
        return self._by_column[column] > 0

    def summarise(self, text_columns: Iterable[str]) -> BadTable:
        """Return the refusal. A column without a single number is one fault: it holds text."""
        text = list(text_columns)
        kept: list[Fault] = []
        seen: set[str] = set()
        for fault in sorted(self._kept, key=lambda fault: fault.line or fault.place):
            if fault.column in text and fault.column is not None:
                if fault.column in seen:
                    continue
                seen.add(fault.column)
                kept.append(Fault(f"{fault.detail}: {TEXT_RULE}", fault.line, fault.column))
            else:
                kept.append(fault)
        refusal = BadTable(self._detail(kept, text), code="text_column" if text else None)
        refusal.errors = [fault.as_json() for fault in kept[:MAX_FAULTS]]
        refusal.total = self.total
        return refusal

    def _detail(self, kept: list[Fault], text: list[str]) -> str:
        if text:
            names = ", ".join(show(name) for name in text[:10]) + (", …" if len(text) > 10 else "")
            return f"{TEXT_RULE.capitalize()}; remove or encode: {names}"
        first = kept[0]
        places = [f"line {first.line}"] if first.line else []
        places += [f"column {show(first.column)}"] if first.column else []
        more = f" (and {self.total - 1} more)" if self.total > 1 else ""
        return ", ".join(places) + (": " if places else "") + first.detail + more


TEXT_RULE = "text columns cannot be features in this version"


def show(value: str) -> str:
    """Quote a value for a message, cut to a length that a message can bear."""
    return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")
