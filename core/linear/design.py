"""From columns to a design matrix: what the coordinates of a row are, learnt once and used by every linear machine.

A column of numbers is one coordinate, (x - mean) / deviation, 0 where x is missing, and where any was missing at fit
one more, 1 where x is missing. A column of categories is one coordinate per category, 1 where the row has it, and one
for the missing where there were any. Of a table of numbers none of it is laid out: scores and sums of rows are taken
from the raw table, the scaling folded into the coefficients. Words, and numbers that are mostly 0, are stored as a
sparse matrix. Which of two loops a compiled function takes for a row follows from the row alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le
from scipy import sparse

from core.base import state
from core.base.ranker import Floats
from core.base.state import Array, State
from core.base.table import Categories
from core.errors import ArtifactError
from core.kernels import kernel
from core.metrics import partial_auc

Ints = state.Integers

# A column that varies by less than this is as good as constant: its coefficient could be infinite.
MIN_DEVIATION = 1e-200

BLOCK = 4096  # rows that are copied at a time where they do not lie row by row
SAMPLED = 20_000  # rows from which products of coordinates are estimated

# Of all rows, fewer than one in so many are taken out before they are summed; of all values, so many that are stored
# make a matrix to be multiplied as a dense one.
FEW, DENSE = 5, 0.2

# No coordinate that is stored, and no score, goes further, so that none is infinite.
GREATEST_COORDINATE, GREATEST_SCORE = 1e100, 1e290

# The least that `standardise` divides by, as half of less would be rounded; deviations at which it cuts off.
MIN_SCALE = float(np.finfo(np.float64).tiny)
FARTHEST_DEVIATION = 1e9

# Sums and products of numbers up to here, standardised, stay finite; beyond, differences are cut off at FARTHEST.
SANE, FARTHEST = 1e300, 1e308

_OUT = numba.float64[::1]
# what a caller gives may be read-only
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_ROWS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)


class Coefficients(NamedTuple):
    """What the values of a row add to its score, all float64.

    `slope` (p,): the number x adds slope · (x - center), 0 for a column of categories. `missing` (p,): a missing value.
    `table` (n_categories,): each category, one column after the other.
    """

    slope: Floats
    missing: Floats
    table: Floats


class Columns(NamedTuple):
    """What a description calls columns and their values; the categories of a column of numbers are None."""

    names: tuple[str, ...]
    categories: Categories

    def value(self, j: int, x: float) -> float | str | None:
        """Return a value as it was in the table; None where it is missing."""
        if np.isnan(x):
            return None
        own = self.categories[j]
        return x if own is None else own[int(x)]


class FeatureMap(State, ABC):
    """Turns rows into the coordinates of w, of single columns or of the row as a whole; learnt at fit."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of coordinates."""

    @abstractmethod
    def transform(self, X: Any) -> "Rows":
        """Return rows as points with coordinates, to be passed over once.

        X is an ndarray or a scipy.sparse CSR matrix of shape (n, p), float64; NaN is missing, a category its position.
        """

    @abstractmethod
    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """Count what the coordinates add to a score, and list the weightiest; `means` are those of `sums`."""

    def describe(self) -> dict[str, Any]:
        """Say what the map is, ready for JSON."""
        return {}

    def sums(self, parts: Floats) -> Floats:
        """Sum up what coordinates add: by the column that they come from, or all where they are of whole rows."""
        return np.asarray(parts.sum(keepdims=True))

    def split(self, X: Floats, w: Floats) -> Floats | None:
        """Return what each column adds to each row's score, an array of X's shape; None where rows are taken whole."""
        return None


@dataclass(frozen=True, eq=False)
class Coordinates(FeatureMap):
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

    n_categories: Ints
    center: Annotated[Floats, Array("n_features"), Ge(-1.7e308), Le(1.7e308)]
    unit: Annotated[Floats, Array("n_features"), Ge(0.0), Le(1e200)]
    has_missing: Annotated[state.Booleans, Array("n_features")]

    def check(self) -> None:
        """Refuse numbers where a feature is categorical."""
        categorical = self.n_categories > 0
        if self.unit[categorical].any() or self.center[categorical].any():
            raise ArtifactError("unit and center must be 0 where a feature is categorical")

    @cached_property
    def first(self) -> Ints:
        """Where a column's categories begin among all, -1 for a column of numbers."""
        ends = np.cumsum(self.n_categories)
        return np.where(self.n_categories > 0, ends - self.n_categories, -1)

    @cached_property
    def missing_places(self) -> Ints:
        """The coordinate of each column's missing values, -1 where it has none."""
        return np.where(self.has_missing, len(self.unit) + np.cumsum(self.has_missing) - 1, -1)

    @cached_property
    def category_places(self) -> Ints:
        """The coordinate of each column's first category, -1 for a column of numbers."""
        start = len(self.unit) + int(self.has_missing.sum())
        return np.where(self.first >= 0, start + self.first, -1)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.unit) + int(self.has_missing.sum()) + int(self.n_categories.sum())

    def unfold(self, w: Floats) -> Coefficients:
        """Turn coefficients of coordinates into what values add to a score."""
        p = len(self.unit)
        n_missing = int(self.has_missing.sum())
        missing = np.zeros(p)
        missing[self.has_missing] = w[p : p + n_missing]
        return Coefficients(w[:p] * self.unit, missing, w[p + n_missing :].copy())

    def transform(self, X: Any) -> "TableRows":
        """Return the rows of a table as points; see `FeatureMap.transform`."""
        return store_sparse(X, self) if sparse.issparse(X) else DenseRows(X, self)

    def sums(self, parts: Floats) -> Floats:
        """Sum up coordinates by the column they come from."""
        p = len(self.unit)
        n_missing = int(self.has_missing.sum())
        sums = parts[:p].copy()
        sums[self.has_missing] += parts[p : p + n_missing]
        owner = np.repeat(np.arange(p), self.n_categories)
        return np.asarray(sums + np.bincount(owner, parts[p + n_missing :], p))

    def split(self, X: Floats, w: Floats) -> Floats:
        """Return what each value of some rows adds to its row's score; see `FeatureMap.split`."""
        effects = self.unfold(w)
        most = reach(effects, self.n_categories)
        parts = np.clip(X - self.center, -most, most) * effects.slope
        known = ~np.isnan(X)
        for j in np.flatnonzero(self.first >= 0):
            x = X[:, j]
            known[:, j] = (x >= 0.0) & (x < most[j])
            category = np.where(known[:, j], x, 0.0).astype(np.int64)
            parts[:, j] = effects.table[self.first[j] + category]
        return np.where(known, parts, effects.missing)

    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """List what is added: per unit of a feature, and `standardized`: per standard deviation, or for being there."""
        terms: list[dict[str, Any]] = []
        slope, missing, table = self.unfold(w)
        for j, (feature, names) in enumerate(zip(*columns, strict=True)):
            if names is None and w[j] != 0.0:
                term = {"feature": feature, "weight": float(slope[j])}
                terms.append({**term, "standardized": float(w[j])})
            values: list[tuple[str | None, Any]] = [
                (name, table[self.first[j] + k]) for k, name in enumerate(names or ())
            ]
            if self.has_missing[j]:
                values.append((None, missing[j]))
            for value, effect in values:
                weight = float(effect)
                term = {"feature": feature, "is": value, "weight": weight}
                terms.append({**term, "standardized": weight})
        terms.sort(key=lambda term: -abs(term["standardized"]))
        return len(terms), terms[:limit]


class Rows(ABC):
    """A table, and its rows as points with `size` coordinates."""

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
    def weighted_sum(self, share: Floats) -> Floats:
        """Sum the coordinates of all rows, each times its share; rows of share 0 are not read."""

    @abstractmethod
    def take(self, rows: Ints) -> "StoredRows":
        """Take some rows, and store them."""

    def finish(self, w: Floats, mean: Floats) -> Floats:
        """Return the coefficients of the map's own coordinates from those of these; `mean` is of the training rows."""
        return w


class TableRows(Rows):
    """Rows whose coordinates are the columns'."""

    coordinates: Coordinates

    @property
    def width(self) -> int:
        """A column of numbers, or of words, is one at most."""
        return len(self.coordinates.unit)

    @property
    def sampling_step(self) -> int:
        """Every how many-th row is enough to estimate second moments from."""
        return max(1, self.n_rows // SAMPLED)

    @cached_property
    def sampled(self) -> "StoredRows":
        """Every `sampling_step`-th row."""
        if self.sampling_step == 1 and isinstance(self, StoredRows):
            return self
        return self.take(np.arange(0, self.n_rows, self.sampling_step))

    def squares(self, share: Floats) -> Floats:
        """Estimate the sum of the squares of the coordinates of the rows, each times its share."""
        step = self.sampling_step
        return step * self.sampled.squares(share[::step])


class DenseRows(TableRows):
    """Rows of an array; one that does not lie row by row in memory is read in small copies of some rows at a time."""

    def __init__(self, X: Floats, coordinates: Coordinates) -> None:
        self.coordinates, self.size = coordinates, coordinates.size
        self.n_rows = len(X)
        self._X = X

    def scores(self, w: Floats) -> Floats:
        """Score every row."""
        c = self.coordinates
        effects = c.unfold(w)
        known = (
            c.center,
            reach(effects, c.n_categories),
            effects.slope,
            effects.missing,
            c.first,
            effects.table,
        )
        scores = np.empty(len(self._X))
        for block, rows in in_blocks(self._X):
            score_rows(block, *known, scores[rows])
        return scores

    def weighted_sum(self, share: Floats) -> Floats:
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
        return np.concatenate([sums, absent[c.has_missing], table])

    def take(self, rows: Ints) -> "StoredRows":
        """Take some rows, and store them."""
        c = self.coordinates
        stored = store_table(self._X[rows], c, np.zeros(len(c.unit), np.bool_))
        if not c.n_categories.any():  # hardly a coordinate is 0
            stored.points = stored.points.toarray()
        return stored


class StoredRows(TableRows):
    """Rows whose coordinates are stored, mostly but for those that are 0: a CSR matrix, less a shift of each column.

    A column of numbers that are mostly 0 is stored as it is, and its center taken off the sums: its zeros cost nothing.

    Parameters
    ----------
    points : scipy.sparse CSR of shape (n, size), float64, or ndarray where hardly any is 0
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

    def weighted_sum(self, share: Floats) -> Floats:
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
        sums = (points**2).T @ share
        if self._shift.any():
            plain = (points.T @ share)[:p]
            sums[:p] += self._shift * (self._shift * share.sum() - 2.0 * plain)
        return np.asarray(np.maximum(sums, 0.0))

    def take(self, rows: Ints) -> "StoredRows":
        """Take some rows."""
        return StoredRows(self.points[rows], self._shift, self.coordinates)

    def products(self, columns: Ints, share: Floats) -> Floats:
        """Sum over rows, each times its share, the products of k coordinates, and of 1, put last: (k + 1, k + 1)."""
        some = self.points if len(columns) == self.size else self.points[:, columns]
        found = np.empty((len(columns) + 1, len(columns) + 1))
        is_sparse = sparse.issparse(some)
        if not is_sparse or some.nnz > DENSE * self.n_rows * len(columns):
            full = some.toarray() if is_sparse else some
            found[:-1, :-1] = (full.T * share) @ full
        else:
            found[:-1, :-1] = (some.T @ (sparse.diags_array(share) @ some)).toarray()
        found[-1, :-1] = found[:-1, -1] = some.T @ share
        found[-1, -1] = share.sum()
        of_numbers = columns < len(self._shift)
        shift = np.zeros(len(columns))
        shift[of_numbers] = self._shift[columns[of_numbers]]
        found[:-1] -= np.outer(shift, found[-1])
        found[:, :-1] -= np.outer(found[:, -1], shift)
        return np.asarray(found)


class Sample(NamedTuple):
    """Rows to learn from: the numbers, rising, of those of each class among `rows`; and the weights of all rows."""

    rows: Rows
    positives: Ints
    negatives: Ints
    weight: Floats

    def weights(self, rows: Ints) -> Floats:
        """Return the weights of some rows; no copy where all weights are alike."""
        alike = self.weight[0] == self.weight[-1] and (self.weight == self.weight[0]).all()
        return self.weight[: len(rows)] if alike else self.weight[rows]

    def without(self, held: npt.NDArray[np.bool_]) -> "Sample":
        """Leave some rows out; of stored ones the others are taken over, so that no pass reads them in vain."""
        positives = self.positives[~held[self.positives]]
        negatives = self.negatives[~held[self.negatives]]
        if not isinstance(self.rows, StoredRows):
            return self._replace(positives=positives, negatives=negatives)
        kept = np.flatnonzero(~held)
        place = np.cumsum(~held) - 1
        rows = self.rows.take(kept)
        return Sample(rows, place[positives], place[negatives], self.weight[kept])

    def mean(self) -> Floats:
        """Return the mean of all rows' coordinates, weighted."""
        return self.rows.weighted_sum(self.weight / self.weight.sum())

    def validation_pauc(
        self, held: npt.NDArray[np.bool_], window: tuple[float, float]
    ) -> Callable[[Floats], float]:
        """Return a function that tells the interpolated partial AUC of w on the rows held out."""
        taken = np.flatnonzero(held)
        positive = np.zeros(len(held), dtype=np.bool_)
        positive[self.positives] = True
        weight = self.weight[taken]

        def pauc(w: Floats) -> float:
            scores = self.rows.scores(w)[taken]
            return partial_auc(positive[taken], scores, *window, sample_weight=weight)

        return pauc


def store_table(X: Floats, coordinates: Coordinates, plain: npt.NDArray[np.bool_]) -> StoredRows:
    """Store the coordinates of an array's rows, 12 bytes for each value that is not 0.

    `plain` (p,): the columns of numbers to store as they are, less their center afterwards; none has a missing value.
    """
    c, (n, p) = coordinates, X.shape
    words = c.first >= 0
    base = np.where(words, c.category_places, np.arange(p))
    origin = np.where(plain, 0.0, c.center)
    index, value = np.empty((n, p), np.int32), np.empty((n, p))
    for start in range(0, n, BLOCK):
        block = X[start : start + BLOCK]
        gone = np.isnan(block)
        x = np.where(gone, 0.0, block)
        place_of = base + np.where(words, x, 0.0).astype(np.int64)
        index[start : start + BLOCK] = np.where(gone, np.maximum(c.missing_places, 0), place_of)
        number = np.clip(x - origin, -FARTHEST, FARTHEST) * c.unit
        value[start : start + BLOCK] = np.where(gone, c.has_missing, np.where(words, 1.0, number))
    starts = np.arange(0, n * p + 1, p)
    points = sparse.csr_array((value.ravel(), index.ravel(), starts), (n, c.size))
    points.eliminate_zeros()
    return StoredRows(points, np.where(plain, c.center * c.unit, 0.0), c)


def store_points(points: Any) -> StoredRows:
    """Take the rows of an array or a CSR matrix as points."""
    n_columns = points.shape[1]
    return StoredRows(points, np.zeros(n_columns), identity_coordinates(n_columns))


def identity_coordinates(n_columns: int) -> Coordinates:
    """Return the coordinates of columns that are coordinates as they are."""
    zeros, none = np.zeros(n_columns), np.zeros(n_columns, np.int64)
    return Coordinates(none, zeros, np.ones(n_columns), none > 0)


def store_sparse(X: Any, coordinates: Coordinates) -> StoredRows:
    """Store the coordinates of the rows of a CSR matrix of numbers: what is not stored there is not stored here."""
    c, n = coordinates, X.shape[0]
    unit, shift = c.unit, c.center * c.unit
    gone = np.isnan(X.data)
    value = np.where(gone, shift[X.indices], X.data * unit[X.indices])  # the missing at the center
    points = sparse.csr_array((value, X.indices, X.indptr), (n, c.size))
    gone &= c.has_missing[X.indices]
    if gone.any():
        missing = c.missing_places[X.indices[gone]]
        row = np.repeat(np.arange(n), np.diff(X.indptr))[gone]
        points = points + sparse.csr_array((np.ones(len(row)), (row, missing)), points.shape)
    return StoredRows(points, shift, c)


def reach(effects: Coefficients, n_categories: Ints) -> Floats:
    """How far from the center a number still counts, so that no score is infinite; how many categories there are."""
    most = np.maximum(abs(effects.slope) * len(effects.slope), 1e-18)
    far = np.minimum(GREATEST_SCORE / most, FARTHEST)
    return np.where(n_categories > 0, n_categories, far)


def fit_design(X: Any, weight: Floats, n_categories: Ints, *, standardize: bool) -> TableRows:
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
    coordinates, span = learn_coordinates(X, weight, n_categories, standardize=standardize)
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
) -> tuple[Coordinates, Floats]:
    """Return the coordinates, and how far from 0 each number's may be.

    Mean and deviation are those of the values that are there, weighted. Three passes over X.
    """
    m = column_moments(X, weight)
    numeric = n_categories == 0
    kept = numeric & (m.low < m.high) & (m.deviation > MIN_DEVIATION)
    unit, span = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    unit[kept] = 1.0 / m.deviation[kept] if standardize else 1.0
    coordinates = Coordinates(n_categories, np.where(numeric, m.mean, 0.0), unit, m.absent > 0)
    span[kept] = np.maximum(abs(m.low[kept]), abs(m.high[kept])) * unit[kept]
    return coordinates, span


class Moments(NamedTuple):
    """Of the values of each column that are there, weighted; each of shape (p,), float64.

    Mean and deviation are 0 for a column without a value; `low` and `high`, the least and the greatest value, are
    infinite for it. `absent` is the weight of the rows whose value is missing.
    """

    mean: Floats
    deviation: Floats
    low: Floats
    high: Floats
    absent: Floats


def column_moments(X: Any, weight: Floats) -> Moments:
    """Take each column's weighted moments, in three passes.

    In X, an ndarray or a scipy.sparse CSR matrix of shape (n, p), NaN is missing, and 0 what a sparse matrix does not
    store; weights are above 0.
    """
    p = X.shape[1]
    mass, absent, unstored = np.zeros(p), np.zeros(p), np.zeros(p)
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    _survey(X, weight, mass, absent, low, high)
    if sparse.issparse(X):
        unstored = np.maximum(float(weight.sum()) - mass - absent, 0.0)
        unstored[unstored < 1e-9 * mass] = 0.0  # all are stored, but for rounding
        low[unstored > 0] = np.minimum(low, 0.0)[unstored > 0]
        high[unstored > 0] = np.maximum(high, 0.0)[unstored > 0]
    mean, deviation = _moments(X, weight, mass, unstored, low, high)
    return Moments(mean, deviation, low, high, absent)


def column_scales(X: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return what `standardise` takes: each column's mean and standard deviation, 1 for a constant one."""
    mean, deviation, *_ = column_moments(X, weight)
    return mean, np.where(deviation >= MIN_SCALE, deviation, 1.0)


def standardise(X: Floats, center: Floats, scale: Floats) -> Floats:
    """Return (x - center) / scale of each column, from -1e9 to 1e9; a missing value stays missing.

    By halves, as x - center may overflow where they do not.
    """
    with np.errstate(over="ignore"):
        z = (X / 2 - center / 2) / (scale / 2)
    return np.clip(z, -FARTHEST_DEVIATION, FARTHEST_DEVIATION)


def in_blocks(X: Floats) -> Iterator[tuple[Floats, slice]]:
    """Return the rows of an array, C-contiguous: as they lie, or else in copies of `BLOCK` rows."""
    if X.flags.c_contiguous:
        yield X, slice(0, len(X))
        return
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        yield np.ascontiguousarray(X[rows]), rows


def _survey(
    X: Any, weight: Floats, mass: Floats, absent: Floats, low: Floats, high: Floats
) -> None:
    """Do what the kernel `survey` does; of a sparse matrix over the stored values."""
    if not sparse.issparse(X):
        for block, rows in in_blocks(X):
            survey(block, weight[rows], mass, absent, low, high)
        return
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
    """Return each column's mean and deviation.

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
        sums, some = np.zeros(len(center)), unstored > 0
        sums[some] = unstored[some] * (-0.5 * center[some] * scale[some]) ** order
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


@kernel(numba.boolean(_FLOATS), inner=True, _nrt=False)
def _is_sane(row):  # type: ignore[no-untyped-def]
    """Whether no value is missing or beyond SANE."""
    sane = True
    for j in range(len(row)):
        sane &= abs(row[j]) <= SANE
    return sane


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _ROWS, _FLOATS, _OUT), _nrt=False)
def score_rows(X, center, reach, slope, missing, first, table, scores):  # type: ignore[no-untyped-def]
    """Score each row by the coefficients of its values.

    A number x adds slope · (x - center), the difference cut off at ± reach; NaN adds `missing`. `first` is -1 for a
    column of numbers; in one of categories the category c adds table[first + c], `reach` says how many there are, and
    what is none of them adds `missing`.
    """
    p = X.shape[1]
    whole = p - p % 8
    for i in range(len(X)):
        row = X[i]
        total = np.nan
        if len(table) == 0:
            a = b = c = d = e = f = g = h = 0.0  # eight sums, which one vector instruction adds to
            for j in range(0, whole, 8):
                a += (row[j] - center[j]) * slope[j]
                b += (row[j + 1] - center[j + 1]) * slope[j + 1]
                c += (row[j + 2] - center[j + 2]) * slope[j + 2]
                d += (row[j + 3] - center[j + 3]) * slope[j + 3]
                e += (row[j + 4] - center[j + 4]) * slope[j + 4]
                f += (row[j + 5] - center[j + 5]) * slope[j + 5]
                g += (row[j + 6] - center[j + 6]) * slope[j + 6]
                h += (row[j + 7] - center[j + 7]) * slope[j + 7]
            total = ((a + b) + (c + d)) + ((e + f) + (g + h))
            for j in range(whole, p):
                total += (row[j] - center[j]) * slope[j]
        if not abs(total) <= SANE:  # a category, a missing value, or the sum of numbers overflows
            total = 0.0
            for j in range(p):
                x = row[j]
                if np.isnan(x) or (first[j] >= 0 and not 0.0 <= x < reach[j]):
                    total += missing[j]
                elif first[j] >= 0:
                    total += table[first[j] + np.int64(x)]
                else:
                    total += min(max(x - center[j], -reach[j]), reach[j]) * slope[j]
        scores[i] = total


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _FLOATS, _ROWS, _OUT, _OUT, _OUT), _nrt=False)
def sum_rows(X, share, center, unit, first, sums, absent, table):  # type: ignore[no-untyped-def]
    """Sum rows, each times its share: what `score_rows` is the transpose of.

    Added to: `sums` Σ share · (x - center) · unit over the numbers of each column, `absent` Σ share over its missing
    values, `table` Σ share by category. A row of share 0 is not read.
    """
    p = X.shape[1]
    for i in range(len(X)):
        weight = share[i]
        if weight == 0.0:
            continue
        row = X[i]
        if len(table) == 0 and _is_sane(row):
            for j in range(p):
                sums[j] += weight * ((row[j] - center[j]) * unit[j])
            continue
        for j in range(p):
            x = row[j]
            if np.isnan(x):
                absent[j] += weight
            elif first[j] >= 0:
                table[first[j] + np.int64(x)] += weight
            else:
                sums[j] += weight * (min(max(x - center[j], -FARTHEST), FARTHEST) * unit[j])


@kernel(numba.void(_MATRIX, _FLOATS, _OUT, _OUT, _OUT, _OUT), _nrt=False)
def survey(X, weight, mass, absent, low, high):  # type: ignore[no-untyped-def]
    """Add up the weight of each column's numbers and of its missing values; find its least and greatest number."""
    p = X.shape[1]
    for i in range(len(X)):
        row, w = X[i], weight[i]
        if _is_sane(row):
            for j in range(p):
                mass[j] += w
                low[j] = min(low[j], row[j])
                high[j] = max(high[j], row[j])
            continue
        for j in range(p):
            if np.isnan(row[j]):
                absent[j] += w
            else:
                mass[j] += w
                low[j] = min(low[j], row[j])
                high[j] = max(high[j], row[j])


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _FLOATS, _OUT, numba.int64), _nrt=False)
def add_moments(X, weight, center, scale, sums, order):  # type: ignore[no-untyped-def]
    """Add up Σ weight · (½ (x - center) · scale)^order over each column's numbers; order is 1 or 2.

    Nothing overflows where 1 / scale is half the column's range.
    """
    p = X.shape[1]
    for i in range(len(X)):
        row, w = X[i], weight[i]
        sane = _is_sane(row)
        for j in range(p):
            measure = (0.5 * row[j] - 0.5 * center[j]) * scale[j]
            term = w * (measure if order == 1 else measure * measure)
            if sane or not np.isnan(term):
                sums[j] += term
