"""What a number, a date and a missing value are, as text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from app.platform.errors import Invalid

if TYPE_CHECKING:
    import pyarrow as pa

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"

_matches = re.compile(NUMBER.strip("^$")).fullmatch


def read_number(text: str) -> float | None:
    """Return the number that a text without spaces around is, infinite beyond a double's range; else None."""
    return float(text) if _matches(text) else None


DEFAULT_TOKENS = ("NA", "N/A", "null", "NaN", "?")
SPACES = " \t"
_MOST_SPELLED = 4  # letters of which every mixture of cases is worth listing


class MissingTokens:
    """The empty text and the tokens, in any case, with or without spaces around.

    A token that is a number stands for that number however it is written.
    """

    def __init__(self, tokens: Sequence[str] | None = None) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self._tokens = DEFAULT_TOKENS if tokens is None else tuple(tokens)
        self._lower = pc.utf8_lower(pa.array(["", *self._tokens], pa.string()))
        self._numbers = np.array([n for n in map(read_number, self._tokens) if n is not None])

    def spellings(self) -> list[str]:
        """List the usual ways to write them, for a reader that compares exactly; others are found later."""
        return sorted({"", *itertools.chain.from_iterable(map(_cases, self._tokens))})

    def tidy(self, column: pa.Array) -> pa.Array:
        """Return text without spaces around, and null where a value is missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = pc.utf8_trim(column.cast(pa.string()), SPACES)
        missing = pc.is_in(pc.utf8_lower(text), self._lower)
        return pc.if_else(missing, pa.scalar(None, pa.string()), text)

    def blank(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return numbers with NaN where one stands for a missing value."""
        if not len(self._numbers):
            return values
        return np.where(np.isin(values, self._numbers), np.nan, values)


def _cases(token: str) -> set[str]:
    if sum(letter.isalpha() for letter in token) <= _MOST_SPELLED:
        return set(map("".join, itertools.product(*((c.lower(), c.upper()) for c in token))))
    return {token, token.lower(), token.upper(), token.capitalize()}


Seconds = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

DATE = "an ISO 8601 date, as 2026-01-31 or 2026-01-31T12:00:00Z"
DATE_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?)?$"
)
_ZONE = r":.*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400
_NO_YEAR = "0000"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RULE = "it must hold numbers or ISO 8601 dates, as 2026-01-31 or 2026-01-31T12:00:00Z"

_is_date = re.compile(DATE_PATTERN).match


def seconds_of(text: str) -> float:
    """Seconds since 1970 of a date or time; raises ValueError for any other text."""
    if not _is_date(text) or text[11:13] == "24":  # which only later Pythons take for midnight
        raise ValueError(f"must be {DATE}")
    at = datetime.fromisoformat(text)
    since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH
    return since.days * _DAY + since.seconds + since.microseconds / _UNITS["us"]


def parse_dates(text: pa.Array) -> tuple[Seconds, Mask]:
    """The same for many: seconds, NaN where there is no date, and the mask of the texts that are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pc.is_valid(text).to_numpy(zero_copy_only=False)
    matches = pc.fill_null(pc.match_substring_regex(text, DATE_PATTERN), False)
    matches = pc.and_not(matches, pc.fill_null(pc.starts_with(text, _NO_YEAR), False))
    zoned = pc.and_(matches, pc.fill_null(pc.match_substring_regex(text, _ZONE), False))
    seconds = np.full(len(text), np.nan)
    for rows, zone in ((pc.and_not(matches, zoned), None), (zoned, "UTC")):
        chosen = text.filter(rows)
        try:
            found = typed_seconds(chosen.cast(pa.timestamp("us", zone)))
        except pa.ArrowInvalid:  # some day or hour that there is not
            found = np.array([_or_nan(one) for one in chosen.to_pylist()])
        seconds[rows.to_numpy(zero_copy_only=False)] = found
    return seconds, known & np.isnan(seconds)


def typed_seconds(column: pa.Array) -> Seconds:
    """Dates and times of Arrow's types as seconds since 1970, NaN for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    missing = pc.is_null(column).to_numpy(zero_copy_only=False)
    if pa.types.is_date32(column.type):
        days = column.cast(pa.int32()).fill_null(0).to_numpy()
        return np.where(missing, np.nan, days * float(_DAY))
    unit = "ms" if pa.types.is_date64(column.type) else column.type.unit
    ticks = column.cast(pa.int64()).fill_null(0).to_numpy()
    whole = (
        ticks // _UNITS[unit]
    )  # whole seconds and the rest apart: together they may have more digits than a double
    return np.where(missing, np.nan, whole + (ticks - whole * _UNITS[unit]) / _UNITS[unit])


def is_dated(kind: pa.DataType) -> bool:
    """Tell whether a type holds dates, or dates with times."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _or_nan(text: str) -> float:
    try:
        return seconds_of(text)
    except ValueError:
        return np.nan


def read_times(path: Path, name: str) -> npt.NDArray[np.float64]:
    """Read the column of a typed table as numbers, the later the greater; raises Invalid where there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pq.read_table(path, columns=[name]).column(0)
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    times = _dates(column, name) if pa.types.is_string(column.type) else column
    values: npt.NDArray[np.float64] = times.to_numpy().astype(np.float64)
    missing = int(np.isnan(values).sum())
    if missing:
        raise _invalid(name, f"{missing} rows have no value")
    return values


def _dates(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Seconds since 1970, each distinct text read once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        raise _invalid(name, f"{column.null_count} rows have no value")
    distinct = pc.dictionary_encode(column).combine_chunks()
    stamps = [_stamp(text, name) for text in distinct.dictionary.to_pylist()]
    codes = distinct.indices.to_numpy()
    return pa.chunked_array([pa.array(np.array(stamps, dtype=np.float64)[codes])])


def _stamp(text: str, name: str) -> float:
    """Of a time without a zone as if it were UTC."""
    try:
        return seconds_of(text.strip())
    except ValueError:
        shown = repr(text) if len(text) <= 100 else repr(text[:99]) + "…"
        raise _invalid(name, f"one value is {shown}") from None


def _invalid(name: str, found: str) -> Invalid:
    detail = f"the time column {name!r} cannot order the rows: {found}; {_RULE}"
    return Invalid(
        detail,
        code="bad_time_column",
        errors=[{"pointer": "/validation/time_column", "detail": detail}],
    )
