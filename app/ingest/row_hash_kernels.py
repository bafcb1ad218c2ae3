"""Columns added to the hashes of rows, compiled; `row_hashes` is for processes that do without numba, too."""

import numba
import numpy as np
import numpy.typing as npt

from app.ingest.row_hashes import (
    FACTOR_1,
    FACTOR_2,
    NO_TEXT,
    SHIFT_1,
    SHIFT_2,
    SHIFT_3,
    Hashes,
    hash_word,
    mix,
)
from core.kernel import kernel

_NAN = np.array([np.nan]).view(np.uint64)[0]


@kernel(
    numba.void(
        numba.uint64[::1], numba.types.Array(numba.float64, 1, "C", readonly=True), numba.uint64
    )
)
def add_numbers(hashes, values, key):  # type: ignore[no-untyped-def]
    """Add what `mix` makes of the bits of numbers and the key: -0.0 counts as 0.0, and every NaN as the same."""
    bits = values.view(np.uint64)
    for row in range(len(values)):
        value = values[row]
        one = bits[row] if value != 0.0 else np.uint64(0)
        one = (_NAN if np.isnan(value) else one) ^ key
        one = (one ^ (one >> SHIFT_1)) * FACTOR_1
        one = (one ^ (one >> SHIFT_2)) * FACTOR_2
        hashes[row] += one ^ (one >> SHIFT_3)


def add_column(
    hashes: Hashes, name: str, values: npt.NDArray[np.float64], words: Hashes | None = None
) -> None:
    """Add a column to the rows' hashes: its values' bits, or their texts' hashes, mixed with the column's name.

    `values` are numbers, NaN where missing, or of a categorical column positions in `words`, the hashes of its texts.
    """
    key = np.uint64(hash_word(name))
    if words is None:
        add_numbers(hashes, np.ascontiguousarray(values), key)
    else:
        codes = np.where(np.isnan(values), -1.0, values).astype(np.intp)
        hashes += mix(np.append(words, np.uint64(NO_TEXT)) ^ key)[codes]
