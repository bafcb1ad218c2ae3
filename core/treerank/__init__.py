"""TreeRank: trees that rank, grown along the ROC curve (Clémençon, Depecker & Vayatis 2011)."""

from .forest import TreeRankForest
from .treerank import TreeRank

__all__ = ["TreeRank", "TreeRankForest"]
