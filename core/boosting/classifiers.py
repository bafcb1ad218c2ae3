"""Classifiers by name as weak rankers: fitted by scikit-learn, kept in formats of our own."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.classifiers import STACKS, ClassifierName, Stack, fit_classifier
from core.coding import TwoSided
from core.errors import ArtifactError
from core.ranker import Arrays, Floats

from .ensemble import join_fields, split_fields
from .estimators import ROUND, CutEstimator, EstimatorLearner, EstimatorSum, rounds_of
from .kinds import Kind
from .loop import Path

if TYPE_CHECKING:
    from .booster import Booster
    from .rules import Rule

Integers = npt.NDArray[np.int64]


class ClassifierLearner(EstimatorLearner):
    """The training rows, their weights, and the fit of a classifier to them.

    Parameters
    ----------
    name : {"linear_svm", "logistic", "random_forest"}
    X : ndarray of shape (n_rows, n_features), float64
        NaN is missing; a category is its position.
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
    n_categories : ndarray of shape (n_features,), int64
    seed : int
        With a round's number it names what the round draws.
    """

    changing = ("_log_weights", "_round")

    def __init__(
        self,
        name: ClassifierName,
        X: Floats,
        positive: npt.NDArray[np.bool_],
        weight: Floats,
        n_categories: Integers,
        seed: int,
    ) -> None:
        super().__init__(None, X, positive, weight)
        self._name: ClassifierName = name
        self._n_categories = n_categories
        self._seed = seed
        self._round = 0

    def _fit(self, weight: Floats) -> Stack:
        draw = np.random.SeedSequence([self._seed, self._round]).generate_state(1)
        self._round += 1
        return fit_classifier(
            self._name, self._X, self._positive, weight, self._n_categories, int(draw[0])
        )

    def collect(self, path: Path) -> "ClassifierSum":
        """Sum up the classifiers of a run of the loop."""
        stack = STACKS[self._name].join([h.estimator for h in path.found], self._n_categories)
        return ClassifierSum(rounds_of(path), path.found, self._name, stack)


class ClassifierSum(EstimatorSum):
    """A weighted sum of classifiers of one name, each cut into a two-sided one."""

    type: ClassVar[str] = "classifiers"

    def __init__(
        self,
        rounds: npt.NDArray[np.void],
        found: list[CutEstimator],
        name: ClassifierName,
        stack: Stack,
    ) -> None:
        super().__init__(rounds, found, name)
        self._stack = stack

    def arrays(self) -> Arrays:
        """Give the state as arrays."""
        return split_fields(self.rounds) | self._stack.arrays()


def _start(
    booster: "Booster", rule: "Rule", X: Floats, positive: npt.NDArray[np.bool_], weight: Floats
) -> ClassifierLearner:
    return ClassifierLearner(
        booster.weak_ranker, X, positive, weight, booster._n_categories(), booster.random_state
    )


def _read(
    name: ClassifierName,
    arrays: Mapping[str, npt.NDArray[Any]],
    n_rounds: int,
    n_categories: Integers,
) -> ClassifierSum:
    rounds = join_fields(arrays, ROUND, n_rounds)
    for field in ROUND.names or ():
        if not np.isfinite(rounds[field]).all():
            raise ArtifactError(f"{field} must be finite")
    stack = STACKS[name].read(arrays, n_rounds, n_categories)
    found = [
        CutEstimator(
            stack.take(np.array([k])),
            float(row["threshold"]),
            TwoSided(float(row["above"]), float(row["below"]), float(row["d_minus"])),
        )
        for k, row in enumerate(rounds)
    ]
    return ClassifierSum(rounds, found, name, stack)


CLASSIFIER_KINDS: MappingProxyType[str, Kind] = MappingProxyType(
    {name: Kind(_start, partial(_read, name), takes_categories=True) for name in STACKS}
)
"""The kinds of weak ranker that are classifiers with names."""
