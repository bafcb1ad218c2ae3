"""Write a report as Markdown, or as one HTML page without scripts and external files."""

from __future__ import annotations

import base64
import hashlib
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
    Section,
    Table,
    Tiles,
)
from app.reports.plots import to_png, to_svg
from core.explain.svg import escape

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 2rem 4rem; background: #fff; color: #1c2733;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .7rem; padding-bottom: .25rem; border-bottom: 2px solid #0b6bcb; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
.subtitle { color: #52606d; margin-top: .3rem; }
ul { margin: .5rem 0; padding-left: 1.3rem; }
li { overflow-wrap: anywhere; }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: .9rem 0; }
.tile { flex: 1 1 11rem; padding: .7rem .9rem; border: 1px solid #d9dee4; border-radius: 8px; background: #f7f9fb; }
.tile span { display: block; color: #52606d; font-size: .85rem; overflow-wrap: anywhere; }
.tile strong { display: block; font-size: 1.55rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; margin: .6rem 0; font-size: .88rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .32rem .6rem; border-bottom: 1px solid #e4e7eb; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; }
.short { white-space: nowrap; }
thead th { border-bottom: 2px solid #c3cad2; color: #52606d; font-weight: 600; overflow-wrap: normal; }
tbody th { font-weight: 500; }
.bar { width: 9rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1.2rem; }
.pictures svg { width: 100%; height: auto; }
footer { margin-top: 3rem; color: #52606d; font-size: .85rem; }
@page { size: A4; margin: 15mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; }
  tr, .tile, .pictures svg { break-inside: avoid; }
  thead { display: table-header-group; }
  .wide { overflow: visible; }
  .pictures { grid-template-columns: 1fr 1fr; }
}
"""
_SHORT, _SHORT_OF_MANY = 24, 12  # characters that stay on one line; in a table of many columns
_MANY = 7
_BLUE = "#0b6bcb"
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
"""Content security policy of the page: only its own style sheet, by hash."""


def to_html(document: Document) -> str:
    """Write a report as HTML. All texts are escaped here."""
    sections = "\n".join(_section(section) for section in document.sections)
    title = escape(document.title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<header>\n"
        f'<h1>{title}</h1>\n<p class="subtitle">{escape(document.subtitle)}</p>\n</header>\n<main>\n'
        f"{sections}\n</main>\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    blocks = "\n".join(_block(block) for block in section.blocks)
    return f"<section>\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>"


def _block(block: Block) -> str:
    match block:
        case Paragraph(words):
            return f"<p>{escape(words)}</p>"
        case Items(items):
            return "<ul>\n" + "\n".join(f"<li>{escape(item)}</li>" for item in items) + "\n</ul>"
        case Tiles(tiles):
            shown = (
                f'<div class="tile"><span>{escape(tile.name)}</span><strong>{escape(tile.figure)}</strong>'
                f"<span>{escape(tile.note)}</span></div>"
                for tile in tiles
            )
            return '<div class="tiles">\n' + "\n".join(shown) + "\n</div>"
        case Table():
            return _table(block)
        case Pictures(plots):
            return '<div class="pictures">\n' + "\n".join(map(to_svg, plots)) + "\n</div>"


def _table(table: Table) -> str:
    head = ""
    if table.head:
        cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.head)
        head = f"<thead><tr>{cells}</tr></thead>\n"
    short = _SHORT if max(map(len, table.rows), default=0) < _MANY else _SHORT_OF_MANY
    rows = (
        f"<tr>{_cell('th scope=row', first, short)}{''.join(_cell('td', cell, short) for cell in rest)}</tr>"
        for first, *rest in table.rows
    )
    body = "\n".join(rows)
    return f'<div class="wide"><table>\n{head}<tbody>\n{body}\n</tbody>\n</table></div>'


def _cell(tag: str, cell: Cell, short: int) -> str:
    if not isinstance(cell, str):
        return f"<{tag}>{_drawn(cell)}</{tag[:2]}>"
    kind = " class=short" if len(cell) <= short else ""
    return f"<{tag}{kind}>{escape(cell)}</{tag[:2]}>"


def _drawn(cell: Bar | Bars) -> str:
    """Return a horizontal bar or a histogram as SVG. Every positive count is visible."""
    if isinstance(cell, Bar):
        return (
            '<svg class="bar" viewBox="0 0 100 10" width="144" height="12" preserveAspectRatio="none" '
            f'aria-hidden="true"><rect width="{100 * cell.fraction:.1f}" height="10" fill="{_BLUE}"/></svg>'
        )
    highest, width = max(cell.counts, default=0), 100 / max(len(cell.counts), 1)
    rects = (
        f'<rect x="{width * at:.2f}" y="{30 - height:.2f}" width="{0.9 * width:.2f}" height="{height:.2f}" '
        f'fill="{_BLUE}"/>'
        for at, count in enumerate(cell.counts)
        if (height := max(30 * count / highest, 0.7) if count else 0.0)
    )
    return (
        '<svg class="bar" viewBox="0 0 100 30" width="144" height="36" preserveAspectRatio="none" '
        f'aria-hidden="true">{"".join(rects)}<path d="M0 30H100" stroke="#c3cad2"/></svg>'
    )


_PICTURE_WIDTH = 1000
_BAR = 20
_BLOCKS = " ▁▂▃▄▅▆▇█"

# Characters with a meaning in Markdown: emphasis, links, code, cells, tags, entities. An underscore has one only at the
# edge of a word.
_SPECIAL = re.compile(r"[\\`*\[\]<|~&]|(?<![^\W_])_|_(?![^\W_])")
# At the start of a line these would be a heading, a quote, a list or a rule.
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_LEADING = re.compile(r"^([-+](?=\s|$)|[#=>]|--)")


def to_markdown(document: Document) -> str:
    """Write a report as Markdown. All texts are escaped here; pictures are at the end, as data URLs."""
    pictures: list[str] = []
    lines = [f"# {_plain(document.title)}", "", _plain(document.subtitle), ""]
    for section in document.sections:
        lines += [f"## {_plain(section.title)}", ""]
        for block in section.blocks:
            lines += [*_markdown_block(block, pictures), ""]
    return "\n".join([*lines, *pictures]).rstrip() + "\n"


def _markdown_block(block: Block, pictures: list[str]) -> Iterator[str]:
    match block:
        case Paragraph(words):
            yield _plain(words)
        case Items(items):
            for item in items:
                yield f"- {_plain(item)}"
        case Tiles(tiles):
            rows = [[tile.name, tile.figure, tile.note] for tile in tiles]
            yield from _markdown_table(Table(("", "", ""), rows))
        case Table():
            yield from _markdown_table(block)
        case Pictures(plots):
            for plot in plots:
                drawn = base64.b64encode(to_png(to_svg(plot), _PICTURE_WIDTH)).decode()
                name = f"picture-{len(pictures) + 1}"
                pictures.append(f"[{name}]: data:image/png;base64,{drawn}")
                yield f"![{_plain(', '.join((plot.title, *plot.notes)))}][{name}]"


def _markdown_table(table: Table) -> Iterator[str]:
    width = len(table.rows[0]) if table.rows else len(table.head)
    yield _row([_plain(name) for name in table.head] or [""] * width)
    yield _row(["---"] * width)
    for row in table.rows:
        yield _row([_markdown_cell(cell) for cell in row])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    match cell:
        case Bar(fraction):
            return "█" * round(_BAR * fraction)
        case Bars(counts):
            highest = max(counts, default=0) or 1
            return "".join(_BLOCKS[-(-count * (len(_BLOCKS) - 1) // highest)] for count in counts)
    return _plain(cell)


def _plain(words: str) -> str:
    """Escape a text for Markdown, on one line."""
    escaped = _SPECIAL.sub(r"\\\g<0>", " ".join(words.split()))
    return _NUMBERED.sub(r"\1\\\2", _LEADING.sub(r"\\\1", escaped))
