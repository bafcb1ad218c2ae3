"""The kinds of weak ranker, by the value of the parameter `weak_ranker`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from core.ranker import Floats

from .columns import ColumnSum, start_columns
from .ensemble import Ensemble
from .loop import Learner, Path
from .rules import CutRule
from .stump_sum import StumpLearner, StumpSum
from .tree_learner import Shape, TreeLearner
from .tree_rules import TreeRule
from .tree_sum import TreeSum

if TYPE_CHECKING:
    from .booster import Booster


class CollectingLearner(Learner[Any], Protocol):
    """A learner that can sum up what the loop has found on it; a `checkpoint.Resumable`, so that it can go on later."""

    def collect(self, path: Path) -> Ensemble:
        """Sum up the weak rankers of a run of the loop."""


class Kind(NamedTuple):
    """One kind of weak ranker.

    Attributes
    ----------
    start : callable (booster, rule, X, positive, weight) -> CollectingLearner
        Lays out the training rows at f = 0; reads what parameters it wants from the booster. The
        rule is of the type that the kind needs: `rules.CutRule` for stumps, `tree.rules.TreeRule` for trees.
    read : callable (arrays, n_rounds, n_categories) -> Ensemble
        Takes what `Ensemble.arrays` gave; refuses any other with ArtifactError. n_categories has a
        number for each feature, 0 where it is numeric.
    takes_categories : bool
        Whether it can do with categorical features.
    """

    start: Callable[["Booster", Any, Floats, npt.NDArray[np.bool_], Floats], CollectingLearner]
    read: Callable[[Mapping[str, npt.NDArray[Any]], int, npt.NDArray[np.int64]], Ensemble]
    takes_categories: bool


def _start_stumps(
    booster: "Booster", rule: CutRule, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats
) -> CollectingLearner:
    n_categories = booster._n_categories()
    return StumpLearner(rule, X, positive, weight, booster.max_bins, n_categories)


def _start_trees(
    booster: "Booster", rule: TreeRule, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats
) -> CollectingLearner:
    shape = Shape.of(booster)
    return TreeLearner(X, positive, weight, shape, rule.make_loss, booster._n_categories())


KINDS: MappingProxyType[str, Kind] = MappingProxyType(
    {
        "stump": Kind(_start_stumps, StumpSum.from_arrays, takes_categories=True),
        "column": Kind(start_columns, ColumnSum.from_arrays, takes_categories=False),
        "tree": Kind(_start_trees, TreeSum.from_arrays, takes_categories=True),
    }
)
