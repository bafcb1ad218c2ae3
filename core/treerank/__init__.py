"""TreeRank: trees that rank, grown along the ROC curve (Clémençon, Depecker & Vayatis 2011)."""

from .treerank import TreeRank

__all__ = ["TreeRank"]
