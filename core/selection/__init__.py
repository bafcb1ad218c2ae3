"""Selection: which parameters a ranker gets, by rows that it does not learn from.

A `Trial` is one fit on one inner split (`trial`). Along a path, as the number of rounds of a booster or C of an SVM,
one fit gives the rankers of all values.

A `Planner` (`planner`) decides which trials a search makes: `GridSearch`, `RandomSearch`, `SuccessiveHalving`
(`search`), and `Auto`, which takes a time and tries the families. `run_trial` carries one trial out, `run_plan` a whole
plan in one process, and `search_ranker` and `auto_ranker` do all there is to do, from rows to a ranker.
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
