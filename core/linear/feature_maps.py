"""Feature maps: they make a linear ranker nonlinear in the columns.

A map is learnt at fit and stored. It turns a table into `LinearRows` (`core.linear.design`), of which the solvers need
scores and weighted sums only.

`BinnedMap` divides each column at quantiles. A row has a 1 for the bin of each of its values, so its score is a sum of
one step function per column. Rows are stored as codes, a byte per value.

`FourierMap` and `NystroemMap` approximate the Gaussian kernel exp(-‖x - x'‖²/2h²) over the columns' coordinates:
standardised numbers, 0 if missing, and coordinates of 0 and 1 for categories and for missing values.

* Fourier: cosines and sines whose products are, in expectation, the kernel.
* Nyström: the kernel with some rows, the landmarks. With K = U Λ Uᵀ the kernel of the landmarks with one another, the
  features of a row are Λ^-½ Uᵀ k(x), k(x) its kernel with each landmark. Their products are the kernel projected on the
  span of the landmarks. Rows are stored as k(x), and Λ^-½ Uᵀ is applied to coefficients and to sums, so that scores are
  Σ α_l k(x, l).

References
----------
A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 2007.
D. J. Sutherland and J. Schneider, "On the error of random Fourier features", UAI 2015: cosine and sine of each
frequency err less than one wave with a random phase.
C. K. I. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le, Lt
from scipy import sparse

from core.base.ranker import Floats
from core.base.splits import column_keys, row_keys, scramble_keys
from core.base.state import FINITE, NOT_INFINITE, Array, Booleans, Nested, Totals, pieces
from core.coding import Bins, Codes, fit_bins
from core.coding.bins import code_columns
from core.errors import ArtifactError, InvalidData
from core.explain.conditions import CategorySet, ValueRange, in_words
from core.kernels import kernel

from .design import (
    MAX_DIFFERENCE,
    Columns,
    Coordinates,
    DenseRows,
    FeatureMap,
    Ints,
    LinearRows,
    StoredRows,
    identity_coordinates,
    store_points,
)

# Bytes up to which the features of all rows are kept in memory; beyond, they are computed again for each product.
MAX_BYTES = 2**29

# Rows, and numbers (32 MB), of a block whose features are computed at a time.
MAX_BLOCK_ROWS = 4096
MAX_BLOCK_CELLS = 2**22

MapName = Literal["fourier", "nystroem", "bins"]

# Bins of a column, the missing one not counted: codes are of one byte.
MAX_BINS = 255

# Categories that the description of a bin names.
MAX_CATEGORIES_SHOWN = 20

# Rows whose median distance is the bandwidth.
MAX_BANDWIDTH_ROWS = 500

# Number of the random stream that draws rows; stream 0 draws the validation rows.
DRAW_STREAM = 1

# Numbers that a map may store as frequencies or landmarks: 256 MB.
MAX_CELLS = 2**25

# Range of the bandwidth, in units of the coordinates: the square of each end is a double.
MIN_BANDWIDTH = 1e-100
MAX_BANDWIDTH = 1e110

# Eigenvalues at most this fraction of the greatest are rounding.
MIN_EIGENVALUE = 1e-10

# Columns that the description of a landmark, and of a wave, names.
MAX_LANDMARK_COLUMNS = 20
MAX_WAVE_COLUMNS = 5

# Coordinates are clipped to ± this, so that no sum of squares or products is infinite.
MAX_COORDINATE = 1e100

_CODES = numba.types.Array(numba.uint8, 2, "C", readonly=True)
# arrays of callers may be read-only
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INTS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)
_OUT_2 = numba.float64[:, ::1]


class DenseMapRows(LinearRows):
    """Rows of a feature map, computed block by block for each product, or cached if memory allows."""

    def __init__(self, feature_map: "GaussianMap", X: Any, *, keep: bool) -> None:
        size = feature_map.size
        self.size, self.n_rows = size, X.shape[0]
        self._map, self._X = feature_map, X
        self._identity = identity_coordinates(size)
        kept = keep and 8 * self.n_rows * size <= MAX_BYTES
        self._kept = feature_map.features(X) if kept else None

    def scores(self, w: Floats) -> Floats:
        scores = np.empty(self.n_rows)
        for rows, block in self._blocks():
            scores[rows] = block.scores(w)
        return scores

    def weighted_sum(self, row_weight: Floats) -> Floats:
        total = np.zeros(self.size)
        for rows, block in self._blocks(row_weight):
            total += block.weighted_sum(row_weight[rows])
        return total

    def take(self, rows: Ints) -> StoredRows:
        kept = self._kept
        some = self._map.features(self._X[rows]) if kept is None else kept[rows]
        return store_points(some)

    def _blocks(self, row_weight: Floats | None = None) -> Iterator[tuple[slice, DenseRows]]:
        """Skip blocks whose weights are all 0."""
        for rows in self._map.blocks(self._X):
            if row_weight is not None and not row_weight[rows].any():
                continue
            kept = self._kept
            block = self._map.features(self._X[rows]) if kept is None else kept[rows]
            yield rows, DenseRows(block, self._identity)


def lay_dense(X: Any, rows: slice) -> Floats:
    block = X[rows].toarray() if sparse.issparse(X) else X[rows]
    return np.ascontiguousarray(block)


@dataclass(frozen=True, eq=False)
class BinnedMap(FeatureMap):
    """Quantile bins: a 0/1 feature per bin, and one for missing values, which without any at fit add the mean."""

    n_categories: Ints
    n_edges: Annotated[Ints, Array("n_features"), Ge(0), Lt(MAX_BINS), Totals("n_all_edges")]
    edges: Annotated[Floats, Array("n_all_edges"), FINITE]
    """Between the bins, rising within each column. Shape (n_edges.sum(),)."""
    category_bins: Annotated[Ints, Array("n_all_categories"), Ge(0), Lt(MAX_BINS)]
    """The bin of each category, one column after the other. Shape (n_categories.sum(),)."""
    has_missing: Annotated[Booleans, Array("n_features")]
    """Whether a value was missing at fit."""

    def check(self) -> None:
        if self.n_edges[self.n_categories > 0].any():
            raise ArtifactError("n_edges must be 0 where a feature is categorical")
        if len(self.category_bins) != self.n_categories.sum():
            raise ArtifactError(f"category_bins must have {self.n_categories.sum()} values")
        owner = np.repeat(np.arange(len(self.n_edges)), self.n_edges)
        rising = (self.edges[1:] > self.edges[:-1]) | (owner[1:] != owner[:-1])
        if not rising.all():
            raise ArtifactError("edges must rise within each feature")

    @classmethod
    def of(cls, bins: Bins, n_categories: Ints) -> Self:
        own = [each for each in bins.category_bins if each is not None]
        return cls(
            n_categories,
            np.array([len(edges) for edges in bins.edges], dtype=np.int64),
            np.concatenate([np.empty(0), *bins.edges]),
            np.concatenate([np.empty(0, dtype=np.int64), *own]),
            bins.has_missing,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def bins(self) -> Bins:
        """The bins of each column; their edges are a writable copy, as the kernels require."""
        edges = pieces(self.edges.copy(), self.n_edges)
        categories = pieces(self.category_bins, self.n_categories)
        known = self.n_categories.tolist()
        own = tuple(each if n else None for each, n in zip(categories, known, strict=True))
        return Bins(tuple(edges), self.has_missing, own, np.dtype(np.uint8))

    @cached_property
    def n_bins(self) -> Ints:
        """Number of bins of each column, without that of missing values."""
        return self.bins.n_bins

    @cached_property
    def first(self) -> Ints:
        """Index of the first feature of each column; its last feature is that of missing values."""
        ends = np.cumsum(self.n_bins + 1)
        return ends - self.n_bins - 1

    @property
    def size(self) -> int:
        return int(self.n_bins.sum()) + len(self.n_bins)

    def transform(self, X: Any) -> "BinnedRows":
        return BinnedRows(self, code_columns(X, np.arange(len(X)), self.bins))

    def split(self, X: Floats, w: Floats) -> Floats:
        return self.transform(X).split(w)

    def sums(self, parts: Floats) -> Floats:
        return np.add.reduceat(parts, self.first)

    def describe(self, columns: Columns) -> dict[str, Any]:
        return {"map": "bins", "n_components": self.size}

    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of terms and the bins that deviate most from the column's mean; a bin is (above, up_to]."""
        terms = []
        bins = self.bins
        beside = w - np.repeat(means, self.n_bins + 1)
        for k in np.argsort(-abs(beside), kind="stable")[:limit].tolist():
            j = int(np.searchsorted(self.first, k, side="right")) - 1
            where, words = self._bin(bins, j, k - int(self.first[j]), columns)
            weight = float(beside[k])
            if weight != 0.0:
                said = f"{words} adds {weight:.4g}"
                terms.append(
                    {"feature": columns.names[j], **where, "weight": weight, "words": said}
                )
        return self.size, terms

    def _bin(self, bins: Bins, j: int, code: int, columns: Columns) -> tuple[dict[str, Any], str]:
        name, edges = columns.names[j], bins.edges[j]
        categories, known = bins.category_bins[j], columns.categories[j]
        if code == self.n_bins[j]:
            return {"is": None}, f"{name} is missing"
        if categories is not None and known is not None:
            in_bin = CategorySet(categories == code, missing=False)
            shown = np.flatnonzero(categories == code)[:MAX_CATEGORIES_SHOWN].tolist()
            own = [known[c] for c in shown]
            return {"is": own}, in_words(name, in_bin, known, mentions_missing=False)
        low = float(edges[code - 1]) if code > 0 else None
        high = float(edges[code]) if code < len(edges) else None
        inside = ValueRange(
            -math.inf if low is None else low, math.inf if high is None else high, missing=False
        )
        where = {"above": low, "up_to": high}
        return where, in_words(name, inside, None, mentions_missing=False)


class BinnedRows(LinearRows):
    """Rows as bin codes, (n_features, n_rows); the code 255 (missing) is replaced in place by the column's n_bins."""

    def __init__(self, feature_map: BinnedMap, codes: Codes) -> None:
        self.size, self.n_rows = feature_map.size, codes.shape[1]
        self._map, self._codes = feature_map, codes
        for column, n_bins in zip(codes, feature_map.n_bins, strict=True):
            np.minimum(column, n_bins, out=column, casting="unsafe")

    def scores(self, w: Floats) -> Floats:
        scores = np.zeros(self.n_rows)
        score_codes(self._codes, self._map.first, w, scores)
        return scores

    def weighted_sum(self, row_weight: Floats) -> Floats:
        sums, rows = np.zeros(self.size), np.flatnonzero(row_weight)
        sum_codes(self._codes, rows, row_weight, self._map.first, sums)
        return sums

    def take(self, rows: Ints) -> StoredRows:
        features = (self._map.first[:, None] + self._codes[:, rows]).T
        n, p = features.shape
        starts = np.arange(0, n * p + 1, p)
        return store_points(
            sparse.csr_array((np.ones(n * p), features.ravel(), starts), (n, self.size))
        )

    def split(self, w: Floats) -> Floats:
        return np.ascontiguousarray(w[self._map.first[:, None] + self._codes].T)

    def finish(self, w: Floats, mean: Floats) -> Floats:
        """Return w, with missing values of a column that had none at fit given the column's mean contribution."""
        effects = w.copy()
        missing = self._map.first + self._map.n_bins
        absent = ~self._map.has_missing
        effects[missing[absent]] = self._map.sums(mean * w)[absent]
        return effects


def fit_binned(
    X: Floats, weight: Floats, n_categories: Ints, max_bins: int
) -> tuple[BinnedMap, BinnedRows]:
    bins, codes = fit_bins(X, np.arange(len(X)), weight, max_bins, n_categories)
    feature_map = BinnedMap.of(bins, n_categories)
    return feature_map, BinnedRows(feature_map, codes)


class MapRows(NamedTuple):
    """The training rows on which a feature map is fitted; X is an array or a CSR matrix, weights are above 0."""

    X: Any
    positive: npt.NDArray[np.bool_]
    weight: Floats
    coordinates: Coordinates
    seed: int

    def draw(self, max_rows: int) -> Floats:
        """Return a sample of at most max_rows distinct rows, independent of the order of rows and columns."""
        keys = scramble_keys(row_keys(self.X, self.positive, self.weight), self.seed)
        _, first = np.unique(scramble_keys(keys, DRAW_STREAM), return_index=True)
        taken = first[:max_rows]
        rows = self.X[taken]
        return lay_dense(rows, slice(0, len(taken)))

    def check_size(self, name: str, n_rows: int, n_columns: int) -> None:
        if n_rows * n_columns > MAX_CELLS:
            raise InvalidData(
                f"feature_map {name!r} must store at most {MAX_CELLS:,} numbers, got {n_rows:,} x "
                f"{n_columns:,} (columns and categories x n_components)"
            )


class Points:
    """Reference rows (such as landmarks) with which Gaussian kernels are computed."""

    def __init__(self, rows: Floats, coordinates: Coordinates) -> None:
        self._coordinates = coordinates
        gaps, categorical = np.isnan(rows), coordinates.n_categories > 0
        with np.errstate(over="ignore"):  # infinite values are clipped
            steps = np.clip(rows - coordinates.center, -MAX_DIFFERENCE, MAX_DIFFERENCE)
            points = np.clip(
                np.nan_to_num(steps, nan=0.0) * coordinates.unit, -MAX_COORDINATE, MAX_COORDINATE
            )
        codes = np.where(gaps, -1.0, rows)
        points[:, categorical] = codes[:, categorical]
        self._points = np.ascontiguousarray(points.T)
        self._gaps = np.ascontiguousarray(gaps.T, dtype=np.float64)

    def kernel(self, X: Floats, bandwidth: float, out: Floats) -> None:
        c = self._coordinates
        counts = c.has_missing.astype(np.float64)
        known = c.center, c.unit, c.n_categories, counts
        fill_squares(X, *known, self._points, self._gaps, float(bandwidth), out)


def choose_bandwidth(rows: MapRows, bandwidth: float | Literal["auto"]) -> float:
    """Return the kernel's bandwidth h: as given, or for "auto" the median distance of a sample of rows.

    "auto" samples `MAX_BANDWIDTH_ROWS` distinct rows, fewer if there are very many columns; 1 if no two rows differ.
    """
    if bandwidth != "auto":
        return float(bandwidth)
    sample = rows.draw(min(MAX_BANDWIDTH_ROWS, max(MAX_CELLS // rows.X.shape[1], 2)))
    squares = np.empty((len(sample), len(sample)))
    Points(sample, rows.coordinates).kernel(sample, np.inf, squares)
    apart = squares[np.triu_indices(len(sample), 1)]
    apart = apart[apart > 0.0]
    if len(apart) == 0:
        return 1.0
    median = float(np.median(np.sqrt(apart)))
    return min(max(median, MIN_BANDWIDTH), MAX_BANDWIDTH)


@dataclass(frozen=True, eq=False)
class GaussianMap(FeatureMap):
    """Base class of maps that approximate the Gaussian kernel; each feature depends on the whole row."""

    name: ClassVar[MapName]

    coordinates: Annotated[Coordinates, Nested()]
    """Of the columns; the kernel is a function of their distances."""
    h: Annotated[Floats, Array(1, name="bandwidth"), Ge(MIN_BANDWIDTH), Le(MAX_BANDWIDTH)]
    """The bandwidth."""

    @property
    def bandwidth(self) -> float:
        return float(self.h[0])

    def describe(self, columns: Columns) -> dict[str, Any]:
        return {"map": self.name, "bandwidth": self.bandwidth, "n_components": self.size}

    @abstractmethod
    def fill(self, X: Floats, out: Floats) -> None:
        """Write the features of X, shape (n_rows, n_features), C-contiguous, to `out`, shape (n_rows, size)."""

    def features(self, X: Any) -> Floats:
        out = np.empty((X.shape[0], self.size))
        for rows in self.blocks(X):
            self.fill(lay_dense(X, rows), out[rows])
        return out

    def blocks(self, X: Any) -> Iterator[slice]:
        """Yield slices of rows short enough that their columns and features fit in little memory."""
        step = max(min(MAX_BLOCK_ROWS, MAX_BLOCK_CELLS // max(X.shape[1], self.size)), 1)
        for start in range(0, X.shape[0], step):
            yield slice(start, min(start + step, X.shape[0]))

    def transform(self, X: Any) -> LinearRows:
        """Return the rows of X, whose features are computed when needed."""
        return DenseMapRows(self, X, keep=False)


@dataclass(frozen=True, eq=False)
class FourierMap(GaussianMap):
    """Random Fourier features, which approximate the Gaussian kernel exp(-‖x - x'‖²/2h²).

    φ(x)·φ(x') is exp(-‖x - x'‖²/2h²) on average, exact at x = x', with a deviation of at most 1/√(2K).
    """

    name = "fourier"

    frequencies: Annotated[
        Floats, Array("n_coordinates", "n_waves"), Ge(-MAX_COORDINATE), Le(MAX_COORDINATE)
    ]

    def check(self) -> None:
        size, n_waves = self.frequencies.shape
        if size != self.coordinates.size or not n_waves:
            raise ArtifactError(
                f"frequencies must have {self.coordinates.size} rows and some columns, "
                f"got shape ({size}, {n_waves})"
            )

    @property
    def size(self) -> int:
        return 2 * int(self.frequencies.shape[1])

    def fill(self, X: Floats, out: Floats) -> None:
        c = self.coordinates
        unit = np.where(c.n_categories > 0, c.n_categories, c.unit)
        fill_waves(X, c.center, unit, c.category_index, c.missing_index, self.frequencies, out)

    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of terms and the largest waves amplitude · cos(ω·x - phase), with their main columns."""
        n_waves = self.frequencies.shape[1]
        cosine, sine = w[:n_waves], w[n_waves:]
        amplitude = np.hypot(cosine, sine) / np.sqrt(n_waves)
        terms = []
        for k in np.argsort(-amplitude, kind="stable")[:limit].tolist():
            along = self.coordinates.sums(abs(self.frequencies[:, k]))
            largest = np.argsort(-along, kind="stable")[:MAX_WAVE_COLUMNS].tolist()
            terms.append(
                {
                    "wave": k,
                    "amplitude": float(amplitude[k]),
                    "phase": float(np.arctan2(sine[k], cosine[k])),
                    "features": {
                        columns.names[j]: float(along[j]) for j in largest if along[j] > 0.0
                    },
                }
            )
        return self.size, terms


def fit_fourier(
    rows: MapRows, n_components: int, bandwidth: float | Literal["auto"]
) -> tuple[FourierMap, LinearRows]:
    """Return a map with random frequencies, and the training rows in it.

    A column's frequencies are drawn by Philox from its key, which depends on its values alone, and the seed: the same
    for every order of rows and columns. An odd `n_components` is rounded up.
    """
    c, n_waves = rows.coordinates, -(-n_components // 2)
    rows.check_size("fourier", c.size, n_waves)
    h = choose_bandwidth(rows, bandwidth)
    frequencies = np.empty((c.size, n_waves))
    keys = column_keys(rows.X, rows.positive, rows.weight)
    seen: dict[int, int] = {}
    for j, key in enumerate(keys.tolist()):
        seen[key] = copy = seen.get(key, 0) + 1  # equal columns each have frequencies of their own
        philox = np.random.Philox(key=[(key + copy) % 2**64, rows.seed])
        draw = np.random.Generator(philox).standard_normal
        frequencies[j] = draw(n_waves)
        if c.has_missing[j]:
            frequencies[c.missing_index[j]] = draw(n_waves)
        if c.n_categories[j]:
            start = c.category_index[j]
            frequencies[start : start + c.n_categories[j]] = draw((c.n_categories[j], n_waves))
    frequencies = np.clip(frequencies / h, -MAX_COORDINATE, MAX_COORDINATE)
    feature_map = FourierMap(c, np.array([h]), frequencies)
    return feature_map, DenseMapRows(feature_map, rows.X, keep=True)


@dataclass(frozen=True, eq=False)
class NystroemMap(GaussianMap):
    """Nyström features: the Gaussian kernel with each landmark l, exp(-‖x - l‖²/2h²)."""

    name = "nystroem"

    landmarks: Annotated[Floats, Array("n_landmarks", "n_features"), NOT_INFINITE]
    """As in the table: numbers in their units, categories as indices, NaN if missing."""

    def check(self) -> None:
        if not len(self.landmarks):
            raise ArtifactError("landmarks must have some rows, got none")
        n_categories = self.coordinates.n_categories
        categorical = n_categories > 0
        codes = np.nan_to_num(self.landmarks[:, categorical], nan=0.0)
        if ((codes < 0) | (codes >= n_categories[categorical]) | (codes % 1 != 0)).any():
            raise ArtifactError("landmarks must contain positions of categories")

    @cached_property
    def _points(self) -> Points:
        return Points(self.landmarks, self.coordinates)

    @property
    def size(self) -> int:
        return len(self.landmarks)

    def fill(self, X: Floats, out: Floats) -> None:
        """Write the kernel of each row of X with each landmark to `out`."""
        self._points.kernel(X, self.bandwidth, out)

    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of terms and the landmarks of largest weight, each with its values."""
        terms = []
        for k in np.argsort(-abs(w), kind="stable")[:limit].tolist():
            values = self.landmarks[k, :MAX_LANDMARK_COLUMNS].tolist()
            near = {columns.names[j]: columns.value(j, x) for j, x in enumerate(values)}
            terms.append({"landmark": k, "weight": float(w[k]), "near": near})
        return self.size, terms


class CombinedRows(LinearRows):
    """Coordinates are combinations of a map's features: mixᵀ · features; mix: (n_map_features, size)."""

    def __init__(self, rows: LinearRows, mix: Floats) -> None:
        self.size, self.n_rows = mix.shape[1], rows.n_rows
        self._rows, self._mix = rows, mix

    def scores(self, w: Floats) -> Floats:
        return self._rows.scores(self._unfold(w))

    def weighted_sum(self, row_weight: Floats) -> Floats:
        sums = self._rows.weighted_sum(row_weight)
        return np.asarray((self._mix * sums[:, None]).sum(axis=0))

    def take(self, rows: Ints) -> StoredRows:
        return store_points(self._rows.take(rows).points @ self._mix)

    def finish(self, w: Floats, mean: Floats) -> Floats:
        return self._unfold(w)

    def _unfold(self, w: Floats) -> Floats:
        return np.asarray((self._mix * w).sum(axis=1))


def fit_nystroem(
    rows: MapRows, n_components: int, bandwidth: float | Literal["auto"]
) -> tuple[NystroemMap, LinearRows]:
    """Return the map with landmarks drawn from the distinct rows, and the training rows in it; O(n_components³).

    The draw depends on the rows' values and the seed alone. All distinct rows are landmarks if there are not more. The
    training rows have one coordinate per eigenvalue of the landmarks' kernel that is above rounding.
    """
    from scipy.linalg import eigh

    c = rows.coordinates
    rows.check_size("nystroem", rows.X.shape[1], min(n_components, rows.X.shape[0]))
    h = choose_bandwidth(rows, bandwidth)
    feature_map = NystroemMap(c, np.array([h]), rows.draw(n_components))
    products = feature_map.features(feature_map.landmarks)
    values, vectors = eigh(products)
    kept = values > MIN_EIGENVALUE * values[-1]
    mix = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
    return feature_map, CombinedRows(DenseMapRows(feature_map, rows.X, keep=True), mix)


@kernel(numba.void(_CODES, _INTS, _FLOATS, numba.float64[::1]))
def score_codes(codes, first, effect, scores):  # type: ignore[no-untyped-def]
    """Add effect[first[j] + codes[j, i]], summed over the columns j, to scores[i]."""
    for j in range(len(codes)):
        for i in range(len(scores)):
            scores[i] += effect[first[j] + np.int64(codes[j, i])]


@kernel(numba.void(_CODES, _INTS, _FLOATS, _INTS, numba.float64[::1]))
def sum_codes(codes, rows, row_weight, first, sums):  # type: ignore[no-untyped-def]
    """Add each listed row's weight to the sums of its bins; first: index of each column's first bin in `sums`."""
    for j in range(len(codes)):
        for i in rows:
            sums[first[j] + np.int64(codes[j, i])] += row_weight[i]


@kernel(numba.float64(numba.float64, numba.float64, numba.float64), inner=True)
def _coordinate(x, center, unit):  # type: ignore[no-untyped-def]
    return min(
        max(min(max(x - center, -MAX_DIFFERENCE), MAX_DIFFERENCE) * unit, -MAX_COORDINATE),
        MAX_COORDINATE,
    )


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _INTS, _INTS, _MATRIX, _OUT_2))
def fill_waves(X, center, unit, first, missing, frequencies, out):  # type: ignore[no-untyped-def]
    """Write the cosine and the sine of each row along each frequency, divided by √K, to `out`.

    center, unit: (n_features,), float64; the number x has the coordinate (x - center) · unit. For a column of
        categories unit is their number; a value that is none of them counts as missing.
    first, missing: (n_features,), int64; rows of `frequencies` of each column's first category and of its missing
        values; -1 if there are none. Numbers have the first n_features rows.
    frequencies: (n_coordinates, K), float64.
    out: (n_rows, 2K), float64; written: cosines, then sines.
    """
    n_waves = frequencies.shape[1]
    angles = np.empty(n_waves)
    size = 1.0 / math.sqrt(n_waves)
    for i in range(len(X)):
        angles[:] = 0.0
        for j in range(X.shape[1]):
            x, coordinate, times = X[i, j], j, 1.0
            if np.isnan(x) or (first[j] >= 0 and not 0.0 <= x < unit[j]):
                coordinate = missing[j]
            elif first[j] >= 0:
                coordinate = first[j] + np.int64(x)
            else:
                times = _coordinate(x, center[j], unit[j])
            if coordinate < 0:
                continue
            along = frequencies[coordinate]
            for k in range(n_waves):
                angles[k] += times * along[k]
        for k in range(n_waves):
            out[i, k] = size * math.cos(angles[k])
            out[i, n_waves + k] = size * math.sin(angles[k])


@kernel(
    numba.void(_MATRIX, _FLOATS, _FLOATS, _INTS, _FLOATS, _MATRIX, _MATRIX, numba.float64, _OUT_2)
)
def fill_squares(X, center, unit, n_categories, counts, points, gaps, bandwidth, out):  # type: ignore[no-untyped-def]
    """Write exp(-d² / 2 bandwidth²) of the distance d of each row to each point; d² itself if the bandwidth is inf.

    X: (n_rows, n_features), float64; NaN is missing; a category is its index. A value that is no category of its column
        counts as missing.
    center, unit: (n_features,), float64; the number x has the coordinate (x - center) · unit.
    counts: (n_features,), float64; 1 if missing values of the column have a coordinate, else 0.
    points: (n_features, n_points), float64; a number's coordinate, 0 if missing; a category's index, -1 if missing.
    gaps: (n_features, n_points), float64; 1 if the point's value is missing, else 0.
    bandwidth: float.
    out: (n_rows, n_points), float64; written.
    """
    n_points = points.shape[1]
    for i in range(len(X)):
        squares = out[i]
        squares[:] = 0.0
        for j in range(X.shape[1]):
            there, at, gap = not np.isnan(X[i, j]), points[j], gaps[j]
            if n_categories[j] > 0:
                there = 0.0 <= X[i, j] < n_categories[j]
                x = X[i, j] if there else -1.0
                own = 1.0 if there else counts[j]
                for d in range(n_points):
                    if x != at[d]:
                        squares[d] += own + (counts[j] if gap[d] == 1.0 else 1.0)
                continue
            x = _coordinate(X[i, j], center[j], unit[j]) if there else 0.0
            for d in range(n_points):
                squares[d] += (x - at[d]) * (x - at[d])
            if counts[j] == 1.0:
                missing = 0.0 if there else 1.0
                for d in range(n_points):
                    squares[d] += (missing - gap[d]) * (missing - gap[d])
        if bandwidth < np.inf:
            factor = -0.5 / (bandwidth * bandwidth)
            for d in range(n_points):
                squares[d] = math.exp(factor * squares[d])
