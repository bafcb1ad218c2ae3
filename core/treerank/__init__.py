"""TreeRank: trees that rank, grown along the ROC curve (Clémençon, Depecker & Vayatis 2011)."""
