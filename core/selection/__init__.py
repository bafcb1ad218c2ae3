"""Selection: which parameters a ranker gets, by rows that it does not learn from.

`path` is for a parameter along which one fit holds the ranker of every value, as the number of
rounds of a booster, or for one that a single fit can follow, as C of an SVM: all its candidates cost
little more than one fit. A `Candidate` is a set of parameters with
what it was worth, and `choose` picks among them, however they came about.

A `Planner` (`planning`) decides which fits a search makes: `GridSearch`, `RandomSearch`, `SuccessiveHalving`.
`Auto` is the planner that takes a time and tries the families. `try_out` carries one fit out, `run_plan` a whole
plan in one thread, and `search_ranker` and `auto_ranker` do all there is to do, from rows to a ranker.
"""

from .auto import Auto
from .choice import Candidate, choose
from .door import Searched, auto_ranker, make_ranker, search_ranker
from .halving import SuccessiveHalving
from .path import FollowingRanker, PathRanker, path_parameter, walk_path
from .planning import (
    CHOOSE_NOW,
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
    "CHOOSE_NOW",
    "Auto",
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
    "Searched",
    "Standing",
    "SuccessiveHalving",
    "Tried",
    "Tryout",
    "Worth",
    "auto_ranker",
    "choose",
    "draw_rows",
    "make_ranker",
    "path_parameter",
    "read_space",
    "run_plan",
    "search_ranker",
    "split_rows",
    "try_out",
    "walk_path",
]
