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


@kernel(numba.int64(numba.float64[::1], numba.float64[::1], numba.float64[::1]))
def cut_ordered(ordered, cumulative, edges):  # type: ignore[no-untyped-def]
    """Write the edges of a sorted column and return their number.

    `ordered` ends in its NaNs; `cumulative` holds the running weight, or nothing when all rows
    weigh the same; `edges` has room for as many as there may be bins. Each bin takes its share
    of the mass that is left, so a heavy value costs one bin, not the several it would fill.
    """
    n = int(np.searchsorted(ordered, np.inf, "right"))
    max_bins = len(edges)
    n_distinct = 0
    end = 0
    while end < n and n_distinct < max_bins:
        edges[n_distinct] = ordered[end]
        n_distinct += 1
        end = int(np.searchsorted(ordered, ordered[end], "right"))
    if end == n:
        return max(n_distinct - 1, 0)
    weighted = len(cumulative) > 0
    total = cumulative[n - 1] if weighted else float(n)
    spent = 0.0
    n_edges = end = 0
    for bins_left in range(max_bins, 1, -1):
        target = spent + (total - spent) / bins_left
        last = math.ceil(target) - 1
        if weighted:
            last = int(
                np.searchsorted(cumulative[:n], target)
            )  # the first row that reaches the target
        last = min(max(last, end), n - 1)  # a light row may be lost in the sum: still go on
        end = int(np.searchsorted(ordered, ordered[last], "right"))
        if end == n:
            break
        edges[n_edges] = ordered[end - 1]
        n_edges += 1
        spent = cumulative[end - 1] if weighted else float(end)
    return n_edges
