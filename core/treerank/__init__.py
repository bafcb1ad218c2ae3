"""TreeRank: trees that rank, grown along the ROC curve (Clémençon, Depecker & Vayatis 2011).

A node's split is what lifts the curve most between the ends of its cell; the leaves, from the tree's
top to its bottom, are the ranking.

- `treerank` and `forest` are the estimators, `options` their parameters; `growers` finds by name what
  `growth` asks of a `splitting` rule. `tree` is what remains, in flat arrays (`preorder`), and
  `walking` scores with it.
- `leafrank` splits cells by small trees of cuts. `coding` lays out the rows, `leafgrowth` grows in
  many cells at once in a `workspace` (`rows`, `peaks` and `category_peaks` are its kernels) and
  merges leaves to two sides; `cut_trees` writes them as the rules of `cuts`.
- `grid` splits by dyadic cubes and `classifiers` by any classifier; `partition_rule` chooses a union
  of cells.
- `pruning` and `structural` choose a subtree, `selection` by rows held out.
- `reading` puts a tree into words and `drawing` into a picture; `importance` and `contributions`
  give gains and scores to features.
"""

from .forest import TreeRankForest
from .treerank import TreeRank

__all__ = ["TreeRank", "TreeRankForest"]
