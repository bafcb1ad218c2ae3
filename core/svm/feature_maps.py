"""Feature maps: what makes of a linear machine one that is not linear in the columns, and the map by bins.

A map is learnt at fit and kept; it makes of a table rows in the sense of `core.linear.design`, of which the solvers ask
scores and sums only. `gaussian_maps` has the two that approximate the Gaussian kernel. `BinnedMap` cuts each column at
quantiles, and a row has a 1 for the bin that its value falls in: a row's score is then a sum of a step function per
column. The ones are never laid out: rows are kept as codes, a byte per column, a twentieth of what the entries of a
sparse matrix would take.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Lt
from scipy import sparse

from core.coding import Bins, Codes, fit_bins
from core.coding.bins import code_columns
from core.errors import ArtifactError
from core.kernel import kernel
from core.linear.design import (
    Columns,
    DenseRows,
    FeatureMap,
    Ints,
    Rows,
    StoredRows,
    plain_coordinates,
    store_plain,
)
from core.ranker import Floats
from core.state import FINITE, Array, Totals, pieces

# Features of all rows are kept in memory up to so many bytes; beyond, they are made anew for each product.
MOST_BYTES = 2**29

# Rows whose features are made at a time, and the most numbers in such a block.
MOST_ROWS = 4096
MOST_NUMBERS = 2**22

MapName = Literal["fourier", "nystroem", "bins"]

MAX_BINS = 255  # codes are of one byte

# Categories that the description of a bin names.
CATEGORIES_SHOWN = 20

_CODES = numba.types.Array(numba.uint8, 2, "C", readonly=True)
# what a caller gives may be read-only
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INTS = numba.types.Array(numba.int64, 1, "C", readonly=True)


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

    def transform(self, X: Any) -> Rows:
        """Give rows whose features are made when they are asked for."""
        return DenseMapRows(self, X, keep=False)


class DenseMapRows(Rows):
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
        return store_plain(some)

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
    has_missing: Annotated[npt.NDArray[np.bool_], Array("n_features")]

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
        """Give rows by the codes of their values."""
        return BinnedRows(self, code_columns(X, np.arange(len(X)), self.bins))

    def split(self, X: Floats, w: Floats) -> Floats:
        """Give what each column adds to each row's score, an array of X's shape."""
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


class BinnedRows(Rows):
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
        absent = ~self._map.has_missing
        effects[missing[absent]] = self._map.sums(mean * w)[absent]
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
    found = BinnedMap.of(bins, n_categories)
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
