"""Feature maps: what makes of a linear machine one that is not linear in the columns.

Each is a pair of classes like those of `core.svm.design`: a map, which is learnt at fit and kept, and rows under it, of
which the solvers ask scores and sums only. `fit_map` learns one by name, `MAPS` reads one back.

`gaussian` holds what two of them share, the kernel over columns of all kinds; `fourier` and `nystroem` approximate it,
`binned` makes a score a sum of step functions.
"""

from .binned import BinnedMap, fit_binned
from .feature_map import Columns, FeatureMap, MappedRows
from .fitting import MAPS, MapSettings, fit_map
from .fourier import FourierMap, fit_fourier
from .gaussian import Points, TrainingRows, choose_bandwidth
from .nystroem import NystroemMap, fit_nystroem
from .options import Bandwidth, Components, FeatureMapName, MapBins, MapName

__all__ = [
    "MAPS",
    "Bandwidth",
    "BinnedMap",
    "Columns",
    "Components",
    "FeatureMap",
    "FeatureMapName",
    "FourierMap",
    "MapBins",
    "MapName",
    "MapSettings",
    "MappedRows",
    "NystroemMap",
    "Points",
    "TrainingRows",
    "choose_bandwidth",
    "fit_binned",
    "fit_fourier",
    "fit_map",
    "fit_nystroem",
]
