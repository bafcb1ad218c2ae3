"""From a matrix to the coded table of trees, a chunk of rows at a time.

No column is kept besides the matrix and the coded table: bins are learnt from a few columns at a
time, and rows are coded straight into their words.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.coding import Bins, Team, count_rows
from core.coding.bins import MAX_NARROW, RUN_ROWS, learn_bins
from core.coding.by_row import COLUMNS, NARROW, WIDE, allocate_words
from core.coding.team import take
from core.kernel import kernel
from core.ranker import Floats

from .layout import Integers, Table
from .workspace import CATEGORY_ROWS

ROWS_AT_ONCE = 1024  # their values of thirty columns stay in the second-level cache


def code_table(
    X: Floats,
    rows: npt.NDArray[np.uint32],
    n_positives: int,
    weight: Floats,
    most: tuple[int, int],
    n_categories: Integers,
) -> tuple[Bins, Table]:
    """Learn the bins of every column and code the rows with them.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        Finite values or NaN; of a categorical feature the positions of categories.
    rows : ndarray of shape (n_rows,), uint32
        All rows, positives first.
    n_positives : int
    weight : ndarray of shape (n_rows,), float64
        Of the rows of X; above 0.
    most : (int, int)
        Most bins of a numeric and of a categorical feature, at most 65,535; the missing bin comes on top. Of more
        categories than there are bins for a number, those of fewer rows than count are pooled.
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.

    Returns
    -------
    bins : Bins
    table : Table

    Notes
    -----
    O(n_features · n_rows log n_rows). Memory: that of `learn_bins`, and then 32 bytes per row and
    block of 32 columns, 64 where a column has more than 255 bins.
    """
    n_rows, n_features = X.shape
    least = CATEGORY_ROWS * float(weight[0] / count_rows(weight)[0])
    bins = learn_bins(X, np.sort(rows), weight, most[0], n_categories, most[1], least)
    per_word = NARROW if bins.n_bins.max() <= MAX_NARROW else WIDE
    blocks = _describe_blocks(bins, per_word)
    words = allocate_words(len(blocks), n_rows, per_word)
    codes = words.view(np.uint8 if per_word == NARROW else np.uint16)
    Team(X.size).deal(
        _encode, -(-n_rows // RUN_ROWS), X, rows, *_tables(bins), blocks[:, 1].copy(), codes
    )
    categorical = np.zeros(len(blocks) * COLUMNS, dtype=np.bool_)
    categorical[:n_features] = bins.is_categorical
    table = Table(
        words,
        per_word,
        n_rows,
        n_positives,
        n_features,
        blocks,
        categorical.reshape(len(blocks), COLUMNS),
    )
    return bins, table


def _describe_blocks(bins: Bins, per_word: int) -> Integers:
    """Describe the blocks of 32 columns; see `layout`."""
    n_bins, n_features = bins.n_bins, len(bins.edges)
    blocks = np.zeros((-(-n_features // COLUMNS), 5), dtype=np.int64)
    n_ordered = np.where(bins.is_categorical, 0, n_bins)
    first_cell = 0
    for b, start in enumerate(range(0, n_features, COLUMNS)):
        columns = slice(start, min(start + COLUMNS, n_features))
        n_codes = int(n_bins[columns].max()) + 1
        n_words = -(-(columns.stop - start) // per_word)
        has_missing = bins.has_missing[columns].any()
        blocks[b] = (n_words, n_codes, has_missing, first_cell, n_ordered[columns].max())
        first_cell += n_codes * COLUMNS
    return blocks


class _Tables(NamedTuple):
    """How each column is coded.

    Attributes
    ----------
    values : ndarray of float64
        One column after the other: edges, padded with infinity to 2**n_steps - 1; or the bin of
        each category.
    starts : ndarray of shape (n_features,), int64
    n_steps : ndarray of shape (n_features,), int64
        Of the search among the edges; -1 for a categorical column.
    """

    values: Floats
    starts: Integers
    n_steps: Integers


def _tables(bins: Bins) -> _Tables:
    values: list[Floats] = []
    n_steps = []
    for edges, category_bins in zip(bins.edges, bins.category_bins, strict=True):
        if category_bins is None:
            n_steps.append(len(edges).bit_length())
            values.append(np.full((1 << n_steps[-1]) - 1, np.inf))
            values[-1][: len(edges)] = edges
        else:
            n_steps.append(-1)
            values.append(category_bins.astype(np.float64))
    starts = np.cumsum([0, *map(len, values)])[:-1]
    return _Tables(np.concatenate(values), starts, np.array(n_steps))


_READ_ONLY_MATRIX = numba.types.Array(numba.float64, 2, "A", readonly=True)


@kernel(
    numba.void(numba.float64[::1], numba.float64[::1], numba.int64, numba.int64, numba.int64[::1]),
    inner=True,
)
def find_bins(values, table, n_steps, missing, found):  # type: ignore[no-untyped-def]
    """Write the bin of each value of a column."""
    for i in range(len(found)):
        found[i] = 0
    for s in range(n_steps - 1, -1, -1):  # a binary search of all side by side
        half = 1 << s
        for i in range(len(values)):
            found[i] += half if table[found[i] + half - 1] < values[i] else 0
    for i in range(len(values)):
        if np.isnan(values[i]):
            found[i] = missing
        elif n_steps < 0:
            found[i] = np.int64(table[np.int64(values[i])])


_ENCODE = (
    _READ_ONLY_MATRIX,
    numba.uint32[::1],
    numba.float64[::1],
    numba.int64[::1],
    numba.int64[::1],
    numba.int64[::1],
)


@kernel(
    numba.void(numba.int64[::1], numba.int64, *_ENCODE, numba.uint8[:, ::1]),
    numba.void(numba.int64[::1], numba.int64, *_ENCODE, numba.uint16[:, ::1]),
)
def _encode(queue, n_runs, X, rows, tables, starts, n_steps, n_codes, codes):  # type: ignore[no-untyped-def]
    """Code runs of rows, as they come from the queue."""
    n_features = X.shape[1]
    values = np.empty(ROWS_AT_ONCE)
    found = np.empty(ROWS_AT_ONCE, dtype=np.int64)
    run = take(queue)
    while run < n_runs:
        end = min((run + 1) * RUN_ROWS, len(rows))
        for low in range(run * RUN_ROWS, end, ROWS_AT_ONCE):
            n = min(ROWS_AT_ONCE, end - low)
            for j in range(n_features):
                for i in range(n):
                    values[i] = X[rows[low + i], j]
                block, column = j // COLUMNS, j % COLUMNS
                find_bins(
                    values[:n], tables[starts[j] :], n_steps[j], n_codes[block] - 1, found[:n]
                )
                for i in range(n):
                    codes[block, (low + i) * COLUMNS + column] = found[i]
        run = take(queue)
