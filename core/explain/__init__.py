"""Explanations of any ranker: how its scores depend on features, and which features matter.

The functions only use `score_rows`, so they work for every ranker. What is specific to an algorithm, such as the gains
of the splits of a ranking tree, is in its own package. All functions raise `InvalidData` for rows or weights that break
a rule, and `InvalidParameter` for a parameter that is out of range.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from core.base.monotone import MonotoneCheck, check_monotone

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
    from .reasons import Reference, average_reference, largest, mean_reference, reference_at
    from .sampling import ShapleyEstimate, count_scored, shapley_estimate

__getattr__, __dir__, __all__ = lazy_names(globals())
