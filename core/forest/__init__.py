"""Random forests: `random_forest` is the estimator, `growth` grows a tree, `columns` codes the rows that it reads.

The trees are stored, scored and explained as those of boosting (`core.boosting.tree_sum`).
"""

from .random_forest import RandomForest

__all__ = ["RandomForest"]
