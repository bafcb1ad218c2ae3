"""Variable dependence: how much scores depend on each feature alone, and on two together."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from core.errors import InvalidData, InvalidParameter
from core.metrics.groups import check_weights
from core.ranker import Floats, Ranker

from .dependence import find_features, score_points

# A joint effect whose variance is less, as a share of the score's, is rounding.
LEAST_VARIANCE = 1e-12


class VariableDependence(NamedTuple):
    """How scores depend on features.

    Attributes
    ----------
    features : tuple of int
        Columns, in the order asked for.
    main : ndarray of shape (n_features,), float64
        Variance of the feature's partial dependence, as a share of the variance of the scores:
        0 where the score does not change with it on average, 1 where nothing else matters.
    joint : ndarray of shape (n_features, n_features), float64
        H² of each two features: the share of the variance of their partial dependence that is in
        neither's own. 0 where their effects only add up, 1 where neither has one alone. Symmetric,
        with a diagonal of 0.
    """

    features: tuple[int, ...]
    main: Floats
    joint: Floats


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

    Parameters
    ----------
    ranker : Ranker
        Any fitted one with one score a row.
    X : array or table of shape (n_samples, n_features)
    features : sequence of int or str, optional
        Columns, by number or name. None: all of them.
    sample_weight : array-like of shape (n_samples,), optional
        Finite, not negative, not all 0.
    n_rows : int, default=100
        Of more rows so many are drawn, of weight above 0; at least 2.
    random_state : int, default=0
        Key of the draw.

    Returns
    -------
    VariableDependence

    Raises
    ------
    InvalidData
        X or sample_weight break a rule above, or the ranker has a score per label.
    InvalidParameter
        A feature is unknown or comes twice, or n_rows is below 2.

    Notes
    -----
    Partial dependence is taken at the rows' own values. O(n_rows²) scores for each feature and each
    pair of them.

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
    asked = range(rows.shape[1]) if features is None else features
    columns = find_features(ranker, list(asked))
    weight = np.ones(len(rows))
    if sample_weight is not None:
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
            if variance > LEAST_VARIANCE * whole:
                rest = _mean_square(together - alone[j] - alone[k], weight)
                joint[j, k] = joint[k, j] = rest / variance
    return VariableDependence(tuple(columns), main, joint)


def _mean_square(values: Floats, weight: Floats) -> float:
    return float(np.average(values**2, weights=weight))
