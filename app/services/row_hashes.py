"""Rows as 64-bit hashes of their values: equal rows have equal hashes, whatever the order of rows and columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

_BLOCK = 1 << 15
_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_NO_TEXT = 0x9E3779B97F4A7C15  # what a missing category hashes to


def add_column(
    hashes: Hashes, name: str, values: npt.NDArray[np.float64], texts: Sequence[str] | None = None
) -> None:
    """Add a column to the rows' hashes: its values' bits, or their texts', mixed with the column's name.

    `values` are numbers, NaN where missing, or of a categorical column positions in `texts`.
    """
    key = np.uint64(hash_word(name))
    words = None if texts is None else np.array([*map(hash_word, texts), _NO_TEXT], dtype=np.uint64)
    for start in range(0, len(hashes), _BLOCK):  # a block stays in the processor's cache
        block = values[start : start + _BLOCK] + 0.0  # a copy in which -0.0 is 0.0
        missing = np.isnan(block)
        if words is None:
            block[missing] = np.nan
            bits = block.view(np.uint64)
        else:
            bits = words[np.where(missing, -1.0, block).astype(np.intp)]
        hashes[start : start + _BLOCK] += mix(bits ^ key)


def hash_word(text: str) -> int:
    """The first eight bytes of its SHA-256."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def mix(values: Hashes) -> Hashes:
    """Scramble 64 bits one to one: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    values = values ^ (values >> np.uint64(30))
    values *= _FACTOR_1
    values ^= values >> np.uint64(27)
    values *= _FACTOR_2
    values ^= values >> np.uint64(31)
    return values
