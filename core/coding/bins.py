"""Binning: each column becomes small integer codes in the order of its values.

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
from functools import cached_property
from typing import Annotated, Any

import numba
import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Le

from core.kernels import kernel

Codes = npt.NDArray[Any]
"""uint8 or uint16; kernels are compiled for both."""

MAX_BINS = 65_535  # bins per feature with codes of uint16, whose greatest is the missing one's
MAX_NARROW_BINS = 255  # bins per feature with codes of uint8
MISSING = 255  # the code of NaN as uint8, above every bin
N_CODES = 256  # of uint8

_SENTENCE = (
    "Maximum number of bins per feature. A feature with at most this many distinct values has a bin for each. Of a "
    "feature with more categories, the rarest are merged."
)

MaxBins = Annotated[
    int, Ge(2), Le(MAX_BINS), Doc(f"{_SENTENCE} Above 255, the codes need twice the memory.")
]
MaxNarrowBins = Annotated[int, Ge(2), Le(MAX_NARROW_BINS), Doc(_SENTENCE)]

# Columns that are read together, since a cache line of a row-major table holds eight values; and columns whose values
# are in memory at the same time, for all threads: each takes as much as the codes of eight columns.
COLUMNS_AT_ONCE = 4

# Rows from which a column is put into buckets of ascending values, by the range of a sample of its values.
MIN_ROWS_FOR_BUCKETS = 1 << 15
# Rows of that sample.
SAMPLED_ROWS = 1 << 12
# Rows of a bucket, about.
BUCKET_ROWS = 16
# Rows up to which a bucket is sorted only if an edge lies in it; larger buckets are sorted at once.
MAX_UNSORTED_BUCKET = 512

RUN_ROWS = 1 << 14  # rows that one task codes
COUNTED_ROWS = 1 << 16  # rows whose categories are counted together
GATHERED_ROWS = 256  # rows that are copied together, column by column

# Cells of a table from which sorting columns in several threads pays.
PARALLEL_CELLS = 200_000


@dataclass(frozen=True)
class Bins:
    """The bins of each column: edges of numeric columns, bin numbers of categories.

    edges: strictly increasing. Bin c of a feature holds the values x with edges[c-1] < x <= edges[c]; so code(x) > c is
        the same as x > edges[c], for every float64 x. Empty for a categorical feature.
    category_bins: for a categorical feature the bin of each category, -1 if no row has it; None for a numeric one.
    dtype: of the codes.
    """

    edges: tuple[npt.NDArray[np.float64], ...]
    has_missing: npt.NDArray[np.bool_]
    """Whether the column held a NaN. Shape (n_features,)."""
    category_bins: tuple[npt.NDArray[np.int64] | None, ...]
    dtype: np.dtype[Any]

    @cached_property
    def n_bins(self) -> npt.NDArray[np.int64]:
        """Number of bins per feature, without that of missing values; at least 1."""
        return np.array(
            [
                len(edges) + 1 if bins is None else max(int(bins.max(initial=-1)) + 1, 1)
                for edges, bins in zip(self.edges, self.category_bins, strict=True)
            ],
            dtype=np.int64,
        )

    @cached_property
    def is_categorical(self) -> npt.NDArray[np.bool_]:
        return np.array([bins is not None for bins in self.category_bins], dtype=np.bool_)

    @cached_property
    def n_slots(self) -> int:
        """Length of a histogram, missing last: for uint8 always 256, each code its own slot; for uint16 the bins."""
        if self.dtype == np.uint8:
            return N_CODES
        return int(self.n_bins.max()) + 1


def missing_code(dtype: npt.DTypeLike) -> int:
    """Return the code of a missing value, the greatest that there is: 255 or 65,535."""
    return int(np.iinfo(dtype).max)


def fit_bins(
    X: npt.NDArray[np.float64],
    rows: npt.NDArray[Any],
    weight: npt.NDArray[np.float64],
    max_bins: int,
    n_categories: npt.NDArray[np.int64] | None = None,
) -> tuple[Bins, Codes]:
    """Fit the bins of every column, and return them with the codes of the rows.

    X: (n_samples, n_features), float64; finite values or NaN; for a categorical feature the indices of categories.
    rows: (n_rows,), int64 or uint32; the rows to take, in that order.
    weight: (n_rows,), float64; positive weight of each row of `rows`; a weight k bins as k equal rows do.
    max_bins: at most 65,535; the missing bin comes on top.
    n_categories: (n_features,), int64; number of categories of each feature, 0 for a numeric one. None: all are
        numeric.

    bins: Bins.
    codes: (n_features, n_rows), uint8 if max_bins <= 255, else uint16; column-major; the greatest value is missing.

    O(n_features · n_rows log n_rows). Memory: that of `learn_bins`, and then the codes.
    """
    bins = learn_bins(X, rows, weight, max_bins, n_categories)
    return bins, code_columns(X, rows, bins)


def code_columns(X: npt.NDArray[np.float64], rows: npt.NDArray[Any], bins: Bins) -> Codes:
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
    """Return the bins of every column; see `fit_bins` and `fit_categories` for the parameters.

    The result does not depend on the order of the rows; ascending rows are read fastest.

    One sort per numeric column, or of the rows near its edges. Columns are shared among as many threads as numba is set
    to use; each column is done by one thread, so that the result does not depend on their number. Memory: 32 bytes per
    row, for four columns; with unequal weights as much again for each thread.
    """
    n_features, rows = X.shape[1], rows.astype(np.uint32, copy=False)
    is_weighted = bool((weight != weight[0]).any())
    edges: list[npt.NDArray[np.float64]] = [np.empty(0)] * n_features
    category_bins: list[npt.NDArray[np.int64] | None] = [None] * n_features
    has_missing = np.zeros(n_features, dtype=np.bool_)
    n_threads = min(numba.get_num_threads(), n_features) if X.size >= PARALLEL_CELLS else 1
    width = min(max(COLUMNS_AT_ONCE // n_threads, 1), n_features)

    # One array for all columns, and for one in buckets if there is room for two. It is allocated here: memory that
    # threads allocate, or free and allocate again, would stay with the process.
    rooms = np.empty((n_threads, width, len(rows)))
    with_buckets = width > 1 and len(rows) >= MIN_ROWS_FOR_BUCKETS and not is_weighted
    width -= with_buckets

    def learn_columns(thread: int) -> None:
        for first in range(thread * width, n_features, n_threads * width):
            columns = rooms[thread, :width][: n_features - first]
            gather_columns(X, rows, first, columns)
            for j, column in enumerate(columns, start=first):
                has_missing[j] = bool(np.isnan(column.max()))
                edges[j], category_bins[j] = learn_column(
                    column,
                    weight,
                    max_bins,
                    0 if n_categories is None else int(n_categories[j]),
                    max_categories,
                    least_mass,
                    is_weighted=is_weighted,
                    room=rooms[thread, -1] if with_buckets else None,
                )

    share_out(learn_columns, range(n_threads), X.size)
    dtype = np.dtype(np.uint8 if max_bins <= MAX_NARROW_BINS else np.uint16)
    return Bins(tuple(edges), has_missing, tuple(category_bins), dtype)


def learn_column(
    column: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    max_bins: int,
    n_categories: int,
    max_categories: int,
    least_mass: float,
    *,
    is_weighted: bool,
    room: npt.NDArray[np.float64] | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64] | None]:
    """Return the edges of one column and, if it is categorical, the bin of each category; see `learn_bins`.

    The values of the column may be put into another order. is_weighted: whether weights differ; room: memory for a
    column in buckets.
    """
    if n_categories > 0:
        bins = fit_categories(column, weight, n_categories, max_bins, max_categories, least_mass)
        return np.empty(0), bins
    if is_weighted:
        return fit_edges(column, weight, max_bins), None
    return _find_edges(*_order(column, room), np.empty(0), max_bins), None


def fit_categories(
    column: npt.NDArray[np.float64],
    weight: npt.NDArray[np.float64],
    n_categories: int,
    max_bins: int,
    max_categories: int = 0,
    least_mass: float = 0.0,
) -> npt.NDArray[np.int64]:
    """Return the bin of each category.

    column: (n_rows,), float64; indices of categories, or NaN.
    max_categories: number of bins instead of `max_bins`, if that is more, for categories of at least `least_mass`.

    Result: (n_categories,), int64; bins in the order of the categories; -1 for a category that no row has. Of more than
        `max_bins` categories the heaviest, among equals the first, have a bin each, and the others share the last.
    """
    mass = np.zeros(n_categories)
    for start in range(0, len(column), COUNTED_ROWS):  # a copy of the column would be three of them
        some = column[start : start + COUNTED_ROWS]
        known = ~np.isnan(some)
        weights = weight[start : start + COUNTED_ROWS][known]
        # The sums so far come first: numbers are added in the same order as if all were counted at once.
        index = np.concatenate([np.arange(n_categories), some[known].astype(np.int64)])
        mass[:] = np.bincount(index, np.concatenate([mass, weights]), n_categories)
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
    """Call the task for every item, in threads if n_cells is large enough."""
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
    """Copy columns `first`, ... of some rows of X, few rows at a time, which the cache holds for all columns."""
    for start in range(0, len(rows), GATHERED_ROWS):
        end = min(start + GATHERED_ROWS, len(rows))
        for j in range(columns.shape[0]):
            for i in range(start, end):
                columns[j, i] = X[rows[i], first + j]


@kernel(numba.int64(numba.float64[::1], numba.int64, numba.float64), inner=True)
def _count_below(padded, step, value):  # type: ignore[no-untyped-def]
    """Return the number of edges below a value: a binary search without branches; padded: (2 · step,) float64."""
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
    """Write the code of each value (the number of ascending edges below it); return whether a value is NaN."""
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
    """Write the bin of each category to `codes`, and `missing` for a value that is no known category."""
    known = (column >= 0.0) & (column < len(bins))
    categories = np.where(known, column, len(bins)).astype(np.intp)
    codes[:] = np.append(bins, missing)[categories]


def fit_edges(
    column: npt.NDArray[np.float64], weight: npt.NDArray[np.float64] | None, max_bins: int
) -> npt.NDArray[np.float64]:
    """Return (n_bins - 1,) edges; none for a constant or missing column. weight: None if all are equal."""
    if weight is None:
        return _find_edges(*_order(column.copy(), None), np.empty(0), max_bins)
    order = np.argsort(column)
    ordered = column[order]
    return _find_edges(ordered, _whole(ordered), np.cumsum(weight[order]), max_bins)


def _whole(ordered: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return a sorted column's bounds as two buckets: its values, and its NaNs."""
    return np.array([0, np.searchsorted(ordered, np.inf, "right"), len(ordered)], dtype=np.int64)


def _order(
    column: npt.NDArray[np.float64], room: npt.NDArray[np.float64] | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Sort a column in place, or into buckets of ascending values if `room` is given; return the buckets' bounds.

    The last bucket holds the NaNs. Buckets of more than `MAX_UNSORTED_BUCKET` rows are sorted.
    """
    if room is not None:
        some = np.sort(column[:: len(column) // SAMPLED_ROWS])
        some = some[~np.isnan(some)]
        if 2 * np.count_nonzero(np.diff(some)) > SAMPLED_ROWS:  # few values are sorted fast
            tail = len(some) // 100
            low, high = float(some[tail]), float(some[-1 - tail])
            bounds = np.zeros(len(column) // BUCKET_ROWS + 2, dtype=np.int64)
            _fill_buckets(column, low, (len(bounds) - 2) / (high - low), room, bounds)
            for k in np.flatnonzero(np.diff(bounds[:-1]) > MAX_UNSORTED_BUCKET).tolist():
                room[bounds[k] : bounds[k + 1]].sort()
            return room, bounds
    column.sort()
    return column, _whole(column)


@kernel(
    numba.void(
        numba.float64[::1], numba.float64, numba.float64, numba.float64[::1], numba.int64[::1]
    )
)
def _fill_buckets(column, low, per_unit, room, bounds):  # type: ignore[no-untyped-def]
    """Copy x to bucket floor((x - low) · per_unit) of `room`; write their bounds to `bounds`, at first zeros."""
    last = len(bounds) - 3
    for turn in range(2):  # count, then copy
        for i in range(len(column)):
            x = column[i]
            bucket = (x - low) * per_unit  # increases with x, also after rounding
            k = np.int64(min(bucket, np.float64(last))) if bucket > 0.0 else 0
            if np.isnan(x):
                k = last + 1
            if turn == 0:
                bounds[k + 1] += 1
            else:
                room[bounds[k]] = x
                bounds[k] += 1
        if turn == 0:
            for k in range(1, len(bounds)):
                bounds[k] += bounds[k - 1]
    for k in range(len(bounds) - 1, 0, -1):
        bounds[k] = bounds[k - 1]
    bounds[0] = 0


def _find_edges(
    ordered: npt.NDArray[np.float64],
    bounds: npt.NDArray[np.int64],
    cumulative: npt.NDArray[np.float64],
    max_bins: int,
) -> npt.NDArray[np.float64]:
    edges = np.empty(max_bins)
    return edges[: cut_ordered(ordered, bounds, cumulative, edges)] + 0.0  # so that no edge is -0.0


@numba.njit
def _end_of_value(ordered, bounds, is_sorted, at):  # type: ignore[no-untyped-def]
    """Return the number of values up to and including the value of rank `at`, sorting its bucket if needed."""
    k = np.searchsorted(bounds, at, "right") - 1
    start, stop = bounds[k], bounds[k + 1]
    if not is_sorted[k] and stop - start <= MAX_UNSORTED_BUCKET:
        for i in range(start + 1, stop):
            x, j = ordered[i], i
            while j > start and ordered[j - 1] > x:
                ordered[j] = ordered[j - 1]
                j -= 1
            ordered[j] = x
    is_sorted[k] = True
    return start + np.int64(np.searchsorted(ordered[start:stop], ordered[at], "right"))


@kernel(numba.int64(numba.float64[::1], numba.int64[::1], numba.float64[::1], numba.float64[::1]))
def cut_ordered(ordered, bounds, cumulative, edges):  # type: ignore[no-untyped-def]
    """Write the bin edges of a column in buckets of ascending values; return their number.

    ordered: (n_rows,) float64; bounds: (n_buckets + 1,) int64, the last bucket holds the NaNs; a bucket that is not
    large is sorted if an edge lies in it. cumulative: (n_rows,) float64, the running weight of a sorted column, or
    (0,) if all rows weigh the same; edges: (max_bins,) float64. Each bin takes its fraction of the mass that is left,
    so that a heavy value costs one bin, not all the bins that it would fill.
    """
    n = bounds[len(bounds) - 2]
    is_sorted = np.zeros(len(bounds), dtype=np.bool_)
    max_bins = len(edges)
    n_distinct = 0
    end = 0
    while end < n and n_distinct < max_bins:
        end = _end_of_value(ordered, bounds, is_sorted, end)
        edges[n_distinct] = ordered[end - 1]
        n_distinct += 1
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
        last = min(max(last, end), n - 1)  # a light row may be lost in the sum: go on
        end = _end_of_value(ordered, bounds, is_sorted, last)
        if end == n:
            break
        edges[n_edges] = ordered[end - 1]
        n_edges += 1
        spent = cumulative[end - 1] if weighted else float(end)
    return n_edges
