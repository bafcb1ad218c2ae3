"""The boosting family's own kernels: sums and changes of row weights on both sides of a cut.

A side is an interval of codes in the arithmetic of their type, which wraps around: `first`, and
`width` codes after it. For a set of bins, and for wide codes, marks take their place: 1 above, 0 below. These
kernels take 0.1 to 0.5 ns a row, little beside the histograms of thirty features: threads would not
pay.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.coding import Codes, Peak, missing_code
from core.kernel import kernel

Floats = npt.NDArray[np.float64]

_CODE = numba.uint8


class Interval(NamedTuple):
    """The codes of one side of a cut."""

    first: int
    width: int


class Sides(NamedTuple):
    """A column of codes, and which of them are above a cut and below it."""

    column: Codes
    above: Interval
    below: Interval


def divide(column: Codes, peak: Peak) -> Sides:
    """Give the sides of a cut; of a categorical feature and of wide codes by marks in their place."""
    missing = missing_code(column.dtype)
    if peak.bins_above is not None:
        marks = np.zeros(missing + 1, dtype=np.uint8)
        marks[: len(peak.bins_above)] = peak.bins_above
        marks[missing] = peak.missing_above
        return Sides(marks[column], Interval(1, 0), Interval(2, 254))
    first = peak.cut + 1
    width = missing - first - (0 if peak.missing_above else 1)
    if column.dtype != np.uint8:
        inside = column - column.dtype.type(first) <= width
        return Sides(inside.view(np.uint8), Interval(1, 0), Interval(2, 254))
    below = Interval((first + width + 1) % (missing + 1), missing - 1 - width)
    return Sides(column, Interval(first, width), below)


@kernel(
    numba.types.Tuple((numba.float64, numba.float64, numba.int64))(
        _CODE[::1], _CODE, _CODE, numba.float64[::1]
    ),
    fastmath={"reassoc", "nsz", "nnan", "ninf"},
)
def sum_sides(column, first, width, weights):  # type: ignore[no-untyped-def]
    """Sum the weights inside and outside an interval, and count the rows inside."""
    inside = 0.0
    outside = 0.0
    n_inside = 0
    for i in range(len(column)):
        if column.dtype.type(column[i] - first) <= width:
            inside += weights[i]
            n_inside += 1
        else:
            outside += weights[i]
    return inside, outside, n_inside


@kernel(numba.void(_CODE[::1], _CODE, _CODE, numba.float64, numba.float64, numba.float64[::1]))
def rescale_sides(column, first, width, inside, outside, weights):  # type: ignore[no-untyped-def]
    """Multiply the weights inside an interval by one factor and those outside by another."""
    for i in range(len(column)):
        weights[i] *= inside if column.dtype.type(column[i] - first) <= width else outside


@kernel(
    numba.int64(
        _CODE[::1],
        _CODE,
        _CODE,
        numba.float64,
        numba.float64[::1],
        numba.int64,
        numba.uint32[::1],
        numba.float64[::1],
    )
)
def rescale_and_list(column, first, width, factor, weights, start, rows, changes):  # type: ignore[no-untyped-def]
    """Multiply the weights inside an interval, and list those rows with the change of each.

    The i-th row of the column is called start + i. `rows` and `changes` need room for one entry
    more than there are rows inside, since each row is written before it is known to count.
    Returns the number listed.
    """
    listed = np.uint64(0)  # unsigned, so that numba drops the test for negative indices
    for i in range(len(column)):
        weight = weights[np.uint64(i)]
        is_inside = column.dtype.type(column[np.uint64(i)] - first) <= width
        rescaled = weight * factor if is_inside else weight
        weights[np.uint64(i)] = rescaled
        rows[listed] = np.uint32(start + i)
        changes[listed] = rescaled - weight
        listed += np.uint64(1) if is_inside else np.uint64(0)
    return np.int64(listed)
