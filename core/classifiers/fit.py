"""Fits by scikit-learn, and their results turned into arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from core.ranker import Floats

from .design import LEAST_SCALE, Integers, expand, standardise
from .forest import NODE, ForestStack
from .linear import LinearStack
from .stack import Stack

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC


ClassifierName = Literal["linear_svm", "logistic", "random_forest"]


class TrainingRows(NamedTuple):
    """Rows ready for a fit.

    Attributes
    ----------
    columns : ndarray of shape (n_rows, n_columns), float64
        Standardised; NaN is missing.
    center, scale : ndarray of shape (n_columns,), float64
        Weighted mean and standard deviation of each column's present values; 1 for a constant one.
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        In rows: the penalty of a linear classifier is beside their sum.
    n_categories : ndarray of shape (n_features,), int64
    seed : int
    """

    columns: Floats
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
    """Fit a classifier to weighted rows.

    Parameters
    ----------
    name : {"linear_svm", "logistic", "random_forest"}
    X : ndarray of shape (n_rows, n_features), float64
        NaN is missing: a linear classifier takes the mean of the rows at hand for it, as the paper says
        of trees (§5); a forest sends it to the side that is better at each split.
    positive : ndarray of shape (n_rows,), bool
        Both classes are there.
    weight : ndarray of shape (n_rows,), float64
        Above 0, in rows: a linear classifier fits rows of weight k as it fits k rows, beside its penalty. To a
        forest, which draws rows, only their ratios count.
    n_categories : ndarray of shape (n_features,), int64
    seed : int
        From 0 to 2³² - 1; only the forest draws.

    Returns
    -------
    Stack
        Of one classifier, whose scores are above 0 where it says positive.
    """
    from threadpoolctl import threadpool_limits

    columns = expand(X, n_categories)
    center, scale = _spread(columns, weight)
    rows = TrainingRows(
        standardise(columns, center, scale),
        center,
        scale,
        positive,
        weight,
        n_categories,
        seed,
    )
    with threadpool_limits(limits=1, user_api="blas"):  # whose sums depend on its threads
        return CLASSIFIERS[name](rows)


def _spread(columns: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Give the weighted mean and standard deviation of each column's present values."""
    center, scale = np.zeros(columns.shape[1]), np.ones(columns.shape[1])
    for j, column in enumerate(columns.T):
        present = ~np.isnan(column)
        if not present.any():
            continue
        unit = np.abs(column[present]).max() or 1.0  # so that no square overflows
        share = weight[present] / weight[present].sum()
        values = column[present] / unit
        mean = (share * values).sum()
        center[j] = mean * unit
        deviation = np.sqrt((share * (values - mean) ** 2).sum()) * unit
        if deviation >= LEAST_SCALE:
            scale[j] = deviation
    return center, scale


def _fit_logistic(rows: TrainingRows) -> LinearStack:
    from sklearn.linear_model import LogisticRegression

    return _linear(LogisticRegression(max_iter=1000), rows)


def _fit_linear_svm(rows: TrainingRows) -> LinearStack:
    from sklearn.svm import LinearSVC

    # Not the dual, which draws at random.
    return _linear(LinearSVC(dual=False), rows)


def _linear(estimator: LogisticRegression | LinearSVC, rows: TrainingRows) -> LinearStack:
    filled = np.where(np.isnan(rows.columns), 0.0, rows.columns)
    estimator.fit(filled, rows.positive, sample_weight=rows.weight)
    return LinearStack(
        rows.n_categories,
        estimator.coef_.astype(np.float64),
        rows.center[np.newaxis],
        rows.scale[np.newaxis],
        estimator.intercept_.astype(np.float64),
    )


def _fit_random_forest(rows: TrainingRows) -> ForestStack:
    from sklearn.ensemble import RandomForestClassifier

    # Shallow, as a split that learns its rows by heart leaves nothing for the splits below it.
    forest = RandomForestClassifier(
        n_estimators=50, max_depth=5, min_weight_fraction_leaf=0.01, random_state=rows.seed
    )
    forest.fit(rows.columns, rows.positive, sample_weight=rows.weight)
    trees = [_tree_of(tree.tree_, rows) for tree in forest.estimators_]
    return ForestStack(
        rows.n_categories,
        np.array([len(trees)]),
        np.array([len(tree) for tree in trees]),
        np.concatenate(trees),
    )


def _tree_of(tree: Any, rows: TrainingRows) -> npt.NDArray[np.void]:
    """Take a tree of scikit-learn's, whose nodes are in preorder, back to the scale of the data."""
    inside = tree.feature >= 0
    nodes = np.zeros(len(inside), dtype=NODE)
    column = np.where(inside, tree.feature, 0)
    nodes["column"] = np.where(inside, column, -1)
    standard = np.where(inside, tree.threshold, 0.0)
    half = rows.center[column] / 2 + rows.scale[column] / 2 * standard  # see `standardise`
    nodes["threshold"] = np.where(inside, 2 * half, 0.0)
    nodes["missing_first"] = inside & (tree.missing_go_to_left != 0)
    places = np.arange(len(inside))
    nodes["second"] = np.where(inside, tree.children_right - places, 0)
    share = tree.value[:, 0, 1]
    nodes["value"] = np.where(inside, 0.0, share - 0.5)
    return nodes


CLASSIFIERS: Mapping[ClassifierName, Callable[[TrainingRows], Stack]] = MappingProxyType(
    {
        "linear_svm": _fit_linear_svm,
        "logistic": _fit_logistic,
        "random_forest": _fit_random_forest,
    }
)
"""By name: how rows become a stack of one classifier."""

STACKS: Mapping[ClassifierName, type[LinearStack] | type[ForestStack]] = MappingProxyType(
    {"linear_svm": LinearStack, "logistic": LinearStack, "random_forest": ForestStack}
)
"""By name: the format that classifiers are kept in."""
