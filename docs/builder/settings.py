"""The page of the settings: type, default and description of each, as `app/platform/settings.py` has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from app.platform.settings import Settings

PREFIX = "RANKWRIGHT_"
UNITS = {1: "bytes", 2**20: "MiB", 2**30: "GiB", 2**40: "TiB"}
_HEADING = re.compile(rf"^### `{PREFIX}(\w+)`$", re.MULTILINE)


def with_settings(page: str) -> str:
    """Return the text of docs/settings.md with the entry of each setting below its heading, before any advice."""

    def complete(found: re.Match[str]) -> str:
        name = found[1].lower()
        field = Settings.model_fields.get(name)
        return found[0] if field is None else f"{found[0]}\n\n{_entry(name, field)}"

    return _HEADING.sub(complete, page)


def _entry(name: str, field: FieldInfo) -> str:
    return f"Type: {_allowed(name, field)}.{_default(name, field)}\n\n{field.description}"


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
