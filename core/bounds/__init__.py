"""Generalisation bounds: the theorems of papers 2 and 4 as numbers, with the conditions under which they hold.

`generalisation` bounds the fraction of discordant pairs of future rows by the margins of the training pairs (Theorem 2,
Lemma 3, Corollaries 4 and 5, eq. 2 of paper 2). `game` computes ρ, the best margin of any combination of the weak
rankers, with a certificate, and checks the condition of Theorems 7 and 8 in each round. `partial_auc` bounds the
partial AUC of future rows (Theorem 9 of paper 4). `core.metrics.margins` computes the margins.

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
        listed_pairs,
        stump_rankers,
        two_classes,
    )
    from .partial_auc import (
        PartialAucBound,
        bound_partial_auc,
        step_risk,
    )

__getattr__, __dir__, __all__ = lazy_names(globals())
