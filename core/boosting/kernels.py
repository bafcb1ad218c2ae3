"""The boosting family's own kernels: sums and changes of row weights on both sides of a cut.

A side is an interval of codes: `first <= code <= first + width`, in arithmetic modulo 256, is
above the cut; everything else is below it. Both kernels are vector code at about 0.1 ns a row, a
hundredth of what the histograms of thirty features take: threads would not pay.
"""

# ruff: noqa: PLR0917 - kernels take their arrays by position

import numba
import numpy as np
import numpy.typing as npt

from core.scan import MISSING, Peak

Column = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]


def sum_sides(
    column: Column, peak: Peak, weights: Floats, n_positives: int
) -> tuple[float, float, float, float]:
    """Sum the weights above and below a cut, of positives and of negatives.

    Parameters
    ----------
    column : ndarray of shape (n_rows,), uint8
        Codes of the peak's feature, positives first.
    peak : Peak
    weights : ndarray of shape (n_rows,), float64
    n_positives : int

    Returns
    -------
    above_p, below_p, above_n, below_n : float
    """
    first, width = _interval(peak)
    above_p, below_p = _sum(column[:n_positives], first, width, weights[:n_positives])
    above_n, below_n = _sum(column[n_positives:], first, width, weights[n_positives:])
    return above_p, below_p, above_n, below_n


def rescale_sides(column: Column, peak: Peak, above: float, below: float, weights: Floats) -> None:
    """Multiply the weights above and below a cut, in place.

    Parameters
    ----------
    column : ndarray of shape (n_rows,), uint8
        Codes of the peak's feature.
    peak : Peak
    above, below : float
        Factors.
    weights : ndarray of shape (n_rows,), float64
    """
    _rescale(column, *_interval(peak), above, below, weights)


def _interval(peak: Peak) -> tuple[int, int]:
    first = peak.cut + 1
    last = MISSING if peak.missing_above else MISSING - 1
    return first, last - first


@numba.njit(
    numba.types.UniTuple(numba.float64, 2)(
        numba.uint8[::1], numba.uint8, numba.uint8, numba.float64[::1]
    ),
    nogil=True,
    cache=True,
    fastmath={"reassoc", "nsz", "nnan", "ninf"},  # lets the compiler add in vector lanes
)
def _sum(column, first, width, weights):  # type: ignore[no-untyped-def]
    above = 0.0
    below = 0.0
    for i in range(len(column)):
        if np.uint8(column[i] - first) <= width:
            above += weights[i]
        else:
            below += weights[i]
    return above, below


@numba.njit(
    numba.void(
        numba.uint8[::1],
        numba.uint8,
        numba.uint8,
        numba.float64,
        numba.float64,
        numba.float64[::1],
    ),
    nogil=True,
    cache=True,
)
def _rescale(column, first, width, above, below, weights):  # type: ignore[no-untyped-def]
    for i in range(len(column)):
        weights[i] *= above if np.uint8(column[i] - first) <= width else below
