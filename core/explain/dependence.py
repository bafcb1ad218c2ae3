"""Partial dependence: the mean score as one or two features are set by hand and the others stay as they are."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from core.errors import InvalidData, InvalidParameter
from core.metrics.groups import check_weights
from core.ranker import Floats, Ranker

MOST_FEATURES = 2

BLOCK_ROWS = 1 << 15
"""Rows that are scored in one call: enough to be fast, few enough to stay small."""


class Axis(NamedTuple):
    """The values that one feature is set to.

    Attributes
    ----------
    feature : int
        Its column.
    values : ndarray of shape (n_points,), float64
        Increasing, without repeats; NaN, the missing, comes last.
    """

    feature: int
    values: Floats


class PartialDependence(NamedTuple):
    """Mean scores on a grid of one or two features.

    Attributes
    ----------
    axes : tuple of Axis
        One or two.
    scores : ndarray of float64, of shape (n_points,) or (n_points, n_points of the second)
        With a last axis of n_labels for a ranker that has a score per label.
    """

    axes: tuple[Axis, ...]
    scores: Floats


def partial_dependence(
    ranker: Ranker,
    X: Any,
    features: Sequence[int | str],
    *,
    sample_weight: Any = None,
    n_points: int = 32,
) -> PartialDependence:
    """Average the scores of rows that are alike but for one or two features, set to values on a grid.

    Parameters
    ----------
    ranker : Ranker
        Any fitted one.
    X : array or table of shape (n_samples, n_features)
        The background: rows over which the other features vary.
    features : sequence of one or two int or str
        Columns, by number or name.
    sample_weight : array-like of shape (n_samples,), optional
        Finite, not negative, not all 0. Zero where a row counts as absent.
    n_points : int, default=32
        Most points per numeric feature, the missing apart; at least 2. A feature with so many distinct
        values or fewer is set to each of them, any other to weighted quantiles from the least to the
        greatest value. A category is a point of its own, however many there are, and so is missing
        where a row of the background misses the feature.

    Returns
    -------
    PartialDependence

    Raises
    ------
    InvalidData
        X or sample_weight break a rule above.
    InvalidParameter
        There are three features, one comes twice or is unknown, or n_points is below 2.

    Notes
    -----
    O(n_points ** n_features · n_samples) scores. This is the definition itself, the average over the
    rows of X. Friedman's shortcut for trees goes down both sides of a split of another feature, each
    weighted by the training rows that took it: rows that the splits above have chosen. With
    dependent features it averages over another distribution, and gives another figure.

    References
    ----------
    Clémençon, Depecker & Vayatis 2011, §5.2. J. H. Friedman, "Greedy function approximation",
    Annals of Statistics 29, 2001, §8.2.
    """
    rows = ranker._checked_rows(X)
    if len(rows) == 0:
        raise InvalidData("X must hold at least one row, got none")
    if n_points < 2:
        raise InvalidParameter(f"n_points must be at least 2, got {n_points}")
    weight = np.ones(len(rows))
    if sample_weight is not None:
        weight = check_weights(sample_weight, len(rows))
    numbers = find_features(ranker, features)
    if len(numbers) > MOST_FEATURES:
        raise InvalidParameter(f"features must be one or two columns, got {len(numbers)}")
    axes = [
        make_axis(j, rows[:, j], weight, n_points, len(ranker.categories_[j] or ()))
        for j in numbers
    ]
    return PartialDependence(tuple(axes), score_grid(ranker.score_rows, rows, weight, axes))


def make_axis(
    feature: int,
    column: Floats,
    weight: Floats,
    n_points: int,
    n_categories: int = 0,
    *,
    most_categories: int | None = None,
) -> Axis:
    """Choose the values that a feature is set to; see `partial_dependence`.

    Parameters
    ----------
    feature : int
    column : ndarray of shape (n_rows,), float64
        Its values in the background; NaN is missing.
    weight : ndarray of shape (n_rows,), float64
    n_points : int
    n_categories : int, default=0
        0 for a numeric feature; a categorical one is set to 0, 1, ..., n_categories - 1.
    most_categories : int, optional
        With more categories only so many, those with the most weight.

    Returns
    -------
    Axis
    """
    column, weight = column[weight > 0], weight[weight > 0]
    missing = np.isnan(column)
    if n_categories:
        values = _heaviest(column[~missing], weight[~missing], n_categories, most_categories)
    else:
        values = _quantiles(column[~missing], weight[~missing], n_points)
    if missing.any():
        values = np.append(values, np.nan)
    return Axis(feature, values)


def score_grid(
    score: Callable[[Floats], Floats], rows: Floats, weight: Floats, axes: Sequence[Axis]
) -> Floats:
    """Average the scores of the rows at every point of a grid.

    Parameters
    ----------
    score : callable (ndarray of shape (n, n_features)) -> ndarray of shape (n,) or (n, n_labels)
        Scores each row for itself.
    rows : ndarray of shape (n_rows, n_features), float64
    weight : ndarray of shape (n_rows,), float64
        Not all 0.
    axes : sequence of Axis
        Features all different.

    Returns
    -------
    ndarray of shape (n_points of the first axis, ...[, n_labels]), float64

    """
    points = np.array(list(product(*(axis.values for axis in axes))))
    scores = score_points(score, rows, weight, [axis.feature for axis in axes], points)
    shape = tuple(len(axis.values) for axis in axes)
    return scores.reshape(shape + scores.shape[1:])


def score_points(
    score: Callable[[Floats], Floats],
    rows: Floats,
    weight: Floats,
    columns: Sequence[int],
    points: Floats,
) -> Floats:
    """Average the scores of the rows with some columns set to each of several points.

    Parameters
    ----------
    score, rows, weight
        See `score_grid`.
    columns : sequence of int
        All different.
    points : ndarray of shape (n_points, n_columns), float64

    Returns
    -------
    ndarray of shape (n_points[, n_labels]), float64

    Notes
    -----
    Rows go to `score` in blocks of 2¹⁵ at most, over as many points as fit.
    """
    share = weight / weight.max()  # so that no sum overflows
    block = rows[:BLOCK_ROWS]
    at_once = max(1, BLOCK_ROWS // len(block))
    sums = []
    for start in range(0, len(points), at_once):
        some = points[start : start + at_once]
        total: Any = 0.0
        for first in range(0, len(rows), BLOCK_ROWS):
            part = slice(first, first + BLOCK_ROWS)
            total = total + _weighted_sums(score, rows[part], share[part], columns, some)
        sums.append(total)
    scores: Floats = np.concatenate(sums) / share.sum()
    return scores


def _weighted_sums(
    score: Callable[[Floats], Floats],
    rows: Floats,
    share: Floats,
    columns: Sequence[int],
    points: Floats,
) -> Floats:
    """Score a copy of the rows for each point, in one call, and add up each copy's weighted scores."""
    copies = np.tile(rows, (len(points), 1))
    copies[:, columns] = np.repeat(points, len(rows), axis=0)
    scores = score(copies)
    by_point = scores.reshape(len(points), len(rows), *scores.shape[1:])
    # Not BLAS, whose sums depend on its threads.
    weighted = by_point * share.reshape(1, -1, *(1,) * (scores.ndim - 1))
    sums: Floats = weighted.sum(axis=1)
    return sums


def _heaviest(codes: Floats, weight: Floats, n_categories: int, most: int | None) -> Floats:
    """Give the categories, only the heaviest where there are more than most."""
    mass = np.bincount(codes.astype(np.int64), weights=weight, minlength=n_categories)
    heaviest = np.argsort(-mass, kind="stable")[:most]
    return np.sort(heaviest).astype(np.float64)


def _quantiles(values: Floats, weight: Floats, n_points: int) -> Floats:
    """All distinct values where they are few, else so many of them that share out the weight evenly."""
    distinct, places = np.unique(values, return_inverse=True)
    if len(distinct) <= n_points:
        return np.asarray(distinct)
    cumulative = np.cumsum(np.bincount(places, weights=weight))
    wanted = np.linspace(0.0, cumulative[-1], n_points)
    found = np.searchsorted(cumulative, wanted)
    chosen: Floats = distinct[np.unique(np.minimum(found, len(distinct) - 1))]
    return chosen


def find_features(ranker: Ranker, features: Sequence[int | str]) -> list[int]:
    """Give the columns of a ranker that are named or numbered; refuse others, and one given twice."""
    if isinstance(features, str) or not len(features):
        shown = repr(features) if isinstance(features, str) else "none"
        raise InvalidParameter(f"features must be a list of columns, got {shown}")
    numbers = [_find_feature(ranker, feature) for feature in features]
    for k, number in enumerate(numbers):
        if number in numbers[:k]:
            raise InvalidParameter(f"features must differ, got {features[k]!r} twice")
    return numbers


def _find_feature(ranker: Ranker, feature: int | str) -> int:
    if isinstance(feature, str):
        names = [str(name) for name in getattr(ranker, "feature_names_in_", ())]
        if feature not in names:
            shown = ", ".join(names[:20]) or "no names"
            raise InvalidParameter(f"feature {feature!r} is unknown; the ranker has {shown}")
        return names.index(feature)
    if not 0 <= feature < ranker.n_features_in_:
        raise InvalidParameter(
            f"a feature's number must be from 0 to {ranker.n_features_in_ - 1}, got {feature}"
        )
    return int(feature)
