"""docs/settings.md has an entry for each setting, which says what `app/platform/settings.py` says.

Below that an entry may have advice. Run this file to print the entries anew, without the advice.
"""

from __future__ import annotations

import re
import sys
from itertools import starmap
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from app.platform.settings import Settings

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "settings.md"
PREFIX = "RANKWRIGHT_"
UNITS = {1: "bytes", 2**20: "MiB", 2**30: "GiB", 2**40: "TiB"}


def test_an_entry_says_what_the_setting_says() -> None:
    page = entries()
    for name, field in Settings.model_fields.items():
        heading, entry = f"{PREFIX}{name.upper()}", " ".join(_entry(name, field).split())
        assert " ".join(page[heading].split()).startswith(entry)


def test_every_variable_that_the_code_reads_is_on_the_page_and_the_other_way_round() -> None:
    named = re.compile(PREFIX + r"[A-Z_]*[A-Z]")
    read_by_the_code = {PREFIX + name.upper() for name in Settings.model_fields}
    for folder in ("app", "core", "workers"):
        for module in (ROOT / folder).rglob("*.py"):
            read_by_the_code |= set(named.findall(module.read_text()))
    assert entries().keys() == read_by_the_code


def entries() -> dict[str, str]:
    """The text of each variable on the page, up to the next heading."""
    pieces = re.split(rf"^#+ (?:`({PREFIX}\w+)`|.*)$", PAGE.read_text(), flags=re.MULTILINE)
    found = list(zip(pieces[1::2], pieces[2::2], strict=True))
    named = {name: text for name, text in found if name}
    assert len(named) == sum(name is not None for name, _ in found)
    return named


def _entry(name: str, field: FieldInfo) -> str:
    assert field.description, f"{name} has no description"
    facts = f"Type: {_allowed(name, field)}.{_default(name, field)}"
    return f"{facts}\n\n{field.description}"


def _default(name: str, field: FieldInfo) -> str:
    """Return the default; nothing if the description has it."""
    if field.default is None:
        return "" if "Default:" in (field.description or "") else " Default: not set."
    if name.endswith("_bytes"):
        unit, symbol = max(each for each in UNITS.items() if each[0] <= field.default)
        return f" Default: `{field.default}` ({field.default / unit:g} {symbol})."
    return "" if field.default == "" else f" Default: `{field.default}`."


def _allowed(name: str, field: FieldInfo) -> str:
    """Return the values that the annotation permits: `A`, `Annotated[A, bound]`, or either of them `| None`."""
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    kind: Any = kinds[0] if type(None) in get_args(field.annotation) else field.annotation
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    bounds = [*field.metadata, *getattr(kind, "__metadata__", ())]
    word = {
        int: "whole number",
        float: "number",
        bool: "true or false",
        Path: "path",
        str: "URL" if name.endswith("_url") else "string",
        SecretStr: "URL",
    }[getattr(kind, "__origin__", kind)]
    return " ".join([word, *map(_bound, bounds)])


def _bound(bound: Any) -> str:
    if isinstance(bound, annotated_types.Ge):
        return f"≥ {bound.ge}"
    if isinstance(bound, annotated_types.Le):
        return f"and ≤ {bound.le}"
    assert isinstance(bound, annotated_types.Gt), f"teach this page to write {bound!r}"
    return f"> {bound.gt}"


def _heading(name: str, field: FieldInfo) -> str:
    return f"### `{PREFIX}{name.upper()}`\n\n{_entry(name, field)}\n"


if __name__ == "__main__":
    sys.stdout.write("\n".join(starmap(_heading, Settings.model_fields.items())))
