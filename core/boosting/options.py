"""Parameters that several boosters share, each with its bounds and its description."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt

from core.base.monotone import Monotone
from core.base.parameters import Seed
from core.coding.bins import MaxBins
from core.trees.options import (
    CATEGORY_PENALTY,
    MAX_CATEGORIES,
    TARGET_ENCODING,
    CategoryPenalty,
    MaxCategories,
    MaxCrosses,
    MaxDepth,
    MaxFeaturesOrChosen,
    MaxLeaves,
    MinSamplesLeaf,
    Subsample,
    TargetEncoding,
)

NRounds = Annotated[
    int, Ge(1), Le(100_000), Doc("Number of rounds. Each round adds one weak ranker.")
]
NRoundsOrChosen = Annotated[
    int | None,
    Ge(1),
    Le(100_000),
    Doc(
        "Number of rounds. Each round adds one weak ranker. None: 100 rounds. For trees with at least 250 rows of "
        "each class, None instead finds the number by early stopping, up to 2,000, and the final fit on all rows "
        "uses 1.15 times as many."
    ),
]
StumpOnly = Annotated[
    Literal["stump"],
    Doc(
        "The weak ranker of each round: a stump, which is a threshold on one feature or a set of its categories."
    ),
]
StumpOrColumn = Annotated[
    Literal["stump", "column"],
    Doc(
        'The weak ranker of each round. "stump": a threshold on one feature, or a set of its categories. '
        '"column": one feature times a step; only if all features are numeric.'
    ),
]
LearningRate = Annotated[
    float, Gt(0), Le(1), Doc("Fraction of the optimal step that a round takes.")
]
Smoothing = Annotated[
    float,
    Ge(0),
    Le(1),
    Doc(
        "Fraction of the total pair weight that is added both to the pairs in order and to the pairs out of order "
        "when the step is computed. 0 is the formula of the paper."
    ),
]
EarlyStoppingRounds = Annotated[
    int | None,
    Ge(1),
    Doc(
        "Stop if the AUC on held-out rows has not increased for this number of rounds, and keep the rounds up to "
        "the best one. n_rounds is then the maximum. None: no early stopping."
    ),
]
ValidationFraction = Annotated[
    float,
    Gt(0),
    Lt(1),
    Doc(
        "Fraction of the rows of each class, or of the items of listed pairs, held out for early stopping. Not used "
        "without early stopping."
    ),
]
RandomState = Annotated[
    Seed, Doc("Seed of the validation part and of the random draws of trees and classifiers.")
]


@dataclass(kw_only=True, eq=False, repr=False)
class BoosterParameters:
    """The parameters of every booster; a subclass describes its weak rankers."""

    n_rounds: NRoundsOrChosen = None
    weak_ranker: Any = "stump"
    max_bins: MaxBins = 255
    early_stopping_rounds: EarlyStoppingRounds = None
    validation_fraction: ValidationFraction = 0.2
    random_state: RandomState = 0


@dataclass(kw_only=True, eq=False, repr=False)
class TreeParameters:
    """The parameters of boosters that grow trees."""

    max_depth: MaxDepth = None
    max_leaves: MaxLeaves = "auto"
    min_samples_leaf: MinSamplesLeaf = None
    subsample: Subsample = 1.0
    max_features: MaxFeaturesOrChosen = None
    category_penalty: CategoryPenalty = CATEGORY_PENALTY
    max_categories: MaxCategories = MAX_CATEGORIES
    target_encoding: TargetEncoding = TARGET_ENCODING
    crosses: MaxCrosses = 0
    monotone: Monotone = None
