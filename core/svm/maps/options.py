"""The parameters of feature maps, each with its bounds and its sentence."""

from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le

from .binned import MAX_BINS

MapName = Literal["fourier", "nystroem", "bins"]

FeatureMapName = Annotated[
    MapName | None,
    Doc(
        "What the linear score is taken over. None: the columns. fourier: random Fourier features "
        "of the Gaussian kernel. nystroem: the Gaussian kernel with rows drawn as landmarks; exact "
        "where n_components is at least the number of rows. bins: the bins of each column, which "
        "makes the score a sum of step functions; dense tables only."
    ),
]
Components = Annotated[
    int,
    Ge(1),
    Le(4096),
    Doc("Features of fourier, in pairs, or landmarks of nystroem; else not used."),
]
Bandwidth = Annotated[
    Annotated[float, Ge(1e-6), Le(1e6)] | Literal["auto"],
    Doc(
        "h of the Gaussian kernel exp(-‖x - x'‖²/2h²) over standardised features, of fourier and "
        "nystroem. auto: the median distance of rows drawn by seed."
    ),
]
MapBins = Annotated[
    int, Gt(1), Le(MAX_BINS), Doc("Most bins of a column, the missing one apart, of bins.")
]
