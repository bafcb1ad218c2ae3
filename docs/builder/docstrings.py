"""Docstrings in numpydoc's form, as parts: the text, and sections of named entries or of text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEAD = re.compile(r"^(?P<name>[A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)


@dataclass
class Entry:
    """One parameter, attribute, result or error of a section."""

    names: list[str]
    kind: str
    text: str


@dataclass
class Docstring:
    """A docstring taken apart."""

    text: str = ""
    """What comes before the first section."""
    sections: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, documented: object) -> Docstring:
        """Return the parts of an object's docstring; of the text itself if it is one."""
        found = documented if isinstance(documented, str) else inspect.getdoc(documented)
        if not found:
            return cls()
        text = inspect.cleandoc(found)
        heads = [*_HEAD.finditer(text)]
        ends = [head.start() for head in heads[1:]] + [len(text)]
        sections = {
            head["name"]: text[head.end() : end].strip("\n")
            for head, end in zip(heads, ends, strict=False)
        }
        return cls(text[: heads[0].start()].strip() if heads else text.strip(), sections)

    def entries(self, section: str) -> list[Entry]:
        """Return the entries of a section; none if it is not there."""
        return [*_entries(self.sections.get(section, ""))]

    def described(self, *sections: str) -> dict[str, Entry]:
        """Return the entries of sections by name: an entry with several names counts for each."""
        return {
            name: entry
            for section in sections
            for entry in self.entries(section)
            for name in entry.names
        }


def _entries(text: str) -> Iterator[Entry]:
    blocks = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    names: list[str] = []
    for block in blocks:
        if not block.strip():
            continue
        head, _, rest = block.partition("\n")
        given, _, kind = head.partition(" : ")
        names += [name.strip().lstrip("*") for name in given.split(",") if name.strip()]
        if not rest.strip() and not kind and given.rstrip().endswith(","):
            continue  # the names go on in the next line
        yield Entry(names, kind.strip(), inspect.cleandoc(rest).strip())
        names = []


def with_code(text: str) -> Iterator[str]:
    """Yield the text of an example with its sessions as blocks of code."""
    inside = False
    for line in text.splitlines():
        if not inside and line.lstrip().startswith(">>>"):
            inside = True
            yield from ("", "```pycon")
        elif inside and not line.strip():
            inside = False
            yield "```"
        yield re.sub(r"\s*# doctest:.*", "", line) if inside else line
    if inside:
        yield "```"
    yield ""


def as_markdown(text: str) -> str:
    """Return a docstring's text for Markdown: what reads as markup there, but is none, is escaped."""
    pieces = re.split(r"(``?[^`]+``?)", text)
    return "".join(piece if k % 2 else piece.replace("<", "&lt;") for k, piece in enumerate(pieces))
