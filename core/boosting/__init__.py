"""Boosting: one loop, a rule per algorithm.

`loop` repeats weights -> scan -> step -> update. A rule says what the scan looks for and how far to
step. `weights` holds the pair weights as one weight per row and class. `stumps` is what is learnt:
a sum of stumps, folded into one step function per feature for scoring. `booster` makes estimators
of them; each algorithm is a file of its own.
"""

from .coordinate_rankboost import CoordinateRankBoost
from .rankboost import RankBoost

__all__ = ["CoordinateRankBoost", "RankBoost"]
