"""The errors that services raise. HTTP writes them as problem+json, the command line prints `detail`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from app.platform.ids import is_id
from core.errors import MAX_MESSAGE, MAX_VALUE, shorten

MAX_LEVELS = 100
"""Levels of a nested value that a message shows."""
MAX_ERRORS = 100
"""Most single errors of one refusal. Code that collects errors stops there: a refusal costs no more than what is
refused.
"""
MAX_REFUSAL_LENGTH = 16_000
"""Most characters of a refusal as JSON."""
MAX_ERRORS_LENGTH = 14_000
"""Most characters of the single errors of a refusal as JSON: fewer errors are listed if these are long."""
_MAX_MISSPELT_LENGTH = 60


def shown(value: object) -> str:
    """Return a caller's value for a message: its repr, shortened."""
    if isinstance(value, str):
        value = shorten(value, MAX_VALUE)  # first, because the repr may take four times the memory
    if _is_deep(
        value
    ):  # JSON parsers allow deeper nesting than Python's repr, whose time is quadratic in it
        return "a deeply nested value"
    return shorten(repr(value), MAX_VALUE)


def _is_deep(value: object) -> bool:
    """True for more than `MAX_LEVELS` levels, in linear time."""
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [
            inner
            for each in level
            if isinstance(each, list | tuple | dict)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def bounded(
    errors: Iterable[Mapping[str, Any]], most: int = MAX_ERRORS_LENGTH
) -> list[dict[str, Any]]:
    """Return errors that fit into a response: at most `MAX_ERRORS`, and at most `most` characters as JSON.

    A long `detail` is shortened. Other members are for programs: one that is too long is left out, because a shortened
    pointer would point elsewhere.
    """
    found: list[dict[str, Any]] = []
    for error in islice(errors, MAX_ERRORS):
        each = {
            name: shorten(value) if name == "detail" else value
            for name, value in error.items()
            if name == "detail" or len(json.dumps(value, default=str)) <= MAX_MESSAGE
        }
        most -= len(json.dumps(each, default=str)) + len(", ")
        if most < 0:
            break
        found.append(each)
    return found


_WITH_COMMA = re.compile(r"[+-]?(\d{1,3}([.'’\s]\d{3})+|\d*),\d+")
_WITH_POINT = re.compile(r"[+-]?\d{1,3}([,'’\s]\d{3})+\.\d+")
_WHOLE = re.compile(r"[+-]?\d{1,3}([.,'’\s]\d{3}){2,}|[+-]?\d{1,3}(['’\s]\d{3})+")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}([.,'’\s]\d{3})+")
_MAX_NUMBER_LENGTH = 40


def plain_number(text: str) -> str | None:
    """Return a number with a decimal comma or thousands separators in plain notation; None for any other text.

    Examples
    --------
    >>> plain_number("1.234,56"), plain_number("3895,56"), plain_number("1,234.5"), plain_number("1'234'567")
    ('1234.56', '3895.56', '1234.5', '1234567')
    >>> plain_number("1234.56") is None and plain_number("12,a") is None
    True
    """
    text = text.strip()
    if len(text) > _MAX_NUMBER_LENGTH:
        return None
    if _WITH_COMMA.fullmatch(text):
        whole, _, decimals = text.rpartition(",")
    elif _WITH_POINT.fullmatch(text):
        whole, _, decimals = text.rpartition(".")
    elif _WHOLE.fullmatch(text):
        whole, decimals = text, ""
    else:
        return None
    whole = re.sub(r"[.,'’\s]", "", whole)
    return f"{whole}.{decimals}" if decimals else whole


def advise_on_number(detail: str, value: str) -> str:
    """Return a message that asks for a number, with advice how to write `value` if it is a number in another notation.

    Examples
    --------
    >>> advise_on_number("C must be a number, got '15,5'", "15,5")
    "C must be a number, got '15,5'. Write 15.5, with a decimal point instead of a comma"
    >>> advise_on_number("C must be a number, got '1.234,56'", "1.234,56")
    "C must be a number, got '1.234,56'. Write 1234.56, with a decimal point and without thousands separators"
    >>> advise_on_number("C must be a number, got '1,500'", "1,500")
    "C must be a number, got '1,500'. Write 1.500 with a decimal point, or 1500 without a thousands separator"
    >>> advise_on_number("top must be a whole number, got '1,500'", "1,500")
    "top must be a whole number, got '1,500'. Write 1500, without thousands separators"
    >>> advise_on_number("top must be a whole number, got '5,5'", "5,5")
    "top must be a whole number, got '5,5'"
    >>> advise_on_number("C must be a number, got 'x'", "x")
    "C must be a number, got 'x'"
    """
    plain = plain_number(value)
    if plain is None:
        return detail
    if "whole number" in detail:
        is_whole = _THOUSANDS.fullmatch(value.strip()) is not None
        digits = re.sub(r"\D", "", value)
        return f"{detail}. Write {digits}, without thousands separators" if is_whole else detail
    if re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", value.strip()):
        whole = plain.replace(".", "")
        return f"{detail}. Write {plain} with a decimal point, or {whole} without a thousands separator"
    if value.strip().replace(",", ".", 1) == plain:
        return f"{detail}. Write {plain}, with a decimal point instead of a comma"
    if "." not in plain:
        return f"{detail}. Write {plain}, without thousands separators"
    return f"{detail}. Write {plain}, with a decimal point and without thousands separators"


class ServiceError(Exception):
    """A refusal with a stable `code`, an HTTP `status` and a `title`; `detail` names the thing, the rule and the value.

    `errors` lists the single errors: `{"pointer" | "line" | "column": …, "detail": …}`. `headers` are sent with the
    answer (Retry-After, WWW-Authenticate, …).
    """

    code = "error"
    status = 500
    title = "Error"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.detail = shorten(detail)
        super().__init__(self.detail)
        self.code = code or type(self).code
        self.errors: list[dict[str, Any]] = bounded(errors)
        self.headers = dict(headers or {})


def terse_detail(title: str) -> str:
    """Return the detail if a setting hides the values of rows."""
    return f"{title}: this service hides the details"


class Malformed(ServiceError):
    code, status, title = "malformed", 400, "Malformed request"


class Unauthenticated(ServiceError):
    """No key, or a key that is unknown, revoked or expired."""

    code, status, title = "unauthenticated", 401, "Authentication required"

    def __init__(self, detail: str, **kwargs: Any) -> None:
        super().__init__(detail, **kwargs)
        self.headers.setdefault("WWW-Authenticate", "Bearer")


class Forbidden(ServiceError):
    """The caller lacks the scope, or may not change the model."""

    code, status, title = "forbidden", 403, "Not allowed"


class NotFound(ServiceError):
    """The resource does not exist, or belongs to another owner."""

    code, status, title = "not_found", 404, "Not found"


class NotAcceptable(ServiceError):
    code, status, title = "not_acceptable", 406, "Not acceptable"


class Conflict(ServiceError):
    code, status, title = "conflict", 409, "Conflict"


class PreconditionFailed(ServiceError):
    code, status, title = "precondition_failed", 412, "Precondition failed"


class TooLarge(ServiceError):
    code, status, title = "too_large", 413, "Too large"


class UnsupportedMedia(ServiceError):
    code, status, title = "unsupported_media_type", 415, "Unsupported media type"


class Invalid(ServiceError):
    """The request is well-formed, but breaks a rule."""

    code, status, title = "invalid", 422, "Invalid request"


class PreconditionRequired(ServiceError):
    code, status, title = "precondition_required", 428, "Precondition required"


class TooMany(ServiceError):
    """The caller asks for more at once than is allowed; `Retry-After` says when to come back."""

    code, status, title = "too_many", 429, "Too many"

    def __init__(self, detail: str, *, retry_after: int = 1, **kwargs: Any) -> None:
        super().__init__(detail, **kwargs)
        self.headers.setdefault("Retry-After", str(retry_after))


class Unavailable(ServiceError):
    code, status, title = "unavailable", 503, "Unavailable"

    def __init__(self, detail: str, *, retry_after: int = 1, **kwargs: Any) -> None:
        super().__init__(detail, **kwargs)
        self.headers.setdefault("Retry-After", str(retry_after))


class Deadlock(Unavailable):
    """Two transactions waited for each other, and this one was rolled back. The same request may succeed now."""

    code, title = "deadlock", "Conflict with another request"


class Refused(Unavailable):
    """The database refuses this service until an operator solves the cause: a wrong password, a read-only file.

    Waiting does not help. The text is for the log and the operator's commands: it has the user, host or file, and the
    reason, but never a password. `detail` is for callers, and has none of these.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            "the database rejects the login of this service", code="database_unavailable"
        )
        self.args = (f"{self.detail}: {reason}",)


class OutOfSpace(Unavailable):
    """A disk is full, or nearly so. The same request may succeed when space is free again."""

    code, status, title = "out_of_space", 507, "Out of space"


class LeaseLost(Exception):
    """The fencing token is invalid: another attempt runs the job, or it has ended. Drop the result."""


class Overtaken(Exception):
    """Another job has stored what this one would have had to read. Roll back its result, and run it again."""


class CancelRequested(Exception):
    """The job was cancelled before it succeeded. Roll back its result, and end it as cancelled."""


def invalid(pointer: str, detail: str, *, code: str | None = None) -> Invalid:
    """The pointer names the part of the body."""
    return Invalid(detail, code=code, errors=[{"pointer": pointer, "detail": detail}])


def refuse_all(errors: Sequence[Mapping[str, Any]], code: str | None = None) -> None:
    """Raise Invalid with the detail of the first error, and by default its code."""
    if errors:
        first = errors[0]["detail"]
        count = str(len(errors)) if len(errors) < MAX_ERRORS else f"{MAX_ERRORS} or more"
        detail = first if len(errors) == 1 else f"{count} errors, the first: {first}"
        raise Invalid(detail, code=code or errors[0].get("code"), errors=errors)


NAME = r"[a-z0-9][a-z0-9._-]{0,62}"
"""Of models, aliases and owners."""
NAME_PATTERN = f"^{NAME}$"
NO_NUL_PATTERN = r"^[^\x00]*$"
"""Of any text: PostgreSQL keeps no NUL."""
PLAIN_PATTERN = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"
"""Of names that people choose and read: a control character steers a terminal, or has one name look like another."""
PATTERN_RULES: Mapping[str, str] = {
    NAME_PATTERN: (
        "must start with a lowercase letter (a to z) or a digit, and have at most 63 characters: "
        "lowercase letters, digits, '.', '_' and '-'"
    ),
    NO_NUL_PATTERN: "must not contain the character NUL (code 0)",
    PLAIN_PATTERN: (
        "must not contain control characters, line breaks or characters that change the text "
        "direction"
    ),
}
"""What each pattern asks for, in words."""


def check_name(thing: str, name: str, *, pointer: str | None = None) -> None:
    """Raise Invalid for a bad name. `thing` names it in the message; `pointer` locates it in the body.

    Examples
    --------
    >>> check_name("owner", "ann")
    >>> check_name("owner", "Ann!")
    Traceback (most recent call last):
    app.platform.errors.Invalid: owner must start with a lowercase letter (a to z) or a digit, ...
    """
    if re.fullmatch(NAME, name) is None:
        detail = f"{thing} {PATTERN_RULES[NAME_PATTERN]}, got {shown(name)}"
        raise Invalid(detail) if pointer is None else invalid(pointer, detail)


def is_plain(name: str) -> bool:
    """Return False for control characters."""
    return re.fullmatch(PLAIN_PATTERN, name) is not None


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def first_doubled(names: Iterable[str]) -> str | None:
    """Return the first repeated name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "did you mean …" with the most similar known name; empty if none is similar."""
    near = get_close_matches(name, list(known), 1) if len(name) <= _MAX_MISSPELT_LENGTH else []
    return f"did you mean {near[0]}?" if near else ""


def escape(name: str) -> str:
    """Escape a name for a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def check_id(parameter: str, value: str | None, prefix: str) -> None:
    """Raise Invalid for a query parameter that cannot be an id with this prefix."""
    if value is not None and not is_id(value, prefix):
        detail = f"{parameter} must be an id such as {prefix}_…, got {value[:100]!r}"
        raise Invalid(detail, errors=[{"parameter": parameter, "detail": detail}])
