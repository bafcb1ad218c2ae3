"""Columns of any type as text: labels, groups, items and categories; and decimals as the nearest doubles."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.ingest.errors import BadTable, brief
from app.ingest.values import MissingTokens

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


MAX_DECODED = 1 << 28
"""Bytes that the texts of a dictionary may take row by row: one long text in many rows is small only in the file."""

_BEYOND = "<value out of range"  # what Arrow writes for a date that no calendar has


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type holds text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def as_text(column: pa.Array, missing: MissingTokens) -> pa.Array:
    """Read a label, item or group column of any type as tidy text, null where it is missing."""
    if not pa.types.is_dictionary(column.type):
        return missing.tidy(spell(column))
    coded = encode(column, missing)
    lengths = pc.binary_length(coded.dictionary).to_numpy(zero_copy_only=False)
    if (size := int(np.dot(count_codes(coded), lengths))) > MAX_DECODED:
        raise BadTable(
            f"texts of a label, item, group or date must take at most {MAX_DECODED} bytes a batch, got {size}"
        )
    return coded.dictionary_decode()


def encode(column: pa.Array, missing: MissingTokens) -> pa.DictionaryArray:
    """Return a column of any type as codes of its distinct tidy texts, null where it is missing.

    The values of a dictionary are never written out row by row: they may be long.
    """
    try:
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except pa.ArrowNotImplementedError as error:
        raise _no_text(column.type) from error
    texts = missing.tidy(spell(coded.dictionary))
    # A dictionary made here has each text once: where all are tidy there is no second one to be made.
    if coded is not column and texts.equals(coded.dictionary):
        return coded
    tidy = texts.dictionary_encode()
    codes = tidy.indices.take(coded.indices.cast(pa.int32()))
    return pa.DictionaryArray.from_arrays(codes, tidy.dictionary)


def count_codes(coded: pa.DictionaryArray) -> npt.NDArray[np.int64]:
    """Count the rows of each value of the dictionary."""
    codes = coded.indices.drop_null().to_numpy()
    return np.bincount(codes, minlength=len(coded.dictionary)).astype(np.int64)


def spell(column: pa.Array) -> pa.Array:
    """Write values as text; a whole number has no decimal point."""
    kind, types = column.type, pa.types
    if types.is_floating(kind) or types.is_decimal(kind):
        return pa.array(map(_spell_float, as_doubles(column).to_pylist()), pa.string())
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
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:  # a zone that nobody knows
        raise _no_text(kind) from error
    if types.is_temporal(kind) and pc.any(pc.starts_with(text, _BEYOND)).as_py():
        raise BadTable("a date or time that is taken as text must be of the years 1 to 9999")
    return text


def _no_text(kind: pa.DataType) -> BadTable:
    return BadTable(
        "a label, item, group or categorical column must hold text, numbers or booleans, "
        f"not {brief(kind)}",
        code="unsupported_type",
    )


def find_unfit(values: pa.Array, most: int) -> npt.NDArray[np.bool_]:
    """Return the mask of texts that are longer than so many characters, or have a NUL."""
    unfit = pc.or_(pc.greater(pc.utf8_length(values), most), pc.match_substring(values, "\0"))
    mask: npt.NDArray[np.bool_] = unfit.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def spell_number(value: float) -> str:
    """Write a number as the text that it is as a category: shortest, and a whole one without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value)


def _spell_float(value: float | None) -> str | None:
    return None if value is None or math.isnan(value) else spell_number(value)
