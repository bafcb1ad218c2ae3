"""Parameters of ranking trees, each with its bounds and its sentence."""

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
        "How a node is split: 'leafrank', a small tree of axis cuts whose leaves are merged to two "
        "sides; 'axis', one cut; 'grid', the best union of dyadic cubes; or a classifier with the "
        "node's own costs: 'logistic', 'linear_svm', 'random_forest', in Python any scikit-learn "
        "classifier that takes sample weights."
    ),
]
MaxDepth = Annotated[
    int, Ge(1), Le(MAX_DEPTH), Doc("Most splits on the way from the root to a leaf.")
]
MaxLeaves = Annotated[
    int | None,
    Ge(2),
    Le(100_000),
    Doc(
        "Most leaves; the one that gains most is split first. None: level by level down to "
        "max_depth."
    ),
]
MinSamplesLeaf = Annotated[
    float,
    Gt(0),
    Le(1e100),
    Doc(
        "Least number of rows of a leaf, of the ranking tree and of the small trees in its nodes. A "
        "row of weight k counts as k rows; weights of a mean below 1 are divided by it first."
    ),
]
LeafRankDepth = Annotated[
    int, Ge(1), Le(8), Doc("LeafRank: most cuts on the way through the small tree in a node.")
]
LeafRankMaxLeaves = Annotated[
    int | None,
    Ge(2),
    Le(256),
    Doc(
        "LeafRank: most leaves of the small tree; the one that gains most is cut first. None: as "
        "many as leafrank_depth allows."
    ),
]
LeafRankPruning = Annotated[
    Literal["cv"] | None,
    Doc(
        "LeafRank: how the small trees are pruned. 'cv': to the number of leaves, the same in all "
        "nodes, whose ranking tree is best over the folds of pruning='cv', which it needs."
    ),
]
GridResolution = Annotated[
    int,
    Ge(1),
    Le(16),
    Doc("Grid: J; each feature's range is cut into 2**J equal slices."),
]
Pruning = Annotated[
    Literal["cv", "holdout", "structural"] | None,
    Doc(
        "How the grown tree is pruned: 'cv', by a penalty per leaf that cross-validation chooses; "
        "'holdout', to the subtree that ranks best on rows held out; 'structural', by a penalty that "
        "leaves and rows alone decide, for any splitter but forests and estimators of your own; "
        "None, by leaf_penalty alone."
    ),
]
LeafPenalty = Annotated[
    float,
    Ge(0),
    Le(1),
    Doc(
        "λ of eq. 13: with pruning=None the subtree is kept whose AUC on the training rows less this "
        "for each leaf is greatest, and 0 keeps all. The values of a search cost one fit."
    ),
]
PenaltyScale = Annotated[
    float,
    Ge(0),
    Le(1),
    Doc(
        "Structural: times the paper's penalty, which as printed (1) leaves no split standing. "
        "0.001 prunes about as cross-validation does."
    ),
]
Folds = Annotated[int, Ge(2), Le(100), Doc("Number of folds of cross-validation.")]
ValidationFraction = Annotated[
    float, Gt(0), Lt(1), Doc("Fraction of the rows of each class held out by pruning='holdout'.")
]
Order = Annotated[
    Literal["tree", "concave", "validation"],
    Doc(
        "How leaves rank: 'tree', from its top to its bottom; 'concave', by their fraction of "
        "positives, which helps on some tables and harms on others; 'validation': whichever ranks "
        "better on the rows that pruning holds out."
    ),
]
RandomState = Annotated[Seed, Doc("Seed of whatever is drawn: folds, rows held out, classifiers.")]
