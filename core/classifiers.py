"""Three built-in classifiers, stored as flat arrays, and fits of any scikit-learn estimator.

Rankers may contain classifiers: as splitting rules of TreeRank, or as weak rankers. Logistic regression and the linear
SVM are fitted by `core.linear.newton`, a random forest by scikit-learn. All score from flat arrays, which an artifact
stores, so that it holds no foreign code. They take missing values and categories.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le
from scipy import sparse
from sklearn.base import clone

from core.base.ranker import Floats
from core.base.state import FINITE, NOT_NAN, Array, Index, Integers, Records, State, Totals
from core.errors import ArtifactError, InvalidData

# Smallest scale of a column: half of a smaller one would be rounded.
MIN_SCALE = float(np.finfo(np.float64).tiny)

TERMS_SHOWN = 20  # terms of a linear classifier that its description lists
BLOCK_ROWS = (
    4096  # rows that go down all trees of a forest at the same time, which bounds the memory
)

# With more columns, some of them of categories, rows are stored as a sparse matrix.
MAX_DENSE_COLUMNS = 256
COLUMNS_AT_ONCE = 64  # columns of one feature's categories whose scale is computed at the same time


def expand(X: Floats, n_categories: Integers) -> Floats:
    """One-hot encode categories (missing: all 0); NaN in numeric columns stays. All-numeric X is returned itself."""
    if not n_categories.any():
        return X
    columns = []
    for column, count in zip(X.T, n_categories.tolist(), strict=True):
        if count:
            columns.append(column[:, np.newaxis] == np.arange(count))
        else:
            columns.append(column[:, np.newaxis])
    return np.concatenate(columns, axis=1, dtype=np.float64)


def column_origins(n_categories: Integers) -> tuple[Integers, Integers]:
    """Return each column's feature and category in the one-hot table of `expand`; -1 for a numeric feature."""
    counts = np.maximum(n_categories, 1)
    feature = np.repeat(np.arange(len(counts)), counts)
    category = np.arange(len(feature)) - np.repeat(np.cumsum(counts) - counts, counts)
    return feature, np.where(n_categories[feature] > 0, category, -1)


def count_columns(n_categories: Integers) -> int:
    return int(np.maximum(n_categories, 1).sum())


class Stack(State, ABC):
    """Base class of a list of fitted classifiers of one kind, stored in shared flat arrays and numbered from 0."""

    format: ClassVar[str]
    """Prefix of the arrays' names in artifacts: "linear", "forest"."""

    n_categories: Integers

    @abstractmethod
    def __len__(self) -> int:
        """Number of classifiers."""

    @abstractmethod
    def score(self, number: int, X: Floats) -> Floats:
        """Return the score of each row by the classifier with this number: above 0 it predicts positive.

        A row's score depends on that row alone. X: shape (n_rows, n_features), float64; NaN is missing, and a category
        is its index.
        """

    @abstractmethod
    def take(self, numbers: Integers) -> Self:
        """Return the classifiers with these numbers, in that order."""

    @classmethod
    @abstractmethod
    def join(cls, stacks: Sequence[Stack], n_categories: Integers) -> Stack:
        """Return the classifiers of several stacks of this kind as one stack."""

    @abstractmethod
    def describe(self, number: int, name: Callable[[int], str]) -> dict[str, Any]:
        """Return a JSON description of a classifier; `name` returns the name of a column of `expand`."""


def _by_column(name: str) -> Array:
    return Array("n_classifiers", "n_columns", name=f"linear_{name}")


@dataclass(frozen=True)
class LinearStack(Stack):
    """Linear classifiers: the score is intercept + Σ coef · (x - center) / scale over the columns of `expand`."""

    format: ClassVar[str] = "linear"

    n_categories: Integers
    coef: Annotated[Floats, _by_column("coef"), FINITE]
    center: Annotated[Floats, _by_column("center"), FINITE]
    scale: Annotated[Floats, _by_column("scale"), FINITE, Ge(MIN_SCALE)]
    intercept: Annotated[Floats, Array("n_classifiers", name="linear_intercept"), FINITE]

    def __len__(self) -> int:
        return len(self.intercept)

    def score(self, number: int, X: Floats) -> Floats:
        from core.linear.design import standardise

        feature, category = column_origins(self.n_categories)
        scores = np.full(len(X), self.intercept[number])
        coef, center, scale = self.coef[number], self.center[number], self.scale[number]
        # Column by column, as the order in which BLAS adds depends on its threads and the number of rows.
        for j in np.flatnonzero(coef):
            column = X[:, feature[j]]
            if category[j] >= 0:
                column = (column == category[j]).astype(np.float64)
            deviation = standardise(column, center[j], scale[j])
            deviation[np.isnan(deviation)] = 0.0
            scores += coef[j] * deviation
        return scores

    def take(self, numbers: Integers) -> Self:
        parts = (self.coef, self.center, self.scale, self.intercept)
        return type(self)(self.n_categories, *(part[numbers] for part in parts))

    @classmethod
    def join(cls, stacks: Sequence[Stack], n_categories: Integers) -> LinearStack:
        none = np.empty((0, count_columns(n_categories)))
        own = [stack for stack in stacks if isinstance(stack, cls)]
        return cls(
            n_categories,
            np.concatenate([none, *(stack.coef for stack in own)]),
            np.concatenate([none, *(stack.center for stack in own)]),
            np.concatenate([none, *(stack.scale for stack in own)]),
            np.concatenate([none[:, 0], *(stack.intercept for stack in own)]),
        )

    def describe(self, number: int, name: Callable[[int], str]) -> dict[str, Any]:
        coef = self.coef[number]
        greatest = np.argsort(-np.abs(coef), kind="stable")[:TERMS_SHOWN].tolist()
        terms = [(name(j), float(coef[j])) for j in greatest if coef[j]]
        words = "".join(f" {value:+.4g}·{term}" for term, value in terms)
        more = " + …" if np.count_nonzero(coef) > TERMS_SHOWN else ""
        return {
            "words": f"{self.intercept[number]:.4g}{words}{more} > 0 (columns standardised)",
            "intercept": float(self.intercept[number]),
            "coefficients": dict(terms),
        }


NODE = np.dtype(
    [
        ("column", np.int64),
        ("threshold", np.float64),
        ("missing_first", np.bool_),
        ("second", np.int64),
        ("value", np.float64),
    ]
)
"""A node of a tree: a row goes to the next node if column <= threshold, or is missing and
missing_first; else `second` nodes further on. column is -1 at a leaf, whose value, from -½ to ½, is
the fraction of positives less ½."""


@dataclass(frozen=True)
class ForestStack(Stack):
    """Random forests: the score is the mean value of a classifier's trees."""

    format: ClassVar[str] = "forest"

    n_categories: Integers
    n_trees: Annotated[
        Integers, Array("n_classifiers", name="forest_n_trees"), Ge(1), Totals("n_all_trees")
    ]
    n_nodes: Annotated[
        Integers, Array("n_all_trees", name="forest_n_nodes"), Ge(1), Totals("n_all_nodes")
    ]
    nodes: Annotated[
        npt.NDArray[np.void],
        Records(
            NODE,
            "n_all_nodes",
            "forest_",
            column=Index("n_columns", least=-1),
            threshold=NOT_NAN,
            value=(Ge(-0.5), Le(0.5)),
        ),
    ]

    @cached_property
    def _first_tree(self) -> Integers:
        return np.concatenate([[0], np.cumsum(self.n_trees)])

    @cached_property
    def _root(self) -> Integers:
        return np.concatenate([[0], np.cumsum(self.n_nodes)])

    def __len__(self) -> int:
        return len(self.n_trees)

    def score(self, number: int, X: Floats) -> Floats:
        scores = np.empty(len(X))
        for start in range(0, len(X), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            scores[block] = self._predict(number, X[block])
        return scores

    def _predict(self, number: int, X: Floats) -> Floats:
        nodes = self.nodes
        feature, category = column_origins(self.n_categories)
        trees = slice(self._first_tree[number], self._first_tree[number + 1])
        at = np.tile(self._root[trees], (len(X), 1))
        row = np.arange(len(X))[:, np.newaxis]
        while (column := nodes["column"][at]).max(initial=-1) >= 0:
            split_on = np.maximum(column, 0)
            values = X[row, feature[split_on]]
            of_category = category[split_on]
            values = np.where(of_category >= 0, values == of_category, values)
            first = np.where(
                np.isnan(values), nodes["missing_first"][at], values <= nodes["threshold"][at]
            )
            at += np.where(column < 0, 0, np.where(first, 1, nodes["second"][at]))
        means: Floats = nodes["value"][at].mean(axis=1)
        return means

    def take(self, numbers: Integers) -> Self:
        trees = _pieces(np.arange(len(self.n_nodes)), self._first_tree, numbers)
        return type(self)(
            self.n_categories,
            self.n_trees[numbers],
            self.n_nodes[trees],
            _pieces(self.nodes, self._root, trees),
        )

    @classmethod
    def join(cls, stacks: Sequence[Stack], n_categories: Integers) -> ForestStack:
        none = np.empty(0, dtype=np.int64)
        own = [stack for stack in stacks if isinstance(stack, cls)]
        return cls(
            n_categories,
            np.concatenate([none, *(stack.n_trees for stack in own)]),
            np.concatenate([none, *(stack.n_nodes for stack in own)]),
            np.concatenate([np.empty(0, dtype=NODE), *(stack.nodes for stack in own)]),
        )

    def describe(self, number: int, name: Callable[[int], str]) -> dict[str, Any]:
        trees = slice(self._first_tree[number], self._first_tree[number + 1])
        ends = self._root[trees.start], self._root[trees.stop]
        column = self.nodes["column"][ends[0] : ends[1]]
        used, times = np.unique(column[column >= 0], return_counts=True)
        order = np.argsort(-times, kind="stable")
        uses = {name(int(used[i])): int(times[i]) for i in order}
        shown = ", ".join(list(uses)[:5]) or "nothing"
        n_trees = int(self.n_trees[number])
        return {
            "words": f"{n_trees} trees say so by majority, asking most about {shown}",
            "trees": n_trees,
            "splits": uses,
        }

    def check(self) -> None:
        end = np.repeat(np.cumsum(self.n_nodes), self.n_nodes)
        inside = self.nodes["column"] >= 0
        left = end - np.arange(len(self.nodes))  # nodes from here to the end of the tree
        # Both children come later and are in the same tree, so the last node must be a leaf.
        second = self.nodes["second"][inside]
        if not ((second >= 2) & (second < left[inside])).all():
            raise ArtifactError(
                "forest_second must lead to a later node of the tree, after the next"
            )


def _pieces(array: npt.NDArray[Any], start: Integers, numbers: Integers) -> npt.NDArray[Any]:
    pieces = [array[start[number] : start[number + 1]] for number in numbers.tolist()]
    return np.concatenate([array[:0], *pieces])


ClassifierName = Literal["linear_svm", "logistic", "random_forest"]


class ClassifierRows(NamedTuple):
    """Rows prepared for fitting a classifier: one-hot encoded, standardised, with labels and weights.

    If there are many columns, they are a CSR matrix, in which the column of a category is 1 / scale for the rows of
    that category and 0 for others; its standardised values are these less `shift`. `shift` is 0 for other columns.
    """

    columns: Any
    shift: Floats
    center: Floats
    scale: Floats
    positive: npt.NDArray[np.bool_]
    weight: Floats
    n_categories: Integers
    seed: int


def fit_classifier(
    name: ClassifierName,
    X: Floats,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    n_categories: Integers,
    seed: int,
) -> Stack:
    """Return a built-in classifier fitted to weighted rows, as a stack of one.

    name: {"linear_svm", "logistic", "random_forest"}.
    X: (n_rows, n_features); NaN is missing. A linear classifier replaces it by the mean of these rows, as the paper
        does in trees (§5); a forest sends it to the better side of each split.
    positive: (n_rows,), bool; has both classes.
    weight: (n_rows,); above 0, in rows: a linear classifier treats a row of weight k as k rows, relative to its
        penalty. For a forest, which draws rows, only the ratios of weights matter.
    seed: from 0 to 2³² - 1; used by the forest only.

    Result: with one classifier.
    """
    from core.linear.design import column_scales, standardise

    if count_columns(n_categories) > MAX_DENSE_COLUMNS and n_categories.any():
        rows = _store_rows(X, positive, weight, n_categories, seed)
    else:
        columns = expand(X, n_categories)
        center, scale = column_scales(columns, weight)
        standard = standardise(columns, center, scale)
        shift = np.zeros(len(center))
        rows = ClassifierRows(standard, shift, center, scale, positive, weight, n_categories, seed)
    return _fit_random_forest(rows) if name == "random_forest" else _fit_linear(rows, name)


def _store_rows(
    X: Floats,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    n_categories: Integers,
    seed: int,
) -> ClassifierRows:
    from core.linear.design import column_scales, standardise

    center, scale = np.empty((2, count_columns(n_categories)))
    shift = np.zeros_like(center)
    indices, values = np.empty((2, *X.shape))
    first = 0
    for j, count in enumerate(n_categories.tolist()):
        column, own = X[:, j], slice(first, first + max(count, 1))
        if count:
            for start in range(0, count, COLUMNS_AT_ONCE):  # each is as wide as the table is long
                some = np.arange(start, min(start + COLUMNS_AT_ONCE, count))
                part = (column[:, np.newaxis] == some).astype(np.float64)
                center[first + some], scale[first + some] = column_scales(part, weight)
            known = np.where(np.isnan(column), 0.0, column).astype(np.int64)
            indices[:, j] = first + known
            values[:, j] = np.where(np.isnan(column), 0.0, 1.0 / scale[own][known])
            shift[own] = center[own] / scale[own]
        else:
            center[own], scale[own] = column_scales(column[:, np.newaxis], weight)
            indices[:, j] = first
            values[:, j] = standardise(column, center[first], scale[first])
        first = own.stop
    whole = np.int32 if X.size < 2**31 else np.int64  # scikit-learn's trees take int32 only
    starts = np.arange(0, X.size + 1, X.shape[1], dtype=whole)
    stored = values.ravel(), indices.ravel().astype(whole), starts
    points = sparse.csr_array(stored, (len(X), first))
    points.eliminate_zeros()
    return ClassifierRows(points, shift, center, scale, positive, weight, n_categories, seed)


def _fit_linear(rows: ClassifierRows, name: ClassifierName) -> LinearStack:
    """Return a linear classifier that minimises ½‖w‖² + Σ weight ℓ(±(w·x + b)) on standardised x."""
    from core.linear.design import DenseRows, StoredRows, TableRows, identity_coordinates
    from core.linear.newton import LOOSE_TOLERANCE, logistic_loss, minimise, squared_hinge_loss

    loss = logistic_loss if name == "logistic" else squared_hinge_loss
    coordinates = identity_coordinates(rows.columns.shape[1])
    table: TableRows
    if sparse.issparse(rows.columns):
        points = rows.columns.copy()
        points.data = np.nan_to_num(points.data, nan=0.0)
        table = StoredRows(points, rows.shift, coordinates)
    else:
        table = DenseRows(np.nan_to_num(rows.columns, nan=0.0), coordinates)
    w, b = minimise(table, rows.positive, rows.weight, loss, tol=LOOSE_TOLERANCE).score
    return LinearStack(
        rows.n_categories,
        w[np.newaxis],
        rows.center[np.newaxis],
        rows.scale[np.newaxis],
        np.array([b]),
    )


def _fit_random_forest(rows: ClassifierRows) -> ForestStack:
    from sklearn.ensemble import RandomForestClassifier

    # Shallow, as a classifier that overfits the rows of a node leaves nothing for the nodes below it.
    forest = RandomForestClassifier(
        n_estimators=50, max_depth=5, min_weight_fraction_leaf=0.01, random_state=rows.seed
    )
    columns = rows.columns
    if sparse.issparse(columns) and np.isnan(columns.data).any():
        columns = columns.astype(
            np.float32
        ).toarray()  # a forest knows no missing among stored values
    elif sparse.issparse(columns):
        columns = columns.tocsc()
    forest.fit(columns, rows.positive, sample_weight=rows.weight)
    trees = [_tree_of(tree.tree_, rows) for tree in forest.estimators_]
    return ForestStack(
        rows.n_categories,
        np.array([len(trees)]),
        np.array([len(tree) for tree in trees]),
        np.concatenate(trees),
    )


def _tree_of(tree: Any, rows: ClassifierRows) -> npt.NDArray[np.void]:
    """Return the nodes of a fitted scikit-learn tree as records, with thresholds on the scale of the data."""
    inside = tree.feature >= 0
    nodes = np.zeros(len(inside), dtype=NODE)
    column = np.where(inside, tree.feature, 0)
    nodes["column"] = np.where(inside, column, -1)
    standard = np.where(inside, tree.threshold, 0.0)
    center = np.where(rows.shift == 0.0, rows.center, 0.0)[
        column
    ]  # stored columns have kept their values
    half = center / 2 + rows.scale[column] / 2 * standard  # by halves, see `standardise`
    nodes["threshold"] = np.where(inside, 2 * half, 0.0)
    nodes["missing_first"] = inside & (tree.missing_go_to_left != 0)
    nodes["second"] = np.where(inside, tree.children_right - np.arange(len(inside)), 0)
    positive_fraction = tree.value[:, 0, 1]
    nodes["value"] = np.where(inside, 0.0, positive_fraction - 0.5)
    return nodes


STACKS: Mapping[ClassifierName, type[LinearStack] | type[ForestStack]] = MappingProxyType(
    {"linear_svm": LinearStack, "logistic": LinearStack, "random_forest": ForestStack}
)
"""By name: the format in which classifiers are stored."""


def fit_estimator(
    template: Any, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, role: str
) -> Any:
    """Return a clone of a scikit-learn estimator, fitted to the rows with sample weights.

    The weights are not all 0. InvalidData: the estimator raises ValueError for the rows; `role` says in the message
    what it is used for.
    """
    estimator = clone(template)
    try:
        estimator.fit(X, positive.astype(np.int64), sample_weight=weight)
    except ValueError as error:
        raise InvalidData(
            f"the {role} {type(estimator).__name__} rejected its rows: {error}"
        ) from error
    return estimator
