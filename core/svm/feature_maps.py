"""Feature maps: what makes of a linear machine one that is not linear in the columns, and the map by bins.

A map is learnt at fit and kept; it makes of a table rows in the sense of `core.linear.design`, of which the solvers ask
scores and sums only. `gaussian_maps` has the two that approximate the Gaussian kernel. `BinnedMap` cuts each column at
quantiles, and a row has a 1 for the bin that its value falls in: a row's score is then a sum of a step function per
column. The ones are never laid out: rows are kept as codes, a byte per column, a twentieth of what the entries of a
sparse matrix would take.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import numba
import numpy as np
import numpy.typing as npt
from scipy import sparse

from core.arrays import check_array
from core.coding import Bins, Codes, fit_bins
from core.coding.bins import encode, encode_categories, gather_columns, missing_code
from core.errors import ArtifactError
from core.kernel import kernel
from core.linear.design import DenseRows, Ints, Rows, StoredRows, plain_coordinates, store_plain
from core.ranker import Arrays, Floats
from core.table import Categories

# Features of all rows are kept in memory up to so many bytes; beyond, they are made anew for each product.
MOST_BYTES = 2**29

# Rows whose features are made at a time, and the most numbers in such a block.
MOST_ROWS = 4096
MOST_NUMBERS = 2**22

MAX_BINS = 255  # codes are of one byte

# Categories that the description of a bin names.
CATEGORIES_SHOWN = 20

_CODES = numba.types.Array(numba.uint8, 2, "C", readonly=True)
# what a caller gives may be read-only
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INTS = numba.types.Array(numba.int64, 1, "C", readonly=True)


class Columns(NamedTuple):
    """What a description calls columns and their values.

    Attributes
    ----------
    names : tuple of str, one per column
    categories : tuple, one entry per column
        None for a column of numbers.
    """

    names: tuple[str, ...]
    categories: Categories

    def value(self, j: int, x: float) -> float | str | None:
        """Give a value as it was in the table; None where it is missing."""
        if np.isnan(x):
            return None
        own = self.categories[j]
        return x if own is None else own[int(x)]


class MappedRows(Rows):
    """Rows as a feature map places them."""

    @abstractmethod
    def finish(self, w: Floats, mean: Floats) -> Floats:
        """Give the coefficients of the map's own features.

        Parameters
        ----------
        w : ndarray of shape (size,), float64
            Of these rows' coordinates.
        mean : ndarray of shape (size,), float64
            Of the training rows' coordinates.
        """


class FeatureMap(ABC):
    """Turns rows into features of the row as a whole, or of single columns; learnt at fit."""

    @abstractmethod
    def place(self, X: Any) -> MappedRows:
        """Give rows with the map's features as coordinates.

        Parameters
        ----------
        X : ndarray or scipy.sparse CSR of shape (n, p), float64
            NaN is missing; a category is its position.
        """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of features."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Say what the map is, ready for JSON."""

    @abstractmethod
    def terms(self, w: Floats, columns: Columns, limit: int) -> list[dict[str, Any]]:
        """List what the features add to a score, the weightiest first."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Give the state as arrays."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], n_categories: Ints) -> Self:
        """Rebuild a map from `arrays()`.

        Raises
        ------
        ArtifactError
            An array is of another type or shape, or its values are of no map.
        """


class DenseMap(FeatureMap):
    """A map whose features are numbers of the row as a whole."""

    @abstractmethod
    def fill(self, X: Floats, out: Floats) -> None:
        """Write the features of rows, C-contiguous, to an array of shape (n, size)."""

    def features(self, X: Any) -> Floats:
        """Give the features of rows.

        Parameters
        ----------
        X : ndarray or scipy.sparse CSR of shape (n, p), float64

        Returns
        -------
        ndarray of shape (n, size), float64
        """
        out = np.empty((X.shape[0], self.size))
        for rows in self.blocks(X):
            self.fill(lay_dense(X, rows), out[rows])
        return out

    def blocks(self, X: Any) -> Iterator[slice]:
        """Cut rows into blocks, of which neither the columns nor the features take much memory."""
        step = max(min(MOST_ROWS, MOST_NUMBERS // max(X.shape[1], self.size)), 1)
        for start in range(0, X.shape[0], step):
            yield slice(start, min(start + step, X.shape[0]))

    def place(self, X: Any) -> MappedRows:
        """Give rows whose features are made when they are asked for."""
        return DenseMapRows(self, X, keep=False)


class DenseMapRows(MappedRows):
    """Rows by features that are kept where memory allows, or else made block by block for each product.

    Parameters
    ----------
    feature_map : DenseMap
    X : ndarray or scipy.sparse CSR of shape (n, p), float64
    keep : bool
        Whether the rows are read often.
    """

    def __init__(self, feature_map: DenseMap, X: Any, *, keep: bool) -> None:
        size = feature_map.size
        self.size, self.n_rows = size, X.shape[0]
        self._map, self._X = feature_map, X
        self._plain = plain_coordinates(size)
        kept = keep and 8 * self.n_rows * size <= MOST_BYTES
        self._kept = feature_map.features(X) if kept else None

    def scores(self, w: Floats) -> Floats:
        """Score every row by the coefficients of its features."""
        scores = np.empty(self.n_rows)
        for rows, block in self._blocks():
            scores[rows] = block.scores(w)
        return scores

    def total(self, share: Floats) -> Floats:
        """Sum the features of the rows, each times its share."""
        total = np.zeros(self.size)
        for rows, block in self._blocks(share):
            total += block.total(share[rows])
        return total

    def take(self, rows: Ints) -> StoredRows:
        """Take some rows, and store them."""
        kept = self._kept
        some = self._map.features(self._X[rows]) if kept is None else kept[rows]
        return store_plain(sparse.csr_array(some))

    def finish(self, w: Floats, mean: Floats) -> Floats:
        """Give w: these are the map's own features."""
        return w

    def _blocks(self, share: Floats | None = None) -> Iterator[tuple[slice, DenseRows]]:
        """Give the rows in blocks; those of which all have a share of 0 are left out."""
        for rows in self._map.blocks(self._X):
            if share is not None and not share[rows].any():
                continue
            kept = self._kept
            block = self._map.features(self._X[rows]) if kept is None else kept[rows]
            yield rows, DenseRows(block, self._plain)


def lay_dense(X: Any, rows: slice) -> Floats:
    """Give some rows as a C-contiguous array."""
    block = X[rows].toarray() if sparse.issparse(X) else X[rows]
    return np.ascontiguousarray(block)


class BinnedMap(FeatureMap):
    """1[x in bin] for each bin of each column, and one more for the missing.

    A missing value in a column where none was at fit adds the column's mean.

    Parameters
    ----------
    bins : Bins
    """

    def __init__(self, bins: Bins) -> None:
        self.bins = bins

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

    def place(self, X: Any) -> "BinnedRows":
        """Give rows by the codes of their values."""
        codes = np.empty((X.shape[1], len(X)), dtype=np.uint8)
        column, everyone = np.empty((1, len(X))), np.arange(len(X), dtype=np.uint32)
        missing = missing_code(np.uint8)
        for j, edges in enumerate(self.bins.edges):
            gather_columns(X, everyone, j, column)
            own = self.bins.category_bins[j]
            if own is None:
                encode(column[0], edges.copy(), missing, codes[j])  # copies: not read-only
            else:
                encode_categories(column[0], own, missing, codes[j])
        return BinnedRows(self, codes)

    def split(self, X: Floats, w: Floats) -> Floats:
        """Give what each column adds to each row's score, an array of X's shape."""
        return self.place(X).split(w)

    def by_column(self, parts: Floats) -> Floats:
        """Sum up what features add by the column that they come from."""
        return np.add.reduceat(parts, self.first)

    def describe(self) -> dict[str, Any]:
        """Say what the map is."""
        return {"map": "bins", "n_components": self.size}

    def terms(self, w: Floats, columns: Columns, limit: int) -> list[dict[str, Any]]:
        """List the bins by what they add beside the column's mean: numbers above one edge up to the next."""
        terms = []
        for k in np.argsort(-abs(w), kind="stable")[:limit].tolist():
            j = int(np.searchsorted(self.first, k, side="right")) - 1
            where, words = self._bin(j, k - int(self.first[j]), columns)
            weight = float(w[k])
            if weight != 0.0:
                said = f"{words} adds {weight:.4g}"
                terms.append(
                    {"feature": columns.names[j], **where, "weight": weight, "words": said}
                )
        return terms

    def _bin(self, j: int, code: int, columns: Columns) -> tuple[dict[str, Any], str]:
        """Say which values have a code, for JSON and in words."""
        name, edges = columns.names[j], self.bins.edges[j]
        categories, known = self.bins.category_bins[j], columns.categories[j]
        if code == self.n_bins[j]:
            return {"is": None}, f"{name} missing"
        if categories is not None and known is not None:
            own = [known[c] for c in np.flatnonzero(categories == code)[:CATEGORIES_SHOWN].tolist()]
            return {"is": own}, f"{name} is {' or '.join(own)}"
        low = float(edges[code - 1]) if code > 0 else None
        high = float(edges[code]) if code < len(edges) else None
        where = {"above": low, "up_to": high}
        if low is None:
            return where, f"{name} known" if high is None else f"{name} <= {high:.6g}"
        if high is None:
            return where, f"{name} > {low:.6g}"
        return where, f"{name} in ({low:.6g}, {high:.6g}]"

    def arrays(self) -> Arrays:
        """Give the state as arrays."""
        none = np.empty(0, dtype=np.int64)
        own = [none if bins is None else bins for bins in self.bins.category_bins]
        return {
            "edges": np.concatenate([np.empty(0), *self.bins.edges]),
            "n_edges": np.array([len(edges) for edges in self.bins.edges], dtype=np.int64),
            "category_bins": np.concatenate([none, *own]),
            "has_missing": self.bins.has_missing,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], n_categories: Ints) -> Self:
        """Rebuild a map; see `FeatureMap.from_arrays`."""
        p, categorical = len(n_categories), n_categories > 0
        n_edges, edges = arrays["n_edges"], arrays["edges"]
        check_array("n_edges", n_edges, np.int64, (p,))
        check_array("has_missing", arrays["has_missing"], np.bool_, (p,))
        check_array("edges", edges, np.float64, (edges.size,))
        if ((n_edges < 0) | (n_edges >= MAX_BINS)).any() or n_edges.sum() != edges.size:
            raise ArtifactError(
                f"n_edges must be from 0 to {MAX_BINS - 1} and sum to {edges.size}, the number of edges"
            )
        if n_edges[categorical].any():
            raise ArtifactError("n_edges must be 0 where a feature is categorical")
        owner = np.repeat(np.arange(p), n_edges)
        rising = (edges[1:] > edges[:-1]) | (owner[1:] != owner[:-1])
        if not np.isfinite(edges).all() or not rising.all():
            raise ArtifactError("edges must be finite, and rise within each feature")
        category_bins = arrays["category_bins"]
        check_array("category_bins", category_bins, np.int64, (int(n_categories.sum()),))
        if ((category_bins < 0) | (category_bins >= MAX_BINS)).any():
            raise ArtifactError(f"category_bins must be from 0 to {MAX_BINS - 1}")
        by_column = np.split(category_bins, np.cumsum(n_categories)[:-1])
        own = tuple(bins if of else None for bins, of in zip(by_column, categorical, strict=True))
        split = tuple(np.split(edges, np.cumsum(n_edges)[:-1]))
        return cls(Bins(split, arrays["has_missing"], own, np.dtype(np.uint8)))


class BinnedRows(MappedRows):
    """Rows by their codes.

    Parameters
    ----------
    feature_map : BinnedMap
    codes : ndarray of shape (p, n), uint8
        255 is missing; changed in place to the place after the column's last bin.
    """

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

    def total(self, share: Floats) -> Floats:
        """Sum the features of the rows, each times its share."""
        sums, rows = np.zeros(self.size), np.flatnonzero(share)
        sum_codes(self._codes, rows, share, self._map.first, sums)
        return sums

    def take(self, rows: Ints) -> StoredRows:
        """Take some rows, and store them."""
        places = (self._map.first[:, None] + self._codes[:, rows]).T
        n, p = places.shape
        starts = np.arange(0, n * p + 1, p)
        return store_plain(
            sparse.csr_array((np.ones(n * p), places.ravel(), starts), (n, self.size))
        )

    def split(self, w: Floats) -> Floats:
        """Give what each column adds to each row's score."""
        return np.ascontiguousarray(w[self._map.first[:, None] + self._codes].T)

    def finish(self, w: Floats, mean: Floats) -> Floats:
        """Give w, and the mean of a column where it misses a value but missed none at fit."""
        effects = w.copy()
        missing = self._map.first + self._map.n_bins
        absent = ~self._map.bins.has_missing
        effects[missing[absent]] = self._map.by_column(mean * w)[absent]
        return effects


def fit_binned(
    X: Floats, weight: Floats, n_categories: Ints, max_bins: int
) -> tuple[BinnedMap, BinnedRows]:
    """Cut columns at weighted quantiles.

    Parameters
    ----------
    X : ndarray of shape (n, p), float64
    weight : ndarray of shape (n,), float64
    n_categories : ndarray of shape (p,), int64
    max_bins : int
        At most 255; the missing one comes on top.

    Returns
    -------
    BinnedMap
    BinnedRows
        The training rows.
    """
    bins, codes = fit_bins(X, np.arange(len(X)), weight, max_bins, n_categories)
    found = BinnedMap(bins)
    return found, BinnedRows(found, codes)


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
