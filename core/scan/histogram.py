"""Histograms: the (positive, negative) mass of every bin of every feature."""

import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import overload

from core.kernel import kernel

from .bins import N_CODES, Codes

# Sharing features out to threads costs some 20 microseconds; this many cells repay it.
PARALLEL_CELLS = 100_000

# Below this, clearing and adding up sub-histograms costs more than they save.
FEW_ROWS = 2_000

# One of numba's threading layers aborts the process when two threads enter parallel kernels.
PARALLEL_LOCK = threading.Lock()


def fill_histograms(
    codes: Codes,
    weights: npt.NDArray[np.float64],
    n_positives: int,
    histograms: npt.NDArray[np.float64],
) -> None:
    """Add up the mass of each class in each bin of each feature.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows), uint8 or uint16, C-contiguous
        Positives first.
    weights : ndarray of shape (n_rows,), float64
    n_positives : int
    histograms : ndarray of shape (n_features, 2, n_slots), float64
        Overwritten: [feature, 0, code] is positive mass, [feature, 1, code] negative mass. The last
        slot holds the missing; uint8 needs 256 slots, uint16 one more than there are bins.

    Notes
    -----
    O(n_features · n_rows). A feature is summed by one thread in the order of the rows, so the
    result is the same for any number of threads.
    """
    run(_fill_serial, _fill_parallel, codes, weights, n_positives, histograms)


def change_histograms(
    codes: Codes,
    rows: npt.NDArray[np.uint32],
    changes: npt.NDArray[np.float64],
    n_positives: int,
    histograms: npt.NDArray[np.float64],
) -> None:
    """Add changes of some rows' weights to histograms.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows), uint8 or uint16, C-contiguous
    rows : ndarray of shape (n_changed,), uint32
        Which rows have changed, positives first; ascending is fastest.
    changes : ndarray of shape (n_changed,), float64
        By how much.
    n_positives : int
        How many of `rows` are positive.
    histograms : ndarray of shape (n_features, 2, n_slots), float64
        Changed in place. Rounding adds up: fill them anew from time to time.

    Notes
    -----
    O(n_features · n_changed): for a fifth of the rows it takes a third of the time of filling.
    """
    run(_change_serial, _change_parallel, codes, rows, changes, n_positives, histograms)


def run(
    serial: Callable[..., None],
    parallel: Callable[..., None],
    codes: Codes,
    *arguments: object,
) -> None:
    """Run one of a kernel's two forms: threads where they pay, one at a time."""
    if codes.size < PARALLEL_CELLS or numba.get_num_threads() == 1:
        serial(codes, *arguments)
        return
    with PARALLEL_LOCK:
        parallel(codes, *arguments)


def slot(code: Any, last: Any) -> Any:
    """Give the slot of a code in a histogram whose last one is that of the missing."""
    return min(code, last)


@overload(slot, inline="always")
def _overload_slot(code, last):  # type: ignore[no-untyped-def]
    """Compile it for kernels; for uint8 it is nothing at all."""
    if code == numba.uint8:
        return lambda code, last: code
    return lambda code, last: min(np.uint64(code), last)


def slots_of(codes: Any, n_slots: Any) -> Any:
    """Give the length of a histogram of these codes: of uint8 a constant, that kernels are faster by."""
    return N_CODES if codes.dtype == np.uint8 else n_slots


@overload(slots_of, inline="always")
def _overload_slots_of(codes, n_slots):  # type: ignore[no-untyped-def]
    if codes.dtype == numba.uint8:
        return lambda codes, n_slots: N_CODES
    return lambda codes, n_slots: n_slots


WIDTHS = (numba.uint8, numba.uint16)


@kernel(*[numba.void(width[::1], numba.float64[::1], numba.float64[::1]) for width in WIDTHS])
def _fill(codes, weights, histogram):  # type: ignore[no-untyped-def]
    n_rows = np.uint64(len(codes))
    last = np.uint64(len(histogram) - 1)
    i = np.uint64(0)
    if n_rows < FEW_ROWS:
        histogram[:] = 0.0
        while i < n_rows:
            histogram[slot(codes[i], last)] += weights[i]
            i += np.uint64(1)
        return
    # Four sub-histograms: consecutive rows of one bin would wait for each other's addition.
    part = np.zeros((4, len(histogram)))
    while i + np.uint64(3) < n_rows:  # unsigned, so that numba drops the test for negative indices
        part[0, slot(codes[i], last)] += weights[i]
        part[1, slot(codes[i + np.uint64(1)], last)] += weights[i + np.uint64(1)]
        part[2, slot(codes[i + np.uint64(2)], last)] += weights[i + np.uint64(2)]
        part[3, slot(codes[i + np.uint64(3)], last)] += weights[i + np.uint64(3)]
        i += np.uint64(4)
    while i < n_rows:
        part[0, slot(codes[i], last)] += weights[i]
        i += np.uint64(1)
    for code in range(len(histogram)):
        histogram[code] = (part[0, code] + part[1, code]) + (part[2, code] + part[3, code])


_SIGNATURES = [
    numba.void(width[:, ::1], numba.float64[::1], numba.int64, numba.float64[:, :, ::1])
    for width in WIDTHS
]


@kernel(*_SIGNATURES)
def _fill_serial(codes, weights, n_positives, histograms):  # type: ignore[no-untyped-def]
    for j in range(codes.shape[0]):
        _fill(codes[j, :n_positives], weights[:n_positives], histograms[j, 0])
        _fill(codes[j, n_positives:], weights[n_positives:], histograms[j, 1])


@kernel(*_SIGNATURES, parallel=True)
def _fill_parallel(codes, weights, n_positives, histograms):  # type: ignore[no-untyped-def]
    for j in numba.prange(codes.shape[0]):
        _fill(codes[j, :n_positives], weights[:n_positives], histograms[j, 0])
        _fill(codes[j, n_positives:], weights[n_positives:], histograms[j, 1])


@kernel(
    *[
        numba.void(width[::1], numba.uint32[::1], numba.float64[::1], numba.float64[::1])
        for width in WIDTHS
    ]
)
def _change(codes, rows, changes, histogram):  # type: ignore[no-untyped-def]
    part = np.zeros((4, len(histogram)))
    n_rows = np.uint64(len(rows))
    last = np.uint64(len(histogram) - 1)
    i = np.uint64(0)
    while i + np.uint64(3) < n_rows:
        part[0, slot(codes[rows[i]], last)] += changes[i]
        part[1, slot(codes[rows[i + np.uint64(1)]], last)] += changes[i + np.uint64(1)]
        part[2, slot(codes[rows[i + np.uint64(2)]], last)] += changes[i + np.uint64(2)]
        part[3, slot(codes[rows[i + np.uint64(3)]], last)] += changes[i + np.uint64(3)]
        i += np.uint64(4)
    while i < n_rows:
        part[0, slot(codes[rows[i]], last)] += changes[i]
        i += np.uint64(1)
    for code in range(len(histogram)):
        histogram[code] += (part[0, code] + part[1, code]) + (part[2, code] + part[3, code])


_CHANGE = [
    numba.void(
        width[:, ::1],
        numba.uint32[::1],
        numba.float64[::1],
        numba.int64,
        numba.float64[:, :, ::1],
    )
    for width in WIDTHS
]


@kernel(*_CHANGE)
def _change_serial(codes, rows, changes, n_positives, histograms):  # type: ignore[no-untyped-def]
    for j in range(codes.shape[0]):
        _change(codes[j], rows[:n_positives], changes[:n_positives], histograms[j, 0])
        _change(codes[j], rows[n_positives:], changes[n_positives:], histograms[j, 1])


@kernel(*_CHANGE, parallel=True)
def _change_parallel(codes, rows, changes, n_positives, histograms):  # type: ignore[no-untyped-def]
    for j in numba.prange(codes.shape[0]):
        _change(codes[j], rows[:n_positives], changes[:n_positives], histograms[j, 0])
        _change(codes[j], rows[n_positives:], changes[n_positives:], histograms[j, 1])
