"""Parameters of ranking trees, each with its bounds and its description."""

from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt
from sklearn.base import BaseEstimator

from core.base.parameters import Seed
from core.classifiers import ClassifierName

from .tree import MAX_DEPTH

SplitterName = Literal["leafrank", "axis", "grid"] | ClassifierName

Splitting = Annotated[
    SplitterName | BaseEstimator,
    Doc(
        'How a node is split. "leafrank": by a small tree of thresholds, whose leaves are merged into two sides. '
        '"axis": by one threshold. "grid": by the best union of dyadic cubes. "logistic", "linear_svm", '
        '"random_forest": by a classifier with the costs of the node. In Python it can also be any scikit-learn '
        "classifier that takes sample weights."
    ),
]
MaxDepth = Annotated[
    int, Ge(1), Le(MAX_DEPTH), Doc("Maximum number of splits from the root to a leaf.")
]
MaxLeaves = Annotated[
    int | None,
    Ge(2),
    Le(100_000),
    Doc(
        "Maximum number of leaves. The leaf with the greatest gain is split first. None: split level by level down to "
        "max_depth."
    ),
]
MinSamplesLeaf = Annotated[
    float,
    Gt(0),
    Le(1e100),
    Doc(
        "Minimum number of rows of a leaf, in the ranking tree and in the small trees of its nodes. A row of "
        "weight k counts as k rows. If the mean weight is below 1, all weights are first divided by it."
    ),
]
LeafRankDepth = Annotated[
    int, Ge(1), Le(8), Doc("LeafRank: maximum depth of the small tree in a node.")
]
LeafRankMaxLeaves = Annotated[
    int | None,
    Ge(2),
    Le(256),
    Doc(
        "LeafRank: maximum number of leaves of the small tree. The leaf with the greatest gain is split first. None: "
        "as many as leafrank_depth allows."
    ),
]
LeafRankPruning = Annotated[
    Literal["cv"] | None,
    Doc(
        'LeafRank: how the small trees are pruned. "cv": all nodes get the same number of leaves, the number with '
        'the best ranking tree over the folds; this requires pruning="cv". None: they are not pruned.'
    ),
]
GridResolution = Annotated[
    int,
    Ge(1),
    Le(16),
    Doc("Grid: J. The range of each feature is divided into 2^J equal slices."),
]
Pruning = Annotated[
    Literal["cv", "holdout", "structural"] | None,
    Doc(
        'How the grown tree is pruned. "cv": by a penalty per leaf, chosen by cross-validation. "holdout": to the '
        'subtree that ranks held-out rows best. "structural": by a penalty that depends only on the numbers of '
        "leaves and rows; not for random forests and your own estimators. None: only by leaf_penalty."
    ),
]
LeafPenalty = Annotated[
    float,
    Ge(0),
    Le(1),
    Doc(
        "λ of eq. 13, for pruning=None: keep the subtree with the greatest training AUC minus λ times its number "
        "of leaves. 0 keeps the entire tree. One fit covers all values of a search."
    ),
]
PenaltyScale = Annotated[
    float,
    Ge(0),
    Le(1),
    Doc(
        "Structural: factor on the penalty of the paper. With the value of the paper (1) no split remains. 0.001 "
        "prunes about as much as cross-validation."
    ),
]
Folds = Annotated[int, Ge(2), Le(100), Doc("Number of folds of cross-validation.")]
ValidationFraction = Annotated[
    float, Gt(0), Lt(1), Doc('Fraction of the rows of each class that pruning="holdout" holds out.')
]
Order = Annotated[
    Literal["tree", "concave", "validation"],
    Doc(
        'Order of the leaves. "tree": from the top of the tree to its bottom. "concave": by their fraction of '
        'positives, which helps on some tables and harms on others. "validation": the order that ranks the rows '
        "held out by pruning better."
    ),
]
RandomState = Annotated[
    Seed, Doc("Seed of the random draws: folds, held-out rows, and classifiers.")
]
