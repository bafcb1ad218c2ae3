"""The parameters of an operator's named queries: their types, and the check of the values that a caller gives."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from app.platform.errors import MAX_ERRORS, escape, nearest, refuse_all, shown

MAX_TEXT = 1000
"""Most characters of a text."""
MAX_INTEGER = 2**63 - 1
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _is_text(value: object) -> bool:
    return (
        isinstance(value, str) and len(value) <= MAX_TEXT and "\0" not in value and _is_utf8(value)
    )


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _is_integer(value: object) -> bool:
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and -MAX_INTEGER - 1 <= value <= MAX_INTEGER
    )


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float holds
        return False


def _is_date(value: object) -> bool:
    if not isinstance(value, str) or _DATE.fullmatch(value) is None:
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_timestamp(value: object) -> bool:
    if not isinstance(value, str) or not value.isascii() or len(value) > _MAX_TIMESTAMP:
        return False
    try:
        found = datetime.fromisoformat(value)
        found.astimezone(UTC)
    except (ValueError, OverflowError):  # no time; one whose year in UTC is 0 or 10000
        return False
    return _DATE.match(value) is not None and found.utcoffset() is not None


_MAX_TIMESTAMP = 40

TYPES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "text": (_is_text, f"text of at most {MAX_TEXT:,} characters, without NUL"),
    "integer": (_is_integer, "a whole number of at most 64 bits"),
    "number": (_is_number, "a finite number"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "date": (_is_date, 'a date such as "2026-01-31"'),
    "timestamp": (_is_timestamp, 'a time with its offset, such as "2026-01-31T12:00:00Z"'),
}
"""The types of parameters: whether a JSON value has the type, and the rule in words."""


def check_parameters(types: Mapping[str, str], given: Mapping[str, Any], pointer: str) -> None:
    """Raise Invalid for missing, unknown or bad parameters. `types` has keys of `TYPES`; `pointer` locates `given`."""
    errors = []

    def add(name: str, detail: str) -> None:
        errors.append({"pointer": f"{pointer}/{escape(name)}", "detail": detail})

    for name in given:
        if name not in types and len(errors) < MAX_ERRORS:
            hint = (
                nearest(name, types) or f"the query has the parameters {', '.join(types) or 'none'}"
            )
            add(name, f"the query has no parameter {shown(name)}: {hint}")
    for name, type_ in types.items():
        is_valid, rule = TYPES[type_]
        if name not in given:
            add(name, f"the parameter {name} is required: {rule}")
        elif not is_valid(given[name]):
            add(name, f"the parameter {name} must be {rule}, got {shown(given[name])}")
    refuse_all(errors)
