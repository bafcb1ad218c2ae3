"""Rows as 64-bit hashes of their values: equal rows have equal hashes, whatever the order of rows and columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

from core.kernel import kernel

Hashes = npt.NDArray[np.uint64]

_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_NO_TEXT = 0x9E3779B97F4A7C15  # what a missing category hashes to
_NAN = np.array([np.nan]).view(np.uint64)[0]
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


def add_column(
    hashes: Hashes, name: str, values: npt.NDArray[np.float64], words: Hashes | None = None
) -> None:
    """Add a column to the rows' hashes: its values' bits, or their texts' hashes, mixed with the column's name.

    `values` are numbers, NaN where missing, or of a categorical column positions in `words`, the hashes of its texts.
    """
    key = np.uint64(hash_word(name))
    if words is None:
        _add_numbers(hashes, np.ascontiguousarray(values), key)
    else:
        codes = np.where(np.isnan(values), -1.0, values).astype(np.intp)
        hashes += mix(np.append(words, np.uint64(_NO_TEXT)) ^ key)[codes]


@kernel(
    numba.void(
        numba.uint64[::1], numba.types.Array(numba.float64, 1, "C", readonly=True), numba.uint64
    )
)
def _add_numbers(hashes, values, key):  # type: ignore[no-untyped-def]
    """Add what `mix` makes of the bits of numbers and the key: -0.0 counts as 0.0, and every NaN as the same."""
    bits = values.view(np.uint64)
    for row in range(len(values)):
        value = values[row]
        one = bits[row] if value != 0.0 else np.uint64(0)
        one = (_NAN if np.isnan(value) else one) ^ key
        one = (one ^ (one >> _SHIFT_1)) * _FACTOR_1
        one = (one ^ (one >> _SHIFT_2)) * _FACTOR_2
        hashes[row] += one ^ (one >> _SHIFT_3)


def hash_words(texts: Sequence[str]) -> Hashes:
    """The hash of each text."""
    return np.fromiter(map(hash_word, texts), np.uint64, len(texts))


def hash_word(text: str) -> int:
    """The first eight bytes of its SHA-256."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def mix(values: Hashes) -> Hashes:
    """Scramble 64 bits one to one: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    values = (values ^ (values >> _SHIFT_1)) * _FACTOR_1
    values = (values ^ (values >> _SHIFT_2)) * _FACTOR_2
    return values ^ (values >> _SHIFT_3)
