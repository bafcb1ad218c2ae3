"""Writers of a report: as Markdown, or as one HTML page without scripts and external files."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from app.platform.templates import load_templates
from app.reports.document import (
    SIGNATURE_HEAD,
    Bar,
    Bars,
    Block,
    Cell,
    Document,
    Items,
    Paragraph,
    Pictures,
    Section,
    Signatures,
    Table,
    Tiles,
)
from app.reports.plots import to_png
from app.svg import draw_picture
from app.svg_parts import replace_unprintable

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent
_STYLE = (FOLDER / "templates" / "report.css").read_text(encoding="utf-8")


class HtmlPage(NamedTuple):
    """A page, and its content security policy: only its own style sheet, by hash."""

    html: str
    policy: str


@cache
def _environment() -> Environment:
    made = load_templates(FOLDER / "templates")
    # The drawing has escaped all names.
    made.globals.update(draw_picture=draw_picture, signature_head=SIGNATURE_HEAD)
    return made


def to_html(document: Document) -> HtmlPage:
    """The templates escape all texts."""
    # Text that every printed page repeats can only come from the style sheet.
    style = f"{_STYLE}@page {{ @bottom-left {{ content: {_css_string(document.footer)}; }} }}\n"
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    template = _environment().get_template("report.html")
    page = template.render(document=document, style=style, policy=policy)
    return HtmlPage(replace_unprintable(page), policy)


def _css_string(words: str) -> str:
    """Escape every character that could end the string or the style sheet."""
    words = replace_unprintable(words)
    return '"' + re.sub(r"[^\w .,:()·-]", lambda found: f"\\{ord(found[0]):x} ", words) + '"'


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
    """All texts are escaped; pictures are at the end, as data URLs."""
    pictures: list[str] = []
    lines = [f"# {_plain(document.title)}", "", _plain(document.subtitle), ""]
    for section in (*document.first, *document.sections):
        lines += _markdown_section(section, "##", pictures)
    if document.appendix:
        lines += ["## Appendix", ""]
    for section in document.appendix:
        lines += _markdown_section(section, "###", pictures)
    return "\n".join([*lines, *pictures]).rstrip() + "\n"


def _markdown_section(section: Section, level: str, pictures: list[str]) -> Iterator[str]:
    yield from (f"{level} {_plain(section.title)}", "")
    for block in section.blocks:
        yield from (*_markdown_block(block, pictures), "")


def _markdown_block(block: Block, pictures: list[str]) -> Iterator[str]:
    """Pictures are appended to `pictures`."""
    match block:
        case Paragraph(words):
            yield _plain(words)
        case Items(items):
            for item in items:
                yield f"- {_plain(item)}"
        case Tiles(tiles):
            rows = [[tile.name, tile.metric, tile.note] for tile in tiles]
            yield from _markdown_table(Table(("", "", ""), rows))
        case Table():
            yield from _markdown_table(block)
        case Signatures(roles):
            empty = [""] * (len(SIGNATURE_HEAD) - 1)
            yield from _markdown_table(Table(SIGNATURE_HEAD, [[role, *empty] for role in roles]))
        case Pictures(plots):
            for plot in plots:
                drawn = base64.b64encode(to_png(draw_picture(plot), _PICTURE_WIDTH)).decode()
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
    """Draw bars with characters."""
    match cell:
        case Bar(fraction):
            return "█" * round(_BAR * fraction)
        case Bars(counts):
            highest = max(counts, default=0) or 1
            return "".join(_BLOCKS[-(-count * (len(_BLOCKS) - 1) // highest)] for count in counts)
    return _plain(cell)


def _plain(words: str) -> str:
    """Escape text for Markdown, on one line."""
    escaped = _SPECIAL.sub(r"\\\g<0>", " ".join(words.split()))
    return _NUMBERED.sub(r"\1\\\2", _LEADING.sub(r"\\\1", escaped))
