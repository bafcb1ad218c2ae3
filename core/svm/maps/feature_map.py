"""What a feature map is: rows as points of another space, in which a linear score need not be linear in the columns."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from core.ranker import Arrays, Floats
from core.svm.design import Coordinates, DenseRows, Ints, Rows, StoredRows, store_plain
from core.table import Categories

# Features of all rows are kept in memory up to so many bytes; beyond, they are made anew for each product.
MOST_BYTES = 2**29

# Rows whose features are made at a time, and the most numbers in such a block.
MOST_ROWS = 4096
MOST_NUMBERS = 2**22


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
    """A map whose features are numbers of the row as a whole.

    Attributes
    ----------
    coordinates : Coordinates
        Of the columns, on which the features stand.
    """

    coordinates: Coordinates

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
        none = np.zeros(size, dtype=np.int64)
        self._plain = Coordinates(np.zeros(size), np.ones(size), none.astype(np.bool_), none)
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
