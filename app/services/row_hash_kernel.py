"""The hashes of numbers, compiled: apart from `row_hashes`, which processes import that do without numba."""

import numba
import numpy as np

from app.services.row_hashes import FACTOR_1, FACTOR_2, SHIFT_1, SHIFT_2, SHIFT_3
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
