"""What a ranker has learnt, whatever its algorithm: how scores depend on features, and which features matter.

Everything here looks at a ranker from outside, through `score_rows` alone, so that one definition serves all of them.
What an algorithm can say of itself, such as the gains of a ranking tree's splits, is in its own folder; `conditions`
has the words for it.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .dependence import (
        Axis,
        PartialDependence,
        VariableDependence,
        make_axis,
        mean_absolute,
        partial_dependence,
        permutation_importance,
        score_grid,
        variable_dependence,
    )

__getattr__, __dir__, __all__ = lazy_names(globals())
