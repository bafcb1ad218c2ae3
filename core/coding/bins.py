"""Columns -> codes: the order along which every prefix sum of this folder runs.

A column with at most `max_bins` distinct values keeps them all: its codes are exact. Any other is
cut at weighted quantiles. An edge is always a value of the data, the left end `a` of a gap, and
the test is `x > a`: a midpoint could round onto the right end of the gap and lose the split.

A categorical column has no order until a scan gives it one (`categories`). Each category has a bin
of its own, unless there are more than `max_bins`: then the lightest share the last bin.

Codes are uint8 up to 255 bins and uint16 up to 65,535; their greatest value is the missing one's.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any

import numba
import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Le

from core.kernel import kernel

Codes = npt.NDArray[Any]
"""uint8 or uint16: one type for mypy, since kernels are compiled for both."""

MAX_BINS = 65_535
MAX_NARROW = 255  # bins that uint8 has room for
MISSING = 255  # the code of NaN as uint8: above every bin, in a bin of its own
N_CODES = 256

_SENTENCE = (
    "Most bins per feature; with no more distinct values than bins, none are merged, and of too many "
    "categories the rarest are."
)

MaxBins = Annotated[
    int, Ge(2), Le(MAX_BINS), Doc(f"{_SENTENCE} Above 255 they take twice the memory.")
]
MaxNarrowBins = Annotated[int, Ge(2), Le(MAX_NARROW), Doc(_SENTENCE)]

# Columns read together, as a cache line of a row-major table holds eight values; and columns whose
# values are held at the same time, by all threads: each takes as much as the codes of eight.
COLUMNS_AT_ONCE = 4

RUN_ROWS = 1 << 14  # coded at a time
GATHERED_ROWS = 256  # copied at a time, column by column

# A column's sorting is worth a thread of its own from about this many cells on.
PARALLEL_CELLS = 200_000


@dataclass(frozen=True)
class Bins:
    """What the bins of each column hold.

    Attributes
    ----------
    edges : tuple of ndarray of float64, one per feature
        Strictly increasing. Bin c of a feature holds the values x with edges[c-1] < x <= edges[c];
        so code(x) > c is the same as x > edges[c], for every float64 x. Empty for a categorical
        feature.
    has_missing : ndarray of shape (n_features,), bool
        Whether the column held a NaN.
    category_bins : tuple of ndarray of int64, one per feature, or None
        For a categorical feature the bin of each category, -1 where no row has it; None for a
        numeric one.
    dtype : numpy.dtype
        Of the codes.
    """

    edges: tuple[npt.NDArray[np.float64], ...]
    has_missing: npt.NDArray[np.bool_]
    category_bins: tuple[npt.NDArray[np.int64] | None, ...]
    dtype: np.dtype[Any]

    @property
    def n_bins(self) -> npt.NDArray[np.int64]:
        """Number of bins per feature, the missing one apart; at least 1."""
        return np.array(
            [
                len(edges) + 1 if bins is None else max(int(bins.max(initial=-1)) + 1, 1)
                for edges, bins in zip(self.edges, self.category_bins, strict=True)
            ],
            dtype=np.int64,
        )

    @property
    def is_categorical(self) -> npt.NDArray[np.bool_]:
        """Which features are categorical."""
        return np.array([bins is not None for bins in self.category_bins], dtype=np.bool_)

    @property
    def n_slots(self) -> int:
        """Length of a histogram: a slot per code, the last one for the missing.

        For uint8 always 256, a code's slot being itself. For uint16 no more than there are bins.
        """
        if self.dtype == np.uint8:
            return N_CODES
        return int(self.n_bins.max()) + 1


def missing_code(dtype: npt.DTypeLike) -> int:
    """Give the code of a missing value, the greatest that there is: 255 or 65,535."""
    return int(np.iinfo(dtype).max)


def fit_bins(
    X: npt.NDArray[np.float64],
    rows: npt.NDArray[Any],
    weight: npt.NDArray[np.float64],
    max_bins: int,
    n_categories: npt.NDArray[np.int64] | None = None,
) -> tuple[Bins, Codes]:
    """Learn the bins of every column and code the rows with them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float64
        Finite values or NaN; of a categorical feature the positions of categories.
    rows : ndarray of shape (n_rows,), int64 or uint32
        Which rows to take, in which order.
    weight : ndarray of shape (n_rows,), float64
        Positive weight of each row of `rows`; a weight k bins as k equal rows do.
    max_bins : int
        At most 65,535; the missing bin comes on top.
    n_categories : ndarray of shape (n_features,), int64, optional
        Number of categories of each feature, 0 for a numeric one. None: all are numeric.

    Returns
    -------
    bins : Bins
    codes : ndarray of shape (n_features, n_rows), uint8 if max_bins <= 255, else uint16
        Column-major; the greatest value is missing.

    Notes
    -----
    O(n_features · n_rows log n_rows). Memory: that of `learn_bins`, and then the codes.
    """
    bins = learn_bins(X, rows, weight, max_bins, n_categories)
    return bins, code_columns(X, rows, bins)


def code_columns(X: npt.NDArray[np.float64], rows: npt.NDArray[Any], bins: Bins) -> Codes:
    """Code rows column by column, a run of rows at a time; see `fit_bins`."""
    n_features, rows = X.shape[1], rows.astype(np.uint32, copy=False)
    codes: Codes = np.empty((n_features, len(rows)), dtype=bins.dtype)
    missing = missing_code(bins.dtype)

    def code_run(start: int) -> None:
        taken = rows[start : start + RUN_ROWS]
        values = np.empty((min(COLUMNS_AT_ONCE, n_features), len(taken)))
        for first in range(0, n_features, COLUMNS_AT_ONCE):
            columns = values[: n_features - first]
            gather_columns(X, taken, first, columns)
            for j, column in enumerate(columns, start=first):
                own, run = bins.category_bins[j], codes[j, start : start + RUN_ROWS]
                if own is None:
                    encode(column, bins.edges[j], missing, run)
                else:
                    encode_categories(column, own, missing, run)

    share_out(code_run, range(0, len(rows), RUN_ROWS), codes.size)
    return codes


def learn_bins(
    X: npt.NDArray[np.float64],
    rows: npt.NDArray[Any],
    weight: npt.NDArray[np.float64],
    max_bins: int,
    n_categories: npt.NDArray[np.int64] | None = None,
    max_categories: int = 0,
    least_mass: float = 0.0,
) -> Bins:
    """Learn the bins of every column; see `fit_bins` for the parameters, and `fit_categories` for the last two.

    The order of the rows does not matter; ascending they are read fastest.

    Notes
    -----
    One sort per numeric column. Columns are shared out among as many threads as numba is set to
    use; each is done by one, so the result does not depend on them. Memory: 32 bytes per row, for
    four columns; where weights differ as much again for each thread.
    """
    n_features, rows = X.shape[1], rows.astype(np.uint32, copy=False)
    is_weighted = bool((weight != weight[0]).any())
    edges: list[npt.NDArray[np.float64]] = [np.empty(0)] * n_features
    category_bins: list[npt.NDArray[np.int64] | None] = [None] * n_features
    has_missing = np.zeros(n_features, dtype=np.bool_)
    n_threads = min(numba.get_num_threads(), n_features) if X.size >= PARALLEL_CELLS else 1
    width = min(max(COLUMNS_AT_ONCE // n_threads, 1), n_features)

    # One room for all columns, sorted in place, asked for here: what threads ask for themselves, or
    # give back and ask for again, would stay with the process.
    rooms = np.empty((n_threads, width, len(rows)))

    def learn_columns(thread: int) -> None:
        for first in range(thread * width, n_features, n_threads * width):
            columns = rooms[thread, : n_features - first]
            gather_columns(X, rows, first, columns)
            for j, column in enumerate(columns, start=first):
                has_missing[j] = bool(np.isnan(column.max()))
                if n_categories is not None and n_categories[j] > 0:
                    category_bins[j] = fit_categories(
                        column, weight, int(n_categories[j]), max_bins, max_categories, least_mass
                    )
                elif is_weighted:
                    edges[j] = fit_edges(column, weight, max_bins)
                else:
                    column.sort()
                    edges[j] = edges_of_sorted(column, np.empty(0), max_bins)

    share_out(learn_columns, range(n_threads), X.size)
    dtype = np.dtype(np.uint8 if max_bins <= MAX_NARROW else np.uint16)
    return Bins(tuple(edges), has_missing, tuple(category_bins), dtype)


def fit_categories(
    column: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    n_categories: int,
    max_bins: int,
    max_categories: int = 0,
    least_mass: float = 0.0,
) -> npt.NDArray[np.int64]:
    """Give each category its bin.

    Parameters
    ----------
    column : ndarray of shape (n_rows,), float64
        Positions of categories, or NaN.
    weight : ndarray of shape (n_rows,), float64
    n_categories : int
    max_bins : int
    max_categories : int
        So many bins instead, where that is more, for categories of at least `least_mass`.
    least_mass : float

    Returns
    -------
    ndarray of shape (n_categories,), int64
        Bins in the order of the categories; -1 for a category that no row has. With more than
        `max_bins` the heaviest, and of equals the first, have bins of their own, all but one.
    """
    known = ~np.isnan(column)
    mass = np.bincount(column[known].astype(np.int64), weight[known], n_categories)
    own = np.flatnonzero(mass > 0.0)
    heavy = int((mass >= least_mass).sum()) + 1 if max_categories > max_bins else 0
    max_bins = max(max_bins, min(heavy, max_categories))
    bins = np.full(n_categories, -1, dtype=np.int64)
    if len(own) > max_bins:
        bins[own] = max_bins - 1
        own = np.sort(own[np.argsort(-mass[own], kind="stable")[: max_bins - 1]])
    bins[own] = np.arange(len(own))
    return bins


def share_out(task: Callable[[int], None], items: Sequence[int], n_cells: int) -> None:
    """Run the task on every item, in threads where that pays."""
    n_threads = min(numba.get_num_threads(), len(items)) if n_cells >= PARALLEL_CELLS else 1
    if n_threads == 1:
        for item in items:
            task(item)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(task, items))  # list, so that an exception surfaces


_READ_ONLY_MATRIX = numba.types.Array(numba.float64, 2, "A", readonly=True)


@kernel(numba.void(_READ_ONLY_MATRIX, numba.uint32[::1], numba.int64, numba.float64[:, ::1]))
def gather_columns(X, rows, first, columns):  # type: ignore[no-untyped-def]
    """Copy some columns of X, rows in the given order: few rows at a time, which the cache holds for all columns."""
    for start in range(0, len(rows), GATHERED_ROWS):
        end = min(start + GATHERED_ROWS, len(rows))
        for j in range(columns.shape[0]):
            for i in range(start, end):
                columns[j, i] = X[rows[i], first + j]


@kernel(numba.int64(numba.float64[::1], numba.int64, numba.float64), inner=True)
def _count_below(padded, step, value):  # type: ignore[no-untyped-def]
    """Count the edges below a value: a binary search without branches to mispredict."""
    count = 0
    while step > 0:
        count += step if padded[count + step - 1] < value else 0
        step //= 2
    return count


@kernel(
    numba.boolean(numba.float64[::1], numba.float64[::1], numba.int64, numba.uint8[::1]),
    numba.boolean(numba.float64[::1], numba.float64[::1], numba.int64, numba.uint16[::1]),
)
def encode(column, edges, missing, codes):  # type: ignore[no-untyped-def]
    """Write the code of each value, its number of edges below, and return whether one is NaN."""
    size = N_CODES
    while size <= len(edges):
        size *= 2
    narrow, half = size == N_CODES, size // 2
    padded = np.empty(size)
    for i in range(size):
        padded[i] = edges[i] if i < len(edges) else np.inf
    has_missing = False
    for i in range(len(column)):
        value = column[i]
        # Of 256 the compiler knows the number of steps, and unrolls them.
        step = N_CODES // 2
        code = _count_below(padded, step, value) if narrow else _count_below(padded, half, value)
        if np.isnan(value):
            code = missing
            has_missing = True
        codes[i] = code
    return has_missing


def encode_categories(
    column: npt.NDArray[np.float64],
    bins: npt.NDArray[np.int64],
    missing: int,
    codes: npt.NDArray[Any],
) -> None:
    """Write the bin of each category, and `missing` for what is none."""
    known = (column >= 0.0) & (column < len(bins))
    categories = np.where(known, column, len(bins)).astype(np.intp)
    codes[:] = np.append(bins, missing)[categories]


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
