"""What paper 2 says a ranker's margins are worth, as numbers, with the conditions under which they hold.

`generalisation` bounds the misranking of rows to come by the margins of the training pairs (Theorem
2, Lemma 3, Corollaries 4 and 5, eq. 2). `game` finds ρ, the best margin that any combination of the
weak rankers has, with a certificate, and has the condition of Theorems 7 and 8, round by round.
`partial_auc` is the same question about a window of false positive rates: Theorem 9 of paper 4.
The margins themselves are read off the ROC curve: `core.metrics.margins`.

References
----------
C. Rudin and R. E. Schapire, "Margin-based ranking and an equivalence between AdaBoost and
RankBoost", JMLR 10, 2009.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .game import (
        BestMargin,
        Unsolved,
        best_bipartite_margin,
        best_margin,
        column_outputs,
        makes_progress,
        stump_outputs,
    )
    from .generalisation import (
        MIN_THETA,
        Bound,
        Sample,
        WeakRankers,
        bound_held_out,
        bound_misranking,
        column_rankers,
        corollary_4_epsilon,
        corollary_4_failure,
        corollary_5_epsilon,
        corollary_5_failure,
        equation_2_epsilon,
        equation_2_least_rows,
        listed_pairs,
        log_sloppy_cover,
        log_uniform_cover,
        stump_rankers,
        two_classes,
    )
    from .partial_auc import (
        PartialAucBound,
        bound_partial_auc,
        dkw_deviation,
        step_risk,
        vc_deviation,
    )

__getattr__, __dir__, __all__ = lazy_names(globals())
