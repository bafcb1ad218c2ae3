"""Columns -> codes: the order along which every prefix sum of this folder runs.

A column with at most `max_bins` distinct values keeps them all: its codes are exact. Any other is
cut at weighted quantiles. An edge is always a value of the data, the left end `a` of a gap, and
the test is `x > a`: a midpoint could round onto the right end of the gap and lose the split.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

MAX_BINS = 255
MISSING = 255  # the code of NaN: above every bin, in a bin of its own
N_CODES = 256

COLUMNS_AT_ONCE = 4  # read together: a cache line of a row-major table holds eight values

# A column and its sorted copy are worth a thread of their own from about this many cells on.
PARALLEL_CELLS = 200_000


@dataclass(frozen=True)
class Bins:
    """Edges of the bins of each column.

    Attributes
    ----------
    edges : tuple of ndarray of float64, one per feature
        Strictly increasing. Bin c of a feature holds the values x with edges[c-1] < x <= edges[c];
        so code(x) > c is the same as x > edges[c], for every float64 x.
    has_missing : ndarray of shape (n_features,), bool
        Whether the column held a NaN.
    """

    edges: tuple[npt.NDArray[np.float64], ...]
    has_missing: npt.NDArray[np.bool_]

    @property
    def n_bins(self) -> npt.NDArray[np.int64]:
        """Number of bins per feature, the missing one apart: 0 where every value is missing."""
        return np.array([len(edges) + 1 for edges in self.edges], dtype=np.int64)


def fit_bins(
    X: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64],
    max_bins: int,
) -> tuple[Bins, npt.NDArray[np.uint8]]:
    """Learn the bins of every column and code the rows with them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float64
        Finite values or NaN.
    rows : ndarray of shape (n_rows,), int64
        Which rows to take, in which order.
    weight : ndarray of shape (n_rows,), float64
        Positive weight of each row of `rows`; a weight k bins as k equal rows do.
    max_bins : int
        At most 255; the missing bin comes on top.

    Returns
    -------
    bins : Bins
    codes : ndarray of shape (n_features, n_rows), uint8
        Column-major; 255 is missing.

    Notes
    -----
    O(n_features · n_rows log n_rows): one sort per column. Columns are shared out among as many
    threads as numba is set to use; each is done by one, so the result does not depend on them.
    """
    n_features = X.shape[1]
    codes = np.empty((n_features, len(rows)), dtype=np.uint8)
    weighted = bool((weight != weight[0]).any())
    edges: list[npt.NDArray[np.float64]] = [np.empty(0)] * n_features
    has_missing = np.zeros(n_features, dtype=np.bool_)

    def fit_columns(first: int) -> None:
        columns = np.empty((min(COLUMNS_AT_ONCE, n_features - first), len(rows)))
        gather_columns(X, rows, first, columns)
        for j, column in enumerate(columns, start=first):
            edges[j] = fit_edges(column, weight if weighted else None, max_bins)
            has_missing[j] = encode(column, edges[j], codes[j])

    _share_out(fit_columns, range(0, n_features, COLUMNS_AT_ONCE), codes.size)
    return Bins(tuple(edges), has_missing), codes


def fit_edges(
    column: npt.NDArray[np.float64], weight: npt.NDArray[np.float64] | None, max_bins: int
) -> npt.NDArray[np.float64]:
    """Find where to cut one column.

    Parameters
    ----------
    column : ndarray of shape (n_rows,), float64
    weight : ndarray of shape (n_rows,), float64, or None
        None when all are equal.
    max_bins : int

    Returns
    -------
    ndarray of shape (n_bins - 1,), float64
        Empty for a constant or wholly missing column.
    """
    if weight is None:
        ordered = np.sort(column)  # NaN last
        cumulative = np.empty(0)
    else:
        order = np.argsort(column)
        ordered = column[order]
        cumulative = np.cumsum(weight[order])
    edges = np.empty(max_bins)
    return edges[: cut_ordered(ordered, cumulative, edges)] + 0.0  # so that no edge is -0.0


def _share_out(task: Callable[[int], None], items: range, n_cells: int) -> None:
    """Run the task on every item, in threads where that pays."""
    n_threads = min(numba.get_num_threads(), len(items)) if n_cells >= PARALLEL_CELLS else 1
    if n_threads == 1:
        for item in items:
            task(item)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(task, items))  # list, so that an exception surfaces


_READ_ONLY_MATRIX = numba.types.Array(numba.float64, 2, "A", readonly=True)


@numba.njit(
    numba.void(_READ_ONLY_MATRIX, numba.int64[::1], numba.int64, numba.float64[:, ::1]),
    nogil=True,
    cache=True,
)
def gather_columns(X, rows, first, columns):  # type: ignore[no-untyped-def]
    """Copy some columns of X, their rows in the given order."""
    for i in range(len(rows)):
        for j in range(columns.shape[0]):
            columns[j, i] = X[rows[i], first + j]


@numba.njit(
    numba.int64(numba.float64[::1], numba.float64, numba.int64),
    nogil=True,
    cache=True,
)
def _upper_bound(ordered, value, start):  # type: ignore[no-untyped-def]
    """Find the first position from `start` on that holds more than the value, or NaN."""
    n = len(ordered)
    low = start
    step = 1
    while low < n and ordered[low] <= value:  # gallop: runs are short in most columns
        start = low + 1
        low += step
        step *= 2
    high = min(low, n)
    while start < high:
        middle = (start + high) // 2
        if ordered[middle] <= value:
            start = middle + 1
        else:
            high = middle
    return start


@numba.njit(
    numba.int64(numba.float64[::1], numba.float64[::1], numba.float64[::1]),
    nogil=True,
    cache=True,
)
def cut_ordered(ordered, cumulative, edges):  # type: ignore[no-untyped-def]
    """Write the edges of a sorted column and return their number.

    `ordered` ends in its NaNs; `cumulative` holds the running weight, or nothing when all rows
    weigh the same; `edges` has room for as many as there may be bins. Each bin takes its share
    of the mass that is left, so a heavy value costs one bin, not the several it would fill.
    """
    n = _upper_bound(ordered, np.inf, 0)
    max_bins = len(edges)
    n_distinct = 0
    end = 0
    while end < n and n_distinct < max_bins:
        edges[n_distinct] = ordered[end]
        n_distinct += 1
        end = _upper_bound(ordered, ordered[end], end)
    if end == n:
        return max(n_distinct - 1, 0)
    weighted = len(cumulative) > 0
    total = cumulative[n - 1] if weighted else float(n)
    spent = 0.0
    n_edges = 0
    for bins_left in range(max_bins, 1, -1):
        target = spent + (total - spent) / bins_left
        last = np.searchsorted(cumulative[:n], target) if weighted else int(np.ceil(target)) - 1
        end = _upper_bound(ordered, ordered[min(last, n - 1)], min(last, n - 1))
        if end == n:
            break
        edges[n_edges] = ordered[end - 1]
        n_edges += 1
        spent = cumulative[end - 1] if weighted else float(end)
    return n_edges


@numba.njit(
    numba.boolean(numba.float64[::1], numba.float64[::1], numba.uint8[::1]),
    nogil=True,
    cache=True,
)
def encode(column, edges, codes):  # type: ignore[no-untyped-def]
    """Write the code of each value, its number of edges below, and return whether one is NaN."""
    padded = np.full(N_CODES, np.inf)
    padded[: len(edges)] = edges
    has_missing = False
    for i in range(len(column)):
        value = column[i]
        code = 0
        step = N_CODES // 2
        while step > 0:  # a binary search without branches to mispredict
            code += step if padded[code + step - 1] < value else 0
            step //= 2
        if np.isnan(value):
            code = MISSING
            has_missing = True
        codes[i] = code
    return has_missing
