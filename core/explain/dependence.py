"""Partial dependence of scores on features, and importance of features.

Partial dependence is the mean score if one or two features are set to given values, and the others stay as they are.
Variable dependence is the fraction of the scores' variance that one feature, or two together, account for.
"""

from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from core.base.parameters import check_items, check_seed, check_value
from core.base.ranker import Floats, Ranker
from core.base.target import as_numbers, as_table
from core.errors import InvalidData, InvalidParameter
from core.metrics import auc
from core.metrics.groups import check_weights

MAX_FEATURES = 2
"""Features of one partial dependence: the grid grows with their number as an exponent."""

BLOCK_ROWS = 1 << 15
"""Rows that are scored in one call: enough to be fast, few enough to need little memory."""

MIN_VARIANCE = 1e-12
"""A joint effect with less than this fraction of the scores' variance is rounding."""


class Axis(NamedTuple):
    """The grid values to which one feature is set for partial dependence.

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import Axis
    >>> Axis(0, np.array([1.0, 2.0])).feature
    0
    """

    feature: int
    """Index of its column."""
    values: Floats
    """Increasing, without repeats. NaN, a missing value, comes last. Shape (n_points,)."""


class PartialDependence(NamedTuple):
    """Mean scores on a grid of one or two features.

    Examples
    --------
    >>> import numpy as np
    >>> from core import Logistic
    >>> from core.explain import partial_dependence
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> found = partial_dependence(Logistic().fit(X, X[:, 0] >= 6), X, [0], n_points=3)
    >>> found.axes[0].values, bool(found.scores[0] < found.scores[-1])
    (array([ 0.,  5., 11.]), True)
    """

    axes: tuple[Axis, ...]
    """One or two."""
    scores: Floats
    """One dimension per axis. A ranker with a score per label adds a last dimension n_labels. Shape (n_points,) or
    (n_points, n_points)."""


class VariableDependence(NamedTuple):
    """Fractions of the variance of the scores that features account for, alone and in pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from core import Logistic
    >>> from core.explain import variable_dependence
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> found = variable_dependence(Logistic().fit(X, X[:, 0] > 0), X)
    >>> found.features, bool(found.main[0] > found.main[1])
    ((0, 1), True)
    """

    features: tuple[int, ...]
    """Indices of the columns, in the requested order."""
    main: Floats
    """Variance of each feature's partial dependence divided by the variance of the scores. 0: the mean score does not
    change with the feature. 1: nothing else matters. Shape (n_features,)."""
    joint: Floats
    """H² of each pair of features: the fraction of the variance of their partial dependence that is in neither of their
    single ones. 0 if their effects are additive, 1 if neither has an effect alone. Symmetric, with a diagonal of 0.
    Shape (n_features, n_features)."""


def partial_dependence(
    ranker: Ranker,
    X: Any,
    features: Sequence[int | str],
    *,
    sample_weight: Any = None,
    n_points: int = 32,
) -> PartialDependence:
    """Compute the partial dependence: the mean score with one or two features set to grid values.

    Use it to see how scores change with a feature, for any ranker.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker.
    X : array or table of shape (n_samples, n_features)
        Background rows over which the other features vary.
    features : sequence of one or two int or str
        Columns, by index or name.
    sample_weight : array-like of shape (n_samples,), optional
        Finite, not negative, not all 0.
    n_points : int, default=32
        Maximum number of points per numeric feature, not counting the missing one; at least 2. A feature with at most
        this number of distinct values is set to each of them, any other to weighted quantiles from the lowest to the
        highest value. Every category is a point, and so is a missing value if X has one.

    Returns
    -------
    PartialDependence

    Notes
    -----
    It takes O(n_points ** n_features · n_samples) scores. This is the definition itself, the mean over the rows of X.
    Friedman's shortcut for trees weights both sides of a split by the training rows that reach it, and gives another
    result if features depend on one another.

    References
    ----------
    Clémençon, Depecker & Vayatis 2011, §5.2. J. H. Friedman, "Greedy function approximation",
    Annals of Statistics 29, 2001, §8.2.

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import partial_dependence
    >>> from core import RankBoost
    >>> X = np.array([[1.0, 5.0], [2.0, 3.0], [3.0, 4.0], [4.0, 1.0]])
    >>> dependence = partial_dependence(RankBoost(n_rounds=5).fit(X, [0, 0, 1, 1]), X, [0])
    >>> dependence.axes[0].values, dependence.scores[3] > dependence.scores[0]
    (array([1., 2., 3., 4.]), np.True_)
    """
    check_value("ranker", Ranker, ranker)
    check_value("n_points", int, n_points)
    rows = ranker.checked_rows(X)
    if len(rows) == 0:
        raise InvalidData("X must have at least one row, got none")
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
    """Compute the fractions of the variance of the scores that features account for, alone and in pairs.

    Use it to find features that interact. Partial dependence is evaluated at the rows' own values, so it takes
    O(n_rows²) scores for each feature and each pair.

    Parameters
    ----------
    ranker, sample_weight
        As for `partial_dependence`.
    X : array or table of shape (n_samples, n_features)
        Background rows.
    features : sequence of int or str, optional
        Columns, by index or name. Default: all.
    n_rows : int, default=100
        Maximum number of rows, drawn at random from those of positive weight; at least 2.
    random_state : int, default=0
        Seed of the draw.

    Returns
    -------
    VariableDependence

    References
    ----------
    Clémençon, Depecker & Vayatis 2011, §5.2. J. H. Friedman and B. E. Popescu, "Predictive learning
    via rule ensembles", Annals of Applied Statistics 2, 2008, eq. 44.

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import variable_dependence
    >>> from core import Logistic
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> dependence = variable_dependence(Logistic().fit(X, X[:, 0] > 0), X)
    >>> dependence.main[0] > 0.9, dependence.joint.max() < 1e-12  # a linear score has no joint effects
    (np.True_, np.True_)
    """
    check_value("ranker", Ranker, ranker)
    if features is not None:
        check_items("features", features)
    check_value("n_rows", int, n_rows)
    rows = ranker.checked_rows(X)
    if ranker.target != "binary":
        raise InvalidData(
            "variable dependence requires one score per row; the ranker has one per label"
        )
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
        """Return the partial dependence at each row's own values, minus its mean."""
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
    """Return the grid values of a feature for partial dependence.

    Parameters
    ----------
    feature : int
        Index of its column.
    column : ndarray of shape (n_rows,), float64
        Its values; NaN is missing.
    weight : ndarray of shape (n_rows,), float64
        Weights of the rows.
    n_points : int
        Maximum number of values of a numeric feature.
    n_categories : int, default=0
        0 for a numeric feature. A categorical one is set to 0, 1, …, n_categories - 1.
    most_categories : int, optional
        Maximum number of categories; those of greatest weight are kept.

    Returns
    -------
    Axis

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import make_axis
    >>> make_axis(0, np.array([3.0, 1.0, 2.0, np.nan]), np.ones(4), n_points=2).values
    array([ 1.,  3., nan])
    """
    check_value("feature", Annotated[int, Ge(0)], feature)
    check_value("n_points", Annotated[int, Ge(1)], n_points)
    check_value("n_categories", Annotated[int, Ge(0)], n_categories)
    check_value("most_categories", Annotated[int, Ge(1)] | None, most_categories)
    column = np.atleast_1d(as_numbers("column", column))
    weight = check_weights(weight, len(column), "weight")
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
    """Return the mean score of the rows at every point of a grid of feature values.

    Parameters
    ----------
    score : callable (ndarray of shape (n, n_features)) -> ndarray of shape (n,) or (n, n_labels)
        Returns the score of each row.
    rows : ndarray of shape (n_rows, n_features), float64
        Background rows.
    weight : ndarray of shape (n_rows,), float64
        Weights of the rows, not all 0.
    axes : sequence of Axis
        Axes of different features.

    Returns
    -------
    ndarray of shape (n_points of the first axis, …[, n_labels]), float64

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import Axis, score_grid
    >>> rows = np.array([[1.0, 10.0], [2.0, 20.0]])
    >>> score_grid(lambda X: X.sum(axis=1), rows, np.ones(2), [Axis(0, np.array([0.0, 5.0]))])
    array([15., 20.])
    """
    check_value("score", Callable, score)
    check_items("axes", axes, Axis)
    rows = as_table("rows", rows)
    weight = check_weights(weight, len(rows), "weight")
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
    """Return mean scores, (n_points[, n_labels]), with columns set to points; `score` gets up to `BLOCK_ROWS` rows."""
    rows, weight = _weighing(rows, weight)
    relative = weight / weight.max()  # so that no sum overflows
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
            weighted = by_point * relative[part].reshape(1, -1, *(1,) * (scores.ndim - 1))
            total = total + weighted.sum(axis=1)
        sums.append(total)
    means: Floats = np.concatenate(sums) / relative.sum()
    return means


def _weighing(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the rows of a weight that is not 0, and their weights: the others must not even change the rounding."""
    return (values, weight) if weight.all() else (values[weight != 0.0], weight[weight != 0.0])


def _mean_square(values: Floats, weight: Floats) -> float:
    return float(np.average(values**2, weights=weight))


def _heaviest(codes: Floats, weight: Floats, n_categories: int, most: int | None) -> Floats:
    """Return the codes of the `most` categories of greatest weight, ascending; all categories for None."""
    mass = np.bincount(codes.astype(np.int64), weights=weight, minlength=n_categories)
    heaviest = np.argsort(-mass, kind="stable")[:most]
    return np.sort(heaviest).astype(np.float64)


def _quantiles(values: Floats, weight: Floats, n_points: int) -> Floats:
    """Return the distinct values if there are at most `n_points`, else that many weighted quantiles."""
    distinct, inverse = np.unique(values, return_inverse=True)
    if len(distinct) <= n_points:
        return np.asarray(distinct)
    cumulative = np.cumsum(np.bincount(inverse, weights=weight))
    wanted = np.linspace(0.0, cumulative[-1], n_points)
    index = np.searchsorted(cumulative, wanted)
    quantiles: Floats = distinct[np.unique(np.minimum(index, len(distinct) - 1))]
    return quantiles


def find_features(ranker: Ranker, features: Sequence[int | str]) -> list[int]:
    if not isinstance(features, str):
        check_items("features", features)
    if isinstance(features, str) or not len(features):
        shown = repr(features) if isinstance(features, str) else "none"
        raise InvalidParameter(f"features must be a list of columns, got {shown}")
    numbers = [_find_feature(ranker, feature) for feature in features]
    for k, number in enumerate(numbers):
        if number in numbers[:k]:
            raise InvalidParameter(f"features must differ; {features[k]!r} occurs twice")
    return numbers


def _find_feature(ranker: Ranker, feature: int | str) -> int:
    if isinstance(feature, str):
        names = [str(name) for name in getattr(ranker, "feature_names_in_", ())]
        if feature not in names:
            shown = ", ".join(names[:20]) or "no names"
            raise InvalidParameter(f"feature {feature!r} is unknown; the ranker has {shown}")
        return names.index(feature)
    number: int = check_value("an item of features", int, feature)
    if not 0 <= number < ranker.n_features_in_:
        raise InvalidParameter(
            f"the index of a feature must be from 0 to {ranker.n_features_in_ - 1}, got {feature}"
        )
    return number


def mean_absolute(contributions: Floats, weight: Floats) -> Floats:
    """Compute the mean absolute contribution of each feature: its importance in units of the score.

    Parameters
    ----------
    contributions : ndarray of shape (n_rows, n_features) or (n_rows, n_features, n_labels), float64
        Parts that sum to each row's score minus the mean score.
    weight : ndarray of shape (n_rows,), float64
        Weights of the rows, not all 0.

    Returns
    -------
    ndarray of shape (n_features,) or (n_features, n_labels), float64
        0 for a feature that is not used.

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import mean_absolute
    >>> mean_absolute(np.array([[1.0, 0.0], [-3.0, 0.0]]), np.ones(2))
    array([2., 0.])
    """
    parts = np.atleast_1d(as_numbers("contributions", contributions))
    parts, used = _weighing(parts, check_weights(weight, len(parts), "weight"))
    sizes: Floats = np.average(np.abs(parts), axis=0, weights=used)
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
    """Compute the permutation importance: the loss of AUC if a feature's values are shuffled.

    Parameters
    ----------
    score : callable (ndarray of shape (n, n_features)) -> ndarray of shape (n,)
        Returns the score of each row.
    X : ndarray of shape (n_rows, n_features), float64
        Rows, preferably held-out ones.
    y : array-like of shape (n_rows,)
        1 for positive, 0 for negative.
    sample_weight : ndarray of shape (n_rows,), float64, optional
        Weights of the rows.
    n_repeats : int, default=5
        Permutations per feature, averaged.
    random_state : int, default=0
        Seed. With the index of the feature and of the repeat it determines each permutation.

    Returns
    -------
    ndarray of shape (n_features,), float64
        AUC minus the mean AUC with the feature permuted. Two features with the same information may both have 0,
        because the ranker can use the other one. Values below 0 are noise. O(n_features · n_repeats · n_rows) scores.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001, §10.

    Examples
    --------
    >>> import numpy as np
    >>> from core.explain import permutation_importance
    >>> X = np.column_stack([np.arange(20.0), np.zeros(20)])
    >>> losses = permutation_importance(lambda X: X[:, 0], X, np.arange(20) >= 10)
    >>> losses[0] > 0.2, losses[1]
    (np.True_, np.float64(0.0))
    """
    check_value("score", Callable, score)
    check_value("n_repeats", int, n_repeats)
    check_seed(random_state)
    if n_repeats < 1:
        raise InvalidParameter(f"n_repeats must be at least 1, got {n_repeats}")
    X = as_table("X", X)
    whole = auc(y, score(X), sample_weight)  # which checks y and the weights
    if sample_weight is not None:
        y = np.asarray(y)[np.asarray(sample_weight) > 0.0]
        X, sample_weight = _weighing(X, np.asarray(sample_weight))
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
