"""The navigation: that of zensical.toml, for the pages that exist, with the pages of the reference in it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_NAV = re.compile(r"^nav = \[$.*?^\]$\n", re.MULTILINE | re.DOTALL)


def configuration(text: str, target: Path, version: str = "") -> str:
    """Return the configuration of the build: zensical.toml with the version and a navigation of the pages in `target`.

    In its navigation, `folder/*` is one entry for each page of a folder but its index.
    """
    given = tomllib.loads(text)["project"]["nav"]
    found = _NAV.sub(lambda _: f"nav = {_toml([*_existing(given, target)])}\n", text, count=1)
    return found.replace("{version}", version)


def _existing(entries: Iterable[Any], target: Path) -> Iterator[dict[str, Any]]:
    for entry in entries:
        ((title, inside),) = entry.items()
        if isinstance(inside, list):
            if kept := [*_existing(inside, target)]:
                yield {title: kept}
        elif inside.endswith("/*"):
            pages = [
                each for each in (target / inside).parent.glob("*.md") if each.name != "index.md"
            ]
            yield from ({title_of(each): str(each.relative_to(target))} for each in sorted(pages))
        elif (target / inside).is_file():
            yield {title: inside}


def pages_of(entries: Iterable[Any]) -> Iterator[str]:
    """Yield the pages, and the patterns, of a navigation."""
    for entry in entries:
        for inside in entry.values():
            yield from pages_of(inside) if isinstance(inside, list) else [inside]


def title_of(page: Path) -> str:
    """Return the title of a page, without the marks of its heading; a name of Python without its package."""
    first = next(
        (line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# ")),
        page.stem,
    )
    title = re.sub(r"\s*\{[^}]*\}$", "", first.removeprefix("# ")).strip()
    name = re.fullmatch(r"`(?:\w+\.)*(\w+)`", title)
    return name[1] if name else title.replace("`", "")


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return (
            "{ "
            + ", ".join(
                f"{json.dumps(k, ensure_ascii=False)} = {_toml(v)}" for k, v in value.items()
            )
            + " }"
        )
    return json.dumps(value, ensure_ascii=False)
