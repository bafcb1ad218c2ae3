"""Splits of ranking-tree nodes by a classifier, fitted to the node's rows with cost-sensitive weights."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from core.base.ranker import Floats
from core.base.state import Nested, Value
from core.classifiers import STACKS, ClassifierName, Stack, fit_classifier, fit_estimator
from core.coding.categories import effective_counts
from core.errors import ArtifactError, InvalidData, InvalidParameter

from .growth import Cell, CellDivision, Splitter, TreeRows
from .tree import Booleans, Integers, RankingTree, Rules


def cost_weights(sample: TreeRows, cell: Cell) -> Floats:
    """Return the weights of a node's rows in the classification error L_ω, where ω is its fraction of positives.

    Result: (n_rows,), float64; ω times the weight of a negative and 1 - ω times that of a positive: each class sums up
        to the same. So the least error is the greatest AUC of the split (eq. 9).

    Clémençon, Depecker & Vayatis 2011, §3.3, Fig. 6.
    """
    omega = cell.positive / (cell.positive + cell.negative)
    cost = np.where(sample.positive[cell.rows], 1 - omega, omega)
    return np.asarray(sample.weight[cell.rows] * cost)


def row_weights(sample: TreeRows, cell: Cell, count: Floats) -> Floats:
    """Return `cost_weights` scaled to sum to the number of rows; `count` is how many rows each row represents."""
    cost = cost_weights(sample, cell)
    return np.asarray(cost * (count[cell.rows].sum() / cost.sum()))


class ClassifierSplitter(Splitter):
    """Splits nodes by a built-in weighted classifier, which artifacts can store.

    name: {"linear_svm", "logistic", "random_forest"}.
    seed: for the draws of a forest; each cell's draw depends on it and on the cell's rows.
    """

    def __init__(self, name: ClassifierName, sample: TreeRows, seed: int) -> None:
        super().__init__(sample)
        self._name: ClassifierName = name
        self._count = effective_counts(sample.weight)
        self._seed = seed

    def split(self, cell: Cell) -> CellDivision | None:
        rows = cell.rows
        draw = np.random.SeedSequence([self._seed, int(rows[0]), len(rows)])
        fitted = fit_classifier(
            self._name,
            self.sample.X[rows],
            self.sample.positive[rows],
            row_weights(self.sample, cell, self._count),
            self.sample.n_categories,
            int(draw.generate_state(1)[0]),
        )
        return CellDivision(fitted.score(0, self.sample.X[rows]) > 0, fitted)

    def collect(self, rules: Sequence[Any]) -> "ClassifierRules":
        return ClassifierRules(STACKS[self._name].join(rules, self.sample.n_categories))


class RowwiseRules(Rules):
    """Base class of split rules that are applied to rows one rule at a time."""

    @abstractmethod
    def goes_top(self, rule: int, X: Floats, rows: Integers) -> Booleans:
        """Return which of X[rows] a rule sends to the top child: shape (len(rows),), bool."""

    def find_leaves(self, tree: RankingTree, X: Floats) -> Integers:
        return tree.send_down(len(X), lambda rule, rows: self.goes_top(rule, X, rows))


@dataclass(frozen=True, eq=False)
class ClassifierRules(RowwiseRules):
    """Split rules by classifiers: rows predicted positive go to the top child."""

    kind: ClassVar[str] = "classifier"

    stack: Annotated[Stack, Nested(n_classifiers="n_rules")]
    """A classifier per rule."""

    def __len__(self) -> int:
        return len(self.stack)

    def goes_top(self, rule: int, X: Floats, rows: Integers) -> Booleans:
        return self.stack.score(rule, X[rows]) > 0

    def take(self, rules: Integers) -> Self:
        return type(self)(self.stack.take(rules))

    def describe(
        self, rule: int, name: Callable[[int], str], categories: Sequence[Sequence[str] | None]
    ) -> dict[str, Any]:
        names = []
        for feature, texts in enumerate(categories):
            if texts is None:
                names.append(name(feature))
            else:
                names += [f"{name(feature)}={text}" for text in texts]
        return {"kind": self.kind, "format": self.stack.format} | self.stack.describe(
            rule, names.__getitem__
        )


class EstimatorSplitter(Splitter):
    """Splits nodes by a user-supplied weighted scikit-learn classifier.

    template: a classifier with `predict`, whose `fit` takes sample weights; cloned for each node. It sees X as it is:
        missing values as NaN, and no categorical columns.
    """

    def __init__(self, template: BaseEstimator, sample: TreeRows) -> None:
        name = type(template).__name__
        if not hasattr(template, "predict") or not has_fit_parameter(template, "sample_weight"):
            raise InvalidParameter(
                f"splitter must have predict and a fit that accepts sample_weight; {name} does not"
            )
        if sample.n_categories.any():
            raise InvalidData(f"the splitter {name} takes numeric columns only")
        super().__init__(sample)
        self._template = template
        self._count = effective_counts(sample.weight)

    def split(self, cell: Cell) -> CellDivision | None:
        X, positive = self.sample.X[cell.rows], self.sample.positive[cell.rows]
        weight = row_weights(self.sample, cell, self._count)
        estimator = fit_estimator(self._template, X, positive, weight, "splitter")
        return CellDivision(_takes(estimator, X), estimator)

    def collect(self, rules: Sequence[Any]) -> "EstimatorRules":
        return EstimatorRules(tuple(rules), type(self._template).__name__)


def _takes(estimator: Any, X: Floats) -> Booleans:
    return np.asarray(estimator.predict(X) == 1)


@dataclass(frozen=True, eq=False)
class EstimatorRules(RowwiseRules):
    """Split rules by scikit-learn classifiers: rows predicted positive go to the top child."""

    kind: ClassVar[str] = "estimator"

    estimators: tuple[Any, ...]
    """One per rule."""
    class_name: str

    def __len__(self) -> int:
        return len(self.estimators)

    def goes_top(self, rule: int, X: Floats, rows: Integers) -> Booleans:
        if not len(rows):  # scikit-learn refuses it
            return np.zeros(0, dtype=np.bool_)
        return _takes(self.estimators[rule], X[rows])

    def take(self, rules: Integers) -> Self:
        return type(self)(tuple(self.estimators[rule] for rule in rules), self.class_name)

    def describe(
        self, rule: int, name: Callable[[int], str], categories: Sequence[Sequence[str] | None]
    ) -> dict[str, Any]:
        return {"kind": self.kind, "words": f"{self.class_name} says so", "class": self.class_name}

    @property
    def _kept(self) -> Annotated[None, Value()]:
        raise ArtifactError(
            f"only splitters given by name can be saved, got an object of class {self.class_name}; the "
            f"classifiers that can be saved are {', '.join(STACKS)}"
        )
