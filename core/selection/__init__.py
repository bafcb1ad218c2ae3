"""Selection: which parameters a ranker gets, by rows that it does not learn from.

`path` is for a parameter along which one fit holds the ranker of every value, as the number of
rounds of a booster, or for one that a single fit can follow, as C of an SVM: all its candidates cost
little more than one fit. A `Candidate` is a set of parameters with
what it was worth, and `choose` picks among them, however they came about.
"""

from .choice import Candidate, choose
from .path import FollowingRanker, PathRanker, path_parameter, walk_path

__all__ = ["Candidate", "FollowingRanker", "PathRanker", "choose", "path_parameter", "walk_path"]
