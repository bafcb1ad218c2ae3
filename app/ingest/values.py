"""The grammar of values: numbers, true or false, dates, categories, and missing values.

The grammar is the same for all sources of values: text (the cells of a table, a query, a string in JSON), and JSON's
own numbers, booleans and null. docs/formats.md#how-values-are-read has it as a table.
`value_columns` implements the same grammar for Arrow columns. `csv` parses a subset of it faster, and leaves everything
else to these rules.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

NUMERIC, BOOLEAN, DATETIME, CATEGORICAL = "numeric", "boolean", "datetime", "categorical"
"""What a feature holds."""

MISSING = float("nan")
DEFAULT_TOKENS = ("NA", "N/A", "#N/A", "<NA>", "null", r"\N", "NaN", "?")
"""Texts that stand for a missing value in a table, in any case, unless others are given; the empty text always does."""
TYPED_TOKENS = (".", "-", "None")
"""Texts that always stand for a missing value in columns of numbers, dates or booleans; among words they may be one."""
SPACES = " \t"
"""Characters that are removed around a cell of a table, and around every category."""

PADDED = f"^[{SPACES}]*0[0-9]+[{SPACES}]*$"
"""A whole number with leading zeros."""
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
CURRENCIES = "$€£¥₹₽₩₪₫₺₴₦₱฿₿"
_NARROW = "\u00a0\u2007\u2009\u202f"
_SPACE = f"[ {_NARROW}]"
_MINUS = "\u2212\u2013-"
_BODY = f"([1-9][0-9]{{0,2}}([{_NARROW}][0-9]{{3}})+([.,][0-9]*)?|[0-9][0-9.,'\u2019 ]*|[.,][0-9]+)"
_CORE = f"(([{CURRENCIES}][ {_NARROW}]?)?{_BODY}|{_BODY}[ {_NARROW}]?[%{CURRENCIES}])"
SIGNED = (
    f"^{_SPACE}*([(]{_CORE}[)]|{_CORE}[-\u2212]?|[+{_MINUS}]{_SPACE}?{_CORE}|"
    f"[{CURRENCIES}] ?[+{_MINUS}]{_SPACE}?{_BODY})[{_NARROW}]*$"
)
"""A number as people write it: with a minus sign of typography, before a space or at the end, in parentheses if
negative, with a currency or percent sign, with narrow spaces around it and between thousands. Numbers without any of
these match, too.
"""
WIDE = {
    **{chr(0xFF10 + digit): str(digit) for digit in range(10)},
    **dict(zip("．，－＋％＄￥", ".,-+%$¥", strict=True)),
}
"""Characters of full width, as Japanese and Chinese keyboards write them -> usual ones."""
NEGATIVE = f"[({_MINUS}]"
"""What makes such a number negative."""
SIGNS = "[^0-9.,'\u2019 ]"
"""What is no part of the number itself."""
TRUE, FALSE = "true", "false"
_ZONE = r"([Zz]| ?UTC|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?"
ISO_DATE = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([Tt ][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.,][0-9]+)?)?{_ZONE})?$"
"""ISO 8601 and RFC 3339, which allow any number of digits of a second: .NET writes 7, Go and Java 9."""
PLAINER_DATES = (
    (",", "."),
    (r"([.][0-9]{6})[0-9]+", r"\1"),
    (r"(z| ?UTC)$", "Z"),
    (r"t([0-9])", r"T\1"),
)
"""Patterns within dates and times -> what Arrow and `datetime` read instead: microseconds, T and Z."""
_DAY_OF_MONTH, _MONTH = "(0?[1-9]|[12][0-9]|3[01])", "(0?[1-9]|1[0-2])"
_CLOCK = rf"(,? [0-9]{{1,2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]+)?)?( ?[AaPp][Mm])?{_ZONE})?"
DATE_WITH_DOTS = rf"^{_DAY_OF_MONTH}\.{_MONTH}\.[0-9]{{4}}{_CLOCK}$"
"""31.01.2026: the day always comes first."""
DAY_FIRST, MONTH_FIRST = "day_first", "month_first"
"""What 03/04/2026 means: the third of April, or the fourth of March."""
DATE_WITH_SLASHES: Mapping[str, str] = {
    order: rf"^({first}/{second}/|{first}-{second}-)[0-9]{{4}}{_CLOCK}$"
    for order, first, second in (
        (DAY_FIRST, _DAY_OF_MONTH, _MONTH),
        (MONTH_FIRST, _MONTH, _DAY_OF_MONTH),
    )
}
"""What comes first -> dates such as 31/01/2026 or 31-01-2026."""

_BOOLEANS = {TRUE: 1.0, FALSE: 0.0}
_TRUTH_RULE = "true, false, 1 or 0"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY, _MICROSECONDS = 86_400, 10**6
_LARGEST = sys.float_info.max
MAX_WHOLE = 2**53  # up to here every whole number is a double
_NUMBERS = frozenset({float, int})  # the types of numbers in JSON
_CELLS = {
    NUMERIC: _NUMBERS | {type(None)},
    BOOLEAN: _NUMBERS | {type(None), bool},
    CATEGORICAL: _NUMBERS | {type(None), bool, str},
}

WHOLE_NUMBER = r"^(-?(0|[1-9][0-9]*))\.(0|00|0{4,})$"
"""A whole number with a decimal point: 7.0, 7.00. Not 07.0, which is a code, and not 7.000, which may be 7,000."""

_has_signs = re.compile(SIGNED.strip("^$")).fullmatch
_USUAL_WIDTH = str.maketrans(WIDE)
_is_padded = re.compile(PADDED).match
_is_number = re.compile(NUMBER.strip("^$")).fullmatch
_is_whole = re.compile(WHOLE_NUMBER).match
_is_iso = re.compile(ISO_DATE.strip("^$")).fullmatch
_split_date = re.compile(
    r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})"
    r"(?:,? ([0-9]{1,2})(:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]+)?)?)(?: ?([AaPp])[Mm])?([Zz]| ?UTC|[+-][0-9:]+)?)?"
).fullmatch


class MissingCodes:
    """Texts and numbers that denote a missing value: the empty text and the tokens, whatever their case and
    surrounding spaces.

    In numbers, dates and booleans the `TYPED_TOKENS` do, too. A token that is a number denotes that number in any
    notation. `value_columns.MissingTokens` is the same for columns.

    >>> codes = MissingCodes(["-999", "unknown"])
    >>> [codes.has_text(text) for text in ("", "Unknown", "-", "NA")], codes.has_number(-999.0)
    ([True, True, True, False], True)
    """

    def __init__(self, tokens: Sequence[str] | None = None) -> None:
        self.tokens = DEFAULT_TOKENS if tokens is None else tuple(tokens)
        lower = {"", *map(str.lower, self.tokens)}
        self.words = frozenset(category(text).lower() for text in lower)
        """The categories that denote a missing value, in lower case."""
        self.texts = frozenset([*lower, *map(str.lower, TYPED_TOKENS)])
        """The texts that do in a column of numbers, booleans or dates, in lower case."""
        numbers = map(read_number, self.tokens)
        self.numbers = tuple(dict.fromkeys(number for number in numbers if number is not None))

    def has_text(self, text: str) -> bool:
        """Return True for a text, without surrounding spaces, that is missing where a number or date could stand."""
        return text.lower() in self.texts

    def has_number(self, number: float) -> bool:
        return number in self.numbers

    def has_category(self, value: str | float | bool) -> bool:
        return category(value).lower() in self.words

    def blank(self, numbers: Floats) -> Floats:
        """Replace the numbers that denote a missing value by NaN."""
        if not self.numbers:
            return numbers
        import numpy as np  # the dispatcher needs the other rules, and no numpy

        return np.where(np.isin(numbers, self.numbers), np.nan, numbers)


@dataclass(frozen=True)
class Notation:
    """How numbers and dates are written as text. Without marks between thousands, `thousands` is empty.

    With `point_too` a number may have a decimal point whatever `decimal` says, unless points stand between thousands:
    so a program writes one in a query, or as a quoted text of a format that has numbers.

    >>> german = Notation(",", ".")
    >>> [german.read_number(text) for text in ("1.234,56", "1234,56", "1.23")]
    [1234.56, 1234.56, None]
    """

    decimal: str = "."
    thousands: str = ""
    dates: str | None = None
    """What comes first in 03/04/2026; None: such texts are no dates."""
    point_too: bool = False

    @cached_property
    def mark(self) -> str:
        return _MARKS[self.thousands]

    @cached_property
    def grouped(self) -> str:
        """The pattern of digits with thousands separators. The first group does not begin with 0: 0,125 is not 125."""
        decimal = re.escape(self.decimal)
        return (
            rf"^[+-]?[1-9][0-9]{{0,2}}({self.mark}[0-9]{{3}})+({decimal}[0-9]*)?([eE][+-]?[0-9]+)?$"
        )

    @cached_property
    def or_point(self) -> Notation:
        """The same notation with `point_too`.

        >>> [Notation(",").or_point.read_number(text) for text in ("1,5", "1.5", "1.234,5")]
        [1.5, 1.5, None]
        """
        return replace(self, point_too=True)

    def rule(self, kind: str) -> str:
        """Return what a text of a number, boolean or date must be."""
        rules = {NUMERIC: self.number_rule, BOOLEAN: _TRUTH_RULE, DATETIME: self.date_rule}
        return rules[kind]

    @cached_property
    def number_rule(self) -> str:
        if self.decimal == "." and not self.thousands:
            return "a finite number"
        return f"a finite number, such as 1{self.thousands}234{self.decimal}5"

    @cached_property
    def date_rule(self) -> str:
        more = {DAY_FIRST: ", 31/01/2026", MONTH_FIRST: ", 01/31/2026", None: ""}[self.dates]
        return f"a date, such as 2026-01-31, 2026-01-31T12:00:00Z{more} or 31.01.2026"

    def plain(self, text: str) -> str:
        """Write a number with a decimal point and without separators; other texts do not become numbers."""
        if self.point_too and self.thousands != "." and _is_number(text):
            return text
        if self.thousands and re.match(self.grouped, text):
            text = re.sub(self.mark, "", text)
        return text if self.decimal == "." else text.replace(".", "'").replace(self.decimal, ".")

    def read_number(self, text: str) -> float | None:
        """Infinite beyond a double's range; None if a text, without surrounding spaces, is not a number."""
        number = read_number(self.plain(text))
        return number if number is not None else read_number(self.plain(bare_number(text)))

    def read_date(self, text: str) -> float:
        """Return the seconds since 1970 of a date or time. Raises ValueError for any other text."""
        try:
            iso = plain_iso(text) if _is_iso(text) else _iso_of(text, self.dates)
            if iso[11:13] == "24":  # midnight to later Pythons only
                raise ValueError(iso)
            at = datetime.fromisoformat(iso)
        except ValueError:
            raise ValueError(f"must be {self.date_rule}") from None
        since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH
        return since.days * _DAY + since.seconds + since.microseconds / _MICROSECONDS


_MARKS = {".": r"\.", ",": ",", " ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]"}
"""A mark between thousands -> the pattern of how it is written: of spaces and apostrophes there are several."""
USUAL = Notation()


def plain_iso(text: str) -> str:
    """Return a date or time in ISO 8601 with at most six digits of a second, T and Z.

    >>> plain_iso("2026-06-06t10:05:00.1234567z"), plain_iso("2026-06-06 10:05:00 UTC")
    ('2026-06-06T10:05:00.123456Z', '2026-06-06 10:05:00Z')
    """
    for pattern, plain in PLAINER_DATES:
        text = re.sub(pattern, plain, text)
    return text


def _iso_of(text: str, order: str | None) -> str:
    """Return a date with dots or slashes in ISO 8601. Raises ValueError for any other text."""
    found = _split_date(text)
    if found is None or (found[2] != "." and order is None):
        raise ValueError(text)
    first, second = found[1].zfill(2), found[3].zfill(2)
    day, month = (second, first) if found[2] != "." and order == MONTH_FIRST else (first, second)
    iso = f"{found[4]}-{month}-{day}"
    if found[5] is None:
        return iso
    hour = int(found[5])
    if found[7]:
        if not 1 <= hour <= 12:
            raise ValueError(text)
        hour = hour % 12 + 12 * (found[7] in "Pp")
    return plain_iso(f"{iso}T{hour:02}{found[6]}{found[8] or ''}")


def bare_number(text: str) -> str:
    """Return a number as people write it with a plain sign, and without other signs; any other text unchanged.

    A percent sign divides by 100, as in a spreadsheet.

    >>> [bare_number(text) for text in ("−5", "- 5", "(5)", "5-", "$ 5.50", "12 %", "1\u202f234,5", "１２", "5 apples")]
    ['-5', '-5', '-5', '-5', '5.50', '12e-2', '1234,5', '12', '5 apples']
    """
    plain = text.translate(_USUAL_WIDTH)
    if not _has_signs(plain) or (plain != text and _is_padded(plain)):
        return text
    sign = "-" if re.search(NEGATIVE, plain) else ""
    return sign + re.sub(SIGNS, "", plain).strip() + ("e-2" if "%" in plain else "")


def read_number(text: str) -> float | None:
    """Read a number in the usual notation: see `Notation.read_number`."""
    return float(text) if _is_number(text) else None


def spell_date(seconds: float) -> str:
    """Return ISO 8601 in UTC, to the microsecond; at midnight only the day. `read_date` reads it back.

    Beyond the years 1 to 9999, which typed times may reach, it is the number.
    """
    try:
        at = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds:.10g}"
    written = at.replace(tzinfo=None).isoformat()
    return written.removesuffix("T00:00:00") if at.time() == time.min else f"{written}Z"


def spell_as(kind: str | None, number: float) -> str:
    """Return a value of a number, boolean or date as text; of other numbers, six digits."""
    if kind == DATETIME:
        return spell_date(number)
    return spell(bool(number)) if kind == BOOLEAN else f"{number:.6g}"


def is_category(value: object) -> bool:
    """Return True if a JSON value is a category or null."""
    return type(value) in _CELLS[CATEGORICAL]


def category(value: str | float | bool) -> str:
    """Return the category of a value: one value has one category in every format.

    A whole number has no decimal point, and true and false are in lower case. Any other text is its own category,
    without surrounding spaces. `value_columns.canonical` is the same for columns.

    >>> [category(value) for value in (7, 7.0, " 7.00", "07", True, "True", "7.50", 7.5)]
    ['7', '7', '7', '07', 'true', 'true', '7.50', '7.5']
    """
    text = spell(value)
    if (lower := text.lower()) in _BOOLEANS:
        return lower
    whole = _is_whole(text)
    text = whole[1] if whole else text
    return "0" if text == "-0" else text


def spell(value: str | float | bool) -> str:
    """Return a value as text without surrounding spaces; numbers in shortest form (3.0 is "3"), booleans as "true"."""
    if isinstance(value, str):
        return value.strip(SPACES)
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_WHOLE:
        return str(int(value))
    return repr(value)


USUAL_CODES = MissingCodes()


def read_text(
    kind: str, text: str, codes: MissingCodes = USUAL_CODES, notation: Notation = USUAL
) -> float:
    """Return the number, boolean or date of a text, NaN if it is missing; a boolean may be 0 or 1.

    A number may have a decimal point whatever the notation: see `Notation.or_point`. Raises ValueError for other texts.
    """
    text = text.strip(SPACES)
    if codes.has_text(text):
        return MISSING
    if kind == DATETIME:
        return notation.read_date(text)
    if text.lower() in _BOOLEANS:
        return read_json(kind, text.lower() == TRUE, codes, notation)
    number = notation.or_point.read_number(text)
    if number is None:
        raise ValueError(f"must be {notation.rule(kind)}")
    return read_json(kind, number, codes, notation)


def read_json(
    kind: str, value: Any, codes: MissingCodes = USUAL_CODES, notation: Notation = USUAL
) -> float:
    """Return the number, boolean or date of a JSON value, NaN if it is missing. A string is read as `read_text` does.

    Raises ValueError for any other value.
    """
    if isinstance(value, str):
        return read_text(kind, value, codes, notation)
    if value is None:
        return MISSING
    if kind == DATETIME:
        raise ValueError(f"must be {notation.rule(kind)}")
    if type(value) not in _CELLS[kind] or abs(value) > _LARGEST:
        raise ValueError(f"must be {notation.rule(kind)}")
    if value is not True and value is not False and codes.has_number(value):
        return MISSING
    if kind == BOOLEAN and value not in (0, 1):
        raise ValueError(f"must be {notation.rule(kind)}")
    return float(value)


def read_json_column(
    kind: str,
    values: Sequence[Any],
    codes: MissingCodes = USUAL_CODES,
    notation: Notation = USUAL,
) -> Floats:
    """Return many JSON values at once, each as `read_json` does. Raises ValueError if one does not fit."""
    import numpy as np  # the dispatcher needs the other rules, and no numpy

    if (
        kind == DATETIME
        or not _CELLS[kind].issuperset(map(type, values))
        or (kind == BOOLEAN and codes.numbers)  # true is not the code 1
    ):
        return np.array([read_json(kind, value, codes, notation) for value in values], np.float64)
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError as error:  # an integer may exceed the range of a double
        raise ValueError("a value is too large") from error
    if np.isinf(numbers).any():
        raise ValueError("a value is infinite")
    if kind == BOOLEAN and not np.all((numbers == 0.0) | (numbers == 1.0) | np.isnan(numbers)):
        raise ValueError("a value is neither true nor false")
    return codes.blank(numbers)
