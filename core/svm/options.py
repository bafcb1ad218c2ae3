"""Parameters that the SVMs share, each with its bounds and its sentence."""

from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt

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
        "iterations, where a programme only serves to choose C."
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
