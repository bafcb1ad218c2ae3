"""Parameters that several boosters share, each with its bounds and its sentence."""

from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt

from core.base.parameters import Seed

NRounds = Annotated[
    int, Ge(1), Le(100_000), Doc("Number of rounds, each of which adds one weak ranker.")
]
NRoundsOrChosen = Annotated[
    int | None,
    Ge(1),
    Le(100_000),
    Doc(
        "Number of rounds, each of which adds one weak ranker. None: 100; trees on 250 rows or more of each "
        "class choose it: early stopping finds it, of 2,000 at most, and a fit on all rows takes 1.15 times as "
        "many."
    ),
]
StumpOnly = Annotated[
    Literal["stump"],
    Doc(
        "What a round adds: a stump, which is a threshold on one feature or a set of its categories."
    ),
]
StumpOrColumn = Annotated[
    Literal["stump", "column"],
    Doc(
        "What a round adds: a stump, which is a threshold on one feature or a set of its categories; "
        "or a column as it is, times a step, where all features are numeric."
    ),
]
LearningRate = Annotated[float, Gt(0), Le(1), Doc("Share of the optimal step that a round takes.")]
Smoothing = Annotated[
    float,
    Ge(0),
    Le(1),
    Doc(
        "Share of all pair weight added to both the rightly and the wrongly ordered pairs "
        "in the step; 0 is the paper's plain formula."
    ),
]
EarlyStoppingRounds = Annotated[
    int | None,
    Ge(1),
    Doc(
        "Stop when the AUC of the validation part has not risen for so many rounds, and keep the "
        "best ones; n_rounds is then a ceiling. None: no validation part, all rounds."
    ),
]
ValidationFraction = Annotated[
    float,
    Gt(0),
    Lt(1),
    Doc(
        "Share of the rows of each class, or of the items of listed pairs, held out for early "
        "stopping; without it, not used."
    ),
]
RandomState = Annotated[
    Seed, Doc("Seed of the draw of the validation part, and of what trees and classifiers draw.")
]
