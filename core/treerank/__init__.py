"""TreeRank: trees that rank, grown along the ROC curve (Clémençon, Depecker & Vayatis 2011).

A node's split is what lifts the curve most between the ends of its cell; the leaves, from the tree's
top to its bottom, are the ranking.

- `treerank` and `forest` are the estimators, `options` their parameters.
- `growth` grows a tree by any way to divide cells: `leafrank`, by small trees of cuts, which
  `core.trees.grower` grows, one in each cell; `grid`, by unions of dyadic cubes; `classifiers`, by any classifier.
- `tree` is what remains, in flat arrays; `cuts` are the rules that LeafRank makes, by which a tree scores,
  and gives scores and gains to features.
- `pruning` chooses a subtree, `description` puts a tree into words and into a picture.
"""

from .forest import TreeRankForest
from .treerank import TreeRank

__all__ = ["TreeRank", "TreeRankForest"]
