"""Markdown for the pages of the reference: tables, code, headings with an anchor, and marks of what is missing."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

Json = Mapping[str, Any]

LONG = 30
"""Lines from which on an example is folded."""


def cell(text: object) -> str:
    """Return text for one cell of a table: one line, without an end of the cell."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(*rows: Iterable[object], kind: str = "fields") -> Iterator[str]:
    """Yield a table whose first row is the head; nothing if there are no others. `kind` is its class in site.css."""
    lines = ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    if len(lines) > 1:
        columns = lines[0].count("|") - 1
        head = [lines[0], "|" + " --- |" * columns]
        yield from (f'<div class="{kind}" markdown>', "", *head, *lines[1:], "", "</div>", "")


def heading(
    level: int, title: str, anchor: str = "", kind: str = "", label: str = ""
) -> Iterator[str]:
    """Yield a heading. `label` is its title in the list beside the text, if that is another."""
    named = f"data-toc-label='{html.escape(label)}'" if label else ""
    marks = " ".join(filter(None, (anchor and f"#{anchor}", kind and f".{kind}", named)))
    yield from (f"{'#' * level} {title}" + (f" {{{marks}}}" if marks else ""), "")


def code(text: str, language: str) -> Iterator[str]:
    """Yield a block of code."""
    yield from (f"```{language}", *text.rstrip().splitlines(), "```", "")


def sample(value: object, *, language: str = "json", title: str = "Example") -> Iterator[str]:
    """Yield an example of a body; one that is long is folded."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    lines = [*code(text, language if not isinstance(value, str) else "text")]
    if len(lines) > LONG:
        yield from (f'??? example "{title} ({len(lines) - 3} lines)"', "")
        yield from (f"    {line}" if line else "" for line in lines)
    else:
        yield from (f"<p class='caption'>{title}</p>", "", *lines)


def word(text: object) -> str:
    """Return code that stays on one line (site.css)."""
    return f"`{text}`{{.whole}}"


def hidden(text: str) -> str:
    """Return text that the search finds and shows, but the page does not (site.css)."""
    return f'<span class="of">{text}</span>'


def sentence(text: str) -> str:
    """Return text that ends as a sentence does."""
    text = text.strip()
    return text if not text or text[-1] in ".:!?…)`" else text + "."


def first_sentence(text: str) -> str:
    """Return the first sentence of a description."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    found = re.match(r"(.+?[.!?])(?=\s+[A-Z`(]|$)", paragraph)
    return found[1] if found else paragraph


def gap(kind: str, name: str) -> str:
    """Return a mark that something is missing, which `docs/check.py` finds in the page that was built."""
    return f'<span class="gap" data-gap="{html.escape(kind)}: {html.escape(name)}"></span>'


def link(text: str, target: str, page: str) -> str:
    """Return a link from a page to another, both as paths of the site; the target may have an anchor."""
    path, _, anchor = target.partition("#")
    end = f"#{anchor}" if anchor else ""
    return f"[{text}]({'' if path == page and anchor else relative(path, page)}{end})"


def relative(path: str, page: str) -> str:
    """Return the path of a page as seen from another."""
    here, there = PurePosixPath(page).parent.parts, PurePosixPath(path).parts
    common = 0
    while common < min(len(here), len(there) - 1) and here[common] == there[common]:
        common += 1
    return "/".join([*[".."] * (len(here) - common), *there[common:]])


def slug(name: str) -> str:
    """Return a name as part of an address: `TreeRankForest` is `treerankforest`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
