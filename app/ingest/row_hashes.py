"""Rows as 64-bit hashes of their values: equal rows have equal hashes, whatever the order of rows and columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
FACTOR_2 = np.uint64(0x94D049BB133111EB)
NO_TEXT = 0x9E3779B97F4A7C15  # what a missing category hashes to
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


def hash_words(texts: Sequence[str]) -> Hashes:
    """The hash of each text."""
    return np.fromiter(map(hash_word, texts), np.uint64, len(texts))


def hash_word(text: str) -> int:
    """The first eight bytes of its SHA-256."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def mix(values: Hashes) -> Hashes:
    """Scramble 64 bits one to one: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    values = (values ^ (values >> SHIFT_1)) * FACTOR_1
    values = (values ^ (values >> SHIFT_2)) * FACTOR_2
    return values ^ (values >> SHIFT_3)
