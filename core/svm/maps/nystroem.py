"""Nyström features: the Gaussian kernel with some rows, the landmarks, in coordinates in which it is a plain product.

With K the kernel of the landmarks, K = U Λ Uᵀ, a row's features are Λ^-½ Uᵀ k(x), k(x) its kernel with each landmark:
their products are the kernel projected on the landmarks' span, the kernel itself where all rows are landmarks. They are
never laid out. Rows are kept as k(x), and Λ^-½ Uᵀ is applied to coefficients and to sums: scores are Σ α_l k(x, l).
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from core.errors import ArtifactError
from core.ranker import Arrays, Floats
from core.svm.design import Coordinates, Ints, StoredRows, store_plain

from .feature_map import Columns, DenseMap, DenseMapRows, MappedRows
from .gaussian import Points, TrainingRows, choose_bandwidth, coordinate_arrays, read_coordinates

# Of the greatest eigenvalue, the least that counts: below, rounding does.
LEAST_EIGENVALUE = 1e-10

# Columns that a landmark's description names.
COLUMNS_SHOWN = 20


class NystroemMap(DenseMap):
    """k(x) = (exp(-‖x - l‖²/2h²)) for each landmark l.

    Parameters
    ----------
    landmarks : Points
    bandwidth : float
        h.

    References
    ----------
    C. K. I. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.
    """

    def __init__(self, landmarks: Points, bandwidth: float) -> None:
        self.landmarks, self.bandwidth = landmarks, bandwidth
        self.coordinates = landmarks.coordinates

    @property
    def size(self) -> int:
        """Number of landmarks."""
        return len(self.landmarks)

    def fill(self, X: Floats, out: Floats) -> None:
        """Write the kernel of rows and landmarks."""
        self.landmarks.kernel(X, self.bandwidth, out)

    def describe(self) -> dict[str, Any]:
        """Say what the map is."""
        return {"map": "nystroem", "bandwidth": self.bandwidth, "n_components": self.size}

    def terms(self, w: Floats, columns: Columns, limit: int) -> list[dict[str, Any]]:
        """List the landmarks, each with its weight and its values."""
        rows = self.landmarks.rows
        terms = []
        for k in np.argsort(-abs(w), kind="stable")[:limit].tolist():
            values = rows[k, :COLUMNS_SHOWN].tolist()
            near = {columns.names[j]: columns.value(j, x) for j, x in enumerate(values)}
            terms.append({"landmark": k, "weight": float(w[k]), "near": near})
        return terms

    def arrays(self) -> Arrays:
        """Give the state as arrays."""
        return coordinate_arrays(self.coordinates, self.bandwidth) | {
            "landmarks": self.landmarks.rows
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], n_categories: Ints) -> Self:
        """Rebuild a map; see `FeatureMap.from_arrays`."""
        coordinates, bandwidth = read_coordinates(arrays, n_categories)
        rows, p = arrays["landmarks"], len(n_categories)
        if rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] != p or not len(rows):
            raise ArtifactError(
                f"landmarks must be float64 with {p} columns, got {rows.dtype} of shape {rows.shape}"
            )
        if np.isinf(rows).any():
            raise ArtifactError("landmarks must be finite or NaN")
        categorical = n_categories > 0
        codes = np.nan_to_num(rows[:, categorical], nan=0.0)
        if ((codes < 0) | (codes >= n_categories[categorical]) | (codes % 1 != 0)).any():
            raise ArtifactError("landmarks must hold positions of categories")
        return cls(Points(rows, coordinates), bandwidth)


class MixedRows(MappedRows):
    """Rows whose coordinates are mixtures of a map's features: mix.T times the features.

    Parameters
    ----------
    rows : MappedRows
    mix : ndarray of shape (n_features, size), float64
    """

    def __init__(self, rows: MappedRows, mix: Floats) -> None:
        self.size, self.n_rows = mix.shape[1], rows.n_rows
        self._rows, self._mix = rows, mix

    def scores(self, w: Floats) -> Floats:
        """Score every row."""
        return self._rows.scores(self._unfold(w))

    def total(self, share: Floats) -> Floats:
        """Sum the coordinates of the rows, each times its share."""
        sums = self._rows.total(share)
        return np.asarray((self._mix * sums[:, None]).sum(axis=0))

    def take(self, rows: Ints) -> StoredRows:
        """Take some rows, and store them."""
        return store_plain(sparse.csr_array(self._rows.take(rows).points @ self._mix))

    def finish(self, w: Floats, mean: Floats) -> Floats:
        """Give the coefficients of the features."""
        return self._unfold(w)

    def _unfold(self, w: Floats) -> Floats:
        return np.asarray(
            (self._mix * w).sum(axis=1)
        )  # not by BLAS: its sums depend on its threads


def fit_nystroem(
    rows: TrainingRows, n_components: int, bandwidth: float | Literal["auto"]
) -> tuple[NystroemMap, MappedRows]:
    """Draw the landmarks among the distinct rows, by the rows' values and the seed.

    Parameters
    ----------
    rows : TrainingRows
    n_components : int
        Number of landmarks; all distinct rows where they are fewer, which gives the exact kernel.
    bandwidth : float or "auto"

    Returns
    -------
    NystroemMap
    MappedRows
        The training rows, in as many coordinates as the landmarks' kernel has eigenvalues that count.

    Notes
    -----
    O(n_components³) for the eigenvalues.
    """
    from scipy.linalg import eigh
    from threadpoolctl import threadpool_limits

    c: Coordinates = rows.coordinates
    rows.check_size("nystroem", rows.X.shape[1], min(n_components, rows.X.shape[0]))
    h = choose_bandwidth(rows, bandwidth)
    found = NystroemMap(Points(rows.draw(n_components), c), h)
    kernel = found.features(found.landmarks.rows)
    with threadpool_limits(limits=1, user_api="blas"):  # whose sums depend on its threads
        values, vectors = eigh(kernel)
    kept = values > LEAST_EIGENVALUE * values[-1]
    mix = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
    return found, MixedRows(DenseMapRows(found, rows.X, keep=True), mix)
