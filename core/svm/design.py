"""From columns to coordinates of w, without a second copy of the table.

A column of numbers is one coordinate, (x - mean) / deviation, 0 where x is missing, and where any was missing at fit
one more, 1 where x is missing. A column of categories is one coordinate per category, 1 where the row has it, and one
for the missing where there were any. None of it is ever laid out: scores and sums of rows are taken from the raw
table, the scaling folded into the coefficients.

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
from .sparse_kernels import (
    add_sparse_moments,
    add_sparse_scores,
    stored,
    sum_sparse_rows,
    survey_sparse,
)

Ints = npt.NDArray[np.int64]

# A column that varies by less than this is as good as constant: its coefficient could be infinite.
LEAST_DEVIATION = 1e-200

# Rows that are copied at a time where they do not lie row by row.
BLOCK = 4096

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

    @abstractmethod
    def scores(self, w: Floats) -> Floats:
        """Score every row by the coefficients of its coordinates."""

    @abstractmethod
    def total(self, share: Floats) -> Floats:
        """Sum the coordinates of all rows, each times its share; rows of share 0 are not read."""


class TableRows(Rows):
    """Rows whose coordinates are the columns'."""

    coordinates: Coordinates


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
        known = c.center, reach(worths), worths.slope, worths.missing, c.first, worths.table
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


class SparseRows(TableRows):
    """Rows of a CSR matrix of numbers."""

    def __init__(self, X: Any, coordinates: Coordinates) -> None:
        self.coordinates, self.size = coordinates, coordinates.size
        self.n_rows = X.shape[0]
        self._stored = stored(X)

    def scores(self, w: Floats) -> Floats:
        """Score every row."""
        worths = self.coordinates.unfold(w)
        moved = self.coordinates.center * worths.slope
        scores = np.full(self.n_rows, -moved.sum())
        # a missing value stands at the center
        absent = worths.missing + moved
        add_sparse_scores(*self._stored, worths.slope, absent, scores)
        np.nan_to_num(scores, copy=False, nan=0.0, posinf=GREATEST_SCORE, neginf=-GREATEST_SCORE)
        return scores

    def total(self, share: Floats) -> Floats:
        """Sum the coordinates of the rows, each times its share."""
        c = self.coordinates
        sums, absent = np.zeros(len(c.unit)), np.zeros(len(c.unit))
        sum_sparse_rows(*self._stored, share, c.unit, sums, absent)
        sums -= c.center * c.unit * (share.sum() - absent)
        return c.fold(sums, absent, np.empty(0))


def split_scores(X: Floats, coordinates: Coordinates, worths: Worths) -> Floats:
    """Give what each value of some rows adds to its row's score, in an array of X's shape."""
    most = reach(worths)
    parts = np.clip(X - coordinates.center, -most, most) * worths.slope
    for j in np.flatnonzero(coordinates.first >= 0):
        known = np.nan_to_num(X[:, j], nan=0.0).astype(np.int64)
        parts[:, j] = worths.table[coordinates.first[j] + known]
    return np.where(np.isnan(X), worths.missing, parts)


def reach(worths: Worths) -> Floats:
    """How far from the center a number still counts, so that no score is infinite."""
    most = np.maximum(abs(worths.slope) * len(worths.slope), 1e-18)
    return np.minimum(GREATEST_SCORE / most, FARTHEST)


def lay_out(X: Any, weight: Floats, n_categories: Ints, *, standardize: bool) -> TableRows:
    """Learn the coordinates of a table's columns.

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

    Notes
    -----
    Mean and deviation are those of the values that are there, weighted. Three passes over X; beside it, memory for
    a few vectors of length n.
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
    return place(X, coordinates)


def place(X: Any, coordinates: Coordinates) -> TableRows:
    """Give the rows of a table as points with coordinates that are known."""
    return SparseRows(X, coordinates) if sparse.issparse(X) else DenseRows(X, coordinates)


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
        survey_sparse(*stored(X), weight, *sums)
        return
    for block, rows in in_blocks(X):
        survey(block, weight[rows], *sums)


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
            add_sparse_moments(*stored(X), weight, center, scale, sums, order)
        else:
            for block, rows in in_blocks(X):
                add_moments(block, weight[rows], center, scale, sums, order)
        return np.asarray(sums / there)

    share = np.clip(sum_up(start, 1), 0.0, 1.0)
    center = np.minimum(start + half * share + half * share, np.where(empty, 0.0, high))
    deviation = half * (2.0 * np.sqrt(np.minimum(sum_up(center, 2), 0.25)))
    return center, deviation
