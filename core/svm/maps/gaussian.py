"""The Gaussian kernel exp(-‖x - x'‖²/2h²) over the columns' coordinates, and the draw of the rows that stand for all.

Coordinates are those of the linear machines (`design.Coordinates`): standardised numbers, 0 where missing, and
coordinates of 0 and 1 for categories and for missing values.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.errors import ArtifactError, InvalidData
from core.holdout import row_keys, scramble_keys
from core.ranker import Arrays, Floats
from core.svm.design import Coordinates, Ints, check_coordinates
from core.svm.kernels import FARTHEST

from .feature_map import lay_dense
from .kernels import FAR, fill_squares

# Rows whose distances the bandwidth is the median of.
SAMPLE = 500

# Of the seed's draws, those of rows; another than that of what is held out.
DRAW = 1

# Numbers that a map may keep for its frequencies or landmarks.
MOST_CELLS = 2**25

LEAST_BANDWIDTH, GREATEST_BANDWIDTH = 1e-100, 1e110


class TrainingRows(NamedTuple):
    """What a map is learnt from.

    Attributes
    ----------
    X : ndarray or scipy.sparse CSR of shape (n, p), float64
    positive : ndarray of shape (n,), bool
    weight : ndarray of shape (n,), float64
        Above 0.
    coordinates : Coordinates
    seed : int
    """

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
        if n_rows * n_columns > MOST_CELLS:
            raise InvalidData(
                f"feature_map {name!r} must keep at most {MOST_CELLS:,} numbers, "
                f"got {n_rows:,} x {n_columns:,} (columns and categories x n_components)"
            )


class Points:
    """Some rows, to which others have distances.

    Parameters
    ----------
    rows : ndarray of shape (D, p), float64
        As in the table: numbers in their units, categories by position, NaN where missing.
    coordinates : Coordinates
    """

    def __init__(self, rows: Floats, coordinates: Coordinates) -> None:
        self.rows, self.coordinates = rows, coordinates
        gaps, categorical = np.isnan(rows), coordinates.n_categories > 0
        with np.errstate(over="ignore"):  # what is infinite is cut off
            steps = np.clip(rows - coordinates.center, -FARTHEST, FARTHEST)
            points = np.clip(np.nan_to_num(steps, nan=0.0) * coordinates.unit, -FAR, FAR)
        codes = np.where(gaps, -1.0, rows)
        points[:, categorical] = codes[:, categorical]
        self._points = np.ascontiguousarray(points.T)
        self._gaps = np.ascontiguousarray(gaps.T, dtype=np.float64)

    def __len__(self) -> int:
        """Number of points."""
        return len(self.rows)

    def squares(self, X: Floats, out: Floats) -> None:
        """Write the squared distance of each row of X, C-contiguous, to each point."""
        self.kernel(X, np.inf, out)

    def kernel(self, X: Floats, bandwidth: float, out: Floats) -> None:
        """Write the Gaussian kernel of each row of X, C-contiguous, and each point; see `fill_squares`."""
        c = self.coordinates
        counts = c.has_missing.astype(np.float64)
        known = c.center, c.unit, c.n_categories, counts
        fill_squares(X, *known, self._points, self._gaps, float(bandwidth), out)


def choose_bandwidth(rows: TrainingRows, asked: float | Literal["auto"]) -> float:
    """Give the bandwidth h.

    Parameters
    ----------
    rows : TrainingRows
    asked : float or "auto"
        auto: the median distance of `SAMPLE` distinct rows, or fewer of very many columns; 1 where no two are apart.

    Returns
    -------
    float
    """
    if asked != "auto":
        return float(asked)
    sample = rows.draw(min(SAMPLE, max(MOST_CELLS // rows.X.shape[1], 2)))
    squares = np.empty((len(sample), len(sample)))
    Points(sample, rows.coordinates).squares(sample, squares)
    apart = squares[np.triu_indices(len(sample), 1)]
    apart = apart[apart > 0.0]
    if len(apart) == 0:
        return 1.0
    median = float(np.median(np.sqrt(apart)))
    return min(max(median, LEAST_BANDWIDTH), GREATEST_BANDWIDTH)


def coordinate_arrays(coordinates: Coordinates, bandwidth: float) -> Arrays:
    """Give what the kernel stands on as arrays."""
    return {
        "center": coordinates.center,
        "unit": coordinates.unit,
        "has_missing": coordinates.has_missing,
        "bandwidth": np.array([bandwidth]),
    }


def read_coordinates(
    arrays: Mapping[str, npt.NDArray[Any]], n_categories: Ints
) -> tuple[Coordinates, float]:
    """Read what `coordinate_arrays` gave; refuse what no fit can leave with ArtifactError."""
    p = len(n_categories)
    for name in ("center", "unit"):
        check_array(name, arrays[name], np.float64, (p,))
    check_array("has_missing", arrays["has_missing"], np.bool_, (p,))
    check_array("bandwidth", arrays["bandwidth"], np.float64, (1,))
    check_coordinates(arrays, n_categories)
    bandwidth = float(arrays["bandwidth"][0])
    if not LEAST_BANDWIDTH <= bandwidth <= GREATEST_BANDWIDTH:
        raise ArtifactError(
            f"bandwidth must be from {LEAST_BANDWIDTH:g} to {GREATEST_BANDWIDTH:g}, got {bandwidth}"
        )
    center, unit, has_missing = (arrays[name] for name in ("center", "unit", "has_missing"))
    return Coordinates(center, unit, has_missing, n_categories), bandwidth
