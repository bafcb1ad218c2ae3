"""Sets of categories as bits: bit c % 64 of word c // 64 tells whether category c is in the set.

A model keeps its sets in one array, one behind the other; a set is known by the place of its first
word.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from .bins import Bins
from .peak import Peak

WORD_BITS = 64

Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Count = TypeVar("Count", int, npt.NDArray[np.int64])


def count_words(n_categories: Count) -> Count:
    """Give the number of words that a set of so many categories takes."""
    return -(-n_categories // WORD_BITS)


def pack(held: Bools) -> Words:
    """Write which categories are in a set as words."""
    bits = np.zeros(count_words(len(held)) * WORD_BITS, dtype=np.bool_)
    bits[: len(held)] = held
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


def unpack(words: Words, first: int, n_categories: int) -> Bools:
    """Read which of so many categories are in the set whose first word is `first`."""
    octets = words[first : first + count_words(n_categories)].astype("<u8").view(np.uint8)
    return np.unpackbits(octets, bitorder="little")[:n_categories].astype(np.bool_)


def categories_above(bins: Bins, peak: Peak) -> Bools | None:
    """Say which categories of a feature lie above a cut, None for a numeric feature.

    A category that no row had at fit goes with the missing.
    """
    own = bins.category_bins[peak.feature]
    if own is None or peak.bins_above is None:
        return None
    return np.where(own >= 0, peak.bins_above[own], peak.missing_above)
