"""Feature maps by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from core.ranker import Floats
from core.svm.design import Ints, learn_coordinates

from .binned import BinnedMap, fit_binned
from .feature_map import FeatureMap, MappedRows
from .fourier import FourierMap, fit_fourier
from .gaussian import TrainingRows
from .nystroem import NystroemMap, fit_nystroem
from .options import MapName

MAPS: Mapping[MapName, type[FeatureMap]] = MappingProxyType(
    {"fourier": FourierMap, "nystroem": NystroemMap, "bins": BinnedMap}
)
"""By name: what reads a map back."""


class MapSettings(NamedTuple):
    """The parameters of `options`."""

    name: MapName
    n_components: int
    bandwidth: float | Literal["auto"]
    max_bins: int
    standardize: bool
    seed: int


def fit_map(
    settings: MapSettings,
    X: Any,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    n_categories: Ints,
) -> tuple[FeatureMap, MappedRows]:
    """Learn a map.

    Parameters
    ----------
    settings : MapSettings
    X : ndarray or scipy.sparse CSR of shape (n, p), float64
        NaN is missing; a category is its position. Dense for "bins".
    positive : ndarray of shape (n,), bool
        Only for keys of rows: classes do not shape a map.
    weight : ndarray of shape (n,), float64
        Above 0.
    n_categories : ndarray of shape (p,), int64
        0 for a column of numbers.

    Returns
    -------
    FeatureMap
    MappedRows
        The training rows under it, as their features are to be weighed: products are the kernel's.

    Raises
    ------
    InvalidData
        The map would take too much memory.
    """
    if settings.name == "bins":
        return fit_binned(X, weight, n_categories, settings.max_bins)
    coordinates = learn_coordinates(X, weight, n_categories, standardize=settings.standardize)
    rows = TrainingRows(X, positive, weight, coordinates, settings.seed)
    fit = fit_fourier if settings.name == "fourier" else fit_nystroem
    return fit(rows, settings.n_components, settings.bandwidth)
