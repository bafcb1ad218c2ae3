"""Sets of categories as bits: bit c % 64 of word c // 64 tells whether category c is in the set."""

import numpy as np
import numpy.typing as npt

from .bins import Bins
from .peak import Peak

WORD_BITS = 64

Words = npt.NDArray[np.uint64]


def n_words(n_categories: int) -> int:
    """Words that a set of so many categories takes."""
    return -(-n_categories // WORD_BITS)


def pack(held: npt.NDArray[np.bool_]) -> Words:
    """Write which categories are in a set as words."""
    bits = np.zeros(n_words(len(held)) * WORD_BITS, dtype=np.uint8)
    bits[: len(held)] = held
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


def unpack(words: Words, n_categories: int) -> npt.NDArray[np.bool_]:
    """Read which of so many categories are in a set."""
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return bits[:n_categories].astype(np.bool_)


def categories_above(bins: Bins, peak: Peak) -> npt.NDArray[np.bool_]:
    """Say which categories of a categorical feature lie above a cut.

    A category that no row had at fit goes with the missing.
    """
    own = bins.category_bins[peak.feature]
    assert own is not None and peak.bins_above is not None  # noqa: PT018 - one fact: a categorical cut
    return np.where(own >= 0, peak.bins_above[own], peak.missing_above)
