"""Feature maps: what makes of a linear machine one that is not linear in the columns.

A map is learnt at fit and kept; it makes of a table rows in the sense of `core.linear.design`, of which the solvers ask
scores and sums only.

`BinnedMap` cuts each column at quantiles, and a row has a 1 for the bin that its value falls in: its score is a sum of
a step function per column. Rows are kept as codes, a byte per column.

`FourierMap` and `NystroemMap` stand for the Gaussian kernel exp(-‖x - x'‖²/2h²) over the columns' coordinates: numbers
standardised, 0 where missing, coordinates of 0 and 1 for categories and for missing values. Fourier: cosines and sines
whose products are, on average, the kernel. Nyström: the kernel with some rows, the landmarks, in coordinates in which
it is a plain product. With K the kernel of the landmarks, K = U Λ Uᵀ, a row's features are Λ^-½ Uᵀ k(x), k(x) its
kernel with each landmark: their products are the kernel projected on the landmarks' span. Rows are kept as k(x), and
Λ^-½ Uᵀ is applied to coefficients and to sums: scores are Σ α_l k(x, l).

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
from core.explain.conditions import CategorySet, Interval, in_words
from core.kernels import kernel
from core.linear.design import (
    FARTHEST,
    Columns,
    Coordinates,
    DenseRows,
    FeatureMap,
    Ints,
    Rows,
    StoredRows,
    identity_coordinates,
    store_points,
)

# Features of all rows are kept in memory up to so many bytes; beyond, they are made anew for each product.
MAX_BYTES = 2**29

# Rows whose features are made at a time, and the most numbers in such a block.
MAX_ROWS = 4096
MAX_NUMBERS = 2**22

MapName = Literal["fourier", "nystroem", "bins"]

MAX_BINS = 255  # codes are of one byte

# Categories that the description of a bin names.
CATEGORIES_SHOWN = 20

# Rows whose distances the bandwidth is the median of.
SAMPLE = 500

# Of the seed's draws, those of rows; another than that of what is held out.
DRAW = 1

# Numbers that a map may keep for its frequencies or landmarks.
MAX_CELLS = 2**25

MIN_BANDWIDTH, GREATEST_BANDWIDTH = 1e-100, 1e110

# Of the greatest eigenvalue, the least that counts: below, rounding does.
MIN_EIGENVALUE = 1e-10

# Columns that the description of a landmark names, and of a wave.
LANDMARK_COLUMNS, WAVE_COLUMNS = 20, 5

# A coordinate is cut off here, so that no sum of squares or products is infinite.
FAR = 1e100

_CODES = numba.types.Array(numba.uint8, 2, "C", readonly=True)
# what a caller gives may be read-only
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INTS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)
_OUT_2 = numba.float64[:, ::1]


class DenseMapRows(Rows):
    """Rows by features that are made block by block for each product, or kept where asked for and memory allows."""

    def __init__(self, feature_map: "GaussianMap", X: Any, *, keep: bool) -> None:
        size = feature_map.size
        self.size, self.n_rows = size, X.shape[0]
        self._map, self._X = feature_map, X
        self._identity = identity_coordinates(size)
        kept = keep and 8 * self.n_rows * size <= MAX_BYTES
        self._kept = feature_map.features(X) if kept else None

    def scores(self, w: Floats) -> Floats:
        """Score every row by the coefficients of its features."""
        scores = np.empty(self.n_rows)
        for rows, block in self._blocks():
            scores[rows] = block.scores(w)
        return scores

    def weighted_sum(self, share: Floats) -> Floats:
        """Sum the features of the rows, each times its share."""
        total = np.zeros(self.size)
        for rows, block in self._blocks(share):
            total += block.weighted_sum(share[rows])
        return total

    def take(self, rows: Ints) -> StoredRows:
        """Take some rows, and store them."""
        kept = self._kept
        some = self._map.features(self._X[rows]) if kept is None else kept[rows]
        return store_points(some)

    def _blocks(self, share: Floats | None = None) -> Iterator[tuple[slice, DenseRows]]:
        """Return the rows in blocks; those of which all have a share of 0 are left out."""
        for rows in self._map.blocks(self._X):
            if share is not None and not share[rows].any():
                continue
            kept = self._kept
            block = self._map.features(self._X[rows]) if kept is None else kept[rows]
            yield rows, DenseRows(block, self._identity)


def lay_dense(X: Any, rows: slice) -> Floats:
    """Return some rows as a C-contiguous array."""
    block = X[rows].toarray() if sparse.issparse(X) else X[rows]
    return np.ascontiguousarray(block)


@dataclass(frozen=True, eq=False)
class BinnedMap(FeatureMap):
    """1[x in bin] for each bin of each column, and one more for the missing.

    A missing value in a column where none was at fit adds the column's mean.

    Attributes
    ----------
    n_categories : ndarray of shape (p,), int64
        0 for a column of numbers.
    edges : ndarray of shape (n_edges.sum(),), float64
        Between the bins, rising within each column.
    n_edges : ndarray of shape (p,), int64
    category_bins : ndarray of shape (n_categories.sum(),), int64
        The bin of each category, one column after the other.
    has_missing : ndarray of shape (p,), bool
        Whether a value was missing at fit.
    """

    n_categories: Ints
    n_edges: Annotated[Ints, Array("n_features"), Ge(0), Lt(MAX_BINS), Totals("n_all_edges")]
    edges: Annotated[Floats, Array("n_all_edges"), FINITE]
    category_bins: Annotated[Ints, Array("n_all_categories"), Ge(0), Lt(MAX_BINS)]
    has_missing: Annotated[Booleans, Array("n_features")]

    def check(self) -> None:
        """Refuse edges that do not rise, and of categories."""
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
        """Take bins that were learnt."""
        own = [each for each in bins.category_bins if each is not None]
        return cls(
            n_categories,
            np.array([len(edges) for edges in bins.edges], dtype=np.int64),
            np.concatenate([np.empty(0), *bins.edges]),
            np.concatenate([np.empty(0, dtype=np.int64), *own]),
            bins.has_missing,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the fields: a reader may map arrays to memory that is read-only."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def bins(self) -> Bins:
        """The bins, column by column; their edges are a copy that can be written to, as kernels take them."""
        edges = pieces(self.edges.copy(), self.n_edges)
        categories = pieces(self.category_bins, self.n_categories)
        known = self.n_categories.tolist()
        own = tuple(each if n else None for each, n in zip(categories, known, strict=True))
        return Bins(tuple(edges), self.has_missing, own, np.dtype(np.uint8))

    @cached_property
    def n_bins(self) -> Ints:
        """Number of bins of each column, the missing one apart."""
        return self.bins.n_bins

    @cached_property
    def first(self) -> Ints:
        """The first feature of each column; its last is that of the missing."""
        ends = np.cumsum(self.n_bins + 1)
        return ends - self.n_bins - 1

    @property
    def size(self) -> int:
        """Number of features."""
        return int(self.n_bins.sum()) + len(self.n_bins)

    def transform(self, X: Any) -> "BinnedRows":
        """Return rows by the codes of their values."""
        return BinnedRows(self, code_columns(X, np.arange(len(X)), self.bins))

    def split(self, X: Floats, w: Floats) -> Floats:
        """Return what each column adds to each row's score, an array of X's shape."""
        return self.transform(X).split(w)

    def sums(self, parts: Floats) -> Floats:
        """Sum up what features add by the column that they come from."""
        return np.add.reduceat(parts, self.first)

    def describe(self) -> dict[str, Any]:
        """Say what the map is."""
        return {"map": "bins", "n_components": self.size}

    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """List the bins by what they add beside the column's mean: numbers above one edge up to the next."""
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
        """Say which values have a code, for JSON and in words."""
        name, edges = columns.names[j], bins.edges[j]
        categories, known = bins.category_bins[j], columns.categories[j]
        if code == self.n_bins[j]:
            return {"is": None}, f"{name} is missing"
        if categories is not None and known is not None:
            held = CategorySet(categories == code, missing=False)
            own = [known[c] for c in np.flatnonzero(held.held)[:CATEGORIES_SHOWN].tolist()]
            return {"is": own}, in_words(name, held, known, mentions_missing=False)
        low = float(edges[code - 1]) if code > 0 else None
        high = float(edges[code]) if code < len(edges) else None
        inside = Interval(
            -math.inf if low is None else low, math.inf if high is None else high, missing=False
        )
        where = {"above": low, "up_to": high}
        return where, in_words(name, inside, None, mentions_missing=False)


class BinnedRows(Rows):
    """Rows by their codes, (p, n); 255, missing, is changed in place to the place after the column's last bin."""

    def __init__(self, feature_map: BinnedMap, codes: Codes) -> None:
        self.size, self.n_rows = feature_map.size, codes.shape[1]
        self._map, self._codes = feature_map, codes
        for column, n_bins in zip(codes, feature_map.n_bins, strict=True):
            np.minimum(column, n_bins, out=column, casting="unsafe")

    def scores(self, w: Floats) -> Floats:
        """Score every row."""
        scores = np.zeros(self.n_rows)
        score_codes(self._codes, self._map.first, w, scores)
        return scores

    def weighted_sum(self, share: Floats) -> Floats:
        """Sum the features of the rows, each times its share."""
        sums, rows = np.zeros(self.size), np.flatnonzero(share)
        sum_codes(self._codes, rows, share, self._map.first, sums)
        return sums

    def take(self, rows: Ints) -> StoredRows:
        """Take some rows, and store them."""
        places = (self._map.first[:, None] + self._codes[:, rows]).T
        n, p = places.shape
        starts = np.arange(0, n * p + 1, p)
        return store_points(
            sparse.csr_array((np.ones(n * p), places.ravel(), starts), (n, self.size))
        )

    def split(self, w: Floats) -> Floats:
        """Return what each column adds to each row's score."""
        return np.ascontiguousarray(w[self._map.first[:, None] + self._codes].T)

    def finish(self, w: Floats, mean: Floats) -> Floats:
        """Return w, and the mean of a column where it misses a value but missed none at fit."""
        effects = w.copy()
        missing = self._map.first + self._map.n_bins
        absent = ~self._map.has_missing
        effects[missing[absent]] = self._map.sums(mean * w)[absent]
        return effects


def fit_binned(
    X: Floats, weight: Floats, n_categories: Ints, max_bins: int
) -> tuple[BinnedMap, BinnedRows]:
    """Cut columns at weighted quantiles in at most `max_bins`, and one for the missing; return the training rows, too."""
    bins, codes = fit_bins(X, np.arange(len(X)), weight, max_bins, n_categories)
    found = BinnedMap.of(bins, n_categories)
    return found, BinnedRows(found, codes)


class TrainingRows(NamedTuple):
    """What a map is learnt from: X is an array or a CSR matrix, the weights are above 0."""

    X: Any
    positive: npt.NDArray[np.bool_]
    weight: Floats
    coordinates: Coordinates
    seed: int

    def draw(self, most: int) -> Floats:
        """Draw distinct rows by their values: the same whatever the order of rows and columns, and the weights."""
        keys = scramble_keys(row_keys(self.X, self.positive, self.weight), self.seed)
        _, first = np.unique(scramble_keys(keys, DRAW), return_index=True)
        taken = first[:most]
        rows = self.X[taken]
        return lay_dense(rows, slice(0, len(taken)))

    def check_size(self, name: str, n_rows: int, n_columns: int) -> None:
        """Refuse a map that would take much memory."""
        if n_rows * n_columns > MAX_CELLS:
            raise InvalidData(
                f"feature_map {name!r} must keep at most {MAX_CELLS:,} numbers, "
                f"got {n_rows:,} x {n_columns:,} (columns and categories x n_components)"
            )


class Points:
    """Some rows, given as they are in the table, to which others have distances."""

    def __init__(self, rows: Floats, coordinates: Coordinates) -> None:
        self._coordinates = coordinates
        gaps, categorical = np.isnan(rows), coordinates.n_categories > 0
        with np.errstate(over="ignore"):  # what is infinite is cut off
            steps = np.clip(rows - coordinates.center, -FARTHEST, FARTHEST)
            points = np.clip(np.nan_to_num(steps, nan=0.0) * coordinates.unit, -FAR, FAR)
        codes = np.where(gaps, -1.0, rows)
        points[:, categorical] = codes[:, categorical]
        self._points = np.ascontiguousarray(points.T)
        self._gaps = np.ascontiguousarray(gaps.T, dtype=np.float64)

    def kernel(self, X: Floats, bandwidth: float, out: Floats) -> None:
        """Write the Gaussian kernel of each row of X, C-contiguous, and each point; see `fill_squares`."""
        c = self._coordinates
        counts = c.has_missing.astype(np.float64)
        known = c.center, c.unit, c.n_categories, counts
        fill_squares(X, *known, self._points, self._gaps, float(bandwidth), out)


def choose_bandwidth(rows: TrainingRows, asked: float | Literal["auto"]) -> float:
    """Return the bandwidth h; "auto": the median distance of `SAMPLE` distinct rows, fewer of very many columns, or 1."""
    if asked != "auto":
        return float(asked)
    sample = rows.draw(min(SAMPLE, max(MAX_CELLS // rows.X.shape[1], 2)))
    squares = np.empty((len(sample), len(sample)))
    Points(sample, rows.coordinates).kernel(sample, np.inf, squares)
    apart = squares[np.triu_indices(len(sample), 1)]
    apart = apart[apart > 0.0]
    if len(apart) == 0:
        return 1.0
    median = float(np.median(np.sqrt(apart)))
    return min(max(median, MIN_BANDWIDTH), GREATEST_BANDWIDTH)


@dataclass(frozen=True, eq=False)
class GaussianMap(FeatureMap):
    """A map for the Gaussian kernel, whose features are numbers of the row as a whole.

    Attributes
    ----------
    coordinates : Coordinates
        Of the columns, on which the kernel stands.
    h : ndarray of shape (1,), float64
        The bandwidth.
    """

    name: ClassVar[MapName]

    coordinates: Annotated[Coordinates, Nested()]
    h: Annotated[Floats, Array(1, name="bandwidth"), Ge(MIN_BANDWIDTH), Le(GREATEST_BANDWIDTH)]

    @property
    def bandwidth(self) -> float:
        """h of the kernel."""
        return float(self.h[0])

    def describe(self) -> dict[str, Any]:
        """Say what the map is."""
        return {"map": self.name, "bandwidth": self.bandwidth, "n_components": self.size}

    @abstractmethod
    def fill(self, X: Floats, out: Floats) -> None:
        """Write the features of rows, C-contiguous, to an array of shape (n, size)."""

    def features(self, X: Any) -> Floats:
        """Return the features, (n, size), of the rows of an array or a CSR matrix."""
        out = np.empty((X.shape[0], self.size))
        for rows in self.blocks(X):
            self.fill(lay_dense(X, rows), out[rows])
        return out

    def blocks(self, X: Any) -> Iterator[slice]:
        """Cut rows into blocks, of which neither the columns nor the features take much memory."""
        step = max(min(MAX_ROWS, MAX_NUMBERS // max(X.shape[1], self.size)), 1)
        for start in range(0, X.shape[0], step):
            yield slice(start, min(start + step, X.shape[0]))

    def transform(self, X: Any) -> Rows:
        """Return rows whose features are made when they are asked for."""
        return DenseMapRows(self, X, keep=False)


@dataclass(frozen=True, eq=False)
class FourierMap(GaussianMap):
    """φ(x) = √(1/K) (cos ω_1·x, ..., cos ω_K·x, sin ω_1·x, ..., sin ω_K·x), the ω drawn from N(0, 1/h²).

    φ(x)·φ(x') is exp(-‖x - x'‖²/2h²) on average, exact at x = x', with a deviation of at most 1/√(2K).

    Attributes
    ----------
    frequencies : ndarray of shape (n_coordinates, K), float64
    """

    name = "fourier"

    frequencies: Annotated[Floats, Array("n_coordinates", "n_waves"), Ge(-FAR), Le(FAR)]

    def check(self) -> None:
        """Refuse frequencies that are not of the coordinates."""
        size, n_waves = self.frequencies.shape
        if size != self.coordinates.size or not n_waves:
            raise ArtifactError(
                f"frequencies must have {self.coordinates.size} rows and some columns, "
                f"got shape ({size}, {n_waves})"
            )

    @property
    def size(self) -> int:
        """Number of features, two per frequency."""
        return 2 * int(self.frequencies.shape[1])

    def fill(self, X: Floats, out: Floats) -> None:
        """Write the features of rows."""
        c = self.coordinates
        unit = np.where(c.n_categories > 0, c.n_categories, c.unit)
        places = c.category_places, c.missing_places
        fill_waves(X, c.center, unit, *places, self.frequencies, out)

    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """List the waves, each amplitude · cos(ω·x - phase), with the columns along which it runs most."""
        n_waves = self.frequencies.shape[1]
        cosine, sine = w[:n_waves], w[n_waves:]
        amplitude = np.hypot(cosine, sine) / np.sqrt(n_waves)
        terms = []
        for k in np.argsort(-amplitude, kind="stable")[:limit].tolist():
            along = self.coordinates.sums(abs(self.frequencies[:, k]))
            most = np.argsort(-along, kind="stable")[:WAVE_COLUMNS].tolist()
            terms.append(
                {
                    "wave": k,
                    "amplitude": float(amplitude[k]),
                    "phase": float(np.arctan2(sine[k], cosine[k])),
                    "features": {columns.names[j]: float(along[j]) for j in most if along[j] > 0.0},
                }
            )
        return self.size, terms


def fit_fourier(
    rows: TrainingRows, n_components: int, bandwidth: float | Literal["auto"]
) -> tuple[FourierMap, Rows]:
    """Draw the frequencies.

    A column's are drawn by Philox from its key, which follows from its values, and the seed: the same whatever the
    order of rows and columns. There is a feature more than asked for where that number is odd.
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
            frequencies[c.missing_places[j]] = draw(n_waves)
        if c.n_categories[j]:
            start = c.category_places[j]
            frequencies[start : start + c.n_categories[j]] = draw((c.n_categories[j], n_waves))
    found = FourierMap(c, np.array([h]), np.clip(frequencies / h, -FAR, FAR))
    return found, DenseMapRows(found, rows.X, keep=True)


@dataclass(frozen=True, eq=False)
class NystroemMap(GaussianMap):
    """k(x) = (exp(-‖x - l‖²/2h²)) for each landmark l.

    Attributes
    ----------
    landmarks : ndarray of shape (D, p), float64
        As in the table: numbers in their units, categories by position, NaN where missing.
    """

    name = "nystroem"

    landmarks: Annotated[Floats, Array("n_landmarks", "n_features"), NOT_INFINITE]

    def check(self) -> None:
        """Refuse landmarks that are no rows of the table."""
        if not len(self.landmarks):
            raise ArtifactError("landmarks must have some rows, got none")
        n_categories = self.coordinates.n_categories
        categorical = n_categories > 0
        codes = np.nan_to_num(self.landmarks[:, categorical], nan=0.0)
        if ((codes < 0) | (codes >= n_categories[categorical]) | (codes % 1 != 0)).any():
            raise ArtifactError("landmarks must hold positions of categories")

    @cached_property
    def _points(self) -> Points:
        return Points(self.landmarks, self.coordinates)

    @property
    def size(self) -> int:
        """Number of landmarks."""
        return len(self.landmarks)

    def fill(self, X: Floats, out: Floats) -> None:
        """Write the kernel of rows and landmarks."""
        self._points.kernel(X, self.bandwidth, out)

    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """List the landmarks, each with its weight and its values."""
        terms = []
        for k in np.argsort(-abs(w), kind="stable")[:limit].tolist():
            values = self.landmarks[k, :LANDMARK_COLUMNS].tolist()
            near = {columns.names[j]: columns.value(j, x) for j, x in enumerate(values)}
            terms.append({"landmark": k, "weight": float(w[k]), "near": near})
        return self.size, terms


class MixedRows(Rows):
    """Rows whose coordinates are mixtures of a map's features: mix.T (size, n_features) times the features."""

    def __init__(self, rows: Rows, mix: Floats) -> None:
        self.size, self.n_rows = mix.shape[1], rows.n_rows
        self._rows, self._mix = rows, mix

    def scores(self, w: Floats) -> Floats:
        """Score every row."""
        return self._rows.scores(self._unfold(w))

    def weighted_sum(self, share: Floats) -> Floats:
        """Sum the coordinates of the rows, each times its share."""
        sums = self._rows.weighted_sum(share)
        return np.asarray((self._mix * sums[:, None]).sum(axis=0))

    def take(self, rows: Ints) -> StoredRows:
        """Take some rows, and store them."""
        return store_points(self._rows.take(rows).points @ self._mix)

    def finish(self, w: Floats, mean: Floats) -> Floats:
        """Return the coefficients of the features."""
        return self._unfold(w)

    def _unfold(self, w: Floats) -> Floats:
        return np.asarray((self._mix * w).sum(axis=1))


def fit_nystroem(
    rows: TrainingRows, n_components: int, bandwidth: float | Literal["auto"]
) -> tuple[NystroemMap, Rows]:
    """Draw the landmarks among the distinct rows, by the rows' values and the seed; all where they are fewer.

    The training rows come in as many coordinates as the landmarks' kernel has eigenvalues that count.
    O(n_components³).
    """
    from scipy.linalg import eigh

    c = rows.coordinates
    rows.check_size("nystroem", rows.X.shape[1], min(n_components, rows.X.shape[0]))
    h = choose_bandwidth(rows, bandwidth)
    found = NystroemMap(c, np.array([h]), rows.draw(n_components))
    products = found.features(found.landmarks)
    values, vectors = eigh(products)
    kept = values > MIN_EIGENVALUE * values[-1]
    mix = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
    return found, MixedRows(DenseMapRows(found, rows.X, keep=True), mix)


@kernel(numba.void(_CODES, _INTS, _FLOATS, numba.float64[::1]))
def score_codes(codes, first, effect, scores):  # type: ignore[no-untyped-def]
    """Add effect[first + code] of each column to each row's score; codes are column by column."""
    for j in range(len(codes)):
        for i in range(len(scores)):
            scores[i] += effect[first[j] + np.int64(codes[j, i])]


@kernel(numba.void(_CODES, _INTS, _FLOATS, _INTS, numba.float64[::1]))
def sum_codes(codes, rows, share, first, sums):  # type: ignore[no-untyped-def]
    """Add the share of each of some rows to the sum of each of its codes."""
    for j in range(len(codes)):
        for i in rows:
            sums[first[j] + np.int64(codes[j, i])] += share[i]


@kernel(numba.float64(numba.float64, numba.float64, numba.float64), inner=True)
def _coordinate(x, center, unit):  # type: ignore[no-untyped-def]
    return min(max(min(max(x - center, -FARTHEST), FARTHEST) * unit, -FAR), FAR)


@kernel(numba.void(_MATRIX, _FLOATS, _FLOATS, _INTS, _INTS, _MATRIX, _OUT_2))
def fill_waves(X, center, unit, first, gap, frequencies, out):  # type: ignore[no-untyped-def]
    """Write the cosine and the sine of each row along each frequency, divided by √K, to `out` of shape (n, 2K).

    The number x is the coordinate (x - center) · unit. Of a column of categories unit is their number: what is none of
    them counts as missing. `first` and `gap` are the places in `frequencies`, (n_coordinates, K), of a column's
    categories and of its missing values, -1 for none; numbers have the first p places.
    """
    n_waves = frequencies.shape[1]
    angles = np.empty(n_waves)
    size = 1.0 / math.sqrt(n_waves)
    for i in range(len(X)):
        angles[:] = 0.0
        for j in range(X.shape[1]):
            x, place, times = X[i, j], j, 1.0
            if np.isnan(x) or (first[j] >= 0 and not 0.0 <= x < unit[j]):
                place = gap[j]
            elif first[j] >= 0:
                place = first[j] + np.int64(x)
            else:
                times = _coordinate(x, center[j], unit[j])
            if place < 0:
                continue
            along = frequencies[place]
            for k in range(n_waves):
                angles[k] += times * along[k]
        for k in range(n_waves):
            out[i, k] = size * math.cos(angles[k])
            out[i, n_waves + k] = size * math.sin(angles[k])


@kernel(
    numba.void(_MATRIX, _FLOATS, _FLOATS, _INTS, _FLOATS, _MATRIX, _MATRIX, numba.float64, _OUT_2)
)
def fill_squares(X, center, unit, n_categories, counts, points, gaps, bandwidth, out):  # type: ignore[no-untyped-def]
    """Write exp(-square / 2 bandwidth²) of each row's distance to each of D points; with inf the squares themselves.

    The number x is the coordinate (x - center) · unit; what is none of a column's categories counts as missing.
    `points` (p, D) has a point's coordinate, 0 where it is missing; of a column of categories the category, -1 where it
    is missing. `gaps` (p, D) is 1 where the point's value is missing, `counts` (p,) where that is a coordinate.
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
