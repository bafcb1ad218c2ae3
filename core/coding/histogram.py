"""Histograms: the weight of positives and of negatives in every bin of every feature."""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import overload

from core.kernels import INNER, kernel

from .bins import N_CODES, Codes
from .threads import shared_pool, take

# Rows below which sub-histograms cost more, to be cleared and added up, than they save.
MIN_ROWS_FOR_PARTS = 2_000


def fill_histograms(
    codes: Codes,
    weights: npt.NDArray[np.float64],
    n_positives: int,
    histograms: npt.NDArray[np.float64],
) -> None:
    """Write the weight of each class in each bin of each feature to `histograms`.

    codes: (n_features, n_rows), uint8 or uint16; positives first.
    weights: (n_rows,), float64.
    histograms: (n_features, 2, n_slots), float64; overwritten: [feature, 0, code] is positive mass, [feature, 1, code]
        negative mass. The last slot is that of the missing; there are 256 slots for uint8, and one more than bins for
        uint16.

    O(n_features · n_rows). A feature is summed by one thread in the order of the rows, so the
    result is the same for any number of threads.
    """
    _add_up(codes, _NO_ROWS, weights, n_positives, True, histograms)


def change_histograms(
    codes: Codes,
    rows: npt.NDArray[np.uint32],
    changes: npt.NDArray[np.float64],
    n_positives: int,
    histograms: npt.NDArray[np.float64],
) -> None:
    """Add changes of some rows' weights to `histograms`.

    codes: (n_features, n_rows), uint8 or uint16.
    rows: (n_changed,), uint32; rows whose weights have changed, positives first; ascending is fastest.
    changes: (n_changed,), float64; change of each weight.
    n_positives: number of positives among `rows`.
    histograms: (n_features, 2, n_slots), float64; changed in place. Rounding errors add up: fill them anew from time to
        time.

    O(n_features · n_changed): a fifth of the rows takes a third of the time of filling.
    """
    _add_up(codes, rows, changes, n_positives, False, histograms)


def _add_up(
    codes: Codes,
    rows: npt.NDArray[np.uint32],
    weights: npt.NDArray[np.float64],
    n_positives: int,
    is_filled: bool,
    histograms: npt.NDArray[np.float64],
) -> None:
    """Fill histograms from all rows, or add weight changes to them; in threads if that pays."""
    arguments = codes, rows, weights, n_positives, is_filled, histograms
    shared_pool(codes.size).deal(_add_up_features, len(codes), *arguments)


def slot(code: Any, last: Any) -> Any:
    """Return a code's index in the histogram; missing values have the last one, `last`."""
    return min(code, last)


@overload(slot, inline="always")
def _overload_slot(code, last):  # type: ignore[no-untyped-def]
    """Compile `slot` for kernels; for uint8 it is the code itself."""
    if code == numba.uint8:
        return lambda code, last: code
    return lambda code, last: min(np.uint64(code), last)


def slots_of(codes: Any, n_slots: Any) -> Any:
    """Return the length of a histogram; a compile-time constant for uint8 codes, which makes kernels faster."""
    return N_CODES if codes.dtype == np.uint8 else n_slots


@overload(slots_of, inline="always")
def _overload_slots_of(codes, n_slots):  # type: ignore[no-untyped-def]
    if codes.dtype == numba.uint8:
        return lambda codes, n_slots: N_CODES
    return lambda codes, n_slots: n_slots


WIDTHS = (numba.uint8, numba.uint16)

_NO_ROWS = np.empty(0, dtype=np.uint32)  # where all rows are meant


@numba.njit(**INNER)
def _add_up_column(codes, rows, weights, is_filled, histogram):  # type: ignore[no-untyped-def]
    """Fill the histogram with the weights of all rows, or add the weight changes of some rows."""
    n_rows = np.uint64(len(weights))
    last = np.uint64(len(histogram) - 1)
    i = np.uint64(0)
    if is_filled and n_rows < MIN_ROWS_FOR_PARTS:
        for code in range(len(histogram)):
            histogram[code] = 0.0
        while i < n_rows:
            histogram[slot(codes[i], last)] += weights[i]
            i += np.uint64(1)
        return
    # Four sub-histograms: consecutive rows of one bin would wait for each other's addition.
    part = np.empty((4, len(histogram)))
    for k in range(4):
        for code in range(len(histogram)):
            part[k, code] = 0.0
    if is_filled:
        while (
            i + np.uint64(3) < n_rows
        ):  # unsigned, so that numba drops the test for negative indices
            for k in range(4):
                at = i + np.uint64(k)
                part[k, slot(codes[at], last)] += weights[at]
            i += np.uint64(4)
        while i < n_rows:
            part[0, slot(codes[i], last)] += weights[i]
            i += np.uint64(1)
    else:
        while i + np.uint64(3) < n_rows:
            for k in range(4):
                at = i + np.uint64(k)
                part[k, slot(codes[rows[at]], last)] += weights[at]
            i += np.uint64(4)
        while i < n_rows:
            part[0, slot(codes[rows[i]], last)] += weights[i]
            i += np.uint64(1)
    for code in range(len(histogram)):
        total = (part[0, code] + part[1, code]) + (part[2, code] + part[3, code])
        histogram[code] = total if is_filled else histogram[code] + total


_ARGUMENTS = (
    numba.uint32[::1],
    numba.float64[::1],
    numba.int64,
    numba.boolean,
    numba.float64[:, :, ::1],
)


@kernel(*[numba.void(numba.int64[::1], numba.int64, code[:, ::1], *_ARGUMENTS) for code in WIDTHS])
def _add_up_features(queue, n, codes, rows, weights, n_positives, is_filled, histograms):  # type: ignore[no-untyped-def]
    """Fill or change the histograms of the features taken from the queue; see `change_histograms`."""
    m = n_positives
    j = take(queue)
    while j < n:
        for k in range(2):
            start, end = (m, len(weights)) if k else (0, m)
            own, listed = weights[start:end], rows[start:end]
            column = codes[j, start:] if is_filled else codes[j]
            _add_up_column(column, listed, own, is_filled, histograms[j, k])
        j = take(queue)
