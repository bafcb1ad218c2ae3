"""Selection: which parameters a ranker gets, by rows that it does not learn from.

`path` is for a parameter along which one fit holds the ranker of every value, as the number of
rounds of a booster, or for one that a single fit can follow, as C of an SVM: all its candidates cost
little more than one fit. A `Candidate` is a set of parameters with
what it was worth, and `choose` picks among them, however they came about.

A `Planner` (`planning`) decides which fits a search makes: `GridSearch`, `RandomSearch`, `SuccessiveHalving`.
`try_out` carries one fit out, and `run_plan` a whole plan, in one thread.
"""

from .choice import Candidate, choose
from .halving import SuccessiveHalving
from .path import FollowingRanker, PathRanker, path_parameter, walk_path
from .planning import (
    Chosen,
    HeldOut,
    Member,
    NothingFitted,
    Planner,
    Standing,
    Tried,
    Tryout,
    draw_rows,
    run_plan,
)
from .search import GridSearch, RandomSearch
from .space import InvalidSpace, Range, read_space
from .splits import split_rows
from .trial import Worth, try_out

__all__ = [
    "Candidate",
    "Chosen",
    "FollowingRanker",
    "GridSearch",
    "HeldOut",
    "InvalidSpace",
    "Member",
    "NothingFitted",
    "PathRanker",
    "Planner",
    "RandomSearch",
    "Range",
    "Standing",
    "SuccessiveHalving",
    "Tried",
    "Tryout",
    "Worth",
    "choose",
    "draw_rows",
    "path_parameter",
    "read_space",
    "run_plan",
    "split_rows",
    "try_out",
    "walk_path",
]
