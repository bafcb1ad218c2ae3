"""The boosting steps that a checkpoint stores: trees, and the changes of weights or scores in their leaves."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from core.base.checkpoint import Resumable
from core.base.ranker import Floats
from core.base.state import Arrays
from core.errors import ArtifactError

from .grower import CodedSplits, TreeGrower, TreeStep
from .predictor import CODED_SPLIT

N_SPLIT_FIELDS = len(CODED_SPLIT.names or ())


class TreeSteps(Resumable):
    """The boosting steps of a run; on restoring a checkpoint they are replayed on the rows, which are not stored.

    grower: at its start when a state is set.
    """

    def __init__(self, grower: TreeGrower) -> None:
        self._grower = grower
        self._steps: list[TreeStep] = []

    def add(self, factors: Floats) -> None:
        """Record the last tree of the grower as a step, with what is applied in its leaves: factors of the weights of
        both classes, shape (2, n_leaves), or changes of the score, shape (1, n_leaves).
        """
        self._steps.append(TreeStep(self._grower.coded_splits(), factors))

    def get_state(self) -> Arrays:
        """Return all steps encoded as one array of numbers and one of category subsets."""
        numbers: list[npt.NDArray[Any]] = [np.empty(0)]
        sets = [np.empty(0, dtype=np.uint8)]
        for (splits, columns, subsets), factors in self._steps:
            sizes = len(splits), len(columns), *subsets.shape, len(factors)
            numbers += [np.array(sizes), splits.view(np.int64), columns, factors.ravel()]
            sets.append(subsets.ravel())
        return {
            "numbers": np.concatenate(numbers).astype(np.float64),
            "subsets": np.concatenate(sets),
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        _read_steps(state)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Replay the steps of another run on the rows."""
        self._steps = _read_steps(state)
        self._grower.take_again(self._steps)


def _read_steps(state: Mapping[str, Any]) -> list[TreeStep]:
    steps: list[TreeStep] = []
    try:
        rest, sets = state["numbers"], state["subsets"]
        while len(rest):
            n_splits, n_columns, n_subsets, n_bytes, n_factors = map(int, rest[:5])
            sizes = N_SPLIT_FIELDS * n_splits, n_columns, n_factors * (n_splits + 1)
            if min(*sizes, n_subsets, n_bytes) < 0:
                raise ValueError("a number of numbers must be at least 0")
            *parts, rest = np.split(rest[5:], np.cumsum(sizes))
            splits, columns = parts[0].astype(np.int64), parts[1].astype(np.int64)
            subsets, sets = np.split(sets, [n_subsets * n_bytes])
            coded = CodedSplits(
                splits.view(CODED_SPLIT), columns, subsets.reshape(n_subsets, n_bytes)
            )
            steps.append(TreeStep(coded, parts[2].reshape(n_factors, n_splits + 1)))
    except (KeyError, ValueError, OverflowError) as error:
        raise ArtifactError(f"a checkpoint must contain the steps of trees: {error}") from error
    return steps
