"""The building blocks of a report, and the formatting of numbers.

The blocks have no markup. Names, labels and categories, which anybody may have chosen, are escaped only by the writers.
The `kind` of a block is the name of its macro in `templates/blocks.html`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from rankwright.plots import Plot

from app.measures import Measure, percent
from app.training.progress import most_important_first
from core import metrics as core_metrics


@dataclass(frozen=True)
class Bar:
    """A fraction from 0 to 1, drawn as a bar."""

    fraction: float


@dataclass(frozen=True)
class Bars:
    counts: Sequence[int]


Cell = str | Bar | Bars


@dataclass(frozen=True)
class Paragraph:
    kind: ClassVar = "paragraph"
    words: str


@dataclass(frozen=True)
class Items:
    kind: ClassVar = "items"
    items: Sequence[str]


@dataclass(frozen=True)
class Tile:
    """A key metric, with its name and a note."""

    name: str
    metric: str
    note: str


@dataclass(frozen=True)
class Tiles:
    """Key metrics side by side."""

    kind: ClassVar = "tiles"
    tiles: Sequence[Tile]


@dataclass(frozen=True)
class Table:
    """Rows of cells below a head. Without a head, the first cell of a row is its name."""

    kind: ClassVar = "table"
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, eq=False)
class Pictures:
    """Curves side by side."""

    kind: ClassVar = "pictures"
    plots: Sequence[Plot]


SIGNATURE_HEAD = ("role", "name", "date", "signature")


@dataclass(frozen=True)
class Signatures:
    """A table to sign: a row for each role, with space for a name, a date and a signature."""

    kind: ClassVar = "signatures"
    roles: Sequence[str]


Block = Paragraph | Items | Tiles | Table | Pictures | Signatures


@dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A report. `first` fits on the first page, and the `sections` begin on the next one. `footer` is at the bottom of
    each printed page, beside the page's number.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]
    first: Sequence[Section] = ()
    appendix: Sequence[Section] = ()
    footer: str = ""


Json = Mapping[str, Any]


def list_more(entries: Sequence[object], most: int, what: str = "") -> list[Paragraph]:
    """Say how many entries are left out, if any."""
    more = len(entries) - most
    return [Paragraph(f"… and {more:,} more{what}.")] if more > 0 else []


def count(number: float | None) -> str:
    """Sums of weights may have decimals."""
    if number is None:
        return "—"
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.2f}"


def number(value: float | None, digits: int = 4) -> str:
    return "—" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def interval(value: core_metrics.Interval | Measure | Json | None, digits: int = 4) -> str:
    if value is None:
        return "—"
    if isinstance(value, core_metrics.Interval | Measure):
        value = value._asdict()
    ends = value["low"], value["high"]
    shown = number(value["value"], digits)
    if any(end is None or not math.isfinite(end) for end in ends):
        return shown
    return f"{shown} ({ends[0]:.{digits}f}–{ends[1]:.{digits}f})"


def share(value: core_metrics.Interval, digits: int = 1) -> str:
    if not math.isfinite(value.value):
        return "—"
    ends = (
        ""
        if not math.isfinite(value.low + value.high)
        else f" ({100.0 * value.low:.{digits}f}–{percent(value.high, digits)})"
    )
    return f"{percent(value.value, digits)}{ends}"


def sentence(words: str) -> str:
    """Add a full stop."""
    return words if words.endswith((".", "!", "?")) else f"{words}."


def score(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.6g}"


def moment(seconds: float | None) -> str:
    """Write UTC to the second; a dash for None."""
    if seconds is None:
        return "—"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def size(n_bytes: int) -> str:
    return f"{n_bytes:,} bytes"


def value(given: Any) -> str:
    """Write JSON, but text without quotes."""
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def settings(parameters: Json) -> str:
    named = most_important_first(parameters).items()
    return ", ".join(f"{name} = {value(given)}" for name, given in named) or "—"


def signed(difference: Json) -> str:
    ends = f"{difference['low']:+.4f} to {difference['high']:+.4f}"
    return f"{difference['value']:+.4f} ({ends})"


def p_value(p: float | None) -> str:
    """A very small one is "< 0.0001"."""
    if p is None:
        return "—"
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def version(dataset: Mapping[str, Any]) -> str:
    """Write name, number and id."""
    return f"{dataset['name']}, version {dataset['version']} ({dataset['id']})"
