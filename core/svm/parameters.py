"""The parameters of the support vector machines, each with its bounds and its sentence."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt

from .feature_maps import MAX_BINS, MapName

Cost = Annotated[
    Annotated[float, Gt(0), Le(1e6)] | Literal["auto"],
    Doc(
        "Weight of the risk beside ½‖w‖². auto: the best of 1e-5 to 1e4, with fourier and nystroem "
        "of 0.1 to 1e4, by the partial AUC asked for, on a part of the training rows that is held "
        "out for it; all are fitted along one path."
    ),
]
Tolerance = Annotated[
    float,
    Ge(1e-9),
    Le(0.1),
    Doc(
        "Stop when the objective is proven to be within tol · C of its minimum; 10 tol · C, or 100 "
        "iterations, where a program only serves to choose C."
    ),
]
MaxIter = Annotated[int, Ge(1), Le(100_000), Doc("Most iterations of the solver for one C.")]
Standardize = Annotated[
    bool, Doc("Whether to divide numeric features by their standard deviation.")
]
SurrogateName = Annotated[
    Literal["tight", "naive", "sigmoid"],
    Doc(
        "tight: pairs with negatives below the window do not count. naive: they do, without margin. "
        "sigmoid: the area itself with smooth steps, which is not convex, by L-BFGS from the machine "
        "for the whole AUC with the same C; max_iter is then that of L-BFGS, too."
    ),
]
Anchor = Annotated[
    Annotated[float, Ge(0), Le(1e6)] | Literal["auto"] | None,
    Doc(
        "κ: minimise ½‖w - κ v‖² + C R(w) instead of ½‖w‖² + C R(w), v the solution for the whole "
        "AUC. auto: with κ = 1, and only where the window alone gives constant scores or, C chosen, "
        "does worse than v on the rows held out; a C that is given is then the greatest of those "
        "tried. None: never."
    ),
]
HeldFraction = Annotated[
    float,
    Gt(0),
    Lt(1),
    Doc("Share of each class's weight held out to choose C; without it, not used."),
]
Seed = Annotated[
    int, Ge(0), Le(2**32 - 1), Doc("Seed of the draw of what is held out to choose C.")
]
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


@dataclass(kw_only=True, eq=False, repr=False)
class SupportVectorParameters:
    """What all machines for an area have."""

    C: Cost = "auto"
    tol: Tolerance = 1e-4
    max_iter: MaxIter = 1000
    standardize: Standardize = True
    feature_map: FeatureMapName = None
    n_components: Components = 300
    bandwidth: Bandwidth = "auto"
    max_bins: MapBins = 32
    validation_fraction: HeldFraction = 0.25
    random_state: Seed = 0
