"""Selection: search for the algorithm and the parameters of a ranker, evaluated on held-out rows.

`search_ranker` runs a search and `auto_ranker` an automatic one within a time budget; both return a fitted ranker.

A `Planner` decides which trials a search makes: `GridSearch`, `RandomSearch`, `SuccessiveHalving` or `Auto`. A `Trial`
is one fit on one inner split. Along a path, such as the number of rounds of a booster or C of an SVM, one fit gives the
rankers of all values. `run_trial` makes one trial, and `run_plan` a complete plan in one process.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .auto import Auto, auto_ranker
    from .planner import (
        CHOOSE_NOW,
        Chosen,
        LeaderboardRow,
        Member,
        Note,
        NoteKind,
        NothingFitted,
        Planner,
        Searched,
        fit_chosen,
        make_ranker,
        run_plan,
        search_ranker,
    )
    from .search import GridSearch, InvalidSpace, RandomSearch, Range, SuccessiveHalving, read_space
    from .trial import (
        HeldOut,
        Metrics,
        Trial,
        TrialKey,
        TrialResult,
        choose,
        draw_rows,
        path_parameter,
        run_trial,
        walk_path,
    )

__getattr__, __dir__, __all__ = lazy_names(globals())
