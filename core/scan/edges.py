"""Where a column is cut into bins of equal mass."""

import math

import numba
import numpy as np
import numpy.typing as npt

from core.kernel import kernel


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
        return edges_of_sorted(np.sort(column), np.empty(0), max_bins)
    order = np.argsort(column)
    return edges_of_sorted(column[order], np.cumsum(weight[order]), max_bins)


def edges_of_sorted(
    ordered: npt.NDArray[np.float64], cumulative: npt.NDArray[np.float64], max_bins: int
) -> npt.NDArray[np.float64]:
    """Find where to cut a sorted column, its NaNs last; see `fit_edges`.

    `cumulative` is the running weight, empty when all rows weigh the same.
    """
    edges = np.empty(max_bins)
    return edges[: cut_ordered(ordered, cumulative, edges)] + 0.0  # so that no edge is -0.0


@kernel(numba.int64(numba.float64[::1], numba.float64, numba.int64), inner=True)
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


@kernel(numba.int64(numba.float64[::1], numba.float64[::1], numba.float64[::1]))
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
    n_edges = end = 0
    for bins_left in range(max_bins, 1, -1):
        target = spent + (total - spent) / bins_left
        if weighted:
            last, high = 0, n  # the first row that reaches the target
            while last < high:
                middle = (last + high) // 2
                if cumulative[middle] < target:
                    last = middle + 1
                else:
                    high = middle
        else:
            last = math.ceil(target) - 1
        last = min(max(last, end), n - 1)  # a light row may be lost in the sum: still go on
        end = _upper_bound(ordered, ordered[last], last)
        if end == n:
            break
        edges[n_edges] = ordered[end - 1]
        n_edges += 1
        spent = cumulative[end - 1] if weighted else float(end)
    return n_edges
