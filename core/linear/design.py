"""The design matrix of linear rankers: how each column of a table becomes coordinates of a linear score.

A column of numbers has one coordinate, (x - mean) / deviation, which is 0 if x is missing. If a value was missing at
fit, the column has a second coordinate, which is 1 if x is missing. A column of categories has one coordinate per
category, which is 1 if the row has it, and one for missing values if there were any.

The design matrix of a table of numbers is never stored: scores and sums are computed from the table itself, with the
scaling folded into the coefficients. Columns of categories, and of numbers that are mostly 0, are stored as a sparse
matrix. Which of its two loops a kernel runs for a row depends on that row alone, so that a row's score does not depend
on the rows beside it.
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
from core.base.monotone import Directions, Verification, walk_slopes
from core.base.ranker import Floats
from core.base.splits import draw_spread
from core.base.state import Array, State
from core.base.table import Categories
from core.errors import ArtifactError
from core.kernels import kernel
from core.metrics import partial_auc

Ints = state.Integers

# Standard deviation below which a column counts as constant: its coefficient could become infinite.
MIN_DEVIATION = 1e-200
# Least divisor of a column, as a fraction of its range. Up to 10^8 rows of equal weights the deviation is greater; with
# very unequal weights, rows of next to none would otherwise lie so far out that no solver gets near its minimum.
MIN_RANGE_SHARE = 1e-4

# Rows copied at a time from an array that is not C-contiguous: 32 kB per column.
BLOCK_ROWS = 4096

# Rows that second moments are estimated from: a preconditioner needs no more than two digits.
MAX_SAMPLED_ROWS = 20_000

# If less than this fraction of the rows has a weight, they are copied out of the sparse matrix before they are summed.
MAX_COPIED_FRACTION = 0.2

# A sparse block with more than this fraction of stored values is multiplied as a dense one, which is then faster.
MAX_SPARSE_FRACTION = 0.2

# Largest absolute value of a stored coordinate, and of a score: no product or sum of them is infinite.
MAX_COORDINATE = 1e100
MAX_SCORE = 1e290

# Smallest divisor in `standardise`: half of a smaller one would be subnormal, and rounded.
MIN_SCALE = float(np.finfo(np.float64).tiny)

# Largest absolute value that `standardise` returns, in standard deviations: far beyond any honest value.
MAX_STANDARDISED = 1e9

# A row whose values are all at most this takes the fast loop of `sum_rows`: its sums stay finite without clipping.
MAX_PLAIN = 1e300

# In the slow loop |x - center| is clipped to this, a little below the largest double.
MAX_DIFFERENCE = 1e308

_OUT = numba.float64[::1]
# arrays of callers may be read-only
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_ROWS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)


class Coefficients(NamedTuple):
    """What each value of a row adds to its score: slopes of numbers, and a table of categories' and missing values'."""

    slope: Floats
    """The number x adds slope · (x - center); 0 for a column of categories. Shape (n_features,), float64."""
    missing: Floats
    """Added for a missing value. Shape (n_features,), float64."""
    table: Floats
    """Added for each category, column by column. Shape (n_categories,), float64."""


class Columns(NamedTuple):
    """The names of the columns and of their categories, used in descriptions."""

    names: tuple[str, ...]
    categories: Categories
    """None for a column of numbers."""

    def value(self, j: int, x: float) -> float | str | None:
        """Return value `x` of column `j` in the table's own terms: a number, a category's name, or None if missing."""
        if np.isnan(x):
            return None
        own = self.categories[j]
        return x if own is None else own[int(x)]


class FeatureMap(State, ABC):
    """Base class of the maps, fitted on the training rows, from a row to the coordinates of a linear score."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of coordinates."""

    @abstractmethod
    def transform(self, X: Any) -> "LinearRows":
        """Return the rows of X in the map's coordinates."""

    @abstractmethod
    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of terms and the `limit` largest as JSON; means: contributions as `sums` adds them."""

    def describe(self, columns: Columns) -> dict[str, Any]:
        """Return the map's name and parameters as JSON values; empty for the plain columns."""
        return {}

    def slopes(self, w: Floats) -> Floats | None:
        """Return the score's change per unit of each numeric column, (n_features,); None if it depends on the row."""
        return None

    def walk_monotone(
        self, w: Floats, directions: Directions, score: Callable[[Floats], Floats]
    ) -> Verification | None:
        """Verify constraints from coefficients `w`; None if they do not decide. See `Ranker.walk_monotone`."""
        return None

    def sums(self, parts: Floats) -> Floats:
        """Return the sums of `parts`, shape (size,), by column; one total if coordinates mix columns."""
        return np.asarray(parts.sum(keepdims=True))

    def split(self, X: Floats, w: Floats) -> Floats | None:
        """Return each column's contribution to each row's score, in X's shape; None if coordinates mix columns."""
        return None


@dataclass(frozen=True, eq=False)
class Coordinates(FeatureMap):
    """The coordinates of a table's single columns: scaled numbers, one-hot categories, missing indicators."""

    n_categories: Ints
    center: Annotated[Floats, Array("n_features"), Ge(-1.7e308), Le(1.7e308)]
    unit: Annotated[Floats, Array("n_features"), Ge(0.0), Le(1e200)]
    """The number x has the coordinate (x - center) · unit; unit is 0 for a constant column and one of categories."""
    has_missing: Annotated[state.Booleans, Array("n_features")]
    """Whether a missing value of the column has a coordinate of its own."""

    def check(self) -> None:
        categorical = self.n_categories > 0
        if self.unit[categorical].any() or self.center[categorical].any():
            raise ArtifactError("unit and center must be 0 where a feature is categorical")

    @cached_property
    def first(self) -> Ints:
        """Index of each column's first category in `Coefficients.table`; -1 for a column of numbers."""
        ends = np.cumsum(self.n_categories)
        return np.where(self.n_categories > 0, ends - self.n_categories, -1)

    @cached_property
    def missing_index(self) -> Ints:
        """Index of the coordinate of each column's missing values; -1 if there is none."""
        return np.where(self.has_missing, len(self.unit) + np.cumsum(self.has_missing) - 1, -1)

    @cached_property
    def category_index(self) -> Ints:
        """Index of the coordinate of each column's first category; -1 for a column of numbers."""
        start = len(self.unit) + int(self.has_missing.sum())
        return np.where(self.first >= 0, start + self.first, -1)

    @property
    def size(self) -> int:
        return len(self.unit) + int(self.has_missing.sum()) + int(self.n_categories.sum())

    def unfold(self, w: Floats) -> Coefficients:
        """Return what each feature value adds to a score, given the coefficients of the coordinates."""
        p = len(self.unit)
        n_missing = int(self.has_missing.sum())
        missing = np.zeros(p)
        missing[self.has_missing] = w[p : p + n_missing]
        return Coefficients(w[:p] * self.unit, missing, w[p + n_missing :].copy())

    def slopes(self, w: Floats) -> Floats:
        return self.unfold(w).slope

    def walk_monotone(
        self, w: Floats, directions: Directions, score: Callable[[Floats], Floats]
    ) -> Verification:
        spread = 1.0 / np.maximum(self.unit, 1e-300)
        return walk_slopes(directions, self.slopes(w), self.center, spread)

    def transform(self, X: Any) -> "TableRows":
        return store_sparse(X, self) if sparse.issparse(X) else DenseRows(X, self)

    def sums(self, parts: Floats) -> Floats:
        p = len(self.unit)
        n_missing = int(self.has_missing.sum())
        sums = parts[:p].copy()
        sums[self.has_missing] += parts[p : p + n_missing]
        owner = np.repeat(np.arange(p), self.n_categories)
        return np.asarray(sums + np.bincount(owner, parts[p + n_missing :], p))

    def split(self, X: Floats, w: Floats) -> Floats:
        effects = self.unfold(w)
        clip_limits = find_clip_limits(effects, self.n_categories)
        parts = np.clip(X - self.center, -clip_limits, clip_limits) * effects.slope
        known = ~np.isnan(X)
        for j in np.flatnonzero(self.first >= 0):
            x = X[:, j]
            known[:, j] = (x >= 0.0) & (x < clip_limits[j])
            category = np.where(known[:, j], x, 0.0).astype(np.int64)
            parts[:, j] = effects.table[self.first[j] + category]
        return np.where(known, parts, effects.missing)

    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of terms (per numeric column, category, missing value) and the largest of them.

        `weight` is per unit of the feature, counted from its `center`, `standardized` per standard deviation; both are
        the same for a category.
        """
        terms: list[dict[str, Any]] = []
        slope, missing, table = self.unfold(w)
        for j, (feature, names) in enumerate(zip(*columns, strict=True)):
            if names is None and w[j] != 0.0:
                term = {"feature": feature, "weight": float(slope[j])}
                center = float(self.center[j])
                terms.append({**term, "center": center, "standardized": float(w[j])})
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


class LinearRows(ABC):
    """Base class of the rows of a table in a linear score's coordinates: scores and weighted sums of rows."""

    size: int
    n_rows: int

    @property
    def width(self) -> int:
        """Upper limit of the number of nonzero coordinates of a row."""
        return self.size

    @abstractmethod
    def scores(self, w: Floats) -> Floats:
        """Return the score w·x of every row, shape (n_rows,), for coefficients of shape (size,)."""

    @abstractmethod
    def weighted_sum(self, row_weight: Floats) -> Floats:
        """Return Σ row_weight · x over the rows, shape (size,); rows of weight 0 are not read."""

    @abstractmethod
    def take(self, rows: Ints) -> "StoredRows":
        """Return a stored copy of the rows with the given indices."""

    def finish(self, w: Floats, mean: Floats) -> Floats:
        """Convert coefficients to the map's own coordinates; `mean` is the training rows'. Only mixed ones differ."""
        return w


class TableRows(LinearRows):
    """Rows in the coordinates of a table's single columns (`Coordinates`)."""

    coordinates: Coordinates

    @property
    def width(self) -> int:
        return len(self.coordinates.unit)

    @cached_property
    def _drawn(self) -> Ints:
        return draw_spread(self.n_rows, min(self.n_rows, MAX_SAMPLED_ROWS), seed=0)

    @cached_property
    def sampled(self) -> "StoredRows":
        """The rows that second moments are estimated from, stored: a random sample of many rows, or all of a few."""
        if len(self._drawn) == self.n_rows and isinstance(self, StoredRows):
            return self
        return self.take(self._drawn)

    def sampled_weight(self, row_weight: Floats) -> Floats:
        """Return the weight of each row of `sampled`: its own, and that of the rows that it represents."""
        return self.n_rows / len(self._drawn) * row_weight[self._drawn]

    def squares(self, row_weight: Floats) -> Floats:
        """Return an estimate of Σ row_weight · x² over the rows, shape (size,), from the sampled rows."""
        return self.sampled.squares(self.sampled_weight(row_weight))


class DenseRows(TableRows):
    """Rows computed on the fly from a dense array, which is not copied unless it is not C-contiguous."""

    def __init__(self, X: Floats, coordinates: Coordinates) -> None:
        self.coordinates, self.size = coordinates, coordinates.size
        self.n_rows = len(X)
        self._X = X

    def scores(self, w: Floats) -> Floats:
        c = self.coordinates
        effects = c.unfold(w)
        known = (
            np.where(
                effects.slope == 0.0, 0.0, c.center
            ),  # else x - center may be infinite, and times 0 NaN
            find_clip_limits(effects, c.n_categories),
            effects.slope,
            effects.missing,
            c.first,
            effects.table,
        )
        scores = np.empty(len(self._X))
        for block, rows in in_blocks(self._X):
            score_rows(block, *known, scores[rows])
        return scores

    def weighted_sum(self, row_weight: Floats) -> Floats:
        c = self.coordinates
        sums, absent = np.zeros(len(c.unit)), np.zeros(len(c.unit))
        table = np.zeros(int(c.n_categories.sum()))
        known = c.center, c.unit, c.first, sums, absent, table
        if self._X.flags.c_contiguous:
            sum_rows(self._X, row_weight, *known)
        else:
            taken = np.flatnonzero(row_weight)
            for start in range(0, len(taken), BLOCK_ROWS):
                rows = taken[start : start + BLOCK_ROWS]
                sum_rows(np.ascontiguousarray(self._X[rows]), row_weight[rows], *known)
        return np.concatenate([sums, absent[c.has_missing], table])

    def take(self, rows: Ints) -> "StoredRows":
        c = self.coordinates
        stored = store_table(self._X[rows], c, np.zeros(len(c.unit), np.bool_))
        if not c.n_categories.any():  # hardly a coordinate is 0
            stored.points = stored.points.toarray()
        return stored


class StoredRows(TableRows):
    """Rows with stored coordinates: `points`, usually a CSR matrix, minus a shift per column.

    A column of mostly zeros is stored uncentered, and its center is subtracted from sums: zeros then cost nothing.

    points: scipy.sparse CSR or shape (n_rows, size), float64; an ndarray if hardly any coordinate is 0.
    shift: (n_features,); subtracted from the first n_features coordinates of every row.
    """

    def __init__(self, points: Any, shift: Floats, coordinates: Coordinates) -> None:
        self.coordinates, self.size = coordinates, coordinates.size
        self.n_rows = points.shape[0]
        self.points, self.shift = points, shift

    def scores(self, w: Floats) -> Floats:
        scores = self.points @ w
        scores -= (self.shift * w[: len(self.shift)]).sum()
        np.nan_to_num(scores, copy=False, nan=0.0)
        return np.asarray(np.clip(scores, -MAX_SCORE, MAX_SCORE, out=scores))

    def weighted_sum(self, row_weight: Floats) -> Floats:
        if np.count_nonzero(row_weight) < int(MAX_COPIED_FRACTION * self.n_rows):
            taken = np.flatnonzero(row_weight)
            sums = self.points[taken].T @ row_weight[taken]
        else:
            sums = self.points.T @ row_weight
        sums[: len(self.shift)] -= self.shift * row_weight.sum()
        return np.asarray(sums)

    def squares(self, row_weight: Floats) -> Floats:
        """Return Σ row_weight · x² over the rows, shape (size,)."""
        points, p = self.points, len(self.shift)
        sums = (points**2).T @ row_weight
        if self.shift.any():
            unshifted = (points.T @ row_weight)[:p]
            sums[:p] += self.shift * (self.shift * row_weight.sum() - 2.0 * unshifted)
        return np.asarray(np.maximum(sums, 0.0))

    def take(self, rows: Ints) -> "StoredRows":
        return StoredRows(self.points[rows], self.shift, self.coordinates)

    def products(self, columns: Ints, row_weight: Floats) -> Floats:
        """Return the second moments Σ row_weight · z zᵀ of chosen coordinates z and a constant 1, (k + 1, k + 1)."""
        chosen = self.points if len(columns) == self.size else self.points[:, columns]
        products = np.empty((len(columns) + 1, len(columns) + 1))
        is_sparse = sparse.issparse(chosen)
        if not is_sparse or chosen.nnz > MAX_SPARSE_FRACTION * self.n_rows * len(columns):
            full = chosen.toarray() if is_sparse else chosen
            products[:-1, :-1] = (full.T * row_weight) @ full
        else:
            products[:-1, :-1] = (chosen.T @ (sparse.diags_array(row_weight) @ chosen)).toarray()
        products[-1, :-1] = products[:-1, -1] = chosen.T @ row_weight
        products[-1, -1] = row_weight.sum()
        of_numbers = columns < len(self.shift)
        shift = np.zeros(len(columns))
        shift[of_numbers] = self.shift[columns[of_numbers]]
        products[:-1] -= np.outer(shift, products[-1])
        products[:, :-1] -= np.outer(products[:, -1], shift)
        return np.asarray(products)


class LinearSample(NamedTuple):
    """The training rows in a linear score's coordinates, with their classes and weights."""

    rows: LinearRows
    positives: Ints
    """Indices into `rows`, ascending."""
    negatives: Ints
    """Indices into `rows`, ascending."""
    weight: Floats
    """Shape (n_rows,), float64."""

    def weights(self, rows: Ints) -> Floats:
        """Return the weights of the rows with these indices, without a copy if all weights are equal."""
        alike = self.weight[0] == self.weight[-1] and (self.weight == self.weight[0]).all()
        return self.weight[: len(rows)] if alike else self.weight[rows]

    def without(self, validation_mask: npt.NDArray[np.bool_]) -> "LinearSample":
        """Return the sample without the validation rows; stored rows are copied, so that no pass reads the others."""
        positives = self.positives[~validation_mask[self.positives]]
        negatives = self.negatives[~validation_mask[self.negatives]]
        if not isinstance(self.rows, StoredRows):
            return self._replace(positives=positives, negatives=negatives)
        kept = np.flatnonzero(~validation_mask)
        new_index = np.cumsum(~validation_mask) - 1
        rows = self.rows.take(kept)
        return LinearSample(rows, new_index[positives], new_index[negatives], self.weight[kept])

    def mean(self) -> Floats:
        return self.rows.weighted_sum(self.weight / self.weight.sum())

    def pauc(
        self, window: tuple[float, float], validation_mask: npt.NDArray[np.bool_] | None = None
    ) -> Callable[[Floats], float]:
        """Return a function that maps w to the partial AUC of its scores on the validation rows (all rows for None)."""
        taken = slice(None) if validation_mask is None else np.flatnonzero(validation_mask)
        positive = np.zeros(len(self.weight), dtype=np.bool_)
        positive[self.positives] = True
        positive = positive[taken]
        # equal weights change nothing, and would double the memory of each figure
        weight = self.weight[taken] if (self.weight != self.weight[0]).any() else None

        def pauc(w: Floats) -> float:
            scores = self.rows.scores(w)[taken]
            return partial_auc(positive, scores, *window, sample_weight=weight)

        return pauc


def store_table(X: Floats, coordinates: Coordinates, plain: npt.NDArray[np.bool_]) -> StoredRows:
    """Store a dense table sparse, 12 bytes per nonzero value; `plain` columns, without missing values, uncentered."""
    c, (n, p) = coordinates, X.shape
    words = c.first >= 0
    base = np.where(words, c.category_index, np.arange(p))
    origin = np.where(plain, 0.0, c.center)
    index, value = np.empty((n, p), np.int32), np.empty((n, p))
    for start in range(0, n, BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        is_missing = np.isnan(block)
        x = np.where(is_missing, 0.0, block)
        known = base + np.where(words, x, 0.0).astype(np.int64)
        index[start : start + BLOCK_ROWS] = np.where(
            is_missing, np.maximum(c.missing_index, 0), known
        )
        number = np.clip(x - origin, -MAX_DIFFERENCE, MAX_DIFFERENCE) * c.unit
        value[start : start + BLOCK_ROWS] = np.where(
            is_missing, c.has_missing, np.where(words, 1.0, number)
        )
    starts = np.arange(0, n * p + 1, p)
    points = sparse.csr_array((value.ravel(), index.ravel(), starts), (n, c.size))
    points.eliminate_zeros()
    return StoredRows(points, np.where(plain, c.center * c.unit, 0.0), c)


def store_points(points: Any) -> StoredRows:
    """Return the rows of an array or a CSR matrix unchanged as `StoredRows`: its columns are the coordinates."""
    n_columns = points.shape[1]
    return StoredRows(points, np.zeros(n_columns), identity_coordinates(n_columns))


def identity_coordinates(n_columns: int) -> Coordinates:
    zeros, none = np.zeros(n_columns), np.zeros(n_columns, np.int64)
    return Coordinates(none, zeros, np.ones(n_columns), none > 0)


def store_sparse(X: Any, coordinates: Coordinates) -> StoredRows:
    """Return the rows of a numeric CSR matrix in these coordinates; its zeros stay unstored."""
    c, n = coordinates, X.shape[0]
    unit, shift = c.unit, c.center * c.unit
    is_missing = np.isnan(X.data)
    with np.errstate(over="ignore"):
        number = np.clip(X.data * unit[X.indices], -MAX_DIFFERENCE, MAX_DIFFERENCE)
    value = np.where(is_missing, shift[X.indices], number)  # the missing at the center
    points = sparse.csr_array((value, X.indices, X.indptr), (n, c.size))
    is_missing &= c.has_missing[X.indices]
    if is_missing.any():
        missing = c.missing_index[X.indices[is_missing]]
        row = np.repeat(np.arange(n), np.diff(X.indptr))[is_missing]
        points = points + sparse.csr_array((np.ones(len(row)), (row, missing)), points.shape)
    return StoredRows(points, shift, c)


def find_clip_limits(effects: Coefficients, n_categories: Ints) -> Floats:
    """Return limits of |x - center|, so that no score is infinite; of categories their number."""
    growth = np.maximum(abs(effects.slope) * len(effects.slope), 1e-18)
    limits = np.minimum(MAX_SCORE / growth, MAX_DIFFERENCE)
    return np.where(n_categories > 0, n_categories, limits)


def fit_design(X: Any, weight: Floats, n_categories: Ints, *, standardize: bool) -> TableRows:
    """Fit the coordinates of a table's columns, and return its rows in them.

    standardize: whether to divide numbers by their standard deviation.

    Result: stored as a sparse matrix if a column is of categories or at least half of the numbers are 0; else the table
        itself is read.
    """
    coordinates, span = learn_coordinates(X, weight, n_categories, standardize=standardize)
    if sparse.issparse(X):
        return store_sparse(X, coordinates)
    n_zeros = sum(np.count_nonzero(block == 0.0, axis=0) for block, _ in in_blocks(X))
    plain = (2 * n_zeros > len(X)) & (n_categories == 0) & ~coordinates.has_missing
    is_thin = n_categories.any() or 2 * n_zeros[plain].sum() > X.size
    # squares and sums of products must stay finite
    if is_thin and (span <= MAX_COORDINATE).all():
        return store_table(X, coordinates, plain)
    return DenseRows(X, coordinates)


def learn_coordinates(
    X: Any, weight: Floats, n_categories: Ints, *, standardize: bool
) -> tuple[Coordinates, Floats]:
    """Fit coordinates in three passes, without missing values; returns also each column's largest absolute one."""
    m = column_moments(X, weight)
    numeric = n_categories == 0
    kept = numeric & (m.low < m.high) & (m.deviation > MIN_DEVIATION)
    unit, span = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    least = 2.0 * MIN_RANGE_SHARE * (0.5 * m.high[kept] - 0.5 * m.low[kept])
    unit[kept] = 1.0 / np.maximum(m.deviation[kept], least) if standardize else 1.0
    coordinates = Coordinates(n_categories, np.where(numeric, m.mean, 0.0), unit, m.absent > 0)
    span[kept] = np.maximum(abs(m.low[kept]), abs(m.high[kept])) * unit[kept]
    return coordinates, span


class Moments(NamedTuple):
    """Weighted mean, deviation and range of each column's non-missing values, and the weight of missing ones."""

    mean: Floats
    """0 for a column without a value."""
    deviation: Floats
    """Standard deviation; 0 for a column without a value."""
    low: Floats
    """Least value; inf for a column without one."""
    high: Floats
    """Greatest value; -inf for a column without one."""
    absent: Floats
    """Weight of the rows whose value is missing."""


def column_moments(X: Any, weight: Floats) -> Moments:
    """Return weighted moments of a dense or CSR matrix in three passes; values that CSR does not store are 0."""
    p = X.shape[1]
    mass, absent, unstored = np.zeros(p), np.zeros(p), np.zeros(p)
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    _survey(X, weight, mass, absent, low, high)
    if sparse.issparse(X):
        unstored = np.maximum(float(weight.sum()) - mass - absent, 0.0)
        unstored[unstored < 1e-9 * mass] = 0.0  # all values are stored, except for rounding
        low[unstored > 0] = np.minimum(low, 0.0)[unstored > 0]
        high[unstored > 0] = np.maximum(high, 0.0)[unstored > 0]
    mean, deviation = _moments(X, weight, mass, unstored, low, high)
    return Moments(mean, deviation, low, high, absent)


def column_scales(X: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return each column's mean and standard deviation (1 for a constant column), as `standardise` takes them."""
    mean, deviation, *_ = column_moments(X, weight)
    return mean, np.where(deviation >= MIN_SCALE, deviation, 1.0)


def standardise(X: Floats, center: Floats, scale: Floats) -> Floats:
    """Return (x - center) / scale, clipped to ± `MAX_STANDARDISED`, halved first: x - center may overflow."""
    with np.errstate(over="ignore"):
        z = (X / 2 - center / 2) / (scale / 2)
    return np.clip(z, -MAX_STANDARDISED, MAX_STANDARDISED)


def in_blocks(X: Floats) -> Iterator[tuple[Floats, slice]]:
    """Yield C-contiguous blocks of an array's rows, and the rows of each: the whole array if it is C-contiguous."""
    if X.flags.c_contiguous:
        yield X, slice(0, len(X))
        return
    for start in range(0, len(X), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        yield np.ascontiguousarray(X[rows]), rows


def _survey(
    X: Any, weight: Floats, mass: Floats, absent: Floats, low: Floats, high: Floats
) -> None:
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
    """Return weighted means and standard deviations without overflow: measured from the least value, then the mean.

    The unit is half the column's range.
    """
    there = np.maximum(mass + unstored, np.finfo(np.float64).tiny)
    empty = low > high  # not a number
    start = np.where(empty, 0.0, low)
    half = np.where(empty | (low == high), 1.0, 0.5 * high - 0.5 * low)
    half = np.maximum(half, np.finfo(np.float64).tiny)

    def sum_up(center: Floats, order: int) -> Floats:
        scale = 1.0 / half
        sums, some = np.zeros(len(center)), unstored > 0
        sums[some] = unstored[some] * (-0.5 * center[some] * scale[some]) ** order
        if sparse.issparse(X):
            measure = (0.5 * X.data - 0.5 * center[X.indices]) * scale[X.indices]
            part = np.repeat(weight, np.diff(X.indptr)) * measure**order
            sums += np.bincount(X.indices, np.nan_to_num(part, nan=0.0), len(sums))
        else:
            for block, rows in in_blocks(X):
                add_moments(block, weight[rows], center, scale, sums, order)
        return np.asarray(sums / there)

    way = np.clip(sum_up(start, 1), 0.0, 1.0)
    center = np.minimum(start + half * way + half * way, np.where(empty, 0.0, high))
    deviation = half * (2.0 * np.sqrt(np.minimum(sum_up(center, 2), 0.25)))
    return center, deviation


@kernel(numba.boolean(_FLOATS), inner=True, _nrt=False)
def _is_plain(row):  # type: ignore[no-untyped-def]
    """Return True if no value of `row`, shape (n_features,), float64, is missing or beyond `MAX_PLAIN`."""
    plain = True
    for j in range(len(row)):
        plain &= abs(row[j]) <= MAX_PLAIN
    return plain


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _ROWS, _FLOATS, _OUT), _nrt=False)
def score_rows(X, center, clip_limit, slope, missing, first, table, scores):  # type: ignore[no-untyped-def]
    """Write the linear score of each row of X, clipped to ± `MAX_SCORE`, to `scores`.

    A score never falls as a number with a slope above 0 grows, also where sums of other numbers are infinite: the fast
    loop's sum is then NaN up to some number and inf above it, or -inf and NaN above it, or NaN for all.

    center, slope: (n_features,), float64; the number x adds slope · (x - center).
    clip_limit: (n_features,), float64; x - center is clipped to ± this; for a column of categories, their number.
    missing: (n_features,), float64; added for a missing value, and for a value that is no category of its column.
    first: (n_features,), int64; the category c adds table[first + c]; -1 for a column of numbers.
    table: (n_categories,), float64.
    scores: (n_rows,), float64; written.
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
        if np.isnan(total):  # a category, a missing value, or a sum of inf and -inf
            total = 0.0
            for j in range(p):
                x = row[j]
                if np.isnan(x) or (first[j] >= 0 and not 0.0 <= x < clip_limit[j]):
                    total += missing[j]
                elif first[j] >= 0:
                    total += table[first[j] + np.int64(x)]
                else:
                    total += min(max(x - center[j], -clip_limit[j]), clip_limit[j]) * slope[j]
        scores[i] = min(max(total, -MAX_SCORE), MAX_SCORE)


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _FLOATS, _ROWS, _OUT, _OUT, _OUT), _nrt=False)
def sum_rows(X, row_weight, center, unit, first, sums, absent, table):  # type: ignore[no-untyped-def]
    """Add up the coordinates of the rows of X, weighted by row: the transpose of `score_rows`.

    row_weight: (n_rows,), float64; a row of weight 0 is not read.
    center, unit: (n_features,), float64; the number x has the coordinate (x - center) · unit.
    first: (n_features,), int64; index of each column's first category in `table`; -1 for a column of numbers.
    sums, absent: (n_features,), float64; Σ weight · coordinate over the numbers of each column, and Σ weight over its
        missing values, are added.
    table: (n_categories,), float64; Σ weight of each category is added.
    """
    p = X.shape[1]
    for i in range(len(X)):
        weight = row_weight[i]
        if weight == 0.0:
            continue
        row = X[i]
        if len(table) == 0 and _is_plain(row):
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
                sums[j] += weight * (
                    min(max(x - center[j], -MAX_DIFFERENCE), MAX_DIFFERENCE) * unit[j]
                )


@kernel(numba.void(_MATRIX, _FLOATS, _OUT, _OUT, _OUT, _OUT), _nrt=False)
def survey(X, weight, mass, absent, low, high):  # type: ignore[no-untyped-def]
    """Add weights of present and missing values by column to `mass` and `absent`; update ranges `low` and `high`."""
    p = X.shape[1]
    for i in range(len(X)):
        row, w = X[i], weight[i]
        if _is_plain(row):
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
    """Add Σ weight · (½ (x - center) · scale)^order by column; no overflow if 1 / scale is half the range."""
    p = X.shape[1]
    for i in range(len(X)):
        row, w = X[i], weight[i]
        plain = _is_plain(row)
        for j in range(p):
            measure = (0.5 * row[j] - 0.5 * center[j]) * scale[j]
            term = w * (measure if order == 1 else measure * measure)
            if plain or not np.isnan(term):
                sums[j] += term
