"""How a request is refused: the entry at fault by its pointer or parameter, the rule, and the value that broke it."""

from __future__ import annotations

from typing import Any

from app.platform.errors import Invalid
from app.platform.ids import Prefix, is_id

_SHOWN = 100


def invalid(pointer: str, detail: str, *, code: str | None = None) -> Invalid:
    """A refusal that points at one entry of the job."""
    return Invalid(detail, code=code, errors=[{"pointer": pointer, "detail": detail}])


def shown(value: Any) -> str:
    """A caller's value, cut short."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def escape(name: str) -> str:
    """A name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def check_id(parameter: str, value: str | None, prefix: Prefix) -> None:
    """Raise Invalid for a filter that is given and is no id of its kind."""
    if value is not None and not is_id(value, prefix):
        detail = f"{parameter} must be an id such as {prefix}_…, got {value[:100]!r}"
        raise Invalid(detail, errors=[{"parameter": parameter, "detail": detail}])
