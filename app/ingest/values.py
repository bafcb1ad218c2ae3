"""What a value is: a number, true or false, a date, a category, or missing.

The one grammar, whatever door a value comes by, for two carriers: text (the cells of a table, a query string) and
JSON, which has numbers, booleans and null of its own. docs/datasets.md#values tells how they differ. `value_columns`
has the same for columns of Arrow. Readers that are faster (the blocks of `csv`, `scoring.fastpath`) take a part of it,
and leave what they do not know to these rules.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

NUMERIC, BOOLEAN, DATETIME, CATEGORICAL = "numeric", "boolean", "datetime", "categorical"
"""What a feature holds."""

MISSING = float("nan")
DEFAULT_TOKENS = ("NA", "N/A", "null", "NaN", "?")
"""Texts that stand for a missing value in a table, in any case, unless others are given; the empty text always does."""
SPACES = " \t"
"""Characters that are removed around a cell of a table, and around every category."""

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
TRUE, FALSE = "true", "false"
DATE = "an ISO 8601 date, as 2026-01-31 or 2026-01-31T12:00:00Z"
DATE_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?)?$"
)

_BOOLEANS = {TRUE: 1.0, FALSE: 0.0}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY, _MICROSECONDS = 86_400, 10**6
_LARGEST = sys.float_info.max
_MAX_WHOLE = 2**53  # up to here every whole number is a double
_NUMBERS = frozenset({float, int})  # the types of numbers in JSON
_CELLS = {
    NUMERIC: _NUMBERS | {type(None)},
    BOOLEAN: _NUMBERS | {type(None), bool},
    CATEGORICAL: _NUMBERS | {type(None), bool, str},
}

_is_number = re.compile(NUMBER.strip("^$")).fullmatch
_is_date = re.compile(DATE_PATTERN.strip("^$")).fullmatch


def read_number(text: str) -> float | None:
    """Return the number that a text without spaces around is, infinite beyond a double's range; else None."""
    return float(text) if _is_number(text) else None


def read_date(text: str) -> float:
    """Return the seconds since 1970 of a date or time; raises ValueError for any other text."""
    if not _is_date(text) or text[11:13] == "24":  # midnight to later Pythons only
        raise ValueError(f"must be {DATE}")
    at = datetime.fromisoformat(text)
    since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH
    return since.days * _DAY + since.seconds + since.microseconds / _MICROSECONDS


def spell_date(seconds: float) -> str:
    """Write seconds since 1970 as ISO 8601 in UTC, to the microsecond; a midnight is a day without a time.

    `read_date` reads it back. Beyond the years 1 to 9999, which typed times may reach, it is the number.
    """
    try:
        at = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds:.10g}"
    written = at.replace(tzinfo=None).isoformat()
    return written.removesuffix("T00:00:00") if at.time() == time.min else f"{written}Z"


def read_text(kind: str, text: str) -> float:
    """Return the number, boolean or date of a query's text, NaN of the empty one; raises ValueError for any other.

    A boolean may be a number, which is 0 or 1.
    """
    text = text.strip()
    if kind != DATETIME and _is_number(text):
        number = float(text)
        if abs(number) <= _LARGEST and (kind == NUMERIC or number in (0.0, 1.0)):
            return number
    elif not text:
        return MISSING
    elif kind == DATETIME:
        return read_date(text)
    elif kind == BOOLEAN and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    raise ValueError(f"is no {kind} value")


def read_json(kind: str, value: Any) -> float:
    """Return the number, boolean or date of a value of JSON, NaN of null; raises ValueError for any other."""
    if value is None:
        return MISSING
    if kind == DATETIME:
        if not isinstance(value, str):
            raise ValueError(f"must be {DATE}")
        return read_date(value.strip())
    if type(value) not in _CELLS[kind] or abs(value) > _LARGEST:
        raise ValueError("must be a finite number")
    if kind == BOOLEAN and value not in (0, 1):
        raise ValueError("must be true or false")
    return float(value)


def read_json_column(kind: str, values: Sequence[Any]) -> Floats:
    """Return many values of JSON at once, as `read_json` does for one; raises ValueError if one does not fit."""
    if kind == DATETIME:
        return np.array([read_json(DATETIME, value) for value in values], dtype=np.float64)
    if not _CELLS[kind].issuperset(map(type, values)):
        raise ValueError("some value is of another type")
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError as error:  # an integer may be more than a double can hold
        raise ValueError("some value is too large") from error
    if np.isinf(numbers).any():
        raise ValueError("some value is infinite")
    if kind == BOOLEAN and not np.all((numbers == 0.0) | (numbers == 1.0) | np.isnan(numbers)):
        raise ValueError("some value is neither true nor false")
    return numbers


def is_category(value: object) -> bool:
    """Return True if a value of JSON is a category or null."""
    return type(value) in _CELLS[CATEGORICAL]


def spell(value: str | float | bool) -> str:
    """Return the text of a value as a category.

    A number is written in its shortest form, a whole one without a decimal point: 3 and 3.0 are "3"; true is "true".
    """
    if isinstance(value, str):
        return value.strip(SPACES)
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_WHOLE:
        return str(int(value))
    return repr(value)
