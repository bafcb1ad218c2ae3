"""Fits of classifiers: by name, as flat arrays, or of an estimator of the caller's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from core.errors import InvalidData
from core.ranker import Floats

from .stacks import NODE, ForestStack, Integers, LinearStack, Stack, expand

if TYPE_CHECKING:
    from core.linear.newton import Loss

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
    from core.linear.design import column_scales, standardise

    columns = expand(X, n_categories)
    center, scale = column_scales(columns, weight)
    standard = standardise(columns, center, scale)
    rows = TrainingRows(standard, center, scale, positive, weight, n_categories, seed)
    return CLASSIFIERS[name](rows)


def _fit_logistic(rows: TrainingRows) -> LinearStack:
    from core.linear.newton import logistic_loss

    return _fit_linear(rows, logistic_loss)


def _fit_linear_svm(rows: TrainingRows) -> LinearStack:
    from core.linear.newton import squared_hinge_loss

    return _fit_linear(rows, squared_hinge_loss)


def _fit_linear(rows: TrainingRows, loss: Callable[[Floats], Loss]) -> LinearStack:
    """Minimise ½‖w‖² + Σ weight ℓ(±(w·x + b)), x standardised, the missing at the mean; b is free."""
    from core.linear.design import DenseRows, plain_coordinates
    from core.linear.newton import CLOSE_ENOUGH, minimise

    points = np.nan_to_num(rows.columns, nan=0.0)
    table = DenseRows(points, plain_coordinates(points.shape[1]))
    w, b = minimise(table, rows.positive, rows.weight, loss, tol=CLOSE_ENOUGH).score
    return LinearStack(
        rows.n_categories,
        w[np.newaxis],
        rows.center[np.newaxis],
        rows.scale[np.newaxis],
        np.array([b]),
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
    half = (
        rows.center[column] / 2 + rows.scale[column] / 2 * standard
    )  # by halves, see `standardise`
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


def fit_estimator(
    template: Any, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, role: str
) -> Any:
    """Fit a clone of an estimator to weighted rows.

    Parameters
    ----------
    template : estimator
        Its `fit` takes sample weights.
    X : ndarray of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        In rows, not all 0.
    role : str
        What it is used as, for the error's words.

    Returns
    -------
    estimator

    Raises
    ------
    InvalidData
        The estimator refused the rows.
    """
    estimator = clone(template)
    try:
        estimator.fit(X, positive.astype(np.int64), sample_weight=weight)
    except ValueError as error:
        raise InvalidData(
            f"the {role} {type(estimator).__name__} refused its rows: {error}"
        ) from error
    return estimator
