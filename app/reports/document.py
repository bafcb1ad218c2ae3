"""What a written report is made of: headings, paragraphs, lists, tables and pictures; plain text throughout.

Nothing here is marked up, so that names, labels and categories, which anybody may have chosen, are escaped where a
document is written, once and for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.reports.plotting import CurvePlot


@dataclass(frozen=True)
class Bar:
    """A share from 0 to 1, to be seen at a glance."""

    share: float


@dataclass(frozen=True)
class Bars:
    """A distribution, to be seen at a glance: counts side by side."""

    counts: Sequence[int]


Cell = str | Bar | Bars


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    words: str


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Tile:
    """A figure that should be seen first."""

    name: str
    figure: str
    note: str


@dataclass(frozen=True)
class Tiles:
    """Figures side by side."""

    tiles: Sequence[Tile]


@dataclass(frozen=True)
class Table:
    """Rows of cells below a head; without a head the first cell of each row names it."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, eq=False)
class Pictures:
    """Curves side by side."""

    plots: Sequence[CurvePlot]


Block = Paragraph | Items | Tiles | Table | Pictures


@dataclass(frozen=True)
class Section:
    """A heading and what is below it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A report."""

    title: str
    subtitle: str
    sections: Sequence[Section]
