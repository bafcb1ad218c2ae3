"""Random Fourier features: cosines and sines whose products are, on average, the Gaussian kernel."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from core.errors import ArtifactError
from core.holdout import column_keys
from core.ranker import Arrays, Floats
from core.svm.design import Coordinates, Ints

from .feature_map import Columns, DenseMap, DenseMapRows, MappedRows
from .gaussian import TrainingRows, choose_bandwidth, coordinate_arrays, read_coordinates
from .kernels import FAR, fill_waves

# Columns that a wave's description names.
COLUMNS_SHOWN = 5


class FourierMap(DenseMap):
    """φ(x) = √(1/K) (cos ω_1·x, ..., cos ω_K·x, sin ω_1·x, ..., sin ω_K·x), the ω drawn from N(0, 1/h²).

    φ(x)·φ(x') is exp(-‖x - x'‖²/2h²) on average, exact at x = x', with a deviation of at most 1/√(2K).

    Parameters
    ----------
    coordinates : Coordinates
    bandwidth : float
        h.
    frequencies : ndarray of shape (n_coordinates, K), float64

    References
    ----------
    A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 2007.
    D. J. Sutherland and J. Schneider, "On the error of random Fourier features", UAI 2015: cosine and sine of each
    frequency err less than one wave with a random phase.
    """

    def __init__(self, coordinates: Coordinates, bandwidth: float, frequencies: Floats) -> None:
        self.coordinates, self.bandwidth, self.frequencies = coordinates, bandwidth, frequencies
        p, n_missing = len(coordinates.unit), int(coordinates.has_missing.sum())
        numbered = p + np.cumsum(coordinates.has_missing) - 1
        self._gap = np.where(coordinates.has_missing, numbered, -1)
        known = coordinates.first
        self._first = np.where(known >= 0, known + p + n_missing, -1)
        self._unit = np.where(known >= 0, coordinates.n_categories, coordinates.unit)

    @property
    def size(self) -> int:
        """Number of features, two per frequency."""
        return 2 * int(self.frequencies.shape[1])

    def fill(self, X: Floats, out: Floats) -> None:
        """Write the features of rows."""
        c = self.coordinates
        fill_waves(X, c.center, self._unit, self._first, self._gap, self.frequencies, out)

    def describe(self) -> dict[str, Any]:
        """Say what the map is."""
        return {"map": "fourier", "bandwidth": self.bandwidth, "n_components": self.size}

    def terms(self, w: Floats, columns: Columns, limit: int) -> list[dict[str, Any]]:
        """List the waves, each amplitude · cos(ω·x - phase), with the columns along which it runs most."""
        n_waves = self.frequencies.shape[1]
        cosine, sine = w[:n_waves], w[n_waves:]
        amplitude = np.hypot(cosine, sine) / np.sqrt(n_waves)
        terms = []
        for k in np.argsort(-amplitude, kind="stable")[:limit].tolist():
            along = self.coordinates.by_column(abs(self.frequencies[:, k]))
            most = np.argsort(-along, kind="stable")[:COLUMNS_SHOWN].tolist()
            terms.append(
                {
                    "wave": k,
                    "amplitude": float(amplitude[k]),
                    "phase": float(np.arctan2(sine[k], cosine[k])),
                    "features": {columns.names[j]: float(along[j]) for j in most if along[j] > 0.0},
                }
            )
        return terms

    def arrays(self) -> Arrays:
        """Give the state as arrays."""
        return coordinate_arrays(self.coordinates, self.bandwidth) | {
            "frequencies": self.frequencies
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], n_categories: Ints) -> Self:
        """Rebuild a map; see `FeatureMap.from_arrays`."""
        coordinates, bandwidth = read_coordinates(arrays, n_categories)
        frequencies = arrays["frequencies"]
        if frequencies.dtype != np.float64 or frequencies.ndim != 2 or not frequencies.shape[1]:
            raise ArtifactError(
                "frequencies must be float64 of two dimensions, "
                f"got {frequencies.dtype} of shape {frequencies.shape}"
            )
        if len(frequencies) != coordinates.size:
            raise ArtifactError(
                f"frequencies must have {coordinates.size} rows, got {len(frequencies)}"
            )
        if not (abs(frequencies) <= FAR).all():
            raise ArtifactError(f"frequencies must be finite, at most {FAR:g} in size")
        return cls(coordinates, bandwidth, np.ascontiguousarray(frequencies))


def fit_fourier(
    rows: TrainingRows, n_components: int, bandwidth: float | Literal["auto"]
) -> tuple[FourierMap, MappedRows]:
    """Draw the frequencies.

    A column's are drawn by Philox from its key, which follows from its values, and the seed: the same whatever the
    order of rows and columns.

    Parameters
    ----------
    rows : TrainingRows
    n_components : int
        Number of features; one more where it is odd.
    bandwidth : float or "auto"

    Returns
    -------
    FourierMap
    MappedRows
        The training rows under it.
    """
    c, n_waves = rows.coordinates, -(-n_components // 2)
    rows.check_size("fourier", c.size, n_waves)
    h = choose_bandwidth(rows, bandwidth)
    p, n_missing = len(c.unit), int(c.has_missing.sum())
    frequencies = np.empty((c.size, n_waves))
    gaps, first = np.cumsum(c.has_missing) - 1, c.first
    keys = column_keys(rows.X, rows.positive, rows.weight)
    seen: dict[int, int] = {}
    for j, key in enumerate(keys.tolist()):
        seen[key] = copy = seen.get(key, 0) + 1  # equal columns each have frequencies of their own
        philox = np.random.Philox(key=[(key + copy) % 2**64, rows.seed])
        draw = np.random.Generator(philox).standard_normal
        frequencies[j] = draw(n_waves)
        if c.has_missing[j]:
            frequencies[p + gaps[j]] = draw(n_waves)
        if c.n_categories[j]:
            start = p + n_missing + first[j]
            frequencies[start : start + c.n_categories[j]] = draw((c.n_categories[j], n_waves))
    found = FourierMap(c, h, np.clip(frequencies / h, -FAR, FAR))
    return found, DenseMapRows(found, rows.X, keep=True)
