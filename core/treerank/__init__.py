"""TreeRank: ranking trees that are grown along the ROC curve (Clémençon, Depecker & Vayatis 2011).

Each split of a node lifts the curve most between the ends of the node's cell. The leaves, from the top of the tree to
its bottom, are the ranking.

- `treerank` and `forest` are the estimators, `options` their parameters.
- `growth` grows a tree with any way to split cells: `leafrank` by small trees of cuts, which `core.trees.grower` grows;
  `grid` by unions of dyadic cubes; `classifiers` by any classifier.
- `tree` has the fitted tree in flat arrays; `cuts` has LeafRank's rules, which score rows and attribute scores and
  gains to features.
- `pruning` chooses a subtree, `description` writes a tree as text and draws it.
"""

from .forest import TreeRankForest
from .treerank import TreeRank

__all__ = ["TreeRank", "TreeRankForest"]
