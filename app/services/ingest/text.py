"""Columns of any type as text: labels, groups, items and categories."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.services.ingest.faults import BadTable
from app.services.ingest.missing import MissingTokens

MAX_DECODED = 1 << 28
"""Bytes that the texts of a dictionary may take row by row: one long text in many rows is small only in the file."""


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
            f"texts of a label, item or group must take at most {MAX_DECODED} bytes a batch, got {size}"
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
    tidy = missing.tidy(spell(coded.dictionary)).dictionary_encode()
    codes = tidy.indices.take(coded.indices.cast(pa.int32()))
    return pa.DictionaryArray.from_arrays(codes, tidy.dictionary)


def count_codes(coded: pa.DictionaryArray) -> npt.NDArray[np.int64]:
    """Count the rows of each value of the dictionary."""
    codes = coded.indices.drop_null().to_numpy()
    return np.bincount(codes, minlength=len(coded.dictionary)).astype(np.int64)


def spell(column: pa.Array) -> pa.Array:
    """Write values as text; a whole number has no decimal point."""
    try:
        if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
            spelled = map(_spell_float, column.cast(pa.float64()).to_pylist())
            return pa.array(spelled, pa.string())
        return column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise _no_text(column.type) from error


def _no_text(kind: pa.DataType) -> BadTable:
    return BadTable(
        "a label, item, group or categorical column must hold text, numbers or booleans, "
        f"not {kind}",
        code="unsupported_type",
    )


def spell_number(value: float) -> str:
    """Write a number as the text that it is as a category: shortest, and a whole one without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value)


def _spell_float(value: float | None) -> str | None:
    return None if value is None or math.isnan(value) else spell_number(value)
