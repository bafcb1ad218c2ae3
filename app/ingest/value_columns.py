"""The rules of `values` for Arrow columns of text or any other type: missing values, numbers, dates, categories."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.ingest import values
from app.ingest.errors import BadTable, brief
from app.ingest.values import (
    BOOLEAN,
    DATETIME,
    FALSE,
    ISO_DATE,
    NUMBER,
    SPACES,
    TRUE,
    TYPED_TOKENS,
    USUAL,
    WHOLE_NUMBER,
    MissingCodes,
    Notation,
)

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

TRUTH = pa.array([TRUE, FALSE])
_LOWER_TYPED = pc.utf8_lower(pa.array(TYPED_TOKENS))

_MAX_SPELLED = 4  # letters of which every mixture of cases is worth listing
_ZONE = r":.*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400.0
_NO_YEAR = "0000"


class MissingTokens:
    """The texts and numbers of `values.MissingCodes`, for columns."""

    def __init__(self, tokens: Sequence[str] | None = None) -> None:
        self.codes = MissingCodes(tokens)
        self._lower = pc.utf8_lower(pa.array(["", *self.codes.tokens], pa.string()))
        self._words = pc.unique(pc.utf8_lower(canonical(self._lower)))
        self._lower_typed = pa.concat_arrays([self._lower, _LOWER_TYPED])

    def spellings(self) -> list[str]:
        """Return the usual spellings, for a reader that compares exactly; others are detected later."""
        return sorted({"", *itertools.chain.from_iterable(map(_cases, self.codes.tokens))})

    def tidy(self, column: pa.Array, *, typed: bool = False) -> pa.Array:
        """Strip texts; null where a value is missing. `typed`: in a column of numbers, dates or booleans."""
        text = pc.utf8_trim(column.cast(pa.string()), SPACES)
        missing = pc.is_in(pc.utf8_lower(text), self._lower_typed if typed else self._lower)
        return pc.if_else(missing, pa.scalar(None, pa.string()), text)

    def categories(self, column: pa.Array) -> pa.Array:
        """Return categories, null where a value is missing."""
        text = canonical(pc.utf8_trim(column.cast(pa.string()), SPACES))
        missing = pc.is_in(pc.utf8_lower(text), self._words)
        return pc.if_else(missing, pa.scalar(None, pa.string()), text)

    def spelled(self, coded: pa.DictionaryArray) -> dict[str, int]:
        """Return the words for missing values with their rows."""
        text = pc.utf8_trim(coded.dictionary.cast(pa.string()), SPACES)
        lower = pc.utf8_lower(canonical(text))
        said = to_mask(pc.and_(pc.is_in(lower, self._words), pc.not_equal(lower, "")))
        if not said.any():
            return {}
        counts = count_codes(coded)[said].tolist()
        return dict(zip(text.filter(pa.array(said)).to_pylist(), counts, strict=True))


@lru_cache(maxsize=64)
def tokens_of(tokens: tuple[str, ...]) -> MissingTokens:
    """Return the tokens of a model, which many requests use."""
    return MissingTokens(tokens)


def canonical(texts: pa.Array) -> pa.Array:
    """Return categories without surrounding spaces, as `values.category` does."""
    lower = pc.utf8_lower(texts)
    texts = pc.if_else(pc.is_in(lower, TRUTH), lower, texts)
    if not pc.any(pc.match_substring(texts, ".0")).as_py():
        return texts
    texts = pc.replace_substring_regex(texts, WHOLE_NUMBER, r"\1")
    return pc.if_else(pc.equal(texts, "-0"), "0", texts)


NAMES = MissingTokens(())
"""For ids, items, groups and columns that are copied: no text is interpreted, and only the empty one is missing."""


def blank_to_null(column: pa.Array) -> pa.Array:
    """Replace only empty texts by null."""
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def may_be_missing(texts: pa.Array) -> pa.Array:
    """Return a mask of the texts that denote a missing value in a column of numbers, dates or booleans."""
    return pc.is_in(pc.utf8_lower(texts), _LOWER_TYPED)


def _cases(token: str) -> set[str]:
    if sum(letter.isalpha() for letter in token) <= _MAX_SPELLED:
        return set(map("".join, itertools.product(*((c.lower(), c.upper()) for c in token))))
    return {token, token.lower(), token.upper(), token.capitalize()}


def read_column(
    column: pa.Array,
    kind: str,
    missing: MissingTokens,
    notation: Notation = USUAL,
    *,
    numbers: bool = False,
) -> tuple[Floats, Mask]:
    """Return a column of numbers, booleans or dates as floats, NaN where missing, and the mask of the values that do
    not fit.

    With `numbers` a boolean may be the number 0 or 1, as in rows to score; training tables do not allow it.
    """
    if kind == DATETIME:
        if is_dated(column.type):
            return typed_seconds(column), np.zeros(len(column), dtype=bool)
        return read_dates(as_text(column, missing, typed=True), notation)
    parsed = read_numbers(column, missing, notation)
    if kind != BOOLEAN:
        return parsed.values, parsed.bad | parsed.boolean
    known = parsed.boolean | np.isnan(parsed.values)
    if numbers:
        known |= (parsed.values == 0.0) | (parsed.values == 1.0)
    return parsed.values, parsed.bad | ~known


@dataclass(frozen=True)
class Parsed:
    """A column as numbers: `values` with NaN for missing, and the masks of booleans and of values that are neither."""

    values: Floats
    boolean: Mask
    bad: Mask


def read_numbers(column: pa.Array, missing: MissingTokens, notation: Notation = USUAL) -> Parsed:
    """Return a column of any type as numbers."""
    if pa.types.is_dictionary(column.type):  # its values may be long: each is read once
        own = read_numbers(column.dictionary, missing, notation)
        at = column.indices.cast(pa.int64()).fill_null(len(own.values)).to_numpy()
        return Parsed(
            np.append(own.values, np.nan)[at],
            np.append(own.boolean, False)[at],
            np.append(own.bad, False)[at],
        )
    parsed = _read_numbers(column, missing, notation)
    numbers = missing.codes.blank(parsed.values)
    if numbers is parsed.values:
        return parsed
    return replace(parsed, values=np.where(parsed.boolean, parsed.values, numbers))


def _read_numbers(column: pa.Array, missing: MissingTokens, notation: Notation) -> Parsed:
    """Return a column without dictionary as numbers."""
    nothing = np.zeros(len(column), dtype=bool)
    if is_text(column.type):
        try:
            found = _floats(pc.cast(plain_numbers(column, notation), pa.float64()))
            if np.count_nonzero(np.isfinite(found)) + column.null_count == len(column):
                return Parsed(found, nothing, nothing)
        except pa.ArrowInvalid:
            pass
        text = plain_numbers(bare_numbers(missing.tidy(column, typed=True)), notation)
        try:
            found = _floats(pc.cast(text, pa.float64()))
        except pa.ArrowInvalid:
            return _read_untidy(text)
        if np.count_nonzero(np.isfinite(found)) + text.null_count == len(text):
            return Parsed(found, nothing, nothing)
        return _read_untidy(text)
    if pa.types.is_boolean(column.type):
        return Parsed(_floats(pc.cast(column, pa.uint8())), ~nothing, nothing)
    found = _floats(as_doubles(column))
    return Parsed(found, nothing, np.isinf(found))


def _read_untidy(text: pa.Array) -> Parsed:
    """Return normalized texts as numbers and booleans."""
    lower = pc.utf8_lower(text)
    number = to_mask(pc.match_substring_regex(text, NUMBER))
    boolean = to_mask(pc.is_in(lower, TRUTH)) & to_mask(pc.is_valid(text))
    found = np.full(len(text), np.nan)
    found[number] = _floats(pc.cast(text.filter(pa.array(number)), pa.float64()))
    found[boolean] = to_mask(pc.equal(lower, TRUE))[boolean]
    return Parsed(found, boolean, np.isinf(found) | ~(number | boolean | to_mask(pc.is_null(text))))


def plain_numbers(text: pa.Array, notation: Notation) -> pa.Array:
    """Return texts with the numbers as `Notation.plain` writes them; others may change, but do not become numbers."""
    if notation.point_too and notation.decimal != "." != notation.thousands:
        plain = pc.match_substring_regex(text, NUMBER)
        return pc.if_else(plain, text, plain_numbers(text, replace(notation, point_too=False)))
    if notation.thousands:
        grouped = pc.match_substring_regex(text, notation.grouped)
        if pc.any(grouped).as_py():
            text = pc.if_else(grouped, pc.replace_substring_regex(text, notation.mark, ""), text)
    if notation.decimal == ".":
        return text
    return pc.replace_substring(pc.replace_substring(text, ".", "'"), notation.decimal, ".")


_MAY_BE_DRESSED = "[^+0-9.,eE'\u2019 -]|[0-9]-$|^[+-] "
_WIDE = f"[{''.join(values.WIDE)}]"


def bare_numbers(texts: pa.Array) -> pa.Array:
    """Return numbers as people write them with a plain sign and without other signs, as `values.bare_number` does;
    other texts unchanged, and numbers in several currencies.
    """
    doubted = pc.match_substring_regex(texts, _MAY_BE_DRESSED)
    if not pc.any(doubted).as_py():
        return texts
    given, wide = texts, pc.match_substring_regex(texts, _WIDE)
    if pc.any(wide).as_py():
        for sign, usual in values.WIDE.items():
            texts = pc.replace_substring(texts, sign, usual)
        doubted = pc.and_not(doubted, pc.and_(wide, pc.match_substring_regex(texts, values.PADDED)))
    signed = pc.and_(doubted, pc.match_substring_regex(texts, values.SIGNED))
    if not pc.any(signed).as_py():
        return given
    of_money = [pc.match_substring(texts, sign) for sign in values.CURRENCIES]
    found = [each for each in of_money if pc.any(pc.and_(each, signed)).as_py()]
    if len(found) > 1:
        for each in found:
            signed = pc.and_not(signed, each)
    plain = pc.utf8_trim(pc.replace_substring_regex(texts, values.SIGNS, ""), " ")
    negative = pc.match_substring_regex(texts, values.NEGATIVE)
    plain = pc.binary_join_element_wise(pc.if_else(negative, "-", ""), plain, "")
    hundredths = pc.if_else(pc.match_substring(texts, "%"), "e-2", "")
    return pc.if_else(signed, pc.binary_join_element_wise(plain, hundredths, ""), given)


def read_dates(text: pa.Array, notation: Notation = USUAL) -> tuple[Floats, Mask]:
    """Return dates as `Notation.read_date` does: seconds, NaN where missing, and the mask of invalid texts."""
    known = pc.is_valid(text).to_numpy(zero_copy_only=False)
    matches = pc.fill_null(pc.match_substring_regex(text, ISO_DATE), False)
    matches = pc.and_not(matches, pc.fill_null(pc.starts_with(text, _NO_YEAR), False))
    text = plain_dates(text, matches)
    zoned = pc.and_(matches, pc.fill_null(pc.match_substring_regex(text, _ZONE), False))
    seconds = np.full(len(text), np.nan)
    for rows, zone in ((pc.and_not(matches, zoned), None), (zoned, "UTC")):
        chosen = text.filter(rows)
        try:
            found = typed_seconds(chosen.cast(pa.timestamp("us", zone)))
        except pa.ArrowInvalid:  # a day or hour that does not exist
            found = _each_date(chosen, USUAL)
        seconds[rows.to_numpy(zero_copy_only=False)] = found
    others = pc.and_not(pc.is_valid(text), matches)
    if pc.any(others).as_py():  # days come again: each text is read once
        seconds[to_mask(others)] = _each_date(text.filter(others), notation)
    return seconds, known & np.isnan(seconds)


def plain_dates(texts: pa.Array, dates: pa.Array) -> pa.Array:
    """Return the texts; those in `dates`, a mask, as `values.plain_iso` does."""
    for pattern, plain in values.PLAINER_DATES:
        found = pc.and_(dates, pc.fill_null(pc.match_substring_regex(texts, pattern), False))
        if pc.any(found).as_py():
            plainer = pc.replace_substring_regex(texts, pattern, plain)
            texts = pc.if_else(found, plainer, texts)
    return texts


def _each_date(texts: pa.Array, notation: Notation) -> Floats:
    """Return the seconds of each text; NaN for a text that is not a date."""

    def seconds(text: str) -> float:
        try:
            return notation.read_date(text)
        except ValueError:
            return np.nan

    coded = texts.dictionary_encode()
    found: Floats = np.array([seconds(one) for one in coded.dictionary.to_pylist()], np.float64)
    each: Floats = found[coded.indices.to_numpy()]
    return each


_SPELLED_NUMBER = "^[+-]?[0-9.,' \u2019\u00a0\u2009\u202f]*[0-9][.,]?([eE][+-]?[0-9]+)?$"
_NOTATIONS = [
    Notation(decimal, thousands)
    for decimal in (".", ",")
    for thousands in ("", ".", ",", " ", "'")
    if thousands != decimal
]


def propose_notations(texts: pa.Array, own: Notation) -> list[Notation]:
    """Return the notations in which these texts are numbers, while they are not in their own one; two for 1,000 alone,
    which may be a thousand or one.

    Texts with more than digits and marks are ignored. The decimal mark is retained if possible; a declared decimal
    comma always is.
    """
    spelled = texts.filter(pc.match_substring_regex(texts, _SPELLED_NUMBER))
    found: dict[str, Notation] = {}
    for notation in sorted(_NOTATIONS, key=lambda each: each.decimal != own.decimal):
        grouped = (
            pc.match_substring_regex(spelled, notation.grouped) if notation.thousands else None
        )
        if grouped is not None and not pc.any(grouped).as_py():
            continue
        numbers = pc.match_substring_regex(plain_numbers(spelled, notation), NUMBER)
        if len(spelled) and pc.all(numbers).as_py():
            found.setdefault(notation.thousands, replace(notation, dates=own.dates))
    kept = [each for each in found.values() if own.decimal in (".", each.decimal)]
    return kept or list(found.values())


def typed_seconds(column: pa.Array) -> Floats:
    """Return dates and times of Arrow's types as seconds since 1970, NaN for null."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    missing = pc.is_null(column).to_numpy(zero_copy_only=False)
    if pa.types.is_date32(column.type):
        days = column.cast(pa.int32()).fill_null(0).to_numpy()
        return np.where(missing, np.nan, days * _DAY)
    unit = _UNITS["ms" if pa.types.is_date64(column.type) else column.type.unit]
    ticks = column.cast(pa.int64()).fill_null(0).to_numpy()
    whole = ticks // unit  # apart from the rest: together they may have more digits than a double
    return np.where(missing, np.nan, whole + (ticks - whole * unit) / unit)


def is_dated(kind: pa.DataType) -> bool:
    """Return True if a type holds dates, with or without times."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


_EXACT_DIGITS = 15  # whole numbers of so many digits are doubles, and so are powers of ten up to 10²²: one rounding
_EXACT_SCALE = 22


def as_doubles(column: pa.Array) -> pa.Array:
    """Return integers, floats and decimals as float64; Arrow's own cast of decimals rounds twice."""
    kind = column.type
    if not pa.types.is_decimal(kind):
        return pc.cast(column, pa.float64(), safe=False)
    if kind.precision <= _EXACT_DIGITS and 0 <= kind.scale <= _EXACT_SCALE:
        whole = column.cast(pa.decimal128(38, kind.scale)).view(pa.decimal128(38, 0))
        digits = whole.cast(pa.int64()).cast(pa.float64())
        return pc.divide(digits, pa.scalar(np.float64(10.0**kind.scale)))
    try:
        return pc.cast(pc.cast(column, pa.string()), pa.float64())
    except pa.ArrowInvalid as error:  # a file may claim any scale
        raise BadTable(f"a column of {kind} cannot be read: {brief(error)}") from error


MAX_DECODED_BYTES = 1 << 28
"""Most bytes that the texts of a dictionary may take when written out row by row: a small file may repeat one long
text.
"""

_BEYOND = "<value out of range"  # Arrow writes this for a date outside the calendar


def is_text(kind: pa.DataType) -> bool:
    """Return True if a type holds text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def as_text(column: pa.Array, missing: MissingTokens, *, typed: bool = False) -> pa.Array:
    """Return an item, group, id or date column of any type as text, null where it is missing."""
    if not pa.types.is_dictionary(column.type):
        return missing.tidy(to_text(column), typed=typed)
    return _decode(_encode(column, partial(missing.tidy, typed=typed)))


def as_categories(column: pa.Array, missing: MissingTokens) -> pa.Array:
    """Return a label of any type as categories, null where it is missing."""
    return _decode(encode(column, missing))


def _decode(coded: pa.DictionaryArray) -> pa.Array:
    """Return a dictionary column as text. Raises BadTable if the text is too long."""
    lengths = pc.binary_length(coded.dictionary).to_numpy(zero_copy_only=False)
    if (size := int(np.dot(count_codes(coded), lengths))) > MAX_DECODED_BYTES:
        raise BadTable(
            f"strings of a label, item, group or date can have at most {MAX_DECODED_BYTES} bytes per "
            f"batch, got {size}"
        )
    return coded.dictionary_decode()


def encode(column: pa.Array, missing: MissingTokens) -> pa.DictionaryArray:
    """Return a column of any type as codes of its distinct categories, null where it is missing.

    The values of a dictionary are never written out row by row: they may be long.
    """
    return _encode(column, missing.categories)


def encode_names(column: pa.Array) -> pa.DictionaryArray:
    """Return a column of ids of any type as codes of its distinct texts, null where it is empty."""
    return _encode(column, NAMES.tidy)


def _encode(column: pa.Array, tidy_texts: Callable[[pa.Array], pa.Array]) -> pa.DictionaryArray:
    """Return a column of any type as codes of its distinct normalized texts."""
    try:
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except pa.ArrowNotImplementedError as error:
        raise _no_text(column.type) from error
    texts = tidy_texts(to_text(coded.dictionary))
    # A dictionary encoded here has distinct texts; if all are normalized, it need not be encoded again.
    if coded is not column and texts.equals(coded.dictionary):
        return coded
    tidy = texts.dictionary_encode()
    codes = tidy.indices.take(coded.indices.cast(pa.int32()))
    return pa.DictionaryArray.from_arrays(codes, tidy.dictionary)


def count_codes(coded: pa.DictionaryArray) -> npt.NDArray[np.int64]:
    """Return the number of rows of each value of the dictionary."""
    codes = coded.indices.drop_null().to_numpy()
    return np.bincount(codes, minlength=len(coded.dictionary)).astype(np.int64)


def to_text(column: pa.Array) -> pa.Array:
    """Return values as text; a whole number has no decimal point."""
    kind, types = column.type, pa.types
    if types.is_decimal(kind) and kind.scale >= 0:  # all its digits matter in an id
        return _without_zeros(column.cast(pa.string()))
    if types.is_floating(kind) or types.is_decimal(kind):
        return pa.array(map(_spell, as_doubles(column).to_pylist()), pa.string())
    if not (
        is_text(kind)
        or types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
        or types.is_temporal(kind)
    ):
        raise _no_text(kind)
    try:
        text = column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:  # an unknown time zone
        raise _no_text(kind) from error
    if types.is_temporal(kind) and pc.any(pc.starts_with(text, _BEYOND)).as_py():
        raise BadTable("a date or time that is read as a string must be in the years 1 to 9999")
    return text


def _no_text(kind: pa.DataType) -> BadTable:
    """Return the error for a column of an unsupported type."""
    return BadTable(
        "a label, item, group or categorical column must contain strings, numbers or booleans, not "
        f"{brief(kind)}",
        code="unsupported_type",
    )


def shape(text: str) -> str:
    """Return how a code is written: upper, lower or title case, without letters, or mixed.

    >>> [shape(text) for text in ("NA", "Null", "na", "?", "N2")]
    ['upper', 'title', 'lower', 'signs', 'upper']
    """
    if not any(map(str.isalpha, text)):
        return "signs"
    kinds = {"upper": text.isupper(), "lower": text.islower(), "title": text.istitle()}
    return next((name for name, holds in kinds.items() if holds), "mixed")


def find_unfit(texts: pa.Array, most: int) -> npt.NDArray[np.bool_]:
    """Return the mask of texts that are longer than `most` characters or contain NUL."""
    unfit = pc.or_(pc.greater(pc.utf8_length(texts), most), pc.match_substring(texts, "\0"))
    mask: npt.NDArray[np.bool_] = unfit.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _without_zeros(decimals: pa.Array) -> pa.Array:
    """Return decimals as text in their shortest form: 7.00 is 7, and 7.50 is 7.5."""
    short = pc.replace_substring_regex(decimals, r"^(-?[0-9]+)\.0+$", r"\1")
    short = pc.replace_substring_regex(short, r"^(-?[0-9]+\.[0-9]*[1-9])0+$", r"\1")
    return pc.if_else(pc.equal(short, "-0"), "0", short)


def _spell(number: float | None) -> str | None:
    return None if number is None or math.isnan(number) else values.spell(number)


def _floats(column: pa.Array) -> Floats:
    """Return a numeric column as float64 with NaN for null; if there were nulls, the array is a writable copy."""
    found: Floats = column.to_numpy(zero_copy_only=False)
    return found.astype(np.float64, copy=False)


def to_mask(column: pa.Array) -> Mask:
    """Return a boolean column as a mask; nulls count as false."""
    mask: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return mask
