"""How scores depend on features, and which features matter.

Partial dependence is the mean score as one or two features are set by hand and the others stay as they are. Variable
dependence is how much of the variance of the scores one feature, or two together, account for.
"""

from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.base.parameters import check_seed
from core.base.ranker import Floats, Ranker
from core.errors import InvalidData, InvalidParameter
from core.metrics import auc
from core.metrics.groups import check_weights

MAX_FEATURES = 2

BLOCK_ROWS = 1 << 15
"""Rows that are scored in one call: enough to be fast, few enough to stay small."""

MIN_VARIANCE = 1e-12
"""A joint effect whose variance is less, as a share of the score's, is rounding."""


class Axis(NamedTuple):
    """The values that one feature is set to."""

    feature: int
    """Its column."""
    values: Floats
    """Increasing, without repeats; NaN, the missing, comes last. Shape (n_points,), float64."""


class PartialDependence(NamedTuple):
    """Mean scores on a grid of one or two features."""

    axes: tuple[Axis, ...]
    """One or two."""
    scores: Floats
    """With a last axis of n_labels for a ranker that has a score per label. Shape (n_points,) or (n_points, n_points of
    the second)."""


class VariableDependence(NamedTuple):
    """How scores depend on features."""

    features: tuple[int, ...]
    """Columns, in the order asked for."""
    main: Floats
    """Variance of the feature's partial dependence, as a share of the variance of the scores: 0 where the score does
    not change with it on average, 1 where nothing else matters. Shape (n_features,), float64."""
    joint: Floats
    """H² of each two features: the share of the variance of their partial dependence that is in neither's own. 0 where
    their effects only add up, 1 where neither has one alone. Symmetric, with a diagonal of 0. Shape (n_features,
    n_features), float64."""


def partial_dependence(
    ranker: Ranker,
    X: Any,
    features: Sequence[int | str],
    *,
    sample_weight: Any = None,
    n_points: int = 32,
) -> PartialDependence:
    """Average the scores of rows that are alike but for one or two features, set to values on a grid.

    InvalidData: X or sample_weight break a rule above. InvalidParameter: there are three features, one comes twice or
    is unknown, or n_points is below 2.

    Parameters
    ----------
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

    Notes
    -----
    O(n_points ** n_features · n_samples) scores. This is the definition itself, the average over the rows of X.
    Friedman's shortcut for trees weighs both sides of a split by the training rows that came so far, and gives another
    figure where features depend on one another.

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
    weight = check_weights(sample_weight, len(rows))
    numbers = find_features(ranker, features)
    if len(numbers) > MAX_FEATURES:
        raise InvalidParameter(f"features must be one or two columns, got {len(numbers)}")
    axes = [
        make_axis(j, rows[:, j], weight, n_points, len(ranker.categories_[j] or ()))
        for j in numbers
    ]
    return PartialDependence(tuple(axes), score_grid(ranker.score_rows, rows, weight, axes))


def variable_dependence(
    ranker: Ranker,
    X: Any,
    features: Sequence[int | str] | None = None,
    *,
    sample_weight: Any = None,
    n_rows: int = 100,
    random_state: int = 0,
) -> VariableDependence:
    """Measure how much the scores of rows depend on features, alone and in pairs.

    Partial dependence is taken at the rows' own values. O(n_rows²) scores for each feature and each pair of them.

    InvalidData: X or sample_weight break a rule above, or the ranker has a score per label. InvalidParameter: a feature
    is unknown or comes twice, n_rows is below 2, or random_state is no seed.

    Parameters
    ----------
    X : array or table of shape (n_samples, n_features)
    features : sequence of int or str, optional
        Columns, by number or name. None: all of them.
    sample_weight : array-like of shape (n_samples,), optional
        Finite, not negative, not all 0.
    n_rows : int, default=100
        Of more rows so many are drawn, of weight above 0; at least 2.
    random_state : int, default=0
        Key of the draw.

    References
    ----------
    Clémençon, Depecker & Vayatis 2011, §5.2. J. H. Friedman and B. E. Popescu, "Predictive learning
    via rule ensembles", Annals of Applied Statistics 2, 2008, eq. 44.
    """
    rows = ranker._checked_rows(X)
    if ranker.target != "binary":
        raise InvalidData("variable dependence is of one score a row, the ranker has one per label")
    if n_rows < 2:
        raise InvalidParameter(f"n_rows must be at least 2, got {n_rows}")
    check_seed(random_state)
    asked = range(rows.shape[1]) if features is None else features
    columns = find_features(ranker, list(asked))
    weight = check_weights(sample_weight, len(rows))
    generator = np.random.Generator(np.random.Philox(key=random_state))
    drawn = generator.permutation(np.flatnonzero(weight > 0))[:n_rows]
    rows, weight = np.ascontiguousarray(rows[drawn]), weight[drawn]

    def effect(*among: int) -> Floats:
        """Partial dependence at each row's own values, less its mean."""
        scores = score_points(ranker.score_rows, rows, weight, among, rows[:, among])
        return np.asarray(scores - np.average(scores, weights=weight))

    scores = ranker.score_rows(rows)
    whole = _mean_square(scores - np.average(scores, weights=weight), weight)
    alone = [effect(column) for column in columns]
    main, joint = np.zeros(len(columns)), np.zeros((len(columns), len(columns)))
    if whole > 0:
        main = np.array([_mean_square(one, weight) / whole for one in alone])
        for j, k in combinations(range(len(columns)), 2):
            together = effect(columns[j], columns[k])
            variance = _mean_square(together, weight)
            if variance > MIN_VARIANCE * whole:
                rest = _mean_square(together - alone[j] - alone[k], weight)
                joint[j, k] = joint[k, j] = rest / variance
    return VariableDependence(tuple(columns), main, joint)


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
    column : ndarray of shape (n_rows,), float64
        Its values in the background; NaN is missing.
    weight : ndarray of shape (n_rows,), float64
    n_categories : int, default=0
        0 for a numeric feature; a categorical one is set to 0, 1, ..., n_categories - 1.
    most_categories : int, optional
        With more categories only so many, those with the most weight.
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

    Returns ndarray of shape (n_points of the first axis, ...[, n_labels]), float64.

    Parameters
    ----------
    score : callable (ndarray of shape (n, n_features)) -> ndarray of shape (n,) or (n, n_labels)
        Scores each row for itself.
    rows : ndarray of shape (n_rows, n_features), float64
    weight : ndarray of shape (n_rows,), float64
        Not all 0.
    axes : sequence of Axis
        Features all different.
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
    """Average the scores of the rows with some columns set to each of several points; shape (n_points[, n_labels]).

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
            copies = np.tile(rows[part], (len(some), 1))
            copies[:, columns] = np.repeat(some, len(rows[part]), axis=0)
            scores = score(copies)
            by_point = scores.reshape(len(some), -1, *scores.shape[1:])
            # Not BLAS, whose sums depend on its threads.
            weighted = by_point * share[part].reshape(1, -1, *(1,) * (scores.ndim - 1))
            total = total + weighted.sum(axis=1)
        sums.append(total)
    means: Floats = np.concatenate(sums) / share.sum()
    return means


def _mean_square(values: Floats, weight: Floats) -> float:
    return float(np.average(values**2, weights=weight))


def _heaviest(codes: Floats, weight: Floats, n_categories: int, most: int | None) -> Floats:
    """Return the categories, only the heaviest where there are more than most."""
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
    """Return the columns of a ranker that are named or numbered; refuse others, and one given twice."""
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


def mean_absolute(contributions: Floats, weight: Floats) -> Floats:
    """Average the size of each feature's part of the score.

    Returns ndarray of shape (n_features,) or (n_features, n_labels), float64: in units of the score; 0 for a feature
    that the ranker does not use.

    Parameters
    ----------
    contributions : ndarray of shape (n_rows, n_features) or (n_rows, n_features, n_labels), float64
        Parts that add up to each row's score, less the mean score.
    weight : ndarray of shape (n_rows,), float64
        Not all 0.
    """
    sizes: Floats = np.average(np.abs(contributions), axis=0, weights=weight)
    return sizes


def permutation_importance(
    score: Callable[[Floats], Floats],
    X: Floats,
    y: npt.ArrayLike,
    sample_weight: Floats | None = None,
    *,
    n_repeats: int = 5,
    random_state: int = 0,
) -> Floats:
    """Measure how much AUC is lost when a feature's values are permuted among the rows.

    O(n_features · n_repeats · n_rows) scores. Returns ndarray of shape (n_features,), float64: AUC less the mean AUC
    with the feature permuted. Of two features that say the same each may have 0, since the ranker has the other left;
    below 0 is noise.

    Parameters
    ----------
    score : callable (ndarray of shape (n, n_features)) -> ndarray of shape (n,)
        Scores each row for itself.
    X : ndarray of shape (n_rows, n_features), float64
        Best rows that the ranker was not fitted on.
    y : array-like of shape (n_rows,)
        1 for positive, 0 for negative.
    sample_weight : ndarray of shape (n_rows,), float64, optional
    n_repeats : int, default=5
        Permutations per feature, averaged.
    random_state : int, default=0
        Key of the permutations; with the feature's number and the repeat's it names each of them.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001, §10.
    """
    check_seed(random_state)
    whole = auc(y, score(X), sample_weight)
    losses = np.empty(X.shape[1])
    n_rows = len(X)
    for feature in range(X.shape[1]):
        copies = np.tile(X, (n_repeats, 1))
        for repeat in range(n_repeats):
            generator = np.random.Generator(
                np.random.Philox(key=[random_state, feature * n_repeats + repeat])
            )
            part = slice(repeat * n_rows, (repeat + 1) * n_rows)
            copies[part, feature] = X[generator.permutation(n_rows), feature]
        permuted = score(copies).reshape(n_repeats, n_rows)
        losses[feature] = np.mean([whole - auc(y, scores, sample_weight) for scores in permuted])
    return losses
