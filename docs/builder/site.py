"""The pages that were built, as `docs/check.py` reads them: their sections, anchors, links and marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_HEADING = re.compile(r"h([1-6])")


@dataclass
class Section:
    """What stands below a heading, up to the next one."""

    level: int
    anchor: str = ""
    title: str = ""
    text: str = ""
    classes: set[str] = field(default_factory=set)
    """Classes of the elements within it."""
    codes: list[str] = field(default_factory=list)
    """Its blocks of code."""
    gaps: list[str] = field(default_factory=list)
    """What `docs/builder` marked as missing: the kind, a colon, and the name."""


@dataclass
class Page:
    """A page that was built."""

    path: str
    """Address below the site: `reference/http/jobs/`."""
    size: int
    sections: list[Section]
    anchors: set[str]
    links: list[str]

    def entry(self, anchor: str) -> list[Section]:
        """Return a section with those below it; empty if there is no such heading."""
        for k, section in enumerate(self.sections):
            if section.anchor == anchor:
                after = self.sections[k + 1 :]
                end = next(
                    (n for n, each in enumerate(after) if each.level <= section.level), len(after)
                )
                return [section, *after[:end]]
        return []


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sections = [Section(7)]
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self._article = 0
        self._heading = ""
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: dict[str, Any] = dict(attrs)
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "article":
            self._article += 1
        if not self._article:
            return
        if "href" in given or "src" in given:
            self.links.append(given.get("href") or given.get("src") or "")
        if _HEADING.fullmatch(tag):
            self._heading = tag
            self.sections.append(Section(int(tag[1]), given.get("id", "")))
        section = self.sections[-1]
        section.classes.update((given.get("class") or "").split())
        if "data-gap" in given:
            section.gaps.append(given["data-gap"])
        if tag == "pre":
            self._code += 1
            section.codes.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._article -= 1
        if tag == self._heading:
            self._heading = ""
        if tag == "pre":
            self._code -= 1

    def handle_data(self, data: str) -> None:
        if not self._article:
            return
        section = self.sections[-1]
        if self._heading:
            section.title += data
        else:
            section.text += data
        if self._code:
            section.codes[-1] += data


def read_page(path: str, text: str) -> Page:
    """Return a page of HTML, taken apart."""
    reader = _Reader()
    reader.feed(text)
    for section in reader.sections:
        section.title = section.title.replace("¶", "").strip()
    return Page(path, len(text.encode()), reader.sections, reader.anchors, reader.links)


def read_site(folder: Path) -> dict[str, Page]:
    """Return all pages below a folder by their addresses."""
    pages = {}
    for file in sorted(folder.rglob("*.html")):
        path = str(file.relative_to(folder)).removesuffix("index.html")
        pages[path] = read_page(path, file.read_text(encoding="utf-8"))
    return pages


def broken_links(
    pages: dict[str, Page], folder: Path, root: Path, repository: str
) -> Iterator[str]:
    """Yield the links of the texts that lead nowhere: to no page, no anchor, or no file of the repository."""
    for page in pages.values():
        if page.path == "404.html":
            continue
        for link in dict.fromkeys(page.links):
            if link.startswith(repository):
                file = unquote(urlsplit(link.removeprefix(repository)).path)
                if not (root / file).exists():
                    yield f"{page.path}: {file} is not in the repository"
                continue
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("data:"):
                continue
            target = _resolved(page.path, unquote(parts.path))
            if target not in pages and not (folder / target).is_file():
                yield f"{page.path}: {link} leads nowhere"
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors
            ):
                yield f"{page.path}: {link} has no such anchor"


def _resolved(page: str, path: str) -> str:
    if not path:
        return page
    steps = page.split("/")[:-1]
    for step in path.split("/"):
        if step == "..":
            steps = steps[:-1]
        elif step != ".":
            steps.append(step)
    return "/".join(steps)
