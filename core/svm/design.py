"""From columns to coordinates of w.

A column of numbers is one coordinate, (x - mean) / deviation, 0 where x is missing, and where any was missing at fit
one more, 1 where x is missing. A column of categories is one coordinate per category, 1 where the row has it, and one
for the missing where there were any. Of a table of numbers none of it is laid out: scores and sums of rows are taken
from the raw table, the scaling folded into the coefficients. Words, and numbers that are mostly 0, are stored as a
sparse matrix for a fit, which passes over its rows hundreds of times.

This is the one place that knows what a row's coordinates are; a feature map (`maps`) is another pair of classes like
these.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from core.errors import ArtifactError
from core.ranker import Floats

from .kernels import FARTHEST, add_moments, score_rows, sum_rows, survey

Ints = npt.NDArray[np.int64]

# A column that varies by less than this is as good as constant: its coefficient could be infinite.
LEAST_DEVIATION = 1e-200

# Rows that are copied at a time where they do not lie row by row.
BLOCK = 4096

# Rows from which products of coordinates are estimated.
SAMPLED = 20_000

# The variance of scores is estimated from so many rows for each coordinate, and from these at least and at most; where
# that would be more numbers, from fewer. Products are those of the coordinates of greatest variance.
ROWS_PER_COORDINATE, FEWEST_ROWS, MOST_ROWS, MOST_NUMBERS = 10, 500, 5000, 2**22

# Rows, and their weight, up to which all are read: their order is of no effect then, beyond that within the tolerance.
READ_WHOLE = 1200
SPREAD_BLOCK = 512

# Of all rows, fewer than one in so many are taken out before they are summed.
FEW = 5

# Of all values, so many that are stored make a matrix to be multiplied as a dense one.
DENSE = 0.2

# No coordinate that is stored goes further than this.
GREATEST_COORDINATE = 1e100

# No score goes further than this, so that none is infinite.
GREATEST_SCORE = 1e290


class Worths(NamedTuple):
    """What the values of a row add to its score.

    Attributes
    ----------
    slope : ndarray of shape (p,), float64
        Of the number x, slope · (x - center); 0 for a column of categories.
    missing : ndarray of shape (p,), float64
        Of a missing value.
    table : ndarray of shape (n_categories,), float64
        Of each category, one column after the other.
    """

    slope: Floats
    missing: Floats
    table: Floats


@dataclass(frozen=True, eq=False)
class Coordinates:
    """What the columns of a table are as coordinates of w; learnt at fit.

    Attributes
    ----------
    center, unit : ndarray of shape (p,), float64
        The number x is the coordinate (x - center) · unit; unit is 0 where the column is constant or of categories.
    has_missing : ndarray of shape (p,), bool
        Which columns have a coordinate for the missing.
    n_categories : ndarray of shape (p,), int64
        0 for a column of numbers.
    """

    center: Floats
    unit: Floats
    has_missing: npt.NDArray[np.bool_]
    n_categories: Ints

    @cached_property
    def first(self) -> Ints:
        """Where a column's categories begin among all, -1 for a column of numbers."""
        ends = np.cumsum(self.n_categories)
        return np.where(self.n_categories > 0, ends - self.n_categories, -1)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.unit) + int(self.has_missing.sum()) + int(self.n_categories.sum())

    def unfold(self, w: Floats) -> Worths:
        """Turn coefficients of coordinates into what values are worth."""
        p = len(self.unit)
        n_missing = int(self.has_missing.sum())
        missing = np.zeros(p)
        missing[self.has_missing] = w[p : p + n_missing]
        return Worths(w[:p] * self.unit, missing, w[p + n_missing :].copy())

    def by_column(self, parts: Floats) -> Floats:
        """Sum up coordinates by the column they come from."""
        p = len(self.unit)
        n_missing = int(self.has_missing.sum())
        sums = parts[:p].copy()
        sums[self.has_missing] += parts[p : p + n_missing]
        owner = np.repeat(np.arange(p), self.n_categories)
        return np.asarray(sums + np.bincount(owner, parts[p + n_missing :], p))

    def fold(self, sums: Floats, absent: Floats, table: Floats) -> Floats:
        """Put together the sum of rows, coordinate by coordinate."""
        return np.concatenate([sums, absent[self.has_missing], table])


class Rows(ABC):
    """A table, and its rows as points with coordinates.

    Attributes
    ----------
    size : int
        Number of coordinates.
    n_rows : int
    """

    size: int
    n_rows: int

    @property
    def width(self) -> int:
        """Most coordinates of a row that are not 0."""
        return self.size

    @abstractmethod
    def scores(self, w: Floats) -> Floats:
        """Score every row by the coefficients of its coordinates."""

    @abstractmethod
    def total(self, share: Floats) -> Floats:
        """Sum the coordinates of all rows, each times its share; rows of share 0 are not read."""

    @abstractmethod
    def take(self, rows: Ints) -> "StoredRows":
        """Take some rows, and store them."""


class TableRows(Rows):
    """Rows whose coordinates are the columns'."""

    coordinates: Coordinates

    @property
    def width(self) -> int:
        """A column of numbers, or of words, is one at most."""
        return len(self.coordinates.unit)

    @abstractmethod
    def squares(self, share: Floats) -> Floats:
        """Sum the squares of the coordinates of the rows, each times its share; about, where that takes a pass less."""


class DenseRows(TableRows):
    """Rows of an array; one that does not lie row by row in memory is read in small copies of some rows at a time."""

    def __init__(self, X: Floats, coordinates: Coordinates) -> None:
        self.coordinates, self.size = coordinates, coordinates.size
        self.n_rows = len(X)
        self._X = X

    def scores(self, w: Floats) -> Floats:
        """Score every row."""
        c = self.coordinates
        worths = c.unfold(w)
        known = (
            c.center,
            reach(worths, c.n_categories),
            worths.slope,
            worths.missing,
            c.first,
            worths.table,
        )
        scores = np.empty(len(self._X))
        for block, rows in in_blocks(self._X):
            score_rows(block, *known, scores[rows])
        return scores

    def total(self, share: Floats) -> Floats:
        """Sum the coordinates of the rows, each times its share."""
        c = self.coordinates
        sums, absent = np.zeros(len(c.unit)), np.zeros(len(c.unit))
        table = np.zeros(int(c.n_categories.sum()))
        known = c.center, c.unit, c.first, sums, absent, table
        if self._X.flags.c_contiguous:
            sum_rows(self._X, share, *known)
        else:
            taken = np.flatnonzero(share)
            for start in range(0, len(taken), BLOCK):
                rows = taken[start : start + BLOCK]
                sum_rows(np.ascontiguousarray(self._X[rows]), share[rows], *known)
        return c.fold(sums, absent, table)

    def take(self, rows: Ints) -> "StoredRows":
        """Take some rows, and store them."""
        none = np.zeros(len(self.coordinates.unit), np.bool_)
        return store_table(self._X[rows], self.coordinates, none)

    def squares(self, share: Floats) -> Floats:
        """Sum the squares of the coordinates of every so many-th row, as many times as there are rows for each."""
        step = sampling_step(self.n_rows)
        return step * self.take(np.arange(0, self.n_rows, step)).squares(share[::step])


class StoredRows(TableRows):
    """Rows whose coordinates are stored, but for those that are 0: a CSR matrix, less a shift of each column.

    A word is one number of its row, so a pass over a table of words costs as many steps as it has columns. A column
    of numbers that are mostly 0 is stored as it is, and its center taken off the sums: so its zeros cost nothing.

    Parameters
    ----------
    points : scipy.sparse CSR of shape (n, size), float64
    shift : ndarray of shape (p,), float64
        Taken from the first p coordinates of every row.
    coordinates : Coordinates
    """

    def __init__(self, points: Any, shift: Floats, coordinates: Coordinates) -> None:
        self.coordinates, self.size = coordinates, coordinates.size
        self.n_rows = points.shape[0]
        self.points, self._shift = points, shift

    def scores(self, w: Floats) -> Floats:
        """Score every row."""
        scores = self.points @ w
        scores -= (self._shift * w[: len(self._shift)]).sum()
        np.nan_to_num(scores, copy=False, nan=0.0, posinf=GREATEST_SCORE, neginf=-GREATEST_SCORE)
        return np.asarray(scores)

    def total(self, share: Floats) -> Floats:
        """Sum the coordinates of the rows, each times its share."""
        if np.count_nonzero(share) < self.n_rows // FEW:
            taken = np.flatnonzero(share)
            sums = self.points[taken].T @ share[taken]
        else:
            sums = self.points.T @ share
        sums[: len(self._shift)] -= self._shift * share.sum()
        return np.asarray(sums)

    def squares(self, share: Floats) -> Floats:
        """Sum the squares of the coordinates of the rows, each times its share."""
        points, p = self.points, len(self._shift)
        squared = sparse.csr_array((points.data**2, points.indices, points.indptr), points.shape)
        sums = squared.T @ share
        if self._shift.any():
            plain = (points.T @ share)[:p]
            sums[:p] += self._shift * (self._shift * share.sum() - 2.0 * plain)
        return np.asarray(np.maximum(sums, 0.0))

    def take(self, rows: Ints) -> "StoredRows":
        """Take some rows."""
        return StoredRows(self.points[rows], self._shift, self.coordinates)

    def products(self, columns: Ints, share: Floats) -> Floats:
        """Sum over rows, each times its share, the products of some coordinates, and of 1, which is put last.

        Returns
        -------
        ndarray of shape (k + 1, k + 1), float64
        """
        some = self.points if len(columns) == self.size else self.points[:, columns]
        some = sparse.hstack([some, np.ones((self.n_rows, 1))], format="csr")
        if some.nnz > DENSE * self.n_rows * some.shape[1]:
            full = some.toarray()
            found = (full.T * share) @ full
        else:
            found = (some.T @ (sparse.diags_array(share) @ some)).toarray()
        of_numbers = columns < len(self._shift)
        shift = np.zeros(len(columns))
        shift[of_numbers] = self._shift[columns[of_numbers]]
        found[:-1] -= np.outer(shift, found[-1])
        found[:, :-1] -= np.outer(found[:, -1], shift)
        return np.asarray(found)


class Spread(NamedTuple):
    """Axes along which scores vary independently, as far as some rows tell.

    Attributes
    ----------
    block : ndarray of shape (k,), int64
        The coordinates of greatest variance, rising; the others are axes themselves.
    axes : ndarray of shape (k, k), float64
        A column for each axis of the block; orthogonal.
    variance : ndarray of shape (size,), float64
        Along each axis.
    """

    block: Ints
    axes: Floats
    variance: Floats

    def rotated(self, w: Floats) -> Floats:
        """Write vectors of coordinates, which are the last dimension, along the axes."""
        turned = w.copy()
        turned[..., self.block] = w[..., self.block] @ self.axes
        return turned

    def rotated_back(self, turned: Floats) -> Floats:
        """Write a vector along the axes in coordinates."""
        w = turned.copy()
        w[self.block] = self.axes @ turned[self.block]
        return w


def find_spread(rows: Rows, positive: Floats, negative: Floats) -> Spread | None:
    """Find the axes of the covariance of differences between a positive and a negative: the sum of both classes'.

    Parameters
    ----------
    rows : Rows
    positive, negative : ndarray of shape (n_rows,), float64
        The rows' weights in each class, 0 for those of the other.

    Returns
    -------
    Spread or None
        None where the covariance is beyond floating point.
    """
    asked = min(ROWS_PER_COORDINATE * rows.size, MOST_ROWS, MOST_NUMBERS // max(rows.width, 1))
    most = max(asked, FEWEST_ROWS) // 2  # of each class
    share = positive + negative
    if np.count_nonzero(share) <= READ_WHOLE and share.sum() <= READ_WHOLE:
        most = READ_WHOLE
    drawn = [draw_by_mass(weight, most) for weight in (positive, negative)]
    taken = np.unique(np.concatenate([rows_of_class for rows_of_class, _ in drawn]))
    sample = rows.take(taken)
    both, means = np.zeros(sample.n_rows), []
    for rows_of_class, times in drawn:
        share = np.zeros(sample.n_rows)
        share[np.searchsorted(taken, rows_of_class)] = times / times.sum()
        both += share
        means.append(sample.total(share))
    with np.errstate(all="ignore"):
        variance = np.maximum(sample.squares(both) - sum(mean**2 for mean in means), 0.0)
        block = np.sort(np.argsort(-variance, kind="stable")[:SPREAD_BLOCK])
        covariance = sample.products(block, both)[:-1, :-1]
        covariance -= sum(np.outer(mean[block], mean[block]) for mean in means)
    if not (np.isfinite(covariance).all() and np.isfinite(variance).all()):
        return None
    along, axes = np.linalg.eigh(covariance)
    variance[block] = np.maximum(along, 0.0)
    return Spread(block, axes, variance)


def draw_by_mass(weight: Floats, most: int) -> tuple[Ints, Floats]:
    """Take rows at even distances of weight, so that a row of weight k is k rows; all, where they are few.

    Returns
    -------
    ndarray of int64, ndarray of float64
        Which rows, rising, and how many times each counts.
    """
    mass = np.cumsum(weight)
    if np.count_nonzero(weight) <= most and mass[-1] <= most:
        taken = np.flatnonzero(weight)
        return taken, weight[taken]
    places = (np.arange(most) + 0.5) * (mass[-1] / most)
    found = np.minimum(np.searchsorted(mass, places, side="right"), len(weight) - 1)
    taken, times = np.unique(found, return_counts=True)
    return taken, times.astype(np.float64)


def store_table(X: Floats, coordinates: Coordinates, plain: npt.NDArray[np.bool_]) -> StoredRows:
    """Store the coordinates of an array's rows.

    Parameters
    ----------
    X : ndarray of shape (n, p), float64
    coordinates : Coordinates
    plain : ndarray of shape (p,), bool
        The columns of numbers to store as they are, less their center afterwards; none has a missing value.

    Notes
    -----
    O(n p); 12 bytes for each value that is stored.
    """
    c, (n, p) = coordinates, X.shape
    words = c.first >= 0
    missing = p + np.cumsum(c.has_missing) - 1
    base = np.where(words, p + int(c.has_missing.sum()) + c.first, np.arange(p))
    origin = np.where(plain, 0.0, c.center)
    index, value = np.empty((n, p), np.int32), np.empty((n, p))
    for start in range(0, n, BLOCK):
        block = X[start : start + BLOCK]
        gone = np.isnan(block)
        x = np.where(gone, 0.0, block)
        place_of = base + np.where(words, x, 0.0).astype(np.int64)
        index[start : start + BLOCK] = np.where(gone, np.maximum(missing, 0), place_of)
        number = np.clip(x - origin, -FARTHEST, FARTHEST) * c.unit
        value[start : start + BLOCK] = np.where(gone, c.has_missing, np.where(words, 1.0, number))
    starts = np.arange(0, n * p + 1, p)
    points = sparse.csr_array((value.ravel(), index.ravel(), starts), (n, c.size))
    points.eliminate_zeros()
    return StoredRows(points, np.where(plain, c.center * c.unit, 0.0), c)


def store_plain(points: Any) -> StoredRows:
    """Take the rows of a CSR matrix as points."""
    n_columns = points.shape[1]
    zeros, none = np.zeros(n_columns), np.zeros(n_columns, np.int64)
    return StoredRows(points, zeros, Coordinates(zeros, np.ones(n_columns), none > 0, none))


def store_sparse(X: Any, coordinates: Coordinates) -> StoredRows:
    """Store the coordinates of the rows of a CSR matrix of numbers: what is not stored there is not stored here."""
    c, (n, p) = coordinates, X.shape
    unit, shift = c.unit, c.center * c.unit
    gone = np.isnan(X.data)
    value = np.where(gone, shift[X.indices], X.data * unit[X.indices])  # the missing at the center
    points = sparse.csr_array((value, X.indices, X.indptr), (n, c.size))
    gone &= c.has_missing[X.indices]
    if gone.any():
        missing = (p + np.cumsum(c.has_missing) - 1)[X.indices[gone]]
        row = np.repeat(np.arange(n), np.diff(X.indptr))[gone]
        points = points + sparse.csr_array((np.ones(len(row)), (row, missing)), points.shape)
    return StoredRows(points, shift, c)


def sampling_step(n_rows: int) -> int:
    """Of so many rows, every how many-th is enough to estimate products of coordinates from."""
    return max(1, n_rows // SAMPLED)


def split_scores(X: Floats, coordinates: Coordinates, worths: Worths) -> Floats:
    """Give what each value of some rows adds to its row's score, in an array of X's shape."""
    most = reach(worths, coordinates.n_categories)
    parts = np.clip(X - coordinates.center, -most, most) * worths.slope
    known = ~np.isnan(X)
    for j in np.flatnonzero(coordinates.first >= 0):
        x = X[:, j]
        known[:, j] = (x >= 0.0) & (x < most[j])
        category = np.where(known[:, j], x, 0.0).astype(np.int64)
        parts[:, j] = worths.table[coordinates.first[j] + category]
    return np.where(known, parts, worths.missing)


def reach(worths: Worths, n_categories: Ints) -> Floats:
    """How far from the center a number still counts, so that no score is infinite; how many categories there are."""
    most = np.maximum(abs(worths.slope) * len(worths.slope), 1e-18)
    far = np.minimum(GREATEST_SCORE / most, FARTHEST)
    return np.where(n_categories > 0, n_categories, far)


def lay_out(X: Any, weight: Floats, n_categories: Ints, *, standardize: bool) -> TableRows:
    """Learn the coordinates of a table's columns, and give its rows as points to be passed over many times.

    Parameters
    ----------
    X : ndarray or scipy.sparse CSR of shape (n, p), float64
        NaN is missing; a category is its position 0, 1, ...
    weight : ndarray of shape (n,), float64
        Above 0.
    n_categories : ndarray of shape (p,), int64
        0 for a column of numbers.
    standardize : bool
        Whether to divide numbers by their deviation.

    Returns
    -------
    TableRows
        Stored where a column is of words or at least half of all numbers are 0; else the table itself is read.
    """
    coordinates, span = _learn(X, weight, n_categories, standardize=standardize)
    if sparse.issparse(X):
        return store_sparse(X, coordinates)
    n_zeros = sum(np.count_nonzero(block == 0.0, axis=0) for block, _ in in_blocks(X))
    plain = (2 * n_zeros > len(X)) & (n_categories == 0) & ~coordinates.has_missing
    is_thin = n_categories.any() or 2 * n_zeros[plain].sum() > X.size
    # squares and sums of products must stay finite
    if is_thin and (span <= GREATEST_COORDINATE).all():
        return store_table(X, coordinates, plain)
    return DenseRows(X, coordinates)


def learn_coordinates(
    X: Any, weight: Floats, n_categories: Ints, *, standardize: bool
) -> Coordinates:
    """Learn what `lay_out` does, without the rows."""
    return _learn(X, weight, n_categories, standardize=standardize)[0]


def _learn(
    X: Any, weight: Floats, n_categories: Ints, *, standardize: bool
) -> tuple[Coordinates, Floats]:
    """Give the coordinates, and how far from 0 each number's may be.

    Mean and deviation are those of the values that are there, weighted. Three passes over X.
    """
    p = X.shape[1]
    mass, absent = np.zeros(p), np.zeros(p)
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    _survey(X, weight, mass, absent, low, high)
    unstored = np.zeros(p)
    if sparse.issparse(X):
        unstored = np.maximum(float(weight.sum()) - mass - absent, 0.0)
        unstored[unstored < 1e-9 * mass] = 0.0  # all are stored, but for rounding
        low[unstored > 0] = np.minimum(low, 0.0)[unstored > 0]
        high[unstored > 0] = np.maximum(high, 0.0)[unstored > 0]
    center, deviation = _moments(X, weight, mass, unstored, low, high)
    numeric = n_categories == 0
    kept = numeric & (low < high) & (deviation > LEAST_DEVIATION)
    unit = np.zeros(p)
    unit[kept] = 1.0 / deviation[kept] if standardize else 1.0
    coordinates = Coordinates(np.where(numeric, center, 0.0), unit, absent > 0, n_categories)
    span = np.zeros(p)
    span[kept] = np.maximum(abs(low[kept]), abs(high[kept])) * unit[kept]
    return coordinates, span


def place(X: Any, coordinates: Coordinates) -> TableRows:
    """Give the rows of a table as points with coordinates that are known, to be passed over once."""
    return store_sparse(X, coordinates) if sparse.issparse(X) else DenseRows(X, coordinates)


def check_coordinates(arrays: Mapping[str, npt.NDArray[Any]], n_categories: Ints) -> None:
    """Refuse a center and a unit that no fit can leave with ArtifactError."""
    for name, most in {"center": 1.7e308, "unit": 1e200}.items():
        if not (abs(arrays[name]) <= most).all():
            raise ArtifactError(f"{name} must be finite, at most {most:g} in size")
    if (arrays["unit"] < 0).any():
        raise ArtifactError("unit must not be negative")
    categorical = n_categories > 0
    if arrays["unit"][categorical].any() or arrays["center"][categorical].any():
        raise ArtifactError("unit and center must be 0 where a feature is categorical")


def in_blocks(X: Floats) -> Iterator[tuple[Floats, slice]]:
    """Give the rows of an array, C-contiguous: as they lie, or else in copies of `BLOCK` rows."""
    if X.flags.c_contiguous:
        yield X, slice(0, len(X))
        return
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        yield np.ascontiguousarray(X[rows]), rows


def _survey(X: Any, weight: Floats, *sums: Floats) -> None:
    if sparse.issparse(X):
        _survey_sparse(X, weight, *sums)
        return
    for block, rows in in_blocks(X):
        survey(block, weight[rows], *sums)


def _survey_sparse(
    X: Any, weight: Floats, mass: Floats, absent: Floats, low: Floats, high: Floats
) -> None:
    """Do over the stored values what `kernels.survey` does over all."""
    of_value = np.repeat(weight, np.diff(X.indptr))
    known = ~np.isnan(X.data)
    columns, numbers = X.indices[known], X.data[known]
    mass += np.bincount(columns, of_value[known], len(mass))
    absent += np.bincount(X.indices[~known], of_value[~known], len(mass))
    np.minimum.at(low, columns, numbers)
    np.maximum.at(high, columns, numbers)


def _moments(
    X: Any, weight: Floats, mass: Floats, unstored: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Give each column's mean and deviation.

    Numbers are measured from the least one, then from the mean, in units of the column's range: no sum overflows,
    whatever the scale.
    """
    there = np.maximum(mass + unstored, np.finfo(np.float64).tiny)
    empty = low > high  # no number at all
    start = np.where(empty, 0.0, low)
    half = np.where(empty | (low == high), 1.0, 0.5 * high - 0.5 * low)
    half = np.maximum(half, np.finfo(np.float64).tiny)

    def sum_up(center: Floats, order: int) -> Floats:
        scale = 1.0 / half
        sums = unstored * (-0.5 * center * scale) ** order
        if sparse.issparse(X):
            measure = (0.5 * X.data - 0.5 * center[X.indices]) * scale[X.indices]
            share = np.repeat(weight, np.diff(X.indptr)) * measure**order
            sums += np.bincount(X.indices, np.nan_to_num(share, nan=0.0), len(sums))
        else:
            for block, rows in in_blocks(X):
                add_moments(block, weight[rows], center, scale, sums, order)
        return np.asarray(sums / there)

    share = np.clip(sum_up(start, 1), 0.0, 1.0)
    center = np.minimum(start + half * share + half * share, np.where(empty, 0.0, high))
    deviation = half * (2.0 * np.sqrt(np.minimum(sum_up(center, 2), 0.25)))
    return center, deviation
