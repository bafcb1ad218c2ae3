"""Linear machines: the design matrix of a table, Newton's method for smooth losses, and rankers of a linear score.

`GreedyPairs` finds its combination of columns by search: a control that papers compare with.
"""

from typing import TYPE_CHECKING

from core.lazy import lazy_names

if TYPE_CHECKING:
    from .greedy_pairs import GreedyPairs

__getattr__, __dir__, __all__ = lazy_names(globals())
