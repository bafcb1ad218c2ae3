"""docs/settings.md says exactly what `app/platform/settings.py` says. Run this file to print the table anew."""

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
HEADER = ("Variable", "Default", "Allowed", "Meaning")


def test_the_table_is_what_the_settings_say() -> None:
    written = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    assert "\n".join(written[: len(table().splitlines())]) == table()


def test_every_variable_that_the_code_reads_is_on_the_page_and_the_other_way_round() -> None:
    named = re.compile(PREFIX + r"[A-Z_]*[A-Z]")
    read_by_the_code = {PREFIX + name.upper() for name in Settings.model_fields}
    for folder in ("app", "core", "workers"):
        for module in (ROOT / folder).rglob("*.py"):
            read_by_the_code |= set(named.findall(module.read_text()))
    on_the_page = set(re.findall(rf"^\| `({PREFIX}\w+)`", PAGE.read_text(), flags=re.MULTILINE))
    assert on_the_page == read_by_the_code


def table() -> str:
    """The page's first table, one row a setting, in the order of the class."""
    rows = [HEADER, ("---",) * len(HEADER), *starmap(_row, Settings.model_fields.items())]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _row(name: str, field: FieldInfo) -> tuple[str, ...]:
    default = "" if field.default is None else f"`{field.default}`"
    assert field.description, f"{name} has no description"
    return f"`{PREFIX}{name.upper()}`", default, _allowed(name, field), field.description


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
        str: "URL" if name.endswith("_url") else "text",
        SecretStr: "URL",
    }[getattr(kind, "__origin__", kind)]
    return " ".join([word, *map(_bound, bounds)])


def _bound(bound: Any) -> str:
    if isinstance(bound, annotated_types.Ge):
        return f"≥ {bound.ge}"
    if isinstance(bound, annotated_types.Le):
        return f"and ≤ {bound.le}"
    assert isinstance(bound, annotated_types.Gt), f"teach this table to write {bound!r}"
    return f"> {bound.gt}"


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
