"""A report as Markdown, with its pictures inside: readable as it is, and by every reader of GitHub's tables."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from app.reports.document import (
    Bar,
    Bars,
    Block,
    Cell,
    Document,
    Items,
    Paragraph,
    Pictures,
    Table,
    Tiles,
)
from app.reports.plots import to_png, to_svg

_PICTURE_WIDTH = 1000
_BAR = 20
_BLOCKS = " ▁▂▃▄▅▆▇█"

# What begins something else than words: emphasis, links, code, cells, tags, entities. An underscore does so only at the
# edge of a word.
_SPECIAL = re.compile(r"[\\`*\[\]<|~&]|(?<![^\W_])_|_(?![^\W_])")
# At the start of a line these would be a heading, a quote, a list or a rule.
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_LEADING = re.compile(r"^([-+](?=\s|$)|[#=>]|--)")


def to_markdown(document: Document) -> str:
    """Write a report as Markdown. Every word that is not ours is escaped here; pictures are at the end, as data."""
    pictures: list[str] = []
    lines = [f"# {_plain(document.title)}", "", _plain(document.subtitle), ""]
    for section in document.sections:
        lines += [f"## {_plain(section.title)}", ""]
        for block in section.blocks:
            lines += [*_block(block, pictures), ""]
    return "\n".join([*lines, *pictures]).rstrip() + "\n"


def _block(block: Block, pictures: list[str]) -> Iterator[str]:
    match block:
        case Paragraph(words):
            yield _plain(words)
        case Items(items):
            for item in items:
                yield f"- {_plain(item)}"
        case Tiles(tiles):
            rows = [[tile.name, tile.figure, tile.note] for tile in tiles]
            yield from _table(Table(("", "", ""), rows))
        case Table():
            yield from _table(block)
        case Pictures(plots):
            for plot in plots:
                drawn = base64.b64encode(to_png(to_svg(plot), _PICTURE_WIDTH)).decode()
                name = f"picture-{len(pictures) + 1}"
                pictures.append(f"[{name}]: data:image/png;base64,{drawn}")
                yield f"![{_plain(f'{plot.title}, {plot.note}')}][{name}]"


def _table(table: Table) -> Iterator[str]:
    width = len(table.rows[0]) if table.rows else len(table.head)
    yield _row([_plain(name) for name in table.head] or [""] * width)
    yield _row(["---"] * width)
    for row in table.rows:
        yield _row([_cell(cell) for cell in row])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    match cell:
        case Bar(share):
            return "█" * round(_BAR * share)
        case Bars(counts):
            highest = max(counts, default=0) or 1
            return "".join(_BLOCKS[-(-count * (len(_BLOCKS) - 1) // highest)] for count in counts)
    return _plain(cell)


def _plain(words: str) -> str:
    """Words that no reader takes for anything else, on one line."""
    escaped = _SPECIAL.sub(r"\\\g<0>", " ".join(words.split()))
    return _NUMBERED.sub(r"\1\\\2", _LEADING.sub(r"\\\1", escaped))
