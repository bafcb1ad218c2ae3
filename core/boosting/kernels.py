"""The boosting family's own kernels: sums and changes of row weights on both sides of a cut.

A side is an interval of codes: `first <= code <= first + width`, in arithmetic modulo 256, is
above the cut; everything else is below it.
"""

# ruff: noqa: PLR0917 - kernels take their arrays by position

import numba
import numpy as np
import numpy.typing as npt

from core.scan import MISSING, Peak

# Sums run over blocks of this many rows and are combined in order, so that the number of threads
# does not change a bit of them.
BLOCK = 16_384
PARALLEL_ROWS = 200_000

Column = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Blocks = npt.NDArray[np.int64]


def class_blocks(n_positives: int, n_rows: int) -> Blocks:
    """Cut the rows, positives first, into blocks of one class each.

    Returns
    -------
    ndarray of shape (n_blocks, 3), int64
        First row, row after the last, and class: 0 positive, 1 negative.
    """
    blocks = []
    for channel, (start, stop) in enumerate([(0, n_positives), (n_positives, n_rows)]):
        blocks += [(i, min(i + BLOCK, stop), channel) for i in range(start, stop, BLOCK)]
    return np.array(blocks, dtype=np.int64)


def sum_sides(column: Column, peak: Peak, weights: Floats, blocks: Blocks) -> Floats:
    """Sum the weights above and below a cut, of positives and of negatives.

    Parameters
    ----------
    column : ndarray of shape (n_rows,), uint8
        Codes of the peak's feature, positives first.
    peak : Peak
    weights : ndarray of shape (n_rows,), float64
    blocks : ndarray of shape (n_blocks, 3), int64

    Returns
    -------
    ndarray of shape (2, 2), float64
        [class, side]: positives, then negatives; above, then below.
    """
    sums = np.empty((len(blocks), 2))
    kernel = _sum_parallel if _pays(column) else _sum_serial
    kernel(column, *_interval(peak), weights, blocks, sums)
    sides = np.zeros((2, 2))
    _add_blocks(sums, blocks, sides)
    return sides


def rescale_sides(
    column: Column, peak: Peak, factors: Floats, weights: Floats, blocks: Blocks
) -> None:
    """Multiply the weights above and below a cut, those of positives and of negatives.

    Parameters
    ----------
    column, peak, weights, blocks
        As for `sum_sides`; the weights are changed in place.
    factors : ndarray of shape (2, 2), float64
        [class, side].
    """
    kernel = _rescale_parallel if _pays(column) else _rescale_serial
    kernel(column, *_interval(peak), factors, weights, blocks)


def _pays(column: Column) -> bool:
    return len(column) >= PARALLEL_ROWS and numba.get_num_threads() > 1


def _interval(peak: Peak) -> tuple[np.uint8, np.uint8]:
    first = peak.cut + 1
    last = MISSING if peak.missing_above else MISSING - 1
    return np.uint8(first), np.uint8(last - first)


_SUM = numba.void(
    numba.uint8[::1],
    numba.uint8,
    numba.uint8,
    numba.float64[::1],
    numba.int64[:, ::1],
    numba.float64[:, ::1],
)


@numba.njit(
    numba.types.UniTuple(numba.float64, 2)(
        numba.uint8[::1], numba.uint8, numba.uint8, numba.float64[::1]
    ),
    nogil=True,
    cache=True,
    fastmath={"reassoc", "nsz"},  # lets the compiler add in vector lanes
)
def _sum_block(column, first, width, weights):  # type: ignore[no-untyped-def]
    above = 0.0
    below = 0.0
    for i in range(len(column)):
        is_above = np.uint8(column[i] - first) <= width
        above += weights[i] if is_above else 0.0
        below += 0.0 if is_above else weights[i]
    return above, below


@numba.njit(_SUM, nogil=True, cache=True)
def _sum_serial(column, first, width, weights, blocks, sums):  # type: ignore[no-untyped-def]
    for b in range(len(blocks)):
        start, stop = blocks[b, 0], blocks[b, 1]
        sums[b] = _sum_block(column[start:stop], first, width, weights[start:stop])


@numba.njit(_SUM, nogil=True, cache=True, parallel=True)
def _sum_parallel(column, first, width, weights, blocks, sums):  # type: ignore[no-untyped-def]
    for b in numba.prange(len(blocks)):
        start, stop = blocks[b, 0], blocks[b, 1]
        sums[b] = _sum_block(column[start:stop], first, width, weights[start:stop])


@numba.njit(
    numba.void(numba.float64[:, ::1], numba.int64[:, ::1], numba.float64[:, ::1]),
    nogil=True,
    cache=True,
)
def _add_blocks(sums, blocks, sides):  # type: ignore[no-untyped-def]
    for b in range(len(blocks)):
        sides[blocks[b, 2], 0] += sums[b, 0]
        sides[blocks[b, 2], 1] += sums[b, 1]


@numba.njit(
    numba.void(numba.uint8[::1], numba.uint8, numba.uint8, numba.float64[::1], numba.float64[::1]),
    nogil=True,
    cache=True,
)
def _rescale_block(column, first, width, factors, weights):  # type: ignore[no-untyped-def]
    above, below = factors[0], factors[1]
    for i in range(len(column)):
        weights[i] *= above if np.uint8(column[i] - first) <= width else below


_RESCALE = numba.void(
    numba.uint8[::1],
    numba.uint8,
    numba.uint8,
    numba.float64[:, ::1],
    numba.float64[::1],
    numba.int64[:, ::1],
)


@numba.njit(_RESCALE, nogil=True, cache=True)
def _rescale_serial(column, first, width, factors, weights, blocks):  # type: ignore[no-untyped-def]
    for b in range(len(blocks)):
        start, stop = blocks[b, 0], blocks[b, 1]
        _rescale_block(column[start:stop], first, width, factors[blocks[b, 2]], weights[start:stop])


@numba.njit(_RESCALE, nogil=True, cache=True, parallel=True)
def _rescale_parallel(column, first, width, factors, weights, blocks):  # type: ignore[no-untyped-def]
    for b in numba.prange(len(blocks)):
        start, stop = blocks[b, 0], blocks[b, 1]
        _rescale_block(column[start:stop], first, width, factors[blocks[b, 2]], weights[start:stop])
